#include "store/redis/shelf.h"

#include <string.h>

#include <lade/lade.h>

#include "base/mem.h"

struct slot {
    char name[LADE_ID_MAX + 1];
    size_t name_n;
    uint8_t *p;
    size_t n;
};

struct ls_redis_shelf {
    struct slot slot[LS_REDIS_SHELF_SLOTS];
};

static size_t index_of(struct lb_slice name)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (size_t i = 0; i < name.n; i++)
        h = (h ^ name.p[i]) * UINT64_C(0x100000001b3);
    return (size_t)(h ^ h >> 32) % LS_REDIS_SHELF_SLOTS;
}

static bool is_of(const struct slot *s, struct lb_slice name)
{
    return s->p && s->name_n == name.n && memcmp(s->name, name.p, name.n) == 0;
}

static void clear(struct slot *s)
{
    lb_free(s->p);
    *s = (struct slot){.p = NULL};
}

void ls_redis_shelf_free(struct ls_redis_shelf *s)
{
    for (size_t i = 0; s && i < LS_REDIS_SHELF_SLOTS; i++)
        clear(&s->slot[i]);
    lb_free(s);
}

void ls_redis_shelf_put(struct ls_redis_shelf **s, struct lb_slice name, struct lb_slice bytes)
{
    if (name.n == 0 || name.n > LADE_ID_MAX || bytes.n == 0)
        return;
    if (!*s)
        *s = lb_calloc(1, sizeof(**s));
    if (!*s)
        return;
    struct slot *at = &(*s)->slot[index_of(name)];
    clear(at);
    at->p = bytes.n <= LS_REDIS_SHELF_BYTES ? lb_malloc(bytes.n) : NULL;
    if (!at->p)
        return;
    memcpy(at->p, bytes.p, bytes.n);
    memcpy(at->name, name.p, name.n);
    at->n = bytes.n;
    at->name_n = name.n;
}

struct lb_slice ls_redis_shelf_get(const struct ls_redis_shelf *s, struct lb_slice name)
{
    const struct slot *at = s ? &s->slot[index_of(name)] : NULL;
    return at && is_of(at, name) ? lb_slice(at->p, at->n) : lb_slice("", 0);
}

void ls_redis_shelf_drop(struct ls_redis_shelf *s, struct lb_slice name)
{
    struct slot *at = s ? &s->slot[index_of(name)] : NULL;
    if (at && is_of(at, name))
        clear(at);
}
