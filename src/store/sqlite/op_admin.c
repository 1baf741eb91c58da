/* op_admin.c - what operators do: act on jobs, purge, redrive, pause, forget */
#include <string.h>

#include "base/base.h"
#include "base/err.h"
#include "base/fault.h"
#include "store/sqlite/apart.h"
#include "store/sqlite/dead.h"
#include "store/sqlite/events.h"
#include "store/sqlite/flow.h"
#include "store/sqlite/hall.h"
#include "store/sqlite/keys.h"
#include "store/sqlite/lease.h"
#include "store/sqlite/sqlite_impl.h"

/* act -------------------------------------------------------------------------------------------------------------- */

struct act {
    const char *queue;
    enum lade_job_verb verb;
    const struct lb_slice *id;
    size_t n;
    int *outcome;
};

int ls_sqlite_job_find(struct ls_sqlite_tx *tx, const struct ls_sqlite_queue *q, struct lb_slice id,
                       int64_t *seq, struct ls_sqlite_run *r)
{
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_JOB_SEQ);
    if (st) {
        ls_sqlite_bind(st, 1, q->num);
        ls_sqlite_bind_text(st, 2, id);
    }
    int rc = ls_sqlite_tx_step(tx, st);
    if (rc <= 0)
        return rc < 0 ? rc : LADE_NOT_FOUND;
    *seq = sqlite3_column_int64(st, 0);
    (void)sqlite3_reset(st);
    rc = ls_sqlite_run_of(tx, *seq, r);
    if (rc == LADE_NOT_FOUND)
        return lb_fail(tx->err, LADE_EFORMAT, tx->op, "%s is damaged: a job is in no state",
                       tx->db->path);
    return rc;
}

bool ls_sqlite_state_is_ended(int64_t state)
{
    return state == LADE_STATE_COMPLETED || state == LADE_STATE_DEAD ||
           state == LADE_STATE_CANCELLED;
}

int ls_sqlite_job_revive(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q,
                         const struct ls_sqlite_run *r, int64_t off, int64_t k)
{
    struct ls_sqlite_run part = ls_sqlite_run_part(r, off, k);
    int rc = ls_sqlite_run_cut(tx, q, r, off, k);
    if (rc == 0 && ls_sqlite_state_is_ended(r->state))
        rc = ls_sqlite_jobs_renew(tx, part.job, k);
    if (rc == 0)
        rc = ls_sqlite_run_return(tx, q, r, &part);
    return rc < 0 ? rc : ls_sqlite_run_add(tx, q, &part);
}

int ls_sqlite_job_stop(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q,
                       const struct ls_sqlite_run *r, int64_t off, bool kill, struct lb_slice id)
{
    struct ls_sqlite_run part = ls_sqlite_run_part(r, off, 1);
    if (ls_sqlite_state_is_ended(r->state) || (r->flags & (LS_SQLITE_KILL | LS_SQLITE_CANCEL)))
        return LADE_WRONG_STATE;
    int rc = ls_sqlite_run_cut(tx, q, r, off, 1);
    if (rc < 0)
        return rc;
    if (r->state == LADE_STATE_ACTIVE) {
        part.flags |= kill ? LS_SQLITE_KILL : LS_SQLITE_CANCEL;
        rc = ls_sqlite_stop_add(tx, q, &part, id);
    } else if (kill) {
        rc = ls_sqlite_death_add(tx, q, part.job, LQ_REASON_KILLED, NULL);
        if (rc == 0)
            rc = ls_sqlite_run_to_ended(tx, q, &part, LADE_STATE_DEAD, LQ_REASON_KILLED);
    } else {
        rc = ls_sqlite_run_to_ended(tx, q, &part, LADE_STATE_CANCELLED, LQ_REASON_NONE);
    }
    return rc < 0 ? rc : ls_sqlite_run_add(tx, q, &part);
}

static int remove_job(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q,
                      const struct ls_sqlite_run *r, int64_t off, struct lb_slice id)
{
    struct ls_sqlite_run part = ls_sqlite_run_part(r, off, 1);
    int rc = ls_sqlite_run_cut(tx, q, r, off, 1);
    if (rc == 0)
        rc = ls_sqlite_jobs_del(tx, part.job, 1);
    if (rc < 0 || r->state != LADE_STATE_ACTIVE)
        return rc;
    if (r->flags & (LS_SQLITE_KILL | LS_SQLITE_CANCEL))
        rc = ls_sqlite_stop_del(tx, q, &part); /* told of once, as removed */
    return rc < 0 ? rc : ls_sqlite_stop_add(tx, q, &part, id);
}

