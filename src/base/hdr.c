/*
 * hdr.c - values below 2048 have a counter each; above, each doubling has 1024
 *
 *     shift(v) = how far v must be shifted right to fall within 1024..2047     index(v) = shift * 1024 + (v >> shift)
 *
 * so a counter of shift s holds 2^s neighbours and its middle is off by at most 1/2048 of the value.
 */
#include "base/hdr.h"

#include <stdatomic.h>
#include <stddef.h>

#include "base/base.h"
#include "base/mem.h"

#define HALF   1024
#define SHIFTS 33 /* 2^(10 + 32) ns are more than an hour */

struct lb_hdr {
    _Atomic uint64_t count, overflow, sum;
    _Atomic int64_t max;
    _Atomic uint64_t at[SHIFTS * HALF + HALF];
};

struct lb_hdr *lb_hdr_make(void)
{
    return lb_calloc(1, sizeof(struct lb_hdr));
}

void lb_hdr_free(struct lb_hdr *h)
{
    lb_free(h);
}

static size_t index_of(uint64_t v)
{
    unsigned shift = v < HALF ? 0 : (unsigned)(63 - __builtin_clzll(v)) - 10;
    return (size_t)shift * HALF + (size_t)(v >> shift);
}

static int64_t middle_of(size_t index)
{
    size_t shift = index < 2 * HALF ? 0 : index / HALF - 1;
    int64_t low = (int64_t)(index - shift * HALF) << shift;
    return low + (((int64_t)1 << shift) - 1) / 2;
}

void lb_hdr_add(struct lb_hdr *h, int64_t ns)
{
    if (ns < 0)
        ns = 0;
    if (ns > LB_HDR_MAX_NS) {
        atomic_fetch_add_explicit(&h->overflow, 1, memory_order_relaxed);
        ns = LB_HDR_MAX_NS;
    }
    atomic_fetch_add_explicit(&h->at[index_of((uint64_t)ns)], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&h->count, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&h->sum, (uint64_t)ns, memory_order_relaxed);
    int64_t max = atomic_load_explicit(&h->max, memory_order_relaxed);
    while (ns > max && !atomic_compare_exchange_weak_explicit(
                           &h->max, &max, ns, memory_order_relaxed, memory_order_relaxed))
        ;
}

uint64_t lb_hdr_count(const struct lb_hdr *h)
{
    return h->count;
}

uint64_t lb_hdr_overflow(const struct lb_hdr *h)
{
    return h->overflow;
}

int64_t lb_hdr_max(const struct lb_hdr *h)
{
    return h->max;
}

double lb_hdr_mean(const struct lb_hdr *h)
{
    return h->count ? (double)h->sum / (double)h->count : 0;
}

void lb_hdr_clear(struct lb_hdr *h)
{
    if (h->count == 0)
        return;
    h->count = h->overflow = h->sum = 0;
    h->max = 0;
    for (size_t i = 0; i < LB_ARRAY_LEN(h->at); i++)
        atomic_store_explicit(&h->at[i], 0, memory_order_relaxed);
}

int64_t lb_hdr_at(const struct lb_hdr *h, double p)
{
    double exact = p * (double)h->count;
    uint64_t rank = (uint64_t)exact + (exact > (double)(uint64_t)exact);
    uint64_t seen = 0;
    if (h->count == 0)
        return 0;
    if (rank >= h->count)
        return h->max;
    for (size_t i = 0; i < LB_ARRAY_LEN(h->at); i++) {
        seen += h->at[i];
        if (seen >= rank && seen > 0)
            return LB_MIN(middle_of(i), h->max);
    }
    return h->max;
}
