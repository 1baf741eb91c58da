/*
 * events.h - results, waiting for jobs, progress and log lines, and the stream of what happens in a queue
 *
 * Part of <lade/lade.h>, which says how results, units, ownership and threads are meant. Nothing here costs a job that does not
 * use it: a queue has no stream until lade_queue_events_set turns it on, and a settle looks for waiters only while there are some.
 *
 *     lade_enqueue(q, &spec, &id, &err);
 *     lade_job_view *job;
 *     if (lade_job_wait(q, "default", id.text, 30 * LADE_SECOND, NULL, &job, &err) == 0) {
 *         if (job->state == LADE_STATE_COMPLETED)
 *             use(job->result);
 *         lade_job_view_free(job);
 *     }
 */
#ifndef LADE_EVENTS_H
#define LADE_EVENTS_H

#include <lade/lade.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LADE_RESULTS_MAX     1000     /* ids of one lade_result_get_many */
#define LADE_EVENTS_CAP_MAX  10000000 /* events a queue may keep */
#define LADE_EVENTS_CAP      100000   /* what the command line turns on */
#define LADE_TAIL_QUEUES_MAX 64       /* queues of one tail */
#define LADE_TAIL_BATCH_MAX  1000     /* events of one lade_tail_next */
#define LADE_LOG_LINES_MAX   1000     /* log lines kept with one job: the newest */
#define LADE_LOG_LINE_MAX    4096 /* bytes of one; longer is cut, never within a UTF-8 character */
#define LADE_NOTE_MAX        256  /* bytes of the note of a progress; cut alike */
#define LADE_FOREVER         INT64_MAX /* a timeout that never comes */

/* ---------------------------------------------------------------------------------------------
 * Results
 * ------------------------------------------------------------------------------------------- */

typedef struct lade_result_view {
    /* 0, LADE_EMPTY (completed, but without a result), LADE_WRONG_STATE (not completed) or LADE_NOT_FOUND (never there, or no longer kept) */
    int outcome;
    enum lade_state state; /* unless NOT_FOUND */
    lade_bytes result;
} lade_result_view;

/*
 * The results of n jobs (1 to LADE_RESULTS_MAX) of one queue, (*out)[i] that of ids[i], read in one step. A result is stored in the same
 * atomic step that completes its job, lives as long as the completed job (keep_completed), or for its own time (lade_job_spec.result_ttl; then also when the job is
 * gone: outcome 0 and state COMPLETED), and is bytes as the handler gave them. *out is one block, the caller's: lade_free. Returns 0. Failures: EINVAL, EUNAVAILABLE, ENOMEM, ...
 */
LADE_API LADE_CHECKED int lade_result_get_many(lade *q, const char *queue, const char *const *ids,
                                               size_t n, lade_result_view **out, lade_err *err);

/* ---------------------------------------------------------------------------------------------
 * Waiting for a job
 * ------------------------------------------------------------------------------------------- */

/* Lets another thread end a wait. */
typedef struct lade_waiter lade_waiter;

/* Failures: EINVAL, ENOMEM. On 0 *out is the caller's: lade_waiter_close, before `q` is closed. */
LADE_API LADE_CHECKED int lade_waiter_open(lade_waiter **out, lade *q, lade_err *err);
/* The waits with it, now and later, return LADE_STOPPED. Any thread, any number of times. */
LADE_API void lade_waiter_cancel(lade_waiter *w);
/* Frees; NULL is allowed. No wait with it may be under way. */
LADE_API void lade_waiter_close(lade_waiter *w);

/*
 * Waits until the job has ended, at most `timeout` ns (0: looks once; LADE_FOREVER). Nothing is polled: whoever ends the job, in any
 * process, rings. Any number of threads and tasks may wait; the waits of one handle share a connection. `w` may be NULL.
 * Returns
 *     0               ended: (*out)->state is COMPLETED, DEAD or CANCELLED; the view is the caller's, lade_job_view_free
 *     LADE_NOT_FOUND  gone: it never was, or it ended and nothing of it is kept
 *     LADE_TIMEOUT    it has not ended yet
 *     LADE_STOPPED    lade_waiter_cancel was called
 * Failures: EINVAL (queue is NULL too), EUNAVAILABLE, ... A job that is revived is waited for until it ends again.
 */
