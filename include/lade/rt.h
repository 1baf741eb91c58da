/*
 * rt.h - lade's concurrency runtime: tasks, channels, locks, timers and sockets on a few OS threads
 *
 * A task is a function that runs as if it had a thread of its own: it may block in any call below, and only the task
 * waits. Thousands to millions of tasks share `workers` OS threads. A step is a task without a stack, for those that do
 * nothing but wait: 40 bytes each, and what you put beside it.
 *
 *     static void child(void *arg) { lade_chan_send(arg, &(uint64_t){42}); }
 *     static int start(void *arg)
 *     {
 *         lade_chan *c = lade_chan_new(LADE_CHAN_MPMC, sizeof(uint64_t), 0);
 *         lade_task_start(NULL, child, c);
 *         uint64_t v;
 *         lade_chan_recv(c, &v);
 *         ...
 *     }
 *     int main(void) { return lade_rt_run(NULL, start, NULL); }
 *
 * Times are absolute nanoseconds of lade_clock_now(); LADE_FOREVER never comes and 0 does not wait. Results: 0 done;
 * positive where the call returns a count, a position or a named outcome; negative a failure -LADE_E... of base.h or of the
 * list below. errno is never part of a result. "Parks" means: the calling task may wait here and continue on another OS
 * thread, so no errno and no thread-local variable of the program may be carried across the call.
 *
 * Plain OS threads may use channels, select, locks, sleep, sockets and bridges too: then the thread waits. What needs a task says
 * so and gives -LADE_EPERM elsewhere; steps and timer functions may not wait at all and get -LADE_EPERM where they would.
 *
 * Each function says whether it waits, what it returns, who owns what it is given, and the units of its times. NULL where an
 * object is needed is -LADE_EINVAL.
 *
 * Cancelling is a mark on a task. A call that would have to wait returns -LADE_ECANCELED in a marked task, now and ever
 * after; calls that need not wait still work, so cleaning up does.
 */
#ifndef LADE_RT_H
#define LADE_RT_H

#include <lade/base.h>

#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LADE_FOREVER INT64_MAX

/* Failures of the runtime beside those of base.h. The values are stable. */
enum lade_rt_errno {
    LADE_ECANCELED = 4101, /* the task was cancelled while it waited, or had been before */
    LADE_ETIMEDOUT = 4102, /* the deadline passed */
    LADE_EAGAIN = 4103,    /* would have to wait, and the call does not */
    LADE_EPERM = 4104,     /* not allowed here: not in a task, or not the owner */
    LADE_EDEADLK = 4105    /* would wait for itself for ever */
};

/* ---- the runtime: at most one in a process ---- */

typedef struct lade_rt lade_rt;

/* What on_hog is told: for the time of the call. */
typedef struct lade_rt_hog {
    const char *name, *where; /* of the task, and where it was started; NULL = none */
    int64_t ns;               /* since it was first seen there */
    unsigned worker;
} lade_rt_hog;

typedef struct lade_rt_opts {
    unsigned workers; /* OS threads that run tasks; 0 = CPUs this process may use; at most 256 */
    size_t
        stack_size; /* bytes of address space for a task's stack; 0 = 64 KiB; whole pages. It does not
                          grow: who needs more ends the process with a line that says so. A guard of the same size lies below it (64 KiB
                          to 1 MiB); code with arrays beyond that is to be built with -fstack-clash-protection */
    unsigned blocking_max; /* threads of the blocking pool; 0 = 64 */
    const char *name;      /* for the names of the threads, borrowed while it runs; NULL = "lade" */
    /*
     * All tasks wait for each other and nothing else can wake them. NULL: print them and exit(2). Else it is called on a worker,
     * outside tasks: it may not wait, and may do all that does not - lade_rt_dump, open a gate, post, send without waiting, cancel
     * a task, arm a timer, start a task, or end the process. When it returns, whatever it has made ready runs. When it has made
     * nothing ready the runtime sleeps until another thread does; it may be called again for the same deadlock.
     */
    void (*on_deadlock)(void *ctx);
    void *ctx;
    /*
     * Most workers to add, one by one, while all are stuck in tasks that block their thread or compute for long; at most 1024.
     * 0 = none: such tasks then keep their workers from all others.
     */
    unsigned spares;
    /*
     * A task that has kept its worker for so many ns without a wait is reported: by on_hog, on a thread of the runtime's own, or with
     * NULL as a line on stderr; again whenever the time has doubled. 0 = off. Else at least 10 ms, and the thread looks four
     * times in that time, also when all is idle. Names of tasks must then stay until the runtime ends, as string literals do.
     */
    int64_t hog_after;
    void (*on_hog)(void *ctx, const struct lade_rt_hog *hog);
} lade_rt_opts;

/*
 * Runs fn in a task, with the calling thread as the first worker. When fn returns, all other tasks are cancelled and
 * waited for.
 * Waits: until all tasks have ended, with the thread; not from inside a task.
 * Returns: what fn returned; -LADE_ENOMEM, -LADE_EINVAL (options, fn NULL), -LADE_EBUSY when one runs already,
 *     -LADE_EUNSUPPORTED when this process has a shadow stack.
 * Owner: opts is copied (its name is borrowed until the end), arg is fn's.
 */
