/*
 * event_cases.c - contract: the stream of what happens in a queue (chasqui 56, 57)
 *
 * Jobs that the suite makes have no kind; kinds have a test of their own.
 */
#include "event_kit.h"

static int read_rc(const char *queue, uint64_t after)
{
    struct lq_event_vec got = {0};
    int rc = ct.s->ops->event_read(ct.s, queue, after, 10, &got, &ct.err);
    lb_arena_fini(&got.arena);
    return rc;
}

static struct lq_settle told(const char *queue, const struct lq_leased *j, enum lq_to to)
{
    struct lq_settle it = ct_settling(queue, j, to);
    it.attempt = 1;
    it.took_us = 1234;
    return it;
}

/* chasqui 56 */
static void a_job_that_succeeds_tells_waiting_active_completed(void **state)
{
    (void)state;
    ct_events_on("q", 100);
    ct_join("w", "q");
    ct_add("q", "a");
    struct lq_leased j = ct_take_one("w", "q");
    assert_int_equal(ct_settle_one(told("q", &j, LQ_TO_COMPLETED)), LADE_DONE);
    assert_string_equal(ct_events("q"), "waiting:a active:a/1 drained completed:a/1");
    struct lq_event_vec got = {0};
    EXPECT(0, ct.s->ops->event_read(ct.s, "q", 0, 10, &got, &ct.err));
    int64_t value = got.n == 4 ? got.event[3].value : -1;
    lb_arena_fini(&got.arena);
    assert_int_equal(value, 1234);
}

/* chasqui 56 */
static void a_job_that_fails_tells_failed_and_what_follows(void **state)
{
    (void)state;
    ct_events_on("q", 100);
    ct_join("w", "q");
    ct_add("q", "a");
    struct lq_leased j = ct_take_one("w", "q");
    struct lq_settle it = told("q", &j, LQ_TO_RETRYING);
    it.failed = true;
    it.error = lb_slice_str("no luck");
    it.delay_ms = CT_SOON;
    it.history = lb_slice("\x01\x00\x01\x00\x00\x00", 6); /* one attempt spent */
    assert_int_equal(ct_settle_one(it), LADE_DONE);
    ct_step(CT_SOON + 5);
    j = ct_take_one("w", "q");
    it = told("q", &j, LQ_TO_DEAD);
    it.attempt = 2;
    it.failed = true;
    it.reason = LQ_REASON_EXHAUSTED;
    it.error = lb_slice_str("no luck again");
    assert_int_equal(ct_settle_one(it), LADE_DONE);
    assert_string_equal(ct_events("q"),
                        "waiting:a active:a/1 drained failed:a/1(no luck) retrying:a/1 waiting:a "
                        "active:a/2 drained failed:a/2(no luck again) dead:a/2(exhausted)");
}

static void the_other_ends_tell_too(void **state)
{
    (void)state;
    ct_events_on("q", 100);
    ct_join("w", "q");
    ct_add("q", "a");
    struct lq_leased j = ct_take_one("w", "q");
    assert_int_equal(ct_settle_one(told("q", &j, LQ_TO_CANCELLED)), LADE_DONE);
    ct_add("q", "b");
    j = ct_take_one("w", "q");
    struct lq_settle snooze = told("q", &j, LQ_TO_SCHEDULED);
    snooze.delay_ms = CT_SOON;
    assert_int_equal(ct_settle_one(snooze), LADE_DONE);
    ct_step(CT_SOON + 5);
    j = ct_take_one("w", "q");
    assert_int_equal(ct_settle_one(told("q", &j, LQ_TO_READY)), LADE_DONE);
    j = ct_take_one("w", "q");
    assert_int_equal(ct_settle_one(told("q", &j, LQ_TO_GONE)), LADE_DONE);
    assert_string_equal(ct_events("q"),
                        "waiting:a active:a/1 drained cancelled:a/1 waiting:b active:b/1 drained "
                        "waiting:b active:b/1 drained waiting:b active:b/1 drained");
}

