/*
 * tally.h - how often each of many things came, by their hashes, in a table with a bound
 *
 * Two things whose 64-bit hashes are the same count as one: whoever uses it must be right all the same. Thread safety: none.
 */
#ifndef LADE_BASE_TALLY_H
#define LADE_BASE_TALLY_H

#include <lade/base.h>

#include "base/slice.h"

#define LB_TALLY_MAX 65536 /* different ones: 2 MiB */

struct lb_tally_slot {
    uint64_t hash; /* 0 = free */
    uint32_t n;
};

struct lb_tally {
    struct lb_tally_slot *slot;
    size_t n;   /* different ones */
    size_t cap; /* 0 or a power of two */
};

/* Never 0. FNV-1a with a final mix, as in map.c. */
uint64_t lb_tally_hash(struct lb_slice s);
void lb_tally_fini(struct lb_tally *t);
void lb_tally_clear(struct lb_tally *t);
/* 0 when it never came. */
uint32_t lb_tally_get(const struct lb_tally *t, uint64_t hash);
/* Its count, made when it is not there; NULL when the table is full or memory is short. Until the next call. */
uint32_t *lb_tally_at(struct lb_tally *t, uint64_t hash);

#endif
