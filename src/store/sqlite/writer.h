/*
 * writer.h - group commit: ops of several threads share one transaction
 *
 * SQLite has one writer at a time, and the commit is the dear part. So callers combine: the first to come leads, the
 * others queue behind it. The leader takes the write lock, runs its own op and all that queue up until it is done with them, commits once
 * and hands the results out; the next in the queue leads the next round. No timer and no extra thread: a lone caller
 * pays one mutex, and the busier it is the larger the groups. Whoever waits yields before it sleeps (rt/patience.h), so that a
 * producer and a worker that come in turn need not be woken.
 *
 * An op is a function of the transaction that may be run again from the start: when one op of a group fails, the group
 * is rolled back and each op gets a transaction of its own, so that one caller's failure is never another's.
 *
 * On a full disk an op that makes room gets what is kept for it (room.h) and is tried once more.
 *
 * The heartbeat has its own connection and goes first: a leader lets a waiting beat pass before it takes the lock.
 *
 * Thread safety: ls_sqlite_write from any number of threads.
 */
#ifndef LADE_SQLITE_WRITER_H
#define LADE_SQLITE_WRITER_H

#include "base/list.h"
#include "rt/patience.h"
#include "rt/seam.h"
#include "store/sqlite/checkpoint.h"
#include "store/sqlite/db.h"
#include "store/sqlite/tx.h"

/* Ops, and about as many jobs, of one transaction at most; more wait for the next. */
#define LS_SQLITE_GROUP_MAX  64
#define LS_SQLITE_GROUP_JOBS 10000

struct ls_sqlite_op {
    const char *name;  /* for errors */
    const char *point; /* fault point, reached before and after the commit */
    int (*run)(struct ls_sqlite_tx *tx, void *arg);
    void *arg;
    size_t jobs; /* about how many it touches */
    bool frees;  /* makes room: on a full disk it may have the room kept for that */
};

struct ls_sqlite_writer {
    struct ls_sqlite_db db;
    struct ls_sqlite_tx tx;     /* owned by: the leader */
    struct ls_sqlite_fold fold; /* owned by: the leader */
    struct lr_mutex lock;
    struct lb_list queue; /* guarded by: lock; callers that wait, oldest first */
    bool led;             /* guarded by: lock; a leader is at work */
    int beats;            /* guarded by: lock; renews that wait for the write lock */
    struct lr_cond beat_over;
    struct lr_patience patience; /* of those that wait for a leader */
    struct lr_pulse told;        /* where they sleep then */
    int64_t
        looked_at; /* when the leader last looked whether the file is still there; lb_clock_mono */
    uint64_t dev, ino; /* what file that is */
};

/* The connection is opened and closed by the store. */
void ls_sqlite_writer_init(struct ls_sqlite_writer *w, struct ls_sqlite *s);
void ls_sqlite_writer_fini(struct ls_sqlite_writer *w);
/* Remembers which file the path names. */
LADE_CHECKED int ls_sqlite_writer_pin(struct ls_sqlite_writer *w, lade_err *err);

/* Runs the op in a transaction, alone or with others. Its result, or a failure of the transaction. */
LADE_CHECKED int ls_sqlite_write(struct ls_sqlite *s, const struct ls_sqlite_op *op, lade_err *err);

/* From hold to release no op of this process runs: those that come wait. Ends in bounded time, as ops do. */
void ls_sqlite_writer_hold(struct ls_sqlite_writer *w);
void ls_sqlite_writer_release(struct ls_sqlite_writer *w);

/* Around a heartbeat's transaction. */
void ls_sqlite_writer_beat_begin(struct ls_sqlite_writer *w);
void ls_sqlite_writer_beat_end(struct ls_sqlite_writer *w);

#endif
