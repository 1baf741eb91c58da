/*
 * flow_ahead_test.c - steps of chains that begin before the store has the step before (queue/ahead.h); on each store
 */
#include <inttypes.h>
#include <lade/effect.h>

#include "support/rig_test.h"

#define CHAINS 64
#define LENGTH 20

static struct {
    _Atomic int done[CHAINS]; /* steps of each chain whose handlers have returned */
    _Atomic int runs, disorder, unstored, failures;
    _Atomic bool hold;
    lade *q;
} seen;

/* "CHAIN STEP" */
static void read_payload(const lade_job *job, int *chain, int *step)
{
    char text[32];
    lade_bytes p = lade_job_payload(job);
    (void)snprintf(text, sizeof(text), "%.*s", (int)p.size, (const char *)p.data);
    char *end = NULL;
    *chain = (int)strtol(text, &end, 10);
    *step = (int)strtol(end, NULL, 10);
}

/* Each step once, and after the one before it: no store fails here. */
static lade_outcome note_run(const lade_job *job)
{
    int chain, step;
    read_payload(job, &chain, &step);
    seen.disorder += seen.done[chain] != step;
    seen.done[chain] = step + 1;
    seen.runs++;
    return LADE_OK;
}

static lade_outcome run_plain(lade_job *job, void *ctx)
{
    (void)ctx;
    return note_run(job);
}

/* Whether the step before is stored as completed. */
static lade_outcome run_looking(lade_job *job, void *ctx)
{
    (void)ctx;
    int chain, step;
    char id[LADE_ID_MAX + 1];
    read_payload(job, &chain, &step);
    (void)snprintf(id, sizeof(id), "%.56s~%d", lade_job_flow(job), step - 1);
    lade_job_view *v = NULL;
    if (step > 0 && lade_job_get(seen.q, NULL, id, &v, NULL) == 0) {
        seen.unstored += v->state != LADE_STATE_COMPLETED;
        lade_job_view_free(v);
    }
    return note_run(job);
}

/* Its result is its step; the input is that of the step before. */
static lade_outcome run_reading(lade_job *job, void *ctx)
{
    (void)ctx;
    int chain, step;
    char text[16];
    read_payload(job, &chain, &step);
    lade_flow_input in;
    if (step % 3 == 2) { /* now and then, so that some of the kind are run ahead */
        int rc = lade_job_input(job, 0, &in, NULL);
        seen.failures += rc != 0 || strtol(in.result.data, NULL, 10) != step - 1;
    }
    (void)snprintf(text, sizeof(text), "%d", step);
    seen.failures += lade_job_result(job, LADE_STR(text)) != 0;
    return note_run(job);
}

static lade_outcome run_telling(lade_job *job, void *ctx)
{
    (void)ctx;
    int chain, step;
    read_payload(job, &chain, &step);
    if (step % 3 == 1)
        seen.failures += lade_job_log(job, "step %d", step) != 0;
    if (step % 3 == 2)
        seen.failures += lade_effect(job, "once", LADE_STR("x"), NULL) != 0;
    return note_run(job);
}

static lade_outcome run_flaky(lade_job *job, void *ctx)
{
    (void)ctx;
    int chain, step;
    read_payload(job, &chain, &step);
    if (step % 4 == 3 && lade_job_attempt(job) == 1) {
        lade_job_retry_in(job, 0);
        return LADE_RETRY;
    }
    return note_run(job);
}

static lade_outcome run_held(lade_job *job, void *ctx)
{
    int chain, step;
    read_payload(job, &chain, &step);
    while (step > 0 && seen.hold && !lade_job_cancelled(job))
        ts_nap_ms(1);
    return lade_job_cancelled(job) ? LADE_RETRY : run_plain(job, ctx);
}

/* A worker; of chain 0 so many steps are done before it runs. */
static void start_after(struct ts_fix *f, lade_worker_config config, int n_done)
{
    static const struct {
        const char *kind;
        lade_handler fn;
    } routes[] = {{"plain", run_plain},     {"looking", run_looking}, {"reading", run_reading},
                  {"telling", run_telling}, {"flaky", run_flaky},     {"held", run_held}};

    memset(&seen, 0, sizeof(seen));
    seen.q = f->q;
    seen.done[0] = n_done;
    ts_local_open(&f->local, &f->r, f->q, &config);
    for (size_t i = 0; i < LB_ARRAY_LEN(routes); i++)
        assert_int_equal(lade_worker_handle(f->local.w, routes[i].kind, routes[i].fn, NULL), 0);
    ts_local_run(&f->local);
}

