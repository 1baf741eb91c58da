/* Every public function of <lade/lade.h>, given NULL where it must not be: refused with a text, and never a crash */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <lade/lade.h>

#include "base/base.h"

static lade *q;
static lade_err err;
static lade_id id;
static lade_cursor cursor;
static size_t n;
static lade_job_view *view;
static lade_dead_class *classes;
static lade_queue_info *queues, queue_info;
static lade_worker_info *workers;
static lade_worker_view *worker;
static lade_finding *findings;
static lade_flow_view *flow;
static lade_flow_input input;
static lade_result_view *results;
static lade_waiter *waiter;
static lade_job_notes *notes;
static lade_events_info stream;
static lade_tail *tail;
static const lade_event *event;
static lade_limit limit;
static lade_bound bound;
static lade_key_info *keys;
static lade_worker *w;
static int64_t now;
static const lade_job_spec spec = {.kind = "k"};
static const char *const ids[] = {"a"}, *const no_id[] = {NULL};

static lade_outcome handle(lade_job *job, void *ctx)
{
    (void)job;
    (void)ctx;
    return LADE_OK;
}

#define CALLS(X)                                                                       \
    X(lade_open(NULL, "memory:", NULL, &err))                                          \
    X(lade_enqueue(NULL, &spec, &id, &err))                                            \
    X(lade_enqueue(q, NULL, &id, &err))                                                \
    X(lade_enqueue(q, &(lade_job_spec){0}, &id, &err))                                 \
    X(lade_enqueue(q, &(lade_job_spec){.kind = "k", .n_headers = 1}, &id, &err))       \
    X(lade_enqueue(q, &(lade_job_spec){.kind = "k", .payload.size = 1}, &id, &err))    \
    X(lade_enqueue(q, &(lade_job_spec){.kind = "k", .unique.key.size = 1}, &id, &err)) \
    X(lade_enqueue_many(NULL, &spec, 1, NULL, NULL, &err))                             \
    X(lade_enqueue_many(NULL, NULL, 0, NULL, NULL, &err))                              \
    X(lade_enqueue_many(q, NULL, 1, NULL, NULL, &err))                                 \
    X(lade_worker_open(NULL, q, NULL, &err))                                           \
    X(lade_worker_open(&w, NULL, NULL, &err))                                          \
    X(lade_worker_open(&w, q, &(lade_worker_config){.n_queues = 1}, &err))             \
    X(lade_worker_run(NULL, &err))                                                     \
    X(lade_job_get(NULL, NULL, "a", &view, &err))                                      \
    X(lade_job_get(q, NULL, NULL, &view, &err))                                        \
    X(lade_job_get(q, NULL, "a", NULL, &err))                                          \
    X(lade_job_list(NULL, "q", LADE_STATE_READY, &cursor, 1, &view, &n, &err))         \
    X(lade_job_list(q, NULL, LADE_STATE_READY, &cursor, 1, &view, &n, &err))           \
    X(lade_job_list(q, "q", LADE_STATE_READY, NULL, 1, &view, &n, &err))               \
    X(lade_job_list(q, "q", LADE_STATE_READY, &cursor, 1, NULL, &n, &err))             \
    X(lade_job_list(q, "q", LADE_STATE_READY, &cursor, 1, &view, NULL, &err))          \
    X(lade_dead_classes(NULL, NULL, &classes, &n, &err))                               \
    X(lade_dead_classes(q, NULL, NULL, &n, &err))                                      \
    X(lade_dead_classes(q, NULL, &classes, NULL, &err))                                \
    X(lade_dead_list(NULL, "q", NULL, &cursor, 1, &view, &n, &err))                    \
    X(lade_dead_list(q, NULL, NULL, &cursor, 1, &view, &n, &err))                      \
    X(lade_dead_list(q, "q", NULL, NULL, 1, &view, &n, &err))                          \
    X(lade_dead_list(q, "q", NULL, &cursor, 1, NULL, &n, &err))                        \
    X(lade_dead_list(q, "q", NULL, &cursor, 1, &view, NULL, &err))                     \
    X(lade_dead_move(NULL, LADE_DEAD_REMOVE, NULL, 0, NULL, &err))                     \
    X(lade_dead_move(q, LADE_DEAD_REMOVE, NULL, 1, NULL, &err))                        \
    X(lade_job_edit(NULL, NULL, "a", LADE_STR("x"), false, &err))                      \
    X(lade_job_edit(q, NULL, NULL, LADE_STR("x"), false, &err))                        \
    X(lade_job_edit(q, NULL, "a", (lade_bytes){NULL, 1}, false, &err))                 \
    X(lade_job_act(NULL, LADE_JOB_KILL, NULL, ids, 1, NULL, &err))                     \
    X(lade_job_act(q, LADE_JOB_KILL, NULL, NULL, 1, NULL, &err))                       \
    X(lade_job_act(q, LADE_JOB_KILL, NULL, no_id, 1, NULL, &err))                      \
    X(lade_queue_list(NULL, &queues, &n, &err))                                        \
    X(lade_queue_list(q, NULL, &n, &err))                                              \
    X(lade_queue_list(q, &queues, NULL, &err))                                         \
    X(lade_queue_get(NULL, "q", &queue_info, &err))                                    \
    X(lade_queue_get(q, NULL, &queue_info, &err))                                      \
    X(lade_queue_get(q, "q", NULL, &err))                                              \
    X(lade_queue_pause(NULL, "q", &err))                                               \
    X(lade_queue_pause(q, NULL, &err))                                                 \
    X(lade_queue_resume(NULL, "q", &err))                                              \
    X(lade_queue_resume(q, NULL, &err))                                                \
    X(lade_queue_purge(NULL, "q", LADE_STATE_DEAD, 1, &n, &err))                       \
    X(lade_queue_purge(q, NULL, LADE_STATE_DEAD, 1, &n, &err))                         \
    X(lade_queue_purge(q, "q", LADE_STATE_DEAD, 1, NULL, &err))                        \
    X(lade_queue_remove(NULL, "q", &err))                                              \
    X(lade_queue_remove(q, NULL, &err))                                                \
    X(lade_dead_redrive(NULL, "q", 1, &n, &err))                                       \
    X(lade_dead_redrive(q, NULL, 1, &n, &err))                                         \
    X(lade_dead_redrive(q, "q", 1, NULL, &err))                                        \
    X(lade_worker_list(NULL, &workers, &n, &err))                                      \
    X(lade_worker_list(q, NULL, &n, &err))                                             \
    X(lade_worker_list(q, &workers, NULL, &err))                                       \
    X(lade_worker_order(NULL, "w", LADE_WORKER_QUIET, &err))                           \
    X(lade_worker_order(q, NULL, LADE_WORKER_QUIET, &err))                             \
    X(lade_worker_get(NULL, "w", &worker, &err))                                       \
    X(lade_worker_get(q, NULL, &worker, &err))                                         \
    X(lade_worker_get(q, "w", NULL, &err))                                             \
    X(lade_now(NULL, &now, &err))                                                      \
    X(lade_now(q, NULL, &err))                                                         \
    X(lade_check(NULL, &findings, &n, &err))                                           \
    X(lade_check(q, NULL, &n, &err))                                                   \
    X(lade_check(q, &findings, NULL, &err))                                            \
    X(lade_limit_set(NULL, "q", LADE_LIMIT_QUEUE, LADE_STR(""), &limit, &err))         \
    X(lade_limit_set(q, NULL, LADE_LIMIT_QUEUE, LADE_STR(""), &limit, &err))           \
    X(lade_limit_set(q, "q", LADE_LIMIT_QUEUE, LADE_STR(""), NULL, &err))              \
    X(lade_limit_get(NULL, "q", LADE_LIMIT_QUEUE, LADE_STR(""), &limit, &err))         \
    X(lade_limit_get(q, "q", LADE_LIMIT_QUEUE, LADE_STR(""), NULL, &err))              \
    X(lade_bound_set(NULL, "q", &bound, &err))                                         \
    X(lade_bound_set(q, NULL, &bound, &err))                                           \
    X(lade_bound_set(q, "q", NULL, &err))                                              \
    X(lade_bound_get(NULL, "q", &bound, &err))                                         \
    X(lade_bound_get(q, NULL, &bound, &err))                                           \
    X(lade_bound_get(q, "q", NULL, &err))                                              \
    X(lade_limit_remove(NULL, "q", LADE_LIMIT_QUEUE, LADE_STR(""), &err))              \
    X(lade_limit_remove(q, NULL, LADE_LIMIT_QUEUE, LADE_STR(""), &err))                \
    X(lade_key_list(NULL, "q", &cursor, 1, &keys, &n, &err))                           \
    X(lade_key_list(q, NULL, &cursor, 1, &keys, &n, &err))                             \
    X(lade_key_list(q, "q", NULL, 1, &keys, &n, &err))                                 \
    X(lade_key_list(q, "q", &cursor, 1, NULL, &n, &err))                               \
    X(lade_key_list(q, "q", &cursor, 1, &keys, NULL, &err))                            \
    X(lade_key_get(NULL, "q", LADE_STR("k"), &keys, &err))                             \
    X(lade_key_get(q, NULL, LADE_STR("k"), &keys, &err))                               \
    X(lade_key_get(q, "q", LADE_STR("k"), NULL, &err))                                 \
    X(lade_key_pause(NULL, "q", LADE_STR("k"), &err))                                  \
    X(lade_key_pause(q, NULL, LADE_STR("k"), &err))                                    \
    X(lade_key_resume(NULL, "q", LADE_STR("k"), &err))                                 \
    X(lade_key_resume(q, NULL, LADE_STR("k"), &err))                                   \
    X(lade_flow_enqueue(NULL, &(lade_flow_spec){0}, &id, &err))                        \
    X(lade_flow_enqueue(q, NULL, &id, &err))                                           \
    X(lade_flow_check(NULL, &(lade_flow_spec){0}, &err))                               \
    X(lade_flow_check(q, NULL, &err))                                                  \
    X(lade_flow_act(NULL, LADE_FLOW_CANCEL, "a", &err))                                \
    X(lade_flow_act(q, LADE_FLOW_CANCEL, NULL, &err))                                  \
    X(lade_flow_get(NULL, "a", &flow, &err))                                           \
    X(lade_flow_get(q, NULL, &flow, &err))                                             \
    X(lade_flow_get(q, "a", NULL, &err))                                               \
    X(lade_flow_list(NULL, &cursor, 1, &flow, &n, &err))                               \
    X(lade_flow_list(q, NULL, 1, &flow, &n, &err))                                     \
    X(lade_flow_list(q, &cursor, 1, NULL, &n, &err))                                   \
    X(lade_flow_list(q, &cursor, 1, &flow, NULL, &err))                                \
    X(lade_job_n_inputs(NULL, &n, &err))                                               \
    X(lade_job_input(NULL, 0, &input, &err))                                           \
    X(lade_result_get_many(NULL, "q", ids, 1, &results, &err))                         \
    X(lade_result_get_many(q, NULL, ids, 1, &results, &err))                           \
    X(lade_result_get_many(q, "q", NULL, 1, &results, &err))                           \
    X(lade_result_get_many(q, "q", no_id, 1, &results, &err))                          \
    X(lade_result_get_many(q, "q", ids, 1, NULL, &err))                                \
    X(lade_waiter_open(NULL, q, &err))                                                 \
    X(lade_waiter_open(&waiter, NULL, &err))                                           \
    X(lade_job_wait(NULL, "q", "a", 0, NULL, &view, &err))                             \
    X(lade_job_wait(q, NULL, "a", 0, NULL, &view, &err))                               \
    X(lade_job_wait(q, "q", NULL, 0, NULL, &view, &err))                               \
    X(lade_job_wait(q, "q", "a", 0, NULL, NULL, &err))                                 \
    X(lade_job_wait_log(NULL, "q", "a", 0, 0, NULL, &err))                             \
    X(lade_job_wait_log(q, NULL, "a", 0, 0, NULL, &err))                               \
    X(lade_job_wait_log(q, "q", NULL, 0, 0, NULL, &err))                               \
    X(lade_job_get_notes(NULL, "q", "a", 0, 1, false, &notes, &err))                   \
    X(lade_job_get_notes(q, NULL, "a", 0, 1, false, &notes, &err))                     \
    X(lade_job_get_notes(q, "q", NULL, 0, 1, false, &notes, &err))                     \
    X(lade_job_get_notes(q, "q", "a", 0, 1, false, NULL, &err))                        \
    X(lade_queue_events_set(NULL, "q", 1, &err))                                       \
    X(lade_queue_events_set(q, NULL, 1, &err))                                         \
    X(lade_queue_events_get(NULL, "q", &stream, &err))                                 \
    X(lade_queue_events_get(q, NULL, &stream, &err))                                   \
    X(lade_queue_events_get(q, "q", NULL, &err))                                       \
    X(lade_tail_open(NULL, q, ids, 1, 0, &err))                                        \
    X(lade_tail_open(&tail, NULL, ids, 1, 0, &err))                                    \
    X(lade_tail_open(&tail, q, NULL, 1, 0, &err))                                      \
    X(lade_tail_open(&tail, q, no_id, 1, 0, &err))                                     \
    X(lade_tail_next(NULL, 1, 0, &event, &n, &err))