LADE_API LADE_CHECKED int lade_job_wait(lade *q, const char *queue, const char *id, int64_t timeout,
                                        lade_waiter *w, lade_job_view **out, lade_err *err);

/* ---------------------------------------------------------------------------------------------
 * Progress and log lines
 * ------------------------------------------------------------------------------------------- */

/*
 * For handlers: how far the job is, in percent (clamped to 0..100), and a note (NULL or "" = none, cut at LADE_NOTE_MAX). The last one
 * counts. At most four writes a second reach the store for one job, whatever is said in between; the last is there before the
 * job ends. 0; LADE_STALE when the lease is known to be lost: nothing is stored then; -LADE_EINVAL, -LADE_ENOMEM. A store that
 * is away fails no handler: what could not be written is written later.
 */
LADE_API int lade_job_progress(lade_job *job, int percent, const char *note);
/* For handlers: a line for the job's log, kept with it. Bounds and results as above. */
LADE_API int lade_job_log(lade_job *job, const char *format, ...) LADE_PRINTF(2, 3);
/* The same for bytes that are there already; ends at the first newline. */
LADE_API int lade_job_log_bytes(lade_job *job, lade_bytes line);

typedef struct lade_log_line {
    uint64_t
        number; /* 1 for the first that the job wrote; lines that fell off leave their numbers behind */
    int64_t at;
    lade_bytes text;
} lade_log_line;

typedef struct lade_job_notes {
    int percent; /* -1 = never said */
    const char *note;
    int64_t progress_at;
    uint64_t total; /* lines written so far; the newest LADE_LOG_LINES_MAX of them are kept */
    lade_log_line *line;
    size_t n;
} lade_job_notes;

/*
 * Progress of a job and up to `limit` (0 to LADE_LOG_LINES_MAX) of its lines. `start` >= 0 skips as many of the kept lines from the
 * oldest; < 0 begins that many before the end: -10 and limit 10 are the last ten. `newest_first` turns their order.
 * *out is one block, the caller's: lade_free. Returns 0 or LADE_NOT_FOUND.
 */
LADE_API LADE_CHECKED int lade_job_get_notes(lade *q, const char *queue, const char *id,
                                             int64_t start, size_t limit, bool newest_first,
                                             lade_job_notes **out, lade_err *err);
/*
 * Waits as lade_job_wait until the job has more than `seen` lines, or has ended. 0, LADE_NOT_FOUND, LADE_TIMEOUT, LADE_STOPPED.
 */
LADE_API LADE_CHECKED int lade_job_wait_log(lade *q, const char *queue, const char *id,
                                            uint64_t seen, int64_t timeout, lade_waiter *w,
                                            lade_err *err);

/* ---------------------------------------------------------------------------------------------
 * Events
 * ------------------------------------------------------------------------------------------- */

enum lade_event_type {
    LADE_EVENT_WAITING =
        1, /* may be taken: enqueued, fell due, handed back, retried by an operator */
    LADE_EVENT_ACTIVE = 2,    /* taken under a lease; attempt */
    LADE_EVENT_COMPLETED = 3, /* attempt, duration */
    LADE_EVENT_FAILED =
        4, /* an attempt failed; attempt, duration, reason: the error. RETRYING or DEAD follows */
    LADE_EVENT_RETRYING = 5, /* attempt: the one that failed; duration: the delay */
    LADE_EVENT_DEAD =
        6, /* attempt, reason: "exhausted", "killed", "quarantined", "unrecoverable" */
    LADE_EVENT_CANCELLED = 7, /* attempt */
    LADE_EVENT_PROGRESS = 8,  /* percent, reason: the note */
    LADE_EVENT_STALLED = 9,   /* taken over from a dead worker; reason: its incarnation */
    LADE_EVENT_DRAINED = 10,  /* a take left nothing ready; of the queue */
    LADE_EVENT_PAUSED = 11,   /* of the queue */
    LADE_EVENT_RESUMED = 12,  /* of the queue */
    LADE_EVENT_FIRED =
        13 /* made by a schedule, whose id is the reason; behind the WAITING of those that wait */
};

