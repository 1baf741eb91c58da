/*
 * sched.c - which task runs next, on which worker, and when a worker sleeps
 *
 * A worker's loop (lr_sched_run) lives on its thread's own stack; steps run there. A fiber that parks switches straight to the
 * next fiber of the queue (lr_leave) and comes back to the loop only when there is none, when the next is a step, and at
 * each 64th change (more often when tasks run long), for the housekeeping: coarse clock, injected tasks, timers, descriptors.
 *
 * Order is first in, first out. A task woken by its neighbour goes to the end of the same worker's queue: two that talk stay
 * together on a core, and a third waits for no more than the queue is long.
 *
 * Idle workers. One of them is the watcher: it polls descriptors and timers, and looks every 50 us, then ever more rarely
 * (2 ms), whether another worker has tasks it does not get to; only tasks that have waited long are moved (runq.h). It reads
 * two words of the other's, never what is written at each operation. The rest sleep on a futex; a watcher that finds
 * work wakes the next one into its role. When nobody else does anything the watcher sleeps for good ("deep"): it sets
 * `watched` to 0, and whoever makes a task ready with `watched` 0 wakes it:
 *
 *     pusher: push; light fence; watched == 0 -> wake       watcher: watched = 0; heavy fence; look at all queues; sleep
 *
 * When every worker is stuck in a task that blocks its thread or hogs the CPU, nobody watches any more: spare.c adds a worker. A
 * spare is as any other, but that it parks, instead of sleeping among the idle, when somebody else watches.
 */
#include "base/clock.h"
#include "rt/ctx.h"
#include "rt/runq.h"
#include "rt/stack.h"
#include "rt/switch.h"
#include "rt/task.h"

#if LR_TSAN
#    include <sanitizer/tsan_interface.h>
#endif

#define POLL_EVERY   50000  /* ns between looks at descriptors while busy */
#define STUCK_FOR    100000 /* ns without a turn: see may_have_old */
#define LOOK_FIRST   50000  /* ns between looks at other workers, doubling */
#define LOOK_MAX     2000000
#define TICK         64 /* task changes between housekeeping, at most; fewer when tasks are slow */
#define TICK_TIME    200000 /* ns: about as often */
#define INJECT_BATCH 64

/* ---- switching: see also switch.h ---- */

LR_SWITCHES LR_JUMPS_BACK void lr_leave(struct lr_fiber *me)
{
    lr_leave_here(me);
}

/* The end of a fiber, on its own stack, which is in the pool again: nothing takes it before the switch. */
static LR_SWITCHES void leave_for_good(struct lr_worker *w, struct lr_task *t)
{
    static void *nowhere[64]; /* one per worker would do: never read */
    struct lr_fiber *to;
    void *sp = lr_choose(w, t, &to);
    lr_tell_leave(w, NULL, to);
    lr_ctx_switch(&nowhere[w->index & 63], sp);
    __builtin_unreachable();
}

static LR_SWITCHES void enter_fiber(struct lr_worker *w, struct lr_fiber *f, void *sp)
{
    lr_set_current(w, &f->task);
#if LR_TSAN
    w->sched_tsan = __tsan_get_current_fiber();
#endif
    lr_tell_leave(w, &w->sched_asan, f);
    lr_ctx_switch(&w->sched, sp);
    lr_tell_arrive(w->sched_asan);
    lr_set_current(lr_worker(), NULL);
}

static __attribute__((noinline)) int call(struct lr_fiber *f)
{
    if (f->is_coded)
        return f->fn.coded(f->arg);
    f->fn.plain(f->arg);
    return 0;
}

/*
 * The bottom of every fiber's stack. When a fiber ends and the next one has not run yet, that one takes over the stack
 * without a switch: a burst of short tasks is a loop of calls.
 */
