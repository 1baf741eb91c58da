/*
 * calendar.c - from local times to instants
 *
 * Mapping each local time to its first instant, or each to its last, keeps the order: within a fold the first pass ends before
 * the second begins, and all of a gap maps to the instant of the change. So the next fire is found by going through the local times of
 * the expression, in order, until one maps to a later instant. Second passes are looked at apart: only a fold
 * whose second pass has not ended can give one, and the nearest such fold gives the earliest.
 */
#include "queue/calendar.h"

#include "base/base.h"
#include "base/err.h"

int lq_calendar_init(struct lq_calendar *c, const struct lq_calendar_spec *spec, lade_err *err)
{
    char zone[LB_TZ_NAME_MAX + 1] = "";
    *c = (struct lq_calendar){.gap = spec->gap,
                              .fold = spec->fold,
                              .every = spec->every,
                              .anchor = spec->anchor,
                              .start = spec->start,
                              .end = spec->end};
    if ((spec->cron != NULL) == (spec->every != 0))
        return lb_fail(err, LADE_EINVAL, "schedule",
                       "give either cron or every, one of them and not both");
    if (spec->every && spec->every < LADE_SECOND)
        return lb_fail(err, LADE_EINVAL, "schedule", "every is a duration of one second or more");
    if (spec->end && spec->end <= spec->start)
        return lb_fail(err, LADE_EINVAL, "schedule", "end must be later than start");
    if (!spec->cron)
        return 0;
    int rc = lq_cron_parse(&c->cron, spec->cron, zone, err);
    if (rc < 0)
        return rc;
    c->every = c->cron.every;
    const char *named = spec->zone && spec->zone[0] ? spec->zone : zone;
    return lb_tz_open(&c->tz, named[0] ? named : "UTC", err);
}

void lq_calendar_fini(struct lq_calendar *c)
{
    lb_tz_close(c->tz);
    c->tz = NULL;
}

/*
 * One instant for each local time: the first, or the last with LQ_FOLD_SECOND. That one may lie ahead of `after` for local times
 * that the clock has shown already: in a first pass the search begins where the second will.
 */
static int64_t next_once(const struct lq_calendar *c, int64_t after)
{
    struct lb_tz_period p = lb_tz_at(c->tz, after);
    bool last = c->fold == LQ_FOLD_SECOND && !c->cron.every_hour;
    int64_t local = after + p.offset;
    if (last && p.to != INT64_MAX && p.to - after <= LB_DAY_SECONDS)
        local = after + LB_MIN(p.offset, lb_tz_at(c->tz, p.to).offset);
    while (lq_cron_next(&c->cron, local, &local)) {
        struct lb_tz_local at = lb_tz_of_local(c->tz, local);
        bool gone = at.kind == LB_TZ_GAP && (c->gap == LQ_GAP_SKIP || c->cron.every_hour);
        if (!gone && at.instant[last] > after)
            return at.instant[last];
    }
    return LQ_NEVER;
}

/* The earliest instant after `after`, and before `before`, in the second pass of a fold. */
static int64_t next_second(const struct lq_calendar *c, int64_t after, int64_t before)
{
    struct lb_tz_period p = lb_tz_at(c->tz, after);
    if (p.from != INT64_MIN) /* the fold may have begun before `after` */
        p = lb_tz_at(c->tz, p.from - 1);
    while (p.to < before) {
        struct lb_tz_period q = lb_tz_at(c->tz, p.to);
        int64_t length = p.offset - q.offset, local;
        int64_t from = LB_MAX(q.from - 1, after);
        if (length > 0 && from < q.from + length &&
            lq_cron_next(&c->cron, from + q.offset, &local) &&
            local - q.offset < LB_MIN(q.from + length, before))
            return local - q.offset;
        p = q;
    }
    return LQ_NEVER;
}

static int64_t next_cron(const struct lq_calendar *c, int64_t after)
{
    int64_t seconds = lb_floor_div(after, LADE_SECOND);
    int64_t next = next_once(c, seconds);
    if (c->fold == LQ_FOLD_BOTH || c->cron.every_hour)
        next = LB_MIN(next, next_second(c, seconds, next));
    return next > INT64_MAX / LADE_SECOND ? LQ_NEVER : next * LADE_SECOND;
}

static int64_t next_every(const struct lq_calendar *c, int64_t after)
{
    int64_t steps, next;
    if (__builtin_sub_overflow(after, c->anchor, &steps))
        return LQ_NEVER;
    steps = lb_floor_div(steps, c->every) + 1;
    if (__builtin_mul_overflow(steps, c->every, &next) ||
        __builtin_add_overflow(next, c->anchor, &next))
        return LQ_NEVER;
    return next;
}

int64_t lq_calendar_next(const struct lq_calendar *c, int64_t after)
{
    if (c->start && after < c->start - 1)
        after = c->start - 1;
    int64_t next = c->every ? next_every(c, after) : next_cron(c, after);
    return c->end && next >= c->end ? LQ_NEVER : next;
}
