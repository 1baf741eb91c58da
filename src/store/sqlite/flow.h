/*
 * flow.h - flows as the ops of a write transaction see them
 *
 * Whatever ends a job, or brings one back, tells a ls_sqlite_flows; it changes the nodes and gathers the jobs that may run
 * now. Flush puts them together, as one batch, writes back the flow that was looked at last and removes what is kept no
 * longer. What belongs to no flow costs a look for a '~' in its id. What queue/flow.h says of nodes holds here.
 */
#ifndef LADE_SQLITE_FLOW_H
#define LADE_SQLITE_FLOW_H

#include "queue/flow.h"
#include "store/sqlite/runs.h"

#define LS_SQLITE_FLOW_SPAN 16384 /* numbers of nodes that each flow has for itself */

/* Columns LS_SQLITE_FLOW but for the texts. */
struct ls_sqlite_flow {
    int64_t num; /* 0 = none */
    int64_t state, steps, nodes, open, failed, created_ms, finished_ms;
    bool siblings;
    bool dirty;
    char id[LADE_FLOW_ID_MAX + 1];
};

struct ls_sqlite_node {
    enum lade_flow_step_state state;
    int64_t missing;
    enum lade_flow_policy policy;
    struct lb_slice next; /* ls_sqlite_number_at */
};

struct ls_sqlite_flows {
    struct ls_sqlite_tx *tx;
    struct ls_sqlite_flow flow; /* the last one looked at */
    struct lq_put *put;         /* in tx->arena, as what they point to */
    size_t n, cap;
    size_t n_ended; /* flows that ended */
};

void ls_sqlite_flows_init(struct ls_sqlite_flows *fs, struct ls_sqlite_tx *tx);
LADE_CHECKED int ls_sqlite_flows_flush(struct ls_sqlite_flows *fs);
/* Removes up to max ended flows beyond age or number; *more: there are more. */
LADE_CHECKED int ls_sqlite_flows_trim(struct ls_sqlite_tx *tx, size_t max, bool *more);

/* The job ended as COMPLETED, DEAD or CANCELLED; any id. */
LADE_CHECKED int ls_sqlite_flow_ended(struct ls_sqlite_flows *fs, struct lb_slice id,
                                      enum lade_flow_step_state how, struct lb_slice result);
/* The job that had ended is ready again; any id. */
LADE_CHECKED int ls_sqlite_flow_revived(struct ls_sqlite_flows *fs, struct lb_slice id);
/* The same for n jobs that lie beside each other: CANCELLED. */
LADE_CHECKED int ls_sqlite_flow_ended_all(struct ls_sqlite_flows *fs, int64_t seq, int64_t n);
LADE_CHECKED int ls_sqlite_flow_revived_all(struct ls_sqlite_flows *fs, int64_t seq, int64_t n);

/* Parts, for op_flow.c. */

/* Makes it fs->flow. 0 or LADE_NOT_FOUND. */
LADE_CHECKED int ls_sqlite_flow_find(struct ls_sqlite_flows *fs, struct lb_slice id);
/* All nodes, in tx->arena, without `next`. */
LADE_CHECKED int ls_sqlite_flow_nodes(struct ls_sqlite_flows *fs, struct ls_sqlite_node **out);
void ls_sqlite_flow_enter(struct ls_sqlite_flows *fs, enum lade_flow_state state);
LADE_CHECKED int ls_sqlite_flow_set_node(struct ls_sqlite_flows *fs, int64_t node,
                                         enum lade_flow_step_state state);
/* Sets the state and the result, which may be NULL. */
LADE_CHECKED int ls_sqlite_flow_end_node(struct ls_sqlite_flows *fs, int64_t node,
                                         enum lade_flow_step_state state, struct lb_slice result);
/* Gathers its job to be put. */
LADE_CHECKED int ls_sqlite_flow_launch(struct ls_sqlite_flows *fs, int64_t node);
/* Cancels its job when it has not ended. */
LADE_CHECKED int ls_sqlite_flow_stop_job(struct ls_sqlite_flows *fs, int64_t node);

/* The job of a node. */
struct ls_sqlite_flow_job {
    struct ls_sqlite_queue *q;
    int64_t seq;
    struct ls_sqlite_run run;
    char id[LADE_ID_MAX + 1];
};

/* 0 or LADE_NOT_FOUND. */
LADE_CHECKED int ls_sqlite_flow_find_job(struct ls_sqlite_flows *fs, int64_t node,
                                         struct ls_sqlite_flow_job *out);
LADE_CHECKED int ls_sqlite_flow_delete(struct ls_sqlite_tx *tx, int64_t num, int64_t nodes);
/* Reads columns LS_SQLITE_FLOW. */
void ls_sqlite_flow_read(sqlite3_stmt *st, struct ls_sqlite_flow *f);

/* Numbers of nodes in a blob. */
static inline size_t ls_sqlite_number_count(struct lb_slice b)
{
    return b.n / 4;
}

static inline uint32_t ls_sqlite_number_at(struct lb_slice b, size_t i)
{
    const uint8_t *p = b.p + 4 * i;
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* flow_check.c: reports what is wrong with flows. */
LADE_CHECKED int ls_sqlite_flows_check(struct ls_sqlite_tx *tx, lq_finding_fn report, void *ctx);

#endif
