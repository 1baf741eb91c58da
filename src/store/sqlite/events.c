#include "store/sqlite/events.h"

#include <string.h>

#include "base/base.h"
#include "base/err.h"
#include "base/fault.h"
#include "store/sqlite/sqlite_impl.h"

static bool reserve(struct ls_sqlite_tx *tx, struct ls_sqlite_batch *b, size_t n)
{
    if (b->cap - b->n >= n)
        return true;
    size_t cap = LB_MAX(2 * b->cap, b->n + n + 1024);
    uint8_t *grown = lb_arena_alloc(&tx->arena, cap);
    if (!grown)
        return false;
    if (b->n > 0)
        memcpy(grown, b->p, b->n);
    b->p = grown;
    b->cap = cap;
    return true;
}

void ls_sqlite_event(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q, const struct lq_ev *e)
{
    struct ls_sqlite_batch *b = &q->batch;
    if (!reserve(tx, b, lq_event_size(e)))
        return;
    b->n = (size_t)(lq_event_write(b->p + b->n, e) - b->p);
    b->events++;
}

void ls_sqlite_event_taken(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q,
                           const struct lq_leased *l, enum lade_event_type type)
{
    struct lq_ev e = {.type = type,
                      .attempt = lq_history_next_attempt(lb_slice_of(l->history)),
                      .job = lb_slice_of(l->id),
                      .kind = lq_body_kind(lb_slice_of(l->body))};
    if (type == LADE_EVENT_STALLED)
        e.reason = lb_slice_str(l->former);
    ls_sqlite_event(tx, q, &e);
}

static enum lade_event_type type_of(enum lq_to to)
{
    switch (to) {
    case LQ_TO_COMPLETED:
        return LADE_EVENT_COMPLETED;
    case LQ_TO_RETRYING:
        return LADE_EVENT_RETRYING;
    case LQ_TO_THROTTLED:
    case LQ_TO_READY:
        return LADE_EVENT_WAITING;
    case LQ_TO_DEAD:
        return LADE_EVENT_DEAD;
    case LQ_TO_CANCELLED:
        return LADE_EVENT_CANCELLED;
    case LQ_TO_SCHEDULED:
    case LQ_TO_GONE:
    default:
        return 0;
    }
}

void ls_sqlite_event_settled(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q,
                             const struct lq_settle *it, size_t k, const struct lq_settle *as)
{
    enum lade_event_type type = type_of(as->to);
    for (size_t i = 0; i < k; i++) {
        struct lq_ev e = {
            .type = type, .attempt = it[i].attempt, .job = it[i].id, .kind = it[i].kind};
        if (it[i].failed) {
            struct lq_ev failed = e;
            failed.type = LADE_EVENT_FAILED;
            failed.value = it[i].took_us;
            failed.reason = it[i].error;
            ls_sqlite_event(tx, q, &failed);
        }
        if (type == LADE_EVENT_COMPLETED)
            e.value = it[i].took_us;
        if (type == LADE_EVENT_RETRYING)
            e.value = it[i].delay_ms;
        if (type == LADE_EVENT_WAITING)
            e.attempt = 0;
        if (type == LADE_EVENT_DEAD)
            e.reason = lb_slice_str(lq_event_reason(as->reason));
        if (type != 0)
            ls_sqlite_event(tx, q, &e);
    }
}

int ls_sqlite_event_run(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q,
                        const struct ls_sqlite_run *r)
{
    static const enum lade_event_type type[LADE_N_STATES] = {
        [LADE_STATE_READY] = LADE_EVENT_WAITING,
        [LADE_STATE_COMPLETED] = LADE_EVENT_COMPLETED,
        [LADE_STATE_DEAD] = LADE_EVENT_DEAD,
        [LADE_STATE_CANCELLED] = LADE_EVENT_CANCELLED,
    };

    if (type[r->state] == 0)
        return 0;
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_EVENT_JOBS);
    if (st) {
        ls_sqlite_bind(st, 1, r->job);
        ls_sqlite_bind(st, 2, r->job + r->n - 1);
    }
    int rc;
    while ((rc = ls_sqlite_tx_step(tx, st)) == 1) {
        struct lq_ev e = {.type = type[r->state],
                          .job = ls_sqlite_column(st, 0),
                          .kind = lq_body_kind(ls_sqlite_column(st, 1))};
        if (e.type == LADE_EVENT_DEAD)
            e.reason = lb_slice_str(lq_event_reason((enum lq_reason)r->reason));
        ls_sqlite_event(tx, q, &e);
    }
    return rc;
}

static int read_last(struct ls_sqlite_tx *tx, const struct ls_sqlite_queue *q, int64_t *last)
{
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_EVENT_LAST);
    if (st)
        ls_sqlite_bind(st, 1, q->num);
    int rc = ls_sqlite_tx_step(tx, st);
    *last = rc == 1 ? sqlite3_column_int64(st, 0) : LB_MAX(tx->now_ms, 1) * 1000;
    if (rc == 1)
        (void)sqlite3_reset(st);
    return rc < 0 ? rc : 0;
}

static int add_row(struct ls_sqlite_tx *tx, const struct ls_sqlite_queue *q)
{
    int64_t last;
    int rc = read_last(tx, q, &last);
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_EVENT_ADD);
    if (rc < 0 || !st)
        return rc < 0 ? rc : ls_sqlite_tx_fail(tx);
    last += q->batch.events;
    ls_sqlite_bind(st, 1, q->num);
    ls_sqlite_bind(st, 2, last);
    ls_sqlite_bind(st, 3, q->batch.events);
    ls_sqlite_bind(st, 4, tx->now_ms);
    ls_sqlite_bind_blob(st, 5, lb_slice(q->batch.p, q->batch.n));
    rc = ls_sqlite_tx_do(tx, st);
    st = rc == 0 ? ls_sqlite_tx_stmt(tx, LS_SQLITE_EVENT_TRIM) : NULL;
    if (rc < 0 || !st)
        return rc < 0 ? rc : ls_sqlite_tx_fail(tx);
    ls_sqlite_bind(st, 1, q->num);
    ls_sqlite_bind(st, 2, last - q->events);
    return ls_sqlite_tx_do(tx, st);
}

int ls_sqlite_events_write(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q)
{
    if (q->batch.events == 0 || q->events == 0 || tx->mute)
        return 0;
    lade_err *err = tx->err;
    lade_err lost = {0};
    tx->err = &lost; /* chasqui 57: what goes wrong here is not the op's failure */
    int rc = add_row(tx, q);
    tx->err = err;
    q->ring_watchers = true;
    q->batch = (struct ls_sqlite_batch){0};
    LB_FAULT("sqlite.events");
    if (rc < 0 && sqlite3_get_autocommit(tx->db->h)) {
        if (err)
            *err = lost;
        return rc;
    }
    return 0;
}

int ls_sqlite_events_drop(struct ls_sqlite_tx *tx, const struct ls_sqlite_queue *q)
{
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_EVENT_TRIM);
    if (!st)
        return ls_sqlite_tx_fail(tx);
    ls_sqlite_bind(st, 1, q->num);
    ls_sqlite_bind(st, 2, INT64_MAX);
    return ls_sqlite_tx_do(tx, st);
}
