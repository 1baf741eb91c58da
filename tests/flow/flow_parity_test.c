/*
 * flow_parity_test.c - what other job systems promise in so many words and no test of ours said yet, on each store
 *
 * docs/parity.md lists all of it; the numbers in the comments are those of its tables.
 */
#include "support/rig_test.h"

#include <stdatomic.h>

#define NS(ms) ((ms)*LADE_MILLISECOND)

/* Handlers only count, the test asserts. */
static struct {
    _Atomic int runs[512]; /* by the number in the id */
    _Atomic int total, now, most;
    _Atomic int by_kind[2];
    bool hold; /* atomic */
} seen;

static void reset_seen(void)
{
    memset(&seen, 0, sizeof(seen));
}

static int number_of(const lade_job *job)
{
    const char *at = strchr(lade_job_id(job), '-');
    return at ? (int)strtol(at + 1, NULL, 10) % 512 : 0;
}

static lade_outcome count_run(lade_job *job, void *ctx)
{
    (void)ctx;
    int now = ++seen.now;
    for (int most = seen.most; now > most && !atomic_compare_exchange_weak(&seen.most, &most, now);)
        ;
    seen.runs[number_of(job)]++;
    seen.total++;
    while (__atomic_load_n(&seen.hold, __ATOMIC_ACQUIRE) && !lade_job_cancelled(job))
        ts_nap_ms(1);
    seen.now--;
    return LADE_OK;
}

static lade_outcome fail_first(lade_job *job, void *ctx)
{
    (void)ctx;
    seen.runs[number_of(job)]++;
    if (lade_job_attempt(job) > 1)
        return LADE_OK;
    lade_job_error(job, "not yet");
    lade_job_retry_in(job, 0);
    return LADE_RETRY;
}

static lade_outcome fail_always(lade_job *job, void *ctx)
{
    (void)ctx;
    seen.runs[number_of(job)]++;
    lade_job_retry_in(job, 0);
    return LADE_RETRY;
}

static lade_outcome count_kind(lade_job *job, void *ctx)
{
    _Atomic int *slot = ctx;
    bool mine = strcmp(lade_job_kind(job), slot == &seen.by_kind[0] ? "mail" : "image") == 0;
    *slot += mine ? 1 : 1000;
    return LADE_OK;
}

static void open_with(struct ts_fix *f, lade_handler fn, const lade_worker_config *config)
{
    ts_local_open(&f->local, &f->r, f->q, config);
    assert_int_equal(lade_worker_handle(f->local.w, "job", fn, NULL), 0);
}

static void enqueue(struct ts_fix *f, const char *id, lade_job_spec spec)
{
    spec.kind = spec.kind ? spec.kind : "job";
    spec.id = id;
    assert_int_equal(lade_enqueue(f->q, &spec, NULL, NULL), 0);
}

static void enqueue_n(struct ts_fix *f, const char *queue, int from, int n)
{
    static char id[512][24];
    static lade_job_spec spec[512];
    assert_in_range(n, 1, 512);
    for (int i = 0; i < n; i++) {
        (void)snprintf(id[i], sizeof(id[i]), "n-%d", from + i);
        spec[i] = (lade_job_spec){.kind = "job", .queue = queue, .id = id[i]};
    }
    assert_int_equal(lade_enqueue_many(f->q, spec, (size_t)n, NULL, NULL, NULL), 0);
}

/* chronos 2 */
static void jobs_go_to_the_handler_of_their_kind_and_a_kind_has_one(void **state)
{
    struct ts_fix *f = *state;
    reset_seen();
    ts_local_open(&f->local, &f->r, f->q, NULL);
    lade_worker *w = f->local.w;
    assert_int_equal(lade_worker_handle(w, "mail", count_kind, &seen.by_kind[0]), 0);
    assert_int_equal(lade_worker_handle(w, "image", count_kind, &seen.by_kind[1]), 0);
    assert_int_equal(lade_worker_handle(w, "mail", count_kind, &seen.by_kind[1]), -LADE_EINVAL);
    for (int i = 0; i < 6; i++) {
        char id[16];
        (void)snprintf(id, sizeof(id), "k-%d", i);
        enqueue(f, id, (lade_job_spec){.kind = i < 4 ? "mail" : "image"});
    }
    ts_local_run(&f->local);
    assert_true(ts_rig_wait_quiet(f->q, TS_SOON));
    assert_int_equal(seen.by_kind[0], 4);
    assert_int_equal(seen.by_kind[1], 2);
    assert_int_equal(ts_local_stop(&f->local), 0);
}

