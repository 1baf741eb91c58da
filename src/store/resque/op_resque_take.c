/* op_resque_take.c - settles and takes in one trip (lua/trip.lua), and begin */
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "resque/resque_failure.h"
#include "resque/resque_queues.h"
#include "store/resque/resque_inner.h"

#define TAKE_BYTES (16U << 20)

/* slots ----------------------------------------------------------------------------------------------------------- */

static size_t slot_of(const struct ls_resque_worker *w, uint64_t fence)
{
    for (size_t i = 0; i < w->n_slots; i++)
        if (w->slot[i] == fence)
            return i;
    return SIZE_MAX;
}

static bool is_ahead(const struct ls_resque_worker *w, uint64_t fence)
{
    for (size_t i = w->ahead.at; i < w->ahead.n; i++)
        if (w->ahead.fence[i] == fence)
            return true;
    return false;
}

/* The incarnation in a job's id. */
static struct lb_slice worker_of(struct lb_slice id)
{
    const uint8_t *dot = id.n > 0 ? memrchr(id.p, '.', id.n) : NULL;
    return dot ? lb_slice(id.p, (size_t)(dot - id.p)) : id;
}

/* settle ---------------------------------------------------------------------------------------------------------- */

static const char *exception_of(const struct lq_settle *it)
{
    if (it->to == LQ_TO_SCHEDULED)
        return it->unroutable ? "NameError" : "Lade::Unsupported";
    return it->reason == LQ_REASON_QUARANTINED || it->broken_off ? RQ_DIRTY_EXIT
                                                                 : "Lade::JobFailed";
}

static void add_error(struct lb_buf *out, const struct lq_settle *it)
{
    if (it->to == LQ_TO_SCHEDULED && it->unroutable) {
        lb_buf_add_str(out, "uninitialized constant ");
        lb_buf_add(out, it->kind.p, it->kind.n);
    } else if (it->to == LQ_TO_SCHEDULED) {
        lb_buf_add_str(out, "snooze: the resque store cannot run a job later");
    } else if (it->to == LQ_TO_READY) {
        lb_buf_add_str(out, RQ_STILL_PROCESSED);
    } else if (it->reason == LQ_REASON_QUARANTINED) {
        lb_buf_add_str(out, "the job has killed every worker that ran it, once too often");
    } else if (it->error.n > 0) {
        lb_buf_add(out, it->error.p, it->error.n);
    } else if (it->death) {
        lb_buf_add(out, it->death->text.p, it->death->text.n);
    }
}

static void add_settle(struct ls_resque_pieces *p, const struct lq_settle *it,
                       const struct ls_resque_worker *w)
{
    struct ls_resque_piece *piece = &p->piece[p->n++];
    *piece =
        (struct ls_resque_piece){.worker = worker_of(it->id), .fence = it->fence, .at = p->texts.n};
    size_t slot = w ? slot_of(w, it->fence) : SIZE_MAX;
    if (slot != SIZE_MAX) {
        ls_resque_slot_id(p->s, w, slot, &p->texts);
    } else if (w && w->n_slots > 0 && is_ahead(w, it->fence)) { /* counts, and is shown nowhere */
        lb_buf_add_byte(&p->texts, '~');
        ls_resque_slot_id(p->s, w, it->fence % w->n_slots, &p->texts);
    }
    piece->n_id = p->texts.n - piece->at;
    switch (it->to) {
    case LQ_TO_COMPLETED:
    case LQ_TO_CANCELLED:
    case LQ_TO_GONE:
        piece->action = 'c';
        return;
    case LQ_TO_READY:
        if (p->s->strict && it->broken_off) /* as Ruby: it is run at most once */
            break;
        piece->action = 'h';
        lb_buf_add(&p->texts, it->history.p, it->history.n);
        piece->n_after = it->history.n;
        return;
    case LQ_TO_RETRYING:
    case LQ_TO_SCHEDULED:
    case LQ_TO_THROTTLED:
    case LQ_TO_DEAD:
    default:
        break;
    }
    struct lb_buf error, id;
    lb_buf_init(&error);
    lb_buf_init(&id);
    add_error(&error, it);
    if (w && w->n_slots > 0)
        ls_resque_slot_id(p->s, w, slot == SIZE_MAX ? 0 : slot, &id);
    else
        lb_buf_add(&id, piece->worker.p, piece->worker.n);
    piece->action = 'f';
    struct ls_resque_words words = {
        exception_of(it), lb_buf_slice(&error), lb_buf_slice(&id), lb_slice_str(it->queue), {0}};
    ls_resque_add_failure(p, piece, &words);
    p->texts.failed = p->texts.failed || error.failed || id.failed;
    lb_buf_fini(&error);
    lb_buf_fini(&id);
}

