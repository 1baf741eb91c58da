/*
 * op_settle.c - active -> all that may follow; lua/settle.lua, lua/begin.lua
 *
 * The usual settle is completed, without result and history: such items are only an id and a fence, and where ids follow each
 * other (packs.h) a run of them is the first and how many. The others come with their details, in the order given.
 *
 * Doubt. The script remembers the fences it settled under the name of this store and a tag. While calls are answered
 * the tag stays; a call that ends without an answer leaves its tag to the list of doubts and the next call gets a new one,
 * so that nothing overwrites what the server remembers. Every settle names the doubts there are, and an item that is
 * stale because a doubtful call had settled it is reported as done.
 */
#include "store/redis/op_settle.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "queue/event.h"
#include "queue/flow.h"
#include "store/redis/packs.h"

/* Longer results are kept apart, so that those of a pack can be looked through. */
#define RESULT_IN_PACK_MAX 4096

/* Not plainly completed; results that go with their jobs aside. */
static bool ends_otherwise(const struct lq_settle *it)
{
    return it->to != LQ_TO_COMPLETED || it->history.p || it->failed ||
           (it->result_ttl_ms > 0 && it->result.n > 0);
}

static bool is_special(const struct lq_settle *it)
{
    return ends_otherwise(it) || it->result.n > 0;
}

static int compare_slices(struct lb_slice a, struct lb_slice b)
{
    size_t n = LB_MIN(a.n, b.n);
    int order = n > 0 ? memcmp(a.p, b.p, n) : 0;
    return order ? order : (a.n > b.n) - (a.n < b.n);
}

/* Of steps of one flow by their numbers, so that those that follow each other lie together. */
static int compare_ids(struct lb_slice a, struct lb_slice b)
{
    struct lb_slice flow_a, flow_b;
    uint32_t step_a, step_b;
    if (!lq_flow_has(a) || !lq_flow_split(a, &flow_a, &step_a) ||
        !lq_flow_split(b, &flow_b, &step_b) || !lb_slice_eq(flow_a, flow_b) || step_a == step_b)
        return compare_slices(a, b);
    return step_a < step_b ? -1 : 1;
}

static int compare_settles(const void *a, const void *b)
{
    const struct lq_settle *x = *(struct lq_settle *const *)a;
    const struct lq_settle *y = *(struct lq_settle *const *)b;
    int order = x->queue == y->queue ? 0 : strcmp(x->queue, y->queue);
    if (order == 0)
        order = (x->fence > y->fence) - (x->fence < y->fence);
    if (order == 0)
        order = compare_ids(x->id, y->id);
    return order ? order : (x > y) - (x < y);
}

static void sort_items(struct ls_redis_settles *g)
{
    bool sorted = true;
    for (size_t i = 0; i < g->n; i++) {
        g->sorted[i] = &g->it[i];
        sorted = sorted && (i == 0 || compare_settles(&g->sorted[i - 1], &g->sorted[i]) < 0);
    }
    if (!sorted)
        qsort(g->sorted, g->n, sizeof(struct lq_settle *), compare_settles);
}

static uint32_t index_of(const struct ls_redis_settles *g, const struct lq_settle *it)
{
    return (uint32_t)(it - g->it);
}

/* The second of two items with the same job and fence is stale, whatever becomes of the first. */
static void find_twins(struct ls_redis_settles *g)
{
    for (size_t i = 1; i < g->n; i++) {
        const struct lq_settle *a = g->sorted[i - 1], *b = g->sorted[i];
        g->stale[index_of(g, b)] =
            a->fence == b->fence && lb_slice_eq(a->id, b->id) && strcmp(a->queue, b->queue) == 0;
    }
}

static bool may_run(const struct ls_redis_settles *g, const struct lq_settle *it)
{
    return !ends_otherwise(it) && it->result.n <= RESULT_IN_PACK_MAX && !g->stale[index_of(g, it)];
}

