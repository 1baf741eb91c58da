/* flow_act_cases.c - contract: steps that end without completing, and what operators do to flows */
#include "flow_kit.h"

#include "base/mem.h"

/* chronos 41: the successor waits, a re-run resumes to the end. */
static void dead_step_stops_the_chain_until_it_is_run_again(void **state)
{
    (void)state;
    ct_join("w", "q");
    fl_add("f", "q q<0 q<1");
    fl_end("q", "f~0", LQ_TO_DEAD);
    assert_string_equal(fl_show("f"), "failed: dww");
    assert_int_equal(ct_take("w", "q", 5), 0);
    assert_int_equal(ct_act("q", LADE_JOB_RETRY, "f~0"), LADE_DONE);
    assert_string_equal(fl_show("f"), "running: qww");
    fl_end("q", "f~0", LQ_TO_COMPLETED);
    fl_end("q", "f~1", LQ_TO_COMPLETED);
    fl_end("q", "f~2", LQ_TO_COMPLETED);
    assert_string_equal(fl_show("f"), "completed: ccc");
}

/* chronos 49, with the dead brought back by the hundred. */
static void redrive_of_a_dead_member_completes_its_group(void **state)
{
    (void)state;
    size_t n = 0;
    ct_join("w", "q");
    fl_add("f", "q q q<0,1");
    ct_add("q", "plain");
    fl_end("q", "f~0", LQ_TO_DEAD);
    fl_end("q", "f~1", LQ_TO_COMPLETED);
    struct lq_leased plain = ct_take_one("w", "q");
    assert_int_equal(ct_settle("q", &plain, LQ_TO_DEAD), LADE_DONE);
    assert_string_equal(fl_show("f"), "failed: dcw");
    EXPECT(0, ct.s->ops->redrive(ct.s, "q", 10, &n, &ct.err));
    assert_int_equal(n, 2);
    assert_string_equal(fl_show("f"), "running: qcw");
    fl_end("q", "f~0", LQ_TO_COMPLETED);
    assert_string_equal(fl_show("f"), "running: ccq");
}

/* C-083: the three policies. */
static void dead_member_is_handled_by_its_policy(void **state)
{
    (void)state;
    ct_join("w", "q");
    struct lq_flow f = fl_draw("f", "q q<0");
    fl_policy(&f, 0, LADE_FLOW_CONTINUE);
    assert_int_equal(fl_put(f), LADE_DONE);
    fl_end("q", "f~0", LQ_TO_DEAD);
    assert_string_equal(fl_show("f"), "running: sq");
    assert_string_equal(fl_inputs("f", 1), "0:-");
    fl_end("q", "f~1", LQ_TO_COMPLETED);
    assert_string_equal(fl_show("f"), "completed: sc");

    struct lq_flow g = fl_draw("g", "q q<0");
    fl_policy(&g, 0, LADE_FLOW_WAIT);
    assert_int_equal(fl_put(g), LADE_DONE);
    fl_end("q", "g~0", LQ_TO_DEAD);
    assert_string_equal(fl_show("g"), "running: dw");
    assert_int_equal(ct_act("q", LADE_JOB_RETRY, "g~0"), LADE_DONE);
    fl_end("q", "g~0", LQ_TO_COMPLETED);
    assert_string_equal(fl_show("g"), "running: cq");
}

static void skipped_member_that_completes_after_all_gives_its_result(void **state)
{
    (void)state;
    ct_join("w", "q");
    struct lq_flow f = fl_draw("f", "q q q<0,1");
    fl_policy(&f, 0, LADE_FLOW_CONTINUE);
    assert_int_equal(fl_put(f), LADE_DONE);
    fl_end("q", "f~0", LQ_TO_DEAD);
    assert_int_equal(ct_act("q", LADE_JOB_RETRY, "f~0"), LADE_DONE);
    struct lq_leased b = fl_take("q", "f~1");
    fl_end("q", "f~0", LQ_TO_COMPLETED);
    assert_string_equal(fl_show("f"), "running: cqw");
    assert_int_equal(fl_settle("q", &b, LQ_TO_COMPLETED), LADE_DONE);
    assert_string_equal(fl_inputs("f", 2), "0:f~0 1:f~1");
    fl_end("q", "f~2", LQ_TO_COMPLETED);
    assert_string_equal(fl_show("f"), "completed: ccc");
}

