/*
 * engine.c - what a worker costs without a store: take, run, settle against one that only hands out numbers
 *
 * usage: lade-engine-bench [SLOTS [JOBS [thread]]]
 *
 * The store below has JOBS jobs of 100 bytes, makes each at its take, and counts what is settled. The figure is the engine's own: lists,
 * slots, envelopes, handlers, outcomes. CPU time is user and system time of the process for one job.
 */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/base.h"
#include "base/clock.h"
#include "queue/beat.h"
#include "queue/client.h"
#include "queue/job.h"

static struct {
    uint64_t jobs, taken, settled; /* the fetch thread's */
    struct lb_buf body;
    _Atomic uint64_t runs;
    lade_worker *worker;
} made;

static int null_open(struct lq_store *s, lade_err *err)
{
    (void)s;
    (void)err;
    return 0;
}

static void null_close(struct lq_store *s)
{
    (void)s;
}

static int null_settle_take(struct lq_store *s, struct lq_settle *it, size_t n,
                            const struct lq_take *take, struct lq_leased_vec *out, lade_err *err)
{
    (void)s;
    (void)err;
    for (size_t i = 0; i < n; i++)
        it[i].outcome = it[i].to == LQ_TO_COMPLETED ? LADE_DONE : LADE_STALE;
    made.settled += n;
    if (made.settled == made.jobs)
        lade_worker_stop(made.worker);
    if (!take)
        return 0;
    size_t max = (size_t)LB_MIN((uint64_t)LB_MIN(take->max, LQ_TAKE_MAX), made.jobs - made.taken);
    out->job = lb_arena_alloc(&out->arena, (max + 1) * sizeof(*out->job));
    for (size_t i = 0; i < max; i++) {
        char id[27];
        (void)memcpy(id, "01J0000000000000000000000", sizeof(id) - 1);
        out->job[i] =
            (struct lq_leased){.id = lb_arena_copy(&out->arena, id, sizeof(id) - 1),
                               .body = lb_arena_copy(&out->arena, made.body.p, made.body.n),
                               .history = lb_arena_copy(&out->arena, "", 0),
                               .fence = ++made.taken};
    }
    out->n = max;
    return 0;
}

static int null_renew(struct lq_store *s, const struct lq_beat *beat, struct lq_stop *stop,
                      size_t max, size_t *n_stop, lade_err *err)
{
    (void)s;
    (void)beat;
    (void)stop;
    (void)max;
    (void)err;
    *n_stop = 0;
    return 0;
}

static int null_leave(struct lq_store *s, const char *worker, struct lq_lanes lanes, lade_err *err)
{
    (void)s;
    (void)worker;
    (void)lanes;
    (void)err;
    return 0;
}

static int null_reclaim(struct lq_store *s, const struct lq_take *take, struct lq_leased_vec *out,
                        lade_err *err)
{
    (void)s;
    (void)take;
    (void)out;
    (void)err;
    return LADE_EMPTY;
}

static int null_promote(struct lq_store *s, struct lq_lanes lanes, size_t max, size_t *n,
                        int64_t *next_ms, lade_err *err)
{
    (void)s;
    (void)lanes;
    (void)max;
    (void)err;
    *n = 0;
    *next_ms = 0;
    return 0;
}

static int null_trim(struct lq_store *s, struct lq_lanes lanes, size_t max, size_t *n,
                     lade_err *err)
{
    int64_t next;
    return null_promote(s, lanes, max, n, &next, err);
}

static int null_wait(struct lq_store *s, const char *worker, struct lq_lanes lanes,
                     int64_t deadline, lade_err *err)
{
    (void)s;
    (void)worker;
    (void)lanes;
    (void)err;
    lr_sleep_until(LB_MIN(deadline, lb_deadline_in(LADE_MILLISECOND)));
    return 0;
}

static void null_wake(struct lq_store *s, const char *worker)
{
    (void)s;
    (void)worker;
}

static const struct lq_store_ops ops = {.name = "null",
                                        .schemes = "null",
                                        .version = LQ_STORE_VERSION,
                                        .size = sizeof(struct lq_store),
                                        .open = null_open,
                                        .close = null_close,
                                        .settle_take = null_settle_take,
                                        .renew = null_renew,
                                        .leave = null_leave,
                                        .reclaim = null_reclaim,
                                        .promote = null_promote,
                                        .trim = null_trim,
                                        .wait = null_wait,
                                        .wake = null_wake};

static lade_outcome count(lade_job *job, void *ctx)
{
    (void)job;
    (void)ctx;
    atomic_fetch_add_explicit(&made.runs, 1, memory_order_relaxed);
    return LADE_OK;
}

static double cpu_seconds(void)
{
    struct rusage r;
    (void)getrusage(RUSAGE_SELF, &r);
    return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) +
           (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1e6;
}

static int fail(const lade_err *err)
{
    (void)fprintf(stderr, "lade-engine-bench: %s\n", err->text);
    return 1;
}

int main(int argc, char **argv)
{
    static const struct lq_store_ops *const stores[] = {&ops};
    char payload[100];
    lade *q;
    lade_err err = {0};
    lade_worker_config config = {.concurrency = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 64,
                                 .no_signals = true,
                                 .executor = argc > 3 ? LADE_EXECUTOR_THREAD : LADE_EXECUTOR_TASK};
    made.jobs = argc > 2 ? strtoull(argv[2], NULL, 10) : 2000000;
    memset(payload, 'x', sizeof(payload));
    lb_buf_init(&made.body);
    lq_job_encode(&made.body, &(lade_job_spec){.kind = "bench", .payload = {payload, 100}}, 1);
    if (lq_client_open(&q, stores, 1, "null:", NULL, &err) < 0 ||
        lade_worker_open(&made.worker, q, &config, &err) < 0)
        return fail(&err);
    double cpu = cpu_seconds();
    int64_t began = lb_clock_mono();
    if (lade_worker_handle(made.worker, "bench", count, NULL) < 0 ||
        lade_worker_run(made.worker, &err) < 0)
        return fail(&err);
    double took = (double)(lb_clock_mono() - began) / 1e9;
    cpu = cpu_seconds() - cpu;
    printf("%d slots (%s): %" PRIu64 " jobs, %.0f jobs/s, %.0f ns of CPU a job\n",
           config.concurrency, argc > 3 ? "threads" : "tasks", made.runs, (double)made.runs / took,
           cpu * 1e9 / (double)made.runs);
    lade_worker_close(made.worker);
    lade_close(q);
    lb_buf_fini(&made.body);
    return made.runs == made.jobs ? 0 : 1;
}
