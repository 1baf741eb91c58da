/* model_ops.h - what model_ops.c and model_acts.c share */
#ifndef LADE_TESTS_MODEL_MODEL_OPS_H
#define LADE_TESTS_MODEL_MODEL_OPS_H

#include "model.h"

void *tm_alloc(struct world *w, size_t size);
char *tm_draw_id(struct world *w);
char *tm_block_id(struct world *w, unsigned block, unsigned place);
void tm_draw_put(struct world *w, struct lq_put *p);
void tm_op_put_fresh(struct world *w);
void tm_op_settle_run(struct world *w);
struct lq_lanes tm_draw_lanes(struct world *w);
struct lq_lanes tm_all_lanes(struct world *w);
void tm_same_result(struct world *w, const char *op, const int *rc, const lade_err *err);
/* The lease of a job that is not over, or NULL. */
struct lease *tm_find_lease(struct world *w, int queue, const char *id);
/* NULL when there was none yet. */
struct lease *tm_draw_lease(struct world *w);
/* The lease of the id behind this one, of the same take; NULL when there is none. */
struct lease *tm_next_lease(struct world *w, const struct lease *l);
void tm_add_lease(struct world *w, const struct lq_take *take, const struct lq_leased *m,
                  const struct lq_leased *s);
void tm_compare_taken(struct world *w, const struct lq_take *take, const struct lq_leased_vec *got);

/* model_bodies.c; at least 2 bytes */
struct lb_slice tm_draw_body(struct world *w, int level, struct lb_slice key);
/* Of a job that has this one: an envelope stays one, with another payload. */
struct lb_slice tm_draw_edit(struct world *w, struct lb_slice old);
struct lb_slice tm_draw_result(struct world *w);
/* model_company.c: nothing but in dressed runs */
void tm_draw_extent(struct world *w, struct lq_take *take);
/* What this side is to take. */
struct lq_take tm_extent_of(const struct world *w, int side, const struct lq_take *take);
/* The model has what the store has, of what it took. */
void tm_follow(struct world *w, const struct lq_take *take, struct lq_leased_vec *got);
void tm_sort_taken(struct lq_leased_vec *got);
/* model_schedules.c */
void tm_op_schedule(struct world *w);

/* model_dead.c */
const struct lq_death *tm_draw_death(struct world *w);
void tm_op_change(struct world *w);
/* model_keys.c; a key is empty when the run has none */
struct lb_slice tm_draw_key(struct world *w);
void tm_op_limit(struct world *w);
void tm_op_pause_key(struct world *w);
void tm_op_look_at_keys(struct world *w);
/* model_extra.c */
void tm_op_bound(struct world *w);
int64_t tm_draw_result_ttl(struct world *w);
void tm_op_say(struct world *w);
void tm_op_events(struct world *w);
/* model_trip.c */
void tm_op_trip(struct world *w);

void tm_op_put(struct world *w);
void tm_op_settle_take(struct world *w);

#endif
