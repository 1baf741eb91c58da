/* settle_cases.c - contract: active -> everywhere else, and who may say so */
#include "contract.h"

/* A job "a" under a lease of worker "w". */
static struct lq_leased lease_job(void)
{
    ct_join("w", "q");
    ct_add("q", "a");
    return ct_take_one("w", "q");
}

/* chronos 26; chasqui 49 */
static void completed_job_keeps_body_and_result(void **state)
{
    (void)state;
    struct lq_leased j = lease_job();
    struct lq_settle it = ct_settling("q", &j, LQ_TO_COMPLETED);
    it.result = lb_slice("r\0s\xff", 4);
    int64_t before = ct_now();
    assert_int_equal(ct_settle_one(it), LADE_DONE);
    const struct lq_row *row = ct_row("q", "a");
    assert_int_equal(row->state, LADE_STATE_COMPLETED);
    assert_int_equal(row->result.n, 4);
    assert_memory_equal(row->result.p, "r\0s\xff", 5);
    assert_int_equal(row->body.n, 3);
    assert_in_range(row->finished_ms, before, ct_now());
    assert_string_equal(row->worker, "");
    lade_queue_info info = ct_info("q");
    assert_int_equal(info.total_completed, 1);
    assert_int_equal(info.total_failed, 0);
    assert_int_equal(info.count[LADE_STATE_ACTIVE], 0);
}

/* chasqui 49 */
static void completed_job_may_have_no_result(void **state)
{
    (void)state;
    struct lq_leased j = lease_job();
    assert_int_equal(ct_settle("q", &j, LQ_TO_COMPLETED), LADE_DONE);
    assert_int_equal(ct_row("q", "a")->result.n, 0);
}

static void result_of_one_mebibyte_is_kept(void **state)
{
    (void)state;
    struct lq_leased j = lease_job();
    struct lq_settle it = ct_settling("q", &j, LQ_TO_COMPLETED);
    uint8_t *result = lb_arena_alloc(&ct.arena, LADE_RESULT_MAX);
    assert_non_null(result);
    for (size_t i = 0; i < LADE_RESULT_MAX; i++)
        result[i] = (uint8_t)(i * 13 >> 3);
    it.result = lb_slice(result, LADE_RESULT_MAX);
    assert_int_equal(ct_settle_one(it), LADE_DONE);
    assert_int_equal(ct_row("q", "a")->result.n, LADE_RESULT_MAX);
    assert_memory_equal(ct.rows.row[0].result.p, result, LADE_RESULT_MAX);
}

/* chronos 10 */
static void retried_job_waits_for_its_delay(void **state)
{
    (void)state;
    struct lq_leased j = lease_job();
    struct lq_settle it = ct_settling("q", &j, LQ_TO_RETRYING);
    it.failed = true;
    int64_t before = ct_now();
    assert_int_equal(ct_settle_one(it), LADE_DONE);
    const struct lq_row *row = ct_row("q", "a");
    assert_int_equal(row->state, LADE_STATE_RETRYING);
    assert_in_range(row->run_at_ms, before + CT_HOUR, ct_now() + CT_HOUR);
    assert_int_equal(row->finished_ms, 0);
    assert_int_equal(ct_take("w", "q", 1), 0);
    lade_queue_info info = ct_info("q");
    assert_int_equal(info.total_failed, 1);
    assert_int_equal(info.total_dead, 0);
}

static void snoozed_job_is_scheduled_and_no_failure(void **state)
{
    (void)state;
    struct lq_leased j = lease_job();
    assert_int_equal(ct_settle("q", &j, LQ_TO_SCHEDULED), LADE_DONE);
    assert_int_equal(ct_state("q", "a"), LADE_STATE_SCHEDULED);
    assert_int_equal(ct_info("q").total_failed, 0);
}

static void delay_of_zero_is_due_at_the_next_take(void **state)
{
    (void)state;

    static const enum lq_to to[] = {LQ_TO_RETRYING, LQ_TO_SCHEDULED};
    struct lq_leased j = lease_job();
    for (size_t i = 0; i < 2; i++) {
        struct lq_settle it = ct_settling("q", &j, to[i]);
        it.delay_ms = 0;
        assert_int_equal(ct_settle_one(it), LADE_DONE);
        j = ct_take_one("w", "q");
    }
}

