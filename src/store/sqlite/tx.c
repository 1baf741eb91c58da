#include "store/sqlite/tx.h"

#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fault.h"
#include "store/sqlite/events.h"
#include "store/sqlite/flow_kept.h"
#include "store/sqlite/hall.h"
#include "store/sqlite/keys.h"
#include "store/sqlite/log.h"
#include "store/sqlite/sqlite_impl.h"

static void forget_flows(struct ls_sqlite_tx *tx)
{
    ls_sqlite_shelf_sweep(&tx->shelf, 0);
    for (size_t i = 0; i < LADE_N_FLOW_STATES; i++)
        tx->n_flows[i] = -1;
}

void ls_sqlite_tx_init(struct ls_sqlite_tx *tx, struct ls_sqlite *s, struct ls_sqlite_db *db)
{
    *tx = (struct ls_sqlite_tx){.s = s, .db = db, .op = "store"};
    lb_arena_init(&tx->arena);
    lb_arena_init(&tx->kept);
    lb_map_init(&tx->queues);
    tx->locks = tx->notes = tx->sheets = -1;
    lb_map_init(&tx->keys_by_num);
    lb_map_init(&tx->keys_by_name);
    ls_sqlite_shelf_init(&tx->shelf);
    forget_flows(tx);
    tx->flows_uncounted = SIZE_MAX / 2; /* the first that end are counted */
}

void ls_sqlite_tx_fini(struct ls_sqlite_tx *tx)
{
    ls_sqlite_shelf_fini(&tx->shelf);
    lb_map_fini(&tx->queues);
    lb_map_fini(&tx->keys_by_num);
    lb_map_fini(&tx->keys_by_name);
    ls_sqlite_halls_fini(tx);
    lb_arena_fini(&tx->kept);
    lb_arena_fini(&tx->arena);
}

int ls_sqlite_tx_fail(struct ls_sqlite_tx *tx)
{
    return ls_sqlite_db_fail(tx->db, tx->op, tx->err);
}

int ls_sqlite_tx_do(struct ls_sqlite_tx *tx, sqlite3_stmt *st)
{
    if (!st)
        return ls_sqlite_tx_fail(tx);
    int rc = sqlite3_step(st) == SQLITE_DONE ? 0 : ls_sqlite_tx_fail(tx);
    (void)sqlite3_reset(st);
    return rc;
}

int ls_sqlite_tx_step(struct ls_sqlite_tx *tx, sqlite3_stmt *st)
{
    if (!st)
        return ls_sqlite_tx_fail(tx);
    int step = sqlite3_step(st);
    if (step == SQLITE_ROW)
        return 1;
    int rc = step == SQLITE_DONE ? 0 : ls_sqlite_tx_fail(tx);
    (void)sqlite3_reset(st);
    return rc;
}

/* The next transaction has looked at nothing yet. */
static void leave_queues(struct ls_sqlite_tx *tx)
{
    for (struct ls_sqlite_queue *q = tx->list; q; q = q->link) {
        q->touched = q->dirty = q->bytes_dirty = q->ring_all = q->ring_watchers = false;
        q->batch = (struct ls_sqlite_batch){0};
        q->ring = 0;
        q->ring_due = 0;
        q->freed = 0;
    }
    ls_sqlite_halls_begin(tx);
    tx->keys = NULL;
    tx->list = tx->last = NULL;
    tx->ended = false;
    tx->quiet = 0;
    tx->grows = false;
    lb_arena_reset(&tx->arena);
}

static void forget_all(struct ls_sqlite_tx *tx)
{
    leave_queues(tx);
    ls_sqlite_halls_stale(tx);
    for (struct ls_sqlite_queue *q = tx->all; q; q = q->next_kept)
        (void)lb_map_del(&tx->queues, lb_slice_str(q->name));
    if (tx->all_keys)
        ls_sqlite_keys_forget(tx);
    tx->n_keys = 0;
    tx->all = NULL;
    tx->n_all = 0;
    forget_flows(tx);
    lb_arena_reset(&tx->kept);
    memset(tx->run, 0, sizeof(tx->run));
    tx->worker.id[0] = 0;
    tx->next_seq = 0;
    tx->locks = tx->notes = tx->sheets = -1;
    tx->keeps = false;
}

static uint32_t read_version(struct ls_sqlite_tx *tx)
{
    uint32_t version = 0;
    int rc = sqlite3_file_control(tx->db->h, "main", SQLITE_FCNTL_DATA_VERSION, &version);
    tx->keeps = rc == SQLITE_OK;
    return version;
}

void ls_sqlite_tx_enter(struct ls_sqlite_tx *tx)
{
    forget_all(tx);
    tx->now_ms = ls_sqlite_now_ms(tx->s);
}

