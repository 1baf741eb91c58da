/* lease_cases.c - contract: renew, leave, begin, reclaim, and operators' stop requests */
#include "contract.h"

static int renew(const char *worker, const char *lanes, bool first)
{
    struct lq_beat beat = ct_beat(worker, lanes);
    size_t n = 0;
    beat.first = first;
    int rc = lq_renew(ct.s, &beat, NULL, 0, &n, &ct.err);
    assert_true(rc >= 0);
    return rc;
}

static lade_worker_info *list_workers(size_t *n)
{
    lade_worker_info *info = NULL;
    EXPECT(0, ct.s->ops->workers(ct.s, &ct.arena, &info, n, &ct.err));
    return info;
}

static void renew_of_an_unknown_incarnation_is_stale(void **state)
{
    (void)state;
    assert_int_equal(renew("w", "q", false), LADE_STALE);
    assert_int_equal(renew("w", "q", true), LADE_DONE);
    assert_int_equal(renew("w", "q", false), LADE_DONE);
}

static void repeated_first_renew_is_no_harm(void **state)
{
    (void)state;
    ct_join("w", "q");
    ct_add("q", "a");
    struct lq_leased j = ct_take_one("w", "q");
    assert_int_equal(renew("w", "q", true), LADE_DONE);
    assert_int_equal(ct_settle("q", &j, LQ_TO_COMPLETED), LADE_DONE);
}

/* chronos 30 */
static void renewed_incarnation_keeps_its_leases(void **state)
{
    (void)state;
    ct_join("w", "q");
    ct_join("v", "q");
    ct_add("q", "a");
    struct lq_leased j = ct_take_one("w", "q");
    ct_step(CT_SOON);
    assert_int_equal(renew("w", "q", false), LADE_DONE);
    assert_int_equal(ct_reclaim("v", "q", 10), 0);
    assert_int_equal(ct_settle("q", &j, LQ_TO_COMPLETED), LADE_DONE);
}

/* Stores with a clock of their own are asked only from far off the edge. */
static void lease_lasts_through_its_last_millisecond(void **state)
{
    (void)state;
    struct lq_beat beat = ct_beat("w", "q");
    size_t n = 0;
    ct_join("v", "q");
    ct_add("q", "a b");
    beat.lease_ms = ct_is_exact() ? 50 : 60000;
    EXPECT(0, lq_renew(ct.s, &beat, NULL, 0, &n, &ct.err));
    ct_step(ct_is_exact() ? 50 : 1);
    assert_int_equal(ct_take("w", "q", 1), 1);
    assert_int_equal(ct_reclaim("v", "q", 10), 0);
    if (ct_is_exact())
        ct_step(1);
    else
        ct_die("w", "q");
    struct lq_take take = ct_asking("w", "q", 1);
    struct lq_leased_vec none = {0};
    EXPECT(LADE_STALE, lq_settle_take(ct.s, NULL, 0, &take, &none, &ct.err));
    assert_int_equal(ct_reclaim("v", "q", 10), 1);
}

static void late_incarnation_lives_on_when_nobody_reclaimed_it(void **state)
{
    (void)state;
    ct_join("w", "q");
    ct_join("v", "q");
    ct_add("q", "a");
    struct lq_leased j = ct_take_one("w", "q");
    ct_die("w", "q");
    assert_int_equal(renew("w", "q", false), LADE_DONE);
    assert_int_equal(ct_reclaim("v", "q", 10), 0);
    assert_int_equal(ct_settle("q", &j, LQ_TO_COMPLETED), LADE_DONE);
}

static void dead_incarnation_may_settle_until_it_is_reclaimed(void **state)
{
    (void)state;
    ct_join("w", "q");
    ct_add("q", "a");
    struct lq_leased j = ct_take_one("w", "q");
    ct_die("w", "q");
    assert_int_equal(ct_settle("q", &j, LQ_TO_COMPLETED), LADE_DONE);
}

static void reclaim_takes_nothing_from_the_living(void **state)
{
    (void)state;
    ct_join("w", "q");
    ct_join("v", "q");
    ct_add("q", "a b");
    assert_int_equal(ct_take("w", "q", 2), 2);
    assert_int_equal(ct_reclaim("v", "q", 10), 0);
    assert_int_equal(ct_count("q", LADE_STATE_ACTIVE), 2);
}

