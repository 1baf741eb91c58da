/*
 * store_inner.h - what the files of the Redis store share
 *
 * Lock order: the registry of workers before a link; a link is never held while another is taken.
 */
#ifndef LADE_STORE_REDIS_STORE_INNER_H
#define LADE_STORE_REDIS_STORE_INNER_H

#include <stdatomic.h>

#include "base/base.h"
#include "base/list.h"
#include "queue/bound.h"
#include "queue/event.h"
#include "queue/store.h"
#include "rt/seam.h"
#include "store/redis/conn.h"
#include "store/redis/keys.h"
#include "store/redis/known.h"
#include "store/redis/script.h"
#include "store/redis/url.h"

/* Index of each script in the table that every connection loads. */
enum ls_redis_lua {
    LS_REDIS_LUA_PUT = 0,
    LS_REDIS_LUA_PACKS_PUT,
    LS_REDIS_LUA_COMPANY_PUT,
    LS_REDIS_LUA_APART,
    LS_REDIS_LUA_LATER_PUT,
    LS_REDIS_LUA_GATHER,
    LS_REDIS_LUA_TAKE,
    LS_REDIS_LUA_SETTLE,
    LS_REDIS_LUA_TRIP,
    LS_REDIS_LUA_BEGIN,
    LS_REDIS_LUA_NOTE,
    LS_REDIS_LUA_WATCH,
    LS_REDIS_LUA_BOUND,
    LS_REDIS_LUA_CONTROL,
    LS_REDIS_LUA_STREAM,
    LS_REDIS_LUA_EVENTS,
    LS_REDIS_LUA_SAY,
    LS_REDIS_LUA_WORDS,
    LS_REDIS_LUA_RESULTS,
    LS_REDIS_LUA_RENEW,
    LS_REDIS_LUA_LEAVE,
    LS_REDIS_LUA_RECLAIM,
    LS_REDIS_LUA_PROMOTE,
    LS_REDIS_LUA_TRIM,
    LS_REDIS_LUA_COUNT,
    LS_REDIS_LUA_PAGE,
    LS_REDIS_LUA_ROWS,
    LS_REDIS_LUA_ACT,
    LS_REDIS_LUA_CHANGE,
    LS_REDIS_LUA_CLASSES,
    LS_REDIS_LUA_LIST_CLASS,
    LS_REDIS_LUA_PURGE,
    LS_REDIS_LUA_REDRIVE,
    LS_REDIS_LUA_PAUSE,
    LS_REDIS_LUA_FORGET,
    LS_REDIS_LUA_KEY_SET,
    LS_REDIS_LUA_KEY_LOOK,
    LS_REDIS_LUA_CHECK,
    LS_REDIS_LUA_TYPES,
    LS_REDIS_LUA_FLOW_PUT,
    LS_REDIS_LUA_FOLD_PUT,
    LS_REDIS_LUA_FLOW_SETTLE,
    LS_REDIS_LUA_FLOW_TRIP,
    LS_REDIS_LUA_FLOW_ACT,
    LS_REDIS_LUA_FLOW_LOOK,
    LS_REDIS_LUA_FLOW_CHECK,
    LS_REDIS_LUA_SCHEDULE,
    LS_REDIS_LUA_SCHEDULE_FIRE,
    LS_REDIS_LUA_SCHEDULE_LOOK,
    LS_REDIS_LUA_FAR,
    LS_REDIS_LUA_SHIPPED,
    LS_REDIS_N_LUA
};

extern struct ls_redis_script_table ls_redis_scripts; /* constant once a store was opened */

#define LS_REDIS_ANSWER_BYTES (INT64_C(16) << 20) /* bodies of one take or page, but one at least */
#define LS_REDIS_PUT_BYTES    (UINT64_C(512) << 20) /* bodies of one put; a server takes 1 GiB */
#define LS_REDIS_BIG_BODY     UINT64_C(65536)
#define LS_REDIS_DOUBTS_MAX   16
#define LS_REDIS_TOLD         1000 /* added to a lane by take.lua, reclaim.lua */
#define LS_REDIS_HOPPED       2000 /* the same by flow_trip.lua: a next step */
#define LS_REDIS_CHAINED      4000 /* the same by take.lua: a step of a folded chain */
#define LS_REDIS_TELLING_MAX  64   /* the settles of further queues come without their events */
#define LS_REDIS_FOLDING_MAX  16
#define LS_REDIS_STOPS_MAX    256 /* stops a renew fetches at most */
#define LS_REDIS_BLOCK_MS     60000

struct ls_redis_link {
    struct lr_mutex lock;
    struct ls_redis_conn *conn; /* guarded by: lock */
};

/* Settles that ended without an answer; the newest. */
struct ls_redis_doubt {
    uint64_t tag;
    int64_t until; /* mono ns: the server has forgotten the answer then */
};

