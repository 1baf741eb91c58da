/* limit_api.c - keys and limits as programs and operators see them: arguments checked, then one store op */
#include <stdio.h>

#include "base/arena.h"
#include "base/base.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "queue/client.h"
#include "queue/limit.h"
#include "queue/names.h"
#include "queue/worker.h"

#define YEARS_100_MS (INT64_C(36525) * 86400000)

const char *lade_key_hold_name(enum lade_key_hold hold)
{
    static const char *const names[] = {"", "paused", "concurrency", "rate", "order"};

    return (unsigned)hold < LB_ARRAY_LEN(names) ? names[hold] : NULL;
}

int lq_keys_check(const lade *q, const char *where, lade_err *err)
{
    if (q->store->ops->key_list)
        return 0;
    return lb_fail(err, LADE_EUNSUPPORTED, where, "the store %s has no keys and limits",
                   q->store->ops->name);
}

static int check_key(lade_bytes key, const char *where, lade_err *err)
{
    if (key.size >= 1 && key.size <= LADE_KEY_MAX && key.data)
        return 0;
    if (!key.data && key.size > 0)
        return lb_fail(err, LADE_EINVAL, where, "key is NULL with a size");
    return lb_fail(err, LADE_EINVAL, where, "key has %zu bytes; it must be 1 to %d", key.size,
                   LADE_KEY_MAX);
}

static int check_scope(enum lade_limit_scope scope, lade_bytes key, lade_err *err)
{
    if ((unsigned)scope > LADE_LIMIT_KEY)
        return lb_fail(err, LADE_EINVAL, "limit", "scope %d is unknown", (int)scope);
    return scope == LADE_LIMIT_KEY ? check_key(key, "limit", err) : 0;
}

#define REFUSE(...) lb_fail(err, LADE_EINVAL, "limit", __VA_ARGS__)

/* What the fields say by themselves; `none`: LADE_LIMIT_NONE may be said. */
static int check_rate(const lade_rate *r, bool none, lade_err *err)
{
    if (r->count < 0 && !(none && r->count == LADE_LIMIT_NONE))
        return REFUSE("rate.count is %lld; it must be at least 1, or 0 for none%s",
                      (long long)r->count, none ? ", or LADE_LIMIT_NONE" : "");
    if (r->count <= 0) {
        if (r->period == 0 && r->burst == 0)
            return 0;
        return REFUSE("rate.%s is set, but rate.count is not", r->period != 0 ? "period" : "burst");
    }
    if (r->period < LADE_MILLISECOND)
        return REFUSE("rate.period is %lld ns; it must be at least 1 ms", (long long)r->period);
    if (r->burst < 0)
        return REFUSE("rate.burst is %lld; it must be at least 1, or 0 for rate.count",
                      (long long)r->burst);
    if (r->period / 1000 < r->count)
        return REFUSE("rate.count is %lld in %lld us; at most one a microsecond can be told apart",
                      (long long)r->count, (long long)(r->period / 1000));
    int64_t burst = r->burst > 0 ? r->burst : r->count, step = lb_ms_up(r->period) / r->count + 1;
    if (lb_ms_up(r->period) > YEARS_100_MS || step > YEARS_100_MS / burst)
        return REFUSE("rate.burst times rate.period over rate.count is more than 100 years");
    return 0;
}

static int check_limit(const lade_limit *l, enum lade_limit_scope scope, lade_err *err)
{
    bool of_key = scope == LADE_LIMIT_KEY;
    if (l->concurrency < 0 && !(of_key && l->concurrency == LADE_LIMIT_NONE))
        return REFUSE("concurrency is %lld; it must be at least 1, or 0 for none%s",
                      (long long)l->concurrency, of_key ? ", or LADE_LIMIT_NONE" : "");
    if (l->concurrency > LADE_LIMIT_CONCURRENCY_MAX)
        return REFUSE("concurrency is %lld; it must be at most %d", (long long)l->concurrency,
                      LADE_LIMIT_CONCURRENCY_MAX);
    if (l->weight < 0 || l->weight > LADE_LIMIT_WEIGHT_MAX)
        return REFUSE("weight is %lld; it must be 1 to %d, or 0 for 1", (long long)l->weight,
                      LADE_LIMIT_WEIGHT_MAX);
    if ((unsigned)l->order > LADE_KEY_ORDER_FIFO)
        return REFUSE("order %d is unknown", (int)l->order);
    if (scope == LADE_LIMIT_QUEUE && (l->weight != 0 || l->order != LADE_KEY_ORDER_DEFAULT))
        return REFUSE("%s is of keys; a whole queue has none", l->weight != 0 ? "weight" : "order");
    return check_rate(&l->rate, of_key, err);
}

