#include "base/tz.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/base.h"
#include "base/civil.h"
#include "base/mem.h"
#include "base/tz_file.h"
#include "base/tz_rule.h"

static int64_t utc(int64_t year, int month, int day, int hour, int minute)
{
    return lb_civil_seconds(&(struct lb_civil){year, month, day, hour, minute, 0});
}

/* One instant, against the C library with TZ set to the zone. Its names are compared too: they tell one rule from the next. */
static void compare_at(const struct lb_tz *tz, const char *zone, int64_t t)
{
    time_t at = (time_t)t;
    struct tm tm;
    assert_non_null(localtime_r(&at, &tm));
    struct lb_tz_period p = lb_tz_at(tz, t);
    if (p.offset != tm.tm_gmtoff || p.dst != (tm.tm_isdst > 0) ||
        strcmp(p.abbreviation, tm.tm_zone) != 0)
        fail_msg("%s at %lld: %d %s, the C library says %ld %s", zone, (long long)t, p.offset,
                 p.abbreviation, tm.tm_gmtoff, tm.tm_zone);
    assert_true(p.from <= t && t < p.to);
}

static void compare_zone(const char *zone)
{
    struct lb_tz *tz;
    int64_t to = utc(2101, 1, 1, 0, 0);
    assert_int_equal(setenv("TZ", zone, 1), 0);
    tzset();
    assert_int_equal(lb_tz_open(&tz, zone, NULL), 0);
    for (int64_t t = utc(1900, 1, 1, 0, 0); t < to;) {
        struct lb_tz_period p = lb_tz_at(tz, t);
        compare_at(tz, zone, t);
        if (p.to >= to)
            break;
        compare_at(tz, zone, p.to - 1);
        t = p.to;
    }
    for (int64_t t = utc(1902, 1, 1, 0, 0); t < to; t += INT64_C(37) * 86400 + 1)
        compare_at(tz, zone, t);
    lb_tz_close(tz);
}

/* Over every zone that the machine has. */
static void all_zones_agree_with_the_c_library_from_1900_to_2100(void **state)
{
    (void)state;
    char line[512], name[128];
    int n = 0;
    FILE *f = fopen("/usr/share/zoneinfo/tzdata.zi", "re");
    assert_non_null(f);
    while (fgets(line, sizeof(line), f)) {
        if (sscanf(line, "Z %127s", name) == 1 || sscanf(line, "L %*s %127s", name) == 1) {
            compare_zone(name);
            n++;
        }
    }
    (void)fclose(f);
    assert_true(n > 400);
}

static struct lb_tz_local local_of(const char *zone, int64_t local)
{
    struct lb_tz *tz;
    assert_int_equal(lb_tz_open(&tz, zone, NULL), 0);
    struct lb_tz_local l = lb_tz_of_local(tz, local);
    lb_tz_close(tz);
    return l;
}

static void assert_local(const char *zone, int64_t local, enum lb_tz_kind kind, int64_t a,
                         int64_t b)
{
    struct lb_tz_local l = local_of(zone, local);
    assert_int_equal(l.kind, kind);
    assert_int_equal(l.instant[0], a);
    assert_int_equal(l.instant[1], b);
}

static void local_times_are_told_apart_at_changes_of_the_clock(void **state)
{
    (void)state;
    int64_t spring = utc(2027, 3, 28, 1, 0), autumn = utc(2027, 10, 31, 1, 0);
    assert_local("Europe/Berlin", utc(2027, 3, 28, 1, 59), LB_TZ_ONE, spring - 60, spring - 60);
    assert_local("Europe/Berlin", utc(2027, 3, 28, 2, 0), LB_TZ_GAP, spring, spring);
    assert_local("Europe/Berlin", utc(2027, 3, 28, 2, 59), LB_TZ_GAP, spring, spring);
    assert_local("Europe/Berlin", utc(2027, 3, 28, 3, 0), LB_TZ_ONE, spring, spring);
    assert_local("Europe/Berlin", utc(2027, 10, 31, 2, 0), LB_TZ_FOLD, autumn - 3600, autumn);
    assert_local("Europe/Berlin", utc(2027, 10, 31, 2, 59), LB_TZ_FOLD, autumn - 60, autumn + 3540);
    assert_local("Europe/Berlin", utc(2027, 10, 31, 3, 0), LB_TZ_ONE, autumn + 3600, autumn + 3600);
    assert_local("Australia/Lord_Howe", utc(2027, 10, 3, 2, 15), LB_TZ_GAP,
                 utc(2027, 10, 2, 15, 30), utc(2027, 10, 2, 15, 30));
}

