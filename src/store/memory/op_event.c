/* op_event.c - results, watching, notes and events */
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "store/memory/memory_home.h"
#include "store/memory/memory_ops.h"

/* Its bytes, borrowed; outcome and state into *out. */
static struct lb_slice read_result(const struct ls_memory_queue *q, struct lb_slice id,
                                   int64_t now_ms, struct lq_result *out)
{
    const struct ls_memory_job *j = ls_memory_job_find(q, id);
    struct lb_slice bytes = {0};
    if (!j) {
        const struct ls_memory_kept *k = ls_memory_kept_find(q, id, now_ms);
        bytes = k ? k->bytes : bytes;
        out->state = k ? LADE_STATE_COMPLETED : out->state;
        out->outcome = k ? LADE_DONE : LADE_NOT_FOUND;
        return bytes;
    }
    out->state = j->state;
    out->outcome = LADE_WRONG_STATE;
    if (j->state != LADE_STATE_COMPLETED)
        return bytes;
    bytes = ls_memory_result_of(j, now_ms);
    out->outcome = bytes.n > 0 ? LADE_DONE : LADE_EMPTY;
    return bytes;
}

int ls_memory_results(struct lq_store *s, const char *queue, const struct lb_slice *id, size_t n,
                      struct lb_arena *arena, struct lq_result *out, lade_err *err)
{
    int64_t now;
    bool ok = true;
    struct ls_memory_home *h = ls_memory_enter(s, &now);
    const struct ls_memory_queue *q = ls_memory_queue_find(h, queue);
    for (size_t i = 0; ok && i < n; i++) {
        out[i] = (struct lq_result){.outcome = LADE_NOT_FOUND};
        struct lb_slice bytes = q ? read_result(q, id[i], now, &out[i]) : (struct lb_slice){0};
        if (out[i].outcome == LADE_DONE) {
            out[i].bytes = lb_arena_copy(arena, bytes.p, bytes.n);
            ok = out[i].bytes.p;
        }
    }
    lr_mutex_unlock(&h->lock);
    return ok ? LADE_DONE : lb_fail_nomem(err, "results");
}

static int look(struct ls_memory_home *h, const struct lq_watch *it)
{
    const struct ls_memory_queue *q = ls_memory_queue_find(h, it->queue);
    if (it->what == LQ_WATCH_EVENTS)
        return !q || q->stream.cap == 0 || it->after != q->stream.last ? LADE_DONE : LADE_EMPTY;
    if (it->what == LQ_WATCH_ROOM)
        return ls_memory_bound_fits(q, (int64_t)it->after, (int64_t)it->bytes) ? LADE_DONE
                                                                               : LADE_EMPTY;
    const struct ls_memory_job *j = q ? ls_memory_job_find(q, it->id) : NULL;
    if (!j)
        return LADE_NOT_FOUND;
    if (ls_memory_state_is_ended(j->state))
        return LADE_DONE;
    bool more = it->what == LQ_WATCH_LOG && j->notes && j->notes->total > it->after;
    return more ? LADE_DONE : LADE_EMPTY;
}

/* False when out of memory. */
static bool make_watcher(struct ls_memory_home *h, const char *name)
{
    if (ls_memory_watcher_find(h, name))
        return true;
    size_t n = strlen(name);
    LB_CHECK(n <= LADE_ID_MAX);
    struct ls_memory_watcher *w = lb_calloc(1, sizeof(*w));
    if (!w)
        return false;
    memcpy(w->name, name, n);
    lb_list_push_back(&h->watchers, &w->in_home);
    return true;
}

int ls_memory_watch(struct lq_store *s, const char *waiter, struct lq_watch *it, size_t n,
                    lade_err *err)
{
    int64_t now;
    struct ls_memory_home *h = ls_memory_enter(s, &now);
    bool ok = make_watcher(h, waiter);
    for (size_t i = 0; ok && i < n; i++)
        it[i].outcome = look(h, &it[i]);
    lr_mutex_unlock(&h->lock);
    return ok ? LADE_DONE : lb_fail_nomem(err, "watch");
}

void ls_memory_unwatch(struct lq_store *s, const char *waiter, struct lq_lanes lanes)
{
    (void)lanes;
    int64_t now;
    struct ls_memory_home *h = ls_memory_enter(s, &now);
    struct ls_memory_watcher *w = ls_memory_watcher_find(h, waiter);
    if (w)
        ls_memory_watcher_free(w);
    lr_mutex_unlock(&h->lock);
}

/* notes ------------------------------------------------------------------------------------------------------------ */