/* C-084: whatever ends a member counts at once. */
static void member_ended_by_hand_counts_at_once(void **state)
{
    (void)state;

    static const enum lade_job_verb verb[] = {LADE_JOB_KILL, LADE_JOB_CANCEL, LADE_JOB_REMOVE};

    ct_join("w", "q");
    for (size_t i = 0; i < 3; i++) {
        const char *id = ct_format("f%zu", i);
        struct lq_flow f = fl_draw(id, "q+3600000 q+3600000 q<0,1");
        fl_policy(&f, 0, LADE_FLOW_CONTINUE);
        assert_int_equal(fl_put(f), LADE_DONE);
        assert_int_equal(ct_act("q", verb[i], ct_format("%s~0", id)), LADE_DONE);
        assert_string_equal(fl_show(id), "running: sqw");
        assert_int_equal(ct_act("q", verb[i], ct_format("%s~1", id)), LADE_DONE);
        assert_string_equal(fl_show(id), i == 0 ? "failed: sdw" : "failed: sxw");
    }
    fl_add("g", "q q<0");
    assert_int_equal(ct_act("q", LADE_JOB_REMOVE, "g~0"), LADE_DONE);
    assert_string_equal(fl_show("g"), "failed: xw");
}

static void active_member_counts_when_it_is_settled(void **state)
{
    (void)state;
    ct_join("w", "q");
    fl_add("f", "q q q");
    struct lq_leased a = fl_take("q", "f~0"), b = fl_take("q", "f~1"), c = fl_take("q", "f~2");
    assert_int_equal(ct_act("q", LADE_JOB_KILL, "f~0"), LADE_DONE);
    assert_int_equal(ct_act("q", LADE_JOB_CANCEL, "f~1"), LADE_DONE);
    assert_string_equal(fl_show("f"), "running: qqq");
    assert_int_equal(fl_settle("q", &a, LQ_TO_RETRYING), LADE_DONE);
    assert_int_equal(fl_settle("q", &b, LQ_TO_COMPLETED), LADE_DONE);
    assert_string_equal(fl_show("f"), "failed: dcq");
    assert_int_equal(ct_act("q", LADE_JOB_REMOVE, "f~2"), LADE_DONE);
    assert_string_equal(fl_show("f"), "failed: dcx");
    assert_int_equal(fl_settle("q", &c, LQ_TO_COMPLETED), LADE_STALE);
    assert_string_equal(fl_show("f"), "failed: dcx");
}

/* C-084: a purge of the members' queue; also discard and cancel by the handler. */
static void purged_and_discarded_members_count(void **state)
{
    (void)state;

    static const enum lade_state from[] = {LADE_STATE_READY, LADE_STATE_SCHEDULED};

    size_t n = 0;
    ct_join("w", "q p");
    for (size_t i = 0; i < 2; i++) {
        const char *id = ct_format("f%zu", i);
        struct lq_flow f = fl_draw(id, i == 0 ? "q q p<0,1" : "q+3600000 q+3600000 p<0,1");
        fl_policy(&f, 0, LADE_FLOW_CONTINUE);
        fl_policy(&f, 1, LADE_FLOW_CONTINUE);
        ct_add("q", ct_format("plain%zu", i));
        assert_int_equal(fl_put(f), LADE_DONE);
        EXPECT(0, ct.s->ops->purge(ct.s, "q", from[i], 100, &n, &ct.err));
        assert_string_equal(fl_show(id), "running: ssq");
        fl_end("p", ct_format("%s~2", id), i == 0 ? LQ_TO_GONE : LQ_TO_CANCELLED);
        assert_string_equal(fl_show(id), "failed: ssx");
    }
}

