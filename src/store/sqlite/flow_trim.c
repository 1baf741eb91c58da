/* flow_trim.c - flows go: those that ended beyond number or age, and those an operator removes */
#include "base/base.h"
#include "store/sqlite/flow.h"
#include "store/sqlite/sqlite_impl.h"

#define UNCOUNTED_MAX 64 /* flows that may end before they are counted again */

static int delete_range(struct ls_sqlite_tx *tx, enum ls_sqlite_sql which,
                        const struct ls_sqlite_flow_row *row)
{
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, which);
    if (st) {
        ls_sqlite_bind(st, 1, row->num * LS_SQLITE_FLOW_SPAN);
        ls_sqlite_bind(st, 2, row->num * LS_SQLITE_FLOW_SPAN + row->nodes - 1);
    }
    return ls_sqlite_tx_do(tx, st);
}

int ls_sqlite_flow_delete(struct ls_sqlite_tx *tx, struct lb_slice id,
                          const struct ls_sqlite_flow_row *row)
{
    int rc = delete_range(tx, LS_SQLITE_FLOW_DEL_PARTS, row);
    if (rc == 0)
        rc = delete_range(tx, LS_SQLITE_FLOW_DEL_MARKS, row);
    if (rc == 0 && row->results)
        rc = delete_range(tx, LS_SQLITE_FLOW_DEL_RESULTS, row);
    if (rc < 0)
        return rc;
    ls_sqlite_flows_count(tx, row->state, LADE_FLOW_RUNNING);
    int64_t num = row->num;
    ls_sqlite_flow_drop(tx, id);
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_FLOW_DEL);
    if (st)
        ls_sqlite_bind(st, 1, num);
    return ls_sqlite_tx_do(tx, st);
}

void ls_sqlite_flows_count(struct ls_sqlite_tx *tx, int64_t from, int64_t to)
{
    if (from != LADE_FLOW_RUNNING && tx->n_flows[from] > 0)
        tx->n_flows[from]--;
    if (to != LADE_FLOW_RUNNING && tx->n_flows[to] >= 0)
        tx->n_flows[to]++;
}

static int count_ended(struct ls_sqlite_tx *tx, int state)
{
    if (tx->n_flows[state] >= 0)
        return 0;
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_FLOW_COUNT);
    if (st)
        ls_sqlite_bind(st, 1, state);
    int rc = ls_sqlite_tx_step(tx, st);
    if (rc == 1) {
        tx->n_flows[state] = sqlite3_column_int64(st, 0);
        (void)sqlite3_reset(st);
    }
    return LB_MIN(rc, 0);
}

/* The oldest of a state. 1, or 0 when there is none. */
static int find_oldest(struct ls_sqlite_tx *tx, int state, struct ls_sqlite_flow_row *row,
                       char id[LADE_FLOW_ID_MAX + 1])
{
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_FLOW_OLDEST);
    if (st)
        ls_sqlite_bind(st, 1, state);
    int rc = ls_sqlite_tx_step(tx, st);
    if (rc <= 0)
        return rc;
    ls_sqlite_flow_read(st, row);
    (void)snprintf(id, LADE_FLOW_ID_MAX + 1, "%s", (const char *)sqlite3_column_text(st, 1));
    (void)sqlite3_reset(st);
    return 1;
}

/* Removes the oldest of a state beyond `keep` or ended before before_ms, while *left allows; *more: there are more. */
static int drop_oldest(struct ls_sqlite_tx *tx, int state, int64_t before_ms, size_t *left,
                       bool *more)
{
    const struct lq_store_config *c = &tx->s->base.config;
    int64_t keep = state == LADE_FLOW_FAILED ? c->keep_dead.count : c->keep_completed.count;
    int rc = count_ended(tx, state);
    while (rc == 0 && tx->n_flows[state] > (before_ms == INT64_MIN ? keep : 0)) {
        struct ls_sqlite_flow_row row;
        char id[LADE_FLOW_ID_MAX + 1];
        rc = find_oldest(tx, state, &row, id);
        if (rc <= 0)
            return rc;
        if (tx->n_flows[state] <= keep && row.finished_ms >= before_ms)
            return 0;
        if (*left == 0) {
            *more = true;
            return 0;
        }
        rc = ls_sqlite_flow_delete(tx, lb_slice_str(id), &row);
        --*left;
    }
    return rc;
}

int ls_sqlite_flows_retain(struct ls_sqlite_tx *tx, size_t n)
{
    bool more = false;
    size_t left = n + LS_SQLITE_GROUP_MAX;
    int rc = 0;
    /* Where others write too, counting for each flow that ends would cost as much as there are; who trims comes by anyway. */
    tx->flows_uncounted += n;
    if (tx->n_flows[LADE_FLOW_COMPLETED] < 0 && tx->flows_uncounted < UNCOUNTED_MAX)
        return 0;
    tx->flows_uncounted = 0;
    for (int state = LADE_FLOW_COMPLETED; state < LADE_N_FLOW_STATES && rc == 0; state++)
        rc = drop_oldest(tx, state, INT64_MIN, &left, &more);
    return rc;
}

int ls_sqlite_flows_trim(struct ls_sqlite_tx *tx, size_t max, bool *more)
{
    const struct lq_store_config *c = &tx->s->base.config;
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_FLOW_ANY);
    int rc = ls_sqlite_tx_step(tx, st);
    if (rc <= 0)
        return rc;
    (void)sqlite3_reset(st);
    rc = 0;
    for (int state = LADE_FLOW_COMPLETED; state < LADE_N_FLOW_STATES && rc == 0; state++) {
        int64_t age = state == LADE_FLOW_FAILED ? c->keep_dead.age_ms : c->keep_completed.age_ms;
        rc = drop_oldest(tx, state, tx->now_ms - age, &max, more);
    }
    return rc;
}
