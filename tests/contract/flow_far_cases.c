/*
 * flow_far_cases.c - contract: workflows whose steps lie in several queues, which on a cluster are several slots
 *
 * Numbers behind "chronos" are those of the comparison with chronos-go.
 */
#include "flow_kit.h"

/* chronos 70 */
static void chain_over_three_queues_goes_from_one_to_the_next(void **state)
{
    (void)state;
    ct_join("w", "a b c");
    fl_add("f", "a b<0 c<1 a<2");
    assert_string_equal(fl_show("f"), "running: qwww");
    fl_end("a", "f~0", LQ_TO_COMPLETED);
    assert_string_equal(fl_show("f"), "running: cqww");
    fl_end("b", "f~1", LQ_TO_COMPLETED);
    assert_string_equal(fl_inputs("f", 2), "1:f~1");
    fl_end("c", "f~2", LQ_TO_COMPLETED);
    fl_end("a", "f~3", LQ_TO_COMPLETED);
    assert_string_equal(fl_show("f"), "completed: cccc");
    assert_int_equal(ct_take("w", "a b c", 5), 0);
}

static void first_steps_may_all_lie_elsewhere(void **state)
{
    (void)state;
    ct_join("w", "a b c");
    fl_add("f", "b c a<0,1");
    fl_end("c", "f~1", LQ_TO_COMPLETED);
    fl_end("b", "f~0", LQ_TO_COMPLETED);
    fl_end("a", "f~2", LQ_TO_COMPLETED);
    assert_string_equal(fl_show("f"), "completed: ccc");
}

/* chronos 52, 70 */
static void callback_elsewhere_sees_results_of_all_queues_in_order(void **state)
{
    (void)state;
    ct_join("w", "a b c");
    fl_add("f", "a b c b d<0,1,2,3");
    ct_join("v", "d");
    fl_end("c", "f~2", LQ_TO_COMPLETED);
    fl_end("b", "f~1", LQ_TO_COMPLETED);
    fl_end("b", "f~3", LQ_TO_COMPLETED);
    assert_int_equal(ct_take("v", "d", 5), 0);
    fl_end("a", "f~0", LQ_TO_COMPLETED);
    assert_string_equal(fl_inputs("f", 4), "0:f~0 1:f~1 2:f~2 3:f~3");
    struct lq_leased j = ct_take_one("v", "d");
    assert_int_equal(fl_settle("d", &j, LQ_TO_COMPLETED), 0);
    assert_string_equal(fl_show("f"), "completed: ccccc");
}

/* chronos 53, 70 */
static void shapes_nest_over_queues(void **state)
{
    (void)state;
    static const char *const order[][2] = {{"a", "f~0"}, {"c", "f~2"}, {"b", "f~1"}, {"a", "f~3"},
                                           {"b", "f~4"}, {"c", "f~5"}, {"a", "f~6"}};
    ct_join("w", "a b c");
    /* a chain of a group with its callback, a group, and a last step */
    fl_add("f", "a b<0 c<0 a<1,2 b<3 c<3 a<4,5");
    for (size_t i = 0; i < LB_ARRAY_LEN(order); i++)
        fl_end(order[i][0], order[i][1], LQ_TO_COMPLETED);
    assert_string_equal(fl_show("f"), "completed: ccccccc");
}

static void steps_of_several_queues_are_settled_and_followed_by_one_call(void **state)
{
    (void)state;
    ct_join("w", "a b c");
    fl_add("f", "a b c c<0,1,2");
    assert_int_equal(ct_take("w", "a b c", 5), 3);
    struct lq_settle it[3];
    static const char *const queue[] = {"a", "b", "c"};
    for (uint32_t i = 0; i < 3; i++)
        it[i] = ct_settling(queue[ct.got.job[i].lane], &ct.got.job[i], LQ_TO_COMPLETED);
    EXPECT(0, lq_settle_take(ct.s, it, 3, NULL, NULL, &ct.err));
    fl_end("c", "f~3", LQ_TO_COMPLETED);
    assert_string_equal(fl_show("f"), "completed: cccc");
}

static void death_elsewhere_fails_the_flow_and_its_handler_runs_elsewhere(void **state)
{
    (void)state;
    ct_join("w", "a b c");
    fl_add("f", "a b<0 a<1 !c");
    fl_end("a", "f~0", LQ_TO_COMPLETED);
    fl_end("b", "f~1", LQ_TO_DEAD);
    assert_string_equal(fl_show("f"), "failed: cdw!q");
    fl_end("c", "f~3", LQ_TO_COMPLETED);
    assert_int_equal(ct_act("b", LADE_JOB_RETRY, "f~1"), LADE_DONE);
    assert_string_equal(fl_show("f"), "running: cqw!c");
    fl_end("b", "f~1", LQ_TO_COMPLETED);
    fl_end("a", "f~2", LQ_TO_COMPLETED);
    assert_string_equal(fl_show("f"), "completed: ccc!c");
}

static void siblings_elsewhere_are_cancelled_when_asked(void **state)
{
    (void)state;
    struct lq_flow f = fl_draw("f", "a b c a<0,1,2");
    ct_join("w", "a b c");
    f.cancel_siblings = true;
    assert_int_equal(fl_put(f), 0);
    fl_end("b", "f~1", LQ_TO_DEAD);
    assert_string_equal(fl_show("f"), "failed: xdxw");
    assert_int_equal(ct_state("a", "f~0"), LADE_STATE_CANCELLED);
    assert_int_equal(ct_state("c", "f~2"), LADE_STATE_CANCELLED);
}

