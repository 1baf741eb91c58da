/* lade_driver.c - lade's own driver: the command line, and the result line of bench/drivers/README.md */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>

#include "base/base.h"
#include "base/clock.h"
#include "bench/drivers/lade/drv.h"

static const struct drv_scenario *const groups[] = {drv_chronos, drv_chasqui, drv_idle, drv_growth,
                                                    drv_flows,   drv_stores,  drv_kill, drv_resque};

int64_t drv_int(const struct drv *d, const char *name, int64_t otherwise)
{
    const json_t *v = json_object_get(d->params, name);
    return json_is_integer(v) ? json_integer_value(v) : otherwise;
}

const char *drv_text(const struct drv *d, const char *name, const char *otherwise)
{
    const char *v = json_string_value(json_object_get(d->params, name));
    return v ? v : otherwise;
}

int drv_fail(struct drv *d, const char *what, const lade_err *err)
{
    if (!d->error[0])
        (void)snprintf(d->error, sizeof(d->error), "%s: %s", what,
                       err ? err->text : "the work was not all done");
    return -1;
}

uint64_t drv_sum(uint64_t n)
{
    return n % 2 ? n * ((n - 1) / 2) : n / 2 * (n - 1);
}

void drv_nap_until(int64_t mono_ns)
{
    struct timespec t = {mono_ns / LADE_SECOND, mono_ns % LADE_SECOND};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
        ;
}

