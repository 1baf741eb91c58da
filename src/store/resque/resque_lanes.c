/* resque_lanes.c - see resque_lanes.h */
#include "store/resque/resque_lanes.h"

#include <stdlib.h>

#include "base/err.h"
#include "resque/resque_queues.h"
#include "store/resque/resque_inner.h"

void ls_resque_lanes_fini(struct ls_resque_lanes *l)
{
    if (l->known)
        lb_arena_fini(&l->arena);
    *l = (struct ls_resque_lanes){0};
}

struct lq_lanes ls_resque_lanes_of(const struct ls_resque_lanes *l)
{
    return (struct lq_lanes){l->queue, l->n};
}

bool ls_resque_lanes_equal(const struct ls_resque_lanes *a, const struct ls_resque_lanes *b)
{
    bool equal = a->known && b->known && a->n == b->n;
    for (size_t i = 0; equal && i < a->n; i++)
        equal = strcmp(a->queue[i], b->queue[i]) == 0;
    return equal;
}

void ls_resque_lanes_ask(struct ls_redis_conn *c, const struct ls_resque_store *s)
{
    struct ls_redis_cmd *cmd = ls_redis_conn_begin(c, 2);
    ls_redis_arg_str(cmd, "SMEMBERS");
    ls_resque_key(cmd, s, RQ_KEY_QUEUES);
    ls_redis_cmd_end(cmd);
}

struct found {
    uint32_t lane;
    const char *queue;
};

/* By lane, and by the alphabet in it, as Ruby's sort. */
static int compare(const void *a, const void *b)
{
    const struct found *x = a, *y = b;
    if (x->lane != y->lane)
        return x->lane < y->lane ? -1 : 1;
    return strcmp(x->queue, y->queue);
}

/* What the list names of the set. */
static int find(struct ls_resque_lanes *out, struct lq_lanes list, struct ls_redis_cursor *cur,
                size_t there, lade_err *err)
{
    struct found *found = lb_arena_alloc(&out->arena, (there + 1) * sizeof(*found));
    size_t n = 0;
    if (!found)
        return lb_fail_nomem(err, "queues");
    for (size_t i = 0; i < there; i++) {
        struct lb_slice text = ls_redis_read_bytes(cur);
        const char *name = (const char *)lb_arena_copy(&out->arena, text.p, text.n).p;
        if (!name)
            return lb_fail_nomem(err, "queues");
        size_t lane = rq_queues_find(list.queue, list.n, name);
        if (lane != SIZE_MAX && strlen(name) == text.n)
            found[n++] = (struct found){(uint32_t)lane, name};
    }
    if (n > LS_RESQUE_QUEUES_MAX)
        return lb_fail(err, LADE_EINVAL, "queues",
                       "queue: the patterns name %zu queues; a worker serves at most %d", n,
                       LS_RESQUE_QUEUES_MAX);
    qsort(found, n, sizeof(*found), compare);
    out->queue = lb_arena_alloc(&out->arena, (n + 1) * sizeof(*out->queue));
    out->lane = lb_arena_alloc(&out->arena, (n + 1) * sizeof(*out->lane));
    if (!out->queue || !out->lane)
        return lb_fail_nomem(err, "queues");
    for (size_t i = 0; i < n; i++) {
        out->queue[i] = found[i].queue;
        out->lane[i] = found[i].lane;
    }
    out->n = n;
    return 0;
}

int ls_resque_lanes_read(struct ls_resque_lanes *out, struct lq_lanes list,
                         struct ls_redis_cursor cur, lade_err *err)
{
    size_t there = ls_redis_read_array(&cur);
    *out = (struct ls_resque_lanes){.known = true};
    lb_arena_init(&out->arena);
    int rc = find(out, list, &cur, there, err);
    if (rc == 0 && cur.bad)
        rc = lb_fail(err, LADE_EPROTO, "queues", "the set of queues is none");
    if (rc < 0)
        ls_resque_lanes_fini(out);
    return rc;
}

static void encode_ask(struct ls_redis_conn *c, void *ctx, bool repeat LB_UNUSED)
{
    ls_resque_lanes_ask(c, ctx);
}

int ls_resque_lanes_learn(struct ls_resque_lanes *out, struct ls_resque_store *s,
                          struct ls_resque_link *link, struct lq_lanes list, lade_err *err)
{
    struct ls_resque_ask ask = {encode_ask, s, "queues", false};
    struct ls_redis_conn *c;
    int rc = ls_resque_ask(s, link, &ask, 1, &c, err);
    return rc < 0 ? rc : ls_resque_lanes_read(out, list, ls_redis_conn_reply(c, 0), err);
}

/* for the engine --------------------------------------------------------------------------------------------------- */

static int check(struct lq_lanes lanes, lade_err *err)
{
    for (size_t i = 0; i < lanes.n; i++) {
        if (lanes.queue[i][0] != '!')
            return 0;
        if (!lanes.queue[i][1])
            return lb_fail(err, LADE_EINVAL, "worker",
                           "queue '!' excludes nothing; write !NAME or !PATTERN");
    }
    return lb_fail(err, LADE_EINVAL, "worker",
                   "queue: exclusions alone (%.60s) name no queue; add one to serve, as *,%.60s",
                   lanes.queue[0], lanes.queue[0]);
}

static void add(lade_queue_info *sum, const lade_queue_info *one)
{
    for (int i = 0; i < LADE_N_STATES; i++)
        sum->count[i] += one->count[i];
}

static int count(struct lq_store *base, struct lq_lanes lanes, lade_queue_info *out, lade_err *err)
{
    struct ls_resque_store *s = ls_resque_of(base);
    struct ls_resque_lanes found = {0};
    lade_queue_info sum = {0};
    bool dynamic = rq_queues_are_dynamic(lanes.queue, lanes.n);
    if (dynamic) {
        lr_mutex_lock(&s->admin.lock);
        int rc = ls_resque_lanes_learn(&found, s, &s->admin, lanes, err);
        lr_mutex_unlock(&s->admin.lock);
        if (rc < 0)
            return rc;
        lanes = ls_resque_lanes_of(&found);
    }
    int rc = LADE_NOT_FOUND;
    for (size_t i = 0; rc >= 0 && lanes.queue && i < lanes.n; i++) {
        lade_queue_info one = {0};
        int of = ls_resque_count_waiting(s, lanes.queue[i], &one, err);
        add(&sum, &one);
        rc = of == LADE_NOT_FOUND ? rc : of;
    }
    ls_resque_lanes_fini(&found);
    if (rc == 0)
        *out = sum;
    return rc;
}

const struct lq_pattern_ops ls_resque_patterns = {rq_queue_is_pattern, check, count};
