/*
 * drain.c - a worker without threads, on a clock that is stepped: <lade/testing.h>
 *
 *     settle + take one -> handler -> settle + take one -> ... -> nothing: step the clock to what is due next -> settle + take ...
 *
 * A job is run by the same code as in a slot (lq_slot_work), and its outcome is made by the same (outcome.c); there is only nobody
 * who watches it. Leases are on the stepped clock, so each step is followed by a renewal: nobody else can have noticed.
 */
#include <lade/testing.h>

#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "queue/scheduler.h"
#include "queue/worker.h"

#define RUNS_MAX  1000000
#define TRIM_MAX  1000
#define LOOKS_MAX 10000 /* at schedules, for one moment */

struct drain {
    struct lade_worker *w;
    lade_test_clock *clock;
    int64_t until;
    struct lq_slot *slot;
    struct lade_scheduler *
        scheduler; /* the worker's, which has none meanwhile: no thread of it is roused; NULL = none */
    struct lade_job *job; /* run, to be settled; NULL = none */
    const char *order[LQ_LANES_MAX];
    int64_t next_due_ms; /* of the last take that got nothing; 0 = nothing is due ever */
    lade_drain_stats stats;
    lade_err *err;
};

int64_t lade_test_clock_read(void *clock)
{
    return clock ? __atomic_load_n(&((lade_test_clock *)clock)->now, __ATOMIC_ACQUIRE) : 0;
}

void lade_test_clock_step(lade_test_clock *clock, int64_t by)
{
    if (clock && by > 0)
        (void)__atomic_add_fetch(&clock->now, by, __ATOMIC_ACQ_REL);
}

void lade_test_seed(uint64_t seed)
{
    lb_rand_seed(seed);
}

struct lade_job *lq_haul_sole_job(struct lade_worker *w, struct lq_haul *haul,
                                  const char *const *order)
{
    struct lade_job *job = lb_arena_alloc(&haul->vec.arena, sizeof(*job));
    if (!job)
        return NULL;
    memset(job, 0, sizeof(*job));
    haul->job = job;
    haul->live = 1;
    job->worker = w;
    job->haul = haul;
    job->leased = &haul->vec.job[0];
    job->queue = lq_leased_queue(job->leased, order);
    job->holders = 1;
    job->deadline = LB_FOREVER;
    job->cancel_event.fd = -1;
    job->retry_in = job->snooze_for = job->throttle_for = -1;
    return job;
}

static void count(struct drain *d, const struct lq_settle *it)
{
    lade_worker_stats sum = {0};
    if (d->job->unroutable) {
        d->stats.unroutable++;
        return;
    }
    if (it->outcome == LADE_STALE && !lq_effects_completed(d->job)) {
        d->stats.stale++;
        return;
    }
    if (it->outcome == LADE_STALE)
        d->job->settle.to = LQ_TO_COMPLETED; /* by its handler, in a transaction of its own */
    lq_outcome_count(&sum, d->job);
    d->stats.completed += sum.completed;
    d->stats.retried += sum.retried;
    d->stats.dead += sum.dead;
    d->stats.snoozed += sum.snoozed;
    d->stats.cancelled += sum.cancelled;
    d->stats.discarded += sum.discarded;
}

/* Settles what was run, and takes the next into *out; NULL when there is none. */
static int trip(struct drain *d, bool take_more, struct lade_job **out)
{
    struct lq_haul *haul = take_more ? lb_calloc(1, sizeof(*haul)) : NULL;
    struct lq_settle it = {0};
    size_t n = d->job ? 1 : 0;
    *out = NULL;
    if (take_more && !haul)
        return lb_fail_nomem(d->err, "drain");
    if (haul)
        lb_arena_init(&haul->vec.arena);
    if (d->job)
        it = d->job->settle;
    lq_worker_order(d->w, d->order, haul != NULL);
    struct lq_take take = {d->w->incarnation, {d->order, d->w->n_queues}, 1, false, false};
    int rc = lq_settle_take(d->w->q->store, &it, n, haul ? &take : NULL, haul ? &haul->vec : NULL,
                            d->err);
    if (rc >= 0 && d->job) {
        count(d, &it);
        lq_job_drop(d->job);
        d->job = NULL;
    }
    if (rc == 0 && haul && haul->vec.n > 0) {
        *out = lq_haul_sole_job(d->w, haul, d->order);
        if (*out)
            return 0;
        rc = lb_fail_nomem(d->err, "drain"); /* its lease runs out */
    }
    if (haul) {
        d->next_due_ms = haul->vec.next_due_ms;
        lb_arena_fini(&haul->vec.arena);
        lb_free(haul);
    }
    return rc;
}

