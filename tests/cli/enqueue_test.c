/* lade enqueue, on the store that argv names */
#include "cli/cli_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

static void every_option_reaches_the_job(void **state)
{
    (void)state;
    struct cli_run r = {0};
    RUN(&r, "enqueue", "--kind", "mail:send", "--queue", "out/a", "--payload", "hello", "--id",
        "job-1", "--in", "1h", "--priority", "-4", "--max-attempts", "7", "--timeout", "90s",
        "--backoff", "fixed:5s", "--unique", "k", "--unique-ttl", "2h", "--unique-until", "start",
        "--header", "a=b=c", "--header", "x=", "--content-type", "text/plain");
    assert_code(&r, 0);
    assert_string_equal(run_word(&r), "job-1");
    json_t *job = job_of("job-1");
    assert_non_null(job);
    assert_string_equal(json_text_at(job, "state"), "scheduled");
    assert_string_equal(json_text_at(job, "kind"), "mail:send");
    assert_string_equal(json_text_at(job, "queue"), "out/a");
    assert_string_equal(json_text_at(job, "payload"), "hello");
    assert_int_equal(json_int_at(job, "payload_size"), 5);
    assert_int_equal(json_int_at(job, "priority"), -4);
    assert_int_equal(json_int_at(job, "max_attempts"), 7);
    assert_int_equal(json_int_at(job, "timeout_ms"), 90000);
    assert_string_equal(json_text_at(job, "content_type"), "text/plain");
    assert_string_equal(json_text_at(job, "unique_key"), "k");
    int64_t due = json_int_at(job, "due_in_ms");
    assert_true(due > 3500000 && due <= 3600000);
    const json_t *headers = json_object_get(job, "headers");
    assert_string_equal(json_text_at(headers, "a"), "b=c");
    assert_string_equal(json_text_at(headers, "x"), "");
    json_decref(job);
    run_free(&r);
}

/* chronos 14 */
static void defaults_are_the_documented_ones(void **state)
{
    (void)state;
    struct lade_id_text id = enqueue("k", "p");
    json_t *job = job_of(id.text);
    assert_string_equal(json_text_at(job, "queue"), "default");
    assert_string_equal(json_text_at(job, "state"), "ready");
    assert_int_equal(json_int_at(job, "max_attempts"), 25);
    assert_int_equal(json_int_at(job, "timeout_ms"), 30 * 60 * 1000);
    assert_int_equal(json_int_at(job, "priority"), 0);
    assert_int_equal(strlen(id.text), 26);
    json_decref(job);
}

static void a_duplicate_prints_the_id_that_is_there_and_exits_4(void **state)
{
    (void)state;
    struct cli_run r = {0};
    RUN(&r, "enqueue", "--kind", "k", "--id", "same");
    assert_code(&r, 0);
    RUN(&r, "enqueue", "--kind", "k", "--id", "same");
    assert_code(&r, 4);
    assert_string_equal(run_word(&r), "same");
    assert_says(r.err, "duplicate");
    RUN(&r, "enqueue", "--kind", "k", "--unique", "u1", "--json");
    assert_code(&r, 0);
    json_t *first = run_json(&r);
    assert_true(json_is_false(json_object_get(first, "duplicate")));
    RUN(&r, "enqueue", "--kind", "k", "--unique", "u1", "--json");
    assert_code(&r, 4);
    json_t *second = run_json(&r);
    assert_true(json_is_true(json_object_get(second, "duplicate")));
    assert_string_equal(json_text_at(first, "id"), json_text_at(second, "id"));
    assert_int_equal(total_of("ready"), 2);
    json_decref(first);
    json_decref(second);
    run_free(&r);
}