/* C-083: the flow fails with the child's id. */
static void on_failure_runs_once_and_sees_what_is_down(void **state)
{
    (void)state;
    ct_join("w", "q p");
    fl_add("f", "q q q<0,1 !p");
    assert_string_equal(fl_show("f"), "running: qqw!w");
    fl_end("q", "f~0", LQ_TO_DEAD);
    assert_string_equal(fl_show("f"), "failed: dqw!q");
    assert_string_equal(fl_inputs("f", 3), "0:-");
    fl_end("q", "f~1", LQ_TO_DEAD);
    assert_string_equal(fl_inputs("f", 3), "0:- 1:-");
    fl_end("p", "f~3", LQ_TO_COMPLETED);
    assert_int_equal(ct_take("w", "p", 5), 0);
    assert_string_equal(fl_show("f"), "failed: ddw!c");
    /* once for each time that the flow is set going anew */
    assert_int_equal(fl_act(LADE_FLOW_RETRY, "f"), LADE_DONE);
    assert_string_equal(fl_show("f"), "running: qqw!w");
    fl_end("q", "f~0", LQ_TO_COMPLETED);
    fl_end("q", "f~1", LQ_TO_DEAD);
    fl_end("p", "f~3", LQ_TO_DEAD);
    assert_string_equal(fl_show("f"), "failed: cdw!d");
}

static void on_failure_does_not_run_when_nothing_fails(void **state)
{
    (void)state;
    ct_join("w", "q p");
    fl_add("f", "q !p");
    fl_end("q", "f~0", LQ_TO_COMPLETED);
    assert_string_equal(fl_show("f"), "completed: c!w");
    assert_int_equal(ct_take("w", "p", 5), 0);
}

/* C-090: with cancel_siblings, and without. */
static void siblings_of_a_dead_member_are_cancelled_when_asked(void **state)
{
    (void)state;
    ct_join("w", "q");
    struct lq_flow f = fl_draw("f", "q q q q+3600000 q<0,1,2,3");
    f.cancel_siblings = true;
    assert_int_equal(fl_put(f), LADE_DONE);
    struct lq_leased a = fl_take("q", "f~0"), b = fl_take("q", "f~1");
    assert_int_equal(fl_settle("q", &a, LQ_TO_DEAD), LADE_DONE);
    assert_string_equal(fl_show("f"), "failed: dxxxw");
    assert_int_equal(ct_count("q", LADE_STATE_CANCELLED), 2);
    assert_int_equal(ct_count("q", LADE_STATE_READY), 0);
    assert_string_equal(ct_stops("w", "q", 8), "f~1");
    assert_int_equal(fl_settle("q", &b, LQ_TO_RETRYING), LADE_DONE);
    assert_int_equal(ct_count("q", LADE_STATE_CANCELLED), 3);

    fl_add("g", "q q q<0,1");
    fl_end("q", "g~0", LQ_TO_DEAD);
    fl_end("q", "g~1", LQ_TO_COMPLETED);
    assert_string_equal(fl_show("g"), "failed: dcw");
}

