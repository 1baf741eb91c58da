#include "rt/park.h"

#include "base/clock.h"
#include "rt/ctx.h"
#include "rt/task.h"

#include <sched.h>

__thread struct lr_self lr_self __attribute__((tls_model("initial-exec")));
struct lr_rt *lr_runtime;
uint32_t lr_solo_on;

#if !defined(__x86_64__)
__attribute__((noinline)) struct lr_worker *lr_worker(void)
{
    __asm__ volatile("" ::: "memory");
    return lr_self.worker;
}

__attribute__((noinline)) struct lr_task *lr_cur(void)
{
    __asm__ volatile("" ::: "memory");
    return lr_self.cur;
}

__attribute__((noinline)) void lr_cur_set(struct lr_task *t)
{
    __asm__ volatile("" ::: "memory");
    lr_self.cur = t;
}
#endif

void lr_spin_slow(uint32_t *l) /* NOLINT(readability-non-const-parameter): written */
{
    for (unsigned i = 1;; i++) {
        uint32_t free = 0;
        if (__atomic_load_n(l, __ATOMIC_RELAXED) == 0 &&
            __atomic_compare_exchange_n(l, &free, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return;
        if ((i & 1023) == 0)
            (void)
                sched_yield(); /* some 10 us: the holder lost its CPU, where ours may help; not before, it costs a time slice */
        else
            lr_cpu_relax();
    }
}

/* Also on: the program has more than one thread from now on, so it stays off. */
__attribute__((noinline)) void lr_solo_end(void)
{
    struct lr_rt *rt = lr_rt_get();
    if (!rt)
        return;
    __atomic_store_n(&rt->shared_wanted, 1, __ATOMIC_SEQ_CST);
    lr_kick(rt);
    while (__atomic_load_n(&lr_solo_on, __ATOMIC_ACQUIRE))
        (void)sched_yield(); /* the worker answers at its next change of tasks */
}

struct lr_task *lr_self_task(void)
{
    struct lr_task *t = lr_cur();
    if (LB_LIKELY(t && LR_KIND(t) == LR_FIBER))
        return t;
    if (lr_worker())
        return NULL;
    if (LB_UNLIKELY(__atomic_load_n(&lr_solo_on, __ATOMIC_ACQUIRE)))
        lr_solo_end();
    return lr_outer_self();
}

static enum lr_woke park_timed(struct lr_fiber *f, uint64_t ticket, int64_t until)
{
    struct lr_wait_timer timer;
    lr_wait_timer_arm(&timer, &f->task, ticket, until);
    lr_leave(f);
    lr_wait_timer_stop(&timer);
    return f->task.woke;
}

LR_JUMPS_BACK enum lr_woke lr_park(struct lr_task *t, uint64_t ticket, int64_t until,
                                   enum lr_waits waits, const void *on)
{
    if (LB_UNLIKELY(LR_KIND(t) == LR_OUTER))
        return lr_outer_park(t, ticket, until);
    struct lr_fiber *f = (struct lr_fiber *)(void *)t;
    f->waits_on = on;
    __atomic_store_n(&f->waits, (uint8_t)waits, __ATOMIC_RELAXED);
    lr_fence_light(); /* partner: lr_fiber_cancel */
    enum lr_woke woke;
    if (LB_UNLIKELY(__atomic_load_n(&f->life, __ATOMIC_RELAXED) & 1) && !f->shielded &&
        lr_claim(t, ticket)) {
        woke = LR_WOKE_CANCELED;
    } else if (until == LADE_FOREVER) {
        lr_leave(f);
        woke = t->woke;
    } else {
        woke = park_timed(f, ticket, until);
    }
    __atomic_store_n(&f->waits, LR_WAITS_NOT, __ATOMIC_RELAXED);
    return woke;
}

int lr_woke_result(enum lr_woke woke)
{
    switch (woke) {
    case LR_WOKE:
        return 0;
    case LR_WOKE_CLOSED:
        return -LADE_ECLOSED;
    case LR_WOKE_CANCELED:
        return -LADE_ECANCELED;
    case LR_WOKE_TIMEDOUT:
        break;
    }
    return -LADE_ETIMEDOUT;
}

struct lr_task *lr_waitlist_claim_all(lade_waitlist *l, enum lr_woke woke)
{
    struct lr_task *chain = NULL;
    struct lr_task *last = NULL;
    for (struct lr_wait *node; (node = lr_waitlist_claim(l));) {
        struct lr_task *t = node->task;
        t->woke = (uint8_t)woke;
        t->next = NULL;
        if (last)
            last->next = t;
        else
            chain = t;
        last = t;
    }
    return chain;
}

enum lr_woke lr_waitlist_park(lade_waitlist *l, struct lr_wait *node, int64_t until,
                              enum lr_waits waits, const void *on)
{
    lr_spin_unlock(&l->lock);
    LR_CHAOS();
    enum lr_woke woke = lr_park(node->task, node->ticket, until, waits, on);
    /* Also when it was taken out: whoever did may still hold the lock, and the list may lie in memory that we free next. */
    lr_spin_lock(&l->lock);
    lr_waitlist_remove(l, node);
    lr_spin_unlock(&l->lock);
    return woke;
}

bool lr_is_past(int64_t until)
{
    return until != LADE_FOREVER && (until <= 0 || until <= lb_clock_mono());
}

int64_t lade_clock_now(void)
{
    return lb_clock_mono();
}
