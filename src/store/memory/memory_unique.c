/* memory_unique.c - an enqueue that finds its unique key held: replaces the holder, or trails it */
#include <string.h>

#include "base/base.h"
#include "store/memory/memory_home.h"

static int64_t add_ms(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

static bool is_waiting(const struct ls_memory_job *j)
{
    return j && ls_memory_state_waits(j->state);
}

/* When the job would be due as this item, now or later. */
static int64_t due_of(const struct lq_put *put, const struct ls_memory_lock *l, int64_t now_ms)
{
    int64_t due = put->when == LQ_WHEN_IN   ? add_ms(now_ms, put->when_ms)
                  : put->when == LQ_WHEN_AT ? put->when_ms
                                            : now_ms;
    if (put->bound_ms > 0)
        due = LB_MIN(due, add_ms(l->first_ms ? l->first_ms : now_ms, put->bound_ms));
    return LB_MAX(due, now_ms);
}

static void become(struct ls_memory_home *h, struct ls_memory_job *j, const struct lq_put *put,
                   struct lb_mut *body, int64_t due_ms, int64_t now_ms)
{
    bool stays = j->state == LADE_STATE_READY && due_ms <= now_ms && j->level == put->level;
    ls_memory_job_swap_body(j, body);
    j->level = put->level;
    if (!stays)
        ls_memory_job_place(h, j, due_ms, now_ms);
}

static void trail(struct ls_memory_home *h, struct ls_memory_lock *l, const struct lq_put *put,
                  struct ls_memory_job *spare, int64_t now_ms)
{
    struct ls_memory_queue *q = spare->queue;
    int64_t due_ms = l->node.key.major;
    ls_memory_order_del(&q->expiring, &l->node);
    ls_memory_order_add(
        &q->expiring, &l->node,
        (struct ls_memory_key){add_ms(due_ms, put->unique_ttl_ms), ++h->sequence, {NULL, 0}});
    l->first_ms = due_ms;
    l->trails = true;
    memcpy(l->holder, spare->id, sizeof(l->holder));
    ls_memory_job_place(h, spare, due_ms, now_ms);
}

void ls_memory_conflict(struct ls_memory_home *h, struct ls_memory_queue *q, struct lq_put *put,
                        struct ls_memory_job *spare, struct lb_mut *body, int64_t now_ms)
{
    struct ls_memory_lock *l = ls_memory_lock_find(q, put->unique);
    struct ls_memory_job *holder = ls_memory_job_find(q, lb_slice_str(l->holder));
    bool trails = put->conflict == LQ_CONFLICT_TRAIL;
    LB_CHECK(l); /* found when the put was prepared, under the same lock */
    if (holder && !lb_slice_eq(holder->unique, put->unique))
        holder = NULL; /* it has the id of the holder, which is gone */
    put->outcome = LADE_DUPLICATE;
    memcpy(put->holder, l->holder, sizeof(put->holder));
    if (trails && l->until == LADE_UNTIL_TTL && !(l->trails && is_waiting(holder))) {
        trail(h, l, put, spare, now_ms);
        put->outcome = LADE_DONE;
        put->holder[0] = 0;
        return;
    }
    if (is_waiting(holder) && (!trails || l->trails)) {
        int64_t due_ms = trails && holder->state != LADE_STATE_READY ? holder->run_at_ms
                         : trails                                    ? now_ms
                                                                     : due_of(put, l, now_ms);
        become(h, holder, put, body, due_ms, now_ms);
        put->outcome = LADE_REPLACED;
    }
    if (spare)
        ls_memory_job_unmake(spare);
}
