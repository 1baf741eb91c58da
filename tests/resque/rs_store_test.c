/* lade as a producer and a worker of Resque: what it writes, read from the server. Numbers W1-W28: docs/resque.md. */
#include "resque/rs_kit.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <lade/lade.h>

#include "base/base.h"

/* resque W5, W1: the bytes of Ruby's generator, on Ruby's keys, and nothing else. */
static void an_enqueue_writes_what_ruby_writes(void **state)
{
    (void)state;
    monitor_start();
    enqueue_job(
        "Foo::Bar",
        " [1, \"two\\u00e9/<\", {\"k\" : null}, 1.5, 1e30, 123456789012345678901234567890] ");
    const char *log = monitor_stop();
    const char *add = strstr(log, "\"SADD\" \"resque:queues\" \"default\"");
    assert_non_null(add);
    assert_non_null(strstr(add, "\"RPUSH\" \"resque:queue:default\""));
    assert_int_equal(count_of(log, "\"EVALSHA\"") + count_of(log, "\"MULTI\""), 0);
    assert_int_equal(count_of(log, "\"SCRIPT\""), 0);
    assert_reply("LINDEX resque:queue:default 0",
                 "{\"class\":\"Foo::Bar\",\"args\":[1,\"two\xc3\xa9/<\",{\"k\":null},1.5,1.0e+30,"
                 "123456789012345678901234567890]}");
    assert_int_equal(ask_int("DBSIZE"), 2);
}

/* resque W27: 100,000 jobs in ten calls are ten SADD and twenty RPUSH, in order. */
static void bulk_enqueues_are_one_sadd_and_few_pushes_a_call(void **state)
{
    (void)state;

    enum { N = 100000, CALL = LADE_BATCH_MAX };

    lade *q = NULL;
    lade_err err = {0};
    char *text = malloc((size_t)CALL * 16);
    lade_job_spec *spec = calloc(CALL, sizeof(*spec));
    assert_true(text && spec);
    assert_int_equal(lade_open(&q, url_with(""), NULL, &err), 0);
    (void)ask("CONFIG RESETSTAT");
    int64_t began = lb_clock_mono();
    for (int from = 0; from < N; from += CALL) {
        for (int i = 0; i < CALL; i++) {
            char *args = text + (size_t)i * 16;
            int n = snprintf(args, 16, "[%d]", from + i);
            spec[i] = (lade_job_spec){.kind = "K", .payload = {args, (size_t)n}};
        }
        if (lade_enqueue_many(q, spec, CALL, NULL, NULL, &err) != 0)
            fail_msg("%s", err.text);
    }
    print_message("100000 jobs in %.2f s\n", (double)(lb_clock_mono() - began) / 1e9);
    lade_close(q);
    free(text);
    free(spec);
    assert_int_equal(ask_int("LLEN resque:queue:default"), N);
    assert_reply("LINDEX resque:queue:default 99999", "{\"class\":\"K\",\"args\":[99999]}");
    assert_reply("LINDEX resque:queue:default 5000", "[5000]");
    assert_reply("INFO commandstats", "cmdstat_sadd:calls=10,");
    assert_reply("INFO commandstats", "cmdstat_rpush:calls=20,");
}

