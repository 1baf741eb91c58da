/* say_cases.c - contract: progress and log lines of active jobs (chasqui 51) */
#include "contract.h"
#include "queue/event.h"

static int note(const char *queue, const struct lq_leased *j, int percent, const char *text)
{
    struct lq_say it = {.queue = queue,
                        .id = lb_slice_of(j->id),
                        .fence = j->fence,
                        .percent = percent,
                        .text = lb_slice_str(text)};
    EXPECT(0, lq_say(ct.s, &it, 1, &ct.err));
    return it.outcome;
}

/* Lines "FIRST", "FIRST+1" and so on; the outcome. */
static int write_lines(const char *queue, const struct lq_leased *j, int first, size_t n)
{
    static struct lb_slice line[LADE_LOG_LINES_MAX];
    static int64_t at[LADE_LOG_LINES_MAX];
    for (size_t i = 0; i < n; i++) {
        line[i] = lb_slice_str(ct_format("%d", first + (int)i));
        at[i] = 1000 + first + (int)i;
    }
    struct lq_say it = {.queue = queue,
                        .id = lb_slice_of(j->id),
                        .fence = j->fence,
                        .percent = -1,
                        .line = line,
                        .line_ms = at,
                        .n_lines = n};
    EXPECT(0, lq_say(ct.s, &it, 1, &ct.err));
    return it.outcome;
}

static struct lq_words read_page(const char *queue, const char *id, int64_t start, size_t limit)
{
    struct lq_words got = {.arena = &ct.arena, .start = start, .limit = limit};
    EXPECT(0, ct.s->ops->words(ct.s, queue, lb_slice_str(id), &got, &ct.err));
    return got;
}

/* "3 4 5"; asserts that the numbers fit. */
static const char *show(const char *queue, const char *id, int64_t start, size_t limit)
{
    struct lq_words got = read_page(queue, id, start, limit);
    const char *all = "";
    for (size_t i = 0; i < got.n; i++) {
        assert_int_equal(got.line[i].at_ms, 1000 + (int64_t)got.line[i].number);
        all = ct_format("%s%s%.*s", all, i ? " " : "", (int)got.line[i].text.n,
                        (const char *)got.line[i].text.p);
    }
    return all;
}

/* chasqui 51 */
static void progress_is_kept_with_the_job_and_the_last_counts(void **state)
{
    (void)state;
    ct_join("w", "q");
    struct lq_leased j = ct_bring("q", "a", LADE_STATE_ACTIVE);
    assert_int_equal(read_page("q", "a", 0, 10).percent, -1);
    assert_int_equal(note("q", &j, 10, "begun"), LADE_DONE);
    assert_int_equal(note("q", &j, 60, "more"), LADE_DONE);
    struct lq_words got = read_page("q", "a", 0, 10);
    assert_int_equal(got.percent, 60);
    assert_true(lb_slice_eq(lb_slice_of(got.text), lb_slice_str("more")));
    assert_int_equal(note("q", &j, 70, ""), LADE_DONE);
    assert_int_equal(ct_settle("q", &j, LQ_TO_COMPLETED), LADE_DONE);
    got = read_page("q", "a", 0, 10);
    assert_int_equal(got.percent, 70);
    assert_int_equal(got.text.n, 0);
    assert_true(got.progress_ms > 0);
}

static void who_lost_the_lease_says_nothing_more(void **state)
{
    (void)state;
    ct_join("w", "q");
    struct lq_leased j = ct_bring("q", "a", LADE_STATE_ACTIVE);
    ct_join("v", "q");
    ct_die("w", "q");
    assert_int_equal(ct_reclaim("v", "q", 1), 1);
    assert_int_equal(note("q", &j, 10, "old"), LADE_STALE);
    assert_int_equal(write_lines("q", &j, 1, 2), LADE_STALE);
    struct lq_leased k = ct.got.job[0];
    assert_int_equal(note("q", &k, 20, "new"), LADE_DONE);
    assert_int_equal(read_page("q", "a", 0, 10).percent, 20);
    assert_int_equal(read_page("q", "a", 0, 10).total, 0);
    assert_int_equal(ct_settle("q", &k, LQ_TO_COMPLETED), LADE_DONE);
    assert_int_equal(note("q", &k, 30, "late"), LADE_STALE);
    struct lq_leased nobody = k;
    nobody.id = (struct lb_mut){(uint8_t *)ct_format("nobody"), 6};
    assert_int_equal(note("q", &nobody, 30, ""), LADE_STALE);
    assert_int_equal(note("nowhere", &k, 30, ""), LADE_STALE);
}

