/*
 * connect.c - from nothing to a connection that is ready for commands
 *
 * dial -> HELLO 3 [AUTH] [SETNAME], SELECT -> version -> scripts, where they must be loaded ahead (script.c)
 *          | refused as unknown, forbidden or unsupported
 *          +-> [AUTH], CLIENT SETNAME, SELECT, INFO server -> version -> ...        (protocol 2)
 *
 * Each attempt starts from a new socket, so nothing of a broken one is left. An attempt tells whether another may go
 * better; wrong passwords, old servers and strangers on the port may not.
 */
#include "store/redis/conn_inner.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/err.h"

#define WHERE "connect"

/* An attempt under way. */
struct attempt {
    struct ls_redis_conn *c;
    int64_t deadline;
    bool again; /* another attempt may go better */
    lade_err *err;
};

static void add_command(struct ls_redis_conn *c, size_t n, const char *const *arg)
{
    struct ls_redis_cmd *cmd = ls_redis_conn_begin(c, n);
    for (size_t i = 0; i < n; i++)
        ls_redis_arg_str(cmd, arg[i]);
    ls_redis_cmd_end(cmd);
}

#define ADD(c, ...)                                                      \
    add_command((c), LB_ARRAY_LEN(((const char *const[]){__VA_ARGS__})), \
                (const char *const[]){__VA_ARGS__})

static int exchange(struct attempt *a)
{
    int rc = ls_redis_conn_exchange(a->c, WHERE, a->deadline, a->err);
    if (rc < 0)
        a->again = rc == -LADE_EUNAVAILABLE || rc == -LADE_EBUSY;
    return rc;
}

/* The error of reply i as it is, or empty. */
static struct lb_slice error_of(struct ls_redis_conn *c, size_t i)
{
    struct ls_redis_cursor cur = ls_redis_conn_reply(c, i);
    struct ls_redis_value v = ls_redis_read(&cur);
    return v.type == LS_REDIS_ERROR ? v.bytes : lb_slice("", 0);
}

static int fail_refused(struct attempt *a, struct lb_slice text)
{
    a->again = ls_redis_refusal_remedy(ls_redis_refusal_of(text, NULL)) != LS_REDIS_REMEDY_NONE;
    return ls_redis_refusal_fail(a->err, WHERE, a->c->config.url->text, text);
}

/* 0 when none of the replies from `first` on is an error. */
static int check_replies(struct attempt *a, size_t first)
{
    for (size_t i = first; i < a->c->got; i++) {
        struct lb_slice text = error_of(a->c, i);
        if (text.n > 0)
            return fail_refused(a, text);
    }
    return 0;
}

static void add_select(struct ls_redis_conn *c)
{
    char db[16];
    if (c->config.url->db == 0)
        return;
    (void)snprintf(db, sizeof(db), "%d", c->config.url->db);
    ADD(c, "SELECT", db);
}

/* version -------------------------------------------------------------------------------------------------------- */

static int check_version(struct attempt *a, struct lb_slice name, struct lb_slice version)
{
    struct ls_redis_conn *c = a->c;
    (void)snprintf(c->server, sizeof(c->server), "%.*s %.*s", (int)LB_MIN(name.n, 24),
                   (const char *)name.p, (int)LB_MIN(version.n, 24), (const char *)version.p);
    char text[32];
    (void)snprintf(text, sizeof(text), "%.*s", (int)LB_MIN(version.n, sizeof(text) - 1),
                   (const char *)version.p);
    char *end;
    unsigned long major = strtoul(text, &end, 10);
    unsigned long minor = *end == '.' ? strtoul(end + 1, NULL, 10) : 0;
    bool valkey = lb_slice_eq(name, lb_slice_str("valkey"));
    if (major > 7 || (major == 7 && minor >= (valkey ? 2 : 0)))
        return 0;
    a->again = false;
    return lb_fail(a->err, LADE_EUNSUPPORTED, WHERE,
                   "%s is %s, lade needs redis 7.0 or valkey 7.2 or newer; upgrade the server",
                   c->config.url->text, c->server);
}

