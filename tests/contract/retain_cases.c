/* retain_cases.c - contract: how many ended jobs are kept, and how long */
#include "contract.h"

/* Leads a job to an end, in a millisecond of its own, so that which is the oldest is never in doubt. */
static void end_job(const char *queue, const char *id, enum lade_state state)
{
    (void)ct_bring(queue, id, state);
    ct_step(2);
}

static size_t trim(const char *lanes, size_t max, int expected)
{
    size_t n = 0;
    EXPECT(expected, lq_trim(ct.s, ct_lanes(lanes), max, &n, &ct.err));
    assert_true(n <= max);
    return n;
}

/* chronos 17, 26; chasqui 40 */
static void only_the_newest_of_each_end_are_kept(void **state)
{
    (void)state;

    static const enum lade_state end[] = {LADE_STATE_COMPLETED, LADE_STATE_CANCELLED,
                                          LADE_STATE_DEAD};

    ct.config.keep_completed.count = 2;
    ct.config.keep_dead.count = 3;
    ct_reopen();
    ct_join("w", "q");
    for (int i = 0; i < 5; i++) {
        for (size_t e = 0; e < 3; e++)
            end_job("q", ct_format("%c%d", 'a' + (int)e, i), end[e]);
    }
    assert_string_equal(ct_list("q", LADE_STATE_COMPLETED, 10), "a3 a4");
    assert_string_equal(ct_list("q", LADE_STATE_CANCELLED, 10), "b3 b4");
    assert_string_equal(ct_list("q", LADE_STATE_DEAD, 10), "c2 c3 c4");
    assert_int_equal(ct_info("q").total_completed, 5);
    assert_int_equal(ct_info("q").total_dead, 5);
}

/* chronos 27 */
static void removed_by_retention_is_gone_with_its_id(void **state)
{
    (void)state;
    ct.config.keep_completed.count = 1;
    ct_reopen();
    ct_join("w", "q");
    end_job("q", "a", LADE_STATE_COMPLETED);
    end_job("q", "b", LADE_STATE_COMPLETED);
    assert_int_equal(ct_state("q", "a"), -1);
    ct_add("q", "a");
    assert_int_equal(ct_state("q", "a"), LADE_STATE_READY);
}

static void retention_counts_each_queue_apart(void **state)
{
    (void)state;
    ct.config.keep_completed.count = 1;
    ct_reopen();
    ct_join("w", "q r");
    end_job("q", "a", LADE_STATE_COMPLETED);
    end_job("r", "b", LADE_STATE_COMPLETED);
    assert_int_equal(ct_state("q", "a"), LADE_STATE_COMPLETED);
    assert_int_equal(ct_state("r", "b"), LADE_STATE_COMPLETED);
}

static void retention_holds_within_one_call_too(void **state)
{
    (void)state;
    ct.config.keep_completed.count = 2;
    ct_reopen();
    ct_join("w", "q");
    ct_add("q", "a b c d e");
    assert_int_equal(ct_take("w", "q", 5), 5);
    struct lq_settle it[5];
    for (size_t i = 0; i < 5; i++)
        it[i] = ct_settling("q", &ct.got.job[i], LQ_TO_COMPLETED);
    EXPECT(0, lq_settle_take(ct.s, it, 5, NULL, NULL, &ct.err));
    assert_int_equal(ct_count("q", LADE_STATE_COMPLETED), 2);
    assert_int_equal(ct_info("q").total_completed, 5);
}

/* chronos 3 */
static void count_of_zero_keeps_none_but_counts_them(void **state)
{
    (void)state;
    ct.config.keep_completed.count = 0;
    ct.config.keep_dead.count = 0;
    ct_reopen();
    ct_join("w", "q");
    end_job("q", "a", LADE_STATE_COMPLETED);
    end_job("q", "b", LADE_STATE_CANCELLED);
    end_job("q", "c", LADE_STATE_DEAD);
    lade_queue_info info = ct_info("q");
    for (int i = 0; i < LADE_N_STATES; i++)
        assert_int_equal(info.count[i], 0);
    assert_int_equal(info.total_completed, 1);
    assert_int_equal(info.total_dead, 1);
    ct_add("q", "a b c");
}

