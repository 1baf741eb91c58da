/*
 * store.h - what the engine asks of a database
 *
 * A store moves jobs between states. Every op below is atomic: after a crash, at any instant, it has happened wholly
 * or not at all. Ops are batch-first (one job is n = 1), bounded, and may block up to the store's timeout; they are
 * safe to call from many threads at once. No op exposes a connection, a transaction or a database type. Stores know
 * bytes, ids, levels and times; what a payload, an attempt or a backoff is, only the engine knows.
 *
 *            put                    take                        settle
 *   new ------------> ready ------------------> active ------------------------> completed | dead | cancelled | gone
 *    \                 ^  ^                       |  ^ \                              (kept, then trim)
 *     \ put            |  | promote               |  |  \ settle
 *      \-> scheduled --+--+                       |  |   \---> retrying | scheduled | ready
 *                      |      settle (hand back)  |  |
 *                      +--------------------------+  +-- reclaim: same state, new owner, new fence
 *
 * Results: 0 done; > 0 an outcome named at the op; < 0 failure (-LADE_E..., err filled). Outs are written only when
 * the result is >= 0. All times are milliseconds (suffix _ms); absolute ones since 1970 on the store's own clock.
 *
 * Leases. A lease belongs to a worker incarnation (an id that is never used twice) and has a fence, a number that
 * grows with every take and reclaim of the queue (jobs of one call may share it). An incarnation that does not renew within lease_ms is dead; any other may then
 * reclaim its leases. settle and begin with a fence that is no longer the job's are refused with LADE_STALE, whatever
 * the old owner believes.
 *
 * Bounds of what is promised (the contract suite in tests/contract holds every store to this):
 * - A queue is made by put and pause, by nothing else. purge, redrive, trim, promote of a queue that is not there do
 *   nothing (0, n = 0); list gives EMPTY; act gives NOT_FOUND for each id.
 * - An incarnation that is not live (never registered, left, reclaimed, or past its lease) is handed nothing: take and
 *   reclaim then return LADE_STALE; settles of the same call are done all the same. settle asks for the fence only.
 * - The lanes of a take, reclaim or wait are among those of the incarnation's renew; others may count as not live.
 * - Reclaim voids the dead incarnations it meets, also those that hold nothing any more; renew is STALE from then on.
 * - take promotes in a lane when it comes to it and still wants jobs, not in lanes it does not come to. It leaves paused
 *   lanes wholly alone: it does not promote there and next_due_ms does not count them.
 * - Whatever makes a job ready (put, promote, settle to READY, RETRY, redrive, resume) wakes an idle worker of the
 *   queue, and so does a put or settle whose job is the next to be due there.
 * - Several jobs handed back by one call are put first one after the other: the last of them is served first.
 * - Jobs due, or ended, in the same millisecond are in any order among each other.
 * - act on an active job that is already marked is WRONG_STATE, but for REMOVE. act leaves retention to trim.
 * - total_dead and total_completed count every move there, also when nothing is kept; RETRY and redrive take nothing off.
 * - A settle that ends a node of a flow puts the next ones before the take of the same call, which may bring them; up to three
 *   quarters of what it brings may be such nodes of the best level that is ready, before others of it that have waited longer.
 *
 * Identity. Job ids are made by the client, so put may be repeated after a lost reply: a store that talks to a server
 * must answer the repeat of its own call as it answered (or would have answered) the first, for put, take and settle.
 */
#ifndef LADE_QUEUE_STORE_H
#define LADE_QUEUE_STORE_H

#include <lade/lade.h>

#include "base/arena.h"
#include "base/slice.h"
#include "queue/settle.h"

#define LQ_STORE_VERSION 1
#define LQ_N_LEVELS \
    9 /* level = LADE_PRIORITY_MAX - priority: 0 is served first, 4 is the default */
#define LQ_LEVEL_DEFAULT 4
#define LQ_TAKE_MAX      1000 /* jobs of one take, reclaim or settle; larger asks are clamped */
#define LQ_LANES_MAX     64
/*
 * A store may keep fresh jobs of one put whose ids follow each other in a block (ident.h) as one. Who makes the ids begins a
 * new block after as many jobs, or bytes of their bodies.
 */
#define LQ_PACK_JOBS     128
#define LQ_PACK_BYTES    16000

