/* put_cases.c - contract: new -> ready | scheduled */
#include "contract.h"

/* chasqui 1 */
static void put_job_is_ready_and_unchanged(void **state)
{
    (void)state;
    assert_int_equal(ct_put_one(ct_item("q", "a")), LADE_DONE);
    const struct lq_row *row = ct_row("q", "a");
    assert_int_equal(row->state, LADE_STATE_READY);
    assert_string_equal(row->queue, "q");
    assert_string_equal((const char *)row->id.p, "a");
    assert_int_equal(row->body.n, 3);
    assert_memory_equal(row->body.p,
                        "\x01"
                        "4a",
                        4); /* and the NUL after it */
    assert_int_equal(row->history.n, 0);
    assert_int_equal(row->result.n, 0);
    assert_string_equal(row->worker, "");
    assert_int_equal(row->finished_ms, 0);
}

static void put_in_the_future_is_scheduled_for_then(void **state)
{
    (void)state;
    int64_t before = ct_now();
    ct_add_in("q", "a", CT_HOUR);
    int64_t after = ct_now();
    const struct lq_row *row = ct_row("q", "a");
    assert_int_equal(row->state, LADE_STATE_SCHEDULED);
    assert_in_range(row->run_at_ms, before + CT_HOUR, after + CT_HOUR);
}

/* chronos 19 */
static void put_at_a_future_time_keeps_that_very_time(void **state)
{
    (void)state;
    struct lq_put item = ct_item("q", "a");
    item.when = LQ_WHEN_AT;
    item.when_ms = ct_now() + CT_HOUR + 7;
    assert_int_equal(ct_put_one(item), LADE_DONE);
    const struct lq_row *row = ct_row("q", "a");
    assert_int_equal(row->state, LADE_STATE_SCHEDULED);
    assert_int_equal(row->run_at_ms, item.when_ms);
}

/* chronos 18; chasqui 9 */
static void put_at_a_past_time_is_ready(void **state)
{
    (void)state;
    struct lq_put item = ct_item("q", "a");
    item.when = LQ_WHEN_AT;
    item.when_ms = ct_now() - CT_HOUR;
    assert_int_equal(ct_put_one(item), LADE_DONE);
    item.id = lb_slice_str("b");
    item.when_ms = 1;
    assert_int_equal(ct_put_one(item), LADE_DONE);
    assert_int_equal(ct_state("q", "a"), LADE_STATE_READY);
    assert_int_equal(ct_state("q", "b"), LADE_STATE_READY);
}

static void put_far_beyond_any_lifetime_stays_scheduled(void **state)
{
    (void)state;
    struct lq_put item = ct_item("q", "a");
    item.when = LQ_WHEN_AT;
    item.when_ms = INT64_C(9007199254740000); /* the year 287396, near 2^53 */
    assert_int_equal(ct_put_one(item), LADE_DONE);
    assert_int_equal(ct_row("q", "a")->run_at_ms, item.when_ms);
    ct_join("w", "q");
    assert_int_equal(ct_take("w", "q", 1), 0);
}

static void known_id_is_a_duplicate_in_a_later_call(void **state)
{
    (void)state;
    ct_add("q", "a");
    struct lq_put again = ct_item("q", "a");
    again.body = lb_slice("\x01"
                          "4other",
                          7);
    ct_put(&again, 1);
    assert_int_equal(again.outcome, LADE_DUPLICATE);
    assert_string_equal(again.holder, "a");
    assert_int_equal(ct_count("q", LADE_STATE_READY), 1);
    assert_int_equal(ct_row("q", "a")->body.n, 3);
    assert_int_equal(ct_info("q").total_enqueued, 1);
}

/* chasqui 6 */
static void repeated_id_in_one_call_is_a_duplicate_of_the_first(void **state)
{
    (void)state;
    struct lq_put item[] = {ct_item("q", "a"), ct_item("q", "b"), ct_item("q", "a"),
                            ct_item("q", "c")};
    ct_put(item, 4);
    assert_int_equal(item[0].outcome, LADE_DONE);
    assert_int_equal(item[1].outcome, LADE_DONE);
    assert_int_equal(item[2].outcome, LADE_DUPLICATE);
    assert_string_equal(item[2].holder, "a");
    assert_int_equal(item[3].outcome, LADE_DONE);
    assert_string_equal(ct_list("q", LADE_STATE_READY, 10), "a b c");
}