static double own_cpu(void)
{
    struct rusage u;
    (void)getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

void drv_begin(struct drv *d)
{
    if (d->on_redis)
        (void)bn_info_usage(&d->info, &d->begin.usage);
    d->begin.cpu_s = own_cpu();
    d->begin.at = lb_clock_mono();
}

void drv_end(struct drv *d)
{
    d->end.at = lb_clock_mono();
    d->end.cpu_s = own_cpu();
    if (d->on_redis)
        (void)bn_info_usage(&d->info, &d->end.usage);
    if (d->result.seconds <= 0)
        d->result.seconds = (double)(d->end.at - d->begin.at) / 1e9;
}

void drv_extra(struct drv *d, const char *name, double v)
{
    (void)json_object_set_new(d->result.extra, name, json_real(v));
}

static json_t *describe_latency(const struct lb_hdr *h)
{
    static const struct {
        const char *name;
        double p;
    } at[] = {{"p50", 0.5}, {"p90", 0.9}, {"p95", 0.95}, {"p99", 0.99}, {"p999", 0.999}};

    if (!h || lb_hdr_count(h) == 0)
        return json_null();
    json_t *o = json_pack("{s:I,s:f,s:I}", "count", (json_int_t)lb_hdr_count(h), "max",
                          (double)lb_hdr_max(h) / 1e3, "overflow", (json_int_t)lb_hdr_overflow(h));
    for (size_t i = 0; i < LB_ARRAY_LEN(at); i++)
        (void)json_object_set_new(o, at[i].name, json_real((double)lb_hdr_at(h, at[i].p) / 1e3));
    return o;
}

/* The window's part of what was metered. */
static json_t *meter(const struct drv *d, double begin, double end)
{
    return json_real((end - begin) * (d->part > 0 ? d->part : 1));
}

static int print_result(struct drv *d)
{
    const struct drv_result *r = &d->result;
    double rate = (double)r->n / r->seconds;
    struct rusage u;
    char check[24];
    (void)getrusage(RUSAGE_SELF, &u);
    (void)snprintf(check, sizeof(check), "%" PRIu64, r->check);
    json_t *o = json_pack("{s:s,s:s,s:s,s:O,s:I,s:f}", "driver", "lade", "version", lade_version(),
                          "scenario", d->scenario, "params", d->params, "n", (json_int_t)r->n,
                          "seconds", r->seconds);
    if (!o)
        return 1;
    (void)json_object_set_new(o, "rate", r->no_rate ? json_null() : json_real(rate));
    (void)json_object_set_new(o, "printed_rate",
                              r->no_rate ? json_null()
                                         : json_real(r->printed_rate > 0 ? r->printed_rate : rate));
    (void)json_object_set_new(o, "latency", describe_latency(r->hdr));
    (void)json_object_set_new(o, "client_cpu_s", meter(d, d->begin.cpu_s, d->end.cpu_s));
    (void)json_object_set_new(o, "rss_bytes", json_integer((json_int_t)u.ru_maxrss * 1024));
    (void)json_object_set_new(o, "server_cpu_s",
                              d->on_redis ? meter(d, d->begin.usage.cpu_s, d->end.usage.cpu_s)
                                          : json_null());
    (void)json_object_set_new(
        o, "server_commands",
        d->on_redis ? meter(d, (double)d->begin.usage.commands, (double)d->end.usage.commands)
                    : json_null());
    (void)json_object_set_new(o, "errors", json_integer(0));
    (void)json_object_set_new(
        o, "verified", json_pack("{s:I,s:s}", "count", (json_int_t)r->count, "checksum", check));
    (void)json_object_set(o, "extra", r->extra);
    int rc = json_dumpf(o, stdout, JSON_COMPACT | JSON_REAL_PRECISION(12));
    (void)putchar('\n');
    json_decref(o);
    return rc == 0 ? 0 : 1;
}

static int list(void)
{
    json_t *names = json_array();
    for (size_t g = 0; g < LB_ARRAY_LEN(groups); g++) {
        for (const struct drv_scenario *s = groups[g]; s->name; s++)
            (void)json_array_append_new(names, json_string(s->name));
    }
    json_t *o =
        json_pack("{s:s,s:s,s:o}", "driver", "lade", "version", lade_version(), "scenarios", names);
    (void)json_dumpf(o, stdout, JSON_COMPACT);
    (void)putchar('\n');
    json_decref(o);
    return 0;
}

static bool set_param(struct drv *d, const char *pair)
{
    char key[64];
    char *end = NULL;
    const char *eq = strchr(pair, '=');
    if (!eq || eq == pair || (size_t)(eq - pair) >= sizeof(key))
        return false;
    (void)snprintf(key, sizeof(key), "%.*s", (int)(eq - pair), pair);
    if (strcmp(key, "url") == 0) {
        (void)snprintf(d->url, sizeof(d->url), "%s", eq + 1);
        return true;
    }
    errno = 0;
    long long v = strtoll(eq + 1, &end, 10);
    bool number = errno == 0 && end != eq + 1 && !*end;
    return json_object_set_new(d->params, key, number ? json_integer(v) : json_string(eq + 1)) == 0;
}

static drv_scenario_fn find_in(const struct drv_scenario *s, const char *name)
{
    while (s->name && strcmp(s->name, name) != 0)
        s++;
    return s->run;
}

static drv_scenario_fn find_scenario(const char *name, bool raw)
{
    drv_scenario_fn found = raw ? find_in(drv_raw, name) : NULL;
    for (size_t g = 0; g < LB_ARRAY_LEN(groups) && !raw && !found; g++)
        found = find_in(groups[g], name);
    return found;
}

static int complain(const char *what, const char *value)
{
    (void)fprintf(stderr, "lade-driver: %s: %s\n", what, value);
    return 2;
}

static int run(struct drv *d, drv_scenario_fn fn)
{
    const char *sync = drv_text(d, "sync", NULL);
    d->on_redis = strncmp(d->url, "sqlite:", 7) != 0;
    if (sync && !d->on_redis) {
        size_t n = strlen(d->url);
        (void)snprintf(d->url + n, sizeof(d->url) - n, "?synchronous=%s", sync);
    }
    if (d->on_redis && !bn_info_open(&d->info, d->url))
        return complain("no server at", d->url);
    (void)prctl(PR_SET_TIMERSLACK, 1); /* the open loop sends when it is due */
    int rc = fn(d);
    if (rc == 0)
        rc = print_result(d);
    else
        (void)fprintf(stderr, "lade-driver: %s\n", d->error);
    if (d->on_redis)
        bn_info_close(&d->info);
    if (d->unsupported)
        return 2;
    return rc == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    struct drv d = {.params = json_object(), .info = {.fd = -1}};
    d.result.extra = json_object();
    int rc = 0;
    bool listing = argc == 2 && strcmp(argv[1], "--list") == 0;
    for (int i = 1; i < argc && rc == 0 && !listing; i++) {
        if (i + 1 == argc)
            rc = complain("an option without a value", argv[i]);
        else if (strcmp(argv[i], "--scenario") == 0)
            d.scenario = argv[++i];
        else if (strcmp(argv[i], "--set") == 0)
            rc = set_param(&d, argv[++i]) ? 0 : complain("not KEY=VALUE", argv[i]);
        else
            rc = complain("no such option", argv[i]);
    }
    drv_scenario_fn fn =
        rc == 0 && d.scenario ? find_scenario(d.scenario, drv_int(&d, "raw", 0) > 0) : NULL;
    if (listing)
        rc = list();
    else if (rc == 0 && !fn)
        rc = complain("no such scenario", d.scenario ? d.scenario : "(none)");
    else if (rc == 0 && !d.url[0])
        rc = complain("missing", "--set url=...");
    else if (rc == 0)
        rc = run(&d, fn);
    lb_hdr_free(d.result.hdr);
    json_decref(d.result.extra);
    json_decref(d.params);
    return rc;
}
