/* op_limit.c - limits and keys, as operators set and see them */
#include <string.h>

#include "base/base.h"
#include "base/err.h"
#include "queue/key_store.h"
#include "store/sqlite/hall.h"
#include "store/sqlite/keys.h"
#include "store/sqlite/sqlite_impl.h"

struct change {
    const char *queue;
    enum lade_limit_scope scope;
    struct lb_slice key;
    const struct lq_limit *limit;
    bool paused;
};

/* Nothing of a key waits unseen when its limit begins to hold. LADE_MORE: what was done is to be kept, and it is to be asked again. */
static int part(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q)
{
    ls_sqlite_hall_close(q, LS_SQLITE_STRICT);
    return ls_sqlite_hall_part(tx, q);
}

/* An op that begins with that, until all is apart. */
static int write_apart(struct ls_sqlite *s, const struct ls_sqlite_op *op, lade_err *err)
{
    int rc;
    do
        rc = ls_sqlite_write(s, op, err);
    while (rc == LADE_MORE);
    return rc;
}

/* The default changed: all keys that are held may try again. One statement, whatever their number. */
static int loosen(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q)
{
    int rc = ls_sqlite_keys_flush(tx);
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_KEY_LOOSEN);
    if (st)
        ls_sqlite_bind(st, 1, q->num);
    if (rc == 0)
        rc = ls_sqlite_tx_do(tx, st);
    ls_sqlite_keys_forget(tx); /* what was read of them is old now */
    q->gate->held = 0;
    q->gate->dirty = true;
    return rc;
}

static int run_limit(struct ls_sqlite_tx *tx, void *arg)
{
    const struct change *c = arg;
    struct ls_sqlite_queue *q;
    struct ls_sqlite_gate *g = NULL;
    int rc = ls_sqlite_tx_queue_make(tx, c->queue, &q);
    if (rc == 0)
        rc = ls_sqlite_gate_make(tx, q, &g);
    if (rc < 0 || !g)
        return rc;
    q->ring_all = true;
    if (c->scope != LADE_LIMIT_QUEUE && !lq_limit_is_zero(c->limit))
        rc = part(tx, q);
    if (rc != 0)
        return rc;
    if (c->scope == LADE_LIMIT_KEY) {
        struct ls_sqlite_key *k = NULL;
        rc = ls_sqlite_key_make(tx, q, c->key, &k);
        if (rc == 0 && k) {
            k->own = *c->limit;
            ls_sqlite_key_touch(tx, k);
        }
        return rc;
    }
    if (c->scope == LADE_LIMIT_QUEUE) {
        g->limit = *c->limit;
        g->dirty = true;
        return 0;
    }
    g->usual = *c->limit;
    return loosen(tx, q);
}

int ls_sqlite_limit_set(struct lq_store *s, const char *queue, enum lade_limit_scope scope,
                        struct lb_slice key, const struct lq_limit *limit, lade_err *err)
{
    struct change c = {.queue = queue, .scope = scope, .key = key, .limit = limit};
    struct ls_sqlite_op op = {
        .name = "limit", .point = "sqlite.limit.commit", .run = run_limit, .arg = &c, .jobs = 1};
    return write_apart(ls_sqlite_of(s), &op, err);
}

static int run_pause(struct ls_sqlite_tx *tx, void *arg)
{
    const struct change *c = arg;
    struct ls_sqlite_queue *q;
    struct ls_sqlite_key *k = NULL;
    struct ls_sqlite_gate *g = NULL;
    int rc = ls_sqlite_tx_queue_make(tx, c->queue, &q);
    if (rc == 0)
        rc = ls_sqlite_gate_make(tx, q, &g);
    if (rc == 0 && c->paused)
        rc = part(tx, q);
    if (rc != 0)
        return rc;
    rc = ls_sqlite_key_make(tx, q, c->key, &k);
    if (rc < 0 || !k)
        return rc;
    k->facts.paused = c->paused;
    if (!c->paused)
        k->facts.until_us = 0;
    ls_sqlite_key_touch(tx, k);
    return 0;
}

