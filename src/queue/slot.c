/*
 * slot.c - a slot: a task or a thread that runs one handler at a time
 *
 * Waking is a chain: at most one slot is on its way at a time, and it calls the next when there is still work. Slow
 * handlers thus get all slots within some tens of microseconds each, while a burst of fast jobs is done by the few that
 * are awake, instead of paying a system call for every job. Slots are made by the same chain, up to the concurrency. A handler that is deaf to cancel is
 * left behind at its second deadline: its slot counts as stuck and another may start in its place, so that the worker
 * keeps its concurrency (C-003, C-078); when the handler comes back, its slot ends if there are too many.
 *
 * Runs. While handlers take no more than a few microseconds, a slot moves up to LQ_RUN_MAX jobs from queued to running at once, about
 * RUN_TIME of work, and begins one after the other without the lock:
 *
 *     slot->run    [ moved on to done | finished | running | not begun ... | taken back ]
 *                    ^0          n_moved                     ^next           ^end
 *
 * Should one of them take long after all, fetch.c, which looks at each millisecond while there are runs, takes back what has not
 * begun, for other slots or until the slot comes round again, and brings home what has finished. So no job waits behind a slow
 * one, and no outcome behind a slow handler, for longer than that. Another slot is called only after a run that was as fast as it
 * should: then jobs that turn out slow begin in their order.
 */
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "queue/ahead.h"
#include "queue/history.h"
#include "queue/said.h"
#include "queue/worker.h"

static bool must_end(const struct lade_worker *w)
{
    return w->n_slots - w->n_stuck > (size_t)w->concurrency ||
           (w->phase >= LQ_PHASE_STOPPING && w->n_queued == 0);
}

#define RUN_TIME  16000 /* ns of work in a run, as far as known */
#define RUN_LATE  (4 * RUN_TIME)
#define WAKE_COST 30000 /* ns; less work than that is not worth another slot while one is at it */
#define TURN_TIME LADE_MILLISECOND /* between two turns for other tasks of the same thread */

static uint32_t span_next(uint64_t span)
{
    return (uint32_t)(span >> 32);
}

static uint32_t span_end(uint64_t span)
{
    return (uint32_t)span;
}

/* Keeps the counts of what the runs hold. Under the lock. */
static void set_listed(struct lade_worker *w, struct lq_slot *slot, uint32_t n)
{
    w->n_in_runs -= slot->n_listed > 1 ? slot->n_listed - 1 : 0;
    w->n_in_runs += n > 1 ? n - 1 : 0;
    slot->n_listed = n;
}

static void leave_runs(struct lade_worker *w, struct lq_slot *slot)
{
    if (!slot->is_in_runs)
        return;
    lb_list_del(&slot->in_runs);
    slot->is_in_runs = false;
    w->n_runs--;
}

/* How many jobs to move at once: more than one only when they are known to be fast and fetch.c is there to look after them. */
static size_t run_size(const struct lade_worker *w)
{
    if (w->mean_run == 0 || w->mean_run > RUN_TIME / 2 || w->store_away ||
        w->phase != LQ_PHASE_RUNNING)
        return 1;
    return LB_MIN((size_t)(RUN_TIME / w->mean_run), LQ_RUN_MAX);
}

/*
 * queued -> running. False when nothing is queued, or the worker stops: what a take under way still brings goes back, and would not be
 * told to stop. Under the lock; the run before has ended.
 */
static bool claim_run(struct lade_worker *w, struct lq_slot *slot)
{
    if (w->phase >= LQ_PHASE_STOPPING)
        return false;
    size_t fit = run_size(w), n = 0, steps = 0; /* with those that may be run ahead */
    for (size_t most = LB_MIN(fit, LB_MAX(w->n_queued / 2, 1)); n < most && w->n_queued > 0; n++) {
        struct lade_job *job = LB_CONTAINER_OF(w->queued.next, struct lade_job, node);
        steps += 1 + job->n_follow;
        if (n > 0 && steps > fit)
            break;
        lq_worker_remove(w, job);
        lq_worker_push(w, job, LQ_PLACE_RUNNING);
        atomic_store_explicit(&job->holders, 2, memory_order_relaxed);
        slot->run[n] = job;
    }
    slot->n_moved = 0;
    slot->claimed_at = slot->now;
    set_listed(w, slot, (uint32_t)n);
    if (n > 1 || (n == 1 && steps > 1 && fit > 1)) {
        lb_list_push_back(&w->runs, &slot->in_runs);
        slot->is_in_runs = true;
        w->n_runs++;
    }
    atomic_store(&slot->span, n);
    w->n_begun += n > 0;
    return n > 0;
}

