#include "cli/out.h"

#include <errno.h>
#include <libsmartcols/libsmartcols.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "cli/text.h"

/* A table is printed in chunks of so many rows, aligned each for itself. */
#define ROWS_HELD_MAX 1000
#define CELL_BYTES    60

void cli_row_init(struct cli_row *r)
{
    *r = (struct cli_row){.o = json_object()};
    r->failed = !r->o;
}

void cli_row_fini(struct cli_row *r)
{
    json_decref(r->o);
    *r = (struct cli_row){0};
}

void cli_row_json(struct cli_row *r, const char *key, json_t *value)
{
    /* json_object_set_new gives the value back to nobody: it frees it when it fails. */
    if (json_object_set_new(r->o, key, value) != 0)
        r->failed = true;
}

static json_t *make_text(const char *text)
{
    size_t n = strlen(text);
    if (cli_utf8_span(text, n) == n)
        return json_stringn(text, n);
    char *copy = lb_strdup(text);
    if (!copy)
        return NULL;
    for (char *p = copy; *p; p++) {
        if (*p & 0x80)
            *p = '?';
    }
    json_t *value = json_string(copy);
    lb_free(copy);
    return value;
}

void cli_row_text(struct cli_row *r, const char *key, const char *text)
{
    cli_row_json(r, key, text ? make_text(text) : json_null());
}

void cli_row_int(struct cli_row *r, const char *key, int64_t v)
{
    cli_row_json(r, key, json_integer(v));
}

void cli_row_u64(struct cli_row *r, const char *key, uint64_t v)
{
    char text[24];
    if (v <= INT64_MAX) {
        cli_row_int(r, key, (int64_t)v);
        return;
    }
    (void)snprintf(text, sizeof(text), "%llu", (unsigned long long)v);
    cli_row_text(r, key, text);
}

void cli_row_bool(struct cli_row *r, const char *key, bool v)
{
    cli_row_json(r, key, json_boolean(v));
}

void cli_row_time(struct cli_row *r, const char *key, int64_t ns)
{
    char text[CLI_TIME_LEN];
    cli_time_text(text, ns);
    cli_row_text(r, key, ns > 0 ? text : NULL);
}

static json_t *make_base64(const void *p, size_t n)
{
    struct lb_buf text;
    lb_buf_init(&text);
    cli_base64_encode(&text, p, n);
    json_t *value = text.failed ? NULL : json_stringn((const char *)text.p, text.n);
    lb_buf_fini(&text);
    return value;
}

/* The member "KEYsuffix". */
static void put_suffixed(struct cli_row *r, const char *key, const char *suffix, json_t *value)
{
    char name[64];
    (void)snprintf(name, sizeof(name), "%s%s", key, suffix);
    cli_row_json(r, name, value);
}

void cli_row_bytes(struct cli_row *r, const char *key, lade_bytes bytes, size_t max)
{
    size_t shown = LB_MIN(bytes.size, max);
    size_t span = cli_utf8_span(bytes.data, bytes.size);
    /* A preview may cut a character: step back to its start. */
    bool is_text = span == bytes.size;
    if (is_text && shown < bytes.size)
        shown = cli_utf8_span(bytes.data, shown);
    if (is_text)
        cli_row_json(r, key, json_stringn(shown ? bytes.data : "", shown));
    else
        put_suffixed(r, key, "_base64", make_base64(bytes.data, shown));
    put_suffixed(r, key, "_encoding", json_string(is_text ? "utf-8" : "base64"));
    put_suffixed(r, key, "_size", json_integer((json_int_t)bytes.size));
    if (shown < bytes.size)
        put_suffixed(r, key, "_truncated", json_true());
}

static bool has_colors(const struct cli *c)
{
    const char *no_color = getenv("NO_COLOR");
    return !c->no_color && !(no_color && no_color[0]) && isatty(STDOUT_FILENO);
}

void cli_out_begin(struct cli_out *out, const struct cli *c, const struct cli_column *columns,
                   size_t n_columns)
{
    *out = (struct cli_out){.c = c, .columns = columns, .n_columns = n_columns};
    if (c->format != CLI_TABLE)
        return;
    struct libscols_table *table = scols_new_table();
    out->table = table;
    out->failed = !table;
    if (!table)
        return;
    out->failed |= scols_table_enable_colors(table, has_colors(c)) != 0;
    for (size_t i = 0; i < n_columns; i++) {
        int flags = (columns[i].right ? SCOLS_FL_RIGHT : 0) | (columns[i].cut ? SCOLS_FL_TRUNC : 0);
        out->failed |= !scols_table_new_column(table, columns[i].title, 0, flags);
    }
}