/* chasqui 51 */
static void lines_are_paged_from_both_ends(void **state)
{
    (void)state;
    ct_join("w", "q");
    struct lq_leased j = ct_bring("q", "a", LADE_STATE_ACTIVE);
    assert_int_equal(write_lines("q", &j, 1, 3), LADE_DONE);
    assert_int_equal(write_lines("q", &j, 4, 2), LADE_DONE);
    assert_int_equal(read_page("q", "a", 0, 0).total, 5);
    assert_string_equal(show("q", "a", 0, 1000), "1 2 3 4 5");
    assert_string_equal(show("q", "a", 1, 2), "2 3");
    assert_string_equal(show("q", "a", -2, 10), "4 5");
    assert_string_equal(show("q", "a", -4, 2), "2 3");
    assert_string_equal(show("q", "a", -100, 2), "1 2");
    assert_string_equal(show("q", "a", INT64_MIN, 1), "1");
    assert_string_equal(show("q", "a", 5, 10), "");
    assert_string_equal(show("q", "a", INT64_MAX, 10), "");
    assert_string_equal(show("q", "a", 0, 0), "");
}

/* chasqui 51 */
static void only_the_newest_lines_are_kept(void **state)
{
    (void)state;
    ct_join("w", "q");
    struct lq_leased j = ct_bring("q", "a", LADE_STATE_ACTIVE);
    assert_int_equal(write_lines("q", &j, 1, LADE_LOG_LINES_MAX), LADE_DONE);
    assert_int_equal(write_lines("q", &j, LADE_LOG_LINES_MAX + 1, 3), LADE_DONE);
    struct lq_words got = read_page("q", "a", 0, LADE_LOG_LINES_MAX);
    assert_int_equal(got.n, LADE_LOG_LINES_MAX);
    assert_int_equal(got.total, LADE_LOG_LINES_MAX + 3);
    assert_int_equal(got.line[0].number, 4);
    assert_string_equal(show("q", "a", -1, 1), ct_format("%d", LADE_LOG_LINES_MAX + 3));
}

static void any_bytes_may_be_said(void **state)
{
    (void)state;
    static const struct lb_slice line[] = {{(const uint8_t *)"a\0b", 3}, {NULL, 0}};
    static const int64_t at[] = {1, 2};
    ct_join("w", "q");
    struct lq_leased j = ct_bring("q", "a", LADE_STATE_ACTIVE);
    struct lq_say it = {.queue = "q",
                        .id = lb_slice_of(j.id),
                        .fence = j.fence,
                        .percent = 0,
                        .text = lb_slice("\xff\0", 2),
                        .line = line,
                        .line_ms = at,
                        .n_lines = 2};
    EXPECT(0, lq_say(ct.s, &it, 1, &ct.err));
    struct lq_words got = read_page("q", "a", 0, 10);
    assert_int_equal(got.percent, 0);
    assert_true(lb_slice_eq(lb_slice_of(got.text), it.text));
    assert_int_equal(got.n, 2);
    assert_true(lb_slice_eq(lb_slice_of(got.line[0].text), line[0]));
    assert_int_equal(got.line[1].text.n, 0);
}

