/* limit_cases.c - contract: no limit is ever exceeded, and none holds longer than it must; where a store has keys (ops.key_list) */
#include "key_kit.h"

static void a_key_runs_no_more_than_its_concurrency(void **state)
{
    (void)state;
    KY_NEEDS_KEYS();
    struct lq_limit two = {.concurrency = 2};
    ct_join("w", "q");
    ky_usual("q", two);
    ky_add("q", "a1:A a2:A a3:A a4:A b1:B u1 u2 u3");
    assert_string_equal((ct_take("w", "q", 20), ct_got()), "u1 a1 b1 u2 a2 u3");
    struct lq_leased a1 = ct.got.job[1];
    assert_string_equal(ky_show("q"), "A 2/2/0 concurrency, B 0/1/0");
    assert_int_equal(ct_info("q").held, 2);
    assert_int_equal(ct_info("q").count[LADE_STATE_READY], 2);
    struct lq_settle it = ct_settling("q", &a1, LQ_TO_COMPLETED);
    struct lq_take take = ct_asking("w", "q", 20);
    struct lq_leased_vec got = {0};
    EXPECT(0, lq_settle_take(ct.s, &it, 1, &take, &got, &ct.err));
    assert_int_equal(got.n, 1);
    assert_string_equal((const char *)got.job[0].id.p, "a3");
    lb_arena_fini(&got.arena);
    assert_int_equal(ct_take("w", "q", 20), 0);
}

static void each_way_out_frees_the_slot(void **state)
{
    (void)state;
    KY_NEEDS_KEYS();
    struct lq_limit one = {.concurrency = 1};
    ct_join("w", "q");
    ky_usual("q", one);
    for (int to = LQ_TO_COMPLETED; to <= LQ_TO_GONE; to++) {
        ky_add("q", ct_format("x%d:A", to));
        if (to == LQ_TO_READY)
            continue; /* below */
        struct lq_leased j = ct_take_one("w", "q");
        assert_int_equal(ct_take("w", "q", 5), 0);
        assert_int_equal(ct_settle("q", &j, (enum lq_to)to), LADE_DONE);
    }
    struct lq_leased j = ct_take_one("w", "q");
    assert_int_equal(ct_settle("q", &j, LQ_TO_READY), LADE_DONE);
    j = ct_take_one("w", "q");
    assert_int_equal(ct_act("q", LADE_JOB_REMOVE, (const char *)j.id.p), LADE_DONE);
    ky_add("q", "y:A");
    j = ct_take_one("w", "q");
    assert_int_equal(ct_act("q", LADE_JOB_CANCEL, "y"), LADE_DONE);
    assert_int_equal(ct_settle("q", &j, LQ_TO_RETRYING), LADE_DONE);
    assert_int_equal(ct_state("q", "y"), LADE_STATE_CANCELLED);
    ky_add("q", "z:A");
    (void)ct_take_one("w", "q");
}

/* C-074: the slot of a dead worker passes with the lease, and is free when that is settled. */
static void a_dead_workers_slot_is_freed_by_reclaim(void **state)
{
    (void)state;
    KY_NEEDS_KEYS();
    struct lq_limit one = {.concurrency = 1};
    ct_join("w", "q");
    ct_join("v", "q");
    ky_usual("q", one);
    ky_add("q", "a1:A a2:A a3:A");
    assert_string_equal((ct_take("v", "q", 5), ct_got()), "a1");
    ct_die("v", "q");
    assert_int_equal(ct_take("w", "q", 5), 0);
    assert_int_equal(ct_reclaim("w", "q", 5), 1);
    struct lq_leased j = ct.got.job[0];
    j.id = lb_arena_copy(&ct.arena, j.id.p, j.id.n);
    assert_int_equal(ct_take("w", "q", 5), 0);
    assert_int_equal(ct_settle("q", &j, LQ_TO_READY), LADE_DONE);
    assert_string_equal((ct_take("w", "q", 5), ct_got()), "a1");
}