/* What is settled of the worker `w`, whose slots will be free. */
static int add_settles(struct ls_resque_store *s, struct ls_resque_pieces *p,
                       const struct lq_settle *it, size_t n, lade_err *err)
{
    struct ls_resque_worker *of = NULL;
    for (size_t i = 0; i < n && p->piece; i++) {
        struct lb_slice inc = worker_of(it[i].id);
        if (of && !lb_slice_eq(lb_slice_str(of->known.id), inc)) {
            ls_resque_worker_unref(s, of);
            of = NULL;
        }
        if (!of)
            of = ls_resque_worker_find(s, inc);
        add_settle(p, &it[i], of);
    }
    if (of)
        ls_resque_worker_unref(s, of);
    return p->texts.failed ? lb_fail_nomem(err, "settle") : 0;
}

static void free_slot(struct ls_resque_store *s, const struct lq_settle *it)
{
    struct ls_resque_worker *w = ls_resque_worker_find(s, worker_of(it->id));
    if (!w)
        return;
    size_t slot = slot_of(w, it->fence);
    if (slot != SIZE_MAX)
        w->slot[slot] = 0;
    else
        (void)ls_resque_ahead_remove(&w->ahead, it->fence);
    ls_resque_worker_unref(s, w);
}

/* take ------------------------------------------------------------------------------------------------------------ */

struct trip {
    struct ls_resque_store *s;
    struct ls_resque_pieces settles;
    const struct lq_take *take; /* NULL: nothing is to be taken */
    struct ls_resque_worker *w;
    size_t max;
    bool dynamic;          /* its lanes are patterns */
    struct lq_lanes lanes; /* for the script */
    bool taken;            /* the take was made, and brought nothing */
    bool changed;          /* and what the patterns stand for is not what it was made for */
};

/* {"queue":"q","run_at":"...","payload": of worker:<id>, which the entry and } end. */
static void add_working(struct ls_redis_cmd *cmd, struct lb_buf *tmp, const char *queue, int64_t at)
{
    static const char end[] = "null}";
    lb_buf_clear(tmp);
    rq_working_write(tmp, lb_slice_str(queue), at, lb_slice_str("null"));
    size_t n = tmp->n > sizeof(end) - 1 ? tmp->n - (sizeof(end) - 1) : 0;
    ls_redis_arg(cmd, tmp->p, n);
}

static void encode_take(struct ls_redis_cmd *cmd, const struct trip *t)
{
    struct lb_buf tmp;
    int64_t at = lb_clock_wall() / LADE_SECOND;
    lb_buf_init(&tmp);
    ls_redis_arg_str(cmd, t->take->worker);
    ls_redis_arg_u64(cmd, t->w->take_seq);
    ls_redis_arg_u64(cmd, t->max);
    ls_redis_arg_u64(cmd, TAKE_BYTES);
    rq_id_write_head(&tmp, &t->s->host, t->w->pid);
    ls_redis_arg_slice(cmd, lb_buf_slice(&tmp));
    lb_buf_clear(&tmp);
    rq_id_write_tail(&tmp, lb_buf_slice(&t->w->queues));
    ls_redis_arg_slice(cmd, lb_buf_slice(&tmp));
    lb_buf_clear(&tmp);
    for (size_t i = 0; i < LB_MIN(t->max, t->w->n_plan); i++)
        lb_buf_add_fmt(&tmp, "%u ", t->w->first_slot + t->w->plan[i]);
    ls_redis_arg_slice(cmd, lb_buf_slice(&tmp));
    for (size_t i = 0; i < t->lanes.n; i++) {
        ls_redis_arg_str(cmd, t->lanes.queue[i]);
        add_working(cmd, &tmp, t->lanes.queue[i], at);
    }
    lb_buf_fini(&tmp);
}

