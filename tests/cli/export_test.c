/* lade export and lade import: from the store that argv names into a file of its own, and back */
#include "cli/cli_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

static void run(int code, const char *const *args)
{
    struct cli_run r = {0};
    run_args(&r, NULL, args);
    assert_code(&r, code);
    run_free(&r);
}

#define CODE(code, ...) run((code), (const char *const[]){__VA_ARGS__, NULL})

static char other[600];

/* The URL of another store. */
static const char *elsewhere(void)
{
    (void)snprintf(other, sizeof(other), "sqlite:%s", file_path("other.db"));
    return other;
}

/* The members of the job there that an import brings over; the caller's. */
static json_t *job_at(const char *url, const char *id)
{
    static const char *const left[] = {"enqueued_at", "age_ms",   "due_in_ms", "attempts",
                                       "tries",       "crashes",  "history",   "effects",
                                       "progress",    "log_lines"};

    struct cli_run r = {0};
    RUN(&r, "job", "show", id, "-o", "json", "-u", url);
    assert_code(&r, 0);
    json_t *o = run_json(&r);
    for (size_t i = 0; i < LB_ARRAY_LEN(left); i++)
        (void)json_object_del(o, left[i]);
    run_free(&r);
    return o;
}

static void add_all(void)
{
    static const char binary[] = "\0\xff\x80 bytes";
    struct cli_run r = {0};
    CODE(0, "enqueue", "-k", "plain", "-q", "mail", "--id", "a", "-p", "t\xc3\xa4xt\n");
    CODE(0, "enqueue", "-k", "full", "-q", "mail", "--id", "b", "-p", "x", "--in", "1h",
         "--priority", "3", "--max-attempts", "7", "--timeout", "90s", "--backoff", "fixed:5s",
         "--header", "h=v", "--key", "acme", "--content-type", "text/x", "--discard-dead",
         "--result-ttl", "1h");
    CODE(0, "enqueue", "-k", "once", "-q", "post", "--id", "c", "--unique-key", "u1",
         "--unique-until", "start");
    RUN_IN(&r, binary, sizeof(binary) - 1, "enqueue", "-k", "bin", "-q", "post", "--id", "d", "-p",
           "@-");
    assert_code(&r, 0);
    CODE(0, "enqueue", "-k", "k", "-q", "post", "--id", "e");
    CODE(0, "job", "kill", "e");
    run_free(&r);
}

static void jobs_that_wait_go_over_with_all_they_were_enqueued_with(void **state)
{
    (void)state;

    static const char *const ids[] = {"a", "b", "c", "d"};

    struct cli_run r = {0}, out = {0};
    const char *here = getenv("LADE_URL");
    add_all();
    RUN(&out, "export");
    assert_code(&out, 0);
    assert_says(out.err, "4 exported, 0 left out");
    RUN_IN(&r, out.out, out.n_out, "import", "-u", elsewhere(), "-o", "json");
    assert_code(&r, 0);
    json_t *o = run_json(&r);
    assert_int_equal(json_int_at(o, "added"), 4);
    json_decref(o);
    for (size_t i = 0; i < LB_ARRAY_LEN(ids); i++) {
        json_t *from = job_at(here, ids[i]), *to = job_at(elsewhere(), ids[i]);
        if (!json_equal(from, to))
            fail_msg("%s differs: %s\n%s", ids[i], json_dumps(from, JSON_INDENT(1)),
                     json_dumps(to, JSON_INDENT(1)));
        json_decref(from);
        json_decref(to);
    }
    /* The key is held there too. */
    CODE(4, "enqueue", "-k", "once", "-q", "post", "--unique-key", "u1", "-u", elsewhere());
    /* And what came over comes back the same. */
    struct cli_run again = {0};
    RUN(&again, "export", "-u", elsewhere());
    assert_string_equal(again.out, out.out);
    run_free(&again);
    run_free(&out);
    run_free(&r);
}

static void an_import_that_was_broken_off_is_done_again(void **state)
{
    (void)state;
    struct cli_run r = {0}, out = {0};
    add_all();
    RUN(&out, "export");
    size_t first = (size_t)(strchr(out.out, '\n') - out.out) + 1;
    RUN_IN(&r, out.out, first, "import", "-u", elsewhere());
    assert_code(&r, 0);
    RUN_IN(&r, out.out, out.n_out, "import", "-u", elsewhere(), "--dry-run");
    assert_code(&r, 0);
    write_file("jobs.ndjson", out.out, out.n_out);
    char path[512];
    (void)snprintf(path, sizeof(path), "%s", file_path("jobs.ndjson"));
    for (int i = 0; i < 2; i++) {
        RUN(&r, "import", path, "-u", elsewhere());
        assert_code(&r, 0);
        assert_says(r.err, i ? "0 added, 4 duplicates" : "3 added, 1 duplicates");
    }
    run_free(&out);
    run_free(&r);
}

