/*
 * op_schedule.c - schedules; lua/schedule.lua tells of their keys
 *
 * They lie under a hash tag of their own. A fire changes them and the jobs' queue in one script: on a server by itself that is one
 * atomic step. Two slots of a cluster have no such step: there the put goes as a message (outbox.h).
 *
 * A repeat after a lost reply is told by a token, which the record keeps with the last answer.
 */
#include <inttypes.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/err.h"
#include "queue/schedule_store.h"
#include "store/redis/outbox.h"
#include "store/redis/slots.h"

#define LANE LS_REDIS_SCHEDULES

struct call {
    struct ls_redis_store *s;
    enum ls_redis_lua script;
    const char *verb; /* the first argument; NULL = none */
    struct lb_slice arg[12];
    size_t n_args;
    char text[8][24]; /* numbers among them */
    size_t n_texts;
    const struct lq_fire *fire;
    bool busy; /* in slots: the last job has not ended */
    char token[LADE_ID_MAX + 24];
    bool has_token;
};

static const char *const lane[] = {LANE};

static void add(struct call *k, struct lb_slice arg)
{
    LB_CHECK(k->n_args < LB_ARRAY_LEN(k->arg));
    k->arg[k->n_args++] = arg;
}

static void add_number(struct call *k, int64_t v)
{
    LB_CHECK(k->n_texts < LB_ARRAY_LEN(k->text));
    char *t = k->text[k->n_texts++];
    (void)snprintf(t, sizeof(k->text[0]), "%" PRId64, v);
    add(k, lb_slice_str(t));
}

/* What put.lua reads for one lane, all of its jobs special. */
static void encode_put(struct ls_redis_cmd *cmd, const struct call *k)
{
    const struct lq_fire *f = k->fire;
    size_t longest = 0;
    for (size_t i = 0; i < f->n; i++)
        longest = LB_MAX(longest, f->put[i].body.n);
    ls_redis_arg_str(cmd, k->token);
    ls_redis_arg_int(cmd, 1);
    ls_redis_arg_int(cmd, 0);
    ls_redis_arg_int(cmd, 1); /* the answer is remembered with the record, not here */
    ls_redis_arg_u64(cmd, f->n);
    ls_redis_arg_u64(cmd, longest > LS_REDIS_BIG_BODY ? longest : 0);
    ls_redis_arg_int(cmd, 1);
    ls_redis_arg_str(cmd, "");
    ls_redis_arg_u64(cmd, f->n);
    for (size_t i = 0; i < f->n; i++) {
        ls_redis_arg_slice(cmd, f->put[i].id);
        ls_redis_arg_slice(cmd, f->put[i].body);
    }
    for (size_t i = 0; i < f->n; i++) {
        const struct lq_put *p = &f->put[i];
        ls_redis_arg_u64(cmd, i + 1);
        ls_redis_arg_int(cmd, p->when);
        ls_redis_arg_int(cmd, p->when_ms);
        ls_redis_arg_slice(cmd, p->unique);
        ls_redis_arg_int(cmd, LB_MAX(p->unique_ttl_ms, 1));
        ls_redis_arg_int(cmd, p->until);
        ls_redis_arg_slice(cmd, p->key);
    }
}

static void add_half(struct ls_redis_cmd *cmd, const struct lq_schedule_half *h)
{
    ls_redis_arg_slice(cmd, h->memo);
    ls_redis_arg_int(cmd, h->state);
    ls_redis_arg_int(cmd, h->due_ms);
}

