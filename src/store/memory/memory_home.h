/*
 * memory_home.h - the structures of the memory store, and the few ways they change
 *
 *     home -- queues by name -- queue -- jobs by id
 *         |                         \-- one order per state: a job is in the order of its state and in no other
 *         |                          \- locks by unique key, and in the order in which they run out
 *          \- workers by incarnation -- jobs held, jobs removed under it that it must be told about
 *
 * Every change of a job's place goes through ls_memory_job_move or ls_memory_job_drop, so that state, order, lease and
 * lock change together. Nothing here allocates but the four _make functions, which is why an op either fails before it
 * changed anything or does not fail.
 *
 * All fields are guarded by home.lock; all functions are called with it held.
 */
#ifndef LADE_STORE_MEMORY_HOME_H
#define LADE_STORE_MEMORY_HOME_H

#include "base/list.h"
#include "base/map.h"
#include "queue/bound.h"
#include "queue/control_store.h"
#include "queue/event.h"
#include "queue/key_store.h"
#include "queue/limit.h"
#include "queue/store.h"
#include "rt/seam.h"
#include "store/memory/memory_order.h"

struct ls_memory_home {
    struct lr_mutex lock;
    struct lr_cond woken;
    struct lb_map queues;  /* by name; a forgotten queue stays as an empty one with made = false */
    struct lb_map workers; /* by incarnation: registered, or holding a lease */
    struct lb_list workers_list;
    struct lb_list touched;    /* keys whose counts changed in this op */
    struct lb_map flows;       /* by id */
    struct lb_list flows_list; /* oldest first */

    struct {
        struct lb_list list; /* in the order in which they came into the state */
        size_t n;
    } flows_in[LADE_N_FLOW_STATES];

    struct lb_list watchers; /* struct ls_memory_watcher */

    /* Of the settle under way, for its events; NULL outside. */
    const struct lq_settle *settling;
    enum lq_reason settling_as;

    struct lb_map schedules;          /* by id */
    struct lb_list schedules_list;    /* by id's bytes */
    struct lb_list schedule_watchers; /* who wants to hear of schedules */

    struct {
        char id[LADE_ID_MAX + 1]; /* "" = nobody */
        char name[LADE_NAME_MAX + 1];
        uint64_t fence;
        int64_t until_ms, seen_ms;
    } leader;

    uint64_t revision; /* of schedules: the last one given */
    uint64_t fence;    /* the last one given */
    int64_t sequence;  /* breaks ties: grows with every move */
    char *name;        /* NULL = private */
    size_t refs;       /* guarded by the registry's lock */
    struct lb_list in_registry;
};

/* The dead of a queue that died of the same. Freed with its last job, but for `other`. */
struct ls_memory_class {
    struct ls_memory_order order; /* its jobs, by their end */
    struct lb_mut name, kind, text;
    int64_t first_ms, last_ms;
};

/* What is known of a key of a queue: limit.h in src/queue. Lives while jobs or an operator's words refer to it. */
struct ls_memory_tenant {
    struct ls_memory_node node; /* in queue->ring or queue->timed, by its place */
    struct ls_memory_queue *queue;
    enum lq_key_place place;
    int64_t num, held;      /* in the order of READY: LQ_KEY_LEVELS; what it has in queue->held */
    struct lb_list touched; /* in home->touched */
    int64_t was[5];         /* its counts when it was last placed */
    int64_t counted[5];     /* by a check */
    struct lq_key_facts facts;
    int64_t waiting, ended,
        unplaced; /* jobs: scheduled and retrying; kept; made and in no state yet */
    struct lq_limit own;
    struct lb_slice key; /* behind the struct */
};