static void what_operators_do_is_told(void **state)
{
    (void)state;
    size_t n = 0;
    ct_events_on("q", 100);
    ct_join("w", "q");
    ct_add("q", "a b");
    assert_int_equal(ct_act("q", LADE_JOB_KILL, "a"), LADE_DONE);
    assert_int_equal(ct_act("q", LADE_JOB_CANCEL, "b"), LADE_DONE);
    EXPECT(0, ct.s->ops->redrive(ct.s, "q", 10, &n, &ct.err));
    assert_int_equal(ct_act("q", LADE_JOB_RETRY, "b"), LADE_DONE);
    EXPECT(0, ct.s->ops->pause(ct.s, "q", true, &ct.err));
    EXPECT(0, ct.s->ops->pause(ct.s, "q", true, &ct.err));
    EXPECT(0, ct.s->ops->pause(ct.s, "q", false, &ct.err));
    assert_string_equal(ct_events("q"), "waiting:a waiting:b dead:a(killed) cancelled:b waiting:a "
                                        "waiting:b paused resumed");
}

static void a_job_that_was_marked_while_active_ends_as_the_operator_wanted(void **state)
{
    (void)state;
    ct_events_on("q", 100);
    ct_join("w", "q");
    ct_add("q", "a");
    struct lq_leased j = ct_take_one("w", "q");
    assert_int_equal(ct_act("q", LADE_JOB_KILL, "a"), LADE_DONE);
    assert_int_equal(ct_settle_one(told("q", &j, LQ_TO_RETRYING)), LADE_DONE);
    assert_string_equal(ct_events("q"), "waiting:a active:a/1 drained dead:a/1(killed)");
}

static void a_scheduled_job_waits_when_it_falls_due(void **state)
{
    (void)state;
    size_t n;
    int64_t next;
    ct_events_on("q", 100);
    ct_add_in("q", "a", CT_SOON);
    assert_string_equal(ct_events("q"), "");
    ct_step(CT_SOON + 5);
    EXPECT(0, lq_promote(ct.s, ct_lanes("q"), 10, &n, &next, &ct.err));
    assert_string_equal(ct_events("q"), "waiting:a");
}

static void a_job_taken_over_from_a_dead_worker_stalled(void **state)
{
    (void)state;
    ct_events_on("q", 100);
    ct_join("w", "q");
    ct_join("v", "q");
    ct_add("q", "a");
    struct lq_leased j = ct_take_one("w", "q");
    ct_die("w", "q");
    assert_int_equal(ct_reclaim("v", "q", 10), 1);
    /* C-004: the outcome of who lost the lease is refused, and is no event */
    assert_int_equal(ct_settle_one(told("q", &j, LQ_TO_COMPLETED)), LADE_STALE);
    assert_string_equal(ct_events("q"), "waiting:a active:a/1 drained stalled:a/1(w)");
}

/* chasqui 56 */
static void drained_is_told_by_the_take_that_empties_the_queue_alone(void **state)
{
    (void)state;
    ct_events_on("q", 100);
    ct_join("w", "q");
    ct_add("q", "a b c");
    assert_int_equal(ct_take("w", "q", 2), 2);
    assert_int_equal(ct_take("w", "q", 2), 1);
    assert_int_equal(ct_take("w", "q", 2), 0);
    assert_int_equal(ct_take("w", "q", 2), 0);
    assert_string_equal(ct_events("q"),
                        "waiting:a waiting:b waiting:c active:a/1 active:b/1 active:c/1 "
                        "drained");
}

static void a_duplicate_is_no_event(void **state)
{
    (void)state;
    ct_events_on("q", 100);
    ct_add("q", "a");
    assert_int_equal(ct_put_one(ct_item("q", "a")), LADE_DUPLICATE);
    assert_string_equal(ct_events("q"), "waiting:a");
}

static void kinds_and_times_are_told(void **state)
{
    (void)state;
    ct_events_on("q", 100);
    struct lq_put it = ct_item("q", "a");
    it.body = lb_slice("\x01"
                       "4\x93\xa4mail\xc4\x00\x00",
                       11);
    int64_t before = ct_now();
    assert_int_equal(ct_put_one(it), LADE_DONE);
    ct_join("w", "q");
    assert_int_equal(ct_take("w", "q", 1), 1);
    struct lq_event_vec got = {0};
    EXPECT(0, ct.s->ops->event_read(ct.s, "q", 0, 10, &got, &ct.err));
    bool ok = got.n == 3;
    for (size_t i = 0; ok && i < 2; i++)
        ok = lb_slice_eq(got.event[i].kind, lb_slice_str("mail")) && got.event[i].at_ms >= before &&
             got.event[i].at_ms <= ct_now();
    lb_arena_fini(&got.arena);
    assert_true(ok);
}

