#include "queue/flow_build.h"

#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "queue/job.h"
#include "queue/names.h"

#define DEFAULT_QUEUE "default"
#define CALLBACK      SIZE_MAX /* in a path: the job of a group */

/* A node while the tree is walked: buffers move, so everything is an offset. */
struct draft {
    const lade_job_spec *job;
    enum lade_flow_policy policy;
    uint32_t dep_at, n_deps;
    size_t body_at;
};

struct build {
    struct lq_flow_plan *plan;
    uint32_t payload_max;
    int64_t now_ms;
    struct lb_buf drafts;                 /* struct draft */
    size_t path[LADE_FLOW_DEPTH_MAX + 1]; /* index of each step within the one around it */
    size_t depth;
    const char *root; /* how the path begins */
    lade_err *err;
};

/* What a step is compiled with. */
struct place {
    const lade_flow_step *step;
    enum lade_flow_policy policy;
    struct lb_slice in;  /* uint32_t: the nodes it runs after */
    bool is_followed;    /* by a step of the same chain */
    bool in_graph;       /* directly */
    struct lb_buf *ends; /* uint32_t: where its last nodes are added */
};

static int compile(struct build *b, const struct place *at);

/* "root.steps[2].job" */
static int fail(const struct build *b, enum lade_errno code, const char *text)
{
    char path[LADE_FLOW_DEPTH_MAX * 32 + 16];
    (void)snprintf(path, sizeof(path), "%s", b->root);
    size_t n = strlen(path);
    for (size_t i = 0; i < b->depth && n < sizeof(path) - 24; i++) {
        int more = b->path[i] == CALLBACK
                       ? snprintf(path + n, sizeof(path) - n, ".job")
                       : snprintf(path + n, sizeof(path) - n, ".steps[%zu]", b->path[i]);
        n += more > 0 ? (size_t)more : 0;
    }
    bool is_long = n > 96; /* the innermost part says most */
    return lb_fail(b->err, code, "flow", "%s%s: %s", is_long ? "..." : "",
                   path + (is_long ? n - 96 : 0), text);
}

static size_t count_nodes(const struct build *b)
{
    return b->drafts.n / sizeof(struct draft);
}

static int check_job(struct build *b, const lade_job_spec *job, bool is_first)
{
    lade_err inner = {0};
    int rc = lq_job_check(job, b->payload_max, SIZE_MAX, &inner);
    if (rc < 0)
        return fail(b, (enum lade_errno) - rc, inner.text);
    if (job->id)
        return fail(b, LADE_EINVAL,
                    "id is set; jobs of a flow are named after it, give the flow an id instead");
    if (job->unique.key.size > 0)
        return fail(b, LADE_EINVAL, "unique.key is set; jobs of a flow cannot be unique");
    if (job->key.size > 0)
        return fail(b, LADE_EINVAL, "key is set; jobs of a flow have no key");
    if (job->at > 0 && !is_first)
        return fail(b, LADE_EINVAL,
                    "at is set; only first steps can have it, others have in, which counts from "
                    "the end of the step before");
    return 0;
}

/* A node that runs after `in`; its number is added to `ends` (NULL for on_failure). */
static int add_node(struct build *b, const lade_job_spec *job, enum lade_flow_policy policy,
                    struct lb_slice in, struct lb_buf *ends)
{
    struct lb_buf *deps = &b->plan->deps;
    uint32_t node = (uint32_t)count_nodes(b);
    if (node == LADE_FLOW_STEPS_MAX && ends)
        return fail(b, LADE_ETOOBIG, "the flow has more than 10000 jobs (LADE_FLOW_STEPS_MAX)");
    if ((deps->n + in.n) / sizeof(uint32_t) > LADE_FLOW_EDGES_MAX)
        return fail(b, LADE_ETOOBIG,
                    "more than 100000 pairs of steps that run one after the other "
                    "(LADE_FLOW_EDGES_MAX); put a job between the two groups");
    int rc = check_job(b, job, in.n == 0);
    if (rc < 0)
        return rc;
    struct draft d = {.job = job,
                      .policy = policy,
                      .dep_at = (uint32_t)(deps->n / sizeof(uint32_t)),
                      .n_deps = (uint32_t)(in.n / sizeof(uint32_t)),
                      .body_at = b->plan->bodies.n};
    lb_buf_add(deps, in.p, in.n);
    lq_job_encode(&b->plan->bodies, job, b->now_ms);
    lb_buf_add(&b->drafts, &d, sizeof(d));
    if (ends)
        lb_buf_add(ends, &node, sizeof(node));
    if (b->plan->bodies.n > LADE_FLOW_BYTES_MAX)
        return fail(b, LADE_ETOOBIG,
                    "the jobs of the flow have more than 256 MiB together (LADE_FLOW_BYTES_MAX)");
    bool failed =
        deps->failed || b->plan->bodies.failed || b->drafts.failed || (ends && ends->failed);
    return failed ? lb_fail_nomem(b->err, "flow") : 0;
}

