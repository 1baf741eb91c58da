/*
 * replicas.c - an enqueue that counts only when replicas have it (URL option replicas=N)
 *
 * Redis answers before its replicas have a write, so a failover may lose what was acknowledged. WAIT on the same connection
 * tells how many replicas have all that this connection wrote. On a connection made since it would tell of nothing, so a
 * lost one is a failure and not a repeat.
 */
#include <inttypes.h>

#include "base/base.h"
#include "base/err.h"
#include "store/redis/store_inner.h"

static void encode_wait(struct ls_redis_conn *c, void *ctx, bool repeat)
{
    const struct ls_redis_store *s = ctx;
    (void)repeat;
    struct ls_redis_cmd *cmd = ls_redis_conn_begin(c, 3);
    ls_redis_arg_str(cmd, "WAIT");
    ls_redis_arg_int(cmd, s->url.replicas);
    /* Less than the whole timeout, so that the answer comes before the call gives up. */
    ls_redis_arg_int(cmd, LB_MAX(s->base.config.timeout_ms * 3 / 4, 1));
    ls_redis_cmd_end(cmd);
}

int ls_redis_replicate(struct ls_redis_store *s, struct ls_redis_conn *c, const char *where,
                       lade_err *err)
{
    if (s->url.replicas == 0)
        return 0;
    struct ls_redis_ask ask = {encode_wait, s, where, true, NULL, 0};
    uint64_t before = ls_redis_conn_generation(c);
    int rc = ls_redis_ask(s, c, &ask, 1, err);
    if (rc < 0)
        return rc;
    struct ls_redis_cursor cur = ls_redis_conn_reply(c, 0);
    int64_t n = ls_redis_read_int(&cur);
    if (cur.bad)
        return ls_redis_conn_fail_reply(c, where, err);
    if (ls_redis_conn_generation(c) != before)
        n = 0;
    if (n >= s->url.replicas)
        return 0;
    return lb_fail(err, LADE_EUNAVAILABLE, where,
                   "%s has written it, but only %" PRId64
                   " of replicas=%d are known to have it: a failover may lose it, "
                   "a repeat with the same explicit id adds nothing twice",
                   s->url.text, n, s->url.replicas);
}