static void encode_trip(struct ls_redis_conn *c, void *ctx, bool repeat)
{
    const struct trip *t = ctx;
    if (t->take && t->dynamic)
        ls_resque_lanes_ask(c, t->s);
    struct ls_redis_cmd *cmd =
        ls_resque_begin_trip(c, &t->settles, t->take ? 7 + 2 * t->lanes.n : 0, repeat);
    if (t->take)
        encode_take(cmd, t);
    ls_redis_cmd_end(cmd);
}

/* One job of the reply. One that was taken before, and is repeated, may be of a queue that is no lane any more. */
static void read_held(const struct trip *t, struct ls_redis_cursor *cur, struct ls_resque_held *h)
{
    bool again = ls_redis_read_array(cur) == 6;
    h->fence = (uint64_t)ls_redis_read_int(cur);
    uint32_t at = (uint32_t)ls_redis_read_int(cur);
    h->shown = ls_redis_read_int(cur) == 1;
    h->entry = ls_redis_read_bytes(cur);
    h->history = ls_redis_read_bytes(cur);
    cur->bad = cur->bad || at >= LB_MAX(t->lanes.n, 1);
    if (cur->bad)
        return;
    h->named = again || t->dynamic;
    h->lane = t->dynamic ? 0 : at;
    if (t->dynamic && t->lanes.n > 0)
        h->lane = t->w->lanes.lane[at];
    h->queue = again ? ls_redis_read_bytes(cur) : lb_slice_str(t->lanes.queue[at]);
}

/* Nothing was there: when there will be. */
static int read_due(struct trip *t, struct ls_redis_cursor *cur, struct lq_leased_vec *out)
{
    t->taken = true;
    t->w->due_ms = ls_redis_read_int(cur);
    out->next_due_ms = t->w->due_ms < 0 ? 0 : t->w->due_ms;
    out->now_ms = ls_redis_read_int(cur);
    return 0;
}

static int read_take(struct trip *t, struct ls_redis_conn *c, struct ls_redis_cursor cur,
                     struct lq_leased_vec *out, lade_err *err)
{
    size_t n = ls_redis_read_array(&cur);
    if (n == 1 && ls_redis_read_int(&cur) == 1)
        return LADE_STALE;
    if (n >= 2)
        (void)ls_redis_read_int(&cur);
    t->w->paused = n >= 2 && ls_redis_read_int(&cur) == 1;
    n = n >= 2 ? n - 2 : 0;
    if (n == 2 && ls_redis_peek(&cur) == LS_REDIS_INT)
        return read_due(t, &cur, out);
    if (cur.bad || n == 0 || n > LQ_TAKE_MAX)
        return ls_redis_conn_fail_reply(c, "take", err);
    struct ls_resque_held *held = lb_calloc(n, sizeof(*held));
    if (!held)
        return lb_fail_nomem(err, "take");
    for (size_t i = 0; i < n; i++)
        read_held(t, &cur, &held[i]);
    int rc = cur.bad ? ls_redis_conn_fail_reply(c, "take", err)
                     : ls_resque_adopt(t->s, t->w, held, n, out, err);
    lb_free(held);
    return rc;
}

/* The reply of a take by patterns: first what they stand for now, for adopting asks anew. */
static int read_take_and_lanes(struct trip *t, struct ls_redis_conn *c, struct ls_redis_cursor cur,
                               struct lq_leased_vec *out, lade_err *err)
{
    struct ls_resque_lanes now = {0};
    int rc = 0;
    if (t->dynamic)
        rc = ls_resque_lanes_read(&now, t->take->lanes, ls_redis_conn_reply(c, 0), err);
    if (rc == 0)
        rc = read_take(t, c, cur, out, err);
    if (now.known) {
        t->changed = !ls_resque_lanes_equal(&now, &t->w->lanes);
        ls_resque_lanes_fini(&t->w->lanes);
        t->w->lanes = now;
    }
    return rc;
}

