/*
 * switch.h - leaving a fiber, inline
 *
 * Each return after a switch is mispredicted, since the processor remembers the calls of another task (some 20 cycles each). So the
 * calls that park most, on channels, have the switch in their own body and jump back to their caller (LR_JUMPS_BACK). Functions
 * that use lr_leave_here are LR_SWITCHES.
 */
#ifndef LADE_RT_SWITCH_H
#define LADE_RT_SWITCH_H

#include "rt/ctx.h"
#include "rt/park.h"
#include "rt/stack.h"
#include "rt/task.h"

#if LR_TSAN
#    include <sanitizer/tsan_interface.h>
#endif
#if LR_ASAN
#    include <sanitizer/common_interface_defs.h>
#endif

/* `from` NULL: the scheduler. `fake` is where the fake stack of what is left is kept; NULL when it will never return. */
static inline void lr_tell_leave(struct lr_worker *w, void **fake, const struct lr_fiber *to)
{
#if LR_ASAN
    if (to)
        __sanitizer_start_switch_fiber(fake, to->stack->low,
                                       (size_t)((char *)to->stack - to->stack->low));
    else
        __sanitizer_start_switch_fiber(fake, w->sched_asan_low, w->sched_asan_size);
#endif
#if LR_TSAN
    __tsan_switch_to_fiber(to ? to->stack->tsan : w->sched_tsan, 0);
#endif
    (void)w;
    (void)fake;
    (void)to;
}

static inline void lr_tell_arrive(void *fake)
{
#if LR_ASAN
    __sanitizer_finish_switch_fiber(fake, NULL, NULL);
#endif
    (void)fake;
}

/* The bottom of every fiber's stack. */
void lr_fiber_begin(void);

/* The context to go to; binds a stack at the first run. */
static inline void *lr_take_context(struct lr_worker *w, struct lr_fiber *f)
{
    if (LB_UNLIKELY(!f->stack)) {
        struct lr_stack *s = lr_stack_get(lr_runtime, w);
        f->stack = s;
        f->task.go = NULL;
        return lr_ctx_make(s->low, lr_stack_top(s), lr_fiber_begin);
    }
    void *sp;
    while (LB_UNLIKELY(!(sp = __atomic_load_n(&f->task.go, __ATOMIC_ACQUIRE))))
        lr_cpu_relax(); /* woken so soon that it is still on its way off another worker */
    __atomic_store_n(&f->task.go, NULL, __ATOMIC_RELAXED);
    return sp;
}

static inline void lr_set_current(struct lr_worker *w, struct lr_task *t)
{
    lr_cur_set(t);
    __atomic_store_n(&w->cur, t, __ATOMIC_RELAXED);
}

/* The next task for a fiber that leaves, NULL = let the scheduler decide. */
static inline struct lr_task *lr_next_task(struct lr_worker *w)
{
    if (LB_UNLIKELY(--w->countdown <= 0))
        return NULL;
    return lr_runq_pop(&w->runq);
}

/* Where a leaving fiber goes: *to NULL = the scheduler, with w->handoff set. */
static inline void *lr_choose(struct lr_worker *w, struct lr_task *t, struct lr_fiber **to)
{
    *to = NULL;
    if (LB_LIKELY(t && LR_KIND(t) == LR_FIBER)) {
        void *sp = lr_take_context(w, (struct lr_fiber *)(void *)t);
        *to = (struct lr_fiber *)(void *)t;
        lr_set_current(w, t);
        return sp;
    }
    w->handoff = t;
    lr_set_current(w, NULL);
    return w->sched;
}

/* Until somebody makes it ready. */
static inline __attribute__((always_inline)) void lr_leave_here(struct lr_fiber *me)
{
    struct lr_worker *w = lr_worker();
    struct lr_task *t = lr_next_task(w);
    if (LB_UNLIKELY(t == &me->task))
        return; /* somebody has woken it already */
    struct lr_fiber *to;
    void *sp = lr_choose(w, t, &to);
    lr_tell_leave(w, &me->asan, to);
    lr_ctx_switch(&me->task.go, sp);
    lr_tell_arrive(me->asan);
}

/* lr_park, with the common case inline: a running fiber without a deadline. */
static inline __attribute__((always_inline)) enum lr_woke
lr_park_here(struct lr_fiber *f, uint64_t ticket, enum lr_waits waits, const void *on)
{
    f->waits_on = on;
    __atomic_store_n(&f->waits, (uint8_t)waits, __ATOMIC_RELAXED);
    lr_fence_light(); /* partner: lr_fiber_cancel */
    if (LB_UNLIKELY(__atomic_load_n(&f->life, __ATOMIC_RELAXED) & 1))
        return lr_park(&f->task, ticket, LADE_FOREVER, waits, on);
    lr_leave_here(f);
    __atomic_store_n(&f->waits, LR_WAITS_NOT, __ATOMIC_RELAXED);
    return f->task.woke;
}

#endif
