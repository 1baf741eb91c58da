/* sheet_test.c - results that lie together: read, left by their jobs one by one, taken apart */
#include "support/sqlite_kit.h"

#include "store/sqlite/sheet.h"

static const char *const lane = "q";

/* Puts n jobs PREFIXi, takes them all and completes them together, each with a result of its own but for each `none`th. */
static void complete(struct lq_store *s, const char *prefix, size_t n, size_t bytes, size_t none)
{
    struct lq_leased_vec out = {0};
    struct lq_take take = {.worker = "w", .lanes = sk_lanes, .max = n};
    struct lq_settle *it = calloc(n, sizeof(*it));
    char *text = malloc(n * (bytes + 1));
    assert_non_null(it);
    assert_non_null(text);
    lb_arena_init(&out.arena);
    sk_put(s, prefix, n);
    assert_int_equal(lq_settle_take(s, NULL, 0, &take, &out, &sk.err), 0);
    assert_int_equal(out.n, n);
    for (size_t i = 0; i < n; i++) {
        char *result = text + i * (bytes + 1);
        (void)snprintf(result, bytes + 1, "%s%zu %0*d", prefix, i, (int)bytes, 0);
        it[i] = (struct lq_settle){.queue = lane,
                                   .id = lb_slice_of(out.job[i].id),
                                   .fence = out.job[i].fence,
                                   .to = LQ_TO_COMPLETED};
        if (none == 0 || i % none != 0)
            it[i].result = lb_slice(result, bytes);
    }
    assert_int_equal(lq_settle_take(s, it, n, NULL, NULL, &sk.err), 0);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(it[i].outcome, 0);
    lb_arena_fini(&out.arena);
    free(it);
    free(text);
}

/* What the store says of a job's result; -1 when it has none, -2 when there is no such job, 1 when it is the one given. */
static int look(struct lq_store *s, const char *prefix, size_t i)
{
    char id[32];
    char want[48];
    struct lq_row_vec rows = {0};
    lb_arena_init(&rows.arena);
    (void)snprintf(id, sizeof(id), "%s%zu", prefix, i);
    int n = snprintf(want, sizeof(want), "%s%zu ", prefix, i);
    int rc = s->ops->get(s, lane, lb_slice_str(id), &rows, &sk.err);
    int answer = -2;
    if (rc == 0)
        answer =
            rows.row[0].result.n == 0 ? -1 : memcmp(rows.row[0].result.p, want, (size_t)n) == 0;
    lb_arena_fini(&rows.arena);
    return answer;
}

static int act(struct lq_store *s, enum lade_job_verb verb, const char *id)
{
    int outcome = -1;
    struct lb_slice one = lb_slice_str(id);
    assert_true(s->ops->act(s, lane, verb, &one, 1, &outcome, &sk.err) >= 0);
    return outcome;
}

static int64_t count_sheets(void)
{
    return sk_ask("SELECT count(*) FROM sheet");
}

static struct lq_store *open_with_worker(void)
{
    struct lq_store *s = sk_open();
    assert_int_equal(sk_try_join(s, "w", 3600000), 0);
    return s;
}

static void results_of_jobs_settled_together_are_each_their_own(void **state)
{
    (void)state;
    struct lq_store *s = open_with_worker();
    complete(s, "a", 100, 64, 7);
    for (size_t i = 0; i < 100; i++)
        assert_int_equal(look(s, "a", i), i % 7 == 0 ? -1 : 1);
    assert_int_equal(count_sheets(), 1);
    assert_int_equal(sk_check(s), 0);
    lq_store_close(s);
}

static void many_and_large_results_make_several_sheets(void **state)
{
    (void)state;
    sk.config.keep_completed.count = 5000;
    struct lq_store *s = open_with_worker();
    complete(s, "a", 1000, 100, 0); /* 100 KB */
    complete(s, "b", 6, LS_SQLITE_SHEET_BYTES + 1, 0);
    for (size_t i = 0; i < 1000; i++)
        assert_int_equal(look(s, "a", i), 1);
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(look(s, "b", i), 1);
    assert_in_range(count_sheets(), 6, 8);
    assert_int_equal(sk_check(s), 0);
    lq_store_close(s);
}

static void few_jobs_and_none_with_a_result_make_no_sheet(void **state)
{
    (void)state;
    struct lq_store *s = open_with_worker();
    complete(s, "a", LS_SQLITE_SHEET_MIN - 1, 64, 0);
    complete(s, "b", 50, 64, 1);
    assert_int_equal(look(s, "a", 1), 1);
    assert_int_equal(look(s, "b", 1), -1);
    assert_int_equal(count_sheets(), 0);
    lq_store_close(s);
}

