#include "base/ident.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* chasqui 1 */
static void ids_are_26_characters_of_crockford(void **state)
{
    (void)state;
    char id[LB_ULID_LEN + 1];
    lb_ulid(id, 1700000000123456789);
    assert_int_equal(strlen(id), LB_ULID_LEN);
    assert_int_equal(strspn(id, "0123456789ABCDEFGHJKMNPQRSTVWXYZ"), LB_ULID_LEN);
}

/* The time part by hand: 1469918176385 ms is 01ARYZ6S41, the example of the ULID specification. */
static void the_time_comes_first(void **state)
{
    (void)state;
    char id[LB_ULID_LEN + 1];
    lb_ulid(id, INT64_C(1469918176385) * 1000000);
    assert_memory_equal(id, "01ARYZ6S41", 10);
}

static void ids_sort_by_time_as_text(void **state)
{
    (void)state;
    char last[LB_ULID_LEN + 1];
    lb_ulid(last, 0);
    for (int64_t ms = 1; ms < INT64_C(1) << 42; ms *= 3) {
        char id[LB_ULID_LEN + 1];
        lb_ulid(id, ms * 1000000);
        assert_true(strcmp(last, id) < 0);
        memcpy(last, id, sizeof(last));
    }
}

static void ids_of_one_millisecond_count_up(void **state)
{
    (void)state;
    char last[LB_ULID_LEN + 1], id[LB_ULID_LEN + 1];
    lb_ulid(last, INT64_C(1700000000000) * 1000000);
    for (int i = 0; i < 5 * LB_ULID_BLOCK; i++) {
        if (i % 1500 == 77)
            lb_ulid_new_block();
        lb_ulid(id, INT64_C(1700000000000) * 1000000 + i % 1000000);
        assert_true(strcmp(last, id) < 0);
        memcpy(last, id, sizeof(last));
    }
}

static void ids_of_a_batch_share_a_block_and_follow_each_other(void **state)
{
    (void)state;
    static const char digit[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    char id[LB_ULID_LEN + 1], block[LB_ULID_LEN + 1];
    for (int round = 0; round < 3; round++) {
        char before[LB_ULID_LEN + 1];
        lb_ulid(before, INT64_C(1700000000000) * 1000000);
        lb_ulid_new_block();
        for (int i = 0; i < LB_ULID_BLOCK; i++) {
            lb_ulid(id, INT64_C(1700000000000) * 1000000);
            if (i == 0)
                memcpy(block, id, sizeof(block));
            assert_memory_equal(id, block, LB_ULID_LEN - 2);
            assert_int_equal(id[LB_ULID_LEN - 2], digit[i / 32]);
            assert_int_equal(id[LB_ULID_LEN - 1], digit[i % 32]);
        }
        assert_memory_not_equal(before, block, LB_ULID_LEN - 2);
        lb_ulid(id, INT64_C(1700000000000) * 1000000);
        assert_memory_not_equal(id, block, LB_ULID_LEN - 2);
    }
}

static int compare_ids(const void *a, const void *b)
{
    return memcmp(a, b, LB_ULID_LEN);
}

static void ids_of_one_millisecond_differ(void **state)
{
    (void)state;

    enum { N = 20000 };

    static char id[N][LB_ULID_LEN + 1];
    for (size_t i = 0; i < N; i++)
        lb_ulid(id[i], 0);
    qsort(id, N, sizeof(id[0]), compare_ids);
    for (size_t i = 1; i < N; i++)
        assert_memory_not_equal(id[i - 1], id[i], LB_ULID_LEN);
}

static void below_stays_below_and_reaches_all(void **state)
{
    (void)state;
    unsigned seen[7] = {0};
    for (int i = 0; i < 7000; i++) {
        uint64_t v = lb_rand_below(7);
        assert_true(v < 7);
        seen[v]++;
    }
    for (int i = 0; i < 7; i++)
        assert_in_range(seen[i], 700, 1300); /* 1000 expected; 10 sigma */
    assert_int_equal(lb_rand_below(1), 0);
}

/* A child that went on with its parent's state would make the same job ids. */
static void a_forked_child_draws_other_numbers(void **state)
{
    (void)state;
    (void)lb_rand(); /* seeded before the fork */
    int end[2];
    assert_int_equal(pipe(end), 0);
    char id[LB_ULID_LEN + 1], childs_id[LB_ULID_LEN + 1];
    lb_ulid(id, 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        uint64_t v = lb_rand();
        lb_ulid(id, 0);
        bool sent = write(end[1], &v, sizeof(v)) == (ssize_t)sizeof(v) &&
                    write(end[1], id, sizeof(id)) == (ssize_t)sizeof(id);
        _exit(sent ? 0 : 1);
    }
    uint64_t childs = 0;
    assert_int_equal(read(end[0], &childs, sizeof(childs)), sizeof(childs));
    assert_int_equal(read(end[0], childs_id, sizeof(childs_id)), sizeof(childs_id));
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_true(childs != lb_rand());
    lb_ulid(id, 0);
    assert_memory_not_equal(childs_id, id, LB_ULID_LEN - 2);
    (void)close(end[0]);
    (void)close(end[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_are_26_characters_of_crockford),
        cmocka_unit_test(the_time_comes_first),
        cmocka_unit_test(ids_sort_by_time_as_text),
        cmocka_unit_test(ids_of_one_millisecond_differ),
        cmocka_unit_test(ids_of_one_millisecond_count_up),
        cmocka_unit_test(ids_of_a_batch_share_a_block_and_follow_each_other),
        cmocka_unit_test(below_stays_below_and_reaches_all),
        cmocka_unit_test(a_forked_child_draws_other_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
