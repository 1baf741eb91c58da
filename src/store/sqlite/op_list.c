/*
 * op_list.c - queues, count, get, list, workers: what operators look at
 *
 * All on the connection for readers, in short transactions: nothing here blocks a writer, and no snapshot outlives its
 * call, so that the log can always be folded back.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/err.h"
#include "store/sqlite/apart.h"
#include "store/sqlite/dead.h"
#include "store/sqlite/hall.h"
#include "store/sqlite/keys.h"
#include "store/sqlite/lease.h"
#include "store/sqlite/sheet.h"
#include "store/sqlite/sqlite_impl.h"

int ls_sqlite_read_enter(struct ls_sqlite *s, struct ls_sqlite_tx *tx, const char *op,
                         lade_err *err)
{
    lr_mutex_lock(&s->read_lock);
    ls_sqlite_tx_init(tx, s, &s->read);
    tx->op = op;
    tx->err = err;
    tx->now_ms = ls_sqlite_now_ms(s);
    s->read.busy_deadline = lb_deadline_in(s->busy_ms * LADE_MILLISECOND);
    return ls_sqlite_tx_do(tx, ls_sqlite_tx_stmt(tx, LS_SQLITE_BEGIN_READ));
}

int ls_sqlite_read_leave(struct ls_sqlite *s, struct ls_sqlite_tx *tx, int rc)
{
    ls_sqlite_tx_rollback(tx);
    ls_sqlite_tx_fini(tx);
    lr_mutex_unlock(&s->read_lock);
    return rc;
}

/* queues, count ---------------------------------------------------------------------------------------------------- */

static int read_names(struct ls_sqlite_tx *tx, struct lb_arena *arena, const char ***name,
                      size_t *n)
{
    size_t cap = 0;
    int rc;
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_QUEUE_NAMES);
    while ((rc = ls_sqlite_tx_step(tx, st)) == 1) {
        if (*n == cap) {
            size_t grown = LB_MAX(2 * cap, (size_t)16);
            const char **more = lb_arena_alloc(arena, grown * sizeof(*more));
            if (!more)
                break;
            if (*n > 0)
                memcpy(more, *name, *n * sizeof(*more));
            *name = more;
            cap = grown;
        }
        struct lb_slice text = ls_sqlite_column(st, 0);
        struct lb_mut copy = lb_arena_copy(arena, text.p, text.n);
        if (!copy.p)
            break;
        (*name)[(*n)++] = (const char *)copy.p;
    }
    if (rc != 1)
        return rc;
    (void)sqlite3_reset(st);
    return lb_fail_nomem(tx->err, tx->op);
}

int ls_sqlite_queues(struct lq_store *s, struct lb_arena *arena, const char ***name, size_t *n,
                     lade_err *err)
{
    static const char *none[1];
    struct ls_sqlite *ss = ls_sqlite_of(s);
    struct ls_sqlite_tx tx;
    const char **all = none;
    size_t found = 0;
    int rc = ls_sqlite_read_enter(ss, &tx, "queues", err);
    if (rc == 0)
        rc = read_names(&tx, arena, &all, &found);
    if (rc == 0) {
        *name = all;
        *n = found;
    }
    return ls_sqlite_read_leave(ss, &tx, rc);
}

/* Of at most so many held keys the first job is looked at: the age is near the truth then, and costs no more for more keys. */
#define HELD_MAX 64

/* When the first job of keys came, of a queue all of whose keys are held: nobody's turn is next. */
static int look_at_held(struct ls_sqlite_tx *tx, const struct ls_sqlite_queue *q, int64_t *oldest)
{
    int64_t num[HELD_MAX];
    size_t n = 0;
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_KEY_HELD);
    if (st) {
        ls_sqlite_bind(st, 1, q->num);
        ls_sqlite_bind(st, 2, HELD_MAX);
    }
    int rc;
    while ((rc = ls_sqlite_tx_step(tx, st)) == 1 && n < HELD_MAX)
        num[n++] = sqlite3_column_int64(st, 0);
    if (rc == 1)
        (void)sqlite3_reset(st);
    for (size_t i = 0; i < n && rc >= 0; i++) {
        struct ls_sqlite_run r;
        rc = ls_sqlite_run_first_of_key(tx, q, num[i], &r);
        if (rc == 0)
            *oldest = LB_MIN(*oldest, r.at_ms);
    }
    return LB_MIN(rc, 0);
}

