/*
 * trial.c - the phases of a trial by the wire protocol of Resque; see trial.h
 *
 * A drain ends when all jobs have come; or when the time is over; or when the queues have been seen empty, nothing is on its way and
 * jobs are missing all the same, because a server forgot them or an answer was lost: then they are counted as lost.
 */
#include "resque_bench/trial.h"

#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/err.h"
#include "resque_bench/fleet.h"
#include "resque_bench/words.h"

#define LOOK_EVERY (200 * LADE_MILLISECOND)
#define QUIET_POLL (200 * LADE_MILLISECOND)
#define QUIET_LONG (2 * LADE_SECOND) /* where nothing tells that a worker waits in vain */
#define GRACE      (5 * LADE_SECOND)
#define STEP_MAX   (250 * LADE_MILLISECOND) /* so that a signal is seen */

/* Whether the jobs that are missing will never come: looked at now and then while none comes. */
static bool is_over(struct rb_fleet *f, int64_t *next_look, int64_t *empty_at)
{
    int64_t now = lb_clock_mono();
    int64_t quiet = f->mode == RB_POLL ? QUIET_POLL : QUIET_LONG;
    if (now < *next_look)
        return false;
    *next_look = now + LOOK_EVERY;
    if (now - f->last_hit < quiet || !rb_fleet_is_whole(f)) {
        *empty_at = 0;
        return false;
    }
    if (*empty_at > 0)
        return f->mode != RB_POLL || !rb_fleet_waits_since(f, *empty_at);
    int64_t left = 1;
    lade_err err;
    f->server->patience = LADE_SECOND;
    if (rb_server_backlog(f->server, &left, &err) == 0 && left == 0)
        *empty_at = lb_clock_mono();
    f->server->patience = RB_PATIENCE;
    return false;
}

