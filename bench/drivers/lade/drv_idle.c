/* drv_idle.c - table idle: what workers cost that have nothing to do, and how soon they notice a job */
#include "base/clock.h"
#include "base/ident.h"
#include "bench/drivers/lade/drv.h"

#define WORKERS_MAX 64
#define SETTLE      (2 * LADE_SECOND)
#define PAYLOAD     100

struct wake {
    struct drv_sink sink;
    _Atomic int64_t called;
    sem_t ran; /* one post for each job */
};

static lade_outcome take_wake(lade_job *job, void *ctx)
{
    struct wake *k = ctx;
    int64_t now = lb_clock_mono();
    int64_t ts = 0;
    uint64_t number = 0;
    if (!drv_pad_read(lade_job_payload(job), &ts, &number))
        return LADE_DEAD;
    lb_hdr_add(k->sink.hdr, now - k->called);
    drv_ran(&k->sink, number);
    (void)sem_post(&k->ran);
    return LADE_OK;
}

static void watch_idle(struct drv *d)
{
    double seconds = (double)drv_int(d, "seconds", 10);
    drv_nap_until(lb_deadline_in(SETTLE));
    drv_begin(d);
    drv_nap_until(lb_deadline_in((int64_t)(seconds * 1e9)));
    drv_end(d);
    double took = (double)(d->end.at - d->begin.at) / 1e9;
    drv_extra(d, "client_cpu_ms_per_s", (d->end.cpu_s - d->begin.cpu_s) * 1e3 / took);
    if (d->on_redis) {
        drv_extra(d, "commands_per_s",
                  (double)(d->end.usage.commands - d->begin.usage.commands) / took);
        drv_extra(d, "requests_per_s",
                  (double)(d->end.usage.reads - d->begin.usage.reads - BN_INFO_READS) / took);
        drv_extra(d, "server_cpu_ms_per_s",
                  (d->end.usage.cpu_s - d->begin.usage.cpu_s) * 1e3 / took);
    }
}

static int wake_them(struct drv *d, lade *q, struct wake *k, uint64_t wakes)
{
    for (uint64_t i = 0; i < wakes; i++) {
        char payload[PAYLOAD + 64];
        lade_err err;
        size_t size = drv_pad_payload(payload, sizeof(payload), 0, i, PAYLOAD);
        drv_nap_until(lb_deadline_in((20 + (int64_t)lb_rand_below(101)) * LADE_MILLISECOND));
        k->called = lb_clock_mono();
        if (lade_enqueue(q, &(lade_job_spec){.kind = "wake", .payload = {payload, size}}, NULL,
                         &err) != 0)
            return drv_fail(d, "enqueue", &err);
        while (sem_wait(&k->ran) != 0)
            ;
    }
    return drv_wait_settled(d, q);
}

static int run_idle(struct drv *d)
{
    static struct drv_worker worker[WORKERS_MAX];
    struct wake k = {.called = 0};
    uint64_t wakes = (uint64_t)drv_int(d, "wakes", 50);
    int64_t n = drv_int(d, "workers", 1);
    int rc = n >= 1 && n <= WORKERS_MAX ? 0 : drv_fail(d, "workers: 1 to 64", NULL);
    if (!drv_sink_init(&k.sink, 0, wakes, true) || sem_init(&k.ran, 0, 0) != 0)
        rc = drv_fail(d, "out of memory", NULL);
    for (int64_t i = 0; i < n && rc == 0; i++) {
        rc = drv_worker_open(d, &worker[i], (int)drv_int(d, "concurrency", 16), take_wake, &k);
        if (rc == 0)
            rc = drv_worker_start(d, &worker[i]);
    }
    if (rc == 0) {
        watch_idle(d);
        rc = wake_them(d, worker[0].q, &k, wakes);
    }
    for (int64_t i = 0; i < n && i < WORKERS_MAX; i++) {
        if (drv_worker_stop(d, &worker[i]) < 0)
            rc = -1;
    }
    d->result.n = wakes;
    d->result.no_rate = true;
    d->result.count = k.sink.runs;
    d->result.check = k.sink.sum;
    d->result.hdr = k.sink.hdr;
    return rc;
}

const struct drv_scenario drv_idle[] = {
    {"idle", run_idle}, {"idle-queues", run_idle}, {NULL, NULL}};
