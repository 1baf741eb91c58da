#include "rt/seam.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/mem.h"
#include "rt/net.h"
#include "rt/task.h"

/* Mutex and condition calls fail only for misuse or corruption, so each failure is a broken program. */
#define MUST(call) LB_CHECK((call) == 0)

void lr_mutex_init(struct lr_mutex *m)
{
    MUST(pthread_mutex_init(&m->os, NULL));
}

void lr_mutex_fini(struct lr_mutex *m)
{
    MUST(pthread_mutex_destroy(&m->os));
}

/* The running task; NULL on plain threads. */
static struct lr_fiber *self_fiber(void)
{
    struct lr_task *t = lr_cur();
    return t && LR_KIND(t) == LR_FIBER ? (struct lr_fiber *)(void *)t : NULL;
}

void lr_mutex_lock(struct lr_mutex *m)
{
    MUST(pthread_mutex_lock(&m->os));
    struct lr_fiber *f = self_fiber();
    if (f)
        f->n_held++;
}

void lr_mutex_unlock(struct lr_mutex *m)
{
    struct lr_fiber *f = self_fiber();
    if (f)
        f->n_held--;
    MUST(pthread_mutex_unlock(&m->os));
}

void lr_cond_init(struct lr_cond *c)
{
    pthread_condattr_t attr;
    MUST(pthread_condattr_init(&attr));
    MUST(pthread_condattr_setclock(&attr, CLOCK_MONOTONIC));
    MUST(pthread_cond_init(&c->os, &attr));
    MUST(pthread_condattr_destroy(&attr));
    c->tasks = (lade_waitlist){0};
}

void lr_cond_fini(struct lr_cond *c)
{
    MUST(pthread_cond_destroy(&c->os));
}

void lr_cond_wake_one(struct lr_cond *c)
{
    lr_spin_lock(&c->tasks.lock);
    struct lr_wait *w = c->tasks.head ? lr_waitlist_claim(&c->tasks) : NULL;
    struct lr_task *t = w ? w->task : NULL;
    if (t)
        t->woke = LR_WOKE;
    lr_spin_unlock(&c->tasks.lock);
    if (t)
        lr_ready_fresh(t);
    else
        MUST(pthread_cond_signal(&c->os));
}

void lr_cond_wake_all(struct lr_cond *c)
{
    lr_spin_lock(&c->tasks.lock);
    struct lr_task *all = c->tasks.head ? lr_waitlist_claim_all(&c->tasks, LR_WOKE) : NULL;
    lr_spin_unlock(&c->tasks.lock);
    lr_ready_all(all);
    MUST(pthread_cond_broadcast(&c->os));
}

/* The mutex is let go only after the node is in the list, so a wake under the mutex cannot miss it. */
static bool wait_as_task(struct lr_cond *c, struct lr_mutex *m, struct lr_fiber *f,
                         int64_t deadline)
{
    struct lr_wait node;
    lr_spin_lock(&c->tasks.lock);
    lr_wait_begin(&node, &f->task, NULL);
    lr_waitlist_push(&c->tasks, &node);
    lr_spin_unlock(&c->tasks.lock);
    lr_mutex_unlock(m);
    enum lr_woke woke = lr_park(&f->task, node.ticket, deadline, LR_WAITS_COND, c);
    lr_spin_lock(&c->tasks.lock);
    lr_waitlist_remove(&c->tasks, &node);
    lr_spin_unlock(&c->tasks.lock);
    lr_mutex_lock(m);
    return woke != LR_WOKE_TIMEDOUT;
}

