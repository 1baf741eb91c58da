#include "cli/arg.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "base/err.h"
#include "cli/text.h"

/* Reads digits at *at; false when there are none or the number is over INT64_MAX. */
static bool read_digits(const char **at, int64_t *out)
{
    const char *p = *at;
    int64_t v = 0;
    if (!isdigit((unsigned char)*p))
        return false;
    for (; isdigit((unsigned char)*p); p++) {
        if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, *p - '0', &v))
            return false;
    }
    *at = p;
    *out = v;
    return true;
}

static int fail_range(const char *what, const char *text, struct cli_range range, lade_err *err)
{
    return lb_fail(err, LADE_EINVAL, "usage", "%s: '%.40s' is out of range; give %lld to %lld",
                   what, text, (long long)range.min, (long long)range.max);
}

int cli_arg_int(const char *what, const char *text, struct cli_range range, int64_t *out,
                lade_err *err)
{
    const char *p = text;
    bool negative = *p == '-';
    p += *p == '-' || *p == '+';
    const char *digits = p;
    p += strspn(p, "0123456789");
    if (p == digits || *p)
        return lb_fail(err, LADE_EINVAL, "usage",
                       "%s: '%.40s' is not a whole number; give %lld to %lld", what, text,
                       (long long)range.min, (long long)range.max);
    int64_t v = 0;
    if (!read_digits(&digits, &v))
        return fail_range(what, text, range, err);
    v = negative ? -v : v;
    if (v < range.min || v > range.max)
        return fail_range(what, text, range, err);
    *out = v;
    return 0;
}

int cli_arg_size(const char *what, const char *text, struct cli_range range, int64_t *out,
                 lade_err *err)
{
    static const struct {
        const char *name;
        int64_t bytes;
    } units[] = {{"", 1}, {"KiB", 1024}, {"MiB", 1024 * 1024}, {"GiB", 1024 * 1024 * 1024}};

    const char *p = text;
    int64_t v = 0;
    if (!isdigit((unsigned char)*p))
        return lb_fail(err, LADE_EINVAL, "usage",
                       "%s: '%.40s' is not a size; give bytes, or as 64KiB, 2MiB or 1GiB", what,
                       text);
    if (!read_digits(&p, &v))
        return fail_range(what, text, range, err);
    for (size_t i = 0; i < LB_ARRAY_LEN(units); i++) {
        if (strcmp(p, units[i].name) != 0)
            continue;
        if (__builtin_mul_overflow(v, units[i].bytes, &v) || v < range.min || v > range.max)
            return fail_range(what, text, range, err);
        *out = v;
        return 0;
    }
    return lb_fail(err, LADE_EINVAL, "usage",
                   "%s: '%.40s' is not a size; give bytes, or as 64KiB, 2MiB or 1GiB", what, text);
}

static int64_t read_unit(const char **at)
{
    static const struct {
        const char *name;
        int64_t ns;
    } units[] = {{"ms", LADE_MILLISECOND},
                 {"s", LADE_SECOND},
                 {"m", LADE_MINUTE},
                 {"h", LADE_HOUR},
                 {"d", LADE_DAY}};

    for (size_t i = 0; i < LB_ARRAY_LEN(units); i++) {
        size_t n = strlen(units[i].name);
        if (strncmp(*at, units[i].name, n) == 0) {
            *at += n;
            return units[i].ns;
        }
    }
    return 0;
}

/* False when the text is no duration. What does not fit is INT64_MAX. */
static bool read_duration(const char *text, int64_t *out)
{
    const char *p = text;
    int64_t sum = 0;
    int64_t last = INT64_MAX;
    if (strcmp(text, "0") == 0) {
        *out = 0;
        return true;
    }
    do {
        int64_t n = 0;
        const char *digits = p;
        if (!read_digits(&p, &n)) {
            n = INT64_MAX;
            p += strspn(p, "0123456789");
        }
        if (p == digits)
            return false;
        int64_t unit = read_unit(&p);
        if (unit == 0 || unit >= last)
            return false;
        last = unit;
        if (__builtin_mul_overflow(n, unit, &n) || __builtin_add_overflow(sum, n, &sum))
            sum = INT64_MAX;
    } while (*p);
    *out = sum;
    return true;
}

