/* resque W10, W14, W22: which queues a worker serves, and how it waits for them. */
#include "resque/rs_kit.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <lade/lade.h>

#include "base/base.h"

static void push(const char *queue)
{
    struct cli_run r = {0};
    RUN(&r, "enqueue", "-u", url_with(""), "-q", queue, "--kind", "Ok", "--payload", "[]");
    assert_code(&r, 0);
    run_free(&r);
}

/* A job in each of the queues of the specification's example, then a worker with one slot: the order in which they ran. */
static void assert_order(const char *list, const char *wanted)
{
    static const char *const queue[] = {"low", "mid", "file_b", "high", "critical", "file_a"};
    struct cli_run r = {0};
    char command[300];
    (void)ask("FLUSHALL");
    (void)remove(path_in_dir("order"));
    for (size_t i = 0; i < LB_ARRAY_LEN(queue); i++)
        push(queue[i]);
    (void)snprintf(command, sizeof(command), "echo $LADE_QUEUE >>%s", path_in_dir("order"));
    RUN(&r, "work", "-u", url_with(""), "-q", list, "--drain", "-c", "1", "--exec", command);
    assert_code(&r, 0);
    run_free(&r);
    assert_file("order", wanted);
}

/* resque W10, as verified against Ruby: within a pattern by the alphabet, each queue once, exclusions out. */
static void patterns_name_queues_in_the_order_of_ruby(void **state)
{
    (void)state;
    assert_order("critical,*", "critical\nfile_a\nfile_b\nhigh\nlow\nmid\n");
    assert_order("high,*,low", "high\ncritical\nfile_a\nfile_b\nlow\nmid\n");
    assert_order("*,!low", "critical\nfile_a\nfile_b\nhigh\nmid\n");
    assert_order("!file_*,*", "critical\nhigh\nlow\nmid\n");
    assert_order("file_?, high", "file_a\nfile_b\nhigh\n");
    assert_order("file_[b-z]", "file_b\n");
    assert_order("{high,low},mid", "mid\n"); /* no alternatives: two names that are no queues */
    assert_order(" high , low ", "high\nlow\n");
}

/* resque W10: what cannot be served is refused before anything is taken, by the rule it breaks. */
static void lists_that_name_nothing_are_refused(void **state)
{
    (void)state;

    static const struct {
        const char *list, *word;
    } cases[] = {{"!low", "exclusions alone (!low) name no queue"},
                 {"!low,!high", "name no queue"},
                 {"!,*", "queue '!' excludes nothing"},
                 {"*=3,low=1", "patterns are served in strict order"},
                 {"a b", "must be 1 to"},
                 {"high,high", "given twice"}};
    struct cli_run r = {0};
    for (size_t i = 0; i < LB_ARRAY_LEN(cases); i++) {
        RUN(&r, "work", "-u", url_with(""), "-q", cases[i].list, "--drain", "--exec", "true");
        assert_true(r.code != 0);
        assert_says(r.err, cases[i].word);
    }
    RUN(&r, "work", "-u", "memory:", "-q", "*", "--drain", "--exec", "true");
    assert_true(r.code != 0);
    assert_says(r.err, "queue '*' must be");
    run_free(&r);
    assert_int_equal(ask_int("DBSIZE"), 0);
}

static void assert_workers(const char *queue, size_t wanted)
{
    lade *q = NULL;
    lade_err err = {0};
    lade_queue_info info = {0};
    push(queue);
    assert_int_equal(lade_open(&q, url_with(""), NULL, &err), 0);
    assert_int_equal(lade_queue_get(q, queue, &info, &err), 0);
    lade_close(q);
    assert_int_equal(info.n_workers, wanted);
}

/* resque W10: a queue that comes to be is served without a restart, at once; the id has no exclusions, as Ruby's. */
static void a_new_queue_is_found_without_a_restart(void **state)
{
    (void)state;
    struct ts_proc p;
    char log[200];
    (void)snprintf(log, sizeof(log), "%s", path_in_dir("worker.log"));
    const char *argv[] = {lade_bin(), "work",     "-u",     url_with(""), "-c", "2",
                          "-q",       "a,*,!low", "--exec", "true",       NULL};
    assert_true(ts_proc_start(&p, argv, NULL, log));
    assert_true(TS_UNTIL(WAIT, strstr(ask("CLIENT LIST"), "cmd=smembers") != NULL));
    assert_int_equal(count_of(ask("SMEMBERS resque:workers"), ":a,*\r"), 2);
    (void)ask("CONFIG RESETSTAT");
    assert_workers("fresh", 1);
    assert_workers("low", 0);
    assert_true(TS_UNTIL(WAIT, ask_int("EXISTS resque:stat:processed") == 1));
    push("new");
    assert_true(TS_UNTIL(WAIT, strstr(ask("GET resque:stat:processed"), "\n2\r") != NULL));
    assert_int_equal(ask_int("LLEN resque:queue:low"), 1);
    assert_true(calls_of("smembers") < 20); /* it was told, and did not ask again and again */
    assert_int_equal(end_worker(&p), 0);
}

