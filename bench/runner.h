/*
 * runner.h - runs a table: repeat by repeat, row by row, contender by contender
 *
 * The order within a row rotates with the repeat (A B C, B C A, C A B), warm-ups are whole runs that are thrown away, and
 * a run that fails or hangs is written down and the next one starts. Thread safety: the main thread.
 */
#ifndef LADE_BENCH_RUNNER_H
#define LADE_BENCH_RUNNER_H

#include "bench/eta.h"
#include "bench/session.h"

/* Finds contenders, asks drivers, chooses the server. `peers` (comma separated, NULL = all) narrows the peers; lade's own
 * columns stay. False: reason in why. */
bool bn_session_open(struct bn_session *s, const char *peers, char *why, size_t size);
/* Runs until done or stopped; every run is a line of OUT/raw.jsonl at once. */
void bn_session_run(struct bn_session *s, struct bn_eta *eta);
/* Stops the server, frees what open and run made; not the table, the drivers or out. */
void bn_session_close(struct bn_session *s);

/* Which of n contenders runs k-th in this repeat. */
size_t bn_order(size_t repeat, size_t k, size_t n);

#endif
