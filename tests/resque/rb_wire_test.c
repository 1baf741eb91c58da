/* What resque-bench says to the server, as MONITOR and commandstats saw it. */
#include "resque/rb_kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

#define QUICK "--workers", "2", "--no-idle", "--namespace", "ns", "--queue", "q"

static void select_is_seen(const char *url, const char *const *more, const char *db, bool tcp)
{
    struct cli_run r = {0};
    const char *args[16] = {"--url", url, "--jobs", "4", "--workers", "1", "--no-idle"};
    size_t n = 7;
    for (; *more; more++)
        args[n++] = *more;
    char marks[64];
    (void)snprintf(marks, sizeof(marks), " [%s %s", db, tcp ? "127.0.0.1" : "unix:");
    monitor_start();
    json_t *d = kit_bench(&r, 0, args);
    const char *log = monitor_stop();
    size_t in_db = count_of(log, marks);
    size_t lpops = count_of(log, "\"LPOP\"");
    char lpop_in_db[80];
    (void)snprintf(lpop_in_db, sizeof(lpop_in_db), "[%s ", db);
    assert_true(in_db > 0);
    for (const char *p = strstr(log, "\"LPOP\""); p; p = strstr(p + 1, "\"LPOP\"")) {
        const char *line = p;
        while (line > log && line[-1] != '\n')
            line--;
        assert_non_null(strstr(line, lpop_in_db));
        assert_true(strstr(line, lpop_in_db) < p);
    }
    assert_true(lpops >= 4);
    json_decref(d);
    run_free(&r);
}

/* resque B4 */
static void the_database_is_the_one_asked_for(void **state)
{
    (void)state;
    static const char *const none[] = {NULL};
    static const char *const db0[] = {"--db", "0", NULL};
    static const char *const db5[] = {"--db", "5", NULL};
    char url[200];
    (void)snprintf(url, sizeof(url), "redis://127.0.0.1:%d/13", kit_redis.port);
    select_is_seen(url, db0, "0", true);
    select_is_seen(url, db5, "5", true);
    (void)snprintf(url, sizeof(url), "redis://127.0.0.1:%d/7", kit_redis.port);
    select_is_seen(url, none, "7", true);
    (void)snprintf(url, sizeof(url), "redis://127.0.0.1:%d", kit_redis.port);
    select_is_seen(url, none, "13", true);
    (void)snprintf(url, sizeof(url), "unix://%s", kit_redis.socket);
    select_is_seen(url, db5, "5", false); /* the socket's path stays */
    (void)snprintf(url, sizeof(url), "redis+unix://%s?db=3", kit_redis.socket);
    select_is_seen(url, none, "3", false);
    char port[8];
    (void)snprintf(port, sizeof(port), "%d", kit_redis.port);
    select_is_seen("redis://nowhere.invalid:1/2",
                   (const char *const[]){"--host", "127.0.0.1", "--port", port, NULL}, "2", true);
}

/* resque B9, B10: from the queue of a run that was stopped before its drain ended nothing can be read, so MONITOR tells. */
static void the_prefill_is_sadd_and_rpush_of_whole_jobs(void **state)
{
    (void)state;
    struct cli_run r = {0};
    monitor_start();
    json_t *d = BENCH(&r, 0, QUICK, "--jobs", "7", "--num-queues", "3", "--payload-size", "11");
    const char *log = monitor_stop();
    size_t rpush = 0;
    unsigned per_queue[3] = {0};
    for (const char *p = strstr(log, "\"RPUSH\" \""); p; p = strstr(p + 1, "\"RPUSH\" \"")) {
        char queue[4];
        char index[24];
        char at[24];
        char filler[32];
        int got = sscanf(
            p,
            "\"RPUSH\" \"ns:queue:q_%3[0-9]\" \"{\\\"class\\\":\\\"LoadWorker\\\",\\\"args\\\":[\\\"%11[a-z]\\\",%20[0-9],"
            "{\\\"mike\\\":\\\"bob\\\"},%20[0-9]]}\"",
            queue, filler, index, at);
        assert_int_equal(got, 4);
        assert_int_equal(strlen(filler), 11);
        assert_int_equal(strtoull(index, NULL, 10), rpush);
        assert_int_equal(strtoull(queue, NULL, 10), rpush % 3);
        assert_true(strtoll(at, NULL, 10) > INT64_C(1700000000000000000));
        per_queue[rpush % 3]++;
        rpush++;
    }
    assert_int_equal(rpush, 7);
    assert_true(per_queue[0] - per_queue[2] <= 1); /* exact round robin */
    assert_int_equal(count_of(log, "\"SADD\" \"ns:queues\" \"q_"), 3);
    /* Nothing else is written before the first pop. */
    const char *first = strstr(log, "\"LPOP\"");
    assert_non_null(first);
    static const char *const foreign[] = {"\"DEL\"", "\"FLUSHDB\"", "\"SET\"", "\"UNLINK\""};
    for (size_t i = 0; i < LB_ARRAY_LEN(foreign); i++)
        assert_null(strstr(log, foreign[i]));
    json_decref(d);
    run_free(&r);
}

