/*
 * err.h - filling a lade_err where the error arises
 *
 * The text is one line: what, why, what to do. It is written once, by the code that knows; callers forward the code.
 */
#ifndef LADE_BASE_ERR_H
#define LADE_BASE_ERR_H

#include <lade/base.h>

/*
 * Fills *err (NULL is allowed) and returns -code, so that `return lb_fail(err, LADE_EINVAL, "open", "...")` reads
 * as one sentence. `where` is a static string. Control characters and invalid bytes in the text become '?'.
 */
int lb_fail(lade_err *err, enum lade_errno code, const char *where, const char *format, ...)
    LADE_PRINTF(4, 5);

/* The same for an errno value of a system call on `what`: maps it to a code and appends its text. */
int lb_fail_errno(lade_err *err, int errnum, const char *where, const char *what);

/* -LADE_ENOMEM with its text. */
int lb_fail_nomem(lade_err *err, const char *where);

void lb_err_clear(lade_err *err);

#endif
