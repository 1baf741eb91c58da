#include "base/list.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct item {
    int value;
    struct lb_list node;
};

static int sum_of(struct lb_list *l)
{
    int digits = 0;
    lb_list_each (it, l)
        digits = digits * 10 + LB_CONTAINER_OF(it, struct item, node)->value;
    return digits;
}

static void nodes_stand_where_they_were_put(void **state)
{
    (void)state;
    struct lb_list l;
    lb_list_init(&l);
    assert_true(lb_list_is_empty(&l));
    assert_null(lb_list_pop(&l));
    struct item a = {1, {0}};
    struct item b = {2, {0}};
    struct item c = {3, {0}};
    lb_list_push_back(&l, &b.node);
    lb_list_push_back(&l, &c.node);
    lb_list_push_front(&l, &a.node);
    assert_int_equal(sum_of(&l), 123);
    lb_list_del(&b.node);
    assert_int_equal(sum_of(&l), 13);
    lb_list_del(&b.node); /* loose: deleting again is nothing */
    lb_list_insert_after(&a.node, &b.node);
    assert_int_equal(sum_of(&l), 123);
    assert_ptr_equal(lb_list_pop(&l), &a.node);
    assert_int_equal(sum_of(&l), 23);
}

static void the_safe_walk_survives_deletion(void **state)
{
    (void)state;
    struct lb_list l;
    lb_list_init(&l);
    struct item item[6];
    for (int i = 0; i < 6; i++) {
        item[i].value = i;
        lb_list_push_back(&l, &item[i].node);
    }
    lb_list_each_safe (it, &l) {
        if (LB_CONTAINER_OF(it, struct item, node)->value % 2 == 0)
            lb_list_del(it);
    }
    assert_int_equal(sum_of(&l), 135);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_stand_where_they_were_put),
        cmocka_unit_test(the_safe_walk_survives_deletion),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
