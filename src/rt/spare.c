/*
 * spare.c - a thread that notices when every worker is stuck, and adds one
 *
 * A task that blocks its thread (sleep(3), a file, a foreign library) or computes for long keeps its worker. As long as one worker is
 * free it watches: it takes over the queues of the stuck ones, timers and descriptors (sched.c). When none is, the monitor adds a
 * spare worker, from the parked ones or as a new thread, up to `lade_rt_opts.spares`. With all of them in use, tasks wait for
 * the first worker that comes back.
 *
 *     stuck: the same task at two looks, without a change of tasks in between
 *     its thread used no CPU since the last look -> it blocks: a spare at once, and the next look soon
 *     it did                                     -> it hogs: a spare after HOG_AFTER, more would only share what CPU there is
 *
 * The monitor costs nothing while somebody watches: it sleeps until the last watcher becomes busy.
 */
#include "rt/spare.h"

#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "rt/stack.h"
#include "rt/task.h"

#define LOOK      (10 * LADE_MILLISECOND) /* while nobody watches */
#define LOOK_SOON LADE_MILLISECOND        /* after a spare was added for one that blocks */
#define HOG_AFTER (10 * LADE_MILLISECOND)
#define QUIET_MAX 10 /* looks that found a watcher, before it sleeps for good */

/* A worker at the last look. */
struct view {
    const struct lr_task *cur;
    uint32_t published;
    int64_t cpu;       /* ns that its thread had used; -1 = unknown */
    int64_t at, since; /* the last look, and the first that saw it in this task */
};

struct lr_monitor {
    pthread_t thread;
    uint32_t futex;     /* atomic: counts calls */
    uint32_t asleep;    /* atomic: until it is called */
    struct view view[]; /* rt->max_workers */
};

void lr_monitor_wake(struct lr_rt *rt)
{
    struct lr_monitor *m = rt->monitor;
    lr_fence_full(); /* partner: sleep_deep */
    if (!__atomic_load_n(&m->asleep, __ATOMIC_RELAXED) ||
        !__atomic_exchange_n(&m->asleep, 0, __ATOMIC_SEQ_CST))
        return;
    (void)__atomic_fetch_add(&m->futex, 1, __ATOMIC_SEQ_CST);
    lr_futex_wake(&m->futex);
}

static bool is_stopping(struct lr_rt *rt)
{
    return __atomic_load_n(&rt->stopping, __ATOMIC_SEQ_CST) != 0;
}

static bool is_watched(struct lr_rt *rt)
{
    return __atomic_load_n(&rt->has_watcher, __ATOMIC_SEQ_CST);
}

static void sleep_deep(struct lr_rt *rt)
{
    struct lr_monitor *m = rt->monitor;
    uint32_t seen = __atomic_load_n(&m->futex, __ATOMIC_SEQ_CST);
    __atomic_store_n(&m->asleep, 1, __ATOMIC_SEQ_CST);
    lr_fence_full(); /* partners: lr_monitor_wake, lr_monitor_stop */
    if (is_watched(rt) && !is_stopping(rt))
        lr_futex_wait(&m->futex, seen, LADE_FOREVER);
    __atomic_store_n(&m->asleep, 0, __ATOMIC_SEQ_CST);
}

static void sleep_for(struct lr_rt *rt, int64_t ns)
{
    struct lr_monitor *m = rt->monitor;
    uint32_t seen = __atomic_load_n(&m->futex, __ATOMIC_SEQ_CST);
    if (!is_stopping(rt))
        lr_futex_wait(&m->futex, seen, lb_clock_mono() + ns);
}

static int64_t cpu_of(pthread_t thread)
{
    clockid_t clock;
    struct timespec ts;
    if (pthread_getcpuclockid(thread, &clock) != 0 || clock_gettime(clock, &ts) != 0)
        return -1;
    return ts.tv_sec * LADE_SECOND + ts.tv_nsec;
}

enum state { FREE, STUCK_BLOCKED, STUCK_HOG };

static enum state look_at(const struct lr_worker *w, struct view *v, int64_t now)
{
    const struct lr_task *cur = __atomic_load_n(&w->cur, __ATOMIC_RELAXED);
    uint32_t published = __atomic_load_n(&w->published, __ATOMIC_RELAXED);
    int64_t cpu = cur ? cpu_of(w->thread) : -1;
    bool same = cur && cur == v->cur && published == v->published;
    bool blocks = same && cpu >= 0 && v->cpu >= 0 && (cpu - v->cpu) * 8 < now - v->at;
    *v = (struct view){
        .cur = cur, .published = published, .cpu = cpu, .at = now, .since = same ? v->since : now};
    if (blocks)
        return STUCK_BLOCKED;
    return same && now - v->since >= HOG_AFTER ? STUCK_HOG : FREE;
}

