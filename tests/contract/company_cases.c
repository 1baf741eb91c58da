/*
 * company_cases.c - contract: jobs of keys whose envelopes tell the key, with no limit of a key: a store may let up to LQ_TURN_JOBS of each wait
 * as they came (docs/limits.md). What such a store promises is a bound; one whose turns are of one job each keeps it anyway.
 */
#include "key_kit.h"

#include <stdlib.h>
#include <string.h>

#include "queue/limit.h"

/* At most so many of a key are served before others have their turn: two times, since a process that begins to count knows less. */
#define BOUND (2 * LQ_TURN_JOBS)

static struct lq_put item(const char *id, const char *key, int level)
{
    struct lq_put put = ct_item_level("q", id, level);
    put.key = lb_slice_str(key);
    ky_dress(&put);
    return put;
}

static void add_one(const char *id, const char *key)
{
    assert_int_equal(ct_put_one(item(id, key, LQ_LEVEL_DEFAULT)), LADE_DONE);
}

/* So long after a look at keys no store takes them apart any more. One whose clock is not stepped makes nothing of it. */
static void rest(void)
{
    if (ct.ops->caps & LQ_CAP_CLOCK)
        ct_step(5000);
}

/* The place in the order of taking of the last job whose id begins with this, when all are taken in steps of `step`. */
static size_t last_place(const char *prefix, size_t n, size_t step)
{
    size_t at = 0, last = 0, seen = 0;
    while (seen < n) {
        size_t k = ct_take("w", "q", step);
        assert_true(k > 0);
        for (size_t i = 0; i < k; i++, at++) {
            if (ct.got.job[i].id.n >= strlen(prefix) &&
                memcmp(ct.got.job[i].id.p, prefix, strlen(prefix)) == 0) {
                seen++;
                last = at;
            }
        }
    }
    return last;
}

/* 1 tenant x 5,000 and 99 x 10: the last of the small ones starts after theirs, one turn of the big one, and its turns of one. */
static void a_flood_in_one_call_delays_by_a_turn(void **state)
{
    (void)state;
    ct_join("w", "q");
    ky_add_many("q", "flood", "A", 5000);
    for (int i = 0; i < 99; i++)
        ky_add_many("q", ct_format("s%02d-", i), ct_format("T%02d", i), 10);
    assert_in_range(last_place("s", 990, 50), 989, 990 + BOUND + 20);
}

static void a_flood_of_single_calls_delays_by_a_turn(void **state)
{
    (void)state;
    ct_join("w", "q");
    for (int i = 0; i < 600; i++)
        add_one(ct_format("flood%d", i), "A");
    for (int i = 0; i < 20; i++)
        add_one(ct_format("s%d", i), ct_format("T%d", i));
    assert_in_range(last_place("s", 20, 7), 19, 20 + BOUND + 2);
}

/* One tenant is in each call beside many others, and never alone. */
static void a_tenant_in_every_call_delays_by_a_turn(void **state)
{
    (void)state;
    struct lq_put put[20];
    ct_join("w", "q");
    for (int call = 0; call < 100; call++) {
        for (int i = 0; i < 20; i++)
            put[i] = item(ct_format("%c%d-%d", i < 10 ? 'f' : 'o', call, i),
                          i < 10 ? "A" : ct_format("T%d", call * 10 + i), LQ_LEVEL_DEFAULT);
        ct_put(put, 20);
    }
    add_one(
        "late",
        "B"); /* behind 1,000 others, each of its own key, and one turn of A; not behind A's other 984 */
    assert_in_range(last_place("late", 1, 100), 0, 1000 + BOUND + 2);
}

/* While it is worked on: who comes late waits for at most a turn of each key that is there. */
static void a_late_key_waits_for_one_turn_of_each(void **state)
{
    (void)state;
    ct_join("w", "q");
    ky_add_many("q", "a", "A", 500);
    ky_add_many("q", "b", "B", 500);
    assert_int_equal(ct_take("w", "q", 100), 100);
    ky_add_many("q", "c", "C", 8);
    assert_in_range(last_place("c", 8, 5), 7, 8 * 3 + 2 * BOUND);
}

static void who_comes_back_gains_no_more_than_a_turn(void **state)
{
    (void)state;
    size_t mine = 0;
    ct_join("w", "q");
    ky_add_many("q", "a", "A", 300);
    add_one("b0", "B");
    for (int i = 1; i <= 100; i++) {
        assert_int_equal(ct_take("w", "q", 1), 1);
        if (ct_got()[0] == 'b') {
            mine++;
            add_one(ct_format("b%d", i), "B");
        }
    }
    assert_in_range(mine, 50 - BOUND, 51);
}

