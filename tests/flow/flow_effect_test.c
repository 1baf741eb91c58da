/* flow_effect_test.c - effects that a handler records with its job (<lade/effect.h>), on each store */
#include "support/rig_test.h"

#include <stdatomic.h>

#include <lade/testing.h>

/* What handlers did and saw; the test asserts. */
static struct {
    _Atomic int charged, skipped, runs;
    _Atomic int rc[4];
    char value[64];
    int runs_that_fail;
} seen;

static void reset_seen(int runs_that_fail)
{
    memset(&seen, 0, sizeof(seen));
    seen.runs_that_fail = runs_that_fail;
}

static lade_outcome end_of(lade_job *job)
{
    lade_job_retry_in(job, 0);
    return seen.runs++ < seen.runs_that_fail ? LADE_RETRY : LADE_OK;
}

static lade_outcome charge_once(lade_job *job, void *ctx)
{
    (void)ctx;
    lade_bytes value;
    if (lade_effect_done(job, "charge", &value)) {
        (void)snprintf(seen.value, sizeof(seen.value), "%.*s", (int)value.size,
                       (const char *)value.data);
        seen.skipped++;
    } else {
        seen.charged++;
        seen.rc[0] = lade_effect(job, "charge", LADE_STR("receipt 17"), NULL);
        seen.rc[1] = lade_effect(job, "charge", LADE_STR("another"), NULL);
    }
    return end_of(job);
}

static int count_call(lade_job *job, void *ctx)
{
    (void)job;
    (void)ctx;
    seen.charged++;
    return seen.rc[3];
}

static lade_outcome run_two(lade_job *job, void *ctx)
{
    (void)ctx;
    seen.rc[0] = lade_effect_run(job, "mail", count_call, NULL, NULL);
    seen.rc[1] = lade_effect_run(job, "mail", count_call, NULL, NULL);
    seen.rc[3] = -77;
    seen.rc[2] = lade_effect_run(job, "other", count_call, NULL, NULL);
    return end_of(job);
}

static lade_outcome record_many(lade_job *job, void *ctx)
{
    (void)ctx;
    int added = 0, full = 0;
    char value[LADE_EFFECT_VALUE_MAX + 1];
    memset(value, 'v', sizeof(value));
    for (int i = 0; i < LADE_EFFECTS_MAX + 3; i++) {
        char key[24];
        (void)snprintf(key, sizeof(key), "step-%d", i);
        int rc = lade_effect(job, key, (lade_bytes){value, LADE_EFFECT_VALUE_MAX}, NULL);
        added += rc == 0;
        full += rc == LADE_FULL;
    }
    seen.rc[0] = added;
    seen.rc[1] = full;
    return end_of(job);
}

static lade_outcome record_bad(lade_job *job, void *ctx)
{
    (void)ctx;
    char key[LADE_EFFECT_KEY_MAX + 2];
    memset(key, 'k', sizeof(key));
    key[sizeof(key) - 1] = 0;
    char value[LADE_EFFECT_VALUE_MAX + 1] = {0};
    seen.rc[0] = lade_effect(job, key, LADE_STR(""), NULL);
    seen.rc[1] = lade_effect(job, "", LADE_STR(""), NULL);
    seen.rc[2] = lade_effect(job, "k", (lade_bytes){value, sizeof(value)}, NULL);
    key[LADE_EFFECT_KEY_MAX] = 0;
    seen.rc[3] = lade_effect(job, key, (lade_bytes){value, LADE_EFFECT_VALUE_MAX}, NULL);
    return end_of(job);
}

static lade_outcome record_when_removed(lade_job *job, void *ctx)
{
    lade *q = ctx;
    const char *id = lade_job_id(job);
    seen.rc[1] = lade_job_act(q, LADE_JOB_REMOVE, "default", &id, 1, NULL, NULL);
    seen.rc[0] = lade_effect(job, "late", LADE_STR(""), NULL);
    return end_of(job);
}