static struct timespec timespec_of(int64_t ns)
{
    return (struct timespec){.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
}

bool lr_cond_wait(struct lr_cond *c, struct lr_mutex *m, int64_t deadline)
{
    struct lr_fiber *f = self_fiber();
    if (f && f->n_held == 1)
        return wait_as_task(c, m, f, deadline);
    if (deadline == LB_FOREVER) {
        MUST(pthread_cond_wait(&c->os, &m->os));
        return true;
    }
    struct timespec ts = timespec_of(deadline > 0 ? deadline : 0);
    int rc = pthread_cond_timedwait(&c->os, &m->os, &ts);
    LB_CHECK(rc == 0 || rc == ETIMEDOUT);
    return rc == 0;
}

void lr_sleep_until(int64_t deadline)
{
    struct lr_fiber *f = self_fiber();
    if (f && f->n_held == 0 && lade_task_sleep_until(deadline) == 0)
        return;
    struct timespec ts = timespec_of(deadline > 0 ? deadline : 0);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
        ;
}

void lr_yield_turn(void)
{
    struct lr_fiber *f = self_fiber();
    if (f && f->n_held == 0)
        lr_yield(f);
}

struct start {
    void (*fn)(void *);
    void *arg;
    char name[16];
};

static void *run(void *p)
{
    struct start s = *(struct start *)p;
    lb_free(p);
    (void)pthread_setname_np(pthread_self(), s.name);
    s.fn(s.arg);
    return NULL;
}

int lr_thread_start(struct lr_thread *t, const char *name, void (*fn)(void *), void *arg)
{
    struct start *s = lb_malloc(sizeof(*s));
    if (!s)
        return -LADE_ENOMEM;
    *s = (struct start){.fn = fn, .arg = arg};
    (void)strncpy(s->name, name, sizeof(s->name) - 1);
    sigset_t all;
    sigset_t before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&t->os, NULL, run, s);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc != 0) {
        lb_free(s);
        return -LADE_ENOMEM;
    }
    t->started = true;
    return 0;
}

/* ---- tasks instead of threads ---- */

struct lr_seam_task {
    void (*fn)(void *);
    void *arg;
    lade_gate done;
    uint32_t holders; /* atomic: the task and who joins it */
};

static void drop(struct lr_seam_task *s)
{
    if (__atomic_fetch_sub(&s->holders, 1, __ATOMIC_ACQ_REL) == 1)
        lb_free(s);
}

static int run_as_task(void *p)
{
    struct lr_seam_task *s = p;
    struct lr_fiber *me = self_fiber();
    LB_CHECK(me);
    me->shielded = true; /* the engine ends its threads by its own means */
    s->fn(s->arg);
    (void)lade_gate_open(&s->done);
    drop(s);
    return 0;
}

int lr_thread_start_task(struct lr_thread *t, const char *name, void (*fn)(void *), void *arg)
{
    struct lr_seam_task *s = lb_calloc(1, sizeof(*s));
    if (!s)
        return -LADE_ENOMEM;
    s->fn = fn;
    s->arg = arg;
    s->holders = 2;
    struct lr_spawn spawn = {.coded = run_as_task, .arg = s, .name = name, .where = "worker"};
    int rc = lr_spawn(&spawn, NULL);
    if (rc < 0) {
        lb_free(s);
        return rc;
    }
    t->task = s;
    t->started = true;
    return 0;
}

#define SPARES 256 /* threads for handlers that block; <lade/lade.h> tells users */

static pthread_mutex_t hold_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned n_holds; /* guarded by: hold_lock */
static lade_rt *held;    /* guarded by: hold_lock; NULL when the program runs its own */

int lr_tasks_hold(void)
{
    int rc = 0;
    MUST(pthread_mutex_lock(&hold_lock));
    if (n_holds == 0) {
        /* Handlers are the users' code: more room than the default. It is address space, not memory. */
        lade_rt_opts o = {.stack_size = (size_t)256 * 1024, .spares = SPARES};
        rc = lade_rt_start(&o, &held);
        if (rc == -LADE_EBUSY)
            rc = 0;
    }
    if (rc == 0)
        n_holds++;
    MUST(pthread_mutex_unlock(&hold_lock));
    return rc;
}

void lr_tasks_release(void)
{
    MUST(pthread_mutex_lock(&hold_lock));
    if (--n_holds == 0 && held) {
        (void)lade_rt_stop(held, LB_FOREVER); /* all are joined: nothing is left to wait for */
        held = NULL;
    }
    MUST(pthread_mutex_unlock(&hold_lock));
}

void lr_thread_forget(struct lr_thread *t)
{
    if (!t->started || !t->task) {
        lr_thread_join(t);
        return;
    }
    drop(t->task);
    t->task = NULL;
    t->started = false;
}

void lr_thread_join(struct lr_thread *t)
{
    if (!t->started)
        return;
    if (t->task) {
        (void)lade_gate_wait(&t->task->done);
        drop(t->task);
        t->task = NULL;
        t->started = false;
        return;
    }
    MUST(pthread_join(t->os, NULL));
    t->started = false;
}

int lr_event_init(struct lr_event *e)
{
    e->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return e->fd < 0 ? -LADE_EIO : 0;
}

