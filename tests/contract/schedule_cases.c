/* schedule_cases.c - contract: records of schedules, the leader, and fires, each of which is one step */
#include "event_kit.h"

#include "queue/bound.h"
#include "queue/schedule_store.h"

static struct lq_schedule_vec got; /* of the last look, in ct.arena */

static const struct lq_schedule_ops *ops(void)
{
    return ct.ops->schedules;
}

static void forget_got(void)
{
    got.arena = ct.arena;
    got.row = NULL;
    got.n = 0;
}

static void keep_got(void)
{
    ct.arena = got.arena;
}

static struct lq_schedule_put record(const char *id, int64_t due_ms)
{
    return (struct lq_schedule_put){.id = lb_slice_str(id),
                                    .spec = lb_slice_str("spec"),
                                    .memo = lb_slice_str("memo"),
                                    .state = due_ms ? LADE_SCHEDULE_ACTIVE : LADE_SCHEDULE_PAUSED,
                                    .due_ms = due_ms};
}

static void add(const char *id, int64_t due_ms)
{
    struct lq_schedule_put it = record(id, due_ms);
    EXPECT(0, lq_schedule_put(ct.s, &it, &ct.err));
}

/* NULL when it is not there. */
static const struct lq_schedule_row *find(const char *id)
{
    forget_got();
    int rc = ops()->get(ct.s, lb_slice_str(id), &got, &ct.err);
    keep_got();
    if (rc == LADE_NOT_FOUND)
        return NULL;
    assert_int_equal(rc, 0);
    assert_int_equal(got.n, 1);
    return &got.row[0];
}

static struct lq_tick tick_of(const char *holder, size_t max)
{
    struct lq_tick t = {.holder = holder, .name = "host:1", .lease_ms = CT_HOUR, .max = max};
    forget_got();
    EXPECT(0, lq_schedule_tick(ct.s, &t, &got, &ct.err));
    keep_got();
    return t;
}

/* The ids of the last look as "a b". */
static const char *ids(void)
{
    const char *text = "";
    for (size_t i = 0; i < got.n; i++)
        text = ct_format("%s%s%.*s", text, i ? " " : "", (int)got.row[i].id.n,
                         (const char *)got.row[i].id.p);
    return text;
}

static struct lq_fire fire_of(const char *id, uint64_t fence)
{
    const struct lq_schedule_row *r = find(id);
    assert_non_null(r);
    return (struct lq_fire){
        .id = lb_slice_str(id),
        .revision = r->revision,
        .fence = fence,
        .fired = {lb_slice_str("fired"), LADE_SCHEDULE_ACTIVE, ct_now() + CT_HOUR},
        .held = {lb_slice_str("held"), LADE_SCHEDULE_ACTIVE, ct_now() + CT_HOUR}};
}

static void assert_memo(const char *id, const char *memo)
{
    const struct lq_schedule_row *r = find(id);
    assert_non_null(r);
    assert_true(lb_slice_eq(r->memo, lb_slice_str(memo)));
}

static void what_is_put_is_there(void **state)
{
    (void)state;
    struct lq_schedule_put it = record("a", ct_now() + CT_HOUR);
    it.spec = lb_slice("s\0\xff", 3);
    it.memo = lb_slice("m\0\xfe\n", 4);
    EXPECT(0, lq_schedule_put(ct.s, &it, &ct.err));
    const struct lq_schedule_row *r = find("a");
    assert_non_null(r);
    assert_true(lb_slice_eq(r->id, lb_slice_str("a")));
    assert_true(lb_slice_eq(r->spec, it.spec));
    assert_true(lb_slice_eq(r->memo, it.memo));
    assert_int_equal(r->state, LADE_SCHEDULE_ACTIVE);
    assert_int_equal(r->due_ms, it.due_ms);
    assert_true(r->revision > 0);
    assert_null(find("b"));
}