/* C-092 */
static void payloads_are_bytes_from_file_and_stdin_and_come_back_exact(void **state)
{
    (void)state;
    uint8_t all[256 * 3];
    struct cli_run r = {0};
    struct lade_id_text id;
    for (size_t i = 0; i < sizeof(all); i++)
        all[i] = (uint8_t)(i * 7);
    RUN_IN(&r, all, sizeof(all), "enqueue", "--kind", "k", "--payload", "@-");
    assert_code(&r, 0);
    (void)snprintf(id.text, sizeof(id.text), "%s", run_word(&r));
    RUN(&r, "job", "show", id.text, "--payload");
    assert_code(&r, 0);
    assert_int_equal(r.n_out, sizeof(all));
    assert_memory_equal(r.out, all, sizeof(all));
    /* C-093: as JSON it is base 64, and says so. */
    json_t *job = job_of(id.text);
    assert_string_equal(json_text_at(job, "payload_encoding"), "base64");
    assert_int_equal(strlen(json_text_at(job, "payload_base64")), sizeof(all) / 3 * 4);
    assert_null(json_object_get(job, "payload"));
    json_decref(job);

    char at[300];
    write_file("payload", "\0\n\xff", 3);
    (void)snprintf(at, sizeof(at), "@%s", file_path("payload"));
    RUN(&r, "enqueue", "--kind", "k", "--payload", at, "--id", "f");
    assert_code(&r, 0);
    RUN(&r, "job", "show", "f", "--payload");
    assert_int_equal(r.n_out, 3);
    assert_memory_equal(r.out, "\0\n\xff", 3);

    RUN(&r, "enqueue", "--kind", "k", "--id", "empty");
    assert_code(&r, 0);
    RUN(&r, "job", "show", "empty", "--payload");
    assert_code(&r, 0);
    assert_int_equal(r.n_out, 0);
    run_free(&r);
}

static void a_payload_over_the_limit_is_refused_and_nothing_is_written(void **state)
{
    (void)state;
    size_t n = (1U << 20) + 1;
    char *big = malloc(n);
    struct cli_run r = {0};
    assert_non_null(big);
    memset(big, 'x', n);
    RUN_IN(&r, big, n, "enqueue", "--kind", "k", "--payload", "@-");
    assert_code(&r, 2);
    assert_says(r.err, "over 1048576 bytes");
    RUN_IN(&r, big, n - 1, "enqueue", "--kind", "k", "--payload", "@-", "--id", "fits");
    assert_code(&r, 0);
    RUN_IN(&r, big, n, "enqueue", "--kind", "k", "--payload", "@-", "--payload-max", "2000000");
    assert_code(&r, 0);
    RUN_IN(&r, big, n, "enqueue", "--kind", "k", "--lines", "-");
    assert_code(&r, 2);
    assert_says(r.err, "line 1 is over 1048576 bytes");
    assert_int_equal(total_of("ready"), 2);
    free(big);
    run_free(&r);
}

static void each_line_becomes_a_job_and_the_summary_counts_them(void **state)
{
    (void)state;
    char text[64000];
    size_t n = 0;
    struct cli_run r = {0};
    for (int i = 0; i < 2500; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "line %d\n", i);
    RUN_IN(&r, text, n, "enqueue", "--kind", "k", "--lines", "-");
    assert_code(&r, 0);
    assert_says(r.err, "2500 added, 0 duplicates, 0 bad");
    assert_int_equal(r.n_out, 0);
    assert_int_equal(total_of("ready"), 2500);
    RUN_IN(&r, "a\n\nc", 4, "enqueue", "-k", "k", "-q", "ids", "--lines", "-", "-o", "ndjson");
    assert_code(&r, 0);
    int lines = 0;
    for (char *p = r.out; *p; p++)
        lines += *p == '\n';
    assert_int_equal(lines, 3);
    RUN_IN(&r, "a\nb\n", 4, "enqueue", "-k", "k", "-q", "ids", "--lines", "-", "--ids");
    assert_code(&r, 0);
    assert_int_equal(r.n_out, 2 * 27);
    RUN_IN(&r, "a\nb\n", 4, "enqueue", "-k", "k", "--lines", "-", "--dry-run");
    assert_code(&r, 0);
    assert_says(r.err, "2 would be added");
    assert_int_equal(total_of("ready"), 2505);
    run_free(&r);
}

#define GOOD "{\"kind\":\"a\",\"payload\":\"x\"}\n"

