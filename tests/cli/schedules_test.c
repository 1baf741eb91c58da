/* lade schedule, on the store that argv names: set, looked at, fired, explained */
#include "cli/cli_run.h"

#include <string.h>

#include "base/base.h"

static json_t *show(const char *id)
{
    struct cli_run r = {0};
    RUN(&r, "schedule", "show", id, "-o", "json");
    assert_code(&r, 0);
    json_t *o = run_json(&r);
    run_free(&r);
    return o;
}

static void schedule_is_set_shown_paused_run_and_removed(void **state)
{
    (void)state;
    struct cli_run r = {0};
    RUN(&r, "schedule", "set", "--id", "nightly", "--cron", "30 2 * * mon-fri", "--tz",
        "Europe/Berlin", "-q", "reports", "--kind", "report", "--payload", "p", "--overlap",
        "skip");
    assert_code(&r, 0);
    assert_string_equal(run_word(&r), "nightly");
    RUN(&r, "schedule", "set", "--id", "nightly", "--cron", "30 2 * * mon-fri", "--tz",
        "Europe/Berlin", "-q", "reports", "--kind", "report", "--payload", "p", "--overlap", "skip",
        "-o", "json");
    assert_code(&r, 0);
    assert_says(r.out, "\"unchanged\"");
    json_t *o = show("nightly");
    assert_string_equal(json_text_at(o, "state"), "active");
    assert_string_equal(json_text_at(o, "rule"), "30 2 * * mon-fri Europe/Berlin");
    assert_string_equal(json_text_at(o, "kind"), "report");
    assert_string_equal(json_text_at(o, "overlap"), "skip");
    json_decref(o);
    RUN(&r, "cron", "ls");
    assert_code(&r, 0);
    assert_says(r.out, "nightly");
    RUN(&r, "schedule", "pause", "nightly");
    assert_code(&r, 0);
    RUN(&r, "schedule", "pause", "nightly");
    assert_code(&r, 4);
    RUN(&r, "schedule", "run", "nightly");
    assert_code(&r, 0);
    assert_string_equal(state_of(run_word(&r)), "ready");
    RUN(&r, "schedule", "explain", "nightly");
    assert_code(&r, 0);
    assert_says(r.out, "by hand");
    assert_says(r.err, "paused");
    RUN(&r, "schedule", "explain", "nightly", "-o", "json");
    assert_code(&r, 0);
    json_t *told = run_json(&r);
    assert_says(json_text_at(told, "verdict"), "paused: fires when it is resumed");
    assert_string_equal(json_text_at(told, "state"), "paused");
    assert_int_equal(json_array_size(json_object_get(told, "history")), 1);
    assert_says(json_text_at(json_array_get(json_object_get(told, "history"), 0), "why"),
                "lade schedule run");
    json_decref(told);
    RUN(&r, "schedule", "resume", "nightly");
    assert_code(&r, 0);
    RUN(&r, "schedule", "rm", "nightly", "--yes");
    assert_code(&r, 0);
    RUN(&r, "schedule", "show", "nightly");
    assert_code(&r, 3);
    run_free(&r);
}

/* chasqui 59 */
static void an_interval_of_0_is_refused(void **state)
{
    (void)state;

    static const char *const every[] = {"0", "0s", "-5s", "500ms", "soon"};

    struct cli_run r = {0};
    for (size_t i = 0; i < LB_ARRAY_LEN(every); i++) {
        RUN(&r, "schedule", "set", "--id", "never", "--kind", "k", "--every", every[i]);
        assert_code(&r, 2);
        assert_says(r.err, "every");
    }
    RUN(&r, "schedule", "show", "never");
    assert_code(&r, 3);
    run_free(&r);
}

static int64_t completed_in(const char *namespace_)
{
    struct cli_run r = {0};
    RUN(&r, "stats", "-n", namespace_, "-o", "json");
    assert_code(&r, 0);
    json_t *stats = run_json(&r);
    int64_t n = json_int_at(json_object_get(stats, "total"), "total_completed");
    json_decref(stats);
    run_free(&r);
    return n;
}

