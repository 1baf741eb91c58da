/*
 * core.h - what the parts of the runtime share: tasks, workers, and the running runtime
 *
 *     lr_task    what can wait and be woken: a fiber (task with a stack), a step, or a plain OS thread ("outer")
 *     lr_worker  an OS thread that runs fibers and steps, with its run queue (runq.h)
 *     lr_rt      the runtime, one per process: workers, injected tasks, timers, poller
 *
 * Waiting: a task that will wait gives itself a new ticket (`claim`, even), puts nodes into the lists of what it waits for, and
 * parks. Whoever wants to wake it - the other side, a timer, a cancel - must first claim that ticket (even -> odd, one
 * compare-and-swap); the one that succeeds writes the results and calls lr_ready. So a wait ends exactly once, and a
 * hand-over has either happened wholly or not at all. The task itself takes its other nodes out of the lists.
 *
 * Running twice is impossible: a fiber's `sp` is NULL from the moment it runs until its registers are saved; who wants to
 * run it waits for that. So locks are let go before the switch.
 */
#ifndef LADE_RT_CORE_H
#define LADE_RT_CORE_H

#include <lade/rt.h>

#include <pthread.h>
#include <signal.h>
#include <stdalign.h>

#include "base/base.h"
#include "rt/fence.h"

enum lr_kind { LR_FIBER = 1, LR_STEP = 2, LR_OUTER = 3 };

/* Why a wait ended; written by the one that claimed it. */
enum lr_woke { LR_WOKE = 0, LR_WOKE_CLOSED = 1, LR_WOKE_CANCELED = 2, LR_WOKE_TIMEDOUT = 3 };

/* The header of everything that waits. lade_step in rt.h is the same bytes. */
struct lr_task {
    struct lr_task *next; /* run queue, or a list of tasks to make ready */
    uint64_t claim;       /* atomic; even: waiting under this ticket, odd: not waiting */
    void *go;             /* fiber: atomic sp, NULL while it runs. step: fn */
    lade_taskgroup *group;
    uint32_t
        stamp; /* lr_stamp of when it became ready, later by LR_AGE_TALK for some; guarded by: run queue */
    uint8_t kind; /* enum lr_kind; a step that runs has LR_STEP_BUSY too (atomic) */
    uint8_t woke; /* enum lr_woke */
    uint16_t at;  /* steps: where to go on */
};

#define LR_STEP_BUSY 0x80
#define LR_KIND(t)   (__atomic_load_n(&(t)->kind, __ATOMIC_RELAXED) & 7)

/* What a fiber waits for, in dumps. */
enum lr_waits {
    LR_WAITS_NOT = 0,
    LR_WAITS_SEND,
    LR_WAITS_RECV,
    LR_WAITS_SELECT,
    LR_WAITS_MUTEX,
    LR_WAITS_RWLOCK,
    LR_WAITS_COND,
    LR_WAITS_SEM,
    LR_WAITS_GROUP,
    LR_WAITS_GATE,
    LR_WAITS_SLEEP,
    LR_WAITS_FD,
    LR_WAITS_BLOCKING,
    LR_WAITS_CALL
};

struct lr_fiber {
    struct lr_task task;
    struct lr_stack *stack; /* NULL before its first run */

    union {
        void (*plain)(void *);
        int (*coded)(void *);
    } fn;

    void *arg;
    struct lr_fiber *gnext, *gprev; /* members of the group; guarded by: group lock */
    uint64_t life;                  /* atomic: serial * 2 + cancelled */
    bool is_coded;
    uint16_t n_held; /* OS mutexes of the seam it holds; its own */
    bool alive;      /* atomic; for dumps */
    bool shielded;   /* waits are not cancelled; its own */
    uint8_t waits;   /* enum lr_waits; its own, read by dumps */
    const void *waits_on;
    const char *name, *where;
    void *asan;                /* AddressSanitizer's fake stack while it does not run */
    struct lr_fiber *all_next; /* every fiber ever made; fixed */
};

struct lr_outer {
    struct lr_task task;
    uint32_t futex; /* 1 = woken */
};

/* A node in a waiters' list; lies on the stack of who waits. */
struct lr_wait {
    struct lr_wait *next, *prev; /* guarded by: the list's lock */
    struct lr_task *task;
    uint64_t ticket;
    void *slot;     /* the value to take, or where to put it */
    unsigned index; /* of the case; also what kind of waiter */
    int64_t since;  /* when it began to wait; mutexes only */
    bool linked;
};

#define LR_STAMP_SHIFT 14 /* 16.4 us; the lowest bit of a stamp says LR_TALKS, so they go by twos */

static inline uint32_t lr_stamp(int64_t now)
{
    return (uint32_t)(now >> LR_STAMP_SHIFT) & ~UINT32_C(1);
}

