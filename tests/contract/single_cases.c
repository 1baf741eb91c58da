/*
 * single_cases.c - contract: fresh plain jobs that come one by one, as most do; a store may take them in a shorter way
 *
 * Nothing of that may show: not their order among others, not to whoever looks, acts, waits or counts.
 */
#include "contract.h"
#include "queue/dead_store.h"

/* Ids of callers that share nothing: none follows another. */
static const char *id_at(unsigned i)
{
    return ct_format("01HF7YAT00%016u", 100 * i);
}

static void add_single(unsigned i, int level)
{
    struct lq_put item = ct_item_level("q", id_at(i), level);
    item.fresh = true;
    ct_put(&item, 1);
    assert_int_equal(item.outcome, LADE_DONE);
}

static void add_singles(unsigned from, unsigned to)
{
    for (unsigned i = from; i < to; i++)
        add_single(i, LQ_LEVEL_DEFAULT);
}

static void expect_next(const char *id)
{
    assert_int_equal(ct_take("w", "q", 1), 1);
    assert_string_equal((const char *)ct.got.job[0].id.p, id);
    assert_memory_equal(ct.got.job[0].body.p + 2, id, strlen(id));
}

static void singles_keep_their_place_among_others(void **state)
{
    (void)state;
    ct_join("w", "q");
    add_singles(0, 2);
    ct_add("q", "a");
    add_singles(2, 4);
    add_single(9, 0); /* more urgent */
    struct lq_put batch[2] = {ct_item("q", ct_format("01HF7YAT00%016u", 7001U)),
                              ct_item("q", ct_format("01HF7YAT00%016u", 7002U))};
    batch[0].fresh = batch[1].fresh = true;
    ct_put(batch, 2);
    add_singles(4, 5);
    struct lq_put two[2] = {ct_item("q", id_at(5)), ct_item("q", id_at(6))};
    two[0].fresh = two[1].fresh = true;
    ct_put(two, 2);
    const char *const order[] = {id_at(9),
                                 id_at(0),
                                 id_at(1),
                                 "a",
                                 id_at(2),
                                 id_at(3),
                                 "01HF7YAT000000000000007001",
                                 "01HF7YAT000000000000007002",
                                 id_at(4),
                                 id_at(5),
                                 id_at(6)};
    for (size_t i = 0; i < LB_ARRAY_LEN(order); i++)
        expect_next(order[i]);
    assert_int_equal(ct_take("w", "q", 1), 0);
}

static void singles_are_counted_and_listed_at_once(void **state)
{
    (void)state;
    ct_add("q", "a");
    add_singles(0, 3);
    add_single(3, 0);
    lade_queue_info info = ct_info("q");
    assert_int_equal(info.count[LADE_STATE_READY], 5);
    assert_int_equal(info.total_enqueued, 5);
    assert_int_equal(ct_state("q", id_at(1)), LADE_STATE_READY);
    assert_memory_equal(ct_row("q", id_at(2))->body.p + 2, id_at(2), 26);
    assert_int_equal(ct_state("q", id_at(4)), -1);
    for (size_t page = 1; page < 7; page++) {
        assert_string_equal(ct_list("q", LADE_STATE_READY, page),
                            ct_format("%s a %s %s %s", id_at(3), id_at(0), id_at(1), id_at(2)));
    }
}

static void pages_go_on_when_singles_move(void **state)
{
    (void)state;
    ct_add("q", "a");
    add_singles(0, 4);
    lade_cursor cursor = {0};
    ct.rows.n = 0;
    EXPECT(0, ct.s->ops->list(ct.s, "q", LADE_STATE_READY, &cursor, 3, &ct.rows, &ct.err));
    assert_int_equal(ct.rows.n, 3);
    assert_string_equal((const char *)ct.rows.row[2].id.p, id_at(1));
    ct_add("q", "b"); /* behind them */
    assert_int_equal(ct_act("q", LADE_JOB_CANCEL, id_at(0)), LADE_DONE);
    add_singles(4, 5);
    ct.rows.n = 0;
    EXPECT(0, ct.s->ops->list(ct.s, "q", LADE_STATE_READY, &cursor, 9, &ct.rows, &ct.err));
    assert_int_equal(ct.rows.n, 4);
    assert_string_equal((const char *)ct.rows.row[0].id.p, id_at(2));
    assert_string_equal((const char *)ct.rows.row[1].id.p, id_at(3));
    assert_string_equal((const char *)ct.rows.row[2].id.p, "b");
    assert_string_equal((const char *)ct.rows.row[3].id.p, id_at(4));
}

