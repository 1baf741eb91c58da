/*
 * run.c - the caller's thread of a worker: decides about time and stopping
 *
 *     RUNNING --TSTP--> QUIET --\              (pause and resume go there and back)
 *        |                       TERM, INT, stop()
 *        +-----------------------+--> STOPPING --last handler back--> ENDED
 *                                        |                              ^
 *                  second signal, QUIT,  |                              | all outcomes in the store,
 *                  shutdown_timeout      v                              | or the store away too long
 *                                     ENDING --handlers back or left behind
 *
 * Timeouts: at its deadline a job is cancelled (the handler is asked to stop); after the worker's
 * cancel_grace it is left behind: its outcome is settled as timed out, its slot counts as stuck and is
 * replaced, and whatever the handler still says is dropped.
 */
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "queue/scheduler.h"
#include "queue/signals.h"
#include "queue/worker.h"

#define END_GRACE    (500 * LADE_MILLISECOND) /* for handlers to obey, once the worker has to end */
#define SLOT_RETRY   (100 * LADE_MILLISECOND)
#define SETTLE_HURRY LADE_SECOND       /* the same after a second signal */
#define SETTLE_WAIT  (5 * LADE_SECOND) /* for the store to take the last outcomes */
#define SETTLE_AWAY  (3 * LADE_SECOND) /* the same when its last trip failed */
#define LAST_CALLS   LADE_SECOND       /* for the calls under way then, and the sign-off */

/* Time ------------------------------------------------------------------------------------------------------------- */

/* run.c's own. */
struct control {
    struct lade_worker *w;
    int64_t stop_at; /* STOPPING: when to go on to ENDING */
    int64_t end_at;  /* ENDING: when to leave handlers behind */
    int64_t
        settle_at; /* when to give up on the store; LB_FOREVER until all handlers are accounted for */
    bool ring;     /* the fetch thread waits in the store and must hear */
    int kills;     /* orders to break off what runs, so far carried out */
    int dumps;     /* the same, to write the stacks down */
};

/* running -> done although the handler still runs, unless it is just back. Under the lock. */
static void abandon(struct control *c, struct lade_job *job, enum lq_ending ending)
{
    struct lade_worker *w = c->w;
    uint8_t started = LQ_STAGE_STARTED;
    if (job->lost || !atomic_compare_exchange_strong(&job->stage, &started, LQ_STAGE_ABANDONED))
        return;
    lq_outcome_settle(job, ending, LADE_RETRY);
    lq_worker_remove(w, job);
    lq_worker_push(w, job, LQ_PLACE_DONE);
    w->n_stuck++;
    if (ending == LQ_ENDING_ABANDONED)
        lq_slots_start(w);
    c->ring = lq_worker_wake_fetch(w) || c->ring;
}

/* Cancels and abandons what is over time. Returns when to look again. Under the lock. */
static int64_t check_deadlines(struct control *c, int64_t now)
{
    struct lade_worker *w = c->w;
    int64_t next = LB_FOREVER;
    /* A slot that sets a deadline from here on sees this and waits for the lock, or we see its deadline. */
    atomic_store(&w->next_deadline, LB_FOREVER);
    lb_list_each_safe (it, &w->running) {
        struct lade_job *job = LB_CONTAINER_OF(it, struct lade_job, node);
        int64_t deadline = atomic_load(&job->deadline);
        if (atomic_load(&job->stage) != LQ_STAGE_STARTED)
            continue;
        if (deadline <= now && job->abandon_at == 0) {
            if (!lade_job_cancelled(job))
                w->stats.timed_out++;
            lq_job_cancel(job, LQ_CANCEL_TIMEOUT);
            job->abandon_at = now + w->cancel_grace;
        }
        if (job->abandon_at != 0 && job->abandon_at <= now && !job->lost) {
            abandon(c, job, LQ_ENDING_ABANDONED);
            continue;
        }
        int64_t at =
            job->abandon_at != 0 ? LB_MAX(job->abandon_at, now + LADE_MILLISECOND) : deadline;
        next = LB_MIN(next, at);
    }
    return next;
}

