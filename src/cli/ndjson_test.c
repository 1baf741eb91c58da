#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/mem.h"
#include "cli/ndjson.h"

static int parse(struct cli_ndjson *j, const char *line, lade_err *err)
{
    return cli_ndjson_parse(j, line, strlen(line), &(lade_job_spec){0}, err);
}

#define FULL                                                                                   \
    "{\"kind\":\"mail\",\"queue\":\"out\",\"payload\":\"hi\",\"content_type\":\"text/plain\"," \
    "\"id\":\"x1\",\"at\":\"2026-01-31T12:00:00Z\",\"priority\":-2,\"max_attempts\":5,"        \
    "\"timeout\":\"30s\",\"unique\":{\"key\":\"k\",\"ttl\":\"1h\",\"until\":\"start\"},"       \
    "\"headers\":{\"a\":\"1\",\"b\":\"2\"},"                                                   \
    "\"backoff\":{\"type\":\"exponential\",\"base\":\"5s\",\"cap\":\"1h\",\"jitter\":10}}"

static void a_full_line_becomes_a_full_job(void **state)
{
    (void)state;
    struct cli_ndjson j;
    assert_int_equal(parse(&j, FULL, NULL), 0);
    const lade_job_spec *s = &j.spec;
    assert_string_equal(s->kind, "mail");
    assert_string_equal(s->queue, "out");
    assert_int_equal(s->payload.size, 2);
    assert_memory_equal(s->payload.data, "hi", 2);
    assert_string_equal(s->content_type, "text/plain");
    assert_string_equal(s->id, "x1");
    assert_int_equal(s->at, INT64_C(1769860800) * LADE_SECOND);
    assert_int_equal(s->priority, -2);
    assert_int_equal(s->max_attempts, 5);
    assert_int_equal(s->timeout, 30 * LADE_SECOND);
    assert_int_equal(s->unique.key.size, 1);
    assert_int_equal(s->unique.ttl, LADE_HOUR);
    assert_int_equal(s->unique.until, LADE_UNTIL_START);
    assert_int_equal(s->n_headers, 2);
    assert_string_equal(s->headers[1].name, "b");
    assert_string_equal(s->headers[1].value, "2");
    assert_int_equal(s->backoff.type, LADE_BACKOFF_EXPONENTIAL);
    assert_int_equal(s->backoff.base, 5 * LADE_SECOND);
    assert_int_equal(s->backoff.cap, LADE_HOUR);
    assert_int_equal(s->backoff.jitter, 10);
    cli_ndjson_fini(&j);
}

static void payloads_come_as_text_base64_or_json(void **state)
{
    (void)state;
    struct cli_ndjson j;
    assert_int_equal(parse(&j, "{\"type\":\"k\",\"payload_base64\":\"AP8K\"}", NULL), 0);
    assert_int_equal(j.spec.payload.size, 3);
    assert_memory_equal(j.spec.payload.data, "\0\xff\n", 3);
    cli_ndjson_fini(&j);
    assert_int_equal(parse(&j, "{\"name\":\"k\",\"payload_json\": { \"a\" : [1, null] } }", NULL),
                     0);
    assert_int_equal(j.spec.payload.size, 14);
    assert_memory_equal(j.spec.payload.data, "{\"a\":[1,null]}", 14);
    assert_string_equal(j.spec.content_type, "application/json");
    cli_ndjson_fini(&j);
    assert_int_equal(parse(&j, "{\"kind\":\"k\",\"payload_json\":7}", NULL), 0);
    assert_memory_equal(j.spec.payload.data, "7", 1);
    cli_ndjson_fini(&j);
}

static void what_the_line_leaves_out_is_taken_from_the_defaults(void **state)
{
    (void)state;
    lade_job_spec defaults = {.kind = "d", .queue = "q", .in = LADE_SECOND, .priority = 3};
    struct cli_ndjson j;
    assert_int_equal(cli_ndjson_parse(&j, "{}", 2, &defaults, NULL), 0);
    assert_string_equal(j.spec.kind, "d");
    assert_int_equal(j.spec.in, LADE_SECOND);
    assert_int_equal(j.spec.priority, 3);
    cli_ndjson_fini(&j);
    const char *line = "{\"at\":\"2026-01-31T12:00:00Z\",\"kind\":\"own\"}";
    assert_int_equal(cli_ndjson_parse(&j, line, strlen(line), &defaults, NULL), 0);
    assert_string_equal(j.spec.kind, "own");
    assert_int_equal(j.spec.in, 0);
    cli_ndjson_fini(&j);
}

