/* flow.c - workflows as programs and operators see them; how they are compiled is in flow_build.c */
#include "queue/flow.h"

#include <stdio.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/ident.h"
#include "base/mem.h"
#include "queue/client.h"
#include "queue/flow_build.h"
#include "queue/flow_store.h"
#include "queue/names.h"

const char *lade_flow_state_name(enum lade_flow_state state)
{
    static const char *const names[] = {"running", "completed", "failed", "cancelled"};

    return (unsigned)state < LADE_N_FLOW_STATES ? names[state] : NULL;
}

const char *lade_flow_step_state_name(enum lade_flow_step_state state)
{
    static const char *const names[] = {"waiting", "enqueued",  "completed",
                                        "dead",    "cancelled", "skipped"};

    return (unsigned)state < LADE_N_STEP_STATES ? names[state] : NULL;
}

const char *lade_flow_policy_name(enum lade_flow_policy policy)
{
    switch (policy) {
    case LADE_FLOW_FAIL:
        return "fail";
    case LADE_FLOW_CONTINUE:
        return "continue";
    case LADE_FLOW_WAIT:
        return "wait";
    case LADE_FLOW_INHERIT:
    default:
        return NULL;
    }
}

/* Every function that needs the store's flows asks here first. */
static int check_store(const lade *q, lade_err *err)
{
    if (q->store->ops->flow_put)
        return 0;
    return lb_fail(err, LADE_EUNSUPPORTED, "flow", "the store %s has no workflows",
                   q->store->ops->name);
}

static int check_id(const char *id, lade_err *err)
{
    if (id && lq_id_is_valid(id))
        return 0;
    return lb_fail(err, LADE_EINVAL, "flow",
                   "id '%.70s' must be 1 to %d characters of A-Z a-z 0-9 . _ : -", id ? id : "",
                   LADE_FLOW_ID_MAX);
}

int lade_flow_enqueue(lade *q, const lade_flow_spec *spec, lade_id *id, lade_err *err)
{
    LQ_REFUSE_NULL(q, "flow");
    struct lq_flow_plan plan;
    lade_id made;
    int64_t wall = q->clock(q->clock_ctx);
    int rc = lq_flow_build(&plan, spec, q->payload_max, wall / LADE_MILLISECOND, err);
    if (rc < 0)
        return rc;
    if (spec->id)
        (void)snprintf(made.text, sizeof(made.text), "%s", spec->id);
    else
        lb_ulid(made.text, wall);
    plan.flow.id = lb_slice_str(made.text);
    plan.flow.fresh = !spec->id;
    rc = check_store(q, err);
    if (rc == 0)
        rc = lq_flow_put(q->store, &plan.flow, err);
    if (rc == 0)
        rc = plan.flow.outcome;
    if (rc >= 0 && id)
        *id = made;
    lq_flow_plan_fini(&plan);
    return rc;
}

int lade_flow_check(lade *q, const lade_flow_spec *spec, lade_err *err)
{
    LQ_REFUSE_NULL(q, "flow");
    struct lq_flow_plan plan;
    int rc = lq_flow_build(&plan, spec, q->payload_max, lq_client_now_ms(q), err);
    if (rc == 0)
        lq_flow_plan_fini(&plan);
    return rc;
}

int lade_flow_act(lade *q, enum lade_flow_verb verb, const char *id, lade_err *err)
{
    LQ_REFUSE_NULL(q, "flow");
    int rc = check_id(id, err);
    if (rc == 0 && (unsigned)verb > LADE_FLOW_REMOVE)
        rc = lb_fail(err, LADE_EINVAL, "flow", "verb %d is unknown", (int)verb);
    if (rc == 0)
        rc = check_store(q, err);
    return rc < 0 ? rc : lq_flow_act(q->store, lb_slice_str(id), verb, err);
}

/* look ------------------------------------------------------------------------------------------------------------- */

struct view_box {
    lade_flow_view view; /* first, so that the view's address is the box's */
    struct lb_arena arena;
};

void lade_flow_view_free(lade_flow_view *view)
{
    if (!view)
        return;
    struct view_box *box = (struct view_box *)(void *)view;
    lb_arena_fini(&box->arena);
    lb_free(box);
}

static const char *keep_string(struct view_box *box, struct lb_slice s, bool *ok)
{
    struct lb_mut m = lb_arena_copy(&box->arena, s.p, s.n);
    *ok = *ok && m.p;
    return m.p ? (const char *)m.p : "";
}

