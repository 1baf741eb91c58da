/* conflict.c - an enqueue that finds its unique key held: replaces the holder, or trails it */
#include <string.h>

#include "base/base.h"
#include "store/sqlite/dead.h"
#include "store/sqlite/hall.h"
#include "store/sqlite/keys.h"
#include "store/sqlite/sqlite_impl.h"

static int64_t add_ms(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

int ls_sqlite_job_set_body(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q,
                           const struct ls_sqlite_run *r, int64_t seq, struct lb_slice body)
{
    struct ls_sqlite_run one = ls_sqlite_run_part(r, seq - r->job, 1);
    if (q->bound.max_bytes > 0 && ls_sqlite_state_waits(r->state)) {
        int rc = ls_sqlite_bytes_count(tx, q, one, -1);
        if (rc < 0)
            return rc;
        q->bound.bytes += (int64_t)body.n;
        q->bytes_dirty = true;
    }
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_JOB_SET_BODY);
    if (!st)
        return ls_sqlite_tx_fail(tx);
    ls_sqlite_bind(st, 1, seq);
    ls_sqlite_bind_blob(st, 2, body);
    return ls_sqlite_tx_do(tx, st);
}

static int64_t due_of(const struct ls_sqlite_tx *tx, const struct lq_put *it,
                      const struct ls_sqlite_lock *lock)
{
    int64_t due = it->when == LQ_WHEN_IN   ? add_ms(tx->now_ms, it->when_ms)
                  : it->when == LQ_WHEN_AT ? it->when_ms
                                           : tx->now_ms;
    if (it->bound_ms > 0)
        due = LB_MIN(due, add_ms(lock->first_ms ? lock->first_ms : tx->now_ms, it->bound_ms));
    return LB_MAX(due, tx->now_ms);
}

static int become(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q, const struct lq_put *it,
                  int64_t seq, const struct ls_sqlite_run *r, int64_t due_ms)
{
    int rc = ls_sqlite_job_set_body(tx, q, r, seq, it->body);
    bool due = due_ms > tx->now_ms;
    if (rc < 0 || (r->state == LADE_STATE_READY && !due && r->level == it->level))
        return rc;
    struct ls_sqlite_run part = ls_sqlite_run_part(r, seq - r->job, 1);
    rc = ls_sqlite_run_cut(tx, q, r, seq - r->job, 1);
    part.level = it->level;
    if (due)
        ls_sqlite_run_to_due(tx, q, &part, LADE_STATE_SCHEDULED, due_ms);
    else if (rc == 0)
        rc = ls_sqlite_run_return(tx, q, r, &part);
    return rc < 0 ? rc : ls_sqlite_run_add(tx, q, &part);
}

static int trail(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q, const struct lq_put *it,
                 const struct ls_sqlite_lock *lock)
{
    int rc = ls_sqlite_job_insert(tx, q, it);
    if (rc != 0)
        return rc;
    struct ls_sqlite_run r = {.job = tx->next_seq++, .n = 1, .queue = q->num, .level = it->level};
    struct ls_sqlite_lock next = {.job = r.job,
                                  .until = LADE_UNTIL_TTL,
                                  .expires_ms = add_ms(lock->expires_ms, it->unique_ttl_ms),
                                  .first_ms = lock->expires_ms,
                                  .trails = true};
    q->total[LS_SQLITE_ENQUEUED]++;
    ls_sqlite_run_to_due(tx, q, &r, LADE_STATE_SCHEDULED, lock->expires_ms);
    rc = ls_sqlite_run_add(tx, q, &r);
    return rc < 0 ? rc : ls_sqlite_lock_set(tx, q, it, &next);
}

int ls_sqlite_conflict(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q, struct lq_put *it,
                       const struct ls_sqlite_lock *lock)
{
    struct ls_sqlite_run r = {.state = LADE_STATE_COMPLETED}; /* so is a job that is gone: over */
    bool trails = it->conflict == LQ_CONFLICT_TRAIL;
    int rc = ls_sqlite_run_of(tx, lock->job, &r);
    if (rc < 0)
        return rc;
    bool waits = rc == 0 && r.queue == q->num && ls_sqlite_state_waits(r.state);
    if (trails && lock->until == LADE_UNTIL_TTL && !(lock->trails && waits)) {
        rc = trail(tx, q, it, lock);
        if (rc == 0) {
            it->outcome = 0;
            it->holder[0] = 0;
        }
        return rc == LADE_DUPLICATE ? 0 : rc; /* its id came with this very call */
    }
    if (!waits || (trails && !lock->trails))
        return 0;
    it->outcome = LADE_REPLACED;
    int64_t due_ms = trails && r.state != LADE_STATE_READY ? r.rank
                     : trails                              ? tx->now_ms
                                                           : due_of(tx, it, lock);
    rc = ls_sqlite_hall_leave(tx, q, &r, lock->job); /* the new envelope does not tell its key */
    return rc < 0 ? rc : become(tx, q, it, lock->job, &r, LB_MAX(due_ms, tx->now_ms));
}
