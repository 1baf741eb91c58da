/*
 * mutex.c - a lock for tasks
 *
 * The word is its owner. Locking a free one is one compare-and-swap, unlocking a store and a look at the number of waiters:
 *
 *     unlock: owner = 0; light fence; waiters? -> wake one       lock: enlist; heavy fence; try again; park
 *
 * A released lock may be taken by whoever comes first, also before the one that is woken (barging): the owner mostly runs on.
 * When the first waiter has waited for 1 ms the lock is handed to it instead. The woken task goes to the queue of the
 * worker that unlocked, so that those who fight for a lock gather on one worker, where there is nothing to fight about.
 */
#include "base/clock.h"
#include "rt/park.h"

#include "rt/task.h"

#define FAIR_AFTER 1000000 /* ns */
#define SPINS      60      /* looks at a lock that is held on another worker, before parking */

static inline bool take_if_free(lade_mutex *m, uintptr_t me)
{
    if (LB_LIKELY(lr_self.solo)) {
        if (m->owner != 0)
            return false;
        __atomic_store_n(&m->owner, me, __ATOMIC_RELAXED);
        return true;
    }
    LR_CHAOS();
    uintptr_t nobody = 0;
    return __atomic_compare_exchange_n(&m->owner, &nobody, me, false, __ATOMIC_ACQUIRE,
                                       __ATOMIC_RELAXED);
}

static bool spin(lade_mutex *m, uintptr_t me)
{
    struct lr_rt *rt = lr_rt_get();
    if (lr_self.solo || (lr_worker() && rt->max_workers == 1 && lr_outer_count() == 0))
        return false;
    for (int i = 0; i < SPINS; i++) {
        if (__atomic_load_n(&m->owner, __ATOMIC_RELAXED) == 0 && take_if_free(m, me))
            return true;
        lr_cpu_relax();
    }
    return false;
}

/* Got the lock although a node is in the list: out with it. When a waker was faster, his wake-up has to be taken. */
static void withdraw(lade_mutex *m, struct lr_wait *node)
{
    if (!lr_claim(node->task, node->ticket)) {
        (void)lr_park(node->task, node->ticket, LADE_FOREVER, LR_WAITS_MUTEX, m);
        return;
    }
    lr_spin_lock(&m->waiters.lock);
    lr_waitlist_remove(&m->waiters, node);
    lr_spin_unlock(&m->waiters.lock);
}

static __attribute__((noinline)) int lock_slow(lade_mutex *m, struct lr_task *t, int64_t until)
{
    uintptr_t me = (uintptr_t)t;
    if (__atomic_load_n(&m->owner, __ATOMIC_RELAXED) == me)
        return -LADE_EDEADLK;
    if (lr_is_past(until))
        return -LADE_ETIMEDOUT;
    if (spin(m, me))
        return 0;
    int64_t since = 0;
    for (;;) {
        struct lr_wait node;
        lr_wait_begin(&node, t, NULL);
        bool again = since != 0;
        if (!again)
            since = lb_clock_mono();
        node.since = since;
        lr_spin_lock(&m->waiters.lock);
        if (again)
            lr_waitlist_push_front(&m->waiters, &node);
        else
            lr_waitlist_push(&m->waiters, &node);
        lr_spin_unlock(&m->waiters.lock);
        if (!lr_self.solo)
            lr_fence_heavy(); /* partner: lade_mutex_unlock */
        if (take_if_free(m, me)) {
            withdraw(m, &node);
            return 0;
        }
        enum lr_woke woke = lr_park(t, node.ticket, until, LR_WAITS_MUTEX, m);
        if (woke != LR_WOKE) {
            lr_spin_lock(&m->waiters.lock);
            lr_waitlist_remove(&m->waiters, &node);
            lr_spin_unlock(&m->waiters.lock);
            return lr_woke_result(woke);
        }
        if (__atomic_load_n(&m->owner, __ATOMIC_ACQUIRE) == me || take_if_free(m, me))
            return 0; /* it was handed to us, or is free */
    }
}

static __attribute__((noinline)) int lock_any(lade_mutex *m, int64_t until)
{
    if (!m)
        return -LADE_EINVAL;
    struct lr_task *me = lr_self_task();
    if (!me)
        return -LADE_EPERM;
    return take_if_free(m, (uintptr_t)me) ? 0 : lock_slow(m, me, until);
}

/* The common cases are without a call, and so without a frame. */
int lade_mutex_lock(lade_mutex *m)
{
    struct lr_task *t = lr_cur();
    if (LB_UNLIKELY(!m || !t))
        return lock_any(m, LADE_FOREVER);
    if (LB_LIKELY(take_if_free(m, (uintptr_t)t)))
        return 0;
    return lock_slow(m, t, LADE_FOREVER);
}

int lade_mutex_lock_until(lade_mutex *m, int64_t until)
{
    return lock_any(m, until);
}

int lade_mutex_trylock(lade_mutex *m)
{
    if (!m)
        return -LADE_EINVAL;
    uintptr_t me = lr_self_owner();
    if (!me)
        return -LADE_EPERM;
    return take_if_free(m, me) ? 0 : -LADE_EAGAIN;
}