/* The body: the engine's envelope (job.h). A store reads only byte LQ_BODY_LEVEL_AT of it, '0' + level. */
#define LQ_BODY_LEVEL_AT 1

/*
 * The history: attempts and crashes so far (history.h), empty for a job that never failed. A store changes only the
 * counts at [LQ_HISTORY_COUNTS_AT, +LQ_HISTORY_COUNTS_SIZE), zeroing them when an operator gives a job all attempts back.
 */
#define LQ_HISTORY_COUNTS_AT   2
#define LQ_HISTORY_COUNTS_SIZE 4

enum lq_caps {
    LQ_CAP_PROCESSES = 1, /* other processes may work on the same data */
    LQ_CAP_REMOTE = 2,    /* talks to a server: replies can be lost */
    LQ_CAP_CLOCK = 4,     /* takes its time from config.clock, so tests can step it */
    LQ_CAP_CONFLICT = 8   /* put knows more than LQ_CONFLICT_KEEP */
};

struct lq_keep {
    int64_t age_ms; /* > 0 */
    int64_t count;  /* >= 0: 0 keeps none */
};

struct lq_store_config {
    const char *url; /* whole, scheme included; borrowed for the store's life */
    const char *ns;  /* namespace, "lade" */
    int64_t timeout_ms, connect_timeout_ms;
    struct lq_keep keep_completed; /* completed, and cancelled jobs apart, each queue */
    struct lq_keep keep_dead;
    uint32_t body_max;        /* longer bodies are not handed out by take: see lq_leased.oversize */
    int64_t (*clock)(void *); /* ns; NULL = lb_clock_wall */
    void *clock_ctx;
    bool must_exist; /* a store that would have to be made is LADE_ENOSTORE, and nothing is made */
};

struct lq_store {
    const struct lq_store_ops *ops;
    struct lq_store_config config; /* strings owned by the opener and alive until close */
    /*
     * Atomic, lb_clock_mono, 0 = none: calls under way, and later ones, end by then even if their timeout is longer. For the
     * moments in which a worker ends and the store does not answer; callers beside it feel it too.
     */
    int64_t hurry;
};

/* put ------------------------------------------------------------------------------------------------------------ */

enum lq_when {
    LQ_WHEN_NOW = 0, /* -> ready */
    LQ_WHEN_IN = 1,  /* when_ms from the store's now */
    LQ_WHEN_AT = 2   /* at when_ms; -> ready when that has passed */
};

/* What a put does whose unique key is held by another job; docs/unique.md. In one call those that meet another come behind the new ones. Not KEEP only with LQ_CAP_CONFLICT. */
enum lq_conflict {
    LQ_CONFLICT_KEEP = 0,
    /*
     * The holder, when it is scheduled, ready or retrying, becomes this job under its own id: body, level and time; REPLACED. One that
     * is ready stays where it is when the new one is due now and of the same level. Else DUPLICATE.
     */
    LQ_CONFLICT_REPLACE = 1,
    /* UNTIL_TTL only: within the hold one job is added that is due at its end, and the hold becomes that job's for ttl more from then
     * on; DONE. Once it is there and waits, it is replaced as above, but for its time. */
    LQ_CONFLICT_TRAIL = 2
};

struct lq_put {
    const char *queue;
    struct lb_slice id;   /* 1..LADE_ID_MAX bytes, no NUL */
    struct lb_slice body; /* >= 2 bytes */
    bool
        fresh; /* the id was made for this call by chance: a store need not look whether it is known */
    int level; /* the same as in the body */
    enum lq_when when;
    int64_t when_ms;
    struct lb_slice unique; /* empty = none */
    int64_t unique_ttl_ms;  /* > 0 when unique is not empty */
    enum lade_unique_until
        until; /* DONE and START hold as long as the job is in their states, whatever the ttl */
    enum lq_conflict conflict;
    int64_t bound_ms;    /* REPLACE: due at most so long after the lock was taken; 0 = no bound */
    struct lb_slice key; /* at most LADE_KEY_MAX bytes; empty = none. Only with KEEP */
    /* out */
    int outcome; /* 0, LADE_DUPLICATE (id known to the queue in any state, or unique key held) or LADE_REPLACED */
    char holder[LADE_ID_MAX + 1]; /* not 0: the id of the job that is there */
};

