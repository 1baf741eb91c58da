/*
 * op_take.c - settle_take: settles of each queue and then the take, as scripts in one write (lua/settle.lua, lua/take.lua), or as one
 * call where there is one queue (lua/trip.lua)
 */
#include "store/redis/op_take.h"

#include <string.h>

#include "base/base.h"
#include "base/err.h"
#include "store/redis/fill.h"
#include "store/redis/outbox.h"
#include "store/redis/packs.h"
#include "store/redis/slots.h"

static void add_take_args(struct ls_redis_cmd *cmd, const struct ls_redis_trip *t, bool repeat)
{
    const struct lq_take *take = t->take;
    LB_CHECK(take && t->w);
    ls_redis_arg_str(cmd, take->worker);
    ls_redis_arg_u64(cmd, LB_MIN(take->max, LQ_TAKE_MAX));
    ls_redis_arg_int(cmd, take->register_idle);
    ls_redis_arg_int(cmd, t->was_idle);
    ls_redis_arg_u64(cmd, t->s->base.config.body_max ? t->s->base.config.body_max : UINT32_MAX);
    ls_redis_arg_int(cmd, LS_REDIS_ANSWER_BYTES);
    ls_redis_arg_u64(cmd, t->w->take_seq);
    ls_redis_arg_int(cmd, repeat || t->w->take_doubt);
    ls_redis_arg_int(cmd, LS_REDIS_MEMORY_MS);
}

#define N_TAKE_ARGS 9

static void encode_take(struct ls_redis_conn *c, const struct ls_redis_trip *t, bool repeat)
{
    const struct lq_take *take = t->take;
    struct ls_redis_cmd *cmd =
        ls_redis_script_begin(c, LS_REDIS_LUA_TAKE, take->lanes.n, take->lanes.n + N_TAKE_ARGS);
    ls_redis_keys_of(cmd, t->s, take->lanes);
    add_take_args(cmd, t, repeat);
    ls_redis_cmd_end(cmd);
}

/* A take from one queue, and nothing to settle or jobs of the same queue: lua/trip.lua, lua/flow_trip.lua; or steps of flows alone. */
bool ls_redis_trip_is_one_call(const struct ls_redis_trip *t)
{
    const struct ls_redis_settles *g = &t->settles;
    if (!t->take)
        return g->n_queues == 1 && ls_redis_settles_move_flows(g, 0);
    if (t->take->lanes.n != 1 || g->n_queues > 1)
        return false;
    return g->n_queues == 0 || strcmp(g->queue[0], t->take->lanes.queue[0]) == 0;
}

static void encode_both(struct ls_redis_conn *c, struct ls_redis_trip *t, bool repeat)
{
    static const char *const what[2][2] = {{"take", "take_long"}, {"settle", "settle_long"}};
    const struct ls_redis_settles *g = &t->settles;
    ls_redis_settles_prepare(g);
    size_t n = g->n_queues > 0 ? ls_redis_settles_n_args(g, 0) : 0;
    bool flows = n > 0 && ls_redis_settles_move_flows(g, 0),
         usual = !repeat && !(t->w && t->w->take_doubt);
    if (flows)
        usual = usual && t->s->n_doubts == 0 && !ls_redis_is_telling(t->s, g->queue[0]);
    else
        t->tries_short = usual = usual && (n == 0 || ls_redis_settles_are_plain(g, 0)) &&
                                 ls_redis_detour_is_open(&t->s->trip);
    struct ls_redis_cmd *cmd =
        ls_redis_script_begin(c, flows ? LS_REDIS_LUA_FLOW_TRIP : LS_REDIS_LUA_TRIP, 1,
                              3 + n + (t->take ? N_TAKE_ARGS : 0));
    ls_redis_key(cmd, t->s->base.config.ns, t->take ? t->take->lanes.queue[0] : g->queue[0],
                 "meta");
    ls_redis_arg_str(cmd, what[n > 0][!usual]);
    ls_redis_arg_u64(cmd, n);
    if (n > 0)
        ls_redis_settles_add_args(g, cmd, 0, repeat);
    if (t->take)
        add_take_args(cmd, t, repeat);
    ls_redis_cmd_end(cmd);
}

static void encode_trip(struct ls_redis_conn *c, void *ctx, bool repeat)
{
    struct ls_redis_trip *t = ctx;
    if (t->one_call) {
        encode_both(c, t, repeat);
        return;
    }
    ls_redis_settles_encode(&t->settles, c, repeat);
    if (t->take)
        encode_take(c, t, repeat);
}

