#include "base/tally.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "base/mem.h"

static uint64_t hash_of(unsigned i)
{
    char text[16];
    (void)snprintf(text, sizeof(text), "k%u", i);
    return lb_tally_hash(lb_slice_str(text));
}

static void each_is_counted_by_itself(void **state)
{
    (void)state;
    struct lb_tally t = {0};
    assert_int_equal(lb_tally_get(&t, hash_of(1)), 0);
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < 10000; i++)
            *lb_tally_at(&t, hash_of(i)) += i % 7;
    }
    assert_int_equal(t.n, 10000);
    for (unsigned i = 0; i < 10000; i++)
        assert_int_equal(lb_tally_get(&t, hash_of(i)), i % 7 * 3);
    assert_int_equal(lb_tally_get(&t, hash_of(10000)), 0);
    lb_tally_clear(&t);
    assert_int_equal(lb_tally_get(&t, hash_of(5)), 0);
    lb_tally_fini(&t);
}

static void it_has_a_bound(void **state)
{
    (void)state;
    struct lb_tally t = {0};
    for (unsigned i = 0; i < LB_TALLY_MAX; i++)
        assert_non_null(lb_tally_at(&t, hash_of(i)));
    assert_null(lb_tally_at(&t, hash_of(LB_TALLY_MAX)));
    assert_non_null(lb_tally_at(&t, hash_of(7)));
    lb_tally_fini(&t);
}

static void without_memory_it_stays_as_it_was(void **state)
{
    (void)state;
    struct lb_tally t = {0};
    lb_mem_fail_after(2);
    unsigned n = 0;
    while (n < 1000 && lb_tally_at(&t, hash_of(n)))
        n++;
    lb_mem_fail_after(0);
    assert_in_range(n, 1, 999);
    assert_int_equal(t.n, n);
    assert_non_null(lb_tally_at(&t, hash_of(n)));
    lb_tally_fini(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_is_counted_by_itself),
        cmocka_unit_test(it_has_a_bound),
        cmocka_unit_test(without_memory_it_stays_as_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
