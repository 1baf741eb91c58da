/*
 * tail.c - reading the events of some queues
 *
 * A tail is a cursor in each queue. Next reads the queues in turn, from the one behind the last that gave something, and waits
 * (watch.h) when none has anything.
 */
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "queue/client.h"
#include "queue/event.h"
#include "queue/names.h"

struct cursor {
    char queue[LADE_NAME_MAX + 1];
    uint64_t after;
};

struct lade_tail {
    lade *q;
    struct lade_waiter waiter;
    struct lq_event_vec got;
    size_t at;        /* in got: what is to be handed out next */
    size_t from;      /* the queue that got is of */
    lade_event *view; /* of the last batch; in got.arena */
    uint64_t missed;
    size_t n;
    struct cursor cursor[];
};

int lade_queue_events_set(lade *q, const char *queue, uint32_t cap, lade_err *err)
{
    LQ_REFUSE_NULL(q, "events");
    int rc = lq_queue_check(queue, "events", err);
    if (rc == 0 && cap > LADE_EVENTS_CAP_MAX)
        rc = lb_fail(err, LADE_EINVAL, "events", "cap %u is over %d events", cap,
                     LADE_EVENTS_CAP_MAX);
    return rc < 0 ? rc : lq_events_set(q->store, queue, cap, err);
}

int lade_queue_events_get(lade *q, const char *queue, lade_events_info *out, lade_err *err)
{
    LQ_REFUSE_NULL(q, "events");
    LQ_REFUSE_NULL(out, "events");
    int rc = lq_queue_check(queue, "events", err);
    return rc < 0 ? rc : q->store->ops->events_get(q->store, queue, out, err);
}

int lade_tail_open(lade_tail **out, lade *q, const char *const *queues, size_t n, uint64_t after,
                   lade_err *err)
{
    LQ_REFUSE_NULL(out, "tail");
    LQ_REFUSE_NULL(q, "tail");
    LQ_REFUSE_NULL(queues, "tail");
    if (n == 0 || n > LADE_TAIL_QUEUES_MAX)
        return lb_fail(err, LADE_EINVAL, "tail", "n is %zu, not within 1 to %d queues", n,
                       LADE_TAIL_QUEUES_MAX);
    for (size_t i = 0; i < n; i++) {
        int rc = lq_queue_check(queues[i], "tail", err);
        if (rc < 0)
            return rc;
    }
    lade_tail *t = lb_calloc(1, sizeof(*t) + n * sizeof(t->cursor[0]));
    if (!t)
        return lb_fail_nomem(err, "tail");
    t->q = q;
    t->waiter.hub = &q->hub;
    t->n = n;
    lb_arena_init(&t->got.arena);
    for (size_t i = 0; i < n; i++) {
        (void)snprintf(t->cursor[i].queue, sizeof(t->cursor[i].queue), "%s", queues[i]);
        t->cursor[i].after = after;
    }
    *out = t;
    return 0;
}

int lade_tail_seek(lade_tail *t, const char *queue, uint64_t after)
{
    if (!t || !queue)
        return -LADE_EINVAL;
    for (size_t i = 0; i < t->n; i++) {
        if (strcmp(t->cursor[i].queue, queue) != 0)
            continue;
        t->cursor[i].after = after;
        t->got.n = t->at = 0; /* read again */
        return 0;
    }
    return LADE_NOT_FOUND;
}

/* NUL-terminated, in the arena; NULL when out of memory. */
static const char *text_of(struct lb_arena *a, struct lb_slice s)
{
    return (const char *)lb_arena_copy(a, s.p, s.n).p;
}

static bool make_view(lade_tail *t, const struct lq_ev *e, lade_event *out)
{
    struct lb_arena *a = &t->got.arena;
    *out = (lade_event){.id = e->id,
                        .at = lb_ns_of_ms(e->at_ms),
                        .type = e->type,
                        .queue = t->cursor[t->from].queue,
                        .job = text_of(a, e->job),
                        .kind = text_of(a, e->kind),
                        .reason = text_of(a, e->reason),
                        .attempt = (int)e->attempt,
                        .percent = e->type == LADE_EVENT_PROGRESS ? (int)e->value : -1};
    if (e->type == LADE_EVENT_COMPLETED || e->type == LADE_EVENT_FAILED)
        out->duration = e->value * 1000;
    if (e->type == LADE_EVENT_RETRYING)
        out->duration = lb_ns_of_ms(e->value);
    return out->job && out->kind && out->reason;
}

/* Hands out what was read. */
static int give(lade_tail *t, size_t max, const lade_event **out, size_t *n, lade_err *err)
{
    size_t k = LB_MIN(max, t->got.n - t->at);
    t->view = lb_arena_alloc(&t->got.arena, k * sizeof(*t->view));
    if (!t->view)
        return lb_fail_nomem(err, "tail");
    for (size_t i = 0; i < k; i++) {
        if (!make_view(t, &t->got.event[t->at + i], &t->view[i]))
            return lb_fail_nomem(err, "tail");
    }
    t->at += k;
    t->cursor[t->from].after = t->view[k - 1].id;
    *out = t->view;
    *n = k;
    return 0;
}