int cli_arg_duration(const char *what, const char *text, struct cli_range range, int64_t *out,
                     lade_err *err)
{
    int64_t v = 0;
    if (!read_duration(text, &v))
        return lb_fail(err, LADE_EINVAL, "usage",
                       "%s: '%.40s' is not a duration; give a number with its unit: 500ms 30s 5m "
                       "2h 7d",
                       what, text);
    if (v < range.min || v > range.max || v == INT64_MAX) {
        char min[CLI_TIME_LEN];
        char max[CLI_TIME_LEN];
        cli_duration_text(min, range.min);
        cli_duration_text(max, range.max);
        if (v > range.max || v == INT64_MAX)
            return lb_fail(err, LADE_EINVAL, "usage",
                           "%s: %.40s is over the limit of %s; give %s to %s", what, text, max, min,
                           max);
        return lb_fail(err, LADE_EINVAL, "usage", "%s: %.40s is out of range; give %s to %s", what,
                       text, min, max);
    }
    *out = v;
    return 0;
}

/* Exactly n digits at *at. */
static bool read_fixed(const char **at, int n, int *out)
{
    int v = 0;
    for (int i = 0; i < n; i++) {
        char c = (*at)[i];
        if (!isdigit((unsigned char)c))
            return false;
        v = v * 10 + (c - '0');
    }
    *at += n;
    *out = v;
    return true;
}

static bool read_char(const char **at, const char *any)
{
    if (!**at || !strchr(any, **at))
        return false;
    (*at)++;
    return true;
}

/* The offset in seconds: Z, +01:00, -05:30. */
static bool read_offset(const char **at, int *out)
{
    *out = 0;
    if (read_char(at, "Zz"))
        return true;
    int sign = **at == '-' ? -1 : 1;
    int hours = 0;
    int minutes = 0;
    if (!read_char(at, "+-") || !read_fixed(at, 2, &hours) || !read_char(at, ":") ||
        !read_fixed(at, 2, &minutes) || hours > 23 || minutes > 59)
        return false;
    *out = sign * (hours * 3600 + minutes * 60);
    return true;
}

static bool read_fraction(const char **at, int64_t *out)
{
    *out = 0;
    if (!read_char(at, "."))
        return true;
    int64_t scale = LADE_SECOND;
    if (!isdigit((unsigned char)**at))
        return false;
    for (; isdigit((unsigned char)**at); (*at)++) {
        scale /= 10;
        *out += (**at - '0') * scale;
    }
    return true;
}

#define YEAR_2000 (INT64_C(946684800) * LADE_SECOND)

/* *is_beyond: a time, but of a year that does not fit. */
static bool read_rfc3339(const char *text, int64_t *out, bool *is_beyond)
{
    const char *p = text;
    struct tm tm = {0};
    int64_t fraction = 0;
    int offset = 0;
    if (!read_fixed(&p, 4, &tm.tm_year) || !read_char(&p, "-") || !read_fixed(&p, 2, &tm.tm_mon) ||
        !read_char(&p, "-") || !read_fixed(&p, 2, &tm.tm_mday) || !read_char(&p, "Tt ") ||
        !read_fixed(&p, 2, &tm.tm_hour) || !read_char(&p, ":") || !read_fixed(&p, 2, &tm.tm_min) ||
        !read_char(&p, ":") || !read_fixed(&p, 2, &tm.tm_sec) || !read_fraction(&p, &fraction) ||
        !read_offset(&p, &offset) || *p)
        return false;
    struct tm asked = tm;
    if (tm.tm_sec > 59)
        return false;
    tm.tm_year -= 1900;
    tm.tm_mon -= 1;
    int64_t seconds = timegm(&tm);
    /* timegm turns February 30 into March 2; such a day is refused. */
    if (tm.tm_mon + 1 != asked.tm_mon || tm.tm_mday != asked.tm_mday ||
        tm.tm_hour != asked.tm_hour || tm.tm_min != asked.tm_min)
        return false;
    *is_beyond = asked.tm_year < 1970 || asked.tm_year > 2261;
    if (*is_beyond)
        return false;
    int64_t at = (seconds - offset) * LADE_SECOND + fraction;
    *out = LB_MAX(at, 1);
    return true;
}

