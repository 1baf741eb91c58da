/*
 * scheduler_fire.c - firing what is due, and the audit of a leader that begins
 *
 * What cannot be read here is parked: written back as BROKEN, with the reason. What the store does not take is due again at the
 * next look. Neither stops the schedules behind it.
 */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/err.h"
#include "queue/scheduler.h"

#define AUDIT_PAGE 100

/* firing ----------------------------------------------------------------------------------------------------------- */

/* One schedule that is due. */
struct due {
    struct lade_scheduler *s;
    struct lb_arena *arena;
    const struct lq_schedule_row *row;
    const char *id;
    struct lq_schedule_spec spec;
    struct lq_memo memo;
    struct lq_calendar calendar;
    struct lq_plan plan;
    int64_t now_ms;
};

static const char *missed_name(enum lade_schedule_missed missed)
{
    static const char *const names[] = {"one", "skip", "all"};

    return (unsigned)missed < LB_ARRAY_LEN(names) ? names[missed] : "?";
}

/* Its record cannot be read here: no more fires, and the reason for all to see. */
static void park(struct due *d, bool has_memo, const lade_err *why)
{
    struct lade_scheduler *s = d->s;
    struct lq_memo memo = has_memo ? d->memo : (struct lq_memo){.changed_ms = d->now_ms};
    struct lb_buf bytes;
    lade_err err = {0};
    (void)snprintf(memo.error, sizeof(memo.error), "%s", why->text);
    memo.next_ms = 0;
    lb_buf_init(&bytes);
    lq_memo_encode(&bytes, &memo);
    struct lq_schedule_half half = {lb_buf_slice(&bytes), LADE_SCHEDULE_BROKEN, 0};
    struct lq_fire fire = {.id = d->row->id,
                           .revision = d->row->revision,
                           .fence = s->fence,
                           .fired = half,
                           .held = half};
    int rc = bytes.failed ? -LADE_ENOMEM : lq_schedule_fire(s->q->store, &fire, &err);
    lb_buf_fini(&bytes);
    if (rc == 0)
        lq_scheduler_say(s, "schedule %s cannot be read and fires no more: %s", d->id, why->text);
}

/* Reads the record. False: it is parked, or was not ours to read. */
static bool read_due(struct due *d)
{
    lade_err err = {0};
    struct lb_mut spec = lb_arena_copy(d->arena, d->row->spec.p, d->row->spec.n);
    struct lb_mut memo = lb_arena_copy(d->arena, d->row->memo.p, d->row->memo.n);
    if (!spec.p || !memo.p)
        return false; /* once more at the next look */
    int rc = lq_memo_decode(memo, &d->memo, &err);
    bool has_memo = rc == 0;
    if (rc == 0)
        rc = lq_schedule_decode(spec, &d->spec, &err);
    if (rc == 0)
        rc = lq_schedule_calendar(&d->spec, d->memo.anchor_ms, &d->calendar, &err);
    if (rc < 0 && rc != -LADE_ENOMEM)
        park(d, has_memo, &err);
    return rc == 0;
}

/* The jobs of the plan. False when out of memory; *damaged: the template cannot be read. */
static bool make_puts(struct due *d, struct lq_put *put, struct lb_buf *bodies, bool *damaged)
{
    const struct lq_plan *p = &d->plan;
    for (size_t i = 0; i < p->n; i++) {
        char *id = lb_arena_alloc(d->arena, LADE_ID_MAX + 1);
        struct lb_mut scratch = lb_arena_copy(d->arena, d->spec.body.p, d->spec.body.n);
        if (!id || !scratch.p)
            return false;
        lb_buf_clear(bodies);
        *damaged = !lq_schedule_put_of(&put[i], &d->spec, scratch) ||
                   !lq_schedule_body(bodies, d->spec.body, d->now_ms);
        struct lb_mut body = lb_arena_copy(d->arena, bodies->p, bodies->n);
        if (*damaged || bodies->failed || !body.p)
            return false;
        lq_memo_job_id(id, d->id, p->at_ms[i], p->fired.epoch);
        put[i].id = lb_slice_str(id);
        put[i].body = lb_slice_of(body);
    }
    return true;
}

static void count_fire(struct due *d, const struct lq_fire *fire)
{
    struct lade_scheduler *s = d->s;
    const struct lq_plan *p = &d->plan;
    uint64_t duplicates = 0, done = fire->busy ? 0 : p->n;
    for (size_t i = 0; i < done; i++)
        duplicates += fire->put[i].outcome == LADE_DUPLICATE;
    done -= duplicates;
    lr_mutex_lock(&s->lock);
    s->stats.fired += done;
    s->stats.made_up += p->made_up ? done : 0;
    s->stats.missed += p->n_missed;
    s->stats.duplicates += duplicates;
    s->stats.overlaps += p->held.overlaps - d->memo.overlaps > 0 && fire->busy;
    lr_mutex_unlock(&s->lock);
    if (p->n_missed > 0)
        lq_scheduler_say(
            s, "schedule %s: %llu times were missed and passed over, %llu made up (missed=%s)",
            d->id, (unsigned long long)p->n_missed, (unsigned long long)done,
            missed_name(d->spec.missed));
}

