/*
 * slot.c - a slot: a thread that runs one handler at a time
 *
 * Waking is a chain: at most one slot is on its way at a time, and it calls the next when there is still work. Slow
 * handlers thus get all slots within some tens of microseconds each, while a burst of fast jobs is done by the few that
 * are awake, instead of paying a system call for every job. Slots are made by the same chain, up to the concurrency. A handler that is deaf to cancel is
 * left behind at its second deadline: its slot counts as stuck and another may start in its place, so that the worker
 * keeps its concurrency (C-003, C-078); when the handler comes back, its slot ends if there are too many.
 */
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "queue/history.h"
#include "queue/worker.h"

static bool must_end(const struct lade_worker *w)
{
    return w->n_slots - w->n_stuck > (size_t)w->concurrency ||
           (w->phase >= LQ_PHASE_STOPPING && w->n_queued == 0);
}

/* queued -> running, under the lock. The clock of the attempt starts when the envelope has been read. */
static struct lade_job *start_next(struct lade_worker *w)
{
    if (w->n_queued == 0)
        return NULL;
    struct lade_job *job = LB_CONTAINER_OF(w->queued.next, struct lade_job, node);
    lq_worker_remove(w, job);
    lq_worker_push(w, job, LQ_PLACE_RUNNING);
    job->holders++;
    return job;
}

/*
 * The clock of the attempt starts. False when the lease is over: a process that was stopped for longer than it holds jobs
 * that run elsewhere by now, and its slots may go on before run.c has seen that.
 */
static bool set_deadline(struct lade_job *job)
{
    struct lade_worker *w = job->worker;
    lr_mutex_lock(&w->lock);
    bool over = job->lost || (w->registered && lb_clock_mono() - w->renewed_at >= w->lease);
    job->deadline = lb_deadline_in(lb_ns_of_ms(job->body.timeout_ms));
    bool sooner = job->deadline < w->next_deadline;
    if (sooner)
        w->next_deadline = job->deadline;
    lr_mutex_unlock(&w->lock);
    if (sooner)
        lr_event_raise(&w->control);
    return !over;
}

