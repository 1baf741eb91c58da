/*
 * flow_store.h - workflows as the engine gives them to a store and gets them back
 *
 * A flow is a directed graph of nodes without cycles; a node is a job that is put when all nodes it depends on have passed.
 * The job's id is FLOW~NODE (flow.h in this folder), and that alone says that it is of a flow: no explicit id has a '~'. So
 * every op that ends a job or brings it back (settle, act, purge, redrive) does in the same atomic step what flow.h
 * tells of the node, and jobs without the sign touch nothing of this.
 *
 * What has happened is the state of the nodes, never a number counted down by messages: a node passes when its state
 * changes to COMPLETED or SKIPPED, which it does once. The numbers that a store keeps beside (how many dependencies of a
 * node have not passed) change in the same step, only then; check counts them anew.
 *
 * Thread safety, results and times: as store.h.
 */
#ifndef LADE_QUEUE_FLOW_STORE_H
#define LADE_QUEUE_FLOW_STORE_H

#include "queue/store.h"

#define LQ_INPUT_BYTES (4U << 20) /* results of one flow_inputs, but one at least */

struct lq_flow_node {
    const char *queue;
    struct lb_slice kind; /* of the body, for show */
    struct lb_slice body;
    int level;
    enum lq_when when; /* from the moment it is put */
    int64_t when_ms;
    enum lade_flow_policy policy; /* not INHERIT */
    const uint32_t *dep;          /* nodes before it, in the order of its inputs; none twice */
    uint32_t n_deps;              /* 0: put with the flow */
    const uint32_t *next;         /* nodes that depend on it */
    uint32_t n_next;
};

struct lq_flow {
    struct lb_slice id; /* 1..LADE_FLOW_ID_MAX bytes */
    struct lb_slice name;
    bool fresh; /* as lq_put.fresh */
    bool cancel_siblings;
    const struct lq_flow_node *node;
    uint32_t n; /* 1..LADE_FLOW_STEPS_MAX + 1 */
    uint32_t
        n_steps; /* n, or n - 1: the last node is then on_failure, which depends on nothing and nothing on it */
    /* out */
    int outcome; /* 0 or LADE_DUPLICATE */
};

struct lq_flow_node_row {
    const char *queue;
    struct lb_slice kind;
    enum lade_flow_step_state state;
    enum lade_flow_policy policy;
    const uint32_t *dep;
    uint32_t n_deps;
};

/* A flow as stored; the bytes lie in the arena of the vec. */
struct lq_flow_row {
    struct lb_slice id, name;
    enum lade_flow_state state;
    int64_t created_ms, finished_ms;
    bool cancel_siblings;
    uint32_t n, n_steps;
    const struct lq_flow_node_row *node; /* flow_get only: n of them */
};

struct lq_flow_row_vec {
    struct lb_arena arena; /* as in lq_leased_vec */
    struct lq_flow_row *row;
    size_t n;
};

struct lq_input {
    uint32_t node;
    enum lade_flow_step_state state;
    struct lb_slice result;
};

struct lq_input_vec {
    struct lb_arena *arena;
    struct lq_input *input; /* in the arena */
    size_t n;
    size_t total; /* inputs of the node */
};

#endif
