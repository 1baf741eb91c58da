/* What an idle fleet costs, and how soon it has a job. */
#include "resque/rb_kit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

#define MINUTE (INT64_C(60) * 1000 * 1000 * 1000)

/*
 * resque B15: each worker sleeps the interval after its answer; what the tool is late does not count, what the server is late does. So
 * the rate must be workers / (interval + measured cycle), however slow the machine.
 */
static void the_idle_rate_has_no_bias(void **state)
{
    (void)state;
    struct cli_run r = {0};
    json_t *d = BENCH(&r, 0, "--workers", "5", "--jobs", "5", "--poll-interval-ms", "300",
                      "--idle-poll-duration-s", "2");
    const json_t *idle = at_path(result_of(d, 0), "idle_poll");
    double qps = real_in(idle, "idle_poll_qps");
    double expected = real_in(idle, "expected_qps");
    /* 2 s are 6.67 intervals: a count that starts at 0 would say 7 of each, 5 % more. */
    assert_true(fabs(qps - expected) <= 0.05 * expected);
    assert_true(expected <= 5 / 0.3 + 1e-6);
    assert_true(fabs(real_in(idle, "per_worker_qps") - qps / 5) < 0.011);
    assert_false(true_in(idle, "insufficient_sample"));
    assert_true(true_in(idle, "clean"));
    assert_null(json_object_get(idle, "skipped_reason"));
    assert_true(true_in(idle, "cost.commands.match"));
    assert_int_equal(int_in(idle, "cost.server_commands"), int_in(idle, "total_lpop_calls"));
    json_decref(d);
    run_free(&r);
}

/* resque B15 */
static void less_than_an_interval_is_no_rate(void **state)
{
    (void)state;
    struct cli_run r = {0};
    json_t *d = BENCH(&r, 0, "--workers", "4", "--jobs", "5", "--poll-interval-ms", "60000",
                      "--idle-poll-duration-s", "1");
    const json_t *idle = at_path(result_of(d, 0), "idle_poll");
    assert_true(true_in(idle, "insufficient_sample"));
    assert_true(real_in(idle, "idle_poll_qps") == 0);
    assert_true(int_in(idle, "total_lpop_calls") <= 1);
    assert_says(r.err, "INSUFFICIENT");
    assert_says(r.err, "n/a");
    json_decref(d);
    run_free(&r);
}

/* resque B17: 100, 1000, 300 sleep 0.4, 0.7, 1.0, 1.0 s: one worker that starts at once polls at 0, 0.4, 1.1, 2.1, 3.1 s. */
static void backoff_spaces_the_polls(void **state)
{
    (void)state;
    struct cli_run r = {0};
    monitor_start();
    json_t *d = BENCH(&r, 0, "--workers", "1", "--jobs", "1", "--poll-start", "together",
                      "--poll-min-ms", "100", "--poll-max-ms", "1000", "--poll-backoff-ms", "300",
                      "--idle-poll-duration-s", "3", "--namespace", "n", "--queue", "q");
    const char *log = monitor_stop();
    double at[16] = {0};
    size_t n = 0;
    for (const char *p = strstr(log, "\"LPOP\""); p && n < LB_ARRAY_LEN(at);
         p = strstr(p + 1, "\"LPOP\"")) {
        const char *line = p;
        while (line > log && line[-1] != '\n')
            line--;
        at[n++] = strtod(line, NULL);
    }
    static const double due[] = {0.4, 1.1, 2.1}; /* after the first */
    size_t idle = (size_t)int_in(result_of(d, 0), "idle_poll.total_lpop_calls");
    if (idle < 2 || idle > 4 || n <= idle || n > LB_ARRAY_LEN(at)) {
        fail_msg("%zu polls, %zu of them idle", n, idle);
        return;
    }
    const double *first = &at[n - idle];
    for (size_t i = 0; i + 1 < idle; i++) /* never sooner; later only as the machine is */
        assert_true(first[i + 1] - first[0] >= due[i] - 0.02);
    assert_int_equal(int_in(d, "config.poll_min_ms"), 100);
    assert_int_equal(int_in(d, "config.poll_max_ms"), 1000);
    assert_int_equal(int_in(d, "config.poll_backoff_ms"), 300);
    json_decref(d);
    run_free(&r);
}

