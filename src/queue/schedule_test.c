#include "queue/schedule.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"

#define T0 INT64_C(1800000000000) /* ms: 2027-01-15 08:00 UTC */

static const lade_schedule_spec nightly = {
    .id = "nightly",
    .cron = "30 2 * * *",
    .tz = "Europe/Berlin",
    .fold = LADE_FOLD_BOTH,
    .missed = LADE_MISSED_ALL,
    .overlap = LADE_OVERLAP_SKIP,
    .limit = 300,
    .jitter = 5 * LADE_SECOND,
    .job = {.kind = "mail", .queue = "out", .payload = {"a\0b", 3}},
};

/* docs/format.md; these bytes may never change their meaning. */
static void the_bytes_of_a_spec_are_as_documented(void **state)
{
    (void)state;
    static const uint8_t golden[] = {
        0x01, 0xdc, 0x00, 0x12, /* version, array of 18 */
        0xaa, '3',  '0',  ' ',  '2',  ' ',  '*',  ' ',  '*',  ' ',  '*',  0x00, 0x00, 0x00,
        0xad, 'E',  'u',  'r',  'o',  'p',  'e',  '/',  'B',  'e',  'r',  'l',  'i',  'n',
        0x00, 0x01, 0x00, 0x00, 0xcd, 0x13, 0x88, 0x02, 0x64, 0x00, 0x01, 0xcd, 0x01, 0x2c,
        0xa3, 'o',  'u',  't',  0xc4, 0x0e, 0x01, '4',  0x93, 0xa4, 'm',  'a',  'i',  'l',
        0xc4, 0x03, 'a',  0x00, 'b',  0x00, 0xce, 0x05, 0x26, 0x5c, 0x00};
    struct lb_buf b;
    lb_buf_init(&b);
    lq_schedule_encode(&b, &nightly);
    assert_false(b.failed);
    assert_int_equal(b.n, sizeof(golden));
    assert_memory_equal(b.p, golden, sizeof(golden));
    lb_buf_add_byte(&b, 0);
    struct lq_schedule_spec s;
    assert_int_equal(lq_schedule_decode((struct lb_mut){b.p, b.n - 1}, &s, NULL), 0);
    assert_string_equal(s.cron, "30 2 * * *");
    assert_string_equal(s.tz, "Europe/Berlin");
    assert_string_equal(s.queue, "out");
    assert_int_equal(s.limit, 300);
    assert_int_equal(s.jitter_ms, 5000);
    assert_int_equal(s.missed_max, 100);
    assert_int_equal(s.body.n, 14);
    lb_buf_fini(&b);
}

static struct lq_memo full_memo(void)
{
    struct lq_memo m = {.created_ms = 1, .changed_ms = 2, .anchor_ms = 3, .next_ms = 4};
    m.computed_ms = 5;
    m.last_ms = 6;
    m.epoch = 7;
    m.fired = 8;
    m.missed = 9;
    m.overlaps = 10;
    m.duplicates = 11;
    m.pending_ms = 12;
    (void)snprintf(m.last_queue, sizeof(m.last_queue), "q");
    (void)snprintf(m.last_job, sizeof(m.last_job), "j");
    (void)snprintf(m.tzdata, sizeof(m.tzdata), "2026f");
    (void)snprintf(m.error, sizeof(m.error), "e");
    lq_memo_note(&m, 13, 14, LADE_FIRE_MISSED, 15);
    return m;
}

static void the_bytes_of_a_memo_are_as_documented(void **state)
{
    (void)state;
    static const uint8_t golden[] = {0x01, 0xdc, 0x00, 0x11, 1,    2,    3,    4,    5,   6,    7,
                                     8,    9,    10,   11,   12,   0xa1, 'q',  0xa1, 'j', 0xa5, '2',
                                     '0',  '2',  '6',  'f',  0xa1, 'e',  0x94, 13,   14,  2,    15};
    struct lq_memo m = full_memo(), back;
    struct lb_buf b;
    lb_buf_init(&b);
    lq_memo_encode(&b, &m);
    assert_int_equal(b.n, sizeof(golden));
    assert_memory_equal(b.p, golden, sizeof(golden));
    assert_int_equal(lq_memo_decode((struct lb_mut){b.p, b.n}, &back, NULL), 0);
    assert_int_equal(back.pending_ms, 12);
    assert_int_equal(back.history[0].count, 15);
    lb_buf_fini(&b);
}

