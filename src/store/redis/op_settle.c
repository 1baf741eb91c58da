/*
 * op_settle.c - active -> all that may follow; lua/settle.lua, lua/begin.lua
 *
 * The usual settle is completed, without result and history: such items are only an id and a fence. The others follow
 * with their details.
 *
 * Doubt. The script remembers the fences it settled under the name of this store and a tag. While calls are answered
 * the tag stays; a call that ends without an answer leaves its tag to the list of doubts and the next call gets a new one,
 * so that nothing overwrites what the server remembers. Every settle names the doubts there are, and an item that is
 * stale because a doubtful call had settled it is reported as done.
 */
#include "store/redis/op_settle.h"

#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/map.h"
#include "base/mem.h"

static bool is_special(const struct lq_settle *it)
{
    return it->to != LQ_TO_COMPLETED || it->history.p || it->result.n > 0 || it->failed;
}

static bool is_twin(const struct lq_settle *a, const struct lq_settle *b)
{
    return a->fence == b->fence && lb_slice_eq(a->id, b->id) && strcmp(a->queue, b->queue) == 0;
}

/* The second of two items with the same job and fence is stale, whatever becomes of the first. */
static int find_twins(struct ls_redis_settles *g, lade_err *err)
{
    if (g->n < 2)
        return 0;
    struct lb_map map;
    lb_map_init(&map);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < g->n; i++) {
        struct lq_settle *first = lb_map_get(&map, g->it[i].id);
        if (!first)
            rc = lb_map_put(&map, g->it[i].id, &g->it[i]);
        for (; first && first < &g->it[i] && !g->stale[i]; first++)
            g->stale[i] = is_twin(first, &g->it[i]);
    }
    lb_map_fini(&map);
    return rc < 0 ? lb_fail_nomem(err, "settle") : 0;
}

static size_t find_lane(struct ls_redis_settles *g, const char *queue, size_t last)
{
    if (last < g->n_queues && strcmp(g->queue[last], queue) == 0)
        return last;
    for (size_t i = 0; i < g->n_queues; i++) {
        if (strcmp(g->queue[i], queue) == 0)
            return i;
    }
    g->queue[g->n_queues] = queue;
    g->lane[g->n_queues] = (struct ls_redis_settle_lane){0};
    return g->n_queues++;
}

int ls_redis_settles_init(struct ls_redis_settles *g, struct ls_redis_store *s,
                          struct lq_settle *it, size_t n, bool twins, lade_err *err)
{
    *g = (struct ls_redis_settles){.s = s, .it = it, .n = n};
    if (n == 0)
        return 0;
    uint32_t *lane_of = lb_malloc(n * sizeof(*lane_of));
    g->order = lb_malloc(n * sizeof(*g->order));
    g->lane = lb_malloc(n * sizeof(*g->lane));
    g->queue = lb_malloc(n * sizeof(*g->queue));
    g->stale = lb_calloc(n, sizeof(*g->stale));
    if (!lane_of || !g->order || !g->lane || !g->queue || !g->stale) {
        lb_free(lane_of);
        return lb_fail_nomem(err, "settle");
    }
    size_t last = 0;
    int rc = twins ? find_twins(g, err) : 0;
    for (size_t i = 0; rc == 0 && i < n; i++) {
        if (g->stale[i])
            continue;
        last = find_lane(g, it[i].queue, last);
        lane_of[i] = (uint32_t)last;
        g->lane[last].n++;
        g->lane[last].n_special += is_special(&it[i]);
    }
    for (size_t i = 1; i < g->n_queues; i++)
        g->lane[i].first = g->lane[i - 1].first + g->lane[i - 1].n;
    for (size_t i = 0; i < g->n_queues; i++)
        g->lane[i].n = 0;
    for (size_t i = 0; rc == 0 && i < n; i++) {
        if (g->stale[i])
            continue;
        struct ls_redis_settle_lane *l = &g->lane[lane_of[i]];
        g->order[l->first + l->n++] = (uint32_t)i;
    }
    lb_free(lane_of);
    return rc;
}

