/*
 * resp.c - scanner and cursor of the Redis serialization protocol (command.c has the writer)
 *
 * A reply is a tree written in prefix order, so a scanner needs no tree: `left[depth]` counts the values still to come
 * at each level, a container header takes one from its level and opens the next. An attribute opens a level without
 * taking one, since the value it describes follows it. Nothing is allocated for a declared count or length: both are
 * only numbers to reach.
 *
 * The scanner checks all form; the cursor trusts it and only reads headers again, which costs less than storing them.
 */
#include "store/redis/resp.h"

#include "base/base.h"

#define NUMBER_MAX 21 /* sign and 20 digits: longer is no number of ours */

/* scan ----------------------------------------------------------------------------------------------------------- */

void ls_redis_scan_init(struct ls_redis_scan *s, size_t reply_max)
{
    *s = (struct ls_redis_scan){.reply_max = reply_max, .items = 1};
    s->left[0] = 1;
}

size_t ls_redis_scan_missing(const struct ls_redis_scan *s, size_t n)
{
    size_t have = n - s->at;
    return s->body > have ? s->body - have : 1;
}

static enum ls_redis_scanned refuse(struct ls_redis_scan *s, const char *why)
{
    s->why = why;
    return LS_REDIS_SCAN_BAD;
}

static enum ls_redis_scanned refuse_over(struct ls_redis_scan *s, const char *why)
{
    s->over = true;
    return refuse(s, why);
}

/* Decimal with an optional sign, nothing else; false also when it is out of range. */
static bool parse_i64(const uint8_t *p, size_t n, int64_t *out)
{
    bool minus = n > 0 && p[0] == '-';
    size_t i = n > 0 && (minus || p[0] == '+');
    if (i == n || n > NUMBER_MAX)
        return false;
    uint64_t v = 0;
    for (; i < n; i++) {
        unsigned d = (unsigned)p[i] - '0';
        if (d > 9 || __builtin_mul_overflow(v, UINT64_C(10), &v) ||
            __builtin_add_overflow(v, (uint64_t)d, &v))
            return false;
    }
    if (v > (uint64_t)INT64_MAX + minus)
        return false;
    *out = (int64_t)(minus ? 0 - v : v);
    return true;
}

/* The line that starts at p, of n bytes that are there: its length without CRLF in *len. `s->seen` bytes have no CR. */
static enum ls_redis_scanned find_line(struct ls_redis_scan *s, const uint8_t *p, size_t n,
                                       size_t *len)
{
    size_t bound = LB_MIN(n, LS_REDIS_LINE_MAX + 1);
    const uint8_t *cr = s->seen < bound ? memchr(p + s->seen, '\r', bound - s->seen) : NULL;
    if (!cr && n > LS_REDIS_LINE_MAX)
        return refuse_over(s, "a line over 64 KiB");
    size_t at = cr ? (size_t)(cr - p) : bound;
    if (s->seen < at && memchr(p + s->seen, '\n', at - s->seen))
        return refuse(s, "a line feed inside a line");
    s->seen = at;
    if (!cr || at + 1 >= n)
        return LS_REDIS_SCAN_MORE;
    if (p[at + 1] != '\n')
        return refuse(s, "a carriage return inside a line");
    s->seen = 0;
    *len = at;
    return LS_REDIS_SCAN_DONE;
}

static size_t count_digits(const uint8_t *p, size_t n, size_t i)
{
    size_t start = i;
    while (i < n && p[i] >= '0' && p[i] <= '9')
        i++;
    return i - start;
}

static bool is_big_number(const uint8_t *p, size_t n)
{
    size_t sign = n > 0 && (p[0] == '-' || p[0] == '+');
    return n > sign && count_digits(p, n, sign) == n - sign;
}

static bool is_double(const uint8_t *p, size_t n)
{
    size_t i = n > 0 && (p[0] == '-' || p[0] == '+');
    if (n - i == 3 && (memcmp(p + i, "inf", 3) == 0 || memcmp(p + i, "nan", 3) == 0))
        return true;
    size_t whole = count_digits(p, n, i);
    i += whole;
    if (whole == 0)
        return false;
    if (i < n && p[i] == '.') {
        size_t fraction = count_digits(p, n, i + 1);
        if (fraction == 0)
            return false;
        i += 1 + fraction;
    }
    if (i < n && (p[i] == 'e' || p[i] == 'E')) {
        i++;
        i += i < n && (p[i] == '-' || p[i] == '+');
        size_t exponent = count_digits(p, n, i);
        if (exponent == 0)
            return false;
        i += exponent;
    }
    return i == n;
}

