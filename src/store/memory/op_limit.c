/* op_limit.c - limits and keys, as operators set and see them */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "queue/key_store.h"
#include "store/memory/memory_home.h"
#include "store/memory/memory_ops.h"

/* The part of limit_set after which nothing can fail. */
static void set_limit(struct ls_memory_home *h, struct ls_memory_queue *q,
                      struct ls_memory_tenant *t, enum lade_limit_scope scope,
                      const struct lq_limit *limit, int64_t now_ms)
{
    q->gated = true;
    switch (scope) {
    case LADE_LIMIT_QUEUE:
        q->limit = *limit;
        break;
    case LADE_LIMIT_KEYS:
        q->usual = *limit;
        ls_memory_tenants_loosen(q);
        break;
    case LADE_LIMIT_KEY:
    default:
        t->own = *limit;
        ls_memory_tenant_settle(h, t, now_ms);
        break;
    }
    ls_memory_queue_wake(h, q, h->workers.n);
}

int ls_memory_limit_set(struct lq_store *s, const char *queue, enum lade_limit_scope scope,
                        struct lb_slice key, const struct lq_limit *limit, lade_err *err)
{
    int64_t now;
    struct ls_memory_home *h = ls_memory_enter(s, &now);
    struct ls_memory_queue *q = ls_memory_queue_make(h, queue);
    struct ls_memory_tenant *t =
        q && scope == LADE_LIMIT_KEY ? ls_memory_tenant_make(q, key) : NULL;
    bool ok = q && (t || scope != LADE_LIMIT_KEY);
    if (ok)
        set_limit(h, q, t, scope, limit, now);
    lr_mutex_unlock(&h->lock);
    return ok ? LADE_DONE : lb_fail_nomem(err, "limit");
}

int ls_memory_limit_get(struct lq_store *s, const char *queue, enum lade_limit_scope scope,
                        struct lb_slice key, struct lq_limit *out, lade_err *err)
{
    (void)err;
    int64_t now;
    struct ls_memory_home *h = ls_memory_enter(s, &now);
    const struct ls_memory_queue *q = ls_memory_queue_find(h, queue);
    const struct ls_memory_tenant *t =
        q && scope == LADE_LIMIT_KEY ? ls_memory_tenant_find(q, key) : NULL;
    if (q && scope == LADE_LIMIT_KEY)
        *out = t ? t->own : (struct lq_limit){0};
    else if (q)
        *out = scope == LADE_LIMIT_QUEUE ? q->limit : q->usual;
    lr_mutex_unlock(&h->lock);
    return q ? LADE_DONE : LADE_NOT_FOUND;
}

int ls_memory_key_pause(struct lq_store *s, const char *queue, struct lb_slice key, bool paused,
                        lade_err *err)
{
    int64_t now;
    struct ls_memory_home *h = ls_memory_enter(s, &now);
    struct ls_memory_queue *q = ls_memory_queue_make(h, queue);
    struct ls_memory_tenant *t = q ? ls_memory_tenant_make(q, key) : NULL;
    if (t) {
        t->facts.paused = paused;
        if (!paused)
            t->facts.until_us = 0;
        ls_memory_tenant_settle(h, t, now);
    }
    lr_mutex_unlock(&h->lock);
    return t ? LADE_DONE : lb_fail_nomem(err, "key");
}

/* Whether a listing shows it. */
static bool is_shown(const struct ls_memory_tenant *t, int64_t now_us)
{
    return t->facts.ready + t->facts.active + t->waiting > 0 || t->facts.paused ||
           t->facts.until_us > now_us || !lq_limit_is_zero(&t->own);
}

/* False when out of memory; the room is there. */
static bool describe(const struct ls_memory_tenant *t, int64_t now_ms, struct lq_key_row_vec *out)
{
    struct lq_limit l = ls_memory_tenant_limit(t);
    struct lb_mut key = lb_arena_copy(&out->arena, t->key.p, t->key.n);
    const struct ls_memory_job *first = ls_memory_first_ready(t->queue, t);
    struct lq_key_row *row = &out->row[out->n];
    int64_t at;
    *row = (struct lq_key_row){.key = lb_slice_of(key),
                               .ready = t->facts.ready,
                               .active = t->facts.active,
                               .waiting = t->waiting,
                               .paused = t->facts.paused,
                               .latency_ms = first ? now_ms - first->ready_ms : 0,
                               .own = t->own,
                               .joined = l};
    (void)lq_key_room(&l, &t->facts, now_ms * 1000, &at, &row->hold);
    row->until_ms = at == LQ_NOT_BY_TIME ? 0 : (at + 999) / 1000;
    out->n += key.p != NULL;
    return key.p != NULL;
}

