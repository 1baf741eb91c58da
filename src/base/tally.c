#include "base/tally.h"

#include <string.h>

#include "base/mem.h"

uint64_t lb_tally_hash(struct lb_slice s)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < s.n; i++)
        h = (h ^ s.p[i]) * 0x100000001b3u;
    h ^= h >> 32;
    h *= 0x9e3779b97f4a7c15u;
    return h ? h : 1;
}

void lb_tally_fini(struct lb_tally *t)
{
    lb_free(t->slot);
    *t = (struct lb_tally){0};
}

void lb_tally_clear(struct lb_tally *t)
{
    if (t->n > 0)
        memset(t->slot, 0, t->cap * sizeof(*t->slot));
    t->n = 0;
}

/* The slot of the hash, or the free one where it belongs. cap > 0 and one slot is free. */
static struct lb_tally_slot *find(const struct lb_tally *t, uint64_t hash)
{
    size_t i = (hash >> 20) & (t->cap - 1);
    while (t->slot[i].hash != 0 && t->slot[i].hash != hash)
        i = (i + 1) & (t->cap - 1);
    return &t->slot[i];
}

uint32_t lb_tally_get(const struct lb_tally *t, uint64_t hash)
{
    return t->n > 0 ? find(t, hash)->n : 0;
}

static bool grow(struct lb_tally *t)
{
    struct lb_tally next = {.n = t->n, .cap = t->cap ? 2 * t->cap : 256};
    next.slot = lb_calloc(next.cap, sizeof(*next.slot));
    if (!next.slot)
        return false;
    for (size_t i = 0; i < t->cap; i++) {
        if (t->slot[i].hash)
            *find(&next, t->slot[i].hash) = t->slot[i];
    }
    lb_free(t->slot);
    *t = next;
    return true;
}

uint32_t *lb_tally_at(struct lb_tally *t, uint64_t hash)
{
    struct lb_tally_slot *s = t->cap > 0 ? find(t, hash) : NULL;
    if (s && s->hash)
        return &s->n;
    if (t->n >= LB_TALLY_MAX || (4 * (t->n + 1) > 3 * t->cap && !grow(t)))
        return NULL;
    s = find(t, hash);
    *s = (struct lb_tally_slot){.hash = hash};
    t->n++;
    return &s->n;
}
