/*
 * tz_file.c - TZif
 *
 * A file holds a block of 32-bit data for old readers and, from version 2, a second one of 64-bit data with a footer: the
 * rule for the time after the last transition. A block is a header of six counts, then transition times, their kinds, the
 * kinds (offset, dst, index of the abbreviation), the abbreviations, leap seconds and two kinds of marks, which are passed over.
 */
#include "base/tz_file.h"

#include <errno.h>
#include <string.h>

#include "base/base.h"
#include "base/err.h"
#include "base/mem.h"

#define FILE_MAX    (1 << 20)
#define HEADER_SIZE 44

struct header {
    uint32_t n_isut, n_isstd, n_leap, n_times, n_kinds, n_chars;
};

static uint32_t read_u32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static int64_t read_time(const uint8_t *p, size_t width)
{
    return width == 4 ? (int32_t)read_u32(p)
                      : (int64_t)((uint64_t)read_u32(p) << 32 | read_u32(p + 4));
}

static bool read_header(struct lb_slice s, struct header *h)
{
    if (s.n < HEADER_SIZE || memcmp(s.p, "TZif", 4) != 0)
        return false;
    *h = (struct header){read_u32(s.p + 20), read_u32(s.p + 24), read_u32(s.p + 28),
                         read_u32(s.p + 32), read_u32(s.p + 36), read_u32(s.p + 40)};
    return h->n_isut <= FILE_MAX && h->n_isstd <= FILE_MAX && h->n_leap <= FILE_MAX &&
           h->n_times <= FILE_MAX && h->n_kinds > 0 && h->n_kinds <= 256 && h->n_chars > 0 &&
           h->n_chars <= FILE_MAX;
}

static size_t size_of_block(const struct header *h, size_t width)
{
    return HEADER_SIZE + (size_t)h->n_times * (width + 1) + (size_t)h->n_kinds * 6 + h->n_chars +
           (size_t)h->n_leap * (width + 4) + h->n_isstd + h->n_isut;
}

static bool read_kinds(struct lb_tz *tz, const uint8_t *p, const struct header *h)
{
    const uint8_t *chars = p + (size_t)h->n_kinds * 6;
    for (uint32_t i = 0; i < h->n_kinds; i++, p += 6) {
        struct lb_tz_kind_of *k = &tz->kind[i];
        if (p[5] >= h->n_chars)
            return false;
        size_t n = strnlen((const char *)chars + p[5], h->n_chars - p[5]);
        n = LB_MIN(n, sizeof(k->abbreviation) - 1);
        k->offset = (int32_t)read_u32(p);
        k->dst = p[4] != 0;
        memcpy(k->abbreviation, chars + p[5], n);
        k->abbreviation[n] = 0;
        if (k->offset < -93600 || k->offset > 93600)
            return false;
    }
    return true;
}

static bool read_block(struct lb_tz *tz, struct lb_slice s, const struct header *h, size_t width)
{
    const uint8_t *times = s.p + HEADER_SIZE;
    const uint8_t *kinds = times + (size_t)h->n_times * width;
    tz->n = h->n_times;
    tz->n_kinds = h->n_kinds;
    tz->transition = lb_calloc(LB_MAX(tz->n, 1), sizeof(*tz->transition));
    tz->kind = lb_calloc(tz->n_kinds, sizeof(*tz->kind));
    if (!tz->transition || !tz->kind || !read_kinds(tz, kinds + h->n_times, h))
        return false;
    for (size_t i = 0; i < tz->n; i++) {
        struct lb_tz_transition t = {read_time(times + i * width, width), kinds[i]};
        if (t.kind >= tz->n_kinds || (i > 0 && t.at <= tz->transition[i - 1].at))
            return false;
        tz->transition[i] = t;
    }
    return true;
}

bool lb_tz_file_parse(struct lb_tz *tz, struct lb_slice s)
{
    struct header h;
    if (!read_header(s, &h))
        return false;
    size_t size = size_of_block(&h, 4);
    if (s.n < size)
        return false;
    if (s.p[4] == 0)
        return read_block(tz, s, &h, 4);
    s = lb_slice(s.p + size, s.n - size);
    if (!read_header(s, &h) || s.n < size_of_block(&h, 8) || !read_block(tz, s, &h, 8))
        return false;
    size = size_of_block(&h, 8);
    struct lb_slice footer = lb_slice(s.p + size, s.n - size);
    if (footer.n < 2 || footer.p[0] != '\n')
        return false;
    const uint8_t *end = memchr(footer.p + 1, '\n', footer.n - 1);
    if (!end)
        return false;
    footer = lb_slice(footer.p + 1, (size_t)(end - footer.p - 1));
    tz->has_rule = footer.n > 0;
    return !tz->has_rule || lb_tz_rule_parse(&tz->rule, footer);
}

const char *lb_tz_folder(void)
{
    const char *folder =
        getenv("TZDIR"); /* NOLINT(concurrency-mt-unsafe): nothing in lade calls setenv */
    return folder && *folder ? folder : "/usr/share/zoneinfo";
}

static int fail_unknown(const char *name, lade_err *err)
{
    char near[LB_TZ_NAME_MAX + 1];
    if (lb_tz_nearest(name, near))
        return lb_fail(err, LADE_EINVAL, "time zone",
                       "there is no time zone '%s': did you mean %s?", name, near);
    return lb_fail(err, LADE_EINVAL, "time zone",
                   "there is no time zone '%s' below %s: check the spelling, or install tzdata",
                   name, lb_tz_folder());
}

int lb_tz_file_load(struct lb_tz *tz, const char *name, lade_err *err)
{
    char path[4096];
    int n = snprintf(path, sizeof(path), "%s/%s", lb_tz_folder(), name);
    FILE *f = n > 0 && (size_t)n < sizeof(path) ? fopen(path, "rbe") : NULL;
    if (!f)
        return fail_unknown(name, err);
    uint8_t *bytes = lb_malloc(FILE_MAX);
    size_t size = bytes ? fread(bytes, 1, FILE_MAX, f) : 0;
    bool failed = ferror(f) != 0;
    (void)fclose(f);
    bool parsed = bytes && !failed && lb_tz_file_parse(tz, lb_slice(bytes, size));
    lb_free(bytes);
    if (!bytes)
        return lb_fail_nomem(err, "time zone");
    return parsed
               ? 0
               : lb_fail(err, failed ? LADE_EINVAL : LADE_EFORMAT, "time zone",
                         "%s is not a time zone file: check the spelling, or install tzdata again",
                         path);
}

void lb_tz_release(char out[16])
{
    char path[4096], line[64] = "";
    out[0] = 0;
    int n = snprintf(path, sizeof(path), "%s/tzdata.zi", lb_tz_folder());
    FILE *f = n > 0 && (size_t)n < sizeof(path) ? fopen(path, "re") : NULL;
    if (!f)
        return;
    if (fgets(line, sizeof(line), f))
        (void)sscanf(line, "# version %15s", out);
    (void)fclose(f);
}
