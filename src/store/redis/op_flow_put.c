/*
 * op_flow_put.c - flows, put whole; lua/flow_put.lua, lua/fold_put.lua, lua/inbox.lua
 *
 * One that can be folded (lua/fold.lua) and is fresh goes to the inbox of its queue by RPUSHX, as single jobs do (op_put.c), when
 * this process has seen that the queue knows of such flows. Else fold_put.lua puts it; and all others are spelled out, their nodes as texts,
 * which the scripts take apart where they need them.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/buf.h"
#include "base/err.h"
#include "queue/flow_store.h"
#include "store/redis/homes.h"
#include "store/redis/inbox.h"
#include "store/redis/outbox.h"
#include "store/redis/packs.h"
#include "store/redis/slots.h"

struct put_call {
    struct ls_redis_store *s;
    char home[LADE_NAME_MAX + 1]; /* in slots */
    const struct lq_flow *flow;
    struct lb_slice *arg; /* spelled out: three texts of each node */
    uint64_t seq;
    struct lb_slice bodies; /* of one that can be folded */
    char head[5];           /* of it: lua/fold.lua */
    bool inbox, sent_inbox; /* tries it; the last try was that */
};

static const char *const no_queue = "";

/* put ------------------------------------------------------------------------------------------------------------- */

/* As lua/flow.lua has it under s<i>. */
static void add_static(struct lb_buf *b, const struct lq_flow *f, uint32_t i)
{
    const struct lq_flow_node *n = &f->node[i];
    lb_buf_add_fmt(b, "%d%d%d %" PRId64 " %s %.*s", n->level, (int)n->when, (int)n->policy,
                   n->when_ms, n->queue, (int)n->kind.n, (const char *)n->kind.p);
    for (uint32_t k = 0; k < n->n_next; k++)
        lb_buf_add_fmt(b, "%c%u%s", k ? ',' : ' ', n->next[k],
                       f->node[n->next[k]].n_deps > 1 ? "+" : "");
}

static void add_deps(struct lb_buf *b, const struct lq_flow_node *n)
{
    for (uint32_t k = 0; k < n->n_deps; k++)
        lb_buf_add_fmt(b, "%s%u", k ? "," : "", n->dep[k]);
}

static void encode_put(struct ls_redis_conn *c, void *ctx, bool repeat)
{
    const struct put_call *fc = ctx;
    const struct lq_flow *f = fc->flow;
    uint32_t open = 0;
    for (uint32_t i = 0; i < f->n_steps; i++)
        open += f->node[i].n_next == 0;
    ls_redis_name_flow(c, fc->s, f, fc->home);
    struct ls_redis_cmd *cmd =
        ls_redis_script_begin(c, LS_REDIS_LUA_FLOW_PUT, 1, 12 + 3 * (size_t)f->n);
    ls_redis_key_shared(cmd, fc->s, fc->home, "queues");
    ls_redis_arg_str(cmd, fc->s->client);
    ls_redis_arg_u64(cmd, fc->seq);
    ls_redis_arg_int(cmd, repeat);
    ls_redis_arg_int(cmd, LS_REDIS_MEMORY_MS);
    ls_redis_arg_slice(cmd, f->id);
    ls_redis_arg_slice(cmd, f->name);
    ls_redis_arg_int(cmd, f->cancel_siblings);
    ls_redis_arg_u64(cmd, f->n);
    ls_redis_arg_u64(cmd, f->n_steps);
    ls_redis_arg_u64(cmd, open);
    ls_redis_arg_int(cmd, f->fresh);
    for (uint32_t i = 0; i < f->n; i++) {
        for (size_t k = 0; k < 3; k++)
            ls_redis_arg_slice(cmd, fc->arg[3 * i + k]);
    }
    ls_redis_cmd_end(cmd);
}

/* The texts of all nodes: three each, in one buffer. */
static int write_nodes(struct put_call *fc, struct lb_buf *text, struct lb_arena *arena,
                       lade_err *err)
{
    const struct lq_flow *f = fc->flow;
    size_t *end = lb_arena_alloc(arena, 2 * (size_t)f->n * sizeof(*end));
    fc->arg = lb_arena_alloc(arena, 3 * (size_t)f->n * sizeof(*fc->arg));
    for (uint32_t i = 0; end && i < f->n; i++) {
        add_static(text, f, i);
        end[2 * i] = text->n;
        add_deps(text, &f->node[i]);
        end[2 * i + 1] = text->n;
    }
    if (!end || !fc->arg || text->failed)
        return lb_fail_nomem(err, "flow");
    for (uint32_t i = 0; i < f->n; i++) {
        size_t from = i > 0 ? end[2 * i - 1] : 0;
        fc->arg[3 * i] = lb_slice(text->p + from, end[2 * i] - from);
        fc->arg[3 * i + 1] = lb_slice(text->p + end[2 * i], end[2 * i + 1] - end[2 * i]);
        fc->arg[3 * i + 2] = f->node[i].body;
    }
    return 0;
}