int ls_sqlite_act_on(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q, enum lade_job_verb verb,
                     struct lb_slice id, struct ls_sqlite_flows *flows)
{
    int64_t seq = 0;
    struct ls_sqlite_run r;
    int rc = ls_sqlite_job_find(tx, q, id, &seq, &r);
    if (rc != 0)
        return rc;
    int64_t off = seq - r.job;
    bool ended = ls_sqlite_state_is_ended(r.state);
    switch (verb) {
    case LADE_JOB_RETRY:
        if (r.state == LADE_STATE_READY || r.state == LADE_STATE_ACTIVE)
            return LADE_WRONG_STATE;
        rc = ls_sqlite_job_revive(tx, q, &r, off, 1);
        return rc == 0 && ended ? ls_sqlite_flow_revived(flows, id) : rc;
    case LADE_JOB_KILL:
    case LADE_JOB_CANCEL:
        rc = ls_sqlite_job_stop(tx, q, &r, off, verb == LADE_JOB_KILL, id);
        if (rc != 0 || r.state == LADE_STATE_ACTIVE)
            return rc;
        return ls_sqlite_flow_ended(flows, id,
                                    verb == LADE_JOB_KILL ? LADE_STEP_DEAD : LADE_STEP_CANCELLED,
                                    (struct lb_slice){0});
    case LADE_JOB_REMOVE:
        break;
    }
    rc = remove_job(tx, q, &r, off, id);
    if (rc == 0)
        rc = ls_sqlite_apart_del(tx, q->num, id);
    return rc < 0 ? rc : ls_sqlite_flow_ended(flows, id, LADE_STEP_CANCELLED, (struct lb_slice){0});
}

/* Of a job whose record is gone its result may be there yet: 0, or LADE_NOT_FOUND when there is none either. */
static int remove_result(struct ls_sqlite_tx *tx, const struct ls_sqlite_queue *q,
                         struct lb_slice id)
{
    struct lb_mut result = {0};
    int rc = ls_sqlite_apart_get(tx, q->num, id, 0, &tx->arena, &result);
    if (rc < 0 || !result.p)
        return rc < 0 ? rc : LADE_NOT_FOUND;
    return ls_sqlite_apart_del(tx, q->num, id);
}

static int run_act(struct ls_sqlite_tx *tx, void *arg)
{
    const struct act *a = arg;
    struct ls_sqlite_queue *q;
    struct ls_sqlite_flows flows;
    int first = 0;
    ls_sqlite_flows_init(&flows, tx);
    int rc = ls_sqlite_tx_queue(tx, a->queue, &q);
    for (size_t i = 0; i < a->n && rc >= 0; i++) {
        rc = q ? ls_sqlite_act_on(tx, q, a->verb, a->id[i], &flows) : LADE_NOT_FOUND;
        if (q && rc == LADE_NOT_FOUND && a->verb == LADE_JOB_REMOVE)
            rc = remove_result(tx, q, a->id[i]);
        a->outcome[i] = rc;
        if (first == 0)
            first = rc;
        LB_FAULT("sqlite.act.item");
    }
    if (rc >= 0)
        rc = ls_sqlite_flows_flush(&flows);
    return rc < 0 ? rc : first;
}

int ls_sqlite_act(struct lq_store *s, const char *queue, enum lade_job_verb verb,
                  const struct lb_slice *id, size_t n, int *outcome, lade_err *err)
{
    struct act a = {.queue = queue, .verb = verb, .id = id, .n = n};
    a.outcome = outcome;
    struct ls_sqlite_op op = {.name = "act",
                              .point = "sqlite.act.commit",
                              .run = run_act,
                              .arg = &a,
                              .jobs = n,
                              .frees = true};
    return n == 0 ? 0 : ls_sqlite_write(ls_sqlite_of(s), &op, err);
}

/* purge, redrive --------------------------------------------------------------------------------------------------- */

struct sweep {
    const char *queue;
    enum lade_state state;
    size_t max;
    size_t n;
};

static int run_purge(struct ls_sqlite_tx *tx, void *arg)
{
    struct sweep *w = arg;
    struct ls_sqlite_queue *q;
    w->n = 0;
    int rc = ls_sqlite_tx_queue(tx, w->queue, &q);
    if (rc < 0 || !q)
        return rc;
    struct ls_sqlite_flows flows;
    ls_sqlite_flows_init(&flows, tx);
    while (w->n < w->max && rc == 0) {
        struct ls_sqlite_run r;
        rc = ls_sqlite_run_first(tx, q, w->state, &r);
        if (rc == LADE_NOT_FOUND)
            break;
        int64_t k = rc == 0 ? LB_MIN(r.n, (int64_t)(w->max - w->n)) : 0;
        if (rc == 0)
            rc = ls_sqlite_flow_ended_all(&flows, r.job, k);
        if (rc == 0)
            rc = ls_sqlite_jobs_drop(tx, q, w->state, 0, INT64_MAX, k, &w->n);
    }
    if (rc >= 0)
        rc = ls_sqlite_flows_flush(&flows);
    return rc < 0 ? rc : q->count[w->state] > 0 ? LADE_MORE : 0;
}

int ls_sqlite_purge(struct lq_store *s, const char *queue, enum lade_state state, size_t max,
                    size_t *n, lade_err *err)
{
    if (state == LADE_STATE_ACTIVE)
        return lb_fail(err, LADE_EINVAL, "purge", "active jobs cannot be purged; cancel them");
    struct sweep w = {.queue = queue, .state = state, .max = max};
    struct ls_sqlite_op op = {.name = "purge",
                              .point = "sqlite.purge.commit",
                              .run = run_purge,
                              .arg = &w,
                              .jobs = max,
                              .frees = true};
    int rc = ls_sqlite_write(ls_sqlite_of(s), &op, err);
    if (rc >= 0)
        *n = w.n;
    return rc;
}

