/* op_flow.c - flows: put and act; how they move is in flow.c, how they are looked at in flow_look.c */
#include <string.h>

#include "base/base.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/fault.h"
#include "queue/flow_store.h"
#include "store/sqlite/flow.h"
#include "store/sqlite/sqlite_impl.h"

/* put -------------------------------------------------------------------------------------------------------------- */

struct put {
    struct lq_flow *flow;
    struct lb_buf part;
};

static int64_t count_parts(const struct lq_flow *f)
{
    int64_t n = 0;
    for (uint32_t i = 0; i < f->n; n++)
        i += ls_sqlite_part_measure(&f->node[i], f->n - i);
    return n;
}

static struct ls_sqlite_flow_row row_of(const struct ls_sqlite_tx *tx, const struct lq_flow *f)
{
    struct ls_sqlite_flow_row row = {.steps = f->n_steps,
                                     .nodes = f->n,
                                     .siblings = f->cancel_siblings,
                                     .created_ms = tx->now_ms,
                                     .parts = count_parts(f)};
    for (uint32_t i = 0; i < f->n_steps; i++)
        row.open += f->node[i].n_next == 0;
    return row;
}

/* The row of the flow; its number in row->num. 0 or LADE_DUPLICATE. */
static int add_flow(struct ls_sqlite_tx *tx, const struct lq_flow *f,
                    struct ls_sqlite_flow_row *row)
{
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_FLOW_ADD);
    if (!st)
        return ls_sqlite_tx_fail(tx);
    ls_sqlite_bind_text(st, 1, f->id);
    ls_sqlite_bind_text(st, 2, f->name.n > 0 ? f->name : lb_slice("", 0));
    ls_sqlite_bind(st, 3, row->steps);
    ls_sqlite_bind(st, 4, row->nodes);
    ls_sqlite_bind(st, 5, row->open);
    ls_sqlite_bind(st, 6, row->siblings);
    ls_sqlite_bind(st, 7, row->created_ms);
    ls_sqlite_bind(st, 8, row->parts);
    int rc = ls_sqlite_tx_do(tx, st);
    if (rc < 0)
        return rc;
    row->num = sqlite3_last_insert_rowid(tx->db->h);
    return sqlite3_changes(tx->db->h) == 0 ? LADE_DUPLICATE : 0;
}

static int add_row(struct ls_sqlite_tx *tx, enum ls_sqlite_sql which, int64_t num,
                   struct lb_slice data)
{
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, which);
    if (!st)
        return ls_sqlite_tx_fail(tx);
    ls_sqlite_bind(st, 1, num);
    ls_sqlite_bind_blob(st, 2, data);
    return ls_sqlite_tx_do(tx, st);
}

/* The nodes [i, i + n) as a part, with its marks; the first is also kept in memory. */
static int add_part(struct ls_sqlite_tx *tx, struct put *p, const struct ls_sqlite_flow_row *row,
                    uint32_t i, uint32_t n)
{
    uint8_t marks[LS_SQLITE_MARK_BYTES * LS_SQLITE_PART_NODES];
    int64_t num = row->num * LS_SQLITE_FLOW_SPAN + i;
    lb_buf_clear(&p->part);
    ls_sqlite_part_pack(&p->part, &p->flow->node[i], n);
    if (p->part.failed)
        return lb_fail_nomem(tx->err, tx->op);
    ls_sqlite_marks_make(marks, &p->flow->node[i], n, LB_MAX(p->flow->n_steps, i) - i);
    int rc = add_row(tx, LS_SQLITE_PART_ADD, num, lb_buf_slice(&p->part));
    if (rc == 0)
        rc =
            add_row(tx, LS_SQLITE_MARK_ADD, num, lb_slice(marks, LS_SQLITE_MARK_BYTES * (size_t)n));
    if (rc == 0 && i == 0)
        ls_sqlite_flow_keep(tx, p->flow->id, row, lb_buf_slice(&p->part), marks);
    return rc;
}