/* False when out of memory; then nothing has changed but that the job may have empty notes. */
static bool add_notes(struct ls_memory_job *j, const struct lq_say *it, int64_t now_ms)
{
    if (!j->notes) {
        j->notes = lb_calloc(1, sizeof(*j->notes));
        if (!j->notes)
            return false;
        j->notes->percent = -1;
        lb_list_init(&j->notes->lines);
    }
    struct ls_memory_notes *notes = j->notes;
    struct lb_list fresh;
    lb_list_init(&fresh);
    uint8_t *text = it->text.n > 0 && it->percent >= 0 ? lb_malloc(it->text.n) : NULL;
    bool ok = text || it->text.n == 0 || it->percent < 0;
    for (size_t i = 0; ok && i < it->n_lines; i++) {
        struct ls_memory_line *line = lb_malloc(sizeof(*line) + it->line[i].n);
        ok = line;
        if (!ok)
            break;
        line->number = notes->total + i + 1;
        line->at_ms = it->line_ms[i];
        line->n = it->line[i].n;
        if (line->n > 0)
            memcpy(line->text, it->line[i].p, line->n);
        lb_list_push_back(&fresh, &line->in_notes);
    }
    for (struct lb_list *l; (l = lb_list_pop(&fresh));) {
        if (ok) {
            lb_list_push_back(&notes->lines, l);
            notes->n_lines++;
            notes->total++;
        } else {
            lb_free(LB_CONTAINER_OF(l, struct ls_memory_line, in_notes));
        }
    }
    for (; notes->n_lines > LADE_LOG_LINES_MAX; notes->n_lines--)
        lb_free(LB_CONTAINER_OF(lb_list_pop(&notes->lines), struct ls_memory_line, in_notes));
    if (!ok) {
        lb_free(text);
        return false;
    }
    if (it->percent >= 0) {
        notes->percent = it->percent;
        notes->progress_ms = now_ms;
        lb_free(notes->text.p);
        if (text)
            memcpy(text, it->text.p, it->text.n);
        notes->text = (struct lb_mut){text, text ? it->text.n : 0};
    }
    return true;
}

int ls_memory_say(struct lq_store *s, struct lq_say *it, size_t n, lade_err *err)
{
    int64_t now;
    bool ok = true;
    struct ls_memory_home *h = ls_memory_enter(s, &now);
    for (size_t i = 0; ok && i < n; i++) {
        struct ls_memory_queue *q = ls_memory_queue_find(h, it[i].queue);
        struct ls_memory_job *j = q ? ls_memory_job_find(q, it[i].id) : NULL;
        bool own = j && j->owner && j->fence == it[i].fence;
        it[i].outcome = own ? LADE_DONE : LADE_STALE;
        if (!own)
            continue;
        ok = add_notes(j, &it[i], now);
        if (ok && it[i].percent >= 0)
            ls_memory_event_job(h, j,
                                (struct lq_ev){.type = LADE_EVENT_PROGRESS,
                                               .value = it[i].percent,
                                               .reason = it[i].text},
                                now);
        ls_memory_ring_watchers(h);
    }
    lr_mutex_unlock(&h->lock);
    return ok ? LADE_DONE : lb_fail_nomem(err, "say");
}

/* False when out of memory. */
static bool copy_notes(const struct ls_memory_notes *notes, struct lq_words *out)
{
    size_t skip = 0, want = lq_words_page(out, notes->n_lines, &skip);
    out->percent = notes->percent;
    out->progress_ms = notes->progress_ms;
    out->text = lb_arena_copy(out->arena, notes->text.p, notes->text.n);
    out->total = notes->total;
    out->line = lb_arena_alloc(out->arena, (want + 1) * sizeof(*out->line));
    if (!out->text.p || !out->line)
        return false;
    lb_list_each (it, &notes->lines) {
        const struct ls_memory_line *line = LB_CONTAINER_OF(it, struct ls_memory_line, in_notes);
        if (skip > 0) {
            skip--;
            continue;
        }
        if (out->n == want)
            break;
        out->line[out->n] = (struct lq_log_line){line->number, line->at_ms,
                                                 lb_arena_copy(out->arena, line->text, line->n)};
        if (!out->line[out->n].text.p)
            return false;
        out->n++;
    }
    return true;
}

int ls_memory_words(struct lq_store *s, const char *queue, struct lb_slice id, struct lq_words *out,
                    lade_err *err)
{
    int64_t now;
    struct ls_memory_home *h = ls_memory_enter(s, &now);
    const struct ls_memory_queue *q = ls_memory_queue_find(h, queue);
    const struct ls_memory_job *j = q ? ls_memory_job_find(q, id) : NULL;
    out->percent = -1;
    out->n = 0;
    bool ok = !j || !j->notes || copy_notes(j->notes, out);
    lr_mutex_unlock(&h->lock);
    if (!ok)
        return lb_fail_nomem(err, "notes");
    return j ? LADE_DONE : LADE_NOT_FOUND;
}

