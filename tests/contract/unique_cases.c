/* unique_cases.c - contract: unique keys, who holds them and for how long */
#include "contract.h"

/* Asks for key "k" until `until`, for an hour. */
static struct lq_put unique_item(const char *id, enum lade_unique_until until)
{
    struct lq_put item = ct_item("q", id);
    item.unique = lb_slice_str("k");
    item.unique_ttl_ms = CT_HOUR;
    item.until = until;
    return item;
}

static void add_unique(const char *id, enum lade_unique_until until)
{
    assert_int_equal(ct_put_one(unique_item(id, until)), LADE_DONE);
}

static void assert_held_by(const char *holder)
{
    struct lq_put item = unique_item("probe", LADE_UNTIL_DONE);
    ct_put(&item, 1);
    assert_int_equal(item.outcome, LADE_DUPLICATE);
    assert_string_equal(item.holder, holder);
    assert_int_equal(ct_state("q", "probe"), -1);
}

/* Takes the key and gives it back. */
static void assert_free(void)
{
    struct lq_put item = unique_item("probe", LADE_UNTIL_DONE);
    ct_put(&item, 1);
    assert_int_equal(item.outcome, LADE_DONE);
    assert_int_equal(ct_act("q", LADE_JOB_REMOVE, "probe"), LADE_DONE);
}

/* chronos 20 */
/* chronos 20 */
static void held_key_refuses_a_second_job_and_names_the_holder(void **state)
{
    (void)state;
    add_unique("a", LADE_UNTIL_DONE);
    assert_held_by("a");
    assert_int_equal(ct_info("q").total_enqueued, 1);
    assert_int_equal(ct_row("q", "a")->unique.n, 1);
    assert_memory_equal(ct_row("q", "a")->unique.p, "k", 2);
}

static void repeated_key_in_one_call_is_a_duplicate_of_the_first(void **state)
{
    (void)state;
    struct lq_put item[] = {unique_item("a", LADE_UNTIL_DONE), unique_item("b", LADE_UNTIL_TTL),
                            ct_item("q", "c")};
    ct_put(item, 3);
    assert_int_equal(item[0].outcome, LADE_DONE);
    assert_int_equal(item[1].outcome, LADE_DUPLICATE);
    assert_string_equal(item[1].holder, "a");
    assert_int_equal(item[2].outcome, LADE_DONE);
    assert_int_equal(ct_state("q", "b"), -1);
}

static void repeat_of_a_unique_put_is_a_duplicate_of_itself(void **state)
{
    (void)state;
    add_unique("a", LADE_UNTIL_DONE);
    struct lq_put item = unique_item("a", LADE_UNTIL_DONE);
    ct_put(&item, 1);
    assert_int_equal(item.outcome, LADE_DUPLICATE);
    assert_string_equal(item.holder, "a");
}

/* chronos 20 */
static void keys_of_different_queues_are_apart(void **state)
{
    (void)state;
    add_unique("a", LADE_UNTIL_DONE);
    struct lq_put item = unique_item("b", LADE_UNTIL_DONE);
    item.queue = "r";
    assert_int_equal(ct_put_one(item), LADE_DONE);
}

/* C-072: no canonical form of any kind: what differs in a byte differs. */
static void keys_are_raw_bytes(void **state)
{
    (void)state;
    uint8_t key[LADE_UNIQUE_KEY_MAX] = {0};
    struct lq_put item = unique_item("a", LADE_UNTIL_DONE);
    for (size_t i = 0; i < sizeof(key); i++)
        key[i] = (uint8_t)i;
    item.unique = lb_slice(key, sizeof(key));
    assert_int_equal(ct_put_one(item), LADE_DONE);
    item.id = lb_slice_str("b");
    item.unique = lb_slice(key, sizeof(key) - 1);
    assert_int_equal(ct_put_one(item), LADE_DONE);
    item.id = lb_slice_str("c");
    item.unique = lb_slice(key, 1);
    assert_int_equal(ct_put_one(item), LADE_DONE);
    item.id = lb_slice_str("d");
    item.unique = lb_slice(key, sizeof(key));
    ct_put(&item, 1);
    assert_int_equal(item.outcome, LADE_DUPLICATE);
    assert_string_equal(item.holder, "a");
    assert_int_equal(ct_row("q", "a")->unique.n, sizeof(key));
    assert_memory_equal(ct_row("q", "a")->unique.p, key, sizeof(key));
}

/* chronos 21 */
/* chronos 21 */
static void key_until_done_is_held_while_the_job_lives(void **state)
{
    (void)state;
    ct_join("w", "q");
    add_unique("a", LADE_UNTIL_DONE);
    struct lq_leased j = ct_take_one("w", "q");
    assert_held_by("a");
    assert_int_equal(ct_settle("q", &j, LQ_TO_READY), LADE_DONE);
    assert_held_by("a");
    j = ct_take_one("w", "q");
    assert_int_equal(ct_settle("q", &j, LQ_TO_RETRYING), LADE_DONE);
    assert_held_by("a");
    assert_int_equal(ct_act("q", LADE_JOB_RETRY, "a"), LADE_DONE);
    j = ct_take_one("w", "q");
    assert_int_equal(ct_settle("q", &j, LQ_TO_SCHEDULED), LADE_DONE);
    assert_held_by("a");
}

