/* take_cases.c - contract: ready -> active, its order, and promotion */
#include "contract.h"

static void jobs_of_a_level_come_first_in_first_out(void **state)
{
    (void)state;
    ct_join("w", "q");
    ct_add("q", "d c");
    ct_add("q", "b a");
    assert_int_equal(ct_take("w", "q", 3), 3);
    assert_string_equal(ct_got(), "d c b");
    assert_int_equal(ct_take("w", "q", 3), 1);
    assert_string_equal(ct_got(), "a");
}

/* C-080: at both ends of the range. */
static void lower_level_comes_first(void **state)
{
    (void)state;
    ct_join("w", "q");
    struct lq_put item[2 * LQ_N_LEVELS];
    for (int i = 0; i < 2 * LQ_N_LEVELS; i++) {
        int level = (i * 5) % LQ_N_LEVELS;
        item[i] = ct_item_level("q", ct_format("%d%c", level, i < LQ_N_LEVELS ? 'a' : 'b'), level);
    }
    ct_put(item, LB_ARRAY_LEN(item));
    assert_int_equal(ct_take("w", "q", 100), 18);
    assert_string_equal(ct_got(), "0a 0b 1a 1b 2a 2b 3a 3b 4a 4b 5a 5b 6a 6b 7a 7b 8a 8b");
}

static void later_job_of_a_lower_level_overtakes(void **state)
{
    (void)state;
    ct_join("w", "q");
    ct_add("q", "a b");
    assert_int_equal(ct_put_one(ct_item_level("q", "urgent", 0)), LADE_DONE);
    assert_int_equal(ct_put_one(ct_item_level("q", "idle", 8)), LADE_DONE);
    assert_int_equal(ct_take("w", "q", 1), 1);
    assert_string_equal(ct_got(), "urgent");
    assert_int_equal(ct_take("w", "q", 9), 3);
    assert_string_equal(ct_got(), "a b idle");
}

/* chronos 38 */
static void lanes_are_emptied_in_the_order_asked_for(void **state)
{
    (void)state;
    ct_join("w", "q r s");
    ct_add("q", "q1 q2");
    ct_add("r", "r1");
    assert_int_equal(ct_put_one(ct_item_level("s", "s1", 0)), LADE_DONE);
    assert_int_equal(ct_take("w", "r s q", 3), 3);
    assert_string_equal(ct_got(), "r1 s1 q1");
    assert_int_equal(ct.got.job[0].lane, 0);
    assert_int_equal(ct.got.job[1].lane, 1);
    assert_int_equal(ct.got.job[2].lane, 2);
    assert_int_equal(ct_take("w", "r s q", 3), 1);
    assert_string_equal(ct_got(), "q2");
    assert_int_equal(ct.got.job[0].lane, 2);
}

static void take_fetches_from_sixty_four_lanes(void **state)
{
    (void)state;
    const char *lanes = "";
    for (int i = 0; i < LQ_LANES_MAX; i++)
        lanes = ct_format("%s%slane%d", lanes, i ? " " : "", i);
    ct_join("w", lanes);
    ct_add("lane63", "a");
    assert_int_equal(ct_take("w", lanes, 5), 1);
    assert_int_equal(ct.got.job[0].lane, 63);
}

static void take_of_nothing_is_no_failure(void **state)
{
    (void)state;
    ct_join("w", "q r");
    assert_int_equal(ct_take("w", "q", 10), 0);
    assert_int_equal(ct.got.next_due_ms, 0);
    ct_add("q", "a");
    assert_int_equal(ct_take("w", "r", 10), 0);
    assert_int_equal(ct_take("w", "q", 10), 1);
}

static void take_gives_at_most_what_was_asked_for(void **state)
{
    (void)state;
    ct_join("w", "q");
    ct_add_many("q", "j", 10);
    assert_int_equal(ct_take("w", "q", 1), 1);
    assert_int_equal(ct_take("w", "q", 4), 4);
    assert_int_equal(ct_take("w", "q", 100), 5);
    assert_int_equal(ct_count("q", LADE_STATE_ACTIVE), 10);
}

static void take_is_clamped_to_its_bound(void **state)
{
    (void)state;
    ct_join("w", "q");
    ct_add_many("q", "j", LQ_TAKE_MAX + 5);
    assert_int_equal(ct_take("w", "q", (size_t)5 * LQ_TAKE_MAX), LQ_TAKE_MAX);
    assert_int_equal(ct_take("w", "q", (size_t)5 * LQ_TAKE_MAX), 5);
}

