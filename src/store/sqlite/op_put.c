/*
 * op_put.c - new -> ready | scheduled
 *
 * Jobs of a batch get consecutive numbers; those that go to the same place become one run. The unique index on
 * (queue, id) is the duplicate check.
 */
#include <string.h>

#include "base/base.h"
#include "base/err.h"
#include "base/fault.h"
#include "store/sqlite/dead.h"
#include "store/sqlite/events.h"
#include "store/sqlite/feed.h"
#include "store/sqlite/hall.h"
#include "store/sqlite/keys.h"
#include "store/sqlite/runs.h"
#include "store/sqlite/sqlite_impl.h"

struct put {
    struct lq_put *it;
    size_t n;
    struct ls_sqlite_queue *q; /* of the open run */
    struct ls_sqlite_run open; /* jobs written, run not yet; n = 0: none */
    bool due;                  /* the open run is scheduled */
    size_t n_later;            /* items that meet another under their key */
};

#define LATER (-1) /* the outcome of such an item until the others are placed */

static int flush(struct ls_sqlite_tx *tx, struct put *p)
{
    if (p->open.n == 0)
        return 0;
    struct ls_sqlite_run r = p->open;
    p->open.n = 0;
    p->q->total[LS_SQLITE_ENQUEUED] += r.n;
    if (p->due)
        ls_sqlite_run_to_due(tx, p->q, &r, LADE_STATE_SCHEDULED, r.rank);
    else
        ls_sqlite_run_to_ready(tx, p->q, &r);
    if (r.key == LS_SQLITE_COMPANY)
        r.rank = ls_sqlite_hall_rank(p->q->gate, r.level);
    tx->quiet++;
    int rc = ls_sqlite_run_add(tx, p->q, &r);
    tx->quiet--;
    return rc;
}

static int read_next_seq(struct ls_sqlite_tx *tx)
{
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_JOB_LAST);
    int rc = ls_sqlite_tx_step(tx, st);
    if (rc < 0)
        return rc;
    tx->next_seq = 1;
    if (rc == 1) {
        tx->next_seq = sqlite3_column_int64(st, 0) + 1;
        (void)sqlite3_reset(st);
    }
    return 0;
}

static void set_holder(struct lq_put *it, struct lb_slice id)
{
    size_t n = LB_MIN(id.n, (size_t)LADE_ID_MAX);
    it->outcome = LADE_DUPLICATE;
    memcpy(it->holder, id.p, n);
    it->holder[n] = 0;
}

bool ls_sqlite_put_known(struct ls_sqlite_tx *tx, const struct ls_sqlite_queue *q,
                         struct lb_slice id, int *rc)
{
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_JOB_SEQ);
    if (st) {
        ls_sqlite_bind(st, 1, q->num);
        ls_sqlite_bind_text(st, 2, id);
    }
    *rc = ls_sqlite_tx_step(tx, st);
    if (*rc != 1)
        return false;
    *rc = 0;
    (void)sqlite3_reset(st);
    return true;
}

/* LADE_DUPLICATE with the holder set when the key is held; else 0. */
static int read_lock(struct ls_sqlite_tx *tx, const struct ls_sqlite_queue *q, struct lq_put *it,
                     struct ls_sqlite_lock *lock)
{
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_LOCK_GET);
    if (st) {
        ls_sqlite_bind(st, 1, q->num);
        ls_sqlite_bind_blob(st, 2, it->unique);
    }
    int rc = ls_sqlite_tx_step(tx, st);
    if (rc <= 0)
        return rc;
    *lock = (struct ls_sqlite_lock){.expires_ms = sqlite3_column_int64(st, 1),
                                    .job = sqlite3_column_int64(st, 2),
                                    .until = sqlite3_column_int64(st, 3),
                                    .first_ms = sqlite3_column_int64(st, 4),
                                    .trails = sqlite3_column_int64(st, 5) != 0};
    bool held = lock->expires_ms > tx->now_ms;
    if (held)
        set_holder(it, ls_sqlite_column(st, 0));
    (void)sqlite3_reset(st);
    return held ? LADE_DUPLICATE : 0;
}