static void a_change_holds_only_against_what_was_read(void **state)
{
    (void)state;
    add("a", ct_now() + CT_HOUR);
    struct lq_schedule_put it = record("a", 0);
    EXPECT(LADE_STALE, lq_schedule_put(ct.s, &it, &ct.err)); /* it is there */
    it.revision = find("a")->revision;
    uint64_t first = it.revision;
    EXPECT(0, lq_schedule_put(ct.s, &it, &ct.err));
    assert_int_equal(find("a")->state, LADE_SCHEDULE_PAUSED);
    assert_true(find("a")->revision > first);
    EXPECT(LADE_STALE, lq_schedule_put(ct.s, &it, &ct.err)); /* it has changed */
    EXPECT(0, ops()->remove(ct.s, lb_slice_str("a"), &ct.err));
    it.revision = first;
    EXPECT(LADE_STALE, lq_schedule_put(ct.s, &it, &ct.err)); /* it is gone */
    EXPECT(LADE_NOT_FOUND, ops()->remove(ct.s, lb_slice_str("a"), &ct.err));
    add("a", 0);
    assert_true(find("a")->revision > first); /* no record had this one before */
    EXPECT(LADE_STALE, lq_schedule_put(ct.s, &it, &ct.err));
}

/* chasqui 46 */
static void schedules_are_listed_by_id_in_pages(void **state)
{
    (void)state;
    static const char *const name[] = {"b", "a:1", "c", "a", "B"};
    const char *text = "";
    lade_cursor cursor = {0};
    forget_got();
    EXPECT(LADE_EMPTY, ops()->list(ct.s, &cursor, 2, &got, &ct.err));
    keep_got();
    assert_true(cursor.done);
    cursor = (lade_cursor){0};
    for (size_t i = 0; i < LB_ARRAY_LEN(name); i++)
        add(name[i], i % 2 ? 0 : ct_now() + CT_HOUR);
    while (!cursor.done) {
        forget_got();
        EXPECT(0, ops()->list(ct.s, &cursor, 2, &got, &ct.err));
        keep_got();
        assert_in_range(got.n, 1, 2);
        text = ct_format("%s[%s]", text, ids());
    }
    assert_string_equal(text, "[B a][a:1 b][c]");
}

static void a_store_without_active_schedules_has_no_leader(void **state)
{
    (void)state;
    lade_schedule_leader leader;
    struct lq_tick t = tick_of("w1", 10);
    assert_false(t.any);
    assert_false(t.leads);
    add("a", 0);
    t = tick_of("w1", 10);
    assert_false(t.any || t.leads);
    EXPECT(0, ops()->leader(ct.s, &leader, &ct.err));
    assert_string_equal(leader.name, "");
    assert_int_equal(leader.seen_at, 0);
}

/* chronos 61: who leads can be seen. */
static void one_leads_until_it_resigns_and_the_fence_grows(void **state)
{
    (void)state;
    lade_schedule_leader leader;
    add("a", ct_now() + CT_HOUR);
    struct lq_tick one = tick_of("w1", 10);
    assert_true(one.any && one.leads && one.took_over);
    assert_true(one.fence > 0);
    assert_in_range(one.until_ms, one.now_ms + CT_HOUR, one.now_ms + CT_HOUR);
    EXPECT(0, ops()->leader(ct.s, &leader, &ct.err));
    assert_string_equal(leader.id, "w1");
    assert_string_equal(leader.name, "host:1");
    assert_int_equal(leader.fence, one.fence);
    assert_in_range(leader.seen_at, one.now_ms * LADE_MILLISECOND, one.now_ms * LADE_MILLISECOND);
    struct lq_tick two = tick_of("w2", 10);
    assert_true(two.any && !two.leads && !two.took_over);
    assert_int_equal(two.until_ms, one.until_ms);
    one = tick_of("w1", 10);
    assert_true(one.leads && !one.took_over);
    EXPECT(0, lq_schedule_resign(ct.s, "w2", &ct.err)); /* not the leader's to give */
    one = tick_of("w1", 10);
    assert_true(one.leads && !one.took_over);
    EXPECT(0, lq_schedule_resign(ct.s, "w1", &ct.err));
    EXPECT(0, ops()->leader(ct.s, &leader, &ct.err));
    assert_string_equal(leader.id, "");
    two = tick_of("w2", 10);
    assert_true(two.leads && two.took_over);
    assert_true(two.fence > one.fence);
}

