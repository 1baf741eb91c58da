/* op_event.c - results, watching, and reading and setting the streams of events */
#include <string.h>

#include "base/base.h"
#include "base/err.h"
#include "store/sqlite/apart.h"
#include "store/sqlite/events.h"
#include "store/sqlite/sheet.h"
#include "store/sqlite/sqlite_impl.h"

/* results ---------------------------------------------------------------------------------------------------------- */

static int read_bytes(struct ls_sqlite_tx *tx, int64_t seq, struct lb_arena *arena,
                      struct lb_mut *out)
{
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_JOB_RESULT);
    if (st)
        ls_sqlite_bind(st, 1, seq);
    int rc = ls_sqlite_tx_step(tx, st);
    if (rc <= 0)
        return rc;
    struct lb_slice b = ls_sqlite_column(st, 0);
    *out = lb_arena_copy(arena, b.p, b.n);
    (void)sqlite3_reset(st);
    if (!out->p)
        return lb_fail_nomem(tx->err, tx->op);
    return out->n > 0 ? 0 : ls_sqlite_result_find(tx, seq, arena, out);
}

static int read_result(struct ls_sqlite_tx *tx, const struct ls_sqlite_queue *q, struct lb_slice id,
                       struct lb_arena *arena, struct lq_result *out)
{
    int64_t seq;
    struct ls_sqlite_run r;
    int rc = q ? ls_sqlite_job_find(tx, q, id, &seq, &r) : LADE_NOT_FOUND;
    *out = (struct lq_result){.outcome = LADE_NOT_FOUND};
    if (rc == LADE_NOT_FOUND && q) {
        rc = ls_sqlite_apart_get(tx, q->num, id, 0, arena, &out->bytes);
        if (rc == 0 && out->bytes.n > 0) {
            out->state = LADE_STATE_COMPLETED;
            out->outcome = LADE_DONE;
        }
        return rc;
    }
    if (rc != 0)
        return rc < 0 ? rc : 0;
    out->state = (enum lade_state)r.state;
    out->outcome = LADE_WRONG_STATE;
    if (r.state != LADE_STATE_COMPLETED)
        return 0;
    rc = read_bytes(tx, seq, arena, &out->bytes);
    if (rc == 0 && out->bytes.n == 0)
        rc = ls_sqlite_apart_get(tx, q->num, id, r.at_ms, arena, &out->bytes);
    out->outcome = out->bytes.n > 0 ? LADE_DONE : LADE_EMPTY;
    return rc;
}

int ls_sqlite_results(struct lq_store *s, const char *queue, const struct lb_slice *id, size_t n,
                      struct lb_arena *arena, struct lq_result *out, lade_err *err)
{
    struct ls_sqlite *ss = ls_sqlite_of(s);
    struct ls_sqlite_tx tx;
    struct ls_sqlite_queue *q = NULL;
    int rc = ls_sqlite_read_enter(ss, &tx, "results", err);
    if (rc == 0)
        rc = ls_sqlite_tx_queue(&tx, queue, &q);
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = read_result(&tx, q, id[i], arena, &out[i]);
    return ls_sqlite_read_leave(ss, &tx, rc);
}

/* watching --------------------------------------------------------------------------------------------------------- */

/*
 * Watchers sit in the bell as idle workers do, in lanes of their own: '\1' and the queue, which is no queue's name. Who watches more queues
 * than a seat has lanes sits in the one lane '\1', so that it never takes a ring that was meant for a worker.
 */
#define LANE_SIZE (LADE_NAME_MAX + 2)

static void name_lane(char lane[LANE_SIZE], const char *queue)
{
    (void)snprintf(lane, LANE_SIZE, "\1%s", queue);
}

void ls_sqlite_ring_watchers(struct ls_sqlite *s, const char *queue)
{
    char lane[LANE_SIZE];
    name_lane(lane, queue);
    ls_sqlite_waiters_ring(&s->waiters, lane, SIZE_MAX);
    ls_sqlite_waiters_ring(&s->waiters, "\1", SIZE_MAX);
}

static void sit_down(struct ls_sqlite *s, const char *waiter, const struct lq_watch *it, size_t n)
{
    char lane[LS_SQLITE_BELL_LANES][LANE_SIZE];
    const char *name[LS_SQLITE_BELL_LANES];
    const char *every = "\1";
    size_t lanes = 0;
    for (size_t i = 0; i < n && lanes <= LS_SQLITE_BELL_LANES; i++) {
        size_t k = 0;
        while (k < lanes && strcmp(name[k] + 1, it[i].queue) != 0)
            k++;
        if (k < lanes)
            continue;
        if (lanes == LS_SQLITE_BELL_LANES) {
            ls_sqlite_waiters_idle(&s->waiters, waiter, (struct lq_lanes){&every, 1});
            return;
        }
        name_lane(lane[lanes], it[i].queue);
        name[lanes] = lane[lanes];
        lanes++;
    }
    ls_sqlite_waiters_idle(&s->waiters, waiter, (struct lq_lanes){name, lanes});
}

