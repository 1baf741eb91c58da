/*
 * op_dead.c - classes of deaths, and changes of jobs by who has seen them; lua/classes.lua, change.lua
 *
 * As with act, a change whose answer is lost is not repeated.
 */
#include <string.h>

#include "base/base.h"
#include "base/err.h"
#include "queue/dead_store.h"
#include "store/redis/outbox.h"
#include "store/redis/store_inner.h"

#define CLASS_FIELDS 7

struct dead_call {
    const struct ls_redis_store *s;
    const char *queue;
    enum lq_change_verb verb;
    const struct lq_change *it;
    size_t n;
};

static void encode_classes(struct ls_redis_conn *c, void *ctx, bool repeat LB_UNUSED)
{
    const struct dead_call *d = ctx;
    struct ls_redis_cmd *cmd = ls_redis_script_begin(c, LS_REDIS_LUA_CLASSES, 1, 1);
    ls_redis_key(cmd, d->s->base.config.ns, d->queue, "meta");
    ls_redis_cmd_end(cmd);
}

static struct lb_slice keep(struct lb_arena *a, struct lb_slice s, bool *ok)
{
    struct lb_mut m = lb_arena_copy(a, s.n > 0 ? s.p : (const uint8_t *)"", s.n);
    *ok = *ok && m.p;
    return lb_slice_of(m);
}

static int read_classes(struct ls_redis_conn *c, struct lq_class_vec *out, lade_err *err)
{
    struct ls_redis_cursor cur = ls_redis_conn_reply(c, 0);
    size_t n = ls_redis_read_array(&cur) / CLASS_FIELDS;
    bool ok = true;
    if (cur.bad || n > LQ_CLASSES_MAX + 1)
        return ls_redis_conn_fail_reply(c, "classes", err);
    out->class_ = lb_arena_alloc(&out->arena, (n + 1) * sizeof(*out->class_));
    if (!out->class_)
        return lb_fail_nomem(err, "classes");
    for (size_t i = 0; i < n && !cur.bad; i++) {
        struct lq_class *k = &out->class_[i];
        struct lb_arena *a = &out->arena;
        k->name = keep(a, ls_redis_read_bytes(&cur), &ok);
        k->count = (uint64_t)ls_redis_read_int(&cur);
        k->first_ms = ls_redis_read_int(&cur);
        k->last_ms = ls_redis_read_int(&cur);
        k->kind = keep(a, ls_redis_read_bytes(&cur), &ok);
        k->text = keep(a, ls_redis_read_bytes(&cur), &ok);
        k->sample = keep(a, ls_redis_read_bytes(&cur), &ok);
    }
    if (cur.bad)
        return ls_redis_conn_fail_reply(c, "classes", err);
    out->n = n;
    return ok ? 0 : lb_fail_nomem(err, "classes");
}

static int ask_dead(struct ls_redis_store *s, const struct ls_redis_ask *ask,
                    struct ls_redis_conn **c, lade_err *err)
{
    int rc = ls_redis_link_conn(s, &s->admin, c, err);
    return rc < 0 ? rc : ls_redis_ask(s, *c, ask, 1, err);
}

int ls_redis_classes(struct lq_store *base, const char *queue, struct lq_class_vec *out,
                     lade_err *err)
{
    struct ls_redis_store *s = ls_redis_of(base);
    struct dead_call d = {.s = s, .queue = queue};
    struct ls_redis_ask ask = {encode_classes, &d, "classes", false, &queue, 1};
    struct ls_redis_conn *c;
    out->n = 0;
    lr_mutex_lock(&s->admin.lock);
    int rc = ask_dead(s, &ask, &c, err);
    if (rc == 0)
        rc = read_classes(c, out, err);
    lr_mutex_unlock(&s->admin.lock);
    return rc == 0 && out->n == 0 ? LADE_EMPTY : rc;
}

static void encode_change(struct ls_redis_conn *c, void *ctx, bool repeat LB_UNUSED)
{
    const struct dead_call *d = ctx;
    struct ls_redis_cmd *cmd = ls_redis_script_begin(c, LS_REDIS_LUA_CHANGE, 1, 2 + 3 * d->n);
    ls_redis_key(cmd, d->s->base.config.ns, d->queue, "meta");
    ls_redis_arg_int(cmd, d->verb);
    for (size_t i = 0; i < d->n; i++) {
        ls_redis_arg_slice(cmd, d->it[i].id);
        ls_redis_arg_int(cmd, d->it[i].died_ms);
        ls_redis_arg_slice(cmd, d->it[i].body);
    }
    ls_redis_cmd_end(cmd);
}

/* The outcomes; the first that is not 0. */
static int read_changes(struct ls_redis_conn *c, struct lq_change *it, size_t n, lade_err *err)
{
    static const int meaning[] = {0, LADE_NOT_FOUND, LADE_WRONG_STATE};
    struct ls_redis_cursor cur = ls_redis_conn_reply(c, 0);
    bool whole = ls_redis_read_array(&cur) == n;
    int first = 0;
    for (size_t i = 0; i < n && whole; i++) {
        int64_t said = ls_redis_read_int(&cur);
        whole = !cur.bad && said >= 0 && (size_t)said < LB_ARRAY_LEN(meaning);
        it[i].outcome = whole ? meaning[said] : 0;
        first = first ? first : it[i].outcome;
    }
    return whole ? first : ls_redis_conn_fail_reply(c, "change", err);
}

int ls_redis_change(struct lq_store *base, const char *queue, enum lq_change_verb verb,
                    struct lq_change *it, size_t n, lade_err *err)
{
    struct ls_redis_store *s = ls_redis_of(base);
    struct dead_call d = {.s = s, .queue = queue, .verb = verb, .it = it, .n = n};
    struct ls_redis_ask ask = {encode_change, &d, "change", true, &queue, 1};
    struct ls_redis_conn *c;
    if (n == 0)
        return 0;
    if (n > LQ_TAKE_MAX)
        return lb_fail(err, LADE_EINVAL, "change", "%zu jobs in one call, at most %d", n,
                       LQ_TAKE_MAX);
    lr_mutex_lock(&s->admin.lock);
    int rc = ask_dead(s, &ask, &c, err);
    if (rc == 0)
        rc = read_changes(c, it, n, err);
    if (rc >= 0)
        ls_redis_ship(s, c, &queue, 1);
    lr_mutex_unlock(&s->admin.lock);
    return rc;
}