/* When the first job of the key whose turn is next came. */
static int look_at_turn(struct ls_sqlite_tx *tx, const struct ls_sqlite_queue *q, int64_t *oldest)
{
    struct ls_sqlite_run r;
    int rc = ls_sqlite_hall_first(tx, q, &r);
    if (rc < 0)
        return rc;
    if (rc == 0)
        *oldest = LB_MIN(*oldest, r.at_ms);
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_KEY_RING);
    if (st) {
        ls_sqlite_bind(st, 1, q->num);
        ls_sqlite_bind(st, 2, 1);
    }
    rc = ls_sqlite_tx_step(tx, st);
    if (rc <= 0)
        return rc < 0 ? rc : look_at_held(tx, q, oldest);
    int64_t num = sqlite3_column_int64(st, 0);
    (void)sqlite3_reset(st);
    rc = ls_sqlite_run_first_of_key(tx, q, num, &r);
    if (rc == 0)
        *oldest = LB_MIN(*oldest, r.at_ms);
    return rc < 0 ? rc : 0;
}

/* The age of the first job of each level, and of the key whose turn is next; the oldest of them. */
static int measure_latency(struct ls_sqlite_tx *tx, const struct ls_sqlite_queue *q, int64_t *ns)
{
    int64_t oldest = tx->now_ms;
    for (int level = 0; level < LQ_N_LEVELS && q->count[LADE_STATE_READY] > 0; level++) {
        sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_RUN_FIRST_OF_RANK);
        if (st) {
            ls_sqlite_bind(st, 1, q->num);
            ls_sqlite_bind(st, 2, LADE_STATE_READY);
            ls_sqlite_bind(st, 3, level);
        }
        int rc = ls_sqlite_tx_step(tx, st);
        if (rc < 0)
            return rc;
        if (rc == 0)
            continue;
        struct ls_sqlite_run r;
        ls_sqlite_run_read(st, &r);
        (void)sqlite3_reset(st);
        oldest = LB_MIN(oldest, r.at_ms);
    }
    int rc = q->gated ? look_at_turn(tx, q, &oldest) : 0;
    if (rc < 0)
        return rc;
    *ns = (tx->now_ms - oldest) * LADE_MILLISECOND;
    return 0;
}

static int count_workers(struct ls_sqlite_tx *tx, const char *queue, size_t *n)
{
    int rc;
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_WORKER_LIVE);
    if (st)
        ls_sqlite_bind(st, 1, tx->now_ms);
    while ((rc = ls_sqlite_tx_step(tx, st)) == 1) {
        const char *queues = (const char *)sqlite3_column_text(st, 3);
        *n += queues && ls_sqlite_list_has(queues, queue);
    }
    return rc;
}

static int read_count(struct ls_sqlite_tx *tx, const char *queue, lade_queue_info *info)
{
    struct ls_sqlite_queue *q;
    int rc = ls_sqlite_tx_queue(tx, queue, &q);
    if (rc < 0 || !q)
        return rc < 0 ? rc : LADE_NOT_FOUND;
    memcpy(info->name, q->name, sizeof(info->name));
    for (size_t i = 0; i < LADE_N_STATES; i++)
        info->count[i] = (uint64_t)q->count[i];
    info->paused = q->paused;
    info->total_enqueued = (uint64_t)q->total[LS_SQLITE_ENQUEUED];
    info->total_completed = (uint64_t)q->total[LS_SQLITE_COMPLETED];
    info->total_failed = (uint64_t)q->total[LS_SQLITE_FAILED];
    info->total_dead = (uint64_t)q->total[LS_SQLITE_DIED];
    struct ls_sqlite_gate *gate;
    rc = ls_sqlite_gate(tx, q, &gate);
    if (rc < 0)
        return rc;
    info->held = gate ? (uint64_t)gate->held : 0;
    rc = measure_latency(tx, q, &info->latency);
    return rc < 0 ? rc : count_workers(tx, queue, &info->n_workers);
}

int ls_sqlite_count(struct lq_store *s, const char *queue, lade_queue_info *out, lade_err *err)
{
    struct ls_sqlite *ss = ls_sqlite_of(s);
    struct ls_sqlite_tx tx;
    lade_queue_info info = {0};
    int rc = ls_sqlite_read_enter(ss, &tx, "count", err);
    if (rc == 0)
        rc = read_count(&tx, queue, &info);
    if (rc == 0)
        *out = info;
    return ls_sqlite_read_leave(ss, &tx, rc);
}