/* Keys, takes and calls of any size: those of one key come as they were put. */
static void jobs_of_a_key_come_in_their_order(void **state)
{
    (void)state;
    static const char *const keys[] = {"A", "B", "C", "D"};
    int put_of[4] = {0}, got_of[4] = {0};
    unsigned x = 12345;
    ct_join("w", "q");
    for (int round = 0; round < 300; round++) {
        struct lq_put put[30];
        size_t n = (x = x * 1664525 + 1013904223) >> 16 & 31, k = 0;
        for (; k < n && k < 30; k++) {
            x = x * 1664525 + 1013904223;
            int key = (x >> 20) % 9 < 6 ? 0 : (int)((x >> 24) & 3); /* one has most */
            put[k] = item(ct_format("%d-%d", key, put_of[key]++), keys[key], LQ_LEVEL_DEFAULT);
        }
        if (k > 0)
            ct_put(put, k);
        x = x * 1664525 + 1013904223;
        size_t got = ct_take("w", "q", (x >> 16 & 31) + 1);
        for (size_t i = 0; i < got; i++) {
            int key = ct.got.job[i].id.p[0] - '0';
            assert_int_equal(strtol((const char *)ct.got.job[i].id.p + 2, NULL, 10), got_of[key]++);
        }
    }
}

static void higher_levels_of_a_key_go_first(void **state)
{
    (void)state;
    struct lq_put put[4] = {item("a1", "A", 4), item("a2", "A", 0), item("b1", "B", 8),
                            item("b2", "B", 6)};
    ct_join("w", "q");
    ct_put(put, 4);
    ct_take("w", "q", 10);
    assert_true(strstr(ct_got(), "a2") < strstr(ct_got(), "a1"));
    assert_true(strstr(ct_got(), "b2") < strstr(ct_got(), "b1"));
}

static void keys_tell_what_is_ready_and_active(void **state)
{
    (void)state;
    ct_join("w", "q");
    ky_add("q", "a1:A b1:B a2:A c1:C");
    assert_int_equal(ct_take("w", "q", 2), 2);
    assert_string_equal(ky_show("q"),
                        strcmp(ct_got(), "a1 b1") == 0 ? "A 1/1/0, B 0/1/0, C 1/0/0" : "");
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(ct_settle("q", &ct.got.job[i], LQ_TO_COMPLETED), LADE_DONE);
    assert_string_equal(ky_show("q"), "A 1/0/0, C 1/0/0");
    rest();
    ky_add("q", "d1:D d2:D");
    assert_string_equal(ky_show("q"), "A 1/0/0, C 1/0/0, D 2/0/0");
}

static void a_pause_holds_jobs_that_wait_already(void **state)
{
    (void)state;
    ct_join("w", "q");
    for (int i = 0; i < 10; i++)
        ky_add("q", ct_format("a%d:A b%d:B", i, i));
    ky_pause("q", "A", true);
    assert_string_equal(ky_show("q"), "A 10/0/0 paused, B 10/0/0");
    assert_int_equal(ct_take("w", "q", 50), 10);
    assert_null(strchr(ct_got(), 'a'));
    ky_add("q", "a10:A b10:B");
    assert_string_equal((ct_take("w", "q", 50), ct_got()), "b10");
    ky_pause("q", "A", false);
    assert_string_equal((ct_take("w", "q", 50), ct_got()), "a0 a1 a2 a3 a4 a5 a6 a7 a8 a9 a10");
}

/* What was taken before the limit came counts. */
static void a_limit_counts_what_runs_already(void **state)
{
    (void)state;
    ct_join("w", "q");
    ky_add("q", "a1:A a2:A");
    assert_int_equal(ct_take("w", "q", 2), 2);
    struct lq_leased one = ct.got.job[0], two = ct.got.job[1];
    one.id = lb_arena_copy(&ct.arena, one.id.p, one.id.n);
    two.id = lb_arena_copy(&ct.arena, two.id.p, two.id.n);
    ky_add("q", "a3:A a4:A b1:B");
    ky_limit("q", "A", (struct lq_limit){.concurrency = 2});
    assert_string_equal((ct_take("w", "q", 9), ct_got()), "b1");
    assert_int_equal(ct_settle("q", &one, LQ_TO_COMPLETED), LADE_DONE);
    assert_string_equal((ct_take("w", "q", 9), ct_got()), "a3");
    assert_int_equal(ct_settle("q", &two, LQ_TO_COMPLETED), LADE_DONE);
    assert_string_equal((ct_take("w", "q", 9), ct_got()), "a4");
}

