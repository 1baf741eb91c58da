#include "store/redis/outbox.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/fault.h"
#include "base/mem.h"
#include "store/redis/slots.h"

#define QUEUES_MAX 64  /* of one call; who has more ships the rest with the next */
#define STEPS_MAX  256 /* likewise */
#define AT_ONCE    32  /* messages of one step: each may be as long as a body or a result */

struct shipping {
    struct ls_redis_store *s;
    struct ls_redis_conn *c;
    char queue[QUEUES_MAX][LADE_NAME_MAX + 1];
    size_t n, at; /* noted, and done with */
    size_t steps;
    struct lq_fire *fire; /* whose duplicates are told, or NULL */
};

/* One step: from a queue to another. */
struct cargo {
    const struct shipping *sh;
    const char *from, *to;
    struct lb_arena arena;
    struct lb_slice *message;
    size_t n;
    char last[24]; /* the number of the last that was applied */
};

static void note_queue(struct shipping *sh, const char *queue)
{
    for (size_t i = sh->at; i < sh->n; i++) {
        if (strcmp(sh->queue[i], queue) == 0)
            return;
    }
    if (sh->n < QUEUES_MAX && strlen(queue) <= LADE_NAME_MAX)
        (void)snprintf(sh->queue[sh->n++], sizeof(sh->queue[0]), "%s", queue);
}

static int ask(const struct cargo *k, void (*encode)(struct ls_redis_conn *, void *, bool),
               size_t n)
{
    struct ls_redis_ask about = {encode, (void *)k, "ship", false, &k->from, 1};
    return ls_redis_ask(k->sh->s, k->sh->c, &about, n, NULL);
}

/* where to --------------------------------------------------------------------------------------------------------- */

static void encode_outs(struct ls_redis_conn *c, void *ctx, bool repeat LB_UNUSED)
{
    const struct cargo *k = ctx;
    struct ls_redis_cmd *cmd = ls_redis_conn_begin(c, 4);
    ls_redis_arg_str(cmd, "ZRANGE");
    ls_redis_key(cmd, k->sh->s->base.config.ns, k->from, "outs");
    ls_redis_arg_int(cmd, 0);
    ls_redis_arg_int(cmd, QUEUES_MAX - 1);
    ls_redis_cmd_end(cmd);
}

/* The destinations, in the arena; how many. */
static size_t find_outs(struct cargo *k, const char *to[static QUEUES_MAX])
{
    if (ask(k, encode_outs, 1) < 0)
        return 0;
    struct ls_redis_cursor cur = ls_redis_conn_reply(k->sh->c, 0);
    size_t there = ls_redis_read_array(&cur), n = 0;
    for (size_t i = 0; i < LB_MIN(there, (size_t)QUEUES_MAX) && !cur.bad; i++) {
        struct lb_slice name = ls_redis_read_bytes(&cur);
        struct lb_mut copy =
            lb_arena_copy(&k->arena, name.n > 0 ? name.p : (const uint8_t *)"", name.n);
        if (copy.p && !cur.bad) /* the arena ends each copy by a NUL */
            to[n++] = (const char *)copy.p;
    }
    return n;
}

/* one step --------------------------------------------------------------------------------------------------------- */

static void key_out(struct ls_redis_cmd *cmd, const struct cargo *k)
{
    char name[8 + LADE_NAME_MAX];
    (void)snprintf(name, sizeof(name), "out:%s", k->to);
    ls_redis_key(cmd, k->sh->s->base.config.ns, k->from, name);
}

static void encode_read(struct ls_redis_conn *c, void *ctx, bool repeat LB_UNUSED)
{
    struct ls_redis_cmd *cmd = ls_redis_conn_begin(c, 4);
    ls_redis_arg_str(cmd, "LRANGE");
    key_out(cmd, ctx);
    ls_redis_arg_int(cmd, 0);
    ls_redis_arg_int(cmd, AT_ONCE - 1);
    ls_redis_cmd_end(cmd);
}

static bool read_messages(struct cargo *k)
{
    if (ask(k, encode_read, 1) < 0)
        return false;
    struct ls_redis_cursor cur = ls_redis_conn_reply(k->sh->c, 0);
    size_t n = ls_redis_read_array(&cur);
    k->message = lb_arena_alloc(&k->arena, (n + 1) * sizeof(*k->message));
    for (k->n = 0; k->message && k->n < n && !cur.bad; k->n++) {
        struct lb_slice text = ls_redis_read_bytes(&cur);
        k->message[k->n] = lb_slice_of(lb_arena_copy(&k->arena, text.p, text.n));
        if (!k->message[k->n].p)
            return false;
    }
    return k->message && !cur.bad;
}

