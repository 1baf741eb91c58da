/*
 * sync.c - rwlock, semaphore, wait group, gate, once: state and waiters under one spin lock each
 *
 * Whoever is woken has been given what it waited for (the lock, the count) by the waker, so nobody can take it away in between.
 */
#include "rt/park.h"

/* Waits in l, whose lock is held and will be let go. */
static int wait_in(lade_waitlist *l, unsigned index, int64_t until, enum lr_waits waits)
{
    struct lr_task *t = until == 0 ? NULL : lr_self_task();
    if (!t) {
        lr_spin_unlock(&l->lock);
        return until == 0 ? -LADE_ETIMEDOUT : -LADE_EPERM;
    }
    struct lr_wait node;
    lr_wait_begin(&node, t, NULL);
    node.index = index;
    lr_waitlist_push(l, &node);
    return lr_woke_result(lr_waitlist_park(l, &node, until, waits, l));
}

/* ---- rwlock ---- */

enum { READER = 0, WRITER = 1 };

/* Lets in whoever may enter now, in order of arrival. Under the lock; a chain to make ready. */
static struct lr_task *admit(lade_rwlock *l)
{
    struct lr_task *chain = NULL;
    struct lr_task **end = &chain;
    while (l->waiters.head && !l->writer) {
        if (l->waiters.head->index == WRITER && l->readers > 0)
            break;
        struct lr_wait *w = l->waiters.head;
        unsigned kind = w->index;
        lr_waitlist_remove(&l->waiters, w);
        if (!lr_claim(w->task, w->ticket))
            continue;
        if (kind == WRITER)
            l->writer = (uintptr_t)w->task;
        else
            l->readers++;
        w->task->woke = LR_WOKE;
        w->task->next = NULL;
        *end = w->task;
        end = &w->task->next;
    }
    return chain;
}

/* A writer that gave up may have been all that kept readers behind it out. */
static int after_wait(lade_rwlock *l, int rc)
{
    if (rc == 0)
        return 0;
    lr_spin_lock(&l->waiters.lock);
    struct lr_task *ready = admit(l);
    lr_spin_unlock(&l->waiters.lock);
    lr_ready_all(ready);
    return rc;
}

int lade_rwlock_rdlock_until(lade_rwlock *l, int64_t until)
{
    if (!l)
        return -LADE_EINVAL;
    lr_spin_lock(&l->waiters.lock);
    if (!l->writer && !l->waiters.head) {
        l->readers++;
        lr_spin_unlock(&l->waiters.lock);
        return 0;
    }
    if (l->writer && l->writer == lr_self_owner()) {
        lr_spin_unlock(&l->waiters.lock);
        return -LADE_EDEADLK;
    }
    return after_wait(l, wait_in(&l->waiters, READER, until, LR_WAITS_RWLOCK));
}

int lade_rwlock_wrlock_until(lade_rwlock *l, int64_t until)
{
    if (!l)
        return -LADE_EINVAL;
    uintptr_t me = lr_self_owner();
    if (!me)
        return -LADE_EPERM;
    lr_spin_lock(&l->waiters.lock);
    if (!l->writer && l->readers == 0) {
        l->writer = me;
        lr_spin_unlock(&l->waiters.lock);
        return 0;
    }
    if (l->writer == me) {
        lr_spin_unlock(&l->waiters.lock);
        return -LADE_EDEADLK;
    }
    return after_wait(l, wait_in(&l->waiters, WRITER, until, LR_WAITS_RWLOCK));
}

int lade_rwlock_rdlock(lade_rwlock *l)
{
    return lade_rwlock_rdlock_until(l, LADE_FOREVER);
}

int lade_rwlock_wrlock(lade_rwlock *l)
{
    return lade_rwlock_wrlock_until(l, LADE_FOREVER);
}

