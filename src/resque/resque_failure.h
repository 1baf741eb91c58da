/*
 * resque_failure.h - an entry of the failed list, and what a worker says it is doing
 *
 * resque-web shows an entry only when `failed_at` is a date, `worker` a string and `backtrace` an array of strings; one that breaks
 * this takes the whole page down. So all of them are always written, and in that form.
 *
 * Thread safety: all functions; no state.
 */
#ifndef LADE_RESQUE_FAILURE_H
#define LADE_RESQUE_FAILURE_H

#include <lade/base.h>

#include "base/buf.h"

#define RQ_BACKTRACE_MAX 64 /* lines; more are cut */

/* The words of Resque's own failures. */
#define RQ_DIRTY_EXIT       "Resque::DirtyExit"
#define RQ_PRUNE_DIRTY_EXIT "Resque::PruneDeadWorkerDirtyExit"
#define RQ_STILL_PROCESSED  "Job still being processed"

struct rq_failure {
    int64_t failed_at; /* seconds since 1970 */
    struct lb_slice
        payload; /* JSON as it was in the queue. What is no JSON is kept as text: {"class":null,"args":["text"]} */
    const char *exception; /* class name of the error */
    struct lb_slice
        error; /* its text; bytes that are not UTF-8 are replaced, as in all texts here */
    const char *const *backtrace; /* n lines */
    size_t n_backtrace;
    struct lb_slice worker, queue;
    const char *failure_id; /* a UUID (Resque 3.1); NULL = one is drawn */
};

/* Appends the entry, in Ruby's order of members. Out of memory shows in out->failed. */
void rq_failure_write(struct lb_buf *out, const struct rq_failure *f);

/* Members of an entry, as they stand: with their quotes. {NULL, 0} = not there. */
struct rq_failure_raw {
    struct lb_slice failed_at, payload, exception, error, worker, queue;
};

/* False when the entry is no object of JSON. */
bool rq_failure_read(struct rq_failure_raw *out, struct lb_slice entry);

/* Appends what worker:<id> holds: {"queue":...,"run_at":...,"payload":...}. payload is JSON. */
void rq_working_write(struct lb_buf *out, struct lb_slice queue, int64_t run_at,
                      struct lb_slice payload);

/* Appends "Worker <id> did not gracefully exit while processing <class>". */
void rq_prune_text(struct lb_buf *out, struct lb_slice worker, struct lb_slice klass);
/* A random UUID (version 4) and a NUL. */
void rq_uuid(char out[37]);

#endif
