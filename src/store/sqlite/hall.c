#include "store/sqlite/hall.h"

#include "base/base.h"
#include "base/err.h"
#include "base/fault.h"
#include "base/mem.h"
#include "store/sqlite/sqlite_impl.h"

#define HALLS_MAX 32                 /* queues whose halls are counted at a time */
#define CATCH_UP  256                /* jobs of others that a put reads; more of them: not known */
#define V_MAX     (INT64_C(1) << 56) /* ranks are below 2^63 */

/* counting --------------------------------------------------------------------------------------------------------- */

static void free_hall(struct ls_sqlite_hall *h)
{
    lb_tally_fini(&h->now);
    lb_tally_fini(&h->before);
    lb_free(h);
}

/* The queue's, which is the first of the list then. NULL when out of memory. */
static struct ls_sqlite_hall *hall_of(struct ls_sqlite_tx *tx, int64_t queue)
{
    size_t n = 1;
    struct ls_sqlite_hall *h, **at = &tx->halls;
    for (; (h = *at) && h->queue != queue && n < HALLS_MAX; n++)
        at = &h->next;
    if (h)
        *at = h->next;
    if (h && h->queue != queue) { /* the one looked for least lately */
        free_hall(h);
        h = NULL;
    }
    if (!h)
        h = lb_calloc(1, sizeof(*h));
    if (!h)
        return NULL;
    h->queue = queue;
    h->next = tx->halls;
    tx->halls = h;
    return h;
}

void ls_sqlite_halls_begin(struct ls_sqlite_tx *tx)
{
    for (struct ls_sqlite_hall *h = tx->halls; h; h = h->next)
        h->asked = false;
}

void ls_sqlite_halls_stale(struct ls_sqlite_tx *tx)
{
    for (struct ls_sqlite_hall *h = tx->halls; h; h = h->next)
        h->stale = true;
}

void ls_sqlite_halls_forget(struct ls_sqlite_tx *tx)
{
    for (struct ls_sqlite_hall *h = tx->halls; h; h = h->next)
        h->known = false;
}

void ls_sqlite_halls_fini(struct ls_sqlite_tx *tx)
{
    while (tx->halls) {
        struct ls_sqlite_hall *h = tx->halls;
        tx->halls = h->next;
        free_hall(h);
    }
}

static void begin_to_count(struct ls_sqlite_hall *h, int64_t seen)
{
    lb_tally_clear(&h->now);
    lb_tally_clear(&h->before);
    h->now_rank = h->before_rank = 0;
    h->seen = seen;
    h->known = true;
    h->stale = false;
}

/* Counts the jobs of a run. What cannot be counted makes all unknown. */
static int count_run(struct ls_sqlite_tx *tx, struct ls_sqlite_hall *h,
                     const struct ls_sqlite_run *r)
{
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_JOB_BODIES);
    if (st) {
        ls_sqlite_bind(st, 1, r->job);
        ls_sqlite_bind(st, 2, r->job + r->n - 1);
    }
    int rc;
    while ((rc = ls_sqlite_tx_step(tx, st)) == 1) {
        struct lb_slice key = lq_body_key(ls_sqlite_column(st, 0));
        uint32_t *n = lb_tally_at(&h->now, lb_tally_hash(key));
        if (n)
            ++*n;
        else
            h->known = false;
    }
    h->now_rank = LB_MAX(h->now_rank, r->rank);
    return rc;
}

/* What others put meanwhile. */
static int catch_up(struct ls_sqlite_tx *tx, struct ls_sqlite_hall *h, int64_t till)
{
    struct ls_sqlite_run *run = lb_arena_alloc(&tx->arena, CATCH_UP * sizeof(*run));
    int64_t jobs = 0;
    size_t n = 0;
    int rc;
    if (!run)
        return lb_fail_nomem(tx->err, tx->op);
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_HALL_NEW);
    if (st) {
        ls_sqlite_bind(st, 1, h->queue);
        ls_sqlite_bind(st, 2, h->seen + 1);
    }
    while ((rc = ls_sqlite_tx_step(tx, st)) == 1) {
        ls_sqlite_run_read(st, &run[n]);
        int64_t counted = LB_MAX(h->seen + 1 - run[n].job, 0); /* it continues one that was there */
        run[n] = ls_sqlite_run_part(&run[n], counted, run[n].n - counted);
        jobs += run[n++].n;
        if (jobs >= CATCH_UP) {
            (void)sqlite3_reset(st);
            h->known = false;
            return 0;
        }
    }
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = count_run(tx, h, &run[i]);
    h->seen = till;
    h->stale = false;
    return rc;
}

/* Of the two times the older is over when none of it is in the hall. */
static int pass_time(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q, struct ls_sqlite_hall *h)
{
    struct ls_sqlite_run first;
    int rc = ls_sqlite_hall_first(tx, q, &first);
    if (rc < 0 || (rc == 0 && first.rank <= h->before_rank))
        return rc < 0 ? rc : 0;
    struct lb_tally over = h->before;
    h->before = h->now;
    h->before_rank = h->now_rank;
    lb_tally_clear(&over);
    h->now = over;
    return 0;
}

