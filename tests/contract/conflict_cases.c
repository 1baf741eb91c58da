/* conflict_cases.c - contract: an enqueue whose unique key is held replaces the holder, or trails it */
#include "contract.h"

static struct lq_put item_of(const char *id, enum lade_unique_until until,
                             enum lq_conflict conflict)
{
    struct lq_put item = ct_item("q", id);
    item.unique = lb_slice_str("k");
    item.unique_ttl_ms = CT_HOUR;
    item.until = until;
    item.conflict = conflict;
    return item;
}

static struct lq_put replacing(const char *id)
{
    return item_of(id, LADE_UNTIL_DONE, LQ_CONFLICT_REPLACE);
}

/* Puts one; its outcome, and the holder it names, which is "" for a job of its own. */
static void assert_put(struct lq_put item, int outcome, const char *holder)
{
    ct_put(&item, 1);
    assert_int_equal(item.outcome, outcome);
    assert_string_equal(item.holder, holder);
}

/* The body of job `id` is the one that ct_item made for `of`. */
static void assert_body(const char *id, const char *of)
{
    const struct lq_row *row = ct_row("q", id);
    assert_int_equal(row->body.n, 2 + strlen(of));
    assert_memory_equal(row->body.p + 2, of, strlen(of));
}

static void ready_holder_gets_the_new_body_and_keeps_its_id_and_place(void **state)
{
    (void)state;
    ct_join("w", "q");
    assert_put(replacing("a"), LADE_DONE, "");
    ct_add("q", "z");
    assert_put(replacing("b"), LADE_REPLACED, "a");
    assert_put(replacing("c"), LADE_REPLACED, "a");
    assert_body("a", "c");
    assert_int_equal(ct_state("q", "b"), -1);
    assert_int_equal(ct_info("q").total_enqueued, 2);
    assert_int_equal(ct_take("w", "q", 9), 2);
    assert_string_equal(ct_got(), "a z");
    assert_memory_equal(ct.got.job[0].body.p + 2, "c", 2);
}

static void holder_gets_the_level_and_goes_to_its_end(void **state)
{
    (void)state;
    ct_join("w", "q");
    struct lq_put high = ct_item_level("q", "b", 1);
    assert_put(replacing("a"), LADE_DONE, "");
    assert_int_equal(ct_put_one(ct_item_level("q", "z", 1)), LADE_DONE);
    high.unique = lb_slice_str("k");
    high.unique_ttl_ms = CT_HOUR;
    high.conflict = LQ_CONFLICT_REPLACE;
    assert_put(high, LADE_REPLACED, "a");
    assert_int_equal(ct_take("w", "q", 9), 2);
    assert_string_equal(ct_got(), "z a");
}

static void holder_gets_the_time_later_and_sooner(void **state)
{
    (void)state;
    ct_join("w", "q");
    struct lq_put later = replacing("b");
    later.when = LQ_WHEN_IN;
    later.when_ms = CT_HOUR;
    assert_put(replacing("a"), LADE_DONE, "");
    assert_put(later, LADE_REPLACED, "a");
    assert_int_equal(ct_state("q", "a"), LADE_STATE_SCHEDULED);
    assert_in_range(ct_row("q", "a")->run_at_ms, ct_now() + CT_HOUR - 5000, ct_now() + CT_HOUR);
    assert_int_equal(ct_take("w", "q", 9), 0);
    assert_put(replacing("c"), LADE_REPLACED, "a");
    assert_int_equal(ct_take("w", "q", 9), 1);
    assert_string_equal(ct_got(), "a");
}

static void retrying_holder_is_replaced_and_keeps_its_history(void **state)
{
    (void)state;
    static const uint8_t history[] = {1, 0, 3, 0, 0, 0};
    ct_join("w", "q");
    assert_put(replacing("a"), LADE_DONE, "");
    struct lq_leased j = ct_take_one("w", "q");
    struct lq_settle it = ct_settling("q", &j, LQ_TO_RETRYING);
    it.history = lb_slice(history, sizeof(history));
    assert_int_equal(ct_settle_one(it), LADE_DONE);
    assert_put(replacing("b"), LADE_REPLACED, "a");
    assert_int_equal(ct_state("q", "a"), LADE_STATE_READY);
    assert_int_equal(ct_row("q", "a")->history.n, sizeof(history));
    assert_body("a", "b");
}