static void cancelled_flow_begins_nothing_more(void **state)
{
    (void)state;
    ct_join("w", "q p");
    fl_add("f", "q q q q<0,1,2 q<3 !p");
    fl_end("q", "f~0", LQ_TO_COMPLETED);
    struct lq_leased b = fl_take("q", "f~1");
    assert_int_equal(fl_act(LADE_FLOW_CANCEL, "f"), LADE_DONE);
    assert_string_equal(fl_show("f"), "cancelled: cxxxx!w");
    assert_int_equal(ct_count("q", LADE_STATE_CANCELLED), 1);
    assert_string_equal(ct_stops("w", "q", 8), "f~1");
    assert_int_equal(fl_act(LADE_FLOW_CANCEL, "f"), LADE_WRONG_STATE);
    /* what runs may still complete; its result is kept, nothing follows */
    assert_int_equal(fl_settle("q", &b, LQ_TO_COMPLETED), LADE_DONE);
    assert_string_equal(fl_show("f"), "cancelled: ccxxx!w");
    assert_int_equal(ct_take("w", "q", 5), 0);
    assert_int_equal(fl_act(LADE_FLOW_CANCEL, "g"), LADE_NOT_FOUND);
}

/* chronos 54: finished members are not redone. */
static void retried_flow_redoes_what_did_not_complete(void **state)
{
    (void)state;
    ct_join("w", "q");
    fl_add("f", "q q q q<0,1,2 q<3");
    fl_end("q", "f~0", LQ_TO_COMPLETED);
    fl_end("q", "f~1", LQ_TO_DEAD);
    assert_int_equal(fl_act(LADE_FLOW_CANCEL, "f"), LADE_DONE);
    assert_string_equal(fl_show("f"), "cancelled: cdxxx");
    assert_int_equal(fl_act(LADE_FLOW_RETRY, "f"), LADE_DONE);
    assert_string_equal(fl_show("f"), "running: cqqww");
    assert_int_equal(fl_act(LADE_FLOW_RETRY, "f"), LADE_WRONG_STATE);
    fl_end("q", "f~1", LQ_TO_COMPLETED);
    fl_end("q", "f~2", LQ_TO_COMPLETED);
    fl_end("q", "f~3", LQ_TO_COMPLETED);
    fl_end("q", "f~4", LQ_TO_COMPLETED);
    assert_string_equal(fl_show("f"), "completed: ccccc");
    assert_int_equal(fl_act(LADE_FLOW_RETRY, "f"), LADE_WRONG_STATE);
    assert_int_equal(fl_act(LADE_FLOW_CANCEL, "f"), LADE_WRONG_STATE);
}

/* chronos W15: a dead member that retention has removed is not lost to its flow. */
static void retried_flow_brings_back_jobs_that_are_gone(void **state)
{
    (void)state;
    size_t n = 0;
    ct_join("w", "q");
    fl_add("f", "q q<0");
    fl_end("q", "f~0", LQ_TO_DEAD);
    EXPECT(0, ct.s->ops->purge(ct.s, "q", LADE_STATE_DEAD, 10, &n, &ct.err));
    assert_int_equal(n, 1);
    assert_string_equal(fl_show("f"), "failed: dw");
    assert_int_equal(fl_act(LADE_FLOW_RETRY, "f"), LADE_DONE);
    fl_end("q", "f~0", LQ_TO_COMPLETED);
    fl_end("q", "f~1", LQ_TO_COMPLETED);
    assert_string_equal(fl_show("f"), "completed: cc");
}

static void job_brought_back_in_a_cancelled_flow_starts_nothing(void **state)
{
    (void)state;
    ct_join("w", "q");
    fl_add("f", "q q<0");
    assert_int_equal(fl_act(LADE_FLOW_CANCEL, "f"), LADE_DONE);
    assert_int_equal(ct_act("q", LADE_JOB_RETRY, "f~0"), LADE_DONE);
    fl_end("q", "f~0", LQ_TO_COMPLETED);
    assert_string_equal(fl_show("f"), "cancelled: cx");
    assert_int_equal(ct_take("w", "q", 5), 0);
    assert_int_equal(fl_act(LADE_FLOW_RETRY, "f"), LADE_DONE);
    fl_end("q", "f~1", LQ_TO_COMPLETED);
    assert_string_equal(fl_show("f"), "completed: cc");
}

