/* view.h - a job, its attempts and a queue as rows for out.h. Thread safety: none. */
#ifndef LADE_CLI_VIEW_H
#define LADE_CLI_VIEW_H

#include <lade/lade.h>

#include "cli/out.h"

extern const struct cli_column cli_job_columns[];
extern const size_t cli_n_job_columns;
extern const struct cli_column cli_dead_columns[];
extern const size_t cli_n_dead_columns;
/* A job in one line of TSV, from cli_view_full and cli_view_last_error. */
extern const struct cli_column cli_show_columns[];
extern const size_t cli_n_show_columns;

/* A row of a listing: previews of payload and last error. `now` is the store's clock, for ages. */
void cli_view_row(struct cli_row *r, const lade_job_view *v, int64_t now);
/* Everything, bytes whole, with all attempts. */
void cli_view_full(struct cli_row *r, const lade_job_view *v, int64_t now);
/* Adds "error", whole: that of the last attempt which has one. */
void cli_view_last_error(struct cli_row *r, const lade_job_view *v);
/* For people: a card of facts and a table of attempts. */
LADE_CHECKED int cli_view_print(const struct cli *c, const lade_job_view *v, int64_t now,
                                lade_err *err);

/*
 * Lists up to `limit` jobs (0 = all) of the states with a bit in `states`, of c->queue or of all queues. A note says when there
 * are more.
 */
LADE_CHECKED int cli_view_list(struct cli *c, unsigned states, int64_t limit,
                               const struct cli_column *columns, size_t n_columns, lade_err *err);

/* Fills *out with the queues that c->queue selects; the caller's, lade_free. 0 or LADE_NOT_FOUND. */
LADE_CHECKED int cli_view_queues(struct cli *c, lade_queue_info **out, size_t *n, lade_err *err);

/* States from a comma list of names and aliases, "all" for all. */
LADE_CHECKED int cli_view_states(const char *what, const char *text, unsigned *out, lade_err *err);

#endif
