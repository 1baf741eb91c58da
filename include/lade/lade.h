/*
 * lade.h - background jobs for C: enqueue, work, look
 *
 * A program enqueues jobs; workers run them at least once. One engine, two stores:
 *
 *     sqlite:PATH                an embedded file, nothing to install, one machine
 *     redis://[user:pass@]host[:port][/db]   rediss:// (TLS)   unix:///path/to/socket[?db=N]
 *     memory:                    one process, lost at close, for tests
 *
 * This header reads from simple to special. Part 1 is all that most programs need:
 *
 *     lade *q;
 *     lade_err err;
 *     lade_id id;
 *     if (lade_open(&q, "sqlite:jobs.db", NULL, &err) < 0)
 *         return fail(&err);
 *     lade_enqueue(q, &(lade_job_spec){.kind = "mail", .payload = LADE_STR("{\"to\":\"a@b\"}")}, &id, &err);
 *     lade_close(q);
 *
 * Part 2 runs jobs, part 3 looks at them and moves them by hand.
 *
 * Results. Every function that can go wrong returns an int:
 *     0    done
 *     > 0  an outcome of enum lade_result that the function names: handle it
 *     < 0  a failure, -LADE_E...: the text is in *err, one line, what and why and what to do
 * A pointer that must not be NULL but is, a handle too, is -LADE_EINVAL; what returns no int then does nothing and returns the empty
 * value of its type. `err` may be NULL when the text is not wanted; it is written on failure only, except that lade_open and lade_worker_run clear it
 * first. Nothing is written to an out parameter on failure.
 *
 * Units. Every duration and time is int64_t nanoseconds: 5 * LADE_SECOND. Stores keep milliseconds;
 * a positive duration below one millisecond or over 100 years is refused, never rounded. Absolute times are
 * nanoseconds since 1970-01-01 UTC on the store's clock.
 *
 * Ownership. A pointer parameter is borrowed until the function returns unless its comment says
 * "takes". What a function hands out says who frees it.
 *
 * Threads. A `lade` may be used from any number of threads at once. A `lade_worker` is driven by one
 * thread; lade_worker_stop and lade_worker_quiet may come from anywhere. A `lade_job` belongs to the handler
 * call that got it, but lade_job_cancelled may be asked from any thread while the handler runs.
 */
#ifndef LADE_LADE_H
#define LADE_LADE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <lade/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Limits, all in bytes unless named otherwise. */
#define LADE_ID_MAX           64          /* job id */
#define LADE_NAME_MAX         128         /* queue and kind */
#define LADE_PAYLOAD_MAX      (1U << 20)  /* default of lade_options.payload_max */
#define LADE_PAYLOAD_MAX_HARD (64U << 20) /* no option goes beyond */
#define LADE_RESULT_MAX       (1U << 20)  /* result kept with a completed job */
#define LADE_HEADERS_MAX      64          /* headers of one job */
#define LADE_HEADERS_BYTES    (16U << 10) /* their names and values together */
#define LADE_ERROR_TEXT_MAX   4096        /* error text kept with one attempt; longer is cut */
#define LADE_UNIQUE_KEY_MAX   512
#define LADE_KEY_MAX          100
#define LADE_BATCH_MAX        10000 /* jobs of one lade_enqueue_many */
#define LADE_PRIORITY_MIN     (-4)
#define LADE_PRIORITY_MAX     4

/* A job id as text, NUL-terminated: 1 to LADE_ID_MAX characters of A-Z a-z 0-9 . _ : - , and one ~ in the ids that
 * workflows make (flow.h), which no explicit id can have */
typedef struct lade_id {
    char text[LADE_ID_MAX + 1];
} lade_id;

/* ---------------------------------------------------------------------------------------------
 * Part 1: open and enqueue
 * ------------------------------------------------------------------------------------------- */

typedef struct lade lade;

