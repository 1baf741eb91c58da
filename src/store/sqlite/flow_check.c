/* flow_check.c - what is wrong with flows: numbers against states, states against jobs */
#include <string.h>

#include "base/base.h"
#include "base/err.h"
#include "store/sqlite/flow.h"

struct check {
    struct ls_sqlite_tx *tx;
    lq_finding_fn report;
    void *ctx;
};

struct look {
    const char *queue;
    enum lade_flow_step_state state;
    enum lade_flow_policy policy;
    struct lb_slice deps;
    int64_t missing;
    bool has_next;
};

static void find(const struct check *c, const char *what, const char *of)
{
    char text[256];
    (void)snprintf(text, sizeof(text), "%s: %s", what, of);
    c->report(c->ctx, "", text);
}

static int read_steps(struct check *c, const struct ls_sqlite_flow *f, struct look *look)
{
    struct ls_sqlite_tx *tx = c->tx;
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_STEP_LOOK);
    if (st) {
        ls_sqlite_bind(st, 1, f->num * LS_SQLITE_FLOW_SPAN);
        ls_sqlite_bind(st, 2, f->num * LS_SQLITE_FLOW_SPAN + f->nodes - 1);
    }
    int rc;
    int64_t n = 0;
    while ((rc = ls_sqlite_tx_step(tx, st)) == 1 && n < f->nodes) {
        struct lb_slice queue = ls_sqlite_column(st, 0), deps = ls_sqlite_column(st, 4);
        struct lb_mut kept = lb_arena_copy(&tx->arena, queue.p, queue.n);
        struct lb_mut numbers = lb_arena_copy(&tx->arena, deps.p, deps.n);
        if (!kept.p || !numbers.p) {
            (void)sqlite3_reset(st);
            return lb_fail_nomem(tx->err, tx->op);
        }
        look[n++] = (struct look){
            .queue = (const char *)kept.p,
            .state = (enum lade_flow_step_state)sqlite3_column_int64(st, 2),
            .policy = (enum lade_flow_policy)sqlite3_column_int64(st, 3),
            .deps = lb_slice_of(numbers),
            .missing = sqlite3_column_int64(st, 5),
            .has_next = sqlite3_column_bytes(st, 6) > 0,
        };
    }
    if (rc == 0 && n < f->nodes)
        find(c, "flow lacks steps", f->id);
    return rc;
}

static int check_job(struct check *c, const struct ls_sqlite_flow *f, const struct look *l,
                     const char *id, bool is_step)
{
    struct ls_sqlite_queue *q;
    struct ls_sqlite_run r = {0};
    int64_t seq = 0;
    (void)f;
    int rc = ls_sqlite_tx_queue(c->tx, l->queue, &q);
    if (rc < 0)
        return rc;
    rc = q ? ls_sqlite_job_find(c->tx, q, lb_slice_str(id), &seq, &r) : LADE_NOT_FOUND;
    if (rc < 0)
        return rc;
    if (l->state == LADE_STEP_ENQUEUED && (rc != 0 || ls_sqlite_state_is_ended(r.state)))
        find(c, "step is enqueued, but its job is not there or has ended", id);
    if (l->state == LADE_STEP_WAITING && rc == 0)
        find(c, "step waits, but its job is there", id);
    if (l->state == LADE_STEP_WAITING && l->missing == 0 && is_step)
        find(c, "step waits for nothing", id);
    return 0;
}

static int check_flow(struct check *c, const struct ls_sqlite_flow *f)
{
    int64_t open = 0, failed = 0;
    struct look *look = lb_arena_alloc(&c->tx->arena, (size_t)f->nodes * sizeof(*look));
    if (!look)
        return lb_fail_nomem(c->tx->err, c->tx->op);
    memset(look, 0, (size_t)f->nodes * sizeof(*look));
    int rc = read_steps(c, f, look);
    for (int64_t i = 0; i < f->nodes && rc == 0; i++) {
        char id[LADE_ID_MAX + 1];
        const struct look *l = &look[i];
        bool is_step = i < f->steps;
        int64_t missing = 0;
        (void)lq_flow_join(id, lb_slice_str(f->id), (uint32_t)i);
        for (size_t k = 0; k < ls_sqlite_number_count(l->deps); k++) {
            uint32_t dep = ls_sqlite_number_at(l->deps, k);
            missing += dep >= f->nodes || !lq_node_has_passed(look[dep].state);
        }
        if (missing != l->missing)
            find(c, "number of steps that a step waits for is wrong", id);
        open += is_step && !l->has_next && !lq_node_has_passed(l->state);
        failed += is_step && l->policy == LADE_FLOW_FAIL && lq_node_is_down(l->state);
        rc = check_job(c, f, l, id, is_step);
    }
    if (rc < 0)
        return rc;
    if (open != f->open || failed != f->failed)
        find(c, "counts of a flow are wrong", f->id);
    if (f->state != LADE_FLOW_CANCELLED && (f->state == LADE_FLOW_FAILED) != (failed > 0))
        find(c, "state of a flow and its steps do not agree", f->id);
    if (f->state != LADE_FLOW_CANCELLED && (f->state == LADE_FLOW_COMPLETED) != (open == 0))
        find(c, "flow is completed and has open steps, or the other way", f->id);
    return 0;
}

int ls_sqlite_flows_check(struct ls_sqlite_tx *tx, lq_finding_fn report, void *ctx)
{
    struct check c = {tx, report, ctx};
    struct ls_sqlite_flow f = {.num = INT64_MAX};
    for (;;) {
        sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_FLOW_BELOW);
        if (st) {
            ls_sqlite_bind(st, 1, f.num);
            ls_sqlite_bind(st, 2, 1);
        }
        int rc = ls_sqlite_tx_step(tx, st);
        if (rc <= 0)
            return rc;
        ls_sqlite_flow_read(st, &f);
        (void)sqlite3_reset(st);
        rc = check_flow(&c, &f);
        if (rc < 0)
            return rc;
    }
}
