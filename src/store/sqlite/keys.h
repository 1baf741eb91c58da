/*
 * keys.h - keys and gates: read once and kept like queues (tx.h), counted as runs move, placed and written at the end
 *
 * ls_sqlite_run_cut and _add count the jobs of a key, so no op can forget to. Which place follows from the numbers (limit.h in
 * src/queue) is decided by ls_sqlite_keys_flush: before a take looks at the ring, and before the commit.
 */
#ifndef LADE_SQLITE_KEYS_H
#define LADE_SQLITE_KEYS_H

#include "queue/key_store.h"
#include "queue/limit.h"
#include "store/sqlite/take.h"
#include "store/sqlite/tx.h"

struct ls_sqlite_gate {
    struct lq_limit limit, usual;
    int64_t v, free_at, free_until_us, tat_us, held;
    int64_t alone, calm_ms; /* hall.h */
    bool dirty;
};

struct ls_sqlite_key {
    int64_t num;
    struct ls_sqlite_queue *q;
    struct lb_slice name; /* behind the number of the queue */
    enum lq_key_place place;
    int64_t at;
    struct lq_key_facts facts;
    int64_t waiting, ended;
    struct lq_limit own;
    int64_t was_held;
    int64_t was[5];             /* its counts when it was read or last placed */
    bool dirty;                 /* something else has changed */
    bool touched;               /* in tx->keys */
    struct ls_sqlite_key *link; /* of tx->keys */
    struct ls_sqlite_key *next_kept;
};

/* The gate of a queue; *out is NULL when it has none. */
LADE_CHECKED int ls_sqlite_gate(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q,
                                struct ls_sqlite_gate **out);
/* The same, made when it is not there. */
LADE_CHECKED int ls_sqlite_gate_make(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q,
                                     struct ls_sqlite_gate **out);

/* By name: *out is NULL when it is not known. */
LADE_CHECKED int ls_sqlite_key_find(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q,
                                    struct lb_slice name, struct ls_sqlite_key **out);
/* The same, made when it is not there. */
LADE_CHECKED int ls_sqlite_key_make(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q,
                                    struct lb_slice name, struct ls_sqlite_key **out);
/* By number, not 0. */
LADE_CHECKED int ls_sqlite_key_get(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q, int64_t num,
                                   struct ls_sqlite_key **out);
/* It changed, beyond its counts. */
void ls_sqlite_key_touch(struct ls_sqlite_tx *tx, struct ls_sqlite_key *k);
/* Columns LS_SQLITE_KEY of a row. */
void ls_sqlite_key_read(sqlite3_stmt *st, struct ls_sqlite_key *k);

/* Jobs of a run came into its state (n > 0) or left it (n < 0). */
LADE_CHECKED int ls_sqlite_key_count(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q,
                                     const struct ls_sqlite_run *r, int64_t n);
/* Whether a run that has these flags comes to READY before the others of its key: it was away, under FIFO. */
LADE_CHECKED int ls_sqlite_key_goes_first(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q,
                                          const struct ls_sqlite_run *r, bool *first);
/* What was cut from r, to READY: at the end of its level, or so before the others. Nothing is written. */
LADE_CHECKED int ls_sqlite_run_return(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q,
                                      const struct ls_sqlite_run *r, struct ls_sqlite_run *part);
struct lq_limit ls_sqlite_key_limit(const struct ls_sqlite_key *k);

/* Places what changed and writes it. */
LADE_CHECKED int ls_sqlite_keys_flush(struct ls_sqlite_tx *tx);
/* Forgets what was read. Not while some of it is to be written. */
void ls_sqlite_keys_forget(struct ls_sqlite_tx *tx);

/*
 * turns.c: the take of a queue that is gated. `move` takes [0, n) of a run; of NULL it
 * leases what it took.
 */
typedef int (*ls_sqlite_move_fn)(struct ls_sqlite_tx *tx, void *ctx, const struct ls_sqlite_run *r,
                                 int64_t n);
LADE_CHECKED int ls_sqlite_take_turns(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q,
                                      int64_t max, ls_sqlite_move_fn move, void *ctx);
/* When a limit lets a ready job of the queue pass; *next_ms is kept when earlier. */
LADE_CHECKED int ls_sqlite_next_turn(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q,
                                     int64_t *next_ms);
/* The first run of a key in READY, 0 of the jobs without one. 0, LADE_NOT_FOUND or a failure. */
LADE_CHECKED int ls_sqlite_run_first_of_key(struct ls_sqlite_tx *tx,
                                            const struct ls_sqlite_queue *q, int64_t num,
                                            struct ls_sqlite_run *r);

/* op_limit.c: nothing of the key (0: of the jobs without one) is taken until then. */
LADE_CHECKED int ls_sqlite_throttle(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q, int64_t key,
                                    int64_t until_ms);
/* key_check.c: reports what is wrong with keys. */
LADE_CHECKED int ls_sqlite_keys_check(struct ls_sqlite_tx *tx, lq_finding_fn report, void *ctx);
/* Deletes what a queue that is forgotten had of keys. */
LADE_CHECKED int ls_sqlite_keys_drop(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q);
/* Deletes keys of a queue that nothing refers to; at most max. */
LADE_CHECKED int ls_sqlite_keys_trim(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q,
                                     size_t max);

#endif
