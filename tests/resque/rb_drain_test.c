/* Drains that go well and drains that do not. */
#include "resque/rb_kit.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "support/proxy.h"

#define MINUTE (INT64_C(60) * 1000 * 1000 * 1000)

static int64_t sum_of(const json_t *array)
{
    int64_t sum = 0;
    for (size_t i = 0; i < json_array_size(array); i++)
        sum += json_integer_value(json_array_get(array, i));
    return sum;
}

/* resque B12, B22: all of them, once each; every series has the same length, and a short trial has its one second. */
static void a_drain_takes_every_job_once(void **state)
{
    (void)state;
    struct cli_run r = {0};
    json_t *d = BENCH(&r, 0, "--workers", "2,7", "--jobs", "500", "--num-queues", "3", "--no-idle");
    assert_int_equal(json_array_size(json_object_get(d, "results")), 2);
    for (size_t i = 0; i < 2; i++) {
        const json_t *one = result_of(d, i);
        assert_int_equal(int_in(one, "total_jobs"), 500);
        assert_int_equal(int_in(one, "errors"), 0);
        assert_int_equal(int_in(one, "latency_us.total_count"), 500);
        assert_false(true_in(one, "timed_out"));
        assert_true(true_in(one, "verified"));
        assert_true(real_in(one, "jobs_per_sec") > 0);
        assert_true(true_in(one, "cost.commands.match"));
        size_t n = json_array_size(json_object_get(one, "throughput_per_sec"));
        assert_true(n >= 1);
        assert_int_equal(sum_of(json_object_get(one, "throughput_per_sec")), 500);
        assert_int_equal(json_array_size(json_object_get(one, "errors_per_sec")), n);
        assert_int_equal(json_array_size(json_object_get(one, "series_seconds")), n);
        const char *name;
        json_t *series;
        json_object_foreach(json_object_get(one, "latency_per_sec_us"), name, series)
            assert_int_equal(json_array_size(series), n);
    }
    assert_int_equal(ask_int("DBSIZE"), 0);
    json_decref(d);
    run_free(&r);
}

/* The commands of workers that share connections are the same, and each has its own answer. */
static void workers_may_share_connections(void **state)
{
    (void)state;
    struct cli_run r = {0};
    static const char *const profile[] = {"plain", "resque"};
    for (size_t i = 0; i < LB_ARRAY_LEN(profile); i++) {
        json_t *d = BENCH(&r, 0, "--workers", "9", "--connections", "2", "--jobs", "700",
                          "--num-queues", "2", "--poll-profile", profile[i], "--poll-interval-ms",
                          "200", "--idle-poll-duration-s", "1");
        const json_t *one = result_of(d, 0);
        assert_int_equal(int_in(one, "total_jobs"), 700);
        assert_true(true_in(one, "verified"));
        assert_true(true_in(one, "cost.commands.match"));
        assert_true(true_in(one, "idle_poll.cost.commands.match"));
        assert_int_equal(int_in(d, "config.connections"), 2);
        if (i == 1)
            assert_int_equal(int_in(one, "cost.commands.by_name.incrby.server"), 2 * 700);
        json_decref(d);
    }
    RUN(&r, "--modes", "blpop", "--connections", "2");
    assert_code(&r, 1);
    assert_says(r.err, "--connections");
    assert_int_equal(ask_int("DBSIZE"), 0);
    run_free(&r);
}

