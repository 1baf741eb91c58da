/*
 * tx.h - one write transaction as the ops see it: its clock, its queues, whom to wake after it
 *
 * Counts of a queue change in memory and are written once, just before the commit. Waking happens after the commit,
 * so that whoever wakes finds the jobs.
 *
 * What a transaction has read or written is not read again by the next one: queues, a few runs, flows, the number of the next job,
 * the worker that took last. Each begin compares the data version of the connection with that after the commit before: any other
 * connection's commit, of this process or another, changes it, and then all is forgotten, as after a rollback.
 */
#ifndef LADE_SQLITE_TX_H
#define LADE_SQLITE_TX_H

#include "base/arena.h"
#include "base/list.h"
#include "base/map.h"
#include "queue/bound.h"
#include "queue/store.h"
#include "store/sqlite/db.h"

struct ls_sqlite;

enum ls_sqlite_total { LS_SQLITE_ENQUEUED, LS_SQLITE_COMPLETED, LS_SQLITE_FAILED, LS_SQLITE_DIED };

struct ls_sqlite_queue {
    int64_t num;
    bool paused;
    int64_t next; /* position, fence and order of ending are numbers of this one counter */
    int64_t count[LADE_N_STATES];
    int64_t total[4];
    char name[LADE_NAME_MAX + 1];
    struct lq_bound bound;       /* its bytes are counted while it has max_bytes */
    bool bytes_dirty;            /* of the open transaction */
    int64_t hall, mates;         /* hall.h: ready and active jobs of company */
    bool gated;                  /* has or had keys or limits */
    struct ls_sqlite_gate *gate; /* keys.h; NULL = not read */
    /* Of the open transaction. */
    bool touched; /* in tx->list */
    bool dirty;
    int64_t needs, needs_bytes; /* of the put under way: what it would add */
    int64_t freed; /* active jobs that were settled, since the last flush of the keys */
    /* Its stream: see events.h. */
    int64_t events; /* how many it keeps; 0 = it has none */

    struct ls_sqlite_batch {
        uint8_t *p; /* in the transaction's arena */
        size_t n, cap;
        int64_t events;
    } batch;

    /* To wake after the commit. */
    size_t ring;                  /* jobs that became ready */
    bool ring_all;                /* resumed */
    int64_t ring_due;             /* a job that is due then was added; 0 = none */
    bool ring_watchers;           /* something that is watched came: events, what a handler says */
    struct ls_sqlite_queue *link; /* of tx->list */
    struct ls_sqlite_queue *next_kept;
};

struct ls_sqlite_run {
    int64_t job, n;
    int64_t queue;
    int64_t state;
    int64_t rank, pos;
    int64_t level;
    int64_t at_ms;
    int64_t worker; /* 0 = none */
    int64_t flags;
    int64_t reason;
    int64_t key; /* 0 = none */
};

/* Flows that are kept: flow_kept.h. */
struct ls_sqlite_shelf {
    struct lb_map by_id;
    struct lb_list used; /* all, the last used at the end */
    struct lb_list gone; /* deleted in the open transaction */
    size_t bytes;        /* of those in `used` */
};

#define LS_SQLITE_RUNS_KEPT   4
#define LS_SQLITE_QUEUES_KEPT 256 /* beyond it a transaction begins with none */
#define LS_SQLITE_KEYS_KEPT   20000

struct ls_sqlite_tx {
    struct ls_sqlite *s;
    struct ls_sqlite_db *db;
    const char *op; /* name for errors */
    bool grows;     /* puts: to be refused when the file cannot grow with it */
    lade_err *err;
    int64_t now_ms;
    struct lb_arena arena;        /* of the open transaction */
    struct ls_sqlite_queue *list; /* queues that it has looked at */
    struct ls_sqlite_queue *last; /* of the last look-up: a batch is mostly of one queue */
    struct ls_sqlite_key *keys;   /* keys.h: those that changed */