/* take, reclaim, settle -------------------------------------------------------------------------------------------- */

struct lq_lanes {
    const char *const *queue; /* in the order to try */
    size_t n;                 /* 1..LQ_LANES_MAX */
};

struct lq_take {
    const char *worker; /* incarnation, registered by renew */
    struct lq_lanes lanes;
    size_t max;
    /* When nothing was there: register the worker so that wait() returns when something may be. Any take ends what was before. */
    bool register_idle;
    bool follow; /* hand out what follows, too: lq_leased.follow */
};

/*
 * A step that follows the leased one in its flow, for lq_settle.goes_on: of the same queue, level, and to be put at once; it waits for
 * nothing but the step before it, and nothing but it waits for that. Bytes as in lq_leased. Together at most LQ_FOLLOW_MAX of a
 * leased job, and LQ_PACK_BYTES of bodies.
 */
struct lq_follow {
    struct lb_mut id, body;
};

/*
 * A job under a lease. The bytes lie in the vec's arena, are the taker's to change, and each is followed by one
 * writable byte that is NUL.
 */
struct lq_leased {
    struct lb_mut id, body, history;
    uint64_t fence;
    uint32_t lane;     /* index into lanes.queue */
    bool begun;        /* reclaim only: the former owner had called begin for it */
    bool oversize;     /* body longer than config.body_max: body is empty, settle it to dead */
    const char *queue; /* in the arena; NULL: as its lane, which is no pattern */
    char former[LADE_ID_MAX + 1]; /* reclaim only: the former owner's incarnation; else "" */
    struct lq_follow *follow;     /* n_follow of them; a store may always hand out none */
    uint32_t n_follow;
};

struct lq_leased_vec {
    struct lb_arena arena; /* the caller inits and finis it; ops append */
    struct lq_leased *job; /* in the arena */
    size_t n;
    /* Set by every take that took nothing; both on the store's clock, so that a skewed host waits right: */
    int64_t next_due_ms; /* earliest scheduled or retrying job of the lanes, or time at which a
                          * limit lets a ready one pass; 0 = none */
    int64_t now_ms;      /* the store's now when it looked */
};

struct lq_lease {
    const char *queue;
    struct lb_slice id;
    uint64_t fence;
    int outcome; /* out: 0 or LADE_STALE */
};

/* The history of an active job anew, between take and settle. */
struct lq_note {
    const char *queue;
    struct lb_slice id;
    uint64_t fence;
    struct lb_slice history; /* the whole, not empty */
    int outcome;             /* out: 0 or LADE_STALE */
};

/* look ------------------------------------------------------------------------------------------------------------- */

/* A job as stored. The bytes lie in the arena given to the op, NUL-terminated as in lq_leased. */
struct lq_row {
    const char *queue;
    struct lb_mut id, body, history, result, unique;
    enum lade_state state;
    enum lq_reason reason;
    int64_t run_at_ms, finished_ms;
    const char *worker; /* active: the owner's name, or its incarnation when unknown; else "" */
    int64_t taken_ms, lease_until_ms;
    uint64_t fence;
};

struct lq_row_vec {
    struct lb_arena arena; /* as in lq_leased_vec */
    struct lq_row *row;
    size_t n;
};

enum lq_change_verb {
    LQ_CHANGE_EDIT =
        0, /* scheduled, ready, retrying, dead, cancelled: a new body, and no other change */
    LQ_CHANGE_RETRY = 1, /* as act RETRY, with a new body when one is given */
    LQ_CHANGE_REMOVE = 2 /* as act REMOVE */
};

/* in headers of their own: beat.h, dead_store.h, flow_store.h, key_store.h ------------------------------------------ */
struct lb_buf;
struct lq_beat;
struct lq_stop;
struct lq_class_vec;
struct lq_change;
struct lq_flow;
struct lq_flow_row_vec;
struct lq_input_vec;
struct lq_limit;
struct lq_key_row_vec;

/* events, watching, notes: event.h says what these are ------------------------------------------------------------- */

struct lq_event_vec;
struct lq_watch;
struct lq_say;
struct lq_words;
struct lq_result;
struct lq_schedule_ops;

