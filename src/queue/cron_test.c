#include "queue/cron.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"

static struct lq_cron parse(const char *text)
{
    struct lq_cron c;
    lade_err err = {0};
    if (lq_cron_parse(&c, text, NULL, &err) < 0)
        fail_msg("%s: %s", text, err.text);
    return c;
}

/* "2027-03-28 02:30:00" */
static int64_t read_local(const char *s)
{
    int at[] = {0, 5, 8, 11, 14, 17};
    int part[6];
    assert_int_equal(strlen(s), 19);
    for (int i = 0; i < 6; i++)
        part[i] = (int)strtol(s + at[i], NULL, 10);
    return lb_civil_seconds(
        &(struct lb_civil){part[0], part[1], part[2], part[3], part[4], part[5]});
}

static void assert_next(const char *cron, const char *after, const char *wanted)
{
    struct lq_cron c = parse(cron);
    char text[32];
    int64_t next = 0;
    assert_true(lq_cron_next(&c, read_local(after), &next));
    struct lb_civil t = lb_civil_of(next);
    (void)snprintf(text, sizeof(text), "%04ld-%02d-%02d %02d:%02d:%02d", t.year, t.month, t.day,
                   t.hour, t.minute, t.second);
    if (strcmp(text, wanted) != 0)
        fail_msg("%s after %s: %s, not %s", cron, after, text, wanted);
}

static void next_is_later_than_after(void **state)
{
    (void)state;
    assert_next("* * * * *", "2027-01-01 00:00:00", "2027-01-01 00:01:00");
    assert_next("* * * * *", "2027-01-01 00:00:59", "2027-01-01 00:01:00");
    assert_next("* * * * * *", "2027-12-31 23:59:59", "2028-01-01 00:00:00");
    assert_next("30 8 * * *", "2027-01-01 08:29:59", "2027-01-01 08:30:00");
    assert_next("30 8 * * *", "2027-01-01 08:30:00", "2027-01-02 08:30:00");
    assert_next("*/15 9-17/4 * * *", "2027-01-01 09:45:00", "2027-01-01 13:00:00");
    assert_next("10,40 5,23 * * *", "2027-01-01 05:40:00", "2027-01-01 23:10:00");
    assert_next("5/20 * * * *", "2027-01-01 05:26:00", "2027-01-01 05:45:00");
    assert_next("15 30 8 * * *", "2027-01-01 08:30:15", "2027-01-02 08:30:15");
    assert_next("0 0 29 2 *", "2027-01-01 00:00:00", "2028-02-29 00:00:00");
    assert_next("0 0 29 2 *", "2096-03-01 00:00:00", "2104-02-29 00:00:00");
}

/* C-056 (chasqui 43) */
static void c056_sunday_is_0_and_7_in_five_and_six_fields(void **state)
{
    (void)state;
    static const char *const sunday[] = {"0 0 * * 7",      "0 0 0 * * 7", "0 0 * * 0",
                                         "0 0 * * SUN",    "@weekly",     "0\t0 * * 07 ",
                                         "  00 00 * * sun"};
    for (size_t i = 0; i < LB_ARRAY_LEN(sunday); i++)
        assert_next(sunday[i], "2027-01-01 00:00:00", "2027-01-03 00:00:00");
    assert_int_equal(parse("0 0 * * 6-7").weekdays, 0x41);
    assert_int_equal(parse("0 0 * * fri-sun").weekdays, 0x61);
    assert_int_equal(parse("0 0 * * 5-7").weekdays, 0x61);
    assert_int_equal(parse("0 0 * * */2").weekdays, 0x55);
    assert_int_equal(parse("0 0 * * *").weekdays, 0x7f);
    assert_int_equal(parse("0 0 * jan-MAR,Dec *").months, 0x100e);
}

static void last_days_nearest_weekdays_and_nth_weekdays(void **state)
{
    (void)state;
    assert_next("0 0 L * *", "2027-02-01 00:00:00", "2027-02-28 00:00:00");
    assert_next("0 0 L-3 * *", "2028-02-01 00:00:00", "2028-02-26 00:00:00");
    assert_next("0 0 LW * *", "2027-02-01 00:00:00",
                "2027-02-26 00:00:00"); /* the 28th is a Sunday */
    assert_next("0 0 15W * *", "2027-05-01 00:00:00", "2027-05-14 00:00:00"); /* a Saturday */
    assert_next("0 0 15W * *", "2027-08-01 00:00:00", "2027-08-16 00:00:00"); /* a Sunday */
    assert_next("0 0 1W * *", "2027-05-01 00:00:00",
                "2027-05-03 00:00:00"); /* not back into April */
    assert_next("0 0 31W * *", "2027-10-01 00:00:00",
                "2027-10-29 00:00:00"); /* not on into November */
    assert_next("0 0 * * 5L", "2027-01-01 00:00:00", "2027-01-29 00:00:00");
    assert_next("0 0 * * 5#3", "2027-01-01 00:00:00", "2027-01-15 00:00:00");
    assert_next("0 0 * * mon#5", "2027-01-01 00:00:00", "2027-03-29 00:00:00");
    assert_next("0 0 * * 7#1", "2027-01-01 00:00:00", "2027-01-03 00:00:00");
}

