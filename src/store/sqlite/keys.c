#include "store/sqlite/keys.h"

#include <string.h>

#include "base/base.h"
#include "base/err.h"
#include "store/sqlite/hall.h"
#include "store/sqlite/sqlite_impl.h"

/* gates ------------------------------------------------------------------------------------------------------------ */

static int fail_damaged(struct ls_sqlite_tx *tx, const char *what)
{
    return lb_fail(tx->err, LADE_EFORMAT, tx->op, "%s is damaged: %s", tx->db->path, what);
}

static int read_gate(struct ls_sqlite_tx *tx, sqlite3_stmt *st, struct ls_sqlite_gate *g)
{
    *g = (struct ls_sqlite_gate){.v = sqlite3_column_int64(st, 2),
                                 .free_at = sqlite3_column_int64(st, 3),
                                 .free_until_us = sqlite3_column_int64(st, 4),
                                 .tat_us = sqlite3_column_int64(st, 5),
                                 .held = sqlite3_column_int64(st, 6),
                                 .alone = sqlite3_column_int64(st, 7),
                                 .calm_ms = sqlite3_column_int64(st, 8)};
    bool good = lq_limit_read(ls_sqlite_column(st, 0), &g->limit) &&
                lq_limit_read(ls_sqlite_column(st, 1), &g->usual);
    (void)sqlite3_reset(st);
    return good ? 0 : fail_damaged(tx, "a limit cannot be read");
}

int ls_sqlite_gate(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q, struct ls_sqlite_gate **out)
{
    *out = q->gate;
    if (q->gate || !q->gated)
        return 0;
    struct ls_sqlite_gate *g = lb_arena_alloc(&tx->kept, sizeof(*g));
    if (!g)
        return lb_fail_nomem(tx->err, tx->op);
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_GATE_GET);
    if (st)
        ls_sqlite_bind(st, 1, q->num);
    int rc = ls_sqlite_tx_step(tx, st);
    if (rc == 0)
        return fail_damaged(tx, "a queue with limits has no gate");
    if (rc == 1)
        rc = read_gate(tx, st, g);
    if (rc == 0)
        *out = q->gate = g;
    return rc;
}

int ls_sqlite_gate_make(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q,
                        struct ls_sqlite_gate **out)
{
    if (q->gated)
        return ls_sqlite_gate(tx, q, out);
    struct ls_sqlite_gate *g = lb_arena_alloc(&tx->kept, sizeof(*g));
    if (!g)
        return lb_fail_nomem(tx->err, tx->op);
    *g = (struct ls_sqlite_gate){.dirty = true};
    *out = q->gate = g;
    q->gated = q->dirty = true;
    return 0;
}

static int write_gate(struct ls_sqlite_tx *tx, const struct ls_sqlite_queue *q)
{
    const struct ls_sqlite_gate *g = q->gate;
    char limit[LQ_LIMIT_TEXT], usual[LQ_LIMIT_TEXT];
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_GATE_SET);
    if (!st)
        return ls_sqlite_tx_fail(tx);
    lq_limit_write(&g->limit, limit);
    lq_limit_write(&g->usual, usual);
    ls_sqlite_bind(st, 1, q->num);
    ls_sqlite_bind_text(st, 2, lb_slice_str(limit));
    ls_sqlite_bind_text(st, 3, lb_slice_str(usual));
    ls_sqlite_bind(st, 4, g->v);
    ls_sqlite_bind(st, 5, g->free_at);
    ls_sqlite_bind(st, 6, g->free_until_us);
    ls_sqlite_bind(st, 7, g->tat_us);
    ls_sqlite_bind(st, 8, g->held);
    ls_sqlite_bind(st, 9, g->alone);
    ls_sqlite_bind(st, 10, g->calm_ms);
    return ls_sqlite_tx_do(tx, st);
}

/* keys ------------------------------------------------------------------------------------------------------------- */

struct lq_limit ls_sqlite_key_limit(const struct ls_sqlite_key *k)
{
    return lq_limit_join(&k->own, &k->q->gate->usual);
}

/* True when they differ from those that were noted before. */
static bool note_counts(struct ls_sqlite_key *k)
{
    const int64_t now[] = {k->facts.ready, k->facts.active, k->waiting, k->facts.away, k->ended};
    bool differ = memcmp(now, k->was, sizeof(now)) != 0;
    memcpy(k->was, now, sizeof(now));
    return differ;
}

