/*
 * fetch.c - one thread that brings outcomes to the store and jobs back, both in one trip
 *
 *     loop:  outcomes, want = what the lists say
 *            nothing to do          -> sleep until a slot or run.c says otherwise
 *            trip: settle outcomes + take want
 *            nothing came, idle     -> wait in the store (a bell, no polling) until a job comes, is due, or a slot finishes
 *
 * How many jobs are held beyond the free slots follows from measured times: enough work to last for two trips. Slow
 * handlers therefore get no prefetch at all, and a backlog of slow jobs spreads over all workers; fast ones are taken by
 * the hundred. Failing trips are repeated with backoff, for as long as it takes: outcomes wait in their bounded list,
 * nothing new is taken, leases go on being renewed (C-001, C-002).
 *
 * Where fast jobs come one by one, trips are kept apart for a moment, so that each carries some (pace.h).
 *
 * While slots work off runs (slot.c) this thread is never away for long: it looks each millisecond, before it waits in the store too,
 * whether one of them got stuck. During a trip it cannot, but then no outcome could leave either.
 */
#include <stddef.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "queue/ahead.h"
#include "queue/pace.h"
#include "queue/worker.h"

/* Longest silent wait in the store: a lost bell costs no more. A server's bells are part of its data. */
#define IDLE_WAIT        (5 * LADE_SECOND)
#define IDLE_WAIT_REMOTE (2 * LADE_MINUTE)
#define DRAIN_WAIT       (100 * LADE_MILLISECOND)
#define RUN_LOOK \
    LADE_MILLISECOND /* how long a run may take before what is left of it is taken back */
#define LINGER \
    INT64_C(100000) /* ns that fast outcomes may wait for company while slots have work */
#define BACKOFF_FIRST (50 * LADE_MILLISECOND)
#define BACKOFF_LAST  (2 * LADE_SECOND)
#define LOG_EVERY     (10 * LADE_SECOND)
#define TRIP_WORK     (2 * LADE_MILLISECOND) /* least time that prefetched work should last */

/* The thread's own. */
struct fetch {
    struct lade_worker *w;
    struct lade_job *job[LQ_TAKE_MAX]; /* of the settles, same order */
    struct lq_settle settle[LQ_TAKE_MAX];
    size_t n;
    const char *order[LQ_LANES_MAX]; /* queues in the order of this trip */
    struct lq_pace pace;
    int64_t backoff, logged_at;
    uint64_t n_begun;   /* of the worker, at the last look */
    int64_t stalled_at; /* since when it has been the same */
    int64_t next_due;   /* monotonic, from the last empty take; LB_FOREVER = none */
    bool empty;         /* the last take found nothing */
};

/* The next trip's outcomes, under the lock. */
static void collect(struct fetch *f)
{
    struct lade_worker *w = f->w;
    while (f->n < LQ_TAKE_MAX && w->n_done > 0) {
        struct lade_job *job = LB_CONTAINER_OF(w->done.next, struct lade_job, node);
        lq_worker_remove(w, job);
        lq_worker_push(w, job, LQ_PLACE_SETTLING);
        f->job[f->n++] = job;
    }
}

/* Jobs to hold beyond the slots, under the lock. */
static size_t prefetch(const struct fetch *f)
{
    const struct lade_worker *w = f->w;
    if (w->mean_run == 0)
        return 0; /* nothing is known yet: one for each slot */
    int64_t cover = LB_MAX(2 * f->pace.trip, TRIP_WORK);
    int64_t jobs = cover / w->mean_run * w->concurrency;
    return (size_t)LB_MIN(jobs, (int64_t)w->prefetch_max);
}

static size_t want(const struct fetch *f)
{
    const struct lade_worker *w = f->w;
    if (w->phase != LQ_PHASE_RUNNING || !w->registered)
        return 0;
    if (f->n + w->n_done >= LQ_TAKE_MAX) /* the store is behind: outcomes first */
        return 0;
    size_t room = (size_t)w->concurrency + prefetch(f);
    size_t held = w->n_queued + w->n_running;
    if (held >= room)
        return 0;
    size_t busy = w->n_running - LB_MIN(w->n_in_runs, w->n_running);
    size_t free_slots = (size_t)w->concurrency - LB_MIN(busy, (size_t)w->concurrency);
    bool hungry = w->n_queued < free_slots || room - held >= room / 4;
    return hungry || f->n > 0 ? LB_MIN(room - held, LQ_TAKE_MAX)
                              : 0; /* else not worth a trip of its own */
}

