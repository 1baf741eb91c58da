/* flow_look.c - flows as operators and handlers see them; on the connection for readers, as op_list.c */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/err.h"
#include "queue/flow_store.h"
#include "store/sqlite/flow.h"
#include "store/sqlite/sqlite_impl.h"

static struct lb_slice keep(struct lb_arena *a, struct lb_slice from, bool *ok)
{
    struct lb_mut m = lb_arena_copy(a, from.p, from.n);
    *ok = *ok && m.p;
    return lb_slice_of(m);
}

/* A row of columns LS_SQLITE_FLOW; false when out of memory. */
static bool read_flow(sqlite3_stmt *st, struct lb_arena *a, struct lq_flow_row *row,
                      struct ls_sqlite_flow *f)
{
    bool ok = true;
    ls_sqlite_flow_read(st, f);
    *row = (struct lq_flow_row){
        .id = keep(a, ls_sqlite_column(st, 1), &ok),
        .name = keep(a, ls_sqlite_column(st, 2), &ok),
        .state = (enum lade_flow_state)f->state,
        .created_ms = f->created_ms,
        .finished_ms = f->finished_ms,
        .cancel_siblings = f->siblings,
        .n = (uint32_t)f->nodes,
        .n_steps = (uint32_t)f->steps,
    };
    return ok;
}

static const uint32_t *keep_numbers(struct lb_arena *a, struct lb_slice b, bool *ok)
{
    size_t n = ls_sqlite_number_count(b);
    uint32_t *v = lb_arena_alloc(a, (n + 1) * sizeof(*v));
    for (size_t i = 0; v && i < n; i++)
        v[i] = ls_sqlite_number_at(b, i);
    *ok = *ok && v;
    return v;
}

static int read_nodes(struct ls_sqlite_tx *tx, struct lb_arena *a, struct lq_flow_row *row,
                      int64_t num)
{
    struct lq_flow_node_row *node = lb_arena_alloc(a, (row->n + 1) * sizeof(*node));
    if (!node)
        return lb_fail_nomem(tx->err, tx->op);
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_STEP_LOOK);
    if (st) {
        ls_sqlite_bind(st, 1, num * LS_SQLITE_FLOW_SPAN);
        ls_sqlite_bind(st, 2, num * LS_SQLITE_FLOW_SPAN + row->n - 1);
    }
    int rc;
    uint32_t n = 0;
    while ((rc = ls_sqlite_tx_step(tx, st)) == 1 && n < row->n) {
        bool ok = true;
        struct lb_slice deps = ls_sqlite_column(st, 4);
        node[n++] = (struct lq_flow_node_row){
            .queue = (const char *)keep(a, ls_sqlite_column(st, 0), &ok).p,
            .kind = keep(a, ls_sqlite_column(st, 1), &ok),
            .state = (enum lade_flow_step_state)sqlite3_column_int64(st, 2),
            .policy = (enum lade_flow_policy)sqlite3_column_int64(st, 3),
            .dep = keep_numbers(a, deps, &ok),
            .n_deps = (uint32_t)ls_sqlite_number_count(deps),
        };
        if (!ok) {
            (void)sqlite3_reset(st);
            return lb_fail_nomem(tx->err, tx->op);
        }
    }
    row->node = node;
    row->n = LB_MIN(row->n, n);
    return rc;
}

/* Room for n more rows. */
static int reserve(struct ls_sqlite_tx *tx, struct lq_flow_row_vec *out, size_t n)
{
    struct lq_flow_row *row = lb_arena_alloc(&out->arena, (out->n + n) * sizeof(*row));
    if (!row)
        return lb_fail_nomem(tx->err, tx->op);
    if (out->n > 0)
        memcpy(row, out->row, out->n * sizeof(*row));
    out->row = row;
    return 0;
}