static int read_settles(struct trip *t, struct ls_redis_conn *c, struct ls_redis_cursor *cur,
                        struct lq_settle *it, size_t n, lade_err *err)
{
    if (ls_redis_read_array(cur) != 2 || ls_redis_read_array(cur) != n)
        return ls_redis_conn_fail_reply(c, "settle", err);
    for (size_t i = 0; i < n; i++) {
        it[i].outcome = ls_redis_read_int(cur) == 0 ? LADE_DONE : LADE_STALE;
        free_slot(t->s, &it[i]);
    }
    return cur->bad ? ls_redis_conn_fail_reply(c, "settle", err) : 0;
}

static bool is_settled(const struct trip *t, uint64_t fence, const struct lq_settle *it, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (it[i].fence == fence && lb_slice_eq(worker_of(it[i].id), lb_slice_str(t->w->known.id)))
            return true;
    return false;
}

/*
 * Which slots are free once the settles are done, and how many jobs the take may bring: in strict mode one for each of them, since
 * what is held and has not begun would fail with its worker.
 */
static void plan_take(struct trip *t, const struct lq_settle *it, size_t n)
{
    struct ls_resque_worker *w = t->w;
    size_t most = LB_MIN(t->take->max, LQ_TAKE_MAX);
    w->n_plan = 0;
    for (size_t i = 0; i < w->n_slots; i++) {
        if (w->slot[i] != 0 && !is_settled(t, w->slot[i], it, n))
            continue;
        w->plan[w->n_plan++] = (uint16_t)i;
    }
    w->full = w->n_plan == 0 && t->s->strict;
    t->max = t->s->strict ? LB_MIN(w->n_plan, most) : most;
    if (w->full)
        t->take = NULL;
}

/* With the work link locked. */
static int plan_lanes(struct trip *t, lade_err *err)
{
    if (!t->take)
        return 0;
    t->lanes = t->take->lanes;
    t->dynamic = rq_queues_are_dynamic(t->lanes.queue, t->lanes.n);
    if (!t->dynamic)
        return 0;
    int rc = t->w->lanes.known
                 ? 0
                 : ls_resque_lanes_learn(&t->w->lanes, t->s, &t->s->work, t->lanes, err);
    t->lanes = ls_resque_lanes_of(&t->w->lanes);
    return rc;
}

static int make_trip(struct trip *t, struct lq_settle *it, size_t n, struct lq_leased_vec *out,
                     lade_err *err)
{
    struct ls_resque_store *s = t->s;
    int rc = add_settles(s, &t->settles, it, n, err);
    if (rc < 0)
        return rc;
    if (t->take && t->w) {
        plan_take(t, it, n);
        rc = plan_lanes(t, err);
    }
    if (rc < 0)
        return rc;
    if (n == 0 && !t->take)
        return 0;
    size_t asks_lanes = t->take && t->dynamic;
    t->settles.lenient = s->settle_doubt;
    struct ls_resque_ask ask = {encode_trip, t, n > 0 ? "settle" : "take", false};
    struct ls_redis_conn *c;
    rc = ls_resque_ask(s, &s->work, &ask, 1 + asks_lanes, &c, err);
    if (rc < 0) {
        s->settle_doubt = s->settle_doubt || n > 0;
        return rc; /* the same number again: the next take brings what this one was given */
    }
    if (n > 0)
        s->settle_doubt = false;
    struct ls_redis_cursor cur = ls_redis_conn_reply(c, asks_lanes);
    rc = read_settles(t, c, &cur, it, n, err);
    if (rc == 0 && t->take) {
        t->w->take_seq++;
        rc = read_take_and_lanes(t, c, cur, out, err);
    }
    return rc;
}

