/* flow_schedule_test.c - schedules as users set them, pause them, run them */
#include "flow/schedule_kit.h"

/* setting ---------------------------------------------------------------------------------------------------------- */

/* chronos 60, 61: listed before it ever fired. */
static void first_registration_does_not_fire_and_another_payload_is_another_schedule(void **state)
{
    (void)state;
    lade_schedule_id id[4];
    lade_schedule_spec s = {.cron = "* * * * *", .job = {.kind = "mail/out"}};
    assert_int_equal(lade_schedule_set(fix.q, &s, &id[0], NULL, &fix.err), 0);
    s.job.payload = LADE_STR("x");
    assert_int_equal(lade_schedule_set(fix.q, &s, &id[1], NULL, &fix.err), 0);
    s.job.queue = "other";
    assert_int_equal(lade_schedule_set(fix.q, &s, &id[2], NULL, &fix.err), 0);
    s.job.queue = NULL;
    assert_int_equal(lade_schedule_set(fix.q, &s, &id[3], NULL, &fix.err), 0);
    assert_string_equal(id[1].text, id[3].text);
    assert_string_not_equal(id[0].text, id[1].text);
    assert_string_not_equal(id[1].text, id[2].text);
    look();
    assert_int_equal(n_enqueued(), 0);
    lade_schedule_view *v = get(id[0].text);
    assert_int_equal(v->n_fired, 0);
    assert_int_equal(v->last_at, 0);
    assert_string_equal(v->spec->job.kind, "mail/out");
    assert_string_equal(v->spec->job.queue, "default");
    assert_int_equal(v->next_at, BEGIN + LADE_MINUTE);
    lade_schedule_view_free(v);
    step(LADE_MINUTE);
    look();
    assert_int_equal(n_enqueued(), 2);
    assert_int_equal(count("other", LADE_STATE_READY), 1);
}