static int check_bodies(const struct ls_redis_store *s, const struct lq_flow *f, lade_err *err)
{
    for (uint32_t i = 0; s->bulk_max > 0 && i < f->n; i++) {
        if (f->node[i].body.n > (size_t)s->bulk_max)
            return lb_fail(err, LADE_ETOOBIG, "flow",
                           "step %u has %zu bytes, the server takes %" PRId64
                           ": raise its proto-max-bulk-len",
                           i, f->node[i].body.n, s->bulk_max);
    }
    return 0;
}

static int read_answer(struct ls_redis_conn *c, int64_t *answer, lade_err *err)
{
    struct ls_redis_cursor cur = ls_redis_conn_reply(c, 0);
    *answer = ls_redis_read_int(&cur);
    return cur.bad ? ls_redis_conn_fail_reply(c, "flow", err) : 0;
}

static int ask_put(struct put_call *fc, void (*encode)(struct ls_redis_conn *, void *, bool),
                   int64_t *answer, lade_err *err)
{
    struct ls_redis_ask ask = {encode, fc, "flow", false, &no_queue, 1};
    struct ls_redis_conn *c;
    int rc = ls_redis_link_conn(fc->s, &fc->s->admin, &c, err);
    if (rc == 0)
        rc = ls_redis_ask(fc->s, c, &ask, 1, err);
    if (rc == 0)
        rc = read_answer(c, answer, err);
    return rc == 0 ? ls_redis_replicate(fc->s, c, "flow", err) : rc;
}

/* folded ----------------------------------------------------------------------------------------------------------- */

#define FOLD_NOT INT64_C(2) /* an answer of lua/fold_put.lua */
#define OUT_FULL INT64_C(3) /* of lua/flow_put.lua: too many messages wait (outbox.h) */

/* What all steps of a folded flow share. */
static bool is_plain(const struct lq_flow *f)
{
    const struct lq_flow_node *first = &f->node[0];
    size_t bytes = 0;
    if (f->n != f->n_steps || f->n > LS_REDIS_PACK_JOBS)
        return false;
    for (uint32_t i = 0; i < f->n; i++) {
        const struct lq_flow_node *n = &f->node[i];
        bytes += n->body.n + 1;
        if (n->when != LQ_WHEN_NOW || n->level != first->level || n->policy != first->policy ||
            (n->queue != first->queue && strcmp(n->queue, first->queue) != 0))
            return false;
    }
    return bytes <= LS_REDIS_PACK_BYTES;
}

static bool is_chain(const struct lq_flow *f)
{
    for (uint32_t i = 0; i < f->n; i++) {
        const struct lq_flow_node *n = &f->node[i];
        if (n->n_deps != (i > 0) || (i > 0 && n->dep[0] != i - 1))
            return false;
    }
    return true;
}

static bool is_group(const struct lq_flow *f)
{
    for (uint32_t i = 0; i + 1 < f->n; i++) {
        if (f->node[i].n_deps != 0)
            return false;
    }
    const struct lq_flow_node *last = &f->node[f->n - 1];
    if (last->n_deps != f->n - 1)
        return false;
    for (uint32_t k = 0; k + 1 < f->n; k++) {
        if (last->dep[k] != k)
            return false;
    }
    return true;
}

/* The head of its states, or false. */
static bool can_fold(struct put_call *fc)
{
    const struct lq_flow *f = fc->flow;
    bool chain = is_plain(f) && is_chain(f);
    if (!chain && !(is_plain(f) && is_group(f)))
        return false;
    const struct lq_flow_node *first = &f->node[0];
    char head[] = {chain ? 'C' : 'G', (char)('0' + (int)first->policy), (char)('0' + first->level),
                   '-', 0};
    memcpy(fc->head, head, sizeof(head));
    return true;
}

static uint32_t count_first(const struct put_call *fc)
{
    return fc->head[0] == 'C' ? 1 : fc->flow->n - 1;
}

