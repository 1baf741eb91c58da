/* drv_sample.h - payloads of table chasqui: nested objects of UUID keys, the number in the first one */
#ifndef LADE_BENCH_DRV_SAMPLE_H
#define LADE_BENCH_DRV_SAMPLE_H

#include "bench/drivers/lade/drv.h"

#define DRV_SAMPLE_MAX 16384

struct drv_sample {
    char text[DRV_SAMPLE_MAX];
    size_t size;
};

/* An object of `width` keys, each a chain of `depth`-1 one-key objects that ends in {}. False when it is too large. */
bool drv_sample_make(const struct drv *d, struct drv_sample *s);
/* Writes the number into a copy of a sample, and reads it out of one. */
void drv_sample_number(char *payload, uint64_t number);
uint64_t drv_sample_read(lade_bytes payload);

#endif
