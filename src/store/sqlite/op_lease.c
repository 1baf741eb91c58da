/*
 * op_lease.c - a worker's life: renew, leave, begin; and reclaim of what the dead hold
 *
 * Renew has a connection of its own and never queues behind the process's writers; what it waits for is SQLite's write
 * lock alone, for as long as the lease lasts, and the writers let it go first.
 */
#include "store/sqlite/lease.h"

#include <string.h>

#include "base/base.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fault.h"
#include "queue/beat.h"
#include "store/sqlite/events.h"
#include "store/sqlite/orders.h"
#include "store/sqlite/room.h"
#include "store/sqlite/sqlite_impl.h"
#include "store/sqlite/take.h"

int ls_sqlite_worker_live(struct ls_sqlite_tx *tx, const char *id, int64_t *num)
{
    if (tx->worker.id[0] && strcmp(tx->worker.id, id) == 0) {
        *num = tx->worker.num;
        return tx->worker.until_ms >= tx->now_ms ? 0 : LADE_STALE;
    }
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_WORKER_GET);
    if (st)
        ls_sqlite_bind_text(st, 1, lb_slice_str(id));
    int rc = ls_sqlite_tx_step(tx, st);
    if (rc <= 0)
        return rc < 0 ? rc : LADE_STALE;
    *num = sqlite3_column_int64(st, 0);
    int64_t until_ms = sqlite3_column_int64(st, 1);
    bool live = until_ms >= tx->now_ms && sqlite3_column_int64(st, 2) == 0;
    (void)sqlite3_reset(st);
    if (!live)
        return LADE_STALE;
    (void)snprintf(tx->worker.id, sizeof(tx->worker.id), "%s", id);
    tx->worker.num = *num;
    tx->worker.until_ms = until_ms;
    return 0;
}

int ls_sqlite_worker_is(struct ls_sqlite_tx *tx, int64_t num, const char *id)
{
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_WORKER_IS);
    if (st) {
        ls_sqlite_bind(st, 1, num);
        ls_sqlite_bind_text(st, 2, lb_slice_str(id));
    }
    int rc = ls_sqlite_tx_step(tx, st);
    if (rc == 1)
        (void)sqlite3_reset(st);
    return rc < 0 ? rc : rc == 1 ? 0 : LADE_STALE;
}

bool ls_sqlite_list_has(const char *list, const char *queue)
{
    size_t n = strlen(queue);
    for (const char *s = list; *s;) {
        size_t len = strcspn(s, ",");
        if (len == n && memcmp(s, queue, n) == 0)
            return true;
        s += len + (s[len] == ',');
    }
    return false;
}

/* A statement about one worker. */
static int change_worker(struct ls_sqlite_tx *tx, enum ls_sqlite_sql which, int64_t num)
{
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, which);
    if (st)
        ls_sqlite_bind(st, 1, num);
    tx->worker.id[0] = 0;
    return ls_sqlite_tx_do(tx, st);
}

/* The worker can no longer renew; it is forgotten when nothing is held by it any more. */
static int void_worker(struct ls_sqlite_tx *tx, int64_t num)
{
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_WORKER_HAS);
    if (st)
        ls_sqlite_bind(st, 1, num);
    int rc = ls_sqlite_tx_step(tx, st);
    if (rc == 1) {
        (void)sqlite3_reset(st);
        return change_worker(tx, LS_SQLITE_WORKER_VOID, num);
    }
    if (rc == 0)
        rc = change_worker(tx, LS_SQLITE_STOP_DEL_ALL, num);
    return rc < 0 ? rc : change_worker(tx, LS_SQLITE_WORKER_DEL, num);
}

/* stop requests ---------------------------------------------------------------------------------------------------- */

