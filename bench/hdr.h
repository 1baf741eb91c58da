/*
 * hdr.h - latencies: a log-linear histogram, 1 ns to 1 h, three significant digits
 *
 * Any number of threads may add at once; read it when they are done. Fixed memory (270 KiB), no allocation after make.
 */
#ifndef LADE_BENCH_HDR_H
#define LADE_BENCH_HDR_H

#include <stdint.h>

#define BN_HDR_MAX_NS (INT64_C(3600) * 1000000000)

struct bn_hdr;

/* NULL when out of memory. */
struct bn_hdr *bn_hdr_make(void);
void bn_hdr_free(struct bn_hdr *h);
/* Negative counts as 0; over an hour counts as an hour, and in the overflow. */
void bn_hdr_add(struct bn_hdr *h, int64_t ns);
uint64_t bn_hdr_count(const struct bn_hdr *h);
uint64_t bn_hdr_overflow(const struct bn_hdr *h);
/* The value of nearest rank, off by less than 0.1 %; 0 of an empty one. `p` is a part of 1: 0.99. */
int64_t bn_hdr_at(const struct bn_hdr *h, double p);
int64_t bn_hdr_max(const struct bn_hdr *h); /* exact */

#endif
