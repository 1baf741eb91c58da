/*
 * seam.h - the only way engine and stores block
 *
 * Locks, conditions, threads, sleeping and waiting for descriptors. Today each call blocks the OS thread that makes it;
 * the M:N runtime will give the same calls a second body that parks a task, and nothing above this file changes.
 * Deadlines are absolute, lb_clock_mono nanoseconds; LB_FOREVER waits without end.
 *
 * Thread safety: all, as the name of each says.
 */
#ifndef LADE_RT_SEAM_H
#define LADE_RT_SEAM_H

#include <lade/base.h>

#include <pthread.h>

struct lr_mutex {
    pthread_mutex_t os;
};

struct lr_cond {
    pthread_cond_t os; /* on CLOCK_MONOTONIC */
};

/* For a static mutex, which needs no init and no fini. */
#define LR_MUTEX_INIT             \
    {                             \
        PTHREAD_MUTEX_INITIALIZER \
    }

void lr_mutex_init(struct lr_mutex *m);
void lr_mutex_fini(struct lr_mutex *m);
void lr_mutex_lock(struct lr_mutex *m);
void lr_mutex_unlock(struct lr_mutex *m);

void lr_cond_init(struct lr_cond *c);
void lr_cond_fini(struct lr_cond *c);
void lr_cond_wake_one(struct lr_cond *c);
void lr_cond_wake_all(struct lr_cond *c);
/* Releases m while it waits. False when the deadline passed; may return true without cause. */
bool lr_cond_wait(struct lr_cond *c, struct lr_mutex *m, int64_t deadline);

void lr_sleep_until(int64_t deadline);

/* A thread of execution: an OS thread for LR_OS, later a task for LR_TASK. Signals are blocked in it. */
struct lr_thread {
    pthread_t os;
    bool started;
};

/* `name` is for debuggers, cut at 15 characters. 0, or -LADE_ENOMEM when the system gives no more threads. */
LADE_CHECKED int lr_thread_start(struct lr_thread *t, const char *name, void (*fn)(void *),
                                 void *arg);
/* Waits for fn to return; nothing when it was never started. */
void lr_thread_join(struct lr_thread *t);

/*
 * Something that one side raises and the other waits for, also beside descriptors: an eventfd.
 * Raising it twice before it is seen is the same as once.
 */
struct lr_event {
    int fd;
};

LADE_CHECKED int
lr_event_init(struct lr_event *e); /* 0, or -LADE_EIO when there are no descriptors left */
void lr_event_fini(struct lr_event *e);
void lr_event_raise(struct lr_event *e); /* async-signal-safe */
void lr_event_clear(struct lr_event *e);

enum lr_ready {
    LR_READ = 1,
    LR_WRITE = 2,
    LR_ERROR = 4 /* hang-up or error; read or write tells which */
};

struct lr_fd {
    int fd;         /* < 0 is ignored */
    unsigned want;  /* LR_READ | LR_WRITE */
    unsigned ready; /* out */
};

/* Waits until one of n (at most 8) is ready. Returns how many are, 0 at the deadline, -LADE_EIO. Retries EINTR. */
int lr_wait_fds(struct lr_fd *fds, size_t n, int64_t deadline);

#endif