int ls_sqlite_stop_add(struct ls_sqlite_tx *tx, const struct ls_sqlite_queue *q,
                       const struct ls_sqlite_run *r, struct lb_slice id)
{
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_STOP_ADD);
    if (!st)
        return ls_sqlite_tx_fail(tx);
    ls_sqlite_bind(st, 1, r->worker);
    ls_sqlite_bind_text(st, 2, lb_slice_str(q->name));
    ls_sqlite_bind_text(st, 3, id);
    ls_sqlite_bind(st, 4, r->pos);
    return ls_sqlite_tx_do(tx, st);
}

int ls_sqlite_stop_del(struct ls_sqlite_tx *tx, const struct ls_sqlite_queue *q,
                       const struct ls_sqlite_run *r)
{
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_STOP_DEL_ONE);
    if (!st)
        return ls_sqlite_tx_fail(tx);
    ls_sqlite_bind(st, 1, r->worker);
    ls_sqlite_bind(st, 2, r->pos);
    ls_sqlite_bind_text(st, 3, lb_slice_str(q->name));
    return ls_sqlite_tx_do(tx, st);
}

static int collect_stops(struct ls_sqlite_tx *tx, int64_t worker, struct lq_stop *stop, size_t max,
                         size_t *n_stop)
{
    int64_t last = 0;
    size_t n = 0;
    int rc = 0;
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_STOP_GET);
    if (st) {
        ls_sqlite_bind(st, 1, worker);
        ls_sqlite_bind(st, 2, (int64_t)max);
    }
    while ((rc = ls_sqlite_tx_step(tx, st)) == 1) {
        last = sqlite3_column_int64(st, 0);
        struct lq_stop *to = &stop[n++];
        (void)snprintf(to->queue, sizeof(to->queue), "%s",
                       (const char *)sqlite3_column_text(st, 1));
        (void)snprintf(to->id, sizeof(to->id), "%s", (const char *)sqlite3_column_text(st, 2));
        to->fence = (uint64_t)sqlite3_column_int64(st, 3);
    }
    *n_stop = n;
    if (rc < 0 || n == 0)
        return rc;
    st = ls_sqlite_tx_stmt(tx, LS_SQLITE_STOP_DEL);
    if (st) {
        ls_sqlite_bind(st, 1, worker);
        ls_sqlite_bind(st, 2, last);
    }
    return ls_sqlite_tx_do(tx, st);
}

/* renew ------------------------------------------------------------------------------------------------------------ */

static int write_beat(struct ls_sqlite_tx *tx, const struct lq_beat *beat, const char *queues,
                      int64_t num)
{
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, num ? LS_SQLITE_WORKER_RENEW : LS_SQLITE_WORKER_ADD);
    if (!st)
        return ls_sqlite_tx_fail(tx);
    if (num)
        ls_sqlite_bind(st, 1, num);
    else
        ls_sqlite_bind_text(st, 1, lb_slice_str(beat->worker));
    ls_sqlite_bind_text(st, 2, lb_slice_str(beat->name ? beat->name : ""));
    ls_sqlite_bind_text(st, 3, lb_slice_str(queues));
    ls_sqlite_bind(st, 4, beat->concurrency);
    ls_sqlite_bind(st, 5, beat->started_ms);
    ls_sqlite_bind(st, 6, tx->now_ms);
    ls_sqlite_bind(st, 7, tx->now_ms + beat->lease_ms);
    return ls_sqlite_tx_do(tx, st);
}

/* 0 with the worker's number, 0 when it is to be added; or LADE_STALE. */
static int find_for_beat(struct ls_sqlite_tx *tx, const struct lq_beat *beat, int64_t *num)
{
    *num = 0;
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_WORKER_GET);
    if (st)
        ls_sqlite_bind_text(st, 1, lb_slice_str(beat->worker));
    int rc = ls_sqlite_tx_step(tx, st);
    if (rc < 0)
        return rc;
    if (rc == 0)
        return beat->first ? 0 : LADE_STALE;
    *num = sqlite3_column_int64(st, 0);
    bool gone = sqlite3_column_int64(st, 2) != 0;
    (void)sqlite3_reset(st);
    return gone && !beat->first ? LADE_STALE : 0;
}