/* chronos 56, chasqui 44: bad rules are refused with field and rule, before anything is written. */
static void impossible_rules_are_refused_by_name(void **state)
{
    (void)state;

    static const struct {
        lade_schedule_spec spec;
        const char *says;
    } bad[] = {
        {{.every = LADE_SECOND - 1, .job = {.kind = "k"}}, "every must be within 1 s"},
        {{.every = -5, .job = {.kind = "k"}}, "every"},
        {{.job = {.kind = "k"}}, "neither cron nor every"},
        {{.cron = "* * * * *", .every = LADE_SECOND, .job = {.kind = "k"}}, "both cron and every"},
        {{.cron = "61 * * * *", .job = {.kind = "k"}}, "minute"},
        {{.cron = "0 0 30 2 *", .job = {.kind = "k"}}, "never"},
        {{.cron = "* * * * *", .tz = "Europe/Berlln", .job = {.kind = "k"}}, "Europe/Berlin"},
        {{.every = LADE_SECOND, .tz = "UTC", .job = {.kind = "k"}}, "tz is for cron"},
        {{.every = LADE_SECOND, .limit = -1, .job = {.kind = "k"}}, "limit -1"},
        {{.every = LADE_SECOND, .jitter = -1, .job = {.kind = "k"}}, "jitter is negative"},
        {{.every = LADE_SECOND, .jitter = LADE_SECOND, .job = {.kind = "k"}},
         "jitter must be shorter"},
        {{.every = LADE_SECOND, .start = BEGIN, .end = BEGIN, .job = {.kind = "k"}},
         "end must be later"},
        {{.every = LADE_SECOND, .end = BEGIN - 1, .job = {.kind = "k"}}, "no time is left"},
        {{.every = LADE_SECOND, .start = 5, .job = {.kind = "k"}},
         "start is 5, before the year 2000"},
        {{.every = LADE_SECOND, .start = INT64_MAX, .job = {.kind = "k"}},
         "start is 9223372036854775807, beyond the year 2261"},
        {{.every = LADE_SECOND, .end = INT64_MAX, .job = {.kind = "k"}}, "end is 92"},
        {{.every = LADE_SECOND,
          .anchor = LADE_ANCHOR_TIME,
          .anchor_at = INT64_MAX,
          .job = {.kind = "k"}},
         "anchor_at is 92"},
        {{.every = LADE_SECOND, .gap = LADE_GAP_SKIP, .job = {.kind = "k"}}, "gap is for cron"},
        {{.every = LADE_SECOND, .fold = LADE_FOLD_BOTH, .job = {.kind = "k"}}, "fold is for cron"},
        {{.cron = "* * * * *", .anchor = LADE_ANCHOR_START, .job = {.kind = "k"}},
         "anchor is for every"},
        {{.cron = "* * * * *", .gap = 7, .job = {.kind = "k"}}, "gap 7 is unknown"},
        {{.every = LADE_SECOND, .missed_max = 10001, .job = {.kind = "k"}}, "missed_max"},
        {{.every = LADE_SECOND, .anchor = LADE_ANCHOR_TIME, .job = {.kind = "k"}}, "anchor_at"},
        {{.every = LADE_SECOND, .overlap = 9, .job = {.kind = "k"}}, "overlap 9"},
        {{.every = LADE_SECOND}, "kind is missing"},
        {{.every = LADE_SECOND, .job = {.kind = "k", .id = "x"}}, "job.id"},
        {{.every = LADE_SECOND, .job = {.kind = "k", .in = 5}}, "job.in"},
        {{.id = "a b", .every = LADE_SECOND, .job = {.kind = "k"}}, "id 'a b'"},
        {{.id = "a2345678901234567890123456789012345678901234x",
          .every = LADE_SECOND,
          .job = {.kind = "k"}},
         "1 to 44 characters"},
    };

    for (size_t i = 0; i < LB_ARRAY_LEN(bad); i++) {
        assert_int_equal(lade_schedule_set(fix.q, &bad[i].spec, NULL, NULL, &fix.err),
                         -LADE_EINVAL);
        if (!strstr(fix.err.text, bad[i].says))
            fail_msg("%zu: '%s' does not say '%s'", i, fix.err.text, bad[i].says);
    }
    lade_cursor cursor = {0};
    lade_schedule_view *v = NULL;
    size_t n = 0;
    assert_int_equal(lade_schedule_list(fix.q, &cursor, 1, &v, &n, &fix.err), LADE_EMPTY);
}

/* The same again re-anchors nothing; chasqui 46. */
static void setting_the_same_again_changes_nothing(void **state)
{
    (void)state;
    lade_schedule_spec s = every(10 * LADE_SECOND, "a");
    s.anchor = LADE_ANCHOR_START;
    step(3 * LADE_SECOND);
    assert_int_equal(set(s), LADE_SCHEDULE_CREATED);
    assert_int_equal(next_of("a"), BEGIN + 13 * LADE_SECOND);
    for (int i = 0; i < 5; i++) {
        step(LADE_SECOND);
        assert_int_equal(set(s), LADE_SCHEDULE_UNCHANGED);
    }
    assert_int_equal(next_of("a"), BEGIN + 13 * LADE_SECOND);
    s.job.payload = LADE_STR("new");
    assert_int_equal(set(s), LADE_SCHEDULE_CHANGED);
    assert_int_equal(next_of("a"), BEGIN + 13 * LADE_SECOND);
    s.every = 4 * LADE_SECOND;
    assert_int_equal(set(s), LADE_SCHEDULE_CHANGED);
    assert_int_equal(next_of("a"), BEGIN + 12 * LADE_SECOND);
}

/* chasqui 45 */
static void limit_counts_fires_over_changes_and_ends_the_schedule(void **state)
{
    (void)state;
    lade_schedule_spec s = every(LADE_SECOND, "a");
    s.limit = 5;
    (void)set(s);
    pass(3);
    s.job.payload = LADE_STR("x");
    assert_int_equal(set(s), LADE_SCHEDULE_CHANGED);
    pass(10);
    assert_int_equal(n_enqueued(), 5);
    assert_int_equal(state_of("a"), LADE_SCHEDULE_ENDED);
    assert_int_equal(set(s), LADE_SCHEDULE_UNCHANGED);
    pass(3);
    assert_int_equal(n_enqueued(), 5);
    s.limit = 7;
    assert_int_equal(set(s), LADE_SCHEDULE_CHANGED);
    pass(10);
    assert_int_equal(n_enqueued(), 7);
}

