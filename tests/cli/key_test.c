/* lade key and lade queue limit, on the store that argv names */
#include "cli/cli_run.h"

#include <string.h>

#include "base/base.h"

static void add(const char *key, const char *payload)
{
    struct cli_run r = {0};
    RUN(&r, "enqueue", "-k", "wc", "-q", "mail", "--key", key, "-p", payload);
    assert_code(&r, 0);
    run_free(&r);
}

static void limits_are_set_shown_and_obeyed(void **state)
{
    (void)state;
    struct cli_run r = {0};
    add("acme", "one");
    add("acme", "two");
    add("bolt", "three");
    RUN(&r, "queue", "limit", "mail", "--concurrency", "20", "--rate", "100/1s",
        "--key-concurrency", "2", "-o", "json");
    assert_code(&r, 0);
    json_t *o = run_json(&r);
    assert_int_equal(json_integer_value(json_object_get(o, "concurrency")), 20);
    assert_int_equal(json_integer_value(json_object_get(o, "rate_count")), 100);
    assert_int_equal(json_integer_value(json_object_get(o, "rate_burst")), 100);
    assert_int_equal(json_integer_value(json_object_get(o, "key_concurrency")), 2);
    assert_true(json_is_null(json_object_get(o, "key_rate_count")));
    assert_true(json_is_null(json_object_get(o, "key_rate_period_ms")));
    json_decref(o);
    run_free(&r);

    RUN(&r, "key", "limit", "mail", "acme", "--weight", "3", "--rate", "none", "-o", "json");
    assert_code(&r, 0);
    o = run_json(&r);
    assert_int_equal(json_int_at(o, "weight"), 3);
    assert_null(json_object_get(o, "rate"));
    assert_true(json_is_null(json_object_get(o, "rate_count")));
    assert_true(json_is_null(json_object_get(o, "own_rate_count")));
    assert_true(json_is_true(json_object_get(o, "own_rate_lifted")));
    json_decref(o);
    RUN(&r, "key", "limit", "mail", "acme", "--weight", "default", "--rate", "5/1s", "-o", "json");
    assert_code(&r, 0);
    o = run_json(&r);
    assert_int_equal(json_int_at(o, "weight"), 1);
    assert_int_equal(json_int_at(o, "rate_count"), 5);
    assert_int_equal(json_int_at(o, "rate_period_ms"), 1000);
    assert_true(json_is_null(json_object_get(o, "own_weight")));
    json_decref(o);
    RUN(&r, "key", "limit", "mail", "acme", "--weight", "3", "--order", "fifo", "--rate",
        "default");
    assert_code(&r, 0);
    run_free(&r);
    RUN(&r, "key", "pause", "mail", "bolt");
    assert_code(&r, 0);
    run_free(&r);
    RUN(&r, "key", "show", "mail", "bolt", "-o", "json");
    assert_code(&r, 0);
    o = run_json(&r);
    assert_string_equal(json_text_at(o, "because"), "paused");
    assert_int_equal(json_integer_value(json_object_get(o, "held")), 1);
    json_decref(o);
    run_free(&r);
    RUN(&r, "key", "ls", "mail");
    assert_code(&r, 0);
    assert_says(r.out, "acme");
    assert_says(r.out, "fifo");
    assert_says(r.out, "paused");
    run_free(&r);
    RUN(&r, "key", "resume", "mail", "bolt");
    assert_code(&r, 0);
    run_free(&r);
    RUN(&r, "work", "--queue", "mail", "--kind", "wc", "--drain", "--exec", "cat");
    assert_code(&r, 0);
    run_free(&r);
    RUN(&r, "key", "show", "mail", "bolt");
    assert_code(&r, 3);
    assert_says(r.err, "nothing is known of this key");
    run_free(&r);
}

/* beyond N7 */
static void a_queue_at_its_bound_refuses_with_exit_4_and_says_how_many(void **state)
{
    (void)state;
    struct cli_run r = {0};
    char text[16384];
    size_t n = 0;
    RUN(&r, "queue", "limit", "mail", "--max-jobs", "1001", "--on-full", "reject", "-o", "json");
    assert_code(&r, 0);
    json_t *o = run_json(&r);
    assert_int_equal(json_integer_value(json_object_get(o, "max_jobs")), 1001);
    assert_string_equal(json_text_at(o, "on_full"), "reject");
    json_decref(o);
    run_free(&r);
    for (int i = 0; i < 1500; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "line %d\n", i);
    RUN_IN(&r, text, n, "enqueue", "-k", "wc", "-q", "mail", "--lines", "-", "-o", "json");
    assert_code(&r, 4);
    assert_says(r.err, "lines 1001 to 1500 refused: queue 'mail' is full: at most 1001 jobs");
    assert_says(r.err, "1000 added, 0 duplicates, 0 bad, 500 refused");
    o = run_json(&r);
    assert_int_equal(json_integer_value(json_object_get(o, "added")), 1000);
    assert_int_equal(json_integer_value(json_object_get(o, "refused")), 500);
    json_decref(o);
    run_free(&r);
    add("acme", "one");
    RUN(&r, "enqueue", "-k", "wc", "-q", "mail", "-p", "two");
    assert_code(&r, 4);
    assert_says(r.err, "queue limit mail --max-jobs");
    assert_int_equal(r.n_out, 0);
    run_free(&r);
    RUN(&r, "queue", "show", "mail", "-o", "json");
    assert_code(&r, 0);
    o = run_json(&r);
    assert_int_equal(json_integer_value(json_object_get(o, "ready")), 1001);
    assert_int_equal(json_integer_value(json_object_get(o, "max_jobs")), 1001);
    json_decref(o);
    run_free(&r);
    RUN(&r, "queue", "limit", "mail", "--max-jobs", "none", "-o", "json");
    assert_code(&r, 0);
    o = run_json(&r);
    assert_true(json_is_null(json_object_get(o, "max_jobs")));
    assert_true(json_is_null(json_object_get(o, "on_full")));
    json_decref(o);
    run_free(&r);
    add("acme", "two");
}