/* get, list -------------------------------------------------------------------------------------------------------- */

/* Room for n more rows. */
static int reserve(struct ls_sqlite_tx *tx, struct lq_row_vec *out, size_t n)
{
    struct lq_row *row = lb_arena_alloc(&out->arena, (out->n + n) * sizeof(*row));
    if (!row)
        return lb_fail_nomem(tx->err, tx->op);
    if (out->n > 0)
        memcpy(row, out->row, out->n * sizeof(*row));
    out->row = row;
    return 0;
}

/* Fills what the run tells of its jobs; the strings lie in the arena. */
static int describe_run(struct ls_sqlite_tx *tx, const char *queue, const struct ls_sqlite_run *r,
                        struct lb_arena *arena, struct lq_row *row)
{
    *row = (struct lq_row){
        .state = (enum lade_state)r->state, .reason = (enum lq_reason)r->reason, .worker = ""};
    row->queue = lb_arena_strdup(arena, queue);
    if (!row->queue)
        return lb_fail_nomem(tx->err, tx->op);
    if (r->state == LADE_STATE_SCHEDULED || r->state == LADE_STATE_RETRYING)
        row->run_at_ms = r->rank;
    if (r->state >= LADE_STATE_COMPLETED)
        row->finished_ms = r->at_ms;
    if (r->state != LADE_STATE_ACTIVE)
        return 0;
    row->taken_ms = r->at_ms;
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_WORKER_BY_NUM);
    if (st)
        ls_sqlite_bind(st, 1, r->worker);
    int rc = ls_sqlite_tx_step(tx, st);
    if (rc <= 0)
        return rc;
    bool named = sqlite3_column_bytes(st, 1) > 0;
    row->lease_until_ms = sqlite3_column_int64(st, 2);
    row->worker = lb_arena_strdup(arena, (const char *)sqlite3_column_text(st, named ? 1 : 0));
    (void)sqlite3_reset(st);
    return row->worker ? 0 : lb_fail_nomem(tx->err, tx->op);
}

/* Appends k jobs of a run from off on; the room was reserved. */
static int read_rows(struct ls_sqlite_tx *tx, const char *queue, const struct ls_sqlite_run *r,
                     int64_t off, int64_t k, struct lq_row_vec *out)
{
    struct lq_row common;
    struct lb_arena *a = &out->arena;
    int rc = describe_run(tx, queue, r, a, &common);
    if (rc < 0)
        return rc;
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_JOB_LOOK);
    if (st) {
        ls_sqlite_bind(st, 1, r->job + off);
        ls_sqlite_bind(st, 2, r->job + off + k - 1);
    }
    while ((rc = ls_sqlite_tx_step(tx, st)) == 1) {
        struct lq_row *row = &out->row[out->n];
        struct lb_mut *to[] = {&row->id, &row->body, &row->history, &row->result, &row->unique};
        *row = common;
        if (r->state == LADE_STATE_ACTIVE)
            row->fence = (uint64_t)(r->pos + sqlite3_column_int64(st, 0) - r->job);
        bool ok = true;
        for (size_t i = 0; i < LB_ARRAY_LEN(to) && ok; i++) {
            struct lb_slice b = ls_sqlite_column(st, (int)i + 1);
            *to[i] = lb_arena_copy(a, b.p, b.n);
            ok = to[i]->p != NULL;
        }
        if (!ok) {
            (void)sqlite3_reset(st);
            return lb_fail_nomem(tx->err, tx->op);
        }
        if (row->result.n == 0 && r->state == LADE_STATE_COMPLETED) {
            rc = ls_sqlite_result_find(tx, sqlite3_column_int64(st, 0), a, &row->result);
            if (rc >= 0 && row->result.n == 0)
                rc = ls_sqlite_apart_get(tx, r->queue, lb_slice_of(row->id), r->at_ms, a,
                                         &row->result);
            if (rc < 0) {
                (void)sqlite3_reset(st);
                return rc;
            }
        }
        out->n++;
    }
    return rc;
}

int ls_sqlite_row_add(struct ls_sqlite_tx *tx, const char *queue, const struct ls_sqlite_run *r,
                      int64_t off, struct lq_row_vec *out)
{
    return read_rows(tx, queue, r, off, 1, out);
}

