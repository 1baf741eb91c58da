/*
 * op_settle.h - the settles of one call, grouped by queue, as part of a round trip
 *
 * Thread safety: none; everything between begin and report under the work link.
 */
#ifndef LADE_STORE_REDIS_OP_SETTLE_H
#define LADE_STORE_REDIS_OP_SETTLE_H

#include "store/redis/store_inner.h"

struct ls_redis_settle_lane {
    size_t first, n; /* in `order`: those sent by id, then those in runs */
    size_t n_ids, n_special;
    size_t run, n_runs; /* in `runs` */
};

/*
 * Plain completed jobs of one fence whose ids follow each other. All but the last go on, or none does; so that, and whether the last does, is
 * told with the number.
 */
struct ls_redis_settle_run {
    uint32_t at, n; /* in `order` */
};

struct ls_redis_settles {
    struct ls_redis_store *s;
    struct lq_settle *it;
    size_t n;
    struct lq_settle **sorted; /* by queue, fence, id */
    uint32_t *order;
    struct ls_redis_settle_run *runs;
    struct ls_redis_settle_lane *lane;
    const char **queue;
    size_t n_queues; /* scripts, and so replies */
    bool *stale;     /* of each item */
    bool *stays;     /* of each item that goes on: the step behind it was not leased */
};

/* twins: look for items that are the same settle twice. */
LADE_CHECKED int ls_redis_settles_init(struct ls_redis_settles *g, struct ls_redis_store *s,
                                       struct lq_settle *it, size_t n, bool twins, lade_err *err);
void ls_redis_settles_fini(struct ls_redis_settles *g);
void ls_redis_settles_encode(const struct ls_redis_settles *g, struct ls_redis_conn *c,
                             bool repeat);
/* As part of a call that does more: before the first, then the arguments of lua/settle.lua for one queue and how many these are. */
void ls_redis_settles_prepare(const struct ls_redis_settles *g);
size_t ls_redis_settles_n_args(const struct ls_redis_settles *g, size_t lane);
void ls_redis_settles_add_args(const struct ls_redis_settles *g, struct ls_redis_cmd *cmd,
                               size_t lane, bool repeat);
/* All of a queue are completed jobs by id, and nothing is in doubt; some are of workflows. */
bool ls_redis_settles_are_plain(const struct ls_redis_settles *g, size_t lane);
bool ls_redis_settles_move_flows(const struct ls_redis_settles *g, size_t lane);
/* Reply i; false when it is not what the script promises. */
bool ls_redis_settles_read(struct ls_redis_settles *g, size_t i, struct ls_redis_cursor cur);
/* A round trip of one script a queue, with nothing else in it; all its replies are read. Under the work link. */
LADE_CHECKED int ls_redis_settles_ask(struct ls_redis_settles *g, const struct ls_redis_ask *ask,
                                      lade_err *err);
/* Writes the outcomes, once all replies were read. */
void ls_redis_settles_report(struct ls_redis_settles *g);
/* The call failed and may have been executed: later settles are compared with it. */
void ls_redis_settles_doubt(struct ls_redis_settles *g);

#endif