static int note_missed(lade_tail *t, struct cursor *c, lade_err *err)
{
    lade_events_info info = {0};
    int rc = t->q->store->ops->events_get(t->q->store, c->queue, &info, err);
    if (rc < 0)
        return rc;
    t->missed = info.first > c->after && c->after > 0 ? info.first - 1 - c->after : 0;
    c->after = LADE_TAIL_START;
    return LADE_MISSED;
}

/* Reads one queue: 0 with t->got filled, EMPTY, WRONG_STATE (off or not there), MISSED or a failure. */
static int read_queue(lade_tail *t, size_t i, size_t max, lade_err *err)
{
    struct cursor *c = &t->cursor[i];
    t->got.n = t->at = 0;
    t->got.event = NULL;
    lb_arena_reset(&t->got.arena);
    int rc = t->q->store->ops->event_read(t->q->store, c->queue, c->after, max, &t->got, err);
    t->from = i;
    if (rc == LADE_NOT_FOUND || rc == LADE_WRONG_STATE) {
        c->after = LADE_TAIL_START; /* a new stream has other numbers */
        return LADE_WRONG_STATE;
    }
    if (rc == LADE_EMPTY && (c->after == LADE_TAIL_START || c->after == LADE_TAIL_NOW))
        c->after = t->got.after;
    if (rc == LADE_MISSED)
        return note_missed(t, c, err);
    return rc == 0 && t->got.n == 0 ? LADE_EMPTY : rc;
}

/* All queues once. 0, EMPTY, WRONG_STATE (all are off), MISSED or a failure. */
static int read_queues(lade_tail *t, size_t max, lade_err *err)
{
    size_t first = t->from + 1, off = 0;
    for (size_t k = 0; k < t->n; k++) {
        int rc = read_queue(t, (first + k) % t->n, max, err);
        if (rc != LADE_EMPTY && rc != LADE_WRONG_STATE)
            return rc;
        off += rc == LADE_WRONG_STATE;
    }
    return off == t->n ? LADE_WRONG_STATE : LADE_EMPTY;
}

/* 0 when one of the queues may have something. */
static int wait_for_any(lade_tail *t, int64_t deadline, lade_err *err)
{
    struct lq_watch it[LADE_TAIL_QUEUES_MAX];
    size_t n = 0;
    for (size_t i = 0; i < t->n; i++) {
        const struct cursor *c = &t->cursor[i];
        /* Not resolved: its stream is off. Whoever turns it on is not heard; the next call finds it. */
        if (c->after != LADE_TAIL_START && c->after != LADE_TAIL_NOW)
            it[n++] = (struct lq_watch){.queue = c->queue,
                                        .what = LQ_WATCH_EVENTS,
                                        .after = c->after,
                                        .outcome = LADE_EMPTY};
    }
    return lq_hub_wait(&t->q->hub, it, n, deadline, &t->waiter, err);
}

int lade_tail_next(lade_tail *t, size_t max, int64_t timeout, const lade_event **out, size_t *n,
                   lade_err *err)
{
    LQ_REFUSE_NULL(t, "tail");
    LQ_REFUSE_NULL(out, "tail");
    LQ_REFUSE_NULL(n, "tail");
    if (max == 0 || max > LADE_TAIL_BATCH_MAX)
        return lb_fail(err, LADE_EINVAL, "tail", "max %zu is not within 1 to %d", max,
                       LADE_TAIL_BATCH_MAX);
    if (timeout < 0)
        return lb_fail(err, LADE_EINVAL, "tail",
                       "timeout %lld is below 0; LADE_FOREVER waits without end",
                       (long long)timeout);
    int64_t deadline = lb_deadline_in(timeout);
    if (lq_waiter_is_cancelled(&t->waiter))
        return LADE_STOPPED;
    if (t->at < t->got.n)
        return give(t, max, out, n, err);
    int rc;
    while ((rc = read_queues(t, max, err)) == LADE_EMPTY) {
        if (timeout == 0)
            return LADE_TIMEOUT;
        rc = wait_for_any(t, deadline, err);
        if (rc != 0)
            return rc;
    }
    return rc == 0 ? give(t, max, out, n, err) : rc;
}

uint64_t lade_tail_missed(const lade_tail *t)
{
    return t ? t->missed : 0;
}

void lade_tail_cancel(lade_tail *t)
{
    if (t)
        lq_hub_cancel(&t->waiter);
}

void lade_tail_close(lade_tail *t)
{
    if (!t)
        return;
    lb_arena_fini(&t->got.arena);
    lb_free(t);
}