static int run_redrive(struct ls_sqlite_tx *tx, void *arg)
{
    struct sweep *w = arg;
    struct ls_sqlite_queue *q;
    w->n = 0;
    int rc = ls_sqlite_tx_queue(tx, w->queue, &q);
    if (rc < 0 || !q)
        return rc;
    struct ls_sqlite_flows flows;
    ls_sqlite_flows_init(&flows, tx);
    while (w->n < w->max && rc == 0) {
        struct ls_sqlite_run r;
        rc = ls_sqlite_run_first(tx, q, LADE_STATE_DEAD, &r);
        if (rc == LADE_NOT_FOUND)
            break;
        int64_t k = rc == 0 ? LB_MIN(r.n, (int64_t)(w->max - w->n)) : 0;
        if (k > 0 && r.key == LS_SQLITE_COMPANY)
            k = 1; /* each gets its key */
        if (rc == 0)
            rc = ls_sqlite_flow_revived_all(&flows, r.job, k);
        if (rc == 0)
            rc = ls_sqlite_job_revive(tx, q, &r, 0, k);
        w->n += (size_t)k;
    }
    if (rc >= 0)
        rc = ls_sqlite_flows_flush(&flows);
    return rc < 0 ? rc : q->count[LADE_STATE_DEAD] > 0 ? LADE_MORE : 0;
}

int ls_sqlite_redrive(struct lq_store *s, const char *queue, size_t max, size_t *n, lade_err *err)
{
    struct sweep w = {.queue = queue, .max = max};
    struct ls_sqlite_op op = {.name = "redrive",
                              .point = "sqlite.redrive.commit",
                              .run = run_redrive,
                              .arg = &w,
                              .jobs = max};
    int rc = ls_sqlite_write(ls_sqlite_of(s), &op, err);
    if (rc >= 0)
        *n = w.n;
    return rc;
}

/* pause, forget ---------------------------------------------------------------------------------------------------- */

struct pause {
    const char *queue;
    bool paused;
};

static int run_pause(struct ls_sqlite_tx *tx, void *arg)
{
    const struct pause *p = arg;
    struct ls_sqlite_queue *q;
    int rc = ls_sqlite_tx_queue_make(tx, p->queue, &q);
    if (rc < 0)
        return rc;
    if (q->paused != p->paused && q->events > 0)
        ls_sqlite_event(
            tx, q, &(struct lq_ev){.type = p->paused ? LADE_EVENT_PAUSED : LADE_EVENT_RESUMED});
    q->paused = p->paused;
    q->dirty = q->ring_all =
        true; /* each idle worker looks anew, also for what is due there next */
    return 0;
}

int ls_sqlite_pause(struct lq_store *s, const char *queue, bool paused, lade_err *err)
{
    struct pause p = {.queue = queue, .paused = paused};
    struct ls_sqlite_op op = {
        .name = "pause", .point = "sqlite.pause.commit", .run = run_pause, .arg = &p, .jobs = 1};
    return ls_sqlite_write(ls_sqlite_of(s), &op, err);
}

static int del_queue(struct ls_sqlite_tx *tx, enum ls_sqlite_sql which, int64_t num)
{
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, which);
    if (st)
        ls_sqlite_bind(st, 1, num);
    return ls_sqlite_tx_do(tx, st);
}

static int run_forget(struct ls_sqlite_tx *tx, void *arg)
{
    struct ls_sqlite_queue *q;
    int rc = ls_sqlite_tx_queue(tx, *(const char **)arg, &q);
    if (rc < 0 || !q)
        return rc < 0 ? rc : LADE_NOT_FOUND;
    for (size_t i = 0; i < LADE_N_STATES; i++) {
        if (q->count[i] > 0)
            return LADE_WRONG_STATE;
    }
    rc = q->gated ? ls_sqlite_keys_drop(tx, q) : 0;
    if (rc == 0)
        rc = del_queue(tx, LS_SQLITE_LOCK_DEL_QUEUE, q->num);
    if (rc == 0)
        rc = ls_sqlite_apart_drop(tx, q->num);
    if (rc == 0 && q->events > 0)
        rc = ls_sqlite_events_drop(tx, q);
    if (rc == 0)
        rc = del_queue(tx, LS_SQLITE_QUEUE_DEL, q->num);
    if (rc == 0)
        ls_sqlite_tx_queue_drop(tx, q);
    return rc;
}

int ls_sqlite_forget(struct lq_store *s, const char *queue, lade_err *err)
{
    struct ls_sqlite_op op = {.name = "forget",
                              .point = "sqlite.forget.commit",
                              .run = run_forget,
                              .arg = &queue,
                              .jobs = 1,
                              .frees = true};
    return ls_sqlite_write(ls_sqlite_of(s), &op, err);
}