static int look_ahead(struct ls_sqlite_tx *tx, const struct lq_beat *beat)
{
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_WORKER_DEATH);
    if (st)
        ls_sqlite_bind_text(st, 1, lb_slice_str(beat->worker));
    int rc = ls_sqlite_tx_step(tx, st);
    if (rc <= 0)
        return rc;
    /* Of all lanes: who serves others is not told apart here. */
    beat->ahead->death_in_ms = sqlite3_column_type(st, 0) == SQLITE_NULL
                                   ? LB_FOREVER
                                   : LB_MAX(sqlite3_column_int64(st, 0) - tx->now_ms, 0);
    (void)sqlite3_reset(st);
    int64_t due = 0;
    for (size_t i = 0; i < beat->lanes.n && rc >= 0; i++) {
        struct ls_sqlite_queue *q;
        rc = ls_sqlite_tx_queue(tx, beat->lanes.queue[i], &q);
        if (rc == 0 && q)
            rc = ls_sqlite_next_due(tx, q, &due);
        if (rc >= 0 && q) /* put by a transaction that rang nobody: foreign.h */
            q->ring = (size_t)q->count[LADE_STATE_READY];
    }
    beat->ahead->due_in_ms = due == 0 ? LB_FOREVER : LB_MAX(due - tx->now_ms, 0);
    if (rc >= 0)
        rc = ls_sqlite_schedules_any(tx, &beat->ahead->schedules);
    return rc < 0 ? rc : 0;
}

static int beat_once(struct ls_sqlite_tx *tx, const struct lq_beat *beat, const char *queues,
                     struct lq_stop *stop, size_t max, size_t *n_stop)
{
    int64_t num;
    int rc = ls_sqlite_tx_begin(tx);
    if (rc < 0)
        return rc;
    rc = find_for_beat(tx, beat, &num);
    if (rc == 0)
        rc = write_beat(tx, beat, queues, num);
    if (rc == 0 && num && max > 0)
        rc = collect_stops(tx, num, stop, max, n_stop);
    if (rc == 0 && num == 0 && (beat->report || beat->orders))
        rc = find_for_beat(tx, beat, &num); /* it has been added */
    if (rc == 0)
        rc = ls_sqlite_control_beat(tx, num, beat->report, beat->orders);
    if (rc == 0 && beat->ahead)
        rc = look_ahead(tx, beat);
    if (rc == 0)
        return ls_sqlite_tx_commit(tx, "sqlite.renew.commit");
    ls_sqlite_tx_rollback(tx);
    return rc;
}

int ls_sqlite_renew(struct lq_store *s, const struct lq_beat *beat, struct lq_stop *stop,
                    size_t max, size_t *n_stop, lade_err *err)
{
    struct ls_sqlite *ss = ls_sqlite_of(s);
    struct lb_buf queues;
    size_t n = 0;
    lb_buf_init(&queues);
    for (size_t i = 0; i < beat->lanes.n; i++) {
        lb_buf_add_str(&queues, i ? "," : "");
        lb_buf_add_str(&queues, beat->lanes.queue[i]);
    }
    lb_buf_add_byte(&queues, 0);
    if (queues.failed) {
        lb_buf_fini(&queues);
        return lb_fail_nomem(err, "renew");
    }
    ls_sqlite_writer_beat_begin(&ss->writer);
    lr_mutex_lock(&ss->beat_lock);
    struct ls_sqlite_tx tx;
    ls_sqlite_tx_init(&tx, ss, &ss->beat);
    tx.op = "renew";
    tx.err = err;
    /* As long as there is a point in it: after the lease it would be too late. */
    ss->beat.busy_deadline = lb_deadline_in(LB_MIN(ss->busy_ms, beat->lease_ms) * LADE_MILLISECOND);
    int rc = beat_once(&tx, beat, (const char *)queues.p, stop, max, &n);
    if (rc == -LADE_ENOSPACE) { /* a full disk is no reason to lose what is being worked on */
        (void)ls_sqlite_room_give(ss->path);
        rc = beat_once(&tx, beat, (const char *)queues.p, stop, max, &n);
    }
    if (rc == 0)
        ls_sqlite_tx_ring(&tx);
    ls_sqlite_tx_fini(&tx);
    lr_mutex_unlock(&ss->beat_lock);
    ls_sqlite_writer_beat_end(&ss->writer);
    lb_buf_fini(&queues);
    if (rc >= 0)
        *n_stop = n;
    return rc;
}

