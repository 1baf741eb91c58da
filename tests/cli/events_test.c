/* lade events, lade queue events, lade job wait and lade job logs, on the store that argv names; their exit codes */
#include "cli/cli_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lade/lade.h>

#include "base/base.h"

static void run(int code, const char *const *args)
{
    struct cli_run r = {0};
    run_args(&r, NULL, args);
    assert_code(&r, code);
    run_free(&r);
}

/* Runs a command whose exit code is all that matters. */
#define CODE(code, ...) run((code), (const char *const[]){__VA_ARGS__, NULL})

static void add(const char *id)
{
    CODE(0, "enqueue", "-k", "thumb", "-q", "pics", "--id", id, "-p", id, "--max-attempts", "1");
}

static void drain(const char *command)
{
    CODE(0, "work", "-q", "pics", "--drain", "--quiet", "--exec", command, "-c", "1");
}

/* The events of a run of -o ndjson as "waiting:a active:a", numbers checked to be without holes; the last id in *last. */
static const char *show(const struct cli_run *r, int64_t *last)
{
    static char all[2048];
    size_t at = 0;
    all[0] = '\0';
    for (const char *line = r->out; *line; line = strchr(line, '\n') + 1) {
        json_error_t e;
        json_t *o = json_loads(line, JSON_DISABLE_EOF_CHECK, &e);
        assert_non_null(o);
        int64_t id = json_int_at(o, "id");
        if (at > 0)
            assert_int_equal(id, *last + 1);
        *last = id;
        const char *job = json_string_value(json_object_get(o, "job"));
        at += (size_t)snprintf(all + at, sizeof(all) - at, "%s%s%s%s", at ? " " : "",
                               json_text_at(o, "event"), job ? ":" : "", job ? job : "");
        json_decref(o);
        assert_true(at < sizeof(all));
    }
    return all;
}

/* chasqui 56 */
static void events_are_turned_on_read_from_an_id_and_turned_off(void **state)
{
    (void)state;
    struct cli_run r = {0};
    char from[32];
    int64_t first = 0, last = 0;
    add("early"); /* before there is a stream: not told */
    CODE(4, "events");
    RUN(&r, "queue", "events", "pics");
    assert_code(&r, 0);
    assert_says(r.out, "events of pics: off");
    RUN(&r, "queue", "events", "pics", "on", "--cap", "1000");
    assert_code(&r, 0);
    assert_says(r.out, "on, cap 1000, 0 kept");
    add("a");
    drain("cat");
    RUN(&r, "events", "-o", "ndjson");
    assert_code(&r, 0);
    const char *all = show(&r, &last);
    assert_says(all, "waiting:a active:early");
    assert_says(all, "completed:early");
    assert_says(all, "completed:a");
    assert_null(strstr(all, "waiting:early"));
    json_t *o = json_loads(r.out, JSON_DISABLE_EOF_CHECK, NULL);
    assert_non_null(o);
    first = json_int_at(o, "id");
    assert_string_equal(json_text_at(o, "queue"), "pics");
    assert_string_equal(json_text_at(o, "kind"), "thumb");
    json_decref(o);
    RUN(&r, "events", "-q", "pics", "--limit", "1");
    assert_code(&r, 0);
    assert_says(r.out, "waiting");
    assert_null(strchr(strchr(r.out, '\n') + 1, '\n'));
    (void)snprintf(from, sizeof(from), "%lld", (long long)first);
    RUN(&r, "events", "-q", "pics", "--from", from, "-o", "ndjson");
    assert_code(&r, 0);
    assert_null(strstr(show(&r, &last), "waiting"));
    (void)snprintf(from, sizeof(from), "%lld", (long long)last);
    RUN(&r, "events", "-q", "pics", "--from", from, "-o", "ndjson");
    assert_code(&r, 0);
    assert_string_equal(r.out, "");
    RUN(&r, "queue", "events", "pics", "off", "-o", "json");
    assert_code(&r, 0);
    o = run_json(&r);
    assert_true(json_is_false(json_object_get(o, "on")));
    assert_int_equal(json_int_at(o, "cap"), 0);
    json_decref(o);
    RUN(&r, "events", "-q", "pics");
    assert_code(&r, 4);
    assert_says(r.err, "lade queue events QUEUE on");
    run_free(&r);
}

