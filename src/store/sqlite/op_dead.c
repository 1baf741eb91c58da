/* op_dead.c - classes of deaths, the dead of one class, and changes of jobs by who has seen them */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/err.h"
#include "base/fault.h"
#include "queue/dead_store.h"
#include "store/sqlite/dead.h"
#include "store/sqlite/flow.h"
#include "store/sqlite/sqlite_impl.h"

/* classes ---------------------------------------------------------------------------------------------------------- */

static struct lb_slice keep(struct lb_arena *a, sqlite3_stmt *st, int i, bool *ok)
{
    struct lb_slice s = ls_sqlite_column(st, i);
    struct lb_mut m = lb_arena_copy(a, s.p, s.n);
    *ok = *ok && m.p;
    return lb_slice_of(m);
}

/* name, kind, text, sample, n, first, last: at most LQ_CLASSES_MAX + 1 rows. */
static int read_classes(struct ls_sqlite_tx *tx, const char *queue, struct lq_class_vec *out)
{
    struct ls_sqlite_queue *q;
    bool ok = true;
    int rc = ls_sqlite_tx_queue(tx, queue, &q);
    if (rc < 0 || !q)
        return rc;
    out->class_ = lb_arena_alloc(&out->arena, (LQ_CLASSES_MAX + 2) * sizeof(*out->class_));
    if (!out->class_)
        return lb_fail_nomem(tx->err, tx->op);
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_CLASS_ALL);
    if (st)
        ls_sqlite_bind(st, 1, q->num);
    while ((rc = ls_sqlite_tx_step(tx, st)) == 1 && out->n < LQ_CLASSES_MAX + 2) {
        struct lq_class *c = &out->class_[out->n++];
        *c = (struct lq_class){.name = keep(&out->arena, st, 0, &ok),
                               .kind = keep(&out->arena, st, 1, &ok),
                               .text = keep(&out->arena, st, 2, &ok),
                               .sample = keep(&out->arena, st, 3, &ok),
                               .count = (uint64_t)sqlite3_column_int64(st, 4),
                               .first_ms = sqlite3_column_int64(st, 5),
                               .last_ms = sqlite3_column_int64(st, 6)};
    }
    if (rc == 1)
        (void)sqlite3_reset(st);
    return rc < 0 ? rc : ok ? 0 : lb_fail_nomem(tx->err, tx->op);
}

int ls_sqlite_classes(struct lq_store *s, const char *queue, struct lq_class_vec *out,
                      lade_err *err)
{
    struct ls_sqlite *ss = ls_sqlite_of(s);
    struct ls_sqlite_tx tx;
    out->n = 0;
    int rc = ls_sqlite_read_enter(ss, &tx, "classes", err);
    if (rc == 0)
        rc = read_classes(&tx, queue, out);
    if (rc == 0 && out->n == 0)
        rc = LADE_EMPTY;
    return ls_sqlite_read_leave(ss, &tx, rc);
}

/* list ------------------------------------------------------------------------------------------------------------- */

/* Where a listing is: all up to this death have been listed. */
struct place {
    int64_t at_ms, job;
};

/* Numbers of the next deaths into `seq`; at most limit. */
static int read_deaths(struct ls_sqlite_tx *tx, int64_t num, const struct place *from, size_t limit,
                       int64_t *seq, struct place *at, size_t *n)
{
    int rc;
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_DEATH_AFTER);
    if (st) {
        ls_sqlite_bind(st, 1, num);
        ls_sqlite_bind(st, 2, from->at_ms);
        ls_sqlite_bind(st, 3, from->job);
        ls_sqlite_bind(st, 4, (int64_t)limit);
    }
    *n = 0;
    while ((rc = ls_sqlite_tx_step(tx, st)) == 1) {
        *at = (struct place){sqlite3_column_int64(st, 1), sqlite3_column_int64(st, 0)};
        seq[(*n)++] = at->job;
    }
    return rc;
}

static int reserve(struct ls_sqlite_tx *tx, struct lq_row_vec *out, size_t n)
{
    struct lq_row *row = lb_arena_alloc(&out->arena, (out->n + n + 1) * sizeof(*row));
    if (!row)
        return lb_fail_nomem(tx->err, tx->op);
    if (out->n > 0)
        memcpy(row, out->row, out->n * sizeof(*row));
    out->row = row;
    return 0;
}

static int read_list(struct ls_sqlite_tx *tx, const char *queue, struct lb_slice name,
                     struct place *at, size_t limit, struct lq_row_vec *out, bool *done)
{
    struct ls_sqlite_queue *q;
    int rc = ls_sqlite_tx_queue(tx, queue, &q);
    *done = true;
    if (rc < 0 || !q)
        return rc;
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_CLASS_GET);
    if (st) {
        ls_sqlite_bind(st, 1, q->num);
        ls_sqlite_bind_text(st, 2, name);
    }
    rc = ls_sqlite_tx_step(tx, st);
    if (rc <= 0)
        return rc;
    int64_t num = sqlite3_column_int64(st, 0);
    int64_t count = sqlite3_column_int64(st, 1);
    (void)sqlite3_reset(st);
    limit = LB_MIN(limit, (size_t)count);
    int64_t *seq = lb_arena_alloc(&tx->arena, (limit + 1) * sizeof(*seq));
    size_t n = 0;
    if (!seq)
        return lb_fail_nomem(tx->err, tx->op);
    rc = reserve(tx, out, limit);
    struct place last = *at;
    if (rc == 0)
        rc = read_deaths(tx, num, at, limit + 1, seq, &last, &n);
    *done = n <= limit;
    for (size_t i = 0; i < LB_MIN(n, limit) && rc == 0; i++) {
        struct ls_sqlite_run r;
        rc = ls_sqlite_run_of(tx, seq[i], &r);
        if (rc == LADE_NOT_FOUND)
            return lb_fail(tx->err, LADE_EFORMAT, tx->op, "%s is damaged: a death without its job",
                           tx->db->path);
        if (rc == 0)
            rc = ls_sqlite_row_add(tx, queue, &r, seq[i] - r.job, out);
        *at = (struct place){r.at_ms, seq[i]};
    }
    return rc;
}

