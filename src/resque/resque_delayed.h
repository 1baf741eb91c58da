/*
 * resque_delayed.h - a job of resque-scheduler's, as it lies in delayed:<timestamp>: {"class":"Name","args":[...],"queue":"q"}
 *
 *   delayed_queue_schedule   zset of timestamps, score and member are seconds since 1970
 *   delayed:<timestamp>      list of the jobs that are due then
 *   timestamps:<job>         set of the lists that hold a job of these bytes, by which it is found and removed
 *
 * Thread safety: all functions; no state.
 */
#ifndef LADE_RESQUE_RESQUE_DELAYED_H
#define LADE_RESQUE_RESQUE_DELAYED_H

#include <lade/base.h>

#include "base/buf.h"

#define RQ_KEY_SCHEDULE    "delayed_queue_schedule"
#define RQ_KEY_MASTER_LOCK "resque_scheduler_master_lock"

/* Appends the item of an entry {"class":...,"args":[...]} as rq_job_write writes it. False: the queue is not UTF-8. */
bool rq_delayed_write(struct lb_buf *out, struct lb_slice entry, struct lb_slice queue);

/*
 * The way back, as enqueue_from_config goes it: args that are no array become one, a custom_job_class takes the place of the class. Appends the
 * entry and the queue's name. NULL, or what is wrong, "queue: must ..."; what was appended then is of no use.
 */
const char *rq_delayed_read(struct lb_buf *entry, struct lb_buf *queue, struct lb_slice item);

#endif