static bool fill_nodes(struct view_box *box, const struct lq_flow_row *row)
{
    char id[LADE_ID_MAX + 1];
    bool ok = true;
    lade_flow_node *nodes = lb_arena_alloc(&box->arena, row->n * sizeof(*nodes));
    for (uint32_t i = 0; nodes && i < row->n; i++) {
        const struct lq_flow_node_row *from = &row->node[i];
        size_t n = lq_flow_join(id, row->id, i);
        nodes[i] = (lade_flow_node){
            .id = keep_string(box, lb_slice(id, n), &ok),
            .kind = keep_string(box, from->kind, &ok),
            .queue = keep_string(box, lb_slice_str(from->queue), &ok),
            .state = from->state,
            .on_dead = from->policy,
            .n_after = from->n_deps,
        };
        nodes[i].after = (const uint32_t *)(const void *)keep_string(
            box, lb_slice(from->dep, from->n_deps * sizeof(*from->dep)), &ok);
    }
    box->view.nodes = nodes;
    return ok && nodes;
}

/* NULL when out of memory. */
static lade_flow_view *make_view(const struct lq_flow_row *row)
{
    struct view_box *box = lb_calloc(1, sizeof(*box));
    if (!box)
        return NULL;
    lb_arena_init(&box->arena);
    bool ok = true;
    box->view = (lade_flow_view){
        .id = keep_string(box, row->id, &ok),
        .name = keep_string(box, row->name, &ok),
        .state = row->state,
        .created_at = lb_ns_of_ms(row->created_ms),
        .finished_at = lb_ns_of_ms(row->finished_ms),
        .cancel_siblings = row->cancel_siblings,
        .n_steps = row->n_steps,
        .n_nodes = row->n,
    };
    if (row->node)
        ok = fill_nodes(box, row) && ok;
    if (ok)
        return &box->view;
    lade_flow_view_free(&box->view);
    return NULL;
}

int lade_flow_get(lade *q, const char *id, lade_flow_view **out, lade_err *err)
{
    LQ_REFUSE_NULL(q, "flow");
    LQ_REFUSE_NULL(out, "flow");
    int rc = check_id(id, err);
    if (rc == 0)
        rc = check_store(q, err);
    if (rc < 0)
        return rc;
    struct lq_flow_row_vec rows = {0};
    lb_arena_init(&rows.arena);
    rc = q->store->ops->flow_get(q->store, lb_slice_str(id), &rows, err);
    if (rc == 0) {
        lade_flow_view *v = make_view(&rows.row[0]);
        if (v)
            *out = v;
        else
            rc = lb_fail_nomem(err, "flow");
    }
    lb_arena_fini(&rows.arena);
    return rc;
}

static int check_list(const lade *q, const lade_cursor *cursor, size_t limit,
                      lade_flow_view *const *out, const size_t *n, lade_err *err)
{
    if (!cursor || !out || !n)
        return lb_fail(err, LADE_EINVAL, "flows", "cursor, out and n must not be NULL");
    if (limit == 0 || limit > 1000)
        return lb_fail(err, LADE_EINVAL, "flows", "limit %zu is not within 1 to 1000", limit);
    return check_store(q, err);
}

int lade_flow_list(lade *q, lade_cursor *cursor, size_t limit, lade_flow_view **out, size_t *n,
                   lade_err *err)
{
    LQ_REFUSE_NULL(q, "flows");
    int rc = check_list(q, cursor, limit, out, n, err);
    if (rc < 0)
        return rc;
    if (cursor->done) {
        *n = 0;
        return LADE_EMPTY;
    }
    struct lq_flow_row_vec rows = {0};
    lb_arena_init(&rows.arena);
    lade_cursor next = *cursor;
    rc = q->store->ops->flow_list(q->store, &next, limit, &rows, err);
    size_t made = 0;
    for (; rc >= 0 && made < rows.n; made++) {
        out[made] = make_view(&rows.row[made]);
        if (!out[made])
            rc = lb_fail_nomem(err, "flows");
    }
    if (rc >= 0) {
        *cursor = next;
        *n = rows.n;
    } else {
        for (size_t i = 0; i < made; i++)
            lade_flow_view_free(out[i]);
    }
    lb_arena_fini(&rows.arena);
    return rc;
}
