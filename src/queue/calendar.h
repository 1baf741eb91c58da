/*
 * calendar.h - when a schedule is to fire: cron in a zone, or every so often
 *
 * Changes of the clock. A cron expression that names hours means local time: what falls into a gap fires once, at the instant of
 * the change (or not, LQ_GAP_SKIP); what falls into an hour that comes twice fires at the first one (or at both, or at the second).
 * One that names no hour, as `*\/5 * * * *`, means elapsed time: it goes on through a fold and has nothing to make up for a gap.
 *
 * Thread safety: a calendar does not change once made; all functions.
 */
#ifndef LADE_QUEUE_CALENDAR_H
#define LADE_QUEUE_CALENDAR_H

#include "base/tz.h"
#include "queue/cron.h"

#define LQ_NEVER INT64_MAX

enum lq_gap { LQ_GAP_SHIFT, LQ_GAP_SKIP }; /* as enum lade_schedule_gap */

enum lq_fold { LQ_FOLD_FIRST, LQ_FOLD_BOTH, LQ_FOLD_SECOND }; /* as enum lade_schedule_fold */

struct lq_calendar {
    struct lq_cron cron; /* with `every` of 0 */
    struct lb_tz *tz;    /* owned; cron only */
    enum lq_gap gap;
    enum lq_fold fold;
    int64_t every, anchor; /* ns; every > 0: at anchor + k * every, for all k, also negative */
    int64_t start, end;    /* ns; [start, end), 0 = open */
};

struct lq_calendar_spec {
    const char *cron; /* or NULL */
    const char *zone; /* NULL or "": what CRON_TZ= says, else UTC */
    int64_t every;    /* ns, or 0 */
    int64_t anchor;
    enum lq_gap gap;
    enum lq_fold fold;
    int64_t start, end;
};

/* -LADE_EINVAL names the field and the rule; then nothing is to be freed. */
int lq_calendar_init(struct lq_calendar *c, const struct lq_calendar_spec *spec, lade_err *err);
void lq_calendar_fini(struct lq_calendar *c);

/* The first fire after `after`, ns since 1970, or LQ_NEVER. Cron fires at whole seconds. */
int64_t lq_calendar_next(const struct lq_calendar *c, int64_t after);

#endif