static void a_queue_runs_no_more_than_its_concurrency(void **state)
{
    (void)state;
    KY_NEEDS_KEYS();
    struct lq_limit three = {.concurrency = 3};
    ct_join("w", "q");
    EXPECT(0, lq_limit_set(ct.s, "q", LADE_LIMIT_QUEUE, lb_slice_str(""), &three, &ct.err));
    ct_add("q", "u1 u2 u3 u4 u5");
    assert_string_equal((ct_take("w", "q", 2), ct_got()), "u1 u2");
    assert_string_equal((ct_take("w", "q", 2), ct_got()), "u3");
    struct lq_leased j = ct.got.job[0];
    j.id = lb_arena_copy(&ct.arena, j.id.p, j.id.n);
    assert_int_equal(ct_take("w", "q", 2), 0);
    assert_int_equal(ct.got.next_due_ms, 0);
    assert_int_equal(ct_settle("q", &j, LQ_TO_COMPLETED), LADE_DONE);
    assert_string_equal((ct_take("w", "q", 2), ct_got()), "u4");
}

static void limits_change_while_jobs_run(void **state)
{
    (void)state;
    KY_NEEDS_KEYS();
    struct lq_limit one = {.concurrency = 1}, four = {.concurrency = 4}, none = {0};
    ct_join("w", "q");
    ky_usual("q", one);
    ky_add_many("q", "a", "A", 20);
    assert_int_equal(ct_take("w", "q", 20), 1);
    ky_usual("q", four);
    assert_int_equal(ct_take("w", "q", 20), 3);
    ky_usual("q", one);
    assert_int_equal(ct_take("w", "q", 20), 0);
    ky_limit("q", "A", four);
    assert_int_equal(ct_take("w", "q", 20), 0);
    ky_limit("q", "A", (struct lq_limit){.concurrency = 6});
    assert_int_equal(ct_take("w", "q", 20), 2);
    ky_limit("q", "A", none);
    assert_int_equal(ct_take("w", "q", 20), 0);
    ky_usual("q", none);
    assert_int_equal(ct_take("w", "q", 20), 14);
}

/* C-077, and order = fifo: one at a time, and what comes back keeps its place. */
static void fifo_is_one_at_a_time_and_a_retry_keeps_its_place(void **state)
{
    (void)state;
    KY_NEEDS_KEYS();
    struct lq_limit fifo = {.order = LADE_KEY_ORDER_FIFO};
    ct_join("w", "q");
    ky_usual("q", fifo);
    ky_add("q", "a1:A a2:A a3:A b1:B");
    assert_string_equal((ct_take("w", "q", 9), ct_got()), "a1 b1");
    struct lq_leased j = ct.got.job[0];
    j.id = lb_arena_copy(&ct.arena, j.id.p, j.id.n);
    struct lq_settle it = ct_settling("q", &j, LQ_TO_RETRYING);
    it.delay_ms = CT_HOUR;
    assert_int_equal(ct_settle_one(it), LADE_DONE);
    assert_int_equal(ct_take("w", "q", 9), 0);
    assert_string_equal(ky_show("q"), "A 2/0/1 order, B 0/1/0");
    assert_int_equal(ct_act("q", LADE_JOB_RETRY, "a1"), LADE_DONE);
    j = ct_take_one("w", "q");
    assert_string_equal((const char *)j.id.p, "a1");
    it = ct_settling("q", &j, LQ_TO_RETRYING);
    it.delay_ms = CT_SOON;
    assert_int_equal(ct_settle_one(it), LADE_DONE);
    ct_step(CT_SOON);
    j = ct_take_one("w", "q");
    assert_string_equal((const char *)j.id.p, "a1");
    it = ct_settling("q", &j, LQ_TO_SCHEDULED);
    assert_int_equal(ct_settle_one(it), LADE_DONE);
    assert_int_equal(ct_take("w", "q", 9), 0);
    assert_int_equal(ct_act("q", LADE_JOB_RETRY, "a1"), LADE_DONE);
    j = ct_take_one("w", "q");
    assert_string_equal((const char *)j.id.p, "a1");
    assert_int_equal(ct_settle("q", &j, LQ_TO_READY), LADE_DONE);
    j = ct_take_one("w", "q");
    assert_string_equal((const char *)j.id.p, "a1");
    assert_int_equal(ct_settle("q", &j, LQ_TO_COMPLETED), LADE_DONE);
    j = ct_take_one("w", "q");
    assert_string_equal((const char *)j.id.p, "a2");
}

