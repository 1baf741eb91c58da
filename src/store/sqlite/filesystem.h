/* filesystem.h - may a database in WAL mode live here */
#ifndef LADE_SQLITE_FILESYSTEM_H
#define LADE_SQLITE_FILESYSTEM_H

#include <lade/base.h>

/* The name of a kind of file system on which WAL is not safe, by statfs.f_type; NULL for all others. */
const char *ls_sqlite_filesystem_refused(long type);

/*
 * Looks at the directory of the path. 0, EUNAVAILABLE (no such directory), EUNSUPPORTED (network file system), EACCESS
 * (read-only), EINVAL (the path is a directory).
 */
LADE_CHECKED int ls_sqlite_filesystem_check(const char *path, lade_err *err);

#endif
