/*
 * acts.h - verbs that act on things by id: one loop, one shape of what is printed
 *
 * Ids come from the arguments, or one a line from stdin for "-". For each there is one row: id, verb, result (done, not_found,
 * wrong_state, duplicate, ...), job (the one that a verb made or met, else null; only where a verb makes any) and dry_run. JSON is one object for
 * one id and an array for several or stdin; NDJSON and TSV are a line for each. A table prints only jobs that were made. What was not
 * done is told on stderr with the reason, and how many were. The exit code folds those of the ids.
 *
 * Thread safety: none.
 */
#ifndef LADE_CLI_ACTS_H
#define LADE_CLI_ACTS_H

#include <lade/lade.h>

#include "cli/cli.h"

#define CLI_ACTS_STEP 1000 /* ids of one call */

struct cli_act {
    int outcome;
    lade_id job;
};

struct cli_acts {
    const char *done; /* "retried" */
    bool makes_jobs;
    size_t step; /* ids of one call; 0 = CLI_ACTS_STEP */
    int verb;    /* for the functions below */
    /* Acts on n ids and sets their `out`. < 0: the call failed, nothing was done of them, and the loop ends. */
    int (*act)(struct cli *c, int verb, const lade_id *ids, size_t n, struct cli_act *out,
               lade_err *err);
    /* Tells why an outcome that is > 0 is no success. */
    enum cli_exit (*refuse)(int verb, const char *id, const struct cli_act *act);
};

enum cli_exit cli_acts_run(struct cli *c, const struct cli_acts *acts, char **args, int n_args);

#endif