struct lr_runq {
    uint32_t busy;  /* atomic: the owner is inside */
    uint32_t thief; /* atomic: a thief wants in, or is */
    struct lr_task *head, *tail;
    uint32_t n; /* atomic: written by owner and thief, peeked at by others */
    bool alone; /* no thieves: one worker */
};

/* What a worker had published when the watcher looked: `seen` at its last look, `was` at the time `since`. */
struct lr_look {
    uint32_t seen, was;
    int64_t since;
};

/* Hot fields of the owner first; what others write is on lines of its own. */
struct lr_worker {
    alignas(64) struct lr_runq runq;
    uint32_t stamp;          /* coarse time, refreshed at each tick */
    int countdown;           /* task changes until the next housekeeping */
    int allotted;            /* what it began with */
    void *sched;             /* context of the scheduler loop while a fiber runs */
    struct lr_task *handoff; /* what the scheduler shall run first */
    struct lr_stack *stacks;
    struct lr_fiber *fibers;
    unsigned n_stacks, n_fibers; /* in the two pools */
    uint64_t seed;
    int64_t polled_at, kept_at; /* the last look at descriptors; the last housekeeping */
    uint32_t n_selects;
    uint64_t n_switches, n_started, n_stolen, n_wakeups;
    void *sched_asan;           /* the scheduler's fake stack */
    const void *sched_asan_low; /* and its real one */
    size_t sched_asan_size;
    void *sched_tsan;
    struct lr_task *cur;  /* atomic; what runs, for dumps and for spare.c */
    struct lr_look *look; /* the watcher's: of each other worker */
    unsigned index;
    pthread_t thread;
    void *sigstack;

    alignas(64) uint32_t steal_lock;
    uint32_t futex;                 /* atomic: 1 = asleep on it */
    struct lr_worker *idle_next;    /* guarded by: rt idle_lock */
    bool idle_listed;               /* guarded by: rt idle_lock */
    alignas(64) uint32_t published; /* atomic: n_switches at each housekeeping */
};

/* Timers of one worker: a pairing heap (timer.c). */
struct lr_shard {
    alignas(64) uint32_t lock;
    uint64_t n;
    lade_timer *root;
    int64_t next_at; /* atomic: of the root; LADE_FOREVER when empty */
    lade_timer *firing;
    uint32_t draining; /* atomic: one worker at a time */
};

struct lr_poller {
    int epoll, event;
    uint32_t asleep;    /* atomic: somebody is in epoll_wait and must be kicked */
    int64_t until;      /* atomic: how long he will sleep */
    uint32_t polling;   /* spin lock by try only: one poller at a time */
    uint64_t n_fds;     /* atomic */
    uint64_t n_waiting; /* atomic: tasks that wait for a descriptor */
};

struct lr_pool;

struct lr_rt {
    unsigned n_workers;   /* those there are from the beginning to the end */
    unsigned max_workers; /* with all spares (spare.c) */
    uint32_t n_live;      /* atomic: with the spares that have been started */
    bool hosted;          /* by lade_rt_start: the host's threads may always do something */
    struct lr_worker *worker;
    struct lr_shard *shard;
    struct lr_poller poller;
    struct lr_pool *blocking;
    size_t stack_size, guard_size;
    int64_t spin_for; /* ns that an idle worker looks out before it sleeps */
    char name[8];
    void (*on_deadlock)(void *);
    void *deadlock_ctx; /* and on_hog's */
    int64_t hog_after;
    void (*on_hog)(void *, const lade_rt_hog *);
    struct lr_hogwatch *hogwatch; /* NULL when off */
    uint64_t n_hogs;              /* atomic */
    lade_taskgroup root;

    alignas(64) uint32_t watched; /* atomic: 0 = a pusher must wake somebody (sched.c) */
    uint32_t shared_wanted;       /* atomic: a foreign thread wants lock elision to end */
    uint32_t stopping;            /* atomic */

    alignas(64) uint32_t inject_lock;
    struct lr_task *inject_head, *inject_tail; /* guarded by: inject_lock */
    uint32_t n_injected;                       /* atomic */

    alignas(64) uint32_t idle_lock;
    struct lr_worker *idle;   /* asleep on their futex; guarded by: idle_lock */
    struct lr_worker *parked; /* spares that are not needed now; guarded by: idle_lock */
    uint32_t n_busy;  /* atomic: workers that run tasks: neither idle, nor watching, nor parked */
    bool has_watcher; /* atomic; written under idle_lock */
    struct lr_monitor *monitor; /* NULL without spares */

    alignas(64) uint64_t n_fibers; /* atomic: alive */
    uint64_t n_steps;              /* atomic: alive */
    uint64_t n_foreign;            /* atomic: open bridges, blocking calls under way */
    uint32_t pool_lock;
    struct lr_stack *stacks;              /* free; guarded by: pool_lock */
    uint64_t n_free_stacks;               /* guarded by: pool_lock */
    struct lr_slab *slabs;                /* guarded by: pool_lock */
    struct lr_slab *fresh;                /* guarded by: pool_lock */
    uint64_t n_stacks;                    /* all there are; guarded by: pool_lock */
    uint32_t n_guard_maps;                /* guards by mprotect; guarded by: pool_lock */
    struct sigaction old_segv, old_abort; /* what the program had */
};

