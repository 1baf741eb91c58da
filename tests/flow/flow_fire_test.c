/* flow_fire_test.c - each time fires once: leaders, missed times, failures, overlap, clocks that are set */
#include "flow/schedule_kit.h"

/* firing ----------------------------------------------------------------------------------------------------------- */

/* chronos 57, chasqui 43, 48: three instances, a schedule of one second, a minute. */
static void three_instances_fire_each_time_once(void **state)
{
    (void)state;
    (void)add_scheduler();
    (void)add_scheduler();
    (void)set(every(LADE_SECOND, "a"));
    (void)set(cron("* * * * * *", "b"));
    for (int i = 0; i < 60; i++) {
        step(LADE_SECOND);
        for (int k = 0; k < 3; k++)
            look_with(fix.s[(i + k) % 3]);
    }
    assert_int_equal(n_enqueued(), 120);
    for (int i = 1; i <= 60; i++)
        assert_true(has_job("a", BEGIN + i * LADE_SECOND) && has_job("b", BEGIN + i * LADE_SECOND));
    lade_scheduler_stats st[3];
    int leaders = 0;
    for (int i = 0; i < 3; i++) {
        lade_scheduler_get_stats(fix.s[i], &st[i]);
        leaders += st[i].fired > 0;
    }
    assert_int_equal(leaders, 1);
}

/* chronos 58: a leader that resigns is followed at once, one that is gone within its lease; no time twice, none missed. */
static void another_goes_on_when_the_leader_resigns_or_is_gone(void **state)
{
    (void)state;
    lade_scheduler *two = add_scheduler(), *three = add_scheduler();
    lade_schedule_spec s = every(LADE_SECOND, "a");
    s.missed = LADE_MISSED_ALL;
    (void)set(s);
    pass(5);
    look_with(two);
    assert_int_equal(n_enqueued(), 5);
    assert_int_equal(lq_schedule_resign(fix.q->store, fix.s[0]->holder, &fix.err), 0);
    step(LADE_SECOND);
    look_with(two);
    assert_int_equal(n_enqueued(), 6);
    for (int i = 0; i < 6; i++) { /* two is gone: three asks again and again */
        step(LADE_SECOND);
        look_with(three);
    }
    assert_int_equal(n_enqueued(), 12);
    look_with(two); /* and wakes: it leads no more, and does no harm */
    assert_int_equal(n_enqueued(), 12);
    for (int i = 1; i <= 12; i++)
        assert_true(has_job("a", BEGIN + i * LADE_SECOND));
}

/* A leader that was asleep between its look and its fire: the record has moved on, or the fence is old. */
static void a_fire_that_was_planned_by_a_former_leader_does_nothing(void **state)
{
    (void)state;
    lade_scheduler *two = add_scheduler();
    (void)set(every(LADE_SECOND, "a"));
    look();
    uint64_t fence = fix.s[0]->fence;
    step(10 * LADE_SECOND);
    look_with(two);
    uint64_t n = n_enqueued();
    assert_int_equal(n, 1);
    fix.s[0]->fence = fence;
    struct lq_schedule_vec vec = {0};
    lb_arena_init(&vec.arena);
    assert_int_equal(fix.q->store->ops->schedules->get(fix.q->store, lb_slice_str("a"), &vec, NULL),
                     0);
    struct lq_fire f = {.id = lb_slice_str("a"),
                        .revision = vec.row[0].revision,
                        .fence = fence,
                        .fired = {vec.row[0].memo, LADE_SCHEDULE_ACTIVE, 1}};
    assert_int_equal(lq_schedule_fire(fix.q->store, &f, NULL), LADE_STALE);
    lb_arena_fini(&vec.arena);
    look();
    assert_int_equal(n_enqueued(), n);
}