static void either_day_field_is_enough_unless_one_begins_with_a_star(void **state)
{
    (void)state;
    assert_next("0 0 13 * 5", "2027-01-01 00:00:00", "2027-01-08 00:00:00");
    assert_next("0 0 13 * 5", "2027-01-08 00:00:00", "2027-01-13 00:00:00");
    assert_next("0 0 13 * ?", "2027-01-01 00:00:00", "2027-01-13 00:00:00");
    assert_next("0 0 ? * 5", "2027-01-01 00:00:00", "2027-01-08 00:00:00");
    assert_next("0 0 */2 * 5", "2027-01-01 00:00:00",
                "2027-01-15 00:00:00"); /* odd days that are Fridays */
}

/* chronos 56 */
static void macros_and_every(void **state)
{
    (void)state;
    assert_next("@yearly", "2027-01-01 00:00:00", "2028-01-01 00:00:00");
    assert_next("@annually", "2027-01-01 00:00:00", "2028-01-01 00:00:00");
    assert_next("@monthly", "2027-01-01 00:00:00", "2027-02-01 00:00:00");
    assert_next("@daily", "2027-01-01 00:00:00", "2027-01-02 00:00:00");
    assert_next("@midnight ", "2027-01-01 00:00:00", "2027-01-02 00:00:00");
    assert_next("@HOURLY", "2027-01-01 00:00:00", "2027-01-01 01:00:00");
    assert_int_equal(parse("@every 90s").every, 90 * LADE_SECOND);
    assert_int_equal(parse("@every 1h30m").every, 90 * LADE_MINUTE);
    char zone[LB_TZ_NAME_MAX + 1];
    struct lq_cron c;
    assert_int_equal(lq_cron_parse(&c, "CRON_TZ=Asia/Seoul 0 5 * * *", zone, NULL), 0);
    assert_string_equal(zone, "Asia/Seoul");
    assert_int_equal(lq_cron_parse(&c, "TZ=UTC @daily", zone, NULL), 0);
    assert_string_equal(zone, "UTC");
}

static void assert_refused(const char *text, const char *field, int column)
{
    struct lq_cron c;
    lade_err err = {0};
    char at[32];
    if (lq_cron_parse(&c, text, NULL, &err) != -LADE_EINVAL)
        fail_msg("'%s' was taken", text);
    (void)snprintf(at, sizeof(at), "column %d:", column);
    if (field && (!strstr(err.text, field) || !strstr(err.text, at)))
        fail_msg("'%s': %s (wanted %s, %s)", text, err.text, field, at);
}

/* C-057 (chronos 56) */
static void c057_malformed_fields_are_refused_with_field_and_column(void **state)
{
    (void)state;
    assert_refused("* * * * 100", "day-of-week", 9);
    assert_refused("60 * * * *", "minute", 1);
    assert_refused("*/0 * * * *", "minute", 1);
    assert_refused("5-1 * * * *", "minute", 1);
    assert_refused("1,,2 * * * *", "minute", 3);
    assert_refused("-1 * * * *", "minute", 1);
    assert_refused("99999999999 * * * *", "minute", 1);
    assert_refused("0 24 * * *", "hour", 3);
    assert_refused("0 0 0 * *", "day-of-month", 5);
    assert_refused("0 0 1 13 *", "month", 7);
    assert_refused("0 0 1 foo *", "month", 7);
    assert_refused("0 0 L1 * *", "day-of-month", 5);
    assert_refused("0 0 * * 5#6", "day-of-week", 9);
    assert_refused("0 0 * * L", "day-of-week", 9);
    assert_refused("0 0 * * 8", "day-of-week", 9);
    assert_refused("0 0 5# * *", "day-of-month", 5);
    assert_refused("0 ? * * *", "hour", 3);
    assert_refused("\xd9\xa1 * * * *", "minute", 1); /* an Arabic digit */
    assert_refused("*/61 * * * *", "minute", 1);
    assert_refused("1- * * * *", "minute", 1);
    assert_refused("1/ * * * *", "minute", 1);
    static const char *const other[] = {"",
                                        " ",
                                        "* * * *",
                                        "* * * * * * *",
                                        "@",
                                        "@never",
                                        "@daily x",
                                        "@every",
                                        "@every 0s",
                                        "@every 5",
                                        "@every -5s",
                                        "@every 5x",
                                        "0 0 30 2 *",
                                        "0 0 31 4,6 *",
                                        "TZ= * * * * *",
                                        "TZ=UTC * * * * *"};
    for (size_t i = 0; i < LB_ARRAY_LEN(other); i++)
        assert_refused(other[i], NULL, 0);
    char *huge = malloc(1 << 20);
    assert_non_null(huge);
    memset(huge, '*', (1 << 20) - 1);
    huge[(1 << 20) - 1] = 0;
    assert_refused(huge, NULL, 0);
    free(huge);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(next_is_later_than_after),
        cmocka_unit_test(c056_sunday_is_0_and_7_in_five_and_six_fields),
        cmocka_unit_test(last_days_nearest_weekdays_and_nth_weekdays),
        cmocka_unit_test(either_day_field_is_enough_unless_one_begins_with_a_star),
        cmocka_unit_test(macros_and_every),
        cmocka_unit_test(c057_malformed_fields_are_refused_with_field_and_column),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
