/*
 * event_cases.c - contract: the stream of what happens in a queue (chasqui 56, 57)
 *
 * What a stream holds is shown as one line: "waiting:a active:a/1 completed:a/1 drained". Jobs that the suite makes have no kind;
 * kinds have a test of their own.
 */
#include "contract.h"
#include "queue/event.h"

static void turn_on(const char *queue, uint32_t cap)
{
    EXPECT(0, lq_events_set(ct.s, queue, cap, &ct.err));
}

static lade_events_info info_of(const char *queue)
{
    lade_events_info info = {0};
    EXPECT(0, ct.s->ops->events_get(ct.s, queue, &info, &ct.err));
    return info;
}

static const char *show_one(const struct lq_ev *e)
{
    const char *type = lade_event_type_name(e->type);
    const char *s = ct_format("%s%s%.*s", type ? type : "?", e->job.n > 0 ? ":" : "", (int)e->job.n,
                              (const char *)e->job.p);
    if (e->attempt > 0)
        s = ct_format("%s/%u", s, e->attempt);
    if (e->reason.n > 0)
        s = ct_format("%s(%.*s)", s, (int)e->reason.n, (const char *)e->reason.p);
    return s;
}

/* All events behind `after`, read `page` at a time; asserts that they are numbered without holes and that time does not go back. */
static const char *show_from(const char *queue, uint64_t after, size_t page)
{
    const char *all = "";
    int64_t at_ms = 0;
    for (;;) {
        struct lq_event_vec got = {0};
        int rc = ct.s->ops->event_read(ct.s, queue, after, page, &got, &ct.err);
        if (rc == LADE_EMPTY) {
            lb_arena_fini(&got.arena);
            return all;
        }
        EXPECT(0, rc);
        bool sound = got.n > 0;
        if (after == 0)
            after = got.after;
        for (size_t i = 0; i < got.n; i++) {
            sound = sound && got.event[i].id == ++after && got.event[i].at_ms >= at_ms;
            at_ms = got.event[i].at_ms;
            all = ct_format("%s%s%s", all, *all ? " " : "", show_one(&got.event[i]));
        }
        lb_arena_fini(&got.arena);
        assert_true(sound);
    }
}

static const char *show(const char *queue)
{
    return show_from(queue, 0, 100);
}

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
    turn_on("q", 100);
    ct_join("w", "q");
    ct_add("q", "a");
    struct lq_leased j = ct_take_one("w", "q");
    assert_int_equal(ct_settle_one(told("q", &j, LQ_TO_COMPLETED)), LADE_DONE);
    assert_string_equal(show("q"), "waiting:a active:a/1 drained completed:a/1");
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
    turn_on("q", 100);
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
    assert_string_equal(show("q"),
                        "waiting:a active:a/1 drained failed:a/1(no luck) retrying:a/1 waiting:a "
                        "active:a/2 drained failed:a/2(no luck again) dead:a/2(exhausted)");
}

static void the_other_ends_tell_too(void **state)
{
    (void)state;
    turn_on("q", 100);
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
    assert_string_equal(show("q"),
                        "waiting:a active:a/1 drained cancelled:a/1 waiting:b active:b/1 drained "
                        "waiting:b active:b/1 drained waiting:b active:b/1 drained");
}

static void what_operators_do_is_told(void **state)
{
    (void)state;
    size_t n = 0;
    turn_on("q", 100);
    ct_join("w", "q");
    ct_add("q", "a b");
    assert_int_equal(ct_act("q", LADE_JOB_KILL, "a"), LADE_DONE);
    assert_int_equal(ct_act("q", LADE_JOB_CANCEL, "b"), LADE_DONE);
    EXPECT(0, ct.s->ops->redrive(ct.s, "q", 10, &n, &ct.err));
    assert_int_equal(ct_act("q", LADE_JOB_RETRY, "b"), LADE_DONE);
    EXPECT(0, ct.s->ops->pause(ct.s, "q", true, &ct.err));
    EXPECT(0, ct.s->ops->pause(ct.s, "q", true, &ct.err));
    EXPECT(0, ct.s->ops->pause(ct.s, "q", false, &ct.err));
    assert_string_equal(show("q"), "waiting:a waiting:b dead:a(killed) cancelled:b waiting:a "
                                   "waiting:b paused resumed");
}

