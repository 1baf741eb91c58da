/*
 * tz_rule.c - parsing and applying a rule
 *
 * The changes of the year before, of and after the asked one, sorted, bound the period that holds the asked time: local
 * years begin within a day of UTC's, and a rule's day may lie up to 167 hours away from its date.
 */
#include "base/tz_rule.h"

#include "base/base.h"
#include "base/civil.h"

struct cursor {
    const uint8_t *p, *end;
};

static bool skip_char(struct cursor *c, char wanted)
{
    if (c->p == c->end || *c->p != (uint8_t)wanted)
        return false;
    c->p++;
    return true;
}

static bool is_digit(const struct cursor *c)
{
    return c->p < c->end && *c->p >= '0' && *c->p <= '9';
}

static bool read_number(struct cursor *c, int least, int most, int *out)
{
    int n = 0;
    if (!is_digit(c))
        return false;
    for (; is_digit(c) && n <= most; c->p++)
        n = n * 10 + (*c->p - '0');
    *out = n;
    return n >= least && n <= most;
}

/* hh[:mm[:ss]] with an optional sign. */
static bool read_time(struct cursor *c, int most_hours, int32_t *out)
{
    bool minus = skip_char(c, '-');
    int h, m = 0, s = 0;
    if (!minus)
        (void)skip_char(c, '+');
    if (!read_number(c, 0, most_hours, &h))
        return false;
    if (skip_char(c, ':') && !read_number(c, 0, 59, &m))
        return false;
    if (m >= 0 && skip_char(c, ':') && !read_number(c, 0, 59, &s))
        return false;
    *out = (minus ? -1 : 1) * (h * 3600 + m * 60 + s);
    return true;
}

static bool is_letter(uint8_t b)
{
    return (b >= 'A' && b <= 'Z') || (b >= 'a' && b <= 'z');
}

static bool read_name(struct cursor *c, char out[16])
{
    bool quoted = skip_char(c, '<');
    size_t n = 0;
    while (c->p < c->end && n < 15 && (quoted ? *c->p != '>' : is_letter(*c->p)))
        out[n++] = (char)*c->p++;
    out[n] = 0;
    return n > 0 && (!quoted || skip_char(c, '>'));
}

static bool read_day(struct cursor *c, struct lb_tz_day *day)
{
    day->at = 7200;
    if (skip_char(c, 'M')) {
        day->form = 'M';
        if (!read_number(c, 1, 12, &day->month) || !skip_char(c, '.') ||
            !read_number(c, 1, 5, &day->week) || !skip_char(c, '.') ||
            !read_number(c, 0, 6, &day->day))
            return false;
    } else {
        bool julian = skip_char(c, 'J');
        day->form = julian ? 'J' : 'N';
        if (!read_number(c, julian ? 1 : 0, 365, &day->day))
            return false;
    }
    return !skip_char(c, '/') || read_time(c, 167, &day->at);
}

bool lb_tz_rule_parse(struct lb_tz_rule *rule, struct lb_slice text)
{
    struct cursor c = {text.p, text.p + text.n};
    int32_t west;
    *rule = (struct lb_tz_rule){0};
    if (!read_name(&c, rule->name[0]) || !read_time(&c, 24, &west))
        return false;
    rule->offset[0] = -west;
    if (c.p == c.end)
        return true;
    rule->has_dst = true;
    rule->offset[1] = rule->offset[0] + 3600;
    if (!read_name(&c, rule->name[1]))
        return false;
    if (c.p < c.end && *c.p != ',') {
        if (!read_time(&c, 24, &west))
            return false;
        rule->offset[1] = -west;
    }
    return skip_char(&c, ',') && read_day(&c, &rule->change[0]) && skip_char(&c, ',') &&
           read_day(&c, &rule->change[1]) && c.p == c.end;
}

/* The day of the rule in that year, in days since 1970. */
static int64_t find_day(const struct lb_tz_day *d, int64_t year)
{
    int64_t first = lb_civil_days(year, 1, 1);
    if (d->form == 'N')
        return first + d->day;
    if (d->form == 'J')
        return first + d->day - 1 + (lb_civil_leap(year) && d->day >= 60);
    int64_t month = lb_civil_days(year, d->month, 1);
    int ahead = (d->day - lb_civil_weekday(month) + 7) % 7 + (d->week - 1) * 7;
    if (ahead >= lb_civil_days_in(year, d->month))
        ahead -= 7; /* week 5 is the last one */
    return month + ahead;
}

struct change {
    int64_t at;
    int to;
};

static void add_change(struct change *list, size_t *n, struct change c)
{
    size_t i = (*n)++;
    for (; i > 0 && list[i - 1].at > c.at; i--)
        list[i] = list[i - 1];
    list[i] = c;
}

struct lb_tz_period lb_tz_rule_at(const struct lb_tz_rule *rule, int64_t t)
{
    struct lb_tz_period period = {INT64_MIN, INT64_MAX, rule->offset[0], false, ""};
    struct change list[6] = {{0, 0}};
    size_t n = 0;
    int now = 0;
    if (rule->has_dst) {
        int64_t year = lb_civil_of(t).year;
        for (int64_t y = year - 1; y <= year + 1; y++) {
            for (int i = 0; i < 2; i++) {
                const struct lb_tz_day *d = &rule->change[i];
                int64_t local = find_day(d, y) * LB_DAY_SECONDS + d->at;
                add_change(list, &n, (struct change){local - rule->offset[i], i == 0});
            }
        }
        now = 1 - list[0].to;
        for (size_t i = 0; i < n; i++) {
            if (list[i].at > t) {
                period.to = list[i].at;
                break;
            }
            period.from = list[i].at;
            now = list[i].to;
        }
    }
    period.offset = rule->offset[now];
    period.dst = now == 1;
    (void)snprintf(period.abbreviation, sizeof(period.abbreviation), "%s", rule->name[now]);
    return period;
}