static void reclaim_hands_the_leases_of_the_dead_on(void **state)
{
    (void)state;
    ct_join("w", "q");
    ct_join("v", "q");
    ct_add("q", "a");
    struct lq_leased j = ct_take_one("w", "q");
    struct lq_settle it = ct_settling("q", &j, LQ_TO_READY);
    it.history = lb_slice("\1\0\1\0\0\0", 6);
    assert_int_equal(ct_settle_one(it), LADE_DONE);
    j = ct_take_one("w", "q");
    ct_die("w", "q");
    assert_int_equal(ct_reclaim("v", "q", 10), 1);
    const struct lq_leased *r = &ct.got.job[0];
    assert_string_equal((const char *)r->id.p, "a");
    assert_int_equal(r->body.n, 3);
    assert_memory_equal(r->body.p,
                        "\x01"
                        "4a",
                        4);
    assert_int_equal(r->history.n, 6);
    assert_string_equal(r->former, "w");
    assert_false(r->begun);
    assert_true(r->fence > j.fence);
    assert_int_equal(r->lane, 0);
    assert_string_equal(ct_row("q", "a")->worker, "host:v");
    assert_int_equal(ct_count("q", LADE_STATE_ACTIVE), 1);
}

/* C-004: the store's half. (chasqui 37) */
static void former_owner_is_refused_after_reclaim(void **state)
{
    (void)state;
    ct_join("w", "q");
    ct_join("v", "q");
    ct_add("q", "a");
    struct lq_leased j = ct_take_one("w", "q");
    ct_die("w", "q");
    assert_int_equal(ct_reclaim("v", "q", 10), 1);
    assert_int_equal(ct_settle("q", &j, LQ_TO_COMPLETED), LADE_STALE);
    assert_int_equal(ct_begin("w", "q", &j), LADE_STALE);
    assert_int_equal(renew("w", "q", false), LADE_STALE);
    struct lq_take take = ct_asking("w", "q", 1);
    struct lq_leased_vec none = {0};
    EXPECT(LADE_STALE, lq_settle_take(ct.s, NULL, 0, &take, &none, &ct.err));
    EXPECT(LADE_STALE, lq_reclaim(ct.s, &take, &none, &ct.err));
    assert_int_equal(ct_settle("q", &ct.got.job[0], LQ_TO_COMPLETED), LADE_DONE);
}

/* C-035: no record of a dead worker stays behind. */
static void dead_incarnation_without_leases_is_voided_too(void **state)
{
    (void)state;
    ct_join("w", "q");
    ct_join("v", "q");
    ct_die("w", "q");
    assert_int_equal(ct_reclaim("v", "q", 10), 0);
    assert_int_equal(renew("w", "q", false), LADE_STALE);
}

static void reclaim_is_bounded(void **state)
{
    (void)state;
    ct_join("w1", "q");
    ct_join("w2", "q");
    ct_join("v", "q");
    ct_add("q", "a b c d e");
    assert_int_equal(ct_take("w1", "q", 3), 3);
    assert_int_equal(ct_take("w2", "q", 2), 2);
    ct_die("w1", "q");
    ct_die("w2", "q");
    assert_int_equal(ct_reclaim("v", "q", 2), 2);
    assert_int_equal(ct_reclaim("v", "q", 2), 2);
    assert_int_equal(ct_reclaim("v", "q", 2), 1);
    assert_int_equal(ct_reclaim("v", "q", 2), 0);
    assert_int_equal(ct_count("q", LADE_STATE_ACTIVE), 5);
}

static void reclaim_looks_only_into_its_lanes(void **state)
{
    (void)state;
    ct_join("w", "q r");
    ct_join("v", "q r s");
    ct_add("q", "a");
    ct_add("r", "b");
    assert_int_equal(ct_take("w", "q r", 2), 2);
    ct_die("w", "q r");
    assert_int_equal(ct_reclaim("v", "s r", 10), 1);
    assert_string_equal(ct_got(), "b");
    assert_int_equal(ct.got.job[0].lane, 1);
    assert_int_equal(ct_reclaim("v", "q", 10), 1);
    assert_string_equal(ct_got(), "a");
}

static void reclaim_reaches_into_paused_queues(void **state)
{
    (void)state;
    ct_join("w", "q");
    ct_join("v", "q");
    ct_add("q", "a");
    (void)ct_take_one("w", "q");
    ct_die("w", "q");
    EXPECT(0, ct.s->ops->pause(ct.s, "q", true, &ct.err));
    assert_int_equal(ct_reclaim("v", "q", 10), 1);
    assert_int_equal(ct_settle("q", &ct.got.job[0], LQ_TO_READY), LADE_DONE);
}

