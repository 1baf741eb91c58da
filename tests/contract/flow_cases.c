/* flow_cases.c - contract: nodes of a flow run in their order, each once, with the results of those before them */
#include "flow_kit.h"

/* Also chronos 40: three links on two queues, only the first visible at the start. */
static void only_first_step_of_a_chain_is_there_at_first(void **state)
{
    (void)state;
    ct_join("w", "q p");
    fl_add("f", "q p<0 q<1");
    assert_string_equal(fl_show("f"), "running: qww");
    assert_string_equal(ct_list("q", LADE_STATE_READY, 10), "f~0");
    assert_int_equal(ct_state("q", "f~2"), -1);
    fl_end("q", "f~0", LQ_TO_COMPLETED);
    assert_string_equal(fl_show("f"), "running: cqw");
    fl_end("p", "f~1", LQ_TO_COMPLETED);
    fl_end("q", "f~2", LQ_TO_COMPLETED);
    assert_string_equal(fl_show("f"), "completed: ccc");
    assert_int_equal(ct_info("q").total_enqueued, 2);
    assert_int_equal(ct_info("q").total_completed, 2);
    assert_int_equal(ct_info("p").total_enqueued, 1);
}

static void next_step_is_taken_by_the_call_that_settles_the_one_before(void **state)
{
    (void)state;
    ct_join("w", "q");
    fl_add("f", "q q<0");
    struct lq_leased j = fl_take("q", "f~0");
    struct lq_settle it = ct_settling("q", &j, LQ_TO_COMPLETED);
    struct lq_take take = ct_asking("w", "q", 5);
    ct.got.n = 0;
    EXPECT(0, lq_settle_take(ct.s, &it, 1, &take, &ct.got, &ct.err));
    assert_string_equal(ct_got(), "f~1");
    assert_memory_equal(ct.got.job[0].body.p,
                        "\x01"
                        "4b1",
                        4);
}

/* Also chronos 47 and 52: members on two queues, callback once, results in their order. */
static void callback_comes_after_all_members_with_results_in_order(void **state)
{
    (void)state;
    ct_join("w", "q p");
    fl_add("f", "q p q q<0,1,2");
    struct lq_leased a = fl_take("q", "f~0"), c = fl_take("q", "f~2"), b = fl_take("p", "f~1");
    assert_int_equal(fl_settle("q", &c, LQ_TO_COMPLETED), LADE_DONE);
    assert_int_equal(fl_settle("q", &a, LQ_TO_COMPLETED), LADE_DONE);
    assert_int_equal(ct_take("w", "q", 5), 0);
    assert_string_equal(fl_show("f"), "running: cqcw");
    assert_string_equal(fl_inputs("f", 3), "0:f~0 1:- 2:f~2");
    assert_int_equal(fl_settle("p", &b, LQ_TO_COMPLETED), LADE_DONE);
    assert_string_equal(fl_inputs("f", 3), "0:f~0 1:f~1 2:f~2");
    fl_end("q", "f~3", LQ_TO_COMPLETED);
    assert_string_equal(fl_show("f"), "completed: cccc");
}

/* C-087, chronos 48: a member that ran twice counts once; completion is the state of the member, not a number. */
static void member_settled_twice_counts_once(void **state)
{
    (void)state;
    ct_join("w", "q");
    ct_join("v", "q");
    fl_add("f", "q q q<0,1");
    struct lq_leased old = fl_take("q", "f~0");
    ct_die("w", "q");
    assert_int_equal(ct_reclaim("v", "q", 1), 1);
    struct lq_leased now = ct.got.job[0];
    now.id = lb_arena_copy(&ct.arena, now.id.p, now.id.n);
    assert_int_equal(fl_settle("q", &now, LQ_TO_COMPLETED), LADE_DONE);
    assert_int_equal(fl_settle("q", &old, LQ_TO_COMPLETED), LADE_STALE);
    assert_int_equal(fl_settle("q", &now, LQ_TO_COMPLETED), LADE_STALE);
    assert_string_equal(fl_show("f"), "running: cqw");
    /* by hand, too: chronos 45 */
    assert_int_equal(ct_act("q", LADE_JOB_RETRY, "f~0"), LADE_DONE);
    assert_int_equal(ct_take("v", "q", 5), 2);
    assert_string_equal(ct_got(), "f~1 f~0");
    struct lq_leased again = ct.got.job[1], other = ct.got.job[0];
    assert_int_equal(fl_settle("q", &again, LQ_TO_COMPLETED), LADE_DONE);
    assert_string_equal(fl_show("f"), "running: cqw");
    assert_int_equal(fl_settle("q", &other, LQ_TO_COMPLETED), LADE_DONE);
    assert_string_equal(fl_show("f"), "running: ccq");
}

