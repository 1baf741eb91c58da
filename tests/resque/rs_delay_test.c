/* resque W25: jobs for later, as resque-scheduler keeps them. */
#include "resque/rs_kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <lade/lade.h>

#include "base/base.h"

#define ITEM "{\"class\":\"Ok\",\"args\":[1,\"two\",12345678901234567890123],\"queue\":\"default\"}"

static void delay(const char *in, const char *queue, const char *payload)
{
    struct cli_run r = {0};
    RUN(&r, "enqueue", "-u", url_with(""), "-q", queue, "--in", in, "--kind", "Ok", "--payload",
        payload);
    assert_code(&r, 0);
    run_free(&r);
}

/* A job that is due since 2001, as Ruby's scheduler would keep it. */
static void plant(const char *at, const char *item)
{
    char line[1024];
    (void)snprintf(line, sizeof(line), "ZADD resque:delayed_queue_schedule %s %s", at, at);
    (void)ask(line);
    (void)snprintf(line, sizeof(line), "RPUSH resque:delayed:%s '%s'", at, item);
    assert_true(ask_int(line) > 0);
    (void)snprintf(line, sizeof(line), "SADD 'resque:timestamps:%s' delayed:%s", item, at);
    (void)ask(line);
}

/* resque W25: the keys of delayed_push, with the bytes by which Ruby finds the job. */
static void a_job_for_later_has_the_keys_of_resque_scheduler(void **state)
{
    (void)state;
    delay("1h", "default", "[1,\"two\",12345678901234567890123]");
    const char *all = ask("ZRANGE resque:delayed_queue_schedule 0 -1 WITHSCORES");
    assert_int_equal(count_of(all, "\n"), 5); /* one member and its score */
    int64_t at = strtoll(strchr(strchr(all, '\n') + 1, '\n') + 1, NULL, 10);
    int64_t now = (int64_t)time(NULL);
    assert_true(at >= now + 3590 && at <= now + 3602);
    char line[256], list[64];
    (void)snprintf(list, sizeof(list), "delayed:%lld", (long long)at);
    (void)snprintf(line, sizeof(line), "LRANGE resque:%s 0 -1", list);
    assert_reply(line, "\r\n" ITEM "\r\n");
    (void)snprintf(line, sizeof(line), "SMEMBERS 'resque:timestamps:" ITEM "'");
    assert_reply(line, list);
    assert_int_equal(ask_int("DBSIZE"), 3);
}

/* resque W25: a time that has passed is now; one that no clock has is refused by name. */
static void a_time_that_has_passed_is_now_and_a_negative_one_is_refused(void **state)
{
    (void)state;
    lade *q = NULL;
    lade_err err = {0};
    assert_int_equal(lade_open(&q, url_with(""), NULL, &err), 0);
    lade_job_spec spec = {.kind = "Ok", .at = LADE_SECOND * INT64_C(1000000000)};
    assert_int_equal(lade_enqueue(q, &spec, NULL, &err), 0);
    assert_int_equal(ask_int("LLEN resque:queue:default"), 1);
    spec.at = 0;
    spec.in = -LADE_SECOND;
    assert_int_equal(lade_enqueue(q, &spec, NULL, &err), -LADE_EINVAL);
    assert_says(err.text, "in");
    /* some now, some later, of several queues: all of them, in one step */
    lade_job_spec many[] = {{.kind = "Ok", .queue = "a"},
                            {.kind = "Ok", .queue = "a", .in = LADE_HOUR},
                            {.kind = "Ok", .queue = "b"},
                            {.kind = "Ok", .queue = "a"}};
    assert_int_equal(lade_enqueue_many(q, many, 4, NULL, NULL, &err), 0);
    assert_int_equal(ask_int("LLEN resque:queue:a"), 2);
    assert_int_equal(ask_int("LLEN resque:queue:b"), 1);
    assert_int_equal(ask_int("ZCARD resque:delayed_queue_schedule"), 1);
    lade_close(q);
}

/* resque W25: an idle worker runs a job when it is due, and asks for nothing until then. */
static void an_idle_worker_runs_a_job_when_it_is_due(void **state)
{
    (void)state;
    struct ts_proc p;
    start_worker(&p, url_with(""), "1", "true", NULL);
    assert_true(TS_UNTIL(WAIT, strstr(ask("CLIENT LIST"), "cmd=exists") != NULL));
    delay("2s", "default", "[1]");
    assert_int_equal(ask_int("LLEN resque:queue:default"), 0);
    assert_true(TS_UNTIL(WAIT, ask_int("EXISTS resque:stat:processed") == 1));
    assert_int_equal(
        ask_int("EXISTS resque:delayed_queue_schedule resque:resque:resque_scheduler_master_lock"),
        0);
    assert_int_equal(count_of(ask("KEYS resque:timestamps:*"), "timestamps"), 0);
    assert_int_equal(count_of(ask("KEYS resque:delayed:*"), "delayed"), 0);
    assert_int_equal(end_worker(&p), 0);
}