static void what_makes_no_sense_is_refused(void **state)
{
    (void)state;
    struct cli_run r = {0};
    add("a");
    CODE(3, "queue", "events", "nowhere");
    CODE(2, "queue", "events");
    CODE(2, "queue", "events", "pics", "maybe");
    CODE(2, "queue", "events", "pics", "off", "--cap", "5");
    CODE(2, "queue", "events", "pics", "on", "--cap", "0");
    CODE(0, "queue", "events", "pics", "on");
    CODE(2, "events", "--follow", "-o", "json");
    CODE(2, "events", "--limit", "0");
    CODE(2, "events", "-q", "pics", "--from", "yesterday");
    RUN(&r, "events", "--from", "5");
    assert_code(&r, 2);
    assert_says(r.err, "--queue");
    CODE(2, "job", "wait");
    CODE(2, "job", "wait", "a", "--timeout", "-1s");
    CODE(2, "job", "logs", "a", "--follow", "--reverse");
    CODE(2, "job", "logs", "a", "--limit", "0");
    run_free(&r);
}

/* What fell off the cap is said, not passed over in silence. */
static void a_reader_is_told_what_fell_off_the_cap(void **state)
{
    (void)state;
    struct cli_run r = {0};
    char from[32];
    int64_t first = 0;
    lade *q = NULL;
    CODE(0, "queue", "events", "pics", "on", "--cap", "1");
    add("a");
    RUN(&r, "events", "-o", "ndjson");
    assert_code(&r, 0);
    (void)show(&r, &first);
    /* each job a call of its own, and so many: a store drops whole pieces */
    assert_int_equal(lade_open(&q, getenv("LADE_URL"), NULL, NULL), 0);
    for (int i = 0; i < 300; i++)
        assert_int_equal(
            lade_enqueue(q, &(lade_job_spec){.kind = "thumb", .queue = "pics"}, NULL, NULL), 0);
    lade_close(q);
    (void)snprintf(from, sizeof(from), "%lld", (long long)first);
    RUN(&r, "events", "-q", "pics", "--from", from, "-o", "ndjson");
    assert_code(&r, 0);
    assert_says(r.err, "events were dropped before they were read");
    run_free(&r);
}

/* Nothing is polled: the follower, in a process of its own, is rung by the others. */
static void a_follower_sees_what_other_processes_do(void **state)
{
    (void)state;
    struct ts_proc p = {0};
    CODE(0, "queue", "events", "pics", "on");
    START(&p, "events", "--follow", "--from", "start", "-q", "pics", "-o", "ndjson", "--limit",
          "4");
    add("a");
    drain("true");
    assert_true(ts_proc_wait(&p, CLI_RUN_DEADLINE));
    assert_int_equal(ts_proc_code(&p), 0);
    assert_says(log_text(), "\"event\":\"waiting\"");
    assert_says(log_text(), "\"event\":\"active\"");
}

static void a_follower_ends_by_a_signal(void **state)
{
    (void)state;
    struct ts_proc p = {0};
    CODE(0, "queue", "events", "pics", "on");
    START(&p, "events", "--follow", "--from", "start", "-q", "pics");
    add("a");
    assert_true(TS_UNTIL(CLI_RUN_DEADLINE, strstr(log_text(), "waiting") != NULL));
    assert_int_equal(end_lade(&p), 128 + 15);
}

