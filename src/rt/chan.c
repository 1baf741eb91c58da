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
    if ((unsigned)kind > LADE_CHAN_SPSC || elem == 0 || elem > LADE_CHAN_ELEM_MAX ||
        cap > LADE_CHAN_CAP_MAX)
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

static void claim_all(lade_waitlist *l, struct lr_task ***end)
{
    for (struct lr_wait *node; (node = lr_chan_claim(l));) {
        node->task->woke = LR_WOKE_CLOSED;
        node->task->next = NULL;
        **end = node->task;
        *end = &node->task->next;
    }
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
    struct lr_task *ready = NULL;
    struct lr_task **end = &ready;
    claim_all(&c->recv, &end);
    claim_all(&c->send, &end);
    lr_chan_unlock(c);
    lr_ready_all(ready);
    return 0;
}

__attribute__((noinline)) void lr_chan_give_way(void)
{
    struct lr_worker *w = lr_worker();
    struct lr_task *t = lr_cur();
    if (!w || !t)
        return;
    w->countdown = 0; /* timers and descriptors, too */
    lr_yield((struct lr_fiber *)(void *)t);
}

/* The same for the end of a call. */
static __attribute__((noinline)) int give_way_then_done(void)
{
    lr_chan_give_way();
    return 0;
}

/* ---- waiting: functions of their own, which are entered with the lock held and let it go ---- */

/* Why a wait that nobody fulfilled ended; takes the node out. */
static __attribute__((noinline)) int give_up(struct lade_chan *c, lade_waitlist *l,
                                             struct lr_wait *node, enum lr_woke woke)
{
    lr_chan_lock(c);
    if (node->linked)
        lr_waitlist_unlink(l, node);
    lr_chan_unlock(c);
    return lr_woke_result(woke);
}

/* Waits in l with `slot`: 0 when the other side has done what was to be done. Anybody, with or without a deadline. */
static __attribute__((noinline)) int wait_in(struct lade_chan *c, lade_waitlist *l, void *slot,
                                             int64_t until, enum lr_waits waits)
{
    struct lr_task *t = until == 0 ? NULL : lr_self_task();
    if (!t) {
        lr_chan_unlock(c);
        return until == 0 ? -LADE_ETIMEDOUT : -LADE_EPERM;
    }
    struct lr_wait node;
    lr_wait_begin(&node, t, slot);
    lr_waitlist_link(l, &node);
    lr_chan_unlock(c);
    LR_CHAOS();
    enum lr_woke woke = lr_park(t, node.ticket, until, waits, c);
    return woke == LR_WOKE ? 0 : give_up(c, l, &node, woke);
}

/* A fiber without a deadline does the same with the switch in this very function. */
static inline __attribute__((always_inline)) int wait_here(struct lade_chan *c, lade_waitlist *l,
                                                           void *slot, struct lr_fiber *f,
                                                           enum lr_waits waits)
{
    struct lr_wait node;
    node.task = &f->task;
    node.slot = slot;
    node.index = 0;
    node.ticket = lr_ticket_of(&f->task, f->shielded);
    lr_waitlist_link(l, &node);
    lr_chan_unlock(c);
    LR_CHAOS();
    enum lr_woke woke = lr_park_here(f, node.ticket, waits, c);
    return LB_LIKELY(woke == LR_WOKE) ? 0 : give_up(c, l, &node, woke);
}

static void *slot_of(const void *value)
{
    void *slot;
    memcpy(&slot, &value, sizeof(slot)); /* a sender's slot is only read */
    return slot;
}

static LR_SWITCHES LR_JUMPS_BACK int send_wait(struct lade_chan *c, const void *value,
                                               int64_t until)
{
    struct lr_task *t = lr_cur();
    if (LB_UNLIKELY(!t || until != LADE_FOREVER))
        return wait_in(c, &c->send, slot_of(value), until, LR_WAITS_SEND);
    return wait_here(c, &c->send, slot_of(value), (struct lr_fiber *)(void *)t, LR_WAITS_SEND);
}

