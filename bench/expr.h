/*
 * expr.h - what a table expects, as a formula over a run's parameters: "n*(n-1)/2"
 *
 * Unsigned 64-bit numbers that wrap, + - * / %, parentheses, parameter names, and mix(n, rounds): the sum of the hash kernel
 * of table `currency` over 0..n-1, which takes 100 ns an item at 32 rounds and is therefore remembered from one call to the next.
 * Thread safety: one thread.
 */
#ifndef LADE_BENCH_EXPR_H
#define LADE_BENCH_EXPR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* True and *out when `name` (n bytes) is known. */
typedef bool (*bn_lookup_fn)(void *ctx, const char *name, size_t n, uint64_t *out);

/* False, with a reason in `why`, on a formula that cannot be read, an unknown name or a division by 0. */
bool bn_expr(const char *text, bn_lookup_fn lookup, void *ctx, uint64_t *out, char *why,
             size_t why_size);

#endif
