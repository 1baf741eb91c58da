/* op_limit.c - limits and keys, as operators set and see them; lua/key_set.lua, key_look.lua */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/err.h"
#include "queue/key_store.h"
#include "queue/limit.h"
#include "store/redis/slots.h"

#define APART_JOBS 1000 /* ready ones, in one step */
#define ROUNDS_MAX 10

struct key_call {
    struct ls_redis_store *s;
    enum ls_redis_lua script;
    const char *queue;
    const char *what;
    int64_t number; /* < 0: none */
    struct lb_slice key;
    const char *text; /* or NULL */
    char cursor[32];  /* of apart */
};

static void encode_call(struct ls_redis_conn *c, void *ctx, bool repeat LB_UNUSED)
{
    const struct key_call *k = ctx;
    const char *ns = k->s->base.config.ns;
    bool sets = k->script == LS_REDIS_LUA_KEY_SET;
    if (sets)
        ls_redis_name_queues(c, k->s, &k->queue, 1);
    struct ls_redis_cmd *cmd = ls_redis_script_begin(c, k->script, 1 + sets, 6);
    if (sets)
        ls_redis_key_shared(cmd, k->s, k->queue, "queues");
    ls_redis_key(cmd, ns, k->queue, "meta");
    ls_redis_arg_str(cmd, k->what);
    if (k->number >= 0)
        ls_redis_arg_int(cmd, k->number);
    ls_redis_arg_slice(cmd, k->key);
    if (k->text)
        ls_redis_arg_str(cmd, k->text);
    ls_redis_cmd_end(cmd);
}

/* Asks with the link locked, and leaves it locked: the reply is read before it is unlocked. */
static int ask(struct key_call *k, const char *where, struct ls_redis_conn **c, lade_err *err)
{
    struct ls_redis_ask a = {encode_call, k, where, false, &k->queue, 1};
    lr_mutex_lock(&k->s->admin.lock);
    int rc = ls_redis_link_conn(k->s, &k->s->admin, c, err);
    return rc < 0 ? rc : ls_redis_ask(k->s, *c, &a, 1, err);
}

static void encode_apart(struct ls_redis_conn *c, void *ctx, bool repeat LB_UNUSED)
{
    const struct key_call *k = ctx;
    struct ls_redis_cmd *cmd = ls_redis_script_begin(c, LS_REDIS_LUA_APART, 1, 3);
    ls_redis_key(cmd, k->s->base.config.ns, k->queue, "meta");
    ls_redis_arg_str(cmd, k->cursor);
    ls_redis_arg_int(cmd, APART_JOBS);
    ls_redis_cmd_end(cmd);
}

/* Jobs in company get turns of their own, a slice at a time; with the link locked. */
static int take_apart(struct key_call *k, const char *where, struct ls_redis_conn *c, lade_err *err)
{
    struct ls_redis_ask a = {encode_apart, k, where, false, &k->queue, 1};
    (void)snprintf(k->cursor, sizeof(k->cursor), "0");
    while (k->cursor[0]) {
        int rc = ls_redis_ask(k->s, c, &a, 1, err);
        if (rc < 0)
            return rc;
        struct ls_redis_cursor cur = ls_redis_conn_reply(c, 0);
        struct lb_slice next = ls_redis_read_bytes(&cur);
        if (cur.bad || next.n >= sizeof(k->cursor))
            return ls_redis_conn_fail_reply(c, where, err);
        memcpy(k->cursor, next.p, next.n);
        k->cursor[next.n] = 0;
    }
    return 0;
}

/* Whether the answer is that there is company. */
static bool meets_company(const struct key_call *k, struct ls_redis_conn *c)
{
    struct ls_redis_cursor cur = ls_redis_conn_reply(c, 0);
    if (k->script == LS_REDIS_LUA_KEY_SET)
        return ls_redis_read_int(&cur) == 1 && !cur.bad;
    return ls_redis_read_array(&cur) == 1 && ls_redis_peek(&cur) == LS_REDIS_INT &&
           ls_redis_read_int(&cur) == -1;
}

