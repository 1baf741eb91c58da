#include "store/sqlite/foreign.h"

#include <string.h>
#include <sys/stat.h>

#include "base/base.h"
#include "base/err.h"
#include "base/fault.h"
#include "base/mem.h"
#include "store/sqlite/runs.h"
#include "store/sqlite/sqlite_impl.h"
#include "store/sqlite/sqlite_store.h"

/* A queue with work since the last commit of a connection. */
struct ls_sqlite_ring {
    sqlite3 *h;
    char queue[LADE_NAME_MAX + 1];
    size_t n;
    int64_t due_ms;
    struct ls_sqlite_ring *next;
};

struct call {
    struct ls_sqlite *s;
    struct ls_sqlite_db db;
    struct ls_sqlite_tx tx;
    lade_err *err;
};

static int check_file(const struct ls_sqlite *s, sqlite3 *h, const char *schema, const char *op,
                      lade_err *err)
{
    const char *path = sqlite3_db_filename(h, schema);
    struct stat theirs, ours;
    if (!path || !*path)
        return lb_fail(err, LADE_EINVAL, op,
                       "the connection has no file as schema '%.60s'; open or ATTACH %s", schema,
                       s->path);
    if (stat(path, &theirs) < 0 || stat(s->path, &ours) < 0 || theirs.st_dev != ours.st_dev ||
        theirs.st_ino != ours.st_ino)
        return lb_fail(err, LADE_EINVAL, op, "schema '%.60s' is %.80s, and the queue is in %.80s",
                       schema, path, s->path);
    if (sqlite3_db_readonly(h, schema) == 1)
        return lb_fail(err, LADE_EACCESS, op, "the connection reads schema '%.60s' only", schema);
    return 0;
}

static int exec(struct call *c, const char *sql)
{
    return ls_sqlite_db_exec(&c->db, sql, c->tx.op, c->err);
}

/* A statement that failed may have rolled the whole transaction back; then there is no savepoint to go back to. */
static void undo(const struct call *c)
{
    if (!sqlite3_get_autocommit(c->db.h))
        (void)sqlite3_exec(c->db.h, "ROLLBACK TO lade_op; RELEASE lade_op", NULL, NULL, NULL);
}

/* Room for what is to be rung, before anything is written. */
static struct ls_sqlite_ring *find_ring(struct ls_sqlite *s, sqlite3 *h, const char *queue)
{
    struct ls_sqlite_ring *r = s->rings;
    while (r && (r->h != h || strcmp(r->queue, queue) != 0))
        r = r->next;
    if (r || !(r = lb_calloc(1, sizeof(*r))))
        return r;
    r->h = h;
    (void)snprintf(r->queue, sizeof(r->queue), "%s", queue);
    r->next = s->rings;
    s->rings = r;
    return r;
}

static int note_rings(struct call *c)
{
    int rc = 0;
    lr_mutex_lock(&c->s->rings_lock);
    for (const struct ls_sqlite_queue *q = c->tx.list; q && rc == 0; q = q->link) {
        if ((q->ring == 0 || q->paused) && q->ring_due == 0)
            continue;
        struct ls_sqlite_ring *r = find_ring(c->s, c->db.h, q->name);
        if (!r) {
            rc = lb_fail_nomem(c->err, c->tx.op);
            break;
        }
        r->n += q->paused ? 0 : q->ring;
        if (q->ring_due != 0 && (r->due_ms == 0 || q->ring_due < r->due_ms))
            r->due_ms = q->ring_due;
    }
    lr_mutex_unlock(&c->s->rings_lock);
    return rc;
}

static int run_inside(struct call *c, const struct ls_sqlite_op *op)
{
    int rc = exec(c, "SAVEPOINT lade_op");
    if (rc < 0)
        return rc;
    LB_FAULT(op->point);
    ls_sqlite_tx_enter(&c->tx);
    rc = op->run(&c->tx, op->arg);
    int written = rc < 0 ? rc : ls_sqlite_tx_write(&c->tx);
    if (written == 0)
        written = note_rings(c);
    LB_FAULT(op->point);
    if (written == 0)
        written = exec(c, "RELEASE lade_op");
    if (written < 0)
        undo(c);
    LB_FAULT(op->point);
    return written < 0 ? written : rc;
}

static int run(struct lq_store *store, sqlite3 *h, const char *schema,
               const struct ls_sqlite_op *op, lade_err *err)
{
    if (store->ops != &ls_sqlite_ops)
        return lb_fail(err, LADE_EINVAL, op->name,
                       "the queue is no SQLite file; its jobs cannot be part of a transaction");
    struct ls_sqlite *s = ls_sqlite_of(store);
    schema = schema ? schema : "main";
    int rc = check_file(s, h, schema, op->name, err);
    if (rc < 0)
        return rc;
    struct call c = {.s = s, .db = {.h = h, .path = s->path, .schema = schema}, .err = err};
    ls_sqlite_tx_init(&c.tx, s, &c.db);
    c.tx.op = op->name;
    c.tx.err = err;
    rc = run_inside(&c, op);
    if (rc == -LADE_EBUSY)
        (void)lb_fail(
            err, LADE_EBUSY, op->name,
            "%s: another connection writes, or has written since this transaction began to read; "
            "BEGIN IMMEDIATE with a sqlite3_busy_timeout",
            s->path);
    ls_sqlite_db_forget(&c.db);
    ls_sqlite_tx_fini(&c.tx);
    return rc;
}

