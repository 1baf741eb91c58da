#include "store/sqlite/flow.h"

#include <string.h>

#include "base/base.h"
#include "base/err.h"
#include "base/fault.h"
#include "store/sqlite/sqlite_impl.h"

void ls_sqlite_flows_init(struct ls_sqlite_flows *fs, struct ls_sqlite_tx *tx)
{
    *fs = (struct ls_sqlite_flows){.tx = tx};
}

/* It is to be written by the next flush. */
static void list(struct ls_sqlite_flows *fs)
{
    struct ls_sqlite_flow *f = fs->flow;
    if (f->listed)
        return;
    f->listed = true;
    f->link = fs->list;
    fs->list = f;
}

int ls_sqlite_flows_look(struct ls_sqlite_flows *fs, struct lb_slice id)
{
    if (fs->flow && lb_slice_eq(id, lb_slice_str(fs->flow->id)))
        return 0;
    fs->flow = NULL;
    return ls_sqlite_flow_find(fs->tx, id, &fs->flow);
}

/* nodes ------------------------------------------------------------------------------------------------------------ */

int ls_sqlite_flow_node(struct ls_sqlite_flows *fs, int64_t node, struct ls_sqlite_node *out)
{
    int rc = ls_sqlite_flow_part(fs->tx, fs->flow, node, &out->part);
    if (rc < 0)
        return rc;
    out->i = (uint32_t)(node - out->part->first);
    return ls_sqlite_part_get(out->part->data, out->i, &out->step)
               ? 0
               : ls_sqlite_flow_damaged(fs->tx, fs->flow->id);
}

static void mark(struct ls_sqlite_flows *fs, const struct ls_sqlite_node *n,
                 enum lade_flow_step_state state, uint32_t missing)
{
    ls_sqlite_mark_set(n->part->marks, n->i, state, missing);
    n->part->dirty = true;
    list(fs);
}

void ls_sqlite_flow_set_node(struct ls_sqlite_flows *fs, const struct ls_sqlite_node *n,
                             enum lade_flow_step_state state)
{
    mark(fs, n, state, ls_sqlite_node_missing(n));
}

int ls_sqlite_flow_set_result(struct ls_sqlite_flows *fs, int64_t node, struct lb_slice result)
{
    struct ls_sqlite_flow *f = fs->flow;
    if (result.n == 0 && !f->row.results)
        return 0;
    sqlite3_stmt *st =
        ls_sqlite_tx_stmt(fs->tx, result.n > 0 ? LS_SQLITE_RESULT_SET : LS_SQLITE_RESULT_DEL);
    if (!st)
        return ls_sqlite_tx_fail(fs->tx);
    ls_sqlite_bind(st, 1, f->row.num * LS_SQLITE_FLOW_SPAN + node);
    if (result.n > 0)
        ls_sqlite_bind_blob(st, 2, result);
    f->dirty = f->dirty || !f->row.results;
    f->row.results = true;
    list(fs);
    return ls_sqlite_tx_do(fs->tx, st);
}

static struct lb_slice job_id(const struct ls_sqlite_flows *fs, int64_t node,
                              char id[LADE_ID_MAX + 1])
{
    return lb_slice(id, lq_flow_join(id, lb_slice_str(fs->flow->id), (uint32_t)node));
}

int ls_sqlite_flow_find_job(struct ls_sqlite_flows *fs, int64_t node,
                            const struct ls_sqlite_node *n, struct ls_sqlite_flow_job *out)
{
    int rc = ls_sqlite_tx_queue(fs->tx, n->step.queue, &out->q);
    if (rc < 0 || !out->q)
        return rc < 0 ? rc : LADE_NOT_FOUND;
    return ls_sqlite_job_find(fs->tx, out->q, job_id(fs, node, out->id), &out->seq, &out->run);
}

/* putting ---------------------------------------------------------------------------------------------------------- */

static int put_gathered(struct ls_sqlite_flows *fs)
{
    size_t n = fs->n;
    fs->n = 0;
    if (n == 0)
        return 0;
    LB_FAULT("sqlite.flow.put");
    return ls_sqlite_put_run(fs->tx, fs->put, n);
}

/* Room for one more. */
static int reserve(struct ls_sqlite_flows *fs)
{
    if (fs->n < fs->cap)
        return 0;
    size_t cap = LB_MAX(2 * fs->cap, (size_t)32);
    struct lq_put *put = lb_arena_alloc(&fs->tx->arena, cap * sizeof(*put));
    if (!put)
        return lb_fail_nomem(fs->tx->err, fs->tx->op);
    if (fs->n > 0)
        memcpy(put, fs->put, fs->n * sizeof(*put));
    fs->put = put;
    fs->cap = cap;
    return 0;
}