void ls_redis_settles_fini(struct ls_redis_settles *g)
{
    lb_free(g->order);
    lb_free(g->lane);
    lb_free(g->queue);
    lb_free(g->stale);
}

static void encode_special(struct ls_redis_cmd *cmd, const struct lq_settle *it, size_t index)
{
    char reason = (char)(it->reason ? it->reason : LQ_REASON_NONE);
    ls_redis_arg_u64(cmd, index);
    ls_redis_arg_int(cmd, it->to);
    ls_redis_arg_int(cmd, LB_MAX(it->delay_ms, 0));
    ls_redis_arg(cmd, &reason, 1);
    ls_redis_arg_int(cmd, it->failed);
    ls_redis_arg_int(cmd, it->history.p != NULL);
    ls_redis_arg_slice(cmd, it->history);
    ls_redis_arg_slice(cmd, it->result);
}

/* Runs of items with one fence, as jobs of one take have. */
static size_t run_length(const struct ls_redis_settles *g, const struct ls_redis_settle_lane *l,
                         size_t from)
{
    size_t i = from;
    while (i < l->n &&
           g->it[g->order[l->first + i]].fence == g->it[g->order[l->first + from]].fence)
        i++;
    return i - from;
}

static void encode_lane(const struct ls_redis_settles *g, struct ls_redis_conn *c, size_t lane,
                        bool repeat)
{
    const struct ls_redis_store *s = g->s;
    const struct ls_redis_settle_lane *l = &g->lane[lane];
    size_t n_runs = 0;
    for (size_t i = 0; i < l->n; i += run_length(g, l, i))
        n_runs++;
    struct ls_redis_cmd *cmd = ls_redis_script_begin(
        c, LS_REDIS_LUA_SETTLE, 1, 11 + s->n_doubts + l->n + 2 * n_runs + 8 * l->n_special);
    ls_redis_key(cmd, s->base.config.ns, g->queue[lane], "meta");
    ls_redis_arg_str(cmd, s->client);
    ls_redis_arg_u64(cmd, s->settle_tag);
    ls_redis_arg_int(cmd, repeat);
    ls_redis_arg_int(cmd, LS_REDIS_MEMORY_MS);
    ls_redis_arg_int(cmd, LB_MAX(s->base.config.keep_completed.count, 0));
    ls_redis_arg_int(cmd, LB_MAX(s->base.config.keep_dead.count, 0));
    ls_redis_arg_u64(cmd, l->n);
    ls_redis_arg_u64(cmd, n_runs);
    ls_redis_arg_u64(cmd, l->n_special);
    ls_redis_arg_u64(cmd, s->n_doubts);
    for (size_t i = 0; i < s->n_doubts; i++)
        ls_redis_arg_u64(cmd, s->doubt[i].tag);
    for (size_t i = 0; i < l->n; i++)
        ls_redis_arg_slice(cmd, g->it[g->order[l->first + i]].id);
    for (size_t i = 0, n; i < l->n; i += n) {
        n = run_length(g, l, i);
        ls_redis_arg_u64(cmd, g->it[g->order[l->first + i]].fence);
        ls_redis_arg_u64(cmd, n);
    }
    for (size_t i = 0; l->n_special > 0 && i < l->n; i++) {
        const struct lq_settle *it = &g->it[g->order[l->first + i]];
        if (is_special(it))
            encode_special(cmd, it, i + 1);
    }
    ls_redis_cmd_end(cmd);
}

/* Doubts that the server has forgotten, too, are over. */
static void age_doubts(struct ls_redis_store *s)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->n_doubts; i++) {
        if (s->doubt[i].until > lb_clock_mono())
            s->doubt[kept++] = s->doubt[i];
    }
    s->n_doubts = kept;
}

void ls_redis_settles_encode(const struct ls_redis_settles *g, struct ls_redis_conn *c, bool repeat)
{
    if (g->s->n_doubts > 0)
        age_doubts(g->s);
    for (size_t i = 0; i < g->n_queues; i++)
        encode_lane(g, c, i, repeat);
}

