/* control_cases.c - contract: orders to workers, and what these tell of themselves */
#include "contract.h"

#include "queue/control_store.h"

/* A renewal that tells and asks; its orders in *o. */
static int beat(const char *worker, bool first, struct lq_report report, struct lq_orders *o)
{
    struct lq_beat b = ct_beat(worker, "q");
    size_t n = 0;
    *o = (struct lq_orders){0};
    b.first = first;
    b.report = &report;
    b.orders = o;
    int rc = lq_renew(ct.s, &b, NULL, 0, &n, &ct.err);
    assert_true(rc >= 0);
    return rc;
}

static struct lq_orders orders_of(const char *worker)
{
    struct lq_orders o;
    assert_int_equal(beat(worker, false, (struct lq_report){0}, &o), LADE_DONE);
    return o;
}

static int order(const char *worker, enum lade_worker_order what)
{
    int rc = lq_order_worker(ct.s, worker, what, &ct.err);
    assert_true(rc >= 0);
    return rc;
}

static struct lq_control look(const char *worker)
{
    struct lq_control c = {0};
    EXPECT(0, ct.s->ops->controls->look(ct.s, worker, &ct.arena, &c, &ct.err));
    return c;
}

static void an_order_is_read_by_each_renewal_until_another_is_given(void **state)
{
    (void)state;
    ct_join("w", "q");
    ct_join("v", "q");
    assert_int_equal(orders_of("w").wish, 0);
    assert_int_equal(order("w", LADE_WORKER_QUIET), LADE_DONE);
    assert_int_equal(order("w", LADE_WORKER_QUIET), LADE_DONE);
    for (int i = 0; i < 3; i++)
        assert_int_equal(orders_of("w").wish, LADE_WORKER_QUIET);
    assert_int_equal(orders_of("v").wish, 0);
    assert_int_equal(look("w").orders.wish, LADE_WORKER_QUIET);
    assert_int_equal(order("w", LADE_WORKER_RESUME), LADE_DONE);
    assert_int_equal(orders_of("w").wish, LADE_WORKER_RESUME);
}

static void an_order_to_stop_cannot_be_taken_back(void **state)
{
    (void)state;
    ct_join("w", "q");
    assert_int_equal(order("w", LADE_WORKER_STOP), LADE_DONE);
    assert_int_equal(order("w", LADE_WORKER_QUIET), LADE_WRONG_STATE);
    assert_int_equal(order("w", LADE_WORKER_RESUME), LADE_WRONG_STATE);
    assert_int_equal(order("w", LADE_WORKER_STOP), LADE_DONE);
    assert_int_equal(order("w", LADE_WORKER_STACKS), LADE_DONE);
    struct lq_orders o = orders_of("w");
    assert_int_equal(o.wish, LADE_WORKER_STOP);
    assert_int_equal(o.asked, 1);
}

static void who_is_not_live_is_given_no_orders(void **state)
{
    (void)state;
    assert_int_equal(order("nobody", LADE_WORKER_QUIET), LADE_NOT_FOUND);
    assert_int_equal(order("nobody", LADE_WORKER_STACKS), LADE_NOT_FOUND);
    assert_int_equal(look("nobody").orders.wish, 0);
    ct_join("w", "q");
    ct_die("w", "q");
    assert_int_equal(order("w", LADE_WORKER_QUIET), LADE_NOT_FOUND);
    ct_join("v", "q");
    EXPECT(0, lq_leave(ct.s, "v", ct_lanes("q"), &ct.err));
    assert_int_equal(order("v", LADE_WORKER_STOP), LADE_NOT_FOUND);
}

/* An id is never used twice, but a store that numbers its workers may use a number again. */
static void what_a_worker_was_told_goes_with_it(void **state)
{
    (void)state;
    struct lq_report r = {.about = lb_slice_str("1 2 3 h"), .stacks = lb_slice_str("s"), .made = 1};
    struct lq_orders o;
    ct_join("w", "q");
    assert_int_equal(beat("w", false, r, &o), LADE_DONE);
    assert_int_equal(order("w", LADE_WORKER_STOP), LADE_DONE);
    EXPECT(0, lq_leave(ct.s, "w", ct_lanes("q"), &ct.err));
    ct_join("v", "q");
    assert_int_equal(orders_of("v").wish, 0);
    struct lq_control c = look("v");
    assert_int_equal(c.about.n, 0);
    assert_int_equal(c.stacks.n, 0);
    ct_join("w", "q");
    assert_int_equal(orders_of("w").wish, 0);
    assert_int_equal(look("w").about.n, 0);
}