/* True when it pays to let more outcomes gather: handlers are fast, slots have work, and few are done. */
static bool should_linger(const struct fetch *f)
{
    const struct lade_worker *w = f->w;
    return w->n_done > 0 && w->n_awaiting == 0 && w->n_queued > w->n_slots &&
           w->mean_run < LINGER && w->n_done < LB_MIN(w->n_queued, 256) &&
           w->phase == LQ_PHASE_RUNNING;
}

/*
 * Strict: as given. Weighted: smooth weighted round robin (as nginx has it): each take moves every queue on by its weight, the one that is
 * ahead leads and falls back by the sum. So of as many takes that follow each other as the weights are together each queue leads in
 * exactly its weight, wherever one begins to count; the others follow in the order in which they would lead.
 */
void lq_worker_order(struct lade_worker *w, const char **order, bool takes)
{
    size_t place[LQ_LANES_MAX];
    int64_t total = 0;
    assert(w->n_queues > 0);
    bool turns = takes && w->order == LADE_ORDER_WEIGHTED;
    for (size_t i = 0; i < w->n_queues; i++) {
        size_t k = i;
        total += w->weight[i];
        w->turn[i] += turns ? w->weight[i] : 0;
        for (; turns && k > 0 && w->turn[place[k - 1]] < w->turn[i]; k--)
            place[k] = place[k - 1];
        place[k] = i;
    }
    w->turn[place[0]] -= turns ? total : 0;
    for (size_t i = 0; i < w->n_queues; i++)
        order[i] = w->queue[place[i]];
}

void lq_outcome_count(lade_worker_stats *st, const struct lade_job *job)
{
    const struct lq_settle *s = &job->settle;
    if (job->unroutable)
        return; /* counted when it was handed back */
    if (atomic_load_explicit(&job->cancel, memory_order_relaxed) == LQ_CANCEL_OPERATOR &&
        s->to == LQ_TO_RETRYING) {
        st->cancelled++; /* the store ends it as the operator asked */
        return;
    }
    switch (s->to) {
    case LQ_TO_COMPLETED:
        st->completed++;
        break;
    case LQ_TO_RETRYING:
        st->retried++;
        break;
    case LQ_TO_DEAD:
        st->dead++;
        break;
    case LQ_TO_SCHEDULED:
    case LQ_TO_THROTTLED:
        st->snoozed++;
        break;
    case LQ_TO_CANCELLED:
        st->cancelled++;
        break;
    case LQ_TO_GONE:
        st->discarded++;
        break;
    case LQ_TO_READY:
    default:
        break;
    }
}

/* The list's holds; jobs of one haul mostly follow each other. Without the lock. */
static void drop_jobs(struct fetch *f)
{
    struct lq_haul *haul = NULL;
    size_t free = 0;
    for (size_t i = 0; i < f->n; i++) {
        if (f->job[i]->haul != haul) {
            if (free > 0)
                lq_haul_drop(haul, free);
            haul = f->job[i]->haul;
            free = 0;
        }
        free += lq_job_let_go(f->job[i]) ? 1 : 0;
    }
    if (free > 0)
        lq_haul_drop(haul, free);
    f->n = 0;
}