/* resque B18, B24: four ways side by side, with what each costs, and three latencies that are not one. */
static void modes_are_measured_side_by_side(void **state)
{
    (void)state;
    struct cli_run r = {0};
    static const char *const mode[] = {"poll", "blpop", "blmove", "native"};
    json_t *d = BENCH(&r, 0, "--modes", "poll,blpop,blmove,native", "--workers", "3", "--jobs",
                      "300", "--poll-interval-ms", "100", "--idle-poll-duration-s", "1",
                      "--pickup-jobs", "5", "--pickup-gap-ms", "20");
    assert_int_equal(json_array_size(json_object_get(d, "results")), 4);
    for (size_t i = 0; i < 4; i++) {
        const json_t *one = result_of(d, i);
        assert_string_equal(json_text_at(one, "mode"), mode[i]);
        assert_int_equal(int_in(one, "total_jobs"), 300);
        assert_true(true_in(one, "verified"));
        assert_int_equal(int_in(one, "latency_us.total_count"), 300);
        assert_int_equal(int_in(one, "pickup.jobs_done"), 5);
        assert_int_equal(int_in(one, "pickup.pickup_us.total_count"), 5);
        assert_true(int_in(one, "pickup.pickup_us.p99") >= int_in(one, "pickup.pickup_us.p50"));
        assert_true(real_in(one, "idle_poll.cost.server_cpu_s") >= 0);
        assert_true(int_in(one, "idle_poll.cost.server_bytes_in") >= 0);
        assert_true(real_in(one, "cost.client_cpu_s") > 0);
        assert_true(json_is_object(json_object_get(one, "rtt_us")) == (i == 0));
    }
    /* Who blocks asks nothing while nothing comes; who polls asks ten times a second each. */
    assert_true(int_in(result_of(d, 0), "idle_poll.cost.server_commands") > 10);
    assert_int_equal(int_in(result_of(d, 1), "idle_poll.cost.server_commands"), 0);
    assert_int_equal(int_in(result_of(d, 2), "idle_poll.cost.server_commands"), 0);
    assert_true(int_in(result_of(d, 3), "idle_poll.cost.server_commands") < 10);
    assert_says(r.err, &"50 µs"[2]); /* units */
    assert_says(r.err, "--- Cost (");
    assert_int_equal(ask_int("DBSIZE"), 0);
    json_decref(d);
    run_free(&r);
}

static void blmove_refuses_several_queues(void **state)
{
    (void)state;
    struct cli_run r = {0};
    RUN(&r, "--modes", "blmove", "--num-queues", "2");
    assert_code(&r, 1);
    assert_says(r.err, "one queue");
    run_free(&r);
}

/* resque B24: arrivals are due at fixed times. While the server stands still they go on being due, and their latency shows it. */
static void an_open_loop_counts_the_time_a_job_was_due(void **state)
{
    (void)state;
    struct ts_proc p;
    BENCH_START(&p, "--workers", "2", "--jobs", "5", "--no-idle", "--rate", "100",
                "--rate-duration-s", "3", "--poll-interval-ms", "20", "--namespace", "n", "--queue",
                "q");
    assert_true(TS_UNTIL(MINUTE, strstr(kit_log(), "workers] .") != NULL));
    assert_true(
        TS_UNTIL(MINUTE, strstr(ask("INFO commandstats"), "cmdstat_rpush:calls=2") != NULL));
    ts_redis_freeze(&kit_redis);
    ts_nap_ms(1000);
    ts_redis_thaw(&kit_redis);
    assert_true(ts_proc_wait(&p, 3 * MINUTE));
    assert_int_equal(ts_proc_code(&p), 0);
    json_t *d = kit_json();
    const json_t *open = at_path(result_of(d, 0), "open_loop");
    assert_int_equal(int_in(open, "jobs_done"), 300);
    assert_int_equal(int_in(open, "pickup_us.total_count"), 300);
    assert_true(int_in(open, "pickup_us.max") >= 900000);
    /* A hundred jobs were due in that second, a third of all: a closed loop would have one slow answer for each worker. */
    assert_true(int_in(open, "pickup_us.p75") >= 100000);
    assert_int_equal(ask_int("DBSIZE"), 0);
    json_decref(d);
}

/* resque B19 */
static void a_server_that_dies_in_the_idle_phase_is_no_rate(void **state)
{
    (void)state;
    struct ts_proc p;
    BENCH_START(&p, "--workers", "3", "--jobs", "10", "--poll-interval-ms", "50",
                "--idle-poll-duration-s", "3", "--namespace", "n", "--queue", "q");
    assert_true(TS_UNTIL(MINUTE, strstr(kit_log(), "workers] .") != NULL));
    assert_true(TS_UNTIL(MINUTE, strstr(ask("INFO commandstats"), "cmdstat_lpop:calls=2") != NULL));
    ts_redis_kill(&kit_redis);
    assert_true(TS_UNTIL(MINUTE, strstr(kit_log(), "SKIPPED — failed") != NULL));
    assert_true(ts_proc_wait(&p, 3 * MINUTE));
    assert_int_equal(ts_proc_code(&p), 1);
    json_t *d = kit_json();
    const json_t *idle = at_path(result_of(d, 0), "idle_poll");
    assert_true(true_in(idle, "failed"));
    assert_true(int_in(idle, "errors") >= 1);
    assert_true(real_in(idle, "idle_poll_qps") == 0);
    assert_non_null(strstr(json_text_at(idle, "skipped_reason"), "failed"));
    json_decref(d);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_idle_rate_has_no_bias),
        cmocka_unit_test(less_than_an_interval_is_no_rate),
        cmocka_unit_test(backoff_spaces_the_polls),
        cmocka_unit_test(modes_are_measured_side_by_side),
        cmocka_unit_test(blmove_refuses_several_queues),
        cmocka_unit_test(an_open_loop_counts_the_time_a_job_was_due),
        cmocka_unit_test(a_server_that_dies_in_the_idle_phase_is_no_rate),
    };
    return kit_main(argc, argv, "resque-bench: idle", tests, LB_ARRAY_LEN(tests));
}
