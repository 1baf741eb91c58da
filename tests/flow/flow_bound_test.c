/* flow_bound_test.c - bounds of queues through the public API, with threads and processes of producers; on each store. beyond N7 */
#include "support/rig_test.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"

#define N_PROCS   3
#define N_THREADS 3
#define N_EACH    40
#define BOUND     100

static void bound(lade *q, const char *queue, int64_t max_jobs, enum lade_on_full on_full)
{
    lade_err err = {0};
    if (lade_bound_set(q, queue, &(lade_bound){.max_jobs = max_jobs, .on_full = on_full}, &err) !=
        0)
        fail_msg("%s", err.text);
}

static int enqueue(lade *q, const char *queue, lade_err *err)
{
    lade_job_spec spec = {.kind = "job", .queue = queue};
    return lade_enqueue(q, &spec, NULL, err);
}

static uint64_t waiting(lade *q, const char *queue)
{
    lade_queue_info info;
    assert_int_equal(lade_queue_get(q, queue, &info, NULL), 0);
    return info.count[LADE_STATE_READY] + info.count[LADE_STATE_SCHEDULED] +
           info.count[LADE_STATE_RETRYING];
}

static lade_outcome done(lade_job *job, void *ctx)
{
    (void)job;
    atomic_fetch_add((atomic_int *)ctx, 1);
    return LADE_OK;
}

static void start_worker(struct ts_fix *f, atomic_int *runs)
{
    ts_local_open(&f->local, &f->r, f->q, &(lade_worker_config){.concurrency = 2});
    assert_int_equal(lade_worker_handle(f->local.w, "*", done, runs), 0);
    ts_local_run(&f->local);
}

static void assert_sound(struct ts_fix *f)
{
    lade_finding *found = NULL;
    size_t n = 0;
    assert_int_equal(lade_check(f->q, &found, &n, NULL), 0);
    for (size_t i = 0; i < n; i++)
        print_error("%s\n", found[i].text);
    assert_int_equal(n, 0);
    lade_free(found);
}

/* ------------------------------------------------------------------------------------------------------------------- */

static void a_full_queue_refuses_and_says_what_to_do(void **state)
{
    struct ts_fix *f = *state;
    lade_err err = {0};
    lade_id ids[2] = {0};
    int outcomes[2] = {0};
    bound(f->q, "default", 1, LADE_FULL_REJECT);
    assert_int_equal(enqueue(f->q, NULL, &err), 0);
    assert_int_equal(enqueue(f->q, NULL, &err), LADE_FULL);
    assert_int_equal(err.code, LADE_FULL);
    assert_non_null(strstr(err.text, "queue 'default' is full: at most 1 jobs may wait"));
    assert_non_null(strstr(err.text, "--max-jobs"));
    lade_job_spec specs[2] = {{.kind = "job", .queue = "open"}, {.kind = "job"}};
    assert_int_equal(lade_enqueue_many(f->q, specs, 2, ids, outcomes, &err), LADE_FULL);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(outcomes[i], LADE_FULL);
        assert_string_equal(ids[i].text, "");
    }
    lade_queue_info info;
    assert_int_equal(lade_queue_get(f->q, "open", &info, NULL), LADE_NOT_FOUND);
    assert_int_equal(waiting(f->q, "default"), 1);
}

static void a_bad_bound_is_refused_by_field_and_rule(void **state)
{
    struct ts_fix *f = *state;

    static const struct {
        lade_bound bound;
        const char *field;
    } bad[] = {
        {{.max_jobs = -1}, "max_jobs"},
        {{.max_jobs = LADE_BOUND_JOBS_MAX + 1}, "max_jobs"},
        {{.max_bytes = -1}, "max_bytes"},
        {{.max_bytes = LADE_BOUND_BYTES_MAX + 1}, "max_bytes"},
        {{.max_jobs = 1, .on_full = (enum lade_on_full)2}, "on_full"},
    };

    lade_bound out;
    lade_err err = {0};
    for (size_t i = 0; i < LB_ARRAY_LEN(bad); i++) {
        assert_int_equal(lade_bound_set(f->q, "q", &bad[i].bound, &err), -LADE_EINVAL);
        assert_non_null(strstr(err.text, bad[i].field));
    }
    assert_int_equal(lade_bound_get(f->q, "q", &out, &err), LADE_NOT_FOUND);
}

struct blocked {
    lade *q;
    int rc;
    int64_t took;
    lade_err err;
};

static void *enqueue_blocked(void *arg)
{
    struct blocked *b = arg;
    int64_t start = lb_clock_mono();
    b->rc = enqueue(b->q, NULL, &b->err);
    b->took = lb_clock_mono() - start;
    return NULL;
}

