/*
 * resque_active.h - a job of Rails' ActiveJob in a Resque queue: one class for all of them, whose one argument is the job
 *
 *   {"class":"ActiveJob::QueueAdapters::ResqueAdapter::JobWrapper","args":[{"job_class":"MailJob","job_id":"...","provider_job_id":null,
 *    "queue_name":"default","priority":null,"arguments":[1,"two"],"executions":0,"exception_executions":{},"locale":"en",
 *    "timezone":"UTC","enqueued_at":"2026-11-30T09:57:20Z"}]}
 *
 * What ActiveJob makes of arguments that are not JSON (GlobalID, symbols, times) is a hash in `arguments`, and stays one here.
 *
 * Thread safety: all functions; no state.
 */
#ifndef LADE_RESQUE_RESQUE_ACTIVE_H
#define LADE_RESQUE_RESQUE_ACTIVE_H

#include <lade/base.h>

#include "base/buf.h"
#include "resque/resque_job.h"

#define RQ_ACTIVE_WRAPPER "ActiveJob::QueueAdapters::ResqueAdapter::JobWrapper"

/* Members that a handler may ask for, as headers of these names. */
#define RQ_ACTIVE_FIELDS(X) \
    X(job_id)               \
    X(queue_name)           \
    X(executions)           \
    X(locale)               \
    X(timezone)             \
    X(enqueued_at)
#define RQ_ACTIVE_AT(name) RQ_ACTIVE_##name,

enum { RQ_ACTIVE_FIELDS(RQ_ACTIVE_AT) RQ_ACTIVE_N_FIELDS };

/* Slices of the entry, as they stand; {NULL, 0} = not there or null. */
struct rq_active {
    struct lb_slice job_class, arguments;
    struct lb_slice field[RQ_ACTIVE_N_FIELDS]; /* strings and integers only */
};

extern const char *const rq_active_field[RQ_ACTIVE_N_FIELDS];

bool rq_active_is(const struct rq_job *job);
/* NULL, or what is wrong with the envelope: "args[0].job_class: must ...". */
const char *rq_active_read(struct rq_active *out, const struct rq_job *job);

struct rq_active_spec {
    struct lb_slice job_class, job_id, queue; /* UTF-8 */
    struct lb_slice arguments;                /* as rq_json_rewrite has it, an array */
    int64_t enqueued_at;                      /* seconds since 1970 */
};

/* Appends the args of the wrapper, "[{...}]", for rq_job_write. False: a text is not UTF-8. */
bool rq_active_write(struct lb_buf *out, const struct rq_active_spec *spec);

#endif