static const char *check_line(uint8_t type, const uint8_t *p, size_t n)
{
    switch (type) {
    case '+':
    case '-':
        return NULL;
    case '_':
        return n == 0 ? NULL : "a null with text";
    case '#':
        return n == 1 && (*p == 't' || *p == 'f') ? NULL : "a boolean that is not t or f";
    case ',':
        return is_double(p, n) ? NULL : "a double that is not a number";
    case '(':
        return is_big_number(p, n) ? NULL : "a big number that is not a number";
    default:
        return "an unknown type";
    }
}

/*
 * The number line of a header that starts at p (after the type byte). Done without a search for its end, since most
 * headers are numbers of a few digits. *len: with CRLF.
 */
static enum ls_redis_scanned scan_number(struct ls_redis_scan *s, const uint8_t *p, size_t n,
                                         int64_t *v, size_t *len)
{
    size_t i = 0;
    uint64_t u = 0;
    while (i < n && i < 18 && (unsigned)(p[i] - '0') <= 9)
        u = u * 10 + (p[i++] - '0');
    if (LB_UNLIKELY(i == 0 || i == 18 || i == n || p[i] != '\r')) {
        while (i < n && i <= NUMBER_MAX && p[i] != '\r')
            i++;
        if (i > NUMBER_MAX)
            return refuse(s, "a number that is too long");
        if (i == n) {
            bool sign = n == 1 && (p[0] == '-' || p[0] == '+');
            bool sane = n == 0 || sign || parse_i64(p, n, v);
            return sane ? LS_REDIS_SCAN_MORE : refuse(s, "a number that is none");
        }
        if (!parse_i64(p, i, v))
            return refuse(s, "a number that is none");
    } else {
        *v = (int64_t)u;
    }
    if (i + 1 >= n)
        return LS_REDIS_SCAN_MORE;
    if (p[i + 1] != '\n')
        return refuse(s, "a number that does not end with CRLF");
    *len = i + 2;
    return LS_REDIS_SCAN_DONE;
}

static bool is_numbered(uint8_t type)
{
    switch (type) {
    case ':':
    case '$':
    case '=':
    case '!':
    case '*':
    case '~':
    case '>':
    case '%':
    case '|':
        return true;
    default:
        return false;
    }
}

static bool is_lined(uint8_t type)
{
    return type == '+' || type == '-' || type == '_' || type == '#' || type == ',' || type == '(';
}

/* A container of `count` values or pairs: opens a level. */
static enum ls_redis_scanned enter(struct ls_redis_scan *s, uint8_t type, int64_t count)
{
    if (type != '|')
        s->left[s->depth]--;
    if (type == '*' && count == -1)
        return LS_REDIS_SCAN_DONE;
    if (count < 0)
        return refuse(s, "a negative count");
    bool pairs = type == '%' || type == '|';
    if (count > LS_REDIS_ITEMS_MAX || s->items + (uint64_t)count * (1 + pairs) > LS_REDIS_ITEMS_MAX)
        return refuse_over(s, "too many values");
    uint32_t n = (uint32_t)count * (1 + pairs);
    s->items += n;
    if (n == 0)
        return LS_REDIS_SCAN_DONE;
    if (s->depth == LS_REDIS_DEPTH_MAX)
        return refuse_over(s, "values nested too deeply");
    s->left[++s->depth] = n;
    return LS_REDIS_SCAN_DONE;
}

/* After the header of a bulk string: s->at is at its first byte. */
static enum ls_redis_scanned open_bulk(struct ls_redis_scan *s, uint8_t type, int64_t size)
{
    if (type == '$' && size == -1) {
        s->left[s->depth]--;
        return LS_REDIS_SCAN_DONE;
    }
    if (size < 0)
        return refuse(s, "a negative length");
    if (s->at > s->reply_max || (uint64_t)size > s->reply_max - s->at)
        return refuse_over(s, "a string over the limit of a reply");
    if (type == '=' && size < 4)
        return refuse(s, "a verbatim string without its type");
    s->verbatim = type == '=';
    s->body = (size_t)size + 2;
    return LS_REDIS_SCAN_DONE;
}

static enum ls_redis_scanned close_bulk(struct ls_redis_scan *s, const uint8_t *p, size_t n)
{
    if (n - s->at < s->body)
        return LS_REDIS_SCAN_MORE;
    const uint8_t *b = p + s->at;
    if (b[s->body - 2] != '\r' || b[s->body - 1] != '\n')
        return refuse(s, "a string that is not as long as it says");
    if (s->verbatim && b[3] != ':')
        return refuse(s, "a verbatim string without its type");
    s->at += s->body;
    s->body = 0;
    s->left[s->depth]--;
    return LS_REDIS_SCAN_DONE;
}

