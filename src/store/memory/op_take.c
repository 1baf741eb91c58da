/*
 * op_take.c - ready -> active, and active -> active when the owner is dead
 *
 * A job is copied out first and moves then, one by one, so that running out of memory leaves it where it was. What was
 * handed out until then is the result; only when that is nothing the op fails.
 */
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "queue/flow.h"
#include "store/memory/memory_flow.h"
#include "store/memory/memory_home.h"
#include "store/memory/memory_ops.h"

/* Appends room for max more to out; false when out of memory. */
static bool reserve(struct lq_leased_vec *out, size_t max)
{
    struct lq_leased *grown = lb_arena_alloc(&out->arena, (out->n + max) * sizeof(*grown));
    if (!grown)
        return false;
    if (out->n > 0)
        memcpy(grown, out->job, out->n * sizeof(*grown));
    out->job = grown;
    return true;
}

/* Copies all but the lease. The room was reserved. */
static bool copy_out(struct lq_store *s, const struct ls_memory_job *j, struct lq_leased_vec *out)
{
    bool oversize = j->body.n > s->config.body_max;
    struct lq_leased l = {
        .id = lb_arena_copy(&out->arena, j->id, strlen(j->id)),
        .body = lb_arena_copy(&out->arena, j->body.p, oversize ? 0 : j->body.n),
        .history = lb_arena_copy(&out->arena, j->history.p, j->history.n),
        .oversize = oversize,
    };
    if (!l.id.p || !l.body.p || !l.history.p)
        return false;
    out->job[out->n] = l;
    return true;
}

static bool hand_out(struct lq_store *s, struct ls_memory_job *j, struct ls_memory_worker *w,
                     uint32_t lane, struct lq_leased_vec *out, int64_t now_ms)
{
    if (!copy_out(s, j, out))
        return false;
    struct lq_leased *l = &out->job[out->n];
    if (j->owner) {
        l->begun = j->begun;
        memcpy(l->former, j->owner->id, sizeof(l->former));
    }
    ls_memory_job_lease(ls_memory_home_of(s), j, w, now_ms);
    l->fence = j->fence;
    l->lane = lane;
    out->n++;
    return true;
}

/* How many jobs the lanes that are not paused can give at most. */
static size_t count_waiting(struct ls_memory_home *h, struct lq_lanes lanes)
{
    size_t n = 0;
    for (size_t i = 0; i < lanes.n; i++) {
        const struct ls_memory_queue *q = ls_memory_queue_find(h, lanes.queue[i]);
        if (q && !q->paused)
            n += q->order[LADE_STATE_READY].n + q->order[LADE_STATE_SCHEDULED].n +
                 q->order[LADE_STATE_RETRYING].n;
    }
    return n;
}

/* The same of a queue with keys or limits. False when out of memory. */
static bool take_turns(struct lq_store *s, struct ls_memory_queue *q, struct ls_memory_worker *w,
                       uint32_t lane, size_t max, struct lq_leased_vec *out, int64_t now_ms)
{
    struct ls_memory_home *h = ls_memory_home_of(s);
    struct ls_memory_turn turn;
    for (size_t n = 0; n < max && (turn = ls_memory_turn_begin(h, q, now_ms)).job; n++) {
        if (!hand_out(s, turn.job, w, lane, out, now_ms))
            return false;
        ls_memory_turn_end(h, q, &turn, now_ms);
    }
    return true;
}

/* False when out of memory. */
static bool take_from(struct lq_store *s, const struct lq_take *take, uint32_t lane, size_t max,
                      struct lq_leased_vec *out, int64_t now_ms)
{
    struct ls_memory_home *h = ls_memory_home_of(s);
    struct ls_memory_queue *q = ls_memory_queue_find(h, take->lanes.queue[lane]);
    if (!q || q->paused)
        return true;
    (void)ls_memory_queue_promote(h, q, now_ms, LQ_TAKE_MAX);
    struct ls_memory_worker *w = ls_memory_worker_find(h, take->worker);
    size_t before = out->n;
    struct ls_memory_node *first = NULL;
    if (q->gated && !take_turns(s, q, w, lane, max, out, now_ms))
        return false;
    while (!q->gated && out->n - before < max &&
           (first = ls_memory_order_first(&q->order[LADE_STATE_READY]))) {
        if (!hand_out(s, ls_memory_job_of(first), w, lane, out, now_ms))
            return false;
        struct lq_leased *l = &out->job[out->n - 1];
        if (take->follow && lq_flow_has(lb_slice_of(l->id)))
            ls_memory_flow_follow(s, lb_slice_of(l->id), &out->arena, l);
    }
    if (out->n > before && q->order[LADE_STATE_READY].n == 0)
        ls_memory_event(h, q, &(struct lq_ev){.type = LADE_EVENT_DRAINED}, now_ms);
    return true;
}

static int64_t find_next_due(struct ls_memory_home *h, struct lq_lanes lanes, int64_t now_ms)
{
    int64_t next = 0;
    for (size_t i = 0; i < lanes.n; i++) {
        const struct ls_memory_queue *q = ls_memory_queue_find(h, lanes.queue[i]);
        int64_t due = q && !q->paused ? ls_memory_queue_next_due(q) : 0;
        int64_t turn = q && !q->paused && q->gated ? ls_memory_queue_next_turn(q, now_ms) : 0;
        if (due != 0 && (next == 0 || due < next))
            next = due;
        if (turn != 0 && (next == 0 || turn < next))
            next = turn;
    }
    return next;
}

