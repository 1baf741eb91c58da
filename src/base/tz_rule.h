/*
 * tz_rule.h - the rule of a POSIX TZ string: "CET-1CEST,M3.5.0,M10.5.0/3"
 *
 * Grammar: POSIX 1003.1 section 8.3 with RFC 8536 section 3.3.1 (hours to 167). Names without a rule after them, which
 * POSIX leaves to the system, are refused: TZif footers never have them.
 */
#ifndef LADE_BASE_TZ_RULE_H
#define LADE_BASE_TZ_RULE_H

#include "base/slice.h"
#include "base/tz.h"

struct lb_tz_day {
    char form;            /* 'J': 1..365 without the leap day, 'N': 0..365 with it, 'M' */
    int month, week, day; /* M only; otherwise day alone */
    int32_t at;           /* seconds after local midnight, may be negative or beyond the day */
};

struct lb_tz_rule {
    char name[2][16];  /* standard, daylight */
    int32_t offset[2]; /* local = UTC + offset */
    bool has_dst;
    struct lb_tz_day change[2]; /* to daylight, to standard */
};

/* False when the text is not a rule. */
bool lb_tz_rule_parse(struct lb_tz_rule *rule, struct lb_slice text);
struct lb_tz_period lb_tz_rule_at(const struct lb_tz_rule *rule, int64_t t);

#endif