LADE_API int lade_rt_run(const lade_rt_opts *opts, int (*fn)(void *), void *arg);

/*
 * The same for hosts that keep their thread: workers are new threads.
 * Waits: never.
 * Returns: 0 and *out; failures as lade_rt_run.
 * Owner: *out is the caller's until lade_rt_stop. opts as lade_rt_run.
 */
LADE_CHECKED LADE_API int lade_rt_start(const lade_rt_opts *opts, lade_rt **out);

/*
 * Cancels all tasks, waits for their end, ends the workers. Only from a plain thread.
 * Waits: for the tasks, with the thread.
 * Returns: 0, and rt is gone; -LADE_ETIMEDOUT: tasks are left, it runs on and may be stopped again; -LADE_EPERM in a
 *     task or for lade_rt_run's; -LADE_EINVAL when rt does not run.
 * Owner: rt ends with 0.
 * Units: `until` is a deadline in ns.
 */
LADE_API int lade_rt_stop(lade_rt *rt, int64_t until);

typedef struct lade_rt_stats {
    unsigned workers;  /* with the spares that were ever needed */
    uint64_t tasks;    /* alive now, steps included */
    uint64_t started;  /* since the start */
    uint64_t switches; /* tasks that were given a worker */
    uint64_t stolen;   /* tasks moved to another worker */
    uint64_t wakeups;  /* times a worker came back from sleep */
    uint64_t stacks;   /* stacks in use or kept */
    uint64_t timers;   /* armed now */
    uint64_t fds;      /* open now */
    uint64_t hogs;     /* tasks reported for hog_after */
} lade_rt_stats;

/*
 * All zero when no runtime runs. Counts of other workers may be some operations old.
 * Waits: never.
 * Owner: *out is the caller's; NULL is nothing.
 */
LADE_API void lade_rt_stats_get(lade_rt_stats *out);

/*
 * Every task, its name, where it was started, what it waits for and, when it waits, where it is. From any thread; does
 * not stop them.
 * Waits: as writing to the file does.
 * Owner: out is the caller's; NULL is nothing.
 */
LADE_API void lade_rt_dump(FILE *out);

/* ---- tasks ---- */

/* Names a task; may be kept after its end. Values, not owned by anyone. */
typedef struct lade_task {
    void *at;
    uint64_t serial;
} lade_task;

/*
 * Starts fn(arg) as a task of the root group, from a task, a step or a plain thread. Called by the macro, with the
 * place.
 * Waits: may yield when very many tasks wait to begin.
 * Returns: 0; -LADE_ENOMEM; -LADE_EINVAL (fn NULL); -LADE_EPERM when no runtime runs; -LADE_ECANCELED when it is
 *     ending.
 * Owner: *out is a value, out may be NULL; arg is fn's; `where` must stay, as a string literal does.
 */
#define lade_task_start(out, fn, arg) lade_task_start_at(out, fn, arg, LADE_RT_HERE)
LADE_API int lade_task_start_at(lade_task *out, void (*fn)(void *), void *arg, const char *where);

/*
 * The running task.
 * Waits: never.
 * Returns: it, or {NULL, 0} outside tasks and in steps.
 */
LADE_API lade_task lade_task_self(void);

/*
 * Lets others run. Nothing outside tasks.
 * Waits: parks, at the end of the queue.
 */
LADE_API void lade_task_yield(void);

/*
 * Sleeps; a time that has passed is a yield.
 * Waits: parks.
 * Returns: 0 when the time has come; -LADE_ECANCELED; -LADE_EPERM in steps and timer functions.
 * Units: `at` is a time in ns.
 */
LADE_API int lade_task_sleep_until(int64_t at);

/*
 * Marks the task, and wakes it if it waits.
 * Waits: never.
 * Returns: 0, also when it has ended already or was marked before.
 */
LADE_API int lade_task_cancel(lade_task task);

/*
 * Whether the running task is marked.
 * Waits: never.
 * Returns: 1 when it is; 0 otherwise and outside tasks.
 */
LADE_API int lade_task_cancelled(void);

/*
 * Names the running task, for dumps.
 * Waits: never.
 * Owner: the name is borrowed for as long as the task lives.
 */
LADE_API void lade_task_name(const char *name);

/* ---- task groups: the only way to wait for tasks ---- */

struct lr_wait;
struct lr_task;

/* Waiters of any object below. All zero is empty. */
typedef struct lade_waitlist {
    struct lr_wait *head, *tail;
    uint32_t lock;
    uint32_t n;
} lade_waitlist;

/* All zero is an empty group; it must be waited for to the end before its memory goes. */
typedef struct lade_taskgroup {
    lade_waitlist waiters;
    struct lr_task *members;
    uint64_t n;
    int failed; /* the first code < 0 */
    bool cancelled;
} lade_taskgroup;

typedef struct lade_task_attr {
    const char *name; /* as lade_task_name */
} lade_task_attr;

