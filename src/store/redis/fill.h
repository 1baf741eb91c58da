/*
 * fill.h - envelopes of leased jobs that lie in packs
 *
 * Thread safety: none; under the work link.
 */
#ifndef LADE_STORE_REDIS_FILL_H
#define LADE_STORE_REDIS_FILL_H

#include "store/redis/store_inner.h"

#define LS_REDIS_FOLLOW UINT32_MAX /* in lq_leased.n_follow until its envelopes are there */

/*
 * For a run of n jobs of one pack, of its bytes, in one copy. NOT_FOUND: they are not in this pack; EMPTY: they have them, and the pack
 * has none behind theirs.
 */
int ls_redis_fill_run(struct ls_redis_store *s, struct lq_leased_vec *out, struct lq_leased *job,
                      size_t n, struct lb_slice bytes);
/* For steps that a call leased to who settled those before: from the shelf; without, when they are not there. */
int ls_redis_fill_from_shelf(struct ls_redis_store *s, struct lq_leased_vec *out,
                             struct lq_leased *job, size_t n);
/* Steps of chains (LS_REDIS_FOLLOW in n_follow) get those that follow. */
void ls_redis_fill_follow(const struct ls_redis_store *s, struct lq_leased_vec *out,
                          struct lq_leased *job, struct lb_slice bytes);
/* The bytes were fetched for this job; filled: what ls_redis_fill_run said. */
void ls_redis_put_on_shelf(struct ls_redis_store *s, const struct lq_leased *job, int filled,
                           struct lb_slice bytes);

#endif
