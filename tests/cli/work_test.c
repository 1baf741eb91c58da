/* lade work with --exec handlers, on the store that argv names */
#include "cli/cli_run.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lade/lade.h>

#include "base/base.h"
#include "base/clock.h"

#define SECONDS(n) (INT64_C(n) * 1000 * 1000 * 1000)

/* Drains with one handler for every kind and returns the log. */
static void drain(const char *command)
{
    struct cli_run r = {0};
    RUN(&r, "work", "--drain", "--exec", command, "-c", "2");
    assert_code(&r, 0);
    run_free(&r);
}

static void assert_last_error(const char *id, const char *wanted)
{
    json_t *job = job_of(id);
    assert_non_null(job);
    const json_t *history = json_object_get(job, "history");
    assert_true(json_array_size(history) > 0);
    const json_t *last = json_array_get(history, json_array_size(history) - 1);
    assert_says(json_text_at(last, "error"), wanted);
    json_decref(job);
}

static void a_handler_gets_payload_and_environment_and_its_stdout_is_the_result(void **state)
{
    (void)state;
    struct cli_run r = {0};
    RUN(&r, "enqueue", "-k", "greet", "-q", "q1", "-p", "world", "--id", "j1", "--header",
        "trace-id=t 1", "--max-attempts", "3");
    assert_code(&r, 0);
    RUN(&r, "work", "-q", "q1", "--drain", "--kind", "greet", "--exec",
        "printf 'hello '; cat; echo; env | grep '^LADE_' | grep -v '^LADE_BIN\\|^LADE_URL' | sort");
    assert_code(&r, 0);
    assert_says(r.out, "completed    1");
    RUN(&r, "job", "show", "j1", "--result");
    assert_code(&r, 0);
    assert_says(r.out, "hello world\nLADE_ATTEMPT=1\nLADE_FENCE=");
    assert_says(r.out, "\nLADE_HEADER_TRACE_ID=t 1\nLADE_JOB_ID=j1\nLADE_KIND=greet\n"
                       "LADE_MAX_ATTEMPTS=3\nLADE_NOTES_FD=3\nLADE_QUEUE=q1\n");
    run_free(&r);
}

/* The table of --help, as strings of states. */
static void exit_codes_are_outcomes(void **state)
{
    (void)state;

    static const struct {
        const char *code, *state;
    } cases[] = {
        {"0", "completed"},   {"100", "dead"},   {"101", "gone"},    {"102", "cancelled"},
        {"103", "scheduled"}, {"1", "retrying"}, {"75", "retrying"}, {"255", "retrying"},
    };

    struct ts_proc p;
    for (size_t i = 0; i < LB_ARRAY_LEN(cases); i++) {
        struct cli_run r = {0};
        RUN(&r, "enqueue", "-k", "code", "-p", cases[i].code, "--id", cases[i].code);
        assert_code(&r, 0);
        run_free(&r);
    }
    START(&p, "work", "--exec", "exit $(cat)");
    assert_true(TS_UNTIL(SECONDS(60), total_of("ready") + total_of("active") == 0));
    assert_int_equal(end_lade(&p), 0);
    for (size_t i = 0; i < LB_ARRAY_LEN(cases); i++)
        assert_string_equal(state_of(cases[i].code), cases[i].state);
    assert_last_error("75", "exit 75");
    /* A snooze spends no attempt. */
    json_t *job = job_of("103");
    assert_int_equal(json_int_at(job, "attempts"), 0);
    json_decref(job);
}

/* chronos 7; chasqui 31 */
static void the_end_of_stderr_is_the_error_text_and_a_signal_is_named(void **state)
{
    (void)state;
    struct cli_run r = {0};
    struct lade_id_text id = enqueue("long", "");
    RUN(&r, "enqueue", "-k", "sig", "--id", "sig", "--max-attempts", "1");
    assert_code(&r, 0);
    RUN(&r, "work", "--drain", "--kind", "long", "--exec",
        "i=0; while [ $i -lt 2000 ]; do echo line-$i >&2; i=$((i+1)); done; exit 100", "--kind",
        "sig", "--exec", "echo oops >&2; kill -SEGV $$");
    assert_code(&r, 0);
    assert_last_error(id.text, "exit 100: ");
    assert_last_error(id.text, "line-1999");
    json_t *job = job_of(id.text);
    const json_t *last = json_array_get(json_object_get(job, "history"), 0);
    assert_true(json_int_at(last, "error_size") <= LADE_ERROR_TEXT_MAX);
    assert_true(json_int_at(last, "error_size") > LADE_ERROR_TEXT_MAX - 100);
    json_decref(job);
    assert_last_error("sig", "killed by SIGSEGV: oops");
    assert_string_equal(state_of("sig"), "dead");
    run_free(&r);
}

