/*
 * bound.h - how many jobs may wait in a queue, as stores keep it
 *
 * Waiting are the ready, the scheduled and the retrying. Only the op put asks: it is LADE_FULL when in some queue more would wait than
 * may. Items that add no job (duplicates, replacements) need no room. All other ops that bring jobs to wait pass.
 *
 * A store without a bound in a queue pays one look at a field it has read anyway.
 *
 * Thread safety, results: as store.h.
 */
#ifndef LADE_QUEUE_BOUND_H
#define LADE_QUEUE_BOUND_H

#include "queue/store.h"

struct lq_bound {
    int64_t max_jobs; /* 0 = none */
    bool block;       /* put refuses all the same: who calls it waits (LQ_WATCH_ROOM) */
};

struct lq_bound_ops {
    /* Makes the queue. Rings those that watch for room. */
    int (*set)(struct lq_store *s, const char *queue, const struct lq_bound *bound, lade_err *err);
    /* NOT_FOUND: no such queue. */
    int (*get)(struct lq_store *s, const char *queue, struct lq_bound *out, lade_err *err);
};

/* With its fault points; the store has bounds. */
LADE_CHECKED int lq_bound_set(struct lq_store *s, const char *queue, const struct lq_bound *bound,
                              lade_err *err);

#endif