void ls_sqlite_key_read(sqlite3_stmt *st, struct ls_sqlite_key *k)
{
    int i = 0;
    k->num = sqlite3_column_int64(st, i++);
    k->place = (enum lq_key_place)sqlite3_column_int(st, i++);
    k->at = sqlite3_column_int64(st, i++);
    k->facts.ready = sqlite3_column_int64(st, i++);
    k->facts.active = sqlite3_column_int64(st, i++);
    k->waiting = sqlite3_column_int64(st, i++);
    k->facts.away = sqlite3_column_int64(st, i++);
    k->ended = sqlite3_column_int64(st, i++);
    k->facts.paused = sqlite3_column_int64(st, i++) != 0;
    k->facts.until_us = sqlite3_column_int64(st, i++);
    k->facts.tat_us = sqlite3_column_int64(st, i++);
    k->own = (struct lq_limit){0};
    /* One that cannot be read is none: check finds it. */
    if (sqlite3_column_type(st, i) != SQLITE_NULL)
        (void)lq_limit_read(ls_sqlite_column(st, i), &k->own);
    k->name = ls_sqlite_column(st, i + 1);
    k->was_held = k->place >= LQ_KEY_TIMED ? k->facts.ready : 0;
    (void)note_counts(k);
}

static void list(struct ls_sqlite_tx *tx, struct ls_sqlite_key *k)
{
    if (k->touched)
        return;
    k->touched = true;
    k->link = tx->keys;
    tx->keys = k;
}

void ls_sqlite_key_touch(struct ls_sqlite_tx *tx, struct ls_sqlite_key *k)
{
    k->dirty = true;
    list(tx, k);
}

static bool keep(struct ls_sqlite_tx *tx, struct ls_sqlite_key *k)
{
    k->next_kept = tx->all_keys;
    tx->all_keys = k;
    tx->n_keys++;
    return lb_map_put(&tx->keys_by_num, lb_slice(&k->num, sizeof(k->num)), k) == 0 &&
           lb_map_put(&tx->keys_by_name,
                      lb_slice(k->name.p - sizeof(int64_t), k->name.n + sizeof(int64_t)), k) == 0;
}

/* A record of its own, its name behind it. NULL when out of memory. */
static struct ls_sqlite_key *make_record(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q,
                                         struct lb_slice name)
{
    struct ls_sqlite_key *k = lb_arena_alloc(&tx->kept, sizeof(*k) + sizeof(q->num) + name.n);
    if (!k)
        return NULL;
    *k = (struct ls_sqlite_key){.q = q};
    uint8_t *bytes = (uint8_t *)(k + 1);
    memcpy(bytes, &q->num, sizeof(q->num));
    if (name.n > 0)
        memcpy(bytes + sizeof(q->num), name.p, name.n);
    k->name = lb_slice(bytes + sizeof(q->num), name.n);
    return k;
}

/* Takes up the row of a statement, which is reset. */
static int keep_row(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q, sqlite3_stmt *st,
                    struct ls_sqlite_key **out)
{
    struct ls_sqlite_key read = {0};
    struct ls_sqlite_gate *gate;
    ls_sqlite_key_read(st, &read);
    struct ls_sqlite_key *k = make_record(tx, q, read.name);
    if (k) {
        read.name = k->name;
        read.q = q;
        *k = read;
    }
    (void)sqlite3_reset(st);
    if (!k || !keep(tx, k))
        return lb_fail_nomem(tx->err, tx->op);
    *out = k;
    return ls_sqlite_gate(tx, q, &gate); /* whatever is asked of a key, the default counts */
}

int ls_sqlite_key_find(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q, struct lb_slice name,
                       struct ls_sqlite_key **out)
{
    uint8_t bytes[sizeof(q->num) + LADE_KEY_MAX];
    size_t n = LB_MIN(name.n, (size_t)LADE_KEY_MAX);
    *out = NULL;
    if (!q->gated)
        return 0;
    memcpy(bytes, &q->num, sizeof(q->num));
    memcpy(bytes + sizeof(q->num), name.p, n);
    *out = lb_map_get(&tx->keys_by_name, lb_slice(bytes, sizeof(q->num) + n));
    if (*out)
        return 0;
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_KEY_FIND);
    if (st) {
        ls_sqlite_bind(st, 1, q->num);
        ls_sqlite_bind_blob(st, 2, name);
    }
    int rc = ls_sqlite_tx_step(tx, st);
    return rc == 1 ? keep_row(tx, q, st, out) : rc;
}

