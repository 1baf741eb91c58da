/*
 * drv_pad.c - payloads of the tables chronos and idle: {"ts": nanoseconds, "pad": "number in hex, then x up to the size"}
 *
 * Read with jsmn, which makes tokens and no tree: every field is looked for in JSON that was parsed whole, as the peers' own decoders do.
 */
#define JSMN_STATIC
#define JSMN_STRICT
#include <jsmn.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "bench/drivers/lade/drv.h"

#define PAYLOAD_MAX 4096
#define TOKENS_MAX  16
#define FRAME       40 /* what the originals take off for the JSON around the pad */
#define DIGITS      12
#define NUMBER_MAX  20

void drv_pad(char *out, size_t cap, uint64_t number, int64_t size)
{
    char digits[DIGITS + 8];
    size_t n = size > FRAME + DIGITS ? (size_t)(size - FRAME) : DIGITS;
    n = LB_MIN(n, cap - 1);
    memset(out, 'x', n);
    out[n] = '\0';
    (void)snprintf(digits, sizeof(digits), "%012" PRIx64, number);
    memcpy(out, digits, DIGITS);
}

size_t drv_pad_payload(char *out, size_t cap, int64_t ts, uint64_t number, int64_t size)
{
    char pad[PAYLOAD_MAX];
    drv_pad(pad, sizeof(pad), number, size);
    return (size_t)snprintf(out, cap, "{\"ts\":%" PRId64 ",\"pad\":\"%s\"}", ts, pad);
}

static bool read_hex(const char *text, uint64_t *out)
{
    *out = 0;
    for (size_t i = 0; i < DIGITS; i++) {
        char c = text[i];
        if (c >= '0' && c <= '9')
            *out = *out << 4 | (uint64_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            *out = *out << 4 | (uint64_t)(c - 'a' + 10);
        else
            return false;
    }
    return true;
}

/* The value of a field of the object; NULL when it has none of this type. */
static const jsmntok_t *find_field(const char *text, const jsmntok_t *token, int n,
                                   const char *name, jsmntype_t type)
{
    size_t len = strlen(name);
    for (int i = 1; i + 1 < n; i += 2) { /* no field of it has fields itself */
        if ((size_t)(token[i].end - token[i].start) == len &&
            memcmp(text + token[i].start, name, len) == 0)
            return token[i + 1].type == type ? &token[i + 1] : NULL;
    }
    return NULL;
}

static bool read_int(const char *text, const jsmntok_t *token, int64_t *out)
{
    char digits[NUMBER_MAX + 1];
    size_t n = token ? (size_t)(token->end - token->start) : 0;
    if (n == 0 || n > NUMBER_MAX)
        return false;
    memcpy(digits, text + token->start, n);
    digits[n] = '\0';
    char *end;
    *out = strtoll(digits, &end, 10);
    return *end == '\0';
}

bool drv_pad_read(lade_bytes payload, int64_t *ts, uint64_t *number)
{
    jsmn_parser parser;
    jsmntok_t token[TOKENS_MAX];
    const char *text = payload.data;
    jsmn_init(&parser);
    int n = jsmn_parse(&parser, text, payload.size, token, TOKENS_MAX);
    if (n < 1 || token[0].type != JSMN_OBJECT)
        return false;
    const jsmntok_t *pad = find_field(text, token, n, "pad", JSMN_STRING);
    return read_int(text, find_field(text, token, n, "ts", JSMN_PRIMITIVE), ts) && pad &&
           pad->end - pad->start >= DIGITS && read_hex(text + pad->start, number);
}
