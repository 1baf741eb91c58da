/*
 * schedule_plan.c - what becomes of a schedule that is due: which times fire, which are passed over, when it is due next
 *
 * All times up to now are walked through, from the one that was next on. One alone that is at most LATE_MS behind is on
 * time. Else they were missed, and the policy says how many of them, the newest, fire; the rest is counted. A fire puts at
 * most LQ_FIRE_MAX jobs: then the first of those that are left is next, and the next look goes on with it.
 *
 * With a policy for overlap at most one time fires, and only when the last job has ended, which the store sees in the step
 * that puts. So there are two ends: `fired`, and `held` when it has not.
 */
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "queue/schedule.h"

#define LATE_MS 60000 /* one that is alone and behind by no more than this is on time */
#define WALK_MAX \
    1000000           /* times of one walk; beyond, the older half of the rest is counted as one */
#define AGAIN_MS 1000 /* between two looks whether the last job has ended */

/* FNV-1a over the id and the time, and a last mixing (the finaliser of MurmurHash3), so that near times lie far apart. */
static uint64_t hash(const char *id, int64_t at_ms)
{
    uint64_t h = UINT64_C(14695981039346656037);
    for (; *id; id++)
        h = (h ^ (uint8_t)*id) * UINT64_C(1099511628211);
    for (unsigned i = 0; i < 8; i++)
        h = (h ^ (uint8_t)((uint64_t)at_ms >> (8 * i))) * UINT64_C(1099511628211);
    h = (h ^ (h >> 33)) * UINT64_C(0xff51afd7ed558ccd);
    h = (h ^ (h >> 33)) * UINT64_C(0xc4ceb9fe1a85ec53);
    return h ^ (h >> 33);
}

int64_t lq_plan_jitter(const char *id, int64_t at_ms, int64_t jitter_ms)
{
    return jitter_ms > 0 ? (int64_t)(hash(id, at_ms) % ((uint64_t)jitter_ms + 1)) : 0;
}

struct walk {
    const char *id;
    const struct lq_schedule_spec *spec;
    const struct lq_calendar *calendar;
    int64_t now_ms;
};

/* The nominal time after at_ms, 0 = none. A calendar gives whole ms, since rules and anchors have no less. */
static int64_t next_of(const struct walk *w, int64_t at_ms)
{
    int64_t next = lq_calendar_next(w->calendar, lb_ns_of_ms(at_ms));
    return next == LQ_NEVER ? 0 : next / LADE_MILLISECOND;
}

static int64_t due_of(const struct walk *w, int64_t at_ms)
{
    return at_ms + lq_plan_jitter(w->id, at_ms, w->spec->jitter_ms);
}

static bool is_due(const struct walk *w, int64_t at_ms)
{
    return at_ms != 0 && due_of(w, at_ms) <= w->now_ms;
}

/* The times that are due. */
struct due {
    int64_t first, latest, next; /* next: the first that is not; 0 = none */
    uint64_t n;                  /* from first to latest */
    uint64_t before;             /* before first, see WALK_MAX */
};

static struct due count_due(const struct walk *w, int64_t first)
{
    struct due d = {.first = first};
    int64_t at = first;
    while (is_due(w, at)) {
        d.latest = at;
        at = next_of(w, at);
        if (++d.n < WALK_MAX || !is_due(w, at))
            continue;
        int64_t half = next_of(w, at + (w->now_ms - at) / 2);
        at = is_due(w, half) ? half : at;
        d.before += d.n;
        d.n = 0;
        d.first = at;
    }
    d.next = at;
    return d;
}

/* Of LADE_MISSED_ALL: the newest, up to missed_max, that are not too old. */
static uint64_t count_within(const struct walk *w, const struct due *d)
{
    uint64_t n = LB_MIN(d->n, (uint64_t)w->spec->missed_max);
    if (w->spec->window_ms == 0)
        return n;
    int64_t at = next_of(w, LB_MAX(w->now_ms - w->spec->window_ms - 1, d->first - 1));
    uint64_t within = 0;
    for (; is_due(w, at) && within < n; at = next_of(w, at))
        within++;
    return within;
}

static bool is_on_time(const struct walk *w, const struct due *d)
{
    return d->n + d->before == 1 && w->now_ms - due_of(w, d->first) <= LATE_MS;
}

/* What the policy makes up for. */
static uint64_t count_made_up(const struct walk *w, const struct due *d)
{
    const struct lq_schedule_spec *s = w->spec;
    if (s->missed == LADE_MISSED_ALL)
        return count_within(w, d);
    bool is_old = s->window_ms > 0 && w->now_ms - d->latest > s->window_ms;
    return s->missed == LADE_MISSED_ONE && !is_old;
}

/* How many of the due times fire. */
static uint64_t choose(const struct walk *w, const struct lq_memo *m, const struct due *d)
{
    const struct lq_schedule_spec *s = w->spec;
    uint64_t n = is_on_time(w, d) ? 1 : count_made_up(w, d);
    if (s->overlap != LADE_OVERLAP_ALLOW)
        n = LB_MIN(n, (uint64_t)1);
    if (s->limit > 0)
        n = LB_MIN(n, (uint64_t)s->limit - LB_MIN(m->fired, (uint64_t)s->limit));
    return n;
}

