#include "store/sqlite/flow.h"

#include <string.h>

#include "base/base.h"
#include "base/err.h"
#include "base/fault.h"
#include "store/sqlite/sqlite_impl.h"

void ls_sqlite_flows_init(struct ls_sqlite_flows *fs, struct ls_sqlite_tx *tx)
{
    fs->tx = tx;
    fs->flow.num = 0;
    fs->flow.dirty = false;
    fs->put = NULL;
    fs->n = fs->cap = fs->n_ended = 0;
}

static int64_t number_of(const struct ls_sqlite_flows *fs, int64_t node)
{
    return fs->flow.num * LS_SQLITE_FLOW_SPAN + node;
}

void ls_sqlite_flow_read(sqlite3_stmt *st, struct ls_sqlite_flow *f)
{
    *f = (struct ls_sqlite_flow){
        .num = sqlite3_column_int64(st, 0),
        .state = sqlite3_column_int64(st, 3),
        .steps = sqlite3_column_int64(st, 4),
        .nodes = sqlite3_column_int64(st, 5),
        .open = sqlite3_column_int64(st, 6),
        .failed = sqlite3_column_int64(st, 7),
        .siblings = sqlite3_column_int64(st, 8) != 0,
        .created_ms = sqlite3_column_int64(st, 9),
        .finished_ms = sqlite3_column_int64(st, 10),
    };
    struct lb_slice id = ls_sqlite_column(st, 1);
    size_t n = LB_MIN(id.n, (size_t)LADE_FLOW_ID_MAX);
    if (n > 0)
        memcpy(f->id, id.p, n);
    f->id[n] = 0;
}

static int write_back(struct ls_sqlite_flows *fs)
{
    struct ls_sqlite_flow *f = &fs->flow;
    if (!f->dirty)
        return 0;
    sqlite3_stmt *st = ls_sqlite_tx_stmt(fs->tx, LS_SQLITE_FLOW_SET);
    if (st) {
        ls_sqlite_bind(st, 1, f->num);
        ls_sqlite_bind(st, 2, f->state);
        ls_sqlite_bind(st, 3, f->open);
        ls_sqlite_bind(st, 4, f->failed);
        ls_sqlite_bind(st, 5, f->finished_ms);
    }
    f->dirty = false;
    return ls_sqlite_tx_do(fs->tx, st);
}

int ls_sqlite_flow_find(struct ls_sqlite_flows *fs, struct lb_slice id)
{
    if (fs->flow.num > 0 && lb_slice_eq(id, lb_slice_str(fs->flow.id)))
        return 0;
    int rc = write_back(fs);
    fs->flow.num = 0;
    if (rc < 0)
        return rc;
    sqlite3_stmt *st = ls_sqlite_tx_stmt(fs->tx, LS_SQLITE_FLOW_GET);
    if (st)
        ls_sqlite_bind_text(st, 1, id);
    rc = ls_sqlite_tx_step(fs->tx, st);
    if (rc <= 0)
        return rc < 0 ? rc : LADE_NOT_FOUND;
    ls_sqlite_flow_read(st, &fs->flow);
    (void)sqlite3_reset(st);
    return 0;
}

/* nodes ------------------------------------------------------------------------------------------------------------ */

/* A copy in the transaction's arena. */
static int keep(struct ls_sqlite_tx *tx, struct lb_slice from, struct lb_slice *out)
{
    struct lb_mut m = lb_arena_copy(&tx->arena, from.p, from.n);
    *out = lb_slice_of(m);
    return m.p ? 0 : lb_fail_nomem(tx->err, tx->op);
}

