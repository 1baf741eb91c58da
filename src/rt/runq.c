#include "rt/runq.h"

#include <sched.h>

#define STEAL_MAX 128

void lr_runq_yield_to_thief(struct lr_runq *q)
{
    for (unsigned i = 1; __atomic_load_n(&q->thief, __ATOMIC_ACQUIRE); i++) {
        lr_cpu_relax();
        if ((i & 255) == 0)
            (void)sched_yield(); /* the thief lost its CPU inside */
    }
}

static void enter_as_thief(struct lr_runq *q)
{
    __atomic_store_n(&q->thief, 1, __ATOMIC_SEQ_CST);
    lr_fence_heavy();
    for (unsigned i = 1; __atomic_load_n(&q->busy, __ATOMIC_ACQUIRE); i++) {
        lr_cpu_relax();
        if ((i & 255) == 0)
            (void)sched_yield();
    }
    LR_CHAOS();
}

struct lr_task *lr_runq_steal(struct lr_runq *q, uint32_t *lock, uint32_t now, uint32_t *n)
{
    *n = 0;
    if (__atomic_load_n(&q->n, __ATOMIC_RELAXED) == 0 || !lr_hard_trylock(lock))
        return NULL;
    enter_as_thief(q);
    struct lr_task *first = q->n > 0 ? q->head : NULL;
    struct lr_task *last = NULL;
    bool stuck =
        first && (first->stamp & LR_TALKS) && (int32_t)(now - first->stamp) >= LR_AGE_STEAL;
    uint32_t most = LB_MIN(stuck ? q->n : (q->n + 1) / 2, STEAL_MAX);
    for (struct lr_task *t = first; t && *n < most; t = t->next) {
        if (!stuck && (int32_t)(now - t->stamp) < LR_AGE_STEAL)
            break;
        last = t;
        (*n)++;
    }
    if (last) {
        q->head = last->next;
        __atomic_store_n(&q->n, q->n - *n, __ATOMIC_RELAXED);
        last->next = NULL;
    }
    __atomic_store_n(&q->thief, 0, __ATOMIC_RELEASE); /* the owner acquires it */
    lr_spin_unlock(lock);
    return last ? first : NULL;
}
