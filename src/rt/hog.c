/*
 * hog.c - a thread that reports tasks which keep their worker
 *
 * It looks at each worker four times in `hog_after`. The same task as before, and no change of tasks published in between: it has
 * run all the time. The report comes when that has lasted hog_after, and again each time it has doubled, so a task that never ends is
 * no flood. Nothing is done about it here: spare.c and sched.c see to the others.
 */
#include "rt/spare.h"

#include <inttypes.h>
#include <signal.h>

#include "base/clock.h"
#include "base/mem.h"
#include "rt/task.h"

struct view {
    const struct lr_task *cur;
    uint32_t published;
    int64_t since, report_at; /* the first look that saw it there; how long until the next report */
};

struct lr_hogwatch {
    pthread_t thread;
    uint32_t futex;     /* atomic: 1 = end */
    struct view view[]; /* rt->max_workers */
};

/*
 * The names of a task may change under us; descriptors are never freed. Who it is was read without order, so that a switch of tasks costs
 * none: what its maker wrote is ordered here, by the list that its making was published with.
 */
__attribute__((noinline, no_sanitize("thread"))) static void
report(struct lr_rt *rt, const struct lr_task *t, int64_t ns, unsigned worker)
{
    (void)lr_fiber_all();
    if (LR_KIND(t) != LR_FIBER)
        return;
    const struct lr_fiber *f = (const struct lr_fiber *)(const void *)t;
    lade_rt_hog hog = {.name = f->name, .where = f->where, .ns = ns, .worker = worker};
    lr_count(&rt->n_hogs, 1);
    if (rt->on_hog)
        rt->on_hog(rt->deadlock_ctx, &hog);
    else
        (void)fprintf(stderr,
                      "lade: task %s started at %s keeps worker %u for %" PRId64
                      " ms without a wait: lade_blocking_run, lade_task_yield, or spares\n",
                      hog.name ? hog.name : "-", hog.where ? hog.where : "?", worker,
                      ns / LADE_MILLISECOND);
}

static void look(struct lr_rt *rt, unsigned i)
{
    const struct lr_worker *w = &rt->worker[i];
    struct view *v = &rt->hogwatch->view[i];
    const struct lr_task *cur = __atomic_load_n(&w->cur, __ATOMIC_RELAXED);
    uint32_t published = __atomic_load_n(&w->published, __ATOMIC_RELAXED);
    int64_t now = lb_clock_mono();
    if (!cur || cur != v->cur || published != v->published) {
        *v = (struct view){
            .cur = cur, .published = published, .since = now, .report_at = rt->hog_after};
        return;
    }
    if (now - v->since < v->report_at)
        return;
    v->report_at = 2 * (now - v->since);
    report(rt, cur, now - v->since, i);
}

static void *run_hogwatch(void *p)
{
    struct lr_rt *rt = p;
    struct lr_hogwatch *h = rt->hogwatch;
    (void)pthread_setname_np(pthread_self(), "lade-hogwatch");
    while (!__atomic_load_n(&h->futex, __ATOMIC_ACQUIRE)) {
        for (unsigned i = 0, n = lr_live(rt); i < n; i++)
            look(rt, i);
        lr_futex_wait(&h->futex, 0, lb_clock_mono() + rt->hog_after / 4);
    }
    return NULL;
}

int lr_hogwatch_start(struct lr_rt *rt)
{
    if (rt->hog_after == 0)
        return 0;
    struct lr_hogwatch *h = lb_calloc(1, sizeof(*h) + rt->max_workers * sizeof(h->view[0]));
    if (!h)
        return -LADE_ENOMEM;
    sigset_t all;
    sigset_t before;
    rt->hogwatch = h;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&h->thread, NULL, run_hogwatch, rt);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc == 0)
        return 0;
    rt->hogwatch = NULL;
    lb_free(h);
    return -LADE_ENOMEM;
}

void lr_hogwatch_stop(struct lr_rt *rt)
{
    struct lr_hogwatch *h = rt->hogwatch;
    if (!h)
        return;
    __atomic_store_n(&h->futex, 1, __ATOMIC_RELEASE);
    lr_futex_wake(&h->futex);
    LB_CHECK(pthread_join(h->thread, NULL) == 0);
    rt->hogwatch = NULL;
    lb_free(h);
}