static int get_node(struct ls_sqlite_flows *fs, int64_t node, struct ls_sqlite_node *out)
{
    struct ls_sqlite_tx *tx = fs->tx;
    *out = (struct ls_sqlite_node){0};
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_NODE_GET);
    if (st)
        ls_sqlite_bind(st, 1, number_of(fs, node));
    int rc = ls_sqlite_tx_step(tx, st);
    if (rc <= 0)
        return rc < 0 ? rc
                      : lb_fail(tx->err, LADE_EFORMAT, tx->op,
                                "%s is damaged: step %lld of flow %s is missing", tx->db->path,
                                (long long)node, fs->flow.id);
    *out = (struct ls_sqlite_node){
        .state = (enum lade_flow_step_state)sqlite3_column_int64(st, 0),
        .missing = sqlite3_column_int64(st, 1),
        .policy = (enum lade_flow_policy)sqlite3_column_int64(st, 2),
    };
    rc = keep(tx, ls_sqlite_column(st, 3), &out->next);
    (void)sqlite3_reset(st);
    return rc;
}

int ls_sqlite_flow_nodes(struct ls_sqlite_flows *fs, struct ls_sqlite_node **out)
{
    struct ls_sqlite_tx *tx = fs->tx;
    struct ls_sqlite_node *node =
        lb_arena_alloc(&tx->arena, (size_t)fs->flow.nodes * sizeof(*node));
    if (!node)
        return lb_fail_nomem(tx->err, tx->op);
    memset(node, 0, (size_t)fs->flow.nodes * sizeof(*node));
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_NODE_ALL);
    if (st) {
        ls_sqlite_bind(st, 1, number_of(fs, 0));
        ls_sqlite_bind(st, 2, number_of(fs, fs->flow.nodes - 1));
    }
    int rc;
    int64_t n = 0;
    while ((rc = ls_sqlite_tx_step(tx, st)) == 1 && n < fs->flow.nodes) {
        node[n++] = (struct ls_sqlite_node){
            .state = (enum lade_flow_step_state)sqlite3_column_int64(st, 0),
            .missing = sqlite3_column_int64(st, 1),
            .policy = (enum lade_flow_policy)sqlite3_column_int64(st, 2),
        };
    }
    *out = node;
    return rc;
}

int ls_sqlite_flow_set_node(struct ls_sqlite_flows *fs, int64_t node,
                            enum lade_flow_step_state state)
{
    sqlite3_stmt *st = ls_sqlite_tx_stmt(fs->tx, LS_SQLITE_NODE_SET);
    if (st) {
        ls_sqlite_bind(st, 1, number_of(fs, node));
        ls_sqlite_bind(st, 2, state);
    }
    return ls_sqlite_tx_do(fs->tx, st);
}

int ls_sqlite_flow_end_node(struct ls_sqlite_flows *fs, int64_t node,
                            enum lade_flow_step_state state, struct lb_slice result)
{
    sqlite3_stmt *st = ls_sqlite_tx_stmt(fs->tx, LS_SQLITE_NODE_END);
    if (st) {
        ls_sqlite_bind(st, 1, number_of(fs, node));
        ls_sqlite_bind(st, 2, state);
        ls_sqlite_bind_blob(st, 3, result.n > 0 ? result : (struct lb_slice){0});
    }
    return ls_sqlite_tx_do(fs->tx, st);
}

static struct lb_slice job_id(const struct ls_sqlite_flows *fs, int64_t node,
                              char id[LADE_ID_MAX + 1])
{
    return lb_slice(id, lq_flow_join(id, lb_slice_str(fs->flow.id), (uint32_t)node));
}

int ls_sqlite_flow_find_job(struct ls_sqlite_flows *fs, int64_t node,
                            struct ls_sqlite_flow_job *out)
{
    struct ls_sqlite_tx *tx = fs->tx;
    char name[LADE_NAME_MAX + 1];
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_STEP_QUEUE);
    if (st)
        ls_sqlite_bind(st, 1, number_of(fs, node));
    int rc = ls_sqlite_tx_step(tx, st);
    if (rc <= 0)
        return rc < 0 ? rc : LADE_NOT_FOUND;
    (void)snprintf(name, sizeof(name), "%s", (const char *)sqlite3_column_text(st, 0));
    (void)sqlite3_reset(st);
    rc = ls_sqlite_tx_queue(tx, name, &out->q);
    if (rc < 0 || !out->q)
        return rc < 0 ? rc : LADE_NOT_FOUND;
    return ls_sqlite_job_find(tx, out->q, job_id(fs, node, out->id), &out->seq, &out->run);
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

