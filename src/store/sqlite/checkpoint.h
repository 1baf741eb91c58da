/*
 * checkpoint.h - keeps the log (PATH-wal) short while others read
 *
 * SQLite folds the log back after a commit beyond some pages, but starts it over only when at that moment nobody reads
 * from it. With a dashboard and a few listings in loops somebody always does, and the log grows without end (C-048). So
 * beyond a second limit this waits, briefly and not often, for the readers of that moment to finish: those that come
 * meanwhile read from the file, and the log starts over. A reader that stays longer costs RESTART_WAIT each
 * RESTART_EVERY; the log then grows until it is gone.
 *
 * Thread safety: as db.h.
 */
#ifndef LADE_SQLITE_CHECKPOINT_H
#define LADE_SQLITE_CHECKPOINT_H

#include "store/sqlite/db.h"

/* In place of PRAGMA wal_autocheckpoint. */
void ls_sqlite_checkpoint_init(struct ls_sqlite_db *db);

#endif
