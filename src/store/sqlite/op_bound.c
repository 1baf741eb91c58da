/*
 * op_bound.c - how many jobs and bytes may wait in a queue
 *
 * A put asks before it writes anything. Where no queue of it has a bound that costs one look-up of each queue, which the put would do
 * anyway; where one has, its items that may be duplicates are looked up one by one.
 */
#include <string.h>

#include "base/base.h"
#include "base/err.h"
#include "base/map.h"
#include "store/sqlite/dead.h"
#include "store/sqlite/sqlite_impl.h"

bool ls_sqlite_bound_fits(const struct ls_sqlite_queue *q, int64_t n, int64_t bytes)
{
    if (!q)
        return true;
    int64_t waiting =
        q->count[LADE_STATE_READY] + q->count[LADE_STATE_SCHEDULED] + q->count[LADE_STATE_RETRYING];
    return lq_bound_fits(&q->bound, waiting, n, bytes);
}

/* The one number of a statement with one or two. */
static int read_sum(struct ls_sqlite_tx *tx, enum ls_sqlite_sql which, int64_t a, int64_t b,
                    int64_t *sum)
{
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, which);
    if (st) {
        ls_sqlite_bind(st, 1, a);
        if (which == LS_SQLITE_BYTES_OF)
            ls_sqlite_bind(st, 2, b);
    }
    int rc = ls_sqlite_tx_step(tx, st);
    if (rc < 0)
        return rc;
    *sum = sqlite3_column_int64(st, 0);
    (void)sqlite3_reset(st);
    return 0;
}

bool ls_sqlite_state_waits(int64_t state)
{
    return state == LADE_STATE_SCHEDULED || state == LADE_STATE_READY ||
           state == LADE_STATE_RETRYING;
}

int ls_sqlite_bytes_count(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q,
                          struct ls_sqlite_run r, int sign)
{
    int64_t sum = 0;
    int rc = ls_sqlite_state_waits(r.state)
                 ? read_sum(tx, LS_SQLITE_BYTES_OF, r.job, r.job + r.n - 1, &sum)
                 : 0;
    q->bound.bytes += sign * sum;
    q->bytes_dirty = q->bytes_dirty || sum != 0;
    return rc;
}

int ls_sqlite_bytes_all(struct ls_sqlite_tx *tx, int64_t queue, int64_t *sum)
{
    return read_sum(tx, LS_SQLITE_BYTES_ALL, queue, 0, sum);
}

/* What a put has asked for so far, by id and by unique key; both with the number of the queue in front. */
struct seen {
    struct lb_map ids, keys;
};

/* True when it was there. Out of memory: rc. */
static bool was_seen(struct ls_sqlite_tx *tx, struct lb_map *map, int64_t queue,
                     struct lb_slice what, int *rc)
{
    uint8_t *p = lb_arena_alloc(&tx->arena, sizeof(queue) + what.n);
    if (!p) {
        *rc = lb_fail_nomem(tx->err, tx->op);
        return false;
    }
    memcpy(p, &queue, sizeof(queue));
    if (what.n > 0)
        memcpy(p + sizeof(queue), what.p, what.n);
    struct lb_slice key = lb_slice(p, sizeof(queue) + what.n);
    if (lb_map_get(map, key))
        return true;
    if (lb_map_put(map, key, map) < 0)
        *rc = lb_fail_nomem(tx->err, tx->op);
    return false;
}

/* Whether the item would add a job, as put_one will find. */
static bool is_new(struct ls_sqlite_tx *tx, const struct ls_sqlite_queue *q, struct seen *seen,
                   struct lq_put *it, int *rc)
{
    struct ls_sqlite_lock lock = {0};
    if (!it->fresh) {
        if (ls_sqlite_put_known(tx, q, it->id, rc) || *rc < 0)
            return false;
    }
    if (it->unique.n > 0) {
        *rc = ls_sqlite_put_lock(tx, q, it, &lock);
        if (*rc < 0)
            return false;
        bool held = *rc == LADE_DUPLICATE || was_seen(tx, &seen->keys, q->num, it->unique, rc);
        *rc = LB_MIN(*rc, 0);
        if (*rc < 0 || (held && it->conflict != LQ_CONFLICT_TRAIL))
            return false;
    }
    return it->fresh || !was_seen(tx, &seen->ids, q->num, it->id, rc);
}