void lr_event_fini(struct lr_event *e)
{
    if (e->fd >= 0)
        (void)close(e->fd);
    e->fd = -1;
}

void lr_event_raise(struct lr_event *e)
{
    int saved = errno; /* signal handlers call this */
    uint64_t one = 1;
    while (write(e->fd, &one, sizeof(one)) < 0 && errno == EINTR)
        ; /* EAGAIN: the counter is at its top, so it is raised already */
    errno = saved;
}

void lr_event_clear(struct lr_event *e)
{
    uint64_t count;
    while (read(e->fd, &count, sizeof(count)) < 0 && errno == EINTR)
        ;
}

static unsigned ready_of(short revents)
{
    unsigned ready = 0;
    if (revents & POLLIN)
        ready |= LR_READ;
    if (revents & POLLOUT)
        ready |= LR_WRITE;
    if (revents & (POLLERR | POLLHUP | POLLNVAL))
        ready |= LR_ERROR;
    return ready;
}

static int poll_timeout(int64_t deadline)
{
    if (deadline == LB_FOREVER)
        return -1;
    int64_t now = lb_clock_mono();
    if (deadline <= now)
        return 0;
    int64_t ms = lb_ms_up(deadline - now);
    return ms > INT_MAX ? INT_MAX : (int)ms;
}

static int wait_fds_in_thread(struct lr_fd *fds, size_t n, int64_t deadline)
{
    struct pollfd p[8];
    LB_CHECK(n <= LB_ARRAY_LEN(p));
    for (size_t i = 0; i < n; i++) {
        short events =
            (short)((fds[i].want & LR_READ ? POLLIN : 0) | (fds[i].want & LR_WRITE ? POLLOUT : 0));
        p[i] = (struct pollfd){.fd = fds[i].fd, .events = events};
    }
    for (;;) {
        int rc = poll(p, n, poll_timeout(deadline));
        if (rc < 0 && errno == EINTR)
            continue;
        if (rc < 0)
            return -LADE_EIO;
        if (rc == 0 && deadline != LB_FOREVER && lb_clock_mono() < deadline)
            continue; /* the timeout was clamped */
        for (size_t i = 0; i < n; i++)
            fds[i].ready = ready_of(p[i].revents);
        return rc;
    }
}

/*
 * A task waits over the runtime's own epoll, where it may meet others that wait for the same descriptor. So it brings an epoll of its
 * own, with its descriptors in it, which is readable as soon as one of them is ready.
 */
static int gather(const struct lr_fd *fds, size_t n)
{
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    for (size_t i = 0; epoll >= 0 && i < n; i++) {
        struct epoll_event e = {.events = (fds[i].want & LR_READ ? EPOLLIN : 0U) |
                                          (fds[i].want & LR_WRITE ? EPOLLOUT : 0U)};
        if (fds[i].fd < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, fds[i].fd, &e) == 0)
            continue;
        (void)close(epoll);
        return -1;
    }
    return epoll;
}

int lr_wait_fds(struct lr_fd *fds, size_t n, int64_t deadline)
{
    struct lr_fiber *f = self_fiber();
    if (!f || f->n_held > 0)
        return wait_fds_in_thread(fds, n, deadline);
    int rc = wait_fds_in_thread(fds, n, 0);
    if (rc != 0 || lr_is_past(deadline))
        return rc;
    int epoll = gather(fds, n);
    lade_fd *all = NULL;
    if (epoll >= 0 && lr_fd_new(epoll, &all) < 0)
        (void)close(epoll);
    if (!all) /* no descriptor is left for it, or one is twice in fds: a spare worker goes on instead */
        return wait_fds_in_thread(fds, n, deadline);
    bool before = f->shielded;
    f->shielded = true;
    do {
        uint32_t seen = lr_fd_edges(all, LR_SIDE_READ);
        rc = wait_fds_in_thread(fds, n, 0);
        if (rc != 0)
            break;
        rc = lr_fd_wait(all, LR_SIDE_READ, seen, deadline);
        if (rc == 0 || rc == -LADE_ETIMEDOUT)
            rc = wait_fds_in_thread(fds, n, 0);
    } while (rc == 0 && !lr_is_past(deadline));
    f->shielded = before;
    (void)lade_fd_close(all);
    return rc < 0 ? -LADE_EIO : rc;
}
