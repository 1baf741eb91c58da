#include "queue/calendar.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"

static void make(struct lq_calendar *c, const char *cron, const char *zone, enum lq_gap gap,
                 enum lq_fold fold)
{
    lade_err err = {0};
    struct lq_calendar_spec spec = {.cron = cron, .zone = zone, .gap = gap, .fold = fold};
    if (lq_calendar_init(c, &spec, &err) < 0)
        fail_msg("%s %s: %s", cron, zone, err.text);
}

static int64_t utc(int64_t year, int month, int day, int hour, int minute)
{
    return lb_civil_seconds(&(struct lb_civil){year, month, day, hour, minute, 0});
}

/* All fires in [from, to), in UTC seconds. */
static size_t list_fires(const struct lq_calendar *c, int64_t from, int64_t to, int64_t *fire,
                         size_t max)
{
    size_t n = 0;
    int64_t at = from * LADE_SECOND - 1;
    while (n < max && (at = lq_calendar_next(c, at)) < to * LADE_SECOND)
        fire[n++] = at / LADE_SECOND;
    return n;
}

static void assert_fires(const char *cron, const char *zone, enum lq_gap gap, enum lq_fold fold,
                         int64_t from, int64_t to, const int64_t *wanted, size_t n_wanted)
{
    struct lq_calendar c;
    int64_t fire[64] = {0};
    make(&c, cron, zone, gap, fold);
    size_t n = list_fires(&c, from, to, fire, 64);
    lq_calendar_fini(&c);
    if (n != n_wanted)
        fail_msg("%s in %s: %zu fires, not %zu", cron, zone, n, n_wanted);
    assert_memory_equal(fire, wanted, n * sizeof(fire[0]));
}

#define FIRES(...) (const int64_t[]){__VA_ARGS__}, LB_ARRAY_LEN(((const int64_t[]){__VA_ARGS__}))

/* chasqui 44 */
static void a_gap_is_shifted_to_the_change_or_skipped(void **state)
{
    (void)state;
    int64_t from = utc(2027, 3, 27, 12, 0), to = utc(2027, 3, 29, 12, 0);
    int64_t change = utc(2027, 3, 28, 1, 0);
    assert_fires("30 2 * * *", "Europe/Berlin", LQ_GAP_SHIFT, LQ_FOLD_FIRST, from, to,
                 FIRES(change, utc(2027, 3, 29, 0, 30)));
    assert_fires("*/20 2 * * *", "Europe/Berlin", LQ_GAP_SHIFT, LQ_FOLD_FIRST, from,
                 utc(2027, 3, 28, 12, 0), FIRES(change)); /* three that are missing are one */
    assert_fires("30 2,3 * * *", "Europe/Berlin", LQ_GAP_SHIFT, LQ_FOLD_FIRST, from,
                 utc(2027, 3, 28, 12, 0), FIRES(change, change + 1800));
    assert_fires("30 2 * * *", "Europe/Berlin", LQ_GAP_SKIP, LQ_FOLD_FIRST, from, to,
                 FIRES(utc(2027, 3, 29, 0, 30)));
}

/* chasqui 44 */
static void a_fold_fires_first_second_or_both(void **state)
{
    (void)state;
    int64_t from = utc(2027, 10, 30, 12, 0), to = utc(2027, 10, 31, 12, 0),
            change = utc(2027, 10, 31, 1, 0);
    assert_fires("30 2 * * *", "Europe/Berlin", LQ_GAP_SHIFT, LQ_FOLD_FIRST, from, to,
                 FIRES(change - 1800));
    assert_fires("30 2 * * *", "Europe/Berlin", LQ_GAP_SHIFT, LQ_FOLD_BOTH, from, to,
                 FIRES(change - 1800, change + 1800));
    assert_fires("0 2,3 * * *", "Europe/Berlin", LQ_GAP_SHIFT, LQ_FOLD_BOTH, from, to,
                 FIRES(change - 3600, change, change + 3600));
    assert_fires("30 2 * * *", "Europe/Berlin", LQ_GAP_SHIFT, LQ_FOLD_SECOND, from, to,
                 FIRES(change + 1800));
    assert_fires("30 1,2 * * *", "Europe/Berlin", LQ_GAP_SHIFT, LQ_FOLD_SECOND, change - 1200, to,
                 FIRES(change + 1800));
}

static void an_expression_without_hours_follows_elapsed_time(void **state)
{
    (void)state;
    int64_t spring = utc(2027, 3, 28, 1, 0), autumn = utc(2027, 10, 31, 1, 0);
    assert_fires("7,37 * * * *", "Europe/Berlin", LQ_GAP_SHIFT, LQ_FOLD_FIRST, spring - 3600,
                 spring + 3600, FIRES(spring - 3180, spring - 1380, spring + 420, spring + 2220));
    assert_fires("7,37 * * * *", "Europe/Berlin", LQ_GAP_SHIFT, LQ_FOLD_FIRST, autumn - 3600,
                 autumn + 3600, FIRES(autumn - 3180, autumn - 1380, autumn + 420, autumn + 2220));
}