static int renew(struct drain *d)
{
    int rc = lq_lease_renew(d->w, d->err);
    return rc == LADE_STALE ? lq_lease_renew(d->w, d->err) : rc;
}

/* A handler that stepped the clock past the lease, or a long series on a slow machine. */
static int take_next(struct drain *d, struct lade_job **job)
{
    if (lb_clock_mono() - d->w->renewed_at > d->w->lease / 3) {
        int rc = renew(d);
        if (rc < 0)
            return rc;
    }
    int rc = trip(d, true, job);
    if (rc != LADE_STALE)
        return rc;
    rc = renew(d);
    return rc < 0 ? rc : trip(d, true, job);
}

static void say_nothing(void *ctx, const char *line)
{
    (void)ctx;
    (void)line;
}

/* A job without a handler comes back each ten seconds of a simulated week: the first time is told. */
static void run_one(struct drain *d, struct lade_job *job)
{
    struct lade_worker *w = d->w;
    void (*log)(void *ctx, const char *line) = w->log;
    if (d->stats.unroutable > 0)
        w->log = say_nothing;
    d->slot->now = lb_clock_mono();
    lq_slot_work(d->slot, job);
    w->log = log;
    d->stats.runs += !job->unroutable;
    d->job = job;
}

static int run_ready(struct drain *d)
{
    for (;;) {
        struct lade_job *job;
        int rc = take_next(d, &job);
        if (rc < 0 || !job)
            return rc < 0 ? rc : 0;
        if (d->stats.runs + d->stats.unroutable >= RUNS_MAX) {
            job->settle = (struct lq_settle){.queue = job->queue,
                                             .id = lb_slice_of(job->leased->id),
                                             .fence = job->leased->fence,
                                             .to = LQ_TO_READY,
                                             .reason = LQ_REASON_NONE};
            d->job = job;
            rc = trip(d, false, &job);
            return rc < 0 ? rc : LADE_MORE;
        }
        run_one(d, job);
    }
}

static int trim(struct drain *d)
{
    size_t n;
    int rc;
    do {
        rc = lq_trim(d->w->q->store, lq_worker_lanes(d->w), TRIM_MAX, &n, d->err);
    } while (rc == LADE_MORE);
    return rc < 0 ? rc : 0;
}

/* Fires the schedules that are due now. */
static int fire_due(struct drain *d)
{
    int64_t until = 0;
    int rc = 0;
    for (int i = 0; d->scheduler && i < LOOKS_MAX && rc == 0 && until <= lb_clock_mono(); i++)
        rc = lq_scheduler_look(d->scheduler, &until, d->err);
    return rc < 0 ? rc : 0;
}

/* To what is due next. LADE_EMPTY: nothing is, until the end. */
static int step(struct drain *d)
{
    int64_t now = lade_test_clock_read(d->clock);
    int64_t next = d->next_due_ms > 0 ? lb_ns_of_ms(d->next_due_ms) : LB_FOREVER;
    if (d->scheduler && d->scheduler->next_ms > 0)
        next = LB_MIN(next, LB_MAX(lb_ns_of_ms(d->scheduler->next_ms), now + LADE_MILLISECOND));
    bool is_over = next > d->until;
    lade_test_clock_step(d->clock, LB_MAX(LB_MIN(next, d->until), now) - now);
    d->stats.steps++;
    int rc = renew(d);
    if (rc >= 0)
        rc = trim(d);
    return rc < 0 ? rc : (is_over ? LADE_EMPTY : 0);
}