/* What this process knows of a worker incarnation. */
struct ls_redis_worker {
    struct ls_redis_known known;
    struct ls_redis_conn *bell;            /* of the waiting thread */
    char (*bell_lanes)[LADE_NAME_MAX + 1]; /* of the outstanding BLPOP */
    size_t n_bell_lanes;
    int64_t answer_by;    /* of it: when the server must have answered; lb_clock_mono */
    uint64_t told;        /* in slots: the connection of `bell` that was asked to tell of changes */
    bool untold;          /* and it will not */
    atomic_bool in_doubt; /* the bell's connection may be dead: drop it */
    uint64_t take_seq, won_seq; /* guarded by: work link */
    bool take_doubt, won_doubt; /* guarded by: work link; the last call ended without an answer */
    bool idle;                  /* guarded by: work link; may be registered as idle */
    struct lb_buf stops;        /* guarded by: beat link; "queue\0text\0" of the last renew */
    uint32_t run;               /* guarded by: beat link; of `runs` when it last renewed */
};

/* How often in a row a short way was in vain, and how many calls do not try it. */
struct ls_redis_detour {
    unsigned misses, rest;
};

#define LS_REDIS_MISSES_MAX 7 /* in a row that are counted */

/* Whether to try it; false counts as one that does not. */
static inline bool ls_redis_detour_is_open(struct ls_redis_detour *d)
{
    if (d->rest == 0)
        return true;
    d->rest--;
    return false;
}

/* It may be in vain each time, as for queues that keep events: after the k-th miss in a row 2^(k-1) - 1 calls do not try it. */
static inline void ls_redis_detour_note(struct ls_redis_detour *d, bool missed)
{
    d->misses = missed ? LB_MIN(d->misses + 1, LS_REDIS_MISSES_MAX) : 0;
    if (missed)
        d->rest = (1U << d->misses) / 2 - 1;
}

struct ls_redis_store {
    struct lq_store base;
    struct ls_redis_url url;
    char client[LADE_ID_MAX + 1]; /* names this store at the server, for answers it remembers */
    int64_t bulk_max;             /* longest string the server accepts; 0 = unknown */
    int64_t block_ms;             /* of a BLPOP at the server */
    bool reached;                 /* atomic: a connection of this store has been up */
    bool slots;                   /* atomic: the server is of a cluster; slots.h */
    struct ls_redis_link admin, work, beat;
    char run_id[LS_REDIS_SHA_LEN + 1]; /* guarded by: beat link; the server's; "" = not known */
    uint64_t run_seen;                 /* guarded by: beat link; the connection that was asked */
    uint32_t runs;                     /* guarded by: beat link; how often run_id changed */
    uint64_t put_seq;                  /* guarded by: admin link */
    struct ls_redis_detour inbox, quick, later, company; /* guarded by: admin link; op_put.c */
    struct ls_redis_company *companies;                  /* guarded by: admin link; company.h */
    char folding[LS_REDIS_FOLDING_MAX]
                [LADE_NAME_MAX + 1]; /* guarded by: admin link; queues whose inbox takes flows */
    size_t n_folding;                /* guarded by: admin link; how often one was added */
    bool some_idle; /* guarded by: admin link; the last put by an inbox met a worker to wake */
    struct ls_redis_detour trip;                      /* guarded by: work link; op_take.c */
    struct ls_redis_shelf *shelf;                     /* guarded by: work link */
    uint64_t settle_tag;                              /* guarded by: work link */
    struct ls_redis_doubt doubt[LS_REDIS_DOUBTS_MAX]; /* guarded by: work link */
    char telling[LS_REDIS_TELLING_MAX]
                [LADE_NAME_MAX + 1]; /* guarded by: work link; queues with events */
    size_t n_telling;
    size_t n_doubts;
    struct ls_redis_registry workers; /* each begins as ls_redis_known */
};

static inline struct ls_redis_store *ls_redis_of(struct lq_store *s)
{
    return LB_CONTAINER_OF(s, struct ls_redis_store, base);
}

int64_t ls_redis_deadline(const struct ls_redis_store *s);
/* The connection of a link, made when it is not there. The link is locked by the caller. */
LADE_CHECKED int ls_redis_link_conn(struct ls_redis_store *s, struct ls_redis_link *l,
                                    struct ls_redis_conn **out, lade_err *err);
LADE_CHECKED int ls_redis_conn_make(struct ls_redis_store *s, bool blocking,
                                    struct ls_redis_conn **out, lade_err *err);

/* One call of this store: the lanes are for messages only. */
struct ls_redis_ask {
    void (*encode)(struct ls_redis_conn *c, void *ctx, bool repeat);
    void *ctx;
    const char *where;
    bool once;
    const char *const *queue;
    size_t n_queues;
};

