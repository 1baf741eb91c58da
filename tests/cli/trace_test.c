/* lade job trace and lade queue ls --sort, on the store that argv names */
#include "cli/cli_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lade/lade.h>

#include "base/base.h"

#define SECONDS(n) (INT64_C(n) * 1000 * 1000 * 1000)

static void run(int code, const char *const *args)
{
    struct cli_run r = {0};
    run_args(&r, NULL, args);
    assert_code(&r, code);
    run_free(&r);
}

#define CODE(code, ...) run((code), (const char *const[]){__VA_ARGS__, NULL})

/* "enqueued active:1 failed:1" of a trace as JSON, whose times never go back. */
static const char *events_of(const json_t *trace)
{
    static char all[1024];
    size_t at = 0, i = 0;
    const char *before = "";
    const json_t *m = NULL;
    all[0] = '\0';
    json_array_foreach(json_object_get(trace, "timeline"), i, m)
    {
        const char *time = json_text_at(m, "at");
        assert_true(strcmp(time, before) >= 0);
        before = time;
        at += (size_t)snprintf(all + at, sizeof(all) - at, "%s%s", at ? " " : "",
                               json_text_at(m, "event"));
        if (json_object_get(m, "attempt"))
            at += (size_t)snprintf(all + at, sizeof(all) - at, ":%lld",
                                   (long long)json_int_at(m, "attempt"));
        assert_true(at < sizeof(all));
    }
    return all;
}

static json_t *trace(const char *id)
{
    struct cli_run r = {0};
    RUN(&r, "job", "trace", id, "-o", "json");
    assert_code(&r, 0);
    json_t *o = run_json(&r);
    run_free(&r);
    return o;
}

static void add_failing(const char *id)
{
    CODE(0, "enqueue", "-k", "thumb", "-q", "pics", "--id", id, "--max-attempts", "2", "--backoff",
         "fixed:1ms", "--key", "acme", "--unique-key", "u1");
}

static void work_off(const char *command)
{
    CODE(0, "work", "-q", "pics", "--drain", "--quiet", "-c", "1", "--exec", command);
}

static const json_t *moment(const json_t *trace, const char *event, size_t nth)
{
    size_t i = 0;
    const json_t *m = NULL;
    json_array_foreach(json_object_get(trace, "timeline"), i, m)
    {
        if (strcmp(json_text_at(m, "event"), event) == 0 && nth-- == 0)
            return m;
    }
    fail_msg("no %s in %s", event, events_of(trace));
    return NULL;
}

static void the_record_alone_tells_attempts_with_worker_and_error(void **state)
{
    (void)state;
    struct cli_run r = {0};
    add_failing("a");
    work_off("echo boo >&2; exit 1");
    json_t *t = trace("a");
    assert_string_equal(events_of(t), "enqueued active:1 failed:1 active:2 failed:2 dead:2");
    assert_string_equal(json_text_at(t, "state"), "dead");
    assert_string_equal(json_text_at(t, "unique_key"), "u1");
    assert_string_equal(json_text_at(t, "key"), "acme");
    assert_true(json_is_false(json_object_get(t, "events")));
    assert_string_equal(json_text_at(moment(t, "failed", 1), "detail"), "exit 1: boo");
    assert_string_equal(json_text_at(moment(t, "failed", 1), "outcome"), "dead");
    assert_true(strlen(json_text_at(moment(t, "active", 0), "worker")) > 0);
    assert_true(json_int_at(moment(t, "failed", 0), "duration_ms") >= 0);
    json_decref(t);
    RUN(&r, "job", "trace", "a", "-q", "pics");
    assert_code(&r, 0);
    assert_says(r.out, "a: dead (exhausted), 2 of 2 attempts\n");
    assert_says(r.out, "unique key  u1\n");
    assert_says(r.err, "the queue keeps no events");
    RUN(&r, "job", "trace", "a", "-o", "tsv");
    assert_code(&r, 0);
    assert_true(r.out ==
                strstr(r.out, "at\tevent\tattempt\tduration_ms\tdelay_ms\tworker\tdetail\n"));
    RUN(&r, "job", "trace", "nobody");
    assert_code(&r, 3);
    assert_says(r.err, "nobody: no such job");
    CODE(3, "job", "trace", "a", "-q", "elsewhere");
    CODE(2, "job", "trace");
    CODE(2, "job", "trace", "not an id");
    run_free(&r);
}