#define LADE_RT_STRING2(x) #x
#define LADE_RT_STRING(x)  LADE_RT_STRING2(x)
#define LADE_RT_HERE       __FILE__ ":" LADE_RT_STRING(__LINE__)

/*
 * Makes it empty, as all zero does.
 * Waits: never.
 * Owner: g is the caller's memory; it stays until it was waited for to the end.
 */
LADE_API void lade_taskgroup_init(lade_taskgroup *g);

/*
 * Starts fn(arg) as a member. Called by the macro, with the place.
 * Waits: may yield when very many tasks wait to begin.
 * Returns: 0; -LADE_ECANCELED when the group is cancelled; -LADE_ENOMEM; -LADE_EPERM without a runtime; -LADE_EINVAL.
 * Owner: attr is copied and may be NULL (its name is borrowed); arg is fn's; g as lade_taskgroup_init.
 */
#define lade_taskgroup_start(g, attr, fn, arg) \
    lade_taskgroup_start_at(g, attr, fn, arg, LADE_RT_HERE)
LADE_API int lade_taskgroup_start_at(lade_taskgroup *g, const lade_task_attr *attr,
                                     int (*fn)(void *), void *arg, const char *where);

/*
 * Waits for the end of all members. When the caller is cancelled the group is cancelled too, and the call still
 * returns only after all members have.
 * Waits: parks; from a plain thread, that thread waits.
 * Returns: 0, or the first code < 0 that a member returned; -LADE_ETIMEDOUT: members are left; -LADE_ECANCELED;
 *     -LADE_EPERM in steps and timer functions; -LADE_EINVAL.
 * Owner: g stays the caller's.
 * Units: `until` is a deadline in ns.
 */
LADE_API int lade_taskgroup_wait_until(lade_taskgroup *g, int64_t until);

/*
 * Cancels every member, and every later start. Members that wait for groups of their own pass it on.
 * Waits: never.
 * Owner: g stays the caller's.
 */
LADE_API void lade_taskgroup_cancel(lade_taskgroup *g);

/* ---- steps: tasks without a stack ---- */

typedef enum lade_step_next {
    LADE_STEP_DONE =
        0, /* it ended; its memory is the caller's again (it may have freed it itself) */
    LADE_STEP_WAIT =
        1, /* something it registered with will wake it; what LADE_STEP_AWAIT returns */
    LADE_STEP_AGAIN = 2 /* ready: call it again when others had their turn */
} lade_step_next;

/* Embed it first in a struct of your own, which must stay where it is until the step is done. Zero it before the start. */
typedef struct lade_step {
    struct lade_step *next;
    uint64_t claim;
    lade_step_next (*fn)(struct lade_step *);
    lade_taskgroup *group;
    uint32_t stamp;
    uint8_t kind, status;
    uint16_t at; /* line to go on from */
} lade_step;

/*
 * Starts a step, in the root group when group is NULL. The group counts it, but cancelling does not reach steps: wake
 * them by what they wait for.
 * Waits: never.
 * Returns: 0; -LADE_EPERM without a runtime; -LADE_ECANCELED; -LADE_EINVAL.
 * Owner: s is the runtime's until fn returns LADE_STEP_DONE; it must not move.
 */
LADE_API int lade_step_start(lade_step *s, lade_step_next (*fn)(lade_step *),
                             lade_taskgroup *group);

/*
 *     static lade_step_next idle(lade_step *s)
 *     {
 *         LADE_STEP_BEGIN(s);
 *         LADE_STEP_AWAIT(s, lade_gate_wait_step(gate, s));
 *         LADE_STEP_END(s);
 *     }
 *
 * Local variables do not live across an await. The awaited call returns LADE_STEP_DONE when there was nothing to wait for.
 */
#define LADE_STEP_BEGIN(s) \
    switch ((s)->at) {     \
    default:               \
    case 0:
#define LADE_STEP_AWAIT(s, call)      \
    do {                              \
        (s)->at = (uint16_t)__LINE__; \
        if ((call) == LADE_STEP_WAIT) \
            return LADE_STEP_WAIT;    \
        __attribute__((fallthrough)); \
    case __LINE__:;                   \
    } while (0)
#define LADE_STEP_END(s) \
    }                    \
    return LADE_STEP_DONE

/* ---- channels ---- */

typedef struct lade_chan lade_chan;

/* A promise about who uses it. MPMC is always right. */
typedef enum lade_chan_kind {
    LADE_CHAN_MPMC = 0,
    LADE_CHAN_MPSC = 1,
    LADE_CHAN_SPSC = 2
} lade_chan_kind;

#define LADE_CHAN_ELEM_MAX 65536
#define LADE_CHAN_CAP_MAX  (1u << 24)

/*
 * A channel of `cap` elements of `elem` bytes (1..LADE_CHAN_ELEM_MAX), copied in and out. Capacity 0 is a meeting: a
 * send is done when a receiver has the value.
 * Waits: never.
 * Returns: it; NULL when out of memory, for an unknown kind, or when a bound is broken.
 * Owner: the caller has one reference.
 */