/* The next of the run; NULL when it is at its end, or what was left of it was taken back. Without the lock. */
static struct lade_job *begin_next(struct lq_slot *slot)
{
    uint64_t span = atomic_load_explicit(&slot->span, memory_order_relaxed);
    do {
        if (span_next(span) == span_end(span))
            return NULL;
    } while (!atomic_compare_exchange_weak(&slot->span, &span, span + (UINT64_C(1) << 32)));
    struct lade_job *job = slot->run[span_next(span)];
    job->started_at = job->ahead_since = slot->now;
    atomic_store_explicit(&job->stage, LQ_STAGE_STARTED, memory_order_release);
    return job;
}

/* What has not begun goes back to the queue, in its order. Under the lock. */
static void take_back(struct lade_worker *w, struct lq_slot *slot)
{
    uint64_t span = atomic_load(&slot->span);
    uint64_t cut;
    do {
        cut = (span & ~(uint64_t)UINT32_MAX) | span_next(span);
    } while (!atomic_compare_exchange_weak(&slot->span, &span, cut));
    for (uint32_t i = span_end(span); i-- > span_next(span);) {
        struct lade_job *job = slot->run[i];
        lq_worker_remove(w, job);
        lq_worker_put_back(w, job);
        lq_job_drop(job); /* the slot's hold; the list's is left */
    }
    set_listed(w, slot, slot->n_listed - (span_end(span) - span_next(span)));
}

/*
 * The clock of the attempt starts. False when the lease is over: a process that was stopped for longer than it holds jobs
 * that run elsewhere by now, and its slots may go on before run.c has seen that.
 */
static bool set_deadline(struct lq_slot *slot, struct lade_job *job)
{
    struct lade_worker *w = job->worker;
    int64_t timeout = lb_ns_of_ms(job->body.timeout_ms);
    int64_t deadline = timeout > LB_FOREVER - slot->now ? LB_FOREVER : slot->now + timeout;
    atomic_store(&job->deadline, deadline);
    if (deadline < atomic_load(&w->next_deadline)) { /* partner: check_deadlines in run.c */
        lr_mutex_lock(&w->lock);
        bool sooner = deadline < atomic_load(&w->next_deadline);
        if (sooner)
            atomic_store(&w->next_deadline, deadline);
        lr_mutex_unlock(&w->lock);
        if (sooner)
            lr_event_raise(&w->control);
    }
    return !lade_job_cancelled(job) && slot->now < atomic_load(&w->lease_until);
}

/* A job that has crashed a worker before is marked before it runs again. False when it must not run. */
static bool mark_begun(struct lade_job *job)
{
    struct lade_worker *w = job->worker;
    char incarnation[sizeof(w->incarnation)];
    lr_mutex_lock(&w->lock);
    (void)snprintf(incarnation, sizeof(incarnation), "%s",
                   lq_worker_incarnation_of(w, job->haul->epoch));
    bool lost = job->lost;
    lr_mutex_unlock(&w->lock);
    if (lost)
        return false;
    struct lq_lease lease = {
        .queue = job->queue, .id = lb_slice_of(job->leased->id), .fence = job->leased->fence};
    lade_err err = {0};
    int rc = lq_begin(w->q->store, incarnation, &lease, 1, &err);
    if (rc < 0)
        lq_worker_log(w, "job %s: cannot be marked as begun, handed back: %s", lade_job_id(job),
                      err.text);
    return rc >= 0 && lease.outcome == 0;
}

