/* queue_cases.c - contract: queues, count, pause, purge, redrive, forget */
#include "contract.h"

static void pause(const char *queue, bool paused)
{
    EXPECT(0, ct.s->ops->pause(ct.s, queue, paused, &ct.err));
}

static size_t purge(const char *queue, enum lade_state state, size_t max, int expected)
{
    size_t n = 0;
    EXPECT(expected, ct.s->ops->purge(ct.s, queue, state, max, &n, &ct.err));
    assert_true(n <= max);
    return n;
}

static const char *list_queues(void)
{
    const char **name = NULL, *text = "";
    size_t n = 0;
    EXPECT(0, ct.s->ops->queues(ct.s, &ct.arena, &name, &n, &ct.err));
    for (size_t i = 0; i < n; i++)
        text = ct_format("%s%s%s", text, i ? " " : "", name[i]);
    return text;
}

static void queues_are_listed_sorted_and_once(void **state)
{
    (void)state;
    assert_string_equal(list_queues(), "");
    ct_add("mail", "a");
    ct_add("images", "a");
    ct_add("mail", "b");
    pause("zoo", true);
    ct_add("Archive", "a");
    assert_string_equal(list_queues(), "Archive images mail zoo");
}

static void only_put_and_pause_make_a_queue(void **state)
{
    (void)state;
    size_t n = 9;
    lade_cursor cursor = {0};
    lade_queue_info info;
    ct_join("w", "q");
    assert_int_equal(ct_take("w", "q", 1), 0);
    assert_int_equal(ct_reclaim("w", "q", 1), 0);
    assert_int_equal(purge("q", LADE_STATE_READY, 10, LADE_DONE), 0);
    EXPECT(0, ct.s->ops->redrive(ct.s, "q", 10, &n, &ct.err));
    assert_int_equal(n, 0);
    EXPECT(LADE_EMPTY, ct.s->ops->list(ct.s, "q", LADE_STATE_READY, &cursor, 5, &ct.rows, &ct.err));
    assert_true(cursor.done);
    assert_int_equal(ct_state("q", "a"), -1);
    EXPECT(LADE_NOT_FOUND, ct.s->ops->count(ct.s, "q", &info, &ct.err));
    assert_string_equal(list_queues(), "");
}

/* chronos 63; chasqui 54 */
static void counts_follow_every_move(void **state)
{
    (void)state;
    ct_join("w", "q");
    for (int i = 0; i < LADE_N_STATES; i++) {
        for (int k = 0; k <= i; k++) {
            (void)ct_bring("q", ct_format("a%d-%d", i, k), (enum lade_state)i);
            if (i == LADE_STATE_READY)
                assert_int_equal(ct_act("q", LADE_JOB_CANCEL, ct_format("a%d-%d", i, k)), 0);
        }
    }
    lade_queue_info info = ct_info("q");
    assert_string_equal(info.name, "q");
    assert_false(info.paused);
    assert_int_equal(info.count[LADE_STATE_SCHEDULED], 1);
    assert_int_equal(info.count[LADE_STATE_READY], 0);
    assert_int_equal(info.count[LADE_STATE_ACTIVE], 3);
    assert_int_equal(info.count[LADE_STATE_RETRYING], 4);
    assert_int_equal(info.count[LADE_STATE_COMPLETED], 5);
    assert_int_equal(info.count[LADE_STATE_DEAD], 6);
    assert_int_equal(info.count[LADE_STATE_CANCELLED], 7 + 2);
    assert_int_equal(info.total_enqueued, 28);
    assert_int_equal(info.n_workers, 1);
}

static void latency_is_the_age_of_the_oldest_ready_job(void **state)
{
    (void)state;
    ct_add_in("q", "later", CT_HOUR);
    assert_int_equal(ct_info("q").latency, 0);
    ct_add("q", "a");
    ct_step(30);
    assert_int_equal(ct_put_one(ct_item_level("q", "urgent", 0)), LADE_DONE);
    ct_step(10);
    int64_t latency = ct_info("q").latency;
    if (ct_is_exact())
        assert_int_equal(latency, 40 * LADE_MILLISECOND);
    else
        assert_in_range(latency, 40 * LADE_MILLISECOND, 60 * LADE_SECOND);
}