/* One byte string of a reply into the arena. */
static struct lb_mut copy(struct lq_leased_vec *out, struct lb_slice s)
{
    return lb_arena_copy(&out->arena, s.p, s.n);
}

/* "<id of the first>+<n>": what follows from it, or n = 0. */
struct run {
    struct lb_slice id;
    size_t from, n;
};

static struct run read_entry(struct lb_slice entry)
{
    struct run r = {.n = 0};
    const uint8_t *plus = entry.n > 0 ? memchr(entry.p, '+', entry.n) : NULL;
    if (!plus || plus - entry.p > LADE_ID_MAX)
        return r;
    r.id = lb_slice(entry.p, (size_t)(plus - entry.p));
    struct lb_slice count = lb_slice(plus + 1, entry.n - r.id.n - 1);
    int place = ls_redis_place_of(r.id);
    int64_t n = ls_redis_take_number(&count);
    if (place < 0 || n <= 0 || n > LS_REDIS_PLACES - place)
        return r;
    r.from = (size_t)place;
    r.n = (size_t)n;
    return r;
}

/* How many jobs the groups of an answer are; the cursor is a copy. */
static size_t count_jobs(struct ls_redis_cursor c, size_t n_groups)
{
    size_t n = 0;
    for (size_t i = 0; i < n_groups && !c.bad; i++) {
        size_t fields = ls_redis_read_array(&c);
        ls_redis_skip(&c);
        ls_redis_skip(&c);
        struct ls_redis_cursor in = c;
        n += fields == 3 ? read_entry(ls_redis_read_bytes(&in)).n : ls_redis_read_array(&in);
        for (size_t k = 2; k < fields && !c.bad; k++)
            ls_redis_skip(&c);
    }
    return n;
}

/* Room for n more jobs. */
static bool grow(struct lq_leased_vec *out, size_t n)
{
    struct lq_leased *all = lb_arena_alloc(&out->arena, (out->n + n) * sizeof(*all));
    if (!all)
        return false;
    if (out->n > 0)
        memcpy(all, out->job, out->n * sizeof(*all));
    out->job = all;
    return true;
}

/* Jobs of a pack, still without their bodies; the ids are made from that of the first. */
static int read_run(struct ls_redis_cursor *c, struct lq_leased_vec *out, struct lq_leased *job,
                    size_t *n)
{
    struct run r = read_entry(ls_redis_read_bytes(c));
    c->bad |= r.n == 0;
    if (c->bad)
        return 0;
    char id[LADE_ID_MAX + 1];
    size_t room =
        r.id.n + 6; /* the number of a step may be longer than that of the first, and a NUL */
    uint8_t *at = lb_arena_alloc(&out->arena, r.n * room);
    if (!at)
        return -LADE_ENOMEM;
    memset(job, 0, r.n * sizeof(*job));
    for (size_t i = 0; i < r.n; i++, at += room) {
        size_t length = ls_redis_id_at(id, r.id, r.from + i);
        memcpy(at, id, LB_MIN(length + 1, room));
        job[i].id = (struct lb_mut){at, length};
        job[i].history = (struct lb_mut){at + length, 0}; /* a NUL */
    }
    *n = r.n;
    return 0;
}

static int read_ids_and_bodies(struct ls_redis_cursor *c, size_t n, struct lq_leased_vec *out,
                               struct lq_leased *job)
{
    for (size_t i = 0; i < n; i++) {
        job[i].id = copy(out, ls_redis_read_bytes(c));
        if (!job[i].id.p)
            return -LADE_ENOMEM;
    }
    c->bad |= ls_redis_read_array(c) != n;
    for (size_t i = 0; !c->bad && i < n; i++) {
        job[i].body = copy(out, ls_redis_read_bytes(c));
        if (!job[i].body.p)
            return -LADE_ENOMEM;
    }
    size_t n_hist = ls_redis_read_array(c);
    c->bad |= n_hist != 0 && n_hist != n;
    for (size_t i = 0; !c->bad && i < n; i++) {
        struct lb_slice h = n_hist ? ls_redis_read_bytes_or_null(c) : (struct lb_slice){NULL, 0};
        job[i].history = copy(out, h.p ? h : lb_slice("", 0));
        if (!job[i].history.p)
            return -LADE_ENOMEM;
    }
    return 0;
}