/* chronos 44 and 45: a step that ran again after its successor is over starts nothing anew. */
static void completed_step_run_again_does_not_run_the_chain_again(void **state)
{
    (void)state;
    ct_join("w", "q");
    fl_add("f", "q q<0");
    fl_end("q", "f~0", LQ_TO_COMPLETED);
    fl_end("q", "f~1", LQ_TO_COMPLETED);
    assert_int_equal(ct_act("q", LADE_JOB_REMOVE, "f~1"), LADE_DONE);
    assert_int_equal(ct_act("q", LADE_JOB_RETRY, "f~0"), LADE_DONE);
    fl_end("q", "f~0", LQ_TO_COMPLETED);
    assert_int_equal(ct_take("w", "q", 5), 0);
    assert_string_equal(fl_show("f"), "completed: cc");
}

/* C-088 */
static void member_that_will_be_retried_is_not_finished(void **state)
{
    (void)state;

    static const enum lq_to to[] = {LQ_TO_RETRYING, LQ_TO_SCHEDULED, LQ_TO_READY};

    ct_join("w", "q");
    fl_add("f", "q q q<0,1");
    fl_end("q", "f~0", LQ_TO_COMPLETED);
    for (size_t i = 0; i < 3; i++) {
        struct lq_leased j = fl_take("q", "f~1");
        struct lq_settle it = ct_settling("q", &j, to[i]);
        it.delay_ms = 0;
        assert_int_equal(ct_settle_one(it), LADE_DONE);
        assert_string_equal(fl_show("f"), "running: cqw");
    }
    fl_end("q", "f~1", LQ_TO_COMPLETED);
    assert_string_equal(fl_show("f"), "running: ccq");
}

/* C-085 */
static void flow_of_a_known_id_is_a_duplicate_whatever_became_of_it(void **state)
{
    (void)state;
    ct_join("w", "q");
    fl_add("f", "q q<0");
    assert_int_equal(fl_put(fl_draw("f", "q q q")), LADE_DUPLICATE);
    fl_end("q", "f~0", LQ_TO_COMPLETED);
    assert_int_equal(fl_put(fl_draw("f", "q")), LADE_DUPLICATE);
    fl_end("q", "f~1", LQ_TO_COMPLETED);
    assert_int_equal(fl_put(fl_draw("f", "q")), LADE_DUPLICATE);
    assert_string_equal(fl_show("f"), "completed: cc");
    assert_int_equal(ct_info("q").total_enqueued, 2);
}

/* chronos 42 */
static void delay_of_a_step_counts_from_the_end_of_the_one_before(void **state)
{
    (void)state;
    ct_join("w", "q");
    fl_add("f", "q q<0+3600000");
    ct_step(CT_SOON);
    int64_t before = ct_now();
    fl_end("q", "f~0", LQ_TO_COMPLETED);
    const struct lq_row *row = ct_row("q", "f~1");
    assert_int_equal(row->state, LADE_STATE_SCHEDULED);
    assert_in_range(row->run_at_ms, before + CT_HOUR, ct_now() + CT_HOUR);
    assert_string_equal(fl_show("f"), "running: cq");
}

static void steps_due_soon_are_promoted(void **state)
{
    (void)state;
    ct_join("w", "q");
    fl_add("f", "q+20 q<0+20");
    for (int i = 0; i < 2; i++) {
        ct_step(2 * CT_SOON);
        fl_end("q", i ? "f~1" : "f~0", LQ_TO_COMPLETED);
    }
    assert_string_equal(fl_show("f"), "completed: cc");
}