static void a_sheet_goes_with_the_last_of_its_jobs(void **state)
{
    (void)state;
    struct lq_store *s = open_with_worker();
    complete(s, "a", 20, 64, 0);
    for (size_t i = 0; i < 20; i++) {
        char id[16];
        size_t k = i * 7 % 20; /* from the middle, the ends, any order */
        (void)snprintf(id, sizeof(id), "a%zu", k);
        assert_int_equal(count_sheets(), 1);
        assert_int_equal(act(s, LADE_JOB_REMOVE, id), 0);
        assert_int_equal(look(s, "a", k), -2);
        assert_int_equal(sk_check(s), 0);
    }
    assert_int_equal(count_sheets(), 0);
    lq_store_close(s);
}

static void retention_takes_the_sheets_along(void **state)
{
    (void)state;
    size_t n = 0;
    sk.config.keep_completed.count = 10;
    struct lq_store *s = open_with_worker();
    for (int i = 0; i < 5; i++) {
        char prefix[16];
        (void)snprintf(prefix, sizeof(prefix), "p%d-", i);
        complete(s, prefix, 33, 64, 0);
        assert_int_equal(look(s, prefix, 32), 1);
        assert_int_equal(look(s, prefix, 0), -2);
        assert_int_equal(count_sheets(), 1);
        assert_int_equal(sk_check(s), 0);
    }
    assert_int_equal(s->ops->purge(s, lane, LADE_STATE_COMPLETED, 100, &n, &sk.err), 0);
    assert_int_equal(n, 10);
    assert_int_equal(count_sheets(), 0);
    lq_store_close(s);
}

static void a_job_that_runs_again_has_no_result_and_then_a_new_one(void **state)
{
    (void)state;
    struct lq_store *s = open_with_worker();
    complete(s, "a", 20, 64, 0);
    assert_int_equal(act(s, LADE_JOB_RETRY, "a7"), 0);
    assert_int_equal(look(s, "a", 7), -1);
    assert_int_equal(look(s, "a", 6), 1);
    assert_int_equal(look(s, "a", 8), 1);
    assert_int_equal(count_sheets(), 0); /* taken apart */
    assert_int_equal(sk_check(s), 0);
    assert_int_equal(sk_try_work(s, "w", 1, LQ_TO_COMPLETED), 1);
    assert_int_equal(look(s, "a", 7), -1);
    for (size_t i = 0; i < 20; i++) {
        char id[16];
        (void)snprintf(id, sizeof(id), "a%zu", i);
        assert_int_equal(act(s, LADE_JOB_REMOVE, id), 0);
    }
    assert_int_equal(sk_check(s), 0);
    lq_store_close(s);
}

static void a_sheet_without_its_jobs_is_found(void **state)
{
    (void)state;
    struct lq_store *s = open_with_worker();
    complete(s, "a", 20, 64, 0);
    sk_sql("INSERT INTO sheet VALUES (1000000, 2, x'0000000000000000')");
    assert_int_equal(sk_check(s), 1);
    sk_sql("UPDATE sheet SET job = 3 WHERE job = 1000000");
    assert_int_equal(sk_check(s), 1);
    lq_store_close(s);
}

static void a_sheet_that_is_cut_is_told(void **state)
{
    (void)state;
    struct lq_row_vec rows = {0};
    struct lq_store *s = open_with_worker();
    complete(s, "a", 20, 64, 0);
    sk_sql("UPDATE sheet SET data = substr(data, 1, 90)");
    lb_arena_init(&rows.arena);
    assert_int_equal(s->ops->get(s, lane, lb_slice_str("a19"), &rows, &sk.err), -LADE_EFORMAT);
    assert_non_null(strstr(sk.err.text, "a sheet of results is cut"));
    lb_arena_fini(&rows.arena);
    lq_store_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SK_TEST(results_of_jobs_settled_together_are_each_their_own),
        SK_TEST(many_and_large_results_make_several_sheets),
        SK_TEST(few_jobs_and_none_with_a_result_make_no_sheet),
        SK_TEST(a_sheet_goes_with_the_last_of_its_jobs),
        SK_TEST(retention_takes_the_sheets_along),
        SK_TEST(a_job_that_runs_again_has_no_result_and_then_a_new_one),
        SK_TEST(a_sheet_without_its_jobs_is_found),
        SK_TEST(a_sheet_that_is_cut_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
