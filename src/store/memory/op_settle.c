/*
 * op_settle.c - active -> completed | retrying | scheduled | ready | dead | cancelled | gone, and then a take
 *
 * The new histories and results are copied before anything moves: the only part that can fail.
 */
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "store/memory/memory_flow.h"
#include "store/memory/memory_ops.h"

struct texts {
    uint8_t *history, *result, *of_flow;
    struct ls_memory_kept *kept;
};

static bool copy_texts(struct texts *t, const struct lq_settle *it)
{
    if (it->history.n > 0) {
        t->history = lb_malloc(it->history.n);
        if (!t->history)
            return false;
        memcpy(t->history, it->history.p, it->history.n);
    }
    if (it->to == LQ_TO_COMPLETED && it->result.n > 0 && it->result_ttl_ms > 0) {
        t->kept = ls_memory_kept_make(it->id, it->result);
        if (!t->kept)
            return false;
    } else if (it->to == LQ_TO_COMPLETED && it->result.n > 0) {
        t->result = lb_malloc(it->result.n);
        if (!t->result)
            return false;
        memcpy(t->result, it->result.p, it->result.n);
    }
    if ((t->result || t->kept) && lq_flow_has(it->id)) {
        t->of_flow = lb_malloc(it->result.n);
        if (!t->of_flow)
            return false;
        memcpy(t->of_flow, it->result.p, it->result.n);
    }
    return true;
}

static void free_texts(struct texts *t, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        lb_free(t[i].history);
        lb_free(t[i].result);
        lb_free(t[i].of_flow);
        lb_free(t[i].kept);
    }
    lb_free(t);
}

/* Where a settle really goes: an operator's wish comes before the worker's, but not before success. */
static enum lq_to decide(const struct ls_memory_job *j, const struct lq_settle *it,
                         enum lq_reason *reason)
{
    *reason = it->reason;
    if (it->to == LQ_TO_COMPLETED || j->mark == LS_MEMORY_UNMARKED)
        return it->to;
    *reason = LQ_REASON_KILLED;
    return j->mark == LS_MEMORY_KILL ? LQ_TO_DEAD : LQ_TO_CANCELLED;
}

static int64_t due_in(int64_t now_ms, int64_t delay_ms)
{
    int64_t at;
    return __builtin_add_overflow(now_ms, delay_ms, &at) ? INT64_MAX : at;
}

static void wait_until_due(struct ls_memory_home *h, struct ls_memory_job *j, enum lade_state to,
                           int64_t delay_ms, int64_t now_ms)
{
    struct ls_memory_queue *q = j->queue;
    int64_t next = ls_memory_queue_next_due(q);
    int64_t due = due_in(now_ms, delay_ms);
    ls_memory_job_delay(h, j, to, due, now_ms);
    if (next == 0 || due < next)
        ls_memory_queue_wake(h, q, 1);
}

/* Nothing of the key is taken until then; t NULL: of the jobs without one. */
static void throttle(struct ls_memory_home *h, struct ls_memory_queue *q,
                     struct ls_memory_tenant *t, int64_t until_ms)
{
    int64_t *until_us = t ? &t->facts.until_us : &q->free_until_us;
    *until_us = until_ms > INT64_MAX / 1000 ? INT64_MAX : LB_MAX(*until_us, until_ms * 1000);
    q->gated = true;
    if (t)
        ls_memory_tenant_touch(h, t); /* its counts changed, too */
    ls_memory_queue_wake(h, q, 1);
}

static void end(struct lq_store *s, struct ls_memory_job *j, enum lade_state to, int64_t now_ms)
{
    struct ls_memory_queue *q = j->queue;
    ls_memory_job_move(ls_memory_home_of(s), j, to, 0, now_ms);
    (void)ls_memory_job_retain(s, q, to, now_ms, false, LQ_TAKE_MAX);
}

/* Returns where the job went. */
static enum lq_to settle_job(struct lq_store *s, struct ls_memory_job *j,
                             const struct lq_settle *it, struct texts *t, int64_t now_ms)
{
    struct ls_memory_home *h = ls_memory_home_of(s);
    struct ls_memory_queue *q = j->queue;
    enum lq_reason reason;
    enum lq_to to = decide(j, it, &reason);
    const struct lq_death *death = j->mark == LS_MEMORY_UNMARKED ? it->death : NULL;
    h->settling = it;
    h->settling_as = reason;
    if (it->failed)
        ls_memory_event_job(
            h, j,
            (struct lq_ev){.type = LADE_EVENT_FAILED, .value = it->took_us, .reason = it->error},
            now_ms);
    q->total_failed += it->failed;
    if (it->history.n > 0) {
        lb_free(j->history.p);
        j->history = (struct lb_mut){t->history, it->history.n};
        t->history = NULL;
    }
    switch (to) {
    case LQ_TO_COMPLETED:
        if (t->kept)
            ls_memory_kept_put(h, q, t->kept, it->result_ttl_ms, now_ms);
        else
            j->result = (struct lb_mut){t->result, t->result ? it->result.n : 0};
        t->result = NULL;
        t->kept = NULL;
        end(s, j, LADE_STATE_COMPLETED, now_ms);
        break;
    case LQ_TO_RETRYING:
        wait_until_due(h, j, LADE_STATE_RETRYING, it->delay_ms, now_ms);
        break;
    case LQ_TO_SCHEDULED:
        wait_until_due(h, j, LADE_STATE_SCHEDULED, it->delay_ms, now_ms);
        break;
    case LQ_TO_READY:
        ls_memory_job_hand_back(h, j, now_ms);
        ls_memory_queue_wake(h, q, 1);
        break;
    case LQ_TO_THROTTLED:
        ls_memory_job_hand_back(h, j, now_ms);
        throttle(h, q, j->tenant, due_in(now_ms, it->delay_ms));
        break;
    case LQ_TO_DEAD:
        ls_memory_job_die(h, j, reason, death, now_ms);
        (void)ls_memory_job_retain(s, q, LADE_STATE_DEAD, now_ms, false, LQ_TAKE_MAX);
        break;
    case LQ_TO_CANCELLED:
        end(s, j, LADE_STATE_CANCELLED, now_ms);
        break;
    case LQ_TO_GONE:
        ls_memory_job_drop(h, j);
        break;
    }
    h->settling = NULL;
    return to;
}

