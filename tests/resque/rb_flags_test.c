/* What resque-bench does with its command line, before any server. */
#include "resque/rb_kit.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"

/* resque B1: and no connection is opened, since the server is not there and nothing is said of it. */
static void a_zero_where_it_makes_no_sense_is_refused_by_name(void **state)
{
    (void)state;
    static const char *const flag[][2] = {{"--jobs", "0"},       {"--num-queues", "0"},
                                          {"--timeout", "0"},    {"--idle-poll-duration-s", "0"},
                                          {"--workers", "0"},    {"--poll-interval-ms", "0"},
                                          {"--workers", "10,0"}, {"--workers", ""}};
    struct cli_run r = {0};
    (void)setenv("REDIS_URL", "unix:///nowhere/at/all", 1);
    for (size_t i = 0; i < LB_ARRAY_LEN(flag); i++) {
        RUN(&r, flag[i][0], flag[i][1]);
        assert_code(&r, 1);
        assert_says(r.err, flag[i][0]);
        assert_null(strstr(r.err, "nowhere"));
    }
    run_free(&r);
}

/* resque B2 */
static void unknown_flags_and_bad_numbers_exit_with_2(void **state)
{
    (void)state;
    static const char *const bad[][2] = {
        {"--no-such-flag", "1"}, {"--jobs", "many"},        {"--jobs", "-1"},
        {"--jobs", ""},          {"--workers", "1,x"},      {"--workers", "1,,2"},
        {"--modes", "poll,zap"}, {"--poll-profile", "odd"}, {"--jobs", "1.5"}};
    struct cli_run r = {0};
    for (size_t i = 0; i < LB_ARRAY_LEN(bad); i++) {
        RUN(&r, bad[i][0], bad[i][1]);
        assert_code(&r, 2);
    }
    RUN(&r, "stray");
    assert_code(&r, 2);
    (void)setenv("REDIS_PASSWORD", "hunter2", 1);
    (void)setenv("REDIS_URL", "redis://:hunter3@h/1", 1);
    RUN(&r, "--help");
    assert_code(&r, 0);
    assert_says(r.out, "Examples:");
    assert_null(strstr(r.out, "hunter"));
    RUN(&r, "--version");
    assert_code(&r, 0);
    assert_says(r.out, "resque-bench ");
    (void)unsetenv("REDIS_PASSWORD");
    run_free(&r);
}

/* resque B3: the defaults, as the JSON shows what was used. */
static void defaults_are_those_of_the_original(void **state)
{
    (void)state;
    struct cli_run r = {0};
    json_t *d = BENCH(&r, 0, "--url", kit_redis.url, "--jobs", "10", "--no-idle");
    const json_t *c = json_object_get(d, "config");
    static const int64_t workers[] = {10, 50, 100, 200};
    for (size_t i = 0; i < LB_ARRAY_LEN(workers); i++)
        assert_int_equal(json_integer_value(json_array_get(json_object_get(c, "workers"), i)),
                         workers[i]);
    assert_int_equal(json_array_size(json_object_get(c, "workers")), 4);
    assert_int_equal(int_in(c, "warmup_jobs"), 0);
    assert_int_equal(int_in(c, "poll_interval_ms"), 5000);
    assert_int_equal(int_in(c, "idle_poll_duration_s"), 30);
    assert_int_equal(int_in(c, "timeout_s"), 300);
    assert_string_equal(json_text_at(c, "namespace"), "resque");
    static const char *const p[] = {"p50", "p90", "p99", "p999", "max"};
    for (size_t i = 0; i < LB_ARRAY_LEN(p); i++)
        assert_string_equal(
            json_string_value(json_array_get(json_object_get(c, "latency_percentiles"), i)), p[i]);
    assert_non_null(strstr(json_text_at(c, "url"), "13"));
    json_decref(d);
    RUN(&r, "--help");
    assert_says(r.out, "[500000]");
    assert_says(r.out, "redis://127.0.0.1:6379/13");
    run_free(&r);
}

