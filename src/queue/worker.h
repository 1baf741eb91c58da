/*
 * worker.h - what the parts of a worker share
 *
 *     run.c (caller's thread)   signals, timeouts, lease age, stopping: decides, never touches the store while it holds the lock
 *     fetch.c (1 thread)        settle + take in one trip; hands jobs to slots; waits in the store when there is nothing
 *     slot.c  (<= 2 * slots)    calls handlers; started when there is work for them
 *     lease.c (1 thread)        renews; nothing user code does can delay it
 *     sweep.c (1 thread)        reclaims from dead workers, promotes, trims
 *     scheduler.c (<= 1 thread) fires schedules, when there are some
 *     ahead.c                   steps of chains that slots begin before the store has the one before
 *     outcome.c                 what becomes of a job: pure, from what the handler said to what the store shall do
 *
 *              take                 start                 finish               settle
 *     store ---------> [queued] -------------> [running] ------------> [done] ---------> store
 *                         |                        |                     ^
 *                         +------ hand back -------+---- abandon --------+
 *
 * A job is in exactly one of the lists (settling: done, and on its way to the store) until it is settled. Bounds: queued + running <= slots + prefetch_max, and
 * done is bounded by the same sum, since nothing is taken while outcomes wait for the store; each of them may be a
 * chain of 1 + LQ_FOLLOW_MAX steps.
 *
 * Locking: one lock. It is held for list moves only: never across a handler, a store op or a log call. A slot whose handlers are
 * fast moves several jobs at a time (a run: slot.c) and works them off without the lock. All jobs of a run are in `running`; which of
 * them has begun and which has ended, job->stage tells.
 */
#ifndef LADE_QUEUE_WORKER_H
#define LADE_QUEUE_WORKER_H

#include <stdatomic.h>

#include "base/buf.h"
#include "base/ident.h"
#include "base/list.h"
#include "base/map.h"
#include "queue/client.h"
#include "queue/control.h"
#include "queue/job.h"
#include "queue/store.h"
#include "rt/seam.h"

enum lq_phase {
    LQ_PHASE_NEW = 0,
    LQ_PHASE_RUNNING = 1,
    LQ_PHASE_QUIET = 2,    /* takes no more, stays */
    LQ_PHASE_STOPPING = 3, /* takes no more, handlers may finish */
    LQ_PHASE_ENDING = 4,   /* handlers are told to stop, then left behind */
    LQ_PHASE_ENDED = 5
};

/* Why a handler should stop; the first cause stays. */
enum lq_cancel {
    LQ_CANCEL_NONE = 0,
    LQ_CANCEL_TIMEOUT = 1,
    LQ_CANCEL_OPERATOR = 2,
    LQ_CANCEL_LOST = 3, /* the lease is not ours any more */
    LQ_CANCEL_SHUTDOWN = 4,
    LQ_CANCEL_KILL = 5 /* a signal to the worker breaks off what it runs */
};

enum lq_place {
    LQ_PLACE_QUEUED = 0,
    LQ_PLACE_RUNNING = 1,
    LQ_PLACE_DONE = 2,
    LQ_PLACE_SETTLING = 3 /* in the store's hands, held by fetch.c */
};

/* How far a job in `running` has come. */
enum lq_stage {
    LQ_STAGE_WAITS = 0,   /* in its slot's run, not begun */
    LQ_STAGE_STARTED = 1, /* its handler has it */
    LQ_STAGE_CLAIMED =
        2, /* the handler is back, the slot writes the outcome: not to be abandoned */
    LQ_STAGE_FINISHED = 3, /* the outcome is written; whoever holds the lock may move it on */
    LQ_STAGE_ABANDONED =
        4 /* run.c has written an outcome for it; FINISHED when the handler is back */
};

#define LQ_RUN_MAX 32

/* The memory of one take; freed when the last of its jobs is. */
struct lq_haul {
    struct lq_leased_vec vec;
    struct lade_job *job; /* in vec.arena, vec.n of them */
    _Atomic size_t live;
    uint32_t epoch; /* of the incarnation that took them */
};

#define LQ_RETIRED_MAX 4

/* An incarnation that was given up while its jobs go on: retire.c. */
struct lq_retired {
    char incarnation[LB_ULID_LEN + 1];
    uint32_t epoch;
};

struct lade_job {
    struct lb_list node;
    struct lade_worker *worker;
    struct lq_haul *haul;
    struct lq_leased *leased;
    const char *queue;
    bool unroutable; /* no handler for its kind here; its slot only */
    bool inlined;    /* run by lade_worker_inline: the store knows nothing of it */
    int attempt;     /* the number of this run */
    int crashes;

