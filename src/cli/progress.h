/*
 * progress.h - one live line about a worker on a terminal, and log lines that do not tear it
 *
 * A thread of its own asks the worker's counters a few times a second. Without a terminal nothing but log lines is
 * written. Thread safety: cli_progress_log from any thread.
 */
#ifndef LADE_CLI_PROGRESS_H
#define LADE_CLI_PROGRESS_H

#include <lade/lade.h>

#include <pthread.h>

struct cli_progress {
    lade_worker *worker;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    pthread_t thread;
    bool is_live, started;
    bool stop;       /* guarded by: lock */
    bool line_shown; /* guarded by: lock */
    int64_t last_at;
    uint64_t last_n;
    double rate;
};

void cli_progress_init(struct cli_progress *p, bool is_live);
/* Starts the live line, when it is wanted. Without a thread the line is missing, nothing else. */
void cli_progress_start(struct cli_progress *p, lade_worker *worker);
void cli_progress_stop(struct cli_progress *p);
/* The log function of lade_worker_config; ctx is a struct cli_progress. */
void cli_progress_log(void *ctx, const char *line);

#endif
