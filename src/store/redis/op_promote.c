/* op_promote.c - promote and trim: steps over lanes that answer two numbers; lua/promote.lua, lua/trim.lua */
#include "base/base.h"
#include "store/redis/store_inner.h"

struct step {
    struct ls_redis_store *s;
    enum ls_redis_lua script;
    struct lq_lanes lanes;
    int64_t arg[5];
    size_t n_args;
};

static void encode_step(struct ls_redis_conn *c, void *ctx, bool repeat LB_UNUSED)
{
    const struct step *t = ctx;
    struct ls_redis_cmd *cmd =
        ls_redis_script_begin(c, t->script, t->lanes.n, t->lanes.n + t->n_args);
    ls_redis_keys_of(cmd, t->s, t->lanes);
    for (size_t i = 0; i < t->n_args; i++)
        ls_redis_arg_int(cmd, t->arg[i]);
    ls_redis_cmd_end(cmd);
}

static int run_step(struct step *t, const char *where, int64_t answer[2], lade_err *err)
{
    struct ls_redis_ask ask = {encode_step, t, where, false, t->lanes.queue, t->lanes.n};
    struct ls_redis_conn *c;
    lr_mutex_lock(&t->s->work.lock);
    int rc = ls_redis_link_conn(t->s, &t->s->work, &c, err);
    if (rc == 0)
        rc = ls_redis_ask(t->s, c, &ask, 1, err);
    if (rc == 0) {
        struct ls_redis_cursor cur = ls_redis_conn_reply(c, 0);
        size_t n = ls_redis_read_array(&cur);
        answer[0] = ls_redis_read_int(&cur);
        answer[1] = ls_redis_read_int(&cur);
        if (cur.bad || n != 2 || answer[0] < 0)
            rc = ls_redis_conn_fail_reply(c, where, err);
    }
    lr_mutex_unlock(&t->s->work.lock);
    return rc;
}

int ls_redis_promote(struct lq_store *base, struct lq_lanes lanes, size_t max, size_t *n,
                     int64_t *next_ms, lade_err *err)
{
    struct step t = {
        ls_redis_of(base), LS_REDIS_LUA_PROMOTE, lanes, {(int64_t)LB_MIN(max, LADE_BATCH_MAX)}, 1};
    int64_t answer[2] = {0};
    int rc = run_step(&t, "promote", answer, err);
    if (rc == 0) {
        *n = (size_t)answer[0];
        *next_ms = answer[1];
    }
    return rc;
}

int ls_redis_trim(struct lq_store *base, struct lq_lanes lanes, size_t max, size_t *n,
                  lade_err *err)
{
    const struct lq_store_config *config = &base->config;
    struct step t = {ls_redis_of(base),
                     LS_REDIS_LUA_TRIM,
                     lanes,
                     {(int64_t)LB_MIN(max, LADE_BATCH_MAX), config->keep_completed.age_ms,
                      LB_MAX(config->keep_completed.count, 0), config->keep_dead.age_ms,
                      LB_MAX(config->keep_dead.count, 0)},
                     5};
    int64_t answer[2] = {0};
    int rc = run_step(&t, "trim", answer, err);
    if (rc == 0)
        *n = (size_t)answer[0];
    return rc == 0 && answer[1] ? LADE_MORE : rc;
}
