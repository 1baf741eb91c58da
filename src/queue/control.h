/*
 * control.h - the worker's side of orders from afar (control_store.h)
 *
 * Thread safety: said at each function.
 */
#ifndef LADE_QUEUE_CONTROL_H
#define LADE_QUEUE_CONTROL_H

#include "queue/control_store.h"

struct lade_worker;

/* The lease thread's own but for what says otherwise. */

struct lq_remote {
    _Atomic bool quiet; /* an order; advance_phase of run.c asks for it */
    bool stopped;       /* the order to stop has been followed */
    bool is_due;        /* there is something to tell at once; guarded by: worker lock */
    char told_as[32];   /* the incarnation that told `about` */
    char about[LQ_ABOUT_MAX];
    char next[LQ_ABOUT_MAX]; /* on its way */
    uint64_t made, making;
    uint8_t *stacks; /* LADE_STACKS_MAX bytes once asked for */
    size_t n_stacks; /* > 0: not told yet */
};

/* What the next renewal tells; under the lock. */
struct lq_report lq_control_report(struct lade_worker *w);
/* The renewal under `incarnation` held. Under the lock. */
void lq_control_told(struct lade_worker *w, const char *incarnation, const struct lq_report *r);
/* Follows orders. Without the lock. */
void lq_control_obey(struct lade_worker *w, const struct lq_orders *orders);
/* TTIN: the stacks to the log. Any thread but handlers', without the lock. */
void lq_control_log_stacks(struct lade_worker *w);

#endif
