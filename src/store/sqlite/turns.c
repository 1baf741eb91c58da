/*
 * turns.c - ready -> active of a queue that has keys or limits
 *
 * As many heads of the ring are read as there may be turns, and kept sorted in memory while the turns go round. When whose turn it
 * is lies behind the last one read, others may come before it: then the numbers are written and the ring is read again.
 */
#include <string.h>

#include "base/base.h"
#include "base/err.h"
#include "base/fault.h"
#include "store/sqlite/hall.h"
#include "store/sqlite/keys.h"
#include "store/sqlite/sqlite_impl.h"

struct ring {
    struct ls_sqlite_tx *tx;
    struct ls_sqlite_queue *q;
    struct ls_sqlite_gate *gate;
    struct ls_sqlite_key **heap; /* the least first */
    size_t n;
    /* `at` and name of the last one read, when there may be more; else INT64_MAX and "". */
    int64_t bound;
    struct lb_slice bound_name;
    bool has_free; /* jobs without a key */
    /* What stands first in the hall; n = 0: nothing. */
    struct ls_sqlite_run hall;
};

enum whose { NOBODYS, FREE, HALL, HEAD };

static int64_t hall_at(const struct ring *r)
{
    return r->hall.n > 0 ? LB_MAX(ls_sqlite_hall_at(&r->hall), r->gate->v) : INT64_MAX;
}

static int look_at_hall(struct ring *r)
{
    r->hall.n = 0;
    int rc = r->q->hall > 0 ? ls_sqlite_hall_first(r->tx, r->q, &r->hall) : 0;
    return rc < 0 ? rc : 0;
}

static int compare_names(struct lb_slice a, struct lb_slice b)
{
    size_t n = LB_MIN(a.n, b.n);
    int order = n > 0 ? memcmp(a.p, b.p, n) : 0;
    return order ? order : (a.n > b.n) - (a.n < b.n);
}

static bool is_named_before(const struct ls_sqlite_key *a, const struct ls_sqlite_key *b)
{
    return compare_names(a->name, b->name) < 0;
}

static bool is_before(const struct ls_sqlite_key *a, const struct ls_sqlite_key *b)
{
    return a->at != b->at ? a->at < b->at : is_named_before(a, b);
}

/* The head has changed, or went: down to where it belongs. */
static void sink(struct ring *r)
{
    size_t i = 0;
    for (;;) {
        size_t least = i;
        for (size_t c = 2 * i + 1; c <= 2 * i + 2; c++) {
            if (c < r->n && is_before(r->heap[c], r->heap[least]))
                least = c;
        }
        if (least == i)
            return;
        struct ls_sqlite_key *k = r->heap[i];
        r->heap[i] = r->heap[least];
        r->heap[least] = k;
        i = least;
    }
}

static void drop_head(struct ring *r)
{
    r->heap[0] = r->heap[--r->n];
    sink(r);
}

int ls_sqlite_run_first_of_key(struct ls_sqlite_tx *tx, const struct ls_sqlite_queue *q,
                               int64_t num, struct ls_sqlite_run *r)
{
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_RUN_FIRST_OF_KEY);
    if (st) {
        ls_sqlite_bind(st, 1, q->num);
        ls_sqlite_bind(st, 2, num * LQ_KEY_LEVELS);
        ls_sqlite_bind(st, 3, num * LQ_KEY_LEVELS + LQ_KEY_LEVELS - 1);
    }
    int rc = ls_sqlite_tx_step(tx, st);
    if (rc <= 0)
        return rc < 0 ? rc : LADE_NOT_FOUND;
    ls_sqlite_run_read(st, r);
    (void)sqlite3_reset(st);
    return 0;
}

/* Numbers of keys of a statement, into the transaction's arena. */
static int read_nums(struct ls_sqlite_tx *tx, sqlite3_stmt *st, size_t max, int64_t **num,
                     size_t *n)
{
    int rc;
    *n = 0;
    *num = lb_arena_alloc(&tx->arena, max * sizeof(**num));
    if (!*num)
        return lb_fail_nomem(tx->err, tx->op);
    while ((rc = ls_sqlite_tx_step(tx, st)) == 1) {
        LB_CHECK(*n < max);
        (*num)[(*n)++] = sqlite3_column_int64(st, 0);
    }
    return rc;
}