/* chasqui 45 */
static void start_and_end_are_respected(void **state)
{
    (void)state;
    lade_schedule_spec s = every(LADE_SECOND, "a");
    s.start = BEGIN + 5 * LADE_SECOND;
    s.end = BEGIN + 8 * LADE_SECOND;
    (void)set(s);
    pass(20);
    assert_int_equal(n_enqueued(), 3);
    assert_true(has_job("a", BEGIN + 5 * LADE_SECOND) && has_job("a", BEGIN + 7 * LADE_SECOND));
    assert_int_equal(state_of("a"), LADE_SCHEDULE_ENDED);
}

/* chasqui 46 */
static void pause_resume_and_remove_stop_and_start_fires(void **state)
{
    (void)state;
    (void)set(every(LADE_SECOND, "a"));
    pass(2);
    assert_int_equal(lade_schedule_pause(fix.q, "a", &fix.err), 0);
    assert_int_equal(lade_schedule_pause(fix.q, "a", &fix.err), LADE_WRONG_STATE);
    assert_int_equal(set(every(LADE_SECOND, "a")), LADE_SCHEDULE_UNCHANGED);
    pass(10);
    assert_int_equal(n_enqueued(), 2);
    assert_int_equal(lade_schedule_resume(fix.q, "a", &fix.err), 0);
    assert_int_equal(lade_schedule_resume(fix.q, "a", &fix.err), LADE_WRONG_STATE);
    pass(2);
    assert_int_equal(n_enqueued(), 4);
    lade_schedule_view *v = get("a");
    assert_int_equal(v->n_missed, 0);
    lade_schedule_view_free(v);
    assert_int_equal(lade_schedule_remove(fix.q, "a", &fix.err), 0);
    pass(3);
    assert_int_equal(n_enqueued(), 4);
    assert_int_equal(lade_schedule_remove(fix.q, "a", &fix.err), LADE_NOT_FOUND);
    assert_int_equal(lade_schedule_pause(fix.q, "a", &fix.err), LADE_NOT_FOUND);
    assert_int_equal(lade_schedule_resume(fix.q, "a", &fix.err), LADE_NOT_FOUND);
    assert_int_equal(lade_schedule_run(fix.q, "a", NULL, &fix.err), LADE_NOT_FOUND);
}

static void run_by_hand_puts_a_job_beside_the_times(void **state)
{
    (void)state;
    lade_id one, two;
    lade_schedule_id of;
    int64_t at = -1;
    lade_schedule_spec s = every(LADE_HOUR, "a");
    s.job.payload = LADE_STR("p");
    s.job.priority = 3;
    s.paused = true;
    (void)set(s);
    assert_int_equal(lade_schedule_run(fix.q, "a", &one, &fix.err), 0);
    assert_int_equal(lade_schedule_run(fix.q, "a", &two, &fix.err), 0);
    assert_string_not_equal(one.text, two.text);
    assert_true(lade_schedule_of_job(one.text, &of, &at));
    assert_string_equal(of.text, "a");
    assert_int_equal(at, 0);
    lade_job_view *v = NULL;
    assert_int_equal(lade_job_get(fix.q, NULL, one.text, &v, &fix.err), 0);
    assert_int_equal(v->payload.size, 1);
    assert_int_equal(v->priority, 3);
    assert_int_equal(v->enqueued_at, BEGIN);
    lade_job_view_free(v);
    assert_int_equal(state_of("a"), LADE_SCHEDULE_PAUSED);
    assert_int_equal(outcome_of("a", NULL), LADE_FIRE_BY_HAND);
}

