/* op_flow.c - flows: put, look, act. What the end of a job does to its flow is in memory_flow.c */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "queue/flow_store.h"
#include "store/memory/memory_flow.h"
#include "store/memory/memory_ops.h"

static bool bear_first(struct ls_memory_home *h, struct ls_memory_births *b,
                       const struct ls_memory_flow *f)
{
    bool ok = true;
    for (uint32_t i = 0; ok && i < f->n_steps; i++) {
        if (f->step[i].n_deps == 0)
            ok = ls_memory_flow_bear(h, b, f, i);
    }
    return ok;
}

int ls_memory_flow_put(struct lq_store *s, struct lq_flow *flow, lade_err *err)
{
    int64_t now;
    struct ls_memory_home *h = ls_memory_enter(s, &now);
    struct ls_memory_births b = {0};
    struct ls_memory_flow *f = ls_memory_flow_find(h, flow->id);
    flow->outcome = f ? LADE_DUPLICATE : LADE_DONE;
    bool ok = true;
    if (!f) {
        f = ls_memory_flow_make(h, flow, now);
        ok = f && bear_first(h, &b, f);
        for (uint32_t i = 0; ok && i < f->n_steps; i++) {
            if (f->step[i].n_deps == 0)
                ls_memory_flow_launch(h, f, i, now);
        }
        ls_memory_flow_finish(&b);
        if (ok)
            ls_memory_flow_enter(h, f, LADE_FLOW_RUNNING, now);
        else if (f)
            ls_memory_flow_drop(h, f);
    }
    lr_mutex_unlock(&h->lock);
    return ok ? LADE_DONE : lb_fail_nomem(err, "flow");
}

/* look ------------------------------------------------------------------------------------------------------------- */

static struct lb_slice copy(struct lb_arena *a, struct lb_slice from, bool *ok)
{
    struct lb_mut m = lb_arena_copy(a, from.p, from.n);
    *ok = *ok && m.p;
    return lb_slice_of(m);
}

static bool describe(const struct ls_memory_flow *f, struct lb_arena *a, struct lq_flow_row *row)
{
    bool ok = true;
    *row = (struct lq_flow_row){
        .id = copy(a, lb_slice_str(f->id), &ok),
        .name = copy(a, f->name, &ok),
        .state = f->state,
        .created_ms = f->created_ms,
        .finished_ms = f->finished_ms,
        .cancel_siblings = f->cancel_siblings,
        .n = f->n,
        .n_steps = f->n_steps,
    };
    return ok;
}

static bool describe_nodes(const struct ls_memory_flow *f, struct lb_arena *a,
                           struct lq_flow_row *row)
{
    struct lq_flow_node_row *node = lb_arena_alloc(a, f->n * sizeof(*node));
    bool ok = node;
    for (uint32_t i = 0; ok && i < f->n; i++) {
        const struct ls_memory_step *step = &f->step[i];
        struct lb_slice dep = lb_slice(step->dep, step->n_deps * sizeof(*step->dep));
        node[i] = (struct lq_flow_node_row){
            .queue = (const char *)copy(a, lb_slice_str(step->queue), &ok).p,
            .kind = copy(a, step->kind, &ok),
            .state = step->state,
            .policy = step->policy,
            .dep = (const uint32_t *)(const void *)copy(a, dep, &ok).p,
            .n_deps = step->n_deps,
        };
    }
    row->node = node;
    return ok;
}

/* Room for n more rows. */
static bool reserve(struct lq_flow_row_vec *out, size_t n)
{
    struct lq_flow_row *row = lb_arena_alloc(&out->arena, (out->n + n) * sizeof(*row));
    if (row && out->n > 0)
        memcpy(row, out->row, out->n * sizeof(*row));
    if (row)
        out->row = row;
    return row;
}

