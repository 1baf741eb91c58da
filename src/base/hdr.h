/*
 * hdr.h - latencies: a log-linear histogram, 1 ns to 1 h, three significant digits
 *
 * Any number of threads may add at once; read it when they are done. Fixed memory (270 KiB), no allocation after make.
 */
#ifndef LADE_BASE_HDR_H
#define LADE_BASE_HDR_H

#include <stdint.h>

#define LB_HDR_MAX_NS (INT64_C(3600) * 1000000000)

struct lb_hdr;

/* NULL when out of memory. */
struct lb_hdr *lb_hdr_make(void);
void lb_hdr_free(struct lb_hdr *h);
/* Negative counts as 0; over an hour counts as an hour, and in the overflow. */
void lb_hdr_add(struct lb_hdr *h, int64_t ns);
uint64_t lb_hdr_count(const struct lb_hdr *h);
uint64_t lb_hdr_overflow(const struct lb_hdr *h);
/* The value of nearest rank, off by less than 0.1 %; 0 of an empty one. `p` is a part of 1: 0.99. */
int64_t lb_hdr_at(const struct lb_hdr *h, double p);
int64_t lb_hdr_max(const struct lb_hdr *h); /* exact */
double lb_hdr_mean(const struct lb_hdr *h); /* exact; 0 of an empty one */
/* Empty again. What others add meanwhile is counted before or after, or in part. */
void lb_hdr_clear(struct lb_hdr *h);

#endif
