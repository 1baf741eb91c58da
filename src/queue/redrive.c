/*
 * redrive.c - bringing back many dead jobs, step by step
 *
 * What a run is about are the deaths before one moment, `before`. A job that was moved is none of them any more, also when it dies
 * again, so the dead themselves say how far a run has come: whoever begins again with the same filter and the same moment goes on
 * where the last one stopped, and two at once share the work. Nothing else needs to be stored.
 */
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "queue/client.h"
#include "queue/names.h"
#include "queue/views.h"

#define PAGE        100 /* jobs a step looks at: with their payloads, so not too many */
#define LOOK_AGAIN  (200 * LADE_MILLISECOND)
#define CANARY_WAIT (5 * LADE_MINUTE)

struct canary {
    char id[LADE_ID_MAX + 1];
    char class_id[LADE_DEAD_CLASS_MAX + 1];
    bool passed;
};

struct lade_redrive {
    lade *q;
    char queue[LADE_NAME_MAX + 1];
    char class_id[LADE_DEAD_CLASS_MAX + 1], kind[LADE_NAME_MAX + 1], reason[32];
    lade_redrive_plan plan; /* its strings are the arrays above */
    lade_cursor cursor;
    lade_redrive_report report;
    int64_t since;    /* ns: what ends from then on is new, the start's own millisecond left out */
    int64_t next_at;  /* not before, by the rate */
    int64_t judge_by; /* of the canaries */
    size_t n_canaries;
    struct canary canary[LADE_DEAD_CANARY_MAX];
};

static int check_plan(const lade_redrive_plan *p, lade_err *err)
{
    int rc = lq_queue_check(p->queue, "redrive", err);
    if (rc == 0)
        rc = lq_dead_filter_check(&p->filter, "redrive", err);
    if (rc < 0)
        return rc;
    if ((unsigned)p->verb > LADE_DEAD_REMOVE)
        return lb_fail(err, LADE_EINVAL, "redrive", "verb %d is unknown", (int)p->verb);
    if (p->rate < 0 || p->rate > 1000000)
        return lb_fail(err, LADE_EINVAL, "redrive",
                       "rate %lld is not within 1 to 1000000 jobs a second (0 = no bound)",
                       (long long)p->rate);
    if (p->canary > LADE_DEAD_CANARY_MAX)
        return lb_fail(err, LADE_EINVAL, "redrive", "canary %zu is over %d jobs", p->canary,
                       LADE_DEAD_CANARY_MAX);
    if (p->canary_wait < 0 || (p->canary_wait > 0 && p->canary_wait < LADE_MILLISECOND))
        return lb_fail(err, LADE_EINVAL, "redrive", "canary_wait is below 1 ms");
    if (p->stop_on > 1000)
        return lb_fail(err, LADE_EINVAL, "redrive", "stop_on %llu is not within 1 to 1000",
                       (unsigned long long)p->stop_on);
    if (p->verb == LADE_DEAD_REMOVE && (p->canary > 0 || p->stop_on > 0))
        return lb_fail(err, LADE_EINVAL, "redrive",
                       "canary and stop_on are for jobs that run again, not for removing");
    return 0;
}

static const char *keep_text(char *to, size_t size, const char *from)
{
    if (!from)
        return NULL;
    (void)snprintf(to, size, "%s", from);
    return to;
}

int lade_redrive_open(lade_redrive **out, lade *q, const lade_redrive_plan *plan, lade_err *err)
{
    LQ_REFUSE_NULL(out, "redrive");
    LQ_REFUSE_NULL(q, "redrive");
    LQ_REFUSE_NULL(plan, "redrive");
    int64_t now = 0;
    int rc = check_plan(plan, err);
    if (rc == 0 && !q->store->ops->change)
        rc = lb_fail(
            err, LADE_EUNSUPPORTED, "redrive",
            "the %s store knows no redrive or purge by filter, rate or canary, only of all; "
            "use a sqlite: or redis:// store for it",
            q->store->ops->name);
    if (rc == 0)
        rc = lade_now(q, &now, err);
    if (rc < 0)
        return rc;
    lade_redrive *r = lb_calloc(1, sizeof(*r));
    if (!r)
        return lb_fail_nomem(err, "redrive");
    r->q = q;
    r->plan = *plan;
    r->plan.queue = keep_text(r->queue, sizeof(r->queue), plan->queue);
    r->plan.filter.class_id = keep_text(r->class_id, sizeof(r->class_id), plan->filter.class_id);
    r->plan.filter.kind = keep_text(r->kind, sizeof(r->kind), plan->filter.kind);
    r->plan.filter.reason = keep_text(r->reason, sizeof(r->reason), plan->filter.reason);
    r->since = (now / LADE_MILLISECOND + 1) * LADE_MILLISECOND;
    if (r->plan.filter.before == 0)
        r->plan.filter.before = now + LADE_MILLISECOND;
    r->report.before = r->plan.filter.before;
    r->report.phase = r->plan.canary > 0 ? LADE_REDRIVE_CANARY : LADE_REDRIVE_MOVING;
    *out = r;
    return 0;
}

