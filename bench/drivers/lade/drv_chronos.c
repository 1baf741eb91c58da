/* drv_chronos.c - table chronos: synchronous producers alone, and with a worker beside them */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "bench/drivers/lade/drv.h"

#define PRODUCERS_MAX 256
#define PAYLOAD_MAX   4096
#define ORIGINAL_POLL (20 * LADE_MILLISECOND)

/* Threads that take the next number and enqueue it, one call at a time. */
struct producers {
    lade *q;
    uint64_t n, warmup; /* numbers below warmup carry no time */
    bool timed;
    int64_t size;
    _Atomic uint64_t next, acked, sum;
    _Atomic bool failed;
    lade_err err; /* of the first that failed */
};

static void *produce(void *arg)
{
    struct producers *p = arg;
    char payload[PAYLOAD_MAX + 64];
    uint64_t acked = 0;
    uint64_t sum = 0;
    for (uint64_t i; !p->failed && (i = atomic_fetch_add(&p->next, 1)) < p->n;) {
        int64_t ts = p->timed && i >= p->warmup ? lb_clock_wall() : 0;
        lade_err err;
        size_t size = drv_pad_payload(payload, sizeof(payload), ts, i, p->size);
        if (lade_enqueue(p->q, &(lade_job_spec){.kind = "bench:task", .payload = {payload, size}},
                         NULL, &err) != 0) {
            if (!atomic_exchange(&p->failed, true))
                p->err = err;
            break;
        }
        acked++;
        sum += i;
    }
    atomic_fetch_add(&p->acked, acked);
    atomic_fetch_add(&p->sum, sum);
    return NULL;
}

static int run_producers(struct drv *d, struct producers *p, size_t threads)
{
    pthread_t thread[PRODUCERS_MAX];
    size_t n = LB_MIN(LB_MAX(threads, (size_t)1), (size_t)PRODUCERS_MAX);
    size_t started = 0;
    while (started < n && pthread_create(&thread[started], NULL, produce, p) == 0)
        started++;
    p->failed = p->failed || started < n;
    for (size_t i = 0; i < started; i++)
        (void)pthread_join(thread[i], NULL);
    return p->failed ? drv_fail(d, "enqueue", p->err.code ? &p->err : NULL) : 0;
}

static int run_enqueue(struct drv *d)
{
    struct producers p = {.n = (uint64_t)drv_int(d, "n", 20000),
                          .size = drv_int(d, "payload", 100)};
    lade_queue_info info = {0};
    lade_err err;
    if (drv_open(d, &p.q) < 0)
        return -1;
    drv_begin(d);
    int rc = run_producers(d, &p, (size_t)drv_int(d, "producers", 4));
    drv_end(d);
    if (rc == 0 && lade_queue_get(p.q, "default", &info, &err) < 0)
        rc = drv_fail(d, "count", &err);
    lade_close(p.q);
    d->result.n = p.n;
    d->result.count = info.count[LADE_STATE_READY];
    d->result.check = p.sum;
    return rc;
}

static lade_outcome take_timed(lade_job *job, void *ctx)
{
    struct drv_sink *s = ctx;
    int64_t ts = 0;
    uint64_t number = 0;
    if (!drv_pad_read(lade_job_payload(job), &ts, &number))
        return LADE_DEAD;
    if (ts > 0)
        lb_hdr_add(s->hdr, lb_clock_wall() - ts);
    drv_ran(s, number);
    return LADE_OK;
}

/* The original looks every 20 ms, from the end of its producers on. */
static double seen_by_original(int64_t began, int64_t producers_ended, int64_t last_run)
{
    int64_t at = producers_ended;
    while (at < last_run)
        at += ORIGINAL_POLL;
    return (double)(at - began) / 1e9;
}

static int work_beside(struct drv *d, struct producers *p, struct drv_sink *s)
{
    drv_begin(d);
    int rc = run_producers(d, p, (size_t)drv_int(d, "producers", 4));
    int64_t ended = lb_clock_mono();
    if (rc == 0 && !drv_sink_wait(s))
        rc = drv_fail(d, "work", NULL);
    if (rc == 0)
        rc = drv_wait_settled(d, p->q);
    drv_end(d);
    d->result.printed_rate = (double)p->n / seen_by_original(d->begin.at, ended, s->ended_at);
    drv_extra(d, "handled_rate", (double)p->n * 1e9 / (double)(s->ended_at - d->begin.at));
    return rc;
}

static int run_e2e(struct drv *d)
{
    struct drv_sink s;
    struct drv_worker w = {0};
    struct producers p = {.n = (uint64_t)drv_int(d, "n", 20000),
                          .warmup = (uint64_t)drv_int(d, "warmup", 2000),
                          .timed = true,
                          .size = drv_int(d, "payload", 100)};
    if (!drv_sink_init(&s, 0, p.n, true))
        return drv_fail(d, "out of memory", NULL);
    int rc = drv_worker_open(d, &w, (int)drv_int(d, "concurrency", 16), take_timed, &s);
    if (rc == 0)
        rc = drv_worker_start(d, &w);
    if (rc == 0) {
        p.q = w.q; /* one client for both, as the original has */
        rc = work_beside(d, &p, &s);
    }
    if (drv_worker_stop(d, &w) < 0)
        rc = -1;
    d->result.n = p.n;
    d->result.count = s.runs;
    d->result.check = s.sum;
    d->result.hdr = s.hdr;
    return rc;
}

const struct drv_scenario drv_chronos[] = {
    {"enqueue", run_enqueue}, {"e2e", run_e2e}, {NULL, NULL}};