/* leave ------------------------------------------------------------------------------------------------------------ */

static int run_leave(struct ls_sqlite_tx *tx, void *arg)
{
    int64_t num = 0;
    int rc = ls_sqlite_worker_live(tx, *(const char **)arg, &num);
    if (rc < 0)
        return rc;
    return num ? void_worker(tx, num) : 0; /* one that is dead may leave too */
}

int ls_sqlite_leave(struct lq_store *s, const char *worker, struct lq_lanes lanes, lade_err *err)
{
    (void)lanes;
    struct ls_sqlite *ss = ls_sqlite_of(s);
    struct ls_sqlite_op op = {.name = "leave",
                              .point = "sqlite.leave.commit",
                              .run = run_leave,
                              .arg = &worker,
                              .jobs = 1,
                              .frees = true};
    ls_sqlite_waiters_leave(&ss->waiters, worker);
    return ls_sqlite_write(ss, &op, err);
}

/* begin ------------------------------------------------------------------------------------------------------------ */

struct begin {
    const char *worker;
    struct lq_lease *it;
    size_t n;
};

int ls_sqlite_job_has_id(struct ls_sqlite_tx *tx, int64_t seq, struct lb_slice id)
{
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_JOB_IDS);
    if (st) {
        ls_sqlite_bind(st, 1, seq);
        ls_sqlite_bind(st, 2, seq);
    }
    int rc = ls_sqlite_tx_step(tx, st);
    if (rc <= 0)
        return rc < 0 ? rc : LADE_STALE;
    bool same = lb_slice_eq(ls_sqlite_column(st, 0), id);
    (void)sqlite3_reset(st);
    return same ? 0 : LADE_STALE;
}

static int begin_one(struct ls_sqlite_tx *tx, const char *worker, struct lq_lease *it)
{
    struct ls_sqlite_queue *q;
    struct ls_sqlite_run r;
    it->outcome = LADE_STALE;
    int rc = ls_sqlite_tx_queue(tx, it->queue, &q);
    if (rc < 0 || !q)
        return rc;
    rc = ls_sqlite_run_of_fence(tx, q, it->fence, &r);
    if (rc != 0)
        return rc < 0 ? rc : 0;
    int64_t off = (int64_t)it->fence - r.pos;
    rc = ls_sqlite_job_has_id(tx, r.job + off, it->id);
    if (rc == 0)
        rc = ls_sqlite_worker_is(tx, r.worker, worker);
    if (rc != 0)
        return rc < 0 ? rc : 0;
    it->outcome = 0;
    if (r.flags & LS_SQLITE_BEGUN)
        return 0;
    struct ls_sqlite_run part = ls_sqlite_run_part(&r, off, 1);
    part.flags |= LS_SQLITE_BEGUN;
    rc = ls_sqlite_run_cut(tx, q, &r, off, 1);
    return rc < 0 ? rc : ls_sqlite_run_add(tx, q, &part);
}

static int run_begin(struct ls_sqlite_tx *tx, void *arg)
{
    struct begin *b = arg;
    int rc = 0;
    for (size_t i = 0; i < b->n && rc == 0; i++)
        rc = begin_one(tx, b->worker, &b->it[i]);
    return rc;
}

