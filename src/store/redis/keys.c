#include "store/redis/keys.h"

#include "base/base.h"
#include "base/ident.h"

/* All parts are bounded: LS_REDIS_NS_MAX, LADE_NAME_MAX, and names of this store. */
static size_t append(char *out, size_t at, const char *s)
{
    for (; *s; s++) {
        LB_CHECK(at < LS_REDIS_KEY_MAX);
        out[at++] = *s;
    }
    return at;
}

void ls_redis_key(struct ls_redis_cmd *cmd, const char *ns, const char *queue, const char *name)
{
    char key[LS_REDIS_KEY_MAX];
    size_t n = append(key, 0, ns);
    n = append(key, n, ":{");
    n = append(key, n, queue);
    n = append(key, n, "}:");
    n = append(key, n, name);
    ls_redis_arg(cmd, key, n);
}

void ls_redis_key_ns(struct ls_redis_cmd *cmd, const char *ns, const char *name)
{
    char key[LS_REDIS_KEY_MAX];
    size_t n = append(key, 0, ns);
    n = append(key, n, ":");
    n = append(key, n, name);
    ls_redis_arg(cmd, key, n);
}

int64_t ls_redis_id_time(struct lb_slice id)
{
    /* Value + 1 of each digit of Crockford's base 32. */
    static const uint8_t digit[256] = {
        ['0'] = 1,  ['1'] = 2,  ['2'] = 3,  ['3'] = 4,  ['4'] = 5,  ['5'] = 6,  ['6'] = 7,
        ['7'] = 8,  ['8'] = 9,  ['9'] = 10, ['A'] = 11, ['B'] = 12, ['C'] = 13, ['D'] = 14,
        ['E'] = 15, ['F'] = 16, ['G'] = 17, ['H'] = 18, ['J'] = 19, ['K'] = 20, ['M'] = 21,
        ['N'] = 22, ['P'] = 23, ['Q'] = 24, ['R'] = 25, ['S'] = 26, ['T'] = 27, ['V'] = 28,
        ['W'] = 29, ['X'] = 30, ['Y'] = 31, ['Z'] = 32};
    int64_t ms = 0;
    if (id.n != LB_ULID_LEN || id.p[0] != '0')
        return 0;
    for (size_t i = 0; i < LB_ULID_LEN; i++) {
        if (digit[id.p[i]] == 0)
            return 0;
        if (i < 10)
            ms = ms * 32 + digit[id.p[i]] - 1;
    }
    return ms;
}

int64_t ls_redis_take_number(struct lb_slice *text)
{
    int64_t value = 0;
    while (text->n > 0 && text->p[0] >= '0' && text->p[0] <= '9' && value < INT64_MAX / 10 - 1) {
        value = value * 10 + (text->p[0] - '0');
        text->p++;
        text->n--;
    }
    if (text->n > 0) {
        text->p++;
        text->n--;
    }
    return value;
}