/* Where it stands with m->next_ms set. */
static struct lq_schedule_end end_of(const struct walk *w, struct lq_memo *m)
{
    bool is_full = w->spec->limit > 0 && m->fired >= (uint64_t)w->spec->limit;
    if (is_full)
        m->next_ms = m->pending_ms = 0;
    if (m->next_ms == 0 && m->pending_ms == 0)
        return (struct lq_schedule_end){LADE_SCHEDULE_ENDED, 0};
    int64_t due = m->next_ms ? due_of(w, m->next_ms) : INT64_MAX;
    if (m->pending_ms != 0)
        due = LB_MIN(due, w->now_ms + AGAIN_MS);
    return (struct lq_schedule_end){LADE_SCHEDULE_ACTIVE, due};
}

static void pass_over(struct lq_memo *m, int64_t first, uint64_t n, int64_t now)
{
    m->missed += n;
    if (n > 0)
        lq_memo_note(m, first, now, LADE_FIRE_MISSED, n);
}

/* The times of the plan, for `fired`. */
static void note_fired(struct lq_plan *p, const struct walk *w)
{
    struct lq_memo *m = &p->fired;
    if (p->n == 0)
        return;
    m->last_ms = p->at_ms[p->n - 1];
    m->fired += p->n;
    lq_memo_job_id(m->last_job, w->id, m->last_ms, m->epoch);
    (void)snprintf(m->last_queue, sizeof(m->last_queue), "%s", w->spec->queue);
    lq_memo_note(m, p->at_ms[0], w->now_ms, p->made_up ? LADE_FIRE_MADE_UP : LADE_FIRE_DONE, p->n);
}

/* The last n of the due times, at most LQ_FIRE_MAX of them now. */
static void list_times(struct lq_plan *p, const struct walk *w, const struct due *d, uint64_t n)
{
    int64_t at = d->first;
    for (uint64_t i = 0; i < d->n - n; i++)
        at = next_of(w, at);
    for (uint64_t i = 0; i < n && p->n < LQ_FIRE_MAX; i++) {
        p->at_ms[p->n++] = at;
        at = next_of(w, at);
    }
    if (p->n < n)
        p->fired.next_ms = at;
}

/* A time waits for the end of the last job. Those that have come meanwhile are passed over when it still has not. */
static void plan_pending(struct lq_plan *p, const struct walk *w, const struct lq_memo *memo)
{
    struct due d = count_due(w, memo->next_ms);
    uint64_t k = d.n + d.before;
    p->n = 1;
    p->asks = true;
    p->at_ms[0] = memo->pending_ms;
    p->fired.pending_ms = 0;
    note_fired(p, w);
    p->held.next_ms = d.next;
    p->held.overlaps += k;
    if (k > 0)
        lq_memo_note(&p->held, memo->next_ms, w->now_ms, LADE_FIRE_OVERLAP, k);
}

static void note_held(struct lq_plan *p, const struct walk *w)
{
    bool waits = w->spec->overlap == LADE_OVERLAP_QUEUE_ONE;
    if (waits)
        p->held.pending_ms = p->at_ms[0];
    else
        p->held.overlaps++;
    lq_memo_note(&p->held, p->at_ms[0], w->now_ms, waits ? LADE_FIRE_QUEUED : LADE_FIRE_OVERLAP, 1);
}

static void plan_due(struct lq_plan *p, const struct walk *w, const struct lq_memo *memo)
{
    struct due d = count_due(w, memo->next_ms);
    uint64_t k = d.n + d.before;
    if (k == 0)
        return;
    uint64_t n = choose(w, memo, &d);
    p->made_up = !is_on_time(w, &d);
    p->n_missed = k - n;
    p->fired.next_ms = p->held.next_ms = d.next;
    pass_over(&p->fired, memo->next_ms, k - n, w->now_ms);
    pass_over(&p->held, memo->next_ms, k - n, w->now_ms);
    list_times(p, w, &d, n);
    note_fired(p, w);
    p->asks = p->n > 0 && w->spec->overlap != LADE_OVERLAP_ALLOW;
    if (p->asks)
        note_held(p, w);
}

void lq_plan_make(struct lq_plan *plan, const char *id, const struct lq_schedule_spec *spec,
                  const struct lq_calendar *calendar, const struct lq_memo *memo, int64_t now_ms)
{
    struct walk w = {id, spec, calendar, now_ms};
    *plan = (struct lq_plan){.fired = *memo, .held = *memo};
    plan->fired.computed_ms = plan->held.computed_ms = now_ms;
    if (memo->pending_ms != 0)
        plan_pending(plan, &w, memo);
    else
        plan_due(plan, &w, memo);
    plan->fired_end = end_of(&w, &plan->fired);
    plan->held_end = end_of(&w, &plan->held);
}

struct lq_schedule_end lq_plan_begin(const char *id, const struct lq_schedule_spec *spec,
                                     const struct lq_calendar *calendar, struct lq_memo *memo,
                                     int64_t now_ms)
{
    struct walk w = {id, spec, calendar, now_ms};
    memo->next_ms = next_of(&w, now_ms);
    memo->computed_ms = now_ms;
    return end_of(&w, memo);
}

struct lq_schedule_end lq_plan_end(const char *id, const struct lq_schedule_spec *spec,
                                   const struct lq_calendar *calendar, struct lq_memo *memo,
                                   int64_t now_ms)
{
    struct walk w = {id, spec, calendar, now_ms};
    return end_of(&w, memo);
}
