/* flow_key_test.c - keys and limits through the public API, with a worker; on each store */
#include "support/rig_test.h"

#include <pthread.h>
#include <stdatomic.h>

#define NS(ms) ((ms)*LADE_MILLISECOND)

static struct {
    _Atomic int now, most, runs,
        refusals;            /* handlers at once, the most ever, in all, RATE_LIMITED said */
    _Atomic bool keys_right; /* and attempts */
} seen;

static void reset_seen(void)
{
    seen.now = seen.most = seen.runs = seen.refusals = 0;
    seen.keys_right = true;
}

static void enqueue(struct ts_fix *f, const char *id, const char *key)
{
    lade_job_spec spec = {.kind = "job", .id = id, .key = {key, key ? strlen(key) : 0}};
    assert_int_equal(lade_enqueue(f->q, &spec, NULL, NULL), 0);
}

static void limit(struct ts_fix *f, enum lade_limit_scope scope, const char *key, lade_limit l)
{
    assert_int_equal(
        lade_limit_set(f->q, "default", scope, (lade_bytes){key, strlen(key)}, &l, NULL), 0);
}

static lade_outcome count(lade_job *job, void *ctx)
{
    (void)ctx;
    int now = ++seen.now;
    for (int most = seen.most; now > most && !atomic_compare_exchange_weak(&seen.most, &most, now);)
        ;
    lade_bytes key = lade_job_key(job);
    if (key.size > 0 && memcmp(lade_job_id(job), key.data, key.size) != 0)
        seen.keys_right = false;
    ts_nap_ms(2);
    seen.runs++;
    seen.now--;
    return LADE_OK;
}

static lade_outcome done(lade_job *job, void *ctx)
{
    (void)job;
    (void)ctx;
    seen.runs++;
    return LADE_OK;
}

static lade_outcome wait_for_gate(lade_job *job, void *gate)
{
    while (access(gate, F_OK) != 0 && !lade_job_cancelled(job))
        ts_nap_ms(2);
    return LADE_OK;
}

static void run_until_quiet(struct ts_fix *f, lade_handler handler, int concurrency)
{
    ts_local_open(&f->local, &f->r, f->q, &(lade_worker_config){.concurrency = concurrency});
    assert_int_equal(lade_worker_handle(f->local.w, "*", handler, NULL), 0);
    ts_local_run(&f->local);
    assert_true(ts_rig_wait_quiet(f->q, TS_SOON));
    assert_int_equal(ts_local_stop(&f->local), 0);
}

static void assert_sound(struct ts_fix *f)
{
    lade_finding *found = NULL;
    size_t n = 0;
    assert_int_equal(lade_check(f->q, &found, &n, NULL), 0);
    for (size_t i = 0; i < n; i++)
        print_error("%s: %s\n", found[i].queue, found[i].text);
    lade_free(found);
    assert_int_equal(n, 0);
}

static void a_queue_limit_holds_over_more_slots(void **state)
{
    struct ts_fix *f = *state;
    char id[24];
    reset_seen();
    limit(f, LADE_LIMIT_QUEUE, "", (lade_limit){.concurrency = 3});
    for (int i = 0; i < 60; i++) {
        (void)snprintf(id, sizeof(id), "u%d", i);
        enqueue(f, id, NULL);
    }
    run_until_quiet(f, count, 16);
    assert_int_equal(seen.runs, 60);
    assert_in_range(seen.most, 1, 3);
    assert_sound(f);
}

static void a_key_limit_holds_over_more_slots_and_the_handler_sees_the_key(void **state)
{
    struct ts_fix *f = *state;
    char id[24];
    reset_seen();
    limit(f, LADE_LIMIT_KEYS, "", (lade_limit){.concurrency = 2});
    for (int i = 0; i < 60; i++) {
        (void)snprintf(id, sizeof(id), "tenant%d", i);
        enqueue(f, id, "tenant");
    }
    run_until_quiet(f, count, 16);
    assert_int_equal(seen.runs, 60);
    assert_in_range(seen.most, 1, 2);
    assert_true(seen.keys_right);
    assert_sound(f);
}

static lade_outcome refuse_twice(lade_job *job, void *ctx)
{
    (void)ctx;
    seen.keys_right = seen.keys_right && lade_job_attempt(job) == 1;
    if (seen.refusals < 2 && strcmp(lade_job_id(job), "A1") == 0) {
        seen.refusals++;
        lade_job_rate_limited_for(job, NS(30));
        return LADE_RATE_LIMITED;
    }
    seen.runs++;
    return LADE_OK;
}

