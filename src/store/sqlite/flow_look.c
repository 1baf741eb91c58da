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
                      struct ls_sqlite_flow_row *f)
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

/* Marks of a part, in the arena. */
static int read_marks(struct ls_sqlite_tx *tx, int64_t num, struct lb_slice *out)
{
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_MARK_GET);
    *out = (struct lb_slice){0};
    if (st)
        ls_sqlite_bind(st, 1, num);
    int rc = ls_sqlite_tx_step(tx, st);
    if (rc <= 0)
        return rc;
    struct lb_slice marks = ls_sqlite_column(st, 0);
    struct lb_mut kept = lb_arena_copy(&tx->arena, marks.p, marks.n);
    (void)sqlite3_reset(st);
    *out = lb_slice_of(kept);
    return kept.p ? 0 : lb_fail_nomem(tx->err, tx->op);
}

/* The nodes of one part. */
static int tell_part(struct ls_sqlite_tx *tx, struct lb_slice part, struct lb_slice marks,
                     int64_t *node, ls_sqlite_node_fn fn, void *ctx)
{
    uint32_t n = ls_sqlite_part_count(part);
    int rc = 0;
    if (n == 0 || !marks.p || marks.n != LS_SQLITE_MARK_BYTES * (size_t)n)
        return LADE_NOT_FOUND;
    for (uint32_t i = 0; i < n && rc == 0; i++) {
        struct ls_sqlite_step step;
        if (!ls_sqlite_part_get(part, i, &step))
            return LADE_NOT_FOUND;
        rc = fn(tx, ctx, (*node)++, &step, ls_sqlite_mark_state(marks.p, i),
                ls_sqlite_mark_missing(marks.p, i));
    }
    return rc;
}

int ls_sqlite_flow_each(struct ls_sqlite_tx *tx, const struct ls_sqlite_flow_row *row,
                        ls_sqlite_node_fn fn, void *ctx)
{
    struct lb_slice marks;
    int64_t from = row->num * LS_SQLITE_FLOW_SPAN, node = 0;
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_PART_ALL);
    if (st) {
        ls_sqlite_bind(st, 1, from);
        ls_sqlite_bind(st, 2, from + row->nodes - 1);
    }
    int rc;
    while ((rc = ls_sqlite_tx_step(tx, st)) == 1) {
        int told = sqlite3_column_int64(st, 0) == from + node ? 0 : LADE_NOT_FOUND;
        if (told == 0)
            told = read_marks(tx, from + node, &marks);
        if (told == 0)
            told = tell_part(tx, ls_sqlite_column(st, 1), marks, &node, fn, ctx);
        if (told != 0) {
            (void)sqlite3_reset(st);
            return told;
        }
    }
    return rc < 0 ? rc : node == row->nodes ? 0 : LADE_NOT_FOUND;
}

struct nodes {
    struct lb_arena *arena;
    struct lq_flow_node_row *node;
    uint32_t n, max;
};

static int add_node(struct ls_sqlite_tx *tx, void *ctx, int64_t at,
                    const struct ls_sqlite_step *step, enum lade_flow_step_state state,
                    uint32_t missing)
{
    struct nodes *all = ctx;
    bool ok = true;
    (void)at;
    (void)missing;
    if (all->n == all->max)
        return LADE_NOT_FOUND;
    all->node[all->n++] = (struct lq_flow_node_row){
        .queue = (const char *)keep(all->arena, lb_slice_str(step->queue), &ok).p,
        .kind = keep(all->arena, step->kind, &ok),
        .state = state,
        .policy = step->policy,
        .dep = keep_numbers(all->arena, step->deps, &ok),
        .n_deps = (uint32_t)ls_sqlite_number_count(step->deps),
    };
    return ok ? 0 : lb_fail_nomem(tx->err, tx->op);
}

static int read_nodes(struct ls_sqlite_tx *tx, struct lb_arena *a, struct lq_flow_row *row,
                      const struct ls_sqlite_flow_row *f)
{
    struct nodes all = {.arena = a, .max = row->n};
    all.node = lb_arena_alloc(a, (row->n + 1) * sizeof(*all.node));
    if (!all.node)
        return lb_fail_nomem(tx->err, tx->op);
    int rc = ls_sqlite_flow_each(tx, f, add_node, &all);
    row->node = all.node;
    return rc == LADE_NOT_FOUND ? ls_sqlite_flow_damaged(tx, (const char *)row->id.p) : rc;
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
    struct ls_sqlite_flow_row f;
    int rc = reserve(tx, out, 1);
    if (rc == 0)
        rc = find_flow(tx, id, &st);
    if (rc != 0)
        return rc;
    bool ok = read_flow(st, &out->arena, &out->row[out->n], &f);
    (void)sqlite3_reset(st);
    if (!ok)
        return lb_fail_nomem(tx->err, tx->op);
    rc = read_nodes(tx, &out->arena, &out->row[out->n], &f);
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
        struct ls_sqlite_flow_row f;
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
    struct ls_sqlite_flow *flow;
    size_t first, max, bytes;
    bool full; /* the last one did not fit any more */
    struct lq_input_vec *out;
};

