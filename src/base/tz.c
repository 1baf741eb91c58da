/*
 * tz.c - zones
 *
 * A zone is a sorted list of transitions and, behind the last of them, a rule (tz_rule.h). A local time is turned into
 * instants by looking at the periods around it: offsets are within 26 hours of UTC, so that two days to each side hold all
 * that can show it.
 */
#include "base/tz.h"

#include <string.h>

#include "base/base.h"
#include "base/civil.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/tz_file.h"
#include "base/tz_rule.h"

static bool is_zone_name(const char *name)
{
    size_t n = strlen(name);
    if (n == 0 || n > LB_TZ_NAME_MAX || name[0] == '/' || name[0] == '-' || strstr(name, ".."))
        return false;
    return strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+-/") == n;
}

/* +hh, +hhmm, +hh:mm; false when it is not of that form or beyond a day. */
static bool parse_offset(const char *s, int32_t *out)
{
    int digit[4] = {0};
    size_t n = 0;
    if (s[0] != '+' && s[0] != '-')
        return false;
    for (const char *p = s + 1; *p; p++) {
        if (*p == ':' && n == 2 && p == s + 3 && p[1])
            continue;
        if (*p < '0' || *p > '9' || n == 4)
            return false;
        digit[n++] = *p - '0';
    }
    if (n == 1) {
        digit[1] = digit[0];
        digit[0] = 0;
    }
    int hours = digit[0] * 10 + digit[1], minutes = digit[2] * 10 + digit[3];
    if ((n != 1 && n != 2 && n != 4) || hours > 23 || minutes > 59)
        return false;
    *out = (s[0] == '-' ? -1 : 1) * (hours * 3600 + minutes * 60);
    return true;
}

int lb_tz_open(struct lb_tz **out, const char *name, lade_err *err)
{
    struct lb_tz *tz = lb_calloc(1, sizeof(*tz));
    int32_t offset = 0;
    int rc = 0;
    if (!tz)
        return lb_fail_nomem(err, "time zone");
    if (!strcmp(name, "UTC") || !strcmp(name, "Z") || parse_offset(name, &offset)) {
        tz->has_rule = true;
        tz->rule.offset[0] = offset;
        (void)snprintf(tz->rule.name[0], sizeof(tz->rule.name[0]), "%s", offset ? name : "UTC");
    } else if (!is_zone_name(name)) {
        rc = lb_fail(
            err, LADE_EINVAL, "time zone",
            "'%.64s' is not a time zone: use UTC, an offset as +02:00, or a name as Europe/Berlin",
            name);
    } else {
        rc = lb_tz_file_load(tz, name, err);
    }
    if (rc < 0) {
        lb_tz_close(tz);
        return rc;
    }
    *out = tz;
    return 0;
}

void lb_tz_close(struct lb_tz *tz)
{
    if (!tz)
        return;
    lb_free(tz->transition);
    lb_free(tz->kind);
    lb_free(tz);
}

/* The number of transitions at or before t. */
static size_t count_before(const struct lb_tz *tz, int64_t t)
{
    size_t low = 0, high = tz->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (tz->transition[middle].at <= t)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct lb_tz_period lb_tz_at(const struct lb_tz *tz, int64_t t)
{
    size_t i = count_before(tz, t);
    if (i == tz->n && tz->has_rule) {
        struct lb_tz_period p = lb_tz_rule_at(&tz->rule, t);
        if (i > 0)
            p.from = LB_MAX(p.from, tz->transition[i - 1].at);
        return p;
    }
    const struct lb_tz_kind_of *k = &tz->kind[i > 0 ? tz->transition[i - 1].kind : 0];
    struct lb_tz_period p = {i > 0 ? tz->transition[i - 1].at : INT64_MIN,
                             i < tz->n ? tz->transition[i].at : INT64_MAX, k->offset, k->dst, ""};
    memcpy(p.abbreviation, k->abbreviation, sizeof(p.abbreviation));
    return p;
}

struct lb_tz_local lb_tz_of_local(const struct lb_tz *tz, int64_t local)
{
    struct lb_tz_local found = {LB_TZ_GAP, {0, 0}};
    struct lb_tz_period p = lb_tz_at(tz, local - 2 * (int64_t)LB_DAY_SECONDS);
    size_t n = 0;
    for (;;) {
        int64_t t = local - p.offset;
        if (t >= p.from && t < p.to) {
            found.instant[n > 0] = t;
            if (n++ == 0)
                found.instant[1] = t;
        }
        if (p.to == INT64_MAX || p.to > local + 2 * (int64_t)LB_DAY_SECONDS)
            break;
        struct lb_tz_period next = lb_tz_at(tz, p.to);
        if (n == 0 && t >= p.to && local - next.offset < next.from)
            found.instant[0] = found.instant[1] = p.to;
        p = next;
    }
    if (n > 0)
        found.kind = found.instant[0] == found.instant[1] ? LB_TZ_ONE : LB_TZ_FOLD;
    return found;
}