    enum lq_place place;      /* guarded by: worker lock */
    uint64_t number;          /* counts up as jobs are taken; guarded by: worker lock */
    _Atomic bool lost;        /* never settle; written under the lock */
    _Atomic uint8_t stage;    /* enum lq_stage */
    uint8_t ending;           /* enum lq_ending; its slot's, until it is FINISHED */
    _Atomic int holders;      /* the lists' and a slot's */
    _Atomic int64_t deadline; /* of the attempt, monotonic; LB_FOREVER before it runs */
    int64_t
        abandon_at; /* guarded by: worker lock; when to give up on a handler past its deadline */
    _Atomic int cancel;           /* enum lq_cancel: written under the lock, read by the handler */
    struct lr_event cancel_event; /* fd < 0 until asked for; guarded by: worker lock */

    int64_t started_at; /* monotonic */
    /* what the handler said; its own thread only */
    int64_t retry_in, snooze_for, throttle_for; /* ns; < 0 = not said */
    struct lb_buf error, result, history;
    struct lq_effects *effects; /* effect.c; NULL until the handler recorded one */
    struct lq_said *said;       /* what its handler said of its progress (said.h); else NULL */
    struct lq_inputs *inputs;   /* of a step of a flow, once its handler asked; else NULL */
    /* ahead.h */
    bool own;               /* in memory of its own, not of the haul */
    bool hands_back;        /* unless its handler says OK; its own thread only */
    _Atomic bool unassured; /* no trip has told yet that it is leased; written under the lock */
    uint32_t step;          /* of those run from one lease */
    uint32_t n_follow;
    const struct lq_follow *follow; /* the steps behind it */
    struct lade_job *after; /* the next one, which has begun, held; guarded by: worker lock */
    int64_t ahead_since;    /* monotonic; when the first of them began */

    /* From here on worth nothing until it is written: fetch.c does not clear it. */
    struct lq_job body;    /* valid once a slot has decoded it */
    struct lq_death death; /* settle's, of a job that dies; its text lies behind the history */
    struct lq_settle
        settle; /* what the store shall do; written once by whoever moves the job to done */
};

struct lq_slot {
    struct lb_list node;
    struct lr_thread thread;
    struct lade_worker *worker;
    bool ended;                   /* guarded by: worker lock; the thread may be joined */
    const struct lq_route *route; /* of its last job; its own */
    int64_t now;                  /* monotonic, when its last job ended; its own */

    /* The run: the slot begins [next], others may take [next, end) away, and under the lock move on what has finished. */
    _Atomic uint64_t span;  /* next << 32 | end */
    uint32_t n_moved;       /* of the run, no longer in `running`; guarded by: worker lock */
    uint32_t n_listed;      /* of the run, in `running`; guarded by: worker lock */
    int64_t claimed_at;     /* guarded by: worker lock */
    struct lb_list in_runs; /* while n_listed > 1 when it was claimed; guarded by: worker lock */
    bool is_in_runs;
    struct lade_job *run[LQ_RUN_MAX];
};

struct lq_route {
    char *kind;
    lade_handler fn;
    void *ctx;
    _Atomic int wary; /* so many times not to be run ahead: ahead.h */
};

struct lade_worker {
    lade *q;
    /* fixed by open */
    int concurrency, max_crashes, prefetch_max;
    int64_t lease, sweep, shutdown_timeout, cancel_grace; /* ns */
    char **queue;
    uint32_t *weight;
    int64_t *turn; /* weighted: how far ahead each queue is; of whoever makes the trips */
    size_t n_queues;
    enum lade_queue_order order;
    char name[LADE_NAME_MAX + 1];
    lade_backoff_fn backoff;
    void *backoff_ctx;
    bool no_signals, resque_signals, drain, strict_steps;
    enum lade_executor executor;
    bool holds_tasks; /* the runtime is there for this worker's slots */
    void (*log)(void *ctx, const char *line);
    void *log_ctx;
    void (*on_dead)(void *ctx, const lade_death *death);
    void *on_dead_ctx;
    struct lb_map routes;       /* kind -> lq_route; fixed by run */
    struct lq_route *catch_all; /* kind "*" */

    struct lr_event
        control; /* raised for run.c: a signal, a stop, an earlier deadline, the end of the work */
    _Atomic int stops, quiets, kills, dumps; /* requests so far; written by signal handlers */
    _Atomic bool paused,
        finish; /* the same; finish: stop when what runs is done, however long it takes */

    struct lr_mutex lock; /* guards all that follows */
    enum lq_phase phase;

