/* admin.c - what an operator does to jobs and queues: arguments checked, then one bounded store op */
#include "base/arena.h"
#include "base/base.h"
#include "base/err.h"
#include "base/mem.h"
#include "queue/client.h"
#include "queue/names.h"

static int check_step(size_t max, const char *where, lade_err *err)
{
    if (max >= 1 && max <= 10000)
        return 0;
    return lb_fail(err, LADE_EINVAL, where, "max %zu is not within 1 to 10000 jobs a step", max);
}

/* Acts on those of the n ids that are still NOT_FOUND, in steps the store takes. */
static int act_in(lade *q, enum lade_job_verb verb, const char *queue, const char *const *ids,
                  size_t n, int *outcome, lade_err *err)
{
    struct lb_slice id[64];
    size_t at[64];
    int result[64];
    int rc = 0;
    for (size_t i = 0; i < n && rc >= 0;) {
        size_t k = 0;
        for (; i < n && k < LB_ARRAY_LEN(id); i++) {
            if (outcome[i] != LADE_NOT_FOUND)
                continue;
            id[k] = lb_slice_str(ids[i]);
            at[k++] = i;
        }
        if (k == 0)
            break;
        rc = q->store->ops->act(q->store, queue, verb, id, k, result, err);
        for (size_t j = 0; j < k && rc >= 0; j++)
            outcome[at[j]] = result[j];
    }
    return rc;
}

static int act_everywhere(lade *q, enum lade_job_verb verb, const char *const *ids, size_t n,
                          int *outcome, lade_err *err)
{
    struct lb_arena arena;
    lb_arena_init(&arena);
    const char **name = NULL;
    size_t n_queues = 0;
    int rc = q->store->ops->queues(q->store, &arena, &name, &n_queues, err);
    for (size_t i = 0; i < n_queues && rc >= 0; i++)
        rc = act_in(q, verb, name[i], ids, n, outcome, err);
    lb_arena_fini(&arena);
    return rc;
}

int lade_job_act(lade *q, enum lade_job_verb verb, const char *queue, const char *const *ids,
                 size_t n, int *outcomes, lade_err *err)
{
    LQ_REFUSE_NULL(q, "act");
    if (n > 0 && !ids)
        return lb_fail(err, LADE_EINVAL, "act", "ids is NULL with n = %zu", n);
    if ((unsigned)verb > LADE_JOB_REMOVE)
        return lb_fail(err, LADE_EINVAL, "act", "verb %d is unknown", (int)verb);
    if (queue) {
        int rc = lq_queue_check(queue, "act", err);
        if (rc < 0)
            return rc;
    }
    for (size_t i = 0; i < n; i++) {
        int rc = lq_id_check(ids[i], "act", err);
        if (rc < 0)
            return rc;
    }
    int *outcome = outcomes ? outcomes : lb_malloc(n * sizeof(*outcome));
    if (!outcome)
        return lb_fail_nomem(err, "act");
    for (size_t i = 0; i < n; i++)
        outcome[i] = LADE_NOT_FOUND;
    int rc = queue ? act_in(q, verb, queue, ids, n, outcome, err)
                   : act_everywhere(q, verb, ids, n, outcome, err);
    rc = LB_MIN(rc, 0); /* a store's own summary knows only its part of the ids */
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = outcome[i];
    if (!outcomes)
        lb_free(outcome);
    return rc;
}

int lade_queue_pause(lade *q, const char *queue, lade_err *err)
{
    LQ_REFUSE_NULL(q, "pause");
    int rc = lq_queue_check(queue, "pause", err);
    return rc < 0 ? rc : q->store->ops->pause(q->store, queue, true, err);
}

int lade_queue_resume(lade *q, const char *queue, lade_err *err)
{
    LQ_REFUSE_NULL(q, "resume");
    int rc = lq_queue_check(queue, "resume", err);
    return rc < 0 ? rc : q->store->ops->pause(q->store, queue, false, err);
}

int lade_queue_purge(lade *q, const char *queue, enum lade_state state, size_t max, size_t *n,
                     lade_err *err)
{
    LQ_REFUSE_NULL(q, "purge");
    LQ_REFUSE_NULL(n, "purge");
    int rc = lq_queue_check(queue, "purge", err);
    if (rc == 0)
        rc = check_step(max, "purge", err);
    if (rc < 0)
        return rc;
    if ((unsigned)state >= LADE_N_STATES || state == LADE_STATE_ACTIVE)
        return lb_fail(err, LADE_EINVAL, "purge",
                       "state %s cannot be purged; cancel or remove active jobs by id",
                       (unsigned)state < LADE_N_STATES ? lade_state_name(state) : "unknown");
    return q->store->ops->purge(q->store, queue, state, max, n, err);
}

int lade_queue_remove(lade *q, const char *queue, lade_err *err)
{
    LQ_REFUSE_NULL(q, "remove");
    int rc = lq_queue_check(queue, "remove", err);
    return rc < 0 ? rc : q->store->ops->forget(q->store, queue, err);
}

int lade_dead_redrive(lade *q, const char *queue, size_t max, size_t *n, lade_err *err)
{
    LQ_REFUSE_NULL(q, "redrive");
    LQ_REFUSE_NULL(n, "redrive");
    int rc = lq_queue_check(queue, "redrive", err);
    if (rc == 0)
        rc = check_step(max, "redrive", err);
    return rc < 0 ? rc : q->store->ops->redrive(q->store, queue, max, n, err);
}