static void a_job_that_was_marked_while_active_ends_as_the_operator_wanted(void **state)
{
    (void)state;
    turn_on("q", 100);
    ct_join("w", "q");
    ct_add("q", "a");
    struct lq_leased j = ct_take_one("w", "q");
    assert_int_equal(ct_act("q", LADE_JOB_KILL, "a"), LADE_DONE);
    assert_int_equal(ct_settle_one(told("q", &j, LQ_TO_RETRYING)), LADE_DONE);
    assert_string_equal(show("q"), "waiting:a active:a/1 drained dead:a/1(killed)");
}

static void a_scheduled_job_waits_when_it_falls_due(void **state)
{
    (void)state;
    size_t n;
    int64_t next;
    turn_on("q", 100);
    ct_add_in("q", "a", CT_SOON);
    assert_string_equal(show("q"), "");
    ct_step(CT_SOON + 5);
    EXPECT(0, lq_promote(ct.s, ct_lanes("q"), 10, &n, &next, &ct.err));
    assert_string_equal(show("q"), "waiting:a");
}

static void a_job_taken_over_from_a_dead_worker_stalled(void **state)
{
    (void)state;
    turn_on("q", 100);
    ct_join("w", "q");
    ct_join("v", "q");
    ct_add("q", "a");
    struct lq_leased j = ct_take_one("w", "q");
    ct_die("w", "q");
    assert_int_equal(ct_reclaim("v", "q", 10), 1);
    /* C-004: the outcome of who lost the lease is refused, and is no event */
    assert_int_equal(ct_settle_one(told("q", &j, LQ_TO_COMPLETED)), LADE_STALE);
    assert_string_equal(show("q"), "waiting:a active:a/1 drained stalled:a/1(w)");
}

/* chasqui 56 */
static void drained_is_told_by_the_take_that_empties_the_queue_alone(void **state)
{
    (void)state;
    turn_on("q", 100);
    ct_join("w", "q");
    ct_add("q", "a b c");
    assert_int_equal(ct_take("w", "q", 2), 2);
    assert_int_equal(ct_take("w", "q", 2), 1);
    assert_int_equal(ct_take("w", "q", 2), 0);
    assert_int_equal(ct_take("w", "q", 2), 0);
    assert_string_equal(show("q"), "waiting:a waiting:b waiting:c active:a/1 active:b/1 active:c/1 "
                                   "drained");
}

static void a_duplicate_is_no_event(void **state)
{
    (void)state;
    turn_on("q", 100);
    ct_add("q", "a");
    assert_int_equal(ct_put_one(ct_item("q", "a")), LADE_DUPLICATE);
    assert_string_equal(show("q"), "waiting:a");
}

static void kinds_and_times_are_told(void **state)
{
    (void)state;
    turn_on("q", 100);
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
    assert_int_equal(info_of("q").cap, 0);
    turn_on("q", 10);
    ct_add("q", "b");
    turn_on("q", 0);
    ct_add("q", "c");
    assert_int_equal(read_rc("q", 0), LADE_WRONG_STATE);
    assert_int_equal(info_of("q").cap, 0);
}

static void a_stream_that_is_begun_anew_gives_no_number_twice(void **state)
{
    (void)state;
    turn_on("q", 10);
    ct_add("q", "a b");
    uint64_t last = info_of("q").last;
    turn_on("q", 0);
    ct_step(CT_SOON);
    turn_on("q", 10);
    ct_add("q", "c");
    assert_true(info_of("q").first > last);
    assert_int_equal(read_rc("q", last), LADE_MISSED);
    assert_string_equal(show("q"), "waiting:c");
}

