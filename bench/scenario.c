#include "bench/scenario.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"

#define BATCH 100

static double fail_with(struct lb_bench *b, const char *what, const lade_err *err)
{
    (void)snprintf(b->error, sizeof(b->error), "%s: %s", what,
                   err ? err->text : "the work was not all done");
    return -1;
}

/* Job i's payload: its number, then filler; the sum of the numbers is the proof of work. */
static void fill_payload(char *p, size_t n, size_t i)
{
    memset(p, 'x', n);
    char number[24];
    int len = snprintf(number, sizeof(number), "%zu ", i);
    memcpy(p, number, (size_t)len < n ? (size_t)len : n);
}

static uint64_t sum_to(size_t n)
{
    return (uint64_t)n * (n - 1) / 2;
}

struct sink {
    _Atomic uint64_t runs, sum;
};

static lade_outcome consume(lade_job *job, void *ctx)
{
    struct sink *s = ctx;
    lade_bytes p = lade_job_payload(job);
    uint64_t number = 0;
    const char *c = p.data;
    for (size_t i = 0; i < p.size && c[i] >= '0' && c[i] <= '9'; i++)
        number = number * 10 + (uint64_t)(c[i] - '0');
    atomic_fetch_add_explicit(&s->sum, number, memory_order_relaxed);
    atomic_fetch_add_explicit(&s->runs, 1, memory_order_relaxed);
    return LADE_OK;
}

/* Enqueues jobs [from, to) in calls of `batch`. */
static int enqueue_range(lade *q, const struct lb_bench *b, size_t from, size_t to, size_t batch,
                         lade_err *err)
{
    char *payload = malloc(batch * b->payload + 1);
    lade_job_spec *spec = calloc(batch, sizeof(*spec));
    int rc = payload && spec ? 0 : -LADE_ENOMEM;
    for (size_t i = from; i < to && rc >= 0; i += batch) {
        size_t n = to - i < batch ? to - i : batch;
        for (size_t k = 0; k < n; k++) {
            fill_payload(payload + k * b->payload, b->payload, i + k);
            spec[k] =
                (lade_job_spec){.kind = "bench", .payload = {payload + k * b->payload, b->payload}};
        }
        rc = n == 1 ? lade_enqueue(q, spec, NULL, err)
                    : lade_enqueue_many(q, spec, n, NULL, NULL, err);
    }
    free(payload);
    free(spec);
    return rc;
}

static uint64_t count_of(lade *q, enum lade_state state)
{
    lade_queue_info info = {0};
    return lade_queue_get(q, "default", &info, NULL) == 0 ? info.count[state] : 0;
}

static double rate_of(size_t jobs, int64_t began)
{
    return (double)jobs / ((double)(lb_clock_mono() - began) / 1e9);
}

static double enqueue_in_calls_of(struct lb_bench *b, size_t batch)
{
    lade *q;
    lade_err err = {0};
    if (lade_open(&q, b->url, NULL, &err) < 0)
        return fail_with(b, "open", &err);
    uint64_t before = count_of(q, LADE_STATE_READY);
    int64_t began = lb_clock_mono();
    int rc = enqueue_range(q, b, 0, b->jobs, batch, &err);
    double rate = rate_of(b->jobs, began);
    if (rc < 0)
        rate = fail_with(b, "enqueue", &err);
    else if (count_of(q, LADE_STATE_READY) != before + b->jobs)
        rate = fail_with(b, "enqueue", NULL);
    lade_close(q);
    return rate;
}

double lb_enqueue_batch(struct lb_bench *b)
{
    return enqueue_in_calls_of(b, BATCH);
}

double lb_enqueue_single(struct lb_bench *b)
{
    return enqueue_in_calls_of(b, 1);
}

struct producer {
    pthread_t thread;
    lade *q;
    const struct lb_bench *b;
    size_t from, to, batch;
    int rc;
    lade_err err;
};

static void *produce(void *arg)
{
    struct producer *p = arg;
    p->rc = enqueue_range(p->q, p->b, p->from, p->to, p->batch, &p->err);
    return NULL;
}

double lb_enqueue_shared(struct lb_bench *b)
{
    enum { THREADS = 4 };
    struct producer p[THREADS];
    lade *q;
    lade_err err = {0};
    if (lade_open(&q, b->url, NULL, &err) < 0)
        return fail_with(b, "open", &err);
    uint64_t before = count_of(q, LADE_STATE_READY);
    int64_t began = lb_clock_mono();
    for (size_t i = 0; i < THREADS; i++) {
        p[i] = (struct producer){.q = q,
                                 .b = b,
                                 .from = b->jobs * i / THREADS,
                                 .to = b->jobs * (i + 1) / THREADS,
                                 .batch = 1};
        if (pthread_create(&p[i].thread, NULL, produce, &p[i]) != 0)
            abort();
    }
    double rate = 0;
    for (size_t i = 0; i < THREADS; i++) {
        (void)pthread_join(p[i].thread, NULL);
        if (p[i].rc < 0)
            rate = fail_with(b, "enqueue", &p[i].err);
    }
    if (rate == 0)
        rate = rate_of(b->jobs, began);
    if (rate > 0 && count_of(q, LADE_STATE_READY) != before + b->jobs)
        rate = fail_with(b, "enqueue", NULL);
    lade_close(q);
    return rate;
}

