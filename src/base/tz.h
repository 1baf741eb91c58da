/*
 * tz.h - time zones, read from the machine's tzdata and from nothing global
 *
 * Unlike the C library's TZ this is safe in threads, knows many zones at once, says when a name is unknown, and tells
 * local times that never were (gap) or were twice (fold) from the others.
 *
 * Formats: TZif (RFC 8536) below $TZDIR or /usr/share/zoneinfo, versions 1 to 4; the footer's rule (POSIX TZ with the extension of
 * hours -167..167) for all times after the last transition.
 *
 * Thread safety: a zone does not change once open; all functions.
 */
#ifndef LADE_BASE_TZ_H
#define LADE_BASE_TZ_H

#include <lade/base.h>

#define LB_TZ_NAME_MAX 64

struct lb_tz;

/*
 * Opens "UTC", "Z", a fixed offset ("+02:00", "-0330", "+5") or an IANA name ("Europe/Berlin"); the caller closes it.
 * -LADE_EINVAL: the form is none of these, or no such zone is installed. -LADE_EFORMAT: the file is damaged.
 */
int lb_tz_open(struct lb_tz **out, const char *name, lade_err *err);
void lb_tz_close(struct lb_tz *tz);

/* A stretch of time with one offset. */
struct lb_tz_period {
    int64_t from, to; /* UTC seconds, [from, to); INT64_MIN and INT64_MAX when it has no end */
    int32_t offset;   /* local = UTC + offset, seconds */
    bool dst;
    char abbreviation[16];
};

/* The period that holds the UTC second t. */
struct lb_tz_period lb_tz_at(const struct lb_tz *tz, int64_t t);

enum lb_tz_kind {
    LB_TZ_ONE, /* once: instant[0] == instant[1] */
    LB_TZ_GAP, /* never: the clock was set forward over it; both are the instant of that change */
    LB_TZ_FOLD /* twice: instant[0] < instant[1] */
};

struct lb_tz_local {
    enum lb_tz_kind kind;
    int64_t instant[2]; /* UTC seconds */
};

/* When the zone's clocks showed this local time (civil.h). */
struct lb_tz_local lb_tz_of_local(const struct lb_tz *tz, int64_t local);

/* The release of the installed tzdata, "2026f", or "" when the machine does not say. */
void lb_tz_release(char out[16]);

#endif