static void a_blocked_producer_goes_on_when_a_worker_takes_a_job(void **state)
{
    struct ts_fix *f = *state;
    atomic_int runs = 0;
    pthread_t thread;
    struct blocked b = {.q = f->q, .rc = -1};
    bound(f->q, "default", 1, LADE_FULL_BLOCK);
    assert_int_equal(enqueue(f->q, NULL, NULL), 0);
    assert_int_equal(pthread_create(&thread, NULL, enqueue_blocked, &b), 0);
    start_worker(f, &runs);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(b.rc, 0);
    assert_true(TS_UNTIL(TS_SOON, runs == 2));
    assert_int_equal(ts_local_stop(&f->local), 0);
    assert_sound(f);
}

static void a_blocked_producer_goes_on_when_the_bound_is_raised_or_lifted(void **state)
{
    struct ts_fix *f = *state;
    for (int64_t to = 2; to >= 0; to -= 2) {
        pthread_t thread;
        struct blocked b = {.q = f->q, .rc = -1};
        bound(f->q, "default", 1, LADE_FULL_BLOCK);
        if (to == 2)
            assert_int_equal(enqueue(f->q, NULL, NULL), 0);
        assert_int_equal(pthread_create(&thread, NULL, enqueue_blocked, &b), 0);
        bound(f->q, "default", to, LADE_FULL_BLOCK);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(b.rc, 0);
    }
    assert_int_equal(waiting(f->q, "default"), 3);
}

static void a_blocked_producer_gives_up_at_its_timeout_and_not_before(void **state)
{
    struct ts_fix *f = *state;
    lade_options o = ts_rig_options();
    struct blocked b = {0};
    o.timeout = 300 * LADE_MILLISECOND;
    assert_int_equal(lade_open(&b.q, f->r.direct, &o, &b.err), 0);
    bound(b.q, "default", 1, LADE_FULL_BLOCK);
    assert_int_equal(enqueue(b.q, NULL, NULL), 0);
    (void)enqueue_blocked(&b);
    int64_t took = b.took;
    /* What can never fit is not waited for. */
    lade_job_spec two[2] = {{.kind = "job"}, {.kind = "job"}};
    lade_err err = {0};
    int never = lade_enqueue_many(b.q, two, 2, NULL, NULL, &err);
    lade_close(b.q);
    assert_int_equal(b.rc, LADE_FULL);
    assert_non_null(strstr(b.err.text, "no room came in time"));
    assert_true(took >= o.timeout);
    assert_int_equal(never, LADE_FULL);
    assert_non_null(strstr(err.text, "enqueue fewer in one call"));
}

struct crowd {
    lade *q;
    const char *queue;
    int n[2]; /* admitted, refused */
    int other;
};

static void *enqueue_crowd(void *arg)
{
    struct crowd *c = arg;
    for (int i = 0; i < N_EACH; i++) {
        int rc = enqueue(c->q, c->queue, NULL);
        c->n[0] += rc == 0;
        c->n[1] += rc == LADE_FULL;
        c->other += rc != 0 && rc != LADE_FULL;
    }
    return NULL;
}

/* Threads of one handle share a call of the store; one's full queue is not the others'. */
static void a_full_queue_refuses_nobody_who_enqueues_elsewhere(void **state)
{
    struct ts_fix *f = *state;
    pthread_t thread[8];
    struct crowd c[8];
    bound(f->q, "narrow", 5, LADE_FULL_REJECT);
    for (int i = 0; i < 8; i++) {
        c[i] = (struct crowd){.q = f->q, .queue = i % 2 ? "wide" : "narrow"};
        assert_int_equal(pthread_create(&thread[i], NULL, enqueue_crowd, &c[i]), 0);
    }
    int admitted = 0;
    for (int i = 0; i < 8; i++) {
        assert_int_equal(pthread_join(thread[i], NULL), 0);
        assert_int_equal(c[i].other, 0);
        if (i % 2)
            assert_int_equal(c[i].n[0], N_EACH);
        else
            admitted += c[i].n[0];
    }
    assert_int_equal(admitted, 5);
    assert_int_equal(waiting(f->q, "narrow"), 5);
    assert_int_equal(waiting(f->q, "wide"), 4 * N_EACH);
}

/* A process of its own: threads that enqueue, one handle; it exits with how many jobs were admitted. */
static int produce(const char *url)
{
    lade *q = NULL;
    lade_options o = ts_rig_options();
    pthread_t thread[N_THREADS];
    struct crowd c[N_THREADS];
    int admitted = 0;
    if (lade_open(&q, url, &o, NULL) < 0)
        return 255;
    for (int i = 0; i < N_THREADS; i++) {
        c[i] = (struct crowd){.q = q};
        if (pthread_create(&thread[i], NULL, enqueue_crowd, &c[i]) != 0)
            return 254;
    }
    for (int i = 0; i < N_THREADS; i++) {
        (void)pthread_join(thread[i], NULL);
        admitted += c[i].other ? 1000 : c[i].n[0];
    }
    lade_close(q);
    return admitted < 250 ? admitted : 253;
}

