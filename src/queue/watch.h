/*
 * watch.h - all waits of a handle for jobs, log lines and events, as one waiter of the store
 *
 * However many threads and tasks wait, the store sees one name and holds one place, or one connection, for it. The first to come
 * leads: it shows the store all that is waited for (watch), sleeps in the store until something may have come, and looks again;
 * the others sleep here until the leader finds what they wait for, or until it is through and one of them leads on. No thread of its own,
 * no timer: nobody waits, nothing runs.
 *
 * A ring says only that something came, so each costs a look at all that this handle waits for, in steps of LQ_TAKE_MAX; rings that come
 * during a look are one.
 *
 * Thread safety: all functions.
 */
#ifndef LADE_QUEUE_WATCH_H
#define LADE_QUEUE_WATCH_H

#include "base/ident.h"
#include "base/list.h"
#include "queue/event.h"
#include "queue/store.h"
#include "rt/seam.h"

struct lq_hub {
    struct lq_store *store;
    struct lr_mutex lock;
    struct lb_list waits; /* guarded by: lock; struct wait, oldest first */
    uint64_t number;      /* guarded by: lock; of the last wait */
    bool led;             /* guarded by: lock */
    bool changed;         /* guarded by: lock; there are waits that the store was not shown */
    bool sleeps;          /* guarded by: lock; the leader is in the store's wait */
    char *lanes; /* owned by: the leader; queues of the last watch, LADE_NAME_MAX + 1 each */
    size_t n_lanes, n_seen; /* owned by: the leader; beyond LQ_LANES_MAX queues are only counted */
    char name[LB_ULID_LEN + 1];
};

struct lade_waiter {
    struct lq_hub *hub;
    bool cancelled; /* guarded by: hub->lock */
};

void lq_hub_init(struct lq_hub *h, struct lq_store *store);
void lq_hub_fini(struct lq_hub *h);

/*
 * Waits until one of n things (1..LQ_LANES_MAX) is there: 0, each it[i].outcome is set. Else LADE_TIMEOUT at the deadline, LADE_STOPPED
 * when `w` (may be NULL) is cancelled, or a failure.
 */
LADE_CHECKED int lq_hub_wait(struct lq_hub *h, struct lq_watch *it, size_t n, int64_t deadline,
                             struct lade_waiter *w, lade_err *err);
void lq_hub_cancel(struct lade_waiter *w);
bool lq_waiter_is_cancelled(struct lade_waiter *w);

#endif
