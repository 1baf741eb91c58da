/*
 * apart.h - results with a time of their own, apart from their jobs (lq_settle.result_ttl_ms)
 *
 * A row of the table apart is of a queue and an id, from one end of that job: `at`, by which a later end of a job of the same id is told
 * from it. It goes when its time is over (trim), when the job is removed by id, with its queue, or when a later one takes its place.
 *
 * Thread safety, failures: as tx.h.
 */
#ifndef LADE_SQLITE_APART_H
#define LADE_SQLITE_APART_H

#include "store/sqlite/tx.h"

static inline bool ls_sqlite_is_apart(const struct lq_settle *it)
{
    return it->to == LQ_TO_COMPLETED && it->result_ttl_ms > 0 && it->result.n > 0;
}

/* Of k items that complete now, those that are kept apart. */
LADE_CHECKED int ls_sqlite_apart_add(struct ls_sqlite_tx *tx, const struct ls_sqlite_queue *q,
                                     const struct lq_settle *it, size_t k);
/* Into the arena; *out is left alone when there is none. at_ms: of the job that is there, or 0 for one that is gone. */
LADE_CHECKED int ls_sqlite_apart_get(struct ls_sqlite_tx *tx, int64_t queue, struct lb_slice id,
                                     int64_t at_ms, struct lb_arena *arena, struct lb_mut *out);
LADE_CHECKED int ls_sqlite_apart_del(struct ls_sqlite_tx *tx, int64_t queue, struct lb_slice id);
/* All of a queue. */
LADE_CHECKED int ls_sqlite_apart_drop(struct ls_sqlite_tx *tx, int64_t queue);
/* Up to max whose time is over; *more when some are left. */
LADE_CHECKED int ls_sqlite_apart_trim(struct ls_sqlite_tx *tx, size_t max, bool *more);

#endif