int cli_arg_time(const char *what, const char *text, int64_t *at, int64_t *in, lade_err *err)
{
    int64_t v = 0;
    if (text[0] == '+' && read_duration(text + 1, &v)) {
        int rc = cli_arg_duration(what, text + 1, (struct cli_range){0, CLI_DURATION_MAX}, &v, err);
        if (rc < 0)
            return rc;
        *at = 0;
        *in = v;
        return 0;
    }
    bool is_beyond = false;
    if (text[0] != '+' && read_rfc3339(text, &v, &is_beyond)) {
        *at = v;
        *in = 0;
        return 0;
    }
    if (is_beyond)
        return lb_fail(err, LADE_EINVAL, "usage",
                       "%s: %.40s is out of range; give a time of the years 1970 to 2261", what,
                       text);
    return lb_fail(err, LADE_EINVAL, "usage",
                   "%s: '%.40s' is not a time; give 2026-01-31T12:00:00Z or +10m", what, text);
}

int cli_arg_run_at(const char *what, const char *text, int64_t *at, int64_t *in, lade_err *err)
{
    int64_t a = 0, i = 0;
    int rc = cli_arg_time(what, text, &a, &i, err);
    if (rc == 0 && a != 0 && a < YEAR_2000)
        return lb_fail(err, LADE_EINVAL, "usage",
                       "%s: %.40s is out of range; give a time of the years 2000 to 2261", what,
                       text);
    if (rc == 0) {
        *at = a;
        *in = i;
    }
    return rc;
}

int cli_arg_backoff(const char *what, const char *text, lade_backoff *out, lade_err *err)
{
    static const struct {
        const char *name;
        enum lade_backoff_type type;
    } types[] = {{"fixed", LADE_BACKOFF_FIXED},
                 {"exponential", LADE_BACKOFF_EXPONENTIAL},
                 {"polynomial", LADE_BACKOFF_POLYNOMIAL}};

    size_t n = strcspn(text, ":");
    for (size_t i = 0; i < LB_ARRAY_LEN(types); i++) {
        if (strlen(types[i].name) != n || strncmp(text, types[i].name, n) != 0)
            continue;
        lade_backoff b = {.type = types[i].type};
        if (!text[n] && b.type == LADE_BACKOFF_POLYNOMIAL) {
            *out = (lade_backoff){0};
            return 0;
        }
        if (!text[n])
            return lb_fail(err, LADE_EINVAL, "usage",
                           "%s: '%.40s' has no delay; give it after a colon: %s:5s", what, text,
                           types[i].name);
        struct cli_range range = {LADE_MILLISECOND, 3650 * LADE_DAY};
        int rc = cli_arg_duration(what, text + n + 1, range, &b.base, err);
        if (rc == 0)
            *out = b;
        return rc;
    }
    return lb_fail(err, LADE_EINVAL, "usage",
                   "%s: '%.40s' is no backoff; give fixed:5s, exponential:1s or polynomial", what,
                   text);
}

int cli_arg_unique(const char *text, lade_unique *out, lade_err *err)
{
    if (text && !text[0])
        return lb_fail(err, LADE_EINVAL, "usage", "--unique: empty; give a key of 1 to %d bytes",
                       LADE_UNIQUE_KEY_MAX);
    if (!text && (out->ttl > 0 || out->until != LADE_UNTIL_DONE))
        return lb_fail(err, LADE_EINVAL, "usage",
                       "--unique: missing; --unique-ttl and --unique-until need a key");
    if (!text &&
        (out->on_conflict || out->debounce || out->max_wait || out->throttle || out->trailing))
        return lb_fail(err, LADE_EINVAL, "usage",
                       "--unique: missing; --on-conflict, --debounce and --throttle need a key");
    if (text)
        out->key = (lade_bytes){text, strlen(text)};
    return 0;
}

int cli_arg_conflict(const char *what, const char *text, enum lade_on_conflict *out, lade_err *err)
{
    static const char *const names[] = {"keep", "replace", "reject"};

    for (size_t i = 0; i < LB_ARRAY_LEN(names); i++) {
        if (strcmp(text, names[i]) == 0) {
            *out = (enum lade_on_conflict)i;
            return 0;
        }
    }
    return lb_fail(err, LADE_EINVAL, "usage",
                   "%s: '%.40s' is unknown; give keep, replace or reject", what, text);
}

int cli_arg_until(const char *what, const char *text, enum lade_unique_until *out, lade_err *err)
{
    static const char *const names[] = {"done", "start", "ttl"};

    for (size_t i = 0; i < LB_ARRAY_LEN(names); i++) {
        if (strcmp(text, names[i]) == 0) {
            *out = (enum lade_unique_until)i;
            return 0;
        }
    }
    return lb_fail(err, LADE_EINVAL, "usage", "%s: '%.40s' is unknown; give done, start or ttl",
                   what, text);
}