/* Keys whose time has come are placed anew. */
static int ripen(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q)
{
    int64_t *num = NULL;
    size_t n = 0;
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_KEY_RIPE);
    if (st) {
        ls_sqlite_bind(st, 1, q->num);
        ls_sqlite_bind(st, 2, tx->now_ms * 1000);
        ls_sqlite_bind(st, 3, LQ_TAKE_MAX);
    }
    int rc = read_nums(tx, st, LQ_TAKE_MAX, &num, &n);
    for (size_t i = 0; i < n && rc == 0; i++) {
        struct ls_sqlite_key *k;
        rc = ls_sqlite_key_get(tx, q, num[i], &k);
        if (rc == 0)
            ls_sqlite_key_touch(tx, k);
    }
    return rc == 0 && n > 0 ? ls_sqlite_keys_flush(tx) : rc;
}

/* The heads of the ring, at most max, sorted already. */
static int read_ring(struct ring *r, size_t max)
{
    struct ls_sqlite_tx *tx = r->tx;
    int64_t *num = NULL;
    size_t n = 0;
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_KEY_RING);
    if (st) {
        ls_sqlite_bind(st, 1, r->q->num);
        ls_sqlite_bind(st, 2, (int64_t)max);
    }
    int rc = read_nums(tx, st, max, &num, &n);
    if (rc < 0)
        return rc;
    r->heap = lb_arena_alloc(&tx->arena, (n + 1) * sizeof(void *));
    if (!r->heap)
        return lb_fail_nomem(tx->err, tx->op);
    for (r->n = 0; r->n < n && rc == 0; r->n += rc == 0)
        rc = ls_sqlite_key_get(tx, r->q, num[r->n], &r->heap[r->n]);
    bool all = n < max || rc < 0;
    r->bound = all ? INT64_MAX : r->heap[n - 1]->at;
    r->bound_name = all ? lb_slice_str("") : r->heap[n - 1]->name;
    return rc;
}

/* How many turns in a row the head of the ring has, t NULL: those without a key. */
static int64_t count_turns(const struct ring *r, const struct ls_sqlite_key *k, int64_t stride)
{
    const struct ls_sqlite_gate *g = r->gate;
    if (!k && r->hall.n > 0) /* as many as each of those in the hall */
        return LB_MAX(lq_key_turns(g->free_at, stride, hall_at(r), true), LQ_TURN_JOBS);
    if (!k) {
        int64_t most = lq_key_turns(g->free_at, stride, r->bound, true);
        return r->n > 0 ? LB_MIN(most, lq_key_turns(g->free_at, stride, r->heap[0]->at, true))
                        : most;
    }
    int64_t turns = lq_key_turns(k->at, stride, r->bound, false);
    if (r->hall.n > 0)
        turns = LB_MIN(turns, lq_key_turns(k->at, stride, hall_at(r), false));
    if (r->has_free)
        turns = LB_MIN(turns, lq_key_turns(k->at, stride, g->free_at, false));
    for (size_t i = 1; i <= 2 && i < r->n; i++)
        turns = LB_MIN(turns,
                       lq_key_turns(k->at, stride, r->heap[i]->at, is_named_before(k, r->heap[i])));
    return turns;
}

/* Leases up to n of a key's ready jobs, from the first run on. *done: how many there were. */
static int serve(struct ring *r, int64_t num, int64_t n, ls_sqlite_move_fn move, void *ctx,
                 int64_t *done)
{
    *done = 0;
    while (*done < n) {
        struct ls_sqlite_run run;
        int rc = ls_sqlite_run_first_of_key(r->tx, r->q, num, &run);
        if (rc < 0)
            return rc;
        if (rc == LADE_NOT_FOUND)
            break;
        int64_t k = LB_MIN(run.n, n - *done);
        rc = move(r->tx, ctx, &run, k);
        if (rc < 0)
            return rc;
        *done += k;
    }
    return move(r->tx, ctx, NULL, 0); /* now they count as active */
}