/* C-054 */
static void c054_a_short_day_is_not_jumped_over(void **state)
{
    (void)state;
    assert_fires("0 12 * * 0", "Europe/Berlin", LQ_GAP_SHIFT, LQ_FOLD_FIRST,
                 utc(2022, 3, 24, 11, 0), utc(2022, 4, 4, 0, 0),
                 FIRES(utc(2022, 3, 27, 10, 0), utc(2022, 4, 3, 10, 0)));
}

/* C-055: changes at midnight, by half an hour, over a whole day: each local day that was has one fire. */
static void c055_each_local_day_has_one_fire(void **state)
{
    (void)state;

    static const struct {
        const char *zone, *cron;
        int64_t year;
    } row[] = {
        {"America/Havana", "0 0 * * *", 2027},    {"Asia/Beirut", "0 0 * * *", 2027},
        {"America/Sao_Paulo", "0 0 * * *", 2017}, {"Australia/Lord_Howe", "15 2 * * *", 2027},
        {"Pacific/Apia", "0 0 * * *", 2011},      {"Africa/Casablanca", "30 2 * * *", 2027}};

    for (size_t i = 0; i < LB_ARRAY_LEN(row); i++) {
        struct lq_calendar c;
        int64_t fire[400] = {0}, last = 0;
        make(&c, row[i].cron, row[i].zone, LQ_GAP_SHIFT, LQ_FOLD_FIRST);
        size_t n = list_fires(&c, utc(row[i].year, 1, 2, 12, 0), utc(row[i].year + 1, 1, 2, 12, 0),
                              fire, 400);
        for (size_t k = 0; k < n; k++) {
            int64_t day = lb_floor_div(fire[k] + lb_tz_at(c.tz, fire[k]).offset, LB_DAY_SECONDS);
            bool apia = !strcmp(row[i].zone, "Pacific/Apia") && day == lb_civil_days(2011, 12, 31);
            assert_true(k == 0 || day == last + 1 + apia);
            last = day;
        }
        lq_calendar_fini(&c);
    }
}

/*
 * An oracle that knows no order: does the schedule fire at this second? Written from the rules of calendar.h, by asking every
 * local second whose instant this could be.
 */
static bool names(const struct lq_cron *c, int64_t local)
{
    int64_t next;
    return lq_cron_next(c, local - 1, &next) && next == local;
}

static bool is_fire(const struct lq_calendar *c, int64_t t)
{
    struct lb_tz_period now = lb_tz_at(c->tz, t);
    if (names(&c->cron, t + now.offset)) {
        bool second = now.from != INT64_MIN &&
                      t + now.offset < now.from + lb_tz_at(c->tz, now.from - 1).offset;
        bool first =
            now.to != INT64_MAX && t + now.offset >= now.to + lb_tz_at(c->tz, now.to).offset;
        if (c->fold == LQ_FOLD_BOTH || c->cron.every_hour ||
            !(c->fold == LQ_FOLD_SECOND ? first : second))
            return true;
    }
    if (t != now.from || c->gap == LQ_GAP_SKIP || c->cron.every_hour)
        return false;
    for (int64_t local = t + lb_tz_at(c->tz, t - 1).offset; local < t + now.offset; local += 60) {
        if (names(&c->cron, local))
            return true;
    }
    return false;
}

static void scan(const struct lq_calendar *c, const char *zone, const char *cron, int64_t from,
                 int64_t to)
{
    int64_t next = lq_calendar_next(c, from * LADE_SECOND - 1) / LADE_SECOND;
    for (int64_t t = from; t < to; t += 60) {
        if (is_fire(c, t) != (t == next))
            fail_msg("%s in %s: scan and search differ at %lld", cron, zone, (long long)t);
        if (t == next)
            next = lq_calendar_next(c, t * LADE_SECOND) / LADE_SECOND;
    }
}

static void scan_zone(const char *zone, enum lq_fold fold)
{
    static const char *const cron[] = {"30 2 * * *", "*/30 0-3 * * *", "*/17 * * * *", "0 0 * * 0"};
    for (size_t i = 0; i < LB_ARRAY_LEN(cron); i++) {
        struct lq_calendar c;
        const char *text = cron[i];
        make(&c, text, zone, i % 2 ? LQ_GAP_SKIP : LQ_GAP_SHIFT, fold);
        int64_t end = utc(2031, 1, 1, 0, 0);
        for (struct lb_tz_period p = lb_tz_at(c.tz, utc(2021, 1, 1, 0, 0)); p.to < end;
             p = lb_tz_at(c.tz, p.to))
            scan(&c, zone, text, p.to - 3 * 3600, p.to + 3 * 3600);
        lq_calendar_fini(&c);
    }
}