/* C-091: error bytes that are no text are kept, and the CLI shows them as valid JSON and on a terminal line. */
static void binary_errors_are_kept_and_shown(void **state)
{
    (void)state;
    struct cli_run r = {0};
    RUN(&r, "enqueue", "-k", "k", "--id", "b", "--max-attempts", "3", "--backoff", "fixed:1ms");
    assert_code(&r, 0);
    drain("printf '\\377\\376\\000\\303\\050 \\355\\240\\200' >&2; exit 1");
    assert_string_equal(state_of("b"), "dead");
    json_t *job = job_of("b");
    assert_int_equal(json_int_at(job, "attempts"), 3);
    const json_t *last = json_array_get(json_object_get(job, "history"), 2);
    assert_string_equal(json_text_at(last, "error_encoding"), "base64");
    /* "exit 1: " and the bytes */
    assert_string_equal(json_text_at(last, "error_base64"), "ZXhpdCAxOiD//gDDKCDtoIA=");
    json_decref(job);
    RUN(&r, "dead", "ls");
    assert_code(&r, 0);
    assert_says(r.out, "binary");
    RUN(&r, "dead", "ls", "-o", "json");
    assert_code(&r, 0);
    json_t *list = run_json(&r);
    assert_int_equal(json_array_size(list), 1);
    json_decref(list);
    RUN(&r, "job", "show", "b");
    assert_code(&r, 0);
    run_free(&r);
}

/* chasqui 49 */
static void a_result_with_a_time_of_its_own_is_shown_when_its_job_is_gone(void **state)
{
    (void)state;
    struct cli_run r = {0};
    RUN(&r, "enqueue", "-k", "wc", "--id", "j1", "-p", "four", "--result-ttl", "1h");
    assert_code(&r, 0);
    run_free(&r);
    RUN(&r, "job", "show", "j1", "-o", "json");
    json_t *job = run_json(&r);
    assert_int_equal(json_integer_value(json_object_get(job, "result_ttl_ms")), 3600000);
    json_decref(job);
    run_free(&r);
    RUN(&r, "work", "--exec", "cat", "--drain");
    assert_code(&r, 0);
    run_free(&r);
    RUN(&r, "queue", "purge", "default", "--state", "completed", "--yes");
    assert_code(&r, 0);
    run_free(&r);
    RUN(&r, "job", "show", "j1");
    assert_code(&r, 3);
    run_free(&r);
    RUN(&r, "job", "show", "j1", "--result");
    assert_code(&r, 0);
    assert_string_equal(r.out, "four");
    run_free(&r);
    RUN(&r, "job", "show", "j2", "--result");
    assert_code(&r, 3);
    run_free(&r);
    RUN(&r, "enqueue", "-k", "wc", "--result-ttl", "0");
    assert_code(&r, 2);
    assert_says(r.err, "--result-ttl");
    run_free(&r);
}

/* C-092 */
static void results_and_payloads_of_any_bytes_go_through_a_handler_unchanged(void **state)
{
    (void)state;
    static uint8_t bytes[300000];
    struct cli_run r = {0};
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(i * 31 + i / 256);
    RUN_IN(&r, bytes, sizeof(bytes), "enqueue", "-k", "k", "--id", "x", "--payload", "@-");
    assert_code(&r, 0);
    RUN(&r, "enqueue", "-k", "k", "--id", "empty");
    assert_code(&r, 0);
    drain("cat");
    RUN(&r, "job", "show", "x", "--result");
    assert_code(&r, 0);
    assert_int_equal(r.n_out, sizeof(bytes));
    assert_memory_equal(r.out, bytes, sizeof(bytes));
    json_t *job = job_of("x");
    assert_string_equal(json_text_at(job, "result_encoding"), "base64");
    json_decref(job);
    RUN(&r, "job", "show", "empty", "--result");
    assert_code(&r, 0);
    assert_int_equal(r.n_out, 0);
    run_free(&r);
}

