/* op_control.c - orders to workers and what they tell; lua/control.lua, and lua/renew.lua brings both */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/err.h"
#include "queue/control_store.h"
#include "store/redis/store_inner.h"

struct control_call {
    struct ls_redis_store *s;
    const char *worker;
    int order; /* 0: looks */
};

static void encode_control(struct ls_redis_conn *c, void *ctx, bool repeat LB_UNUSED)
{
    const struct control_call *k = ctx;
    const char *ns = k->s->base.config.ns;
    char record[LS_REDIS_KEY_MAX];
    int n = snprintf(record, sizeof(record), "{%s:workers}:%s", ns, k->worker);
    struct ls_redis_cmd *cmd = ls_redis_script_begin(c, LS_REDIS_LUA_CONTROL, 2, 2);
    ls_redis_key_ns(cmd, ns, "workers");
    ls_redis_arg(cmd, record, n > 0 ? LB_MIN((size_t)n, sizeof(record) - 1) : 0);
    ls_redis_arg_str(cmd, k->worker);
    ls_redis_arg_int(cmd, k->order);
    ls_redis_cmd_end(cmd);
}

static struct lb_slice keep(struct ls_redis_cursor *cur, struct lb_arena *a, bool *ok)
{
    struct lb_slice s = ls_redis_read_bytes(cur);
    struct lb_mut copy = lb_arena_copy(a, s.p, s.n);
    *ok = *ok && copy.p;
    return lb_slice_of(copy);
}

static int read_control(struct ls_redis_conn *c, struct lb_arena *arena, struct lq_control *out,
                        lade_err *err)
{
    struct ls_redis_cursor cur = ls_redis_conn_reply(c, 0);
    struct lq_control k = {0};
    bool ok = true;
    size_t n = ls_redis_read_array(&cur);
    (void)ls_redis_read_int(&cur);
    k.orders.wish = ls_redis_read_int(&cur);
    k.orders.asked = (uint64_t)ls_redis_read_int(&cur);
    k.made = (uint64_t)ls_redis_read_int(&cur);
    k.about = keep(&cur, arena, &ok);
    k.stacks = keep(&cur, arena, &ok);
    k.stacks_ms = ls_redis_read_int(&cur);
    if (cur.bad || n != 7)
        return ls_redis_conn_fail_reply(c, "worker", err);
    if (!ok)
        return lb_fail_nomem(err, "worker");
    *out = k;
    return 0;
}

static int read_done(struct ls_redis_conn *c, lade_err *err)
{
    static const int meaning[] = {0, LADE_NOT_FOUND, LADE_WRONG_STATE};

    struct ls_redis_cursor cur = ls_redis_conn_reply(c, 0);
    size_t n = ls_redis_read_array(&cur);
    int64_t done = ls_redis_read_int(&cur);
    if (cur.bad || n != 1 || done < 0 || (size_t)done >= LB_ARRAY_LEN(meaning))
        return ls_redis_conn_fail_reply(c, "worker", err);
    return meaning[done];
}

static int run(struct control_call *k, struct lb_arena *arena, struct lq_control *out,
               lade_err *err)
{
    struct ls_redis_ask ask = {encode_control, k, "worker", false, NULL, 0};
    struct ls_redis_conn *c;
    lr_mutex_lock(&k->s->admin.lock);
    int rc = ls_redis_link_conn(k->s, &k->s->admin, &c, err);
    if (rc == 0)
        rc = ls_redis_ask(k->s, c, &ask, 1, err);
    if (rc == 0)
        rc = out ? read_control(c, arena, out, err) : read_done(c, err);
    lr_mutex_unlock(&k->s->admin.lock);
    return rc;
}

static int give_order(struct lq_store *base, const char *worker, enum lade_worker_order order,
                      lade_err *err)
{
    struct control_call k = {ls_redis_of(base), worker, order};
    return run(&k, NULL, NULL, err);
}

static int look(struct lq_store *base, const char *worker, struct lb_arena *arena,
                struct lq_control *out, lade_err *err)
{
    struct control_call k = {ls_redis_of(base), worker, 0};
    return run(&k, arena, out, err);
}

const struct lq_control_ops ls_redis_control_ops = {.order = give_order, .look = look};
