/*
 * resque_inner.h - what the files of the Resque store share
 *
 * Resque's own keys are those of resque/resque_keys.h. Beside them, so that no job is lost with its worker:
 *
 *   <ns>:lade:workers         ZSET  incarnation -> alive until ms
 *   <ns>:lade:inflight:<inc>  HASH  fence -> "queue\nentry" of each job it holds; "b<fence>": it was begun after a crash;
 *                             "take": "number fence n" of the last take, for a repeat after a lost reply; "until": as in workers;
 *                             "ids": its Resque ids, "about": name, queues, concurrency, start, by newlines; "mode"
 *   <ns>:lade:fence           the last fence given
 *   <ns>:lade:crashes         HASH  SHA-1 of an entry -> history, of those that have killed a worker
 *
 * A job's id is "<incarnation>.<fence>": it lives as long as the lease, for a Resque entry has none of its own.
 *
 * Each slot of a worker is a Resque worker of its own to the others: an id, and in worker:<id> the job that it is at. In strict mode a
 * worker holds no more jobs than it has slots. In reliable mode it takes jobs ahead while they are fast, as from any store (fetch.c);
 * those have no slot, and get one that is free at the next renewal, should they still run then.
 *
 * Lock order: the registry of workers before a link; a link is never held while another is taken.
 */
#ifndef LADE_STORE_RESQUE_RESQUE_INNER_H
#define LADE_STORE_RESQUE_RESQUE_INNER_H

#include "base/base.h"
#include "base/list.h"
#include "queue/store.h"
#include "resque/resque_id.h"
#include "resque/resque_job.h"
#include "resque/resque_keys.h"
#include "rt/seam.h"
#include "store/redis/conn.h"
#include "store/redis/known.h"
#include "store/redis/script.h"
#include "store/redis/url.h"
#include "store/resque/resque_lanes.h"

enum ls_resque_lua {
    LS_RESQUE_LUA_TRIP = 0,
    LS_RESQUE_LUA_BEAT,
    LS_RESQUE_LUA_LEAVE,
    LS_RESQUE_LUA_RECLAIM,
    LS_RESQUE_LUA_LOOK,
    LS_RESQUE_LUA_PRUNE,
    LS_RESQUE_LUA_DELAYED,
    LS_RESQUE_LUA_MOVE,
    LS_RESQUE_LUA_FIND,
    LS_RESQUE_N_LUA
};

#define LS_RESQUE_SLOTS_MAX 1024

struct ls_resque_link {
    struct lr_mutex lock;
    struct ls_redis_conn *conn; /* guarded by: lock */
    bool bare;                  /* calls no scripts: it loads none */
};

/* A connection that the server tells when a key that it has read changes. */
struct ls_resque_watch {
    struct ls_redis_conn *conn;
    uint64_t generation; /* of the connection that was asked for it */
    bool refused;        /* by this server */
};

/* Fences of jobs that have no slot, oldest first; 0 = settled. Mostly the oldest are settled first. */
struct ls_resque_ahead {
    uint64_t *fence;
    size_t at, n, cap;
};

/* What this process knows of a worker incarnation. */
struct ls_resque_worker {
    struct ls_redis_known known;
    struct ls_resque_watch watch; /* of the waiting thread, as the next three */
    struct ls_resque_lanes lanes; /* what patterns stand for, at the last take */
    bool full, paused;            /* of the last take */
    int64_t due_ms;               /* when the first delayed job was due; -1 = there was none */
    struct lb_buf queues;         /* "a,b" without exclusions, since the first renewal */
    uint64_t *slot;               /* guarded by: work link; fences, 0 = free */
    size_t n_slots;               /* 0 = not registered */
    uint16_t
        *plan; /* guarded by: work link; n_plan slots that the next take is for, in this order */
    size_t n_plan;
    struct ls_resque_ahead ahead; /* guarded by: work link */
    pid_t pid;
    unsigned
        first_slot; /* number of its first slot in this process, so that no two ids are the same */
    uint64_t take_seq; /* guarded by: work link */
    bool take_doubt;   /* guarded by: work link */
};