static void spend(struct ring *r, int64_t at, int64_t n)
{
    struct ls_sqlite_gate *g = r->gate;
    g->v = LB_MAX(g->v, at);
    g->tat_us = lq_rate_spend(&g->limit, g->tat_us, r->tx->now_ms * 1000, n);
    g->dirty = true;
}

static int serve_free(struct ring *r, int64_t max, ls_sqlite_move_fn move, void *ctx, int64_t *done)
{
    struct ls_sqlite_gate *g = r->gate;
    int64_t n = LB_MIN(max, count_turns(r, NULL, LQ_STRIDE));
    int rc = serve(r, 0, n, move, ctx, done);
    if (*done > 0) {
        spend(r, g->free_at + (*done - 1) * LQ_STRIDE, *done);
        g->free_at += *done * LQ_STRIDE;
    }
    r->has_free = *done == n;
    return rc;
}

static int serve_head(struct ring *r, int64_t max, ls_sqlite_move_fn move, void *ctx, int64_t *done)
{
    struct ls_sqlite_key *k = r->heap[0];
    struct lq_limit l = ls_sqlite_key_limit(k);
    enum lade_key_hold why;
    int64_t at, stride = lq_limit_stride(&l), now_us = r->tx->now_ms * 1000;
    int64_t room = lq_key_room(&l, &k->facts, now_us, &at, &why);
    k->at = LB_MAX(k->at, r->gate->v);
    int64_t n = LB_MIN(LB_MIN(max, room), count_turns(r, k, stride));
    ls_sqlite_key_touch(r->tx, k);
    *done = 0;
    int rc = n > 0 ? serve(r, k->num, n, move, ctx, done) : 0;
    if (*done > 0) {
        spend(r, k->at + (*done - 1) * stride, *done);
        k->at += *done * stride;
        k->facts.tat_us = lq_rate_spend(&l, k->facts.tat_us, now_us, *done);
    }
    if (rc == 0 && lq_key_room(&l, &k->facts, now_us, &at, &why) > 0)
        sink(r);
    else
        drop_head(r); /* the flush places it */
    return rc;
}

/* All that stands there at one virtual time, as it came. */
static int serve_hall(struct ring *r, int64_t max, ls_sqlite_move_fn move, void *ctx, int64_t *done)
{
    int64_t at = hall_at(r), rank = ls_sqlite_hall_at(&r->hall);
    int rc = 0;
    *done = 0;
    while (rc == 0 && *done < max && r->hall.n > 0 && ls_sqlite_hall_at(&r->hall) == rank) {
        int64_t k = LB_MIN(r->hall.n, max - *done);
        rc = move(r->tx, ctx, &r->hall, k);
        *done += k;
        if (rc == 0)
            rc = look_at_hall(r);
    }
    if (rc == 0)
        rc = move(r->tx, ctx, NULL, 0);
    if (*done > 0)
        spend(r, at, *done);
    return rc;
}

static enum whose find_turn(const struct ring *r)
{
    int64_t head = r->n > 0 ? r->heap[0]->at : INT64_MAX, hall = hall_at(r);
    if (r->has_free && r->gate->free_at <= LB_MIN(head, hall))
        return FREE;
    if (r->hall.n > 0 && hall <= head)
        return HALL;
    return r->n > 0 ? HEAD : NOBODYS;
}

/* Whether others, not read, may come before whose turn it is. */
static bool is_behind(const struct ring *r, enum whose whose)
{
    int64_t at = whose == FREE ? r->gate->free_at : whose == HALL ? hall_at(r) : r->heap[0]->at;
    return at > r->bound ||
           (at == r->bound && whose == HEAD && compare_names(r->heap[0]->name, r->bound_name) > 0);
}

/* One round of heads. *total: jobs leased. */
static int go_round(struct ring *r, int64_t max, ls_sqlite_move_fn move, void *ctx, int64_t *total)
{
    int rc = 0;
    *total = 0;
    while (rc == 0 && *total < max) {
        int64_t done = 0;
        enum whose whose = find_turn(r);
        if (whose == NOBODYS || is_behind(r, whose))
            break;
        if (whose == FREE)
            rc = serve_free(r, max - *total, move, ctx, &done);
        else if (whose == HALL)
            rc = serve_hall(r, max - *total, move, ctx, &done);
        else
            rc = serve_head(r, max - *total, move, ctx, &done);
        *total += done;
        LB_FAULT("sqlite.take.turn");
    }
    return rc;
}