static void cancel_and_retry_reach_the_steps_of_all_queues(void **state)
{
    (void)state;
    ct_join("w", "a b c");
    fl_add("f", "a b c a<0,1,2");
    struct lq_leased held = fl_take("c", "f~2");
    assert_int_equal(fl_act(LADE_FLOW_CANCEL, "f"), LADE_DONE);
    assert_string_equal(fl_show("f"), "cancelled: xxxx");
    assert_int_equal(ct_state("a", "f~0"), LADE_STATE_CANCELLED);
    assert_int_equal(ct_state("b", "f~1"), LADE_STATE_CANCELLED);
    assert_string_equal(ct_stops("w", "a b c", 5), "f~2");
    assert_int_equal(fl_settle("c", &held, LQ_TO_CANCELLED), 0);
    assert_int_equal(fl_act(LADE_FLOW_RETRY, "f"), LADE_DONE);
    assert_string_equal(fl_show("f"), "running: qqqw");
    fl_end("a", "f~0", LQ_TO_COMPLETED);
    fl_end("b", "f~1", LQ_TO_COMPLETED);
    fl_end("c", "f~2", LQ_TO_COMPLETED);
    fl_end("a", "f~3", LQ_TO_COMPLETED);
    assert_string_equal(fl_show("f"), "completed: cccc");
}

static void retry_puts_steps_elsewhere_anew_when_their_jobs_are_gone(void **state)
{
    (void)state;
    size_t n = 0;
    ct_join("w", "a b");
    fl_add("f", "a b<0 a<1");
    fl_end("a", "f~0", LQ_TO_COMPLETED);
    fl_end("b", "f~1", LQ_TO_DEAD);
    EXPECT(0, ct.s->ops->purge(ct.s, "b", LADE_STATE_DEAD, 10, &n, &ct.err));
    assert_int_equal(ct_state("b", "f~1"), -1);
    assert_int_equal(fl_act(LADE_FLOW_RETRY, "f"), LADE_DONE);
    fl_end("b", "f~1", LQ_TO_COMPLETED);
    fl_end("a", "f~2", LQ_TO_COMPLETED);
    assert_string_equal(fl_show("f"), "completed: ccc");
}

static void removed_flow_leaves_its_jobs_in_all_queues(void **state)
{
    (void)state;
    ct_join("w", "a b");
    fl_add("f", "a b a<0,1");
    assert_int_equal(fl_act(LADE_FLOW_REMOVE, "f"), LADE_DONE);
    assert_string_equal(fl_show("f"), "absent");
    fl_end("a", "f~0", LQ_TO_COMPLETED);
    fl_end("b", "f~1", LQ_TO_COMPLETED);
    assert_int_equal(ct_take("w", "a b", 5), 0);
    assert_string_equal(fl_list(10), "");
    fl_add("f", "b a<0"); /* its id is free again */
    assert_string_equal(fl_show("f"), "running: qw");
}

static void flow_of_a_known_id_is_a_duplicate_wherever_it_begins(void **state)
{
    (void)state;
    struct lq_flow f = fl_draw("f", "a b<0"), other = fl_draw("f", "c a<0");
    assert_int_equal(fl_put(f), 0);
    assert_int_equal(fl_put(other), LADE_DUPLICATE);
    assert_int_equal(fl_put(f), LADE_DUPLICATE);
    assert_string_equal(fl_list(10), "f");
    assert_int_equal(ct_state("c", "f~0"), -1);
}

static void flows_of_several_queues_are_listed_newest_first_in_pages(void **state)
{
    (void)state;
    static const char *const first[] = {"a", "b", "c"};
    for (int i = 0; i < 9; i++) {
        const char *queue = first[i % 3];
        fl_add(ct_format("f%d", i), ct_format("%s b<0 c<1", queue));
    }
    assert_string_equal(fl_list(100), "f8 f7 f6 f5 f4 f3 f2 f1 f0");
    assert_string_equal(fl_list(1), "f8 f7 f6 f5 f4 f3 f2 f1 f0");
    assert_string_equal(fl_list(4), "f8 f7 f6 f5 f4 f3 f2 f1 f0");
}

static void ended_flows_of_several_queues_are_kept_up_to_their_number(void **state)
{
    (void)state;
    ct.config.keep_completed.count = 2;
    ct_reopen();
    ct_join("w", "a b");
    for (int i = 0; i < 5; i++) {
        const char *id = ct_format("f%d", i);
        fl_add(id, "a b<0");
        fl_end("a", ct_format("%s~0", id), LQ_TO_COMPLETED);
        fl_end("b", ct_format("%s~1", id), LQ_TO_COMPLETED);
    }
    assert_string_equal(fl_list(10), "f4 f3");
    assert_string_equal(fl_show("f0"), "absent");
}

static const struct CMUnitTest tests[] = {
    CT_TEST(chain_over_three_queues_goes_from_one_to_the_next),
    CT_TEST(first_steps_may_all_lie_elsewhere),
    CT_TEST(callback_elsewhere_sees_results_of_all_queues_in_order),
    CT_TEST(shapes_nest_over_queues),
    CT_TEST(steps_of_several_queues_are_settled_and_followed_by_one_call),
    CT_TEST(death_elsewhere_fails_the_flow_and_its_handler_runs_elsewhere),
    CT_TEST(siblings_elsewhere_are_cancelled_when_asked),
    CT_TEST(cancel_and_retry_reach_the_steps_of_all_queues),
    CT_TEST(retry_puts_steps_elsewhere_anew_when_their_jobs_are_gone),
    CT_TEST(removed_flow_leaves_its_jobs_in_all_queues),
    CT_TEST(flow_of_a_known_id_is_a_duplicate_wherever_it_begins),
    CT_TEST(flows_of_several_queues_are_listed_newest_first_in_pages),
    CT_TEST(ended_flows_of_several_queues_are_kept_up_to_their_number),
};

CT_GROUP(ct_flow_far_group, tests);
