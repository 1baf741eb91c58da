#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "queue/retry.h"

static void the_default_is_attempt_to_the_fourth_plus_15_s_up_to_a_day(void **state)
{
    (void)state;
    struct lq_backoff b = {0};
    assert_int_equal(lq_retry_delay_ms(&b, 1, 0), 16000);
    assert_int_equal(lq_retry_delay_ms(&b, 3, 0), 96000);
    assert_int_equal(lq_retry_delay_ms(&b, 1000, 0), 24 * 60 * 60 * 1000);
    assert_in_range(lq_retry_delay_ms(&b, 3, UINT32_MAX), 105000, 105600);
}

/* chasqui 28 */
static void fixed_exponential_and_polynomial_grow_as_named_and_stop_at_the_cap(void **state)
{
    (void)state;
    struct lq_backoff fixed = {LADE_BACKOFF_FIXED, 200, 0, 0};
    struct lq_backoff twice = {LADE_BACKOFF_EXPONENTIAL, 100, 10000, 0};
    struct lq_backoff power = {LADE_BACKOFF_POLYNOMIAL, 10, 5000, 0};
    for (int i = 1; i < 100; i++)
        assert_int_equal(lq_retry_delay_ms(&fixed, i, 0), 200);
    assert_int_equal(lq_retry_delay_ms(&twice, 1, 0), 100);
    assert_int_equal(lq_retry_delay_ms(&twice, 4, 0), 800);
    assert_int_equal(lq_retry_delay_ms(&twice, 63, 0), 10000);
    assert_int_equal(lq_retry_delay_ms(&twice, 1000, 0), 10000);
    assert_int_equal(lq_retry_delay_ms(&power, 2, 0), 160);
    assert_int_equal(lq_retry_delay_ms(&power, 900, 0), 5000);
}

/* chronos 15 */
static void jitter_adds_at_most_its_percent_and_never_passes_the_cap(void **state)
{
    (void)state;
    struct lq_backoff b = {LADE_BACKOFF_FIXED, 1000, 1200, 50};
    assert_int_equal(lq_retry_delay_ms(&b, 1, 0), 1000);
    assert_in_range(lq_retry_delay_ms(&b, 1, UINT32_MAX / 4), 1100, 1126);
    assert_int_equal(lq_retry_delay_ms(&b, 1, UINT32_MAX), 1200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_default_is_attempt_to_the_fourth_plus_15_s_up_to_a_day),
        cmocka_unit_test(fixed_exponential_and_polynomial_grow_as_named_and_stop_at_the_cap),
        cmocka_unit_test(jitter_adds_at_most_its_percent_and_never_passes_the_cap),
    };
    return cmocka_run_group_tests_name("queue/retry", tests, NULL, NULL);
}