int ls_memory_take(struct lq_store *s, const struct lq_take *take, struct lq_leased_vec *out,
                   int64_t now_ms, lade_err *err)
{
    struct ls_memory_home *h = ls_memory_home_of(s);
    struct ls_memory_worker *w = ls_memory_worker_find(h, take->worker);
    if (!ls_memory_worker_is_live(w, now_ms))
        return LADE_STALE;
    size_t max = LB_MIN(take->max, LQ_TAKE_MAX);
    max = LB_MIN(max, count_waiting(h, take->lanes));
    if (max > 0 && !reserve(out, max))
        return lb_fail_nomem(err, "take");
    size_t before = out->n;
    bool ok = true;
    for (size_t i = 0; ok && i < take->lanes.n && out->n - before < max; i++)
        ok = take_from(s, take, (uint32_t)i, max - (out->n - before), out, now_ms);
    if (out->n == before && !ok)
        return lb_fail_nomem(err, "take");
    if (out->n == before) {
        out->next_due_ms = find_next_due(h, take->lanes, now_ms);
        out->now_ms = now_ms;
    }
    w->idle = out->n == before && take->register_idle;
    return LADE_DONE;
}

int ls_memory_begin(struct lq_store *s, const char *worker, struct lq_lease *lease, size_t n,
                    lade_err *err)
{
    (void)err;
    int64_t now;
    struct ls_memory_home *h = ls_memory_enter(s, &now);
    for (size_t i = 0; i < n; i++) {
        const struct ls_memory_queue *q = ls_memory_queue_find(h, lease[i].queue);
        struct ls_memory_job *j = q ? ls_memory_job_find(q, lease[i].id) : NULL;
        bool own = j && j->owner && j->fence == lease[i].fence && strcmp(j->owner->id, worker) == 0;
        if (own)
            j->begun = true;
        lease[i].outcome = own ? LADE_DONE : LADE_STALE;
    }
    lr_mutex_unlock(&h->lock);
    return LADE_DONE;
}

int ls_memory_note(struct lq_store *s, struct lq_note *it, size_t n, lade_err *err)
{
    int64_t now;
    int rc = LADE_DONE;
    uint8_t **copy = lb_calloc(n, sizeof(*copy));
    if (!copy)
        return lb_fail_nomem(err, "note");
    for (size_t i = 0; i < n && rc == LADE_DONE; i++) {
        copy[i] = lb_malloc(it[i].history.n);
        if (copy[i])
            memcpy(copy[i], it[i].history.p, it[i].history.n);
        else
            rc = lb_fail_nomem(err, "note");
    }
    struct ls_memory_home *h = ls_memory_enter(s, &now);
    for (size_t i = 0; i < n && rc == LADE_DONE; i++) {
        const struct ls_memory_queue *q = ls_memory_queue_find(h, it[i].queue);
        struct ls_memory_job *j = q ? ls_memory_job_find(q, it[i].id) : NULL;
        bool own = j && j->owner && j->fence == it[i].fence;
        it[i].outcome = own ? LADE_DONE : LADE_STALE;
        if (!own)
            continue;
        lb_free(j->history.p);
        j->history = (struct lb_mut){copy[i], it[i].history.n};
        copy[i] = NULL;
    }
    lr_mutex_unlock(&h->lock);
    for (size_t i = 0; i < n; i++)
        lb_free(copy[i]);
    lb_free(copy);
    return rc;
}

/* The lane that is q, or lanes.n. */
static size_t find_lane(struct lq_lanes lanes, const char *queue)
{
    size_t i = 0;
    while (i < lanes.n && strcmp(lanes.queue[i], queue) != 0)
        i++;
    return i;
}

/* Hands out what a dead worker holds in the lanes, up to max in all. False when out of memory. */
static bool reclaim_from(struct lq_store *s, struct ls_memory_worker *dead,
                         const struct lq_take *take, size_t max, struct lq_leased_vec *out,
                         int64_t now_ms)
{
    struct ls_memory_worker *w = ls_memory_worker_find(ls_memory_home_of(s), take->worker);
    size_t n = 0;
    lb_list_each_safe (it, &dead->held) {
        struct ls_memory_job *j = LB_CONTAINER_OF(it, struct ls_memory_job, in_owner);
        size_t lane = find_lane(take->lanes, j->queue->name);
        if (n == max)
            break;
        if (lane == take->lanes.n)
            continue;
        if (!hand_out(s, j, w, (uint32_t)lane, out, now_ms))
            return false;
        n++;
    }
    return true;
}

static bool serves_any(const struct ls_memory_worker *w, struct lq_lanes lanes)
{
    bool any = false;
    for (size_t i = 0; i < lanes.n && !any; i++)
        any = ls_memory_worker_serves(w, lanes.queue[i]);
    return any;
}

int ls_memory_reclaim(struct lq_store *s, const struct lq_take *take, struct lq_leased_vec *out,
                      lade_err *err)
{
    int64_t now;
    struct ls_memory_home *h = ls_memory_enter(s, &now);
    size_t max = LB_MIN(take->max, LQ_TAKE_MAX), before = out->n;
    bool live = ls_memory_worker_is_live(ls_memory_worker_find(h, take->worker), now);
    bool ok = !live || reserve(out, max);
    lb_list_each_safe (it, &h->workers_list) {
        struct ls_memory_worker *dead = LB_CONTAINER_OF(it, struct ls_memory_worker, in_home);
        if (!live || !ok || out->n - before == max)
            break;
        if (ls_memory_worker_is_live(dead, now) || !serves_any(dead, take->lanes))
            continue;
        dead->registered =
            true; /* keeps it from being freed with its last lease, while it is looked at */
        ok = reclaim_from(s, dead, take, max - (out->n - before), out, now);
        ls_memory_worker_void(h, dead);
    }
    lr_mutex_unlock(&h->lock);
    if (!live)
        return LADE_STALE;
    if (out->n > before)
        return LADE_DONE;
    return ok ? LADE_EMPTY : lb_fail_nomem(err, "reclaim");
}