static void fifo_holds_from_when_it_is_set(void **state)
{
    (void)state;
    ct_join("w", "q");
    for (int i = 0; i < 40; i++)
        ky_add("q", ct_format("a%02d:A", i));
    ky_limit("q", "A", (struct lq_limit){.order = LADE_KEY_ORDER_FIFO});
    for (int i = 0; i < 40; i++) {
        assert_int_equal(ct_take("w", "q", 9), 1);
        assert_string_equal(ct_got(), ct_format("a%02d", i));
        struct lq_leased j = ct.got.job[0];
        assert_int_equal(ct_settle("q", &j, i % 3 ? LQ_TO_COMPLETED : LQ_TO_GONE), LADE_DONE);
    }
}

static void each_end_of_a_lease_is_right_for_the_key(void **state)
{
    (void)state;

    static const struct {
        enum lq_to to;
        const char *shown;
    } ends[] = {{LQ_TO_COMPLETED, ""},
                {LQ_TO_RETRYING, "A 0/0/1"},
                {LQ_TO_SCHEDULED, "A 0/0/1"},
                {LQ_TO_READY, "A 1/0/0"},
                {LQ_TO_DEAD, ""},
                {LQ_TO_CANCELLED, ""},
                {LQ_TO_GONE, ""}};

    ct_join("w", "q");
    for (size_t i = 0; i < LB_ARRAY_LEN(ends); i++) {
        const char *id = ct_format("a%zu", i);
        ky_add("q", ct_format("%s:A", id));
        struct lq_leased j = ct_take_one("w", "q");
        assert_int_equal(ct_settle("q", &j, ends[i].to), LADE_DONE);
        assert_string_equal(ky_show("q"), ends[i].shown);
        (void)ct_act("q", LADE_JOB_REMOVE, id);
        assert_string_equal(ky_show("q"), "");
        rest();
    }
}

static void what_ended_in_company_comes_back_to_its_key(void **state)
{
    (void)state;
    size_t n = 0;
    ct_join("w", "q");
    ky_add("q", "a:A b:B c:A");
    assert_int_equal(ct_take("w", "q", 3), 3);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(ct_settle("q", &ct.got.job[i], LQ_TO_DEAD), LADE_DONE);
    EXPECT(LADE_DONE, ct.s->ops->redrive(ct.s, "q", 10, &n, &ct.err));
    assert_int_equal(n, 3);
    assert_string_equal(ky_show("q"), "A 2/0/0, B 1/0/0");
    assert_int_equal(ct_act("q", LADE_JOB_KILL, "a"), LADE_DONE);
    assert_int_equal(ct_act("q", LADE_JOB_CANCEL, "b"), LADE_DONE);
    assert_string_equal(ky_show("q"), "A 1/0/0");
    assert_int_equal(ct_act("q", LADE_JOB_RETRY, "a"), LADE_DONE);
    assert_string_equal(ky_show("q"), "A 2/0/0");
}

static void acts_find_jobs_in_company(void **state)
{
    (void)state;
    size_t n = 0;
    ct_join("w", "q");
    ky_add("q", "a1:A b1:B a2:A b2:B a3:A b3:B");
    assert_int_equal(ct_state("q", "b2"), LADE_STATE_READY);
    assert_int_equal(ct_act("q", LADE_JOB_REMOVE, "a2"), LADE_DONE);
    assert_int_equal(ct_act("q", LADE_JOB_KILL, "b1"), LADE_DONE);
    assert_int_equal(ct_act("q", LADE_JOB_CANCEL, "b3"), LADE_DONE);
    assert_int_equal(ct_act("q", LADE_JOB_RETRY, "a1"), LADE_WRONG_STATE);
    assert_string_equal(ky_sorted(ct_list("q", LADE_STATE_READY, 2)), "a1 a3 b2");
    assert_string_equal(ky_sorted((ct_take("w", "q", 9), ct_got())), "a1 a3 b2");
    ky_add("q", "c1:C c2:C");
    EXPECT(LADE_DONE, ct.s->ops->purge(ct.s, "q", LADE_STATE_READY, 10, &n, &ct.err));
    assert_int_equal(n, 2);
    assert_string_equal(ky_show("q"), "A 0/2/0, B 0/1/0");
}

static void a_throttled_job_of_company_holds_its_key(void **state)
{
    (void)state;
    ct_join("w", "q");
    ky_add("q", "a1:A b1:B a2:A b2:B");
    assert_string_equal((ct_take("w", "q", 1), ct_got()), "a1");
    struct lq_leased j = ct.got.job[0];
    struct lq_settle it = ct_settling("q", &j, LQ_TO_THROTTLED);
    it.delay_ms = CT_HOUR;
    assert_int_equal(ct_settle_one(it), LADE_DONE);
    assert_string_equal(ky_sorted((ct_take("w", "q", 9), ct_got())), "b1 b2");
    assert_string_equal(ky_show("q"), "A 2/0/0 paused, B 0/2/0");
    ky_pause("q", "A", false);
    assert_string_equal(ky_sorted((ct_take("w", "q", 9), ct_got())), "a1 a2");
}