/* Starts the producers and looks at the queue until they have ended; how many jobs they added. */
static int run_producers(struct ts_fix *f)
{
    struct ts_proc *p[N_PROCS] = {&f->a, &f->b, &f->c};
    int sum = 0;
    for (int i = 0; i < N_PROCS; i++)
        assert_true(ts_proc_start(
            p[i], (const char *[]){ts_proc_self(), "--produce", f->r.direct, NULL}, NULL, NULL));
    for (int i = 0; i < N_PROCS; i++) {
        while (!ts_proc_wait(p[i], 5 * LADE_MILLISECOND))
            assert_in_range(waiting(f->q, "default"), 0, BOUND);
        assert_in_range(ts_proc_code(p[i]), 0, 249);
        sum += ts_proc_code(p[i]);
    }
    assert_in_range(waiting(f->q, "default"), 0, BOUND);
    return sum;
}

static void producers_of_three_processes_never_exceed_the_bound(void **state)
{
    struct ts_fix *f = *state;
    atomic_int runs = 0;
    if (f->r.store == TS_MEMORY)
        return; /* is one process's */
    bound(f->q, "default", BOUND, LADE_FULL_REJECT);
    assert_int_equal(run_producers(f), BOUND);
    assert_int_equal(waiting(f->q, "default"), BOUND);
    /* The same while a worker makes room and they wait for it: all get in, and never too many at once. */
    bound(f->q, "default", BOUND, LADE_FULL_BLOCK);
    start_worker(f, &runs);
    assert_int_equal(run_producers(f), N_PROCS * N_THREADS * N_EACH);
    assert_true(TS_UNTIL(TS_SOON, runs == BOUND + N_PROCS * N_THREADS * N_EACH));
    assert_int_equal(ts_local_stop(&f->local), 0);
    assert_sound(f);
}

/* chasqui 11 */
static void a_bound_in_bytes_is_exact_over_processes(void **state)
{
    struct ts_fix *f = *state;
    lade_err err = {0};
    lade_bound b = {.max_bytes = LADE_BOUND_BYTES_MAX};
    if (f->r.store == TS_MEMORY)
        return; /* is one process's */
    assert_int_equal(lade_bound_set(f->q, "default", &b, &err), 0);
    assert_int_equal(enqueue(f->q, NULL, &err), 0);
    assert_int_equal(lade_bound_get(f->q, "default", &b, &err), 0);
    int64_t one = b.bytes;
    assert_true(one > 0);
    b.max_bytes = BOUND * one + one / 2;
    assert_int_equal(lade_bound_set(f->q, "default", &b, &err), 0);
    assert_int_equal(run_producers(f), BOUND - 1);
    assert_int_equal(lade_bound_get(f->q, "default", &b, &err), 0);
    assert_int_equal(b.bytes, BOUND * one);
    lade_job_spec big = {.kind = "job",
                         .payload = {"0123456789012345678901234567890123456789", 40}};
    assert_int_equal(lade_enqueue(f->q, &big, NULL, &err), LADE_FULL);
    assert_non_null(strstr(err.text, "max_bytes"));
    /* While a worker makes room: all get in, never too many at once, and nothing is left over. */
    atomic_int runs = 0;
    b.on_full = LADE_FULL_BLOCK;
    assert_int_equal(lade_bound_set(f->q, "default", &b, &err), 0);
    start_worker(f, &runs);
    assert_int_equal(run_producers(f), N_PROCS * N_THREADS * N_EACH);
    assert_true(TS_UNTIL(TS_SOON, runs == BOUND + N_PROCS * N_THREADS * N_EACH));
    assert_int_equal(ts_local_stop(&f->local), 0);
    assert_int_equal(lade_bound_get(f->q, "default", &b, &err), 0);
    assert_int_equal(b.bytes, 0);
    assert_sound(f);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TS_TEST(a_full_queue_refuses_and_says_what_to_do),
        TS_TEST(a_bad_bound_is_refused_by_field_and_rule),
        TS_TEST(a_blocked_producer_goes_on_when_a_worker_takes_a_job),
        TS_TEST(a_blocked_producer_goes_on_when_the_bound_is_raised_or_lifted),
        TS_TEST(a_blocked_producer_gives_up_at_its_timeout_and_not_before),
        TS_TEST(a_full_queue_refuses_nobody_who_enqueues_elsewhere),
        TS_TEST(a_bound_in_bytes_is_exact_over_processes),
        TS_TEST(producers_of_three_processes_never_exceed_the_bound),
    };
    if (argc == 3 && strcmp(argv[1], "--produce") == 0)
        return produce(argv[2]);
    ts_rig_main(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