/* One of the steps within. */
static int compile_child(struct build *b, const struct place *at, size_t i, struct lb_slice in,
                         struct lb_buf *ends)
{
    struct place child = {&at->step->steps[i],
                          at->policy,
                          in,
                          at->step->type == LADE_FLOW_CHAIN && i + 1 < at->step->n_steps,
                          at->step->type == LADE_FLOW_GRAPH,
                          ends};
    b->path[b->depth++] = i;
    int rc = compile(b, &child);
    if (rc == 0)
        b->depth--;
    return rc;
}

static int compile_chain(struct build *b, const struct place *at)
{
    struct lb_buf cur, next;
    int rc = 0;
    lb_buf_init(&cur);
    lb_buf_init(&next);
    lb_buf_add(&cur, at->in.p, at->in.n);
    for (size_t i = 0; i < at->step->n_steps && rc == 0; i++) {
        lb_buf_clear(&next);
        rc = compile_child(b, at, i, lb_buf_slice(&cur), &next);
        struct lb_buf swap = cur;
        cur = next;
        next = swap;
    }
    lb_buf_add(at->ends, cur.p, cur.n);
    if (rc == 0 && (cur.failed || at->ends->failed))
        rc = lb_fail_nomem(b->err, "flow");
    lb_buf_fini(&cur);
    lb_buf_fini(&next);
    return rc;
}

static int compile_group(struct build *b, const struct place *at)
{
    struct lb_buf all;
    int rc = 0;
    if (!at->step->job && !at->is_followed)
        return fail(b, LADE_EINVAL,
                    "a group has no callback; give it a job, or let a step of a chain follow it");
    lb_buf_init(&all);
    for (size_t i = 0; i < at->step->n_steps && rc == 0; i++)
        rc = compile_child(b, at, i, at->in, &all);
    if (rc == 0 && at->step->job) {
        b->path[b->depth++] = CALLBACK;
        rc = add_node(b, at->step->job, at->policy, lb_buf_slice(&all), at->ends);
        b->depth -= rc == 0;
    } else if (rc == 0) {
        lb_buf_add(at->ends, all.p, all.n);
        if (all.failed || at->ends->failed)
            rc = lb_fail_nomem(b->err, "flow");
    }
    lb_buf_fini(&all);
    return rc;
}

/* graph ------------------------------------------------------------------------------------------------------------ */

/* A graph while it is compiled; all arrays have one place for each step. */
struct graph {
    const lade_flow_step *steps;
    size_t n;
    size_t *left;   /* steps it still waits for; SIZE_MAX once it is ordered */
    size_t *order;  /* topological */
    size_t *end_at; /* where its ends lie in `ends`; one more place for the end of the last */
    size_t *n_ends;
    bool *has_next;
    struct lb_buf ends; /* uint32_t */
};

static int check_after(struct build *b, struct graph *g, size_t i)
{
    const lade_flow_step *s = &g->steps[i];
    char text[160];
    if (s->n_after > 0 && !s->after) {
        (void)snprintf(text, sizeof(text), "steps[%zu].after is NULL, but its n_after is not 0", i);
        return fail(b, LADE_EINVAL, text);
    }
    for (size_t k = 0; k < s->n_after; k++) {
        size_t other = s->after[k];
        if (other >= g->n) {
            (void)snprintf(text, sizeof(text), "steps[%zu].after names step %zu of %zu", i, other,
                           g->n);
            return fail(b, LADE_EINVAL, text);
        }
        if (g->order[other] == i + 1) { /* not in use yet: who named it last */
            (void)snprintf(text, sizeof(text), "steps[%zu].after names step %zu twice", i, other);
            return fail(b, LADE_EINVAL, text);
        }
        g->order[other] = i + 1;
        g->has_next[other] = true;
    }
    g->left[i] = s->n_after;
    return 0;
}