static void encode_fire(struct ls_redis_conn *c, const struct call *k, bool repeat)
{
    const struct lq_fire *f = k->fire;
    const char *ns = k->s->base.config.ns;
    const char *queue = f->n > 0 ? f->put[0].queue : LANE;
    const char *busy = f->busy_queue && *f->busy_queue ? f->busy_queue : LANE;
    struct lq_lanes busy_lane = {&busy, 1};
    bool slots = ls_redis_in_slots(k->s);
    if (f->n > 0)
        ls_redis_name_queues(c, k->s, &queue, 1);
    struct ls_redis_cmd *cmd =
        ls_redis_script_begin(c, LS_REDIS_LUA_SCHEDULE_FIRE, 3, 23 + 9 * f->n);
    ls_redis_key(cmd, ns, LANE, "meta");
    ls_redis_key_shared(cmd, k->s, LANE, "queues");
    ls_redis_key(cmd, ns, slots ? LANE : queue, "meta");
    ls_redis_arg_str(cmd, k->token);
    ls_redis_arg_int(cmd, repeat);
    ls_redis_arg_slice(cmd, f->id);
    ls_redis_arg_u64(cmd, f->revision);
    ls_redis_arg_u64(cmd, f->fence);
    ls_redis_arg_slice(cmd, slots && !k->busy ? lb_slice("", 0) : f->busy_id);
    if (slots)
        ls_redis_arg_str(cmd, queue);
    else
        ls_redis_keys_of(cmd, k->s, busy_lane);
    add_half(cmd, &f->fired);
    add_half(cmd, &f->held);
    ls_redis_arg_u64(cmd, f->n);
    if (f->n > 0)
        encode_put(cmd, k);
    ls_redis_cmd_end(cmd);
}

static void encode(struct ls_redis_conn *c, void *ctx, bool repeat)
{
    const struct call *k = ctx;
    if (k->fire) {
        encode_fire(c, k, repeat);
        return;
    }
    struct ls_redis_cmd *cmd = ls_redis_script_begin(c, k->script, 1, k->n_args + 3);
    ls_redis_key(cmd, k->s->base.config.ns, LANE, "meta");
    ls_redis_arg_str(cmd, k->verb);
    if (k->has_token) {
        ls_redis_arg_str(cmd, k->token);
        ls_redis_arg_int(cmd, repeat);
    }
    for (size_t i = 0; i < k->n_args; i++)
        ls_redis_arg_slice(cmd, k->arg[i]);
    ls_redis_cmd_end(cmd);
}

/* Locks the link; its reply is at *cur until end_call. */
static int begin_call(struct call *k, struct ls_redis_conn **c, struct ls_redis_cursor *cur,
                      lade_err *err)
{
    struct ls_redis_ask ask = {encode, k, "schedule", false, lane, 1};
    lr_mutex_lock(&k->s->admin.lock);
    (void)snprintf(k->token, sizeof(k->token), "%s:%" PRIu64, k->s->client, ++k->s->put_seq);
    int rc = ls_redis_link_conn(k->s, &k->s->admin, c, err);
    if (rc == 0)
        rc = ls_redis_ask(k->s, *c, &ask, 1, err);
    if (rc == 0)
        *cur = ls_redis_conn_reply(*c, 0);
    return rc;
}

static int end_call(struct call *k, struct ls_redis_conn *c, const struct ls_redis_cursor *cur,
                    int rc, lade_err *err)
{
    if (rc >= 0 && cur->bad)
        rc = ls_redis_conn_fail_reply(c, "schedule", err);
    if (rc == 0 && k->script != LS_REDIS_LUA_SCHEDULE_LOOK)
        rc = ls_redis_replicate(k->s, c, "schedule", err);
    lr_mutex_unlock(&k->s->admin.lock);
    return rc;
}

/* A call whose answer is one number. */
static int call_number(struct call *k, int64_t *out, lade_err *err)
{
    struct ls_redis_conn *c = NULL;
    struct ls_redis_cursor cur = {0};
    int rc = begin_call(k, &c, &cur, err);
    if (rc == 0)
        *out = ls_redis_read_int(&cur);
    return end_call(k, c, &cur, rc, err);
}

static int result_of(int64_t answer)
{
    static const int results[] = {0, LADE_STALE, LADE_FULL, LADE_NOT_FOUND};

    return answer >= 0 && (size_t)answer < LB_ARRAY_LEN(results) ? results[answer] : LADE_STALE;
}