/* The same, and 0 when the id is known: the insert finds it. */
int ls_sqlite_put_lock(struct ls_sqlite_tx *tx, const struct ls_sqlite_queue *q, struct lq_put *it,
                       struct ls_sqlite_lock *lock)
{
    int rc = 0;
    return ls_sqlite_put_known(tx, q, it->id, &rc) || rc < 0 ? rc : read_lock(tx, q, it, lock);
}

int ls_sqlite_lock_set(struct ls_sqlite_tx *tx, const struct ls_sqlite_queue *q,
                       const struct lq_put *it, const struct ls_sqlite_lock *lock)
{
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_LOCK_SET);
    if (!st)
        return ls_sqlite_tx_fail(tx);
    ls_sqlite_bind(st, 1, q->num);
    ls_sqlite_bind_blob(st, 2, it->unique);
    ls_sqlite_bind(st, 3, lock->job);
    ls_sqlite_bind_text(st, 4, it->id);
    ls_sqlite_bind(st, 5, lock->until);
    ls_sqlite_bind(st, 6, lock->expires_ms);
    ls_sqlite_bind(st, 7, lock->first_ms);
    ls_sqlite_bind(st, 8, lock->trails);
    tx->locks = 1;
    return ls_sqlite_tx_do(tx, st);
}

static int set_lock(struct ls_sqlite_tx *tx, const struct ls_sqlite_queue *q,
                    const struct lq_put *it, int64_t seq)
{
    struct ls_sqlite_lock lock = {.job = seq,
                                  .until = it->until,
                                  .expires_ms = INT64_MAX, /* its job frees it */
                                  .first_ms = it->conflict != LQ_CONFLICT_KEEP ? tx->now_ms : 0};
    if (it->until == LADE_UNTIL_TTL &&
        __builtin_add_overflow(tx->now_ms, it->unique_ttl_ms, &lock.expires_ms))
        lock.expires_ms = INT64_MAX;
    return ls_sqlite_lock_set(tx, q, it, &lock);
}

int ls_sqlite_job_insert(struct ls_sqlite_tx *tx, const struct ls_sqlite_queue *q,
                         const struct lq_put *it)
{
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_JOB_ADD);
    if (!st)
        return ls_sqlite_tx_fail(tx);
    ls_sqlite_bind(st, 1, tx->next_seq);
    ls_sqlite_bind(st, 2, q->num);
    ls_sqlite_bind_text(st, 3, it->id);
    ls_sqlite_bind_blob(st, 4, it->body);
    ls_sqlite_bind_blob(st, 5, it->unique.n > 0 ? it->unique : (struct lb_slice){0});
    int rc = ls_sqlite_tx_do(tx, st);
    if (rc < 0)
        return rc;
    return sqlite3_changes(tx->db->h) == 0 ? LADE_DUPLICATE : 0;
}

static int64_t due_of(const struct ls_sqlite_tx *tx, const struct lq_put *it)
{
    int64_t due = tx->now_ms;
    if (it->when == LQ_WHEN_AT)
        due = it->when_ms;
    else if (it->when == LQ_WHEN_IN && __builtin_add_overflow(tx->now_ms, it->when_ms, &due))
        due = INT64_MAX;
    return due;
}

/* Which runs a job of a key goes to. */
static int find_key(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q, const struct lq_put *it,
                    bool due, int64_t seq, int64_t *key)
{
    struct ls_sqlite_key *k;
    bool hall = false;
    int rc = due ? 0 : ls_sqlite_hall_admit(tx, q, it, seq, &hall);
    *key = LS_SQLITE_COMPANY;
    if (rc < 0 || hall)
        return rc;
    rc = ls_sqlite_key_make(tx, q, it->key, &k);
    if (rc == 0)
        *key = k->num;
    return rc;
}