static void encode_folded(struct ls_redis_conn *c, void *ctx, bool repeat)
{
    const struct put_call *fc = ctx;
    const struct lq_flow *f = fc->flow;
    const char *ns = fc->s->base.config.ns, *queue = f->node[0].queue;
    ls_redis_name_flow(c, fc->s, f, fc->home);
    struct ls_redis_cmd *cmd = ls_redis_script_begin(c, LS_REDIS_LUA_FOLD_PUT, 2, 16);
    ls_redis_key_shared(cmd, fc->s, queue, "queues");
    ls_redis_key(cmd, ns, queue, "meta");
    ls_redis_arg_str(cmd, fc->s->client);
    ls_redis_arg_u64(cmd, fc->seq);
    ls_redis_arg_int(cmd, repeat);
    ls_redis_arg_int(cmd, LS_REDIS_MEMORY_MS);
    ls_redis_arg_slice(cmd, f->id);
    ls_redis_arg_int(cmd, f->fresh);
    ls_redis_arg_u64(cmd, f->n);
    ls_redis_arg_int(cmd, f->cancel_siblings);
    ls_redis_arg_str(cmd, queue);
    ls_redis_arg_slice(cmd, f->name);
    ls_redis_arg_str(cmd, fc->head);
    ls_redis_arg_int(cmd, f->node[0].level);
    ls_redis_arg_u64(cmd, count_first(fc));
    ls_redis_arg_slice(cmd, fc->bodies);
    ls_redis_cmd_end(cmd);
}

static bool is_folding(const struct ls_redis_store *s, const char *queue)
{
    for (size_t i = 0; i < LB_MIN(s->n_folding, LS_REDIS_FOLDING_MAX); i++) {
        if (strcmp(s->folding[i], queue) == 0)
            return true;
    }
    return false;
}

static void note_folding(struct ls_redis_store *s, const char *queue)
{
    if (is_folding(s, queue) || strlen(queue) > LADE_NAME_MAX)
        return;
    char *to = s->folding[s->n_folding++ % LS_REDIS_FOLDING_MAX];
    memcpy(to, queue, strlen(queue) + 1);
}

static void encode_inbox(struct ls_redis_conn *c, const struct put_call *fc)
{
    const struct lq_flow *f = fc->flow;
    const char *queue = f->node[0].queue;
    char text[LADE_ID_MAX + 2 * LADE_NAME_MAX + 64];
    struct ls_redis_cmd *cmd;
    if (ls_redis_in_slots(fc->s)) {
        ls_redis_name_flow(c, fc->s, f, fc->home);
    } else {
        cmd = ls_redis_conn_begin(c, 3);
        ls_redis_arg_str(cmd, "SADD");
        ls_redis_key_ns(cmd, fc->s->base.config.ns, "flowin");
        ls_redis_arg_str(cmd, queue);
        ls_redis_cmd_end(cmd);
        ls_redis_conn_prelude(c);
    }
    cmd = ls_redis_inbox_begin(c, fc->s, queue, 2);
    int n =
        snprintf(text, sizeof(text), "~%.*s %" PRIu32 " %d %s %" PRIu32 " %s %.*s", (int)f->id.n,
                 (const char *)f->id.p, f->n, f->cancel_siblings, fc->head, count_first(fc), queue,
                 (int)f->name.n, f->name.n ? (const char *)f->name.p : "");
    ls_redis_arg(cmd, text, LB_MIN((size_t)n, sizeof(text) - 1));
    ls_redis_arg_slice(cmd, fc->bodies);
    ls_redis_cmd_end(cmd);
    ls_redis_inbox_look(c, fc->s, queue, count_first(fc));
}

/* A repeat asks the script, which knows what was put. */
static void encode_either(struct ls_redis_conn *c, void *ctx, bool repeat)
{
    struct put_call *fc = ctx;
    fc->sent_inbox = fc->inbox && !repeat;
    if (fc->sent_inbox)
        encode_inbox(c, fc);
    else
        encode_folded(c, fc, repeat);
}

static int put_by_inbox(struct put_call *fc, int64_t *answer, lade_err *err)
{
    struct ls_redis_ask ask = {encode_either, fc, "flow", false, &no_queue, 1};
    struct ls_redis_conn *c;
    int rc = ls_redis_link_conn(fc->s, &fc->s->admin, &c, err);
    if (rc == 0)
        rc = ls_redis_ask(fc->s, c, &ask, 0, err);
    size_t n = fc->sent_inbox ? 2 : 1;
    for (size_t i = 0; rc == 0 && i < n; i++) {
        struct ls_redis_cursor cur = ls_redis_conn_reply(c, i);
        if (ls_redis_peek(&cur) == LS_REDIS_ERROR)
            rc = ls_redis_refuse(fc->s, c, &ask, i, err);
    }
    if (rc == 0 && fc->sent_inbox)
        rc = ls_redis_inbox_finish(fc->s, c, 0, fc->flow->node[0].queue, count_first(fc), "flow",
                                   err);
    else if (rc == 0)
        rc = read_answer(c, answer, err);
    if (rc >= 0 && fc->sent_inbox)
        *answer = rc == LADE_NOT_FOUND ? FOLD_NOT : 0;
    return rc >= 0 ? ls_redis_replicate(fc->s, c, "flow", err) : rc;
}