LR_SWITCHES void lr_fiber_begin(void)
{
    lr_ctx_arrive();
    lr_tell_arrive(NULL);
    for (;;) {
        struct lr_fiber *f = (struct lr_fiber *)(void *)lr_cur();
        int code = call(f);
        struct lr_worker *w = lr_worker();
        f = (struct lr_fiber *)(void *)lr_cur();
        struct lr_stack *s = f->stack;
        lr_set_current(w, NULL);
        lr_fiber_end(w, f, code);
        struct lr_task *t = lr_next_task(w);
        if (t && LR_KIND(t) == LR_FIBER && !((struct lr_fiber *)(void *)t)->stack) {
            ((struct lr_fiber *)(void *)t)->stack = s;
            t->go = NULL;
            lr_set_current(w, t);
            continue;
        }
        lr_stack_put(w, s);
        leave_for_good(w, t);
    }
}

void lr_yield(struct lr_fiber *me)
{
    struct lr_worker *w = lr_worker();
    lr_runq_push(&w->runq, &me->task, w->stamp);
    lr_leave(me);
}

/* ---- making ready ---- */

void lr_wake_watcher(struct lr_rt *rt)
{
    if (__atomic_exchange_n(&rt->watched, 1, __ATOMIC_SEQ_CST) == 0)
        lr_kick(rt);
}

void lr_inject(struct lr_task *t)
{
    struct lr_rt *rt = lr_rt_get();
    t->next = NULL;
    lr_hard_lock(&rt->inject_lock);
    if (rt->inject_head)
        rt->inject_tail->next = t;
    else
        rt->inject_head = t;
    rt->inject_tail = t;
    __atomic_store_n(&rt->n_injected, rt->n_injected + 1, __ATOMIC_RELAXED);
    lr_spin_unlock(&rt->inject_lock);
    lr_fence_full(); /* partner: sleep_polling */
    lr_kick(rt);
}

void lr_kick(struct lr_rt *rt)
{
    if (__atomic_load_n(&rt->poller.asleep, __ATOMIC_RELAXED) &&
        __atomic_exchange_n(&rt->poller.asleep, 0, __ATOMIC_SEQ_CST))
        lr_poller_kick(&rt->poller);
}

void lr_ready_elsewhere(struct lr_task *t)
{
    if (LR_KIND(t) == LR_OUTER)
        lr_outer_wake(t);
    else
        lr_inject(t);
}

void lr_ready_fresh(struct lr_task *t)
{
    struct lr_worker *w = lr_worker();
    if (LR_KIND(t) != LR_OUTER && w)
        lr_push_local(w, t, w->stamp);
    else
        lr_ready(t);
}

void lr_ready_all(struct lr_task *chain)
{
    for (struct lr_task *next; chain; chain = next) {
        next = chain->next;
        lr_ready(chain);
    }
}

/* ---- the scheduler's loop ---- */

static void ready_all_fresh(struct lr_task *chain)
{
    for (struct lr_task *next; chain; chain = next) {
        next = chain->next;
        lr_ready_fresh(chain);
    }
}

static void take_injected(struct lr_rt *rt, struct lr_worker *w)
{
    struct lr_task *got = NULL;
    struct lr_task *last = NULL;
    lr_hard_lock(&rt->inject_lock);
    for (int i = 0; i < INJECT_BATCH && rt->inject_head; i++) {
        struct lr_task *t = rt->inject_head;
        rt->inject_head = t->next;
        __atomic_store_n(&rt->n_injected, rt->n_injected - 1, __ATOMIC_RELAXED);
        t->next = NULL;
        if (last)
            last->next = t;
        else
            got = t;
        last = t;
    }
    lr_spin_unlock(&rt->inject_lock);
    (void)w;
    ready_all_fresh(got);
}