struct puts {
    struct lq_put *put;
    size_t n;
};

static int run_put(struct ls_sqlite_tx *tx, void *arg)
{
    const struct puts *p = arg;
    int rc = ls_sqlite_bounds_ask(tx, p->put, p->n);
    return rc != 0 ? rc : ls_sqlite_put_run(tx, p->put, p->n);
}

int ls_sqlite_foreign_put(struct lq_store *s, sqlite3 *h, const char *schema, struct lq_put *put,
                          size_t n, lade_err *err)
{
    struct puts p = {put, n};
    struct ls_sqlite_op op = {
        .name = "sqlite_enqueue", .point = "sqlite.foreign.put", .run = run_put, .arg = &p};
    return run(s, h, schema, &op, err);
}

static int run_settle(struct ls_sqlite_tx *tx, void *arg)
{
    return ls_sqlite_settle_run(tx, arg, 1);
}

int ls_sqlite_foreign_settle(struct lq_store *s, sqlite3 *h, const char *schema,
                             struct lq_settle *it, lade_err *err)
{
    struct ls_sqlite_op op = {
        .name = "sqlite_complete", .point = "sqlite.foreign.settle", .run = run_settle, .arg = it};
    return run(s, h, schema, &op, err);
}

struct noting {
    struct lq_note *it;
    ls_sqlite_make_history make;
    void *ctx;
};

/* The history as it is now, in the arena. */
static int read_history(struct ls_sqlite_tx *tx, int64_t seq, struct lb_mut *out)
{
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_JOB_HISTORY);
    if (st)
        ls_sqlite_bind(st, 1, seq);
    int rc = ls_sqlite_tx_step(tx, st);
    if (rc <= 0)
        return rc;
    struct lb_slice h = ls_sqlite_column(st, 0);
    *out = lb_arena_copy(&tx->arena, h.p, h.n);
    (void)sqlite3_reset(st);
    return out->p ? 0 : lb_fail_nomem(tx->err, tx->op);
}

static int run_note(struct ls_sqlite_tx *tx, void *arg)
{
    const struct noting *n = arg;
    struct lb_mut old = {0};
    struct lb_buf made;
    int64_t seq;
    int rc = ls_sqlite_note_find(tx, n->it, &seq);
    n->it->outcome = rc;
    if (rc == 0)
        rc = read_history(tx, seq, &old);
    if (rc != 0)
        return rc < 0 ? rc : 0;
    lb_buf_init(&made);
    n->it->outcome = n->make(n->ctx, lb_slice_of(old), &made);
    if (made.failed)
        rc = lb_fail_nomem(tx->err, tx->op);
    else if (n->it->outcome == 0)
        rc = ls_sqlite_note_write(tx, seq, lb_buf_slice(&made));
    lb_buf_fini(&made);
    return rc;
}

int ls_sqlite_foreign_note(struct lq_store *s, sqlite3 *h, const char *schema, struct lq_note *it,
                           ls_sqlite_make_history make, void *ctx, lade_err *err)
{
    struct noting n = {it, make, ctx};
    struct ls_sqlite_op op = {
        .name = "sqlite_effect", .point = "sqlite.foreign.note", .run = run_note, .arg = &n};
    return run(s, h, schema, &op, err);
}

static void ring(struct ls_sqlite *s, const struct ls_sqlite_ring *r)
{
    if (r->n > 0)
        ls_sqlite_waiters_ring(&s->waiters, r->queue, r->n);
    if (r->due_ms > 0)
        ls_sqlite_waiters_ring_due(&s->waiters, r->queue, r->due_ms);
}

void ls_sqlite_foreign_committed(struct lq_store *store, sqlite3 *h)
{
    if (store->ops != &ls_sqlite_ops)
        return;
    struct ls_sqlite *s = ls_sqlite_of(store);
    struct ls_sqlite_ring *mine = NULL;
    lr_mutex_lock(&s->rings_lock);
    for (struct ls_sqlite_ring **at = &s->rings; *at;) {
        struct ls_sqlite_ring *r = *at;
        if (r->h != h) {
            at = &r->next;
            continue;
        }
        *at = r->next;
        r->next = mine;
        mine = r;
    }
    lr_mutex_unlock(&s->rings_lock);
    while (mine) {
        struct ls_sqlite_ring *r = mine;
        mine = r->next;
        ring(s, r);
        lb_free(r);
    }
}

void ls_sqlite_foreign_fini(struct ls_sqlite *s)
{
    while (s->rings) {
        struct ls_sqlite_ring *r = s->rings;
        s->rings = r->next;
        lb_free(r);
    }
}