/* A worker's life on a thread of its own. */
struct consumer {
    lade *q;
    lade_worker *w;
    struct sink sink;
    int rc;
    lade_err err;
};

static bool open_consumer(struct consumer *c, struct lb_bench *b, bool drain)
{
    *c = (struct consumer){0};
    if (lade_open(&c->q, b->url, NULL, &c->err) < 0)
        return false;
    lade_worker_config config = {.concurrency = b->concurrency, .drain = drain, .no_signals = true};
    return lade_worker_open(&c->w, c->q, &config, &c->err) >= 0 &&
           lade_worker_handle(c->w, "bench", consume, &c->sink) >= 0;
}

static void close_consumer(struct consumer *c)
{
    lade_worker_close(c->w);
    lade_close(c->q);
}

/* The rate, when every job ran exactly once and nothing is left. */
static double judge(struct lb_bench *b, struct consumer *c, size_t jobs, uint64_t sum,
                    int64_t began)
{
    double rate = rate_of(jobs, began);
    lade_queue_info info = {0};
    if (c->rc < 0)
        return fail_with(b, "work", &c->err);
    if (lade_queue_get(c->q, "default", &info, &c->err) != 0)
        return fail_with(b, "count", &c->err);
    if (c->sink.runs != jobs || c->sink.sum != sum ||
        info.count[LADE_STATE_READY] + info.count[LADE_STATE_ACTIVE] > 0)
        return fail_with(b, "work", NULL);
    return rate;
}

double lb_work(struct lb_bench *b)
{
    struct consumer c;
    if (!open_consumer(&c, b, true))
        return fail_with(b, "worker", &c.err);
    size_t jobs = count_of(c.q, LADE_STATE_READY);
    int64_t began = lb_clock_mono();
    c.rc = lade_worker_run(c.w, &c.err);
    double rate = judge(b, &c, jobs, sum_to(b->jobs) * (jobs / b->jobs), began);
    close_consumer(&c);
    return rate;
}

static void *consume_until_stopped(void *arg)
{
    struct consumer *c = arg;
    c->rc = lade_worker_run(c->w, &c->err);
    return NULL;
}

/* Waits until every job has run and its settle has reached the store, or a minute has passed. */
static void wait_until_settled(struct consumer *c, size_t jobs)
{
    int64_t deadline = lb_deadline_in(LADE_MINUTE);
    struct timespec pause = {.tv_nsec = 200000};
    while (atomic_load(&c->sink.runs) < jobs && lb_clock_mono() < deadline)
        (void)nanosleep(&pause, NULL);
    lade_queue_info info = {0};
    while (lb_clock_mono() < deadline && lade_queue_get(c->q, "default", &info, NULL) == 0 &&
           info.count[LADE_STATE_READY] + info.count[LADE_STATE_ACTIVE] > 0)
        (void)nanosleep(&pause, NULL);
}

double lb_end_to_end(struct lb_bench *b)
{
    struct consumer c;
    struct producer p = {.b = b, .to = b->jobs, .batch = BATCH};
    pthread_t worker;
    if (!open_consumer(&c, b, false))
        return fail_with(b, "worker", &c.err);
    if (lade_open(&p.q, b->url, NULL, &p.err) < 0)
        return fail_with(b, "open", &p.err);
    if (pthread_create(&worker, NULL, consume_until_stopped, &c) != 0)
        abort();
    int64_t began = lb_clock_mono();
    (void)produce(&p);
    if (p.rc >= 0)
        wait_until_settled(&c, b->jobs);
    double rate = judge(b, &c, b->jobs, sum_to(b->jobs), began);
    lade_worker_stop(c.w);
    (void)pthread_join(worker, NULL);
    if (p.rc < 0)
        rate = fail_with(b, "enqueue", &p.err);
    close_consumer(&c);
    lade_close(p.q);
    return rate;
}

bool lb_empty(struct lb_bench *b)
{
    lade *q;
    lade_err err = {0};
    if (lade_open(&q, b->url, NULL, &err) < 0)
        return fail_with(b, "open", &err) > 0;
    int rc = 0;
    for (int state = 0; state < LADE_N_STATES && rc >= 0; state++) {
        size_t n = 0;
        rc = LADE_MORE;
        while (state != LADE_STATE_ACTIVE && rc == LADE_MORE)
            rc = lade_queue_purge(q, "default", (enum lade_state)state, 10000, &n, &err);
    }
    lade_close(q);
    return rc >= 0 || fail_with(b, "purge", &err) > 0;
}
