/*
 * native.c - the same work by lade's own queue on the same server; see trial.h
 *
 * A worker of liblade has one connection to fetch and settle for all its slots and waits on a bell, so there is nothing to simulate:
 * its thread runs as in any program, with as many slots as the trial has workers, and the server is asked what that costs. All its
 * keys lie in a namespace of this run, which is removed at the end.
 */
#include <lade/lade.h>

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "resque_bench/trial.h"

#define BATCH 1000
#define KIND  "load"

struct native {
    struct rb_server *s;
    struct rb_result *r;
    lade *q;
    lade_worker *w;
    pthread_t thread;
    bool running;
    int run_rc;
    lade_err run_err;
    struct lb_hdr *seconds; /* lives as long as handlers may run */
    _Atomic uint64_t hits, broken, sum;
    _Atomic int64_t last_hit; /* mono */
    _Atomic(struct lb_hdr *) latency;
    _Atomic(struct lb_hdr *) second;
    int64_t wall_offset;
};

static void nap_until(int64_t at)
{
    struct timespec ts = {.tv_sec = at / LADE_SECOND, .tv_nsec = at % LADE_SECOND};
    (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
}

static lade_outcome handle(lade_job *job, void *ctx)
{
    struct native *n = ctx;
    lade_bytes body = lade_job_payload(job);
    uint64_t index;
    int64_t put_at;
    int64_t now = lb_clock_mono();
    if (rb_job_read(n->s, lb_slice(body.data, body.size), &index, &put_at) != RB_OURS) {
        n->broken++;
        return LADE_DISCARD;
    }
    int64_t ns = LB_MAX(now + n->wall_offset - put_at, 1000);
    struct lb_hdr *h = n->latency;
    struct lb_hdr *second = n->second;
    if (h)
        lb_hdr_add(h, ns);
    if (second)
        lb_hdr_add(second, ns);
    n->sum += index;
    n->last_hit = now;
    n->hits++;
    return LADE_OK;
}

static void *run_worker(void *arg)
{
    struct native *n = arg;
    n->run_rc = lade_worker_run(n->w, &n->run_err);
    return NULL;
}

static void no_log(void *ctx, const char *line)
{
    (void)ctx;
    (void)line;
}

static int start_worker(struct native *n, lade_err *err)
{
    lade_worker_config config = {.concurrency = (int)n->r->workers,
                                 .no_signals = true,
                                 .shutdown_timeout = 5 * LADE_SECOND,
                                 .log = no_log};
    int rc = lade_worker_open(&n->w, n->q, &config, err);
    if (rc == 0 && lade_worker_handle(n->w, KIND, handle, n) < 0)
        rc = lb_fail_nomem(err, "native");
    if (rc == 0 && pthread_create(&n->thread, NULL, run_worker, n) != 0)
        rc = lb_fail_nomem(err, "native");
    n->running = rc == 0;
    return rc;
}

static int put(struct native *n, uint64_t from, uint64_t to, int64_t wall, lade_err *err)
{
    lade_job_spec spec[BATCH];
    struct lb_buf text = {0};
    size_t end[BATCH];
    size_t k = 0;
    for (uint64_t i = from; i < to; i++, k++) {
        rb_job_write(&text, n->s->o, i, wall > 0 ? wall : lb_clock_wall());
        end[k] = text.n;
    }
    int rc = text.failed ? lb_fail_nomem(err, "native") : 0;
    for (size_t i = 0; i < k; i++) {
        size_t at = i ? end[i - 1] : 0;
        spec[i] = (lade_job_spec){.kind = KIND, .payload = {text.p + at, end[i] - at}};
    }
    if (rc == 0)
        rc = lade_enqueue_many(n->q, spec, k, NULL, NULL, err);
    lb_buf_fini(&text);
    return rc < 0 ? rc : 0;
}

static int fill(struct native *n, uint64_t jobs, lade_err *err)
{
    int64_t start = lb_clock_mono();
    int rc = 0;
    for (uint64_t i = 0; i < jobs && rc == 0; i += BATCH) {
        rc = put(n, i, LB_MIN(i + BATCH, jobs), 0, err);
        if (rc == 0 && rb_interrupted())
            rc = lb_fail(err, LADE_ECLOSED, "native", "interrupted");
    }
    n->r->enqueue_s = (double)(lb_clock_mono() - start) / 1e9;
    return rc;
}

static int drain(struct native *n, lade_err *err)
{
    struct rb_result *r = n->r;
    uint64_t jobs = r->asked;
    n->seconds = lb_hdr_make();
    struct rb_ticker t = {.r = r, .o = n->s->o, .second = n->seconds, .dots = !n->s->o->quiet};
    struct rb_cost_from from;
    if (!t.second)
        return lb_fail_nomem(err, "native");
    n->latency = r->residence;
    n->second = t.second;
    rb_cost_begin(n->s, &from);
    int64_t start = lb_clock_mono();
    int64_t deadline = start + n->s->o->timeout_s * LADE_SECOND;
    t.from = start;
    int rc = start_worker(n, err);
    while (rc == 0 && n->hits < jobs && lb_clock_mono() < deadline && !rb_interrupted()) {
        nap_until(lb_deadline_in(2 * LADE_MILLISECOND));
        if (lb_clock_mono() - t.from >= LADE_SECOND)
            rb_tick(&t, lb_clock_mono(), n->hits, n->broken);
    }
    int64_t end = n->hits >= jobs ? n->last_hit : lb_clock_mono();
    n->second = NULL;
    rb_cost_end(n->s, &from, &r->cost);
    rb_tick(&t, LB_MAX(end, t.from), n->hits, n->broken);
    n->latency = NULL;
    r->seconds = (double)(end - start) / 1e9;
    r->jobs = n->hits;
    r->errors = n->broken;
    r->interrupted = rb_interrupted();
    r->timed_out = r->jobs < jobs && !r->interrupted;
    r->verified = r->jobs == jobs && n->sum == jobs * (jobs - 1) / 2;
    return rc;
}

static void idle(struct native *n)
{
    struct rb_idle *i = &n->r->idle;
    struct rb_cost_from from;
    uint64_t before = n->hits;
    nap_until(lb_deadline_in(LADE_SECOND)); /* the last settles are on their way */
    rb_cost_begin(n->s, &from);
    int64_t start = lb_clock_mono();
    int64_t end = start + n->s->o->idle_s * LADE_SECOND;
    while (lb_clock_mono() < end && !rb_interrupted())
        nap_until(LB_MIN(end, lb_deadline_in(100 * LADE_MILLISECOND)));
    rb_cost_end(n->s, &from, &i->cost);
    i->ran = true;
    i->clean = n->hits == before;
    i->expected_qps = -1;
    i->seconds = (double)(lb_clock_mono() - start) / 1e9;
}

static int pickup(struct native *n, struct rb_pickup *p, uint64_t jobs, int64_t gap, lade_err *err)
{
    struct rb_cost_from from;
    uint64_t before = n->hits;
    p->latency = lb_hdr_make();
    if (!p->latency)
        return lb_fail_nomem(err, "native");
    p->ran = true;
    p->asked = jobs;
    p->offered = 1e9 / (double)gap;
    n->latency = p->latency;
    rb_cost_begin(n->s, &from);
    int64_t start = lb_clock_mono();
    int rc = 0;
    for (uint64_t i = 0; i < jobs && rc == 0 && !rb_interrupted();) {
        int64_t due = start + (int64_t)(i + 1) * gap;
        nap_until(due);
        uint64_t to =
            i + 1; /* with all that is due by now; each carries the time of the first of them */
        int64_t now = lb_clock_mono();
        while (to < jobs && to - i < BATCH && start + (int64_t)(to + 1) * gap <= now)
            to++;
        rc = put(n, i, to, due + n->wall_offset, err);
        i = to;
    }
    int64_t deadline = lb_deadline_in(n->s->o->timeout_s * LADE_SECOND);
    while (rc == 0 && n->hits - before < jobs && lb_clock_mono() < deadline && !rb_interrupted())
        nap_until(lb_deadline_in(2 * LADE_MILLISECOND));
    p->seconds = (double)(lb_clock_mono() - start) / 1e9;
    p->done = n->hits - before;
    rb_cost_end(n->s, &from, &p->cost);
    n->latency = NULL;
    return rc;
}

static int phases(struct native *n, lade_err *err)
{
    const struct rb_options *o = n->s->o;
    int rc = fill(n, n->r->asked, err);
    if (rc < 0)
        return rc;
    if (!o->quiet)
        (void)fprintf(rb_out, "  [%4zu workers] ", n->r->workers);
    rc = drain(n, err);
    if (!o->quiet)
        (void)fputc('\n', rb_out);
    if (rc < 0 || n->r->timed_out || n->r->interrupted) {
        (void)snprintf(n->r->idle.skipped, sizeof(n->r->idle.skipped), "%s",
                       rc < 0              ? "the worker did not start"
                       : n->r->interrupted ? "interrupted"
                                           : "the drain ran into --timeout");
        return rc;
    }
    if (!o->no_idle)
        idle(n);
    if (o->pickup_jobs > 0)
        rc = pickup(n, &n->r->pickup, (uint64_t)o->pickup_jobs, o->pickup_gap_ms * LADE_MILLISECOND,
                    err);
    if (rc == 0 && o->rate > 0)
        rc = pickup(n, &n->r->open, (uint64_t)(o->rate * o->rate_s), LADE_SECOND / o->rate, err);
    n->r->interrupted |= rb_interrupted();
    return rc;
}

/* The URL that lade_open takes. It holds the password, so it is wiped. */
static int open_queue(struct native *n, lade_err *err)
{
    char url[1024];
    char ns[64];
    int rc = rb_server_lade_url(n->s, url, sizeof(url), err);
    rb_server_native_ns(n->s, ns, sizeof(ns));
    lade_options options = {.namespace_ = ns, .keep_completed = {.count = -1}};
    if (rc == 0)
        rc = lade_open(&n->q, url, &options, err);
    explicit_bzero(url, sizeof(url));
    return rc;
}

int rb_native_run(struct rb_server *s, struct rb_result *r, lade_err *err)
{
    struct native n = {.s = s, .r = r};
    n.wall_offset = lb_clock_wall() - lb_clock_mono();
    if (s->put_at == 0)
        s->put_at = lb_clock_wall();
    int rc = open_queue(&n, err);
    if (rc == 0)
        rc = phases(&n, err);
    if (n.running) {
        lade_worker_stop(n.w);
        (void)pthread_join(n.thread, NULL);
    }
    lade_worker_close(n.w);
    lade_close(n.q);
    lb_hdr_free(n.seconds);
    lade_err late;
    int cleaned = rb_server_remove_native(s, &late);
    if (cleaned < 0)
        (void)fprintf(stderr, "Warning: keys of lade's own queue are left: %s\n", late.text);
    return rc;
}
