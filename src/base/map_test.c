#include "base/map.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "base/ident.h"
#include "base/mem.h"

static void absent_keys_are_null(void **state)
{
    (void)state;
    struct lb_map m;
    lb_map_init(&m);
    assert_null(lb_map_get(&m, lb_slice_str("a")));
    assert_null(lb_map_del(&m, lb_slice_str("a")));
    size_t i = 0;
    assert_null(lb_map_next(&m, &i));
    lb_map_fini(&m);
}

static void put_replaces_and_del_returns_the_value(void **state)
{
    (void)state;
    struct lb_map m;
    lb_map_init(&m);
    int one;
    int two;
    assert_int_equal(lb_map_put(&m, lb_slice_str("k"), &one), 0);
    assert_int_equal(lb_map_put(&m, lb_slice_str("k"), &two), 0);
    assert_int_equal(m.n, 1);
    assert_ptr_equal(lb_map_get(&m, lb_slice_str("k")), &two);
    assert_ptr_equal(lb_map_del(&m, lb_slice_str("k")), &two);
    assert_int_equal(m.n, 0);
    assert_null(lb_map_get(&m, lb_slice_str("k")));
    lb_map_fini(&m);
}

static void keys_are_bytes_and_may_be_empty(void **state)
{
    (void)state;
    struct lb_map m;
    lb_map_init(&m);
    int v[3];
    assert_int_equal(lb_map_put(&m, lb_slice("a\0b", 3), &v[0]), 0);
    assert_int_equal(lb_map_put(&m, lb_slice("a\0c", 3), &v[1]), 0);
    assert_int_equal(lb_map_put(&m, lb_slice(NULL, 0), &v[2]), 0);
    assert_ptr_equal(lb_map_get(&m, lb_slice("a\0b", 3)), &v[0]);
    assert_ptr_equal(lb_map_get(&m, lb_slice("a\0c", 3)), &v[1]);
    assert_ptr_equal(lb_map_get(&m, lb_slice("", 0)), &v[2]);
    assert_null(lb_map_get(&m, lb_slice("a", 1)));
    lb_map_fini(&m);
}

#define N_KEYS 600

/* Against an array that is obviously right; backward-shift deletion is where such maps go wrong. */
static void a_random_history_matches_a_plain_array(void **state)
{
    (void)state;
    static char key[N_KEYS][16];
    static void *want[N_KEYS];
    struct lb_map m;
    lb_map_init(&m);
    for (int i = 0; i < N_KEYS; i++)
        (void)snprintf(key[i], sizeof(key[i]), "k%d", i);
    memset(want, 0, sizeof(want));
    size_t n = 0;
    for (int step = 0; step < 60000; step++) {
        size_t i = lb_rand_below(N_KEYS);
        struct lb_slice k = lb_slice_str(key[i]);
        if (lb_rand_below(2)) {
            assert_int_equal(lb_map_put(&m, k, key[i]), 0);
            n += want[i] == NULL;
            want[i] = key[i];
        } else {
            assert_ptr_equal(lb_map_del(&m, k), want[i]);
            n -= want[i] != NULL;
            want[i] = NULL;
        }
        assert_int_equal(m.n, n);
        size_t probe = lb_rand_below(N_KEYS);
        assert_ptr_equal(lb_map_get(&m, lb_slice_str(key[probe])), want[probe]);
    }
    size_t seen = 0;
    size_t at = 0;
    while (lb_map_next(&m, &at))
        seen++;
    assert_int_equal(seen, n);
    lb_map_fini(&m);
}

static void a_map_that_cannot_grow_stays_as_it_was(void **state)
{
    (void)state;
    static char key[64][24];
    struct lb_map m;
    lb_map_init(&m);
    size_t n = 0;
    lb_mem_fail_after(2); /* the first table, and no other */
    for (; n < LB_ARRAY_LEN(key); n++) {
        (void)snprintf(key[n], sizeof(key[n]), "k%zu", n);
        if (lb_map_put(&m, lb_slice_str(key[n]), key[n]) < 0)
            break;
    }
    assert_int_equal(lb_map_put(&m, lb_slice_str("more"), key), -LADE_ENOMEM);
    lb_mem_fail_after(0);
    assert_in_range(n, 1, LB_ARRAY_LEN(key) - 1);
    assert_int_equal(m.n, n);
    for (size_t i = 0; i < n; i++)
        assert_ptr_equal(lb_map_get(&m, lb_slice_str(key[i])), key[i]);
    assert_int_equal(lb_map_put(&m, lb_slice_str("more"), key), 0);
    lb_map_fini(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(absent_keys_are_null),
        cmocka_unit_test(put_replaces_and_del_returns_the_value),
        cmocka_unit_test(keys_are_bytes_and_may_be_empty),
        cmocka_unit_test(a_random_history_matches_a_plain_array),
        cmocka_unit_test(a_map_that_cannot_grow_stays_as_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
