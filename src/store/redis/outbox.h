/*
 * outbox.h - messages between slots, shipped (lua/out.lua, docs/adr/0053-flows-across-slots.md)
 *
 * Whoever made a call that may have left messages ships them, and what they leave elsewhere in turn. What a process that died has
 * not shipped a worker finds when it renews its lease, or trims.
 *
 * Thread safety: the caller holds the link of the connection.
 */
#ifndef LADE_STORE_REDIS_OUTBOX_H
#define LADE_STORE_REDIS_OUTBOX_H

#include "queue/schedule_store.h"
#include "store/redis/store_inner.h"

#define LS_REDIS_SCHEDULES "~schedules" /* in place of a queue; no queue has this name */

/* In slots; else nothing. A failure leaves messages for the next who ships; so nobody fails for it. */
void ls_redis_ship(struct ls_redis_store *s, struct ls_redis_conn *c, const char *const *queue,
                   size_t n);

/* What schedules have put into a queue; of the last fire of them the duplicates are noted, unless f is NULL. */
void ls_redis_ship_fires(struct ls_redis_store *s, struct ls_redis_conn *c, struct lq_fire *f);

/* The same, with the admin link locked here. */
void ls_redis_ship_apart(struct ls_redis_store *s, const char *const *queue, size_t n);

/* Whatever any queue has to ship. */
void ls_redis_ship_all(struct ls_redis_store *s, struct ls_redis_conn *c);

#endif