static void start(struct ts_fix *f, lade_worker_config config)
{
    start_after(f, config, 0);
}

static lade_id enqueue(struct ts_fix *f, const char *kind, int chain)
{
    static char text[LENGTH][32];
    lade_job_spec spec[LENGTH];
    lade_flow_step steps[LENGTH];
    lade_id id;
    lade_err err = {0};
    for (int i = 0; i < LENGTH; i++) {
        int n = snprintf(text[i], sizeof(text[i]), "%d %d", chain, i);
        spec[i] = (lade_job_spec){.kind = kind, .payload = {text[i], (size_t)n}};
        steps[i] = lade_flow_job(&spec[i]);
    }
    int rc = lade_flow_enqueue(f->q, &(lade_flow_spec){.root = lade_flow_chain(steps, LENGTH)}, &id,
                               &err);
    if (rc < 0)
        print_message("%s\n", err.text);
    assert_int_equal(rc, 0);
    return id;
}

static void wait_runs(int n)
{
    int64_t deadline = lb_deadline_in(TS_SOON);
    while (seen.runs < n && lb_clock_mono() < deadline)
        ts_nap_ms(2);
    assert_int_equal(seen.runs, n);
}

static void wait_for(struct ts_fix *f, lade_id id, enum lade_flow_state wanted)
{
    int64_t deadline = lb_deadline_in(TS_SOON);
    enum lade_flow_state now;
    do {
        lade_flow_view *v = NULL;
        assert_int_equal(lade_flow_get(f->q, id.text, &v, NULL), 0);
        now = v->state;
        lade_flow_view_free(v);
        if (now != wanted)
            ts_nap_ms(2);
    } while (now != wanted && lb_clock_mono() < deadline);
    assert_int_equal(now, wanted);
}

/* All chains of a kind to their end: each step once, in order. */
static void run_all(struct ts_fix *f, const char *kind)
{
    lade_id id[CHAINS];
    for (int i = 0; i < CHAINS; i++)
        id[i] = enqueue(f, kind, i);
    for (int i = 0; i < CHAINS; i++)
        wait_for(f, id[i], LADE_FLOW_COMPLETED);
    assert_int_equal(seen.runs, CHAINS * LENGTH);
    assert_int_equal(seen.disorder, 0);
    assert_int_equal(seen.failures, 0);
    lade_queue_info info;
    assert_int_equal(lade_queue_get(f->q, "default", &info, NULL), 0);
    assert_int_equal(info.total_completed, CHAINS * LENGTH);
    assert_int_equal(info.total_enqueued, CHAINS * LENGTH);
    assert_int_equal(info.count[LADE_STATE_ACTIVE], 0);
    assert_int_equal(ts_local_stats(&f->local).lost, 0);
}

static void each_step_runs_once_and_after_the_one_before(void **state)
{
    struct ts_fix *f = *state;
    start(f, (lade_worker_config){.concurrency = 4});
    run_all(f, "plain");
    assert_inv(f, TS_INV_QUIET);
}

static void one_slot_runs_its_chains_too(void **state)
{
    struct ts_fix *f = *state;
    start(f, (lade_worker_config){.concurrency = 1, .executor = LADE_EXECUTOR_THREAD});
    run_all(f, "plain");
}

static void input_is_the_result_of_the_step_before_though_that_was_not_stored(void **state)
{
    struct ts_fix *f = *state;
    start(f, (lade_worker_config){.concurrency = 4});
    run_all(f, "reading");
}

static void progress_and_effects_wait_until_the_step_before_is_stored(void **state)
{
    struct ts_fix *f = *state;
    start(f, (lade_worker_config){.concurrency = 4});
    run_all(f, "telling");
}

