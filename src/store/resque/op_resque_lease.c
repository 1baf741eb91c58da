/* op_resque_lease.c - a worker registers, beats, leaves, and takes over from the dead: lua/beat.lua, leave.lua, reclaim.lua */
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "queue/beat.h"
#include "resque/resque_queues.h"
#include "store/resque/resque_inner.h"

static struct ls_redis_cmd *begin(struct ls_redis_conn *c, const struct ls_resque_store *s,
                                  enum ls_resque_lua lua, const char *worker, size_t n_args)
{
    struct ls_redis_cmd *cmd = ls_redis_script_begin(c, lua, 0, 2 + n_args);
    ls_redis_arg(cmd, s->keys.prefix, s->keys.n);
    ls_redis_arg_str(cmd, worker);
    return cmd;
}

/* renew ----------------------------------------------------------------------------------------------------------- */

struct beat_call {
    struct ls_resque_store *s;
    struct ls_resque_worker *w;
    const struct lq_beat *beat;
    struct lb_buf about, id;
    struct lb_buf moved; /* "slot fence " of jobs taken ahead that have a slot now */
};

static void encode_beat(struct ls_redis_conn *c, void *ctx, bool repeat LB_UNUSED)
{
    struct beat_call *b = ctx;
    struct ls_redis_cmd *cmd =
        begin(c, b->s, LS_RESQUE_LUA_BEAT, b->beat->worker, 5 + b->w->n_slots);
    ls_redis_arg_int(cmd, b->beat->lease_ms);
    ls_redis_arg_str(cmd, b->beat->first ? "1" : "0");
    ls_redis_arg_str(cmd, b->s->strict ? "strict" : "reliable");
    ls_redis_arg_slice(cmd, lb_buf_slice(&b->about));
    ls_redis_arg_slice(cmd, lb_buf_slice(&b->moved));
    for (size_t i = 0; i < b->w->n_slots; i++) {
        lb_buf_clear(&b->id);
        ls_resque_slot_id(b->s, b->w, i, &b->id);
        ls_redis_arg_slice(cmd, lb_buf_slice(&b->id));
    }
    ls_redis_cmd_end(cmd);
}

/* "a,b"; an id has no exclusions, as Ruby's has none. */
static void add_names(struct lb_buf *out, struct lq_lanes lanes, bool all)
{
    const char *comma = "";
    for (size_t i = 0; i < lanes.n; i++) {
        if (lanes.queue[i][0] == '!' && !all)
            continue;
        lb_buf_add_str(out, comma);
        lb_buf_add_str(out, lanes.queue[i]);
        comma = ",";
    }
}

/* The slots and names of a worker that is new. */
static int prepare(struct beat_call *b, lade_err *err)
{
    struct ls_resque_worker *w = b->w;
    const struct lq_beat *beat = b->beat;
    size_t n = (size_t)LB_MAX(beat->concurrency, 1);
    if (n > LS_RESQUE_SLOTS_MAX)
        return lb_fail(err, LADE_EINVAL, "renew",
                       "concurrency: %d is over %d, the most that a worker of the resque store has",
                       beat->concurrency, LS_RESQUE_SLOTS_MAX);
    lr_mutex_lock(&b->s->work.lock);
    if (w->n_slots == 0) {
        w->slot = lb_calloc(n, sizeof(*w->slot));
        w->plan = lb_calloc(n, sizeof(*w->plan));
        add_names(&w->queues, beat->lanes, false);
        w->n_slots = w->slot && w->plan && !w->queues.failed ? n : 0;
        w->first_slot = b->s->n_slots;
        b->s->n_slots += (unsigned)w->n_slots;
    }
    bool made = w->n_slots > 0;
    lr_mutex_unlock(&b->s->work.lock);
    lb_buf_add_fmt(&b->about, "%s\n", beat->name);
    add_names(&b->about, beat->lanes, true);
    lb_buf_add_fmt(&b->about, "\n%d\n%lld", beat->concurrency, (long long)beat->started_ms);
    return made && !b->about.failed ? 0 : lb_fail_nomem(err, "renew");
}

