/*
 * out.h - one way to print: rows of named values, shown as a table, TSV, JSON or NDJSON
 *
 * A row is a JSON object; columns say which of its members a table shows and how. JSON and NDJSON carry the whole
 * object. Rows are written as they come (a table in chunks), so a listing of any length needs bounded memory.
 * Bytes are shown as text only when they are valid UTF-8 without NUL; otherwise as base 64 under KEY_base64, with
 * KEY_encoding saying which. Building never fails at the call: a row or output that could not be made remembers it,
 * and cli_out_end says so.
 * Thread safety: none.
 */
#ifndef LADE_CLI_OUT_H
#define LADE_CLI_OUT_H

#include <lade/lade.h>

#include <jansson.h>

#include "cli/cli.h"

struct cli_row {
    json_t *o;
    bool failed;
};

void cli_row_init(struct cli_row *r);
void cli_row_fini(struct cli_row *r);
/* NULL becomes JSON null; bytes that are no UTF-8 become '?'. */
void cli_row_text(struct cli_row *r, const char *key, const char *text);
void cli_row_int(struct cli_row *r, const char *key, int64_t v);
/* Above INT64_MAX it is a string: JSON readers do not agree on such numbers. */
void cli_row_u64(struct cli_row *r, const char *key, uint64_t v);
void cli_row_bool(struct cli_row *r, const char *key, bool v);
/* RFC 3339 in UTC; null for 0. */
void cli_row_time(struct cli_row *r, const char *key, int64_t ns);
/* At most `max` bytes: KEY or KEY_base64, KEY_encoding, KEY_size, and KEY_truncated when it was cut. */
void cli_row_bytes(struct cli_row *r, const char *key, lade_bytes bytes, size_t max);
/* Takes the value. */
void cli_row_json(struct cli_row *r, const char *key, json_t *value);

enum cli_cell {
    CLI_CELL_TEXT,     /* strings, numbers and booleans as they are */
    CLI_CELL_DURATION, /* an integer of milliseconds; for people with its unit */
    CLI_CELL_BYTES,    /* what cli_row_bytes wrote, on one line */
    CLI_CELL_STATE     /* text, with the colour of the state */
};

struct cli_column {
    const char *title;
    const char *key;
    enum cli_cell cell;
    bool right;
    bool cut; /* long bytes are cut, and it may lose its end on a narrow terminal */
};

struct cli_out {
    const struct cli *c;
    const struct cli_column *columns;
    size_t n_columns;
    void *table; /* libsmartcols' */
    uint64_t n_rows;
    size_t n_held; /* rows in the table not printed yet */
    bool printed;
    bool failed;
    bool cut; /* what was to be listed could not be read to its end */
};

void cli_out_begin(struct cli_out *out, const struct cli *c, const struct cli_column *columns,
                   size_t n_columns);
/* Takes what the row holds; it is empty again afterwards. */
void cli_out_row(struct cli_out *out, struct cli_row *row);
/* Prints the rest; a table without rows is a note that there are none. 0 or -LADE_ENOMEM, -LADE_EIO. */
LADE_CHECKED int cli_out_end(struct cli_out *out, lade_err *err);
/*
 * Ends a listing whose reading gave rc: which it returns, unless the printing failed. < 0: *err is as it was, and there is no word
 * that there are none, as nobody knows.
 */
LADE_CHECKED int cli_out_finish(struct cli_out *out, int rc, lade_err *err);

bool cli_out_is_json(const struct cli *c);
/*
 * True when the answers for `args` go into one cli_out: several are one JSON text only as an array, one TSV only under one line
 * of names. An id of "-" stands for those on stdin.
 */
bool cli_out_needs_list(const struct cli *c, char **args, int n_args);
/*
 * Prints one object by itself, when the format is JSON, NDJSON or TSV (a line of names and one of values, so none of them may
 * be a list). Takes what the row holds.
 */
LADE_CHECKED int cli_out_object(const struct cli *c, struct cli_row *row, lade_err *err);
/* Writes bytes as they are. */
LADE_CHECKED int cli_out_raw(lade_bytes bytes, lade_err *err);
/* Text of a user's on a line for people: no control character of it reaches the terminal. */
void cli_print_text(const char *text);

#endif
