/*
 * homes.h - where flows lie on a server of a cluster (docs/adr/0053-flows-across-slots.md)
 *
 * A flow lies whole in the slot of one queue, its home: that of its first step. <ns>:flow:<id> names it, a key in a slot of its own, and
 * <ns>:homes has all queues that are or were one. That key is named before the flow is put and goes after it, so it may be there without a flow;
 * and where it is missing all homes are asked.
 *
 * Thread safety: under the admin link.
 */
#ifndef LADE_STORE_REDIS_HOMES_H
#define LADE_STORE_REDIS_HOMES_H

#include "queue/flow_store.h"
#include "store/redis/store_inner.h"

/* 0: `home` has its name; LADE_NOT_FOUND; < 0. */
LADE_CHECKED int ls_redis_find_home(struct ls_redis_store *s, struct ls_redis_conn *c,
                                    struct lb_slice id, char home[LADE_NAME_MAX + 1],
                                    lade_err *err);

/*
 * Before a flow is put: chooses its home, which is that of an earlier one of the same id, if such a one was there.
 */
LADE_CHECKED int ls_redis_choose_home(struct ls_redis_store *s, struct ls_redis_conn *c,
                                      const struct lq_flow *flow, char home[LADE_NAME_MAX + 1],
                                      lade_err *err);

/* A prelude of the put: what names the flow, its home and its queues. */
void ls_redis_name_flow(struct ls_redis_conn *c, const struct ls_redis_store *s,
                        const struct lq_flow *flow, const char *home);

/* All homes, sorted, in the arena. */
LADE_CHECKED int ls_redis_homes(struct ls_redis_store *s, struct ls_redis_conn *c,
                                struct lb_arena *arena, const char ***name, size_t *n,
                                lade_err *err);

#endif