static void note_mode(struct ls_redis_conn *c, struct lb_slice mode)
{
    c->slots = lb_slice_eq(mode, lb_slice_str("cluster"));
    if (c->config.slots)
        __atomic_store_n(c->config.slots, c->slots, __ATOMIC_RELAXED);
}

/* The map that HELLO answers: server, version, mode and more. */
static int read_hello(struct attempt *a)
{
    struct ls_redis_cursor cur = ls_redis_conn_reply(a->c, 0);
    struct lb_slice name = lb_slice_str("redis");
    struct lb_slice version = {0};
    size_t n = ls_redis_read_array(&cur);
    for (size_t i = 0; i + 1 < n && !cur.bad; i += 2) {
        struct lb_slice key = ls_redis_read_bytes(&cur);
        if (lb_slice_eq(key, lb_slice_str("server")))
            name = ls_redis_read_bytes(&cur);
        else if (lb_slice_eq(key, lb_slice_str("version")))
            version = ls_redis_read_bytes(&cur);
        else if (lb_slice_eq(key, lb_slice_str("mode")))
            note_mode(a->c, ls_redis_read_bytes(&cur));
        else
            ls_redis_skip(&cur);
    }
    if (cur.bad || !version.p) {
        a->again = false;
        return ls_redis_conn_fail_reply(a->c, "HELLO", a->err);
    }
    return check_version(a, name, version);
}

/* The value of "key:value\r\n" in the text of INFO, or empty. */
static struct lb_slice find_info(struct lb_slice info, const char *key)
{
    size_t n = strlen(key);
    const uint8_t *at = memmem(info.p, info.n, key, n);
    while (at && at != info.p && at[-1] != '\n')
        at = memmem(at + 1, info.n - (size_t)(at + 1 - info.p), key, n);
    if (!at)
        return (struct lb_slice){0};
    const uint8_t *start = at + n;
    const uint8_t *cr = memchr(start, '\r', info.n - (size_t)(start - info.p));
    return cr ? lb_slice(start, (size_t)(cr - start)) : (struct lb_slice){0};
}

static int read_info(struct attempt *a, size_t reply)
{
    struct ls_redis_cursor cur = ls_redis_conn_reply(a->c, reply);
    struct lb_slice info = ls_redis_read_bytes(&cur);
    if (!cur.bad)
        note_mode(a->c, find_info(info, "redis_mode:"));
    struct lb_slice version = cur.bad ? info : find_info(info, "valkey_version:");
    if (version.n > 0)
        return check_version(a, lb_slice_str("valkey"), version);
    if (!cur.bad)
        version = find_info(info, "redis_version:");
    if (version.n > 0)
        return check_version(a, lb_slice_str("redis"), version);
    a->again = false;
    return ls_redis_conn_fail_reply(a->c, "INFO", a->err);
}

/* handshake -------------------------------------------------------------------------------------------------------- */

/* Protocol 2, step by step: which of them a server lacks shows in its own reply. */
static int greet_old(struct attempt *a)
{
    struct ls_redis_conn *c = a->c;
    const struct ls_redis_url *url = c->config.url;
    if (url->password && url->user)
        ADD(c, "AUTH", url->user, url->password);
    else if (url->password)
        ADD(c, "AUTH", url->password);
    add_select(c);
    ADD(c, "INFO", "server");
    size_t info = c->queued - 1;
    if (c->config.name)
        ADD(c, "CLIENT", "SETNAME", c->config.name);
    int rc = exchange(a);
    for (size_t i = 0; rc == 0 && i <= info; i++) { /* a name is not worth failing for */
        struct lb_slice text = error_of(c, i);
        if (text.n > 0)
            rc = fail_refused(a, text);
    }
    return rc < 0 ? rc : read_info(a, info);
}

