/*
 * op_workers.c - the live workers, from <ns>:workers and what each queue says they hold
 *
 * A description is "until seen started concurrency length name queue,queue,..." as renew writes it. Those of workers
 * that are dead for more than a day and that nobody has reclaimed (their queues have no workers any more) are removed here.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/err.h"
#include "base/mem.h"
#include "store/redis/store_inner.h"

#define KEPT LADE_DAY

struct workers_call {
    struct ls_redis_store *s;
    lade_worker_info *info;
    size_t n;
    struct lb_slice *dead; /* to be removed; in the arena */
    size_t n_dead;
    size_t n_asked; /* HGETs of the second round */
};

static void encode_first(struct ls_redis_conn *c, void *ctx, bool repeat LB_UNUSED)
{
    const struct workers_call *w = ctx;
    struct ls_redis_cmd *cmd = ls_redis_conn_begin(c, 1);
    ls_redis_arg_str(cmd, "TIME");
    ls_redis_cmd_end(cmd);
    cmd = ls_redis_conn_begin(c, 2);
    ls_redis_arg_str(cmd, "HGETALL");
    ls_redis_key_ns(cmd, w->s->base.config.ns, "workers");
    ls_redis_cmd_end(cmd);
}

/* False when it cannot be read. */
static bool parse(lade_worker_info *out, struct lb_slice id, struct lb_slice about)
{
    *out = (lade_worker_info){.lease_until = ls_redis_take_number(&about) * LADE_MILLISECOND};
    out->seen_at = ls_redis_take_number(&about) * LADE_MILLISECOND;
    out->started_at = ls_redis_take_number(&about) * LADE_MILLISECOND;
    out->concurrency = (int)ls_redis_take_number(&about);
    size_t n = (size_t)ls_redis_take_number(&about);
    if (id.n > LADE_ID_MAX || n > LADE_NAME_MAX || n + 1 > about.n)
        return false;
    memcpy(out->id, id.p, id.n);
    memcpy(out->name, about.p, n);
    memcpy(out->queues, about.p + n + 1, LB_MIN(about.n - n - 1, sizeof(out->queues) - 1));
    return true;
}

static int read_first(struct workers_call *w, struct ls_redis_conn *c, struct lb_arena *arena,
                      lade_err *err)
{
    struct ls_redis_cursor cur = ls_redis_conn_reply(c, 0);
    (void)ls_redis_read_array(&cur);
    int64_t now = ls_redis_read_int(&cur) * LADE_SECOND;
    now += ls_redis_read_int(&cur) * 1000;
    cur = ls_redis_conn_reply(c, 1);
    size_t there = ls_redis_read_array(&cur) / 2;
    w->info = lb_arena_alloc(arena, (there + 1) * sizeof(*w->info));
    w->dead = lb_arena_alloc(arena, (there + 1) * sizeof(*w->dead));
    if (!w->info || !w->dead)
        return lb_fail_nomem(err, "workers");
    for (size_t i = 0; i < there; i++) {
        struct lb_slice id = ls_redis_read_bytes(&cur), about = ls_redis_read_bytes(&cur);
        if (cur.bad)
            return ls_redis_conn_fail_reply(c, "workers", err);
        lade_worker_info *info = &w->info[w->n];
        bool known = parse(info, id, about);
        if (known && info->lease_until >= now) {
            w->n++;
        } else if (!known || info->lease_until + KEPT < now) {
            struct lb_slice copy = lb_slice_of(lb_arena_copy(arena, id.p, id.n));
            if (!copy.p)
                return lb_fail_nomem(err, "workers");
            w->dead[w->n_dead++] = copy;
        }
    }
    return 0;
}

/* Calls fn for each queue of a worker. */
static void each_queue(const lade_worker_info *info, void (*fn)(void *ctx, const char *queue),
                       void *ctx)
{
    char queue[LADE_NAME_MAX + 1];
    for (const char *p = info->queues; *p;) {
        size_t n = strcspn(p, ",");
        if (n <= LADE_NAME_MAX) {
            memcpy(queue, p, n);
            queue[n] = 0;
            fn(ctx, queue);
        }
        p += n + (p[n] == ',');
    }
}

