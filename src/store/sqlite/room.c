#include "store/sqlite/room.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static bool make_name(const char *path, char name[PATH_MAX])
{
    int n = snprintf(name, PATH_MAX, "%s-room", path);
    return n > 0 && n < PATH_MAX;
}

void ls_sqlite_room_keep(const char *path)
{
    char name[PATH_MAX];
    struct stat st;
    if (!make_name(path, name))
        return;
    int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0)
        return;
    bool there = fstat(fd, &st) == 0 && st.st_size >= LS_SQLITE_ROOM_BYTES;
    if (!there && posix_fallocate(fd, 0, LS_SQLITE_ROOM_BYTES) != 0)
        (void)unlink(name); /* half of it would only pretend */
    (void)close(fd);
}

bool ls_sqlite_room_give(const char *path)
{
    char name[PATH_MAX];
    return make_name(path, name) && unlink(name) == 0;
}