/* All or nothing, also over several queues, and each field is named. */
static void what_resque_cannot_do_is_refused_before_anything_is_written(void **state)
{
    (void)state;

    static const struct {
        const char *option, *value, *word;
    } cases[] = {{"--priority", "2", "priority: "},
                 {"--unique", "k", "unique: "},
                 {"--key", "k", "key"},
                 {"--id", "x", "id: "},
                 {"--max-attempts", "3", "max_attempts: "},
                 {"--timeout", "5s", "timeout: "},
                 {"--backoff", "fixed:5s", "backoff: "},
                 {"--header", "a=b", "header: "},
                 {"--content-type", "text/plain", "content_type: "}};
    struct cli_run r = {0};
    for (size_t i = 0; i < LB_ARRAY_LEN(cases); i++) {
        RUN(&r, "enqueue", "-u", url_with(""), "--kind", "K", "--payload", "[]", cases[i].option,
            cases[i].value);
        assert_true(r.code != 0);
        assert_says(r.err, cases[i].word);
    }
    RUN(&r, "enqueue", "-u", url_with(""), "--kind", "K", "--payload", "{}");
    assert_says(r.err, "payload: must be a JSON array");
    RUN(&r, "event", "on", "-u", url_with(""), "-q", "default");
    assert_true(r.code != 0);
    RUN(&r, "queue", "pause", "-u", url_with(""), "-q", "default");
    assert_true(r.code != 0);
    run_free(&r);
    lade *q = NULL;
    lade_err err = {0};
    lade_job_spec two[] = {{.kind = "K", .queue = "a"}, {.kind = "K", .queue = "b", .priority = 1}};
    assert_int_equal(lade_open(&q, url_with(""), NULL, &err), 0);
    assert_int_equal(lade_enqueue_many(q, two, 2, NULL, NULL, &err), -LADE_EUNSUPPORTED);
    assert_says(err.text, "priority");
    two[1].priority = 0;
    assert_int_equal(ask_int("DBSIZE"), 0);
    assert_int_equal(lade_enqueue_many(q, two, 2, NULL, NULL, &err), 0);
    assert_int_equal(ask_int("LLEN resque:queue:a") + ask_int("LLEN resque:queue:b"), 2);
    /* An op that the store has not says so and names both. */
    lade_events_info info;
    assert_int_equal(lade_queue_events_get(q, "a", &info, &err), -LADE_EUNSUPPORTED);
    assert_says(err.text, "events");
    assert_says(err.text, "resque store");
    lade_close(q);
}

/* resque W4 */
static void namespaces_keep_jobs_apart(void **state)
{
    (void)state;

    static const struct {
        const char *tail, *key;
    } cases[] = {{"", "EXISTS resque:queue:default"},
                 {"?namespace=my:ns", "EXISTS my:ns:queue:default"},
                 {"?namespace=", "EXISTS queue:default"},
                 {"?namespace=%7Bresque%7D", "EXISTS {resque}:queue:default"}};

    for (size_t i = 0; i < LB_ARRAY_LEN(cases); i++) {
        drain_at(url_with(cases[i].tail), "K", "true"); /* what the others have put is not seen */
        enqueue_at(url_with(cases[i].tail), "K", "[]");
        assert_int_equal(ask_int(cases[i].key), 1);
    }
    for (size_t i = 0; i < LB_ARRAY_LEN(cases); i++) {
        assert_int_equal(ask_int(cases[i].key), 1);
        drain_at(url_with(cases[i].tail), "K", "true");
        assert_int_equal(ask_int(cases[i].key), 0);
    }
    struct cli_run r = {0};
    RUN(&r, "stats", "-u", url_with("?mode=fast"));
    assert_true(r.code != 0);
    assert_says(r.err, "mode must be reliable");
    run_free(&r);
}

