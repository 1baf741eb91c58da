#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

static void the_monotonic_clock_never_steps_back(void **state)
{
    (void)state;
    int64_t last = lb_clock_mono();
    for (int i = 0; i < 10000; i++) {
        int64_t now = lb_clock_mono();
        assert_true(now >= last);
        last = now;
    }
}

static void the_wall_clock_is_nanoseconds_since_1970(void **state)
{
    (void)state;
    time_t before = time(NULL);
    int64_t now = lb_clock_wall();
    assert_in_range(now / 1000000000, (uint64_t)before - 1, (uint64_t)before + 60);
}

static void deadlines_saturate(void **state)
{
    (void)state;
    int64_t now = lb_clock_mono();
    int64_t soon = lb_deadline_in(1000000000);
    assert_true(soon >= now + 1000000000);
    assert_true(lb_deadline_in(-5) <= lb_clock_mono());
    assert_true(lb_deadline_in(INT64_MIN) <= lb_clock_mono());
    assert_true(lb_deadline_in(LB_FOREVER) == LB_FOREVER);
    assert_true(lb_deadline_in(LB_FOREVER - 1) == LB_FOREVER);
}

static void a_positive_duration_is_never_zero_milliseconds(void **state)
{
    (void)state;
    assert_int_equal(lb_ms_up(0), 0);
    assert_int_equal(lb_ms_up(1), 1);
    assert_int_equal(lb_ms_up(999999), 1);
    assert_int_equal(lb_ms_up(1000000), 1);
    assert_int_equal(lb_ms_up(1000001), 2);
    assert_int_equal(lb_ms_up(-1), 0);
    assert_int_equal(lb_ms_up(INT64_MAX), INT64_MAX / 1000000 + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_monotonic_clock_never_steps_back),
        cmocka_unit_test(the_wall_clock_is_nanoseconds_since_1970),
        cmocka_unit_test(deadlines_saturate),
        cmocka_unit_test(a_positive_duration_is_never_zero_milliseconds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
