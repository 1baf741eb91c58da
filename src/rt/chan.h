/* chan.h - the inside of a channel, for chan.c and select.c */
#ifndef LADE_RT_CHAN_H
#define LADE_RT_CHAN_H

#include <string.h>

#include "rt/park.h"

/*
 * A ring under a spin lock, and two lists of waiters. What holds while nobody has the lock:
 *   values in the ring   -> nobody waits to receive
 *   room in the ring     -> nobody waits to send
 * The lock is recv.lock; the lock of the other list is not used.
 */
struct lade_chan {
    lade_waitlist recv;  /* nodes: slot = where to put it */
    lade_waitlist send;  /* nodes: slot = the value */
    uint64_t head, tail; /* counts of all that went out and in */
    uint32_t cap, mask;
    uint32_t elem;
    bool closed;
    uint32_t refs; /* atomic */
    lade_chan_kind kind;
    alignas(64) unsigned char ring[];
};

static inline void lr_chan_lock(struct lade_chan *c)
{
    lr_spin_lock(&c->recv.lock);
}

static inline bool lr_chan_trylock(struct lade_chan *c)
{
    return lr_spin_try(&c->recv.lock);
}

static inline void lr_chan_unlock(struct lade_chan *c)
{
    lr_spin_unlock(&c->recv.lock);
}

static inline void lr_chan_copy(void *to, const void *from, uint32_t elem)
{
    if (LB_LIKELY(elem == 8))
        memcpy(to, from, 8);
    else
        memcpy(to, from, elem);
}

static inline unsigned char *lr_chan_at(struct lade_chan *c, uint64_t position)
{
    return c->ring + (size_t)(position & c->mask) * c->elem;
}

/*
 * What an attempt did. DONE: the operation is over. `ready`: tasks to make ready after unlocking (a chain).
 * All under the lock.
 */
enum lr_tried { LR_TRIED_WAIT = 0, LR_TRIED_DONE = 1, LR_TRIED_CLOSED = 2 };

/* In the index of a node: the other side has done what it waited for, *got is 1. */
#define LR_CHAN_FIRED (1u << 31)

/* The other side's wait is over, with its operation done. */
static inline void lr_chan_finish(struct lr_wait *node, struct lr_task ***end)
{
    struct lr_task *t = node->task;
    node->index |= LR_CHAN_FIRED;
    t->woke = LR_WOKE;
    t->next = NULL;
    **end = t;
    *end = &t->next;
}

/* The first waiter that could be claimed, out of the list; NULL when there is none. */
static inline struct lr_wait *lr_chan_claim(lade_waitlist *l)
{
    while (l->head) {
        struct lr_wait *node = lr_waitlist_shift(l);
        if (LB_LIKELY(lr_claim(node->task, node->ticket)))
            return node;
    }
    return NULL;
}

static inline enum lr_tried lr_chan_put(struct lade_chan *c, const void *value,
                                        struct lr_task **ready)
{
    if (LB_UNLIKELY(c->closed))
        return LR_TRIED_CLOSED;
    struct lr_wait *r = lr_chan_claim(&c->recv);
    if (r) {
        lr_chan_copy(r->slot, value, c->elem);
        lr_chan_finish(r, &ready);
        return LR_TRIED_DONE;
    }
    if (c->tail - c->head >= c->cap)
        return LR_TRIED_WAIT;
    lr_chan_copy(lr_chan_at(c, c->tail), value, c->elem);
    c->tail++;
    return LR_TRIED_DONE;
}

/* n values from the ring's head; it has them. */
static inline void lr_chan_copy_out(struct lade_chan *c, void *out, unsigned n)
{
    uint32_t first = LB_MIN(n, c->mask + 1 - (uint32_t)(c->head & c->mask));
    memcpy(out, lr_chan_at(c, c->head), (size_t)first * c->elem);
    if (n > first)
        memcpy((char *)out + (size_t)first * c->elem, c->ring, (size_t)(n - first) * c->elem);
    c->head += n;
}

/* Senders whose values there is room for now move them into the ring. */
static inline void lr_chan_refill(struct lade_chan *c, struct lr_task ***end)
{
    struct lr_wait *s;
    while (c->tail - c->head < c->cap && (s = lr_chan_claim(&c->send))) {
        lr_chan_copy(lr_chan_at(c, c->tail), s->slot, c->elem);
        c->tail++;
        lr_chan_finish(s, end);
    }
}

/* First what is in the ring, then straight from the senders that wait: their values are the younger ones. */
static inline enum lr_tried lr_chan_take(struct lade_chan *c, void *out, unsigned max,
                                         unsigned *got, struct lr_task **ready)
{
    uint64_t n = LB_MIN(c->tail - c->head, max);
    if (n == 1) {
        lr_chan_copy(out, lr_chan_at(c, c->head), c->elem);
        c->head++;
    } else if (n > 1) {
        lr_chan_copy_out(c, out, (unsigned)n);
    }
    if (c->send.head) {
        struct lr_wait *s;
        while (n < max && (s = lr_chan_claim(&c->send))) {
            lr_chan_copy((char *)out + n * c->elem, s->slot, c->elem);
            n++;
            lr_chan_finish(s, &ready);
        }
        lr_chan_refill(c, &ready);
    }
    *got = (unsigned)n;
    if (n > 0)
        return LR_TRIED_DONE;
    return c->closed ? LR_TRIED_CLOSED : LR_TRIED_WAIT;
}

/* After many operations in a row without a wait, a task lets others run: by the count of the channel. */
void lr_chan_give_way(void);
#define LR_CHAN_BUDGET 4096

#endif