int ls_memory_flow_get(struct lq_store *s, struct lb_slice id, struct lq_flow_row_vec *out,
                       lade_err *err)
{
    int64_t now;
    struct ls_memory_home *h = ls_memory_enter(s, &now);
    const struct ls_memory_flow *f = ls_memory_flow_find(h, id);
    struct lq_flow_row row;
    bool ok = !f || (reserve(out, 1) && describe(f, &out->arena, &row) &&
                     describe_nodes(f, &out->arena, &row));
    if (ok && f)
        out->row[out->n++] = row;
    lr_mutex_unlock(&h->lock);
    if (!ok)
        return lb_fail_nomem(err, "flow");
    return f ? LADE_DONE : LADE_NOT_FOUND;
}

int ls_memory_flow_list(struct lq_store *s, lade_cursor *cursor, size_t limit,
                        struct lq_flow_row_vec *out, lade_err *err)
{
    int64_t now, below = INT64_MAX;
    if (cursor->at[0])
        below = strtoll(cursor->at, NULL, 10);
    if (below <= 0)
        return lb_fail(err, LADE_EINVAL, "flows", "the cursor is none of a listing of flows");
    struct ls_memory_home *h = ls_memory_enter(s, &now);
    size_t n = 0;
    bool ok = reserve(out, limit);
    struct lb_list *it = h->flows_list.prev;
    for (; ok && it != &h->flows_list && n < limit; it = it->prev) {
        const struct ls_memory_flow *f = LB_CONTAINER_OF(it, struct ls_memory_flow, in_home);
        if (f->sequence >= below)
            continue;
        ok = describe(f, &out->arena, &out->row[out->n + n++]);
        below = f->sequence;
    }
    cursor->done = it == &h->flows_list;
    lr_mutex_unlock(&h->lock);
    if (!ok)
        return lb_fail_nomem(err, "flows");
    (void)snprintf(cursor->at, sizeof(cursor->at), "%" PRId64, below);
    out->n += n;
    return n == 0 ? LADE_EMPTY : LADE_DONE;
}

/* Input i of a node, by number; false at the end. on_failure has those that are down. */
static bool find_input(const struct ls_memory_flow *f, uint32_t node, size_t *at, uint32_t *out)
{
    if (node < f->n_steps) {
        if (*at >= f->step[node].n_deps)
            return false;
        *out = f->step[node].dep[(*at)++];
        return true;
    }
    while (*at < f->n_steps && !lq_node_is_down(f->step[*at].state))
        ++*at;
    *out = (uint32_t)*at;
    return (*at)++ < f->n_steps;
}

static bool collect_inputs(const struct ls_memory_flow *f, uint32_t node, size_t first, size_t max,
                           struct lq_input_vec *out)
{
    size_t at = 0, bytes = 0;
    uint32_t from;
    bool ok = true, full = false;
    for (out->total = out->n = 0; ok && find_input(f, node, &at, &from); out->total++) {
        const struct ls_memory_step *step = &f->step[from];
        full = full || out->n == max || (out->n > 0 && bytes + step->result.n > LQ_INPUT_BYTES);
        if (out->total < first || full)
            continue;
        bytes += step->result.n;
        struct lb_slice result = copy(out->arena, lb_slice_of(step->result), &ok);
        out->input[out->n++] = (struct lq_input){from, step->state, result};
    }
    return ok;
}

int ls_memory_flow_inputs(struct lq_store *s, struct lb_slice id, uint32_t node, size_t first,
                          size_t max, struct lq_input_vec *out, lade_err *err)
{
    int64_t now;
    out->input = lb_arena_alloc(out->arena, (max + 1) * sizeof(*out->input));
    if (!out->input)
        return lb_fail_nomem(err, "inputs");
    struct ls_memory_home *h = ls_memory_enter(s, &now);
    const struct ls_memory_flow *f = ls_memory_flow_find(h, id);
    bool found = f && node < f->n;
    bool ok = !found || collect_inputs(f, node, first, max, out);
    lr_mutex_unlock(&h->lock);
    if (!ok)
        return lb_fail_nomem(err, "inputs");
    return found ? LADE_DONE : LADE_NOT_FOUND;
}

/* act -------------------------------------------------------------------------------------------------------------- */

