/* limit_opts.h - limits as options and as rows, for lade queue limit and lade key limit. Thread safety: none. */
#ifndef LADE_CLI_LIMIT_OPTS_H
#define LADE_CLI_LIMIT_OPTS_H

#include <lade/lade.h>

#include "cli/out.h"

/* What was said; NULL = not. */
struct cli_limit_opts {
    const char *concurrency, *rate, *burst, *weight, *order;
};

struct cli_bound_opts {
    const char *max_jobs, *max_bytes, *on_full;
};

/* Puts what was said into *bound, which is what was set before. */
LADE_CHECKED int cli_bound_read(const struct cli_bound_opts *o, lade_bound *bound, lade_err *err);
/* Reads the bound of a queue and adds max_jobs, max_bytes (null: none), bytes (that wait; null: not
 * counted) and on_full to the row. */
LADE_CHECKED int cli_bound_row(struct cli *c, const char *queue, struct cli_row *r, lade_err *err);

/*
 * N, or COUNT/PERIOD as the other rates, into whole jobs a second of 1 to max. `name` (with its dashes) is the option in errors.
 */
LADE_CHECKED int cli_rate_a_second(const char *name, const char *text, int64_t max, int64_t *out,
                                   lade_err *err);

bool cli_limit_is_said(const struct cli_limit_opts *o);
/*
 * Puts what was said into *limit, which is what was set before. `prefix` is put before the names of options in errors ("key-" of
 * --key-rate). `of_key`: "none" and "default" mean what LADE_LIMIT_NONE and 0 do.
 */
LADE_CHECKED int cli_limit_read(const struct cli_limit_opts *o, const char *prefix, bool of_key,
                                lade_limit *limit, lade_err *err);

/* "100/1s burst 100", "none" (LADE_LIMIT_NONE), "-" (0). */
struct cli_limit_text {
    char text[96];
};

struct cli_limit_text cli_limit_rate_text(const lade_rate *r);
struct cli_limit_text cli_limit_number_text(int64_t n);
const char *cli_limit_order_text(enum lade_key_order order);
/*
 * Adds PREFIXconcurrency, PREFIXrate_count, PREFIXrate_period_ms and PREFIXrate_burst, and for keys PREFIXweight and PREFIXorder.
 * null is what is not limited or not said.
 */
void cli_limit_row(struct cli_row *r, const char *prefix, const lade_limit *limit, bool of_keys);

#endif
