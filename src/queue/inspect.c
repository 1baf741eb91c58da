/* inspect.c - jobs, queues and workers as an operator sees them: stored rows made into the views of lade.h */
#include <string.h>

#include "base/arena.h"
#include "base/base.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "queue/client.h"
#include "queue/history.h"
#include "queue/job.h"
#include "queue/names.h"
#include "queue/views.h"

/* A view and the memory of all it points to. */
struct view_box {
    lade_job_view view; /* first, so that the view's address is the box's */
    struct lb_arena arena;
};

void lade_job_view_free(lade_job_view *view)
{
    if (!view)
        return;
    struct view_box *box = (struct view_box *)(void *)view;
    lb_arena_fini(&box->arena);
    lb_free(box);
}

void lade_free(void *p)
{
    lb_free(p);
}

static lade_bytes bytes_of(struct lb_mut m)
{
    return (lade_bytes){m.p, m.n};
}

/* NULL-safe copy into the view's memory; `ok` turns false when there was none. */
static lade_bytes keep_bytes(struct view_box *box, struct lb_slice s, bool *ok)
{
    struct lb_mut m = lb_arena_copy(&box->arena, s.p, s.n);
    *ok = *ok && m.p;
    return bytes_of(m);
}

static const char *keep_string(struct view_box *box, struct lb_slice s, bool *ok)
{
    lade_bytes b = keep_bytes(box, s, ok);
    return b.data ? b.data : "";
}

static void fill_headers(struct view_box *box, const struct lq_job *job, bool *ok)
{
    lade_header *h = lb_arena_alloc(&box->arena, (job->n_headers + 1) * sizeof(*h));
    if (!h) {
        *ok = false;
        return;
    }
    size_t n = 0;
    for (size_t at = 0; n < job->n_headers && lq_job_header_next(job, &at, &h[n]);)
        n++;
    box->view.headers = h;
    box->view.n_headers = n;
}

/* The envelope's part. One that cannot be read is shown raw: an operator must be able to see what is there. */
static void fill_body(struct view_box *box, struct lb_slice stored, bool *ok)
{
    lade_job_view *v = &box->view;
    struct lb_mut body = lb_arena_copy(&box->arena, stored.p, stored.n);
    struct lq_job job;
    if (!body.p) {
        *ok = false;
        return;
    }
    v->kind = v->content_type = "";
    if (lq_job_decode(body, &job, NULL) < 0) {
        v->corrupt = true;
        v->payload = bytes_of(body);
        return;
    }
    v->kind = job.kind;
    v->content_type = job.content_type;
    v->payload = (lade_bytes){job.payload.p, job.payload.n};
    v->unique_key = (lade_bytes){job.unique.p, job.unique.n};
    v->key = (lade_bytes){job.key.p, job.key.n};
    v->priority = LADE_PRIORITY_MAX - job.level;
    v->max_attempts = job.max_attempts;
    v->timeout = lb_ns_of_ms(job.timeout_ms);
    v->result_ttl = lb_ns_of_ms(job.result_ttl_ms);
    v->unique_until = job.until;
    v->discard_dead = job.discard_dead;
    v->backoff = (lade_backoff){.type = job.backoff.type,
                                .base = lb_ns_of_ms(job.backoff.base_ms),
                                .cap = lb_ns_of_ms(job.backoff.cap_ms),
                                .jitter = job.backoff.jitter};
    v->enqueued_at = lb_ns_of_ms(job.enqueued_ms);
    fill_headers(box, &job, ok);
}

static void fill_effects(struct view_box *box, struct lb_slice stored, bool *ok)
{
    struct lq_record r;
    size_t n = 0, most = 0;
    for (size_t at = 0; lq_history_next(stored, &at, &r);)
        most += r.event == LQ_EVENT_EFFECT;
    lade_effect_record *list = most ? lb_arena_alloc(&box->arena, most * sizeof(*list)) : NULL;
    *ok = *ok && (list || most == 0);
    for (size_t at = 0; list && n < most && lq_history_next(stored, &at, &r);) {
        if (r.event == LQ_EVENT_EFFECT)
            list[n++] = (lade_effect_record){.key = keep_string(box, r.worker, ok),
                                             .value = keep_bytes(box, r.error, ok),
                                             .at = lb_ns_of_ms(r.ended_ms)};
    }
    box->view.effects = list;
    box->view.n_effects = n;
}

