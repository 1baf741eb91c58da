#include "support/rig_disk.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "support/rig.h"

void ts_disk_make(struct ts_disk *d, const struct ts_rig *r)
{
    char control[128];
    const char *options = getenv("ASAN_OPTIONS");
    (void)ts_rig_path(r, "disk", d->folder, sizeof(d->folder));
    (void)ts_rig_path(r, "disk.page", control, sizeof(control));
    LB_CHECK(mkdir(d->folder, 0700) == 0);
    int fd = open(control, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    LB_CHECK(fd >= 0 && ftruncate(fd, sizeof(*d->shared)) == 0);
    d->shared = mmap(NULL, sizeof(*d->shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    LB_CHECK(d->shared != MAP_FAILED);
    (void)close(fd);
    (void)snprintf(d->shared->folder, sizeof(d->shared->folder), "%s", d->folder);
    (void)snprintf(d->url, sizeof(d->url), "sqlite:%s/jobs.db", d->folder);
    (void)snprintf(d->preload, sizeof(d->preload), "LD_PRELOAD=%s", TS_DISK_SHIM);
    (void)snprintf(d->control, sizeof(d->control), "%s=%s", TS_DISK_ENV, control);
    /* the sanitizer wants to be the first library; this one before it only hands calls on */
    (void)snprintf(d->asan, sizeof(d->asan), "ASAN_OPTIONS=%s:verify_asan_link_order=0",
                   options ? options : "");
}

void ts_disk_free(struct ts_disk *d)
{
    if (d->shared)
        (void)munmap(d->shared, sizeof(*d->shared));
    d->shared = NULL;
}

int64_t ts_disk_used(const struct ts_disk *d)
{
    int64_t sum = 0;
    DIR *dir = opendir(d->folder);
    for (const struct dirent *e = dir ? readdir(dir) : NULL; e; e = readdir(dir)) {
        struct stat st;
        if (fstatat(dirfd(dir), e->d_name, &st, 0) == 0 && S_ISREG(st.st_mode))
            sum += st.st_size;
    }
    if (dir)
        (void)closedir(dir);
    return sum;
}
