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

struct looks {
    struct look *look;
    int64_t n, max;
};

static int add_look(struct ls_sqlite_tx *tx, void *ctx, int64_t node,
                    const struct ls_sqlite_step *step, enum lade_flow_step_state state,
                    uint32_t missing)
{
    struct looks *all = ctx;
    (void)node;
    if (all->n == all->max)
        return LADE_NOT_FOUND;
    const char *queue = lb_arena_strdup(&tx->arena, step->queue);
    struct lb_mut numbers = lb_arena_copy(&tx->arena, step->deps.p, step->deps.n);
    if (!queue || !numbers.p)
        return lb_fail_nomem(tx->err, tx->op);
    all->look[all->n++] = (struct look){
        .queue = queue,
        .state = state,
        .policy = step->policy,
        .deps = lb_slice_of(numbers),
        .missing = missing,
        .has_next = step->next.n > 0,
    };
    return 0;
}

static int check_job(struct check *c, const struct look *l, const char *id, bool is_step)
{
    struct ls_sqlite_queue *q;
    struct ls_sqlite_run r = {0};
    int64_t seq = 0;
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

static int check_flow(struct check *c, const struct ls_sqlite_flow_row *f, const char *name)
{
    int64_t open = 0, failed = 0;
    struct looks all = {.max = f->nodes};
    all.look = lb_arena_alloc(&c->tx->arena, ((size_t)f->nodes + 1) * sizeof(*all.look));
    if (!all.look)
        return lb_fail_nomem(c->tx->err, c->tx->op);
    int rc = ls_sqlite_flow_each(c->tx, f, add_look, &all);
    if (rc != 0) {
        if (rc > 0)
            find(c, "flow lacks steps", name);
        return LB_MIN(rc, 0);
    }
    for (int64_t i = 0; i < f->nodes && rc == 0; i++) {
        char id[LADE_ID_MAX + 1];
        const struct look *l = &all.look[i];
        bool is_step = i < f->steps;
        int64_t missing = 0;
        (void)lq_flow_join(id, lb_slice_str(name), (uint32_t)i);
        for (size_t k = 0; k < ls_sqlite_number_count(l->deps); k++) {
            uint32_t dep = ls_sqlite_number_at(l->deps, k);
            missing += dep >= f->nodes || !lq_node_has_passed(all.look[dep].state);
        }
        if (missing != l->missing)
            find(c, "number of steps that a step waits for is wrong", id);
        open += is_step && !l->has_next && !lq_node_has_passed(l->state);
        failed += is_step && l->policy == LADE_FLOW_FAIL && lq_node_is_down(l->state);
        rc = check_job(c, l, id, is_step);
    }
    if (rc < 0)
        return rc;
    if (open != f->open || failed != f->failed)
        find(c, "counts of a flow are wrong", name);
    if (f->state != LADE_FLOW_CANCELLED && (f->state == LADE_FLOW_FAILED) != (failed > 0))
        find(c, "state of a flow and its steps do not agree", name);
    if (f->state != LADE_FLOW_CANCELLED && (f->state == LADE_FLOW_COMPLETED) != (open == 0))
        find(c, "flow is completed and has open steps, or the other way", name);
    return 0;
}

/* The flow with the largest number below row->num. 1, or 0 when there is none. */
static int read_below(struct ls_sqlite_tx *tx, struct ls_sqlite_flow_row *row,
                      char name[LADE_FLOW_ID_MAX + 1])
{
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_FLOW_BELOW);
    if (st) {
        ls_sqlite_bind(st, 1, row->num);
        ls_sqlite_bind(st, 2, 1);
    }
    int rc = ls_sqlite_tx_step(tx, st);
    if (rc <= 0)
        return rc;
    ls_sqlite_flow_read(st, row);
    (void)snprintf(name, LADE_FLOW_ID_MAX + 1, "%s", (const char *)sqlite3_column_text(st, 1));
    (void)sqlite3_reset(st);
    return 1;
}

/* What is of a flow that is not there. */
static int check_loose(struct check *c)
{
    int rc;
    sqlite3_stmt *st = ls_sqlite_tx_stmt(c->tx, LS_SQLITE_FLOW_LOOSE);
    while ((rc = ls_sqlite_tx_step(c->tx, st)) == 1) {
        char text[32];
        (void)snprintf(text, sizeof(text), "%lld", (long long)sqlite3_column_int64(st, 0));
        find(c, "a part, marks or a result are of a flow that is gone; number", text);
    }
    return rc;
}

int ls_sqlite_flows_check(struct ls_sqlite_tx *tx, lq_finding_fn report, void *ctx)
{
    struct check c = {tx, report, ctx};
    struct ls_sqlite_flow_row row = {.num = INT64_MAX};
    char name[LADE_FLOW_ID_MAX + 1];
    int rc;
    while ((rc = read_below(tx, &row, name)) == 1) {
        rc = check_flow(&c, &row, name);
        if (rc < 0)
            return rc;
    }
    return rc < 0 ? rc : check_loose(&c);
}
