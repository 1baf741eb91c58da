#include "support/tmpdir.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"

bool ts_tmpdir_make(struct ts_tmpdir *d)
{
    const char *base = getenv("TMPDIR");
    if (!base || !*base || strlen(base) + sizeof("/lade-XXXXXX") > sizeof(d->path))
        base = "/tmp";
    int n = snprintf(d->path, sizeof(d->path), "%s/lade-XXXXXX", base);
    LB_CHECK(n > 0 && (size_t)n < sizeof(d->path));
    if (mkdtemp(d->path))
        return true;
    perror(d->path);
    d->path[0] = 0;
    return false;
}

static int open_folder(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)at;
    if (type == FTW_D || type == FTW_DNR)
        (void)chmod(path, 0700); /* tests of refused access leave such folders */
    return 0;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    if (remove(path) < 0)
        perror(path);
    return 0;
}

void ts_tmpdir_remove(struct ts_tmpdir *d)
{
    if (!d->path[0])
        return;
    (void)nftw(d->path, open_folder, 16, FTW_PHYS);
    (void)nftw(d->path, remove_entry, 16, FTW_PHYS | FTW_DEPTH);
    d->path[0] = 0;
}

char *ts_tmpdir_path(const struct ts_tmpdir *d, const char *name, char *out, size_t size)
{
    int n = snprintf(out, size, "%s/%s", d->path, name);
    LB_CHECK(n > 0 && (size_t)n < size);
    return out;
}
