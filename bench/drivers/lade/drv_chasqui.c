/*
 * drv_chasqui.c - table chasqui: adds one by one and in bulk, workers that drain, delay, retry, store and wait
 *
 *     worker-keyed    worker-concurrent in table stores: each job has one of `keys` keys (0: none), one after the other or, with `random`, drawn; added
 *                     in calls of `bulk`. extra.add_rate: of adding them
 *
 * Costs of worker scenarios are metered from the worker's start to the end and the window's part of it is reported, since the
 * window begins in the middle of a handler.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "bench/drivers/lade/drv.h"
#include "bench/drivers/lade/drv_sample.h"

#define BULK_MAX 1000
#define KEY_SIZE 24

struct adder {
    lade *q;
    struct drv_sample sample;
    lade_job_spec form; /* what all jobs have but the payload */
    char *payloads;     /* of one bulk */
    uint64_t n_keys;    /* 0 = jobs have none */
    bool draws_keys;
    char (*keys)[KEY_SIZE]; /* all, made before the clock runs; the last byte is the length */
    lade_job_spec *spec;
    size_t bulk;
    uint64_t acked_sum;
};

static int open_adder(struct drv *d, struct adder *a, size_t bulk)
{
    *a = (struct adder){.bulk = LB_MIN(LB_MAX(bulk, (size_t)1), (size_t)BULK_MAX)};
    a->form = (lade_job_spec){.kind = "test"};
    if (!drv_sample_make(d, &a->sample))
        return drv_fail(d, "the payload is too large", NULL);
    a->payloads = malloc(a->bulk * a->sample.size);
    a->spec = calloc(a->bulk, sizeof(*a->spec));
    if (!a->payloads || !a->spec)
        return drv_fail(d, "out of memory", NULL);
    for (size_t i = 0; i < a->bulk; i++)
        memcpy(a->payloads + i * a->sample.size, a->sample.text, a->sample.size);
    return drv_open(d, &a->q);
}

static void close_adder(struct adder *a)
{
    lade_close(a->q);
    free(a->payloads);
    free(a->keys);
    free(a->spec);
}

static int make_keys(struct drv *d, struct adder *a)
{
    a->n_keys = (uint64_t)LB_MAX(drv_int(d, "keys", 0), 0);
    a->draws_keys = drv_int(d, "random", 0) != 0;
    a->keys = calloc(a->n_keys + 1, sizeof(*a->keys));
    if (!a->keys)
        return drv_fail(d, "out of memory", NULL);
    for (uint64_t i = 0; i < a->n_keys; i++)
        a->keys[i][KEY_SIZE - 1] =
            (char)snprintf(a->keys[i], KEY_SIZE - 1, "account-%" PRIu32, (uint32_t)i);
    return 0;
}