int ls_sqlite_tx_begin(struct ls_sqlite_tx *tx)
{
    leave_queues(tx);
    int rc = ls_sqlite_tx_do(tx, ls_sqlite_tx_stmt(tx, LS_SQLITE_BEGIN));
    if (rc == 0)
        ls_sqlite_log_begin(tx->db);
    bool kept = rc == 0 && tx->keeps && tx->n_all <= LS_SQLITE_QUEUES_KEPT &&
                tx->n_keys <= LS_SQLITE_KEYS_KEPT;
    if (!kept || read_version(tx) != tx->version)
        forget_all(tx);
    if (tx->locks > 0)
        tx->locks = -1; /* they may be gone */
    tx->now_ms = ls_sqlite_now_ms(tx->s);
    return rc;
}

static int write_queue(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q)
{
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_QUEUE_SET);
    if (!st)
        return ls_sqlite_tx_fail(tx);
    int i = 0;
    ls_sqlite_bind(st, ++i, q->num);
    ls_sqlite_bind(st, ++i, q->paused);
    ls_sqlite_bind(st, ++i, q->next);
    for (int state = 0; state < LADE_N_STATES; state++)
        ls_sqlite_bind(st, ++i, q->count[state]);
    for (size_t t = 0; t < LB_ARRAY_LEN(q->total); t++)
        ls_sqlite_bind(st, ++i, q->total[t]);
    ls_sqlite_bind(st, ++i, q->gated);
    ls_sqlite_bind(st, ++i, q->hall);
    ls_sqlite_bind(st, ++i, q->mates);
    return ls_sqlite_tx_do(tx, st);
}

static int write_bytes(struct ls_sqlite_tx *tx, const struct ls_sqlite_queue *q)
{
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_BYTES_SET);
    if (!st)
        return ls_sqlite_tx_fail(tx);
    ls_sqlite_bind(st, 1, q->num);
    ls_sqlite_bind(st, 2, q->bound.bytes);
    return ls_sqlite_tx_do(tx, st);
}

int ls_sqlite_tx_write(struct ls_sqlite_tx *tx)
{
    int rc = ls_sqlite_keys_flush(tx);
    for (struct ls_sqlite_queue *q = tx->list; q && rc == 0; q = q->link) {
        if (q->dirty)
            rc = write_queue(tx, q);
        if (rc == 0 && q->bytes_dirty)
            rc = write_bytes(tx, q);
        if (rc == 0)
            rc = ls_sqlite_events_write(tx, q);
    }
    return rc;
}

int ls_sqlite_tx_commit(struct ls_sqlite_tx *tx, const char *point)
{
    int rc = ls_sqlite_tx_write(tx);
    if (rc == 0 && !ls_sqlite_log_commits(tx->db, tx->grows)) {
        int room = ls_sqlite_db_reserve(tx->db, tx->op, tx->grows ? tx->err : NULL);
        rc = tx->grows ? room : 0;
    }
    LB_FAULT(point);
    if (rc == 0)
        rc = ls_sqlite_tx_do(tx, ls_sqlite_tx_stmt(tx, LS_SQLITE_COMMIT));
    LB_FAULT(point);
    if (rc < 0) {
        ls_sqlite_tx_rollback(tx);
        return rc;
    }
    ls_sqlite_log_end(tx->db);
    tx->version = read_version(tx);
    ls_sqlite_shelf_sweep(&tx->shelf, LS_SQLITE_FLOWS_BYTES);
    return 0;
}

void ls_sqlite_tx_rollback(struct ls_sqlite_tx *tx)
{
    /* Some failures roll back by themselves. ROLLBACK can fail in no other way that matters here. */
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_ROLLBACK);
    if (st && !sqlite3_get_autocommit(tx->db->h)) {
        (void)sqlite3_step(st);
        (void)sqlite3_reset(st);
    }
    ls_sqlite_log_end(tx->db);
    forget_all(tx);
    ls_sqlite_halls_forget(tx);
}

void ls_sqlite_tx_ring(struct ls_sqlite_tx *tx)
{
    for (struct ls_sqlite_queue *q = tx->list; q; q = q->link) {
        if (q->ring_all)
            ls_sqlite_waiters_ring(&tx->s->waiters, q->name, SIZE_MAX);
        else if (q->ring > 0 && !q->paused)
            ls_sqlite_waiters_ring(&tx->s->waiters, q->name, q->ring);
        if (q->ring_due > 0)
            ls_sqlite_waiters_ring_due(&tx->s->waiters, q->name, q->ring_due);
        if (tx->ended || q->ring_watchers)
            ls_sqlite_ring_watchers(tx->s, q->name);
    }
}