#define LADE_N_EVENT_TYPES 13 /* values 1 to this */

/* "waiting" and so on; NULL for a value out of range. */
LADE_API const char *lade_event_type_name(enum lade_event_type type);

typedef struct lade_event {
    uint64_t id; /* grows by 1 within a queue; also the cursor: seek to it to go on behind it */
    int64_t at;  /* ns, the store's clock */
    enum lade_event_type type;
    const char *queue;
    const char *job;    /* "" for events of the queue */
    const char *kind;   /* "" when not known */
    const char *reason; /* error texts are cut at 200 bytes; "" when there is none */
    int attempt;        /* 0 when not known */
    int percent;        /* PROGRESS; else -1 */
    int64_t duration;   /* ns; what is said at the type, else 0 */
} lade_event;

typedef struct lade_events_info {
    uint32_t cap; /* 0 = off */
    /* first and last event there are; first = last + 1 when there is none yet. 0 while off */
    uint64_t first, last;
} lade_events_info;

/*
 * Turns the stream of a queue on, keeping about the newest `cap` events (1 to LADE_EVENTS_CAP_MAX), changes the cap, or, with 0, turns it off and
 * removes it. At once, for all processes. Makes the queue if need be. Failures: EINVAL, EUNAVAILABLE, ...
 */
LADE_API LADE_CHECKED int lade_queue_events_set(lade *q, const char *queue, uint32_t cap,
                                                lade_err *err);
/* Returns 0 or LADE_NOT_FOUND. */
LADE_API LADE_CHECKED int lade_queue_events_get(lade *q, const char *queue, lade_events_info *out,
                                                lade_err *err);

/* Reads the streams of some queues. Used by one thread at a time, but for lade_tail_cancel. */
typedef struct lade_tail lade_tail;

#define LADE_TAIL_START 0          /* from the oldest event there is */
#define LADE_TAIL_NOW   UINT64_MAX /* what happens from the first lade_tail_next on */

/*
 * A tail of n queues (1 to LADE_TAIL_QUEUES_MAX), each from the event behind `after`: an id, LADE_TAIL_START or LADE_TAIL_NOW. Strings are copied.
 * Failures: EINVAL, ENOMEM. On 0 *out is the caller's: lade_tail_close, before `q` is closed.
 */
LADE_API LADE_CHECKED int lade_tail_open(lade_tail **out, lade *q, const char *const *queues,
                                         size_t n, uint64_t after, lade_err *err);
/* Goes on behind event `after` of a queue of the tail. 0, or LADE_NOT_FOUND for a queue that is not of it. */
LADE_API LADE_CHECKED int lade_tail_seek(lade_tail *t, const char *queue, uint64_t after);
/*
 * The next events, at most max (1 to LADE_TAIL_BATCH_MAX), of one queue and in order; waits for the first up to `timeout` ns (0, LADE_FOREVER) and
 * polls nothing. *out lives until the next call on the tail. Returns
 *     0                 *n >= 1 events
 *     LADE_TIMEOUT      nothing came
 *     LADE_STOPPED      lade_tail_cancel was called
 *     LADE_MISSED          events behind the cursor fell off the cap, or the stream was begun anew, before they were read: the tail now stands
 *                       before the oldest there is; lade_tail_missed says how many are lost. Nothing is handed out
 *     LADE_WRONG_STATE  the stream of every queue of the tail is off, or none of them is there
 * Failures: EUNAVAILABLE, ...; the tail stays where it was.
 */
LADE_API LADE_CHECKED int lade_tail_next(lade_tail *t, size_t max, int64_t timeout,
                                         const lade_event **out, size_t *n, lade_err *err);
/*
 * After LADE_MISSED: events lost; 0 when that cannot be told. When the stream was turned off and on again behind the tail's back, the numbers
 * between both streams count as well, though no event had them.
 */
LADE_API uint64_t lade_tail_missed(const lade_tail *t);
/* lade_tail_next returns LADE_STOPPED from now on. Any thread. */
LADE_API void lade_tail_cancel(lade_tail *t);
/* Frees; NULL is allowed. */
LADE_API void lade_tail_close(lade_tail *t);

#ifdef __cplusplus
}
#endif
#endif
