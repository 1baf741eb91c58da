/*
 * waiters.h - the idle workers of this process, and who wakes them
 *
 * A worker that finds nothing is registered in a seat of the bell (bell.h), which all processes on the file share, before
 * its last look. Whoever makes jobs ready rings seats, as many as there are jobs. A ring within the process wakes the
 * waiter's condition directly; one from another process wakes this process's listener thread, which sleeps on the bell
 * and wakes the waiters that were rung. wake() sets a flag of the waiter and disturbs nobody else.
 *
 * Lock order: waiters.lock is innermost; nothing is called under it that takes another.
 */
#ifndef LADE_SQLITE_WAITERS_H
#define LADE_SQLITE_WAITERS_H

#include "base/map.h"
#include "queue/store.h"
#include "rt/seam.h"
#include "store/sqlite/bell.h"

struct ls_sqlite_waiters {
    struct ls_sqlite_bell bell;
    struct lr_mutex lock;
    struct lb_map map; /* guarded by: lock; worker -> struct waiter */
    bool
        wake_all; /* guarded by: lock; a wake that found no memory for its waiter: the next wait returns */
    struct lr_thread listener; /* guarded by: lock */
    bool closing;              /* atomic */
};

/* Opens the bell beside `path`. */
LADE_CHECKED int ls_sqlite_waiters_init(struct ls_sqlite_waiters *w, const char *path,
                                        lade_err *err);
void ls_sqlite_waiters_fini(struct ls_sqlite_waiters *w);

/* The worker is idle from now on; call before the last look. */
void ls_sqlite_waiters_idle(struct ls_sqlite_waiters *w, const char *worker, struct lq_lanes lanes);
/* It found nothing and was told when the next job is due (0 = none). */
void ls_sqlite_waiters_set_due(struct ls_sqlite_waiters *w, const char *worker, int64_t due_ms);
/* It found something: a ring that reached it meanwhile is passed on. */
void ls_sqlite_waiters_busy(struct ls_sqlite_waiters *w, const char *worker);
/* It will not wait again. */
void ls_sqlite_waiters_leave(struct ls_sqlite_waiters *w, const char *worker);

/* Wakes up to n idle workers that serve the queue. */
void ls_sqlite_waiters_ring(struct ls_sqlite_waiters *w, const char *queue, size_t n);
/* Wakes the idle workers that serve the queue and were told of a later due time, or of none. */
void ls_sqlite_waiters_ring_due(struct ls_sqlite_waiters *w, const char *queue, int64_t due_ms);

/* 0 when rung or woken, LADE_EMPTY at the deadline. */
LADE_CHECKED int ls_sqlite_waiters_wait(struct ls_sqlite_waiters *w, const char *worker,
                                        int64_t deadline, lade_err *err);
void ls_sqlite_waiters_wake(struct ls_sqlite_waiters *w, const char *worker);

#endif
