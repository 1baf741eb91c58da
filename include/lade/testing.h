/*
 * testing.h - your handlers, retries and delays over a simulated week, in milliseconds, without a thread
 *
 * A store that takes its time from a clock of yours, and a worker that runs what is due in your own thread and then steps that
 * clock to what is due next:
 *
 *     lade_test_clock clock = LADE_TEST_CLOCK;
 *     lade_options options = {.clock = lade_test_clock_read, .clock_ctx = &clock};
 *     lade_open(&q, "memory:", &options, &err);
 *     lade_worker_open(&w, q, NULL, &err);
 *     lade_worker_handle(w, "mail", send_mail, NULL);
 *     lade_enqueue(q, &(lade_job_spec){.kind = "mail", .in = 3 * LADE_DAY}, NULL, &err);
 *     lade_worker_drain(w, clock.now + 7 * LADE_DAY, &stats, &err);
 *     assert(stats.completed == 1);
 *
 * The clock moves only by lade_worker_drain and lade_test_clock_step. A handler may step it, too: it then "took" that long. So the same
 * program gives the same runs in the same order each time; what is drawn by chance (jitter, ids, weights) follows
 * lade_test_seed. docs/testing.md has more.
 *
 * Any store that takes its time from lade_options.clock will do: `memory:` and SQLite files, not Redis.
 *
 * Threads. The clock may be read and stepped from any thread; a worker is drained by one.
 */
#ifndef LADE_TESTING_H
#define LADE_TESTING_H

#include <lade/lade.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lade_test_clock {
    int64_t
        now; /* ns since 1970; read it as you like, change it by lade_test_clock_step while others use it */
} lade_test_clock;

/* 2026-01-01 00:00:00 UTC, a Thursday. */
#define LADE_TEST_CLOCK              \
    {                                \
        INT64_C(1767225600000000000) \
    }

/* For lade_options.clock, with the lade_test_clock as clock_ctx, which must outlive the handle. */
LADE_API int64_t lade_test_clock_read(void *clock);
/* Forward by `by` ns; what is below 1 does nothing, and so does NULL. */
LADE_API void lade_test_clock_step(lade_test_clock *clock, int64_t by);

/* What is drawn by chance in this thread follows from the seed from now on: jitter, made ids, the order of weighted queues. */
LADE_API void lade_test_seed(uint64_t seed);

typedef struct lade_drain_stats {
    uint64_t runs; /* handlers called */
    /* by outcome; dead counts jobs that have no attempts left, too */
    uint64_t completed, retried, dead, snoozed, cancelled, discarded;
    uint64_t unroutable; /* handed back for 10 s: no handler for the kind */
    uint64_t stale;      /* outcomes refused: the handler's own doing, as by removing its job */
    uint64_t steps;      /* of the clock */
} lade_drain_stats;

/*
 * Runs all that is ready in the worker's queues, one job after the other, in the calling thread, then steps the clock to the time
 * at which the next job is due, a scheduled or a retried one, and so on, until nothing is due by `until` (ns since 1970); the
 * clock then stands at `until`, or where it was when that is later. Jobs that handlers enqueue meanwhile are run alike, and steps of
 * workflows. Schedules (schedule.h) fire in their time, unless the worker's config says no_scheduler. Retention goes by the stepped clock. Priorities, queue order, attempts, backoff, unique keys, pauses: all as in
 * lade_worker_run. Only timeouts are not simulated: a handler has as long as it takes.
 *
 * *stats (may be NULL) receives the numbers of this call, also when it fails. May be called again and again; not for a worker
 * that runs or has run, and lade_worker_run may follow. Returns 0, or LADE_MORE after a million runs: handlers that enqueue more
 * than they finish would go on for ever. Failures: EINVAL (q has no lade_test_clock, or its store has a clock of its own; `until` is beyond
 * 2261; the worker runs or has run), and those of the store.
 */
LADE_API LADE_CHECKED int lade_worker_drain(lade_worker *w, int64_t until, lade_drain_stats *stats,
                                            lade_err *err);

/*
 * Runs one job in the calling thread at once, by the worker's handler of its kind, as Resque.inline does: nothing is stored, whatever the store,
 * and no clock counts. The spec is checked as by lade_enqueue, and the handler sees what it would have been given from the store; when it is to run, its unique key
 * and its key are left out of account. Effects that it records last for the run, progress and log lines go nowhere; lade_sqlite_complete and
 * lade_sqlite_effect answer LADE_STALE, for there is no job to write beside. Any store; before, while and after the worker runs, any thread.
 *
 * *said (may be NULL) is what became of it: LADE_OK, or LADE_RETRY and so on, LADE_DEAD also when no attempt was left (a job of Resque has
 * one); err->text is then what the handler said was wrong. Returns 0, or LADE_NOT_FOUND: no handler for the kind. Failures: those of
 * lade_enqueue that need no store.
 */
LADE_API LADE_CHECKED int lade_worker_inline(lade_worker *w, const lade_job_spec *spec,
                                             lade_outcome *said, lade_err *err);

/*
 * How many jobs of a kind (NULL: any) of a queue (NULL: all) are in that state. O(jobs in that state). Returns 0; fails as lade_job_list.
 */
LADE_API LADE_CHECKED int lade_test_count(lade *q, const char *queue, const char *kind,
                                          enum lade_state state, size_t *n, lade_err *err);

#ifdef __cplusplus
}
#endif

#endif