/* resque W6, W7, W23: an id for each slot, one beat for all; nothing is left but queues, stats and failed. */
static void a_worker_registers_as_ruby_reads_it_and_leaves_no_key(void **state)
{
    (void)state;
    struct ts_proc p;
    char command[300];
    (void)snprintf(command, sizeof(command), "cat >%s; while [ ! -e %s/go ]; do sleep 0.01; done",
                   path_in_dir("payload"), kit_dir());
    monitor_start();
    start_worker(&p, url_with(""), "64", command, NULL);
    assert_true(TS_UNTIL(WAIT, ask_int("SCARD resque:workers") == 64));
    assert_int_equal(ask_int("HLEN resque:workers:heartbeat"), 64);
    enqueue_job("Sleep", "[\"a\"]");
    assert_true(
        TS_UNTIL(WAIT, lines_of("payload") == 0 && access(path_in_dir("payload"), F_OK) == 0));
    const char *keys = ask("KEYS resque:worker:*.0:default");
    assert_non_null(strstr(keys, "resque:worker:"));
    char key[200], line[256];
    (void)snprintf(key, sizeof(key), "%s", strstr(keys, "resque:worker:"));
    key[strcspn(key, "\r")] = 0;
    (void)snprintf(line, sizeof(line), "GET %s", key);
    assert_true(
        TS_UNTIL(WAIT, strstr(ask(line), "{\"queue\":\"default\",\"run_at\":\"20") != NULL));
    assert_reply(line, "Z\",\"payload\":{\"class\":\"Sleep\",\"args\":[\"a\"]}}");
    (void)snprintf(line, sizeof(line), "GET %s:started", key);
    assert_reply(line, " +0000\r\n");
    (void)snprintf(line, sizeof(line), "HGET resque:workers:heartbeat %s",
                   key + strlen("resque:worker:"));
    assert_reply(line, "+00:00\r\n");
    char hostname[65] = "";
    assert_int_equal(gethostname(hostname, sizeof(hostname) - 1), 0);
    assert_true(strncmp(key + strlen("resque:worker:"), hostname, strlen(hostname)) == 0);
    assert_int_equal(key[strlen("resque:worker:") + strlen(hostname)], '-');
    touch("go");
    assert_true(TS_UNTIL(WAIT, ask_int("EXISTS resque:stat:processed") == 1));
    assert_int_equal(end_worker(&p), 0);
    const char *log = monitor_stop();
    const char *beat = strstr(log, "\"HSET\" \"resque:workers:heartbeat\"");
    assert_non_null(beat);
    assert_int_equal(count_of(log, "\"SADD\" \"resque:workers\"") > 0, 1);
    assert_int_equal(ask_int("EXISTS resque:workers resque:workers:heartbeat resque:lade:workers"),
                     0);
    assert_int_equal(ask_int("DBSIZE"), 3); /* queues, stat:processed, lade:fence */
    assert_reply("GET resque:stat:processed", "\r\n1\r\n");
}

/* resque W18, W19, section 7: what Ruby dies of ends in `failed`, with its text, and the worker goes on. */
static void malformed_entries_fail_with_their_text_and_the_worker_goes_on(void **state)
{
    (void)state;
    static const char *const bad[] = {"not-json",
                                      "[1,2]",
                                      "1",
                                      "{}",
                                      "\"{\\\"class\\\":\\\"Nope\\\",\\\"args\\\":[]}\"",
                                      "\"{\\\"class\\\":\\\"Ok\\\",\\\"args\\\":\\\"s\\\"}\"",
                                      "\"\\xff\\xfe\""};
    char line[200];
    (void)ask("SADD resque:queues default");
    for (size_t i = 0; i < LB_ARRAY_LEN(bad); i++) {
        (void)snprintf(line, sizeof(line), "RPUSH resque:queue:default %s", bad[i]);
        (void)ask(line);
    }
    enqueue_job("Ok", "[\"last\"]");
    drain_at(url_with(""), "Ok", "grep -q last");
    assert_int_equal(ask_int("LLEN resque:failed"), (int64_t)LB_ARRAY_LEN(bad));
    assert_reply(
        "LINDEX resque:failed 0",
        "\"payload\":{\"class\":null,\"args\":[\"not-json\"]},\"exception\":\"Resque::Helpers::DecodeException\"");
    assert_reply("LINDEX resque:failed 1", "\"payload\":{\"class\":null,\"args\":[\"[1,2]\"]}");
    for (int i = 0; i < (int)LB_ARRAY_LEN(bad); i++) {
        (void)snprintf(line, sizeof(line), "LINDEX resque:failed %d", i);
        const char *entry = strchr(ask(line), '{');
        assert_non_null(entry);
        json_error_t e;
        json_t *o = json_loads(entry, JSON_DISABLE_EOF_CHECK, &e);
        if (!o)
            fail_msg("%s: %s", entry, e.text);
        assert_true(json_is_object(json_object_get(o, "payload")));
        assert_true(json_is_array(json_object_get(o, "backtrace")));
        assert_true(json_is_string(json_object_get(o, "worker")));
        assert_int_equal(strlen(json_text_at(o, "failed_at")), strlen("2026/11/30 09:57:20 UTC"));
        assert_int_equal(strlen(json_text_at(o, "failure_id")), 36); /* resque W28 */
        json_decref(o);
    }
    assert_int_equal(count_of(ask("LRANGE resque:failed 0 -1"), "uninitialized constant Nope"), 1);
    assert_reply("GET resque:stat:failed", "\r\n7\r\n");
    assert_reply("GET resque:stat:processed", "\r\n8\r\n");
}

