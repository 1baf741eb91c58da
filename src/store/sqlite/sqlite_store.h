/*
 * sqlite_store.h - jobs in a SQLite file, for all processes of one machine
 *
 *     sqlite:PATH[?synchronous=normal|full&busy_timeout=MS]        `file:` is the same
 *
 * PATH is taken as it is up to the first '?'. The file is made when it is not there, its directory is not. Beside it lie
 * PATH-wal and PATH-shm (SQLite's), PATH-bell (bell.h) and PATH-room (room.h); they belong to it and move with it.
 *
 * synchronous=normal: a power failure may lose the last moments, never the file; a crash of the process loses nothing.
 * synchronous=full: each commit is on the disk before the call returns. busy_timeout: how long to wait for another
 * process that writes; default lade_options.timeout.
 */
#ifndef LADE_SQLITE_STORE_H
#define LADE_SQLITE_STORE_H

#include "queue/store.h"

extern const struct lq_store_ops ls_sqlite_ops;

#endif