static void read_former(struct ls_redis_cursor *c, size_t n, struct lq_leased *job)
{
    c->bad |= ls_redis_read_array(c) != n;
    for (size_t i = 0; !c->bad && i < n; i++) {
        struct lb_slice former = ls_redis_read_bytes(c);
        c->bad |= former.n > LADE_ID_MAX;
        if (!c->bad)
            memcpy(job[i].former, former.p, former.n);
    }
    c->bad |= ls_redis_read_array(c) != n;
    for (size_t i = 0; !c->bad && i < n; i++)
        job[i].begun = ls_redis_read_int(c) != 0;
}

/* Jobs with records of their own; `fields` are those of the group. */
static int read_singles(struct ls_redis_cursor *c, size_t fields, struct lq_leased_vec *out,
                        struct lq_leased *job, size_t *n)
{
    *n = ls_redis_read_array(c);
    c->bad |= *n == 0 || *n > LQ_TAKE_MAX;
    if (c->bad)
        return 0;
    memset(job, 0, *n * sizeof(*job));
    int rc = read_ids_and_bodies(c, *n, out, job);
    if (rc < 0)
        return rc;
    size_t n_over = ls_redis_read_array(c);
    for (size_t i = 0; !c->bad && i < n_over; i++) {
        int64_t at = ls_redis_read_int(c);
        c->bad |= at < 0 || (size_t)at >= *n;
        if (!c->bad)
            job[at].oversize = true;
    }
    if (fields == 8)
        read_former(c, *n, job);
    return 0;
}

static int read_group(struct ls_redis_store *s, struct ls_redis_cursor *c, struct lq_lanes lanes,
                      struct lq_leased_vec *out)
{
    size_t fields = ls_redis_read_array(c), n = 0;
    int64_t lane = ls_redis_read_int(c), fence = ls_redis_read_int(c);
    bool chained = lane >= LS_REDIS_CHAINED;
    lane -= chained ? LS_REDIS_CHAINED : 0;
    bool hops = lane >= LS_REDIS_HOPPED;
    lane -= hops ? LS_REDIS_HOPPED : 0;
    bool tells = lane >= LS_REDIS_TOLD;
    lane -= tells ? LS_REDIS_TOLD : 0;
    c->bad |= (fields != 3 && fields != 6 && fields != 8) || lane < 0 || (size_t)lane >= lanes.n;
    if (c->bad)
        return -LADE_EPROTO;
    ls_redis_set_telling(s, lanes.queue[lane], tells);
    struct lq_leased *job = out->job + out->n;
    int rc = fields == 3 ? read_run(c, out, job, &n) : read_singles(c, fields, out, job, &n);
    if (n == 1 && (hops || chained))
        job->n_follow = LS_REDIS_FOLLOW;
    if (rc == 0 && !c->bad && hops)
        rc = ls_redis_fill_from_shelf(s, out, job, n);
    if (rc < 0 || c->bad)
        return rc < 0 ? rc : -LADE_EPROTO;
    for (size_t i = 0; i < n; i++) {
        job[i].lane = (uint32_t)lane;
        job[i].fence = (uint64_t)fence;
    }
    out->n += n;
    return 0;
}

int ls_redis_read_leased(struct ls_redis_store *s, struct ls_redis_cursor *c, size_t n_groups,
                         struct lq_lanes lanes, struct lq_leased_vec *out, lade_err *err)
{
    if (n_groups == 0)
        return 0;
    /* What is allowed for twice in a malformed answer is bounded by its bytes. */
    if (!grow(out, count_jobs(*c, n_groups)))
        return lb_fail_nomem(err, "take");
    for (size_t i = 0; i < n_groups; i++) {
        int rc = read_group(s, c, lanes, out);
        if (rc < 0)
            return rc == -LADE_ENOMEM ? lb_fail_nomem(err, "take") : rc;
    }
    return 0;
}

/* The answer of the short way of lua/trip.lua: {1, fence, then id and body of each job}, or {2, now, next due}. */
static bool is_brief(const struct ls_redis_trip *t, struct ls_redis_cursor cur)
{
    return t->one_call && ls_redis_peek(&cur) == LS_REDIS_ARRAY && ls_redis_read_array(&cur) > 0 &&
           ls_redis_peek(&cur) != LS_REDIS_ARRAY;
}

