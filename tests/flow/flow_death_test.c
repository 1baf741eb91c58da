/* flow_death_test.c - the worker's on_dead is told of each job that ended without success, once, on each store */
#include "support/rig_test.h"

#include <pthread.h>

#include "queue/client.h"

/* What on_dead was told; it only records, the test asserts. */
struct told {
    pthread_mutex_t lock;
    size_t n;
    lade_death last;
    char id[65], queue[65], kind[65], reason[33], error[65], payload[65];
};

static struct told told;

static void keep(char *to, size_t size, const char *from)
{
    (void)snprintf(to, size, "%s", from);
}

static void note_death(void *ctx, const lade_death *d)
{
    struct told *t = ctx;
    (void)pthread_mutex_lock(&t->lock);
    t->n++;
    t->last = *d;
    keep(t->id, sizeof(t->id), d->id);
    keep(t->queue, sizeof(t->queue), d->queue);
    keep(t->kind, sizeof(t->kind), d->kind);
    keep(t->reason, sizeof(t->reason), d->reason);
    (void)snprintf(t->error, sizeof(t->error), "%.*s", (int)d->error.size,
                   (const char *)d->error.data);
    (void)snprintf(t->payload, sizeof(t->payload), "%.*s", (int)d->payload.size,
                   (const char *)d->payload.data);
    (void)pthread_mutex_unlock(&t->lock);
}

static size_t n_told(void)
{
    (void)pthread_mutex_lock(&told.lock);
    size_t n = told.n;
    (void)pthread_mutex_unlock(&told.lock);
    return n;
}

static _Atomic int runs;

/* Does what the payload says. */
static lade_outcome obey(lade_job *job, void *ctx)
{
    (void)ctx;
    lade_bytes word = lade_job_payload(job);
    runs++;
    lade_job_error(job, "text of attempt %d", lade_job_attempt(job));
    lade_job_retry_in(job, 0);
    switch (word.size > 0 ? *(const char *)word.data : 0) {
    case 'd':
        return LADE_DISCARD;
    case 'u':
        return LADE_DEAD;
    case 'c':
        return LADE_CANCEL;
    case 'o':
        return LADE_OK;
    default:
        return LADE_RETRY;
    }
}

static void start(struct ts_fix *f)
{
    told = (struct told){.lock = PTHREAD_MUTEX_INITIALIZER};
    runs = 0;
    ts_local_open(&f->local, &f->r, f->q,
                  &(lade_worker_config){.on_dead = note_death, .on_dead_ctx = &told});
    assert_int_equal(lade_worker_handle(f->local.w, "job", obey, NULL), 0);
    ts_local_run(&f->local);
}

static void enqueue(struct ts_fix *f, const char *id, const char *word, lade_job_spec spec)
{
    lade_err err = {0};
    spec.kind = "job";
    spec.id = id;
    spec.payload = (lade_bytes){word, strlen(word)};
    if (lade_enqueue(f->q, &spec, NULL, &err) != 0)
        fail_msg("%s", err.text);
}

static uint64_t kept(struct ts_fix *f)
{
    lade_queue_info info;
    uint64_t n = 0;
    assert_int_equal(lade_queue_get(f->q, "default", &info, NULL), 0);
    for (size_t i = 0; i < LADE_N_STATES; i++)
        n += info.count[i];
    return n;
}

/* The worker has ended, so nothing more can be told. */
static void assert_told(struct ts_fix *f, size_t n)
{
    assert_int_equal(ts_local_stop(&f->local), 0);
    assert_int_equal(told.n, n);
}

/* chronos 12: three retries are four runs, one dead, and the hook once. */
static void a_job_without_attempts_left_is_told_once_after_its_four_runs(void **state)
{
    struct ts_fix *f = *state;
    start(f);
    enqueue(f, "hopeless", "retry", (lade_job_spec){.max_attempts = 4});
    assert_true(ts_fix_wait_state(f, "hopeless", LADE_STATE_DEAD));
    assert_true(TS_UNTIL(TS_SOON, n_told() == 1));
    assert_told(f, 1);
    assert_int_equal(runs, 4);
    assert_string_equal(told.id, "hopeless");
    assert_string_equal(told.queue, "default");
    assert_string_equal(told.kind, "job");
    assert_string_equal(told.reason, "exhausted");
    assert_string_equal(told.payload, "retry");
    assert_string_equal(told.error, "text of attempt 4");
    assert_int_equal(told.last.attempts, 4);
    assert_int_equal(told.last.crashes, 0);
    assert_false(told.last.discarded);
    assert_int_equal(kept(f), 1);
}

