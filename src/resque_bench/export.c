/*
 * export.c - see export.h
 *
 * All fields of resque-benchmark with their names and types, and more. Values that could not be had are null, where the original has no
 * such field; never a number that stands for nothing.
 */
#include "resque_bench/export.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/base.h"
#include "base/civil.h"
#include "base/clock.h"
#include "base/err.h"
#include "resque_bench/words.h"

#define MEMBER(o, name, value) (void)json_object_set_new((o), (name), (value))

static json_t *count(uint64_t v)
{
    return json_integer((json_int_t)v);
}

/* To so many places; reals that are no numbers are 0. */
static json_t *real(double v, int places)
{
    double scale = pow(10, places);
    return json_real(isfinite(v) ? round(v * scale) / scale : 0);
}

static json_t *text_or_null(const char *s)
{
    return s ? json_string(s) : json_null();
}

static json_t *us(int64_t ns)
{
    return json_integer((json_int_t)(ns / 1000));
}

static json_t *latency(const struct lb_hdr *h)
{
    static const struct {
        const char *name;
        double at;
    } p[] = {{"p50", 0.5},  {"p75", 0.75},    {"p90", 0.9},      {"p95", 0.95},
             {"p99", 0.99}, {"p99_9", 0.999}, {"p99_99", 0.9999}};

    json_t *o = json_object();
    for (size_t i = 0; i < LB_ARRAY_LEN(p); i++)
        MEMBER(o, p[i].name, us(lb_hdr_at(h, p[i].at)));
    MEMBER(o, "max", us(lb_hdr_max(h)));
    MEMBER(o, "mean", json_real(lb_hdr_mean(h) / 1e3));
    MEMBER(o, "total_count", count(lb_hdr_count(h) - lb_hdr_overflow(h)));
    MEMBER(o, "overflow", count(lb_hdr_overflow(h)));
    return o;
}

static json_t *commands(const struct rb_cost *c)
{
    json_t *o = json_object();
    bool match = c->known;
    for (size_t i = 0; i < RB_N_CMDS; i++) {
        if (c->sent[i] == 0 && c->seen[i] == 0)
            continue;
        json_t *one = json_object();
        MEMBER(one, "client", count(c->sent[i]));
        MEMBER(one, "server", c->known ? json_integer(c->seen[i]) : json_null());
        MEMBER(o, rb_cmd_name[i], one);
        int64_t more = c->seen[i] - (int64_t)c->sent[i];
        match &= more >= 0 && more <= (int64_t)c->unanswered;
    }
    json_t *all = json_object();
    MEMBER(all, "by_name", o);
    MEMBER(all, "unanswered", count(c->unanswered));
    MEMBER(all, "match", c->known ? json_boolean(match) : json_null());
    return all;
}

static json_t *cost(const struct rb_cost *c)
{
    json_t *o = json_object();
    MEMBER(o, "seconds", real(c->seconds, 3));
    MEMBER(o, "client_cpu_s", real(c->client_cpu_s, 6));
    MEMBER(o, "server_cpu_s", c->known ? real(c->server_cpu_s, 6) : json_null());
    MEMBER(o, "server_commands", c->known ? json_integer(c->commands) : json_null());
    MEMBER(o, "server_bytes_in", c->known ? json_integer(c->bytes_in) : json_null());
    MEMBER(o, "server_bytes_out", c->known ? json_integer(c->bytes_out) : json_null());
    MEMBER(o, "commands", commands(c));
    return o;
}

static json_t *idle(const struct rb_result *r)
{
    const struct rb_idle *i = &r->idle;
    json_t *o = json_object();
    MEMBER(o, "duration_s", real(i->seconds, 3));
    MEMBER(o, "total_lpop_calls", count(i->polls));
    MEMBER(o, "idle_poll_qps", real(i->qps, 1));
    MEMBER(o, "per_worker_qps", real(i->per_worker, 2));
    if (i->skipped[0] || !i->ran)
        MEMBER(o, "skipped_reason", json_string(i->skipped[0] ? i->skipped : "not asked for"));
    MEMBER(o, "expected_qps",
           i->ran && i->expected_qps >= 0 ? real(i->expected_qps, 3) : json_null());
    MEMBER(o, "failed", json_boolean(i->failed));
    MEMBER(o, "clean", json_boolean(i->ran && i->clean));
    MEMBER(o, "insufficient_sample", json_boolean(i->insufficient));
    MEMBER(o, "errors", count(i->errors));
    MEMBER(o, "foreign_jobs", count(i->foreign));
    MEMBER(o, "cost", i->ran ? cost(&i->cost) : json_null());
    return o;
}

