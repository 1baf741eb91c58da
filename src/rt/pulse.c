/*
 * pulse.c - one raise wakes all who wait
 *
 * Threads sleep on the count itself, a futex; tasks are in the list. The count moves before the list is looked through and a task
 * looks at the count with the list locked, so neither misses the other.
 */
#include "rt/seam.h"
#include "rt/task.h"

uint32_t lr_pulse_count(const struct lr_pulse *p)
{
    return __atomic_load_n(&p->count, __ATOMIC_ACQUIRE);
}

void lr_pulse_raise(struct lr_pulse *p)
{
    (void)__atomic_fetch_add(&p->count, 1, __ATOMIC_SEQ_CST);
    lr_spin_lock(&p->tasks.lock);
    struct lr_task *all = p->tasks.head ? lr_waitlist_claim_all(&p->tasks, LR_WOKE) : NULL;
    lr_spin_unlock(&p->tasks.lock);
    lr_ready_all(all);
    lr_futex_wake(&p->count);
}

static void wait_as_task(struct lr_pulse *p, struct lr_fiber *f, uint32_t seen)
{
    struct lr_wait node;
    bool before = f->shielded;
    lr_spin_lock(&p->tasks.lock);
    if (lr_pulse_count(p) != seen) {
        lr_spin_unlock(&p->tasks.lock);
        return;
    }
    f->shielded = true; /* what is waited for goes on whether the task is cancelled or not */
    lr_wait_begin(&node, &f->task, NULL);
    lr_waitlist_push(&p->tasks, &node);
    lr_spin_unlock(&p->tasks.lock);
    (void)lr_park(&f->task, node.ticket, LADE_FOREVER, LR_WAITS_COND, p); /* only a raise ends it */
    f->shielded = before;
}

void lr_pulse_wait(struct lr_pulse *p, uint32_t seen)
{
    struct lr_task *t = lr_cur();
    struct lr_fiber *f = t && LR_KIND(t) == LR_FIBER ? (struct lr_fiber *)(void *)t : NULL;
    if (f && f->n_held == 0)
        wait_as_task(p, f, seen);
    else
        lr_futex_wait(&p->count, seen, LADE_FOREVER);
}
