#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/base.h"
#include "cli/arg.h"

static void whole_numbers_are_read_exactly(void **state)
{
    (void)state;

    static const struct {
        const char *text;
        int64_t v;
    } cases[] = {{"0", 0},
                 {"-4", -4},
                 {"+7", 7},
                 {"0010", 10},
                 {"9223372036854775807", INT64_MAX},
                 {"-9223372036854775807", -INT64_MAX}};

    for (size_t i = 0; i < LB_ARRAY_LEN(cases); i++) {
        int64_t v = 99;
        assert_int_equal(
            cli_arg_int("--n", cases[i].text, (struct cli_range){INT64_MIN, INT64_MAX}, &v, NULL),
            0);
        assert_int_equal(v, cases[i].v);
    }
}

/* C-096 */
static void what_is_no_number_or_does_not_fit_names_the_option_and_the_rule(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        " ",
        "x",
        "1x",
        "1 ",
        " 1",
        "--1",
        "1.0",
        "1e3",
        "0x10",
        "1e9999",
        "-",
        "+",
        "-1",
        "101",
        "2147483647",
        "2147483648",
        "4294967295",
        "4294967296",
        "9223372036854775808",
        "18446744073709551616",
        "99999999999999999999999999999999999999",
    };

    for (size_t i = 0; i < LB_ARRAY_LEN(bad); i++) {
        int64_t v = 99;
        lade_err err = {0};
        int rc = cli_arg_int("--limit", bad[i], (struct cli_range){0, 100}, &v, &err);
        assert_int_equal(rc, -LADE_EINVAL);
        assert_int_equal(v, 99);
        assert_non_null(strstr(err.text, "--limit: "));
        assert_non_null(strstr(err.text, "give 0 to 100"));
    }
}

static void durations_need_their_unit(void **state)
{
    (void)state;

    static const struct {
        const char *text;
        int64_t ns;
    } good[] = {{"0", 0},
                {"500ms", 500 * LADE_MILLISECOND},
                {"30s", 30 * LADE_SECOND},
                {"5m", 5 * LADE_MINUTE},
                {"2h", 2 * LADE_HOUR},
                {"7d", 7 * LADE_DAY},
                {"1h30m", 90 * LADE_MINUTE},
                {"106751d", 106751 * LADE_DAY}};

    static const char *const bad[] = {"",
                                      "5",
                                      "s",
                                      "-5s",
                                      "5 s",
                                      "5S",
                                      "5m1h",
                                      "5s5s",
                                      "1.5s",
                                      "5sx",
                                      "106752d",
                                      "1e9999s",
                                      "5us",
                                      "0x5s",
                                      "5w",
                                      "+5s",
                                      "9223372036854775808ms",
                                      "9223372036854775807d"};

    struct cli_range range = {0, INT64_MAX};
    for (size_t i = 0; i < LB_ARRAY_LEN(good); i++) {
        int64_t v = -1;
        assert_int_equal(cli_arg_duration("--in", good[i].text, range, &v, NULL), 0);
        assert_int_equal(v, good[i].ns);
    }
    for (size_t i = 0; i < LB_ARRAY_LEN(bad); i++) {
        int64_t v = -1;
        assert_int_equal(cli_arg_duration("--in", bad[i], range, &v, NULL), -LADE_EINVAL);
        assert_int_equal(v, -1);
    }
}

static void times_are_rfc_3339_or_from_now(void **state)
{
    (void)state;

    static const struct {
        const char *text;
        int64_t ms;
    } good[] = {{"2026-01-31T12:00:00Z", 1769860800000},
                {"2026-01-31T12:00:00.123Z", 1769860800123},
                {"2026-01-31T13:30:00+01:30", 1769860800000},
                {"2026-01-31 04:00:00-08:00", 1769860800000},
                {"2024-02-29T00:00:00Z", 1709164800000}};

    static const char *const bad[] = {"",
                                      "now",
                                      "2026-01-31",
                                      "2026-01-31T12:00:00",
                                      "2026-02-30T00:00:00Z",
                                      "2026-13-01T00:00:00Z",
                                      "2026-01-31T24:00:00Z",
                                      "2026-01-31T12:60:00Z",
                                      "2026-01-31T12:00:00.Z",
                                      "2026-01-31T12:00:00+25:00",
                                      "2026-01-31T12:00:00Zx",
                                      "1769860800",
                                      "+",
                                      "+5",
                                      "10m",
                                      "-10m"};

    int64_t at = -1;
    int64_t in = -1;
    for (size_t i = 0; i < LB_ARRAY_LEN(good); i++) {
        assert_int_equal(cli_arg_time("--at", good[i].text, &at, &in, NULL), 0);
        assert_int_equal(at, good[i].ms * LADE_MILLISECOND);
        assert_int_equal(in, 0);
    }
    assert_int_equal(cli_arg_time("--at", "+10m", &at, &in, NULL), 0);
    assert_int_equal(at, 0);
    assert_int_equal(in, 10 * LADE_MINUTE);
    for (size_t i = 0; i < LB_ARRAY_LEN(bad); i++) {
        at = in = -1;
        assert_int_equal(cli_arg_time("--at", bad[i], &at, &in, NULL), -LADE_EINVAL);
        assert_int_equal(at, -1);
        assert_int_equal(in, -1);
    }
}

static void backoffs_name_their_kind_and_delay(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",       "fixed",    "fixed:",      "fixed:5",  "exponential",
        "linear", "fixed:0s", "polynomial:", "Fixed:5s", "fixed:5s:1"};

    lade_backoff b = {0};
    assert_int_equal(cli_arg_backoff("--backoff", "fixed:5s", &b, NULL), 0);
    assert_int_equal(b.type, LADE_BACKOFF_FIXED);
    assert_int_equal(b.base, 5 * LADE_SECOND);
    assert_int_equal(cli_arg_backoff("--backoff", "exponential:200ms", &b, NULL), 0);
    assert_int_equal(b.type, LADE_BACKOFF_EXPONENTIAL);
    assert_int_equal(cli_arg_backoff("--backoff", "polynomial:1s", &b, NULL), 0);
    assert_int_equal(b.type, LADE_BACKOFF_POLYNOMIAL);
    assert_int_equal(cli_arg_backoff("--backoff", "polynomial", &b, NULL), 0);
    assert_int_equal(b.type, LADE_BACKOFF_DEFAULT);
    for (size_t i = 0; i < LB_ARRAY_LEN(bad); i++)
        assert_int_equal(cli_arg_backoff("--backoff", bad[i], &b, NULL), -LADE_EINVAL);
}

static void until_is_one_of_three_words(void **state)
{
    (void)state;
    enum lade_unique_until until = LADE_UNTIL_DONE;
    assert_int_equal(cli_arg_until("--unique-until", "ttl", &until, NULL), 0);
    assert_int_equal(until, LADE_UNTIL_TTL);
    assert_int_equal(cli_arg_until("--unique-until", "start", &until, NULL), 0);
    assert_int_equal(until, LADE_UNTIL_START);
    assert_int_equal(cli_arg_until("--unique-until", "end", &until, NULL), -LADE_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_numbers_are_read_exactly),
        cmocka_unit_test(what_is_no_number_or_does_not_fit_names_the_option_and_the_rule),
        cmocka_unit_test(durations_need_their_unit),
        cmocka_unit_test(times_are_rfc_3339_or_from_now),
        cmocka_unit_test(backoffs_name_their_kind_and_delay),
        cmocka_unit_test(until_is_one_of_three_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
