/*
 * map.h - hash map from byte strings to pointers
 *
 * Open addressing with linear probing and backward-shift deletion; at most 3/4 full. Keys are borrowed: the caller
 * keeps each key's bytes alive and unchanged while it is in the map (usually they lie in the value).
 * Thread safety: none.
 */
#ifndef LADE_BASE_MAP_H
#define LADE_BASE_MAP_H

#include <lade/base.h>

#include "base/slice.h"

struct lb_map_slot {
    struct lb_slice key;
    uint64_t hash;
    void *value; /* NULL = free */
};

struct lb_map {
    struct lb_map_slot *slot;
    size_t n;
    size_t cap; /* 0 or a power of two */
};

void lb_map_init(struct lb_map *m);
void lb_map_fini(struct lb_map *m);
/* NULL when absent. */
void *lb_map_get(const struct lb_map *m, struct lb_slice key);
/* Adds or replaces; value is not NULL. 0 or -LADE_ENOMEM with the map unchanged. */
LADE_CHECKED int lb_map_put(struct lb_map *m, struct lb_slice key, void *value);
/* Removes; returns the value or NULL. */
void *lb_map_del(struct lb_map *m, struct lb_slice key);
/* The next value at or after *i in no particular order, or NULL; start with *i = 0. Do not change the map meanwhile. */
void *lb_map_next(const struct lb_map *m, size_t *i);

#endif