/* resque B3: words for true and false. A Unix socket cannot have TLS: whoever is told so has understood "true". */
static void boolean_variables_take_the_usual_words(void **state)
{
    (void)state;
    static const char *const yes[] = {"1", "true", "yes", "TRUE"};
    static const char *const no[] = {"0", "false", "no", ""};
    struct cli_run r = {0};
    for (size_t i = 0; i < LB_ARRAY_LEN(yes); i++) {
        (void)setenv("REDIS_TLS", yes[i], 1);
        RUN(&r, "--jobs", "1");
        assert_code(&r, 1);
        assert_says(r.err, "--tls");
    }
    for (size_t i = 0; i < LB_ARRAY_LEN(no); i++) {
        (void)setenv("REDIS_TLS", no[i], 1);
        RUN(&r, "--jobs", "1", "--workers", "1", "--no-idle", "--output", "-");
        assert_code(&r, 0);
    }
    (void)setenv("REDIS_TLS", "perhaps", 1);
    RUN(&r, "--jobs", "1");
    assert_code(&r, 2);
    assert_says(r.err, "REDIS_TLS");
    (void)unsetenv("REDIS_TLS");
    run_free(&r);
}

/* resque B5 */
static void a_password_is_never_shown(void **state)
{
    (void)state;
    static const char *const url[] = {"redis://u:hunter2@127.0.0.1:1/3",
                                      "redis://:hunter2@[::1/3",
                                      "redis//:hunter2@h",
                                      "http://u:hunter2@h/",
                                      "redis://u:hunter2@h:99999",
                                      "redis://u:hunter%2@h",
                                      "unix:///nowhere?password=hunter2",
                                      "redis://h?hunter2=1&password=hunter2"};
    struct cli_run r = {0};
    for (size_t i = 0; i < LB_ARRAY_LEN(url); i++) {
        RUN(&r, "--url", url[i], "--jobs", "1");
        assert_code(&r, 1);
        assert_null(strstr(r.out, "hunter"));
        assert_null(strstr(r.err, "hunter"));
    }
    (void)setenv("REDIS_PASSWORD", "hunter2", 1);
    RUN(&r, "--url", "redis://127.0.0.1:1", "--jobs", "1");
    assert_code(&r, 1);
    assert_null(strstr(r.err, "hunter"));
    (void)unsetenv("REDIS_PASSWORD");
    /* where one was put that is none, or behind a flag that is written wrong */
    static const char *const astray[][2] = {{"--pasword=hunter2", NULL},
                                            {"--passwor=hunter2", NULL},
                                            {"--tls=hunter2", NULL},
                                            {"redis://:hunter2@h", NULL},
                                            {"--host", "redis://:hunter2@h"}};
    for (size_t i = 0; i < LB_ARRAY_LEN(astray); i++) {
        RUN(&r, astray[i][0], astray[i][1]);
        assert_code(&r, astray[i][1] ? 1 : 2);
        assert_true(r.n_err > 0);
        assert_null(strstr(r.err, "hunter"));
    }
    run_free(&r);
}

/* resque B6 */
static void percentile_names_are_checked_before_connecting(void **state)
{
    (void)state;
    static const char *const bad[] = {"p0",       "p",    "pxyz", "99", "", "p1234567890123456",
                                      "p50,,max", "p200x"};
    struct cli_run r = {0};
    (void)setenv("REDIS_URL", "unix:///nowhere/at/all", 1);
    for (size_t i = 0; i < LB_ARRAY_LEN(bad); i++) {
        RUN(&r, "--latency-percentiles", bad[i]);
        assert_code(&r, 1);
        assert_says(r.err, "percentile");
        assert_null(strstr(r.err, "nowhere"));
    }
    (void)setenv("REDIS_URL", kit_redis.url, 1);
    json_t *d = BENCH(&r, 0, "--jobs", "5", "--workers", "1", "--no-idle", "--latency-percentiles",
                      "p50,p90,p99,p999,p9999,max,mean,p50,p999999999999");
    const json_t *by = at_path(result_of(d, 0), "latency_per_sec_us");
    assert_int_equal(json_object_size(by), 8); /* p50 once */
    json_decref(d);
    run_free(&r);
}