/* chronos 27; chasqui 18 */
static void known_id_is_a_duplicate_in_every_state(void **state)
{
    (void)state;
    ct_join("w", "q");
    for (int i = 0; i < LADE_N_STATES; i++) {
        const char *id = ct_format("in-%s", lade_state_name((enum lade_state)i));
        (void)ct_bring("q", id, (enum lade_state)i);
        assert_int_equal(ct_state("q", id), i);
        struct lq_put again = ct_item("q", id);
        ct_put(&again, 1);
        assert_int_equal(again.outcome, LADE_DUPLICATE);
        assert_string_equal(again.holder, id);
        assert_int_equal(ct_state("q", id), i);
        if (i == LADE_STATE_READY)
            assert_int_equal(ct_act("q", LADE_JOB_CANCEL, id), LADE_DONE);
    }
}

static void same_id_in_two_queues_is_two_jobs(void **state)
{
    (void)state;
    ct_add("q", "a");
    ct_add("r", "a");
    assert_int_equal(ct_act("r", LADE_JOB_REMOVE, "a"), LADE_DONE);
    assert_int_equal(ct_state("q", "a"), LADE_STATE_READY);
    assert_int_equal(ct_state("r", "a"), -1);
}

static void one_call_fills_several_queues(void **state)
{
    (void)state;
    struct lq_put item[] = {ct_item("q", "a"), ct_item("r", "b"), ct_item("s", "c"),
                            ct_item("r", "d"), ct_item("r", "b"), ct_item("q", "e")};
    ct_put(item, 6);
    assert_int_equal(item[4].outcome, LADE_DUPLICATE);
    assert_string_equal(ct_list("q", LADE_STATE_READY, 10), "a e");
    assert_string_equal(ct_list("r", LADE_STATE_READY, 10), "b d");
    assert_string_equal(ct_list("s", LADE_STATE_READY, 10), "c");
}

/* The body of an empty payload is as short as a body may be. */
static void shortest_body_is_kept(void **state)
{
    (void)state;
    struct lq_put item = ct_item("q", "a");
    item.body = lb_slice("\x01"
                         "4",
                         2);
    assert_int_equal(ct_put_one(item), LADE_DONE);
    ct_join("w", "q");
    struct lq_leased j = ct_take_one("w", "q");
    assert_int_equal(j.body.n, 2);
    assert_memory_equal(j.body.p, item.body.p, 2);
}

/* C-092, and for results and histories in settle_cases.c. */
static void body_of_all_byte_values_comes_back_unchanged(void **state)
{
    (void)state;
    uint8_t body[2 + 512] = {1, '4'};
    for (size_t i = 2; i < sizeof(body); i++)
        body[i] = (uint8_t)(i * 7);
    struct lq_put item = ct_item("q", "a");
    item.body = lb_slice(body, sizeof(body));
    assert_int_equal(ct_put_one(item), LADE_DONE);
    assert_memory_equal(ct_row("q", "a")->body.p, body, sizeof(body));
    ct_join("w", "q");
    struct lq_leased j = ct_take_one("w", "q");
    assert_int_equal(j.body.n, sizeof(body));
    assert_memory_equal(j.body.p, body, sizeof(body));
    assert_int_equal(j.body.p[j.body.n], 0);
}

static void body_of_one_mebibyte_comes_back_unchanged(void **state)
{
    (void)state;
    size_t size = (1U << 20) + 2;
    uint8_t *body = lb_arena_alloc(&ct.arena, size);
    assert_non_null(body);
    for (size_t i = 0; i < size; i++)
        body[i] = (uint8_t)(i * 31 >> 4);
    body[LQ_BODY_LEVEL_AT] = '4';
    struct lq_put item = ct_item("q", "a");
    item.body = lb_slice(body, size);
    assert_int_equal(ct_put_one(item), LADE_DONE);
    ct_join("w", "q");
    assert_int_equal(ct_take("w", "q", 1), 1);
    assert_int_equal(ct.got.job[0].body.n, size);
    assert_memory_equal(ct.got.job[0].body.p, body, size);
}

