/*
 * stack.h - stacks of fibers
 *
 *     slot:  [guard][ .......... stack, grows down .......... ][struct lr_stack][colour]
 *
 * Slots are mapped in slabs of 64, given out at a fiber's first run and kept in a pool per worker, last used first, so that
 * short tasks always find a warm one. The colour shifts the tops by some cache lines, or the hot ends of all stacks would
 * fall into the same sets of the first-level cache. The guard is as large as the stack, but at least 64 KiB and at most 1 MiB: one large array does not
 * step over it. It is MADV_GUARD_INSTALL (Linux 6.13, no mapping of its own), before that mprotect for the first 20,000 stacks, for
 * the sake of vm.max_map_count, and none for the others. Unused stacks beyond a bound give their pages back.
 */
#ifndef LADE_RT_STACK_H
#define LADE_RT_STACK_H

#include "rt/core.h"

struct lr_stack {
    struct lr_stack *next; /* in a pool */
    char *low;             /* above the guard */
    void *tsan;            /* ThreadSanitizer's view of what runs on it */
};

/*
 * Address space is reserved when a task is started, where want of it can be reported: one slot for each living fiber, and for
 * what lies unused in the workers' pools. lr_stack_get then never fails.
 */
#define LR_STACKS_KEPT  32                    /* free ones a worker keeps */
#define LR_STACKS_SLACK (LR_STACKS_KEPT + 72) /* and what it may gather between two trims */

static inline bool lr_stack_is_short(struct lr_rt *rt)
{
    return __atomic_load_n(&rt->n_fibers, __ATOMIC_RELAXED) + lr_live(rt) * LR_STACKS_SLACK >=
           __atomic_load_n(&rt->n_stacks, __ATOMIC_RELAXED);
}

int lr_stack_reserve_slow(struct lr_rt *rt);
/* Before there are n workers. 0 or -LADE_ENOMEM. */
int lr_stack_reserve_workers(struct lr_rt *rt, unsigned n);

/* 0, or -LADE_ENOMEM. */
static inline int lr_stack_reserve(struct lr_rt *rt)
{
    return LB_UNLIKELY(lr_stack_is_short(rt)) ? lr_stack_reserve_slow(rt) : 0;
}

struct lr_stack *lr_stack_get(struct lr_rt *rt, struct lr_worker *w);

static inline void lr_stack_put(struct lr_worker *w, struct lr_stack *s)
{
    s->next = w->stacks;
    w->stacks = s;
    w->n_stacks++;
}

/* Hands what the worker has too much of to the runtime's pool. Not from a fiber. */
void lr_stack_trim(struct lr_rt *rt, struct lr_worker *w);

static inline void *lr_stack_top(struct lr_stack *s)
{
    return (char *)s - ((uintptr_t)s & 15);
}

/* Unmaps everything. No fiber may be left. */
void lr_stack_free_all(struct lr_rt *rt);

/* crash.c: names the task that overflows its stack or aborts. Process-wide, while a runtime is there. */
void lr_crash_start(struct lr_rt *rt);
void lr_crash_stop(struct lr_rt *rt);
/* For each worker thread: a stack for the signal handler. */
void lr_crash_enter(struct lr_worker *w);
void lr_crash_leave(struct lr_worker *w);

#endif
