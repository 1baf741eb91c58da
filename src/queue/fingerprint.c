#include "queue/fingerprint.h"

#include <stdbool.h>
#include <string.h>

#include "base/base.h"

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_hex(uint8_t c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* What holds a word together: an id, a number, an address. Bytes of UTF-8 are letters of no alphabet we know. */
static bool is_word(uint8_t c)
{
    return is_digit(c) || is_letter(c) || c == '-' || c == '_' || c == '.' || c == ':' ||
           c == '@' || c == '+';
}

/* The characters of a word, counted. */
struct tally {
    size_t digits, hex, letters, dots, colons, dashes, ats, others;
    size_t changes; /* from letter to digit or back */
};

static struct tally count(struct lb_slice w)
{
    struct tally t = {0};
    for (size_t i = 0; i < w.n; i++) {
        uint8_t c = w.p[i];
        t.digits += is_digit(c);
        t.letters += is_letter(c);
        t.hex += is_hex(c);
        t.dots += c == '.';
        t.colons += c == ':';
        t.dashes += c == '-';
        t.ats += c == '@';
        t.others += c == '_' || c == '+';
        t.changes += i > 0 && ((is_digit(c) && is_letter(w.p[i - 1])) ||
                               (is_letter(c) && is_digit(w.p[i - 1])));
    }
    return t;
}

static bool is_id(struct lb_slice w, const struct tally *t)
{
    size_t joints = t->dashes;
    if (w.n > 2 && w.p[0] == '0' && (w.p[1] == 'x' || w.p[1] == 'X') && t->hex + 1 == w.n)
        return true;
    if (t->digits > 0 && t->hex >= 8 && t->hex + joints == w.n && t->hex > t->digits)
        return true; /* hex, or a UUID */
    return t->changes >= 3 && t->digits + t->letters >= 10 &&
           t->digits + t->letters + t->dashes + t->others == w.n;
}

static bool is_address(struct lb_slice w, const struct tally *t)
{
    bool v4 =
        t->dots == 3 && t->digits >= 4 && t->digits + t->dots + t->colons == w.n && t->colons <= 1;
    bool v6 = t->colons >= 2 && t->hex + t->colons + t->dots == w.n && t->hex > t->digits;
    bool shortened =
        t->colons >= 2 && t->hex + t->colons == w.n && w.n >= 3 && memcmp(w.p, "::", 2) == 0;
    return v4 || v6 || shortened;
}

/* Digits become <n>, with the fraction behind them; the rest stays. */
static void mask_numbers(struct lb_buf *out, struct lb_slice w)
{
    for (size_t i = 0; i < w.n; i++) {
        if (!is_digit(w.p[i])) {
            lb_buf_add_byte(out, w.p[i]);
            continue;
        }
        lb_buf_add_str(out, "<n>");
        while (i + 1 < w.n &&
               (is_digit(w.p[i + 1]) || (w.p[i + 1] == '.' && i + 2 < w.n && is_digit(w.p[i + 2]))))
            i++;
    }
}

static void mask_word(struct lb_buf *out, struct lb_slice w)
{
    size_t tail = w.n; /* the sentence's own dots and colons */
    while (tail > 1 && (w.p[tail - 1] == '.' || w.p[tail - 1] == ':'))
        tail--;
    struct lb_slice core = lb_slice(w.p, tail);
    struct tally t = count(core);
    if (is_address(core, &t))
        lb_buf_add_str(out, "<addr>");
    else if (t.ats == 1 && t.dots > 0 && t.letters > 2)
        lb_buf_add_str(out, "<mail>");
    else if (t.digits > 0 && is_id(core, &t))
        lb_buf_add_str(out, "<id>");
    else
        mask_numbers(out, core);
    lb_buf_add(out, w.p + tail, w.n - tail);
}

/* The length of a quoted stretch at p, quotes included, or 0: it must end on its line, and no letter may stand before it. */
static size_t measure_quote(struct lb_slice s, size_t at)
{
    uint8_t q = s.p[at];
    if ((q != '\'' && q != '"' && q != '`') ||
        (at > 0 && (is_letter(s.p[at - 1]) || is_digit(s.p[at - 1]))))
        return 0;
    for (size_t i = at + 1; i < s.n && s.p[i] != '\n'; i++) {
        if (s.p[i] == q)
            return i + 1 - at;
    }
    return 0;
}

static size_t measure_word(struct lb_slice s, size_t at)
{
    size_t n = 0;
    while (at + n < s.n && is_word(s.p[at + n]))
        n++;
    return n;
}

void lq_fingerprint_mask(struct lb_buf *out, struct lb_slice error)
{
    struct lb_slice s = lb_slice(error.p, LB_MIN(error.n, LQ_FINGERPRINT_LOOK));
    size_t start = out->n;
    bool blank = false; /* one is owed before the next thing */
    for (size_t i = 0, n = 0; i < s.n && out->n - start < 2 * LQ_FINGERPRINT_LOOK - 16; i += n) {
        uint8_t c = s.p[i];
        n = 1;
        if (c == ' ' || (c >= '\t' && c <= '\r')) {
            blank = out->n > start;
            continue;
        }
        if (blank)
            lb_buf_add_byte(out, ' ');
        blank = false;
        size_t quoted = measure_quote(s, i);
        size_t word = quoted ? 0 : measure_word(s, i);
        if (quoted) {
            lb_buf_add_str(out, "<s>");
            n = quoted;
        } else if (word) {
            mask_word(out, lb_slice(s.p + i, word));
            n = word;
        } else {
            lb_buf_add_byte(out, c < ' ' || c == 127 ? '?' : c);
        }
    }
}

/* FNV-1a of 64 bits (http://www.isthe.com/chongo/tech/comp/fnv/): stored, so it must never change. */
static uint64_t fold(uint64_t h, struct lb_slice s)
{
    for (size_t i = 0; i < s.n; i++)
        h = (h ^ s.p[i]) * UINT64_C(0x100000001b3);
    return h;
}

void lq_fingerprint_name(char name[LQ_FINGERPRINT_NAME + 1], struct lb_slice kind,
                         struct lb_slice masked)
{
    static const char hex[] = "0123456789abcdef";
    uint64_t h = fold(UINT64_C(0xcbf29ce484222325), kind);
    h = fold(h, lb_slice("", 1)); /* kinds have no NUL: no two pairs run together */
    h = fold(h, masked);
    h ^= h >> 32; /* the low bits know of all */
    for (size_t i = 0; i < LQ_FINGERPRINT_NAME; i++)
        name[i] = hex[h >> 4 * (LQ_FINGERPRINT_NAME - 1 - i) & 15];
    name[LQ_FINGERPRINT_NAME] = 0;
}
