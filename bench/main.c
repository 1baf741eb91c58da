/*
 * lade-bench - what lade does on this machine, both stores, work verified
 *
 * Runs are interleaved between the stores, a warm-up is thrown away, and medians are printed with the lowest and highest
 * run. The Redis store gets a private server on a Unix socket without persistence; SQLite a file below the working
 * directory's build/ or $TMPDIR, synchronous=NORMAL.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "bench/scenario.h"
#include "support/redis_server.h"
#include "support/tmpdir.h"

#define REPEATS_MAX 31
#define STORES      2

static const struct {
    const char *name;
    const char *text;
    lb_scenario_fn run;
    bool keeps;    /* leaves jobs for the next one */
    size_t divide; /* slow per job: fewer of them */
} scenarios[] = {
    {"enqueue-batch", "enqueue, 100 jobs a call", lb_enqueue_batch, true, 1},
    {"work", "work: take, run, settle", lb_work, false, 1},
    {"enqueue-single", "enqueue, 1 job a call, 1 thread", lb_enqueue_single, false, 10},
    {"enqueue-shared", "enqueue, 1 job a call, 4 threads", lb_enqueue_shared, false, 10},
    {"end-to-end", "producer in batches + worker", lb_end_to_end, false, 1},
};

#define SCENARIOS (sizeof(scenarios) / sizeof(scenarios[0]))

struct options {
    size_t jobs, payload, waiting;
    int concurrency, repeats;
    bool json;
};

struct store {
    const char *name;
    char url[512];
    struct lb_bench bench;
    double rate[SCENARIOS][REPEATS_MAX];
    double bytes_per_job;
    struct lb_depth shallow[LB_DEPTH_OPS], deep[LB_DEPTH_OPS];
};

static int usage(int code)
{
    (void)fprintf(
        code ? stderr : stdout,
        "usage: lade-bench [options]\n\n"
        "Measures enqueue, work and end to end on SQLite and on a private Redis, checks that all work was\n"
        "done, then the cost of single operations and the memory of a job at depth.\n\n"
        "  --jobs N         jobs of one run (default 100000)\n"
        "  --payload N      bytes of one payload (default 100)\n"
        "  --concurrency N  slots of the worker (default 64)\n"
        "  --repeats N      measured runs after one warm-up, 1 to %d (default 5)\n"
        "  --waiting N      jobs waiting for the depth table; 0 leaves it out (default 1000000)\n"
        "  --quick          --jobs 20000 --repeats 3 --waiting 50000\n"
        "  -o json          one JSON line for each figure\n\n"
        "example: lade-bench --jobs 200000 --repeats 9\n",
        REPEATS_MAX);
    return code;
}

static bool parse_size(const char *text, size_t min, size_t max, size_t *out)
{
    char *end = NULL;
    unsigned long long v = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || v < min || v > max) {
        (void)fprintf(stderr, "lade-bench: '%s' is not a number within %zu to %zu\n", text, min,
                      max);
        return false;
    }
    *out = (size_t)v;
    return true;
}

