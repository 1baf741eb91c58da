/*
 * op_lease.c - renew, leave, reclaim; lua/renew.lua, lua/leave.lua, lua/reclaim.lua
 */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/err.h"
#include "queue/beat.h"
#include "store/redis/store_inner.h"

/* renew ----------------------------------------------------------------------------------------------------------- */

struct beat_call {
    struct ls_redis_store *s;
    const struct lq_beat *beat;
    struct ls_redis_worker *w;
    size_t max;
    struct lb_buf about; /* what <ns>:workers keeps behind the two times */
};

static void describe(struct lb_buf *b, const struct lq_beat *beat)
{
    lb_buf_add_fmt(b, "%lld %d %zu %s ", (long long)beat->started_ms, beat->concurrency,
                   strlen(beat->name), beat->name);
    for (size_t i = 0; i < beat->lanes.n; i++) {
        lb_buf_add_str(b, i ? "," : "");
        lb_buf_add_str(b, beat->lanes.queue[i]);
    }
}

static size_t find_queue(struct lq_lanes lanes, const char *queue)
{
    size_t i = 0;
    while (i < lanes.n && strcmp(lanes.queue[i], queue) != 0)
        i++;
    return i;
}

/* The stops that the last answer brought: they have arrived and may go. */
static void encode_arrived(struct ls_redis_cmd *cmd, const struct beat_call *b)
{
    const char *p = (const char *)b->w->stops.p, *end = p + b->w->stops.n;
    while (p && p < end) {
        const char *text = p + strlen(p) + 1;
        size_t lane = find_queue(b->beat->lanes, p);
        if (lane < b->beat->lanes.n) {
            ls_redis_arg_u64(cmd, lane);
            ls_redis_arg_str(cmd, text);
        }
        p = text + strlen(text) + 1;
    }
}

static void encode_renew(struct ls_redis_conn *c, void *ctx, bool repeat LB_UNUSED)
{
    const struct beat_call *b = ctx;
    const struct lq_beat *beat = b->beat;
    struct ls_redis_cmd *cmd =
        ls_redis_script_begin(c, LS_REDIS_LUA_RENEW, beat->lanes.n + 1, beat->lanes.n + 6);
    ls_redis_key_ns(cmd, b->s->base.config.ns, "workers");
    ls_redis_keys_of(cmd, b->s, beat->lanes);
    ls_redis_arg_str(cmd, beat->worker);
    ls_redis_arg_int(cmd, beat->lease_ms);
    ls_redis_arg_int(cmd, beat->first);
    ls_redis_arg_slice(cmd, lb_buf_slice(&b->about));
    ls_redis_arg_u64(cmd, b->max);
    encode_arrived(cmd, b);
    ls_redis_cmd_end(cmd);
}

/* "fence kind id" */
static bool read_stop(struct lq_stop *stop, const char *queue, struct lb_slice text)
{
    stop->fence = (uint64_t)ls_redis_take_number(&text);
    if (text.n < 3 || text.n - 2 > LADE_ID_MAX)
        return false;
    (void)snprintf(stop->queue, sizeof(stop->queue), "%s", queue);
    memcpy(stop->id, text.p + 2, text.n - 2);
    stop->id[text.n - 2] = 0;
    return true;
}

static int read_renew(struct beat_call *b, struct ls_redis_conn *c, struct lq_stop *stop,
                      size_t *n_stop, lade_err *err)
{
    struct ls_redis_cursor cur = ls_redis_conn_reply(c, 0);
    size_t n = ls_redis_read_array(&cur);
    int64_t stale = ls_redis_read_int(&cur);
    int64_t death = ls_redis_read_int(&cur), due = ls_redis_read_int(&cur);
    if (cur.bad || n < 3 || n % 2 != 1 || n / 2 - 1 > b->max)
        return ls_redis_conn_fail_reply(c, "renew", err);
    if (stale == 1)
        return LADE_STALE;
    lb_buf_clear(&b->w->stops);
    for (size_t i = 0; i < n / 2 - 1; i++) {
        int64_t lane = ls_redis_read_int(&cur);
        struct lb_slice text = ls_redis_read_bytes(&cur);
        if (cur.bad || lane < 0 || (size_t)lane >= b->beat->lanes.n ||
            !read_stop(&stop[i], b->beat->lanes.queue[lane], text))
            return ls_redis_conn_fail_reply(c, "renew", err);
        lb_buf_add(&b->w->stops, stop[i].queue, strlen(stop[i].queue) + 1);
        lb_buf_add(&b->w->stops, text.p, text.n);
        lb_buf_add_byte(&b->w->stops, 0);
    }
    if (b->w->stops.failed) /* told once more by the next renew */
        lb_buf_clear(&b->w->stops);
    *n_stop = n / 2 - 1;
    if (b->beat->ahead)
        *b->beat->ahead = (struct lq_ahead){death < 0 ? LB_FOREVER : death,
                                            due < 0 ? LB_FOREVER : due, false, stale == 2};
    return 0;
}