/* Of a store in which a lane may stand for all queues that a pattern names, whichever they are at the time: its jobs name theirs. */
struct lq_pattern_ops {
    bool (*is_pattern)(const char *lane);
    /* Whether a worker can be given these lanes; -LADE_EINVAL naming the one that is wrong. */
    int (*check)(struct lq_lanes lanes, lade_err *err);
    /* As count, of all queues of the lanes together. */
    int (*count)(struct lq_store *s, struct lq_lanes lanes, lade_queue_info *out, lade_err *err);
};

/* queue NULL: no broken invariant but something that an operator should know. */
typedef void (*lq_finding_fn)(void *ctx, const char *queue, const char *text);

struct lq_store_ops {
    const char *name;    /* "redis" */
    const char *schemes; /* space separated: "redis rediss unix" */
    uint32_t version;    /* LQ_STORE_VERSION */
    uint32_t caps;
    size_t
        size; /* of the store's own struct, whose first member is struct lq_store; the core allocates it zeroed */

    /* config is already in s. On failure nothing is left open and close is not called. */
    int (*open)(struct lq_store *s, lade_err *err);
    void (*close)(struct lq_store *s);
    int (*now)(struct lq_store *s, int64_t *now_ms, lade_err *err);

    /*
     * new -> ready | scheduled. All n or none; items may be of different queues. Within a call a repeated id or
     * unique key is a DUPLICATE of the earlier item. Wakes idle workers, no more than there are jobs for. LADE_FULL: the new
     * ones do not all fit into the bounds of their queues (bound.h); nothing was done, and `outcome` is LADE_FULL for the items of each
     * queue that is full, 0 for the others.
     */
    int (*put)(struct lq_store *s, struct lq_put *put, size_t n, lade_err *err);

    /*
     * Settles n leases, then takes: one round trip or transaction where the store can. Either half may be absent
     * (n = 0, take = NULL). Every settle is active -> its `to`; retention by count is kept here. The take is
     * ready -> active from lanes in order, by level then first-in first-out, paused queues skipped; due jobs are
     * promoted first. `out` is appended to; with nothing taken out->next_due_ms is set and the result is 0 too. Items
     * whose settle was refused are STALE; the others and the take are done all the same.
     */
    int (*settle_take)(struct lq_store *s, struct lq_settle *it, size_t n,
                       const struct lq_take *take, struct lq_leased_vec *out, lade_err *err);

    /* Marks leases as begun: written before a job that has crashed a worker before is run again. */
    int (*begin)(struct lq_store *s, const char *worker, struct lq_lease *lease, size_t n,
                 lade_err *err);

    /* Writes the history of n leases, n <= LQ_TAKE_MAX; nothing else of the job changes. A repeat writes the same again. */
    int (*note)(struct lq_store *s, struct lq_note *it, size_t n, lade_err *err);

    /*
     * Keeps an incarnation alive for lease_ms more in all its lanes. STALE: it was dead and has been reclaimed, or is
     * unknown; its leases are void. Writes up to max stop requests, each once, to `stop` and their number to n_stop.
     * Uses nothing that a slow put, take or settle could block.
     */
    int (*renew)(struct lq_store *s, const struct lq_beat *beat, struct lq_stop *stop, size_t max,
                 size_t *n_stop, lade_err *err);

    /* Leaves: the incarnation is forgotten at once; leases it still holds may be reclaimed from this moment. */
    int (*leave)(struct lq_store *s, const char *worker, struct lq_lanes lanes, lade_err *err);

    /*
     * active -> active: up to take->max leases of dead incarnations pass to take->worker under new fences, paused
     * queues included. The engine then settles them. EMPTY when there was none.
     */
    int (*reclaim)(struct lq_store *s, const struct lq_take *take, struct lq_leased_vec *out,
                   lade_err *err);

    /* scheduled | retrying -> ready for up to max due jobs of the lanes, paused or not. Writes how many and when the
     * next is due (0 = none). */
    int (*promote)(struct lq_store *s, struct lq_lanes lanes, size_t max, size_t *n,
                   int64_t *next_ms, lade_err *err);

    /* Removes up to max completed, cancelled and dead jobs beyond age or count. LADE_MORE when some are left. */
    int (*trim)(struct lq_store *s, struct lq_lanes lanes, size_t max, size_t *n, lade_err *err);

