/* result_cases.c - contract: results are kept with the jobs that gave them (chasqui 49) */
#include "event_kit.h"
#include "flow_kit.h"

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

/* Puts a pack of n jobs and takes it; each shall be completed. */
static void take_pack(size_t n, struct lq_settle *it, struct lb_slice *id)
{
    static const char *const kind[] = {"mail", "mail"};
    ct_join("w", "q");
    ct_add_pack(n, kind);
    assert_int_equal(ct_take("w", "q", n), n);
    for (size_t i = 0; i < n; i++) {
        it[i] = ct_settling("q", &ct.got.job[i], LQ_TO_COMPLETED);
        id[i] = lb_slice_str(ct_pack_id(i));
    }
}

/* chasqui 49 */
static void results_of_a_pack_stay_with_its_jobs(void **state)
{
    (void)state;

    enum { N = 60 };

    struct lq_settle it[N];
    struct lb_slice id[N];
    struct lq_result got[N];
    size_t n = 0;
    take_pack(N, it, id);
    for (size_t i = 0; i < N; i++) {
        if (i % 5 != 4)
            it[i].result = lb_slice(ct_format("r%zu\n", i), i % 7 + 1);
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

/* results with a time of their own (result_ttl_ms) -------------------------------------------------------------------- */

/* A completed job whose result has its own time. */
static void complete(const char *id, const char *result, int64_t ttl_ms)
{
    struct lq_leased j = ct_take_one("w", "q");
    assert_true(lb_slice_eq(lb_slice_of(j.id), lb_slice_str(id)));
    struct lq_settle it = ct_settling("q", &j, LQ_TO_COMPLETED);
    it.result = lb_slice_str(result);
    it.result_ttl_ms = ttl_ms;
    assert_int_equal(ct_settle_one(it), LADE_DONE);
}

static void put_and_complete(const char *id, const char *result, int64_t ttl_ms)
{
    ct_add("q", id);
    complete(id, result, ttl_ms);
}

static struct lq_result result_of(const char *id)
{
    struct lq_result got = {0};
    struct lb_slice ids = lb_slice_str(id);
    EXPECT(0, ct.s->ops->results(ct.s, "q", &ids, 1, &ct.arena, &got, &ct.err));
    return got;
}

static void assert_result(const char *id, const char *expected)
{
    struct lq_result got = result_of(id);
    assert_int_equal(got.outcome, LADE_DONE);
    assert_int_equal(got.state, LADE_STATE_COMPLETED);
    assert_true(lb_slice_eq(lb_slice_of(got.bytes), lb_slice_str(expected)));
}

/* chasqui 49. The record goes by its number at once, or by a purge; the result stays for its time. */
static void a_result_with_a_time_of_its_own_outlives_its_job(void **state)
{
    (void)state;
    ct.config.keep_completed.count = 1;
    ct_reopen();
    ct_join("w", "q");
    put_and_complete("a", "of a", CT_HOUR);
    assert_result("a", "of a");
    assert_true(lb_slice_eq(lb_slice_of(ct_row("q", "a")->result), lb_slice_str("of a")));
    put_and_complete("b", "of b", 0);
    assert_int_equal(ct_state("q", "a"), -1);
    assert_result("a", "of a");
    put_and_complete("c", "of c", CT_HOUR);
    size_t n = 0;
    EXPECT(0, ct.s->ops->purge(ct.s, "q", LADE_STATE_COMPLETED, 1000, &n, &ct.err));
    assert_int_equal(n, 1);
    assert_int_equal(result_of("b").outcome, LADE_NOT_FOUND);
    assert_result("a", "of a");
    assert_result("c", "of c");
    ct.config.keep_completed.count = 0;
}

static void a_result_goes_when_its_time_is_over(void **state)
{
    (void)state;
    ct_join("w", "q");
    put_and_complete("a", "of a", CT_SOON);
    size_t n = 0;
    int64_t start = ct_now();
    while (ct_now() <= start + CT_SOON)
        ct_step(CT_SOON);
    assert_int_equal(result_of("a").outcome, LADE_EMPTY);
    assert_int_equal(ct_row("q", "a")->result.n, 0);
    assert_int_equal(ct_state("q", "a"), LADE_STATE_COMPLETED);
    EXPECT(0, lq_trim(ct.s, ct_lanes("q"), 100, &n, &ct.err));
    assert_int_equal(result_of("a").outcome, LADE_EMPTY);
    assert_int_equal(ct_act("q", LADE_JOB_REMOVE, "a"), 0);
    assert_int_equal(result_of("a").outcome, LADE_NOT_FOUND);
}

/* What is kept of a former job says nothing of the one that has its id now. */
static void a_kept_result_is_of_that_run_alone(void **state)
{
    (void)state;
    ct_join("w", "q");
    put_and_complete("a", "first", CT_HOUR);
    ct_step(2); /* no two ends in one millisecond */
    assert_int_equal(ct_act("q", LADE_JOB_RETRY, "a"), 0);
    assert_int_equal(result_of("a").outcome, LADE_WRONG_STATE);
    complete("a", "", 0);
    assert_int_equal(result_of("a").outcome, LADE_EMPTY);
    assert_int_equal(ct_row("q", "a")->result.n, 0);
    ct_step(2);
    assert_int_equal(ct_act("q", LADE_JOB_RETRY, "a"), 0);
    complete("a", "third", 0);
    assert_result("a", "third");
    ct_step(2);
    assert_int_equal(ct_act("q", LADE_JOB_RETRY, "a"), 0);
    complete("a", "fourth", CT_HOUR);
    assert_result("a", "fourth");
}

static void a_kept_result_goes_with_a_job_that_is_removed_and_with_its_queue(void **state)
{
    (void)state;
    ct_join("w", "q");
    put_and_complete("a", "of a", CT_HOUR);
    assert_int_equal(ct_act("q", LADE_JOB_REMOVE, "a"), 0);
    assert_int_equal(result_of("a").outcome, LADE_NOT_FOUND);
    put_and_complete("b", "of b", CT_HOUR);
    size_t n = 0;
    EXPECT(0, ct.s->ops->purge(ct.s, "q", LADE_STATE_COMPLETED, 1000, &n, &ct.err));
    EXPECT(0, ct.s->ops->forget(ct.s, "q", &ct.err));
    assert_int_equal(result_of("b").outcome, LADE_NOT_FOUND);
}

static void removing_a_job_whose_record_is_gone_removes_its_kept_result(void **state)
{
    (void)state;
    size_t n = 0;
    ct_join("w", "q");
    put_and_complete("a", "of a", CT_HOUR);
    put_and_complete("b", "of b", CT_SOON);
    EXPECT(0, ct.s->ops->purge(ct.s, "q", LADE_STATE_COMPLETED, 1000, &n, &ct.err));
    assert_result("a", "of a");
    assert_int_equal(ct_act("q", LADE_JOB_RETRY, "a"), LADE_NOT_FOUND);
    assert_int_equal(ct_act("q", LADE_JOB_KILL, "a"), LADE_NOT_FOUND);
    assert_result("a", "of a");
    assert_int_equal(ct_act("q", LADE_JOB_REMOVE, "a"), LADE_DONE);
    assert_int_equal(result_of("a").outcome, LADE_NOT_FOUND);
    assert_int_equal(ct_act("q", LADE_JOB_REMOVE, "a"), LADE_NOT_FOUND);
    int64_t start = ct_now();
    while (ct_now() <= start + CT_SOON)
        ct_step(CT_SOON);
    assert_int_equal(ct_act("q", LADE_JOB_REMOVE, "b"), LADE_NOT_FOUND);
}

/* Among others that have none, in one settle, in whatever form the jobs are kept. */
static void kept_results_of_a_pack_are_of_their_jobs(void **state)
{
    (void)state;

    enum { N = 40 };

    struct lq_settle it[N];
    struct lb_slice id[N];
    struct lq_result got[N];
    size_t n = 0;
    take_pack(N, it, id);
    for (size_t i = 0; i < N; i++) {
        it[i].result = lb_slice_str(ct_format("r%zu", i));
        it[i].result_ttl_ms = i % 4 == 1 ? CT_HOUR : 0;
    }
    EXPECT(0, lq_settle_take(ct.s, it, N, NULL, NULL, &ct.err));
    EXPECT(0, ct.s->ops->results(ct.s, "q", id, N, &ct.arena, got, &ct.err));
    for (size_t i = 0; i < N; i++) {
        assert_int_equal(got[i].outcome, LADE_DONE);
        assert_true(lb_slice_eq(lb_slice_of(got[i].bytes), it[i].result));
        assert_true(lb_slice_eq(lb_slice_of(ct_row("q", ct_pack_id(i))->result), it[i].result));
    }
    EXPECT(0, ct.s->ops->purge(ct.s, "q", LADE_STATE_COMPLETED, 1000, &n, &ct.err));
    EXPECT(0, ct.s->ops->results(ct.s, "q", id, N, &ct.arena, got, &ct.err));
    for (size_t i = 0; i < N; i++)
        assert_int_equal(got[i].outcome, i % 4 == 1 ? LADE_DONE : LADE_NOT_FOUND);
}

static void a_step_with_a_kept_result_hands_it_on(void **state)
{
    (void)state;
    if (!ct.ops->flow_put)
        return;
    ct_join("w", "q");
    fl_add("f", "q q<0");
    complete("f~0", "for the next", CT_HOUR);
    assert_string_equal(fl_inputs("f", 1), "0:for the next");
    assert_result("f~0", "for the next");
}

static const struct CMUnitTest tests[] = {
    CT_TEST(results_are_given_aligned_with_their_ids),
    CT_TEST(results_of_a_batch_are_kept_each_with_its_job),
    CT_TEST(results_of_a_pack_stay_with_its_jobs),
    CT_TEST(a_result_with_a_time_of_its_own_outlives_its_job),
    CT_TEST(a_result_goes_when_its_time_is_over),
    CT_TEST(a_kept_result_is_of_that_run_alone),
    CT_TEST(a_kept_result_goes_with_a_job_that_is_removed_and_with_its_queue),
    CT_TEST(removing_a_job_whose_record_is_gone_removes_its_kept_result),
    CT_TEST(kept_results_of_a_pack_are_of_their_jobs),
    CT_TEST(a_step_with_a_kept_result_hands_it_on),
};

CT_GROUP(ct_result_group, tests);