/* After a trip that held: the jobs are the store's again. They are all that is in `settling`. */
static void release_settled(struct fetch *f)
{
    struct lade_worker *w = f->w;
    lade_worker_stats sum = {0};
    size_t stale = 0;
    for (size_t i = 0; i < f->n; i++) {
        if (f->settle[i].outcome == LADE_STALE && lq_effects_completed(f->job[i])) {
            f->settle[i].outcome = 0; /* by its handler, in a transaction of its own */
            f->job[i]->settle.to = LQ_TO_COMPLETED;
        }
        if (f->settle[i].outcome == LADE_STALE)
            stale++;
        else
            lq_outcome_count(&sum, f->job[i]);
    }
    lr_mutex_lock(&w->lock);
    w->store_away = false;
    assert(w->n_settling == f->n);
    for (size_t i = 0; i < f->n; i++) {
        if (f->job[i]->after)
            lq_ahead_told(w, f->job[i], f->settle[i].went_on);
    }
    lb_list_init(&w->settling);
    w->n_settling = 0;
    w->stats.completed += sum.completed;
    w->stats.retried += sum.retried;
    w->stats.dead += sum.dead;
    w->stats.snoozed += sum.snoozed;
    w->stats.cancelled += sum.cancelled;
    w->stats.discarded += sum.discarded;
    w->stats.lost += stale;
    if (w->phase >= LQ_PHASE_STOPPING)
        lr_event_raise(&w->control);
    lr_mutex_unlock(&w->lock);
    for (size_t i = 0; i < f->n && w->on_dead; i++) {
        const struct lade_job *job = f->job[i];
        if (f->settle[i].outcome == LADE_DONE)
            lq_death_tell(w, &f->settle[i], job->ending == LQ_ENDING_CORRUPT ? NULL : &job->body,
                          lb_slice_of(job->leased->history));
    }
    for (size_t i = 0; i < f->n && stale > 0; i++) {
        if (f->settle[i].outcome == LADE_STALE)
            lq_worker_log(w, "job %s in %s: the lease was lost, its outcome is refused",
                          lade_job_id(f->job[i]), f->job[i]->queue);
    }
    drop_jobs(f);
}

/* queue name in the worker's own memory of a lane of this trip */
static void fill_jobs(struct fetch *f, struct lq_haul *haul)
{
    for (size_t i = 0; i < haul->vec.n; i++) {
        struct lade_job *job = &haul->job[i];
        memset(job, 0, offsetof(struct lade_job, body));
        job->worker = f->w;
        job->haul = haul;
        job->leased = &haul->vec.job[i];
        job->queue = lq_leased_queue(job->leased, f->order);
        job->holders = 1;
        job->stage = LQ_STAGE_WAITS;
        job->deadline = LB_FOREVER;
        job->cancel_event.fd = -1;
        job->retry_in = job->snooze_for = job->throttle_for = -1;
        job->follow = job->leased->follow;
        job->n_follow = job->leased->n_follow;
    }
    haul->live = haul->vec.n;
    haul->epoch = f->w->taking_epoch; /* ours while the take is under way */
}

/*
 * Puts taken jobs in front of the slots. Should the worker have begun to stop meanwhile, run.c hands them back as it
 * does with all that is queued. False when out of memory: then they go back at once.
 */
static bool accept(struct fetch *f, struct lq_haul *haul)
{
    struct lade_worker *w = f->w;
    haul->job = lb_arena_alloc(&haul->vec.arena, haul->vec.n * sizeof(*haul->job));
    if (!haul->job)
        return false;
    fill_jobs(f, haul);
    lr_mutex_lock(&w->lock);
    for (size_t i = 0; i < haul->vec.n; i++) {
        haul->job[i].number = ++w->n_taken;
        lq_worker_push(w, &haul->job[i], LQ_PLACE_QUEUED);
    }
    lq_slots_start(w);
    if (w->sweep_idle)
        lr_cond_wake_one(&w->sweep_wake);
    if (w->phase >= LQ_PHASE_STOPPING)
        lr_event_raise(&w->control);
    lr_mutex_unlock(&w->lock);
    return true;
}

/* Out of memory after a take: the leases go back by the stack, a few at a time. */
static void hand_back(struct fetch *f, const struct lq_haul *haul)
{
    for (size_t i = 0; i < haul->vec.n; i++) {
        const struct lq_leased *l = &haul->vec.job[i];
        struct lq_settle back = {.queue = lq_leased_queue(l, f->order),
                                 .id = lb_slice_of(l->id),
                                 .fence = l->fence,
                                 .to = LQ_TO_READY,
                                 .reason = LQ_REASON_NONE};
        lade_err err = {0};
        if (lq_settle_take(f->w->q->store, &back, 1, NULL, NULL, &err) < 0)
            lq_worker_log(f->w, "job %.*s: out of memory, and it cannot be handed back: %s",
                          (int)l->id.n, (const char *)l->id.p, err.text);
    }
}

static void note_due(struct fetch *f, const struct lq_leased_vec *vec)
{
    f->next_due = LB_FOREVER;
    if (vec->next_due_ms > 0)
        f->next_due = lb_deadline_in(lb_ns_of_ms(vec->next_due_ms - vec->now_ms));
}