/* chasqui 56 */
static void off_there_is_no_stream(void **state)
{
    (void)state;
    assert_int_equal(read_rc("q", 0), LADE_NOT_FOUND);
    ct_join("w", "q");
    (void)ct_bring("q", "a", LADE_STATE_COMPLETED);
    assert_int_equal(read_rc("q", 0), LADE_WRONG_STATE);
    assert_int_equal(ct_events_info("q").cap, 0);
    ct_events_on("q", 10);
    ct_add("q", "b");
    ct_events_on("q", 0);
    ct_add("q", "c");
    assert_int_equal(read_rc("q", 0), LADE_WRONG_STATE);
    assert_int_equal(ct_events_info("q").cap, 0);
}

static void a_stream_that_is_begun_anew_gives_no_number_twice(void **state)
{
    (void)state;
    ct_events_on("q", 10);
    ct_add("q", "a b");
    uint64_t last = ct_events_info("q").last;
    ct_events_on("q", 0);
    ct_step(CT_SOON);
    ct_events_on("q", 10);
    ct_add("q", "c");
    assert_true(ct_events_info("q").first > last);
    assert_int_equal(read_rc("q", last), LADE_MISSED);
    assert_string_equal(ct_events("q"), "waiting:c");
}

static void reading_goes_on_behind_a_number(void **state)
{
    (void)state;
    ct_events_on("q", 1000);
    ct_add("q", "a b c");
    ct_add("q", "d e");
    lade_events_info info = ct_events_info("q");
    assert_int_equal(info.last - info.first, 4);
    assert_string_equal(ct_events_from("q", info.first, 100),
                        "waiting:b waiting:c waiting:d waiting:e");
    assert_string_equal(ct_events_from("q", info.first + 3, 100), "waiting:e");
    assert_string_equal(ct_events_from("q", info.last, 100), "");
    assert_string_equal(ct_events_from("q", 0, 1),
                        "waiting:a waiting:b waiting:c waiting:d waiting:e");
    assert_int_equal(read_rc("q", info.last + 1), LADE_MISSED);
}

static void from_now_is_behind_the_last_event(void **state)
{
    (void)state;
    ct_events_on("q", 1000);
    ct_add("q", "a");
    struct lq_event_vec got = {0};
    EXPECT(LADE_EMPTY, ct.s->ops->event_read(ct.s, "q", UINT64_MAX, 10, &got, &ct.err));
    lb_arena_fini(&got.arena);
    assert_int_equal(got.after, ct_events_info("q").last);
    ct_add("q", "b");
    assert_string_equal(ct_events_from("q", got.after, 10), "waiting:b");
}

/* chasqui 56 */
static void the_cap_drops_the_oldest_and_readers_are_told(void **state)
{
    (void)state;
    ct_events_on("q", 50);
    ct_add("q", "a");
    uint64_t first = ct_events_info("q").last;
    /* one event a step, so that every store can cut where it likes */
    for (int i = 0; i < 400; i++)
        ct_add("q", ct_format("j%d", i));
    lade_events_info info = ct_events_info("q");
    assert_int_equal(info.last, first + 400);
    assert_true(info.last - info.first + 1 >= 50);
    assert_true(info.last - info.first + 1 <= 250);
    assert_int_equal(read_rc("q", first), LADE_MISSED);
    assert_int_equal(read_rc("q", info.first - 1), LADE_DONE);
    assert_int_equal(read_rc("q", info.first - 2), LADE_MISSED);
}

static void a_forgotten_queue_takes_its_stream_along(void **state)
{
    (void)state;
    size_t n = 0;
    ct_events_on("q", 10);
    ct_add("q", "a");
    EXPECT(0, ct.s->ops->purge(ct.s, "q", LADE_STATE_READY, 10, &n, &ct.err));
    EXPECT(0, ct.s->ops->forget(ct.s, "q", &ct.err));
    assert_int_equal(read_rc("q", 0), LADE_NOT_FOUND);
    ct_add("q", "b");
    assert_int_equal(read_rc("q", 0), LADE_WRONG_STATE);
}

