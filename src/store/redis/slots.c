#include "store/redis/slots.h"

#include <string.h>

#include "base/base.h"

void ls_redis_key_shared(struct ls_redis_cmd *cmd, const struct ls_redis_store *s,
                         const char *queue, const char *name)
{
    const char *ns = s->base.config.ns;
    if (!ls_redis_in_slots(s))
        ls_redis_key_ns(cmd, ns, name);
    else
        ls_redis_key(cmd, ns, queue, strcmp(name, "workers") == 0 ? "crew" : name);
}

void ls_redis_name_queues(struct ls_redis_conn *c, const struct ls_redis_store *s,
                          const char *const *queue, size_t n)
{
    if (!ls_redis_in_slots(s) || n == 0)
        return;
    struct ls_redis_cmd *cmd = ls_redis_conn_begin(c, 2 + n);
    ls_redis_arg_str(cmd, "SADD");
    ls_redis_key_ns(cmd, s->base.config.ns, "queues");
    for (size_t i = 0; i < n; i++)
        ls_redis_arg_str(cmd, queue[i]);
    ls_redis_cmd_end(cmd);
    ls_redis_conn_prelude(c);
}

static const char *const shared[][2] = {{"queues", "set"}, {"workers", "hash"}};

void ls_redis_slots_ask_types(struct ls_redis_conn *c, const struct ls_redis_store *s,
                              const char *const *queue, size_t n)
{
    for (size_t i = 0; i < LB_ARRAY_LEN(shared); i++) {
        struct ls_redis_cmd *cmd = ls_redis_conn_begin(c, 2);
        ls_redis_arg_str(cmd, "TYPE");
        ls_redis_key_ns(cmd, s->base.config.ns, shared[i][0]);
        ls_redis_cmd_end(cmd);
    }
    for (size_t i = 0; i < n; i++) {
        struct ls_redis_cmd *cmd = ls_redis_script_begin(c, LS_REDIS_LUA_TYPES, 3, 3);
        ls_redis_key_shared(cmd, s, queue[i], "queues");
        ls_redis_key_shared(cmd, s, queue[i], "workers");
        ls_redis_key(cmd, s->base.config.ns, queue[i], "meta");
        ls_redis_cmd_end(cmd);
    }
}

bool ls_redis_slots_read_types(struct ls_redis_conn *c, const struct ls_redis_store *s, size_t n,
                               char *text, size_t size)
{
    bool good = true;
    text[0] = 0;
    for (size_t i = 0; i < LB_ARRAY_LEN(shared) + n && !text[0]; i++) {
        struct ls_redis_cursor cur = ls_redis_conn_reply(c, i);
        struct lb_slice is = ls_redis_read_bytes(&cur);
        good = good && !cur.bad;
        if (i >= LB_ARRAY_LEN(shared) && is.n > 0)
            (void)snprintf(text, size, "%.*s", (int)LB_MIN(is.n, size - 1), (const char *)is.p);
        if (i < LB_ARRAY_LEN(shared) && !lb_slice_eq(is, lb_slice_str("none")) &&
            !lb_slice_eq(is, lb_slice_str(shared[i][1])))
            (void)snprintf(text, size, "%s:%s is a %.*s", s->base.config.ns, shared[i][0],
                           (int)LB_MIN(is.n, 20), is.n > 0 ? (const char *)is.p : "");
    }
    return good;
}

/* forget ----------------------------------------------------------------------------------------------------------- */

struct name_call {
    const struct ls_redis_store *s;
    const char *queue;
    bool adds;
};

static void encode_name(struct ls_redis_conn *c, void *ctx, bool repeat LB_UNUSED)
{
    const struct name_call *n = ctx;
    const char *ns = n->s->base.config.ns;
    struct ls_redis_cmd *cmd = ls_redis_conn_begin(c, 3);
    ls_redis_arg_str(cmd, n->adds ? "SADD" : "SREM");
    ls_redis_key_ns(cmd, ns, "queues");
    ls_redis_arg_str(cmd, n->queue);
    ls_redis_cmd_end(cmd);
    cmd = ls_redis_conn_begin(c, 2);
    ls_redis_arg_str(cmd, "EXISTS");
    ls_redis_key(cmd, ns, n->queue, "meta");
    ls_redis_cmd_end(cmd);
}

int ls_redis_slots_forget(struct ls_redis_store *s, const char *queue, lade_err *err)
{
    struct name_call n = {s, queue, false};
    struct ls_redis_ask ask = {encode_name, &n, "forget", false, &queue, 1};
    struct ls_redis_conn *c;
    lr_mutex_lock(&s->admin.lock);
    int rc = ls_redis_link_conn(s, &s->admin, &c, err);
    if (rc == 0)
        rc = ls_redis_ask(s, c, &ask, 2, err);
    if (rc == 0) {
        struct ls_redis_cursor cur = ls_redis_conn_reply(c, 1);
        n.adds = ls_redis_read_int(&cur) != 0;
    }
    if (n.adds) /* a put came in between, which had named it before */
        rc = ls_redis_ask(s, c, &ask, 2, err);
    lr_mutex_unlock(&s->admin.lock);
    return rc;
}