int ls_sqlite_key_pause(struct lq_store *s, const char *queue, struct lb_slice key, bool paused,
                        lade_err *err)
{
    struct change c = {.queue = queue, .key = key, .paused = paused};
    struct ls_sqlite_op op = {.name = "key_pause",
                              .point = "sqlite.key_pause.commit",
                              .run = run_pause,
                              .arg = &c,
                              .jobs = 1};
    return write_apart(ls_sqlite_of(s), &op, err);
}

int ls_sqlite_throttle(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q, int64_t key,
                       int64_t until_ms)
{
    int64_t until_us = until_ms > INT64_MAX / 1000 ? INT64_MAX : until_ms * 1000;
    struct ls_sqlite_gate *g = NULL;
    struct ls_sqlite_key *k = NULL;
    int rc = ls_sqlite_gate_make(tx, q, &g);
    if (rc == 0 && key)
        rc = ls_sqlite_key_get(tx, q, key, &k);
    if (rc < 0 || !g)
        return rc;
    if (k) {
        ls_sqlite_hall_close(q, LS_SQLITE_STRICT);
        k->facts.until_us = LB_MAX(k->facts.until_us, until_us);
        ls_sqlite_key_touch(tx, k);
        return 0;
    }
    g->free_until_us = LB_MAX(g->free_until_us, until_us);
    g->dirty = true;
    if (q->ring_due == 0 || until_ms < q->ring_due)
        q->ring_due = LB_MAX(until_ms, 1);
    return 0;
}

/* A statement about one queue. */
static int change_queue(struct ls_sqlite_tx *tx, enum ls_sqlite_sql which, int64_t num)
{
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, which);
    if (st)
        ls_sqlite_bind(st, 1, num);
    return ls_sqlite_tx_do(tx, st);
}

int ls_sqlite_keys_drop(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q)
{
    int rc = ls_sqlite_keys_flush(tx);
    ls_sqlite_keys_forget(tx);
    if (rc == 0)
        rc = change_queue(tx, LS_SQLITE_KEY_DEL_QUEUE, q->num);
    if (rc == 0)
        rc = change_queue(tx, LS_SQLITE_GATE_DEL, q->num);
    q->gate = NULL;
    q->gated = false;
    return rc;
}

int ls_sqlite_keys_trim(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q, size_t max)
{
    int rc = ls_sqlite_keys_flush(tx);
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_KEY_TRIM);
    if (st) {
        ls_sqlite_bind(st, 1, q->num);
        ls_sqlite_bind(st, 2, tx->now_ms * 1000);
        ls_sqlite_bind(st, 3, (int64_t)max);
    }
    ls_sqlite_keys_forget(tx);
    if (rc == 0)
        rc = ls_sqlite_tx_do(tx, st);
    return rc < 0 ? rc : ls_sqlite_hall_trim(tx, q);
}

#define LOOK_MS 1000 /* so long after a look at keys every job of a key stands by itself */

/* looking ---------------------------------------------------------------------------------------------------------- */

struct look {
    const char *queue;
    struct lb_slice key; /* of limit_get and key_get; of key_list the last one listed */
    enum lade_limit_scope scope;
    size_t limit;
    struct lq_key_row_vec *out;
    size_t cap;
    struct lq_limit found;
};

static int read_limit(struct ls_sqlite_tx *tx, struct look *l)
{
    struct ls_sqlite_queue *q;
    struct ls_sqlite_gate *g = NULL;
    struct ls_sqlite_key *k = NULL;
    int rc = ls_sqlite_tx_queue(tx, l->queue, &q);
    if (rc < 0 || !q)
        return rc < 0 ? rc : LADE_NOT_FOUND;
    rc = ls_sqlite_gate(tx, q, &g);
    if (rc < 0 || !g)
        return rc;
    l->found = l->scope == LADE_LIMIT_QUEUE ? g->limit : g->usual;
    if (l->scope != LADE_LIMIT_KEY)
        return 0;
    rc = ls_sqlite_key_find(tx, q, l->key, &k);
    l->found = rc == 0 && k ? k->own : (struct lq_limit){0};
    return rc;
}