/* The key of job i: the same in each run (splitmix64). */
static lade_bytes key_of(const struct adder *a, uint64_t i)
{
    if (a->draws_keys) {
        i = (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
        i = (i ^ (i >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        i = (i ^ (i >> 27)) * UINT64_C(0x94d049bb133111eb);
        i ^= i >> 31;
    }
    const char *key = a->keys[i % a->n_keys];
    return (lade_bytes){key, (size_t)key[KEY_SIZE - 1]};
}

/* Adds jobs [from, to) in calls of `bulk`. */
static int add(struct drv *d, struct adder *a, uint64_t from, uint64_t to)
{
    for (uint64_t i = from; i < to;) {
        size_t n = LB_MIN((size_t)(to - i), a->bulk);
        lade_err err;
        for (size_t k = 0; k < n; k++) {
            char *payload = a->payloads + k * a->sample.size;
            drv_sample_number(payload, i + k);
            a->spec[k] = a->form;
            a->spec[k].payload = (lade_bytes){payload, a->sample.size};
            if (a->n_keys > 0)
                a->spec[k].key = key_of(a, i + k);
            a->acked_sum += i + k;
        }
        int rc = n == 1 ? lade_enqueue(a->q, a->spec, NULL, &err)
                        : lade_enqueue_many(a->q, a->spec, n, NULL, NULL, &err);
        if (rc != 0)
            return drv_fail(d, "add", rc < 0 ? &err : NULL);
        i += n;
    }
    return 0;
}

static int add_and_time(struct drv *d, size_t bulk, int64_t delay_ms)
{
    struct adder a;
    lade_queue_info info = {0};
    uint64_t warmup = (uint64_t)drv_int(d, "warmup", 1000);
    uint64_t bench = (uint64_t)drv_int(d, "bench", 1000);
    int rc = open_adder(d, &a, bulk);
    a.form.in = delay_ms * LADE_MILLISECOND;
    if (rc == 0)
        rc = add(d, &a, 0, warmup);
    drv_begin(d);
    if (rc == 0)
        rc = add(d, &a, warmup, warmup + bench);
    drv_end(d);
    if (rc == 0 && lade_queue_get(a.q, "default", &info, NULL) < 0)
        rc = drv_fail(d, "count", NULL);
    d->result.n = bench;
    d->result.printed_rate = (double)(warmup + bench) / d->result.seconds;
    d->result.count = info.count[delay_ms ? LADE_STATE_SCHEDULED : LADE_STATE_READY];
    d->result.check = a.acked_sum;
    close_adder(&a);
    return rc;
}

static int run_add(struct drv *d)
{
    return add_and_time(d, 1, 0);
}

static int run_add_bulk(struct drv *d)
{
    return add_and_time(d, (size_t)drv_int(d, "bulk", 50), 0);
}

static int run_add_delayed(struct drv *d)
{
    return add_and_time(d, 1, drv_int(d, "delay_ms", 3600000));
}

struct handling {
    struct drv_sink sink;
    _Atomic uint64_t failed;
    size_t result_bytes;
    char result[4096];
    /* worker-latency */
    int64_t *due, *called; /* by number */
    struct lb_hdr *by_call;
    uint64_t warmup;
};

static lade_outcome count_job(lade_job *job, void *ctx)
{
    struct handling *h = ctx;
    drv_ran(&h->sink, drv_sample_read(lade_job_payload(job)));
    return LADE_OK;
}

static lade_outcome count_and_store(lade_job *job, void *ctx)
{
    struct handling *h = ctx;
    if (lade_job_result(job, (lade_bytes){h->result, h->result_bytes}) < 0)
        return LADE_DEAD;
    return count_job(job, ctx);
}

static lade_outcome fail_once(lade_job *job, void *ctx)
{
    struct handling *h = ctx;
    if (lade_job_attempt(job) == 1) {
        atomic_fetch_add_explicit(&h->failed, 1, memory_order_relaxed);
        return LADE_RETRY;
    }
    return count_job(job, ctx);
}

/* From a worker's start to settled, over jobs that are there already. */
static int drain(struct drv *d, struct handling *h, lade_handler fn)
{
    uint64_t warmup = (uint64_t)drv_int(d, "warmup", 1000);
    uint64_t bench = (uint64_t)drv_int(d, "bench", 1000);
    struct drv_worker w = {0};
    int rc = drv_worker_open(d, &w, (int)drv_int(d, "concurrency", 1), fn, h);
    drv_begin(d);
    if (rc == 0)
        rc = drv_worker_start(d, &w);
    if (rc == 0 && !drv_sink_wait(&h->sink))
        rc = drv_fail(d, "work", NULL);
    if (rc == 0)
        rc = drv_wait_settled(d, w.q);
    drv_end(d);
    if (drv_worker_stop(d, &w) < 0)
        rc = -1;
    double ticks = (double)(h->sink.ended_at - h->sink.marked_at) / 1e9;
    d->part = (double)bench / (double)(warmup + bench);
    d->result.n = bench;
    d->result.seconds = (double)(d->end.at - h->sink.marked_at) / 1e9;
    d->result.printed_rate = (double)(warmup + bench) / ticks;
    d->result.count = h->sink.runs;
    d->result.check = h->sink.sum;
    drv_extra(d, "handled_rate", (double)bench / ticks);
    return rc;
}

/* Adds all the jobs, waits `pause_ms`, drains them with `fn`. */
static int preload_and_drain(struct drv *d, const lade_job_spec *form, size_t bulk, lade_handler fn,
                             int64_t pause_ms)
{
    struct adder a;
    struct handling h = {.result_bytes = (size_t)drv_int(d, "result_bytes", 64)};
    uint64_t warmup = (uint64_t)drv_int(d, "warmup", 1000);
    uint64_t all = warmup + (uint64_t)drv_int(d, "bench", 1000);
    h.result_bytes = LB_MIN(h.result_bytes, sizeof(h.result));
    memset(h.result, 'r', sizeof(h.result));
    int rc = open_adder(d, &a, bulk);
    a.form = *form;
    lade_err err = {0};
    uint32_t events = (uint32_t)drv_int(d, "events", 0); /* how many its stream keeps; 0 = off */
    if (rc == 0 && events > 0 && lade_queue_events_set(a.q, "default", events, &err) < 0)
        rc = drv_fail(d, "events", &err);
    if (rc == 0 && !drv_sink_init(&h.sink, warmup, all, false))
        rc = drv_fail(d, "out of memory", NULL);
    if (rc == 0)
        rc = make_keys(d, &a);
    drv_begin(d);
    if (rc == 0)
        rc = add(d, &a, 0, all);
    drv_end(d);
    drv_extra(d, "add_rate", (double)all / d->result.seconds);
    drv_nap_until(lb_deadline_in(pause_ms * LADE_MILLISECOND));
    if (rc == 0)
        rc = drain(d, &h, fn);
    if (fn == fail_once)
        (void)json_object_set_new(d->result.extra, "failed", json_integer((json_int_t)h.failed));
    close_adder(&a);
    return rc;
}

static int run_worker(struct drv *d)
{
    return preload_and_drain(d, &(lade_job_spec){.kind = "test"}, 100, count_job, 0);
}

static int run_keyed(struct drv *d)
{
    return preload_and_drain(d, &(lade_job_spec){.kind = "test"}, (size_t)drv_int(d, "bulk", 100),
                             count_job, 0);
}

static int run_delayed(struct drv *d)
{
    lade_job_spec form = {.kind = "test", .in = drv_int(d, "delay_ms", 1) * LADE_MILLISECOND};
    return preload_and_drain(d, &form, 500, count_job, 5);
}

static int run_retry(struct drv *d)
{
    int64_t base = drv_int(d, "backoff_ms", 1) * LADE_MILLISECOND;
    lade_job_spec form = {.kind = "test",
                          .max_attempts = (int)drv_int(d, "attempts", 5),
                          .backoff = {LADE_BACKOFF_EXPONENTIAL, base, 5 * base, 0}};
    return preload_and_drain(d, &form, 100, fail_once, 0);
}

static int run_store(struct drv *d)
{
    return preload_and_drain(d, &(lade_job_spec){.kind = "test"}, 100, count_and_store, 0);
}

static lade_outcome take_latency(lade_job *job, void *ctx)
{
    struct handling *h = ctx;
    int64_t now = lb_clock_mono();
    uint64_t i = drv_sample_read(lade_job_payload(job));
    if (i >= h->sink.want)
        return LADE_DEAD;
    if (i >= h->warmup) {
        lb_hdr_add(h->sink.hdr, now - h->due[i]);
        lb_hdr_add(h->by_call, now - h->called[i]);
    }
    drv_ran(&h->sink, i);
    return LADE_OK;
}

/* One job each period, by the clock: a call that takes longer makes the next ones late, and they count from their due time. */
static int add_open_loop(struct drv *d, struct adder *a, struct handling *h, uint64_t all)
{
    int64_t every = drv_int(d, "every_us", 1000) * 1000;
    int64_t began = lb_clock_mono() + every;
    int rc = 0;
    for (uint64_t i = 0; i < all && rc == 0; i++) {
        h->due[i] = began + (int64_t)i * every;
        drv_nap_until(h->due[i]);
        if (i == h->warmup)
            drv_begin(d);
        h->called[i] = lb_clock_mono();
        rc = add(d, a, i, i + 1);
    }
    return rc;
}

static int run_latency(struct drv *d)
{
    struct adder a;
    struct handling h = {.warmup = (uint64_t)drv_int(d, "warmup", 500)};
    struct drv_worker w = {0};
    uint64_t bench = (uint64_t)drv_int(d, "bench", 10000);
    uint64_t all = h.warmup + bench;
    h.due = calloc(all, sizeof(*h.due));
    h.called = calloc(all, sizeof(*h.called));
    h.by_call = lb_hdr_make();
    int rc = open_adder(d, &a, 1);
    if (!h.due || !h.called || !h.by_call || !drv_sink_init(&h.sink, h.warmup, all, true))
        rc = drv_fail(d, "out of memory", NULL);
    if (rc == 0)
        rc = drv_worker_open(d, &w, (int)drv_int(d, "concurrency", 100), take_latency, &h);
    if (rc == 0)
        rc = drv_worker_start(d, &w);
    if (rc == 0)
        rc = add_open_loop(d, &a, &h, all);
    if (rc == 0 && !drv_sink_wait(&h.sink))
        rc = drv_fail(d, "work", NULL);
    if (rc == 0)
        rc = drv_wait_settled(d, a.q);
    drv_end(d);
    if (drv_worker_stop(d, &w) < 0)
        rc = -1;
    d->result.n = bench;
    d->result.count = h.sink.runs;
    d->result.check = h.sink.sum;
    d->result.hdr = h.sink.hdr;
    drv_extra(d, "call_p50", (double)lb_hdr_at(h.by_call, 0.5) / 1e3);
    drv_extra(d, "call_p99", (double)lb_hdr_at(h.by_call, 0.99) / 1e3);
    lb_hdr_free(h.by_call);
    free(h.due);
    free(h.called);
    close_adder(&a);
    return rc;
}

const struct drv_scenario drv_chasqui[] = {{"queue-add", run_add},
                                           {"queue-add-bulk", run_add_bulk},
                                           {"queue-add-delayed", run_add_delayed},
                                           {"worker-generic", run_worker},
                                           {"worker-concurrent", run_worker},
                                           {"worker-keyed", run_keyed},
                                           {"worker-delayed-end-to-end", run_delayed},
                                           {"worker-retry-throughput", run_retry},
                                           {"worker-concurrent-store-results", run_store},
                                           {"worker-latency", run_latency},
                                           {NULL, NULL}};