void lade_redrive_close(lade_redrive *r)
{
    lb_free(r);
}

/* The class of what a job died, or failed, of last. False when no attempt has failed since `since`. */
static bool class_since(const lade_job_view *v, int64_t since, char id[LADE_DEAD_CLASS_MAX + 1])
{
    if (v->n_history == 0)
        return false;
    const lade_attempt *last = &v->history[v->n_history - 1];
    if (last->ended_at < since)
        return false;
    lade_dead_class_of(v->kind, last->error, id);
    return true;
}

static void note_canaries(lade_redrive *r, lade_job_view *const *v, const int *outcomes, size_t n)
{
    for (size_t i = 0; i < n && r->n_canaries < LADE_DEAD_CANARY_MAX; i++) {
        struct canary *c = &r->canary[r->n_canaries];
        if (outcomes[i] != 0)
            continue;
        (void)snprintf(c->id, sizeof(c->id), "%s", v[i]->id);
        if (!class_since(v[i], 0, c->class_id))
            c->class_id[0] = 0;
        r->n_canaries++;
    }
}

/* Looks at a page and moves what matches of it; at most `most` jobs. */
static int move_page(lade_redrive *r, size_t most, lade_err *err)
{
    lade_job_view *v[PAGE];
    int outcomes[PAGE] = {0};
    size_t n = 0;
    lade_cursor next = r->cursor;
    int rc = lade_dead_list(r->q, r->queue, &r->plan.filter, &next, LB_MIN(most, (size_t)PAGE), v,
                            &n, err);
    if (rc < 0)
        return rc;
    if (n > 0)
        rc = lade_dead_move(r->q, r->plan.verb, (const lade_job_view *const *)v, n, outcomes, err);
    if (rc >= 0) {
        r->cursor = next;
        r->report.matched += n;
        for (size_t i = 0; i < n; i++)
            r->report.moved += outcomes[i] == 0;
        r->report.lost = r->report.matched - r->report.moved;
        if (r->report.phase == LADE_REDRIVE_CANARY)
            note_canaries(r, v, outcomes, n);
    }
    for (size_t i = 0; i < n; i++)
        lade_job_view_free(v[i]);
    return LB_MIN(rc, 0);
}

static uint64_t left_of_limit(const lade_redrive *r)
{
    if (r->plan.limit == 0)
        return UINT64_MAX;
    return r->plan.limit - LB_MIN(r->plan.limit, r->report.moved);
}

/* canaries -------------------------------------------------------------------------------------------------------- */

static int end_with(lade_redrive *r, enum lade_redrive_phase phase)
{
    r->report.phase = phase;
    r->report.wait = 0;
    return 0;
}

static int send_canaries(lade_redrive *r, int64_t now, lade_err *err)
{
    uint64_t most = LB_MIN(r->plan.canary - r->n_canaries, left_of_limit(r));
    int rc = most > 0 ? move_page(r, most, err) : 0;
    if (rc < 0)
        return rc;
    if (r->n_canaries == r->plan.canary || r->cursor.done || left_of_limit(r) == 0) {
        r->report.phase = LADE_REDRIVE_WATCHING;
        r->judge_by = now + (r->plan.canary_wait > 0 ? r->plan.canary_wait : CANARY_WAIT);
    }
    return LADE_MORE;
}

/* 0 not yet, 1 it is well, -1 it failed again of the same; or a failure of the store below that. */
static int judge(lade_redrive *r, const struct canary *c, lade_err *err)
{
    char class_id[LADE_DEAD_CLASS_MAX + 1];
    lade_job_view *v = NULL;
    int rc = lade_job_get(r->q, r->queue, c->id, &v, err);
    if (rc == LADE_NOT_FOUND)
        return 1; /* completed and not kept, or removed */
    if (rc < 0)
        return rc;
    /* An operator ended it: that says nothing of what it was tried for, and there is no more to wait for. */
    if (v->state == LADE_STATE_DEAD && v->reason &&
        strcmp(v->reason, lq_reason_word(LQ_REASON_KILLED)) == 0) {
        lade_job_view_free(v);
        return 1;
    }
    /* It left the dead: when it is there it has died again, in whatever millisecond. */
    bool failed = class_since(v, v->state == LADE_STATE_DEAD ? 0 : r->since, class_id);
    bool same = failed && strcmp(class_id, c->class_id) == 0;
    bool over = failed || v->state == LADE_STATE_COMPLETED || v->state == LADE_STATE_CANCELLED;
    lade_job_view_free(v);
    return same ? -1 : over;
}