int ls_sqlite_key_get(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q, int64_t num,
                      struct ls_sqlite_key **out)
{
    *out = lb_map_get(&tx->keys_by_num, lb_slice(&num, sizeof(num)));
    if (*out)
        return 0;
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_KEY_GET);
    if (st)
        ls_sqlite_bind(st, 1, num);
    int rc = ls_sqlite_tx_step(tx, st);
    if (rc == 0)
        return fail_damaged(tx, "a job has a key that is not there");
    return rc == 1 ? keep_row(tx, q, st, out) : rc;
}

int ls_sqlite_key_make(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q, struct lb_slice name,
                       struct ls_sqlite_key **out)
{
    struct ls_sqlite_gate *gate;
    int rc = ls_sqlite_key_find(tx, q, name, out);
    if (rc < 0 || *out)
        return rc;
    rc = ls_sqlite_gate_make(tx, q, &gate);
    if (rc < 0)
        return rc;
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_KEY_ADD);
    if (!st)
        return ls_sqlite_tx_fail(tx);
    ls_sqlite_bind(st, 1, q->num);
    ls_sqlite_bind_blob(st, 2, name);
    rc = ls_sqlite_tx_do(tx, st);
    if (rc < 0)
        return rc;
    struct ls_sqlite_key *k = make_record(tx, q, name);
    if (!k)
        return lb_fail_nomem(tx->err, tx->op);
    k->num = sqlite3_last_insert_rowid(tx->db->h);
    ls_sqlite_key_touch(tx, k);
    *out = k;
    return keep(tx, k) ? 0 : lb_fail_nomem(tx->err, tx->op);
}

int ls_sqlite_key_count(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q,
                        const struct ls_sqlite_run *r, int64_t n)
{
    struct ls_sqlite_key *k;
    int rc = ls_sqlite_key_get(tx, q, r->key, &k);
    if (rc < 0)
        return rc;
    list(tx, k);
    switch ((enum lade_state)r->state) {
    case LADE_STATE_READY:
        k->facts.ready += n;
        break;
    case LADE_STATE_ACTIVE:
        k->facts.active += n;
        break;
    case LADE_STATE_SCHEDULED:
    case LADE_STATE_RETRYING:
        k->waiting += n;
        k->facts.away += r->flags & LS_SQLITE_AWAY ? n : 0;
        break;
    case LADE_STATE_COMPLETED:
    case LADE_STATE_DEAD:
    case LADE_STATE_CANCELLED:
    default:
        k->ended += n;
        break;
    }
    return 0;
}

int ls_sqlite_key_goes_first(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q,
                             const struct ls_sqlite_run *r, bool *first)
{
    struct ls_sqlite_key *k;
    *first = false;
    if (!(r->flags & LS_SQLITE_AWAY))
        return 0;
    int rc = ls_sqlite_key_get(tx, q, r->key, &k);
    if (rc == 0)
        *first = ls_sqlite_key_limit(k).order == LADE_KEY_ORDER_FIFO;
    return rc;
}

int ls_sqlite_run_return(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q,
                         const struct ls_sqlite_run *r, struct ls_sqlite_run *part)
{
    bool first = false;
    int rc = ls_sqlite_hall_name(tx, q, part);
    if (rc == 0)
        rc = ls_sqlite_key_goes_first(tx, q, r, &first);
    if (rc == 0 && first)
        return ls_sqlite_run_to_front(tx, q, part);
    if (rc == 0)
        ls_sqlite_run_to_ready(tx, q, part);
    return rc;
}

/* places ----------------------------------------------------------------------------------------------------------- */

static bool is_needed(const struct ls_sqlite_key *k, int64_t now_us)
{
    const struct lq_key_facts *f = &k->facts;
    return f->ready + f->active + k->waiting + k->ended > 0 || f->paused || f->until_us > now_us ||
           f->tat_us > now_us || !lq_limit_is_zero(&k->own);
}