/* chronos 47: the callback of 500, in batches of settles. */
static void callback_of_five_hundred_members_comes_once(void **state)
{
    (void)state;
    char *text = ct_format("%6000s", ""), *at = text;
    for (int i = 0; i < 500; i++)
        at += sprintf(at, "%s", i ? " q" : "q");
    for (int i = 0; i < 500; i++)
        at += sprintf(at, "%s%d", i ? "," : " q<", i);
    ct_join("w", "q");
    fl_add("f", text);
    for (int round = 0; round < 10; round++) {
        struct lq_settle it[50];
        assert_int_equal(ct_take("w", "q", 50), 50);
        for (size_t i = 0; i < 50; i++)
            it[i] = ct_settling("q", &ct.got.job[i], LQ_TO_COMPLETED);
        EXPECT(0, lq_settle_take(ct.s, it, 50, NULL, NULL, &ct.err));
    }
    fl_end("q", "f~500", LQ_TO_COMPLETED);
    assert_int_equal(ct_take("w", "q", 50), 0);
    assert_int_equal(ct_info("q").total_completed, 501);
}

/* chronos 53, 55 and nesting: chains in groups in a chain. */
static void shapes_nest(void **state)
{
    (void)state;
    ct_join("w", "q");
    /* 0 -> (1 -> 2 | 3) -> 4 -> (5 | 6) -> 7 */
    fl_add("f", "q q<0 q<1 q<0 q<2,3 q<4 q<4 q<5,6");
    fl_end("q", "f~0", LQ_TO_COMPLETED);
    assert_string_equal(fl_inputs("f", 1), "0:f~0");
    assert_string_equal(fl_inputs("f", 3), "0:f~0");
    fl_end("q", "f~1", LQ_TO_COMPLETED);
    fl_end("q", "f~3", LQ_TO_COMPLETED);
    assert_string_equal(fl_show("f"), "running: ccqcwwww");
    fl_end("q", "f~2", LQ_TO_COMPLETED);
    assert_string_equal(fl_inputs("f", 4), "2:f~2 3:f~3");
    fl_end("q", "f~4", LQ_TO_COMPLETED);
    fl_end("q", "f~5", LQ_TO_COMPLETED);
    fl_end("q", "f~6", LQ_TO_COMPLETED);
    fl_end("q", "f~7", LQ_TO_COMPLETED);
    assert_string_equal(fl_show("f"), "completed: cccccccc");
}

/* chronos 46: results of one mebibyte, more than one answer holds. */
static void large_results_come_in_pieces(void **state)
{
    (void)state;
    char *big = lb_arena_alloc(&ct.arena, LADE_RESULT_MAX);
    assert_non_null(big);
    memset(big, 'x', LADE_RESULT_MAX);
    ct_join("w", "q");
    fl_add("f", "q q q q q q q<0,1,2,3,4,5");
    for (int i = 0; i < 6; i++) {
        struct lq_leased j = fl_take("q", ct_format("f~%d", i));
        struct lq_settle it = ct_settling("q", &j, LQ_TO_COMPLETED);
        big[0] = (char)('0' + i);
        it.result = lb_slice(big, LADE_RESULT_MAX);
        assert_int_equal(ct_settle_one(it), LADE_DONE);
    }
    size_t n = 0;
    while (n < 6) {
        struct lq_input_vec vec = {.arena = &ct.arena};
        EXPECT(0, ct.s->ops->flow_inputs(ct.s, lb_slice_str("f"), 6, n, 100, &vec, &ct.err));
        assert_int_equal(vec.total, 6);
        assert_in_range(vec.n, 1, 4);
        for (size_t i = 0; i < vec.n; i++) {
            assert_int_equal(vec.input[i].result.n, LADE_RESULT_MAX);
            assert_int_equal(vec.input[i].result.p[0], '0' + n + i);
        }
        n += vec.n;
    }
}

static void inputs_of_what_is_not_there_are_not_found(void **state)
{
    (void)state;
    struct lq_input_vec vec = {.arena = &ct.arena};
    fl_add("f", "q");
    EXPECT(LADE_NOT_FOUND, ct.s->ops->flow_inputs(ct.s, lb_slice_str("g"), 0, 0, 1, &vec, &ct.err));
    EXPECT(LADE_NOT_FOUND, ct.s->ops->flow_inputs(ct.s, lb_slice_str("f"), 1, 0, 1, &vec, &ct.err));
    EXPECT(0, ct.s->ops->flow_inputs(ct.s, lb_slice_str("f"), 0, 0, 1, &vec, &ct.err));
    assert_int_equal(vec.total, 0);
    assert_string_equal(fl_show("g"), "absent");
}