static void active_holder_is_not_replaced(void **state)
{
    (void)state;
    ct_join("w", "q");
    assert_put(replacing("a"), LADE_DONE, "");
    struct lq_leased j = ct_take_one("w", "q");
    assert_put(replacing("b"), LADE_DUPLICATE, "a");
    assert_body("a", "a");
    assert_int_equal(ct_settle("q", &j, LQ_TO_COMPLETED), LADE_DONE);
    assert_put(replacing("c"), LADE_DONE, "");
}

static void key_until_ttl_of_an_ended_job_is_a_duplicate(void **state)
{
    (void)state;
    ct_join("w", "q");
    assert_put(item_of("a", LADE_UNTIL_TTL, LQ_CONFLICT_REPLACE), LADE_DONE, "");
    struct lq_leased j = ct_take_one("w", "q");
    assert_int_equal(ct_settle("q", &j, LQ_TO_COMPLETED), LADE_DONE);
    assert_put(item_of("b", LADE_UNTIL_TTL, LQ_CONFLICT_REPLACE), LADE_DUPLICATE, "a");
    assert_int_equal(ct_act("q", LADE_JOB_REMOVE, "a"), LADE_DONE);
    assert_put(item_of("c", LADE_UNTIL_TTL, LQ_CONFLICT_REPLACE), LADE_DUPLICATE, "a");
}

/* Its key outlives a job; another that gets its id is not the holder. */
static void job_with_the_id_of_a_holder_that_is_gone_is_left_alone(void **state)
{
    (void)state;
    assert_put(item_of("a", LADE_UNTIL_TTL, LQ_CONFLICT_KEEP), LADE_DONE, "");
    assert_int_equal(ct_act("q", LADE_JOB_REMOVE, "a"), LADE_DONE);
    ct_add("q", "a");
    assert_put(item_of("b", LADE_UNTIL_TTL, LQ_CONFLICT_REPLACE), LADE_DUPLICATE, "a");
    assert_body("a", "a");
    struct lq_put other = replacing("c");
    other.unique = lb_slice_str("other");
    assert_int_equal(ct_act("q", LADE_JOB_REMOVE, "a"), LADE_DONE);
    other.id = lb_slice_str("a");
    assert_put(other, LADE_DONE, "");
    assert_put(item_of("b", LADE_UNTIL_TTL, LQ_CONFLICT_REPLACE), LADE_DUPLICATE, "a");
    assert_body("a", "c");
}

static void what_comes_after_a_holder_that_is_gone_is_left_alone(void **state)
{
    (void)state;
    struct lq_put next = ct_item("q", "x");
    assert_put(item_of("a", LADE_UNTIL_TTL, LQ_CONFLICT_KEEP), LADE_DONE, "");
    assert_int_equal(ct_act("q", LADE_JOB_REMOVE, "a"), LADE_DONE);
    struct lq_store *other = ct_open(); /* that counts anew */
    int rc = lq_put(other, &next, 1, &ct.err);
    lq_store_close(other);
    EXPECT(0, rc);
    assert_put(item_of("b", LADE_UNTIL_TTL, LQ_CONFLICT_REPLACE), LADE_DUPLICATE, "a");
    assert_body("x", "x");
}

static void within_one_call_the_last_wins(void **state)
{
    (void)state;
    ct_join("w", "q");
    struct lq_put item[] = {replacing("a"), ct_item("q", "z"), replacing("b"), replacing("c")};
    ct_put(item, 4);
    assert_int_equal(item[0].outcome, LADE_DONE);
    assert_int_equal(item[1].outcome, LADE_DONE);
    assert_int_equal(item[2].outcome, LADE_REPLACED);
    assert_int_equal(item[3].outcome, LADE_REPLACED);
    assert_string_equal(item[3].holder, "a");
    assert_body("a", "c");
    assert_int_equal(ct_take("w", "q", 9), 2);
    assert_string_equal(ct_got(), "a z");
}

static void own_id_again_is_a_duplicate_and_replaces_nothing(void **state)
{
    (void)state;
    assert_put(replacing("a"), LADE_DONE, "");
    assert_put(replacing("b"), LADE_REPLACED, "a");
    assert_put(replacing("a"), LADE_DUPLICATE, "a");
    assert_body("a", "b");
}

