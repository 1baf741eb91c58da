/*
 * slots.h - what is otherwise on a server of a cluster
 *
 * There a call may touch keys of one slot only, and a queue's keys are one slot. So what the store keeps for the namespace as a whole
 * is touched by commands of its own, and a call about several queues is one for each, in their order:
 *
 *   <ns>:queues           is added to before anything of a queue is made: one too many does no harm, and forget takes it out last
 *   <ns>:workers          is kept beside a hash "crew" of each queue, which has the same of the workers of that queue
 *   flows                 docs/adr/0053-flows-across-slots.md
 *
 * Which it is, a connection learns when it begins.
 *
 * Thread safety: as the calls they are part of.
 */
#ifndef LADE_STORE_REDIS_SLOTS_H
#define LADE_STORE_REDIS_SLOTS_H

#include "store/redis/store_inner.h"

static inline bool ls_redis_in_slots(const struct ls_redis_store *s)
{
    return __atomic_load_n(&s->slots, __ATOMIC_RELAXED);
}

/* The key "queues" or "workers" of a script that is about this queue: the namespace's, or the queue's own. */
void ls_redis_key_shared(struct ls_redis_cmd *cmd, const struct ls_redis_store *s,
                         const char *queue, const char *name);

/* How many calls one about these lanes is, and the lanes of each. */
static inline size_t ls_redis_n_calls(const struct ls_redis_store *s, struct lq_lanes lanes)
{
    return ls_redis_in_slots(s) ? lanes.n : 1;
}

static inline struct lq_lanes ls_redis_some_lanes(struct lq_lanes lanes, size_t i, size_t n_calls)
{
    return n_calls == 1 ? lanes : (struct lq_lanes){lanes.queue + i, 1};
}

/* A prelude that names these queues, where the script that follows cannot. */
void ls_redis_name_queues(struct ls_redis_conn *c, const struct ls_redis_store *s,
                          const char *const *queue, size_t n);

/* In slots, the wait of a worker of several lanes; wait_slots.c. As ls_redis_wait. */
LADE_CHECKED int ls_redis_wait_slots(struct ls_redis_store *s, struct ls_redis_worker *w,
                                     struct lq_lanes lanes, int64_t deadline, lade_err *err);

/* In slots, when nothing of the queue is left: its name goes, unless somebody has put a job since. Locks the admin link. */
LADE_CHECKED int ls_redis_slots_forget(struct ls_redis_store *s, const char *queue, lade_err *err);

/* In slots: n + 2 commands that ask for keys that are not lade's, and what they say: as read_types of redis_store.c. */
void ls_redis_slots_ask_types(struct ls_redis_conn *c, const struct ls_redis_store *s,
                              const char *const *queue, size_t n);
bool ls_redis_slots_read_types(struct ls_redis_conn *c, const struct ls_redis_store *s, size_t n,
                               char *text, size_t size);

#endif