static struct lq_limit to_stored(const lade_limit *l)
{
    struct lq_limit s = {.concurrency = l->concurrency,
                         .count = l->rate.count,
                         .weight = l->weight,
                         .order = l->order};
    if (l->rate.count > 0) {
        s.period_ms = lb_ms_up(l->rate.period);
        s.burst = l->rate.burst > 0 ? l->rate.burst : l->rate.count;
    }
    return s;
}

static lade_limit to_public(const struct lq_limit *s)
{
    return (lade_limit){.concurrency = s->concurrency,
                        .rate = {s->count, lb_ns_of_ms(s->period_ms), s->burst},
                        .weight = s->weight,
                        .order = (enum lade_key_order)s->order};
}

static struct lb_slice slice_of(lade_bytes b)
{
    return lb_slice(b.data, b.size);
}

/* What all functions of limits ask first. */
static int check_call(lade *q, const char *queue, enum lade_limit_scope scope, lade_bytes key,
                      lade_err *err)
{
    LQ_REFUSE_NULL(q, "limit");
    int rc = lq_queue_check(queue, "limit", err);
    if (rc == 0)
        rc = check_scope(scope, key, err);
    return rc < 0 ? rc : lq_keys_check(q, "limit", err);
}

int lade_limit_set(lade *q, const char *queue, enum lade_limit_scope scope, lade_bytes key,
                   const lade_limit *limit, lade_err *err)
{
    LQ_REFUSE_NULL(limit, "limit");
    int rc = check_call(q, queue, scope, key, err);
    if (rc == 0)
        rc = check_limit(limit, scope, err);
    if (rc < 0)
        return rc;
    struct lq_limit stored = to_stored(limit);
    return lq_limit_set(q->store, queue, scope, slice_of(key), &stored, err);
}

static int get_stored(lade *q, const char *queue, enum lade_limit_scope scope, lade_bytes key,
                      struct lq_limit *out, lade_err *err)
{
    int rc = check_call(q, queue, scope, key, err);
    return rc < 0 ? rc : q->store->ops->limit_get(q->store, queue, scope, slice_of(key), out, err);
}

int lade_limit_get(lade *q, const char *queue, enum lade_limit_scope scope, lade_bytes key,
                   lade_limit *out, lade_err *err)
{
    LQ_REFUSE_NULL(out, "limit");
    struct lq_limit stored = {0};
    int rc = get_stored(q, queue, scope, key, &stored, err);
    if (rc == 0)
        *out = to_public(&stored);
    return rc;
}

int lade_limit_remove(lade *q, const char *queue, enum lade_limit_scope scope, lade_bytes key,
                      lade_err *err)
{
    static const struct lq_limit none = {0};
    struct lq_limit stored = {0};
    int rc = get_stored(q, queue, scope, key, &stored, err);
    if (rc != 0)
        return rc;
    if (lq_limit_is_zero(&stored))
        return LADE_NOT_FOUND;
    return lq_limit_set(q->store, queue, scope, slice_of(key), &none, err);
}

/* keys ------------------------------------------------------------------------------------------------------------- */