/* Zero means "the default" in every field, so `(lade_options){0}` and NULL are the defaults. */
typedef struct lade_options {
    const char *namespace_; /* first part of every Redis key; default "lade". Ignored by SQLite */
    /*
     * Longest payload that enqueue takes here, and that a worker on this handle reads: it sends larger jobs to the dead, whole.
     * Default LADE_PAYLOAD_MAX, at most LADE_PAYLOAD_MAX_HARD.
     */
    uint32_t payload_max;
    int64_t timeout;         /* longest any one call waits for the store; default 10 s */
    int64_t connect_timeout; /* default 5 s */

    struct {
        int64_t age;   /* default 1 h */
        int64_t count; /* default 1,000 for each queue; -1 keeps none */
    } keep_completed;  /* also for cancelled jobs */

    struct {
        int64_t age;   /* default 90 days */
        int64_t count; /* default 10,000 for each queue; -1 keeps none */
    } keep_dead;

    int64_t (*clock)(
        void *); /* wall clock in ns for SQLite and memory; NULL = the system's. Tests step it */
    void *clock_ctx;

    bool
        must_exist; /* a SQLite file that is not there is ENOSTORE, and nothing is made: for who only looks */
} lade_options;

/*
 * Opens a store. Makes a SQLite file that is not there, unless must_exist is set; connects to a server and checks its version.
 * `url` NULL or "" means the environment's LADE_URL, or else `sqlite:` in the XDG data directory ($XDG_DATA_HOME, or
 * .local/share in $HOME, which must be a directory). No other variable is asked: a REDIS_URL is somebody else's.
 * `resque://` is the queues of Ruby's Resque (docs/resque.md): what those cannot do is EUNSUPPORTED, at the call that asks for it.
 * Failures: EINVAL (unknown scheme, bad URL or option), EUNAVAILABLE, EAUTH, EFORMAT, EACCESS, ENOSPACE, ENOMEM, ENOSTORE.
 * On success *out is the caller's: lade_close it, after every worker opened from it is closed.
 */
LADE_API LADE_CHECKED int lade_open(lade **out, const char *url, const lade_options *opts,
                                    lade_err *err);

/* Closes and frees; NULL is allowed. No other thread may be inside a call on `q`. */
LADE_API void lade_close(lade *q);

typedef struct lade_header {
    const char *name;  /* 1 to 128 printable ASCII characters */
    const char *value; /* any bytes but NUL */
} lade_header;

enum lade_backoff_type {
    LADE_BACKOFF_DEFAULT =
        0, /* polynomial: attempt^4 + 15 s, up to 10% more by chance, at most 1 day */
    LADE_BACKOFF_FIXED = 1,       /* base */
    LADE_BACKOFF_EXPONENTIAL = 2, /* base * 2^(attempt-1) */
    LADE_BACKOFF_POLYNOMIAL = 3   /* base * attempt^4 */
};

typedef struct lade_backoff {
    enum lade_backoff_type type;
    int64_t base;   /* FIXED, EXPONENTIAL, POLYNOMIAL: at least 1 ms */
    int64_t cap;    /* longest delay; 0 = 1 day */
    uint8_t jitter; /* percent added by chance, 0 to 100 */
} lade_backoff;

/* Which states of the job hold its key. In each of them the key is held, however long that takes; the step that leaves them frees it. */
enum lade_unique_until {
    LADE_UNTIL_DONE =
        0, /* scheduled, ready, active, retrying: until completed, dead, cancelled, removed */
    LADE_UNTIL_START = 1, /* scheduled, ready: until the job is first taken */
    LADE_UNTIL_TTL =
        2 /* any, and no job at all: held for the whole ttl, whatever becomes of the job */
};

/* What an enqueue whose key is held by another job does. */
enum lade_on_conflict {
    LADE_CONFLICT_KEEP = 0, /* nothing: LADE_DUPLICATE */
    /*
     * The job that holds the key and waits (scheduled, ready, retrying) gets payload, headers, options, priority and time of
     * this one and keeps its id: LADE_REPLACED. One that runs or has ended is left alone: LADE_DUPLICATE. A ready one keeps its place
     * when priority and time allow.
     */
    LADE_CONFLICT_REPLACE = 1,
    LADE_CONFLICT_REJECT = 2 /* as KEEP, but told apart from a repeated id: LADE_CONFLICT */
};

/*
 * Refuses a second job with the same key in the same queue while the first holds it. Debounce and throttle are ready-made: they
 * set `until`, `ttl`, `on_conflict` and the time of the job, which must then be left zero. docs/unique.md has the tables.
 */
