#include "store/redis/script.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/err.h"
#include "store/redis/conn_inner.h"

#define PREFIX "lade_"

void ls_redis_library_name(struct ls_redis_script_table *t)
{
    uint64_t h =
        UINT64_C(0xcbf29ce484222325); /* FNV-1a: two texts that differ by chance differ here */
    for (size_t i = 0; i < t->functions_len; i++)
        h = (h ^ (uint8_t)t->functions[i]) * UINT64_C(0x100000001b3);
    (void)snprintf(t->library_name, sizeof(t->library_name), PREFIX "%016" PRIx64, h);
}

struct ls_redis_cmd *ls_redis_script_begin(struct ls_redis_conn *c, size_t i, size_t n_keys,
                                           size_t args_hint)
{
    const struct ls_redis_script_table *t = c->config.scripts;
    LB_CHECK(t && i < t->n);
    const struct ls_redis_script *s = &t->script[i];
    bool reads = s->flags & LS_REDIS_SCRIPT_READS;
    struct ls_redis_cmd *cmd = ls_redis_conn_begin(c, 3 + args_hint);
    if (c->by_digest) {
        ls_redis_arg_str(cmd, reads ? "EVALSHA_RO" : "EVALSHA");
        ls_redis_arg(cmd, c->sha[i], LS_REDIS_SHA_LEN);
    } else {
        size_t n = strlen(t->library_name), n_name = strlen(s->name);
        ls_redis_arg_str(cmd, reads ? "FCALL_RO" : "FCALL");
        uint8_t *to = ls_redis_arg_room(cmd, n + 1 + n_name);
        if (to) {
            memcpy(to, t->library_name, n);
            to[n] = '_';
            memcpy(to + n + 1, s->name, n_name);
        }
    }
    ls_redis_arg_u64(cmd, n_keys);
    return cmd;
}

static int exchange(struct ls_redis_conn *c, int64_t deadline, bool *again, lade_err *err)
{
    int rc = ls_redis_conn_exchange(c, "scripts", deadline, err);
    *again = rc == -LADE_EUNAVAILABLE || rc == -LADE_EBUSY;
    return rc;
}

/* The error of reply i, or empty. */
static struct lb_slice error_of(struct ls_redis_conn *c, size_t i)
{
    struct ls_redis_cursor cur = ls_redis_conn_reply(c, i);
    struct ls_redis_value v = ls_redis_read(&cur);
    return v.type == LS_REDIS_ERROR ? v.bytes : lb_slice("", 0);
}

static int fail_refused(struct ls_redis_conn *c, struct lb_slice text, bool *again, lade_err *err)
{
    *again = ls_redis_refusal_remedy(ls_redis_refusal_of(text, NULL)) != LS_REDIS_REMEDY_NONE;
    return ls_redis_refusal_fail(err, "scripts", c->config.url->text, text);
}

/*
 * Lua is told of slots by the line that says in its text that there are none (lua/head.lua). A server is one or the other for its life, so
 * both have the same name.
 */
static void mark_slots(const struct ls_redis_conn *c, uint8_t *text, size_t n)
{
    static const char without[] = "{slots = false}", with[] = "{slots =  true}";
    uint8_t *at = c->slots ? memmem(text, n, without, sizeof(without) - 1) : NULL;
    if (at)
        memcpy(at, with, sizeof(with) - 1);
}

/* one by one ------------------------------------------------------------------------------------------------------- */

static int load_all(struct ls_redis_conn *c, int64_t deadline, bool *again, lade_err *err)
{
    const struct ls_redis_script_table *t = c->config.scripts;
    for (size_t i = 0; i < t->n; i++) {
        struct ls_redis_cmd *cmd = ls_redis_conn_begin(c, 3);
        ls_redis_arg_str(cmd, "SCRIPT");
        ls_redis_arg_str(cmd, "LOAD");
        uint8_t *to = ls_redis_arg_room(cmd, t->script[i].source_len);
        if (to) {
            memcpy(to, t->script[i].source, t->script[i].source_len);
            mark_slots(c, to, t->script[i].source_len);
        }
        ls_redis_cmd_end(cmd);
    }
    int rc = exchange(c, deadline, again, err);
    for (size_t i = 0; rc == 0 && i < t->n; i++) {
        struct lb_slice text = error_of(c, i);
        if (text.n > 0)
            return fail_refused(c, text, again, err);
        struct ls_redis_cursor cur = ls_redis_conn_reply(c, i);
        struct lb_slice sha = ls_redis_read_bytes(&cur);
        if (cur.bad || sha.n != LS_REDIS_SHA_LEN)
            return ls_redis_conn_fail_reply(c, "SCRIPT LOAD", err);
        memcpy(c->sha[i], sha.p, LS_REDIS_SHA_LEN);
    }
    return rc;
}

/* library ---------------------------------------------------------------------------------------------------------- */

static void add_load(struct ls_redis_conn *c)
{
    const struct ls_redis_script_table *t = c->config.scripts;
    char head[2 * LS_REDIS_LIBRARY_NAME + 40];
    int n = snprintf(head, sizeof(head), "#!lua name=%s\nlocal LIBRARY = '%s'\n", t->library_name,
                     t->library_name);
    struct ls_redis_cmd *cmd = ls_redis_conn_begin(c, 3);
    ls_redis_arg_str(cmd, "FUNCTION");
    ls_redis_arg_str(cmd, "LOAD");
    uint8_t *to = ls_redis_arg_room(cmd, (size_t)n + t->functions_len);
    if (to) {
        memcpy(to, head, (size_t)n);
        memcpy(to + n, t->functions, t->functions_len);
        mark_slots(c, to + n, t->functions_len);
    }
    ls_redis_cmd_end(cmd);
}

