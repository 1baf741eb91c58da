/* dead.h - the dead by class: kept by whoever moves jobs into the dead and out of them */
#ifndef LADE_SQLITE_DEAD_H
#define LADE_SQLITE_DEAD_H

#include "store/sqlite/runs.h"

/* Job seq has died: `death`, or NULL for a class named as the reason. */
LADE_CHECKED int ls_sqlite_death_add(struct ls_sqlite_tx *tx, const struct ls_sqlite_queue *q,
                                     int64_t seq, enum lq_reason reason,
                                     const struct lq_death *death);
/* Jobs seq .. seq + n - 1 are dead no longer. */
LADE_CHECKED int ls_sqlite_deaths_del(struct ls_sqlite_tx *tx, int64_t seq, int64_t n);

/* A held unique key. */
struct ls_sqlite_lock {
    int64_t job;
    int64_t until;
    int64_t expires_ms, first_ms;
    bool trails;
};

/*
 * conflict.c: an item that wants more than to be told that its key is held. No run is open. `next_seq` is the number of a job that it
 * adds, if it does: outcome 0 then.
 */
LADE_CHECKED int ls_sqlite_conflict(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q,
                                    struct lq_put *it, const struct ls_sqlite_lock *lock);
/* op_put.c: writes the job under seq, or LADE_DUPLICATE when the id is there; the key as held by it. */
LADE_CHECKED int ls_sqlite_job_insert(struct ls_sqlite_tx *tx, const struct ls_sqlite_queue *q,
                                      const struct lq_put *it);
LADE_CHECKED int ls_sqlite_lock_set(struct ls_sqlite_tx *tx, const struct ls_sqlite_queue *q,
                                    const struct lq_put *it, const struct ls_sqlite_lock *lock);
/* conflict.c: another body for a job. */
LADE_CHECKED int ls_sqlite_job_set_body(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q,
                                        const struct ls_sqlite_run *r, int64_t seq,
                                        struct lb_slice body);

/* op_admin.c: one job of act. */
struct ls_sqlite_flows;
LADE_CHECKED int ls_sqlite_act_on(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q,
                                  enum lade_job_verb verb, struct lb_slice id,
                                  struct ls_sqlite_flows *flows);
/* op_list.c */
/* Appends one job of a run; the room is made. */
LADE_CHECKED int ls_sqlite_row_add(struct ls_sqlite_tx *tx, const char *queue,
                                   const struct ls_sqlite_run *r, int64_t off,
                                   struct lq_row_vec *out);

#endif