/* The place that follows from its numbers, whom to wake, and what of its queue counts as held. */
static void place(struct ls_sqlite_tx *tx, struct ls_sqlite_key *k, int64_t was_ready)
{
    struct ls_sqlite_queue *q = k->q;
    struct lq_limit l = ls_sqlite_key_limit(k);
    enum lade_key_hold why;
    int64_t at, now_us = tx->now_ms * 1000;
    int64_t room = lq_key_room(&l, &k->facts, now_us, &at, &why);
    if (room > 0 && k->place != LQ_KEY_RING) {
        k->place = LQ_KEY_RING;
        k->at = q->gate->v + lq_limit_stride(&l);
        q->ring += (size_t)room;
    } else if (room > 0 && k->facts.ready > was_ready) {
        q->ring += (size_t)LB_MIN(room, k->facts.ready - was_ready);
    } else if (room == 0 && why == LADE_HELD_NOT) {
        k->place = LQ_KEY_IDLE;
        k->at = 0;
    } else if (room == 0) {
        bool timed = at != LQ_NOT_BY_TIME;
        int64_t at_ms = timed ? (at + 999) / 1000 : 0;
        if (timed && (q->ring_due == 0 || at_ms < q->ring_due))
            q->ring_due = LB_MAX(at_ms, 1);
        k->place = timed ? LQ_KEY_TIMED : LQ_KEY_PARKED;
        k->at = timed ? at : 0;
    }
    int64_t held = k->place >= LQ_KEY_TIMED ? k->facts.ready : 0;
    if (held != k->was_held || k->facts.ready != was_ready)
        q->gate->dirty = true;
    q->gate->alone += k->facts.ready - was_ready;
    q->gate->held += held - k->was_held;
    k->was_held = held;
}

static int write_key(struct ls_sqlite_tx *tx, const struct ls_sqlite_key *k)
{
    char text[LQ_LIMIT_TEXT];
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_KEY_SET);
    if (!st)
        return ls_sqlite_tx_fail(tx);
    const int64_t v[] = {k->num,          k->place,          k->at,          k->facts.ready,
                         k->facts.active, k->waiting,        k->facts.away,  k->ended,
                         k->facts.paused, k->facts.until_us, k->facts.tat_us};
    for (size_t i = 0; i < LB_ARRAY_LEN(v); i++)
        ls_sqlite_bind(st, (int)i + 1, v[i]);
    if (lq_limit_is_zero(&k->own)) {
        (void)sqlite3_bind_null(st, (int)LB_ARRAY_LEN(v) + 1);
    } else {
        lq_limit_write(&k->own, text);
        ls_sqlite_bind_text(st, (int)LB_ARRAY_LEN(v) + 1, lb_slice_str(text));
    }
    return ls_sqlite_tx_do(tx, st);
}

static int delete_key(struct ls_sqlite_tx *tx, struct ls_sqlite_key *k)
{
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_KEY_DEL);
    if (st)
        ls_sqlite_bind(st, 1, k->num);
    (void)lb_map_del(&tx->keys_by_name,
                     lb_slice(k->name.p - sizeof(int64_t), k->name.n + sizeof(int64_t)));
    (void)lb_map_del(&tx->keys_by_num, lb_slice(&k->num, sizeof(k->num)));
    return ls_sqlite_tx_do(tx, st);
}

/* Active jobs ended under a limit of the queue: others may run in their stead. */
static int pass_slots(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q)
{
    struct ls_sqlite_gate *g;
    int rc = ls_sqlite_gate(tx, q, &g);
    if (rc == 0 && g && g->limit.concurrency > 0)
        q->ring += (size_t)q->freed;
    q->freed = 0;
    return rc;
}

int ls_sqlite_keys_flush(struct ls_sqlite_tx *tx)
{
    int rc = 0;
    for (struct ls_sqlite_key *k; rc == 0 && (k = tx->keys);) {
        tx->keys = k->link;
        int64_t was_ready = k->was[0];
        bool changed = note_counts(k) || k->dirty;
        k->touched = k->dirty = false;
        if (!changed)
            continue;
        place(tx, k, was_ready);
        rc = is_needed(k, tx->now_ms * 1000) ? write_key(tx, k) : delete_key(tx, k);
    }
    for (struct ls_sqlite_queue *q = tx->list; q && rc == 0; q = q->link) {
        if (q->gated && q->freed > 0)
            rc = pass_slots(tx, q);
        if (rc == 0 && q->gate && q->gate->dirty) {
            q->gate->dirty = false;
            rc = write_gate(tx, q);
        }
    }
    return rc;
}

void ls_sqlite_keys_forget(struct ls_sqlite_tx *tx)
{
    for (struct ls_sqlite_key *k = tx->all_keys; k; k = k->next_kept) {
        (void)lb_map_del(&tx->keys_by_num, lb_slice(&k->num, sizeof(k->num)));
        (void)lb_map_del(&tx->keys_by_name,
                         lb_slice(k->name.p - sizeof(int64_t), k->name.n + sizeof(int64_t)));
    }
    tx->keys = tx->all_keys = NULL;
}
