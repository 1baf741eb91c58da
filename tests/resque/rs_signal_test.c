/* resque W14, W15: the signals of Ruby's Resque. */
#include "resque/rs_kit.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <lade/lade.h>

#include "base/base.h"

/* Until the test makes the file "go" each job waits, and says when it has begun. */
static const char *waits(void)
{
    static char command[400];
    (void)snprintf(command, sizeof(command),
                   "echo ran >>%s; while [ ! -e %s/go ]; do sleep 0.02; done", path_in_dir("runs"),
                   kit_dir());
    return command;
}

static void start_waiting(struct ts_proc *p, const char *tail)
{
    enqueue_job("Sleep", "[1]");
    start_worker(p, url_with(tail), "1", waits(), NULL);
    assert_true(TS_UNTIL(WAIT, lines_of("runs") == 1));
}

/* resque W15: QUIT waits for the job, however long it takes, and ends then. */
static void quit_finishes_the_job_and_ends(void **state)
{
    (void)state;
    struct ts_proc p;
    char log[200];
    (void)snprintf(log, sizeof(log), "%s", path_in_dir("worker.log"));
    enqueue_job("Sleep", "[1]");
    enqueue_job("Sleep", "[2]");
    const char *argv[] = {lade_bin(),           "work",  "-u",     url_with(""), "-c", "1",
                          "--shutdown-timeout", "100ms", "--exec", waits(),      NULL};
    assert_true(ts_proc_start(&p, argv, NULL, log));
    assert_true(TS_UNTIL(WAIT, lines_of("runs") == 1));
    ts_proc_signal(&p, SIGQUIT);
    assert_false(
        ts_proc_wait(&p, INT64_C(1500) * 1000 * 1000)); /* past the timeout, which is TERM's */
    touch("go");
    assert_true(ts_proc_wait(&p, WAIT));
    assert_int_equal(ts_proc_code(&p), 0);
    assert_reply("GET resque:stat:processed", "\r\n1\r\n");
    assert_int_equal(ask_int("LLEN resque:queue:default"), 1);
    assert_int_equal(ask_int("EXISTS resque:failed resque:workers"), 0);
}

/* resque W15: an idle worker ends at once. Ruby sleeps its interval out. */
static void an_idle_worker_ends_at_quit_and_term(void **state)
{
    (void)state;
    static const int signo[] = {SIGQUIT, SIGTERM, SIGINT};
    for (size_t i = 0; i < LB_ARRAY_LEN(signo); i++) {
        struct ts_proc p;
        start_worker(&p, url_with(""), "1", "true", NULL);
        assert_true(TS_UNTIL(WAIT, strstr(ask("CLIENT LIST"), "cmd=exists") != NULL));
        ts_proc_signal(&p, signo[i]);
        assert_true(ts_proc_wait(&p, WAIT));
        assert_int_equal(ts_proc_code(&p), 0);
        assert_int_equal(ask_int("EXISTS resque:workers"), 0);
    }
}

/* When it was last heard of is its heartbeat, as Ruby's resque-web shows it. */
static void a_worker_is_listed_with_its_heartbeat(void **state)
{
    (void)state;
    struct cli_run r = {0};
    struct ts_proc p;
    start_worker(&p, url_with(""), "2", "true", NULL);
    assert_true(TS_UNTIL(WAIT, ask_int("EXISTS resque:workers") == 1));
    RUN(&r, "worker", "ls", "-u", url_with(""), "-o", "json");
    assert_code(&r, 0);
    json_t *list = run_json(&r);
    assert_int_equal(json_array_size(list), 1);
    const json_t *w = json_array_get(list, 0);
    assert_true(json_int_at(w, "seen_ago_ms") < 3600 * 1000);
    assert_true(strncmp(json_text_at(w, "seen_at"), "20", 2) == 0);
    json_decref(list);
    assert_int_equal(end_worker(&p), 0);
    run_free(&r);
}

/* resque W14: USR2 lets the job finish and takes no other; CONT takes again. */
static void usr2_pauses_and_cont_resumes(void **state)
{
    (void)state;
    struct ts_proc p;
    start_waiting(&p, "");
    ts_proc_signal(&p, SIGUSR2);
    enqueue_job("Ok", "[2]");
    touch("go");
    assert_true(TS_UNTIL(WAIT, ask_int("EXISTS resque:stat:processed") == 1));
    ts_nap_ms(500);
    assert_int_equal(ask_int("LLEN resque:queue:default"), 1);
    ts_proc_signal(&p, SIGCONT);
    assert_true(TS_UNTIL(WAIT, strstr(ask("GET resque:stat:processed"), "\n2\r") != NULL));
    ts_proc_signal(&p, SIGUSR2); /* an idle one, too */
    ts_proc_signal(&p, SIGUSR2);
    ts_nap_ms(300);
    enqueue_job("Ok", "[3]");
    ts_nap_ms(300);
    assert_int_equal(ask_int("LLEN resque:queue:default"), 1);
    ts_proc_signal(&p, SIGCONT);
    assert_true(TS_UNTIL(WAIT, strstr(ask("GET resque:stat:processed"), "\n3\r") != NULL));
    assert_int_equal(end_worker(&p), 0);
}

