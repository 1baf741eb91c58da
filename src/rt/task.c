/* task.c - fibers: descriptors, starting, ending, cancelling */
#include "rt/task.h"

#include "base/mem.h"
#include "rt/stack.h"

#define SLAB_FIBERS  32
#define WORKER_KEEPS 1024
#define YIELD_ABOVE \
    256 /* queued tasks: whoever starts more lets them run first, while they are in the cache */

/*
 * Descriptors of the whole process, for ever: a handle may be looked at long after its task. Plain memory, all of it reachable
 * from `all`.
 */
static uint32_t pool_lock;
static struct lr_fiber *pool; /* free; guarded by: pool_lock */
static struct lr_fiber *all;  /* atomic: only grows */

/* What was allocated, by its beginning: leak checkers do not count a pointer into the middle. */
struct slab {
    struct slab *next;
    struct lr_fiber fiber[SLAB_FIBERS];
};

static struct slab *slabs; /* guarded by: pool_lock */

struct lr_fiber *lr_fiber_all(void)
{
    return __atomic_load_n(&all, __ATOMIC_ACQUIRE);
}

/* A chain of new ones into the pool. Under the lock. */
static bool grow(void)
{
    struct slab *s = lb_calloc(1, sizeof(*s));
    if (!s)
        return false;
    s->next = slabs;
    slabs = s;
    struct lr_fiber *slab = s->fiber;
    struct lr_fiber *known = all;
    for (size_t i = 0; i < SLAB_FIBERS; i++) {
        slab[i].task.kind = LR_FIBER;
        slab[i].task.claim = 1;
        slab[i].life = 2;
        slab[i].all_next = known;
        known = &slab[i];
        slab[i].task.next = pool ? &pool->task : NULL;
        pool = &slab[i];
    }
    __atomic_store_n(&all, known, __ATOMIC_RELEASE);
    return true;
}

bool lr_fiber_is(const void *p)
{
    uintptr_t at = (uintptr_t)p;
    bool found = false;
    lr_hard_lock(&pool_lock);
    for (const struct slab *s = slabs; s && !found; s = s->next)
        found = at >= (uintptr_t)s->fiber && at < (uintptr_t)(s->fiber + SLAB_FIBERS);
    lr_spin_unlock(&pool_lock);
    return found;
}

static struct lr_fiber *get_shared(struct lr_worker *w)
{
    struct lr_fiber *f = NULL;
    lr_hard_lock(&pool_lock);
    if (pool || grow()) {
        f = pool;
        pool = (struct lr_fiber *)(void *)f->task.next;
        for (size_t i = 1; w && i < SLAB_FIBERS && pool; i++) {
            struct lr_fiber *more = pool;
            pool = (struct lr_fiber *)(void *)more->task.next;
            more->task.next = w->fibers ? &w->fibers->task : NULL;
            w->fibers = more;
            w->n_fibers++;
        }
    }
    lr_spin_unlock(&pool_lock);
    return f;
}

struct lr_fiber *lr_fiber_new(struct lr_worker *w)
{
    if (LB_UNLIKELY(!w || !w->fibers))
        return get_shared(w);
    struct lr_fiber *f = w->fibers;
    w->fibers = (struct lr_fiber *)(void *)f->task.next;
    w->n_fibers--;
    return f;
}

static void give_back(struct lr_worker *w, unsigned keep)
{
    lr_hard_lock(&pool_lock);
    while (w->n_fibers > keep) {
        struct lr_fiber *f = w->fibers;
        w->fibers = (struct lr_fiber *)(void *)f->task.next;
        w->n_fibers--;
        f->task.next = pool ? &pool->task : NULL;
        pool = f;
    }
    lr_spin_unlock(&pool_lock);
}

void lr_fiber_trim(struct lr_worker *w)
{
    if (LB_UNLIKELY(w->n_fibers > WORKER_KEEPS))
        give_back(w, WORKER_KEEPS / 2);
}

void lr_fiber_give_back(struct lr_worker *w)
{
    give_back(w, 0);
}

/* Back to the pool of a worker, or of the process. The next owner has a new serial: old handles are void. */
static void recycle(struct lr_worker *w, struct lr_fiber *f)
{
    __atomic_store_n(&f->alive, false, __ATOMIC_RELAXED);
    __atomic_store_n(&f->life, (__atomic_load_n(&f->life, __ATOMIC_RELAXED) | 1) + 1,
                     __ATOMIC_SEQ_CST);
    if (w) {
        f->task.next = w->fibers ? &w->fibers->task : NULL;
        w->fibers = f;
        w->n_fibers++;
        return;
    }
    lr_hard_lock(&pool_lock);
    f->task.next = pool ? &pool->task : NULL;
    pool = f;
    lr_spin_unlock(&pool_lock);
}

static void count_alive(struct lr_rt *rt, int64_t by)
{
    if (lr_self.solo)
        lr_count(&rt->n_fibers, (uint64_t)by);
    else
        (void)__atomic_fetch_add(&rt->n_fibers, (uint64_t)by, __ATOMIC_RELAXED);
}

