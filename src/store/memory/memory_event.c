/*
 * memory_event.c - streams of events, who watches, and what handlers said
 *
 * An event for which there is no memory is left out: it fails nobody.
 */
#include <string.h>

#include "base/mem.h"
#include "store/memory/memory_home.h"

static struct lb_slice keep(uint8_t **at, struct lb_slice s)
{
    struct lb_slice kept = {*at, lq_cut_utf8(s, 255).n};
    if (kept.n > 0)
        memcpy(*at, s.p, kept.n);
    *at += kept.n;
    return kept;
}

static void drop_oldest(struct ls_memory_queue *q)
{
    struct lb_list *oldest = lb_list_pop(&q->stream.list);
    q->stream.n--;
    lb_free(LB_CONTAINER_OF(oldest, struct ls_memory_event, in_stream));
}

void ls_memory_event(struct ls_memory_home *h, struct ls_memory_queue *q, const struct lq_ev *e,
                     int64_t now_ms)
{
    if (q->stream.cap == 0)
        return;
    struct ls_memory_event *m = lb_malloc(sizeof(*m) + e->job.n + e->kind.n + e->reason.n);
    if (!m)
        return;
    uint8_t *at = (uint8_t *)(m + 1);
    m->e = *e;
    m->e.job = keep(&at, e->job);
    m->e.kind = keep(&at, e->kind);
    m->e.reason = keep(&at, e->reason);
    m->e.id = ++q->stream.last;
    m->e.at_ms = now_ms;
    lb_list_push_back(&q->stream.list, &m->in_stream);
    q->stream.n++;
    while (q->stream.n > q->stream.cap)
        drop_oldest(q);
    ls_memory_ring_watchers(h);
}

void ls_memory_event_job(struct ls_memory_home *h, const struct ls_memory_job *j, struct lq_ev e,
                         int64_t now_ms)
{
    if (j->queue->stream.cap == 0)
        return;
    const struct lq_settle *it = h->settling;
    bool settles =
        it && lb_slice_eq(it->id, lb_slice_str(j->id)) && strcmp(it->queue, j->queue->name) == 0;
    e.job = lb_slice_str(j->id);
    e.kind = lq_body_kind(lb_slice_of(j->body));
    if (e.type == LADE_EVENT_ACTIVE || e.type == LADE_EVENT_STALLED)
        e.attempt = lq_history_next_attempt(lb_slice_of(j->history));
    if (settles && e.type != LADE_EVENT_WAITING)
        e.attempt = it->attempt;
    if (settles && e.type == LADE_EVENT_COMPLETED)
        e.value = it->took_us;
    if (settles && e.type == LADE_EVENT_RETRYING)
        e.value = it->delay_ms;
    if (e.type == LADE_EVENT_DEAD)
        e.reason = lb_slice_str(lq_event_reason(settles ? h->settling_as : LQ_REASON_KILLED));
    ls_memory_event(h, j->queue, &e, now_ms);
}

void ls_memory_stream_clear(struct ls_memory_queue *q)
{
    while (q->stream.cap > 0 && q->stream.n > 0)
        drop_oldest(q);
    q->stream.cap = 0;
}

void ls_memory_ring_watchers(struct ls_memory_home *h)
{
    if (lb_list_is_empty(&h->watchers))
        return;
    lb_list_each (it, &h->watchers) {
        LB_CONTAINER_OF(it, struct ls_memory_watcher, in_home)->woken = true;
    }
    lr_cond_wake_all(&h->woken);
}

struct ls_memory_watcher *ls_memory_watcher_find(const struct ls_memory_home *h, const char *name)
{
    lb_list_each (it, &h->watchers) {
        struct ls_memory_watcher *w = LB_CONTAINER_OF(it, struct ls_memory_watcher, in_home);
        if (strcmp(w->name, name) == 0)
            return w;
    }
    return NULL;
}

void ls_memory_watcher_free(struct ls_memory_watcher *w)
{
    lb_list_del(&w->in_home);
    lb_free(w);
}

void ls_memory_notes_free(struct ls_memory_notes *notes)
{
    if (!notes)
        return;
    for (struct lb_list *it; (it = lb_list_pop(&notes->lines));)
        lb_free(LB_CONTAINER_OF(it, struct ls_memory_line, in_notes));
    lb_free(notes->text.p);
    lb_free(notes);
}