static void a_handler_that_does_not_read_its_payload_is_no_error(void **state)
{
    (void)state;
    static char big[900000];
    struct cli_run r = {0};
    memset(big, 'x', sizeof(big));
    RUN_IN(&r, big, sizeof(big), "enqueue", "-k", "k", "--id", "x", "--payload", "@-");
    assert_code(&r, 0);
    drain("exec <&-; exit 0");
    assert_string_equal(state_of("x"), "completed");
    run_free(&r);
}

static void a_result_over_the_limit_fails_the_attempt_with_a_clear_text(void **state)
{
    (void)state;
    struct cli_run r = {0};
    RUN(&r, "enqueue", "-k", "k", "--id", "x", "--max-attempts", "1");
    assert_code(&r, 0);
    drain("yes");
    assert_string_equal(state_of("x"), "dead");
    assert_last_error("x", "stdout is over 1048576 bytes");
    run_free(&r);
}

static void a_timeout_terminates_the_group_and_counts_as_a_failed_attempt(void **state)
{
    (void)state;
    char command[400];
    char pid_file[256];
    struct cli_run r = {0};
    (void)snprintf(pid_file, sizeof(pid_file), "%s", file_path("pid"));
    (void)snprintf(command, sizeof(command),
                   "trap 'echo tidy >&2; exit 0' TERM; sleep 300 & echo $! > %s; wait", pid_file);
    RUN(&r, "enqueue", "-k", "k", "--id", "x", "--max-attempts", "1", "--timeout", "300ms");
    assert_code(&r, 0);
    drain(command);
    assert_string_equal(state_of("x"), "dead");
    pid_t grandchild = (pid_t)strtol(file_text("pid"), NULL, 10);
    assert_true(grandchild > 1);
    assert_true(TS_UNTIL(SECONDS(60), kill(grandchild, 0) != 0 && errno == ESRCH));
    run_free(&r);
}

/* The TERM may come before the child has become `sh`: it must not be lost on the worker's own handlers, which a fork inherits. */
static void a_timeout_in_the_first_moment_is_not_lost(void **state)
{
    (void)state;
    struct cli_run r = {0};
    char id[16];
    for (int i = 0; i < 20; i++) {
        (void)snprintf(id, sizeof(id), "t%d", i);
        RUN(&r, "enqueue", "-k", "k", "--id", id, "--max-attempts", "1", "--timeout", "1ms");
        assert_code(&r, 0);
    }
    RUN(&r, "work", "--drain", "-c", "20", "--exec", "exec sleep 20");
    assert_code(&r, 0);
    for (int i = 0; i < 20; i++) {
        (void)snprintf(id, sizeof(id), "t%d", i);
        assert_last_error(id, "timed out, killed by SIGTERM");
    }
    run_free(&r);
}

/* TERM reaches `sh -c` and the script; the shell dies of it at once, the script has its five seconds all the same. */
static void the_whole_group_has_the_grace_when_the_outer_shell_dies_at_term(void **state)
{
    (void)state;
    char command[400];
    char script[700];
    char done[256];
    struct cli_run r = {0};
    (void)snprintf(done, sizeof(done), "%s", file_path("done"));
    int n = snprintf(script, sizeof(script),
                     "trap 'sleep 2; echo tidy > %s; exit 0' TERM\nwhile :; do sleep 0.05; done\n",
                     done);
    write_file("script", script, (size_t)n);
    (void)snprintf(command, sizeof(command), "sh %s; true", file_path("script"));
    RUN(&r, "enqueue", "-k", "k", "--id", "x", "--max-attempts", "1", "--timeout", "300ms");
    assert_code(&r, 0);
    drain(command);
    assert_string_equal(file_text("done"), "tidy\n");
    assert_string_equal(state_of("x"), "dead");
    assert_last_error("x", "timed out");
    run_free(&r);
}