int ls_sqlite_begin(struct lq_store *s, const char *worker, struct lq_lease *lease, size_t n,
                    lade_err *err)
{
    struct begin b = {.worker = worker, .it = lease, .n = n};
    struct ls_sqlite_op op = {
        .name = "begin", .point = "sqlite.begin.commit", .run = run_begin, .arg = &b, .jobs = n};
    return n == 0 ? 0 : ls_sqlite_write(ls_sqlite_of(s), &op, err);
}

/* reclaim ---------------------------------------------------------------------------------------------------------- */

struct reclaim {
    struct ls_sqlite_take take;
    struct ls_sqlite_queue *lane[LQ_LANES_MAX]; /* NULL = never used */
};

struct dead {
    int64_t num;
    struct lq_leased as; /* what its jobs are handed out as */
    bool serves;         /* one of the lanes */
};

/* 0, or LADE_EMPTY when there is no dead worker with a number above d->num. */
static int find_dead(struct ls_sqlite_tx *tx, const struct reclaim *w, struct dead *d)
{
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_WORKER_DEAD);
    if (st) {
        ls_sqlite_bind(st, 1, tx->now_ms);
        ls_sqlite_bind(st, 2, d->num);
    }
    int rc = ls_sqlite_tx_step(tx, st);
    if (rc <= 0)
        return rc < 0 ? rc : LADE_EMPTY;
    d->num = sqlite3_column_int64(st, 0);
    (void)snprintf(d->as.former, sizeof(d->as.former), "%s",
                   (const char *)sqlite3_column_text(st, 1));
    const char *queues = (const char *)sqlite3_column_text(st, 2);
    d->serves = false;
    for (size_t i = 0; i < w->take.ask->lanes.n && queues && !d->serves; i++)
        d->serves = ls_sqlite_list_has(queues, w->take.ask->lanes.queue[i]);
    (void)sqlite3_reset(st);
    return 0;
}

/* The runs of a worker, as many as have at least `max` jobs in the lanes; in the transaction's arena. */
static int read_runs(struct ls_sqlite_tx *tx, const struct reclaim *w, int64_t worker, size_t max,
                     struct ls_sqlite_run **out, size_t *n)
{
    size_t jobs = 0;
    int rc = 0;
    *out = lb_arena_alloc(&tx->arena, max * sizeof(**out)); /* each has at least one */
    if (!*out)
        return lb_fail_nomem(tx->err, tx->op);
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_RUN_OF_WORKER);
    if (st)
        ls_sqlite_bind(st, 1, worker);
    while ((rc = ls_sqlite_tx_step(tx, st)) == 1) {
        struct ls_sqlite_run *r = &(*out)[*n];
        ls_sqlite_run_read(st, r);
        bool ours = false;
        for (size_t i = 0; i < w->take.ask->lanes.n && !ours; i++)
            ours = w->lane[i] && w->lane[i]->num == r->queue;
        if (!ours)
            continue;
        ++*n;
        jobs += (size_t)r->n;
        if (jobs >= max) {
            (void)sqlite3_reset(st);
            return 0;
        }
    }
    return rc;
}

/* A mark on a job goes with it, so the new owner is told too. */
static int pass_mark(struct ls_sqlite_tx *tx, const struct ls_sqlite_queue *q,
                     const struct ls_sqlite_run *before, const struct ls_sqlite_run *now,
                     struct lb_mut id)
{
    if (!(before->flags & (LS_SQLITE_KILL | LS_SQLITE_CANCEL)))
        return 0;
    assert(before->n == 1);
    int rc = ls_sqlite_stop_del(tx, q, before);
    return rc < 0 ? rc : ls_sqlite_stop_add(tx, q, now, lb_slice_of(id));
}

