/*
 * op_check.c - every invariant of the file, on a connection of its own
 *
 * Jobs and runs are walked side by side in the order of their numbers: each job must be in exactly one run, of its own
 * queue, and each run must have all of its jobs. The rest are queries that return what should not be.
 */
#include <stdarg.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/err.h"
#include "store/sqlite/checkpoint.h"
#include "store/sqlite/flow.h"
#include "store/sqlite/hall.h"
#include "store/sqlite/keys.h"
#include "store/sqlite/runs.h"
#include "store/sqlite/sqlite_impl.h"

#define FINDINGS_MAX 1000 /* of one check; the rest of the file is then not looked at */

struct check {
    struct ls_sqlite_tx tx;
    lq_finding_fn report;
    void *ctx;
    size_t n;
    int64_t count[LADE_N_STATES]; /* of the queue being summed */
};

static void LADE_PRINTF(3, 4)
    find_fault(struct check *c, const char *queue, const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (c->n++ < FINDINGS_MAX)
        c->report(c->ctx, queue, text);
}

static const char *name_of(struct check *c, int64_t queue)
{
    struct ls_sqlite_queue *q;
    lade_err *err = c->tx.err;
    lade_err missing;
    c->tx.err = &missing;
    int rc = ls_sqlite_tx_queue_by_num(&c->tx, queue, &q);
    c->tx.err = err;
    return rc == 0 && q ? q->name : "?";
}

static int check_pages(struct check *c)
{
    sqlite3_stmt *st = NULL;
    int rc = 0;
    if (sqlite3_prepare_v2(c->tx.db->h, "PRAGMA quick_check(10)", -1, &st, NULL) != SQLITE_OK)
        return ls_sqlite_tx_fail(&c->tx);
    while (rc == 0 && sqlite3_step(st) == SQLITE_ROW) {
        const char *text = (const char *)sqlite3_column_text(st, 0);
        if (text && strcmp(text, "ok") != 0)
            find_fault(c, "", "damaged file: %s", text);
    }
    if (sqlite3_finalize(st) != SQLITE_OK)
        rc = ls_sqlite_tx_fail(&c->tx);
    return rc;
}

static void check_run(struct check *c, const struct ls_sqlite_run *before,
                      const struct ls_sqlite_run *r)
{
    if (r->n <= 0 || r->state < 0 || r->state >= LADE_N_STATES)
        find_fault(c, name_of(c, r->queue), "run at job %lld has n %lld and state %lld",
                   (long long)r->job, (long long)r->n, (long long)r->state);
    if (before->n > 0 && before->job + before->n > r->job)
        find_fault(c, name_of(c, r->queue), "job %lld is in two runs", (long long)r->job);
    if ((r->state == LADE_STATE_ACTIVE) != (r->worker != 0))
        find_fault(c, name_of(c, r->queue), "job %lld: owner and state do not fit",
                   (long long)r->job);
    if (r->state == LADE_STATE_READY && !ls_sqlite_hall_fits(r))
        find_fault(c, name_of(c, r->queue), "job %lld waits in a foreign level", (long long)r->job);
}

/* A job of the walk against the run that should have it. */
static void check_job(struct check *c, int64_t seq, int64_t queue, const struct ls_sqlite_run *r)
{
    if (seq >= r->job + r->n || seq < r->job)
        find_fault(c, name_of(c, queue), "job %lld is in no state", (long long)seq);
    else if (queue != r->queue)
        find_fault(c, name_of(c, queue), "job %lld is in the order of another queue",
                   (long long)seq);
}

static int check_jobs(struct check *c)
{
    sqlite3_stmt *jobs = ls_sqlite_tx_stmt(&c->tx, LS_SQLITE_JOB_ALL);
    sqlite3_stmt *runs = ls_sqlite_tx_stmt(&c->tx, LS_SQLITE_RUN_ALL);
    struct ls_sqlite_run before = {0}, r = {0};
    int64_t seen = 0; /* jobs found of r */
    int rj = ls_sqlite_tx_step(&c->tx, jobs);
    int rr = 1;
    while (rr == 1 && rj >= 0) {
        if (seen < r.n)
            find_fault(c, name_of(c, r.queue), "%lld jobs from %lld on have no body",
                       (long long)(r.n - seen), (long long)r.job);
        before = r;
        rr = ls_sqlite_tx_step(&c->tx, runs);
        if (rr == 1) {
            ls_sqlite_run_read(runs, &r);
            check_run(c, &before, &r);
        } else {
            r = (struct ls_sqlite_run){.job = INT64_MAX};
        }
        for (seen = 0; rj == 1 && (rr == 0 || sqlite3_column_int64(jobs, 0) < r.job + r.n);) {
            int64_t seq = sqlite3_column_int64(jobs, 0);
            check_job(c, seq, sqlite3_column_int64(jobs, 1), &r);
            seen += seq >= r.job && rr == 1;
            rj = ls_sqlite_tx_step(&c->tx, jobs);
        }
    }
    if (rj == 1)
        (void)sqlite3_reset(jobs);
    if (rr == 1)
        (void)sqlite3_reset(runs);
    return rj < 0 ? rj : rr < 0 ? rr : 0;
}

static int sum_runs(struct check *c, int64_t queue)
{
    int rc;
    memset(c->count, 0, sizeof(c->count));
    sqlite3_stmt *st = ls_sqlite_tx_stmt(&c->tx, LS_SQLITE_RUN_COUNTS);
    if (st)
        ls_sqlite_bind(st, 1, queue);
    while ((rc = ls_sqlite_tx_step(&c->tx, st)) == 1) {
        int64_t state = sqlite3_column_int64(st, 0);
        if (state >= 0 && state < LADE_N_STATES)
            c->count[state] = sqlite3_column_int64(st, 1);
    }
    return rc;
}

