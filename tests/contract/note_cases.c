/* note_cases.c - the history of an active job, written under its fence (effects: <lade/effect.h>) */
#include "contract.h"

static struct lq_note noting(const char *queue, const struct lq_leased *j, const char *bytes,
                             size_t n)
{
    return (struct lq_note){.queue = queue,
                            .id = lb_slice_of(j->id),
                            .fence = j->fence,
                            .history = lb_slice(bytes, n),
                            .outcome = -1};
}

/* One; its outcome. */
static int note(const char *queue, const struct lq_leased *j, const char *text)
{
    struct lq_note it = noting(queue, j, text, strlen(text));
    EXPECT(LADE_DONE, lq_note(ct.s, &it, 1, &ct.err));
    return it.outcome;
}

static void assert_history(const char *id, const char *text, size_t n)
{
    const struct lq_row *row = ct_row("q", id);
    assert_int_equal(row->history.n, n);
    assert_memory_equal(row->history.p, text, n);
}

static void noted_history_comes_with_the_next_take(void **state)
{
    (void)state;
    ct_join("w", "q");
    ct_add("q", "a");
    struct lq_leased j = ct_take_one("w", "q");
    assert_int_equal(j.history.n, 0);
    assert_int_equal(note("q", &j, "\x01.\x02.\x03."), LADE_DONE);
    assert_history("a", "\x01.\x02.\x03.", 6);
    assert_int_equal(ct_state("q", "a"), LADE_STATE_ACTIVE);
    struct lq_settle it = ct_settling("q", &j, LQ_TO_READY); /* without a history of its own */
    assert_int_equal(ct_settle_one(it), LADE_DONE);
    struct lq_leased again = ct_take_one("w", "q");
    assert_int_equal(again.history.n, 6);
    assert_memory_equal(again.history.p, "\x01.\x02.\x03.", 6);
    assert_int_equal(ct_settle("q", &again, LQ_TO_COMPLETED), LADE_DONE);
    assert_history("a", "\x01.\x02.\x03.", 6);
}

static void note_under_another_fence_is_stale_and_writes_nothing(void **state)
{
    (void)state;
    ct_join("w", "q");
    ct_add("q", "a");
    struct lq_leased j = ct_take_one("w", "q");
    assert_int_equal(note("q", &j, "12345-first"), LADE_DONE);
    struct lq_leased other = j;
    other.fence++;
    assert_int_equal(note("q", &other, "12345-other"), LADE_STALE);
    assert_int_equal(note("nowhere", &j, "12345-other"), LADE_STALE);
    assert_int_equal(ct_settle("q", &j, LQ_TO_RETRYING), LADE_DONE);
    assert_int_equal(note("q", &j, "12345-other"), LADE_STALE);
    assert_history("a", "12345-first", 11);
    struct lq_leased nobody = j;
    nobody.id = (struct lb_mut){(uint8_t *)"nobody", 6};
    assert_int_equal(note("q", &nobody, "12345-other"), LADE_STALE);
}

/* The former owner believes that it has the job; the new one sees what the former wrote in time, and nothing after. */
static void former_owner_notes_nothing_after_reclaim(void **state)
{
    (void)state;
    ct_join("w", "q");
    ct_add("q", "a");
    struct lq_leased j = ct_take_one("w", "q");
    assert_int_equal(note("q", &j, "12345-in time"), LADE_DONE);
    ct_die("w", "q");
    ct_join("v", "q");
    assert_int_equal(ct_reclaim("v", "q", 10), 1);
    struct lq_leased mine = ct.got.job[0];
    assert_int_equal(mine.history.n, 13);
    assert_int_equal(note("q", &j, "12345-too late"), LADE_STALE);
    assert_int_equal(note("q", &mine, "12345-mine"), LADE_DONE);
    assert_history("a", "12345-mine", 10);
    assert_int_equal(ct_settle("q", &mine, LQ_TO_COMPLETED), LADE_DONE);
}

