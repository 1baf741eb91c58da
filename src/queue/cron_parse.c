/*
 * cron_parse.c - reading cron expressions
 *
 * One field at a time, one item of its list at a time; each complaint names the field and the column, counted from 1 in the
 * text as it was given.
 */
#include <string.h>
#include <strings.h>

#include "base/base.h"
#include "base/err.h"
#include "queue/cron.h"

enum field { SECOND, MINUTE, HOUR, DAY, MONTH, WEEKDAY, N_FIELDS };

static const struct field_rule {
    const char *name;
    int least, most;
} field_info[N_FIELDS] = {{"second", 0, 59},       {"minute", 0, 59}, {"hour", 0, 23},
                          {"day-of-month", 1, 31}, {"month", 1, 12},  {"day-of-week", 0, 7}};

struct reader {
    const char *text, *p;
    const char *item; /* begin of the item, for complaints */
    enum field field;
    struct lq_cron *cron;
    lade_err *err;
};

static int refuse(const struct reader *r, const char *rule)
{
    const struct field_rule *f = &field_info[r->field];
    return lb_fail(r->err, LADE_EINVAL, "cron",
                   "cron expression '%.64s', field %s, column %d: %s (%d to %d)", r->text, f->name,
                   (int)(r->item - r->text) + 1, rule, f->least, f->most);
}