    /* by enum lq_place */
    union {
        struct lb_list list[4];

        struct {
            struct lb_list queued, running, done, settling;
        };
    };

    union {
        size_t n_list[4];

        struct {
            size_t n_queued, n_running, n_done, n_settling;
        };
    };

    struct lq_remote remote;
    int64_t started_ms; /* by the producer's clock, of the first renewal */
    struct lb_list slots;
    struct lb_list runs;       /* slots that hold more than the job they run */
    size_t n_runs, n_in_runs;  /* how many; their jobs beyond the one that each of them runs */
    bool store_away;           /* the last trip failed */
    bool taking;               /* a take is under way: it may bring jobs yet */
    uint64_t n_taken, n_begun; /* jobs, and runs that slots have claimed, since open */
    size_t n_slots, n_idle_slots;
    bool waking;    /* a slot is on its way to the queued jobs */
    size_t n_stuck; /* slots whose job was abandoned and whose handler has not returned */
    struct lr_cond slot_wake, fetch_wake, lease_wake, sweep_wake, ahead_wake;
    size_t n_awaiting;              /* handlers that wait on ahead_wake */
    bool fetch_in_store;            /* waiting there: wake it through the store */
    char waits_as[LB_ULID_LEN + 1]; /* under this incarnation, which may have been given up since */
    bool fetch_asleep;              /* waiting on fetch_wake */
    bool sweep_idle; /* waiting on sweep_wake for long: to be woken when there is work */
    _Atomic int64_t next_deadline; /* when run.c will look by itself; written under the lock */
    _Atomic int64_t
        lease_until; /* monotonic; LB_FOREVER while not registered. Written under the lock */
    char incarnation[LB_ULID_LEN + 1];
    bool registered;       /* the store knows this incarnation */
    uint32_t epoch;        /* counts the incarnations that were retired */
    uint32_t taking_epoch; /* of the take that is under way */
    struct lq_retired retired[LQ_RETIRED_MAX];
    size_t n_retired;
    char dropped
        [256]; /* ids of finished jobs whose outcome went with a lease, until they are logged */
    size_t n_dropped;   /* how many there were; `dropped` holds the first */
    int64_t renewed_at; /* monotonic start of the last renewal that held */
    int64_t
        reclaim_at; /* monotonic; when a worker may be found dead; LB_FOREVER = no other is known */
    int64_t promote_at;  /* monotonic; when a job is due, in a paused queue too */
    int64_t sweep_at;    /* until when sweep.c sleeps */
    struct lb_list said; /* jobs with words that wait to be written: said.h */
    int64_t said_at;     /* when the first of them is due; LB_FOREVER = none */
    int64_t mean_run;    /* ns, moving average of handler times; 0 = none yet */
    lade_worker_stats stats;

    struct lr_thread fetch_thread, lease_thread, sweep_thread;
    struct lade_scheduler
        *scheduler; /* NULL: takes no part; runs once a renewal tells of schedules */
};

/* worker.c: lists, under the lock */
void lq_worker_push(struct lade_worker *w, struct lade_job *job, enum lq_place place);
/* Into `queued`, where it was by its number. */
void lq_worker_put_back(struct lade_worker *w, struct lade_job *job);
/* All that is queued goes back to the store, by fetch. */
void lq_worker_hand_back(struct lade_worker *w);
void lq_worker_remove(struct lade_worker *w, struct lade_job *job);
/* One holder less; the last one frees. Any thread, with the lock or without. */
void lq_job_drop(struct lade_job *job);
/* The same, but its part of the haul's memory is left to lq_haul_drop: true when there is one more to drop. */
bool lq_job_let_go(struct lade_job *job);
/* n jobs of the haul are free. */
void lq_haul_drop(struct lq_haul *haul, size_t n);
/* Sets the cause unless there is one, and wakes the handler. */
void lq_job_cancel(struct lade_job *job, enum lq_cancel cause);
/* Wakes fetch for new outcomes or a new phase. Returns true when the caller must call lq_worker_ring after unlocking. */
bool lq_worker_wake_fetch(struct lade_worker *w);
/* Wakes fetch out of the store's wait. Without the lock. */
void lq_worker_ring(struct lade_worker *w);
/* The lease is lost: drops what waits, cancels what runs, takes a new incarnation. */
void lq_worker_lose(struct lade_worker *w);
/* Notes for that log the id of a finished job whose outcome is dropped. Under the lock. */
void lq_worker_note_dropped(struct lade_worker *w, const char *id);
/* Logs what the last loss dropped although it was finished: those jobs run again (C-002). Without the lock. */
void lq_worker_log_dropped(struct lade_worker *w);
/* One line to the log; without the lock. */
void lq_worker_log(struct lade_worker *w, const char *format, ...) LADE_PRINTF(2, 3);
struct lq_lanes lq_worker_lanes(const struct lade_worker *w);

