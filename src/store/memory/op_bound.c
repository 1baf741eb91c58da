/* op_bound.c - how many jobs and bytes may wait in a queue */
#include "base/err.h"
#include "store/memory/memory_home.h"
#include "store/memory/memory_ops.h"

bool ls_memory_bound_fits(const struct ls_memory_queue *q, int64_t n, int64_t bytes)
{
    if (!q)
        return true;
    size_t waiting = q->order[LADE_STATE_READY].n + q->order[LADE_STATE_SCHEDULED].n +
                     q->order[LADE_STATE_RETRYING].n;
    return lq_bound_fits(&q->bound, (int64_t)waiting, n, bytes);
}

static int set_bound(struct lq_store *s, const char *queue, const struct lq_bound *bound,
                     lade_err *err)
{
    int64_t now;
    struct ls_memory_home *h = ls_memory_enter(s, &now);
    struct ls_memory_queue *q = ls_memory_queue_make(h, queue);
    if (q) {
        int64_t bytes = q->bound.bytes;
        q->bound = *bound;
        q->bound.bytes = bytes;
        ls_memory_ring_watchers(h);
    }
    lr_mutex_unlock(&h->lock);
    return q ? LADE_DONE : lb_fail_nomem(err, "bound");
}

static int get_bound(struct lq_store *s, const char *queue, struct lq_bound *out, lade_err *err)
{
    (void)err;
    int64_t now;
    struct ls_memory_home *h = ls_memory_enter(s, &now);
    const struct ls_memory_queue *q = ls_memory_queue_find(h, queue);
    if (q) {
        *out = q->bound;
        out->bytes = q->bound.max_bytes > 0 ? q->bound.bytes : 0;
    }
    lr_mutex_unlock(&h->lock);
    return q ? LADE_DONE : LADE_NOT_FOUND;
}

const struct lq_bound_ops ls_memory_bound_ops = {.set = set_bound, .get = get_bound};