/* Everything that is not running tasks. Bounded: one batch of each kind. */
static int64_t housekeep(struct lr_rt *rt, struct lr_worker *w)
{
    int64_t now = lb_clock_mono();
    w->stamp = lr_stamp(now);
    int used = w->allotted - w->countdown;
    if (used > 0) {
        lr_count(&w->n_switches, (uint64_t)used);
        __atomic_store_n(&w->published, (uint32_t)w->n_switches, __ATOMIC_RELAXED);
        int64_t each = (now - w->kept_at) / used + 1;
        w->allotted = (int)LB_MAX(1, LB_MIN(TICK, TICK_TIME / each));
    }
    w->countdown = w->allotted;
    w->kept_at = now;
    if (LB_UNLIKELY(__atomic_load_n(&rt->shared_wanted, __ATOMIC_ACQUIRE)) && lr_self.solo) {
        lr_self.solo = 0;
        __atomic_store_n(&lr_solo_on, 0, __ATOMIC_RELEASE);
    }
    if (__atomic_load_n(&rt->n_injected, __ATOMIC_RELAXED))
        take_injected(rt, w);
    struct lr_task *ready = NULL;
    if (lr_timers_next(rt) <= now)
        lr_timers_run(rt, now, &ready);
    if (now - w->polled_at >= POLL_EVERY && __atomic_load_n(&rt->poller.n_fds, __ATOMIC_RELAXED)) {
        w->polled_at = now;
        if (lr_hard_trylock(&rt->poller.polling)) {
            lr_poller_poll(&rt->poller, 0, &ready);
            lr_spin_unlock(&rt->poller.polling);
        }
    }
    ready_all_fresh(ready);
    lr_stack_trim(rt, w);
    lr_fiber_trim(w);
    return now;
}

/*
 * False when nothing in v's queue can have waited for long: an attempt keeps v from its queue for a microsecond or two, and for a
 * time slice when we lose the CPU in it. What v has published since says how fast its queue moves.
 */
static bool may_have_old(struct lr_look *l, const struct lr_worker *v, int64_t now)
{
    uint32_t queued = __atomic_load_n(&v->runq.n, __ATOMIC_RELAXED);
    uint32_t published = __atomic_load_n(&v->published, __ATOMIC_RELAXED);
    if (queued == 0)
        return false;
    uint32_t turns = published - l->was;
    int64_t time = now - l->since;
    if (turns == 0)
        return time >= STUCK_FOR;
    l->was = published;
    l->since = now;
    return time >= STUCK_FOR ? queued * (time / turns) >= STUCK_FOR : queued > turns;
}

static struct lr_task *steal(struct lr_rt *rt, struct lr_worker *w, int64_t now)
{
    w->seed = w->seed * 6364136223846793005u + 1442695040888963407u;
    unsigned start = (unsigned)(w->seed >> 33);
    unsigned n = lr_live(rt);
    for (unsigned i = 0; i < n; i++) {
        struct lr_worker *v = &rt->worker[(start + i) % n];
        uint32_t got;
        if (v == w || !may_have_old(&w->look[v->index], v, now))
            continue;
        struct lr_task *t = lr_runq_steal(&v->runq, &v->steal_lock, w->stamp, &got);
        if (!t)
            continue;
        lr_count(&w->n_stolen, got);
        ready_all_fresh(t->next);
        return t;
    }
    return NULL;
}

/* True when some other worker changed tasks since the last call, or has tasks in its queue. */
static bool others_are_busy(struct lr_rt *rt, struct lr_worker *w)
{
    bool busy = false;
    for (unsigned i = 0, n = lr_live(rt); i < n; i++) {
        struct lr_worker *v = &rt->worker[i];
        if (v == w)
            continue;
        uint32_t seen = __atomic_load_n(&v->published, __ATOMIC_RELAXED);
        busy = busy || seen != w->look[i].seen || __atomic_load_n(&v->runq.n, __ATOMIC_RELAXED) > 0;
        w->look[i].seen = seen;
    }
    return busy;
}

static bool has_work(struct lr_rt *rt, const struct lr_worker *w)
{
    if (__atomic_load_n(&rt->n_injected, __ATOMIC_RELAXED))
        return true;
    for (unsigned i = 0, n = lr_live(rt); i < n; i++) {
        const struct lr_worker *v = &rt->worker[i];
        if (v != w && __atomic_load_n(&v->runq.n, __ATOMIC_RELAXED) > 0)
            return true;
    }
    return false;
}