static int put(struct lq_store *base, const struct lq_schedule_put *it, lade_err *err)
{
    struct call k = {
        .s = ls_redis_of(base), .script = LS_REDIS_LUA_SCHEDULE, .verb = "put", .has_token = true};
    int64_t answer = 0;
    add(&k, it->id);
    add_number(&k, (int64_t)it->revision);
    add_number(&k, it->state);
    add_number(&k, it->due_ms);
    add(&k, it->spec);
    add(&k, it->memo);
    add_number(&k, LQ_SCHEDULES_MAX);
    int rc = call_number(&k, &answer, err);
    return rc < 0 ? rc : result_of(answer);
}

static int remove_record(struct lq_store *base, struct lb_slice id, lade_err *err)
{
    struct call k = {.s = ls_redis_of(base),
                     .script = LS_REDIS_LUA_SCHEDULE,
                     .verb = "remove",
                     .has_token = true};
    int64_t answer = 0;
    add(&k, id);
    int rc = call_number(&k, &answer, err);
    return rc < 0 ? rc : result_of(answer);
}

static int resign(struct lq_store *base, const char *holder, lade_err *err)
{
    struct call k = {.s = ls_redis_of(base), .script = LS_REDIS_LUA_SCHEDULE, .verb = "resign"};
    int64_t answer = 0;
    add(&k, lb_slice_str(holder));
    int rc = call_number(&k, &answer, err);
    ls_redis_worker_forget(k.s, holder);
    return rc;
}

/* rows ------------------------------------------------------------------------------------------------------------- */

static int64_t read_number(struct ls_redis_cursor *cur)
{
    struct lb_slice text = ls_redis_read_bytes(cur);
    return ls_redis_take_number(&text);
}

static struct lb_slice read_kept(struct ls_redis_cursor *cur, struct lb_arena *a, bool *ok)
{
    struct lb_slice from = ls_redis_read_bytes(cur);
    struct lb_mut m = lb_arena_copy(a, from.p, from.n);
    *ok = *ok && m.p;
    return lb_slice_of(m);
}

/* n rows of six values each. */
static int read_rows(struct ls_redis_cursor *cur, size_t n, struct lq_schedule_vec *out,
                     lade_err *err)
{
    bool ok = true;
    struct lq_schedule_row *row = lb_arena_alloc(&out->arena, (out->n + n + 1) * sizeof(*row));
    if (!row)
        return lb_fail_nomem(err, "schedule");
    if (out->n > 0)
        memcpy(row, out->row, out->n * sizeof(*row));
    out->row = row;
    for (size_t i = 0; i < n && !cur->bad && ok; i++) {
        struct lq_schedule_row *r = &row[out->n];
        r->id = read_kept(cur, &out->arena, &ok);
        r->spec = read_kept(cur, &out->arena, &ok);
        r->memo = read_kept(cur, &out->arena, &ok);
        r->state = (enum lade_schedule_state)read_number(cur);
        r->due_ms = read_number(cur);
        r->revision = (uint64_t)read_number(cur);
        out->n += ok && !cur->bad;
    }
    return ok ? 0 : lb_fail_nomem(err, "schedule");
}

static int get(struct lq_store *base, struct lb_slice id, struct lq_schedule_vec *out,
               lade_err *err)
{
    struct call k = {.s = ls_redis_of(base), .script = LS_REDIS_LUA_SCHEDULE_LOOK, .verb = "get"};
    struct ls_redis_conn *c = NULL;
    struct ls_redis_cursor cur = {0};
    size_t before = out->n;
    add(&k, id);
    int rc = begin_call(&k, &c, &cur, err);
    if (rc == 0)
        rc = read_rows(&cur, ls_redis_read_array(&cur) / 6, out, err);
    rc = end_call(&k, c, &cur, rc, err);
    return rc == 0 && out->n == before ? LADE_NOT_FOUND : rc;
}

static int list(struct lq_store *base, lade_cursor *cursor, size_t limit,
                struct lq_schedule_vec *out, lade_err *err)
{
    struct call k = {.s = ls_redis_of(base), .script = LS_REDIS_LUA_SCHEDULE_LOOK, .verb = "list"};
    struct ls_redis_conn *c = NULL;
    struct ls_redis_cursor cur = {0};
    size_t before = out->n;
    add(&k, lb_slice_str(cursor->at));
    add_number(&k, (int64_t)limit + 1);
    int rc = begin_call(&k, &c, &cur, err);
    if (rc == 0)
        rc = read_rows(&cur, ls_redis_read_array(&cur) / 6, out, err);
    rc = end_call(&k, c, &cur, rc, err);
    if (rc < 0)
        return rc;
    cursor->done = out->n - before <= limit;
    out->n = LB_MIN(out->n, before + limit);
    if (out->n == before)
        return LADE_EMPTY;
    (void)snprintf(cursor->at, sizeof(cursor->at), "%s", (const char *)out->row[out->n - 1].id.p);
    return 0;
}