/* Jobs that were taken ahead, and are still here a renewal later, are what the free slots are at. */
static void move_in(struct beat_call *b)
{
    struct ls_resque_worker *w = b->w;
    lr_mutex_lock(&b->s->work.lock);
    for (size_t i = 0; i < w->n_slots; i++) {
        uint64_t fence = w->slot[i] == 0 ? ls_resque_ahead_first(&w->ahead) : 0;
        if (fence == 0)
            continue;
        (void)ls_resque_ahead_remove(&w->ahead, fence);
        w->slot[i] = fence;
        lb_buf_add_fmt(&b->moved, "%zu %llu ", i, (unsigned long long)fence);
    }
    lr_mutex_unlock(&b->s->work.lock);
}

static int send_beat(struct beat_call *b, lade_err *err)
{
    struct ls_resque_store *s = b->s;
    struct ls_resque_ask ask = {encode_beat, b, "renew", false};
    struct ls_redis_conn *c;
    lr_mutex_lock(&s->beat.lock);
    int rc = ls_resque_ask(s, &s->beat, &ask, 1, &c, err);
    if (rc == 0) {
        struct ls_redis_cursor cur = ls_redis_conn_reply(c, 0);
        size_t n = ls_redis_read_array(&cur);
        bool known = ls_redis_read_int(&cur) == 0;
        int64_t death = n == 3 ? ls_redis_read_int(&cur) : -1;
        int64_t due = n == 3 ? ls_redis_read_int(&cur) : -1;
        if (cur.bad)
            rc = ls_redis_conn_fail_reply(c, "renew", err);
        else if (!known)
            rc = LADE_STALE;
        else if (b->beat->ahead)
            *b->beat->ahead = (struct lq_ahead){.death_in_ms = death < 0 ? LB_FOREVER : death,
                                                .due_in_ms = due < 0 ? LB_FOREVER : due};
    }
    lr_mutex_unlock(&s->beat.lock);
    return rc;
}

int ls_resque_renew(struct lq_store *base, const struct lq_beat *beat,
                    struct lq_stop *stop LB_UNUSED, size_t max LB_UNUSED, size_t *n_stop,
                    lade_err *err)
{
    struct ls_resque_store *s = ls_resque_of(base);
    struct beat_call b = {.s = s, .beat = beat, .w = ls_resque_worker_ref(s, beat->worker)};
    if (!b.w)
        return lb_fail_nomem(err, "renew");
    lb_buf_init(&b.about);
    lb_buf_init(&b.id);
    lb_buf_init(&b.moved);
    int rc = prepare(&b, err);
    if (rc == 0 && !beat->first)
        move_in(&b);
    if (rc == 0)
        rc = send_beat(&b, err);
    if (rc >= 0)
        *n_stop = 0;
    lb_buf_fini(&b.about);
    lb_buf_fini(&b.id);
    lb_buf_fini(&b.moved);
    ls_resque_worker_unref(s, b.w);
    return rc;
}

/* leave ----------------------------------------------------------------------------------------------------------- */

struct leave_call {
    struct ls_resque_store *s;
    const char *worker;
};

static void encode_leave(struct ls_redis_conn *c, void *ctx, bool repeat LB_UNUSED)
{
    const struct leave_call *l = ctx;
    ls_redis_cmd_end(begin(c, l->s, LS_RESQUE_LUA_LEAVE, l->worker, 0));
}

int ls_resque_leave(struct lq_store *base, const char *worker, struct lq_lanes lanes LB_UNUSED,
                    lade_err *err)
{
    struct ls_resque_store *s = ls_resque_of(base);
    struct leave_call l = {s, worker};
    struct ls_resque_ask ask = {encode_leave, &l, "leave", false};
    struct ls_redis_conn *c;
    lr_mutex_lock(&s->beat.lock);
    int rc = ls_resque_ask(s, &s->beat, &ask, 1, &c, err);
    lr_mutex_unlock(&s->beat.lock);
    if (rc >= 0)
        ls_resque_worker_forget(s, worker);
    return rc;
}

/* reclaim --------------------------------------------------------------------------------------------------------- */

