#include "bench/drivers/lade/drv_sample.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NUMBER_AT 26 /* {"xxxxxxxx-xxxx-4xxx-8xxx- */
#define DIGITS    12

static bool append(struct drv_sample *s, const char *text)
{
    size_t n = strlen(text);
    if (s->size + n >= sizeof(s->text))
        return false;
    memcpy(s->text + s->size, text, n + 1);
    s->size += n;
    return true;
}

static bool append_key(struct drv_sample *s, uint64_t seed)
{
    char key[64];
    (void)snprintf(key, sizeof(key), "\"%08" PRIx64 "-5eed-4000-8000-000000000000\":{",
                   seed * UINT64_C(2654435761) & UINT64_C(0xffffffff));
    return append(s, key);
}

bool drv_sample_make(const struct drv *d, struct drv_sample *s)
{
    int64_t width = drv_int(d, "width", 1);
    int64_t depth = drv_int(d, "depth", 1);
    s->size = 0;
    bool good = append(s, "{");
    for (int64_t w = 0; w < width && good; w++) {
        if (w > 0)
            good = append(s, ",");
        for (int64_t k = 0; k < depth && good; k++)
            good = append_key(s, (uint64_t)(w * depth + k + 1));
        for (int64_t k = 0; k < depth && good; k++)
            good = append(s, "}");
    }
    return good && append(s, "}");
}

void drv_sample_number(char *payload, uint64_t number)
{
    for (size_t i = 0; i < DIGITS; i++)
        payload[NUMBER_AT + i] = "0123456789abcdef"[number >> (4 * (DIGITS - 1 - i)) & 15];
}

uint64_t drv_sample_read(lade_bytes payload)
{
    const char *text = payload.data;
    uint64_t v = 0;
    for (size_t i = NUMBER_AT; i < NUMBER_AT + DIGITS && i < payload.size; i++)
        v = v << 4 | (uint64_t)(text[i] <= '9' ? text[i] - '0' : text[i] - 'a' + 10);
    return v;
}