static void latency_counts_jobs_that_are_held(void **state)
{
    (void)state;
    if (!ct.ops->key_list)
        return;
    struct lq_put it[2] = {ct_item("q", "a"), ct_item("q", "b")};
    it[0].key = lb_slice_str("K");
    it[1].key = lb_slice_str("L");
    EXPECT(0, lq_key_pause(ct.s, "q", it[0].key, true, &ct.err));
    EXPECT(0, lq_key_pause(ct.s, "q", it[1].key, true, &ct.err));
    ct_put(&it[1], 1);
    ct_step(20);
    ct_put(&it[0], 1);
    ct_step(10);
    assert_int_equal(ct_info("q").held, 2);
    int64_t latency = ct_info("q").latency;
    if (ct_is_exact())
        assert_int_equal(latency, 30 * LADE_MILLISECOND);
    else
        assert_in_range(latency, 30 * LADE_MILLISECOND, 60 * LADE_SECOND);
}

/* pause ------------------------------------------------------------------------------------------------------------ */

/* chronos 39; chasqui 52 */
static void paused_queue_gives_no_jobs_until_it_is_resumed(void **state)
{
    (void)state;
    ct_join("w", "q r");
    ct_add("q", "a");
    pause("q", true);
    assert_true(ct_info("q").paused);
    ct_add("q", "b");
    ct_add("r", "c");
    assert_int_equal(ct_take("w", "q r", 9), 1);
    assert_string_equal(ct_got(), "c");
    assert_int_equal(ct.got.job[0].lane, 1);
    pause("q", false);
    assert_false(ct_info("q").paused);
    assert_int_equal(ct_take("w", "q r", 9), 2);
    assert_string_equal(ct_got(), "a b");
}

static void pausing_twice_is_no_harm(void **state)
{
    (void)state;
    ct_join("w", "q");
    pause("q", true);
    pause("q", true);
    ct_add("q", "a");
    assert_int_equal(ct_take("w", "q", 1), 0);
    pause("q", false);
    pause("q", false);
    assert_int_equal(ct_take("w", "q", 1), 1);
}

static void jobs_under_way_are_settled_while_paused(void **state)
{
    (void)state;
    ct_join("w", "q");
    ct_add("q", "a b");
    assert_int_equal(ct_take("w", "q", 2), 2);
    pause("q", true);
    assert_int_equal(ct_settle("q", &ct.got.job[0], LQ_TO_COMPLETED), LADE_DONE);
    assert_int_equal(ct_settle("q", &ct.got.job[1], LQ_TO_READY), LADE_DONE);
    assert_int_equal(ct_take("w", "q", 2), 0);
    assert_int_equal(ct_count("q", LADE_STATE_READY), 1);
}

/* C-071 (chasqui 14) */
static void jobs_are_promoted_while_paused_but_not_by_a_take(void **state)
{
    (void)state;
    size_t n = 0;
    int64_t next = -1;
    ct_join("w", "q");
    pause("q", true);
    ct_add_in("q", "a", CT_SOON);
    ct_step(CT_SOON + 5);
    assert_int_equal(ct_take("w", "q", 2), 0);
    assert_int_equal(ct.got.next_due_ms, 0);
    assert_int_equal(ct_state("q", "a"), LADE_STATE_SCHEDULED);
    EXPECT(0, lq_promote(ct.s, ct_lanes("q"), 10, &n, &next, &ct.err));
    assert_int_equal(n, 1);
    assert_int_equal(ct_state("q", "a"), LADE_STATE_READY);
    assert_int_equal(ct_take("w", "q", 2), 0);
    pause("q", false);
    assert_int_equal(ct_take("w", "q", 2), 1);
}

/* chronos 63 */
static void pause_makes_a_queue(void **state)
{
    (void)state;
    pause("q", true);
    lade_queue_info info = ct_info("q");
    assert_true(info.paused);
    assert_int_equal(info.total_enqueued, 0);
    ct_add("q", "a");
    assert_true(ct_info("q").paused);
}

/* purge ------------------------------------------------------------------------------------------------------------ */