/* Whether one of the queues has a bound. An item of the queue of the one before costs nothing. */
static int find_bound(struct ls_sqlite_tx *tx, const struct lq_put *put, size_t n, bool *bounded)
{
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0; i++) {
        struct ls_sqlite_queue *q;
        if (i > 0 && put[i].queue == put[i - 1].queue)
            continue;
        rc = ls_sqlite_tx_queue(tx, put[i].queue, &q);
        if (rc < 0 || !q || !lq_bound_is_set(&q->bound))
            continue;
        *bounded = true;
        q->needs = q->needs_bytes = 0;
    }
    return rc;
}

static int count_needs(struct ls_sqlite_tx *tx, struct lq_put *put, size_t n)
{
    struct seen seen;
    int rc = 0;
    lb_map_init(&seen.ids);
    lb_map_init(&seen.keys);
    for (size_t i = 0; i < n && rc == 0; i++) {
        struct ls_sqlite_queue *q;
        rc = ls_sqlite_tx_queue(tx, put[i].queue, &q);
        if (rc == 0 && q && lq_bound_is_set(&q->bound) && is_new(tx, q, &seen, &put[i], &rc)) {
            q->needs++;
            q->needs_bytes += (int64_t)put[i].body.n;
        }
    }
    lb_map_fini(&seen.ids);
    lb_map_fini(&seen.keys);
    return rc;
}

int ls_sqlite_bounds_ask(struct ls_sqlite_tx *tx, struct lq_put *put, size_t n)
{
    bool bounded = false, all = true;
    int rc = find_bound(tx, put, n, &bounded);
    if (rc == 0 && bounded)
        rc = count_needs(tx, put, n);
    for (size_t i = 0; bounded && rc == 0 && i < n; i++) {
        struct ls_sqlite_queue *q;
        rc = ls_sqlite_tx_queue(tx, put[i].queue, &q);
        bool fits = rc < 0 || !q || ls_sqlite_bound_fits(q, q->needs, q->needs_bytes);
        put[i].outcome = fits ? LADE_DONE : LADE_FULL;
        put[i].holder[0] = 0;
        all = all && fits;
    }
    return rc < 0 || all ? rc : LADE_FULL;
}

struct set {
    const char *queue;
    const struct lq_bound *bound;
};

static int run_set(struct ls_sqlite_tx *tx, void *arg)
{
    const struct set *set = arg;
    struct ls_sqlite_queue *q;
    int64_t bytes = 0;
    int rc = ls_sqlite_tx_queue_make(tx, set->queue, &q);
    if (rc == 0 && set->bound->max_bytes > 0)
        rc = ls_sqlite_bytes_all(tx, q->num, &bytes);
    sqlite3_stmt *st = rc == 0 ? ls_sqlite_tx_stmt(tx, LS_SQLITE_BOUND_SET) : NULL;
    if (rc < 0 || !st)
        return rc < 0 ? rc : ls_sqlite_tx_fail(tx);
    q->bound = *set->bound;
    q->bound.bytes = bytes;
    q->ring_watchers = true;
    ls_sqlite_bind(st, 1, q->num);
    ls_sqlite_bind(st, 2, q->bound.max_jobs);
    ls_sqlite_bind(st, 3, q->bound.block ? LADE_FULL_BLOCK : LADE_FULL_REJECT);
    ls_sqlite_bind(st, 4, q->bound.max_bytes);
    ls_sqlite_bind(st, 5, bytes);
    return ls_sqlite_tx_do(tx, st);
}

static int set_bound(struct lq_store *s, const char *queue, const struct lq_bound *bound,
                     lade_err *err)
{
    struct set set = {queue, bound};
    struct ls_sqlite_op op = {
        .name = "bound", .point = "sqlite.bound.commit", .run = run_set, .arg = &set, .jobs = 1};
    return ls_sqlite_write(ls_sqlite_of(s), &op, err);
}

static int get_bound(struct lq_store *s, const char *queue, struct lq_bound *out, lade_err *err)
{
    struct ls_sqlite *ss = ls_sqlite_of(s);
    struct ls_sqlite_tx tx;
    struct ls_sqlite_queue *q = NULL;
    int rc = ls_sqlite_read_enter(ss, &tx, "bound", err);
    if (rc == 0)
        rc = ls_sqlite_tx_queue(&tx, queue, &q);
    if (rc == 0 && q)
        *out = q->bound;
    return ls_sqlite_read_leave(ss, &tx, rc == 0 && !q ? LADE_NOT_FOUND : rc);
}

const struct lq_bound_ops ls_sqlite_bound_ops = {.set = set_bound, .get = get_bound};