/* C-054: a scan of the minutes around all changes of ten years, in every zone that has a history of its own. */
static void c054_scan_and_search_agree_in_all_zones(void **state)
{
    (void)state;
    char line[512], name[128];
    int n = 0;
    FILE *f = fopen("/usr/share/zoneinfo/tzdata.zi", "re");
    assert_non_null(f);
    while (fgets(line, sizeof(line), f)) {
        if (sscanf(line, "Z %127s", name) == 1) {
            scan_zone(name, (enum lq_fold)(n % 3));
            scan_zone(name, (enum lq_fold)((n + 1) % 3));
            scan_zone(name, (enum lq_fold)((n + 2) % 3));
            n++;
        }
    }
    (void)fclose(f);
    assert_true(n > 200);
}

static void every_is_counted_from_its_anchor(void **state)
{
    (void)state;
    struct lq_calendar c;
    struct lq_calendar_spec spec = {.every = 10 * LADE_SECOND, .anchor = 3 * LADE_SECOND};
    assert_int_equal(lq_calendar_init(&c, &spec, NULL), 0);
    assert_int_equal(lq_calendar_next(&c, 3 * LADE_SECOND), 13 * LADE_SECOND);
    assert_int_equal(lq_calendar_next(&c, 3 * LADE_SECOND - 1), 3 * LADE_SECOND);
    assert_int_equal(lq_calendar_next(&c, -18 * LADE_SECOND), -17 * LADE_SECOND);
    assert_int_equal(lq_calendar_next(&c, INT64_MAX - 1), LQ_NEVER);
    lq_calendar_fini(&c);
}

/* chasqui 45 */
static void start_and_end_bound_the_fires(void **state)
{
    (void)state;
    struct lq_calendar c;
    struct lq_calendar_spec spec = {
        .every = 10 * LADE_SECOND, .start = 100 * LADE_SECOND, .end = 120 * LADE_SECOND};
    assert_int_equal(lq_calendar_init(&c, &spec, NULL), 0);
    assert_int_equal(lq_calendar_next(&c, 0), 100 * LADE_SECOND);
    assert_int_equal(lq_calendar_next(&c, 100 * LADE_SECOND), 110 * LADE_SECOND);
    assert_int_equal(lq_calendar_next(&c, 110 * LADE_SECOND), LQ_NEVER);
    lq_calendar_fini(&c);
}

/* chronos 56: 05:00 in Seoul is 20:00 UTC. chasqui 44. */
static void zones_come_from_the_spec_or_the_expression(void **state)
{
    (void)state;
    int64_t from = utc(2027, 1, 1, 0, 0), to = utc(2027, 1, 2, 0, 0);
    assert_fires("CRON_TZ=Asia/Seoul 0 5 * * *", NULL, LQ_GAP_SHIFT, LQ_FOLD_FIRST, from, to,
                 FIRES(utc(2027, 1, 1, 20, 0)));
    assert_fires("0 5 * * *", "Asia/Seoul", LQ_GAP_SHIFT, LQ_FOLD_FIRST, from, to,
                 FIRES(utc(2027, 1, 1, 20, 0)));
    assert_fires("0 5 * * *", "+09:00", LQ_GAP_SHIFT, LQ_FOLD_FIRST, from, to,
                 FIRES(utc(2027, 1, 1, 20, 0)));
    assert_fires("0 5 * * *", NULL, LQ_GAP_SHIFT, LQ_FOLD_FIRST, from, to,
                 FIRES(utc(2027, 1, 1, 5, 0)));
}

/* chronos 56 */
static void impossible_specs_are_refused(void **state)
{
    (void)state;
    static const struct lq_calendar_spec bad[] = {
        {0},
        {.cron = "* * * * *", .every = LADE_SECOND},
        {.every = LADE_SECOND - 1},
        {.every = -LADE_SECOND},
        {.every = LADE_SECOND, .start = 5, .end = 5},
        {.cron = "* * * * *", .zone = "Mars"},
        {.cron = "CRON_TZ=Mars * * * * *"},
        {.cron = "61 * * * *"},
    };
    for (size_t i = 0; i < LB_ARRAY_LEN(bad); i++) {
        struct lq_calendar c;
        lade_err err = {0};
        assert_int_equal(lq_calendar_init(&c, &bad[i], &err), -LADE_EINVAL);
        assert_true(strlen(err.text) > 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gap_is_shifted_to_the_change_or_skipped),
        cmocka_unit_test(a_fold_fires_first_second_or_both),
        cmocka_unit_test(an_expression_without_hours_follows_elapsed_time),
        cmocka_unit_test(c054_a_short_day_is_not_jumped_over),
        cmocka_unit_test(c055_each_local_day_has_one_fire),
        cmocka_unit_test(c054_scan_and_search_agree_in_all_zones),
        cmocka_unit_test(every_is_counted_from_its_anchor),
        cmocka_unit_test(start_and_end_bound_the_fires),
        cmocka_unit_test(zones_come_from_the_spec_or_the_expression),
        cmocka_unit_test(impossible_specs_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