int ls_sqlite_limit_get(struct lq_store *s, const char *queue, enum lade_limit_scope scope,
                        struct lb_slice key, struct lq_limit *out, lade_err *err)
{
    struct look l = {.queue = queue, .key = key, .scope = scope};
    struct ls_sqlite *ss = ls_sqlite_of(s);
    struct ls_sqlite_tx tx;
    int rc = ls_sqlite_read_enter(ss, &tx, "limit", err);
    if (rc == 0)
        rc = read_limit(&tx, &l);
    if (rc == 0)
        *out = l.found;
    return ls_sqlite_read_leave(ss, &tx, rc);
}

/* Room for one more row. */
static int reserve(struct ls_sqlite_tx *tx, struct look *l)
{
    if (l->out->n < l->cap)
        return 0;
    size_t cap = LB_MAX(2 * l->cap, l->out->n + 16);
    struct lq_key_row *rows = lb_arena_alloc(&l->out->arena, cap * sizeof(*rows));
    if (!rows)
        return lb_fail_nomem(tx->err, tx->op);
    if (l->out->n > 0)
        memcpy(rows, l->out->row, l->out->n * sizeof(*rows));
    l->out->row = rows;
    l->cap = cap;
    return 0;
}

static bool is_shown(const struct ls_sqlite_key *k, int64_t now_us)
{
    return k->facts.ready + k->facts.active + k->waiting > 0 || k->facts.paused ||
           k->facts.until_us > now_us || !lq_limit_is_zero(&k->own);
}

static int describe(struct ls_sqlite_tx *tx, struct look *l, const struct ls_sqlite_key *k)
{
    struct lq_limit joined = ls_sqlite_key_limit(k);
    struct ls_sqlite_run first = {0};
    int64_t at;
    int rc = reserve(tx, l);
    struct lb_mut name = {0};
    if (rc == 0) {
        name = lb_arena_copy(&l->out->arena, k->name.p, k->name.n);
        rc = name.p ? ls_sqlite_run_first_of_key(tx, k->q, k->num, &first)
                    : lb_fail_nomem(tx->err, tx->op);
    }
    if (rc < 0)
        return rc;
    struct lq_key_row *row = &l->out->row[l->out->n++];
    *row = (struct lq_key_row){.key = lb_slice_of(name),
                               .ready = k->facts.ready,
                               .active = k->facts.active,
                               .waiting = k->waiting,
                               .paused = k->facts.paused,
                               .latency_ms = rc == 0 ? tx->now_ms - first.at_ms : 0,
                               .own = k->own,
                               .joined = joined};
    (void)lq_key_room(&joined, &k->facts, tx->now_ms * 1000, &at, &row->hold);
    row->until_ms = at == LQ_NOT_BY_TIME ? 0 : (at + 999) / 1000;
    return 0;
}

/* Keys behind l->key; their names and rows live in the transaction's arena until `l->limit` of them are described. */
static int read_page(struct ls_sqlite_tx *tx, struct look *l, lade_cursor *cursor)
{
    struct ls_sqlite_queue *q;
    struct ls_sqlite_gate *g = NULL;
    size_t before = l->out->n;
    cursor->done = true;
    int rc = ls_sqlite_tx_queue(tx, l->queue, &q);
    if (rc == 0 && q)
        rc = ls_sqlite_gate(tx, q, &g);
    if (rc < 0 || !g)
        return rc;
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_KEY_AFTER);
    if (st) {
        ls_sqlite_bind(st, 1, q->num);
        ls_sqlite_bind_blob(st, 2, l->key);
        ls_sqlite_bind(st, 3, INT64_MAX);
    }
    while ((rc = ls_sqlite_tx_step(tx, st)) == 1) {
        struct ls_sqlite_key k = {.q = q};
        ls_sqlite_key_read(st, &k);
        if (!is_shown(&k, tx->now_ms * 1000))
            continue;
        cursor->done = l->out->n - before < l->limit;
        if (cursor->done)
            rc = describe(tx, l, &k);
        if (rc < 0 || !cursor->done) {
            (void)sqlite3_reset(st);
            return rc < 0 ? rc : 0;
        }
        lq_key_to_cursor(cursor, k.name);
    }
    return rc;
}