/* resque W25: byte by byte, in order, of all queues; what is no job ends in `failed`, by the member that is wrong. */
static void due_jobs_go_to_their_queues_and_malformed_ones_fail(void **state)
{
    (void)state;
    struct ts_proc p;
    plant("1000000000", ITEM);
    plant("1000000000", "{\"class\":\"Ok\",\"args\":{\"a\":1},\"queue\":\"other\"}");
    plant("1000000001",
          "{\"class\":\"Ok\",\"custom_job_class\":\"Own\",\"args\":null,\"queue\":\"other\"}");
    plant("1000000002", "{\"class\":\"Ok\",\"args\":[]}");
    plant("1000000003", "nonsense");
    plant("1000000004", "{\"args\":[],\"queue\":\"q\"}");
    (void)ask("ZADD resque:delayed_queue_schedule 1000000005 1000000005"); /* its job was removed */
    start_worker(&p, url_with(""), "1", "true", NULL);
    assert_true(TS_UNTIL(WAIT, ask_int("EXISTS resque:stat:processed") == 1));
    assert_true(TS_UNTIL(WAIT, ask_int("EXISTS resque:delayed_queue_schedule") == 0));
    assert_int_equal(end_worker(&p), 0);
    assert_reply("LRANGE resque:queue:other 0 -1", "{\"class\":\"Ok\",\"args\":[{\"a\":1}]}");
    assert_reply("LRANGE resque:queue:other 0 -1", "{\"class\":\"Own\",\"args\":[]}");
    assert_int_equal(ask_int("LLEN resque:failed"), 3);
    assert_reply("LINDEX resque:failed 0", "delayed:1000000002: queue: must be a string");
    assert_reply("LINDEX resque:failed 1", "must be an object of JSON");
    assert_reply("LINDEX resque:failed 2", "class: must be a string");
    assert_int_equal(count_of(ask("KEYS resque:timestamps:*"), "timestamps"), 0);
}

/* resque W25: the lock of Ruby's scheduler is the one that is taken: whoever holds it moves the jobs. */
static void the_master_lock_of_ruby_is_honoured(void **state)
{
    (void)state;
    struct ts_proc p;
    plant("1000000000", ITEM);
    (void)ask("SET resque:resque:resque_scheduler_master_lock host:1 EX 180");
    (void)ask("CONFIG RESETSTAT");
    start_worker(&p, url_with(""), "1", "true", NULL);
    assert_true(TS_UNTIL(WAIT, strstr(ask("CLIENT LIST"), "cmd=exists") != NULL));
    ts_nap_ms(2500);
    assert_int_equal(ask_int("LLEN resque:delayed:1000000000"), 1);
    assert_reply("GET resque:resque:resque_scheduler_master_lock", "host:1");
    assert_true(calls_of("exists") < 10); /* it does not spin meanwhile */
    monitor_start();
    (void)ask("DEL resque:resque:resque_scheduler_master_lock");
    assert_true(TS_UNTIL(WAIT, ask_int("EXISTS resque:stat:processed") == 1));
    const char *log = monitor_stop();
    const char *set = strstr(log, "\"SET\" \"resque:resque:resque_scheduler_master_lock\"");
    assert_non_null(set);
    assert_non_null(strstr(set, "\"PX\" \"10000\""));
    assert_non_null(strstr(set, "\"DEL\" \"resque:resque:resque_scheduler_master_lock\""));
    assert_int_equal(end_worker(&p), 0);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_for_later_has_the_keys_of_resque_scheduler),
        cmocka_unit_test(a_time_that_has_passed_is_now_and_a_negative_one_is_refused),
        cmocka_unit_test(an_idle_worker_runs_a_job_when_it_is_due),
        cmocka_unit_test(due_jobs_go_to_their_queues_and_malformed_ones_fail),
        cmocka_unit_test(the_master_lock_of_ruby_is_honoured)};
    return kit_main(argc, argv, "resque delayed", tests, LB_ARRAY_LEN(tests));
}
