/* resque_time.c - see resque_time.h */
#include "resque/resque_time.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/civil.h"

void rq_time_write(char out[RQ_TIME_LEN], enum rq_time_form form, int64_t seconds)
{
    static const char *const format[] = {
        [RQ_TIME_STARTED] = "%04u-%02u-%02u %02u:%02u:%02u +0000",
        [RQ_TIME_HEARTBEAT] = "%04u-%02u-%02uT%02u:%02u:%02u+00:00",
        [RQ_TIME_RUN_AT] = "%04u-%02u-%02uT%02u:%02u:%02uZ",
        [RQ_TIME_FAILED] = "%04u/%02u/%02u %02u:%02u:%02u UTC",
    };
    struct lb_civil c = lb_civil_of(seconds);
    char text[96];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral" /* one of the four above */
    (void)snprintf(text, sizeof(text), format[form], (unsigned)(c.year % 10000), (unsigned)c.month,
                   (unsigned)c.day, (unsigned)c.hour, (unsigned)c.minute, (unsigned)c.second);
#pragma GCC diagnostic pop
    (void)snprintf(out, RQ_TIME_LEN, "%.25s", text);
}

struct reader {
    const uint8_t *p, *end;
    bool bad;
};

static int digits(struct reader *r, int n)
{
    int v = 0;
    for (int i = 0; i < n; i++) {
        if (r->p == r->end || *r->p < '0' || *r->p > '9') {
            r->bad = true;
            return 0;
        }
        v = v * 10 + (*r->p++ - '0');
    }
    return v;
}

static uint8_t one_of(struct reader *r, const char *set)
{
    if (r->p < r->end && *r->p && strchr(set, *r->p))
        return *r->p++;
    r->bad = true;
    return 0;
}

static bool at(const struct reader *r, const char *set)
{
    return r->p < r->end && *r->p && strchr(set, *r->p);
}

/* Seconds east of UTC: "Z", " UTC", "+02:00", " +0200". */
static int64_t read_offset(struct reader *r)
{
    if (at(r, " "))
        r->p++;
    if (at(r, "Z")) {
        r->p++;
        return 0;
    }
    if (r->end - r->p == 3 && memcmp(r->p, "UTC", 3) == 0) {
        r->p += 3;
        return 0;
    }
    bool west = one_of(r, "+-") == '-';
    int hours = digits(r, 2);
    if (at(r, ":"))
        r->p++;
    int minutes = digits(r, 2);
    r->bad |= hours > 23 || minutes > 59;
    int64_t offset = (int64_t)hours * 3600 + (int64_t)minutes * 60;
    return west ? -offset : offset;
}

bool rq_time_read(int64_t *seconds, struct lb_slice text)
{
    struct reader r = {.p = text.p, .end = text.p + text.n};
    struct lb_civil c = {0};
    c.year = digits(&r, 4);
    uint8_t sep = one_of(&r, "-/");
    c.month = digits(&r, 2);
    r.bad |= one_of(&r, "-/") != sep;
    c.day = digits(&r, 2);
    (void)one_of(&r, "T ");
    c.hour = digits(&r, 2);
    (void)one_of(&r, ":");
    c.minute = digits(&r, 2);
    (void)one_of(&r, ":");
    c.second = digits(&r, 2);
    if (at(&r, ".")) {
        r.p++;
        (void)digits(&r, 1);
        while (at(&r, "0123456789"))
            r.p++;
    }
    int64_t offset = read_offset(&r);
    bool date = c.month >= 1 && c.month <= 12 && c.day >= 1 &&
                c.day <= lb_civil_days_in(c.year, LB_MAX(1, LB_MIN(c.month, 12)));
    if (r.bad || r.p != r.end || !date || c.hour > 23 || c.minute > 59 || c.second > 60)
        return false;
    *seconds = lb_civil_seconds(&c) - offset;
    return true;
}
