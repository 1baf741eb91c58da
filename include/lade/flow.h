/*
 * flow.h - workflows: jobs that wait for each other
 *
 * A workflow (flow) is made of steps. A step is a job, a chain (one after the other), a group (all at once, then a callback)
 * or a graph (each after those it names); steps nest. It is enqueued whole, in one store transaction:
 *
 *     lade_job_spec load = {.kind = "load"}, resize = {.kind = "resize"}, publish = {.kind = "publish"};
 *     lade_flow_step sizes[] = {lade_flow_job(&resize), lade_flow_job(&resize)};
 *     lade_flow_step steps[] = {lade_flow_job(&load), lade_flow_group(sizes, 2, &publish)};
 *     lade_id id;
 *     rc = lade_flow_enqueue(q, &(lade_flow_spec){.root = lade_flow_chain(steps, 2)}, &id, &err);
 *
 *     load --+--> resize --+--> publish
 *            \--> resize --/
 *
 * Each job may have a queue, a payload, a delay (`in`, counted from the moment its last predecessor completed) and all
 * else that jobs have, but no id and no unique key. A job of a flow exists in its queue from the moment it may run; its id
 * is FLOW~NUMBER, with the number of its step. The step that ends and the steps that thereby may begin change in one
 * atomic step of the store: a crash at any instant loses none and runs none twice but for the at-least-once of every job.
 *
 * A handler reads the results of the steps before its own with lade_job_input: one for a link of a chain, one for each member
 * in their order for a callback. Payloads and results are stored once and never copied along.
 *
 * A step that ends without completing (dead, cancelled, discarded, killed, removed, purged) is handled by its policy,
 * on_dead. Retrying a dead job (lade_job_act, redrive) makes a flow that stood still go on from there. A step counts
 * once: a completed job that is run again does not start its successors again.
 *
 * A flow that has ended is kept, with its results, as completed jobs are (lade_options.keep_completed; failed ones
 * keep_dead). One that has not ended is kept without limit.
 */
#ifndef LADE_FLOW_H
#define LADE_FLOW_H

#ifndef LADE_LADE_H
#    error "include <lade/lade.h>"
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define LADE_FLOW_ID_MAX    56           /* longest explicit id of a flow */
#define LADE_FLOW_STEPS_MAX 10000        /* jobs of one flow */
#define LADE_FLOW_EDGES_MAX 100000       /* "runs after" pairs of one flow */
#define LADE_FLOW_DEPTH_MAX 32           /* steps within steps */
#define LADE_FLOW_BYTES_MAX (256U << 20) /* payloads and all else of its jobs together */

/* What becomes of the flow when a step ends without completing. */
enum lade_flow_policy {
    LADE_FLOW_INHERIT = 0, /* as the step around it; the outermost: FAIL */
    /*
     * The flow has failed: on_failure runs, what waits for this step stays waiting, other branches go on (or are
     * cancelled, see cancel_siblings). A retry of the job or of the flow resumes it.
     */
    LADE_FLOW_FAIL = 1,
    /* Goes on as if it had completed without a result: those after it see a hole. */
    LADE_FLOW_CONTINUE = 2,
    /* What waits for it stays waiting, and the flow counts as running, until someone retries the job. */
    LADE_FLOW_WAIT = 3
};

enum lade_flow_type {
    LADE_FLOW_JOB = 0,
    LADE_FLOW_CHAIN = 1,
    LADE_FLOW_GROUP = 2,
    LADE_FLOW_GRAPH = 3
};

/* Everything is borrowed until lade_flow_enqueue returns. */
typedef struct lade_flow_step {
    enum lade_flow_type type;
    enum lade_flow_policy on_dead; /* of all jobs in it that say nothing themselves */
    /*
     * JOB: what to run. GROUP: the callback, which runs after all members; it may be left out only where a step of a
     * chain follows the group, which is then its callback. CHAIN, GRAPH: NULL.
     */
    const lade_job_spec *job;
    const struct lade_flow_step *steps; /* CHAIN, GROUP, GRAPH: at least one */
    size_t n_steps;
    const size_t *after; /* in a GRAPH: which of its steps, by index, this one runs after */
    size_t n_after;
} lade_flow_step;

static inline lade_flow_step lade_flow_job(const lade_job_spec *job)
{
    lade_flow_step s = {LADE_FLOW_JOB, LADE_FLOW_INHERIT, job, NULL, 0, NULL, 0};
    return s;
}

static inline lade_flow_step lade_flow_chain(const lade_flow_step *steps, size_t n)
{
    lade_flow_step s = {LADE_FLOW_CHAIN, LADE_FLOW_INHERIT, NULL, steps, n, NULL, 0};
    return s;
}

static inline lade_flow_step lade_flow_group(const lade_flow_step *members, size_t n,
                                             const lade_job_spec *callback)
{
    lade_flow_step s = {LADE_FLOW_GROUP, LADE_FLOW_INHERIT, callback, members, n, NULL, 0};
    return s;
}

static inline lade_flow_step lade_flow_graph(const lade_flow_step *steps, size_t n)
{
    lade_flow_step s = {LADE_FLOW_GRAPH, LADE_FLOW_INHERIT, NULL, steps, n, NULL, 0};
    return s;
}

typedef struct lade_flow_spec {
    const char *id;   /* explicit id, makes enqueue idempotent; default: a new time-ordered id */
    const char *name; /* for people; default "". At most LADE_NAME_MAX characters */
    lade_flow_step root;
    const lade_job_spec *on_failure; /* runs once when the flow fails; NULL = nothing does */
    /* When the flow fails, its jobs that have not ended are cancelled, those that run are told. */
    bool cancel_siblings;
} lade_flow_spec;