/* chronos 69: the same id in two namespaces is two schedules, each with a leader, due times and jobs of its own. SQLite has no namespaces. */
static void schedules_of_two_namespaces_are_apart(void **state)
{
    (void)state;
    if (!is_redis())
        return;
    struct cli_run r = {0};
    struct ts_proc p = {0};
    RUN(&r, "schedule", "set", "--id", "tick", "--every", "1s", "--limit", "1", "--kind", "tick",
        "-n", "other");
    assert_code(&r, 0);
    RUN(&r, "schedule", "show", "tick");
    assert_code(&r, 3);
    RUN(&r, "schedule", "set", "--id", "tick", "--every", "1h", "--kind", "tick");
    assert_code(&r, 0);
    START(&p, "work", "-n", "other", "--kind", "tick", "--exec", "true", "--quiet");
    assert_true(TS_UNTIL(CLI_RUN_DEADLINE, completed_in("other") == 1));
    assert_int_equal(end_lade(&p), 0);
    json_t *o = show("tick");
    assert_int_equal(json_int_at(o, "fired"), 0);
    assert_string_equal(json_text_at(o, "state"), "active");
    json_decref(o);
    assert_int_equal(total_of("total_completed"), 0);
    /* and now this one's leader, while that of the other leads still */
    struct ts_proc q = {0};
    START(&p, "work", "-n", "other", "--kind", "tick", "--exec", "true", "--quiet");
    RUN(&r, "schedule", "set", "--id", "tick", "--every", "1s", "--limit", "1", "--kind", "tick");
    assert_code(&r, 0);
    START(&q, "work", "--kind", "tick", "--exec", "true", "--quiet");
    assert_true(TS_UNTIL(CLI_RUN_DEADLINE, total_of("total_completed") == 1));
    assert_int_equal(completed_in("other"), 1);
    assert_int_equal(end_lade(&q), 0);
    assert_int_equal(end_lade(&p), 0);
    run_free(&r);
}

static void what_a_schedule_puts_is_shown_as_text(void **state)
{
    (void)state;
    struct cli_run r = {0};
    RUN(&r, "schedule", "set", "s", "--every", "1h", "--kind", "k", "--payload", "a\x1b[31mb\n",
        "--unique", "\xff\xfe", "--header", "h=\x1b[1m");
    assert_code(&r, 0);
    RUN(&r, "schedule", "show", "s");
    assert_code(&r, 0);
    assert_says(r.out, "payload        a\\x1b[31mb\\n\n");
    assert_says(r.out, "unique_key     (2 bytes, binary)\n");
    assert_says(r.out, "header         h=\\x1b[1m\n");
    run_free(&r);
}

static void bad_rules_are_refused_with_what_to_do(void **state)
{
    (void)state;
    struct cli_run r = {0};
    RUN(&r, "schedule", "set", "--kind", "k", "--cron", "* * * * *", "--tz", "Europe/Berlln");
    assert_code(&r, 2);
    assert_says(r.err, "did you mean Europe/Berlin?");
    RUN(&r, "schedule", "set", "--kind", "k", "--cron", "0 0 30 2 *");
    assert_code(&r, 2);
    RUN(&r, "schedule", "set", "--kind", "k");
    assert_code(&r, 2);
    RUN(&r, "schedule", "set", "--kind", "k", "--every", "500ms");
    assert_code(&r, 2);
    RUN(&r, "schedule", "set", "--kind", "k", "--every", "5s", "--limit", "-1");
    assert_code(&r, 2);
    assert_says(r.err, "limit");
    RUN(&r, "schedule", "set", "--kind", "k", "--every", "5s", "--overlap", "maybe");
    assert_code(&r, 2);
    assert_says(r.err, "allow, skip or queue-one");
    RUN(&r, "schedule", "set", "--kind", "k", "--every", "5s", "--gap", "skip");
    assert_code(&r, 2);
    assert_says(r.err, "gap is for cron");
    RUN(&r, "schedule", "set", "--kind", "k", "--every", "5s", "--unique", "");
    assert_code(&r, 2);
    assert_says(r.err, "--unique: empty");
    RUN(&r, "schedule", "set", "--kind", "k", "--every", "5s", "--unique-ttl", "1h");
    assert_code(&r, 2);
    assert_says(r.err, "--unique: missing");
    run_free(&r);
}

static void set_takes_its_id_as_an_argument_too(void **state)
{
    (void)state;
    struct cli_run r = {0};
    RUN(&r, "schedule", "set", "hourly", "--every", "1h", "--kind", "k");
    assert_code(&r, 0);
    assert_string_equal(run_word(&r), "hourly");
    RUN(&r, "schedule", "set", "--id", "hourly", "--every", "1h", "--kind", "k");
    assert_code(&r, 0);
    assert_says(r.err, "unchanged");
    RUN(&r, "schedule", "set", "hourly", "--id", "daily", "--every", "1h", "--kind", "k");
    assert_code(&r, 2);
    assert_says(r.err, "--id");
    RUN(&r, "schedule", "set", "hourly", "--file", "-");
    assert_code(&r, 2);
    RUN(&r, "schedule", "set", "a b", "--every", "1h", "--kind", "k");
    assert_code(&r, 2);
    run_free(&r);
}

static void show_as_tsv_is_a_line_of_names_and_one_of_values(void **state)
{
    (void)state;
    struct cli_run r = {0};
    RUN(&r, "schedule", "set", "tsv", "--every", "1h", "--kind", "k", "--header", "a=b");
    assert_code(&r, 0);
    RUN(&r, "schedule", "show", "tsv", "-o", "tsv");
    assert_code(&r, 0);
    assert_says(r.out, "id\tstate\t");
    assert_says(r.out, "\ntsv\tactive\t");
    run_free(&r);
}

