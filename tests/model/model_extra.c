/*
 * model_extra.c - bounds, results with a time of their own, what handlers say, and events: drawing them, and comparing what both sides
 * then know
 *
 * Events are read after each op and compared as a set: in which order the jobs of one call are told of is left open.
 */
#include "model_ops.h"

#include <stdlib.h>
#include <string.h>

#include "queue/bound.h"
#include "queue/event.h"

#define LINES     3
#define EVENTS    2000
#define CAP       5000
#define HOUR_MS   INT64_C(3600000)
#define TELLS_ALL 200 /* events of one op that are compared */

/* bounds ----------------------------------------------------------------------------------------------------------- */

void tm_op_bound(struct world *w)
{
    if (!w->bounded)
        return;
    const char *queue = tm_queue((int)tm_below(w, N_QUEUES));
    struct lq_bound b = {0};
    int rc[N_SIDES];
    lade_err err[N_SIDES] = {0};
    if (tm_chance(w, 50))
        b.max_jobs = 1 + (int64_t)tm_below(w, 60);
    if (tm_chance(w, 60))
        b.max_bytes = 1 + (int64_t)tm_below(w, 3000);
    b.block = lq_bound_is_set(&b) && tm_chance(w, 30);
    tm_trace(w, "bound %s: %lld jobs, %lld bytes", queue, (long long)b.max_jobs,
             (long long)b.max_bytes);
    for (int i = 0; i < N_SIDES; i++)
        rc[i] = lq_bound_set(w->s[i], queue, &b, &err[i]);
    tm_same_result(w, "bound", rc, err);
}

void tm_compare_bounds(struct world *w, const char *queue)
{
    struct lq_bound b[N_SIDES] = {0};
    int rc[N_SIDES];
    lade_err err[N_SIDES] = {0};
    for (int i = 0; i < N_SIDES; i++)
        rc[i] = w->s[i]->ops->bounds->get(w->s[i], queue, &b[i], &err[i]);
    tm_same_result(w, "bound", rc, err);
    tm_same(w, "max_jobs", b[MODEL].max_jobs, b[STORE].max_jobs);
    tm_same(w, "max_bytes", b[MODEL].max_bytes, b[STORE].max_bytes);
    tm_same(w, "block", b[MODEL].block, b[STORE].block);
    tm_same(w, "bytes that wait", b[MODEL].bytes, b[STORE].bytes);
}

/* results ---------------------------------------------------------------------------------------------------------- */

/* Not where queues are forgotten: whether they go with those is left open. */
int64_t tm_draw_result_ttl(struct world *w)
{
    if (w->forgets || !tm_chance(w, 40))
        return 0;
    return w->exact ? 1 + (int64_t)tm_below(w, 20000) : HOUR_MS;
}

static void compare_results(struct world *w, const char *queue, const struct lb_slice *id, size_t n)
{
    struct lq_result *got[N_SIDES];
    int rc[N_SIDES];
    lade_err err[N_SIDES] = {0};
    for (int i = 0; i < N_SIDES; i++) {
        got[i] = tm_alloc(w, n * sizeof(*got[i]));
        memset(got[i], 0, n * sizeof(*got[i]));
        rc[i] = w->s[i]->ops->results(w->s[i], queue, id, n, &w->arena, got[i], &err[i]);
    }
    tm_same_result(w, "results", rc, err);
    for (size_t i = 0; i < n && !w->failure[0]; i++) {
        char what[120];
        (void)snprintf(what, sizeof(what), "result of %s/%.*s", queue, (int)id[i].n,
                       (const char *)id[i].p);
        tm_same(w, what, got[MODEL][i].outcome, got[STORE][i].outcome);
        if (got[MODEL][i].outcome != LADE_NOT_FOUND)
            tm_same(w, what, got[MODEL][i].state, got[STORE][i].state);
        if (got[MODEL][i].outcome == LADE_DONE)
            tm_same_bytes(w, what, lb_slice_of(got[MODEL][i].bytes),
                          lb_slice_of(got[STORE][i].bytes));
    }
}

