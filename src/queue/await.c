/* await.c - results, waiting for jobs, what handlers said: the functions of <lade/events.h> that ask about jobs */
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "queue/client.h"
#include "queue/event.h"
#include "queue/names.h"

/* results ---------------------------------------------------------------------------------------------------------- */

/* One block: the views, then their bytes. */
static lade_result_view *make_results(const struct lq_result *got, size_t n)
{
    size_t size = n * sizeof(lade_result_view);
    for (size_t i = 0; i < n; i++)
        size += got[i].bytes.n;
    lade_result_view *view = lb_malloc(size);
    if (!view)
        return NULL;
    uint8_t *at = (uint8_t *)(view + n);
    for (size_t i = 0; i < n; i++) {
        view[i] = (lade_result_view){.outcome = got[i].outcome, .state = got[i].state};
        if (got[i].bytes.n == 0)
            continue;
        view[i].result = (lade_bytes){memcpy(at, got[i].bytes.p, got[i].bytes.n), got[i].bytes.n};
        at += got[i].bytes.n;
    }
    return view;
}

static int read_results(lade *q, const char *queue, const char *const *ids, size_t n,
                        lade_result_view **out, lade_err *err)
{
    struct lb_arena arena;
    lb_arena_init(&arena);
    struct lb_slice *id = lb_arena_alloc(&arena, n * sizeof(*id));
    struct lq_result *got = lb_arena_alloc(&arena, n * sizeof(*got));
    if (!id || !got) {
        lb_arena_fini(&arena);
        return lb_fail_nomem(err, "results");
    }
    for (size_t i = 0; i < n; i++) {
        id[i] = lb_slice_str(ids[i]);
        got[i] = (struct lq_result){.outcome = LADE_NOT_FOUND};
    }
    int rc = q->store->ops->results(q->store, queue, id, n, &arena, got, err);
    if (rc == 0) {
        lade_result_view *view = make_results(got, n);
        if (view)
            *out = view;
        else
            rc = lb_fail_nomem(err, "results");
    }
    lb_arena_fini(&arena);
    return rc;
}

int lade_result_get_many(lade *q, const char *queue, const char *const *ids, size_t n,
                         lade_result_view **out, lade_err *err)
{
    LQ_REFUSE_NULL(q, "results");
    LQ_REFUSE_NULL(ids, "results");
    LQ_REFUSE_NULL(out, "results");
    if (n == 0 || n > LADE_RESULTS_MAX)
        return lb_fail(err, LADE_EINVAL, "results", "n is %zu, not within 1 to %d", n,
                       LADE_RESULTS_MAX);
    int rc = lq_queue_check(queue, "results", err);
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = lq_id_check(ids[i], "results", err);
    return rc < 0 ? rc : read_results(q, queue, ids, n, out, err);
}

/* waiting ---------------------------------------------------------------------------------------------------------- */

int lade_waiter_open(lade_waiter **out, lade *q, lade_err *err)
{
    LQ_REFUSE_NULL(out, "waiter");
    LQ_REFUSE_NULL(q, "waiter");
    lade_waiter *w = lb_calloc(1, sizeof(*w));
    if (!w)
        return lb_fail_nomem(err, "waiter");
    w->hub = &q->hub;
    *out = w;
    return 0;
}

void lade_waiter_cancel(lade_waiter *w)
{
    if (w)
        lq_hub_cancel(w);
}

void lade_waiter_close(lade_waiter *w)
{
    lb_free(w);
}

static int check_wait(lade *q, const char *queue, const char *id, int64_t timeout, lade_err *err)
{
    LQ_REFUSE_NULL(q, "wait");
    int rc = lq_queue_check(queue, "wait", err);
    if (rc == 0)
        rc = lq_id_check(id, "wait", err);
    if (rc == 0 && timeout < 0)
        rc = lb_fail(err, LADE_EINVAL, "wait",
                     "timeout %lld is below 0; LADE_FOREVER waits without end", (long long)timeout);
    return rc;
}

static bool has_ended(const lade_job_view *v)
{
    return v->state == LADE_STATE_COMPLETED || v->state == LADE_STATE_DEAD ||
           v->state == LADE_STATE_CANCELLED;
}