/* And a connection that breaks takes those of its workers with it that were waiting, no others. */
static void a_shared_connection_that_breaks_is_dialed_again(void **state)
{
    (void)state;
    struct cli_run r = {0};
    struct ts_proxy *proxy = ts_proxy_start(kit_redis.socket);
    assert_non_null(proxy);
    (void)ts_proxy_rule(proxy,
                        &(struct ts_proxy_rule){
                            .match = "LPOP", .act = TS_PROXY_DROP_REQUEST, .skip = 40, .times = 2});
    json_t *d = BENCH(&r, 1, "--url", ts_proxy_url(proxy), "--workers", "6", "--connections", "2",
                      "--jobs", "400", "--poll-interval-ms", "20", "--no-idle");
    const json_t *one = result_of(d, 0);
    assert_int_equal(int_in(one, "reconnects"), 2);
    assert_true(int_in(one, "errors") >= 2 && int_in(one, "errors") <= 6);
    assert_true(int_in(one, "lost_jobs") <= int_in(one, "errors"));
    assert_int_equal(int_in(one, "total_jobs") + int_in(one, "lost_jobs"), 400);
    ts_proxy_stop(proxy);
    json_decref(d);
    run_free(&r);
}

static void memory_does_not_grow_with_the_jobs(void **state)
{
    (void)state;
    struct cli_run r = {0};
    int64_t rss[2];
    static const char *const jobs[] = {"2000", "200000"};
    for (int i = 0; i < 2; i++) {
        json_t *d =
            BENCH(&r, 0, "--workers", "8", "--connections", "4", "--no-idle", "--jobs", jobs[i]);
        rss[i] = int_in(d, "tool.max_rss_bytes");
        json_decref(d);
    }
    assert_true(rss[1] - rss[0] < 16 << 20); /* the jobs themselves are 17 MB */
    run_free(&r);
}

/* resque B13, B26: the server stands still for longer than --timeout. What was on its way is not lost by that. */
static void a_drain_that_runs_out_of_time_says_so(void **state)
{
    (void)state;
    struct ts_proc p;
    BENCH_START(&p, "--workers", "3", "--jobs", "2000000", "--timeout", "2", "--namespace", "n",
                "--queue", "q");
    assert_true(TS_UNTIL(MINUTE, strstr(ask("INFO commandstats"), "cmdstat_lpop:") != NULL));
    ts_redis_freeze(&kit_redis);
    assert_true(TS_UNTIL(MINUTE, strstr(kit_log(), "workers] ") != NULL));
    ts_nap_ms(
        3000); /* longer than --timeout: the server answers nothing in that time, however slow the machine */
    ts_redis_thaw(&kit_redis);
    assert_true(ts_proc_wait(&p, 3 * MINUTE));
    assert_int_equal(ts_proc_code(&p), 1);
    assert_says(kit_log(), "[timeout after 2s]");
    assert_says(kit_log(), "[TIMEOUT]");
    assert_says(kit_log(), "SKIPPED");
    json_t *d = kit_json();
    const json_t *one = result_of(d, 0);
    assert_true(true_in(one, "timed_out"));
    assert_non_null(
        strstr(json_text_at(at_path(one, "idle_poll"), "skipped_reason"), "still queued"));
    assert_true(real_in(one, "idle_poll.idle_poll_qps") == 0);
    int64_t done = int_in(one, "total_jobs");
    assert_int_equal(int_in(one, "latency_us.total_count") + int_in(one, "latency_us.overflow"),
                     done);
    assert_int_equal(sum_of(json_object_get(one, "throughput_per_sec")), done);
    assert_int_equal(ask_int("DBSIZE"), 0); /* what was left of ours is gone */
    json_decref(d);
}

/* Others' entries, put while the tool runs and before its jobs are all taken. */
static json_t *with_entries(const char *const *entry, int code, bool idle)
{
    struct ts_proc p;
    static const char *const args[] = {"--workers",   "1", "--jobs",  "30000",
                                       "--namespace", "n", "--queue", "q"};
    const char *all[20];
    size_t n = 0;
    for (; n < LB_ARRAY_LEN(args); n++)
        all[n] = args[n];
    if (!idle)
        all[n++] = "--no-idle";
    all[n++] = "--idle-poll-duration-s";
    all[n++] = "1";
    all[n++] = "--poll-interval-ms";
    all[n++] = "100";
    all[n] = NULL;
    kit_start(&p, all);
    assert_true(TS_UNTIL(MINUTE, strstr(ask("INFO commandstats"), "cmdstat_rpush:") != NULL));
    for (; *entry; entry++)
        (void)ask(*entry);
    assert_true(ts_proc_wait(&p, 3 * MINUTE));
    assert_int_equal(ts_proc_code(&p), code);
    return kit_json();
}

