/*
 * resque_url.h - where a Resque is
 *
 *   resque://[user[:password]@]host[:port][/db][?namespace=NAME&mode=reliable|strict&jobs=resque|active_job&
 *            failures=redis|redis_multi_queue&...]
 *   resque+tls://...       the same over TLS
 *   resque+unix:///path[?db=N&...]
 *
 * All other options are those of the Redis store (store/redis/url.h). A name in `namespace` is percent-decoded; empty is none.
 */
#ifndef LADE_STORE_RESQUE_RESQUE_URL_H
#define LADE_STORE_RESQUE_RESQUE_URL_H

#include <lade/base.h>

#include "base/buf.h"
#include "resque/resque_keys.h"

struct ls_resque_url {
    struct lb_buf
        redis; /* the URL for the Redis store's parser, NUL-terminated; it may hold a password */
    char ns[RQ_NAMESPACE_MAX + 2];
    bool has_ns;
    bool strict; /* mode=strict */
    bool active; /* jobs=active_job: what is enqueued is in ActiveJob's wrapper */
    bool multi;  /* failures=redis_multi_queue: each queue has a list of its own */
};

/* 0: lb_buf_fini(&out->redis) is the caller's. -LADE_EINVAL naming the option, -LADE_ENOMEM. */
LADE_CHECKED int ls_resque_url_read(struct ls_resque_url *out, const char *url, lade_err *err);

#endif
