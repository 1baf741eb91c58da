/*
 * control.c - the worker's side of orders from afar: control.h
 *
 * The lease thread does all of it between two renewals: it waits for nothing there, and what it writes is bounded.
 */
#include "queue/control.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <lade/rt.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/mem.h"
#include "queue/worker.h"

#define JOBS_MAX 1000 /* named in one writing down */

static const char *const state_names[] = {"unknown", "running", "quiet", "stopping"};

const char *lade_worker_state_name(enum lade_worker_state state)
{
    return (unsigned)state < LB_ARRAY_LEN(state_names) ? state_names[state] : NULL;
}

static enum lade_worker_state state_of(const struct lade_worker *w)
{
    switch (w->phase) {
    case LQ_PHASE_QUIET:
        return LADE_WORKER_IS_QUIET;
    case LQ_PHASE_STOPPING:
    case LQ_PHASE_ENDING:
    case LQ_PHASE_ENDED:
        return LADE_WORKER_STOPPING;
    case LQ_PHASE_NEW:
    case LQ_PHASE_RUNNING:
    default:
        return LADE_WORKER_RUNNING;
    }
}

/* "1 4711 0.1.0 host" */
static void describe(const struct lade_worker *w, char about[LQ_ABOUT_MAX])
{
    char host[65] = "";
    if (gethostname(host, sizeof(host) - 1) != 0)
        host[0] = '\0';
    for (char *p = host; *p; p++)
        if (*p <= ' ' || *p == 0x7f)
            *p = '?';
    (void)snprintf(about, LQ_ABOUT_MAX, "%d %ld %.40s %s", (int)state_of(w), (long)getpid(),
                   lade_version(), host);
}

struct lq_report lq_control_report(struct lade_worker *w)
{
    struct lq_remote *r = &w->remote;
    struct lq_report report = {0};
    if (strcmp(r->told_as, w->incarnation) != 0) { /* the record of another one */
        r->about[0] = '\0';
        r->made = r->making = 0;
        r->n_stacks = 0;
    }
    r->is_due = false;
    describe(w, r->next);
    if (strcmp(r->next, r->about) != 0)
        report.about = lb_slice_str(r->next);
    if (r->n_stacks > 0) {
        report.stacks = lb_slice(r->stacks, r->n_stacks);
        report.made = r->making;
    }
    return report;
}

void lq_control_told(struct lade_worker *w, const char *incarnation, const struct lq_report *report)
{
    struct lq_remote *r = &w->remote;
    (void)snprintf(r->told_as, sizeof(r->told_as), "%s", incarnation);
    if (report->about.n > 0)
        memcpy(r->about, r->next, sizeof(r->about));
    if (report->stacks.n > 0) {
        r->made = report->made;
        r->n_stacks = 0;
    }
}

/* stacks ----------------------------------------------------------------------------------------------------------- */

/* The first bytes of what is written; the rest is counted only. */
struct cut {
    uint8_t *p;
    size_t n, dropped;
};

static ssize_t write_cut(void *cookie, const char *text, size_t n)
{
    struct cut *c = cookie;
    size_t k = LB_MIN(n, LADE_STACKS_MAX - c->n);
    if (k > 0)
        memcpy(c->p + c->n, text, k);
    c->n += k;
    c->dropped += n - k;
    return (ssize_t)n;
}

static void print_job(FILE *out, const struct lade_job *job, int64_t now)
{
    if (atomic_load_explicit(&job->stage, memory_order_acquire) == LQ_STAGE_WAITS) {
        (void)fprintf(out, "job %.*s of %s: in a slot, not begun\n", (int)job->leased->id.n,
                      (const char *)job->leased->id.p, job->queue);
        return;
    }
    (void)fprintf(out, "job %.*s of %s: %s, attempt %d, for %.1f s%s\n", (int)job->leased->id.n,
                  (const char *)job->leased->id.p, job->queue,
                  job->body.kind ? job->body.kind : "-", job->attempt,
                  (double)(now - job->started_at) / (double)LADE_SECOND,
                  lade_job_cancelled(job) ? ", told to stop" : "");
}

