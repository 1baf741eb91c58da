/*
 * resque_lanes.h - the queues that a worker's list stands for
 *
 * A list with patterns names whichever queues are there. It is looked up in the set of queues with each take, and what came of it counts
 * for the next one; a take that brings nothing is repeated when the set has changed meanwhile.
 *
 * Thread safety: an ls_resque_lanes has one owner; the rest has no state.
 */
#ifndef LADE_STORE_RESQUE_RESQUE_LANES_H
#define LADE_STORE_RESQUE_RESQUE_LANES_H

#include "base/arena.h"
#include "queue/store.h"
#include "store/redis/conn.h"

struct ls_resque_store;
struct ls_resque_link;

#define LS_RESQUE_QUEUES_MAX 65536 /* that a list may stand for */

struct ls_resque_lanes {
    struct lb_arena arena;
    const char **queue; /* in the order to try */
    uint32_t *lane;     /* of each, which of the list */
    size_t n;
    bool known;
};

void ls_resque_lanes_fini(struct ls_resque_lanes *l);
/* As lanes of a script. */
struct lq_lanes ls_resque_lanes_of(const struct ls_resque_lanes *l);
bool ls_resque_lanes_equal(const struct ls_resque_lanes *a, const struct ls_resque_lanes *b);

/* SMEMBERS of the queues, and its reply: *out is made. -LADE_EINVAL: more than LS_RESQUE_QUEUES_MAX. */
void ls_resque_lanes_ask(struct ls_redis_conn *c, const struct ls_resque_store *s);
LADE_CHECKED int ls_resque_lanes_read(struct ls_resque_lanes *out, struct lq_lanes list,
                                      struct ls_redis_cursor cur, lade_err *err);
/* Both at once, over a link that the caller has locked. */
LADE_CHECKED int ls_resque_lanes_learn(struct ls_resque_lanes *out, struct ls_resque_store *s,
                                       struct ls_resque_link *link, struct lq_lanes list,
                                       lade_err *err);

extern const struct lq_pattern_ops ls_resque_patterns;

#endif