LADE_CHECKED LADE_API lade_chan *lade_chan_new(lade_chan_kind kind, size_t elem, unsigned cap);

/*
 * One reference more.
 * Waits: never.
 * Returns: c; NULL for NULL.
 * Owner: each reference needs its lade_chan_unref.
 */
LADE_API lade_chan *lade_chan_ref(lade_chan *c);

/*
 * One reference less; the last one frees.
 * Waits: never.
 * Returns: 0, also for NULL; -LADE_EBUSY when that was the last reference and somebody still waits on it: an error of
 *     the program, the channel is closed and leaked so that the waiters find it alive.
 * Owner: the caller's reference is gone, but for -LADE_EBUSY.
 */
LADE_API int lade_chan_unref(lade_chan *c);

/*
 * No more sends. What is in it can still be received. Wakes all who wait.
 * Waits: never.
 * Returns: 0; -LADE_ECLOSED when it was closed before; -LADE_EINVAL.
 * Owner: no reference is dropped.
 */
LADE_API int lade_chan_close(lade_chan *c);

/*
 * Sends one value.
 * Waits: parks while it is full; from a plain thread, that thread waits.
 * Returns: 0; -LADE_ECLOSED; -LADE_ECANCELED; -LADE_EPERM where nothing may wait; -LADE_EINVAL.
 * Owner: the value is copied; with a failure it was not sent.
 */
LADE_API int lade_chan_send(lade_chan *c, const void *value);

/*
 * Receives one value.
 * Waits: parks while it is empty; from a plain thread, that thread waits.
 * Returns: 0; -LADE_ECLOSED when it is closed and empty; -LADE_ECANCELED; -LADE_EPERM where nothing may wait;
 *     -LADE_EINVAL.
 * Owner: *out is the caller's, `elem` bytes; untouched by a failure.
 */
LADE_API int lade_chan_recv(lade_chan *c, void *out);

/*
 * Sends when there is room or somebody waits for it.
 * Waits: never.
 * Returns: 0; -LADE_EAGAIN; -LADE_ECLOSED; -LADE_EINVAL.
 * Owner: the value is copied.
 */
LADE_API int lade_chan_try_send(lade_chan *c, const void *value);

/*
 * Receives what is there.
 * Waits: never.
 * Returns: 0; -LADE_EAGAIN; -LADE_ECLOSED; -LADE_EINVAL.
 * Owner: *out is the caller's.
 */
LADE_API int lade_chan_try_recv(lade_chan *c, void *out);

/*
 * lade_chan_send with a deadline.
 * Waits: parks while it is full.
 * Returns: as lade_chan_send; -LADE_ETIMEDOUT, and then the value was not sent.
 * Owner: the value is copied.
 * Units: `until` is a deadline in ns.
 */
LADE_API int lade_chan_send_until(lade_chan *c, const void *value, int64_t until);

/*
 * lade_chan_recv with a deadline.
 * Waits: parks while it is empty.
 * Returns: as lade_chan_recv; -LADE_ETIMEDOUT, and then nothing was taken.
 * Owner: *out is the caller's.
 * Units: `until` is a deadline in ns.
 */
LADE_API int lade_chan_recv_until(lade_chan *c, void *out, int64_t until);

/*
 * Sends n values in order; those of others may come between.
 * Waits: parks while it is full.
 * Returns: how many were sent, fewer than n when something ended it; < 0, as lade_chan_send, when none was.
 * Owner: the values are copied.
 */
LADE_API long lade_chan_send_n(lade_chan *c, const void *values, unsigned n);

/*
 * Waits for one value and takes what else is there, up to max, from the ring and from those who wait to send.
 * Waits: parks while it is empty.
 * Returns: the count, at least 1; < 0 as lade_chan_recv.
 * Owner: buf is the caller's, max elements.
 */
LADE_API long lade_chan_recv_n(lade_chan *c, void *buf, unsigned max);

/*
 * Values in it now.
 * Waits: never.
 * Returns: the count; 0 for NULL.
 * Owner: c stays the caller's.
 */
LADE_API unsigned lade_chan_len(lade_chan *c);

typedef enum lade_case_op {
    LADE_CASE_RECV = 0,
    LADE_CASE_SEND = 1,
    LADE_CASE_DEFAULT = 2
} lade_case_op;

typedef struct lade_case {
    lade_chan *chan; /* NULL never fires */
    void *value;     /* where to put or take it */
    unsigned op;     /* enum lade_case_op */
    unsigned max;    /* receive up to so many */
    unsigned *got;   /* how many; may be NULL */
    int rc;          /* out: 0 or -LADE_ECLOSED */
} lade_case;

#ifndef __cplusplus
#    define LADE_RECV(ch, v) \
        ((lade_case){.chan = (ch), .value = (v), .op = LADE_CASE_RECV, .max = 1})
#    define LADE_SEND(ch, v) \
        ((lade_case){.chan = (ch), .value = (void *)(v), .op = LADE_CASE_SEND, .max = 1})
#    define LADE_RECV_N(ch, buf, n, out) \
        ((lade_case){.chan = (ch), .value = (buf), .op = LADE_CASE_RECV, .max = (n), .got = (out)})
