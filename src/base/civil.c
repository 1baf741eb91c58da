/*
 * civil.c - counting days
 *
 * Years are made to begin in March, so that the leap day is the last of its year; the days before month m (March = 0)
 * are then (153 m + 2) / 5. Days are counted in eras of 400 years, which are all alike.
 * Source of the algorithm: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms",
 * https://howardhinnant.github.io/date_algorithms.html
 */
#include "base/civil.h"

#define ERA_YEARS  400
#define ERA_DAYS   146097
#define EPOCH_DAYS 719468 /* 0000-03-01 to 1970-01-01 */

bool lb_civil_leap(int64_t year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

int lb_civil_days_in(int64_t year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return days[month - 1] + (month == 2 && lb_civil_leap(year));
}

int64_t lb_civil_days(int64_t year, int month, int day)
{
    int64_t y = year - (month <= 2);
    int64_t era = lb_floor_div(y, ERA_YEARS);
    int64_t of_era = y - era * ERA_YEARS;
    int64_t of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    return era * ERA_DAYS + of_era * 365 + of_era / 4 - of_era / 100 + of_year - EPOCH_DAYS;
}

int lb_civil_weekday(int64_t days)
{
    int64_t shifted = days + 4; /* 1970-01-01 was a Thursday */
    return (int)(shifted - lb_floor_div(shifted, 7) * 7);
}

int64_t lb_civil_seconds(const struct lb_civil *c)
{
    return lb_civil_days(c->year, c->month, c->day) * LB_DAY_SECONDS + c->hour * 3600 +
           c->minute * 60 + c->second;
}

struct lb_civil lb_civil_of(int64_t seconds)
{
    int64_t days = lb_floor_div(seconds, LB_DAY_SECONDS);
    int rest = (int)(seconds - days * LB_DAY_SECONDS);
    int64_t shifted = days + EPOCH_DAYS;
    int64_t era = lb_floor_div(shifted, ERA_DAYS);
    int64_t d = shifted - era * ERA_DAYS;
    int64_t y = (d - d / 1460 + d / 36524 - d / 146096) / 365;
    int64_t of_year = d - (365 * y + y / 4 - y / 100);
    int64_t m = (5 * of_year + 2) / 153;
    int month = (int)(m < 10 ? m + 3 : m - 9);
    return (struct lb_civil){.year = y + era * ERA_YEARS + (month <= 2),
                             .month = month,
                             .day = (int)(of_year - (153 * m + 2) / 5 + 1),
                             .hour = rest / 3600,
                             .minute = rest / 60 % 60,
                             .second = rest % 60};
}