struct second {
    struct workers_call *w;
    struct ls_redis_conn *c;
    const lade_worker_info *of;
};

static void ask_held(void *ctx, const char *queue)
{
    struct second *s = ctx;
    if (s->w->n_asked + 2 > LS_REDIS_PIPELINE_MAX)
        return;
    struct ls_redis_cmd *cmd = ls_redis_conn_begin(s->c, 3);
    ls_redis_arg_str(cmd, "HGET");
    ls_redis_key(cmd, s->w->s->base.config.ns, queue, "held");
    ls_redis_arg_str(cmd, s->of->id);
    ls_redis_cmd_end(cmd);
    s->w->n_asked++;
}

static void encode_second(struct ls_redis_conn *c, void *ctx, bool repeat LB_UNUSED)
{
    struct workers_call *w = ctx;
    struct second s = {w, c, NULL};
    w->n_asked = 0;
    for (size_t i = 0; i < w->n; i++) {
        s.of = &w->info[i];
        each_queue(s.of, ask_held, &s);
    }
    if (w->n_dead > 0) {
        struct ls_redis_cmd *cmd = ls_redis_conn_begin(c, 2 + w->n_dead);
        ls_redis_arg_str(cmd, "HDEL");
        ls_redis_key_ns(cmd, w->s->base.config.ns, "workers");
        for (size_t i = 0; i < w->n_dead; i++)
            ls_redis_arg_slice(cmd, w->dead[i]);
        ls_redis_cmd_end(cmd);
    }
}

struct sums {
    struct ls_redis_conn *c;
    size_t next, asked;
    size_t n_active;
};

static void add_held(void *ctx, const char *queue LB_UNUSED)
{
    struct sums *s = ctx;
    if (s->next >= s->asked)
        return;
    struct ls_redis_cursor cur = ls_redis_conn_reply(s->c, s->next++);
    if (ls_redis_peek(&cur) != LS_REDIS_NULL) {
        int64_t held = ls_redis_read_int(&cur);
        s->n_active += held > 0 ? (size_t)held : 0;
    }
}

static int run_second(struct workers_call *w, struct ls_redis_conn *c, lade_err *err)
{
    struct ls_redis_ask ask = {encode_second, w, "workers", false, NULL, 0};
    if (w->n == 0 && w->n_dead == 0)
        return 0;
    int rc = ls_redis_ask(w->s, c, &ask, 0, err);
    if (rc < 0)
        return rc;
    struct sums sums = {c, 0, w->n_asked, 0};
    for (size_t i = 0; i < w->n; i++) {
        sums.n_active = 0;
        each_queue(&w->info[i], add_held, &sums);
        w->info[i].n_active = sums.n_active;
    }
    return 0;
}

static int compare_infos(const void *a, const void *b)
{
    const lade_worker_info *x = a, *y = b;
    int by_name = strcmp(x->name, y->name);
    return by_name ? by_name : strcmp(x->id, y->id);
}

int ls_redis_list_workers(struct lq_store *base, struct lb_arena *arena, lade_worker_info **out,
                          size_t *n, lade_err *err)
{
    struct workers_call w = {.s = ls_redis_of(base)};
    struct ls_redis_ask ask = {encode_first, &w, "workers", false, NULL, 0};
    struct ls_redis_conn *c;
    lr_mutex_lock(&w.s->admin.lock);
    int rc = ls_redis_link_conn(w.s, &w.s->admin, &c, err);
    if (rc == 0)
        rc = ls_redis_ask(w.s, c, &ask, 2, err);
    if (rc == 0)
        rc = read_first(&w, c, arena, err);
    if (rc == 0)
        rc = run_second(&w, c, err);
    lr_mutex_unlock(&w.s->admin.lock);
    if (rc < 0)
        return rc;
    if (w.n > 0)
        qsort(w.info, w.n, sizeof(*w.info), compare_infos);
    *out = w.info;
    *n = w.n;
    return 0;
}