/*
 * Locks nothing: the caller holds the link. 0: n replies are there and none is an error. < 0 as conn.h, and EFOREIGN
 * naming the key, EFORMAT naming the version.
 */
LADE_CHECKED int ls_redis_ask(struct ls_redis_store *s, struct ls_redis_conn *c,
                              const struct ls_redis_ask *ask, size_t n, lade_err *err);
/* Reply i is an error: the failure for it. */
LADE_CHECKED int ls_redis_refuse(struct ls_redis_store *s, struct ls_redis_conn *c,
                                 const struct ls_redis_ask *ask, size_t i, lade_err *err);

/*
 * What was written on this connection is on as many replicas as the URL asks for; at once when it asks for none. < 0: it may not
 * be. The caller holds the link and has used the connection for that write only since.
 */
LADE_CHECKED int ls_redis_replicate(struct ls_redis_store *s, struct ls_redis_conn *c,
                                    const char *where, lade_err *err);

/* Finds or makes; NULL when out of memory or descriptors. Give it back with unref. */
static inline struct ls_redis_worker *ls_redis_worker_ref(struct ls_redis_store *s, const char *id)
{
    return (struct ls_redis_worker *)ls_redis_registry_hold(&s->workers, id);
}

static inline void ls_redis_worker_unref(struct ls_redis_store *s, struct ls_redis_worker *w)
{
    ls_redis_registry_let_go(&s->workers, &w->known);
}

/* The incarnation is no more. */
static inline void ls_redis_worker_forget(struct ls_redis_store *s, const char *id)
{
    ls_redis_registry_forget(&s->workers, id);
}

/* A heartbeat got no answer: the waits look whether theirs are still to be had. */
void ls_redis_doubt_bells(struct ls_redis_store *s);

void ls_redis_keys_of(struct ls_redis_cmd *cmd, const struct ls_redis_store *s,
                      struct lq_lanes lanes);

/* The ops, by file. */
extern const struct lq_bound_ops ls_redis_bound_ops;
extern const struct lq_control_ops ls_redis_control_ops;
extern const struct lq_schedule_ops ls_redis_schedule_ops;
struct lq_fire;
/* n pairs of index and holder. */
void ls_redis_read_duplicates(struct ls_redis_cursor *cur, size_t n, struct lq_fire *f);
int ls_redis_schedules_check(struct lq_store *base, lq_finding_fn report, void *ctx, lade_err *err);
int ls_redis_put(struct lq_store *base, struct lq_put *put, size_t n, lade_err *err);
int ls_redis_settle_take(struct lq_store *base, struct lq_settle *it, size_t n,
                         const struct lq_take *take, struct lq_leased_vec *out, lade_err *err);
int ls_redis_note(struct lq_store *base, struct lq_note *note, size_t n, lade_err *err);
int ls_redis_begin(struct lq_store *base, const char *worker, struct lq_lease *lease, size_t n,
                   lade_err *err);
int ls_redis_renew(struct lq_store *base, const struct lq_beat *beat, struct lq_stop *stop,
                   size_t max, size_t *n_stop, lade_err *err);
int ls_redis_leave(struct lq_store *base, const char *worker, struct lq_lanes lanes, lade_err *err);
int ls_redis_reclaim(struct lq_store *base, const struct lq_take *take, struct lq_leased_vec *out,
                     lade_err *err);
int ls_redis_promote(struct lq_store *base, struct lq_lanes lanes, size_t max, size_t *n,
                     int64_t *next_ms, lade_err *err);
int ls_redis_trim(struct lq_store *base, struct lq_lanes lanes, size_t max, size_t *n,
                  lade_err *err);
int ls_redis_wait(struct lq_store *base, const char *worker, struct lq_lanes lanes,
                  int64_t deadline, lade_err *err);
void ls_redis_wake(struct lq_store *base, const char *worker);
int ls_redis_queues(struct lq_store *base, struct lb_arena *arena, const char ***name, size_t *n,
                    lade_err *err);
int ls_redis_count(struct lq_store *base, const char *queue, lade_queue_info *out, lade_err *err);
int ls_redis_get(struct lq_store *base, const char *queue, struct lb_slice id,
                 struct lq_row_vec *out, lade_err *err);
int ls_redis_list(struct lq_store *base, const char *queue, enum lade_state state,
                  lade_cursor *cursor, size_t limit, struct lq_row_vec *out, lade_err *err);
int ls_redis_act(struct lq_store *base, const char *queue, enum lade_job_verb verb,
                 const struct lb_slice *id, size_t n, int *outcome, lade_err *err);
int ls_redis_purge(struct lq_store *base, const char *queue, enum lade_state state, size_t max,
                   size_t *n, lade_err *err);
