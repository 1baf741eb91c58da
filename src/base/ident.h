/*
 * ident.h - chance and time-ordered ids
 *
 * Ids have the ULID text form (https://github.com/ulid/spec): 26 characters of Crockford's base 32, 48 bits of
 * milliseconds since 1970 and then 80 bits of chance, so that ids sort by time as plain text.
 *
 * Thread safety: all functions; each thread has a generator of its own, seeded by getrandom and again after a fork.
 */
#ifndef LADE_BASE_IDENT_H
#define LADE_BASE_IDENT_H

#include <stdint.h>

#define LB_ULID_LEN 26

/* Writes LB_ULID_LEN characters and a NUL. */
void lb_ulid(char out[LB_ULID_LEN + 1], int64_t wall_ns);

/* xoshiro256++ (Blackman and Vigna, https://prng.di.unimi.it/). Not for secrets. */
uint64_t lb_rand(void);
/* In [0, bound); bound > 0. */
uint64_t lb_rand_below(uint64_t bound);

#endif
