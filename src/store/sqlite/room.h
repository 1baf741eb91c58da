/*
 * room.h - space kept beside the file for the day the disk is full
 *
 * On a disk without a free byte SQLite cannot even open a file in WAL mode: the index of the log has to be made, and the
 * delete that would free space has to be logged first. So PATH-room holds LS_SQLITE_ROOM_BYTES from the first open on;
 * an open, a heartbeat or an op that makes room, refused for want of space, gives them up and tries again; a writer that
 * finds space takes them back.
 *
 * Thread safety: all; also between processes, since making and removing the file are one step each.
 */
#ifndef LADE_SQLITE_ROOM_H
#define LADE_SQLITE_ROOM_H

#include <stdbool.h>

#define LS_SQLITE_ROOM_BYTES (1 << 20)

/* Makes the reserve when it is not there. That it cannot is no failure: then there is none. */
void ls_sqlite_room_keep(const char *path);
/* Gives it up. False when there was none. */
bool ls_sqlite_room_give(const char *path);

#endif
