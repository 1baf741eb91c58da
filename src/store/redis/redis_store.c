#include "store/redis/redis_store.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/ident.h"
#include "base/mem.h"
#include "store/redis/company.h"
#include "store/redis/shelf.h"
#include "store/redis/slots.h"
#include "store/redis/store_inner.h"

#define SCRIPTS(X)                                         \
    X(PUT, put, 0)                                         \
    X(PACKS_PUT, packs_put, 0)                             \
    X(COMPANY_PUT, company_put, 0)                         \
    X(APART, apart, 0)                                     \
    X(LATER_PUT, later_put, 0)                             \
    X(GATHER, gather, 0)                                   \
    X(TAKE, take, 0)                                       \
    X(SETTLE, settle, 0)                                   \
    X(TRIP, trip, 0)                                       \
    X(BEGIN, begin, 0)                                     \
    X(NOTE, note, 0)                                       \
    X(WATCH, watch, 0)                                     \
    X(BOUND, bound, 0)                                     \
    X(CONTROL, control, 0)                                 \
    X(STREAM, stream, 0)                                   \
    X(EVENTS, events, LS_REDIS_SCRIPT_READS)               \
    X(SAY, say, 0)                                         \
    X(WORDS, words, LS_REDIS_SCRIPT_READS)                 \
    X(RESULTS, results, LS_REDIS_SCRIPT_READS)             \
    X(RENEW, renew, 0)                                     \
    X(LEAVE, leave, 0)                                     \
    X(RECLAIM, reclaim, 0)                                 \
    X(PROMOTE, promote, 0)                                 \
    X(TRIM, trim, 0)                                       \
    X(COUNT, count, LS_REDIS_SCRIPT_READS)                 \
    X(PAGE, page, LS_REDIS_SCRIPT_READS)                   \
    X(ROWS, rows, LS_REDIS_SCRIPT_READS)                   \
    X(ACT, act, 0)                                         \
    X(CHANGE, change, 0)                                   \
    X(CLASSES, classes, LS_REDIS_SCRIPT_READS)             \
    X(LIST_CLASS, list_class, 0)                           \
    X(PURGE, purge, 0)                                     \
    X(REDRIVE, redrive, 0)                                 \
    X(PAUSE, pause, 0)                                     \
    X(FORGET, forget, 0)                                   \
    X(KEY_SET, key_set, 0)                                 \
    X(KEY_LOOK, key_look, 0)                               \
    X(CHECK, check, LS_REDIS_SCRIPT_READS)                 \
    X(TYPES, types, LS_REDIS_SCRIPT_READS)                 \
    X(FLOW_PUT, flow_put, 0)                               \
    X(FOLD_PUT, fold_put, 0)                               \
    X(FLOW_SETTLE, flow_settle, 0)                         \
    X(FLOW_TRIP, flow_trip, 0)                             \
    X(FLOW_ACT, flow_act, 0)                               \
    X(FLOW_LOOK, flow_look, 0)                             \
    X(FLOW_CHECK, flow_check, LS_REDIS_SCRIPT_READS)       \
    X(SCHEDULE, schedule, 0)                               \
    X(SCHEDULE_FIRE, schedule_fire, 0)                     \
    X(SCHEDULE_LOOK, schedule_look, LS_REDIS_SCRIPT_READS) \
    X(FAR, far, 0)                                         \
    X(SHIPPED, shipped, 0)

/* Made by lade_embed from lua/. */
#define DECLARE(upper, lower, flags)          \
    extern const char ls_redis_lua_##lower[]; \
    extern const size_t ls_redis_lua_##lower##_len;
SCRIPTS(DECLARE)
extern const char ls_redis_library[];
extern const size_t ls_redis_library_len;

/* The lengths are constants of other files, so the table is filled when the first store opens: see fill_scripts. */
#define ENTRY(upper, lower, what) [LS_REDIS_LUA_##upper] = {#lower, ls_redis_lua_##lower, 0, what},
static struct ls_redis_script script[LS_REDIS_N_LUA] = {SCRIPTS(ENTRY)};
struct ls_redis_script_table ls_redis_scripts = {
    .script = script, .n = LS_REDIS_N_LUA, .functions = ls_redis_library};
static pthread_once_t scripts_once = PTHREAD_ONCE_INIT;