/* Mostly the same kind as before. */
static const struct lq_route *find_route(struct lq_slot *slot, const char *kind)
{
    const struct lade_worker *w = slot->worker;
    if (!slot->route || slot->route == w->catch_all || strcmp(slot->route->kind, kind) != 0) {
        const struct lq_route *r = lb_map_get(&w->routes, lb_slice_str(kind));
        slot->route = r ? r : w->catch_all;
    }
    return slot->route;
}

static enum lq_ending read_envelope(struct lade_job *job)
{
    job->crashes = lq_history_crashes(lb_slice_of(job->leased->history));
    job->attempt = lq_history_attempts(lb_slice_of(job->leased->history)) + 1;
    if (job->leased->oversize) {
        lade_job_error(
            job,
            "the stored envelope is larger than this worker accepts (lade_options.payload_max)");
        return LQ_ENDING_CORRUPT;
    }
    lade_err err = {0};
    if (lq_job_decode(job->leased->body, &job->body, &err) < 0) {
        lade_job_error(job, "%s", err.text);
        return LQ_ENDING_CORRUPT;
    }
    return LQ_ENDING_RETURNED;
}

/* Everything between taking a job off the list and knowing what became of it. Without the lock. */
static enum lq_ending run_job(struct lq_slot *slot, struct lade_job *job, lade_outcome *said)
{
    enum lq_ending ending = read_envelope(job);
    if (ending != LQ_ENDING_RETURNED)
        return ending;
    const struct lq_route *route = find_route(slot, job->body.kind);
    job->unroutable = !route;
    if (!route)
        return LQ_ENDING_UNROUTABLE;
    if (job->crashes > 0 && !mark_begun(job))
        return LQ_ENDING_HANDBACK;
    if (lade_job_cancelled(job))
        return LQ_ENDING_HANDBACK; /* stopped while it waited in our hands */
    if (!set_deadline(slot, job))
        return LQ_ENDING_HANDBACK;
    *said = route->fn(job, route->ctx);
    return LQ_ENDING_RETURNED;
}

/* n jobs took ns together: each counts as a sixteenth of the moving average. */
static void note_duration(struct lade_worker *w, int64_t ns, uint32_t n)
{
    int64_t each = ns / n + 1;
    w->mean_run = w->mean_run == 0 ? each : w->mean_run + (each - w->mean_run) * n / (n + 15);
}

static void log_ending(struct lade_job *job, enum lq_ending ending)
{
    struct lade_worker *w = job->worker;
    if (ending == LQ_ENDING_CORRUPT)
        lq_worker_log(w, "job %s in %s: to the dead, its envelope cannot be used: %.*s",
                      lade_job_id(job), job->queue, (int)job->error.n, (const char *)job->error.p);
    else if (ending == LQ_ENDING_UNROUTABLE)
        lq_worker_log(w, "job %s in %s: no handler for kind '%s' here, given back to the store%s",
                      lade_job_id(job), job->queue, job->body.kind,
                      w->drain ? "; the drain goes on until a worker that has one has run it" : "");
}

/* running -> done with the lock held; or, when it was abandoned or lost meanwhile, away. True when fetch has something to do. */
static bool finish(struct lade_worker *w, struct lade_job *job)
{
    bool done = false;
    if (job->place != LQ_PLACE_RUNNING) { /* abandoned: someone else has settled it */
        w->n_stuck--;
    } else if (job->lost) {
        lq_worker_remove(w, job);
        w->stats.lost++;
        lq_job_drop(job); /* the list's hold */
        done = true;      /* a slot is free: the new incarnation may take for it */
    } else {
        if (job->ending == LQ_ENDING_UNROUTABLE)
            w->stats.unroutable++;
        if (job->ending == LQ_ENDING_CORRUPT)
            w->stats.corrupt++;
        lq_worker_remove(w, job);
        lq_worker_push(w, job, LQ_PLACE_DONE);
        done = true;
    }
    lq_job_drop(job); /* the slot's hold */
    return done;
}

