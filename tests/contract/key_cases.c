/* key_cases.c - contract: keys take turns, and go with their jobs; where a store has keys (ops.key_list) */
#include "key_kit.h"

static void keys_take_turns(void **state)
{
    (void)state;
    KY_NEEDS_KEYS();
    ct_join("w", "q");
    ky_add("q", "a1:A a2:A a3:A a4:A b1:B b2:B c1:C");
    assert_string_equal((ct_take("w", "q", 10), ct_got()), "a1 b1 c1 a2 b2 a3 a4");
}

static void turns_go_on_over_takes(void **state)
{
    (void)state;
    KY_NEEDS_KEYS();
    ct_join("w", "q");
    ky_add("q", "a1:A a2:A a3:A b1:B b2:B b3:B");
    assert_string_equal((ct_take("w", "q", 1), ct_got()), "a1");
    assert_string_equal((ct_take("w", "q", 1), ct_got()), "b1");
    assert_string_equal((ct_take("w", "q", 3), ct_got()), "a2 b2 a3");
    assert_string_equal((ct_take("w", "q", 3), ct_got()), "b3");
}

static void jobs_without_a_key_share_one_turn(void **state)
{
    (void)state;
    KY_NEEDS_KEYS();
    ct_join("w", "q");
    ky_add("q", "u1 u2 u3 a1:A a2:A b1:B b2:B");
    ct_take("w", "q", 10);
    assert_string_equal(ct_got(), "u1 a1 b1 u2 a2 b2 u3");
}

static void a_late_key_does_not_wait_for_the_backlog_of_another(void **state)
{
    (void)state;
    KY_NEEDS_KEYS();
    ct_join("w", "q");
    ky_add_many("q", "a", "A", 500);
    assert_int_equal(ct_take("w", "q", 100), 100);
    ky_add("q", "b1:B b2:B");
    assert_string_equal((ct_take("w", "q", 5), ct_got()), "a0100 b1 a0101 b2 a0102");
}

/* A key whose only job comes again and again gets no more than its turn. */
static void who_comes_back_at_once_gains_nothing(void **state)
{
    (void)state;
    KY_NEEDS_KEYS();
    size_t mine = 0;
    ct_join("w", "q");
    ky_add_many("q", "a", "A", 40);
    ky_add("q", "b0:B");
    for (int i = 1; i <= 40; i++) {
        assert_int_equal(ct_take("w", "q", 1), 1);
        if (ct_got()[0] == 'b') {
            mine++;
            ky_add("q", ct_format("b%d:B", i));
        }
    }
    assert_in_range(mine, 19, 21);
}

static void priority_counts_within_a_key_only(void **state)
{
    (void)state;
    KY_NEEDS_KEYS();
    struct lq_put put[4] = {ct_item_level("q", "a1", 4), ct_item_level("q", "a2", 0),
                            ct_item_level("q", "b1", 8), ct_item_level("q", "b2", 8)};
    ct_join("w", "q");
    for (size_t i = 0; i < 4; i++)
        put[i].key = lb_slice_str(i < 2 ? "A" : "B");
    ct_put(put, 4);
    assert_string_equal((ct_take("w", "q", 10), ct_got()), "a2 b1 a1 b2");
}

/* chronos 35, 36, 38: exact in each stretch, and an empty heavy key delays nobody. */
static void weights_are_exact_in_each_stretch(void **state)
{
    (void)state;
    KY_NEEDS_KEYS();
    struct lq_limit heavy = {.weight = 3};
    ct_join("w", "q");
    ky_limit("q", "A", heavy);
    ky_add_many("q", "a", "A", 60);
    ky_add_many("q", "b", "B", 30);
    for (int i = 0; i < 10; i++) {
        size_t n = 0;
        assert_int_equal(ct_take("w", "q", 8), 8);
        for (const char *c = ct_got(); *c; c++)
            n += *c == 'a';
        assert_in_range(n, 5, 7);
    }
    assert_int_equal(ct_take("w", "q", 100), 10);
    assert_int_equal(ct_got()[0], 'b');
}