/*
 * A take that brought nothing, once more: when its patterns stand for other queues than it was made for, or a delayed job has fallen due since.
 * The settles of the call are done: what fails here waits for the next take.
 */
static int take_again(struct trip *t, struct lq_leased_vec *out, lade_err *err)
{
    struct ls_resque_store *s = t->s;
    if (t->w->due_ms >= 0 && t->w->due_ms <= out->now_ms) {
        size_t n = 0;
        int64_t next = 0;
        int rc = ls_resque_promote_due(s, LQ_TAKE_MAX, &n, &next, err);
        out->next_due_ms = rc < 0 ? out->now_ms + LADE_SECOND / LADE_MILLISECOND : next;
        t->changed = t->changed || n > 0;
    }
    if (!t->changed || t->w->paused)
        return 0;
    t->settles.n = 0;
    t->taken = t->changed = false;
    lr_mutex_lock(&s->work.lock);
    int rc = make_trip(t, NULL, 0, out, err);
    lr_mutex_unlock(&s->work.lock);
    return LB_MAX(rc, 0);
}

int ls_resque_settle_take(struct lq_store *base, struct lq_settle *it, size_t n,
                          const struct lq_take *take, struct lq_leased_vec *out, lade_err *err)
{
    struct ls_resque_store *s = ls_resque_of(base);
    struct trip t = {.s = s, .settles = {.s = s}, .take = take};
    int rc = 0;
    lb_buf_init(&t.settles.texts);
    if (n > 0) {
        t.settles.piece = lb_calloc(n, sizeof(*t.settles.piece));
        rc = t.settles.piece ? 0 : lb_fail_nomem(err, "settle");
    }
    if (rc == 0 && take) {
        out->next_due_ms = out->now_ms = 0;
        t.w = ls_resque_worker_ref(s, take->worker);
        rc = t.w ? 0 : lb_fail_nomem(err, "take");
    }
    if (rc == 0) {
        lr_mutex_lock(&s->work.lock);
        rc = make_trip(&t, it, n, out, err);
        lr_mutex_unlock(&s->work.lock);
    }
    if (rc == 0 && t.w && t.taken)
        rc = take_again(&t, out, err);
    if (t.w)
        ls_resque_worker_unref(s, t.w);
    lb_free(t.settles.piece);
    lb_buf_fini(&t.settles.texts);
    return rc;
}

/* begin ----------------------------------------------------------------------------------------------------------- */

static void encode_begin(struct ls_redis_conn *c, void *ctx, bool repeat)
{
    ls_redis_cmd_end(ls_resque_begin_trip(c, ctx, 0, repeat));
}

int ls_resque_begin(struct lq_store *base, const char *worker, struct lq_lease *lease, size_t n,
                    lade_err *err)
{
    struct ls_resque_store *s = ls_resque_of(base);
    struct ls_resque_pieces p = {.s = s, .n = n};
    if (n == 0)
        return 0;
    p.piece = lb_calloc(n, sizeof(*p.piece));
    if (!p.piece)
        return lb_fail_nomem(err, "begin");
    lb_buf_init(&p.texts);
    for (size_t i = 0; i < n; i++)
        p.piece[i] = (struct ls_resque_piece){
            .action = 'b', .worker = lb_slice_str(worker), .fence = lease[i].fence};
    struct ls_resque_ask ask = {encode_begin, &p, "begin", false};
    struct ls_redis_conn *c;
    lr_mutex_lock(&s->admin.lock);
    int rc = ls_resque_ask(s, &s->admin, &ask, 1, &c, err);
    if (rc == 0) {
        struct ls_redis_cursor cur = ls_redis_conn_reply(c, 0);
        (void)ls_redis_read_array(&cur);
        (void)ls_redis_read_array(&cur);
        for (size_t i = 0; i < n; i++)
            lease[i].outcome = ls_redis_read_int(&cur) == 0 ? LADE_DONE : LADE_STALE;
        if (cur.bad)
            rc = ls_redis_conn_fail_reply(c, "begin", err);
    }
    lr_mutex_unlock(&s->admin.lock);
    lb_free(p.piece);
    return rc;
}
