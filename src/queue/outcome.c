/*
 * outcome.c - from what the handler said to what the store shall do; the table of docs/states.md as code
 *
 *     said       spends an attempt   goes to
 *     OK         -                   completed
 *     RETRY      yes                 retrying after the backoff; dead (exhausted) when none is left
 *     SNOOZE     no                  scheduled
 *     CANCEL     yes                 cancelled
 *     DISCARD    yes                 gone
 *     a spec with discard_dead is gone where dead is said
 *     DEAD       yes                 dead (unrecoverable)
 *     RATE_LIMITED   no              ready, first of its key, and the key is paused
 *     timed out, and did not say OK: as RETRY, recorded as timeout
 *     cancelled by the worker's end, and said RETRY: handed back, spends nothing
 *     broken off by a signal to the worker, and did not say OK: as RETRY
 *     no handler for its kind        scheduled in 10 s, spends nothing
 *     unreadable                     dead (unrecoverable), its bytes stay
 */
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "queue/event.h"
#include "queue/history.h"
#include "queue/retry.h"
#include "queue/worker.h"

#define SNOOZE_DEFAULT_MS   60000
#define UNROUTABLE_WAIT_MS  10000
#define THROTTLE_DEFAULT_MS 1000

static int64_t ms_of(int64_t ns)
{
    return ns <= 0 ? 0 : lb_ms_up(ns);
}

static int64_t policy_delay_ms(const struct lade_job *job)
{
    return lq_retry_delay_ms(&job->body.backoff, job->attempt, (uint32_t)lb_rand());
}

static int64_t retry_delay_ms(const struct lade_job *job)
{
    const struct lade_worker *w = job->worker;
    if (job->retry_in >= 0)
        return ms_of(job->retry_in);
    if (w->backoff)
        return ms_of(w->backoff(job, job->attempt, w->backoff_ctx));
    return policy_delay_ms(job);
}

/*
 * Adds this run to the history. Without memory, or when the store's may be newer than ours, the old history stays: the job then
 * gets one attempt more, not less.
 */
static void record(struct lade_job *job, enum lq_event event, int attempts, struct lb_slice error)
{
    if (lq_effects_open(job))
        return;
    struct lb_slice old = lb_slice_of(job->leased->history);
    int64_t now_ms = lq_client_now_ms(job->worker->q);
    /* The wall clock is read here only: most jobs succeed and have no history. */
    int64_t took_ms = job->started_at ? (lb_clock_mono() - job->started_at) / LADE_MILLISECOND : 0;
    struct lq_record r = {.number = attempts > lq_history_attempts(old) ? job->attempt : 0,
                          .started_ms = now_ms - took_ms,
                          .ended_ms = now_ms,
                          .event = event,
                          .worker = lb_slice_str(job->worker->name),
                          .error = error};
    lb_buf_clear(&job->history);
    lq_history_append(&job->history, old, &r, attempts, job->crashes);
    if (job->history.failed)
        return;
    job->settle.history = lb_buf_slice(&job->history);
    /* The record ends with the error, which is kept there longer than its text is here. */
    size_t kept = LB_MIN(error.n, (size_t)LADE_ERROR_TEXT_MAX);
    job->settle.error =
        lq_cut_utf8(lb_slice(job->history.p + job->history.n - kept, kept), LQ_EVENT_REASON_MAX);
}

/*
 * To the dead, or gone when the spec says so; settle.reason stays, for who is told. After `record`: the class lies behind the history.
 */
static void die(struct lade_job *job, enum lq_reason reason, struct lb_slice kind, bool discard,
                struct lb_slice error)
{
    struct lq_settle *s = &job->settle;
    struct lb_slice history = s->history;
    size_t error_at = s->error.n > 0 ? (size_t)(s->error.p - history.p) : 0;
    s->reason = reason;
    s->to = discard ? LQ_TO_GONE : LQ_TO_DEAD;
    if (discard)
        return;
    if (history.n == 0)
        lb_buf_clear(&job->history);
    if (lq_death_make(&job->history, &job->death, kind, error))
        s->death = &job->death;
    if (history.n > 0) { /* the buffer may have moved, and the error lies in it */
        s->history = lb_slice(job->history.p, history.n);
        s->error = lb_slice(job->history.p + error_at, s->error.n);
    }
}

