/*
 * sweep.c - one thread that does what somebody must: takes over from dead workers, promotes due jobs, trims old ones
 *
 * Every live worker does all of it for its own queues, each step atomic in the store, so that no leader is needed and a
 * killed worker's jobs come back within lease + sweep. A duty that fails is logged and done again in the next round; none
 * can stop the others or the thread (C-006, C-012, C-068).
 *
 * Nothing is asked for without cause. Each renewal says when the lease of another worker ends unless renewed, and when the next job is
 * due: only then there can be something to do. What a waiting worker knows to be due its own take promotes in time; this thread
 * comes `sweep` later, for paused queues and for workers whose slots are all busy, so that counts are right. Old jobs are trimmed
 * while there is work, and rarely after.
 */
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "queue/said.h"
#include "queue/worker.h"

#define RECLAIM_MAX 100  /* leases a step */
#define PROMOTE_MAX 1000 /* jobs a step */
#define STEPS_MAX   100  /* steps a round, so that one duty cannot starve the next */
#define TRIM_EVERY  (10 * LADE_SECOND)
#define IDLE_EVERY  (5 * LADE_MINUTE) /* while there is no work: jobs still grow old */

struct sweep {
    struct lade_worker *w;
    int64_t reclaimed_at, promoted_at, trimmed_at; /* monotonic */
    uint64_t n_taken;                              /* of the worker, at the last round */
    bool active;                                   /* it had work since the one before */
    bool complained[3]; /* by duty: one line when it starts to fail, one when it works again */
};

enum duty { DUTY_RECLAIM = 0, DUTY_PROMOTE = 1, DUTY_TRIM = 2 };

static const char *const duty_names[] = {"taking over from dead workers", "promoting due jobs",
                                         "trimming old jobs"};

static void complain(struct sweep *s, enum duty duty, int rc, const lade_err *err)
{
    bool failed = rc < 0;
    if (failed && !s->complained[duty])
        lq_worker_log(s->w, "%s fails, trying again: %s", duty_names[duty], err->text);
    if (!failed && s->complained[duty])
        lq_worker_log(s->w, "%s works again", duty_names[duty]);
    s->complained[duty] = failed;
}

/*
 * Settles what was reclaimed. It must succeed or the jobs stay leased to us, so it is repeated until the store answers or
 * the worker ends; then they are anybody's after our own lease.
 */
static int settle_reclaimed(struct sweep *s, struct lq_settle *settle, size_t n)
{
    struct lade_worker *w = s->w;
    for (;;) {
        lade_err err = {0};
        int rc = lq_settle_take(w->q->store, settle, n, NULL, NULL, &err);
        complain(s, DUTY_RECLAIM, rc, &err);
        if (rc >= 0)
            return rc;
        lr_mutex_lock(&w->lock);
        bool ended = w->phase == LQ_PHASE_ENDED ||
                     lr_cond_wait(&w->sweep_wake, &w->lock, lb_deadline_in(w->sweep));
        ended = ended && w->phase == LQ_PHASE_ENDED;
        lr_mutex_unlock(&w->lock);
        if (ended)
            return rc;
    }
}

static void count_recovered(struct sweep *s, const struct lq_settle *settle,
                            const struct lq_recovery *recovery, size_t n)
{
    struct lade_worker *w = s->w;
    uint64_t dead = 0;
    for (size_t i = 0; i < n; i++) {
        if (!recovery[i].quarantined || settle[i].outcome != 0)
            continue;
        dead++;
        lq_worker_log(w, "job %.*s in %s: quarantined, it was held by %d workers that died",
                      (int)settle[i].id.n, (const char *)settle[i].id.p, settle[i].queue,
                      w->max_crashes);
        lq_death_tell(w, &settle[i], recovery[i].body.kind ? &recovery[i].body : NULL,
                      (struct lb_slice){0});
    }
    lr_mutex_lock(&w->lock);
    w->stats.recovered += n;
    w->stats.quarantined += dead;
    lr_mutex_unlock(&w->lock);
}

/* Decides for each reclaimed job and settles them together. */
static int recover(struct sweep *s, const struct lq_leased_vec *vec)
{
    struct lade_worker *w = s->w;
    struct lq_settle settle[RECLAIM_MAX];
    struct lq_recovery recovery[RECLAIM_MAX];
    size_t n = LB_MIN(vec->n, RECLAIM_MAX);
    int64_t now_ms = lq_client_now_ms(w->q);
    for (size_t i = 0; i < n; i++) {
        const struct lq_leased *job =
            &vec->job[n - 1 - i]; /* the last first: each goes to the head of its level */
        lb_buf_init(&recovery[i].history);
        const char *queue = lq_leased_queue(job, (const char *const *)w->queue);
        lq_outcome_recover(w, job, queue, now_ms, &recovery[i], &settle[i]);
    }
    int rc = settle_reclaimed(s, settle, n);
    if (rc >= 0)
        count_recovered(s, settle, recovery, n);
    for (size_t i = 0; i < n; i++)
        lb_buf_fini(&recovery[i].history);
    if (rc >= 0 && n > 0)
        lq_worker_log(w, "took over %zu jobs of workers that died or stopped renewing", n);
    return rc;
}

/* It failed: once more after the usual time, whatever the next renewal says. */
static void reclaim_again(struct lade_worker *w)
{
    lr_mutex_lock(&w->lock);
    w->reclaim_at = 0;
    lr_mutex_unlock(&w->lock);
}

