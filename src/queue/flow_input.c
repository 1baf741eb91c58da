/*
 * flow_input.c - what a handler sees of the steps before its own
 *
 * Nothing is fetched before a handler asks, so jobs that do not ask pay nothing, and results are never copied into the
 * jobs that might read them. The store gives inputs by the piece; what came stays until the handler has returned.
 */
#include <string.h>

#include "base/base.h"
#include "base/err.h"
#include "base/mem.h"
#include "queue/ahead.h"
#include "queue/flow.h"
#include "queue/flow_store.h"
#include "queue/worker.h"

#define PIECE 256 /* inputs of one trip */

/* In the job from the first question on. */
struct lq_inputs {
    struct lb_arena arena;
    char flow[LADE_FLOW_ID_MAX + 1]; /* "" = the job is of none */
    uint32_t node;
    size_t total;
    lade_flow_input *input; /* total of them; id NULL = not fetched */
    bool is_known;          /* total is */
};

void lq_inputs_free(struct lq_inputs *in)
{
    if (!in)
        return;
    lb_arena_fini(&in->arena);
    lb_free(in);
}

static struct lq_inputs *inputs_of(lade_job *job)
{
    if (job->inputs)
        return job->inputs;
    struct lq_inputs *in = lb_calloc(1, sizeof(*in));
    if (!in)
        return NULL;
    lb_arena_init(&in->arena);
    struct lb_slice flow;
    if (lq_flow_split(lb_slice_of(job->leased->id), &flow, &in->node) && flow.n <= LADE_FLOW_ID_MAX)
        memcpy(in->flow, flow.p, flow.n);
    job->inputs = in;
    return in;
}

const char *lade_job_flow(lade_job *job)
{
    if (!job)
        return NULL;
    if (!lq_flow_has(lb_slice_of(job->leased->id)))
        return NULL;
    const struct lq_inputs *in = inputs_of(job);
    return in && in->flow[0] ? in->flow : NULL;
}

static bool keep(struct lq_inputs *in, size_t first, const struct lq_input_vec *vec)
{
    for (size_t i = 0; i < vec->n && first + i < in->total; i++) {
        char id[LADE_ID_MAX + 1];
        (void)lq_flow_join(id, lb_slice_str(in->flow), vec->input[i].node);
        const char *kept = lb_arena_strdup(&in->arena, id);
        if (!kept)
            return false;
        in->input[first + i] =
            (lade_flow_input){kept, vec->input[i].state,
                              (lade_bytes){vec->input[i].result.p, vec->input[i].result.n}};
    }
    return true;
}

/* Fetches inputs from `first` on; the first time also how many there are. */
static int fetch(lade_job *job, struct lq_inputs *in, size_t first, lade_err *err)
{
    struct lq_store *s = job->worker->q->store;
    struct lq_input_vec vec = {.arena = &in->arena};
    int rc = lq_ahead_await(job, err);
    if (rc == LADE_STALE)
        return lb_fail(err, LADE_EUNAVAILABLE, "inputs",
                       "job %s is another worker's now; return LADE_RETRY", lade_job_id(job));
    if (rc < 0)
        return rc;
    rc = s->ops->flow_inputs
             ? s->ops->flow_inputs(s, lb_slice_str(in->flow), in->node, first, PIECE, &vec, err)
             : LADE_NOT_FOUND;
    if (rc < 0)
        return rc;
    if (rc == LADE_NOT_FOUND) /* the flow was removed: the job is one like any other */
        vec.n = vec.total = 0;
    if (!in->is_known) {
        in->input = lb_arena_alloc(&in->arena, (vec.total + 1) * sizeof(*in->input));
        if (!in->input)
            return lb_fail_nomem(err, "inputs");
        memset(in->input, 0, (vec.total + 1) * sizeof(*in->input));
        in->total = vec.total;
        in->is_known = true;
    }
    return keep(in, first, &vec) ? 0 : lb_fail_nomem(err, "inputs");
}

int lade_job_n_inputs(lade_job *job, size_t *n, lade_err *err)
{
    LQ_REFUSE_NULL(job, "inputs");
    LQ_REFUSE_NULL(n, "inputs");
    if (!lq_flow_has(lb_slice_of(job->leased->id))) {
        *n = 0;
        return 0;
    }
    struct lq_inputs *in = inputs_of(job);
    if (!in)
        return lb_fail_nomem(err, "inputs");
    int rc = in->is_known ? 0 : fetch(job, in, 0, err);
    if (rc == 0)
        *n = in->total;
    return rc;
}

int lade_job_input(lade_job *job, size_t i, lade_flow_input *out, lade_err *err)
{
    LQ_REFUSE_NULL(job, "inputs");
    LQ_REFUSE_NULL(out, "inputs");
    size_t n = 0;
    int rc = lade_job_n_inputs(job, &n, err);
    if (rc < 0)
        return rc;
    if (i >= n)
        return LADE_NOT_FOUND;
    struct lq_inputs *in = job->inputs;
    rc = in->input[i].id ? 0 : fetch(job, in, i, err);
    if (rc < 0)
        return rc;
    if (!in->input[i].id) /* of on_failure: what was down is not any more */
        return LADE_NOT_FOUND;
    *out = in->input[i];
    return out->result.size > 0 ? LADE_DONE : LADE_EMPTY;
}
