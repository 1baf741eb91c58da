/* op_admin.c - what operators do to jobs and queues: act, purge, redrive, pause, forget */
#include <string.h>

#include "base/err.h"
#include "store/memory/memory_flow.h"
#include "store/memory/memory_ops.h"

static int retry(struct ls_memory_home *h, struct ls_memory_job *j, int64_t now_ms)
{
    if (j->state == LADE_STATE_READY || j->state == LADE_STATE_ACTIVE)
        return LADE_WRONG_STATE;
    bool ended = ls_memory_state_is_ended(j->state);
    ls_memory_job_revive(h, j, now_ms);
    if (ended && lq_flow_has(lb_slice_str(j->id)))
        ls_memory_flow_revived(h, lb_slice_str(j->id), now_ms);
    return LADE_DONE;
}

static int stop(struct ls_memory_home *h, struct ls_memory_job *j, enum ls_memory_mark mark,
                int64_t now_ms)
{
    if (ls_memory_state_is_ended(j->state) || j->mark != LS_MEMORY_UNMARKED)
        return LADE_WRONG_STATE;
    if (j->state == LADE_STATE_ACTIVE) {
        j->mark = mark;
        return LADE_DONE;
    }
    if (mark == LS_MEMORY_KILL)
        ls_memory_job_die(h, j, LQ_REASON_KILLED, NULL, now_ms);
    else
        ls_memory_job_move(h, j, LADE_STATE_CANCELLED, 0, now_ms);
    return LADE_DONE;
}

/* A job of a flow is killed, cancelled or removed, and its flow told. */
static int end_of_flow(struct lq_store *s, struct ls_memory_job *j, enum lade_job_verb verb,
                       int64_t now_ms)
{
    struct ls_memory_home *h = ls_memory_home_of(s);
    struct ls_memory_births births = {0};
    char id[LADE_ID_MAX + 1];
    memcpy(id, j->id, sizeof(id));
    int rc = -LADE_ENOMEM;
    if (ls_memory_flow_prepare(h, &births, lb_slice_str(id), 0)) {
        bool active = j->state == LADE_STATE_ACTIVE;
        rc = LADE_DONE;
        if (verb == LADE_JOB_REMOVE)
            ls_memory_job_remove(h, j);
        else
            rc = stop(h, j, verb == LADE_JOB_KILL ? LS_MEMORY_KILL : LS_MEMORY_CANCEL, now_ms);
        if (rc == LADE_DONE && (verb == LADE_JOB_REMOVE || !active))
            ls_memory_flow_ended(s, lb_slice_str(id),
                                 verb == LADE_JOB_KILL ? LADE_STEP_DEAD : LADE_STEP_CANCELLED, NULL,
                                 now_ms);
    }
    ls_memory_flow_finish(&births);
    return rc;
}

int ls_memory_act_on(struct lq_store *s, struct ls_memory_job *j, enum lade_job_verb verb,
                     int64_t now_ms)
{
    struct ls_memory_home *h = ls_memory_home_of(s);
    if (!j)
        return LADE_NOT_FOUND;
    if (verb != LADE_JOB_RETRY && lq_flow_has(lb_slice_str(j->id)))
        return end_of_flow(s, j, verb, now_ms);
    switch (verb) {
    case LADE_JOB_RETRY:
        return retry(h, j, now_ms);
    case LADE_JOB_KILL:
        return stop(h, j, LS_MEMORY_KILL, now_ms);
    case LADE_JOB_CANCEL:
        return stop(h, j, LS_MEMORY_CANCEL, now_ms);
    case LADE_JOB_REMOVE:
        break;
    }
    ls_memory_job_remove(h, j);
    return LADE_DONE;
}