/* resque B21 */
static void entries_that_are_no_jobs_are_errors_and_stall_nothing(void **state)
{
    (void)state;
    static const char *const entry[] = {
        "LPUSH n:queue:q not-json",
        "LPUSH n:queue:q \"{\\\"class\\\":\\\"LoadWorker\\\",\\\"args\\\":[1]}\"",
        "LPUSH n:queue:q \xff\xfe\xfd", "LPUSH n:queue:q [1,2]", NULL};
    json_t *d = with_entries(entry, 1, false);
    const json_t *one = result_of(d, 0);
    assert_int_equal(int_in(one, "errors"), 4);
    assert_int_equal(int_in(one, "total_jobs"), 30000);
    assert_int_equal(int_in(one, "latency_us.total_count"), 30000);
    assert_int_equal(int_in(one, "foreign_jobs"), 0);
    assert_true(true_in(one, "verified"));
    assert_int_equal(ask_int("LLEN n:queue:q"), 4); /* they are somebody's: given back */
    json_decref(d);
}

/* resque B14: taken in the drain, and put into the idle phase. */
static void jobs_of_others_are_told_and_given_back(void **state)
{
    (void)state;
    static const char *const entry[] = {
        "LPUSH n:queue:q \"{\\\"class\\\":\\\"Mail\\\",\\\"args\\\":[1,2,3,1700000000000000001]}\"",
        "LPUSH n:queue:q \"{\\\"class\\\":\\\"LoadWorker\\\",\\\"args\\\":[\\\"s\\\",1,{\\\"mike\\\":\\\"bob\\\"},17]}\"",
        NULL};
    json_t *d = with_entries(entry, 1, false);
    assert_int_equal(int_in(result_of(d, 0), "foreign_jobs"), 2);
    assert_int_equal(int_in(result_of(d, 0), "total_jobs"), 30000);
    assert_int_equal(ask_int("LLEN n:queue:q"), 2);
    assert_int_equal(ask_int("SISMEMBER n:queues q"), 1);
    json_decref(d);
}

static void jobs_of_others_in_the_idle_phase_make_it_not_count(void **state)
{
    (void)state;
    struct ts_proc p;
    BENCH_START(&p, "--workers", "1", "--jobs", "10", "--namespace", "n", "--queue", "q",
                "--idle-poll-duration-s", "4", "--poll-interval-ms", "100", "--poll-profile",
                "resque");
    /* The profile's first look at a worker's state after a miss belongs to the idle phase or to the drain's last moment. */
    assert_true(TS_UNTIL(MINUTE, strstr(ask("INFO commandstats"), "cmdstat_lpop:calls=1") != NULL &&
                                     strstr(kit_log(), "workers] .") != NULL));
    assert_true(TS_UNTIL(MINUTE, strstr(ask("INFO commandstats"), "cmdstat_lpop:calls=2") != NULL));
    (void)ask("RPUSH n:queue:q \"{\\\"class\\\":\\\"Mail\\\",\\\"args\\\":[]}\"");
    (void)ask("RPUSH n:queue:q \"{\\\"class\\\":\\\"Mail\\\",\\\"args\\\":[1,2,3,4]}\"");
    assert_true(ts_proc_wait(&p, 3 * MINUTE));
    json_t *d = kit_json();
    const json_t *one = result_of(d, 0);
    assert_int_equal(ts_proc_code(&p), 1);
    assert_false(true_in(one, "idle_poll.clean"));
    assert_int_equal(int_in(one, "idle_poll.foreign_jobs") + int_in(one, "foreign_jobs") +
                         int_in(one, "errors"),
                     2);
    assert_says(kit_log(), "NOT CLEAN");
    assert_int_equal(ask_int("LLEN n:queue:q"), 2);
    json_decref(d);
}

