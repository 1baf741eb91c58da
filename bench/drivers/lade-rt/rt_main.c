/* rt_main.c - the concurrency benchmark's program for lade-rt: flags and the JSON line as the other implementations have them */
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

    if (strcmp(key, "size") == 0) {
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

/* --key value or --key=value; 0, or 2 for a usage error. */
static int parse(int argc, char **argv, struct params *p)
{
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "--", 2) != 0)
            return fail("unexpected argument", argv[i]);
        char key[32];
        const char *flag = argv[i] + 2;
        size_t n = strcspn(flag, "=");
        const char *value = flag[n] == '=' ? flag + n + 1 : i + 1 < argc ? argv[++i] : NULL;
        if (n >= sizeof(key) || !value)
            return fail("flag without a value", flag);
        memcpy(key, flag, n);
        key[n] = '\0';
        uint64_t v;
        if (strcmp(key, "workload") == 0)
            p->workload = value;
        else if (strcmp(key, "variant") == 0) {
            p->own_kernel = strstr(value, "own-kernel") != NULL;
            p->fibers = strstr(value, "fibers") != NULL;
        } else if (!parse_number(value, &v) || !set_number(p, key, v))
            return fail("bad flag or value", key);
    }
    if (!p->workload)
        return fail("--workload is required", NULL);
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

static void print_latency(const char *key, int64_t ns)
{
    if (ns < 0)
        printf("\"%s\":null,", key);
    else
        printf("\"%s\":%" PRId64 ",", key, ns);
}

static void print(const struct job *j)
{
    const struct params *p = &j->p;
    const struct result *r = &j->r;
    printf(
        "{\"impl\":\"lade-rt\",\"workload\":\"%s\",\"status\":\"ok\",\"reason\":\"\",\"threads\":%u,"
        "\"size\":%" PRIu64 ",\"params\":{\"capacity\":%u,\"producers\":%u,\"consumers\":%u,"
        "\"workers\":%u,\"tasks\":%u,\"rounds\":%u,\"sample-every\":%u,\"settle-ms\":%u},",
        p->workload, p->threads, p->size, p->capacity, p->producers, p->consumers, p->workers,
        p->tasks, p->rounds, p->sample_every, p->settle_ms);
    printf("\"ops\":%" PRIu64 ",\"wall_ns\":%" PRIu64 ",\"ops_per_sec\":%.1f,\"checksum\":%" PRIu64
           ",",
           r->ops, r->wall_ns, r->wall_ns ? (double)r->ops * 1e9 / (double)r->wall_ns : 0.0,
           r->checksum);
    print_latency("lat_p50_ns", r->p50);
    print_latency("lat_p99_ns", r->p99);
    print_latency("lat_p999_ns", r->p999);
    printf("\"peak_rss_kb\":%ld,\"rss_delta_kb\":%" PRId64 ",\"bytes_per_task\":%.1f}\n", peak_kb(),
           r->rss_delta_kb, r->bytes_per_task);
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
                          .settle_ms = 200},
                    .r = {.p50 = -1, .p99 = -1, .p999 = -1}};
    int rc = parse(argc, argv, &j.p);
    if (rc != 0)
        return rc;
    for (size_t i = 0; i < sizeof(workloads) / sizeof(workloads[0]); i++) {
        if (strcmp(workloads[i].name, j.p.workload) == 0)
            j.run = workloads[i].run;
    }
    if (!j.run)
        return fail("no such workload", j.p.workload);
    lade_rt_opts opts = {.workers = j.p.threads};
    rc = lade_rt_run(&opts, first_task, &j);
    if (rc < 0 || j.r.failed) {
        (void)fprintf(stderr, "error: the run failed: %d\n", rc);
        return 1;
    }
    print(&j);
    return 0;
}
