/*
 * civil.h - dates and times of day as people write them, without zones
 *
 * The proleptic Gregorian calendar; a local time counts seconds since 1970-01-01 00:00 on the wall clock it is read from.
 *
 * Thread safety: all functions are pure.
 */
#ifndef LADE_BASE_CIVIL_H
#define LADE_BASE_CIVIL_H

#include <stdbool.h>
#include <stdint.h>

#define LB_DAY_SECONDS 86400

struct lb_civil {
    int64_t year;
    int month; /* 1..12 */
    int day;   /* 1..31 */
    int hour, minute, second;
};

bool lb_civil_leap(int64_t year);
/* 28..31; month 1..12. */
int lb_civil_days_in(int64_t year, int month);
/* Days since 1970-01-01; |year| up to some 2^55. */
int64_t lb_civil_days(int64_t year, int month, int day);
/* 0 = Sunday. */
int lb_civil_weekday(int64_t days);

int64_t lb_civil_seconds(const struct lb_civil *c);
struct lb_civil lb_civil_of(int64_t seconds);

/* Quotient and remainder of a division that rounds down. */
static inline int64_t lb_floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && (a % b < 0) != (b < 0));
}

#endif
