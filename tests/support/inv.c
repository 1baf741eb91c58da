#include "support/inv.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"

LADE_PRINTF(2, 3)

static void report(struct ts_inv *out, const char *format, ...)
{
    char text[256];
    va_list ap;
    va_start(ap, format);
    (void)vsnprintf(text, sizeof(text), format, ap);
    va_end(ap);
    if (out->n_broken < TS_INV_BROKEN_MAX) {
        memcpy(out->broken[out->n_broken], text, sizeof(text));
        (void)fprintf(stderr, "INV: %s\n", text);
    }
    out->n_broken++;
}

/*
 * Did something keep the process of run a from settling it before run b began? It was killed (the kill is written a
 * moment before it happens, or when a death is noticed: its time says nothing), or stood still between the two starts.
 * Of two runs the one with the older fence may start later: its process was stopped with the job in its hands.
 */
static bool is_stop_between(const struct ts_ledger *l, const struct ts_run *a,
                            const struct ts_run *b)
{
    int64_t from = LB_MIN(a->started, b->started), to = LB_MAX(a->started, b->started);
    bool still = false;
    for (size_t i = 0; i < l->n_events; i++) {
        const struct ts_event *e = &l->event[i];
        if (e->pid != a->pid)
            continue;
        if (e->what == 'K')
            return true;
        if (e->what == 'P' && e->at < to)
            still = true;
        else if (e->what == 'C' && e->at < from)
            still = false;
    }
    return still;
}

/* The worker itself noticed, after run a began, that its lease was over: a machine too busy to renew in time. */
static bool is_loss_logged(const struct ts_ledger *l, const struct ts_run *a)
{
    static const char *const says[] = {"were given to others", "has held for the whole lease",
                                       "has forgotten", "the lease was lost"};
    for (size_t i = 0; i < l->n_log; i++) {
        if (l->log[i].pid != a->pid || l->log[i].at < a->started)
            continue;
        for (size_t k = 0; k < LB_ARRAY_LEN(says); k++) {
            if (strstr(l->log[i].text, says[k]))
                return true;
        }
    }
    return false;
}

static bool is_explained(const struct ts_ledger *l, const struct ts_run *a, const struct ts_run *b)
{
    return is_stop_between(l, a, b) || is_loss_logged(l, a);
}

static void check_run(const struct ts_ledger *l, const struct ts_run *before,
                      const struct ts_run *r, struct ts_inv *out)
{
    if (r->fence <= before->fence)
        report(out, "%s: run %d has fence %llu after %llu", r->id, r->attempt,
               (unsigned long long)r->fence, (unsigned long long)before->fence);
    if (before->outcome == LADE_RETRY || before->outcome == LADE_SNOOZE)
        return;
    out->duplicates++;
    if (is_explained(l, before, r))
        out->explained++;
    else
        report(out, "%s: ran again (fence %llu, process %d) and nothing had happened to process %d",
               r->id, (unsigned long long)r->fence, (int)r->pid, (int)before->pid);
}

static void check_runs(const struct ts_ledger *l, struct ts_inv *out)
{
    out->runs = l->n_runs;
    for (size_t i = 0; i < l->n_runs; i++) {
        const struct ts_run *r = &l->run[i];
        out->ends += r->ended != 0;
        if (i > 0 && strcmp(l->run[i - 1].id, r->id) == 0)
            check_run(l, r - 1, r, out);
    }
}

static bool ended_with(const struct ts_ledger *l, const char *id, lade_outcome outcome)
{
    size_t n;
    const struct ts_run *r = ts_ledger_runs(l, id, &n);
    for (size_t i = 0; i < n; i++) {
        if (r[i].outcome == (int)outcome)
            return true;
    }
    return false;
}