static void a_lease_that_has_run_out_is_anybodys(void **state)
{
    (void)state;
    add("a", ct_now() + CT_HOUR);
    struct lq_tick one = {.holder = "w1", .name = "", .lease_ms = 5, .max = 1};
    forget_got();
    EXPECT(0, lq_schedule_tick(ct.s, &one, &got, &ct.err));
    keep_got();
    assert_true(one.leads);
    ct_step(CT_SOON);
    struct lq_tick two = tick_of("w2", 1);
    assert_true(two.leads && two.took_over && two.fence > one.fence);
    assert_false(tick_of("w1", 1).leads);
}

static void the_leader_gets_what_is_due_earliest_first(void **state)
{
    (void)state;
    int64_t now = ct_now();
    add("late", now - 10);
    add("later", now + CT_HOUR);
    add("first", now - 30);
    add("paused", 0);
    add("second", now - 20);
    struct lq_tick t = tick_of("w1", 2);
    assert_string_equal(ids(), "first second");
    assert_int_equal(t.next_ms, now - 10);
    assert_true(lb_slice_eq(got.row[0].spec, lb_slice_str("spec")));
    t = tick_of("w1", 10);
    assert_string_equal(ids(), "first second late");
    assert_int_equal(t.next_ms, now + CT_HOUR);
    (void)tick_of("w2", 10);
    assert_string_equal(ids(), "");
}

static void a_fire_puts_its_jobs_and_moves_on_in_one_step(void **state)
{
    (void)state;
    add("a", ct_now() - 10);
    struct lq_tick t = tick_of("w1", 10);
    struct lq_fire f = fire_of("a", t.fence);
    struct lq_put put[2] = {ct_item("q", "a:1"), ct_item("q", "a:2")};
    f.put = put;
    f.n = 2;
    EXPECT(0, lq_schedule_fire(ct.s, &f, &ct.err));
    assert_false(f.busy);
    assert_string_equal(ct_list("q", LADE_STATE_READY, 10), "a:1 a:2");
    assert_memo("a", "fired");
    assert_int_equal(find("a")->due_ms, f.fired.due_ms);
    (void)tick_of("w1", 10);
    assert_string_equal(ids(), "");
    EXPECT(LADE_STALE, lq_schedule_fire(ct.s, &f, &ct.err)); /* again, as it was read then */
    assert_int_equal(ct_info("q").total_enqueued, 2);
}

static void a_fire_passes_the_bound_of_a_queue(void **state)
{
    (void)state;
    EXPECT(0, lq_bound_set(ct.s, "q", &(struct lq_bound){.max_jobs = 1}, &ct.err));
    ct_add("q", "a:0");
    add("a", ct_now() - 10);
    struct lq_fire f = fire_of("a", tick_of("w1", 10).fence);
    struct lq_put put = ct_item("q", "a:1");
    f.put = &put;
    f.n = 1;
    EXPECT(0, lq_schedule_fire(ct.s, &f, &ct.err));
    assert_string_equal(ct_list("q", LADE_STATE_READY, 10), "a:0 a:1");
}