static void a_paused_key_is_left_alone(void **state)
{
    (void)state;
    KY_NEEDS_KEYS();
    ct_join("w", "q");
    ky_add("q", "a1:A b1:B b2:B");
    ky_pause("q", "B", true);
    assert_string_equal((ct_take("w", "q", 9), ct_got()), "a1");
    assert_string_equal(ky_show("q"), "A 0/1/0, B 2/0/0 paused");
    assert_int_equal(ct_take("w", "q", 9), 0);
    assert_int_equal(ct.got.next_due_ms, 0);
    assert_int_equal(ct_info("q").held, 2);
    ky_pause("q", "B", false);
    assert_int_equal(ct_info("q").held, 0);
    assert_string_equal((ct_take("w", "q", 9), ct_got()), "b1 b2");
    ky_pause("q", "C", true);
    ky_add("q", "c1:C");
    assert_int_equal(ct_take("w", "q", 9), 0);
}

/* Takes the first job of the queue and holds it and its like back. */
static void throttle_first(const char *queue, const char *id, int64_t ms)
{
    assert_string_equal((ct_take("w", queue, 1), ct_got()), id);
    struct lq_settle it = ct_settling(queue, &ct.got.job[0], LQ_TO_THROTTLED);
    it.delay_ms = ms;
    assert_int_equal(ct_settle_one(it), LADE_DONE);
}

/* RATE_LIMITED: the key rests until then, and the job is the first of it. C-077. */
static void a_throttled_job_is_first_when_its_key_goes_on(void **state)
{
    (void)state;
    KY_NEEDS_KEYS();
    ct_join("w", "q r");
    ky_add("q", "a1:A a2:A b1:B");
    int64_t start = ct_now();
    throttle_first("q", "a1", CT_HOUR);
    assert_string_equal((ct_take("w", "q", 9), ct_got()), "b1");
    assert_int_equal(ct_take("w", "q", 9), 0);
    assert_in_range(ct.got.next_due_ms, start + CT_HOUR, ct_now() + CT_HOUR);
    ky_add("r", "c1:C c2:C");
    throttle_first("r", "c1", CT_SOON);
    ct_step(CT_SOON);
    assert_string_equal((ct_take("w", "r", 9), ct_got()), "c1 c2");
}

static void a_throttle_without_a_key_holds_all_without_one(void **state)
{
    (void)state;
    KY_NEEDS_KEYS();
    ct_join("w", "q r");
    ct_add("q", "u1 u2");
    ky_add("q", "a1:A");
    throttle_first("q", "u1", CT_HOUR);
    assert_string_equal((ct_take("w", "q", 9), ct_got()), "a1");
    assert_int_equal(ct_take("w", "q", 9), 0);
    ct_add("r", "v1 v2");
    throttle_first("r", "v1", CT_SOON);
    ct_step(CT_SOON);
    assert_string_equal((ct_take("w", "r", 9), ct_got()), "v1 v2");
}

