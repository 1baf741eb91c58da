/* memory_ops.h - the ops of the memory store, as queue/store.h defines them; by file op_*.c */
#ifndef LADE_STORE_MEMORY_OPS_H
#define LADE_STORE_MEMORY_OPS_H

#include "queue/schedule_store.h"
#include "queue/store.h"

extern const struct lq_schedule_ops ls_memory_schedule_ops;
extern const struct lq_bound_ops ls_memory_bound_ops;
int ls_memory_put(struct lq_store *s, struct lq_put *put, size_t n, lade_err *err);
int ls_memory_settle_take(struct lq_store *s, struct lq_settle *it, size_t n,
                          const struct lq_take *take, struct lq_leased_vec *out, lade_err *err);
/* The take half, with the lock held. */
int ls_memory_take(struct lq_store *s, const struct lq_take *take, struct lq_leased_vec *out,
                   int64_t now_ms, lade_err *err);
int ls_memory_note(struct lq_store *s, struct lq_note *it, size_t n, lade_err *err);
int ls_memory_begin(struct lq_store *s, const char *worker, struct lq_lease *lease, size_t n,
                    lade_err *err);
int ls_memory_reclaim(struct lq_store *s, const struct lq_take *take, struct lq_leased_vec *out,
                      lade_err *err);
int ls_memory_renew(struct lq_store *s, const struct lq_beat *beat, struct lq_stop *stop,
                    size_t max, size_t *n_stop, lade_err *err);
int ls_memory_leave(struct lq_store *s, const char *worker, struct lq_lanes lanes, lade_err *err);
int ls_memory_wait(struct lq_store *s, const char *worker, struct lq_lanes lanes, int64_t deadline,
                   lade_err *err);
void ls_memory_wake(struct lq_store *s, const char *worker);
int ls_memory_workers(struct lq_store *s, struct lb_arena *arena, lade_worker_info **out, size_t *n,
                      lade_err *err);
int ls_memory_promote(struct lq_store *s, struct lq_lanes lanes, size_t max, size_t *n,
                      int64_t *next_ms, lade_err *err);
int ls_memory_trim(struct lq_store *s, struct lq_lanes lanes, size_t max, size_t *n, lade_err *err);
int ls_memory_queues(struct lq_store *s, struct lb_arena *arena, const char ***name, size_t *n,
                     lade_err *err);
int ls_memory_count(struct lq_store *s, const char *queue, lade_queue_info *out, lade_err *err);
int ls_memory_get(struct lq_store *s, const char *queue, struct lb_slice id, struct lq_row_vec *out,
                  lade_err *err);
int ls_memory_list(struct lq_store *s, const char *queue, enum lade_state state,
                   lade_cursor *cursor, size_t limit, struct lq_row_vec *out, lade_err *err);
int ls_memory_act(struct lq_store *s, const char *queue, enum lade_job_verb verb,
                  const struct lb_slice *id, size_t n, int *outcome, lade_err *err);
int ls_memory_purge(struct lq_store *s, const char *queue, enum lade_state state, size_t max,
                    size_t *n, lade_err *err);
int ls_memory_redrive(struct lq_store *s, const char *queue, size_t max, size_t *n, lade_err *err);
int ls_memory_pause(struct lq_store *s, const char *queue, bool paused, lade_err *err);
int ls_memory_forget(struct lq_store *s, const char *queue, lade_err *err);
int ls_memory_check(struct lq_store *s, lq_finding_fn report, void *ctx, lade_err *err);
int ls_memory_classes(struct lq_store *s, const char *queue, struct lq_class_vec *out,
                      lade_err *err);
int ls_memory_list_class(struct lq_store *s, const char *queue, struct lb_slice name,
                         int64_t from_ms, lade_cursor *cursor, size_t limit, struct lq_row_vec *out,
                         lade_err *err);