static void settle_failure(struct lade_job *job, enum lq_event event, int64_t delay_ms,
                           struct lb_slice error)
{
    struct lq_settle *s = &job->settle;
    bool last = job->attempt >= job->body.max_attempts;
    s->failed = event != LQ_EVENT_CANCEL; /* an operator's doing is no failure */
    s->to = LQ_TO_RETRYING;
    s->delay_ms = last ? 0 : delay_ms;
    record(job, last && event == LQ_EVENT_RETRY ? LQ_EVENT_DEAD : event, job->attempt, error);
    if (last)
        die(job, LQ_REASON_EXHAUSTED, lb_slice_str(job->body.kind), job->body.discard_dead, error);
}

/* Nothing that the handler wrote is touched when it was left behind: it may still be writing. */
static void settle_timeout(struct lade_job *job, bool abandoned)
{
    char text[96];
    int n =
        snprintf(text, sizeof(text), "timed out after %lld ms%s", (long long)job->body.timeout_ms,
                 abandoned ? "; the handler does not stop" : "");
    struct lb_slice error = lb_slice(text, n > 0 ? (size_t)n : 0);
    if (!abandoned && job->error.n > 0)
        error = lb_buf_slice(&job->error);
    settle_failure(job, LQ_EVENT_TIMEOUT, abandoned ? policy_delay_ms(job) : retry_delay_ms(job),
                   error);
}

/* As settle_timeout. */
static void settle_killed(struct lade_job *job, bool abandoned)
{
    static const char text[] = "broken off by a signal to its worker",
                      deaf[] = "broken off by a signal to its worker; the handler does not stop";
    struct lb_slice error = lb_slice_str(abandoned ? deaf : text);
    if (!abandoned && job->error.n > 0)
        error = lb_buf_slice(&job->error);
    settle_failure(job, LQ_EVENT_RETRY, abandoned ? policy_delay_ms(job) : retry_delay_ms(job),
                   error);
    job->settle.broken_off = true;
}

static void settle_returned(struct lade_job *job, lade_outcome said)
{
    struct lq_settle *s = &job->settle;
    struct lb_slice error = lb_buf_slice(&job->error);
    int cancel = atomic_load_explicit(&job->cancel, memory_order_relaxed);
    switch (said) {
    case LADE_OK:
        s->to = LQ_TO_COMPLETED;
        s->result = lb_buf_slice(&job->result);
        s->result_ttl_ms = job->body.result_ttl_ms;
        return;
    case LADE_SNOOZE:
        s->to = LQ_TO_SCHEDULED;
        s->delay_ms = job->snooze_for >= 0 ? ms_of(job->snooze_for) : SNOOZE_DEFAULT_MS;
        record(job, LQ_EVENT_SNOOZE, job->attempt - 1, error);
        return;
    case LADE_CANCEL:
        s->to = LQ_TO_CANCELLED;
        record(job, LQ_EVENT_CANCEL, job->attempt, error);
        return;
    case LADE_DISCARD:
        s->to = LQ_TO_GONE;
        if (job->worker->on_dead) /* nobody else will read it */
            record(job, LQ_EVENT_DEAD, job->attempt, error);
        return;
    case LADE_DEAD:
        s->failed = true;
        record(job, LQ_EVENT_DEAD, job->attempt, error);
        die(job, LQ_REASON_UNRECOVERABLE, lb_slice_str(job->body.kind), job->body.discard_dead,
            error);
        return;
    case LADE_RATE_LIMITED:
        s->to = job->worker->q->store->ops->key_list ? LQ_TO_THROTTLED : LQ_TO_SCHEDULED;
        s->delay_ms = job->throttle_for >= 0 ? ms_of(job->throttle_for) : THROTTLE_DEFAULT_MS;
        return;
    case LADE_RETRY:
    default:
        break;
    }
    if (cancel == LQ_CANCEL_TIMEOUT)
        settle_timeout(job, false);
    else if (cancel == LQ_CANCEL_KILL)
        settle_killed(job, false);
    else if (cancel == LQ_CANCEL_SHUTDOWN)
        s->to = LQ_TO_READY;
    else
        settle_failure(job, cancel == LQ_CANCEL_OPERATOR ? LQ_EVENT_CANCEL : LQ_EVENT_RETRY,
                       retry_delay_ms(job), error);
}