/* "AT:JOB"; false when it is not one of ours. */
static bool read_cursor(const lade_cursor *cursor, struct place *at)
{
    char *end;
    errno = 0;
    at->at_ms = strtoll(cursor->at, &end, 10);
    if (errno != 0 || end == cursor->at || *end != ':')
        return false;
    const char *job = end + 1;
    at->job = strtoll(job, &end, 10);
    return errno == 0 && end != job && *end == 0;
}

int ls_sqlite_list_class(struct lq_store *s, const char *queue, struct lb_slice name,
                         int64_t from_ms, lade_cursor *cursor, size_t limit, struct lq_row_vec *out,
                         lade_err *err)
{
    struct ls_sqlite *ss = ls_sqlite_of(s);
    struct ls_sqlite_tx tx;
    struct place at = {INT64_MIN, INT64_MIN};
    size_t before = out->n;
    bool done = true;
    if (cursor->at[0] != 0 && !read_cursor(cursor, &at))
        return lb_fail(err, LADE_EINVAL, "list", "the cursor is not one of this store's listings");
    if (at.at_ms < from_ms)
        at = (struct place){from_ms, INT64_MIN};
    int rc = ls_sqlite_read_enter(ss, &tx, "list", err);
    if (rc == 0)
        rc = read_list(&tx, queue, name, &at, limit, out, &done);
    if (rc < 0) {
        out->n = before;
        return ls_sqlite_read_leave(ss, &tx, rc);
    }
    (void)snprintf(cursor->at, sizeof(cursor->at), "%" PRId64 ":%" PRId64, at.at_ms, at.job);
    cursor->done = done;
    return ls_sqlite_read_leave(ss, &tx, out->n == before ? LADE_EMPTY : 0);
}

/* change ----------------------------------------------------------------------------------------------------------- */

struct change {
    const char *queue;
    enum lq_change_verb verb;
    struct lq_change *it;
    size_t n;
};

static bool may_edit(int64_t state)
{
    return state != LADE_STATE_ACTIVE && state != LADE_STATE_COMPLETED;
}

static int change_one(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q, const struct change *c,
                      const struct lq_change *it, struct ls_sqlite_flows *flows)
{
    int64_t seq = 0;
    struct ls_sqlite_run r;
    int rc = ls_sqlite_job_find(tx, q, it->id, &seq, &r);
    if (rc != 0)
        return rc;
    if (it->died_ms && (r.state != LADE_STATE_DEAD || r.at_ms != it->died_ms))
        return LADE_WRONG_STATE;
    if (c->verb == LQ_CHANGE_EDIT && !may_edit(r.state))
        return LADE_WRONG_STATE;
    if (c->verb == LQ_CHANGE_RETRY && (r.state == LADE_STATE_READY || r.state == LADE_STATE_ACTIVE))
        return LADE_WRONG_STATE;
    if (c->verb != LQ_CHANGE_REMOVE && it->body.n > 0)
        rc = ls_sqlite_job_set_body(tx, q, &r, seq, it->body);
    if (rc < 0 || c->verb == LQ_CHANGE_EDIT)
        return rc;
    return ls_sqlite_act_on(tx, q, c->verb == LQ_CHANGE_RETRY ? LADE_JOB_RETRY : LADE_JOB_REMOVE,
                            it->id, flows);
}

static int run_change(struct ls_sqlite_tx *tx, void *arg)
{
    const struct change *c = arg;
    struct ls_sqlite_queue *q;
    struct ls_sqlite_flows flows;
    int first = 0;
    ls_sqlite_flows_init(&flows, tx);
    int rc = ls_sqlite_tx_queue(tx, c->queue, &q);
    for (size_t i = 0; i < c->n && rc >= 0; i++) {
        rc = q ? change_one(tx, q, c, &c->it[i], &flows) : LADE_NOT_FOUND;
        c->it[i].outcome = rc;
        if (first == 0)
            first = rc;
        LB_FAULT("sqlite.change.item");
    }
    if (rc >= 0)
        rc = ls_sqlite_flows_flush(&flows);
    return rc < 0 ? rc : first;
}

int ls_sqlite_change(struct lq_store *s, const char *queue, enum lq_change_verb verb,
                     struct lq_change *it, size_t n, lade_err *err)
{
    struct change c = {.queue = queue, .verb = verb, .n = n};
    c.it = it;
    struct ls_sqlite_op op = {.name = "change",
                              .point = "sqlite.change.commit",
                              .run = run_change,
                              .arg = &c,
                              .jobs = n,
                              .frees = verb == LQ_CHANGE_REMOVE};
    return n == 0 ? 0 : ls_sqlite_write(ls_sqlite_of(s), &op, err);
}