static int parse_options(int argc, char **argv, struct options *o)
{
    static const struct option longs[] = {{"jobs", required_argument, NULL, 'j'},
                                          {"payload", required_argument, NULL, 'p'},
                                          {"concurrency", required_argument, NULL, 'c'},
                                          {"repeats", required_argument, NULL, 'r'},
                                          {"waiting", required_argument, NULL, 'w'},
                                          {"quick", no_argument, NULL, 'q'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    *o = (struct options){
        .jobs = 100000, .payload = 100, .waiting = 1000000, .concurrency = 64, .repeats = 5};
    size_t n = 0;
    for (int c; (c = getopt_long(argc, argv, "o:h", longs, NULL)) >= 0;) {
        bool good = true;
        if (c == 'j')
            good = parse_size(optarg, 1000, 100000000, &o->jobs);
        else if (c == 'p')
            good = parse_size(optarg, 24, 65536, &o->payload);
        else if (c == 'w')
            good = parse_size(optarg, 0, 100000000, &o->waiting);
        else if (c == 'c' && (good = parse_size(optarg, 1, 10000, &n)))
            o->concurrency = (int)n;
        else if (c == 'r' && (good = parse_size(optarg, 1, REPEATS_MAX, &n)))
            o->repeats = (int)n;
        else if (c == 'q')
            *o = (struct options){
                .jobs = 20000, .payload = 100, .waiting = 50000, .concurrency = 64, .repeats = 3};
        else if (c == 'o')
            o->json = good = strcmp(optarg, "json") == 0;
        else if (c == 'h')
            exit(usage(0));
        else
            good = false;
        if (!good)
            return usage(2);
    }
    return optind < argc ? usage(2) : 0;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* One run; the store is empty before, and after unless the scenario leaves jobs for the next. */
static bool run_once(struct store *s, size_t k, const struct options *o, double *rate)
{
    s->bench.jobs = o->jobs / scenarios[k].divide;
    if (scenarios[k].run == lb_work) /* drains what enqueue-batch left */
        s->bench.jobs = o->jobs;
    *rate = scenarios[k].run(&s->bench);
    if (*rate < 0) {
        (void)fprintf(stderr, "lade-bench: %s on %s: %s\n", scenarios[k].name, s->name,
                      s->bench.error);
        return false;
    }
    return scenarios[k].keeps || lb_empty(&s->bench);
}

static bool measure_rates(struct store *store, const struct options *o)
{
    for (int r = -1; r < o->repeats; r++) { /* -1 warms up */
        for (size_t i = 0; i < STORES; i++) {
            struct store *s = &store[(i + (size_t)(r + 1)) % STORES];
            for (size_t k = 0; k < SCENARIOS; k++) {
                double rate = 0;
                if (isatty(STDERR_FILENO))
                    (void)fprintf(stderr, "\r\033[Krun %d of %d: %s on %s", r + 1, o->repeats,
                                  scenarios[k].name, s->name);
                if (!run_once(s, k, o, &rate))
                    return false;
                if (r >= 0)
                    s->rate[k][r] = rate;
            }
        }
    }
    if (isatty(STDERR_FILENO))
        (void)fprintf(stderr, "\r\033[K");
    for (size_t i = 0; i < STORES; i++) {
        for (size_t k = 0; k < SCENARIOS; k++)
            qsort(store[i].rate[k], (size_t)o->repeats, sizeof(double), compare_doubles);
    }
    return true;
}

static double file_bytes(const char *url)
{
    static const char *const suffix[] = {"", "-wal"};
    double total = 0;
    for (size_t i = 0; i < 2; i++) {
        char path[600];
        struct stat st;
        (void)snprintf(path, sizeof(path), "%s%s", url + strlen("sqlite:"), suffix[i]);
        if (stat(path, &st) == 0)
            total += (double)st.st_size;
    }
    return total;
}

static double server_bytes(const struct ts_redis *r)
{
    char reply[8192];
    if (!ts_redis_ask(r, "INFO memory", reply, sizeof(reply)))
        return -1;
    const char *used = strstr(reply, "used_memory:");
    return used ? strtod(used + strlen("used_memory:"), NULL) : -1;
}

static bool measure_depths(struct store *store, const struct ts_redis *r, const struct options *o)
{
    for (size_t i = 0; i < STORES && o->waiting > 0; i++) {
        struct store *s = &store[i];
        bool file = i == 0;
        if (!lb_measure_depth(&s->bench, 1000, s->shallow))
            return (void)fprintf(stderr, "lade-bench: %s\n", s->bench.error), false;
        double before = file ? file_bytes(s->url) : server_bytes(r);
        if (!lb_measure_depth(&s->bench, o->waiting, s->deep))
            return (void)fprintf(stderr, "lade-bench: %s\n", s->bench.error), false;
        s->bytes_per_job =
            ((file ? file_bytes(s->url) : server_bytes(r)) - before) / (double)(o->waiting - 1000);
    }
    return true;
}

static void print_machine(void)
{
    struct utsname u;
    char line[256];
    char model[128] = "unknown";
    FILE *f = fopen("/proc/cpuinfo", "re");
    while (f && fgets(line, sizeof(line), f)) {
        if (sscanf(line, "model name : %127[^\n]", model) == 1)
            break;
    }
    if (f)
        (void)fclose(f);
    double load[1] = {0};
    (void)getloadavg(load, 1);
    (void)uname(&u);
    (void)printf("lade %s, %s, %ld CPUs, Linux %s, load %.2f, compiler %s\n", lade_version(), model,
                 sysconf(_SC_NPROCESSORS_ONLN), u.release, load[0], __VERSION__);
}

static void print_tables(const struct store *store, const struct options *o)
{
    print_machine();
    (void)printf(
        "%zu jobs a run (a tenth of it for one job a call), payload %zu bytes, %d slots, median of %d (lowest - highest), jobs/s\n\n",
        o->jobs, o->payload, o->concurrency, o->repeats);
    (void)printf("%-34s %32s %32s\n", "", store[0].name, store[1].name);
    for (size_t k = 0; k < SCENARIOS; k++) {
        (void)printf("%-34s", scenarios[k].text);
        for (size_t i = 0; i < STORES; i++) {
            const double *r = store[i].rate[k];
            char cell[64];
            (void)snprintf(cell, sizeof(cell), "%.0f (%.0f - %.0f)", r[o->repeats / 2], r[0],
                           r[o->repeats - 1]);
            (void)printf(" %32s", cell);
        }
        (void)printf("\n");
    }
    if (o->waiting == 0)
        return;
    (void)printf("\nbytes for each waiting job:        %32.0f %32.0f\n", store[0].bytes_per_job,
                 store[1].bytes_per_job);
    (void)printf("\nmedian us of one operation, with 1000 and with %zu jobs waiting\n\n%-34s",
                 o->waiting, "");
    (void)printf(" %32s %32s\n", store[0].name, store[1].name);
    for (size_t k = 0; k < LB_DEPTH_OPS; k++) {
        (void)printf("%-34s", store[0].deep[k].name);
        for (size_t i = 0; i < STORES; i++) {
            char cell[64];
            (void)snprintf(cell, sizeof(cell), "%.0f -> %.0f", store[i].shallow[k].us,
                           store[i].deep[k].us);
            (void)printf(" %32s", cell);
        }
        (void)printf("\n");
    }
}

static void print_json(const struct store *store, const struct options *o)
{
    for (size_t i = 0; i < STORES; i++) {
        for (size_t k = 0; k < SCENARIOS; k++) {
            const double *r = store[i].rate[k];
            (void)printf(
                "{\"store\":\"%s\",\"scenario\":\"%s\",\"jobs\":%zu,\"payload\":%zu,\"rate\":%.0f,\"low\":%.0f,\"high\":%.0f}\n",
                store[i].name, scenarios[k].name, o->jobs / scenarios[k].divide, o->payload,
                r[o->repeats / 2], r[0], r[o->repeats - 1]);
        }
        for (size_t k = 0; k < LB_DEPTH_OPS && o->waiting > 0; k++)
            (void)printf(
                "{\"store\":\"%s\",\"op\":\"%s\",\"waiting\":%zu,\"us_at_1000\":%.1f,\"us\":%.1f}\n",
                store[i].name, store[i].deep[k].name, o->waiting, store[i].shallow[k].us,
                store[i].deep[k].us);
        if (o->waiting > 0)
            (void)printf("{\"store\":\"%s\",\"bytes_per_waiting_job\":%.0f}\n", store[i].name,
                         store[i].bytes_per_job);
    }
}

int main(int argc, char **argv)
{
    struct options o;
    int rc = parse_options(argc, argv, &o);
    if (rc != 0)
        return rc;
    static struct store store[STORES] = {{.name = "sqlite"}, {.name = "redis"}};
    struct ts_tmpdir dir;
    struct ts_redis redis = {0};
    if (!ts_tmpdir_make(&dir))
        return EXIT_FAILURE;
    bool good = ts_redis_start(&redis, NULL);
    (void)snprintf(store[0].url, sizeof(store[0].url), "sqlite:%s/bench.db", dir.path);
    (void)snprintf(store[1].url, sizeof(store[1].url), "%s", redis.url);
    for (size_t i = 0; i < STORES; i++)
        store[i].bench = (struct lb_bench){
            .url = store[i].url, .payload = o.payload, .concurrency = o.concurrency};
    good = good && measure_rates(store, &o) && measure_depths(store, &redis, &o);
    if (good && o.json)
        print_json(store, &o);
    else if (good)
        print_tables(store, &o);
    ts_redis_stop(&redis);
    ts_tmpdir_remove(&dir);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
