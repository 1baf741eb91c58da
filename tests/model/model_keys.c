/* model_keys.c - keys and limits: drawing them, and comparing what both sides know of keys */
#include "model_ops.h"
#include "queue/key_store.h"

#include <string.h>

#define N_KEYS 5

struct lb_slice tm_draw_key(struct world *w)
{
    static const char *const names[N_KEYS] = {"A", "B", "C", "AB", "z"};

    return w->keyed && tm_chance(w, 60) ? lb_slice_str(names[tm_below(w, N_KEYS)])
                                        : (struct lb_slice){0};
}

static struct lb_slice draw_some_key(struct world *w)
{
    struct lb_slice key = {0};
    while (key.n == 0)
        key = tm_draw_key(w);
    return key;
}

/* Where time cannot be stepped, hours: no token comes while a run lasts. */
static struct lq_limit draw_limit(struct world *w, bool of_queue)
{
    struct lq_limit l = {0};
    if (tm_chance(w, 20))
        return l;
    if (tm_chance(w, 50) && !(w->dressed && of_queue))
        l.concurrency = 1 + (int64_t)tm_below(w, of_queue ? 30 : 3);
    if (!w->dressed && tm_chance(w, w->exact ? 30 : 8)) {
        l.count = 1 + (int64_t)tm_below(w, 5);
        l.period_ms = w->exact ? 1 + (int64_t)tm_below(w, 2000) : 36000000;
        l.burst = 1 + (int64_t)tm_below(w, w->exact ? 6 : 40);
    }
    if (!of_queue && tm_chance(w, 40))
        l.weight = 1 + (int64_t)tm_below(w, 4);
    if (!of_queue && tm_chance(w, 40))
        l.order = 1 + (int64_t)tm_below(w, 2);
    return l;
}

/* In a dressed run seldom, since there is no company while a key has a limit. */
static bool is_dressed_otherwise(struct world *w)
{
    return w->dressed && !tm_chance(w, 15);
}

void tm_op_limit(struct world *w)
{
    if (!w->keyed || is_dressed_otherwise(w))
        return;
    enum lade_limit_scope scope = (enum lade_limit_scope)tm_below(w, 3);
    const char *queue = tm_queue((int)tm_below(w, N_QUEUES));
    struct lb_slice key = draw_some_key(w);
    struct lq_limit l = draw_limit(w, scope == LADE_LIMIT_QUEUE);
    int rc[N_SIDES];
    lade_err err[N_SIDES] = {0};
    tm_trace(w, "limit %s %d %.*s: %lld at once, %lld/%lld ms burst %lld, weight %lld order %lld",
             queue, (int)scope, (int)key.n, (const char *)key.p, (long long)l.concurrency,
             (long long)l.count, (long long)l.period_ms, (long long)l.burst, (long long)l.weight,
             (long long)l.order);
    for (int i = 0; i < N_SIDES; i++)
        rc[i] = lq_limit_set(w->s[i], queue, scope, key, &l, &err[i]);
    tm_same_result(w, "limit", rc, err);
}

void tm_op_pause_key(struct world *w)
{
    if (!w->keyed || is_dressed_otherwise(w))
        return;
    const char *queue = tm_queue((int)tm_below(w, N_QUEUES));
    struct lb_slice key = draw_some_key(w);
    bool paused = tm_chance(w, 30);
    int rc[N_SIDES];
    lade_err err[N_SIDES] = {0};
    tm_trace(w, "%s key %s/%.*s", paused ? "pause" : "resume", queue, (int)key.n,
             (const char *)key.p);
    for (int i = 0; i < N_SIDES; i++)
        rc[i] = lq_key_pause(w->s[i], queue, key, paused, &err[i]);
    tm_same_result(w, "pause of a key", rc, err);
}

static void compare_key(struct world *w, const struct lq_key_row *m, const struct lq_key_row *s)
{
    tm_same_bytes(w, "key", m->key, s->key);
    tm_same(w, "ready of a key", m->ready, s->ready);
    tm_same(w, "active of a key", m->active, s->active);
    tm_same(w, "waiting of a key", m->waiting, s->waiting);
    tm_same(w, "pause of a key", m->paused, s->paused);
    tm_same(w, "hold of a key", m->hold, s->hold);
    tm_same(w, "own limit of a key", memcmp(&m->own, &s->own, sizeof(m->own)), 0);
    tm_same(w, "limit of a key", memcmp(&m->joined, &s->joined, sizeof(m->joined)), 0);
    if (w->exact) {
        tm_same(w, "until of a key", m->until_ms, s->until_ms);
        tm_same(w, "latency of a key", m->latency_ms, s->latency_ms);
    }
}

void tm_compare_keys(struct world *w, int queue)
{
    struct lq_key_row_vec rows[N_SIDES] = {0};
    lade_err err = {0};
    for (int i = 0; i < N_SIDES && w->keyed; i++) {
        lade_cursor cursor = {0};
        while (!cursor.done && !w->failure[0]) {
            if (w->s[i]->ops->key_list(w->s[i], tm_queue(queue), &cursor, 1 + w->at % 4, &rows[i],
                                       &err) < 0)
                tm_fail(w, "key_list: %s", err.text);
        }
    }
    tm_same(w, "number of keys", (int64_t)rows[MODEL].n, (int64_t)rows[STORE].n);
    for (size_t i = 0; i < rows[MODEL].n && !w->failure[0]; i++)
        compare_key(w, &rows[MODEL].row[i], &rows[STORE].row[i]);
    for (int i = 0; i < N_SIDES; i++)
        lb_arena_fini(&rows[i].arena);
}

/* Takes company apart. Whose turn it is, and so what keys wait for, is left open where there is some. */
void tm_op_look_at_keys(struct world *w)
{
    if (!w->dressed)
        return;
    int queue = (int)tm_below(w, N_QUEUES);
    tm_trace(w, "look at the keys of %s", tm_queue(queue));
    tm_compare_keys(w, queue);
}
