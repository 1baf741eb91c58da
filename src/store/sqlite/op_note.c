/* op_note.c - the history of an active job, written between take and settle */
#include "base/base.h"
#include "store/sqlite/lease.h"
#include "store/sqlite/sqlite_impl.h"

struct notes {
    struct lq_note *it;
    size_t n;
};

int ls_sqlite_note_find(struct ls_sqlite_tx *tx, const struct lq_note *it, int64_t *seq)
{
    struct ls_sqlite_queue *q;
    struct ls_sqlite_run r;
    int rc = ls_sqlite_tx_queue(tx, it->queue, &q);
    if (rc < 0 || !q)
        return rc < 0 ? rc : LADE_STALE;
    rc = ls_sqlite_run_of_fence(tx, q, it->fence, &r);
    if (rc != 0)
        return rc < 0 ? rc : LADE_STALE;
    *seq = r.job + (int64_t)it->fence - r.pos;
    return ls_sqlite_job_has_id(tx, *seq, it->id);
}

int ls_sqlite_note_write(struct ls_sqlite_tx *tx, int64_t seq, struct lb_slice history)
{
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_JOB_SET_HISTORY);
    if (!st)
        return ls_sqlite_tx_fail(tx);
    ls_sqlite_bind(st, 1, seq);
    ls_sqlite_bind_blob(st, 2, history);
    return ls_sqlite_tx_do(tx, st);
}

static int note_one(struct ls_sqlite_tx *tx, struct lq_note *it)
{
    int64_t seq;
    int rc = ls_sqlite_note_find(tx, it, &seq);
    if (rc < 0)
        return rc;
    it->outcome = rc;
    return rc == 0 ? ls_sqlite_note_write(tx, seq, it->history) : 0;
}

static int run(struct ls_sqlite_tx *tx, void *arg)
{
    const struct notes *notes = arg;
    int rc = 0;
    for (size_t i = 0; i < notes->n && rc == 0; i++)
        rc = note_one(tx, &notes->it[i]);
    return rc;
}

int ls_sqlite_note(struct lq_store *s, struct lq_note *it, size_t n, lade_err *err)
{
    struct notes notes = {it, n};
    struct ls_sqlite_op op = {
        .name = "note", .point = "sqlite.note.commit", .run = run, .arg = &notes, .jobs = n};
    return n == 0 ? 0 : ls_sqlite_write(ls_sqlite_of(s), &op, err);
}