typedef struct lade_unique {
    lade_bytes key; /* raw bytes, compared as they are; empty = not unique */
    int64_t
        ttl; /* UNTIL_TTL: how long; 0 = 24 h; else at least 1 ms. The others hold as long as they must */
    enum lade_unique_until until;
    enum lade_on_conflict on_conflict;
    /* One run, so long after the last of a burst of enqueues; the last payload wins (LADE_REPLACED). 0 = off; else >= 1 ms. */
    int64_t debounce;
    int64_t
        max_wait; /* with debounce: at most so long after the first; 0 = ten times debounce; not below debounce */
    /* The first runs; what follows within this time of it is LADE_DUPLICATE. 0 = off; else >= 1 ms. */
    int64_t throttle;
    bool
        trailing; /* with throttle: what follows makes one more run when the time is over, and the last payload wins */
} lade_unique;

/* What to run. Only `kind` is required. Everything is borrowed until enqueue returns. */
typedef struct lade_job_spec {
    const char *kind;         /* names the handler: 1 to LADE_NAME_MAX of A-Z a-z 0-9 . _ : / - */
    const char *queue;        /* same characters; default "default" */
    lade_bytes payload;       /* any bytes, NUL and invalid UTF-8 too, up to payload_max */
    const char *content_type; /* default "": unknown. At most LADE_NAME_MAX characters */
    const lade_header *headers;
    size_t n_headers;
    const char *id; /* explicit id, makes enqueue idempotent; default: a new time-ordered id */
    int64_t in;     /* delay from now; not with `at` */
    int64_t at;     /* absolute time on the store's clock, from the year 2000 on; past = now */
    int priority;   /* LADE_PRIORITY_MIN to LADE_PRIORITY_MAX; higher runs first; default 0 */
    lade_unique unique;
    int max_attempts;     /* runs, not retries; default 25; 1 = never retried; at most 1,000 */
    int64_t timeout;      /* for one attempt; default 30 min; at least 1 ms */
    lade_backoff backoff; /* delay before the next attempt; a worker can also set a function */
    bool
        discard_dead; /* when it would die, nothing of it is kept; lade_worker_config.on_dead is told */
    lade_bytes key; /* for whom: fair turns and limits, see limit.h; up to LADE_KEY_MAX bytes */
    /*
     * How long its result is kept once it has completed, whatever becomes of the job's record: lade_result_get gives it while the
     * record is there and after keep_completed took that. 0: as long as the record; else at least 1 ms. events.h
     */
    int64_t result_ttl;
} lade_job_spec;

/*
 * Enqueues one job. *id (may be NULL) is the new job's id, or on DUPLICATE that of the job already there.
 * Returns 0, LADE_DUPLICATE, or of a unique job LADE_REPLACED or LADE_CONFLICT, *id being the holder's then; LADE_FULL when the queue
 * is at its bound (lade_bound_set), *id being empty and err naming the queue and its bound. Atomic, and safe
 * to repeat: the id is made before anything is sent, so a repeat after a lost reply adds nothing. Calls from several threads at the same time share one store transaction.
 * Failures: EINVAL and ETOOBIG (checked first, nothing was written), ENOSPACE, EUNAVAILABLE, EBUSY, ...
 */
LADE_API LADE_CHECKED int lade_enqueue(lade *q, const lade_job_spec *spec, lade_id *id,
                                       lade_err *err);

/*
 * Enqueues n jobs (at most LADE_BATCH_MAX), all or none. Writes n ids to `ids` and n results (as lade_enqueue's)
 * to `outcomes`; either may be NULL. A duplicate does not stop the others. Returns 0 when all were added or replaced others,
 * LADE_CONFLICT when at least one was, else LADE_DUPLICATE when at least one was a duplicate. LADE_FULL when they do not all fit into the
 * bounds of their queues: then none was added, all outcomes are LADE_FULL and err names the queue. A bad spec refuses the whole call before anything is written and
 * err names its index.
 */
LADE_API LADE_CHECKED int lade_enqueue_many(lade *q, const lade_job_spec *specs, size_t n,
                                            lade_id *ids, int *outcomes, lade_err *err);

/* ---------------------------------------------------------------------------------------------
 * Part 2: work
 * ------------------------------------------------------------------------------------------- */