/* chronos 21, 25 */
static void key_until_done_is_free_after_each_settle_that_ends(void **state)
{
    (void)state;

    static const enum lq_to end[] = {LQ_TO_COMPLETED, LQ_TO_DEAD, LQ_TO_CANCELLED, LQ_TO_GONE};

    ct_join("w", "q");
    for (size_t i = 0; i < LB_ARRAY_LEN(end); i++) {
        add_unique(ct_format("a%zu", i), LADE_UNTIL_DONE);
        struct lq_leased j = ct_take_one("w", "q");
        assert_int_equal(ct_settle("q", &j, end[i]), LADE_DONE);
        assert_free();
    }
}

/* chronos 21, 65 */
static void key_until_done_is_free_after_each_act_that_ends(void **state)
{
    (void)state;

    static const enum lade_job_verb end[] = {LADE_JOB_KILL, LADE_JOB_CANCEL, LADE_JOB_REMOVE};

    for (size_t i = 0; i < LB_ARRAY_LEN(end); i++) {
        const char *id = ct_format("a%zu", i);
        add_unique(id, LADE_UNTIL_DONE);
        assert_int_equal(ct_act("q", end[i], id), LADE_DONE);
        assert_free();
    }
}

static void key_until_done_is_free_after_a_purge(void **state)
{
    (void)state;
    size_t n = 0;
    add_unique("a", LADE_UNTIL_DONE);
    EXPECT(0, ct.s->ops->purge(ct.s, "q", LADE_STATE_READY, 10, &n, &ct.err));
    assert_int_equal(n, 1);
    assert_free();
}

static void key_until_done_is_free_after_removing_an_active_job(void **state)
{
    (void)state;
    ct_join("w", "q");
    add_unique("a", LADE_UNTIL_DONE);
    (void)ct_take_one("w", "q");
    assert_int_equal(ct_act("q", LADE_JOB_REMOVE, "a"), LADE_DONE);
    assert_free();
}

static void key_until_start_is_free_once_the_job_is_taken(void **state)
{
    (void)state;
    ct_join("w", "q");
    add_unique("a", LADE_UNTIL_START);
    assert_held_by("a");
    struct lq_leased j = ct_take_one("w", "q");
    add_unique("b", LADE_UNTIL_DONE);
    /* The end of "a" must not free the key that is "b"'s now. */
    assert_int_equal(ct_settle("q", &j, LQ_TO_COMPLETED), LADE_DONE);
    assert_held_by("b");
}

static void key_until_start_is_free_when_the_job_ends_unstarted(void **state)
{
    (void)state;
    add_unique("a", LADE_UNTIL_START);
    assert_int_equal(ct_act("q", LADE_JOB_CANCEL, "a"), LADE_DONE);
    assert_free();
}

/* chasqui 21 */
static void key_until_ttl_outlives_its_job(void **state)
{
    (void)state;
    ct_join("w", "q");
    add_unique("a", LADE_UNTIL_TTL);
    struct lq_leased j = ct_take_one("w", "q");
    assert_held_by("a");
    assert_int_equal(ct_settle("q", &j, LQ_TO_COMPLETED), LADE_DONE);
    assert_held_by("a");
    assert_int_equal(ct_act("q", LADE_JOB_REMOVE, "a"), LADE_DONE);
    assert_held_by("a");
}

static void key_until_ttl_is_free_after_it(void **state)
{
    (void)state;
    struct lq_put item = unique_item("a", LADE_UNTIL_TTL);
    item.unique_ttl_ms = CT_SOON;
    assert_int_equal(ct_put_one(item), LADE_DONE);
    ct_step(CT_SOON + 5);
    assert_free();
}

/* chronos 22, chronos 23: however long the job waits or runs, and whatever ttl was given. */
static void key_of_a_live_job_never_runs_out(void **state)
{
    (void)state;

    static const enum lade_unique_until until[] = {LADE_UNTIL_DONE, LADE_UNTIL_START};

    ct_join("w", "q");
    for (size_t i = 0; i < LB_ARRAY_LEN(until); i++) {
        struct lq_put item = unique_item(ct_format("a%zu", i), until[i]);
        item.unique_ttl_ms = 1;
        item.when = LQ_WHEN_IN;
        item.when_ms = CT_SOON;
        assert_int_equal(ct_put_one(item), LADE_DONE);
        ct_step(5);
        assert_held_by(ct_format("a%zu", i));
        ct_step(CT_SOON);
        struct lq_leased j = ct_take_one("w", "q");
        ct_step(5);
        if (until[i] == LADE_UNTIL_DONE)
            assert_held_by(ct_format("a%zu", i));
        assert_int_equal(ct_settle("q", &j, LQ_TO_COMPLETED), LADE_DONE);
        assert_free();
    }
}