/* What a thread knows of itself. Only through the functions below: compilers keep thread-local addresses across a switch. */
struct lr_self {
    struct lr_worker *worker; /* NULL on plain threads */
    struct lr_task *
        cur; /* the running fiber; NULL in the scheduler, in steps, in timer functions, on plain threads */
    uint32_t solo; /* this thread is the only one: no atomics needed */
};
extern __thread struct lr_self lr_self __attribute__((tls_model("initial-exec")));

#if defined(__x86_64__)
static inline __attribute__((always_inline)) struct lr_worker *lr_worker(void)
{
    struct lr_worker *w;
    __asm__ volatile("movq lr_self@gottpoff(%%rip), %0\n\tmovq %%fs:(%0), %0" : "=r"(w));
    return w;
}

static inline __attribute__((always_inline)) struct lr_task *lr_cur(void)
{
    struct lr_task *t;
    __asm__ volatile("movq lr_self@gottpoff(%%rip), %0\n\tmovq %%fs:8(%0), %0" : "=r"(t));
    return t;
}

static inline __attribute__((always_inline)) void lr_cur_set(struct lr_task *t)
{
    void *at;
    __asm__ volatile("movq lr_self@gottpoff(%%rip), %0\n\tmovq %1, %%fs:8(%0)"
                     : "=&r"(at)
                     : "r"(t)
                     : "memory");
}
#else
struct lr_worker *lr_worker(void);
struct lr_task *lr_cur(void);
void lr_cur_set(struct lr_task *t);
#endif
static_assert(offsetof(struct lr_self, worker) == 0 && offsetof(struct lr_self, cur) == 8,
              "the asm above");
static_assert(sizeof(struct lr_task) == sizeof(lade_step), "a step is a task");

extern struct lr_rt *lr_runtime; /* atomic: NULL when none runs */

static inline struct lr_rt *lr_rt_get(void)
{
    return __atomic_load_n(&lr_runtime, __ATOMIC_ACQUIRE);
}

/* Workers that may have tasks: entries [0, lr_live) of rt->worker. */
static inline unsigned lr_live(const struct lr_rt *rt)
{
    return __atomic_load_n(&rt->n_live, __ATOMIC_ACQUIRE);
}

/* A counter with one writer that others read now and then. */
/* NOLINTNEXTLINE(readability-non-const-parameter): the builtin writes */
static inline void lr_count(uint64_t *c, uint64_t by)
{
    __atomic_store_n(c, *c + by, __ATOMIC_RELAXED);
}

/* ---- spin locks: some ten instructions are the longest time one is held ---- */

void lr_spin_slow(uint32_t *l);
/* Ends the elision: waits until the one worker has seen it. For any other thread. */
void lr_solo_end(void);
extern uint32_t lr_solo_on; /* atomic: some thread has lr_self.solo */

/* NOLINTBEGIN(readability-non-const-parameter): the atomic builtins write */
static inline void lr_spin_lock(uint32_t *l)
{
    if (LB_LIKELY(lr_self.solo))
        return;
    if (LB_UNLIKELY(__atomic_load_n(&lr_solo_on, __ATOMIC_ACQUIRE)))
        lr_solo_end();
    LR_CHAOS();
    uint32_t free = 0;
    if (LB_UNLIKELY(
            !__atomic_compare_exchange_n(l, &free, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)))
        lr_spin_slow(l);
    LR_CHAOS();
}

/* One attempt, without a call in it: for fast paths that have no frame. */
static inline bool lr_spin_try(uint32_t *l)
{
    if (LB_LIKELY(lr_self.solo))
        return true;
    if (LB_UNLIKELY(__atomic_load_n(&lr_solo_on, __ATOMIC_ACQUIRE)))
        return false;
    LR_CHAOS();
    uint32_t free = 0;
    return LB_LIKELY(
        __atomic_compare_exchange_n(l, &free, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED));
}

static inline void lr_spin_unlock(uint32_t *l)
{
    __atomic_store_n(l, 0, __ATOMIC_RELEASE);
}

/* The same without elision, for what foreign threads share with a worker that is alone. */
static inline void lr_hard_lock(uint32_t *l)
{
    uint32_t free = 0;
    if (LB_UNLIKELY(
            !__atomic_compare_exchange_n(l, &free, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)))
        lr_spin_slow(l);
}

static inline bool lr_hard_trylock(uint32_t *l)
{
    uint32_t free = 0;
    return __atomic_compare_exchange_n(l, &free, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

/* NOLINTEND(readability-non-const-parameter) */

#endif
