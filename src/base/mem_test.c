#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void zero_bytes_are_a_pointer(void **state)
{
    (void)state;
    void *a = lb_malloc(0);
    void *b = lb_calloc(0, 8);
    void *c = lb_realloc(NULL, 0);
    assert_non_null(a);
    assert_non_null(b);
    assert_non_null(c);
    lb_free(a);
    lb_free(b);
    lb_free(c);
    lb_free(NULL);
}

static void calloc_zeroes(void **state)
{
    (void)state;
    static const uint8_t zero[64];
    uint8_t *p = lb_calloc(8, 8);
    assert_non_null(p);
    assert_memory_equal(p, zero, sizeof(zero));
    lb_free(p);
}

static void the_nth_allocation_and_all_later_ones_fail(void **state)
{
    (void)state;
    lb_mem_fail_after(3);
    void *a = lb_malloc(1);
    char *b = lb_strdup("two");
    assert_non_null(a);
    assert_non_null(b);
    assert_null(lb_malloc(1));
    assert_null(lb_calloc(1, 1));
    assert_null(lb_strdup("x"));
    assert_null(lb_realloc(b, 100));
    assert_string_equal(b, "two"); /* a failed realloc leaves the block */
    assert_int_equal(lb_mem_count(), 6);
    lb_mem_fail_after(0);
    void *c = lb_malloc(1);
    assert_non_null(c);
    lb_free(a);
    lb_free(b);
    lb_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zero_bytes_are_a_pointer),
        cmocka_unit_test(calloc_zeroes),
        cmocka_unit_test(the_nth_allocation_and_all_later_ones_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
