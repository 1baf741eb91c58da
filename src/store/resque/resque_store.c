/* resque_store.c - opening, connections, and what this process knows of its workers */
#include "store/resque/resque_store.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "store/resque/resque_inner.h"
#include "store/resque/resque_url.h"

#define SCRIPTS(X)      \
    X(TRIP, trip)       \
    X(BEAT, beat)       \
    X(LEAVE, leave)     \
    X(RECLAIM, reclaim) \
    X(LOOK, look)       \
    X(PRUNE, prune)     \
    X(DELAYED, delayed) \
    X(MOVE, move)       \
    X(FIND, find)
/* Made by lade_embed from lua/. */
#define DECLARE(upper, lower)                  \
    extern const char ls_resque_lua_##lower[]; \
    extern const size_t ls_resque_lua_##lower##_len;
SCRIPTS(DECLARE)

#define ENTRY(upper, lower) [LS_RESQUE_LUA_##upper] = {#lower, ls_resque_lua_##lower, 0, 0},
static struct ls_redis_script script[LS_RESQUE_N_LUA] = {SCRIPTS(ENTRY)};
struct ls_redis_script_table ls_resque_scripts = {.script = script, .n = LS_RESQUE_N_LUA};

/* The lengths are constants of other files. Every store writes the same. */
static void fill_scripts(void)
{
    static struct lr_mutex lock = LR_MUTEX_INIT;
    lr_mutex_lock(&lock);
#define LENGTH(upper, lower) script[LS_RESQUE_LUA_##upper].source_len = ls_resque_lua_##lower##_len;
    SCRIPTS(LENGTH)
    lr_mutex_unlock(&lock);
}

int64_t ls_resque_deadline(const struct ls_resque_store *s)
{
    return lb_deadline_in(s->base.config.timeout_ms * LADE_MILLISECOND);
}

int ls_resque_conn_make(struct ls_resque_store *s, bool bare, bool blocking,
                        struct ls_redis_conn **out, lade_err *err)
{
    struct ls_redis_conn_config config = {.url = &s->url,
                                          .name = "lade-resque",
                                          .connect_timeout =
                                              s->base.config.connect_timeout_ms * LADE_MILLISECOND,
                                          .scripts = bare || blocking ? NULL : &ls_resque_scripts,
                                          .no_spin = blocking,
                                          .reached = &s->reached,
                                          .hurry = &s->base.hurry};
    return ls_redis_conn_open(out, &config, err);
}

int ls_resque_ask(struct ls_resque_store *s, struct ls_resque_link *l,
                  const struct ls_resque_ask *ask, size_t n, struct ls_redis_conn **out,
                  lade_err *err)
{
    int rc = l->conn ? 0 : ls_resque_conn_make(s, l->bare, false, &l->conn, err);
    if (rc < 0)
        return rc;
    struct ls_redis_call call = {ask->encode, ask->ctx, ask->where, ask->once, false};
    rc = ls_redis_conn_call(l->conn, &call, ls_resque_deadline(s), err);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        struct ls_redis_cursor cur = ls_redis_conn_reply(l->conn, i);
        if (ls_redis_peek(&cur) == LS_REDIS_NONE)
            rc = ls_redis_conn_fail_reply(l->conn, ask->where, err);
    }
    *out = l->conn;
    return rc;
}

static uint8_t *put_bytes(uint8_t *to, const void *p, size_t n)
{
    if (n > 0)
        memcpy(to, p, n);
    return to + n;
}

void ls_resque_key(struct ls_redis_cmd *cmd, const struct ls_resque_store *s, const char *name)
{
    ls_resque_key_of(cmd, s, name, (struct lb_slice){0});
}

void ls_resque_key_of(struct ls_redis_cmd *cmd, const struct ls_resque_store *s, const char *kind,
                      struct lb_slice part)
{
    size_t n = strlen(kind);
    uint8_t *to = ls_redis_arg_room(cmd, s->keys.n + n + part.n);
    if (!to)
        return;
    to = put_bytes(to, s->keys.prefix, s->keys.n);
    to = put_bytes(to, kind, n);
    (void)put_bytes(to, part.p, part.n);
}

/* workers --------------------------------------------------------------------------------------------------------- */

static void make_worker(struct ls_redis_known *k)
{
    struct ls_resque_worker *w = (struct ls_resque_worker *)k;
    lb_buf_init(&w->queues);
    w->take_seq = 1;
    w->due_ms = -1;
    w->pid = getpid();
}

static void unmake_worker(struct ls_redis_known *k)
{
    struct ls_resque_worker *w = (struct ls_resque_worker *)k;
    ls_redis_conn_close(w->watch.conn);
    ls_resque_lanes_fini(&w->lanes);
    lb_buf_fini(&w->queues);
    lb_free(w->slot);
    lb_free(w->plan);
    lb_free(w->ahead.fence);
}

void ls_resque_slot_id(const struct ls_resque_store *s, const struct ls_resque_worker *w,
                       size_t slot, struct lb_buf *out)
{
    rq_id_write(out, &s->host, w->pid, w->first_slot + (unsigned)slot, lb_buf_slice(&w->queues));
}

bool ls_resque_ahead_add(struct ls_resque_ahead *a, uint64_t fence)
{
    if (a->n == a->cap && a->at > a->cap / 2) {
        memmove(a->fence, a->fence + a->at, (a->n - a->at) * sizeof(*a->fence));
        a->n -= a->at;
        a->at = 0;
    }
    if (a->n == a->cap) {
        size_t cap = LB_MAX(2 * a->cap, (size_t)64);
        uint64_t *p = lb_realloc(a->fence, cap * sizeof(*p));
        if (!p)
            return false;
        a->fence = p;
        a->cap = cap;
    }
    a->fence[a->n++] = fence;
    return true;
}