/* The flow's statement at its row; 0 (the caller resets), LADE_NOT_FOUND or a failure. */
static int find_flow(struct ls_sqlite_tx *tx, struct lb_slice id, sqlite3_stmt **st)
{
    *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_FLOW_GET);
    if (*st)
        ls_sqlite_bind_text(*st, 1, id);
    int rc = ls_sqlite_tx_step(tx, *st);
    return rc < 0 ? rc : rc == 1 ? 0 : LADE_NOT_FOUND;
}

static int get_flow(struct ls_sqlite_tx *tx, struct lb_slice id, struct lq_flow_row_vec *out)
{
    sqlite3_stmt *st = NULL;
    struct ls_sqlite_flow f;
    int rc = reserve(tx, out, 1);
    if (rc == 0)
        rc = find_flow(tx, id, &st);
    if (rc != 0)
        return rc;
    bool ok = read_flow(st, &out->arena, &out->row[out->n], &f);
    (void)sqlite3_reset(st);
    if (!ok)
        return lb_fail_nomem(tx->err, tx->op);
    rc = read_nodes(tx, &out->arena, &out->row[out->n], f.num);
    out->n += rc == 0;
    return rc;
}

int ls_sqlite_flow_get(struct lq_store *s, struct lb_slice id, struct lq_flow_row_vec *out,
                       lade_err *err)
{
    struct ls_sqlite *ss = ls_sqlite_of(s);
    struct ls_sqlite_tx tx;
    int rc = ls_sqlite_read_enter(ss, &tx, "flow", err);
    if (rc == 0)
        rc = get_flow(&tx, id, out);
    return ls_sqlite_read_leave(ss, &tx, rc);
}

static int list_flows(struct ls_sqlite_tx *tx, int64_t *below, size_t limit,
                      struct lq_flow_row_vec *out)
{
    int rc = reserve(tx, out, limit);
    sqlite3_stmt *st = rc < 0 ? NULL : ls_sqlite_tx_stmt(tx, LS_SQLITE_FLOW_BELOW);
    if (rc < 0)
        return rc;
    if (st) {
        ls_sqlite_bind(st, 1, *below);
        ls_sqlite_bind(st, 2, (int64_t)limit);
    }
    while ((rc = ls_sqlite_tx_step(tx, st)) == 1) {
        struct ls_sqlite_flow f;
        if (!read_flow(st, &out->arena, &out->row[out->n], &f)) {
            (void)sqlite3_reset(st);
            return lb_fail_nomem(tx->err, tx->op);
        }
        out->n++;
        *below = f.num;
    }
    return rc;
}

int ls_sqlite_flow_list(struct lq_store *s, lade_cursor *cursor, size_t limit,
                        struct lq_flow_row_vec *out, lade_err *err)
{
    struct ls_sqlite *ss = ls_sqlite_of(s);
    struct ls_sqlite_tx tx;
    int64_t below = INT64_MAX;
    size_t before = out->n;
    if (cursor->at[0])
        below = strtoll(cursor->at, NULL, 10);
    if (below <= 0)
        return lb_fail(err, LADE_EINVAL, "flows", "the cursor is none of a listing of flows");
    int rc = ls_sqlite_read_enter(ss, &tx, "flows", err);
    if (rc == 0)
        rc = list_flows(&tx, &below, limit, out);
    if (rc < 0) {
        out->n = before;
        return ls_sqlite_read_leave(ss, &tx, rc);
    }
    cursor->done = out->n - before < limit;
    (void)snprintf(cursor->at, sizeof(cursor->at), "%" PRId64, below);
    return ls_sqlite_read_leave(ss, &tx, out->n == before ? LADE_EMPTY : 0);
}

/* inputs ----------------------------------------------------------------------------------------------------------- */

struct inputs {
    int64_t num;
    size_t first, max, bytes;
    struct lq_input_vec *out;
};

/* One input from the columns state and result; false when out of memory. Sets *full when it does not fit any more. */
static bool add_input(struct inputs *in, sqlite3_stmt *st, int column, int64_t node, bool *full)
{
    struct lq_input_vec *out = in->out;
    struct lb_slice result = ls_sqlite_column(st, column + 1);
    bool ok = true;
    *full = out->n == in->max || (out->n > 0 && in->bytes + result.n > LQ_INPUT_BYTES);
    if (*full)
        return true;
    in->bytes += result.n;
    out->input[out->n++] = (struct lq_input){
        (uint32_t)node, (enum lade_flow_step_state)sqlite3_column_int64(st, column),
        keep(out->arena, result, &ok)};
    return ok;
}