/* beyond N7, chasqui 11 */
static void bytes_that_wait_are_bounded_and_shown(void **state)
{
    (void)state;
    struct cli_run r = {0};
    RUN(&r, "queue", "limit", "mail", "--max-bytes", "64KiB", "-o",
        "json"); /* makes what is not there */
    assert_code(&r, 0);
    json_t *o = run_json(&r);
    assert_int_equal(json_integer_value(json_object_get(o, "max_bytes")), 65536);
    assert_int_equal(json_integer_value(json_object_get(o, "bytes")), 0);
    assert_true(json_is_null(json_object_get(o, "max_jobs")));
    assert_string_equal(json_text_at(o, "on_full"), "reject");
    json_decref(o);
    run_free(&r);
    char text[40000];
    memset(text, 'x', sizeof(text));
    RUN_IN(&r, text, sizeof(text), "enqueue", "-k", "wc", "-q", "mail", "--payload", "@-");
    assert_code(&r, 0);
    run_free(&r);
    RUN_IN(&r, text, sizeof(text), "enqueue", "-k", "wc", "-q", "mail", "--payload", "@-");
    assert_code(&r, 4);
    assert_says(r.err, "at most 65536 bytes may wait there (max_bytes) and 1 more of 400");
    assert_says(r.err, "queue limit mail --max-bytes SIZE");
    run_free(&r);
    RUN(&r, "queue", "show", "mail", "-o", "json");
    o = run_json(&r);
    assert_in_range(json_integer_value(json_object_get(o, "bytes")), 40000, 40100);
    assert_int_equal(json_integer_value(json_object_get(o, "max_bytes")), 65536);
    json_decref(o);
    run_free(&r);
    RUN(&r, "queue", "limit", "mail", "--max-bytes", "1GiB", "--max-jobs", "2");
    assert_code(&r, 0);
    run_free(&r);
    RUN(&r, "queue", "limit", "mail", "--max-bytes", "none", "-o", "json");
    o = run_json(&r);
    assert_true(json_is_null(json_object_get(o, "max_bytes")));
    assert_true(json_is_null(json_object_get(o, "bytes")));
    assert_int_equal(json_integer_value(json_object_get(o, "max_jobs")), 2);
    json_decref(o);
    run_free(&r);
}

static void refuse(const char *option, const char *value, const char *says)
{
    struct cli_run r = {0};
    RUN(&r, "queue", "limit", "never", option, value);
    assert_code(&r, 2);
    assert_says(r.err, says);
    run_free(&r);
}

/* chasqui 53 */
static void bad_limits_are_refused_before_anything_is_written(void **state)
{
    (void)state;
    struct cli_run r = {0};
    refuse("--max-jobs", "0", "--max-jobs");
    refuse("--max-jobs", "-1", "--max-jobs");
    refuse("--max-bytes", "0", "--max-bytes");
    refuse("--max-bytes", "64MB", "64KiB, 2MiB or 1GiB");
    refuse("--on-full", "wait", "--on-full: 'wait' is unknown");
    refuse("--concurrency", "0", "--concurrency");
    refuse("--rate", "-5/1s", "--rate");
    refuse("--rate", "5/0s", "--rate");
    refuse("--rate", "5", "COUNT/PERIOD");
    refuse("--burst", "0", "--burst");
    refuse("--key-order", "lifo", "--key-order");
    RUN(&r, "queue", "show", "never");
    assert_code(&r, 3);
    run_free(&r);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        ON_STORE(limits_are_set_shown_and_obeyed),
        ON_STORE(a_queue_at_its_bound_refuses_with_exit_4_and_says_how_many),
        ON_STORE(bytes_that_wait_are_bounded_and_shown),
        ON_STORE(bad_limits_are_refused_before_anything_is_written),
    };
    return run_group(argc, argv, "key", tests, LB_ARRAY_LEN(tests));
}
