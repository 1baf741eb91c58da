/* bound_cases.c - contract: how many jobs may wait in a queue (queue/bound.h); beyond N7 */
#include "contract.h"

#include "queue/bound.h"
#include "queue/event.h"

static void bound(const char *queue, int64_t max_jobs)
{
    EXPECT(0, lq_bound_set(ct.s, queue, &(struct lq_bound){.max_jobs = max_jobs}, &ct.err));
}

/* The result of putting each of "a b c" of a queue in one call. */
static int put_all(const char *queue, const char *ids)
{
    struct lq_put it[16];
    size_t n = 0;
    char *all = ct_format("%s", ids), *rest = NULL;
    for (char *id = strtok_r(all, " ", &rest); id && n < LB_ARRAY_LEN(it);
         id = strtok_r(NULL, " ", &rest))
        it[n++] = ct_item(queue, id);
    return lq_put(ct.s, it, n, &ct.err);
}

static void expect_waiting(const char *queue, uint64_t n)
{
    lade_queue_info info = ct_info(queue);
    assert_int_equal(info.count[LADE_STATE_READY] + info.count[LADE_STATE_SCHEDULED] +
                         info.count[LADE_STATE_RETRYING],
                     n);
}

static void a_queue_takes_as_many_jobs_as_may_wait_and_no_more(void **state)
{
    (void)state;
    bound("q", 3);
    for (int i = 0; i < 3; i++)
        EXPECT(0, put_all("q", ct_format("a%d", i)));
    EXPECT(LADE_FULL, put_all("q", "b"));
    expect_waiting("q", 3);
    assert_int_equal(ct_info("q").total_enqueued, 3);
    EXPECT(0, put_all("other", "b"));
}

static void a_call_is_admitted_whole_or_refused_whole(void **state)
{
    (void)state;
    bound("q", 5);
    EXPECT(0, put_all("q", "a b c"));
    EXPECT(LADE_FULL, put_all("q", "d e f"));
    expect_waiting("q", 3);
    assert_int_equal(ct_state("q", "d"), -1);
    EXPECT(0, put_all("q", "d e"));
    EXPECT(LADE_FULL, put_all("q", "f"));
    assert_string_equal(ct_list("q", LADE_STATE_READY, 10), "a b c d e");
}

static void what_is_active_or_has_ended_does_not_count(void **state)
{
    (void)state;
    bound("q", 2);
    ct_join("w", "q");
    EXPECT(0, put_all("q", "a b"));
    assert_int_equal(ct_take("w", "q", 2), 2);
    struct lq_leased a = ct.got.job[0];
    EXPECT(0, put_all("q", "c d"));
    EXPECT(LADE_FULL, put_all("q", "e"));
    assert_int_equal(ct_settle("q", &a, LQ_TO_COMPLETED), LADE_DONE);
    EXPECT(LADE_FULL, put_all("q", "e")); /* c and d wait still */
    assert_int_equal(ct_act("q", LADE_JOB_CANCEL, "c"), 0);
    EXPECT(0, put_all("q", "e"));
}

static void scheduled_and_retrying_jobs_count(void **state)
{
    (void)state;
    bound("q", 3);
    ct_join("w", "q");
    ct_add_in("q", "later", CT_HOUR);
    EXPECT(0, put_all("q", "a"));
    struct lq_leased a = ct_take_one("w", "q");
    struct lq_settle it = ct_settling("q", &a, LQ_TO_RETRYING);
    it.delay_ms = CT_HOUR;
    assert_int_equal(ct_settle_one(it), LADE_DONE);
    expect_waiting("q", 2);
    EXPECT(LADE_FULL, put_all("q", "b c"));
    EXPECT(0, put_all("q", "b"));
    struct lq_put due = ct_item("q", "later2");
    due.when = LQ_WHEN_IN;
    due.when_ms = CT_HOUR;
    EXPECT(LADE_FULL, lq_put(ct.s, &due, 1, &ct.err));
}