static void reclaim_by_a_stranger_is_stale(void **state)
{
    (void)state;
    ct_join("w", "q");
    ct_add("q", "a");
    struct lq_leased j = ct_take_one("w", "q");
    ct_die("w", "q");
    struct lq_take take = ct_asking("stranger", "q", 5);
    EXPECT(LADE_STALE, lq_reclaim(ct.s, &take, &ct.got, &ct.err));
    assert_int_equal(ct_settle("q", &j, LQ_TO_COMPLETED), LADE_DONE);
}

static void body_over_the_bound_is_not_handed_out_by_reclaim(void **state)
{
    (void)state;
    ct.config.body_max = 10;
    ct_reopen();
    ct_join("w", "q");
    ct_join("v", "q");
    assert_int_equal(ct_put_one(ct_item("q", "long-enough-to-be-over")), LADE_DONE);
    assert_int_equal(ct_take("w", "q", 1), 1);
    ct_die("w", "q");
    assert_int_equal(ct_reclaim("v", "q", 1), 1);
    assert_true(ct.got.job[0].oversize);
    assert_int_equal(ct.got.job[0].body.n, 0);
}

/* begin ------------------------------------------------------------------------------------------------------------ */

static void begun_lease_is_reclaimed_as_begun(void **state)
{
    (void)state;
    ct_join("w", "q");
    ct_join("v", "q");
    ct_add("q", "a b");
    assert_int_equal(ct_take("w", "q", 2), 2);
    assert_int_equal(ct_begin("w", "q", &ct.got.job[1]), LADE_DONE);
    assert_int_equal(ct_begin("w", "q", &ct.got.job[1]), LADE_DONE);
    ct_die("w", "q");
    assert_int_equal(ct_reclaim("v", "q", 10), 2);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(ct.got.job[i].begun, strcmp((char *)ct.got.job[i].id.p, "b") == 0);
    /* The new lease has not begun. */
    ct_die("v", "q");
    ct_join("u", "q");
    assert_int_equal(ct_reclaim("u", "q", 10), 2);
    assert_false(ct.got.job[0].begun || ct.got.job[1].begun);
}

static void begin_is_refused_for_a_wrong_fence_worker_or_job(void **state)
{
    (void)state;
    ct_join("w", "q");
    ct_join("v", "q");
    ct_add("q", "a");
    struct lq_leased j = ct_take_one("w", "q"), wrong = j;
    wrong.fence++;
    assert_int_equal(ct_begin("w", "q", &wrong), LADE_STALE);
    assert_int_equal(ct_begin("v", "q", &j), LADE_STALE);
    assert_int_equal(ct_begin("w", "r", &j), LADE_STALE);
    ct_die("w", "q");
    assert_int_equal(ct_reclaim("v", "q", 1), 1);
    assert_false(ct.got.job[0].begun);
}

static void begin_after_the_settle_is_stale(void **state)
{
    (void)state;
    ct_join("w", "q");
    ct_add("q", "a");
    struct lq_leased j = ct_take_one("w", "q");
    assert_int_equal(ct_settle("q", &j, LQ_TO_READY), LADE_DONE);
    assert_int_equal(ct_begin("w", "q", &j), LADE_STALE);
}

static void begin_is_forgotten_when_the_job_is_handed_back(void **state)
{
    (void)state;
    ct_join("w", "q");
    ct_join("v", "q");
    ct_add("q", "a");
    struct lq_leased j = ct_take_one("w", "q");
    assert_int_equal(ct_begin("w", "q", &j), LADE_DONE);
    assert_int_equal(ct_settle("q", &j, LQ_TO_READY), LADE_DONE);
    (void)ct_take_one("w", "q");
    ct_die("w", "q");
    assert_int_equal(ct_reclaim("v", "q", 1), 1);
    assert_false(ct.got.job[0].begun);
}

/* leave and workers ------------------------------------------------------------------------------------------------ */

/* C-034: leaving does not lose what the worker still held. */
static void leases_left_behind_are_reclaimed_at_once(void **state)
{
    (void)state;
    ct_join("w", "q");
    ct_join("v", "q");
    ct_add("q", "a");
    (void)ct_take_one("w", "q");
    EXPECT(0, lq_leave(ct.s, "w", ct_lanes("q"), &ct.err));
    assert_int_equal(renew("w", "q", false), LADE_STALE);
    assert_int_equal(ct_reclaim("v", "q", 5), 1);
    assert_string_equal(ct.got.job[0].former, "w");
}

