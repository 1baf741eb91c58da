/*
 * flow_build.h - from the tree of steps a caller gives to the graph of nodes a store keeps
 *
 * A step is compiled with the nodes it runs after and yields the nodes that end it: a chain hands the ends of each step to
 * the next, a group gives all members the same and collects their ends for the callback, a graph does both in topological
 * order. So nothing but jobs become nodes, and every shape becomes the one rule "put when all before it have passed".
 * A group of n members costs n edges on either side; all is bounded by LADE_FLOW_*_MAX.
 *
 * Thread safety: none needed; functions of their arguments.
 */
#ifndef LADE_QUEUE_FLOW_BUILD_H
#define LADE_QUEUE_FLOW_BUILD_H

#include "base/buf.h"
#include "queue/flow_store.h"
#include "queue/store.h"

struct lq_flow_plan {
    struct lq_flow flow; /* all but its id; points into the members below */
    struct lq_flow_node *node;
    uint32_t *next;
    struct lb_buf deps; /* uint32_t */
    struct lb_buf bodies;
};

/*
 * Checks and compiles. Failures: EINVAL, ETOOBIG with the place, the field and the rule; ENOMEM. The plan borrows the spec's
 * strings. On 0 the caller owes lq_flow_plan_fini.
 */
LADE_CHECKED int lq_flow_build(struct lq_flow_plan *plan, const lade_flow_spec *spec,
                               uint32_t payload_max, int64_t now_ms, lade_err *err);
void lq_flow_plan_fini(struct lq_flow_plan *plan);

#endif
