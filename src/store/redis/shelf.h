/*
 * shelf.h - the envelopes of flows that this process works on, so that only the first step of a flow has to fetch them
 *
 * A folded flow (lua/fold.lua) keeps the envelopes of all its steps in one string, which never changes for a step that waits. Who has
 * fetched it for one step has those of the next ones too. What is on the shelf is used for steps alone that a call leased to
 * whoever settled the one before (lua/flow_trip.lua): that worker got a step of the same flow before, by fetching, or in the same
 * way; so it is never that of another flow which had the same id.
 *
 * Bounds: LS_REDIS_SHELF_SLOTS strings of at most LS_REDIS_SHELF_BYTES; a newer one takes the place of an older. Nothing depends on
 * what is here: without memory there is less.
 *
 * Thread safety: none; under the work link.
 */
#ifndef LADE_STORE_REDIS_SHELF_H
#define LADE_STORE_REDIS_SHELF_H

#include "base/slice.h"

#define LS_REDIS_SHELF_SLOTS 512
#define LS_REDIS_SHELF_BYTES 4096

struct ls_redis_shelf;

/* NULL is an empty shelf for all of these. */
void ls_redis_shelf_free(struct ls_redis_shelf *s);
/* Puts the string of a flow, by a name; *s is made when it is not there. */
void ls_redis_shelf_put(struct ls_redis_shelf **s, struct lb_slice name, struct lb_slice bytes);
/* Empty when it is not here; good until the next call. */
struct lb_slice ls_redis_shelf_get(const struct ls_redis_shelf *s, struct lb_slice name);
void ls_redis_shelf_drop(struct ls_redis_shelf *s, struct lb_slice name);

#endif