/* The server is of this test, so that it can die and come back with what it had. */
static void a_follower_outlasts_a_store_that_goes_away(void **state)
{
    (void)state;

    static const char *const keep[] = {"--appendonly", "yes", NULL};

    struct ts_redis redis = {0};
    struct ts_proc p = {0};
    assert_true(ts_redis_start(&redis, &(struct ts_redis_opts){.args = keep}));
    CODE(0, "queue", "events", "pics", "on", "-u", redis.url);
    START(&p, "events", "--follow", "--from", "start", "-q", "pics", "-o", "ndjson", "--limit", "2",
          "-u", redis.url);
    CODE(0, "enqueue", "-k", "k", "-q", "pics", "--id", "first", "-u", redis.url);
    assert_true(TS_UNTIL(CLI_RUN_DEADLINE, strstr(log_text(), "\"first\"") != NULL));
    ts_redis_kill(&redis);
    assert_true(TS_UNTIL(CLI_RUN_DEADLINE, strstr(log_text(), "going on when it is back")));
    assert_true(ts_redis_again(&redis));
    CODE(0, "enqueue", "-k", "k", "-q", "pics", "--id", "second", "-u", redis.url);
    assert_true(ts_proc_wait(&p, CLI_RUN_DEADLINE));
    assert_int_equal(ts_proc_code(&p), 0);
    assert_says(log_text(), "\"second\"");
    assert_says(log_text(), "the store is back");
    ts_redis_stop(&redis);
}

/* chasqui 50 */
static void job_wait_says_how_the_job_ended(void **state)
{
    (void)state;
    struct cli_run r = {0};
    add("good");
    add("bad");
    add("off");
    CODE(4, "job", "wait", "good", "--timeout", "1ms");
    CODE(3, "job", "wait", "nobody", "--timeout", "1ms");
    CODE(0, "job", "cancel", "off", "--yes");
    drain("case $LADE_JOB_ID in good) printf 'a\\nb';; *) echo broken >&2; exit 1;; esac");
    RUN(&r, "job", "wait", "good", "--result");
    assert_code(&r, 0);
    assert_string_equal(r.out, "a\nb");
    RUN(&r, "job", "wait", "good");
    assert_code(&r, 0);
    assert_string_equal(r.out, "good completed\n");
    RUN(&r, "job", "wait", "bad");
    assert_code(&r, 1);
    assert_says(r.out, "bad dead: exhausted");
    RUN(&r, "job", "wait", "off", "-q", "pics", "-o", "json");
    assert_code(&r, 1);
    json_t *o = run_json(&r);
    assert_string_equal(json_text_at(o, "state"), "cancelled");
    json_decref(o);
    CODE(3, "job", "wait", "good", "-q", "elsewhere");
    run_free(&r);
}

/* A result with a time of its own outlives the record; who asks for it while or after the job runs gets it. */
static void job_wait_gives_the_result_of_a_job_that_is_gone(void **state)
{
    (void)state;
    struct cli_run r = {0};
    struct ts_proc p = {0};
    CODE(0, "enqueue", "-k", "k", "-q", "pics", "--id", "kept", "--result-ttl", "1h");
    CODE(0, "enqueue", "-k", "k", "-q", "pics", "--id", "lost");
    START(&p, "job", "wait", "kept", "--result");
    RUN(&r, "work", "-q", "pics", "--drain", "--exec", "echo done", "--keep-completed", "0");
    assert_code(&r, 0);
    assert_true(ts_proc_wait(&p, CLI_RUN_DEADLINE));
    assert_int_equal(ts_proc_code(&p), 0);
    assert_string_equal(log_text(), "done\n");
    CODE(0, "queue", "purge", "pics", "--state", "all", "--yes");
    RUN(&r, "job", "wait", "kept", "--result");
    assert_code(&r, 0);
    assert_string_equal(r.out, "done\n");
    CODE(3, "job", "wait", "kept");
    CODE(3, "job", "wait", "lost", "--result");
    run_free(&r);
}

static void job_wait_is_ended_by_the_worker_of_another_process(void **state)
{
    (void)state;
    struct ts_proc p = {0};
    add("slow");
    START(&p, "job", "wait", "slow");
    drain("echo done");
    assert_true(ts_proc_wait(&p, CLI_RUN_DEADLINE));
    assert_int_equal(ts_proc_code(&p), 0);
    assert_says(log_text(), "slow completed");
}

static size_t count_lines(const char *text)
{
    size_t n = 0;
    for (; (text = strchr(text, '\n')); text++)
        n++;
    return n;
}

