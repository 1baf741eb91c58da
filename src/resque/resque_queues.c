/* resque_queues.c - see resque_queues.h; a pattern is read as Ruby's dir.c reads it */
#include "resque/resque_queues.h"

#include <stdint.h>
#include <string.h>

#include "base/base.h"

/* Bytes of the character at s, which is not at its end. Bytes that are no UTF-8 count as one each. */
static size_t step(const char *s)
{
    unsigned char c = (unsigned char)*s;
    size_t n = c < 0xc0 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
    for (size_t i = 1; i < n; i++)
        if (((unsigned char)s[i] & 0xc0) != 0x80)
            return 1;
    return n;
}

/* UTF-8 sorts as its code points do; a shorter character is the lower. */
static int compare(const char *a, size_t n_a, const char *b, size_t n_b)
{
    return n_a != n_b ? (n_a < n_b ? -1 : 1) : memcmp(a, b, n_a);
}

static const char *unescape(const char *p)
{
    return *p == '\\' && p[1] ? p + 1 : p;
}

/* The character at p, which ends the bracket when there is none. NULL then. */
static const char *take_char(const char **p, size_t *n)
{
    const char *at = **p == '\\' ? *p + 1 : *p;
    if (!*at)
        return NULL;
    *n = step(at);
    *p = at + *n;
    return at;
}

/* Behind the bracket that begins before p when it matches the character at s; else NULL. */
static const char *match_bracket(const char *p, const char *s)
{
    size_t n_s = step(s), n_low, n_high;
    bool found = false, negated = *p == '!' || *p == '^';
    p += negated;
    while (*p) {
        if (*p == ']')
            return found != negated ? p + 1 : NULL;
        const char *low = take_char(&p, &n_low), *high = low;
        if (!low || !*p)
            return NULL;
        n_high = n_low;
        if (p[0] == '-' && p[1] != ']') {
            p++;
            high = take_char(&p, &n_high);
            if (!high)
                return NULL;
        }
        bool is_end = compare(s, n_s, low, n_low) == 0 || compare(s, n_s, high, n_high) == 0;
        found = found || is_end ||
                (compare(low, n_low, s, n_s) < 0 && compare(s, n_s, high, n_high) < 0);
    }
    return NULL;
}

/* One step of the pattern that is no star; what follows it, or NULL when it does not match at *s. */
static const char *match_one(const char *p, const char **s)
{
    if (*p == '?') {
        *s += step(*s);
        return p + 1;
    }
    if (*p == '[') {
        p = match_bracket(p + 1, *s);
        *s += p ? step(*s) : 0;
        return p;
    }
    p = unescape(p);
    size_t n = *p ? step(p) : 0;
    if (n == 0 || strncmp(p, *s, n) != 0)
        return NULL;
    *s += n;
    return p + n;
}

bool rq_fnmatch(const char *p, const char *s)
{
    const char *star = NULL, *from = NULL; /* behind the last star, and where its rest was tried */
    if (*s == '.' && *unescape(p) != '.')
        return false;
    for (;;) {
        if (*p == '*') {
            p += strspn(p, "*");
            if (!*p)
                return true;
            if (!*s)
                return false;
            star = p;
            from = s;
            continue;
        }
        if (!*s)
            return !*p;
        const char *next = match_one(p, &s);
        if (next) {
            p = next;
            continue;
        }
        if (!star)
            return false;
        from += step(from);
        p = star;
        s = from;
    }
}

bool rq_queue_is_pattern(const char *name)
{
    return *name == '!' || strpbrk(name, "*?{}[]");
}

bool rq_queues_are_dynamic(const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (rq_queue_is_pattern(list[i]))
            return true;
    return false;
}

size_t rq_queues_find(const char *const *list, size_t n, const char *queue)
{
    size_t found = SIZE_MAX;
    for (size_t i = 0; i < n; i++) {
        if (*list[i] == '!') {
            if (rq_fnmatch(list[i] + 1, queue))
                return SIZE_MAX;
        } else if (found == SIZE_MAX && rq_fnmatch(list[i], queue)) {
            found = i;
        }
    }
    return found;
}
