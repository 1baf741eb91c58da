#include "store/sqlite/ahead.h"

#include <string.h>

#include "base/base.h"
#include "base/err.h"
#include "base/fault.h"
#include "store/sqlite/events.h"
#include "store/sqlite/feed.h"
#include "store/sqlite/sheet.h"
#include "store/sqlite/sqlite_impl.h"

/* Ends as a step does of which there is nothing to tell but its result. */
static bool is_plain(const struct lq_settle *it)
{
    return it->to == LQ_TO_COMPLETED && !it->failed && it->history.n == 0 &&
           (it->result_ttl_ms == 0 || it->result.n == 0);
}

static bool follows(const struct lq_settle *it, const struct lq_settle *next)
{
    return it->goes_on && next->fence == it->fence && is_plain(next) &&
           (next->queue == it->queue || strcmp(next->queue, it->queue) == 0);
}

/* Whether the queue has none of these jobs, as it should. */
static int look(struct ls_sqlite_ahead *a, struct ls_sqlite_queue *q, size_t n)
{
    struct ls_sqlite_feed feed = {.it = a->put, .n = n};
    sqlite3_stmt *st = ls_sqlite_tx_stmt(a->tx, LS_SQLITE_JOB_KNOWN);
    if (st) {
        ls_sqlite_feed_bind(st, 1, &feed);
        ls_sqlite_bind(st, 2, q->num);
    }
    int rc = ls_sqlite_tx_step(a->tx, st);
    if (rc == 1)
        (void)sqlite3_reset(st);
    if (rc == 0)
        a->q = q;
    return LB_MIN(rc, 0);
}

int ls_sqlite_ahead_init(struct ls_sqlite_ahead *a, struct ls_sqlite_tx *tx,
                         const struct lq_settle *it, size_t n)
{
    size_t first = 0, k = 0;
    *a = (struct ls_sqlite_ahead){.tx = tx};
    while (first < n && !it[first].goes_on)
        first++;
    if (first == n)
        return 0;
    a->put = lb_arena_alloc(&tx->arena, n * sizeof(*a->put));
    a->end = lb_arena_alloc(&tx->arena, n * sizeof(*a->end));
    a->held = lb_arena_alloc(&tx->arena, n * sizeof(*a->held));
    a->behind = lb_arena_alloc(&tx->arena, n * sizeof(struct lq_settle *));
    if (!a->put || !a->end || !a->held || !a->behind)
        return lb_fail_nomem(tx->err, tx->op);
    struct ls_sqlite_queue *q;
    int rc = ls_sqlite_tx_queue(tx, it[first].queue, &q);
    /* The feed is known to our own connections only. */
    if (rc < 0 || !q || q->events > 0 || q->gated || tx->db->schema)
        return rc;
    for (size_t i = first + 1; i < n; i++) {
        if (follows(&it[i - 1], &it[i]) && strcmp(it[i].queue, it[first].queue) == 0)
            a->put[k++] = (struct lq_put){.id = it[i].id};
    }
    return k > 0 ? look(a, q, k) : 0;
}

bool ls_sqlite_ahead_through(const struct ls_sqlite_ahead *a, const struct ls_sqlite_queue *q,
                             const struct lq_put *put, const struct lq_settle *it,
                             const struct lq_settle *next)
{
    return a->q == q && follows(it, next) && lb_slice_eq(put->id, next->id);
}

void ls_sqlite_ahead_add(struct ls_sqlite_ahead *a, const struct lq_put *put,
                         const struct lq_settle *end)
{
    a->put[a->n] = *put;
    a->end[a->n++] = *end;
}

void ls_sqlite_ahead_hold(struct ls_sqlite_ahead *a, const struct lq_put *put, struct lq_settle *it)
{
    a->held[a->n_held] = *put;
    a->behind[a->n_held++] = it;
}

/* The numbers in `has`, when they are there, and how many are. */
static int read_seqs(struct ls_sqlite_tx *tx, int64_t seq, size_t n, bool *has)
{
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_JOB_SEQS);
    if (st) {
        ls_sqlite_bind(st, 1, seq);
        ls_sqlite_bind(st, 2, seq + (int64_t)n - 1);
    }
    int rc;
    memset(has, 0, n * sizeof(*has));
    while ((rc = ls_sqlite_tx_step(tx, st)) == 1)
        has[sqlite3_column_int64(st, 0) - seq] = true;
    return rc;
}

