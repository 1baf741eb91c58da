/*
 * op_admin.c - what operators do to jobs and queues; lua/act.lua, purge.lua, redrive.lua, pause.lua, forget.lua
 *
 * An act or a redrive whose answer is lost is not repeated: the second answer would tell of a job that is not where it
 * was. The operator gets the failure and looks.
 */
#include "base/base.h"
#include "base/err.h"
#include "store/redis/outbox.h"
#include "store/redis/slots.h"

struct deed {
    struct ls_redis_store *s;
    enum ls_redis_lua script;
    const char *queue;
    const char *ns_key; /* or NULL */
    const char *text;   /* first argument, or NULL */
    int64_t number;     /* next argument, or -1 */
    const struct lb_slice *id;
    size_t n_ids;
};

static void encode_deed(struct ls_redis_conn *c, void *ctx, bool repeat LB_UNUSED)
{
    const struct deed *d = ctx;
    if (d->script == LS_REDIS_LUA_PAUSE)
        ls_redis_name_queues(c, d->s, &d->queue, 1);
    struct ls_redis_cmd *cmd =
        ls_redis_script_begin(c, d->script, 1 + (d->ns_key != NULL), d->n_ids + 4);
    if (d->ns_key)
        ls_redis_key_shared(cmd, d->s, d->queue, d->ns_key);
    ls_redis_key(cmd, d->s->base.config.ns, d->queue, "meta");
    if (d->text)
        ls_redis_arg_str(cmd, d->text);
    if (d->number >= 0)
        ls_redis_arg_int(cmd, d->number);
    for (size_t i = 0; i < d->n_ids; i++)
        ls_redis_arg_slice(cmd, d->id[i]);
    ls_redis_cmd_end(cmd);
}

/* Runs it and reads n integers: one, or an array of them. */
static int run_deed(struct deed *d, const char *where, bool once, int64_t *answer, size_t n,
                    lade_err *err)
{
    struct ls_redis_ask ask = {encode_deed, d, where, once, &d->queue, 1};
    struct ls_redis_conn *c;
    lr_mutex_lock(&d->s->admin.lock);
    int rc = ls_redis_link_conn(d->s, &d->s->admin, &c, err);
    if (rc == 0)
        rc = ls_redis_ask(d->s, c, &ask, 1, err);
    if (rc == 0) {
        struct ls_redis_cursor cur = ls_redis_conn_reply(c, 0);
        bool plain = ls_redis_peek(&cur) == LS_REDIS_INT;
        size_t there = plain ? 1 : ls_redis_read_array(&cur);
        for (size_t i = 0; i < LB_MIN(n, there); i++)
            answer[i] = ls_redis_read_int(&cur);
        if (cur.bad || there != n)
            rc = ls_redis_conn_fail_reply(c, where, err);
    }
    lr_mutex_unlock(&d->s->admin.lock);
    return rc;
}

int ls_redis_act(struct lq_store *base, const char *queue, enum lade_job_verb verb,
                 const struct lb_slice *id, size_t n, int *outcome, lade_err *err)
{
    static const int meaning[] = {0, LADE_NOT_FOUND, LADE_WRONG_STATE};
    int64_t answer[LQ_TAKE_MAX] = {0};
    if (n == 0)
        return 0;
    if (n > LQ_TAKE_MAX)
        return lb_fail(err, LADE_EINVAL, "act", "%zu jobs in one call, at most %d", n, LQ_TAKE_MAX);
    struct deed d = {.s = ls_redis_of(base),
                     .script = LS_REDIS_LUA_ACT,
                     .queue = queue,
                     .number = verb,
                     .id = id,
                     .n_ids = n};
    int rc = run_deed(&d, "act", true, answer, n, err);
    if (rc == 0)
        ls_redis_ship_apart(d.s, &queue, 1);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        if (answer[i] < 0 || (size_t)answer[i] >= LB_ARRAY_LEN(meaning))
            return lb_fail(err, LADE_EPROTO, "act", "%s answered %lld for a job", d.s->url.text,
                           (long long)answer[i]);
    }
    for (size_t i = 0; rc == 0 && i < n; i++)
        outcome[i] = meaning[answer[i]];
    return rc;
}

int ls_redis_purge(struct lq_store *base, const char *queue, enum lade_state state, size_t max,
                   size_t *n, lade_err *err)
{
    int64_t answer[2] = {0};
    if (state == LADE_STATE_ACTIVE)
        return lb_fail(err, LADE_EINVAL, "purge", "active jobs cannot be purged: cancel them");
    struct deed d = {.s = ls_redis_of(base),
                     .script = LS_REDIS_LUA_PURGE,
                     .queue = queue,
                     .text = lade_state_name(state),
                     .number = (int64_t)LB_MIN(max, LADE_BATCH_MAX)};
    int rc = run_deed(&d, "purge", false, answer, 2, err);
    if (rc < 0)
        return rc;
    ls_redis_ship_apart(d.s, &queue, 1);
    *n = (size_t)answer[0];
    return answer[1] ? LADE_MORE : 0;
}

int ls_redis_redrive(struct lq_store *base, const char *queue, size_t max, size_t *n, lade_err *err)
{
    int64_t answer[2] = {0};
    struct deed d = {.s = ls_redis_of(base),
                     .script = LS_REDIS_LUA_REDRIVE,
                     .queue = queue,
                     .number = (int64_t)LB_MIN(max, LADE_BATCH_MAX)};
    int rc = run_deed(&d, "redrive", true, answer, 2, err);
    if (rc < 0)
        return rc;
    ls_redis_ship_apart(d.s, &queue, 1);
    *n = (size_t)answer[0];
    return answer[1] ? LADE_MORE : 0;
}

int ls_redis_pause(struct lq_store *base, const char *queue, bool paused, lade_err *err)
{
    int64_t answer[1] = {0};
    struct deed d = {.s = ls_redis_of(base),
                     .script = LS_REDIS_LUA_PAUSE,
                     .queue = queue,
                     .ns_key = "queues",
                     .number = paused};
    return run_deed(&d, "pause", false, answer, 1, err);
}

int ls_redis_forget(struct lq_store *base, const char *queue, lade_err *err)
{
    static const int meaning[] = {0, LADE_NOT_FOUND, LADE_WRONG_STATE};
    int64_t answer[1] = {0};
    struct deed d = {.s = ls_redis_of(base),
                     .script = LS_REDIS_LUA_FORGET,
                     .queue = queue,
                     .ns_key = "queues",
                     .number = -1};
    int rc = run_deed(&d, "forget", true, answer, 1, err);
    if (rc == 0 && answer[0] < 2 && ls_redis_in_slots(d.s))
        rc = ls_redis_slots_forget(d.s, queue, err);
    return rc < 0 ? rc : meaning[LB_MIN((size_t)answer[0], 2)];
}
