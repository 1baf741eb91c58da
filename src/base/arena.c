#include "base/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <string.h>

#include "base/mem.h"

#define BLOCK_FIRST ((size_t)4096)
#define BLOCK_LAST  ((size_t)256 << 10)

struct lb_arena_block {
    struct lb_arena_block *next;
    size_t size; /* of data */
    size_t used;
    alignas(max_align_t) uint8_t data[];
};

void lb_arena_init(struct lb_arena *a)
{
    *a = (struct lb_arena){0};
}

static void free_from(struct lb_arena_block *b)
{
    while (b) {
        struct lb_arena_block *next = b->next;
        lb_free(b);
        b = next;
    }
}

void lb_arena_fini(struct lb_arena *a)
{
    free_from(a->block);
    *a = (struct lb_arena){0};
}

void lb_arena_reset(struct lb_arena *a)
{
    if (!a->block)
        return;
    free_from(a->block->next);
    a->block->next = NULL;
    a->block->used = 0;
    a->used = 0;
    if (a->block->size > BLOCK_LAST) { /* do not keep one huge job's memory for ever */
        lb_free(a->block);
        a->block = NULL;
    }
}

static struct lb_arena_block *grow(struct lb_arena *a, size_t size)
{
    size_t want = a->block ? a->block->size * 2 : BLOCK_FIRST;
    if (want > BLOCK_LAST)
        want = BLOCK_LAST;
    if (want < size)
        want = size;
    if (want > SIZE_MAX - sizeof(struct lb_arena_block))
        return NULL;
    struct lb_arena_block *b = lb_malloc(sizeof(*b) + want);
    if (!b)
        return NULL;
    b->size = want;
    b->used = 0;
    b->next = a->block;
    a->block = b;
    return b;
}

void *lb_arena_alloc(struct lb_arena *a, size_t size)
{
    const size_t align = alignof(max_align_t);
    if (size > SIZE_MAX - align)
        return NULL;
    size = (size + align - 1) & ~(align - 1);
    struct lb_arena_block *b = a->block;
    if (!b || b->size - b->used < size) {
        b = grow(a, size);
        if (!b)
            return NULL;
    }
    void *p = b->data + b->used;
    b->used += size;
    a->used += size;
    return p;
}

struct lb_mut lb_arena_copy(struct lb_arena *a, const void *p, size_t n)
{
    uint8_t *copy = n < SIZE_MAX ? lb_arena_alloc(a, n + 1) : NULL;
    if (!copy)
        return (struct lb_mut){NULL, 0};
    if (n > 0)
        memcpy(copy, p, n);
    copy[n] = 0;
    return (struct lb_mut){copy, n};
}

char *lb_arena_strdup(struct lb_arena *a, const char *s)
{
    return (char *)lb_arena_copy(a, s, strlen(s)).p;
}