static int compare_keys(const void *a, const void *b)
{
    const struct ls_memory_tenant *x = *(const struct ls_memory_tenant *const *)a;
    const struct ls_memory_tenant *y = *(const struct ls_memory_tenant *const *)b;
    return ls_memory_key_compare((struct ls_memory_key){0, 0, x->key},
                                 (struct ls_memory_key){0, 0, y->key});
}

/* All that a listing shows, sorted; NULL when out of memory. */
static const struct ls_memory_tenant **collect(const struct ls_memory_queue *q, int64_t now_ms,
                                               size_t *n)
{
    const struct ls_memory_tenant **all =
        (const struct ls_memory_tenant **)lb_malloc((q->tenants.n + 1) * sizeof(void *));
    size_t at = 0;
    *n = 0;
    for (const struct ls_memory_tenant *t; all && (t = lb_map_next(&q->tenants, &at));) {
        if (is_shown(t, now_ms * 1000))
            all[(*n)++] = t;
    }
    if (all)
        qsort((void *)all, *n, sizeof(*all), compare_keys);
    return all;
}

static bool reserve(struct lq_key_row_vec *out, size_t n)
{
    struct lq_key_row *rows = lb_arena_alloc(&out->arena, (out->n + n) * sizeof(*rows));
    if (rows && out->n > 0)
        memcpy(rows, out->row, out->n * sizeof(*rows));
    if (rows)
        out->row = rows;
    return rows != NULL;
}

/* Appends up to limit of them behind the cursor, which moves on. */
static bool read_page(const struct ls_memory_queue *q, lade_cursor *cursor, size_t limit,
                      int64_t now_ms, struct lq_key_row_vec *out)
{
    size_t n, i = 0;
    struct lb_slice after = {NULL, 0};
    uint8_t key[LADE_KEY_MAX];
    if (cursor->at[0]) {
        after.n = lq_key_of_cursor(cursor, key);
        after.p = key;
    }
    const struct ls_memory_tenant **all = collect(q, now_ms, &n);
    bool ok = all && reserve(out, LB_MIN(n, limit) + 1);
    while (ok && i < n &&
           ls_memory_key_compare((struct ls_memory_key){0, 0, all[i]->key},
                                 (struct ls_memory_key){0, 0, after}) <= 0)
        i++;
    for (size_t k = 0; ok && i < n && k < limit; i++, k++) {
        ok = describe(all[i], now_ms, out);
        lq_key_to_cursor(cursor, all[i]->key);
    }
    cursor->done = i >= n;
    lb_free((void *)all);
    return ok;
}

int ls_memory_key_list(struct lq_store *s, const char *queue, lade_cursor *cursor, size_t limit,
                       struct lq_key_row_vec *out, lade_err *err)
{
    int64_t now;
    size_t before = out->n;
    struct ls_memory_home *h = ls_memory_enter(s, &now);
    const struct ls_memory_queue *q = ls_memory_queue_find(h, queue);
    bool ok = true;
    if (q)
        ok = read_page(q, cursor, limit, now, out);
    else
        cursor->done = true;
    lr_mutex_unlock(&h->lock);
    if (!ok)
        return lb_fail_nomem(err, "key");
    return out->n == before ? LADE_EMPTY : LADE_DONE;
}

int ls_memory_key_get(struct lq_store *s, const char *queue, struct lb_slice key,
                      struct lq_key_row_vec *out, lade_err *err)
{
    int64_t now;
    struct ls_memory_home *h = ls_memory_enter(s, &now);
    const struct ls_memory_queue *q = ls_memory_queue_find(h, queue);
    const struct ls_memory_tenant *t = q ? ls_memory_tenant_find(q, key) : NULL;
    bool there = t && is_shown(t, now * 1000);
    bool ok = !there || (reserve(out, 1) && describe(t, now, out));
    lr_mutex_unlock(&h->lock);
    if (!ok)
        return lb_fail_nomem(err, "key");
    return there ? LADE_DONE : LADE_NOT_FOUND;
}