static void fill_scripts(void)
{
#define LENGTH(upper, lower, what) \
    script[LS_REDIS_LUA_##upper].source_len = ls_redis_lua_##lower##_len;
    SCRIPTS(LENGTH)
    ls_redis_scripts.functions_len = ls_redis_library_len;
    ls_redis_library_name(&ls_redis_scripts);
}

int64_t ls_redis_deadline(const struct ls_redis_store *s)
{
    return lb_deadline_in(s->base.config.timeout_ms * LADE_MILLISECOND);
}

int ls_redis_conn_make(struct ls_redis_store *s, bool blocking, struct ls_redis_conn **out,
                       lade_err *err)
{
    struct ls_redis_conn_config config = {
        .url = &s->url,
        .name = "lade",
        .connect_timeout = s->base.config.connect_timeout_ms * LADE_MILLISECOND,
        .scripts = blocking ? NULL : &ls_redis_scripts,
        .no_spin = blocking,
        .reached = &s->reached,
        .slots = &s->slots,
        .hurry = &s->base.hurry,
    };
    return ls_redis_conn_open(out, &config, err);
}

int ls_redis_link_conn(struct ls_redis_store *s, struct ls_redis_link *l,
                       struct ls_redis_conn **out, lade_err *err)
{
    int rc = l->conn ? 0 : ls_redis_conn_make(s, false, &l->conn, err);
    if (rc == 0)
        *out = l->conn;
    return rc;
}

/* asking ---------------------------------------------------------------------------------------------------------- */

static void encode_types(struct ls_redis_conn *c, void *ctx, bool repeat LB_UNUSED)
{
    const struct ls_redis_ask *about = ctx;
    const struct ls_redis_store *s = about->ctx;
    if (ls_redis_in_slots(s)) {
        ls_redis_slots_ask_types(c, s, about->queue, about->n_queues);
        return;
    }
    struct ls_redis_cmd *cmd =
        ls_redis_script_begin(c, LS_REDIS_LUA_TYPES, 2 + about->n_queues, 2 + about->n_queues);
    ls_redis_key_ns(cmd, s->base.config.ns, "queues");
    ls_redis_key_ns(cmd, s->base.config.ns, "workers");
    for (size_t i = 0; i < about->n_queues; i++)
        ls_redis_key(cmd, s->base.config.ns, about->queue[i], "meta");
    ls_redis_cmd_end(cmd);
}

/* "LADEFOREIGN key is a list script: ..." and "LADEFORMAT 2 script: ...": what the scripts raise, see lua/lib.lua. */
static int fail_own(struct lb_slice text, const char *where, lade_err *err)
{
    char line[200];
    size_t n = LB_MIN(text.n, sizeof(line) - 1);
    memcpy(line, text.p, n);
    line[n] = 0;
    char *tail = strstr(line, " script: ");
    if (tail)
        *tail = 0;
    char *what = strstr(line, "LADEFOREIGN ");
    if (what)
        return lb_fail(err, LADE_EFOREIGN, where,
                       "key %s, not lade's: remove it or use another namespace",
                       what + strlen("LADEFOREIGN "));
    what = strstr(line, "LADEFORMAT ");
    if (what)
        return lb_fail(err, LADE_EFORMAT, where,
                       "the queue is in format %s, this lade reads %d: use the lade that wrote it",
                       what + strlen("LADEFORMAT "), LS_REDIS_FORMAT);
    return 0;
}

/* What it says of a key that is not lade's, or "". False: no such answer. */
static bool read_types(const struct ls_redis_store *s, struct ls_redis_conn *c, size_t n_queues,
                       char *text, size_t size)
{
    if (ls_redis_in_slots(s))
        return ls_redis_slots_read_types(c, s, n_queues, text, size);
    struct ls_redis_cursor cur = ls_redis_conn_reply(c, 0);
    struct lb_slice found = ls_redis_read_bytes(&cur);
    (void)snprintf(text, size, "%.*s", (int)LB_MIN(found.n, size - 1),
                   found.n > 0 ? (const char *)found.p : "");
    return !cur.bad;
}

/* Which key is it? The server does not say. */
static int fail_wrong_type(struct ls_redis_store *s, struct ls_redis_conn *c,
                           const struct ls_redis_ask *ask, lade_err *err)
{
    struct ls_redis_ask about = *ask;
    about.ctx = s;
    struct ls_redis_call call = {encode_types, &about, ask->where, false, false};
    int rc = ls_redis_conn_call(c, &call, ls_redis_deadline(s), err);
    if (rc < 0)
        return rc;
    char text[160];
    (void)read_types(s, c, about.n_queues, text, sizeof(text));
    return lb_fail(err, LADE_EFOREIGN, ask->where,
                   "key %s, not lade's: remove it or use another namespace",
                   text[0] ? text : "of the queue");
}

int ls_redis_refuse(struct ls_redis_store *s, struct ls_redis_conn *c,
                    const struct ls_redis_ask *ask, size_t i, lade_err *err)
{
    struct ls_redis_cursor cur = ls_redis_conn_reply(c, i);
    struct lb_slice text = ls_redis_read(&cur).bytes;
    int rc = fail_own(text, ask->where, err);
    if (rc < 0)
        return rc;
    if (ls_redis_refusal_of(text, NULL) == LS_REDIS_REFUSED_WRONGTYPE)
        return fail_wrong_type(s, c, ask, err);
    return ls_redis_refusal_fail(err, ask->where, s->url.text, text);
}

int ls_redis_ask(struct ls_redis_store *s, struct ls_redis_conn *c, const struct ls_redis_ask *ask,
                 size_t n, lade_err *err)
{
    struct ls_redis_call call = {ask->encode, ask->ctx, ask->where, ask->once, true};
    int rc = ls_redis_conn_call(c, &call, ls_redis_deadline(s), err);
    if (rc == -LADE_EUNAVAILABLE && c == s->beat.conn)
        ls_redis_doubt_bells(s);
    if (rc == 0 && ls_redis_conn_prelude_failed(c))
        return ls_redis_refuse(s, c, ask, 0, err);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        struct ls_redis_cursor cur = ls_redis_conn_reply(c, i);
        if (ls_redis_peek(&cur) == LS_REDIS_ERROR)
            return ls_redis_refuse(s, c, ask, i, err);
    }
    return rc;
}