int ls_memory_act(struct lq_store *s, const char *queue, enum lade_job_verb verb,
                  const struct lb_slice *id, size_t n, int *outcome, lade_err *err)
{
    int64_t now;
    struct ls_memory_home *h = ls_memory_enter(s, &now);
    struct ls_memory_queue *q = ls_memory_queue_find(h, queue);
    int first = LADE_DONE;
    for (size_t i = 0; i < n && first >= 0; i++) {
        outcome[i] = ls_memory_act_on(s, q ? ls_memory_job_find(q, id[i]) : NULL, verb, now);
        if (q && outcome[i] == LADE_NOT_FOUND && verb == LADE_JOB_REMOVE &&
            ls_memory_kept_find(q, id[i], now))
            outcome[i] = LADE_DONE; /* its record is gone, but not its result */
        if (outcome[i] == LADE_DONE && verb == LADE_JOB_REMOVE)
            ls_memory_kept_drop(q, id[i]);
        if (first == LADE_DONE || outcome[i] < 0)
            first = outcome[i];
    }
    ls_memory_leave_op(h, now);
    return first < 0 ? lb_fail_nomem(err, "act") : first;
}

int ls_memory_purge(struct lq_store *s, const char *queue, enum lade_state state, size_t max,
                    size_t *n, lade_err *err)
{
    int64_t now;
    struct ls_memory_home *h = ls_memory_enter(s, &now);
    struct ls_memory_queue *q = ls_memory_queue_find(h, queue);
    struct ls_memory_node *first = NULL;
    int rc = LADE_DONE;
    size_t done = 0;
    while (q && (first = ls_memory_order_first(&q->order[state])) && done < max &&
           rc == LADE_DONE) {
        rc = ls_memory_act_on(s, ls_memory_job_of(first), LADE_JOB_REMOVE, now);
        done += rc == LADE_DONE;
    }
    ls_memory_leave_op(h, now);
    if (rc < 0 && done == 0)
        return lb_fail_nomem(err, "purge");
    *n = done;
    return first ? LADE_MORE : LADE_DONE;
}

int ls_memory_redrive(struct lq_store *s, const char *queue, size_t max, size_t *n, lade_err *err)
{
    (void)err;
    int64_t now;
    struct ls_memory_home *h = ls_memory_enter(s, &now);
    struct ls_memory_queue *q = ls_memory_queue_find(h, queue);
    struct ls_memory_node *first = NULL;
    for (*n = 0; q && (first = ls_memory_order_first(&q->order[LADE_STATE_DEAD])) && *n < max;
         (*n)++)
        (void)retry(h, ls_memory_job_of(first), now);
    ls_memory_leave_op(h, now);
    return first ? LADE_MORE : LADE_DONE;
}

int ls_memory_pause(struct lq_store *s, const char *queue, bool paused, lade_err *err)
{
    int64_t now;
    struct ls_memory_home *h = ls_memory_enter(s, &now);
    struct ls_memory_queue *q = ls_memory_queue_make(h, queue);
    if (q) {
        enum lade_event_type type = paused ? LADE_EVENT_PAUSED : LADE_EVENT_RESUMED;
        if (q->paused != paused)
            ls_memory_event(h, q, &(struct lq_ev){.type = type}, now);
        q->paused = paused;
        /* All of them: each looks for itself, also for what is due there next. */
        ls_memory_queue_wake(h, q, h->workers.n);
    }
    lr_mutex_unlock(&h->lock);
    return q ? LADE_DONE : lb_fail_nomem(err, "pause");
}

int ls_memory_forget(struct lq_store *s, const char *queue, lade_err *err)
{
    (void)err;
    int64_t now;
    struct ls_memory_home *h = ls_memory_enter(s, &now);
    struct ls_memory_queue *q = ls_memory_queue_find(h, queue);
    int rc = LADE_NOT_FOUND;
    if (q)
        rc = ls_memory_queue_jobs(q) > 0 ? LADE_WRONG_STATE : LADE_DONE;
    if (q && rc == LADE_DONE) {
        ls_memory_lock_expire(q, INT64_MAX);
        ls_memory_stream_clear(q);
        ls_memory_ring_watchers(h);
        ls_memory_tenants_free(q);
        (void)ls_memory_kept_trim(q, INT64_MAX, SIZE_MAX - 1);
        q->made = q->paused = q->gated = false;
        q->bound = (struct lq_bound){0};
        q->limit = q->usual = (struct lq_limit){0};
        q->v = q->free_at = q->tat_us = q->free_until_us = 0;
        q->total_enqueued = q->total_completed = q->total_failed = q->total_dead = 0;
    }
    lr_mutex_unlock(&h->lock);
    return rc;
}
