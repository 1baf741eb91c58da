/* tz_file.h - reading one TZif file (RFC 8536), and what a zone is made of */
#ifndef LADE_BASE_TZ_FILE_H
#define LADE_BASE_TZ_FILE_H

#include "base/slice.h"
#include "base/tz.h"
#include "base/tz_rule.h"

struct lb_tz_transition {
    int64_t at;
    uint8_t kind;
};

struct lb_tz_kind_of {
    int32_t offset;
    bool dst;
    char abbreviation[16];
};

struct lb_tz {
    struct lb_tz_transition *transition; /* n, strictly ascending */
    size_t n;
    struct lb_tz_kind_of *kind; /* n_kinds; the first is what holds before all transitions */
    size_t n_kinds;
    bool has_rule; /* for all times after the last transition */
    struct lb_tz_rule rule;
};

/* Reads the zone's file into tz. The name has been checked. What was allocated is freed by lb_tz_close, also on failure. */
int lb_tz_file_load(struct lb_tz *tz, const char *name, lade_err *err);

/* The same from bytes; false when they are not TZif or there is no memory. */
bool lb_tz_file_parse(struct lb_tz *tz, struct lb_slice bytes);

/* Where the zones are: $TZDIR or /usr/share/zoneinfo. */
const char *lb_tz_folder(void);
/* tz_near.c: the installed zone whose name is most like this one. False when none is near. */
bool lb_tz_nearest(const char *typed, char out[LB_TZ_NAME_MAX + 1]);

#endif
