/*
 * resque_job.h - a job as it lies in a Resque queue: {"class":"Name","args":[...]}
 *
 * Thread safety: all functions; no state.
 */
#ifndef LADE_RESQUE_JOB_H
#define LADE_RESQUE_JOB_H

#include <lade/base.h>

#include "base/buf.h"

/* What is wrong with an entry. Ruby workers die of the first three (Resque 3.0.0); a worker of ours fails the entry. */
enum rq_bad {
    RQ_FINE = 0,
    RQ_NOT_JSON,   /* no JSON, or bytes that are not UTF-8 */
    RQ_NOT_OBJECT, /* JSON, but no object */
    RQ_NO_CLASS,   /* "class" is missing, empty or no string */
    RQ_BAD_ARGS /* "args" is neither an array nor missing nor null; Ruby takes a string as one argument */
};

/* What it means, "is not JSON"; a static string. */
const char *rq_bad_text(enum rq_bad bad);

/* Slices of the entry: valid as long as its bytes are. */
struct rq_job {
    struct lb_slice klass; /* with its quotes, as it stands */
    struct lb_slice args;  /* the array, "[1,2]"; {NULL, 0} when missing or null */
    struct lb_slice
        extra_at; /* the first member that is neither, name with quotes; {NULL, 0} = none */
};

/* Reads an entry. Of members of one name the last counts, as in Ruby. *out is set also for RQ_NO_CLASS and RQ_BAD_ARGS. */
enum rq_bad rq_job_read(struct rq_job *out, struct lb_slice entry);

/*
 * Appends the entry. klass is UTF-8, not empty; args is a JSON array, already as Ruby writes it (rq_json_rewrite). 0, -LADE_EINVAL,
 * -LADE_ENOMEM; what it has appended to `out` then is of no use.
 */
LADE_CHECKED int rq_job_write(struct lb_buf *out, struct lb_slice klass, struct lb_slice args,
                              lade_err *err);

#endif