/* A store may keep fresh jobs of one put as one, batch_cases.c: one with a history leaves the others. */
static void job_of_a_batch_is_noted_apart_from_the_others(void **state)
{
    (void)state;
    struct lq_put item[10];
    const char *id[10];
    ct_join("w", "q");
    for (size_t i = 0; i < 10; i++) {
        id[i] = ct_format("01HF7YAT0000000000000100%02zu", i);
        item[i] = ct_item("q", id[i]);
        item[i].fresh = true;
    }
    ct_put(item, 10);
    assert_int_equal(ct_take("w", "q", 10), 10);
    struct lq_leased *j = ct.got.job;
    assert_int_equal(note("q", &j[4], "12345-four"), LADE_DONE);
    assert_int_equal(note("q", &j[4], "12345-again"), LADE_DONE);
    struct lq_leased other = j[5];
    other.fence += 1000000;
    assert_int_equal(note("q", &other, "12345-five"), LADE_STALE);
    assert_history(id[4], "12345-again", 11);
    assert_history(id[5], "", 0);
    assert_int_equal(ct_count("q", LADE_STATE_ACTIVE), 10);
    struct lq_settle it[10];
    for (size_t i = 0; i < 10; i++)
        it[i] = ct_settling("q", &j[i], LQ_TO_READY);
    EXPECT(0, lq_settle_take(ct.s, it, 10, NULL, NULL, &ct.err));
    for (size_t i = 0; i < 10; i++)
        assert_int_equal(it[i].outcome, LADE_DONE);
    assert_int_equal(ct_take("w", "q", 10), 10);
    for (size_t i = 0; i < 10; i++) {
        bool is_noted = strcmp((const char *)ct.got.job[i].id.p, id[4]) == 0;
        assert_int_equal(ct.got.job[i].history.n, is_noted ? 11 : 0);
        assert_int_equal(ct_settle("q", &ct.got.job[i], LQ_TO_COMPLETED), LADE_DONE);
    }
}

/* Of jobs that lie together, each is noted for itself, and all of them settle as before. */
static void jobs_of_a_batch_are_noted_alone(void **state)
{
    (void)state;
    ct_join("w", "q");
    ct_add_many("q", "a", 20);
    assert_int_equal(ct_take("w", "q", 20), 20);
    struct lq_note it[3];
    for (size_t i = 0; i < 3; i++)
        it[i] = noting("q", &ct.got.job[5 * i + 2], "12345-x", 7 - i);
    struct lq_leased gone = ct.got.job[7];
    it[1].fence = gone.fence + 1000000;
    EXPECT(LADE_DONE, lq_note(ct.s, it, 3, &ct.err));
    assert_int_equal(it[0].outcome, LADE_DONE);
    assert_int_equal(it[1].outcome, LADE_STALE);
    assert_int_equal(it[2].outcome, LADE_DONE);
    assert_int_equal(ct_count("q", LADE_STATE_ACTIVE), 20);
    assert_history("a0002", "12345-x", 7);
    assert_history("a0007", "", 0);
    assert_history("a0012", "12345", 5);
    for (size_t i = 0; i < 20; i++)
        assert_int_equal(ct_settle("q", &ct.got.job[i], LQ_TO_COMPLETED), LADE_DONE);
    assert_int_equal(ct_count("q", LADE_STATE_COMPLETED), 20);
}

static void note_changes_neither_mark_nor_unique_key(void **state)
{
    (void)state;
    ct_join("w", "q");
    struct lq_put item = ct_item("q", "a");
    item.unique = lb_slice_str("key");
    item.unique_ttl_ms = CT_HOUR;
    assert_int_equal(ct_put_one(item), LADE_DONE);
    struct lq_leased j = ct_take_one("w", "q");
    assert_int_equal(ct_begin("w", "q", &j), LADE_DONE);
    assert_int_equal(ct_act("q", LADE_JOB_KILL, "a"), LADE_DONE);
    assert_int_equal(note("q", &j, "12345-x"), LADE_DONE);
    item.id = lb_slice_str("b");
    assert_int_equal(ct_put_one(item), LADE_DUPLICATE);
    assert_int_equal(ct_settle("q", &j, LQ_TO_RETRYING), LADE_DONE);
    assert_int_equal(ct_state("q", "a"), LADE_STATE_DEAD);
    assert_int_equal(ct_put_one(item), LADE_DONE);
}

static void noted_history_goes_with_the_job(void **state)
{
    (void)state;
    ct_join("w", "q");
    for (int i = 0; i < 2; i++) {
        ct_add("q", "a");
        struct lq_leased j = ct_take_one("w", "q");
        assert_int_equal(j.history.n, 0);
        assert_int_equal(note("q", &j, "12345-x"), LADE_DONE);
        if (i == 0)
            assert_int_equal(ct_act("q", LADE_JOB_REMOVE, "a"), LADE_DONE);
        else
            assert_int_equal(ct_settle("q", &j, LQ_TO_GONE), LADE_DONE);
        assert_int_equal(note("q", &j, "12345-x"), LADE_STALE);
    }
    ct_add("q", "a");
    assert_int_equal(ct_take_one("w", "q").history.n, 0);
}

static const struct CMUnitTest tests[] = {
    CT_TEST(noted_history_comes_with_the_next_take),
    CT_TEST(note_under_another_fence_is_stale_and_writes_nothing),
    CT_TEST(former_owner_notes_nothing_after_reclaim),
    CT_TEST(jobs_of_a_batch_are_noted_alone),
    CT_TEST(job_of_a_batch_is_noted_apart_from_the_others),
    CT_TEST(note_changes_neither_mark_nor_unique_key),
    CT_TEST(noted_history_goes_with_the_job),
};

CT_GROUP(ct_note_group, tests);