static void start_with(struct ts_fix *f, lade_handler fn, void *ctx)
{
    ts_local_open(&f->local, &f->r, f->q, NULL);
    assert_int_equal(lade_worker_handle(f->local.w, "job", fn, ctx), 0);
    ts_local_run(&f->local);
}

static void enqueue(struct ts_fix *f, const char *id, int max_attempts)
{
    lade_job_spec spec = {.kind = "job", .id = id, .max_attempts = max_attempts};
    assert_int_equal(lade_enqueue(f->q, &spec, NULL, NULL), 0);
}

static lade_job_view *view_of(const struct ts_fix *f, const char *id)
{
    lade_job_view *v = NULL;
    assert_int_equal(lade_job_get(f->q, NULL, id, &v, NULL), 0);
    return v;
}

static void next_attempt_skips_what_was_recorded(void **state)
{
    struct ts_fix *f = *state;
    reset_seen(2);
    start_with(f, charge_once, NULL);
    enqueue(f, "order", 0);
    assert_true(ts_fix_wait_state(f, "order", LADE_STATE_COMPLETED));
    assert_int_equal(seen.rc[0], 0);
    assert_int_equal(seen.rc[1], LADE_DUPLICATE);
    assert_int_equal(seen.charged, 1);
    assert_int_equal(seen.skipped, 2);
    assert_string_equal(seen.value, "receipt 17");
    lade_job_view *v = view_of(f, "order");
    assert_int_equal(v->attempts, 3);
    assert_int_equal(v->n_history, 2);
    assert_int_equal(v->n_effects, 1);
    assert_string_equal(v->effects[0].key, "charge");
    assert_int_equal(v->effects[0].value.size, 10);
    assert_memory_equal(v->effects[0].value.data, "receipt 17", 10);
    assert_true(v->effects[0].at > 0);
    lade_job_view_free(v);
}

static void effect_is_run_once_and_its_failure_is_handed_on(void **state)
{
    struct ts_fix *f = *state;
    reset_seen(0);
    start_with(f, run_two, NULL);
    enqueue(f, "order", 0);
    assert_true(ts_fix_wait_state(f, "order", LADE_STATE_COMPLETED));
    assert_int_equal(seen.rc[0], 0);
    assert_int_equal(seen.rc[1], LADE_DUPLICATE);
    assert_int_equal(seen.rc[2], -77);
    assert_int_equal(seen.charged, 2);
    lade_job_view *v = view_of(f, "order");
    assert_int_equal(v->n_effects, 1);
    lade_job_view_free(v);
}

/* More attempts than a history keeps: the effects of the first stay; so they do in the dead, and through redrive. */
static void effects_outlast_a_long_history_and_redrive(void **state)
{
    struct ts_fix *f = *state;
    reset_seen(1000);
    start_with(f, charge_once, NULL);
    enqueue(f, "order", 40);
    assert_true(ts_fix_wait_state(f, "order", LADE_STATE_DEAD));
    lade_job_view *v = view_of(f, "order");
    assert_int_equal(v->attempts, 40);
    assert_int_equal(v->n_history, 32);
    assert_int_equal(v->history[31].number, 40);
    assert_int_equal(v->n_effects, 1);
    lade_job_view_free(v);
    seen.runs_that_fail = 0;
    size_t n;
    assert_int_equal(lade_dead_redrive(f->q, "default", 10, &n, NULL), 0);
    assert_true(ts_fix_wait_state(f, "order", LADE_STATE_COMPLETED));
    assert_int_equal(seen.charged, 1);
    assert_int_equal(seen.skipped, 40);
}

