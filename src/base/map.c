#include "base/map.h"

#include "base/mem.h"

/* FNV-1a with a final mix (http://www.isthe.com/chongo/tech/comp/fnv/); keys are short and not chosen by foes. */
static uint64_t hash_of(struct lb_slice key)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < key.n; i++)
        h = (h ^ key.p[i]) * 0x100000001b3u;
    h ^= h >> 32;
    return h * 0x9e3779b97f4a7c15u;
}

void lb_map_init(struct lb_map *m)
{
    *m = (struct lb_map){0};
}

void lb_map_fini(struct lb_map *m)
{
    lb_free(m->slot);
    *m = (struct lb_map){0};
}

/* The slot of key, or the free one where it belongs. cap > 0 and one slot is free. */
static struct lb_map_slot *find(const struct lb_map *m, struct lb_slice key, uint64_t hash)
{
    size_t i = hash & (m->cap - 1);
    for (;;) {
        struct lb_map_slot *s = &m->slot[i];
        if (!s->value || (s->hash == hash && lb_slice_eq(s->key, key)))
            return s;
        i = (i + 1) & (m->cap - 1);
    }
}

void *lb_map_get(const struct lb_map *m, struct lb_slice key)
{
    return m->n ? find(m, key, hash_of(key))->value : NULL;
}

static int grow(struct lb_map *m)
{
    struct lb_map next = {.cap = m->cap ? m->cap * 2 : 16};
    next.slot = lb_calloc(next.cap, sizeof(*next.slot));
    if (!next.slot)
        return -LADE_ENOMEM;
    for (size_t i = 0; i < m->cap; i++) {
        if (m->slot[i].value)
            *find(&next, m->slot[i].key, m->slot[i].hash) = m->slot[i];
    }
    next.n = m->n;
    lb_free(m->slot);
    *m = next;
    return 0;
}

int lb_map_put(struct lb_map *m, struct lb_slice key, void *value)
{
    if (m->n + 1 > m->cap / 4 * 3) {
        int rc = grow(m);
        if (rc < 0)
            return rc;
    }
    uint64_t hash = hash_of(key);
    struct lb_map_slot *s = find(m, key, hash);
    if (!s->value)
        m->n++;
    *s = (struct lb_map_slot){key, hash, value};
    return 0;
}

void *lb_map_del(struct lb_map *m, struct lb_slice key)
{
    if (m->n == 0)
        return NULL;
    struct lb_map_slot *s = find(m, key, hash_of(key));
    void *value = s->value;
    if (!value)
        return NULL;
    size_t mask = m->cap - 1;
    size_t hole = (size_t)(s - m->slot);
    for (size_t i = (hole + 1) & mask; m->slot[i].value; i = (i + 1) & mask) {
        size_t home = m->slot[i].hash & mask;
        if (((i - home) & mask) >= ((i - hole) & mask)) { /* it may move back into the hole */
            m->slot[hole] = m->slot[i];
            hole = i;
        }
    }
    m->slot[hole] = (struct lb_map_slot){0};
    m->n--;
    return value;
}

void *lb_map_next(const struct lb_map *m, size_t *i)
{
    while (*i < m->cap) {
        void *value = m->slot[(*i)++].value;
        if (value)
            return value;
    }
    return NULL;
}