typedef struct lade_job lade_job;       /* the job a handler is called for */
typedef struct lade_worker lade_worker; /* takes jobs and runs handlers */

/* What a handler says about its job. Anything else it returns counts as LADE_RETRY. */
typedef enum lade_outcome {
    LADE_OK = 0, /* completed */
    LADE_RETRY =
        1, /* failed: run again after the backoff (or lade_job_retry_in), dead when attempts are used up */
    LADE_SNOOZE = 2,  /* run again after lade_job_snooze_for (default 1 min); spends no attempt */
    LADE_CANCEL = 3,  /* end as cancelled */
    LADE_DISCARD = 4, /* drop it, keep nothing */
    LADE_DEAD = 5,    /* no more attempts: to the dead at once */
    /*
     * Another system said "not now": the job is ready again, first of its key, and no job of the key is taken for
     * lade_job_rate_limited_for (limit.h); spends no attempt. Jobs without a key count as one key.
     */
    LADE_RATE_LIMITED = 6
} lade_outcome;

typedef lade_outcome (*lade_handler)(lade_job *job, void *ctx);

/*
 * What the handler may ask. Returned pointers live until the handler returns.
 */
LADE_API const char *lade_job_id(const lade_job *job);
LADE_API const char *lade_job_kind(const lade_job *job);
LADE_API const char *lade_job_queue(const lade_job *job);
LADE_API lade_bytes lade_job_payload(const lade_job *job);
LADE_API const char *lade_job_content_type(const lade_job *job);
LADE_API const char *lade_job_header(const lade_job *job, const char *name); /* NULL when absent */
LADE_API size_t lade_job_n_headers(const lade_job *job);
LADE_API lade_header lade_job_header_at(const lade_job *job, size_t i);
LADE_API int lade_job_attempt(const lade_job *job); /* 1 for the first run */
LADE_API int lade_job_max_attempts(const lade_job *job);
LADE_API int lade_job_priority(const lade_job *job);
LADE_API int64_t lade_job_enqueued_at(const lade_job *job);
/* Grows with every lease of this job: give it to the systems you write to, so that they can refuse a stale run. */
LADE_API uint64_t lade_job_fence(const lade_job *job);
/* Nanoseconds left of this attempt's timeout; 0 when it is over. */
LADE_API int64_t lade_job_time_left(const lade_job *job);
/* True once the job should stop: timed out, cancelled by an operator, lease lost, or worker told to end now. */
LADE_API bool lade_job_cancelled(const lade_job *job);
/* A descriptor that becomes readable when lade_job_cancelled turns true; owned by the job. -1 on failure. */
LADE_API int lade_job_cancel_fd(lade_job *job);

/* What the handler may say; each keeps the last value given. */
LADE_API void lade_job_retry_in(lade_job *job, int64_t delay);   /* with LADE_RETRY; >= 0 */
LADE_API void lade_job_snooze_for(lade_job *job, int64_t delay); /* with LADE_SNOOZE; >= 0 */
/* The error text of this attempt, kept and shown; any bytes, cut at LADE_ERROR_TEXT_MAX. */
LADE_API void lade_job_error(lade_job *job, const char *format, ...) LADE_PRINTF(2, 3);
LADE_API void lade_job_error_bytes(lade_job *job, lade_bytes text);
/* Copies a result to be kept with the completed job. 0, -LADE_ETOOBIG over LADE_RESULT_MAX, or -LADE_ENOMEM. */
LADE_API LADE_CHECKED int lade_job_result(lade_job *job, lade_bytes result);

/* Workers, which call handlers: worker.h. */

/* ---------------------------------------------------------------------------------------------
 * Part 3: look and act
 * ------------------------------------------------------------------------------------------- */

enum lade_state {
    LADE_STATE_SCHEDULED = 0, /* waits for its time */
    LADE_STATE_READY = 1,     /* may be taken */
    LADE_STATE_ACTIVE = 2,    /* leased to a worker */
    LADE_STATE_RETRYING = 3,  /* failed, waits for its next attempt */
    LADE_STATE_COMPLETED = 4,
    LADE_STATE_DEAD = 5,
    LADE_STATE_CANCELLED = 6
};

#define LADE_N_STATES 7

