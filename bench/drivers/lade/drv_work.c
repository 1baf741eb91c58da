/* drv_work.c - handlers' tally, a worker on a thread, and the end of the window */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "base/clock.h"
#include "bench/drivers/lade/drv.h"

#define RUN_SECONDS 600 /* the runner's deadline is shorter */
#define POLL_NS     200000
#define QUEUES_MAX  64

bool drv_sink_init(struct drv_sink *s, uint64_t mark, uint64_t want, bool latency)
{
    *s = (struct drv_sink){.mark = mark, .want = want};
    s->hdr = latency ? lb_hdr_make() : NULL;
    return sem_init(&s->done, 0, 0) == 0 && (!latency || s->hdr);
}

void drv_ran(struct drv_sink *s, uint64_t number)
{
    atomic_fetch_add_explicit(&s->sum, number, memory_order_relaxed);
    uint64_t runs = atomic_fetch_add_explicit(&s->runs, 1, memory_order_relaxed) + 1;
    if (runs == s->mark)
        s->marked_at = lb_clock_mono();
    if (runs == s->want) {
        s->ended_at = lb_clock_mono();
        (void)sem_post(&s->done);
    }
}

bool drv_sink_wait(struct drv_sink *s)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += RUN_SECONDS;
    int rc = -1;
    while ((rc = sem_timedwait(&s->done, &until)) != 0 && errno == EINTR)
        ;
    return rc == 0;
}

int drv_open(struct drv *d, lade **q)
{
    lade_err err;
    lade_options opts = {.timeout = LADE_MINUTE};
    int64_t keep = drv_int(d, "keep", 0);
    if (keep > 0)
        opts.keep_dead.count = opts.keep_completed.count = keep;
    if (lade_open(q, d->url, &opts, &err) < 0)
        return drv_fail(d, "open", &err);
    uint32_t cap = (uint32_t)drv_int(d, "events", 0); /* of the queue's stream */
    if (cap > 0 && lade_queue_events_set(*q, "default", cap, &err) < 0)
        return drv_fail(d, "events", &err);
    return 0;
}

static void *run_worker(void *arg)
{
    struct drv_worker *w = arg;
    w->rc = lade_worker_run(w->w, &w->err);
    return NULL;
}

/* Registered means that it takes. */
static bool wait_until_known(struct drv_worker *w)
{
    int64_t deadline = lb_deadline_in(LADE_MINUTE);
    size_t n = 0;
    while (n == 0 && lb_clock_mono() < deadline) {
        lade_worker_info *list = NULL;
        if (lade_worker_list(w->q, &list, &n, NULL) < 0)
            return false;
        lade_free(list);
        drv_nap_until(lb_deadline_in(POLL_NS));
    }
    return n > 0;
}

int drv_worker_open(struct drv *d, struct drv_worker *w, int concurrency, lade_handler fn,
                    void *ctx)
{
    lade_worker_config config = {.concurrency = concurrency, .no_signals = true};
    lade_worker_queue queue[QUEUES_MAX] = {{.name = "default"}};
    char name[QUEUES_MAX][32];
    config.queues = queue;
    config.n_queues = (size_t)LB_MIN(LB_MAX(drv_int(d, "serves", 1), 1), QUEUES_MAX);
    for (size_t i = 1; i < config.n_queues; i++) {
        (void)snprintf(name[i], sizeof(name[i]), "other%zu", i);
        queue[i].name = name[i];
    }
    if (strcmp(drv_text(d, "executor", "task"), "thread") == 0)
        config.executor = LADE_EXECUTOR_THREAD;
    *w = (struct drv_worker){0};
    if (drv_open(d, &w->q) < 0)
        return -1;
    if (lade_worker_open(&w->w, w->q, &config, &w->err) < 0 ||
        lade_worker_handle(w->w, "*", fn, ctx) < 0)
        return drv_fail(d, "worker", &w->err);
    return 0;
}

int drv_worker_start(struct drv *d, struct drv_worker *w)
{
    if (pthread_create(&w->thread, NULL, run_worker, w) != 0)
        return drv_fail(d, "thread", NULL);
    w->is_running = true;
    return wait_until_known(w) ? 0 : drv_fail(d, "the worker did not start", NULL);
}

int drv_worker_stop(struct drv *d, struct drv_worker *w)
{
    int rc = 0;
    if (w->is_running) {
        lade_worker_stop(w->w);
        (void)pthread_join(w->thread, NULL);
        rc = w->rc < 0 ? drv_fail(d, "worker", &w->err) : 0;
    }
    lade_worker_close(w->w);
    lade_close(w->q);
    *w = (struct drv_worker){0};
    return rc;
}

int drv_wait_settled(struct drv *d, lade *q)
{
    int64_t deadline = lb_deadline_in(LADE_MINUTE);
    for (;;) {
        lade_queue_info i = {0};
        lade_err err;
        if (lade_queue_get(q, "default", &i, &err) < 0)
            return drv_fail(d, "count", &err);
        if (i.count[LADE_STATE_READY] + i.count[LADE_STATE_ACTIVE] + i.count[LADE_STATE_SCHEDULED] +
                i.count[LADE_STATE_RETRYING] ==
            0)
            return 0;
        if (lb_clock_mono() > deadline)
            return drv_fail(d, "settle", NULL);
        drv_nap_until(lb_deadline_in(POLL_NS));
    }
}