struct ls_memory_queue {
    bool made, paused;
    bool gated;                              /* has or had keys or limits: take goes by turns */
    struct lq_limit limit, usual;            /* of the queue; the default of its keys */
    struct ls_memory_order kept, kept_until; /* struct ls_memory_kept: by id, by its end */
    struct lq_bound bound;      /* its bytes are counted whether there is a bound or not */
    int64_t needs, needs_bytes; /* of the put under way: what it would add */
    int64_t v, free_at;         /* virtual time of the last turn, and of the jobs without a key */
    int64_t tat_us, free_until_us;
    int64_t n_nums, held;
    struct lb_map tenants;
    struct ls_memory_order ring, timed;
    struct lb_map jobs;
    struct lb_map classes; /* by name, each with a job in it */
    struct ls_memory_class other;
    struct lb_map locks;
    struct ls_memory_order expiring; /* the locks */
    struct ls_memory_order order[LADE_N_STATES];
    uint64_t total_enqueued, total_completed, total_failed, total_dead;

    struct {
        uint32_t cap; /* 0 = off */
        uint64_t last;
        struct lb_list list; /* struct ls_memory_event, oldest first; zero while off */
        size_t n;
    } stream;

    char name[LADE_NAME_MAX + 1];
};

/* memory_kept.c: a result with a time of its own; id and bytes lie in and behind it. */
struct ls_memory_kept {
    struct ls_memory_node by_id, by_end;
    int64_t at_ms; /* when its job completed */
    struct lb_slice bytes;
    char id[LADE_ID_MAX + 1];
};

/* memory_event.c: one event; its bytes lie behind it. */
struct ls_memory_event {
    struct lb_list in_stream;
    struct lq_ev e;
};

struct ls_memory_watcher {
    struct lb_list in_home;
    bool woken;
    char name[LADE_ID_MAX + 1];
};

struct ls_memory_line {
    struct lb_list in_notes;
    uint64_t number;
    int64_t at_ms;
    size_t n;
    uint8_t text[];
};

/* What a job's handler said. */
struct ls_memory_notes {
    int percent; /* -1 = never said */
    int64_t progress_ms;
    struct lb_mut text;
    uint64_t total;
    struct lb_list lines;
    size_t n_lines;
};

struct ls_memory_worker {
    bool registered;
    bool idle;  /* found nothing and wants to hear of the next job */
    bool woken; /* its wait returns */
    int concurrency;
    int64_t lease_until_ms, started_ms, seen_ms;
    char **lane; /* one block with its strings */
    size_t n_lanes;
    struct lb_list held;    /* active jobs */
    struct lb_list removed; /* jobs an operator removed while it held them, until told */
    size_t n_held;
    struct lb_list in_home;
    struct lq_control control; /* its bytes are its own */
    char id[LADE_ID_MAX + 1];
    char name[LADE_NAME_MAX + 1];
};

/* What an operator wants of an active job. */
enum ls_memory_mark { LS_MEMORY_UNMARKED = 0, LS_MEMORY_KILL, LS_MEMORY_CANCEL };

struct ls_memory_job {
    struct ls_memory_node node; /* in queue->order[state] */
    struct ls_memory_queue *queue;
    enum lade_state state;
    int level;
    enum lq_reason reason;
    struct lb_mut body, history, result;
    struct ls_memory_notes *notes; /* NULL = never said anything */
    struct lb_slice unique;        /* empty = none */
    int64_t ready_ms, run_at_ms, finished_ms;
    struct ls_memory_class *class_; /* of a dead one, else NULL */
    struct ls_memory_node in_class;
    /* Active only. */
    struct ls_memory_worker *owner;
    struct lb_list in_owner; /* held or removed */
    uint64_t fence;
    int64_t taken_ms;
    enum ls_memory_mark mark;
    bool told; /* the owner knows of the mark */
    bool begun;
    struct ls_memory_tenant *tenant; /* NULL = no key */
    bool away; /* scheduled or retrying after it was active: keeps its place */
    char id[LADE_ID_MAX + 1];
};

/* Holds a unique key for a job, which may be gone already when until is LADE_UNTIL_TTL. */
struct ls_memory_lock {
    struct ls_memory_node node; /* in queue->expiring */
    struct lb_mut key;
    enum lade_unique_until until;
    int64_t
        first_ms; /* when it was taken, of an item that may meet others, else 0; of a trailing job: when its window begins, TTL only */
    bool trails;  /* the holder is a trailing job */
    char holder[LADE_ID_MAX + 1];
};