static int read_brief(const struct ls_redis_trip *t, struct ls_redis_cursor c,
                      struct lq_leased_vec *out, lade_err *err)
{
    size_t n = ls_redis_read_array(&c);
    int64_t what = ls_redis_read_int(&c), number = ls_redis_read_int(&c);
    if (what == 2) {
        int64_t next = ls_redis_read_int(&c);
        out->now_ms = number;
        out->next_due_ms = next;
        return c.bad ? -LADE_EPROTO : 0;
    }
    c.bad |= what != 1 || n % 2 != 0 || n > 2 + 2 * LQ_TAKE_MAX;
    if (c.bad)
        return -LADE_EPROTO;
    n = n / 2 - 1;
    if (!grow(out, n))
        return lb_fail_nomem(err, "take");
    ls_redis_set_telling(t->s, t->take->lanes.queue[0], false);
    struct lq_leased *job = out->job + out->n;
    memset(job, 0, n * sizeof(*job));
    for (size_t i = 0; i < n; i++) {
        job[i].id = copy(out, ls_redis_read_bytes(&c));
        job[i].body = copy(out, ls_redis_read_bytes(&c));
        if (!job[i].id.p || !job[i].body.p)
            return lb_fail_nomem(err, "take");
        job[i].history = (struct lb_mut){job[i].id.p + job[i].id.n, 0}; /* a NUL */
        job[i].fence = (uint64_t)number;
    }
    if (c.bad)
        return -LADE_EPROTO;
    out->n += n;
    return 0;
}

/* Returns 0 or LADE_STALE. Jobs already appended stay when it fails; the caller cuts them off. */
static int read_take(const struct ls_redis_trip *t, struct ls_redis_cursor cur,
                     struct lq_leased_vec *out, lade_err *err)
{
    if (t->brief)
        return read_brief(t, cur, out, err);
    size_t n = ls_redis_read_array(&cur);
    int64_t stale = ls_redis_read_int(&cur), now = ls_redis_read_int(&cur);
    int64_t next = ls_redis_read_int(&cur);
    if (cur.bad || n < 3)
        return -LADE_EPROTO;
    if (stale)
        return LADE_STALE;
    int rc = ls_redis_read_leased(t->s, &cur, n - 3, t->take->lanes, out, err);
    if (rc < 0)
        return rc;
    if (n == 3) {
        out->now_ms = now;
        out->next_due_ms = next;
    }
    return 0;
}

/* bodies of packs ------------------------------------------------------------------------------------------------- */

/* Jobs out->job[from..] that have no bodies yet. */
struct fetching {
    const struct ls_redis_trip *t;
    struct lq_leased_vec *out;
    size_t from;
};

/* The next run of jobs without bodies, at or behind *at: its length, 0 at the end. */
static size_t next_run(const struct lq_leased_vec *v, size_t *at)
{
    while (*at < v->n && v->job[*at].body.p)
        (*at)++;
    size_t i = *at;
    while (i < v->n && !v->job[i].body.p &&
           (i == *at ||
            (v->job[i].lane == v->job[*at].lane &&
             ls_redis_id_follows(lb_slice_of(v->job[i - 1].id), lb_slice_of(v->job[i].id)))))
        i++;
    return i - *at;
}

static void encode_fetch(struct ls_redis_conn *c, void *ctx, bool repeat LB_UNUSED)
{
    const struct fetching *f = ctx;
    char key[LS_REDIS_PACK_NAME_MAX + 3] = "b:";
    for (size_t at = f->from, n; (n = next_run(f->out, &at)) > 0; at += n) {
        const struct lq_leased *job = &f->out->job[at];
        struct ls_redis_cmd *cmd = ls_redis_conn_begin(c, 2);
        ls_redis_pack_name(key + 2, lb_slice_of(job->id));
        ls_redis_arg_str(cmd, "GET");
        ls_redis_key(cmd, f->t->s->base.config.ns, f->t->take->lanes.queue[job->lane], key);
        ls_redis_cmd_end(cmd);
    }
}

/*
 * Packs keep their bodies beside the script's data (lua/pack.lua): a second round trip, only when something of a pack was
 * taken. NOT_FOUND: a job has left its pack since, by an operator.
 */
