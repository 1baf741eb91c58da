/* list_cases.c - contract: get, and listing by pages that stay stable */
#include "contract.h"

#define PAGE 7

/* One page into ct.rows, emptied first; its rows. */
static size_t read_page(enum lade_state state, lade_cursor *cursor, size_t limit)
{
    lb_arena_reset(&ct.rows.arena);
    ct.rows.n = 0;
    ct.rows.row = NULL;
    int rc = ct.s->ops->list(ct.s, "q", state, cursor, limit, &ct.rows, &ct.err);
    EXPECT(ct.rows.n > 0 ? LADE_DONE : LADE_EMPTY, rc);
    assert_true(ct.rows.n <= limit);
    return ct.rows.n;
}

/* Marks the jobs "j0000".. of the page in seen[]; the number of others. */
static size_t mark_seen(int *seen, size_t max)
{
    size_t others = 0;
    for (size_t i = 0; i < ct.rows.n; i++) {
        const char *id = (const char *)ct.rows.row[i].id.p;
        size_t k = strtoul(id + 1, NULL, 10);
        if (id[0] == 'j' && k < max)
            seen[k]++;
        else
            others++;
    }
    return others;
}

/* chronos 64 */
static void get_of_what_is_not_there_is_not_found(void **state)
{
    (void)state;
    ct_add("q", "a");
    assert_int_equal(ct_state("q", "b"), -1);
    assert_int_equal(ct_state("r", "a"), -1);
}

static void get_appends_to_what_is_there(void **state)
{
    (void)state;
    ct_add("q", "a b");
    EXPECT(0, ct.s->ops->get(ct.s, "q", lb_slice_str("b"), &ct.rows, &ct.err));
    EXPECT(0, ct.s->ops->get(ct.s, "q", lb_slice_str("a"), &ct.rows, &ct.err));
    assert_int_equal(ct.rows.n, 2);
    assert_string_equal((const char *)ct.rows.row[0].id.p, "b");
    assert_string_equal((const char *)ct.rows.row[1].id.p, "a");
}

static void ready_jobs_are_listed_as_they_will_be_taken(void **state)
{
    (void)state;
    ct_join("w", "q");
    ct_add("q", "a b c");
    assert_int_equal(ct_put_one(ct_item_level("q", "low", 8)), LADE_DONE);
    assert_int_equal(ct_put_one(ct_item_level("q", "high", 0)), LADE_DONE);
    assert_int_equal(ct_take("w", "q", 2), 2);
    assert_int_equal(ct_settle("q", &ct.got.job[1], LQ_TO_READY), LADE_DONE);
    assert_int_equal(ct_settle("q", &ct.got.job[0], LQ_TO_RETRYING), LADE_DONE);
    assert_int_equal(ct_act("q", LADE_JOB_RETRY, "high"), LADE_DONE);
    for (size_t page = 1; page <= 6; page++)
        assert_string_equal(ct_list("q", LADE_STATE_READY, page), "high a b c low");
    assert_int_equal(ct_take("w", "q", 9), 5);
    assert_string_equal(ct_got(), "high a b c low");
}

/* chronos 64; chasqui 54 */
static void waiting_jobs_are_listed_in_due_order(void **state)
{
    (void)state;
    ct_join("w", "q");
    for (int i = 0; i < 5; i++) {
        ct_add("q", ct_format("r%d", i));
        struct lq_leased j = ct_take_one("w", "q");
        struct lq_settle it = ct_settling("q", &j, LQ_TO_RETRYING);
        it.delay_ms = CT_HOUR + INT64_C(60000) * ((i * 3) % 5);
        assert_int_equal(ct_settle_one(it), LADE_DONE);
        ct_add_in("q", ct_format("s%d", i), CT_HOUR + INT64_C(60000) * ((i * 2) % 5));
    }
    for (size_t page = 1; page <= 6; page++) {
        assert_string_equal(ct_list("q", LADE_STATE_RETRYING, page), "r0 r2 r4 r1 r3");
        assert_string_equal(ct_list("q", LADE_STATE_SCHEDULED, page), "s0 s3 s1 s4 s2");
    }
}