struct reclaim_call {
    struct ls_resque_store *s;
    const struct lq_take *take;
    struct lq_lanes lanes;        /* for the script */
    struct ls_resque_lanes found; /* when they are patterns */
};

static void encode_reclaim(struct ls_redis_conn *c, void *ctx, bool repeat LB_UNUSED)
{
    const struct reclaim_call *r = ctx;
    struct ls_redis_cmd *cmd =
        begin(c, r->s, LS_RESQUE_LUA_RECLAIM, r->take->worker, 1 + r->lanes.n);
    ls_redis_arg_u64(cmd, LB_MIN(r->take->max, LQ_TAKE_MAX));
    for (size_t i = 0; i < r->lanes.n; i++)
        ls_redis_arg_str(cmd, r->lanes.queue[i]);
    ls_redis_cmd_end(cmd);
}

static void read_held(struct ls_redis_cursor *cur, struct ls_resque_held *h)
{
    (void)ls_redis_read_array(cur);
    h->fence = (uint64_t)ls_redis_read_int(cur);
    h->lane = (uint32_t)ls_redis_read_int(cur);
    h->entry = ls_redis_read_bytes(cur);
    h->history = ls_redis_read_bytes(cur);
    h->begun = ls_redis_read_int(cur) == 1;
    h->former = ls_redis_read_bytes(cur);
    h->former_id = ls_redis_read_bytes(cur);
    h->lost = ls_redis_read_int(cur) == 1;
    h->queue = ls_redis_read_bytes(cur);
}

static int read_reclaim(struct reclaim_call *r, struct ls_redis_conn *c, struct ls_resque_worker *w,
                        struct lq_leased_vec *out, lade_err *err)
{
    struct ls_redis_cursor cur = ls_redis_conn_reply(c, 0);
    size_t n = ls_redis_read_array(&cur);
    if (ls_redis_read_int(&cur) == 1)
        return LADE_STALE;
    if (cur.bad || n < 1 || n > LQ_TAKE_MAX + 1)
        return ls_redis_conn_fail_reply(c, "reclaim", err);
    if (--n == 0)
        return LADE_EMPTY;
    struct ls_resque_held *held = lb_calloc(n, sizeof(*held));
    if (!held)
        return lb_fail_nomem(err, "reclaim");
    for (size_t i = 0; i < n; i++) {
        read_held(&cur, &held[i]);
        cur.bad = cur.bad || held[i].lane >= LB_MAX(r->lanes.n, 1);
        held[i].named = r->found.known;
        if (!cur.bad && r->found.n > 0)
            held[i].lane = r->found.lane[held[i].lane];
    }
    size_t before = out->n;
    int rc = cur.bad ? ls_redis_conn_fail_reply(c, "reclaim", err)
                     : ls_resque_adopt(r->s, w, held, n, out, err);
    lb_free(held);
    return rc == 0 && out->n == before ? LADE_EMPTY : rc;
}

int ls_resque_reclaim(struct lq_store *base, const struct lq_take *take, struct lq_leased_vec *out,
                      lade_err *err)
{
    struct ls_resque_store *s = ls_resque_of(base);
    struct reclaim_call r = {.s = s, .take = take, .lanes = take->lanes};
    struct ls_resque_ask ask = {encode_reclaim, &r, "reclaim", false};
    struct ls_resque_worker *w = ls_resque_worker_ref(s, take->worker);
    if (!w)
        return lb_fail_nomem(err, "reclaim");
    struct ls_redis_conn *c;
    int rc = 0;
    lr_mutex_lock(&s->work.lock);
    if (rq_queues_are_dynamic(take->lanes.queue, take->lanes.n)) {
        rc = ls_resque_lanes_learn(&r.found, s, &s->work, take->lanes, err);
        r.lanes = ls_resque_lanes_of(&r.found);
    }
    if (rc == 0)
        rc = ls_resque_ask(s, &s->work, &ask, 1, &c, err);
    if (rc == 0)
        rc = read_reclaim(&r, c, w, out, err);
    lr_mutex_unlock(&s->work.lock);
    ls_resque_lanes_fini(&r.found);
    ls_resque_worker_unref(s, w);
    return rc;
}
