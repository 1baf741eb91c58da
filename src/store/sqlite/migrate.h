/* migrate.h - is the file lade's, and of this version's schema */
#ifndef LADE_SQLITE_MIGRATE_H
#define LADE_SQLITE_MIGRATE_H

#include "store/sqlite/db.h"

#define LS_SQLITE_APPLICATION_ID 0x6c616465 /* "lade" */
#define LS_SQLITE_SCHEMA         13         /* PRAGMA user_version of this build */

/*
 * Makes the schema in an empty file, brings an older one up, refuses what is not lade's. Several processes may do this
 * at the same time. Nothing is written to a file that is refused.
 * Failures: EFOREIGN (a database of something else), EFORMAT (no database, or of a newer version), EUNSUPPORTED (the
 * file system cannot do WAL), EACCESS, ENOSPACE, EBUSY, EIO.
 */
LADE_CHECKED int ls_sqlite_migrate(struct ls_sqlite_db *db, lade_err *err);

/* flow_convert.c: what SQL alone cannot do of the step to version 11. */
LADE_CHECKED int ls_sqlite_flow_convert(struct ls_sqlite_db *db, lade_err *err);

#endif