struct ls_memory_store {
    struct lq_store store;
    struct ls_memory_home *home;
};

static inline struct ls_memory_home *ls_memory_home_of(struct lq_store *s)
{
    return ((struct ls_memory_store *)s)->home;
}

static inline struct ls_memory_job *ls_memory_job_of(struct ls_memory_node *n)
{
    return n ? LB_CONTAINER_OF(n, struct ls_memory_job, node) : NULL;
}

/* Locks the home and reads the clock of this handle. */
struct ls_memory_home *ls_memory_enter(struct lq_store *s, int64_t *now_ms);

/* queues */
/* NULL when it was never made or is forgotten. */
struct ls_memory_queue *ls_memory_queue_find(struct ls_memory_home *h, const char *name);
/* NULL when out of memory. */
struct ls_memory_queue *ls_memory_queue_make(struct ls_memory_home *h, const char *name);
size_t ls_memory_queue_jobs(const struct ls_memory_queue *q);
/* Wakes up to n idle workers that serve it; nothing while it is paused. */
void ls_memory_queue_wake(struct ls_memory_home *h, const struct ls_memory_queue *q, size_t n);
/* When its next job is due, 0 = none. */
int64_t ls_memory_queue_next_due(const struct ls_memory_queue *q);
/* Readies up to max due jobs; returns how many. Wakes nobody. */
size_t ls_memory_queue_promote(struct ls_memory_home *h, struct ls_memory_queue *q, int64_t now_ms,
                               size_t max);

/* locks */
struct ls_memory_lock *ls_memory_lock_find(const struct ls_memory_queue *q, struct lb_slice key);
/* Adds the lock of a put; the key is free. False when out of memory. */
bool ls_memory_lock_make(struct ls_memory_home *h, struct ls_memory_queue *q,
                         const struct lq_put *put, int64_t now_ms);
void ls_memory_lock_drop(struct ls_memory_queue *q, struct ls_memory_lock *l);
void ls_memory_lock_expire(struct ls_memory_queue *q, int64_t now_ms);

/*
 * memory_unique.c: an item whose key was held when it was looked at; nothing in it allocates. `spare` is a job made of it, in no state
 * yet, which is placed or unmade; NULL unless it asks for TRAIL. `body` is a copy of its body, which is taken or left.
 */
void ls_memory_conflict(struct ls_memory_home *h, struct ls_memory_queue *q, struct lq_put *put,
                        struct ls_memory_job *spare, struct lb_mut *body, int64_t now_ms);
/* op_put.c: a job that is in no state goes where it waits; wakes who must hear. */
void ls_memory_job_place(struct ls_memory_home *h, struct ls_memory_job *j, int64_t due_ms,
                         int64_t now_ms);

/* jobs */
/* Known by its id, but in no state yet: ls_memory_job_move next, or ls_memory_job_unmake. NULL when out of memory. */
struct ls_memory_job *ls_memory_job_make(struct ls_memory_queue *q, const struct lq_put *put);
void ls_memory_job_unmake(struct ls_memory_job *j);
struct ls_memory_job *ls_memory_job_find(const struct ls_memory_queue *q, struct lb_slice id);
/*
 * Out of its state, into `to`, at the end of it. Ends a lease, releases the unique key where `to` demands it and counts
 * totals. READY: at the end of its level; `run_at_ms` is read for SCHEDULED and RETRYING. Not for ACTIVE.
 */
void ls_memory_job_move(struct ls_memory_home *h, struct ls_memory_job *j, enum lade_state to,
                        int64_t run_at_ms, int64_t now_ms);
/* memory_dead.c: move to DEAD, and its class; `death` NULL: named as the reason. */
void ls_memory_job_die(struct ls_memory_home *h, struct ls_memory_job *j, enum lq_reason reason,
                       const struct lq_death *death, int64_t now_ms);