static void keyed_jobs_count_whether_held_or_not(void **state)
{
    (void)state;
    if (!ct.ops->key_list)
        return;
    bound("q", 2);
    EXPECT(0, lq_key_pause(ct.s, "q", lb_slice_str("K"), true, &ct.err));
    struct lq_put it[3] = {ct_item("q", "a"), ct_item("q", "b"), ct_item("q", "c")};
    for (size_t i = 0; i < 3; i++)
        it[i].key = lb_slice_str("K");
    EXPECT(LADE_FULL, lq_put(ct.s, it, 3, &ct.err));
    EXPECT(0, lq_put(ct.s, it, 2, &ct.err));
    EXPECT(LADE_FULL, lq_put(ct.s, it + 2, 1, &ct.err));
    EXPECT(LADE_FULL, put_all("q", "d"));
}

static void a_duplicate_needs_no_room(void **state)
{
    (void)state;
    bound("q", 2);
    struct lq_put it[3] = {ct_item("q", "a"), ct_item("q", "b"), ct_item("q", "b")};
    it[0].unique = lb_slice_str("u");
    it[0].unique_ttl_ms = CT_HOUR;
    EXPECT(0, lq_put(ct.s, it, 3, &ct.err)); /* the second b is no job */
    assert_int_equal(it[2].outcome, LADE_DUPLICATE);
    struct lq_put again[2] = {ct_item("q", "a"), ct_item("q", "c")};
    again[1].unique = it[0].unique;
    again[1].unique_ttl_ms = CT_HOUR;
    EXPECT(0, lq_put(ct.s, again, 2, &ct.err));
    assert_int_equal(again[0].outcome, LADE_DUPLICATE);
    assert_int_equal(again[1].outcome, LADE_DUPLICATE);
    assert_string_equal(again[1].holder, "a");
    /* a refusal takes no key either */
    struct lq_put late = ct_item("q", "d");
    late.unique = lb_slice_str("v");
    late.unique_ttl_ms = CT_HOUR;
    EXPECT(LADE_FULL, lq_put(ct.s, &late, 1, &ct.err));
    bound("q", 3);
    EXPECT(0, lq_put(ct.s, &late, 1, &ct.err));
    assert_int_equal(late.outcome, LADE_DONE);
}

static void one_full_queue_refuses_the_whole_call_and_is_told(void **state)
{
    (void)state;
    bound("q", 1);
    struct lq_put it[4] = {ct_item("open", "a"), ct_item("q", "b"), ct_item("open", "c"),
                           ct_item("q", "d")};
    EXPECT(LADE_FULL, lq_put(ct.s, it, 4, &ct.err));
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(it[i].outcome, i % 2 ? LADE_FULL : LADE_DONE);
    assert_int_equal(ct_state("open", "a"), -1);
    assert_int_equal(ct_state("q", "b"), -1);
    EXPECT(0, lq_put(ct.s, it, 3, &ct.err));
}

/* Ids that follow each other, which a store may keep as one: the short way must refuse too. */
static void jobs_of_one_block_are_counted(void **state)
{
    (void)state;
    struct lq_put it[20];
    for (size_t i = 0; i < 20; i++) {
        it[i] = ct_item(
            "q", ct_format("01HF7YAT00000000000000010%c", "0123456789ABCDEFGHJKMNPQRSTVWXYZ"[i]));
        it[i].fresh = true;
    }
    EXPECT(0, lq_put(ct.s, it, 10, &ct.err));
    bound("q", 15);
    EXPECT(LADE_FULL, lq_put(ct.s, it + 10, 6, &ct.err));
    expect_waiting("q", 10);
    EXPECT(0, lq_put(ct.s, it + 10, 5, &ct.err));
    EXPECT(LADE_FULL, lq_put(ct.s, it + 15, 1, &ct.err));
    ct_join("w", "q");
    assert_int_equal(ct_take("w", "q", 4), 4);
    EXPECT(LADE_FULL, lq_put(ct.s, it + 15, 5, &ct.err));
    EXPECT(0, lq_put(ct.s, it + 15, 4, &ct.err));
    expect_waiting("q", 15);
}

