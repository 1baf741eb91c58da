/*
 * op_resque_delay.c - jobs of resque-scheduler's that are due go to their queues: lua/delayed.lua, lua/move.lua
 *
 * Ruby's scheduler decides who does it by a lock that it renews as long as it lives, and runs hooks of Ruby classes on the way. Whoever
 * holds that lock is left to do it. When nobody does, it is taken for as long as the move lasts: two calls, since an entry is made of
 * an item here, byte by byte, and not by a server that would lose long integers. An item is moved by one step that finds it still there, so
 * that it goes to its queue once whatever the locks say.
 */
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "resque/resque_delayed.h"
#include "resque/resque_failure.h"
#include "store/resque/resque_inner.h"
#include "store/resque/resque_move.h"

#define LOCK_MS   "10000"
#define ELSEWHERE INT64_C(5000) /* ms, Ruby's poll: when to look again at what another is to move */
#define DUE_MAX   1000

struct promote {
    struct ls_resque_store *s;
    size_t max;
    char lock[RQ_NAMESPACE_MAX + sizeof(RQ_KEY_MASTER_LOCK) + 2], value[160];
    struct lb_arena arena;
    struct ls_resque_move *move;
    size_t n;
};

static void encode_delayed(struct ls_redis_conn *c, void *ctx, bool repeat LB_UNUSED)
{
    const struct promote *p = ctx;
    struct ls_redis_cmd *cmd = ls_redis_script_begin(c, LS_RESQUE_LUA_DELAYED, 0, 5);
    ls_redis_arg(cmd, p->s->keys.prefix, p->s->keys.n);
    ls_redis_arg_str(cmd, p->lock);
    ls_redis_arg_str(cmd, p->value);
    ls_redis_arg_str(cmd, LOCK_MS);
    ls_redis_arg_u64(cmd, p->max);
    ls_redis_cmd_end(cmd);
}

/* An item that is no job ends in the failed list, as an entry of a queue does. */
static void write_failure(const struct promote *p, struct lb_buf *out, struct lb_slice at,
                          struct lb_slice item, const char *why)
{
    struct lb_buf text, id;
    lb_buf_init(&text);
    lb_buf_init(&id);
    lb_buf_add_fmt(&text, "delayed:%.*s: %s", (int)at.n, (const char *)at.p, why);
    rq_id_write(&id, &p->s->host, getpid(), 0, lb_slice_str("delayed"));
    struct rq_failure f = {.failed_at = lb_clock_wall() / LADE_SECOND,
                           .payload = item,
                           .exception = "ArgumentError",
                           .error = lb_buf_slice(&text),
                           .worker = lb_buf_slice(&id),
                           .queue = lb_slice_str("delayed")};
    rq_failure_write(out, &f);
    out->failed = out->failed || text.failed || id.failed;
    lb_buf_fini(&text);
    lb_buf_fini(&id);
}

/* False when out of memory. */
static bool plan(struct promote *p, struct ls_resque_move *m, struct lb_slice at,
                 struct lb_slice item)
{
    struct lb_buf queue, entry, list;
    lb_buf_init(&queue);
    lb_buf_init(&entry);
    lb_buf_init(&list);
    const char *why = rq_delayed_read(&entry, &queue, item);
    if (why) {
        lb_buf_clear(&queue);
        lb_buf_clear(&entry);
        write_failure(p, &entry, at, item, why);
    }
    lb_buf_add_str(&list, "delayed:");
    lb_buf_add(&list, at.p, at.n);
    bool kept = !queue.failed && !entry.failed && !list.failed &&
                ls_resque_keep(&p->arena, lb_buf_slice(&list), &m->list) &&
                ls_resque_keep(&p->arena, item, &m->value) &&
                ls_resque_keep(&p->arena, lb_buf_slice(&queue), &m->queue) &&
                ls_resque_keep(&p->arena, lb_buf_slice(&entry), &m->entry);
    lb_buf_fini(&queue);
    lb_buf_fini(&entry);
    lb_buf_fini(&list);
    return kept;
}

/* LADE_EMPTY: nothing is to be moved by us now; *next_ms says when. */
static int read_delayed(struct promote *p, struct ls_redis_conn *c, int64_t *next_ms, lade_err *err)
{
    struct ls_redis_cursor cur = ls_redis_conn_reply(c, 0);
    size_t n = ls_redis_read_array(&cur);
    bool elsewhere = ls_redis_read_int(&cur) == 1;
    int64_t first = ls_redis_read_int(&cur), now = ls_redis_read_int(&cur);
    n = n >= 3 ? n - 3 : 0;
    if (cur.bad || n > p->max)
        return ls_redis_conn_fail_reply(c, "promote", err);
    *next_ms = elsewhere ? now + ELSEWHERE : LB_MAX(first, 0);
    if (elsewhere || n == 0)
        return LADE_EMPTY;
    *next_ms = 0;
    p->move = lb_arena_alloc(&p->arena, n * sizeof(*p->move));
    if (!p->move)
        return lb_fail_nomem(err, "promote");
    for (; p->n < n && !cur.bad; p->n++) {
        (void)ls_redis_read_array(&cur);
        struct lb_slice at = ls_redis_read_bytes(&cur), item = ls_redis_read_bytes(&cur);
        if (!plan(p, &p->move[p->n], at, item))
            return lb_fail_nomem(err, "promote");
    }
    return cur.bad ? ls_redis_conn_fail_reply(c, "promote", err) : 0;
}

static int promote(struct promote *p, size_t *n, int64_t *next_ms, lade_err *err)
{
    struct ls_resque_link *link = &p->s->admin;
    struct ls_resque_ask ask = {encode_delayed, p, "promote", false};
    struct ls_redis_conn *c;
    int rc = ls_resque_ask(p->s, link, &ask, 1, &c, err);
    if (rc == 0)
        rc = read_delayed(p, c, next_ms, err);
    if (rc != 0)
        return rc;
    struct ls_resque_moves all = {p->s, p->lock, p->value, p->move, p->n};
    return ls_resque_move(&all, NULL, n, err);
}

int ls_resque_promote_due(struct ls_resque_store *s, size_t max, size_t *n, int64_t *next_ms,
                          lade_err *err)
{
    struct promote p = {.s = s, .max = LB_MIN(max, DUE_MAX)};
    const char *prefix = s->keys.n > 0 ? s->keys.prefix : ":"; /* its namespace is in it, twice */
    *n = 0;
    (void)snprintf(p.lock, sizeof(p.lock), "%s" RQ_KEY_MASTER_LOCK, prefix);
    (void)snprintf(p.value, sizeof(p.value), "%s:%lld", s->host.name, (long long)getpid());
    lb_arena_init(&p.arena);
    lr_mutex_lock(&s->admin.lock);
    int rc = promote(&p, n, next_ms, err);
    lr_mutex_unlock(&s->admin.lock);
    lb_arena_fini(&p.arena);
    return LB_MIN(rc, 0);
}

int ls_resque_promote(struct lq_store *base, struct lq_lanes lanes LB_UNUSED, size_t max, size_t *n,
                      int64_t *next_ms, lade_err *err)
{
    return ls_resque_promote_due(ls_resque_of(base), max, n, next_ms, err);
}
