/* resque_json_out.c - strings, floats and whole values as Ruby writes them; see resque_json.h */
#include "resque/resque_json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/err.h"

static unsigned hex4(const uint8_t *p)
{
    unsigned v = 0;
    for (int i = 0; i < 4; i++) {
        unsigned c = p[i] | 0x20u;
        v = v * 16 + (c <= '9' ? c - '0' : c - 'a' + 10);
    }
    return v;
}

static void add_utf8(struct lb_buf *out, unsigned c)
{
    if (c < 0x80) {
        lb_buf_add_byte(out, (uint8_t)c);
    } else if (c < 0x800) {
        lb_buf_add_byte(out, (uint8_t)(0xc0 | c >> 6));
        lb_buf_add_byte(out, (uint8_t)(0x80 | (c & 0x3f)));
    } else if (c < 0x10000) {
        lb_buf_add_byte(out, (uint8_t)(0xe0 | c >> 12));
        lb_buf_add_byte(out, (uint8_t)(0x80 | (c >> 6 & 0x3f)));
        lb_buf_add_byte(out, (uint8_t)(0x80 | (c & 0x3f)));
    } else {
        lb_buf_add_byte(out, (uint8_t)(0xf0 | c >> 18));
        lb_buf_add_byte(out, (uint8_t)(0x80 | (c >> 12 & 0x3f)));
        lb_buf_add_byte(out, (uint8_t)(0x80 | (c >> 6 & 0x3f)));
        lb_buf_add_byte(out, (uint8_t)(0x80 | (c & 0x3f)));
    }
}

/* The escape at p, which the reader has checked. Its length; 0 for half a surrogate pair. */
static size_t add_escape(struct lb_buf *out, const uint8_t *p, const uint8_t *end)
{
    static const char from[] = "\"\\/bfnrt";
    static const char to[] = "\"\\/\b\f\n\r\t";
    if (p[1] != 'u') {
        lb_buf_add_byte(out, (uint8_t)to[strchr(from, p[1]) - from]);
        return 2;
    }
    unsigned c = hex4(p + 2);
    if (c < 0xd800 || c > 0xdfff) {
        add_utf8(out, c);
        return 6;
    }
    if (c > 0xdbff || end - p < 12 || p[6] != '\\' || p[7] != 'u')
        return 0;
    unsigned low = hex4(p + 8);
    if (low < 0xdc00 || low > 0xdfff)
        return 0;
    add_utf8(out, 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00));
    return 12;
}

bool rq_json_unquote(struct lb_buf *out, struct lb_slice raw)
{
    struct rq_json r = rq_json(raw);
    if (raw.n < 2 || raw.p[0] != '"' || rq_json_value(&r).n != raw.n)
        return false;
    const uint8_t *end = raw.p + raw.n - 1;
    for (const uint8_t *p = raw.p + 1; p < end;) {
        const uint8_t *plain = p;
        while (p < end && *p != '\\')
            p++;
        lb_buf_add(out, plain, (size_t)(p - plain));
        if (p == end)
            break;
        size_t n = add_escape(out, p, end);
        if (n == 0)
            return false;
        p += n;
    }
    return !out->failed;
}

/* The characters that Ruby escapes, and no others. */
static void add_quoted(struct lb_buf *out, uint8_t c)
{
    static const char from[] = "\"\\\b\f\n\r\t";
    static const char to[] = "\"\\bfnrt";
    const char *at = c ? strchr(from, c) : NULL;
    if (at) {
        lb_buf_add_byte(out, '\\');
        lb_buf_add_byte(out, (uint8_t)to[at - from]);
    } else {
        lb_buf_add_fmt(out, "\\u%04x", c);
    }
}

static bool is_plain(uint8_t c)
{
    return c >= 0x20 && c != '"' && c != '\\';
}

bool rq_json_quote(struct lb_buf *out, struct lb_slice text)
{
    if (!rq_utf8_is_valid(text))
        return false;
    lb_buf_add_byte(out, '"');
    for (size_t i = 0; i < text.n;) {
        size_t from = i;
        while (i < text.n && is_plain(text.p[i]))
            i++;
        lb_buf_add(out, text.p + from, i - from);
        if (i < text.n)
            add_quoted(out, text.p[i++]);
    }
    lb_buf_add_byte(out, '"');
    return true;
}

void rq_json_quote_lossy(struct lb_buf *out, struct lb_slice bytes)
{
    struct lb_buf good = {0};
    for (size_t i = 0; i < bytes.n;) {
        size_t n = LB_MIN((size_t)4, bytes.n - i);
        size_t k = 1;
        /* The character that begins here is the shortest run of bytes that is valid by itself. */
        while (k <= n && !rq_utf8_is_valid(lb_slice(bytes.p + i, k)))
            k++;
        if (k <= n)
            lb_buf_add(&good, bytes.p + i, k);
        else
            lb_buf_add_str(&good, "\xef\xbf\xbd");
        i += k <= n ? k : 1;
    }
    if (good.failed || !rq_json_quote(out, lb_buf_slice(&good)))
        out->failed = true;
    lb_buf_fini(&good);
}

