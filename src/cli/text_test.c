#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/base.h"
#include "cli/text.h"

static void utf8_span_stops_at_the_first_bad_byte(void **state)
{
    (void)state;

    static const struct {
        const char *text;
        size_t n, span;
    } cases[] = {
        {"", 0, 0},
        {"abc", 3, 3},
        {"a\0b", 3, 1},
        {"\xc3\xa9", 2, 2},
        {"\xc3", 1, 0},
        {"a\xff\xfe", 3, 1},
        {"\xc0\x80", 2, 0},         /* overlong NUL */
        {"\xe0\x80\x80", 3, 0},     /* overlong */
        {"\xed\xa0\x80", 3, 0},     /* lone surrogate */
        {"\xf0\x9f\x98\x80", 4, 4}, /* beyond the BMP */
        {"\xf4\x90\x80\x80", 4, 0}, /* beyond U+10FFFF */
        {"\xf0\x9f\x98", 3, 0},     /* cut */
        {"\xe2\x82\xac\x80", 4, 3}, /* stray continuation */
    };

    for (size_t i = 0; i < LB_ARRAY_LEN(cases); i++)
        assert_int_equal(cli_utf8_span(cases[i].text, cases[i].n), cases[i].span);
}

static void base64_goes_there_and_back_for_every_byte(void **state)
{
    (void)state;
    uint8_t all[256 + 3];
    struct lb_buf text;
    struct lb_buf back;
    for (size_t i = 0; i < sizeof(all); i++)
        all[i] = (uint8_t)i;
    for (size_t n = 0; n <= sizeof(all); n++) {
        lb_buf_init(&text);
        lb_buf_init(&back);
        cli_base64_encode(&text, all, n);
        assert_int_equal(text.n, (n + 2) / 3 * 4);
        assert_true(cli_base64_decode(&back, (const char *)text.p, text.n));
        assert_int_equal(back.n, n);
        assert_memory_equal(n ? back.p : all, all, n);
        lb_buf_fini(&text);
        lb_buf_fini(&back);
    }
}

static void base64_that_is_not_canonical_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "A", "AA", "AAA", "AA=A", "====", "A===", "AB==", "AAB=", "AA==AAAA", "AA A", "AA-_"};

    for (size_t i = 0; i < LB_ARRAY_LEN(bad); i++) {
        struct lb_buf out;
        lb_buf_init(&out);
        assert_false(cli_base64_decode(&out, bad[i], strlen(bad[i])));
        assert_int_equal(out.n, 0);
        lb_buf_fini(&out);
    }
}

static void printable_text_never_carries_control_bytes(void **state)
{
    (void)state;
    struct lb_buf out;
    lb_buf_init(&out);
    cli_add_printable(&out, "a\nb\t\x1b[31m\xff\xc2\x9b\xc3\xa9\0z", 15, SIZE_MAX);
    lb_buf_add_byte(&out, 0);
    assert_string_equal(out.p, "a\\nb\\t\\x1b[31m\\xff\\xc2\\x9b\xc3\xa9\\x00");
    lb_buf_clear(&out);
    cli_add_printable(&out, "abcdef", 6, 3);
    lb_buf_add_byte(&out, 0);
    assert_string_equal(out.p, "abc...");
    lb_buf_fini(&out);
}

static void a_near_name_is_suggested_and_a_far_one_is_not(void **state)
{
    (void)state;
    static const char *const names[] = {"enqueue", "queue", "job", "stats"};

    assert_string_equal(cli_nearest("enqeue", names, 4), "enqueue");
    assert_string_equal(cli_nearest("stat", names, 4), "stats");
    assert_null(cli_nearest("xyzzy", names, 4));
    assert_null(cli_nearest("a-word-that-is-much-longer-than-any-of-them", names, 4));
}

static void times_and_durations_read_well(void **state)
{
    (void)state;

    static const struct {
        int64_t ns;
        const char *text;
    } cases[] = {
        {0, "0ms"},
        {500 * LADE_MILLISECOND, "500ms"},
        {1500 * LADE_MILLISECOND, "1.5s"},
        {LADE_MINUTE, "1m"},
        {200 * LADE_SECOND, "3m20s"},
        {LADE_DAY + 4 * LADE_HOUR, "1d4h"},
        {INT64_MAX, "106751d23h"},
        {-5, "0ms"},
    };

    char text[CLI_TIME_LEN];
    for (size_t i = 0; i < LB_ARRAY_LEN(cases); i++) {
        cli_duration_text(text, cases[i].ns);
        assert_string_equal(text, cases[i].text);
    }
    cli_time_text(text, INT64_C(1769860800123) * LADE_MILLISECOND);
    assert_string_equal(text, "2026-01-31T12:00:00.123Z");
    cli_time_text(text, 0);
    assert_string_equal(text, "-");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(utf8_span_stops_at_the_first_bad_byte),
        cmocka_unit_test(base64_goes_there_and_back_for_every_byte),
        cmocka_unit_test(base64_that_is_not_canonical_is_refused),
        cmocka_unit_test(printable_text_never_carries_control_bytes),
        cmocka_unit_test(a_near_name_is_suggested_and_a_far_one_is_not),
        cmocka_unit_test(times_and_durations_read_well),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