static void the_stream_adds_what_the_record_cannot_know_and_nothing_is_told_twice(void **state)
{
    (void)state;
    CODE(0, "queue", "events", "pics", "on");
    add_failing("a");
    CODE(0, "enqueue", "-k", "thumb", "-q", "pics", "--id", "b");
    work_off("[ $LADE_JOB_ID = b ] || { echo boo >&2; exit 1; }");
    json_t *t = trace("a");
    assert_string_equal(events_of(t), "enqueued waiting active:1 failed:1 retrying:1 waiting "
                                      "active:2 failed:2 dead:2");
    assert_true(json_is_true(json_object_get(t, "events")));
    assert_true(strlen(json_text_at(moment(t, "active", 1), "worker")) > 0);
    assert_string_equal(json_text_at(moment(t, "failed", 0), "detail"), "exit 1: boo");
    assert_int_equal(json_int_at(moment(t, "retrying", 0), "delay_ms"), 1);
    json_decref(t);
    t = trace("b");
    assert_string_equal(events_of(t), "enqueued waiting active:1 completed:1");
    json_decref(t);
    struct cli_run r = {0};
    RUN(&r, "job", "trace", "b", "--no-events", "-o", "json");
    assert_code(&r, 0);
    t = run_json(&r);
    assert_string_equal(events_of(t), "enqueued completed:1");
    json_decref(t);
    run_free(&r);
}

static void a_job_that_is_gone_is_told_of_by_the_stream(void **state)
{
    (void)state;
    CODE(0, "queue", "events", "pics", "on");
    add_failing("a");
    work_off("exit 1");
    CODE(0, "job", "rm", "a", "--yes");
    json_t *t = trace("a");
    assert_string_equal(events_of(t),
                        "waiting active:1 failed:1 retrying:1 waiting active:2 failed:2 dead:2");
    assert_string_equal(json_text_at(t, "state"), "gone");
    assert_string_equal(json_text_at(t, "queue"), "pics");
    json_decref(t);
    CODE(3, "job", "trace", "a", "--no-events");
}

static void a_job_that_runs_or_waits_says_where_and_until_when(void **state)
{
    (void)state;
    struct ts_proc p;
    struct cli_run r = {0};
    CODE(0, "enqueue", "-k", "slow", "-q", "pics", "--id", "late", "--in", "1h");
    json_t *t = trace("late");
    assert_string_equal(events_of(t), "enqueued due");
    json_decref(t);
    RUN(&r, "job", "trace", "late");
    assert_says(r.out, "late: scheduled, due in 59m");
    CODE(0, "enqueue", "-k", "slow", "-q", "pics", "--id", "a");
    START(&p, "work", "-q", "pics", "--name", "builder", "--exec", "sleep 60");
    assert_true(TS_UNTIL(SECONDS(60), strcmp(state_of("a"), "active") == 0));
    t = trace("a");
    assert_string_equal(json_text_at(t, "worker"), "builder");
    assert_says(json_text_at(moment(t, "active", 0), "detail"), "lease until 2");
    json_decref(t);
    RUN(&r, "job", "cancel", "a");
    assert_code(&r, 0);
    (void)end_lade(&p);
    run_free(&r);
}

static void a_step_names_its_workflow(void **state)
{
    (void)state;
    static const char flow[] = "{\"id\":\"f\",\"name\":\"nightly\",\"chain\":[{\"kind\":\"a\"},"
                               "{\"kind\":\"b\"}]}";
    struct cli_run r = {0};
    RUN_IN(&r, flow, sizeof(flow) - 1, "flow", "run", "-");
    assert_code(&r, 0);
    json_t *t = trace("f~0");
    const json_t *f = json_object_get(t, "flow");
    assert_string_equal(json_text_at(f, "id"), "f");
    assert_string_equal(json_text_at(f, "name"), "nightly");
    assert_string_equal(json_text_at(f, "state"), "running");
    assert_int_equal(json_int_at(f, "step"), 0);
    json_decref(t);
    RUN(&r, "job", "trace", "f~0");
    assert_says(r.out, "flow        f (nightly), step 0: running\n");
    run_free(&r);
}

