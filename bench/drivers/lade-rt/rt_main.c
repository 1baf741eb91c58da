/*
 * rt_main.c - table `currency` on lade's runtime: flags and result line
 *
 * `--scenario NAME --set k=v` and its line are lade-bench's contract; `--workload NAME --k v` and its line are those of the
 * concurrency benchmark's other implementations, so that the program runs under that benchmark's own runner too.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/drivers/lade-rt/rt_driver.h"

static const struct {
    const char *name;
    void (*run)(const struct params *, struct result *);
} workloads[] = {
    {"spsc", run_channels},     {"mpsc", run_channels}, {"mpmc", run_channels},
    {"pingpong", run_pingpong}, {"select", run_select}, {"spawn", run_spawn},
    {"cpu", run_cpu},           {"mutex", run_mutex},   {"idle", run_idle},
};

static const char list[] =
    "{\"driver\":\"lade-rt\",\"version\":\"" RT_VERSION
    "\",\"scenarios\":[\"spsc\",\"mpsc\",\"mpmc\","
    "\"pingpong\",\"select\",\"spawn\",\"cpu\",\"mutex\",\"idle-tasks\",\"idle-stacks\"]}";

struct job {
    struct params p;
    struct result r;
    void (*run)(const struct params *, struct result *);
};

static int fail(const char *what, const char *value)
{
    (void)fprintf(stderr, "error: %s%s%s\n", what, value ? ": " : "", value ? value : "");
    return 2;
}

static bool parse_number(const char *text, uint64_t *out)
{
    char *end;
    errno = 0;
    unsigned long long v = strtoull(text, &end, 10);
    if (errno != 0 || end == text || *end || *text == '-')
        return false;
    *out = v;
    return true;
}

static bool set_number(struct params *p, const char *key, uint64_t v)
{
    struct {
        const char *key;
        unsigned *at;
    } field[] = {
        {"threads", &p->threads},     {"capacity", &p->capacity},
        {"producers", &p->producers}, {"consumers", &p->consumers},
        {"workers", &p->workers},     {"tasks", &p->tasks},
        {"rounds", &p->rounds},       {"sample-every", &p->sample_every},
        {"settle-ms", &p->settle_ms},
    };

    if (strcmp(key, "size") == 0 || strcmp(key, "n") == 0) {
        p->size = v;
        return true;
    }
    for (size_t i = 0; i < sizeof(field) / sizeof(field[0]); i++) {
        if (strcmp(key, field[i].key) == 0 && v <= UINT32_MAX) {
            *field[i].at = (unsigned)v;
            return true;
        }
    }
    return false;
}

static bool set_word(struct params *p, const char *key, const char *value)
{
    if (strcmp(key, "workload") == 0) {
        p->workload = value;
    } else if (strcmp(key, "scenario") == 0) {
        p->contract = true;
        p->fibers = strcmp(value, "idle-stacks") == 0;
        p->scenario = value;
        p->workload = strncmp(value, "idle-", 5) == 0 ? "idle" : value;
    } else if (strcmp(key, "variant") == 0) {
        p->own_kernel = strstr(value, "own-kernel") != NULL;
        p->fibers = strstr(value, "fibers") != NULL;
    } else if (strcmp(key, "kernel") == 0) {
        p->own_kernel = strcmp(value, "own") == 0;
        return p->own_kernel || strcmp(value, "shared") == 0;
    } else {
        return false;
    }
    return true;
}

/* "key=value", or "key" and the value apart; 0, or 2 for a usage error. */
static int set(struct params *p, const char *flag, const char *value)
{
    char key[32];
    uint64_t v;
    size_t n = strcspn(flag, "=");
    if (flag[n] == '=')
        value = flag + n + 1;
    if (n >= sizeof(key) || !value)
        return fail("flag without a value", flag);
    memcpy(key, flag, n);
    key[n] = '\0';
    if (strcmp(key, "set") == 0)
        return set(p, value, NULL);
    if (!set_word(p, key, value) && !(parse_number(value, &v) && set_number(p, key, v)))
        return fail("bad flag or value", key);
    return 0;
}

/* --key value, --key=value, or --set key=value; 0, or 2 for a usage error. */
static int parse(int argc, char **argv, struct params *p)
{
    for (int i = 1; i < argc; i++) {
        const char *flag = argv[i] + 2;
        if (strncmp(argv[i], "--", 2) != 0)
            return fail("unexpected argument", argv[i]);
        bool apart = !strchr(flag, '=');
        int rc = set(p, flag, apart && i + 1 < argc ? argv[i + 1] : NULL);
        if (rc != 0)
            return rc;
        i += apart;
    }
    if (!p->workload)
        return fail("--scenario or --workload is required", NULL);
    if (p->size == 0 || p->producers == 0 || p->consumers == 0 || p->workers == 0 ||
        p->tasks == 0 || p->sample_every == 0 || p->threads == 0)
        return fail("numbers must be positive", NULL);
    return 0;
}