/* chronos 59, chasqui 47: a gap of five times. */
static void missed_times_follow_the_policy(void **state)
{
    (void)state;

    static const struct {
        enum lade_schedule_missed missed;
        uint32_t max;
        int64_t window;
        uint64_t fires, missed_times;
    } row[] = {
        {LADE_MISSED_SKIP, 0, 0, 0, 5},
        {LADE_MISSED_ONE, 0, 0, 1, 4},
        {LADE_MISSED_ALL, 0, 0, 5, 0},
        {LADE_MISSED_ALL, 3, 0, 3, 2},
        {LADE_MISSED_ALL, 0, 2 * LADE_SECOND, 3, 2},
    };

    char id[16];
    for (size_t i = 0; i < LB_ARRAY_LEN(row); i++) {
        (void)snprintf(id, sizeof(id), "s%zu", i);
        lade_schedule_spec s = cron("* * * * * *", id);
        s.missed = row[i].missed;
        s.missed_max = row[i].max;
        s.missed_window = row[i].window;
        (void)set(s);
        int64_t now = fix.clock;
        step(5 * LADE_SECOND);
        look();
        assert_int_equal(n_enqueued(), row[i].fires);
        lade_schedule_view *v = get(id);
        assert_int_equal(v->n_fired, row[i].fires);
        assert_int_equal(v->n_missed, row[i].missed_times);
        assert_int_equal(v->next_at, now + 6 * LADE_SECOND);
        lade_schedule_view_free(v);
        assert_int_equal(has_job(id, now + 5 * LADE_SECOND), row[i].fires > 0);
        assert_int_equal(has_job(id, now + 2 * LADE_SECOND), row[i].fires == 5);
        assert_int_equal(lade_schedule_remove(fix.q, id, NULL), 0);
        purge();
        assert_int_equal(lade_queue_remove(fix.q, "default", NULL),
                         row[i].fires ? 0 : LADE_NOT_FOUND);
    }
}

/* Once on time is never missed: a daily one that is a second late fires under every policy, one that is an hour late does not. */
static void a_time_that_is_alone_and_little_late_is_on_time(void **state)
{
    (void)state;
    lade_schedule_spec s = cron("0 9 * * *", "a");
    s.missed = LADE_MISSED_SKIP;
    (void)set(s);
    step(LADE_HOUR + 59 * LADE_SECOND);
    look();
    assert_int_equal(n_enqueued(), 1);
    assert_int_equal(outcome_of("a", NULL), LADE_FIRE_DONE);
    step(LADE_DAY + LADE_HOUR);
    look();
    assert_int_equal(n_enqueued(), 1);
    assert_int_equal(outcome_of("a", NULL), LADE_FIRE_MISSED);
}

/* C-059: half a day of downtime; the log says how many, and the numbers are true. */
static void c059_downtime_is_made_up_for_by_the_policy_and_counted(void **state)
{
    (void)state;

    const enum lade_schedule_missed policy[] = {LADE_MISSED_SKIP, LADE_MISSED_ONE, LADE_MISSED_ALL};

    const char *const name[] = {"skip", "one", "all"};
    char id[16];
    for (size_t i = 0; i < 3; i++) {
        lade_schedule_spec s = cron("*/5 * * * *", NULL);
        (void)snprintf(id, sizeof(id), "five-%s", name[i]);
        s.id = id;
        s.missed = policy[i];
        s.missed_max = 7;
        (void)set(s);
        s = every(LADE_SECOND, NULL);
        (void)snprintf(id, sizeof(id), "second-%s", name[i]);
        s.id = id;
        s.missed = policy[i];
        s.missed_max = 250; /* more than one fire puts at once */
        (void)set(s);
    }
    look();
    step(12 * LADE_HOUR);
    look();

    const struct {
        const char *id;
        uint64_t fired, missed;
    } row[] = {{"five-skip", 0, 144},     {"five-one", 1, 143},     {"five-all", 7, 137},
               {"second-skip", 0, 43200}, {"second-one", 1, 43199}, {"second-all", 250, 42950}};

    uint64_t sum = 0;
    for (size_t i = 0; i < LB_ARRAY_LEN(row); i++) {
        lade_schedule_view *v = get(row[i].id);
        assert_int_equal(v->n_fired, row[i].fired);
        assert_int_equal(v->n_missed, row[i].missed);
        lade_schedule_view_free(v);
        sum += row[i].fired;
    }
    assert_int_equal(n_enqueued(), sum);
    assert_true(has_logged(
        "schedule five-one: 143 times were missed and passed over, 1 made up (missed=one)"));
    assert_true(has_logged(
        "schedule second-skip: 43200 times were missed and passed over, 0 made up (missed=skip)"));
}