/* Nobody joins for a second, so one round will do unless the server was lost meanwhile. */
static int ask_apart(struct key_call *k, const char *where, struct ls_redis_conn **c, lade_err *err)
{
    int rc = ask(k, where, c, err);
    for (int i = 0; rc == 0 && i < ROUNDS_MAX && meets_company(k, *c); i++) {
        struct ls_redis_ask a = {encode_call, k, where, false, &k->queue, 1};
        rc = take_apart(k, where, *c, err);
        if (rc == 0)
            rc = ls_redis_ask(k->s, *c, &a, 1, err);
    }
    if (rc == 0 && meets_company(k, *c))
        return lb_fail(err, LADE_EUNAVAILABLE, where,
                       "jobs of keys came in company each time: try again");
    return rc;
}

static int set(struct key_call *k, const char *where, lade_err *err)
{
    struct ls_redis_conn *c;
    k->script = LS_REDIS_LUA_KEY_SET;
    k->number = -1;
    int rc = ask_apart(k, where, &c, err);
    lr_mutex_unlock(&k->s->admin.lock);
    return rc;
}

int ls_redis_limit_set(struct lq_store *base, const char *queue, enum lade_limit_scope scope,
                       struct lb_slice key, const struct lq_limit *limit, lade_err *err)
{
    static const char *const what[] = {"queue", "keys", "key"};

    char text[LQ_LIMIT_TEXT] = "";
    if (!lq_limit_is_zero(limit))
        lq_limit_write(limit, text);
    struct key_call k = {.s = ls_redis_of(base),
                         .queue = queue,
                         .what = what[scope],
                         .key = scope == LADE_LIMIT_KEY ? key : (struct lb_slice){0},
                         .text = text};
    return set(&k, "limit", err);
}

int ls_redis_key_pause(struct lq_store *base, const char *queue, struct lb_slice key, bool paused,
                       lade_err *err)
{
    struct key_call k = {.s = ls_redis_of(base),
                         .queue = queue,
                         .what = paused ? "pause" : "resume",
                         .key = key,
                         .text = ""};
    return set(&k, "key_pause", err);
}

int ls_redis_limit_get(struct lq_store *base, const char *queue, enum lade_limit_scope scope,
                       struct lb_slice key, struct lq_limit *out, lade_err *err)
{
    struct key_call k = {.s = ls_redis_of(base),
                         .script = LS_REDIS_LUA_KEY_LOOK,
                         .queue = queue,
                         .what = "limit",
                         .number = scope,
                         .key = key};
    struct ls_redis_conn *c;
    struct lq_limit found;
    int rc = ask(&k, "limit", &c, err);
    if (rc == 0) {
        struct ls_redis_cursor cur = ls_redis_conn_reply(c, 0);
        size_t n = ls_redis_read_array(&cur);
        struct lb_slice text = n > 0 ? ls_redis_read_bytes(&cur) : (struct lb_slice){0};
        if (cur.bad || !lq_limit_read(text, &found))
            rc = ls_redis_conn_fail_reply(c, "limit", err);
        else if (n == 0)
            rc = LADE_NOT_FOUND;
        else
            *out = found;
    }
    lr_mutex_unlock(&k.s->admin.lock);
    return rc;
}