static void job_handed_back_is_first_of_its_level(void **state)
{
    (void)state;
    ct_join("w", "q");
    ct_add("q", "a b c");
    struct lq_put urgent = ct_item_level("q", "urgent", 0);
    assert_int_equal(ct_take("w", "q", 2), 2);
    assert_int_equal(ct_put_one(urgent), LADE_DONE);
    /* Each is put first: the last one handed back is served first. */
    assert_int_equal(ct_settle("q", &ct.got.job[1], LQ_TO_READY), LADE_DONE);
    assert_int_equal(ct_settle("q", &ct.got.job[0], LQ_TO_READY), LADE_DONE);
    assert_string_equal(ct_list("q", LADE_STATE_READY, 10), "urgent a b c");
    assert_int_equal(ct_take("w", "q", 9), 4);
    assert_string_equal(ct_got(), "urgent a b c");
    assert_int_equal(ct_info("q").total_failed, 0);
}

static void last_of_a_batch_handed_back_is_first(void **state)
{
    (void)state;
    ct_join("w", "q");
    ct_add("q", "a b c d");
    assert_int_equal(ct_take("w", "q", 3), 3);
    struct lq_settle it[3];
    for (size_t i = 0; i < 3; i++)
        it[i] = ct_settling("q", &ct.got.job[2 - i], LQ_TO_READY);
    EXPECT(0, lq_settle_take(ct.s, it, 3, NULL, NULL, &ct.err));
    assert_string_equal(ct_list("q", LADE_STATE_READY, 10), "a b c d");
}

/* chasqui 38 */
static void dead_job_shows_why(void **state)
{
    (void)state;

    static const enum lq_reason reason[] = {LQ_REASON_EXHAUSTED, LQ_REASON_KILLED,
                                            LQ_REASON_QUARANTINED, LQ_REASON_UNRECOVERABLE};

    ct_join("w", "q");
    for (size_t i = 0; i < LB_ARRAY_LEN(reason); i++) {
        const char *id = ct_format("a%zu", i);
        ct_add("q", id);
        struct lq_leased j = ct_take_one("w", "q");
        struct lq_settle it = ct_settling("q", &j, LQ_TO_DEAD);
        it.reason = reason[i];
        it.failed = true;
        assert_int_equal(ct_settle_one(it), LADE_DONE);
        assert_int_equal(ct_row("q", id)->state, LADE_STATE_DEAD);
        assert_int_equal(ct.rows.row[0].reason, reason[i]);
        assert_true(ct.rows.row[0].finished_ms > 0);
    }
    assert_int_equal(ct_info("q").total_dead, 4);
    assert_int_equal(ct_info("q").total_failed, 4);
}

static void cancelled_job_is_kept_as_cancelled(void **state)
{
    (void)state;
    struct lq_leased j = lease_job();
    assert_int_equal(ct_settle("q", &j, LQ_TO_CANCELLED), LADE_DONE);
    assert_int_equal(ct_state("q", "a"), LADE_STATE_CANCELLED);
    assert_true(ct_row("q", "a")->finished_ms > 0);
    lade_queue_info info = ct_info("q");
    assert_int_equal(info.total_dead + info.total_completed, 0);
}

/* chronos 3, 16 */
static void discarded_job_leaves_nothing_and_frees_its_id(void **state)
{
    (void)state;
    struct lq_leased j = lease_job();
    assert_int_equal(ct_settle("q", &j, LQ_TO_GONE), LADE_DONE);
    assert_int_equal(ct_state("q", "a"), -1);
    for (int i = 0; i < LADE_N_STATES; i++)
        assert_int_equal(ct_count("q", (enum lade_state)i), 0);
    ct_add("q", "a");
    assert_int_equal(ct_row("q", "a")->history.n, 0);
}