static void take_appends_to_what_is_there(void **state)
{
    (void)state;
    ct_join("w", "q");
    ct_add("q", "a b c");
    struct lq_take take = ct_asking("w", "q", 1);
    for (int i = 0; i < 3; i++)
        EXPECT(0, lq_settle_take(ct.s, NULL, 0, &take, &ct.got, &ct.err));
    assert_string_equal(ct_got(), "a b c");
}

static void taken_job_is_active_and_shows_its_owner(void **state)
{
    (void)state;
    ct_join("w", "q");
    ct_add("q", "a");
    int64_t before = ct_now();
    struct lq_leased j = ct_take_one("w", "q");
    const struct lq_row *row = ct_row("q", "a");
    assert_int_equal(row->state, LADE_STATE_ACTIVE);
    assert_string_equal(row->worker, "host:w");
    assert_int_equal(row->fence, j.fence);
    assert_in_range(row->taken_ms, before, ct_now());
    assert_in_range(row->lease_until_ms, before + CT_HOUR - 5000, ct_now() + CT_HOUR);
    assert_string_equal(j.former, "");
    assert_false(j.begun);
    assert_false(j.oversize);
    assert_true(j.fence > 0);
}

static void fences_of_a_queue_grow_with_every_lease(void **state)
{
    (void)state;
    ct_join("w", "q");
    ct_add_many("q", "j", 5);
    uint64_t last = 0;
    for (int round = 0; round < 3; round++) {
        assert_int_equal(ct_take("w", "q", 10), 5);
        /* Jobs of one take may share a fence. */
        assert_true(ct.got.job[0].fence > last);
        for (size_t i = 0; i < 5; i++) {
            assert_true(ct.got.job[i].fence >= last);
            last = ct.got.job[i].fence;
        }
        for (size_t i = 0; i < 5; i++)
            assert_int_equal(ct_settle("q", &ct.got.job[i], LQ_TO_READY), LADE_DONE);
    }
}

static void body_over_the_bound_is_not_handed_out(void **state)
{
    (void)state;
    ct.config.body_max = 100;
    ct_reopen();
    ct_join("w", "q");
    char body[102] = "\x01"
                     "4";
    memset(body + 2, 'x', 100);
    struct lq_put item[] = {ct_item("q", "fits"), ct_item("q", "over")};
    item[0].body = lb_slice(body, 100);
    item[1].body = lb_slice(body, 101);
    ct_put(item, 2);
    assert_int_equal(ct_take("w", "q", 2), 2);
    assert_false(ct.got.job[0].oversize);
    assert_int_equal(ct.got.job[0].body.n, 100);
    assert_true(ct.got.job[1].oversize);
    assert_int_equal(ct.got.job[1].body.n, 0);
    assert_int_equal(ct_settle("q", &ct.got.job[1], LQ_TO_DEAD), LADE_DONE);
    assert_int_equal(ct_state("q", "over"), LADE_STATE_DEAD);
}

static void unregistered_incarnation_is_handed_nothing(void **state)
{
    (void)state;
    ct_add("q", "a");
    struct lq_take take = ct_asking("stranger", "q", 1);
    EXPECT(LADE_STALE, lq_settle_take(ct.s, NULL, 0, &take, &ct.got, &ct.err));
    assert_int_equal(ct.got.n, 0);
    assert_int_equal(ct_state("q", "a"), LADE_STATE_READY);
}

static void incarnation_past_its_lease_is_handed_nothing_until_it_renews(void **state)
{
    (void)state;
    ct_join("w", "q");
    ct_die("w", "q");
    ct_add("q", "a");
    struct lq_take take = ct_asking("w", "q", 1);
    EXPECT(LADE_STALE, lq_settle_take(ct.s, NULL, 0, &take, &ct.got, &ct.err));
    assert_int_equal(ct.got.n, 0);
    assert_string_equal(ct_stops("w", "q", 1), "");
    assert_int_equal(ct_take("w", "q", 1), 1);
}

/* promotion -------------------------------------------------------------------------------------------------------- */