/* The fewest digits that read back as v, and the power of ten of the first. */
static void shortest(double v, char digits[32], int *exponent)
{
    char text[40];
    int precision = 0;
    do
        (void)snprintf(text, sizeof(text), "%.*e", precision, v);
    while (strtod(text, NULL) != v && ++precision < 17);
    char *e = strchr(text, 'e');
    *exponent = (int)strtol(e + 1, NULL, 10);
    size_t n = 0;
    for (const char *p = text; p < e; p++)
        if (*p != '.' && *p != '-')
            digits[n++] = *p;
    digits[n] = 0;
}

bool rq_json_float(struct lb_buf *out, double v)
{
    if (!isfinite(v))
        return false;
    if (signbit(v))
        lb_buf_add_byte(out, '-');
    char d[32];
    int e;
    shortest(fabs(v), d, &e);
    int n = (int)strlen(d);
    if (v == 0) {
        lb_buf_add_str(out, "0.0");
    } else if (e < -4 || e >= 16) {
        lb_buf_add_fmt(out, "%c.%se%c%02d", d[0], n > 1 ? d + 1 : "0", e < 0 ? '-' : '+', abs(e));
    } else if (e < 0) {
        lb_buf_add_fmt(out, "0.%.*s%s", -e - 1, "000", d);
    } else if (n <= e + 1) {
        lb_buf_add_fmt(out, "%s%.*s.0", d, e + 1 - n, "0000000000000000");
    } else {
        lb_buf_add_fmt(out, "%.*s.%s", e + 1, d, d + e + 1);
    }
    return true;
}

static bool rewrite_number(struct lb_buf *out, struct lb_slice raw)
{
    bool real = memchr(raw.p, '.', raw.n) || memchr(raw.p, 'e', raw.n) || memchr(raw.p, 'E', raw.n);
    if (!real) {
        bool minus_zero = raw.n == 2 && raw.p[0] == '-' && raw.p[1] == '0';
        lb_buf_add(out, raw.p + minus_zero, raw.n - minus_zero);
        return true;
    }
    char text[512];
    if (raw.n >= sizeof(text))
        return false;
    memcpy(text, raw.p, raw.n);
    text[raw.n] = 0;
    return rq_json_float(out, strtod(text, NULL));
}

static bool rewrite_string(struct lb_buf *out, struct lb_slice raw)
{
    struct lb_buf plain = {0};
    bool ok = rq_json_unquote(&plain, raw) && rq_json_quote(out, lb_buf_slice(&plain));
    lb_buf_fini(&plain);
    return ok;
}

static bool rewrite(struct lb_buf *out, struct lb_slice raw);

static bool rewrite_members(struct lb_buf *out, struct lb_slice raw)
{
    struct rq_json r = rq_json(raw);
    bool object = raw.p[0] == '{';
    bool first = true;
    (void)rq_json_enter(&r, raw.p[0]);
    lb_buf_add_byte(out, raw.p[0]);
    while (rq_json_next(&r, object ? '}' : ']')) {
        if (!first)
            lb_buf_add_byte(out, ',');
        first = false;
        if (object) {
            if (!rewrite_string(out, rq_json_name(&r)))
                return false;
            lb_buf_add_byte(out, ':');
        }
        if (!rewrite(out, rq_json_value(&r)))
            return false;
    }
    lb_buf_add_byte(out, object ? '}' : ']');
    return !r.bad;
}

/* raw is one value that the reader has found to be whole: it bounds the depth. */
static bool rewrite(struct lb_buf *out, struct lb_slice raw)
{
    switch (raw.n > 0 ? raw.p[0] : 0) {
    case 0:
        return false;
    case '"':
        return rewrite_string(out, raw);
    case '{':
    case '[':
        return rewrite_members(out, raw);
    case 't':
    case 'f':
    case 'n':
        lb_buf_add(out, raw.p, raw.n);
        return true;
    default:
        return rewrite_number(out, raw);
    }
}

int rq_json_rewrite(struct lb_buf *out, struct lb_slice text, lade_err *err)
{
    size_t before = out->n;
    struct rq_json r = rq_json(text);
    struct lb_slice raw = rq_json_value(&r);
    if (rq_json_done(&r) && rewrite(out, raw))
        return out->failed ? lb_fail_nomem(err, "json") : 0;
    out->n = before;
    return lb_fail(
        err, LADE_EINVAL, "json",
        "not JSON that Ruby reads and writes (RFC 8259 in UTF-8, nested at most %d deep, floats within a double)",
        RQ_JSON_DEPTH);
}