/* C-060: what becomes of a schedule's jobs does not end the schedule. */
static void c060_removing_its_jobs_and_its_queue_does_not_end_a_schedule(void **state)
{
    (void)state;
    char id[64];
    const char *ids[] = {id};
    (void)set(every(LADE_SECOND, "a"));
    pass(1);
    (void)snprintf(id, sizeof(id), "a:%lld", (long long)(fix.clock / LADE_MILLISECOND));
    assert_int_equal(lade_job_act(fix.q, LADE_JOB_REMOVE, NULL, ids, 1, NULL, &fix.err), 0);
    pass(1);
    assert_int_equal(n_ready(), 1);
    purge();
    pass(1);
    assert_int_equal(n_ready(), 1);
    purge();
    assert_int_equal(lade_queue_remove(fix.q, "default", &fix.err), 0);
    pass(2);
    assert_int_equal(n_ready(), 2);
}

/* C-061: a run that is dead, and a unique key that is held, cost that one time, with its reason. */
static void c061_a_dead_run_or_a_held_key_does_not_stop_later_times(void **state)
{
    (void)state;
    char id[64];
    const char *ids[] = {id};
    lade_schedule_spec s = every(LADE_SECOND, "a");
    s.job.unique.key = LADE_STR("only one");
    (void)set(s);
    pass(1);
    (void)snprintf(id, sizeof(id), "a:%lld", (long long)(fix.clock / LADE_MILLISECOND));
    pass(1);
    assert_int_equal(n_enqueued(), 1);
    uint64_t n = 0;
    assert_int_equal(outcome_of("a", &n), LADE_FIRE_DUPLICATE);
    assert_int_equal(n, 1);
    assert_true(has_logged(id)); /* who holds the key */
    assert_int_equal(lade_job_act(fix.q, LADE_JOB_KILL, NULL, ids, 1, NULL, &fix.err), 0);
    pass(1);
    assert_int_equal(n_enqueued(), 2);
    assert_int_equal(count("default", LADE_STATE_DEAD), 1);
    lade_schedule_view *v = get("a");
    assert_int_equal(v->n_fired, 2);
    assert_int_equal(v->n_duplicates, 1);
    lade_schedule_view_free(v);
}

/* C-058: one that cannot be read stops no other, is told, and goes on when it can. */
static void c058_a_schedule_that_cannot_be_read_stops_no_other(void **state)
{
    (void)state;
    char id[16];
    for (int i = 0; i < 10; i++) {
        (void)snprintf(id, sizeof(id), "s%d", i);
        (void)set(every(LADE_SECOND, id));
    }
    struct lq_schedule_vec vec = {0};
    lb_arena_init(&vec.arena);
    assert_int_equal(
        fix.q->store->ops->schedules->get(fix.q->store, lb_slice_str("s5"), &vec, NULL), 0);
    struct lq_schedule_put bad = {.id = lb_slice_str("s5"),
                                  .spec = lb_slice("\x01\x92\xc1", 3),
                                  .memo = vec.row[0].memo,
                                  .state = vec.row[0].state,
                                  .due_ms = vec.row[0].due_ms,
                                  .revision = vec.row[0].revision};
    assert_int_equal(lq_schedule_put(fix.q->store, &bad, &fix.err), 0);
    lb_arena_fini(&vec.arena);
    pass(3);
    assert_int_equal(n_enqueued(), 27);
    lade_schedule_view *v = get("s5");
    assert_int_equal(v->state, LADE_SCHEDULE_BROKEN);
    assert_null(v->spec);
    assert_non_null(strstr(v->error, "damaged"));
    lade_schedule_view_free(v);
    assert_true(has_logged("schedule s5 cannot be read"));
    assert_int_equal(lade_schedule_run(fix.q, "s5", NULL, &fix.err), LADE_WRONG_STATE);
    assert_int_equal(lade_schedule_resume(fix.q, "s5", &fix.err), -LADE_EFORMAT);
    assert_int_equal(set(every(LADE_SECOND, "s5")), LADE_SCHEDULE_CHANGED);
    pass(1);
    assert_int_equal(n_enqueued(), 37);
}