static LR_SWITCHES LR_JUMPS_BACK int recv_wait(struct lade_chan *c, void *out, int64_t until)
{
    struct lr_task *t = lr_cur();
    if (LB_UNLIKELY(!t || until != LADE_FOREVER))
        return wait_in(c, &c->recv, out, until, LR_WAITS_RECV);
    return wait_here(c, &c->recv, out, (struct lr_fiber *)(void *)t, LR_WAITS_RECV);
}

/* After a value was handed over: what else is there. */
static __attribute__((noinline)) long top_up(struct lade_chan *c, void *out, unsigned max)
{
    struct lr_task *ready = NULL;
    unsigned more;
    lr_chan_lock(c);
    (void)lr_chan_take(c, (char *)out + c->elem, max - 1, &more, &ready);
    lr_chan_unlock(c);
    lr_ready_all(ready);
    return 1 + (long)more;
}

static LR_SWITCHES LR_JUMPS_BACK long recv_n_wait(struct lade_chan *c, void *out, unsigned max)
{
    struct lr_task *t = lr_cur();
    int rc = LB_UNLIKELY(!t)
                 ? wait_in(c, &c->recv, out, LADE_FOREVER, LR_WAITS_RECV)
                 : wait_here(c, &c->recv, out, (struct lr_fiber *)(void *)t, LR_WAITS_RECV);
    if (LB_UNLIKELY(rc < 0))
        return rc;
    /* A look without the lock: what is missed now is there at the next call. */
    return max > 1 && has_more(c) ? top_up(c, out, max) : 1;
}

/* ---- sending ---- */

/* Anything but a free place: a receiver that waits, no room, the end. With the lock held. */
static __attribute__((noinline)) int send_slow(struct lade_chan *c, const void *value,
                                               int64_t until)
{
    struct lr_task *ready = NULL;
    enum lr_tried tried = lr_chan_put(c, value, &ready);
    if (LB_UNLIKELY(tried == LR_TRIED_WAIT))
        return send_wait(c, value, until);
    uint64_t tail = c->tail;
    lr_chan_unlock(c);
    if (LB_LIKELY(ready != NULL))
        lr_ready(ready);
    else if (LB_UNLIKELY((tail & (LR_CHAN_BUDGET - 1)) == 0))
        lr_chan_give_way();
    return LB_UNLIKELY(tried == LR_TRIED_CLOSED) ? -LADE_ECLOSED : 0;
}

/* The lock was not to be had at once. */
static __attribute__((noinline)) int send_contended(struct lade_chan *c, const void *value,
                                                    int64_t until)
{
    lr_chan_lock(c);
    return send_slow(c, value, until);
}

/* For elements of 8 bytes. Every call in it is the last thing it does, so that it needs no frame. */
static inline __attribute__((always_inline)) int send_until(struct lade_chan *c, const void *value,
                                                            int64_t until)
{
    if (LB_UNLIKELY(!c || !value))
        return -LADE_EINVAL;
    if (LB_UNLIKELY(!lr_chan_trylock(c)))
        return send_contended(c, value, until);
    uint64_t tail = c->tail;
    if (c->recv.head || LB_UNLIKELY(c->closed || c->elem != 8))
        return send_slow(c, value, until);
    if (tail - c->head >= c->cap)
        return send_wait(c, value, until);
    memcpy(&c->ring[(tail & c->mask) * 8], value, 8);
    c->tail = tail + 1;
    lr_chan_unlock(c);
    if (LB_UNLIKELY((tail & (LR_CHAN_BUDGET - 1)) == LR_CHAN_BUDGET - 1))
        return give_way_then_done();
    return 0;
}

int lade_chan_send(lade_chan *c, const void *value)
{
    return send_until(c, value, LADE_FOREVER);
}

