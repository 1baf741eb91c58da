/*
 * arena.h - memory for one batch, freed at once
 *
 * Bumps through blocks that double from 4 KiB to 256 KiB; a larger request gets a block of its own. Nothing is freed
 * singly. lb_arena_reset keeps the newest block, so a loop that reuses an arena stops allocating.
 *
 * Thread safety: none; one owner at a time.
 */
#ifndef LADE_BASE_ARENA_H
#define LADE_BASE_ARENA_H

#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

struct lb_arena_block;

struct lb_arena {
    struct lb_arena_block *block; /* newest first */
    size_t used;                  /* bytes given out, for bounds */
};

void lb_arena_init(struct lb_arena *a);
void lb_arena_fini(struct lb_arena *a);
void lb_arena_reset(struct lb_arena *a);

/* size bytes aligned for any type, not zeroed; NULL when out of memory. */
void *lb_arena_alloc(struct lb_arena *a, size_t size) __attribute__((warn_unused_result));
/* A copy of n bytes followed by a NUL; p is NULL when out of memory. */
struct lb_mut lb_arena_copy(struct lb_arena *a, const void *p, size_t n)
    __attribute__((warn_unused_result));
char *lb_arena_strdup(struct lb_arena *a, const char *s) __attribute__((warn_unused_result));

#endif
