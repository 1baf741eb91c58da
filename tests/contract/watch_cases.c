/* watch_cases.c - contract: who watches a job or a stream is rung */
#include "event_kit.h"

#define LONG (60 * LADE_SECOND)

static int watch(const char *queue, const char *id, enum lq_watched what, uint64_t after)
{
    struct lq_watch it = {
        .queue = queue, .id = lb_slice_str(id), .what = what, .after = after, .outcome = -1};
    EXPECT(0, ct.s->ops->watch(ct.s, "watcher", &it, 1, &ct.err));
    return it.outcome;
}

static void assert_rung(const char *lanes)
{
    int64_t start = lb_clock_mono();
    EXPECT(0, ct.s->ops->wait(ct.s, "watcher", ct_lanes(lanes), start + LONG, &ct.err));
    assert_true(lb_clock_mono() - start < LONG / 2);
}

static void unwatch(const char *lanes)
{
    ct.s->ops->unwatch(ct.s, "watcher", ct_lanes(lanes));
}

static void who_watches_a_job_is_rung_when_it_ends(void **state)
{
    (void)state;

    static const enum lq_to ends[] = {LQ_TO_COMPLETED, LQ_TO_DEAD, LQ_TO_CANCELLED};

    ct_join("w", "q");
    for (size_t i = 0; i < LB_ARRAY_LEN(ends); i++) {
        const char *id = ct_format("a%zu", i);
        ct_add("q", id);
        assert_int_equal(watch("q", id, LQ_WATCH_END, 0), LADE_EMPTY);
        struct lq_leased j = ct_take_one("w", "q");
        assert_int_equal(ct_settle("q", &j, ends[i]), LADE_DONE);
        assert_rung("q");
        assert_int_equal(watch("q", id, LQ_WATCH_END, 0), LADE_DONE);
    }
    unwatch("q");
}

static void who_watches_a_job_is_rung_when_it_is_gone(void **state)
{
    (void)state;
    size_t n = 0;
    ct_join("w", "q");
    ct_add("q", "a b c");
    assert_int_equal(watch("q", "a", LQ_WATCH_END, 0), LADE_EMPTY);
    assert_int_equal(ct_act("q", LADE_JOB_REMOVE, "a"), LADE_DONE);
    assert_rung("q");
    assert_int_equal(watch("q", "a", LQ_WATCH_END, 0), LADE_NOT_FOUND);
    assert_int_equal(watch("q", "b", LQ_WATCH_END, 0), LADE_EMPTY);
    assert_int_equal(ct_act("q", LADE_JOB_CANCEL, "b"), LADE_DONE);
    assert_rung("q");
    assert_int_equal(watch("q", "b", LQ_WATCH_END, 0), LADE_DONE);
    assert_int_equal(watch("q", "c", LQ_WATCH_END, 0), LADE_EMPTY);
    EXPECT(0, ct.s->ops->purge(ct.s, "q", LADE_STATE_READY, 10, &n, &ct.err));
    assert_rung("q");
    assert_int_equal(watch("q", "c", LQ_WATCH_END, 0), LADE_NOT_FOUND);
    unwatch("q");
}

static void a_job_of_a_batch_can_be_watched(void **state)
{
    (void)state;
    ct_join("w", "q");
    ct_add_many("q", "j", 60);
    assert_int_equal(watch("q", "j0030", LQ_WATCH_END, 0), LADE_EMPTY);
    assert_int_equal(ct_take("w", "q", 60), 60);
    struct lq_settle it[60];
    for (int i = 0; i < 60; i++)
        it[i] = ct_settling("q", &ct.got.job[i], LQ_TO_COMPLETED);
    EXPECT(0, lq_settle_take(ct.s, it, 60, NULL, NULL, &ct.err));
    assert_rung("q");
    assert_int_equal(watch("q", "j0030", LQ_WATCH_END, 0), LADE_DONE);
    unwatch("q");
}

static void another_handle_rings_too(void **state)
{
    (void)state;
    ct_join("w", "q");
    ct_add("q", "a");
    struct lq_leased j = ct_take_one("w", "q");
    assert_int_equal(watch("q", "a", LQ_WATCH_END, 0), LADE_EMPTY);
    struct lq_store *mine = ct.s, *other = ct_open();
    ct.s = other;
    int rc = ct_settle("q", &j, LQ_TO_COMPLETED);
    ct.s = mine;
    lq_store_close(other);
    assert_int_equal(rc, LADE_DONE);
    assert_rung("q");
    unwatch("q");
}

static void who_watches_a_stream_is_rung_by_its_next_event(void **state)
{
    (void)state;
    ct_events_on("q", 100);
    ct_add("q", "a");
    uint64_t last = ct_events_info("q").last;
    assert_int_equal(watch("q", "", LQ_WATCH_EVENTS, last - 1), LADE_DONE);
    assert_int_equal(watch("q", "", LQ_WATCH_EVENTS, last), LADE_EMPTY);
    ct_add("q", "b");
    assert_rung("q");
    assert_int_equal(watch("q", "", LQ_WATCH_EVENTS, last), LADE_DONE);
    assert_int_equal(watch("q", "", LQ_WATCH_EVENTS, last + 1), LADE_EMPTY);
    ct_events_on("q", 0);
    assert_rung("q");
    assert_int_equal(watch("q", "", LQ_WATCH_EVENTS, last + 1), LADE_DONE);
    unwatch("q");
}

static void wake_ends_the_wait_of_a_watcher(void **state)
{
    (void)state;
    ct_add("q", "a");
    assert_int_equal(watch("q", "a", LQ_WATCH_END, 0), LADE_EMPTY);
    ct.s->ops->wake(ct.s, "watcher");
    assert_rung("q");
    unwatch("q");
}

static void a_watcher_takes_no_ring_of_a_worker(void **state)
{
    (void)state;
    ct_join("w", "q");
    ct_add("p", "a");
    assert_int_equal(watch("p", "a", LQ_WATCH_END, 0), LADE_EMPTY);
    struct lq_watch many[12];
    for (size_t i = 0; i < LB_ARRAY_LEN(many); i++)
        many[i] = (struct lq_watch){.queue = i == 0 ? "q" : ct_format("q%zu", i),
                                    .id = lb_slice_str("a"),
                                    .what = LQ_WATCH_END};
    EXPECT(0, ct.s->ops->watch(ct.s, "watcher", many, LB_ARRAY_LEN(many), &ct.err));
    assert_int_equal(ct_look_idle("w", "q"), 0);
    ct_add("q", "x");
    int64_t start = lb_clock_mono();
    EXPECT(0, ct.s->ops->wait(ct.s, "w", ct_lanes("q"), start + LONG, &ct.err));
    assert_true(lb_clock_mono() - start < LONG / 2);
    unwatch("p q");
}

static const struct CMUnitTest tests[] = {
    CT_TEST(who_watches_a_job_is_rung_when_it_ends),
    CT_TEST(who_watches_a_job_is_rung_when_it_is_gone),
    CT_TEST(a_job_of_a_batch_can_be_watched),
    CT_TEST(another_handle_rings_too),
    CT_TEST(who_watches_a_stream_is_rung_by_its_next_event),
    CT_TEST(wake_ends_the_wait_of_a_watcher),
    CT_TEST(a_watcher_takes_no_ring_of_a_worker),
};

CT_GROUP(ct_watch_group, tests);