/* debounce -------------------------------------------------------------------------------------------------------- */

static struct lq_put debounced(const char *id, int64_t wait_ms, int64_t bound_ms)
{
    struct lq_put item = item_of(id, LADE_UNTIL_START, LQ_CONFLICT_REPLACE);
    item.when = LQ_WHEN_IN;
    item.when_ms = wait_ms;
    item.bound_ms = bound_ms;
    return item;
}

static void assert_due_in(const char *id, int64_t ms, int64_t from_ms)
{
    assert_in_range(ct_row("q", id)->run_at_ms, from_ms + ms, ct_now() + ms);
}

static void burst_becomes_one_run_after_the_last(void **state)
{
    (void)state;
    int64_t from = ct_now();
    ct_join("w", "q");
    assert_put(debounced("a", CT_HOUR, 2 * CT_HOUR), LADE_DONE, "");
    for (int i = 0; i < 5; i++) {
        assert_due_in("a", CT_HOUR, from);
        ct_step(CT_SOON);
        assert_int_equal(ct_take("w", "q", 9), 0);
        from = ct_now();
        assert_put(debounced(ct_format("b%d", i), i < 4 ? CT_HOUR : CT_SOON, 2 * CT_HOUR),
                   LADE_REPLACED, "a");
    }
    ct_step(CT_SOON + 5);
    assert_int_equal(ct_take("w", "q", 9), 1);
    assert_string_equal(ct_got(), "a");
    assert_memory_equal(ct.got.job[0].body.p + 2, "b4", 3);
    /* it has started: the next burst is a run of its own */
    assert_put(debounced("c", CT_HOUR, 2 * CT_HOUR), LADE_DONE, "");
}

static void burst_without_end_runs_at_most_max_wait_after_the_first(void **state)
{
    (void)state;
    ct_join("w", "q");
    int64_t first = ct_now();
    assert_put(debounced("a", CT_HOUR, 2 * CT_SOON), LADE_DONE, "");
    assert_put(debounced("b", CT_HOUR, 2 * CT_SOON), LADE_REPLACED, "a");
    assert_due_in("a", 2 * CT_SOON, first);
    ct_step(2 * CT_SOON + 5);
    assert_put(debounced("c", CT_HOUR, 2 * CT_SOON), LADE_REPLACED, "a");
    assert_int_equal(ct_take("w", "q", 9), 1);
    assert_memory_equal(ct.got.job[0].body.p + 2, "c", 2);
}

/* throttle -------------------------------------------------------------------------------------------------------- */

static struct lq_put trailing(const char *id, int64_t window_ms)
{
    struct lq_put item = item_of(id, LADE_UNTIL_TTL, LQ_CONFLICT_TRAIL);
    item.unique_ttl_ms = window_ms;
    return item;
}

static void throttled_jobs_are_duplicates_until_the_window_ends(void **state)
{
    (void)state;
    struct lq_put item = item_of("a", LADE_UNTIL_TTL, LQ_CONFLICT_KEEP);
    assert_put(item, LADE_DONE, "");
    item.id = lb_slice_str("b");
    assert_int_equal(ct_act("q", LADE_JOB_REMOVE, "a"), LADE_DONE);
    assert_put(item, LADE_DUPLICATE, "a");
    item.unique = lb_slice_str("short");
    item.unique_ttl_ms = CT_SOON;
    assert_put(item, LADE_DONE, "");
    ct_step(CT_SOON + 5);
    item.id = lb_slice_str("c");
    assert_put(item, LADE_DONE, "");
}

static void what_follows_the_first_waits_for_the_end_of_the_window(void **state)
{
    (void)state;
    int64_t first = ct_now();
    ct_join("w", "q");
    assert_put(trailing("a", CT_HOUR), LADE_DONE, "");
    int64_t then = ct_now();
    assert_put(trailing("b", CT_HOUR), LADE_DONE, "");
    assert_put(trailing("c", CT_HOUR), LADE_REPLACED, "b");
    assert_int_equal(ct_state("q", "b"), LADE_STATE_SCHEDULED);
    assert_in_range(ct_row("q", "b")->run_at_ms, first + CT_HOUR, then + CT_HOUR);
    assert_body("a", "a");
    assert_body("b", "c");
    assert_int_equal(ct_take("w", "q", 9), 1);
    assert_string_equal(ct_got(), "a");
}