static int watch_canaries(lade_redrive *r, int64_t now, lade_err *err)
{
    size_t open = 0;
    for (size_t i = 0; i < r->n_canaries; i++) {
        struct canary *c = &r->canary[i];
        int verdict = c->passed ? 1 : judge(r, c, err);
        if (verdict < -1)
            return verdict;
        if (verdict < 0) {
            r->report.died_again++;
            return end_with(r, LADE_REDRIVE_CANARY_FAILED);
        }
        c->passed = verdict > 0;
        open += !c->passed;
    }
    if (open == 0) {
        r->report.phase = LADE_REDRIVE_MOVING;
        return LADE_MORE;
    }
    if (now >= r->judge_by)
        return end_with(r, LADE_REDRIVE_CANARY_OPEN);
    r->report.wait = LOOK_AGAIN;
    return LADE_MORE;
}

/* stop_on --------------------------------------------------------------------------------------------------------- */

/* Deaths since the run began, as far as stop_on of them matter. */
static int count_deaths(lade_redrive *r, uint64_t *deaths, lade_err *err)
{
    lade_dead_class *c = NULL;
    size_t n = 0;
    int rc = lade_dead_classes(r->q, r->queue, &c, &n, err);
    *deaths = 0;
    for (size_t i = 0; i < n && rc == 0 && *deaths < r->plan.stop_on; i++) {
        lade_dead_filter f = {.class_id = c[i].id, .from = r->since};
        bool ours = !r->plan.filter.class_id || strcmp(c[i].id, r->plan.filter.class_id) == 0;
        lade_cursor cursor = {0};
        while (ours && c[i].last_seen >= r->since && rc == 0 && !cursor.done &&
               *deaths < r->plan.stop_on) {
            lade_job_view *v[PAGE];
            size_t k = 0;
            rc = lade_dead_list(r->q, r->queue, &f, &cursor, PAGE, v, &k, err);
            for (size_t j = 0; j < k; j++)
                lade_job_view_free(v[j]);
            *deaths += k;
            rc = LB_MIN(rc, 0);
        }
    }
    lade_free(c);
    return rc;
}

/* ------------------------------------------------------------------------------------------------------------------ */

static int move_on(lade_redrive *r, int64_t now, lade_err *err)
{
    if (now < r->next_at) {
        r->report.wait = r->next_at - now;
        return LADE_MORE;
    }
    if (r->plan.stop_on > 0) {
        int rc = count_deaths(r, &r->report.died_again, err);
        if (rc < 0)
            return rc;
        if (r->report.died_again >= r->plan.stop_on)
            return end_with(r, LADE_REDRIVE_STOPPED);
    }
    uint64_t most = LB_MIN(left_of_limit(r), (uint64_t)PAGE);
    if (r->plan.rate > 0)
        most = LB_MIN(most, (uint64_t)LB_MAX(r->plan.rate / 5, 1)); /* in fifths of a second */
    uint64_t moved = r->report.moved;
    int rc = most > 0 && !r->cursor.done ? move_page(r, most, err) : 0;
    if (rc < 0)
        return rc;
    if (r->cursor.done || left_of_limit(r) == 0)
        return end_with(r, LADE_REDRIVE_DONE);
    if (r->plan.rate > 0) {
        moved = r->report.moved - moved;
        r->next_at = LB_MAX(r->next_at, now) + (int64_t)moved * LADE_SECOND / r->plan.rate;
        r->report.wait = LB_MAX(r->next_at - now, 0);
    }
    return LADE_MORE;
}

int lade_redrive_step(lade_redrive *r, lade_redrive_report *report, lade_err *err)
{
    LQ_REFUSE_NULL(r, "redrive");
    int64_t now = 0;
    int rc = lade_now(r->q, &now, err);
    if (rc < 0)
        return rc;
    r->report.wait = 0;
    switch (r->report.phase) {
    case LADE_REDRIVE_CANARY:
        rc = send_canaries(r, now, err);
        break;
    case LADE_REDRIVE_WATCHING:
        rc = watch_canaries(r, now, err);
        break;
    case LADE_REDRIVE_MOVING:
        rc = move_on(r, now, err);
        break;
    case LADE_REDRIVE_DONE:
    case LADE_REDRIVE_CANARY_FAILED:
    case LADE_REDRIVE_CANARY_OPEN:
    case LADE_REDRIVE_STOPPED:
        break;
    }
    if (rc >= 0 && report)
        *report = r->report;
    return rc;
}
