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
    struct lb_buf numbers; /* deps and next of one node */
};

/* Numbers as the file has them. */
static struct lb_slice pack(struct lb_buf *b, const uint32_t *v, uint32_t n)
{
    size_t at = b->n;
    uint8_t *p = lb_buf_reserve(b, 4 * (size_t)n);
    for (uint32_t i = 0; p && i < n; i++) {
        for (unsigned k = 0; k < 4; k++)
            p[4 * i + k] = (uint8_t)(v[i] >> (8 * k));
    }
    b->n += p ? 4 * (size_t)n : 0;
    return lb_slice(n > 0 && p ? b->p + at : NULL, p ? 4 * (size_t)n : 0);
}

/* The row of the flow; its number in *num. 0 or LADE_DUPLICATE. */
static int add_flow(struct ls_sqlite_tx *tx, const struct lq_flow *f, int64_t *num)
{
    int64_t open = 0;
    for (uint32_t i = 0; i < f->n_steps; i++)
        open += f->node[i].n_next == 0;
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_FLOW_ADD);
    if (!st)
        return ls_sqlite_tx_fail(tx);
    ls_sqlite_bind_text(st, 1, f->id);
    ls_sqlite_bind_text(st, 2, f->name.n > 0 ? f->name : lb_slice("", 0));
    ls_sqlite_bind(st, 3, f->n_steps);
    ls_sqlite_bind(st, 4, f->n);
    ls_sqlite_bind(st, 5, open);
    ls_sqlite_bind(st, 6, f->cancel_siblings);
    ls_sqlite_bind(st, 7, tx->now_ms);
    int rc = ls_sqlite_tx_do(tx, st);
    if (rc < 0)
        return rc;
    *num = sqlite3_last_insert_rowid(tx->db->h);
    return sqlite3_changes(tx->db->h) == 0 ? LADE_DUPLICATE : 0;
}

static int add_node(struct ls_sqlite_tx *tx, struct put *p, int64_t num, uint32_t i)
{
    const struct lq_flow_node *node = &p->flow->node[i];
    bool first = i < p->flow->n_steps && node->n_deps == 0;
    lb_buf_clear(&p->numbers);
    if (!lb_buf_reserve(&p->numbers, 4 * ((size_t)node->n_deps + node->n_next)))
        return lb_fail_nomem(tx->err, tx->op);
    struct lb_slice deps = pack(&p->numbers, node->dep, node->n_deps);
    struct lb_slice next = pack(&p->numbers, node->next, node->n_next);
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_STEP_ADD);
    if (!st)
        return ls_sqlite_tx_fail(tx);
    ls_sqlite_bind(st, 1, num * LS_SQLITE_FLOW_SPAN + i);
    ls_sqlite_bind_text(st, 2, lb_slice_str(node->queue));
    ls_sqlite_bind_text(st, 3, node->kind);
    ls_sqlite_bind(st, 4, node->level);
    ls_sqlite_bind(st, 5, node->policy);
    ls_sqlite_bind(st, 6, node->when);
    ls_sqlite_bind(st, 7, node->when_ms);
    ls_sqlite_bind_blob(st, 8, deps);
    ls_sqlite_bind_blob(st, 9, next);
    ls_sqlite_bind_blob(st, 10, node->body);
    int rc = ls_sqlite_tx_do(tx, st);
    st = rc < 0 ? NULL : ls_sqlite_tx_stmt(tx, LS_SQLITE_NODE_ADD);
    if (rc < 0 || !st)
        return rc < 0 ? rc : ls_sqlite_tx_fail(tx);
    ls_sqlite_bind(st, 1, num * LS_SQLITE_FLOW_SPAN + i);
    ls_sqlite_bind(st, 2, first ? LADE_STEP_ENQUEUED : LADE_STEP_WAITING);
    ls_sqlite_bind(st, 3, node->n_deps);
    return ls_sqlite_tx_do(tx, st);
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
    int64_t num = 0;
    int rc = add_flow(tx, p->flow, &num);
    p->flow->outcome = rc == LADE_DUPLICATE ? rc : 0;
    if (rc != 0)
        return LB_MIN(rc, 0);
    tx->grows = true;
    for (uint32_t i = 0; i < p->flow->n && rc == 0; i++)
        rc = add_node(tx, p, num, i);
    LB_FAULT("sqlite.flow.steps");
    return rc < 0 ? rc : put_first(tx, p->flow);
}