static void what_a_worker_tells_stays_until_it_tells_otherwise(void **state)
{
    (void)state;
    struct lq_orders o;
    struct lq_report first = {.about = lb_slice_str("1 4711 0.1 host")};
    assert_int_equal(beat("w", true, first, &o), LADE_DONE); /* with its registration */
    assert_true(lb_slice_eq(look("w").about, first.about));
    assert_int_equal(order("w", LADE_WORKER_STACKS), LADE_DONE);
    assert_int_equal(order("w", LADE_WORKER_STACKS), LADE_DONE);
    assert_int_equal(orders_of("w").asked, 2);
    struct lq_control c = look("w");
    assert_true(lb_slice_eq(c.about, first.about));
    assert_int_equal(c.made, 0);
    assert_int_equal(c.stacks_ms, 0);
    struct lq_report second = {.stacks = lb_slice("a\0b\n", 4), .made = 2};
    int64_t before = ct_now();
    assert_int_equal(beat("w", false, second, &o), LADE_DONE);
    c = look("w");
    assert_int_equal(c.made, 2);
    assert_true(lb_slice_eq(c.stacks, second.stacks));
    assert_true(lb_slice_eq(c.about, first.about));
    assert_true(c.stacks_ms >= before && c.stacks_ms <= ct_now());
    struct lq_report third = {.about = lb_slice_str("2 4711 0.1 host")};
    assert_int_equal(beat("w", false, third, &o), LADE_DONE);
    c = look("w");
    assert_true(lb_slice_eq(c.about, third.about));
    assert_true(lb_slice_eq(c.stacks, second.stacks));
    assert_int_equal(c.orders.asked, 2);
}

static void the_longest_stacks_are_kept_whole(void **state)
{
    (void)state;
    static uint8_t bytes[LADE_STACKS_MAX];
    struct lq_orders o;
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(i * 7 + i / 251);
    ct_join("w", "q");
    struct lq_report r = {.stacks = lb_slice(bytes, sizeof(bytes)), .made = 1};
    assert_int_equal(beat("w", false, r, &o), LADE_DONE);
    assert_true(lb_slice_eq(look("w").stacks, r.stacks));
}

static void a_renewal_that_is_stale_tells_and_reads_nothing(void **state)
{
    (void)state;
    struct lq_orders o;
    struct lq_report r = {.about = lb_slice_str("1 1 1 h")};
    assert_int_equal(beat("w", false, r, &o), LADE_STALE);
    assert_int_equal(o.wish, 0);
    assert_int_equal(look("w").about.n, 0);
}

/* Late, as a process is that was stopped for a while: its leases were nobody else's meanwhile, so it is who it was. */
static void a_worker_that_renews_late_is_as_it_was_and_reads_its_orders(void **state)
{
    (void)state;
    struct lq_orders o = {0};
    struct lq_report r = {.about = lb_slice_str("1 4711 0.1 host")};
    struct lq_beat b = ct_beat("w", "q");
    size_t n = 0;
    ct_join("w", "q");
    assert_int_equal(order("w", LADE_WORKER_QUIET), LADE_DONE);
    b.lease_ms = 1;
    b.report = &r;
    b.orders = &o;
    EXPECT(0, lq_renew(ct.s, &b, NULL, 0, &n, &ct.err));
    ct_step(20);
    o = orders_of("w");
    assert_int_equal(o.wish, LADE_WORKER_QUIET);
    assert_true(lb_slice_eq(look("w").about, r.about));
}

static const struct CMUnitTest tests[] = {
    CT_TEST(an_order_is_read_by_each_renewal_until_another_is_given),
    CT_TEST(an_order_to_stop_cannot_be_taken_back),
    CT_TEST(who_is_not_live_is_given_no_orders),
    CT_TEST(what_a_worker_was_told_goes_with_it),
    CT_TEST(what_a_worker_tells_stays_until_it_tells_otherwise),
    CT_TEST(the_longest_stacks_are_kept_whole),
    CT_TEST(a_renewal_that_is_stale_tells_and_reads_nothing),
    CT_TEST(a_worker_that_renews_late_is_as_it_was_and_reads_its_orders),
};

CT_GROUP(ct_control_group, tests);
