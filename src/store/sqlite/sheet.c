#include "store/sqlite/sheet.h"

#include <string.h>

#include "base/base.h"
#include "base/err.h"
#include "base/fault.h"
#include "store/sqlite/apart.h"

#define LENGTH 4 /* bytes of one */

static void put_length(uint8_t *p, size_t n)
{
    for (int i = 0; i < LENGTH; i++)
        p[i] = (uint8_t)(n >> 8 * i);
}

static size_t get_length(const uint8_t *p)
{
    return (size_t)p[0] | (size_t)p[1] << 8 | (size_t)p[2] << 16 | (size_t)p[3] << 24;
}

/* The i-th result of n. False when the data is not what it must be. */
static bool find_result(struct lb_slice data, int64_t n, int64_t i, struct lb_slice *out)
{
    size_t at = (size_t)n * LENGTH;
    if (!data.p || n <= 0 || n > LS_SQLITE_SHEET_JOBS || i >= n || data.n < at)
        return false;
    for (int64_t k = 0; k < i; k++)
        at += get_length(data.p + k * LENGTH);
    size_t length = get_length(data.p + i * LENGTH);
    if (at > data.n || length > data.n - at)
        return false;
    *out = lb_slice(data.p + at, length);
    return true;
}

static int fail_damaged(struct ls_sqlite_tx *tx)
{
    return lb_fail(tx->err, LADE_EFORMAT, tx->op, "%s is damaged: a sheet of results is cut",
                   tx->db->path);
}

static int set_result(struct ls_sqlite_tx *tx, int64_t seq, struct lb_slice result)
{
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_JOB_SET_RESULT);
    if (!st)
        return ls_sqlite_tx_fail(tx);
    ls_sqlite_bind(st, 1, seq);
    ls_sqlite_bind_blob(st, 2, result);
    return ls_sqlite_tx_do(tx, st);
}

/* Its result, unless that is kept apart. */
static struct lb_slice result_of(const struct lq_settle *it)
{
    return ls_sqlite_is_apart(it) ? (struct lb_slice){0} : it->result;
}

static int add_sheet(struct ls_sqlite_tx *tx, const struct lq_settle *it, size_t k, int64_t seq,
                     size_t bytes)
{
    uint8_t *data = lb_arena_alloc(&tx->arena, k * LENGTH + bytes);
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_SHEET_ADD);
    size_t at = k * LENGTH;
    if (!data)
        return lb_fail_nomem(tx->err, tx->op);
    if (!st)
        return ls_sqlite_tx_fail(tx);
    for (size_t i = 0; i < k; i++) {
        put_length(data + i * LENGTH, result_of(&it[i]).n);
        if (result_of(&it[i]).n > 0)
            memcpy(data + at, result_of(&it[i]).p, result_of(&it[i]).n);
        at += result_of(&it[i]).n;
    }
    ls_sqlite_bind(st, 1, seq);
    ls_sqlite_bind(st, 2, (int64_t)k);
    ls_sqlite_bind_blob(st, 3, lb_slice(data, at));
    tx->sheets = 1;
    return ls_sqlite_tx_do(tx, st);
}

int ls_sqlite_results_add(struct ls_sqlite_tx *tx, const struct lq_settle *it, size_t k,
                          int64_t seq)
{
    int rc = 0;
    for (size_t i = 0; i < k && rc == 0;) {
        size_t n = 0, bytes = 0, some = 0;
        while (i + n < k && n < LS_SQLITE_SHEET_JOBS &&
               bytes + result_of(&it[i + n]).n <= LS_SQLITE_SHEET_BYTES) {
            bytes += result_of(&it[i + n]).n;
            some += result_of(&it[i + n]).n > 0;
            n++;
        }
        if (some >= LS_SQLITE_SHEET_MIN) {
            rc = add_sheet(tx, &it[i], n, seq + (int64_t)i, bytes);
            LB_FAULT("sqlite.settle.sheet");
            i += n;
            continue;
        }
        for (size_t end = i + LB_MAX(n, (size_t)1); i < end && rc == 0; i++) {
            if (result_of(&it[i]).n > 0)
                rc = set_result(tx, seq + (int64_t)i, result_of(&it[i]));
        }
    }
    return rc;
}

/* Most files hold no sheet: one look saves many. */
static int have_sheets(struct ls_sqlite_tx *tx)
{
    if (tx->sheets < 0) {
        sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_SHEET_ANY);
        int rc = ls_sqlite_tx_step(tx, st);
        if (rc < 0)
            return rc;
        if (rc == 1)
            (void)sqlite3_reset(st);
        tx->sheets = rc;
    }
    return tx->sheets;
}