int ls_sqlite_flow_put(struct lq_store *s, struct lq_flow *flow, lade_err *err)
{
    struct put p = {.flow = flow};
    struct ls_sqlite_op op = {
        .name = "flow", .point = "sqlite.flow.commit", .run = run_put, .arg = &p, .jobs = flow->n};
    lb_buf_init(&p.numbers);
    int rc = ls_sqlite_write(ls_sqlite_of(s), &op, err);
    lb_buf_fini(&p.numbers);
    return rc;
}

/* act -------------------------------------------------------------------------------------------------------------- */

struct act {
    struct lb_slice id;
    enum lade_flow_verb verb;
};

static int cancel(struct ls_sqlite_flows *fs)
{
    struct ls_sqlite_node *node = NULL;
    if (fs->flow.state == LADE_FLOW_COMPLETED || fs->flow.state == LADE_FLOW_CANCELLED)
        return LADE_WRONG_STATE;
    int rc = ls_sqlite_flow_nodes(fs, &node);
    ls_sqlite_flow_enter(fs, LADE_FLOW_CANCELLED);
    for (int64_t i = 0; i < fs->flow.nodes && rc == 0; i++) {
        bool is_step = i < fs->flow.steps;
        bool enqueued = node[i].state == LADE_STEP_ENQUEUED;
        if (!enqueued && (node[i].state != LADE_STEP_WAITING || !is_step))
            continue;
        fs->flow.failed += is_step && node[i].policy == LADE_FLOW_FAIL;
        rc = ls_sqlite_flow_set_node(fs, i, LADE_STEP_CANCELLED);
        if (rc == 0 && enqueued)
            rc = ls_sqlite_flow_stop_job(fs, i);
    }
    return rc;
}

/* The on_failure job may run once more; what is left of an old one goes. */
static int rearm(struct ls_sqlite_flows *fs)
{
    struct ls_sqlite_flow_job j;
    int64_t node = fs->flow.steps;
    if (fs->flow.nodes == fs->flow.steps)
        return 0;
    int rc = ls_sqlite_flow_find_job(fs, node, &j);
    if (rc < 0 || (rc == 0 && !ls_sqlite_state_is_ended(j.run.state)))
        return rc;
    if (rc == 0) {
        rc = ls_sqlite_run_cut(fs->tx, j.q, &j.run, j.seq - j.run.job, 1);
        if (rc == 0)
            rc = ls_sqlite_jobs_del(fs->tx, j.seq, 1);
    }
    return rc < 0 ? rc : ls_sqlite_flow_end_node(fs, node, LADE_STEP_WAITING, (struct lb_slice){0});
}

/* Runs again: as the job that is there, or as a new one from the flow's own copy. */
static int run_again(struct ls_sqlite_flows *fs, int64_t node)
{
    struct ls_sqlite_flow_job j;
    int rc = ls_sqlite_flow_find_job(fs, node, &j);
    if (rc == LADE_NOT_FOUND)
        return ls_sqlite_flow_launch(fs, node);
    if (rc == 0 && ls_sqlite_state_is_ended(j.run.state))
        rc = ls_sqlite_job_revive(fs->tx, j.q, &j.run, j.seq - j.run.job, 1);
    return rc < 0 ? rc : ls_sqlite_flow_set_node(fs, node, LADE_STEP_ENQUEUED);
}

static int retry(struct ls_sqlite_flows *fs)
{
    struct ls_sqlite_node *node = NULL;
    bool any = false;
    int rc = ls_sqlite_flow_nodes(fs, &node);
    for (int64_t i = 0; i < fs->flow.steps && rc == 0; i++)
        any = any || lq_node_is_down(node[i].state);
    if (rc < 0 || !any)
        return rc < 0 ? rc : LADE_WRONG_STATE;
    fs->flow.failed = 0;
    ls_sqlite_flow_enter(fs, LADE_FLOW_RUNNING);
    rc = rearm(fs);
    for (int64_t i = 0; i < fs->flow.steps && rc == 0; i++) {
        if (!lq_node_is_down(node[i].state))
            continue;
        rc = node[i].missing == 0 ? run_again(fs, i)
                                  : ls_sqlite_flow_set_node(fs, i, LADE_STEP_WAITING);
    }
    return rc;
}

static int run_act(struct ls_sqlite_tx *tx, void *arg)
{
    const struct act *a = arg;
    struct ls_sqlite_flows fs;
    ls_sqlite_flows_init(&fs, tx);
    int rc = ls_sqlite_flow_find(&fs, a->id);
    if (rc != 0)
        return rc;
    if (a->verb == LADE_FLOW_REMOVE)
        return ls_sqlite_flow_delete(tx, fs.flow.num, fs.flow.nodes);
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
