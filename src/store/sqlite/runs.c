#include "store/sqlite/runs.h"

#include <string.h>

#include "base/base.h"
#include "base/err.h"
#include "base/fault.h"
#include "store/sqlite/dead.h"
#include "store/sqlite/events.h"
#include "store/sqlite/hall.h"
#include "store/sqlite/keys.h"
#include "store/sqlite/sheet.h"
#include "store/sqlite/sqlite_impl.h"

void ls_sqlite_run_read(sqlite3_stmt *st, struct ls_sqlite_run *r)
{
    r->job = sqlite3_column_int64(st, 0);
    r->n = sqlite3_column_int64(st, 1);
    r->queue = sqlite3_column_int64(st, 2);
    r->state = sqlite3_column_int64(st, 3);
    r->rank = sqlite3_column_int64(st, 4);
    r->pos = sqlite3_column_int64(st, 5);
    r->level = sqlite3_column_int64(st, 6);
    r->at_ms = sqlite3_column_int64(st, 7);
    r->worker = sqlite3_column_int64(st, 8);
    r->flags = sqlite3_column_int64(st, 9);
    r->reason = sqlite3_column_int64(st, 10);
    r->key = sqlite3_column_int64(st, 11);
}

/* What is known of the file without a look: the runs read or written last (tx.h). NULL: not known. */
static struct ls_sqlite_run *find_kept(struct ls_sqlite_tx *tx, int64_t job)
{
    for (size_t i = 0; i < LS_SQLITE_RUNS_KEPT; i++) {
        if (tx->run[i].job == job && tx->run[i].n > 0)
            return &tx->run[i];
    }
    return NULL;
}

static void keep(struct ls_sqlite_tx *tx, const struct ls_sqlite_run *r)
{
    struct ls_sqlite_run *at = find_kept(tx, r->job);
    for (size_t i = 0; i < LS_SQLITE_RUNS_KEPT && !at; i++)
        at = tx->run[i].n == 0 ? &tx->run[i] : NULL;
    if (!at)
        at = &tx->run[tx->run_at++ % LS_SQLITE_RUNS_KEPT];
    *at = *r;
}

/* Reads the one run of a statement. */
static int read_one(struct ls_sqlite_tx *tx, sqlite3_stmt *st, struct ls_sqlite_run *r)
{
    int rc = ls_sqlite_tx_step(tx, st);
    if (rc <= 0)
        return rc < 0 ? rc : LADE_NOT_FOUND;
    ls_sqlite_run_read(st, r);
    (void)sqlite3_reset(st);
    keep(tx, r);
    return 0;
}

int ls_sqlite_run_of(struct ls_sqlite_tx *tx, int64_t seq, struct ls_sqlite_run *r)
{
    for (size_t i = 0; i < LS_SQLITE_RUNS_KEPT; i++) {
        const struct ls_sqlite_run *k = &tx->run[i];
        if (k->job <= seq && seq < k->job + k->n) {
            *r = *k;
            return 0;
        }
    }
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_RUN_AT);
    if (st)
        ls_sqlite_bind(st, 1, seq);
    int rc = read_one(tx, st, r);
    return rc == 0 && seq >= r->job + r->n ? LADE_NOT_FOUND : rc;
}

int ls_sqlite_run_of_fence(struct ls_sqlite_tx *tx, const struct ls_sqlite_queue *q, uint64_t fence,
                           struct ls_sqlite_run *r)
{
    if (fence > INT64_MAX || q->count[LADE_STATE_ACTIVE] == 0)
        return LADE_NOT_FOUND;
    for (size_t i = 0; i < LS_SQLITE_RUNS_KEPT;
         i++) { /* no two active jobs of a queue share a fence */
        const struct ls_sqlite_run *k = &tx->run[i];
        if (k->queue == q->num && k->state == LADE_STATE_ACTIVE && k->pos <= (int64_t)fence &&
            (int64_t)fence < k->pos + k->n) {
            *r = *k;
            return 0;
        }
    }
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_RUN_BEFORE);
    if (st) {
        ls_sqlite_bind(st, 1, q->num);
        ls_sqlite_bind(st, 2, LADE_STATE_ACTIVE);
        ls_sqlite_bind(st, 3, 0);
        ls_sqlite_bind(st, 4, (int64_t)fence);
    }
    int rc = read_one(tx, st, r);
    return rc == 0 && (int64_t)fence >= r->pos + r->n ? LADE_NOT_FOUND : rc;
}

