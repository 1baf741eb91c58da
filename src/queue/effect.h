/*
 * effect.h - the parts of effect.c for those who record in a transaction of the handler's own (src/lade_sqlite.c)
 *
 * Thread safety: the handler's own call.
 */
#ifndef LADE_QUEUE_EFFECT_H
#define LADE_QUEUE_EFFECT_H

#include "base/buf.h"
#include "queue/worker.h"

/* EINVAL and ETOOBIG. */
LADE_CHECKED int lq_effect_check(const struct lade_job *job, const char *key, lade_bytes value,
                                 lade_err *err);
/* Adds to `out` the history `old` with the effect. 0, LADE_DUPLICATE or LADE_FULL. */
LADE_CHECKED int lq_effect_add(const struct lade_job *job, struct lb_slice old, const char *key,
                               lade_bytes value, struct lb_buf *out);
/*
 * To be called first: 0, LADE_STALE or ENOMEM. From now on the job's history, and with `completed` its end, are what the store says when the handler is back: only then it is
 * known whether the transaction was committed.
 */
LADE_CHECKED int lq_effect_beside(struct lade_job *job, bool completed, lade_err *err);

#endif