/* chronos 16: nothing is kept, whatever retention says of the dead and of the completed; the hook is told. */
static void a_discarded_job_leaves_nothing_and_is_told(void **state)
{
    struct ts_fix *f = *state;
    start(f);
    enqueue(f, "dropped", "discard", (lade_job_spec){0});
    assert_true(TS_UNTIL(TS_SOON, n_told() == 1));
    assert_string_equal(told.id, "dropped");
    assert_string_equal(told.reason, "discarded");
    assert_string_equal(told.error, "text of attempt 1");
    assert_true(told.last.discarded);
    assert_true(ts_fix_wait_state(f, "dropped", -1));
    assert_int_equal(kept(f), 0);
    assert_told(f, 1);
    assert_int_equal(runs, 1);
}

/* chronos 16: a job that is to leave nothing when it dies. */
static void a_job_whose_death_is_discarded_is_told_with_its_reason(void **state)
{
    struct ts_fix *f = *state;
    start(f);
    enqueue(f, "brief", "retry", (lade_job_spec){.max_attempts = 2, .discard_dead = true});
    assert_true(TS_UNTIL(TS_SOON, n_told() == 1));
    assert_string_equal(told.id, "brief");
    assert_string_equal(told.reason, "exhausted");
    assert_true(told.last.discarded);
    assert_int_equal(told.last.attempts, 2);
    assert_true(ts_fix_wait_state(f, "brief", -1));
    assert_int_equal(kept(f), 0);
    assert_told(f, 1);
}

/* chronos 12, 13 */
static void only_what_ended_without_success_is_told(void **state)
{
    struct ts_fix *f = *state;
    start(f);
    enqueue(f, "good", "ok", (lade_job_spec){0});
    enqueue(f, "called-off", "cancel", (lade_job_spec){0});
    assert_true(ts_fix_wait_state(f, "good", LADE_STATE_COMPLETED));
    assert_true(ts_fix_wait_state(f, "called-off", LADE_STATE_CANCELLED));
    enqueue(f, "bad", "unrecoverable", (lade_job_spec){0});
    assert_true(TS_UNTIL(TS_SOON, n_told() == 1));
    assert_string_equal(told.id, "bad");
    assert_string_equal(told.reason, "unrecoverable");
    assert_false(told.last.discarded);
    assert_told(f, 1);
}

/* A second run of a worker is refused and leaves the first alone. */
static void a_worker_that_runs_is_not_disturbed_by_a_second_run(void **state)
{
    struct ts_fix *f = *state;
    lade_err err = {0};
    start(f);
    enqueue(f, "one", "ok", (lade_job_spec){0});
    assert_true(ts_fix_wait_state(f, "one", LADE_STATE_COMPLETED));
    assert_int_equal(lade_worker_run(f->local.w, &err), -LADE_EINVAL);
    assert_non_null(strstr(err.text, "open another"));
    enqueue(f, "two", "ok", (lade_job_spec){0});
    assert_true(ts_fix_wait_state(f, "two", LADE_STATE_COMPLETED));
    assert_told(f, 0);
}

int main(int argc, char **argv)
{
    ts_rig_main(argc, argv);
    const struct CMUnitTest tests[] = {
        TS_TEST(a_job_without_attempts_left_is_told_once_after_its_four_runs),
        TS_TEST(a_discarded_job_leaves_nothing_and_is_told),
        TS_TEST(a_job_whose_death_is_discarded_is_told_with_its_reason),
        TS_TEST(only_what_ended_without_success_is_told),
        TS_TEST(a_worker_that_runs_is_not_disturbed_by_a_second_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