int ls_sqlite_flow_launch(struct ls_sqlite_flows *fs, int64_t node)
{
    struct ls_sqlite_tx *tx = fs->tx;
    char text[LADE_ID_MAX + 1];
    struct lb_slice queue = {0};
    int rc = reserve(fs);
    if (rc < 0)
        return rc;
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_STEP_JOB);
    if (st)
        ls_sqlite_bind(st, 1, number_of(fs, node));
    rc = ls_sqlite_tx_step(tx, st);
    if (rc <= 0)
        return rc < 0 ? rc
                      : lb_fail(tx->err, LADE_EFORMAT, tx->op,
                                "%s is damaged: step %lld of flow %s is missing", tx->db->path,
                                (long long)node, fs->flow.id);
    struct lq_put *p = &fs->put[fs->n];
    *p = (struct lq_put){.level = (int)sqlite3_column_int64(st, 1),
                         .when = (enum lq_when)sqlite3_column_int64(st, 2),
                         .when_ms = sqlite3_column_int64(st, 3)};
    rc = keep(tx, ls_sqlite_column(st, 0), &queue);
    if (rc == 0)
        rc = keep(tx, ls_sqlite_column(st, 4), &p->body);
    if (rc == 0)
        rc = keep(tx, job_id(fs, node, text), &p->id);
    (void)sqlite3_reset(st);
    if (rc < 0)
        return rc;
    p->queue = (const char *)queue.p; /* NUL-terminated by the arena */
    fs->n++;
    return ls_sqlite_flow_set_node(fs, node, LADE_STEP_ENQUEUED);
}

/* changes ---------------------------------------------------------------------------------------------------------- */

void ls_sqlite_flow_enter(struct ls_sqlite_flows *fs, enum lade_flow_state state)
{
    fs->flow.state = state;
    fs->flow.finished_ms = state == LADE_FLOW_RUNNING ? 0 : fs->tx->now_ms;
    fs->flow.dirty = true;
    fs->n_ended += state != LADE_FLOW_RUNNING;
}

static int pass(struct ls_sqlite_flows *fs, int64_t node, struct lb_slice next)
{
    struct ls_sqlite_tx *tx = fs->tx;
    int rc = 0;
    for (size_t i = 0; i < ls_sqlite_number_count(next) && rc == 0; i++) {
        int64_t to = ls_sqlite_number_at(next, i);
        sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_NODE_PASS);
        if (st)
            ls_sqlite_bind(st, 1, number_of(fs, to));
        rc = ls_sqlite_tx_step(tx, st);
        if (rc <= 0)
            continue;
        bool may_run =
            sqlite3_column_int64(st, 0) == 0 && sqlite3_column_int64(st, 1) == LADE_STEP_WAITING;
        (void)sqlite3_reset(st);
        LB_FAULT("sqlite.flow.pass");
        rc = may_run ? ls_sqlite_flow_launch(fs, to) : 0;
    }
    if (rc < 0 || node >= fs->flow.steps || next.n > 0)
        return rc;
    fs->flow.dirty = true;
    if (--fs->flow.open == 0 && fs->flow.state == LADE_FLOW_RUNNING)
        ls_sqlite_flow_enter(fs, LADE_FLOW_COMPLETED);
    return 0;
}

int ls_sqlite_flow_stop_job(struct ls_sqlite_flows *fs, int64_t node)
{
    struct ls_sqlite_flow_job j;
    int rc = put_gathered(fs); /* it may be among them */
    if (rc == 0)
        rc = ls_sqlite_flow_find_job(fs, node, &j);
    if (rc == 0)
        rc = ls_sqlite_job_stop(fs->tx, j.q, &j.run, j.seq - j.run.job, false, lb_slice_str(j.id));
    return LB_MIN(rc, 0); /* not there, or ended already: nothing to stop */
}

