/*
 * op_take.h - one round trip of settle_take
 *
 * Thread safety: under the work link.
 */
#ifndef LADE_STORE_REDIS_OP_TAKE_H
#define LADE_STORE_REDIS_OP_TAKE_H

#include "store/redis/op_settle.h"

struct ls_redis_trip {
    struct ls_redis_store *s;
    struct ls_redis_settles settles;
    const struct lq_take *take;
    struct ls_redis_worker *w; /* of take */
    bool one_call;             /* settles and take have one reply */
    bool more;     /* in slots: a take of further lanes follows, the same call to who repeats it */
    bool was_idle; /* the worker was registered when the first of them began */
    bool tries_short, brief; /* by the short way of lua/trip.lua; and it went it all the way */
};

/* A take from one queue, and nothing to settle or jobs of the same queue: lua/trip.lua, lua/flow_trip.lua. */
bool ls_redis_trip_is_one_call(const struct ls_redis_trip *t);
LADE_CHECKED int ls_redis_trip_run(struct ls_redis_trip *t, struct lq_leased_vec *out,
                                   lade_err *err);
/* In slots, when there are several lanes: one after the other; op_take_slots.c. */
LADE_CHECKED int ls_redis_trip_lanes(struct ls_redis_trip *t, struct lq_leased_vec *out,
                                     lade_err *err);

#endif
