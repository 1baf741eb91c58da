/*
 * step.c - tasks without a stack: a function that is called again at each wake-up
 *
 * A step may be woken, and taken by another worker, before its function has returned from the call that registered it. So while
 * it runs its kind carries LR_STEP_BUSY, and who wants to run it waits for that to go.
 */
#include "rt/task.h"

#include <sched.h>

static struct lr_task *task_of(lade_step *s)
{
    return (struct lr_task *)(void *)s;
}

int lade_step_start(lade_step *s, lade_step_next (*fn)(lade_step *), lade_taskgroup *group)
{
    if (!s || !fn)
        return -LADE_EINVAL;
    struct lr_rt *rt = lr_rt_get();
    if (!rt)
        return -LADE_EPERM;
    s->fn = fn;
    s->kind = LR_STEP;
    s->claim = 1;
    s->at = 0;
    s->group = group ? group : &rt->root;
    int rc = lr_group_enter(s->group, NULL);
    if (rc < 0)
        return rc;
    (void)__atomic_fetch_add(&rt->n_steps, 1, __ATOMIC_RELAXED);
    lr_ready_fresh(task_of(s));
    return 0;
}

void lr_step_run(struct lr_worker *w, struct lr_task *t)
{
    lade_step *s = (lade_step *)(void *)t;
    for (unsigned i = 1; __atomic_load_n(&t->kind, __ATOMIC_ACQUIRE) & LR_STEP_BUSY; i++) {
        lr_cpu_relax();
        if ((i & 255) == 0)
            (void)sched_yield();
    }
    lade_taskgroup *g = s->group; /* after DONE the step is not ours any more */
    __atomic_store_n(&t->kind, LR_STEP | LR_STEP_BUSY, __ATOMIC_RELAXED);
    __atomic_store_n(&w->cur, t, __ATOMIC_RELAXED);
    lade_step_next next = s->fn(s);
    __atomic_store_n(&w->cur, NULL, __ATOMIC_RELAXED);
    switch (next) {
    case LADE_STEP_DONE:
        (void)__atomic_fetch_sub(&lr_runtime->n_steps, 1, __ATOMIC_RELAXED);
        lr_group_leave(g, NULL, 0);
        return;
    case LADE_STEP_WAIT:
        __atomic_store_n(&t->kind, LR_STEP, __ATOMIC_RELEASE);
        return;
    case LADE_STEP_AGAIN:
        break;
    }
    __atomic_store_n(&t->kind, LR_STEP, __ATOMIC_RELEASE);
    lr_ready_fresh(t);
}

lade_step_next lade_gate_wait_step(lade_gate *g, lade_step *s)
{
    if (!g || !s)
        return LADE_STEP_DONE;
    lr_spin_lock(&g->waiters.lock);
    bool open = g->open;
    if (!open) {
        s->next = g->steps;
        g->steps = s;
    }
    lr_spin_unlock(&g->waiters.lock);
    return open ? LADE_STEP_DONE : LADE_STEP_WAIT;
}

static void wake_step(void *arg)
{
    lr_ready_fresh(arg);
}

lade_step_next lade_timer_wait_step(lade_timer *t, int64_t at, lade_step *s)
{
    if (!s || lr_is_past(at) || lade_timer_arm(t, at, wake_step, s) < 0)
        return LADE_STEP_DONE;
    return LADE_STEP_WAIT;
}