struct ls_resque_store {
    struct lq_store base;
    struct ls_redis_url url;
    struct rq_keys keys;
    struct rq_host host;
    bool strict, active, multi; /* options of the URL */
    bool reached;               /* atomic */
    struct ls_resque_link put, admin, work, beat;
    unsigned n_slots;                 /* guarded by: work link; given so far */
    bool settle_doubt;                /* guarded by: work link; a settle ended without an answer */
    struct ls_redis_registry workers; /* each begins as ls_redis_known */
};

static inline struct ls_resque_store *ls_resque_of(struct lq_store *s)
{
    return LB_CONTAINER_OF(s, struct ls_resque_store, base);
}

extern struct ls_redis_script_table ls_resque_scripts;

/* What commands of a call are made of: each encodes itself into the connection. */
typedef void (*ls_resque_encode)(struct ls_redis_conn *c, void *ctx, bool repeat);

struct ls_resque_ask {
    ls_resque_encode encode;
    void *ctx;
    const char *where;
    bool once; /* fail rather than send again what may have been done */
};

/* With the link locked by the caller. 0: n replies are there and none is an error; *out is its connection. */
LADE_CHECKED int ls_resque_ask(struct ls_resque_store *s, struct ls_resque_link *l,
                               const struct ls_resque_ask *ask, size_t n,
                               struct ls_redis_conn **out, lade_err *err);
/* bare: without scripts. blocking: for commands that block, so without them too. */
LADE_CHECKED int ls_resque_conn_make(struct ls_resque_store *s, bool bare, bool blocking,
                                     struct ls_redis_conn **out, lade_err *err);
int64_t ls_resque_deadline(const struct ls_resque_store *s);

/* A key as an argument: prefix and name, or prefix, kind and part. */
void ls_resque_key(struct ls_redis_cmd *cmd, const struct ls_resque_store *s, const char *name);
void ls_resque_key_of(struct ls_redis_cmd *cmd, const struct ls_resque_store *s, const char *kind,
                      struct lb_slice part);

/* Finds or makes; NULL when out of memory or descriptors. Give it back with unref. */
static inline struct ls_resque_worker *ls_resque_worker_ref(struct ls_resque_store *s,
                                                            const char *id)
{
    return (struct ls_resque_worker *)ls_redis_registry_hold(&s->workers, id);
}

/* Finds only. */
static inline struct ls_resque_worker *ls_resque_worker_find(struct ls_resque_store *s,
                                                             struct lb_slice id)
{
    return (struct ls_resque_worker *)ls_redis_registry_find(&s->workers, id);
}

static inline void ls_resque_worker_unref(struct ls_resque_store *s, struct ls_resque_worker *w)
{
    ls_redis_registry_let_go(&s->workers, &w->known);
}

/* The incarnation is no more. */
static inline void ls_resque_worker_forget(struct ls_resque_store *s, const char *id)
{
    ls_redis_registry_forget(&s->workers, id);
}

bool ls_resque_ahead_add(struct ls_resque_ahead *a, uint64_t fence);
/* False when it is not there. */
bool ls_resque_ahead_remove(struct ls_resque_ahead *a, uint64_t fence);
/* The oldest; 0 = none. */
uint64_t ls_resque_ahead_first(struct ls_resque_ahead *a);
/* Appends the Resque id of a slot. */
void ls_resque_slot_id(const struct ls_resque_store *s, const struct ls_resque_worker *w,
                       size_t slot, struct lb_buf *out);

/* resque_envelope.c: between what the engine stores and what lies in a Resque queue. */
struct ls_resque_entry {
    bool active;  /* in ActiveJob's wrapper */
    bool delayed; /* as resque-scheduler keeps it */
    int64_t now_ms;
};

/* Appends the entry of an envelope. What Resque cannot do is -LADE_EUNSUPPORTED naming it; args that are no JSON array are EINVAL. */
LADE_CHECKED int ls_resque_entry_write(struct lb_buf *out, const struct ls_resque_entry *e,
                                       const struct lq_put *put, lade_err *err);