int ls_sqlite_flow_launch(struct ls_sqlite_flows *fs, int64_t node, const struct ls_sqlite_node *n)
{
    char text[LADE_ID_MAX + 1];
    int rc = reserve(fs);
    if (rc < 0)
        return rc;
    struct lb_slice id = job_id(fs, node, text);
    struct lb_mut kept = lb_arena_copy(&fs->tx->arena, id.p, id.n);
    if (!kept.p)
        return lb_fail_nomem(fs->tx->err, fs->tx->op);
    fs->put[fs->n++] = (struct lq_put){.queue = n->step.queue,
                                       .id = lb_slice_of(kept),
                                       .body = n->step.body,
                                       .level = n->step.level,
                                       .when = n->step.when,
                                       .when_ms = n->step.when_ms};
    ls_sqlite_flow_set_node(fs, n, LADE_STEP_ENQUEUED);
    return 0;
}

/* changes ---------------------------------------------------------------------------------------------------------- */

void ls_sqlite_flow_enter(struct ls_sqlite_flows *fs, enum lade_flow_state state)
{
    struct ls_sqlite_flow *f = fs->flow;
    ls_sqlite_flows_count(fs->tx, f->row.state, state);
    f->row.state = state;
    f->row.finished_ms = state == LADE_FLOW_RUNNING ? 0 : fs->tx->now_ms;
    f->dirty = true;
    list(fs);
    fs->n_ended += state != LADE_FLOW_RUNNING;
}

/* The node `to` waits for one less. */
static int pass_to(struct ls_sqlite_flows *fs, int64_t to)
{
    struct ls_sqlite_node n;
    int rc = ls_sqlite_flow_node(fs, to, &n);
    if (rc < 0)
        return rc;
    uint32_t missing = ls_sqlite_node_missing(&n);
    if (missing == 0)
        return ls_sqlite_flow_damaged(fs->tx, fs->flow->id);
    mark(fs, &n, ls_sqlite_node_state(&n), missing - 1);
    LB_FAULT("sqlite.flow.pass");
    bool may_run = missing == 1 && ls_sqlite_node_state(&n) == LADE_STEP_WAITING;
    return may_run ? ls_sqlite_flow_launch(fs, to, &n) : 0;
}

static int pass(struct ls_sqlite_flows *fs, int64_t node, struct lb_slice next)
{
    struct ls_sqlite_flow_row *row = &fs->flow->row;
    int rc = 0;
    for (size_t i = 0; i < ls_sqlite_number_count(next) && rc == 0; i++)
        rc = pass_to(fs, ls_sqlite_number_at(next, i));
    if (rc < 0 || node >= row->steps || next.n > 0)
        return rc;
    fs->flow->dirty = true;
    list(fs);
    if (--row->open == 0 && row->state == LADE_FLOW_RUNNING)
        ls_sqlite_flow_enter(fs, LADE_FLOW_COMPLETED);
    return 0;
}

int ls_sqlite_flow_stop_job(struct ls_sqlite_flows *fs, int64_t node,
                            const struct ls_sqlite_node *n)
{
    struct ls_sqlite_flow_job j;
    int rc = put_gathered(fs); /* it may be among them */
    if (rc == 0)
        rc = ls_sqlite_flow_find_job(fs, node, n, &j);
    if (rc == 0)
        rc = ls_sqlite_job_stop(fs->tx, j.q, &j.run, j.seq - j.run.job, false, lb_slice_str(j.id));
    return LB_MIN(rc, 0); /* not there, or ended already: nothing to stop */
}

static int cancel_siblings(struct ls_sqlite_flows *fs)
{
    int rc = 0;
    for (int64_t i = 0; i < fs->flow->row.steps && rc == 0; i++) {
        struct ls_sqlite_node n;
        rc = ls_sqlite_flow_node(fs, i, &n);
        if (rc < 0 || ls_sqlite_node_state(&n) != LADE_STEP_ENQUEUED)
            continue;
        fs->flow->row.failed += n.step.policy == LADE_FLOW_FAIL;
        ls_sqlite_flow_set_node(fs, &n, LADE_STEP_CANCELLED);
        rc = ls_sqlite_flow_stop_job(fs, i, &n);
    }
    return rc;
}

