#include "store/redis/keys.h"

#include <string.h>

#include "base/base.h"

/* All parts are bounded: LS_REDIS_NS_MAX, LADE_NAME_MAX, and names of this store. */
static size_t append(char *out, size_t at, const char *s)
{
    size_t n = strlen(s);
    LB_CHECK(n < LS_REDIS_KEY_MAX - at);
    memcpy(out + at, s, n);
    return at + n;
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