/* resque B8 */
static void an_output_path_may_not_climb(void **state)
{
    (void)state;
    static const char *const bad[] = {"../evil.json", "foo/../bar.json", "..", "a/..", ""};
    struct cli_run r = {0};
    for (size_t i = 0; i < LB_ARRAY_LEN(bad); i++) {
        RUN(&r, "--output", bad[i]);
        assert_code(&r, 1);
        assert_says(r.err, "--output");
    }
    char path[200];
    (void)snprintf(path, sizeof(path), "%s/new/deep..er/out.json", kit_dir());
    RUN(&r, "--output", path, "--jobs", "5", "--workers", "1", "--no-idle");
    assert_code(&r, 0);
    json_t *d = json_load_file(path, 0, NULL);
    assert_non_null(d);
    json_decref(d);
    assert_says(r.out, "Results saved → ");
    run_free(&r);
}

/* resque B8: a file that cannot be written is told before the measuring, not after it; and a long name is not cut. */
static void an_output_path_is_tried_first_and_taken_whole(void **state)
{
    (void)state;
    struct cli_run r = {0};
    RUN(&r, "--workers", "1", "--jobs", "5", "--no-idle", "--output", "/proc/none/x.json");
    assert_code(&r, 1);
    assert_says(r.err, "/proc/none");
    assert_null(strstr(ask("INFO commandstats"), "rpush"));
    char path[800];
    int n = snprintf(path, sizeof(path), "%s", kit_dir());
    for (int i = 0; i < 3; i++)
        n += snprintf(path + n, sizeof(path) - (size_t)n, "/%0200d", i);
    RUN(&r, "--workers", "1", "--jobs", "5", "--no-idle", "--output", path);
    assert_code(&r, 0);
    json_t *d = json_load_file(path, 0, NULL);
    assert_non_null(d);
    json_decref(d);
    /* a device is written to, not replaced by a file */
    struct stat st;
    (void)snprintf(path, sizeof(path), "%s/device", kit_dir());
    assert_int_equal(symlink("/dev/null", path), 0);
    RUN(&r, "--workers", "1", "--jobs", "5", "--no-idle", "--output", path);
    assert_code(&r, 0);
    assert_int_equal(lstat(path, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    RUN(&r, "--workers", "1", "--jobs", "5", "--no-idle", "--output", kit_dir());
    assert_code(&r, 1);
    assert_says(r.err, "directory");
    run_free(&r);
}

/* resque B7: nobody to ask. */
static void a_server_that_is_not_there_is_said_to_be_unknown(void **state)
{
    (void)state;
    struct cli_run r = {0};
    RUN(&r, "--url", "redis://127.0.0.1:1", "--jobs", "1");
    assert_code(&r, 1);
    assert_says(r.err, "unknown");
    assert_says(r.err, "cannot be reached");
    run_free(&r);
}

/* resque B29: descriptors. */
static void too_few_descriptors_are_told_before_anything_is_put(void **state)
{
    (void)state;
    struct rlimit before;
    struct cli_run r = {0};
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    pid_t unused = 0;
    (void)unused;
    const char *const argv[] = {"sh", "-c", "ulimit -n 256; exec \"$0\" --workers 5000 --jobs 10",
                                lade_bin(), NULL};
    struct ts_proc p;
    char log[160];
    (void)snprintf(log, sizeof(log), "%s/log", kit_dir());
    assert_true(ts_proc_start(&p, argv, NULL, log));
    assert_true(ts_proc_wait(&p, INT64_C(60) * 1000000000));
    assert_int_equal(ts_proc_code(&p), 1);
    assert_says(kit_log(), "file descriptors");
    assert_int_equal(ask_int("DBSIZE"), 0);
    run_free(&r);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_zero_where_it_makes_no_sense_is_refused_by_name),
        cmocka_unit_test(unknown_flags_and_bad_numbers_exit_with_2),
        cmocka_unit_test(defaults_are_those_of_the_original),
        cmocka_unit_test(boolean_variables_take_the_usual_words),
        cmocka_unit_test(a_password_is_never_shown),
        cmocka_unit_test(percentile_names_are_checked_before_connecting),
        cmocka_unit_test(an_output_path_may_not_climb),
        cmocka_unit_test(an_output_path_is_tried_first_and_taken_whole),
        cmocka_unit_test(a_server_that_is_not_there_is_said_to_be_unknown),
        cmocka_unit_test(too_few_descriptors_are_told_before_anything_is_put),
    };
    return kit_main(argc, argv, "resque-bench: flags", tests, LB_ARRAY_LEN(tests));
}
