/*
 * batch_cases.c - contract: jobs whose ids follow each other, put together as a client does; a store may keep them as one
 *
 * Nothing of that may show: each is a job like any other.
 */
#include "contract.h"

#define N 50

/* The id at a place of a block of ids (base/ident.h). */
static const char *id_at(unsigned block, size_t place)
{
    static const char digit[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    return ct_format("01HF7YAT00%014u%c%c", block, digit[place / 32], digit[place % 32]);
}

static struct lq_put fresh_item(unsigned block, size_t place, int level)
{
    struct lq_put item = ct_item_level("q", id_at(block, place), level);
    item.fresh = true;
    return item;
}

/* One call: n fresh jobs of a block from place `from` on. */
static void add_batch(unsigned block, size_t from, size_t n)
{
    struct lq_put *item = lb_arena_alloc(&ct.arena, n * sizeof(*item));
    LB_CHECK(item);
    for (size_t i = 0; i < n; i++)
        item[i] = fresh_item(block, from + i, LQ_LEVEL_DEFAULT);
    ct_put(item, n);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(item[i].outcome, LADE_DONE);
}

/* ct.got is jobs [from, from + n) of the block, whole. */
static void expect_got(unsigned block, size_t from, size_t n)
{
    assert_int_equal(ct.got.n, n);
    for (size_t i = 0; i < n; i++) {
        const struct lq_leased *j = &ct.got.job[i];
        const char *id = id_at(block, from + i);
        assert_string_equal((const char *)j->id.p, id);
        assert_int_equal(j->body.n, 2 + strlen(id));
        assert_memory_equal(j->body.p + 2, id, strlen(id) + 1);
        assert_int_equal(j->history.n, 0);
        assert_non_null(j->history.p);
    }
}

static void settle_got(size_t from, size_t n, enum lq_to to, int outcome)
{
    struct lq_settle it[2 * N];
    assert_in_range(n, 1, 2 * N);
    for (size_t i = 0; i < n; i++)
        it[i] = ct_settling("q", &ct.got.job[from + i], to);
    EXPECT(0, lq_settle_take(ct.s, it, n, NULL, NULL, &ct.err));
    for (size_t i = 0; i < n; i++)
        assert_int_equal(it[i].outcome, outcome);
}

/* As the engine writes them: version 1, level, an array that begins with the kind. Stores may look at that (lq_body_kind). */
static struct lb_slice body_with_kind(size_t place)
{
    return lb_slice_str(ct_format("\x01"
                                  "4"
                                  "\x91\xa4"
                                  "mail%zu",
                                  place));
}

static void expect_body(struct lb_mut body, size_t place)
{
    struct lb_slice want = body_with_kind(place);
    assert_int_equal(body.n, want.n);
    assert_memory_equal(body.p, want.p, want.n);
}

/* The first of a batch and those behind it alike, whether it is the queue's first batch or not, and with events on as well. */
static void body_of_a_job_that_leaves_its_batch_is_whole(void **state)
{
    (void)state;
    ct_join("w", "q");
    for (unsigned round = 0; round < 4; round++) {
        if (round == 2)
            EXPECT(0, lq_events_set(ct.s, "q", 100, &ct.err));
        struct lq_put item[5];
        for (size_t i = 0; i < LB_ARRAY_LEN(item); i++) {
            item[i] = fresh_item(round, i, LQ_LEVEL_DEFAULT);
            item[i].body = body_with_kind(i);
        }
        ct_put(item, LB_ARRAY_LEN(item));
        expect_body(ct_row("q", id_at(round, 0))->body, 0);
        assert_int_equal(ct_take("w", "q", 5), 5);
        settle_got(0, 5, LQ_TO_READY,
                   LADE_DONE); /* each is alone from here on; the last handed back is first */
        assert_int_equal(ct_take("w", "q", 5), 5);
        for (size_t i = 0; i < 5; i++)
            expect_body(ct.got.job[i].body, 4 - i);
        settle_got(0, 5, LQ_TO_COMPLETED, LADE_DONE);
    }
}

static void expect_counts(size_t ready, size_t active, size_t completed)
{
    assert_int_equal(ct_count("q", LADE_STATE_READY), ready);
    assert_int_equal(ct_count("q", LADE_STATE_ACTIVE), active);
    assert_int_equal(ct_count("q", LADE_STATE_COMPLETED), completed);
}

static void batch_is_taken_in_parts_and_in_order(void **state)
{
    (void)state;
    ct_join("w", "q");
    add_batch(1, 0, N);
    add_batch(2, 7, N);
    size_t from = 0;
    for (size_t n = 1; from + n <= N; from += n, n += 2) {
        assert_int_equal(ct_take("w", "q", n), n);
        expect_got(1, from, n);
        expect_counts(2 * N - from - n, from + n, 0);
    }
    assert_int_equal(ct_take("w", "q", N), N);
    assert_string_equal((const char *)ct.got.job[N - 1].id.p, id_at(2, 7 + from - 1));
}

static void bytes_of_a_batch_are_the_takers_to_change(void **state)
{
    (void)state;
    ct_join("w", "q");
    add_batch(1, 0, 5);
    assert_int_equal(ct_take("w", "q", 5), 5);
    for (size_t i = 0; i < 5; i += 2) {
        memset(ct.got.job[i].body.p, 0xff, ct.got.job[i].body.n + 1);
        memset(ct.got.job[i].id.p, 'x', ct.got.job[i].id.n);
        ct.got.job[i].history.p[0] = 0;
    }
    assert_string_equal((const char *)ct.got.job[3].id.p, id_at(1, 3));
    assert_memory_equal(ct.got.job[3].body.p + 2, id_at(1, 3), 27);
}

static void jobs_of_a_batch_are_known_in_every_state(void **state)
{
    (void)state;
    ct_join("w", "q");
    add_batch(1, 0, 9);
    assert_int_equal(ct_take("w", "q", 6), 6);
    settle_got(0, 3, LQ_TO_COMPLETED, LADE_DONE);
    assert_int_equal(ct_act("q", LADE_JOB_REMOVE, id_at(1, 1)), LADE_DONE);
    for (size_t i = 0; i < 10; i++) {
        struct lq_put again = ct_item("q", id_at(1, i));
        ct_put(&again, 1);
        assert_int_equal(again.outcome, i == 1 || i == 9 ? LADE_DONE : LADE_DUPLICATE);
        assert_string_equal(again.holder, i == 1 || i == 9 ? "" : id_at(1, i));
    }
    expect_counts(3 + 2, 3, 2);
}

static void batch_is_settled_in_any_pieces(void **state)
{
    (void)state;
    static const size_t piece[][2] = {{40, 10}, {0, 1}, {2, 1}, {4, 16}, {1, 1}, {3, 1}, {20, 20}};
    ct_join("w", "q");
    add_batch(1, 3, N);
    assert_int_equal(ct_take("w", "q", N), N);
    size_t done = 0;
    for (size_t i = 0; i < LB_ARRAY_LEN(piece); i++) {
        settle_got(piece[i][0], piece[i][1], LQ_TO_COMPLETED, LADE_DONE);
        done += piece[i][1];
        expect_counts(0, N - done, done);
        settle_got(piece[i][0], piece[i][1], LQ_TO_COMPLETED, LADE_STALE);
    }
    assert_int_equal(ct_info("q").total_completed, N);
    assert_int_equal(ct_row("q", id_at(1, 9))->state, LADE_STATE_COMPLETED);
    assert_true(ct_row("q", id_at(1, 9))->finished_ms > 0);
}

static void settle_of_a_batch_under_another_fence_is_stale(void **state)
{
    (void)state;
    ct_join("w", "q");
    add_batch(1, 0, 9);
    assert_int_equal(ct_take("w", "q", 9), 9);
    struct lq_settle it[9];
    for (size_t i = 0; i < 9; i++) {
        it[i] = ct_settling("q", &ct.got.job[i], LQ_TO_COMPLETED);
        it[i].fence += i % 4 == 3;
    }
    EXPECT(0, lq_settle_take(ct.s, it, 9, NULL, NULL, &ct.err));
    for (size_t i = 0; i < 9; i++)
        assert_int_equal(it[i].outcome, i % 4 == 3 ? LADE_STALE : LADE_DONE);
    expect_counts(0, 2, 7);
}

/* The twin of a settle in one call is refused, also among others of its batch. */
static void job_of_a_batch_is_settled_once_in_a_call(void **state)
{
    (void)state;
    ct_join("w", "q");
    add_batch(1, 0, 4);
    assert_int_equal(ct_take("w", "q", 4), 4);
    struct lq_settle it[5];
    for (size_t i = 0; i < 5; i++)
        it[i] =
            ct_settling("q", &ct.got.job[i == 4 ? 1 : i], i == 4 ? LQ_TO_DEAD : LQ_TO_COMPLETED);
    EXPECT(0, lq_settle_take(ct.s, it, 5, NULL, NULL, &ct.err));
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(it[i].outcome, i == 4 ? LADE_STALE : LADE_DONE);
    expect_counts(0, 0, 4);
}

static void jobs_of_a_batch_may_end_in_all_ways(void **state)
{
    (void)state;

    static const enum lade_state end[] = {LADE_STATE_COMPLETED, LADE_STATE_RETRYING,
                                          LADE_STATE_SCHEDULED, LADE_STATE_READY,
                                          LADE_STATE_DEAD,      LADE_STATE_CANCELLED};
    struct lq_settle it[21];
    ct_join("w", "q");
    add_batch(1, 0, 21);
    assert_int_equal(ct_take("w", "q", 21), 21);
    for (size_t i = 0; i < 21; i++) {
        it[i] = ct_settling("q", &ct.got.job[i], (enum lq_to)(i % 7));
        it[i].delay_ms = CT_HOUR;
        if (i % 7 == 1)
            it[i].history = lb_slice_str("\1\0\1\0\0\0");
        if (i == 7)
            it[i].result = lb_slice_str("result");
    }
    EXPECT(0, lq_settle_take(ct.s, it, 21, NULL, NULL, &ct.err));
    for (size_t i = 0; i < 21; i++) {
        assert_int_equal(it[i].outcome, LADE_DONE);
        assert_int_equal(ct_state("q", id_at(1, i)), i % 7 == LQ_TO_GONE ? -1 : (int)end[i % 7]);
    }
    expect_counts(3, 0, 3);
    const struct lq_row *row = ct_row("q", id_at(1, 7));
    assert_int_equal(row->result.n, 6);
    assert_int_equal(row->body.n, 2 + 26);
}

/* The order of what is handed back is as given: each goes to the head. */
static void part_of_a_batch_that_is_handed_back_comes_first(void **state)
{
    (void)state;
    ct_join("w", "q");
    add_batch(1, 0, 9);
    assert_int_equal(ct_take("w", "q", 4), 4);
    struct lq_settle it[4];
    for (size_t i = 0; i < 4; i++)
        it[i] = ct_settling("q", &ct.got.job[3 - i], LQ_TO_READY);
    EXPECT(0, lq_settle_take(ct.s, it, 4, NULL, NULL, &ct.err));
    assert_int_equal(ct_take("w", "q", 9), 9);
    expect_got(1, 0, 9);
}

static void operators_act_on_single_jobs_of_a_batch(void **state)
{
    (void)state;
    ct_join("w", "q");
    add_batch(1, 0, 20);
    assert_int_equal(ct_act("q", LADE_JOB_CANCEL, id_at(1, 0)), LADE_DONE);
    assert_int_equal(ct_act("q", LADE_JOB_KILL, id_at(1, 5)), LADE_DONE);
    assert_int_equal(ct_act("q", LADE_JOB_REMOVE, id_at(1, 19)), LADE_DONE);
    assert_int_equal(ct_act("q", LADE_JOB_RETRY, id_at(1, 7)), LADE_WRONG_STATE);
    expect_counts(17, 0, 0);
    assert_int_equal(ct_act("q", LADE_JOB_RETRY, id_at(1, 5)), LADE_DONE);
    assert_int_equal(ct_take("w", "q", 10), 10);
    assert_string_equal((const char *)ct.got.job[0].id.p, id_at(1, 1));
    assert_string_equal((const char *)ct.got.job[4].id.p, id_at(1, 6));
    expect_counts(8, 10, 0);
    struct lq_leased held[10];
    memcpy(held, ct.got.job, sizeof(held));
    assert_int_equal(ct_act("q", LADE_JOB_CANCEL, id_at(1, 2)), LADE_DONE);
    assert_string_equal(ct_stops("w", "q", 4), id_at(1, 2));
    assert_int_equal(ct_act("q", LADE_JOB_REMOVE, id_at(1, 3)), LADE_DONE);
    assert_string_equal(ct_stops("w", "q", 4), id_at(1, 3));
    expect_counts(8, 9, 0);
    for (size_t i = 0; i < 10; i++)
        assert_int_equal(ct_settle("q", &held[i], i == 1 ? LQ_TO_RETRYING : LQ_TO_COMPLETED),
                         i == 2 ? LADE_STALE : LADE_DONE);
    assert_int_equal(ct_state("q", id_at(1, 2)), LADE_STATE_CANCELLED);
    expect_counts(8, 0, 8);
    assert_int_equal(ct_act("q", LADE_JOB_RETRY, id_at(1, 8)), LADE_DONE);
    assert_int_equal(ct_act("q", LADE_JOB_REMOVE, id_at(1, 9)), LADE_DONE);
    expect_counts(9, 0, 6);
    assert_int_equal(ct_take("w", "q", 10), 9);
    assert_string_equal((const char *)ct.got.job[7].id.p, id_at(1, 5));
    assert_string_equal((const char *)ct.got.job[8].id.p, id_at(1, 8));
}

static void retention_of_batches_is_exact(void **state)
{
    (void)state;
    ct.config.keep_completed.count = 33;
    ct_reopen();
    ct_join("w", "q");
    for (unsigned block = 1; block <= 6; block++) {
        add_batch(block, 0, 20);
        assert_int_equal(ct_take("w", "q", 20), 20);
        settle_got(0, 20, LQ_TO_COMPLETED, LADE_DONE);
        assert_int_equal(ct_count("q", LADE_STATE_COMPLETED), LB_MIN(20 * block, 33U));
        ct_step(2);
    }
    assert_int_equal(ct_state("q", id_at(5, 6)), -1);
    assert_int_equal(ct_state("q", id_at(5, 7)), LADE_STATE_COMPLETED);
    assert_int_equal(ct_info("q").total_completed, 120);
}

static void old_batches_are_trimmed_and_purged_in_steps(void **state)
{
    (void)state;
    size_t n = 0;
    ct.config.keep_completed.age_ms = 60;
    ct_reopen();
    ct_join("w", "q");
    add_batch(1, 0, 2 * N);
    assert_int_equal(ct_take("w", "q", N), N);
    settle_got(0, N, LQ_TO_COMPLETED, LADE_DONE);
    ct_step(70);
    EXPECT(LADE_MORE, lq_trim(ct.s, ct_lanes("q"), 30, &n, &ct.err));
    assert_int_equal(n, 30);
    expect_counts(N, 0, N - 30);
    EXPECT(LADE_MORE, ct.s->ops->purge(ct.s, "q", LADE_STATE_READY, 7, &n, &ct.err));
    assert_int_equal(n, 7);
    EXPECT(LADE_DONE, lq_trim(ct.s, ct_lanes("q"), 30, &n, &ct.err));
    assert_int_equal(n, 20);
    expect_counts(N - 7, 0, 0);
    EXPECT(LADE_DONE, ct.s->ops->purge(ct.s, "q", LADE_STATE_READY, 100, &n, &ct.err));
    assert_int_equal(n, N - 7);
    EXPECT(0, ct.s->ops->forget(ct.s, "q", &ct.err));
    add_batch(1, 0, N);
}

static void batch_of_a_dead_worker_is_reclaimed_in_steps(void **state)
{
    (void)state;
    ct_join("w", "q");
    ct_join("heir", "q");
    add_batch(1, 0, N);
    assert_int_equal(ct_take("w", "q", 30), 30);
    struct lq_leased late = ct.got.job[3];
    late.id.p = (uint8_t *)ct_format("%s", id_at(1, 3)); /* outlives the take */
    ct_die("w", "q");
    size_t all = 0;
    for (size_t n; (n = ct_reclaim("heir", "q", 12)) > 0; all += n) {
        assert_in_range(n, 1, 12);
        assert_string_equal(ct.got.job[0].former, "w");
        assert_false(ct.got.job[0].begun);
        assert_int_equal(ct.got.job[0].body.n, 28);
        settle_got(0, n, LQ_TO_COMPLETED, LADE_DONE);
    }
    assert_int_equal(all, 30);
    assert_int_equal(ct_settle("q", &late, LQ_TO_COMPLETED), LADE_STALE);
    expect_counts(20, 0, 30);
}

static void job_of_a_batch_is_begun_alone(void **state)
{
    (void)state;
    ct_join("w", "q");
    ct_join("heir", "q");
    add_batch(1, 0, 5);
    assert_int_equal(ct_take("w", "q", 5), 5);
    struct lq_leased begun = ct.got.job[2];
    assert_int_equal(ct_begin("w", "q", &begun), LADE_DONE);
    assert_int_equal(ct_begin("heir", "q", &ct.got.job[3]), LADE_STALE);
    ct_die("w", "q");
    assert_int_equal(ct_reclaim("heir", "q", 9), 5);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(ct.got.job[i].begun,
                         strcmp((const char *)ct.got.job[i].id.p, id_at(1, 2)) == 0);
}

/* Two calls in one millisecond, and levels in one call, share a block. */
static void batches_of_one_block_stay_apart(void **state)
{
    (void)state;
    ct_join("w", "q");
    add_batch(1, 0, 5);
    add_batch(1, 5, 5);
    struct lq_put item[9];
    for (size_t i = 0; i < 9; i++)
        item[i] = fresh_item(1, 10 + i, i < 4 ? 0 : i < 7 ? 4 : 3);
    ct_put(item, 9);
    expect_counts(19, 0, 0);
    assert_int_equal(ct_take("w", "q", 6), 6);
    assert_string_equal((const char *)ct.got.job[0].id.p, id_at(1, 10));
    assert_string_equal((const char *)ct.got.job[4].id.p, id_at(1, 17));
    settle_got(0, 6, LQ_TO_COMPLETED, LADE_DONE);
    assert_int_equal(ct_take("w", "q", 13), 13);
    for (size_t i = 0; i < 13; i++)
        assert_string_equal((const char *)ct.got.job[i].id.p, id_at(1, i < 10 ? i : 14 + i - 10));
}

static void jobs_of_batches_are_listed_as_they_are_taken(void **state)
{
    (void)state;
    ct_join("w", "q");
    add_batch(1, 0, 5);
    ct_add("q", "a b");
    add_batch(2, 0, 3);
    for (size_t page = 1; page <= 11; page++)
        assert_string_equal(ct_list("q", LADE_STATE_READY, page),
                            ct_format("%s %s %s %s %s a b %s %s %s", id_at(1, 0), id_at(1, 1),
                                      id_at(1, 2), id_at(1, 3), id_at(1, 4), id_at(2, 0),
                                      id_at(2, 1), id_at(2, 2)));
    assert_int_equal(ct_take("w", "q", 9), 9);
    assert_int_equal(ct_act("q", LADE_JOB_CANCEL, id_at(1, 3)), LADE_DONE);
    lade_cursor cursor = {0};
    size_t n = 0;
    for (int pages = 0; !cursor.done && pages < 20; pages++) {
        ct.rows.n = 0;
        int rc = ct.s->ops->list(ct.s, "q", LADE_STATE_ACTIVE, &cursor, 2, &ct.rows, &ct.err);
        assert_in_range(rc, 0, LADE_EMPTY);
        n += ct.rows.n;
        for (size_t i = 0; i < ct.rows.n; i++)
            assert_string_equal(ct.rows.row[i].worker, "host:w");
    }
    assert_int_equal(n, 9);
}

/* A page ends within a batch, and what was listed leaves before the next. */
static void pages_go_on_within_a_batch_that_shrinks(void **state)
{
    (void)state;
    for (int ended = 0; ended < 2; ended++) {
        unsigned block = 1 + (unsigned)ended;
        size_t seen = 0;
        lade_cursor cursor = {0};
        ct_join("w", "q");
        add_batch(block, 0, 20);
        add_batch(block + 10, 0, 20);
        if (ended) {
            assert_int_equal(ct_take("w", "q", 40), 40);
            settle_got(0, 40, LQ_TO_COMPLETED, LADE_DONE);
        }
        while (!cursor.done) {
            ct.rows.n = 0;
            int rc = ct.s->ops->list(ct.s, "q", ended ? LADE_STATE_COMPLETED : LADE_STATE_READY,
                                     &cursor, 7, &ct.rows, &ct.err);
            assert_in_range(rc, 0, LADE_EMPTY);
            for (size_t i = 0; i < ct.rows.n; i++, seen++)
                assert_string_equal((const char *)ct.rows.row[i].id.p,
                                    id_at(seen < 20 ? block : block + 10, seen % 20));
            size_t gone = 0;
            EXPECT(LADE_MORE,
                   ct.s->ops->purge(ct.s, "q", ended ? LADE_STATE_COMPLETED : LADE_STATE_READY, 5,
                                    &gone, &ct.err));
            if (seen == 40)
                break;
        }
        assert_int_equal(seen, 40);
        size_t gone = 0;
        EXPECT(0, ct.s->ops->purge(ct.s, "q", ended ? LADE_STATE_COMPLETED : LADE_STATE_READY, 1000,
                                   &gone, &ct.err));
    }
}

static const struct CMUnitTest tests[] = {
    CT_TEST(body_of_a_job_that_leaves_its_batch_is_whole),
    CT_TEST(batch_is_taken_in_parts_and_in_order),
    CT_TEST(bytes_of_a_batch_are_the_takers_to_change),
    CT_TEST(jobs_of_a_batch_are_known_in_every_state),
    CT_TEST(batch_is_settled_in_any_pieces),
    CT_TEST(settle_of_a_batch_under_another_fence_is_stale),
    CT_TEST(job_of_a_batch_is_settled_once_in_a_call),
    CT_TEST(jobs_of_a_batch_may_end_in_all_ways),
    CT_TEST(part_of_a_batch_that_is_handed_back_comes_first),
    CT_TEST(operators_act_on_single_jobs_of_a_batch),
    CT_TEST(retention_of_batches_is_exact),
    CT_TEST(old_batches_are_trimmed_and_purged_in_steps),
    CT_TEST(batch_of_a_dead_worker_is_reclaimed_in_steps),
    CT_TEST(job_of_a_batch_is_begun_alone),
    CT_TEST(batches_of_one_block_stay_apart),
    CT_TEST(jobs_of_batches_are_listed_as_they_are_taken),
    CT_TEST(pages_go_on_within_a_batch_that_shrinks),
};

CT_GROUP(ct_batch_group, tests);