static int read_job(struct ls_sqlite_tx *tx, const char *queue, struct lb_slice id,
                    struct lq_row_vec *out)
{
    struct ls_sqlite_queue *q;
    struct ls_sqlite_run r;
    int rc = ls_sqlite_tx_queue(tx, queue, &q);
    if (rc < 0 || !q)
        return rc < 0 ? rc : LADE_NOT_FOUND;
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_JOB_SEQ);
    if (st) {
        ls_sqlite_bind(st, 1, q->num);
        ls_sqlite_bind_text(st, 2, id);
    }
    rc = ls_sqlite_tx_step(tx, st);
    if (rc <= 0)
        return rc < 0 ? rc : LADE_NOT_FOUND;
    int64_t seq = sqlite3_column_int64(st, 0);
    (void)sqlite3_reset(st);
    rc = ls_sqlite_run_of(tx, seq, &r);
    if (rc == 0)
        rc = reserve(tx, out, 1);
    return rc != 0 ? rc : read_rows(tx, queue, &r, seq - r.job, 1, out);
}

int ls_sqlite_get(struct lq_store *s, const char *queue, struct lb_slice id, struct lq_row_vec *out,
                  lade_err *err)
{
    struct ls_sqlite *ss = ls_sqlite_of(s);
    struct ls_sqlite_tx tx;
    size_t before = out->n;
    int rc = ls_sqlite_read_enter(ss, &tx, "get", err);
    if (rc == 0)
        rc = read_job(&tx, queue, id, out);
    if (rc != 0)
        out->n = before;
    return ls_sqlite_read_leave(ss, &tx, rc);
}

/* The next job of a listing, as rank and position: what lies before it has been listed. */
struct place {
    int64_t rank, pos;
};

/* The run to go on with and the offset in it. 0 or LADE_NOT_FOUND. */
static int find_place(struct ls_sqlite_tx *tx, const struct ls_sqlite_queue *q,
                      enum lade_state state, const struct place *at, struct ls_sqlite_run *r)
{
    static const enum ls_sqlite_sql which[] = {LS_SQLITE_RUN_BEFORE, LS_SQLITE_RUN_FROM};

    for (size_t i = 0; i < LB_ARRAY_LEN(which); i++) {
        sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, which[i]);
        if (st) {
            ls_sqlite_bind(st, 1, q->num);
            ls_sqlite_bind(st, 2, state);
            ls_sqlite_bind(st, 3, at->rank);
            ls_sqlite_bind(st, 4, at->pos);
        }
        int rc = ls_sqlite_tx_step(tx, st);
        if (rc < 0)
            return rc;
        if (rc == 0)
            continue;
        ls_sqlite_run_read(st, r);
        (void)sqlite3_reset(st);
        /* One that begins before the place counts when it reaches beyond it. */
        if (i > 0 || (r->rank == at->rank && r->pos + r->n > at->pos))
            return 0;
    }
    return LADE_NOT_FOUND;
}

static int read_list(struct ls_sqlite_tx *tx, const char *queue, enum lade_state state,
                     struct place *at, size_t limit, struct lq_row_vec *out)
{
    struct ls_sqlite_queue *q;
    size_t before = out->n;
    int rc = ls_sqlite_tx_queue(tx, queue, &q);
    if (rc < 0 || !q)
        return rc < 0 ? rc : LADE_NOT_FOUND;
    rc = reserve(tx, out, LB_MIN(limit, (size_t)q->count[state]));
    while (rc == 0) {
        struct ls_sqlite_run r;
        rc = find_place(tx, q, state, at, &r);
        if (rc != 0 || out->n - before == limit)
            break;
        int64_t off = r.rank == at->rank && at->pos > r.pos ? at->pos - r.pos : 0;
        int64_t k = LB_MIN(r.n - off, (int64_t)(limit - (out->n - before)));
        rc = read_rows(tx, queue, &r, off, k, out);
        *at = (struct place){r.rank, r.pos + off + k};
    }
    return rc;
}

/* "RANK:POS"; false when it is not one of ours. */
static bool read_cursor(const lade_cursor *cursor, struct place *at)
{
    char *end;
    errno = 0;
    at->rank = strtoll(cursor->at, &end, 10);
    if (errno != 0 || end == cursor->at || *end != ':')
        return false;
    const char *pos = end + 1;
    at->pos = strtoll(pos, &end, 10);
    return errno == 0 && end != pos && *end == 0;
}

