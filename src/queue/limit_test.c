/* limit_test.c - rates, room and turns as numbers */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/base.h"
#include "queue/limit.h"

#define SECOND_US INT64_C(1000000)
#define NOW_US    (INT64_C(1790000000) * SECOND_US)

/* chasqui 53, C-079: a burst up to its size, then one each period / count, and no debt once the bucket is full again. */
static void a_rate_gives_its_burst_and_then_one_a_step(void **state)
{
    (void)state;
    struct lq_limit l = {.count = 100, .period_ms = 1000, .burst = 100};
    int64_t tat = 0, at = 0;
    assert_int_equal(lq_rate_room(&l, tat, NOW_US, &at), 100);
    tat = lq_rate_spend(&l, tat, NOW_US, 100);
    assert_int_equal(lq_rate_room(&l, tat, NOW_US, &at), 0);
    assert_int_equal(at, NOW_US + 10000);
    assert_int_equal(lq_rate_room(&l, tat, NOW_US + 9999, &at), 0);
    assert_int_equal(lq_rate_room(&l, tat, NOW_US + 10000, &at), 1);
    assert_int_equal(lq_rate_room(&l, tat, NOW_US + 35000, &at), 3);
    assert_int_equal(lq_rate_room(&l, tat, NOW_US + SECOND_US, &at), 100);
    assert_int_equal(lq_rate_room(&l, tat, NOW_US + 50 * SECOND_US, &at), 100);
}

static void a_rate_that_divides_badly_is_never_exceeded(void **state)
{
    (void)state;
    struct lq_limit l = {.count = 3, .period_ms = 1000, .burst = 1};
    int64_t tat = 0, at = NOW_US, n = 0;
    for (int64_t now = NOW_US; now < NOW_US + 100 * SECOND_US; now += 1000) {
        int64_t room = lq_rate_room(&l, tat, now, &at);
        assert_in_range(room, 0, 1);
        tat = lq_rate_spend(&l, tat, now, room);
        n += room;
    }
    assert_in_range(n, 295, 300);
}

static void a_key_runs_what_each_of_its_limits_allows(void **state)
{
    (void)state;
    struct lq_limit l = {.concurrency = 3, .weight = 1, .order = LADE_KEY_ORDER_ANY};
    struct lq_key_facts k = {.ready = 10, .active = 1};
    int64_t at;
    enum lade_key_hold why;
    assert_int_equal(lq_key_room(&l, &k, NOW_US, &at, &why), 2);
    k.active = 3;
    assert_int_equal(lq_key_room(&l, &k, NOW_US, &at, &why), 0);
    assert_int_equal(why, LADE_HELD_CONCURRENCY);
    assert_true(at == LQ_NOT_BY_TIME);
    l.order = LADE_KEY_ORDER_FIFO;
    k.active = 0;
    k.away = 1;
    assert_int_equal(lq_key_room(&l, &k, NOW_US, &at, &why), 0);
    assert_int_equal(why, LADE_HELD_ORDER);
    k.away = 0;
    assert_int_equal(lq_key_room(&l, &k, NOW_US, &at, &why), 1);
    k.until_us = NOW_US + 5;
    assert_int_equal(lq_key_room(&l, &k, NOW_US, &at, &why), 0);
    assert_int_equal(why, LADE_HELD_PAUSED);
    assert_int_equal(at, NOW_US + 5);
    k.ready = 0;
    assert_int_equal(lq_key_room(&l, &k, NOW_US, &at, &why), 0);
    assert_int_equal(why, LADE_HELD_NOT);
}

/* Turns counted at once are those that a loop gives one by one. */
static void turns_in_a_row_are_those_of_a_loop(void **state)
{
    (void)state;
    for (int64_t stride = 1; stride < 8; stride++) {
        for (int64_t ahead = 0; ahead < 30; ahead++) {
            for (int before = 0; before < 2; before++) {
                int64_t n = 1;
                for (int64_t at = stride; at < ahead || (at == ahead && before); at += stride)
                    n++;
                assert_int_equal(lq_key_turns(100, stride, 100 + ahead, before), n);
            }
        }
    }
    assert_true(lq_key_turns(5, 7, INT64_MAX, false) > 1000000);
}

static void a_limit_survives_its_text(void **state)
{
    (void)state;
    struct lq_limit l = {-1, 100, 1000, 7, 10000, LADE_KEY_ORDER_FIFO}, back;
    char text[LQ_LIMIT_TEXT];
    lq_limit_write(&l, text);
    assert_true(lq_limit_read(lb_slice_str(text), &back));
    assert_memory_equal(&l, &back, sizeof(l));
    assert_true(lq_limit_read(lb_slice_str(""), &back));
    assert_true(lq_limit_is_zero(&back));
    assert_false(lq_limit_read(lb_slice_str("1 2 x"), &back));
    assert_false(lq_limit_read(lb_slice_str("1 2 3 4 5 6 7"), &back));
}

static void the_own_limit_of_a_key_comes_before_the_default(void **state)
{
    (void)state;
    struct lq_limit usual = {.concurrency = 5, .count = 10, .period_ms = 1000, .burst = 10};
    struct lq_limit own = {.concurrency = LADE_LIMIT_NONE, .weight = 3};
    struct lq_limit l = lq_limit_join(&own, &usual);
    assert_int_equal(l.concurrency, 0);
    assert_int_equal(l.count, 10);
    assert_int_equal(l.weight, 3);
    assert_int_equal(l.order, LADE_KEY_ORDER_ANY);
    own.count = LADE_LIMIT_NONE;
    l = lq_limit_join(&own, &usual);
    assert_int_equal(l.count, 0);
    assert_int_equal(l.period_ms, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rate_gives_its_burst_and_then_one_a_step),
        cmocka_unit_test(a_rate_that_divides_badly_is_never_exceeded),
        cmocka_unit_test(a_key_runs_what_each_of_its_limits_allows),
        cmocka_unit_test(turns_in_a_row_are_those_of_a_loop),
        cmocka_unit_test(a_limit_survives_its_text),
        cmocka_unit_test(the_own_limit_of_a_key_comes_before_the_default),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