/* resque W14: USR1 breaks the job off, which fails as Ruby's child that was killed, and the worker goes on. */
static void usr1_breaks_the_job_off_and_the_worker_goes_on(void **state)
{
    (void)state;
    struct ts_proc p;
    start_waiting(&p, "");
    ts_proc_signal(&p, SIGUSR1);
    assert_true(TS_UNTIL(WAIT, ask_int("LLEN resque:failed") == 1));
    assert_reply("LINDEX resque:failed 0", "\"exception\":\"Resque::DirtyExit\"");
    assert_reply("LINDEX resque:failed 0", "told to stop");
    ts_proc_signal(&p, SIGUSR1); /* nothing runs: nothing happens. Ruby would end */
    touch("go");
    enqueue_job("Ok", "[2]");
    assert_true(TS_UNTIL(WAIT, strstr(ask("GET resque:stat:processed"), "\n2\r") != NULL));
    assert_int_equal(ask_int("LLEN resque:failed"), 1);
    assert_int_equal(end_worker(&p), 0);
}

static void term_in_the_midst(const char *tail)
{
    struct ts_proc p;
    char log[200];
    (void)snprintf(log, sizeof(log), "%s", path_in_dir("worker.log"));
    enqueue_job("Sleep", "[1]");
    const char *argv[] = {lade_bin(), "work",  "-u", url_with(tail), "--shutdown-timeout", "200ms",
                          "--exec",   waits(), NULL};
    assert_true(ts_proc_start(&p, argv, NULL, log));
    assert_true(TS_UNTIL(WAIT, lines_of("runs") == 1));
    (void)end_worker(&p);
}

/* resque W15: TERM and a job that does not end in time: in strict mode it fails, as Ruby's does; it would run twice otherwise. */
static void in_strict_mode_a_job_broken_off_by_term_fails(void **state)
{
    (void)state;
    term_in_the_midst("?mode=strict");
    assert_int_equal(ask_int("LLEN resque:queue:default"), 0);
    assert_reply("LINDEX resque:failed 0",
                 "\"exception\":\"Resque::DirtyExit\",\"error\":\"Job still being processed\"");
    (void)ask("FLUSHALL");
    (void)unlink(path_in_dir("runs"));
    term_in_the_midst("");
    assert_int_equal(ask_int("LLEN resque:queue:default"), 1);
    assert_int_equal(ask_int("EXISTS resque:failed"), 0);
}

/* resque W14: the table is the URL's unless it is named; a name that is none is refused. */
static void the_table_can_be_named(void **state)
{
    (void)state;
    struct cli_run r = {0};
    RUN(&r, "work", "-u", url_with(""), "--signals", "ruby", "--exec", "true");
    assert_code(&r, 2);
    assert_says(r.err, "--signals: 'ruby' is neither 'lade' nor 'resque'");
    run_free(&r);
    struct ts_proc p;
    char log[200];
    (void)snprintf(log, sizeof(log), "%s", path_in_dir("worker.log"));
    enqueue_job("Sleep", "[1]");
    const char *argv[] = {lade_bin(), "work",   "-u",    url_with(""), "--signals",
                          "lade",     "--exec", waits(), NULL};
    assert_true(ts_proc_start(&p, argv, NULL, log));
    assert_true(TS_UNTIL(WAIT, lines_of("runs") == 1));
    ts_proc_signal(&p, SIGQUIT); /* at once: the job goes back */
    assert_true(ts_proc_wait(&p, WAIT));
    assert_int_equal(ask_int("LLEN resque:queue:default"), 1);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(quit_finishes_the_job_and_ends),
        cmocka_unit_test(an_idle_worker_ends_at_quit_and_term),
        cmocka_unit_test(a_worker_is_listed_with_its_heartbeat),
        cmocka_unit_test(usr2_pauses_and_cont_resumes),
        cmocka_unit_test(usr1_breaks_the_job_off_and_the_worker_goes_on),
        cmocka_unit_test(in_strict_mode_a_job_broken_off_by_term_fails),
        cmocka_unit_test(the_table_can_be_named)};
    return kit_main(argc, argv, "resque signals", tests, LB_ARRAY_LEN(tests));
}