/* Completed steps of flows are runs in any case: they may lie in a pack (lua/fold.lua), with their results. */
static bool is_run(const struct ls_redis_settles *g, size_t at, size_t n)
{
    return n > 1 || (may_run(g, g->sorted[at]) && lq_flow_has(g->sorted[at]->id) &&
                     ls_redis_place_of(g->sorted[at]->id) >= 0);
}

/* How many of sorted[at, end) are a run from `at` on; 1 when the item stands alone, or is a run of one. */
static size_t measure_run(const struct ls_redis_settles *g, size_t at, size_t end)
{
    size_t i = at + 1;
    /* each with its event */
    bool tells = g->s->n_telling > 0 && ls_redis_is_telling(g->s, g->sorted[at]->queue);
    while (i < end && may_run(g, g->sorted[at]) && may_run(g, g->sorted[i]) &&
           g->sorted[i]->fence == g->sorted[at]->fence &&
           g->sorted[i - 1]->goes_on == g->sorted[at]->goes_on &&
           !(tells && (g->sorted[at]->goes_on || lq_flow_has(g->sorted[at]->id))) &&
           ls_redis_id_follows(g->sorted[i - 1]->id, g->sorted[i]->id))
        i++;
    return i - at;
}

static int compare_indices(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Orders the items of a queue, sorted[from, end): those with details as given, then the others, then runs. */
static void fill_lane(struct ls_redis_settles *g, struct ls_redis_settle_lane *l, size_t from,
                      size_t end)
{
    uint32_t *order = g->order + l->first;
    for (size_t i = from, n; i < end; i += n) {
        n = measure_run(g, i, end);
        if (!is_run(g, i, n) && is_special(g->sorted[i]) && !g->stale[index_of(g, g->sorted[i])])
            order[l->n_special++] = index_of(g, g->sorted[i]);
    }
    if (l->n_special > 1)
        qsort(order, l->n_special, sizeof(*order), compare_indices);
    l->n_ids = l->n_special;
    for (size_t i = from, n; i < end; i += n) {
        n = measure_run(g, i, end);
        if (!is_run(g, i, n) && !is_special(g->sorted[i]) && may_run(g, g->sorted[i]))
            order[l->n_ids++] = index_of(g, g->sorted[i]);
    }
    l->n = l->n_ids;
    for (size_t i = from, n; i < end; i += n) {
        n = measure_run(g, i, end);
        if (!is_run(g, i, n))
            continue;
        g->runs[l->run + l->n_runs++] =
            (struct ls_redis_settle_run){(uint32_t)(l->first + l->n), (uint32_t)n};
        for (size_t k = 0; k < n; k++)
            order[l->n++] = index_of(g, g->sorted[i + k]);
        for (size_t k = 0; k < n; k++)
            g->stays[index_of(g, g->sorted[i + k])] = false;
    }
}

/* Cuts the sorted items into queues; one whose items are all stale has none to send. */
static void fill_lanes(struct ls_redis_settles *g)
{
    struct ls_redis_settle_lane next = {0};
    for (size_t from = 0, end; from < g->n; from = end) {
        const char *queue = g->sorted[from]->queue;
        for (end = from + 1; end < g->n; end++) {
            if (g->sorted[end]->queue != queue && strcmp(g->sorted[end]->queue, queue) != 0)
                break;
        }
        struct ls_redis_settle_lane *l = &g->lane[g->n_queues];
        *l = next;
        fill_lane(g, l, from, end);
        next = (struct ls_redis_settle_lane){.first = l->first + l->n, .run = l->run + l->n_runs};
        g->queue[g->n_queues++] = queue;
    }
}

int ls_redis_settles_init(struct ls_redis_settles *g, struct ls_redis_store *s,
                          struct lq_settle *it, size_t n, bool twins, lade_err *err)
{
    *g = (struct ls_redis_settles){.s = s, .it = it, .n = n};
    if (n == 0)
        return 0;
    g->sorted = lb_malloc(n * sizeof(struct lq_settle *));
    g->order = lb_malloc(n * sizeof(*g->order));
    g->runs = lb_malloc(n * sizeof(*g->runs));
    g->lane = lb_malloc(n * sizeof(*g->lane));
    g->queue = lb_malloc(n * sizeof(*g->queue));
    g->stale = lb_calloc(n, sizeof(*g->stale));
    g->stays = lb_malloc(n * sizeof(*g->stays));
    if (!g->sorted || !g->order || !g->runs || !g->lane || !g->queue || !g->stale || !g->stays)
        return lb_fail_nomem(err, "settle");
    sort_items(g);
    memset(g->stays, true, n * sizeof(*g->stays)); /* what is no run does not go on */
    if (twins)
        find_twins(g);
    fill_lanes(g);
    return 0;
}

void ls_redis_settles_fini(struct ls_redis_settles *g)
{
    lb_free(g->sorted);
    lb_free(g->order);
    lb_free(g->runs);
    lb_free(g->lane);
    lb_free(g->queue);
    lb_free(g->stale);
    lb_free(g->stays);
}

/* "class NUL kind NUL text", or nothing. */
static void encode_death(struct ls_redis_cmd *cmd, const struct lq_death *d)
{
    uint8_t text[LQ_CLASS_MAX + LADE_NAME_MAX + LQ_CLASS_TEXT_MAX + 2];
    size_t n = 0;
    const struct lb_slice part[] = {d ? d->name : (struct lb_slice){0},
                                    d ? d->kind : (struct lb_slice){0},
                                    d ? d->text : (struct lb_slice){0}};
    for (size_t i = 0; d && i < LB_ARRAY_LEN(part); i++) {
        size_t k = LB_MIN(part[i].n, sizeof(text) - n);
        if (k > 0)
            memcpy(text + n, part[i].p, k);
        n += k;
        if (i < 2 && n < sizeof(text))
            text[n++] = 0;
    }
    ls_redis_arg(cmd, text, n);
}

static void encode_special(struct ls_redis_cmd *cmd, const struct lq_settle *it, size_t index)
{
    char reason = (char)(it->reason ? it->reason : LQ_REASON_NONE);
    ls_redis_arg_u64(cmd, index);
    ls_redis_arg_int(cmd, it->to);
    ls_redis_arg_int(cmd, LB_MAX(it->to == LQ_TO_COMPLETED ? it->result_ttl_ms : it->delay_ms, 0));
    ls_redis_arg(cmd, &reason, 1);
    ls_redis_arg_int(cmd, it->failed);
    ls_redis_arg_int(cmd, it->history.p != NULL);
    ls_redis_arg_slice(cmd, it->history);
    ls_redis_arg_slice(cmd, it->result);
    encode_death(cmd, it->to == LQ_TO_DEAD ? it->death : NULL);
}

/* A record, or nothing. */
static void encode_event(struct ls_redis_cmd *cmd, enum lade_event_type type,
                         const struct lq_settle *it)
{
    uint8_t text[64 + 3 * 256];
    struct lq_ev e = {.type = type, .attempt = it->attempt, .job = it->id, .kind = it->kind};
    if (type == LADE_EVENT_COMPLETED || type == LADE_EVENT_FAILED)
        e.value = it->took_us;
    if (type == LADE_EVENT_RETRYING)
        e.value = it->delay_ms;
    if (type == LADE_EVENT_FAILED)
        e.reason = it->error;
    if (type == LADE_EVENT_DEAD)
        e.reason = lb_slice_str(lq_event_reason(it->reason));
    if (type == LADE_EVENT_WAITING)
        e.attempt = 0;
    size_t n = type != 0 ? (size_t)(lq_event_write(text, &e) - text) : 0;
    ls_redis_arg(cmd, (const char *)text, n);
}

static void encode_details(struct ls_redis_cmd *cmd, const struct lq_settle *it)
{
    static const enum lade_event_type type[] = {
        [LQ_TO_COMPLETED] = LADE_EVENT_COMPLETED, [LQ_TO_RETRYING] = LADE_EVENT_RETRYING,
        [LQ_TO_READY] = LADE_EVENT_WAITING,       [LQ_TO_DEAD] = LADE_EVENT_DEAD,
        [LQ_TO_CANCELLED] = LADE_EVENT_CANCELLED, [LQ_TO_GONE] = 0,
        [LQ_TO_THROTTLED] = LADE_EVENT_WAITING};

    encode_event(cmd, it->failed ? LADE_EVENT_FAILED : 0, it);
    encode_event(cmd, type[it->to], it);
}

/* Jobs of a run that are of one kind and attempt as one stretch; others one by one. */
static void encode_run_details(struct ls_redis_cmd *cmd, const struct ls_redis_settles *g,
                               const struct ls_redis_settle_run *run)
{
    struct lb_buf b;
    lb_buf_init(&b);
    const struct lq_settle *first = &g->it[g->order[run->at]];
    bool alike = !lq_flow_has(first->id); /* a stretch has no way to name steps */
    for (size_t i = 1; i < run->n && alike; i++) {
        const struct lq_settle *it = &g->it[g->order[run->at + i]];
        alike = it->attempt == first->attempt && lb_slice_eq(it->kind, first->kind);
    }
    uint8_t *p = lb_buf_reserve(&b, lq_event_stretch_size(first, run->n));
    if (p && alike)
        p = lq_event_stretch_begin(p, LADE_EVENT_COMPLETED, first,
                                   (unsigned)ls_redis_place_of(first->id), run->n);
    for (size_t i = 0; i < run->n && p; i++) {
        const struct lq_settle *it = &g->it[g->order[run->at + i]];
        struct lq_ev e = {.type = LADE_EVENT_COMPLETED,
                          .attempt = it->attempt,
                          .value = it->took_us,
                          .job = it->id,
                          .kind = it->kind};
        p = alike ? lq_event_write_number(p, (uint64_t)LB_MAX(it->took_us, 0))
                  : lq_event_write(p, &e);
    }
    ls_redis_arg(cmd, (const char *)b.p, p ? (size_t)(p - b.p) : 0);
    lb_buf_fini(&b);
}

static const struct lq_settle *item_at(const struct ls_redis_settles *g, size_t at)
{
    return &g->it[g->order[at]];
}

/* How many items sent by id have the fence of the one at `from`, as jobs of one take have. */
static size_t group_length(const struct ls_redis_settles *g, const struct ls_redis_settle_lane *l,
                           size_t from)
{
    size_t i = from;
    while (i < l->n_ids && item_at(g, l->first + i)->fence == item_at(g, l->first + from)->fence)
        i++;
    return i - from;
}

/* Those of a run, as lua/pack.lua keeps them. */
static void encode_results(struct ls_redis_cmd *cmd, const struct ls_redis_settles *g,
                           const struct ls_redis_settle_run *run)
{
    size_t size = 0;
    for (size_t i = 0; i < run->n; i++) {
        size_t n = item_at(g, run->at + i)->result.n;
        size += n > 0 ? 6 + n : 0;
    }
    uint8_t *to = ls_redis_arg_room(cmd, size);
    int place = ls_redis_place_of(item_at(g, run->at)->id);
    for (size_t i = 0; i < run->n && to && size > 0; i++) {
        struct lb_slice r = item_at(g, run->at + i)->result;
        uint16_t at = htole16((uint16_t)(place + (int)i));
        uint32_t n = htole32((uint32_t)r.n);
        if (r.n == 0)
            continue;
        memcpy(to, &at, 2);
        memcpy(to + 2, &n, 4);
        memcpy(to + 6, r.p, r.n);
        to += 6 + r.n;
    }
}

/* How many, and who of them goes on: lua/settle.lua. */
static uint64_t run_number(const struct ls_redis_settles *g, const struct ls_redis_settle_run *run)
{
    bool between = run->n > 1 && item_at(g, run->at)->goes_on;
    bool last = item_at(g, run->at + run->n - 1)->goes_on;
    return run->n + (between ? 10000 : 0) + (last ? 20000 : 0);
}

static void encode_ids(struct ls_redis_cmd *cmd, const struct ls_redis_settles *g,
                       const struct ls_redis_settle_lane *l)
{
    for (size_t i = 0; i < l->n_ids; i++)
        ls_redis_arg_slice(cmd, item_at(g, l->first + i)->id);
    for (size_t i = 0, n; i < l->n_ids; i += n) {
        n = group_length(g, l, i);
        ls_redis_arg_u64(cmd, item_at(g, l->first + i)->fence);
        ls_redis_arg_u64(cmd, n);
    }
    for (size_t i = 0; i < l->n_runs; i++) {
        const struct ls_redis_settle_run *run = &g->runs[l->run + i];
        ls_redis_arg_slice(cmd, item_at(g, run->at)->id);
        ls_redis_arg_u64(cmd, run_number(g, run));
        ls_redis_arg_u64(cmd, item_at(g, run->at)->fence);
        encode_results(cmd, g, run);
    }
    for (size_t i = 0; i < l->n_special; i++)
        encode_special(cmd, item_at(g, l->first + i), i + 1);
}

static void encode_telling(struct ls_redis_cmd *cmd, const struct ls_redis_settles *g,
                           const struct ls_redis_settle_lane *l)
{
    for (size_t i = 0; i < l->n_ids; i++)
        encode_details(cmd, item_at(g, l->first + i));
    for (size_t i = 0; i < l->n_runs; i++)
        encode_run_details(cmd, g, &g->runs[l->run + i]);
}

bool ls_redis_settles_move_flows(const struct ls_redis_settles *g, size_t lane)
{
    const struct ls_redis_settle_lane *l = &g->lane[lane];
    for (size_t i = 0; i < l->n; i++) {
        if (lq_flow_has(g->it[g->order[l->first + i]].id))
            return true;
    }
    return false;
}

static size_t count_groups(const struct ls_redis_settles *g, const struct ls_redis_settle_lane *l)
{
    size_t n = 0;
    for (size_t i = 0; i < l->n_ids; i += group_length(g, l, i))
        n++;
    return n;
}

static bool is_telling(const struct ls_redis_settles *g, size_t lane)
{
    return g->s->n_telling > 0 && ls_redis_is_telling(g->s, g->queue[lane]);
}

size_t ls_redis_settles_n_args(const struct ls_redis_settles *g, size_t lane)
{
    const struct ls_redis_settle_lane *l = &g->lane[lane];
    size_t n =
        11 + g->s->n_doubts + l->n_ids + 2 * count_groups(g, l) + 4 * l->n_runs + 9 * l->n_special;
    return n + (is_telling(g, lane) ? 2 * l->n_ids + l->n_runs : 0);
}

void ls_redis_settles_add_args(const struct ls_redis_settles *g, struct ls_redis_cmd *cmd,
                               size_t lane, bool repeat)
{
    const struct ls_redis_store *s = g->s;
    const struct ls_redis_settle_lane *l = &g->lane[lane];
    ls_redis_arg_str(cmd, s->client);
    ls_redis_arg_u64(cmd, s->settle_tag);
    ls_redis_arg_int(cmd, repeat);
    ls_redis_arg_int(cmd, LS_REDIS_MEMORY_MS);
    ls_redis_arg_int(cmd, LB_MAX(s->base.config.keep_completed.count, 0));
    ls_redis_arg_int(cmd, LB_MAX(s->base.config.keep_dead.count, 0));
    ls_redis_arg_u64(cmd, l->n_ids);
    ls_redis_arg_u64(cmd, count_groups(g, l));
    ls_redis_arg_u64(cmd, l->n_special);
    ls_redis_arg_u64(cmd, s->n_doubts);
    ls_redis_arg_u64(cmd, l->n_runs);
    for (size_t i = 0; i < s->n_doubts; i++)
        ls_redis_arg_u64(cmd, s->doubt[i].tag);
    encode_ids(cmd, g, l);
    if (is_telling(g, lane))
        encode_telling(cmd, g, l);
}

bool ls_redis_settles_are_plain(const struct ls_redis_settles *g, size_t lane)
{
    const struct ls_redis_settle_lane *l = &g->lane[lane];
    return l->n_special + l->n_runs + g->s->n_doubts == 0 && !is_telling(g, lane);
}

static void encode_lane(const struct ls_redis_settles *g, struct ls_redis_conn *c, size_t lane,
                        bool repeat)
{
    enum ls_redis_lua script =
        ls_redis_settles_move_flows(g, lane) ? LS_REDIS_LUA_FLOW_SETTLE : LS_REDIS_LUA_SETTLE;
    struct ls_redis_cmd *cmd =
        ls_redis_script_begin(c, script, 1, 1 + ls_redis_settles_n_args(g, lane));
    ls_redis_key(cmd, g->s->base.config.ns, g->queue[lane], "meta");
    ls_redis_settles_add_args(g, cmd, lane, repeat);
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

void ls_redis_settles_prepare(const struct ls_redis_settles *g)
{
    if (g->s->n_doubts > 0)
        age_doubts(g->s);
}

void ls_redis_settles_encode(const struct ls_redis_settles *g, struct ls_redis_conn *c, bool repeat)
{
    ls_redis_settles_prepare(g);
    for (size_t i = 0; i < g->n_queues; i++)
        encode_lane(g, c, i, repeat);
}

bool ls_redis_settles_read(struct ls_redis_settles *g, size_t i, struct ls_redis_cursor cur)
{
    const struct ls_redis_settle_lane *l = &g->lane[i];
    size_t n = ls_redis_read_array(&cur);
    for (size_t k = 0; k < n; k++) {
        int64_t at = ls_redis_read_int(&cur);
        bool stays = at < 0;
        at = stays ? -1 - at : at;
        if (cur.bad || at < 0 || (size_t)at >= l->n)
            return false;
        (stays ? g->stays : g->stale)[g->order[l->first + (size_t)at]] = true;
    }
    return !cur.bad;
}

void ls_redis_settles_report(struct ls_redis_settles *g)
{
    for (size_t i = 0; i < g->n; i++) {
        struct lq_settle *it = &g->it[i];
        it->outcome = g->stale[i] ? LADE_STALE : 0;
        it->went_on = it->goes_on && !g->stale[i] && !g->stays[i];
    }
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

int ls_redis_settles_ask(struct ls_redis_settles *g, const struct ls_redis_ask *ask, lade_err *err)
{
    struct ls_redis_conn *c;
    int rc = ls_redis_link_conn(g->s, &g->s->work, &c, err);
    if (rc == 0)
        rc = ls_redis_ask(g->s, c, ask, g->n_queues, err);
    for (size_t i = 0; rc == 0 && i < g->n_queues; i++) {
        if (!ls_redis_settles_read(g, i, ls_redis_conn_reply(c, i)))
            rc = ls_redis_conn_fail_reply(c, ask->where, err);
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
        struct ls_redis_ask ask = {encode_begin,    &b, "begin", false, b.group.queue,
                                   b.group.n_queues};
        rc = ls_redis_settles_ask(&b.group, &ask, err);
        lr_mutex_unlock(&s->work.lock);
    }
    for (size_t i = 0; rc == 0 && i < n; i++)
        lease[i].outcome = b.group.stale[i] ? LADE_STALE : 0;
    ls_redis_settles_fini(&b.group);
    lb_free(it);
    return rc;
}