#    define LADE_DEFAULT ((lade_case){.op = LADE_CASE_DEFAULT})
#endif

#define LADE_SELECT_MAX 64

/*
 * Waits until one of n cases (at most LADE_SELECT_MAX) can be done and does exactly that one; among several, each has
 * the same chance. A closed channel counts as ready (rc = -LADE_ECLOSED): set its chan to NULL to leave it out from
 * then on. A DEFAULT case fires when no other can.
 * Waits: parks; from a plain thread, that thread waits.
 * Returns: the position of the case that was done; -LADE_ETIMEDOUT, -LADE_ECANCELED, -LADE_EPERM where nothing may
 *     wait, -LADE_EINVAL.
 * Owner: cases and their variables are the caller's; only those of the case that was done are written.
 * Units: `until` is a deadline in ns.
 */
LADE_API int lade_chan_select(lade_case *cases, int n, int64_t until);

/* ---- locks and friends: all zero is the initial state; -LADE_EINVAL for NULL ---- */

/* Not recursive. A waiter that waited for 1 ms is served first. Its memory must stay until every unlock has returned. */
typedef struct lade_mutex {
    uintptr_t owner;
    lade_waitlist waiters;
} lade_mutex;

/*
 * Takes it.
 * Waits: parks while another has it; from a plain thread, that thread waits.
 * Returns: 0; -LADE_ECANCELED; -LADE_EDEADLK when the caller has it; -LADE_EPERM in steps and timer functions;
 *     -LADE_EINVAL.
 * Owner: m is the caller's memory, all zero at first; it stays where it is until every call on it has returned.
 */
LADE_API int lade_mutex_lock(lade_mutex *m);

/*
 * The same with a deadline.
 * Waits: parks while another has it.
 * Returns: as lade_mutex_lock; -LADE_ETIMEDOUT.
 * Owner: m as lade_mutex_lock.
 * Units: `until` is a deadline in ns.
 */
LADE_API int lade_mutex_lock_until(lade_mutex *m, int64_t until);

/*
 * Takes it when it is free.
 * Waits: never.
 * Returns: 0; -LADE_EAGAIN; -LADE_EPERM in steps and timer functions; -LADE_EINVAL.
 * Owner: m as lade_mutex_lock.
 */
LADE_API int lade_mutex_trylock(lade_mutex *m);

/*
 * Lets it go.
 * Waits: never.
 * Returns: 0; -LADE_EPERM when the caller does not own it; -LADE_EINVAL.
 * Owner: m as lade_mutex_lock.
 */
LADE_API int lade_mutex_unlock(lade_mutex *m);

/* Many readers or one writer, in order of arrival. */
typedef struct lade_rwlock {
    lade_waitlist waiters;
    uint32_t readers;
    uintptr_t writer; /* who it is */
} lade_rwlock;

/*
 * Enters as a reader.
 * Waits: parks while a writer is in or was first; from a plain thread, that thread waits.
 * Returns: 0; -LADE_ECANCELED; -LADE_EDEADLK when the caller is in as the writer; -LADE_EPERM where nothing may wait; -LADE_EINVAL.
 * Owner: l is the caller's memory, all zero at first; it stays where it is until every call on it has returned.
 */
LADE_API int lade_rwlock_rdlock(lade_rwlock *l);

/*
 * Enters as the only writer.
 * Waits: parks while anybody is in or was first; from a plain thread, that thread waits.
 * Returns: 0; -LADE_ECANCELED; -LADE_EDEADLK when the caller is in as the writer; -LADE_EPERM in steps and timer
 *     functions; -LADE_EINVAL.
 * Owner: l as lade_rwlock_rdlock.
 */
LADE_API int lade_rwlock_wrlock(lade_rwlock *l);

/*
 * The same with a deadline.
 * Waits: parks.
 * Returns: as lade_rwlock_rdlock; -LADE_ETIMEDOUT.
 * Owner: l as lade_rwlock_rdlock.
 * Units: `until` is a deadline in ns.
 */
LADE_API int lade_rwlock_rdlock_until(lade_rwlock *l, int64_t until);

/*
 * The same with a deadline.
 * Waits: parks.
 * Returns: as lade_rwlock_wrlock; -LADE_ETIMEDOUT.
 * Owner: l as lade_rwlock_rdlock.
 * Units: `until` is a deadline in ns.
 */
LADE_API int lade_rwlock_wrlock_until(lade_rwlock *l, int64_t until);

/*
 * Leaves, as a reader or a writer.
 * Waits: never.
 * Returns: 0; -LADE_EPERM when nobody is in, or another is as the writer (who the readers are is not kept); -LADE_EINVAL.
 * Owner: l as lade_rwlock_rdlock.
 */
LADE_API int lade_rwlock_unlock(lade_rwlock *l);

typedef struct lade_cond {
    lade_waitlist waiters;
} lade_cond;