/* The first job of a transaction that may come to this hall. */
static int ask(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q, struct ls_sqlite_hall *h,
               int64_t seq)
{
    int rc = 0;
    h->asked = true;
    if (q->hall <= LQ_TURN_JOBS)
        begin_to_count(h, seq - 1);
    else if (h->known && h->stale)
        rc = catch_up(tx, h, seq - 1);
    if (rc == 0 && h->known && 4 * h->now.n > LB_TALLY_MAX)
        rc = pass_time(tx, q, h);
    return rc;
}

static uint32_t count_of(const struct ls_sqlite_hall *h, uint64_t hash)
{
    return lb_tally_get(&h->now, hash) + lb_tally_get(&h->before, hash);
}

static int stands_apart(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q, struct lb_slice name,
                        bool *apart)
{
    struct ls_sqlite_key *k = NULL;
    int rc = q->gate->alone > 0 || tx->keys ? ls_sqlite_key_find(tx, q, name, &k) : 0;
    *apart = k && k->facts.ready > 0;
    return rc;
}

int ls_sqlite_hall_admit(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q,
                         const struct lq_put *it, int64_t seq, bool *yes)
{
    struct ls_sqlite_gate *g;
    struct ls_sqlite_hall *h;
    bool apart;
    *yes = false;
    int rc = ls_sqlite_gate_make(tx, q, &g);
    /* The user's own transactions may end without us. */
    if (rc < 0 || tx->db->schema || tx->now_ms < g->calm_ms || g->v > V_MAX ||
        !lb_slice_eq(lq_body_key(it->body), it->key))
        return rc;
    rc = stands_apart(tx, q, it->key, &apart);
    h = rc == 0 && !apart ? hall_of(tx, q->num) : NULL;
    if (!h)
        return rc;
    if (!h->asked)
        rc = ask(tx, q, h, seq);
    if (rc < 0 || !h->known)
        return rc;
    uint64_t hash = lb_tally_hash(it->key);
    if (count_of(h, hash) >= LQ_TURN_JOBS)
        rc = pass_time(tx, q, h);
    uint32_t *n = rc == 0 && count_of(h, hash) < LQ_TURN_JOBS ? lb_tally_at(&h->now, hash) : NULL;
    if (!n)
        return rc;
    ++*n;
    h->seen = seq;
    h->now_rank = LB_MAX(h->now_rank, ls_sqlite_hall_rank(g, it->level));
    *yes = true;
    return 0;
}

void ls_sqlite_hall_count(struct ls_sqlite_queue *q, int64_t state, int64_t n)
{
    if (state == LADE_STATE_READY)
        q->hall += n;
    else if (state == LADE_STATE_ACTIVE)
        q->mates += n;
}

int ls_sqlite_hall_first(struct ls_sqlite_tx *tx, const struct ls_sqlite_queue *q,
                         struct ls_sqlite_run *r)
{
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_RUN_FIRST_OF_KEY);
    if (st) {
        ls_sqlite_bind(st, 1, q->num);
        ls_sqlite_bind(st, 2, LS_SQLITE_HALL_RANK);
        ls_sqlite_bind(st, 3, INT64_MAX);
    }
    int rc = ls_sqlite_tx_step(tx, st);
    if (rc <= 0)
        return rc < 0 ? rc : LADE_NOT_FOUND;
    ls_sqlite_run_read(st, r);
    (void)sqlite3_reset(st);
    return 0;
}

int ls_sqlite_hall_precede(struct ls_sqlite_tx *tx, const struct ls_sqlite_queue *q,
                           struct ls_sqlite_run *r)
{
    /* Those of one level stand in the order of their positions. */
    sqlite3_stmt *st = q->hall > 0 ? ls_sqlite_tx_stmt(tx, LS_SQLITE_HALL_LEVEL) : NULL;
    if (q->hall == 0)
        return 0;
    if (st) {
        ls_sqlite_bind(st, 1, q->num);
        ls_sqlite_bind(st, 2, LS_SQLITE_HALL_RANK);
        ls_sqlite_bind(st, 3, r->level);
    }
    int rc = ls_sqlite_tx_step(tx, st);
    if (rc <= 0)
        return rc;
    r->pos = LB_MIN(r->pos, sqlite3_column_int64(st, 0) - r->n);
    (void)sqlite3_reset(st);
    return 0;
}

/* leaving ---------------------------------------------------------------------------------------------------------- */

