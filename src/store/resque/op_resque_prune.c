/*
 * op_resque_prune.c - Ruby workers that are dead: no heartbeat for five minutes, by the server's clock
 *
 * As Ruby's own prune_dead_workers does under the same lock, and no more than that: it never judges by process ids of this machine, never
 * touches an id without a heartbeat or with one that is no time, and leaves lade's own workers to reclaim, which brings their jobs back.
 */
#include "base/err.h"
#include "resque/resque_failure.h"
#include "resque/resque_json.h"
#include "resque/resque_time.h"
#include "store/resque/resque_inner.h"

#define EXPIRED_S 300
#define LOCK_S    "60"
#define PRUNE_MAX 64 /* a call; the rest is found by the next */

struct prune {
    const struct ls_resque_store *s;
    struct lb_slice id, beat; /* of the one that is looked at */
    struct lb_slice working, entry, queue;
};

static void encode_lock(struct ls_redis_conn *c, void *ctx, bool repeat LB_UNUSED)
{
    const struct prune *p = ctx;
    struct ls_redis_cmd *cmd = ls_redis_conn_begin(c, 6);
    ls_redis_arg_str(cmd, "SET");
    ls_resque_key(cmd, p->s, RQ_KEY_PRUNING);
    ls_redis_arg_str(cmd, p->s->host.name);
    ls_redis_arg_str(cmd, "EX");
    ls_redis_arg_str(cmd, LOCK_S);
    ls_redis_arg_str(cmd, "NX");
    ls_redis_cmd_end(cmd);
}

static void encode_beats(struct ls_redis_conn *c, void *ctx, bool repeat LB_UNUSED)
{
    const struct prune *p = ctx;
    struct ls_redis_cmd *cmd = ls_redis_conn_begin(c, 1);
    ls_redis_arg_str(cmd, "TIME");
    ls_redis_cmd_end(cmd);
    cmd = ls_redis_conn_begin(c, 2);
    ls_redis_arg_str(cmd, "HGETALL");
    ls_resque_key(cmd, p->s, RQ_KEY_HEARTBEAT);
    ls_redis_cmd_end(cmd);
}

static void encode_working(struct ls_redis_conn *c, void *ctx, bool repeat LB_UNUSED)
{
    const struct prune *p = ctx;
    struct ls_redis_cmd *cmd = ls_redis_conn_begin(c, 2);
    ls_redis_arg_str(cmd, "GET");
    ls_resque_key_of(cmd, p->s, "worker:", p->id);
    ls_redis_cmd_end(cmd);
}

static void encode_prune(struct ls_redis_conn *c, void *ctx, bool repeat LB_UNUSED)
{
    const struct prune *p = ctx;
    struct ls_redis_cmd *cmd = ls_redis_script_begin(c, LS_RESQUE_LUA_PRUNE, 0, 7);
    ls_redis_arg(cmd, p->s->keys.prefix, p->s->keys.n);
    ls_redis_arg_slice(cmd, p->id);
    ls_redis_arg_slice(cmd, p->beat);
    ls_redis_arg_slice(cmd, p->working);
    ls_redis_arg_slice(cmd, p->entry);
    ls_redis_arg_slice(cmd, p->queue);
    ls_redis_arg_str(cmd, p->s->multi ? "1" : "0");
    ls_redis_cmd_end(cmd);
}

static bool is_expired(struct lb_slice text, struct lb_slice beat, int64_t now)
{
    struct rq_id id;
    int64_t at;
    if (!rq_id_read(&id, text) || !rq_time_read(&at, beat))
        return false;
    bool lades = id.pid.n > 0 && memchr(id.pid.p, '.', id.pid.n);
    return !lades && now - at > EXPIRED_S;
}

/* The job in what worker:<id> holds, as an entry of the failed list, and its queue; nothing when it was at none. */
static void write_failure(struct lb_buf *out, struct lb_buf *name, const struct prune *p,
                          int64_t now)
{
    struct rq_json r = rq_json(p->working);
    struct lb_slice payload = {0}, queue = {0};
    struct rq_job job = {0};
    struct lb_buf error;
    if (rq_json_enter(&r, '{'))
        while (rq_json_next(&r, '}')) {
            struct lb_slice member = rq_json_name(&r), value = rq_json_value(&r);
            if (!r.bad && rq_json_is(member, "payload"))
                payload = value;
            else if (!r.bad && rq_json_is(member, "queue"))
                queue = value;
        }
    if (payload.n == 0)
        return;
    lb_buf_init(&error);
    (void)rq_job_read(&job, payload);
    (void)rq_json_unquote(name, job.klass);
    rq_prune_text(&error, p->id, lb_buf_slice(name));
    lb_buf_clear(name);
    (void)rq_json_unquote(name, queue);
    struct rq_failure f = {.failed_at = now,
                           .payload = payload,
                           .exception = RQ_PRUNE_DIRTY_EXIT,
                           .error = lb_buf_slice(&error),
                           .worker = p->id,
                           .queue = lb_buf_slice(name)};
    rq_failure_write(out, &f);
    out->failed = out->failed || error.failed || name->failed;
    lb_buf_fini(&error);
}