/* The job if it has ended, LADE_EMPTY if not, NOT_FOUND. */
static int get_ended(lade *q, const char *queue, const char *id, lade_job_view **out, lade_err *err)
{
    lade_job_view *view = NULL;
    int rc = lade_job_get(q, queue, id, &view, err);
    if (rc == 0 && has_ended(view)) {
        *out = view;
        return 0;
    }
    lade_job_view_free(view);
    return rc == 0 ? LADE_EMPTY : rc;
}

int lade_job_wait(lade *q, const char *queue, const char *id, int64_t timeout, lade_waiter *w,
                  lade_job_view **out, lade_err *err)
{
    LQ_REFUSE_NULL(out, "wait");
    int rc = check_wait(q, queue, id, timeout, err);
    if (rc < 0)
        return rc;
    int64_t deadline = lb_deadline_in(timeout);
    /* Looks first: a job that has ended already costs no waiter. An outcome may be old when it is read, so look again. */
    while ((rc = get_ended(q, queue, id, out, err)) == LADE_EMPTY) {
        struct lq_watch it = {
            .queue = queue, .id = lb_slice_str(id), .what = LQ_WATCH_END, .outcome = LADE_EMPTY};
        if (timeout == 0)
            return LADE_TIMEOUT;
        rc = lq_hub_wait(&q->hub, &it, 1, deadline, w, err);
        if (rc != 0)
            return rc;
    }
    return rc;
}

int lade_job_wait_log(lade *q, const char *queue, const char *id, uint64_t seen, int64_t timeout,
                      lade_waiter *w, lade_err *err)
{
    int rc = check_wait(q, queue, id, timeout, err);
    if (rc < 0)
        return rc;
    struct lq_watch it = {.queue = queue,
                          .id = lb_slice_str(id),
                          .what = LQ_WATCH_LOG,
                          .after = seen,
                          .outcome = LADE_EMPTY};
    rc = lq_hub_wait(&q->hub, &it, 1, lb_deadline_in(timeout), w, err);
    return rc == 0 ? it.outcome : rc;
}

/* notes ------------------------------------------------------------------------------------------------------------ */

static lade_job_notes *make_notes(const struct lq_words *got, bool newest_first)
{
    size_t size = sizeof(lade_job_notes) + got->n * sizeof(lade_log_line) + got->text.n + 1;
    for (size_t i = 0; i < got->n; i++)
        size += got->line[i].text.n;
    lade_job_notes *out = lb_calloc(1, size);
    if (!out)
        return NULL;
    *out = (lade_job_notes){.percent = got->percent,
                            .progress_at = lb_ns_of_ms(got->progress_ms),
                            .total = got->total,
                            .line = (lade_log_line *)(out + 1),
                            .n = got->n};
    uint8_t *at = (uint8_t *)(out->line + out->n);
    for (size_t i = 0; i < out->n; i++) {
        const struct lq_log_line *from = &got->line[newest_first ? out->n - 1 - i : i];
        out->line[i] = (lade_log_line){from->number, lb_ns_of_ms(from->at_ms), {at, from->text.n}};
        if (from->text.n > 0)
            memcpy(at, from->text.p, from->text.n);
        at += from->text.n;
    }
    if (got->text.n > 0)
        memcpy(at, got->text.p, got->text.n);
    out->note = (const char *)at;
    return out;
}

int lade_job_get_notes(lade *q, const char *queue, const char *id, int64_t start, size_t limit,
                       bool newest_first, lade_job_notes **out, lade_err *err)
{
    LQ_REFUSE_NULL(q, "notes");
    LQ_REFUSE_NULL(out, "notes");
    int rc = lq_queue_check(queue, "notes", err);
    if (rc == 0)
        rc = lq_id_check(id, "notes", err);
    if (rc == 0 && limit > LADE_LOG_LINES_MAX)
        rc = lb_fail(err, LADE_EINVAL, "notes", "limit %zu is over %d", limit, LADE_LOG_LINES_MAX);
    if (rc < 0)
        return rc;
    struct lb_arena arena;
    lb_arena_init(&arena);
    struct lq_words got = {.arena = &arena, .start = start, .limit = limit, .percent = -1};
    rc = q->store->ops->words(q->store, queue, lb_slice_str(id), &got, err);
    if (rc == 0) {
        lade_job_notes *made = make_notes(&got, newest_first);
        if (made)
            *out = made;
        else
            rc = lb_fail_nomem(err, "notes");
    }
    lb_arena_fini(&arena);
    return rc;
}