static int run_part(struct ls_sqlite_tx *tx, void *arg)
{
    struct ls_sqlite_queue *q;
    struct ls_sqlite_gate *g = NULL;
    int rc = ls_sqlite_tx_queue(tx, *(const char **)arg, &q);
    if (rc == 0 && q)
        rc = ls_sqlite_gate(tx, q, &g);
    if (rc < 0 || !g || q->hall + q->mates == 0)
        return rc;
    ls_sqlite_hall_close(q, tx->now_ms + LOOK_MS);
    return ls_sqlite_hall_part(tx, q);
}

static int is_apart(struct ls_sqlite_tx *tx, const char *queue, bool *apart)
{
    struct ls_sqlite_queue *q;
    struct ls_sqlite_gate *g = NULL;
    int rc = ls_sqlite_tx_queue(tx, queue, &q);
    if (rc == 0 && q)
        rc = ls_sqlite_gate(tx, q, &g);
    *apart = !g || q->hall + q->mates == 0;
    return rc;
}

/*
 * Begins to read keys of the queue, which after a failure is left again. What jobs in company have of them is written down first; meanwhile
 * none come to the hall.
 */
static int enter(struct ls_sqlite *ss, struct ls_sqlite_tx *tx, const char *queue, lade_err *err)
{
    struct ls_sqlite_op op = {.name = "key",
                              .point = "sqlite.key_part.commit",
                              .run = run_part,
                              .arg = &queue,
                              .jobs = LS_SQLITE_HALL_PART};
    for (;;) {
        bool apart = true;
        int rc = ls_sqlite_read_enter(ss, tx, "key", err);
        if (rc == 0)
            rc = is_apart(tx, queue, &apart);
        if (rc == 0 && apart)
            return 0;
        rc = ls_sqlite_read_leave(ss, tx, rc);
        if (rc == 0)
            rc = write_apart(ss, &op, err);
        if (rc < 0)
            return rc;
    }
}

int ls_sqlite_key_list(struct lq_store *s, const char *queue, lade_cursor *cursor, size_t limit,
                       struct lq_key_row_vec *out, lade_err *err)
{
    uint8_t after[LADE_KEY_MAX] = {0};
    struct look l = {.queue = queue, .limit = limit, .out = out};
    struct ls_sqlite *ss = ls_sqlite_of(s);
    struct ls_sqlite_tx tx;
    size_t before = out->n;
    l.key = lb_slice(after, lq_key_of_cursor(cursor, after));
    int rc = enter(ss, &tx, queue, err);
    if (rc < 0)
        return rc;
    rc = read_page(&tx, &l, cursor);
    if (rc < 0)
        out->n = before;
    else
        rc = out->n == before ? LADE_EMPTY : 0;
    return ls_sqlite_read_leave(ss, &tx, rc);
}

static int read_key(struct ls_sqlite_tx *tx, struct look *l)
{
    struct ls_sqlite_queue *q;
    struct ls_sqlite_key *k = NULL;
    int rc = ls_sqlite_tx_queue(tx, l->queue, &q);
    if (rc == 0 && q)
        rc = ls_sqlite_key_find(tx, q, l->key, &k);
    if (rc < 0 || !k || !is_shown(k, tx->now_ms * 1000))
        return rc < 0 ? rc : LADE_NOT_FOUND;
    return describe(tx, l, k);
}

int ls_sqlite_key_show(struct lq_store *s, const char *queue, struct lb_slice key,
                       struct lq_key_row_vec *out, lade_err *err)
{
    struct look l = {.queue = queue, .key = key, .limit = 1, .out = out};
    struct ls_sqlite *ss = ls_sqlite_of(s);
    struct ls_sqlite_tx tx;
    size_t before = out->n;
    int rc = enter(ss, &tx, queue, err);
    if (rc < 0)
        return rc;
    rc = read_key(&tx, &l);
    if (rc != 0)
        out->n = before;
    return ls_sqlite_read_leave(ss, &tx, rc);
}