    /* Kept as long as nobody else commits. */
    bool keeps; /* `version` is that after our last commit */
    uint32_t version;
    int64_t next_seq; /* of the next job; 0 = not read yet */
    bool ended;       /* jobs ended or are gone: who waits for one is rung */
    int sheets;       /* as locks: are there sheets of results */
    int notes;        /* as locks: is there what a handler said */
    int quiet;        /* > 0: ls_sqlite_run_add makes no events, its caller does */
    bool mute;        /* none at all: they did not fit on the disk */
    int locks;        /* is any unique key held: 1, 0, or -1 = not looked yet */
    struct lb_arena kept;
    struct lb_map queues; /* by name; values in `kept` */
    struct ls_sqlite_queue *all;
    size_t n_all;
    struct ls_sqlite_run run[LS_SQLITE_RUNS_KEPT]; /* as they are in the file; n = 0: none */
    unsigned run_at;                               /* to be replaced next */

    struct {
        char id[LADE_ID_MAX + 1]; /* "" = none */
        int64_t num, until_ms;
    } worker; /* live until then */

    struct ls_sqlite_key *all_keys; /* keys.h */
    struct ls_sqlite_hall *halls;   /* hall.h */
    size_t n_keys;                  /* read since all was forgotten */
    struct lb_map keys_by_num, keys_by_name;

    struct ls_sqlite_shelf shelf;
    int64_t n_flows[LADE_N_FLOW_STATES]; /* ended ones of a state; -1 = not counted */
    size_t flows_uncounted;              /* that ended since they were counted; flow_trim.c */
};

void ls_sqlite_tx_init(struct ls_sqlite_tx *tx, struct ls_sqlite *s, struct ls_sqlite_db *db);
void ls_sqlite_tx_fini(struct ls_sqlite_tx *tx);

/* Begins anew within a transaction that is open already; its commit is somebody else's. */
void ls_sqlite_tx_enter(struct ls_sqlite_tx *tx);
/* Writes what the ops left in memory: before such a commit. */
LADE_CHECKED int ls_sqlite_tx_write(struct ls_sqlite_tx *tx);

/* BEGIN IMMEDIATE, waiting for other writers until db->busy_deadline. */
LADE_CHECKED int ls_sqlite_tx_begin(struct ls_sqlite_tx *tx);
/* Writes the queues and commits; on failure it is rolled back. `point` names the fault point. */
LADE_CHECKED int ls_sqlite_tx_commit(struct ls_sqlite_tx *tx, const char *point);
void ls_sqlite_tx_rollback(struct ls_sqlite_tx *tx);
/* Wakes whom the committed transaction has work for. */
void ls_sqlite_tx_ring(struct ls_sqlite_tx *tx);

/* The queue; *out is NULL when it was never used. */
LADE_CHECKED int ls_sqlite_tx_queue(struct ls_sqlite_tx *tx, const char *name,
                                    struct ls_sqlite_queue **out);
/* The same, made when it is not there. */
LADE_CHECKED int ls_sqlite_tx_queue_make(struct ls_sqlite_tx *tx, const char *name,
                                         struct ls_sqlite_queue **out);
LADE_CHECKED int ls_sqlite_tx_queue_by_num(struct ls_sqlite_tx *tx, int64_t num,
                                           struct ls_sqlite_queue **out);
/* Takes a deleted queue out of the transaction. */
void ls_sqlite_tx_queue_drop(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q);

/* Reads columns LS_SQLITE_QUEUE. */
void ls_sqlite_queue_read(sqlite3_stmt *st, struct ls_sqlite_queue *q);

/* Steps a statement that returns no row, and resets it. 0 or a failure. */
LADE_CHECKED int ls_sqlite_tx_do(struct ls_sqlite_tx *tx, sqlite3_stmt *st);
/* Steps: 1 for a row (the caller resets), 0 at the end or a failure (reset here). st NULL is a failure. */
LADE_CHECKED int ls_sqlite_tx_step(struct ls_sqlite_tx *tx, sqlite3_stmt *st);

static inline sqlite3_stmt *ls_sqlite_tx_stmt(struct ls_sqlite_tx *tx, enum ls_sqlite_sql which)
{
    return ls_sqlite_db_stmt(tx->db, which);
}

/* Fails the op with the connection's last error. */
int ls_sqlite_tx_fail(struct ls_sqlite_tx *tx);

#endif