int ls_sqlite_list(struct lq_store *s, const char *queue, enum lade_state state,
                   lade_cursor *cursor, size_t limit, struct lq_row_vec *out, lade_err *err)
{
    struct ls_sqlite *ss = ls_sqlite_of(s);
    struct ls_sqlite_tx tx;
    struct place at = {INT64_MIN, INT64_MIN};
    size_t before = out->n;
    if (cursor->at[0] != 0 && !read_cursor(cursor, &at))
        return lb_fail(err, LADE_EINVAL, "list", "the cursor is not one of this store's listings");
    int rc = ls_sqlite_read_enter(ss, &tx, "list", err);
    if (rc == 0)
        rc = read_list(&tx, queue, state, &at, limit, out);
    if (rc < 0) {
        out->n = before;
        return ls_sqlite_read_leave(ss, &tx, rc);
    }
    (void)snprintf(cursor->at, sizeof(cursor->at), "%" PRId64 ":%" PRId64, at.rank, at.pos);
    cursor->done = rc == LADE_NOT_FOUND;
    return ls_sqlite_read_leave(ss, &tx, out->n == before ? LADE_EMPTY : 0);
}

/* workers ---------------------------------------------------------------------------------------------------------- */

static void copy_text(char *to, size_t size, sqlite3_stmt *st, int i)
{
    const char *text = (const char *)sqlite3_column_text(st, i);
    (void)snprintf(to, size, "%s", text ? text : "");
}

static int count_held(struct ls_sqlite_tx *tx, int64_t worker, size_t *n)
{
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_WORKER_HELD);
    if (st)
        ls_sqlite_bind(st, 1, worker);
    int rc = ls_sqlite_tx_step(tx, st);
    if (rc <= 0)
        return rc;
    *n = (size_t)sqlite3_column_int64(st, 0);
    (void)sqlite3_reset(st);
    return 0;
}

static int read_workers(struct ls_sqlite_tx *tx, struct lb_arena *arena, lade_worker_info **out,
                        size_t *n)
{
    size_t cap = 0;
    int rc;
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_WORKER_LIVE);
    if (st)
        ls_sqlite_bind(st, 1, tx->now_ms);
    while ((rc = ls_sqlite_tx_step(tx, st)) == 1) {
        if (*n == cap) {
            cap = LB_MAX(2 * cap, (size_t)8);
            lade_worker_info *more = lb_arena_alloc(arena, cap * sizeof(*more));
            if (!more)
                rc = lb_fail_nomem(tx->err, tx->op);
            else if (*n > 0)
                memcpy(more, *out, *n * sizeof(*more));
            *out = more;
        }
        lade_worker_info *w = *out ? &(*out)[*n] : NULL;
        if (w) {
            *w = (lade_worker_info){.concurrency = sqlite3_column_int(st, 4)};
            copy_text(w->id, sizeof(w->id), st, 1);
            copy_text(w->name, sizeof(w->name), st, 2);
            copy_text(w->queues, sizeof(w->queues), st, 3);
            w->started_at = sqlite3_column_int64(st, 5) * LADE_MILLISECOND;
            w->seen_at = sqlite3_column_int64(st, 6) * LADE_MILLISECOND;
            w->lease_until = sqlite3_column_int64(st, 7) * LADE_MILLISECOND;
            rc = count_held(tx, sqlite3_column_int64(st, 0), &w->n_active);
        }
        if (rc < 0) {
            (void)sqlite3_reset(st);
            return rc;
        }
        ++*n;
    }
    return rc;
}

int ls_sqlite_workers(struct lq_store *s, struct lb_arena *arena, lade_worker_info **out, size_t *n,
                      lade_err *err)
{
    struct ls_sqlite *ss = ls_sqlite_of(s);
    struct ls_sqlite_tx tx;
    lade_worker_info *all = NULL;
    size_t found = 0;
    int rc = ls_sqlite_read_enter(ss, &tx, "workers", err);
    if (rc == 0)
        rc = read_workers(&tx, arena, &all, &found);
    if (rc == 0) {
        *out = all;
        *n = found;
    }
    return ls_sqlite_read_leave(ss, &tx, rc);
}