static void a_batch_that_stays_together_tells_each_job_in_order(void **state)
{
    (void)state;
    const char *waiting = "", *active = "", *completed = "";
    ct_events_on("q", 10000);
    ct_join("w", "q");
    ct_add_many("q", "j", 200);
    assert_int_equal(ct_take("w", "q", 200), 200);
    struct lq_settle it[200];
    for (int i = 0; i < 200; i++) {
        it[i] = told("q", &ct.got.job[i], LQ_TO_COMPLETED);
        it[i].took_us = i;
        waiting = ct_format("%s%swaiting:j%04d", waiting, i ? " " : "", i);
        active = ct_format("%s active:j%04d/1", active, i);
        completed = ct_format("%s completed:j%04d/1", completed, i);
    }
    EXPECT(0, lq_settle_take(ct.s, it, 200, NULL, NULL, &ct.err));
    assert_string_equal(ct_events("q"), ct_format("%s%s drained%s", waiting, active, completed));
}

/* As jobs of a batch end that take longer, and the steps of workflows. */
static void a_job_of_a_batch_that_ends_alone_tells_how_long_it_took(void **state)
{
    (void)state;
    static const char *const kind[] = {"mail", "mail"};
    struct lq_event_vec got = {0};
    int64_t took = -1;
    ct_events_on("q", 1000);
    ct_join("w", "q");
    ct_add_pack(3, kind);
    assert_int_equal(ct_take("w", "q", 3), 3);
    struct lq_settle it = told("q", &ct.got.job[1], LQ_TO_COMPLETED);
    it.took_us = 4711;
    it.kind = lb_slice_str("mail");
    EXPECT(0, lq_settle_take(ct.s, &it, 1, NULL, NULL, &ct.err));
    EXPECT(0, ct.s->ops->event_read(ct.s, "q", 0, 1000, &got, &ct.err));
    for (size_t i = 0; i < got.n; i++) {
        if (got.event[i].type == LADE_EVENT_COMPLETED)
            took = got.event[i].value;
    }
    lb_arena_fini(&got.arena);
    assert_int_equal(took, 4711);
}

static void check_pack_events(const char *const *kind)
{
    enum { N = 40 };
    struct lq_event_vec got = {0};
    struct lq_settle it[N];
    size_t seen[LADE_N_EVENT_TYPES + 1] = {0}, wrong = 0;
    ct_events_on("q", 1000);
    ct_join("w", "q");
    ct_add_pack(N, kind);
    assert_int_equal(ct_take("w", "q", 13), 13);
    for (size_t i = 0; i < 13; i++) {
        it[i] = told("q", &ct.got.job[i], LQ_TO_COMPLETED);
        it[i].took_us = (int64_t)i;
        it[i].kind = lb_slice_str(ct_format("%s", kind[i % 2]));
    }
    EXPECT(0, lq_settle_take(ct.s, it, 13, NULL, NULL, &ct.err));
    assert_int_equal(ct_take("w", "q", N), N - 13);
    EXPECT(0, ct.s->ops->event_read(ct.s, "q", 0, 1000, &got, &ct.err));
    for (size_t i = 0; i < got.n; i++) {
        const struct lq_ev *e = &got.event[i];
        size_t at = seen[e->type]++;
        if (e->type == LADE_EVENT_DRAINED)
            continue;
        wrong += !lb_slice_eq(e->job, lb_slice_str(ct_pack_id(at)));
        wrong += !lb_slice_eq(e->kind, lb_slice_str(kind[at % 2]));
        wrong += e->type == LADE_EVENT_COMPLETED && e->value != (int64_t)at;
        wrong += e->type != LADE_EVENT_WAITING && e->attempt != 1;
    }
    lb_arena_fini(&got.arena);
    assert_int_equal(wrong, 0);
    assert_int_equal(seen[LADE_EVENT_WAITING], N);
    assert_int_equal(seen[LADE_EVENT_ACTIVE], N);
    assert_int_equal(seen[LADE_EVENT_COMPLETED], 13);
    assert_int_equal(seen[LADE_EVENT_DRAINED], 1);
}

static void a_pack_tells_of_each_of_its_jobs(void **state)
{
    (void)state;
    static const char *const kind[] = {"mail", "mail"};
    check_pack_events(kind);
}

