/*
 * park.h - how a task waits and is woken; core.h has the picture
 *
 *     lr_spin_lock(&list->lock);
 *     ... it must wait:
 *     struct lr_wait node;
 *     lr_wait_begin(&node, self, slot);        a new ticket
 *     lr_waitlist_push(list, &node);
 *     lr_spin_unlock(&list->lock);
 *     switch (lr_park(self, node.ticket, until, LR_WAITS_RECV, list)) ...
 *     unless it was woken by somebody who took the node out: lock, lr_waitlist_remove, unlock
 *
 * A waker: lock; t = lr_waitlist_claim(list, &node); fill node->slot, t->woke; unlock; lr_ready(t).
 * After lr_ready the node and whatever lies on the waiter's stack is gone.
 */
#ifndef LADE_RT_PARK_H
#define LADE_RT_PARK_H

#include "rt/runq.h"

/* The calling task, or the thread's own; NULL where nothing may wait: in steps and timer functions. */
struct lr_task *lr_self_task(void);

/* The same as the owner of a lock; 0 where nothing may own one. */
static inline uintptr_t lr_self_owner(void)
{
    struct lr_task *t = lr_cur();
    return LB_LIKELY(t != NULL) ? (uintptr_t)t : (uintptr_t)lr_self_task();
}

/*
 * Gives the worker to others until somebody has claimed the ticket. The deadline and a cancel claim it too. Returns what the
 * claimer wrote. Never fails to wait: the caller has made sure that `t` is its own task.
 */
enum lr_woke lr_park(struct lr_task *t, uint64_t ticket, int64_t until, enum lr_waits waits,
                     const void *on);

/* Makes a claimed task ready: any thread. `fresh`: not woken by a neighbour; others may have it soon. */
void lr_ready_elsewhere(struct lr_task *t); /* no worker here, or a plain thread to wake */
void lr_wake_watcher(struct lr_rt *rt);

static inline void lr_push_local(struct lr_worker *w, struct lr_task *t, uint32_t stamp)
{
    lr_runq_push(&w->runq, t, stamp);
    lr_fence_light(); /* partner: go_deep in sched.c */
    struct lr_rt *rt = lr_runtime;
    if (LB_UNLIKELY(!__atomic_load_n(&rt->watched, __ATOMIC_RELAXED)))
        lr_wake_watcher(rt);
}

static inline void lr_ready(struct lr_task *t)
{
    struct lr_worker *w = lr_worker();
    if (LB_LIKELY(w && LR_KIND(t) != LR_OUTER))
        lr_push_local(w, t, w->stamp + LR_AGE_TALK);
    else
        lr_ready_elsewhere(t);
}

void lr_ready_fresh(struct lr_task *t);
/* All of a chain by `next`. */
void lr_ready_all(struct lr_task *chain);

/* -LADE_ECANCELED, -LADE_ETIMEDOUT ... of an lr_woke. */
int lr_woke_result(enum lr_woke woke);

/* A new wait of t begins. Only t itself. A shielded fiber's tickets are odd ones to cancellers (lr_fiber_cancel). */
static inline uint64_t lr_ticket_of(struct lr_task *t, bool shielded)
{
    uint64_t ticket = (__atomic_load_n(&t->claim, __ATOMIC_RELAXED) | 3) + (shielded ? 3 : 1);
    __atomic_store_n(&t->claim, ticket, __ATOMIC_RELEASE); /* a canceller comes without a lock */
    return ticket;
}

static inline uint64_t lr_ticket(struct lr_task *t)
{
    return lr_ticket_of(t, LR_KIND(t) == LR_FIBER && ((struct lr_fiber *)(void *)t)->shielded);
}

/* Ends the wait for everybody else. True for exactly one caller. */
static inline bool lr_claim(struct lr_task *t, uint64_t ticket)
{
    if (LB_LIKELY(lr_self.solo)) {
        if (t->claim != ticket)
            return false;
        __atomic_store_n(&t->claim, ticket | 1, __ATOMIC_RELAXED);
        return true;
    }
    LR_CHAOS();
    return __atomic_compare_exchange_n(&t->claim, &ticket, ticket | 1, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_RELAXED);
}

static inline void lr_wait_begin(struct lr_wait *node, struct lr_task *t, void *slot)
{
    node->task = t;
    node->slot = slot;
    node->index = 0;
    node->ticket = lr_ticket(t);
}

/* Lists of channels are not counted. */
static inline void lr_waitlist_link(lade_waitlist *l, struct lr_wait *node)
{
    node->next = NULL;
    node->prev = l->tail;
    if (l->tail)
        l->tail->next = node;
    else
        l->head = node;
    l->tail = node;
    node->linked = true;
}

/* It is in the list. */
static inline void lr_waitlist_unlink(lade_waitlist *l, struct lr_wait *node)
{
    if (node->prev)
        node->prev->next = node->next;
    else
        l->head = node->next;
    if (node->next)
        node->next->prev = node->prev;
    else
        l->tail = node->prev;
    node->linked = false;
}

/* The first one, which is there. */
static inline struct lr_wait *lr_waitlist_shift(lade_waitlist *l)
{
    struct lr_wait *node = l->head;
    l->head = node->next;
    if (node->next)
        node->next->prev = NULL;
    else
        l->tail = NULL;
    node->linked = false;
    return node;
}

static inline void lr_waitlist_push(lade_waitlist *l, struct lr_wait *node)
{
    lr_waitlist_link(l, node);
    __atomic_store_n(&l->n, l->n + 1, __ATOMIC_RELAXED);
}

static inline void lr_waitlist_push_front(lade_waitlist *l, struct lr_wait *node)
{
    node->prev = NULL;
    node->next = l->head;
    if (l->head)
        l->head->prev = node;
    else
        l->tail = node;
    l->head = node;
    node->linked = true;
    __atomic_store_n(&l->n, l->n + 1, __ATOMIC_RELAXED);
}

/* Nothing when it is out already. */
static inline void lr_waitlist_remove(lade_waitlist *l, struct lr_wait *node)
{
    if (!node->linked)
        return;
    lr_waitlist_unlink(l, node);
    __atomic_store_n(&l->n, l->n - 1, __ATOMIC_RELAXED);
}

/* Takes out nodes from the front until one could be claimed; NULL when there is none. */
static inline struct lr_wait *lr_waitlist_claim(lade_waitlist *l)
{
    for (struct lr_wait *node = l->head; node; node = l->head) {
        lr_waitlist_remove(l, node);
        if (LB_LIKELY(lr_claim(node->task, node->ticket)))
            return node;
    }
    return NULL;
}

/* Claims all, writes `woke` into them and returns them as a chain for lr_ready_all. */
struct lr_task *lr_waitlist_claim_all(lade_waitlist *l, enum lr_woke woke);

/* Everything of a simple wait after lr_wait_begin and push: unlocks, parks, takes the node out. */
enum lr_woke lr_waitlist_park(lade_waitlist *l, struct lr_wait *node, int64_t until,
                              enum lr_waits waits, const void *on);

/* True when the deadline is over; reads the clock only when it must. */
bool lr_is_past(int64_t until);

#endif
