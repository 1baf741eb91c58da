/*
 * checkpoint.h - keeps the log (PATH-wal) short while others read
 *
 * SQLite folds the log back after a commit beyond some pages, but starts it over only when at that moment nobody reads
 * from it. With a dashboard and a few listings in loops somebody always does, and the log grows without end (C-048).
 * Hence three stages, after each commit of the writer and at each sweep of a worker, by the pages that the log has:
 *
 *      4 MiB   folded back as far as the readers of the moment allow, by a thread beside the writer (tender.h), which has the log
 *              start over at 24 MiB. Where that cannot be had, the leader does the same from 16 MiB on, waiting for nobody.
 *     32 MiB   then the readers of the moment are waited for, with the write lock held: those that come meanwhile read
 *              from the file, so it takes as long as the longest transaction that is open. When it takes longer than
 *              patience allows, the lock is let go for a moment, for heartbeats of other processes, and the next commit
 *              tries again with twice the patience. Readers in loops thus slow the writer down but do not grow the log,
 *              as long as none takes longer than a quarter of a second.
 *     64 MiB   only a reader that stays can bring it here. One is known by its mark: what could be folded back did not
 *              move from one wait to the next. It is then not waited for until the mark moves, since writing must go on,
 *              and a notice is given, again at each doubling.
 *
 * After the log has started over it is cut to 32 MiB. Heartbeats commit too but never fold, lest a lease waits for a disk.
 *
 * Thread safety: count and the fold belong to who leads the writer; take_notice may be called from anywhere.
 */
#ifndef LADE_SQLITE_CHECKPOINT_H
#define LADE_SQLITE_CHECKPOINT_H

#include "store/sqlite/db.h"

#define LS_SQLITE_LOG_LIMIT (32 << 20) /* bytes; readers are waited for beyond this */

struct ls_sqlite;

struct ls_sqlite_fold {
    int64_t patience;
    int marked;  /* pages folded back when a wait was in vain; -1 = none was */
    bool pinned; /* it was the same at the wait before */
    int told;    /* pages of the log at the last notice */
    int notice;  /* atomic: pages to be told, 0 = nothing */
};

/* In place of PRAGMA wal_autocheckpoint: each commit of the connection only notes how long the log is. */
void ls_sqlite_checkpoint_count(struct ls_sqlite_db *db);

void ls_sqlite_fold_init(struct ls_sqlite_fold *f);
/* After a commit of the writer, with no transaction open. */
void ls_sqlite_fold_tend(struct ls_sqlite_fold *f, struct ls_sqlite *s);
/* For a full disk: whatever the length, waits a little for readers, and the log is written from its start again. */
void ls_sqlite_fold_restart(struct ls_sqlite *s);
/* True when there is something to tell, once; the text says what and what to do. */
bool ls_sqlite_fold_take_notice(struct ls_sqlite_fold *f, const char *path, char *text,
                                size_t size);
/* True when the log is far beyond its limit and somebody reads in it now; the text as above. For lade doctor. */
bool ls_sqlite_fold_look(struct ls_sqlite *s, struct ls_sqlite_db *db, char *text, size_t size);

#endif
