/* lade worker show, quiet, resume, stop, stacks, on the store that argv names: real workers, told from another process */
#include "cli/cli_run.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

static void start_worker(struct ts_proc *p, const char *name, const char *queue)
{
    START(p, "work", "--name", name, "-q", queue, "--lease", "1s", "-c", "2", "--exec",
          "echo in; while [ ! -e \"$GATE\" ]; do sleep 0.05; done");
}

/* "running" and so on; "gone". */
static const char *worker_state(const char *name)
{
    static char state[32];
    struct cli_run r = {0};
    RUN(&r, "worker", "show", name, "-o", "json");
    (void)snprintf(state, sizeof(state), "gone");
    if (r.code == 0) {
        json_t *o = run_json(&r);
        (void)snprintf(state, sizeof(state), "%s", json_text_at(o, "state"));
        json_decref(o);
    }
    run_free(&r);
    return state;
}

static bool is_state(const char *name, const char *state)
{
    return strcmp(worker_state(name), state) == 0;
}

static void set_gate(void)
{
    assert_int_equal(setenv("GATE", file_path("gate"), 1), 0);
    (void)unlink(file_path("gate"));
}

static void assert_ended(struct ts_proc *p)
{
    assert_true(ts_proc_wait(p, SECONDS(60)));
    assert_int_equal(ts_proc_code(p), 0);
}

static void a_quiet_worker_takes_nothing_until_it_is_resumed(void **state)
{
    (void)state;
    struct ts_proc p;
    struct cli_run r = {0};
    set_gate();
    write_file("gate", "", 0);
    start_worker(&p, "one", "mail");
    assert_true(TS_UNTIL(SECONDS(60), is_state("one", "running")));
    CODE(0, "worker", "quiet", "one", "--wait", "60s");
    assert_string_equal(worker_state("one"), "quiet");
    CODE(0, "enqueue", "-k", "k", "-q", "mail", "--id", "a");
    /* It renews, so it lives, and asks again: two renewals with nothing taken. */
    for (int i = 0; i < 2; i++) {
        CODE(0, "worker", "stacks", "one", "--timeout", "60s");
        assert_string_equal(state_of("a"), "ready");
    }
    RUN(&r, "worker", "resume", "one", "--wait", "60s");
    assert_code(&r, 0);
    assert_says(r.err, "one: has obeyed");
    assert_true(TS_UNTIL(SECONDS(60), strcmp(state_of("a"), "completed") == 0));
    assert_int_equal(end_lade(&p), 0);
    assert_says(log_text(), "told to take no more work");
    CODE(3, "worker", "quiet", "one");
    run_free(&r);
}

static void a_worker_that_is_told_to_stop_finishes_what_it_runs_and_ends(void **state)
{
    (void)state;
    struct ts_proc p;
    struct cli_run r = {0};
    set_gate();
    start_worker(&p, "one", "mail");
    CODE(0, "enqueue", "-k", "k", "-q", "mail", "--id", "a");
    assert_true(TS_UNTIL(SECONDS(60), strcmp(state_of("a"), "active") == 0));
    RUN(&r, "worker", "stop", "one");
    assert_code(&r, 0);
    assert_says(r.err, "one: told: stop; it reads this within ");
    assert_true(TS_UNTIL(SECONDS(60), is_state("one", "stopping")));
    CODE(0, "enqueue", "-k", "k", "-q", "mail", "--id", "b");
    RUN(&r, "worker", "resume", "one");
    assert_code(&r, 4);
    assert_says(r.err, "one: is told to stop already");
    RUN(&r, "worker", "stop", "one", "--wait", "1ms");
    assert_code(&r, 4);
    assert_says(r.err, "has not obeyed yet");
    write_file("gate", "", 0);
    RUN(&r, "worker", "stop", "one", "--wait", "60s");
    if (r.code != 3) /* it may be gone before it is asked */
        assert_code(&r, 0);
    assert_true(TS_UNTIL(SECONDS(60), is_state("one", "gone")));
    assert_ended(&p);
    assert_string_equal(state_of("a"), "completed");
    assert_string_equal(state_of("b"), "ready");
    run_free(&r);
}

static void show_tells_where_a_worker_runs_and_what_since_when(void **state)
{
    (void)state;
    struct ts_proc p;
    struct cli_run r = {0};
    set_gate();
    start_worker(&p, "one", "mail,post");
    CODE(0, "enqueue", "-k", "kind1", "-q", "mail", "--id", "a");
    assert_true(TS_UNTIL(SECONDS(60), strcmp(state_of("a"), "active") == 0));
    RUN(&r, "worker", "show", "one", "-o", "json");
    assert_code(&r, 0);
    json_t *o = run_json(&r);
    assert_int_equal(json_int_at(o, "pid"), p.pid);
    assert_true(strlen(json_text_at(o, "host")) > 0);
    assert_string_equal(json_text_at(o, "version"), lade_version());
    assert_string_equal(json_text_at(o, "queues"), "mail,post");
    assert_int_equal(json_int_at(o, "concurrency"), 2);
    assert_true(json_is_null(json_object_get(o, "order")));
    const json_t *job = json_array_get(json_object_get(o, "jobs"), 0);
    assert_string_equal(json_text_at(job, "id"), "a");
    assert_string_equal(json_text_at(job, "kind"), "kind1");
    assert_true(strlen(json_text_at(job, "taken_at")) > 0);
    char *id = strdup(json_text_at(o, "id")), *started = strdup(json_text_at(o, "started_at"));
    json_decref(o);
    /* When it started stays, however often it has renewed. */
    CODE(0, "worker", "stacks", id, "--timeout", "60s");
    CODE(0, "worker", "stacks", id, "--timeout", "60s");
    RUN(&r, "worker", "show", id, "-o", "json");
    o = run_json(&r);
    assert_string_equal(json_text_at(o, "started_at"), started);
    json_decref(o);
    RUN(&r, "worker", "show", "one");
    assert_says(r.out, "state       running\n");
    assert_says(r.out, "JOB");
    RUN(&r, "worker", "show", "one", "-o", "tsv");
    assert_code(&r, 0);
    assert_says(r.out, "name\tid\tstate\t");
    CODE(3, "worker", "show", "nobody");
    CODE(2, "worker", "show");
    write_file("gate", "", 0);
    assert_int_equal(end_lade(&p), 0);
    free(id);
    free(started);
    run_free(&r);
}

