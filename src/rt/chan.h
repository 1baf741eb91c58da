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

enum lr_tried lr_chan_put(struct lade_chan *c, const void *value, struct lr_task **ready);
/* Up to max values; *got of them. */
enum lr_tried lr_chan_take(struct lade_chan *c, void *out, unsigned max, unsigned *got,
                           struct lr_task **ready);
/* In the index of a node: the other side has done what it waited for, *got is 1. */
#define LR_CHAN_FIRED (1u << 31)
/* After many operations in a row without a wait, a task lets others run: by the count of the channel. */
void lr_chan_give_way(void);
#define LR_CHAN_BUDGET 4096

#endif