static void fill_history(struct view_box *box, struct lb_slice stored, bool *ok)
{
    lade_job_view *v = &box->view;
    v->attempts = lq_history_attempts(stored);
    v->crashes = lq_history_crashes(stored);
    lade_attempt *list = lb_arena_alloc(&box->arena, LQ_HISTORY_KEEP * sizeof(*list));
    if (!list) {
        *ok = false;
        return;
    }
    struct lq_record r;
    size_t n = 0;
    for (size_t at = 0; n < LQ_HISTORY_KEEP && lq_history_next(stored, &at, &r);) {
        if (r.event == LQ_EVENT_EFFECT)
            continue;
        list[n++] = (lade_attempt){.number = r.number,
                                   .started_at = lb_ns_of_ms(r.started_ms),
                                   .ended_at = lb_ns_of_ms(r.ended_ms),
                                   .outcome = lq_event_name(r.event),
                                   .worker = keep_string(box, r.worker, ok),
                                   .error = keep_bytes(box, r.error, ok)};
    }
    v->history = list;
    v->n_history = n;
}

/* NULL when out of memory. */
static lade_job_view *make_view(const struct lq_row *row)
{
    struct view_box *box = lb_calloc(1, sizeof(*box));
    if (!box)
        return NULL;
    lb_arena_init(&box->arena);
    bool ok = true;
    lade_job_view *v = &box->view;
    v->state = row->state;
    v->reason = lq_reason_name(row->reason);
    v->run_at = lb_ns_of_ms(row->run_at_ms);
    v->finished_at = lb_ns_of_ms(row->finished_ms);
    v->taken_at = lb_ns_of_ms(row->taken_ms);
    v->lease_until = lb_ns_of_ms(row->lease_until_ms);
    v->fence = row->fence;
    v->id = keep_string(box, lb_slice_of(row->id), &ok);
    v->queue = keep_string(box, lb_slice_str(row->queue), &ok);
    v->worker = keep_string(box, lb_slice_str(row->worker), &ok);
    v->result = keep_bytes(box, lb_slice_of(row->result), &ok);
    fill_body(box, lb_slice_of(row->body), &ok);
    fill_history(box, lb_slice_of(row->history), &ok);
    fill_effects(box, lb_slice_of(row->history), &ok);
    if (row->state == LADE_STATE_COMPLETED)
        v->attempts++; /* the run that succeeded is not a record: most jobs then have no history at all */
    if (ok)
        return v;
    lade_job_view_free(v);
    return NULL;
}

static int get_from(lade *q, const char *queue, const char *id, lade_job_view **out, lade_err *err)
{
    struct lq_row_vec rows = {0};
    lb_arena_init(&rows.arena);
    int rc = q->store->ops->get(q->store, queue, lb_slice_str(id), &rows, err);
    if (rc == 0) {
        lade_job_view *v = make_view(&rows.row[0]);
        if (v)
            *out = v;
        else
            rc = lb_fail_nomem(err, "get");
    }
    lb_arena_fini(&rows.arena);
    return rc;
}

int lade_job_get(lade *q, const char *queue, const char *id, lade_job_view **out, lade_err *err)
{
    LQ_REFUSE_NULL(q, "get");
    LQ_REFUSE_NULL(out, "get");
    int rc = lq_id_check(id, "get", err);
    if (rc == 0 && queue)
        rc = lq_queue_check(queue, "get", err);
    if (rc < 0)
        return rc;
    if (queue)
        return get_from(q, queue, id, out, err);
    struct lb_arena arena;
    lb_arena_init(&arena);
    const char **name = NULL;
    size_t n = 0;
    rc = q->store->ops->queues(q->store, &arena, &name, &n, err);
    if (rc == 0)
        rc = LADE_NOT_FOUND;
    for (size_t i = 0; i < n && rc == LADE_NOT_FOUND; i++)
        rc = get_from(q, name[i], id, out, err);
    lb_arena_fini(&arena);
    return rc;
}

int lq_views_make(const struct lq_row_vec *rows, lade_job_view **out, size_t *n, const char *where,
                  lade_err *err)
{
    size_t made = 0;
    while (made < rows->n && (out[made] = make_view(&rows->row[made])))
        made++;
    if (made == rows->n) {
        *n = made;
        return 0;
    }
    for (size_t i = 0; i < made; i++)
        lade_job_view_free(out[i]);
    return lb_fail_nomem(err, where);
}

