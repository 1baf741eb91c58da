/* flow_client_test.c - enqueueing: group commit, all or none, idempotence, bad input, no memory; on each store */
#include "support/rig_test.h"

#include <pthread.h>

#include "base/mem.h"

#define THREADS 8
#define EACH    200

struct caller {
    pthread_t thread;
    lade *q;
    lade_id id[EACH];
    int failed, refused;
};

/* Single enqueues, every tenth of them bad: it must not harm those it shares a commit with. */
static void *enqueue_each(void *arg)
{
    struct caller *c = arg;
    char big[200] = {0};
    for (int i = 0; i < EACH; i++) {
        lade_job_spec spec = {.kind = "job", .payload = LADE_STR("x")};
        if (i % 10 == 9) {
            spec.payload = (lade_bytes){big, sizeof(big)};
            spec.max_attempts = -1;
            c->refused += lade_enqueue(c->q, &spec, &c->id[i], NULL) == -LADE_EINVAL;
        } else {
            c->failed += lade_enqueue(c->q, &spec, &c->id[i], NULL) != 0;
        }
    }
    return NULL;
}

static void enqueues_of_many_threads_share_commits_and_each_gets_its_own_answer(void **state)
{
    struct ts_fix *f = *state;
    struct caller *c = calloc(THREADS, sizeof(*c));
    assert_non_null(c);
    for (int i = 0; i < THREADS; i++) {
        c[i].q = f->q;
        assert_int_equal(pthread_create(&c[i].thread, NULL, enqueue_each, &c[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        (void)pthread_join(c[i].thread, NULL);
        assert_int_equal(c[i].failed, 0);
        assert_int_equal(c[i].refused, EACH / 10);
    }
    assert_int_equal(ts_rig_count(f->q, LADE_STATE_READY), THREADS * EACH * 9 / 10);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(ts_rig_state(f->q, c[i].id[EACH / 2].text), LADE_STATE_READY);
    free(c);
}

#define MANY 40
#define FEW  25

struct numbered {
    pthread_t thread;
    lade *q;
    int number, failed;
    lade_id id[FEW];
};

static void *enqueue_numbered(void *arg)
{
    struct numbered *c = arg;
    for (int i = 0; i < FEW; i++) {
        char text[32];
        int n = snprintf(text, sizeof(text), "%d.%d", c->number, i);
        lade_job_spec spec = {.kind = "job", .payload = {text, (size_t)n}};
        c->failed += lade_enqueue(c->q, &spec, &c->id[i], NULL) != 0;
    }
    return NULL;
}

/* So many go in one commit that its leader gives them their ids (ADR 0051). */
static void the_id_that_an_enqueue_tells_is_that_of_its_own_job(void **state)
{
    struct ts_fix *f = *state;
    struct numbered *c = calloc(MANY, sizeof(*c));
    assert_non_null(c);
    for (int i = 0; i < MANY; i++) {
        c[i].q = f->q;
        c[i].number = i;
        assert_int_equal(pthread_create(&c[i].thread, NULL, enqueue_numbered, &c[i]), 0);
    }
    for (int i = 0; i < MANY; i++) {
        (void)pthread_join(c[i].thread, NULL);
        assert_int_equal(c[i].failed, 0);
    }
    for (int i = 0; i < MANY * FEW; i++) {
        char text[32];
        int n = snprintf(text, sizeof(text), "%d.%d", i / FEW, i % FEW);
        lade_job_view *info = NULL;
        const char *id = c[i / FEW].id[i % FEW].text;
        assert_int_equal(lade_job_get(f->q, NULL, id, &info, NULL), 0);
        assert_int_equal(info->payload.size, n);
        assert_memory_equal(info->payload.data, text, (size_t)n);
        lade_job_view_free(info);
    }
    assert_int_equal(ts_rig_count(f->q, LADE_STATE_READY), MANY * FEW);
    free(c);
}

/* chasqui 3 */
static void one_bad_job_refuses_the_whole_call_before_anything_is_written(void **state)
{
    struct ts_fix *f = *state;
    lade_job_spec spec[50];
    lade_err err = {0};
    for (int i = 0; i < 50; i++)
        spec[i] = (lade_job_spec){.kind = "job"};
    spec[37].kind = "no spaces";
    assert_int_equal(lade_enqueue_many(f->q, spec, 50, NULL, NULL, &err), -LADE_EINVAL);
    assert_non_null(strstr(err.text, "job 37"));
    assert_int_equal(ts_rig_count(f->q, LADE_STATE_READY), 0);
}

/* chronos 5; chasqui 4 */
static void an_explicit_id_makes_enqueue_idempotent(void **state)
{
    struct ts_fix *f = *state;
    lade_id id;
    lade_job_spec spec = {.kind = "job", .id = "order:17"};
    assert_int_equal(lade_enqueue(f->q, &spec, &id, NULL), 0);
    assert_string_equal(id.text, "order:17");
    for (int i = 0; i < 5; i++)
        assert_int_equal(lade_enqueue(f->q, &spec, &id, NULL), LADE_DUPLICATE);
    assert_string_equal(id.text, "order:17");
    assert_int_equal(ts_rig_count(f->q, LADE_STATE_READY), 1);
}

static void a_duplicate_in_a_batch_does_not_stop_the_others(void **state)
{
    struct ts_fix *f = *state;
    lade_job_spec spec[3] = {
        {.kind = "job", .id = "a"}, {.kind = "job", .id = "b"}, {.kind = "job", .id = "a"}};
    lade_id id[3];
    int outcome[3];
    assert_int_equal(lade_enqueue_many(f->q, spec, 3, id, outcome, NULL), LADE_DUPLICATE);
    assert_int_equal(outcome[0], 0);
    assert_int_equal(outcome[1], 0);
    assert_int_equal(outcome[2], LADE_DUPLICATE);
    assert_string_equal(id[2].text, "a");
    assert_int_equal(ts_rig_count(f->q, LADE_STATE_READY), 2);
}

/* chasqui 12 */
static void a_payload_over_the_limit_is_refused_and_one_at_the_limit_is_not(void **state)
{
    struct ts_fix *f = *state;
    char *p = calloc(1, LADE_PAYLOAD_MAX + 1);
    assert_non_null(p);
    lade_err err = {0};
    lade_job_spec spec = {.kind = "job", .payload = {p, LADE_PAYLOAD_MAX + 1}};
    assert_int_equal(lade_enqueue(f->q, &spec, NULL, &err), -LADE_ETOOBIG);
    assert_non_null(strstr(err.text, "1048577"));
    assert_int_equal(ts_rig_count(f->q, LADE_STATE_READY), 0);
    spec.payload.size--;
    assert_int_equal(lade_enqueue(f->q, &spec, NULL, &err), 0);
    free(p);
}

/* Fails the 1st, 2nd, ... allocation of one call until it succeeds; whatever fails must leave the store sound. */
static void enqueue_survives_a_failure_of_every_allocation(void **state)
{
    struct ts_fix *f = *state;
    lade_job_spec spec[2] = {{.kind = "job", .payload = LADE_STR("x")},
                             {.kind = "job", .queue = "other"}};
    uint64_t done = 0;
    for (uint64_t n = 1; done == 0; n++) {
        assert_true(n < 10000);
        lb_mem_fail_after(n);
        int rc = lade_enqueue_many(f->q, spec, 2, NULL, NULL, NULL);
        lb_mem_fail_after(0);
        assert_true(rc == 0 || rc == -LADE_ENOMEM || rc == -LADE_EUNAVAILABLE);
        done = rc == 0 ? n : 0;
    }
    lade_finding *found;
    size_t n_found;
    assert_int_equal(lade_check(f->q, &found, &n_found, NULL), 0);
    assert_int_equal(n_found, 0);
    lade_free(found);
    assert_int_equal(lade_enqueue(f->q, spec, NULL, NULL), 0);
}

static void bad_urls_and_options_are_refused_by_name(void **state)
{
    (void)state;
    lade *q;
    lade_err err;
    assert_int_equal(lade_open(&q, "mysql://host", NULL, &err), -LADE_EINVAL);
    assert_non_null(strstr(err.text, "mysql"));
    assert_non_null(strstr(err.text, "sqlite"));
    assert_int_equal(lade_open(&q, "jobs.db", NULL, &err), -LADE_EINVAL);
    lade_options bad = {.namespace_ = "a{b}"};
    assert_int_equal(lade_open(&q, "memory:", &bad, &err), -LADE_EINVAL);
    bad = (lade_options){.payload_max = LADE_PAYLOAD_MAX_HARD + 1};
    assert_int_equal(lade_open(&q, "memory:", &bad, &err), -LADE_EINVAL);
    bad = (lade_options){.keep_dead = {.age = 1}};
    assert_int_equal(lade_open(&q, "memory:", &bad, &err), -LADE_EINVAL);
}

/* chronos 9 */
static void bad_arguments_of_lists_and_acts_are_refused(void **state)
{
    struct ts_fix *f = *state;
    lade_cursor cursor = {0};
    lade_job_view *v[1];
    size_t n = 0;
    /* C-111 */
    assert_int_equal(lade_job_list(f->q, "default", LADE_STATE_READY, &cursor, 0, v, &n, NULL),
                     -LADE_EINVAL);
    assert_int_equal(
        lade_job_list(f->q, "default", LADE_STATE_READY, &cursor, 1000000000, v, &n, NULL),
        -LADE_EINVAL);
    assert_int_equal(lade_job_list(f->q, NULL, LADE_STATE_READY, &cursor, 1, v, &n, NULL),
                     -LADE_EINVAL);
    assert_int_equal(lade_queue_purge(f->q, "default", LADE_STATE_ACTIVE, 1, &n, NULL),
                     -LADE_EINVAL);
    const char *id = "a b";
    assert_int_equal(lade_job_act(f->q, LADE_JOB_KILL, NULL, &id, 1, NULL, NULL), -LADE_EINVAL);
    id = "nobody";
    assert_int_equal(lade_job_act(f->q, LADE_JOB_KILL, NULL, &id, 1, NULL, NULL), LADE_NOT_FOUND);
    assert_int_equal(lade_job_act(f->q, LADE_JOB_KILL, NULL, NULL, 2, NULL, NULL), -LADE_EINVAL);
    assert_int_equal(lade_job_list(f->q, "default", LADE_STATE_READY, NULL, 1, v, &n, NULL),
                     -LADE_EINVAL);
    assert_int_equal(lade_enqueue(f->q, NULL, NULL, NULL), -LADE_EINVAL);
    assert_int_equal(lade_enqueue_many(f->q, NULL, 3, NULL, NULL, NULL), -LADE_EINVAL);
    lade_worker *w;
    assert_int_equal(lade_worker_open(&w, f->q, &(lade_worker_config){.n_queues = 1}, NULL),
                     -LADE_EINVAL);
}

static void acting_on_many_gives_the_first_outcome_that_is_not_done(void **state)
{
    struct ts_fix *f = *state;
    lade_job_spec spec = {.kind = "job", .id = "a"};
    assert_int_equal(lade_enqueue(f->q, &spec, NULL, NULL), 0);
    const char *ids[] = {"a", "a", "nobody"};
    int outcome[3];
    assert_int_equal(lade_job_act(f->q, LADE_JOB_CANCEL, NULL, ids, 3, outcome, NULL),
                     LADE_WRONG_STATE);
    assert_int_equal(outcome[0], 0);
    assert_int_equal(outcome[1], LADE_WRONG_STATE);
    assert_int_equal(outcome[2], LADE_NOT_FOUND);
}

int main(int argc, char **argv)
{
    ts_rig_main(argc, argv);
    const struct CMUnitTest tests[] = {
        TS_TEST(enqueues_of_many_threads_share_commits_and_each_gets_its_own_answer),
        TS_TEST(the_id_that_an_enqueue_tells_is_that_of_its_own_job),
        TS_TEST(one_bad_job_refuses_the_whole_call_before_anything_is_written),
        TS_TEST(an_explicit_id_makes_enqueue_idempotent),
        TS_TEST(a_duplicate_in_a_batch_does_not_stop_the_others),
        TS_TEST(a_payload_over_the_limit_is_refused_and_one_at_the_limit_is_not),
        TS_TEST(enqueue_survives_a_failure_of_every_allocation),
        TS_TEST(bad_urls_and_options_are_refused_by_name),
        TS_TEST(bad_arguments_of_lists_and_acts_are_refused),
        TS_TEST(acting_on_many_gives_the_first_outcome_that_is_not_done),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
