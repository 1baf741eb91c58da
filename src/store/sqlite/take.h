/* take.h - handing out jobs under leases, for take and reclaim */
#ifndef LADE_SQLITE_TAKE_H
#define LADE_SQLITE_TAKE_H

#include "store/sqlite/runs.h"

/* What is being handed out: jobs are appended to out->job, whose array grows in out->arena. */
struct ls_sqlite_take {
    const struct lq_take *ask;
    struct lq_leased_vec *out;
    size_t before; /* out->n at the start: a repeated op begins there again */
    size_t cap;    /* of out->job */
    size_t max;
    int64_t worker;
};

/* Room for n more. */
LADE_CHECKED int ls_sqlite_take_reserve(struct ls_sqlite_tx *tx, struct ls_sqlite_take *t,
                                        size_t n);
/* Appends the jobs of a run that is active now. */
LADE_CHECKED int ls_sqlite_take_read(struct ls_sqlite_tx *tx, struct ls_sqlite_take *t,
                                     const struct ls_sqlite_run *r, uint32_t lane,
                                     const struct lq_leased *as);

/* ready -> active for up to ask->max jobs of the lanes; promotes first. 0, or LADE_STALE when the worker is not alive. */
LADE_CHECKED int ls_sqlite_take_run(struct ls_sqlite_tx *tx, struct ls_sqlite_take *t);

/* Due jobs of a queue to ready, at most max. Adds to *n. *next_ms: the earliest that is not due, kept when earlier. */
LADE_CHECKED int ls_sqlite_promote_due(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q,
                                       size_t max, size_t *n);
LADE_CHECKED int ls_sqlite_next_due(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q,
                                    int64_t *next_ms);

#endif