int ls_redis_redrive(struct lq_store *base, const char *queue, size_t max, size_t *n,
                     lade_err *err);
int ls_redis_pause(struct lq_store *base, const char *queue, bool paused, lade_err *err);
int ls_redis_forget(struct lq_store *base, const char *queue, lade_err *err);
int ls_redis_list_workers(struct lq_store *base, struct lb_arena *arena, lade_worker_info **out,
                          size_t *n, lade_err *err);
int ls_redis_check(struct lq_store *base, lq_finding_fn report, void *ctx, lade_err *err);

/*
 * Decodes groups {lane, fence, ids, bodies, histories, oversize[, formers, begun]} and {lane, fence, entry} from the cursor
 * and appends the jobs. Those of an entry, "<id>+<n>", have no bodies yet (body.p is NULL): n of them that follow each
 * other. -LADE_EPROTO leaves err unset, -LADE_ENOMEM. After a failure some jobs may have been appended.
 */
LADE_CHECKED int ls_redis_read_leased(struct ls_redis_store *s, struct ls_redis_cursor *c,
                                      size_t n_groups, struct lq_lanes lanes,
                                      struct lq_leased_vec *out, lade_err *err);

/* op_await.c */
int ls_redis_results(struct lq_store *base, const char *queue, const struct lb_slice *id, size_t n,
                     struct lb_arena *arena, struct lq_result *out, lade_err *err);
int ls_redis_watch(struct lq_store *base, const char *waiter, struct lq_watch *it, size_t n,
                   lade_err *err);
void ls_redis_unwatch(struct lq_store *base, const char *waiter, struct lq_lanes lanes);
int ls_redis_say(struct lq_store *base, struct lq_say *it, size_t n, lade_err *err);
int ls_redis_words(struct lq_store *base, const char *queue, struct lb_slice id,
                   struct lq_words *out, lade_err *err);

/* op_stream.c */
int ls_redis_events_set(struct lq_store *base, const char *queue, uint32_t cap, lade_err *err);
int ls_redis_events_get(struct lq_store *base, const char *queue, lade_events_info *out,
                        lade_err *err);
int ls_redis_event_read(struct lq_store *base, const char *queue, uint64_t after, size_t max,
                        struct lq_event_vec *out, lade_err *err);
/* Whether settles of the queue come with their events, as its last take said. The work link is locked. */
void ls_redis_set_telling(struct ls_redis_store *s, const char *queue, bool on);
bool ls_redis_is_telling(const struct ls_redis_store *s, const char *queue);

/* op_flow.c */
int ls_redis_classes(struct lq_store *base, const char *queue, struct lq_class_vec *out,
                     lade_err *err);
int ls_redis_list_class(struct lq_store *base, const char *queue, struct lb_slice name,
                        int64_t from_ms, lade_cursor *cursor, size_t limit, struct lq_row_vec *out,
                        lade_err *err);
int ls_redis_change(struct lq_store *base, const char *queue, enum lq_change_verb verb,
                    struct lq_change *it, size_t n, lade_err *err);
int ls_redis_flow_put(struct lq_store *base, struct lq_flow *flow, lade_err *err);
int ls_redis_flow_get(struct lq_store *base, struct lb_slice id, struct lq_flow_row_vec *out,
                      lade_err *err);
int ls_redis_flow_list(struct lq_store *base, lade_cursor *cursor, size_t limit,
                       struct lq_flow_row_vec *out, lade_err *err);
int ls_redis_flow_inputs(struct lq_store *base, struct lb_slice id, uint32_t node, size_t first,
                         size_t max, struct lq_input_vec *out, lade_err *err);
int ls_redis_limit_set(struct lq_store *base, const char *queue, enum lade_limit_scope scope,
                       struct lb_slice key, const struct lq_limit *limit, lade_err *err);
int ls_redis_limit_get(struct lq_store *base, const char *queue, enum lade_limit_scope scope,
                       struct lb_slice key, struct lq_limit *out, lade_err *err);
int ls_redis_key_list(struct lq_store *base, const char *queue, lade_cursor *cursor, size_t limit,
                      struct lq_key_row_vec *out, lade_err *err);
int ls_redis_key_get(struct lq_store *base, const char *queue, struct lb_slice key,
                     struct lq_key_row_vec *out, lade_err *err);
int ls_redis_key_pause(struct lq_store *base, const char *queue, struct lb_slice key, bool paused,
                       lade_err *err);
int ls_redis_flow_act(struct lq_store *base, struct lb_slice id, enum lade_flow_verb verb,
                      lade_err *err);
/* Reports what is wrong with flows. */
LADE_CHECKED int ls_redis_flows_check(struct lq_store *base, lq_finding_fn report, void *ctx,
                                      lade_err *err);

#endif
