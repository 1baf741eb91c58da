/*
 * ident.h - chance and time-ordered ids
 *
 * Ids have the ULID text form (https://github.com/ulid/spec): 26 characters of Crockford's base 32, 48 bits of
 * milliseconds since 1970, 70 bits of chance, and 10 bits that count from zero, so that ids sort by time as plain text.
 * They are monotonic as that text has it: the ids that a thread makes in one millisecond count up. A block is the 1024 ids
 * that differ only in their last two characters; a store may keep jobs whose ids follow each other in a block as one.
 *
 * Thread safety: all functions; each thread has a generator of its own, seeded by getrandom and again after a fork.
 */
#ifndef LADE_BASE_IDENT_H
#define LADE_BASE_IDENT_H

#include <stdint.h>

#define LB_ULID_LEN   26
#define LB_ULID_BLOCK 1024

/* Writes LB_ULID_LEN characters and a NUL. */
void lb_ulid(char out[LB_ULID_LEN + 1], int64_t wall_ns);
/* This thread's next id begins a block: called before the ids of a batch, which then share a block of their own. */
void lb_ulid_new_block(void);

/* xoshiro256++ (Blackman and Vigna, https://prng.di.unimi.it/). Not for secrets. */
uint64_t lb_rand(void);
/* This thread's numbers, and ids made in it, follow from the seed from now on. For tests only. */
void lb_rand_seed(uint64_t seed);
/* In [0, bound); bound > 0. */
uint64_t lb_rand_below(uint64_t bound);

#endif
