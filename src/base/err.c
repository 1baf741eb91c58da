#include "base/err.h"

#include <lade/rt.h> /* the runtime's failures have names, too */

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void LADE_PRINTF(2, 0) set_text(lade_err *err, const char *format, va_list args)
{
    (void)vsnprintf(err->text, sizeof(err->text), format, args);
    for (char *c = err->text; *c; c++) {
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?';
    }
}

int lb_fail(lade_err *err, enum lade_errno code, const char *where, const char *format, ...)
{
    if (err) {
        va_list args;
        va_start(args, format);
        set_text(err, format, args);
        va_end(args);
        err->code = -(int)code;
        err->where = where;
    }
    return -(int)code;
}

static enum lade_errno code_of_errno(int errnum)
{
    switch (errnum) {
    case ENOMEM:
        return LADE_ENOMEM;
    case EACCES:
    case EPERM:
    case EROFS:
        return LADE_EACCESS;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return LADE_ENOSPACE;
    case EINVAL:
    case ENAMETOOLONG:
        return LADE_EINVAL;
    case ENOENT:
    case ECONNREFUSED:
    case ECONNRESET:
    case ENETUNREACH:
    case EHOSTUNREACH:
    case ETIMEDOUT:
    case EPIPE:
    case EMFILE:
    case ENFILE:
        return LADE_EUNAVAILABLE;
    default:
        return LADE_EIO;
    }
}

int lb_fail_errno(lade_err *err, int errnum, const char *where, const char *what)
{
    char buf[96];
    return lb_fail(err, code_of_errno(errnum), where, "%s: %s", what,
                   strerror_r(errnum, buf, sizeof(buf)));
}

int lb_fail_nomem(lade_err *err, const char *where)
{
    return lb_fail(err, LADE_ENOMEM, where, "out of memory");
}

void lb_err_clear(lade_err *err)
{
    if (err)
        *err = (lade_err){0};
}

#define RESULT_NAMES(X)  \
    X(LADE_DONE)         \
    X(LADE_DUPLICATE)    \
    X(LADE_EMPTY)        \
    X(LADE_STALE)        \
    X(LADE_FULL)         \
    X(LADE_PAUSED)       \
    X(LADE_NOT_FOUND)    \
    X(LADE_WRONG_STATE)  \
    X(LADE_MORE)         \
    X(LADE_REPLACED)     \
    X(LADE_CONFLICT)     \
    X(LADE_TIMEOUT)      \
    X(LADE_STOPPED)      \
    X(LADE_MISSED)       \
    X(LADE_EINVAL)       \
    X(LADE_ETOOBIG)      \
    X(LADE_ENOMEM)       \
    X(LADE_EUNAVAILABLE) \
    X(LADE_EAUTH)        \
    X(LADE_EFORMAT)      \
    X(LADE_EPROTO)       \
    X(LADE_ENOSPACE)     \
    X(LADE_EBUSY)        \
    X(LADE_EACCESS)      \
    X(LADE_EIO)          \
    X(LADE_ECLOSED)      \
    X(LADE_EUNSUPPORTED) \
    X(LADE_EFOREIGN)     \
    X(LADE_ENOSTORE)     \
    X(LADE_ECANCELED)    \
    X(LADE_ETIMEDOUT)    \
    X(LADE_EAGAIN)       \
    X(LADE_EPERM)        \
    X(LADE_EDEADLK)

const char *lade_result_name(int code)
{
    switch (code < 0 ? -code : code) {
#define NAME(c) \
    case c:     \
        return #c;
        RESULT_NAMES(NAME)
#undef NAME
    default:
        return "unknown";
    }
}
