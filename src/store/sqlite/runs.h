/*
 * runs.h - stretches of jobs that move through their life together
 *
 * A run is n jobs with consecutive numbers (job.seq), all in one state and beside each other in its order. Every change
 * of state is: cut a stretch out of the run that has it, add it again elsewhere.
 *
 *     ready   [100 ............................ 199]          a batch of 100 was put: one row
 *     take 30:
 *     active  [100 ... 129]   ready  [130 ..... 199]          two rows
 *     settle 110 as retrying:
 *     active  [100..109] [111..129]   retrying [110]          as many rows as it takes, one for each job at worst
 *
 * A run that would continue its neighbour becomes part of it. So a batch costs a few row operations instead of a few
 * for each job, and single jobs cost what a table with a state column would.
 */
#ifndef LADE_SQLITE_RUNS_H
#define LADE_SQLITE_RUNS_H

#include "queue/limit.h"
#include "store/sqlite/tx.h"

enum ls_sqlite_flag {
    LS_SQLITE_BEGUN = 1,
    LS_SQLITE_KILL = 2,
    LS_SQLITE_CANCEL = 4,
    LS_SQLITE_AWAY = 8 /* scheduled or retrying, of a key: was active, and keeps its place */
};

/* Where it stands in READY. */
static inline int64_t ls_sqlite_run_rank(const struct ls_sqlite_run *r)
{
    return r->key * LQ_KEY_LEVELS + r->level;
}

/* Reads columns LS_SQLITE_RUN from column 0 on. */
void ls_sqlite_run_read(sqlite3_stmt *st, struct ls_sqlite_run *r);

/* The run that has job `seq`. 0, LADE_NOT_FOUND or a failure. */
LADE_CHECKED int ls_sqlite_run_of(struct ls_sqlite_tx *tx, int64_t seq, struct ls_sqlite_run *r);
/* The active run of the queue that has `fence`. 0, LADE_NOT_FOUND or a failure. */
LADE_CHECKED int ls_sqlite_run_of_fence(struct ls_sqlite_tx *tx, const struct ls_sqlite_queue *q,
                                        uint64_t fence, struct ls_sqlite_run *r);
/* The first run of a state in its order. 0, LADE_NOT_FOUND or a failure. */
LADE_CHECKED int ls_sqlite_run_first(struct ls_sqlite_tx *tx, const struct ls_sqlite_queue *q,
                                     enum lade_state state, struct ls_sqlite_run *r);

/* Takes [off, off + k) out of r, whose jobs are then in no run until they are added or deleted; counts follow. */
LADE_CHECKED int ls_sqlite_run_cut(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q,
                                   const struct ls_sqlite_run *r, int64_t off, int64_t k);
/* Adds a run, or appends it to the one it continues; counts follow. */
LADE_CHECKED int ls_sqlite_run_add(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q,
                                   const struct ls_sqlite_run *r);

/*
 * What [off, off + k) of r becomes in another state: fills *to, taking positions from the queue. Nothing is written.
 */
struct ls_sqlite_run ls_sqlite_run_part(const struct ls_sqlite_run *r, int64_t off, int64_t k);
void ls_sqlite_run_to_ready(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q,
                            struct ls_sqlite_run *r);
LADE_CHECKED int ls_sqlite_run_to_front(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q,
                                        struct ls_sqlite_run *r);
/* SCHEDULED or RETRYING. */
void ls_sqlite_run_to_due(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q,
                          struct ls_sqlite_run *r, enum lade_state state, int64_t due_ms);
void ls_sqlite_run_to_active(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q,
                             struct ls_sqlite_run *r, int64_t worker);
/* COMPLETED, DEAD or CANCELLED; frees the unique locks of the jobs and counts the totals. */
LADE_CHECKED int ls_sqlite_run_to_ended(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q,
                                        struct ls_sqlite_run *r, enum lade_state state,
                                        enum lq_reason reason);

/* op_put.c: new -> ready | scheduled; the outcomes are in the items. */
LADE_CHECKED int ls_sqlite_put_run(struct ls_sqlite_tx *tx, struct lq_put *put, size_t n);

/*
 * New jobs of one queue, which are in no run until they are added: *seq is the first one's number, the others follow. LADE_DUPLICATE:
 * some ids are known, and what would be their numbers is not there.
 */
LADE_CHECKED int ls_sqlite_jobs_insert(struct ls_sqlite_tx *tx, const struct ls_sqlite_queue *q,
                                       const struct lq_put *it, size_t n, int64_t *seq);

/* op_admin.c */
/* The job and the run that has it. 0, LADE_NOT_FOUND or a failure. */
LADE_CHECKED int ls_sqlite_job_find(struct ls_sqlite_tx *tx, const struct ls_sqlite_queue *q,
                                    struct lb_slice id, int64_t *seq, struct ls_sqlite_run *r);
/* [off, off + k) of r to the end of ready; what had ended gets all attempts back. */
LADE_CHECKED int ls_sqlite_job_revive(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q,
                                      const struct ls_sqlite_run *r, int64_t off, int64_t k);
/* Kills or cancels job off of r; an active one is marked. 0, LADE_WRONG_STATE or a failure. */
LADE_CHECKED int ls_sqlite_job_stop(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q,
                                    const struct ls_sqlite_run *r, int64_t off, bool kill,
                                    struct lb_slice id);
bool ls_sqlite_state_is_ended(int64_t state);

/* op_schedule.c: whether any schedule fires. */
LADE_CHECKED int ls_sqlite_schedules_any(struct ls_sqlite_tx *tx, bool *any);

/* Frees the locks that hold only until a job is first taken. */
LADE_CHECKED int ls_sqlite_locks_start(struct ls_sqlite_tx *tx, int64_t seq, int64_t n);
/* Deletes jobs that were cut, with their locks. */
LADE_CHECKED int ls_sqlite_jobs_del(struct ls_sqlite_tx *tx, int64_t seq, int64_t n);
/* Gives jobs that were cut a fresh start: no result, counts of the history zero. */
LADE_CHECKED int ls_sqlite_jobs_renew(struct ls_sqlite_tx *tx, int64_t seq, int64_t n);
/* Deletes the oldest jobs of a state: at most max, down to `keep`, and all that ended before `before_ms`. Adds to *n. */
LADE_CHECKED int ls_sqlite_jobs_drop(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q,
                                     enum lade_state state, int64_t keep, int64_t before_ms,
                                     int64_t max, size_t *n);
/* Retention by count of the ended states, after a step that ended n jobs. */
LADE_CHECKED int ls_sqlite_jobs_retain(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q,
                                       int64_t n);

#endif