static void what_was_said_goes_with_the_job(void **state)
{
    (void)state;
    size_t n = 0;
    struct lq_words got = {.arena = &ct.arena, .limit = 10};
    ct_join("w", "q");
    struct lq_leased j = ct_bring("q", "a", LADE_STATE_ACTIVE);
    assert_int_equal(write_lines("q", &j, 1, 3), LADE_DONE);
    assert_int_equal(ct_settle("q", &j, LQ_TO_COMPLETED), LADE_DONE);
    assert_string_equal(show("q", "a", 0, 10), "1 2 3");
    EXPECT(0, ct.s->ops->purge(ct.s, "q", LADE_STATE_COMPLETED, 10, &n, &ct.err));
    EXPECT(LADE_NOT_FOUND, ct.s->ops->words(ct.s, "q", lb_slice_str("a"), &got, &ct.err));
    EXPECT(LADE_NOT_FOUND, ct.s->ops->words(ct.s, "nowhere", lb_slice_str("a"), &got, &ct.err));
}

static void one_call_notes_many_jobs_each_by_itself(void **state)
{
    (void)state;
    ct_join("w", "q");
    ct_add_many("q", "j", 20);
    assert_int_equal(ct_take("w", "q", 20), 20);
    struct lq_say it[20];
    for (int i = 0; i < 20; i++)
        it[i] = (struct lq_say){.queue = "q",
                                .id = lb_slice_of(ct.got.job[i].id),
                                .fence = ct.got.job[i].fence + (i == 7 ? 1000 : 0),
                                .percent = i};
    EXPECT(0, lq_say(ct.s, it, 20, &ct.err));
    for (int i = 0; i < 20; i++) {
        assert_int_equal(it[i].outcome, i == 7 ? LADE_STALE : LADE_DONE);
        assert_int_equal(read_page("q", ct_format("j%04d", i), 0, 1).percent, i == 7 ? -1 : i);
    }
    /* and they are settled as before */
    struct lq_settle s[20];
    for (int i = 0; i < 20; i++)
        s[i] = ct_settling("q", &ct.got.job[i], LQ_TO_COMPLETED);
    EXPECT(0, lq_settle_take(ct.s, s, 20, NULL, NULL, &ct.err));
    assert_int_equal(ct_count("q", LADE_STATE_COMPLETED), 20);
}

static void who_watches_the_log_is_rung_by_a_line(void **state)
{
    (void)state;
    ct_join("w", "q");
    struct lq_leased j = ct_bring("q", "a", LADE_STATE_ACTIVE);
    struct lq_watch it = {.queue = "q", .id = lb_slice_str("a"), .what = LQ_WATCH_LOG};
    EXPECT(0, ct.s->ops->watch(ct.s, "watcher", &it, 1, &ct.err));
    assert_int_equal(it.outcome, LADE_EMPTY);
    assert_int_equal(write_lines("q", &j, 1, 2), LADE_DONE);
    int64_t start = lb_clock_mono();
    EXPECT(0, ct.s->ops->wait(ct.s, "watcher", ct_lanes("q"), start + 60 * LADE_SECOND, &ct.err));
    assert_true(lb_clock_mono() - start < 30 * LADE_SECOND);
    EXPECT(0, ct.s->ops->watch(ct.s, "watcher", &it, 1, &ct.err));
    assert_int_equal(it.outcome, LADE_DONE);
    it.after = 2;
    EXPECT(0, ct.s->ops->watch(ct.s, "watcher", &it, 1, &ct.err));
    assert_int_equal(it.outcome, LADE_EMPTY);
    assert_int_equal(ct_settle("q", &j, LQ_TO_COMPLETED), LADE_DONE);
    EXPECT(0, ct.s->ops->watch(ct.s, "watcher", &it, 1, &ct.err));
    assert_int_equal(it.outcome, LADE_DONE);
    ct.s->ops->unwatch(ct.s, "watcher", ct_lanes("q"));
}

static const struct CMUnitTest tests[] = {
    CT_TEST(progress_is_kept_with_the_job_and_the_last_counts),
    CT_TEST(who_lost_the_lease_says_nothing_more),
    CT_TEST(lines_are_paged_from_both_ends),
    CT_TEST(only_the_newest_lines_are_kept),
    CT_TEST(any_bytes_may_be_said),
    CT_TEST(what_was_said_goes_with_the_job),
    CT_TEST(one_call_notes_many_jobs_each_by_itself),
    CT_TEST(who_watches_the_log_is_rung_by_a_line),
};

CT_GROUP(ct_say_group, tests);