static long peak_kb(void)
{
    FILE *f = fopen("/proc/self/status", "r");
    char line[256];
    long kb = 0;
    while (f && fgets(line, sizeof(line), f)) {
        /* NOLINTNEXTLINE(cert-err34-c): the format is the kernel's own */
        if (sscanf(line, "VmHWM: %ld", &kb) == 1)
            break;
    }
    if (f)
        (void)fclose(f);
    return kb;
}

static void print_params(const struct params *p)
{
    printf("\"capacity\":%u,\"producers\":%u,\"consumers\":%u,\"workers\":%u,\"tasks\":%u,"
           "\"rounds\":%u,\"sample-every\":%u,\"settle-ms\":%u",
           p->capacity, p->producers, p->consumers, p->workers, p->tasks, p->rounds,
           p->sample_every, p->settle_ms);
}

static void print_original_latency(const char *key, const struct result *r, double q)
{
    if (r->n_samples == 0)
        printf("\"%s\":null,", key);
    else
        printf("\"%s\":%" PRId64 ",", key, percentile(r, q));
}

static void print_original(const struct params *p, const struct result *r)
{
    printf(
        "{\"impl\":\"lade-rt\",\"workload\":\"%s\",\"status\":\"ok\",\"reason\":\"\",\"threads\":%u,"
        "\"size\":%" PRIu64 ",\"params\":{",
        p->workload, p->threads, p->size);
    print_params(p);
    printf("},\"ops\":%" PRIu64 ",\"wall_ns\":%" PRIu64
           ",\"ops_per_sec\":%.1f,\"checksum\":%" PRIu64 ",",
           r->ops, r->wall_ns, (double)r->ops * 1e9 / (double)r->wall_ns, r->checksum);
    print_original_latency("lat_p50_ns", r, 0.50);
    print_original_latency("lat_p99_ns", r, 0.99);
    print_original_latency("lat_p999_ns", r, 0.999);
    printf("\"peak_rss_kb\":%ld,\"rss_delta_kb\":%" PRId64 ",\"bytes_per_task\":%.1f}\n", peak_kb(),
           r->rss_delta_kb, r->bytes_per_task);
}

/* Microseconds with decimals. */
static void print_latency(const struct result *r)
{
    static const struct {
        const char *name;
        double q;
    } at[] = {{"p50", 0.50}, {"p90", 0.90},   {"p95", 0.95},
              {"p99", 0.99}, {"p999", 0.999}, {"max", 1}};

    if (r->n_samples == 0) {
        printf("\"latency\":null,");
        return;
    }
    printf("\"latency\":{\"count\":%" PRIu64, r->n_samples);
    for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++)
        printf(",\"%s\":%.3f", at[i].name, (double)percentile(r, at[i].q) / 1000);
    printf("},");
}

static void print_contract(const struct params *p, const struct result *r)
{
    double seconds = (double)r->wall_ns / 1e9;
    double rate = (double)r->ops / seconds;
    printf("{\"driver\":\"lade-rt\",\"version\":\"" RT_VERSION "\",\"scenario\":\"%s\","
           "\"params\":{\"n\":%" PRIu64 ",\"threads\":%u,\"kernel\":\"%s\",",
           p->scenario, p->size, p->threads, p->own_kernel ? "own" : "shared");
    print_params(p);
    printf("},\"n\":%" PRIu64 ",\"seconds\":%.9f,\"rate\":%.1f,\"printed_rate\":%.1f,", r->ops,
           seconds, rate, rate);
    print_latency(r);
    printf(
        "\"client_cpu_s\":null,\"rss_bytes\":null,\"server_cpu_s\":null,\"server_commands\":null,"
        "\"errors\":0,\"verified\":{\"count\":%" PRIu64 ",\"checksum\":\"%" PRIu64
        "\"},\"extra\":{",
        r->ops, r->checksum);
    if (strcmp(p->workload, "idle") == 0)
        printf("\"bytes_per_task\":%.1f", r->bytes_per_task);
    printf("}}\n");
}

static int first_task(void *arg)
{
    struct job *j = arg;
    j->run(&j->p, &j->r);
    return 0;
}

int main(int argc, char **argv)
{
    struct job j = {.p = {.threads = 2,
                          .size = 1000000,
                          .capacity = 1024,
                          .producers = 4,
                          .consumers = 4,
                          .workers = 8,
                          .tasks = 256,
                          .rounds = 32,
                          .sample_every = 17,
                          .settle_ms = 200}};
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        (void)puts(list);
        return 0;
    }
    int rc = parse(argc, argv, &j.p);
    if (rc != 0)
        return rc;
    for (size_t i = 0; i < sizeof(workloads) / sizeof(workloads[0]); i++) {
        if (strcmp(workloads[i].name, j.p.workload) == 0)
            j.run = workloads[i].run;
    }
    if (!j.run)
        return fail("no such scenario", j.p.workload);
    lade_rt_opts opts = {.workers = j.p.threads};
    rc = lade_rt_run(&opts, first_task, &j);
    if (rc < 0 || j.r.failed || j.r.wall_ns == 0) {
        (void)fprintf(stderr, "error: the run failed: %d\n", rc);
        return 1;
    }
    (j.p.contract ? print_contract : print_original)(&j.p, &j.r);
    free(j.r.sample);
    return 0;
}