static void payloads_over_the_default_limit_are_run(void **state)
{
    (void)state;

    enum { SIZE = 3 << 20 };
    struct cli_run r = {0};
    char *big = malloc(SIZE);
    assert_non_null(big);
    memset(big, 'x', SIZE);
    RUN_IN(&r, big, SIZE, "enqueue", "-k", "k", "--id", "x", "-p", "@-", "--payload-max",
           "4194304");
    free(big);
    assert_code(&r, 0);
    RUN(&r, "job", "show", "x", "--payload");
    assert_code(&r, 0);
    assert_int_equal(r.n_out, SIZE);
    drain("wc -c");
    assert_string_equal(state_of("x"), "completed");
    RUN(&r, "job", "show", "x", "--result");
    assert_says(r.out, "3145728");
    run_free(&r);
}

static void a_cancelled_job_stops_its_handler(void **state)
{
    (void)state;
    struct cli_run r = {0};
    struct ts_proc p;
    struct lade_id_text id = enqueue("k", "");
    START(&p, "work", "--exec", "exec sleep 300", "--lease", "1s");
    assert_true(TS_UNTIL(SECONDS(60), strcmp(state_of(id.text), "active") == 0));
    RUN(&r, "job", "cancel", id.text);
    assert_code(&r, 0);
    assert_true(TS_UNTIL(SECONDS(60), strcmp(state_of(id.text), "cancelled") == 0));
    assert_int_equal(end_lade(&p), 0);
    run_free(&r);
}

static void a_handler_deaf_to_term_is_killed_after_five_seconds(void **state)
{
    (void)state;
    struct cli_run r = {0};
    RUN(&r, "enqueue", "-k", "k", "--id", "x", "--max-attempts", "1", "--timeout", "200ms");
    assert_code(&r, 0);
    int64_t before = lb_clock_mono();
    drain("trap '' TERM; while :; do sleep 0.05; done");
    int64_t took = lb_clock_mono() - before;
    assert_true(took > SECONDS(5));
    assert_string_equal(state_of("x"), "dead");
    run_free(&r);
}

static void a_grandchild_that_holds_stdout_neither_holds_the_slot_nor_survives(void **state)
{
    (void)state;
    char command[400];
    struct cli_run r = {0};
    (void)snprintf(command, sizeof(command), "sleep 300 & echo $! > %s; echo done",
                   file_path("pid"));
    struct lade_id_text id = enqueue("k", "");
    drain(command);
    assert_string_equal(state_of(id.text), "completed");
    RUN(&r, "job", "show", id.text, "--result");
    assert_string_equal(r.out, "done\n");
    pid_t grandchild = (pid_t)strtol(file_text("pid"), NULL, 10);
    assert_true(grandchild > 1);
    assert_true(TS_UNTIL(SECONDS(60), kill(grandchild, 0) != 0 && errno == ESRCH));
    run_free(&r);
}

/* Even so killed a worker leaves nothing running: the guard sees to it. */
static void no_orphan_is_left_when_the_worker_is_killed(void **state)
{
    (void)state;
    char command[400];
    struct ts_proc p;
    (void)enqueue("k", "");
    (void)snprintf(command, sizeof(command),
                   "trap '' TERM HUP; (trap '' TERM HUP; sleep 300) & echo $$ $! > %s; wait",
                   file_path("pid"));
    START(&p, "work", "--exec", command);
    assert_true(TS_UNTIL(SECONDS(60), strchr(file_text("pid"), '\n') != NULL));
    char *rest = NULL;
    pid_t child = (pid_t)strtol(file_text("pid"), &rest, 10);
    pid_t grandchild = (pid_t)strtol(rest, NULL, 10);
    assert_true(child > 1 && grandchild > 1);
    ts_proc_kill(&p);
    assert_true(TS_UNTIL(SECONDS(60), kill(child, 0) != 0 && errno == ESRCH));
    assert_true(TS_UNTIL(SECONDS(60), kill(grandchild, 0) != 0 && errno == ESRCH));
}