static int run_renew(struct beat_call *b, struct lq_stop *stop, size_t *n_stop, lade_err *err)
{
    struct ls_redis_ask ask = {encode_renew,    b, "renew", false, b->beat->lanes.queue,
                               b->beat->lanes.n};
    struct ls_redis_conn *c;
    describe(&b->about, b->beat);
    if (b->about.failed)
        return lb_fail_nomem(err, "renew");
    int rc = ls_redis_link_conn(b->s, &b->s->beat, &c, err);
    if (rc == 0)
        rc = ls_redis_ask(b->s, c, &ask, 1, err);
    return rc == 0 ? read_renew(b, c, stop, n_stop, err) : rc;
}

static void encode_info(struct ls_redis_conn *c, void *ctx LB_UNUSED, bool repeat LB_UNUSED)
{
    struct ls_redis_cmd *cmd = ls_redis_conn_begin(c, 2);
    ls_redis_arg_str(cmd, "INFO");
    ls_redis_arg_str(cmd, "server");
    ls_redis_cmd_end(cmd);
}

/*
 * After a reconnect: whether it is the same run of the same server. One that does not let us ask is taken for the same. Under the
 * link's lock.
 */
static void identify(struct ls_redis_store *s, struct ls_redis_conn *c)
{
    uint64_t generation = ls_redis_conn_generation(c);
    if (generation == s->run_seen)
        return;
    struct ls_redis_ask ask = {encode_info, s, "renew", true, NULL, 0};
    if (ls_redis_ask(s, c, &ask, 1, NULL) < 0)
        return;
    s->run_seen = generation;
    struct ls_redis_cursor cur = ls_redis_conn_reply(c, 0);
    struct lb_slice info = ls_redis_read_bytes(&cur);
    const uint8_t *at = cur.bad ? NULL : memmem(info.p, info.n, "run_id:", 7);
    if (!at || info.n - (size_t)(at + 7 - info.p) < LS_REDIS_SHA_LEN)
        return;
    char run[LS_REDIS_SHA_LEN + 1] = {0};
    memcpy(run, at + 7, LS_REDIS_SHA_LEN);
    if (s->run_id[0] && strcmp(run, s->run_id) != 0)
        s->runs++;
    memcpy(s->run_id, run, sizeof(run));
}

/* What the renewal says beside the store's own words. */
static void note_server(struct beat_call *b)
{
    struct ls_redis_store *s = b->s;
    identify(s, s->beat.conn);
    if (!b->beat->first && b->w->run != s->runs && b->beat->ahead)
        b->beat->ahead->other_store = true;
    b->w->run = s->runs;
}

int ls_redis_renew(struct lq_store *base, const struct lq_beat *beat, struct lq_stop *stop,
                   size_t max, size_t *n_stop, lade_err *err)
{
    struct beat_call b = {
        .s = ls_redis_of(base), .beat = beat, .max = LB_MIN(max, LS_REDIS_STOPS_MAX)};
    b.w = ls_redis_worker_ref(b.s, beat->worker);
    if (!b.w)
        return lb_fail_nomem(err, "renew");
    lb_buf_init(&b.about);
    lr_mutex_lock(&b.s->beat.lock);
    int rc = run_renew(&b, stop, n_stop, err);
    if (rc == 0)
        note_server(&b);
    lr_mutex_unlock(&b.s->beat.lock);
    lb_buf_fini(&b.about);
    ls_redis_worker_unref(b.s, b.w);
    if (rc == LADE_STALE)
        ls_redis_worker_forget(b.s, beat->worker);
    return rc;
}

/* leave ----------------------------------------------------------------------------------------------------------- */

struct leave_call {
    struct ls_redis_store *s;
    const char *worker;
    struct lq_lanes lanes;
};

static void encode_leave(struct ls_redis_conn *c, void *ctx, bool repeat LB_UNUSED)
{
    const struct leave_call *l = ctx;
    struct ls_redis_cmd *cmd =
        ls_redis_script_begin(c, LS_REDIS_LUA_LEAVE, l->lanes.n + 1, l->lanes.n + 2);
    ls_redis_key_ns(cmd, l->s->base.config.ns, "workers");
    ls_redis_keys_of(cmd, l->s, l->lanes);
    ls_redis_arg_str(cmd, l->worker);
    ls_redis_cmd_end(cmd);
}