/* Samoa had no 30 December 2011. */
static void a_day_that_never_was_is_a_gap(void **state)
{
    (void)state;
    int64_t change = utc(2011, 12, 30, 10, 0);
    assert_local("Pacific/Apia", utc(2011, 12, 30, 0, 0), LB_TZ_GAP, change, change);
    assert_local("Pacific/Apia", utc(2011, 12, 30, 23, 59), LB_TZ_GAP, change, change);
    assert_local("Pacific/Apia", utc(2011, 12, 31, 0, 0), LB_TZ_ONE, change, change);
}

static void fixed_offsets_are_zones(void **state)
{
    (void)state;

    static const struct {
        const char *name;
        int32_t offset;
    } good[] = {{"UTC", 0},    {"Z", 0},       {"+02:00", 7200},   {"-0330", -12600},
                {"+5", 18000}, {"+05", 18000}, {"-23:59", -86340}, {"+00:00", 0}};

    static const char *const bad[] = {"",
                                      "+",
                                      "+24",
                                      "+2:30",
                                      "+02:",
                                      "+02:60",
                                      "+123",
                                      "++1",
                                      "2",
                                      "Mars",
                                      "Europe/../Europe/Berlin",
                                      "/etc/passwd",
                                      "Europe",
                                      "posixrules\n",
                                      "europe/berlin x",
                                      "+020000",
                                      "-",
                                      "."};
    struct lb_tz *tz;
    for (size_t i = 0; i < LB_ARRAY_LEN(good); i++) {
        assert_int_equal(lb_tz_open(&tz, good[i].name, NULL), 0);
        assert_int_equal(lb_tz_at(tz, 1700000000).offset, good[i].offset);
        lb_tz_close(tz);
    }
    for (size_t i = 0; i < LB_ARRAY_LEN(bad); i++) {
        lade_err err;
        if (lb_tz_open(&tz, bad[i], &err) == 0)
            fail_msg("'%s' was taken as a zone", bad[i]);
        assert_true(strlen(err.text) > 0);
    }
}

static void damaged_files_are_refused_without_harm(void **state)
{
    (void)state;
    static uint8_t whole[1 << 16];
    FILE *f = fopen("/usr/share/zoneinfo/Europe/Berlin", "rbe");
    assert_non_null(f);
    size_t n = fread(whole, 1, sizeof(whole), f);
    (void)fclose(f);
    assert_true(n > 100 && n < sizeof(whole));
    for (size_t cut = 0; cut < n; cut++) {
        struct lb_tz *tz = lb_calloc(1, sizeof(*tz));
        uint8_t *copy = lb_malloc(cut + 1);
        assert_non_null(tz);
        assert_non_null(copy);
        memcpy(copy, whole, cut);
        bool taken = lb_tz_file_parse(tz, lb_slice(copy, cut));
        lb_free(copy);
        lb_tz_close(tz);
        assert_false(taken);
    }
}

static void rules_that_are_none_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "CET",
                                      "CET-1CEST",
                                      "CET-1CEST,M3.5.0",
                                      "CET-25",
                                      "<+03-3",
                                      "CET-1CEST,M13.5.0,M10.5.0",
                                      "CET-1CEST,M3.6.0,M10.5.0",
                                      "CET-1CEST,J0,J1",
                                      "CET-1CEST,M3.5.0/168,M10.5.0",
                                      "CET-1x"};
    struct lb_tz_rule rule;
    for (size_t i = 0; i < LB_ARRAY_LEN(bad); i++)
        assert_false(lb_tz_rule_parse(&rule, lb_slice_str(bad[i])));
    assert_true(lb_tz_rule_parse(&rule, lb_slice_str("<-03>3<-02>,M3.5.0/-2,M10.5.0/-1")));
    assert_int_equal(rule.change[0].at, -7200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_zones_agree_with_the_c_library_from_1900_to_2100),
        cmocka_unit_test(local_times_are_told_apart_at_changes_of_the_clock),
        cmocka_unit_test(a_day_that_never_was_is_a_gap),
        cmocka_unit_test(fixed_offsets_are_zones),
        cmocka_unit_test(damaged_files_are_refused_without_harm),
        cmocka_unit_test(rules_that_are_none_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