/* Moves on what has finished of a run. Under the lock. True: ring fetch. */
static bool bring_home(struct lade_worker *w, struct lq_slot *slot)
{
    uint32_t begun = span_next(atomic_load(&slot->span));
    bool done = false;
    uint32_t at = slot->n_moved;
    while (at < begun &&
           atomic_load_explicit(&slot->run[at]->stage, memory_order_acquire) == LQ_STAGE_FINISHED)
        done = finish(w, slot->run[at++]) || done;
    if (at == slot->n_moved)
        return false;
    set_listed(w, slot, slot->n_listed - (at - slot->n_moved));
    slot->n_moved = at;
    if (w->phase >= LQ_PHASE_STOPPING)
        lr_event_raise(&w->control);
    return done && lq_worker_wake_fetch(w);
}

bool lq_slots_recall(struct lade_worker *w, int64_t since)
{
    bool ring = false;
    lb_list_each_safe (it, &w->runs) {
        struct lq_slot *slot = LB_CONTAINER_OF(it, struct lq_slot, in_runs);
        if (slot->claimed_at > since)
            continue;
        take_back(w, slot);
        ring = bring_home(w, slot) || ring;
        leave_runs(w, slot);
        if (since != LB_FOREVER) /* late: they are not as fast as they were */
            w->mean_run = LB_MAX(w->mean_run, RUN_LATE);
    }
    return ring;
}

/*
 * Runs a job until its outcome is made, without the lock. First it claims what the handler said, so that the job cannot be abandoned
 * meanwhile. True when it may go on with the step behind it, which then decides when the job is FINISHED.
 */
static bool run_claimed(struct lq_slot *slot, struct lade_job *job)
{
    struct lade_worker *w = slot->worker;
    lade_outcome said = LADE_RETRY;
    enum lq_ending ending = run_job(slot, job, &said);
    bool plain = ending == LQ_ENDING_RETURNED && said == LADE_OK && !job->said;
    lq_said_close(job);
    slot->now = lb_clock_mono();
    if (job->hands_back && said != LADE_OK && ending == LQ_ENDING_RETURNED)
        ending = LQ_ENDING_HANDBACK;
    if (ending != LQ_ENDING_RETURNED)
        log_ending(job, ending);
    uint8_t started = LQ_STAGE_STARTED;
    bool claimed = atomic_compare_exchange_strong(&job->stage, &started, LQ_STAGE_CLAIMED);
    if (claimed) {
        job->ending = (uint8_t)ending;
        if (job->effects)
            lq_effects_refresh(job);
        if (ending == LQ_ENDING_RETURNED && atomic_load(&job->lost))
            lq_worker_log(w,
                          "job %s in %s: the lease was lost while it ran, its outcome is refused",
                          lade_job_id(job), job->queue);
        else
            lq_outcome_settle(job, ending, said);
        job->settle.took_us = (slot->now - job->started_at) / 1000;
    }
    return plain && claimed && !atomic_load(&job->lost);
}

static void finish_work(struct lade_job *job)
{
    atomic_store_explicit(&job->stage, LQ_STAGE_FINISHED, memory_order_release);
}

/* The job that has just begun, and the steps behind it as far as they are run ahead. How many. */
static uint32_t work_on(struct lq_slot *slot, struct lade_job *job)
{
    uint32_t at = span_next(atomic_load_explicit(&slot->span, memory_order_relaxed)) - 1, n = 0;
    bool ring = false;
    while (job) {
        struct lade_job *next = NULL;
        n++;
        if (run_claimed(slot, job) && job->n_follow > 0)
            next = lq_ahead_begin(slot, at, &ring);
        if (!next)
            finish_work(job);
        else if (ring)
            lq_worker_ring(slot->worker);
        job = next;
    }
    return n;
}

void lq_slot_work(struct lq_slot *slot, struct lade_job *job)
{
    job->started_at = slot->now;
    atomic_store_explicit(&job->stage, LQ_STAGE_STARTED, memory_order_release);
    (void)run_claimed(slot, job);
    finish_work(job);
}

/* One more slot, asleep or new, when there is work for it and none is on its way. Under the lock. */
static void call(struct lade_worker *w);

