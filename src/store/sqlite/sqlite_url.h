/* sqlite_url.h - sqlite:PATH[?synchronous=normal|full&busy_timeout=MS] */
#ifndef LADE_SQLITE_URL_H
#define LADE_SQLITE_URL_H

#include <lade/base.h>

struct ls_sqlite_url {
    char *path; /* the holder's: lb_free */
    bool full;
    int64_t busy_ms; /* 0 = not given */
};

/* EINVAL names the part and the rule. On failure nothing is held. */
LADE_CHECKED int ls_sqlite_url_parse(struct ls_sqlite_url *out, const char *url, lade_err *err);

#endif