static void a_pack_that_was_there_before_its_stream_tells_kinds_too(void **state)
{
    (void)state;

    enum { N = 40 };

    static const char *const kind[] = {"mail", "thumbnail"};
    struct lq_event_vec got = {0};
    size_t wrong = 0;
    ct_add("q", "first"); /* makes the queue, so that the pack goes the usual way */
    ct_add_pack(N, kind);
    ct_events_on("q", 1000);
    ct_join("w", "q");
    assert_int_equal(ct_take("w", "q", 1), 1);
    assert_int_equal(ct_take("w", "q", N), N);
    EXPECT(0, ct.s->ops->event_read(ct.s, "q", 0, 1000, &got, &ct.err));
    for (size_t i = 1; i < got.n && i <= N; i++)
        wrong += !lb_slice_eq(got.event[i].kind, lb_slice_str(kind[(i - 1) % 2]));
    size_t n = got.n;
    lb_arena_fini(&got.arena);
    assert_int_equal(wrong, 0);
    assert_int_equal(n, N + 2); /* and drained */
}

static void a_pack_of_several_kinds_tells_each(void **state)
{
    (void)state;
    static const char *const kind[] = {"mail", "thumbnail"};
    check_pack_events(kind);
}

/* A body that ends before its kind does has none, whatever is stored behind it. */
static void a_damaged_job_among_others_has_no_kind(void **state)
{
    (void)state;
    static const char *const body[] = {"\x01"
                                       "4\x93\xa4mail\xc0",
                                       "\x01"
                                       "4\x93\xacma",
                                       "\x01"
                                       "4\x93\xa4mail\xc0"};
    struct lq_put item[3];
    struct lq_event_vec got = {0};
    ct_events_on("q", 100);
    ct_join("w", "q");
    for (size_t i = 0; i < 3; i++) {
        item[i] = ct_item("q", ct_pack_id(i));
        item[i].body = lb_slice_str(body[i]);
        item[i].fresh = true;
    }
    ct_put(item, 3);
    assert_int_equal(ct_take("w", "q", 3), 3);
    EXPECT(0, ct.s->ops->event_read(ct.s, "q", 0, 100, &got, &ct.err));
    const char *kinds = "";
    for (size_t i = 0; i < got.n; i++)
        kinds = ct_format("%s[%.*s]", kinds, (int)got.event[i].kind.n,
                          (const char *)got.event[i].kind.p);
    lb_arena_fini(&got.arena);
    assert_string_equal(kinds, "[mail][][mail][mail][][mail][]"); /* the last is drained */
}

static const struct CMUnitTest tests[] = {
    CT_TEST(a_job_that_succeeds_tells_waiting_active_completed),
    CT_TEST(a_job_that_fails_tells_failed_and_what_follows),
    CT_TEST(the_other_ends_tell_too),
    CT_TEST(what_operators_do_is_told),
    CT_TEST(a_job_that_was_marked_while_active_ends_as_the_operator_wanted),
    CT_TEST(a_scheduled_job_waits_when_it_falls_due),
    CT_TEST(a_job_taken_over_from_a_dead_worker_stalled),
    CT_TEST(drained_is_told_by_the_take_that_empties_the_queue_alone),
    CT_TEST(a_duplicate_is_no_event),
    CT_TEST(kinds_and_times_are_told),
    CT_TEST(off_there_is_no_stream),
    CT_TEST(a_stream_that_is_begun_anew_gives_no_number_twice),
    CT_TEST(reading_goes_on_behind_a_number),
    CT_TEST(from_now_is_behind_the_last_event),
    CT_TEST(the_cap_drops_the_oldest_and_readers_are_told),
    CT_TEST(a_forgotten_queue_takes_its_stream_along),
    CT_TEST(a_batch_that_stays_together_tells_each_job_in_order),
    CT_TEST(a_job_of_a_batch_that_ends_alone_tells_how_long_it_took),
    CT_TEST(a_pack_tells_of_each_of_its_jobs),
    CT_TEST(a_pack_that_was_there_before_its_stream_tells_kinds_too),
    CT_TEST(a_pack_of_several_kinds_tells_each),
    CT_TEST(a_damaged_job_among_others_has_no_kind),
};

CT_GROUP(ct_event_group, tests);