/* chasqui 38 */
static void ended_jobs_are_listed_in_the_order_they_ended(void **state)
{
    (void)state;

    static const enum lade_state end[] = {LADE_STATE_COMPLETED, LADE_STATE_DEAD,
                                          LADE_STATE_CANCELLED};

    ct_join("w", "q");
    for (size_t e = 0; e < LB_ARRAY_LEN(end); e++) {
        for (int i = 0; i < 4; i++) {
            (void)ct_bring("q", ct_format("%d-%zu", (i * 3 + 1) % 4, e), end[e]);
            ct_step(2);
        }
        for (size_t page = 1; page <= 5; page++)
            assert_string_equal(ct_list("q", end[e], page),
                                ct_format("1-%zu 0-%zu 3-%zu 2-%zu", e, e, e, e));
    }
}

static void active_jobs_are_listed_each_once(void **state)
{
    (void)state;
    int seen[30] = {0};
    lade_cursor cursor = {0};
    ct_join("w", "q");
    ct_add_many("q", "j", 30);
    assert_int_equal(ct_take("w", "q", 30), 30);
    while (!cursor.done && read_page(LADE_STATE_ACTIVE, &cursor, PAGE) > 0)
        assert_int_equal(mark_seen(seen, 30), 0);
    for (size_t i = 0; i < 30; i++)
        assert_int_equal(seen[i], 1);
}

static void empty_listing_is_empty_and_done(void **state)
{
    (void)state;
    ct_add("q", "a");
    for (int i = 0; i < LADE_N_STATES; i++) {
        lade_cursor cursor = {0};
        if (i == LADE_STATE_READY)
            continue;
        assert_int_equal(read_page((enum lade_state)i, &cursor, 10), 0);
        assert_true(cursor.done);
    }
}

static void listing_ends_at_the_last_page(void **state)
{
    (void)state;
    ct_add_many("q", "j", 10);
    for (size_t limit = 1; limit <= 11; limit++) {
        lade_cursor cursor = {0};
        size_t rows = 0, pages = 0;
        for (; !cursor.done && pages < 12; pages++)
            rows += read_page(LADE_STATE_READY, &cursor, limit);
        assert_int_equal(rows, 10);
        assert_in_range(pages, (10 + limit - 1) / limit, 10 / limit + 1);
    }
}

/* chasqui 54 */
static void pages_of_a_thousand_are_complete(void **state)
{
    (void)state;
    static int seen[2345];
    lade_cursor cursor = {0};
    memset(seen, 0, sizeof(seen));
    ct_add_many("q", "j", 2345);
    for (int pages = 0; !cursor.done && pages < 5; pages++) {
        (void)read_page(LADE_STATE_READY, &cursor, 1000);
        assert_int_equal(mark_seen(seen, 2345), 0);
    }
    for (size_t i = 0; i < 2345; i++)
        assert_int_equal(seen[i], 1);
}

/* 30 jobs "j0000".. in a state, in that order; w holds those of ACTIVE. */
static void fill(enum lade_state state)
{
    static const enum lq_to way[LADE_N_STATES] = {
        [LADE_STATE_SCHEDULED] = LQ_TO_SCHEDULED, [LADE_STATE_RETRYING] = LQ_TO_RETRYING,
        [LADE_STATE_COMPLETED] = LQ_TO_COMPLETED, [LADE_STATE_DEAD] = LQ_TO_DEAD,
        [LADE_STATE_CANCELLED] = LQ_TO_CANCELLED,
    };
    struct lq_settle it[30];
    ct_add_many("q", "j", 30);
    if (state == LADE_STATE_READY)
        return;
    assert_int_equal(ct_take("w", "q", 30), 30);
    if (state == LADE_STATE_ACTIVE)
        return;
    for (size_t i = 0; i < 30; i++) {
        it[i] = ct_settling("q", &ct.got.job[i], way[state]);
        it[i].delay_ms += (int64_t)i;
    }
    EXPECT(0, lq_settle_take(ct.s, it, 30, NULL, NULL, &ct.err));
}