/* 1 tenant x 2000 and 99 x 10: in jobs served before them, not in time: 10 rounds of 100. */
static void one_tenants_flood_does_not_delay_the_others(void **state)
{
    (void)state;
    KY_NEEDS_KEYS();
    size_t small = 0, at = 0, last = 0;
    ct_join("w", "q");
    ky_add_many("q", "flood", "A", 2000);
    for (int i = 0; i < 99; i++)
        ky_add_many("q", ct_format("s%02d-", i), ct_format("T%02d", i), 10);
    while (small < 990) {
        size_t n = ct_take("w", "q", 50);
        assert_true(n > 0);
        for (size_t i = 0; i < n; i++, at++) {
            if (ct.got.job[i].id.p[0] == 's') {
                small++;
                last = at;
            }
        }
    }
    assert_in_range(last, 989, 1010);
}

/* The same with 1 x 100,000 and 999 x 10: the last of the small ones starts after 10 rounds of 1,000 keys, not after the flood. */
static void a_hundred_thousand_jobs_of_one_tenant_delay_nobody(void **state)
{
    (void)state;
    KY_NEEDS_KEYS();
    size_t small = 0, at = 0, last = 0;
    ct_join("w", "q");
    for (int i = 0; i < 20; i++)
        ky_add_many("q", ct_format("flood%d-", i), "A", 5000);
    for (int i = 0; i < 999; i++)
        ky_add_many("q", ct_format("s%03d-", i), ct_format("T%03d", i), 10);
    while (small < 9990) {
        size_t n = ct_take("w", "q", 1000);
        assert_true(n > 0);
        for (size_t i = 0; i < n; i++, at++) {
            if (ct.got.job[i].id.p[0] == 's') {
                small++;
                last = at;
            }
        }
    }
    assert_in_range(last, 9989, 10000);
}

static void a_key_follows_its_job_through_its_life(void **state)
{
    (void)state;
    KY_NEEDS_KEYS();
    ct_join("w", "q");
    ky_add("q", "a:A");
    struct lq_leased j = ct_take_one("w", "q");
    assert_string_equal(ky_show("q"), "A 0/1/0");
    assert_int_equal(ct_settle("q", &j, LQ_TO_RETRYING), LADE_DONE);
    assert_string_equal(ky_show("q"), "A 0/0/1");
    assert_int_equal(ct_act("q", LADE_JOB_RETRY, "a"), LADE_DONE);
    assert_string_equal(ky_show("q"), "A 1/0/0");
    assert_int_equal(ct_act("q", LADE_JOB_KILL, "a"), LADE_DONE);
    assert_string_equal(ky_show("q"), "");
    size_t n = 0;
    EXPECT(LADE_DONE, ct.s->ops->redrive(ct.s, "q", 10, &n, &ct.err));
    assert_string_equal(ky_show("q"), "A 1/0/0");
    assert_int_equal(ct_act("q", LADE_JOB_CANCEL, "a"), LADE_DONE);
    assert_string_equal(ky_show("q"), "");
    assert_int_equal(ct_act("q", LADE_JOB_RETRY, "a"), LADE_DONE);
    assert_string_equal(ky_show("q"), "A 1/0/0");
    EXPECT(LADE_DONE, ct.s->ops->purge(ct.s, "q", LADE_STATE_READY, 10, &n, &ct.err));
    assert_int_equal(n, 1);
    assert_string_equal(ky_show("q"), "");
    assert_int_equal(ct_state("q", "a"), -1);
}

