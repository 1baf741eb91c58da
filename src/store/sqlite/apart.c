#include "store/sqlite/apart.h"

#include "base/base.h"
#include "base/err.h"
#include "base/fault.h"

int ls_sqlite_apart_add(struct ls_sqlite_tx *tx, const struct ls_sqlite_queue *q,
                        const struct lq_settle *it, size_t k)
{
    int rc = 0;
    for (size_t i = 0; i < k && rc == 0; i++) {
        if (!ls_sqlite_is_apart(&it[i]))
            continue;
        int64_t until;
        if (__builtin_add_overflow(tx->now_ms, it[i].result_ttl_ms, &until))
            until = INT64_MAX;
        sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_APART_SET);
        if (!st)
            return ls_sqlite_tx_fail(tx);
        ls_sqlite_bind(st, 1, q->num);
        ls_sqlite_bind_text(st, 2, it[i].id);
        ls_sqlite_bind(st, 3, tx->now_ms);
        ls_sqlite_bind(st, 4, until);
        ls_sqlite_bind_blob(st, 5, it[i].result);
        rc = ls_sqlite_tx_do(tx, st);
        LB_FAULT("sqlite.settle.apart");
    }
    return rc;
}

int ls_sqlite_apart_get(struct ls_sqlite_tx *tx, int64_t queue, struct lb_slice id, int64_t at_ms,
                        struct lb_arena *arena, struct lb_mut *out)
{
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_APART_GET);
    if (st) {
        ls_sqlite_bind(st, 1, queue);
        ls_sqlite_bind_text(st, 2, id);
        ls_sqlite_bind(st, 3, tx->now_ms);
        ls_sqlite_bind(st, 4, at_ms);
    }
    int rc = ls_sqlite_tx_step(tx, st);
    if (rc <= 0)
        return rc;
    struct lb_slice b = ls_sqlite_column(st, 0);
    *out = lb_arena_copy(arena, b.p, b.n);
    (void)sqlite3_reset(st);
    return out->p ? 0 : lb_fail_nomem(tx->err, tx->op);
}

int ls_sqlite_apart_del(struct ls_sqlite_tx *tx, int64_t queue, struct lb_slice id)
{
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_APART_DEL);
    if (!st)
        return ls_sqlite_tx_fail(tx);
    ls_sqlite_bind(st, 1, queue);
    ls_sqlite_bind_text(st, 2, id);
    return ls_sqlite_tx_do(tx, st);
}

int ls_sqlite_apart_drop(struct ls_sqlite_tx *tx, int64_t queue)
{
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_APART_DROP);
    if (!st)
        return ls_sqlite_tx_fail(tx);
    ls_sqlite_bind(st, 1, queue);
    return ls_sqlite_tx_do(tx, st);
}

int ls_sqlite_apart_trim(struct ls_sqlite_tx *tx, size_t max, bool *more)
{
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_APART_OVER);
    if (!st)
        return ls_sqlite_tx_fail(tx);
    ls_sqlite_bind(st, 1, tx->now_ms);
    ls_sqlite_bind(st, 2, (int64_t)max);
    int rc = ls_sqlite_tx_do(tx, st);
    *more = rc == 0 && max > 0 && sqlite3_changes64(tx->db->h) >= (int64_t)max;
    return rc;
}