static void a_fire_tells_of_the_jobs_that_it_made(void **state)
{
    (void)state;
    ct_events_on("q", 100);
    add("daily", ct_now() - 10);
    struct lq_fire f = fire_of("daily", tick_of("w1", 10).fence);
    struct lq_put put[3] = {ct_item("q", "a"), ct_item("q", "a"), ct_item("q", "b")};
    put[2].when = LQ_WHEN_IN;
    put[2].when_ms = CT_HOUR;
    f.put = put;
    f.n = 3;
    EXPECT(0, lq_schedule_fire(ct.s, &f, &ct.err));
    assert_int_equal(put[1].outcome, LADE_DUPLICATE);
    assert_string_equal(ct_events("q"), "waiting:a fired:a(daily) fired:b(daily)");
    EXPECT(LADE_STALE, lq_schedule_fire(ct.s, &f, &ct.err));
    /* all of them there already; then held by one that has not ended */
    f = fire_of("daily", 0);
    f.put = put;
    f.n = 1;
    EXPECT(0, lq_schedule_fire(ct.s, &f, &ct.err));
    f = fire_of("daily", 0);
    put[0] = ct_item("q", "c");
    f.put = put;
    f.n = 1;
    f.busy_queue = "q";
    f.busy_id = lb_slice_str("a");
    EXPECT(0, lq_schedule_fire(ct.s, &f, &ct.err));
    assert_true(f.busy);
    assert_string_equal(ct_events("q"), "waiting:a fired:a(daily) fired:b(daily)");
    /* into a queue without a stream, and of none */
    f = fire_of("daily", 0);
    put[0] = ct_item("p", "d");
    f.put = put;
    f.n = 1;
    EXPECT(0, lq_schedule_fire(ct.s, &f, &ct.err));
    f = fire_of("daily", 0);
    EXPECT(0, lq_schedule_fire(ct.s, &f, &ct.err));
    assert_int_equal(ct_state("p", "d"), LADE_STATE_READY);
    assert_string_equal(ct_events("q"), "waiting:a fired:a(daily) fired:b(daily)");
}

static void a_fire_wakes_who_waits_for_jobs(void **state)
{
    (void)state;
    add("a", ct_now() - 10);
    ct_join("w", "q");
    struct lq_take take = ct_asking("w", "q", 1);
    take.register_idle = true;
    EXPECT(0, lq_settle_take(ct.s, NULL, 0, &take, &ct.got, &ct.err));
    struct lq_fire f = fire_of("a", tick_of("w1", 10).fence);
    struct lq_put put = ct_item("q", "a:1");
    f.put = &put;
    f.n = 1;
    EXPECT(0, lq_schedule_fire(ct.s, &f, &ct.err));
    EXPECT(0, ct.ops->wait(ct.s, "w", ct_lanes("q"), lb_deadline_in(10 * LADE_SECOND), &ct.err));
    assert_int_equal(ct_take("w", "q", 5), 1);
}

/* chronos 58: two that believe to lead cannot both fire. */
static void a_fire_with_an_old_fence_is_refused(void **state)
{
    (void)state;
    add("a", ct_now() - 10);
    uint64_t old = tick_of("w1", 10).fence;
    EXPECT(0, lq_schedule_resign(ct.s, "w1", &ct.err));
    (void)tick_of("w2", 10);
    struct lq_fire f = fire_of("a", old);
    struct lq_put put = ct_item("q", "a:1");
    f.put = &put;
    f.n = 1;
    EXPECT(LADE_STALE, lq_schedule_fire(ct.s, &f, &ct.err));
    assert_int_equal(ct_state("q", "a:1"), -1);
    assert_memo("a", "memo");
    f.fence = 0; /* by hand */
    EXPECT(0, lq_schedule_fire(ct.s, &f, &ct.err));
    assert_int_equal(ct_state("q", "a:1"), LADE_STATE_READY);
}

static void a_fire_of_what_is_gone_is_refused(void **state)
{
    (void)state;
    add("a", ct_now() - 10);
    struct lq_fire f = fire_of("a", 0);
    struct lq_put put = ct_item("q", "a:1");
    f.put = &put;
    f.n = 1;
    EXPECT(0, ops()->remove(ct.s, lb_slice_str("a"), &ct.err));
    EXPECT(LADE_STALE, lq_schedule_fire(ct.s, &f, &ct.err));
    assert_int_equal(ct_state("q", "a:1"), -1);
}

static int fire_after(const char *busy_id, const char *job, bool *busy)
{
    struct lq_fire f = fire_of("a", 0);
    struct lq_put put = ct_item("q", job);
    f.put = &put;
    f.n = 1;
    f.busy_queue = "q";
    f.busy_id = lb_slice_str(busy_id);
    int rc = lq_schedule_fire(ct.s, &f, &ct.err);
    *busy = f.busy;
    return rc;
}