static int count_lines(struct ls_sqlite_tx *tx, int64_t seq, uint64_t *n)
{
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_NOTE_GET);
    if (st)
        ls_sqlite_bind(st, 1, seq);
    int rc = ls_sqlite_tx_step(tx, st);
    *n = rc == 1 ? (uint64_t)sqlite3_column_int64(st, 3) : 0;
    if (rc == 1)
        (void)sqlite3_reset(st);
    return rc < 0 ? rc : 0;
}

static int read_one_number(struct ls_sqlite_tx *tx, enum ls_sqlite_sql which, int64_t queue,
                           int64_t *v)
{
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, which);
    if (st)
        ls_sqlite_bind(st, 1, queue);
    int rc = ls_sqlite_tx_step(tx, st);
    if (rc == 1) {
        *v = sqlite3_column_int64(st, 0);
        (void)sqlite3_reset(st);
    }
    return rc < 0 ? rc : 0;
}

static int look_at(struct ls_sqlite_tx *tx, struct lq_watch *it)
{
    struct ls_sqlite_queue *q;
    int64_t seq, last = 0;
    struct ls_sqlite_run r;
    int rc = ls_sqlite_tx_queue(tx, it->queue, &q);
    if (rc < 0)
        return rc;
    if (it->what == LQ_WATCH_ROOM) {
        it->outcome = ls_sqlite_bound_fits(q, (int64_t)it->after, (int64_t)it->bytes) ? LADE_DONE
                                                                                      : LADE_EMPTY;
        return 0;
    }
    if (it->what == LQ_WATCH_EVENTS) {
        rc = q && q->events > 0 ? read_one_number(tx, LS_SQLITE_EVENT_LAST, q->num, &last) : 0;
        it->outcome = last != 0 && it->after == (uint64_t)last ? LADE_EMPTY : LADE_DONE;
        return rc;
    }
    rc = q ? ls_sqlite_job_find(tx, q, it->id, &seq, &r) : LADE_NOT_FOUND;
    if (rc != 0) {
        it->outcome = LADE_NOT_FOUND;
        return rc < 0 ? rc : 0;
    }
    uint64_t lines = 0;
    if (it->what == LQ_WATCH_LOG)
        rc = count_lines(tx, seq, &lines);
    bool there =
        ls_sqlite_state_is_ended(r.state) || (it->what == LQ_WATCH_LOG && lines > it->after);
    it->outcome = there ? LADE_DONE : LADE_EMPTY;
    return rc;
}

int ls_sqlite_watch(struct lq_store *s, const char *waiter, struct lq_watch *it, size_t n,
                    lade_err *err)
{
    struct ls_sqlite *ss = ls_sqlite_of(s);
    struct ls_sqlite_tx tx;
    /* Seated before the look: whoever commits after it finds us. */
    sit_down(ss, waiter, it, n);
    int rc = ls_sqlite_read_enter(ss, &tx, "wait", err);
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = look_at(&tx, &it[i]);
    return ls_sqlite_read_leave(ss, &tx, rc);
}

void ls_sqlite_unwatch(struct lq_store *s, const char *waiter, struct lq_lanes lanes)
{
    (void)lanes;
    ls_sqlite_waiters_leave(&ls_sqlite_of(s)->waiters, waiter);
}

/* streams ---------------------------------------------------------------------------------------------------------- */

struct set {
    const char *queue;
    uint32_t cap;
};

/* An empty row: from here on the numbers count up. */
static int begin_stream(struct ls_sqlite_tx *tx, const struct ls_sqlite_queue *q)
{
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_EVENT_ADD);
    if (!st)
        return ls_sqlite_tx_fail(tx);
    ls_sqlite_bind(st, 1, q->num);
    ls_sqlite_bind(st, 2, LB_MAX(tx->now_ms, 1) * 1000); /* numbers are not given twice */
    ls_sqlite_bind(st, 3, 0);
    ls_sqlite_bind(st, 4, tx->now_ms);
    ls_sqlite_bind_blob(st, 5, lb_slice("", 0));
    return ls_sqlite_tx_do(tx, st);
}

