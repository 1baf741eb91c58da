/*
 * rig_disk.h - a disk that is full, or whose k-th write or sync fails, for processes of a rig
 *
 *     struct ts_disk d;
 *     ts_disk_make(&d, &rig);                           the disk is the folder RIG/disk
 *     ts_rig_producer(&rig, &p, &(struct ts_producer_args){.url = d.url, .env = {d.preload, d.control, d.asan}});
 *     d.shared->limit = ts_disk_used(&d);               full from now on
 *
 * A library preloaded into the process stands between it and the C library's writing calls (rig_disk.c): those on files
 * of the folder obey the shared page below. No privileges, no real file system. "Full" is a quota on the sizes of the
 * folder's files together, so deleting and truncating give room back.
 *
 * Thread safety: the shared fields are plain; set them while it does not matter at which call they take effect.
 */
#ifndef LADE_TESTS_SUPPORT_RIG_DISK_H
#define LADE_TESTS_SUPPORT_RIG_DISK_H

#include <stdint.h>

#define TS_DISK_ENV "TS_DISK_CONTROL"

/* One page, mapped by the test and by every process. */
struct ts_disk_page {
    char folder[128];
    volatile int64_t limit;      /* bytes of all files; 0 = no limit */
    volatile int32_t fail_write; /* the n-th write, truncate or allocation fails, once; 0 = none */
    volatile int32_t fail_sync;  /* the n-th fsync or fdatasync fails, once; 0 = none */
    volatile int32_t error;      /* with this errno */
    volatile int32_t n_writes, n_syncs; /* atomic: calls so far */
    volatile int32_t n_refused;         /* atomic: calls that failed by limit or number */
};

struct ts_rig;

struct ts_disk {
    char folder[128];
    char url[200]; /* sqlite:FOLDER/jobs.db */
    char preload[256], control[256],
        asan[128]; /* NAME=VALUE for the processes that shall see this disk */
    struct ts_disk_page *shared;
};

/* Aborts when it cannot. */
void ts_disk_make(struct ts_disk *d, const struct ts_rig *r);
void ts_disk_free(struct ts_disk *d);
/* Bytes of the folder's files together. */
int64_t ts_disk_used(const struct ts_disk *d);

#endif