static void reading_goes_on_behind_a_number(void **state)
{
    (void)state;
    turn_on("q", 1000);
    ct_add("q", "a b c");
    ct_add("q", "d e");
    lade_events_info info = info_of("q");
    assert_int_equal(info.last - info.first, 4);
    assert_string_equal(show_from("q", info.first, 100), "waiting:b waiting:c waiting:d waiting:e");
    assert_string_equal(show_from("q", info.first + 3, 100), "waiting:e");
    assert_string_equal(show_from("q", info.last, 100), "");
    assert_string_equal(show_from("q", 0, 1), "waiting:a waiting:b waiting:c waiting:d waiting:e");
    assert_int_equal(read_rc("q", info.last + 1), LADE_MISSED);
}

static void from_now_is_behind_the_last_event(void **state)
{
    (void)state;
    turn_on("q", 1000);
    ct_add("q", "a");
    struct lq_event_vec got = {0};
    EXPECT(LADE_EMPTY, ct.s->ops->event_read(ct.s, "q", UINT64_MAX, 10, &got, &ct.err));
    lb_arena_fini(&got.arena);
    assert_int_equal(got.after, info_of("q").last);
    ct_add("q", "b");
    assert_string_equal(show_from("q", got.after, 10), "waiting:b");
}

/* chasqui 56 */
static void the_cap_drops_the_oldest_and_readers_are_told(void **state)
{
    (void)state;
    turn_on("q", 50);
    ct_add("q", "a");
    uint64_t first = info_of("q").last;
    /* one event a step, so that every store can cut where it likes */
    for (int i = 0; i < 400; i++)
        ct_add("q", ct_format("j%d", i));
    lade_events_info info = info_of("q");
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
    turn_on("q", 10);
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
    turn_on("q", 10000);
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
    assert_string_equal(show("q"), ct_format("%s%s drained%s", waiting, active, completed));
}