static int cancel_siblings(struct ls_sqlite_flows *fs)
{
    struct ls_sqlite_node *node = NULL;
    int rc = ls_sqlite_flow_nodes(fs, &node);
    for (int64_t i = 0; i < fs->flow.steps && rc == 0; i++) {
        if (node[i].state != LADE_STEP_ENQUEUED)
            continue;
        fs->flow.failed += node[i].policy == LADE_FLOW_FAIL;
        rc = ls_sqlite_flow_set_node(fs, i, LADE_STEP_CANCELLED);
        if (rc == 0)
            rc = ls_sqlite_flow_stop_job(fs, i);
    }
    return rc;
}

static int fail(struct ls_sqlite_flows *fs)
{
    struct ls_sqlite_node handler = {.state = LADE_STEP_COMPLETED};
    int rc = 0;
    ls_sqlite_flow_enter(fs, LADE_FLOW_FAILED);
    if (fs->flow.nodes > fs->flow.steps)
        rc = get_node(fs, fs->flow.steps, &handler);
    if (rc == 0 && handler.state == LADE_STEP_WAITING)
        rc = ls_sqlite_flow_launch(fs, fs->flow.steps);
    return rc == 0 && fs->flow.siblings ? cancel_siblings(fs) : rc;
}

static int apply(struct ls_sqlite_flows *fs, int64_t node, struct lq_node_change c,
                 struct lb_slice next)
{
    struct ls_sqlite_flow *f = &fs->flow;
    int rc = 0;
    if (c.failed != 0) {
        f->failed += c.failed;
        f->dirty = true;
    }
    if (f->state == LADE_FLOW_FAILED && f->failed == 0)
        ls_sqlite_flow_enter(fs, LADE_FLOW_RUNNING);
    if (c.passes)
        rc = pass(fs, node, next);
    if (rc == 0 && f->state == LADE_FLOW_RUNNING && f->failed > 0)
        rc = fail(fs);
    return rc;
}

/* The flow of a job's id as fs->flow, and its node. 0 or LADE_NOT_FOUND. */
static int find_node(struct ls_sqlite_flows *fs, struct lb_slice id, int64_t *node,
                     struct ls_sqlite_node *out)
{
    struct lb_slice flow;
    uint32_t n = 0;
    *out = (struct ls_sqlite_node){0};
    if (!lq_flow_split(id, &flow, &n))
        return LADE_NOT_FOUND;
    int rc = ls_sqlite_flow_find(fs, flow);
    if (rc == 0 && n >= fs->flow.nodes)
        rc = LADE_NOT_FOUND;
    *node = n;
    return rc == 0 ? get_node(fs, n, out) : rc;
}

int ls_sqlite_flow_ended(struct ls_sqlite_flows *fs, struct lb_slice id,
                         enum lade_flow_step_state how, struct lb_slice result)
{
    struct ls_sqlite_node node;
    int64_t at = 0;
    int rc = lq_flow_has(id) ? find_node(fs, id, &at, &node) : LADE_NOT_FOUND;
    if (rc != 0)
        return LB_MIN(rc, 0);
    struct lq_node_change c = lq_node_ended(node.state, node.policy, how);
    if (c.to == node.state)
        return 0;
    if (c.to == LADE_STEP_COMPLETED)
        rc = ls_sqlite_flow_end_node(fs, at, c.to, result);
    else
        rc = ls_sqlite_flow_set_node(fs, at, c.to);
    LB_FAULT("sqlite.flow.node");
    return rc < 0 ? rc : apply(fs, at, c, node.next);
}