int ls_sqlite_take_turns(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q, int64_t max,
                         ls_sqlite_move_fn move, void *ctx)
{
    struct ring r = {.tx = tx, .q = q};
    struct ls_sqlite_run run;
    int64_t at, total = 0, now_us = tx->now_ms * 1000;
    int rc = ls_sqlite_keys_flush(tx);
    if (rc == 0)
        rc = ls_sqlite_gate(tx, q, &r.gate);
    if (rc == 0)
        rc = ripen(tx, q);
    if (rc < 0 || !r.gate)
        return rc;
    if (r.gate->calm_ms == LS_SQLITE_STRICT && q->hall > 0) {
        /* A limit was set, and who set it is gone, or a handler was told to wait: nothing is taken until all is apart. */
        rc = ls_sqlite_hall_part(tx, q);
        if (rc == 0)
            rc = ls_sqlite_keys_flush(tx);
        if (rc != 0)
            return rc < 0 ? rc : 0;
    }
    rc = look_at_hall(&r);
    if (rc < 0)
        return rc;
    max = LB_MIN(max, lq_queue_room(&r.gate->limit, q->count[LADE_STATE_ACTIVE], r.gate->tat_us,
                                    now_us, &at));
    if (max <= 0 || q->count[LADE_STATE_READY] == 0)
        return 0;
    if (r.gate->free_until_us <= now_us) {
        rc = ls_sqlite_run_first_of_key(tx, q, 0, &run);
        r.has_free = rc == 0;
    }
    if (r.has_free && r.gate->free_at <= r.gate->v) {
        r.gate->free_at = r.gate->v + LQ_STRIDE;
        r.gate->dirty = true;
    }
    /* Again while heads turned out not to be allowed: behind them there may be others. */
    for (int64_t done = 1, seen = 1; rc >= 0 && total < max && seen > 0;) {
        rc = read_ring(&r, (size_t)(max - total) + 1);
        seen = (int64_t)r.n;
        if (rc == 0)
            rc = go_round(&r, max - total, move, ctx, &done);
        total += done;
        if (rc == 0)
            rc = ls_sqlite_keys_flush(tx);
    }
    q->ring -= LB_MIN(q->ring, (size_t)total);
    return rc < 0 ? rc : 0;
}

int ls_sqlite_next_turn(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q, int64_t *next_ms)
{
    struct ls_sqlite_gate *g;
    struct ls_sqlite_run run;
    int64_t next = LQ_NOT_BY_TIME, at, now_us = tx->now_ms * 1000;
    int rc = ls_sqlite_gate(tx, q, &g);
    if (rc < 0 || !g)
        return rc;
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_KEY_NEXT);
    if (st)
        ls_sqlite_bind(st, 1, q->num);
    rc = ls_sqlite_tx_step(tx, st);
    if (rc < 0)
        return rc;
    bool ring = false;
    if (rc == 1) {
        if (sqlite3_column_type(st, 0) != SQLITE_NULL)
            next = sqlite3_column_int64(st, 0);
        ring = sqlite3_column_int64(st, 1) != 0;
        (void)sqlite3_reset(st);
    }
    rc = ls_sqlite_run_first_of_key(tx, q, 0, &run);
    if (rc < 0)
        return rc;
    bool has_free = rc == 0;
    ring = ring || q->hall > 0;
    if (q->hall > 0 && g->calm_ms == LS_SQLITE_STRICT) /* the next take goes on taking it apart */
        next = now_us;
    if (has_free && g->free_until_us > now_us)
        next = LB_MIN(next, g->free_until_us);
    else
        ring = ring || has_free;
    if (ring && lq_queue_room(&g->limit, q->count[LADE_STATE_ACTIVE], g->tat_us, now_us, &at) == 0)
        next = LB_MIN(next, at);
    if (next != LQ_NOT_BY_TIME && (*next_ms == 0 || (next + 999) / 1000 < *next_ms))
        *next_ms = LB_MAX((next + 999) / 1000, 1);
    return 0;
}