/* Follows `after` from any step that could not be ordered until a step comes again: that one lies on a cycle. */
static int fail_cycle(struct build *b, const struct graph *g)
{
    size_t at = 0;
    char text[160];
    while (g->left[at] == SIZE_MAX)
        at++;
    size_t before = at;
    for (size_t walked = 0; walked <= g->n; walked++) {
        const lade_flow_step *s = &g->steps[at];
        size_t k = 0;
        while (g->left[s->after[k]] == SIZE_MAX)
            k++;
        before = at;
        at = s->after[k];
    }
    (void)snprintf(text, sizeof(text),
                   "the graph has a cycle: steps[%zu] runs after steps[%zu], which runs after it",
                   before, at);
    return fail(b, LADE_EINVAL, text);
}

/* Kahn's algorithm; the list of steps that may come is the order itself. */
static int order_steps(struct build *b, struct graph *g)
{
    size_t n = 0, n_edges = 0;
    for (size_t i = 0; i < g->n; i++)
        n_edges += g->steps[i].n_after;
    if (n_edges > LADE_FLOW_EDGES_MAX)
        return fail(b, LADE_ETOOBIG, "after has more than 100000 entries (LADE_FLOW_EDGES_MAX)");
    size_t *first = lb_calloc(g->n + 2, sizeof(*first)); /* of the steps that run after each */
    size_t *later = lb_malloc((n_edges + 1) * sizeof(*later));
    for (size_t i = 0; first && later && i < g->n; i++) {
        for (size_t k = 0; k < g->steps[i].n_after; k++)
            first[g->steps[i].after[k] + 2]++;
    }
    for (size_t i = 2; first && later && i < g->n + 2; i++)
        first[i] += first[i - 1];
    for (size_t i = 0; first && later && i < g->n; i++) {
        for (size_t k = 0; k < g->steps[i].n_after; k++)
            later[first[g->steps[i].after[k] + 1]++] = i;
        if (g->left[i] == 0)
            g->order[n++] = i;
    }
    for (size_t at = 0; first && later && at < n; at++) {
        size_t i = g->order[at];
        g->left[i] = SIZE_MAX;
        for (size_t k = first[i]; k < first[i + 1]; k++) {
            if (--g->left[later[k]] == 0)
                g->order[n++] = later[k];
        }
    }
    bool ok = first && later;
    lb_free(first);
    lb_free(later);
    if (!ok)
        return lb_fail_nomem(b->err, "flow");
    return n < g->n ? fail_cycle(b, g) : 0;
}

static int compile_steps(struct build *b, const struct place *at, struct graph *g)
{
    struct lb_buf in, out;
    int rc = 0;
    lb_buf_init(&in);
    lb_buf_init(&out);
    for (size_t n = 0; n < g->n && rc == 0; n++) {
        size_t i = g->order[n];
        const lade_flow_step *s = &g->steps[i];
        lb_buf_clear(&in);
        lb_buf_clear(&out);
        for (size_t k = 0; k < s->n_after; k++)
            lb_buf_add(&in, g->ends.p + g->end_at[s->after[k]], g->n_ends[s->after[k]]);
        rc = compile_child(b, at, i, s->n_after > 0 ? lb_buf_slice(&in) : at->in, &out);
        g->end_at[i] = g->ends.n;
        g->n_ends[i] = out.n;
        lb_buf_add(&g->ends, out.p, out.n);
        if (!g->has_next[i])
            lb_buf_add(at->ends, out.p, out.n);
        if (rc == 0 && (in.failed || out.failed || g->ends.failed || at->ends->failed))
            rc = lb_fail_nomem(b->err, "flow");
    }
    lb_buf_fini(&in);
    lb_buf_fini(&out);
    return rc;
}

