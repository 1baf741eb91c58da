/*
 * op_await.c - results, watching, and what handlers say; lua/results.lua, watch.lua, say.lua, words.lua
 *
 * A watcher is rung by its bell as an idle worker is (wait.c): its name is that of the bell. A say whose reply is lost is not repeated: lines
 * would stand there twice.
 */
#include <string.h>

#include "base/base.h"
#include "base/err.h"
#include "base/mem.h"
#include "store/redis/op_settle.h"
#include "store/redis/store_inner.h"

/* One call about one queue. */
struct one {
    struct ls_redis_store *s;
    enum ls_redis_lua script;
    const char *queue;
    const struct lb_slice *id;
    size_t n;
    int64_t number[2]; /* behind the ids, n_numbers of them */
    size_t n_numbers;
};

static void encode_one(struct ls_redis_conn *c, void *ctx, bool repeat LB_UNUSED)
{
    const struct one *o = ctx;
    struct ls_redis_cmd *cmd = ls_redis_script_begin(c, o->script, 1, 1 + o->n + o->n_numbers);
    ls_redis_key(cmd, o->s->base.config.ns, o->queue, "meta");
    for (size_t i = 0; i < o->n; i++)
        ls_redis_arg_slice(cmd, o->id[i]);
    for (size_t i = 0; i < o->n_numbers; i++)
        ls_redis_arg_int(cmd, o->number[i]);
    ls_redis_cmd_end(cmd);
}

/* The link is locked until `end_one`, whatever this gives. */
static int begin_one(struct one *o, const char *where, struct ls_redis_conn **c, lade_err *err)
{
    struct ls_redis_ask ask = {encode_one, o, where, false, &o->queue, 1};
    lr_mutex_lock(&o->s->admin.lock);
    int rc = ls_redis_link_conn(o->s, &o->s->admin, c, err);
    return rc < 0 ? rc : ls_redis_ask(o->s, *c, &ask, 1, err);
}

static int end_one(struct one *o, int rc)
{
    lr_mutex_unlock(&o->s->admin.lock);
    return rc;
}

/* results ---------------------------------------------------------------------------------------------------------- */

static int state_of_letter(struct lb_slice letter)
{
    static const char letters[] = "sratcdx";
    const char *at = letter.n == 1 ? memchr(letters, letter.p[0], sizeof(letters) - 1) : NULL;
    return at ? (int)(at - letters) : -1;
}

static bool read_result(struct ls_redis_cursor *cur, struct lb_arena *arena, struct lq_result *out)
{
    *out = (struct lq_result){.outcome = LADE_NOT_FOUND};
    if (ls_redis_read_array(cur) == 0)
        return !cur->bad;
    int state = state_of_letter(ls_redis_read_bytes(cur));
    struct lb_slice bytes = ls_redis_read_bytes(cur);
    if (state < 0 || cur->bad)
        return false;
    out->state = (enum lade_state)state;
    out->outcome = LADE_WRONG_STATE;
    if (out->state != LADE_STATE_COMPLETED)
        return true;
    out->outcome = bytes.n > 0 ? LADE_DONE : LADE_EMPTY;
    out->bytes = lb_arena_copy(arena, bytes.p, bytes.n);
    return out->bytes.p;
}

int ls_redis_results(struct lq_store *base, const char *queue, const struct lb_slice *id, size_t n,
                     struct lb_arena *arena, struct lq_result *out, lade_err *err)
{
    struct one o = {
        .s = ls_redis_of(base), .script = LS_REDIS_LUA_RESULTS, .queue = queue, .id = id, .n = n};
    struct ls_redis_conn *c;
    int rc = begin_one(&o, "results", &c, err);
    if (rc == 0) {
        struct ls_redis_cursor cur = ls_redis_conn_reply(c, 0);
        bool ok = ls_redis_read_array(&cur) == n;
        for (size_t i = 0; ok && i < n; i++)
            ok = read_result(&cur, arena, &out[i]);
        if (!ok)
            rc = ls_redis_conn_fail_reply(c, "results", err);
    }
    return end_one(&o, rc);
}

/* watching --------------------------------------------------------------------------------------------------------- */

struct group_call {
    struct ls_redis_settles group; /* only its grouping */
    const char *waiter;
    struct lq_watch *watch;
    struct lq_say *say;
};

