/* resque W24, W8, W25: failures and delayed jobs, found, run again and removed. */
#include "resque/rs_kit.h"

#include <stdio.h>
#include <string.h>

#include <lade/lade.h>

#include "base/base.h"

/* As Ruby writes one: no failure_id, which came with Resque 3.1. */
#define RUBY(args)                                                                            \
    "{\"failed_at\":\"2026/11/30 09:57:20 UTC\",\"payload\":{\"class\":\"Ok\",\"args\":" args \
    "},\"exception\":\"ArgumentError\",\"error\":\"boom\",\"backtrace\":[],\"worker\":"       \
    "\"vm:1:default\",\"queue\":\"default\"}"

static const char *url;

static void say(const char *line)
{
    (void)ask(line);
}

/* Runs lade with the URL and the queue; what it printed is in r. */
static void run(struct cli_run *r, int code, const char *noun, const char *verb, const char *arg)
{
    RUN(r, noun, verb, "-u", url, "-q", "default", "--yes", "-o", "ndjson", arg ? arg : "--quiet");
    assert_code(r, code);
}

static void list(struct cli_run *r, const char *state)
{
    RUN(r, "job", "ls", "-u", url, "-q", "default", "-o", "ndjson", "--state", state);
    assert_code(r, 0);
}

/* The nth id in what was listed. */
static const char *id_at(const struct cli_run *r, int n)
{
    static char id[128];
    const char *at = r->out;
    for (int i = 0; i <= n; i++) {
        at = strstr(at, "\"id\":\"");
        assert_non_null(at);
        at += strlen("\"id\":\"");
    }
    (void)snprintf(id, sizeof(id), "%.*s", (int)strcspn(at, "\""), at);
    return id;
}

/* Three failures of lade's, two of Ruby's, one of another queue, and one that is no job. */
static void fail_some(void)
{
    static const char *const jobs[] = {"[1]", "[2]", "[12345678901234567890]"};
    for (size_t i = 0; i < LB_ARRAY_LEN(jobs); i++)
        enqueue_at(url, "Ok", jobs[i]);
    drain_at(url, "Ok", "exit 3");
}

/* resque W8: listed with error and payload; retried once, for it leaves the list in the same step; removed; redriven; purged. */
static void failures_are_listed_run_again_once_and_removed(void **state)
{
    (void)state;
    struct cli_run r = {0};
    url = url_with("");
    fail_some();
    say("RPUSH resque:failed '" RUBY("[\"r\"]") "'");
    say("RPUSH resque:failed '" RUBY("[\"s\"]") "'");
    say("RPUSH resque:failed '{\"failed_at\":\"2026/11/30 09:57:20 UTC\",\"payload\":null,\"worker\":\"a:1:b\",\"queue\":\"default\"}'");
    say("RPUSH resque:failed '{\"payload\":{\"class\":\"Ok\",\"args\":[\"default\"]},\"queue\":\"other\"}'");
    list(&r, "dead");
    assert_int_equal(count_of(r.out, "\"state\":\"dead\""), 6);
    assert_int_equal(count_of(r.out, "Lade::JobFailed: exit 3"), 3);
    assert_int_equal(count_of(r.out, "ArgumentError: boom"), 2);
    assert_says(r.out, "[12345678901234567890]");
    char first[128], ruby[128], none[128];
    (void)snprintf(first, sizeof(first), "%s", id_at(&r, 0));
    (void)snprintf(ruby, sizeof(ruby), "%s", id_at(&r, 3));
    (void)snprintf(none, sizeof(none), "%s", id_at(&r, 5));
    assert_true(strncmp(ruby, "f-", 2) == 0);
    run(&r, 0, "job", "retry", first);
    run(&r, 3, "job", "retry", first);
    run(&r, 0, "job", "show", ruby);
    assert_says(r.out, "ArgumentError: boom");
    run(&r, 0, "job", "retry", ruby);
    assert_reply("LRANGE resque:queue:default 0 -1", "{\"class\":\"Ok\",\"args\":[\"r\"]}");
    assert_int_equal(ask_int("LLEN resque:queue:default"), 2);
    run(&r, 4, "job", "retry", none); /* what is no job cannot run */
    run(&r, 0, "job", "rm", none);
    run(&r, 3, "job", "rm", none);
    assert_int_equal(ask_int("LLEN resque:failed"), 4);
    run(&r, 0, "dead", "redrive", NULL);
    assert_int_equal(ask_int("LLEN resque:failed"), 1); /* of the other queue */
    assert_reply("LINDEX resque:queue:default 3",
                 "{\"class\":\"Ok\",\"args\":[12345678901234567890]}");
    drain_at(url, "Ok", "exit 4");
    assert_int_equal(ask_int("LLEN resque:failed"), 6);
    RUN(&r, "queue", "purge", "-u", url, "default", "--state", "dead", "--yes");
    assert_code(&r, 0);
    assert_int_equal(ask_int("LLEN resque:failed"), 1);
    run_free(&r);
}

