#include "support/proxy_wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/base.h"

/* Length of the line at p without CRLF; false when its end has not come. */
static bool find_line(const char *p, size_t n, size_t *len)
{
    const char *cr = memchr(p, '\r', n);
    if (!cr || cr + 1 >= p + n)
        return false;
    *len = (size_t)(cr - p);
    return true;
}

static long long read_number(const char *p, size_t len)
{
    char text[24] = "";
    memcpy(text, p, LB_MIN(len, sizeof(text) - 1));
    return strtoll(text, NULL, 10);
}

/* Elements that the message needs after this header line; -1: not a type of RESP. */
static long long count_children(char type, long long number)
{
    if (number < 0)
        number = 0;
    if (strchr("*~>", type))
        return number;
    if (type == '%')
        return 2 * number;
    if (type == '|')
        return 2 * number + 1; /* an attribute stands before the value it belongs to */
    return strchr("+-:_,#($=!", type) ? 0 : -1;
}

size_t ts_wire_message(const char *p, size_t n)
{
    size_t at = 0;
    long long left = 1;
    while (left > 0) {
        size_t len;
        if (at >= n || !find_line(p + at, n - at, &len))
            return 0;
        long long number = read_number(p + at + 1, len ? len - 1 : 0);
        long long children = p[at] ? count_children(p[at], number) : -1;
        if (children < 0)
            return TS_WIRE_BROKEN;
        bool bulk = strchr("$=!", p[at]) != NULL;
        at += len + 2;
        left += children - 1;
        if (bulk && number >= 0) {
            if (at + (size_t)number + 2 > n)
                return 0;
            at += (size_t)number + 2;
        }
    }
    return at;
}

const char *ts_wire_arg(const char *p, size_t n, size_t i, size_t *out)
{
    size_t len, at;
    if (n < 4 || *p != '*' || !find_line(p, n, &len))
        return NULL;
    at = len + 2;
    for (size_t k = 0; at < n && p[at] == '$' && find_line(p + at, n - at, &len); k++) {
        long long number = read_number(p + at + 1, len - 1);
        const char *arg = p + at + len + 2;
        if (number < 0 || arg + number > p + n)
            return NULL;
        if (k == i) {
            *out = (size_t)number;
            return arg;
        }
        at += len + 2 + (size_t)number + 2;
    }
    return NULL;
}

void ts_wire_describe(const char *p, size_t n, char *out, size_t size)
{
    size_t at = 0, len;
    const char *arg;
    for (size_t i = 0; i < 16 && (arg = ts_wire_arg(p, n, i, &len)) != NULL; i++) {
        const char *end = memchr(arg, '\n', len);
        len = LB_MIN(end ? (size_t)(end - arg) : len, 128);
        if (at + len + 2 > size)
            break;
        memcpy(out + at, arg, len);
        at += len;
        out[at++] = ' ';
    }
    out[at ? at - 1 : 0] = 0;
    for (size_t i = 0; i + 1 < at; i++) {
        if (out[i] == 0)
            out[i] = '?';
    }
}

static const char *find_script(const struct ts_wire_scripts *s, const char *sha, size_t len)
{
    for (size_t i = 0; len == TS_WIRE_SHA && i < s->n; i++) {
        if (memcmp(s->script[i].sha, sha, TS_WIRE_SHA) == 0)
            return s->script[i].line;
    }
    return "";
}

static bool is_word(const char *arg, size_t len, const char *word)
{
    return arg && len == strlen(word) && strncasecmp(arg, word, len) == 0;
}

/* The first line, or, of a script joined from several files, the last that names a file: "-- take.lua - ...". */
static void copy_title(const char *body, size_t len, char *out, size_t size)
{
    for (size_t at = 0; at < len;) {
        const char *line = body + at;
        const char *end = memchr(line, '\n', len - at);
        size_t n = end ? (size_t)(end - line) : len - at;
        if (at == 0 || (n > 3 && memcmp(line, "-- ", 3) == 0 && memmem(line, n, ".lua ", 5)))
            (void)snprintf(out, size, "%.*s", (int)LB_MIN(n, size - 1), line);
        at += n + 1;
    }
}

int ts_wire_request(struct ts_wire_scripts *s, const char *p, size_t n, char *out, size_t size)
{
    size_t len = 0, len1 = 0;
    const char *verb = ts_wire_arg(p, n, 0, &len);
    const char *arg = ts_wire_arg(p, n, 1, &len1);
    out[0] = 0;
    if (!verb)
        return -1;
    if (arg && (is_word(verb, len, "EVALSHA") || is_word(verb, len, "EVALSHA_RO"))) {
        int k = snprintf(out, size, "%.*s %.*s %s ", (int)len, verb, (int)LB_MIN(len1, 64), arg,
                         find_script(s, arg, len1));
        LB_CHECK(k > 0 && (size_t)k < size);
        ts_wire_describe(p, n, out + k, size - (size_t)k);
        return -1;
    }
    if (arg && (is_word(verb, len, "FCALL") || is_word(verb, len, "FCALL_RO"))) {
        size_t skip = LB_MIN(len1, TS_WIRE_LIBRARY);
        int k = snprintf(out, size, "%.*s -- %.*s.lua ", (int)len, verb,
                         (int)LB_MIN(len1 - skip, 64), arg + skip);
        LB_CHECK(k > 0 && (size_t)k < size);
        ts_wire_describe(p, n, out + k, size - (size_t)k);
        return -1;
    }
    ts_wire_describe(p, n, out, size);
    if (!is_word(verb, len, "SCRIPT") || !is_word(arg, len1, "LOAD") || s->n == TS_WIRE_SCRIPTS_MAX)
        return -1;
    char line[sizeof(s->script[0].line)] = "";
    const char *body = ts_wire_arg(p, n, 2, &len);
    if (body)
        copy_title(body, len, line, sizeof(line));
    for (size_t i = 0; i < s->n; i++) {
        if (strcmp(s->script[i].line, line) == 0)
            return (int)i; /* each connection loads them all again */
    }
    memcpy(s->script[s->n].line, line, sizeof(line));
    return (int)s->n++;
}

void ts_wire_loaded(struct ts_wire_scripts *s, int script, const char *reply, size_t n)
{
    if (n >= TS_WIRE_SHA + 5 && *reply == '$')
        memcpy(s->script[script].sha, reply + 5, TS_WIRE_SHA);
}