/* Of all ids by number, and of the young ones of blocks. */
void tm_compare_results(struct world *w, const char *queue)
{
    struct lb_slice id[N_IDS + 200];
    size_t n = 0;
    for (; n < N_IDS; n++) {
        char *text = tm_alloc(w, 12);
        (void)snprintf(text, 12, "j%zu", n);
        id[n] = lb_slice_str(text);
    }
    for (unsigned b = w->n_blocks > 6 ? w->n_blocks - 6 : 0; b < w->n_blocks; b++) {
        for (unsigned k = 0; k < w->made[b] && n < LB_ARRAY_LEN(id); k++)
            id[n++] = lb_slice_str(tm_block_id(w, b, k));
    }
    compare_results(w, queue, id, n);
}

/* words ------------------------------------------------------------------------------------------------------------ */

static void compare_words(struct world *w, const char *queue, const char *id)
{
    struct lq_words words[N_SIDES] = {0};
    int rc[N_SIDES];
    lade_err err[N_SIDES] = {0};
    for (int i = 0; i < N_SIDES; i++) {
        words[i] = (struct lq_words){.arena = &w->arena, .start = 0, .limit = 20};
        rc[i] = w->s[i]->ops->words(w->s[i], queue, lb_slice_str(id), &words[i], &err[i]);
    }
    tm_same_result(w, "words", rc, err);
    if (rc[MODEL] != 0)
        return;
    const struct lq_words *m = &words[MODEL], *s = &words[STORE];
    tm_same(w, "percent", m->percent, s->percent);
    tm_same_bytes(w, "text of progress", lb_slice_of(m->text), lb_slice_of(s->text));
    tm_same(w, "lines ever written", (int64_t)m->total, (int64_t)s->total);
    tm_same(w, "lines", (int64_t)m->n, (int64_t)s->n);
    for (size_t i = 0; i < m->n && !w->failure[0]; i++) {
        tm_same(w, "number of a line", (int64_t)m->line[i].number, (int64_t)s->line[i].number);
        tm_same_bytes(w, "line", lb_slice_of(m->line[i].text), lb_slice_of(s->line[i].text));
    }
}

/* A handler says something; now and then one whose lease is over. */
void tm_op_say(struct world *w)
{
    struct lease *l = tm_draw_lease(w);
    struct lq_say it[N_SIDES];
    struct lb_slice line[LINES];
    int64_t line_ms[LINES];
    int rc[N_SIDES];
    lade_err err[N_SIDES] = {0};
    if (!l)
        return;
    struct lq_say say = {.queue = tm_queue(l->queue),
                         .id = lb_slice_str(l->id),
                         .percent = tm_chance(w, 60) ? (int)tm_below(w, 101) : -1,
                         .line = line,
                         .line_ms = line_ms,
                         .kind = lb_slice(l->kind, l->n_kind),
                         .n_lines = tm_below(w, LINES + 1)};
    if (say.percent >= 0 && tm_chance(w, 50))
        say.text = lb_slice_str("half way");
    for (size_t i = 0; i < say.n_lines; i++) {
        char *text = tm_alloc(w, 24);
        (void)snprintf(text, 24, "line %u", (unsigned)tm_below(w, 1000));
        line[i] = lb_slice_str(text);
        line_ms[i] = tm_now(w);
    }
    if (say.percent < 0 && say.n_lines == 0)
        return;
    tm_trace(w, "say %s/%s %d%% and %zu lines", say.queue, l->id, say.percent, say.n_lines);
    for (int i = 0; i < N_SIDES; i++) {
        it[i] = say;
        it[i].fence = l->fence[i];
        rc[i] = lq_say(w->s[i], &it[i], 1, &err[i]);
    }
    tm_same_result(w, "say", rc, err);
    tm_same(w, "outcome of what was said", it[MODEL].outcome, it[STORE].outcome);
    if (!w->failure[0])
        compare_words(w, say.queue, l->id);
}

/* events ----------------------------------------------------------------------------------------------------------- */

static void read_last(struct world *w, int side, int queue)
{
    lade_events_info info = {0};
    lade_err err = {0};
    if (w->s[side]->ops->events_get(w->s[side], tm_queue(queue), &info, &err) < 0)
        tm_fail(w, "events_get: %s", err.text);
    w->seen[side][queue] = info.last;
}