static void operators_reach_singles(void **state)
{
    (void)state;
    size_t n = 0;
    ct_add("q", "a");
    add_singles(0, 5);
    assert_int_equal(ct_act("q", LADE_JOB_KILL, id_at(0)), LADE_DONE);
    add_singles(5, 6);
    assert_int_equal(ct_act("q", LADE_JOB_REMOVE, id_at(5)), LADE_DONE);
    assert_int_equal(ct_state("q", id_at(0)), LADE_STATE_DEAD);
    assert_int_equal(ct_state("q", id_at(5)), -1);
    struct lq_put again = ct_item("q", id_at(3));
    ct_put(&again, 1);
    assert_int_equal(again.outcome, LADE_DUPLICATE);
    add_singles(6, 8);
    EXPECT(0, ct.s->ops->redrive(ct.s, "q", 10, &n, &ct.err));
    assert_string_equal(ct_list("q", LADE_STATE_READY, 20),
                        ct_format("a %s %s %s %s %s %s %s", id_at(1), id_at(2), id_at(3), id_at(4),
                                  id_at(6), id_at(7), id_at(0)));
    add_singles(8, 9);
    EXPECT(LADE_WRONG_STATE, ct.s->ops->forget(ct.s, "q", &ct.err));
    EXPECT(0, ct.s->ops->purge(ct.s, "q", LADE_STATE_READY, 100, &n, &ct.err));
    assert_int_equal(n, 9);
    EXPECT(0, ct.s->ops->forget(ct.s, "q", &ct.err));
    add_singles(9, 11); /* the queue is made again */
    assert_int_equal(ct_count("q", LADE_STATE_READY), 2);
}

static void singles_can_be_changed(void **state)
{
    (void)state;
    ct_add("q", "a");
    add_singles(0, 2);
    struct lq_change it[2] = {{.id = lb_slice_str(id_at(0)), .body = lb_slice_str("\0014changed")},
                              {.id = lb_slice_str(id_at(1))}};
    EXPECT(0, ct.s->ops->change(ct.s, "q", LQ_CHANGE_EDIT, it, 1, &ct.err));
    EXPECT(0, ct.s->ops->change(ct.s, "q", LQ_CHANGE_REMOVE, it + 1, 1, &ct.err));
    assert_string_equal(ct_list("q", LADE_STATE_READY, 9), ct_format("a %s", id_at(0)));
    ct_join("w", "q");
    assert_int_equal(ct_take("w", "q", 9), 2);
    assert_memory_equal(ct.got.job[1].body.p, "\0014changed", 9);
}

static void find_nothing(const char *worker)
{
    assert_int_equal(ct_look_idle(worker, "q"), 0);
}

static void assert_wakes(const char *worker, bool wakes)
{
    EXPECT(wakes ? 0 : LADE_EMPTY,
           ct.s->ops->wait(ct.s, worker, ct_lanes("q"),
                           lb_deadline_in(wakes ? 20 * LADE_SECOND : 20 * LADE_MILLISECOND),
                           &ct.err));
}

static void singles_wake_as_many_workers_as_there_are_jobs(void **state)
{
    (void)state;
    ct_join("w", "q");
    ct_join("v", "q");
    ct_join("u", "q");
    ct_add("q", "a");
    expect_next("a");
    find_nothing("w");
    add_singles(0, 1);
    assert_wakes("w", true);
    expect_next(id_at(0));
    find_nothing("w");
    find_nothing("v");
    find_nothing("u");
    add_singles(1, 3);
    add_singles(3, 4);
    assert_wakes("w", true);
    assert_wakes("v", true);
    assert_wakes("u", true);
    assert_int_equal(ct_take("w", "q", 9), 3);
}

static void singles_of_a_paused_queue_wait(void **state)
{
    (void)state;
    ct_join("w", "q");
    ct_add("q", "a");
    expect_next("a");
    find_nothing("w");
    EXPECT(0, ct.s->ops->pause(ct.s, "q", true, &ct.err));
    add_singles(0, 2);
    find_nothing("w");
    assert_int_equal(ct_count("q", LADE_STATE_READY), 2);
    EXPECT(0, ct.s->ops->pause(ct.s, "q", false, &ct.err));
    assert_wakes("w", true);
    expect_next(id_at(0));
}

/* More of them than a worker that is not there takes. */
static void many_singles_without_a_worker_stay_in_order(void **state)
{
    (void)state;
    ct_add("q", "a");
    add_singles(0, 1200);
    assert_int_equal(ct_count("q", LADE_STATE_READY), 1201);
    ct_join("w", "q");
    expect_next("a");
    for (unsigned i = 0; i < 1200; i += 400) {
        assert_int_equal(ct_take("w", "q", 400), 400);
        for (unsigned k = 0; k < 400; k++)
            assert_string_equal((const char *)ct.got.job[k].id.p, id_at(i + k));
    }
}

static const struct CMUnitTest tests[] = {
    CT_TEST(singles_keep_their_place_among_others),
    CT_TEST(singles_are_counted_and_listed_at_once),
    CT_TEST(pages_go_on_when_singles_move),
    CT_TEST(operators_reach_singles),
    CT_TEST(singles_can_be_changed),
    CT_TEST(singles_wake_as_many_workers_as_there_are_jobs),
    CT_TEST(singles_of_a_paused_queue_wait),
    CT_TEST(many_singles_without_a_worker_stay_in_order),
};

CT_GROUP(ct_single_group, tests);
