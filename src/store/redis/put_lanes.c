/* put_lanes.c - see put_lanes.h */
#include "store/redis/put_lanes.h"

#include <inttypes.h>
#include <string.h>

#include "base/base.h"
#include "base/err.h"
#include "base/map.h"
#include "base/mem.h"
#include "store/redis/packs.h"

#define LEVEL_UNSET (-2)

static size_t find_lane(struct ls_redis_put_call *pc, const char *queue, size_t last)
{
    if (last < pc->n_lanes && strcmp(pc->lane[last].queue, queue) == 0)
        return last;
    for (size_t i = 0; i < pc->n_lanes; i++) {
        if (strcmp(pc->lane[i].queue, queue) == 0)
            return i;
    }
    pc->lane[pc->n_lanes] = (struct ls_redis_put_lane){.queue = queue, .level = LEVEL_UNSET};
    return pc->n_lanes++;
}

/* By the body, as the script reads it where the lane is not plain. */
static void note_level(struct ls_redis_put_lane *l, const struct lq_put *p)
{
    int level = p->body.n > LQ_BODY_LEVEL_AT ? p->body.p[LQ_BODY_LEVEL_AT] - '0' : -1;
    bool plain = level >= 0 && level < LQ_N_LEVELS && !ls_redis_put_is_special(p);
    bool fits = plain && (l->level == LEVEL_UNSET || l->level == level);
    l->level = fits ? level : -1;
    l->odd |= !plain;
    if (plain)
        l->levels |= 1U << level;
}

uint32_t ls_redis_measure_run(const struct ls_redis_put_call *pc, size_t at, size_t end)
{
    const struct lq_put *first = &pc->put[pc->order[at]], *last = first;
    size_t bytes = first->body.n + 1, n = 1;
    while (at + n < end && n < LS_REDIS_PACK_JOBS) {
        const struct lq_put *next = &pc->put[pc->order[at + n]];
        bytes += next->body.n + 1;
        if (bytes > LS_REDIS_PACK_BYTES || !ls_redis_id_follows(last->id, next->id) ||
            next->body.p[LQ_BODY_LEVEL_AT] != first->body.p[LQ_BODY_LEVEL_AT])
            break;
        last = next;
        n++;
    }
    return (uint32_t)n;
}

static int find_runs(struct ls_redis_put_call *pc, lade_err *err)
{
    pc->run = lb_malloc(pc->n * sizeof(*pc->run));
    if (!pc->run)
        return lb_fail_nomem(err, "put");
    for (size_t i = 0; i < pc->n_lanes; i++) {
        const struct ls_redis_put_lane *l = &pc->lane[i];
        size_t end = l->first + l->n;
        for (size_t at = l->first; ls_redis_put_is_packed(l) && at < end; at += pc->run[at])
            pc->run[at] = ls_redis_measure_run(pc, at, end);
    }
    return 0;
}

/* An id that comes twice needs the script's closer look. */
static int find_twins(struct ls_redis_put_call *pc, lade_err *err)
{
    struct lb_map map;
    lb_map_init(&map);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < pc->n_lanes; i++) {
        struct ls_redis_put_lane *l = &pc->lane[i];
        for (size_t k = 0; rc == 0 && l->known && l->level >= 0 && l->n > 1 && k < l->n; k++) {
            struct lq_put *p = &pc->put[pc->order[l->first + k]];
            struct lq_put *other = lb_map_get(&map, p->id);
            if (!other)
                rc = lb_map_put(&map, p->id, p);
            else
                l->level = -1;
        }
    }
    lb_map_fini(&map);
    return rc < 0 ? lb_fail_nomem(err, "put") : 0;
}

/* Sorts the items into lanes, keeping their order: counts, then places. */
int ls_redis_put_group(struct ls_redis_put_call *pc, lade_err *err)
{
    uint32_t *lane_of = lb_malloc(pc->n * sizeof(*lane_of));
    pc->order = lb_malloc(pc->n * sizeof(*pc->order));
    pc->lane = lb_malloc(pc->n * sizeof(*pc->lane));
    if (!lane_of || !pc->order || !pc->lane) {
        lb_free(lane_of);
        return lb_fail_nomem(err, "put");
    }
    size_t last = 0, bytes = 0;
    for (size_t i = 0; i < pc->n; i++) {
        const struct lq_put *p = &pc->put[i];
        last = find_lane(pc, p->queue, last);
        lane_of[i] = (uint32_t)last;
        struct ls_redis_put_lane *l = &pc->lane[last];
        l->n++;
        l->n_special += ls_redis_put_is_special(p);
        note_level(l, p);
        l->untimed |= !ls_redis_id_time(p->id);
        l->known |= !p->fresh;
        l->longest = LB_MAX(l->longest, p->body.n);
        bytes += p->body.n;
    }
    for (size_t i = 1; i < pc->n_lanes; i++)
        pc->lane[i].first = pc->lane[i - 1].first + pc->lane[i - 1].n;
    for (size_t i = 0; i < pc->n_lanes; i++)
        pc->lane[i].n = 0;
    for (size_t i = 0; i < pc->n; i++) {
        struct ls_redis_put_lane *l = &pc->lane[lane_of[i]];
        pc->order[l->first + l->n++] = (uint32_t)i;
    }
    lb_free(lane_of);
    if (bytes > LS_REDIS_PUT_BYTES)
        return lb_fail(err, LADE_ETOOBIG, "put",
                       "%zu bytes of jobs in one call, at most %" PRIu64
                       ": enqueue fewer at a time",
                       bytes, LS_REDIS_PUT_BYTES);
    int rc = find_runs(pc, err);
    return rc < 0 ? rc : find_twins(pc, err);
}
