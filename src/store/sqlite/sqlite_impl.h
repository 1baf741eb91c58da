/* sqlite_impl.h - the store's own struct and its ops, for the files of this folder */
#ifndef LADE_SQLITE_IMPL_H
#define LADE_SQLITE_IMPL_H

#include "queue/event.h"
#include "queue/schedule_store.h"
#include "queue/store.h"
#include "rt/seam.h"
#include "store/sqlite/db.h"
#include "store/sqlite/tender.h"
#include "store/sqlite/waiters.h"
#include "store/sqlite/writer.h"

struct ls_sqlite {
    struct lq_store base;
    char *path;
    int64_t busy_ms; /* busy_timeout of the URL, or config.timeout_ms */
    bool full;       /* synchronous=full */

    struct ls_sqlite_writer writer; /* every op that writes, but renew */

    struct ls_sqlite_tender tender; /* folds the log back beside the writer */

    struct lr_mutex beat_lock;
    struct ls_sqlite_db beat; /* guarded by: beat_lock */

    struct lr_mutex read_lock;
    struct ls_sqlite_db read; /* guarded by: read_lock */

    struct ls_sqlite_waiters waiters;

    struct lr_mutex rings_lock;
    struct ls_sqlite_ring *rings; /* guarded by: rings_lock; foreign.c */
};

static inline struct ls_sqlite *ls_sqlite_of(struct lq_store *s)
{
    return (struct ls_sqlite *)(void *)s;
}

/* foreign.c */
void ls_sqlite_foreign_fini(struct ls_sqlite *s);

/* The store's clock. */
int64_t ls_sqlite_now_ms(const struct ls_sqlite *s);

/*
 * op_list.c: a read transaction on the connection for readers. `tx` is used for its error handling; nothing is written.
 * Leave is owed whatever enter gave; it returns rc.
 */
LADE_CHECKED int ls_sqlite_read_enter(struct ls_sqlite *s, struct ls_sqlite_tx *tx, const char *op,
                                      lade_err *err);
int ls_sqlite_read_leave(struct ls_sqlite *s, struct ls_sqlite_tx *tx, int rc);

extern const struct lq_schedule_ops ls_sqlite_schedule_ops;
extern const struct lq_bound_ops ls_sqlite_bound_ops;
/* op_bound.c: LADE_FULL with the outcomes of a put when its jobs do not fit, 0 when they do. */
LADE_CHECKED int ls_sqlite_bounds_ask(struct ls_sqlite_tx *tx, struct lq_put *put, size_t n);
/* op_put.c: whether the queue knows the id; else *rc is 0 or a failure. */
bool ls_sqlite_put_known(struct ls_sqlite_tx *tx, const struct ls_sqlite_queue *q,
                         struct lb_slice id, int *rc);
struct ls_sqlite_lock;
/* op_put.c: LADE_DUPLICATE with the holder set when the key is held; else 0. */
LADE_CHECKED int ls_sqlite_put_lock(struct ls_sqlite_tx *tx, const struct ls_sqlite_queue *q,
                                    struct lq_put *it, struct ls_sqlite_lock *lock);
/* Whether n more jobs fit; q may be NULL. */
bool ls_sqlite_bound_fits(const struct ls_sqlite_queue *q, int64_t n, int64_t bytes);
/* Ready, scheduled or retrying. */
bool ls_sqlite_state_waits(int64_t state);
/* Adds the bytes of a run that waits to those of its queue, which has a bound on them; sign -1 takes them off. */
LADE_CHECKED int ls_sqlite_bytes_count(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q,
                                       struct ls_sqlite_run r, int sign);
/* The bytes of all jobs of a queue that wait. */
LADE_CHECKED int ls_sqlite_bytes_all(struct ls_sqlite_tx *tx, int64_t queue, int64_t *sum);
int ls_sqlite_put(struct lq_store *s, struct lq_put *put, size_t n, lade_err *err);
int ls_sqlite_settle_take(struct lq_store *s, struct lq_settle *it, size_t n,
                          const struct lq_take *take, struct lq_leased_vec *out, lade_err *err);
/* op_settle.c: n of them in a transaction. */
LADE_CHECKED int ls_sqlite_settle_run(struct ls_sqlite_tx *tx, struct lq_settle *it, size_t n);
/* op_note.c, in two parts: the number of the job under that fence, or LADE_STALE; and its new history. */
LADE_CHECKED int ls_sqlite_note_find(struct ls_sqlite_tx *tx, const struct lq_note *it,
                                     int64_t *seq);
LADE_CHECKED int ls_sqlite_note_write(struct ls_sqlite_tx *tx, int64_t seq,
                                      struct lb_slice history);
int ls_sqlite_note(struct lq_store *s, struct lq_note *it, size_t n, lade_err *err);
int ls_sqlite_begin(struct lq_store *s, const char *worker, struct lq_lease *lease, size_t n,
                    lade_err *err);
int ls_sqlite_renew(struct lq_store *s, const struct lq_beat *beat, struct lq_stop *stop,
                    size_t max, size_t *n_stop, lade_err *err);
int ls_sqlite_leave(struct lq_store *s, const char *worker, struct lq_lanes lanes, lade_err *err);
int ls_sqlite_reclaim(struct lq_store *s, const struct lq_take *take, struct lq_leased_vec *out,
                      lade_err *err);