/*
 * Enqueues a flow, wholly or not at all, in one trip. *id (may be NULL) is the flow's id. Returns 0, or LADE_DUPLICATE when a
 * flow with this explicit id is there, in whatever state: nothing is added then. Safe to repeat with the same explicit id.
 * Failures: EINVAL and ETOOBIG, checked before anything is written, with the place (steps[2].steps[0]), the field and the
 * rule in err; then as lade_enqueue.
 */
LADE_API LADE_CHECKED int lade_flow_enqueue(lade *q, const lade_flow_spec *spec, lade_id *id,
                                            lade_err *err);

/* The checks of lade_flow_enqueue alone: writes nothing, asks no store. */
LADE_API LADE_CHECKED int lade_flow_check(lade *q, const lade_flow_spec *spec, lade_err *err);

/* ---------------------------------------------------------------------------------------------
 * In a handler
 * ------------------------------------------------------------------------------------------- */

enum lade_flow_step_state {
    LADE_STEP_WAITING = 0,  /* for steps before it */
    LADE_STEP_ENQUEUED = 1, /* its job is in its queue: scheduled, ready, active or retrying */
    LADE_STEP_COMPLETED = 2,
    LADE_STEP_DEAD = 3,
    LADE_STEP_CANCELLED = 4, /* cancelled, discarded or removed */
    LADE_STEP_SKIPPED = 5    /* dead or cancelled, and passed over by LADE_FLOW_CONTINUE */
};

#define LADE_N_STEP_STATES 6

typedef struct lade_flow_input {
    const char *id;                  /* of the job that made it, FLOW~NUMBER */
    enum lade_flow_step_state state; /* COMPLETED, or SKIPPED for a hole */
    lade_bytes result;
} lade_flow_input;

/* The flow's id; NULL when the job is of none. */
LADE_API const char *lade_job_flow(lade_job *job);
/*
 * How many steps stand directly before this one: 0 for a first step and for a job of no flow. For the on_failure job:
 * how many steps have ended without completing. Asks the store, once. Failures: EUNAVAILABLE, EBUSY, ENOMEM, ...
 */
LADE_API LADE_CHECKED int lade_job_n_inputs(lade_job *job, size_t *n, lade_err *err);
/*
 * Input i, in the order of the members. Lives until the handler returns. Returns 0; LADE_EMPTY when that step left no
 * result (*out tells its id and state); LADE_NOT_FOUND when there is no such input. Asks the store, for several at once.
 */
LADE_API LADE_CHECKED int lade_job_input(lade_job *job, size_t i, lade_flow_input *out,
                                         lade_err *err);

/* ---------------------------------------------------------------------------------------------
 * Look and act
 * ------------------------------------------------------------------------------------------- */

enum lade_flow_state {
    LADE_FLOW_RUNNING = 0,
    LADE_FLOW_COMPLETED = 1,
    LADE_FLOW_FAILED = 2,
    LADE_FLOW_CANCELLED = 3
};

#define LADE_N_FLOW_STATES 4

/* "running" and so on; NULL for a value out of range. */
LADE_API const char *lade_flow_state_name(enum lade_flow_state state);
/* "waiting" and so on; NULL for a value out of range. */
LADE_API const char *lade_flow_step_state_name(enum lade_flow_step_state state);
/* "fail", "continue", "wait"; NULL for others. */
LADE_API const char *lade_flow_policy_name(enum lade_flow_policy policy);

typedef struct lade_flow_node {
    const char *id; /* of its job, FLOW~NUMBER, whether it is in its queue or not */
    const char *kind, *queue;
    enum lade_flow_step_state state;
    enum lade_flow_policy on_dead;
    const uint32_t *after; /* numbers of the steps it waits for */
    size_t n_after;
} lade_flow_node;

typedef struct lade_flow_view {
    const char *id, *name;
    enum lade_flow_state state;
    int64_t created_at,
        finished_at; /* finished: when it completed, failed or was cancelled; else 0 */
    bool cancel_siblings;
    size_t n_steps;              /* jobs without on_failure */
    const lade_flow_node *nodes; /* by number, on_failure last; NULL in a listing */
    size_t n_nodes;              /* n_steps, or one more with on_failure */
} lade_flow_view;

/* One flow. Returns 0 or LADE_NOT_FOUND. On 0 *out is the caller's, one block: lade_flow_view_free. */
LADE_API LADE_CHECKED int lade_flow_get(lade *q, const char *id, lade_flow_view **out,
                                        lade_err *err);
LADE_API void lade_flow_view_free(lade_flow_view *view);

/*
 * Up to `limit` (1 to 1,000) flows, newest first, from the cursor on. Writes *n views to out, each the caller's. Returns 0, or
 * LADE_EMPTY when the page is empty and the listing done.
 */
LADE_API LADE_CHECKED int lade_flow_list(lade *q, lade_cursor *cursor, size_t limit,
                                         lade_flow_view **out, size_t *n, lade_err *err);

enum lade_flow_verb {
    LADE_FLOW_CANCEL =
        0, /* running, failed -> cancelled: nothing new begins, jobs not ended are cancelled */
    LADE_FLOW_RETRY =
        1, /* dead and cancelled steps run again or wait again; what completed is not redone */
    LADE_FLOW_REMOVE = 2 /* any state -> gone; jobs in their queues stay, as jobs of no flow */
};

/*
 * Acts on a whole flow, atomically. Returns 0, LADE_NOT_FOUND, or LADE_WRONG_STATE: CANCEL of a completed or cancelled flow,
 * RETRY of one with nothing dead or cancelled in it.
 */
LADE_API LADE_CHECKED int lade_flow_act(lade *q, enum lade_flow_verb verb, const char *id,
                                        lade_err *err);

#ifdef __cplusplus
}
#endif
#endif