static void describe(const struct lq_key_row *row, lade_key_info *to, uint8_t *bytes)
{
    if (row->key.n > 0)
        memcpy(bytes, row->key.p, row->key.n);
    *to = (lade_key_info){.key = {bytes, row->key.n},
                          .ready = (uint64_t)row->ready,
                          .active = (uint64_t)row->active,
                          .waiting = (uint64_t)row->waiting,
                          .paused = row->paused,
                          .hold = row->hold,
                          .until = lb_ns_of_ms(row->until_ms),
                          .latency = row->latency_ms * LADE_MILLISECOND,
                          .own = to_public(&row->own),
                          .limit = to_public(&row->joined)};
}

/* One block: the array, and behind it the bytes of the keys. */
static int make_infos(const struct lq_key_row_vec *rows, lade_key_info **out, lade_err *err)
{
    size_t size = rows->n * sizeof(**out);
    for (size_t i = 0; i < rows->n; i++)
        size += rows->row[i].key.n + 1;
    lade_key_info *info = lb_calloc(1, size + 1);
    if (!info)
        return lb_fail_nomem(err, "key");
    uint8_t *bytes = (uint8_t *)(info + rows->n);
    for (size_t i = 0; i < rows->n; i++) {
        describe(&rows->row[i], &info[i], bytes);
        bytes += rows->row[i].key.n + 1;
    }
    *out = info;
    return 0;
}

int lade_key_list(lade *q, const char *queue, lade_cursor *cursor, size_t limit,
                  lade_key_info **out, size_t *n, lade_err *err)
{
    LQ_REFUSE_NULL(cursor, "key");
    LQ_REFUSE_NULL(out, "key");
    LQ_REFUSE_NULL(n, "key");
    int rc = check_call(q, queue, LADE_LIMIT_QUEUE, (lade_bytes){0}, err);
    if (rc < 0)
        return rc;
    if (limit == 0 || limit > 1000)
        return lb_fail(err, LADE_EINVAL, "key", "limit %zu is not within 1 to 1000", limit);
    *n = 0;
    *out = NULL;
    if (cursor->done)
        return LADE_EMPTY;
    struct lq_key_row_vec rows = {0};
    lade_cursor next = *cursor;
    lb_arena_init(&rows.arena);
    rc = q->store->ops->key_list(q->store, queue, &next, limit, &rows, err);
    if (rc >= 0 && rows.n > 0) {
        int made = make_infos(&rows, out, err);
        rc = made < 0 ? made : 0;
    }
    if (rc >= 0) {
        *n = rows.n;
        *cursor = next;
    }
    lb_arena_fini(&rows.arena);
    return rc;
}

int lade_key_get(lade *q, const char *queue, lade_bytes key, lade_key_info **out, lade_err *err)
{
    LQ_REFUSE_NULL(out, "key");
    int rc = check_call(q, queue, LADE_LIMIT_KEY, key, err);
    if (rc < 0)
        return rc;
    struct lq_key_row_vec rows = {0};
    lb_arena_init(&rows.arena);
    rc = q->store->ops->key_get(q->store, queue, slice_of(key), &rows, err);
    if (rc == 0)
        rc = make_infos(&rows, out, err);
    lb_arena_fini(&rows.arena);
    return rc;
}

static int pause_key(lade *q, const char *queue, lade_bytes key, bool paused, lade_err *err)
{
    int rc = check_call(q, queue, LADE_LIMIT_KEY, key, err);
    return rc < 0 ? rc : lq_key_pause(q->store, queue, slice_of(key), paused, err);
}

int lade_key_pause(lade *q, const char *queue, lade_bytes key, lade_err *err)
{
    return pause_key(q, queue, key, true, err);
}

int lade_key_resume(lade *q, const char *queue, lade_bytes key, lade_err *err)
{
    return pause_key(q, queue, key, false, err);
}

/* handlers --------------------------------------------------------------------------------------------------------- */

lade_bytes lade_job_key(const lade_job *job)
{
    if (!job)
        return (lade_bytes){NULL, 0};
    return (lade_bytes){job->body.key.p, job->body.key.n};
}

void lade_job_rate_limited_for(lade_job *job, int64_t delay)
{
    if (!job)
        return;
    job->throttle_for = LB_MAX(delay, 0);
}
