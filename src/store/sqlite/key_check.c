/* key_check.c - keys against the runs that have them, and their places against their numbers */
#include <string.h>

#include "base/base.h"
#include "store/sqlite/hall.h"
#include "store/sqlite/keys.h"
#include "store/sqlite/sqlite_impl.h"

struct check {
    struct ls_sqlite_tx *tx;
    lq_finding_fn report;
    void *ctx;
    struct ls_sqlite_queue *q; /* of the key at hand */
    int64_t held;
};

static void find(const struct check *c, const struct ls_sqlite_key *k, const char *what)
{
    char text[256];
    (void)snprintf(text, sizeof(text), "%s: key %.*s", what, (int)LB_MIN(k->name.n, (size_t)80),
                   (const char *)k->name.p);
    c->report(c->ctx, c->q ? c->q->name : "?", text);
}

/* C-076: none waits for a slot that is free. */
static void check_place(struct check *c, const struct ls_sqlite_key *k)
{
    struct lq_limit l = ls_sqlite_key_limit(k);
    enum lade_key_hold why;
    int64_t at, room = lq_key_room(&l, &k->facts, c->tx->now_ms * 1000, &at, &why);
    if ((k->facts.ready > 0) != (k->place != LQ_KEY_IDLE))
        find(c, k, "place and ready jobs do not agree");
    if (k->place == LQ_KEY_PARKED && room > 0)
        find(c, k, "held though it may run");
    if (k->place == LQ_KEY_TIMED && room == 0 && k->at > at)
        find(c, k, "held for too long");
}

/* The sums of its runs, columns 1.. of st; NULL: it has none. */
static void check_numbers(const struct check *c, const struct ls_sqlite_key *k, sqlite3_stmt *st)
{
    const int64_t has[] = {k->facts.ready, k->facts.active, k->waiting, k->facts.away, k->ended};
    bool right = true;
    for (size_t i = 0; i < LB_ARRAY_LEN(has); i++)
        right = right && has[i] == (st ? sqlite3_column_int64(st, (int)i + 1) : 0);
    if (!right)
        find(c, k, "counts are wrong");
    if (st &&
        (sqlite3_column_int64(st, 6) != k->q->num || sqlite3_column_int64(st, 7) != k->q->num))
        find(c, k, "jobs of another queue have it");
}

/* Reads the key of a row of KEY_ALL. LADE_NOT_FOUND when its queue is not there: told. */
static int read_key(struct check *c, sqlite3_stmt *st, struct ls_sqlite_key *k)
{
    struct ls_sqlite_gate *gate = NULL;
    struct lq_limit own;
    *k = (struct ls_sqlite_key){0};
    ls_sqlite_key_read(st, k);
    c->q = NULL;
    int rc = ls_sqlite_tx_queue_by_num(c->tx, sqlite3_column_int64(st, 13), &c->q);
    if (rc == 0)
        rc = ls_sqlite_gate(c->tx, c->q, &gate);
    if (rc < 0 || !gate) {
        find(c, k, "its queue or its gate is not there");
        return LADE_NOT_FOUND;
    }
    if (sqlite3_column_type(st, 11) != SQLITE_NULL &&
        !lq_limit_read(ls_sqlite_column(st, 11), &own))
        find(c, k, "its limit cannot be read");
    k->q = c->q;
    return 0;
}

/* Keys and sums side by side, both in the order of the keys' numbers. */
static int walk(struct check *c)
{
    sqlite3_stmt *keys = ls_sqlite_tx_stmt(c->tx, LS_SQLITE_KEY_ALL);
    sqlite3_stmt *sums = ls_sqlite_tx_stmt(c->tx, LS_SQLITE_KEY_SUMS);
    int rk = ls_sqlite_tx_step(c->tx, keys), rs = ls_sqlite_tx_step(c->tx, sums);
    while (rk == 1 && rs >= 0) {
        struct ls_sqlite_key k;
        if (rs == 1 && sqlite3_column_int64(sums, 0) < sqlite3_column_int64(keys, 0)) {
            c->report(c->ctx, "", "jobs have a key that is not there");
            rs = ls_sqlite_tx_step(c->tx, sums);
            continue;
        }
        bool has = rs == 1 && sqlite3_column_int64(sums, 0) == sqlite3_column_int64(keys, 0);
        if (read_key(c, keys, &k) == 0) {
            check_numbers(c, &k, has ? sums : NULL);
            check_place(c, &k);
            k.q->gate->held -= k.was_held; /* what is left is wrong */
            k.q->gate->alone -= k.facts.ready;
        }
        if (has)
            rs = ls_sqlite_tx_step(c->tx, sums);
        rk = ls_sqlite_tx_step(c->tx, keys);
    }
    if (rs == 1) {
        c->report(c->ctx, "", "jobs have a key that is not there");
        (void)sqlite3_reset(sums);
    }
    if (rk == 1)
        (void)sqlite3_reset(keys);
    return rk < 0 ? rk : rs < 0 ? rs : 0;
}

int ls_sqlite_keys_check(struct ls_sqlite_tx *tx, lq_finding_fn report, void *ctx)
{
    struct check c = {.tx = tx, .report = report, .ctx = ctx};
    lade_err *err = tx->err, missing;
    tx->now_ms = ls_sqlite_now_ms(tx->s);
    tx->err = &missing; /* what is missing is a finding, no failure */
    int rc = walk(&c);
    tx->err = err;
    for (struct ls_sqlite_queue *q = tx->list; q; q = q->link) {
        if (q->gate && q->gate->held != 0)
            report(ctx, q->name, "number of held jobs is wrong");
        if (q->gate && q->gate->alone != 0)
            report(ctx, q->name, "number of ready jobs of keys is wrong");
        if (rc == 0)
            rc = ls_sqlite_hall_check(tx, q, report, ctx);
    }
    return rc < 0 ? ls_sqlite_tx_fail(tx) : 0;
}
