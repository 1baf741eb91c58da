/*
 * memory_flow.h - flows of the memory store
 *
 * Ending a job of a flow may put others, and must not fail then: whoever is about to end one prepares first (makes the jobs
 * that may come, known by their ids but in no state), then does it, then finishes (unmakes those that did not come).
 *
 * All functions are called with home.lock held.
 */
#ifndef LADE_STORE_MEMORY_FLOW_H
#define LADE_STORE_MEMORY_FLOW_H

#include "base/arena.h"
#include "queue/flow.h"
#include "queue/flow_store.h"
#include "queue/store.h"
#include "store/memory/memory_home.h"

struct ls_memory_step {
    const char *queue;
    struct lb_slice kind, body;
    int level;
    enum lq_when when;
    int64_t when_ms;
    enum lade_flow_policy policy;
    const uint32_t *dep, *next;
    uint32_t n_deps, n_next;
    /* changes: */
    enum lade_flow_step_state state;
    uint32_t missing; /* dependencies that have not passed */
    struct lb_mut result;
};

struct ls_memory_flow {
    struct lb_list in_home, in_state;
    struct lb_arena arena; /* of what never changes */
    char id[LADE_FLOW_ID_MAX + 1];
    struct lb_slice name;
    int64_t sequence; /* grows with each flow */
    int64_t created_ms, finished_ms;
    enum lade_flow_state state;
    bool cancel_siblings;
    uint32_t n, n_steps;
    uint32_t open;   /* last nodes that have not passed */
    uint32_t failed; /* nodes down under FAIL */
    struct ls_memory_step *step;
};

/* Jobs made for nodes that may be put. */
struct ls_memory_births {
    struct ls_memory_birth {
        struct ls_memory_job *job;
        struct ls_memory_queue *queue;
        bool made_queue;
    } * birth;

    size_t n, cap;
    size_t at; /* where the next one that goes on is, or near it */
};

struct ls_memory_flow *ls_memory_flow_find(const struct ls_memory_home *h, struct lb_slice id);
/* Of no state yet: ls_memory_flow_enter. NULL when out of memory. */
struct ls_memory_flow *ls_memory_flow_make(struct ls_memory_home *h, const struct lq_flow *spec,
                                           int64_t now_ms);
void ls_memory_flow_drop(struct ls_memory_home *h, struct ls_memory_flow *f);
void ls_memory_flow_enter(struct ls_memory_home *h, struct ls_memory_flow *f,
                          enum lade_flow_state state, int64_t now_ms);
/* Drops ended flows beyond keep.count, and beyond keep.age_ms when by_age. Returns how many; *more: some are left. */
size_t ls_memory_flow_retain(struct lq_store *s, int64_t now_ms, bool by_age, size_t max,
                             bool *more);

/*
 * Before the end of the job: makes what its flow may put then. `others`: how many more of its jobs may end in this step.
 * False when out of memory.
 */
bool ls_memory_flow_prepare(struct ls_memory_home *h, struct ls_memory_births *b,
                            struct lb_slice id, size_t others);
/* The same for one node. */
bool ls_memory_flow_bear(struct ls_memory_home *h, struct ls_memory_births *b,
                         const struct ls_memory_flow *f, uint32_t node);
/* The job was put, and may be gone before finish. */
void ls_memory_flow_forget_birth(struct ls_memory_births *b, const struct ls_memory_job *job);
void ls_memory_flow_finish(struct ls_memory_births *b);

/* The job of the node, made before, into its queue. */
void ls_memory_flow_launch(struct ls_memory_home *h, struct ls_memory_flow *f, uint32_t node,
                           int64_t now_ms);
/* The job ended as COMPLETED, DEAD or CANCELLED; takes *result. */
void ls_memory_flow_ended(struct lq_store *s, struct lb_slice id, enum lade_flow_step_state how,
                          struct lb_mut *result, int64_t now_ms);
/* The steps that may be handed out behind a job (lq_leased.follow), into the arena; none without memory for them. */
void ls_memory_flow_follow(struct lq_store *s, struct lb_slice id, struct lb_arena *arena,
                           struct lq_leased *out);
/* The one job that the end of this one will put and that may go on with it, while it waits; NULL when there is none. */
const struct ls_memory_step *ls_memory_flow_next(struct ls_memory_home *h, struct lb_slice id,
                                                 struct ls_memory_job **job);
/* The job that had ended is ready again. */
void ls_memory_flow_revived(struct ls_memory_home *h, struct lb_slice id, int64_t now_ms);
/* Cancels the job of the node when it has not ended; one that runs is marked. */
void ls_memory_flow_stop_job(struct ls_memory_home *h, const struct ls_memory_flow *f,
                             uint32_t node, int64_t now_ms);

#endif