/* resque B20: slower than the 500 ms after which the original takes an answer for lost. */
static void a_slow_answer_is_not_a_lost_job(void **state)
{
    (void)state;
    struct cli_run r = {0};
    struct ts_proxy *proxy = ts_proxy_start(kit_redis.socket);
    assert_non_null(proxy);
    int rule = ts_proxy_rule(
        proxy, &(struct ts_proxy_rule){
                   .match = "LPOP", .act = TS_PROXY_DELAY, .delay_ms = 600, .times = 6});
    json_t *d =
        BENCH(&r, 0, "--url", ts_proxy_url(proxy), "--workers", "3", "--jobs", "40", "--no-idle");
    const json_t *one = result_of(d, 0);
    assert_int_equal(ts_proxy_hits(proxy, rule), 6);
    assert_int_equal(int_in(one, "total_jobs"), 40);
    assert_int_equal(int_in(one, "lost_jobs"), 0);
    assert_int_equal(int_in(one, "errors"), 0);
    assert_true(int_in(one, "rtt_us.max") >= 600000);
    assert_true(int_in(one, "rtt_us.p50") < 600000);
    ts_proxy_stop(proxy);
    json_decref(d);
    run_free(&r);
}

/* resque B19: connections cut in the middle of a drain. */
static void workers_reconnect_and_lost_jobs_are_counted(void **state)
{
    (void)state;
    struct cli_run r = {0};
    struct ts_proxy *proxy = ts_proxy_start(kit_redis.socket);
    assert_non_null(proxy);
    int rule = ts_proxy_rule(
        proxy, &(struct ts_proxy_rule){
                   .match = "LPOP", .act = TS_PROXY_DROP_REPLY, .skip = 10, .times = 3});
    json_t *d = BENCH(&r, 1, "--url", ts_proxy_url(proxy), "--workers", "4", "--jobs", "300",
                      "--poll-interval-ms", "20", "--no-idle");
    const json_t *one = result_of(d, 0);
    assert_int_equal(ts_proxy_hits(proxy, rule), 3);
    assert_int_equal(int_in(one, "reconnects"), 3);
    assert_int_equal(int_in(one, "lost_jobs"), 3);
    assert_int_equal(int_in(one, "total_jobs"), 297);
    assert_int_equal(int_in(one, "errors"), 3);
    assert_false(true_in(one, "timed_out"));
    assert_false(true_in(one, "verified"));
    assert_says(r.err, "lost=3");
    ts_proxy_stop(proxy);
    json_decref(d);
    run_free(&r);
}

/* resque B19: the server dies with what it held and comes back. */
static void a_server_that_forgets_its_jobs_ends_the_drain(void **state)
{
    (void)state;
    struct ts_proc p;
    BENCH_START(&p, "--workers", "4", "--jobs", "3000000", "--poll-interval-ms", "50", "--no-idle",
                "--namespace", "n");
    assert_true(TS_UNTIL(MINUTE, strstr(ask("INFO commandstats"), "cmdstat_lpop:") != NULL));
    ts_redis_kill(&kit_redis);
    assert_true(ts_redis_again(&kit_redis));
    assert_true(ts_proc_wait(&p, 3 * MINUTE));
    assert_int_equal(ts_proc_code(&p), 1);
    json_t *d = kit_json();
    const json_t *one = result_of(d, 0);
    assert_true(int_in(one, "reconnects") >= 4);
    assert_true(int_in(one, "lost_jobs") > 0);
    assert_int_equal(int_in(one, "lost_jobs") + int_in(one, "total_jobs"), 3000000);
    assert_false(true_in(one, "timed_out"));
    json_decref(d);
}

