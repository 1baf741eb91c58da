/*
 * op_settle.c - active -> completed | retrying | scheduled | ready | dead | cancelled | gone, then ready -> active
 *
 * Items are settled in the order given. Neighbours that have consecutive fences and the same end are settled as one
 * stretch: of a batch taken together and settled together the whole is a few rows.
 */
#include <string.h>

#include "base/base.h"
#include "base/fault.h"
#include "store/sqlite/apart.h"
#include "store/sqlite/dead.h"
#include "store/sqlite/events.h"
#include "store/sqlite/flow.h"
#include "store/sqlite/hall.h"
#include "store/sqlite/keys.h"
#include "store/sqlite/lease.h"
#include "store/sqlite/sheet.h"
#include "store/sqlite/sqlite_impl.h"
#include "store/sqlite/take.h"

struct settle {
    struct lq_settle *it;
    size_t n;
    struct ls_sqlite_take take; /* ask NULL: none */
    struct ls_sqlite_flows flows;
};

static bool waits_again(enum lq_to to)
{
    return to == LQ_TO_RETRYING || to == LQ_TO_SCHEDULED || to == LQ_TO_READY ||
           to == LQ_TO_THROTTLED;
}

/* How many items from the first on can be settled as one stretch of r, by what they ask; at least 1. */
static size_t measure(const struct lq_settle *it, size_t n, const struct ls_sqlite_run *r)
{
    size_t room = (size_t)(r->pos + r->n - (int64_t)it->fence);
    size_t k = 1;
    if (r->key == LS_SQLITE_COMPANY && waits_again(it->to))
        return 1; /* each gets its key */
    while (it->to != LQ_TO_READY && it->to != LQ_TO_THROTTLED && k < n && k < room) {
        const struct lq_settle *b = &it[k];
        if (b->fence != it->fence + k || b->to != it->to || b->delay_ms != it->delay_ms ||
            b->reason != it->reason || (b->queue != it->queue && strcmp(b->queue, it->queue) != 0))
            break;
        k++;
    }
    return k;
}

/* Of k items, how many from the first on have the ids of the jobs from seq on. */
static int verify(struct ls_sqlite_tx *tx, const struct lq_settle *it, size_t k, int64_t seq,
                  size_t *same)
{
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_JOB_IDS);
    if (st) {
        ls_sqlite_bind(st, 1, seq);
        ls_sqlite_bind(st, 2, seq + (int64_t)k - 1);
    }
    int rc;
    *same = 0;
    while ((rc = ls_sqlite_tx_step(tx, st)) == 1) {
        if (!lb_slice_eq(ls_sqlite_column(st, 0), it[*same].id)) {
            (void)sqlite3_reset(st);
            return 0;
        }
        ++*same;
    }
    return rc;
}

static int write_history(struct ls_sqlite_tx *tx, int64_t seq, struct lb_slice history)
{
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_JOB_SET_HISTORY);
    if (!st)
        return ls_sqlite_tx_fail(tx);
    ls_sqlite_bind(st, 1, seq);
    ls_sqlite_bind_blob(st, 2, history);
    return ls_sqlite_tx_do(tx, st);
}

/* Where the jobs of r go, when no operator wants otherwise. */
static int send(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q, struct ls_sqlite_run *r,
                const struct lq_settle *it)
{
    int64_t due_ms;
    if (__builtin_add_overflow(tx->now_ms, LB_MAX(it->delay_ms, 0), &due_ms))
        due_ms = INT64_MAX;
    int rc = waits_again(it->to) ? ls_sqlite_hall_name(tx, q, r) : 0;
    if (rc < 0)
        return rc;
    switch (it->to) {
    case LQ_TO_COMPLETED:
        rc = ls_sqlite_run_to_ended(tx, q, r, LADE_STATE_COMPLETED, LQ_REASON_NONE);
        break;
    case LQ_TO_RETRYING:
        ls_sqlite_run_to_due(tx, q, r, LADE_STATE_RETRYING, due_ms);
        r->flags = r->key ? LS_SQLITE_AWAY : 0;
        break;
    case LQ_TO_SCHEDULED:
        ls_sqlite_run_to_due(tx, q, r, LADE_STATE_SCHEDULED, due_ms);
        r->flags = r->key ? LS_SQLITE_AWAY : 0;
        break;
    case LQ_TO_READY:
        rc = ls_sqlite_run_to_front(tx, q, r);
        break;
    case LQ_TO_THROTTLED:
        rc = ls_sqlite_run_to_front(tx, q, r);
        if (rc == 0)
            rc = ls_sqlite_throttle(tx, q, r->key, due_ms);
        break;
    case LQ_TO_DEAD:
        rc = ls_sqlite_run_to_ended(tx, q, r, LADE_STATE_DEAD, it->reason);
        break;
    case LQ_TO_CANCELLED:
        rc = ls_sqlite_run_to_ended(tx, q, r, LADE_STATE_CANCELLED, LQ_REASON_NONE);
        break;
    case LQ_TO_GONE:
        return ls_sqlite_jobs_del(tx, r->job, r->n);
    }
    return rc < 0 ? rc : ls_sqlite_run_add(tx, q, r);
}

/* Tells the flows of k settled jobs, of those that have one. */
static int tell_flows(struct ls_sqlite_flows *f, const struct lq_settle *it, size_t k,
                      enum lq_to to)
{
    enum lade_flow_step_state how = lq_node_end_of(to);
    int rc = 0;
    for (size_t i = 0; i < k && rc == 0 && how != LADE_STEP_ENQUEUED; i++) {
        if (lq_flow_has(it[i].id))
            rc = ls_sqlite_flow_ended(f, it[i].id, how, it[i].result);
    }
    return rc;
}

