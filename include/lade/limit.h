/*
 * limit.h - part 7 of lade.h: keys, limits and fair turns
 *
 * A job may have a key (lade_job_spec.key): the customer, account or device that it is for. Of the ready jobs of one queue
 * each key has its turn, in proportion to its weight, whoever has how many: one tenant's million jobs do not delay another's
 * ten. Jobs without a key share one turn, as if they had one key. Priority counts within a key only.
 *
 * A limit says how much of that may run:
 *
 *     lade_limit l = {.concurrency = 2, .rate = {.count = 100, .period = LADE_SECOND}};
 *     lade_limit_set(q, "mail", LADE_LIMIT_KEYS, LADE_STR(""), &l, &err);   // each key: 2 at once, 100 a second
 *
 * Three scopes: the whole queue, the default of all its keys, and one key, whose own fields come before the default. Limits
 * hold over all workers of all processes; the store counts. A change holds from the next take on. Jobs of a key that is at its
 * limit or paused are held: they stay ready, count as `held` beside, and cost nothing until a slot or a token is free.
 *
 * Results, units, ownership and threads are as in lade.h. Failures common to all: EINVAL (queue, key or a field, named with
 * its rule; nothing was written), EUNSUPPORTED (a store without keys), EUNAVAILABLE, EBUSY, ENOMEM.
 */
#ifndef LADE_LIMIT_H
#define LADE_LIMIT_H

#include <lade/lade.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LADE_LIMIT_CONCURRENCY_MAX 1000000000
#define LADE_LIMIT_WEIGHT_MAX      10000
#define LADE_LIMIT_NONE            (-1) /* of one key: no such limit, whatever the default says */

/*
 * A token bucket: `burst` jobs may start at once, then one each period / count. In any stretch of `period` at most
 * count + burst jobs start.
 */
typedef struct lade_rate {
    int64_t
        count; /* 0 = no rate (of one key: the default); LADE_LIMIT_NONE; at most one a microsecond */
    int64_t period; /* at least 1 ms; burst * period / count is at most 100 years */
    int64_t burst;  /* 0 = count; at least 1 */
} lade_rate;

enum lade_key_order {
    LADE_KEY_ORDER_DEFAULT = 0, /* of one key: what the default says, which is ANY */
    LADE_KEY_ORDER_ANY = 1,
    /*
     * One job of the key at a time, in order: while one is active, or waits for its retry or the end of its snooze, the others
     * of the key wait, and it comes back before them.
     */
    LADE_KEY_ORDER_FIFO = 2
};

/* Zero is "none" in every field; of one key "as the default says". */
typedef struct lade_limit {
    int64_t concurrency; /* jobs active at once; LADE_LIMIT_NONE for one key */
    lade_rate rate;
    int64_t weight;            /* 1 to LADE_LIMIT_WEIGHT_MAX, 0 = 1; not of the queue */
    enum lade_key_order order; /* not of the queue */
} lade_limit;

enum lade_limit_scope {
    LADE_LIMIT_QUEUE = 0, /* the whole queue */
    LADE_LIMIT_KEYS = 1,  /* each of its keys that does not say otherwise; not jobs without one */
    LADE_LIMIT_KEY = 2    /* one key */
};

/*
 * Sets a limit in place of the one that is there; all zero removes it. Makes the queue if need be. `key` counts for the scope KEY
 * only: 1 to LADE_KEY_MAX bytes. Jobs that are active already stay so. Returns 0.
 */
LADE_API LADE_CHECKED int lade_limit_set(lade *q, const char *queue, enum lade_limit_scope scope,
                                         lade_bytes key, const lade_limit *limit, lade_err *err);
/* The limit as it was set; all zero when there is none. Returns 0, or LADE_NOT_FOUND: no such queue. */
LADE_API LADE_CHECKED int lade_limit_get(lade *q, const char *queue, enum lade_limit_scope scope,
                                         lade_bytes key, lade_limit *out, lade_err *err);
/* As lade_limit_set with all zero, but makes nothing. Returns 0, or LADE_NOT_FOUND: no such queue, or nothing was set. */
LADE_API LADE_CHECKED int lade_limit_remove(lade *q, const char *queue, enum lade_limit_scope scope,
                                            lade_bytes key, lade_err *err);

/*
 * A bound says how many jobs may wait in a queue, how many bytes they may have, or both: ready (held ones too), scheduled and retrying
 * together; active and ended ones do not count. A job's bytes are what the store keeps of it when it is put: payload, kind, headers
 * and what was said of it, some 20 to 100 bytes more than the payload alone; neither history nor results. It holds for enqueues of all processes, each call admitted whole or refused whole, and is exact: no enqueue ever takes a
 * queue over its bound. Everything else is always admitted and may take it over: retries, snoozes and jobs handed back,
 * retry and redrive by an operator, steps of workflows, fires of schedules. A queue that is over its bound, or whose bound was
 * lowered, loses nothing; enqueues are refused until enough jobs have left.
 */
