#include "cli/text.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/base.h"

/* Length of the valid character at p, or 0. Refuses overlong forms, surrogates and what is beyond U+10FFFF. */
static size_t span_of_char(const uint8_t *p, size_t n)
{
    if (p[0] >= 0x01 && p[0] < 0x80)
        return 1;
    size_t len = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
    if (p[0] < 0xc2 || p[0] > 0xf4 || n < len)
        return 0;
    for (size_t i = 1; i < len; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    }
    bool is_overlong = (p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xf0 && p[1] < 0x90);
    bool is_surrogate = p[0] == 0xed && p[1] > 0x9f;
    bool is_beyond = p[0] == 0xf4 && p[1] > 0x8f;
    return is_overlong || is_surrogate || is_beyond ? 0 : len;
}

size_t cli_utf8_span(const void *p, size_t n)
{
    const uint8_t *b = p;
    size_t at = 0;
    while (at < n) {
        size_t len = span_of_char(b + at, n - at);
        if (len == 0)
            break;
        at += len;
    }
    return at;
}

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void cli_base64_encode(struct lb_buf *out, const void *p, size_t n)
{
    const uint8_t *b = p;
    uint8_t *to = lb_buf_reserve(out, n / 3 * 4 + 4);
    if (!to)
        return;
    uint8_t *start = to;
    for (size_t i = 0; i < n; i += 3) {
        size_t have = LB_MIN(n - i, (size_t)3);
        uint32_t v = (uint32_t)b[i] << 16;
        v |= have > 1 ? (uint32_t)b[i + 1] << 8 : 0;
        v |= have > 2 ? b[i + 2] : 0;
        *to++ = (uint8_t)alphabet[v >> 18 & 63];
        *to++ = (uint8_t)alphabet[v >> 12 & 63];
        *to++ = have > 1 ? (uint8_t)alphabet[v >> 6 & 63] : '=';
        *to++ = have > 2 ? (uint8_t)alphabet[v & 63] : '=';
    }
    out->n += (size_t)(to - start);
}

static int value_of(char c)
{
    const char *at = c ? strchr(alphabet, c) : NULL;
    return at ? (int)(at - alphabet) : -1;
}

bool cli_base64_decode(struct lb_buf *out, const char *text, size_t n)
{
    if (n % 4 != 0)
        return false;
    size_t before = out->n;
    for (size_t i = 0; i < n; i += 4) {
        size_t pad = i + 4 < n ? 0 : (size_t)(text[i + 3] == '=') + (size_t)(text[i + 2] == '=');
        uint32_t v = 0;
        for (size_t k = 0; k < 4; k++) {
            int digit = k >= 4 - pad ? 0 : value_of(text[i + k]);
            if (digit < 0 || (pad == 2 && text[i + 3] != '=')) {
                out->n = before;
                return false;
            }
            v = v << 6 | (uint32_t)digit;
        }
        /* Bits that belong to no byte must be zero, or two texts would mean the same bytes. */
        if ((pad == 1 && (v & 0xff) != 0) || (pad == 2 && (v & 0xffff) != 0)) {
            out->n = before;
            return false;
        }
        uint8_t bytes[3] = {(uint8_t)(v >> 16), (uint8_t)(v >> 8), (uint8_t)v};
        lb_buf_add(out, bytes, 3 - pad);
    }
    return true;
}

void cli_add_printable(struct lb_buf *out, const void *p, size_t n, size_t max)
{
    const uint8_t *b = p;
    size_t shown = LB_MIN(n, max);
    for (size_t i = 0; i < shown;) {
        size_t len = span_of_char(b + i, n - i);
        bool is_c1 = len == 2 && b[i] == 0xc2 && b[i + 1] < 0xa0;
        if (b[i] == '\n')
            lb_buf_add_str(out, "\\n");
        else if (b[i] == '\t')
            lb_buf_add_str(out, "\\t");
        else if (len == 0 || b[i] < 0x20 || b[i] == 0x7f || is_c1)
            lb_buf_add_fmt(out, "\\x%02x", b[i]);
        else
            lb_buf_add(out, b + i, len);
        i += len > 1 && !is_c1 ? len : 1;
    }
    if (shown < n)
        lb_buf_add_str(out, "...");
}

/* Levenshtein's distance with one row; names here are short. */
static size_t distance_of(const char *a, const char *b)
{
    size_t row[33];
    size_t nb = strlen(b);
    if (nb > 32 || strlen(a) > 32)
        return SIZE_MAX;
    for (size_t j = 0; j <= nb; j++)
        row[j] = j;
    for (size_t i = 1; a[i - 1]; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            size_t above = row[j];
            size_t change = diagonal + (a[i - 1] != b[j - 1]);
            row[j] = LB_MIN(change, LB_MIN(above, row[j - 1]) + 1);
            diagonal = above;
        }
    }
    return row[nb];
}

const char *cli_nearest(const char *typed, const char *const *names, size_t n)
{
    const char *best = NULL;
    size_t best_distance = LB_MAX(strlen(typed) / 3, (size_t)1) + 1;
    for (size_t i = 0; i < n; i++) {
        size_t d = distance_of(typed, names[i]);
        if (d < best_distance) {
            best = names[i];
            best_distance = d;
        }
    }
    return best;
}

void cli_time_text(char out[CLI_TIME_LEN], int64_t ns)
{
    time_t seconds = (time_t)(ns / LADE_SECOND);
    struct tm tm;
    char day[24];
    if (ns <= 0 || !gmtime_r(&seconds, &tm) ||
        strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%S", &tm) == 0) {
        (void)snprintf(out, CLI_TIME_LEN, "-");
        return;
    }
    (void)snprintf(out, CLI_TIME_LEN, "%s.%03dZ", day, (int)(ns % LADE_SECOND / LADE_MILLISECOND));
}

void cli_duration_text(char out[CLI_TIME_LEN], int64_t ns)
{
    static const struct {
        int64_t unit;
        const char *name;
    } units[] = {{LADE_DAY, "d"}, {LADE_HOUR, "h"}, {LADE_MINUTE, "m"}, {LADE_SECOND, "s"}};

    if (ns < LADE_SECOND) {
        (void)snprintf(out, CLI_TIME_LEN, "%dms", (int)(LB_MAX(ns, 0) / LADE_MILLISECOND));
        return;
    }
    if (ns < 10 * LADE_SECOND && ns % LADE_SECOND >= 100 * LADE_MILLISECOND) {
        (void)snprintf(out, CLI_TIME_LEN, "%d.%ds", (int)(ns / LADE_SECOND),
                       (int)(ns % LADE_SECOND / (100 * LADE_MILLISECOND)));
        return;
    }
    size_t i = 0;
    while (ns < units[i].unit)
        i++;
    int64_t big = ns / units[i].unit;
    int64_t small = i + 1 < LB_ARRAY_LEN(units) ? ns % units[i].unit / units[i + 1].unit : 0;
    if (small > 0)
        (void)snprintf(out, CLI_TIME_LEN, "%lld%s%lld%s", (long long)big, units[i].name,
                       (long long)small, units[i + 1].name);
    else
        (void)snprintf(out, CLI_TIME_LEN, "%lld%s", (long long)big, units[i].name);
}