/* Breaks off what runs. Under the lock. */
static void obey_kills(struct control *c, int64_t now)
{
    struct lade_worker *w = c->w;
    int kills = atomic_load(&w->kills);
    if (kills == c->kills)
        return;
    c->kills = kills;
    lb_list_each (it, &w->running) {
        struct lade_job *job = LB_CONTAINER_OF(it, struct lade_job, node);
        if (atomic_load(&job->stage) != LQ_STAGE_STARTED || job->abandon_at != 0)
            continue;
        lq_job_cancel(job, LQ_CANCEL_KILL);
        job->abandon_at = now + w->cancel_grace;
    }
}

/* A lease older than its length is lost, whatever the store would say by now. Under the lock. */
static int64_t check_lease(struct control *c, int64_t now, bool *lost)
{
    struct lade_worker *w = c->w;
    if (!w->registered)
        return LB_FOREVER;
    int64_t until = atomic_load(&w->lease_until);
    if (now < until)
        return until;
    *lost = true;
    lq_worker_lose(w);
    return LB_FOREVER;
}

/* Jobs wait and there is no slot, for want of threads: tries again in a while. Under the lock. */
static int64_t check_slots(struct control *c, int64_t now)
{
    struct lade_worker *w = c->w;
    if (w->n_queued == 0 || w->n_slots > w->n_stuck || w->phase >= LQ_PHASE_STOPPING)
        return LB_FOREVER;
    lq_slots_start(w);
    return now + SLOT_RETRY;
}

/* Stopping --------------------------------------------------------------------------------------------------------- */

/* Jobs that no slot has begun go back at once. Under the lock. */
static void hand_back_queued(struct control *c)
{
    struct lade_worker *w = c->w;
    c->ring = lq_slots_recall(w, LB_FOREVER) || c->ring;
    lq_worker_hand_back(w);
    lr_cond_wake_all(&w->slot_wake);
    c->ring = lq_worker_wake_fetch(w) || c->ring;
}

static void begin_ending(struct control *c, int64_t now)
{
    struct lade_worker *w = c->w;
    w->phase = LQ_PHASE_ENDING;
    c->end_at = now + END_GRACE;
    lb_list_each (it, &w->running) {
        lq_job_cancel(LB_CONTAINER_OF(it, struct lade_job, node), LQ_CANCEL_SHUTDOWN);
    }
}

static void leave_handlers_behind(struct control *c)
{
    struct lb_list *list = &c->w->running;
    for (struct lb_list *it = list->prev, *before_it = it->prev; it != list;
         it = before_it, before_it = it->prev) {
        struct lade_job *job = LB_CONTAINER_OF(it, struct lade_job, node);
        abandon(c, job, LQ_ENDING_HANDBACK);
    }
}

/* Operators see another state at once, not with the renewal after next (control.h). Under the lock. */
static void tell_state(struct lade_worker *w)
{
    w->remote.is_due = true;
    lr_cond_wake_all(&w->lease_wake);
}

/* Follows the phases. Under the lock. Returns when to look again. */
static int64_t advance_phase(struct control *c, int64_t now)
{
    struct lade_worker *w = c->w;
    int stops = atomic_load(&w->stops);
    bool quiet =
        atomic_load(&w->quiets) > 0 || atomic_load(&w->paused) || atomic_load(&w->remote.quiet);
    if (w->phase < LQ_PHASE_STOPPING && quiet != (w->phase == LQ_PHASE_QUIET)) {
        w->phase = quiet ? LQ_PHASE_QUIET : LQ_PHASE_RUNNING;
        tell_state(w);
        c->ring = lq_worker_wake_fetch(w) || c->ring;
    }
    if ((stops > 0 || atomic_load(&w->finish)) && w->phase < LQ_PHASE_STOPPING) {
        w->phase = LQ_PHASE_STOPPING;
        c->stop_at = LB_FOREVER;
        if (w->n_running > 0) /* otherwise there will be nobody to be asked */
            tell_state(w);
    }
    if (stops > 0 && c->stop_at == LB_FOREVER)
        c->stop_at = now + w->shutdown_timeout;
    if (w->phase < LQ_PHASE_STOPPING)
        return LB_FOREVER;
    hand_back_queued(c);
    if (w->phase == LQ_PHASE_STOPPING && (stops > 1 || now >= c->stop_at))
        begin_ending(c, now);
    if (w->phase == LQ_PHASE_STOPPING)
        return c->stop_at;
    if (now < c->end_at)
        return c->end_at;
    leave_handlers_behind(c);
    return LB_FOREVER;
}

