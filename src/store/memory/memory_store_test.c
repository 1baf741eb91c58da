/* What the contract suite cannot see: the sorted set under the store, and which opens share one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <string.h>

#include "base/base.h"
#include "store/memory/memory_order.h"
#include "store/memory/memory_store.h"

#define N ((size_t)1000)

static void order_stays_sorted_under_adds_and_deletes(void **state)
{
    (void)state;
    static struct ls_memory_node node[N];
    static bool in[N];
    struct ls_memory_order o = {0};
    size_t n = 0;
    memset(in, 0, sizeof(in));
    for (size_t step = 0; step < 20 * N; step++) {
        size_t i = step * 7919 % 10007 % N;
        if (in[i])
            ls_memory_order_del(&o, &node[i]);
        else
            ls_memory_order_add(
                &o, &node[i],
                (struct ls_memory_key){(int64_t)(i / 10) - 50, (int64_t)i, {NULL, 0}});
        in[i] = !in[i];
        n = in[i] ? n + 1 : n - 1;
        assert_int_equal(o.n, n);
    }
    struct ls_memory_node *at = ls_memory_order_first(&o);
    for (size_t i = 0; i < N; i++) {
        if (!in[i])
            continue;
        assert_ptr_equal(at, &node[i]);
        at = ls_memory_order_after(&o, at->key);
    }
    assert_null(at);
}

static int measure_depth(const struct ls_memory_node *t)
{
    if (!t)
        return 0;
    int left = measure_depth(t->left), right = measure_depth(t->right);
    return 1 + LB_MAX(left, right);
}

static void order_of_keys_in_sequence_stays_flat(void **state)
{
    (void)state;
    static struct ls_memory_node node[16 * N];
    struct ls_memory_order o = {0};
    for (size_t i = 0; i < LB_ARRAY_LEN(node); i++)
        ls_memory_order_add(&o, &node[i], (struct ls_memory_key){4, (int64_t)i, {NULL, 0}});
    assert_true(measure_depth(o.root) < 60); /* 14 at best, about 33 expected */
}

static struct lq_store *open_url(const char *url)
{
    static const struct lq_store_ops *const table[] = {&ls_memory_ops};
    struct lq_store *s = NULL;
    lade_err err;
    const struct lq_store_config config = {.url = url, .ns = "lade", .body_max = 100};
    assert_int_equal(lq_store_open(&s, table, 1, &config, &err), 0);
    return s;
}

static size_t count_queues(struct lq_store *s)
{
    struct lb_arena arena = {0};
    const char **name;
    lade_err err;
    size_t n = 99;
    assert_int_equal(s->ops->queues(s, &arena, &name, &n, &err), 0);
    lb_arena_fini(&arena);
    return n;
}

static void only_opens_of_the_same_name_share_a_store(void **state)
{
    (void)state;
    static const char *const url[] = {"memory:a", "memory:a", "memory:b", "memory:", "memory:"};
    static const size_t seen[] = {1, 1, 0, 1, 0};
    struct lq_store *s[LB_ARRAY_LEN(url)];
    lade_err err;
    for (size_t i = 0; i < LB_ARRAY_LEN(url); i++)
        s[i] = open_url(url[i]);
    assert_int_equal(s[0]->ops->pause(s[0], "q", true, &err), 0);
    assert_int_equal(s[3]->ops->pause(s[3], "q", true, &err), 0);
    for (size_t i = 0; i < LB_ARRAY_LEN(url); i++)
        assert_int_equal(count_queues(s[i]), seen[i]);
    lq_store_close(s[0]);
    assert_int_equal(count_queues(s[1]), 1);
    lq_store_close(s[1]);
    s[0] = open_url("memory:a"); /* the last close forgot it */
    assert_int_equal(count_queues(s[0]), 0);
    lq_store_close(s[0]);
    for (size_t i = 2; i < LB_ARRAY_LEN(url); i++)
        lq_store_close(s[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(order_stays_sorted_under_adds_and_deletes),
        cmocka_unit_test(order_of_keys_in_sequence_stays_flat),
        cmocka_unit_test(only_opens_of_the_same_name_share_a_store),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