/* Twice in one ms, and once when another job holds its unique key: the history has what happened. */
static void a_run_by_hand_that_puts_nothing_is_not_noted_as_one(void **state)
{
    (void)state;
    lade_id one, two;
    lade_schedule_spec s = every(LADE_HOUR, "a");
    (void)set(s);
    assert_int_equal(lade_schedule_run(fix.q, "a", &one, &fix.err), 0);
    assert_int_equal(lade_schedule_run(fix.q, "a", &one, &fix.err), 0);
    lade_schedule_view *v = get("a");
    assert_int_equal(v->n_history, 2);
    lade_schedule_view_free(v);
    s.job.unique.key = LADE_STR("one at a time");
    (void)set(s);
    step(LADE_SECOND);
    assert_int_equal(lade_schedule_run(fix.q, "a", &one, &fix.err), 0);
    step(LADE_SECOND);
    assert_int_equal(lade_schedule_run(fix.q, "a", &two, &fix.err), LADE_DUPLICATE);
    assert_string_equal(two.text, one.text);
    v = get("a");
    assert_int_equal(v->n_history, 4);
    assert_int_equal(v->history[2].outcome, LADE_FIRE_BY_HAND);
    assert_int_equal(v->history[3].outcome, LADE_FIRE_DUPLICATE);
    assert_int_equal(v->history[3].at, fix.clock);
    assert_int_equal(v->n_duplicates, 1);
    assert_int_equal(v->next_at, BEGIN + LADE_HOUR);
    lade_schedule_view_free(v);
}

static void everything_of_the_template_reaches_the_job(void **state)
{
    (void)state;
    lade_header h[] = {{"trace", "1"}, {"lang", "de"}};
    lade_schedule_spec s = every(LADE_SECOND, "a");
    s.job = (lade_job_spec){.kind = "k",
                            .queue = "default",
                            .payload = LADE_STR("a\0b"),
                            .content_type = "text/x",
                            .headers = h,
                            .n_headers = 2,
                            .priority = -2,
                            .max_attempts = 3,
                            .timeout = 5 * LADE_SECOND,
                            .unique = {.key = LADE_STR("key"), .ttl = LADE_HOUR}};
    (void)set(s);
    pass(1);
    lade_job_view *v = NULL;
    char id[64];
    (void)snprintf(id, sizeof(id), "a:%lld", (long long)((BEGIN + LADE_SECOND) / LADE_MILLISECOND));
    assert_int_equal(lade_job_get(fix.q, "default", id, &v, &fix.err), 0);
    assert_string_equal(v->kind, "k");
    assert_int_equal(v->payload.size, 3);
    assert_memory_equal(v->payload.data, "a\0b", 3);
    assert_string_equal(v->content_type, "text/x");
    assert_int_equal(v->n_headers, 2);
    assert_string_equal(v->headers[1].value, "de");
    assert_int_equal(v->priority, -2);
    assert_int_equal(v->max_attempts, 3);
    assert_int_equal(v->timeout, 5 * LADE_SECOND);
    assert_int_equal(v->unique_key.size, 3);
    lade_job_view_free(v);
    lade_schedule_view *view = get("a");
    assert_memory_equal(view->spec->job.payload.data, "a\0b", 3);
    assert_string_equal(view->spec->job.headers[0].name, "trace");
    assert_int_equal(view->spec->job.unique.ttl, LADE_HOUR);
    lade_schedule_view_free(view);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(first_registration_does_not_fire_and_another_payload_is_another_schedule),
        TEST(impossible_rules_are_refused_by_name),
        TEST(setting_the_same_again_changes_nothing),
        TEST(limit_counts_fires_over_changes_and_ends_the_schedule),
        TEST(start_and_end_are_respected),
        TEST(pause_resume_and_remove_stop_and_start_fires),
        TEST(run_by_hand_puts_a_job_beside_the_times),
        TEST(a_run_by_hand_that_puts_nothing_is_not_noted_as_one),
        TEST(everything_of_the_template_reaches_the_job),
    };
    ts_rig_main(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