/* resque W17: each end of a handler that is none is a failure that says which. */
static void exit_codes_and_signals_are_failures(void **state)
{
    (void)state;
    enqueue_job("Ok", "[1]");
    monitor_start();
    drain_at(url_with(""), "Ok", "exit 3");
    const char *log = monitor_stop();
    const char *pop = strstr(log, "\"LPOP\" \"resque:queue:default\"");
    assert_non_null(pop);
    const char *set = strstr(pop, "\"SET\" \"resque:worker:");
    assert_non_null(set);
    const char *push = strstr(set, "\"RPUSH\" \"resque:failed\"");
    assert_non_null(push);
    assert_non_null(strstr(push, "\"INCRBY\" \"resque:stat:processed\" \"1\""));
    assert_non_null(strstr(push, "\"INCRBY\" \"resque:stat:failed\" \"1\""));
    assert_reply("LINDEX resque:failed 0", "\"error\":\"exit 3\"");
    enqueue_job("Ok", "[2]");
    drain_at(url_with(""), "Ok", "kill -9 $$");
    assert_reply("LINDEX resque:failed 1", "SIGKILL");
    enqueue_job("Ok", "[3]");
    drain_at(url_with(""), "Ok", "kill -SEGV $$");
    assert_reply("LINDEX resque:failed 2", "SIGSEGV");
    assert_reply("GET resque:stat:failed", "\r\n3\r\n");
    assert_int_equal(ask_int("LLEN resque:queue:default"), 0);
}

/* resque W14 */
static void pause_all_workers_pauses_and_other_values_do_not(void **state)
{
    (void)state;
    struct ts_proc p;
    (void)ask("SET resque:pause-all-workers TRUE");
    enqueue_job("Ok", "[]");
    start_worker(&p, url_with(""), "1", "true", NULL);
    /* It has looked, and waits to be told: it took nothing, and asks no more. */
    assert_true(TS_UNTIL(WAIT, calls_of("get") >= 2));
    (void)ask("SET resque:pause-all-workers \" true\\n\"");
    assert_true(TS_UNTIL(WAIT, calls_of("get") >= 4));
    (void)ask("CONFIG RESETSTAT");
    ts_nap_ms(1200);
    assert_true(calls_of("get") <= 1); /* that of a wake under way */
    assert_int_equal(ask_int("LLEN resque:queue:default"), 1);
    assert_int_equal(calls_of("lpop"), 0);
    (void)ask("SET resque:pause-all-workers 1");
    assert_true(TS_UNTIL(WAIT, ask_int("EXISTS resque:stat:processed") == 1));
    assert_int_equal(end_worker(&p), 0);
}

/* resque W22: an idle worker waits at the server; what it asks for is its lease, and a job is seen at once. */
static void an_idle_worker_blocks_and_asks_for_nothing_but_its_lease(void **state)
{
    (void)state;
    struct ts_proc p;
    start_worker(&p, url_with(""), "4", "true", NULL);
    assert_true(TS_UNTIL(WAIT, strstr(ask("CLIENT LIST"), "cmd=exists") != NULL));
    (void)ask("CONFIG RESETSTAT");
    int64_t began = lb_clock_mono();
    ts_nap_ms(3000);
    int64_t beats = 2 + (lb_clock_mono() - began) / (INT64_C(2) * 1000 * 1000 * 1000 / 3);
    assert_true(calls_of("evalsha") <= beats);
    assert_int_equal(calls_of("lpop") + calls_of("exists") + calls_of("get"), 0);
    enqueue_job("Ok", "[]");
    assert_true(TS_UNTIL(WAIT, ask_int("EXISTS resque:stat:processed") == 1));
    assert_int_equal(ask_int("LLEN resque:queue:default"),
                     0); /* waiting took nothing away, nor put anything there */
    assert_int_equal(end_worker(&p), 0);
}

