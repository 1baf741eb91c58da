/*
 * op_take.c - ready -> active
 *
 * Takes the first runs of each lane in order. Ready runs whose jobs follow each other become one active run, so that
 * jobs put singly and taken together are settled together.
 */
#include <string.h>

#include "base/base.h"
#include "base/err.h"
#include "base/fault.h"
#include "store/sqlite/events.h"
#include "store/sqlite/flow.h"
#include "store/sqlite/keys.h"
#include "store/sqlite/lease.h"
#include "store/sqlite/sqlite_impl.h"
#include "store/sqlite/take.h"

int ls_sqlite_take_reserve(struct ls_sqlite_tx *tx, struct ls_sqlite_take *t, size_t n)
{
    size_t want = t->out->n + n;
    if (want <= t->cap)
        return 0;
    want = LB_MAX(want, LB_MIN(2 * t->cap, t->before + t->max));
    struct lq_leased *job = lb_arena_alloc(&t->out->arena, want * sizeof(*job));
    if (!job)
        return lb_fail_nomem(tx->err, tx->op);
    if (t->out->n > 0)
        memcpy(job, t->out->job, t->out->n * sizeof(*job));
    t->out->job = job;
    t->cap = want;
    return 0;
}

static bool copy_column(struct lb_arena *a, sqlite3_stmt *st, int i, struct lb_mut *out)
{
    struct lb_slice b = ls_sqlite_column(st, i);
    *out = lb_arena_copy(a, b.p, b.n);
    return out->p != NULL;
}

int ls_sqlite_take_read(struct ls_sqlite_tx *tx, struct ls_sqlite_take *t,
                        const struct ls_sqlite_run *r, uint32_t lane, const struct lq_leased *as)
{
    int rc = ls_sqlite_take_reserve(tx, t, (size_t)r->n);
    if (rc < 0)
        return rc;
    uint32_t body_max = tx->s->base.config.body_max;
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_JOB_TAKE);
    if (st) {
        ls_sqlite_bind(st, 1, r->job);
        ls_sqlite_bind(st, 2, r->job + r->n - 1);
        ls_sqlite_bind(st, 3, body_max > 0 ? (int64_t)body_max : INT64_MAX);
    }
    int64_t i = 0;
    for (; (rc = ls_sqlite_tx_step(tx, st)) == 1; i++) {
        struct lq_leased *l = &t->out->job[t->out->n];
        struct lb_arena *a = &t->out->arena;
        *l = *as;
        l->fence = (uint64_t)(r->pos + i);
        l->lane = lane;
        l->oversize = sqlite3_column_type(st, 1) == SQLITE_NULL;
        if (i == r->n || !copy_column(a, st, 0, &l->id) || !copy_column(a, st, 1, &l->body) ||
            !copy_column(a, st, 2, &l->history))
            break;
        t->out->n++;
    }
    if (rc == 1) {
        (void)sqlite3_reset(st);
        return lb_fail_nomem(tx->err, tx->op);
    }
    if (rc == 0 && i != r->n)
        return lb_fail(tx->err, LADE_EFORMAT, tx->op, "%s is damaged: a job has no body",
                       tx->db->path);
    return rc;
}

/* Makes the jobs collected so far active. */
static int lease(struct ls_sqlite_tx *tx, struct ls_sqlite_take *t, struct ls_sqlite_queue *q,
                 uint32_t lane, struct ls_sqlite_run *taken)
{
    if (taken->n == 0)
        return 0;
    ls_sqlite_run_to_active(tx, q, taken, t->worker);
    size_t first = t->out->n;
    int rc = ls_sqlite_run_add(tx, q, taken);
    if (rc == 0)
        rc = ls_sqlite_take_read(tx, t, taken, lane, &(struct lq_leased){0});
    struct ls_sqlite_flows flows;
    ls_sqlite_flows_init(&flows, tx);
    for (size_t i = first; t->ask->follow && !q->gated && rc == 0 && i < t->out->n; i++) {
        if (lq_flow_has(lb_slice_of(t->out->job[i].id)))
            rc = ls_sqlite_flow_follow(&flows, &t->out->arena, tx->s->base.config.body_max,
                                       &t->out->job[i]);
    }
    for (size_t i = first; q->events > 0 && rc == 0 && i < t->out->n; i++)
        ls_sqlite_event_taken(tx, q, &t->out->job[i], LADE_EVENT_ACTIVE);
    if (rc == 0)
        rc = ls_sqlite_locks_start(tx, taken->job, taken->n);
    taken->n = 0;
    LB_FAULT("sqlite.take.lease");
    return rc;
}

