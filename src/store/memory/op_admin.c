/* op_admin.c - what operators do to jobs and queues: act, purge, redrive, pause, forget */
#include <string.h>

#include "base/err.h"
#include "store/memory/memory_home.h"
#include "store/memory/memory_ops.h"

static void zero_counts(struct ls_memory_job *j)
{
    if (j->history.n >= LQ_HISTORY_COUNTS_AT + LQ_HISTORY_COUNTS_SIZE)
        memset(j->history.p + LQ_HISTORY_COUNTS_AT, 0, LQ_HISTORY_COUNTS_SIZE);
}

static int retry(struct ls_memory_home *h, struct ls_memory_job *j, int64_t now_ms)
{
    if (j->state == LADE_STATE_READY || j->state == LADE_STATE_ACTIVE)
        return LADE_WRONG_STATE;
    if (ls_memory_state_is_ended(j->state))
        zero_counts(j);
    ls_memory_job_move(h, j, LADE_STATE_READY, 0, now_ms);
    ls_memory_queue_wake(h, j->queue, 1);
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
    bool kill = mark == LS_MEMORY_KILL;
    ls_memory_job_move(h, j, kill ? LADE_STATE_DEAD : LADE_STATE_CANCELLED, 0, now_ms);
    if (kill)
        j->reason = LQ_REASON_KILLED;
    return LADE_DONE;
}

static int act_on(struct ls_memory_home *h, struct ls_memory_job *j, enum lade_job_verb verb,
                  int64_t now_ms)
{
    if (!j)
        return LADE_NOT_FOUND;
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
    (void)err;
    int64_t now;
    struct ls_memory_home *h = ls_memory_enter(s, &now);
    const struct ls_memory_queue *q = ls_memory_queue_find(h, queue);
    int first = LADE_DONE;
    for (size_t i = 0; i < n; i++) {
        outcome[i] = act_on(h, q ? ls_memory_job_find(q, id[i]) : NULL, verb, now);
        if (first == LADE_DONE)
            first = outcome[i];
    }
    lr_mutex_unlock(&h->lock);
    return first;
}

int ls_memory_purge(struct lq_store *s, const char *queue, enum lade_state state, size_t max,
                    size_t *n, lade_err *err)
{
    (void)err;
    int64_t now;
    struct ls_memory_home *h = ls_memory_enter(s, &now);
    struct ls_memory_queue *q = ls_memory_queue_find(h, queue);
    struct ls_memory_node *first = NULL;
    for (*n = 0; q && (first = ls_memory_order_first(&q->order[state])) && *n < max; (*n)++)
        ls_memory_job_remove(h, ls_memory_job_of(first));
    lr_mutex_unlock(&h->lock);
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
    lr_mutex_unlock(&h->lock);
    return first ? LADE_MORE : LADE_DONE;
}

int ls_memory_pause(struct lq_store *s, const char *queue, bool paused, lade_err *err)
{
    int64_t now;
    struct ls_memory_home *h = ls_memory_enter(s, &now);
    struct ls_memory_queue *q = ls_memory_queue_make(h, queue);
    if (q) {
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
        q->made = q->paused = false;
        q->total_enqueued = q->total_completed = q->total_failed = q->total_dead = 0;
    }
    lr_mutex_unlock(&h->lock);
    return rc;
}