static void run_killed(const char *mode, bool once)
{
    struct ts_proc a, b;
    char command[300];
    (void)snprintf(command, sizeof(command),
                   "echo ran >>%s; if [ ! -e %s/again ]; then sleep 600; fi", path_in_dir("runs"),
                   kit_dir());
    enqueue_job("Sleep", "[7]");
    start_worker(&a, url_with(mode), "2", command, NULL);
    assert_true(TS_UNTIL(WAIT, lines_of("runs") == 1));
    touch("again");
    ts_proc_kill(&a);
    start_worker(&b, url_with(mode), "3", command, NULL);
    assert_true(TS_UNTIL(WAIT, ask_int("EXISTS resque:stat:processed") == 1));
    assert_int_equal(lines_of("runs"), once ? 1 : 2);
    assert_int_equal(ask_int("LLEN resque:failed"), once ? 1 : 0);
    assert_int_equal(ask_int("SCARD resque:workers"), 3); /* the dead one's ids are gone */
    assert_int_equal(ask_int("LLEN resque:queue:default"), 0);
    assert_int_equal(end_worker(&b), 0);
}

/* resque W16: kill -9 in the midst of a job: it runs once more, by another worker. */
static void a_killed_worker_s_job_runs_once_more(void **state)
{
    (void)state;
    run_killed("", false);
    assert_reply("GET resque:stat:processed", "\r\n1\r\n");
    assert_int_equal(ask_int("EXISTS resque:stat:failed resque:lade:crashes resque:lade:workers"),
                     0);
}

/* resque W16, strict: as Ruby prunes, at most once. */
static void in_strict_mode_a_killed_worker_s_job_fails(void **state)
{
    (void)state;
    run_killed("?mode=strict", true);
    assert_reply("LINDEX resque:failed 0", "\"exception\":\"Resque::PruneDeadWorkerDirtyExit\"");
    assert_reply("LINDEX resque:failed 0", "did not gracefully exit while processing Sleep");
}

/* resque W16, fault injection: dead between the pop and the start of the job. */
static void a_worker_killed_between_pop_and_start_loses_nothing(void **state)
{
    (void)state;
    static const char *const env[] = {"LADE_FAULT=take.after:1:kill", NULL};
    struct ts_proc a, b;
    enqueue_job("Ok", "[8]");
    start_worker(&a, url_with(""), "1", "true", env);
    assert_true(ts_proc_wait(&a, WAIT));
    assert_int_equal(ts_proc_code(&a), 128 + SIGKILL);
    assert_int_equal(ask_int("LLEN resque:queue:default"), 0);
    start_worker(&b, url_with(""), "1", "true", NULL);
    assert_true(TS_UNTIL(WAIT, ask_int("EXISTS resque:stat:processed") == 1));
    assert_int_equal(end_worker(&b), 0);
    assert_reply("GET resque:stat:processed", "\r\n1\r\n");
    assert_int_equal(ask_int("LLEN resque:failed"), 0);
}

/* A job that kills each worker is put aside with a DirtyExit. */
static void a_job_that_kills_its_workers_ends_in_failed(void **state)
{
    (void)state;
    struct ts_proc p;
    char log[200];
    (void)snprintf(log, sizeof(log), "%s", path_in_dir("worker.log"));
    enqueue_job("Sleep", "[9]");
    const char *argv[] = {
        lade_bin(), "work",          "-u",    url_with(""),    "-c", "1",      "--lease",
        "1s",       "--sweep",       "100ms", "--max-crashes", "2",  "--kind", "Sleep",
        "--exec",   "kill -9 $PPID", NULL};
    for (int i = 0; i < 20 && ask_int("LLEN resque:failed") == 0; i++) {
        assert_true(ts_proc_start(&p, argv, NULL, log));
        assert_true(
            TS_UNTIL(WAIT, ask_int("LLEN resque:failed") == 1 || ts_proc_wait(&p, 1000000)));
        ts_proc_kill(&p);
    }
    assert_int_equal(ask_int("LLEN resque:failed"), 1);
    assert_reply("LINDEX resque:failed 0", "\"exception\":\"Resque::DirtyExit\"");
}