/* A limit counts what runs again: what is no job stays, and uses nothing of it up. */
static void a_limit_of_a_redrive_counts_what_was_moved(void **state)
{
    (void)state;
    struct cli_run r = {0};
    url = url_with("");
    say("SADD resque:queues a default");
    say("RPUSH resque:failed '{\"payload\":null,\"queue\":\"a\"}'");
    say("RPUSH resque:failed '" RUBY("[1]") "'");
    say("RPUSH resque:failed '" RUBY("[2]") "'");
    RUN(&r, "dead", "redrive", "-u", url, "--limit", "1");
    assert_code(&r, 0);
    assert_says(r.err, "1 dead redriven");
    assert_int_equal(ask_int("LLEN resque:queue:default"), 1);
    assert_int_equal(ask_int("LLEN resque:failed"), 2);
    run_free(&r);
}

/* More than one step of a verb moves, and all of them. */
static void thousands_of_failures_are_redriven_and_purged_by_one_command_each(void **state)
{
    (void)state;
    struct cli_run r = {0};
    url = url_with("");
    say("SADD resque:queues default");
    for (int round = 0; round < 2; round++) {
        say("EVAL \"for i = 1, 2500 do redis.call('RPUSH', 'resque:failed', ARGV[1]) end\" 0 '" RUBY(
            "[1]") "'");
        RUN(&r, "dead", round ? "purge" : "redrive", "-u", url, "--yes");
        assert_code(&r, 0);
        assert_says(r.err, round ? "2500 dead removed" : "2500 dead redriven");
        assert_int_equal(ask_int("LLEN resque:failed"), 0);
        assert_int_equal(ask_int("LLEN resque:queue:default"), 2500);
    }
    run_free(&r);
}

/* resque W24: with FAILURE_BACKEND=redis_multi_queue each queue has a list, and all of them are known. */
static void each_queue_has_a_list_of_failures(void **state)
{
    (void)state;
    struct cli_run r = {0};
    url = url_with("?failures=redis_multi_queue");
    fail_some();
    say("RPUSH resque:queue:default not-json");
    drain_at(url, "Ok", "exit 3");
    assert_int_equal(ask_int("EXISTS resque:failed"), 0);
    assert_int_equal(ask_int("LLEN resque:default_failed"), 4);
    assert_reply("SMEMBERS resque:failed_queues", "default_failed");
    assert_int_equal(ask_int("SCARD resque:failed_queues"), 1);
    assert_reply("GET resque:stat:failed", "\r\n4\r\n");
    list(&r, "dead");
    assert_int_equal(count_of(r.out, "\"state\":\"dead\""), 4);
    run(&r, 0, "job", "retry", id_at(&r, 1));
    assert_int_equal(ask_int("LLEN resque:default_failed"), 3);
    assert_int_equal(ask_int("LLEN resque:queue:default"), 1);
    RUN(&r, "stats", "-u", url, "--json");
    assert_code(&r, 0);
    RUN(&r, "stats", "-u", url_with("?failures=each"));
    assert_says(r.err, "failures must be redis (the default) or redis_multi_queue");
    run_free(&r);
}

/* resque W25, W28: a delayed job is listed with its time, run now, and cancelled; so is one that waits, as resque-web deletes it. */
static void delayed_and_waiting_jobs_are_listed_and_cancelled(void **state)
{
    (void)state;
    struct cli_run r = {0};
    static const char *const payload[] = {"[1]", "[2]", "[3]"};
    url = url_with("");
    for (size_t i = 0; i < LB_ARRAY_LEN(payload); i++) {
        RUN(&r, "enqueue", "-u", url, "--in", "1h", "--kind", "Ok", "--payload", payload[i]);
        assert_code(&r, 0);
    }
    list(&r, "scheduled");
    assert_int_equal(count_of(r.out, "\"state\":\"scheduled\""), 3);
    char first[128], second[128];
    (void)snprintf(first, sizeof(first), "%s", id_at(&r, 0));
    (void)snprintf(second, sizeof(second), "%s", id_at(&r, 1));
    run(&r, 0, "job", "retry", first);
    run(&r, 3, "job", "retry", first);
    run(&r, 0, "job", "cancel", second);
    assert_int_equal(ask_int("LLEN resque:queue:default"), 1);
    list(&r, "scheduled");
    assert_int_equal(count_of(r.out, "\"state\":\"scheduled\""), 1);
    RUN(&r, "queue", "purge", "-u", url, "default", "--state", "scheduled", "--yes");
    assert_code(&r, 0);
    assert_int_equal(count_of(ask("KEYS *"), "timestamps") + count_of(ask("KEYS *"), "delayed"), 0);
    list(&r, "ready");
    (void)snprintf(first, sizeof(first), "%s", id_at(&r, 0));
    run(&r, 5, "job", "kill", first);
    assert_says(r.err, "kill: the resque store keeps failures alone among the dead");
    run(&r, 4, "job", "retry", first);
    run(&r, 0, "job", "cancel", first);
    assert_int_equal(ask_int("LLEN resque:queue:default"), 0);
    RUN(&r, "job", "ls", "-u", url, "-q", "default"); /* of all states */
    assert_code(&r, 0);
    run_free(&r);
}

