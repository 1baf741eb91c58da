/*
 * flow.h - what stores share about flows: the ids of their jobs, and what the end of a job means for its node
 *
 *     WAITING --put--> ENQUEUED --completed--> COMPLETED (passes)
 *        ^                |   ^                    ^
 *        |                |   |  retry             | completed after all; does not pass again
 *        |                |   |                    |
 *        |                +--dead, cancelled--> SKIPPED (passes)              policy CONTINUE
 *        |                |
 *        +---- retry -----+--dead, cancelled--> DEAD | CANCELLED              policies FAIL, WAIT
 *            of the flow
 *
 * A node that passes takes one off what its successors miss; one that misses nothing more, and waits, is put. Under FAIL the
 * flow counts its nodes that are DEAD or CANCELLED: from the first on it is FAILED, without any again RUNNING. It is
 * COMPLETED when all its last nodes (those without successors) have passed, for then all the others have.
 *
 * Thread safety: functions of their arguments.
 */
#ifndef LADE_QUEUE_FLOW_H
#define LADE_QUEUE_FLOW_H

#include <string.h>

#include "queue/store.h"

#define LQ_FLOW_SIGN '~'

/* Whether the job is a node of a flow. */
static inline bool lq_flow_has(struct lb_slice id)
{
    return id.n > 0 && memchr(id.p, LQ_FLOW_SIGN, id.n) != NULL;
}

/* "FLOW~7" into FLOW, which points into id, and 7. False when it is none. */
bool lq_flow_split(struct lb_slice id, struct lb_slice *flow, uint32_t *node);
/* The other way; returns the length. The flow's id is at most LADE_FLOW_ID_MAX long. */
size_t lq_flow_join(char out[LADE_ID_MAX + 1], struct lb_slice flow, uint32_t node);

struct lq_node_change {
    enum lade_flow_step_state to;
    bool passes;
    int failed; /* what the flow's count of failed nodes changes by: -1, 0, 1 */
};

/* A job of the flow ended as COMPLETED, DEAD or CANCELLED (also: discarded, removed). */
struct lq_node_change lq_node_ended(enum lade_flow_step_state state, enum lade_flow_policy policy,
                                    enum lade_flow_step_state ended);
/* A job that had ended is ready again. */
struct lq_node_change lq_node_revived(enum lade_flow_step_state state,
                                      enum lade_flow_policy policy);

static inline bool lq_node_is_down(enum lade_flow_step_state state)
{
    return state == LADE_STEP_DEAD || state == LADE_STEP_CANCELLED;
}

static inline bool lq_node_has_passed(enum lade_flow_step_state state)
{
    return state == LADE_STEP_COMPLETED || state == LADE_STEP_SKIPPED;
}

/* How a settle ends its node: COMPLETED, DEAD, CANCELLED; or ENQUEUED when it does not. */
static inline enum lade_flow_step_state lq_node_end_of(enum lq_to to)
{
    switch (to) {
    case LQ_TO_COMPLETED:
        return LADE_STEP_COMPLETED;
    case LQ_TO_DEAD:
        return LADE_STEP_DEAD;
    case LQ_TO_CANCELLED:
    case LQ_TO_GONE:
        return LADE_STEP_CANCELLED;
    case LQ_TO_RETRYING:
    case LQ_TO_SCHEDULED:
    case LQ_TO_READY:
    case LQ_TO_THROTTLED:
    default:
        return LADE_STEP_ENQUEUED;
    }
}

#endif