/* One key of the answer; the bytes into the arena. False when out of memory. */
static bool read_row(struct ls_redis_cursor *cur, int64_t now_ms, const struct lq_limit *usual,
                     struct lb_arena *arena, struct lq_key_row *row)
{
    size_t n = ls_redis_read_array(cur);
    struct lb_slice key = ls_redis_read_bytes(cur);
    struct lb_mut copy = lb_arena_copy(arena, key.p, key.n);
    *row = (struct lq_key_row){.key = lb_slice_of(copy)};
    row->ready = ls_redis_read_int(cur);
    row->active = ls_redis_read_int(cur);
    row->waiting = ls_redis_read_int(cur);
    row->paused = ls_redis_read_int(cur) != 0;
    row->hold = (enum lade_key_hold)ls_redis_read_int(cur);
    row->until_ms = ls_redis_read_int(cur);
    if (!lq_limit_read(ls_redis_read_bytes(cur), &row->own))
        cur->bad = true;
    int64_t came = ls_redis_id_time(ls_redis_read_bytes(cur)), since = ls_redis_read_int(cur);
    came = since ? since : came;
    row->latency_ms = came > 0 && came < now_ms ? now_ms - came : 0;
    row->joined = lq_limit_join(&row->own, usual);
    cur->bad = cur->bad || n != 10;
    return copy.p != NULL;
}

/* Appends the keys of an answer. 0, LADE_NOT_FOUND without a queue, or a failure. */
static int read_rows(struct ls_redis_conn *c, struct lq_key_row_vec *out, bool *end, lade_err *err)
{
    struct ls_redis_cursor cur = ls_redis_conn_reply(c, 0);
    size_t n = ls_redis_read_array(&cur);
    struct lq_limit usual;
    if (!cur.bad && n == 0)
        return LADE_NOT_FOUND;
    int64_t now_ms = ls_redis_read_int(&cur);
    bool good = lq_limit_read(ls_redis_read_bytes(&cur), &usual);
    *end = ls_redis_read_int(&cur) != 0;
    if (cur.bad || !good || n < 3)
        return ls_redis_conn_fail_reply(c, "key", err);
    struct lq_key_row *rows = lb_arena_alloc(&out->arena, (out->n + n) * sizeof(*rows));
    bool ok = rows != NULL;
    if (ok && out->n > 0)
        memcpy(rows, out->row, out->n * sizeof(*rows));
    for (size_t i = 0; ok && i < n - 3; i++)
        ok = read_row(&cur, now_ms, &usual, &out->arena, &rows[out->n + i]);
    if (!ok)
        return lb_fail_nomem(err, "key");
    if (cur.bad)
        return ls_redis_conn_fail_reply(c, "key", err);
    out->row = rows;
    out->n += n - 3;
    return 0;
}

int ls_redis_key_list(struct lq_store *base, const char *queue, lade_cursor *cursor, size_t limit,
                      struct lq_key_row_vec *out, lade_err *err)
{
    uint8_t after[LADE_KEY_MAX] = {0};
    struct key_call k = {.s = ls_redis_of(base),
                         .script = LS_REDIS_LUA_KEY_LOOK,
                         .queue = queue,
                         .what = "list",
                         .number = (int64_t)limit,
                         .key = lb_slice(after, lq_key_of_cursor(cursor, after))};
    struct ls_redis_conn *c;
    size_t before = out->n;
    bool end = true;
    int rc = ask_apart(&k, "key", &c, err);
    if (rc == 0)
        rc = read_rows(c, out, &end, err);
    lr_mutex_unlock(&k.s->admin.lock);
    if (rc < 0)
        return rc;
    cursor->done = end;
    if (out->n > before)
        lq_key_to_cursor(cursor, out->row[out->n - 1].key);
    return out->n == before ? LADE_EMPTY : 0;
}

int ls_redis_key_get(struct lq_store *base, const char *queue, struct lb_slice key,
                     struct lq_key_row_vec *out, lade_err *err)
{
    struct key_call k = {.s = ls_redis_of(base),
                         .script = LS_REDIS_LUA_KEY_LOOK,
                         .queue = queue,
                         .what = "get",
                         .number = 1,
                         .key = key};
    struct ls_redis_conn *c;
    size_t before = out->n;
    bool end;
    int rc = ask_apart(&k, "key", &c, err);
    if (rc == 0)
        rc = read_rows(c, out, &end, err);
    lr_mutex_unlock(&k.s->admin.lock);
    return rc == 0 && out->n == before ? LADE_NOT_FOUND : rc;
}
