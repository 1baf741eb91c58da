/*
 * drv_growth.c - table growth: fills a store to a depth, then times single operations on it
 *
 * Parameters: n jobs in state `state` (ready, scheduled, dead), over `queues` queues, with `keys` = 1 each with a unique key of its
 * own. Operations work on the queue "default", the first. Medians of ROUNDS.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/base.h"
#include "base/clock.h"
#include "bench/drivers/lade/drv.h"

#define ROUNDS  51
#define BATCH   1000
#define PAYLOAD 100
#define SLOTS   64

struct probe {
    lade *q;
    lade_id last;
    lade_err err;
};

typedef int (*op_fn)(struct probe *p);

static int enqueue_one(struct probe *p)
{
    return lade_enqueue(p->q, &(lade_job_spec){.kind = "bench", .payload = LADE_STR("{}")},
                        &p->last, &p->err);
}

static int show_one(struct probe *p)
{
    lade_job_view *v = NULL;
    int rc = lade_job_get(p->q, "default", p->last.text, &v, &p->err);
    lade_job_view_free(v);
    return rc;
}

static int act_on_one(struct probe *p, enum lade_job_verb verb)
{
    int rc = enqueue_one(p);
    const char *id = p->last.text;
    return rc < 0 ? rc : lade_job_act(p->q, verb, "default", &id, 1, NULL, &p->err);
}

static int cancel_one(struct probe *p)
{
    return act_on_one(p, LADE_JOB_CANCEL);
}

static int remove_one(struct probe *p)
{
    return act_on_one(p, LADE_JOB_REMOVE);
}

static int count_all(struct probe *p)
{
    lade_queue_info info;
    return lade_queue_get(p->q, "default", &info, &p->err);
}

static int list_page(struct probe *p)
{
    lade_cursor cursor = {0};
    lade_job_view *v[20];
    size_t n = 0;
    int rc = lade_job_list(p->q, "default", LADE_STATE_READY, &cursor, 20, v, &n, &p->err);
    for (size_t i = 0; i < n; i++)
        lade_job_view_free(v[i]);
    return rc;
}

static int pause_and_resume(struct probe *p)
{
    int rc = lade_queue_pause(p->q, "default", &p->err);
    return rc < 0 ? rc : lade_queue_resume(p->q, "default", &p->err);
}

static lade_outcome stop_after_one(lade_job *job, void *ctx)
{
    (void)job;
    lade_worker_stop(ctx);
    return LADE_OK;
}

/* A worker that starts, takes, runs and settles one job, hands nothing back and leaves. */
static int work_one(struct probe *p)
{
    lade_worker *w;
    lade_worker_config config = {.concurrency = 1, .no_signals = true, .prefetch_max = -1};
    int rc = enqueue_one(p);
    if (rc >= 0)
        rc = lade_worker_open(&w, p->q, &config, &p->err);
    if (rc < 0)
        return rc;
    rc = lade_worker_handle(w, "*", stop_after_one, w);
    if (rc >= 0)
        rc = lade_worker_run(w, &p->err);
    lade_worker_close(w);
    return rc;
}

static const struct {
    const char *name;
    op_fn op;
} ops[] = {
    {"enqueue_us", enqueue_one},
    {"show_us", show_one},
    {"enqueue_cancel_us", cancel_one},
    {"enqueue_remove_us", remove_one},
    {"counts_us", count_all},
    {"list20_us", list_page},
    {"pause_resume_us", pause_and_resume},
    {"work_one_us", work_one},
};

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static int time_ops(struct drv *d, struct probe *p)
{
    if (enqueue_one(p) < 0)
        return drv_fail(d, "enqueue", &p->err);
    for (size_t i = 0; i < LB_ARRAY_LEN(ops); i++) {
        double us[ROUNDS];
        for (size_t k = 0; k < ROUNDS; k++) {
            int64_t began = lb_clock_mono();
            if (ops[i].op(p) < 0)
                return drv_fail(d, ops[i].name, &p->err);
            us[k] = (double)(lb_clock_mono() - began) / 1e3;
        }
        qsort(us, ROUNDS, sizeof(us[0]), compare_doubles);
        drv_extra(d, ops[i].name, us[ROUNDS / 2]);
    }
    return 0;
}

/* Bytes that the store takes: the server's memory, or the file with its log. */
static double store_bytes(struct drv *d)
{
    static const char *const suffix[] = {"", "-wal"};
    struct bn_usage usage = {0};
    double total = 0;
    if (d->on_redis)
        return bn_info_usage(&d->info, &usage) ? (double)usage.memory : 0;
    for (size_t i = 0; i < LB_ARRAY_LEN(suffix); i++) {
        char path[400];
        struct stat st;
        const char *file = d->url + strlen("sqlite:");
        (void)snprintf(path, sizeof(path), "%.*s%s", (int)strcspn(file, "?"), file, suffix[i]);
        if (stat(path, &st) == 0)
            total += (double)st.st_size;
    }
    return total;
}