static int put_first(struct ls_sqlite_tx *tx, const struct lq_flow *f)
{
    size_t n = 0;
    struct lq_put *put = lb_arena_alloc(&tx->arena, f->n_steps * sizeof(*put));
    if (!put)
        return lb_fail_nomem(tx->err, tx->op);
    for (uint32_t i = 0; i < f->n_steps; i++) {
        const struct lq_flow_node *node = &f->node[i];
        char id[LADE_ID_MAX + 1];
        if (node->n_deps > 0)
            continue;
        struct lb_mut kept = lb_arena_copy(&tx->arena, id, lq_flow_join(id, f->id, i));
        if (!kept.p)
            return lb_fail_nomem(tx->err, tx->op);
        put[n++] = (struct lq_put){.queue = node->queue,
                                   .id = lb_slice_of(kept),
                                   .body = node->body,
                                   .level = node->level,
                                   .when = node->when,
                                   .when_ms = node->when_ms};
    }
    return ls_sqlite_put_run(tx, put, n);
}

static int run_put(struct ls_sqlite_tx *tx, void *arg)
{
    struct put *p = arg;
    const struct lq_flow *f = p->flow;
    struct ls_sqlite_flow_row row = row_of(tx, f);
    int rc = add_flow(tx, f, &row);
    p->flow->outcome = rc == LADE_DUPLICATE ? rc : 0;
    if (rc != 0)
        return LB_MIN(rc, 0);
    tx->grows = true;
    for (uint32_t i = 0, n = 0; i < f->n && rc == 0; i += n) {
        n = ls_sqlite_part_measure(&f->node[i], f->n - i);
        rc = add_part(tx, p, &row, i, n);
    }
    LB_FAULT("sqlite.flow.steps");
    return rc < 0 ? rc : put_first(tx, f);
}

int ls_sqlite_flow_put(struct lq_store *s, struct lq_flow *flow, lade_err *err)
{
    struct put p = {.flow = flow};
    struct ls_sqlite_op op = {
        .name = "flow", .point = "sqlite.flow.commit", .run = run_put, .arg = &p, .jobs = flow->n};
    lb_buf_init(&p.part);
    int rc = ls_sqlite_write(ls_sqlite_of(s), &op, err);
    lb_buf_fini(&p.part);
    return rc;
}

/* act -------------------------------------------------------------------------------------------------------------- */

struct act {
    struct lb_slice id;
    enum lade_flow_verb verb;
};

static int cancel(struct ls_sqlite_flows *fs)
{
    struct ls_sqlite_flow_row *row = &fs->flow->row;
    int rc = 0;
    if (row->state == LADE_FLOW_COMPLETED || row->state == LADE_FLOW_CANCELLED)
        return LADE_WRONG_STATE;
    ls_sqlite_flow_enter(fs, LADE_FLOW_CANCELLED);
    for (int64_t i = 0; i < row->nodes && rc == 0; i++) {
        struct ls_sqlite_node n;
        rc = ls_sqlite_flow_node(fs, i, &n);
        if (rc < 0)
            return rc;
        bool is_step = i < row->steps;
        bool enqueued = ls_sqlite_node_state(&n) == LADE_STEP_ENQUEUED;
        if (!enqueued && (ls_sqlite_node_state(&n) != LADE_STEP_WAITING || !is_step))
            continue;
        row->failed += is_step && n.step.policy == LADE_FLOW_FAIL;
        ls_sqlite_flow_set_node(fs, &n, LADE_STEP_CANCELLED);
        if (enqueued)
            rc = ls_sqlite_flow_stop_job(fs, i, &n);
    }
    return rc;
}