int ls_sqlite_hall_name(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q,
                        struct ls_sqlite_run *part)
{
    struct ls_sqlite_key *k = NULL;
    uint8_t name[LADE_KEY_MAX];
    if (part->key != LS_SQLITE_COMPANY)
        return 0;
    LB_CHECK(part->n == 1);
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_JOB_BODIES);
    if (st) {
        ls_sqlite_bind(st, 1, part->job);
        ls_sqlite_bind(st, 2, part->job);
    }
    int rc = ls_sqlite_tx_step(tx, st);
    if (rc == 0)
        return lb_fail(tx->err, LADE_EFORMAT, tx->op, "%s is damaged: a job has no body",
                       tx->db->path);
    if (rc < 0)
        return rc;
    struct lb_slice key = lq_body_key(ls_sqlite_column(st, 0));
    if (key.n > 0)
        memcpy(name, key.p, key.n);
    (void)sqlite3_reset(st);
    part->key = 0;
    if (key.n == 0)
        return 0;
    rc = ls_sqlite_key_make(tx, q, lb_slice(name, key.n), &k);
    if (rc == 0 && k)
        part->key = k->num;
    return rc;
}

void ls_sqlite_hall_close(struct ls_sqlite_queue *q, int64_t calm_ms)
{
    if (q->gate->calm_ms < calm_ms) {
        q->gate->calm_ms = calm_ms;
        q->gate->dirty = true;
    }
}

/* Job seq of a stretch stands by itself from now on, in its state; so *part. */
static int part_one(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q,
                    const struct ls_sqlite_run *r, int64_t seq, struct ls_sqlite_run *part)
{
    int64_t freed = q->freed;
    *part = ls_sqlite_run_part(r, seq - r->job, 1);
    int rc = ls_sqlite_run_cut(tx, q, r, seq - r->job, 1);
    if (rc == 0)
        rc = ls_sqlite_hall_name(tx, q, part);
    if (part->state == LADE_STATE_READY)
        part->rank = ls_sqlite_run_rank(part);
    if (rc == 0)
        rc = ls_sqlite_run_add(tx, q, part);
    q->freed = freed; /* none ended */
    LB_FAULT("sqlite.hall.part");
    return rc;
}

/* The jobs of r, one by one; *left of them at most. */
static int part_run(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q, struct ls_sqlite_run *r,
                    int64_t *left)
{
    int rc = 0;
    while (rc == 0 && r->n > 0 && *left > 0) {
        struct ls_sqlite_run part;
        rc = part_one(tx, q, r, r->job, &part);
        *r = ls_sqlite_run_part(r, 1, r->n - 1);
        --*left;
    }
    return rc;
}

int ls_sqlite_hall_leave(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q,
                         struct ls_sqlite_run *r, int64_t seq)
{
    struct ls_sqlite_run part;
    if (r->key != LS_SQLITE_COMPANY)
        return 0;
    tx->quiet++;
    int rc = part_one(tx, q, r, seq, &part);
    tx->quiet--;
    *r = part;
    return rc;
}

static int next_active(struct ls_sqlite_tx *tx, const struct ls_sqlite_queue *q,
                       struct ls_sqlite_run *r)
{
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_HALL_ACTIVE);
    if (st)
        ls_sqlite_bind(st, 1, q->num);
    int rc = ls_sqlite_tx_step(tx, st);
    if (rc <= 0)
        return rc < 0 ? rc : LADE_NOT_FOUND;
    ls_sqlite_run_read(st, r);
    (void)sqlite3_reset(st);
    return 0;
}

int ls_sqlite_hall_part(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q)
{
    int64_t left = LS_SQLITE_HALL_PART;
    int rc = 0;
    tx->quiet++;
    while (rc == 0 && left > 0) {
        struct ls_sqlite_run r;
        rc = q->mates > 0  ? next_active(tx, q, &r)
             : q->hall > 0 ? ls_sqlite_hall_first(tx, q, &r)
                           : LADE_NOT_FOUND;
        if (rc == 0)
            rc = part_run(tx, q, &r, &left);
    }
    tx->quiet--;
    return rc < 0 ? rc : q->hall + q->mates > 0 ? LADE_MORE : 0;
}

int ls_sqlite_hall_trim(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q)
{
    struct ls_sqlite_gate *g;
    int rc = ls_sqlite_gate(tx, q, &g);
    if (rc < 0 || !g || g->calm_ms != LS_SQLITE_STRICT || q->hall > 0 ||
        !lq_limit_is_zero(&g->usual))
        return rc;
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_KEY_RULED);
    if (st) {
        ls_sqlite_bind(st, 1, q->num);
        ls_sqlite_bind(st, 2, tx->now_ms * 1000);
    }
    rc = ls_sqlite_tx_step(tx, st);
    if (rc == 1)
        (void)sqlite3_reset(st);
    if (rc == 0) {
        g->calm_ms = 0;
        g->dirty = true;
    }
    return rc < 0 ? rc : 0;
}

int ls_sqlite_hall_check(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q, lq_finding_fn report,
                         void *ctx)
{
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_HALL_SUMS);
    if (st)
        ls_sqlite_bind(st, 1, q->num);
    int rc = ls_sqlite_tx_step(tx, st);
    if (rc <= 0)
        return rc;
    if (sqlite3_column_int64(st, 0) != q->hall || sqlite3_column_int64(st, 1) != q->mates)
        report(ctx, q->name, "number of jobs in the hall is wrong");
    if (sqlite3_column_int64(st, 2) != 0)
        report(ctx, q->name, "jobs wait for a time in company");
    (void)sqlite3_reset(st);
    return 0;
}