/* chasqui 7 */
static void longest_names_and_ids_are_kept(void **state)
{
    (void)state;
    const char *queue = ct_format("a.b_c:d/e-%0*d", LADE_NAME_MAX - 10, 7);
    const char *id = ct_format("A-z.0_9:%0*d", LADE_ID_MAX - 8, 7);
    assert_int_equal(strlen(queue), LADE_NAME_MAX);
    assert_int_equal(strlen(id), LADE_ID_MAX);
    assert_int_equal(ct_put_one(ct_item(queue, id)), LADE_DONE);
    ct_join("w", queue);
    struct lq_leased j = ct_take_one("w", queue);
    assert_string_equal((const char *)j.id.p, id);
    assert_int_equal(ct_settle(queue, &j, LQ_TO_COMPLETED), LADE_DONE);
    assert_int_equal(ct_state(queue, id), LADE_STATE_COMPLETED);
}

/* chasqui 2 */
static void full_batch_is_put_in_order(void **state)
{
    (void)state;
    ct_add_many("q", "job", LADE_BATCH_MAX);
    assert_int_equal(ct_count("q", LADE_STATE_READY), LADE_BATCH_MAX);
    assert_int_equal(ct_info("q").total_enqueued, LADE_BATCH_MAX);
    ct_join("w", "q");
    assert_int_equal(ct_take("w", "q", 3), 3);
    assert_string_equal(ct_got(), "job0000 job0001 job0002");
}

/* chasqui 19 */
static void duplicates_in_a_batch_do_not_stop_the_others(void **state)
{
    (void)state;
    ct_add("q", "b d");
    struct lq_put item[5];
    const char *id[] = {"a", "b", "c", "d", "e"};
    for (size_t i = 0; i < 5; i++)
        item[i] = ct_item("q", id[i]);
    ct_put(item, 5);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(item[i].outcome, i % 2 ? LADE_DUPLICATE : LADE_DONE);
    assert_string_equal(ct_list("q", LADE_STATE_READY, 10), "b d a c e");
}

static void put_counts_into_total_enqueued_only_what_it_added(void **state)
{
    (void)state;
    ct_add("q", "a b");
    ct_add_in("q", "c", CT_HOUR);
    assert_int_equal(ct_put_one(ct_item("q", "a")), LADE_DUPLICATE);
    lade_queue_info info = ct_info("q");
    assert_int_equal(info.total_enqueued, 3);
    assert_int_equal(info.count[LADE_STATE_READY], 2);
    assert_int_equal(info.count[LADE_STATE_SCHEDULED], 1);
}

static void repeated_call_adds_nothing(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct lq_put item[] = {ct_item("q", "a"), ct_item("q", "b")};
        ct_put(item, 2);
        assert_int_equal(item[0].outcome, i ? LADE_DUPLICATE : LADE_DONE);
        assert_int_equal(item[1].outcome, i ? LADE_DUPLICATE : LADE_DONE);
    }
    assert_int_equal(ct_info("q").total_enqueued, 2);
}

static const struct CMUnitTest tests[] = {
    CT_TEST(put_job_is_ready_and_unchanged),
    CT_TEST(put_in_the_future_is_scheduled_for_then),
    CT_TEST(put_at_a_future_time_keeps_that_very_time),
    CT_TEST(put_at_a_past_time_is_ready),
    CT_TEST(put_far_beyond_any_lifetime_stays_scheduled),
    CT_TEST(known_id_is_a_duplicate_in_a_later_call),
    CT_TEST(repeated_id_in_one_call_is_a_duplicate_of_the_first),
    CT_TEST(known_id_is_a_duplicate_in_every_state),
    CT_TEST(same_id_in_two_queues_is_two_jobs),
    CT_TEST(one_call_fills_several_queues),
    CT_TEST(shortest_body_is_kept),
    CT_TEST(body_of_all_byte_values_comes_back_unchanged),
    CT_TEST(body_of_one_mebibyte_comes_back_unchanged),
    CT_TEST(longest_names_and_ids_are_kept),
    CT_TEST(full_batch_is_put_in_order),
    CT_TEST(duplicates_in_a_batch_do_not_stop_the_others),
    CT_TEST(put_counts_into_total_enqueued_only_what_it_added),
    CT_TEST(repeated_call_adds_nothing),
};

CT_GROUP(ct_put_group, tests);