static void history_is_kept_until_a_settle_brings_a_new_one(void **state)
{
    (void)state;
    static const char first[] = "\1\0\1\0\0\0first\0\xff", second[] = "\1\0\2\0\1\0second";
    struct lq_leased j = lease_job();
    assert_int_equal(j.history.n, 0);
    struct lq_settle it = ct_settling("q", &j, LQ_TO_READY);
    it.history = lb_slice(first, sizeof(first) - 1);
    assert_int_equal(ct_settle_one(it), LADE_DONE);
    j = ct_take_one("w", "q");
    assert_int_equal(j.history.n, sizeof(first) - 1);
    assert_memory_equal(j.history.p, first, sizeof(first)); /* with the NUL after it */
    assert_int_equal(ct_settle("q", &j, LQ_TO_READY), LADE_DONE);
    j = ct_take_one("w", "q");
    assert_int_equal(j.history.n, sizeof(first) - 1);
    it = ct_settling("q", &j, LQ_TO_DEAD);
    it.history = lb_slice(second, sizeof(second) - 1);
    assert_int_equal(ct_settle_one(it), LADE_DONE);
    assert_int_equal(ct_row("q", "a")->history.n, sizeof(second) - 1);
    assert_memory_equal(ct.rows.row[0].history.p, second, sizeof(second) - 1);
}

/* stale ------------------------------------------------------------------------------------------------------------ */

static void assert_stale_everywhere(const struct lq_leased *j)
{
    for (int to = LQ_TO_COMPLETED; to <= LQ_TO_GONE; to++)
        assert_int_equal(ct_settle("q", j, (enum lq_to)to), LADE_STALE);
}

static void settle_with_another_fence_is_stale(void **state)
{
    (void)state;
    struct lq_leased j = lease_job(), wrong = j;
    wrong.fence = j.fence + 1;
    assert_stale_everywhere(&wrong);
    wrong.fence = j.fence - 1;
    assert_stale_everywhere(&wrong);
    assert_int_equal(ct_state("q", "a"), LADE_STATE_ACTIVE);
    assert_int_equal(ct_settle("q", &j, LQ_TO_COMPLETED), LADE_DONE);
}

static void second_settle_of_a_lease_is_stale(void **state)
{
    (void)state;

    static const enum lq_to to[] = {LQ_TO_COMPLETED, LQ_TO_RETRYING,  LQ_TO_SCHEDULED, LQ_TO_READY,
                                    LQ_TO_DEAD,      LQ_TO_CANCELLED, LQ_TO_GONE};

    ct_join("w", "q");
    for (size_t i = 0; i < LB_ARRAY_LEN(to); i++) {
        const char *id = ct_format("a%zu", i);
        ct_add("q", id);
        struct lq_leased j = ct_take_one("w", "q");
        assert_int_equal(ct_settle("q", &j, to[i]), LADE_DONE);
        int now = ct_state("q", id);
        assert_stale_everywhere(&j);
        assert_int_equal(ct_state("q", id), now);
        if (to[i] == LQ_TO_READY)
            assert_int_equal(ct_act("q", LADE_JOB_REMOVE, id), LADE_DONE);
    }
    assert_int_equal(ct_info("q").total_completed, 1);
    assert_int_equal(ct_info("q").total_dead, 1);
}

static void settle_twice_in_one_call_counts_once(void **state)
{
    (void)state;
    struct lq_leased j = lease_job();
    struct lq_settle it[] = {ct_settling("q", &j, LQ_TO_COMPLETED),
                             ct_settling("q", &j, LQ_TO_DEAD)};
    EXPECT(0, lq_settle_take(ct.s, it, 2, NULL, NULL, &ct.err));
    assert_int_equal(it[0].outcome, LADE_DONE);
    assert_int_equal(it[1].outcome, LADE_STALE);
    assert_int_equal(ct_state("q", "a"), LADE_STATE_COMPLETED);
}

static void settle_of_an_unknown_job_or_queue_is_stale(void **state)
{
    (void)state;
    struct lq_leased j = lease_job();
    struct lq_settle it = ct_settling("nowhere", &j, LQ_TO_COMPLETED);
    assert_int_equal(ct_settle_one(it), LADE_STALE);
    it = ct_settling("q", &j, LQ_TO_COMPLETED);
    it.id = lb_slice_str("unknown");
    assert_int_equal(ct_settle_one(it), LADE_STALE);
    assert_int_equal(ct_state("q", "a"), LADE_STATE_ACTIVE);
}