static uint64_t mix_of(uint64_t n)
{
    uint64_t mix = 0;
    for (uint64_t i = 0; i < n; i++)
        mix ^= (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
    return mix;
}

static void drain_loop(struct rb_fleet *f, struct rb_ticker *t, uint64_t jobs, int64_t deadline)
{
    int64_t next_tick = t->from + LADE_SECOND;
    int64_t next_look = t->from + LOOK_EVERY;
    int64_t empty_at = 0;
    while (f->count.hits < jobs && !f->overflow) {
        int64_t until = LB_MIN(LB_MIN(next_tick, next_look), deadline);
        rb_fleet_step(f, LB_MIN(until, lb_deadline_in(STEP_MAX)));
        int64_t now = lb_clock_mono();
        if (now >= next_tick) {
            rb_tick(t, now, f->count.hits, f->count.errors);
            next_tick = now + LADE_SECOND;
        }
        if (rb_interrupted())
            t->r->interrupted = true;
        else if (now >= deadline)
            t->r->timed_out = f->count.hits < jobs;
        if (rb_interrupted() || now >= deadline || is_over(f, &next_look, &empty_at))
            return;
    }
}

static void take_counts(struct rb_cost *cost, const struct rb_fleet *f)
{
    memcpy(cost->sent, f->count.sent, sizeof(cost->sent));
    cost->unanswered = f->count.lost_commands + f->outstanding;
}

/* The drain proper: r gets all that is measured. */
static int drain(struct rb_fleet *f, struct rb_result *r, uint64_t jobs, bool dots, lade_err *err)
{
    struct rb_ticker t = {.r = r, .o = f->o, .second = lb_hdr_make(), .dots = dots};
    struct rb_cost_from from;
    if (!t.second)
        return lb_fail_nomem(err, "drain");
    rb_fleet_reset_counts(f);
    f->latency = r->residence;
    f->second = t.second;
    f->rtt = r->rtt;
    rb_cost_begin(f->server, &from);
    int64_t start = lb_clock_mono();
    t.from = start;
    rb_fleet_start(f, false);
    drain_loop(f, &t, jobs, start + f->o->timeout_s * LADE_SECOND);
    int64_t end = f->count.hits >= jobs ? f->last_hit : lb_clock_mono();
    rb_fleet_settle(f, lb_deadline_in(GRACE));
    if (f->count.hits > 0 || f->count.errors > 0 || r->n_series == 0)
        rb_tick(&t, LB_MAX(end, f->last_hit), f->count.hits, f->count.errors);
    rb_cost_end(f->server, &from, &r->cost);
    take_counts(&r->cost, f);
    lb_hdr_free(t.second);
    f->latency = f->second = f->rtt = NULL;
    r->seconds = (double)(end - start) / 1e9;
    r->jobs = f->count.hits;
    r->asked = jobs;
    r->errors = f->count.errors;
    r->foreign = f->count.foreign;
    r->misses = f->count.misses;
    r->reconnects = f->count.reconnects;
    r->lost = r->jobs < jobs && !r->timed_out && !r->interrupted ? jobs - r->jobs : 0;
    r->verified =
        r->jobs == jobs && f->count.sum == jobs * (jobs - 1) / 2 && f->count.mix == mix_of(jobs);
    if (f->overflow)
        return lb_fail(
            err, LADE_ETOOBIG, "drain",
            "more entries of others came into the queue than can be set aside (%d); use another --queue",
            RB_HELD_MAX);
    return 0;
}

static void skip_idle(struct rb_result *r, const char *why)
{
    (void)snprintf(r->idle.skipped, sizeof(r->idle.skipped), "%s", why);
}

static void idle_rates(struct rb_fleet *f, struct rb_idle *idle)
{
    const struct rb_options *o = f->o;
    rb_idle_rate(idle->polls, idle->seconds, f->n, &idle->qps, &idle->per_worker);
    idle->insufficient = f->mode == RB_POLL && (double)o->pace.max / 1e9 > idle->seconds;
    idle->expected_qps = -1;
    bool steady = o->pace.min == o->pace.max;
    if (f->mode == RB_POLL && steady && f->count.cycles > 0) {
        double cycle = (double)o->pace.max + (double)f->count.cycle_ns / (double)f->count.cycles;
        idle->expected_qps = (double)f->n * (double)f->server->n_queues * 1e9 / cycle;
    }
    if (idle->insufficient || idle->failed)
        idle->qps = idle->per_worker = 0; /* a count, but no rate */
    if (idle->failed)
        (void)snprintf(idle->skipped, sizeof(idle->skipped),
                       "failed: %llu commands went wrong, the server was lost or refused them",
                       (unsigned long long)idle->errors);
}

static void idle(struct rb_fleet *f, struct rb_result *r)
{
    struct rb_cost_from from;
    rb_fleet_reset_counts(f);
    rb_cost_begin(f->server, &from);
    int64_t start = lb_clock_mono();
    int64_t end = start + f->o->idle_s * LADE_SECOND;
    rb_fleet_start(f, f->o->start == RB_SPREAD);
    while (lb_clock_mono() < end && !rb_interrupted() && !f->overflow)
        rb_fleet_step(f, LB_MIN(end, lb_deadline_in(STEP_MAX)));
    int64_t stop = lb_clock_mono();
    r->idle.polls = f->count.polls;
    rb_fleet_settle(f, lb_deadline_in(GRACE));
    rb_cost_end(f->server, &from, &r->idle.cost);
    take_counts(&r->idle.cost, f);
    r->idle.ran = true;
    r->idle.seconds = (double)(stop - start) / 1e9;
    r->idle.errors = f->count.errors;
    r->idle.foreign = f->count.foreign + f->count.broken;
    r->idle.failed = f->count.errors > f->count.broken || f->count.reconnects > 0;
    r->idle.clean = r->idle.foreign == 0 && f->count.hits == 0;
    r->interrupted |= rb_interrupted();
    idle_rates(f, &r->idle);
}

/* Jobs that arrive one by one: before an idle fleet, or as fast as --rate says. */
static int arrivals(struct rb_fleet *f, struct rb_pickup *p, uint64_t n, int64_t gap, lade_err *err)
{
    struct rb_cost_from from;
    rb_fleet_reset_counts(f);
    p->latency = lb_hdr_make();
    if (!p->latency)
        return lb_fail_nomem(err, "pickup");
    p->ran = true;
    p->asked = n;
    p->offered = 1e9 / (double)gap;
    f->latency = p->latency;
    rb_cost_begin(f->server, &from);
    int64_t start = lb_clock_mono();
    int64_t last = start + (int64_t)n * gap;
    int64_t end = last + 2 * f->o->pace.max + f->o->timeout_s * LADE_SECOND;
    rb_fleet_start(f, f->o->start == RB_SPREAD);
    f->arrivals =
        (struct rb_arrivals){.n = n, .gap = gap, .from = start + gap, .jitter = p->jitter};
    int rc = rb_fleet_produce(f, err);
    while (rc == 0 && f->count.hits < n && lb_clock_mono() < end && !rb_interrupted() &&
           !f->overflow)
        rb_fleet_step(f, LB_MIN(end, lb_deadline_in(STEP_MAX)));
    int64_t stop = f->count.hits >= n ? f->last_hit : lb_clock_mono();
    rb_fleet_settle(f, lb_deadline_in(GRACE));
    rb_cost_end(f->server, &from, &p->cost);
    take_counts(&p->cost, f);
    f->latency = NULL;
    f->producer = NULL;
    p->seconds = (double)(stop - start) / 1e9;
    p->done = f->count.hits;
    p->errors = f->count.errors;
    return rc;
}

static int after_drain(struct rb_fleet *f, struct rb_result *r, lade_err *err)
{
    const struct rb_options *o = f->o;
    int64_t left = 0;
    int rc = rb_server_backlog(f->server, &left, err);
    if (rc < 0 || r->interrupted) {
        skip_idle(r, rc < 0 ? err->text : "interrupted");
        return 0;
    }
    if (left > 0) {
        char why[200];
        (void)snprintf(
            why, sizeof(why),
            "%lld jobs still queued after the drain (%s); idle polling would count real hits",
            (long long)left, r->timed_out ? "it ran into --timeout" : "others put jobs there");
        skip_idle(r, why);
        return 0;
    }
    if (o->no_idle)
        skip_idle(r, "");
    else
        idle(f, r);
    r->pickup.jitter = true;
    if (o->pickup_jobs > 0 && !rb_interrupted())
        rc = arrivals(f, &r->pickup, (uint64_t)o->pickup_jobs, o->pickup_gap_ms * LADE_MILLISECOND,
                      err);
    if (rc == 0 && o->rate > 0 && !rb_interrupted())
        rc = arrivals(f, &r->open, (uint64_t)(o->rate * o->rate_s), LADE_SECOND / o->rate, err);
    r->interrupted |= rb_interrupted();
    return rc;
}

static int fill(struct rb_server *s, uint64_t jobs, double *seconds, lade_err *err)
{
    int rc = rb_server_clear(s, err);
    int64_t start = lb_clock_mono();
    if (rc == 0)
        rc = rb_server_prefill(s, jobs, err);
    if (seconds)
        *seconds = (double)(lb_clock_mono() - start) / 1e9;
    return rc;
}

static int warm_up(struct rb_server *s, struct rb_result *r, lade_err *err)
{
    uint64_t jobs = (uint64_t)s->o->warmup;
    struct rb_result thrown = {.residence = lb_hdr_make(), .rtt = lb_hdr_make()};
    struct rb_fleet f;
    int rc =
        thrown.residence && thrown.rtt ? fill(s, jobs, NULL, err) : lb_fail_nomem(err, "warmup");
    if (rc == 0)
        rc = rb_fleet_open(&f, s, r->mode, r->workers, err);
    if (rc == 0) {
        rc = drain(&f, &thrown, jobs, false, err);
        rb_fleet_close(&f);
    }
    r->warmup_s = thrown.seconds;
    r->warmup_timed_out = thrown.timed_out;
    r->interrupted |= thrown.interrupted;
    rb_result_fini(&thrown);
    return rc;
}

static int run_resque(struct rb_server *s, struct rb_result *r, lade_err *err)
{
    bool talk = !s->o->quiet;
    int rc = 0;
    if (s->o->warmup > 0) {
        if (talk)
            (void)fprintf(rb_out, "  [%4zu workers] warmup … ", r->workers);
        (void)fflush(rb_out);
        rc = warm_up(s, r, err);
        if (talk)
            (void)fputs(rc < 0                ? "failed\n"
                        : r->warmup_timed_out ? "timed out\n"
                                              : "done\n",
                        rb_out);
        if (r->warmup_timed_out)
            (void)fprintf(stderr, "  [warmup timeout after %llds]\n", (long long)s->o->timeout_s);
    }
    if (rc == 0 && !r->interrupted)
        rc = fill(s, (uint64_t)s->o->jobs, &r->enqueue_s, err);
    if (rc < 0 || r->interrupted)
        return rc;
    struct rb_fleet f;
    rc = rb_fleet_open(&f, s, r->mode, r->workers, err);
    if (rc < 0)
        return rc;
    if (talk)
        (void)fprintf(rb_out, "  [%4zu workers] ", r->workers);
    (void)fflush(rb_out);
    rc = drain(&f, r, (uint64_t)s->o->jobs, talk, err);
    if (talk)
        (void)fputc('\n', rb_out);
    if (r->timed_out)
        (void)fprintf(stderr, "  [timeout after %llds]\n", (long long)s->o->timeout_s);
    if (rc == 0)
        rc = after_drain(&f, r, err);
    rb_fleet_close(&f);
    return rc;
}

int rb_trial_run(struct rb_server *s, enum rb_mode mode, size_t workers, struct rb_result *out,
                 lade_err *err)
{
    *out = (struct rb_result){.mode = mode, .workers = workers, .asked = (uint64_t)s->o->jobs};
    out->residence = lb_hdr_make();
    out->rtt = lb_hdr_make();
    if (!out->residence || !out->rtt)
        return lb_fail_nomem(err, "trial");
    int rc = mode == RB_NATIVE ? rb_native_run(s, out, err) : run_resque(s, out, err);
    if (rc == -LADE_ECLOSED && rb_interrupted()) {
        out->interrupted = true;
        rc = 0;
    }
    return rc;
}
