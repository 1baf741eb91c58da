/* units.h - numbers as people read them: three significant digits and a unit. Thread safety: all functions. */
#ifndef LADE_BENCH_UNITS_H
#define LADE_BENCH_UNITS_H

#include <stddef.h>

/*
 * Writes `v` to out and returns out. `unit`:
 *     "us"     a time in microseconds:   812 ns, 3.91 ms, 2.00 s
 *     "B"      bytes:                    48.0 B, 2.71 KiB
 *     other    a number:                 25.9K, 1.38M, 0.200
 */
char *bn_units(double v, const char *unit, char *out, size_t size);

#endif
