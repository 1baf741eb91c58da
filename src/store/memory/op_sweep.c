/* op_sweep.c - what time does to jobs: promote when due, trim when old */
#include "store/memory/memory_flow.h"
#include "store/memory/memory_ops.h"

int ls_memory_promote(struct lq_store *s, struct lq_lanes lanes, size_t max, size_t *n,
                      int64_t *next_ms, lade_err *err)
{
    (void)err;
    int64_t now;
    struct ls_memory_home *h = ls_memory_enter(s, &now);
    *n = 0;
    *next_ms = 0;
    for (size_t i = 0; i < lanes.n; i++) {
        struct ls_memory_queue *q = ls_memory_queue_find(h, lanes.queue[i]);
        if (!q)
            continue;
        size_t promoted = ls_memory_queue_promote(h, q, now, max - *n);
        ls_memory_queue_wake(h, q, promoted);
        *n += promoted;
        int64_t due = ls_memory_queue_next_due(q);
        if (due != 0 && (*next_ms == 0 || due < *next_ms))
            *next_ms = due;
    }
    ls_memory_leave_op(h, now);
    return LADE_DONE;
}

/* Trims one queue by up to max; *more when something is left to remove. */
static size_t trim_queue(struct lq_store *s, struct ls_memory_queue *q, int64_t now_ms, size_t max,
                         bool *more)
{
    static const enum lade_state ended[] = {LADE_STATE_COMPLETED, LADE_STATE_DEAD,
                                            LADE_STATE_CANCELLED};

    size_t n = 0;
    for (size_t i = 0; i < LB_ARRAY_LEN(ended); i++) {
        n += ls_memory_job_retain(s, q, ended[i], now_ms, true, max - n);
        *more = *more || ls_memory_job_is_over(s, q, ended[i], now_ms, true);
    }
    return n;
}

int ls_memory_trim(struct lq_store *s, struct lq_lanes lanes, size_t max, size_t *n, lade_err *err)
{
    (void)err;
    int64_t now;
    struct ls_memory_home *h = ls_memory_enter(s, &now);
    bool more = false;
    *n = 0;
    for (size_t i = 0; i < lanes.n; i++) {
        struct ls_memory_queue *q = ls_memory_queue_find(h, lanes.queue[i]);
        if (!q)
            continue;
        ls_memory_lock_expire(q, now);
        ls_memory_tenants_trim(q, now);
        *n += trim_queue(s, q, now, max - *n, &more);
        more = ls_memory_kept_trim(q, now, max) || more;
    }
    bool more_flows;
    (void)ls_memory_flow_retain(s, now, true, max, &more_flows);
    more = more || more_flows;
    ls_memory_leave_op(h, now);
    return more ? LADE_MORE : LADE_DONE;
}
