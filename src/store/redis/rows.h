/* rows.h - jobs as operators see them, from lua/rows.lua. Thread safety: none; under the admin link. */
#ifndef LADE_STORE_REDIS_ROWS_H
#define LADE_STORE_REDIS_ROWS_H

#include "store/redis/store_inner.h"

struct ls_redis_rows {
    struct ls_redis_store *s;
    const char *queue;
    const struct lb_slice *id;
    size_t n;
    int state;     /* only jobs in this enum lade_state; -1 = any */
    size_t looked; /* out: how many of the ids were looked at */
};

/* Appends a row for each id that is there, in order. */
LADE_CHECKED int ls_redis_rows_read(struct ls_redis_rows *r, struct ls_redis_conn *c,
                                    struct lq_row_vec *out, lade_err *err);

#endif