static int run_set(struct ls_sqlite_tx *tx, void *arg)
{
    const struct set *set = arg;
    struct ls_sqlite_queue *q;
    int rc = ls_sqlite_tx_queue_make(tx, set->queue, &q);
    if (rc == 0 && set->cap > 0 && q->events == 0)
        rc = begin_stream(tx, q);
    if (rc == 0 && set->cap == 0 && q->events > 0)
        rc = ls_sqlite_events_drop(tx, q);
    sqlite3_stmt *st = rc == 0 ? ls_sqlite_tx_stmt(tx, LS_SQLITE_EVENTS_SET) : NULL;
    if (rc < 0 || !st)
        return rc < 0 ? rc : ls_sqlite_tx_fail(tx);
    q->events = set->cap;
    q->ring_watchers = true;
    ls_sqlite_bind(st, 1, q->num);
    ls_sqlite_bind(st, 2, set->cap);
    return ls_sqlite_tx_do(tx, st);
}

int ls_sqlite_events_set(struct lq_store *s, const char *queue, uint32_t cap, lade_err *err)
{
    struct set set = {queue, cap};
    struct ls_sqlite_op op = {.name = "events",
                              .point = "sqlite.events_set.commit",
                              .run = run_set,
                              .arg = &set,
                              .jobs = 1,
                              .frees = cap == 0};
    return ls_sqlite_write(ls_sqlite_of(s), &op, err);
}

/* 0, NOT_FOUND or a failure; cap 0 = off. */
static int describe(struct ls_sqlite_tx *tx, const char *queue, struct ls_sqlite_queue **q,
                    lade_events_info *out)
{
    int64_t first = 0, last = 0;
    int rc = ls_sqlite_tx_queue(tx, queue, q);
    if (rc < 0 || !*q)
        return rc < 0 ? rc : LADE_NOT_FOUND;
    if ((*q)->events > 0)
        rc = read_one_number(tx, LS_SQLITE_EVENT_LAST, (*q)->num, &last);
    if (rc == 0 && (*q)->events > 0)
        rc = read_one_number(tx, LS_SQLITE_EVENT_FIRST, (*q)->num, &first);
    *out = (lade_events_info){(uint32_t)(*q)->events, (uint64_t)first, (uint64_t)last};
    return rc;
}

int ls_sqlite_events_get(struct lq_store *s, const char *queue, lade_events_info *out,
                         lade_err *err)
{
    struct ls_sqlite *ss = ls_sqlite_of(s);
    struct ls_sqlite_tx tx;
    struct ls_sqlite_queue *q;
    lade_events_info info = {0};
    int rc = ls_sqlite_read_enter(ss, &tx, "events", err);
    if (rc == 0)
        rc = describe(&tx, queue, &q, &info);
    if (rc == 0)
        *out = info;
    return ls_sqlite_read_leave(ss, &tx, rc);
}

static int read_rows(struct ls_sqlite_tx *tx, const struct ls_sqlite_queue *q, uint64_t after,
                     size_t max, struct lq_event_vec *out)
{
    size_t before = out->n;
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_EVENT_READ);
    if (st) {
        ls_sqlite_bind(st, 1, q->num);
        ls_sqlite_bind(st, 2, (int64_t)after);
    }
    int rc;
    while ((rc = ls_sqlite_tx_step(tx, st)) == 1) {
        struct lb_slice data = ls_sqlite_column(st, 3);
        struct lb_mut kept = lb_arena_copy(&out->arena, data.p, data.n);
        bool ok = kept.p &&
                  lq_events_expand(out, lb_slice_of(kept), (uint64_t)sqlite3_column_int64(st, 0),
                                   (uint64_t)sqlite3_column_int64(st, 1),
                                   sqlite3_column_int64(st, 2), after);
        if (!ok || out->n - before >= max) {
            (void)sqlite3_reset(st);
            return ok ? 0 : lb_fail_nomem(tx->err, tx->op);
        }
    }
    return rc;
}

static int read_stream(struct ls_sqlite_tx *tx, const char *queue, uint64_t after, size_t max,
                       struct lq_event_vec *out)
{
    struct ls_sqlite_queue *q;
    lade_events_info info;
    int rc = describe(tx, queue, &q, &info);
    if (rc != 0)
        return rc;
    if (info.cap == 0)
        return LADE_WRONG_STATE;
    out->after = after == 0 ? info.first - 1 : LB_MIN(after, info.last);
    if (out->after < info.first - 1 || (after > info.last && after != UINT64_MAX))
        return LADE_MISSED;
    if (out->after == info.last)
        return LADE_EMPTY;
    return read_rows(tx, q, out->after, max, out);
}

int ls_sqlite_event_read(struct lq_store *s, const char *queue, uint64_t after, size_t max,
                         struct lq_event_vec *out, lade_err *err)
{
    struct ls_sqlite *ss = ls_sqlite_of(s);
    struct ls_sqlite_tx tx;
    int rc = ls_sqlite_read_enter(ss, &tx, "events", err);
    if (rc == 0)
        rc = read_stream(&tx, queue, after, max, out);
    return ls_sqlite_read_leave(ss, &tx, rc);
}