/* Every cut and every changed byte is refused or read, and nothing outside is touched: the sanitizers watch. */
static void damaged_bytes_are_refused(void **state)
{
    (void)state;
    struct lb_buf spec, memo;
    struct lq_memo m = full_memo();
    lb_buf_init(&spec);
    lb_buf_init(&memo);
    lq_schedule_encode(&spec, &nightly);
    lq_memo_encode(&memo, &m);
    for (size_t cut = 0; cut < spec.n; cut++) {
        struct lq_schedule_spec s;
        uint8_t *copy = test_malloc(cut + 1);
        memcpy(copy, spec.p, cut);
        assert_int_equal(lq_schedule_decode((struct lb_mut){copy, cut}, &s, NULL), -LADE_EFORMAT);
        test_free(copy);
    }
    for (size_t cut = 0; cut < memo.n; cut++) {
        uint8_t *copy = test_malloc(cut + 1);
        memcpy(copy, memo.p, cut);
        assert_int_equal(lq_memo_decode((struct lb_mut){copy, cut}, &m, NULL), -LADE_EFORMAT);
        test_free(copy);
    }
    for (size_t i = 0; i < spec.n * 256; i++) {
        struct lq_schedule_spec s;
        struct lb_buf body;
        uint8_t *copy = test_malloc(spec.n + 1);
        memcpy(copy, spec.p, spec.n);
        copy[i / 256] = (uint8_t)i;
        lb_buf_init(&body);
        if (lq_schedule_decode((struct lb_mut){copy, spec.n}, &s, NULL) == 0)
            (void)lq_schedule_body(&body, s.body, 5);
        lb_buf_fini(&body);
        test_free(copy);
    }
    lb_buf_fini(&spec);
    lb_buf_fini(&memo);
}

static void a_newer_version_is_told(void **state)
{
    (void)state;
    uint8_t bytes[] = {2, 0x90, 0};
    struct lq_schedule_spec s;
    struct lq_memo m;
    lade_err err = {0};
    assert_int_equal(lq_schedule_decode((struct lb_mut){bytes, 2}, &s, &err), -LADE_EFORMAT);
    assert_non_null(strstr(err.text, "newer lade"));
    assert_int_equal(lq_memo_decode((struct lb_mut){bytes, 2}, &m, &err), -LADE_EFORMAT);
    assert_non_null(strstr(err.text, "newer lade"));
}

static void the_envelope_of_a_fire_differs_in_its_time_only(void **state)
{
    (void)state;
    struct lb_buf a, b, c;
    lb_buf_init(&a);
    lb_buf_init(&b);
    lb_buf_init(&c);
    lade_job_spec job = {
        .kind = "k", .payload = {"x", 1}, .max_attempts = 3, .timeout = LADE_SECOND};
    lq_job_encode(&a, &job, 0);
    lq_job_encode(&b, &job, T0);
    assert_true(lq_schedule_body(&c, (struct lb_mut){a.p, a.n}, T0));
    assert_int_equal(b.n, c.n);
    assert_memory_equal(b.p, c.p, b.n);
    lb_buf_fini(&a);
    lb_buf_fini(&b);
    lb_buf_fini(&c);
}

static void the_history_keeps_the_newest(void **state)
{
    (void)state;
    struct lq_memo m = {0};
    for (int i = 0; i < 50; i++)
        lq_memo_note(&m, i, i, LADE_FIRE_DONE, 1);
    assert_int_equal(m.n_history, LADE_SCHEDULE_HISTORY);
    assert_int_equal(m.history[0].at_ms, 50 - LADE_SCHEDULE_HISTORY);
    assert_int_equal(m.history[m.n_history - 1].at_ms, 49);
}