/* chasqui 53 */
static void a_key_starts_no_more_than_its_rate(void **state)
{
    (void)state;
    KY_NEEDS_KEYS();
    struct lq_limit slow = {.count = 1, .period_ms = CT_SOON, .burst = 3};
    ct_join("w", "q");
    ky_usual("q", slow);
    int64_t start = ct_now();
    ky_add_many("q", "a", "A", 10);
    ky_add("q", "b1:B");
    size_t n = ct_take("w", "q", 20);
    assert_in_range(n, 4, 4 + (size_t)((ct_now() - start) / CT_SOON) + 1);
    for (size_t k = 0; n - 1 < 10 && k < 1000; k++) {
        size_t got = ct_take("w", "q", 20);
        n += got;
        assert_true(n - 1 <= 3 + (size_t)((ct_now() - start) / CT_SOON));
        if (got == 0) {
            assert_in_range(ct.got.next_due_ms, ct.got.now_ms, ct.got.now_ms + CT_SOON);
            ct_step(LB_MAX(ct.got.next_due_ms - ct.got.now_ms, 1));
        }
    }
    assert_int_equal(n, 11);
}

static void a_queue_starts_no_more_than_its_rate(void **state)
{
    (void)state;
    KY_NEEDS_KEYS();
    struct lq_limit slow = {.count = 1, .period_ms = CT_SOON, .burst = 2};
    ct_join("w", "q");
    EXPECT(0, lq_limit_set(ct.s, "q", LADE_LIMIT_QUEUE, lb_slice_str(""), &slow, &ct.err));
    ct_add("q", "u1 u2 u3 u4 u5");
    int64_t start = ct_now();
    size_t n = ct_take("w", "q", 20);
    for (size_t k = 0; n < 5 && k < 1000; k++) {
        size_t got = ct_take("w", "q", 20);
        n += got;
        assert_true(n <= 2 + (size_t)((ct_now() - start) / CT_SOON) + 1);
        if (got == 0) {
            assert_in_range(ct.got.next_due_ms, ct.got.now_ms, ct.got.now_ms + CT_SOON);
            ct_step(LB_MAX(ct.got.next_due_ms - ct.got.now_ms, 1));
        }
    }
    assert_int_equal(n, 5);
}

/* C-076: whoever parks and whoever frees decide in one step, so an idle worker is woken. */
static void a_freed_slot_wakes_an_idle_worker(void **state)
{
    (void)state;
    KY_NEEDS_KEYS();
    struct lq_take take = ct_asking("w", "q", 5);
    struct lq_leased_vec none = {0};
    ct_join("w", "q");
    ct_join("v", "q");
    ky_usual("q", (struct lq_limit){.concurrency = 1});
    ky_add("q", "a1:A a2:A");
    struct lq_leased j = (assert_int_equal(ct_take("v", "q", 9), 1), ct.got.job[0]);
    take.register_idle = true;
    EXPECT(0, lq_settle_take(ct.s, NULL, 0, &take, &none, &ct.err));
    assert_int_equal(none.n, 0);
    lb_arena_fini(&none.arena);
    assert_int_equal(ct_settle("q", &j, LQ_TO_COMPLETED), LADE_DONE);
    int64_t start = lb_clock_mono();
    EXPECT(0, ct.s->ops->wait(ct.s, "w", ct_lanes("q"), start + LADE_MINUTE, &ct.err));
    assert_true(lb_clock_mono() - start < LADE_MINUTE / 2);
    assert_string_equal((ct_take("w", "q", 9), ct_got()), "a2");
}

/* C-079: what came above the rate waits for its turn; when the bucket is full again nothing is owed, and nobody waits. */
static void a_burst_above_the_rate_leaves_no_debt(void **state)
{
    (void)state;
    KY_NEEDS_KEYS();
    struct lq_limit l = {.count = 10, .period_ms = 10 * CT_SOON, .burst = 10};
    size_t n = 0;
    ct_join("w", "q");
    EXPECT(0, lq_limit_set(ct.s, "q", LADE_LIMIT_QUEUE, lb_slice_str(""), &l, &ct.err));
    ct_add_many("q", "burst", 30);
    for (int k = 0; n < 30 && k < 1000; k++) {
        size_t got = ct_take("w", "q", 40);
        n += got;
        if (got == 0) {
            assert_true(ct.got.next_due_ms > 0); /* it tells when, or nobody would ask again */
            ct_step(LB_MAX(ct.got.next_due_ms - ct.got.now_ms, 1));
        }
    }
    assert_int_equal(n, 30);
    ct_step(10 * CT_SOON + 1);
    for (int round = 0; round < 5; round++) { /* half of the rate */
        ct_add_many("q", ct_format("calm%d-", round), 5);
        assert_int_equal(ct_take("w", "q", 40), 5);
        ct_step(10 * CT_SOON);
    }
    assert_int_equal(ct_info("q").held, 0);
}

