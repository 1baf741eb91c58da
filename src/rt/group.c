/*
 * group.c - task groups: the list of members, the end of the last one, cancelling
 *
 * The group's memory may go as soon as a waiter has seen n == 0, so the last member touches it only under its lock, and a waiter
 * always takes that lock once after it was woken.
 */
#include <string.h>

#include "rt/task.h"

int lr_group_enter(lade_taskgroup *g, struct lr_fiber *f)
{
    lr_spin_lock(&g->waiters.lock);
    if (LB_UNLIKELY(g->cancelled)) {
        lr_spin_unlock(&g->waiters.lock);
        return -LADE_ECANCELED;
    }
    g->n++;
    if (f) {
        struct lr_fiber *first = (struct lr_fiber *)(void *)g->members;
        f->gnext = first;
        f->gprev = NULL;
        if (first)
            first->gprev = f;
        g->members = &f->task;
    }
    lr_spin_unlock(&g->waiters.lock);
    return 0;
}

void lr_group_leave(lade_taskgroup *g, struct lr_fiber *f, int code)
{
    struct lr_task *ready = NULL;
    lr_spin_lock(&g->waiters.lock);
    if (f) {
        if (f->gprev)
            f->gprev->gnext = f->gnext;
        else
            g->members = f->gnext ? &f->gnext->task : NULL;
        if (f->gnext)
            f->gnext->gprev = f->gprev;
    }
    if (code < 0 && g->failed == 0)
        g->failed = code;
    if (--g->n == 0 && g->waiters.head)
        ready = lr_waitlist_claim_all(&g->waiters, LR_WOKE);
    lr_spin_unlock(&g->waiters.lock);
    if (ready)
        lr_ready_all(ready);
}

void lade_taskgroup_init(lade_taskgroup *g)
{
    if (g)
        memset(g, 0, sizeof(*g));
}

int lade_taskgroup_start_at(lade_taskgroup *g, const lade_task_attr *attr, int (*fn)(void *),
                            void *arg, const char *where)
{
    if (!g || !fn)
        return -LADE_EINVAL;
    struct lr_spawn s = {
        .group = g, .coded = fn, .arg = arg, .name = attr ? attr->name : NULL, .where = where};
    return lr_spawn(&s, NULL);
}

/* One wait for the end: 0 when there are no members. */
static int wait_once(lade_taskgroup *g, struct lr_task *t, int64_t until)
{
    lr_spin_lock(&g->waiters.lock);
    if (g->n == 0) {
        lr_spin_unlock(&g->waiters.lock);
        return 0;
    }
    struct lr_wait node;
    lr_wait_begin(&node, t, NULL);
    lr_waitlist_push(&g->waiters, &node);
    return lr_woke_result(lr_waitlist_park(&g->waiters, &node, until, LR_WAITS_GROUP, g));
}

int lade_taskgroup_wait_until(lade_taskgroup *g, int64_t until)
{
    if (!g)
        return -LADE_EINVAL;
    struct lr_task *t = lr_self_task();
    if (!t)
        return -LADE_EPERM;
    int rc = wait_once(g, t, until);
    if (rc == -LADE_ECANCELED) { /* pass it on, and stay until the members are out */
        lade_taskgroup_cancel(g);
        struct lr_fiber *f = (struct lr_fiber *)(void *)t;
        bool before = f->shielded;
        f->shielded = true;
        (void)wait_once(g, t, LADE_FOREVER);
        f->shielded = before;
        return rc;
    }
    return rc < 0 ? rc : g->failed;
}

/*
 * Members are marked one by one with the lock let go in between, since waking one may run anything: the list is walked from its
 * head again until all are marked. New members are refused, so it ends.
 */
void lade_taskgroup_cancel(lade_taskgroup *g)
{
    if (!g)
        return;

    enum { BATCH = 32 };

    for (;;) {
        struct lr_fiber *f[BATCH];
        uint64_t serial[BATCH];
        size_t n = 0;
        lr_spin_lock(&g->waiters.lock);
        g->cancelled = true;
        for (struct lr_fiber *it = (struct lr_fiber *)(void *)g->members; it && n < BATCH;
             it = it->gnext) {
            uint64_t life = __atomic_load_n(&it->life, __ATOMIC_RELAXED);
            if (life & 1)
                continue;
            f[n] = it;
            serial[n++] = life >> 1;
        }
        lr_spin_unlock(&g->waiters.lock);
        for (size_t i = 0; i < n; i++)
            lr_fiber_cancel(f[i], serial[i]);
        if (n < BATCH)
            return;
    }
}