static void print_jobs(FILE *out, struct lade_worker *w)
{
    int64_t now = lb_clock_mono();
    size_t n = 0;
    lr_mutex_lock(&w->lock);
    (void)fprintf(out,
                  "worker %s (%s), process %ld: %zu of %d slots run, %zu jobs wait, %zu stuck\n",
                  w->name, state_names[state_of(w)], (long)getpid(), w->n_running, w->concurrency,
                  w->n_queued, w->n_stuck);
    lb_list_each (it, &w->running) {
        if (n++ < JOBS_MAX)
            print_job(out, LB_CONTAINER_OF(it, struct lade_job, node), now);
    }
    lr_mutex_unlock(&w->lock);
    if (n > JOBS_MAX)
        (void)fprintf(out, "and %zu more\n", n - JOBS_MAX);
}

/* False without memory. `p` has LADE_STACKS_MAX bytes. */
static bool write_stacks(struct lade_worker *w, uint8_t *p, size_t *n)
{
    struct cut c = {.p = p};
    FILE *out = fopencookie(&c, "w", (cookie_io_functions_t){.write = write_cut});
    if (!out)
        return false;
    print_jobs(out, w);
    if (w->executor == LADE_EXECUTOR_THREAD)
        (void)fputs("handlers run on threads of their own, whose stacks a debugger shows\n", out);
    lade_rt_dump(out);
    (void)fclose(out);
    if (c.dropped > 0) {
        char more[64];
        int len = snprintf(more, sizeof(more), "\n... %zu bytes more were cut\n", c.dropped);
        size_t k = LB_MIN((size_t)len, c.n);
        memcpy(p + c.n - k, more, k);
    }
    *n = c.n;
    return true;
}

void lq_control_log_stacks(struct lade_worker *w)
{
    size_t n = 0;
    uint8_t *p = lb_malloc(LADE_STACKS_MAX);
    if (!p || !write_stacks(w, p, &n)) {
        lq_worker_log(w, "no memory to write the stacks down");
        n = 0;
    }
    for (size_t at = 0; at < n;) {
        const uint8_t *end = memchr(p + at, '\n', n - at);
        size_t len = end ? (size_t)(end - p) - at : n - at;
        lq_worker_log(w, "%.*s", (int)len, (const char *)p + at);
        at += len + 1;
    }
    lb_free(p);
}

/* orders ----------------------------------------------------------------------------------------------------------- */

static void make_stacks(struct lade_worker *w, uint64_t asked)
{
    struct lq_remote *r = &w->remote;
    size_t n = 0;
    if (!r->stacks)
        r->stacks = lb_malloc(LADE_STACKS_MAX);
    if (!r->stacks || !write_stacks(w, r->stacks, &n)) {
        lq_worker_log(w, "no memory to write the stacks down that were asked for");
        return; /* asked anew by the next renewal */
    }
    lr_mutex_lock(&w->lock);
    r->n_stacks = n;
    r->making = asked;
    r->is_due = true;
    lr_mutex_unlock(&w->lock);
}

void lq_control_obey(struct lade_worker *w, const struct lq_orders *orders)
{
    struct lq_remote *r = &w->remote;
    bool quiet = orders->wish == LADE_WORKER_QUIET;
    if ((quiet || orders->wish == LADE_WORKER_RESUME) && quiet != atomic_load(&r->quiet)) {
        atomic_store(&r->quiet, quiet);
        lr_event_raise(&w->control);
        lq_worker_log(w, quiet ? "told to take no more work (lade worker quiet)"
                               : "told to take work again (lade worker resume)");
    }
    if (orders->wish == LADE_WORKER_STOP && !r->stopped) {
        r->stopped = true;
        lq_worker_log(w, "told to stop (lade worker stop)");
        lade_worker_stop(w);
    }
    if (orders->asked > LB_MAX(r->made, r->making))
        make_stacks(w, orders->asked);
}
