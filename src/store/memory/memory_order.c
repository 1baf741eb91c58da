#include "store/memory/memory_order.h"

#include <string.h>

#include "base/base.h"

int ls_memory_key_compare(struct ls_memory_key a, struct ls_memory_key b)
{
    if (a.major != b.major)
        return a.major < b.major ? -1 : 1;
    if (a.minor != b.minor)
        return a.minor < b.minor ? -1 : 1;
    size_t n = a.text.n < b.text.n ? a.text.n : b.text.n;
    int order = n > 0 ? memcmp(a.text.p, b.text.p, n) : 0;
    return order ? order : (a.text.n > b.text.n) - (a.text.n < b.text.n);
}

/* The final mix of splitmix64 (https://prng.di.unimi.it/splitmix64.c): keys in sequence get weights without any. */
static uint64_t weigh(struct ls_memory_key key)
{
    uint64_t z = (uint64_t)key.major * 0x9e3779b97f4a7c15u + (uint64_t)key.minor;
    for (size_t i = 0; i < key.text.n; i++)
        z = (z ^ key.text.p[i]) * 0x100000001b3u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* All of t below key to *left, the others to *right. */
static void split(struct ls_memory_node *t, struct ls_memory_key key, struct ls_memory_node **left,
                  struct ls_memory_node **right)
{
    while (t) {
        if (ls_memory_key_compare(t->key, key) < 0) {
            *left = t;
            left = &t->right;
            t = t->right;
        } else {
            *right = t;
            right = &t->left;
            t = t->left;
        }
    }
    *left = *right = NULL;
}

void ls_memory_order_add(struct ls_memory_order *o, struct ls_memory_node *x,
                         struct ls_memory_key key)
{
    struct ls_memory_node **at = &o->root;
    x->key = key;
    x->weight = weigh(key);
    while (*at && (*at)->weight >= x->weight)
        at = ls_memory_key_compare((*at)->key, key) < 0 ? &(*at)->right : &(*at)->left;
    split(*at, key, &x->left, &x->right);
    *at = x;
    o->n++;
}

void ls_memory_order_del(struct ls_memory_order *o, struct ls_memory_node *x)
{
    struct ls_memory_node **at = &o->root;
    while (*at != x) {
        LB_CHECK(*at);
        at = ls_memory_key_compare((*at)->key, x->key) < 0 ? &(*at)->right : &(*at)->left;
    }
    struct ls_memory_node *left = x->left, *right = x->right;
    while (left && right) { /* the heavier of the two becomes the root of what is left */
        if (left->weight >= right->weight) {
            *at = left;
            at = &left->right;
            left = left->right;
        } else {
            *at = right;
            at = &right->left;
            right = right->left;
        }
    }
    *at = left ? left : right;
    x->left = x->right = NULL;
    o->n--;
}

struct ls_memory_node *ls_memory_order_first(const struct ls_memory_order *o)
{
    struct ls_memory_node *t = o->root;
    while (t && t->left)
        t = t->left;
    return t;
}

struct ls_memory_node *ls_memory_order_after(const struct ls_memory_order *o,
                                             struct ls_memory_key key)
{
    struct ls_memory_node *t = o->root, *best = NULL;
    while (t) {
        if (ls_memory_key_compare(t->key, key) > 0) {
            best = t;
            t = t->left;
        } else {
            t = t->right;
        }
    }
    return best;
}
