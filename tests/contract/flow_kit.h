/*
 * flow_kit.h - contract: flows drawn in a line of text
 *
 * A node is QUEUE, then "<" and the nodes it depends on: "q q<0 q<0 p<1,2" is a first step, two members and their callback
 * in another queue. "!QUEUE" as the last is on_failure. "+MS" behind a node is its delay.
 */
#ifndef LADE_TESTS_CONTRACT_FLOW_KIT_H
#define LADE_TESTS_CONTRACT_FLOW_KIT_H

#include "contract.h"
#include "queue/flow_store.h"

/* In ct.arena; policy FAIL for all. */
struct lq_flow fl_draw(const char *id, const char *nodes);
/* Another policy for one node. */
void fl_policy(struct lq_flow *flow, uint32_t node, enum lade_flow_policy policy);
/* Puts it; the outcome. */
int fl_put(struct lq_flow flow);
/* Draws and puts; it must be new. */
void fl_add(const char *id, const char *nodes);

/* Takes as worker "w" from the queue; it must be this job. Lives as long as the test. */
struct lq_leased fl_take(const char *queue, const char *id);
/* Takes and settles; a completed one with its own id as result. */
void fl_end(const char *queue, const char *id, enum lq_to to);
/* Settles; a completed one with its own id as result. The outcome. */
int fl_settle(const char *queue, const struct lq_leased *j, enum lq_to to);

/* "running: cqw--!c", the state and one letter for each node: Waiting, enQueued, Completed, Dead, cancelled (x), Skipped. */
const char *fl_show(const char *id);
/* "0:f~0 1:-": number and result of each input, "-" for none. */
const char *fl_inputs(const char *id, uint32_t node);
int fl_act(enum lade_flow_verb verb, const char *id);
/* "a b c": all flows, newest first, in pages. */
const char *fl_list(size_t page);

extern const struct ct_group ct_flow_group, ct_flow_act_group, ct_flow_hop_group, ct_flow_far_group,
    ct_go_on_group;

#endif