/* "ready" and so on; NULL for a value out of range. */
LADE_API const char *lade_state_name(enum lade_state state);
/* The state of a name or of an alias other systems use ("pending", "archived"); -1 when unknown. */
LADE_API int lade_state_parse(const char *name);

typedef struct lade_attempt {
    int number;         /* 1, 2, ...; 0 for a crash or a note, which spend none */
    int64_t started_at; /* 0 when it never began */
    int64_t ended_at;
    const char
        *outcome;       /* "retry", "dead", "timeout", "crash", "snooze", ...: see docs/states.md */
    const char *worker; /* name of the worker */
    lade_bytes error;   /* any bytes */
} lade_attempt;

/* One job as an operator sees it. Everything it points to belongs to it: lade_job_view_free. */
typedef struct lade_job_view {
    const char *id, *queue, *kind, *content_type;
    enum lade_state state;
    const char
        *reason; /* of the dead: "exhausted", "killed", "quarantined", "unrecoverable"; else "" */
    lade_bytes payload;
    lade_bytes result; /* of the completed */
    const lade_header *headers;
    size_t n_headers;
    lade_bytes unique_key;
    enum lade_unique_until unique_until; /* with unique_key */
    lade_bytes key;                      /* as enqueued; empty = none */
    lade_backoff backoff;
    bool discard_dead;
    int priority, attempts, max_attempts, crashes;
    int64_t timeout;
    int64_t result_ttl;          /* 0: its result goes with this record */
    int64_t enqueued_at;         /* producer's clock */
    int64_t run_at;              /* scheduled and retrying: when it is due */
    int64_t finished_at;         /* completed, dead, cancelled */
    const char *worker;          /* active: who holds it; else "" */
    int64_t taken_at;            /* active: since when */
    int64_t lease_until;         /* active: when the lease ends unless renewed */
    uint64_t fence;              /* active */
    const lade_attempt *history; /* oldest first; at most the last 32 */
    size_t n_history;
    bool corrupt; /* the stored envelope could not be read: payload holds its raw bytes */
    const struct lade_effect_record *effects; /* effect.h; oldest first */
    size_t n_effects;
} lade_job_view;

/*
 * One job by id. `queue` NULL looks in every queue. Returns 0 or LADE_NOT_FOUND.
 * On 0 *out is the caller's, one block: lade_job_view_free.
 */
LADE_API LADE_CHECKED int lade_job_get(lade *q, const char *queue, const char *id,
                                       lade_job_view **out, lade_err *err);
LADE_API void lade_job_view_free(lade_job_view *view);

/* Where a listing goes on. Zero it to start; treat it as opaque. */
typedef struct lade_cursor {
    char at[128];
    bool done; /* set when the last page was read */
} lade_cursor;

/*
 * Up to `limit` (1 to 1,000) jobs of one state, in the order they will run or did end, from the cursor on.
 * Pages stay stable while jobs move: one that moves may be missed or seen once more, the others are not.
 * Writes *n views to out, each the caller's. Returns 0, or LADE_EMPTY when the page is empty and the listing done.
 */
LADE_API LADE_CHECKED int lade_job_list(lade *q, const char *queue, enum lade_state state,
                                        lade_cursor *cursor, size_t limit, lade_job_view **out,
                                        size_t *n, lade_err *err);

enum lade_job_verb {
    LADE_JOB_RETRY =
        0, /* scheduled, retrying, dead, cancelled, completed -> ready now; dead ones get all attempts back */
    LADE_JOB_KILL =
        1, /* scheduled, ready, retrying -> dead (killed); active: cancelled in the handler, then dead */
    LADE_JOB_CANCEL =
        2, /* scheduled, ready, retrying -> cancelled; active: the handler is told, then cancelled */
    LADE_JOB_REMOVE = 3 /* any state, or a kept result -> gone; active: told, its outcome refused */
};

/*
 * Acts on n jobs of one queue (NULL: wherever they are). outcomes[i] is 0, LADE_NOT_FOUND or LADE_WRONG_STATE.
 * Of several operators acting at once exactly one gets 0. Returns 0 when all are 0, else the first outcome.
 */
LADE_API LADE_CHECKED int lade_job_act(lade *q, enum lade_job_verb verb, const char *queue,
                                       const char *const *ids, size_t n, int *outcomes,
                                       lade_err *err);