/*
 * Lets m go, waits, takes m again - always, whatever the result.
 * Waits: parks; from a plain thread, that thread waits.
 * Returns: 0 when signalled; -LADE_ETIMEDOUT; -LADE_ECANCELED; -LADE_EPERM when the caller does not own m;
 *     -LADE_EINVAL.
 * Owner: c is the caller's memory, all zero at first; it stays where it is until every call on it has returned.
 * Units: `until` is a deadline in ns.
 */
LADE_API int lade_cond_wait(lade_cond *c, lade_mutex *m, int64_t until);

/*
 * Wakes the one that has waited longest, if any.
 * Waits: never.
 * Returns: 0; -LADE_EINVAL.
 * Owner: c as lade_cond_wait.
 */
LADE_API int lade_cond_signal(lade_cond *c);

/*
 * Wakes all who wait.
 * Waits: never.
 * Returns: 0; -LADE_EINVAL.
 * Owner: c as lade_cond_wait.
 */
LADE_API int lade_cond_broadcast(lade_cond *c);

typedef struct lade_sem {
    lade_waitlist waiters;
    uint32_t count; /* set it before the first use */
} lade_sem;

/*
 * Takes one from the count.
 * Waits: parks while it is 0; from a plain thread, that thread waits.
 * Returns: 0; -LADE_ECANCELED; -LADE_EPERM where nothing may wait; -LADE_EINVAL.
 * Owner: s is the caller's memory, all zero at first; it stays where it is until every call on it has returned.
 */
LADE_API int lade_sem_wait(lade_sem *s);

/*
 * The same with a deadline.
 * Waits: parks while it is 0.
 * Returns: as lade_sem_wait; -LADE_ETIMEDOUT.
 * Owner: s as lade_sem_wait.
 * Units: `until` is a deadline in ns.
 */
LADE_API int lade_sem_wait_until(lade_sem *s, int64_t until);

/*
 * Gives one, to the one that has waited longest or to the count.
 * Waits: never.
 * Returns: 0; -LADE_EINVAL, also when the count is at UINT32_MAX: it stays.
 * Owner: s as lade_sem_wait.
 */
LADE_API int lade_sem_post(lade_sem *s);

typedef struct lade_waitgroup {
    lade_waitlist waiters;
    int64_t n;
} lade_waitgroup;

/*
 * Adds n, which may be negative; at 0 all who wait go on.
 * Waits: never.
 * Returns: 0; -LADE_EINVAL when it would fall below 0, and for NULL.
 * Owner: g is the caller's memory, all zero at first; it stays where it is until every call on it has returned.
 */
LADE_API int lade_waitgroup_add(lade_waitgroup *g, int n);

/*
 * Adds -1.
 * Waits: never.
 * Returns: as lade_waitgroup_add.
 * Owner: g as lade_waitgroup_add.
 */
LADE_API int lade_waitgroup_done(lade_waitgroup *g);

/*
 * Waits until it is 0.
 * Waits: parks; from a plain thread, that thread waits.
 * Returns: 0; -LADE_ETIMEDOUT; -LADE_ECANCELED; -LADE_EPERM where nothing may wait; -LADE_EINVAL.
 * Owner: g as lade_waitgroup_add.
 * Units: `until` is a deadline in ns.
 */
LADE_API int lade_waitgroup_wait_until(lade_waitgroup *g, int64_t until);

/* An event that stays. */
typedef struct lade_gate {
    lade_waitlist waiters;
    lade_step *steps;
    uint32_t open;
} lade_gate;

/*
 * Waits until it is open.
 * Waits: parks; from a plain thread, that thread waits.
 * Returns: 0; -LADE_ECANCELED; -LADE_EPERM where nothing may wait; -LADE_EINVAL.
 * Owner: g is the caller's memory, all zero at first; it stays where it is until every call on it has returned.
 */
LADE_API int lade_gate_wait(lade_gate *g);

/*
 * The same with a deadline.
 * Waits: parks.
 * Returns: as lade_gate_wait; -LADE_ETIMEDOUT.
 * Owner: g as lade_gate_wait.
 * Units: `until` is a deadline in ns.
 */
LADE_API int lade_gate_wait_until(lade_gate *g, int64_t until);

/*
 * Opens it, for ever; again does nothing.
 * Waits: never.
 * Returns: 0; -LADE_EINVAL.
 * Owner: g as lade_gate_wait.
 */
LADE_API int lade_gate_open(lade_gate *g);

/*
 * For LADE_STEP_AWAIT: registers the step.
 * Waits: never; the step is called again.
 * Returns: LADE_STEP_WAIT; LADE_STEP_DONE when it is open.
 * Owner: g as lade_gate_wait; s must not move.
 */
LADE_API lade_step_next lade_gate_wait_step(lade_gate *g, lade_step *s);

typedef struct lade_once {
    lade_gate done;
    uint32_t begun;
} lade_once;

/*
 * Runs fn(arg) in the first caller; the others wait for its end.
 * Waits: parks; from a plain thread, that thread waits.
 * Returns: 0; -LADE_ECANCELED of one that waited; -LADE_EPERM where nothing may wait; -LADE_EINVAL.
 * Owner: o is the caller's memory, all zero at first; it stays where it is until every call on it has returned; arg is
 *     fn's.
 */