static void leaving_twice_or_unknown_is_no_harm(void **state)
{
    (void)state;
    ct_join("w", "q");
    EXPECT(0, lq_leave(ct.s, "w", ct_lanes("q"), &ct.err));
    EXPECT(0, lq_leave(ct.s, "w", ct_lanes("q"), &ct.err));
    EXPECT(0, lq_leave(ct.s, "stranger", ct_lanes("q"), &ct.err));
}

static void live_workers_are_listed_as_they_registered(void **state)
{
    (void)state;
    size_t n = 0;
    struct lq_beat beat = ct_beat("w", "q r");
    beat.started_ms = 1234567;
    int64_t before = ct_now();
    size_t n_stop = 0;
    EXPECT(0, lq_renew(ct.s, &beat, NULL, 0, &n_stop, &ct.err));
    ct_add("q", "a b");
    assert_int_equal(ct_take("w", "q r", 2), 2);
    const lade_worker_info *info = list_workers(&n);
    assert_int_equal(n, 1);
    assert_string_equal(info->id, "w");
    assert_string_equal(info->name, "host:w");
    assert_true(strcmp(info->queues, "q,r") == 0 || strcmp(info->queues, "r,q") == 0);
    assert_int_equal(info->concurrency, 3);
    assert_int_equal(info->started_at, 1234567 * LADE_MILLISECOND);
    assert_in_range(info->seen_at, before * LADE_MILLISECOND, ct_now() * LADE_MILLISECOND);
    assert_in_range(info->lease_until, (before + CT_HOUR) * LADE_MILLISECOND,
                    (ct_now() + CT_HOUR) * LADE_MILLISECOND);
    assert_int_equal(info->n_active, 2);
}

static void dead_and_departed_workers_are_not_listed(void **state)
{
    (void)state;
    size_t n = 9;
    ct_add("q", "a");
    ct_join("w", "q");
    ct_join("v", "q r");
    ct_join("u", "r");
    (void)list_workers(&n);
    assert_int_equal(n, 3);
    assert_int_equal(ct_info("q").n_workers, 2);
    ct_die("w", "q");
    EXPECT(0, lq_leave(ct.s, "u", ct_lanes("r"), &ct.err));
    const lade_worker_info *info = list_workers(&n);
    assert_int_equal(n, 1);
    assert_string_equal(info->id, "v");
    assert_int_equal(ct_info("q").n_workers, 1);
}

static void no_workers_are_listed_as_none(void **state)
{
    (void)state;
    size_t n = 9;
    (void)list_workers(&n);
    assert_int_equal(n, 0);
}

/* stop requests ---------------------------------------------------------------------------------------------------- */

static void stop_request_is_told_once_to_the_owner(void **state)
{
    (void)state;
    ct_join("w", "q");
    ct_join("v", "q");
    ct_add("q", "a b c d");
    assert_int_equal(ct_take("w", "q", 4), 4);
    uint64_t fence = ct.got.job[0].fence;
    assert_int_equal(ct_act("q", LADE_JOB_KILL, "a"), LADE_DONE);
    assert_string_equal(ct_stops("v", "q", 8), "");
    struct lq_beat beat = ct_beat("w", "q");
    struct lq_stop stop[4];
    size_t n = 0;
    beat.first = false;
    EXPECT(0, lq_renew(ct.s, &beat, stop, 4, &n, &ct.err));
    assert_int_equal(n, 1);
    assert_string_equal(stop[0].queue, "q");
    assert_string_equal(stop[0].id, "a");
    assert_int_equal(stop[0].fence, fence);
    assert_string_equal(ct_stops("w", "q", 8), "");
    assert_int_equal(ct_act("q", LADE_JOB_CANCEL, "b"), LADE_DONE);
    assert_string_equal(ct_stops("w", "q", 8), "b");
    assert_int_equal(ct_act("q", LADE_JOB_REMOVE, "c"), LADE_DONE);
    assert_string_equal(ct_stops("w", "q", 8), "c");
    assert_string_equal(ct_stops("w", "q", 8), "");
}

static void stop_requests_are_told_in_bounded_portions(void **state)
{
    (void)state;
    ct_join("w", "q r");
    ct_add("q", "a b c");
    ct_add("r", "d e");
    assert_int_equal(ct_take("w", "q r", 5), 5);
    size_t told = 0;
    for (const char *id = "abc"; *id; id++)
        assert_int_equal(ct_act("q", LADE_JOB_CANCEL, (char[]){*id, 0}), LADE_DONE);
    assert_int_equal(ct_act("r", LADE_JOB_REMOVE, "d"), LADE_DONE);
    assert_int_equal(ct_act("r", LADE_JOB_KILL, "e"), LADE_DONE);
    for (int i = 0; i < 5; i++) {
        const char *stops = ct_stops("w", "q r", 2);
        told += (strlen(stops) + 1) / 2;
        if (!*stops)
            break;
    }
    assert_int_equal(told, 5);
}

