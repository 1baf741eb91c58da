/*
 * verify.h - is this line what the scenario demands?
 *
 * The runner knows from the table how much work there was and what its checksum is, so a driver cannot claim work that it did not do.
 * Thread safety: all functions.
 */
#ifndef LADE_BENCH_VERIFY_H
#define LADE_BENCH_VERIFY_H

#include <jansson.h>
#include <stddef.h>

#include "bench/table.h"

/*
 * The result in `text` (a driver's whole standard output), new; NULL, with the reason in why, when it is not one line, lacks
 * a field, or claims what the row (with the contender's own parameters in `set`, NULL = none) does not allow.
 */
json_t *bn_verify(const struct bn_row *row, const json_t *set, const char *text, char *why,
                  size_t size);

#endif