/* chasqui 17 */
static void due_job_is_promoted_by_the_take(void **state)
{
    (void)state;
    ct_join("w", "q");
    ct_add_in("q", "a", CT_SOON);
    ct_step(CT_SOON + 5);
    assert_int_equal(ct_take("w", "q", 5), 1);
    assert_string_equal(ct_got(), "a");
}

/* chronos 19 */
static void job_is_never_taken_before_it_is_due(void **state)
{
    (void)state;
    ct_join("w", "q");
    ct_add_in("q", "a", 100);
    if (ct_is_exact()) {
        ct_step(99);
        assert_int_equal(ct_take("w", "q", 5), 0);
        ct_step(1);
    }
    int64_t due = ct_row("q", "a")->run_at_ms;
    while (ct_take("w", "q", 5) == 0)
        ct_step(1);
    assert_true(ct_now() >= due);
}

/* C-070: it is a time, never a delay that could be 0. (chasqui 16) */
static void empty_take_tells_when_the_next_job_is_due(void **state)
{
    (void)state;
    ct_join("w", "q r");
    ct_add_in("q", "a", 2 * CT_HOUR);
    (void)ct_bring("r", "b", LADE_STATE_RETRYING);
    int64_t due = ct_row("r", "b")->run_at_ms;
    assert_int_equal(ct_take("w", "q r", 5), 0);
    assert_int_equal(ct.got.next_due_ms, due);
    due = ct_row("q", "a")->run_at_ms;
    assert_int_equal(ct_take("w", "q", 5), 0);
    assert_int_equal(ct.got.next_due_ms, due);
}

/* Without it a worker cannot tell how far off the next job is, and sleeps until somebody else promotes it. */
static void empty_take_tells_the_time_of_its_look(void **state)
{
    (void)state;
    ct_join("w", "q");
    int64_t before = ct_now();
    assert_int_equal(ct_take("w", "q", 5), 0);
    assert_in_range(ct.got.now_ms, before, ct_now());
    ct_add_in("q", "a", CT_HOUR);
    ct_step(7);
    before = ct_now();
    assert_int_equal(ct_take("w", "q", 5), 0);
    assert_in_range(ct.got.now_ms, before, ct_now());
    assert_true(ct.got.next_due_ms > ct.got.now_ms);
    assert_true(ct.got.next_due_ms - ct.got.now_ms <= CT_HOUR);
}

static void promoted_jobs_join_the_end_of_their_level_in_due_order(void **state)
{
    (void)state;
    ct_join("w", "q");
    static const char *const id[] = {"c", "b", "a", "urgent"};
    struct lq_put item[4];
    for (size_t i = 0; i < 4; i++) {
        item[i] = ct_item_level("q", id[i], i == 3 ? 1 : LQ_LEVEL_DEFAULT);
        item[i].when = LQ_WHEN_IN;
        item[i].when_ms = i == 3 ? CT_SOON + 9 : CT_SOON + 6 - 3 * (int64_t)i;
    }
    ct_put(item, 4);
    ct_add("q", "first");
    ct_step(CT_SOON + 15);
    size_t n = 0;
    int64_t next = -1;
    EXPECT(0, lq_promote(ct.s, ct_lanes("q"), 100, &n, &next, &ct.err));
    assert_int_equal(n, 4);
    assert_int_equal(next, 0);
    ct_add("q", "last");
    assert_int_equal(ct_take("w", "q", 9), 6);
    assert_string_equal(ct_got(), "urgent first a b c last");
}

/* chasqui 17 */
static void promote_is_bounded_and_tells_what_is_next(void **state)
{
    (void)state;
    size_t n = 0;
    int64_t next = 0;
    for (int i = 0; i < 5; i++)
        ct_add_in("q", ct_format("a%d", i), 1 + i);
    ct_add_in("r", "r0", 1);
    ct_add_in("q", "later", CT_HOUR);
    ct_step(15);
    size_t total = 0;
    for (int i = 0; i < 10 && total < 6; i++) {
        EXPECT(0, lq_promote(ct.s, ct_lanes("q r"), 2, &n, &next, &ct.err));
        assert_in_range(n, 1, 2);
        total += n;
    }
    assert_int_equal(total, 6);
    EXPECT(0, lq_promote(ct.s, ct_lanes("q r"), 2, &n, &next, &ct.err));
    assert_int_equal(n, 0);
    assert_int_equal(next, ct_row("q", "later")->run_at_ms);
    assert_int_equal(ct_count("q", LADE_STATE_READY), 5);
    assert_int_equal(ct_count("r", LADE_STATE_READY), 1);
    assert_int_equal(ct_count("q", LADE_STATE_SCHEDULED), 1);
}