/* Asleep until somebody calls or the time comes. Under the lock. */
static void sleep_here(struct lade_worker *w, int64_t until)
{
    w->fetch_asleep = true;
    (void)lr_cond_wait(&w->fetch_wake, &w->lock, until);
    w->fetch_asleep = false;
}

static void back_off(struct fetch *f, const lade_err *err)
{
    struct lade_worker *w = f->w;
    int64_t now = lb_clock_mono();
    if (f->backoff == 0 || now - f->logged_at > LOG_EVERY) {
        lq_worker_log(w, "the store fails, %zu outcomes wait, trying again: %s", f->n, err->text);
        f->logged_at = now;
    }
    f->backoff = f->backoff == 0 ? BACKOFF_FIRST : LB_MIN(2 * f->backoff, BACKOFF_LAST);
    int64_t until = now + f->backoff / 2 + (int64_t)lb_rand_below((uint64_t)f->backoff / 2 + 1);
    lr_mutex_lock(&w->lock);
    w->store_away = true;
    (void)lq_slots_recall(w, LB_FOREVER); /* nobody looks after runs while we sleep */
    while (lb_clock_mono() < until && w->phase < LQ_PHASE_ENDED)
        sleep_here(w, until);
    /* what was lost meanwhile is not ours to settle */
    size_t kept = 0;
    for (size_t i = 0; i < f->n; i++) {
        if (f->job[i]->lost) {
            lq_worker_remove(w, f->job[i]);
            lq_worker_note_dropped(w, lade_job_id(f->job[i]));
            w->stats.lost++;
            lq_job_drop(f->job[i]);
            continue;
        }
        f->job[kept++] = f->job[i];
    }
    f->n = kept;
    lr_mutex_unlock(&w->lock);
    lq_worker_log_dropped(w);
}

static int compare_leases(const void *a, const void *b)
{
    const struct lq_settle *x = &(*(struct lade_job *const *)a)->settle;
    const struct lq_settle *y = &(*(struct lade_job *const *)b)->settle;
    if (x->queue != y->queue) /* the worker's own strings: one address for each queue */
        return x->queue < y->queue ? -1 : 1;
    return (x->fence > y->fence) - (x->fence < y->fence);
}

/* Steps of one flow that were run from one lease stay in their order. */
static int compare_steps(const void *a, const void *b)
{
    const struct lade_job *x = *(struct lade_job *const *)a, *y = *(struct lade_job *const *)b;
    int order = compare_leases(a, b);
    if (order == 0)
        order = (x->number > y->number) - (x->number < y->number);
    return order ? order : (x->step > y->step) - (x->step < y->step);
}

/*
 * The settles of this trip, in the order of the leases, which a store can do in stretches; handlers finish in any order.
 * What is handed back keeps the order it was given: each such job goes to the head of its level.
 */
static void arrange(struct fetch *f)
{
    bool hand_back = false;
    bool sorted = true;
    for (size_t i = 0; i < f->n; i++) {
        enum lq_to to = f->job[i]->settle.to;
        hand_back = hand_back || to == LQ_TO_READY || to == LQ_TO_THROTTLED;
        sorted = sorted && (i == 0 || compare_leases(&f->job[i - 1], &f->job[i]) <= 0);
    }
    if (!hand_back && !sorted)
        qsort(f->job, f->n, sizeof(f->job[0]), compare_steps);
    for (size_t i = 0; i < f->n; i++)
        f->settle[i] = f->job[i]->settle;
}

/* One trip. Returns < 0 when it failed; the outcomes are still f's then. */
static int trip(struct fetch *f, size_t n_want, const char *incarnation)
{
    struct lade_worker *w = f->w;
    struct lq_haul *haul = n_want > 0 ? lb_calloc(1, sizeof(*haul)) : NULL;
    struct lq_take take = {incarnation, {f->order, w->n_queues}, n_want, true, !w->strict_steps};
    lade_err err = {0};
    if (haul)
        lb_arena_init(&haul->vec.arena);
    lq_worker_order(w, f->order, n_want > 0);
    arrange(f);
    lq_pace_begin(&f->pace, lb_clock_mono(), f->n);
    int rc = lq_settle_take(w->q->store, f->settle, f->n, haul ? &take : NULL,
                            haul ? &haul->vec : NULL, &err);
    if (rc < 0) {
        back_off(f, &err);
    } else {
        lq_pace_end(&f->pace, lb_clock_mono(), haul && haul->vec.n < n_want);
        f->backoff = 0;
        release_settled(f);
    }
    f->empty = rc >= 0 && haul && haul->vec.n == 0;
    if (f->empty)
        note_due(f, &haul->vec);
    if (rc >= 0 && haul && haul->vec.n > 0) {
        if (accept(f, haul))
            return rc;
        hand_back(f, haul);
    }
    if (haul) {
        lb_arena_fini(&haul->vec.arena);
        lb_free(haul);
    }
    return rc;
}

