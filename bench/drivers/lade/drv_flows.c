/* drv_flows.c - table chronos: chains and groups, enqueued one at a time by one producer beside a worker */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/clock.h"
#include "bench/drivers/lade/drv.h"

#define STEPS_MAX     1000
#define PAYLOAD_MAX   4096
#define ORIGINAL_POLL (20 * LADE_MILLISECOND)

struct flows {
    struct drv_sink sink;
    lade *q;
    uint64_t n;    /* links or members of all */
    uint64_t size; /* of one */
    bool group;
    int64_t payload;
    lade_job_spec spec[STEPS_MAX + 1]; /* the callback last */
    lade_flow_step step[STEPS_MAX];
    char text[STEPS_MAX + 1][PAYLOAD_MAX + 80];
};

static lade_outcome take_link(lade_job *job, void *ctx)
{
    struct flows *f = ctx;
    int64_t ts = 0;
    uint64_t number = 0;
    if (!drv_pad_read(lade_job_payload(job), &ts, &number))
        return LADE_DEAD;
    if (number % f->size == f->size - 1)
        lb_hdr_add(f->sink.hdr, lb_clock_wall() - ts);
    drv_ran(&f->sink, number);
    return LADE_OK;
}

/* Members carry no time; the callback does, and adds nothing to the sum. */
static lade_outcome take_member(lade_job *job, void *ctx)
{
    struct flows *f = ctx;
    int64_t ts = 0;
    uint64_t number = 0;
    if (!drv_pad_read(lade_job_payload(job), &ts, &number))
        return LADE_DEAD;
    if (ts > 0)
        lb_hdr_add(f->sink.hdr, lb_clock_wall() - ts);
    drv_ran(&f->sink, ts > 0 ? 0 : number);
    return LADE_OK;
}

static void write_step(struct flows *f, size_t i, int64_t ts, uint64_t number)
{
    char pad[PAYLOAD_MAX];
    char *text = f->text[i];
    int len = 0;
    drv_pad(pad, sizeof(pad), number, f->payload);
    if (f->group)
        len = snprintf(text, sizeof(f->text[0]), "{\"ts\":%" PRId64 ",\"pad\":\"%s\"}", ts, pad);
    else
        len = snprintf(text, sizeof(f->text[0]), "{\"ts\":%" PRId64 ",\"last\":%s,\"pad\":\"%s\"}",
                       ts, i + 1 == f->size ? "true" : "false", pad);
    f->spec[i] = (lade_job_spec){.kind = "bench:step", .payload = {text, (size_t)len}};
}

static int enqueue_one(struct flows *f, uint64_t index, lade_err *err)
{
    int64_t built = lb_clock_wall();
    lade_flow_spec flow = {.root = lade_flow_chain(f->step, f->size)};
    for (size_t i = 0; i < f->size; i++) {
        write_step(f, i, f->group ? 0 : built, index * f->size + i);
        f->step[i] = lade_flow_job(&f->spec[i]);
    }
    if (f->group) {
        write_step(f, f->size, built, index);
        flow.root = lade_flow_group(f->step, f->size, &f->spec[f->size]);
    }
    return lade_flow_enqueue(f->q, &flow, NULL, err);
}

/* Until all is settled; the rate as the original has it. */
static int measure(struct drv *d, struct flows *f)
{
    uint64_t all = f->sink.want;
    lade_err err;
    int rc = 0;
    drv_begin(d);
    for (uint64_t i = 0; i < f->n / f->size && rc == 0; i++)
        rc = enqueue_one(f, i, &err);
    int64_t produced_at = lb_clock_mono(), at = produced_at;
    if (rc != 0) {
        d->unsupported = rc == -LADE_EUNSUPPORTED;
        return drv_fail(d, "enqueue", rc < 0 ? &err : NULL);
    }
    if (!drv_sink_wait(&f->sink))
        return drv_fail(d, "work", NULL);
    rc = drv_wait_settled(d, f->q);
    drv_end(d);
    while (at < f->sink.ended_at) /* looked at every 20 ms from the end of the producer on */
        at += ORIGINAL_POLL;
    drv_extra(d, "enqueue_rate", (double)all * 1e9 / (double)(produced_at - d->begin.at));
    d->result.printed_rate = (double)all * 1e9 / (double)(at - d->begin.at);
    drv_extra(d, "handled_rate", (double)all * 1e9 / (double)(f->sink.ended_at - d->begin.at));
    return rc;
}

static int run_flows(struct drv *d, bool group)
{
    struct drv_worker w = {0};
    struct flows *f = calloc(1, sizeof(*f));
    if (!f)
        return drv_fail(d, "out of memory", NULL);
    f->n = (uint64_t)drv_int(d, "n", 20000);
    f->size = (uint64_t)drv_int(d, group ? "size" : "length", 10);
    f->group = group;
    f->payload = drv_int(d, "payload", 100);
    if (f->size < 1 || f->size > STEPS_MAX || f->n % f->size != 0) {
        free(f);
        return drv_fail(d, "n is not a multiple of the length or size, 1 to 1000", NULL);
    }
    uint64_t all = group ? f->n + f->n / f->size : f->n;
    int rc = 0;
    if (!drv_sink_init(&f->sink, 0, all, true))
        rc = drv_fail(d, "out of memory", NULL);
    if (rc == 0)
        rc = drv_worker_open(d, &w, (int)drv_int(d, "concurrency", 16),
                             group ? take_member : take_link, f);
    if (rc == 0)
        rc = drv_worker_start(d, &w);
    f->q = w.q;
    if (rc == 0)
        rc = measure(d, f);
    if (drv_worker_stop(d, &w) < 0)
        rc = -1;
    d->result.n = all;
    d->result.count = f->sink.runs;
    d->result.check = f->sink.sum;
    d->result.hdr = f->sink.hdr;
    free(f);
    return rc;
}

static int run_chain(struct drv *d)
{
    return run_flows(d, false);
}

static int run_group(struct drv *d)
{
    return run_flows(d, true);
}

const struct drv_scenario drv_flows[] = {{"chain", run_chain}, {"group", run_group}, {NULL, NULL}};