/* chronos 1, 4; chasqui 24: all were there before the first worker, which takes them from two queues. */
static void hundreds_of_jobs_in_two_queues_run_once_each(void **state)
{
    struct ts_fix *f = *state;
    reset_seen();
    enqueue_n(f, "left", 0, 256);
    enqueue_n(f, "right", 256, 256);
    lade_worker_queue queues[] = {{.name = "left"}, {.name = "right"}};
    open_with(
        f, count_run,
        &(lade_worker_config){.concurrency = 8, .queues = queues, .n_queues = 2, .drain = true});
    ts_local_run(&f->local);
    assert_true(ts_local_wait(&f->local, TS_SOON));
    assert_int_equal(seen.total, 512);
    for (int i = 0; i < 512; i++)
        assert_int_equal(seen.runs[i], 1);
    assert_int_equal(ts_rig_count(f->q, LADE_STATE_COMPLETED), 512);
    assert_int_equal(ts_rig_count(f->q, LADE_STATE_ACTIVE), 0);
    assert_int_equal(ts_rig_count(f->q, LADE_STATE_READY), 0);
}

/* chronos 8 */
static void no_more_handlers_run_at_once_than_there_are_slots(void **state)
{
    struct ts_fix *f = *state;
    reset_seen();
    __atomic_store_n(&seen.hold, true, __ATOMIC_RELEASE);
    enqueue_n(f, "default", 0, 100);
    open_with(f, count_run, &(lade_worker_config){.concurrency = 3});
    ts_local_run(&f->local);
    assert_true(TS_UNTIL(TS_SOON, seen.now == 3));
    ts_nap_ms(50); /* a fourth would have come by now, or comes later and is seen at the end */
    __atomic_store_n(&seen.hold, false, __ATOMIC_RELEASE);
    assert_true(ts_rig_wait_quiet(f->q, TS_SOON));
    assert_int_equal(seen.total, 100);
    assert_int_equal(seen.most, 3);
}

/* chronos 11; chasqui 27 (chronos 7, 10) */
static void job_that_fails_once_runs_twice(void **state)
{
    struct ts_fix *f = *state;
    reset_seen();
    open_with(f, fail_first, NULL);
    ts_local_run(&f->local);
    enqueue(f, "n-1", (lade_job_spec){0});
    assert_true(ts_fix_wait_state(f, "n-1", LADE_STATE_COMPLETED));
    assert_int_equal(seen.runs[1], 2);
    lade_job_view *v;
    assert_int_equal(lade_job_get(f->q, NULL, "n-1", &v, NULL), 0);
    assert_int_equal(v->attempts, 2);
    assert_int_equal(v->n_history, 1);
    assert_string_equal(v->history[0].outcome, "retry");
    assert_memory_equal(v->history[0].error.data, "not yet", 7);
    lade_job_view_free(v);
}

/* chasqui 29: a job's own number counts, less or more than the default of 25. (chronos 14) */
static void each_job_has_its_own_number_of_attempts(void **state)
{
    struct ts_fix *f = *state;
    reset_seen();
    open_with(f, fail_always, NULL);
    ts_local_run(&f->local);
    enqueue(f, "n-1", (lade_job_spec){.max_attempts = 1});
    enqueue(f, "n-2", (lade_job_spec){0});
    enqueue(f, "n-3", (lade_job_spec){.max_attempts = 40});
    for (int i = 1; i <= 3; i++) {
        char id[16];
        (void)snprintf(id, sizeof(id), "n-%d", i);
        assert_true(ts_fix_wait_state(f, id, LADE_STATE_DEAD));
    }
    assert_int_equal(seen.runs[1], 1);
    assert_int_equal(seen.runs[2], 25);
    assert_int_equal(seen.runs[3], 40);
}

/* chasqui 2: nothing is asked of the store, so it may even be away. */
static void empty_batch_touches_nothing(void **state)
{
    struct ts_fix *f = *state;
    for (int i = 0; i < 3; i++)
        assert_int_equal(lade_enqueue_many(f->q, NULL, 0, NULL, NULL, NULL), 0);
    lade_queue_info *info;
    size_t n;
    assert_int_equal(lade_queue_list(f->q, &info, &n, NULL), 0);
    assert_int_equal(n, 0);
    lade_free(info);
}

int main(int argc, char **argv)
{
    ts_rig_main(argc, argv);
    const struct CMUnitTest tests[] = {
        TS_TEST(jobs_go_to_the_handler_of_their_kind_and_a_kind_has_one),
        TS_TEST(hundreds_of_jobs_in_two_queues_run_once_each),
        TS_TEST(no_more_handlers_run_at_once_than_there_are_slots),
        TS_TEST(job_that_fails_once_runs_twice),
        TS_TEST(each_job_has_its_own_number_of_attempts),
        TS_TEST(empty_batch_touches_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
