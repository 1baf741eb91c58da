/*
 * cron.h - cron expressions: when, in local time
 *
 *   minute hour day-of-month month day-of-week            five fields
 *   second minute hour day-of-month month day-of-week     six fields: the first is the second
 *   @yearly @annually @monthly @weekly @daily @midnight @hourly, @every 90s
 *   CRON_TZ=Europe/Berlin or TZ=... may stand in front
 *
 * A field is a list of  *  n  n-m  *\/step  n-m/step  n/step (n to the end). Months and weekdays may be names (jan, SUN), 7 is Sunday too, and
 * a range may end there (fri-sun, 6-7). `?` is `*` in the two day fields. Day-of-month also has  L (last day), L-3 (three
 * days before it), LW (last weekday), 15W (the weekday nearest to the 15th, within the month). Day-of-week also has  5L
 * (last Friday), 5#3 (third Friday). When neither day field begins with `*` or `?`, either is enough (as in Vixie cron).
 *
 * Thread safety: all functions are pure.
 */
#ifndef LADE_QUEUE_CRON_H
#define LADE_QUEUE_CRON_H

#include <lade/base.h>

#include "base/civil.h"
#include "base/tz.h"

#define LQ_CRON_TEXT_MAX 256

struct lq_cron {
    int64_t every; /* ns; > 0: @every, and nothing else below counts */
    uint64_t seconds, minutes;
    uint32_t hours;
    uint32_t days;             /* bits 1..31 */
    uint32_t nearest;          /* bits 1..31: nW */
    uint32_t before_last;      /* bits 0..30: L is bit 0, L-3 bit 3 */
    bool last_weekday;         /* LW */
    uint16_t months;           /* bits 1..12 */
    uint8_t weekdays;          /* bits 0..6 */
    uint8_t last;              /* bits 0..6: 5L */
    uint8_t nth[7];            /* bits 1..5 for each weekday: 5#3 */
    bool any_day, any_weekday; /* the field began with * or ? */
    bool
        every_hour; /* names no hour: then it follows elapsed time across changes of the clock (calendar.h) */
};

/*
 * Parses up to LQ_CRON_TEXT_MAX bytes. `zone` (may be NULL) gets the name after CRON_TZ= or TZ=, else "". -LADE_EINVAL: err names
 * the field, the column and the rule; also when the expression can never be true (30 February).
 */
int lq_cron_parse(struct lq_cron *cron, const char *text, char zone[LB_TZ_NAME_MAX + 1],
                  lade_err *err);

/*
 * The first local time after `after` (seconds, civil.h) that the expression names. False when there is none within 400 years,
 * after which the calendar repeats. Not for @every.
 */
bool lq_cron_next(const struct lq_cron *cron, int64_t after, int64_t *next);

#endif
