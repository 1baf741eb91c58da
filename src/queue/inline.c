/*
 * inline.c - a job run by who would enqueue it, without the store: <lade/testing.h>
 *
 * It goes through all that changes a job on its way, the checks, the envelope and what a store makes of its arguments, and then through the same code
 * as in a slot. What a handler records of its effects lasts for the run; what it says of its progress goes nowhere.
 */
#include <lade/testing.h>

#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/ident.h"
#include "base/mem.h"
#include "queue/worker.h"

#define QUEUE "default"

/* The body as a worker would be given it. */
static int make_body(lade *q, const lade_job_spec *spec, const char *id, struct lb_buf *out,
                     lade_err *err)
{
    struct lb_buf body;
    lb_buf_init(&body);
    lq_job_encode(&body, spec, lq_client_now_ms(q));
    struct lq_put put = {.queue = spec->queue ? spec->queue : QUEUE,
                         .id = lb_slice_str(id),
                         .body = lb_buf_slice(&body),
                         .fresh = !spec->id,
                         .level = LADE_PRIORITY_MAX - spec->priority};
    int rc = 0;
    if (body.failed)
        rc = lb_fail_nomem(err, "inline");
    else if (q->store->ops->passed_on)
        rc = q->store->ops->passed_on(q->store, &put, out, err);
    else
        lb_buf_add(out, body.p, body.n);
    lb_buf_fini(&body);
    return rc == 0 && out->failed ? lb_fail_nomem(err, "inline") : rc;
}

/* The one job of a haul that holds it. NULL: no memory, and the haul is gone. */
static struct lade_job *make_job(lade_worker *w, const char *queue, const char *id,
                                 struct lb_slice body)
{
    struct lq_haul *haul = lb_calloc(1, sizeof(*haul));
    if (!haul)
        return NULL;
    struct lb_arena *arena = &haul->vec.arena;
    lb_arena_init(arena);
    struct lq_leased *l = lb_arena_alloc(arena, sizeof(*l));
    const char *order = lb_arena_strdup(arena, queue);
    struct lade_job *job = NULL;
    if (l && order) {
        *l = (struct lq_leased){.id = lb_arena_copy(arena, id, strlen(id)),
                                .body = lb_arena_copy(arena, body.p, body.n),
                                .history = lb_arena_copy(arena, "", 0),
                                .fence = 1};
        haul->vec.job = l;
        haul->vec.n = 1;
        if (l->id.p && l->body.p && l->history.p)
            job = lq_haul_sole_job(w, haul, &order);
    }
    if (job) {
        job->inlined = true;
    } else {
        lb_arena_fini(arena);
        lb_free(haul);
    }
    return job;
}

static lade_outcome outcome_of(enum lq_to to)
{
    switch (to) {
    case LQ_TO_COMPLETED:
        return LADE_OK;
    case LQ_TO_SCHEDULED:
        return LADE_SNOOZE;
    case LQ_TO_DEAD:
        return LADE_DEAD;
    case LQ_TO_CANCELLED:
        return LADE_CANCEL;
    case LQ_TO_GONE:
        return LADE_DISCARD;
    case LQ_TO_THROTTLED:
        return LADE_RATE_LIMITED;
    case LQ_TO_RETRYING:
    case LQ_TO_READY:
    default:
        return LADE_RETRY;
    }
}

/* Runs it and lets go of it. */
static int run(lade_worker *w, struct lade_job *job, lade_outcome *said, lade_err *err)
{
    struct lq_slot slot = {.worker = w, .now = lb_clock_mono()};
    int rc = 0;
    lq_slot_work(&slot, job);
    if (job->unroutable)
        rc = LADE_NOT_FOUND;
    else if (said)
        *said = outcome_of(job->settle.to);
    if (rc != 0)
        (void)lb_fail(err, LADE_EINVAL, "inline", "kind '%.60s' has no handler at this worker",
                      job->body.kind);
    else if (job->error.n > 0)
        (void)lb_fail(err, LADE_EINVAL, "inline", "%.*s", (int)LB_MIN(job->error.n, INT32_MAX),
                      (const char *)job->error.p);
    lq_job_drop(job);
    return rc;
}

int lade_worker_inline(lade_worker *w, const lade_job_spec *spec, lade_outcome *said, lade_err *err)
{
    LQ_REFUSE_NULL(w, "inline");
    LQ_REFUSE_NULL(spec, "inline");
    lb_err_clear(err);
    int rc = lq_job_check(spec, w->q->payload_max, SIZE_MAX, err);
    if (rc < 0)
        return rc;
    char made[LB_ULID_LEN + 1];
    lb_ulid(made, lb_clock_wall());
    const char *id = spec->id ? spec->id : made;
    struct lb_buf body;
    lb_buf_init(&body);
    rc = make_body(w->q, spec, id, &body, err);
    if (rc == 0) {
        struct lade_job *job =
            make_job(w, spec->queue ? spec->queue : QUEUE, id, lb_buf_slice(&body));
        rc = job ? run(w, job, said, err) : lb_fail_nomem(err, "inline");
    }
    lb_buf_fini(&body);
    return rc;
}