static void flows_are_listed_newest_first_in_pages(void **state)
{
    (void)state;
    assert_string_equal(fl_list(2), "");
    ct_join("w", "q");
    for (int i = 0; i < 5; i++) {
        fl_add(ct_format("f%d", i), "q");
        ct_step(2);
    }
    fl_end("q", "f0~0", LQ_TO_COMPLETED);
    assert_string_equal(fl_list(2), "f4 f3 f2 f1 f0");
    assert_string_equal(fl_list(1000), "f4 f3 f2 f1 f0");
    assert_int_equal(fl_act(LADE_FLOW_REMOVE, "f3"), LADE_DONE);
    assert_string_equal(fl_list(3), "f4 f2 f1 f0");
}

static void ended_flows_are_kept_up_to_their_number(void **state)
{
    (void)state;
    ct.config.keep_completed.count = 2;
    ct.config.keep_dead.count = 1;
    ct_reopen();
    ct_join("w", "q");
    fl_add("open", "q+3600000");
    for (int i = 0; i < 5; i++) {
        fl_add(ct_format("f%d", i), "q");
        fl_end("q", ct_format("f%d~0", i), i == 1 || i == 2 ? LQ_TO_DEAD : LQ_TO_COMPLETED);
        ct_step(2);
    }
    assert_string_equal(fl_list(10), "f4 f3 f2 open");
    assert_string_equal(fl_show("f2"), "failed: d");
    assert_string_equal(fl_show("f0"), "absent");
}

static void ended_flows_are_kept_for_their_age(void **state)
{
    (void)state;
    ct.config.keep_completed.age_ms = 200;
    ct_reopen();
    ct_join("w", "q");
    fl_add("open", "q q<0");
    fl_end("q", "open~0", LQ_TO_COMPLETED);
    fl_add("done", "q");
    struct lq_leased last = fl_take("q", "open~1");
    fl_end("q", "done~0", LQ_TO_COMPLETED);
    ct_step(300);
    size_t n = 0;
    EXPECT(0, lq_trim(ct.s, ct_lanes("q"), 100, &n, &ct.err));
    assert_string_equal(fl_list(10), "open");
    assert_int_equal(fl_settle("q", &last, LQ_TO_COMPLETED), LADE_DONE);
    assert_string_equal(fl_show("open"), "completed: cc");
}

/* Nothing is wrong with a user's id that only looks like a flow's; it cannot have the sign. */
static void jobs_of_no_flow_are_left_alone(void **state)
{
    (void)state;
    ct_join("w", "q");
    fl_add("f", "q");
    struct lq_put odd[] = {ct_item("q", "g~0"), ct_item("q", "f~7"), ct_item("q", "f~x"),
                           ct_item("q", "~1"), ct_item("q", "f~")};
    ct_put(odd, 5);
    assert_int_equal(ct_take("w", "q", 10), 6);
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(fl_settle("q", &ct.got.job[i], LQ_TO_COMPLETED), LADE_DONE);
    assert_string_equal(fl_show("f"), "completed: c");
}

static const struct CMUnitTest tests[] = {
    CT_TEST(only_first_step_of_a_chain_is_there_at_first),
    CT_TEST(next_step_is_taken_by_the_call_that_settles_the_one_before),
    CT_TEST(callback_comes_after_all_members_with_results_in_order),
    CT_TEST(member_settled_twice_counts_once),
    CT_TEST(completed_step_run_again_does_not_run_the_chain_again),
    CT_TEST(member_that_will_be_retried_is_not_finished),
    CT_TEST(flow_of_a_known_id_is_a_duplicate_whatever_became_of_it),
    CT_TEST(delay_of_a_step_counts_from_the_end_of_the_one_before),
    CT_TEST(steps_due_soon_are_promoted),
    CT_TEST(callback_of_five_hundred_members_comes_once),
    CT_TEST(shapes_nest),
    CT_TEST(large_results_come_in_pieces),
    CT_TEST(inputs_of_what_is_not_there_are_not_found),
    CT_TEST(flows_are_listed_newest_first_in_pages),
    CT_TEST(ended_flows_are_kept_up_to_their_number),
    CT_TEST(ended_flows_are_kept_for_their_age),
    CT_TEST(jobs_of_no_flow_are_left_alone),
};

CT_GROUP(ct_flow_group, tests);