static void add_hello(struct ls_redis_conn *c)
{
    const struct ls_redis_url *url = c->config.url;
    struct ls_redis_cmd *cmd = ls_redis_conn_begin(c, 7);
    ls_redis_arg_str(cmd, "HELLO");
    ls_redis_arg_str(cmd, "3");
    if (url->password) {
        ls_redis_arg_str(cmd, "AUTH");
        ls_redis_arg_str(cmd, url->user ? url->user : "default");
        ls_redis_arg_str(cmd, url->password);
    }
    if (c->config.name) {
        ls_redis_arg_str(cmd, "SETNAME");
        ls_redis_arg_str(cmd, c->config.name);
    }
    ls_redis_cmd_end(cmd);
}

/* A server without HELLO, one that lets this user not use it, or a proxy that knows only protocol 2. */
static bool is_hello_refused(struct lb_slice text)
{
    switch ((int)ls_redis_refusal_of(text, NULL)) {
    case LS_REDIS_REFUSED_UNKNOWN_COMMAND:
    case LS_REDIS_REFUSED_PROTOCOL:
    case LS_REDIS_REFUSED_NOPERM:
        return true;
    default:
        return false;
    }
}

static int greet(struct attempt *a)
{
    struct ls_redis_conn *c = a->c;
    add_hello(c);
    add_select(c);
    int rc = exchange(a);
    if (rc < 0)
        return rc;
    if (is_hello_refused(error_of(c, 0)))
        return greet_old(a);
    rc = check_replies(a, 0);
    return rc < 0 ? rc : read_hello(a);
}

/* connect ---------------------------------------------------------------------------------------------------------- */

/* Nobody listens there, and nobody ever did as far as we know. */
static bool is_absent(const struct ls_redis_conn *c)
{
    int errnum = c->sock.errnum;
    return (errnum == ECONNREFUSED || errnum == ENOENT) && c->config.reached &&
           !__atomic_load_n(c->config.reached, __ATOMIC_RELAXED);
}

static int try_once(struct attempt *a)
{
    struct ls_redis_conn *c = a->c;
    ls_redis_conn_drop(c);
    int rc =
        ls_redis_socket_open(&c->sock, c->config.url, c->tls_ctx, a->deadline, &a->again, a->err);
    if (rc < 0) {
        a->again = a->again && !is_absent(c);
        return rc;
    }
    c->handshaking = true;
    rc = greet(a);
    if (rc == 0)
        rc = ls_redis_scripts_greet(c, a->deadline, &a->again, a->err);
    if (rc < 0 && c->config.url->db != 0 && strstr(a->err->text, "SELECT is not allowed"))
        rc = lb_fail(a->err, LADE_EINVAL, WHERE,
                     "%s is of a cluster, which has no database %d: leave the number out",
                     c->config.url->text, c->config.url->db);
    c->handshaking = false;
    if (rc < 0) {
        ls_redis_conn_drop(c);
        return rc;
    }
    c->idle_since = lb_clock_mono();
    c->generation++;
    if (c->config.reached)
        __atomic_store_n(c->config.reached, true, __ATOMIC_RELAXED);
    return 0;
}

int ls_redis_conn_connect(struct ls_redis_conn *c, int64_t deadline, lade_err *err)
{
    if (ls_redis_conn_is_up(c))
        return 0;
    if (c->pace.step == 0)
        (void)lb_fail(&c->last, LADE_EUNAVAILABLE, WHERE,
                      "%s: no time left to connect before the deadline", c->config.url->text);
    while (ls_redis_pace_wait(&c->pace, ls_redis_conn_hurried(c, deadline))) {
        int64_t one = lb_deadline_in(c->config.connect_timeout);
        int64_t end = ls_redis_conn_hurried(c, deadline);
        lade_err why = {0};
        struct attempt a = {.c = c, .deadline = LB_MIN(one, end), .again = true, .err = &why};
        if (try_once(&a) == 0)
            return 0;
        /* One that the deadline cut off knows less than the one before it. */
        if (c->pace.step == 0 || !a.again || lb_clock_mono() < end)
            c->last = why;
        ls_redis_pace_slower(&c->pace);
        if (!a.again)
            break;
    }
    if (err)
        *err = c->last;
    return c->last.code;
}