/* C-077: the put-backs spend no attempt, and the others of the key wait with it. */
static void a_rate_limited_job_waits_with_its_key_and_spends_no_attempt(void **state)
{
    struct ts_fix *f = *state;
    lade_job_view *v;
    reset_seen();
    limit(f, LADE_LIMIT_KEYS, "", (lade_limit){.concurrency = 1});
    enqueue(f, "A1", "A");
    enqueue(f, "A2", "A");
    enqueue(f, "B1", "B");
    run_until_quiet(f, refuse_twice, 4);
    assert_int_equal(seen.refusals, 2);
    assert_int_equal(seen.runs, 3);
    assert_true(seen.keys_right);
    assert_int_equal(lade_job_get(f->q, NULL, "A1", &v, NULL), 0);
    assert_int_equal(v->attempts, 1);
    assert_int_equal(v->key.size, 1);
    lade_job_view_free(v);
    assert_sound(f);
}

/* chasqui 53: a worker stops at once while all it could do waits for a token. */
static void a_throttled_worker_stops_at_once(void **state)
{
    struct ts_fix *f = *state;
    char id[24];
    reset_seen();
    limit(f, LADE_LIMIT_QUEUE, "", (lade_limit){.rate = {1, LADE_HOUR, 2}});
    for (int i = 0; i < 10; i++) {
        (void)snprintf(id, sizeof(id), "u%d", i);
        enqueue(f, id, NULL);
    }
    ts_local_open(&f->local, &f->r, f->q, &(lade_worker_config){.concurrency = 4});
    assert_int_equal(lade_worker_handle(f->local.w, "*", count, NULL), 0);
    ts_local_run(&f->local);
    assert_true(TS_UNTIL(TS_SOON, seen.runs == 2));
    int64_t start = lb_clock_mono();
    assert_int_equal(ts_local_stop(&f->local), 0);
    assert_true(lb_clock_mono() - start < TS_SOON);
    assert_int_equal(seen.runs, 2);
    assert_int_equal(ts_rig_count(f->q, LADE_STATE_READY), 8);
    assert_sound(f);
}

/* C-078: one that never returns holds its slot; the others are taken at the rate all the same. */
static void a_handler_that_does_not_end_leaves_the_rate_to_the_others(void **state)
{
    struct ts_fix *f = *state;
    char id[24];
    reset_seen();
    limit(f, LADE_LIMIT_QUEUE, "", (lade_limit){.rate = {100, LADE_SECOND, 1}});
    lade_job_spec stuck = ts_fix_gated(f, "stuck", "stuck");
    assert_int_equal(lade_enqueue(f->q, &stuck, NULL, NULL), 0);
    ts_local_open(&f->local, &f->r, f->q, &(lade_worker_config){.concurrency = 8});
    assert_int_equal(lade_worker_handle(f->local.w, "stuck", wait_for_gate, f->gate), 0);
    assert_int_equal(lade_worker_handle(f->local.w, "job", done, NULL), 0);
    ts_local_run(&f->local);
    assert_true(ts_fix_wait_state(f, "stuck", LADE_STATE_ACTIVE));
    int64_t start = lb_clock_mono();
    for (int i = 0; i < 50; i++) {
        (void)snprintf(id, sizeof(id), "u%d", i);
        enqueue(f, id, NULL);
    }
    assert_true(TS_UNTIL(TS_SOON, seen.runs == 50));
    assert_true(lb_clock_mono() - start >= 48 * LADE_SECOND / 100); /* no faster than the rate */
    assert_int_equal(ts_rig_state(f->q, "stuck"), LADE_STATE_ACTIVE);
    ts_fix_open_gate(f);
    assert_true(ts_rig_wait_quiet(f->q, TS_SOON));
    assert_int_equal(ts_local_stop(&f->local), 0);
    assert_sound(f);
}