int ls_redis_leave(struct lq_store *base, const char *worker, struct lq_lanes lanes, lade_err *err)
{
    struct leave_call l = {ls_redis_of(base), worker, lanes};
    struct ls_redis_ask ask = {encode_leave, &l, "leave", false, lanes.queue, lanes.n};
    struct ls_redis_conn *c;
    lr_mutex_lock(&l.s->beat.lock);
    int rc = ls_redis_link_conn(l.s, &l.s->beat, &c, err);
    if (rc == 0)
        rc = ls_redis_ask(l.s, c, &ask, 1, err);
    lr_mutex_unlock(&l.s->beat.lock);
    if (rc == 0)
        ls_redis_worker_forget(l.s, worker);
    return rc;
}

/* reclaim --------------------------------------------------------------------------------------------------------- */

struct reclaim_call {
    struct ls_redis_store *s;
    const struct lq_take *take;
    struct ls_redis_worker *w;
};

static void encode_reclaim(struct ls_redis_conn *c, void *ctx, bool repeat)
{
    const struct reclaim_call *r = ctx;
    const struct lq_take *take = r->take;
    struct ls_redis_cmd *cmd =
        ls_redis_script_begin(c, LS_REDIS_LUA_RECLAIM, take->lanes.n + 1, take->lanes.n + 8);
    ls_redis_key_ns(cmd, r->s->base.config.ns, "workers");
    ls_redis_keys_of(cmd, r->s, take->lanes);
    ls_redis_arg_str(cmd, take->worker);
    ls_redis_arg_u64(cmd, LB_MIN(take->max, LQ_TAKE_MAX));
    ls_redis_arg_u64(cmd, r->s->base.config.body_max ? r->s->base.config.body_max : UINT32_MAX);
    ls_redis_arg_int(cmd, LS_REDIS_ANSWER_BYTES);
    ls_redis_arg_u64(cmd, r->w->won_seq);
    ls_redis_arg_int(cmd, repeat || r->w->won_doubt);
    ls_redis_arg_int(cmd, LS_REDIS_MEMORY_MS);
    ls_redis_cmd_end(cmd);
}

/* EMPTY only when surely nothing is left: a long scan goes on with the next call. */
static int read_reclaim(const struct reclaim_call *r, struct ls_redis_conn *c,
                        struct lq_leased_vec *out, lade_err *err)
{
    struct ls_redis_cursor cur = ls_redis_conn_reply(c, 0);
    size_t n = ls_redis_read_array(&cur);
    int64_t stale = ls_redis_read_int(&cur), more = ls_redis_read_int(&cur);
    if (cur.bad || n < 2)
        return -LADE_EPROTO;
    if (stale == 1)
        return LADE_STALE;
    int rc = ls_redis_read_leased(r->s, &cur, n - 2, r->take->lanes, out, err);
    if (rc < 0)
        return rc;
    return n > 2 || more ? 0 : LADE_EMPTY;
}

static int run_reclaim(const struct reclaim_call *r, struct lq_leased_vec *out, lade_err *err)
{
    struct ls_redis_ask ask = {encode_reclaim,       (void *)r,       "reclaim", false,
                               r->take->lanes.queue, r->take->lanes.n};
    struct ls_redis_conn *c;
    size_t before = out->n;
    int rc = ls_redis_link_conn(r->s, &r->s->work, &c, err);
    if (rc < 0)
        return rc;
    rc = ls_redis_ask(r->s, c, &ask, 1, err);
    bool doubt = rc < 0 && ls_redis_conn_may_have_run(c);
    if (rc == 0) {
        rc = read_reclaim(r, c, out, err);
        doubt = rc < 0;
        if (rc == -LADE_EPROTO)
            rc = ls_redis_conn_fail_reply(c, "reclaim", err);
    }
    if (rc < 0)
        out->n = before;
    else
        r->w->won_seq++;
    r->w->won_doubt = rc < 0 && (doubt || r->w->won_doubt);
    return rc;
}

int ls_redis_reclaim(struct lq_store *base, const struct lq_take *take, struct lq_leased_vec *out,
                     lade_err *err)
{
    struct reclaim_call r = {ls_redis_of(base), take, NULL};
    r.w = ls_redis_worker_ref(r.s, take->worker);
    if (!r.w)
        return lb_fail_nomem(err, "reclaim");
    lr_mutex_lock(&r.s->work.lock);
    int rc = run_reclaim(&r, out, err);
    lr_mutex_unlock(&r.s->work.lock);
    ls_redis_worker_unref(r.s, r.w);
    return rc;
}