/*
 * The store said that some of the jobs were not put: that is noted, in a step of its own. It is a note for people: when the record
 * has changed meanwhile, it is left out.
 */
static void note_duplicates(struct due *d, const struct lq_fire *fire)
{
    struct lq_memo m = d->plan.fired;
    uint64_t n = 0;
    for (size_t i = 0; i < fire->n && !fire->busy; i++)
        n += fire->put[i].outcome == LADE_DUPLICATE;
    if (n == 0)
        return;
    lq_scheduler_say(d->s, "schedule %s: %llu of %zu jobs not put, %s is there", d->id,
                     (unsigned long long)n, fire->n, fire->put[fire->n - 1].holder);
    m.fired -= LB_MIN(m.fired, n);
    m.duplicates += n;
    if (m.n_history > 0 && n == fire->n)
        m.n_history--;
    lq_memo_note(&m, d->plan.at_ms[0], d->now_ms, LADE_FIRE_DUPLICATE, n);
    if (lq_schedule_mend_memo(d->s->q, d->row->id, d->s->fence, fire->fired.memo, &m) < 0)
        lq_scheduler_say(d->s, "schedule %s: that could not be noted in its history", d->id);
}

static void complain(struct lade_scheduler *s, const char *id, int rc, const lade_err *err)
{
    bool failed = rc < 0;
    if (failed && !s->fire_failed)
        lq_scheduler_say(s, "schedule %s could not fire, trying again: %s", id, err->text);
    if (!failed && s->fire_failed)
        lq_scheduler_say(s, "schedules fire again");
    s->fire_failed = failed;
    if (!failed)
        return;
    lr_mutex_lock(&s->lock);
    s->stats.failed++;
    lr_mutex_unlock(&s->lock);
}

/* The plan as one step of the store. */
static int fire_plan(struct due *d, struct lq_put *put, lade_err *err)
{
    const struct lq_plan *p = &d->plan;
    struct lb_buf fired, held;
    lb_buf_init(&fired);
    lb_buf_init(&held);
    lq_memo_encode(&fired, &p->fired);
    lq_memo_encode(&held, &p->held);
    struct lq_fire fire = {
        .id = d->row->id,
        .revision = d->row->revision,
        .fence = d->s->fence,
        .put = put,
        .n = p->n,
        .busy_queue = d->memo.last_queue,
        .busy_id = lb_slice_str(p->asks ? d->memo.last_job : ""),
        .fired = {lb_buf_slice(&fired), p->fired_end.state, p->fired_end.due_ms},
        .held = {lb_buf_slice(&held), p->held_end.state, p->held_end.due_ms},
    };
    int rc = fired.failed || held.failed ? lb_fail_nomem(err, "schedule")
                                         : lq_schedule_fire(d->s->q->store, &fire, err);
    if (rc == 0) {
        count_fire(d, &fire);
        note_duplicates(d, &fire);
    }
    lb_buf_fini(&fired);
    lb_buf_fini(&held);
    return rc;
}

static void fire_due(struct due *d)
{
    struct lq_put put[LQ_FIRE_MAX];
    struct lb_buf bodies;
    bool damaged = false;
    lade_err err = {0};
    if (!read_due(d))
        return;
    memcpy(d->memo.tzdata, d->s->tzdata, sizeof(d->memo.tzdata));
    lq_plan_make(&d->plan, d->id, &d->spec, &d->calendar, &d->memo, d->now_ms);
    lb_buf_init(&bodies);
    int rc = 0;
    if (make_puts(d, put, &bodies, &damaged))
        rc = fire_plan(d, put, &err);
    else if (damaged) {
        (void)lb_fail(&err, LADE_EFORMAT, "schedule", "the template of its job is damaged");
        park(d, true, &err);
    } else {
        rc = lb_fail_nomem(&err, "schedule");
    }
    complain(d->s, d->id, rc, &err);
    lb_buf_fini(&bodies);
    lq_calendar_fini(&d->calendar);
}