/* events ----------------------------------------------------------------------------------------------------------- */

int ls_memory_events_set(struct lq_store *s, const char *queue, uint32_t cap, lade_err *err)
{
    int64_t now;
    struct ls_memory_home *h = ls_memory_enter(s, &now);
    struct ls_memory_queue *q = ls_memory_queue_make(h, queue);
    if (q && cap == 0) {
        ls_memory_stream_clear(q);
    } else if (q && q->stream.cap == 0) {
        lb_list_init(&q->stream.list);
        q->stream.n = 0;
        uint64_t floor = (uint64_t)LB_MAX(now, 1) * 1000; /* numbers are not given twice */
        q->stream.last = LB_MAX(q->stream.last + 1, floor);
    }
    if (q)
        q->stream.cap = cap;
    while (q && cap > 0 && q->stream.n > cap) {
        lb_free(LB_CONTAINER_OF(lb_list_pop(&q->stream.list), struct ls_memory_event, in_stream));
        q->stream.n--;
    }
    ls_memory_ring_watchers(h);
    lr_mutex_unlock(&h->lock);
    return q ? LADE_DONE : lb_fail_nomem(err, "events");
}

int ls_memory_events_get(struct lq_store *s, const char *queue, lade_events_info *out,
                         lade_err *err)
{
    (void)err;
    int64_t now;
    struct ls_memory_home *h = ls_memory_enter(s, &now);
    const struct ls_memory_queue *q = ls_memory_queue_find(h, queue);
    if (q) {
        *out = (lade_events_info){.cap = q->stream.cap};
        if (q->stream.cap > 0) {
            out->last = q->stream.last;
            out->first = q->stream.last + 1 - q->stream.n;
        }
    }
    lr_mutex_unlock(&h->lock);
    return q ? LADE_DONE : LADE_NOT_FOUND;
}

static bool copy_event(struct lb_arena *a, const struct lq_ev *e, struct lq_ev *to)
{
    *to = *e;
    struct lb_mut job = lb_arena_copy(a, e->job.p, e->job.n);
    struct lb_mut kind = lb_arena_copy(a, e->kind.p, e->kind.n);
    struct lb_mut reason = lb_arena_copy(a, e->reason.p, e->reason.n);
    to->job = lb_slice_of(job);
    to->kind = lb_slice_of(kind);
    to->reason = lb_slice_of(reason);
    return job.p && kind.p && reason.p;
}

static int read_stream(const struct ls_memory_queue *q, uint64_t after, size_t max,
                       struct lq_event_vec *out)
{
    uint64_t first = q->stream.last + 1 - q->stream.n;
    out->after = after == 0 ? first - 1 : LB_MIN(after, q->stream.last);
    if (after != UINT64_MAX && after != out->after && after != 0)
        return LADE_MISSED;
    if (out->after < first - 1)
        return LADE_MISSED;
    if (out->after == q->stream.last)
        return LADE_EMPTY;
    size_t want = LB_MIN(max, (size_t)(q->stream.last - out->after));
    struct lq_ev *grown = lb_arena_alloc(&out->arena, (out->n + want) * sizeof(*grown));
    if (!grown)
        return -LADE_ENOMEM;
    if (out->n > 0)
        memcpy(grown, out->event, out->n * sizeof(*grown));
    out->event = grown;
    lb_list_each (it, &q->stream.list) {
        const struct ls_memory_event *m = LB_CONTAINER_OF(it, struct ls_memory_event, in_stream);
        if (m->e.id <= out->after)
            continue;
        if (want-- == 0)
            break;
        if (!copy_event(&out->arena, &m->e, &out->event[out->n]))
            return -LADE_ENOMEM;
        out->n++;
    }
    return LADE_DONE;
}

int ls_memory_event_read(struct lq_store *s, const char *queue, uint64_t after, size_t max,
                         struct lq_event_vec *out, lade_err *err)
{
    int64_t now;
    struct ls_memory_home *h = ls_memory_enter(s, &now);
    const struct ls_memory_queue *q = ls_memory_queue_find(h, queue);
    int rc = LADE_NOT_FOUND;
    if (q)
        rc = q->stream.cap == 0 ? LADE_WRONG_STATE : read_stream(q, after, max, out);
    lr_mutex_unlock(&h->lock);
    return rc < 0 ? lb_fail_nomem(err, "events") : rc;
}