static void encode_far(struct ls_redis_conn *c, void *ctx, bool repeat LB_UNUSED)
{
    const struct cargo *k = ctx;
    const struct ls_redis_store *s = k->sh->s;
    ls_redis_name_queues(c, s, &k->to, 1);
    struct ls_redis_cmd *cmd = ls_redis_script_begin(c, LS_REDIS_LUA_FAR, 2, 5 + k->n);
    ls_redis_key_shared(cmd, s, k->to, "queues");
    ls_redis_key(cmd, s->base.config.ns, k->to, "meta");
    ls_redis_arg_str(cmd, k->from);
    ls_redis_arg_int(cmd, LB_MAX(s->base.config.keep_completed.count, 0));
    ls_redis_arg_int(cmd, LB_MAX(s->base.config.keep_dead.count, 0));
    for (size_t i = 0; i < k->n; i++)
        ls_redis_arg_slice(cmd, k->message[i]);
    ls_redis_cmd_end(cmd);
}

/* "<number> <id>": keys of flows that are no more. */
static void encode_gone(struct ls_redis_conn *c, void *ctx, bool repeat LB_UNUSED)
{
    const struct cargo *k = ctx;
    for (size_t i = 0; i < k->n; i++) {
        struct lb_slice id = k->message[i];
        char name[8 + LADE_ID_MAX];
        (void)ls_redis_take_number(&id);
        (void)snprintf(name, sizeof(name), "flow:%.*s", (int)LB_MIN(id.n, (size_t)LADE_ID_MAX),
                       id.n > 0 ? (const char *)id.p : "");
        struct ls_redis_cmd *cmd = ls_redis_conn_begin(c, 2);
        ls_redis_arg_str(cmd, "DEL");
        ls_redis_key_ns(cmd, k->sh->s->base.config.ns, name);
        ls_redis_cmd_end(cmd);
    }
}

/* Applies them where they go to. */
static bool deliver(struct cargo *k, struct shipping *sh)
{
    if (k->n == 0) { /* another was faster: what is left of the outbox goes */
        (void)snprintf(k->last, sizeof(k->last), "0");
        return true;
    }
    if (!*k->to) {
        struct lb_slice number = k->message[k->n - 1];
        (void)snprintf(k->last, sizeof(k->last), "%lld", (long long)ls_redis_take_number(&number));
        return ask(k, encode_gone, k->n) == 0;
    }
    if (ask(k, encode_far, 1) < 0)
        return false;
    struct ls_redis_cursor cur = ls_redis_conn_reply(sh->c, 0);
    size_t n = ls_redis_read_array(&cur);
    struct lb_slice last = ls_redis_read_bytes(&cur);
    bool more = ls_redis_read_int(&cur) != 0;
    if (cur.bad || last.n >= sizeof(k->last))
        return false;
    memcpy(k->last, last.p, last.n);
    k->last[last.n] = 0;
    if (sh->fire && strcmp(k->to, sh->fire->put[0].queue) == 0)
        ls_redis_read_duplicates(&cur, n > 2 ? (n - 2) / 2 : 0, sh->fire);
    if (more)
        note_queue(sh, k->to);
    return true;
}

static void encode_shipped(struct ls_redis_conn *c, void *ctx, bool repeat LB_UNUSED)
{
    const struct cargo *k = ctx;
    struct ls_redis_cmd *cmd = ls_redis_script_begin(c, LS_REDIS_LUA_SHIPPED, 1, 3);
    ls_redis_key(cmd, k->sh->s->base.config.ns, k->from, "meta");
    ls_redis_arg_str(cmd, k->to);
    ls_redis_arg_str(cmd, k->last);
    ls_redis_cmd_end(cmd);
}

/* True while there is more. */
static bool ship_step(struct shipping *sh, const char *from, const char *to)
{
    struct cargo k = {.sh = sh, .from = from, .to = to};
    int64_t left = 0;
    lb_arena_init(&k.arena);
    bool applied = read_messages(&k) && !LB_FAULT_FAILS("redis.ship.apply") && deliver(&k, sh);
    if (applied && !LB_FAULT_FAILS("redis.ship.remove") && ask(&k, encode_shipped, 1) == 0) {
        struct ls_redis_cursor cur = ls_redis_conn_reply(sh->c, 0);
        left = ls_redis_read_int(&cur);
    }
    lb_arena_fini(&k.arena);
    return left > 0 && ++sh->steps < STEPS_MAX;
}

static void ship_from(struct shipping *sh, const char *from)
{
    const char *to[QUEUES_MAX];
    struct cargo k = {.sh = sh, .from = from};
    lb_arena_init(&k.arena);
    size_t n = find_outs(&k, to);
    for (size_t i = 0; i < n; i++) {
        while (ship_step(sh, from, to[i]))
            ;
    }
    lb_arena_fini(&k.arena);
}

static void ship(struct ls_redis_store *s, struct ls_redis_conn *c, const char *const *queue,
                 size_t n, struct lq_fire *fire)
{
    struct shipping *sh = LB_FAULT_FAILS("redis.ship") ? NULL : lb_calloc(1, sizeof(*sh));
    if (!sh)
        return;
    sh->s = s;
    sh->c = c;
    sh->fire = fire;
    for (size_t i = 0; i < n; i++)
        note_queue(sh, queue[i]);
    for (; sh->at < sh->n && sh->steps < STEPS_MAX; sh->at++)
        ship_from(sh, sh->queue[sh->at]);
    lb_free(sh);
}