static bool is_empty(const lade_queue_info *info, int rc)
{
    return rc == LADE_NOT_FOUND ||
           (rc >= 0 && info->count[LADE_STATE_READY] + info->count[LADE_STATE_SCHEDULED] +
                               info->count[LADE_STATE_RETRYING] + info->count[LADE_STATE_ACTIVE] ==
                           0);
}

/* True when nothing of the worker's queues is left anywhere, here or with other workers. */
static bool is_drained(struct fetch *f)
{
    struct lade_worker *w = f->w;
    struct lq_store *s = w->q->store;
    lade_queue_info info;
    if (s->ops->patterns)
        return is_empty(&info, s->ops->patterns->count(s, lq_worker_lanes(w), &info, NULL));
    for (size_t i = 0; i < w->n_queues; i++)
        if (!is_empty(&info, s->ops->count(s, w->queue[i], &info, NULL)))
            return false;
    return true;
}

/* Looks after runs that take longer than they should; when to look again. Under the lock. */
static int64_t look_after_runs(struct lade_worker *w)
{
    if (w->n_runs == 0)
        return LB_FOREVER;
    int64_t now = lb_clock_mono();
    size_t n_queued = w->n_queued;
    (void)lq_slots_recall(w, now - RUN_LOOK); /* it is us whom it would ring for */
    if (w->n_queued > n_queued)
        lq_slots_start(w);
    return w->n_runs > 0 ? now + RUN_LOOK : LB_FOREVER;
}

/*
 * Jobs were prefetched for slots that have become slow: all are busy, and for a fifth of the lease none has come for the next.
 * They go back, as others may have slots free. Returns when to look again. Under the lock.
 */
static int64_t look_after_stall(struct fetch *f)
{
    struct lade_worker *w = f->w;
    if (w->n_queued == 0 || w->phase != LQ_PHASE_RUNNING) {
        f->stalled_at = 0;
        return LB_FOREVER;
    }
    int64_t now = lb_clock_mono();
    if (f->n_begun != w->n_begun || f->stalled_at == 0) {
        f->n_begun = w->n_begun;
        f->stalled_at = now;
    }
    bool all_busy = w->n_slots - w->n_stuck >= (size_t)w->concurrency && w->n_idle_slots == 0;
    if (!all_busy || now - f->stalled_at < w->lease / 5)
        return LB_MAX(f->stalled_at, now - w->lease / 10) + w->lease / 5;
    f->stalled_at = now;
    w->mean_run = LB_MAX(w->mean_run, w->lease / 5);
    lq_worker_hand_back(w);
    return LB_FOREVER;
}

/* Nothing to settle and nothing to take: waits in the store for its bell. */
static void wait_in_store(struct fetch *f, const char *incarnation)
{
    struct lade_worker *w = f->w;
    lr_mutex_lock(&w->lock);
    for (int64_t at;
         w->n_done == 0 && w->phase == LQ_PHASE_RUNNING && (at = look_after_runs(w)) != LB_FOREVER;)
        sleep_here(w, at);
    bool idle = w->n_queued + w->n_running + w->n_done == 0;
    bool ours = strcmp(incarnation, w->incarnation) == 0; /* not given up since the take */
    int64_t stall_at = w->n_queued > 0 ? lb_deadline_in(w->lease / 5) : LB_FOREVER;
    bool wait = w->n_done == 0 && w->phase == LQ_PHASE_RUNNING && w->registered && ours;
    w->fetch_in_store = wait;
    memcpy(w->waits_as, incarnation, sizeof(w->waits_as));
    lr_mutex_unlock(&w->lock);
    if (!wait)
        return;
    if (idle && w->drain && is_drained(f)) {
        lade_worker_stop(w);
        lr_mutex_lock(&w->lock);
        w->fetch_in_store = false;
        lr_mutex_unlock(&w->lock);
        return;
    }
    lade_err err = {0};
    int64_t longest = w->q->store->ops->caps & LQ_CAP_REMOTE ? IDLE_WAIT_REMOTE : IDLE_WAIT;
    int64_t deadline = LB_MIN(f->next_due, lb_deadline_in(w->drain && idle ? DRAIN_WAIT : longest));
    deadline = LB_MIN(deadline, stall_at);
    int rc = w->q->store->ops->wait(w->q->store, incarnation, lq_worker_lanes(w), deadline, &err);
    lr_mutex_lock(&w->lock);
    w->fetch_in_store = false;
    lr_mutex_unlock(&w->lock);
    if (rc < 0)
        back_off(f, &err);
}