/* What Resque cannot do is refused by its name, and a job with such a wish is one bad line of many. */
static void what_the_store_cannot_do_is_refused_by_name(void **state)
{
    (void)state;
    static const char lines[] = "{\"kind\":\"Ok\",\"payload_json\":[1]}\n"
                                "{\"kind\":\"Ok\",\"payload_json\":[2],\"priority\":2}\n"
                                "{\"kind\":\"Ok\",\"payload_json\":[3]}\n";

    struct cli_run r = {0};
    url = url_with("");
    RUN(&r, "job", "edit", "-u", url, "x", "--payload", "[]");
    assert_code(&r, 5);
    assert_says(r.err, "the resque store knows no new payload of a job that is there; use a");
    RUN(&r, "enqueue", "-u", url, "--kind", "Ok", "--payload", "[0]");
    assert_code(&r, 0);
    RUN(&r, "dead", "redrive", "-u", url, "--kind", "Ok");
    assert_code(&r, 5);
    assert_says(r.err, "the resque store knows no redrive or purge by filter");
    RUN(&r, "dead", "classes", "-u", url);
    assert_code(&r, 5);
    assert_says(r.err, "the resque store knows no classes of deaths");
    RUN_IN(&r, lines, sizeof(lines) - 1, "enqueue", "-u", url, "--ndjson", "-");
    assert_code(&r, 5);
    assert_says(r.err, "stdin: line");
    assert_says(r.err, "priority: a Resque job has no priority");
    assert_int_equal(ask_int("LLEN resque:queue:default"), 1);
    RUN_IN(&r, lines, sizeof(lines) - 1, "enqueue", "-u", url, "--ndjson", "-", "--skip-bad");
    assert_code(&r, 6);
    assert_says(r.err, "stdin: line 2: passed over: priority: a Resque job has no priority");
    assert_says(r.err, "2 added, 0 duplicates, 1 bad");
    assert_int_equal(ask_int("LLEN resque:queue:default"), 3);
    run_free(&r);
}

/* Four thousand failures of many queues: pages hold each of the queue's once, also while others are removed. */
static void pages_of_a_long_list_hold_each_failure_once(void **state)
{
    (void)state;
    lade *q = NULL;
    lade_err err = {0};
    url = url_with("");
    say("EVAL \"for i=1,4000 do redis.call('RPUSH','resque:failed','{\\\"failed_at\\\":\\\"2026/11/30 09:57:20 UTC\\\",\\\"payload\\\":{\\\"class\\\":\\\"Ok\\\",\\\"args\\\":['..i..']},\\\"queue\\\":\\\"'..(i % 10 == 0 and 'default' or 'other')..'\\\"}') end\" 0");
    assert_int_equal(ask_int("LLEN resque:failed"), 4000);
    assert_int_equal(lade_open(&q, url, NULL, &err), 0);
    lade_queue_info info = {0};
    assert_int_equal(lade_queue_get(q, "default", &info, &err), 0);
    assert_int_equal(info.count[LADE_STATE_DEAD], 400);
    lade_cursor cursor = {0};
    size_t seen = 0, n = 0;
    lade_job_view *view[300];
    while (lade_job_list(q, "default", LADE_STATE_DEAD, &cursor, 300, view, &n, &err) == 0) {
        for (size_t i = 0; i < n; i++) {
            char wanted[16];
            int len = snprintf(wanted, sizeof(wanted), "[%zu]", (seen + i + 1) * 10);
            assert_int_equal(view[i]->payload.size, len);
            assert_memory_equal(view[i]->payload.data, wanted, (size_t)len);
            const char *id = view[i]->id;
            if (i % 2 == 0)
                assert_int_equal(lade_job_act(q, LADE_JOB_REMOVE, "default", &id, 1, NULL, &err),
                                 0);
            lade_job_view_free(view[i]);
        }
        seen += n;
    }
    assert_int_equal(seen, 400);
    assert_int_equal(ask_int("LLEN resque:failed"), 3800);
    lade_close(q);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(failures_are_listed_run_again_once_and_removed),
        cmocka_unit_test(a_limit_of_a_redrive_counts_what_was_moved),
        cmocka_unit_test(thousands_of_failures_are_redriven_and_purged_by_one_command_each),
        cmocka_unit_test(each_queue_has_a_list_of_failures),
        cmocka_unit_test(delayed_and_waiting_jobs_are_listed_and_cancelled),
        cmocka_unit_test(what_the_store_cannot_do_is_refused_by_name),
        cmocka_unit_test(pages_of_a_long_list_hold_each_failure_once)};
    return kit_main(argc, argv, "resque failures", tests, LB_ARRAY_LEN(tests));
}
