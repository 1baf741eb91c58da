/*
 * sheet.h - results of jobs that were settled together lie together
 *
 * A result written into its job's row costs as much as the rest of the job's way: the row is found, read, made anew and written
 * back longer than it was. Results of a stretch of neighbours go into one row of their own instead, a sheet:
 *
 *     sheet.job     number of the first job of the stretch         sheet.n     jobs in it, at most SHEET_JOBS
 *     sheet.data    n lengths (4 bytes, little endian; 0 = none), then the results
 *
 * A job's result is job.result, or else in the sheet that covers it. A job is in one sheet at most: it gets a result when it
 * completes, and before it can complete again the sheet is taken apart (spread: each result into its job's row). A sheet is deleted
 * with the last of its jobs.
 *
 * Jobs that come alone, and results that are large, are written into their rows as before.
 */
#ifndef LADE_SQLITE_SHEET_H
#define LADE_SQLITE_SHEET_H

#include "store/sqlite/tx.h"

#define LS_SQLITE_SHEET_MIN  4    /* jobs; fewer are written one by one */
#define LS_SQLITE_SHEET_JOBS 1000 /* at most */
#define LS_SQLITE_SHEET_BYTES \
    (16 << 10) /* of results in one; whoever reads one result reads them all */

/* Results of k items whose jobs are seq, seq + 1, ...: all completed. */
LADE_CHECKED int ls_sqlite_results_add(struct ls_sqlite_tx *tx, const struct lq_settle *it,
                                       size_t k, int64_t seq);
/* The result of a job that has none in its row, into the arena; *out is left alone when there is none. */
LADE_CHECKED int ls_sqlite_result_find(struct ls_sqlite_tx *tx, int64_t seq, struct lb_arena *arena,
                                       struct lb_mut *out);
/* The jobs [seq, seq + n) are no more. */
LADE_CHECKED int ls_sqlite_results_del(struct ls_sqlite_tx *tx, int64_t seq, int64_t n);
/* The jobs [seq, seq + n) start anew: no results any more. */
LADE_CHECKED int ls_sqlite_results_clear(struct ls_sqlite_tx *tx, int64_t seq, int64_t n);

#endif
