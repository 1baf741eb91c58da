/*
 * ahead.h - steps that a slot begins before the store has the end of the step before
 *
 *     slot    [ step 0 ][ step 1 ][ step 2 ] ...            bodies came with the take (lq_leased.follow)
 *     done     0 goes_on    1 goes_on    2
 *     trip           [ 0 ]                [ 1, 2 ]          each tells whether the next one was leased (lq_settle.went_on)
 *
 * A handler said that its step is completed: the next one of its chain begins at once in the same slot, and the step goes to done as
 * ever, with `goes_on`. So nothing is held back, and each trip stores what there is. Until the trip has told, the next one is not
 * *assured*: whatever its handler asks of the store about itself waits for that (lq_ahead_await). When it was not leased it is lost
 * as with a lost lease, and what came behind it.
 *
 * A slot goes on for LQ_AHEAD_TIME from the moment at which the step that was taken began, so with steps that take long nothing is
 * run ahead, and no other job waits for longer than that because of it. Kinds whose handlers ask the store are not run ahead for a
 * while: they would only wait.
 *
 * Locking: as worker.h.
 */
#ifndef LADE_QUEUE_AHEAD_H
#define LADE_QUEUE_AHEAD_H

#include "queue/worker.h"

#define LQ_AHEAD_TIME (5 * LADE_MILLISECOND)
#define LQ_AHEAD_WARY 1000 /* times a kind is not run ahead after its handler asked the store */

/*
 * The outcome of slot->run[at] is written, its handler said completed: moves it to done and begins the step behind it in its place, which
 * is returned, and *ring set when lq_worker_ring is due. NULL: it does not go on, and is where it was. Without the lock.
 */
struct lade_job *lq_ahead_begin(struct lq_slot *slot, uint32_t at, bool *ring);

/* A trip told what became of the job, whose step behind it runs or has run. Under the lock. */
void lq_ahead_told(struct lade_worker *w, struct lade_job *job, bool went_on);

/*
 * Before a handler asks the store about its job: waits until its lease is there. 0; LADE_STALE when it is lost; -LADE_EUNAVAILABLE
 * when the job is told to stop before. Its own thread only.
 */
LADE_CHECKED int lq_ahead_await(struct lade_job *job, lade_err *err);

/*
 * The same for who cannot wait, as the store may wait for him: 0, or LADE_STALE; then, whatever the handler says but OK, the job is
 * handed back and spends nothing.
 */
LADE_CHECKED int lq_ahead_ask(struct lade_job *job);

#endif
