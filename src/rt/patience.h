/*
 * patience.h - those who wait for one who works give their CPU away again and again before they sleep
 *
 *     leader                                        follower, its state in its own frame
 *     works
 *     exchanges each state for what came of it      lr_patience_wait(p, &state, AWAKE)   yields while nothing came
 *     lr_patience_judge(p, ..., how many slept)     AWAKE -> ASLEEP, then a pulse (seam.h)
 *     raises the pulse if somebody slept
 *
 * So followers in a loop need no system call but the yield to wait and none to wake. They yield for up to twice the length of the
 * leader's work, and only while trying shows that it ends within that (base/spin.h).
 *
 * Bounds: LR_PATIENCE_MAX ns for each wait; at most LR_PATIENCE_THREADS yield at once, the others sleep.
 *
 * Thread safety: lr_patience_wait all; lr_patience_judge whoever leads, one at a time. All zero is a new one.
 */
#ifndef LADE_RT_PATIENCE_H
#define LADE_RT_PATIENCE_H

#include <stdatomic.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/spin.h"
#include "rt/seam.h"

#define LR_PATIENCE_MIN     20000
#define LR_PATIENCE_MAX     200000
#define LR_PATIENCE_THREADS 16

struct lr_patience {
    atomic_int time;     /* ns, for how long they may; 0: they sleep at once */
    atomic_int n;        /* how many do */
    _Atomic int64_t gap; /* the longest time for which one of them did not get its CPU back */
    /* the leader's */
    struct lb_spin spin;
    int64_t length; /* ns of its work, moving average */
};

/* Until *state is not `still`, or the patience is over: the caller looks itself. */
static inline void lr_patience_wait(struct lr_patience *p, const atomic_uint *state, unsigned still)
{
    int time = atomic_load_explicit(&p->time, memory_order_relaxed);
    if (time <= 0)
        return;
    if (atomic_fetch_add_explicit(&p->n, 1, memory_order_relaxed) < LR_PATIENCE_THREADS) {
        int64_t last = lb_clock_mono(), now = last, end = now + time, gap = 0;
        while (atomic_load_explicit(state, memory_order_acquire) == still && now < end) {
            lr_yield_turn();
            lb_spin_yield();
            now = lb_clock_mono();
            gap = LB_MAX(gap, now - last);
            last = now;
        }
        /* two at once: one of them is enough */
        if (gap > atomic_load_explicit(&p->gap, memory_order_relaxed))
            atomic_store_explicit(&p->gap, gap, memory_order_relaxed);
    }
    (void)atomic_fetch_sub_explicit(&p->n, 1, memory_order_relaxed);
}

/* After work that began and ended then, for which so many others waited and so many of them slept. */
static inline void lr_patience_judge(struct lr_patience *p, int64_t began, int64_t ended,
                                     size_t others, size_t asleep)
{
    p->length += (ended - began - p->length) / 8;
    if (others == 0)
        return;
    int64_t gap = atomic_exchange_explicit(&p->gap, 0, memory_order_relaxed);
    if (atomic_load_explicit(&p->time, memory_order_relaxed) > 0)
        lb_spin_judge(&p->spin, ended, 4 * asleep <= others, gap);
    p->spin.time = (int32_t)LB_MIN(LB_MAX(2 * p->length, LR_PATIENCE_MIN), LR_PATIENCE_MAX);
    int time = lb_spin_wanted(&p->spin, ended) ? (int)lb_spin_time(&p->spin) : 0;
    atomic_store_explicit(&p->time, time, memory_order_relaxed);
}

#endif