/* chasqui 55 */
static void purge_removes_one_state_in_bounded_steps(void **state)
{
    (void)state;

    static const enum lade_state purged[] = {LADE_STATE_SCHEDULED, LADE_STATE_RETRYING,
                                             LADE_STATE_COMPLETED, LADE_STATE_DEAD,
                                             LADE_STATE_CANCELLED, LADE_STATE_READY};

    ct_join("w", "q");
    (void)ct_bring("q", "active", LADE_STATE_ACTIVE);
    for (size_t i = 0; i < LB_ARRAY_LEN(purged) - 1; i++) {
        for (int k = 0; k < 5; k++)
            (void)ct_bring("q", ct_format("a%zu-%d", i, k), purged[i]);
    }
    ct_add("q", "r0 r1 r2 r3 r4");
    for (size_t i = 0; i < LB_ARRAY_LEN(purged); i++) {
        assert_int_equal(purge("q", purged[i], 2, LADE_MORE), 2);
        assert_int_equal(ct_count("q", purged[i]), 3);
        assert_int_equal(purge("q", purged[i], 2, LADE_MORE), 2);
        assert_int_equal(purge("q", purged[i], 2, LADE_DONE), 1);
        assert_int_equal(purge("q", purged[i], 2, LADE_DONE), 0);
        assert_int_equal(ct_count("q", purged[i]), 0);
        if (i + 1 < LB_ARRAY_LEN(purged))
            assert_int_equal(ct_count("q", purged[i + 1]), 5);
    }
    assert_int_equal(ct_state("q", "active"), LADE_STATE_ACTIVE);
    ct_add("q", "a0-0 r0"); /* the ids are free again */
}

static void purge_leaves_other_queues_alone(void **state)
{
    (void)state;
    ct_add("q", "a");
    ct_add("r", "a");
    assert_int_equal(purge("q", LADE_STATE_READY, 10, LADE_DONE), 1);
    assert_int_equal(ct_count("r", LADE_STATE_READY), 1);
}

static void purge_of_thousands_ends(void **state)
{
    (void)state;
    size_t total = 0, n = 0;
    int rc = LADE_MORE;
    ct_add_many("q", "j", 2500);
    for (int i = 0; i < 10 && rc == LADE_MORE; i++) {
        rc = ct.s->ops->purge(ct.s, "q", LADE_STATE_READY, 1000, &n, &ct.err);
        assert_true(rc >= 0);
        total += n;
    }
    EXPECT(LADE_DONE, rc);
    assert_int_equal(total, 2500);
    assert_int_equal(ct_count("q", LADE_STATE_READY), 0);
}

/* redrive ---------------------------------------------------------------------------------------------------------- */

/* chasqui 39 */
static void redrive_readies_the_oldest_dead_with_all_attempts(void **state)
{
    (void)state;
    size_t n = 0;
    ct_join("w", "q");
    for (int i = 0; i < 5; i++) {
        ct_add("q", ct_format("a%d", i));
        struct lq_leased j = ct_take_one("w", "q");
        struct lq_settle it = ct_settling("q", &j, LQ_TO_DEAD);
        it.history = lb_slice("\1\0\x19\0\1\0x", 7);
        assert_int_equal(ct_settle_one(it), LADE_DONE);
        ct_step(2);
    }
    EXPECT(LADE_MORE, ct.s->ops->redrive(ct.s, "q", 2, &n, &ct.err));
    assert_int_equal(n, 2);
    assert_string_equal(ct_list("q", LADE_STATE_READY, 10), "a0 a1");
    assert_string_equal(ct_list("q", LADE_STATE_DEAD, 10), "a2 a3 a4");
    EXPECT(LADE_MORE, ct.s->ops->redrive(ct.s, "q", 2, &n, &ct.err));
    EXPECT(LADE_DONE, ct.s->ops->redrive(ct.s, "q", 2, &n, &ct.err));
    assert_int_equal(n, 1);
    EXPECT(LADE_DONE, ct.s->ops->redrive(ct.s, "q", 2, &n, &ct.err));
    assert_int_equal(n, 0);
    const struct lq_row *row = ct_row("q", "a0");
    assert_int_equal(row->reason, LQ_REASON_NONE);
    assert_int_equal(row->finished_ms, 0);
    assert_memory_equal(row->history.p, "\1\0\0\0\0\0x", 7);
    assert_int_equal(ct_take("w", "q", 9), 5);
    assert_string_equal(ct_got(), "a0 a1 a2 a3 a4");
    assert_int_equal(ct_info("q").total_dead, 5);
}

