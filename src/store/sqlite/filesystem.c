/*
 * filesystem.c - refuse what would damage the file later
 *
 * WAL keeps its index in memory that all processes map. On a network or user-space file system two machines, or a
 * server that restarts, do not see the same memory, and the file is lost. So those are refused at open.
 */
#include "store/sqlite/filesystem.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/base.h"
#include "base/err.h"

/* From linux/magic.h, which does not have all of them. */
static const struct {
    unsigned type;
    const char *name;
} refused[] = {
    {0x6969, "NFS"},      {0x517b, "SMB"},       {0xff534d42, "CIFS"},   {0xfe534d42, "SMB2"},
    {0x01021997, "9p"},   {0x65735546, "FUSE"},  {0x564c, "NCP"},        {0x5346414f, "AFS"},
    {0x73757245, "Coda"}, {0x00c36400, "Ceph"},  {0x0bd00bd0, "Lustre"}, {0x47504653, "GPFS"},
    {0x01161970, "GFS2"}, {0x7461636f, "OCFS2"},
};

const char *ls_sqlite_filesystem_refused(long type)
{
    for (size_t i = 0; i < LB_ARRAY_LEN(refused); i++) {
        if ((unsigned)type == refused[i].type)
            return refused[i].name;
    }
    return NULL;
}

int ls_sqlite_filesystem_check(const char *path, lade_err *err)
{
    char dir[PATH_MAX];
    struct stat st;
    struct statfs fs;
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) : 0;
    if (strlen(path) >= sizeof(dir) - 16)
        return lb_fail(err, LADE_EINVAL, "open", "the path is longer than %zu bytes",
                       sizeof(dir) - 17);
    (void)snprintf(dir, sizeof(dir), "%.*s", n > 0 ? (int)n : 1, slash ? path : ".");
    if (statfs(dir, &fs) < 0) {
        int errnum = errno;
        if (errnum == ENOENT || errnum == ENOTDIR)
            return lb_fail(err, LADE_EUNAVAILABLE, "open",
                           "directory %s does not exist; make it first", dir);
        return lb_fail_errno(err, errnum, "open", dir);
    }
    const char *kind = ls_sqlite_filesystem_refused((long)fs.f_type);
    if (kind)
        return lb_fail(
            err, LADE_EUNSUPPORTED, "open",
            "%s is on a %s file system, where SQLite files get damaged; use a local disk", path,
            kind);
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return lb_fail(err, LADE_EINVAL, "open", "%s is a directory; give a file", path);
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return lb_fail(err, LADE_EINVAL, "open",
                       "%s is a %s, nothing that jobs can be kept in; give a file", path,
                       S_ISFIFO(st.st_mode)   ? "pipe"
                       : S_ISSOCK(st.st_mode) ? "socket"
                                              : "device");
    if (access(dir, W_OK) < 0) {
        int errnum = errno;
        return lb_fail(err, LADE_EACCESS, "open",
                       "directory %s cannot be written (%s); SQLite keeps its log there", dir,
                       errnum == EROFS ? "read-only file system" : "permissions");
    }
    return 0;
}