static enum ls_redis_scanned scan_numbered(struct ls_redis_scan *s, uint8_t type, const uint8_t *p,
                                           size_t n)
{
    int64_t v;
    size_t len;
    enum ls_redis_scanned r = scan_number(s, p + s->at + 1, n - s->at - 1, &v, &len);
    if (r != LS_REDIS_SCAN_DONE)
        return r;
    s->at += 1 + len;
    if (type == ':') {
        s->left[s->depth]--;
        return LS_REDIS_SCAN_DONE;
    }
    if (type != '$' && type != '=' && type != '!')
        return enter(s, type, v);
    r = open_bulk(s, type, v);
    return r == LS_REDIS_SCAN_DONE && s->body ? close_bulk(s, p, n) : r;
}

static enum ls_redis_scanned scan_line(struct ls_redis_scan *s, uint8_t type, const uint8_t *p,
                                       size_t n)
{
    size_t len;
    if (!is_lined(type))
        return refuse(s, "an unknown type");
    enum ls_redis_scanned r = find_line(s, p + s->at + 1, n - s->at - 1, &len);
    if (r != LS_REDIS_SCAN_DONE)
        return r;
    const char *why = check_line(type, p + s->at + 1, len);
    if (why)
        return refuse(s, why);
    s->at += 1 + len + 2;
    s->left[s->depth]--;
    return LS_REDIS_SCAN_DONE;
}

static enum ls_redis_scanned scan_value(struct ls_redis_scan *s, const uint8_t *p, size_t n)
{
    if (s->body)
        return close_bulk(s, p, n);
    if (s->at > s->reply_max)
        return refuse_over(s, "a reply over the limit");
    if (s->at == n)
        return LS_REDIS_SCAN_MORE;
    uint8_t type = p[s->at];
    return is_numbered(type) ? scan_numbered(s, type, p, n) : scan_line(s, type, p, n);
}

enum ls_redis_scanned ls_redis_scan(struct ls_redis_scan *scan, const uint8_t *p, size_t n)
{
    if (scan->why)
        return LS_REDIS_SCAN_BAD;
    struct ls_redis_scan s = *scan; /* a copy that p cannot alias, so that it stays in registers */
    enum ls_redis_scanned r = LS_REDIS_SCAN_DONE;
    for (;;) {
        while (s.left[s.depth] == 0 && s.depth > 0)
            s.depth--;
        if (s.left[s.depth] == 0)
            break;
        r = scan_value(&s, p, n);
        if (r != LS_REDIS_SCAN_DONE)
            break;
    }
    *scan = s;
    return r;
}

/* cursor --------------------------------------------------------------------------------------------------------- */

struct ls_redis_cursor ls_redis_cursor(struct lb_slice reply)
{
    return (struct ls_redis_cursor){.p = reply.p, .end = reply.p + reply.n};
}

/* The number of a checked header line; leaves c->p behind its CRLF. */
static int64_t take_number(struct ls_redis_cursor *c)
{
    const uint8_t *p = c->p;
    bool minus = *p == '-';
    p += minus || *p == '+';
    uint64_t v = 0;
    while (*p != '\r')
        v = v * 10 + (*p++ - '0');
    c->p = p + 2;
    return (int64_t)(minus ? 0 - v : v);
}

static struct lb_slice take_line(struct ls_redis_cursor *c)
{
    const uint8_t *start = c->p;
    const uint8_t *cr = memchr(start, '\r', (size_t)(c->end - start));
    c->p = cr + 2;
    return lb_slice(start, (size_t)(cr - start));
}

static struct lb_slice take_body(struct ls_redis_cursor *c, int64_t size)
{
    const uint8_t *start = c->p;
    c->p += (size_t)size + 2;
    return lb_slice(start, (size_t)size);
}

static struct ls_redis_value take_string(struct ls_redis_cursor *c, uint8_t type)
{
    int64_t size = take_number(c);
    if (size < 0)
        return (struct ls_redis_value){.type = LS_REDIS_NULL};
    struct lb_slice b = take_body(c, size);
    if (type == '=')
        return (struct ls_redis_value){.type = LS_REDIS_VERBATIM,
                                       .bytes = lb_slice(b.p + 4, b.n - 4)};
    return (struct ls_redis_value){.type = type == '$' ? LS_REDIS_BULK : LS_REDIS_ERROR,
                                   .bytes = b};
}

static struct ls_redis_value take_container(struct ls_redis_cursor *c, enum ls_redis_type type)
{
    int64_t n = take_number(c);
    if (n < 0)
        return (struct ls_redis_value){.type = LS_REDIS_NULL};
    return (struct ls_redis_value){.type = type, .n = (size_t)n * (type == LS_REDIS_MAP ? 2 : 1)};
}

static struct ls_redis_value take_text(struct ls_redis_cursor *c, enum ls_redis_type type)
{
    return (struct ls_redis_value){.type = type, .bytes = take_line(c)};
}