static void replace_in(const char *unique, const char *id, int level, int64_t in_ms)
{
    struct lq_put put = item(id, "", level);
    put.unique = lb_slice_str(unique);
    put.unique_ttl_ms = CT_HOUR;
    put.conflict = LQ_CONFLICT_REPLACE;
    put.when = in_ms ? LQ_WHEN_IN : LQ_WHEN_NOW;
    put.when_ms = in_ms;
    assert_int_equal(ct_put_one(put), LADE_REPLACED);
}

/* Its envelope tells no key any more, for a job that replaces has none; it is the holder's all the same, as where it stands by itself. */
static void a_replaced_job_of_company_keeps_its_key(void **state)
{
    (void)state;
    assert_true(ct.ops->caps & LQ_CAP_CONFLICT);
    ct_join("w", "q");
    for (int i = 0; i < 3; i++) {
        struct lq_put put = item(ct_format("a%d", i), "A", LQ_LEVEL_DEFAULT);
        put.unique = lb_slice_str(ct_format("u%d", i));
        put.unique_ttl_ms = CT_HOUR;
        assert_int_equal(ct_put_one(put), LADE_DONE);
        add_one(ct_format("b%d", i), "B");
    }
    replace_in("u0", "x", LQ_LEVEL_DEFAULT, 0);
    replace_in("u1", "y", 0, 0);
    replace_in("u2", "z", LQ_LEVEL_DEFAULT, CT_HOUR);
    assert_string_equal(ky_show("q"), "A 2/0/1, B 3/0/0");
    assert_int_equal(ct_take("w", "q", 9), 5);
    assert_string_equal(ky_show("q"), "A 0/2/1, B 0/3/0");
}

/* Jobs that a dead worker held go to the next one, with their keys. */
static void reclaim_keeps_company(void **state)
{
    (void)state;
    ct_join("w", "q");
    ky_add("q", "a1:A b1:B a2:A");
    ct_join("v", "q");
    assert_int_equal(ct_take("w", "q", 3), 3);
    ct_die("w", "q");
    assert_int_equal(ct_reclaim("v", "q", 10), 3);
    assert_string_equal(ky_show("q"), "A 0/2/0, B 0/1/0");
}

static void jobs_without_a_key_are_not_starved_by_company(void **state)
{
    (void)state;
    ct_join("w", "q");
    for (int i = 0; i < 100; i++)
        ky_add("q", ct_format("a%d:K%d", i, i));
    ky_add("q", "u1 u2 u3");
    for (int i = 100; i < 200; i++)
        ky_add("q", ct_format("a%d:K%d", i, i));
    assert_in_range(last_place("u", 3, 10), 2, 205);
}

static const struct CMUnitTest tests[] = {
    KY_TEST_DRESSED(a_flood_in_one_call_delays_by_a_turn),
    KY_TEST_DRESSED(a_flood_of_single_calls_delays_by_a_turn),
    KY_TEST_DRESSED(a_tenant_in_every_call_delays_by_a_turn),
    KY_TEST_DRESSED(a_late_key_waits_for_one_turn_of_each),
    KY_TEST_DRESSED(who_comes_back_gains_no_more_than_a_turn),
    KY_TEST_DRESSED(jobs_of_a_key_come_in_their_order),
    KY_TEST_DRESSED(higher_levels_of_a_key_go_first),
    KY_TEST_DRESSED(keys_tell_what_is_ready_and_active),
    KY_TEST_DRESSED(a_pause_holds_jobs_that_wait_already),
    KY_TEST_DRESSED(a_limit_counts_what_runs_already),
    KY_TEST_DRESSED(fifo_holds_from_when_it_is_set),
    KY_TEST_DRESSED(each_end_of_a_lease_is_right_for_the_key),
    KY_TEST_DRESSED(what_ended_in_company_comes_back_to_its_key),
    KY_TEST_DRESSED(acts_find_jobs_in_company),
    KY_TEST_DRESSED(a_throttled_job_of_company_holds_its_key),
    KY_TEST_DRESSED(a_replaced_job_of_company_keeps_its_key),
    KY_TEST_DRESSED(reclaim_keeps_company),
    KY_TEST_DRESSED(jobs_without_a_key_are_not_starved_by_company),
};

CT_GROUP(ct_company_group, tests);
