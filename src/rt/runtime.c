/* runtime.c - starting and stopping: workers, the first task, the end of the others */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/single_threaded.h>

#include "base/clock.h"
#include "base/mem.h"
#include "rt/blocking.h"
#include "rt/ctx.h"
#include "rt/spare.h"
#include "rt/stack.h"
#include "rt/task.h"

#define WORKERS_MAX  256
#define SPARES_MAX   1024
/*
 * Waking a sleeping worker costs about as much. With spares the program is one whose tasks may block, beside threads of its own
 * that need the CPU more.
 */
#define SPIN_FOR     100000
#define STACK_MIN    ((size_t)16 * 1024)
#define STACK_MAX    ((size_t)1024 * 1024 * 1024)
#define GUARD_MIN    ((size_t)64 * 1024) /* below each stack: stack.h */
#define GUARD_MAX    ((size_t)1024 * 1024)
#define BLOCKING_MAX 4096
#define HOG_MIN      (10 * LADE_MILLISECOND)
#define PAGE         4096

static pthread_mutex_t begin_lock = PTHREAD_MUTEX_INITIALIZER; /* one at a time */

static unsigned count_cpus(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof(set), &set) != 0)
        return 1;
    int n = CPU_COUNT(&set);
    return n < 1 ? 1 : n > WORKERS_MAX ? WORKERS_MAX : (unsigned)n;
}

static void *aligned_zero(size_t size)
{
    size_t rounded = (size + 127) & ~(size_t)63;
    char *p = lb_calloc(1, rounded + 64);
    if (!p)
        return NULL;
    char *a = p + 64 - ((uintptr_t)p & 63); /* at least one byte ahead, for the offset */
    a[-1] = (char)(a - p);
    return a;
}

static void aligned_free(void *p)
{
    if (p)
        lb_free((char *)p - ((unsigned char *)p)[-1]);
}

static void free_runtime(struct lr_rt *rt)
{
    lr_pool_stop(rt);
    lr_poller_fini(&rt->poller);
    for (unsigned i = 0; rt->worker && i < rt->max_workers; i++)
        lb_free(rt->worker[i].look);
    aligned_free(rt->worker);
    aligned_free(rt->shard);
    aligned_free(rt);
}

static bool is_valid(const lade_rt_opts *o)
{
    return o->workers <= WORKERS_MAX && o->blocking_max <= BLOCKING_MAX &&
           o->spares <= SPARES_MAX && (o->hog_after == 0 || o->hog_after >= HOG_MIN) &&
           (o->stack_size == 0 || (o->stack_size >= STACK_MIN && o->stack_size <= STACK_MAX &&
                                   o->stack_size % PAGE == 0));
}

int lr_worker_init(struct lr_rt *rt, struct lr_worker *w, unsigned index)
{
    w->index = index;
    w->runq.alone = rt->max_workers == 1;
    w->seed = (uint64_t)lb_clock_mono() * (2 * index + 3) | 1;
    w->stamp = lr_stamp(lb_clock_mono());
    w->kept_at = lb_clock_mono();
    w->countdown = w->allotted = 1;
    if (!w->look) /* not from an attempt that failed later on */
        w->look = lb_calloc(rt->max_workers, sizeof(*w->look));
    return w->look ? 0 : -LADE_ENOMEM;
}

static int make_workers(struct lr_rt *rt)
{
    rt->worker = aligned_zero(rt->max_workers * sizeof(*rt->worker));
    rt->shard = aligned_zero(rt->n_workers * sizeof(*rt->shard));
    if (!rt->worker || !rt->shard)
        return -LADE_ENOMEM;
    for (unsigned i = 0; i < rt->n_workers; i++) {
        rt->shard[i].next_at = LADE_FOREVER;
        if (lr_worker_init(rt, &rt->worker[i], i) < 0)
            return -LADE_ENOMEM;
    }
    return 0;
}

