/*
 * log.h - a commit goes to the log (PATH-wal) in one write
 *
 * SQLite writes each page of a transaction as two pieces, a frame header of 24 bytes and the page, each with a system call
 * of its own, and a small transaction changes about five pages. Here a thin VFS over the default one gathers these pieces
 * while a transaction of ours is open, and writes them together when the last frame of the commit has come. The result is
 * told by that last write, so SQLite learns of a full disk where it expects to.
 *
 * Nothing gathered outlives its transaction: an end without commit drops it, for nobody may write to the log without the
 * write lock. Whatever is not the plain sequence of frames (another page size, a rewritten frame, the log's header, a
 * sync) first writes what is gathered and then goes straight through. Gathered are at most LS_SQLITE_LOG_BYTES;
 * longer transactions write each time they are full.
 *
 * The header of the last frame tells how many pages the file has after the commit. Before it is written, the file gets
 * blocks for all of them, so that the log can always be folded back into it, also on a full disk.
 *
 * Thread safety: as db.h.
 */
#ifndef LADE_SQLITE_LOG_H
#define LADE_SQLITE_LOG_H

#include "store/sqlite/db.h"

/* The most that SQLite's VFS for Unix takes in one write is 128 KiB. */
#define LS_SQLITE_LOG_BYTES (127 << 10)

/* For sqlite3_open_v2: the VFS that gathers, over the default one; NULL when there are too many of those. */
const char *ls_sqlite_log_vfs(void);

/* A write transaction has begun: from now on gather. Without memory, or without the VFS, nothing changes. */
void ls_sqlite_log_begin(struct ls_sqlite_db *db);
/*
 * Its commit comes next. strict: it is to fail (SQLITE_FULL) when the file cannot get the blocks; else it goes on. False
 * when nothing is gathered and the caller has to see to the blocks himself.
 */
bool ls_sqlite_log_commits(struct ls_sqlite_db *db, bool strict);
/* It is over, this way or that. */
void ls_sqlite_log_end(struct ls_sqlite_db *db);

#endif