static int cancel(struct ls_memory_home *h, struct ls_memory_flow *f, int64_t now_ms)
{
    if (f->state == LADE_FLOW_COMPLETED || f->state == LADE_FLOW_CANCELLED)
        return LADE_WRONG_STATE;
    ls_memory_flow_enter(h, f, LADE_FLOW_CANCELLED, now_ms);
    for (uint32_t i = 0; i < f->n; i++) {
        struct ls_memory_step *step = &f->step[i];
        bool enqueued = step->state == LADE_STEP_ENQUEUED;
        if (!enqueued && (step->state != LADE_STEP_WAITING || i >= f->n_steps))
            continue;
        step->state = LADE_STEP_CANCELLED;
        f->failed += i < f->n_steps && step->policy == LADE_FLOW_FAIL;
        if (enqueued)
            ls_memory_flow_stop_job(h, f, i, now_ms);
    }
    return LADE_DONE;
}

static struct ls_memory_job *find_job(struct ls_memory_home *h, const struct ls_memory_flow *f,
                                      uint32_t node)
{
    char id[LADE_ID_MAX + 1];
    size_t n = lq_flow_join(id, lb_slice_str(f->id), node);
    const struct ls_memory_queue *q = ls_memory_queue_find(h, f->step[node].queue);
    return q ? ls_memory_job_find(q, lb_slice(id, n)) : NULL;
}

static bool is_to_run(const struct ls_memory_step *step)
{
    return lq_node_is_down(step->state) && step->missing == 0;
}

/* The on_failure job may run once more; what is left of an old one goes. */
static void rearm(struct ls_memory_home *h, struct ls_memory_flow *f)
{
    struct ls_memory_job *j = find_job(h, f, f->n_steps);
    if (j && !ls_memory_state_is_ended(j->state))
        return;
    if (j)
        ls_memory_job_drop(h, j);
    f->step[f->n_steps].state = LADE_STEP_WAITING;
    lb_free(f->step[f->n_steps].result.p);
    f->step[f->n_steps].result = (struct lb_mut){0};
}

static int retry(struct ls_memory_home *h, struct ls_memory_flow *f, struct ls_memory_births *b,
                 int64_t now_ms)
{
    bool any = false, ok = true;
    for (uint32_t i = 0; ok && i < f->n_steps; i++) {
        any = any || lq_node_is_down(f->step[i].state);
        if (is_to_run(&f->step[i]))
            ok = ls_memory_flow_bear(h, b, f, i);
    }
    if (!ok)
        return -LADE_ENOMEM;
    if (!any)
        return LADE_WRONG_STATE;
    f->failed = 0;
    ls_memory_flow_enter(h, f, LADE_FLOW_RUNNING, now_ms);
    if (f->n > f->n_steps)
        rearm(h, f);
    for (uint32_t i = 0; i < f->n_steps; i++) {
        struct ls_memory_step *step = &f->step[i];
        if (!is_to_run(step)) {
            if (lq_node_is_down(step->state))
                step->state = LADE_STEP_WAITING;
            continue;
        }
        struct ls_memory_job *j = find_job(h, f, i);
        if (ls_memory_state_is_ended(j->state))
            ls_memory_job_revive(h, j, now_ms);
        ls_memory_flow_launch(h, f, i, now_ms);
    }
    return LADE_DONE;
}

int ls_memory_flow_act(struct lq_store *s, struct lb_slice id, enum lade_flow_verb verb,
                       lade_err *err)
{
    int64_t now;
    struct ls_memory_births b = {0};
    struct ls_memory_home *h = ls_memory_enter(s, &now);
    struct ls_memory_flow *f = ls_memory_flow_find(h, id);
    int rc = f ? LADE_DONE : LADE_NOT_FOUND;
    if (f && verb == LADE_FLOW_CANCEL)
        rc = cancel(h, f, now);
    else if (f && verb == LADE_FLOW_RETRY)
        rc = retry(h, f, &b, now);
    else if (f)
        ls_memory_flow_drop(h, f);
    ls_memory_flow_finish(&b);
    lr_mutex_unlock(&h->lock);
    return rc < 0 ? lb_fail_nomem(err, "flow") : rc;
}