/* The result of a node, if any: the statement at its row, which is to be reset, or NULL. */
static int find_result(struct ls_sqlite_tx *tx, const struct ls_sqlite_flow *f, int64_t node,
                       sqlite3_stmt **out)
{
    *out = NULL;
    if (!f->row.results)
        return 0;
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_RESULT_GET);
    if (st)
        ls_sqlite_bind(st, 1, f->row.num * LS_SQLITE_FLOW_SPAN + node);
    int rc = ls_sqlite_tx_step(tx, st);
    *out = rc == 1 ? st : NULL;
    return LB_MIN(rc, 0);
}

static int add_input(struct ls_sqlite_tx *tx, struct inputs *in, int64_t node,
                     enum lade_flow_step_state state)
{
    struct lq_input_vec *out = in->out;
    sqlite3_stmt *st = NULL;
    bool ok = true;
    int rc = find_result(tx, in->flow, node, &st);
    if (rc < 0)
        return rc;
    struct lb_slice result = st ? ls_sqlite_column(st, 0) : (struct lb_slice){0};
    in->full = out->n == in->max || (out->n > 0 && in->bytes + result.n > LQ_INPUT_BYTES);
    if (!in->full) {
        in->bytes += result.n;
        out->input[out->n++] =
            (struct lq_input){(uint32_t)node, state, keep(out->arena, result, &ok)};
    }
    if (st)
        (void)sqlite3_reset(st);
    return ok ? 0 : lb_fail_nomem(tx->err, tx->op);
}

static int read_state(struct ls_sqlite_tx *tx, struct ls_sqlite_flow *f, int64_t node,
                      enum lade_flow_step_state *state)
{
    struct ls_sqlite_part *part = NULL;
    int rc = ls_sqlite_flow_part(tx, f, node, &part);
    if (rc == 0)
        *state = ls_sqlite_mark_state(part->marks, (uint32_t)(node - part->first));
    return rc;
}

/* The results of the numbers in deps. */
static int read_results(struct ls_sqlite_tx *tx, struct inputs *in, struct lb_slice deps)
{
    int rc = 0;
    in->out->total = ls_sqlite_number_count(deps);
    for (size_t i = in->first; i < in->out->total && !in->full && rc == 0; i++) {
        enum lade_flow_step_state state = LADE_STEP_WAITING;
        int64_t node = ls_sqlite_number_at(deps, i);
        rc = read_state(tx, in->flow, node, &state);
        if (rc == 0)
            rc = add_input(tx, in, node, state);
    }
    return rc;
}

/* Of on_failure: the nodes that are down. */
static int read_down(struct ls_sqlite_tx *tx, struct inputs *in)
{
    int rc = 0;
    size_t total = 0;
    for (int64_t node = 0; node < in->flow->row.steps && rc == 0; node++) {
        enum lade_flow_step_state state = LADE_STEP_WAITING;
        rc = read_state(tx, in->flow, node, &state);
        if (rc < 0 || !lq_node_is_down(state))
            continue;
        if (total++ >= in->first && !in->full)
            rc = add_input(tx, in, node, state);
    }
    in->out->total = total;
    return rc;
}

static int read_inputs(struct ls_sqlite_tx *tx, struct lb_slice id, uint32_t node,
                       struct inputs *in)
{
    struct ls_sqlite_part *part = NULL;
    struct ls_sqlite_step step;
    int rc = ls_sqlite_flow_find(tx, id, &in->flow);
    if (rc != 0)
        return rc;
    if (node >= in->flow->row.nodes)
        return LADE_NOT_FOUND;
    if (node >= in->flow->row.steps)
        return read_down(tx, in);
    rc = ls_sqlite_flow_part(tx, in->flow, node, &part);
    if (rc < 0)
        return rc;
    if (!ls_sqlite_part_get(part->data, (uint32_t)(node - part->first), &step))
        return ls_sqlite_flow_damaged(tx, in->flow->id);
    return read_results(tx, in, step.deps);
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