static int check_counts(struct check *c)
{
    int rc;
    sqlite3_stmt *st = ls_sqlite_tx_stmt(&c->tx, LS_SQLITE_QUEUE_ALL);
    while ((rc = ls_sqlite_tx_step(&c->tx, st)) == 1) {
        struct ls_sqlite_queue q = {0};
        ls_sqlite_queue_read(st, &q);
        rc = sum_runs(c, q.num);
        if (rc < 0) {
            (void)sqlite3_reset(st);
            return rc;
        }
        for (int i = 0; i < LADE_N_STATES; i++) {
            if (q.count[i] != c->count[i])
                find_fault(c, q.name, "count of %s is %lld, there are %lld",
                           lade_state_name((enum lade_state)i), (long long)q.count[i],
                           (long long)c->count[i]);
        }
        int64_t bytes = 0;
        rc = q.bound.max_bytes > 0 ? ls_sqlite_bytes_all(&c->tx, q.num, &bytes) : 0;
        if (rc < 0) {
            (void)sqlite3_reset(st);
            return rc;
        }
        if (q.bound.bytes != bytes)
            find_fault(c, q.name, "bytes that wait are %lld, there are %lld",
                       (long long)q.bound.bytes, (long long)bytes);
    }
    return rc;
}

/* Each row of the statement is a finding: a queue's number, or its name when by_name, and something to tell. */
static int check_none(struct check *c, enum ls_sqlite_sql which, const char *format, bool by_name)
{
    int rc;
    sqlite3_stmt *st = ls_sqlite_tx_stmt(&c->tx, which);
    while ((rc = ls_sqlite_tx_step(&c->tx, st)) == 1) {
        const char *what = (const char *)sqlite3_column_text(st, 1);
        const char *queue = by_name ? (const char *)sqlite3_column_text(st, 0)
                                    : name_of(c, sqlite3_column_int64(st, 0));
        find_fault(c, queue, "%s: %s", format, what ? what : "?");
    }
    return rc;
}

static int check_all(struct check *c)
{
    int rc = ls_sqlite_tx_do(&c->tx, ls_sqlite_tx_stmt(&c->tx, LS_SQLITE_BEGIN_READ));
    if (rc == 0)
        rc = check_pages(c);
    if (rc == 0)
        rc = check_jobs(c);
    if (rc == 0)
        rc = check_counts(c);
    if (rc == 0)
        rc = check_none(c, LS_SQLITE_LOCK_LOOSE, "a unique key is held by a job that is gone",
                        false);
    if (rc == 0)
        rc = check_none(c, LS_SQLITE_LOCK_ENDED, "a unique key is held by a job that has ended",
                        false);
    if (rc == 0)
        rc = check_none(c, LS_SQLITE_CLASS_WRONG, "count of a class of deaths is wrong", false);
    if (rc == 0)
        rc = check_none(c, LS_SQLITE_DEATH_LOOSE, "a death and its job do not agree; job", false);
    if (rc == 0)
        rc = check_none(c, LS_SQLITE_DEATH_COUNT, "classes and the dead differ in number", false);
    if (rc == 0)
        rc = check_none(c, LS_SQLITE_WORKER_LOST, "a lease has no worker; first job", false);
    if (rc == 0)
        rc = ls_sqlite_keys_check(&c->tx, c->report, c->ctx);
    if (rc == 0)
        rc = ls_sqlite_flows_check(&c->tx, c->report, c->ctx);
    if (rc == 0)
        rc = check_none(c, LS_SQLITE_EVENT_BAD,
                        "a stream of events is on without a row, or off with one", false);
    if (rc == 0)
        rc = check_none(c, LS_SQLITE_EVENT_HOLE, "numbers of events are missing before", false);
    if (rc == 0)
        rc = check_none(c, LS_SQLITE_NOTE_LOOSE, "a note is of a job that is gone", false);
    if (rc == 0)
        rc = check_none(c, LS_SQLITE_LINE_LOOSE, "log lines are of a job without a note", false);
    if (rc == 0)
        rc = check_none(c, LS_SQLITE_SHEET_LOOSE, "results are of jobs that are gone; first job",
                        false);
    if (rc == 0)
        rc = check_none(c, LS_SQLITE_SHEET_TWICE, "results are there twice; first job", false);
    if (rc == 0)
        rc =
            check_none(c, LS_SQLITE_APART_LOOSE, "a result is of a queue that is gone; job", false);
    if (rc == 0)
        rc = check_none(c, LS_SQLITE_STOP_LOOSE, "a stop request has no worker", true);
    if (rc == 0)
        rc = check_none(c, LS_SQLITE_SCHEDULE_ODD,
                        "a schedule's state, due time and revision do not agree", true);
    ls_sqlite_tx_rollback(&c->tx);
    return rc;
}

int ls_sqlite_check(struct lq_store *s, lq_finding_fn report, void *ctx, lade_err *err)
{
    struct ls_sqlite *ss = ls_sqlite_of(s);
    struct check c = {.report = report, .ctx = ctx};
    struct ls_sqlite_db db = {.busy_deadline = lb_deadline_in(ss->busy_ms * LADE_MILLISECOND)};
    int rc = ls_sqlite_db_open(&db, ss->path, LS_SQLITE_READS, err);
    if (rc < 0)
        return rc;
    ls_sqlite_tx_init(&c.tx, ss, &db);
    c.tx.op = "check";
    c.tx.err = err;
    rc = check_all(&c);
    char text[256];
    if (rc == 0 && ls_sqlite_fold_look(ss, &db, text, sizeof(text)))
        report(ctx, NULL, text);
    ls_sqlite_tx_fini(&c.tx);
    ls_sqlite_db_close(&db);
    return rc;
}