static void what_a_line_cannot_carry_is_told_and_left_out(void **state)
{
    (void)state;
    static const char flow[] = "{\"id\":\"f\",\"chain\":[{\"kind\":\"a\",\"queue\":\"mail\"}]}";
    struct cli_run r = {0};
    RUN_IN(&r, flow, sizeof(flow) - 1, "flow", "run", "-");
    assert_code(&r, 0);
    CODE(0, "enqueue", "-k", "k", "-q", "mail", "--header", "h=\xff");
    CODE(0, "enqueue", "-k", "k", "-q", "mail", "--id", "fine");
    RUN(&r, "export", "-q", "mail");
    assert_code(&r, 6);
    assert_says(r.err, "f~0 of mail: left out: it is a step of a workflow");
    assert_says(r.err, "a header is no UTF-8");
    assert_says(r.err, "1 exported, 2 left out");
    assert_says(r.out, "{\"id\":\"fine\",");
    CODE(3, "export", "-q", "nowhere");
    CODE(2, "export", "--state", "active");
    CODE(2, "export", "--state", "nonsense");
    RUN_IN(&r, "{\"kind\":\"k\"}\nnot json\n", 22, "import", "-u", elsewhere());
    assert_code(&r, 2);
    assert_says(r.err, "line 2: ");
    RUN_IN(&r, "{\"kind\":\"k\"}\nnot json\n", 22, "import", "--skip-bad", "-u", elsewhere());
    assert_code(&r, 6);
    run_free(&r);
}

static void the_dead_are_exported_when_asked_for_and_run_again(void **state)
{
    (void)state;
    struct cli_run r = {0}, out = {0};
    add_all();
    RUN(&out, "export", "--state", "dead");
    assert_code(&out, 0);
    RUN_IN(&r, out.out, out.n_out, "import", "-u", elsewhere());
    assert_code(&r, 0);
    json_t *o = job_at(elsewhere(), "e");
    assert_string_equal(json_text_at(o, "state"), "ready");
    json_decref(o);
    run_free(&out);
    run_free(&r);
}

/* Both of a throttle wait under one key, which one of them can hold: the other is no job that is there already. */
static void a_job_whose_unique_key_another_holds_is_told(void **state)
{
    (void)state;
    struct cli_run r = {0}, out = {0};
    CODE(0, "enqueue", "-k", "k", "-q", "mail", "--id", "first", "--unique", "u", "--throttle",
         "1h", "--trailing");
    CODE(0, "enqueue", "-k", "k", "-q", "mail", "--id", "last", "--unique", "u", "--throttle", "1h",
         "--trailing");
    RUN(&out, "export");
    assert_says(out.err, "2 exported, 0 left out");
    for (int i = 0; i < 2; i++) {
        RUN_IN(&r, out.out, out.n_out, "import", "-u", elsewhere());
        assert_code(&r, 6);
        assert_says(r.err, "stdin: line 2: first: not added: job last holds its unique key");
        assert_says(r.err, i ? "0 added, 2 duplicates" : "1 added, 1 duplicates");
    }
    /* One by one, behind a line that is refused, too. */
    char lines[4096];
    int n = snprintf(lines, sizeof(lines), "{\"kind\":\"k\",\"queue\":\"no name\"}\n%s", out.out);
    RUN_IN(&r, lines, (size_t)n, "import", "--skip-bad", "-u", elsewhere());
    assert_code(&r, 6);
    assert_says(r.err, "line 3: first: not added: ");
    run_free(&out);
    run_free(&r);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        ON_STORE(jobs_that_wait_go_over_with_all_they_were_enqueued_with),
        ON_STORE(an_import_that_was_broken_off_is_done_again),
        ON_STORE(what_a_line_cannot_carry_is_told_and_left_out),
        ON_STORE(the_dead_are_exported_when_asked_for_and_run_again),
        ON_STORE(a_job_whose_unique_key_another_holds_is_told),
    };
    return run_group(argc, argv, "export", tests, LB_ARRAY_LEN(tests));
}