/* The results of the numbers in deps. */
static int read_results(struct ls_sqlite_tx *tx, struct inputs *in, struct lb_slice deps)
{
    bool full = false;
    in->out->total = ls_sqlite_number_count(deps);
    for (size_t i = in->first; i < in->out->total && !full; i++) {
        int64_t node = ls_sqlite_number_at(deps, i);
        sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_NODE_RESULT);
        if (st)
            ls_sqlite_bind(st, 1, in->num * LS_SQLITE_FLOW_SPAN + node);
        int rc = ls_sqlite_tx_step(tx, st);
        if (rc < 0)
            return rc;
        bool ok = rc == 0 || add_input(in, st, 0, node, &full);
        if (rc == 1)
            (void)sqlite3_reset(st);
        if (!ok)
            return lb_fail_nomem(tx->err, tx->op);
    }
    return 0;
}

/* Of on_failure: the nodes that are down. */
static int read_down(struct ls_sqlite_tx *tx, struct inputs *in, int64_t steps)
{
    int rc;
    bool full = false;
    size_t total = 0;
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_NODE_DOWN);
    if (st) {
        ls_sqlite_bind(st, 1, in->num * LS_SQLITE_FLOW_SPAN);
        ls_sqlite_bind(st, 2, in->num * LS_SQLITE_FLOW_SPAN + steps - 1);
    }
    while ((rc = ls_sqlite_tx_step(tx, st)) == 1) {
        int64_t node = sqlite3_column_int64(st, 0) - in->num * LS_SQLITE_FLOW_SPAN;
        if (total++ < in->first || full)
            continue;
        if (!add_input(in, st, 1, node, &full)) {
            (void)sqlite3_reset(st);
            return lb_fail_nomem(tx->err, tx->op);
        }
    }
    in->out->total = total;
    return rc;
}

static int read_inputs(struct ls_sqlite_tx *tx, struct lb_slice id, uint32_t node,
                       struct inputs *in)
{
    sqlite3_stmt *st = NULL;
    struct ls_sqlite_flow f;
    int rc = find_flow(tx, id, &st);
    if (rc != 0)
        return rc;
    ls_sqlite_flow_read(st, &f);
    (void)sqlite3_reset(st);
    in->num = f.num;
    if (node >= f.nodes)
        return LADE_NOT_FOUND;
    if (node >= f.steps)
        return read_down(tx, in, f.steps);
    st = ls_sqlite_tx_stmt(tx, LS_SQLITE_STEP_DEPS);
    if (st)
        ls_sqlite_bind(st, 1, f.num * LS_SQLITE_FLOW_SPAN + node);
    rc = ls_sqlite_tx_step(tx, st);
    if (rc <= 0)
        return rc < 0 ? rc : LADE_NOT_FOUND;
    rc = read_results(tx, in, ls_sqlite_column(st, 0));
    (void)sqlite3_reset(st);
    return rc;
}

int ls_sqlite_flow_inputs(struct lq_store *s, struct lb_slice id, uint32_t node, size_t first,
                          size_t max, struct lq_input_vec *out, lade_err *err)
{
    struct ls_sqlite *ss = ls_sqlite_of(s);
    struct ls_sqlite_tx tx;
    struct inputs in = {.first = first, .max = max, .out = out};
    out->n = out->total = 0;
    out->input = lb_arena_alloc(out->arena, (max + 1) * sizeof(*out->input));
    if (!out->input)
        return lb_fail_nomem(err, "inputs");
    int rc = ls_sqlite_read_enter(ss, &tx, "inputs", err);
    if (rc == 0)
        rc = read_inputs(&tx, id, node, &in);
    return ls_sqlite_read_leave(ss, &tx, rc);
}