LADE_API int lade_once_run(lade_once *o, void (*fn)(void *), void *arg);

/* ---- time ---- */

/*
 * Now, of a clock that never steps.
 * Waits: never.
 * Returns: ns since some time before the program began.
 */
LADE_API int64_t lade_clock_now(void);

/* All zero is not armed. Must stay where it is while it is armed. */
typedef struct lade_timer {
    struct lade_timer *child, *next, *prev;
    int64_t at;
    void (*fn)(void *);
    void *arg;
    uint32_t shard;
    uint32_t state;
} lade_timer;

typedef enum lade_timer_was {
    LADE_TIMER_STOPPED = 0, /* it was armed; fn will not be called for that */
    LADE_TIMER_IDLE = 1,    /* it was not armed: never, stopped before, or fn has been called */
    LADE_TIMER_RUNNING = 2  /* fn is being called at this moment on another thread */
} lade_timer_was;

/*
 * Calls fn(arg) at the given time, at once when it has passed, on a worker, not in a task: fn must be short and may
 * not wait. fn may arm, stop and free this or other timers. Arming an armed timer moves it.
 * Waits: never.
 * Returns: 0; -LADE_EPERM without a runtime; -LADE_EINVAL.
 * Owner: t is the caller's and must not move while it is armed; arg is fn's.
 * Units: `at` is a time in ns.
 */
LADE_API int lade_timer_arm(lade_timer *t, int64_t at, void (*fn)(void *), void *arg);

/*
 * Takes it out.
 * Waits: never.
 * Returns: an lade_timer_was: whether fn will be called, or is being called.
 * Owner: t is the caller's again, but for LADE_TIMER_RUNNING.
 */
LADE_API lade_timer_was lade_timer_stop(lade_timer *t);

/*
 * For LADE_STEP_AWAIT: the step goes on at the given time.
 * Waits: never; the step is called again.
 * Returns: LADE_STEP_WAIT; LADE_STEP_DONE when it has passed.
 * Owner: t lies in the step's own struct.
 * Units: `at` is a time in ns.
 */
LADE_API lade_step_next lade_timer_wait_step(lade_timer *t, int64_t at, lade_step *s);

/* ---- sockets ---- */

typedef struct lade_fd lade_fd;

/*
 * Listens. addr: "127.0.0.1:8080", "[::1]:8080", or "unix:/path"; port 0 picks one. Names are not looked up. The file of a Unix
 * socket goes with lade_fd_close; one that a dead process has left (a socket that refuses connections) is replaced.
 * Waits: never.
 * Returns: 0 and *out; -LADE_EBUSY when the address is in use, or a file of another kind is there; -LADE_EINVAL; -LADE_EIO; -LADE_ENOMEM; -LADE_EPERM without a runtime.
 * Owner: *out is the caller's until lade_fd_close.
 */
LADE_CHECKED LADE_API int lade_net_listen(const char *addr, lade_fd **out);

/*
 * The next connection.
 * Waits: parks; from a plain thread, that thread waits.
 * Returns: 0 and *out; -LADE_ETIMEDOUT; -LADE_ECANCELED (also when closed meanwhile); -LADE_EIO; -LADE_ENOMEM;
 *     -LADE_EINVAL.
 * Owner: *out is the caller's until lade_fd_close.
 * Units: `until` is a deadline in ns, 0 does not wait.
 */
LADE_CHECKED LADE_API int lade_net_accept(lade_fd *l, int64_t until, lade_fd **out);

/*
 * Connects; addr as lade_net_listen.
 * Waits: parks; from a plain thread, that thread waits.
 * Returns: 0 and *out; -LADE_EUNAVAILABLE when nobody listens; -LADE_ETIMEDOUT; -LADE_ECANCELED; -LADE_EIO;
 *     -LADE_ENOMEM; -LADE_EINVAL.
 * Owner: *out is the caller's until lade_fd_close.
 * Units: `until` is a deadline in ns.
 */
LADE_CHECKED LADE_API int lade_net_connect(const char *addr, int64_t until, lade_fd **out);

/*
 * The port a listener got.
 * Waits: never.
 * Returns: it; -LADE_EINVAL for others.
 * Owner: l stays the caller's.
 */
LADE_API int lade_net_port(lade_fd *l);

/*
 * Makes a descriptor that can be polled (socket, pipe) one of the runtime's and sets it to non-blocking.
 * Waits: never.
 * Returns: 0 and *out; -LADE_EIO when it cannot be polled; -LADE_ENOMEM; -LADE_EPERM without a runtime; -LADE_EINVAL.
 * Owner: fd is taken over with 0, and stays the caller's with a failure; *out is the caller's until lade_fd_close.
 */
LADE_CHECKED LADE_API int lade_fd_open(int fd, lade_fd **out);

/*
 * At least one byte, at most n.
 * Waits: parks; from a plain thread, that thread waits.
 * Returns: the count; 0 = the other side has ended; -LADE_ETIMEDOUT; -LADE_ECANCELED (also when closed meanwhile);
 *     -LADE_EIO; -LADE_EPERM where nothing may wait; -LADE_EINVAL.
 * Owner: buf is the caller's.
 * Units: `until` is a deadline in ns, 0 does not wait.
 */
