/*
 * session.h - one table on its way: who runs, what came out of each run, where it is written
 *
 * Filled by runner.c, read by report.c, summary.c and plot.c. A cell is a row and a contender. Thread safety: the main
 * thread, but for `stop`, which a signal handler sets.
 */
#ifndef LADE_BENCH_SESSION_H
#define LADE_BENCH_SESSION_H

#include <jansson.h>
#include <signal.h>
#include <stdio.h>

#include "bench/driver.h"
#include "bench/server.h"
#include "bench/stats.h"
#include "bench/table.h"

#define BN_REPEATS_MAX 101

struct bn_run {
    json_t *line; /* NULL = failed */
    char why[320];
    bool cannot; /* the driver said that it cannot do this here */
    int repeat;  /* -1 = warm-up */
    double wall_s;
};

struct bn_cell {
    char why_not[400]; /* "" = it runs */
    struct bn_run run[BN_REPEATS_MAX];
    size_t n_runs; /* measured ones, failed too; a warm-up is never here */
    double last_wall_s;
    char last_error[320];
};

struct bn_session {
    struct bn_table *table;
    struct bn_drivers *drivers;
    struct bn_contender *contender[BN_CONTENDERS_MAX]; /* NULL: no driver gives this one */
    size_t n_contenders;
    struct bn_cell *cell; /* rows * contenders: bn_session_cell */
    struct bn_server server;
    struct bn_program program[BN_SERVERS_MAX];
    size_t n_programs;
    const char *profile;
    double scale;
    int repeats, warmup, discard;
    uint64_t seed;
    char out[600]; /* folder */
    FILE *raw;     /* OUT/raw.jsonl */
    unsigned seq;  /* runs so far, warm-ups too: the true order */
    double load_before, load_after;
    json_t *machine;
    const volatile sig_atomic_t *stop;
    bool partial;
    double elapsed_s;
};

static inline struct bn_cell *bn_session_cell(const struct bn_session *s, size_t row, size_t c)
{
    return &s->cell[row * s->n_contenders + c];
}

/* The name of column c, whether or not it can run. */
static inline const char *bn_session_column(const struct bn_session *s, size_t c)
{
    return s->table->contenders[c];
}

/* Statistics of one figure over the good runs of a cell. False when no run has it. */
bool bn_session_stats(const struct bn_session *s, size_t row, size_t c, const char *metric,
                      bool lower_is_better, struct bn_stats *out);
/* How many of the measured runs were good. */
size_t bn_cell_good(const struct bn_cell *cell);

#endif
