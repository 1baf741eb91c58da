#include "bench/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

#define COVERAGE_WANTED 0.978

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* P(Bin(n, 1/2) <= k), by logarithms since 2^n leaves a double at n = 1024. */
static double tail_of(size_t n, size_t k)
{
    double sum = 0;
    double log_term = -(double)n * M_LN2; /* of i = 0 */
    for (size_t i = 0; i <= k && i <= n; i++) {
        sum += exp(log_term);
        log_term += log((double)(n - i)) - log((double)(i + 1));
    }
    return LB_MIN(sum, 1.0);
}

size_t bn_stats_rank(size_t n, double *coverage)
{
    size_t j = 1;
    while (j < (n + 1) / 2 && 1 - 2 * tail_of(n, j) >= COVERAGE_WANTED)
        j++;
    *coverage = n < 2 ? 0 : 1 - 2 * tail_of(n, j - 1);
    return j;
}

void bn_stats_of(double *values, size_t n, struct bn_stats *out)
{
    *out = (struct bn_stats){.n = n};
    if (n == 0)
        return;
    qsort(values, n, sizeof(values[0]), compare_doubles);
    size_t j = bn_stats_rank(n, &out->coverage);
    out->median = n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
    out->low = values[j - 1];
    out->high = values[n - j];
    out->min = values[0];
    out->max = values[n - 1];
    for (size_t i = 0; i < n; i++)
        out->mean += values[i] / (double)n;
    for (size_t i = 0; i < n; i++)
        out->stdev += (values[i] - out->mean) * (values[i] - out->mean);
    out->stdev = n > 1 ? sqrt(out->stdev / (double)(n - 1)) : 0;
    out->cv = out->mean > 0 ? out->stdev / out->mean : 0;
}

size_t bn_stats_discard(double *values, size_t n, size_t k, bool lower_is_better)
{
    if (n == 0)
        return 0;
    size_t drop = LB_MIN(k, n - 1);
    qsort(values, n, sizeof(values[0]), compare_doubles);
    if (!lower_is_better)
        memmove(values, values + drop, (n - drop) * sizeof(values[0]));
    return n - drop;
}

bool bn_stats_apart(const struct bn_stats *a, const struct bn_stats *b)
{
    return a->low > b->high || b->low > a->high;
}