static int put_fresh(const char *id)
{
    struct lq_put it = ct_item("q", id);
    it.fresh = true;
    return lq_put(ct.s, &it, 1, &ct.err);
}

/* One by one, which a store may do in a shorter way while a queue has no bound. */
static void single_fresh_jobs_are_counted(void **state)
{
    (void)state;
    EXPECT(0, put_fresh("01HF7YAT000000000000000100"));
    EXPECT(0, put_fresh("01HF7YAT000000000000000200"));
    bound("q", 3);
    EXPECT(0, put_fresh("01HF7YAT000000000000000300"));
    for (int i = 0; i < 10; i++)
        EXPECT(LADE_FULL, put_fresh("01HF7YAT000000000000000400"));
    expect_waiting("q", 3);
    bound("q", 0);
    EXPECT(0, put_fresh("01HF7YAT000000000000000500"));
    EXPECT(0, put_fresh("01HF7YAT000000000000000600"));
    bound("q", 6);
    EXPECT(0, put_fresh("01HF7YAT000000000000000700"));
    EXPECT(LADE_FULL, put_fresh("01HF7YAT000000000000000800"));
    ct_join("w", "q");
    assert_int_equal(ct_take("w", "q", 10), 6);
    EXPECT(0, put_fresh("01HF7YAT000000000000000800"));
}

static void what_comes_back_always_passes(void **state)
{
    (void)state;
    ct_join("w", "q");
    (void)ct_bring("q", "dead1", LADE_STATE_DEAD);
    (void)ct_bring("q", "dead2", LADE_STATE_DEAD);
    EXPECT(0, put_all("q", "a b"));
    assert_int_equal(ct_take("w", "q", 2), 2);
    struct lq_leased a = ct.got.job[0], b = ct.got.job[1];
    bound("q", 1);
    EXPECT(0, put_all("q", "c"));
    assert_int_equal(ct_settle("q", &a, LQ_TO_READY), LADE_DONE);
    assert_int_equal(ct_settle("q", &b, LQ_TO_RETRYING), LADE_DONE);
    assert_int_equal(ct_act("q", LADE_JOB_RETRY, "dead1"), 0);
    size_t n = 0;
    EXPECT(0, ct.ops->redrive(ct.s, "q", 10, &n, &ct.err));
    assert_int_equal(n, 1);
    expect_waiting("q", 5);
    EXPECT(LADE_FULL, put_all("q", "d"));
}

static void a_bound_is_read_back_changed_and_lifted(void **state)
{
    (void)state;
    struct lq_bound b = {.max_jobs = 7, .block = true};
    EXPECT(LADE_NOT_FOUND, ct.ops->bounds->get(ct.s, "q", &b, &ct.err));
    EXPECT(0, lq_bound_set(ct.s, "q", &(struct lq_bound){.max_jobs = 2, .block = true}, &ct.err));
    EXPECT(0, ct.ops->bounds->get(ct.s, "q", &b, &ct.err));
    assert_int_equal(b.max_jobs, 2);
    assert_true(b.block);
    EXPECT(0, put_all("q", "a b"));
    bound("q", 1); /* loses nothing */
    expect_waiting("q", 2);
    EXPECT(LADE_FULL, put_all("q", "c"));
    bound("q", 0);
    EXPECT(0, ct.ops->bounds->get(ct.s, "q", &b, &ct.err));
    assert_int_equal(b.max_jobs, 0);
    assert_false(b.block);
    EXPECT(0, put_all("q", "c d e"));
}