/* C-069: windows of rates and the pauses of keys are times, too, and outlive the process. */
static void rates_and_pauses_outlive_every_handle(void **state)
{
    (void)state;
    KY_NEEDS_KEYS();
    ct_join("w", "q");
    ky_limit("q", "A", (struct lq_limit){.count = 1, .period_ms = CT_HOUR, .burst = 1});
    ky_add("q", "a1:A a2:A b1:B b2:B c1:C");
    ky_pause("q", "B", true);
    assert_string_equal((ct_take("w", "q", 1), ct_got()), "a1");
    struct lq_leased j = ct_take_one("w", "q");
    struct lq_settle it = ct_settling("q", &j, LQ_TO_THROTTLED);
    it.delay_ms = CT_HOUR;
    assert_int_equal(ct_settle_one(it), LADE_DONE);
    const char *before = ky_show("q");
    assert_int_equal(ct_take("w", "q", 9), 0);
    int64_t next = ct.got.next_due_ms;
    struct lq_store *keeper = ct.ops->caps & LQ_CAP_PROCESSES ? NULL : ct_open();
    lq_store_close(ct.s);
    ct.s = ct_open();
    lq_store_close(keeper);
    assert_string_equal(ky_show("q"), before);
    ct_join("v", "q");
    assert_int_equal(ct_take("v", "q", 9), 0);
    assert_int_equal(ct.got.next_due_ms, next);
}

static const struct CMUnitTest tests[] = {
    CT_TEST(a_key_runs_no_more_than_its_concurrency),
    CT_TEST(each_way_out_frees_the_slot),
    CT_TEST(a_dead_workers_slot_is_freed_by_reclaim),
    CT_TEST(a_queue_runs_no_more_than_its_concurrency),
    CT_TEST(limits_change_while_jobs_run),
    CT_TEST(fifo_is_one_at_a_time_and_a_retry_keeps_its_place),
    CT_TEST(a_paused_key_is_left_alone),
    CT_TEST(a_throttled_job_is_first_when_its_key_goes_on),
    CT_TEST(a_throttle_without_a_key_holds_all_without_one),
    CT_TEST(a_key_starts_no_more_than_its_rate),
    CT_TEST(a_queue_starts_no_more_than_its_rate),
    CT_TEST(a_freed_slot_wakes_an_idle_worker),
    KY_TEST_DRESSED(a_key_runs_no_more_than_its_concurrency),
    KY_TEST_DRESSED(each_way_out_frees_the_slot),
    KY_TEST_DRESSED(a_dead_workers_slot_is_freed_by_reclaim),
    KY_TEST_DRESSED(a_queue_runs_no_more_than_its_concurrency),
    KY_TEST_DRESSED(limits_change_while_jobs_run),
    KY_TEST_DRESSED(fifo_is_one_at_a_time_and_a_retry_keeps_its_place),
    KY_TEST_DRESSED(a_paused_key_is_left_alone),
    KY_TEST_DRESSED(a_throttled_job_is_first_when_its_key_goes_on),
    KY_TEST_DRESSED(a_throttle_without_a_key_holds_all_without_one),
    KY_TEST_DRESSED(a_key_starts_no_more_than_its_rate),
    KY_TEST_DRESSED(a_queue_starts_no_more_than_its_rate),
    KY_TEST_DRESSED(a_freed_slot_wakes_an_idle_worker),
    CT_TEST(a_burst_above_the_rate_leaves_no_debt),
    CT_TEST(rates_and_pauses_outlive_every_handle),
};

CT_GROUP(ct_limit_group, tests);
