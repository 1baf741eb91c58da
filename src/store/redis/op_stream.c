/*
 * op_stream.c - the streams of events: turned on and off, read; lua/stream.lua, events.lua
 *
 * Scripts make most events themselves. What only a worker knows of an end (how long it took, the error) comes with its settle, as records
 * that are ready to be stored (op_settle.c), but only while the last take of the queue said that somebody wants them.
 */
#include <inttypes.h>
#include <string.h>

#include "base/base.h"
#include "base/err.h"
#include "store/redis/slots.h"

bool ls_redis_is_telling(const struct ls_redis_store *s, const char *queue)
{
    for (size_t i = 0; i < s->n_telling; i++) {
        if (strcmp(s->telling[i], queue) == 0)
            return true;
    }
    return false;
}

void ls_redis_set_telling(struct ls_redis_store *s, const char *queue, bool on)
{
    size_t i = 0;
    if (!on && s->n_telling == 0)
        return;
    while (i < s->n_telling && strcmp(s->telling[i], queue) != 0)
        i++;
    if (on && i == s->n_telling && i < LS_REDIS_TELLING_MAX)
        (void)snprintf(s->telling[s->n_telling++], sizeof(s->telling[0]), "%s", queue);
    else if (!on && i < s->n_telling)
        memmove(s->telling[i], s->telling[--s->n_telling], sizeof(s->telling[0]));
}

struct stream_call {
    struct ls_redis_store *s;
    const char *queue;
    uint32_t cap;
    bool sets;
    const char *after;
    size_t most; /* 0: only the numbers */
};

static void encode_stream(struct ls_redis_conn *c, void *ctx, bool repeat LB_UNUSED)
{
    const struct stream_call *t = ctx;
    const char *ns = t->s->base.config.ns;
    struct ls_redis_cmd *cmd;
    if (t->sets) {
        ls_redis_name_queues(c, t->s, &t->queue, 1);
        cmd = ls_redis_script_begin(c, LS_REDIS_LUA_STREAM, 2, 3);
        ls_redis_key_shared(cmd, t->s, t->queue, "queues");
        ls_redis_key(cmd, ns, t->queue, "meta");
        ls_redis_arg_u64(cmd, t->cap);
    } else {
        cmd = ls_redis_script_begin(c, LS_REDIS_LUA_EVENTS, 1, 3);
        ls_redis_key(cmd, ns, t->queue, "meta");
        ls_redis_arg_str(cmd, t->after);
        ls_redis_arg_u64(cmd, t->most);
    }
    ls_redis_cmd_end(cmd);
}

/* Comes back with the admin link locked. */
static int ask_stream(struct stream_call *t, struct ls_redis_conn **c, lade_err *err)
{
    struct ls_redis_ask ask = {encode_stream, t, "events", false, &t->queue, 1};
    lr_mutex_lock(&t->s->admin.lock);
    int rc = ls_redis_link_conn(t->s, &t->s->admin, c, err);
    return rc < 0 ? rc : ls_redis_ask(t->s, *c, &ask, 1, err);
}

int ls_redis_events_set(struct lq_store *base, const char *queue, uint32_t cap, lade_err *err)
{
    struct stream_call t = {.s = ls_redis_of(base), .queue = queue, .cap = cap, .sets = true};
    struct ls_redis_conn *c;
    int rc = ask_stream(&t, &c, err);
    lr_mutex_unlock(&t.s->admin.lock);
    return rc;
}

/* What both answers begin with. -1: it is none. */
static int read_head(struct ls_redis_cursor *cur, size_t *n, lade_events_info *out)
{
    static const int meaning[] = {0, LADE_NOT_FOUND, LADE_WRONG_STATE, LADE_MISSED, LADE_EMPTY};
    *n = ls_redis_read_array(cur);
    int64_t code = ls_redis_read_int(cur);
    out->first = (uint64_t)ls_redis_read_int(cur);
    out->last = (uint64_t)ls_redis_read_int(cur);
    out->cap = (uint32_t)ls_redis_read_int(cur);
    if (cur->bad || *n < 4 || code < 0 || (size_t)code >= LB_ARRAY_LEN(meaning))
        return -1;
    return meaning[code];
}

int ls_redis_events_get(struct lq_store *base, const char *queue, lade_events_info *out,
                        lade_err *err)
{
    struct stream_call t = {.s = ls_redis_of(base), .queue = queue, .after = "0"};
    struct ls_redis_conn *c;
    lade_events_info info = {0};
    size_t n;
    int rc = ask_stream(&t, &c, err);
    if (rc == 0) {
        struct ls_redis_cursor cur = ls_redis_conn_reply(c, 0);
        rc = read_head(&cur, &n, &info);
        if (rc < 0)
            rc = ls_redis_conn_fail_reply(c, "events", err);
        else
            rc = rc == LADE_NOT_FOUND ? rc : 0;
    }
    lr_mutex_unlock(&t.s->admin.lock);
    if (rc == 0)
        *out = info;
    return rc;
}

/* 0, or a negative number: no answer, or no memory. */
static int read_entries(struct ls_redis_cursor *cur, size_t n, uint64_t after,
                        struct lq_event_vec *out)
{
    for (size_t i = 4; i + 3 < n; i += 4) {
        uint64_t last = (uint64_t)ls_redis_read_int(cur), k = (uint64_t)ls_redis_read_int(cur);
        struct lb_slice at = ls_redis_read_bytes(cur), data = ls_redis_read_bytes(cur);
        if (cur->bad || k > last)
            return -1;
        struct lb_mut kept = lb_arena_copy(&out->arena, data.p, data.n);
        if (!kept.p ||
            !lq_events_expand(out, lb_slice_of(kept), last, k, ls_redis_take_number(&at), after))
            return -LADE_ENOMEM;
    }
    return cur->bad ? -1 : 0;
}

int ls_redis_event_read(struct lq_store *base, const char *queue, uint64_t after, size_t max,
                        struct lq_event_vec *out, lade_err *err)
{
    char from[24] = "now";
    if (after != UINT64_MAX)
        (void)snprintf(from, sizeof(from), "%" PRIu64, after);
    struct stream_call t = {
        .s = ls_redis_of(base), .queue = queue, .after = from, .most = LB_MAX(max, (size_t)1)};
    struct ls_redis_conn *c;
    lade_events_info info = {0};
    size_t n;
    int rc = ask_stream(&t, &c, err);
    if (rc == 0) {
        struct ls_redis_cursor cur = ls_redis_conn_reply(c, 0);
        rc = read_head(&cur, &n, &info);
        if (rc == 0 || rc == LADE_EMPTY)
            out->after = after == 0 ? info.first - 1 : LB_MIN(after, info.last);
        if (rc == 0)
            rc = read_entries(&cur, n, out->after, out);
        if (rc == -LADE_ENOMEM)
            rc = lb_fail_nomem(err, "events");
        else if (rc < 0)
            rc = ls_redis_conn_fail_reply(c, "events", err);
    }
    lr_mutex_unlock(&t.s->admin.lock);
    return rc;
}