void tm_op_events(struct world *w)
{
    if (!w->told)
        return;
    int queue = (int)tm_below(w, N_QUEUES);
    uint32_t cap = tm_chance(w, 80) ? CAP : 0;
    int rc[N_SIDES];
    lade_err err[N_SIDES] = {0};
    tm_trace(w, "events of %s %s", tm_queue(queue), cap ? "on" : "off");
    for (int i = 0; i < N_SIDES; i++)
        rc[i] = lq_events_set(w->s[i], tm_queue(queue), cap, &err[i]);
    tm_same_result(w, "events", rc, err);
    for (int i = 0; i < N_SIDES && cap; i++)
        read_last(w, i, queue);
}

static int compare_slices(struct lb_slice a, struct lb_slice b)
{
    size_t n = LB_MIN(a.n, b.n);
    int order = n > 0 ? memcmp(a.p, b.p, n) : 0;
    return order ? order : (a.n > b.n) - (a.n < b.n);
}

static int compare_events(const void *a, const void *b)
{
    const struct lq_ev *x = a, *y = b;
    int order = compare_slices(x->job, y->job);
    if (order == 0)
        order = (x->type > y->type) - (x->type < y->type);
    if (order == 0)
        order = (x->attempt > y->attempt) - (x->attempt < y->attempt);
    return order ? order : compare_slices(x->reason, y->reason);
}

static bool read_new(struct world *w, int side, int queue, struct lq_event_vec *out)
{
    lade_err err = {0};
    int rc = w->s[side]->ops->event_read(w->s[side], tm_queue(queue), w->seen[side][queue], EVENTS,
                                         out, &err);
    if (rc == LADE_MISSED || rc < 0)
        tm_fail(w, "events of %s: %s %s", tm_queue(queue), lade_result_name(rc), err.text);
    if (rc == LADE_EMPTY || rc == LADE_NOT_FOUND || rc == LADE_WRONG_STATE)
        out->n = 0;
    if (out->n > 0) {
        w->seen[side][queue] = out->event[out->n - 1].id;
        qsort(out->event, out->n, sizeof(*out->event), compare_events);
    }
    return rc >= 0;
}

static void compare_told(struct world *w, int queue)
{
    struct lq_event_vec got[N_SIDES] = {0};
    bool ok = read_new(w, MODEL, queue, &got[MODEL]);
    ok = read_new(w, STORE, queue, &got[STORE]) && ok;
    char what[160];
    (void)snprintf(what, sizeof(what), "events of %s", tm_queue(queue));
    for (size_t i = 0; ok && i < LB_MAX(got[MODEL].n, got[STORE].n) && !w->failure[0]; i++) {
        for (int s = 0; s < N_SIDES && got[MODEL].n != got[STORE].n; s++) {
            const struct lq_ev *e = i < got[s].n ? &got[s].event[i] : NULL;
            if (e && i < TELLS_ALL)
                tm_trace(w, " [%s %d %.*s]", s == MODEL ? "m" : "s", (int)e->type, (int)e->job.n,
                         (const char *)e->job.p);
        }
    }
    if (ok)
        tm_same(w, what, (int64_t)got[MODEL].n, (int64_t)got[STORE].n);
    ok = ok && got[MODEL].event && got[STORE].event;
    for (size_t i = 0; ok && i < got[MODEL].n && !w->failure[0]; i++) {
        const struct lq_ev *m = &got[MODEL].event[i], *s = &got[STORE].event[i];
        (void)snprintf(what, sizeof(what), "event %d of %s/%.*s", (int)m->type, tm_queue(queue),
                       (int)m->job.n, (const char *)m->job.p);
        tm_same(w, what, m->type, s->type);
        tm_same_bytes(w, what, m->job, s->job);
        tm_same_bytes(w, what, m->kind, s->kind);
        /* A client that talks to a server learns of a new stream by its next take only: before, it does not say how it came to this. */
        if (w->exact || m->type != LADE_EVENT_FAILED)
            tm_same_bytes(w, what, m->reason, s->reason);
        tm_same(w, what, m->attempt, s->attempt);
        if (w->exact)
            tm_same(w, what, m->value, s->value);
    }
    for (int i = 0; i < N_SIDES; i++)
        lb_arena_fini(&got[i].arena);
}

void tm_compare_events(struct world *w)
{
    for (int q = 0; q < N_QUEUES && w->told && !w->failure[0]; q++)
        compare_told(w, q);
}
