/*
 * numbers_test.c - C-112: a number that lade says is the number of what it did
 *
 * Each message with a number is made to happen with a known one, and compared with what the store then holds: on the store that argv
 * names. Missed times of schedules are C-059's (flow_fire_test.c), refused enqueues key_test.c's.
 */
#include "cli/cli_run.h"

#include <stdlib.h>
#include <string.h>

/* The number in front of `word` in a text, where there is one; else -1. */
static int64_t said(const char *text, const char *word)
{
    for (const char *at = text; (at = strstr(at, word)); at++) {
        const char *end = at, *from;
        while (end > text && end[-1] == ' ')
            end--;
        for (from = end; from > text && from[-1] >= '0' && from[-1] <= '9';)
            from--;
        if (from < end)
            return strtoll(from, NULL, 10);
    }
    return -1;
}

static void assert_said(const struct cli_run *r, const char *word, int64_t n)
{
    if (said(r->err, word) != n)
        fail_msg("%lld %s expected, said was: %s", (long long)n, word, r->err);
}

/* What a run said it did, and how many jobs the store then has in the state. */
static void assert_did(const struct cli_run *r, int code, const char *word, int64_t n,
                       const char *state, int64_t there)
{
    assert_code(r, code);
    assert_said(r, word, n);
    assert_int_equal(total_of(state), there);
}

/* C-112 */
static void c112_an_enqueue_counts_what_it_added_passed_over_and_found_there(void **state)
{
    (void)state;
    struct cli_run r = {0};
    static const char lines[] = "{\"kind\":\"k\",\"id\":\"a\"}\n{\"kind\":\"k\",\"id\":\"b\"}\n"
                                "{\"kind\":\"\"}\n{\"kind\":\"k\",\"id\":\"a\"}\n"
                                "{\"kind\":\"k\",\"id\":\"c\",\"in\":\"1h\"}\nno json\n";
    RUN_IN(&r, lines, sizeof(lines) - 1, "enqueue", "--ndjson", "-", "--skip-bad");
    assert_code(&r, 6);
    assert_said(&r, "added", 3);
    assert_said(&r, "duplicates", 1);
    assert_said(&r, "bad", 2);
    assert_int_equal(total_of("ready"), 2);
    assert_int_equal(total_of("scheduled"), 1);
    assert_int_equal(total_of("total_enqueued"), 3);
    run_free(&r);
}

static void add_many(int n)
{
    struct cli_run r = {0};
    char text[4096];
    size_t at = 0;
    for (int i = 0; i < n; i++)
        at +=
            (size_t)snprintf(text + at, sizeof(text) - at, "{\"kind\":\"k\",\"id\":\"j%d\"}\n", i);
    RUN_IN(&r, text, at, "enqueue", "--ndjson", "-");
    assert_code(&r, 0);
    assert_said(&r, "added", n);
    run_free(&r);
}

/* C-112 */
static void c112_acts_count_what_they_did_and_not_what_was_asked(void **state)
{
    (void)state;
    struct cli_run r = {0};
    add_many(9);
    RUN(&r, "job", "kill", "j0", "j1", "j2", "j0", "nosuch");
    assert_did(&r, 6, "killed", 3, "dead", 3);
    RUN(&r, "job", "cancel", "j0", "j3", "j4");
    assert_did(&r, 6, "cancelled", 2, "cancelled", 2);
    RUN(&r, "job", "retry", "j0", "j5");
    assert_did(&r, 6, "retried", 1, "dead", 2);
    RUN(&r, "job", "rm", "j4", "j4", "--yes");
    assert_did(&r, 6, "removed", 1, "cancelled", 1);
    RUN(&r, "job", "rm", "j5", "j6", "--yes", "--dry-run");
    assert_did(&r, 0, "would be removed", 2, "ready", 5);
    run_free(&r);
}

