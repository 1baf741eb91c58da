/*
 * resque_json.c - reading; writing is in resque_json_out.c
 *
 * The grammar is RFC 8259's. Values are found by recursion, which RQ_JSON_DEPTH bounds.
 */
#include "resque/resque_json.h"

#include <string.h>

struct rq_json rq_json(struct lb_slice text)
{
    return (struct rq_json){.p = text.p, .end = text.p ? text.p + text.n : NULL};
}

uint8_t rq_json_peek(struct rq_json *r)
{
    if (r->bad)
        return 0;
    while (r->p < r->end && (*r->p == ' ' || *r->p == '\t' || *r->p == '\n' || *r->p == '\r'))
        r->p++;
    return r->p < r->end ? *r->p : 0;
}

static void stop(struct rq_json *r)
{
    r->bad = true;
}

/* Bytes of the UTF-8 character at p, 0 when it is none (RFC 3629: no surrogates, no overlong forms). */
static size_t utf8_length(const uint8_t *p, const uint8_t *end)
{
    size_t left = (size_t)(end - p);
    uint8_t c = p[0];
    if (c < 0x80)
        return 1;
    size_t n = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
    if (c < 0xc2 || c > 0xf4 || left < n)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    bool overlong = (c == 0xe0 && p[1] < 0xa0) || (c == 0xf0 && p[1] < 0x90);
    bool outside = (c == 0xed && p[1] > 0x9f) || (c == 0xf4 && p[1] > 0x8f);
    return overlong || outside ? 0 : n;
}

bool rq_utf8_is_valid(struct lb_slice text)
{
    const uint8_t *end = text.p + text.n;
    for (const uint8_t *p = text.p; p < end;) {
        size_t n = utf8_length(p, end);
        if (n == 0)
            return false;
        p += n;
    }
    return true;
}

static bool is_hex4(const uint8_t *p, const uint8_t *end)
{
    if (end - p < 4)
        return false;
    for (int i = 0; i < 4; i++) {
        uint8_t c = p[i] | 0x20;
        if (!(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'f'))
            return false;
    }
    return true;
}

static void skip_string(struct rq_json *r)
{
    r->p++;
    while (r->p < r->end) {
        uint8_t c = *r->p;
        if (c == '"') {
            r->p++;
            return;
        }
        if (c == '\\') {
            uint8_t e = r->end - r->p > 1 ? r->p[1] : 0;
            bool unicode = e == 'u' && is_hex4(r->p + 2, r->end);
            if (!unicode && (e == 0 || !strchr("\"\\/bfnrt", e)))
                break;
            r->p += unicode ? 6 : 2;
        } else {
            size_t n = c < 0x20 ? 0 : utf8_length(r->p, r->end);
            if (n == 0)
                break;
            r->p += n;
        }
    }
    stop(r);
}

static bool skip_digits(struct rq_json *r)
{
    const uint8_t *from = r->p;
    while (r->p < r->end && *r->p >= '0' && *r->p <= '9')
        r->p++;
    return r->p > from;
}

static void skip_number(struct rq_json *r)
{
    if (*r->p == '-')
        r->p++;
    bool zero = r->p < r->end && *r->p == '0';
    if (zero)
        r->p++;
    else if (!skip_digits(r))
        stop(r);
    if (!r->bad && r->p < r->end && *r->p == '.') {
        r->p++;
        if (!skip_digits(r))
            stop(r);
    }
    if (!r->bad && r->p < r->end && (*r->p | 0x20) == 'e') {
        r->p++;
        if (r->p < r->end && (*r->p == '+' || *r->p == '-'))
            r->p++;
        if (!skip_digits(r))
            stop(r);
    }
}

static void skip_word(struct rq_json *r, const char *word)
{
    size_t n = strlen(word);
    if ((size_t)(r->end - r->p) < n || memcmp(r->p, word, n) != 0)
        stop(r);
    else
        r->p += n;
}