static int fetch_bodies(struct ls_redis_trip *t, struct ls_redis_conn *c, struct lq_leased_vec *out,
                        size_t from, lade_err *err)
{
    struct fetching f = {t, out, from};
    struct ls_redis_ask ask = {encode_fetch,    &f, "take", false, t->take->lanes.queue,
                               t->take->lanes.n};
    size_t at = from, n = next_run(out, &at), replies = 0;
    if (n == 0)
        return 0;
    for (; n > 0; n = next_run(out, &at), replies++)
        at += n;
    int rc = ls_redis_ask(t->s, c, &ask, replies, err);
    at = from;
    for (size_t i = 0; rc == 0 && i < replies; i++, at += n) {
        struct ls_redis_cursor cur = ls_redis_conn_reply(c, i);
        n = next_run(out, &at);
        struct lb_slice bytes = ls_redis_read_bytes_or_null(&cur);
        rc = ls_redis_fill_run(t->s, out, &out->job[at], n, bytes);
        if (rc >= 0 && out->job[at].n_follow > 0)
            ls_redis_fill_follow(t->s, out, &out->job[at], bytes);
        if (rc >= 0)
            ls_redis_put_on_shelf(t->s, &out->job[at], rc, bytes);
        rc = rc == LADE_EMPTY ? 0 : rc;
    }
    return rc == -LADE_ENOMEM ? lb_fail_nomem(err, "take") : rc;
}

#define FETCHES_MAX 8

static void encode_take_again(struct ls_redis_conn *c, void *ctx, bool repeat)
{
    encode_take(c, ctx, repeat);
}

/* What a take's reply holds, with its bodies. Where some are missing, what is still leased is asked for once more. */
static int read_whole_take(struct ls_redis_trip *t, struct ls_redis_conn *c,
                           struct ls_redis_cursor cur, struct lq_leased_vec *out, lade_err *err)
{
    struct ls_redis_ask ask = {encode_take_again, t, "take", false, t->take->lanes.queue,
                               t->take->lanes.n};
    size_t before = out->n;
    for (int i = 0; i < FETCHES_MAX; i++) {
        int rc = read_take(t, cur, out, err);
        if (rc == -LADE_EPROTO)
            return ls_redis_conn_fail_reply(c, "take", err);
        if (rc == 0)
            rc = fetch_bodies(t, c, out, before, err);
        if (rc != LADE_NOT_FOUND)
            return rc;
        out->n = before;
        t->w->take_doubt = true; /* the next one is a repeat */
        rc = ls_redis_ask(t->s, c, &ask, 1, err);
        if (rc < 0)
            return rc;
        cur = ls_redis_conn_reply(c, 0);
    }
    return lb_fail(err, LADE_EUNAVAILABLE, "take",
                   "jobs were moved by others each time: try again");
}

/* The take's part of a finished round trip. */
static int finish_take(struct ls_redis_trip *t, struct ls_redis_conn *c, struct ls_redis_cursor cur,
                       struct lq_leased_vec *out, lade_err *err)
{
    size_t before = out->n;
    int rc = read_whole_take(t, c, cur, out, err);
    if (rc < 0) {
        out->n = before;
        /* The jobs are this worker's all the same: the next take asks for them. And the settles are done, though the
         * caller will repeat them. */
        t->w->take_doubt = true;
        ls_redis_settles_doubt(&t->settles);
        return rc;
    }
    for (size_t i = before; i < out->n && !t->take->follow; i++)
        out->job[i].n_follow = 0;
    if (!t->more) {
        t->w->take_seq++;
        t->w->take_doubt = false;
    }
    bool idle = t->take->register_idle && rc == 0 && out->n == before;
    t->w->idle = idle || (t->w->idle && t->more);
    return rc;
}

/*
 * What part i of the trip answered: the settles of each queue, then the take. False when that is an error, or no such answer; then
 * reply *at is the one to name.
 */
static bool find_part(const struct ls_redis_trip *t, struct ls_redis_conn *c, size_t i,
                      struct ls_redis_cursor *cur, size_t *at)
{
    *at = t->one_call ? 0 : i;
    *cur = ls_redis_conn_reply(c, *at);
    if (ls_redis_peek(cur) == LS_REDIS_ERROR)
        return false;
    if (!t->one_call || t->brief)
        return true;
    bool good = ls_redis_read_array(cur) == 3;
    if (i == 1 || t->settles.n_queues == 0)
        ls_redis_skip(cur);
    return good && !cur->bad;
}