int ls_sqlite_flow_revived(struct ls_sqlite_flows *fs, struct lb_slice id)
{
    struct ls_sqlite_node node;
    int64_t at = 0;
    int rc = lq_flow_has(id) ? find_node(fs, id, &at, &node) : LADE_NOT_FOUND;
    if (rc != 0)
        return LB_MIN(rc, 0);
    struct lq_node_change c = lq_node_revived(node.state, node.policy);
    if (c.to == node.state)
        return 0;
    rc = ls_sqlite_flow_set_node(fs, at, c.to);
    return rc < 0 ? rc : apply(fs, at, c, node.next);
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
        rc = keep(tx, ls_sqlite_column(st, 0), &(*out)[*found]);
        ++*found;
        if (rc < 0) {
            (void)sqlite3_reset(st);
            return rc;
        }
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

/* retention -------------------------------------------------------------------------------------------------------- */

static int delete_range(struct ls_sqlite_tx *tx, enum ls_sqlite_sql which, int64_t num,
                        int64_t nodes)
{
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, which);
    if (st) {
        ls_sqlite_bind(st, 1, num * LS_SQLITE_FLOW_SPAN);
        ls_sqlite_bind(st, 2, num * LS_SQLITE_FLOW_SPAN + nodes - 1);
    }
    return ls_sqlite_tx_do(tx, st);
}

int ls_sqlite_flow_delete(struct ls_sqlite_tx *tx, int64_t num, int64_t nodes)
{
    int rc = delete_range(tx, LS_SQLITE_FLOW_DEL_STEPS, num, nodes);
    if (rc == 0)
        rc = delete_range(tx, LS_SQLITE_FLOW_DEL_NODES, num, nodes);
    if (rc < 0)
        return rc;
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_FLOW_DEL);
    if (st)
        ls_sqlite_bind(st, 1, num);
    return ls_sqlite_tx_do(tx, st);
}

static int count_flows(struct ls_sqlite_tx *tx, int state, int64_t *n)
{
    *n = 0;
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_FLOW_COUNT);
    if (st)
        ls_sqlite_bind(st, 1, state);
    int rc = ls_sqlite_tx_step(tx, st);
    if (rc == 1) {
        *n = sqlite3_column_int64(st, 0);
        (void)sqlite3_reset(st);
    }
    return LB_MIN(rc, 0);
}

/* Removes the oldest of a state beyond `keep` or ended before before_ms, while *left allows; *more: there are more. */
static int drop_oldest(struct ls_sqlite_tx *tx, int state, int64_t before_ms, size_t *left,
                       bool *more)
{
    const struct lq_store_config *c = &tx->s->base.config;
    int64_t keep_n = state == LADE_FLOW_FAILED ? c->keep_dead.count : c->keep_completed.count;
    int64_t n = 0;
    int rc = count_flows(tx, state, &n);
    while (rc == 0 && n > 0) {
        sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_FLOW_OLDEST);
        if (st)
            ls_sqlite_bind(st, 1, state);
        rc = ls_sqlite_tx_step(tx, st);
        if (rc <= 0)
            return rc;
        int64_t num = sqlite3_column_int64(st, 0), nodes = sqlite3_column_int64(st, 1);
        bool over = n > keep_n || sqlite3_column_int64(st, 2) < before_ms;
        (void)sqlite3_reset(st);
        if (!over)
            return 0;
        if (*left == 0) {
            *more = true;
            return 0;
        }
        rc = ls_sqlite_flow_delete(tx, num, nodes);
        --*left;
        n--;
    }
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

int ls_sqlite_flows_flush(struct ls_sqlite_flows *fs)
{
    bool more = false;
    int rc = put_gathered(fs);
    if (rc == 0)
        rc = write_back(fs);
    size_t left = fs->n_ended + LS_SQLITE_GROUP_MAX;
    for (int state = LADE_FLOW_COMPLETED; state < LADE_N_FLOW_STATES && fs->n_ended > 0 && rc == 0;
         state++)
        rc = drop_oldest(fs->tx, state, INT64_MIN, &left, &more);
    fs->n_ended = 0;
    fs->flow.num = 0; /* it may be gone */
    return rc;
}