/* A window that ends while the test still puts into it is no window; so it is wider then, until the state shows that it was in time. */
static void the_run_at_the_end_of_a_window_begins_one_of_its_own(void **state)
{
    (void)state;
    int64_t window = CT_SOON, due = 0;
    int of_b = LADE_STATE_READY, of_d = LADE_STATE_READY;
    ct_join("w", "q");
    for (int i = 0; of_d == LADE_STATE_READY && window < CT_HOUR; i++, window *= 2) {
        struct lq_put b = trailing("b", window), d = trailing("d", window);
        struct lq_put a = trailing("a", window);
        a.unique = b.unique = d.unique = lb_slice_str(ct_format("k%d", i));
        a.id = lb_slice_str(ct_format("a%d", i));
        b.id = lb_slice_str(ct_format("b%d", i));
        d.id = lb_slice_str(ct_format("d%d", i));
        assert_int_equal(ct_put_one(a), LADE_DONE);
        assert_int_equal(ct_put_one(b), LADE_DONE);
        of_b = ct_state("q", ct_format("b%d", i));
        due = ct_row("q", ct_format("b%d", i))->run_at_ms + window;
        if (of_b == LADE_STATE_SCHEDULED) {
            ct_step(window + 5);
            assert_int_equal(ct_take("w", "q", 9), 2);
            assert_int_equal(ct_put_one(d), LADE_DONE);
            of_d = ct_state("q", ct_format("d%d", i));
        }
        if (of_d == LADE_STATE_SCHEDULED)
            assert_int_equal(ct_row("q", ct_format("d%d", i))->run_at_ms, due);
        (void)ct_take("w", "q", 9);
    }
    assert_int_equal(of_d, LADE_STATE_SCHEDULED);
}

static void first_and_trailing_of_one_call(void **state)
{
    (void)state;
    struct lq_put item[] = {trailing("a", CT_HOUR), trailing("b", CT_HOUR), trailing("c", CT_HOUR)};
    ct_put(item, 3);
    assert_int_equal(item[0].outcome, LADE_DONE);
    assert_int_equal(item[1].outcome, LADE_DONE);
    assert_int_equal(item[2].outcome, LADE_REPLACED);
    assert_string_equal(item[2].holder, "b");
    assert_int_equal(ct_state("q", "a"), LADE_STATE_READY);
    assert_int_equal(ct_state("q", "b"), LADE_STATE_SCHEDULED);
    assert_body("b", "c");
    assert_int_equal(ct_info("q").total_enqueued, 2);
}

static void window_without_trailing_work_ends(void **state)
{
    (void)state;
    assert_put(trailing("a", CT_SOON), LADE_DONE, "");
    ct_step(CT_SOON + 5);
    assert_put(trailing("b", CT_SOON), LADE_DONE, "");
    assert_int_equal(ct_state("q", "b"), LADE_STATE_READY);
}

static const struct CMUnitTest tests[] = {
    CT_TEST(ready_holder_gets_the_new_body_and_keeps_its_id_and_place),
    CT_TEST(holder_gets_the_level_and_goes_to_its_end),
    CT_TEST(holder_gets_the_time_later_and_sooner),
    CT_TEST(retrying_holder_is_replaced_and_keeps_its_history),
    CT_TEST(active_holder_is_not_replaced),
    CT_TEST(key_until_ttl_of_an_ended_job_is_a_duplicate),
    CT_TEST(job_with_the_id_of_a_holder_that_is_gone_is_left_alone),
    CT_TEST(what_comes_after_a_holder_that_is_gone_is_left_alone),
    CT_TEST(within_one_call_the_last_wins),
    CT_TEST(own_id_again_is_a_duplicate_and_replaces_nothing),
    CT_TEST(burst_becomes_one_run_after_the_last),
    CT_TEST(burst_without_end_runs_at_most_max_wait_after_the_first),
    CT_TEST(throttled_jobs_are_duplicates_until_the_window_ends),
    CT_TEST(what_follows_the_first_waits_for_the_end_of_the_window),
    CT_TEST(the_run_at_the_end_of_a_window_begins_one_of_its_own),
    CT_TEST(first_and_trailing_of_one_call),
    CT_TEST(window_without_trailing_work_ends),
};

CT_GROUP(ct_conflict_group, tests);