int ls_sqlite_promote(struct lq_store *s, struct lq_lanes lanes, size_t max, size_t *n,
                      int64_t *next_ms, lade_err *err);
int ls_sqlite_trim(struct lq_store *s, struct lq_lanes lanes, size_t max, size_t *n, lade_err *err);
int ls_sqlite_wait(struct lq_store *s, const char *worker, struct lq_lanes lanes, int64_t deadline,
                   lade_err *err);
void ls_sqlite_wake(struct lq_store *s, const char *worker);
int ls_sqlite_queues(struct lq_store *s, struct lb_arena *arena, const char ***name, size_t *n,
                     lade_err *err);
int ls_sqlite_count(struct lq_store *s, const char *queue, lade_queue_info *out, lade_err *err);
int ls_sqlite_get(struct lq_store *s, const char *queue, struct lb_slice id, struct lq_row_vec *out,
                  lade_err *err);
int ls_sqlite_list(struct lq_store *s, const char *queue, enum lade_state state,
                   lade_cursor *cursor, size_t limit, struct lq_row_vec *out, lade_err *err);
int ls_sqlite_act(struct lq_store *s, const char *queue, enum lade_job_verb verb,
                  const struct lb_slice *id, size_t n, int *outcome, lade_err *err);
int ls_sqlite_purge(struct lq_store *s, const char *queue, enum lade_state state, size_t max,
                    size_t *n, lade_err *err);
int ls_sqlite_redrive(struct lq_store *s, const char *queue, size_t max, size_t *n, lade_err *err);
int ls_sqlite_pause(struct lq_store *s, const char *queue, bool paused, lade_err *err);
int ls_sqlite_forget(struct lq_store *s, const char *queue, lade_err *err);
int ls_sqlite_workers(struct lq_store *s, struct lb_arena *arena, lade_worker_info **out, size_t *n,
                      lade_err *err);
int ls_sqlite_check(struct lq_store *s, lq_finding_fn report, void *ctx, lade_err *err);
int ls_sqlite_classes(struct lq_store *s, const char *queue, struct lq_class_vec *out,
                      lade_err *err);
int ls_sqlite_list_class(struct lq_store *s, const char *queue, struct lb_slice name,
                         int64_t from_ms, lade_cursor *cursor, size_t limit, struct lq_row_vec *out,
                         lade_err *err);
int ls_sqlite_change(struct lq_store *s, const char *queue, enum lq_change_verb verb,
                     struct lq_change *it, size_t n, lade_err *err);
int ls_sqlite_flow_put(struct lq_store *s, struct lq_flow *flow, lade_err *err);
int ls_sqlite_flow_get(struct lq_store *s, struct lb_slice id, struct lq_flow_row_vec *out,
                       lade_err *err);
int ls_sqlite_flow_list(struct lq_store *s, lade_cursor *cursor, size_t limit,
                        struct lq_flow_row_vec *out, lade_err *err);
int ls_sqlite_flow_inputs(struct lq_store *s, struct lb_slice id, uint32_t node, size_t first,
                          size_t max, struct lq_input_vec *out, lade_err *err);
int ls_sqlite_limit_set(struct lq_store *s, const char *queue, enum lade_limit_scope scope,
                        struct lb_slice key, const struct lq_limit *limit, lade_err *err);
int ls_sqlite_limit_get(struct lq_store *s, const char *queue, enum lade_limit_scope scope,
                        struct lb_slice key, struct lq_limit *out, lade_err *err);
int ls_sqlite_key_list(struct lq_store *s, const char *queue, lade_cursor *cursor, size_t limit,
                       struct lq_key_row_vec *out, lade_err *err);
int ls_sqlite_key_show(struct lq_store *s, const char *queue, struct lb_slice key,
                       struct lq_key_row_vec *out, lade_err *err);
int ls_sqlite_key_pause(struct lq_store *s, const char *queue, struct lb_slice key, bool paused,
                        lade_err *err);
int ls_sqlite_flow_act(struct lq_store *s, struct lb_slice id, enum lade_flow_verb verb,
                       lade_err *err);
int ls_sqlite_results(struct lq_store *s, const char *queue, const struct lb_slice *id, size_t n,
                      struct lb_arena *arena, struct lq_result *out, lade_err *err);
int ls_sqlite_watch(struct lq_store *s, const char *waiter, struct lq_watch *it, size_t n,
                    lade_err *err);
void ls_sqlite_unwatch(struct lq_store *s, const char *waiter, struct lq_lanes lanes);
int ls_sqlite_say(struct lq_store *s, struct lq_say *it, size_t n, lade_err *err);
int ls_sqlite_words(struct lq_store *s, const char *queue, struct lb_slice id, struct lq_words *out,
                    lade_err *err);
int ls_sqlite_events_set(struct lq_store *s, const char *queue, uint32_t cap, lade_err *err);
int ls_sqlite_events_get(struct lq_store *s, const char *queue, lade_events_info *out,
                         lade_err *err);
int ls_sqlite_event_read(struct lq_store *s, const char *queue, uint64_t after, size_t max,
                         struct lq_event_vec *out, lade_err *err);

#endif
