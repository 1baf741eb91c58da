/* op_promote.c - promote and trim: steps over lanes that answer two numbers; lua/promote.lua, lua/trim.lua */
#include "base/base.h"
#include "store/redis/outbox.h"
#include "store/redis/slots.h"

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

static int ask_step(struct step *t, const char *where, int64_t answer[2], lade_err *err)
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

/* In slots: what others have left in the outboxes, of these queues, and when old jobs are trimmed, which is seldom, of all. */
static void ship_left(const struct step *t, struct lq_lanes lanes, int rc)
{
    struct ls_redis_conn *c;
    if (rc != 0 || !ls_redis_in_slots(t->s))
        return;
    lr_mutex_lock(&t->s->work.lock);
    if (ls_redis_link_conn(t->s, &t->s->work, &c, NULL) == 0) {
        if (t->script == LS_REDIS_LUA_TRIM)
            ls_redis_ship_all(t->s, c);
        else
            ls_redis_ship(t->s, c, lanes.queue, lanes.n);
    }
    lr_mutex_unlock(&t->s->work.lock);
}

/* In slots the lanes come one after the other; numbers add up, and the second is the first of all or, of trim, whether any is left. */
static int run_step(struct step *t, const char *where, int64_t answer[2], lade_err *err)
{
    struct lq_lanes lanes = t->lanes;
    size_t n = ls_redis_n_calls(t->s, lanes);
    int64_t most = t->arg[0];
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < n; i++) {
        int64_t its[2] = {0};
        t->lanes = ls_redis_some_lanes(lanes, i, n);
        t->arg[0] = LB_MAX(most - answer[0], 0);
        rc = ask_step(t, where, its, err);
        answer[0] += its[0];
        if (its[1] > 0 && (answer[1] == 0 || its[1] < answer[1]))
            answer[1] = its[1];
    }
    ship_left(t, lanes, rc);
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
