/*
 * resque_keys.h - the names of Resque's keys, with their namespace
 *
 * redis-namespace puts "<namespace>:" in front of every key; without a namespace there is neither name nor colon.
 *
 *   queues                  set of queue names             worker:<id>            what a worker is doing
 *   queue:<q>               list of jobs, head is next     worker:<id>:started    since when it is there
 *   workers                 set of worker ids              stat:processed[:<id>]  counters, stat:failed too
 *   workers:heartbeat       hash id -> time                failed, <q>_failed     lists of failures
 *
 * Thread safety: all functions; an rq_keys is read-only once it is made.
 */
#ifndef LADE_RESQUE_KEYS_H
#define LADE_RESQUE_KEYS_H

#include <lade/base.h>

#include "base/buf.h"

#define RQ_NAMESPACE     "resque"
#define RQ_NAMESPACE_MAX 200

/* Names of the keys that have no part of their own. */
#define RQ_KEY_QUEUES    "queues"
#define RQ_KEY_WORKERS   "workers"
#define RQ_KEY_HEARTBEAT "workers:heartbeat"
#define RQ_KEY_PRUNING   "pruning_dead_workers_in_progress"
#define RQ_KEY_PAUSE     "pause-all-workers"
#define RQ_KEY_FAILED    "failed"
#define RQ_KEY_PROCESSED "stat:processed"
#define RQ_KEY_N_FAILED  "stat:failed"

struct rq_keys {
    char prefix[RQ_NAMESPACE_MAX + 2]; /* "resque:" or "" */
    size_t n;
};

/*
 * `ns` NULL is RQ_NAMESPACE, "" none; a colon at its end is taken as given for us ("resque:" is "resque"), a colon alone is
 * refused. 0; -LADE_EINVAL: too long, or a control character.
 */
LADE_CHECKED int rq_keys_init(struct rq_keys *k, const char *ns, lade_err *err);

/* Appends prefix + name. */
void rq_key(const struct rq_keys *k, struct lb_buf *out, const char *name);
/* Appends prefix + kind + part + tail, "queue:" + "mail" + "". */
void rq_key_of(const struct rq_keys *k, struct lb_buf *out, const char *kind, struct lb_slice part,
               const char *tail);

static inline void rq_key_queue(const struct rq_keys *k, struct lb_buf *out, struct lb_slice queue)
{
    rq_key_of(k, out, "queue:", queue, "");
}

static inline void rq_key_worker(const struct rq_keys *k, struct lb_buf *out, struct lb_slice id)
{
    rq_key_of(k, out, "worker:", id, "");
}

static inline void rq_key_started(const struct rq_keys *k, struct lb_buf *out, struct lb_slice id)
{
    rq_key_of(k, out, "worker:", id, ":started");
}

static inline void rq_key_processed(const struct rq_keys *k, struct lb_buf *out, struct lb_slice id)
{
    rq_key_of(k, out, RQ_KEY_PROCESSED ":", id, "");
}

static inline void rq_key_n_failed(const struct rq_keys *k, struct lb_buf *out, struct lb_slice id)
{
    rq_key_of(k, out, RQ_KEY_N_FAILED ":", id, "");
}

/* The list of a queue's failures where each queue has its own (FAILURE_BACKEND=redis_multi_queue). */
static inline void rq_key_queue_failed(const struct rq_keys *k, struct lb_buf *out,
                                       struct lb_slice queue)
{
    rq_key_of(k, out, "", queue, "_failed");
}

#endif
