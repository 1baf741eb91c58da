/*
 * ahead.h - steps that ran ahead of the store, within one settle
 *
 * A step that its worker began before the end of the step before it was stored (queue/settle.h: goes_on) is never ready. When the same
 * call brings its end, too, it is never active either: its job comes into the file completed, and all such jobs of a call by one
 * insert and one run. When it does not, its job comes as a lease of its owner under the fence of the step before; those of one stretch
 * come together. What the flow knows of the steps changes in memory as ever (flow.h).
 *
 * So jobs that went through end behind all others of their call, which is one moment. Queues with events, keys or limits take each
 * step by itself.
 */
#ifndef LADE_SQLITE_AHEAD_H
#define LADE_SQLITE_AHEAD_H

#include "store/sqlite/runs.h"

struct ls_sqlite_ahead {
    struct ls_sqlite_tx *tx;
    struct ls_sqlite_queue *q; /* whose steps may go through; NULL: none */
    /* Those that went through; all arrays have room for each item of the call. */
    struct lq_put *put;
    struct lq_settle *end;
    size_t n;
    /* To be leased. */
    struct lq_put *held;
    struct lq_settle **behind; /* the item that goes on with it */
    size_t n_held;
};

/* For a call of these items. */
LADE_CHECKED int ls_sqlite_ahead_init(struct ls_sqlite_ahead *a, struct ls_sqlite_tx *tx,
                                      const struct lq_settle *it, size_t n);
/* Whether the step that put wants to make a job went through, as `next` says, the item behind `it`. */
bool ls_sqlite_ahead_through(const struct ls_sqlite_ahead *a, const struct ls_sqlite_queue *q,
                             const struct lq_put *put, const struct lq_settle *it,
                             const struct lq_settle *next);
/* It went through. */
void ls_sqlite_ahead_add(struct ls_sqlite_ahead *a, const struct lq_put *put,
                         const struct lq_settle *end);
/* It is to be leased to the owner of `it`. */
void ls_sqlite_ahead_hold(struct ls_sqlite_ahead *a, const struct lq_put *put,
                          struct lq_settle *it);
/* Leases what is held, all of one queue; those items went on whose job was not known before. */
LADE_CHECKED int ls_sqlite_ahead_lease(struct ls_sqlite_ahead *a, struct ls_sqlite_queue *q,
                                       int64_t worker);
/* Writes what went through. */
LADE_CHECKED int ls_sqlite_ahead_flush(struct ls_sqlite_ahead *a);

#endif