static void bad_lines_are_refused_with_what_is_wrong(void **state)
{
    (void)state;

    static const struct {
        const char *line, *says;
    } cases[] = {
        {"", "not JSON"},
        {"{", "not JSON"},
        {"{} x", "not JSON"},
        {"[]", "not an object"},
        {"null", "not an object"},
        {"{}", "no \"kind\""},
        {"{\"kind\":\"a\",\"kind\":\"b\"}", "not JSON: duplicate"},
        {"{\"kind\":\"a\",\"type\":\"b\"}", "\"type\": not with \"kind\""},
        {"{\"kind\":\"a\",\"payload\":\"\",\"payload_json\":1}",
         "\"payload_json\": not with \"payload\""},
        {"{\"kind\":\"a\",\"in\":\"1s\",\"at\":\"+1s\"}",
         "\"at\": not with \"in\"; give one of them"},
        {"{\"kind\":1}", "\"kind\": must be a string"},
        {"{\"kind\":\"a\",\"payload\":{}}", "payload_json"},
        {"{\"kind\":\"a\",\"payload\":\"\\u0000\"}", "payload_base64"},
        {"{\"kind\":\"a\",\"payload\":\"\xff\"}", "payload_base64"},
        {"{\"kind\":\"a\",\"payload\":\"\\ud800\"}", "not JSON"},
        {"{\"kind\":\"a\",\"payload_base64\":\"A\"}", "base 64"},
        {"{\"kind\":\"a\",\"prio\":1}", "\"prio\": unknown member"},
        {"{\"kind\":\"a\",\"prioritty\":1}", "did you mean \"priority\"?"},
        {"{\"kind\":\"a\",\"priority\":1.0}", "whole number"},
        {"{\"kind\":\"a\",\"priority\":5}", "give -4 to 4"},
        {"{\"kind\":\"a\",\"priority\":18446744073709551616}", "too big"},
        {"{\"kind\":\"a\",\"priority\":1e9999}", "not JSON"},
        {"{\"kind\":\"a\",\"max_attempts\":0}", "give 1 to 1000"},
        {"{\"kind\":\"a\",\"max_attempts\":\"3\"}", "whole number"},
        {"{\"kind\":\"a\",\"timeout\":30}", "a duration in a string"},
        {"{\"kind\":\"a\",\"timeout\":\"30\"}", "not a duration"},
        {"{\"kind\":\"a\",\"at\":5}", "a time in a string"},
        {"{\"kind\":\"a\",\"unique\":\"k\"}", "an object with a \"key\""},
        {"{\"kind\":\"a\",\"unique\":{\"key\":\"\"}}",
         "\"unique.key\": must be a string that is not empty"},
        {"{\"kind\":\"a\",\"key\":\"\"}", "\"key\": must be a string that is not empty"},
        {"{\"kind\":\"a\",\"unique\":{\"key\":\"k\",\"ttl\":5}}", "\"unique.ttl\": must be"},
        {"{\"kind\":\"a\",\"discard_dead\":1}", "\"discard_dead\": must be true or false"},
        {"{\"kind\":\"a\",\"unique\":{\"key\":\"k\",\"x\":1}}", "unknown"},
        {"{\"kind\":\"a\",\"unique\":{\"key\":\"k\",\"until\":\"x\"}}", "done, start or ttl"},
        {"{\"kind\":\"a\",\"headers\":[]}", "an object of strings"},
        {"{\"kind\":\"a\",\"headers\":{\"a\":1}}", "\"headers.a\": must be a string"},
        {"{\"kind\":\"a\",\"backoff\":{}}", "an object with a \"type\""},
        {"{\"kind\":\"a\",\"backoff\":{\"type\":\"fixed\"}}",
         "\"backoff.base\": must be a duration in a string"},
        {"{\"kind\":\"a\",\"backoff\":{\"type\":\"fixed\",\"base\":5}}",
         "\"backoff.base\": must be a duration in a string"},
        {"{\"kind\":\"a\",\"backoff\":{\"type\":\"fixed\",\"base\":\"5s\",\"jitter\":101}}", "100"},
        {"{\"kind\":\"a\",\"backoff\":{\"type\":\"fixed\",\"base\":\"5s\",\"x\":1}}", "unknown"},
    };

    for (size_t i = 0; i < LB_ARRAY_LEN(cases); i++) {
        struct cli_ndjson j = {.root = NULL};
        lade_err err = {0};
        assert_true(parse(&j, cases[i].line, &err) < 0);
        if (!strstr(err.text, cases[i].says))
            fail_msg("%s: %s (want: %s)", cases[i].line, err.text, cases[i].says);
        assert_null(j.root);
    }
}

static void nesting_is_bounded(void **state)
{
    (void)state;
    static char line[4096];
    struct cli_ndjson j;
    lade_err err = {0};
    size_t n = (size_t)snprintf(line, sizeof(line), "{\"kind\":\"a\",\"payload_json\":");
    memset(line + n, '[', 1000);
    memset(line + n + 1000, ']', 1000);
    (void)snprintf(line + n + 2000, 2, "}");
    assert_int_equal(parse(&j, line, &err), -LADE_EINVAL);
    assert_non_null(strstr(err.text, "nested deeper"));
    assert_int_equal(parse(&j,
                           "{\"kind\":\"a\",\"payload\":\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["
                           "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\"}",
                           &err),
                     0);
    cli_ndjson_fini(&j);
}

static void running_out_of_memory_at_any_point_fails_the_line_and_leaks_nothing(void **state)
{
    (void)state;
    json_set_alloc_funcs(lb_malloc, lb_free);
    int rc = -1;
    for (uint64_t n = 1; rc < 0; n++) {
        struct cli_ndjson j = {.root = NULL};
        lade_err err = {0};
        lb_mem_fail_after(n);
        rc = parse(&j, FULL, &err);
        lb_mem_fail_after(0);
        /* jansson takes some of its failed allocations for bad syntax, so the code may be EINVAL. */
        assert_true(rc == 0 || (rc < 0 && err.text[0]));
        if (rc == 0)
            cli_ndjson_fini(&j);
    }
    json_set_alloc_funcs(malloc, free);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_line_becomes_a_full_job),
        cmocka_unit_test(payloads_come_as_text_base64_or_json),
        cmocka_unit_test(what_the_line_leaves_out_is_taken_from_the_defaults),
        cmocka_unit_test(bad_lines_are_refused_with_what_is_wrong),
        cmocka_unit_test(nesting_is_bounded),
        cmocka_unit_test(running_out_of_memory_at_any_point_fails_the_line_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
