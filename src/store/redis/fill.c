#include "store/redis/fill.h"

#include <string.h>

#include "base/base.h"
#include "queue/flow.h"
#include "store/redis/packs.h"
#include "store/redis/shelf.h"

/* Bodies for a run of n jobs, which stay together in one copy. NOT_FOUND: they are not in this pack. */
int ls_redis_fill_run(struct ls_redis_store *s, struct lq_leased_vec *out, struct lq_leased *job,
                      size_t n, struct lb_slice bytes)
{
    uint32_t most = s->base.config.body_max;
    size_t from = (size_t)ls_redis_place_of(lb_slice_of(job->id));
    struct ls_redis_pack p;
    if (!ls_redis_pack_read(&p, bytes) || from < p.first || from + n > p.first + p.n)
        return LADE_NOT_FOUND;
    size_t skip = from - p.first;
    struct lb_slice first = ls_redis_pack_body(&p, skip);
    struct lb_slice last = ls_redis_pack_body(&p, skip + n - 1);
    struct lb_mut all = lb_arena_copy(&out->arena, first.p, (size_t)(last.p + last.n - first.p));
    if (!all.p)
        return -LADE_ENOMEM;
    for (size_t i = 0; i < n; i++) {
        struct lb_slice b = ls_redis_pack_body(&p, skip + i);
        job[i].oversize = most > 0 && b.n > most;
        job[i].body = job[i].oversize ? (struct lb_mut){job[i].id.p + job[i].id.n, 0}
                                      : (struct lb_mut){all.p + (b.p - first.p), b.n};
    }
    return skip + n == p.n ? LADE_EMPTY : 0; /* EMPTY: none of it comes behind */
}

void ls_redis_fill_follow(const struct ls_redis_store *s, struct lq_leased_vec *out,
                          struct lq_leased *job, struct lb_slice bytes)
{
    struct ls_redis_pack p;
    uint32_t most = s->base.config.body_max;
    bool wanted = job->n_follow == LS_REDIS_FOLLOW;
    job->n_follow = 0;
    if (!wanted || !ls_redis_pack_read(&p, bytes))
        return;
    size_t place = (size_t)ls_redis_place_of(lb_slice_of(job->id)), first = place + 1 - p.first;
    size_t n = first < p.n ? LB_MIN(p.n - first, (size_t)LQ_FOLLOW_MAX) : 0;
    size_t room = job->id.n + 6; /* as read_run of op_take.c */
    struct lb_slice from = n > 0 ? ls_redis_pack_body(&p, first) : lb_slice("", 0);
    struct lb_slice last = n > 0 ? ls_redis_pack_body(&p, first + n - 1) : from;
    struct lq_follow *f = n > 0 ? lb_arena_alloc(&out->arena, n * sizeof(*f)) : NULL;
    uint8_t *ids = f ? lb_arena_alloc(&out->arena, n * room) : NULL;
    struct lb_mut all = {0};
    if (ids)
        all = lb_arena_copy(&out->arena, from.p, (size_t)(last.p + last.n - from.p));
    for (size_t i = 0; all.p && i < n; i++, ids += room) {
        char id[LADE_ID_MAX + 1];
        struct lb_slice b = ls_redis_pack_body(&p, first + i);
        size_t length = ls_redis_id_at(id, lb_slice_of(job->id), place + 1 + i);
        if ((most > 0 && b.n > most) || length + 1 > room)
            break;
        memcpy(ids, id, length + 1);
        f[i] = (struct lq_follow){{ids, length}, {all.p + (b.p - from.p), b.n}};
        job->n_follow++;
    }
    job->follow = f;
}

static struct lb_slice flow_of(const struct lq_leased *job, char name[LS_REDIS_PACK_NAME_MAX + 1])
{
    if (!lq_flow_has(lb_slice_of(job->id)))
        return lb_slice("", 0);
    ls_redis_pack_name(name, lb_slice_of(job->id));
    return lb_slice_str(name);
}

/* Steps that came by a hop: from the shelf, when it is there; else they are fetched. */
int ls_redis_fill_from_shelf(struct ls_redis_store *s, struct lq_leased_vec *out,
                             struct lq_leased *job, size_t n)
{
    char name[LS_REDIS_PACK_NAME_MAX + 1];
    struct lb_slice flow = flow_of(job, name);
    struct lb_slice bytes = ls_redis_shelf_get(s->shelf, flow);
    int rc = bytes.n > 0 ? ls_redis_fill_run(s, out, job, n, bytes) : 0;
    if (bytes.n > 0 && rc >= 0 && n == 1)
        ls_redis_fill_follow(s, out, job, bytes);
    if (rc == LADE_EMPTY)
        ls_redis_shelf_drop(s->shelf, flow);
    return LB_MIN(rc, 0);
}

/* Steps of which the envelopes were fetched. */
void ls_redis_put_on_shelf(struct ls_redis_store *s, const struct lq_leased *job, int filled,
                           struct lb_slice bytes)
{
    char name[LS_REDIS_PACK_NAME_MAX + 1];
    struct lb_slice flow = flow_of(job, name);
    if (flow.n > 0 && filled == 0)
        ls_redis_shelf_put(&s->shelf, flow, bytes);
    else if (flow.n > 0)
        ls_redis_shelf_drop(s->shelf, flow);
}
