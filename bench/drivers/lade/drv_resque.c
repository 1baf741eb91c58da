/*
 * drv_resque.c - table resque: a real worker and a real producer on Resque's own queues (url resque://)
 *
 *     resque-work       drains a backlog of n/part jobs with `workers` slots: from the start of the worker to all settled
 *     resque-enqueue    n/part jobs by calls of `batch`
 *
 * The job is resque-benchmark's: class LoadWorker, arguments ["string",<number>,{"mike":"bob"},<ns>]. `part` is a contender's own: what
 * takes a thousand times as long gets fewer jobs. `mode` is the store's: reliable or strict.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "bench/drivers/lade/drv.h"

#define BATCH_MAX   LADE_BATCH_MAX
#define PAYLOAD_MAX 96

static uint64_t jobs_of(const struct drv *d)
{
    return (uint64_t)(drv_int(d, "n", 20000) / LB_MAX(drv_int(d, "part", 1), 1));
}

static int enqueue_backlog(struct drv *d, lade *q, uint64_t n)
{
    size_t batch = LB_MIN((size_t)LB_MAX(drv_int(d, "batch", 1000), 1), (size_t)BATCH_MAX);
    char(*text)[PAYLOAD_MAX] = calloc(batch, sizeof(*text));
    lade_job_spec *spec = calloc(batch, sizeof(*spec));
    lade_err err;
    int rc = text && spec ? 0 : drv_fail(d, "out of memory", NULL);
    for (uint64_t i = 0; i < n && rc == 0 && spec && text;) {
        size_t m = LB_MIN((size_t)(n - i), batch);
        for (size_t k = 0; k < m; k++) {
            int size = snprintf(text[k], sizeof(text[k]),
                                "[\"string\",%" PRIu64 ",{\"mike\":\"bob\"},%" PRId64 "]", i + k,
                                lb_clock_wall());
            spec[k] = (lade_job_spec){.kind = "LoadWorker", .payload = {text[k], (size_t)size}};
            d->result.check += i + k;
        }
        rc = lade_enqueue_many(q, spec, m, NULL, NULL, &err);
        if (rc != 0)
            rc = drv_fail(d, "enqueue", rc < 0 ? &err : NULL);
        i += m;
    }
    free(text);
    free(spec);
    return rc;
}

/* Decodes all of its arguments, as Ruby has done when it calls perform. */
static lade_outcome perform(lade_job *job, void *ctx)
{
    lade_bytes p = lade_job_payload(job);
    json_t *args = json_loadb(p.data, p.size, 0, NULL);
    const json_t *number = json_array_get(args, 1);
    bool good = json_is_integer(number);
    if (good)
        drv_ran(ctx, (uint64_t)json_integer_value(number));
    json_decref(args);
    return good ? LADE_OK : LADE_DEAD;
}

static void add_costs(struct drv *d, uint64_t n)
{
    double per_job = 1e6 / (double)n;
    drv_extra(d, "client_us_per_job", (d->end.cpu_s - d->begin.cpu_s) * per_job);
    drv_extra(d, "server_us_per_job", (d->end.usage.cpu_s - d->begin.usage.cpu_s) * per_job);
    drv_extra(d, "server_commands_per_job",
              (double)(d->end.usage.commands - d->begin.usage.commands) / (double)n);
}

static int work(struct drv *d, lade *q, uint64_t n)
{
    struct drv_sink s;
    struct drv_worker w = {0};
    int rc = drv_sink_init(&s, 0, n, false) ? 0 : drv_fail(d, "out of memory", NULL);
    if (rc == 0)
        rc = drv_worker_open(d, &w, (int)drv_int(d, "workers", 1), perform, &s);
    drv_begin(d);
    if (rc == 0)
        rc = drv_worker_start(d, &w);
    if (rc == 0 && !drv_sink_wait(&s))
        rc = drv_fail(d, "work", NULL);
    if (rc == 0)
        rc = drv_wait_settled(d, q);
    drv_end(d);
    if (drv_worker_stop(d, &w) < 0)
        rc = -1;
    d->result.count = s.runs;
    d->result.check = s.sum;
    return rc;
}

static int on_resque(struct drv *d, bool enqueue_only)
{
    char url[sizeof(d->url) + 32];
    bool is_unix = strncmp(d->url, "unix:", 5) == 0;
    const char *rest = strchr(d->url, ':');
    (void)snprintf(url, sizeof(url), "%s%s?mode=%s", is_unix ? "resque+unix" : "resque",
                   rest ? rest : "", drv_text(d, "mode", "reliable"));
    (void)snprintf(d->url, sizeof(d->url), "%.*s", (int)sizeof(d->url) - 1, url);
    lade *q = NULL;
    lade_queue_info info = {0};
    uint64_t n = jobs_of(d);
    int rc = n > 0 ? drv_open(d, &q) : drv_fail(d, "n is less than part", NULL);
    if (rc < 0)
        return rc;
    if (enqueue_only)
        drv_begin(d);
    rc = enqueue_backlog(d, q, n);
    if (enqueue_only) {
        drv_end(d);
        if (rc == 0 && lade_queue_get(q, "default", &info, NULL) < 0)
            rc = drv_fail(d, "count", NULL);
        d->result.count = info.count[LADE_STATE_READY];
    } else if (rc == 0) {
        rc = work(d, q, n);
    }
    add_costs(d, n);
    lade_close(q);
    d->result.n = n;
    return rc;
}

static int run_work(struct drv *d)
{
    return on_resque(d, false);
}

static int run_enqueue(struct drv *d)
{
    return on_resque(d, true);
}

const struct drv_scenario drv_resque[] = {
    {"resque-work", run_work}, {"resque-enqueue", run_enqueue}, {NULL, NULL}};