/* True when nothing is left to wait for. Under the lock. */
static bool is_over(struct control *c, int64_t now, int64_t *next)
{
    struct lade_worker *w = c->w;
    if (w->phase < LQ_PHASE_STOPPING || w->n_queued > 0)
        return false;
    size_t lost = 0; /* running, lease lost: nobody waits for them */
    lb_list_each (it, &w->running) {
        lost += LB_CONTAINER_OF(it, struct lade_job, node)->lost ? 1 : 0;
    }
    if (w->n_running > (w->phase == LQ_PHASE_ENDING && now >= c->end_at ? lost : 0))
        return false;
    if (w->n_done + w->n_settling == 0 && !w->taking)
        return true;
    if (c->settle_at == LB_FOREVER)
        c->settle_at = now + SETTLE_WAIT;
    if (w->store_away)
        c->settle_at = LB_MIN(c->settle_at, now + SETTLE_AWAY);
    if (atomic_load(&w->stops) > 1)
        c->settle_at = LB_MIN(c->settle_at, now + SETTLE_HURRY);
    *next = LB_MIN(*next, c->settle_at);
    return now >= c->settle_at;
}

/* One look at everything. True when the worker is over. */
static bool look(struct control *c, int64_t *next)
{
    struct lade_worker *w = c->w;
    bool lost = false;
    c->ring = false;
    lr_mutex_lock(&w->lock);
    int64_t now = lb_clock_mono();
    obey_kills(c, now);
    *next = check_deadlines(c, now);
    *next = LB_MIN(*next, check_lease(c, now, &lost));
    *next = LB_MIN(*next, check_slots(c, now));
    *next = LB_MIN(*next, advance_phase(c, now));
    bool over = is_over(c, now, next);
    atomic_store(&w->next_deadline, *next);
    size_t unsettled = w->n_done + w->n_settling;
    lr_mutex_unlock(&w->lock);
    if (c->ring)
        lq_worker_ring(w);
    int dumps = atomic_load(&w->dumps);
    if (dumps != c->dumps) {
        c->dumps = dumps;
        lq_control_log_stacks(w);
    }
    if (lost)
        lq_worker_log(
            w,
            "no renewal has held for the whole lease: what this worker holds may run elsewhere now");
    if (lost)
        lq_worker_log_dropped(w);
    if (over && unsettled > 0)
        lq_worker_log(w,
                      "ending with %zu outcomes that the store did not take; those jobs run again",
                      unsettled);
    return over;
}

/* Life ------------------------------------------------------------------------------------------------------------- */

static void end_threads(struct lade_worker *w)
{
    lr_mutex_lock(&w->lock);
    w->phase = LQ_PHASE_ENDED;
    bool ring = lq_worker_wake_fetch(w);
    lr_cond_wake_all(&w->lease_wake);
    lr_cond_wake_all(&w->sweep_wake);
    lr_cond_wake_all(&w->slot_wake);
    lr_mutex_unlock(&w->lock);
    if (ring)
        lq_worker_ring(w);
    lr_thread_join(&w->fetch_thread);
    lr_thread_join(&w->sweep_thread);
    lr_thread_join(&w->lease_thread);
    lq_scheduler_join(w->scheduler); /* after the lease: nobody rouses it any more */
}