/* resque W22: twelve queues are waited for as one is: nothing is asked for while nothing happens, and the last of them is seen at once. */
static void many_queues_are_waited_for_without_a_poll(void **state)
{
    (void)state;
    struct ts_proc p;
    char log[200];
    (void)snprintf(log, sizeof(log), "%s", path_in_dir("worker.log"));
    const char *argv[] = {lade_bin(), "work", "-u", url_with(""), "-q", "a,b,c,d,e,f,g,h,i,j,k,l",
                          "--exec",   "true", NULL};
    assert_true(ts_proc_start(&p, argv, NULL, log));
    assert_true(TS_UNTIL(WAIT, strstr(ask("CLIENT LIST"), "cmd=exists") != NULL));
    (void)ask("CONFIG RESETSTAT");
    ts_nap_ms(2500);
    assert_int_equal(calls_of("exists") + calls_of("lpop") + calls_of("zrange"),
                     calls_of("zrange"));
    assert_true(calls_of("zrange") <= 2); /* the renewals' look at what is due */
    push("l");
    assert_true(TS_UNTIL(WAIT, ask_int("EXISTS resque:stat:processed") == 1));
    assert_true(count_of(ask("CLIENT LIST"), "name=lade-resque") <= 5);
    assert_int_equal(end_worker(&p), 0);
}

/* Sixty-four long names do not hide what is told behind them. */
static void a_worker_of_many_queues_is_listed_whole(void **state)
{
    (void)state;
    struct cli_run r = {0};
    struct ts_proc p;
    char log[200], list[64 * 48];
    size_t at = 0;
    for (int i = 0; i < 64; i++)
        at += (size_t)snprintf(list + at, sizeof(list) - at, "%squeue-%034d", i ? "," : "", i);
    (void)snprintf(log, sizeof(log), "%s", path_in_dir("worker.log"));
    const char *argv[] = {lade_bin(), "work", "-u",     url_with(""), "-q", list,
                          "-c",       "3",    "--exec", "true",       NULL};
    assert_true(ts_proc_start(&p, argv, NULL, log));
    assert_true(TS_UNTIL(WAIT, ask_int("EXISTS resque:workers") == 1));
    RUN(&r, "worker", "ls", "-u", url_with(""), "-o", "json");
    assert_code(&r, 0);
    json_t *workers = run_json(&r);
    const json_t *w = json_array_get(workers, 0);
    assert_int_equal(json_int_at(w, "concurrency"), 3);
    assert_true(strncmp(json_text_at(w, "started_at"), "20", 2) == 0);
    json_decref(workers);
    assert_int_equal(end_worker(&p), 0);
    run_free(&r);
}

/* A server that does not tell of changes, or may not: the worker looks once a second. */
static void without_tracking_the_worker_looks_once_a_second(void **state)
{
    (void)state;
    struct ts_proc p;
    (void)ask("ACL SETUSER default -client|tracking");
    start_worker(&p, url_with(""), "1", "true", NULL);
    assert_true(TS_UNTIL(WAIT, calls_of("exists") >= 2));
    enqueue_job("Ok", "[]");
    assert_true(TS_UNTIL(WAIT, ask_int("EXISTS resque:stat:processed") == 1));
    assert_int_equal(end_worker(&p), 0);
    (void)ask("ACL SETUSER default +client|tracking");
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns_name_queues_in_the_order_of_ruby),
        cmocka_unit_test(lists_that_name_nothing_are_refused),
        cmocka_unit_test(a_new_queue_is_found_without_a_restart),
        cmocka_unit_test(many_queues_are_waited_for_without_a_poll),
        cmocka_unit_test(a_worker_of_many_queues_is_listed_whole),
        cmocka_unit_test(without_tracking_the_worker_looks_once_a_second)};
    return kit_main(argc, argv, "resque queues", tests, LB_ARRAY_LEN(tests));
}
