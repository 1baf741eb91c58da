/*
 * hall.h - ready jobs of keys that wait as they came, in runs like jobs without a key
 *
 * A turn of one job each takes a batch of many keys apart: each job is a row then, and each turn writes its key. Nobody gains by that
 * while no key has many jobs waiting and none has a limit. So such jobs come to the *hall*: their runs have the key
 * LS_SQLITE_COMPANY, which means "those that the envelopes tell", and no row of job_key counts them.
 *
 *     comes to the hall     a new ready job of a key that has less than LQ_TURN_JOBS there and none that stands by itself, while no
 *                           limit or pause of any key is set (gate.calm)
 *     stands in it          at the virtual time at which its key would have come into the ring, then by level, then as it came
 *     stays in company      active, and completed, dead or cancelled
 *     gets its own key      when it is to wait again (retry, snooze, handed back, revived), and when the hall is taken apart: before a
 *                           limit or a pause holds, and before keys are listed or shown
 *
 * queue.hall and queue.mates count the ready and the active ones, gate.alone the ready jobs of keys that stand by themselves.
 *
 * How many a key has in the hall is counted in memory (struct ls_sqlite_hall), from what was put through this connection and what others
 * put meanwhile. A process that does not know begins to count when the hall has no more than LQ_TURN_JOBS, so a key has at
 * most twice that many there, however many processes put. Of 32 queues at a time, those looked for last; two tables of each, of 2 MiB
 * at most (base/tally.h).
 */
#ifndef LADE_SQLITE_HALL_H
#define LADE_SQLITE_HALL_H

#include "base/tally.h"
#include "store/sqlite/keys.h"
#include "store/sqlite/runs.h"

#define LS_SQLITE_COMPANY   (-1)
#define LS_SQLITE_HALL_RANK (INT64_C(1) << 62)
#define LS_SQLITE_STRICT    INT64_MAX /* gate.calm_ms while a key has a limit or a pause */
#define LS_SQLITE_HALL_PART 1000      /* jobs that one transaction takes out of it */

/* Of one queue, kept from one transaction to the next. */
struct ls_sqlite_hall {
    int64_t queue;
    bool known;   /* all that is in the hall was counted, but for LQ_TURN_JOBS */
    bool stale;   /* others committed: there may be jobs above `seen` */
    bool asked;   /* in this transaction */
    int64_t seen; /* counted up to this job */
    struct lb_tally now,
        before; /* what came since the last change of the two, and what before that */
    int64_t now_rank, before_rank; /* the last rank that came in each time */
    struct ls_sqlite_hall *next;
};

/* Whether the new ready job `seq` comes to the hall. */
LADE_CHECKED int ls_sqlite_hall_admit(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q,
                                      const struct lq_put *it, int64_t seq, bool *yes);

/* Where it stands. */
static inline int64_t ls_sqlite_hall_rank(const struct ls_sqlite_gate *g, int64_t level)
{
    return LS_SQLITE_HALL_RANK + (g->v + LQ_STRIDE) * LQ_KEY_LEVELS + level;
}

/* Whether a ready run stands where it belongs. */
static inline bool ls_sqlite_hall_fits(const struct ls_sqlite_run *r)
{
    if (r->key != LS_SQLITE_COMPANY)
        return r->rank == ls_sqlite_run_rank(r);
    return r->rank > LS_SQLITE_HALL_RANK &&
           (r->rank - LS_SQLITE_HALL_RANK) % LQ_KEY_LEVELS == r->level;
}

static inline int64_t ls_sqlite_hall_at(const struct ls_sqlite_run *r)
{
    return (r->rank - LS_SQLITE_HALL_RANK) / LQ_KEY_LEVELS;
}

/* The run that stands first in it. 0, LADE_NOT_FOUND or a failure. */
LADE_CHECKED int ls_sqlite_hall_first(struct ls_sqlite_tx *tx, const struct ls_sqlite_queue *q,
                                      struct ls_sqlite_run *r);
/* A run that is to be the first of its key: also of those of it that are in the hall, once they are taken apart. */
LADE_CHECKED int ls_sqlite_hall_precede(struct ls_sqlite_tx *tx, const struct ls_sqlite_queue *q,
                                        struct ls_sqlite_run *r);
/* Jobs of company came into a state (n > 0) or left it. */
void ls_sqlite_hall_count(struct ls_sqlite_queue *q, int64_t state, int64_t n);
/* One job that was cut gets the key that its envelope tells; nothing when it was in no company. */
LADE_CHECKED int ls_sqlite_hall_name(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q,
                                     struct ls_sqlite_run *part);
/* Job seq of the run leaves company, in its state, and *r is it alone; nothing when the run is in none. */
LADE_CHECKED int ls_sqlite_hall_leave(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q,
                                      struct ls_sqlite_run *r, int64_t seq);
/* From now on every job of a key stands by itself; takes part the hall before they serve. */
void ls_sqlite_hall_close(struct ls_sqlite_queue *q, int64_t calm_ms);
/* Ready and active jobs of company get their keys, at most LS_SQLITE_HALL_PART. LADE_MORE when there may be others. */
LADE_CHECKED int ls_sqlite_hall_part(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q);
/* Opens the hall again when no limit is left. */
LADE_CHECKED int ls_sqlite_hall_trim(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q);
/* key_check.c's part of it. */
LADE_CHECKED int ls_sqlite_hall_check(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q,
                                      lq_finding_fn report, void *ctx);

/* tx.c: a transaction begins; others committed; it was rolled back; the end. */
void ls_sqlite_halls_begin(struct ls_sqlite_tx *tx);
void ls_sqlite_halls_stale(struct ls_sqlite_tx *tx);
void ls_sqlite_halls_forget(struct ls_sqlite_tx *tx);
void ls_sqlite_halls_fini(struct ls_sqlite_tx *tx);

#endif