static int prune_one(struct ls_resque_store *s, struct prune *p, int64_t now, lade_err *err)
{
    struct ls_redis_conn *c;
    struct lb_buf working, entry, queue;
    struct ls_resque_ask ask = {encode_working, p, "prune", false};
    int rc = ls_resque_ask(s, &s->admin, &ask, 1, &c, err);
    if (rc < 0)
        return rc;
    lb_buf_init(&working);
    lb_buf_init(&entry);
    lb_buf_init(&queue);
    struct ls_redis_cursor cur = ls_redis_conn_reply(c, 0);
    struct lb_slice text = ls_redis_read_bytes_or_null(&cur);
    lb_buf_add(&working, text.p, text.n);
    p->working = lb_buf_slice(&working);
    write_failure(&entry, &queue, p, now);
    p->entry = lb_buf_slice(&entry);
    p->queue = lb_buf_slice(&queue);
    ask.encode = encode_prune;
    rc = working.failed || entry.failed ? lb_fail_nomem(err, "prune")
                                        : ls_resque_ask(s, &s->admin, &ask, 1, &c, err);
    lb_buf_fini(&working);
    lb_buf_fini(&entry);
    lb_buf_fini(&queue);
    return rc;
}

/* The expired, copied into the arena. */
static int find_expired(struct ls_resque_store *s, struct lb_arena *arena, struct prune *found,
                        size_t *n, int64_t *now, lade_err *err)
{
    struct prune p = {.s = s};
    struct ls_resque_ask ask = {encode_beats, &p, "prune", false};
    struct ls_redis_conn *c;
    int rc = ls_resque_ask(s, &s->admin, &ask, 2, &c, err);
    if (rc < 0)
        return rc;
    struct ls_redis_cursor cur = ls_redis_conn_reply(c, 0);
    (void)ls_redis_read_array(&cur);
    *now = ls_redis_read_int(&cur);
    cur = ls_redis_conn_reply(c, 1);
    for (size_t left = ls_redis_read_array(&cur); left >= 2 && *n < PRUNE_MAX; left -= 2) {
        struct lb_slice id = ls_redis_read_bytes(&cur), beat = ls_redis_read_bytes(&cur);
        if (cur.bad || !is_expired(id, beat, *now))
            continue;
        found[*n] = (struct prune){.s = s,
                                   .id = lb_slice_of(lb_arena_copy(arena, id.p, id.n)),
                                   .beat = lb_slice_of(lb_arena_copy(arena, beat.p, beat.n))};
        if (!found[*n].id.p || !found[*n].beat.p)
            return lb_fail_nomem(err, "prune");
        ++*n;
    }
    return cur.bad ? ls_redis_conn_fail_reply(c, "prune", err) : 0;
}

int ls_resque_trim(struct lq_store *base, struct lq_lanes lanes LB_UNUSED, size_t max LB_UNUSED,
                   size_t *n, lade_err *err)
{
    struct ls_resque_store *s = ls_resque_of(base);
    struct prune p = {.s = s}, found[PRUNE_MAX];
    struct ls_resque_ask ask = {encode_lock, &p, "prune", false};
    struct ls_redis_conn *c;
    struct lb_arena arena;
    int64_t now = 0;
    size_t n_found = 0;
    lb_arena_init(&arena);
    lr_mutex_lock(&s->admin.lock);
    int rc = ls_resque_ask(s, &s->admin, &ask, 1, &c, err);
    if (rc == 0) {
        struct ls_redis_cursor cur = ls_redis_conn_reply(c, 0);
        if (ls_redis_peek(&cur) != LS_REDIS_NULL)
            rc = find_expired(s, &arena, found, &n_found, &now, err);
    }
    for (size_t i = 0; rc == 0 && i < n_found; i++)
        rc = prune_one(s, &found[i], now, err);
    lr_mutex_unlock(&s->admin.lock);
    lb_arena_fini(&arena);
    if (rc == 0)
        *n = n_found;
    return rc;
}