static void drop_list(struct lade_worker *w, struct lb_list *list)
{
    while (!lb_list_is_empty(list)) {
        struct lade_job *job = LB_CONTAINER_OF(list->next, struct lade_job, node);
        lq_worker_remove(w, job);
        lq_job_drop(job);
    }
}

/* What the store did not take back in time; the leases run out. */
static void drop_leftovers(struct lade_worker *w)
{
    lr_mutex_lock(&w->lock);
    drop_list(w, &w->done);
    drop_list(w, &w->queued);
    lr_mutex_unlock(&w->lock);
}

static int start_threads(struct lade_worker *w, lade_err *err)
{
    int rc = w->executor == LADE_EXECUTOR_TASK ? lr_tasks_hold() : 0;
    w->holds_tasks = rc == 0 && w->executor == LADE_EXECUTOR_TASK;
    if (rc == 0)
        rc = lr_thread_start(&w->lease_thread, "lade-lease", lq_lease_run, w);
    if (rc == 0)
        rc = lr_thread_start(&w->sweep_thread, "lade-sweep", lq_sweep_run, w);
    if (rc == 0)
        rc = lr_thread_start(&w->fetch_thread, "lade-fetch", lq_fetch_run, w);
    return rc < 0 ? lb_fail(err, LADE_ENOMEM, "worker",
                            "the system gives no more threads; raise its limits")
                  : 0;
}

static bool is_transient(int rc)
{
    return rc == -LADE_EUNAVAILABLE || rc == -LADE_EBUSY;
}

/* False when it runs or has run. */
static bool claim(struct lade_worker *w)
{
    lr_mutex_lock(&w->lock);
    bool fresh = w->phase == LQ_PHASE_NEW;
    if (fresh)
        w->phase = LQ_PHASE_RUNNING;
    lr_mutex_unlock(&w->lock);
    return fresh;
}

static int start(struct lade_worker *w, lade_err *err)
{
    /* before it registers: who sees the worker in a listing may signal it, and PID 1 has no default action (C-015) */
    int rc = w->no_signals ? 0 : lq_signals_listen(w, err);
    if (rc < 0)
        return rc;
    lq_scheduler_allow(w->scheduler);
    rc = lq_lease_renew(w, err);
    if (rc >= 0 || is_transient(rc))
        rc = start_threads(w, err);
    if (rc < 0 && !w->no_signals)
        lq_signals_forget(w);
    return rc;
}

static void control_until_over(struct lade_worker *w)
{
    struct control c = {.w = w, .settle_at = LB_FOREVER};
    int64_t next = LB_FOREVER;
    while (!look(&c, &next)) {
        struct lr_fd fd = {w->control.fd, LR_READ, 0};
        (void)lr_wait_fds(&fd, 1, next); /* whatever woke it: look() sees the state itself */
        lr_event_clear(&w->control);
    }
}

int lade_worker_run(lade_worker *w, lade_err *err)
{
    LQ_REFUSE_NULL(w, "worker");
    lb_err_clear(err);
    if (!claim(w)) /* the threads are those of the first run: they are not ended here */
        return lb_fail(err, LADE_EINVAL, "worker",
                       "the worker runs or has run already; open another");
    int rc = start(w, err);
    if (rc < 0) {
        end_threads(w);
        return rc;
    }
    control_until_over(w);
    lq_store_hurry(w->q->store, lb_deadline_in(LAST_CALLS));
    end_threads(w);
    drop_leftovers(w);
    lade_err leaving = {0};
    /* With the store away the lease runs out by itself; asking would only hold the stop up. */
    if (w->registered && !w->store_away &&
        lq_leave(w->q->store, w->incarnation, lq_worker_lanes(w), &leaving) < 0)
        lq_worker_log(w, "could not sign off, the lease runs out by itself: %s", leaving.text);
    lq_worker_tend_retired(w);
    lq_store_hurry(w->q->store, 0);
    if (!w->no_signals)
        lq_signals_forget(w);
    return 0;
}
