/* schedule_look.c - schedules as programs and operators see them, and when a rule fires */
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/err.h"
#include "queue/client.h"
#include "queue/schedule_view.h"
#include "queue/scheduler.h"

const char *lade_schedule_state_name(enum lade_schedule_state state)
{
    static const char *const names[] = {"active", "paused", "ended", "broken"};

    return (unsigned)state < LADE_N_SCHEDULE_STATES ? names[state] : NULL;
}

const char *lade_fire_outcome_name(enum lade_fire_outcome outcome)
{
    static const char *const names[] = {"fired",  "made up",   "missed", "overlap",
                                        "queued", "duplicate", "by hand"};

    return (unsigned)outcome < LADE_N_FIRE_OUTCOMES ? names[outcome] : NULL;
}

int lq_schedules_check(const lade *q, lade_err *err)
{
    if (q->store->ops->schedules)
        return 0;
    return lb_fail(err, LADE_EUNSUPPORTED, "schedule", "the store %s has no schedules",
                   q->store->ops->name);
}

int lade_schedule_get(lade *q, const char *id, lade_schedule_view **out, lade_err *err)
{
    LQ_REFUSE_NULL(q, "schedule");
    LQ_REFUSE_NULL(out, "schedule");
    LQ_REFUSE_NULL(id, "schedule");
    int rc = lq_schedules_check(q, err);
    if (rc < 0)
        return rc;
    struct lq_schedule_vec vec = {0};
    lb_arena_init(&vec.arena);
    rc = q->store->ops->schedules->get(q->store, lb_slice_str(id), &vec, err);
    if (rc == 0) {
        lade_schedule_view *v = lq_schedule_view_make(&vec.row[0]);
        if (v)
            *out = v;
        else
            rc = lb_fail_nomem(err, "schedule");
    }
    lb_arena_fini(&vec.arena);
    return rc;
}

static int check_list(const lade *q, const lade_cursor *cursor, size_t limit,
                      lade_schedule_view *const *out, const size_t *n, lade_err *err)
{
    if (!cursor || !out || !n)
        return lb_fail(err, LADE_EINVAL, "schedules", "cursor, out and n must not be NULL");
    if (limit == 0 || limit > 1000)
        return lb_fail(err, LADE_EINVAL, "schedules", "limit %zu is not within 1 to 1000", limit);
    return lq_schedules_check(q, err);
}

int lade_schedule_list(lade *q, lade_cursor *cursor, size_t limit, lade_schedule_view **out,
                       size_t *n, lade_err *err)
{
    LQ_REFUSE_NULL(q, "schedules");
    int rc = check_list(q, cursor, limit, out, n, err);
    if (rc < 0)
        return rc;
    if (cursor->done) {
        *n = 0;
        return LADE_EMPTY;
    }
    struct lq_schedule_vec vec = {0};
    lb_arena_init(&vec.arena);
    lade_cursor next = *cursor;
    rc = q->store->ops->schedules->list(q->store, &next, limit, &vec, err);
    size_t made = 0;
    for (; rc >= 0 && made < vec.n; made++) {
        out[made] = lq_schedule_view_make(&vec.row[made]);
        if (!out[made])
            rc = lb_fail_nomem(err, "schedules");
    }
    if (rc >= 0) {
        *cursor = next;
        *n = vec.n;
    } else {
        for (size_t i = 0; i < made; i++)
            lade_schedule_view_free(out[i]);
    }
    lb_arena_fini(&vec.arena);
    return rc;
}

int lade_schedule_get_leader(lade *q, lade_schedule_leader *out, lade_err *err)
{
    LQ_REFUSE_NULL(q, "schedule");
    LQ_REFUSE_NULL(out, "schedule");
    int rc = lq_schedules_check(q, err);
    return rc < 0 ? rc : q->store->ops->schedules->leader(q->store, out, err);
}

/* preview ---------------------------------------------------------------------------------------------------------- */

static bool names(const struct lq_cron *c, int64_t local)
{
    int64_t next;
    return lq_cron_next(c, local - 1, &next) && next == local;
}

static lade_schedule_time describe(const struct lq_calendar *c, int64_t at)
{
    lade_schedule_time t = {.at = at, .zone = "UTC"};
    if (!c->tz)
        return t;
    int64_t second = lb_floor_div(at, LADE_SECOND);
    struct lb_tz_period p = lb_tz_at(c->tz, second);
    t.utc_offset = p.offset;
    memcpy(t.zone, p.abbreviation, sizeof(t.zone));
    struct lb_tz_local local = lb_tz_of_local(c->tz, second + p.offset);
    if (local.kind == LB_TZ_FOLD)
        t.note = second == local.instant[0] ? LADE_TIME_FIRST_PASS : LADE_TIME_SECOND_PASS;
    else if (!c->every && !names(&c->cron, second + p.offset))
        t.note = LADE_TIME_SHIFTED;
    return t;
}

int lade_schedule_preview(const lade_schedule_spec *spec, int64_t from, int64_t to,
                          lade_schedule_time *out, size_t max, size_t *n, lade_err *err)
{
    LQ_REFUSE_NULL(spec, "preview");
    LQ_REFUSE_NULL(n, "preview");
    if (max > 0)
        LQ_REFUSE_NULL(out, "preview");
    if (from < 0 || to < from)
        return lb_fail(err, LADE_EINVAL, "preview", "to must not be before from, nor from 1970");
    struct lq_calendar c;
    lade_schedule_spec copy = *spec;
    if (copy.anchor == LADE_ANCHOR_START && copy.start == 0 && copy.anchor_at == 0)
        copy.anchor_at = from;
    int rc = lq_schedule_open(&copy, &c, err);
    if (rc < 0)
        return rc;
    size_t found = 0;
    int64_t at = lq_calendar_next(&c, from - 1);
    for (; found < max && at < to; at = lq_calendar_next(&c, at))
        out[found++] = describe(&c, at);
    lq_calendar_fini(&c);
    *n = found;
    return at < to ? LADE_MORE : 0;
}

bool lade_schedule_of_job(const char *job_id, lade_schedule_id *id, int64_t *at)
{
    const char *colon = job_id ? strrchr(job_id, ':') : NULL;
    int64_t ms = 0;
    if (!colon || colon == job_id || colon - job_id > LADE_SCHEDULE_ID_MAX)
        return false;
    const char *p = colon + 1;
    bool by_hand = *p == 'r';
    p += by_hand;
    const char *digits = p;
    for (; *p >= '0' && *p <= '9' && p - digits < 14; p++)
        ms = 10 * ms + (*p - '0');
    if (p == digits || (*p != 0 && *p != '.'))
        return false;
    if (id)
        (void)snprintf(id->text, sizeof(id->text), "%.*s", (int)(colon - job_id), job_id);
    if (at)
        *at = by_hand ? 0 : lb_ns_of_ms(ms);
    return true;
}