static void step_that_fails_once_runs_again_and_its_chain_goes_on(void **state)
{
    struct ts_fix *f = *state;
    start(f, (lade_worker_config){.concurrency = 4});
    run_all(f, "flaky");
    assert_int_equal(ts_local_stats(&f->local).retried, CHAINS * LENGTH / 4);
}

static void strict_worker_begins_a_step_only_when_the_one_before_is_stored(void **state)
{
    struct ts_fix *f = *state;
    start(f, (lade_worker_config){.concurrency = 4, .strict_steps = true});
    run_all(f, "looking");
    assert_int_equal(seen.unstored, 0);
}

static void worker_begins_steps_before_the_one_before_is_stored(void **state)
{
    struct ts_fix *f = *state;
    start(f, (lade_worker_config){.concurrency = 1});
    int64_t deadline = lb_deadline_in(TS_SOON);
    for (int i = 0; i < CHAINS && seen.unstored == 0 && lb_clock_mono() < deadline; i++)
        wait_for(f, enqueue(f, "looking", i), LADE_FLOW_COMPLETED);
    assert_int_equal(seen.disorder, 0);
    assert_true(seen.unstored > 0);
}

static void step_run_ahead_is_stopped_when_its_flow_is_cancelled(void **state)
{
    struct ts_fix *f = *state;
    start(f, (lade_worker_config){.concurrency = 2, .lease = LADE_SECOND});
    seen.hold = true;
    lade_id id = enqueue(f, "held", 0);
    wait_runs(1);
    assert_int_equal(lade_flow_act(f->q, LADE_FLOW_CANCEL, id.text, NULL), 0);
    wait_for(f, id, LADE_FLOW_CANCELLED);
    int64_t deadline = lb_deadline_in(TS_SOON);
    lade_queue_info info = {0};
    do {
        ts_nap_ms(2);
        assert_int_equal(lade_queue_get(f->q, "default", &info, NULL), 0);
    } while (info.count[LADE_STATE_ACTIVE] > 0 && lb_clock_mono() < deadline);
    assert_int_equal(info.count[LADE_STATE_ACTIVE], 0);
    assert_int_equal(seen.runs, 1);
    assert_inv(f, TS_INV_QUIET);
}

static void worker_that_stops_hands_back_the_step_it_has_begun(void **state)
{
    struct ts_fix *f = *state;
    start(f, (lade_worker_config){.concurrency = 2, .shutdown_timeout = -1});
    seen.hold = true;
    lade_id id = enqueue(f, "held", 0);
    wait_runs(1);
    assert_int_equal(ts_local_stop(&f->local), 0);
    assert_inv(f, TS_INV_RUNNING);
    lade_flow_view *v = NULL;
    assert_int_equal(lade_flow_get(f->q, id.text, &v, NULL), 0);
    assert_int_equal(v->nodes[0].state, LADE_STEP_COMPLETED);
    assert_int_equal(v->nodes[1].state, LADE_STEP_ENQUEUED);
    lade_flow_view_free(v);
    lade_queue_info info;
    assert_int_equal(lade_queue_get(f->q, "default", &info, NULL), 0);
    assert_int_equal(info.count[LADE_STATE_READY], 1);
    start_after(f, (lade_worker_config){.concurrency = 2}, 1);
    wait_for(f, id, LADE_FLOW_COMPLETED);
    assert_int_equal(seen.disorder, 0);
    assert_int_equal(seen.runs, LENGTH - 1);
}

int main(int argc, char **argv)
{
    ts_rig_main(argc, argv);
    const struct CMUnitTest tests[] = {
        TS_TEST(each_step_runs_once_and_after_the_one_before),
        TS_TEST(one_slot_runs_its_chains_too),
        TS_TEST(input_is_the_result_of_the_step_before_though_that_was_not_stored),
        TS_TEST(progress_and_effects_wait_until_the_step_before_is_stored),
        TS_TEST(step_that_fails_once_runs_again_and_its_chain_goes_on),
        TS_TEST(strict_worker_begins_a_step_only_when_the_one_before_is_stored),
        TS_TEST(worker_begins_steps_before_the_one_before_is_stored),
        TS_TEST(step_run_ahead_is_stopped_when_its_flow_is_cancelled),
        TS_TEST(worker_that_stops_hands_back_the_step_it_has_begun),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
