/*
 * ledger.h - what really happened, written down where no store can lose it
 *
 * Each process appends lines to a file of its own, NAME-PID.ledger in one directory, one write(2) and fsync a line, so
 * that a SIGKILL loses nothing that was written before it. The reader merges all files of the directory.
 *
 *     A time id                          enqueue returned success (or DUPLICATE of that very id)
 *     S time id attempt fence            a handler starts
 *     E time id attempt fence outcome    a handler ends with this lade_outcome
 *     R time id verb                     an operator's act on a job succeeded
 *     K time pid                         the test killed that process
 *     P time pid                         the test stopped that process; and C time pid: let it go on
 *     W time text                        a line of the worker's log
 *     X time name value                  a number of the worker's at its end
 *
 * Times are lb_clock_mono, the same for all processes of a machine. Ids contain no blanks.
 *
 * Thread safety: appending from any number of threads; the reader is one thread's.
 */
#ifndef LADE_TESTS_SUPPORT_LEDGER_H
#define LADE_TESTS_SUPPORT_LEDGER_H

#include <lade/lade.h>

#include <stdio.h>
#include <sys/types.h>

struct ts_ledger_file {
    int fd;
    bool
        no_sync; /* for counts where fsync would be most of the time; a SIGKILL loses nothing either way */
};

/* Opens DIR/name-PID.ledger. False, with the reason on stderr. */
bool ts_ledger_open(struct ts_ledger_file *f, const char *dir, const char *name);
void ts_ledger_close(struct ts_ledger_file *f);

void ts_ledger_acked(struct ts_ledger_file *f, const char *id);
void ts_ledger_started(struct ts_ledger_file *f, const lade_job *job);
void ts_ledger_ended(struct ts_ledger_file *f, const lade_job *job, lade_outcome outcome);
void ts_ledger_acted(struct ts_ledger_file *f, const char *id, const char *verb);
void ts_ledger_process(struct ts_ledger_file *f, char what, pid_t pid); /* 'K', 'P' or 'C' */
void ts_ledger_log(struct ts_ledger_file *f, const char *line);
void ts_ledger_number(struct ts_ledger_file *f, const char *name, uint64_t value);

/* One call of a handler. */
struct ts_run {
    char id[LADE_ID_MAX + 1];
    pid_t pid;
    int attempt;
    uint64_t fence;
    int64_t started, ended; /* ended 0: never, its process died or it still runs */
    int outcome;            /* lade_outcome, -1 without an end */
};

struct ts_id {
    char text[LADE_ID_MAX + 1];
    char verb[16]; /* of acts */
    int64_t at;
};

struct ts_event {
    char what; /* K, P or C */
    pid_t pid;
    int64_t at;
};

struct ts_number {
    char name[32];
    uint64_t value;
    pid_t pid;
};

struct ts_log_line {
    char text[300];
    pid_t pid;
    int64_t at;
};

/* All files together. */
struct ts_ledger {
    struct ts_run *run;  /* by id, then fence, then start */
    struct ts_id *acked; /* by id, each once */
    struct ts_id *act;
    struct ts_event *event; /* by time */
    struct ts_number *number;
    struct ts_log_line *log;
    size_t n_runs, n_acked, n_acts, n_events, n_numbers, n_log;
};

/* False, with the reason on stderr; nothing to free then. */
bool ts_ledger_read(struct ts_ledger *l, const char *dir);
void ts_ledger_free(struct ts_ledger *l);

/* The runs of one job: a pointer into l->run and their number. */
const struct ts_run *ts_ledger_runs(const struct ts_ledger *l, const char *id, size_t *n);
/* Runs of the job that have an end. */
size_t ts_ledger_ends(const struct ts_ledger *l, const char *id);
bool ts_ledger_was_acked(const struct ts_ledger *l, const char *id);
bool ts_ledger_was_acted_on(const struct ts_ledger *l, const char *id);
/* A number added up over all processes. */
uint64_t ts_ledger_sum(const struct ts_ledger *l, const char *name);
/* Log lines that contain the text. */
size_t ts_ledger_logged(const struct ts_ledger *l, const char *text);

/* Reads the directory again and counts: for waiting until something was written. 0 when it cannot be read. */
size_t ts_ledger_count_ends(const char *dir);
size_t ts_ledger_count_starts(const char *dir);
size_t ts_ledger_count_log(const char *dir, const char *text);

#endif
