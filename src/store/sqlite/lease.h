/* lease.h - workers as the ops of a write transaction see them */
#ifndef LADE_SQLITE_LEASE_H
#define LADE_SQLITE_LEASE_H

#include "store/sqlite/runs.h"

/* The number of a live worker. 0, LADE_STALE (unknown, dead, left or reclaimed) or a failure. */
LADE_CHECKED int ls_sqlite_worker_live(struct ls_sqlite_tx *tx, const char *id, int64_t *num);
/* 0 when the worker with this number is that incarnation, LADE_STALE when not. */
LADE_CHECKED int ls_sqlite_worker_is(struct ls_sqlite_tx *tx, int64_t num, const char *id);

/* 0 when the job of that number has that id, LADE_STALE when not. */
LADE_CHECKED int ls_sqlite_job_has_id(struct ls_sqlite_tx *tx, int64_t seq, struct lb_slice id);

/* Whether a comma separated list has the queue. */
bool ls_sqlite_list_has(const char *list, const char *queue);

/* Asks the worker, with its next renew, to stop the job. */
LADE_CHECKED int ls_sqlite_stop_add(struct ls_sqlite_tx *tx, const struct ls_sqlite_queue *q,
                                    const struct ls_sqlite_run *r, struct lb_slice id);
/* Takes that back. */
LADE_CHECKED int ls_sqlite_stop_del(struct ls_sqlite_tx *tx, const struct ls_sqlite_queue *q,
                                    const struct ls_sqlite_run *r);

#endif
