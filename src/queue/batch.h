/*
 * batch.h - group commit of concurrent enqueues
 *
 *   caller A --put--> [A]                 A leads: one store.put for A alone, at once
 *   caller B --put--> [B]   \
 *   caller C --put--> [B,C]  > wait       when A is back, B leads for B and C together
 *
 * There is no timer, no thread and no lock: a lone caller pays two atomic exchanges; under load each round trip or transaction
 * carries everything that arrived during the one before. Leadership passes on after each commit, so nobody commits for
 * others for longer than one step.
 *
 * The door is one word: whether somebody leads, and who came since the leader last looked, as a chain of their frames.
 *
 *   NULL --A comes--> A --A looks--> busy --B, C come--> C, B, busy --A is done--> the same, and B is told to lead
 *    ^                               |
 *    +-----------A is done-----------+
 *
 * Only the leader takes frames out, so it may read those it sees.
 *
 * Callers that enqueue in loops come back together, a few microseconds after the commit that released them. The first of
 * them waits for those: for as many as the last commit and the waiting after it were, for some microseconds each, only right
 * after a commit, and only while trying shows that they come (base/spin.h). Four producers then share one commit instead of
 * committing one and three in turn.
 *
 * Where more than 16 single jobs go in one commit, the leader gives them ids that follow each other, since a store keeps such jobs as one
 * (store.h, ADR 0051): their callers do not know them yet. Those with a unique key, a key or a time keep the id that their call made.
 *
 * Who waits for a commit first gives its CPU away again and again, and then sleeps (rt/patience.h). Those who sleep for the same
 * commit sleep on one pulse (rt/seam.h), raised once. There are three: the first to come while somebody leads has its own, since it
 * is woken alone, to lead; the others have the two others in turn, commit by commit.
 *
 * Bounds: a commit carries at most LQ_BATCH_JOBS jobs unless a single call has more. Callers wait in their own stack
 * frame.
 *
 * Thread safety: lq_batch_put from any number of threads and tasks.
 */
#ifndef LADE_QUEUE_BATCH_H
#define LADE_QUEUE_BATCH_H

#include <stdatomic.h>

#include "base/spin.h"
#include "queue/store.h"
#include "rt/patience.h"

#define LQ_BATCH_JOBS 1000

struct lq_batch_call;

struct lq_batch {
    struct lq_store *store;
    _Atomic(struct lq_batch_call *) door;
    atomic_uint n_came;  /* ever */
    atomic_uint n_taken; /* by leaders, for a commit, ever */
    struct lr_patience patience;
    atomic_uint turn; /* the pulse of those who come, but for the first: 0, 1 */
    struct lr_pulse pulse[3];
    /* the leader's */
    struct lq_batch_call *oldest, *newest; /* taken in, not committed yet */
    struct lb_spin company;                /* waiting for others */
    int expected;                          /* callers that may come back */
    int64_t released_at;                   /* when they were released; lb_clock_mono */
};

void lq_batch_init(struct lq_batch *b, struct lq_store *store);
void lq_batch_fini(struct lq_batch *b);

/*
 * store.put of the n items of one call, all or none, perhaps together with other calls. Same results. own: where the id of the one item
 * lies, when it was made for this call and nobody knows it yet; NULL otherwise. The leader may write another there.
 */
LADE_CHECKED int lq_batch_put(struct lq_batch *b, struct lq_put *put, size_t n, lade_id *own,
                              lade_err *err);

/* Callers that no leader has taken to the store yet: a glance, it may be over at once. */
int lq_batch_waiting(const struct lq_batch *b);

#endif