uint64_t ls_resque_ahead_first(struct ls_resque_ahead *a)
{
    while (a->at < a->n && a->fence[a->at] == 0)
        a->at++;
    if (a->at == a->n)
        a->at = a->n = 0;
    return a->n > 0 ? a->fence[a->at] : 0;
}

bool ls_resque_ahead_remove(struct ls_resque_ahead *a, uint64_t fence)
{
    (void)ls_resque_ahead_first(a);
    for (size_t i = a->at; i < a->n; i++) {
        if (a->fence[i] == fence) {
            a->fence[i] = 0;
            return true;
        }
    }
    return false;
}

/* open ------------------------------------------------------------------------------------------------------------ */

static void close_store(struct lq_store *base)
{
    struct ls_resque_store *s = ls_resque_of(base);
    ls_redis_registry_fini(&s->workers);
    struct ls_resque_link *const links[] = {&s->beat, &s->work, &s->admin, &s->put};
    for (size_t i = 0; i < LB_ARRAY_LEN(links); i++) {
        ls_redis_conn_close(links[i]->conn);
        lr_mutex_fini(&links[i]->lock);
    }
    ls_redis_url_fini(&s->url);
}

/* The URL's namespace; without one the options'; and that of the engine's own data is Resque's default. */
static int read_url(struct ls_resque_store *s, lade_err *err)
{
    struct ls_resque_url u;
    int rc = ls_resque_url_read(&u, s->base.config.url, err);
    if (rc < 0)
        return rc;
    const char *ns = strcmp(s->base.config.ns, "lade") == 0 ? NULL : s->base.config.ns;
    s->strict = u.strict;
    s->active = u.active;
    s->multi = u.multi;
    rc = rq_keys_init(&s->keys, u.has_ns ? u.ns : ns, err);
    if (rc == 0)
        rc = ls_redis_url_parse(&s->url, (const char *)u.redis.p, err);
    lb_buf_fini(&u.redis);
    if (rc == 0 && s->url.replicas > 0) {
        ls_redis_url_fini(&s->url);
        rc = lb_fail(err, LADE_EUNSUPPORTED, "open",
                     "Resque URL: replicas: the resque store does not wait for replicas");
    }
    return rc;
}

static int open_store(struct lq_store *base, lade_err *err)
{
    struct ls_resque_store *s = ls_resque_of(base);
    fill_scripts();
    int rc = read_url(s, err);
    if (rc < 0)
        return rc;
    rq_host_init(&s->host, NULL);
    s->put.bare = true;
    lr_mutex_init(&s->put.lock);
    lr_mutex_init(&s->admin.lock);
    lr_mutex_init(&s->work.lock);
    lr_mutex_init(&s->beat.lock);
    ls_redis_registry_init(&s->workers, sizeof(struct ls_resque_worker), make_worker,
                           unmake_worker);
    rc = ls_resque_conn_make(s, true, false, &s->put.conn, err);
    if (rc == 0)
        rc = ls_redis_conn_connect(
            s->put.conn, lb_deadline_in(base->config.connect_timeout_ms * LADE_MILLISECOND), err);
    if (rc < 0)
        close_store(base);
    return rc;
}

static void encode_time(struct ls_redis_conn *c, void *ctx LB_UNUSED, bool repeat LB_UNUSED)
{
    struct ls_redis_cmd *cmd = ls_redis_conn_begin(c, 1);
    ls_redis_arg_str(cmd, "TIME");
    ls_redis_cmd_end(cmd);
}

int ls_resque_now(struct lq_store *base, int64_t *now_ms, lade_err *err)
{
    struct ls_resque_store *s = ls_resque_of(base);
    struct ls_resque_ask ask = {encode_time, NULL, "now", false};
    struct ls_redis_conn *c;
    lr_mutex_lock(&s->put.lock);
    int rc = ls_resque_ask(s, &s->put, &ask, 1, &c, err);
    if (rc == 0) {
        struct ls_redis_cursor cur = ls_redis_conn_reply(c, 0);
        (void)ls_redis_read_array(&cur);
        int64_t sec = ls_redis_read_int(&cur), us = ls_redis_read_int(&cur);
        if (cur.bad)
            rc = ls_redis_conn_fail_reply(c, "now", err);
        else
            *now_ms = sec * 1000 + us / 1000;
    }
    lr_mutex_unlock(&s->put.lock);
    return rc;
}

const struct lq_store_ops ls_resque_ops = {.name = "resque",
                                           .schemes = "resque resque+tls resque+unix",
                                           .version = LQ_STORE_VERSION,
                                           .caps = LQ_CAP_PROCESSES | LQ_CAP_REMOTE,
                                           .size = sizeof(struct ls_resque_store),
                                           .open = open_store,
                                           .close = close_store,
                                           .now = ls_resque_now,
                                           .put = ls_resque_put,
                                           .settle_take = ls_resque_settle_take,
                                           .begin = ls_resque_begin,
                                           .renew = ls_resque_renew,
                                           .leave = ls_resque_leave,
                                           .reclaim = ls_resque_reclaim,
                                           .wait = ls_resque_wait,
                                           .wake = ls_resque_wake,
                                           .promote = ls_resque_promote,
                                           .queues = ls_resque_queues,
                                           .count = ls_resque_count,
                                           .workers = ls_resque_list_workers,
                                           .check = ls_resque_check,
                                           .get = ls_resque_get,
                                           .list = ls_resque_list,
                                           .act = ls_resque_act,
                                           .purge = ls_resque_purge,
                                           .redrive = ls_resque_redrive,
                                           .trim = ls_resque_trim,
                                           .passed_on = ls_resque_passed_on,
                                           .patterns = &ls_resque_patterns,
                                           LS_RESQUE_REFUSED_OPS};
