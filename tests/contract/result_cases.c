/* result_cases.c - contract: results are kept with the jobs that gave them (chasqui 49) */
#include "event_kit.h"

/* chasqui 49 */
static void results_are_given_aligned_with_their_ids(void **state)
{
    (void)state;
    static const char nul[] = "r\0s"; /* C-092 */
    ct_join("w", "q");
    ct_add("q", "a b c d");
    assert_int_equal(ct_take("w", "q", 3), 3);
    struct lq_settle it[3];
    for (int i = 0; i < 3; i++)
        it[i] = ct_settling("q", &ct.got.job[i], i == 2 ? LQ_TO_DEAD : LQ_TO_COMPLETED);
    it[0].result = lb_slice(nul, 3);
    EXPECT(0, lq_settle_take(ct.s, it, 3, NULL, NULL, &ct.err));
    struct lb_slice id[] = {lb_slice_str("nobody"), lb_slice_str("d"), lb_slice_str("c"),
                            lb_slice_str("b"),      lb_slice_str("a"), lb_slice_str("a")};
    struct lq_result got[6];
    EXPECT(0, ct.s->ops->results(ct.s, "q", id, 6, &ct.arena, got, &ct.err));
    static const int expected[] = {LADE_NOT_FOUND, LADE_WRONG_STATE, LADE_WRONG_STATE,
                                   LADE_EMPTY,     LADE_DONE,        LADE_DONE};
    for (int i = 0; i < 6; i++)
        assert_int_equal(got[i].outcome, expected[i]);
    assert_int_equal(got[1].state, LADE_STATE_READY);
    assert_int_equal(got[2].state, LADE_STATE_DEAD);
    assert_true(lb_slice_eq(lb_slice_of(got[5].bytes), lb_slice(nul, 3)));
    EXPECT(0, ct.s->ops->results(ct.s, "nowhere", id, 6, &ct.arena, got, &ct.err));
    assert_int_equal(got[4].outcome, LADE_NOT_FOUND);
}

static void results_of_a_batch_are_kept_each_with_its_job(void **state)
{
    (void)state;
    struct lq_settle it[100];
    struct lb_slice id[100];
    struct lq_result got[100];
    ct_join("w", "q");
    ct_add_many("q", "j", 100);
    assert_int_equal(ct_take("w", "q", 100), 100);
    for (int i = 0; i < 100; i++) {
        it[i] = ct_settling("q", &ct.got.job[i], LQ_TO_COMPLETED);
        if (i % 3 != 0)
            it[i].result = lb_slice_str(ct_format("result of %d", i));
        id[i] = lb_slice_str(ct_format("j%04d", i));
    }
    EXPECT(0, lq_settle_take(ct.s, it, 40, NULL, NULL, &ct.err));
    EXPECT(0, lq_settle_take(ct.s, it + 40, 60, NULL, NULL, &ct.err));
    EXPECT(0, ct.s->ops->results(ct.s, "q", id, 100, &ct.arena, got, &ct.err));
    for (int i = 0; i < 100; i++) {
        assert_int_equal(got[i].outcome, i % 3 != 0 ? LADE_DONE : LADE_EMPTY);
        if (i % 3 != 0)
            assert_true(lb_slice_eq(lb_slice_of(got[i].bytes), it[i].result));
        assert_true(
            lb_slice_eq(lb_slice_of(ct_row("q", ct_format("j%04d", i))->result), it[i].result));
    }
}

/* chasqui 49 */
static void results_of_a_pack_stay_with_its_jobs(void **state)
{
    (void)state;

    enum { N = 60 };

    static const char *const kind[] = {"mail", "mail"};
    struct lq_settle it[N];
    struct lb_slice id[N];
    struct lq_result got[N];
    size_t n = 0;
    ct_join("w", "q");
    ct_add_pack(N, kind);
    assert_int_equal(ct_take("w", "q", N), N);
    for (size_t i = 0; i < N; i++) {
        it[i] = ct_settling("q", &ct.got.job[i], LQ_TO_COMPLETED);
        if (i % 5 != 4)
            it[i].result = lb_slice(ct_format("r%zu\n", i), i % 7 + 1);
        id[i] = lb_slice_str(ct_pack_id(i));
    }
    it[7].fence += 1000000;                                          /* not ours */
    assert_int_equal(ct_begin("w", "q", &ct.got.job[9]), LADE_DONE); /* has a record of its own */
    EXPECT(0, lq_settle_take(ct.s, it, 30, NULL, NULL, &ct.err));
    EXPECT(0, lq_settle_take(ct.s, it + 30, 30, NULL, NULL, &ct.err));
    EXPECT(0, ct.s->ops->results(ct.s, "q", id, N, &ct.arena, got, &ct.err));
    for (size_t i = 0; i < N; i++) {
        assert_int_equal(got[i].outcome, i == 7       ? LADE_WRONG_STATE
                                         : i % 5 != 4 ? LADE_DONE
                                                      : LADE_EMPTY);
        struct lb_slice expected = i == 7 ? (struct lb_slice){0} : it[i].result;
        assert_true(lb_slice_eq(lb_slice_of(got[i].bytes), expected));
        assert_true(lb_slice_eq(lb_slice_of(ct_row("q", ct_pack_id(i))->result), expected));
    }
    /* one that is run again has its new result */
    assert_int_equal(ct_act("q", LADE_JOB_RETRY, ct_pack_id(3)), LADE_DONE);
    struct lq_leased j = ct_take_one("w", "q");
    struct lq_settle again = ct_settling("q", &j, LQ_TO_COMPLETED);
    again.result = lb_slice_str("anew");
    assert_int_equal(ct_settle_one(again), LADE_DONE);
    assert_true(lb_slice_eq(lb_slice_of(ct_row("q", ct_pack_id(3))->result), again.result));
    EXPECT(0, ct.s->ops->purge(ct.s, "q", LADE_STATE_COMPLETED, 1000, &n, &ct.err));
    EXPECT(0, ct.s->ops->results(ct.s, "q", id, N, &ct.arena, got, &ct.err));
    assert_int_equal(got[5].outcome, LADE_NOT_FOUND);
}

static const struct CMUnitTest tests[] = {
    CT_TEST(results_are_given_aligned_with_their_ids),
    CT_TEST(results_of_a_batch_are_kept_each_with_its_job),
    CT_TEST(results_of_a_pack_stay_with_its_jobs),
};

CT_GROUP(ct_result_group, tests);
