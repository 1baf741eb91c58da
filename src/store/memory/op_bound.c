/* op_bound.c - how many jobs may wait in a queue */
#include "base/err.h"
#include "store/memory/memory_home.h"
#include "store/memory/memory_ops.h"

bool ls_memory_bound_fits(const struct ls_memory_queue *q, int64_t n)
{
    if (!q || q->bound.max_jobs == 0 || n == 0)
        return true;
    size_t waiting = q->order[LADE_STATE_READY].n + q->order[LADE_STATE_SCHEDULED].n +
                     q->order[LADE_STATE_RETRYING].n;
    return (int64_t)waiting + n <= q->bound.max_jobs;
}

static int set_bound(struct lq_store *s, const char *queue, const struct lq_bound *bound,
                     lade_err *err)
{
    int64_t now;
    struct ls_memory_home *h = ls_memory_enter(s, &now);
    struct ls_memory_queue *q = ls_memory_queue_make(h, queue);
    if (q) {
        q->bound = *bound;
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
    if (q)
        *out = q->bound;
    lr_mutex_unlock(&h->lock);
    return q ? LADE_DONE : LADE_NOT_FOUND;
}

const struct lq_bound_ops ls_memory_bound_ops = {.set = set_bound, .get = get_bound};
