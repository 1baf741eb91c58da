/*
 * runq.h - a worker's run queue: first in, first out; the owner pays two plain stores for the right to touch it
 *
 *     owner: busy = 1; light fence; thief? -> busy = 0, wait, again     thief: thief = 1; heavy fence; wait for busy == 0
 *
 * Either the owner sees the thief's mark, or the thief, whose fence makes the owner's store visible, sees the owner inside.
 * Thieves exclude each other by a spin lock. A thief takes only tasks that have waited for a while: who talks with his
 * neighbour every microsecond would lose far more by moving to another core than he gains.
 */
#ifndef LADE_RT_RUNQ_H
#define LADE_RT_RUNQ_H

#include "rt/core.h"

/* Ages in LR_STAMP_SHIFT units. */
#define LR_AGE_STEAL \
    6 /* 100 us for tasks that were started or came from a timer, a descriptor, a yield */
#define LR_TALKS    1u
#define LR_AGE_TALK (122 | LR_TALKS) /* 2 ms more for those that another task has just woken */

/* Waits until the thief is out. */
void lr_runq_yield_to_thief(struct lr_runq *q);

static inline void lr_runq_enter(struct lr_runq *q)
{
    if (LB_LIKELY(q->alone))
        return;
    for (;;) {
        __atomic_store_n(&q->busy, 1, __ATOMIC_RELAXED);
        lr_fence_light();
        if (LB_LIKELY(!__atomic_load_n(&q->thief, __ATOMIC_ACQUIRE)))
            return;
        __atomic_store_n(&q->busy, 0, __ATOMIC_RELEASE);
        lr_runq_yield_to_thief(q);
    }
}

static inline void lr_runq_leave(struct lr_runq *q)
{
    LR_CHAOS();
    __atomic_store_n(&q->busy, 0, __ATOMIC_RELEASE); /* the thief acquires it */
}

/* By the owner. */
static inline void lr_runq_push(struct lr_runq *q, struct lr_task *t, uint32_t stamp)
{
    t->next = NULL;
    t->stamp = stamp;
    lr_runq_enter(q);
    if (q->head)
        q->tail->next = t;
    else
        q->head = t;
    q->tail = t;
    __atomic_store_n(&q->n, q->n + 1, __ATOMIC_RELAXED);
    lr_runq_leave(q);
}

/* By the owner. */
static inline struct lr_task *lr_runq_pop(struct lr_runq *q)
{
    lr_runq_enter(q);
    struct lr_task *t = q->head;
    if (t) {
        q->head = t->next;
        __atomic_store_n(&q->n, q->n - 1, __ATOMIC_RELAXED);
    }
    lr_runq_leave(q);
    return t;
}

/*
 * By another worker: a chain of up to half of what is old enough, at most 128; *n says how many. When the first is one that was woken
 * by a neighbour, 2 ms have gone by without a turn for it: the worker hogs or has lost its CPU, and everything is taken, since
 * those who talk and are split between two cores pay for each word. `now` is in stamps.
 * `lock` is the victim's steal lock.
 */
struct lr_task *lr_runq_steal(struct lr_runq *q, uint32_t *lock, uint32_t now, uint32_t *n);

#endif