/* memory_dead.c: out of its class, when it has one. */
void ls_memory_job_leave_class(struct ls_memory_job *j);
/* active -> SCHEDULED or RETRYING: keeps its place among its key's. */
void ls_memory_job_delay(struct ls_memory_home *h, struct ls_memory_job *j, enum lade_state to,
                         int64_t run_at_ms, int64_t now_ms);
/* active -> first of its level. */
void ls_memory_job_hand_back(struct ls_memory_home *h, struct ls_memory_job *j, int64_t now_ms);
/* ready | active -> active under a new fence. */
void ls_memory_job_lease(struct ls_memory_home *h, struct ls_memory_job *j,
                         struct ls_memory_worker *owner, int64_t now_ms);
/* Any state but ready and active -> the end of its level; one that had ended gets all attempts back. */
void ls_memory_job_revive(struct ls_memory_home *h, struct ls_memory_job *j, int64_t now_ms);
/* Gone with all it had. */
void ls_memory_job_drop(struct ls_memory_home *h, struct ls_memory_job *j);
/* The same by an operator: the owner of an active one will be told. */
void ls_memory_job_remove(struct ls_memory_home *h, struct ls_memory_job *j);
/* Whether retention wants the oldest of an ended state gone. */
bool ls_memory_job_is_over(struct lq_store *s, const struct ls_memory_queue *q,
                           enum lade_state state, int64_t now_ms, bool by_age);
/* Removes the oldest of an ended state beyond keep.count, and beyond keep.age_ms when `by_age`; returns how many. */
size_t ls_memory_job_retain(struct lq_store *s, struct ls_memory_queue *q, enum lade_state state,
                            int64_t now_ms, bool by_age, size_t max);
bool ls_memory_state_is_ended(enum lade_state state);
/* Ready, scheduled or retrying. */
bool ls_memory_state_waits(enum lade_state state);
/* Another body for a job; *body is then the old one. */
void ls_memory_job_swap_body(struct ls_memory_job *j, struct lb_mut *body);

/* results with a time of their own: memory_kept.c */
/* NULL when out of memory. */
struct ls_memory_kept *ls_memory_kept_make(struct lb_slice id, struct lb_slice result);
/* In place of an older one of the id. Takes k. */
void ls_memory_kept_put(struct ls_memory_home *h, struct ls_memory_queue *q,
                        struct ls_memory_kept *k, int64_t ttl_ms, int64_t now_ms);
/* NULL when there is none, or its time is over. */
const struct ls_memory_kept *ls_memory_kept_find(const struct ls_memory_queue *q,
                                                 struct lb_slice id, int64_t now_ms);
/* Of a job that is there: its own, or what was kept from this very end; empty when there is none. */
struct lb_slice ls_memory_result_of(const struct ls_memory_job *j, int64_t now_ms);
void ls_memory_kept_drop(struct ls_memory_queue *q, struct lb_slice id);
/* Drops up to max whose time is over; true when some are left. */
bool ls_memory_kept_trim(struct ls_memory_queue *q, int64_t now_ms, size_t max);

/* keys: memory_tenant.c */
struct ls_memory_tenant *ls_memory_tenant_find(const struct ls_memory_queue *q,
                                               struct lb_slice key);
/* NULL when out of memory. One that nothing refers to goes when it is placed, or by the next trim. */
struct ls_memory_tenant *ls_memory_tenant_make(struct ls_memory_queue *q, struct lb_slice key);
/* Counts a job of it into a state (by 1) or out of it (by -1). Not for jobs without a key. */
void ls_memory_tenant_count(const struct ls_memory_job *j, enum lade_state state, int by);
/* Its counts may have changed: it is placed at the end of the op, when they have. */
void ls_memory_tenant_touch(struct ls_memory_home *h, struct ls_memory_tenant *t);
/* Places those; before a turn, too. */
void ls_memory_tenants_place(struct ls_memory_home *h, int64_t now_ms);
/* The end of an op that moves jobs: places, and unlocks. */
void ls_memory_leave_op(struct ls_memory_home *h, int64_t now_ms);
/* The place that follows from its numbers; frees it when nothing refers to it. Wakes workers when it may run. */
void ls_memory_tenant_settle(struct ls_memory_home *h, struct ls_memory_tenant *t, int64_t now_ms);
/* The default limit changed: all that are held may try again. */
void ls_memory_tenants_loosen(struct ls_memory_queue *q);
/* Frees those that nothing refers to. */
void ls_memory_tenants_trim(struct ls_memory_queue *q, int64_t now_ms);
/* All of a queue; it has no jobs any more. */
void ls_memory_tenants_free(struct ls_memory_queue *q);
struct lq_limit ls_memory_tenant_limit(const struct ls_memory_tenant *t);
/* Its first ready job, or that of the jobs without a key when t is NULL; NULL = none. */
struct ls_memory_job *ls_memory_first_ready(const struct ls_memory_queue *q,
                                            const struct ls_memory_tenant *t);