void ls_sqlite_queue_read(sqlite3_stmt *st, struct ls_sqlite_queue *q)
{
    int i = 0;
    q->num = sqlite3_column_int64(st, i++);
    q->paused = sqlite3_column_int64(st, i++) != 0;
    q->next = sqlite3_column_int64(st, i++);
    for (int state = 0; state < LADE_N_STATES; state++)
        q->count[state] = sqlite3_column_int64(st, i++);
    for (size_t t = 0; t < LB_ARRAY_LEN(q->total); t++)
        q->total[t] = sqlite3_column_int64(st, i++);
    struct lb_slice name = ls_sqlite_column(st, i);
    size_t n = LB_MIN(name.n, (size_t)LADE_NAME_MAX);
    if (n > 0)
        memcpy(q->name, name.p, n);
    q->name[n] = 0;
    q->events = sqlite3_column_int64(st, i + 1);
    q->gated = sqlite3_column_int64(st, i + 2) != 0;
    q->bound.max_jobs = sqlite3_column_int64(st, i + 3);
    q->bound.block = sqlite3_column_int64(st, i + 4) == LADE_FULL_BLOCK;
    q->bound.max_bytes = sqlite3_column_int64(st, i + 5);
    q->bound.bytes = sqlite3_column_int64(st, i + 6);
    q->hall = sqlite3_column_int64(st, i + 7);
    q->mates = sqlite3_column_int64(st, i + 8);
}

static struct ls_sqlite_queue *touch(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q)
{
    if (!q->touched) {
        q->touched = true;
        q->link = tx->list;
        tx->list = q;
    }
    tx->last = q;
    return q;
}

static int add_queue(struct ls_sqlite_tx *tx, sqlite3_stmt *st, struct ls_sqlite_queue **out)
{
    struct ls_sqlite_queue *q = lb_arena_alloc(&tx->kept, sizeof(*q));
    if (!q)
        return lb_fail_nomem(tx->err, tx->op);
    memset(q, 0, sizeof(*q));
    ls_sqlite_queue_read(st, q);
    if (lb_map_put(&tx->queues, lb_slice_str(q->name), q) < 0)
        return lb_fail_nomem(tx->err, tx->op);
    q->next_kept = tx->all;
    tx->all = q;
    tx->n_all++;
    *out = touch(tx, q);
    return 0;
}

int ls_sqlite_tx_queue(struct ls_sqlite_tx *tx, const char *name, struct ls_sqlite_queue **out)
{
    *out = NULL;
    if (tx->last && strcmp(tx->last->name, name) == 0) {
        *out = tx->last;
        return 0;
    }
    struct ls_sqlite_queue *kept = lb_map_get(&tx->queues, lb_slice_str(name));
    if (kept) {
        *out = touch(tx, kept);
        return 0;
    }
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_QUEUE_GET);
    if (st)
        ls_sqlite_bind_text(st, 1, lb_slice_str(name));
    int rc = ls_sqlite_tx_step(tx, st);
    if (rc <= 0)
        return rc;
    rc = add_queue(tx, st, out);
    (void)sqlite3_reset(st);
    return rc;
}

int ls_sqlite_tx_queue_make(struct ls_sqlite_tx *tx, const char *name, struct ls_sqlite_queue **out)
{
    int rc = ls_sqlite_tx_queue(tx, name, out);
    if (rc < 0 || *out)
        return rc;
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_QUEUE_ADD);
    if (!st)
        return ls_sqlite_tx_fail(tx);
    ls_sqlite_bind_text(st, 1, lb_slice_str(name));
    /* A queue that is forgotten and made again goes on with higher fences: old ones stay stale. */
    ls_sqlite_bind(st, 2, LB_MAX(tx->now_ms, 1) * 1000);
    rc = ls_sqlite_tx_do(tx, st);
    return rc < 0 ? rc : ls_sqlite_tx_queue(tx, name, out);
}

int ls_sqlite_tx_queue_by_num(struct ls_sqlite_tx *tx, int64_t num, struct ls_sqlite_queue **out)
{
    *out = NULL;
    for (struct ls_sqlite_queue *q = tx->all; q; q = q->next_kept) {
        if (q->num == num) {
            *out = touch(tx, q);
            return 0;
        }
    }
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_QUEUE_BY_NUM);
    if (st)
        ls_sqlite_bind(st, 1, num);
    int rc = ls_sqlite_tx_step(tx, st);
    if (rc == 0)
        return lb_fail(tx->err, LADE_EFORMAT, tx->op, "%s is damaged: queue %lld is missing",
                       tx->db->path, (long long)num);
    if (rc < 0)
        return rc;
    rc = add_queue(tx, st, out);
    (void)sqlite3_reset(st);
    return rc;
}

void ls_sqlite_tx_queue_drop(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q)
{
    (void)lb_map_del(&tx->queues, lb_slice_str(q->name));
    for (struct ls_sqlite_queue **at = &tx->list; *at; at = &(*at)->link) {
        if (*at == q) {
            *at = q->link;
            break;
        }
    }
    for (struct ls_sqlite_queue **at = &tx->all; *at; at = &(*at)->next_kept) {
        if (*at == q) {
            *at = q->next_kept;
            tx->n_all--;
            break;
        }
    }
    tx->last = NULL;
}