/* Several answers are one JSON text, an array, and one TSV under one line of names. */
static void answers_of_several_schedules_are_one_text(void **state)
{
    (void)state;
    static const char lines[] = "{\"id\":\"m1\",\"every\":\"1h\",\"kind\":\"k\"}\n"
                                "{\"id\":\"m2\",\"every\":\"1h\",\"kind\":\"k\"}\n";

    struct cli_run r = {0};
    RUN_IN(&r, lines, sizeof(lines) - 1, "schedule", "set", "--file", "-", "-o", "json");
    assert_code(&r, 0);
    json_t *o = run_json(&r);
    assert_int_equal(json_array_size(o), 2);
    assert_string_equal(json_text_at(json_array_get(o, 1), "change"), "created");
    json_decref(o);
    RUN(&r, "schedule", "pause", "m1", "none", "m2", "-o", "json");
    assert_code(&r, 6);
    o = run_json(&r);
    assert_int_equal(json_array_size(o), 3);
    assert_string_equal(json_text_at(json_array_get(o, 1), "result"), "not_found");
    json_decref(o);
    RUN(&r, "schedule", "resume", "m1", "m2", "-o", "tsv");
    assert_code(&r, 0);
    assert_string_equal(r.out, "id\tverb\tresult\tdry_run\n"
                               "m1\tresume\tdone\tno\n"
                               "m2\tresume\tdone\tno\n");
    RUN(&r, "schedule", "run", "m1", "-o", "json");
    assert_code(&r, 0);
    o = run_json(&r);
    assert_string_equal(json_text_at(o, "verb"), "run");
    json_decref(o);
    run_free(&r);
}

/* C-058: one bad line in a file of ten stops none of the others. */
static void c058_a_bad_line_of_a_file_stops_no_other(void **state)
{
    (void)state;
    struct cli_run r = {0};
    char text[2048] = "";
    for (int i = 0; i < 10; i++) {
        size_t at = strlen(text);
        (void)snprintf(text + at, sizeof(text) - at,
                       "{\"id\":\"f%d\",\"cron\":\"%s\",\"kind\":\"k\",\"missed\":\"all:5\"}\n", i,
                       i == 5 ? "61 * * * *" : "*/5 * * * *");
    }
    RUN_IN(&r, text, strlen(text), "schedule", "set", "--file", "-");
    assert_code(&r, 6);
    assert_says(r.err, "line 6");
    assert_says(r.err, "minute");
    json_t *o = show("f9");
    assert_int_equal(json_int_at(o, "missed_max"), 5);
    json_decref(o);
    RUN(&r, "schedule", "show", "f5");
    assert_code(&r, 3);
    run_free(&r);
}

static void preview_needs_no_store_and_notes_changes_of_the_clock(void **state)
{
    (void)state;
    struct cli_run r = {0};
    RUN(&r, "schedule", "preview", "--cron", "30 2 * * *", "--tz", "Europe/Berlin", "--from",
        "2027-03-27T00:00:00Z", "-N", "3");
    assert_code(&r, 0);
    assert_says(r.out, "2027-03-28T01:00:00.000Z");
    assert_says(r.out, "shifted");
    run_free(&r);
}

/* chasqui 48: a worker fires, and one that was told not to does not. */
static void worker_fires_unless_told_not_to(void **state)
{
    (void)state;
    struct cli_run r = {0};
    RUN(&r, "schedule", "set", "--id", "tick", "--every", "1s", "--limit", "2", "--kind", "tick");
    assert_code(&r, 0);
    RUN(&r, "work", "--kind", "tick", "--exec", "true", "--drain", "--no-scheduler");
    json_t *o = show("tick");
    assert_int_equal(json_int_at(o, "fired"), 0);
    assert_true(json_is_null(json_object_get(o, "seen_at")));
    json_decref(o);
    run_free(&r);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        ON_STORE(schedule_is_set_shown_paused_run_and_removed),
        ON_STORE(an_interval_of_0_is_refused),
        ON_STORE(schedules_of_two_namespaces_are_apart),
        ON_STORE(what_a_schedule_puts_is_shown_as_text),
        ON_STORE(bad_rules_are_refused_with_what_to_do),
        ON_STORE(set_takes_its_id_as_an_argument_too),
        ON_STORE(show_as_tsv_is_a_line_of_names_and_one_of_values),
        ON_STORE(answers_of_several_schedules_are_one_text),
        ON_STORE(c058_a_bad_line_of_a_file_stops_no_other),
        ON_STORE(preview_needs_no_store_and_notes_changes_of_the_clock),
        ON_STORE(worker_fires_unless_told_not_to),
    };
    return run_group(argc, argv, "schedule", tests, LB_ARRAY_LEN(tests));
}
