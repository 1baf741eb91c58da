#include "store/sqlite/dead.h"

#include <string.h>

#include "base/err.h"
#include "store/sqlite/sqlite_impl.h"

static int find_class(struct ls_sqlite_tx *tx, const struct ls_sqlite_queue *q,
                      struct lb_slice name, int64_t *num)
{
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_CLASS_GET);
    if (st) {
        ls_sqlite_bind(st, 1, q->num);
        ls_sqlite_bind_text(st, 2, name);
    }
    int rc = ls_sqlite_tx_step(tx, st);
    if (rc <= 0)
        return rc < 0 ? rc : LADE_NOT_FOUND;
    *num = sqlite3_column_int64(st, 0);
    (void)sqlite3_reset(st);
    return 0;
}

/* 0 with whether there is room for one more class. */
static int has_room(struct ls_sqlite_tx *tx, const struct ls_sqlite_queue *q, bool *room)
{
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_CLASS_COUNT);
    if (st)
        ls_sqlite_bind(st, 1, q->num);
    int rc = ls_sqlite_tx_step(tx, st);
    if (rc <= 0)
        return rc;
    *room = sqlite3_column_int64(st, 0) < LQ_CLASSES_MAX;
    (void)sqlite3_reset(st);
    return 0;
}

static int make_class(struct ls_sqlite_tx *tx, const struct ls_sqlite_queue *q,
                      const struct lq_death *d, int64_t *num)
{
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_CLASS_ADD);
    if (!st)
        return ls_sqlite_tx_fail(tx);
    ls_sqlite_bind(st, 1, q->num);
    ls_sqlite_bind_text(st, 2, d->name);
    /* what is empty must not be NULL */
    ls_sqlite_bind_text(st, 3, d->kind.n > 0 ? d->kind : lb_slice("", 0));
    ls_sqlite_bind_blob(st, 4, d->text.n > 0 ? d->text : lb_slice("", 0));
    ls_sqlite_bind(st, 5, tx->now_ms);
    int rc = ls_sqlite_tx_do(tx, st);
    *num = sqlite3_last_insert_rowid(tx->db->h);
    return rc;
}

/* The class of a death, made when it is not there; `other` when there are too many. */
static int class_of(struct ls_sqlite_tx *tx, const struct ls_sqlite_queue *q,
                    const struct lq_death *d, int64_t *num)
{
    bool room = false;
    int rc = find_class(tx, q, d->name, num);
    if (rc != LADE_NOT_FOUND)
        return rc;
    rc = has_room(tx, q, &room);
    if (rc < 0 || room)
        return rc < 0 ? rc : make_class(tx, q, d, num);
    struct lq_death other = {.name = lb_slice_str(LQ_CLASS_OTHER)};
    rc = find_class(tx, q, other.name, num);
    return rc == LADE_NOT_FOUND ? make_class(tx, q, &other, num) : rc;
}

int ls_sqlite_death_add(struct ls_sqlite_tx *tx, const struct ls_sqlite_queue *q, int64_t seq,
                        enum lq_reason reason, const struct lq_death *death)
{
    struct lq_death killed = {.name = lb_slice_str(lq_reason_word(reason))};
    int64_t num = 0;
    int rc = class_of(tx, q, death ? death : &killed, &num);
    if (rc < 0)
        return rc;
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_CLASS_MORE);
    if (!st)
        return ls_sqlite_tx_fail(tx);
    ls_sqlite_bind(st, 1, num);
    ls_sqlite_bind(st, 2, tx->now_ms);
    rc = ls_sqlite_tx_do(tx, st);
    st = rc == 0 ? ls_sqlite_tx_stmt(tx, LS_SQLITE_DEATH_ADD) : NULL;
    if (!st)
        return rc < 0 ? rc : ls_sqlite_tx_fail(tx);
    ls_sqlite_bind(st, 1, seq);
    ls_sqlite_bind(st, 2, num);
    ls_sqlite_bind(st, 3, tx->now_ms);
    return ls_sqlite_tx_do(tx, st);
}

static int leave_class(struct ls_sqlite_tx *tx, int64_t num, int64_t n)
{
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_CLASS_LESS);
    if (!st)
        return ls_sqlite_tx_fail(tx);
    ls_sqlite_bind(st, 1, num);
    ls_sqlite_bind(st, 2, n);
    int rc = ls_sqlite_tx_do(tx, st);
    st = rc == 0 ? ls_sqlite_tx_stmt(tx, LS_SQLITE_CLASS_DEL) : NULL;
    if (!st)
        return rc < 0 ? rc : ls_sqlite_tx_fail(tx);
    ls_sqlite_bind(st, 1, num);
    return ls_sqlite_tx_do(tx, st);
}

static void bind_range(sqlite3_stmt *st, int64_t seq, int64_t n)
{
    if (!st)
        return;
    ls_sqlite_bind(st, 1, seq);
    ls_sqlite_bind(st, 2, seq + n - 1);
}

int ls_sqlite_deaths_del(struct ls_sqlite_tx *tx, int64_t seq, int64_t n)
{
    int rc;
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_DEATH_CLASSES);
    bind_range(st, seq, n);
    while ((rc = ls_sqlite_tx_step(tx, st)) == 1) {
        rc = leave_class(tx, sqlite3_column_int64(st, 0), sqlite3_column_int64(st, 1));
        if (rc < 0) {
            (void)sqlite3_reset(st);
            return rc;
        }
    }
    if (rc < 0)
        return rc;
    st = ls_sqlite_tx_stmt(tx, LS_SQLITE_DEATH_DEL);
    bind_range(st, seq, n);
    return ls_sqlite_tx_do(tx, st);
}