static int compile_graph(struct build *b, const struct place *at)
{
    struct graph g = {.steps = at->step->steps, .n = at->step->n_steps};
    if (g.n > LADE_FLOW_STEPS_MAX)
        return fail(b, LADE_ETOOBIG, "n_steps is over 10000 (LADE_FLOW_STEPS_MAX)");
    size_t *numbers = lb_calloc(4 * g.n, sizeof(*numbers));
    g.has_next = lb_calloc(g.n, sizeof(*g.has_next));
    if (!numbers || !g.has_next) {
        lb_free(numbers);
        lb_free(g.has_next);
        return lb_fail_nomem(b->err, "flow");
    }
    int rc = 0;
    lb_buf_init(&g.ends);
    g.left = numbers;
    g.order = numbers + g.n;
    g.end_at = numbers + 2 * g.n;
    g.n_ends = numbers + 3 * g.n;
    for (size_t i = 0; i < g.n && rc == 0; i++)
        rc = check_after(b, &g, i);
    if (rc == 0)
        rc = order_steps(b, &g);
    if (rc == 0)
        rc = compile_steps(b, at, &g);
    lb_free(numbers);
    lb_free(g.has_next);
    lb_buf_fini(&g.ends);
    return rc;
}

/* ------------------------------------------------------------------------------------------------------------------ */

static int check_step(const struct build *b, const lade_flow_step *s)
{
    static const char *const names[] = {"job", "chain", "group", "graph"};
    char text[96];
    if ((unsigned)s->type > LADE_FLOW_GRAPH)
        return fail(b, LADE_EINVAL, "type is unknown");
    if ((unsigned)s->on_dead > LADE_FLOW_WAIT)
        return fail(b, LADE_EINVAL, "on_dead is unknown");
    if (s->type == LADE_FLOW_JOB && !s->job)
        return fail(b, LADE_EINVAL, "job is NULL; a step of type job needs one");
    if (s->type == LADE_FLOW_JOB)
        return s->n_steps == 0 ? 0
                               : fail(b, LADE_EINVAL, "steps is set; a step of type job has none");
    if (s->n_steps == 0 || !s->steps) {
        (void)snprintf(text, sizeof(text), "steps is empty; a %s needs at least one",
                       names[s->type]);
        return fail(b, LADE_EINVAL, text);
    }
    if (s->n_steps > LADE_FLOW_STEPS_MAX) /* each has a job at least, so none need be looked at */
        return fail(b, LADE_ETOOBIG, "the flow has more than 10000 jobs (LADE_FLOW_STEPS_MAX)");
    if (s->type != LADE_FLOW_GROUP && s->job) {
        (void)snprintf(text, sizeof(text), "job is set; a %s has none, only groups have a callback",
                       names[s->type]);
        return fail(b, LADE_EINVAL, text);
    }
    return 0;
}

static int compile(struct build *b, const struct place *at)
{
    struct place here = *at;
    if (b->depth >= LADE_FLOW_DEPTH_MAX)
        return fail(b, LADE_EINVAL,
                    "steps nest deeper than 32 (LADE_FLOW_DEPTH_MAX); does one contain itself?");
    int rc = check_step(b, at->step);
    if (rc == 0 && at->step->n_after > 0 && !at->in_graph)
        rc = fail(b, LADE_EINVAL, "after is set; only steps of a graph can have it");
    if (rc < 0)
        return rc;
    if (at->step->on_dead != LADE_FLOW_INHERIT)
        here.policy = at->step->on_dead;
    switch (at->step->type) {
    case LADE_FLOW_CHAIN:
        return compile_chain(b, &here);
    case LADE_FLOW_GROUP:
        return compile_group(b, &here);
    case LADE_FLOW_GRAPH:
        return compile_graph(b, &here);
    case LADE_FLOW_JOB:
    default:
        return add_node(b, at->step->job, here.policy, at->in, at->ends);
    }
}

/* The edges the other way round. */
static int reverse_edges(struct lq_flow_plan *p, uint32_t n, lade_err *err)
{
    uint32_t *first = lb_calloc(n + 2, sizeof(*first));
    p->next = lb_malloc(p->deps.n + sizeof(*p->next));
    if (!first || !p->next) {
        lb_free(first);
        return lb_fail_nomem(err, "flow");
    }
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t k = 0; k < p->node[i].n_deps; k++)
            first[p->node[i].dep[k] + 2]++;
    }
    for (uint32_t i = 2; i < n + 2; i++)
        first[i] += first[i - 1];
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t k = 0; k < p->node[i].n_deps; k++)
            p->next[first[p->node[i].dep[k] + 1]++] = i;
    }
    for (uint32_t i = 0; i < n; i++) {
        p->node[i].next = p->next + first[i];
        p->node[i].n_next = first[i + 1] - first[i];
    }
    lb_free(first);
    return 0;
}