/* A batch as a client makes it, which a store may keep as one: `n` fresh jobs of these ids. */
static const char *pack_id(size_t place)
{
    static const char digit[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    return ct_format("01HF7YAT0000000000000001%c%c", digit[place / 32], digit[place % 32]);
}

static void add_pack(size_t n, const char *const *kind)
{
    struct lq_put item[128];
    for (size_t i = 0; i < n; i++) {
        const char *k = kind[i % 2];
        const char *body = ct_format("\x01"
                                     "4\x93%c%s%c",
                                     (int)(0xa0 + strlen(k)), k, 0xc0);
        item[i] = ct_item("q", pack_id(i));
        item[i].body = lb_slice_str(body);
        item[i].fresh = true;
    }
    ct_put(item, n);
}

static void check_pack_events(const char *const *kind)
{
    enum { N = 40 };
    struct lq_event_vec got = {0};
    struct lq_settle it[N];
    size_t seen[LADE_N_EVENT_TYPES + 1] = {0}, wrong = 0;
    turn_on("q", 1000);
    ct_join("w", "q");
    add_pack(N, kind);
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
        wrong += !lb_slice_eq(e->job, lb_slice_str(pack_id(at)));
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

static void a_pack_of_several_kinds_tells_each(void **state)
{
    (void)state;
    static const char *const kind[] = {"mail", "thumbnail"};
    check_pack_events(kind);
}

/* watching --------------------------------------------------------------------------------------------------------- */

#define LONG (60 * LADE_SECOND)

static int watch(const char *queue, const char *id, enum lq_watched what, uint64_t after)
{
    struct lq_watch it = {
        .queue = queue, .id = lb_slice_str(id), .what = what, .after = after, .outcome = -1};
    EXPECT(0, ct.s->ops->watch(ct.s, "watcher", &it, 1, &ct.err));
    return it.outcome;
}

static void assert_rung(const char *lanes)
{
    int64_t start = lb_clock_mono();
    EXPECT(0, ct.s->ops->wait(ct.s, "watcher", ct_lanes(lanes), start + LONG, &ct.err));
    assert_true(lb_clock_mono() - start < LONG / 2);
}

static void unwatch(const char *lanes)
{
    ct.s->ops->unwatch(ct.s, "watcher", ct_lanes(lanes));
}

static void who_watches_a_job_is_rung_when_it_ends(void **state)
{
    (void)state;

    static const enum lq_to ends[] = {LQ_TO_COMPLETED, LQ_TO_DEAD, LQ_TO_CANCELLED};

    ct_join("w", "q");
    for (size_t i = 0; i < LB_ARRAY_LEN(ends); i++) {
        const char *id = ct_format("a%zu", i);
        ct_add("q", id);
        assert_int_equal(watch("q", id, LQ_WATCH_END, 0), LADE_EMPTY);
        struct lq_leased j = ct_take_one("w", "q");
        assert_int_equal(ct_settle("q", &j, ends[i]), LADE_DONE);
        assert_rung("q");
        assert_int_equal(watch("q", id, LQ_WATCH_END, 0), LADE_DONE);
    }
    unwatch("q");
}

static void who_watches_a_job_is_rung_when_it_is_gone(void **state)
{
    (void)state;
    size_t n = 0;
    ct_join("w", "q");
    ct_add("q", "a b c");
    assert_int_equal(watch("q", "a", LQ_WATCH_END, 0), LADE_EMPTY);
    assert_int_equal(ct_act("q", LADE_JOB_REMOVE, "a"), LADE_DONE);
    assert_rung("q");
    assert_int_equal(watch("q", "a", LQ_WATCH_END, 0), LADE_NOT_FOUND);
    assert_int_equal(watch("q", "b", LQ_WATCH_END, 0), LADE_EMPTY);
    assert_int_equal(ct_act("q", LADE_JOB_CANCEL, "b"), LADE_DONE);
    assert_rung("q");
    assert_int_equal(watch("q", "b", LQ_WATCH_END, 0), LADE_DONE);
    assert_int_equal(watch("q", "c", LQ_WATCH_END, 0), LADE_EMPTY);
    EXPECT(0, ct.s->ops->purge(ct.s, "q", LADE_STATE_READY, 10, &n, &ct.err));
    assert_rung("q");
    assert_int_equal(watch("q", "c", LQ_WATCH_END, 0), LADE_NOT_FOUND);
    unwatch("q");
}

static void a_job_of_a_batch_can_be_watched(void **state)
{
    (void)state;
    ct_join("w", "q");
    ct_add_many("q", "j", 60);
    assert_int_equal(watch("q", "j0030", LQ_WATCH_END, 0), LADE_EMPTY);
    assert_int_equal(ct_take("w", "q", 60), 60);
    struct lq_settle it[60];
    for (int i = 0; i < 60; i++)
        it[i] = ct_settling("q", &ct.got.job[i], LQ_TO_COMPLETED);
    EXPECT(0, lq_settle_take(ct.s, it, 60, NULL, NULL, &ct.err));
    assert_rung("q");
    assert_int_equal(watch("q", "j0030", LQ_WATCH_END, 0), LADE_DONE);
    unwatch("q");
}

static void another_handle_rings_too(void **state)
{
    (void)state;
    ct_join("w", "q");
    ct_add("q", "a");
    struct lq_leased j = ct_take_one("w", "q");
    assert_int_equal(watch("q", "a", LQ_WATCH_END, 0), LADE_EMPTY);
    struct lq_store *mine = ct.s, *other = ct_open();
    ct.s = other;
    int rc = ct_settle("q", &j, LQ_TO_COMPLETED);
    ct.s = mine;
    lq_store_close(other);
    assert_int_equal(rc, LADE_DONE);
    assert_rung("q");
    unwatch("q");
}

static void who_watches_a_stream_is_rung_by_its_next_event(void **state)
{
    (void)state;
    turn_on("q", 100);
    ct_add("q", "a");
    uint64_t last = info_of("q").last;
    assert_int_equal(watch("q", "", LQ_WATCH_EVENTS, last - 1), LADE_DONE);
    assert_int_equal(watch("q", "", LQ_WATCH_EVENTS, last), LADE_EMPTY);
    ct_add("q", "b");
    assert_rung("q");
    assert_int_equal(watch("q", "", LQ_WATCH_EVENTS, last), LADE_DONE);
    assert_int_equal(watch("q", "", LQ_WATCH_EVENTS, last + 1), LADE_EMPTY);
    turn_on("q", 0);
    assert_rung("q");
    assert_int_equal(watch("q", "", LQ_WATCH_EVENTS, last + 1), LADE_DONE);
    unwatch("q");
}

static void wake_ends_the_wait_of_a_watcher(void **state)
{
    (void)state;
    ct_add("q", "a");
    assert_int_equal(watch("q", "a", LQ_WATCH_END, 0), LADE_EMPTY);
    ct.s->ops->wake(ct.s, "watcher");
    assert_rung("q");
    unwatch("q");
}

static void a_watcher_takes_no_ring_of_a_worker(void **state)
{
    (void)state;
    struct lq_leased_vec none = {0};
    ct_join("w", "q");
    ct_add("p", "a");
    assert_int_equal(watch("p", "a", LQ_WATCH_END, 0), LADE_EMPTY);
    struct lq_watch many[12];
    for (size_t i = 0; i < LB_ARRAY_LEN(many); i++)
        many[i] = (struct lq_watch){.queue = i == 0 ? "q" : ct_format("q%zu", i),
                                    .id = lb_slice_str("a"),
                                    .what = LQ_WATCH_END};
    EXPECT(0, ct.s->ops->watch(ct.s, "watcher", many, LB_ARRAY_LEN(many), &ct.err));
    struct lq_take take = ct_asking("w", "q", 1);
    take.register_idle = true;
    EXPECT(0, lq_settle_take(ct.s, NULL, 0, &take, &none, &ct.err));
    lb_arena_fini(&none.arena);
    ct_add("q", "x");
    int64_t start = lb_clock_mono();
    EXPECT(0, ct.s->ops->wait(ct.s, "w", ct_lanes("q"), start + LONG, &ct.err));
    assert_true(lb_clock_mono() - start < LONG / 2);
    unwatch("p q");
}

/* results ---------------------------------------------------------------------------------------------------------- */

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
    add_pack(N, kind);
    assert_int_equal(ct_take("w", "q", N), N);
    for (size_t i = 0; i < N; i++) {
        it[i] = ct_settling("q", &ct.got.job[i], LQ_TO_COMPLETED);
        if (i % 5 != 4)
            it[i].result = lb_slice(ct_format("r%zu\n", i), i % 7 + 1);
        id[i] = lb_slice_str(pack_id(i));
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
        assert_true(lb_slice_eq(lb_slice_of(ct_row("q", pack_id(i))->result), expected));
    }
    /* one that is run again has its new result */
    assert_int_equal(ct_act("q", LADE_JOB_RETRY, pack_id(3)), LADE_DONE);
    struct lq_leased j = ct_take_one("w", "q");
    struct lq_settle again = ct_settling("q", &j, LQ_TO_COMPLETED);
    again.result = lb_slice_str("anew");
    assert_int_equal(ct_settle_one(again), LADE_DONE);
    assert_true(lb_slice_eq(lb_slice_of(ct_row("q", pack_id(3))->result), again.result));
    EXPECT(0, ct.s->ops->purge(ct.s, "q", LADE_STATE_COMPLETED, 1000, &n, &ct.err));
    EXPECT(0, ct.s->ops->results(ct.s, "q", id, N, &ct.arena, got, &ct.err));
    assert_int_equal(got[5].outcome, LADE_NOT_FOUND);
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
    CT_TEST(who_watches_a_job_is_rung_when_it_ends),
    CT_TEST(who_watches_a_job_is_rung_when_it_is_gone),
    CT_TEST(a_job_of_a_batch_can_be_watched),
    CT_TEST(another_handle_rings_too),
    CT_TEST(who_watches_a_stream_is_rung_by_its_next_event),
    CT_TEST(wake_ends_the_wait_of_a_watcher),
    CT_TEST(a_watcher_takes_no_ring_of_a_worker),
    CT_TEST(results_are_given_aligned_with_their_ids),
    CT_TEST(results_of_a_batch_are_kept_each_with_its_job),
    CT_TEST(results_of_a_pack_stay_with_its_jobs),
    CT_TEST(a_pack_tells_of_each_of_its_jobs),
    CT_TEST(a_pack_of_several_kinds_tells_each),
};

CT_GROUP(ct_event_group, tests);