struct ls_memory_turn {
    struct ls_memory_job *job; /* NULL: none may be taken */
    struct ls_memory_tenant *tenant;
    int64_t at;
};

/* Whose turn it is in a queue that is gated. */
struct ls_memory_turn ls_memory_turn_begin(struct ls_memory_home *h, struct ls_memory_queue *q,
                                           int64_t now_ms);
/* When its job has been leased. */
void ls_memory_turn_end(struct ls_memory_home *h, struct ls_memory_queue *q,
                        const struct ls_memory_turn *turn, int64_t now_ms);
/* When a limit lets a job pass that is ready, in ms; 0 = not by time. */
int64_t ls_memory_queue_next_turn(const struct ls_memory_queue *q, int64_t now_ms);

/* workers */
struct ls_memory_worker *ls_memory_worker_find(const struct ls_memory_home *h, const char *id);
/* NULL when out of memory. */
struct ls_memory_worker *ls_memory_worker_make(struct ls_memory_home *h, const char *id);
bool ls_memory_worker_is_live(const struct ls_memory_worker *w, int64_t now_ms);
bool ls_memory_worker_serves(const struct ls_memory_worker *w, const char *queue);
/* No longer registered; stays while it holds leases. */
void ls_memory_worker_void(struct ls_memory_home *h, struct ls_memory_worker *w);
/* Frees it when it is neither registered nor holds a lease. */
void ls_memory_worker_settle(struct ls_memory_home *h, struct ls_memory_worker *w);

/* events, watchers, notes: memory_event.c */
/* Appends to the stream of the queue, when it has one. */
void ls_memory_event(struct ls_memory_home *h, struct ls_memory_queue *q, const struct lq_ev *e,
                     int64_t now_ms);
/* The same about a job; what is not in `e` is filled in. */
void ls_memory_event_job(struct ls_memory_home *h, const struct ls_memory_job *j, struct lq_ev e,
                         int64_t now_ms);
void ls_memory_stream_clear(struct ls_memory_queue *q);
/* Something that can be watched has come to pass. */
void ls_memory_ring_watchers(struct ls_memory_home *h);
struct ls_memory_watcher *ls_memory_watcher_find(const struct ls_memory_home *h, const char *name);
void ls_memory_watcher_free(struct ls_memory_watcher *w);
void ls_memory_notes_free(struct ls_memory_notes *notes);
/* op_schedule.c */
bool ls_memory_schedules_any(const struct ls_memory_home *h);
void ls_memory_schedules_clear(struct ls_memory_home *h);
void ls_memory_schedules_check(struct ls_memory_home *h, lq_finding_fn report, void *ctx);
/*
 * The put op with the lock held: 0, LADE_FULL when `bounded`, or -LADE_ENOMEM without a text; nothing has happened then.
 */
int ls_memory_put_locked(struct ls_memory_home *h, struct lq_put *put, size_t n, bool bounded,
                         int64_t now_ms);
/* op_bound.c: whether n more jobs fit into the bound of the queue, which may be NULL. */
bool ls_memory_bound_fits(const struct ls_memory_queue *q, int64_t n, int64_t bytes);

/* Frees everything in it. */
void ls_memory_home_clear(struct ls_memory_home *h);

#endif