int lade_chan_send_until(lade_chan *c, const void *value, int64_t until)
{
    return send_until(c, value, until);
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

/* The operation is done: makes the senders ready, gives way when it is time. */
static inline __attribute__((always_inline)) long finish_take(struct lade_chan *c, unsigned got,
                                                              struct lr_task *ready)
{
    uint64_t head = c->head;
    lr_chan_unlock(c);
    if (ready) { /* mostly one */
        struct lr_task *more = ready->next;
        lr_ready(ready);
        if (LB_UNLIKELY(more != NULL))
            lr_ready_all(more);
    }
    if (LB_UNLIKELY(((head ^ (head - got)) & LR_CHAN_BUDGET) != 0))
        lr_chan_give_way();
    return got;
}

/* Senders wait, or it is closed, or anything. With the lock held. */
static __attribute__((noinline)) int recv_slow(struct lade_chan *c, void *out, int64_t until)
{
    struct lr_task *ready = NULL;
    unsigned got;
    enum lr_tried tried = lr_chan_take(c, out, 1, &got, &ready);
    if (tried == LR_TRIED_WAIT)
        return recv_wait(c, out, until);
    if (tried == LR_TRIED_CLOSED) {
        lr_chan_unlock(c);
        return -LADE_ECLOSED;
    }
    (void)finish_take(c, got, ready);
    return 0;
}

static __attribute__((noinline)) int recv_contended(struct lade_chan *c, void *out, int64_t until)
{
    lr_chan_lock(c);
    return recv_slow(c, out, until);
}

/* As send_until. */
static inline __attribute__((always_inline)) int recv_until(struct lade_chan *c, void *out,
                                                            int64_t until)
{
    if (LB_UNLIKELY(!c || !out))
        return -LADE_EINVAL;
    if (LB_UNLIKELY(!lr_chan_trylock(c)))
        return recv_contended(c, out, until);
    uint64_t head = c->head;
    if (c->send.head || LB_UNLIKELY(c->closed || c->elem != 8))
        return recv_slow(c, out, until);
    if (c->tail == head)
        return recv_wait(c, out, until);
    memcpy(out, &c->ring[(head & c->mask) * 8], 8);
    c->head = head + 1;
    lr_chan_unlock(c);
    if (LB_UNLIKELY((head & (LR_CHAN_BUDGET - 1)) == LR_CHAN_BUDGET - 1))
        return give_way_then_done();
    return 0;
}

int lade_chan_recv_until(lade_chan *c, void *out, int64_t until)
{
    return recv_until(c, out, until);
}

int lade_chan_recv(lade_chan *c, void *out)
{
    return recv_until(c, out, LADE_FOREVER);
}

int lade_chan_try_recv(lade_chan *c, void *out)
{
    int rc = lade_chan_recv_until(c, out, 0);
    return rc == -LADE_ETIMEDOUT ? -LADE_EAGAIN : rc;
}

/* Something is there, or it is closed. With the lock held. */
static __attribute__((noinline)) long recv_n_now(struct lade_chan *c, void *buf, unsigned max)
{
    struct lr_task *ready = NULL;
    unsigned got;
    enum lr_tried tried = lr_chan_take(c, buf, max, &got, &ready);
    if (tried == LR_TRIED_WAIT) /* the senders were on their way out */
        return recv_n_wait(c, buf, max);
    if (LB_UNLIKELY(tried == LR_TRIED_CLOSED)) {
        lr_chan_unlock(c);
        return -LADE_ECLOSED;
    }
    return finish_take(c, got, ready);
}

static __attribute__((noinline)) long recv_n_contended(struct lade_chan *c, void *buf, unsigned max)
{
    lr_chan_lock(c);
    return recv_n_now(c, buf, max);
}

long lade_chan_recv_n(lade_chan *c, void *buf, unsigned max)
{
    if (LB_UNLIKELY(!c || !buf || max == 0))
        return -LADE_EINVAL;
    if (LB_UNLIKELY(!lr_chan_trylock(c)))
        return recv_n_contended(c, buf, max);
    if (c->tail != c->head || c->send.head || LB_UNLIKELY(c->closed))
        return recv_n_now(c, buf, max);
    return recv_n_wait(c, buf, max);
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
