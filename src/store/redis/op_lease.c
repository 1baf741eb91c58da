/*
 * op_lease.c - renew, leave, reclaim; lua/renew.lua, lua/leave.lua, lua/reclaim.lua
 */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/err.h"
#include "queue/beat.h"
#include "queue/control_store.h"
#include "store/redis/outbox.h"
#include "store/redis/slots.h"

/* renew ----------------------------------------------------------------------------------------------------------- */

struct beat_call {
    struct ls_redis_store *s;
    const struct lq_beat *beat;
    struct ls_redis_worker *w;
    size_t max;
    bool ships;          /* in slots: there are messages that somebody has not shipped */
    struct lb_buf about; /* what <ns>:workers keeps behind the two times */
    struct lq_orders orders;
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
static void encode_arrived(struct ls_redis_cmd *cmd, const struct beat_call *b, size_t first,
                           size_t n)
{
    const char *p = (const char *)b->w->stops.p, *end = p + b->w->stops.n;
    while (p && p < end) {
        const char *text = p + strlen(p) + 1;
        size_t lane = find_queue(b->beat->lanes, p);
        if (lane >= first && lane < first + n) {
            ls_redis_arg_u64(cmd, lane - first);
            ls_redis_arg_str(cmd, text);
        }
        p = text + strlen(text) + 1;
    }
}

/* What the call of these lanes, the first of which has number `first`, is besides its key of workers. */
static void encode_beat(struct ls_redis_cmd *cmd, const struct beat_call *b, struct lq_lanes lanes,
                        size_t first)
{
    const struct lq_beat *beat = b->beat;
    /* In slots only the call without lanes is about the record of the worker. */
    bool tells = beat->report && (lanes.n == 0 || !ls_redis_in_slots(b->s));
    struct lq_report report = tells ? *beat->report : (struct lq_report){0};
    ls_redis_keys_of(cmd, b->s, lanes);
    ls_redis_arg_str(cmd, beat->worker);
    ls_redis_arg_int(cmd, beat->lease_ms);
    ls_redis_arg_int(cmd, beat->first);
    ls_redis_arg_slice(cmd, lb_buf_slice(&b->about));
    ls_redis_arg_u64(cmd, b->max);
    ls_redis_arg_slice(cmd, report.about);
    ls_redis_arg_slice(cmd, report.stacks);
    ls_redis_arg_u64(cmd, report.made);
    encode_arrived(cmd, b, first, lanes.n);
    ls_redis_cmd_end(cmd);
}

static void encode_renew(struct ls_redis_conn *c, void *ctx, bool repeat LB_UNUSED)
{
    const struct beat_call *b = ctx;
    struct lq_lanes lanes = b->beat->lanes;
    size_t n = ls_redis_n_calls(b->s, lanes);
    for (size_t i = 0; i < n; i++) {
        struct lq_lanes some = ls_redis_some_lanes(lanes, i, n);
        struct ls_redis_cmd *cmd =
            ls_redis_script_begin(c, LS_REDIS_LUA_RENEW, some.n + 1, some.n + 9);
        ls_redis_key_shared(cmd, b->s, some.queue[0], "workers");
        encode_beat(cmd, b, some, i);
    }
    if (!ls_redis_in_slots(b->s))
        return;
    struct ls_redis_cmd *cmd =
        ls_redis_conn_begin(c, 2); /* whether there are schedules, elsewhere */
    ls_redis_arg_str(cmd, "ZCARD");
    ls_redis_key(cmd, b->s->base.config.ns, "~schedules", "due");
    ls_redis_cmd_end(cmd);
    for (size_t i = 0; i < n; i++) { /* messages that somebody has not shipped: outbox.h */
        cmd = ls_redis_conn_begin(c, 2);
        ls_redis_arg_str(cmd, "EXISTS");
        ls_redis_key(cmd, b->s->base.config.ns, lanes.queue[i], "outs");
        ls_redis_cmd_end(cmd);
    }
}

/* In slots, once all lanes know the worker: the list of all. */
static void encode_listed(struct ls_redis_conn *c, void *ctx, bool repeat LB_UNUSED)
{
    const struct beat_call *b = ctx;
    struct ls_redis_cmd *cmd = ls_redis_script_begin(c, LS_REDIS_LUA_RENEW, 1, 9);
    ls_redis_key_ns(cmd, b->s->base.config.ns, "workers");
    encode_beat(cmd, b, (struct lq_lanes){NULL, 0}, 0);
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

/* Of one of its calls, whose first lane has number `first`. Adds up to `max` stops; what has no room is told again. */
static int read_beat(struct beat_call *b, struct ls_redis_cursor cur, size_t first,
                     struct lq_stop *stop, size_t *n_stop, struct lq_ahead *ahead)
{
    size_t n = ls_redis_read_array(&cur);
    int64_t stale = ls_redis_read_int(&cur);
    int64_t death = ls_redis_read_int(&cur), due = ls_redis_read_int(&cur);
    struct lq_orders orders = {.wish = ls_redis_read_int(&cur)};
    orders.asked = (uint64_t)ls_redis_read_int(&cur);
    if (cur.bad || n < 5 || n % 2 != 1 || n / 2 - 2 > b->max)
        return -LADE_EPROTO;
    if (stale == 1)
        return LADE_STALE;
    if (orders.wish != 0 || orders.asked != 0)
        b->orders = orders;
    for (size_t i = 0; i < n / 2 - 2 && *n_stop < b->max; i++) {
        int64_t lane = ls_redis_read_int(&cur) + (int64_t)first;
        struct lb_slice text = ls_redis_read_bytes(&cur);
        struct lq_stop *to = &stop[*n_stop];
        if (cur.bad || lane < 0 || (size_t)lane >= b->beat->lanes.n ||
            !read_stop(to, b->beat->lanes.queue[lane], text))
            return -LADE_EPROTO;
        lb_buf_add(&b->w->stops, to->queue, strlen(to->queue) + 1);
        lb_buf_add(&b->w->stops, text.p, text.n);
        lb_buf_add_byte(&b->w->stops, 0);
        ++*n_stop;
    }
    ahead->death_in_ms = LB_MIN(ahead->death_in_ms, death < 0 ? LB_FOREVER : death);
    ahead->due_in_ms = LB_MIN(ahead->due_in_ms, due < 0 ? LB_FOREVER : due);
    ahead->schedules = ahead->schedules || stale == 2;
    return 0;
}

static int read_renew(struct beat_call *b, struct ls_redis_conn *c, struct lq_stop *stop,
                      size_t *n_stop, lade_err *err)
{
    struct lq_ahead ahead = {LB_FOREVER, LB_FOREVER, false, false};
    size_t n = ls_redis_n_calls(b->s, b->beat->lanes);
    int rc = 0;
    *n_stop = 0;
    lb_buf_clear(&b->w->stops);
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = read_beat(b, ls_redis_conn_reply(c, i), i, stop, n_stop, &ahead);
    if (ls_redis_in_slots(b->s)) {
        struct ls_redis_cursor cur = ls_redis_conn_reply(c, n);
        ahead.schedules = ls_redis_read_int(&cur) > 0;
        for (size_t i = 0; i < n; i++) {
            cur = ls_redis_conn_reply(c, n + 1 + i);
            b->ships = ls_redis_read_int(&cur) > 0 || b->ships;
        }
        if (b->ships) /* by promote; who has just come does it at once */
            ahead.due_in_ms = 0;
    }
    if (rc != 0) {
        *n_stop = 0;
        return rc < 0 ? ls_redis_conn_fail_reply(c, "renew", err) : rc;
    }
    if (b->w->stops.failed) /* told once more by the next renew */
        lb_buf_clear(&b->w->stops);
    if (b->beat->ahead)
        *b->beat->ahead = ahead;
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
        rc = ls_redis_ask(b->s, c, &ask, ls_redis_in_slots(b->s) ? 2 * b->beat->lanes.n + 1 : 1,
                          err);
    if (rc == 0)
        rc = read_renew(b, c, stop, n_stop, err);
    ask.encode = encode_listed;
    if (rc == 0 && ls_redis_in_slots(b->s)) {
        struct lq_ahead none = {LB_FOREVER, LB_FOREVER, false, false};
        size_t n = 0;
        rc = ls_redis_ask(b->s, c, &ask, 1, err);
        if (rc == 0 && read_beat(b, ls_redis_conn_reply(c, 0), 0, stop, &n, &none) < 0)
            rc = ls_redis_conn_fail_reply(c, "renew", err);
    }
    if (rc == 0 && b->beat->orders)
        *b->beat->orders = b->orders;
    if (rc == 0 && b->ships && b->beat->first)
        ls_redis_ship(b->s, c, b->beat->lanes.queue, b->beat->lanes.n);
    return rc;
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
    size_t n = ls_redis_n_calls(l->s, l->lanes), all = n + (ls_redis_in_slots(l->s) ? 1 : 0);
    for (size_t i = 0; i < all; i++) {
        struct lq_lanes some = i < n ? ls_redis_some_lanes(l->lanes, i, n) : (struct lq_lanes){0};
        struct ls_redis_cmd *cmd =
            ls_redis_script_begin(c, LS_REDIS_LUA_LEAVE, some.n + 1, some.n + 2);
        if (i < n)
            ls_redis_key_shared(cmd, l->s, some.queue[0], "workers");
        else
            ls_redis_key_ns(cmd, l->s->base.config.ns, "workers");
        ls_redis_keys_of(cmd, l->s, some);
        ls_redis_arg_str(cmd, l->worker);
        ls_redis_cmd_end(cmd);
    }
}

int ls_redis_leave(struct lq_store *base, const char *worker, struct lq_lanes lanes, lade_err *err)
{
    struct leave_call l = {ls_redis_of(base), worker, lanes};
    struct ls_redis_ask ask = {encode_leave, &l, "leave", false, lanes.queue, lanes.n};
    struct ls_redis_conn *c;
    lr_mutex_lock(&l.s->beat.lock);
    int rc = ls_redis_link_conn(l.s, &l.s->beat, &c, err);
    if (rc == 0)
        rc = ls_redis_ask(l.s, c, &ask,
                          ls_redis_n_calls(l.s, lanes) + (ls_redis_in_slots(l.s) ? 1 : 0), err);
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
    ls_redis_key_shared(cmd, r->s, take->lanes.queue[0], "workers");
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
    int rc = ls_redis_link_conn(r->s, &r->s->work, &c, err);
    if (rc < 0)
        return rc;
    rc = ls_redis_ask(r->s, c, &ask, 1, err);
    if (rc < 0) {
        r->w->won_doubt = r->w->won_doubt || ls_redis_conn_may_have_run(c);
        return rc;
    }
    rc = read_reclaim(r, c, out, err);
    r->w->won_doubt = r->w->won_doubt || rc < 0;
    return rc == -LADE_EPROTO ? ls_redis_conn_fail_reply(c, "reclaim", err) : rc;
}

/* The calls are one to whoever repeats them: they have one number. */
static int reclaim_lanes(struct reclaim_call *r, struct lq_leased_vec *out, lade_err *err)
{
    const struct lq_take *take = r->take;
    size_t n = ls_redis_n_calls(r->s, take->lanes), before = out->n;
    int rc = LADE_EMPTY;
    for (size_t i = 0; i < n && out->n - before < take->max; i++) {
        struct lq_take one = *take;
        size_t at = out->n;
        one.lanes = ls_redis_some_lanes(take->lanes, i, n);
        one.max = take->max - (at - before);
        r->take = &one;
        int its = run_reclaim(r, out, err);
        for (; its == 0 && n > 1 && at < out->n; at++)
            out->job[at].lane = (uint32_t)i;
        if (its != LADE_EMPTY)
            rc = its;
        if (its != 0 && its != LADE_EMPTY)
            break;
    }
    r->take = take;
    if (rc < 0) {
        out->n = before;
    } else {
        r->w->won_seq++;
        r->w->won_doubt = false;
    }
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
    int rc = reclaim_lanes(&r, out, err);
    lr_mutex_unlock(&r.s->work.lock);
    ls_redis_worker_unref(r.s, r.w);
    return rc;
}