static void effects_of_a_job_are_bounded(void **state)
{
    struct ts_fix *f = *state;
    reset_seen(1);
    start_with(f, record_many, NULL);
    enqueue(f, "order", 0);
    assert_true(ts_fix_wait_state(f, "order", LADE_STATE_COMPLETED));
    assert_int_equal(seen.rc[0],
                     0); /* of the second run: all are there already, or there is no room */
    assert_int_equal(seen.rc[1], 3);
    lade_job_view *v = view_of(f, "order");
    assert_int_equal(v->n_effects, LADE_EFFECTS_MAX);
    for (int i = 0; i < LADE_EFFECTS_MAX; i++)
        assert_int_equal(v->effects[i].value.size, LADE_EFFECT_VALUE_MAX);
    assert_string_equal(v->effects[31].key, "step-31");
    assert_int_equal(v->n_history, 1);
    lade_job_view_free(v);
}

static void bad_effects_are_refused(void **state)
{
    struct ts_fix *f = *state;
    reset_seen(0);
    start_with(f, record_bad, NULL);
    enqueue(f, "order", 0);
    assert_true(ts_fix_wait_state(f, "order", LADE_STATE_COMPLETED));
    assert_int_equal(seen.rc[0], -LADE_ETOOBIG);
    assert_int_equal(seen.rc[1], -LADE_EINVAL);
    assert_int_equal(seen.rc[2], -LADE_ETOOBIG);
    assert_int_equal(seen.rc[3], 0);
    assert_false(lade_effect_done(NULL, "k", NULL));
    assert_int_equal(lade_effect(NULL, "k", LADE_STR(""), NULL), -LADE_EINVAL);
    assert_int_equal(lade_effect_run(NULL, "k", count_call, NULL, NULL), -LADE_EINVAL);
}

static void effect_of_a_job_that_is_not_ours_any_more_is_refused(void **state)
{
    struct ts_fix *f = *state;
    reset_seen(0);
    start_with(f, record_when_removed, f->q);
    enqueue(f, "order", 0);
    assert_true(TS_UNTIL(TS_SOON, seen.runs == 1));
    assert_int_equal(seen.rc[1], 0);
    assert_int_equal(seen.rc[0], LADE_STALE);
    assert_true(ts_fix_wait_state(f, "order", -1));
    /* the same id again is another job, without the effects of the first */
    enqueue(f, "order", 0);
    assert_true(TS_UNTIL(TS_SOON, seen.runs == 2));
}

static lade_outcome say_and_charge(lade_job *job, void *ctx)
{
    for (int i = 0; i < 40; i++) {
        seen.rc[2] |= lade_job_progress(job, i, "charging");
        seen.rc[2] |= lade_job_log(job, "line %d", i);
    }
    (void)charge_once(job, ctx);
    return charge_once(job, ctx);
}

/* A handler that is run inline may do all that it does from the store. */
static void an_inline_job_records_effects_for_its_run(void **state)
{
    struct ts_fix *f = *state;
    lade_outcome said = LADE_DEAD;
    lade_job_spec spec = {.kind = "job"};
    ts_local_open(&f->local, &f->r, f->q, NULL);
    assert_int_equal(lade_worker_handle(f->local.w, "job", say_and_charge, NULL), 0);
    for (int i = 1; i <= 2; i++) {
        reset_seen(0);
        assert_int_equal(lade_worker_inline(f->local.w, &spec, &said, NULL), 0);
        assert_int_equal(said, LADE_OK);
        assert_int_equal(seen.charged, 1);
        assert_int_equal(seen.skipped, 1);
        assert_string_equal(seen.value, "receipt 17");
        assert_int_equal(seen.rc[0], 0);
        assert_int_equal(seen.rc[1], LADE_DUPLICATE);
        assert_int_equal(seen.rc[2], 0);
    }
}

int main(int argc, char **argv)
{
    ts_rig_main(argc, argv);
    const struct CMUnitTest tests[] = {
        TS_TEST(next_attempt_skips_what_was_recorded),
        TS_TEST(effect_is_run_once_and_its_failure_is_handed_on),
        TS_TEST(effects_outlast_a_long_history_and_redrive),
        TS_TEST(effects_of_a_job_are_bounded),
        TS_TEST(bad_effects_are_refused),
        TS_TEST(effect_of_a_job_that_is_not_ours_any_more_is_refused),
        TS_TEST(an_inline_job_records_effects_for_its_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