    /*
     * Blocks until a registered idle worker should take again: a job came, a queue was resumed, wake() was called, or
     * `deadline` (lb_clock_mono ns) passed. May return early without cause. Returns 0 or LADE_EMPTY (deadline).
     * One waiter per worker; the same thread that takes. No polling of the store inside.
     */
    int (*wait)(struct lq_store *s, const char *worker, struct lq_lanes lanes, int64_t deadline,
                lade_err *err);
    /* Makes that worker's wait return now, or its next one at once. Any thread. */
    void (*wake)(struct lq_store *s, const char *worker);

    /* Looking and acting, for operators. -------------------------------------------------------------------------- */

    /* Names of all queues, sorted, as strings in the arena. */
    int (*queues)(struct lq_store *s, struct lb_arena *arena, const char ***name, size_t *n,
                  lade_err *err);
    /* NOT_FOUND when the queue was never used. */
    int (*count)(struct lq_store *s, const char *queue, lade_queue_info *out, lade_err *err);
    /* One job, NOT_FOUND. Appends one row. */
    int (*get)(struct lq_store *s, const char *queue, struct lb_slice id, struct lq_row_vec *out,
               lade_err *err);
    /* Up to limit rows of one state from the cursor on, in order of running or ending; active ones in any order. EMPTY
     * when no row is left: the cursor is done then. */
    int (*list)(struct lq_store *s, const char *queue, enum lade_state state, lade_cursor *cursor,
                size_t limit, struct lq_row_vec *out, lade_err *err);
    /* lade_job_act on one queue: outcome[i] is 0, NOT_FOUND or WRONG_STATE; n <= LQ_TAKE_MAX. REMOVE: 0 too for a result alone. */
    int (*act)(struct lq_store *s, const char *queue, enum lade_job_verb verb,
               const struct lb_slice *id, size_t n, int *outcome, lade_err *err);
    int (*purge)(struct lq_store *s, const char *queue, enum lade_state state, size_t max,
                 size_t *n, lade_err *err);
    int (*redrive)(struct lq_store *s, const char *queue, size_t max, size_t *n, lade_err *err);
    /* Makes the queue when it is not there. Resuming wakes its idle workers. */
    int (*pause)(struct lq_store *s, const char *queue, bool paused, lade_err *err);
    /* Forgets a queue without jobs: NOT_FOUND, WRONG_STATE. Whether keys held UNTIL_TTL outlive it is left open. */
    int (*forget)(struct lq_store *s, const char *queue, lade_err *err);
    /* Live incarnations; infos in the arena. */
    int (*workers)(struct lq_store *s, struct lb_arena *arena, lade_worker_info **out, size_t *n,
                   lade_err *err);
    /* Reports each broken invariant. O(all jobs). */
    int (*check)(struct lq_store *s, lq_finding_fn report, void *ctx, lade_err *err);
    /*
     * A condition that is no failure but that an operator should know, as one line; each is told once. EMPTY when there is
     * none. NULL in a store that has nothing of the kind.
     */
    int (*notice)(struct lq_store *s, char *text, size_t size);

    /* The dead by class. -------------------------------------------------------------------------------------------- */

    /* All classes of a queue, in any order: O(classes), however many jobs are dead. EMPTY when there is none. */
    int (*classes)(struct lq_store *s, const char *queue, struct lq_class_vec *out, lade_err *err);
    /* As list, of the dead of one class that died at from_ms or later, oldest first. */
    int (*list_class)(struct lq_store *s, const char *queue, struct lb_slice name, int64_t from_ms,
                      lade_cursor *cursor, size_t limit, struct lq_row_vec *out, lade_err *err);
    /* Changes n <= LQ_TAKE_MAX jobs of a queue, each as its own act. The result is the first outcome that is not 0. */
    int (*change)(struct lq_store *s, const char *queue, enum lq_change_verb verb,
                  struct lq_change *it, size_t n, lade_err *err);

    /* Flows; NULL: this store has none. ----------------------------------------------------------------------------- */

