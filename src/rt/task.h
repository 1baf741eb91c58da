/* task.h - making and ending fibers; the parts of the scheduler that other files call */
#ifndef LADE_RT_TASK_H
#define LADE_RT_TASK_H

#include "rt/core.h"
#include "rt/park.h"

/* task.c: descriptors are never freed, so that a handle of a task that has ended can be told from a new one. */
struct lr_fiber *lr_fiber_new(struct lr_worker *w);
/* Ends it: tells the group, gives the descriptor back. Its stack is the caller's to put away. */
void lr_fiber_end(struct lr_worker *w, struct lr_fiber *f, int code);
void lr_fiber_trim(struct lr_worker *w);
/* All of the worker's free ones to the process. */
void lr_fiber_give_back(struct lr_worker *w);

/* A new task in group g, ready. -LADE_ENOMEM, -LADE_ECANCELED, -LADE_EPERM. */
struct lr_spawn {
    lade_taskgroup *group;
    void (*plain)(void *);
    int (*coded)(void *); /* one of the two */
    void *arg;
    const char *name, *where;
};

int lr_spawn(const struct lr_spawn *s, lade_task *out);
/* Marks and wakes; the task behind f may have ended: then nothing happens. */
void lr_fiber_cancel(struct lr_fiber *f, uint64_t serial);
/* Each fiber ever made, by all_next. */
struct lr_fiber *lr_fiber_all(void);
/* Whether it is one: looks through the slabs. */
bool lr_fiber_is(const void *p);

/* group.c */
int lr_group_enter(lade_taskgroup *g, struct lr_fiber *f); /* f NULL: a step */
void lr_group_leave(lade_taskgroup *g, struct lr_fiber *f, int code);

/* sched.c */
void lr_sched_run(struct lr_worker *w); /* the loop of a worker, until the runtime stops */
void lr_inject(struct lr_task *t);      /* from any thread, to any worker */
void lr_kick(struct lr_rt *rt);         /* wakes the one that sleeps in the poller */
/* Leaves the running fiber: until somebody makes it ready. */
void lr_leave(struct lr_fiber *me);
void lr_yield(struct lr_fiber *me);

/* timer.c */
int64_t lr_timers_next(struct lr_rt *rt);
/* Fires what is due; woken tasks become a chain in *ready. */
void lr_timers_run(struct lr_rt *rt, int64_t now, struct lr_task **ready);

struct lr_wait_timer {
    lade_timer timer;
    uint64_t ticket;
};

void lr_wait_timer_arm(struct lr_wait_timer *t, struct lr_task *task, uint64_t ticket, int64_t at);
void lr_wait_timer_stop(struct lr_wait_timer *t);

/* poller.c */
int lr_poller_init(struct lr_poller *p);
void lr_poller_fini(struct lr_poller *p);
/* Takes what is ready now, or sleeps until something is or the deadline. Woken tasks become a chain. */
void lr_poller_poll(struct lr_poller *p, int64_t until, struct lr_task **ready);
void lr_poller_kick(struct lr_poller *p);

/* dump.c */
void lr_deadlock(struct lr_rt *rt);

/* runtime.c: for spare.c. A worker that is not running yet; its thread. 0 or -LADE_ENOMEM. */
int lr_worker_init(struct lr_rt *rt, struct lr_worker *w, unsigned index);
int lr_worker_start(struct lr_worker *w);

/* spare.c: the last watcher became busy. Only when there is a monitor. */
void lr_monitor_wake(struct lr_rt *rt);

/* step.c */
/* Runs it once, and again as long as it says so and nobody else waits. */
void lr_step_run(struct lr_worker *w, struct lr_task *t);

/* outer.c */
struct lr_task *lr_outer_self(void);
enum lr_woke lr_outer_park(struct lr_task *t, uint64_t ticket, int64_t until);
void lr_outer_wake(struct lr_task *t);
/* Plain threads that have waited, or may. */
uint64_t lr_outer_count(void);

/* futex */
void lr_futex_wait(uint32_t *word, uint32_t expected, int64_t until);
void lr_futex_wake(uint32_t *word);

#endif