/* resque B10: in one write, the server sees them without the client in between: fewer reads than commands. */
static void the_prefill_is_pipelined(void **state)
{
    (void)state;
    struct cli_run r = {0};
    json_t *d = BENCH(&r, 0, QUICK, "--jobs", "2500");
    const char *info = ask("INFO stats");
    const char *reads = strstr(info, "total_reads_processed:");
    assert_non_null(reads);
    /* 2,500 pops each need a read of their own; 2,500 pushes came in a few. */
    assert_true(strtoll(reads + 22, NULL, 10) < 2500 + 1000);
    json_decref(d);
    run_free(&r);
}

/* resque B11 */
static void polling_is_lpop_of_one_key_in_order(void **state)
{
    (void)state;
    struct cli_run r = {0};
    monitor_start();
    json_t *d =
        BENCH(&r, 0, "--workers", "1", "--namespace", "ns", "--queue", "q", "--jobs", "6",
              "--num-queues", "3", "--idle-poll-duration-s", "1", "--poll-interval-ms", "200");
    const char *log = monitor_stop();
    static const char *const never[] = {"BLPOP",      "BRPOP", "BLMPOP", "BLMOVE",
                                        "BRPOPLPUSH", "LMPOP", "EVAL"};
    for (size_t i = 0; i < LB_ARRAY_LEN(never); i++)
        assert_null(strcasestr(log, never[i]));
    size_t n = 0;
    long expected = 0;
    for (const char *p = strstr(log, "\"LPOP\" "); p; p = strstr(p + 1, "\"LPOP\" "), n++) {
        char number[4];
        char rest[8] = "";
        assert_int_equal(sscanf(p, "\"LPOP\" \"ns:queue:q_%3[0-9]%3[^\n]", number, rest), 2);
        long queue = strtol(number, NULL, 10);
        assert_string_equal(rest, "\""); /* no COUNT */
        /* one worker: after a hit it starts from the first queue, after a miss the next one follows */
        assert_true(queue == expected || queue == 0);
        expected = (queue + 1) % 3;
    }
    assert_true(n >= 6 + 3);
    json_decref(d);
    run_free(&r);
}

/* resque B7 */
static void the_tag_names_the_server(void **state)
{
    (void)state;
    struct cli_run r = {0};
    json_t *d = BENCH(&r, 0, QUICK, "--jobs", "3");
    const char *info = ask("INFO server");
    const char *at = strstr(info, "\nredis_version:");
    assert_non_null(at);
    char tag[64];
    (void)snprintf(tag, sizeof(tag), "redis-%.*s", (int)strcspn(at + 15, "\r\n"), at + 15);
    assert_string_equal(json_text_at(d, "tag"), tag);
    json_decref(d);
    d = BENCH(&r, 0, QUICK, "--jobs", "3", "--tag", "../evil tag");
    assert_string_equal(json_text_at(d, "tag"), "..-evil-tag");
    json_decref(d);
    run_free(&r);
}

static void assert_counts_match(const json_t *cost)
{
    json_t *by = json_object_get(json_object_get(cost, "commands"), "by_name");
    const char *name;
    json_t *one;
    assert_true(json_object_size(by) > 0);
    json_object_foreach(by, name, one)
    {
        if (int_in(one, "client") != int_in(one, "server"))
            fail_msg("%s: %lld sent, the server counted %lld", name,
                     (long long)int_in(one, "client"), (long long)int_in(one, "server"));
    }
    assert_true(true_in(cost, "commands.match"));
}

