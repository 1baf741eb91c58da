/* depth.c - what single operations cost while many jobs wait: nothing may grow with the depth */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "bench/scenario.h"

#define ROUNDS 51

struct probe {
    lade *q;
    lade_id last; /* a job in the middle of the queue */
    lade_err err;
};

typedef int (*op_fn)(struct probe *p);

static int enqueue_one(struct probe *p)
{
    return lade_enqueue(p->q, &(lade_job_spec){.kind = "bench", .payload = LADE_STR("0 ")},
                        &p->last, &p->err);
}

static int show_one(struct probe *p)
{
    lade_job_view *v = NULL;
    int rc = lade_job_get(p->q, "default", p->last.text, &v, &p->err);
    lade_job_view_free(v);
    return rc;
}

static int cancel_one(struct probe *p)
{
    int rc = enqueue_one(p);
    const char *id = p->last.text;
    return rc < 0 ? rc : lade_job_act(p->q, LADE_JOB_CANCEL, "default", &id, 1, NULL, &p->err);
}

static int remove_one(struct probe *p)
{
    int rc = enqueue_one(p);
    const char *id = p->last.text;
    return rc < 0 ? rc : lade_job_act(p->q, LADE_JOB_REMOVE, "default", &id, 1, NULL, &p->err);
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
    int rc = lade_worker_open(&w, p->q, &config, &p->err);
    if (rc < 0)
        return rc;
    rc = lade_worker_handle(w, "bench", stop_after_one, w);
    if (rc >= 0)
        rc = lade_worker_run(w, &p->err);
    lade_worker_close(w);
    return rc;
}

static const struct {
    const char *name;
    op_fn op;
} ops[LB_DEPTH_OPS] = {
    {"enqueue", enqueue_one},
    {"show by id", show_one},
    {"enqueue + cancel", cancel_one},
    {"enqueue + remove", remove_one},
    {"counts", count_all},
    {"list 20", list_page},
    {"pause + resume", pause_and_resume},
    {"worker for one job", work_one},
};

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Median of ROUNDS in us; < 0 when one failed. */
static double time_op(struct probe *p, op_fn op)
{
    double us[ROUNDS];
    for (size_t i = 0; i < ROUNDS; i++) {
        int64_t began = lb_clock_mono();
        if (op(p) < 0)
            return -1;
        us[i] = (double)(lb_clock_mono() - began) / 1e3;
    }
    qsort(us, ROUNDS, sizeof(us[0]), compare_doubles);
    return us[ROUNDS / 2];
}

/* Brings the queue to `waiting` ready jobs. */
static int fill(struct probe *p, struct lb_bench *b, size_t waiting)
{
    lade_queue_info info = {0};
    int rc = lade_queue_get(p->q, "default", &info, &p->err);
    if (rc < 0)
        return rc;
    size_t there = rc == 0 ? info.count[LADE_STATE_READY] : 0;
    char *payload = calloc(1, b->payload + 1);
    lade_job_spec *spec = calloc(1000, sizeof(*spec));
    rc = payload && spec ? 0 : -LADE_ENOMEM;
    while (there < waiting && rc >= 0) {
        size_t n = waiting - there < 1000 ? waiting - there : 1000;
        for (size_t i = 0; i < n; i++)
            spec[i] = (lade_job_spec){.kind = "bench", .payload = {payload, b->payload}};
        rc = lade_enqueue_many(p->q, spec, n, NULL, NULL, &p->err);
        there += n;
    }
    free(payload);
    free(spec);
    return rc;
}

bool lb_measure_depth(struct lb_bench *b, size_t waiting, struct lb_depth out[LB_DEPTH_OPS])
{
    struct probe p = {0};
    if (lade_open(&p.q, b->url, NULL, &p.err) < 0) {
        (void)snprintf(b->error, sizeof(b->error), "open: %s", p.err.text);
        return false;
    }
    bool good = fill(&p, b, waiting) >= 0;
    for (size_t i = 0; i < LB_DEPTH_OPS && good; i++) {
        out[i] = (struct lb_depth){ops[i].name, time_op(&p, ops[i].op)};
        good = out[i].us >= 0;
    }
    if (!good)
        (void)snprintf(b->error, sizeof(b->error), "at %zu waiting: %s", waiting, p.err.text);
    lade_close(p.q);
    return good;
}
