/*
 * memory_order.h - a set of nodes sorted by a pair of numbers
 *
 * A treap (Aragon and Seidel, https://doi.org/10.1109/SFCS.1989.63531): a search tree by key that is a heap by a number
 * mixed from the key, which keeps it flat. Never allocates; every step is O(log n). Keys are unique.
 *
 * Thread safety: none.
 */
#ifndef LADE_STORE_MEMORY_ORDER_H
#define LADE_STORE_MEMORY_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

struct ls_memory_key {
    int64_t major, minor;
    struct lb_slice
        text; /* tells apart those with equal numbers; mostly empty. Outlives the node */
};

struct ls_memory_node {
    struct ls_memory_node *left, *right;
    struct ls_memory_key key;
    uint64_t weight;
};

struct ls_memory_order {
    struct ls_memory_node *root;
    size_t n;
};

void ls_memory_order_add(struct ls_memory_order *o, struct ls_memory_node *x,
                         struct ls_memory_key key);
/* x is in the set. */
void ls_memory_order_del(struct ls_memory_order *o, struct ls_memory_node *x);
/* The smallest, or NULL. */
struct ls_memory_node *ls_memory_order_first(const struct ls_memory_order *o);
/* The smallest with a key above `key`, or NULL. */
struct ls_memory_node *ls_memory_order_after(const struct ls_memory_order *o,
                                             struct ls_memory_key key);
/* Negative, 0 or positive. */
int ls_memory_key_compare(struct ls_memory_key a, struct ls_memory_key b);

#endif