/* chronos 48: a report after the flow is gone is nothing. */
static void removed_flow_leaves_its_jobs(void **state)
{
    (void)state;
    ct_join("w", "q");
    fl_add("f", "q q<0");
    assert_int_equal(fl_act(LADE_FLOW_REMOVE, "f"), LADE_DONE);
    assert_int_equal(fl_act(LADE_FLOW_REMOVE, "f"), LADE_NOT_FOUND);
    assert_string_equal(fl_show("f"), "absent");
    fl_end("q", "f~0", LQ_TO_COMPLETED);
    assert_int_equal(ct_take("w", "q", 5), 0);
    assert_string_equal(fl_list(10), "");
}

/* Out of memory: nothing happens, or all of it. */
static struct lq_flow starving;

/* chronos 51 */
static void flow_is_put_and_moved_wholly_or_not_at_all_without_memory(void **state)
{
    (void)state;
    struct lq_settle it;
    int rc = -LADE_ENOMEM;
    ct_join("w", "q p");
    starving = fl_draw("f", "q p<0 p<0 q<1,2 !p");
    for (uint64_t n = 1; rc == -LADE_ENOMEM && n < 2000; n++) {
        lb_mem_fail_after(n);
        rc = lq_flow_put(ct.s, &starving, &ct.err);
        lb_mem_fail_after(0);
        if (rc == -LADE_ENOMEM && !(ct.ops->caps & LQ_CAP_REMOTE))
            assert_string_equal(fl_show("f"), "absent");
    }
    assert_int_equal(rc, 0);
    struct lq_leased j = fl_take("q", "f~0");
    it = ct_settling("q", &j, LQ_TO_COMPLETED);
    it.result = lb_slice_str("result");
    rc = -LADE_ENOMEM;
    for (uint64_t n = 1; rc == -LADE_ENOMEM && n < 2000; n++) {
        lb_mem_fail_after(n);
        rc = lq_settle_take(ct.s, &it, 1, NULL, NULL, &ct.err);
        lb_mem_fail_after(0);
        if (rc == -LADE_ENOMEM && !(ct.ops->caps & LQ_CAP_REMOTE))
            assert_string_equal(fl_show("f"), "running: qwww!w");
    }
    assert_int_equal(rc, 0);
    /* Between slots of a cluster the second half may have found no memory: a worker's sweep makes up for it. */
    size_t promoted = 0;
    int64_t next = 0;
    EXPECT(0, lq_promote(ct.s, ct_lanes("q"), 10, &promoted, &next, &ct.err));
    assert_string_equal(fl_show("f"), "running: cqqw!w");
    assert_string_equal(ct_list("p", LADE_STATE_READY, 10), "f~1 f~2");
}

static const struct CMUnitTest tests[] = {
    CT_TEST(dead_step_stops_the_chain_until_it_is_run_again),
    CT_TEST(redrive_of_a_dead_member_completes_its_group),
    CT_TEST(dead_member_is_handled_by_its_policy),
    CT_TEST(skipped_member_that_completes_after_all_gives_its_result),
    CT_TEST(member_ended_by_hand_counts_at_once),
    CT_TEST(active_member_counts_when_it_is_settled),
    CT_TEST(purged_and_discarded_members_count),
    CT_TEST(on_failure_runs_once_and_sees_what_is_down),
    CT_TEST(on_failure_does_not_run_when_nothing_fails),
    CT_TEST(siblings_of_a_dead_member_are_cancelled_when_asked),
    CT_TEST(cancelled_flow_begins_nothing_more),
    CT_TEST(retried_flow_redoes_what_did_not_complete),
    CT_TEST(retried_flow_brings_back_jobs_that_are_gone),
    CT_TEST(job_brought_back_in_a_cancelled_flow_starts_nothing),
    CT_TEST(removed_flow_leaves_its_jobs),
    CT_TEST(flow_is_put_and_moved_wholly_or_not_at_all_without_memory),
};

CT_GROUP(ct_flow_act_group, tests);
