/* op_promote.c - scheduled | retrying -> ready when due; trim: what was kept long enough goes */
#include "base/base.h"
#include "base/fault.h"
#include "store/sqlite/apart.h"
#include "store/sqlite/flow.h"
#include "store/sqlite/keys.h"
#include "store/sqlite/sqlite_impl.h"
#include "store/sqlite/take.h"

/* The run of scheduled or retrying jobs that is due first. 0 or LADE_NOT_FOUND. */
static int find_first_due(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q,
                          struct ls_sqlite_run *r)
{
    struct ls_sqlite_run a, b;
    int ra = ls_sqlite_run_first(tx, q, LADE_STATE_SCHEDULED, &a);
    if (ra < 0)
        return ra;
    int rb = ls_sqlite_run_first(tx, q, LADE_STATE_RETRYING, &b);
    if (rb < 0)
        return rb;
    if (ra == LADE_NOT_FOUND && rb == LADE_NOT_FOUND)
        return LADE_NOT_FOUND;
    bool first = rb == LADE_NOT_FOUND ||
                 (ra == 0 && (a.rank < b.rank || (a.rank == b.rank && a.pos < b.pos)));
    *r = first ? a : b;
    return 0;
}

int ls_sqlite_promote_due(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q, size_t max, size_t *n)
{
    while (max > 0) {
        struct ls_sqlite_run r;
        int rc = find_first_due(tx, q, &r);
        if (rc < 0)
            return rc;
        if (rc == LADE_NOT_FOUND || r.rank > tx->now_ms)
            return 0;
        bool first; /* singly: the last of them is then the first */
        rc = ls_sqlite_key_goes_first(tx, q, &r, &first);
        int64_t k = first ? 1 : LB_MIN(r.n, (int64_t)max);
        struct ls_sqlite_run ready = ls_sqlite_run_part(&r, 0, k);
        if (rc == 0)
            rc = ls_sqlite_run_cut(tx, q, &r, 0, k);
        if (rc == 0)
            rc = ls_sqlite_run_return(tx, q, &r, &ready);
        if (rc == 0)
            rc = ls_sqlite_run_add(tx, q, &ready);
        if (rc < 0)
            return rc;
        LB_FAULT("sqlite.promote.run");
        max -= (size_t)k;
        *n += (size_t)k;
    }
    return 0;
}

int ls_sqlite_next_due(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q, int64_t *next_ms)
{
    struct ls_sqlite_run r;
    int rc = find_first_due(tx, q, &r);
    if (rc == 0 && (*next_ms == 0 || r.rank < *next_ms))
        *next_ms = LB_MAX(r.rank, 1);
    return rc < 0 ? rc : 0;
}

static const enum lade_state ended[] = {LADE_STATE_COMPLETED, LADE_STATE_DEAD,
                                        LADE_STATE_CANCELLED};

struct sweep {
    struct lq_lanes lanes;
    size_t max;
    size_t n;
    int64_t next_ms;
    bool more;
};

static int run_promote(struct ls_sqlite_tx *tx, void *arg)
{
    struct sweep *w = arg;
    w->n = 0;
    w->next_ms = 0;
    for (size_t i = 0; i < w->lanes.n; i++) {
        struct ls_sqlite_queue *q;
        int rc = ls_sqlite_tx_queue(tx, w->lanes.queue[i], &q);
        if (rc == 0 && q)
            rc = ls_sqlite_promote_due(tx, q, w->max - w->n, &w->n);
        if (rc == 0 && q)
            rc = ls_sqlite_next_due(tx, q, &w->next_ms);
        if (rc < 0)
            return rc;
    }
    return 0;
}

int ls_sqlite_promote(struct lq_store *s, struct lq_lanes lanes, size_t max, size_t *n,
                      int64_t *next_ms, lade_err *err)
{
    struct sweep w = {.lanes = lanes, .max = max};
    struct ls_sqlite_op op = {.name = "promote",
                              .point = "sqlite.promote.commit",
                              .run = run_promote,
                              .arg = &w,
                              .jobs = LB_MIN(max, (size_t)LQ_TAKE_MAX)};
    int rc = ls_sqlite_write(ls_sqlite_of(s), &op, err);
    if (rc < 0)
        return rc;
    *n = w.n;
    *next_ms = w.next_ms;
    return 0;
}

/* Whether the queue still has something to trim. */
static int look_for_more(struct ls_sqlite_tx *tx, struct sweep *w, struct ls_sqlite_queue *q)
{
    const struct lq_store_config *c = &tx->s->base.config;
    for (size_t i = 0; i < LB_ARRAY_LEN(ended) && !w->more; i++) {
        const struct lq_keep *keep =
            ended[i] == LADE_STATE_DEAD ? &c->keep_dead : &c->keep_completed;
        struct ls_sqlite_run r;
        int rc = ls_sqlite_run_first(tx, q, ended[i], &r);
        if (rc < 0)
            return rc;
        w->more =
            rc == 0 && (q->count[ended[i]] > keep->count || r.at_ms < tx->now_ms - keep->age_ms);
    }
    return 0;
}

static int trim_queue(struct ls_sqlite_tx *tx, struct sweep *w, struct ls_sqlite_queue *q)
{
    const struct lq_store_config *c = &tx->s->base.config;
    for (size_t i = 0; i < LB_ARRAY_LEN(ended); i++) {
        const struct lq_keep *keep =
            ended[i] == LADE_STATE_DEAD ? &c->keep_dead : &c->keep_completed;
        int64_t before_ms = tx->now_ms - keep->age_ms;
        int rc = ls_sqlite_jobs_drop(tx, q, ended[i], keep->count, before_ms,
                                     (int64_t)(w->max - w->n), &w->n);
        if (rc < 0)
            return rc;
    }
    return w->n == w->max ? look_for_more(tx, w, q) : 0;
}

static int run_trim(struct ls_sqlite_tx *tx, void *arg)
{
    struct sweep *w = arg;
    w->n = 0;
    w->more = false;
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_LOCK_EXPIRED);
    if (st) {
        ls_sqlite_bind(st, 1, tx->now_ms);
        ls_sqlite_bind(st, 2, (int64_t)w->max);
    }
    int rc = ls_sqlite_tx_do(tx, st);
    for (size_t i = 0; i < w->lanes.n && rc == 0; i++) {
        struct ls_sqlite_queue *q;
        rc = ls_sqlite_tx_queue(tx, w->lanes.queue[i], &q);
        if (rc == 0 && q)
            rc = trim_queue(tx, w, q);
        if (rc == 0 && q && q->gated)
            rc = ls_sqlite_keys_trim(tx, q, w->max);
    }
    bool more = false, more_apart = false;
    if (rc == 0)
        rc = ls_sqlite_flows_trim(tx, w->max, &more);
    if (rc == 0)
        rc = ls_sqlite_apart_trim(tx, w->max, &more_apart);
    w->more = w->more || more || more_apart;
    return rc;
}

int ls_sqlite_trim(struct lq_store *s, struct lq_lanes lanes, size_t max, size_t *n, lade_err *err)
{
    struct sweep w = {.lanes = lanes, .max = max};
    struct ls_sqlite_op op = {.name = "trim",
                              .point = "sqlite.trim.commit",
                              .run = run_trim,
                              .arg = &w,
                              .jobs = LB_MIN(max, (size_t)LQ_TAKE_MAX),
                              .frees = true};
    int rc = ls_sqlite_write(ls_sqlite_of(s), &op, err);
    if (rc < 0)
        return rc;
    *n = w.n;
    return w.more ? LADE_MORE : 0;
}
