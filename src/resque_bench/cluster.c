/*
 * cluster.c - the node of a Redis Cluster that has the keys of this run; see rb_server.h
 *
 * All keys begin with the namespace. With a hash tag in it ("{resque}") they lie in one slot, so in one node: the run is one with
 * that node, found by asking any other for a key of ours. A slot that moves meanwhile shows as errors.
 */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "resque_bench/rb_server.h"

#define HOPS     5
#define DEADLINE (10 * LADE_SECOND)

/* "{tag}" with something in it. */
static bool has_tag(const char *prefix)
{
    const char *open = strchr(prefix, '{');
    const char *close = open ? strchr(open, '}') : NULL;
    return close && close > open + 1;
}

static void encode_llen(struct ls_redis_conn *c, void *ctx, bool repeat)
{
    (void)repeat;
    const struct lb_buf *key = ctx;
    struct ls_redis_cmd *cmd = ls_redis_conn_begin(c, 2);
    ls_redis_arg_str(cmd, "LLEN");
    ls_redis_arg(cmd, key->p, key->n);
    ls_redis_cmd_end(cmd);
}

static void encode_info(struct ls_redis_conn *c, void *ctx, bool repeat)
{
    (void)repeat;
    (void)ctx;
    struct ls_redis_cmd *cmd = ls_redis_conn_begin(c, 2);
    ls_redis_arg_str(cmd, "INFO");
    ls_redis_arg_str(cmd, "cluster");
    ls_redis_cmd_end(cmd);
}

static bool is_cluster(struct rb_server *s)
{
    struct ls_redis_call call = {.encode = encode_info, .where = "INFO"};
    lade_err none;
    if (ls_redis_conn_call(s->conn, &call, lb_deadline_in(DEADLINE), &none) < 0)
        return false; /* not allowed to ask: then it says MOVED later, which has a message of its own */
    struct ls_redis_cursor cur = ls_redis_conn_reply(s->conn, 0);
    struct lb_slice info = ls_redis_read_bytes(&cur);
    return memmem(info.p, info.n, "cluster_enabled:1", 17) != NULL;
}

/* Goes where "MOVED 3999 host:port" says; an empty host is that of the node that was asked. */
static int follow(struct rb_server *s, struct lb_slice error, lade_err *err)
{
    char text[300];
    (void)snprintf(text, sizeof(text), "%.*s", (int)LB_MIN(error.n, sizeof(text) - 1),
                   (const char *)error.p);
    char *at = strrchr(text, ' ');
    char *colon = at ? strrchr(at, ':') : NULL;
    long port = colon ? strtol(colon + 1, NULL, 10) : 0;
    if (port < 1 || port > 65535)
        return lb_fail(err, LADE_EPROTO, "connect", "%s says '%.100s', which names no node",
                       s->url.text, text);
    *colon = 0;
    const char *host = at + 1;
    if (*host && strcmp(host, "?") != 0) {
        char *copy = lb_strdup(host);
        if (!copy)
            return lb_fail_nomem(err, "connect");
        lb_free(s->node);
        s->node = copy;
        s->url.host = copy;
    } else if (s->url.path) {
        return lb_fail(
            err, LADE_EUNSUPPORTED, "connect",
            "%s does not know its own address, which the cluster needs: connect to it by TCP",
            s->url.text);
    }
    s->url.path = NULL;
    s->url.port = (uint16_t)port;
    ls_redis_conn_close(s->conn);
    s->conn = NULL;
    rb_server_describe(s);
    return rb_server_connect(s, err);
}

static int find_node(struct rb_server *s, struct lb_buf *key, lade_err *err)
{
    for (int hop = 0; hop < HOPS; hop++) {
        struct ls_redis_call call = {
            .encode = encode_llen, .ctx = key, .where = "connect", .raw = true};
        int rc = ls_redis_conn_call(s->conn, &call, lb_deadline_in(DEADLINE), err);
        if (rc < 0)
            return rc;
        struct ls_redis_cursor cur = ls_redis_conn_reply(s->conn, 0);
        struct ls_redis_value v = ls_redis_read(&cur);
        bool moved =
            v.type == LS_REDIS_ERROR && v.bytes.n > 6 && memcmp(v.bytes.p, "MOVED ", 6) == 0;
        if (!moved)
            return 0;
        rc = follow(s, v.bytes, err);
        if (rc < 0)
            return rc;
    }
    return lb_fail(err, LADE_EUNSUPPORTED, "connect",
                   "the cluster's nodes send each to another: is it whole?");
}

int rb_cluster_enter(struct rb_server *s, lade_err *err)
{
    if (!is_cluster(s))
        return 0;
    if (!has_tag(s->keys.prefix))
        return lb_fail(
            err, LADE_EUNSUPPORTED, "connect",
            "%s is a node of a Redis Cluster: --namespace must have a hash tag, '{resque}', so that all keys lie in one slot",
            s->url.text);
    for (size_t i = 0; i < s->o->n_modes; i++)
        if (s->o->modes[i] == RB_NATIVE)
            return lb_fail(err, LADE_EUNSUPPORTED, "connect",
                           "mode native: lade's own queue does not work on a Redis Cluster");
    struct lb_buf key = {0};
    rq_key_queue(&s->keys, &key, lb_slice_str(s->queue[0]));
    int rc = key.failed ? lb_fail_nomem(err, "connect") : find_node(s, &key, err);
    lb_buf_fini(&key);
    return rc;
}