/* The new job joins the open run, or begins the next one. */
static int join(struct ls_sqlite_tx *tx, struct put *p, struct ls_sqlite_queue *q,
                const struct lq_put *it, int64_t seq)
{
    int64_t due_ms = due_of(tx, it);
    bool due = due_ms > tx->now_ms;
    if (q->events > 0 && !due)
        ls_sqlite_event(tx, q,
                        &(struct lq_ev){.type = LADE_EVENT_WAITING,
                                        .job = it->id,
                                        .kind = lq_body_kind(it->body)});
    int64_t rank = due ? due_ms : it->level, key = 0;
    struct ls_sqlite_run *open = &p->open;
    if (it->key.n > 0) {
        int rk = find_key(tx, q, it, due, seq, &key);
        if (rk < 0)
            return rk;
    }
    if (open->n > 0 && p->q == q && p->due == due && open->rank == rank &&
        open->level == it->level && open->job + open->n == seq && open->key == key) {
        open->n++;
        return 0;
    }
    int rc = flush(tx, p);
    p->q = q;
    p->due = due;
    *open = (struct ls_sqlite_run){
        .job = seq, .n = 1, .queue = q->num, .rank = rank, .level = it->level, .key = key};
    return rc;
}

static int put_one(struct ls_sqlite_tx *tx, struct put *p, struct lq_put *it)
{
    struct ls_sqlite_queue *q;
    int rc = ls_sqlite_tx_queue_make(tx, it->queue, &q);
    if (rc < 0)
        return rc;
    it->outcome = 0;
    it->holder[0] = 0;
    struct ls_sqlite_lock lock = {0};
    rc = it->unique.n > 0 ? ls_sqlite_put_lock(tx, q, it, &lock) : 0;
    if (rc == LADE_DUPLICATE && it->conflict != LQ_CONFLICT_KEEP) {
        it->outcome = LATER;
        p->n_later++;
    }
    if (rc != 0)
        return rc < 0 ? rc : 0;
    rc = ls_sqlite_job_insert(tx, q, it);
    if (rc == LADE_DUPLICATE)
        set_holder(it, it->id);
    if (rc != 0)
        return rc < 0 ? rc : 0;
    int64_t seq = tx->next_seq++;
    rc = it->unique.n > 0 ? set_lock(tx, q, it, seq) : 0;
    return rc < 0 ? rc : join(tx, p, q, it, seq);
}

/* An item that wants more than to be told that its key is held: its turn comes behind what is new. */
static int meet(struct ls_sqlite_tx *tx, struct lq_put *it)
{
    struct ls_sqlite_queue *q;
    struct ls_sqlite_lock lock = {0};
    int rc = ls_sqlite_tx_queue_make(tx, it->queue, &q);
    if (rc == 0)
        rc = read_lock(tx, q, it, &lock);
    return rc == LADE_DUPLICATE ? ls_sqlite_conflict(tx, q, it, &lock) : rc;
}

/* How many items from the first on one statement can insert: not unique, all of one queue. */
static size_t measure(const struct lq_put *it, size_t n)
{
    size_t k = 0;
    while (k < n && it[k].unique.n == 0 &&
           (it[k].queue == it->queue || strcmp(it[k].queue, it->queue) == 0))
        k++;
    return k;
}

/* The k items were inserted under numbers from seq on, but for those whose id was there. */
static int join_inserted(struct ls_sqlite_tx *tx, struct put *p, struct ls_sqlite_queue *q,
                         struct lq_put *it, size_t k, int64_t seq)
{
    size_t i = 0;
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_JOB_SEQS);
    if (st) {
        ls_sqlite_bind(st, 1, seq);
        ls_sqlite_bind(st, 2, seq + (int64_t)k - 1);
    }
    int rc;
    while ((rc = ls_sqlite_tx_step(tx, st)) == 1) {
        int64_t there = sqlite3_column_int64(st, 0);
        for (; i < k && seq + (int64_t)i < there; i++)
            set_holder(&it[i], it[i].id);
        rc = i < k ? join(tx, p, q, &it[i++], there) : 0;
        if (rc < 0) {
            (void)sqlite3_reset(st);
            return rc;
        }
    }
    for (; i < k && rc == 0; i++)
        set_holder(&it[i], it[i].id);
    return rc;
}