/* Jobs that were cut and not leased yet: what follows them is leased with them. */
struct hand {
    struct ls_sqlite_take *t;
    struct ls_sqlite_queue *q;
    uint32_t lane;
    struct ls_sqlite_run taken; /* n = 0: none */
};

/* The first k jobs of a ready run into the hand; r NULL: leases what is in it. */
static int pick(struct ls_sqlite_tx *tx, void *ctx, const struct ls_sqlite_run *r, int64_t k)
{
    struct hand *h = ctx;
    struct ls_sqlite_run *taken = &h->taken;
    if (!r)
        return lease(tx, h->t, h->q, h->lane, taken);
    bool follows = taken->n > 0 && taken->job + taken->n == r->job && taken->level == r->level &&
                   taken->key == r->key;
    int rc = follows ? 0 : lease(tx, h->t, h->q, h->lane, taken);
    if (rc == 0)
        rc = ls_sqlite_run_cut(tx, h->q, r, 0, k);
    if (follows)
        taken->n += k;
    else
        *taken = ls_sqlite_run_part(r, 0, k);
    return rc;
}

static int take_lane(struct ls_sqlite_tx *tx, struct ls_sqlite_take *t, struct ls_sqlite_queue *q,
                     uint32_t lane)
{
    struct hand hand = {.t = t, .q = q, .lane = lane};
    size_t before = t->out->n, left = t->max - (before - t->before);
    int rc = q->gated ? ls_sqlite_take_turns(tx, q, (int64_t)left, pick, &hand) : 0;
    while (!q->gated && left > 0 && rc == 0) {
        struct ls_sqlite_run r;
        rc = ls_sqlite_run_first(tx, q, LADE_STATE_READY, &r);
        if (rc != 0)
            break;
        int64_t k = LB_MIN(r.n, (int64_t)left);
        rc = pick(tx, &hand, &r, k);
        left -= (size_t)k;
    }
    if (rc >= 0)
        rc = lease(tx, t, q, lane, &hand.taken);
    if (rc == 0 && q->events > 0 && t->out->n > before && q->count[LADE_STATE_READY] == 0)
        ls_sqlite_event(tx, q, &(struct lq_ev){.type = LADE_EVENT_DRAINED});
    return rc;
}

static int take_lanes(struct ls_sqlite_tx *tx, struct ls_sqlite_take *t)
{
    for (uint32_t i = 0; i < t->ask->lanes.n && t->out->n - t->before < t->max; i++) {
        struct ls_sqlite_queue *q;
        int rc = ls_sqlite_tx_queue(tx, t->ask->lanes.queue[i], &q);
        if (rc < 0)
            return rc;
        if (!q || q->paused)
            continue;
        size_t promoted = 0;
        rc = ls_sqlite_promote_due(tx, q, LQ_TAKE_MAX, &promoted);
        if (rc == 0)
            rc = take_lane(tx, t, q, i);
        if (rc < 0)
            return rc;
        q->ring = (size_t)LB_MIN((int64_t)q->ring, q->count[LADE_STATE_READY]);
    }
    return 0;
}

int ls_sqlite_take_run(struct ls_sqlite_tx *tx, struct ls_sqlite_take *t)
{
    int rc = ls_sqlite_worker_live(tx, t->ask->worker, &t->worker);
    if (rc == 0)
        rc = take_lanes(tx, t);
    if (rc != 0 || t->out->n > t->before)
        return rc;
    t->out->next_due_ms = 0;
    t->out->now_ms = tx->now_ms;
    for (uint32_t i = 0; i < t->ask->lanes.n; i++) {
        struct ls_sqlite_queue *q;
        rc = ls_sqlite_tx_queue(tx, t->ask->lanes.queue[i], &q);
        if (rc == 0 && q && !q->paused)
            rc = ls_sqlite_next_due(tx, q, &t->out->next_due_ms);
        if (rc == 0 && q && !q->paused && q->gated)
            rc = ls_sqlite_next_turn(tx, q, &t->out->next_due_ms);
        if (rc < 0)
            return rc;
    }
    return 0;
}