static void copy_text(char *to, size_t size, struct lb_slice from)
{
    size_t n = LB_MIN(from.n, size - 1);
    if (n > 0)
        memcpy(to, from.p, n);
    to[n] = 0;
}

static int leader(struct lq_store *base, lade_schedule_leader *out, lade_err *err)
{
    struct call k = {
        .s = ls_redis_of(base), .script = LS_REDIS_LUA_SCHEDULE_LOOK, .verb = "leader"};
    struct ls_redis_conn *c = NULL;
    struct ls_redis_cursor cur = {0};
    lade_schedule_leader l = {0};
    int rc = begin_call(&k, &c, &cur, err);
    if (rc == 0) {
        (void)ls_redis_read_array(&cur);
        int64_t now = ls_redis_read_int(&cur);
        copy_text(l.id, sizeof(l.id), ls_redis_read_bytes(&cur));
        copy_text(l.name, sizeof(l.name), ls_redis_read_bytes(&cur));
        l.fence = (uint64_t)read_number(&cur);
        int64_t until = read_number(&cur);
        l.seen_at = lb_ns_of_ms(read_number(&cur));
        if (!l.id[0] || until <= now)
            l.id[0] = l.name[0] = 0;
        l.lease_until = l.id[0] ? lb_ns_of_ms(until) : 0;
    }
    rc = end_call(&k, c, &cur, rc, err);
    if (rc == 0)
        *out = l;
    return rc;
}

/* tick, fire ------------------------------------------------------------------------------------------------------- */

static int tick(struct lq_store *base, struct lq_tick *t, struct lq_schedule_vec *due,
                lade_err *err)
{
    struct call k = {.s = ls_redis_of(base), .script = LS_REDIS_LUA_SCHEDULE, .verb = "tick"};
    struct ls_redis_conn *c = NULL;
    struct ls_redis_cursor cur = {0};
    add(&k, lb_slice_str(t->holder));
    add(&k, lb_slice_str(t->name));
    add_number(&k, t->lease_ms);
    add_number(&k, (int64_t)t->max);
    int rc = begin_call(&k, &c, &cur, err);
    if (rc == 0) {
        size_t n = ls_redis_read_array(&cur);
        t->any = ls_redis_read_int(&cur) != 0;
        t->leads = ls_redis_read_int(&cur) != 0;
        t->took_over = ls_redis_read_int(&cur) != 0;
        t->fence = (uint64_t)ls_redis_read_int(&cur);
        t->until_ms = ls_redis_read_int(&cur);
        t->next_ms = ls_redis_read_int(&cur);
        t->back_ms = ls_redis_read_int(&cur);
        t->now_ms = ls_redis_read_int(&cur);
        rc = read_rows(&cur, n > 8 ? (n - 8) / 6 : 0, due, err);
        ls_redis_ship_fires(k.s, c, NULL); /* of a leader that died */
    }
    return end_call(&k, c, &cur, rc, err);
}

void ls_redis_read_duplicates(struct ls_redis_cursor *cur, size_t n, struct lq_fire *f)
{
    for (size_t i = 0; i < f->n; i++) {
        f->put[i].outcome = 0;
        f->put[i].holder[0] = 0;
    }
    for (size_t i = 0; i < n; i++) {
        int64_t at = ls_redis_read_int(cur);
        struct lb_slice holder = ls_redis_read_bytes(cur);
        if (cur->bad || at < 1 || (size_t)at > f->n)
            continue;
        f->put[at - 1].outcome = LADE_DUPLICATE;
        copy_text(f->put[at - 1].holder, sizeof(f->put[0].holder), holder);
    }
}

