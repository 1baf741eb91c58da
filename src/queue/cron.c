/*
 * cron.c - the next time an expression names
 *
 * Months are looked at one after the other; for each that is named, the days it names become one mask of bits, so that what
 * L, W and # mean is decided once a month and not day by day. Within a day the first time is read from the bit sets.
 * The search is bounded by 400 years, after which the Gregorian calendar repeats, weekdays included.
 */
#include "queue/cron.h"

#include "base/base.h"

#define SEARCH_MONTHS (400 * 12)

static int first_bit(uint64_t set, int from)
{
    uint64_t rest = from >= 0 && from < 64 ? set >> from << from : 0;
    return rest ? __builtin_ctzll(rest) : -1;
}

/* The mask keeps the shift defined whatever the day; days are 1..31. */
static uint64_t bit_of(int day)
{
    return UINT64_C(1) << (day & 31);
}

/* The weekday (Monday to Friday) nearest to `day`, which does not leave the month. */
static int move_to_weekday(int day, int weekday, int n_days)
{
    if (weekday == 6)
        return day > 1 ? day - 1 : day + 2;
    if (weekday == 0)
        return day < n_days ? day + 1 : day - 2;
    return day;
}

static uint64_t name_days(const struct lq_cron *c, int n_days, int weekday_of_first)
{
    uint64_t set = c->days;
    for (int day = 1; day <= n_days; day++) {
        if (c->nearest >> day & 1)
            set |= bit_of(move_to_weekday(day, (weekday_of_first + day - 1) % 7, n_days));
        if (c->before_last >> (n_days - day) & 1)
            set |= bit_of(day);
    }
    if (c->last_weekday) {
        int weekday = (weekday_of_first + n_days - 1) % 7;
        set |= bit_of(move_to_weekday(n_days, weekday, n_days));
    }
    return set;
}

static uint64_t name_weekdays(const struct lq_cron *c, int n_days, int weekday_of_first)
{
    uint64_t set = 0;
    for (int day = 1; day <= n_days; day++) {
        int weekday = (weekday_of_first + day - 1) % 7;
        int nth = (day - 1) / 7 + 1;
        if ((c->weekdays >> weekday & 1) || (c->nth[weekday] >> nth & 1) ||
            ((c->last >> weekday & 1) && day + 7 > n_days))
            set |= bit_of(day);
    }
    return set;
}

/* The days of the month that are named, as bits 1..31. */
static uint64_t days_of_month(const struct lq_cron *c, int64_t year, int month)
{
    int n_days = lb_civil_days_in(year, month);
    int weekday = lb_civil_weekday(lb_civil_days(year, month, 1));
    uint64_t days = name_days(c, n_days, weekday);
    uint64_t weekdays = name_weekdays(c, n_days, weekday);
    uint64_t both = c->any_day || c->any_weekday ? days & weekdays : days | weekdays;
    return both & ((UINT64_C(2) << n_days) - 2);
}

/* The first time of day at or after `second` of a day; false when the day has none left. */
static bool find_time(const struct lq_cron *c, int second, int *found)
{
    int h = second / 3600, m = second / 60 % 60, s = first_bit(c->seconds, second % 60);
    if (s < 0) {
        s = first_bit(c->seconds, 0);
        m++;
    }
    int hour = first_bit(c->hours, h);
    if (hour != h)
        m = 60;
    int minute = first_bit(c->minutes, m);
    if (hour == h && minute < 0)
        hour = first_bit(c->hours, h + 1);
    if (hour < 0)
        return false;
    if (hour != h)
        minute = first_bit(c->minutes, 0);
    if (hour != h || minute != second / 60 % 60)
        s = first_bit(c->seconds, 0);
    *found = hour * 3600 + minute * 60 + s;
    return true;
}

bool lq_cron_next(const struct lq_cron *c, int64_t after, int64_t *next)
{
    struct lb_civil from = lb_civil_of(after + 1);
    int second = from.hour * 3600 + from.minute * 60 + from.second, time;
    int64_t year = from.year;
    int month = from.month, day = from.day;
    for (int i = 0; i < SEARCH_MONTHS; i++) {
        uint64_t days = c->months >> month & 1 ? days_of_month(c, year, month) : 0;
        for (int d = first_bit(days, day); d > 0; d = first_bit(days, d + 1)) {
            if (find_time(c, d == day ? second : 0, &time)) {
                *next = lb_civil_days(year, month, d) * LB_DAY_SECONDS + time;
                return true;
            }
        }
        day = 1;
        second = 0;
        if (++month > 12) {
            month = 1;
            year++;
        }
    }
    return false;
}