static void settle_of_a_ready_job_with_its_last_fence_is_stale(void **state)
{
    (void)state;
    struct lq_leased j = lease_job();
    assert_int_equal(ct_settle("q", &j, LQ_TO_READY), LADE_DONE);
    assert_int_equal(ct_settle("q", &j, LQ_TO_COMPLETED), LADE_STALE);
    struct lq_leased again = ct_take_one("w", "q");
    assert_true(again.fence > j.fence);
    assert_int_equal(ct_settle("q", &j, LQ_TO_COMPLETED), LADE_STALE);
    assert_int_equal(ct_settle("q", &again, LQ_TO_COMPLETED), LADE_DONE);
}

/* chasqui 37 */
static void stale_settle_changes_neither_history_nor_totals(void **state)
{
    (void)state;
    struct lq_leased j = lease_job();
    struct lq_settle it = ct_settling("q", &j, LQ_TO_RETRYING);
    it.fence++;
    it.failed = true;
    it.history = lb_slice("\1\0\1\0\0\0", 6);
    assert_int_equal(ct_settle_one(it), LADE_STALE);
    assert_int_equal(ct_row("q", "a")->history.n, 0);
    assert_int_equal(ct_info("q").total_failed, 0);
}

static void stale_items_do_not_stop_the_others_nor_the_take(void **state)
{
    (void)state;
    ct_join("w", "q");
    ct_add("q", "a b c d");
    assert_int_equal(ct_take("w", "q", 3), 3);
    struct lq_settle it[3];
    for (size_t i = 0; i < 3; i++)
        it[i] = ct_settling("q", &ct.got.job[i], LQ_TO_COMPLETED);
    it[1].fence += 1000;
    struct lq_take take = ct_asking("w", "q", 5);
    struct lq_leased_vec more = {0};
    EXPECT(0, lq_settle_take(ct.s, it, 3, &take, &more, &ct.err));
    size_t n = more.n;
    lb_arena_fini(&more.arena);
    assert_int_equal(n, 1);
    assert_int_equal(it[0].outcome, LADE_DONE);
    assert_int_equal(it[1].outcome, LADE_STALE);
    assert_int_equal(it[2].outcome, LADE_DONE);
    assert_int_equal(ct_state("q", "b"), LADE_STATE_ACTIVE);
    assert_int_equal(ct_state("q", "d"), LADE_STATE_ACTIVE);
}

/* settle and take -------------------------------------------------------------------------------------------------- */

static void one_call_settles_and_takes_the_next(void **state)
{
    (void)state;
    struct lq_leased j = lease_job();
    ct_add("q", "b c");
    struct lq_settle it = ct_settling("q", &j, LQ_TO_COMPLETED);
    struct lq_take take = ct_asking("w", "q", 1);
    EXPECT(0, lq_settle_take(ct.s, &it, 1, &take, &ct.got, &ct.err));
    assert_int_equal(it.outcome, LADE_DONE);
    assert_string_equal(strrchr(ct_got(), ' ') + 1, "b");
    assert_int_equal(ct_state("q", "a"), LADE_STATE_COMPLETED);
    assert_int_equal(ct_state("q", "b"), LADE_STATE_ACTIVE);
    assert_int_equal(ct_state("q", "c"), LADE_STATE_READY);
}

static void job_handed_back_can_be_taken_by_the_same_call(void **state)
{
    (void)state;
    struct lq_leased j = lease_job();
    struct lq_settle it = ct_settling("q", &j, LQ_TO_READY);
    struct lq_take take = ct_asking("w", "q", 1);
    struct lq_leased_vec more = {0};
    EXPECT(0, lq_settle_take(ct.s, &it, 1, &take, &more, &ct.err));
    bool again = more.n == 1 && more.job[0].fence > j.fence;
    lb_arena_fini(&more.arena);
    assert_true(again);
}

static void settles_are_done_even_when_the_taker_is_refused(void **state)
{
    (void)state;
    struct lq_leased j = lease_job();
    ct_add("q", "b");
    struct lq_settle it = ct_settling("q", &j, LQ_TO_COMPLETED);
    struct lq_take take = ct_asking("stranger", "q", 1);
    struct lq_leased_vec more = {0};
    int rc = lq_settle_take(ct.s, &it, 1, &take, &more, &ct.err);
    lb_arena_fini(&more.arena);
    EXPECT(LADE_STALE, rc);
    assert_int_equal(it.outcome, LADE_DONE);
    assert_int_equal(ct_state("q", "a"), LADE_STATE_COMPLETED);
    assert_int_equal(ct_state("q", "b"), LADE_STATE_READY);
}

