/*
 * drv_stores.c - tables stores and durable: enqueue, work and both at once, payloads of `payload` bytes
 *
 *     enqueue-batch     one thread, `batch` jobs a call          enqueue-single    one thread, one job a call
 *     enqueue-shared    `producers` threads, one job a call      work              drains n jobs: first take to all settled
 *     end-to-end        a producer of batches and a worker at once, until all is settled
 */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "bench/drivers/lade/drv.h"

#define BATCH_MAX     1000
#define PAYLOAD_MAX   4096
#define PRODUCERS_MAX 64

struct range {
    struct drv *d;
    lade *q;
    uint64_t from, to;
    size_t batch;
    uint64_t sum;
    int rc;
    lade_err err;
    pthread_t thread;
};

static int enqueue_range(struct range *r)
{
    int64_t size = drv_int(r->d, "payload", 100);
    char *payload = malloc(r->batch * (PAYLOAD_MAX + 64));
    lade_job_spec *spec = calloc(r->batch, sizeof(*spec));
    r->rc = payload && spec ? 0 : -LADE_ENOMEM;
    for (uint64_t i = r->from; i < r->to && r->rc == 0;) {
        size_t n = LB_MIN((size_t)(r->to - i), r->batch);
        for (size_t k = 0; k < n; k++) {
            char *at = payload + k * (PAYLOAD_MAX + 64);
            size_t len = drv_pad_payload(at, PAYLOAD_MAX + 64, 0, i + k, size);
            spec[k] = (lade_job_spec){.kind = "bench", .payload = {at, len}};
            r->sum += i + k;
        }
        r->rc = n == 1 ? lade_enqueue(r->q, spec, NULL, &r->err)
                       : lade_enqueue_many(r->q, spec, n, NULL, NULL, &r->err);
        i += n;
    }
    free(payload);
    free(spec);
    return r->rc;
}

static void *enqueue_on_thread(void *arg)
{
    (void)enqueue_range(arg);
    return NULL;
}

/* n jobs by `threads` threads, in calls of `batch`. */
static int enqueue_all(struct drv *d, lade *q, uint64_t n, size_t threads, size_t batch)
{
    struct range r[PRODUCERS_MAX];
    size_t started = 0;
    int rc = 0;
    threads = LB_MIN(LB_MAX(threads, (size_t)1), (size_t)PRODUCERS_MAX);
    for (; started < threads; started++) {
        struct range *one = &r[started];
        *one = (struct range){.d = d,
                              .q = q,
                              .from = n * started / threads,
                              .to = n * (started + 1) / threads,
                              .batch = LB_MIN(LB_MAX(batch, (size_t)1), (size_t)BATCH_MAX)};
        if (pthread_create(&one->thread, NULL, enqueue_on_thread, one) != 0)
            break;
    }
    for (size_t i = 0; i < started; i++) {
        (void)pthread_join(r[i].thread, NULL);
        d->result.check += r[i].sum;
        if (r[i].rc != 0)
            rc = drv_fail(d, "enqueue", r[i].rc < 0 ? &r[i].err : NULL);
    }
    return started == threads ? rc : drv_fail(d, "thread", NULL);
}

static int enqueue_only(struct drv *d, size_t threads, size_t batch)
{
    lade *q;
    lade_queue_info info = {0};
    uint64_t n = (uint64_t)drv_int(d, "n", 20000);
    int rc = drv_open(d, &q);
    if (rc < 0)
        return rc;
    drv_begin(d);
    rc = enqueue_all(d, q, n, threads, batch);
    drv_end(d);
    if (rc == 0 && lade_queue_get(q, "default", &info, NULL) < 0)
        rc = drv_fail(d, "count", NULL);
    lade_close(q);
    d->result.n = n;
    d->result.count = info.count[LADE_STATE_READY];
    return rc;
}

static int run_batch(struct drv *d)
{
    return enqueue_only(d, 1, (size_t)drv_int(d, "batch", 100));
}

static int run_single(struct drv *d)
{
    return enqueue_only(d, 1, 1);
}

static int run_shared(struct drv *d)
{
    return enqueue_only(d, (size_t)drv_int(d, "producers", 4), 1);
}

static lade_outcome consume(lade_job *job, void *ctx)
{
    static const char before[] = "{\"ts\":0,\"pad\":\"";
    lade_bytes p = lade_job_payload(job);
    const char *text = p.data;
    uint64_t v = 0;
    if (p.size < sizeof(before) + 12)
        return LADE_DEAD;
    for (size_t i = sizeof(before) - 1; i < sizeof(before) + 11; i++)
        v = v << 4 | (uint64_t)(text[i] <= '9' ? text[i] - '0' : text[i] - 'a' + 10);
    drv_ran(ctx, v);
    return LADE_OK;
}

static int work(struct drv *d, bool beside)
{
    lade *q;
    struct drv_sink s;
    struct drv_worker w = {0};
    uint64_t n = (uint64_t)drv_int(d, "n", 20000);
    size_t batch = (size_t)drv_int(d, "batch", 100);
    int rc = drv_open(d, &q);
    if (rc < 0)
        return rc;
    if (!drv_sink_init(&s, 0, n, false))
        rc = drv_fail(d, "out of memory", NULL);
    if (!beside && rc == 0)
        rc = enqueue_all(d, q, n, 1, batch);
    if (rc == 0)
        rc = drv_worker_open(d, &w, (int)drv_int(d, "concurrency", 64), consume, &s);
    if (!beside)
        drv_begin(d);
    if (rc == 0)
        rc = drv_worker_start(d, &w);
    if (beside)
        drv_begin(d);
    if (beside && rc == 0)
        rc = enqueue_all(d, q, n, 1, batch);
    if (rc == 0 && !drv_sink_wait(&s))
        rc = drv_fail(d, "work", NULL);
    if (rc == 0)
        rc = drv_wait_settled(d, q);
    drv_end(d);
    if (drv_worker_stop(d, &w) < 0)
        rc = -1;
    lade_close(q);
    d->result.n = n;
    d->result.count = s.runs;
    d->result.check = s.sum;
    return rc;
}

static int run_work(struct drv *d)
{
    return work(d, false);
}

static int run_end_to_end(struct drv *d)
{
    return work(d, true);
}

const struct drv_scenario drv_stores[] = {
    {"enqueue-batch", run_batch}, {"enqueue-single", run_single}, {"enqueue-shared", run_shared},
    {"work", run_work},           {"end-to-end", run_end_to_end}, {NULL, NULL}};
