/*
 * worker.h - workers: they take jobs, call handlers and store what became of them
 *
 * Part of <lade/lade.h>, which says what a handler is and what it may ask of its job.
 */
#ifndef LADE_WORKER_H
#define LADE_WORKER_H

#include <lade/lade.h>

#ifdef __cplusplus
extern "C" {
#endif

enum lade_queue_order {
    LADE_ORDER_STRICT = 0, /* a later queue is served only while the earlier ones are empty */
    /*
     * Queues lead in proportion to their weights, exactly: of as many takes in a row as the weights are together each leads in its
     * weight. A take that the leader has too few jobs for goes on to the others; none starves.
     */
    LADE_ORDER_WEIGHTED = 1
};

typedef struct lade_worker_queue {
    const char *name;
    uint32_t weight; /* for LADE_ORDER_WEIGHTED; 0 = 1 */
} lade_worker_queue;

/* A job that ended without success. Everything is valid until on_dead returns. */
typedef struct lade_death {
    const char *queue, *id, *kind; /* kind "" when the envelope could not be read */
    const char
        *reason; /* "exhausted", "unrecoverable", "quarantined", or "discarded" by LADE_DISCARD */
    bool discarded; /* nothing was kept: LADE_DISCARD, or lade_job_spec.discard_dead */
    lade_bytes payload;
    lade_bytes error; /* of the last attempt */
    int attempts, crashes;
} lade_death;

/* Called in a slot after LADE_RETRY: the delay before the next attempt, >= 0. */
typedef int64_t (*lade_backoff_fn)(const lade_job *job, int attempt, void *ctx);

/* What runs handlers. */
enum lade_executor {
    /*
     * A slot is a task of the runtime (<lade/rt.h>): thousands of them on as many threads as there are CPUs, each on a stack of
     * 256 KiB: large arrays belong on the heap, a handler that needs more ends the process with a line that says so. Waiting by the runtime's calls costs nothing but that. A handler that blocks its thread or computes for long stops
     * nobody else: after some milliseconds another thread goes on with the rest, up to 256 more in the process. Beyond that number
     * blocked handlers keep others waiting; thread-local variables may be another thread's after a call that waits.
     */
    LADE_EXECUTOR_TASK = 0,
    /* A slot is an OS thread: for many handlers that block at once in foreign libraries, need deep stacks or keep thread-locals. */
    LADE_EXECUTOR_THREAD = 1
};

/* Zero means the default in every field. */
typedef struct lade_worker_config {
    int concurrency; /* slots: handlers that run at once; default 10, at most 10,000 */
    const lade_worker_queue *queues; /* default: the queue "default" */
    size_t n_queues;                 /* at most 64 */
    enum lade_queue_order order;
    const char *
        name; /* shown to operators: 1 to LADE_NAME_MAX bytes, no control characters; default host:pid */
    int64_t lease; /* default 15 s, at least 1 s. Renewed at a third of it, at half while idle */
    int64_t sweep; /* least time between two looks for leases of dead workers; default 1 s */
    int64_t shutdown_timeout; /* how long a stop waits for handlers; default 25 s; -1 = 0 */
    /*
     * How long a handler may go on after its timeout, when it has been told to stop: default 10 s, at least 1 ms. What it
     * returns until then counts, LADE_OK too. After it the attempt is settled as timed out, the job may run elsewhere, the
     * handler's slot counts as stuck and is replaced, and what it returns at last is dropped.
     */
    int64_t cancel_grace;
    int max_crashes; /* worker deaths a job may cause before quarantine; default 5 */
    /*
     * Most jobs held beyond the slots; default 8 * concurrency within 200..1000; -1 = none. How many are follows from measured
     * times: none for slow handlers. Should fast ones become slow, what waited for a fifth of the lease goes back to the store.
     */
    int prefetch_max;
    lade_backoff_fn backoff; /* NULL = the job's own */
    void *backoff_ctx;
    bool no_signals; /* lade_worker_run leaves TERM, INT, QUIT, TSTP and TTIN alone */
    bool
        resque_signals; /* as Ruby's Resque: USR1, USR2 and CONT too, QUIT finishes; docs/resque.md */
    bool drain;         /* stop by itself when nothing is ready, scheduled, retrying or active */
    /* One line about something an operator should know (lost lease, store away, quarantine). NULL = stderr. */
    void (*log)(void *ctx, const char *line);
    void *log_ctx;
    enum lade_executor executor; /* default TASK */
    /*
     * A job's end without success was settled: dead, or dropped. Once for each, by the worker that settled it, after the store has it; not
     * for what operators kill or remove, and not when the worker's process dies in between. A thread of the worker calls it: be brief,
     * do not call the worker. NULL = nobody is told.
     */
    void (*on_dead)(void *ctx, const lade_death *death);
    void *on_dead_ctx;
    bool no_scheduler; /* takes no part in firing schedules (schedule.h) */
    /*
     * A step of a workflow begins only when the store has the end of the step before it. By default a slot that has completed a step
     * within moments begins the next one of a chain at once, while the first is on its way to the store (docs/workflows.md).
     */
    bool strict_steps;
} lade_worker_config;

/*
 * Makes a worker on `q`, which must outlive it. Nothing is taken before lade_worker_run.
 * `config` NULL = defaults; its strings are copied. Failures: EINVAL, ENOMEM, EUNAVAILABLE.
 */
LADE_API LADE_CHECKED int lade_worker_open(lade_worker **out, lade *q,
                                           const lade_worker_config *config, lade_err *err);

/*
 * Registers the handler of a kind, before run. The kind "*" catches every kind without its own handler.
 * A job whose kind has no handler here is handed back for 10 s without spending an attempt. `ctx` is borrowed until
 * lade_worker_close. There is no text: -LADE_EINVAL when kind or fn is NULL, the kind is no name, it has a handler
 * already, or the worker runs or has run; -LADE_ENOMEM. After a failure the worker is as before.
 */
LADE_API LADE_CHECKED int lade_worker_handle(lade_worker *w, const char *kind, lade_handler fn,
                                             void *ctx);

/*
 * Runs until stopped, then drains. TERM or INT: take no more, wait for handlers up to shutdown_timeout, hand the
 * rest back without spending their attempt. A second TERM or INT, or QUIT: hand back now. TSTP: quiet. TTIN: stacks to the log.
 * Store outages are ridden out with backoff, not returned. Returns 0 after a stop; < 0 when it could not start.
 */
LADE_API LADE_CHECKED int lade_worker_run(lade_worker *w, lade_err *err);

/* As TERM: stop taking, finish, return from run. A second call hands back at once. Any thread; async-signal-safe. */
LADE_API void lade_worker_stop(lade_worker *w);
/* As TSTP: stop taking work for good but stay up. Any thread; async-signal-safe. */
LADE_API void lade_worker_quiet(lade_worker *w);
/* Stops taking work until it is resumed; what runs goes on. Any thread; async-signal-safe. */
LADE_API void lade_worker_pause(lade_worker *w);
LADE_API void lade_worker_resume(lade_worker *w);

typedef struct lade_worker_stats {
    /* by outcome; cancelled counts jobs that an operator stopped, too */
    uint64_t completed, retried, dead, snoozed, cancelled, discarded;
    uint64_t timed_out;   /* attempts that overran their timeout */
    uint64_t lost;        /* settles refused because the lease was lost */
    uint64_t recovered;   /* jobs taken over from dead workers */
    uint64_t quarantined; /* of those, to the dead by max_crashes */
    uint64_t unroutable;  /* handed back: no handler for the kind */
    uint64_t corrupt;     /* to the dead: the stored envelope could not be read */
    int running;          /* handlers running now */
    int stuck;            /* of those, past their timeout and deaf to cancel */
    int queued;           /* prefetched, not started */
} lade_worker_stats;

/* A consistent copy of the counters since open. Any thread. */
LADE_API void lade_worker_get_stats(lade_worker *w, lade_worker_stats *out);

/* Frees; NULL is allowed. The worker must not be running. Handlers still stuck are waited for. */
LADE_API void lade_worker_close(lade_worker *w);

#ifdef __cplusplus
}
#endif

#endif