int ls_sqlite_run_first(struct ls_sqlite_tx *tx, const struct ls_sqlite_queue *q,
                        enum lade_state state, struct ls_sqlite_run *r)
{
    if (q->count[state] == 0)
        return LADE_NOT_FOUND;
    for (size_t i = 0; i < LS_SQLITE_RUNS_KEPT; i++) { /* it has them all: it is the only one */
        const struct ls_sqlite_run *k = &tx->run[i];
        if (k->n > 0 && k->n == q->count[state] && k->queue == q->num &&
            k->state == (int64_t)state) {
            *r = *k;
            return 0;
        }
    }
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_RUN_FIRST);
    if (st) {
        ls_sqlite_bind(st, 1, q->num);
        ls_sqlite_bind(st, 2, state);
    }
    return read_one(tx, st, r);
}

static int insert(struct ls_sqlite_tx *tx, const struct ls_sqlite_run *r)
{
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_RUN_ADD);
    if (!st)
        return ls_sqlite_tx_fail(tx);
    ls_sqlite_bind(st, 1, r->job);
    ls_sqlite_bind(st, 2, r->n);
    ls_sqlite_bind(st, 3, r->queue);
    ls_sqlite_bind(st, 4, r->state);
    ls_sqlite_bind(st, 5, r->rank);
    ls_sqlite_bind(st, 6, r->pos);
    ls_sqlite_bind(st, 7, r->level);
    ls_sqlite_bind(st, 8, r->at_ms);
    if (r->worker)
        ls_sqlite_bind(st, 9, r->worker);
    else
        (void)sqlite3_bind_null(st, 9);
    ls_sqlite_bind(st, 10, r->flags);
    ls_sqlite_bind(st, 11, r->reason);
    ls_sqlite_bind(st, 12, r->key);
    keep(tx, r);
    return ls_sqlite_tx_do(tx, st); /* should it fail, all that is kept is forgotten */
}

static void change_kept(struct ls_sqlite_run *k, enum ls_sqlite_sql which, int64_t v)
{
    if (!k)
        return;
    if (which == LS_SQLITE_RUN_SHIFT) {
        k->job += v;
        k->pos += v;
    }
    k->n = which == LS_SQLITE_RUN_DEL ? 0 : which == LS_SQLITE_RUN_SHIFT ? k->n - v : v;
}

/* A statement with the run's key and one number. */
static int change(struct ls_sqlite_tx *tx, enum ls_sqlite_sql which, int64_t job, int64_t v)
{
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, which);
    if (!st)
        return ls_sqlite_tx_fail(tx);
    ls_sqlite_bind(st, 1, job);
    if (which != LS_SQLITE_RUN_DEL)
        ls_sqlite_bind(st, 2, v);
    change_kept(find_kept(tx, job), which, v);
    return ls_sqlite_tx_do(tx, st);
}

/* n jobs of the run came into its state, or left it. */
static int count_keys(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q,
                      const struct ls_sqlite_run *r, int64_t n)
{
    if (r->key == 0)
        return 0;
    if (r->key != LS_SQLITE_COMPANY)
        return ls_sqlite_key_count(tx, q, r, n);
    ls_sqlite_hall_count(q, r->state, n);
    return 0;
}

int ls_sqlite_run_cut(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q,
                      const struct ls_sqlite_run *r, int64_t off, int64_t k)
{
    assert(q->num == r->queue && off >= 0 && k > 0 && off + k <= r->n);
    q->count[r->state] -= k;
    q->dirty = true;
    if (lq_bound_is_set(&q->bound))
        q->ring_watchers = true; /* there may be room */
    if (q->bound.max_bytes > 0) {
        int weighed = ls_sqlite_bytes_count(tx, q, ls_sqlite_run_part(r, off, k), -1);
        if (weighed < 0)
            return weighed;
    }
    if (r->state == LADE_STATE_DEAD) {
        int left = ls_sqlite_deaths_del(tx, r->job + off, k);
        if (left < 0)
            return left;
    }
    if (q->gated && r->state == LADE_STATE_ACTIVE)
        q->freed += k;
    int rc = count_keys(tx, q, r, -k);
    if (rc < 0)
        return rc;
    if (k == r->n)
        return change(tx, LS_SQLITE_RUN_DEL, r->job, 0);
    if (off == 0)
        return change(tx, LS_SQLITE_RUN_SHIFT, r->job, k);
    rc = change(tx, LS_SQLITE_RUN_SET_N, r->job, off);
    if (rc < 0 || off + k == r->n)
        return rc;
    struct ls_sqlite_run rest = ls_sqlite_run_part(r, off + k, r->n - off - k);
    return insert(tx, &rest);
}

static bool continues(const struct ls_sqlite_run *a, const struct ls_sqlite_run *b)
{
    return a->job + a->n == b->job && a->pos + a->n == b->pos && a->queue == b->queue &&
           a->state == b->state && a->rank == b->rank && a->level == b->level &&
           a->at_ms == b->at_ms && a->worker == b->worker && a->flags == b->flags &&
           a->reason == b->reason && a->key == b->key;
}

