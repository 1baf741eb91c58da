/*
 * op_settle.c - active -> completed | retrying | scheduled | ready | dead | cancelled | gone, then ready -> active
 *
 * Items are settled in the order given. Neighbours that have consecutive fences and the same end are settled as one
 * stretch: of a batch taken together and settled together the whole is a few rows.
 */
#include <string.h>

#include "base/base.h"
#include "base/fault.h"
#include "store/sqlite/ahead.h"
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
    struct ls_sqlite_ahead ahead;
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

static bool may_go_on(const struct lq_settle *it)
{
    return it->goes_on && it->to == LQ_TO_COMPLETED && !it->failed && it->history.n == 0 &&
           it->result.n <= LQ_GOES_ON_RESULT && (it->result_ttl_ms == 0 || it->result.n == 0);
}

/*
 * The step that the end of the first item has put is its owner's. When the next items, of n, end it and those behind it, they are
 * settled here: *more of them. `before`: flows.n when the first had not ended.
 */
static int go_on(struct settle *s, const struct ls_sqlite_queue *q, struct lq_settle *it, size_t n,
                 size_t before, size_t *more)
{
    struct ls_sqlite_flows *f = &s->flows;
    size_t i = 0;
    int rc = 0;
    while (rc == 0 && may_go_on(&it[i])) {
        struct lq_put *put;
        rc = ls_sqlite_flow_launched(f, it[i].id, before, &put);
        if (rc < 0 || !put)
            break;
        if (i + 1 == n || !ls_sqlite_ahead_through(&s->ahead, q, put, &it[i], &it[i + 1])) {
            ls_sqlite_ahead_hold(&s->ahead, put, &it[i]);
            break;
        }
        it[i++].went_on = true;
        it[i].outcome = 0;
        it[i].went_on = false;
        ls_sqlite_ahead_add(&s->ahead, put, &it[i]);
        before = f->n;
        rc = ls_sqlite_flow_ended(f, it[i].id, LADE_STEP_COMPLETED, it[i].result);
    }
    *more = i;
    return rc;
}

/* Tells the flows of k settled jobs, of n, of those that have one. *done: how many are settled then. */
static int tell_flows(struct settle *s, struct ls_sqlite_queue *q, struct lq_settle *it, size_t n,
                      enum lq_to to, int64_t worker, size_t *done)
{
    struct ls_sqlite_flows *f = &s->flows;
    enum lade_flow_step_state how = lq_node_end_of(to);
    size_t k = *done, more = 0;
    int rc = 0;
    for (size_t i = 0; i < k && rc == 0 && how != LADE_STEP_ENQUEUED; i++) {
        size_t before = f->n;
        if (!lq_flow_has(it[i].id))
            continue;
        rc = ls_sqlite_flow_ended(f, it[i].id, how, it[i].result);
        if (rc == 0 && it[i].goes_on)
            rc = go_on(s, q, &it[i], i + 1 == k ? n - i : 1, before, &more);
    }
    *done += more;
    return rc < 0 ? rc : ls_sqlite_ahead_lease(&s->ahead, q, worker);
}

/* The first *done of n items, which are of r; *done grows by those that end with them. */
static int settle_stretch(struct settle *s, struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q,
                          const struct ls_sqlite_run *r, struct lq_settle *it, size_t n,
                          size_t *done)
{
    size_t k = *done;
    int64_t off = (int64_t)it->fence - r->pos;
    struct ls_sqlite_run part = ls_sqlite_run_part(r, off, (int64_t)k);
    int64_t flags = part.flags, worker = part.worker;
    int rc = ls_sqlite_run_cut(tx, q, r, off, (int64_t)k);
    for (size_t i = 0; i < k && rc == 0; i++) {
        it[i].outcome = 0;
        it[i].went_on = false;
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
    return rc < 0 ? rc : tell_flows(s, q, it, n, ended.to, worker, done);
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
    it->went_on = false;
    rc = q ? ls_sqlite_run_of_fence(tx, q, it->fence, &r) : LADE_NOT_FOUND;
    if (rc != 0)
        return rc < 0 ? rc : 0;
    size_t k = measure(it, n, &r);
    rc = verify(tx, it, k, r.job + ((int64_t)it->fence - r.pos), &k);
    if (rc < 0 || k == 0)
        return rc;
    *done = k;
    return settle_stretch(s, tx, q, &r, it, n, done);
}

static int run(struct ls_sqlite_tx *tx, void *arg)
{
    struct settle *s = arg;
    int rc = 0;
    ls_sqlite_flows_init(&s->flows, tx);
    rc = ls_sqlite_ahead_init(&s->ahead, tx, s->it, s->n);
    for (size_t i = 0, k = 1; i < s->n && rc == 0; i += k) {
        rc = settle_some(s, tx, &s->it[i], s->n - i, &k);
        LB_FAULT("sqlite.settle.item");
    }
    if (rc == 0)
        rc = ls_sqlite_ahead_flush(&s->ahead);
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
