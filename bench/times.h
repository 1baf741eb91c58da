/*
 * times.h - how long each cell took when it last ran on this machine, so that a run can say at its start how long it will take
 *
 * One JSON object in a file: "table|row|parameters|contender" -> seconds. Advice only: a file that cannot be read or written is no
 * failure. Thread safety: the main thread.
 */
#ifndef LADE_BENCH_TIMES_H
#define LADE_BENCH_TIMES_H

#include "bench/session.h"

/* Fills last_wall_s of the cells that it knows. */
void bn_times_load(struct bn_session *s, const char *path);
/* Adds what ran. */
void bn_times_save(const struct bn_session *s, const char *path);

#endif