static void the_id_of_a_job_tells_its_schedule_and_time(void **state)
{
    (void)state;
    char id[LADE_ID_MAX + 1];
    lade_schedule_id of;
    int64_t at = 0;
    lq_memo_job_id(id, "a:b", T0, 0);
    assert_string_equal(id, "a:b:1800000000000");
    assert_true(lade_schedule_of_job(id, &of, &at));
    assert_string_equal(of.text, "a:b");
    assert_int_equal(at, T0 * LADE_MILLISECOND);
    lq_memo_job_id(id, "12345678901234567890123456789012345678901234", T0, 9999);
    assert_true(strlen(id) <= LADE_ID_MAX);
    assert_true(lade_schedule_of_job(id, &of, &at));
    assert_int_equal(at, T0 * LADE_MILLISECOND);
    assert_false(lade_schedule_of_job("01HZX3V7Q2M4N5P6R7S8T9VWXY", &of, &at));
    assert_false(lade_schedule_of_job("order:x17", &of, &at));
    assert_false(lade_schedule_of_job(":1", &of, &at));
}

/* plan ------------------------------------------------------------------------------------------------------------- */

static struct lq_plan plan;

/* Every second from T0 on, `gap` seconds after the next time came. */
static void plan_seconds(struct lq_schedule_spec *s, int64_t gap)
{
    struct lq_calendar c;
    struct lq_memo m = {.next_ms = T0};
    s->cron = "";
    s->every_ms = 1000;
    s->tz = "";
    s->queue = "q";
    assert_int_equal(lq_schedule_calendar(s, 0, &c, NULL), 0);
    lq_plan_make(&plan, "a", s, &c, &m, T0 + gap * 1000);
    lq_calendar_fini(&c);
}

/* Years of seconds are passed over in bounded time, and the latest fires. */
static void years_of_missed_seconds_are_passed_over(void **state)
{
    (void)state;
    struct lq_schedule_spec s = {.missed = LADE_MISSED_ONE};
    const int64_t years = INT64_C(3) * 365 * 86400;
    plan_seconds(&s, years);
    assert_int_equal(plan.n, 1);
    assert_int_equal(plan.at_ms[0], T0 + years * 1000);
    assert_int_equal(plan.fired.next_ms, T0 + (years + 1) * 1000);
    assert_true(plan.fired.missed > 1000000);
    assert_true(plan.made_up);
}

static void more_than_a_fire_holds_is_made_up_for_step_by_step(void **state)
{
    (void)state;
    struct lq_schedule_spec s = {.missed = LADE_MISSED_ALL, .missed_max = 250};
    plan_seconds(&s, 999); /* 1000 are due */
    assert_int_equal(plan.n, LQ_FIRE_MAX);
    assert_int_equal(plan.at_ms[0], T0 + 750 * 1000);
    assert_int_equal(plan.n_missed, 750);
    assert_int_equal(plan.fired.next_ms, T0 + 850 * 1000);
    assert_int_equal(plan.fired_end.due_ms, T0 + 850 * 1000);
}

static void what_is_not_due_yet_is_left_alone(void **state)
{
    (void)state;
    struct lq_schedule_spec s = {.missed = LADE_MISSED_ONE};
    plan_seconds(&s, -1);
    assert_int_equal(plan.n, 0);
    assert_int_equal(plan.fired.next_ms, T0);
    assert_int_equal(plan.fired_end.due_ms, T0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bytes_of_a_spec_are_as_documented),
        cmocka_unit_test(the_bytes_of_a_memo_are_as_documented),
        cmocka_unit_test(damaged_bytes_are_refused),
        cmocka_unit_test(a_newer_version_is_told),
        cmocka_unit_test(the_envelope_of_a_fire_differs_in_its_time_only),
        cmocka_unit_test(the_history_keeps_the_newest),
        cmocka_unit_test(the_id_of_a_job_tells_its_schedule_and_time),
        cmocka_unit_test(years_of_missed_seconds_are_passed_over),
        cmocka_unit_test(more_than_a_fire_holds_is_made_up_for_step_by_step),
        cmocka_unit_test(what_is_not_due_yet_is_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
