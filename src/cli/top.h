/*
 * top.h - what lade top shows: two looks at a store and what lies between them
 *
 * A look is bounded by the numbers of queues and of workers, never by jobs. Rates are of the totals of two looks by the store's clock; of
 * the first look, and of a queue that was made anew meanwhile, there are none (-1).
 * Thread safety: none.
 */
#ifndef LADE_CLI_TOP_H
#define LADE_CLI_TOP_H

#include "base/buf.h"
#include "cli/cli.h"
#include "cli/queue_sort.h"

struct cli_top_queue {
    lade_queue_info info;
    double in, done, failed; /* jobs a second since the look before; < 0: not known */
};

struct cli_top {
    int64_t at; /* store's clock; 0 = none yet */
    struct cli_top_queue *queue;
    size_t n_queues;
    lade_worker_info *workers;
    size_t n_workers;
    double every; /* seconds between the looks */
};

/* Looks anew: *top is then the new look, its rates against what it was. 0, LADE_NOT_FOUND (of c->queue) or a failure, and *top as it was. */
LADE_CHECKED int cli_top_look(struct cli *c, struct cli_top *top, const struct cli_queue_sort *sort,
                              lade_err *err);
void cli_top_fini(struct cli_top *top);

/* One look as a row: {"at", "queues", "workers", "total"}. */
struct cli_row;
void cli_top_row(struct cli_row *r, const struct cli_top *top);
/*
 * A screen of at most `rows` lines of at most `columns` characters (0 = any). With `ansi` it draws over the screen before
 * and leaves nothing of it; without, it is lines.
 */
void cli_top_draw(struct lb_buf *out, const struct cli *c, const struct cli_top *top, size_t rows,
                  size_t columns, bool ansi);

#endif