enum lade_on_full {
    LADE_FULL_REJECT = 0, /* the enqueue returns LADE_FULL at once */
    /*
     * The enqueue waits for room, woken by what makes it, up to lade_options.timeout; then LADE_FULL. A call with more jobs or bytes
     * than the bound is refused at once, and so is one within a transaction of the caller's (lade/sqlite.h).
     */
    LADE_FULL_BLOCK = 1
};

#define LADE_BOUND_JOBS_MAX  INT64_C(1000000000)
#define LADE_BOUND_BYTES_MAX (INT64_C(1) << 50)

typedef struct lade_bound {
    int64_t max_jobs; /* 0 = no bound; at most LADE_BOUND_JOBS_MAX */
    enum lade_on_full on_full;
    int64_t max_bytes; /* 0 = no bound; at most LADE_BOUND_BYTES_MAX */
    int64_t
        bytes; /* lade_bound_get: what waits now; counted while max_bytes is set, else 0. lade_bound_set passes it over */
} lade_bound;

/*
 * Sets the bound of a queue in place of the one that is there; both 0 removes it. Makes the queue if need be. It holds from the next
 * enqueue on, and those that wait for room look again. Setting max_bytes where there was none reads the sizes of the jobs that are there
 * (docs/limits.md has what that costs). Returns 0. Failures: EINVAL names the field.
 */
LADE_API LADE_CHECKED int lade_bound_set(lade *q, const char *queue, const lade_bound *bound,
                                         lade_err *err);
/* The bound as it was set, all zero when there is none. Returns 0, or LADE_NOT_FOUND: no such queue. */
LADE_API LADE_CHECKED int lade_bound_get(lade *q, const char *queue, lade_bound *out,
                                         lade_err *err);

/* Why the ready jobs of a key do not run. */
enum lade_key_hold {
    LADE_HELD_NOT = 0,
    LADE_HELD_PAUSED = 1, /* by an operator, or until `until` by a handler (LADE_RATE_LIMITED) */
    LADE_HELD_CONCURRENCY = 2, /* as many as may are active */
    LADE_HELD_RATE = 3,        /* until the next token, at `until` */
    LADE_HELD_ORDER = 4        /* FIFO: one is active or waits for its retry */
};

/* "paused" and so on, "" for NOT; NULL for a value out of range. */
LADE_API const char *lade_key_hold_name(enum lade_key_hold hold);

typedef struct lade_key_info {
    lade_bytes key;
    uint64_t ready; /* held ones too */
    uint64_t active;
    uint64_t waiting; /* scheduled and retrying */
    bool paused;
    enum lade_key_hold hold; /* now */
    int64_t until;           /* when the hold ends by itself; 0 = not by time, or no hold */
    int64_t latency;         /* age of its first ready job in ns, 0 when none */
    lade_limit own;          /* what was set for this key */
    lade_limit limit;        /* what holds for it */
} lade_key_info;

/*
 * Up to `limit` (1 to 1,000) keys of a queue that have jobs, limits of their own or a pause, by their bytes, from the cursor on. *out is one
 * block with all it points to, *n of them, the caller's: lade_free. Returns 0, or LADE_EMPTY when the page is empty and the
 * listing done; *out is then NULL.
 */
LADE_API LADE_CHECKED int lade_key_list(lade *q, const char *queue, lade_cursor *cursor,
                                        size_t limit, lade_key_info **out, size_t *n,
                                        lade_err *err);
/* One key; *out as of lade_key_list. Returns 0 or LADE_NOT_FOUND: nothing is known of it. */
LADE_API LADE_CHECKED int lade_key_get(lade *q, const char *queue, lade_bytes key,
                                       lade_key_info **out, lade_err *err);
/* No job of the key is taken until it is resumed; running ones go on. Makes the queue if need be. */
LADE_API LADE_CHECKED int lade_key_pause(lade *q, const char *queue, lade_bytes key, lade_err *err);
/* Ends a pause, also one until a time. */
LADE_API LADE_CHECKED int lade_key_resume(lade *q, const char *queue, lade_bytes key,
                                          lade_err *err);

/* The key of a job, empty when it has none; lives until the handler returns. */
LADE_API lade_bytes lade_job_key(const lade_job *job);
/* With LADE_RATE_LIMITED: how long the key is paused; >= 0; keeps the last value given. Default 1 s. */
LADE_API void lade_job_rate_limited_for(lade_job *job, int64_t delay);

#ifdef __cplusplus
}
#endif

#endif
