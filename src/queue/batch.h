/*
 * batch.h - group commit of concurrent enqueues
 *
 *   caller A --put--> [A]                 A leads: one store.put for A alone, at once
 *   caller B --put--> [B]   \
 *   caller C --put--> [B,C]  > wait       when A is back, B leads for B and C together
 *
 * There is no timer and no thread: a lone caller pays one uncontended lock; under load each round trip or transaction
 * carries everything that arrived during the one before. Leadership passes on after each commit, so nobody commits for
 * others for longer than one step.
 *
 * Bounds: a commit carries at most LQ_BATCH_JOBS jobs unless a single call has more. Callers wait in their own stack
 * frame, so the queue needs no memory and its length is the number of calling threads.
 *
 * Thread safety: lq_batch_put from any number of threads.
 */
#ifndef LADE_QUEUE_BATCH_H
#define LADE_QUEUE_BATCH_H

#include "base/list.h"
#include "queue/store.h"
#include "rt/seam.h"

#define LQ_BATCH_JOBS 1000

struct lq_batch {
    struct lq_store *store;
    struct lr_mutex lock;
    struct lb_list waiting; /* guarded by: lock */
    bool leading;           /* guarded by: lock; someone is in the store */
};

void lq_batch_init(struct lq_batch *b, struct lq_store *store);
void lq_batch_fini(struct lq_batch *b);

/* store.put of the n items of one call, all or none, perhaps together with other calls. Same results. */
LADE_CHECKED int lq_batch_put(struct lq_batch *b, struct lq_put *put, size_t n, lade_err *err);

#endif