/*
 * Reads a page, removes what was read, some that was not and adds new ones, and reads on: whatever stayed in its place is
 * seen exactly once. A cursor that counts rows would skip some.
 */
static void stay_stable(enum lade_state state)
{
    int seen[30] = {0};
    bool removed[30] = {0};
    lade_cursor cursor = {0};
    ct_join("w", "q");
    fill(state);
    for (int pages = 0; !cursor.done && pages < 20; pages++) {
        (void)read_page(state, &cursor, PAGE);
        (void)mark_seen(seen, 30);
        if (pages > 2)
            continue;
        for (size_t i = 0; i < 30; i++) {
            bool go = (seen[i] && i % 2 == 0) || (!seen[i] && i % 11 == (size_t)pages);
            if (!go || removed[i])
                continue;
            removed[i] = true;
            assert_int_equal(ct_act("q", LADE_JOB_REMOVE, ct_format("j%04zu", i)), LADE_DONE);
        }
        if (state == LADE_STATE_READY)
            assert_int_equal(ct_put_one(ct_item_level("q", ct_format("x%d", pages), pages)),
                             LADE_DONE);
    }
    assert_true(cursor.done);
    for (size_t i = 0; i < 30; i++) {
        if (!removed[i] && seen[i] != 1)
            print_error("%s j%04zu was seen %d times\n", lade_state_name(state), i, seen[i]);
        assert_true(removed[i] || seen[i] == 1);
    }
}

static void pages_of_ready_stay_stable_while_jobs_move(void **state)
{
    (void)state;
    stay_stable(LADE_STATE_READY);
}

static void pages_of_active_stay_stable_while_jobs_move(void **state)
{
    (void)state;
    stay_stable(LADE_STATE_ACTIVE);
}

static void pages_of_scheduled_stay_stable_while_jobs_move(void **state)
{
    (void)state;
    stay_stable(LADE_STATE_SCHEDULED);
}

static void pages_of_retrying_stay_stable_while_jobs_move(void **state)
{
    (void)state;
    stay_stable(LADE_STATE_RETRYING);
}

static void pages_of_completed_stay_stable_while_jobs_move(void **state)
{
    (void)state;
    stay_stable(LADE_STATE_COMPLETED);
}

static void pages_of_dead_stay_stable_while_jobs_move(void **state)
{
    (void)state;
    stay_stable(LADE_STATE_DEAD);
}

static void pages_of_cancelled_stay_stable_while_jobs_move(void **state)
{
    (void)state;
    stay_stable(LADE_STATE_CANCELLED);
}

static const struct CMUnitTest tests[] = {
    CT_TEST(get_of_what_is_not_there_is_not_found),
    CT_TEST(get_appends_to_what_is_there),
    CT_TEST(ready_jobs_are_listed_as_they_will_be_taken),
    CT_TEST(waiting_jobs_are_listed_in_due_order),
    CT_TEST(ended_jobs_are_listed_in_the_order_they_ended),
    CT_TEST(active_jobs_are_listed_each_once),
    CT_TEST(empty_listing_is_empty_and_done),
    CT_TEST(listing_ends_at_the_last_page),
    CT_TEST(pages_of_a_thousand_are_complete),
    CT_TEST(pages_of_ready_stay_stable_while_jobs_move),
    CT_TEST(pages_of_active_stay_stable_while_jobs_move),
    CT_TEST(pages_of_scheduled_stay_stable_while_jobs_move),
    CT_TEST(pages_of_retrying_stay_stable_while_jobs_move),
    CT_TEST(pages_of_completed_stay_stable_while_jobs_move),
    CT_TEST(pages_of_dead_stay_stable_while_jobs_move),
    CT_TEST(pages_of_cancelled_stay_stable_while_jobs_move),
};

CT_GROUP(ct_list_group, tests);