/* C-065: of many jobs due at one instant a take that wants one moves a bounded number, and a promote no more than asked. */
static void take_moves_a_bounded_number_of_due_jobs(void **state)
{
    (void)state;
    ct_join("w", "q");
    for (size_t i = 0; i < 3; i++) {
        struct lq_put item[1000];
        for (size_t k = 0; k < LB_ARRAY_LEN(item); k++) {
            item[k] = ct_item("q", ct_format("j%zu-%zu", i, k));
            item[k].when = LQ_WHEN_IN;
            item[k].when_ms = 1;
        }
        ct_put(item, LB_ARRAY_LEN(item));
    }
    ct_step(CT_SOON);
    assert_int_equal(ct_take("w", "q", 1), 1);
    assert_true(ct_count("q", LADE_STATE_SCHEDULED) >= 2000);
}

static void promote_brings_back_retrying_and_snoozed_jobs(void **state)
{
    (void)state;

    static const enum lq_to to[] = {LQ_TO_RETRYING, LQ_TO_SCHEDULED};

    size_t n = 0;
    int64_t next = -1;
    ct_join("w", "q");
    struct lq_leased j[2];
    for (size_t i = 0; i < 2; i++) { /* both are taken before the first is due again */
        ct_add("q", ct_format("a%zu", i));
        j[i] = ct_take_one("w", "q");
    }
    for (size_t i = 0; i < 2; i++) {
        struct lq_settle it = ct_settling("q", &j[i], to[i]);
        it.delay_ms = CT_SOON;
        assert_int_equal(ct_settle_one(it), LADE_DONE);
    }
    ct_step(CT_SOON + 5);
    EXPECT(0, lq_promote(ct.s, ct_lanes("q"), 9, &n, &next, &ct.err));
    assert_int_equal(n, 2);
    assert_int_equal(next, 0);
    assert_int_equal(ct_count("q", LADE_STATE_READY), 2);
}

static void promote_in_a_queue_that_is_not_there_does_nothing(void **state)
{
    (void)state;
    size_t n = 9;
    int64_t next = 9;
    lade_queue_info info;
    EXPECT(0, lq_promote(ct.s, ct_lanes("nowhere"), 9, &n, &next, &ct.err));
    assert_int_equal(n, 0);
    assert_int_equal(next, 0);
    EXPECT(LADE_NOT_FOUND, ct.s->ops->count(ct.s, "nowhere", &info, &ct.err));
}

static const struct CMUnitTest tests[] = {
    CT_TEST(jobs_of_a_level_come_first_in_first_out),
    CT_TEST(lower_level_comes_first),
    CT_TEST(later_job_of_a_lower_level_overtakes),
    CT_TEST(lanes_are_emptied_in_the_order_asked_for),
    CT_TEST(take_fetches_from_sixty_four_lanes),
    CT_TEST(take_of_nothing_is_no_failure),
    CT_TEST(take_gives_at_most_what_was_asked_for),
    CT_TEST(take_is_clamped_to_its_bound),
    CT_TEST(take_appends_to_what_is_there),
    CT_TEST(taken_job_is_active_and_shows_its_owner),
    CT_TEST(fences_of_a_queue_grow_with_every_lease),
    CT_TEST(body_over_the_bound_is_not_handed_out),
    CT_TEST(unregistered_incarnation_is_handed_nothing),
    CT_TEST(incarnation_past_its_lease_is_handed_nothing_until_it_renews),
    CT_TEST(due_job_is_promoted_by_the_take),
    CT_TEST(job_is_never_taken_before_it_is_due),
    CT_TEST(empty_take_tells_when_the_next_job_is_due),
    CT_TEST(empty_take_tells_the_time_of_its_look),
    CT_TEST(promoted_jobs_join_the_end_of_their_level_in_due_order),
    CT_TEST(promote_is_bounded_and_tells_what_is_next),
    CT_TEST(take_moves_a_bounded_number_of_due_jobs),
    CT_TEST(promote_brings_back_retrying_and_snoozed_jobs),
    CT_TEST(promote_in_a_queue_that_is_not_there_does_nothing),
};

CT_GROUP(ct_take_group, tests);
