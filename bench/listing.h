/* listing.h - what there is to run, and whether it can run here. Thread safety: the main thread. */
#ifndef LADE_BENCH_LISTING_H
#define LADE_BENCH_LISTING_H

#include "bench/driver.h"

#define BN_NAMES_MAX 32

struct bn_names {
    char name[BN_NAMES_MAX][64];
    size_t n;
};

/* Names of the tables in a folder, sorted. */
void bn_listing_tables(const char *dir, struct bn_names *out);
/* To standard output, as text or as one JSON object. The exit status. */
int bn_listing_print(const char *tables_dir, struct bn_drivers *drivers, bool json);

#endif