static void
a_malformed_ndjson_line_stops_with_its_number_and_writes_nothing_of_its_batch(void **state)
{
    (void)state;
    struct cli_run r = {0};
    const char *text = GOOD "\n" GOOD "{\"kind\":\n" GOOD;
    RUN_IN(&r, text, strlen(text), "enqueue", "--ndjson", "-");
    assert_code(&r, 2);
    assert_says(r.err, "stdin: line 4: byte 8: not JSON");
    assert_says(r.err, "0 added, 0 duplicates, 1 bad");
    RUN(&r, "queue", "ls", "-o", "json");
    assert_string_equal(run_word(&r), "[]");
    RUN_IN(&r, text, strlen(text), "enqueue", "--ndjson", "-", "--skip-bad");
    assert_code(&r, 6);
    assert_says(r.err, "line 4: passed over");
    assert_says(r.err, "3 added, 0 duplicates, 1 bad");
    assert_int_equal(total_of("ready"), 3);
    run_free(&r);
}

static void batches_before_the_malformed_line_stay_and_are_counted(void **state)
{
    (void)state;
    static char text[1500 * sizeof(GOOD) + 16];
    size_t n = 0;
    struct cli_run r = {0};
    for (int i = 0; i < 1500; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, GOOD);
    n += (size_t)snprintf(text + n, sizeof(text) - n, "nonsense\n");
    RUN_IN(&r, text, n, "enqueue", "--ndjson", "-");
    assert_code(&r, 2);
    assert_says(r.err, "line 1501");
    assert_says(r.err, "1000 added");
    assert_int_equal(total_of("ready"), 1000);
    run_free(&r);
}

/* What the parser lets pass and the library refuses: names, header rules, limits. */
static void a_spec_the_library_refuses_is_told_with_its_lines_or_passed_over(void **state)
{
    (void)state;
    struct cli_run r = {0};
    const char *text = GOOD "{\"kind\":\"a b\"}\n" GOOD;
    RUN_IN(&r, text, strlen(text), "enqueue", "--ndjson", "-");
    assert_code(&r, 2);
    assert_says(r.err, "stdin: line 2: kind 'a b'");
    RUN_IN(&r, text, strlen(text), "enqueue", "--ndjson", "-", "--skip-bad");
    assert_code(&r, 6);
    assert_says(r.err, "line 2: passed over");
    assert_int_equal(total_of("ready"), 2);
    run_free(&r);
}

static void ndjson_with_ids_can_be_fed_again(void **state)
{
    (void)state;
    struct cli_run r = {0};
    const char *text = "{\"type\":\"a\",\"id\":\"i1\",\"payload_base64\":\"AP8=\",\"priority\":4}\n"
                       "{\"name\":\"b\",\"id\":\"i2\",\"payload_json\":{\"n\":1},\"in\":\"1h\"}\n";
    RUN_IN(&r, text, strlen(text), "enqueue", "--ndjson", "-");
    assert_code(&r, 0);
    RUN_IN(&r, text, strlen(text), "enqueue", "--ndjson", "-");
    assert_code(&r, 4);
    assert_says(r.err, "0 added, 2 duplicates, 0 bad");
    RUN(&r, "job", "show", "i1", "--payload");
    assert_int_equal(r.n_out, 2);
    assert_memory_equal(r.out, "\0\xff", 2);
    json_t *job = job_of("i2");
    assert_string_equal(json_text_at(job, "payload"), "{\"n\":1}");
    assert_string_equal(json_text_at(job, "content_type"), "application/json");
    assert_string_equal(json_text_at(job, "state"), "scheduled");
    json_decref(job);
    run_free(&r);
}

/* Keys of a namespace are apart from all others; SQLite has none, the file is the namespace. (chronos 69) */
static void a_namespace_is_a_store_of_its_own_on_redis(void **state)
{
    (void)state;
    struct cli_run r = {0};
    RUN(&r, "enqueue", "-k", "k", "--id", "x", "-n", "other");
    assert_code(&r, 0);
    if (!is_redis())
        assert_says(r.err, "a file has one namespace");
    RUN(&r, "job", "show", "x", "--namespace", "other");
    assert_code(&r, 0);
    RUN(&r, "job", "show", "x");
    assert_code(&r, is_redis() ? 3 : 0);
    run_free(&r);
}

