/*
 * op_worker.c - renew, leave, wait, wake, workers
 *
 * A waiter sleeps on one condition for the whole store and looks its worker up anew after each wake-up: the worker may
 * have been reclaimed meanwhile, and its waiter then returns.
 */
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "queue/beat.h"
#include "store/memory/memory_home.h"
#include "store/memory/memory_ops.h"

/* Copies the lanes into one block: the pointers, then the strings. NULL when out of memory. */
static char **copy_lanes(struct lq_lanes lanes)
{
    size_t size = lanes.n * sizeof(char *);
    for (size_t i = 0; i < lanes.n; i++)
        size += strlen(lanes.queue[i]) + 1;
    char **lane = lb_malloc(size + 1);
    char *at = lane ? (char *)(lane + lanes.n) : NULL;
    for (size_t i = 0; lane && i < lanes.n; i++) {
        size_t len = strlen(lanes.queue[i]) + 1;
        lane[i] = memcpy(at, lanes.queue[i], len);
        at += len;
    }
    return lane;
}

static void add_stop(struct lq_stop *stop, const struct ls_memory_job *j)
{
    memcpy(stop->queue, j->queue->name, sizeof(stop->queue));
    memcpy(stop->id, j->id, sizeof(stop->id));
    stop->fence = j->fence;
}

static size_t collect_stops(struct ls_memory_worker *w, struct lq_stop *stop, size_t max)
{
    size_t n = 0;
    for (struct lb_list *it; n < max && (it = lb_list_pop(&w->removed));) {
        struct ls_memory_job *j = LB_CONTAINER_OF(it, struct ls_memory_job, in_owner);
        add_stop(&stop[n++], j);
        ls_memory_job_unmake(j);
    }
    lb_list_each (it, &w->held) {
        struct ls_memory_job *j = LB_CONTAINER_OF(it, struct ls_memory_job, in_owner);
        if (n == max)
            break;
        if (j->mark == LS_MEMORY_UNMARKED || j->told)
            continue;
        j->told = true;
        add_stop(&stop[n++], j);
    }
    return n;
}

static void copy_name(char *to, size_t size, const char *from)
{
    size_t n = from ? strnlen(from, size - 1) : 0;
    if (n > 0)
        memcpy(to, from, n);
    to[n] = 0;
}

static bool shares_lane(const struct ls_memory_worker *w, struct lq_lanes lanes)
{
    bool any = false;
    for (size_t i = 0; i < lanes.n && !any; i++)
        any = ls_memory_worker_serves(w, lanes.queue[i]);
    return any;
}

/* When the next of the others dies, if it does not renew. */
static int64_t find_death(const struct ls_memory_home *h, const struct ls_memory_worker *self,
                          struct lq_lanes lanes, int64_t now)
{
    int64_t next = LB_FOREVER;
    lb_list_each (it, &h->workers_list) {
        const struct ls_memory_worker *w = LB_CONTAINER_OF(it, struct ls_memory_worker, in_home);
        if (w == self || !shares_lane(w, lanes))
            continue;
        if (!ls_memory_worker_is_live(w, now))
            return 0;
        next = LB_MIN(next, w->lease_until_ms + 1 - now);
    }
    return next;
}

static int64_t find_due(struct ls_memory_home *h, struct lq_lanes lanes, int64_t now)
{
    int64_t next = LB_FOREVER;
    for (size_t i = 0; i < lanes.n; i++) {
        const struct ls_memory_queue *q = ls_memory_queue_find(h, lanes.queue[i]);
        int64_t due = q ? ls_memory_queue_next_due(q) : 0;
        if (due != 0)
            next = LB_MIN(next, LB_MAX(due - now, 0));
    }
    return next;
}

/* The worker of the beat, or NULL with its result in *rc. */
static struct ls_memory_worker *register_worker(struct ls_memory_home *h,
                                                const struct lq_beat *beat, int *rc)
{
    struct ls_memory_worker *w = ls_memory_worker_find(h, beat->worker);
    *rc = LADE_STALE;
    if (!beat->first && !(w && w->registered))
        return NULL;
    *rc = -LADE_ENOMEM;
    char **lane = copy_lanes(beat->lanes);
    if (lane && !w)
        w = ls_memory_worker_make(h, beat->worker);
    if (!lane || !w) {
        lb_free(lane);
        return NULL;
    }
    lb_free(w->lane);
    w->lane = lane;
    w->n_lanes = beat->lanes.n;
    return w;
}

int ls_memory_renew(struct lq_store *s, const struct lq_beat *beat, struct lq_stop *stop,
                    size_t max, size_t *n_stop, lade_err *err)
{
    int64_t now;
    int rc;
    struct ls_memory_home *h = ls_memory_enter(s, &now);
    struct ls_memory_worker *w = register_worker(h, beat, &rc);
    if (w) {
        w->registered = true;
        copy_name(w->name, sizeof(w->name), beat->name);
        w->lease_until_ms = now + beat->lease_ms;
        w->started_ms = beat->started_ms;
        w->seen_ms = now;
        w->concurrency = beat->concurrency;
        *n_stop = collect_stops(w, stop, max);
        ls_memory_control_tell(w, beat->report, now);
        if (beat->orders)
            *beat->orders = w->control.orders;
        if (beat->ahead)
            *beat->ahead =
                (struct lq_ahead){find_death(h, w, beat->lanes, now), find_due(h, beat->lanes, now),
                                  false, ls_memory_schedules_any(h)};
        rc = LADE_DONE;
    } else if (rc == LADE_STALE) {
        *n_stop = 0;
    }
    lr_mutex_unlock(&h->lock);
    return rc < 0 ? lb_fail_nomem(err, "renew") : rc;
}