static void encode_watch(struct ls_redis_conn *c, void *ctx, bool repeat LB_UNUSED)
{
    const struct group_call *w = ctx;
    const struct ls_redis_settles *g = &w->group;
    for (size_t lane = 0; lane < g->n_queues; lane++) {
        const struct ls_redis_settle_lane *l = &g->lane[lane];
        struct ls_redis_cmd *cmd = ls_redis_script_begin(c, LS_REDIS_LUA_WATCH, 1, 2 + 3 * l->n);
        ls_redis_key(cmd, g->s->base.config.ns, g->queue[lane], "meta");
        ls_redis_arg_str(cmd, w->waiter);
        for (size_t i = 0; i < l->n; i++) {
            const struct lq_watch *it = &w->watch[g->order[l->first + i]];
            ls_redis_arg_int(cmd, it->what);
            ls_redis_arg_u64(cmd, it->after);
            if (it->what == LQ_WATCH_ROOM)
                ls_redis_arg_u64(cmd, it->bytes);
            else
                ls_redis_arg_slice(cmd, it->id);
        }
        ls_redis_cmd_end(cmd);
    }
}

static bool read_watched(struct group_call *w, struct ls_redis_cursor cur, size_t lane)
{
    static const int meaning[] = {LADE_DONE, LADE_NOT_FOUND, LADE_EMPTY};
    const struct ls_redis_settle_lane *l = &w->group.lane[lane];
    bool ok = ls_redis_read_array(&cur) == l->n;
    for (size_t i = 0; ok && i < l->n; i++) {
        int64_t found = ls_redis_read_int(&cur);
        ok = !cur.bad && found >= 0 && found <= 2;
        if (ok)
            w->watch[w->group.order[l->first + i]].outcome = meaning[found];
    }
    return ok;
}

/* Groups n items by their queues; the call is the caller's to fini. */
static int begin_group(struct group_call *call, struct ls_redis_store *s, struct lq_settle **it,
                       size_t n, lade_err *err)
{
    *it = lb_calloc(n, sizeof(**it));
    if (!*it)
        return lb_fail_nomem(err, "wait");
    for (size_t i = 0; i < n; i++)
        (*it)[i].queue = call->watch ? call->watch[i].queue : call->say[i].queue;
    return ls_redis_settles_init(&call->group, s, *it, n, false, err);
}

int ls_redis_watch(struct lq_store *base, const char *waiter, struct lq_watch *it, size_t n,
                   lade_err *err)
{
    struct ls_redis_store *s = ls_redis_of(base);
    struct group_call w = {.waiter = waiter, .watch = it};
    struct lq_settle *items = NULL;
    if (n == 0)
        return 0;
    int rc = begin_group(&w, s, &items, n, err);
    struct ls_redis_settles *g = &w.group;
    struct ls_redis_ask ask = {encode_watch, &w, "wait", false, g->queue, g->n_queues};
    struct ls_redis_conn *c;
    lr_mutex_lock(&s->admin.lock);
    if (rc == 0)
        rc = ls_redis_link_conn(s, &s->admin, &c, err);
    if (rc == 0)
        rc = ls_redis_ask(s, c, &ask, g->n_queues, err);
    for (size_t i = 0; rc == 0 && i < g->n_queues; i++) {
        if (!read_watched(&w, ls_redis_conn_reply(c, i), i))
            rc = ls_redis_conn_fail_reply(c, "wait", err);
    }
    lr_mutex_unlock(&s->admin.lock);
    ls_redis_settles_fini(g);
    lb_free(items);
    return rc;
}

void ls_redis_unwatch(struct lq_store *base, const char *waiter, struct lq_lanes lanes)
{
    (void)lanes; /* what is registered there ends by itself */
    ls_redis_worker_forget(ls_redis_of(base), waiter);
}

/* saying ----------------------------------------------------------------------------------------------------------- */