static void reclaim(struct sweep *s)
{
    struct lade_worker *w = s->w;
    char incarnation[sizeof(w->incarnation)];
    for (int step = 0; step < STEPS_MAX; step++) {
        lr_mutex_lock(&w->lock);
        bool able = w->registered && w->phase < LQ_PHASE_STOPPING;
        (void)snprintf(incarnation, sizeof(incarnation), "%s", w->incarnation);
        lr_mutex_unlock(&w->lock);
        if (!able)
            return;
        struct lq_leased_vec vec = {0};
        lb_arena_init(&vec.arena);
        struct lq_take take = {incarnation, lq_worker_lanes(w), RECLAIM_MAX, false, false};
        lade_err err = {0};
        int rc = lq_reclaim(w->q->store, &take, &vec, &err);
        complain(s, DUTY_RECLAIM, rc, &err);
        if (rc == 0 && vec.n > 0)
            rc = recover(s, &vec);
        lb_arena_fini(&vec.arena);
        if (rc < 0)
            reclaim_again(w);
        if (rc != 0)
            return;
    }
}

static void promote_again(struct lade_worker *w)
{
    lr_mutex_lock(&w->lock);
    w->promote_at = 0;
    lr_mutex_unlock(&w->lock);
}

static void promote(struct sweep *s)
{
    struct lade_worker *w = s->w;
    for (int step = 0; step < STEPS_MAX; step++) {
        size_t n = 0;
        int64_t next = 0;
        lade_err err = {0};
        int rc = lq_promote(w->q->store, lq_worker_lanes(w), PROMOTE_MAX, &n, &next, &err);
        complain(s, DUTY_PROMOTE, rc, &err);
        if (rc < 0)
            promote_again(w);
        if (rc < 0 || n < PROMOTE_MAX)
            return;
    }
}

static void trim(struct sweep *s)
{
    struct lade_worker *w = s->w;
    for (int step = 0; step < STEPS_MAX; step++) {
        size_t n = 0;
        lade_err err = {0};
        int rc = lq_trim(w->q->store, lq_worker_lanes(w), PROMOTE_MAX, &n, &err);
        complain(s, DUTY_TRIM, rc, &err);
        if (rc != LADE_MORE)
            return;
    }
}

/* Each duty may wait for a store that is away; a worker that stops must not wait for all of them. */
static bool is_stopping(struct lade_worker *w)
{
    lr_mutex_lock(&w->lock);
    bool stopping = w->phase >= LQ_PHASE_STOPPING;
    lr_mutex_unlock(&w->lock);
    return stopping;
}

/* When something has been due for a while. Under the lock. */
static int64_t promote_at(const struct sweep *s)
{
    const struct lade_worker *w = s->w;
    int64_t due = w->promote_at == LB_FOREVER ? LB_FOREVER : w->promote_at + w->sweep;
    int64_t least = s->promoted_at + w->sweep;
    return s->active ? least : LB_MAX(due, least);
}

static int64_t trim_at(const struct sweep *s)
{
    return s->trimmed_at + (s->active ? LB_MAX(s->w->sweep, TRIM_EVERY) : IDLE_EVERY);
}

/* When somebody may be dead, but not more often than once in `sweep`. Under the lock. */
static int64_t reclaim_at(const struct sweep *s)
{
    return LB_MAX(s->w->reclaim_at, s->reclaimed_at + s->w->sweep);
}

/* Sleeps until something is to be done. False when the worker has ended. */
static bool sleep_until_duty(struct sweep *s)
{
    struct lade_worker *w = s->w;
    lr_mutex_lock(&w->lock);
    for (;;) {
        if (s->n_taken != w->n_taken || w->n_running > 0)
            s->active = true;
        s->n_taken = w->n_taken;
        w->sweep_at = LB_MIN(w->said_at, LB_MIN(reclaim_at(s), LB_MIN(promote_at(s), trim_at(s))));
        if (w->phase == LQ_PHASE_ENDED || lb_clock_mono() >= w->sweep_at)
            break;
        w->sweep_idle = !s->active;
        (void)lr_cond_wait(&w->sweep_wake, &w->lock, w->sweep_at);
        w->sweep_idle = false;
    }
    w->sweep_at = 0;
    bool ended = w->phase == LQ_PHASE_ENDED;
    lr_mutex_unlock(&w->lock);
    return !ended;
}

/* What is due now; it will not be again until a renewal says so. */
struct duties {
    bool reclaim, promote, trim, said;
};

static struct duties find_duties(struct sweep *s, int64_t now)
{
    struct lade_worker *w = s->w;
    lr_mutex_lock(&w->lock);
    struct duties d = {reclaim_at(s) <= now, promote_at(s) <= now, trim_at(s) <= now,
                       w->said_at <= now};
    if (d.reclaim)
        w->reclaim_at = LB_FOREVER;
    if (d.promote)
        w->promote_at = LB_FOREVER;
    lr_mutex_unlock(&w->lock);
    return d;
}

void lq_sweep_run(void *worker)
{
    int64_t began = lb_clock_mono();
    struct lade_worker *w = worker;
    struct sweep s = {
        .w = worker, .reclaimed_at = began - w->sweep, .promoted_at = began, .trimmed_at = began};
    while (sleep_until_duty(&s)) {
        int64_t now = lb_clock_mono();
        struct duties d = find_duties(&s, now);
        if (d.said)
            lq_said_flush(w, now);
        if (d.reclaim) {
            reclaim(&s);
            s.reclaimed_at = now;
        }
        if (d.promote && !is_stopping(w)) {
            promote(&s);
            s.promoted_at = now;
            s.active = false;
        }
        if (d.trim && !is_stopping(w)) {
            trim(&s);
            s.trimmed_at = now;
        }
    }
}