/* libsmartcols writes what is not printable as \xNN itself, but for line ends and tabs it is kinder to be short. */
static void add_for_table(struct lb_buf *cell, const char *p, size_t n, size_t max)
{
    size_t shown = n > max ? cli_utf8_span(p, max) : n;
    for (size_t i = 0; i < shown; i++) {
        if (p[i] == '\n')
            lb_buf_add_str(cell, "\\n");
        else if (p[i] == '\t')
            lb_buf_add_str(cell, "\\t");
        else
            lb_buf_add_byte(cell, (uint8_t)p[i]);
    }
    if (shown < n)
        lb_buf_add_str(cell, "...");
}

static void add_string(struct lb_buf *cell, const json_t *v, size_t max, bool is_table)
{
    const char *p = json_string_value(v);
    size_t n = json_string_length(v);
    if (is_table)
        add_for_table(cell, p, n, max);
    else
        cli_add_printable(cell, p, n, max);
}

static void add_bytes_cell(struct lb_buf *cell, const json_t *row, const struct cli_column *column,
                           bool is_table)
{
    char size_key[64];
    const char *key = column->key;
    const json_t *text = json_object_get(row, key);
    if (text) {
        add_string(cell, text, column->cut ? CELL_BYTES : SIZE_MAX, is_table);
        return;
    }
    (void)snprintf(size_key, sizeof(size_key), "%s_size", key);
    const json_t *size = json_object_get(row, size_key);
    if (size)
        lb_buf_add_fmt(cell, "(%lld bytes, binary)", (long long)json_integer_value(size));
}

/* The text of one cell; NUL-terminated. */
static void add_cell(struct lb_buf *cell, const json_t *row, const struct cli_column *column,
                     bool is_table)
{
    const json_t *v = json_object_get(row, column->key);
    char text[CLI_TIME_LEN];
    if (column->cell == CLI_CELL_BYTES) {
        add_bytes_cell(cell, row, column, is_table);
    } else if (json_is_string(v)) {
        add_string(cell, v, SIZE_MAX, is_table);
    } else if (json_is_integer(v) && column->cell == CLI_CELL_DURATION && is_table) {
        cli_duration_text(text, json_integer_value(v) * LADE_MILLISECOND);
        lb_buf_add_str(cell, json_integer_value(v) > 0 ? text : "-");
    } else if (json_is_integer(v)) {
        lb_buf_add_fmt(cell, "%lld", (long long)json_integer_value(v));
    } else if (json_is_real(v)) {
        lb_buf_add_fmt(cell, "%.3f", json_real_value(v));
    } else if (json_is_boolean(v)) {
        lb_buf_add_str(cell, json_is_true(v) ? "yes" : "no");
    } else {
        lb_buf_add_str(cell, "-");
    }
    lb_buf_add_byte(cell, 0);
}

/* Of a state; none for one that the row counts 0 of. */
static const char *color_of(const json_t *row, const char *state)
{
    static const char *const colors[][2] = {
        {"dead", "red"},     {"cancelled", "yellow"}, {"retrying", "yellow"},
        {"active", "green"}, {"paused", "yellow"},
    };

    const json_t *n = json_object_get(row, "jobs");
    if (json_is_integer(n) && json_integer_value(n) == 0)
        return NULL;
    for (size_t i = 0; i < LB_ARRAY_LEN(colors); i++) {
        if (strcmp(colors[i][0], state) == 0)
            return colors[i][1];
    }
    return NULL;
}

/* Prints the rows held and lets them go. */
static void flush_table(struct cli_out *out)
{
    if (out->failed || (out->n_held == 0 && out->printed))
        return;
    out->failed |= scols_table_enable_noheadings(out->table, out->printed) != 0;
    out->failed |= scols_print_table(out->table) != 0;
    scols_table_remove_lines(out->table);
    out->n_held = 0;
    out->printed = true;
}

static void add_table_row(struct cli_out *out, const json_t *row)
{
    struct libscols_line *line = scols_table_new_line(out->table, NULL);
    struct lb_buf cell;
    if (!line) {
        out->failed = true;
        return;
    }
    lb_buf_init(&cell);
    for (size_t i = 0; i < out->n_columns; i++) {
        lb_buf_clear(&cell);
        add_cell(&cell, row, &out->columns[i], true);
        const char *text = cell.failed ? "" : (const char *)cell.p;
        const char *color = out->columns[i].cell == CLI_CELL_STATE ? color_of(row, text) : NULL;
        out->failed |= cell.failed || scols_line_set_data(line, i, text) != 0;
        if (color)
            out->failed |= scols_cell_set_color(scols_line_get_cell(line, i), color) != 0;
    }
    lb_buf_fini(&cell);
    if (++out->n_held == ROWS_HELD_MAX)
        flush_table(out);
}

static void print_tsv_titles(const struct cli_out *out)
{
    for (size_t i = 0; i < out->n_columns; i++)
        (void)printf("%s%s", i ? "\t" : "", out->columns[i].key);
    (void)putchar('\n');
}