static int drain(struct drain *d)
{
    int rc = renew(d);
    while (rc >= 0) {
        rc = run_ready(d);
        if (rc == 0)
            rc = fire_due(d);
        if (rc == 0)
            rc = run_ready(d);
        if (rc != 0)
            return rc;
        rc = step(d);
        if (rc == LADE_EMPTY)
            return 0;
    }
    return rc;
}

/* As one that ends: so that a later call, or lade_worker_run, comes as a new one. */
static void sign_off(struct lade_worker *w)
{
    lade_err err;
    if (w->registered && lq_leave(w->q->store, w->incarnation, lq_worker_lanes(w), &err) < 0)
        lq_worker_log(w, "cannot sign off: %s", err.text);
    lr_mutex_lock(&w->lock);
    lq_worker_lose(w);
    lr_mutex_unlock(&w->lock);
}

int lade_worker_drain(lade_worker *w, int64_t until, lade_drain_stats *stats, lade_err *err)
{
    LQ_REFUSE_NULL(w, "drain");
    if (w->q->clock != lade_test_clock_read || !w->q->clock_ctx)
        return lb_fail(
            err, LADE_EINVAL, "drain",
            "the handle has no lade_test_clock; give lade_open one as lade_options.clock");
    if (!(w->q->store->ops->caps & LQ_CAP_CLOCK))
        return lb_fail(err, LADE_EINVAL, "drain",
                       "the store '%s' has a clock of its own; open memory: or an SQLite file",
                       w->q->store->ops->name);
    if (until >= LB_CLOCK_END)
        return lb_fail(err, LADE_EINVAL, "drain",
                       "until is %lld, beyond the year 2261, where times end; give the time up to "
                       "which jobs shall run",
                       (long long)until);
    if (w->phase != LQ_PHASE_NEW)
        return lb_fail(err, LADE_EINVAL, "drain", "the worker runs or has run; open another");
    struct drain d = {.w = w, .clock = w->q->clock_ctx, .until = until, .err = err};
    d.slot = lb_calloc(1, sizeof(*d.slot));
    if (!d.slot)
        return lb_fail_nomem(err, "drain");
    d.slot->worker = w;
    d.scheduler = w->scheduler;
    w->scheduler = NULL;
    int rc = drain(&d);
    if (d.job)
        lq_job_drop(d.job); /* the store failed; its lease ends */
    sign_off(w);
    lade_err ignored;
    if (d.scheduler && d.scheduler->ticked &&
        lq_schedule_resign(w->q->store, d.scheduler->holder, &ignored) < 0)
        lq_worker_log(w, "the lead of the schedules runs out by itself: %s", ignored.text);
    w->scheduler = d.scheduler;
    lb_free(d.slot);
    if (stats)
        *stats = d.stats;
    return rc;
}

static int count_queue(lade *q, const char *queue, const char *kind, enum lade_state state,
                       size_t *n, lade_err *err)
{
    lade_cursor cursor = {0};
    while (!cursor.done) {
        lade_job_view *view[100];
        size_t k = 0;
        int rc = lade_job_list(q, queue, state, &cursor, LB_ARRAY_LEN(view), view, &k, err);
        if (rc < 0)
            return rc;
        for (size_t i = 0; i < k && rc == 0; i++) {
            *n += !kind || strcmp(view[i]->kind, kind) == 0;
            lade_job_view_free(view[i]);
        }
    }
    return 0;
}

int lade_test_count(lade *q, const char *queue, const char *kind, enum lade_state state, size_t *n,
                    lade_err *err)
{
    LQ_REFUSE_NULL(q, "count");
    LQ_REFUSE_NULL(n, "count");
    size_t sum = 0, n_queues = 0;
    lade_queue_info *info = NULL;
    int rc = queue ? count_queue(q, queue, kind, state, &sum, err)
                   : lade_queue_list(q, &info, &n_queues, err);
    for (size_t i = 0; i < n_queues && rc == 0; i++)
        rc = count_queue(q, info[i].name, kind, state, &sum, err);
    lade_free(info);
    if (rc == 0)
        *n = sum;
    return rc;
}