int ls_sqlite_run_add(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q,
                      const struct ls_sqlite_run *r)
{
    assert(q->num == r->queue && r->n > 0);
    q->count[r->state] += r->n;
    q->dirty = true;
    struct ls_sqlite_run before;
    if (q->bound.max_bytes > 0) {
        int weighed = ls_sqlite_bytes_count(tx, q, *r, 1);
        if (weighed < 0)
            return weighed;
    }
    int rc = q->events > 0 && tx->quiet == 0 ? ls_sqlite_event_run(tx, q, r) : 0;
    if (rc == 0)
        rc = count_keys(tx, q, r, r->n);
    if (rc == 0)
        rc = ls_sqlite_run_of(tx, r->job - 1, &before);
    if (rc < 0)
        return rc;
    if (rc == 0 && continues(&before, r))
        return change(tx, LS_SQLITE_RUN_SET_N, before.job, before.n + r->n);
    return insert(tx, r);
}

struct ls_sqlite_run ls_sqlite_run_part(const struct ls_sqlite_run *r, int64_t off, int64_t k)
{
    struct ls_sqlite_run part = *r;
    part.job += off;
    part.pos += off;
    part.n = k;
    return part;
}

static void enter(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q, struct ls_sqlite_run *r,
                  enum lade_state state)
{
    r->state = state;
    r->rank = 0;
    r->pos = q->next;
    r->at_ms = tx->now_ms;
    r->worker = r->flags = 0;
    r->reason = LQ_REASON_NONE;
    q->next += r->n;
    q->dirty = true;
}

void ls_sqlite_run_to_ready(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q,
                            struct ls_sqlite_run *r)
{
    enter(tx, q, r, LADE_STATE_READY);
    r->rank = ls_sqlite_run_rank(r);
    if (r->key <= 0) /* a key wakes when it is placed */
        q->ring += (size_t)r->n;
}

int ls_sqlite_run_to_front(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q,
                           struct ls_sqlite_run *r)
{
    struct ls_sqlite_run first;
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_RUN_FIRST_OF_RANK);
    if (st) {
        ls_sqlite_bind(st, 1, q->num);
        ls_sqlite_bind(st, 2, LADE_STATE_READY);
        ls_sqlite_bind(st, 3, ls_sqlite_run_rank(r));
    }
    int rc = read_one(tx, st, &first);
    if (rc < 0)
        return rc;
    ls_sqlite_run_to_ready(tx, q, r);
    if (rc == 0)
        r->pos = first.pos - r->n;
    return r->key > 0 ? ls_sqlite_hall_precede(tx, q, r) : 0;
}

void ls_sqlite_run_to_due(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q,
                          struct ls_sqlite_run *r, enum lade_state state, int64_t due_ms)
{
    enter(tx, q, r, state);
    r->rank = due_ms;
    if (q->ring_due == 0 || due_ms < q->ring_due)
        q->ring_due = LB_MAX(due_ms, 1);
}

void ls_sqlite_run_to_active(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q,
                             struct ls_sqlite_run *r, int64_t worker)
{
    enter(tx, q, r, LADE_STATE_ACTIVE);
    r->worker = worker;
}

/* A statement over a stretch of jobs. */
static int change_jobs(struct ls_sqlite_tx *tx, enum ls_sqlite_sql which, int64_t seq, int64_t n)
{
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, which);
    if (!st)
        return ls_sqlite_tx_fail(tx);
    ls_sqlite_bind(st, 1, seq);
    ls_sqlite_bind(st, 2, seq + n - 1);
    return ls_sqlite_tx_do(tx, st);
}

/* Most files hold nothing that a handler said: as below. */
static int free_notes(struct ls_sqlite_tx *tx, int64_t seq, int64_t n)
{
    if (tx->notes < 0) {
        sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_NOTE_ANY);
        int rc = ls_sqlite_tx_step(tx, st);
        if (rc < 0)
            return rc;
        if (rc == 1)
            (void)sqlite3_reset(st);
        tx->notes = rc;
    }
    if (tx->notes == 0)
        return 0;
    int rc = change_jobs(tx, LS_SQLITE_NOTE_DEL, seq, n);
    return rc < 0 ? rc : change_jobs(tx, LS_SQLITE_LINE_DEL, seq, n);
}

/* Most files hold no unique key at all: one look in a transaction saves a look for each stretch. */
static int free_locks(struct ls_sqlite_tx *tx, enum ls_sqlite_sql which, int64_t seq, int64_t n)
{
    if (tx->locks < 0) {
        sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_LOCK_ANY);
        int rc = ls_sqlite_tx_step(tx, st);
        if (rc < 0)
            return rc;
        if (rc == 1)
            (void)sqlite3_reset(st);
        tx->locks = rc;
    }
    return tx->locks == 0 ? 0 : change_jobs(tx, which, seq, n);
}