/* resque B31 */
static void warm_up_jobs_do_not_count(void **state)
{
    (void)state;
    struct cli_run r = {0};
    json_t *d = BENCH(&r, 0, "--workers", "2", "--jobs", "200", "--warmup-jobs", "70", "--no-idle");
    const json_t *one = result_of(d, 0);
    assert_int_equal(int_in(one, "total_jobs"), 200);
    assert_int_equal(int_in(one, "latency_us.total_count"), 200);
    assert_int_equal(int_in(one, "cost.commands.by_name.lpop.server"),
                     int_in(one, "cost.commands.by_name.lpop.client"));
    assert_false(true_in(one, "warmup.timed_out"));
    assert_says(r.err, "warmup … done");
    assert_int_equal(int_in(d, "config.warmup_jobs"), 70);
    json_decref(d);
    run_free(&r);
}

/* resque B31: and one that runs out of time is told. */
static void a_warm_up_that_runs_out_of_time_is_told(void **state)
{
    (void)state;
    struct cli_run r = {0};
    struct ts_proxy *proxy = ts_proxy_start(kit_redis.socket);
    (void)ts_proxy_rule(
        proxy, &(struct ts_proxy_rule){
                   .match = "LPOP n:queue", .act = TS_PROXY_DELAY, .delay_ms = 1500, .times = 1});
    json_t *d = BENCH(&r, 1, "--url", ts_proxy_url(proxy), "--workers", "1", "--jobs", "5",
                      "--warmup-jobs", "5", "--timeout", "1", "--no-idle", "--namespace", "n");
    const json_t *one = result_of(d, 0);
    assert_true(true_in(one, "warmup.timed_out"));
    assert_says(r.err, "warmup timeout");
    assert_int_equal(int_in(one, "total_jobs"), 5);
    ts_proxy_stop(proxy);
    json_decref(d);
    run_free(&r);
}

/* resque B32 */
static void quiet_prints_the_report_alone(void **state)
{
    (void)state;
    struct cli_run r = {0};
    char path[200];
    (void)snprintf(path, sizeof(path), "%s/x.json", kit_dir());
    RUN(&r, "--quiet", "--workers", "2", "--jobs", "50", "--no-idle", "--output", path);
    assert_code(&r, 0);
    assert_string_equal(r.err, "");
    assert_null(strstr(r.out, "workers]"));
    assert_null(strstr(r.out, "==="
                              " resque-bench"));
    assert_int_equal(strncmp(r.out, "\n--- Drain summary", 18), 0);
    run_free(&r);
}

/* resque B32: one interrupt leaves JSON of what there is, no keys, and 130. */
static void an_interrupt_ends_in_order(void **state)
{
    (void)state;
    struct ts_proc p;
    BENCH_START(&p, "--workers", "2,3", "--jobs", "20000", "--idle-poll-duration-s", "600",
                "--poll-interval-ms", "50", "--namespace", "n", "--queue", "q");
    assert_true(TS_UNTIL(3 * MINUTE, strstr(kit_log(), "workers] .") != NULL &&
                                         ask_int("LLEN n:queue:q") == 0));
    ts_proc_signal(&p, SIGINT);
    assert_true(ts_proc_wait(&p, 3 * MINUTE));
    assert_int_equal(ts_proc_code(&p), 130);
    json_t *d = kit_json();
    assert_true(true_in(d, "interrupted"));
    assert_int_equal(json_array_size(json_object_get(d, "results")), 1);
    assert_int_equal(ask_int("DBSIZE"), 0);
    json_decref(d);
}

