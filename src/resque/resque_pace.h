/*
 * resque_pace.h - how long a Resque worker sleeps after it found nothing: additive backoff (Resque 3.0, Worker#work)
 *
 * Each miss adds `backoff`, up to `max`; a hit goes back to `min`. The first value is never slept as it is: 0.1 s, max 1 s and
 * backoff 0.3 s sleep 0.4, 0.7, 1.0, 1.0. Thread safety: none.
 */
#ifndef LADE_RESQUE_PACE_H
#define LADE_RESQUE_PACE_H

#include <stdint.h>

#include "base/base.h"

#define RQ_PACE_INTERVAL INT64_C(5000000000)
#define RQ_PACE_BACKOFF  INT64_C(100000000)

/* ns; >= 0. */
struct rq_pace_opts {
    int64_t interval, min, max, backoff;
};

struct rq_pace {
    int64_t min, max, backoff;
    int64_t now;
};

/* min over max is max; an interval outside of them is brought inside. */
static inline void rq_pace_init(struct rq_pace *p, const struct rq_pace_opts *o)
{
    int64_t min = LB_MIN(o->min, o->max);
    *p = (struct rq_pace){.min = min,
                          .max = o->max,
                          .backoff = LB_MIN(o->backoff, o->max),
                          .now = LB_MAX(min, LB_MIN(o->interval, o->max))};
}

/* How long to sleep. */
static inline int64_t rq_pace_miss(struct rq_pace *p)
{
    p->now = LB_MIN(p->now + p->backoff, p->max);
    return p->now;
}

static inline void rq_pace_hit(struct rq_pace *p)
{
    p->now = p->min;
}

#endif
