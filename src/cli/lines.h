/*
 * lines.h - lines of a file of any length, one at a time, in bounded memory
 *
 * A line is the bytes up to a newline, which is not part of it; the last one may lack it. Any byte may stand in a line.
 * Thread safety: none.
 */
#ifndef LADE_CLI_LINES_H
#define LADE_CLI_LINES_H

#include <lade/lade.h>

#include "base/buf.h"

struct cli_lines {
    int fd;
    bool is_owned;
    const char *name;  /* for errors */
    struct lb_buf buf; /* read, not yet handed out from `at` */
    size_t at;
    size_t max;      /* longest line allowed */
    uint64_t number; /* of the line handed out last; the first is 1 */
    bool eof;
};

/* Opens `path`, "-" for stdin. 0 or -LADE_E... with the file named. */
LADE_CHECKED int cli_lines_open(struct cli_lines *l, const char *path, size_t max, lade_err *err);
void cli_lines_close(struct cli_lines *l);
/*
 * The next line, borrowed until the next call. 0, LADE_EMPTY at the end, -LADE_ETOOBIG for a line over max (the call
 * after it goes on with the next line), -LADE_EIO, -LADE_ENOMEM.
 */
LADE_CHECKED int cli_lines_next(struct cli_lines *l, lade_bytes *line, lade_err *err);

/* What to do about a payload over max, to follow "over N bytes". */
const char *cli_size_advice(size_t max);
/* All of a file, "-" for stdin, at most max bytes. Appends to out. 0, -LADE_ETOOBIG, -LADE_E... */
LADE_CHECKED int cli_read_file(const char *path, size_t max, struct lb_buf *out, lade_err *err);

/* Ids from the arguments, or one a line from stdin for the argument "-". Blank lines are passed over. */
struct cli_ids {
    char **args;
    int n_args, at;
    struct cli_lines lines;
    bool in_stdin;
};

void cli_ids_init(struct cli_ids *ids, char **args, int n_args);
void cli_ids_fini(struct cli_ids *ids);
/* Fills up to max ids. *n = 0 at the end. 0 or -LADE_E...: EINVAL for what can be no id. */
LADE_CHECKED int cli_ids_next(struct cli_ids *ids, lade_id *out, size_t max, size_t *n,
                              lade_err *err);

#endif