static struct lq_ahead look_ahead(const char *worker, const char *lanes)
{
    struct lq_ahead ahead = {-1, -1, false, false};
    struct lq_beat beat = ct_beat(worker, lanes);
    size_t n = 0;
    beat.first = false;
    beat.ahead = &ahead;
    EXPECT(0, lq_renew(ct.s, &beat, NULL, 0, &n, &ct.err));
    return ahead;
}

static void renew_says_when_the_lease_of_another_ends(void **state)
{
    (void)state;
    ct_join("w", "q");
    assert_int_equal(look_ahead("w", "q").death_in_ms, LB_FOREVER);
    ct_join("v", "q");
    assert_in_range(look_ahead("w", "q").death_in_ms, CT_HOUR / 2, CT_HOUR + 1);
    ct_add("q", "a");
    assert_int_equal(ct_take("v", "q", 1), 1);
    ct_die("v", "q");
    assert_int_equal(look_ahead("w", "q").death_in_ms, 0);
    assert_int_equal(ct_reclaim("w", "q", 10), 1);
    assert_int_equal(ct_reclaim("w", "q", 10), 0);
    assert_int_equal(look_ahead("w", "q").death_in_ms, LB_FOREVER);
}

static void renew_says_when_a_job_falls_due(void **state)
{
    (void)state;
    ct_join("w", "q r");
    assert_int_equal(look_ahead("w", "q r").due_in_ms, LB_FOREVER);
    ct_add_in("q", "a", CT_HOUR);
    assert_in_range(look_ahead("w", "q r").due_in_ms, CT_HOUR / 2, CT_HOUR);
    EXPECT(0, ct.s->ops->pause(ct.s, "r", true, &ct.err));
    ct_add_in("r", "b", CT_HOUR / 4);
    assert_in_range(look_ahead("w", "q r").due_in_ms, CT_HOUR / 8, CT_HOUR / 4);
    ct_add_in("r", "c", 1);
    ct_step(3);
    assert_int_equal(look_ahead("w", "q r").due_in_ms, 0);
}

static const struct CMUnitTest tests[] = {
    CT_TEST(renew_of_an_unknown_incarnation_is_stale),
    CT_TEST(repeated_first_renew_is_no_harm),
    CT_TEST(renew_says_when_the_lease_of_another_ends),
    CT_TEST(renew_says_when_a_job_falls_due),
    CT_TEST(renewed_incarnation_keeps_its_leases),
    CT_TEST(lease_lasts_through_its_last_millisecond),
    CT_TEST(late_incarnation_lives_on_when_nobody_reclaimed_it),
    CT_TEST(dead_incarnation_may_settle_until_it_is_reclaimed),
    CT_TEST(reclaim_takes_nothing_from_the_living),
    CT_TEST(reclaim_hands_the_leases_of_the_dead_on),
    CT_TEST(former_owner_is_refused_after_reclaim),
    CT_TEST(dead_incarnation_without_leases_is_voided_too),
    CT_TEST(reclaim_is_bounded),
    CT_TEST(reclaim_looks_only_into_its_lanes),
    CT_TEST(reclaim_reaches_into_paused_queues),
    CT_TEST(reclaim_by_a_stranger_is_stale),
    CT_TEST(body_over_the_bound_is_not_handed_out_by_reclaim),
    CT_TEST(begun_lease_is_reclaimed_as_begun),
    CT_TEST(begin_is_refused_for_a_wrong_fence_worker_or_job),
    CT_TEST(begin_after_the_settle_is_stale),
    CT_TEST(begin_is_forgotten_when_the_job_is_handed_back),
    CT_TEST(leases_left_behind_are_reclaimed_at_once),
    CT_TEST(leaving_twice_or_unknown_is_no_harm),
    CT_TEST(live_workers_are_listed_as_they_registered),
    CT_TEST(dead_and_departed_workers_are_not_listed),
    CT_TEST(no_workers_are_listed_as_none),
    CT_TEST(stop_request_is_told_once_to_the_owner),
    CT_TEST(stop_requests_are_told_in_bounded_portions),
};

CT_GROUP(ct_lease_group, tests);
