/*
 * list.h - intrusive doubly linked list with a header node
 *
 * Never allocates. A node is in one list at most; lb_list_del makes it loose again. Thread safety: none.
 */
#ifndef LADE_BASE_LIST_H
#define LADE_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/base.h"

struct lb_list {
    struct lb_list *next, *prev;
};

static inline void lb_list_init(struct lb_list *l)
{
    l->next = l->prev = l;
}

static inline bool lb_list_is_empty(const struct lb_list *l)
{
    return l->next == l;
}

static inline void lb_list_insert_after(struct lb_list *at, struct lb_list *n)
{
    n->prev = at;
    n->next = at->next;
    at->next->prev = n;
    at->next = n;
}

static inline void lb_list_push_back(struct lb_list *l, struct lb_list *n)
{
    lb_list_insert_after(l->prev, n);
}

static inline void lb_list_push_front(struct lb_list *l, struct lb_list *n)
{
    lb_list_insert_after(l, n);
}

static inline void lb_list_del(struct lb_list *n)
{
    n->prev->next = n->next;
    n->next->prev = n->prev;
    n->next = n->prev = n;
}

/* Removes and returns the first node, or NULL. */
static inline struct lb_list *lb_list_pop(struct lb_list *l)
{
    if (lb_list_is_empty(l))
        return NULL;
    struct lb_list *n = l->next;
    lb_list_del(n);
    return n;
}

/* NOLINTBEGIN(bugprone-macro-parentheses): `it` is a name to declare */
#define lb_list_each(it, l) for (struct lb_list *it = (l)->next; it != (l); it = it->next)
#define lb_list_each_safe(it, l)                                           \
    for (struct lb_list *it = (l)->next, *it##_next = it->next; it != (l); \
         it = it##_next, it##_next = it->next)
/* NOLINTEND(bugprone-macro-parentheses) */

#endif