static void a_fire_is_held_while_the_last_job_has_not_ended(void **state)
{
    (void)state;

    static const enum lade_state alive[] = {LADE_STATE_SCHEDULED, LADE_STATE_READY,
                                            LADE_STATE_ACTIVE, LADE_STATE_RETRYING};

    static const enum lade_state over[] = {LADE_STATE_COMPLETED, LADE_STATE_DEAD,
                                           LADE_STATE_CANCELLED};

    bool busy;
    ct_join("w", "q");
    add("a", ct_now() - 10);
    EXPECT(0, fire_after("nothing", "x", &busy));
    assert_false(busy);
    assert_int_equal(ct_act("q", LADE_JOB_REMOVE, "x"), 0);
    for (size_t i = 0; i < LB_ARRAY_LEN(alive); i++) {
        (void)ct_bring("q", ct_format("a%zu", i), alive[i]);
        EXPECT(0, fire_after(ct_format("a%zu", i), "x", &busy));
        assert_true(busy);
        assert_int_equal(ct_state("q", "x"), -1);
        assert_memo("a", "held");
        assert_int_equal(ct_act("q", LADE_JOB_REMOVE, ct_format("a%zu", i)), 0);
    }
    for (size_t i = 0; i < LB_ARRAY_LEN(over); i++) {
        (void)ct_bring("q", ct_format("o%zu", i), over[i]);
        EXPECT(0, fire_after(ct_format("o%zu", i), "x", &busy));
        assert_false(busy);
        assert_int_equal(ct_state("q", "x"), LADE_STATE_READY);
        assert_memo("a", "fired");
        assert_int_equal(ct_act("q", LADE_JOB_REMOVE, "x"), 0);
    }
}

/* C-061: an id or a key that is taken is told, and the schedule goes on. */
static void a_job_that_is_there_is_a_duplicate_and_the_schedule_moves_on(void **state)
{
    (void)state;
    add("a", ct_now() - 10);
    ct_add("q", "a:1");
    struct lq_fire f = fire_of("a", 0);
    struct lq_put put[2] = {ct_item("q", "a:1"), ct_item("q", "a:2")};
    f.put = put;
    f.n = 2;
    EXPECT(0, lq_schedule_fire(ct.s, &f, &ct.err));
    assert_int_equal(put[0].outcome, LADE_DUPLICATE);
    assert_string_equal(put[0].holder, "a:1");
    assert_int_equal(put[1].outcome, 0);
    assert_memo("a", "fired");
}

static void a_fire_may_end_a_schedule_and_put_nothing(void **state)
{
    (void)state;
    add("a", ct_now() - 10);
    struct lq_fire f = fire_of("a", tick_of("w1", 10).fence);
    f.fired = (struct lq_schedule_half){lb_slice_str("over"), LADE_SCHEDULE_ENDED, 0};
    EXPECT(0, lq_schedule_fire(ct.s, &f, &ct.err));
    assert_int_equal(find("a")->state, LADE_SCHEDULE_ENDED);
    assert_memo("a", "over");
    assert_false(tick_of("w1", 10).any);
}

static void a_renewal_tells_whether_there_are_schedules(void **state)
{
    (void)state;
    struct lq_ahead ahead = {0};
    size_t n = 0;
    ct_join("w", "q");
    struct lq_beat beat = ct_beat("w", "q");
    beat.first = false;
    beat.ahead = &ahead;
    EXPECT(0, lq_renew(ct.s, &beat, NULL, 0, &n, &ct.err));
    assert_false(ahead.schedules);
    add("a", 0);
    EXPECT(0, lq_renew(ct.s, &beat, NULL, 0, &n, &ct.err));
    assert_false(ahead.schedules);
    add("b", ct_now() + CT_HOUR);
    EXPECT(0, lq_renew(ct.s, &beat, NULL, 0, &n, &ct.err));
    assert_true(ahead.schedules);
    EXPECT(0, ops()->remove(ct.s, lb_slice_str("b"), &ct.err));
    EXPECT(0, lq_renew(ct.s, &beat, NULL, 0, &n, &ct.err));
    assert_false(ahead.schedules);
}