static int reclaim_run(struct ls_sqlite_tx *tx, struct reclaim *w, const struct dead *d,
                       const struct ls_sqlite_run *r)
{
    size_t left = w->take.max - (w->take.out->n - w->take.before);
    uint32_t lane = 0;
    while (!w->lane[lane] || w->lane[lane]->num != r->queue)
        lane++;
    struct ls_sqlite_queue *q = w->lane[lane];
    struct ls_sqlite_run part = ls_sqlite_run_part(r, 0, LB_MIN(r->n, (int64_t)left));
    struct lq_leased as = d->as;
    as.begun = (r->flags & LS_SQLITE_BEGUN) != 0;
    int rc = ls_sqlite_run_cut(tx, q, r, 0, part.n);
    ls_sqlite_run_to_active(tx, q, &part, w->take.worker);
    part.flags = r->flags & (LS_SQLITE_KILL | LS_SQLITE_CANCEL);
    if (rc == 0)
        rc = ls_sqlite_run_add(tx, q, &part);
    size_t first = w->take.out->n;
    if (rc == 0)
        rc = ls_sqlite_take_read(tx, &w->take, &part, lane, &as);
    for (size_t i = first; q->events > 0 && rc == 0 && i < w->take.out->n; i++)
        ls_sqlite_event_taken(tx, q, &w->take.out->job[i], LADE_EVENT_STALLED);
    if (rc == 0)
        rc = pass_mark(tx, q, r, &part, w->take.out->job[w->take.out->n - 1].id);
    LB_FAULT("sqlite.reclaim.run");
    return rc;
}

static int reclaim_dead(struct ls_sqlite_tx *tx, struct reclaim *w, const struct dead *d)
{
    struct ls_sqlite_run *r = NULL;
    size_t n = 0;
    int rc = read_runs(tx, w, d->num, w->take.max - (w->take.out->n - w->take.before), &r, &n);
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = reclaim_run(tx, w, d, &r[i]);
    return rc < 0 ? rc : void_worker(tx, d->num);
}

static int run_reclaim(struct ls_sqlite_tx *tx, void *arg)
{
    struct reclaim *w = arg;
    const struct lq_take *ask = w->take.ask;
    w->take.out->n = w->take.before;
    int rc = ls_sqlite_worker_live(tx, ask->worker, &w->take.worker);
    for (size_t i = 0; i < ask->lanes.n && rc == 0; i++)
        rc = ls_sqlite_tx_queue(tx, ask->lanes.queue[i], &w->lane[i]);
    struct dead d = {0};
    while (rc == 0 && w->take.out->n - w->take.before < w->take.max) {
        rc = find_dead(tx, w, &d);
        if (rc == 0 && d.serves)
            rc = reclaim_dead(tx, w, &d);
    }
    if (rc < 0 || rc == LADE_STALE)
        return rc;
    return w->take.out->n > w->take.before ? 0 : LADE_EMPTY;
}

int ls_sqlite_reclaim(struct lq_store *s, const struct lq_take *take, struct lq_leased_vec *out,
                      lade_err *err)
{
    struct reclaim w = {.take = {.ask = take,
                                 .out = out,
                                 .before = out->n,
                                 .max = LB_MIN(take->max, (size_t)LQ_TAKE_MAX)}};
    struct ls_sqlite_op op = {.name = "reclaim",
                              .point = "sqlite.reclaim.commit",
                              .run = run_reclaim,
                              .arg = &w,
                              .jobs = w.take.max};
    int rc = ls_sqlite_write(ls_sqlite_of(s), &op, err);
    if (rc < 0)
        out->n = w.take.before;
    return rc;
}

/* wait ------------------------------------------------------------------------------------------------------------- */

int ls_sqlite_wait(struct lq_store *s, const char *worker, struct lq_lanes lanes, int64_t deadline,
                   lade_err *err)
{
    (void)lanes; /* those of the take that registered it */
    return ls_sqlite_waiters_wait(&ls_sqlite_of(s)->waiters, worker, deadline, err);
}

void ls_sqlite_wake(struct lq_store *s, const char *worker)
{
    ls_sqlite_waiters_wake(&ls_sqlite_of(s)->waiters, worker);
}
