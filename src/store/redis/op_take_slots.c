/* op_take_slots.c - a take over several lanes where each is a slot */
#include "base/base.h"
#include "store/redis/op_take.h"
#include "store/redis/slots.h"

/* What is found out lane by lane. */
struct over {
    size_t before, settled; /* jobs in `out` when it began; items that the first trip settled */
    int64_t next_ms;        /* the first due */
    bool idle;              /* registered in some lane */
};

/* Lane i of all. */
static int take_lane(struct ls_redis_trip *t, const struct lq_take *all, size_t i, struct over *o,
                     struct lq_leased_vec *out, lade_err *err)
{
    struct lq_take one = *all;
    size_t at = out->n;
    one.lanes = ls_redis_some_lanes(all->lanes, i, all->lanes.n);
    one.max = all->max - (at - o->before);
    one.register_idle = all->register_idle && at == o->before;
    t->take = &one;
    t->more = i + 1 < all->lanes.n;
    t->one_call = ls_redis_trip_is_one_call(t);
    out->next_due_ms = 0;
    int rc = ls_redis_trip_run(t, out, err);
    t->take = all;
    o->idle = o->idle || t->w->idle;
    if (out->next_due_ms > 0 && (o->next_ms == 0 || out->next_due_ms < o->next_ms))
        o->next_ms = out->next_due_ms;
    for (; at < out->n; at++)
        out->job[at].lane = (uint32_t)i;
    return rc;
}

/*
 * Until there is enough. Then the worker is taken off the other lanes where it was registered, so that it is not rung in vain. One that
 * found something may stay registered in lanes before; the next take takes it off.
 */
int ls_redis_trip_lanes(struct ls_redis_trip *t, struct lq_leased_vec *out, lade_err *err)
{
    const struct lq_take *all = t->take;
    struct over o = {.before = out->n};
    int rc = 0;
    t->more = true;
    for (size_t i = 0; rc == 0 && i < all->lanes.n; i++) {
        if (out->n - o.before >= all->max && !t->was_idle)
            break;
        rc = take_lane(t, all, i, &o, out, err);
        if (i == 0 && rc >= 0) { /* its settles are done, and not sent again */
            o.settled = t->settles.n;
            t->settles.n = t->settles.n_queues = 0;
        }
    }
    t->settles.n = LB_MAX(t->settles.n, o.settled);
    if (rc != 0) {
        out->n = o.before;
        t->w->idle = true;
        t->w->take_doubt = t->w->take_doubt || rc < 0;
        if (rc < 0 && o.settled > 0) /* the caller will repeat them */
            ls_redis_settles_doubt(&t->settles);
        return rc;
    }
    if (t->more) {
        t->w->take_seq++;
        t->w->take_doubt = false;
    }
    t->w->idle = o.idle;
    out->next_due_ms = o.next_ms;
    return 0;
}
