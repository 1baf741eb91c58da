/*
 * bound.h - how many jobs and bytes may wait in a queue, as stores keep it
 *
 * Waiting are the ready, the scheduled and the retrying. Only the op put asks: it is LADE_FULL when in some queue more would wait than
 * may. Items that add no job (duplicates, replacements) need no room. All other ops that bring jobs to wait pass.
 *
 * A store without a bound in a queue pays one look at a field it has read anyway. The bytes of a job are those of its body. They are
 * counted only while there is a bound on them: by each step that makes jobs wait, ends their waiting or gives one another body.
 *
 * Thread safety, results: as store.h.
 */
#ifndef LADE_QUEUE_BOUND_H
#define LADE_QUEUE_BOUND_H

#include "queue/store.h"

struct lq_bound {
    int64_t max_jobs;  /* 0 = none */
    bool block;        /* put refuses all the same: who calls it waits (LQ_WATCH_ROOM) */
    int64_t max_bytes; /* 0 = none */
    int64_t bytes;     /* get: that wait now, 0 while max_bytes is 0 */
};

struct lq_bound_ops {
    /* Makes the queue. Rings those that watch for room. */
    int (*set)(struct lq_store *s, const char *queue, const struct lq_bound *bound, lade_err *err);
    /* NOT_FOUND: no such queue. */
    int (*get)(struct lq_store *s, const char *queue, struct lq_bound *out, lade_err *err);
};

static inline bool lq_bound_is_set(const struct lq_bound *b)
{
    return b->max_jobs > 0 || b->max_bytes > 0;
}

/* Whether `n` more jobs of `bytes` fit where so many wait (b->bytes are those). None need no room. */
static inline bool lq_bound_fits(const struct lq_bound *b, int64_t waiting, int64_t n,
                                 int64_t bytes)
{
    return n == 0 || ((b->max_jobs == 0 || waiting + n <= b->max_jobs) &&
                      (b->max_bytes == 0 || b->bytes + bytes <= b->max_bytes));
}

/* With its fault points; the store has bounds. */
LADE_CHECKED int lq_bound_set(struct lq_store *s, const char *queue, const struct lq_bound *bound,
                              lade_err *err);

#endif