static void ready_jobs_of_keys_are_seen_and_acted_on(void **state)
{
    (void)state;
    KY_NEEDS_KEYS();
    ct_join("w", "q");
    ky_add("q", "a1:A a2:A a3:A b1:B b2:B u1");
    assert_string_equal(ky_sorted(ct_list("q", LADE_STATE_READY, 2)), "a1 a2 a3 b1 b2 u1");
    assert_int_equal(ct_state("q", "b2"), LADE_STATE_READY);
    assert_int_equal(ct_act("q", LADE_JOB_REMOVE, "a2"), LADE_DONE);
    assert_int_equal(ct_act("q", LADE_JOB_KILL, "b1"), LADE_DONE);
    assert_string_equal(ky_sorted(ct_list("q", LADE_STATE_READY, 1)), "a1 a3 b2 u1");
    assert_int_equal(ct_count("q", LADE_STATE_READY), 4);
    assert_string_equal((ct_take("w", "q", 9), ct_got()), "u1 a1 b2 a3");
}

static void due_jobs_come_to_their_keys(void **state)
{
    (void)state;
    KY_NEEDS_KEYS();
    struct lq_put put[2] = {ct_item("q", "a1"), ct_item("q", "a2")};
    ct_join("w", "q");
    ky_usual("q", (struct lq_limit){.concurrency = 1});
    for (int i = 0; i < 2; i++) {
        put[i].key = lb_slice_str("A");
        put[i].when = LQ_WHEN_IN;
        put[i].when_ms = CT_SOON + i;
        ky_dress(&put[i]);
    }
    ct_put(put, 2);
    assert_string_equal(ky_show("q"), "A 0/0/2");
    ct_step(CT_SOON + 2);
    assert_string_equal((ct_take("w", "q", 9), ct_got()), "a1");
    assert_string_equal(ky_show("q"), "A 1/1/0 concurrency");
}

static void a_repeated_put_counts_once(void **state)
{
    (void)state;
    KY_NEEDS_KEYS();
    struct lq_put put[2] = {ct_item("q", "a"), ct_item("q", "a")};
    put[0].key = put[1].key = lb_slice_str("A");
    ky_dress(&put[0]);
    ky_dress(&put[1]);
    ct_put(put, 2);
    assert_int_equal(put[1].outcome, LADE_DUPLICATE);
    put[0].key = lb_slice_str("B");
    assert_int_equal(ct_put_one(put[0]), LADE_DUPLICATE);
    assert_string_equal(ky_show("q"), "A 1/0/0");
}

static void keys_are_bytes(void **state)
{
    (void)state;
    KY_NEEDS_KEYS();
    static const char odd[] = "\0\xff \n{}:";
    struct lq_put put[2] = {ct_item("q", "a"), ct_item("q", "b")};
    char longest[LADE_KEY_MAX];
    memset(longest, 'x', sizeof(longest));
    put[0].key = lb_slice(odd, sizeof(odd) - 1);
    put[1].key = lb_slice(longest, sizeof(longest));
    ky_dress(&put[0]);
    ky_dress(&put[1]);
    ct_join("w", "q");
    ct_put(put, 2);
    struct lq_key_row_vec rows = {0};
    lade_cursor cursor = {0};
    while (!cursor.done)
        (void)ct.s->ops->key_list(ct.s, "q", &cursor, 1, &rows, &ct.err);
    assert_int_equal(rows.n, 2);
    assert_true(lb_slice_eq(rows.row[0].key, put[0].key));
    assert_true(lb_slice_eq(rows.row[1].key, put[1].key));
    lb_arena_fini(&rows.arena);
    assert_string_equal((ct_take("w", "q", 9), ct_got()), "a b");
}

static void keys_are_listed_in_pages(void **state)
{
    (void)state;
    KY_NEEDS_KEYS();
    for (int i = 0; i < 25; i++)
        ky_add("q", ct_format("j%02d:K%02d", i, i * 7 % 25));
    struct lq_key_row_vec rows = {0};
    lade_cursor cursor = {0};
    while (!cursor.done) {
        size_t before = rows.n;
        int rc = ct.s->ops->key_list(ct.s, "q", &cursor, 4, &rows, &ct.err);
        EXPECT(rows.n > before ? LADE_DONE : LADE_EMPTY, rc);
        assert_true(rows.n - before <= 4);
    }
    assert_int_equal(rows.n, 25);
    for (size_t i = 0; i < rows.n; i++)
        assert_string_equal(
            ct_format("%.*s", (int)rows.row[i].key.n, (const char *)rows.row[i].key.p),
            ct_format("K%02zu", i));
    lb_arena_fini(&rows.arena);
}