/* The value at c->p, which is not at the end and not an attribute. */
static struct ls_redis_value take_value(struct ls_redis_cursor *c)
{
    uint8_t type = *c->p++;
    switch (type) {
    case ':':
        return (struct ls_redis_value){.type = LS_REDIS_INT, .integer = take_number(c)};
    case '$':
    case '=':
    case '!':
        return take_string(c, type);
    case '*':
        return take_container(c, LS_REDIS_ARRAY);
    case '~':
        return take_container(c, LS_REDIS_SET);
    case '>':
        return take_container(c, LS_REDIS_PUSH);
    case '%':
        return take_container(c, LS_REDIS_MAP);
    case '+':
        return take_text(c, LS_REDIS_SIMPLE);
    case '-':
        return take_text(c, LS_REDIS_ERROR);
    case ',':
        return take_text(c, LS_REDIS_DOUBLE);
    case '(':
        return take_text(c, LS_REDIS_BIG);
    case '#':
        return (struct ls_redis_value){.type = LS_REDIS_BOOL, .integer = take_line(c).p[0] == 't'};
    default: /* '_': scan lets nothing else through */
        (void)take_line(c);
        return (struct ls_redis_value){.type = LS_REDIS_NULL};
    }
}

/* Passes over `left` values, attributes among them not counted. */
static void pass(struct ls_redis_cursor *c, uint64_t left)
{
    while (left > 0 && c->p < c->end) {
        if (*c->p == '|') {
            c->p++;
            left += 2 * (uint64_t)take_number(c);
            continue;
        }
        left += take_value(c).n;
        left--;
    }
}

/* True when there is a value at c->p. */
static bool pass_attributes(struct ls_redis_cursor *c)
{
    if (c->bad)
        return false;
    while (c->p < c->end && *c->p == '|') {
        c->p++;
        pass(c, 2 * (uint64_t)take_number(c));
    }
    return c->p < c->end;
}

struct ls_redis_value ls_redis_read(struct ls_redis_cursor *c)
{
    if (!pass_attributes(c))
        return (struct ls_redis_value){.type = LS_REDIS_NONE};
    return take_value(c);
}

enum ls_redis_type ls_redis_peek(struct ls_redis_cursor *c)
{
    if (!pass_attributes(c))
        return LS_REDIS_NONE;
    struct ls_redis_cursor ahead = *c;
    return take_value(&ahead).type;
}

int64_t ls_redis_read_int(struct ls_redis_cursor *c)
{
    struct ls_redis_value v = ls_redis_read(c);
    if (LB_LIKELY(v.type == LS_REDIS_INT) || v.type == LS_REDIS_BOOL)
        return v.integer;
    bool text = v.type == LS_REDIS_BULK || v.type == LS_REDIS_SIMPLE;
    if (text && parse_i64(v.bytes.p, v.bytes.n, &v.integer))
        return v.integer;
    c->bad = true;
    return 0;
}

struct lb_slice ls_redis_read_bytes_or_null(struct ls_redis_cursor *c)
{
    struct ls_redis_value v = ls_redis_read(c);
    switch (v.type) {
    case LS_REDIS_BULK:
    case LS_REDIS_SIMPLE:
    case LS_REDIS_VERBATIM:
        return v.bytes;
    case LS_REDIS_NULL:
        break;
    case LS_REDIS_NONE:
    case LS_REDIS_ERROR:
    case LS_REDIS_INT:
    case LS_REDIS_ARRAY:
    case LS_REDIS_SET:
    case LS_REDIS_PUSH:
    case LS_REDIS_MAP:
    case LS_REDIS_DOUBLE:
    case LS_REDIS_BOOL:
    case LS_REDIS_BIG:
        c->bad = true;
    }
    return (struct lb_slice){0};
}

struct lb_slice ls_redis_read_bytes(struct ls_redis_cursor *c)
{
    struct lb_slice b = ls_redis_read_bytes_or_null(c);
    if (!b.p)
        c->bad = true;
    return b;
}

size_t ls_redis_read_array(struct ls_redis_cursor *c)
{
    struct ls_redis_value v = ls_redis_read(c);
    switch (v.type) {
    case LS_REDIS_ARRAY:
    case LS_REDIS_SET:
    case LS_REDIS_PUSH:
    case LS_REDIS_MAP:
        return v.n;
    case LS_REDIS_NULL:
        return 0;
    case LS_REDIS_NONE:
    case LS_REDIS_SIMPLE:
    case LS_REDIS_ERROR:
    case LS_REDIS_INT:
    case LS_REDIS_BULK:
    case LS_REDIS_VERBATIM:
    case LS_REDIS_DOUBLE:
    case LS_REDIS_BOOL:
    case LS_REDIS_BIG:
        break;
    }
    c->bad = true;
    return 0;
}

void ls_redis_skip(struct ls_redis_cursor *c)
{
    if (!pass_attributes(c)) {
        c->bad = true;
        return;
    }
    pass(c, 1);
}