/* A wait that returns at once, having been rung by `cause` after the tick. */
static void assert_rung(void (*cause)(void))
{
    (void)tick_of("w2", 10);
    while (ops()->wait(ct.s, "w2", lb_clock_mono(), &ct.err) == 0) /* rings of before */
        (void)tick_of("w2", 10);
    (void)tick_of("w2", 10); /* a wait that is over has taken it off the list */
    cause();
    int64_t began = lb_clock_mono();
    EXPECT(0, ops()->wait(ct.s, "w2", lb_deadline_in(60 * LADE_SECOND), &ct.err));
    assert_true(lb_clock_mono() - began < 50 * LADE_SECOND);
}

static void put_one(void)
{
    add("new", ct_now() + CT_HOUR);
}

static void resign_one(void)
{
    EXPECT(0, lq_schedule_resign(ct.s, "w1", &ct.err));
}

static void wake_two(void)
{
    ops()->wake(ct.s, "w2");
}

static void who_watches_is_rung_by_changes_and_by_the_end_of_the_lead(void **state)
{
    (void)state;
    add("a", ct_now() + CT_HOUR);
    assert_true(tick_of("w1", 10).leads);
    assert_rung(put_one);
    assert_rung(wake_two);
    assert_rung(resign_one);
    EXPECT(LADE_EMPTY, ops()->wait(ct.s, "w2", lb_clock_mono(), &ct.err));
}

/* C-062, C-063: by how much the clock went back is told, and a lease does not outlast it. */
static void a_clock_that_goes_back_is_told_and_the_lease_is_cut(void **state)
{
    (void)state;
    if (!ct_is_exact()) { /* the server's clock is not ours to set: the other stores show it */
        return;
    }
    add("a", ct_now() + 24 * CT_HOUR);
    assert_true(tick_of("w1", 10).leads);
    ct.clock_ns -= 24 * CT_HOUR * LADE_MILLISECOND;
    struct lq_tick two = tick_of("w2", 10);
    assert_false(two.leads);
    assert_int_equal(two.until_ms, two.now_ms + CT_HOUR);
    struct lq_tick one = tick_of("w1", 10);
    assert_true(one.leads && !one.took_over);
    assert_int_equal(one.back_ms, 24 * CT_HOUR);
    assert_int_equal(tick_of("w1", 10).back_ms, 0);
}

static const struct CMUnitTest tests[] = {
    CT_TEST(what_is_put_is_there),
    CT_TEST(a_change_holds_only_against_what_was_read),
    CT_TEST(schedules_are_listed_by_id_in_pages),
    CT_TEST(a_store_without_active_schedules_has_no_leader),
    CT_TEST(one_leads_until_it_resigns_and_the_fence_grows),
    CT_TEST(a_lease_that_has_run_out_is_anybodys),
    CT_TEST(the_leader_gets_what_is_due_earliest_first),
    CT_TEST(a_fire_puts_its_jobs_and_moves_on_in_one_step),
    CT_TEST(a_fire_passes_the_bound_of_a_queue),
    CT_TEST(a_fire_tells_of_the_jobs_that_it_made),
    CT_TEST(a_fire_wakes_who_waits_for_jobs),
    CT_TEST(a_fire_with_an_old_fence_is_refused),
    CT_TEST(a_fire_of_what_is_gone_is_refused),
    CT_TEST(a_fire_is_held_while_the_last_job_has_not_ended),
    CT_TEST(a_job_that_is_there_is_a_duplicate_and_the_schedule_moves_on),
    CT_TEST(a_fire_may_end_a_schedule_and_put_nothing),
    CT_TEST(a_renewal_tells_whether_there_are_schedules),
    CT_TEST(who_watches_is_rung_by_changes_and_by_the_end_of_the_lead),
    CT_TEST(a_clock_that_goes_back_is_told_and_the_lease_is_cut),
};
CT_GROUP(ct_schedule_group, tests);