static void stacks_name_each_job_and_come_by_ttin_too(void **state)
{
    (void)state;
    struct ts_proc p;
    struct cli_run r = {0};
    set_gate();
    start_worker(&p, "one", "mail");
    CODE(0, "enqueue", "-k", "kind1", "-q", "mail", "--id", "job-a");
    assert_true(TS_UNTIL(SECONDS(60), strcmp(state_of("job-a"), "active") == 0));
    RUN(&r, "worker", "stacks", "one", "--timeout", "60s");
    assert_code(&r, 0);
    assert_says(r.out, "worker one (running), process ");
    assert_says(r.out, "job job-a of mail: kind1, attempt 1, for ");
    RUN(&r, "worker", "stacks", "one", "-o", "json", "--timeout", "60s");
    assert_code(&r, 0);
    json_t *o = run_json(&r);
    assert_says(json_text_at(o, "stacks"), "job job-a of mail");
    json_decref(o);
    RUN(&r, "worker", "stacks", "one", "--timeout", "1ms");
    assert_true(r.code == 4 || r.code == 0);
    assert_int_equal(kill(p.pid, SIGTTIN), 0);
    assert_true(TS_UNTIL(SECONDS(60), strstr(log_text(), "lade: job job-a of mail: kind1")));
    write_file("gate", "", 0);
    assert_int_equal(end_lade(&p), 0);
    CODE(3, "worker", "stacks", "one");
    run_free(&r);
}

static void orders_go_to_those_that_are_named_or_serve_a_queue_or_to_all(void **state)
{
    (void)state;
    struct ts_proc a, b, c;
    struct cli_run r = {0};
    set_gate();
    write_file("gate", "", 0);
    start_worker(&a, "one", "mail,post");
    start_worker(&b, "two", "post");
    start_worker(&c, "two", "other");
    assert_true(TS_UNTIL(SECONDS(60), is_state("one", "running")));
    CODE(0, "enqueue", "-k", "k", "-q", "other");
    RUN(&r, "worker", "ls", "-o", "json");
    assert_true(TS_UNTIL(SECONDS(60), (RUN(&r, "worker", "ls", "-o", "json"),
                                       strstr(r.out, "other") && strstr(r.out, "\"post\""))));
    RUN(&r, "worker", "quiet", "two");
    assert_code(&r, 2);
    assert_says(r.err, "two: several workers have this name");
    CODE(2, "worker", "quiet");
    CODE(2, "worker", "quiet", "one", "--all");
    CODE(2, "worker", "quiet", "one", "-q", "post");
    CODE(3, "worker", "quiet", "-q", "nowhere");
    CODE(6, "worker", "quiet", "one", "nobody");
    RUN(&r, "worker", "quiet", "-q", "post", "-o", "json", "--wait", "60s");
    assert_code(&r, 0);
    json_t *o = run_json(&r);
    assert_int_equal(json_array_size(o), 2);
    assert_string_equal(json_text_at(json_array_get(o, 1), "result"), "done");
    json_decref(o);
    RUN(&r, "worker", "stop", "--all", "--dry-run", "--yes", "-o", "tsv");
    assert_code(&r, 0);
    RUN(&r, "worker", "stop", "--all");
    assert_code(&r, 2);
    assert_says(r.err, "not without --yes");
    assert_string_equal(worker_state("one"), "quiet");
    CODE(0, "worker", "stop", "--all", "--yes", "--wait", "60s");
    assert_ended(&a);
    assert_ended(&b);
    assert_ended(&c);
    RUN(&r, "worker", "stop", "--all", "--yes");
    assert_code(&r, 3);
    assert_says(r.err, "no worker is live");
    run_free(&r);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        ON_STORE(a_quiet_worker_takes_nothing_until_it_is_resumed),
        ON_STORE(a_worker_that_is_told_to_stop_finishes_what_it_runs_and_ends),
        ON_STORE(show_tells_where_a_worker_runs_and_what_since_when),
        ON_STORE(stacks_name_each_job_and_come_by_ttin_too),
        ON_STORE(orders_go_to_those_that_are_named_or_serve_a_queue_or_to_all),
    };
    return run_group(argc, argv, "control", tests, LB_ARRAY_LEN(tests));
}