    /* The whole flow and the jobs of its first nodes, or nothing when the id is known. */
    int (*flow_put)(struct lq_store *s, struct lq_flow *flow, lade_err *err);
    /* One flow with its nodes, NOT_FOUND. Appends one row. */
    int (*flow_get)(struct lq_store *s, struct lb_slice id, struct lq_flow_row_vec *out,
                    lade_err *err);
    /* Up to limit flows without their nodes, newest first; else as list. */
    int (*flow_list)(struct lq_store *s, lade_cursor *cursor, size_t limit,
                     struct lq_flow_row_vec *out, lade_err *err);
    /*
     * The inputs of a node from `first` on: at most max, and fewer when they have more than LQ_INPUT_BYTES. Of on_failure: the
     * nodes that are dead or cancelled. NOT_FOUND when the flow or the node is not there.
     */
    int (*flow_inputs)(struct lq_store *s, struct lb_slice id, uint32_t node, size_t first,
                       size_t max, struct lq_input_vec *out, lade_err *err);
    /* lade_flow_act: 0, NOT_FOUND or WRONG_STATE. */
    int (*flow_act)(struct lq_store *s, struct lb_slice id, enum lade_flow_verb verb,
                    lade_err *err);

    /* Results, watching, notes, events: see event.h. ---------------------------------------------------------------- */

    /* One of each id, aligned: lade_result_get_many. The bytes lie in the arena. DONE and COMPLETED too for a job that is gone, while
     * its result is kept. */
    int (*results)(struct lq_store *s, const char *queue, const struct lb_slice *id, size_t n,
                   struct lb_arena *arena, struct lq_result *out, lade_err *err);
    /*
     * Looks at n things and registers `waiter` where there is nothing to see yet, all in one step: its wait(), over the queues of the
     * items, returns when there may be. A waiter is no worker; its name is used by no other.
     */
    int (*watch)(struct lq_store *s, const char *waiter, struct lq_watch *it, size_t n,
                 lade_err *err);
    /* The waiter will not wait again. No call with it is under way. */
    void (*unwatch)(struct lq_store *s, const char *waiter, struct lq_lanes lanes);
    /* Progress and lines of active jobs, each fenced: outcome 0 or STALE. */
    int (*say)(struct lq_store *s, struct lq_say *it, size_t n, lade_err *err);
    /* NOT_FOUND when the job is not there. */
    int (*words)(struct lq_store *s, const char *queue, struct lb_slice id, struct lq_words *out,
                 lade_err *err);
    /* cap 0: off, and the stream is gone. Makes the queue. */
    int (*events_set)(struct lq_store *s, const char *queue, uint32_t cap, lade_err *err);
    int (*events_get)(struct lq_store *s, const char *queue, lade_events_info *out, lade_err *err);
    /*
     * Appends events behind `after`: at least `max` when there are as many, some more where they are stored together. EMPTY when there is none;
     * MISSED when the one behind `after` is not there any more, or `after` is no event of this stream; NOT_FOUND; WRONG_STATE: off. `after` 0 is the
     * one before the oldest, UINT64_MAX the last: out->after then says which that is, and the result is EMPTY.
     */
    int (*event_read)(struct lq_store *s, const char *queue, uint64_t after, size_t max,
                      struct lq_event_vec *out, lade_err *err);

    /* Keys and limits; NULL: this store has none, and put is given no keys. ------------------------------------------ */

    /* Makes the queue. `key` counts for LADE_LIMIT_KEY. Wakes idle workers when more may run. */
    int (*limit_set)(struct lq_store *s, const char *queue, enum lade_limit_scope scope,
                     struct lb_slice key, const struct lq_limit *limit, lade_err *err);
    /* NOT_FOUND: no such queue. Of a key that is not known all zero. */
    int (*limit_get)(struct lq_store *s, const char *queue, enum lade_limit_scope scope,
                     struct lb_slice key, struct lq_limit *out, lade_err *err);
    /* Up to limit keys that have live jobs, a limit or a pause, by their bytes, as list does. */
    int (*key_list)(struct lq_store *s, const char *queue, lade_cursor *cursor, size_t limit,
                    struct lq_key_row_vec *out, lade_err *err);
    /* One of them, NOT_FOUND. Appends one row. */
    int (*key_get)(struct lq_store *s, const char *queue, struct lb_slice key,
                   struct lq_key_row_vec *out, lade_err *err);
    /* Makes the queue. Resuming ends a throttle too. */
    int (*key_pause)(struct lq_store *s, const char *queue, struct lb_slice key, bool paused,
                     lade_err *err);
    const struct lq_schedule_ops *schedules; /* schedule_store.h; NULL: this store has none */
    const struct lq_bound_ops *bounds;       /* bound.h; NULL: this store has none */
    const struct lq_control_ops *controls;   /* control_store.h; the same */
    /* Appends the body that a take would give of a put, without storing anything; NULL: the put's own. Fails as put. */
    int (*passed_on)(struct lq_store *s, const struct lq_put *put, struct lb_buf *out,
                     lade_err *err);
    const struct lq_pattern_ops *patterns; /* NULL: lanes are names of queues */
};