/* A part of a call that is not brief. */
static bool went_short(struct ls_redis_cursor cur)
{
    (void)ls_redis_read_array(&cur);
    ls_redis_skip(&cur);
    ls_redis_skip(&cur);
    return ls_redis_read_int(&cur) != 0;
}

/*
 * A round trip whose replies are all there. When one of them is an error nothing is handed over: the caller settles
 * again and is not told STALE for what was done, and the next take gets what this one took.
 */
static int finish_trip(struct ls_redis_trip *t, struct ls_redis_conn *c,
                       const struct ls_redis_ask *ask, struct lq_leased_vec *out, lade_err *err)
{
    size_t n_settles = t->settles.n_queues, n = n_settles + (t->take != NULL);
    struct ls_redis_cursor cur = {0};
    t->brief = is_brief(t, ls_redis_conn_reply(c, 0));
    for (size_t i = 0, at; i < n; i++) {
        bool good = find_part(t, c, i, &cur, &at);
        if (good && (i == n_settles || t->brief || ls_redis_settles_read(&t->settles, i, cur)))
            continue;
        ls_redis_settles_doubt(&t->settles);
        if (t->take)
            t->w->take_doubt = t->w->idle = true;
        struct ls_redis_cursor whole = ls_redis_conn_reply(c, at);
        return ls_redis_peek(&whole) == LS_REDIS_ERROR
                   ? ls_redis_refuse(t->s, c, ask, at, err)
                   : ls_redis_conn_fail_reply(c, t->one_call ? "trip" : "settle", err);
    }
    ls_redis_settles_report(&t->settles);
    if (t->tries_short)
        ls_redis_detour_note(&t->s->trip, !t->brief && !went_short(ls_redis_conn_reply(c, 0)));
    return t->take ? finish_take(t, c, cur, out, err) : 0;
}

/* What the steps of flows that ended have to tell elsewhere. */
static void ship_flows(const struct ls_redis_trip *t, struct ls_redis_conn *c)
{
    for (size_t i = 0; ls_redis_in_slots(t->s) && i < t->settles.n_queues; i++) {
        if (ls_redis_settles_move_flows(&t->settles, i))
            ls_redis_ship(t->s, c, &t->settles.queue[i], 1);
    }
}

int ls_redis_trip_run(struct ls_redis_trip *t, struct lq_leased_vec *out, lade_err *err)
{
    struct ls_redis_ask ask = {encode_trip,        t, "settle", false, t->settles.queue,
                               t->settles.n_queues};
    if (t->take)
        ask = (struct ls_redis_ask){encode_trip,     t, "take", false, t->take->lanes.queue,
                                    t->take->lanes.n};
    struct ls_redis_conn *c;
    int rc = ls_redis_link_conn(t->s, &t->s->work, &c, err);
    if (rc < 0)
        return rc;
    struct ls_redis_call call = {encode_trip, t, ask.where, false, true};
    rc = ls_redis_conn_call(c, &call, ls_redis_deadline(t->s), err);
    if (rc == 0) {
        rc = finish_trip(t, c, &ask, out, err);
        ship_flows(t, c);
        return rc;
    }
    if (ls_redis_conn_may_have_run(c)) {
        ls_redis_settles_doubt(&t->settles);
        if (t->take)
            t->w->take_doubt = t->w->idle = true;
    }
    return rc;
}

int ls_redis_settle_take(struct lq_store *base, struct lq_settle *it, size_t n,
                         const struct lq_take *take, struct lq_leased_vec *out, lade_err *err)
{
    struct ls_redis_trip t = {.s = ls_redis_of(base), .take = take};
    if (n == 0 && !take)
        return 0;
    if (take) {
        t.w = ls_redis_worker_ref(t.s, take->worker);
        if (!t.w)
            return lb_fail_nomem(err, "take");
    }
    int rc = ls_redis_settles_init(&t.settles, t.s, it, n, true, err);
    if (rc == 0) {
        t.one_call = ls_redis_trip_is_one_call(&t);
        lr_mutex_lock(&t.s->work.lock);
        t.was_idle = t.w && t.w->idle;
        if (take && take->lanes.n > 1 && ls_redis_in_slots(t.s))
            rc = ls_redis_trip_lanes(&t, out, err);
        else
            rc = ls_redis_trip_run(&t, out, err);
        lr_mutex_unlock(&t.s->work.lock);
    }
    ls_redis_settles_fini(&t.settles);
    if (t.w)
        ls_redis_worker_unref(t.s, t.w);
    return rc;
}