static int put_many(struct ls_sqlite_tx *tx, struct put *p, struct lq_put *it, size_t k)
{
    struct ls_sqlite_queue *q;
    struct ls_sqlite_feed feed = {.it = it, .n = k, .seq = tx->next_seq};
    int rc = ls_sqlite_tx_queue_make(tx, it->queue, &q);
    if (rc < 0)
        return rc;
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_JOB_FEED);
    if (st) {
        ls_sqlite_feed_bind(st, 1, &feed);
        ls_sqlite_bind(st, 2, q->num);
    }
    rc = ls_sqlite_tx_do(tx, st);
    tx->next_seq += (int64_t)k;
    bool all = sqlite3_changes64(tx->db->h) == (int64_t)k;
    for (size_t i = 0; i < k && rc == 0; i++) {
        it[i].outcome = 0;
        it[i].holder[0] = 0;
        rc = all ? join(tx, p, q, &it[i], feed.seq + (int64_t)i) : 0;
    }
    if (rc == 0 && !all)
        rc = join_inserted(tx, p, q, it, k, feed.seq);
    return rc;
}

int ls_sqlite_put_run(struct ls_sqlite_tx *tx, struct lq_put *put, size_t n)
{
    struct put p = {.it = put, .n = n};
    int rc = tx->next_seq == 0 ? read_next_seq(tx) : 0;
    tx->grows = true;
    for (size_t i = 0, k = 1; i < p.n && rc == 0; i += k) {
        k = tx->db->schema ? 1
                           : measure(&p.it[i], p.n - i); /* the feed is known to our connections */
        rc = k > 1 ? put_many(tx, &p, &p.it[i], k) : put_one(tx, &p, &p.it[i]);
        k = LB_MAX(k, (size_t)1);
        LB_FAULT("sqlite.put.jobs");
    }
    if (rc == 0)
        rc = flush(tx, &p);
    for (size_t i = 0; i < p.n && rc == 0 && p.n_later > 0; i++)
        rc = p.it[i].outcome == LATER ? meet(tx, &p.it[i]) : 0;
    return rc;
}

int ls_sqlite_jobs_insert(struct ls_sqlite_tx *tx, const struct ls_sqlite_queue *q,
                          const struct lq_put *it, size_t n, int64_t *seq)
{
    int rc = tx->next_seq == 0 ? read_next_seq(tx) : 0;
    bool all = true;
    tx->grows = true;
    *seq = tx->next_seq;
    if (n > 1 && !tx->db->schema) {
        struct ls_sqlite_feed feed = {.it = it, .n = n, .seq = *seq};
        sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_JOB_FEED);
        if (st) {
            ls_sqlite_feed_bind(st, 1, &feed);
            ls_sqlite_bind(st, 2, q->num);
        }
        rc = rc < 0 ? rc : ls_sqlite_tx_do(tx, st);
        tx->next_seq += (int64_t)n;
        all = sqlite3_changes64(tx->db->h) == (int64_t)n;
        n = 0;
    }
    for (size_t i = 0; i < n && rc >= 0; i++) {
        rc = ls_sqlite_job_insert(tx, q, &it[i]);
        all = all && rc == 0;
        tx->next_seq++;
    }
    return rc < 0 || all ? LB_MIN(rc, 0) : LADE_DUPLICATE;
}

static int run(struct ls_sqlite_tx *tx, void *arg)
{
    const struct put *p = arg;
    int rc = ls_sqlite_bounds_ask(tx, p->it, p->n);
    return rc != 0 ? rc : ls_sqlite_put_run(tx, p->it, p->n);
}

int ls_sqlite_put(struct lq_store *s, struct lq_put *put, size_t n, lade_err *err)
{
    struct put p = {.it = put, .n = n};
    struct ls_sqlite_op op = {
        .name = "put", .point = "sqlite.put.commit", .run = run, .arg = &p, .jobs = n};
    return n == 0 ? 0 : ls_sqlite_write(ls_sqlite_of(s), &op, err);
}