/* Tells the flow of the job, when there is one, that it ended. */
static void settle_flow(struct lq_store *s, const struct lq_settle *it, enum lq_to to,
                        struct texts *t, int64_t now_ms)
{
    enum lade_flow_step_state how = lq_node_end_of(to);
    if (how == LADE_STEP_ENQUEUED || !lq_flow_has(it->id))
        return;
    struct lb_mut result = {t->of_flow, t->of_flow ? it->result.n : 0};
    ls_memory_flow_ended(s, it->id, how, &result, now_ms);
    t->of_flow = result.p;
}

/* False when out of memory. */
static bool prepare_flows(struct ls_memory_home *h, const struct lq_settle *it, size_t n,
                          struct ls_memory_births *b)
{
    bool ok = true;
    for (size_t i = 0; ok && i < n; i++) {
        if (lq_flow_has(it[i].id))
            ok = ls_memory_flow_prepare(h, b, it[i].id, n - 1);
    }
    return ok;
}

static bool may_go_on(const struct lq_settle *it)
{
    return it->goes_on && it->to == LQ_TO_COMPLETED && !it->failed && it->history.n == 0 &&
           it->result.n <= LQ_GOES_ON_RESULT && (it->result_ttl_ms == 0 || it->result.n == 0);
}

/* Settles a job that its owner holds; the step behind it may be the owner's then. */
static void settle_own(struct lq_store *s, struct ls_memory_job *j, struct lq_settle *it,
                       struct texts *t, struct ls_memory_births *births, int64_t now_ms)
{
    struct ls_memory_home *h = ls_memory_home_of(s);
    struct ls_memory_worker *w = j->owner;
    struct ls_memory_job *next = NULL;
    bool known = w->registered; /* else it may be gone with its last lease */
    const struct ls_memory_step *step =
        known && may_go_on(it) ? ls_memory_flow_next(h, it->id, &next) : NULL;
    settle_flow(s, it, settle_job(s, j, it, t, now_ms), t, now_ms);
    it->went_on = step && next->state == LADE_STATE_READY;
    if (it->went_on) {
        ls_memory_job_lease(h, next, w, now_ms);
        next->fence = it->fence;
        ls_memory_flow_forget_birth(births, next);
    }
}

static void settle_all(struct lq_store *s, struct lq_settle *it, size_t n, struct texts *t,
                       struct ls_memory_births *births, int64_t now_ms)
{
    struct ls_memory_home *h = ls_memory_home_of(s);
    for (size_t i = 0; i < n; i++) {
        const struct ls_memory_queue *q = ls_memory_queue_find(h, it[i].queue);
        struct ls_memory_job *j = q ? ls_memory_job_find(q, it[i].id) : NULL;
        bool own = j && j->owner && j->fence == it[i].fence;
        it[i].outcome = own ? LADE_DONE : LADE_STALE;
        it[i].went_on = false;
        if (own)
            settle_own(s, j, &it[i], &t[i], births, now_ms);
    }
}

int ls_memory_settle_take(struct lq_store *s, struct lq_settle *it, size_t n,
                          const struct lq_take *take, struct lq_leased_vec *out, lade_err *err)
{
    struct texts *t = NULL;
    if (n > 0) {
        t = lb_calloc(n, sizeof(*t));
        if (!t)
            return lb_fail_nomem(err, "settle");
    }
    for (size_t i = 0; i < n; i++) {
        if (!copy_texts(&t[i], &it[i])) {
            free_texts(t, n);
            return lb_fail_nomem(err, "settle");
        }
    }
    int64_t now;
    struct ls_memory_home *h = ls_memory_enter(s, &now);
    struct ls_memory_births births = {0};
    bool prepared = prepare_flows(h, it, n, &births);
    if (prepared)
        settle_all(s, it, n, t, &births, now);
    ls_memory_flow_finish(&births);
    int rc = prepared && take ? ls_memory_take(s, take, out, now, err) : LADE_DONE;
    ls_memory_leave_op(h, now);
    free_texts(t, n);
    if (!prepared)
        return lb_fail_nomem(err, "settle");
    /* The settles are done and cannot be taken back: the take then counts as one that found nothing. */
    if (rc < 0 && n > 0) {
        out->next_due_ms = 0;
        out->now_ms = now;
        lb_err_clear(err);
        return LADE_DONE;
    }
    return rc;
}