/*
 * Opens the store whose schemes contain the URL's ("redis" of "redis://host"). EINVAL names the schemes there are.
 * On 0 *out is the caller's: lq_store_close.
 */
LADE_CHECKED int lq_store_open(struct lq_store **out, const struct lq_store_ops *const *stores,
                               size_t n, const struct lq_store_config *config, lade_err *err);
/* NULL is allowed. */
void lq_store_close(struct lq_store *s);

/* Sets hurry; 0 takes it back. Any thread. */
static inline void lq_store_hurry(struct lq_store *s, int64_t until)
{
    __atomic_store_n(&s->hurry, until, __ATOMIC_RELAXED);
}

/* For stores: the deadline, or hurry when that is earlier. */
static inline int64_t lq_hurried(const int64_t *hurry, int64_t deadline)
{
    int64_t until = hurry ? __atomic_load_n(hurry, __ATOMIC_RELAXED) : 0;
    return until != 0 && until < deadline ? until : deadline;
}

/*
 * The ops as the engine calls them: each is a fault point before and after (NAME.before, NAME.after), so that a test can
 * kill the process on both sides of every step. Same contracts as in the table.
 */
LADE_CHECKED int lq_put(struct lq_store *s, struct lq_put *put, size_t n, lade_err *err);
LADE_CHECKED int lq_settle_take(struct lq_store *s, struct lq_settle *it, size_t n,
                                const struct lq_take *take, struct lq_leased_vec *out,
                                lade_err *err);
LADE_CHECKED int lq_begin(struct lq_store *s, const char *worker, struct lq_lease *lease, size_t n,
                          lade_err *err);
LADE_CHECKED int lq_note(struct lq_store *s, struct lq_note *it, size_t n, lade_err *err);
LADE_CHECKED int lq_renew(struct lq_store *s, const struct lq_beat *beat, struct lq_stop *stop,
                          size_t max, size_t *n_stop, lade_err *err);
LADE_CHECKED int lq_leave(struct lq_store *s, const char *worker, struct lq_lanes lanes,
                          lade_err *err);
LADE_CHECKED int lq_reclaim(struct lq_store *s, const struct lq_take *take,
                            struct lq_leased_vec *out, lade_err *err);
LADE_CHECKED int lq_promote(struct lq_store *s, struct lq_lanes lanes, size_t max, size_t *n,
                            int64_t *next_ms, lade_err *err);
LADE_CHECKED int lq_trim(struct lq_store *s, struct lq_lanes lanes, size_t max, size_t *n,
                         lade_err *err);
LADE_CHECKED int lq_change(struct lq_store *s, const char *queue, enum lq_change_verb verb,
                           struct lq_change *it, size_t n, lade_err *err);
LADE_CHECKED int lq_flow_put(struct lq_store *s, struct lq_flow *flow, lade_err *err);
LADE_CHECKED int lq_flow_act(struct lq_store *s, struct lb_slice id, enum lade_flow_verb verb,
                             lade_err *err);
LADE_CHECKED int lq_say(struct lq_store *s, struct lq_say *it, size_t n, lade_err *err);
LADE_CHECKED int lq_events_set(struct lq_store *s, const char *queue, uint32_t cap, lade_err *err);
LADE_CHECKED int lq_limit_set(struct lq_store *s, const char *queue, enum lade_limit_scope scope,
                              struct lb_slice key, const struct lq_limit *limit, lade_err *err);
LADE_CHECKED int lq_key_pause(struct lq_store *s, const char *queue, struct lb_slice key,
                              bool paused, lade_err *err);

#endif