int ls_memory_leave(struct lq_store *s, const char *worker, struct lq_lanes lanes, lade_err *err)
{
    (void)err;
    int64_t now;
    struct ls_memory_home *h = ls_memory_enter(s, &now);
    struct ls_memory_worker *w = ls_memory_worker_find(h, worker);
    bool was_called = w && w->woken;
    if (w)
        ls_memory_worker_void(h, w);
    /* What it was woken for and did not take is another's. */
    for (size_t i = 0; was_called && i < lanes.n; i++) {
        const struct ls_memory_queue *q = ls_memory_queue_find(h, lanes.queue[i]);
        if (q && q->order[LADE_STATE_READY].n > 0)
            ls_memory_queue_wake(h, q, 1);
    }
    lr_mutex_unlock(&h->lock);
    return LADE_DONE;
}

/* One that watches, with the lock held. */
static int wait_watching(struct ls_memory_home *h, const char *name, int64_t deadline)
{
    struct ls_memory_watcher *w;
    bool in_time = true;
    while ((w = ls_memory_watcher_find(h, name)) && !w->woken && in_time)
        in_time = lr_cond_wait(&h->woken, &h->lock, deadline);
    if (w && !w->woken)
        return LADE_EMPTY;
    if (w)
        w->woken = false;
    return LADE_DONE;
}

int ls_memory_wait(struct lq_store *s, const char *worker, struct lq_lanes lanes, int64_t deadline,
                   lade_err *err)
{
    (void)lanes;
    (void)err;
    struct ls_memory_home *h = ls_memory_home_of(s);
    struct ls_memory_worker *w;
    bool in_time = true;
    lr_mutex_lock(&h->lock);
    if (ls_memory_watcher_find(h, worker)) {
        int rc = wait_watching(h, worker, deadline);
        lr_mutex_unlock(&h->lock);
        return rc;
    }
    while ((w = ls_memory_worker_find(h, worker)) && w->registered && !w->woken && in_time)
        in_time = lr_cond_wait(&h->woken, &h->lock, deadline);
    bool woken = !w || !w->registered || w->woken;
    if (w)
        w->woken = w->idle = false;
    lr_mutex_unlock(&h->lock);
    return woken ? LADE_DONE : LADE_EMPTY;
}

void ls_memory_wake(struct lq_store *s, const char *worker)
{
    struct ls_memory_home *h = ls_memory_home_of(s);
    lr_mutex_lock(&h->lock);
    struct ls_memory_worker *w = ls_memory_worker_find(h, worker);
    struct ls_memory_watcher *watcher = ls_memory_watcher_find(h, worker);
    if (w)
        w->woken = true;
    if (watcher)
        watcher->woken = true;
    if (w || watcher)
        lr_cond_wake_all(&h->woken);
    lr_mutex_unlock(&h->lock);
}

static void describe(const struct ls_memory_worker *w, lade_worker_info *out)
{
    *out = (lade_worker_info){
        .concurrency = w->concurrency,
        .started_at = w->started_ms * LADE_MILLISECOND,
        .seen_at = w->seen_ms * LADE_MILLISECOND,
        .lease_until = w->lease_until_ms * LADE_MILLISECOND,
        .n_active = w->n_held,
    };
    memcpy(out->id, w->id, sizeof(out->id));
    memcpy(out->name, w->name, sizeof(out->name));
    size_t at = 0;
    for (size_t i = 0; i < w->n_lanes && at < sizeof(out->queues) - 1; i++) {
        int len =
            snprintf(out->queues + at, sizeof(out->queues) - at, "%s%s", i ? "," : "", w->lane[i]);
        at += len > 0 ? (size_t)len : 0;
    }
}

int ls_memory_workers(struct lq_store *s, struct lb_arena *arena, lade_worker_info **out, size_t *n,
                      lade_err *err)
{
    int64_t now;
    struct ls_memory_home *h = ls_memory_enter(s, &now);
    lade_worker_info *info = lb_arena_alloc(arena, (h->workers.n + 1) * sizeof(*info));
    size_t live = 0;
    lb_list_each (it, &h->workers_list) {
        const struct ls_memory_worker *w = LB_CONTAINER_OF(it, struct ls_memory_worker, in_home);
        if (info && ls_memory_worker_is_live(w, now))
            describe(w, &info[live++]);
    }
    lr_mutex_unlock(&h->lock);
    if (!info)
        return lb_fail_nomem(err, "workers");
    *out = info;
    *n = live;
    return LADE_DONE;
}