static json_t *arrivals(const struct rb_pickup *p)
{
    if (!p->ran)
        return json_null();
    json_t *o = json_object();
    MEMBER(o, "offered_per_sec", real(p->offered, 3));
    MEMBER(o, "jobs_asked", count(p->asked));
    MEMBER(o, "jobs_done", count(p->done));
    MEMBER(o, "errors", count(p->errors));
    MEMBER(o, "duration_s", real(p->seconds, 3));
    MEMBER(o, "pickup_us", latency(p->latency));
    MEMBER(o, "cost", cost(&p->cost));
    return o;
}

static void add_series(json_t *o, const struct rb_options *opt, const struct rb_result *r)
{
    json_t *jobs = json_array();
    json_t *errors = json_array();
    json_t *seconds = json_array();
    json_t *by = json_object();
    for (size_t k = 0; k < r->n_series; k++) {
        (void)json_array_append_new(jobs, count(r->series[k].jobs));
        (void)json_array_append_new(errors, count(r->series[k].errors));
        (void)json_array_append_new(seconds, real(r->series[k].seconds, 3));
    }
    for (size_t p = 0; p < opt->n_percentiles; p++) {
        json_t *one = json_array();
        for (size_t k = 0; k < r->n_series; k++)
            (void)json_array_append_new(one, json_integer(r->series[k].us[p]));
        MEMBER(by, opt->percentile[p].name, one);
    }
    MEMBER(o, "throughput_per_sec", jobs);
    MEMBER(o, "errors_per_sec", errors);
    MEMBER(o, "latency_per_sec_us", by);
    MEMBER(o, "series_seconds", seconds);
}

static json_t *result(const struct rb_options *opt, const struct rb_result *r)
{
    json_t *o = json_object();
    MEMBER(o, "workers", count(r->workers));
    MEMBER(o, "mode", json_string(rb_mode_name[r->mode]));
    MEMBER(o, "total_jobs", count(r->jobs));
    MEMBER(o, "duration_s", real(r->seconds, 3));
    MEMBER(o, "jobs_per_sec", real(r->seconds > 0 ? (double)r->jobs / r->seconds : 0, 1));
    MEMBER(o, "timed_out", json_boolean(r->timed_out));
    add_series(o, opt, r);
    MEMBER(o, "latency_us", latency(r->residence));
    MEMBER(o, "rtt_us", r->mode == RB_POLL ? latency(r->rtt) : json_null());
    MEMBER(o, "errors", count(r->errors));
    MEMBER(o, "idle_poll", idle(r));
    MEMBER(o, "pickup", arrivals(&r->pickup));
    MEMBER(o, "open_loop", arrivals(&r->open));
    MEMBER(o, "foreign_jobs", count(r->foreign));
    MEMBER(o, "lost_jobs", count(r->lost));
    MEMBER(o, "misses", count(r->misses));
    MEMBER(o, "reconnects", count(r->reconnects));
    MEMBER(o, "verified", json_boolean(r->verified));
    MEMBER(o, "interrupted", json_boolean(r->interrupted));
    MEMBER(o, "enqueue_duration_s", real(r->enqueue_s, 3));
    MEMBER(o, "enqueue_jobs_per_sec",
           real(r->enqueue_s > 0 ? (double)r->asked / r->enqueue_s : 0, 1));
    MEMBER(o, "warmup",
           opt->warmup > 0
               ? json_pack("{s:f,s:b}", "duration_s", r->warmup_s, "timed_out", r->warmup_timed_out)
               : json_null());
    MEMBER(o, "cost", cost(&r->cost));
    return o;
}

static json_t *config(const struct rb_server *s)
{
    const struct rb_options *o = s->o;
    char url[512];
    rb_server_url_text(s, url, sizeof(url));
    json_t *c = json_object();
    json_t *workers = json_array();
    json_t *modes = json_array();
    json_t *queues = json_array();
    json_t *percentiles = json_array();
    for (size_t i = 0; i < o->n_workers; i++)
        (void)json_array_append_new(workers, count(o->workers[i]));
    for (size_t i = 0; i < o->n_modes; i++)
        (void)json_array_append_new(modes, json_string(rb_mode_name[o->modes[i]]));
    for (size_t i = 0; i < s->n_queues; i++)
        (void)json_array_append_new(queues, json_string(s->queue[i]));
    for (size_t i = 0; i < o->n_percentiles; i++)
        (void)json_array_append_new(percentiles, json_string(o->percentile[i].name));
    MEMBER(c, "url", json_string(url));
    MEMBER(c, "workers", workers);
    MEMBER(c, "jobs_per_trial", json_integer(o->jobs));
    MEMBER(c, "queues", queues);
    MEMBER(c, "warmup_jobs", json_integer(o->warmup));
    MEMBER(c, "poll_interval_ms", json_integer(o->interval_ms));
    MEMBER(c, "idle_poll_duration_s", json_integer(o->idle_s));
    MEMBER(c, "poll_min_ms", json_integer(o->min_ms));
    MEMBER(c, "poll_max_ms", json_integer(o->max_ms));
    MEMBER(c, "poll_backoff_ms", json_integer(o->backoff_ms));
    MEMBER(c, "poll_profile", json_string(o->resque_profile ? "resque" : "plain"));
    MEMBER(c, "poll_start", json_string(o->start == RB_SPREAD ? "spread" : "together"));
    MEMBER(c, "dynamic_queues", json_boolean(o->dynamic));
    MEMBER(c, "block_timeout_s", json_integer(o->block_s));
    MEMBER(c, "modes", modes);
    MEMBER(c, "namespace", json_string(o->namespace_ ? o->namespace_ : RQ_NAMESPACE));
    MEMBER(c, "payload_size", json_integer(o->payload_size));
    MEMBER(c, "timeout_s", json_integer(o->timeout_s));
    MEMBER(c, "connections", json_integer(o->connections));
    MEMBER(c, "latency_percentiles", percentiles);
    MEMBER(c, "pickup_jobs", json_integer(o->pickup_jobs));
    MEMBER(c, "pickup_gap_ms", json_integer(o->pickup_gap_ms));
    MEMBER(c, "rate", json_integer(o->rate));
    MEMBER(c, "rate_duration_s", json_integer(o->rate_s));
    return c;
}