void ls_redis_ship(struct ls_redis_store *s, struct ls_redis_conn *c, const char *const *queue,
                   size_t n)
{
    if (ls_redis_in_slots(s) && n > 0)
        ship(s, c, queue, n, NULL);
}

void ls_redis_ship_fires(struct ls_redis_store *s, struct ls_redis_conn *c, struct lq_fire *f)
{
    static const char *const from[] = {LS_REDIS_SCHEDULES};
    if (ls_redis_in_slots(s))
        ship(s, c, from, 1, f && f->n > 0 ? f : NULL);
}

void ls_redis_ship_apart(struct ls_redis_store *s, const char *const *queue, size_t n)
{
    struct ls_redis_conn *c;
    if (!ls_redis_in_slots(s))
        return;
    lr_mutex_lock(&s->admin.lock);
    if (ls_redis_link_conn(s, &s->admin, &c, NULL) == 0)
        ls_redis_ship(s, c, queue, n);
    lr_mutex_unlock(&s->admin.lock);
}

/* all -------------------------------------------------------------------------------------------------------------- */

struct sweep_call {
    const struct ls_redis_store *s;
    const char **queue;
    size_t n;
};

static void encode_names(struct ls_redis_conn *c, void *ctx, bool repeat LB_UNUSED)
{
    const struct sweep_call *w = ctx;
    static const char *const sets[] = {"queues", "homes"};
    for (size_t i = 0; i < LB_ARRAY_LEN(sets); i++) {
        struct ls_redis_cmd *cmd = ls_redis_conn_begin(c, 2);
        ls_redis_arg_str(cmd, "SMEMBERS");
        ls_redis_key_ns(cmd, w->s->base.config.ns, sets[i]);
        ls_redis_cmd_end(cmd);
    }
}

static void encode_exist(struct ls_redis_conn *c, void *ctx, bool repeat LB_UNUSED)
{
    const struct sweep_call *w = ctx;
    for (size_t i = 0; i < w->n; i++) {
        struct ls_redis_cmd *cmd = ls_redis_conn_begin(c, 2);
        ls_redis_arg_str(cmd, "EXISTS");
        ls_redis_key(cmd, w->s->base.config.ns, w->queue[i], "outs");
        ls_redis_cmd_end(cmd);
    }
}

/* Those of a set, in the arena, behind what is there. */
static size_t read_set(struct ls_redis_cursor cur, struct lb_arena *arena, const char **to)
{
    size_t there = ls_redis_read_array(&cur), n = 0;
    for (size_t i = 0; i < there && !cur.bad; i++) {
        struct lb_slice q = ls_redis_read_bytes(&cur);
        to[n] = q.n <= LADE_NAME_MAX ? (const char *)lb_arena_copy(arena, q.p, q.n).p : NULL;
        n += to[n] != NULL;
    }
    return n;
}

/* The queues and homes there are: at most as many as one pipeline asks. */
static size_t find_all(struct ls_redis_store *s, struct ls_redis_conn *c, struct lb_arena *arena,
                       const char ***out)
{
    struct sweep_call w = {.s = s};
    struct ls_redis_ask about = {encode_names, &w, "ship", false, NULL, 0};
    if (ls_redis_ask(s, c, &about, 2, NULL) < 0)
        return 0;
    size_t most = 0;
    for (size_t i = 0; i < 2; i++) {
        struct ls_redis_cursor cur = ls_redis_conn_reply(c, i);
        most += ls_redis_read_array(&cur);
    }
    *out = lb_arena_alloc(arena, (most + 1) * sizeof(**out));
    size_t n = 0;
    for (size_t i = 0; *out && i < 2; i++)
        n += read_set(ls_redis_conn_reply(c, i), arena, *out + n);
    return LB_MIN(n, (size_t)LS_REDIS_PIPELINE_MAX);
}

void ls_redis_ship_all(struct ls_redis_store *s, struct ls_redis_conn *c)
{
    struct lb_arena arena;
    if (!ls_redis_in_slots(s))
        return;
    lb_arena_init(&arena);
    const char **all = NULL, *some[QUEUES_MAX];
    size_t n = find_all(s, c, &arena, &all), n_some = 0;
    struct sweep_call w = {s, all, n};
    struct ls_redis_ask about = {encode_exist, &w, "ship", false, NULL, 0};
    if (n > 0 && ls_redis_ask(s, c, &about, n, NULL) == 0) {
        for (size_t i = 0; i < n && n_some < QUEUES_MAX; i++) {
            struct ls_redis_cursor cur = ls_redis_conn_reply(c, i);
            if (ls_redis_read_int(&cur) != 0)
                some[n_some++] = all[i];
        }
        ls_redis_ship(s, c, some, n_some);
    }
    ls_redis_ship_fires(s, c, NULL);
    lb_arena_fini(&arena);
}