/* Its queue; `order` are the lanes that it was taken from. */
static inline const char *lq_leased_queue(const struct lq_leased *l, const char *const *order)
{
    return l->queue ? l->queue : order[l->lane];
}

/* fetch.c: the queues in the order of one trip, which takes or only settles. Called by one thread at a time. Which outcome a settled job counts as. */
void lq_worker_order(struct lade_worker *w, const char **order, bool takes);
void lq_outcome_count(lade_worker_stats *st, const struct lade_job *job);

/* The bodies of the threads. */
void lq_fetch_run(void *worker);
void lq_lease_run(void *worker);
void lq_sweep_run(void *worker);

/* retire.c. Retire and incarnation_of under the lock, tend without it and by the lease thread only. */
void lq_worker_retire(struct lade_worker *w);
void lq_worker_tend_retired(struct lade_worker *w);
const char *lq_worker_incarnation_of(const struct lade_worker *w, uint32_t epoch);
/* lease.c: keeps an incarnation that was retired alive. */
LADE_CHECKED int lq_lease_renew_former(struct lade_worker *w, const char *incarnation,
                                       lade_err *err);

/* lease.c: one renewal, also the registration. Updates the worker; the store's result. */
LADE_CHECKED int lq_lease_renew(struct lade_worker *w, lade_err *err);

/* flow_input.c; NULL is allowed. */
void lq_inputs_free(struct lq_inputs *in);

/* effect.c; NULL is allowed. */
void lq_effects_free(struct lq_effects *e);
/* The handler is back: reads from the store what became of effects that it recorded in a transaction of its own. */
void lq_effects_refresh(struct lade_job *job);
/* That is not known (yet): the history in the store may be newer than ours. */
bool lq_effects_open(const struct lade_job *job);
/* The handler said in a transaction of its own that the job is completed: see <lade/sqlite.h>. */
bool lq_effects_completed(const struct lade_job *job);

/* drain.c: the job of a haul of one, as fetch.c makes it, which is in no list and whose drop frees the haul. NULL: no memory. */
struct lade_job *lq_haul_sole_job(struct lade_worker *w, struct lq_haul *haul,
                                  const char *const *order);
/* slot.c, without the lock: runs a job that is in no list here and now; then job->settle is what the store shall do. */
void lq_slot_work(struct lq_slot *slot, struct lade_job *job);

/* slot.c, all under the lock */
/* Starts slots for queued jobs that no idle slot will pick up. */
void lq_slots_start(struct lade_worker *w);
/*
 * Of runs that were claimed before `since`: moves on what has finished, and takes back what has not begun. True when the caller must
 * call lq_worker_ring after unlocking.
 */
bool lq_slots_recall(struct lade_worker *w, int64_t since);

/* outcome.c */

/* How a run ended, beyond what the handler returned. */
enum lq_ending {
    LQ_ENDING_RETURNED = 0,
    LQ_ENDING_UNROUTABLE = 1,
    LQ_ENDING_CORRUPT = 2,
    LQ_ENDING_ABANDONED = 3, /* past its timeout, deaf to cancel */
    LQ_ENDING_HANDBACK = 4   /* not run, or interrupted by the end of the worker: spends nothing */
};

/* Fills job->settle (and job->history). Reads job and worker config only; any thread. */
void lq_outcome_settle(struct lade_job *job, enum lq_ending ending, lade_outcome said);

/* What recover writes of a job beside its settle. */
struct lq_recovery {
    struct lb_buf history;
    struct lq_death death;
    struct lq_job body; /* kind NULL: could not be read */
    bool quarantined;
};

/* The settle of a job taken over from a dead worker. The history of `r` receives bytes; it is the caller's. */
void lq_outcome_recover(const struct lade_worker *w, const struct lq_leased *leased,
                        const char *queue, int64_t now_ms, struct lq_recovery *r,
                        struct lq_settle *out);

/* death.c */
/* Appends class and text of a death to `texts`, behind what is there, for out; false without memory. */
bool lq_death_make(struct lb_buf *texts, struct lq_death *out, struct lb_slice kind,
                   struct lb_slice error);
/* Tells on_dead of a settle that the store has; nothing when it ended otherwise. `body` NULL: could not be read. */
void lq_death_tell(const struct lade_worker *w, const struct lq_settle *s,
                   const struct lq_job *body, struct lb_slice old_history);

#endif