/* chasqui 53: bad limits are refused with the field and the rule, and nothing is written. */
static void a_bad_limit_is_refused_by_field_and_rule(void **state)
{
    struct ts_fix *f = *state;

    static const struct {
        lade_limit limit;
        enum lade_limit_scope scope;
        const char *field;
    } bad[] = {
        {{.concurrency = -1}, LADE_LIMIT_QUEUE, "concurrency"},
        {{.concurrency = -2}, LADE_LIMIT_KEY, "concurrency"},
        {{.rate = {-1, LADE_SECOND, 0}}, LADE_LIMIT_KEYS, "rate.count"},
        {{.rate = {0, LADE_SECOND, 0}}, LADE_LIMIT_KEYS, "rate.period"},
        {{.rate = {5, 0, 0}}, LADE_LIMIT_QUEUE, "rate.period"},
        {{.rate = {5, 999999, 0}}, LADE_LIMIT_QUEUE, "rate.period"},
        {{.rate = {5, LADE_SECOND, -1}}, LADE_LIMIT_QUEUE, "rate.burst"},
        {{.rate = {1001, LADE_MILLISECOND, 0}}, LADE_LIMIT_QUEUE, "rate.count"},
        {{.rate = {1, 36525 * LADE_DAY, 1000}}, LADE_LIMIT_QUEUE, "100 years"},
        {{.weight = 2}, LADE_LIMIT_QUEUE, "weight"},
        {{.weight = LADE_LIMIT_WEIGHT_MAX + 1}, LADE_LIMIT_KEYS, "weight"},
        {{.order = LADE_KEY_ORDER_FIFO}, LADE_LIMIT_QUEUE, "order"},
    };

    for (size_t i = 0; i < LB_ARRAY_LEN(bad); i++) {
        lade_err err = {0};
        assert_int_equal(
            lade_limit_set(f->q, "default", bad[i].scope, LADE_STR("k"), &bad[i].limit, &err),
            -LADE_EINVAL);
        assert_non_null(strstr(err.text, bad[i].field));
    }
    lade_err err = {0};
    lade_limit fine = {.concurrency = 1};
    assert_int_equal(lade_limit_set(f->q, "default", LADE_LIMIT_KEY, LADE_STR(""), &fine, &err),
                     -LADE_EINVAL);
    lade_bytes none = {NULL, 4};
    assert_int_equal(lade_limit_set(f->q, "default", LADE_LIMIT_KEY, none, &fine, &err),
                     -LADE_EINVAL);
    assert_string_equal(err.text, "key is NULL with a size");
    assert_int_equal(lade_limit_get(f->q, "default", LADE_LIMIT_QUEUE, LADE_STR(""), &fine, NULL),
                     LADE_NOT_FOUND);
}

/* C-076: enqueues and ends collide as they like; none stays parked. */
static void *produce(void *arg)
{
    struct ts_fix *f = arg;
    for (int i = 0; i < 400; i++) {
        char id[24];
        (void)snprintf(id, sizeof(id), "%c%d", 'a' + i % 3, i);
        char key[2] = {id[0], 0};
        lade_job_spec spec = {.kind = "job", .id = id, .key = {key, 1}};
        if (lade_enqueue(f->q, &spec, NULL, NULL) < 0)
            return (void *)1;
    }
    return NULL;
}

static void no_job_stays_parked_when_enqueues_and_ends_collide(void **state)
{
    struct ts_fix *f = *state;
    pthread_t thread;
    void *failed = NULL;
    reset_seen();
    limit(f, LADE_LIMIT_KEYS, "", (lade_limit){.concurrency = 1});
    ts_local_open(&f->local, &f->r, f->q, &(lade_worker_config){.concurrency = 8});
    assert_int_equal(lade_worker_handle(f->local.w, "*", done, NULL), 0);
    ts_local_run(&f->local);
    assert_int_equal(pthread_create(&thread, NULL, produce, f), 0);
    assert_int_equal(pthread_join(thread, &failed), 0);
    assert_null(failed);
    assert_true(TS_UNTIL(TS_SOON, seen.runs == 400));
    assert_true(ts_rig_wait_quiet(f->q, TS_SOON));
    assert_int_equal(ts_local_stop(&f->local), 0);
    assert_sound(f);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TS_TEST(a_queue_limit_holds_over_more_slots),
        TS_TEST(a_key_limit_holds_over_more_slots_and_the_handler_sees_the_key),
        TS_TEST(a_rate_limited_job_waits_with_its_key_and_spends_no_attempt),
        TS_TEST(a_throttled_worker_stops_at_once),
        TS_TEST(a_handler_that_does_not_end_leaves_the_rate_to_the_others),
        TS_TEST(a_bad_limit_is_refused_by_field_and_rule),
        TS_TEST(no_job_stays_parked_when_enqueues_and_ends_collide),
    };
    ts_rig_main(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
