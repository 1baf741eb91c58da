/* stats.h - what the runs of one cell say: the median and how sure it is. Thread safety: all functions. */
#ifndef LADE_BENCH_STATS_H
#define LADE_BENCH_STATS_H

#include <stdbool.h>
#include <stddef.h>

struct bn_stats {
    size_t n;
    double median;
    double low, high; /* confidence interval of the median */
    double coverage;  /* of that interval, a part of 1 */
    double min, max, mean, stdev;
    double cv; /* stdev / mean; 0 when the mean is 0 */
};

/* Sorts `values`. Zeroes when n is 0. */
void bn_stats_of(double *values, size_t n, struct bn_stats *out);

/*
 * The interval [x(j), x(n+1-j)] of sorted values that holds the median at about 98 %: the largest j >= 1 whose coverage
 * 1 - 2 P(Bin(n, 1/2) <= j-1) is at least 97.8 % (n = 10: j = 2, 97.85 %). Below n = 7 there is none: j = 1, which is the
 * smallest and largest value, with the coverage that it has (n = 5: 93.75 %).
 */
size_t bn_stats_rank(size_t n, double *coverage);

/* Drops the k smallest (of a rate) or largest (of a time) values, but always leaves one; the new n. Sorts. */
size_t bn_stats_discard(double *values, size_t n, size_t k, bool lower_is_better);

/* The intervals have no value in common. */
bool bn_stats_apart(const struct bn_stats *a, const struct bn_stats *b);

#endif
