/*
 * beat.h - what a worker tells a store to stay alive, and learns by it
 *
 * Thread safety, results and times: as store.h.
 */
#ifndef LADE_QUEUE_BEAT_H
#define LADE_QUEUE_BEAT_H

#include "queue/store.h"

/*
 * What lies ahead in the lanes of a beat, in ms from now; LB_FOREVER = nothing. So workers need not ask for it all the time. A store
 * that does not know leaves it alone.
 */
struct lq_ahead {
    int64_t
        death_in_ms; /* the lease of another incarnation ends, if that does not renew; 0 = one has ended: see reclaim */
    int64_t
        due_in_ms; /* a scheduled or retrying job falls due, in a paused queue too; 0 = one has: see promote */
    bool
        other_store; /* since the last beat the server was replaced or started again: what was done last may be undone */
    bool schedules; /* there are some that fire: schedule_store.h */
};

struct lq_report;
struct lq_orders;

struct lq_beat {
    const char *worker; /* incarnation: [A-Za-z0-9]{1,LADE_ID_MAX} */
    const char *name;   /* for operators */
    struct lq_lanes lanes;
    int64_t lease_ms;
    int64_t started_ms;
    int concurrency;
    bool first;             /* registers; otherwise an unknown incarnation is STALE */
    struct lq_ahead *ahead; /* out when renew gives 0, unless NULL */
    /* control_store.h; both NULL: neither tells nor asks. A store without controls leaves them alone. */
    const struct lq_report *report;
    struct lq_orders *orders; /* out, zeroed by the caller */
};

/*
 * Jobs of this worker that an operator wants stopped: cancelled, killed or removed. Bounded by max of the call. One may come
 * for a lease that was settled meanwhile, and one that was marked under a former owner may come again: the fence tells.
 */
struct lq_stop {
    char queue[LADE_NAME_MAX + 1];
    char id[LADE_ID_MAX + 1];
    uint64_t fence;
};

#endif