int lade_job_list(lade *q, const char *queue, enum lade_state state, lade_cursor *cursor,
                  size_t limit, lade_job_view **out, size_t *n, lade_err *err)
{
    LQ_REFUSE_NULL(q, "list");
    int rc = lq_queue_check(queue, "list", err);
    if (rc < 0)
        return rc;
    if (!cursor || !out || !n)
        return lb_fail(err, LADE_EINVAL, "list", "cursor, out and n must not be NULL");
    if ((unsigned)state >= LADE_N_STATES)
        return lb_fail(err, LADE_EINVAL, "list", "state %d is unknown", (int)state);
    if (limit == 0 || limit > 1000) /* C-111 */
        return lb_fail(err, LADE_EINVAL, "list", "limit %zu is not within 1 to 1000", limit);
    if (cursor->done) {
        *n = 0;
        return LADE_EMPTY;
    }
    struct lq_row_vec rows = {0};
    lb_arena_init(&rows.arena);
    lade_cursor next = *cursor;
    rc = q->store->ops->list(q->store, queue, state, &next, limit, &rows, err);
    if (rc >= 0)
        rc = lq_views_make(&rows, out, n, "list", err);
    if (rc >= 0) {
        *cursor = next;
        rc = rows.n == 0 && next.done ? LADE_EMPTY : 0;
    }
    lb_arena_fini(&rows.arena);
    return rc;
}

int lade_queue_get(lade *q, const char *queue, lade_queue_info *out, lade_err *err)
{
    LQ_REFUSE_NULL(q, "queue");
    LQ_REFUSE_NULL(out, "queue");
    int rc = lq_queue_check(queue, "queue", err);
    return rc < 0 ? rc : q->store->ops->count(q->store, queue, out, err);
}

int lade_queue_list(lade *q, lade_queue_info **out, size_t *n, lade_err *err)
{
    LQ_REFUSE_NULL(q, "queues");
    LQ_REFUSE_NULL(out, "queues");
    LQ_REFUSE_NULL(n, "queues");
    struct lb_arena arena;
    lb_arena_init(&arena);
    const char **name = NULL;
    size_t found = 0;
    lade_queue_info *info = NULL;
    size_t filled = 0;
    int rc = q->store->ops->queues(q->store, &arena, &name, &found, err);
    if (rc == 0) {
        info = lb_calloc(found + 1, sizeof(*info));
        if (!info)
            rc = lb_fail_nomem(err, "queues");
    }
    for (size_t i = 0; i < found && rc == 0; i++) {
        rc = q->store->ops->count(q->store, name[i], &info[filled], err);
        if (rc == 0)
            filled++;
        else if (rc == LADE_NOT_FOUND) /* removed since it was listed */
            rc = 0;
    }
    lb_arena_fini(&arena);
    if (rc < 0) {
        lb_free(info);
        return rc;
    }
    *out = info;
    *n = filled;
    return 0;
}

int lade_worker_list(lade *q, lade_worker_info **out, size_t *n, lade_err *err)
{
    LQ_REFUSE_NULL(q, "workers");
    LQ_REFUSE_NULL(out, "workers");
    LQ_REFUSE_NULL(n, "workers");
    struct lb_arena arena;
    lb_arena_init(&arena);
    lade_worker_info *found = NULL;
    size_t count = 0;
    int rc = q->store->ops->workers(q->store, &arena, &found, &count, err);
    if (rc == 0) {
        lade_worker_info *copy = lb_calloc(count + 1, sizeof(*copy));
        if (copy) {
            if (count > 0)
                memcpy(copy, found, count * sizeof(*copy));
            *out = copy;
            *n = count;
        } else {
            rc = lb_fail_nomem(err, "workers");
        }
    }
    lb_arena_fini(&arena);
    return rc;
}

/* Findings grow in a buffer of whole structs. */
static void add_finding(void *ctx, const char *queue, const char *text)
{
    struct lb_buf *b = ctx;
    lade_finding f = {0};
    f.is_note = !queue;
    (void)snprintf(f.queue, sizeof(f.queue), "%s", queue ? queue : "");
    (void)snprintf(f.text, sizeof(f.text), "%s", text);
    lb_buf_add(b, &f, sizeof(f));
}

int lade_check(lade *q, lade_finding **out, size_t *n, lade_err *err)
{
    LQ_REFUSE_NULL(q, "check");
    LQ_REFUSE_NULL(out, "check");
    LQ_REFUSE_NULL(n, "check");
    struct lb_buf b;
    lb_buf_init(&b);
    int rc = q->store->ops->check(q->store, add_finding, &b, err);
    if (rc >= 0 && (b.failed || !lb_buf_reserve(&b, 1)))
        rc = lb_fail_nomem(err, "check");
    if (rc < 0) {
        lb_buf_fini(&b);
        return rc;
    }
    *out = (lade_finding *)(void *)b.p;
    *n = b.n / sizeof(lade_finding);
    return 0;
}
