/*
 * seam.h - the only way engine and stores block
 *
 * Locks, conditions, threads, sleeping and waiting for descriptors. Made from an OS thread each call blocks that thread; made from
 * a task of the runtime, a condition, a sleep and a wait for descriptors park the task instead. A mutex is an OS mutex for both: it
 * is held for moments only. A task that still holds one when it waits blocks its worker rather than park with it.
 * Deadlines are absolute, lb_clock_mono nanoseconds; LB_FOREVER waits without end.
 *
 * Thread safety: all, as the name of each says.
 */
#ifndef LADE_RT_SEAM_H
#define LADE_RT_SEAM_H

#include <lade/rt.h>

#include <pthread.h>

/* liblade calls these in liblade-rt: exported, under the version LADE_RT_PRIVATE. Nothing for programs. */
#pragma GCC visibility push(default)

struct lr_mutex {
    pthread_mutex_t os;
};

struct lr_cond {
    pthread_cond_t os;   /* on CLOCK_MONOTONIC; threads wait here */
    lade_waitlist tasks; /* and tasks here */
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

/*
 * A count that only grows, and everybody who waits for it to grow: raised once, by one system call, it wakes them all, and they need
 * no lock to go on. Who waits: look at the count, then at what it waits for, then wait unless the count has moved.
 * All zero is one that was never raised. Thread safety: all functions. The pulse may be gone only when neither lr_pulse_wait nor lr_pulse_raise is under way.
 */
struct lr_pulse {
    uint32_t count;
    lade_waitlist tasks;
};

uint32_t lr_pulse_count(const struct lr_pulse *p); /* what was written before a raise is seen */
void lr_pulse_raise(struct lr_pulse *p);
/* Waits until the count is not `seen`; may return without cause. */
void lr_pulse_wait(struct lr_pulse *p, uint32_t seen);

void lr_sleep_until(int64_t deadline);
/* Lets other tasks of the worker run; nothing for a plain thread or with a mutex in hand. */
void lr_yield_turn(void);

/* A thread of execution: an OS thread, in which signals are blocked, or a task of the runtime. */
struct lr_thread {
    pthread_t os;
    bool started;
    struct lr_seam_task *task; /* NULL for an OS thread */
};

/* `name` is for debuggers, cut at 15 characters. 0, or -LADE_ENOMEM when the system gives no more threads. */
LADE_CHECKED int lr_thread_start(struct lr_thread *t, const char *name, void (*fn)(void *),
                                 void *arg);
/* The same as a task; between lr_tasks_hold and lr_tasks_release. `name` is a static string. Never cancelled by the runtime. */
LADE_CHECKED int lr_thread_start_task(struct lr_thread *t, const char *name, void (*fn)(void *),
                                      void *arg);
/*
 * Sees to it that a runtime is there: starts one with the first hold, ends it with the last release, unless the program runs its
 * own. 0, -LADE_ENOMEM, -LADE_EIO.
 */
LADE_CHECKED int lr_tasks_hold(void);
void lr_tasks_release(void);
/*
 * For one that is past its last use of anything but its own stack: a thread is joined, which is soon over, a task is left to
 * itself, since waiting for it with a lock held could keep it from the CPU.
 */
void lr_thread_forget(struct lr_thread *t);
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

#pragma GCC visibility pop

#endif