/* True when every worker that is not parked is stuck; *blocked when one of them does not use its CPU. */
static bool all_stuck(struct lr_rt *rt, bool *blocked)
{
    int64_t now = lb_clock_mono();
    uint32_t n_stuck = 0;
    *blocked = false;
    for (unsigned i = 0, n = lr_live(rt); i < n; i++) {
        enum state s = look_at(&rt->worker[i], &rt->monitor->view[i], now);
        n_stuck += s != FREE;
        *blocked = *blocked || s == STUCK_BLOCKED;
    }
    return !is_watched(rt) && n_stuck >= __atomic_load_n(&rt->n_busy, __ATOMIC_ACQUIRE);
}

static struct lr_worker *unpark(struct lr_rt *rt)
{
    lr_hard_lock(&rt->idle_lock);
    struct lr_worker *w = rt->parked;
    if (w) {
        rt->parked = w->idle_next;
        __atomic_store_n(&rt->n_busy, rt->n_busy + 1, __ATOMIC_RELEASE);
    }
    lr_spin_unlock(&rt->idle_lock);
    return w;
}

static void call(struct lr_worker *w)
{
    __atomic_store_n(&w->futex, 1, __ATOMIC_RELEASE);
    lr_futex_wake(&w->futex);
}

static void count_busy(struct lr_rt *rt, uint32_t by)
{
    lr_hard_lock(&rt->idle_lock);
    __atomic_store_n(&rt->n_busy, rt->n_busy + by, __ATOMIC_RELEASE);
    lr_spin_unlock(&rt->idle_lock);
}

/* A new thread; nothing when the bound is reached or the system gives none: the next look tries again. */
static void start_spare(struct lr_rt *rt)
{
    unsigned i = lr_live(rt);
    if (i == rt->max_workers)
        return;
    struct lr_worker *w = &rt->worker[i];
    /* Its pool of stacks needs address space of its own, so that taking one cannot fail. */
    if (lr_worker_init(rt, w, i) < 0 || lr_stack_reserve_workers(rt, i + 1) < 0)
        return;
    count_busy(rt, 1);
    __atomic_store_n(&rt->n_live, i + 1, __ATOMIC_RELEASE);
    if (lr_worker_start(w) == 0)
        return;
    __atomic_store_n(&rt->n_live, i, __ATOMIC_RELEASE);
    count_busy(rt, (uint32_t)-1);
}

static void *run_monitor(void *p)
{
    struct lr_rt *rt = p;
    int64_t pause = LOOK;
    int quiet = 0;
    (void)pthread_setname_np(pthread_self(), "lade-monitor");
    while (!is_stopping(rt)) {
        if (is_watched(rt) && ++quiet > QUIET_MAX) {
            sleep_deep(rt);
            quiet = 0;
            pause = LOOK;
        }
        sleep_for(rt, pause);
        if (is_watched(rt) || is_stopping(rt))
            continue;
        quiet = 0;
        bool blocked;
        bool stuck = all_stuck(rt, &blocked);
        pause = blocked ? LOOK_SOON : LOOK;
        if (!stuck)
            continue;
        struct lr_worker *w = unpark(rt);
        if (w)
            call(w);
        else
            start_spare(rt);
    }
    return NULL;
}

int lr_monitor_start(struct lr_rt *rt)
{
    if (rt->max_workers == rt->n_workers)
        return 0;
    struct lr_monitor *m = lb_calloc(1, sizeof(*m) + rt->max_workers * sizeof(m->view[0]));
    if (!m)
        return -LADE_ENOMEM;
    sigset_t all;
    sigset_t before;
    __atomic_store_n(&rt->monitor, m, __ATOMIC_SEQ_CST);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&m->thread, NULL, run_monitor, rt);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc == 0)
        return 0;
    __atomic_store_n(&rt->monitor, NULL, __ATOMIC_SEQ_CST);
    lb_free(m);
    return -LADE_ENOMEM;
}

void lr_monitor_stop(struct lr_rt *rt)
{
    struct lr_monitor *m = rt->monitor;
    if (!m)
        return;
    (void)__atomic_fetch_add(&m->futex, 1, __ATOMIC_SEQ_CST);
    lr_futex_wake(&m->futex);
    LB_CHECK(pthread_join(m->thread, NULL) == 0);
}

void lr_spares_join(struct lr_rt *rt)
{
    for (struct lr_worker *w; (w = unpark(rt));)
        call(w);
    for (unsigned i = rt->n_workers; i < lr_live(rt); i++)
        LB_CHECK(pthread_join(rt->worker[i].thread, NULL) == 0);
    lb_free(rt->monitor);
    rt->monitor = NULL;
}