void lr_fiber_end(struct lr_worker *w, struct lr_fiber *f, int code)
{
    lade_taskgroup *g = f->task.group;
    f->stack = NULL;
    count_alive(lr_runtime, -1);
    lr_group_leave(g, f, code); /* the group may be gone after this */
    recycle(w, f);
}

static struct lr_fiber *self_fiber(void)
{
    struct lr_task *t = lr_cur();
    return t && LR_KIND(t) == LR_FIBER ? (struct lr_fiber *)(void *)t : NULL;
}

/* Not with an OS mutex in hand. */
static void let_them_run(void)
{
    struct lr_fiber *me = self_fiber();
    if (me && me->n_held == 0)
        lr_yield(me);
}

int lr_spawn(const struct lr_spawn *s, lade_task *out)
{
    struct lr_rt *rt = lr_rt_get();
    if (!rt)
        return -LADE_EPERM;
    struct lr_worker *w = lr_worker();
    if (LB_UNLIKELY(!w && __atomic_load_n(&lr_solo_on, __ATOMIC_ACQUIRE)))
        lr_solo_end();
    count_alive(rt, 1);
    struct lr_fiber *f = lr_stack_reserve(rt) == 0 ? lr_fiber_new(w) : NULL;
    if (LB_UNLIKELY(!f)) {
        count_alive(rt, -1);
        return -LADE_ENOMEM;
    }
    f->stack = NULL;
    f->is_coded = s->coded != NULL;
    if (f->is_coded)
        f->fn.coded = s->coded;
    else
        f->fn.plain = s->plain;
    f->arg = s->arg;
    f->name = s->name;
    f->where = s->where;
    f->shielded = false;
    f->n_held = 0;
    f->waits = LR_WAITS_NOT;
    f->asan = NULL;
    f->task.go = NULL;
    lade_taskgroup *g = s->group ? s->group : &rt->root;
    f->task.group = g;
    int rc = lr_group_enter(g, f);
    if (LB_UNLIKELY(rc < 0)) {
        recycle(w, f);
        count_alive(rt, -1);
        return rc;
    }
    __atomic_store_n(&f->alive, true, __ATOMIC_RELAXED);
    if (out)
        *out = (lade_task){.at = f, .serial = __atomic_load_n(&f->life, __ATOMIC_RELAXED) >> 1};
    lr_ready_fresh(&f->task);
    if (!w)
        return 0;
    lr_count(&w->n_started, 1);
    if (LB_UNLIKELY(__atomic_load_n(&w->runq.n, __ATOMIC_RELAXED) > YIELD_ABOVE))
        let_them_run();
    return 0;
}

int lade_task_start_at(lade_task *out, void (*fn)(void *), void *arg, const char *where)
{
    if (!fn)
        return -LADE_EINVAL;
    struct lr_spawn s = {.plain = fn, .arg = arg, .where = where};
    return lr_spawn(&s, out);
}

lade_task lade_task_self(void)
{
    struct lr_fiber *f = self_fiber();
    return f ? (lade_task){.at = f, .serial = __atomic_load_n(&f->life, __ATOMIC_RELAXED) >> 1}
             : (lade_task){0};
}

void lade_task_yield(void)
{
    struct lr_fiber *f = self_fiber();
    if (f)
        lr_yield(f);
}

void lade_task_name(const char *name)
{
    struct lr_fiber *f = self_fiber();
    if (f)
        f->name = name;
}

int lade_task_cancelled(void)
{
    struct lr_fiber *f = self_fiber();
    return f && (__atomic_load_n(&f->life, __ATOMIC_RELAXED) & 1);
}

void lr_fiber_cancel(struct lr_fiber *f, uint64_t serial)
{
    uint64_t life = serial << 1;
    if (!__atomic_compare_exchange_n(&f->life, &life, life | 1, false, __ATOMIC_SEQ_CST,
                                     __ATOMIC_RELAXED))
        return;       /* it has ended, or is marked */
    lr_fence_heavy(); /* partner: lr_park. Either it sees the mark or we see it wait */
    LR_CHAOS();
    uint64_t ticket = __atomic_load_n(&f->task.claim, __ATOMIC_ACQUIRE);
    if (__atomic_load_n(&f->life, __ATOMIC_SEQ_CST) >> 1 != serial)
        return; /* the ticket may be a later task's */
    if ((ticket & 3) == 0 && lr_claim(&f->task, ticket)) {
        f->task.woke = LR_WOKE_CANCELED;
        lr_ready(&f->task);
    }
}

int lade_task_cancel(lade_task task)
{
    if (task.at && lr_rt_get()) {
        if (LB_UNLIKELY(__atomic_load_n(&lr_solo_on, __ATOMIC_ACQUIRE)) && !lr_self.solo)
            lr_solo_end();
        lr_fiber_cancel(task.at, task.serial);
    }
    return 0;
}

int lade_task_sleep_until(int64_t at)
{
    struct lr_task *t = lr_self_task();
    if (!t)
        return -LADE_EPERM;
    if (lr_is_past(at)) {
        lade_task_yield();
        return 0;
    }
    enum lr_woke woke = lr_park(t, lr_ticket(t), at, LR_WAITS_SLEEP, NULL);
    return woke == LR_WOKE_TIMEDOUT ? 0 : lr_woke_result(woke);
}
