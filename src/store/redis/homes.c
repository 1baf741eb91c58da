#include "store/redis/homes.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/err.h"
#include "store/redis/slots.h"

struct home_call {
    const struct ls_redis_store *s;
    struct lb_slice id;
    const char *home; /* to be named where there is none yet; NULL: only asks */
    const char *const *homes;
    size_t n;
};

static const char *const no_queue = "";

static void key_flow(struct ls_redis_cmd *cmd, const struct ls_redis_store *s, struct lb_slice id)
{
    char name[8 + LADE_ID_MAX];
    (void)snprintf(name, sizeof(name), "flow:%.*s", (int)LB_MIN(id.n, (size_t)LADE_ID_MAX),
                   (const char *)id.p);
    ls_redis_key_ns(cmd, s->base.config.ns, name);
}

static void encode_pointer(struct ls_redis_conn *c, void *ctx, bool repeat LB_UNUSED)
{
    const struct home_call *h = ctx;
    struct ls_redis_cmd *cmd = ls_redis_conn_begin(c, 5);
    ls_redis_arg_str(cmd, h->home ? "SET" : "GET");
    key_flow(cmd, h->s, h->id);
    if (h->home) {
        ls_redis_arg_str(cmd, h->home);
        ls_redis_arg_str(cmd, "NX");
        ls_redis_arg_str(cmd, "GET");
    }
    ls_redis_cmd_end(cmd);
}

/* What <ns>:flow:<id> says; "" when it is not there. */
static int ask_pointer(struct ls_redis_store *s, struct ls_redis_conn *c, struct home_call *h,
                       char home[LADE_NAME_MAX + 1], lade_err *err)
{
    struct ls_redis_ask ask = {encode_pointer, h, "flow", false, &no_queue, 0};
    int rc = ls_redis_ask(s, c, &ask, 1, err);
    home[0] = 0;
    if (rc < 0)
        return rc;
    struct ls_redis_cursor cur = ls_redis_conn_reply(c, 0);
    struct lb_slice is = ls_redis_read_bytes_or_null(&cur);
    if (cur.bad || is.n > LADE_NAME_MAX)
        return ls_redis_conn_fail_reply(c, "flow", err);
    (void)snprintf(home, LADE_NAME_MAX + 1, "%.*s", (int)is.n, is.n > 0 ? (const char *)is.p : "");
    return 0;
}