/* The sheet that covers a job: 1, or 0 when there is none. The data is copied only for `arena`. */
static int find_sheet(struct ls_sqlite_tx *tx, int64_t seq, int64_t *job, int64_t *n,
                      struct lb_arena *arena, struct lb_mut *data)
{
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_SHEET_AT);
    if (st)
        ls_sqlite_bind(st, 1, seq);
    int rc = ls_sqlite_tx_step(tx, st);
    if (rc <= 0)
        return rc;
    *job = sqlite3_column_int64(st, 0);
    *n = sqlite3_column_int64(st, 1);
    bool covers = seq < *job + *n;
    if (covers && arena) {
        struct lb_slice all = ls_sqlite_column(st, 2);
        *data = lb_arena_copy(arena, all.p, all.n);
        rc = data->p ? 1 : lb_fail_nomem(tx->err, tx->op);
    }
    (void)sqlite3_reset(st);
    return rc < 0 ? rc : covers;
}

int ls_sqlite_result_find(struct ls_sqlite_tx *tx, int64_t seq, struct lb_arena *arena,
                          struct lb_mut *out)
{
    int64_t job = 0, n = 0;
    struct lb_slice one;
    struct lb_mut data = {0};
    int rc = have_sheets(tx);
    if (rc == 1)
        rc = find_sheet(tx, seq, &job, &n, &tx->arena, &data);
    if (rc <= 0)
        return rc;
    if (!find_result(lb_slice_of(data), n, seq - job, &one))
        return fail_damaged(tx);
    if (one.n == 0)
        return 0;
    struct lb_mut copy = lb_arena_copy(arena, one.p, one.n);
    if (!copy.p)
        return lb_fail_nomem(tx->err, tx->op);
    *out = copy;
    return 0;
}

static int del_range(struct ls_sqlite_tx *tx, enum ls_sqlite_sql which, int64_t from, int64_t to)
{
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, which);
    if (!st)
        return ls_sqlite_tx_fail(tx);
    ls_sqlite_bind(st, 1, from);
    ls_sqlite_bind(st, 2, to);
    return ls_sqlite_tx_do(tx, st);
}

/* The sheet that covers a job goes, when none of its jobs is there any more. */
static int del_if_empty(struct ls_sqlite_tx *tx, int64_t seq)
{
    int64_t job = 0, n = 0;
    int rc = find_sheet(tx, seq, &job, &n, NULL, NULL);
    if (rc <= 0)
        return rc;
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_JOB_SEQS);
    if (st) {
        ls_sqlite_bind(st, 1, job);
        ls_sqlite_bind(st, 2, job + n - 1);
    }
    rc = ls_sqlite_tx_step(tx, st);
    if (rc == 1)
        (void)sqlite3_reset(st);
    return rc != 0 ? LB_MIN(rc, 0) : del_range(tx, LS_SQLITE_SHEET_DEL, job, job);
}

int ls_sqlite_results_del(struct ls_sqlite_tx *tx, int64_t seq, int64_t n)
{
    int rc = have_sheets(tx);
    if (rc <= 0)
        return rc;
    rc = del_range(tx, LS_SQLITE_SHEET_DEL_IN, seq, seq + n - 1);
    if (rc == 0)
        rc = del_if_empty(tx, seq);
    return rc < 0 || n == 1 ? rc : del_if_empty(tx, seq + n - 1);
}

/* Each result of the sheet into its job's row; those whose jobs are gone go. */
static int spread(struct ls_sqlite_tx *tx, int64_t job, int64_t n, struct lb_slice data)
{
    int rc = 0;
    for (int64_t i = 0; i < n && rc == 0; i++) {
        struct lb_slice one;
        if (!find_result(data, n, i, &one))
            return fail_damaged(tx);
        if (one.n > 0)
            rc = set_result(tx, job + i, one);
    }
    return rc < 0 ? rc : del_range(tx, LS_SQLITE_SHEET_DEL, job, job);
}

int ls_sqlite_results_clear(struct ls_sqlite_tx *tx, int64_t seq, int64_t n)
{
    int rc = have_sheets(tx);
    for (int64_t at = seq + n - 1; rc > 0 && at >= seq;) {
        int64_t job = 0, jobs = 0;
        struct lb_mut data = {0};
        rc = find_sheet(tx, at, &job, &jobs, &tx->arena, &data);
        if (rc > 0) {
            int done = spread(tx, job, jobs, lb_slice_of(data));
            rc = done < 0 ? done : 1;
            at = job - 1;
        } else if (rc == 0) { /* none covers it: the next one below */
            at = LB_MIN(at - 1, job + jobs - 1);
            rc = job > 0;
        }
    }
    return rc < 0 ? rc : del_range(tx, LS_SQLITE_JOB_CLEAR_RESULT, seq, seq + n - 1);
}