/* resque B32: nor do a terminal that closes, and a reader of the text that has had enough (| head). */
static void an_end_of_the_terminal_or_its_reader_leaves_no_keys(void **state)
{
    (void)state;
    struct ts_proc p;
    BENCH_START(&p, "--workers", "2", "--jobs", "20000", "--idle-poll-duration-s", "600",
                "--namespace", "n", "--queue", "q");
    assert_true(TS_UNTIL(3 * MINUTE, ask_int("LLEN n:queue:q") > 0));
    ts_proc_signal(&p, SIGHUP);
    assert_true(ts_proc_wait(&p, 3 * MINUTE));
    assert_int_equal(ts_proc_code(&p), 130);
    assert_int_equal(ask_int("DBSIZE"), 0);
    json_decref(kit_json());
    static const char line[] =
        "cd \"$1\" && \"$0\" --workers 2 --jobs 2000 --no-idle --output out.json | true";
    const char *const sh[] = {"sh", "-c", line, lade_bin(), kit_dir(), NULL};
    assert_true(ts_proc_start(&p, sh, NULL, NULL));
    assert_true(ts_proc_wait(&p, 3 * MINUTE));
    assert_int_equal(ask_int("DBSIZE"), 0);
    json_t *d = kit_json();
    assert_int_equal(int_in(result_of(d, 0), "total_jobs"), 2000);
    json_decref(d);
}

/* resque B26 */
static void the_console_has_the_words_of_the_original(void **state)
{
    (void)state;
    struct cli_run r = {0};
    char path[200];
    (void)snprintf(path, sizeof(path), "%s/x.json", kit_dir());
    RUN(&r, "--workers", "2", "--jobs", "1234", "--idle-poll-duration-s", "1", "--poll-interval-ms",
        "250", "--queue", "q", "--num-queues", "2", "--output", path);
    assert_code(&r, 0);
    assert_says(r.out, "\n=== resque-bench — redis-");
    assert_says(r.out, "  jobs=1,234  queues=2 queues (q_0…q_1)  poll-interval=250ms\n");
    assert_says(r.out, "  [   2 workers] .");
    assert_says(r.out, " jobs/s  p50=");
    assert_says(r.out, "\n--- Drain summary (backlog throughput + latency) ---\n+---------+");
    assert_says(r.out, "| Workers | jobs/s ");
    assert_says(r.out, "+====");
    assert_says(r.out, "\n--- Idle-poll summary (steady-state polling load, empty queue) ---\n");
    assert_says(r.out, "| Workers | duration_s | LPOP calls | LPOP/s (fleet) | LPOP/s/worker |");
    assert_says(r.out, "LPOP/s/worker over 1.0s, ");
    run_free(&r);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_drain_takes_every_job_once),
        cmocka_unit_test(workers_may_share_connections),
        cmocka_unit_test(a_shared_connection_that_breaks_is_dialed_again),
        cmocka_unit_test(memory_does_not_grow_with_the_jobs),
        cmocka_unit_test(a_drain_that_runs_out_of_time_says_so),
        cmocka_unit_test(entries_that_are_no_jobs_are_errors_and_stall_nothing),
        cmocka_unit_test(jobs_of_others_are_told_and_given_back),
        cmocka_unit_test(jobs_of_others_in_the_idle_phase_make_it_not_count),
        cmocka_unit_test(a_slow_answer_is_not_a_lost_job),
        cmocka_unit_test(workers_reconnect_and_lost_jobs_are_counted),
        cmocka_unit_test(a_server_that_forgets_its_jobs_ends_the_drain),
        cmocka_unit_test(warm_up_jobs_do_not_count),
        cmocka_unit_test(a_warm_up_that_runs_out_of_time_is_told),
        cmocka_unit_test(quiet_prints_the_report_alone),
        cmocka_unit_test(an_interrupt_ends_in_order),
        cmocka_unit_test(an_end_of_the_terminal_or_its_reader_leaves_no_keys),
        cmocka_unit_test(the_console_has_the_words_of_the_original),
    };
    return kit_main(argc, argv, "resque-bench: drain", tests, LB_ARRAY_LEN(tests));
}