static void timestamp(char *out, size_t size)
{
    int64_t now = lb_clock_wall();
    struct lb_civil c = lb_civil_of(now / LADE_SECOND);
    (void)snprintf(out, size, "%04d-%02d-%02dT%02d:%02d:%02d.%09lld+00:00", (int)c.year, c.month,
                   c.day, c.hour, c.minute, c.second, (long long)(now % LADE_SECOND));
}

static json_t *host(void)
{
    struct utsname u;
    json_t *o = json_object();
    if (uname(&u) < 0)
        return o;
    MEMBER(o, "name", json_string(u.nodename));
    MEMBER(o, "system", json_sprintf("%s %s %s", u.sysname, u.release, u.machine));
    MEMBER(o, "cpus", json_integer(sysconf(_SC_NPROCESSORS_ONLN)));
    return o;
}

/* The largest resident size so far; null when the system does not say. */
static json_t *memory(void)
{
    char line[128];
    long long kib = -1;
    FILE *f = fopen("/proc/self/status", "re");
    while (f && kib < 0 && fgets(line, sizeof(line), f))
        if (strncmp(line, "VmHWM:", 6) == 0)
            kib = strtoll(line + 6, NULL, 10);
    if (f)
        (void)fclose(f);
    return kib < 0 ? json_null() : json_integer(kib * 1024);
}

static json_t *document(const struct rb_server *s, const char *tag, const struct rb_result *r,
                        size_t n)
{
    char now[48];
    timestamp(now, sizeof(now));
    json_t *o = json_object();
    json_t *results = json_array();
    bool interrupted = rb_interrupted();
    for (size_t i = 0; i < n; i++) {
        (void)json_array_append_new(results, result(s->o, &r[i]));
        interrupted |= r[i].interrupted;
    }
    MEMBER(o, "tag", json_string(tag));
    MEMBER(o, "timestamp", json_string(now));
    MEMBER(o, "tool",
           json_pack("{s:s,s:s,s:o}", "name", "resque-bench", "version", "lade " LADE_VERSION,
                     "max_rss_bytes", memory()));
    MEMBER(o, "server", text_or_null(s->version[0] ? s->version : NULL));
    MEMBER(o, "host", host());
    MEMBER(o, "interrupted", json_boolean(interrupted));
    MEMBER(o, "config", config(s));
    MEMBER(o, "results", results);
    return o;
}

int rb_export(const struct rb_server *s, const char *tag, const struct rb_result *r, size_t n,
              const char *path, lade_err *err)
{
    const size_t flags = JSON_INDENT(2) | JSON_REAL_PRECISION(15);
    json_t *o = document(s, tag, r, n);
    char part[RB_OUTPUT_MAX + 8];
    int rc = 0;
    if (strcmp(path, "-") == 0) {
        bool ok =
            json_dumpf(o, stdout, flags) == 0 && fputc('\n', stdout) != EOF && fflush(stdout) == 0;
        rc = ok ? 0 : lb_fail(err, LADE_EIO, "output", "stdout cannot be written");
    } else if (rb_output_prepare(path, err) < 0) {
        rc = -LADE_EIO;
    } else if (rb_output_is_special(path)) {
        rc = json_dump_file(o, path, flags) == 0
                 ? 0
                 : lb_fail(err, LADE_EIO, "output", "%.200s cannot be written", path);
    } else {
        (void)snprintf(part, sizeof(part), "%s.part", path);
        bool ok = json_dump_file(o, part, flags) == 0 && rename(part, path) == 0;
        rc = ok ? 0 : lb_fail(err, LADE_EIO, "output", "%.200s cannot be written", path);
    }
    json_decref(o);
    return rc;
}