static void print_tsv_row(struct cli_out *out, const json_t *row)
{
    struct lb_buf cell;
    lb_buf_init(&cell);
    for (size_t i = 0; i < out->n_columns; i++) {
        lb_buf_clear(&cell);
        add_cell(&cell, row, &out->columns[i], false);
        out->failed |= cell.failed;
        (void)printf("%s%s", i ? "\t" : "", cell.failed ? "" : (const char *)cell.p);
    }
    (void)putchar('\n');
    lb_buf_fini(&cell);
}

void cli_out_row(struct cli_out *out, struct cli_row *row)
{
    json_t *o = row->o;
    out->failed |= row->failed;
    if (out->failed) {
        cli_row_fini(row);
        return;
    }
    switch (out->c->format) {
    case CLI_TABLE:
        add_table_row(out, o);
        break;
    case CLI_TSV:
        if (out->n_rows == 0)
            print_tsv_titles(out);
        print_tsv_row(out, o);
        break;
    case CLI_JSON:
        (void)fputs(out->n_rows ? ",\n" : "[\n", stdout);
        out->failed |= json_dumpf(o, stdout, JSON_COMPACT) != 0;
        break;
    case CLI_NDJSON:
        out->failed |= json_dumpf(o, stdout, JSON_COMPACT) != 0;
        (void)putchar('\n');
        break;
    }
    out->n_rows++;
    cli_row_fini(row);
}

static int end_stdout(bool failed, lade_err *err)
{
    if (fflush(stdout) != 0 || ferror(stdout))
        return lb_fail(err, LADE_EIO, "print", "stdout: cannot be written; is the disk full?");
    return failed ? lb_fail_nomem(err, "print") : 0;
}

int cli_out_end(struct cli_out *out, lade_err *err)
{
    if (out->c->format == CLI_TABLE && out->table) {
        flush_table(out);
        scols_unref_table(out->table);
    }
    if (out->c->format == CLI_TSV && out->n_rows == 0)
        print_tsv_titles(out);
    if (out->c->format == CLI_JSON)
        (void)fputs(out->n_rows ? "\n]\n" : "[]\n", stdout);
    if (out->c->format == CLI_TABLE && out->n_rows == 0 && !out->failed && !out->cut)
        cli_note(out->c, "none");
    out->table = NULL;
    return end_stdout(out->failed, err);
}

int cli_out_finish(struct cli_out *out, int rc, lade_err *err)
{
    out->cut = rc < 0;
    int end = cli_out_end(out, rc < 0 ? NULL : err);
    return rc >= 0 && end < 0 ? end : rc;
}

/* A line of names and one of values. */
static bool print_tsv_object(json_t *o)
{
    struct lb_buf names, values;
    const char *key = NULL;
    json_t *value = NULL;
    lb_buf_init(&names);
    lb_buf_init(&values);
    json_object_foreach(o, key, value)
    {
        struct lb_buf cell;
        lb_buf_init(&cell);
        add_cell(&cell, o, &(struct cli_column){key, key, CLI_CELL_TEXT, false, false}, false);
        lb_buf_add_fmt(&names, "%s%s", names.n ? "\t" : "", key);
        lb_buf_add_fmt(&values, "%s%s", values.n ? "\t" : "",
                       cell.failed ? "" : (const char *)cell.p);
        values.failed = values.failed || cell.failed;
        lb_buf_fini(&cell);
    }
    bool is_made = !names.failed && !values.failed;
    if (is_made)
        (void)printf("%.*s\n%.*s\n", (int)names.n, (const char *)names.p, (int)values.n,
                     (const char *)values.p);
    lb_buf_fini(&names);
    lb_buf_fini(&values);
    return is_made;
}

int cli_out_object(const struct cli *c, struct cli_row *row, lade_err *err)
{
    if (c->format == CLI_TSV) {
        bool is_made = !row->failed && print_tsv_object(row->o);
        cli_row_fini(row);
        return end_stdout(!is_made, err);
    }
    size_t flags = c->format == CLI_NDJSON ? JSON_COMPACT : JSON_INDENT(2);
    bool failed = row->failed || json_dumpf(row->o, stdout, flags) != 0;
    (void)putchar('\n');
    cli_row_fini(row);
    return end_stdout(failed, err);
}

int cli_out_raw(lade_bytes bytes, lade_err *err)
{
    if (bytes.size > 0)
        (void)fwrite(bytes.data, 1, bytes.size, stdout);
    return end_stdout(false, err);
}

void cli_print_text(const char *text)
{
    struct lb_buf line;
    lb_buf_init(&line);
    cli_add_printable(&line, text, strlen(text), SIZE_MAX);
    (void)fwrite(line.n > 0 ? (const char *)line.p : "", 1, line.n, stdout);
    lb_buf_fini(&line);
}

bool cli_out_is_json(const struct cli *c)
{
    return c->format == CLI_JSON || c->format == CLI_NDJSON;
}

bool cli_out_needs_list(const struct cli *c, char **args, int n_args)
{
    bool is_one = n_args == 1 && strcmp(args[0], "-") != 0;
    return c->format == CLI_TSV || (c->format == CLI_JSON && !is_one);
}