/* chasqui 51 */
static void job_logs_pages_from_both_ends(void **state)
{
    (void)state;
    struct cli_run r = {0};
    CODE(3, "job", "logs", "nobody");
    add("a");
    RUN(&r, "job", "logs", "a");
    assert_code(&r, 0);
    assert_string_equal(r.out, "");
    drain("for i in 1 2 3 4 5; do echo \"line $i\" >&3; done; echo 'progress 40 half way' >&3");
    RUN(&r, "job", "logs", "a");
    assert_code(&r, 0);
    assert_int_equal(count_lines(r.out), 5);
    assert_says(r.out, "line 1");
    assert_null(strstr(r.out, "half way"));
    RUN(&r, "job", "logs", "a", "--limit", "2");
    assert_int_equal(count_lines(r.out), 2);
    assert_says(r.out, "line 4");
    assert_says(r.out, "line 5");
    RUN(&r, "job", "logs", "a", "--start", "1", "--limit", "1", "-o", "json");
    assert_code(&r, 0);
    json_t *o = run_json(&r);
    assert_int_equal(json_array_size(o), 1);
    assert_int_equal(json_int_at(json_array_get(o, 0), "number"), 2);
    assert_string_equal(json_text_at(json_array_get(o, 0), "text"), "line 2");
    json_decref(o);
    RUN(&r, "job", "logs", "a", "--reverse", "--limit", "1");
    assert_says(r.out, "line 5");
    RUN(&r, "job", "show", "a");
    assert_says(r.out, "40%");
    run_free(&r);
}

/* It ends with the job, and has its last line. */
static void job_logs_follows_until_the_job_ends(void **state)
{
    (void)state;
    struct ts_proc p = {0};
    add("a");
    START(&p, "job", "logs", "a", "--follow");
    drain("echo first >&3; echo last >&3");
    assert_true(ts_proc_wait(&p, CLI_RUN_DEADLINE));
    assert_int_equal(ts_proc_code(&p), 0);
    assert_says(log_text(), "first");
    assert_says(log_text(), "last");
    assert_int_equal(count_lines(log_text()), 2);
}

/* Also where the workflow was there before its queue kept events. */
static void an_end_of_a_step_names_the_step_and_how_long_it_took(void **state)
{
    (void)state;
    static const char flow[] = "{\"chain\":[{\"kind\":\"s\"},{\"kind\":\"s\"}]}";
    struct cli_run r = {0};
    for (int i = 0; i < 2; i++) {
        RUN_IN(&r, flow, sizeof(flow) - 1, "flow", "run", "-q", "steps", "-");
        assert_code(&r, 0);
        RUN(&r, "queue", "events", "steps", "on");
        assert_code(&r, 0);
    }
    RUN(&r, "work", "-q", "steps", "-e", "sleep 0.01", "--drain");
    assert_code(&r, 0);
    RUN(&r, "events", "-q", "steps", "-o", "ndjson");
    assert_code(&r, 0);
    size_t n = 0;
    for (char *line = strtok(r.out, "\n"); line; line = strtok(NULL, "\n")) {
        if (!strstr(line, "\"event\":\"completed\""))
            continue;
        n++;
        assert_says(line, n <= 2 ? "~0\"," : "~1\",");
        assert_null(strstr(line, "\"duration_us\":0}"));
    }
    assert_int_equal(n, 4);
    run_free(&r);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        ON_STORE(events_are_turned_on_read_from_an_id_and_turned_off),
        ON_STORE(what_makes_no_sense_is_refused),
        ON_STORE(a_reader_is_told_what_fell_off_the_cap),
        ON_STORE(a_follower_sees_what_other_processes_do),
        ON_STORE(a_follower_ends_by_a_signal),
        ON_STORE(a_follower_outlasts_a_store_that_goes_away),
        ON_STORE(job_wait_says_how_the_job_ended),
        ON_STORE(job_wait_gives_the_result_of_a_job_that_is_gone),
        ON_STORE(job_wait_is_ended_by_the_worker_of_another_process),
        ON_STORE(job_logs_pages_from_both_ends),
        ON_STORE(job_logs_follows_until_the_job_ends),
        ON_STORE(an_end_of_a_step_names_the_step_and_how_long_it_took),
    };
    return run_group(argc, argv, "events", tests, LB_ARRAY_LEN(tests));
}