/* resque B16: a static list, three commands a cycle. */
static void the_profile_resque_sends_what_ruby_sends(void **state)
{
    (void)state;
    struct cli_run r = {0};
    monitor_start();
    json_t *d = BENCH(&r, 0, "--workers", "1", "--namespace", "ns", "--queue", "q", "--jobs", "1",
                      "--poll-profile", "resque", "--poll-interval-ms", "300",
                      "--idle-poll-duration-s", "1");
    const char *log = monitor_stop();
    static const char *const order[] = {"\"GET\" \"ns:pause-all-workers\"",
                                        "\"LPOP\" \"ns:queue:q\"",
                                        "\"SET\" \"ns:worker:",
                                        "\"GET\" \"ns:worker:",
                                        "\"DEL\" \"ns:worker:",
                                        "\"INCRBY\" \"ns:stat:processed:all:",
                                        "\"INCRBY\" \"ns:stat:processed:"};
    const char *at = log;
    for (size_t i = 0; i < LB_ARRAY_LEN(order); i++) {
        at = strstr(at, order[i]);
        if (!at) {
            fail_msg("%s is not where it belongs", order[i]);
            return;
        }
        at++;
    }
    assert_non_null(strstr(log, "{\\\"queue\\\":\\\"q\\\",\\\"run_at\\\":\\\"20"));
    const json_t *idle = at_path(result_of(d, 0), "idle_poll");
    int64_t cycles = int_in(idle, "total_lpop_calls");
    assert_true(cycles >= 2);
    assert_int_equal(int_in(idle, "cost.commands.by_name.get.client"), 2 * cycles);
    assert_int_equal(int_in(idle, "cost.commands.by_name.lpop.client"), cycles);
    assert_counts_match(at_path(idle, "cost"));
    assert_counts_match(at_path(result_of(d, 0), "cost"));
    assert_int_equal(ask_int("DBSIZE"), 0);
    assert_string_equal(ask("EXISTS ns:stat:processed"), ":0\r\n");
    json_decref(d);
    run_free(&r);
}

/* resque B16: QUEUE=* with N queues, N + 4 a cycle. */
static void dynamic_queues_cost_four_more(void **state)
{
    (void)state;
    struct cli_run r = {0};
    json_t *d = BENCH(&r, 0, "--workers", "2", "--jobs", "9", "--num-queues", "3", "--poll-profile",
                      "resque", "--dynamic-queues", "--poll-interval-ms", "200",
                      "--idle-poll-duration-s", "1");
    const json_t *idle = at_path(result_of(d, 0), "idle_poll");
    int64_t lpops = int_in(idle, "total_lpop_calls");
    int64_t cycles = lpops / 3;
    assert_int_equal(lpops % 3, 0);
    assert_int_equal(int_in(idle, "cost.commands.by_name.smembers.client"), 2 * cycles);
    assert_int_equal(int_in(idle, "cost.commands.by_name.get.client"), 2 * cycles);
    assert_int_equal(int_in(idle, "cost.server_commands"), cycles * (3 + 4));
    assert_counts_match(at_path(idle, "cost"));
    json_decref(d);
    run_free(&r);
}

/* Without a namespace the keys are those of the original tool. */
static void an_empty_namespace_is_none(void **state)
{
    (void)state;
    struct cli_run r = {0};
    monitor_start();
    json_t *d = BENCH(&r, 0, "--workers", "1", "--namespace", "", "--queue", "q", "--jobs", "2",
                      "--no-idle");
    const char *log = monitor_stop();
    assert_int_equal(count_of(log, "\"RPUSH\" \"queue:q\""), 2);
    assert_int_equal(count_of(log, "\"SADD\" \"queues\" \"q\""), 1);
    json_decref(d);
    run_free(&r);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_database_is_the_one_asked_for),
        cmocka_unit_test(the_prefill_is_sadd_and_rpush_of_whole_jobs),
        cmocka_unit_test(the_prefill_is_pipelined),
        cmocka_unit_test(polling_is_lpop_of_one_key_in_order),
        cmocka_unit_test(the_tag_names_the_server),
        cmocka_unit_test(the_profile_resque_sends_what_ruby_sends),
        cmocka_unit_test(dynamic_queues_cost_four_more),
        cmocka_unit_test(an_empty_namespace_is_none),
    };
    return kit_main(argc, argv, "resque-bench: wire", tests, LB_ARRAY_LEN(tests));
}
