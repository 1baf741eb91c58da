/*
 * bulk.h - many jobs from a file, one a line, in batches
 *
 * Memory is bounded by one batch: CLI_BULK_JOBS lines or CLI_BULK_BYTES bytes, whichever comes first (and one line).
 * A batch is written wholly or not at all; a bad line stops before its batch is written, and the lines counted before
 * say how far it went, so that the rest can be fed again.
 * Thread safety: none.
 */
#ifndef LADE_CLI_BULK_H
#define LADE_CLI_BULK_H

#include "cli/cli.h"

#define CLI_BULK_JOBS  1000
#define CLI_BULK_BYTES (4U << 20)

struct cli_bulk {
    const char *path;
    bool is_ndjson; /* else each line is a payload */
    bool skip_bad;  /* pass over bad lines */
    bool print_ids;
    bool
        tells_held; /* each job that is not there, for another holds its unique key; the exit is then CLI_PARTIAL */
    uint32_t payload_max;
    const lade_job_spec *base; /* what the lines do not say */
};

/* Runs to the end; prints ids as asked and the summary on stderr. c->q is open unless --dry-run. */
enum cli_exit cli_bulk_run(struct cli *c, const struct cli_bulk *b);

#endif