static int fail(struct ls_sqlite_flows *fs)
{
    const struct ls_sqlite_flow_row *row = &fs->flow->row;
    struct ls_sqlite_node handler;
    int rc = 0;
    ls_sqlite_flow_enter(fs, LADE_FLOW_FAILED);
    if (row->nodes > row->steps) {
        rc = ls_sqlite_flow_node(fs, row->steps, &handler);
        if (rc == 0 && ls_sqlite_node_state(&handler) == LADE_STEP_WAITING)
            rc = ls_sqlite_flow_launch(fs, row->steps, &handler);
    }
    return rc == 0 && row->siblings ? cancel_siblings(fs) : rc;
}

static int apply(struct ls_sqlite_flows *fs, int64_t node, struct lq_node_change c,
                 struct lb_slice next)
{
    struct ls_sqlite_flow *f = fs->flow;
    int rc = 0;
    if (c.failed != 0) {
        f->row.failed += c.failed;
        f->dirty = true;
        list(fs);
    }
    if (f->row.state == LADE_FLOW_FAILED && f->row.failed == 0)
        ls_sqlite_flow_enter(fs, LADE_FLOW_RUNNING);
    if (c.passes)
        rc = pass(fs, node, next);
    if (rc == 0 && f->row.state == LADE_FLOW_RUNNING && f->row.failed > 0)
        rc = fail(fs);
    return rc;
}

/* The flow of a job's id as fs->flow, and its node. 0 or LADE_NOT_FOUND. */
static int find_node(struct ls_sqlite_flows *fs, struct lb_slice id, int64_t *node,
                     struct ls_sqlite_node *out)
{
    struct lb_slice flow;
    uint32_t n = 0;
    if (!lq_flow_split(id, &flow, &n))
        return LADE_NOT_FOUND;
    int rc = ls_sqlite_flows_look(fs, flow);
    if (rc == 0 && n >= fs->flow->row.nodes)
        rc = LADE_NOT_FOUND;
    *node = n;
    return rc == 0 ? ls_sqlite_flow_node(fs, n, out) : rc;
}

int ls_sqlite_flow_ended(struct ls_sqlite_flows *fs, struct lb_slice id,
                         enum lade_flow_step_state how, struct lb_slice result)
{
    struct ls_sqlite_node n;
    int64_t at = 0;
    int rc = lq_flow_has(id) ? find_node(fs, id, &at, &n) : LADE_NOT_FOUND;
    if (rc != 0)
        return LB_MIN(rc, 0);
    enum lade_flow_step_state state = ls_sqlite_node_state(&n);
    struct lq_node_change c = lq_node_ended(state, n.step.policy, how);
    if (c.to == state)
        return 0;
    if (c.to == LADE_STEP_COMPLETED)
        rc = ls_sqlite_flow_set_result(fs, at, result);
    ls_sqlite_flow_set_node(fs, &n, c.to);
    LB_FAULT("sqlite.flow.node");
    return rc < 0 ? rc : apply(fs, at, c, n.step.next);
}

/* Whether `to`, of number *at, follows n and nothing else, in the same queue and level and at once; sets both when it does. */
static int next_step(struct ls_sqlite_flows *fs, const struct ls_sqlite_node *n, int64_t *at,
                     struct ls_sqlite_node *to)
{
    if (ls_sqlite_number_count(n->step.next) != 1)
        return LADE_NOT_FOUND;
    *at = ls_sqlite_number_at(n->step.next, 0);
    int rc = ls_sqlite_flow_node(fs, *at, to);
    bool plain = rc == 0 && ls_sqlite_number_count(to->step.deps) == 1 &&
                 to->step.when == LQ_WHEN_NOW && to->step.level == n->step.level &&
                 strcmp(to->step.queue, n->step.queue) == 0;
    return rc < 0 || plain ? rc : LADE_NOT_FOUND;
}

int ls_sqlite_flow_follow(struct ls_sqlite_flows *fs, struct lb_arena *arena, uint32_t body_max,
                          struct lq_leased *out)
{
    struct ls_sqlite_node n, to;
    int64_t at = 0;
    size_t bytes = 0;
    int rc = find_node(fs, lb_slice_of(out->id), &at, &n);
    if (rc == 0)
        rc = next_step(fs, &n, &at, &to);
    struct lq_follow *all = rc == 0 ? lb_arena_alloc(arena, LQ_FOLLOW_MAX * sizeof(*all)) : NULL;
    out->follow = all;
    for (; rc == 0 && all && out->n_follow < LQ_FOLLOW_MAX; rc = next_step(fs, &n, &at, &to)) {
        char text[LADE_ID_MAX + 1];
        struct lb_slice id = job_id(fs, at, text), body = to.step.body;
        bytes += body.n;
        if (ls_sqlite_node_state(&to) != LADE_STEP_WAITING || ls_sqlite_node_missing(&to) != 1 ||
            bytes > LQ_PACK_BYTES || (body_max > 0 && body.n > body_max))
            break;
        struct lq_follow next = {lb_arena_copy(arena, id.p, id.n),
                                 lb_arena_copy(arena, body.p, body.n)};
        if (!next.id.p || !next.body.p)
            break;
        all[out->n_follow++] = next;
        n = to;
    }
    return LB_MIN(rc, 0);
}