int lade_rwlock_unlock(lade_rwlock *l)
{
    if (!l)
        return -LADE_EINVAL;
    uintptr_t me = lr_self_owner();
    lr_spin_lock(&l->waiters.lock);
    bool held = l->writer ? l->writer == me : l->readers > 0;
    if (held && l->writer)
        l->writer = 0;
    else if (held)
        l->readers--;
    struct lr_task *ready = held ? admit(l) : NULL;
    lr_spin_unlock(&l->waiters.lock);
    lr_ready_all(ready);
    return held ? 0 : -LADE_EPERM;
}

/* ---- semaphore ---- */

int lade_sem_wait_until(lade_sem *s, int64_t until)
{
    if (!s)
        return -LADE_EINVAL;
    lr_spin_lock(&s->waiters.lock);
    if (s->count > 0 && !s->waiters.head) {
        s->count--;
        lr_spin_unlock(&s->waiters.lock);
        return 0;
    }
    return wait_in(&s->waiters, 0, until, LR_WAITS_SEM);
}

int lade_sem_wait(lade_sem *s)
{
    return lade_sem_wait_until(s, LADE_FOREVER);
}

int lade_sem_post(lade_sem *s)
{
    if (!s)
        return -LADE_EINVAL;
    lr_spin_lock(&s->waiters.lock);
    struct lr_wait *w = lr_waitlist_claim(&s->waiters);
    struct lr_task *t = w ? w->task : NULL;
    bool full = !t && s->count == UINT32_MAX;
    if (t)
        t->woke = LR_WOKE;
    else if (!full)
        s->count++;
    lr_spin_unlock(&s->waiters.lock);
    if (t)
        lr_ready(t);
    return full ? -LADE_EINVAL : 0;
}

/* ---- wait group ---- */

int lade_waitgroup_add(lade_waitgroup *g, int n)
{
    if (!g)
        return -LADE_EINVAL;
    struct lr_task *ready = NULL;
    lr_spin_lock(&g->waiters.lock);
    bool valid = g->n + n >= 0;
    if (valid)
        g->n += n;
    if (valid && g->n == 0)
        ready = lr_waitlist_claim_all(&g->waiters, LR_WOKE);
    lr_spin_unlock(&g->waiters.lock);
    lr_ready_all(ready);
    return valid ? 0 : -LADE_EINVAL;
}

int lade_waitgroup_done(lade_waitgroup *g)
{
    return lade_waitgroup_add(g, -1);
}

int lade_waitgroup_wait_until(lade_waitgroup *g, int64_t until)
{
    if (!g)
        return -LADE_EINVAL;
    lr_spin_lock(&g->waiters.lock);
    if (g->n == 0) {
        lr_spin_unlock(&g->waiters.lock);
        return 0;
    }
    return wait_in(&g->waiters, 0, until, LR_WAITS_GROUP);
}

/* ---- gate ---- */

int lade_gate_wait_until(lade_gate *g, int64_t until)
{
    if (!g)
        return -LADE_EINVAL;
    lr_spin_lock(&g->waiters.lock);
    if (g->open) {
        lr_spin_unlock(&g->waiters.lock);
        return 0;
    }
    return wait_in(&g->waiters, 0, until, LR_WAITS_GATE);
}

int lade_gate_wait(lade_gate *g)
{
    return lade_gate_wait_until(g, LADE_FOREVER);
}

int lade_gate_open(lade_gate *g)
{
    if (!g)
        return -LADE_EINVAL;
    lr_spin_lock(&g->waiters.lock);
    g->open = 1;
    struct lr_task *ready = lr_waitlist_claim_all(&g->waiters, LR_WOKE);
    struct lr_task *steps = (struct lr_task *)(void *)g->steps;
    g->steps = NULL;
    lr_spin_unlock(&g->waiters.lock);
    lr_ready_all(ready);
    lr_ready_all(steps);
    return 0;
}

/* ---- once ---- */

int lade_once_run(lade_once *o, void (*fn)(void *), void *arg)
{
    if (!o || !fn)
        return -LADE_EINVAL;
    lr_spin_lock(&o->done.waiters.lock);
    bool first = !o->begun;
    o->begun = 1;
    lr_spin_unlock(&o->done.waiters.lock);
    if (!first)
        return lade_gate_wait(&o->done);
    fn(arg);
    return lade_gate_open(&o->done);
}