/* chronos 62: what the store did not take comes at the next look. */
static void a_fire_that_fails_is_made_again_and_none_is_lost(void **state)
{
    (void)state;
    (void)set(every(LADE_SECOND, "a"));
    (void)set(every(LADE_SECOND, "b"));
    look();
    step(LADE_SECOND);
    int64_t until = 0;
    lb_fault_arm("schedule_fire.before:1:fail");
    assert_int_equal(lq_scheduler_look(fix.s[0], &until, &fix.err), 0);
    lb_fault_arm(NULL);
    assert_int_equal(n_enqueued(), 1); /* the other one */
    assert_true(has_logged("could not fire, trying again"));
    look();
    assert_int_equal(n_enqueued(), 2);
    step(LADE_SECOND);
    lb_fault_arm("schedule_fire.after:1:fail"); /* done, but the answer was lost */
    assert_int_equal(lq_scheduler_look(fix.s[0], &until, &fix.err), 0);
    lb_fault_arm(NULL);
    look();
    assert_int_equal(n_enqueued(), 4);
    lade_scheduler_stats st;
    lade_scheduler_get_stats(fix.s[0], &st);
    assert_int_equal(st.failed, 2);
}

/* overlap ---------------------------------------------------------------------------------------------------------- */

static void overlap_skip_passes_over_while_the_last_job_lives(void **state)
{
    (void)state;
    lade_schedule_spec s = every(LADE_SECOND, "a");
    s.overlap = LADE_OVERLAP_SKIP;
    (void)set(s);
    pass(4);
    assert_int_equal(n_enqueued(), 1);
    lade_schedule_view *v = get("a");
    assert_int_equal(v->n_fired, 1);
    assert_int_equal(v->n_overlaps, 3);
    assert_int_equal(v->history[v->n_history - 1].outcome, LADE_FIRE_OVERLAP);
    lade_schedule_view_free(v);
    purge();
    pass(2);
    assert_int_equal(n_enqueued(), 2);
}

static void overlap_queue_one_holds_one_time_until_the_last_job_has_ended(void **state)
{
    (void)state;
    lade_schedule_spec s = every(10 * LADE_SECOND, "a");
    s.overlap = LADE_OVERLAP_QUEUE_ONE;
    (void)set(s);
    pass(35);
    assert_int_equal(n_enqueued(), 1);
    lade_schedule_view *v = get("a");
    assert_int_equal(v->queued_at, BEGIN + 20 * LADE_SECOND);
    assert_int_equal(v->n_overlaps, 1);
    lade_schedule_view_free(v);
    purge();
    pass(2); /* looked for each second */
    assert_int_equal(n_enqueued(), 2);
    assert_true(has_job("a", BEGIN + 20 * LADE_SECOND));
    purge();
    pass(5);
    assert_int_equal(n_enqueued(), 3);
    assert_true(has_job("a", BEGIN + 40 * LADE_SECOND));
}

/* clocks ----------------------------------------------------------------------------------------------------------- */