struct row {
    const char *call;
    int result;
    lade_err err;
};

static void what_must_not_be_null_is_refused_with_a_text(void **state)
{
    (void)state;
    assert_int_equal(lade_open(&q, "memory:", NULL, &err), 0);
    size_t made = 0;
    struct row rows[160];
#define ROW(c)               \
    err = (lade_err){0};     \
    rows[made].call = #c;    \
    rows[made].result = (c); \
    rows[made++].err = err;
    CALLS(ROW)
#undef ROW
    assert_true(made <= LB_ARRAY_LEN(rows));
    for (size_t i = 0; i < made; i++) {
        if (rows[i].result != -LADE_EINVAL || rows[i].err.code != -LADE_EINVAL ||
            !rows[i].err.text[0] || !rows[i].err.where)
            fail_msg("%s: %d, '%s'", rows[i].call, rows[i].result, rows[i].err.text);
    }
    /* The text is not needed: err may be NULL, too. */
    assert_int_equal(lade_now(NULL, NULL, NULL), -LADE_EINVAL);
    assert_int_equal(lade_check(q, NULL, NULL, NULL), -LADE_EINVAL);
    assert_null(w);
    lade_close(q);
}

static void what_may_be_null_is_taken(void **state)
{
    (void)state;
    int outcome = -1;
    assert_int_equal(lade_open(&q, "memory:", NULL, NULL), 0);
    assert_int_equal(lade_enqueue(q, &spec, NULL, NULL), 0);
    assert_int_equal(lade_enqueue_many(q, NULL, 0, NULL, NULL, NULL), 0);
    assert_int_equal(lade_enqueue_many(q, &spec, 1, NULL, NULL, NULL), 0);
    assert_int_equal(lade_job_get(q, NULL, "a", &view, NULL), LADE_NOT_FOUND);
    assert_int_equal(lade_job_act(q, LADE_JOB_KILL, NULL, ids, 1, &outcome, NULL), LADE_NOT_FOUND);
    assert_int_equal(outcome, LADE_NOT_FOUND);
    assert_int_equal(lade_worker_open(&w, q, NULL, NULL), 0);
    assert_int_equal(lade_worker_handle(w, "k", NULL, NULL), -LADE_EINVAL);
    assert_int_equal(lade_worker_handle(w, NULL, handle, NULL), -LADE_EINVAL);
    lade_worker_get_stats(w, NULL);
    lade_worker_close(w);
    w = NULL;
    lade_close(q);
}

