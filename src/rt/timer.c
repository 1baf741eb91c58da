/*
 * timer.c - timers: one pairing heap per worker, nodes are the callers' own
 *
 * A pairing heap: each node is no later than its children; melding two heaps makes the later root the first child of the earlier.
 * Arming is one meld, O(1); taking out a node melds its children in pairs, O(log n) amortised; no allocation, exact times, no
 * rounding to ticks and nothing to cascade. The usual life of a deadline - armed, then stopped long before - costs two pointer
 * swaps. Heaps are per worker only to keep them apart; any worker fires any heap's timers, so that one that is busy for long
 * delays nobody's.
 */
#include "base/clock.h"
#include "rt/task.h"

enum timer_state { TIMER_IDLE = 0, TIMER_ARMED = 1 };

#define FIRE_BATCH 128 /* per heap and call; the next call goes on */

static lade_timer *meld(lade_timer *a, lade_timer *b)
{
    if (!a)
        return b;
    if (!b)
        return a;
    if (b->at < a->at) {
        lade_timer *t = a;
        a = b;
        b = t;
    }
    b->next = a->child;
    if (a->child)
        a->child->prev = b;
    b->prev = a; /* the first child points at its parent, the others at their left neighbour */
    a->child = b;
    a->next = a->prev = NULL;
    return a;
}

/* Melds a list of siblings: pairs from the left, then all from the right. */
static lade_timer *meld_siblings(lade_timer *list)
{
    lade_timer *pairs = NULL; /* stack by prev */
    while (list) {
        lade_timer *a = list;
        lade_timer *b = a->next;
        list = b ? b->next : NULL;
        a->next = a->prev = NULL;
        if (b)
            b->next = b->prev = NULL;
        lade_timer *m = meld(a, b);
        m->prev = pairs;
        pairs = m;
    }
    lade_timer *root = NULL;
    while (pairs) {
        lade_timer *m = pairs;
        pairs = m->prev;
        m->prev = NULL;
        root = meld(root, m);
    }
    return root;
}

static void heap_remove(struct lr_shard *s, lade_timer *t)
{
    lade_timer *below = meld_siblings(t->child);
    t->child = NULL;
    if (s->root == t) {
        s->root = below;
    } else {
        if (t->prev->child == t)
            t->prev->child = t->next;
        else
            t->prev->next = t->next;
        if (t->next)
            t->next->prev = t->prev;
        s->root = meld(s->root, below);
    }
    t->next = t->prev = NULL;
    t->state = TIMER_IDLE;
    lr_count(&s->n, (uint64_t)-1);
}

static void publish(struct lr_shard *s)
{
    __atomic_store_n(&s->next_at, s->root ? s->root->at : LADE_FOREVER, __ATOMIC_SEQ_CST);
}

int64_t lr_timers_next(struct lr_rt *rt)
{
    int64_t next = LADE_FOREVER;
    for (unsigned i = 0; i < rt->n_workers; i++)
        next = LB_MIN(next, __atomic_load_n(&rt->shard[i].next_at, __ATOMIC_SEQ_CST));
    return next;
}

/* Under the lock of s. True when it is the next to fire now. */
static bool insert(struct lr_shard *s, lade_timer *t, int64_t at)
{
    t->child = t->next = t->prev = NULL;
    t->at = at;
    t->state = TIMER_ARMED;
    s->root = meld(s->root, t);
    lr_count(&s->n, 1);
    if (s->root != t)
        return false;
    publish(s);
    return true;
}

/* A timer that is due before all others was put in: whoever sleeps in the poller may sleep too long. Under no lock. */
static void tell_sleeper(struct lr_rt *rt, int64_t at)
{
    if (lr_self.solo)
        return;      /* nobody sleeps while we run */
    lr_fence_full(); /* partner: sleep_polling */
    if (at < __atomic_load_n(&rt->poller.until, __ATOMIC_RELAXED))
        lr_kick(rt);
}

/* The heap of a public timer follows from its address: any thread may arm and stop it, so it must not move. */
static struct lr_shard *shard_of(struct lr_rt *rt, const lade_timer *t)
{
    uint64_t hash = (uint64_t)(uintptr_t)t * UINT64_C(0x9E3779B97F4A7C15);
    return &rt->shard[(hash >> 32) % rt->n_workers];
}