static void encode_say(struct ls_redis_conn *c, void *ctx, bool repeat LB_UNUSED)
{
    const struct group_call *w = ctx;
    const struct ls_redis_settles *g = &w->group;
    for (size_t lane = 0; lane < g->n_queues; lane++) {
        const struct ls_redis_settle_lane *l = &g->lane[lane];
        size_t args = 1;
        for (size_t i = 0; i < l->n; i++)
            args += 5 + 2 * w->say[g->order[l->first + i]].n_lines;
        struct ls_redis_cmd *cmd = ls_redis_script_begin(c, LS_REDIS_LUA_SAY, 1, args);
        ls_redis_key(cmd, g->s->base.config.ns, g->queue[lane], "meta");
        for (size_t i = 0; i < l->n; i++) {
            const struct lq_say *it = &w->say[g->order[l->first + i]];
            ls_redis_arg_slice(cmd, it->id);
            ls_redis_arg_u64(cmd, it->fence);
            ls_redis_arg_int(cmd, it->percent);
            ls_redis_arg_slice(cmd, it->text);
            ls_redis_arg_u64(cmd, it->n_lines);
            for (size_t k = 0; k < it->n_lines; k++) {
                ls_redis_arg_int(cmd, it->line_ms[k]);
                ls_redis_arg_slice(cmd, it->line[k]);
            }
        }
        ls_redis_cmd_end(cmd);
    }
}

int ls_redis_say(struct lq_store *base, struct lq_say *it, size_t n, lade_err *err)
{
    struct ls_redis_store *s = ls_redis_of(base);
    struct group_call w = {.say = it};
    struct lq_settle *items = NULL;
    if (n == 0)
        return 0;
    int rc = begin_group(&w, s, &items, n, err);
    struct ls_redis_settles *g = &w.group;
    struct ls_redis_ask ask = {encode_say, &w, "say", true, g->queue, g->n_queues};
    struct ls_redis_conn *c;
    lr_mutex_lock(&s->work.lock);
    if (rc == 0)
        rc = ls_redis_link_conn(s, &s->work, &c, err);
    if (rc == 0)
        rc = ls_redis_ask(s, c, &ask, g->n_queues, err);
    for (size_t i = 0; rc == 0 && i < g->n_queues; i++) {
        if (!ls_redis_settles_read(g, i, ls_redis_conn_reply(c, i)))
            rc = ls_redis_conn_fail_reply(c, "say", err);
    }
    lr_mutex_unlock(&s->work.lock);
    for (size_t i = 0; rc == 0 && i < n; i++)
        it[i].outcome = g->stale[i] ? LADE_STALE : 0;
    ls_redis_settles_fini(g);
    lb_free(items);
    return rc;
}

/* False when it is no answer, or out of memory. */
static bool read_words(struct ls_redis_cursor *cur, size_t n, struct lq_words *out)
{
    out->percent = (int)ls_redis_read_int(cur);
    out->progress_ms = ls_redis_read_int(cur);
    out->total = (uint64_t)ls_redis_read_int(cur);
    struct lb_slice text = ls_redis_read_bytes(cur);
    uint64_t number = (uint64_t)ls_redis_read_int(cur);
    out->text = lb_arena_copy(out->arena, text.p, text.n);
    out->line = lb_arena_alloc(out->arena, (n + 1) * sizeof(*out->line));
    if (!out->text.p || !out->line)
        return false;
    for (size_t i = 5; i < n; i++) {
        struct lb_slice line = ls_redis_read_bytes(cur);
        int64_t at = ls_redis_take_number(&line);
        struct lb_mut copy = lb_arena_copy(out->arena, line.p, line.n);
        if (!copy.p)
            return false;
        out->line[out->n++] = (struct lq_log_line){++number, at, copy};
    }
    return !cur->bad;
}

int ls_redis_words(struct lq_store *base, const char *queue, struct lb_slice id,
                   struct lq_words *out, lade_err *err)
{
    /* Beyond a million there is nothing, and Lua's numbers are exact within it. */
    int64_t start = LB_MAX(INT64_C(-1000000), LB_MIN(out->start, INT64_C(1000000)));
    struct one o = {.s = ls_redis_of(base),
                    .script = LS_REDIS_LUA_WORDS,
                    .queue = queue,
                    .id = &id,
                    .n = 1,
                    .number = {start, (int64_t)out->limit},
                    .n_numbers = 2};
    struct ls_redis_conn *c;
    out->n = 0;
    int rc = begin_one(&o, "words", &c, err);
    if (rc == 0) {
        struct ls_redis_cursor cur = ls_redis_conn_reply(c, 0);
        size_t n = ls_redis_read_array(&cur);
        if (n == 0 && !cur.bad)
            rc = LADE_NOT_FOUND;
        else if (n < 5 || !read_words(&cur, n, out))
            rc = ls_redis_conn_fail_reply(c, "words", err);
    }
    return end_one(&o, rc);
}