static int settle_stretch(struct settle *s, struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q,
                          const struct ls_sqlite_run *r, struct lq_settle *it, size_t k)
{
    int64_t off = (int64_t)it->fence - r->pos;
    struct ls_sqlite_run part = ls_sqlite_run_part(r, off, (int64_t)k);
    int64_t flags = part.flags;
    int rc = ls_sqlite_run_cut(tx, q, r, off, (int64_t)k);
    for (size_t i = 0; i < k && rc == 0; i++) {
        it[i].outcome = 0;
        q->total[LS_SQLITE_FAILED] += it[i].failed;
        if (it[i].history.n > 0)
            rc = write_history(tx, part.job + (int64_t)i, it[i].history);
    }
    if (rc == 0 && it->to == LQ_TO_COMPLETED)
        rc = ls_sqlite_results_add(tx, it, k, part.job);
    if (rc == 0 && it->to == LQ_TO_COMPLETED)
        rc = ls_sqlite_apart_add(tx, q, it, k);
    LB_FAULT("sqlite.settle.cut");
    if (rc < 0)
        return rc;
    struct lq_settle ended = *it;
    if (flags & (LS_SQLITE_KILL | LS_SQLITE_CANCEL)) {
        rc = ls_sqlite_stop_del(tx, q, &part);
        if (it->to != LQ_TO_COMPLETED) {
            ended.to = flags & LS_SQLITE_KILL ? LQ_TO_DEAD : LQ_TO_CANCELLED;
            ended.reason = LQ_REASON_KILLED;
            ended.death = NULL;
        }
    }
    bool killed = ended.reason == LQ_REASON_KILLED;
    for (size_t i = 0; i < k && rc == 0 && ended.to == LQ_TO_DEAD; i++)
        rc = ls_sqlite_death_add(tx, q, part.job + (int64_t)i, ended.reason,
                                 killed ? NULL : it[i].death);
    if (rc == 0 && q->events > 0)
        ls_sqlite_event_settled(tx, q, it, k, &ended);
    tx->quiet++;
    if (rc == 0)
        rc = send(tx, q, &part, &ended);
    tx->quiet--;
    return rc < 0 ? rc : tell_flows(&s->flows, it, k, ended.to);
}

/* Settles the first item and those that go with it: *done items. */
static int settle_some(struct settle *s, struct ls_sqlite_tx *tx, struct lq_settle *it, size_t n,
                       size_t *done)
{
    struct ls_sqlite_queue *q;
    struct ls_sqlite_run r;
    int rc = ls_sqlite_tx_queue(tx, it->queue, &q);
    if (rc < 0)
        return rc;
    *done = 1;
    it->outcome = LADE_STALE;
    rc = q ? ls_sqlite_run_of_fence(tx, q, it->fence, &r) : LADE_NOT_FOUND;
    if (rc != 0)
        return rc < 0 ? rc : 0;
    size_t k = measure(it, n, &r);
    rc = verify(tx, it, k, r.job + ((int64_t)it->fence - r.pos), &k);
    if (rc < 0 || k == 0)
        return rc;
    *done = k;
    return settle_stretch(s, tx, q, &r, it, k);
}

static int run(struct ls_sqlite_tx *tx, void *arg)
{
    struct settle *s = arg;
    int rc = 0;
    ls_sqlite_flows_init(&s->flows, tx);
    for (size_t i = 0, k = 1; i < s->n && rc == 0; i += k) {
        rc = settle_some(s, tx, &s->it[i], s->n - i, &k);
        LB_FAULT("sqlite.settle.item");
    }
    if (rc == 0)
        rc = ls_sqlite_flows_flush(&s->flows);
    for (struct ls_sqlite_queue *q = tx->list; q && rc == 0 && s->n > 0; q = q->link)
        rc = ls_sqlite_jobs_retain(tx, q, (int64_t)s->n);
    if (rc < 0 || !s->take.ask)
        return rc;
    s->take.out->n = s->take.before;
    return ls_sqlite_take_run(tx, &s->take);
}

int ls_sqlite_settle_run(struct ls_sqlite_tx *tx, struct lq_settle *it, size_t n)
{
    struct settle s = {.it = it, .n = n};
    return run(tx, &s);
}

int ls_sqlite_settle_take(struct lq_store *s, struct lq_settle *it, size_t n,
                          const struct lq_take *take, struct lq_leased_vec *out, lade_err *err)
{
    struct ls_sqlite *ss = ls_sqlite_of(s);
    struct settle w = {.it = it, .n = n};
    struct ls_sqlite_op op = {.name = "settle",
                              .point = "sqlite.settle.commit",
                              .run = run,
                              .arg = &w,
                              .jobs = n,
                              .frees = true};
    if (take) {
        w.take = (struct ls_sqlite_take){.ask = take,
                                         .out = out,
                                         .before = out->n,
                                         .max = LB_MIN(take->max, (size_t)LQ_TAKE_MAX)};
        op.jobs += w.take.max;
        if (n == 0) {
            op.name = "take";
            op.point = "sqlite.take.commit";
        }
        /* Idle before the look: whoever puts after the look finds us. */
        if (take->register_idle)
            ls_sqlite_waiters_idle(&ss->waiters, take->worker, take->lanes);
    }
    int rc = ls_sqlite_write(ss, &op, err);
    if (!take)
        return rc;
    bool empty = rc >= 0 && out->n == w.take.before;
    if (rc < 0)
        out->n = w.take.before;
    if (take->register_idle && empty)
        ls_sqlite_waiters_set_due(&ss->waiters, take->worker, out->next_due_ms);
    else
        ls_sqlite_waiters_busy(&ss->waiters, take->worker);
    return rc;
}
