/*
 * chan.c - channels
 *
 * A value goes the shortest way there is: to a waiting receiver's own variable if there is one, else into the ring. A sender that
 * finds no room leaves its value's address in a node and parks; the receiver that makes room moves the value into the ring and
 * wakes it. Waking costs a place at the end of the same worker's queue, so producer and consumer take turns on one core, a ring
 * full at a time.
 *
 * Whoever is woken by the other side has had its operation done for it; there is nothing to try again, and so no wake-up that
 * could be stolen. A deadline or a cancel claims the wait first or comes too late (core.h): no value is lost or doubled.
 */
#include "rt/chan.h"

#include "base/mem.h"
#include "rt/switch.h"

/* A hint only; not under the lock, so ThreadSanitizer is told to leave it alone. */
static __attribute__((no_sanitize("thread"))) bool has_more(const struct lade_chan *chan)
{
    const volatile struct lade_chan *c = chan;
    return c->tail != c->head || c->send.head;
}

lade_chan *lade_chan_new(lade_chan_kind kind, size_t elem, unsigned cap)
{
    if (elem == 0 || elem > LADE_CHAN_ELEM_MAX || cap > LADE_CHAN_CAP_MAX)
        return NULL;
    uint32_t slots = 1;
    while (slots < cap)
        slots *= 2;
    size_t ring = cap ? (size_t)slots * elem : 0;
    struct lade_chan *c = lb_malloc(sizeof(*c) + ring + 64);
    if (!c)
        return NULL;
    /* malloc aligns to 16: the ring begins at the next line anyway, as the struct's size is a multiple of 64 */
    memset(c, 0, sizeof(*c));
    c->cap = cap;
    c->mask = slots - 1;
    c->elem = (uint32_t)elem;
    c->refs = 1;
    c->kind = kind;
    return c;
}

lade_chan *lade_chan_ref(lade_chan *c)
{
    if (c)
        (void)__atomic_fetch_add(&c->refs, 1, __ATOMIC_RELAXED);
    return c;
}

int lade_chan_unref(lade_chan *c)
{
    if (!c || __atomic_fetch_sub(&c->refs, 1, __ATOMIC_ACQ_REL) != 1)
        return 0;
    lr_chan_lock(c);
    bool waited_for = c->recv.head || c->send.head;
    lr_chan_unlock(c);
    if (waited_for) {
        (void)__atomic_fetch_add(&c->refs, 1, __ATOMIC_RELAXED);
        (void)lade_chan_close(c);
        return -LADE_EBUSY;
    }
    lb_free(c);
    return 0;
}

int lade_chan_close(lade_chan *c)
{
    if (!c)
        return -LADE_EINVAL;
    lr_chan_lock(c);
    if (c->closed) {
        lr_chan_unlock(c);
        return -LADE_ECLOSED;
    }
    c->closed = true;
    struct lr_task *receivers = lr_waitlist_claim_all(&c->recv, LR_WOKE_CLOSED);
    struct lr_task *senders = lr_waitlist_claim_all(&c->send, LR_WOKE_CLOSED);
    lr_chan_unlock(c);
    lr_ready_all(receivers);
    lr_ready_all(senders);
    return 0;
}

__attribute__((noinline)) void lr_chan_give_way(void)
{
    struct lr_worker *w = lr_worker();
    struct lr_task *t = lr_cur();
    if (!w || !t || LR_KIND(t) != LR_FIBER)
        return;
    w->countdown = 0; /* timers and descriptors, too */
    lr_yield((struct lr_fiber *)(void *)t);
}

/* ---- sending ---- */

/* Why a wait that nobody fulfilled ended; takes the node out. */
static int give_up(struct lade_chan *c, lade_waitlist *l, struct lr_wait *node, enum lr_woke woke)
{
    lr_chan_lock(c);
    lr_waitlist_remove(l, node);
    lr_chan_unlock(c);
    return lr_woke_result(woke);
}

/* With the lock held, which it lets go. */
static inline __attribute__((always_inline)) int send_slow(struct lade_chan *c, const void *value,
                                                           int64_t until)
{
    struct lr_task *ready = NULL;
    enum lr_tried tried = lr_chan_put(c, value, &ready);
    if (tried != LR_TRIED_WAIT) {
        lr_chan_unlock(c);
        if (ready)
            lr_ready(ready);
        return tried == LR_TRIED_CLOSED ? -LADE_ECLOSED : 0;
    }
    if (until == 0) {
        lr_chan_unlock(c);
        return -LADE_ETIMEDOUT;
    }
    struct lr_task *t = lr_self_task_here();
    if (!t) {
        lr_chan_unlock(c);
        return -LADE_EPERM;
    }
    struct lr_wait node;
    void *slot;
    memcpy(&slot, &value, sizeof(slot)); /* a sender's slot is only read */
    lr_wait_begin(&node, t, slot);
    lr_waitlist_push(&c->send, &node);
    lr_chan_unlock(c);
    LR_CHAOS();
    enum lr_woke woke = lr_park_here(t, node.ticket, until, LR_WAITS_SEND, c);
    if (LB_LIKELY(woke == LR_WOKE))
        return 0;
    return give_up(c, &c->send, &node, woke);
}

int lade_chan_send(lade_chan *c, const void *value)
{
    return lade_chan_send_until(c, value, LADE_FOREVER);
}