/* A job that has crashed a worker before is marked before it runs again. False when it must not run. */
static bool mark_begun(struct lade_job *job)
{
    struct lade_worker *w = job->worker;
    char incarnation[sizeof(w->incarnation)];
    lr_mutex_lock(&w->lock);
    (void)snprintf(incarnation, sizeof(incarnation), "%s", w->incarnation);
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

static const struct lq_route *find_route(const struct lade_worker *w, const char *kind)
{
    const struct lq_route *r = lb_map_get(&w->routes, lb_slice_str(kind));
    return r ? r : w->catch_all;
}

static enum lq_ending read_envelope(struct lade_job *job)
{
    job->crashes = lq_history_crashes(lb_slice_of(job->leased->history));
    job->attempt = lq_history_attempts(lb_slice_of(job->leased->history)) + 1;
    job->started_ms = lq_client_now_ms(job->worker->q);
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
static enum lq_ending run_job(struct lade_job *job, lade_outcome *said)
{
    enum lq_ending ending = read_envelope(job);
    if (ending != LQ_ENDING_RETURNED)
        return ending;
    const struct lq_route *route = find_route(job->worker, job->body.kind);
    job->unroutable = !route;
    if (!route)
        return LQ_ENDING_UNROUTABLE;
    if (job->crashes > 0 && !mark_begun(job))
        return LQ_ENDING_HANDBACK;
    if (lade_job_cancelled(job))
        return LQ_ENDING_HANDBACK; /* stopped while it waited in our hands */
    if (!set_deadline(job))
        return LQ_ENDING_HANDBACK;
    *said = route->fn(job, route->ctx);
    return LQ_ENDING_RETURNED;
}

static void note_duration(struct lade_worker *w, int64_t ns)
{
    w->mean_run = w->mean_run == 0 ? ns : w->mean_run + (ns - w->mean_run) / 16;
}

static void log_ending(struct lade_job *job, enum lq_ending ending)
{
    struct lade_worker *w = job->worker;
    if (ending == LQ_ENDING_CORRUPT)
        lq_worker_log(w, "job %s in %s: to the dead, its envelope cannot be used: %.*s",
                      lade_job_id(job), job->queue, (int)job->error.n, (const char *)job->error.p);
    else if (ending == LQ_ENDING_UNROUTABLE)
        lq_worker_log(w, "job %s in %s: no handler for kind '%s' here, handed back for 10 s",
                      lade_job_id(job), job->queue, job->body.kind);
}

/* running -> done with the lock held; or, when it was abandoned or lost meanwhile, away. True: ring fetch. */
static bool finish(struct lade_worker *w, struct lade_job *job, enum lq_ending ending)
{
    bool ring = false;
    if (job->place != LQ_PLACE_RUNNING) { /* abandoned: someone else has settled it */
        w->n_stuck--;
    } else if (job->lost) {
        lq_worker_remove(w, job);
        w->stats.lost++;
        lq_job_drop(w, job); /* the list's hold */
    } else {
        if (ending == LQ_ENDING_UNROUTABLE)
            w->stats.unroutable++;
        if (ending == LQ_ENDING_CORRUPT)
            w->stats.corrupt++;
        lq_worker_remove(w, job);
        lq_worker_push(w, job, LQ_PLACE_DONE);
        ring = lq_worker_wake_fetch(w);
    }
    lq_job_drop(w, job); /* the slot's hold */
    if (w->phase >= LQ_PHASE_STOPPING)
        lr_event_raise(&w->control);
    return ring;
}

/*
 * Runs a job and comes back with the lock held. Success needs no memory and no user code, so its outcome is written under
 * the lock; for the rest the slot first claims the job, so that it cannot be abandoned while the outcome is made.
 */
static bool work(struct lade_worker *w, struct lade_job *job)
{
    int64_t began = lb_clock_mono();
    lade_outcome said = LADE_RETRY;
    enum lq_ending ending = run_job(job, &said);
    int64_t took = lb_clock_mono() - began;
    log_ending(job, ending);
    lr_mutex_lock(&w->lock);
    note_duration(w, took);
    if (job->place == LQ_PLACE_RUNNING && !job->lost) {
        job->claimed = true;
        if (ending == LQ_ENDING_RETURNED && said == LADE_OK) {
            lq_outcome_settle(job, ending, said);
        } else {
            lr_mutex_unlock(&w->lock);
            lq_outcome_settle(job, ending, said);
            lr_mutex_lock(&w->lock);
        }
    } else if (job->lost && ending == LQ_ENDING_RETURNED) {
        lr_mutex_unlock(&w->lock); /* the slot's hold keeps the job */
        lq_worker_log(w, "job %s in %s: the lease was lost while it ran, its outcome is refused",
                      lade_job_id(job), job->queue);
        lr_mutex_lock(&w->lock);
    }
    return finish(w, job, ending);
}

/* One more slot, asleep or new, when there is work for it and none is on its way. Under the lock. */
static void call_another(struct lade_worker *w);

static void run_slot(void *arg)
{
    struct lq_slot *slot = arg;
    struct lade_worker *w = slot->worker;
    lr_mutex_lock(&w->lock);
    w->waking = false;
    while (!must_end(w)) {
        struct lade_job *job = start_next(w);
        if (!job) {
            w->n_idle_slots++;
            (void)lr_cond_wait(&w->slot_wake, &w->lock, LB_FOREVER);
            w->n_idle_slots--;
            w->waking = false;
            continue;
        }
        call_another(w);
        lr_mutex_unlock(&w->lock);
        if (work(w, job)) { /* comes back with the lock */
            lr_mutex_unlock(&w->lock);
            lq_worker_ring(w);
            lr_mutex_lock(&w->lock);
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

static void call_another(struct lade_worker *w)
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
