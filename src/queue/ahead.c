#include "queue/ahead.h"

#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"

/* A job in memory of its own, which lq_job_let_go frees; its bytes are the haul's. */
struct one {
    struct lade_job job;
    struct lq_leased leased;
};

static const struct lq_route *route_of(const struct lq_slot *slot, struct lb_slice kind)
{
    if (slot->route && lb_slice_eq(kind, lb_slice_str(slot->route->kind)))
        return slot->route;
    const struct lq_route *r = lb_map_get(&slot->worker->routes, kind);
    return r ? r : slot->worker->catch_all;
}

/* Whether the job may go on, as far as its slot can tell. */
static bool may_go_on(const struct lq_slot *slot, const struct lade_job *job)
{
    const struct lade_worker *w = slot->worker;
    const struct lq_settle *s = &job->settle;
    if (w->strict_steps || s->to != LQ_TO_COMPLETED || s->history.p || job->effects)
        return false;
    if (s->result.n > LQ_GOES_ON_RESULT || (s->result.n > 0 && s->result_ttl_ms > 0))
        return false;
    if (slot->now - job->ahead_since >= LQ_AHEAD_TIME ||
        slot->now >= atomic_load(&w->lease_until) || lade_job_cancelled(job))
        return false;
    const struct lq_route *r = route_of(slot, lq_body_kind(lb_slice_of(job->follow->body)));
    if (!r)
        return false;
    int wary = atomic_load_explicit(&r->wary, memory_order_relaxed);
    if (wary > 0)
        atomic_store_explicit(&((struct lq_route *)r)->wary, wary - 1, memory_order_relaxed);
    return wary == 0;
}

static struct lade_job *make_next(const struct lq_slot *slot, const struct lade_job *job)
{
    struct one *one = lb_malloc(sizeof(*one));
    if (!one)
        return NULL;
    struct lade_job *next = &one->job;
    memset(next, 0, offsetof(struct lade_job, body));
    one->leased = (struct lq_leased){.id = job->follow->id,
                                     .body = job->follow->body,
                                     .history = {job->follow->id.p + job->follow->id.n, 0},
                                     .fence = job->leased->fence,
                                     .lane = job->leased->lane,
                                     .queue = job->leased->queue};
    next->worker = job->worker;
    next->haul = job->haul;
    next->leased = &one->leased;
    next->queue = job->queue;
    next->holders = 3; /* the list, the slot, the job before it */
    next->stage = LQ_STAGE_STARTED;
    next->deadline = LB_FOREVER;
    next->cancel_event.fd = -1;
    next->retry_in = next->snooze_for = next->throttle_for = -1;
    next->own = true;
    next->unassured = true;
    next->number = job->number;
    next->step = job->step + 1;
    next->follow = job->follow + 1;
    next->n_follow = job->n_follow - 1;
    next->ahead_since = job->ahead_since;
    next->started_at = slot->now;
    return next;
}

/* Under the lock. */
static bool is_open(const struct lade_worker *w, const struct lade_job *job)
{
    return w->phase == LQ_PHASE_RUNNING && !w->store_away && !atomic_load(&w->paused) &&
           w->registered && job->place == LQ_PLACE_RUNNING && !job->lost &&
           job->haul->epoch == w->epoch;
}

struct lade_job *lq_ahead_begin(struct lq_slot *slot, uint32_t at, bool *ring)
{
    struct lade_worker *w = slot->worker;
    struct lade_job *job = slot->run[at];
    if (job->n_follow == 0 || !may_go_on(slot, job))
        return NULL;
    struct lade_job *next = make_next(slot, job);
    if (!next)
        return NULL;
    lr_mutex_lock(&w->lock);
    bool open = is_open(w, job);
    if (open) {
        atomic_fetch_add_explicit(&job->haul->live, 1, memory_order_relaxed);
        job->settle.goes_on = true;
        job->after = next;
        atomic_store_explicit(&job->stage, LQ_STAGE_FINISHED, memory_order_release);
        lq_worker_remove(w, job);
        lq_worker_push(w, job, LQ_PLACE_DONE);
        lq_worker_push(w, next, LQ_PLACE_RUNNING);
        slot->run[at] = next;
        *ring = lq_worker_wake_fetch(w);
    }
    lr_mutex_unlock(&w->lock);
    if (!open) {
        lb_free(next);
        return NULL;
    }
    lq_job_drop(job); /* the slot's hold */
    return next;
}

/* It and what came behind it are not ours. Under the lock. */
static void lose(struct lade_worker *w, struct lade_job *job)
{
    while (job) {
        struct lade_job *after = job->after;
        job->lost = true;
        lq_job_cancel(job, LQ_CANCEL_LOST);
        if (job->place == LQ_PLACE_DONE) {
            lq_worker_remove(w, job);
            lq_worker_note_dropped(w, lade_job_id(job));
            w->stats.lost++;
            lq_job_drop(job); /* the list's hold; the one before has another */
        }
        job = after;
    }
}

void lq_ahead_told(struct lade_worker *w, struct lade_job *job, bool went_on)
{
    struct lade_job *next = job->after;
    if (!next)
        return;
    job->after = NULL;
    if (went_on)
        next->unassured = false;
    else
        lose(w, next);
    if (w->n_awaiting > 0)
        lr_cond_wake_all(&w->ahead_wake);
    lq_job_drop(next);
}

/* Its kind is not run ahead for a while. */
static void be_wary(struct lade_job *job)
{
    struct lade_worker *w = job->worker;
    struct lq_route *r =
        job->body.kind ? lb_map_get(&w->routes, lb_slice_str(job->body.kind)) : NULL;
    r = r ? r : w->catch_all;
    if (r)
        atomic_store_explicit(&r->wary, LQ_AHEAD_WARY, memory_order_relaxed);
}

int lq_ahead_await(struct lade_job *job, lade_err *err)
{
    struct lade_worker *w = job->worker;
    if (!job->own && job->n_follow == 0)
        return 0;
    be_wary(job);
    lr_mutex_lock(&w->lock);
    w->n_awaiting++;
    bool ring = job->unassured && lq_worker_wake_fetch(w);
    if (ring) {
        lr_mutex_unlock(&w->lock);
        lq_worker_ring(w);
        lr_mutex_lock(&w->lock);
    }
    while (job->unassured && !lade_job_cancelled(job))
        (void)lr_cond_wait(&w->ahead_wake, &w->lock, LB_FOREVER);
    w->n_awaiting--;
    bool assured = !job->unassured, lost = job->lost;
    lr_mutex_unlock(&w->lock);
    if (lost)
        return LADE_STALE;
    return assured ? 0
                   : lb_fail(err, LADE_EUNAVAILABLE, "job",
                             "the step before %s was not stored before it was told to stop; return "
                             "LADE_RETRY",
                             lade_job_id(job));
}

int lq_ahead_ask(struct lade_job *job)
{
    if (!job->own && job->n_follow == 0)
        return 0;
    be_wary(job);
    if (!job->unassured)
        return 0;
    job->hands_back = true;
    return LADE_STALE;
}
