/*
 * op_resque_delay.c - jobs of resque-scheduler's that are due go to their queues: lua/delayed.lua, lua/promote.lua
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

#define LOCK_MS   "10000"
#define ELSEWHERE INT64_C(5000) /* ms, Ruby's poll: when to look again at what another is to move */
#define DUE_MAX   1000

struct item {
    struct lb_slice at, item; /* of the reply; copied */
    size_t queue, n_queue, entry, n_entry;
};

struct promote {
    struct ls_resque_store *s;
    size_t max;
    char lock[RQ_NAMESPACE_MAX + sizeof(RQ_KEY_MASTER_LOCK) + 2], value[160];
    struct lb_arena arena;
    struct item *item;
    size_t n;
    struct lb_buf texts;
};

static void add_head(struct ls_redis_cmd *cmd, const struct promote *p)
{
    ls_redis_arg(cmd, p->s->keys.prefix, p->s->keys.n);
    ls_redis_arg_str(cmd, p->lock);
    ls_redis_arg_str(cmd, p->value);
}

static void encode_delayed(struct ls_redis_conn *c, void *ctx, bool repeat LB_UNUSED)
{
    const struct promote *p = ctx;
    struct ls_redis_cmd *cmd = ls_redis_script_begin(c, LS_RESQUE_LUA_DELAYED, 0, 5);
    add_head(cmd, p);
    ls_redis_arg_str(cmd, LOCK_MS);
    ls_redis_arg_u64(cmd, p->max);
    ls_redis_cmd_end(cmd);
}

static void encode_promote(struct ls_redis_conn *c, void *ctx, bool repeat LB_UNUSED)
{
    const struct promote *p = ctx;
    const uint8_t *text = p->texts.p;
    struct ls_redis_cmd *cmd = ls_redis_script_begin(c, LS_RESQUE_LUA_PROMOTE, 0, 4 + 4 * p->n);
    add_head(cmd, p);
    ls_redis_arg_str(cmd, p->s->multi ? "1" : "0");
    for (size_t i = 0; i < p->n; i++) {
        const struct item *it = &p->item[i];
        ls_redis_arg_slice(cmd, it->at);
        ls_redis_arg_slice(cmd, it->item);
        ls_redis_arg(cmd, text + it->queue, it->n_queue);
        ls_redis_arg(cmd, text + it->entry, it->n_entry);
    }
    ls_redis_cmd_end(cmd);
}

/* An item that is no job ends in the failed list, as an entry of a queue does. */
static void write_failure(struct promote *p, struct item *it, const char *why)
{
    struct lb_buf text, id;
    lb_buf_init(&text);
    lb_buf_init(&id);
    lb_buf_add_fmt(&text, "delayed:%.*s: %s", (int)it->at.n, (const char *)it->at.p, why);
    rq_id_write(&id, &p->s->host, getpid(), 0, lb_slice_str("delayed"));
    struct rq_failure f = {.failed_at = lb_clock_wall() / LADE_SECOND,
                           .payload = it->item,
                           .exception = "ArgumentError",
                           .error = lb_buf_slice(&text),
                           .worker = lb_buf_slice(&id),
                           .queue = lb_slice_str("delayed")};
    it->queue = it->entry = p->texts.n;
    it->n_queue = 0;
    rq_failure_write(&p->texts, &f);
    it->n_entry = p->texts.n - it->entry;
    p->texts.failed = p->texts.failed || text.failed || id.failed;
    lb_buf_fini(&text);
    lb_buf_fini(&id);
}

static void write_item(struct promote *p, struct item *it)
{
    struct lb_buf queue, entry;
    lb_buf_init(&queue);
    lb_buf_init(&entry);
    const char *why = rq_delayed_read(&entry, &queue, it->item);
    if (why) {
        write_failure(p, it, why);
    } else {
        it->queue = p->texts.n;
        lb_buf_add(&p->texts, queue.p, queue.n);
        it->entry = p->texts.n;
        lb_buf_add(&p->texts, entry.p, entry.n);
        it->n_queue = queue.n;
        it->n_entry = entry.n;
    }
    p->texts.failed = p->texts.failed || queue.failed || entry.failed;
    lb_buf_fini(&queue);
    lb_buf_fini(&entry);
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
    p->item = lb_arena_alloc(&p->arena, n * sizeof(*p->item));
    if (!p->item)
        return lb_fail_nomem(err, "promote");
    for (size_t i = 0; i < n; i++) {
        (void)ls_redis_read_array(&cur);
        struct lb_slice at = ls_redis_read_bytes(&cur), item = ls_redis_read_bytes(&cur);
        p->item[i] = (struct item){.at = lb_slice_of(lb_arena_copy(&p->arena, at.p, at.n)),
                                   .item = lb_slice_of(lb_arena_copy(&p->arena, item.p, item.n))};
        if (!p->item[i].at.p || !p->item[i].item.p)
            return lb_fail_nomem(err, "promote");
        write_item(p, &p->item[i]);
    }
    p->n = n;
    if (p->texts.failed)
        return lb_fail_nomem(err, "promote");
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
    ask.encode = encode_promote;
    rc = ls_resque_ask(p->s, link, &ask, 1, &c, err);
    if (rc < 0)
        return rc;
    struct ls_redis_cursor cur = ls_redis_conn_reply(c, 0);
    *n = (size_t)ls_redis_read_int(&cur);
    return cur.bad ? ls_redis_conn_fail_reply(c, "promote", err) : 0;
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
    lb_buf_init(&p.texts);
    lr_mutex_lock(&s->admin.lock);
    int rc = promote(&p, n, next_ms, err);
    lr_mutex_unlock(&s->admin.lock);
    lb_arena_fini(&p.arena);
    lb_buf_fini(&p.texts);
    return LB_MIN(rc, 0);
}

int ls_resque_promote(struct lq_store *base, struct lq_lanes lanes LB_UNUSED, size_t max, size_t *n,
                      int64_t *next_ms, lade_err *err)
{
    return ls_resque_promote_due(ls_resque_of(base), max, n, next_ms, err);
}