static void encode_busy(struct ls_redis_conn *c, void *ctx, bool repeat LB_UNUSED)
{
    const struct call *k = ctx;
    static const char *const in[] = {"jobs", "fin"};
    for (size_t i = 0; i < LB_ARRAY_LEN(in); i++) {
        struct ls_redis_cmd *cmd = ls_redis_conn_begin(c, 3);
        ls_redis_arg_str(cmd, "HEXISTS");
        ls_redis_key(cmd, k->s->base.config.ns, k->fire->busy_queue, in[i]);
        ls_redis_arg_slice(cmd, k->fire->busy_id);
        ls_redis_cmd_end(cmd);
    }
}

/*
 * In slots, before the fire: it lies elsewhere. It is this schedule's own last job, and who made another one meanwhile has changed the record,
 * so that the fire is stale: all that may happen between is that it ends.
 */
static int look_whether_busy(struct call *k, lade_err *err)
{
    struct ls_redis_ask ask = {encode_busy, k, "schedule", false, lane, 1};
    struct ls_redis_conn *c;
    if (!ls_redis_in_slots(k->s) || k->fire->busy_id.n == 0)
        return 0;
    lr_mutex_lock(&k->s->admin.lock);
    int rc = ls_redis_link_conn(k->s, &k->s->admin, &c, err);
    if (rc == 0)
        rc = ls_redis_ask(k->s, c, &ask, 2, err);
    if (rc == 0) {
        struct ls_redis_cursor there = ls_redis_conn_reply(c, 0), fin = ls_redis_conn_reply(c, 1);
        k->busy = ls_redis_read_int(&there) != 0 && ls_redis_read_int(&fin) == 0;
    }
    lr_mutex_unlock(&k->s->admin.lock);
    return rc;
}

static int fire(struct lq_store *base, struct lq_fire *f, lade_err *err)
{
    struct call k = {.s = ls_redis_of(base), .script = LS_REDIS_LUA_SCHEDULE_FIRE, .fire = f};
    struct ls_redis_conn *c = NULL;
    struct ls_redis_cursor cur = {0};
    int64_t stale = 0;
    int rc = look_whether_busy(&k, err);
    if (rc < 0)
        return rc;
    rc = begin_call(&k, &c, &cur, err);
    if (rc == 0) {
        size_t n = ls_redis_read_array(&cur);
        stale = ls_redis_read_int(&cur);
        if (!stale) {
            f->busy = ls_redis_read_int(&cur) != 0;
            ls_redis_read_duplicates(&cur, n > 2 ? (n - 2) / 2 : 0, f);
            ls_redis_ship_fires(k.s, c, f);
        }
    }
    rc = end_call(&k, c, &cur, rc, err);
    return rc == 0 && stale ? LADE_STALE : rc;
}

/* waiting: the machinery of workers (wait.c), with the lane of schedules --------------------------------------------- */

static int wait(struct lq_store *base, const char *holder, int64_t deadline, lade_err *err)
{
    return ls_redis_wait(base, holder, (struct lq_lanes){lane, 1}, deadline, err);
}

int ls_redis_schedules_check(struct lq_store *base, lq_finding_fn report, void *ctx, lade_err *err)
{
    struct call k = {.s = ls_redis_of(base), .script = LS_REDIS_LUA_SCHEDULE_LOOK, .verb = "check"};
    struct ls_redis_conn *c = NULL;
    struct ls_redis_cursor cur = {0};
    int rc = begin_call(&k, &c, &cur, err);
    size_t n = rc == 0 ? ls_redis_read_array(&cur) : 0;
    for (size_t i = 0; i < n && !cur.bad; i++) {
        char line[256];
        copy_text(line, sizeof(line), ls_redis_read_bytes(&cur));
        report(ctx, "", line);
    }
    return end_call(&k, c, &cur, rc, err);
}

const struct lq_schedule_ops ls_redis_schedule_ops = {
    .put = put,
    .remove = remove_record,
    .get = get,
    .list = list,
    .tick = tick,
    .fire = fire,
    .resign = resign,
    .leader = leader,
    .wait = wait,
    .wake = ls_redis_wake,
};