/* chasqui 5, 6 */
static void bad_names_and_contradictions_are_refused(void **state)
{
    (void)state;

    static const struct {
        const char *args[8];
        const char *says;
    } cases[] = {
        {{"enqueue"}, "--kind: missing"},
        {{"enqueue", "--kind", ""}, "kind"},
        {{"enqueue", "--kind", "a b"}, "kind"},
        {{"enqueue", "--kind", "\xff"}, "kind"},
        {{"enqueue", "--kind", "a", "--queue", "a b"}, "queue"},
        {{"enqueue", "--kind", "a", "--queue", ""}, "queue"},
        {{"enqueue", "--kind", "a", "--id", "a/b"}, "id"},
        {{"enqueue", "--kind", "a", "--in", "1s", "--lines"}, "--lines: needs a value"},
        {{"enqueue", "--kind", "a", "--header", "novalue"}, "NAME=VALUE"},
        {{"enqueue", "--kind", "a", "--header", "=x"}, "NAME=VALUE"},
        {{"enqueue", "--kind", "a", "--header", "a\x01=x"}, "header"},
        {{"enqueue", "--kind", "a", "--unique", ""}, "--unique: empty"},
        {{"enqueue", "--kind", "a", "--unique-ttl", "5s"}, "--unique: missing"},
        {{"enqueue", "--kind", "a", "--skip-bad"}, "only with --lines"},
        {{"enqueue", "--lines", "-", "--kind", "a", "--ndjson", "-"}, "--lines: not with --ndjson"},
        {{"enqueue", "--lines", "-", "--kind", "a", "--payload", "p"}, "not with --lines"},
        {{"enqueue", "--lines", "-", "--kind", "a", "--id", "p"}, "not for many jobs"},
        {{"enqueue", "--kind", "a", "extra"}, "too many arguments"},
        {{"enqueue", "--kind", "a", "--payload", "@/nonexistent"}, "/nonexistent"},
    };

    struct cli_run r = {0};
    for (size_t i = 0; i < LB_ARRAY_LEN(cases); i++) {
        run_args(&r, NULL, cases[i].args);
        if (r.code != 2 && i + 1 < LB_ARRAY_LEN(cases))
            assert_code(&r, 2);
        assert_true(r.code != 0);
        assert_says(r.err, cases[i].says);
        assert_true(strncmp(r.err, "lade: ", 6) == 0);
        assert_ptr_equal(strchr(r.err, '\n'), r.err + r.n_err - 1);
        assert_int_equal(r.n_out, 0);
    }
    RUN(&r, "queue", "ls", "-o", "tsv");
    assert_code(&r, 0);
    assert_null(strchr(strchr(r.out, '\n') + 1, '\n'));
    run_free(&r);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        ON_STORE(every_option_reaches_the_job),
        ON_STORE(defaults_are_the_documented_ones),
        ON_STORE(a_duplicate_prints_the_id_that_is_there_and_exits_4),
        ON_STORE(payloads_are_bytes_from_file_and_stdin_and_come_back_exact),
        ON_STORE(a_payload_over_the_limit_is_refused_and_nothing_is_written),
        ON_STORE(each_line_becomes_a_job_and_the_summary_counts_them),
        ON_STORE(a_malformed_ndjson_line_stops_with_its_number_and_writes_nothing_of_its_batch),
        ON_STORE(batches_before_the_malformed_line_stay_and_are_counted),
        ON_STORE(a_spec_the_library_refuses_is_told_with_its_lines_or_passed_over),
        ON_STORE(ndjson_with_ids_can_be_fed_again),
        ON_STORE(a_namespace_is_a_store_of_its_own_on_redis),
        ON_STORE(bad_names_and_contradictions_are_refused),
    };
    return run_group(argc, argv, "enqueue", tests, LB_ARRAY_LEN(tests));
}