/* C-073: the shortest hold is a hold, and it ends. */
static void ttl_of_one_millisecond_ends(void **state)
{
    (void)state;
    struct lq_put item = unique_item("a", LADE_UNTIL_TTL);
    item.unique_ttl_ms = 1;
    assert_int_equal(ct_put_one(item), LADE_DONE);
    if (ct_is_exact())
        assert_held_by("a");
    ct_step(3);
    assert_free();
}

/* chronos 24 */
/* chronos 24 */
static void late_end_does_not_free_the_key_of_another_job(void **state)
{
    (void)state;
    ct_join("w", "q");
    add_unique("a", LADE_UNTIL_START);
    struct lq_leased j = ct_take_one("w", "q");
    add_unique("b", LADE_UNTIL_DONE);
    assert_int_equal(ct_settle("q", &j, LQ_TO_COMPLETED), LADE_DONE);
    assert_held_by("b");
    assert_int_equal(ct_act("q", LADE_JOB_REMOVE, "a"), LADE_DONE);
    assert_held_by("b");
}

/* chronos 25 */
static void kept_record_of_a_completed_job_does_not_hold_its_key(void **state)
{
    (void)state;
    ct_join("w", "q");
    add_unique("a", LADE_UNTIL_DONE);
    struct lq_leased j = ct_take_one("w", "q");
    assert_int_equal(ct_settle("q", &j, LQ_TO_COMPLETED), LADE_DONE);
    add_unique("b", LADE_UNTIL_DONE);
    assert_int_equal(ct_state("q", "a"), LADE_STATE_COMPLETED);
    assert_held_by("b");
}

/* The lease runs out and the job is another worker's: the key is its all the time. */
static void key_survives_the_death_of_the_worker(void **state)
{
    (void)state;
    ct_join("w", "q");
    ct_join("v", "q");
    add_unique("a", LADE_UNTIL_DONE);
    (void)ct_take_one("w", "q");
    ct_die("w", "q");
    assert_held_by("a");
    assert_int_equal(ct_reclaim("v", "q", 10), 1);
    assert_held_by("a");
    struct lq_leased j = ct.got.job[0];
    assert_int_equal(ct_settle("q", &j, LQ_TO_DEAD), LADE_DONE);
    assert_free();
}

static void retry_of_an_ended_job_does_not_take_the_key_again(void **state)
{
    (void)state;
    ct_join("w", "q");
    add_unique("a", LADE_UNTIL_DONE);
    assert_int_equal(ct_act("q", LADE_JOB_KILL, "a"), LADE_DONE);
    add_unique("b", LADE_UNTIL_DONE);
    assert_int_equal(ct_act("q", LADE_JOB_RETRY, "a"), LADE_DONE);
    assert_held_by("b");
    assert_int_equal(ct_act("q", LADE_JOB_CANCEL, "a"), LADE_DONE);
    assert_held_by("b");
    assert_int_equal(ct_act("q", LADE_JOB_RETRY, "a"), LADE_DONE);
    assert_int_equal(ct_act("q", LADE_JOB_REMOVE, "b"), LADE_DONE);
    assert_free();
}

/* chronos 23; chasqui 21 */
static void scheduled_job_holds_its_key_from_the_put_on(void **state)
{
    (void)state;
    struct lq_put item = unique_item("a", LADE_UNTIL_DONE);
    item.when = LQ_WHEN_IN;
    item.when_ms = CT_HOUR;
    assert_int_equal(ct_put_one(item), LADE_DONE);
    assert_held_by("a");
    assert_int_equal(ct_act("q", LADE_JOB_CANCEL, "a"), LADE_DONE);
    assert_free();
}

static const struct CMUnitTest tests[] = {
    CT_TEST(held_key_refuses_a_second_job_and_names_the_holder),
    CT_TEST(repeated_key_in_one_call_is_a_duplicate_of_the_first),
    CT_TEST(repeat_of_a_unique_put_is_a_duplicate_of_itself),
    CT_TEST(keys_of_different_queues_are_apart),
    CT_TEST(keys_are_raw_bytes),
    CT_TEST(key_until_done_is_held_while_the_job_lives),
    CT_TEST(key_until_done_is_free_after_each_settle_that_ends),
    CT_TEST(key_until_done_is_free_after_each_act_that_ends),
    CT_TEST(key_until_done_is_free_after_a_purge),
    CT_TEST(key_until_done_is_free_after_removing_an_active_job),
    CT_TEST(key_until_start_is_free_once_the_job_is_taken),
    CT_TEST(key_until_start_is_free_when_the_job_ends_unstarted),
    CT_TEST(key_until_ttl_outlives_its_job),
    CT_TEST(key_until_ttl_is_free_after_it),
    CT_TEST(key_of_a_live_job_never_runs_out),
    CT_TEST(kept_record_of_a_completed_job_does_not_hold_its_key),
    CT_TEST(key_survives_the_death_of_the_worker),
    CT_TEST(ttl_of_one_millisecond_ends),
    CT_TEST(late_end_does_not_free_the_key_of_another_job),
    CT_TEST(retry_of_an_ended_job_does_not_take_the_key_again),
    CT_TEST(scheduled_job_holds_its_key_from_the_put_on),
};

CT_GROUP(ct_unique_group, tests);