static int make_runtime(const lade_rt_opts *opts, bool hosted, struct lr_rt **out)
{
    static const lade_rt_opts none;
    const lade_rt_opts *o = opts ? opts : &none;
    if (!is_valid(o))
        return -LADE_EINVAL;
    if (!lr_ctx_check())
        return -LADE_EUNSUPPORTED;
    lr_fence_setup(getenv("LADE_RT_NO_MEMBARRIER") != NULL); /* NOLINT(concurrency-mt-unsafe) */
    struct lr_rt *rt = aligned_zero(sizeof(*rt));
    if (!rt)
        return -LADE_ENOMEM;
    rt->poller.epoll = rt->poller.event = -1;
    rt->n_workers = o->workers ? o->workers : count_cpus();
    rt->max_workers = rt->n_workers + o->spares;
    rt->n_live = rt->n_busy = rt->n_workers;
    rt->stack_size = o->stack_size ? o->stack_size : (size_t)64 * 1024;
    rt->guard_size = LB_MAX(GUARD_MIN, LB_MIN(rt->stack_size, GUARD_MAX));
    rt->hosted = hosted;
    rt->spin_for = o->spares > 0 ? 0 : SPIN_FOR;
    rt->on_deadlock = o->on_deadlock;
    rt->deadlock_ctx = o->ctx;
    rt->hog_after = o->hog_after;
    rt->on_hog = o->on_hog;
    rt->watched = 1;
    (void)strncpy(rt->name, o->name ? o->name : "lade", sizeof(rt->name) - 1);
    int rc = make_workers(rt);
    if (rc == 0)
        rc = lr_poller_init(&rt->poller);
    if (rc == 0)
        rc = lr_pool_start(rt, o->blocking_max ? o->blocking_max : 64);
    if (rc < 0) {
        free_runtime(rt);
        return rc;
    }
    *out = rt;
    return 0;
}

/* ---- workers ---- */

static void note_stack(struct lr_worker *w)
{
#if LR_ASAN
    pthread_attr_t attr;
    void *low;
    if (pthread_getattr_np(pthread_self(), &attr) != 0)
        return;
    (void)pthread_attr_getstack(&attr, &low, &w->sched_asan_size);
    w->sched_asan_low = low;
    (void)pthread_attr_destroy(&attr);
#else
    (void)w;
#endif
}

static void run_worker(struct lr_worker *w)
{
    lr_self.worker = w;
    lr_self.cur = NULL;
    note_stack(w);
    lr_crash_enter(w);
    lr_sched_run(w);
    lr_crash_leave(w);
    lr_self.worker = NULL;
    lr_self.solo = 0;
}

static void *begin_thread(void *p)
{
    struct lr_worker *w = p;
    char name[16];
    (void)snprintf(name, sizeof(name), "%s-rt-%u", lr_runtime->name, w->index);
    (void)pthread_setname_np(pthread_self(), name);
    run_worker(w);
    return NULL;
}

static void tell_stop(struct lr_rt *rt)
{
    __atomic_store_n(&rt->stopping, 1, __ATOMIC_SEQ_CST);
    lr_fence_full(); /* partner: sleep_polling */
    lr_kick(rt);
}

static void join_threads(struct lr_rt *rt, unsigned from, unsigned to)
{
    for (unsigned i = from; i < to; i++)
        LB_CHECK(pthread_join(rt->worker[i].thread, NULL) == 0);
}

/* Signals go to the program's own threads. */
int lr_worker_start(struct lr_worker *w)
{
    sigset_t all;
    sigset_t before;
    (void)sigfillset(&all);
    (void)sigdelset(&all, SIGSEGV);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&w->thread, NULL, begin_thread, w);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc == 0 ? 0 : -LADE_ENOMEM;
}

static int start_threads(struct lr_rt *rt, unsigned from)
{
    unsigned i = from;
    if (from > 0)
        rt->worker[0].thread = pthread_self();
    while (i < rt->n_workers && lr_worker_start(&rt->worker[i]) == 0)
        i++;
    if (i == rt->n_workers && lr_hogwatch_start(rt) == 0) {
        if (lr_monitor_start(rt) == 0)
            return 0;
        lr_hogwatch_stop(rt);
    }
    tell_stop(rt);
    join_threads(rt, from, i);
    return -LADE_ENOMEM;
}

/* After tell_stop: waits for all threads but the caller's. */
static void join_all(struct lr_rt *rt, unsigned from)
{
    lr_hogwatch_stop(rt);
    lr_monitor_stop(rt);
    join_threads(rt, from, rt->n_workers);
    lr_spares_join(rt);
}