/* C-112 */
static void c112_bulk_verbs_count_the_jobs_they_moved(void **state)
{
    (void)state;
    struct cli_run r = {0};
    add_many(12);
    RUN(&r, "job", "kill", "j0", "j1", "j2", "j3", "j4", "j5", "j6");
    assert_code(&r, 0);
    RUN(&r, "dead", "redrive", "--dry-run");
    assert_did(&r, 0, "dead would be", 7, "dead", 7);
    RUN(&r, "dead", "redrive", "--limit", "3");
    assert_did(&r, 0, "dead", 3, "dead", 4);
    RUN(&r, "dead", "purge", "--yes");
    assert_did(&r, 0, "dead", 4, "dead", 0);
    assert_int_equal(total_of("ready"), 8);
    RUN(&r, "queue", "purge", "default", "--state", "ready", "--yes");
    assert_did(&r, 0, "jobs removed", 8, "ready", 0);
    run_free(&r);
}

/* C-112 */
static void c112_a_worker_counts_what_became_of_its_jobs(void **state)
{
    (void)state;
    struct cli_run r = {0};
    add_many(6);
    RUN(&r, "work", "--drain", "--exec", "case $LADE_JOB_ID in j[01]) exit 100;; esac", "-o",
        "json");
    assert_code(&r, 0);
    json_t *o = run_json(&r);
    assert_int_equal(json_int_at(o, "completed"), total_of("completed"));
    assert_int_equal(json_int_at(o, "dead"), total_of("dead"));
    assert_int_equal(json_int_at(o, "completed") + json_int_at(o, "dead"), 6);
    assert_int_equal(total_of("total_completed"), total_of("completed"));
    assert_int_equal(total_of("total_dead"), total_of("dead"));
    json_decref(o);
    run_free(&r);
}

/* C-112: what a reader is told that it missed are the events that are gone. */
static void c112_dropped_events_are_counted(void **state)
{
    (void)state;
    struct cli_run r = {0};
    RUN(&r, "queue", "events", "default", "on", "--cap", "1000");
    assert_code(&r, 0);
    add_many(2);
    RUN(&r, "events", "--from", "start", "-o", "ndjson");
    assert_code(&r, 0);
    json_t *first = json_loads(r.out, JSON_DISABLE_EOF_CHECK, NULL);
    assert_non_null(first);
    int64_t id = json_int_at(first, "id");
    json_decref(first);
    for (int i = 0; i < 3; i++) {
        RUN(&r, "job", "kill", "j0", "--quiet");
        RUN(&r, "job", "retry", "j0", "--quiet");
    }
    RUN(&r, "queue", "events", "default", "on", "--cap", "1");
    assert_code(&r, 0);
    RUN(&r, "job", "kill", "j1", "--quiet"); /* trims */
    char from[32];
    (void)snprintf(from, sizeof(from), "%lld", (long long)id);
    RUN(&r, "events", "-q", "default", "--from", from, "-o", "ndjson");
    assert_code(&r, 0);
    json_t *next = json_loads(r.out, JSON_DISABLE_EOF_CHECK, NULL);
    assert_non_null(next);
    int64_t dropped = json_int_at(next, "id") - id - 1;
    json_decref(next);
    if (!is_redis()) /* which keeps some more, and says nothing then */
        assert_true(dropped > 0);
    assert_said(&r, "events were dropped", dropped > 0 ? dropped : -1);
    run_free(&r);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        ON_STORE(c112_an_enqueue_counts_what_it_added_passed_over_and_found_there),
        ON_STORE(c112_acts_count_what_they_did_and_not_what_was_asked),
        ON_STORE(c112_bulk_verbs_count_the_jobs_they_moved),
        ON_STORE(c112_a_worker_counts_what_became_of_its_jobs),
        ON_STORE(c112_dropped_events_are_counted),
    };
    return run_group(argc, argv, "numbers", tests, sizeof(tests) / sizeof(tests[0]));
}