/* With waiters: hands it to one that has waited long, else lets it go and wakes the first. */
static __attribute__((noinline)) int unlock_slow(lade_mutex *m, bool owned)
{
    lr_spin_lock(&m->waiters.lock);
    if (!owned && __atomic_load_n(&m->owner, __ATOMIC_RELAXED) != 0) {
        lr_spin_unlock(&m->waiters.lock);
        return 0; /* somebody has taken it since: he will see the waiters */
    }
    struct lr_wait *w = lr_waitlist_claim(&m->waiters);
    struct lr_task *t = w ? w->task : NULL;
    bool hand_over = owned && w && lb_clock_mono() - w->since >= FAIR_AFTER;
    if (t)
        t->woke = LR_WOKE;
    if (owned)
        __atomic_store_n(&m->owner, hand_over ? (uintptr_t)t : 0, __ATOMIC_RELEASE);
    lr_spin_unlock(&m->waiters.lock);
    if (t)
        lr_ready(t);
    return 0;
}

/* Anybody, and where there are no asymmetric fences. */
static __attribute__((noinline)) int unlock_any(lade_mutex *m)
{
    if (!m)
        return -LADE_EINVAL;
    uintptr_t me = lr_self_owner();
    if (me == 0 || __atomic_load_n(&m->owner, __ATOMIC_RELAXED) != me)
        return -LADE_EPERM;
    if (__atomic_load_n(&m->waiters.n, __ATOMIC_RELAXED) != 0)
        return unlock_slow(m, true);
    __atomic_store_n(&m->owner, 0, __ATOMIC_RELEASE);
    lr_fence_light(); /* partner: lock_slow */
    return __atomic_load_n(&m->waiters.n, __ATOMIC_RELAXED) != 0 ? unlock_slow(m, false) : 0;
}

int lade_mutex_unlock(lade_mutex *m)
{
    struct lr_task *t = lr_cur();
    if (LB_UNLIKELY(!m || !t || LR_TSAN || lr_fence_symmetric ||
                    __atomic_load_n(&m->owner, __ATOMIC_RELAXED) != (uintptr_t)t))
        return unlock_any(m);
    if (LB_UNLIKELY(__atomic_load_n(&m->waiters.n, __ATOMIC_RELAXED) != 0))
        return unlock_slow(m, true);
    __atomic_store_n(&m->owner, 0, __ATOMIC_RELEASE);
    lr_fence_light(); /* partner: lock_slow */
    if (LB_UNLIKELY(__atomic_load_n(&m->waiters.n, __ATOMIC_RELAXED) != 0))
        return unlock_slow(m, false);
    return 0;
}

/* ---- condition ---- */

/* Takes it whatever happens; only a cancel or a deadline could prevent it, and there is none. */
static void lock_again(lade_mutex *m, struct lr_task *t)
{
    bool before = false;
    struct lr_fiber *f = LR_KIND(t) == LR_FIBER ? (struct lr_fiber *)(void *)t : NULL;
    if (f) {
        before = f->shielded;
        f->shielded = true;
    }
    int rc = lade_mutex_lock_until(m, LADE_FOREVER);
    LB_CHECK(rc == 0);
    if (f)
        f->shielded = before;
}

int lade_cond_wait(lade_cond *c, lade_mutex *m, int64_t until)
{
    if (!c || !m)
        return -LADE_EINVAL;
    struct lr_task *t = lr_self_task();
    if (!t || __atomic_load_n(&m->owner, __ATOMIC_RELAXED) != (uintptr_t)t)
        return -LADE_EPERM;
    struct lr_wait node;
    lr_spin_lock(&c->waiters.lock);
    lr_wait_begin(&node, t, NULL);
    lr_waitlist_push(&c->waiters, &node);
    lr_spin_unlock(&c->waiters.lock);
    (void)lade_mutex_unlock(m);
    enum lr_woke woke = lr_park(t, node.ticket, until, LR_WAITS_COND, c);
    lr_spin_lock(&c->waiters.lock);
    lr_waitlist_remove(&c->waiters, &node);
    lr_spin_unlock(&c->waiters.lock);
    lock_again(m, t);
    return lr_woke_result(woke);
}

int lade_cond_signal(lade_cond *c)
{
    if (!c)
        return -LADE_EINVAL;
    lr_spin_lock(&c->waiters.lock);
    struct lr_wait *w = c->waiters.head ? lr_waitlist_claim(&c->waiters) : NULL;
    struct lr_task *t = w ? w->task : NULL;
    if (t)
        t->woke = LR_WOKE;
    lr_spin_unlock(&c->waiters.lock);
    if (t)
        lr_ready(t);
    return 0;
}

int lade_cond_broadcast(lade_cond *c)
{
    if (!c)
        return -LADE_EINVAL;
    lr_spin_lock(&c->waiters.lock);
    struct lr_task *all = lr_waitlist_claim_all(&c->waiters, LR_WOKE);
    lr_spin_unlock(&c->waiters.lock);
    lr_ready_all(all);
    return 0;
}