/* The same, unless one works off a run: that one will call, or fetch.c when it is late. */
static void call_another(struct lade_worker *w)
{
    if (w->n_runs == 0)
        call(w);
}

/* A run from the queue to done. Comes and goes with the lock held. */
static void work_off_run(struct lade_worker *w, struct lq_slot *slot)
{
    int64_t began = slot->now;
    uint32_t n = 0;
    call_another(w);
    lr_mutex_unlock(&w->lock);
    for (struct lade_job *job; (job = begin_next(slot));)
        n += work_on(slot, job);
    lr_mutex_lock(&w->lock);
    bool ring = bring_home(w, slot);
    leave_runs(w, slot);
    note_duration(w, slot->now - began, LB_MAX(n, 1));
    /* Fewer fast jobs would be done before another slot is awake. */
    if (slot->now - began < RUN_LATE && (int64_t)w->n_queued * w->mean_run > WAKE_COST)
        call(w);
    if (!ring)
        return;
    lr_mutex_unlock(&w->lock);
    lq_worker_ring(w);
    slot->now = lb_clock_mono();
    lr_mutex_lock(&w->lock);
}

static void run_slot(void *arg)
{
    struct lq_slot *slot = arg;
    struct lade_worker *w = slot->worker;
    slot->now = lb_clock_mono();
    int64_t turn_at = slot->now + TURN_TIME;
    lr_mutex_lock(&w->lock);
    w->waking = false;
    while (!must_end(w)) {
        if (claim_run(w, slot)) {
            work_off_run(w, slot);
        } else {
            w->n_idle_slots++;
            (void)lr_cond_wait(&w->slot_wake, &w->lock, LB_FOREVER);
            w->n_idle_slots--;
            w->waking = false;
            slot->now = lb_clock_mono();
            turn_at = slot->now + TURN_TIME;
        }
        if (slot->now >= turn_at) {
            lr_mutex_unlock(&w->lock);
            lr_yield_turn();
            lr_mutex_lock(&w->lock);
            slot->now = lb_clock_mono();
            turn_at = slot->now + TURN_TIME;
        }
    }
    w->n_slots--;
    slot->ended = true;
    lr_event_raise(&w->control);
    lr_mutex_unlock(&w->lock);
}

/* Slots that replaced a stuck one end when it comes back; their threads are joined here, so that they do not pile up. */
static void reap_ended(struct lade_worker *w)
{
    lb_list_each_safe (it, &w->slots) {
        struct lq_slot *slot = LB_CONTAINER_OF(it, struct lq_slot, node);
        if (!slot->ended)
            continue;
        lb_list_del(it);
        lr_thread_forget(&slot->thread); /* it has nothing left to do but return */
        lb_free(slot);
    }
}

/* False when the system gives no memory or no thread. */
static bool start_slot(struct lade_worker *w)
{
    struct lq_slot *slot = lb_calloc(1, sizeof(*slot));
    if (!slot)
        return false;
    slot->worker = w;
    int rc = w->executor == LADE_EXECUTOR_TASK
                 ? lr_thread_start_task(&slot->thread, "lade-slot", run_slot, slot)
                 : lr_thread_start(&slot->thread, "lade-slot", run_slot, slot);
    if (rc < 0) {
        lb_free(slot);
        return false;
    }
    lb_list_push_back(&w->slots, &slot->node);
    w->n_slots++;
    return true;
}

static void call(struct lade_worker *w)
{
    if (w->n_queued == 0 || w->waking)
        return;
    if (w->n_idle_slots > 0) {
        w->waking = true;
        lr_cond_wake_one(&w->slot_wake);
        return;
    }
    if (w->n_slots - w->n_stuck >= (size_t)w->concurrency)
        return;
    w->waking = start_slot(w);
    if (!w->waking && w->n_slots == w->n_stuck)
        lr_event_raise(&w->control); /* nobody will come to it by himself: run.c tries again */
}

void lq_slots_start(struct lade_worker *w)
{
    reap_ended(w);
    call_another(w);
}