/* The on_failure job may run once more; what is left of an old one goes. */
static int rearm(struct ls_sqlite_flows *fs)
{
    struct ls_sqlite_flow_job j;
    struct ls_sqlite_node n;
    int64_t node = fs->flow->row.steps;
    if (fs->flow->row.nodes == node)
        return 0;
    int rc = ls_sqlite_flow_node(fs, node, &n);
    if (rc == 0)
        rc = ls_sqlite_flow_find_job(fs, node, &n, &j);
    if (rc < 0 || (rc == 0 && !ls_sqlite_state_is_ended(j.run.state)))
        return rc;
    if (rc == 0) {
        rc = ls_sqlite_run_cut(fs->tx, j.q, &j.run, j.seq - j.run.job, 1);
        if (rc == 0)
            rc = ls_sqlite_jobs_del(fs->tx, j.seq, 1);
    }
    if (rc < 0)
        return rc;
    ls_sqlite_flow_set_node(fs, &n, LADE_STEP_WAITING);
    return ls_sqlite_flow_set_result(fs, node, (struct lb_slice){0});
}

/* Runs again: as the job that is there, or as a new one from the flow's own copy. */
static int run_again(struct ls_sqlite_flows *fs, int64_t node, const struct ls_sqlite_node *n)
{
    struct ls_sqlite_flow_job j;
    int rc = ls_sqlite_flow_find_job(fs, node, n, &j);
    if (rc == LADE_NOT_FOUND)
        return ls_sqlite_flow_launch(fs, node, n);
    if (rc == 0 && ls_sqlite_state_is_ended(j.run.state))
        rc = ls_sqlite_job_revive(fs->tx, j.q, &j.run, j.seq - j.run.job, 1);
    ls_sqlite_flow_set_node(fs, n, LADE_STEP_ENQUEUED);
    return rc;
}

/* Whether any step is down; a failure otherwise. */
static int is_any_down(struct ls_sqlite_flows *fs, bool *any)
{
    int rc = 0;
    *any = false;
    for (int64_t i = 0; i < fs->flow->row.steps && rc == 0 && !*any; i++) {
        struct ls_sqlite_node n;
        rc = ls_sqlite_flow_node(fs, i, &n);
        *any = rc == 0 && lq_node_is_down(ls_sqlite_node_state(&n));
    }
    return rc;
}

static int retry(struct ls_sqlite_flows *fs)
{
    bool any = false;
    int rc = is_any_down(fs, &any);
    if (rc < 0 || !any)
        return rc < 0 ? rc : LADE_WRONG_STATE;
    fs->flow->row.failed = 0;
    ls_sqlite_flow_enter(fs, LADE_FLOW_RUNNING);
    rc = rearm(fs);
    for (int64_t i = 0; i < fs->flow->row.steps && rc == 0; i++) {
        struct ls_sqlite_node n;
        rc = ls_sqlite_flow_node(fs, i, &n);
        if (rc < 0 || !lq_node_is_down(ls_sqlite_node_state(&n)))
            continue;
        if (ls_sqlite_node_missing(&n) == 0)
            rc = run_again(fs, i, &n);
        else
            ls_sqlite_flow_set_node(fs, &n, LADE_STEP_WAITING);
    }
    return rc;
}

static int run_act(struct ls_sqlite_tx *tx, void *arg)
{
    const struct act *a = arg;
    struct ls_sqlite_flows fs;
    ls_sqlite_flows_init(&fs, tx);
    int rc = ls_sqlite_flows_look(&fs, a->id);
    if (rc != 0)
        return rc;
    if (a->verb == LADE_FLOW_REMOVE)
        return ls_sqlite_flow_delete(tx, a->id, &fs.flow->row);
    rc = a->verb == LADE_FLOW_CANCEL ? cancel(&fs) : retry(&fs);
    if (rc != 0)
        return rc;
    LB_FAULT("sqlite.flow.act");
    return ls_sqlite_flows_flush(&fs);
}

int ls_sqlite_flow_act(struct lq_store *s, struct lb_slice id, enum lade_flow_verb verb,
                       lade_err *err)
{
    struct act a = {.id = id, .verb = verb};
    struct ls_sqlite_op op = {.name = "flow",
                              .point = "sqlite.flow_act.commit",
                              .run = run_act,
                              .arg = &a,
                              .jobs = LQ_TAKE_MAX,
                              .frees = true};
    return ls_sqlite_write(ls_sqlite_of(s), &op, err);
}
