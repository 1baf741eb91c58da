/*
 * rig_disk_shim.c - preloaded into processes of a rig: writing calls that obey a page shared with the test
 *
 * Only calls on files of the folder are looked at; all others pass. Which file a descriptor is, /proc tells.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/rig_disk.h"

static struct ts_disk_page *page;

__attribute__((constructor)) static void map_page(void)
{
    const char *path = getenv(TS_DISK_ENV);
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    void *p =
        fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED) {
        static const char text[] = "rig_disk: no control page\n";
        (void)!write(2, text, sizeof(text) - 1);
        _exit(99);
    }
    page = p;
    (void)close(fd);
}

static void *next(const char *name)
{
    void *p = dlsym(RTLD_NEXT, name);
    if (!p)
        abort();
    return p;
}

static bool is_ours(int fd)
{
    char link[32], path[512];
    if (!page || fd <= 2)
        return false;
    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof(path) - 1);
    size_t len = strlen(page->folder);
    return n > (ssize_t)len && memcmp(path, page->folder, len) == 0 && path[len] == '/';
}

static int64_t used_bytes(void)
{
    int64_t sum = 0;
    DIR *d = opendir(page->folder);
    for (const struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
        struct stat st;
        if (fstatat(dirfd(d), e->d_name, &st, 0) == 0 && S_ISREG(st.st_mode))
            sum += st.st_size;
    }
    if (d)
        (void)closedir(d);
    return sum;
}

/* True when the file may become `size` bytes long. */
static bool may_grow_to(int fd, int64_t size)
{
    struct stat st;
    if (page->limit == 0 || fstat(fd, &st) < 0 || size <= st.st_size)
        return true;
    return used_bytes() - st.st_size + size <= page->limit;
}

static bool refuse(int error)
{
    (void)__atomic_add_fetch(&page->n_refused, 1, __ATOMIC_RELAXED);
    errno = error;
    return true;
}

/* True when this call must fail; errno is set. */
static bool is_write_refused(int fd, int64_t size_after)
{
    if (!is_ours(fd))
        return false;
    int n = __atomic_add_fetch(&page->n_writes, 1, __ATOMIC_RELAXED);
    if (page->fail_write != 0 && n == page->fail_write)
        return refuse(page->error);
    return may_grow_to(fd, size_after) ? false : refuse(ENOSPC);
}

static bool is_sync_refused(int fd)
{
    if (!is_ours(fd))
        return false;
    int n = __atomic_add_fetch(&page->n_syncs, 1, __ATOMIC_RELAXED);
    return page->fail_sync != 0 && n == page->fail_sync && refuse(page->error);
}

#define VISIBLE __attribute__((visibility("default")))

/* The prototypes are the C library's; its headers may declare them under other names. */
/* NOLINTBEGIN(readability-inconsistent-declaration-parameter-name) */
VISIBLE ssize_t pwrite64(int fd, const void *data, size_t n, off64_t at)
{
    ssize_t (*real)(int, const void *, size_t, off64_t) = next("pwrite64");
    return is_write_refused(fd, at + (int64_t)n) ? -1 : real(fd, data, n, at);
}

VISIBLE ssize_t pwrite(int fd, const void *data, size_t n, off_t at)
{
    return pwrite64(fd, data, n, at);
}

VISIBLE ssize_t write(int fd, const void *data, size_t n)
{
    ssize_t (*real)(int, const void *, size_t) = next("write");
    off_t at = is_ours(fd) ? lseek(fd, 0, SEEK_CUR) : 0;
    return is_write_refused(fd, at + (int64_t)n) ? -1 : real(fd, data, n);
}

VISIBLE int ftruncate64(int fd, off64_t size)
{
    int (*real)(int, off64_t) = next("ftruncate64");
    return is_write_refused(fd, size) ? -1 : real(fd, size);
}

VISIBLE int ftruncate(int fd, off_t size)
{
    return ftruncate64(fd, size);
}

VISIBLE int posix_fallocate64(int fd, off64_t at, off64_t n)
{
    int (*real)(int, off64_t, off64_t) = next("posix_fallocate64");
    return is_write_refused(fd, at + n) ? errno : real(fd, at, n);
}

VISIBLE int posix_fallocate(int fd, off_t at, off_t n)
{
    return posix_fallocate64(fd, at, n);
}

VISIBLE int fallocate64(int fd, int mode, off64_t at, off64_t n)
{
    int (*real)(int, int, off64_t, off64_t) = next("fallocate64");
    return is_write_refused(fd, at + n) ? -1 : real(fd, mode, at, n);
}

VISIBLE int fallocate(int fd, int mode, off_t at, off_t n)
{
    return fallocate64(fd, mode, at, n);
}

VISIBLE int fsync(int fd)
{
    int (*real)(int) = next("fsync");
    return is_sync_refused(fd) ? -1 : real(fd);
}

VISIBLE int fdatasync(int fd)
{
    int (*real)(int) = next("fdatasync");
    return is_sync_refused(fd) ? -1 : real(fd);
}

/* NOLINTEND(readability-inconsistent-declaration-parameter-name) */
