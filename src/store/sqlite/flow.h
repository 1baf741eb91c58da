/*
 * flow.h - flows as the ops of a write transaction see them
 *
 * Whatever ends a job, or brings one back, tells a ls_sqlite_flows; it changes the nodes in memory and gathers the jobs that may
 * run now. Flush puts them together, as one batch, writes back the flows that changed and removes what is kept no longer. What
 * belongs to no flow costs a look for a '~' in its id. What queue/flow.h says of nodes holds here; how flows lie in memory and in
 * the file, flow_kept.h and flow_pack.h.
 */
#ifndef LADE_SQLITE_FLOW_H
#define LADE_SQLITE_FLOW_H

#include "queue/flow.h"
#include "store/sqlite/flow_kept.h"
#include "store/sqlite/runs.h"

/* A node, in its part. Good until the transaction ends. */
struct ls_sqlite_node {
    struct ls_sqlite_part *part;
    uint32_t i; /* within the part */
    struct ls_sqlite_step step;
};

static inline enum lade_flow_step_state ls_sqlite_node_state(const struct ls_sqlite_node *n)
{
    return ls_sqlite_mark_state(n->part->marks, n->i);
}

static inline uint32_t ls_sqlite_node_missing(const struct ls_sqlite_node *n)
{
    return ls_sqlite_mark_missing(n->part->marks, n->i);
}

struct ls_sqlite_flows {
    struct ls_sqlite_tx *tx;
    struct ls_sqlite_flow *flow; /* the last one looked at */
    struct ls_sqlite_flow *list; /* that changed; by `link` */
    struct lq_put *put;          /* in tx->arena, as their ids; the rest lies in the parts */
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

/* The steps that may be handed out behind a job (lq_leased.follow), into the arena; none without memory for them. */
LADE_CHECKED int ls_sqlite_flow_follow(struct ls_sqlite_flows *fs, struct lb_arena *arena,
                                       uint32_t body_max, struct lq_leased *out);
/*
 * The step behind a job of the queue that has just ended, when that put it and it may go on: out of what is gathered. NULL: there is
 * none. `before`: fs->n when the job had not ended. To be given back when it is not leased: fs->n++.
 */
LADE_CHECKED int ls_sqlite_flow_launched(struct ls_sqlite_flows *fs, struct lb_slice id,
                                         size_t before, struct lq_put **out);

/* Parts, for op_flow.c; of fs->flow. */

/* Makes it fs->flow. 0 or LADE_NOT_FOUND. */
LADE_CHECKED int ls_sqlite_flows_look(struct ls_sqlite_flows *fs, struct lb_slice id);
LADE_CHECKED int ls_sqlite_flow_node(struct ls_sqlite_flows *fs, int64_t node,
                                     struct ls_sqlite_node *out);
void ls_sqlite_flow_enter(struct ls_sqlite_flows *fs, enum lade_flow_state state);
/* The number of those it misses stays. */
void ls_sqlite_flow_set_node(struct ls_sqlite_flows *fs, const struct ls_sqlite_node *n,
                             enum lade_flow_step_state state);
/* The result of the node, which has none when it is empty. */
LADE_CHECKED int ls_sqlite_flow_set_result(struct ls_sqlite_flows *fs, int64_t node,
                                           struct lb_slice result);
/* Gathers its job to be put. */
LADE_CHECKED int ls_sqlite_flow_launch(struct ls_sqlite_flows *fs, int64_t node,
                                       const struct ls_sqlite_node *n);
/* Cancels its job when it has not ended. */
LADE_CHECKED int ls_sqlite_flow_stop_job(struct ls_sqlite_flows *fs, int64_t node,
                                         const struct ls_sqlite_node *n);

/* The job of a node. */
struct ls_sqlite_flow_job {
    struct ls_sqlite_queue *q;
    int64_t seq;
    struct ls_sqlite_run run;
    char id[LADE_ID_MAX + 1];
};

/* 0 or LADE_NOT_FOUND. */
LADE_CHECKED int ls_sqlite_flow_find_job(struct ls_sqlite_flows *fs, int64_t node,
                                         const struct ls_sqlite_node *n,
                                         struct ls_sqlite_flow_job *out);

/* flow_trim.c: deletes it with all that is of it. */
LADE_CHECKED int ls_sqlite_flow_delete(struct ls_sqlite_tx *tx, struct lb_slice id,
                                       const struct ls_sqlite_flow_row *row);
/* The same for the oldest ended ones that are too many, after a step that ended n; flush asks for it. */
LADE_CHECKED int ls_sqlite_flows_retain(struct ls_sqlite_tx *tx, size_t n);
/* A flow went from one state to another. */
void ls_sqlite_flows_count(struct ls_sqlite_tx *tx, int64_t from, int64_t to);

/* flow_look.c: tells of each node as it is in the file. LADE_NOT_FOUND when some are missing or damaged; or what fn returned but 0. */
typedef int (*ls_sqlite_node_fn)(struct ls_sqlite_tx *tx, void *ctx, int64_t node,
                                 const struct ls_sqlite_step *step, enum lade_flow_step_state state,
                                 uint32_t missing);
LADE_CHECKED int ls_sqlite_flow_each(struct ls_sqlite_tx *tx, const struct ls_sqlite_flow_row *row,
                                     ls_sqlite_node_fn fn, void *ctx);

/* flow_check.c: reports what is wrong with flows. */
LADE_CHECKED int ls_sqlite_flows_check(struct ls_sqlite_tx *tx, lq_finding_fn report, void *ctx);

#endif