/* False when somebody pushed meanwhile. */
static bool go_deep(struct lr_rt *rt, const struct lr_worker *w)
{
    if (rt->max_workers == 1)
        return true;
    __atomic_store_n(&rt->watched, 0, __ATOMIC_SEQ_CST);
    lr_fence_heavy(); /* partner: lr_push_local */
    LR_CHAOS();
    if (!has_work(rt, w))
        return true;
    __atomic_store_n(&rt->watched, 1, __ATOMIC_SEQ_CST);
    return false;
}

static bool all_idle(struct lr_rt *rt)
{
    return __atomic_load_n(&rt->n_busy, __ATOMIC_ACQUIRE) == 0;
}

/* In the poller until something is ready, `until`, a kick, or the next timer. `alone`: what all_idle was when it decided. */
static void sleep_polling(struct lr_rt *rt, struct lr_worker *w, int64_t until, bool alone)
{
    struct lr_poller *p = &rt->poller;
    struct lr_task *ready = NULL;
    int64_t timer = lr_timers_next(rt);
    if (timer < until)
        until = timer;
    if (!lr_hard_trylock(&p->polling))
        return; /* a busy worker takes a look: soon over */
    __atomic_store_n(&p->until, until, __ATOMIC_RELAXED);
    __atomic_store_n(&p->asleep, 1, __ATOMIC_SEQ_CST);
    lr_fence_full(); /* partners: lr_inject, lr_timer_arm, lr_rt_stop */
    LR_CHAOS();
    if (!__atomic_load_n(&rt->n_injected, __ATOMIC_RELAXED) && lr_timers_next(rt) >= until &&
        all_idle(rt) <= alone && !__atomic_load_n(&rt->stopping, __ATOMIC_RELAXED) &&
        !__atomic_load_n(&rt->shared_wanted, __ATOMIC_RELAXED)) {
        lr_poller_poll(p, until, &ready);
        lr_count(&w->n_wakeups, 1);
    }
    __atomic_store_n(&p->asleep, 0, __ATOMIC_SEQ_CST);
    lr_spin_unlock(&p->polling);
    w->polled_at = lb_clock_mono();
    ready_all_fresh(ready);
}

static bool is_deadlock(struct lr_rt *rt)
{
    return all_idle(rt) && !rt->hosted && __atomic_load_n(&rt->n_foreign, __ATOMIC_ACQUIRE) == 0 &&
           lr_outer_count() == 0 && __atomic_load_n(&rt->poller.n_waiting, __ATOMIC_ACQUIRE) == 0 &&
           lr_timers_next(rt) == LADE_FOREVER && !has_work(rt, NULL) &&
           __atomic_load_n(&rt->n_fibers, __ATOMIC_ACQUIRE) > 0 &&
           !__atomic_load_n(&rt->stopping, __ATOMIC_ACQUIRE);
}

/* One look of the watcher; then it waits for as long as the situation allows. */
struct watch {
    int64_t since, interval;
};

static struct lr_task *watch_once(struct lr_rt *rt, struct lr_worker *w, struct watch *v)
{
    int64_t now = housekeep(rt, w);
    struct lr_task *t = lr_runq_pop(&w->runq);
    bool alone = all_idle(rt);
    if (t)
        return t;
    if (!alone) {
        t = steal(rt, w, now);
        if (t)
            return t;
        if (now - v->since < rt->spin_for) {
            for (int i = 0; i < 400 && !__atomic_load_n(&rt->n_injected, __ATOMIC_RELAXED); i++)
                lr_cpu_relax();
            return NULL;
        }
        if (others_are_busy(rt, w)) {
            sleep_polling(rt, w, now + v->interval, true);
            v->interval = LB_MIN(v->interval * 2, LOOK_MAX);
            return NULL;
        }
    }
    if (go_deep(rt, w)) {
        /* Not to sleep over what the program has just woken, from here or by another thread: look again. */
        bool again = is_deadlock(rt) && (lr_deadlock(rt), !is_deadlock(rt));
        if (!again)
            sleep_polling(rt, w, LADE_FOREVER, alone);
        __atomic_store_n(&rt->watched, 1, __ATOMIC_SEQ_CST);
        v->since = lb_clock_mono();
        v->interval = LOOK_FIRST;
    }
    return NULL;
}