static void tell(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q, const struct lq_put *it)
{
    struct lq_ev e = {.type = LADE_EVENT_WAITING, .job = it->id, .kind = lq_body_kind(it->body)};
    ls_sqlite_event(tx, q, &e);
    e.type = LADE_EVENT_ACTIVE;
    e.attempt = 1;
    ls_sqlite_event(tx, q, &e);
}

/* [from, to) of what is held: one run, of job seq on. */
static int lease_run(struct ls_sqlite_ahead *a, struct ls_sqlite_queue *q, size_t from, size_t to,
                     int64_t seq, int64_t worker)
{
    struct ls_sqlite_tx *tx = a->tx;
    int64_t n = (int64_t)(to - from), level = a->held[from].level;
    struct ls_sqlite_run r = {.job = seq, .n = n, .queue = q->num, .rank = level, .level = level};
    q->total[LS_SQLITE_ENQUEUED] += n;
    ls_sqlite_run_to_active(tx, q, &r, worker);
    r.pos = (int64_t)a->behind[from]->fence;
    tx->quiet++;
    int rc = ls_sqlite_run_add(tx, q, &r);
    tx->quiet--;
    for (size_t i = from; i < to && rc == 0; i++) {
        a->behind[i]->went_on = true;
        if (q->events > 0)
            tell(tx, q, &a->held[i]);
    }
    LB_FAULT("sqlite.settle.ahead");
    return rc;
}

int ls_sqlite_ahead_lease(struct ls_sqlite_ahead *a, struct ls_sqlite_queue *q, int64_t worker)
{
    size_t n = a->n_held, to;
    int64_t seq = 0;
    a->n_held = 0;
    if (n == 0)
        return 0;
    bool *has = lb_arena_alloc(&a->tx->arena, n * sizeof(*has));
    if (!has)
        return lb_fail_nomem(a->tx->err, a->tx->op);
    int rc = ls_sqlite_jobs_insert(a->tx, q, a->held, n, &seq);
    if (rc < 0)
        return rc;
    memset(has, 1, n * sizeof(*has));
    if (rc == LADE_DUPLICATE) /* as any other that is put: the one that is there stays */
        rc = read_seqs(a->tx, seq, n, has);
    for (size_t from = 0; from < n && rc == 0; from = to) {
        to = from + 1;
        if (!has[from])
            continue;
        while (to < n && has[to] && a->held[to].level == a->held[from].level &&
               a->behind[to]->fence == a->behind[from]->fence + (to - from))
            to++;
        rc = lease_run(a, q, from, to, seq + (int64_t)from, worker);
    }
    return rc;
}

int ls_sqlite_ahead_flush(struct ls_sqlite_ahead *a)
{
    size_t n = a->n, to;
    int64_t seq = 0;
    if (n == 0)
        return 0;
    int rc = ls_sqlite_jobs_insert(a->tx, a->q, a->put, n, &seq);
    if (rc == LADE_DUPLICATE)
        return lb_fail(a->tx->err, LADE_EFORMAT, a->tx->op,
                       "%s is damaged: a job is there which its index does not have",
                       a->tx->db->path);
    if (rc == 0)
        rc = ls_sqlite_results_add(a->tx, a->end, n, seq);
    a->q->total[LS_SQLITE_ENQUEUED] += (int64_t)n;
    LB_FAULT("sqlite.settle.through");
    for (size_t from = 0; from < n && rc == 0; from = to) {
        int64_t level = a->put[from].level;
        for (to = from + 1; to < n && a->put[to].level == level;)
            to++;
        struct ls_sqlite_run r = {.job = seq + (int64_t)from,
                                  .n = (int64_t)(to - from),
                                  .queue = a->q->num,
                                  .level = level};
        rc = ls_sqlite_run_to_ended(a->tx, a->q, &r, LADE_STATE_COMPLETED, LQ_REASON_NONE);
        if (rc == 0)
            rc = ls_sqlite_run_add(a->tx, a->q, &r);
    }
    a->n = 0;
    return rc;
}