/* P73: which queue is worst, of many. */
static void queues_are_listed_in_the_order_asked_for(void **state)
{
    (void)state;

    static const struct {
        const char *args[4], *order;
    } cases[] = {
        {{NULL}, "a,b,c,"},
        {{"--reverse"}, "c,b,a,"},
        {{"--sort", "ready"}, "b,c,a,"},
        {{"--sort", "ready", "--reverse"}, "a,c,b,"},
        {{"--sort", "dead,name"}, "c,a,b,"},
        {{"--sort", "completed,ready"}, "b,c,a,"},
        {{"--sort=latency"}, "b,c,a,"},
    };

    struct cli_run r = {0};
    CODE(0, "enqueue", "-k", "k", "-q", "b");
    CODE(0, "enqueue", "-k", "k", "-q", "b");
    CODE(0, "enqueue", "-k", "k", "-q", "a", "--in", "1h");
    CODE(0, "enqueue", "-k", "k", "-q", "c", "--id", "c1");
    CODE(0, "job", "kill", "c1");
    CODE(0, "enqueue", "-k", "k", "-q", "c");
    for (size_t i = 0; i < LB_ARRAY_LEN(cases); i++) {
        const char *args[8] = {"queue", "ls", "-o", "ndjson"};
        char order[64] = "";
        for (size_t k = 0; k < 4 && cases[i].args[k]; k++)
            args[4 + k] = cases[i].args[k];
        run_args(&r, NULL, args);
        assert_code(&r, 0);
        for (const char *line = r.out; *line; line = strchr(line, '\n') + 1) {
            json_t *o = json_loads(line, JSON_DISABLE_EOF_CHECK, NULL);
            size_t n = strlen(order);
            (void)snprintf(order + n, sizeof(order) - n, "%s,", json_text_at(o, "queue"));
            json_decref(o);
        }
        assert_string_equal(order, cases[i].order);
    }
    RUN(&r, "queue", "ls", "--sort", "latncy");
    assert_code(&r, 2);
    assert_says(r.err, "--sort: 'latncy' is unknown; did you mean latency?");
    CODE(2, "queue", "ls", "--sort", "");
    CODE(2, "queue", "ls", "--sort", "name,");
    run_free(&r);
}

static void words_of_other_systems_are_understood(void **state)
{
    (void)state;

    static const char *const cases[][4] = {
        {"task", "list"}, {"dlq", "peek"},      {"dlq", "replay"}, {"cron", "ls"},
        {"cron", "list"}, {"workflow", "list"}, {"workers", "ls"}, {"jobs", "list"},
        {"queues", "ls"}, {"repeatable", "ls"}, {"tasks", "ls"},   {"keys", "ls", "-q", "default"},
    };

    CODE(0, "enqueue", "-k", "k", "--id", "a");
    for (size_t i = 0; i < LB_ARRAY_LEN(cases); i++) {
        const char *args[5] = {cases[i][0], cases[i][1], cases[i][2], cases[i][3], NULL};
        run(0, args);
    }
    CODE(0, "task", "archive", "a");
    CODE(0, "task", "run", "a");
    CODE(0, "task", "inspect", "a");
    CODE(0, "task", "delete", "a", "--yes");
}

/* What only turns something off, or lets it go on, makes nothing: it would hide a wrong name. */
static void a_queue_that_is_not_there_is_not_made_by_what_only_undoes(void **state)
{
    (void)state;
    struct cli_run r = {0};
    CODE(0, "enqueue", "-k", "k");
    RUN(&r, "queue", "events", "nowhere", "off");
    assert_code(&r, 3);
    assert_says(r.err, "nowhere: no such queue");
    CODE(3, "queue", "resume", "nowhere");
    CODE(3, "key", "resume", "nowhere", "acme");
    CODE(3, "queue", "show", "nowhere");
    RUN(&r, "key", "pause", "made", "acme");
    assert_code(&r, 0);
    assert_says(r.err, "new queue");
    run_free(&r);
}

static void the_result_that_outlived_its_job_goes_by_rm(void **state)
{
    (void)state;
    struct cli_run r = {0};
    CODE(0, "enqueue", "-k", "k", "-q", "pics", "--id", "a", "--result-ttl", "1h", "-p", "x");
    work_off("cat");
    CODE(0, "queue", "purge", "pics", "--state", "completed", "--yes");
    RUN(&r, "job", "show", "a", "--result");
    assert_code(&r, 0);
    assert_string_equal(r.out, "x");
    CODE(0, "job", "rm", "a", "--yes", "--dry-run");
    CODE(0, "job", "rm", "a", "--yes");
    CODE(3, "job", "show", "a", "--result");
    CODE(3, "job", "rm", "a", "--yes");
    CODE(3, "job", "rm", "a", "--yes", "--dry-run");
    run_free(&r);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        ON_STORE(the_record_alone_tells_attempts_with_worker_and_error),
        ON_STORE(the_stream_adds_what_the_record_cannot_know_and_nothing_is_told_twice),
        ON_STORE(a_job_that_is_gone_is_told_of_by_the_stream),
        ON_STORE(a_job_that_runs_or_waits_says_where_and_until_when),
        ON_STORE(a_step_names_its_workflow),
        ON_STORE(queues_are_listed_in_the_order_asked_for),
        ON_STORE(words_of_other_systems_are_understood),
        ON_STORE(a_queue_that_is_not_there_is_not_made_by_what_only_undoes),
        ON_STORE(the_result_that_outlived_its_job_goes_by_rm),
    };
    return run_group(argc, argv, "trace", tests, LB_ARRAY_LEN(tests));
}
