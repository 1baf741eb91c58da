/*
 * tender.h - folds the log back beside the writer, on a thread and a connection of its own
 *
 * Folding back means two waits for the disk and as many writes as pages have changed. Done by who leads the writer, each caller of
 * that moment waits with it, and while two processes commit in turn neither finds the other's frames folded, so that each commit
 * beyond the first stage waited for the disk again. Here it is done in steps of 2 MiB while commits go on:
 *
 *      4 MiB   and at each 2 MiB more: passive passes, nobody waits. Should one reach the end, the next commit starts over.
 *     24 MiB   passes until at most 1 MiB is left, of all that has been written by then; both files are synced; then the writers are held
 *              for the rest and two short syncs, and the log starts over. A reader that is in the way is not waited for here.
 *     32 MiB   is the leader's own (checkpoint.h): the bound does not rest on this thread.
 *
 * The thread starts with the first ask, so that who writes little has none. Without it (no thread, no descriptor to be had) the
 * leader does all, as checkpoint.h says.
 *
 * Thread safety: ask and the lock belong to who leads the writer; stop to who closes the store.
 */
#ifndef LADE_SQLITE_TENDER_H
#define LADE_SQLITE_TENDER_H

#include "rt/seam.h"
#include "store/sqlite/db.h"

#define LS_SQLITE_TEND_FIRST (4 << 20) /* bytes of the log at the first ask */
#define LS_SQLITE_TEND_STEP  (2 << 20)
#define LS_SQLITE_TEND_END   (24 << 20) /* from here on it is brought to its end */

struct ls_sqlite;

struct ls_sqlite_tender {
    struct ls_sqlite *s;
    struct ls_sqlite_db db; /* owned by: the thread */
    struct lr_thread thread;
    struct lr_mutex lock;
    struct lr_cond wake;
    bool asked, tends, closing, failed; /* guarded by: lock */
    struct lr_mutex pass; /* held during a pass; never by one that waits for the writer */
    uint64_t passes;      /* atomic: made so far; for tests */
    int asked_at;         /* owned by: the leader; pages of the log when it asked last */
};

void ls_sqlite_tender_init(struct ls_sqlite_tender *t, struct ls_sqlite *s);
/* Ends the thread and closes its connection. */
void ls_sqlite_tender_fini(struct ls_sqlite_tender *t);
/* The log has so many pages. True when the thread sees to it. */
bool ls_sqlite_tender_ask(struct ls_sqlite_tender *t, int pages);

#endif