static void encode_homes(struct ls_redis_conn *c, void *ctx, bool repeat LB_UNUSED)
{
    const struct home_call *h = ctx;
    struct ls_redis_cmd *cmd = ls_redis_conn_begin(c, 2);
    ls_redis_arg_str(cmd, "SMEMBERS");
    ls_redis_key_ns(cmd, h->s->base.config.ns, "homes");
    ls_redis_cmd_end(cmd);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int ls_redis_homes(struct ls_redis_store *s, struct ls_redis_conn *c, struct lb_arena *arena,
                   const char ***name, size_t *n, lade_err *err)
{
    struct home_call h = {.s = s};
    struct ls_redis_ask ask = {encode_homes, &h, "flow", false, &no_queue, 0};
    int rc = ls_redis_ask(s, c, &ask, 1, err);
    if (rc < 0)
        return rc;
    struct ls_redis_cursor cur = ls_redis_conn_reply(c, 0);
    size_t there = ls_redis_read_array(&cur);
    const char **all = lb_arena_alloc(arena, (there + 1) * sizeof(*all));
    *n = 0;
    for (size_t i = 0; all && i < there && !cur.bad; i++) {
        struct lb_slice q = ls_redis_read_bytes(&cur);
        all[i] = (const char *)lb_arena_copy(arena, q.p, q.n).p;
        if (!all[i])
            return lb_fail_nomem(err, "flow");
        *n += q.n <= LADE_NAME_MAX;
    }
    if (!all)
        return lb_fail_nomem(err, "flow");
    if (cur.bad || *n != there)
        return ls_redis_conn_fail_reply(c, "flow", err);
    if (there > 0)
        qsort(all, there, sizeof(*all), compare_names);
    *name = all;
    return 0;
}

static void encode_search(struct ls_redis_conn *c, void *ctx, bool repeat LB_UNUSED)
{
    const struct home_call *h = ctx;
    for (size_t i = 0; i < h->n; i++) {
        struct ls_redis_cmd *cmd = ls_redis_conn_begin(c, 3);
        ls_redis_arg_str(cmd, "EXISTS");
        for (int part = 0; part < 2; part++) {
            char name[12 + LADE_ID_MAX];
            (void)snprintf(name, sizeof(name), "flow:%.*s:%c", (int)h->id.n, (const char *)h->id.p,
                           part ? 'p' : 's');
            ls_redis_key(cmd, h->s->base.config.ns, h->homes[i], name);
        }
        ls_redis_cmd_end(cmd);
    }
}

/* Which of all homes has it. */
static int search(struct ls_redis_store *s, struct ls_redis_conn *c, struct home_call *h,
                  char home[LADE_NAME_MAX + 1], lade_err *err)
{
    struct lb_arena arena;
    const char **all = NULL;
    size_t n = 0;
    lb_arena_init(&arena);
    int rc = ls_redis_homes(s, c, &arena, &all, &n, err);
    for (size_t from = 0; rc == 0 && from < n && !home[0]; from += h->n) {
        struct ls_redis_ask ask = {encode_search, h, "flow", false, &no_queue, 0};
        h->homes = all + from;
        h->n = LB_MIN(n - from, (size_t)LS_REDIS_PIPELINE_MAX / 2);
        rc = ls_redis_ask(s, c, &ask, h->n, err);
        for (size_t i = 0; rc == 0 && i < h->n; i++) {
            struct ls_redis_cursor cur = ls_redis_conn_reply(c, i);
            if (ls_redis_read_int(&cur) > 0)
                (void)snprintf(home, LADE_NAME_MAX + 1, "%s", h->homes[i]);
        }
    }
    lb_arena_fini(&arena);
    return rc;
}

int ls_redis_find_home(struct ls_redis_store *s, struct ls_redis_conn *c, struct lb_slice id,
                       char home[LADE_NAME_MAX + 1], lade_err *err)
{
    struct home_call h = {.s = s, .id = id};
    int rc = ask_pointer(s, c, &h, home, err);
    if (rc == 0 && !home[0])
        rc = search(s, c, &h, home, err);
    return rc < 0 ? rc : home[0] ? 0 : LADE_NOT_FOUND;
}

int ls_redis_choose_home(struct ls_redis_store *s, struct ls_redis_conn *c,
                         const struct lq_flow *flow, char home[LADE_NAME_MAX + 1], lade_err *err)
{
    struct home_call h = {.s = s, .id = flow->id, .home = flow->node[0].queue};
    int rc = 0;
    home[0] = 0;
    if (!flow->fresh)
        rc = ask_pointer(s, c, &h, home, err);
    if (rc == 0 && !home[0])
        (void)snprintf(home, LADE_NAME_MAX + 1, "%s", h.home);
    return rc;
}

void ls_redis_name_flow(struct ls_redis_conn *c, const struct ls_redis_store *s,
                        const struct lq_flow *flow, const char *home)
{
    const char *ns = s->base.config.ns;
    if (!ls_redis_in_slots(s))
        return;
    struct ls_redis_cmd *cmd = ls_redis_conn_begin(c, 3);
    ls_redis_arg_str(cmd, "SET");
    key_flow(cmd, s, flow->id);
    ls_redis_arg_str(cmd, home);
    ls_redis_cmd_end(cmd);
    cmd = ls_redis_conn_begin(c, 3);
    ls_redis_arg_str(cmd, "SADD");
    ls_redis_key_ns(cmd, ns, "homes");
    ls_redis_arg_str(cmd, home);
    ls_redis_cmd_end(cmd);
    cmd = ls_redis_conn_begin(c, 2 + flow->n);
    ls_redis_arg_str(cmd, "SADD");
    ls_redis_key_ns(cmd, ns, "queues");
    for (uint32_t i = 0; i < flow->n; i++) {
        if (i == 0 || strcmp(flow->node[i].queue, flow->node[i - 1].queue) != 0)
            ls_redis_arg_str(cmd, flow->node[i].queue);
    }
    ls_redis_cmd_end(cmd);
    ls_redis_conn_prelude(c);
}