/*
 * Appends an envelope of an entry that rq_job_read found fine; of a job of ActiveJob's, its own class and arguments. NULL, or what is wrong,
 * "is ...", "args[0].job_class: must ..."; out of memory shows in out->failed.
 */
const char *ls_resque_body_write(struct lb_buf *out, const struct rq_job *job, int64_t now_ms);

/* The ops, by file. */
int ls_resque_passed_on(struct lq_store *base, const struct lq_put *put, struct lb_buf *out,
                        lade_err *err);
int ls_resque_now(struct lq_store *base, int64_t *now_ms, lade_err *err);
int ls_resque_put(struct lq_store *base, struct lq_put *put, size_t n, lade_err *err);
int ls_resque_settle_take(struct lq_store *base, struct lq_settle *it, size_t n,
                          const struct lq_take *take, struct lq_leased_vec *out, lade_err *err);
int ls_resque_begin(struct lq_store *base, const char *worker, struct lq_lease *lease, size_t n,
                    lade_err *err);
int ls_resque_reclaim(struct lq_store *base, const struct lq_take *take, struct lq_leased_vec *out,
                      lade_err *err);
int ls_resque_renew(struct lq_store *base, const struct lq_beat *beat, struct lq_stop *stop,
                    size_t max, size_t *n_stop, lade_err *err);
int ls_resque_leave(struct lq_store *base, const char *worker, struct lq_lanes lanes,
                    lade_err *err);
int ls_resque_wait(struct lq_store *base, const char *worker, struct lq_lanes lanes,
                   int64_t deadline, lade_err *err);
void ls_resque_wake(struct lq_store *base, const char *worker);
int ls_resque_promote(struct lq_store *base, struct lq_lanes lanes, size_t max, size_t *n,
                      int64_t *next_ms, lade_err *err);
/*
 * The same without lanes: what is due of all queues, unless another is the master scheduler. *next_ms is 0 when the schedule has changed by it, or
 * nothing is in it.
 */
LADE_CHECKED int ls_resque_promote_due(struct ls_resque_store *s, size_t max, size_t *n,
                                       int64_t *next_ms, lade_err *err);
int ls_resque_queues(struct lq_store *base, struct lb_arena *arena, const char ***name, size_t *n,
                     lade_err *err);
int ls_resque_count(struct lq_store *base, const char *queue, lade_queue_info *out, lade_err *err);
int ls_resque_list_workers(struct lq_store *base, struct lb_arena *arena, lade_worker_info **out,
                           size_t *n, lade_err *err);
int ls_resque_check(struct lq_store *base, lq_finding_fn report, void *ctx, lade_err *err);
/* Ready and active alone; of delayed and failed jobs, the admin link being locked. */
int ls_resque_count_waiting(struct ls_resque_store *s, const char *queue, lade_queue_info *out,
                            lade_err *err);
int ls_resque_count_found(struct ls_resque_store *s, const char *queue, lade_queue_info *info,
                          lade_err *err);
/* Of what is delayed (scheduled) and what has failed (dead): op_resque_jobs.c. */
int ls_resque_get(struct lq_store *base, const char *queue, struct lb_slice id,
                  struct lq_row_vec *out, lade_err *err);
int ls_resque_list(struct lq_store *base, const char *queue, enum lade_state state,
                   lade_cursor *cursor, size_t limit, struct lq_row_vec *out, lade_err *err);
int ls_resque_act(struct lq_store *base, const char *queue, enum lade_job_verb verb,
                  const struct lb_slice *id, size_t n, int *outcome, lade_err *err);
int ls_resque_purge(struct lq_store *base, const char *queue, enum lade_state state, size_t max,
                    size_t *n, lade_err *err);
int ls_resque_redrive(struct lq_store *base, const char *queue, size_t max, size_t *n,
                      lade_err *err);