static void kinds_have_their_own_handlers_and_weights_are_understood(void **state)
{
    (void)state;
    struct cli_run r = {0};
    RUN(&r, "enqueue", "-k", "a", "--id", "a", "-q", "x");
    RUN(&r, "enqueue", "-k", "b", "--id", "b", "-q", "x");
    RUN(&r, "enqueue", "-k", "c", "--id", "c", "-q", "y");
    assert_code(&r, 0);
    RUN(&r, "work", "-q", "x=3,y=1", "--drain", "-k", "a", "-k", "b", "-e", "echo one", "-e",
        "echo other", "-o", "json");
    assert_code(&r, 0);
    json_t *summary = run_json(&r);
    assert_int_equal(json_int_at(summary, "completed"), 3);
    json_decref(summary);
    RUN(&r, "job", "show", "b", "--result");
    assert_string_equal(r.out, "one\n");
    RUN(&r, "job", "show", "c", "--result");
    assert_string_equal(r.out, "other\n");
    run_free(&r);
}

/* Who waits for the end of a drain learns at once what keeps it from ending. */
static void a_drain_that_has_no_handler_for_a_kind_says_so_and_waits(void **state)
{
    (void)state;
    struct cli_run r = {0};
    struct ts_proc p;
    struct lade_id_text id = enqueue("strange", "");
    START(&p, "work", "--drain", "-k", "known", "-e", "true");
    assert_true(TS_UNTIL(SECONDS(60), strstr(log_text(), "given back") != NULL));
    assert_says(
        log_text(),
        "no handler for kind 'strange' here, given back to the store; the drain goes on until a worker "
        "that has one has run it");
    assert_true(TS_UNTIL(SECONDS(60), strcmp(state_of(id.text), "scheduled") == 0));
    assert_false(ts_proc_wait(&p, 0));
    RUN(&r, "job", "cancel", id.text);
    assert_code(&r, 0);
    assert_true(ts_proc_wait(&p, SECONDS(60))); /* nothing is left */
    run_free(&r);
}

/* chasqui 31 */
static void a_command_that_is_not_there_fails_the_attempt(void **state)
{
    (void)state;
    struct cli_run r = {0};
    RUN(&r, "enqueue", "-k", "k", "--id", "x", "--max-attempts", "1");
    assert_code(&r, 0);
    drain("/nonexistent/program");
    assert_string_equal(state_of("x"), "dead");
    assert_last_error("x", "exit 127: ");
    run_free(&r);
}

/* chasqui 59 */
static void term_lets_handlers_finish_and_a_second_one_hands_back(void **state)
{
    (void)state;
    char command[400];
    struct ts_proc p;
    struct lade_id_text id = enqueue("k", "");
    (void)snprintf(command, sizeof(command), "echo on > %s; sleep 1; echo end", file_path("on"));
    START(&p, "work", "--exec", command);
    assert_true(TS_UNTIL(SECONDS(60), file_text("on")[0] == 'o'));
    assert_int_equal(end_lade(&p), 0);
    assert_string_equal(state_of(id.text), "completed");

    id = enqueue("k", "");
    (void)snprintf(command, sizeof(command), "echo on > %s; exec sleep 300", file_path("on2"));
    START(&p, "work", "--exec", command);
    assert_true(TS_UNTIL(SECONDS(60), file_text("on2")[0] == 'o'));
    /* Signals that come at the same moment are one; so they are repeated until it ends. */
    int64_t deadline = lb_deadline_in(SECONDS(60));
    while (!ts_proc_wait(&p, SECONDS(1) / 20) && lb_clock_mono() < deadline)
        ts_proc_signal(&p, SIGTERM);
    assert_int_equal(end_lade(&p), 0);
    assert_string_equal(state_of(id.text), "ready");
    json_t *job = job_of(id.text);
    assert_int_equal(json_int_at(job, "attempts"), 0);
    json_decref(job);
}

static void a_worker_keeps_as_many_ended_jobs_as_it_is_told(void **state)
{
    (void)state;
    struct cli_run r = {0};
    for (int i = 0; i < 5; i++)
        (void)enqueue(i < 3 ? "good" : "bad", "");
    RUN(&r, "work", "--drain", "-k", "good", "-e", "true", "-k", "bad", "-e", "exit 100",
        "--keep-completed", "1h,2", "--keep-dead", "0", "-c", "1");
    assert_code(&r, 0);
    assert_int_equal(total_of("completed"), 2);
    assert_int_equal(total_of("dead"), 0);
    assert_int_equal(total_of("total_completed"), 3);
    run_free(&r);
}