static void a_bound_goes_with_its_queue(void **state)
{
    (void)state;
    struct lq_bound b;
    bound("q", 1);
    EXPECT(0, ct.ops->forget(ct.s, "q", &ct.err));
    EXPECT(LADE_NOT_FOUND, ct.ops->bounds->get(ct.s, "q", &b, &ct.err));
    EXPECT(0, put_all("q", "a b"));
}

static void another_handle_holds_the_same_bound(void **state)
{
    (void)state;
    struct lq_store *first = ct.s, *second = ct_open();
    EXPECT(0, put_all("q", "a"));
    ct.s = second;
    int set = lq_bound_set(ct.s, "q", &(struct lq_bound){.max_jobs = 2}, &ct.err);
    int one = put_all("q", "b");
    ct.s = first;
    int full = put_all("q", "c");
    lq_store_close(second);
    assert_int_equal(set, 0);
    assert_int_equal(one, 0);
    assert_int_equal(full, LADE_FULL);
}

/* room -------------------------------------------------------------------------------------------------------------- */

#define LONG (60 * LADE_SECOND)

static int watch_room(uint64_t n)
{
    struct lq_watch it = {.queue = "q", .what = LQ_WATCH_ROOM, .after = n, .outcome = -1};
    EXPECT(0, ct.s->ops->watch(ct.s, "watcher", &it, 1, &ct.err));
    return it.outcome;
}

static void assert_rung(void)
{
    int64_t start = lb_clock_mono();
    EXPECT(0, ct.s->ops->wait(ct.s, "watcher", ct_lanes("q"), start + LONG, &ct.err));
    assert_true(lb_clock_mono() - start < LONG / 2);
}

static void who_watches_for_room_is_rung_by_what_makes_it(void **state)
{
    (void)state;
    ct_join("w", "q");
    bound("q", 2);
    assert_int_equal(watch_room(2), LADE_DONE);
    EXPECT(0, put_all("q", "a b"));
    assert_int_equal(watch_room(1), LADE_EMPTY);
    assert_int_equal(ct_take("w", "q", 1), 1);
    assert_rung();
    assert_int_equal(watch_room(1), LADE_DONE);
    assert_int_equal(watch_room(2), LADE_EMPTY);
    assert_int_equal(ct_act("q", LADE_JOB_REMOVE, "b"), 0);
    assert_rung();
    EXPECT(0, put_all("q", "c d"));
    assert_int_equal(watch_room(1), LADE_EMPTY);
    bound("q", 3);
    assert_rung();
    EXPECT(0, put_all("q", "e"));
    assert_int_equal(watch_room(1), LADE_EMPTY);
    size_t n = 0;
    EXPECT(0, ct.ops->purge(ct.s, "q", LADE_STATE_READY, 10, &n, &ct.err));
    assert_int_equal(n, 3);
    assert_rung();
    assert_int_equal(watch_room(3), LADE_DONE);
    ct.s->ops->unwatch(ct.s, "watcher", ct_lanes("q"));
}

static const struct CMUnitTest tests[] = {
    CT_TEST(a_queue_takes_as_many_jobs_as_may_wait_and_no_more),
    CT_TEST(a_call_is_admitted_whole_or_refused_whole),
    CT_TEST(what_is_active_or_has_ended_does_not_count),
    CT_TEST(scheduled_and_retrying_jobs_count),
    CT_TEST(keyed_jobs_count_whether_held_or_not),
    CT_TEST(a_duplicate_needs_no_room),
    CT_TEST(one_full_queue_refuses_the_whole_call_and_is_told),
    CT_TEST(jobs_of_one_block_are_counted),
    CT_TEST(single_fresh_jobs_are_counted),
    CT_TEST(what_comes_back_always_passes),
    CT_TEST(a_bound_is_read_back_changed_and_lifted),
    CT_TEST(a_bound_goes_with_its_queue),
    CT_TEST(another_handle_holds_the_same_bound),
    CT_TEST(who_watches_for_room_is_rung_by_what_makes_it),
};

CT_GROUP(ct_bound_group, tests);