/* Makes it the process's runtime and starts its threads from number `from` on. */
static int begin(const lade_rt_opts *opts, bool hosted, unsigned from, struct lr_rt **out)
{
    LB_CHECK(pthread_mutex_lock(&begin_lock) == 0);
    int rc = lr_rt_get() ? -LADE_EBUSY : 0;
    struct lr_rt *rt = NULL;
    bool single = __libc_single_threaded;
    if (rc == 0)
        rc = make_runtime(opts, hosted, &rt);
    if (rc == 0) {
        if (from == 1 && rt->max_workers == 1 && single && !LR_TSAN) {
            lr_self.solo = 1;
            __atomic_store_n(&lr_solo_on, 1, __ATOMIC_SEQ_CST);
        }
        __atomic_store_n(&lr_runtime, rt, __ATOMIC_SEQ_CST);
        lr_crash_start(rt);
        rc = start_threads(rt, from);
        if (rc < 0) {
            lr_crash_stop(rt);
            lr_self.solo = 0;
            __atomic_store_n(&lr_solo_on, 0, __ATOMIC_SEQ_CST);
            __atomic_store_n(&lr_runtime, NULL, __ATOMIC_SEQ_CST);
            free_runtime(rt);
        }
    }
    LB_CHECK(pthread_mutex_unlock(&begin_lock) == 0);
    *out = rt;
    return rc;
}

/* Descriptors and stacks back; the workers have ended. */
static void end(struct lr_rt *rt)
{
    LB_CHECK(pthread_mutex_lock(&begin_lock) == 0);
    lr_pool_stop(rt);
    for (unsigned i = 0; i < lr_live(rt); i++)
        lr_fiber_give_back(&rt->worker[i]);
    lr_crash_stop(rt);
    lr_stack_free_all(rt);
    __atomic_store_n(&lr_solo_on, 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&lr_runtime, NULL, __ATOMIC_SEQ_CST);
    free_runtime(rt);
    LB_CHECK(pthread_mutex_unlock(&begin_lock) == 0);
}

/* ---- the first task ---- */

struct first {
    int (*fn)(void *);
    void *arg;
    int rc;
    lade_taskgroup group; /* its own, so that it can wait for the root group */
};

static int run_first(void *p)
{
    struct first *f = p;
    struct lr_rt *rt = lr_runtime;
    f->rc = f->fn(f->arg);
    lade_taskgroup_cancel(&rt->root);
    struct lr_fiber *me = (struct lr_fiber *)(void *)lr_cur();
    me->shielded = true;
    (void)lade_taskgroup_wait_until(&rt->root, LADE_FOREVER);
    tell_stop(rt);
    return 0;
}

int lade_rt_run(const lade_rt_opts *opts, int (*fn)(void *), void *arg)
{
    if (!fn)
        return -LADE_EINVAL;
    if (lr_worker())
        return -LADE_EBUSY;
    struct lr_rt *rt;
    int rc = begin(opts, false, 1, &rt);
    if (rc < 0)
        return rc;
    struct first f = {.fn = fn, .arg = arg};
    struct lr_spawn s = {
        .group = &f.group, .coded = run_first, .arg = &f, .name = "main", .where = "lade_rt_run"};
    lr_self.worker = &rt->worker[0];
    rc = lr_spawn(&s, NULL);
    if (rc < 0)
        tell_stop(rt);
    run_worker(&rt->worker[0]);
    join_all(rt, 1);
    end(rt);
    return rc < 0 ? rc : f.rc;
}

int lade_rt_start(const lade_rt_opts *opts, lade_rt **out)
{
    if (!out)
        return -LADE_EINVAL;
    struct lr_rt *rt;
    int rc = begin(opts, true, 0, &rt);
    if (rc == 0)
        *out = (lade_rt *)rt;
    return rc;
}

int lade_rt_stop(lade_rt *r, int64_t until)
{
    struct lr_rt *rt = (struct lr_rt *)r;
    if (!rt || rt != lr_rt_get())
        return -LADE_EINVAL;
    if (lr_worker() || !rt->hosted)
        return -LADE_EPERM;
    lade_taskgroup_cancel(&rt->root);
    int rc = lade_taskgroup_wait_until(&rt->root, until);
    if (rc == -LADE_ETIMEDOUT)
        return rc;
    tell_stop(rt);
    join_all(rt, 0);
    end(rt);
    return 0;
}
