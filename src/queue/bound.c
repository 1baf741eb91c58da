/* bound.c - bounds of queues: setting them, and what an enqueue does that finds a queue full */
#include "queue/bound.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/err.h"
#include "queue/client.h"
#include "queue/event.h"
#include "queue/names.h"

/* What a ring that was lost costs, or room that was made by somebody who rings nobody. */
#define LOOK_AGAIN (2 * LADE_SECOND)

static int check_call(lade *q, const char *queue, lade_err *err)
{
    LQ_REFUSE_NULL(q, "bound");
    int rc = lq_queue_check(queue, "bound", err);
    if (rc == 0 && !q->store->ops->bounds)
        rc = lb_fail(err, LADE_EUNSUPPORTED, "bound", "the store %s has no bounds of queues",
                     q->store->ops->name);
    return rc;
}

int lade_bound_set(lade *q, const char *queue, const lade_bound *bound, lade_err *err)
{
    LQ_REFUSE_NULL(bound, "bound");
    int rc = check_call(q, queue, err);
    if (rc < 0)
        return rc;
    if (bound->max_jobs < 0 || bound->max_jobs > LADE_BOUND_JOBS_MAX)
        return lb_fail(err, LADE_EINVAL, "bound",
                       "max_jobs is %lld; it must be 1 to %lld, or 0 for none",
                       (long long)bound->max_jobs, (long long)LADE_BOUND_JOBS_MAX);
    if (bound->max_bytes < 0 || bound->max_bytes > LADE_BOUND_BYTES_MAX)
        return lb_fail(err, LADE_EINVAL, "bound",
                       "max_bytes is %lld; it must be 1 to %lld, or 0 for none",
                       (long long)bound->max_bytes, (long long)LADE_BOUND_BYTES_MAX);
    if ((unsigned)bound->on_full > LADE_FULL_BLOCK)
        return lb_fail(err, LADE_EINVAL, "bound", "on_full %d is unknown", (int)bound->on_full);
    struct lq_bound b = {.max_jobs = bound->max_jobs, .max_bytes = bound->max_bytes};
    b.block = lq_bound_is_set(&b) && bound->on_full == LADE_FULL_BLOCK;
    return lq_bound_set(q->store, queue, &b, err);
}

int lade_bound_get(lade *q, const char *queue, lade_bound *out, lade_err *err)
{
    LQ_REFUSE_NULL(out, "bound");
    struct lq_bound b = {0};
    int rc = check_call(q, queue, err);
    if (rc == 0)
        rc = q->store->ops->bounds->get(q->store, queue, &b, err);
    if (rc == 0)
        *out = (lade_bound){.max_jobs = b.max_jobs,
                            .on_full = b.block ? LADE_FULL_BLOCK : LADE_FULL_REJECT,
                            .max_bytes = b.max_bytes,
                            .bytes = b.bytes};
    return rc;
}

/* A queue that a put found full. */
struct full {
    const char *queue;
    int64_t wanted, bytes; /* items of the call for it; duplicates among them need no room */
    struct lq_bound bound;
};

/* The first of them. */
static struct full find_full(const struct lq_put *put, size_t n)
{
    struct full f = {.queue = put[0].queue};
    for (size_t i = n; i-- > 0;) {
        if (put[i].outcome == LADE_FULL)
            f.queue = put[i].queue;
    }
    for (size_t i = 0; i < n; i++) {
        if (strcmp(put[i].queue, f.queue) != 0)
            continue;
        f.wanted++;
        f.bytes += (int64_t)put[i].body.n;
    }
    return f;
}

/* Too much for the bound even when nothing waits. */
static bool never_fits(const struct full *f)
{
    struct lq_bound empty = f->bound;
    empty.bytes = 0;
    return !lq_bound_fits(&empty, 0, f->wanted, f->bytes);
}

/* "at most 5 jobs may wait there (max_jobs)", and of bytes; in words. */
static void tell_bound(const struct full *f, char *out, size_t size)
{
    const struct lq_bound *b = &f->bound;
    char jobs[48] = "", bytes[80] = "";
    if (b->max_jobs > 0)
        (void)snprintf(jobs, sizeof(jobs), "%lld jobs", (long long)b->max_jobs);
    if (b->max_bytes > 0)
        (void)snprintf(bytes, sizeof(bytes), "%lld bytes", (long long)b->max_bytes);
    (void)snprintf(out, size, "at most %s%s%s may wait there (%s)", jobs,
                   *jobs && *bytes ? " and " : "", bytes,
                   *jobs && *bytes ? "max_jobs, max_bytes"
                   : *jobs         ? "max_jobs"
                                   : "max_bytes");
}

/* LADE_FULL, in words. */
static int give_up(const struct full *f, bool waited, struct lq_put *put, size_t n, lade_err *err)
{
    bool never = never_fits(f);
    char bound[200], more[64] = "";
    const char *what = never    ? "enqueue fewer in one call, or raise it"
                       : waited ? "no room came in time; let workers catch up, or raise it"
                                : "let workers catch up and try again, or raise it";
    for (size_t i = 0; i < n; i++) {
        put[i].outcome = LADE_FULL;
        put[i].holder[0] = 0;
    }
    tell_bound(f, bound, sizeof(bound));
    if (f->bound.max_bytes > 0)
        (void)snprintf(more, sizeof(more), " of %lld bytes", (long long)f->bytes);
    (void)lb_fail(err, LADE_ENOSPACE, "enqueue",
                  "queue '%s' is full: %s and %lld more%s do not fit, none was added: %s (lade "
                  "queue limit %s%s)",
                  f->queue, bound, (long long)f->wanted, more, what, f->queue,
                  f->bound.max_bytes == 0  ? " --max-jobs N"
                  : f->bound.max_jobs == 0 ? " --max-bytes SIZE"
                                           : "");
    if (err)
        err->code = LADE_FULL;
    return LADE_FULL;
}

int lq_bound_refuse(lade *q, struct lq_put *put, size_t n, lade_err *err)
{
    struct full f = find_full(put, n);
    int rc = q->store->ops->bounds->get(q->store, f.queue, &f.bound, err);
    return rc < 0 ? rc : give_up(&f, false, put, n, err);
}

int lq_bound_wait(lade *q, struct lq_put *put, size_t n, lade_err *err)
{
    int64_t deadline = lb_deadline_in(q->store->config.timeout_ms * LADE_MILLISECOND);
    int rc = LADE_FULL;
    while (rc == LADE_FULL) {
        struct full f = find_full(put, n);
        bool over = lb_clock_mono() >= deadline;
        rc = q->store->ops->bounds->get(q->store, f.queue, &f.bound, err);
        if (rc < 0)
            return rc;
        bool bounded = rc == 0 && lq_bound_is_set(&f.bound); /* else it was lifted just now */
        if (bounded && (!f.bound.block || over || never_fits(&f)))
            return give_up(&f, over && f.bound.block, put, n, err);
        struct lq_watch room = {.queue = f.queue,
                                .what = LQ_WATCH_ROOM,
                                .after = (uint64_t)f.wanted,
                                .bytes = (uint64_t)f.bytes,
                                .outcome = LADE_EMPTY};
        if (bounded)
            rc = lq_hub_wait(&q->hub, &room, 1, LB_MIN(deadline, lb_deadline_in(LOOK_AGAIN)), NULL,
                             err);
        if (rc < 0)
            return rc;
        rc = lq_batch_put(&q->batch, put, n, NULL, err);
    }
    return rc;
}