int ls_memory_change(struct lq_store *s, const char *queue, enum lq_change_verb verb,
                     struct lq_change *it, size_t n, lade_err *err);
int ls_memory_flow_put(struct lq_store *s, struct lq_flow *flow, lade_err *err);
int ls_memory_flow_get(struct lq_store *s, struct lb_slice id, struct lq_flow_row_vec *out,
                       lade_err *err);
int ls_memory_flow_list(struct lq_store *s, lade_cursor *cursor, size_t limit,
                        struct lq_flow_row_vec *out, lade_err *err);
int ls_memory_flow_inputs(struct lq_store *s, struct lb_slice id, uint32_t node, size_t first,
                          size_t max, struct lq_input_vec *out, lade_err *err);
int ls_memory_limit_set(struct lq_store *s, const char *queue, enum lade_limit_scope scope,
                        struct lb_slice key, const struct lq_limit *limit, lade_err *err);
int ls_memory_limit_get(struct lq_store *s, const char *queue, enum lade_limit_scope scope,
                        struct lb_slice key, struct lq_limit *out, lade_err *err);
int ls_memory_key_list(struct lq_store *s, const char *queue, lade_cursor *cursor, size_t limit,
                       struct lq_key_row_vec *out, lade_err *err);
int ls_memory_key_get(struct lq_store *s, const char *queue, struct lb_slice key,
                      struct lq_key_row_vec *out, lade_err *err);
int ls_memory_key_pause(struct lq_store *s, const char *queue, struct lb_slice key, bool paused,
                        lade_err *err);
int ls_memory_flow_act(struct lq_store *s, struct lb_slice id, enum lade_flow_verb verb,
                       lade_err *err);
int ls_memory_results(struct lq_store *s, const char *queue, const struct lb_slice *id, size_t n,
                      struct lb_arena *arena, struct lq_result *out, lade_err *err);
int ls_memory_watch(struct lq_store *s, const char *waiter, struct lq_watch *it, size_t n,
                    lade_err *err);
void ls_memory_unwatch(struct lq_store *s, const char *waiter, struct lq_lanes lanes);
int ls_memory_say(struct lq_store *s, struct lq_say *it, size_t n, lade_err *err);
int ls_memory_words(struct lq_store *s, const char *queue, struct lb_slice id, struct lq_words *out,
                    lade_err *err);
int ls_memory_events_set(struct lq_store *s, const char *queue, uint32_t cap, lade_err *err);
int ls_memory_events_get(struct lq_store *s, const char *queue, lade_events_info *out,
                         lade_err *err);
int ls_memory_event_read(struct lq_store *s, const char *queue, uint64_t after, size_t max,
                         struct lq_event_vec *out, lade_err *err);

extern const struct lq_control_ops ls_memory_control_ops;

/* Between the files of ops, all with the home's lock held. */
struct lq_report;
struct ls_memory_worker;
/* op_control.c: what a renewal tells; NULL is allowed. What there is no memory for is as it was, and told again. */
void ls_memory_control_tell(struct ls_memory_worker *w, const struct lq_report *report,
                            int64_t now_ms);
struct ls_memory_job;
struct ls_memory_key;
/* op_admin.c: one job of act; j NULL is NOT_FOUND. */
int ls_memory_act_on(struct lq_store *s, struct ls_memory_job *j, enum lade_job_verb verb,
                     int64_t now_ms);
/* op_look.c: room for max rows more, NULL without memory; a row of a job, false without; cursors, false for a foreign one. */
struct lq_row *ls_memory_rows_reserve(struct lq_row_vec *out, size_t max);
bool ls_memory_row_copy(struct lb_arena *a, const struct ls_memory_job *j, int64_t now_ms,
                        struct lq_row *row);
bool ls_memory_cursor_read(const lade_cursor *cursor, struct ls_memory_key *key);
void ls_memory_cursor_write(lade_cursor *cursor, struct ls_memory_key key);

#endif
