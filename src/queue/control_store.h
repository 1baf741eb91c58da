/*
 * control_store.h - orders to workers and what these tell of themselves, as stores keep them
 *
 * A worker's record has the wish that holds for it (a state, not a message, so a repeat changes nothing) and how often its stacks
 * have been asked for; the renewal brings both. With a renewal the worker tells who it is and what state it is in, when that has
 * changed since it told last, and the stacks that it made. All of it goes with the worker.
 *
 * Thread safety, results and times: as store.h.
 */
#ifndef LADE_QUEUE_CONTROL_STORE_H
#define LADE_QUEUE_CONTROL_STORE_H

#include <lade/control.h>

#include "queue/beat.h"

#define LQ_ABOUT_MAX     160 /* bytes of what a worker tells: "state pid version host" */
#define LQ_STACKS_AGE_MS (INT64_C(3600) * 1000)

/* In lq_beat: what is told. */
struct lq_report {
    struct lb_slice about;  /* empty = as before */
    struct lb_slice stacks; /* empty = none; else at most LADE_STACKS_MAX */
    uint64_t made;          /* with stacks: up to which asking they answer */
};

/* From a renewal: what is asked. */
struct lq_orders {
    int64_t wish; /* enum lade_worker_order, 0 = none */
    uint64_t asked;
};

struct lq_control {
    struct lq_orders orders;
    struct lb_slice about, stacks; /* in the arena */
    uint64_t made;
    int64_t stacks_ms; /* store's clock; 0 = never */
};

struct lq_control_ops {
    /* RESUME, QUIET or STOP becomes the wish; STACKS: asked grows by one. NOT_FOUND: not live. WRONG_STATE: the wish is STOP and stays. */
    int (*order)(struct lq_store *s, const char *worker, enum lade_worker_order order,
                 lade_err *err);
    /* All zero for one that has told nothing and was asked nothing, live or not. */
    int (*look)(struct lq_store *s, const char *worker, struct lb_arena *arena,
                struct lq_control *out, lade_err *err);
};

/* With its fault points; the store has controls. */
LADE_CHECKED int lq_order_worker(struct lq_store *s, const char *worker,
                                 enum lade_worker_order order, lade_err *err);

#endif
