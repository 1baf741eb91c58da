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
    json_decref(o);
    run_free(&r);

    RUN(&r, "key", "limit", "mail", "acme", "--weight", "3", "--order", "fifo");
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
        ON_STORE(bad_limits_are_refused_before_anything_is_written),
    };
    return run_group(argc, argv, "key", tests, LB_ARRAY_LEN(tests));
}
