#include "rt/seam.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/mem.h"

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

void lr_mutex_lock(struct lr_mutex *m)
{
    MUST(pthread_mutex_lock(&m->os));
}

void lr_mutex_unlock(struct lr_mutex *m)
{
    MUST(pthread_mutex_unlock(&m->os));
}

void lr_cond_init(struct lr_cond *c)
{
    pthread_condattr_t attr;
    MUST(pthread_condattr_init(&attr));
    MUST(pthread_condattr_setclock(&attr, CLOCK_MONOTONIC));
    MUST(pthread_cond_init(&c->os, &attr));
    MUST(pthread_condattr_destroy(&attr));
}

void lr_cond_fini(struct lr_cond *c)
{
    MUST(pthread_cond_destroy(&c->os));
}

void lr_cond_wake_one(struct lr_cond *c)
{
    MUST(pthread_cond_signal(&c->os));
}

void lr_cond_wake_all(struct lr_cond *c)
{
    MUST(pthread_cond_broadcast(&c->os));
}

static struct timespec timespec_of(int64_t ns)
{
    return (struct timespec){.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
}

bool lr_cond_wait(struct lr_cond *c, struct lr_mutex *m, int64_t deadline)
{
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
    struct timespec ts = timespec_of(deadline > 0 ? deadline : 0);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
        ;
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

void lr_thread_join(struct lr_thread *t)
{
    if (!t->started)
        return;
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

int lr_wait_fds(struct lr_fd *fds, size_t n, int64_t deadline)
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
