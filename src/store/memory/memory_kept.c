/* memory_kept.c - results that are kept for a time of their own, whatever becomes of their jobs (lq_settle.result_ttl_ms) */
#include <string.h>

#include "base/base.h"
#include "base/mem.h"
#include "store/memory/memory_home.h"

struct ls_memory_kept *ls_memory_kept_make(struct lb_slice id, struct lb_slice result)
{
    struct ls_memory_kept *k = lb_calloc(1, sizeof(*k) + result.n);
    if (!k)
        return NULL;
    memcpy(k->id, id.p, id.n);
    k->bytes = lb_slice(memcpy(k + 1, result.p, result.n), result.n);
    return k;
}

static struct ls_memory_kept *find(const struct ls_memory_queue *q, struct lb_slice id)
{
    struct ls_memory_node *n = q->kept.root;
    struct ls_memory_key key = {0, 0, id};
    while (n) {
        int order = ls_memory_key_compare(key, n->key);
        if (order == 0)
            return LB_CONTAINER_OF(n, struct ls_memory_kept, by_id);
        n = order < 0 ? n->left : n->right;
    }
    return NULL;
}

static void drop(struct ls_memory_queue *q, struct ls_memory_kept *k)
{
    ls_memory_order_del(&q->kept, &k->by_id);
    ls_memory_order_del(&q->kept_until, &k->by_end);
    lb_free(k);
}

void ls_memory_kept_put(struct ls_memory_home *h, struct ls_memory_queue *q,
                        struct ls_memory_kept *k, int64_t ttl_ms, int64_t now_ms)
{
    int64_t until;
    if (__builtin_add_overflow(now_ms, ttl_ms, &until))
        until = INT64_MAX;
    ls_memory_kept_drop(q, lb_slice_str(k->id));
    k->at_ms = now_ms;
    ls_memory_order_add(&q->kept, &k->by_id, (struct ls_memory_key){0, 0, lb_slice_str(k->id)});
    ls_memory_order_add(&q->kept_until, &k->by_end,
                        (struct ls_memory_key){until, ++h->sequence, {NULL, 0}});
}

const struct ls_memory_kept *ls_memory_kept_find(const struct ls_memory_queue *q,
                                                 struct lb_slice id, int64_t now_ms)
{
    const struct ls_memory_kept *k = find(q, id);
    return k && k->by_end.key.major > now_ms ? k : NULL;
}

struct lb_slice ls_memory_result_of(const struct ls_memory_job *j, int64_t now_ms)
{
    if (j->result.n > 0 || j->state != LADE_STATE_COMPLETED)
        return lb_slice_of(j->result);
    const struct ls_memory_kept *k = ls_memory_kept_find(j->queue, lb_slice_str(j->id), now_ms);
    return k && k->at_ms == j->finished_ms ? k->bytes : (struct lb_slice){0};
}

void ls_memory_kept_drop(struct ls_memory_queue *q, struct lb_slice id)
{
    struct ls_memory_kept *k = find(q, id);
    if (k)
        drop(q, k);
}

bool ls_memory_kept_trim(struct ls_memory_queue *q, int64_t now_ms, size_t max)
{
    for (size_t i = 0; i <= max; i++) {
        struct ls_memory_node *n = ls_memory_order_first(&q->kept_until);
        if (!n || n->key.major > now_ms)
            return false;
        if (i < max)
            drop(q, LB_CONTAINER_OF(n, struct ls_memory_kept, by_end));
    }
    return true;
}