static int put_folded(struct put_call *fc, int64_t *answer, lade_err *err)
{
    struct lb_slice body[LS_REDIS_PACK_JOBS];
    struct lb_buf bodies;
    lb_buf_init(&bodies);
    for (uint32_t i = 0; i < fc->flow->n; i++)
        body[i] = fc->flow->node[i].body;
    ls_redis_pack_write(&bodies, body, fc->flow->n);
    fc->bodies = lb_buf_slice(&bodies);
    const char *queue = fc->flow->node[0].queue;
    fc->inbox = fc->flow->fresh && is_folding(fc->s, queue);
    int rc = bodies.failed ? lb_fail_nomem(err, "flow") : 0;
    if (rc == 0 && fc->inbox)
        rc = put_by_inbox(fc, answer, err);
    if (rc == 0 && *answer == FOLD_NOT) {
        rc = ask_put(fc, encode_folded, answer, err);
        if (rc == 0 && *answer == 0)
            note_folding(fc->s, queue);
    }
    lb_buf_fini(&bodies);
    return rc;
}

static int put_spelled(struct put_call *fc, int64_t *answer, lade_err *err)
{
    struct lb_buf text;
    struct lb_arena arena;
    lb_buf_init(&text);
    lb_arena_init(&arena);
    int rc = write_nodes(fc, &text, &arena, err);
    if (rc == 0)
        rc = ask_put(fc, encode_put, answer, err);
    lb_buf_fini(&text);
    lb_arena_fini(&arena);
    return rc;
}

static int choose_home(struct put_call *fc, lade_err *err)
{
    struct ls_redis_conn *c;
    int rc = ls_redis_link_conn(fc->s, &fc->s->admin, &c, err);
    if (rc == 0 && !ls_redis_conn_is_up(c)) /* tells what server it is */
        rc = ls_redis_conn_connect(c, ls_redis_deadline(fc->s), err);
    if (rc == 0 && ls_redis_in_slots(fc->s))
        rc = ls_redis_choose_home(fc->s, c, fc->flow, fc->home, err);
    return rc;
}

/* In slots: first steps that lie elsewhere. */
static void ship(struct put_call *fc, int rc)
{
    const char *home = fc->home;
    struct ls_redis_conn *c;
    bool elsewhere = false;
    for (uint32_t i = 0; rc == 0 && ls_redis_in_slots(fc->s) && i < fc->flow->n; i++)
        elsewhere = elsewhere || strcmp(fc->flow->node[i].queue, home) != 0;
    if (elsewhere && ls_redis_link_conn(fc->s, &fc->s->admin, &c, NULL) == 0)
        ls_redis_ship(fc->s, c, &home, 1);
}

int ls_redis_flow_put(struct lq_store *base, struct lq_flow *flow, lade_err *err)
{
    struct put_call fc = {.s = ls_redis_of(base), .flow = flow};
    int64_t answer = FOLD_NOT;
    int rc = check_bodies(fc.s, flow, err);
    if (rc < 0)
        return rc;
    lr_mutex_lock(&fc.s->admin.lock);
    fc.seq = ++fc.s->put_seq;
    rc = choose_home(&fc, err);
    bool folds = rc == 0 && can_fold(&fc);
    if (folds && ls_redis_in_slots(fc.s))
        folds = strcmp(fc.home, flow->node[0].queue) == 0;
    if (folds)
        rc = put_folded(&fc, &answer, err);
    if (rc == 0 && answer == FOLD_NOT)
        rc = put_spelled(&fc, &answer, err);
    if (rc == 0 && answer == OUT_FULL)
        rc = lb_fail(err, LADE_EUNAVAILABLE, "flow",
                     "100000 messages of queue %s wait for other queues of this workflow: let a "
                     "worker run there, and look whether their nodes answer",
                     fc.home);
    ship(&fc, rc);
    lr_mutex_unlock(&fc.s->admin.lock);
    if (rc == 0)
        flow->outcome = answer ? LADE_DUPLICATE : 0;
    return rc;
}