/* chronos 17, 26 */
static void trim_removes_what_is_too_old(void **state)
{
    (void)state;
    ct.config.keep_completed.age_ms = 60;
    ct.config.keep_dead.age_ms = CT_HOUR;
    ct_reopen();
    ct_join("w", "q");
    end_job("q", "a", LADE_STATE_COMPLETED);
    end_job("q", "b", LADE_STATE_CANCELLED);
    end_job("q", "c", LADE_STATE_DEAD);
    ct_step(70);
    assert_int_equal(trim("q", 100, LADE_DONE), 2);
    assert_int_equal(ct_state("q", "a"), -1);
    assert_int_equal(ct_state("q", "b"), -1);
    assert_int_equal(ct_state("q", "c"), LADE_STATE_DEAD);
    assert_int_equal(trim("q", 100, LADE_DONE), 0);
}

static void trim_leaves_what_is_young_and_what_has_not_ended(void **state)
{
    (void)state;
    ct.config.keep_completed.age_ms = ct.config.keep_dead.age_ms = 60000;
    ct_reopen();
    ct_join("w", "q");
    for (int i = 0; i < LADE_N_STATES; i++) {
        (void)ct_bring("q", lade_state_name((enum lade_state)i), (enum lade_state)i);
        if (i == LADE_STATE_READY) /* out of the way of the next */
            assert_int_equal(ct_take("w", "q", 1), 1);
    }
    ct_add("q", "last");
    assert_int_equal(trim("q", 100, LADE_DONE), 0);
    for (int i = 0; i < LADE_N_STATES; i++)
        assert_int_equal(ct_count("q", (enum lade_state)i), 1 + (i == LADE_STATE_ACTIVE));
}

/* chronos 17 */
static void trim_is_bounded_and_says_when_there_is_more(void **state)
{
    (void)state;
    ct.config.keep_completed.age_ms = 60;
    ct_reopen();
    ct_join("w", "q r");
    for (int i = 0; i < 5; i++)
        (void)ct_bring(i % 2 ? "q" : "r", ct_format("a%d", i), LADE_STATE_COMPLETED);
    ct_step(70);
    assert_int_equal(trim("q r", 2, LADE_MORE), 2);
    assert_int_equal(trim("q r", 2, LADE_MORE), 2);
    assert_int_equal(trim("q r", 2, LADE_DONE), 1);
    assert_int_equal(trim("q r", 2, LADE_DONE), 0);
}

/* Jobs that an operator ended are beyond the count until the next trim. */
static void trim_keeps_the_count_of_what_operators_ended(void **state)
{
    (void)state;
    size_t n = 0;
    ct.config.keep_completed.count = 2;
    ct.config.keep_dead.count = 1;
    ct_reopen();
    for (int i = 0; i < 5; i++) {
        const char *id = ct_format("a%d", i);
        ct_add("q", id);
        assert_int_equal(ct_act("q", i < 3 ? LADE_JOB_CANCEL : LADE_JOB_KILL, id), LADE_DONE);
        ct_step(2);
    }
    while (lq_trim(ct.s, ct_lanes("q"), 1, &n, &ct.err) == LADE_MORE)
        assert_int_equal(n, 1);
    assert_string_equal(ct_list("q", LADE_STATE_CANCELLED, 10), "a1 a2");
    assert_string_equal(ct_list("q", LADE_STATE_DEAD, 10), "a4");
}

static void trim_of_a_queue_that_is_not_there_does_nothing(void **state)
{
    (void)state;
    assert_int_equal(trim("nowhere", 10, LADE_DONE), 0);
}

static const struct CMUnitTest tests[] = {
    CT_TEST(only_the_newest_of_each_end_are_kept),
    CT_TEST(removed_by_retention_is_gone_with_its_id),
    CT_TEST(retention_counts_each_queue_apart),
    CT_TEST(retention_holds_within_one_call_too),
    CT_TEST(count_of_zero_keeps_none_but_counts_them),
    CT_TEST(trim_removes_what_is_too_old),
    CT_TEST(trim_leaves_what_is_young_and_what_has_not_ended),
    CT_TEST(trim_is_bounded_and_says_when_there_is_more),
    CT_TEST(trim_keeps_the_count_of_what_operators_ended),
    CT_TEST(trim_of_a_queue_that_is_not_there_does_nothing),
};

CT_GROUP(ct_retain_group, tests);