static void redrive_joins_the_end_of_each_level(void **state)
{
    (void)state;
    size_t n = 0;
    assert_int_equal(ct_put_one(ct_item_level("q", "urgent", 1)), LADE_DONE);
    ct_add("q", "a b");
    assert_int_equal(ct_act("q", LADE_JOB_KILL, "a"), LADE_DONE);
    assert_int_equal(ct_act("q", LADE_JOB_KILL, "urgent"), LADE_DONE);
    EXPECT(LADE_DONE, ct.s->ops->redrive(ct.s, "q", 10, &n, &ct.err));
    assert_int_equal(n, 2);
    assert_string_equal(ct_list("q", LADE_STATE_READY, 10), "urgent b a");
}

/* forget ----------------------------------------------------------------------------------------------------------- */

/* chasqui 55 */
static void forget_removes_an_empty_queue_and_all_it_remembers(void **state)
{
    (void)state;
    lade_queue_info info;
    EXPECT(LADE_NOT_FOUND, ct.s->ops->forget(ct.s, "q", &ct.err));
    ct_join("w", "q");
    (void)ct_bring("q", "a", LADE_STATE_COMPLETED);
    pause("q", true);
    EXPECT(LADE_WRONG_STATE, ct.s->ops->forget(ct.s, "q", &ct.err));
    assert_int_equal(ct_act("q", LADE_JOB_REMOVE, "a"), LADE_DONE);
    EXPECT(0, ct.s->ops->forget(ct.s, "q", &ct.err));
    EXPECT(LADE_NOT_FOUND, ct.s->ops->forget(ct.s, "q", &ct.err));
    EXPECT(LADE_NOT_FOUND, ct.s->ops->count(ct.s, "q", &info, &ct.err));
    assert_string_equal(list_queues(), "");
    ct_add("q", "b");
    info = ct_info("q");
    assert_false(info.paused);
    assert_int_equal(info.total_enqueued, 1);
    assert_int_equal(info.total_completed, 0);
    assert_int_equal(ct_take("w", "q", 1), 1);
}

static void forget_is_refused_for_each_state(void **state)
{
    (void)state;
    ct_join("w", "q");
    for (int i = 0; i < LADE_N_STATES; i++) {
        (void)ct_bring("q", "a", (enum lade_state)i);
        EXPECT(LADE_WRONG_STATE, ct.s->ops->forget(ct.s, "q", &ct.err));
        assert_int_equal(ct_act("q", LADE_JOB_REMOVE, "a"), LADE_DONE);
    }
}

static const struct CMUnitTest tests[] = {
    CT_TEST(queues_are_listed_sorted_and_once),
    CT_TEST(only_put_and_pause_make_a_queue),
    CT_TEST(counts_follow_every_move),
    CT_TEST(latency_is_the_age_of_the_oldest_ready_job),
    CT_TEST(latency_counts_jobs_that_are_held),
    CT_TEST(paused_queue_gives_no_jobs_until_it_is_resumed),
    CT_TEST(pausing_twice_is_no_harm),
    CT_TEST(jobs_under_way_are_settled_while_paused),
    CT_TEST(jobs_are_promoted_while_paused_but_not_by_a_take),
    CT_TEST(pause_makes_a_queue),
    CT_TEST(purge_removes_one_state_in_bounded_steps),
    CT_TEST(purge_leaves_other_queues_alone),
    CT_TEST(purge_of_thousands_ends),
    CT_TEST(redrive_readies_the_oldest_dead_with_all_attempts),
    CT_TEST(redrive_joins_the_end_of_each_level),
    CT_TEST(forget_removes_an_empty_queue_and_all_it_remembers),
    CT_TEST(forget_is_refused_for_each_state),
};

CT_GROUP(ct_queue_group, tests);