static void fill_node(struct lq_flow_node *node, const struct lq_flow_plan *p,
                      const struct draft *d, size_t body_end)
{
    const lade_job_spec *s = d->job;
    *node = (struct lq_flow_node){
        .queue = s->queue ? s->queue : DEFAULT_QUEUE,
        .kind = lb_slice_str(s->kind),
        .body = lb_slice(p->bodies.p + d->body_at, body_end - d->body_at),
        .level = LADE_PRIORITY_MAX - s->priority,
        .policy = d->policy,
        .dep = (const uint32_t *)(const void *)p->deps.p + d->dep_at,
        .n_deps = d->n_deps,
    };
    if (s->at > 0) {
        node->when = LQ_WHEN_AT;
        node->when_ms = lb_ms_up(s->at);
    } else if (s->in > 0) {
        node->when = LQ_WHEN_IN;
        node->when_ms = lb_ms_up(s->in);
    }
}

/* All drafts are there: the nodes get their final places. */
static int finish(struct build *b, uint32_t n_steps)
{
    struct lq_flow_plan *p = b->plan;
    const struct draft *d = (const struct draft *)(const void *)b->drafts.p;
    uint32_t n = (uint32_t)count_nodes(b);
    p->node = lb_calloc(n, sizeof(*p->node));
    /* an address for the deps of a flow that has none */
    if (!p->node || !lb_buf_reserve(&p->deps, sizeof(uint32_t)))
        return lb_fail_nomem(b->err, "flow");
    for (uint32_t i = 0; i < n; i++)
        fill_node(&p->node[i], p, &d[i], i + 1 < n ? d[i + 1].body_at : p->bodies.n);
    p->flow.node = p->node;
    p->flow.n = n;
    p->flow.n_steps = n_steps;
    return reverse_edges(p, n, b->err);
}

static int check_flow(const lade_flow_spec *spec, lade_err *err)
{
    if (!spec)
        return lb_fail(err, LADE_EINVAL, "flow", "spec is NULL");
    if (spec->id && (!lq_id_is_valid(spec->id) || strlen(spec->id) > LADE_FLOW_ID_MAX))
        return lb_fail(err, LADE_EINVAL, "flow",
                       "id '%.70s' must be 1 to %d characters of A-Z a-z 0-9 . _ : -", spec->id,
                       LADE_FLOW_ID_MAX);
    if (spec->name && strlen(spec->name) > LADE_NAME_MAX)
        return lb_fail(err, LADE_ETOOBIG, "flow", "name is longer than %d bytes", LADE_NAME_MAX);
    if (spec->root.n_after > 0)
        return lb_fail(err, LADE_EINVAL, "flow",
                       "root.after is set; only steps of a graph can have it");
    return 0;
}

static int build(struct build *b, const lade_flow_spec *spec)
{
    struct lb_buf ends;
    lb_buf_init(&ends);
    struct place root = {&spec->root, LADE_FLOW_FAIL, {NULL, 0}, false, false, &ends};
    int rc = compile(b, &root);
    lb_buf_fini(&ends);
    uint32_t n_steps = (uint32_t)count_nodes(b);
    if (rc == 0 && spec->on_failure) {
        b->root = "on_failure";
        b->depth = 0;
        rc = add_node(b, spec->on_failure, LADE_FLOW_WAIT, (struct lb_slice){0}, NULL);
    }
    return rc < 0 ? rc : finish(b, n_steps);
}

int lq_flow_build(struct lq_flow_plan *plan, const lade_flow_spec *spec, uint32_t payload_max,
                  int64_t now_ms, lade_err *err)
{
    int rc = check_flow(spec, err);
    if (rc < 0)
        return rc;
    *plan = (struct lq_flow_plan){0};
    plan->flow.name = lb_slice_str(spec->name ? spec->name : "");
    plan->flow.cancel_siblings = spec->cancel_siblings;
    lb_buf_init(&plan->deps);
    lb_buf_init(&plan->bodies);
    struct build b = {.plan = plan, .payload_max = payload_max, .now_ms = now_ms, .err = err};
    b.root = "root";
    lb_buf_init(&b.drafts);
    rc = build(&b, spec);
    lb_buf_fini(&b.drafts);
    if (rc < 0)
        lq_flow_plan_fini(plan);
    return rc;
}

void lq_flow_plan_fini(struct lq_flow_plan *plan)
{
    lb_free(plan->node);
    lb_free(plan->next);
    lb_buf_fini(&plan->deps);
    lb_buf_fini(&plan->bodies);
}