/* C-063: far forward and back again, and a day back. */
static void c063_schedules_go_on_after_the_clock_was_set(void **state)
{
    (void)state;
    (void)set(cron("* * * * *", "minute"));
    (void)set(cron("0 12 * * *", "daily"));
    look();
    step(LADE_MINUTE);
    look();
    assert_int_equal(n_enqueued(), 1);
    step(7 * LADE_DAY);
    look();
    assert_int_equal(n_enqueued(), 3); /* one each */
    step(-7 * LADE_DAY);
    look();
    assert_int_equal(n_enqueued(), 3);
    assert_true(has_logged("clock went back by 604800 s"));
    assert_int_equal(next_of("minute"), fix.clock + LADE_MINUTE);
    assert_int_equal(next_of("daily"), BEGIN + 4 * LADE_HOUR);
    for (int i = 0; i < 5; i++) {
        step(LADE_MINUTE);
        look();
    }
    assert_int_equal(n_enqueued(), 8);
    step(-LADE_DAY);
    look();
    for (int i = 0; i < 10; i++) {
        step(LADE_MINUTE);
        look();
    }
    assert_int_equal(n_enqueued(), 18);
    step(LADE_DAY);
    look();
    assert_int_equal(n_enqueued(),
                     20); /* the daily one was missed meanwhile, and the minutes: one each */
}

/* C-062: no wait is longer than half the lease, and steps change no leader. */
static void c062_steps_of_the_clock_delay_nothing_and_change_no_leader(void **state)
{
    (void)state;
    lade_scheduler *two = add_scheduler();
    const int64_t steps[] = {-LADE_HOUR, LADE_HOUR, -LADE_DAY};
    (void)set(every(LADE_SECOND, "a"));
    look();
    for (size_t i = 0; i < LB_ARRAY_LEN(steps); i++) {
        int64_t until = 0, before = lb_clock_mono();
        step(steps[i]);
        look();
        look_with(two);
        assert_int_equal(lq_scheduler_look(fix.s[0], &until, &fix.err), 0);
        assert_true(until - before <= 5 * LADE_SECOND);
        uint64_t n = n_enqueued();
        step(LADE_SECOND);
        look();
        assert_int_equal(n_enqueued(), n + 1);
    }
    lade_scheduler_stats st;
    lade_scheduler_get_stats(two, &st);
    assert_int_equal(st.takeovers, 0);
}

/* A clock that is set back by seconds gives no time twice. */
static void a_small_step_back_is_waited_for(void **state)
{
    (void)state;
    (void)set(every(LADE_SECOND, "a"));
    pass(10);
    step(-5 * LADE_SECOND);
    pass(10);
    assert_int_equal(n_enqueued(), 15);
    for (int i = 1; i <= 15; i++)
        assert_true(has_job("a", BEGIN + i * LADE_SECOND));
}

static void fires_follow_local_time_over_the_changes_of_the_clock(void **state)
{
    (void)state;
    int64_t spring = INT64_C(1806195600) * LADE_SECOND; /* 2027-03-28 01:00 UTC: 2 to 3 in Berlin */
    int64_t autumn = INT64_C(1824944400) * LADE_SECOND; /* 2027-10-31 01:00 UTC: 3 to 2 */

    const struct {
        const char *id;
        enum lade_schedule_gap gap;
        enum lade_schedule_fold fold;
    } row[] = {{"a", LADE_GAP_SHIFT, LADE_FOLD_FIRST},
               {"b", LADE_GAP_SKIP, LADE_FOLD_BOTH},
               {"c", LADE_GAP_SHIFT, LADE_FOLD_SECOND}};

    const int64_t from[] = {spring - 3 * LADE_HOUR, autumn - 3 * LADE_HOUR};
    for (size_t k = 0; k < 2; k++) {
        fix.clock = from[k];
        for (size_t i = 0; i < LB_ARRAY_LEN(row); i++) {
            lade_schedule_spec s = cron("30 2 * * *", row[i].id);
            s.tz = "Europe/Berlin";
            s.gap = row[i].gap;
            s.fold = row[i].fold;
            assert_int_equal(lade_schedule_remove(fix.q, row[i].id, NULL), k ? 0 : LADE_NOT_FOUND);
            (void)set(s);
        }
        for (int i = 0; i < 36; i++) {
            step(10 * LADE_MINUTE);
            look();
        }
    }
    assert_true(has_job("a", spring) && !has_job("b", spring) && has_job("c", spring));
    int64_t half = 30 * LADE_MINUTE;
    assert_true(has_job("a", autumn - half) && !has_job("a", autumn + half));
    assert_true(has_job("b", autumn - half) && has_job("b", autumn + half));
    assert_true(!has_job("c", autumn - half) && has_job("c", autumn + half));
    assert_int_equal(n_enqueued(), 6);
    lade_schedule_view *v = get("a");
    char release[16];
    lb_tz_release(release);
    assert_string_equal(v->tzdata, release);
    lade_schedule_view_free(v);
}

