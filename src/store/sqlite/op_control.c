#include "store/sqlite/orders.h"

#include "base/err.h"
#include "store/sqlite/lease.h"
#include "store/sqlite/sqlite_impl.h"

static int tell(struct ls_sqlite_tx *tx, int64_t worker, const struct lq_report *report)
{
    int rc = 0;
    if (report->about.n > 0) {
        sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_CONTROL_ABOUT);
        if (!st)
            return ls_sqlite_tx_fail(tx);
        ls_sqlite_bind(st, 1, worker);
        ls_sqlite_bind_blob(st, 2, report->about);
        rc = ls_sqlite_tx_do(tx, st);
    }
    if (rc < 0 || report->stacks.n == 0)
        return rc;
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_CONTROL_STACKS);
    if (!st)
        return ls_sqlite_tx_fail(tx);
    ls_sqlite_bind(st, 1, worker);
    ls_sqlite_bind_blob(st, 2, report->stacks);
    ls_sqlite_bind(st, 3, (int64_t)report->made);
    ls_sqlite_bind(st, 4, tx->now_ms);
    return ls_sqlite_tx_do(tx, st);
}

static int read_orders(struct ls_sqlite_tx *tx, int64_t worker, struct lq_orders *out)
{
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_CONTROL_ORDERS);
    if (st)
        ls_sqlite_bind(st, 1, worker);
    int rc = ls_sqlite_tx_step(tx, st);
    if (rc <= 0)
        return rc;
    out->wish = sqlite3_column_int64(st, 0);
    out->asked = (uint64_t)sqlite3_column_int64(st, 1);
    (void)sqlite3_reset(st);
    return 0;
}

int ls_sqlite_control_beat(struct ls_sqlite_tx *tx, int64_t worker, const struct lq_report *report,
                           struct lq_orders *orders)
{
    int rc = report ? tell(tx, worker, report) : 0;
    return rc == 0 && orders ? read_orders(tx, worker, orders) : rc;
}

struct order {
    const char *worker;
    enum lade_worker_order order;
};

static int run_order(struct ls_sqlite_tx *tx, void *arg)
{
    const struct order *o = arg;
    struct lq_orders now = {0};
    int64_t num = 0;
    int rc = ls_sqlite_worker_live(tx, o->worker, &num);
    if (rc != 0)
        return rc < 0 ? rc : LADE_NOT_FOUND;
    rc = read_orders(tx, num, &now);
    bool asks = o->order == LADE_WORKER_STACKS;
    if (rc == 0 && !asks && now.wish == LADE_WORKER_STOP)
        return o->order == LADE_WORKER_STOP ? 0 : LADE_WRONG_STATE;
    sqlite3_stmt *st =
        rc == 0 ? ls_sqlite_tx_stmt(tx, asks ? LS_SQLITE_CONTROL_ASK : LS_SQLITE_CONTROL_WISH)
                : NULL;
    if (!st)
        return rc < 0 ? rc : ls_sqlite_tx_fail(tx);
    ls_sqlite_bind(st, 1, num);
    if (!asks)
        ls_sqlite_bind(st, 2, o->order);
    return ls_sqlite_tx_do(tx, st);
}

static int give_order(struct lq_store *s, const char *worker, enum lade_worker_order order,
                      lade_err *err)
{
    struct order o = {worker, order};
    struct ls_sqlite_op op = {
        .name = "worker", .point = "sqlite.order.commit", .run = run_order, .arg = &o, .jobs = 1};
    return ls_sqlite_write(ls_sqlite_of(s), &op, err);
}

static int read_control(struct ls_sqlite_tx *tx, const char *worker, struct lb_arena *arena,
                        struct lq_control *out)
{
    struct lq_control c = {0};
    int64_t num = 0;
    int rc = ls_sqlite_worker_live(tx, worker, &num);
    sqlite3_stmt *st = rc == 0 ? ls_sqlite_tx_stmt(tx, LS_SQLITE_CONTROL_GET) : NULL;
    if (rc == 0 && st)
        ls_sqlite_bind(st, 1, num);
    rc = rc == 0 ? ls_sqlite_tx_step(tx, st) : LB_MIN(rc, 0);
    if (rc == 1) {
        c.orders.wish = sqlite3_column_int64(st, 0);
        c.orders.asked = (uint64_t)sqlite3_column_int64(st, 1);
        c.made = (uint64_t)sqlite3_column_int64(st, 2);
        struct lb_slice about = ls_sqlite_column(st, 3), stacks = ls_sqlite_column(st, 4);
        c.about = lb_slice_of(lb_arena_copy(arena, about.p, about.n));
        c.stacks = lb_slice_of(lb_arena_copy(arena, stacks.p, stacks.n));
        c.stacks_ms = sqlite3_column_int64(st, 5);
        (void)sqlite3_reset(st);
        rc = c.about.p && c.stacks.p ? 0 : lb_fail_nomem(tx->err, tx->op);
    }
    if (rc >= 0)
        *out = c;
    return rc;
}

static int look(struct lq_store *s, const char *worker, struct lb_arena *arena,
                struct lq_control *out, lade_err *err)
{
    struct ls_sqlite *ss = ls_sqlite_of(s);
    struct ls_sqlite_tx tx;
    int rc = ls_sqlite_read_enter(ss, &tx, "worker", err);
    if (rc == 0)
        rc = read_control(&tx, worker, arena, out);
    return ls_sqlite_read_leave(ss, &tx, rc);
}

const struct lq_control_ops ls_sqlite_control_ops = {.order = give_order, .look = look};