static void check_found(const struct ts_ledger *l, const lade_job_view *v, enum ts_inv_when when,
                        struct ts_inv *out)
{
    bool ran = ts_ledger_ends(l, v->id) > 0, acted = ts_ledger_was_acted_on(l, v->id);
    if (v->state == LADE_STATE_COMPLETED) {
        out->completed++;
        if (!ended_with(l, v->id, LADE_OK))
            report(out, "%s: completed, but no handler said so", v->id);
    } else if (v->state == LADE_STATE_DEAD) {
        out->dead++;
        if (!ran && !acted && strcmp(v->reason, "quarantined") != 0)
            report(out, "%s: dead (%s) without a run", v->id, v->reason);
    } else if (v->state == LADE_STATE_CANCELLED) {
        out->cancelled++;
        if (!ended_with(l, v->id, LADE_CANCEL) && !acted)
            report(out, "%s: cancelled by nobody", v->id);
    } else {
        out->waiting++;
        if (when == TS_INV_QUIET)
            report(out, "%s: still %s", v->id, lade_state_name(v->state));
    }
}

static void check_jobs(const struct ts_ledger *l, lade *q, enum ts_inv_when when,
                       struct ts_inv *out)
{
    out->jobs = l->n_acked;
    for (size_t i = 0; i < l->n_acked; i++) {
        const char *id = l->acked[i].text;
        lade_job_view *v;
        lade_err err;
        int rc = lade_job_get(q, NULL, id, &v, &err);
        if (rc < 0) {
            report(out, "%s: cannot be read: %s", id, err.text);
        } else if (rc == LADE_NOT_FOUND) {
            bool ran = ts_ledger_ends(l, id) > 0;
            out->lost += !ran && !ts_ledger_was_acted_on(l, id);
            if (!ran && !ts_ledger_was_acted_on(l, id))
                report(out, "%s: acknowledged, never run, and gone", id);
        } else {
            check_found(l, v, when, out);
            lade_job_view_free(v);
        }
    }
}

/* Jobs enqueued = jobs that ended + jobs that are there; only sure while no operator moved jobs back. */
static void check_balance(const struct ts_ledger *l, const lade_queue_info *q, struct ts_inv *out)
{
    uint64_t there = q->count[LADE_STATE_SCHEDULED] + q->count[LADE_STATE_READY] +
                     q->count[LADE_STATE_ACTIVE] + q->count[LADE_STATE_RETRYING];
    uint64_t ended = q->total_completed + q->total_dead + q->count[LADE_STATE_CANCELLED];
    size_t discarded = 0;
    for (size_t i = 0; i < l->n_runs; i++)
        discarded += l->run[i].outcome == LADE_DISCARD;
    if (l->n_acts > 0)
        return;
    if (there + ended > q->total_enqueued || there + ended + discarded < q->total_enqueued)
        report(out, "queue %s: %llu enqueued, but %llu ended, %llu there and %zu discarded",
               q->name, (unsigned long long)q->total_enqueued, (unsigned long long)ended,
               (unsigned long long)there, discarded);
}

static void check_store(const struct ts_ledger *l, lade *q, struct ts_inv *out)
{
    lade_err err;
    lade_finding *finding;
    lade_queue_info *info;
    size_t n;
    if (lade_check(q, &finding, &n, &err) < 0) {
        report(out, "check: %s", err.text);
        return;
    }
    for (size_t i = 0; i < n; i++)
        report(out, "check: %s: %s", finding[i].queue, finding[i].text);
    lade_free(finding);
    if (lade_queue_list(q, &info, &n, &err) < 0) {
        report(out, "queue list: %s", err.text);
        return;
    }
    for (size_t i = 0; i < n; i++)
        check_balance(l, &info[i], out);
    lade_free(info);
}

bool ts_inv_check(const char *ledger_dir, lade *q, enum ts_inv_when when, struct ts_inv *out)
{
    struct ts_ledger l;
    struct ts_inv own;
    if (!out)
        out = &own;
    *out = (struct ts_inv){0};
    if (!ts_ledger_read(&l, ledger_dir)) {
        report(out, "the ledger cannot be read");
        return false;
    }
    out->stale = ts_ledger_sum(&l, "lost");
    check_runs(&l, out);
    check_jobs(&l, q, when, out);
    check_store(&l, q, out);
    ts_ledger_free(&l);
    return out->n_broken == 0;
}
