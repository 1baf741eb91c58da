/* tz_near.c - which zone somebody may have meant: the installed one that is the fewest changes of a letter away */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/tz.h"
#include "base/tz_file.h"

static int lower(char c)
{
    return tolower((unsigned char)(c == ' ' || c == '-' ? '_' : c));
}

/* Levenshtein's distance, a row at a time; letters of either case are the same. */
static size_t distance_of(const char *a, const char *b)
{
    size_t row[LB_TZ_NAME_MAX + 1], n = strlen(b);
    for (size_t j = 0; j <= n; j++)
        row[j] = j;
    for (size_t i = 1; *a; a++, i++) {
        size_t corner = row[0];
        row[0] = i;
        for (size_t j = 1; j <= n; j++) {
            size_t swap = corner + (lower(*a) != lower(b[j - 1]));
            corner = row[j];
            row[j] = LB_MIN(swap, LB_MIN(row[j], row[j - 1]) + 1);
        }
    }
    return row[n];
}

/* The whole name, or its last part: "berlin" means Europe/Berlin. */
static size_t measure(const char *typed, const char *name)
{
    const char *last = strrchr(name, '/');
    size_t whole = distance_of(typed, name);
    size_t part = last && !strchr(typed, '/') ? distance_of(typed, last + 1) : whole;
    return LB_MIN(whole, part);
}

bool lb_tz_nearest(const char *typed, char out[LB_TZ_NAME_MAX + 1])
{
    char path[4096], line[256], name[LB_TZ_NAME_MAX + 1];
    int n = snprintf(path, sizeof(path), "%s/tzdata.zi", lb_tz_folder());
    size_t best = LB_MAX(strlen(typed) / 4, (size_t)1) + 1;
    FILE *f = n > 0 && (size_t)n < sizeof(path) ? fopen(path, "re") : NULL;
    out[0] = 0;
    while (f && fgets(line, sizeof(line), f)) {
        if (sscanf(line, "Z %64s", name) != 1 && sscanf(line, "L %*s %64s", name) != 1)
            continue;
        size_t d = measure(typed, name);
        if (d >= best)
            continue;
        best = d;
        memcpy(out, name, sizeof(name));
    }
    if (f)
        (void)fclose(f);
    return out[0] != 0;
}
