/*
 * unique.h - what a spec says of its unique key, made into what a store is asked
 *
 * Debounce and throttle are nothing of their own to a store:
 *     debounce  until start, in `debounce`, on conflict replaced, due at most max_wait after the lock was taken
 *     throttle  until its ttl, and with `trailing` one more job at the end of it
 * Thread safety: functions of their arguments.
 */
#ifndef LADE_QUEUE_UNIQUE_H
#define LADE_QUEUE_UNIQUE_H

#include "queue/store.h"

/* 0, or -LADE_EINVAL or -LADE_ETOOBIG with the field and the rule; `timed`: the job has a time of its own. */
LADE_CHECKED int lq_unique_check(const lade_unique *u, bool timed, const char *at, lade_err *err);
/* job.c: a duration that is negative, below 1 ms or over 100 years is refused (C-073). */
LADE_CHECKED int lq_duration_check(int64_t ns, const char *field, const char *at, lade_err *err);
/* 0, or -LADE_EUNSUPPORTED when the store cannot do what is asked. */
LADE_CHECKED int lq_unique_allow(const struct lq_store *s, const lade_unique *u, lade_err *err);

/* Whether a put may change a job that is there. */
static inline bool lq_unique_may_replace(const lade_unique *u)
{
    return u->on_conflict == LADE_CONFLICT_REPLACE || u->debounce > 0 || u->trailing;
}

/* Which states hold the key. */
enum lade_unique_until lq_unique_until(const lade_unique *u);
/* Fills what a put says of its key; the key is not empty. A debounced job gets its time. */
void lq_unique_ask(struct lq_put *p, const lade_unique *u);

#endif