bool ls_redis_settles_read(struct ls_redis_settles *g, size_t i, struct ls_redis_cursor cur)
{
    const struct ls_redis_settle_lane *l = &g->lane[i];
    size_t n = ls_redis_read_array(&cur);
    for (size_t k = 0; k < n; k++) {
        int64_t at = ls_redis_read_int(&cur);
        if (cur.bad || at < 0 || (size_t)at >= l->n)
            return false;
        g->stale[g->order[l->first + (size_t)at]] = true;
    }
    return !cur.bad;
}

void ls_redis_settles_report(struct ls_redis_settles *g)
{
    for (size_t i = 0; i < g->n; i++)
        g->it[i].outcome = g->stale[i] ? LADE_STALE : 0;
}

void ls_redis_settles_doubt(struct ls_redis_settles *g)
{
    struct ls_redis_store *s = g->s;
    if (g->n == 0)
        return;
    if (s->n_doubts == LS_REDIS_DOUBTS_MAX) /* the oldest gives way: its settles will be STALE */
        memmove(s->doubt, s->doubt + 1, --s->n_doubts * sizeof(s->doubt[0]));
    s->doubt[s->n_doubts++] = (struct ls_redis_doubt){
        s->settle_tag++, lb_deadline_in(LS_REDIS_MEMORY_MS * LADE_MILLISECOND)};
}

/* begin ----------------------------------------------------------------------------------------------------------- */

struct begin_call {
    struct ls_redis_settles group; /* only its grouping */
    const char *worker;
    const struct lq_lease *lease;
};

static void encode_begin(struct ls_redis_conn *c, void *ctx, bool repeat LB_UNUSED)
{
    const struct begin_call *b = ctx;
    const struct ls_redis_settles *g = &b->group;
    for (size_t lane = 0; lane < g->n_queues; lane++) {
        const struct ls_redis_settle_lane *l = &g->lane[lane];
        struct ls_redis_cmd *cmd = ls_redis_script_begin(c, LS_REDIS_LUA_BEGIN, 1, 2 + 2 * l->n);
        ls_redis_key(cmd, g->s->base.config.ns, g->queue[lane], "meta");
        ls_redis_arg_str(cmd, b->worker);
        for (size_t i = 0; i < l->n; i++) {
            const struct lq_lease *lease = &b->lease[g->order[l->first + i]];
            ls_redis_arg_slice(cmd, lease->id);
            ls_redis_arg_u64(cmd, lease->fence);
        }
        ls_redis_cmd_end(cmd);
    }
}

static int run_begin(struct begin_call *b, lade_err *err)
{
    struct ls_redis_settles *g = &b->group;
    struct ls_redis_ask ask = {encode_begin, b, "begin", false, g->queue, g->n_queues};
    struct ls_redis_conn *c;
    int rc = ls_redis_link_conn(g->s, &g->s->work, &c, err);
    if (rc == 0)
        rc = ls_redis_ask(g->s, c, &ask, g->n_queues, err);
    for (size_t i = 0; rc == 0 && i < g->n_queues; i++) {
        if (!ls_redis_settles_read(g, i, ls_redis_conn_reply(c, i)))
            rc = ls_redis_conn_fail_reply(c, "begin", err);
    }
    return rc;
}

int ls_redis_begin(struct lq_store *base, const char *worker, struct lq_lease *lease, size_t n,
                   lade_err *err)
{
    struct ls_redis_store *s = ls_redis_of(base);
    struct begin_call b = {.worker = worker, .lease = lease};
    if (n == 0)
        return 0;
    struct lq_settle *it = lb_calloc(n, sizeof(*it));
    if (!it)
        return lb_fail_nomem(err, "begin");
    for (size_t i = 0; i < n; i++)
        it[i].queue = lease[i].queue;
    int rc = ls_redis_settles_init(&b.group, s, it, n, false, err);
    if (rc == 0) {
        lr_mutex_lock(&s->work.lock);
        rc = run_begin(&b, err);
        lr_mutex_unlock(&s->work.lock);
    }
    for (size_t i = 0; rc == 0 && i < n; i++)
        lease[i].outcome = b.group.stale[i] ? LADE_STALE : 0;
    ls_redis_settles_fini(&b.group);
    lb_free(it);
    return rc;
}
