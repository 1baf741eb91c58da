/* op_bound.c - how many jobs and bytes may wait in a queue; lua/bound.lua, and lua/put.lua holds it */
#include "base/base.h"
#include "base/err.h"
#include "queue/bound.h"
#include "store/redis/slots.h"

struct bound_call {
    struct ls_redis_store *s;
    const char *queue;
    const struct lq_bound *set; /* NULL: only asks */
};

static void encode_bound(struct ls_redis_conn *c, void *ctx, bool repeat LB_UNUSED)
{
    const struct bound_call *b = ctx;
    const char *ns = b->s->base.config.ns;
    if (b->set)
        ls_redis_name_queues(c, b->s, &b->queue, 1);
    struct ls_redis_cmd *cmd = ls_redis_script_begin(c, LS_REDIS_LUA_BOUND, 2, b->set ? 3 : 0);
    ls_redis_key_shared(cmd, b->s, b->queue, "queues");
    ls_redis_key(cmd, ns, b->queue, "meta");
    if (b->set) {
        ls_redis_arg_int(cmd, b->set->max_jobs);
        ls_redis_arg_int(cmd, b->set->block);
        ls_redis_arg_int(cmd, b->set->max_bytes);
    }
    ls_redis_cmd_end(cmd);
}

/* The bound as it is then; NOT_FOUND. */
static int run(struct bound_call *b, struct lq_bound *out, lade_err *err)
{
    struct ls_redis_ask ask = {encode_bound, b, "bound", false, &b->queue, 1};
    struct ls_redis_conn *c;
    lr_mutex_lock(&b->s->admin.lock);
    int rc = ls_redis_link_conn(b->s, &b->s->admin, &c, err);
    if (rc == 0)
        rc = ls_redis_ask(b->s, c, &ask, 1, err);
    if (rc == 0) {
        struct ls_redis_cursor cur = ls_redis_conn_reply(c, 0);
        size_t n = ls_redis_read_array(&cur);
        int64_t v[4] = {0};
        for (size_t i = 0; n == LB_ARRAY_LEN(v) && i < n; i++)
            v[i] = ls_redis_read_int(&cur);
        if (cur.bad || (n != 0 && n != LB_ARRAY_LEN(v)) || v[0] < 0 || v[2] < 0)
            rc = ls_redis_conn_fail_reply(c, "bound", err);
        else if (n == 0)
            rc = LADE_NOT_FOUND;
        else
            *out = (struct lq_bound){v[0], v[1] != 0, v[2], v[3]};
    }
    lr_mutex_unlock(&b->s->admin.lock);
    return rc;
}

static int set_bound(struct lq_store *base, const char *queue, const struct lq_bound *bound,
                     lade_err *err)
{
    struct bound_call b = {ls_redis_of(base), queue, bound};
    struct lq_bound is;
    return run(&b, &is, err);
}

static int get_bound(struct lq_store *base, const char *queue, struct lq_bound *out, lade_err *err)
{
    struct bound_call b = {ls_redis_of(base), queue, NULL};
    return run(&b, out, err);
}

const struct lq_bound_ops ls_redis_bound_ops = {.set = set_bound, .get = get_bound};
