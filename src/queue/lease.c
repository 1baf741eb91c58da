/*
 * lease.c - one OS thread that keeps the worker's leases
 *
 * It renews at a third of the lease, at half of it while there is nothing to lose, with its own connection in the store, and
 * does nothing else: no handler, no full queue and no slow trip can delay it. What it learns on the way, that operators want jobs stopped or that the store has
 * given the leases away, it passes on. run.c judges the age of the last renewal by its own clock, so that a worker whose
 * renewals hang knows that it has lost its claim before it does harm (C-007).
 */
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/err.h"
#include "queue/beat.h"
#include "queue/scheduler.h"
#include "queue/worker.h"

#define STOPS_MAX 64

static void cancel_matching(struct lb_list *list, const struct lq_stop *stop)
{
    lb_list_each (it, list) {
        struct lade_job *job = LB_CONTAINER_OF(it, struct lade_job, node);
        if (job->leased->fence == stop->fence && strcmp(job->queue, stop->queue) == 0 &&
            strcmp(lade_job_id(job), stop->id) == 0)
            lq_job_cancel(job, LQ_CANCEL_OPERATOR);
    }
}

static void pass_on_stops(struct lade_worker *w, const struct lq_stop *stop, size_t n)
{
    lr_mutex_lock(&w->lock);
    for (size_t i = 0; i < n; i++) {
        cancel_matching(&w->running, &stop[i]);
        cancel_matching(&w->queued, &stop[i]);
    }
    lr_mutex_unlock(&w->lock);
}

static int64_t time_of(int64_t in_ms)
{
    return in_ms == LB_FOREVER ? LB_FOREVER : lb_deadline_in(lb_ns_of_ms(in_ms));
}

/* When sweep.c will have something to do. Under the lock. */
static void plan_sweep(struct lade_worker *w, const struct lq_ahead *ahead)
{
    w->reclaim_at = time_of(ahead->death_in_ms);
    w->promote_at = time_of(ahead->due_in_ms);
    if (LB_MIN(w->reclaim_at, w->promote_at) < w->sweep_at)
        lr_cond_wake_one(&w->sweep_wake);
}

int lq_lease_renew(struct lade_worker *w, lade_err *err)
{
    struct lq_stop stop[STOPS_MAX];
    size_t n = 0;
    struct lq_ahead ahead = {0}; /* a store that does not know: look */
    struct lq_orders orders = {0};
    char incarnation[sizeof(w->incarnation)];
    lr_mutex_lock(&w->lock);
    if (w->started_ms == 0)
        w->started_ms = lq_client_now_ms(w->q);
    struct lq_report report = lq_control_report(w);
    struct lq_beat beat = {.worker = incarnation,
                           .name = w->name,
                           .lanes = lq_worker_lanes(w),
                           .lease_ms = lb_ms_up(w->lease),
                           .started_ms = w->started_ms,
                           .concurrency = w->concurrency,
                           .first = !w->registered,
                           .ahead = &ahead,
                           .report = &report,
                           .orders = &orders};
    memcpy(incarnation, w->incarnation, sizeof(incarnation));
    lr_mutex_unlock(&w->lock);
    int64_t began = lb_clock_mono();
    int rc = lq_renew(w->q->store, &beat, stop, STOPS_MAX, &n, err);
    lr_mutex_lock(&w->lock);
    bool ours =
        memcmp(incarnation, w->incarnation, sizeof(incarnation)) == 0; /* not given up meanwhile */
    bool ring = false;
    if (rc == 0 && ours) {
        w->renewed_at = began;
        lq_control_told(w, incarnation, &report);
        bool was = w->registered;
        w->registered = true;
        atomic_store(&w->lease_until, began + w->lease);
        plan_sweep(w, &ahead);
        ring = !was && lq_worker_wake_fetch(w); /* it may take now */
        if (ahead.other_store)
            lq_worker_retire(w);
    } else if (rc == LADE_STALE && ours) {
        lq_worker_lose(w);
    }
    lr_mutex_unlock(&w->lock);
    if (ring)
        lq_worker_ring(w);
    if (rc == 0 && n > 0)
        pass_on_stops(w, stop, n);
    if (rc == 0 && ours)
        lq_control_obey(w, &orders);
    if (rc == 0 && ahead.schedules)
        lq_scheduler_rouse(w->scheduler);
    if (rc == LADE_STALE && ours)
        lq_worker_log(
            w,
            "the leases of %s were given to others: it did not renew in time. Starting over as a new one",
            w->name);
    lq_worker_log_dropped(w);
    return rc;
}

int lq_lease_renew_former(struct lade_worker *w, const char *incarnation, lade_err *err)
{
    struct lq_stop stop[STOPS_MAX];
    size_t n = 0;
    struct lq_beat beat = {.worker = incarnation,
                           .name = w->name,
                           .lanes = lq_worker_lanes(w),
                           .lease_ms = lb_ms_up(w->lease),
                           .started_ms = w->started_ms,
                           .concurrency = w->concurrency};
    int rc = lq_renew(w->q->store, &beat, stop, STOPS_MAX, &n, err);
    if (rc == 0 && n > 0)
        pass_on_stops(w, stop, n);
    return rc;
}

void lq_lease_run(void *worker)
{
    struct lade_worker *w = worker;
    int failures = 0;
    lr_mutex_lock(&w->lock);
    while (w->phase != LQ_PHASE_ENDED) {
        bool idle = w->n_queued + w->n_running + w->n_done + w->n_settling == 0;
        int64_t every = w->lease / (idle ? 2 : 3);
        int64_t at = w->registered && !w->remote.is_due ? w->renewed_at + every : 0;
        if (failures > 0) /* a renewal that failed is worth more tries than one that held */
            at = lb_clock_mono() + LB_MIN(every / 4, LADE_SECOND);
        if (lb_clock_mono() < at) {
            if (lr_cond_wait(&w->lease_wake, &w->lock, at) || failures == 0)
                continue;
        }
        lr_mutex_unlock(&w->lock);
        lade_err err = {0};
        int rc = lq_lease_renew(w, &err);
        if (rc >= 0)
            lq_worker_tend_retired(w);
        failures = rc < 0 ? failures + 1 : 0;
        if (failures == 1)
            lq_worker_log(w, "cannot renew the leases, trying again: %s", err.text);
        lr_mutex_lock(&w->lock);
    }
    lr_mutex_unlock(&w->lock);
}
