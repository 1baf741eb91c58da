/*
 * company_batch_cases.c - contract: the same as company_cases.c where ids follow each other, as those of clients do: a store may keep such jobs together
 * whatever their keys, and takes them apart when that is needed
 */
#include "key_kit.h"

#include <stdio.h>
#include <string.h>

#include "queue/limit.h"

#define BOUND (2 * LQ_TURN_JOBS)

static bool singly; /* each job is a call of its own, and may come another way */

static const char *id_at(unsigned block, size_t place)
{
    static const char digit[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    return ct_format("01HF7YAT00%014u%c%c", block, digit[place / 32], digit[place % 32]);
}

static void put_keys(const char *queue, unsigned block, const char *const *key, size_t n)
{
    struct lq_put *put = lb_arena_alloc(&ct.arena, n * sizeof(*put));
    LB_CHECK(put);
    for (size_t i = 0; i < n; i++) {
        put[i] = ct_item(queue, id_at(block, i));
        put[i].key = lb_slice_str(key[i]);
        put[i].fresh = true;
        ky_dress(&put[i]);
    }
    for (size_t i = 0; singly && i < n; i++)
        ct_put(&put[i], 1);
    if (!singly)
        ct_put(put, n);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(put[i].outcome, LADE_DONE);
}

/* One call: a job for each letter, which is its key, from the first place of the block on. */
static void add(const char *queue, unsigned block, const char *letters)
{
    const char *key[100];
    size_t n = strlen(letters);
    assert_in_range(n, 1, 100);
    for (size_t i = 0; i < n; i++)
        key[i] = ct_format("%c", letters[i]);
    put_keys(queue, block, key, n);
}

/* One call: n jobs, every other of which is of A, at most `most`; the others have keys of their own. */
static void add_with_a(unsigned block, size_t n, size_t most)
{
    const char **key = lb_arena_alloc(&ct.arena, n * sizeof(*key));
    LB_CHECK(key);
    for (size_t i = 0; i < n; i++)
        key[i] = i % 2 == 0 && i / 2 < most ? "A" : ct_format("K%u-%zu", block, i);
    put_keys("q", block, key, n);
}

/* The last digit of the block and the place of each job of the last take. */
static const char *got(void)
{
    char *text = lb_arena_alloc(&ct.arena, ct.got.n * 4 + 1);
    size_t at = 0;
    LB_CHECK(text);
    text[0] = 0;
    for (size_t i = 0; i < ct.got.n; i++) {
        const uint8_t *id = ct.got.job[i].id.p;
        at += (size_t)sprintf(text + at, "%s%c%c", i ? " " : "", id[23], id[25]);
    }
    return text;
}

static const char *take(const char *queue, size_t n)
{
    (void)ct_take("w", queue, n);
    return got();
}

static void settle_all(const char *queue, enum lq_to to)
{
    struct lq_settle it[100];
    assert_in_range(ct.got.n, 1, 100);
    for (size_t i = 0; i < ct.got.n; i++)
        it[i] = ct_settling(queue, &ct.got.job[i], to);
    EXPECT(0, lq_settle_take(ct.s, it, ct.got.n, NULL, NULL, &ct.err));
    for (size_t i = 0; i < ct.got.n; i++)
        assert_int_equal(it[i].outcome, LADE_DONE);
}

static void batches_of_keys_are_taken_and_settled(void **state)
{
    (void)state;
    ct_join("w", "q");
    add("q", 1, "ABABC");
    add("q", 2, "CBA");
    assert_int_equal(ct_count("q", LADE_STATE_READY), 8);
    assert_int_equal(ct_take("w", "q", 3), 3);
    settle_all("q", LQ_TO_COMPLETED);
    assert_int_equal(ct_take("w", "q", 4), 4);
    assert_int_equal(ct_count("q", LADE_STATE_ACTIVE), 4);
    settle_all("q", LQ_TO_COMPLETED);
    assert_int_equal(ct_take("w", "q", 4), 1);
    settle_all("q", LQ_TO_COMPLETED);
    assert_string_equal(ky_show("q"), "");
    assert_int_equal(ct_count("q", LADE_STATE_COMPLETED), 8);
}

static void a_tenant_in_every_batch_delays_by_a_turn(void **state)
{
    (void)state;
    size_t at = 0, last = 0;
    ct_join("w", "q");
    for (unsigned block = 0; block < 30; block++)
        add_with_a(block, 64, 32);
    add("q", 50, "ZZ");
    for (size_t n; (n = ct_take("w", "q", 50)) > 0;) {
        for (size_t i = 0; i < n; i++, at++)
            last = memcmp(ct.got.job[i].id.p + 22, "50", 2) == 0 ? at : last;
        settle_all("q", LQ_TO_COMPLETED);
    }
    assert_int_equal(at, 30 * 64 + 2);
    assert_in_range(last, 1, 30 * 32 + BOUND + 6);
}

/* Each of the keys has some in each batch, until they are too many to wait as they came. */
static void who_has_many_in_batches_has_turns(void **state)
{
    (void)state;
    size_t of_a = 0;
    ct_join("w", "q");
    for (unsigned block = 0; block < 20; block++)
        add("q", block, "AAAAAAAABBCC");
    add("q", 30, "DDDDDDDD");
    for (size_t seen = 0; seen < 8;) {
        assert_true(ct_take("w", "q", 5) > 0);
        for (size_t i = 0; i < ct.got.n; i++) {
            seen += memcmp(ct.got.job[i].id.p + 22, "30", 2) == 0;
            of_a += memcmp(ct.got.job[i].id.p + 22, "30", 2) != 0;
        }
    }
    assert_in_range(of_a, 0, 3 * (BOUND + 9));
}

static void single_jobs_of_keys_wait_in_company_and_in_turns(void **state)
{
    (void)state;
    size_t at = 0, last = 0;
    ct_join("w", "q");
    for (unsigned block = 0; block < 60; block++)
        add("q", block, block % 3 == 0 ? "B" : "A");
    add("q", 90, "C");
    for (size_t n; (n = ct_take("w", "q", 7)) > 0;) {
        for (size_t i = 0; i < n; i++, at++)
            last = memcmp(ct.got.job[i].id.p + 22, "90", 2) == 0 ? at : last;
        settle_all("q", LQ_TO_COMPLETED);
    }
    assert_int_equal(at, 61);
    assert_in_range(last, 0, 2 * BOUND + 3);
    assert_string_equal(ky_show("q"), "");
}

static void a_pause_holds_what_waits_in_batches(void **state)
{
    (void)state;
    ct_join("w", "q");
    add("q", 1, "ABABAB");
    add("q", 2, "BA");
    ky_pause("q", "A", true);
    assert_string_equal(ky_show("q"), "A 4/0/0 paused, B 4/0/0");
    assert_string_equal(take("q", 9), "11 13 15 20");
    add("q", 3, "AB");
    assert_string_equal(take("q", 9), "31");
    ky_pause("q", "A", false);
    assert_string_equal(take("q", 9), "10 12 14 21 30");
}

static void a_limit_counts_what_runs_of_batches(void **state)
{
    (void)state;
    ct_join("w", "q");
    add("q", 1, "AA");
    assert_string_equal(take("q", 2), "10 11");
    struct lq_leased one = ct.got.job[0], two = ct.got.job[1];
    one.id = lb_arena_copy(&ct.arena, one.id.p, one.id.n);
    two.id = lb_arena_copy(&ct.arena, two.id.p, two.id.n);
    add("q", 2, "AAB");
    ky_limit("q", "A", (struct lq_limit){.concurrency = 2});
    assert_string_equal(take("q", 9), "22");
    assert_int_equal(ct_settle("q", &one, LQ_TO_COMPLETED), LADE_DONE);
    assert_string_equal(take("q", 9), "20");
    assert_int_equal(ct_settle("q", &two, LQ_TO_COMPLETED), LADE_DONE);
    assert_string_equal(take("q", 9), "21");
}

static void the_usual_limit_holds_for_batches(void **state)
{
    (void)state;
    ct_join("w", "q");
    add("q", 1, "AABBAB");
    ky_usual("q", (struct lq_limit){.concurrency = 1});
    assert_string_equal(ky_sorted(take("q", 9)), "10 12");
    assert_int_equal(ct_settle("q", &ct.got.job[0], LQ_TO_COMPLETED), LADE_DONE);
    assert_string_equal(take("q", 9), "11");
}

static void a_limit_of_the_queue_holds_for_batches(void **state)
{
    (void)state;
    struct lq_limit two = {.concurrency = 2};
    ct_join("w", "q");
    add("q", 1, "AABBAB");
    EXPECT(0, lq_limit_set(ct.s, "q", LADE_LIMIT_QUEUE, lb_slice_str(""), &two, &ct.err));
    assert_int_equal(ct_take("w", "q", 9), 2);
    settle_all("q", LQ_TO_COMPLETED);
    assert_int_equal(ct_take("w", "q", 9), 2);
    assert_int_equal(ct_take("w", "q", 9), 0);
}

static void each_end_is_right_for_the_key_of_a_batch(void **state)
{
    (void)state;

    static const struct {
        enum lq_to to;
        const char *shown;
    } ends[] = {
        {LQ_TO_COMPLETED, "A 1/0/0, B 0/1/0"}, {LQ_TO_RETRYING, "A 1/0/1, B 0/1/0"},
        {LQ_TO_SCHEDULED, "A 1/0/1, B 0/1/0"}, {LQ_TO_READY, "A 2/0/0, B 0/1/0"},
        {LQ_TO_DEAD, "A 1/0/0, B 0/1/0"},      {LQ_TO_CANCELLED, "A 1/0/0, B 0/1/0"},
        {LQ_TO_GONE, "A 1/0/0, B 0/1/0"},      {LQ_TO_THROTTLED, "A 2/0/0 paused, B 0/1/0"}};

    for (size_t i = 0; i < LB_ARRAY_LEN(ends); i++) {
        const char *q = ct_format("q%zu", i);
        ct_join("w", q);
        add(q, 1, "ABA");
        assert_string_equal(take(q, 2), "10 11");
        struct lq_settle it = ct_settling(q, &ct.got.job[0], ends[i].to);
        it.delay_ms = CT_HOUR;
        assert_int_equal(ct_settle_one(it), LADE_DONE);
        assert_string_equal(ky_show(q), ends[i].shown);
        (void)ct_act(q, LADE_JOB_REMOVE, id_at(1, 0));
        (void)ct_act(q, LADE_JOB_REMOVE, id_at(1, 2));
        (void)ct_act(q, LADE_JOB_REMOVE, id_at(1, 1));
        if (ends[i].to != LQ_TO_THROTTLED)
            assert_string_equal(ky_show(q), "");
    }
}

/* Nothing asks for the keys before the acts. */
static void acts_are_right_for_the_key_of_a_batch(void **state)
{
    (void)state;

    static const struct {
        enum lade_job_verb verb;
        size_t place; /* 0 completed, 1 active, 2 ready */
        const char *shown;
    } acts[] = {{LADE_JOB_RETRY, 0, "A 2/1/0"},  {LADE_JOB_REMOVE, 0, "A 1/1/0"},
                {LADE_JOB_KILL, 1, "A 1/1/0"},   {LADE_JOB_CANCEL, 1, "A 1/1/0"},
                {LADE_JOB_REMOVE, 1, "A 1/0/0"}, {LADE_JOB_KILL, 2, "A 0/1/0"},
                {LADE_JOB_CANCEL, 2, "A 0/1/0"}, {LADE_JOB_REMOVE, 2, "A 0/1/0"}};

    for (size_t i = 0; i < LB_ARRAY_LEN(acts); i++) {
        const char *q = ct_format("q%zu", i);
        ct_join("w", q);
        add(q, 1, "AAA");
        assert_string_equal(take(q, 1), "10");
        settle_all(q, LQ_TO_COMPLETED);
        assert_string_equal(take(q, 1), "11");
        assert_int_equal(ct_act(q, acts[i].verb, id_at(1, acts[i].place)), LADE_DONE);
        assert_string_equal(ky_show(q), acts[i].shown);
        if (acts[i].place == 2) /* it comes back to its key */
            (void)ct_act(q, LADE_JOB_RETRY, id_at(1, 2));
        if (acts[i].place == 2 && acts[i].verb != LADE_JOB_REMOVE)
            assert_string_equal(ky_show(q), "A 1/1/0");
    }
}

static void the_dead_of_a_batch_come_back_to_their_keys(void **state)
{
    (void)state;
    size_t n = 0;
    ct_join("w", "q");
    add("q", 1, "ABA");
    assert_int_equal(ct_take("w", "q", 3), 3);
    settle_all("q", LQ_TO_DEAD);
    EXPECT(LADE_DONE, ct.s->ops->redrive(ct.s, "q", 10, &n, &ct.err));
    assert_int_equal(n, 3);
    assert_string_equal(ky_show("q"), "A 2/0/0, B 1/0/0");
}

static void batches_of_the_dead_keep_their_keys(void **state)
{
    (void)state;
    ct_join("w", "q");
    add("q", 1, "ABA");
    ct_join("v", "q");
    assert_int_equal(ct_take("w", "q", 2), 2);
    ct_die("w", "q");
    assert_int_equal(ct_reclaim("v", "q", 10), 2);
    assert_string_equal(ky_show("q"), "A 1/1/0, B 0/1/0");
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(ct_settle("q", &ct.got.job[i], LQ_TO_COMPLETED), LADE_DONE);
    assert_string_equal(ky_show("q"), "A 1/0/0");
}

static void who_begins_alone_keeps_its_key(void **state)
{
    (void)state;
    ct_join("w", "q");
    add("q", 1, "ABA");
    assert_int_equal(ct_take("w", "q", 2), 2);
    assert_int_equal(ct_begin("w", "q", &ct.got.job[0]), LADE_DONE);
    assert_string_equal(ky_show("q"), "A 1/1/0, B 0/1/0");
    assert_int_equal(ct_settle("q", &ct.got.job[0], LQ_TO_COMPLETED), LADE_DONE);
    assert_string_equal(ky_show("q"), "A 1/0/0, B 0/1/0");
}

/* The first of block 1 is taken, and comes again in an hour. */
static void put_off_first(enum lq_to to)
{
    assert_string_equal(take("q", 1), "10");
    struct lq_settle it = ct_settling("q", &ct.got.job[0], to);
    it.delay_ms = CT_HOUR;
    assert_int_equal(ct_settle_one(it), LADE_DONE);
}

static void a_throttled_job_of_a_batch_holds_its_key(void **state)
{
    (void)state;
    ct_join("w", "q");
    add("q", 1, "ABAB");
    put_off_first(LQ_TO_THROTTLED);
    assert_string_equal(ky_sorted(take("q", 9)), "11 13");
    assert_string_equal(ky_show("q"), "A 2/0/0 paused, B 0/2/0");
    ky_pause("q", "A", false);
    assert_string_equal(ky_sorted(take("q", 9)), "10 12");
}

static void a_batch_of_keys_is_listed_and_purged(void **state)
{
    (void)state;
    size_t n = 0;
    ct_join("w", "q");
    add("q", 1, "ABABAB");
    assert_string_equal(take("q", 1), "10");
    assert_string_equal(ky_sorted(ct_list("q", LADE_STATE_READY, 2)),
                        ct_format("%s %s %s %s %s", id_at(1, 1), id_at(1, 2), id_at(1, 3),
                                  id_at(1, 4), id_at(1, 5)));
    EXPECT(LADE_DONE, ct.s->ops->purge(ct.s, "q", LADE_STATE_READY, 10, &n, &ct.err));
    assert_int_equal(n, 5);
    assert_string_equal(ky_show("q"), "A 0/1/0");
    settle_all("q", LQ_TO_GONE);
    assert_string_equal(ky_show("q"), "");
}

/* Also those that run, which stand in no list of ready ones. */
static void a_batch_of_keys_is_listed_in_each_state(void **state)
{
    (void)state;
    ct_join("w", "q");
    add("q", 1, "ABAB");
    assert_string_equal(take("q", 3), "10 11 12");
    assert_string_equal(ky_sorted(ct_list("q", LADE_STATE_ACTIVE, 2)),
                        ct_format("%s %s %s", id_at(1, 0), id_at(1, 1), id_at(1, 2)));
    settle_all("q", LQ_TO_COMPLETED);
    assert_string_equal(ky_sorted(ct_list("q", LADE_STATE_COMPLETED, 2)),
                        ct_format("%s %s %s", id_at(1, 0), id_at(1, 1), id_at(1, 2)));
    assert_string_equal(ct_list("q", LADE_STATE_READY, 2), id_at(1, 3));
}

static void batches_of_keys_and_others_starve_nobody(void **state)
{
    (void)state;
    size_t at = 0, last = 0;
    ct_join("w", "q");
    add("q", 1, "ABCDEFGHIJ");
    ky_add("q", "u1 u2 u3");
    for (unsigned block = 2; block < 40; block++)
        add_with_a(block, 10, 0);
    for (size_t n; (n = ct_take("w", "q", 10)) > 0;) {
        for (size_t i = 0; i < n; i++, at++)
            last = ct.got.job[i].id.p[0] == 'u' ? at : last;
    }
    assert_int_equal(at, 393);
    assert_in_range(last, 2, 393);
}

/* Some of each call fail once; at last each job has come and gone. */
static void retries_come_between_batches(void **state)
{
    (void)state;
    size_t n = 0, failed = 0;
    ct_join("w", "q");
    for (unsigned block = 0; block < 20; block++) {
        add("q", block, "ABCABCAD");
        for (int round = 0; round < 3; round++) {
            struct lq_settle it[3];
            size_t k = ct_take("w", "q", 3);
            for (size_t i = 0; i < k; i++) {
                bool fails = failed < 40 && ct.got.job[i].id.p[25] == '4' && (i + n) % 2 == 0;
                it[i] = ct_settling("q", &ct.got.job[i], fails ? LQ_TO_RETRYING : LQ_TO_COMPLETED);
                it[i].delay_ms = 0;
                failed += fails;
                n += !fails;
            }
            if (k > 0)
                EXPECT(0, lq_settle_take(ct.s, it, k, NULL, NULL, &ct.err));
        }
    }
    for (int round = 0; n < 160 && round < 1000; round++) {
        size_t k = ct_take("w", "q", 50);
        n += k;
        if (k > 0)
            settle_all("q", LQ_TO_COMPLETED);
    }
    assert_int_equal(n, 160);
    assert_int_equal(ct_count("q", LADE_STATE_COMPLETED), 160);
    assert_string_equal(ky_show("q"), "");
}

/* A retry waits for an hour: what comes meanwhile is taken, and a limit holds for all. */
static void a_retry_that_waits_is_counted_beside_batches(void **state)
{
    (void)state;
    ct_join("w", "q");
    add("q", 1, "ABA");
    put_off_first(LQ_TO_RETRYING);
    add("q", 2, "AB");
    assert_int_equal(ct_take("w", "q", 9), 4);
    settle_all("q", LQ_TO_COMPLETED);
    add("q", 3, "ABA");
    ky_limit("q", "A", (struct lq_limit){.concurrency = 1});
    assert_string_equal(ky_show("q"), "A 2/0/1, B 1/0/0");
    assert_string_equal(ky_sorted(take("q", 9)), "30 31");
    assert_string_equal(ky_show("q"), "A 1/1/1 concurrency, B 0/1/0");
}

static void an_event_stream_tells_of_batches_of_keys(void **state)
{
    (void)state;
    ct_join("w", "q");
    add("q", 1, "ABA");
    EXPECT(0, lq_events_set(ct.s, "q", 100, &ct.err));
    add("q", 2, "ABA");
    assert_int_equal(ct_take("w", "q", 10), 6);
    settle_all("q", LQ_TO_COMPLETED);
    assert_string_equal(ky_show("q"), "");
}

static int setup_singly(void **state)
{
    singly = true;
    return ky_setup_dressed(state);
}

static int teardown_singly(void **state)
{
    singly = false;
    return ky_teardown_dressed(state);
}

#define TEST_SINGLY(f)                                             \
    {                                                              \
#        f " (one a call)", f, setup_singly, teardown_singly, NULL \
    }

static const struct CMUnitTest tests[] = {
    KY_TEST_DRESSED(batches_of_keys_are_taken_and_settled),
    KY_TEST_DRESSED(a_tenant_in_every_batch_delays_by_a_turn),
    KY_TEST_DRESSED(who_has_many_in_batches_has_turns),
    KY_TEST_DRESSED(single_jobs_of_keys_wait_in_company_and_in_turns),
    KY_TEST_DRESSED(a_pause_holds_what_waits_in_batches),
    KY_TEST_DRESSED(a_limit_counts_what_runs_of_batches),
    KY_TEST_DRESSED(the_usual_limit_holds_for_batches),
    KY_TEST_DRESSED(a_limit_of_the_queue_holds_for_batches),
    KY_TEST_DRESSED(each_end_is_right_for_the_key_of_a_batch),
    KY_TEST_DRESSED(acts_are_right_for_the_key_of_a_batch),
    KY_TEST_DRESSED(the_dead_of_a_batch_come_back_to_their_keys),
    KY_TEST_DRESSED(batches_of_the_dead_keep_their_keys),
    KY_TEST_DRESSED(who_begins_alone_keeps_its_key),
    KY_TEST_DRESSED(a_throttled_job_of_a_batch_holds_its_key),
    KY_TEST_DRESSED(a_batch_of_keys_is_listed_and_purged),
    KY_TEST_DRESSED(a_batch_of_keys_is_listed_in_each_state),
    KY_TEST_DRESSED(batches_of_keys_and_others_starve_nobody),
    KY_TEST_DRESSED(retries_come_between_batches),
    KY_TEST_DRESSED(a_retry_that_waits_is_counted_beside_batches),
    KY_TEST_DRESSED(an_event_stream_tells_of_batches_of_keys),
    TEST_SINGLY(batches_of_keys_are_taken_and_settled),
    TEST_SINGLY(a_tenant_in_every_batch_delays_by_a_turn),
    TEST_SINGLY(who_has_many_in_batches_has_turns),
    TEST_SINGLY(single_jobs_of_keys_wait_in_company_and_in_turns),
    TEST_SINGLY(a_pause_holds_what_waits_in_batches),
    TEST_SINGLY(a_limit_counts_what_runs_of_batches),
    TEST_SINGLY(the_usual_limit_holds_for_batches),
    TEST_SINGLY(a_limit_of_the_queue_holds_for_batches),
    TEST_SINGLY(each_end_is_right_for_the_key_of_a_batch),
    TEST_SINGLY(acts_are_right_for_the_key_of_a_batch),
    TEST_SINGLY(the_dead_of_a_batch_come_back_to_their_keys),
    TEST_SINGLY(batches_of_the_dead_keep_their_keys),
    TEST_SINGLY(who_begins_alone_keeps_its_key),
    TEST_SINGLY(a_throttled_job_of_a_batch_holds_its_key),
    TEST_SINGLY(a_batch_of_keys_is_listed_and_purged),
    TEST_SINGLY(a_batch_of_keys_is_listed_in_each_state),
    TEST_SINGLY(batches_of_keys_and_others_starve_nobody),
    TEST_SINGLY(retries_come_between_batches),
    TEST_SINGLY(a_retry_that_waits_is_counted_beside_batches),
    TEST_SINGLY(an_event_stream_tells_of_batches_of_keys),
};

CT_GROUP(ct_company_batch_group, tests);