static void jitter_is_bounded_and_the_same_whoever_asks(void **state)
{
    (void)state;
    lade_schedule_spec s = every(LADE_MINUTE, "a");
    s.jitter = 30 * LADE_SECOND;
    (void)set(s);
    int64_t seen = 0;
    bool differs = false;
    for (int i = 1; i <= 20; i++) {
        lade_schedule_view *v = get("a");
        int64_t late = v->due_at - v->next_at, at = v->next_at;
        lade_schedule_view_free(v);
        assert_in_range(late, 0, 30 * LADE_SECOND);
        assert_int_equal(late,
                         lq_plan_jitter("a", at / LADE_MILLISECOND, 30000) * LADE_MILLISECOND);
        differs = differs || (i > 1 && late != seen);
        seen = late;
        fix.clock = at + late - LADE_MILLISECOND;
        look();
        assert_int_equal(n_enqueued(), i - 1);
        step(LADE_MILLISECOND);
        look();
        assert_true(has_job("a", at));
    }
    assert_true(differs);
}

static void a_store_without_schedules_is_left_in_peace(void **state)
{
    (void)state;
    lade_schedule_leader leader;
    int64_t until = 0;
    look();
    assert_int_equal(lq_scheduler_look(fix.s[0], &until, &fix.err), 0);
    assert_true(until - lb_clock_mono() > LADE_MINUTE);
    assert_int_equal(lade_schedule_get_leader(fix.q, &leader, &fix.err), 0);
    assert_string_equal(leader.name, "");
    assert_int_equal(leader.seen_at, 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(three_instances_fire_each_time_once),
        TEST(another_goes_on_when_the_leader_resigns_or_is_gone),
        TEST(a_fire_that_was_planned_by_a_former_leader_does_nothing),
        TEST(missed_times_follow_the_policy),
        TEST(a_time_that_is_alone_and_little_late_is_on_time),
        TEST(c059_downtime_is_made_up_for_by_the_policy_and_counted),
        TEST(c060_removing_its_jobs_and_its_queue_does_not_end_a_schedule),
        TEST(c061_a_dead_run_or_a_held_key_does_not_stop_later_times),
        TEST(c058_a_schedule_that_cannot_be_read_stops_no_other),
        TEST(a_fire_that_fails_is_made_again_and_none_is_lost),
        TEST(overlap_skip_passes_over_while_the_last_job_lives),
        TEST(overlap_queue_one_holds_one_time_until_the_last_job_has_ended),
        TEST(c063_schedules_go_on_after_the_clock_was_set),
        TEST(c062_steps_of_the_clock_delay_nothing_and_change_no_leader),
        TEST(a_small_step_back_is_waited_for),
        TEST(fires_follow_local_time_over_the_changes_of_the_clock),
        TEST(jitter_is_bounded_and_the_same_whoever_asks),
        TEST(a_store_without_schedules_is_left_in_peace),
    };
    ts_rig_main(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
