#include "base/buf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"

static void what_is_added_stands_in_order(void **state)
{
    (void)state;
    struct lb_buf b;
    lb_buf_init(&b);
    lb_buf_add_str(&b, "one ");
    lb_buf_add_byte(&b, 'x');
    lb_buf_add(&b, "\0y", 2);
    lb_buf_add(&b, NULL, 0);
    lb_buf_add_fmt(&b, " %d-%s", 42, "z");
    assert_false(b.failed);
    struct lb_slice s = lb_buf_slice(&b);
    assert_int_equal(s.n, 12);
    assert_memory_equal(s.p, "one x\0y 42-z", 12);
    lb_buf_fini(&b);
}

static void it_grows_over_any_size(void **state)
{
    (void)state;
    struct lb_buf b;
    lb_buf_init(&b);
    for (unsigned i = 0; i < 100000; i++)
        lb_buf_add_byte(&b, (uint8_t)i);
    assert_int_equal(b.n, 100000);
    for (unsigned i = 0; i < 100000; i++)
        assert_int_equal(b.p[i], (uint8_t)i);
    lb_buf_fini(&b);
}

static void reserve_gives_room_that_counts_only_when_used(void **state)
{
    (void)state;
    struct lb_buf b;
    lb_buf_init(&b);
    uint8_t *to = lb_buf_reserve(&b, 100);
    assert_non_null(to);
    assert_int_equal(b.n, 0);
    to[0] = 'a';
    to[1] = 'b';
    to[2] = 'c';
    b.n += 3;
    lb_buf_add_str(&b, "def");
    assert_memory_equal(b.p, "abcdef", 6);
    assert_non_null(lb_buf_reserve(&b, 0));
    lb_buf_fini(&b);
}

static void clear_keeps_the_memory(void **state)
{
    (void)state;
    struct lb_buf b;
    lb_buf_init(&b);
    lb_buf_add_str(&b, "some text that is longer than nothing");
    lb_buf_clear(&b);
    assert_int_equal(b.n, 0);
    lb_mem_fail_after(1);
    lb_buf_add_str(&b, "again");
    lb_mem_fail_after(0);
    assert_false(b.failed);
    lb_buf_fini(&b);
}

static void a_failed_buffer_ignores_the_rest_until_cleared(void **state)
{
    (void)state;
    struct lb_buf b;
    lb_buf_init(&b);
    lb_buf_add_str(&b, "kept");
    lb_mem_fail_after(1);
    lb_buf_add_fmt(&b, "%200s", "too much");
    lb_mem_fail_after(0);
    assert_true(b.failed);
    lb_buf_add_str(&b, "!");
    assert_int_equal(b.n, 4);
    assert_null(lb_buf_reserve(&b, 1));
    lb_buf_clear(&b);
    lb_buf_add_str(&b, "fresh");
    assert_false(b.failed);
    assert_int_equal(b.n, 5);
    lb_buf_fini(&b);
}

static void a_size_that_overflows_is_a_failure(void **state)
{
    (void)state;
    struct lb_buf b;
    lb_buf_init(&b);
    lb_buf_add_str(&b, "x");
    assert_null(lb_buf_reserve(&b, SIZE_MAX));
    assert_true(b.failed);
    lb_buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_added_stands_in_order),
        cmocka_unit_test(it_grows_over_any_size),
        cmocka_unit_test(reserve_gives_room_that_counts_only_when_used),
        cmocka_unit_test(clear_keeps_the_memory),
        cmocka_unit_test(a_failed_buffer_ignores_the_rest_until_cleared),
        cmocka_unit_test(a_size_that_overflows_is_a_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