int ls_sqlite_run_to_ended(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q,
                           struct ls_sqlite_run *r, enum lade_state state, enum lq_reason reason)
{
    enter(tx, q, r, state);
    tx->ended = true;
    if (state == LADE_STATE_COMPLETED)
        q->total[LS_SQLITE_COMPLETED] += r->n;
    if (state == LADE_STATE_DEAD) {
        r->reason = reason;
        q->total[LS_SQLITE_DIED] += r->n;
    }
    return free_locks(tx, LS_SQLITE_LOCK_FREE, r->job, r->n);
}

int ls_sqlite_locks_start(struct ls_sqlite_tx *tx, int64_t seq, int64_t n)
{
    return free_locks(tx, LS_SQLITE_LOCK_FREE_START, seq, n);
}

int ls_sqlite_jobs_del(struct ls_sqlite_tx *tx, int64_t seq, int64_t n)
{
    int rc = free_locks(tx, LS_SQLITE_LOCK_FREE, seq, n);
    tx->ended = true;
    if (rc == 0)
        rc = free_notes(tx, seq, n);
    if (rc == 0)
        rc = change_jobs(tx, LS_SQLITE_JOB_DEL, seq, n);
    return rc < 0 ? rc : ls_sqlite_results_del(tx, seq, n);
}

static int zero_counts(struct ls_sqlite_tx *tx, int64_t seq)
{
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_JOB_HISTORY);
    if (st)
        ls_sqlite_bind(st, 1, seq);
    int rc = ls_sqlite_tx_step(tx, st);
    if (rc <= 0)
        return rc;
    struct lb_slice h = ls_sqlite_column(st, 0);
    struct lb_mut copy = {0};
    if (h.n >= LQ_HISTORY_COUNTS_AT + LQ_HISTORY_COUNTS_SIZE) {
        copy = lb_arena_copy(&tx->arena, h.p, h.n);
        if (!copy.p)
            rc = lb_fail_nomem(tx->err, tx->op);
    }
    (void)sqlite3_reset(st);
    if (rc < 0 || !copy.p)
        return rc < 0 ? rc : 0;
    memset(copy.p + LQ_HISTORY_COUNTS_AT, 0, LQ_HISTORY_COUNTS_SIZE);
    st = ls_sqlite_tx_stmt(tx, LS_SQLITE_JOB_SET_HISTORY);
    if (!st)
        return ls_sqlite_tx_fail(tx);
    ls_sqlite_bind(st, 1, seq);
    ls_sqlite_bind_blob(st, 2, lb_slice_of(copy));
    return ls_sqlite_tx_do(tx, st);
}

int ls_sqlite_jobs_renew(struct ls_sqlite_tx *tx, int64_t seq, int64_t n)
{
    int rc = ls_sqlite_results_clear(tx, seq, n);
    for (int64_t i = 0; i < n && rc == 0; i++)
        rc = zero_counts(tx, seq + i);
    return rc;
}

int ls_sqlite_jobs_drop(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q, enum lade_state state,
                        int64_t keep, int64_t before_ms, int64_t max, size_t *n)
{
    int rc = 0;
    while (max > 0 && rc == 0) {
        struct ls_sqlite_run r;
        rc = ls_sqlite_run_first(tx, q, state, &r);
        if (rc == LADE_NOT_FOUND)
            return 0;
        if (rc < 0)
            return rc;
        int64_t k = r.at_ms < before_ms ? r.n : LB_MIN(r.n, q->count[state] - keep);
        k = LB_MIN(k, max);
        if (k <= 0)
            return 0;
        rc = ls_sqlite_run_cut(tx, q, &r, 0, k);
        if (rc == 0)
            rc = ls_sqlite_jobs_del(tx, r.job, k);
        max -= k;
        *n += (size_t)k;
    }
    return rc;
}

int ls_sqlite_jobs_retain(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q, int64_t n)
{
    static const enum lade_state ended[] = {LADE_STATE_COMPLETED, LADE_STATE_DEAD,
                                            LADE_STATE_CANCELLED};
    const struct lq_store_config *c = &tx->s->base.config;
    int rc = 0;
    for (size_t i = 0; i < LB_ARRAY_LEN(ended) && rc == 0; i++) {
        int64_t keep = ended[i] == LADE_STATE_DEAD ? c->keep_dead.count : c->keep_completed.count;
        size_t dropped = 0;
        if (q->count[ended[i]] > keep) {
            LB_FAULT("sqlite.retain");
            rc = ls_sqlite_jobs_drop(tx, q, ended[i], keep, INT64_MIN, n + LQ_TAKE_MAX, &dropped);
        }
    }
    return rc;
}