typedef struct lade_queue_info {
    char name[LADE_NAME_MAX + 1];
    uint64_t count[LADE_N_STATES]; /* exact, by enum lade_state */
    bool paused;
    int64_t latency; /* age of the oldest ready job in ns, 0 when none */
    uint64_t total_enqueued, total_completed, total_failed,
        total_dead;   /* since the queue was made */
    size_t n_workers; /* live workers serving it */
    uint64_t held;    /* of the ready ones: their key is at its limit or paused (limit.h) */
} lade_queue_info;

/* All queues by name. *out is one array of *n, the caller's: lade_free. */
LADE_API LADE_CHECKED int lade_queue_list(lade *q, lade_queue_info **out, size_t *n, lade_err *err);
/* One queue. Returns 0 or LADE_NOT_FOUND. */
LADE_API LADE_CHECKED int lade_queue_get(lade *q, const char *queue, lade_queue_info *out,
                                         lade_err *err);
/* Workers stop taking from it within 100 ms; jobs may still be added and fall due. Makes the queue if need be. */
LADE_API LADE_CHECKED int lade_queue_pause(lade *q, const char *queue, lade_err *err);
LADE_API LADE_CHECKED int lade_queue_resume(lade *q, const char *queue, lade_err *err);

/*
 * Removes jobs of one state (never ACTIVE) in bounded steps: at most `max` (1 to 10,000) a call.
 * *n is how many this call removed. Returns 0 when none is left, LADE_MORE when there may be more.
 */
LADE_API LADE_CHECKED int lade_queue_purge(lade *q, const char *queue, enum lade_state state,
                                           size_t max, size_t *n, lade_err *err);
/* Removes a queue that has no jobs left in it. Returns 0, LADE_NOT_FOUND, or LADE_WRONG_STATE when jobs are there. */
LADE_API LADE_CHECKED int lade_queue_remove(lade *q, const char *queue, lade_err *err);

/* Moves dead jobs back to ready, oldest first, with all attempts again; bounded as lade_queue_purge. */
LADE_API LADE_CHECKED int lade_dead_redrive(lade *q, const char *queue, size_t max, size_t *n,
                                            lade_err *err);

typedef struct lade_worker_info {
    char name[LADE_NAME_MAX + 1];
    char id[LADE_ID_MAX + 1]; /* this incarnation */
    char queues[1024];        /* comma separated */
    int concurrency;
    int64_t started_at, seen_at, lease_until;
    size_t n_active; /* jobs it holds */
} lade_worker_info;

/* Live workers. *out is one array of *n, the caller's: lade_free. */
LADE_API LADE_CHECKED int lade_worker_list(lade *q, lade_worker_info **out, size_t *n,
                                           lade_err *err);

/* The store's clock, which decides when jobs are due. */
LADE_API LADE_CHECKED int lade_now(lade *q, int64_t *now, lade_err *err);

typedef struct lade_finding {
    char queue[LADE_NAME_MAX + 1];
    char text[256]; /* what is wrong */
    bool is_note;   /* nothing is: something that an operator should know */
} lade_finding;

/*
 * Checks the store's invariants: each job in exactly one state, counts right, no id without body, no lock or lease
 * without owner. O(all jobs): for tests and `lade doctor`. *out is one array of *n findings, the caller's: lade_free.
 * Returns 0; no finding but notes means sound.
 */
LADE_API LADE_CHECKED int lade_check(lade *q, lade_finding **out, size_t *n, lade_err *err);

/* Frees what the functions above gave. */
LADE_API void lade_free(void *p);

/* "0.1.0" */
LADE_API const char *lade_version(void);

#ifdef __cplusplus
}
#endif

/* Part 2, too: workers. */
#include <lade/worker.h>
/* Part 4: workflows. Part 5: the dead. */
#include <lade/dead.h>
#include <lade/flow.h>
/* Part 5: effects. */
#include <lade/effect.h>
/* Part 6: results, waiting, progress, events. */
#include <lade/events.h>
/* Part 7: keys, limits, fair turns. */
#include <lade/limit.h>
/* Part 8: schedules. Part 9: orders to workers. */
#include <lade/control.h>
#include <lade/schedule.h>

#endif
