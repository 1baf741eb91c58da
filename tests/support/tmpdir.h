/* tmpdir.h - a directory of its own for one test. Thread safety: all functions. */
#ifndef LADE_TESTS_SUPPORT_TMPDIR_H
#define LADE_TESTS_SUPPORT_TMPDIR_H

#include <stdbool.h>
#include <stddef.h>

/* Short enough that "DIR/name.sock" still fits a Unix socket address (108 bytes). */
#define TS_DIR_MAX 80

struct ts_tmpdir {
    char path[TS_DIR_MAX];
};

/* Makes an empty directory, mode 0700, below $TMPDIR or /tmp. False, with the reason on stderr, when it cannot. */
bool ts_tmpdir_make(struct ts_tmpdir *d);

/* Removes it with all that is in it, also read-only folders; links are not followed. Nothing when path is "". */
void ts_tmpdir_remove(struct ts_tmpdir *d);

/* Writes DIR/name to out, and returns out. Aborts when it does not fit. */
char *ts_tmpdir_path(const struct ts_tmpdir *d, const char *name, char *out, size_t size);

#endif