LADE_API long lade_fd_read(lade_fd *fd, void *buf, size_t n, int64_t until);

/*
 * All n bytes, or fewer when something ended it after a part.
 * Waits: parks; from a plain thread, that thread waits.
 * Returns: the count; < 0, as lade_fd_read, when nothing was written; -LADE_EIO when nobody reads any more: SIGPIPE is
 *     never raised.
 * Owner: buf is the caller's.
 * Units: `until` is a deadline in ns, 0 does not wait.
 */
LADE_API long lade_fd_write(lade_fd *fd, const void *buf, size_t n, int64_t until);

#define LADE_FD_READ  1
#define LADE_FD_WRITE 2

/*
 * Waits until it is ready, which may be so without cause. events is LADE_FD_READ or LADE_FD_WRITE.
 * Waits: parks; from a plain thread, that thread waits.
 * Returns: 0; -LADE_ETIMEDOUT; -LADE_ECANCELED (also when closed meanwhile); -LADE_EPERM; -LADE_EINVAL.
 * Owner: fd stays the caller's.
 * Units: `until` is a deadline in ns.
 */
LADE_API int lade_fd_wait(lade_fd *fd, int events, int64_t until);

/*
 * Wakes all who wait on it; the descriptor is closed once they are out.
 * Waits: never.
 * Returns: 0; -LADE_EINVAL for NULL and when it is closed already.
 * Owner: fd is void afterwards: another one may get its memory.
 */
LADE_API int lade_fd_close(lade_fd *fd);

/* ---- blocking calls ---- */

/*
 * Runs fn(arg) on a thread of the pool and waits for its end: for SQLite, files, name look-ups, foreign libraries.
 * Outside tasks it calls fn directly.
 * Waits: parks, also for a thread when the pool is full.
 * Returns: 0; -LADE_ECANCELED: the caller was cancelled, fn was not begun or *still runs*; -LADE_ENOMEM; -LADE_EPERM
 *     in steps and timer functions; -LADE_EINVAL.
 * Owner: arg is fn's, and must outlive it after -LADE_ECANCELED.
 */
LADE_API int lade_blocking_run(void (*fn)(void *), void *arg);

/* ---- bridges: how foreign threads hand work to the runtime ---- */

typedef struct lade_bridge lade_bridge;

/*
 * An open bridge is a promise that somebody may still post: the runtime never calls that a deadlock. rt NULL: the one
 * that runs.
 * Waits: never.
 * Returns: 0 and *out; -LADE_EPERM without a runtime; -LADE_ENOMEM; -LADE_EIO when there are no descriptors left;
 *     -LADE_EINVAL.
 * Owner: *out is the caller's until lade_bridge_close.
 */
LADE_CHECKED LADE_API int lade_bridge_open(lade_rt *rt, lade_bridge **out);

/*
 * fn(arg) in a new task. From any thread.
 * Waits: never.
 * Returns: 0; -LADE_ECLOSED when the runtime has ended; -LADE_ECANCELED when it is ending; -LADE_ENOMEM; -LADE_EINVAL.
 * Owner: arg is fn's.
 */
LADE_API int lade_bridge_post(lade_bridge *b, void (*fn)(void *), void *arg);

/*
 * The same, and waits for its end.
 * Waits: parks; from a plain thread, that thread waits.
 * Returns: what fn returned; -LADE_ETIMEDOUT: it runs on; failures as lade_bridge_post.
 * Owner: arg is fn's, and must outlive it after -LADE_ETIMEDOUT.
 * Units: `until` is a deadline in ns.
 */
LADE_API int lade_bridge_call(lade_bridge *b, int (*fn)(void *), void *arg, int64_t until);

/*
 * From the runtime to the host: fn(arg) will be called by whoever calls lade_bridge_drain.
 * Waits: never.
 * Returns: 0; -LADE_ENOMEM; -LADE_EINVAL.
 * Owner: arg is fn's; it is not called when the bridge is closed before.
 */
LADE_API int lade_bridge_back(lade_bridge *b, void (*fn)(void *), void *arg);

/*
 * A descriptor that is readable while calls wait for lade_bridge_drain: for a host's event loop.
 * Waits: never.
 * Returns: it; -LADE_EINVAL.
 * Owner: it is the bridge's.
 */
LADE_API int lade_bridge_fd(lade_bridge *b);

/*
 * Calls what waits.
 * Waits: never, but for what the calls do.
 * Returns: how many were called; -LADE_EINVAL.
 * Owner: b stays the caller's.
 */
LADE_API int lade_bridge_drain(lade_bridge *b);

/*
 * Frees. Calls that wait for drain are dropped; that no lade_bridge_call is under way is the caller's part.
 * Waits: never.
 * Owner: b is gone; NULL is nothing.
 */
LADE_API void lade_bridge_close(lade_bridge *b);

#ifdef __cplusplus
}
#endif
#endif