/* Sleeps until there is something to settle or to take. False when the worker has ended. */
static bool sleep_until_work(struct fetch *f, size_t *n_want, char *incarnation)
{
    struct lade_worker *w = f->w;
    int64_t next = lq_pace_next(&f->pace);
    if (next > lb_clock_mono())
        lr_sleep_until(next);
    lr_mutex_lock(&w->lock);
    int64_t linger_until = lb_clock_mono() + LINGER;
    for (;;) {
        int64_t stall_at = look_after_stall(f);
        if (f->n == 0 && !(should_linger(f) && lb_clock_mono() < linger_until))
            collect(f);
        *n_want = want(f);
        if (w->phase == LQ_PHASE_ENDED || f->n > 0 || *n_want > 0)
            break;
        int64_t look_at = LB_MIN(look_after_runs(w), stall_at);
        sleep_here(w, w->n_done > 0 ? LB_MIN(linger_until, look_at) : look_at);
    }
    bool ended = w->phase == LQ_PHASE_ENDED;
    w->taking = !ended && *n_want > 0;
    w->taking_epoch = w->epoch;
    memcpy(incarnation, w->incarnation, sizeof(w->incarnation));
    lr_mutex_unlock(&w->lock);
    return !ended;
}

/* What the take brought is in the lists now; a worker that stops must not have ended before. */
static void end_taking(struct lade_worker *w)
{
    lr_mutex_lock(&w->lock);
    w->taking = false;
    if (w->phase >= LQ_PHASE_STOPPING)
        lr_event_raise(&w->control);
    lr_mutex_unlock(&w->lock);
}

/* The store does not know this worker any more: no need to wait for the next renewal to say so. */
static void lose(struct lade_worker *w, const char *incarnation)
{
    lr_mutex_lock(&w->lock);
    bool ours = w->registered && strcmp(incarnation, w->incarnation) == 0;
    if (ours)
        lq_worker_lose(w);
    lr_mutex_unlock(&w->lock);
    if (ours)
        lq_worker_log(w,
                      "the store has forgotten %s or given its leases away. Starting over as a "
                      "new one",
                      w->name);
    lq_worker_log_dropped(w);
}

void lq_fetch_run(void *worker)
{
    struct fetch *f = lb_calloc(1, sizeof(*f));
    struct lade_worker *w = worker;
    while (!f) { /* 200 KiB at start: wait for memory rather than leave a worker that never takes */
        lq_worker_log(w, "out of memory, trying again");
        lr_sleep_until(lb_deadline_in(LADE_SECOND));
        f = lb_calloc(1, sizeof(*f));
    }
    f->w = w;
    f->next_due = LB_FOREVER;
    size_t n_want = 0;
    char incarnation[sizeof(w->incarnation)];
    while (sleep_until_work(f, &n_want, incarnation)) {
        int rc = trip(f, n_want, incarnation);
        end_taking(w);
        if (rc == LADE_STALE)
            lose(w, incarnation);
        else if (rc >= 0 && f->empty)
            wait_in_store(f, incarnation);
    }
    lr_mutex_lock(&w->lock);
    for (size_t i = 0; i < f->n;
         i++) { /* given up by run.c: the leases run out and others take over */
        lq_worker_remove(w, f->job[i]);
        lq_job_drop(f->job[i]);
    }
    lr_mutex_unlock(&w->lock);
    lb_free(f);
}