void ls_redis_keys_of(struct ls_redis_cmd *cmd, const struct ls_redis_store *s,
                      struct lq_lanes lanes)
{
    for (size_t i = 0; i < lanes.n; i++)
        ls_redis_key(cmd, s->base.config.ns, lanes.queue[i], "meta");
}

/* workers --------------------------------------------------------------------------------------------------------- */

static void make_worker(struct ls_redis_known *k)
{
    struct ls_redis_worker *w = (struct ls_redis_worker *)k;
    lb_buf_init(&w->stops);
    /* Not 1: a process that is gone may have used the same incarnation's numbers only in a test. */
    w->take_seq = w->won_seq = 1;
}

static void unmake_worker(struct ls_redis_known *k)
{
    struct ls_redis_worker *w = (struct ls_redis_worker *)k;
    ls_redis_conn_close(w->bell);
    lb_free(w->bell_lanes);
    lb_buf_fini(&w->stops);
}

/* open ------------------------------------------------------------------------------------------------------------ */

static bool is_namespace(const char *ns)
{
    size_t n = strspn(ns, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:/-");
    return n > 0 && n <= LS_REDIS_NS_MAX && ns[n] == 0;
}

/* What open asks: some queues to look at, and settings that may be forbidden to read. */
static void encode_open(struct ls_redis_conn *c, void *ctx, bool repeat LB_UNUSED)
{
    const struct ls_redis_store *s = ctx;
    struct ls_redis_cmd *cmd = ls_redis_conn_begin(c, 3);
    ls_redis_arg_str(cmd, "SRANDMEMBER");
    ls_redis_key_ns(cmd, s->base.config.ns, "queues");
    ls_redis_arg_int(cmd, 16);
    ls_redis_cmd_end(cmd);
    cmd = ls_redis_conn_begin(c, 2);
    ls_redis_arg_str(cmd, "INFO");
    ls_redis_arg_str(cmd, "memory");
    ls_redis_cmd_end(cmd);
    cmd = ls_redis_conn_begin(c, 3);
    ls_redis_arg_str(cmd, "CONFIG");
    ls_redis_arg_str(cmd, "GET");
    ls_redis_arg_str(cmd, "proto-max-bulk-len");
    ls_redis_cmd_end(cmd);
}

/* The value of "name:value\r\n" in an INFO text, copied; "" when it is not there. */
static void info_value(struct lb_slice info, const char *name, char *out, size_t size)
{
    const char *p = (const char *)info.p, *end = p + info.n;
    size_t n = strlen(name);
    out[0] = 0;
    while (p < end) {
        const char *nl = memchr(p, '\n', (size_t)(end - p));
        nl = nl ? nl : end;
        if ((size_t)(nl - p) > n && memcmp(p, name, n) == 0 && p[n] == ':') {
            const char *v = p + n + 1;
            size_t len = (size_t)(nl - v);
            len -= len > 0 && v[len - 1] == '\r';
            (void)snprintf(out, size, "%.*s", (int)LB_MIN(len, size - 1), v);
            return;
        }
        p = nl + 1;
    }
}

/* A server that evicts keys loses jobs without a word. */
static int check_eviction(struct ls_redis_store *s, struct lb_slice info, lade_err *err)
{
    char policy[40], limit[24];
    info_value(info, "maxmemory_policy", policy, sizeof(policy));
    info_value(info, "maxmemory", limit, sizeof(limit));
    if (strtoll(limit, NULL, 10) == 0 || policy[0] == 0 || strcmp(policy, "noeviction") == 0)
        return 0;
    return lb_fail(
        err, LADE_EUNSUPPORTED, "open",
        "%s evicts keys when its memory is full (maxmemory-policy %s), which loses jobs: "
        "set maxmemory-policy noeviction",
        s->url.text, policy);
}

static int check_namespace(struct ls_redis_store *s, struct ls_redis_conn *c,
                           const char *const *queue, size_t n, lade_err *err)
{
    struct ls_redis_ask about = {encode_types, NULL, "open", false, queue, n};
    struct ls_redis_ask ask = about;
    about.ctx = s;
    ask.ctx = &about;
    char text[200];
    int rc = ls_redis_ask(s, c, &ask, ls_redis_in_slots(s) ? n + 2 : 1, err);
    if (rc < 0)
        return rc;
    if (!read_types(s, c, n, text, sizeof(text)))
        return ls_redis_conn_fail_reply(c, "open", err);
    if (text[0])
        return lb_fail(err, LADE_EFOREIGN, "open",
                       "key %s, not lade's: remove it or use another namespace", text);
    return 0;
}

static int inspect_server(struct ls_redis_store *s, struct ls_redis_conn *c, lade_err *err)
{
    struct ls_redis_ask ask = {encode_open, s, "open", false, NULL, 0};
    int rc = ls_redis_ask(s, c, &ask, 0, err);
    if (rc < 0)
        return rc;
    struct ls_redis_cursor cur = ls_redis_conn_reply(c, 1);
    if (ls_redis_peek(&cur) != LS_REDIS_ERROR) {
        rc = check_eviction(s, ls_redis_read_bytes(&cur), err);
        if (rc < 0)
            return rc;
    }
    cur = ls_redis_conn_reply(c, 2);
    if (ls_redis_peek(&cur) != LS_REDIS_ERROR && ls_redis_read_array(&cur) == 2) {
        ls_redis_skip(&cur);
        s->bulk_max = ls_redis_read_int(&cur);
    }
    char name[16][LADE_NAME_MAX + 1];
    const char *queue[16];
    size_t n = 0;
    cur = ls_redis_conn_reply(c, 0);
    if (ls_redis_peek(&cur) == LS_REDIS_ERROR)
        return check_namespace(s, c, NULL, 0, err);
    size_t there = ls_redis_read_array(&cur);
    for (size_t i = 0; i < there && n < LB_ARRAY_LEN(queue); i++) {
        struct lb_slice q = ls_redis_read_bytes(&cur);
        if (cur.bad || q.n > LADE_NAME_MAX)
            continue;
        (void)snprintf(name[n], sizeof(name[n]), "%.*s", (int)q.n, (const char *)q.p);
        queue[n] = name[n];
        n++;
    }
    return check_namespace(s, c, queue, n, err);
}

static void init_link(struct ls_redis_link *l)
{
    lr_mutex_init(&l->lock);
}

static void fini_link(struct ls_redis_link *l)
{
    ls_redis_conn_close(l->conn);
    lr_mutex_fini(&l->lock);
}

static void close_store(struct lq_store *base)
{
    struct ls_redis_store *s = ls_redis_of(base);
    ls_redis_registry_fini(&s->workers);
    fini_link(&s->beat);
    fini_link(&s->work);
    fini_link(&s->admin);
    ls_redis_shelf_free(s->shelf);
    ls_redis_companies_free(s->companies);
    ls_redis_url_fini(&s->url);
}

static int open_store(struct lq_store *base, lade_err *err)
{
    struct ls_redis_store *s = ls_redis_of(base);
    (void)pthread_once(&scripts_once, fill_scripts);
    if (!is_namespace(base->config.ns))
        return lb_fail(err, LADE_EINVAL, "open",
                       "namespace '%.40s' is not 1 to %d characters of A-Z a-z 0-9 . _ : / -",
                       base->config.ns, LS_REDIS_NS_MAX);
    int rc = ls_redis_url_parse(&s->url, base->config.url, err);
    if (rc < 0)
        return rc;
    s->block_ms = LS_REDIS_BLOCK_MS;
    init_link(&s->admin);
    init_link(&s->work);
    init_link(&s->beat);
    ls_redis_registry_init(&s->workers, sizeof(struct ls_redis_worker), make_worker, unmake_worker);
    lb_ulid(s->client, lb_clock_wall());
    struct ls_redis_conn *c = NULL;
    rc = ls_redis_link_conn(s, &s->admin, &c, err);
    if (rc == 0)
        rc = ls_redis_conn_connect(
            c, lb_deadline_in(base->config.connect_timeout_ms * LADE_MILLISECOND), err);
    if (rc == 0)
        rc = inspect_server(s, c, err);
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

static int read_now(struct lq_store *base, int64_t *now_ms, lade_err *err)
{
    struct ls_redis_store *s = ls_redis_of(base);
    struct ls_redis_ask ask = {encode_time, NULL, "now", false, NULL, 0};
    struct ls_redis_conn *c;
    lr_mutex_lock(&s->admin.lock);
    int rc = ls_redis_link_conn(s, &s->admin, &c, err);
    if (rc == 0)
        rc = ls_redis_ask(s, c, &ask, 1, err);
    if (rc == 0) {
        struct ls_redis_cursor cur = ls_redis_conn_reply(c, 0);
        (void)ls_redis_read_array(&cur);
        int64_t sec = ls_redis_read_int(&cur), us = ls_redis_read_int(&cur);
        if (cur.bad)
            rc = ls_redis_conn_fail_reply(c, "now", err);
        else
            *now_ms = sec * 1000 + us / 1000;
    }
    lr_mutex_unlock(&s->admin.lock);
    return rc;
}

const struct lq_store_ops ls_redis_ops = {
    .name = "redis",
    .schemes = "redis rediss unix",
    .version = LQ_STORE_VERSION,
    .caps = LQ_CAP_PROCESSES | LQ_CAP_REMOTE | LQ_CAP_CONFLICT,
    .size = sizeof(struct ls_redis_store),
    .open = open_store,
    .close = close_store,
    .now = read_now,
    .put = ls_redis_put,
    .settle_take = ls_redis_settle_take,
    .begin = ls_redis_begin,
    .note = ls_redis_note,
    .results = ls_redis_results,
    .watch = ls_redis_watch,
    .unwatch = ls_redis_unwatch,
    .say = ls_redis_say,
    .words = ls_redis_words,
    .events_set = ls_redis_events_set,
    .events_get = ls_redis_events_get,
    .event_read = ls_redis_event_read,
    .renew = ls_redis_renew,
    .leave = ls_redis_leave,
    .reclaim = ls_redis_reclaim,
    .promote = ls_redis_promote,
    .trim = ls_redis_trim,
    .wait = ls_redis_wait,
    .wake = ls_redis_wake,
    .queues = ls_redis_queues,
    .count = ls_redis_count,
    .get = ls_redis_get,
    .list = ls_redis_list,
    .act = ls_redis_act,
    .purge = ls_redis_purge,
    .redrive = ls_redis_redrive,
    .classes = ls_redis_classes,
    .list_class = ls_redis_list_class,
    .change = ls_redis_change,
    .flow_put = ls_redis_flow_put,
    .flow_get = ls_redis_flow_get,
    .flow_list = ls_redis_flow_list,
    .flow_inputs = ls_redis_flow_inputs,
    .flow_act = ls_redis_flow_act,
    .schedules = &ls_redis_schedule_ops,
    .bounds = &ls_redis_bound_ops,
    .controls = &ls_redis_control_ops,
    .limit_set = ls_redis_limit_set,
    .limit_get = ls_redis_limit_get,
    .key_list = ls_redis_key_list,
    .key_get = ls_redis_key_get,
    .key_pause = ls_redis_key_pause,
    .pause = ls_redis_pause,
    .forget = ls_redis_forget,
    .workers = ls_redis_list_workers,
    .check = ls_redis_check,
};