static void what_was_set_is_what_is_got(void **state)
{
    (void)state;
    KY_NEEDS_KEYS();
    struct lq_limit l = {3, 100, 1000, 5, 0, LADE_KEY_ORDER_DEFAULT}, back = {0};
    struct lb_slice a = lb_slice_str("A");
    EXPECT(LADE_NOT_FOUND, ct.s->ops->limit_get(ct.s, "q", LADE_LIMIT_QUEUE, a, &back, &ct.err));
    EXPECT(0, lq_limit_set(ct.s, "q", LADE_LIMIT_QUEUE, a, &l, &ct.err));
    EXPECT(0, ct.s->ops->limit_get(ct.s, "q", LADE_LIMIT_QUEUE, a, &back, &ct.err));
    assert_memory_equal(&l, &back, sizeof(l));
    l.weight = 7;
    l.order = LADE_KEY_ORDER_FIFO;
    ky_usual("q", l);
    EXPECT(0, ct.s->ops->limit_get(ct.s, "q", LADE_LIMIT_KEYS, a, &back, &ct.err));
    assert_memory_equal(&l, &back, sizeof(l));
    EXPECT(0, ct.s->ops->limit_get(ct.s, "q", LADE_LIMIT_KEY, a, &back, &ct.err));
    assert_int_equal(back.weight, 0);
    l.concurrency = LADE_LIMIT_NONE;
    ky_limit("q", "A", l);
    EXPECT(0, ct.s->ops->limit_get(ct.s, "q", LADE_LIMIT_KEY, a, &back, &ct.err));
    assert_memory_equal(&l, &back, sizeof(l));
    assert_string_equal(ky_show("q"), "A 0/0/0");
    EXPECT(0, ct.s->ops->forget(ct.s, "q", &ct.err));
    EXPECT(LADE_NOT_FOUND, ct.s->ops->limit_get(ct.s, "q", LADE_LIMIT_QUEUE, a, &back, &ct.err));
    ct_add("q", "u");
    EXPECT(0, ct.s->ops->limit_get(ct.s, "q", LADE_LIMIT_QUEUE, a, &back, &ct.err));
    assert_int_equal(back.concurrency, 0);
    assert_string_equal(ky_show("q"), "");
}

static const struct CMUnitTest tests[] = {
    CT_TEST(keys_take_turns),
    CT_TEST(turns_go_on_over_takes),
    CT_TEST(jobs_without_a_key_share_one_turn),
    CT_TEST(a_late_key_does_not_wait_for_the_backlog_of_another),
    CT_TEST(who_comes_back_at_once_gains_nothing),
    CT_TEST(priority_counts_within_a_key_only),
    CT_TEST(weights_are_exact_in_each_stretch),
    CT_TEST(one_tenants_flood_does_not_delay_the_others),
    CT_TEST(a_hundred_thousand_jobs_of_one_tenant_delay_nobody),
    CT_TEST(a_key_follows_its_job_through_its_life),
    CT_TEST(ready_jobs_of_keys_are_seen_and_acted_on),
    CT_TEST(due_jobs_come_to_their_keys),
    CT_TEST(a_repeated_put_counts_once),
    CT_TEST(keys_are_bytes),
    CT_TEST(keys_are_listed_in_pages),
    CT_TEST(what_was_set_is_what_is_got),
    KY_TEST_DRESSED(weights_are_exact_in_each_stretch),
    KY_TEST_DRESSED(a_key_follows_its_job_through_its_life),
    KY_TEST_DRESSED(due_jobs_come_to_their_keys),
    KY_TEST_DRESSED(a_repeated_put_counts_once),
    KY_TEST_DRESSED(keys_are_bytes),
    KY_TEST_DRESSED(keys_are_listed_in_pages),
    KY_TEST_DRESSED(what_was_set_is_what_is_got),
};

CT_GROUP(ct_key_group, tests);