static void one_call_settles_jobs_of_several_queues(void **state)
{
    (void)state;
    ct_join("w", "q r");
    ct_add("q", "a");
    ct_add("r", "a b");
    assert_int_equal(ct_take("w", "q r", 9), 3);
    struct lq_settle it[] = {ct_settling("q", &ct.got.job[0], LQ_TO_COMPLETED),
                             ct_settling("r", &ct.got.job[1], LQ_TO_DEAD),
                             ct_settling("r", &ct.got.job[2], LQ_TO_RETRYING)};
    EXPECT(0, lq_settle_take(ct.s, it, 3, NULL, NULL, &ct.err));
    assert_int_equal(it[0].outcome + it[1].outcome + it[2].outcome, 0);
    assert_int_equal(ct_state("q", "a"), LADE_STATE_COMPLETED);
    assert_int_equal(ct_state("r", "a"), LADE_STATE_DEAD);
    assert_int_equal(ct_state("r", "b"), LADE_STATE_RETRYING);
}

static void full_batch_is_settled_in_one_call(void **state)
{
    (void)state;
    ct_join("w", "q");
    ct_add_many("q", "j", LQ_TAKE_MAX);
    assert_int_equal(ct_take("w", "q", LQ_TAKE_MAX), LQ_TAKE_MAX);
    struct lq_settle *it = lb_arena_alloc(&ct.arena, LQ_TAKE_MAX * sizeof(*it));
    assert_non_null(it);
    for (size_t i = 0; i < LQ_TAKE_MAX; i++)
        it[i] = ct_settling("q", &ct.got.job[i], LQ_TO_COMPLETED);
    EXPECT(0, lq_settle_take(ct.s, it, LQ_TAKE_MAX, NULL, NULL, &ct.err));
    for (size_t i = 0; i < LQ_TAKE_MAX; i++)
        assert_int_equal(it[i].outcome, LADE_DONE);
    assert_int_equal(ct_count("q", LADE_STATE_COMPLETED), LQ_TAKE_MAX);
    assert_int_equal(ct_info("q").total_completed, LQ_TAKE_MAX);
}

static const struct CMUnitTest tests[] = {
    CT_TEST(completed_job_keeps_body_and_result),
    CT_TEST(completed_job_may_have_no_result),
    CT_TEST(result_of_one_mebibyte_is_kept),
    CT_TEST(retried_job_waits_for_its_delay),
    CT_TEST(snoozed_job_is_scheduled_and_no_failure),
    CT_TEST(delay_of_zero_is_due_at_the_next_take),
    CT_TEST(job_handed_back_is_first_of_its_level),
    CT_TEST(last_of_a_batch_handed_back_is_first),
    CT_TEST(dead_job_shows_why),
    CT_TEST(cancelled_job_is_kept_as_cancelled),
    CT_TEST(discarded_job_leaves_nothing_and_frees_its_id),
    CT_TEST(history_is_kept_until_a_settle_brings_a_new_one),
    CT_TEST(settle_with_another_fence_is_stale),
    CT_TEST(second_settle_of_a_lease_is_stale),
    CT_TEST(settle_twice_in_one_call_counts_once),
    CT_TEST(settle_of_an_unknown_job_or_queue_is_stale),
    CT_TEST(settle_of_a_ready_job_with_its_last_fence_is_stale),
    CT_TEST(stale_settle_changes_neither_history_nor_totals),
    CT_TEST(stale_items_do_not_stop_the_others_nor_the_take),
    CT_TEST(one_call_settles_and_takes_the_next),
    CT_TEST(job_handed_back_can_be_taken_by_the_same_call),
    CT_TEST(settles_are_done_even_when_the_taker_is_refused),
    CT_TEST(one_call_settles_jobs_of_several_queues),
    CT_TEST(full_batch_is_settled_in_one_call),
};

CT_GROUP(ct_settle_group, tests);
