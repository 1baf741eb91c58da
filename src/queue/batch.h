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
 * Callers that enqueue in loops come back together, a few microseconds after the commit that released them. The first of
 * them waits for those: for as many as the last commit and the waiting after it were, for some microseconds each, only right
 * after a commit, and only while trying shows that they come (base/spin.h). Four producers then share one commit instead of
 * committing one and three in turn.
 *
 * A caller that has to wait sleeps in a seat, which is the batch's and not in its frame, so that it can be woken after the
 * lock is released: woken under the lock it would fall asleep again at once. Seats are kept for the next caller.
 *
 * Bounds: a commit carries at most LQ_BATCH_JOBS jobs unless a single call has more. Callers wait in their own stack
 * frame; there are as many seats as ever waited at once. Without memory for a seat the call fails, nothing put.
 *
 * Thread safety: lq_batch_put from any number of threads.
 */
#ifndef LADE_QUEUE_BATCH_H
#define LADE_QUEUE_BATCH_H

#include <stdatomic.h>

#include "base/list.h"
#include "base/spin.h"
#include "queue/store.h"
#include "rt/seam.h"

#define LQ_BATCH_JOBS 1000

struct lq_batch {
    struct lq_store *store;
    struct lr_mutex lock;
    struct lb_list waiting;  /* guarded by: lock */
    struct lb_list seats;    /* guarded by: lock; free ones */
    atomic_size_t n_waiting; /* of `waiting`; written under the lock */
    struct lb_spin company;  /* the leader's: waiting for others */
    size_t expected;         /* the leader's: callers that may come back */
    int64_t released_at;     /* the leader's: when they were released; lb_clock_mono */
    bool leading;            /* guarded by: lock; someone is in the store */
};

void lq_batch_init(struct lq_batch *b, struct lq_store *store);
void lq_batch_fini(struct lq_batch *b);

/* store.put of the n items of one call, all or none, perhaps together with other calls. Same results. */
LADE_CHECKED int lq_batch_put(struct lq_batch *b, struct lq_put *put, size_t n, lade_err *err);

#endif