static void add_function(struct ls_redis_conn *c, const char *verb, const char *option,
                         struct lb_slice name)
{
    struct ls_redis_cmd *cmd = ls_redis_conn_begin(c, 4);
    ls_redis_arg_str(cmd, "FUNCTION");
    ls_redis_arg_str(cmd, verb);
    if (option)
        ls_redis_arg_str(cmd, option);
    ls_redis_arg_slice(cmd, name);
    ls_redis_cmd_end(cmd);
}

/* The names in an answer of FUNCTION LIST: at most max; how many there are. */
static size_t read_list(struct ls_redis_cursor cur, char (*name)[LS_REDIS_LIBRARY_NAME], size_t max)
{
    size_t n = 0, all = ls_redis_read_array(&cur);
    for (size_t i = 0; i < all && !cur.bad; i++) {
        size_t fields = ls_redis_read_array(&cur);
        for (size_t k = 0; k + 1 < fields && !cur.bad; k += 2) {
            struct lb_slice key = ls_redis_read_bytes(&cur);
            if (!lb_slice_eq(key, lb_slice_str("library_name"))) {
                ls_redis_skip(&cur);
                continue;
            }
            struct lb_slice value = ls_redis_read_bytes(&cur);
            if (n < max && value.n < LS_REDIS_LIBRARY_NAME)
                (void)snprintf(name[n], LS_REDIS_LIBRARY_NAME, "%.*s", (int)value.n,
                               (const char *)value.p);
            n += value.n < LS_REDIS_LIBRARY_NAME;
        }
    }
    return n;
}

/* Bounds what upgrades leave behind; a refusal means that they stay. */
static int drop_others(struct ls_redis_conn *c, size_t reply, int64_t deadline, bool *again,
                       lade_err *err)
{
    enum { MOST = 64 };

    char name[MOST][LS_REDIS_LIBRARY_NAME];
    size_t n = read_list(ls_redis_conn_reply(c, reply), name, MOST);
    if (n <= LS_REDIS_LIBRARIES_MAX)
        return 0;
    size_t sent = 0;
    for (size_t i = 0; i < LB_MIN(n, MOST); i++) {
        if (strcmp(name[i], c->config.scripts->library_name) == 0)
            continue;
        add_function(c, "DELETE", NULL, lb_slice_str(name[i]));
        sent++;
    }
    return sent > 0 ? exchange(c, deadline, again, err) : 0;
}

/*
 * Scripts are asked where the server, or the user's rights, allow no library, or it has no room for one. Anything else says that the library
 * itself is at fault: scripts would hide that, and every call would cost more for ever.
 */
static bool does_without(struct lb_slice text)
{
    enum ls_redis_refusal r = ls_redis_refusal_of(text, NULL);
    return r == LS_REDIS_REFUSED_UNKNOWN_COMMAND || r == LS_REDIS_REFUSED_NOPERM ||
           r == LS_REDIS_REFUSED_READONLY || r == LS_REDIS_REFUSED_OOM ||
           r == LS_REDIS_REFUSED_MISCONF;
}

/* 0: there; 1: the server allows none; < 0: failed. */
static int load_library(struct ls_redis_conn *c, int64_t deadline, bool *again, lade_err *err)
{
    add_load(c);
    add_function(c, "LIST", "LIBRARYNAME", lb_slice_str(PREFIX "*"));
    int rc = exchange(c, deadline, again, err);
    if (rc < 0)
        return rc;
    struct lb_slice text = error_of(c, 0);
    if (text.n == 0)
        return drop_others(c, 1, deadline, again, err);
    static const char there[] = "ERR Library ";
    if (text.n >= sizeof(there) && memcmp(text.p, there, sizeof(there) - 1) == 0 &&
        memmem(text.p, text.n, "already exists", 14)) /* another connection was faster */
        return 0;
    if (!does_without(text))
        return fail_refused(c, text, again, err);
    return 1;
}

/* both ------------------------------------------------------------------------------------------------------------- */

int ls_redis_scripts_greet(struct ls_redis_conn *c, int64_t deadline, bool *again, lade_err *err)
{
    const struct ls_redis_script_table *t = c->config.scripts;
    *again = false;
    if (!t || t->n == 0)
        return 0;
    c->by_digest = !t->functions; /* a new connection may be to another server, or of more rights */
    return c->by_digest ? load_all(c, deadline, again, err) : 0;
}

int ls_redis_scripts_load(struct ls_redis_conn *c, bool functions_refused, int64_t deadline,
                          bool *again, lade_err *err)
{
    const struct ls_redis_script_table *t = c->config.scripts;
    *again = false;
    if (!t || t->n == 0)
        return 0;
    int rc = 1;
    if (!c->by_digest && !functions_refused)
        rc = load_library(c, deadline, again, err);
    if (rc == 1) {
        c->by_digest = true;
        rc = load_all(c, deadline, again, err);
    }
    return rc;
}