lade_timer_was lade_timer_stop(lade_timer *t)
{
    struct lr_rt *rt = lr_rt_get();
    if (!t || !rt)
        return LADE_TIMER_IDLE;
    struct lr_shard *s = shard_of(rt, t);
    lr_spin_lock(&s->lock);
    lade_timer_was was = s->firing == t ? LADE_TIMER_RUNNING : LADE_TIMER_IDLE;
    if (t->state == TIMER_ARMED) {
        heap_remove(s, t);
        publish(s);
        was = LADE_TIMER_STOPPED;
    }
    lr_spin_unlock(&s->lock);
    return was;
}

int lade_timer_arm(lade_timer *t, int64_t at, void (*fn)(void *), void *arg)
{
    if (!t || !fn)
        return -LADE_EINVAL;
    struct lr_rt *rt = lr_rt_get();
    if (!rt)
        return -LADE_EPERM;
    struct lr_shard *s = shard_of(rt, t);
    lr_spin_lock(&s->lock);
    if (t->state == TIMER_ARMED) {
        heap_remove(s, t);
        publish(s);
    }
    t->fn = fn;
    t->arg = arg;
    bool first = insert(s, t, at);
    lr_spin_unlock(&s->lock);
    if (first)
        tell_sleeper(rt, at);
    return 0;
}

static void wake_waiter(void *arg)
{
    (void)arg; /* a mark only: take_due does it under the lock */
}

void lr_wait_timer_arm(struct lr_wait_timer *t, struct lr_task *task, uint64_t ticket, int64_t at)
{
    t->ticket = ticket;
    t->timer.fn = wake_waiter;
    t->timer.arg = task;
    struct lr_rt *rt = lr_runtime;
    t->timer.shard = lr_worker()->index % rt->n_workers; /* a fiber: there is one */
    struct lr_shard *s = &rt->shard[t->timer.shard];
    lr_spin_lock(&s->lock);
    bool first = insert(s, &t->timer, at);
    lr_spin_unlock(&s->lock);
    if (first)
        tell_sleeper(rt, at);
}

void lr_wait_timer_stop(struct lr_wait_timer *t)
{
    struct lr_shard *s = &lr_runtime->shard[t->timer.shard];
    lr_spin_lock(&s->lock);
    if (t->timer.state == TIMER_ARMED) {
        heap_remove(s, &t->timer);
        publish(s);
    }
    lr_spin_unlock(&s->lock);
}

/* Under the lock: the wait that t belongs to ends, if nobody else has ended it. */
static void expire_wait(lade_timer *t, struct lr_task **ready)
{
    struct lr_wait_timer *w = LB_CONTAINER_OF(t, struct lr_wait_timer, timer);
    struct lr_task *task = t->arg;
    if (!lr_claim(task, w->ticket))
        return;
    task->woke = LR_WOKE_TIMEDOUT;
    task->next = *ready;
    *ready = task;
}

static void run_shard(struct lr_shard *s, int64_t now, struct lr_task **ready)
{
    if (!lr_hard_trylock(&s->draining))
        return; /* another worker is at it */
    for (int i = 0; i < FIRE_BATCH; i++) {
        lr_spin_lock(&s->lock);
        lade_timer *t = s->root && s->root->at <= now ? s->root : NULL;
        if (!t) {
            lr_spin_unlock(&s->lock);
            break;
        }
        heap_remove(s, t);
        publish(s);
        if (t->fn == wake_waiter) {
            expire_wait(t, ready);
            lr_spin_unlock(&s->lock);
            continue;
        }
        void (*fn)(void *) = t->fn;
        void *arg = t->arg;
        s->firing = t;
        lr_spin_unlock(&s->lock);
        fn(arg); /* t may be armed again or freed in it: not touched any more */
        lr_spin_lock(&s->lock);
        s->firing = NULL;
        lr_spin_unlock(&s->lock);
    }
    lr_spin_unlock(&s->draining);
}

void lr_timers_run(struct lr_rt *rt, int64_t now, struct lr_task **ready)
{
    for (unsigned i = 0; i < rt->n_workers; i++) {
        struct lr_shard *s = &rt->shard[i];
        if (__atomic_load_n(&s->next_at, __ATOMIC_ACQUIRE) <= now)
            run_shard(s, now, ready);
    }
}