/* Entries that a take or a reclaim brought, before they are jobs. */
struct ls_resque_held {
    uint64_t fence;
    uint32_t lane;
    bool shown;                               /* its slot says so already */
    bool begun, lost;                         /* lost: of a worker in strict mode that is gone */
    bool named;                               /* its queue may be none of the lanes */
    struct lb_slice entry, history;           /* in the reply, as all of these */
    struct lb_slice former, former_id, queue; /* of a reclaim: incarnation, its first Resque id */
};

/* A settle of the trip script, being written; see lua/trip.lua. */
struct ls_resque_piece {
    char action;
    struct lb_slice worker; /* incarnation */
    uint64_t fence;
    size_t at, n_id, n_before, n_after; /* in the texts of the call, one behind the other */
};

struct ls_resque_pieces {
    const struct ls_resque_store *s;
    struct ls_resque_piece *piece; /* room for all */
    size_t n;
    struct lb_buf texts;
    bool lenient;
};

/* Begins the call with its settles; a take may follow, then ls_redis_cmd_end. n_more: arguments of the take. */
struct ls_redis_cmd *ls_resque_begin_trip(struct ls_redis_conn *c, const struct ls_resque_pieces *p,
                                          size_t n_more, bool repeat);

/* Adds the texts of a failure: its exception and error, whatever the entry is, or as `payload` says. */
struct ls_resque_words {
    const char *exception;
    struct lb_slice error, worker, queue;
    struct lb_slice payload; /* {NULL, 0}: the entry, as the server has it */
};

void ls_resque_add_failure(struct ls_resque_pieces *p, struct ls_resque_piece *piece,
                           const struct ls_resque_words *words);

/*
 * Makes jobs of them, the k-th in slot plan[k] unless it is of a reclaim. Entries that are none, and the lost, go to the failed list
 * instead, by a call of their own. With the work link locked; the bytes of `held` are of the link's last reply and gone afterwards.
 */
LADE_CHECKED int ls_resque_adopt(struct ls_resque_store *s, struct ls_resque_worker *w,
                                 const struct ls_resque_held *held, size_t n,
                                 struct lq_leased_vec *out, lade_err *err);

/* resque_refuse.c: what Resque has no place for. */
#define LS_RESQUE_REFUSED_OPS                                                                \
    .note = ls_resque_no_note, .results = ls_resque_no_results, .watch = ls_resque_no_watch, \
    .unwatch = ls_resque_no_unwatch, .say = ls_resque_no_say, .words = ls_resque_no_words,   \
    .events_set = ls_resque_no_events_set, .events_get = ls_resque_no_events_get,            \
    .event_read = ls_resque_no_event_read, .pause = ls_resque_no_pause,                      \
    .forget = ls_resque_no_forget
int ls_resque_no_note(struct lq_store *s, struct lq_note *it, size_t n, lade_err *err);
int ls_resque_no_results(struct lq_store *s, const char *queue, const struct lb_slice *id, size_t n,
                         struct lb_arena *arena, struct lq_result *out, lade_err *err);
int ls_resque_no_watch(struct lq_store *s, const char *waiter, struct lq_watch *it, size_t n,
                       lade_err *err);
void ls_resque_no_unwatch(struct lq_store *s, const char *waiter, struct lq_lanes lanes);
int ls_resque_no_say(struct lq_store *s, struct lq_say *it, size_t n, lade_err *err);
int ls_resque_no_words(struct lq_store *s, const char *queue, struct lb_slice id,
                       struct lq_words *out, lade_err *err);
int ls_resque_no_events_set(struct lq_store *s, const char *queue, uint32_t cap, lade_err *err);
int ls_resque_no_events_get(struct lq_store *s, const char *queue, lade_events_info *out,
                            lade_err *err);
int ls_resque_no_event_read(struct lq_store *s, const char *queue, uint64_t after, size_t max,
                            struct lq_event_vec *out, lade_err *err);
int ls_resque_no_pause(struct lq_store *s, const char *queue, bool paused, lade_err *err);
int ls_resque_no_forget(struct lq_store *s, const char *queue, lade_err *err);
int ls_resque_trim(struct lq_store *base, struct lq_lanes lanes, size_t max, size_t *n,
                   lade_err *err);

#endif
