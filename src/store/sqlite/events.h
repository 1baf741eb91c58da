/*
 * events.h - the streams of events, as the ops of a write transaction see them
 *
 * Events gather in the queue (tx.h) and are written before the commit as one row for each queue. Ops that have the jobs at hand make their
 * events themselves; for all others ls_sqlite_run_add does, which reads ids and kinds once more. A row that cannot be written is
 * left out and the transaction goes on, unless that has undone the transaction itself.
 */
#ifndef LADE_SQLITE_EVENTS_H
#define LADE_SQLITE_EVENTS_H

#include "queue/event.h"
#include "store/sqlite/runs.h"

/* Nothing without memory. Callers ask for q->events > 0 first. */
void ls_sqlite_event(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q, const struct lq_ev *e);
/* ACTIVE or STALLED. */
void ls_sqlite_event_taken(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q,
                           const struct lq_leased *l, enum lade_event_type type);
/* Of k items that went where `as` says. */
void ls_sqlite_event_settled(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q,
                             const struct lq_settle *it, size_t k, const struct lq_settle *as);
/* Of the jobs of a run that is about to come into its state. */
LADE_CHECKED int ls_sqlite_event_run(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q,
                                     const struct ls_sqlite_run *r);

/* Before the commit. */
LADE_CHECKED int ls_sqlite_events_write(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q);
/* Removes the stream's rows. */
LADE_CHECKED int ls_sqlite_events_drop(struct ls_sqlite_tx *tx, const struct ls_sqlite_queue *q);

/* op_event.c: after the commit. */
void ls_sqlite_ring_watchers(struct ls_sqlite *s, const char *queue);

#endif
