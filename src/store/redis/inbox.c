/* inbox.c - see inbox.h */
#include "store/redis/inbox.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/base.h"

#define INBOX_LONG 300 /* elements: then it is emptied, by who has put the last */

struct gather {
    const struct ls_redis_store *s;
    const char *queue;
    size_t n;
};

static void add_gather(struct ls_redis_conn *c, const struct ls_redis_store *s, const char *queue,
                       size_t n, bool empty)
{
    struct ls_redis_cmd *cmd = ls_redis_script_begin(c, LS_REDIS_LUA_GATHER, 1, 3);
    ls_redis_key(cmd, s->base.config.ns, queue, "meta");
    ls_redis_arg_u64(cmd, n);
    ls_redis_arg_int(cmd, empty);
    ls_redis_cmd_end(cmd);
}

static void encode_gather(struct ls_redis_conn *c, void *ctx, bool repeat LB_UNUSED)
{
    const struct gather *g = ctx;
    add_gather(c, g->s, g->queue, g->n, true);
}

struct ls_redis_cmd *ls_redis_inbox_begin(struct ls_redis_conn *c, const struct ls_redis_store *s,
                                          const char *queue, size_t n_args)
{
    char token[LADE_ID_MAX + 24];
    struct ls_redis_cmd *cmd = ls_redis_conn_begin(c, 3 + n_args);
    ls_redis_arg_str(cmd, "RPUSHX");
    ls_redis_key(cmd, s->base.config.ns, queue, "in");
    int n = snprintf(token, sizeof(token), "+%s%" PRIu64, s->client, s->put_seq);
    ls_redis_arg(cmd, token, (size_t)n);
    return cmd;
}

void ls_redis_inbox_look(struct ls_redis_conn *c, const struct ls_redis_store *s, const char *queue,
                         size_t n)
{
    if (s->some_idle) {
        add_gather(c, s, queue, n, false);
        return;
    }
    struct ls_redis_cmd *cmd = ls_redis_conn_begin(c, 2);
    ls_redis_arg_str(cmd, "EXISTS");
    ls_redis_key(cmd, s->base.config.ns, queue, "idle");
    ls_redis_cmd_end(cmd);
}

int ls_redis_inbox_finish(struct ls_redis_store *s, struct ls_redis_conn *c, size_t at,
                          const char *queue, size_t n, const char *where, lade_err *err)
{
    struct ls_redis_cursor cur = ls_redis_conn_reply(c, at), next = ls_redis_conn_reply(c, at + 1);
    int64_t length = ls_redis_read_int(&cur), idle = ls_redis_read_int(&next);
    if (cur.bad || next.bad)
        return ls_redis_conn_fail_reply(c, where, err);
    if (length == 0)
        return LADE_NOT_FOUND;
    bool told = s->some_idle;
    s->some_idle = idle != 0;
    if (length > INBOX_LONG || (idle && !told)) {
        struct gather g = {s, queue, n};
        struct ls_redis_ask ask = {encode_gather, &g, where, false, NULL, 0};
        lade_err why;
        if (ls_redis_ask(s, c, &ask, 0, &why) < 0)
            s->some_idle = true; /* it is put all the same: the next one tells the workers */
    }
    return 0;
}