int ls_sqlite_flow_launched(struct ls_sqlite_flows *fs, struct lb_slice id, size_t before,
                            struct lq_put **out)
{
    struct ls_sqlite_node n, to;
    int64_t at = 0;
    *out = NULL;
    int rc = fs->n == before + 1 ? find_node(fs, id, &at, &n) : LADE_NOT_FOUND;
    if (rc == 0)
        rc = next_step(fs, &n, &at, &to);
    if (rc == 0)
        *out = &fs->put[--fs->n];
    return LB_MIN(rc, 0);
}

int ls_sqlite_flow_revived(struct ls_sqlite_flows *fs, struct lb_slice id)
{
    struct ls_sqlite_node n;
    int64_t at = 0;
    int rc = lq_flow_has(id) ? find_node(fs, id, &at, &n) : LADE_NOT_FOUND;
    if (rc != 0)
        return LB_MIN(rc, 0);
    enum lade_flow_step_state state = ls_sqlite_node_state(&n);
    struct lq_node_change c = lq_node_revived(state, n.step.policy);
    if (c.to == state)
        return 0;
    ls_sqlite_flow_set_node(fs, &n, c.to);
    return apply(fs, at, c, n.step.next);
}

/* Ids of the jobs from seq on that are of flows; in the arena. */
static int read_ids(struct ls_sqlite_tx *tx, int64_t seq, int64_t n, struct lb_slice **out,
                    size_t *found)
{
    *found = 0;
    *out = lb_arena_alloc(&tx->arena, (size_t)n * sizeof(**out));
    if (!*out)
        return lb_fail_nomem(tx->err, tx->op);
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_JOB_OF_FLOW);
    if (st) {
        ls_sqlite_bind(st, 1, seq);
        ls_sqlite_bind(st, 2, seq + n - 1);
    }
    int rc;
    while ((rc = ls_sqlite_tx_step(tx, st)) == 1) {
        struct lb_slice id = ls_sqlite_column(st, 0);
        struct lb_mut kept = lb_arena_copy(&tx->arena, id.p, id.n);
        if (!kept.p) {
            (void)sqlite3_reset(st);
            return lb_fail_nomem(tx->err, tx->op);
        }
        (*out)[(*found)++] = lb_slice_of(kept);
    }
    return rc;
}

static int change_all(struct ls_sqlite_flows *fs, int64_t seq, int64_t n, bool ended)
{
    struct lb_slice *id = NULL;
    size_t found = 0;
    sqlite3_stmt *st = ls_sqlite_tx_stmt(fs->tx, LS_SQLITE_FLOW_ANY);
    int rc = ls_sqlite_tx_step(fs->tx, st);
    if (rc <= 0)
        return rc;
    (void)sqlite3_reset(st);
    rc = read_ids(fs->tx, seq, n, &id, &found);
    for (size_t i = 0; i < found && rc == 0; i++)
        rc = ended ? ls_sqlite_flow_ended(fs, id[i], LADE_STEP_CANCELLED, (struct lb_slice){0})
                   : ls_sqlite_flow_revived(fs, id[i]);
    return rc;
}

int ls_sqlite_flow_ended_all(struct ls_sqlite_flows *fs, int64_t seq, int64_t n)
{
    return change_all(fs, seq, n, true);
}

int ls_sqlite_flow_revived_all(struct ls_sqlite_flows *fs, int64_t seq, int64_t n)
{
    return change_all(fs, seq, n, false);
}

int ls_sqlite_flows_flush(struct ls_sqlite_flows *fs)
{
    int rc = put_gathered(fs);
    for (struct ls_sqlite_flow *f = fs->list; f; f = f->link)
        f->listed = false;
    if (rc == 0)
        rc = ls_sqlite_flow_write(fs->tx, fs->list);
    fs->list = NULL;
    if (rc == 0 && fs->n_ended > 0)
        rc = ls_sqlite_flows_retain(fs->tx, fs->n_ended);
    fs->n_ended = 0;
    fs->flow = NULL; /* it may be gone */
    return rc;
}