static void sleep_until_called(struct lr_worker *w)
{
    while (!__atomic_load_n(&w->futex, __ATOMIC_ACQUIRE))
        lr_futex_wait(&w->futex, 0, LADE_FOREVER);
    lr_count(&w->n_wakeups, 1);
}

/*
 * Idle begins: as the watcher, or in the list of sleepers until it is the watcher. False for a spare that was parked: somebody needed
 * it again, and it is busy.
 */
static bool begin_idle(struct lr_rt *rt, struct lr_worker *w)
{
    lr_hard_lock(&rt->idle_lock);
    __atomic_store_n(&rt->n_busy, rt->n_busy - 1, __ATOMIC_RELEASE);
    bool sleeps = rt->has_watcher;
    bool parks = sleeps && w->index >= rt->n_workers;
    if (parks && __atomic_load_n(&rt->stopping, __ATOMIC_ACQUIRE)) { /* nobody calls it any more */
        __atomic_store_n(&rt->n_busy, rt->n_busy + 1, __ATOMIC_RELEASE);
        lr_spin_unlock(&rt->idle_lock);
        return false;
    }
    if (sleeps) {
        struct lr_worker **list = parks ? &rt->parked : &rt->idle;
        w->idle_next = *list;
        *list = w;
        __atomic_store_n(&w->futex, 0, __ATOMIC_RELAXED);
    } else {
        __atomic_store_n(&rt->has_watcher, true, __ATOMIC_RELAXED);
    }
    bool all = rt->n_busy == 0;
    lr_spin_unlock(&rt->idle_lock);
    if (!sleeps)
        return true;
    if (all) { /* the watcher may have to notice a deadlock, or sleep deeper */
        lr_fence_full();
        lr_kick(rt);
    }
    sleep_until_called(w);
    return !parks;
}

/* The watcher becomes busy: the next sleeper takes its place. */
static void end_idle(struct lr_rt *rt)
{
    lr_hard_lock(&rt->idle_lock);
    __atomic_store_n(&rt->n_busy, rt->n_busy + 1, __ATOMIC_RELEASE);
    struct lr_worker *heir = rt->idle;
    if (heir)
        rt->idle = heir->idle_next;
    __atomic_store_n(&rt->has_watcher, heir != NULL, __ATOMIC_SEQ_CST);
    lr_spin_unlock(&rt->idle_lock);
    if (heir) {
        __atomic_store_n(&heir->futex, 1, __ATOMIC_RELEASE);
        lr_futex_wake(&heir->futex);
    } else if (LB_UNLIKELY(rt->monitor != NULL)) {
        lr_monitor_wake(rt);
    }
}

/* The next task of a worker that has none; NULL when the runtime stops. */
static struct lr_task *find_task(struct lr_rt *rt, struct lr_worker *w)
{
    do {
        if (__atomic_load_n(&rt->stopping, __ATOMIC_ACQUIRE) && w->index >= rt->n_workers)
            return NULL;
        (void)housekeep(rt, w);
        struct lr_task *t = lr_runq_pop(&w->runq);
        if (t)
            return t;
    } while (!begin_idle(rt, w));
    struct lr_task *t = NULL;
    struct watch v = {.since = lb_clock_mono(), .interval = LOOK_FIRST};
    while (!t && !__atomic_load_n(&rt->stopping, __ATOMIC_ACQUIRE))
        t = watch_once(rt, w, &v);
    end_idle(rt);
    return t;
}

void lr_sched_run(struct lr_worker *w)
{
    struct lr_rt *rt = lr_runtime;
    for (;;) {
        struct lr_task *t = w->handoff;
        w->handoff = NULL;
        if (!t) {
            if (--w->countdown <= 0)
                (void)housekeep(rt, w);
            t = lr_runq_pop(&w->runq);
        }
        if (!t)
            t = find_task(rt, w);
        if (!t)
            return;
        if (LR_KIND(t) == LR_STEP) {
            lr_step_run(w, t);
            continue;
        }
        struct lr_fiber *f = (struct lr_fiber *)(void *)t;
        enter_fiber(w, f, lr_take_context(w, f));
    }
}