void lq_scheduler_fire(struct lade_scheduler *s, struct lq_schedule_vec *vec, int64_t now_ms)
{
    struct due d;
    struct lb_arena arena;
    lb_arena_init(&arena);
    for (size_t i = 0; i < vec->n && !lq_scheduler_is_stopping(s); i++) {
        lb_arena_reset(&arena);
        memset(&d.calendar, 0, sizeof(d.calendar));
        d.s = s;
        d.arena = &arena;
        d.row = &vec->row[i];
        d.id = (const char *)d.row->id.p;
        d.now_ms = now_ms;
        fire_due(&d);
    }
    lb_arena_fini(&arena);
}

/* audit ------------------------------------------------------------------------------------------------------------ */

/*
 * When a leader begins, and when the store's clock was set back by much: next times that another release of the zone data, or
 * a future that is not to be, has given are found anew; what was broken elsewhere may be readable here.
 */
static bool has_to_begin(const struct due *d)
{
    const struct lq_memo *m = &d->memo;
    bool is_broken = d->row->state == LADE_SCHEDULE_BROKEN;
    bool is_ahead = m->computed_ms > d->now_ms + LQ_BACK_MS;
    bool has_other_zones =
        *d->spec.cron && strcmp(m->tzdata, d->s->tzdata) != 0 && m->next_ms > d->now_ms;
    return is_broken || is_ahead || has_other_zones;
}

static void begin_anew(struct due *d)
{
    struct lq_memo *m = &d->memo;
    struct lb_buf bytes;
    lb_buf_init(&bytes);
    m->epoch += m->computed_ms > d->now_ms + LQ_BACK_MS;
    m->error[0] = 0;
    memcpy(m->tzdata, d->s->tzdata, sizeof(m->tzdata));
    struct lq_schedule_end end = lq_plan_begin(d->id, &d->spec, &d->calendar, m, d->now_ms);
    lq_memo_encode(&bytes, m);
    struct lq_schedule_half half = {lb_buf_slice(&bytes), end.state, end.due_ms};
    struct lq_fire fire = {.id = d->row->id,
                           .revision = d->row->revision,
                           .fence = d->s->fence,
                           .fired = half,
                           .held = half};
    lade_err err = {0};
    int rc = bytes.failed ? lb_fail_nomem(&err, "schedule")
                          : lq_schedule_fire(d->s->q->store, &fire, &err);
    if (rc == 0 && d->row->state == LADE_SCHEDULE_BROKEN)
        lq_scheduler_say(d->s, "schedule %s can be read again and goes on", d->id);
    lb_buf_fini(&bytes);
}

static void audit_row(struct due *d)
{
    if (d->row->state != LADE_SCHEDULE_ACTIVE && d->row->state != LADE_SCHEDULE_BROKEN)
        return;
    bool was_broken = d->row->state == LADE_SCHEDULE_BROKEN;
    lade_err err = {0};
    struct lb_mut spec = lb_arena_copy(d->arena, d->row->spec.p, d->row->spec.n);
    struct lb_mut memo = lb_arena_copy(d->arena, d->row->memo.p, d->row->memo.n);
    if (!spec.p || !memo.p || lq_memo_decode(memo, &d->memo, &err) < 0 ||
        lq_schedule_decode(spec, &d->spec, &err) < 0)
        return; /* parked when it is due */
    struct lb_mut scratch = lb_arena_copy(d->arena, d->spec.body.p, d->spec.body.n);
    struct lq_put put;
    if (!scratch.p || (was_broken && !lq_schedule_put_of(&put, &d->spec, scratch)))
        return;
    if (lq_schedule_calendar(&d->spec, d->memo.anchor_ms, &d->calendar, &err) < 0)
        return;
    if (has_to_begin(d))
        begin_anew(d);
    lq_calendar_fini(&d->calendar);
}

int lq_scheduler_audit(struct lade_scheduler *s, int64_t now_ms, lade_err *err)
{
    lade_cursor cursor = {0};
    int rc = 0;
    struct due d;
    struct lb_arena arena;
    lb_tz_release(s->tzdata);
    lb_arena_init(&arena);
    while (rc == 0 && !cursor.done && !lq_scheduler_is_stopping(s)) {
        struct lq_schedule_vec vec = {0};
        lb_arena_init(&vec.arena);
        rc = s->q->store->ops->schedules->list(s->q->store, &cursor, AUDIT_PAGE, &vec, err);
        for (size_t i = 0; rc == 0 && i < vec.n; i++) {
            lb_arena_reset(&arena);
            memset(&d.calendar, 0, sizeof(d.calendar));
            d.s = s;
            d.arena = &arena;
            d.row = &vec.row[i];
            d.id = (const char *)d.row->id.p;
            d.now_ms = now_ms;
            audit_row(&d);
        }
        lb_arena_fini(&vec.arena);
    }
    lb_arena_fini(&arena);
    return LB_MIN(rc, 0);
}
