#include "base/civil.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "base/ident.h"

/* Against gmtime_r of the C library, over 8,000 years. */
static void seconds_and_dates_agree_with_the_c_library(void **state)
{
    (void)state;
    for (int i = 0; i < 200000; i++) {
        int64_t t = (int64_t)lb_rand_below(INT64_C(252000000000)) - INT64_C(126000000000);
        time_t at = (time_t)t;
        struct tm tm;
        assert_non_null(gmtime_r(&at, &tm));
        struct lb_civil c = lb_civil_of(t);
        assert_int_equal(c.year, tm.tm_year + 1900);
        assert_int_equal(c.month, tm.tm_mon + 1);
        assert_int_equal(c.day, tm.tm_mday);
        assert_int_equal(c.hour, tm.tm_hour);
        assert_int_equal(c.minute, tm.tm_min);
        assert_int_equal(c.second, tm.tm_sec);
        assert_int_equal(lb_civil_seconds(&c), t);
        assert_int_equal(lb_civil_weekday(lb_civil_days(c.year, c.month, c.day)), tm.tm_wday);
    }
}

static void february_has_29_days_every_fourth_year_but_for_three_in_400(void **state)
{
    (void)state;
    assert_int_equal(lb_civil_days_in(2023, 2), 28);
    assert_int_equal(lb_civil_days_in(2024, 2), 29);
    assert_int_equal(lb_civil_days_in(1900, 2), 28);
    assert_int_equal(lb_civil_days_in(2000, 2), 29);
    assert_int_equal(lb_civil_days_in(2026, 11), 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(seconds_and_dates_agree_with_the_c_library),
        cmocka_unit_test(february_has_29_days_every_fourth_year_but_for_three_in_400),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