bool rq_json_enter(struct rq_json *r, uint8_t open)
{
    if (rq_json_peek(r) != open) {
        stop(r);
        return false;
    }
    r->p++;
    return true;
}

/* Called before each element: behind '[' or '{', or behind the one before. */
bool rq_json_next(struct rq_json *r, uint8_t close)
{
    const uint8_t *before = r->p;
    uint8_t c = rq_json_peek(r);
    if (r->bad)
        return false;
    uint8_t open = close == ']' ? '[' : '{';
    /* The last byte that was no blank tells whether this is the first element: only then no comma is due. */
    const uint8_t *last = before - 1;
    while (*last == ' ' || *last == '\t' || *last == '\n' || *last == '\r')
        last--;
    bool first = *last == open;
    if (c == close) {
        r->p++;
        return false;
    }
    if (first)
        return true;
    if (c != ',') {
        stop(r);
        return false;
    }
    r->p++;
    return true;
}

struct lb_slice rq_json_name(struct rq_json *r)
{
    if (rq_json_peek(r) != '"') {
        stop(r);
        return (struct lb_slice){0};
    }
    const uint8_t *from = r->p;
    skip_string(r);
    struct lb_slice name = lb_slice(from, (size_t)(r->p - from));
    if (rq_json_peek(r) != ':')
        stop(r);
    else
        r->p++;
    return name;
}

static void skip_value(struct rq_json *r, int depth);

static void skip_members(struct rq_json *r, int depth)
{
    bool object = *r->p++ == '{';
    uint8_t close = object ? '}' : ']';
    if (depth == 0) {
        stop(r);
        return;
    }
    bool first = true;
    for (;;) {
        uint8_t c = rq_json_peek(r);
        if (c == close) {
            r->p++;
            return;
        }
        if (!first && c != ',')
            stop(r);
        if (r->bad)
            return;
        if (!first)
            r->p++;
        first = false;
        if (object)
            (void)rq_json_name(r);
        if (!r->bad)
            skip_value(r, depth - 1);
        if (r->bad)
            return;
        /* "[1,]": after a comma a value must come, which skip_value has seen to. */
    }
}

static void skip_value(struct rq_json *r, int depth)
{
    switch (rq_json_peek(r)) {
    case '"':
        skip_string(r);
        break;
    case '{':
    case '[':
        skip_members(r, depth);
        break;
    case 't':
        skip_word(r, "true");
        break;
    case 'f':
        skip_word(r, "false");
        break;
    case 'n':
        skip_word(r, "null");
        break;
    case '-':
    case '0':
    case '1':
    case '2':
    case '3':
    case '4':
    case '5':
    case '6':
    case '7':
    case '8':
    case '9':
        skip_number(r);
        break;
    default:
        stop(r);
    }
}

struct lb_slice rq_json_value(struct rq_json *r)
{
    (void)rq_json_peek(r);
    const uint8_t *from = r->p;
    if (!r->bad)
        skip_value(r, RQ_JSON_DEPTH);
    return r->bad ? (struct lb_slice){0} : lb_slice(from, (size_t)(r->p - from));
}

bool rq_json_done(struct rq_json *r)
{
    (void)rq_json_peek(r);
    return !r->bad && r->p == r->end;
}

bool rq_json_int(struct lb_slice raw, int64_t *out)
{
    size_t i = 0;
    bool minus = raw.n > 0 && raw.p[0] == '-';
    if (minus)
        i++;
    if (i == raw.n)
        return false;
    int64_t v = 0;
    for (; i < raw.n; i++) {
        int digit = raw.p[i] - '0';
        if (digit < 0 || digit > 9 || __builtin_mul_overflow(v, 10, &v) ||
            __builtin_add_overflow(v, minus ? -digit : digit, &v))
            return false;
    }
    *out = v;
    return true;
}

bool rq_json_is(struct lb_slice raw, const char *text)
{
    size_t n = strlen(text);
    return raw.n == n + 2 && memcmp(raw.p + 1, text, n) == 0 && raw.p[0] == '"' &&
           !memchr(text, '\\', n);
}