static void bad_worker_options_are_refused(void **state)
{
    (void)state;

    static const struct {
        const char *args[8];
        const char *says;
    } cases[] = {
        {{"work"}, "nothing to run"},
        {{"work", "--kind", "a"}, "no --exec after 'a'"},
        {{"work", "--exec", ""}, "--exec: empty"},
        {{"work", "--exec", "true", "--kind", "a"}, "no --exec after 'a'"},
        {{"work", "--exec", "true", "-q", "a,,b"}, "--queue: an empty name"},
        {{"work", "--exec", "true", "-q", "a=0"}, "--queue: weight"},
        {{"work", "--exec", "true", "-q", "a=x"}, "--queue: weight"},
        {{"work", "--exec", "true", "-q", "a b"}, "queue"},
        {{"work", "--exec", "true", "-k", "a b", "-e", "true"}, "kind"},
        {{"work", "--exec", "true", "--exec", "false"}, "said twice"},
        {{"work", "--exec", "true", "-c", "0"}, "--concurrency"},
        {{"work", "--exec", "true", "--lease", "10ms"}, "--lease"},
        {{"work", "--exec", "true", "--name", "a\nb"}, "control character"},
        {{"work", "--exec", "true", "--name", "a", "--name", "b"}, "--name: given twice"},
        {{"work", "--exec", "true", "--keep-dead", "5x"}, "--keep-dead"},
        {{"work", "--exec", "true", "--keep-completed", "5,1h"}, "--keep-completed"},
        {{"enqueue", "-k", "k", "-p", "a", "-p", "b"}, "--payload: given twice"},
        {{"enqueue", "-k", "k", "--in", "5us"}, "--in"},
        {{"enqueue", "-k", "k", "--at", "1999-12-31T00:00:00Z"}, "out of range; give a time"},
        {{"enqueue", "-k", "k", "--at", "9999-12-31T23:59:59Z"}, "out of range; give a time"},
    };

    struct cli_run r = {0};
    for (size_t i = 0; i < LB_ARRAY_LEN(cases); i++) {
        run_args(&r, NULL, cases[i].args);
        assert_code(&r, 2);
        assert_says(r.err, cases[i].says);
        assert_ptr_equal(strchr(r.err, '\n'), r.err + r.n_err - 1);
    }
    run_free(&r);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        ON_STORE(a_handler_gets_payload_and_environment_and_its_stdout_is_the_result),
        ON_STORE(exit_codes_are_outcomes),
        ON_STORE(the_end_of_stderr_is_the_error_text_and_a_signal_is_named),
        ON_STORE(binary_errors_are_kept_and_shown),
        ON_STORE(a_result_with_a_time_of_its_own_is_shown_when_its_job_is_gone),
        ON_STORE(results_and_payloads_of_any_bytes_go_through_a_handler_unchanged),
        ON_STORE(a_handler_that_does_not_read_its_payload_is_no_error),
        ON_STORE(a_result_over_the_limit_fails_the_attempt_with_a_clear_text),
        ON_STORE(a_timeout_terminates_the_group_and_counts_as_a_failed_attempt),
        ON_STORE(a_timeout_in_the_first_moment_is_not_lost),
        ON_STORE(the_whole_group_has_the_grace_when_the_outer_shell_dies_at_term),
        ON_STORE(payloads_over_the_default_limit_are_run),
        ON_STORE(a_cancelled_job_stops_its_handler),
        ON_STORE(a_handler_deaf_to_term_is_killed_after_five_seconds),
        ON_STORE(a_grandchild_that_holds_stdout_neither_holds_the_slot_nor_survives),
        ON_STORE(no_orphan_is_left_when_the_worker_is_killed),
        ON_STORE(kinds_have_their_own_handlers_and_weights_are_understood),
        ON_STORE(a_drain_that_has_no_handler_for_a_kind_says_so_and_waits),
        ON_STORE(a_command_that_is_not_there_fails_the_attempt),
        ON_STORE(term_lets_handlers_finish_and_a_second_one_hands_back),
        ON_STORE(a_worker_keeps_as_many_ended_jobs_as_it_is_told),
        ON_STORE(bad_worker_options_are_refused),
    };
    return run_group(argc, argv, "work", tests, LB_ARRAY_LEN(tests));
}