/* resque W15: TERM with a job that does not end: it goes back, neither lost nor failed. */
static void at_term_a_job_that_does_not_end_goes_back_to_the_queue(void **state)
{
    (void)state;
    struct ts_proc p;
    char log[200], command[300];
    (void)snprintf(log, sizeof(log), "%s", path_in_dir("worker.log"));
    (void)snprintf(command, sizeof(command), "echo ran >>%s; sleep 600", path_in_dir("runs"));
    enqueue_job("Sleep", "[1]");
    const char *argv[] = {lade_bin(), "work",   "-u",    url_with(""), "--shutdown-timeout",
                          "200ms",    "--exec", command, NULL};
    assert_true(ts_proc_start(&p, argv, NULL, log));
    assert_true(TS_UNTIL(WAIT, lines_of("runs") == 1));
    (void)end_worker(&p);
    assert_int_equal(ask_int("LLEN resque:queue:default"), 1);
    assert_int_equal(ask_int("EXISTS resque:failed resque:stat:processed resque:workers"), 0);
}

/* resque W10, static lists: strict order. */
static void queues_are_served_in_strict_order(void **state)
{
    (void)state;
    struct cli_run r = {0};
    static const char *const queue[] = {"low", "high", "low", "high"};
    for (size_t i = 0; i < LB_ARRAY_LEN(queue); i++) {
        RUN(&r, "enqueue", "-u", url_with(""), "-q", queue[i], "--kind", "Ok", "--payload", "[]");
        assert_code(&r, 0);
    }
    char command[300];
    (void)snprintf(command, sizeof(command), "echo $LADE_QUEUE >>%s", path_in_dir("order"));
    RUN(&r, "work", "-u", url_with(""), "-q", "high,low", "--drain", "-c", "1", "--exec", command);
    assert_code(&r, 0);
    run_free(&r);
    assert_file("order", "high\nhigh\nlow\nlow\n");
}

/* resque W20: the server is killed and comes back empty: the worker registers anew and works. */
static void a_worker_comes_back_after_the_server_did(void **state)
{
    (void)state;
    struct ts_proc p;
    start_worker(&p, url_with(""), "2", "true", NULL);
    assert_true(TS_UNTIL(WAIT, ask_int("SCARD resque:workers") == 2));
    ts_redis_kill(&kit_redis);
    assert_true(ts_redis_again(&kit_redis));
    assert_true(TS_UNTIL(WAIT, ask_int("SCARD resque:workers") == 2));
    enqueue_job("Ok", "[]");
    assert_true(TS_UNTIL(WAIT, ask_int("EXISTS resque:stat:processed") == 1));
    assert_int_equal(end_worker(&p), 0);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_enqueue_writes_what_ruby_writes),
        cmocka_unit_test(bulk_enqueues_are_one_sadd_and_few_pushes_a_call),
        cmocka_unit_test(what_resque_cannot_do_is_refused_before_anything_is_written),
        cmocka_unit_test(namespaces_keep_jobs_apart),
        cmocka_unit_test(a_worker_registers_as_ruby_reads_it_and_leaves_no_key),
        cmocka_unit_test(malformed_entries_fail_with_their_text_and_the_worker_goes_on),
        cmocka_unit_test(exit_codes_and_signals_are_failures),
        cmocka_unit_test(pause_all_workers_pauses_and_other_values_do_not),
        cmocka_unit_test(an_idle_worker_blocks_and_asks_for_nothing_but_its_lease),
        cmocka_unit_test(a_killed_worker_s_job_runs_once_more),
        cmocka_unit_test(in_strict_mode_a_killed_worker_s_job_fails),
        cmocka_unit_test(a_worker_killed_between_pop_and_start_loses_nothing),
        cmocka_unit_test(a_job_that_kills_its_workers_ends_in_failed),
        cmocka_unit_test(at_term_a_job_that_does_not_end_goes_back_to_the_queue),
        cmocka_unit_test(queues_are_served_in_strict_order),
        cmocka_unit_test(a_worker_comes_back_after_the_server_did)};
    return kit_main(argc, argv, "resque store", tests, LB_ARRAY_LEN(tests));
}