static void functions_without_a_result_ignore_null(void **state)
{
    (void)state;
    lade_worker_stats stats = {.completed = 7};
    lade_close(NULL);
    lade_free(NULL);
    lade_job_view_free(NULL);
    lade_flow_view_free(NULL);
    lade_worker_close(NULL);
    lade_worker_stop(NULL);
    lade_worker_quiet(NULL);
    lade_worker_get_stats(NULL, &stats);
    assert_int_equal(stats.completed, 7);
    assert_int_equal(lade_worker_handle(NULL, "k", handle, NULL), -LADE_EINVAL);
    assert_int_equal(lade_state_parse(NULL), -1);
    assert_null(lade_state_name((enum lade_state)99));
    assert_non_null(lade_version());
    assert_non_null(lade_result_name(99999));
}

static void a_handler_without_a_job_gets_empty_values(void **state)
{
    (void)state;
    assert_null(lade_job_id(NULL));
    assert_null(lade_job_kind(NULL));
    assert_null(lade_job_flow(NULL));
    assert_int_equal(lade_job_key(NULL).size, 0);
    lade_job_rate_limited_for(NULL, 1);
    assert_null(lade_job_queue(NULL));
    assert_null(lade_job_content_type(NULL));
    assert_null(lade_job_payload(NULL).data);
    assert_null(lade_job_header(NULL, "h"));
    assert_int_equal(lade_job_n_headers(NULL), 0);
    assert_null(lade_job_header_at(NULL, 0).name);
    assert_int_equal(lade_job_attempt(NULL), 0);
    assert_int_equal(lade_job_max_attempts(NULL), 0);
    assert_int_equal(lade_job_priority(NULL), 0);
    assert_int_equal(lade_job_enqueued_at(NULL), 0);
    assert_int_equal(lade_job_fence(NULL), 0);
    assert_int_equal(lade_job_time_left(NULL), 0);
    assert_false(lade_job_cancelled(NULL));
    assert_int_equal(lade_job_cancel_fd(NULL), -1);
    assert_int_equal(lade_job_result(NULL, (lade_bytes){0}), -LADE_EINVAL);
    assert_int_equal(lade_job_progress(NULL, 1, NULL), -LADE_EINVAL);
    assert_int_equal(lade_job_log(NULL, "%s", "x"), -LADE_EINVAL);
    assert_int_equal(lade_job_log_bytes(NULL, (lade_bytes){0}), -LADE_EINVAL);
    assert_int_equal(lade_tail_seek(NULL, "q", 1), -LADE_EINVAL);
    assert_int_equal(lade_tail_missed(NULL), 0);
    lade_waiter_cancel(NULL);
    lade_waiter_close(NULL);
    lade_tail_cancel(NULL);
    lade_tail_close(NULL);
    lade_job_retry_in(NULL, 1);
    lade_job_snooze_for(NULL, 1);
    lade_job_error_bytes(NULL, (lade_bytes){0});
    lade_job_error(NULL, "%s", "x");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_must_not_be_null_is_refused_with_a_text),
        cmocka_unit_test(what_may_be_null_is_taken),
        cmocka_unit_test(functions_without_a_result_ignore_null),
        cmocka_unit_test(a_handler_without_a_job_gets_empty_values),
    };
    return cmocka_run_group_tests_name("null", tests, NULL, NULL);
}