LR_SWITCHES int lade_chan_send_until(lade_chan *c, const void *value, int64_t until)
{
    if (LB_UNLIKELY(!c || !value))
        return -LADE_EINVAL;
    lr_chan_lock(c);
    uint64_t tail = c->tail;
    if (LB_UNLIKELY(c->recv.head || c->closed || tail - c->head >= c->cap))
        return send_slow(c, value, until);
    lr_chan_copy(lr_chan_at(c, tail), value, c->elem);
    c->tail = tail + 1;
    lr_chan_unlock(c);
    if (LB_UNLIKELY((tail & (LR_CHAN_BUDGET - 1)) == LR_CHAN_BUDGET - 1))
        lr_chan_give_way();
    return 0;
}

int lade_chan_try_send(lade_chan *c, const void *value)
{
    int rc = lade_chan_send_until(c, value, 0);
    return rc == -LADE_ETIMEDOUT ? -LADE_EAGAIN : rc;
}

long lade_chan_send_n(lade_chan *c, const void *values, unsigned n)
{
    if (!c || !values || n == 0)
        return -LADE_EINVAL;
    const char *v = values;
    unsigned sent = 0;
    while (sent < n) {
        struct lr_task *ready = NULL;
        struct lr_task **end = &ready;
        enum lr_tried tried = LR_TRIED_DONE;
        lr_chan_lock(c);
        while (sent < n &&
               (tried = lr_chan_put(c, v + (size_t)sent * c->elem, end)) == LR_TRIED_DONE) {
            sent++;
            if (*end)
                end = &(*end)->next;
        }
        lr_chan_unlock(c);
        lr_ready_all(ready);
        if (sent == n)
            break;
        int rc = tried == LR_TRIED_CLOSED ? -LADE_ECLOSED
                                          : lade_chan_send(c, v + (size_t)sent * c->elem);
        if (rc < 0)
            return sent > 0 ? (long)sent : rc;
        sent++;
    }
    return sent;
}

/* ---- receiving ---- */

/* After a value was handed over: what else is there. */
static unsigned top_up(struct lade_chan *c, void *out, unsigned max)
{
    struct lr_task *ready = NULL;
    unsigned more;
    lr_chan_lock(c);
    (void)lr_chan_take(c, (char *)out + c->elem, max - 1, &more, &ready);
    lr_chan_unlock(c);
    lr_ready_all(ready);
    return 1 + more;
}

static inline __attribute__((always_inline)) long receive(struct lade_chan *c, void *out,
                                                          unsigned max, int64_t until)
{
    struct lr_task *ready = NULL;
    unsigned got;
    lr_chan_lock(c);
    enum lr_tried tried = lr_chan_take(c, out, max, &got, &ready);
    if (LB_LIKELY(tried == LR_TRIED_DONE)) {
        uint64_t head = c->head;
        lr_chan_unlock(c);
        if (ready) { /* mostly one */
            struct lr_task *more = ready->next;
            lr_ready(ready);
            if (more)
                lr_ready_all(more);
        }
        if (LB_UNLIKELY(((head ^ (head - got)) & LR_CHAN_BUDGET) != 0))
            lr_chan_give_way();
        return got;
    }
    struct lr_task *t = NULL;
    int rc = tried == LR_TRIED_CLOSED ? -LADE_ECLOSED : until == 0 ? -LADE_ETIMEDOUT : 0;
    if (rc == 0 && !(t = lr_self_task_here()))
        rc = -LADE_EPERM;
    if (rc < 0) {
        lr_chan_unlock(c);
        return rc;
    }
    struct lr_wait node;
    lr_wait_begin(&node, t, out);
    lr_waitlist_push(&c->recv, &node);
    lr_chan_unlock(c);
    LR_CHAOS();
    enum lr_woke woke = lr_park_here(t, node.ticket, until, LR_WAITS_RECV, c);
    if (LB_UNLIKELY(woke != LR_WOKE))
        return give_up(c, &c->recv, &node, woke);
    /* A look without the lock: what is missed now is there at the next call. */
    return max > 1 && has_more(c) ? (long)top_up(c, out, max) : 1;
}

LR_SWITCHES int lade_chan_recv_until(lade_chan *c, void *out, int64_t until)
{
    if (LB_UNLIKELY(!c || !out))
        return -LADE_EINVAL;
    long rc = receive(c, out, 1, until);
    return rc < 0 ? (int)rc : 0;
}

int lade_chan_recv(lade_chan *c, void *out)
{
    return lade_chan_recv_until(c, out, LADE_FOREVER);
}

int lade_chan_try_recv(lade_chan *c, void *out)
{
    int rc = lade_chan_recv_until(c, out, 0);
    return rc == -LADE_ETIMEDOUT ? -LADE_EAGAIN : rc;
}

LR_SWITCHES long lade_chan_recv_n(lade_chan *c, void *buf, unsigned max)
{
    if (LB_UNLIKELY(!c || !buf || max == 0))
        return -LADE_EINVAL;
    return receive(c, buf, max, LADE_FOREVER);
}

unsigned lade_chan_len(lade_chan *c)
{
    if (!c)
        return 0;
    lr_chan_lock(c);
    unsigned n = (unsigned)(c->tail - c->head);
    lr_chan_unlock(c);
    return n;
}
