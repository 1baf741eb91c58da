#include "base/arena.h"

#include <setjmp.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "base/mem.h"

static void what_it_gives_is_aligned_and_apart(void **state)
{
    (void)state;
    struct lb_arena a;
    lb_arena_init(&a);
    uint8_t *last = NULL;
    for (size_t size = 0; size < 300; size += 7) {
        uint8_t *p = lb_arena_alloc(&a, size);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % alignof(max_align_t), 0);
        memset(p, (int)size, size);
        if (last)
            assert_int_equal(last[0], (uint8_t)(size - 7)); /* the one before is untouched */
        last = size ? p : NULL;
    }
    lb_arena_fini(&a);
}

static void a_request_larger_than_any_block_is_served(void **state)
{
    (void)state;
    struct lb_arena a;
    lb_arena_init(&a);
    uint8_t *small = lb_arena_alloc(&a, 10);
    uint8_t *large = lb_arena_alloc(&a, (size_t)3 << 20);
    assert_non_null(small);
    assert_non_null(large);
    memset(large, 1, (size_t)3 << 20);
    assert_true(a.used >= ((size_t)3 << 20) + 10);
    lb_arena_fini(&a);
}

static void a_reused_arena_stops_allocating(void **state)
{
    (void)state;
    struct lb_arena a;
    lb_arena_init(&a);
    for (int i = 0; i < 100; i++)
        assert_non_null(lb_arena_alloc(&a, 1000));
    lb_arena_reset(&a);
    assert_int_equal(a.used, 0);
    lb_mem_fail_after(1); /* whatever asks for memory now fails */
    for (int i = 0; i < 50; i++)
        assert_non_null(lb_arena_alloc(&a, 1000));
    lb_mem_fail_after(0);
    lb_arena_fini(&a);
}

static void reset_lets_go_of_one_huge_block(void **state)
{
    (void)state;
    struct lb_arena a;
    lb_arena_init(&a);
    lb_arena_reset(&a); /* nothing yet: fine */
    assert_non_null(lb_arena_alloc(&a, (size_t)8 << 20));
    lb_arena_reset(&a);
    assert_null(a.block);
    assert_non_null(lb_arena_alloc(&a, 1));
    lb_arena_fini(&a);
}

static void copies_end_with_a_nul(void **state)
{
    (void)state;
    struct lb_arena a;
    lb_arena_init(&a);
    struct lb_mut m = lb_arena_copy(&a, "a\0b", 3);
    assert_non_null(m.p);
    assert_int_equal(m.n, 3);
    assert_memory_equal(m.p, "a\0b\0", 4);
    struct lb_mut empty = lb_arena_copy(&a, NULL, 0);
    assert_non_null(empty.p);
    assert_int_equal(empty.n, 0);
    assert_int_equal(empty.p[0], 0);
    assert_string_equal(lb_arena_strdup(&a, "text"), "text");
    lb_arena_fini(&a);
}

static void out_of_memory_is_a_null_and_the_rest_stays(void **state)
{
    (void)state;
    struct lb_arena a;
    lb_arena_init(&a);
    char *kept = lb_arena_strdup(&a, "kept");
    assert_non_null(kept);
    lb_mem_fail_after(1);
    assert_null(lb_arena_alloc(&a, 100000));
    lb_mem_fail_after(0);
    assert_null(lb_arena_alloc(&a, SIZE_MAX));
    assert_null(lb_arena_alloc(&a, SIZE_MAX - 20));
    assert_string_equal(kept, "kept");
    lb_arena_fini(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_it_gives_is_aligned_and_apart),
        cmocka_unit_test(a_request_larger_than_any_block_is_served),
        cmocka_unit_test(a_reused_arena_stops_allocating),
        cmocka_unit_test(reset_lets_go_of_one_huge_block),
        cmocka_unit_test(copies_end_with_a_nul),
        cmocka_unit_test(out_of_memory_is_a_null_and_the_rest_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