/* One batch and the names in it. */
struct batch {
    lade_job_spec spec[BATCH];
    char payload[BATCH][PAYLOAD + 64];
    char key[BATCH][24];
    char queue[BATCH][24];
};

static void write_job(struct drv *d, struct batch *b, size_t k, uint64_t number)
{
    uint64_t queue = number % (uint64_t)drv_int(d, "queues", 1);
    size_t size = drv_pad_payload(b->payload[k], sizeof(b->payload[k]), 0, number, PAYLOAD);
    (void)snprintf(b->queue[k], sizeof(b->queue[k]), queue == 0 ? "default" : "q%llu",
                   (unsigned long long)queue);
    b->spec[k] =
        (lade_job_spec){.kind = "bench", .queue = b->queue[k], .payload = {b->payload[k], size}};
    if (strcmp(drv_text(d, "state", "ready"), "scheduled") == 0)
        b->spec[k].in = LADE_DAY + (int64_t)(number % 86400) * LADE_SECOND;
    if (drv_int(d, "keys", 0) > 0) {
        (void)snprintf(b->key[k], sizeof(b->key[k]), "k%llu", (unsigned long long)number);
        b->spec[k].unique.key = (lade_bytes){b->key[k], strlen(b->key[k])};
    }
}

static int fill(struct drv *d, lade *q, struct batch *b, uint64_t n)
{
    for (uint64_t i = 0; i < n;) {
        size_t m = LB_MIN((size_t)(n - i), (size_t)BATCH);
        lade_err err;
        for (size_t k = 0; k < m; k++) {
            write_job(d, b, k, i + k);
            d->result.check += i + k;
        }
        int rc = lade_enqueue_many(q, b->spec, m, NULL, NULL, &err);
        if (rc != 0)
            return drv_fail(d, "fill", rc < 0 ? &err : NULL);
        i += m;
    }
    return 0;
}

static lade_outcome die(lade_job *job, void *ctx)
{
    (void)job;
    drv_ran(ctx, 0);
    return LADE_DEAD;
}

/* Dead jobs are made as they come about: by handlers. */
static int kill_all(struct drv *d, uint64_t n)
{
    struct drv_sink s;
    struct drv_worker w = {0};
    if (!drv_sink_init(&s, 0, n, false))
        return drv_fail(d, "out of memory", NULL);
    int rc = drv_worker_open(d, &w, SLOTS, die, &s);
    if (rc == 0)
        rc = drv_worker_start(d, &w);
    if (rc == 0 && !drv_sink_wait(&s))
        rc = drv_fail(d, "work", NULL);
    if (rc == 0)
        rc = drv_wait_settled(d, w.q);
    return drv_worker_stop(d, &w) < 0 ? -1 : rc;
}

static int count_jobs(struct drv *d, lade *q, uint64_t *out)
{
    enum lade_state state = (enum lade_state)lade_state_parse(drv_text(d, "state", "ready"));
    lade_queue_info *list = NULL;
    lade_err err;
    size_t n = 0;
    if (lade_queue_list(q, &list, &n, &err) < 0)
        return drv_fail(d, "count", &err);
    for (size_t i = 0; i < n; i++)
        *out += list[i].count[state];
    lade_free(list);
    return 0;
}

static int run_growth(struct drv *d)
{
    struct probe p = {0};
    struct batch *b = calloc(1, sizeof(*b));
    uint64_t n = (uint64_t)drv_int(d, "n", 1000);
    (void)json_object_set_new(d->params, "keep", json_integer((json_int_t)n + BATCH));
    if (!b)
        return drv_fail(d, "out of memory", NULL);
    int rc = drv_open(d, &p.q);
    double before = store_bytes(d);
    drv_begin(d);
    if (rc == 0)
        rc = fill(d, p.q, b, n);
    if (rc == 0 && strcmp(drv_text(d, "state", "ready"), "dead") == 0)
        rc = kill_all(d, n);
    drv_end(d);
    (void)json_object_del(d->params, "keep");
    if (rc == 0)
        rc = count_jobs(d, p.q, &d->result.count);
    drv_extra(d, "bytes_per_job", (store_bytes(d) - before) / (double)n);
    if (rc == 0)
        rc = time_ops(d, &p);
    d->result.n = n;
    lade_close(p.q);
    free(b);
    return rc;
}

const struct drv_scenario drv_growth[] = {{"growth", run_growth}, {NULL, NULL}};
