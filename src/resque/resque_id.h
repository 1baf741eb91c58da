/*
 * resque_id.h - worker ids, "host:pid:queue,queue", that live Ruby workers and resque-web leave in peace
 *
 * A Ruby worker that starts takes a registered id for dead when its host part is the machine's own name and its pid is not among
 * the Resque processes that ps shows. So the host part of ours is never the plain name: "<hostname>-<suffix>". The suffix is
 * drawn at random, so that containers with one host name and pid 1 differ too. The pid part is "<pid>.<slot>". One registered id
 * without two colons stops every Ruby worker that starts: a name that would break the form is cleaned.
 *
 * Thread safety: all functions.
 */
#ifndef LADE_RESQUE_ID_H
#define LADE_RESQUE_ID_H

#include <lade/base.h>

#include "base/buf.h"

#define RQ_ID_SUFFIX_LEN 6

struct rq_host {
    char name[64 + 1 + RQ_ID_SUFFIX_LEN + 1]; /* "<hostname>-<suffix>" */
};

/* The name of this process's workers: `hostname` (NULL = gethostname) without what an id may not have, and a random suffix. */
void rq_host_init(struct rq_host *h, const char *hostname);

/* Appends an id. queues as the worker was given them, joined by commas: "high,low" or "*". */
void rq_id_write(struct lb_buf *out, const struct rq_host *h, int64_t pid, unsigned slot,
                 struct lb_slice queues);

/* The same in parts: the number of the slot stands between them. */
void rq_id_write_head(struct lb_buf *out, const struct rq_host *h, int64_t pid);
void rq_id_write_tail(struct lb_buf *out, struct lb_slice queues);

struct rq_id {
    struct lb_slice host, pid, queues; /* slices of the text */
};

/* Cuts at the first two colons, as Ruby's find does. False when there are not two: such an id is not ours to judge. */
bool rq_id_read(struct rq_id *out, struct lb_slice text);
/* Whether a worker of this id may take jobs of the queue: named, or "*". */
bool rq_id_serves(const struct rq_id *id, struct lb_slice queue);

#endif