void lq_outcome_settle(struct lade_job *job, enum lq_ending ending, lade_outcome said)
{
    struct lq_settle *s = &job->settle;
    *s = (struct lq_settle){.queue = job->queue,
                            .id = lb_slice_of(job->leased->id),
                            .fence = job->leased->fence,
                            .reason = LQ_REASON_NONE,
                            .attempt = (uint32_t)job->attempt,
                            .kind = lq_body_kind(lb_slice_of(job->leased->body))};
    switch (ending) {
    case LQ_ENDING_RETURNED:
        settle_returned(job, said);
        break;
    case LQ_ENDING_ABANDONED:
        if (atomic_load_explicit(&job->cancel, memory_order_relaxed) == LQ_CANCEL_KILL)
            settle_killed(job, true);
        else
            settle_timeout(job, true);
        s->took_us = (lb_clock_mono() - job->started_at) / 1000;
        break;
    case LQ_ENDING_UNROUTABLE:
        s->to = LQ_TO_SCHEDULED;
        s->unroutable = true;
        s->delay_ms = UNROUTABLE_WAIT_MS;
        break;
    case LQ_ENDING_CORRUPT:
        s->failed = true;
        record(job, LQ_EVENT_CORRUPT, job->attempt, lb_buf_slice(&job->error));
        die(job, LQ_REASON_UNRECOVERABLE, lb_slice("", 0), false, lb_buf_slice(&job->error));
        break;
    case LQ_ENDING_HANDBACK:
    default:
        s->to = LQ_TO_READY;
        break;
    }
    s->broken_off = s->broken_off || (s->to == LQ_TO_READY && job->started_at != 0);
}

static void quarantine(struct lq_recovery *r, const struct lq_leased *leased, struct lb_slice error,
                       struct lq_settle *out)
{
    r->quarantined = out->failed = true;
    out->to = LQ_TO_DEAD;
    out->reason = LQ_REASON_QUARANTINED;
    if (lq_job_decode(leased->body, &r->body, NULL) < 0)
        r->body = (struct lq_job){0};
    if (r->body.discard_dead)
        out->to = LQ_TO_GONE;
    struct lb_slice kind = r->body.kind ? lb_slice_str(r->body.kind) : lb_slice("", 0);
    if (!r->history.failed && lq_death_make(&r->history, &r->death, kind, error))
        out->death = &r->death;
}

void lq_outcome_recover(const struct lade_worker *w, const struct lq_leased *leased,
                        const char *queue, int64_t now_ms, struct lq_recovery *recovery,
                        struct lq_settle *out)
{
    struct lb_slice old = lb_slice_of(leased->history);
    struct lb_buf *history = &recovery->history;
    int crashes = lq_history_crashes(old);
    /*
     * Whether the first crash found the job running or only waiting in a dead worker's hands is not known, so it counts.
     * From then on the job is marked before it runs (begin), and only a crash that found the mark counts: jobs that
     * merely waited beside a poison job are not dragged along.
     */
    bool counts = crashes == 0 || leased->begun;
    recovery->quarantined = false;
    *out = (struct lq_settle){.queue = queue,
                              .id = lb_slice_of(leased->id),
                              .fence = leased->fence,
                              .to = LQ_TO_READY,
                              .reason = LQ_REASON_NONE,
                              .attempt = lq_history_next_attempt(old),
                              .kind = lq_body_kind(lb_slice_of(leased->body))};
    if (!counts)
        return;
    crashes++;
    char text[128];
    int n = snprintf(text, sizeof(text), "worker %s died or lost its lease while it held the job",
                     leased->former);
    struct lq_record r = {.ended_ms = now_ms,
                          .event = LQ_EVENT_CRASH,
                          .worker = lb_slice_str(leased->former),
                          .error = lb_slice(text, n > 0 ? LB_MIN((size_t)n, sizeof(text) - 1) : 0)};
    lb_buf_clear(history);
    lq_history_append(history, old, &r, lq_history_attempts(old), crashes);
    bool kept = !history->failed;
    size_t size = history->n;
    if (crashes >= w->max_crashes)
        quarantine(recovery, leased, r.error, out);
    if (kept)
        out->history = lb_slice(history->p, size);
}