static bool at_item_end(const struct reader *r)
{
    return *r->p == 0 || *r->p == ',' || *r->p == ' ' || *r->p == '\t';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool read_number(struct reader *r, int *out)
{
    int n = 0;
    if (!is_digit(*r->p))
        return false;
    for (; is_digit(*r->p); r->p++)
        n = LB_MIN(n * 10 + (*r->p - '0'), 100000);
    *out = n;
    return true;
}

static bool read_name(struct reader *r, int *out)
{
    static const char *const month[] = {"jan", "feb", "mar", "apr", "may", "jun",
                                        "jul", "aug", "sep", "oct", "nov", "dec"};
    static const char *const weekday[] = {"sun", "mon", "tue", "wed", "thu", "fri", "sat"};
    const char *const *name = r->field == MONTH ? month : weekday;
    int n = r->field == MONTH ? 12 : r->field == WEEKDAY ? 7 : 0;
    for (int i = 0; i < n; i++) {
        if (strncasecmp(r->p, name[i], 3) == 0) {
            r->p += 3;
            *out = i + field_info[r->field].least;
            return true;
        }
    }
    return false;
}

static int read_value(struct reader *r, int *out)
{
    const struct field_rule *f = &field_info[r->field];
    if (!read_number(r, out) && !read_name(r, out))
        return refuse(r, "this is neither a number nor a name of the field");
    if (*out < f->least || *out > f->most)
        return refuse(r, "the value is out of range");
    return 0;
}

static void set_value(struct reader *r, int value)
{
    struct lq_cron *c = r->cron;
    switch (r->field) {
    case SECOND:
        c->seconds |= UINT64_C(1) << value;
        break;
    case MINUTE:
        c->minutes |= UINT64_C(1) << value;
        break;
    case HOUR:
        c->hours |= UINT32_C(1) << value;
        break;
    case DAY:
        c->days |= UINT32_C(1) << value;
        break;
    case MONTH:
        c->months |= (uint16_t)(1u << value);
        break;
    case WEEKDAY:
    case N_FIELDS:
    default:
        c->weekdays |= (uint8_t)(1u << value % 7);
        break;
    }
}

/* L, L-3 and LW. */
static int read_last_day(struct reader *r)
{
    int before = 0;
    r->p++;
    if (*r->p == 'W' || *r->p == 'w') {
        r->p++;
        r->cron->last_weekday = true;
        return at_item_end(r) ? 0 : refuse(r, "nothing may follow LW");
    }
    if (*r->p == '-') {
        r->p++;
        if (!read_number(r, &before) || before < 1 || before > 30)
            return refuse(r, "L- takes 1 to 30 days before the last one");
    }
    r->cron->before_last |= UINT32_C(1) << before;
    return at_item_end(r) ? 0 : refuse(r, "nothing may follow L or L-n");
}

/* What may follow one value of a day field: W, L, #n. `more` when none of them does. */
static int read_day_mark(struct reader *r, int value, bool *more)
{
    char mark = *r->p;
    int nth;
    *more = false;
    if (r->field == DAY && (mark == 'W' || mark == 'w')) {
        r->p++;
        r->cron->nearest |= UINT32_C(1) << value;
        return at_item_end(r) ? 0 : refuse(r, "nothing may follow nW");
    }
    if (r->field == WEEKDAY && (mark == 'L' || mark == 'l')) {
        r->p++;
        r->cron->last |= (uint8_t)(1u << value % 7);
        return at_item_end(r) ? 0 : refuse(r, "nothing may follow nL");
    }
    if (r->field == WEEKDAY && mark == '#') {
        r->p++;
        if (!read_number(r, &nth) || nth < 1 || nth > 5)
            return refuse(r, "# takes 1 to 5, as 5#3 for the third Friday");
        r->cron->nth[value % 7] |= (uint8_t)(1u << nth);
        return at_item_end(r) ? 0 : refuse(r, "nothing may follow n#m");
    }
    *more = true;
    return 0;
}

static int read_step(struct reader *r, int *step)
{
    *step = 1;
    if (*r->p != '/')
        return 0;
    r->p++;
    if (!read_number(r, step) || *step < 1 || *step > field_info[r->field].most)
        return refuse(r, "a step is a number from 1 up to the largest value of the field");
    return 0;
}

static int read_item(struct reader *r)
{
    const struct field_rule *f = &field_info[r->field];
    bool day = r->field == DAY || r->field == WEEKDAY, more;
    int first = f->least, last = r->field == WEEKDAY ? 6 : f->most, step, rc;
    r->item = r->p;
    if (r->field == DAY && (*r->p == 'L' || *r->p == 'l'))
        return read_last_day(r);
    if (*r->p == '*' || (day && *r->p == '?')) {
        r->p++;
    } else {
        if ((rc = read_value(r, &first)) < 0 || (rc = read_day_mark(r, first, &more)) < 0 || !more)
            return rc;
        if (*r->p == '-') {
            r->p++;
            if ((rc = read_value(r, &last)) < 0)
                return rc;
            if (r->field == WEEKDAY && last == 0)
                last = 7; /* fri-sun */
            if (last < first)
                return refuse(r, "the range ends before it begins");
        } else if (*r->p != '/') {
            last = first;
        }
    }
    if ((rc = read_step(r, &step)) < 0)
        return rc;
    if (!at_item_end(r))
        return refuse(r, "this character is not allowed here");
    for (int v = first; v <= last; v += step)
        set_value(r, v);
    return 0;
}

static int read_field(struct reader *r, enum field field)
{
    struct lq_cron *c = r->cron;
    r->field = field;
    while (*r->p == ' ' || *r->p == '\t')
        r->p++;
    bool any = *r->p == '*' || *r->p == '?';
    c->any_day |= field == DAY && any;
    c->any_weekday |= field == WEEKDAY && any;
    for (;;) {
        int rc = read_item(r);
        if (rc < 0)
            return rc;
        if (*r->p != ',')
            return 0;
        r->p++;
    }
}

static int count_words(const char *p)
{
    int n = 0;
    for (bool in = false; *p; p++) {
        bool space = *p == ' ' || *p == '\t';
        n += !space && !in;
        in = !space;
    }
    return n;
}

static int read_fields(struct reader *r)
{
    int n = count_words(r->p), rc = 0;
    int64_t next;
    if (n != 5 && n != 6)
        return lb_fail(
            r->err, LADE_EINVAL, "cron",
            "cron expression '%.64s' has %d fields: write 5 (minute hour day month weekday), "
            "6 with seconds first, or @daily and the like",
            r->text, n);
    if (n == 5)
        r->cron->seconds = 1;
    for (int field = n == 5 ? MINUTE : SECOND; field < N_FIELDS; field++) {
        if ((rc = read_field(r, (enum field)field)) < 0)
            return rc;
    }
    r->cron->every_hour = r->cron->hours == (UINT32_C(1) << 24) - 1;
    if (!lq_cron_next(r->cron, 0, &next))
        return lb_fail(r->err, LADE_EINVAL, "cron",
                       "cron expression '%.64s' never comes true: no month it names has such a day",
                       r->text);
    return 0;
}

/* "90s", "1h30m": parts of a number and h, m or s. */
static int read_every(struct reader *r)
{
    int64_t seconds = 0;
    int n;
    while (*r->p && at_item_end(r))
        r->p++;
    while (read_number(r, &n)) {
        int64_t unit = *r->p == 'd'   ? 86400
                       : *r->p == 'h' ? 3600
                       : *r->p == 'm' ? 60
                       : *r->p == 's' ? 1
                                      : 0;
        if (unit == 0)
            break;
        seconds += n * unit;
        r->p++;
    }
    if (*r->p || seconds < 1)
        return lb_fail(
            r->err, LADE_EINVAL, "cron",
            "'%.64s': after @every comes a duration of a second or more, as 90s, 5m or 1h30m",
            r->text);
    r->cron->every = seconds * LADE_SECOND;
    return 0;
}

static int read_macro(struct reader *r)
{
    static const char *const macro[][2] = {
        {"@yearly", "0 0 1 1 *"}, {"@annually", "0 0 1 1 *"}, {"@monthly", "0 0 1 * *"},
        {"@weekly", "0 0 * * 0"}, {"@daily", "0 0 * * *"},    {"@midnight", "0 0 * * *"},
        {"@hourly", "0 * * * *"},
    };
    if (strncasecmp(r->p, "@every", 6) == 0 && (r->p[6] == ' ' || r->p[6] == '\t')) {
        r->p += 6;
        return read_every(r);
    }
    for (size_t i = 0; i < LB_ARRAY_LEN(macro); i++) {
        size_t n = strlen(macro[i][0]);
        if (strncasecmp(r->p, macro[i][0], n) == 0 && strspn(r->p + n, " \t") == strlen(r->p + n)) {
            r->text = r->p = macro[i][1];
            return read_fields(r);
        }
    }
    return lb_fail(
        r->err, LADE_EINVAL, "cron",
        "'%.64s' is not known: use @yearly, @monthly, @weekly, @daily, @hourly or @every 90s",
        r->text);
}

static int read_zone(struct reader *r, char zone[LB_TZ_NAME_MAX + 1])
{
    size_t skip = strncmp(r->p, "CRON_TZ=", 8) == 0 ? 8 : strncmp(r->p, "TZ=", 3) == 0 ? 3 : 0;
    if (skip == 0)
        return 0;
    r->p += skip;
    size_t n = strcspn(r->p, " \t");
    if (n == 0 || n > LB_TZ_NAME_MAX || !zone)
        return lb_fail(r->err, LADE_EINVAL, "cron",
                       zone ? "'%.64s': after TZ= comes the name of a time zone"
                            : "'%.64s': TZ= may not stand here",
                       r->text);
    memcpy(zone, r->p, n);
    zone[n] = 0;
    r->p += n;
    r->p += strspn(r->p, " \t");
    return 0;
}

int lq_cron_parse(struct lq_cron *cron, const char *text, char zone[LB_TZ_NAME_MAX + 1],
                  lade_err *err)
{
    struct reader r = {.text = text, .p = text, .cron = cron, .err = err};
    *cron = (struct lq_cron){0};
    if (zone)
        zone[0] = 0;
    if (strnlen(text, LQ_CRON_TEXT_MAX + 1) > LQ_CRON_TEXT_MAX)
        return lb_fail(err, LADE_EINVAL, "cron", "the cron expression is longer than %d bytes",
                       LQ_CRON_TEXT_MAX);
    r.p += strspn(r.p, " \t");
    int rc = read_zone(&r, zone);
    if (rc < 0)
        return rc;
    return *r.p == '@' ? read_macro(&r) : read_fields(&r);
}
