/*
 * disk_test.c - full and failing disks, by a VFS that refuses
 *
 * The VFS below stands between SQLite and the real one. It can hold all files of the test's directory to a quota, as a
 * small file system would (blocks in use, so that deleting and truncating make room), and fail the k-th write or sync.
 */
#include <dirent.h>
#include <sys/stat.h>

#include "support/sqlite_kit.h"

static struct {
    sqlite3_vfs vfs;
    sqlite3_vfs *real;
    size_t quota;   /* bytes of all files in the directory; 0 = no limit */
    long countdown; /* writes and syncs until one fails; 0 = none does */
    bool no_space;  /* it fails as for lack of space, not as a broken disk */
    long seen;      /* writes and syncs so far */
} disk;

struct file {
    sqlite3_file base;
    sqlite3_file *real; /* behind this struct */
};

static sqlite3_io_methods methods; /* those of the real VFS, with ours in front */

static sqlite3_file *real_of(sqlite3_file *f)
{
    return ((struct file *)(void *)f)->real;
}

static size_t measure_directory(void)
{
    size_t used = 0;
    DIR *d = opendir(sk.dir.path);
    struct dirent *e;
    char name[512];
    while (d && (e = readdir(d))) { /* NOLINT(concurrency-mt-unsafe): one thread has this stream */
        struct stat st;
        (void)snprintf(name, sizeof(name), "%s/%s", sk.dir.path, e->d_name);
        if (stat(name, &st) == 0 && S_ISREG(st.st_mode))
            used += (size_t)st.st_size;
    }
    if (d)
        (void)closedir(d);
    return used;
}

/* Whether a file may grow by that much. */
static bool has_room(size_t growth)
{
    return disk.quota == 0 || growth == 0 || measure_directory() + growth <= disk.quota;
}

static bool is_failing_now(void)
{
    disk.seen++;
    return disk.countdown > 0 && --disk.countdown == 0;
}

static int do_close(sqlite3_file *f)
{
    return real_of(f)->pMethods->xClose(real_of(f));
}

static int do_read(sqlite3_file *f, void *to, int n, sqlite3_int64 at)
{
    return real_of(f)->pMethods->xRead(real_of(f), to, n, at);
}

static int do_write(sqlite3_file *f, const void *from, int n, sqlite3_int64 at)
{
    sqlite3_int64 size = 0;
    if (is_failing_now()) { /* half of it is there, as after a real failure */
        (void)real_of(f)->pMethods->xWrite(real_of(f), from, n / 2, at);
        return disk.no_space ? SQLITE_FULL : SQLITE_IOERR_WRITE;
    }
    int rc = real_of(f)->pMethods->xFileSize(real_of(f), &size);
    if (rc == SQLITE_OK && at + n > size && !has_room((size_t)(at + n - size)))
        return SQLITE_FULL;
    return rc != SQLITE_OK ? rc : real_of(f)->pMethods->xWrite(real_of(f), from, n, at);
}

static int do_truncate(sqlite3_file *f, sqlite3_int64 size)
{
    return real_of(f)->pMethods->xTruncate(real_of(f), size);
}

static int do_sync(sqlite3_file *f, int flags)
{
    if (is_failing_now())
        return SQLITE_IOERR_FSYNC;
    return real_of(f)->pMethods->xSync(real_of(f), flags);
}

static int do_size(sqlite3_file *f, sqlite3_int64 *size)
{
    return real_of(f)->pMethods->xFileSize(real_of(f), size);
}

static int do_lock(sqlite3_file *f, int level)
{
    return real_of(f)->pMethods->xLock(real_of(f), level);
}

static int do_unlock(sqlite3_file *f, int level)
{
    return real_of(f)->pMethods->xUnlock(real_of(f), level);
}

static int do_check_lock(sqlite3_file *f, int *out)
{
    return real_of(f)->pMethods->xCheckReservedLock(real_of(f), out);
}

static int do_control(sqlite3_file *f, int op, void *arg)
{
    sqlite3_int64 size = 0;
    if (op == SQLITE_FCNTL_SIZE_HINT && real_of(f)->pMethods->xFileSize(real_of(f), &size) == 0 &&
        *(sqlite3_int64 *)arg > size && !has_room(256 << 10)) /* it grows by chunks */
        return SQLITE_FULL;
    return real_of(f)->pMethods->xFileControl(real_of(f), op, arg);
}

static int do_sector(sqlite3_file *f)
{
    return real_of(f)->pMethods->xSectorSize(real_of(f));
}

static int do_traits(sqlite3_file *f)
{
    return real_of(f)->pMethods->xDeviceCharacteristics(real_of(f));
}

static int do_shm_map(sqlite3_file *f, int region, int size, int extend, void volatile **out)
{
    if (extend && sk_size("-shm") < (size_t)(region + 1) * (size_t)size && !has_room((size_t)size))
        return SQLITE_IOERR_SHMSIZE;
    return real_of(f)->pMethods->xShmMap(real_of(f), region, size, extend, out);
}

static int do_shm_lock(sqlite3_file *f, int at, int n, int flags)
{
    return real_of(f)->pMethods->xShmLock(real_of(f), at, n, flags);
}

static void do_shm_barrier(sqlite3_file *f)
{
    real_of(f)->pMethods->xShmBarrier(real_of(f));
}

static int do_shm_unmap(sqlite3_file *f, int del)
{
    return real_of(f)->pMethods->xShmUnmap(real_of(f), del);
}

static int do_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *f, int flags, int *out)
{
    struct file *mine = (struct file *)(void *)f;
    (void)vfs;
    mine->real = (sqlite3_file *)(void *)(mine + 1);
    mine->base.pMethods = NULL;
    int rc = disk.real->xOpen(disk.real, name, mine->real, flags, out);
    if (rc == SQLITE_OK)
        mine->base.pMethods = &methods;
    return rc;
}

static int install(void **state)
{
    (void)state;
    disk.real = sqlite3_vfs_find(NULL);
    disk.vfs = *disk.real;
    disk.vfs.zName = "refusing";
    disk.vfs.pNext = NULL;
    disk.vfs.szOsFile = (int)sizeof(struct file) + disk.real->szOsFile;
    disk.vfs.xOpen = do_open;
    methods = (sqlite3_io_methods){.iVersion = 2,
                                   .xClose = do_close,
                                   .xRead = do_read,
                                   .xWrite = do_write,
                                   .xTruncate = do_truncate,
                                   .xSync = do_sync,
                                   .xFileSize = do_size,
                                   .xLock = do_lock,
                                   .xUnlock = do_unlock,
                                   .xCheckReservedLock = do_check_lock,
                                   .xFileControl = do_control,
                                   .xSectorSize = do_sector,
                                   .xDeviceCharacteristics = do_traits,
                                   .xShmMap = do_shm_map,
                                   .xShmLock = do_shm_lock,
                                   .xShmBarrier = do_shm_barrier,
                                   .xShmUnmap = do_shm_unmap};
    return sqlite3_vfs_register(&disk.vfs, 1) == SQLITE_OK ? 0 : -1;
}

static int uninstall(void **state)
{
    (void)state;
    return sqlite3_vfs_unregister(&disk.vfs) == SQLITE_OK ? 0 : -1;
}

static int setup(void **state)
{
    disk.quota = 0;
    disk.countdown = disk.seen = 0;
    return sk_setup(state);
}

#define DISK_TEST(f) cmocka_unit_test_setup_teardown(f, setup, sk_teardown)

/* Puts batches until one is refused; how many jobs were acknowledged. */
static uint64_t fill(struct lq_store *s, const char *prefix)
{
    char name[32];
    uint64_t n = 0;
    int rc = 0;
    for (int i = 0; rc == 0 && i < 100000; i++) {
        (void)snprintf(name, sizeof(name), "%s%d-", prefix, i);
        rc = sk_try_put(s, name, 100);
        n += rc == 0 ? 100 : 0;
    }
    assert_int_equal(rc, -LADE_ENOSPACE);
    assert_non_null(strstr(sk.err.text, "no space left"));
    return n;
}

/* C-050: refused while full, nothing acknowledged lost, works again at once with the same handle. */
static void a_full_disk_refuses_puts_and_works_again_when_there_is_space(void **state)
{
    (void)state;
    struct lq_store *s = sk_open();
    disk.quota = 6 << 20;
    uint64_t n = fill(s, "a");
    assert_true(n > 1000);
    for (int i = 0; i < 20; i++)
        assert_int_equal(sk_try_put(s, "again", 100), -LADE_ENOSPACE);
    assert_int_equal(sk_count(s, LADE_STATE_READY), n);
    disk.quota = 0;
    sk_put(s, "again", 100);
    assert_int_equal(sk_try_join(s, "w", 60000), 0);
    assert_int_equal(sk_try_work(s, "w", 100, LQ_TO_COMPLETED), 100);
    assert_int_equal(sk_count(s, LADE_STATE_READY), n);
    assert_int_equal(sk_check(s), 0);
    lq_store_close(s);
}

/* C-050, C-051: what is there can be worked off on the full disk, and what that frees takes new jobs. */
static void a_full_store_can_be_worked_off_where_it_is(void **state)
{
    (void)state;
    struct lq_store *s = sk_open();
    assert_int_equal(sk_try_join(s, "w", 60000), 0);
    disk.quota = 6 << 20;
    uint64_t n = fill(s, "a");
    for (uint64_t done = 0; done < n; done += 100) {
        int got = sk_try_work(s, "w", 100, LQ_TO_GONE);
        if (got != 100)
            fail_msg("after %llu of %llu: %d %s", (unsigned long long)done, (unsigned long long)n,
                     got, sk.err.text);
    }
    assert_int_equal(sk_count(s, LADE_STATE_READY), 0);
    sk_put(s, "new", 1000);
    assert_int_equal(sk_check(s), 0);
    lq_store_close(s);
}

/* C-051: with no byte left at all the store opens, lists and deletes; a worker may go on. */
static void a_store_opens_on_a_full_disk_to_make_room(void **state)
{
    (void)state;
    struct lq_store *s = sk_open();
    assert_int_equal(sk_try_join(s, "w", 60000), 0);
    sk_put(s, "dead", 1000);
    assert_int_equal(sk_try_work(s, "w", 1000, LQ_TO_DEAD), 1000);
    disk.quota = 6 << 20;
    uint64_t n = fill(s, "a");
    lq_store_close(s);
    disk.quota = measure_directory(); /* others took the rest */

    s = sk_open();
    assert_int_equal(sk_count(s, LADE_STATE_READY), n);
    assert_int_equal(sk_count(s, LADE_STATE_DEAD), 1000);
    struct lq_row_vec rows = {0};
    lade_cursor cursor = {0};
    lb_arena_init(&rows.arena);
    assert_int_equal(s->ops->list(s, "q", LADE_STATE_DEAD, &cursor, 100, &rows, &sk.err), 0);
    assert_int_equal(rows.n, 100);
    lb_arena_fini(&rows.arena);
    size_t purged = 0;
    int rc = s->ops->purge(s, "q", LADE_STATE_DEAD, 1000, &purged, &sk.err);
    if (rc != 0)
        fail_msg("purge: %s", sk.err.text);
    assert_int_equal(purged, 1000);
    assert_int_equal(sk_try_join(s, "w2", 60000), 0);
    assert_int_equal(sk_try_work(s, "w2", 100, LQ_TO_GONE), 100);
    assert_int_equal(sk_count(s, LADE_STATE_READY), n - 100);
    assert_int_equal(sk_check(s), 0);
    lq_store_close(s);
}

static bool is_there(struct lq_store *s, const char *id)
{
    struct lq_row_vec rows = {0};
    lb_arena_init(&rows.arena);
    int rc = s->ops->get(s, "q", lb_slice_str(id), &rows, &sk.err);
    lb_arena_fini(&rows.arena);
    assert_true(rc == 0 || rc == LADE_NOT_FOUND);
    return rc == 0;
}

/* One run of C-052: the k-th write or sync fails once. False when none did. */
static bool survive(long k, bool no_space)
{
    enum { N = 4 };

    int acknowledged[N];
    char prefix[16], id[32];
    struct lq_store *s = sk_open();
    disk.no_space = no_space;
    disk.countdown = k;
    for (int i = 0; i < N; i++) {
        (void)snprintf(prefix, sizeof(prefix), "%ld-%d-", k, i);
        acknowledged[i] = sk_try_put(s, prefix, 30);
        assert_true(acknowledged[i] == 0 || acknowledged[i] == -LADE_ENOSPACE ||
                    acknowledged[i] == -LADE_EIO);
    }
    bool reached = disk.countdown == 0;
    disk.countdown = 0;
    (void)snprintf(prefix, sizeof(prefix), "%ld-after-", k);
    sk_put(s, prefix, 1); /* one failure, and it goes on */
    lq_store_close(s);
    s = sk_open();
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < 30; j += 29) {
            (void)snprintf(id, sizeof(id), "%ld-%d-%d", k, i, j);
            assert_int_equal(is_there(s, id), acknowledged[i] == 0);
        }
    }
    assert_int_equal(sk_check(s), 0);
    lq_store_close(s);
    return reached;
}

/* C-052: acknowledged = present, refused = absent, whichever write or sync fails. */
static void whichever_write_fails_acknowledged_is_present_and_refused_is_absent(void **state)
{
    (void)state;
    (void)snprintf(sk.url, sizeof(sk.url), "sqlite:%s?synchronous=full", sk.path);
    lq_store_close(sk_open());
    long k = 1;
    for (; survive(k, k % 3 == 0);
         k++) /* some are commits, some syncs, one the header of the log */
        assert_true(k < 1000);
    assert_true(k > 8); /* of four commits */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        DISK_TEST(a_full_disk_refuses_puts_and_works_again_when_there_is_space),
        DISK_TEST(a_full_store_can_be_worked_off_where_it_is),
        DISK_TEST(a_store_opens_on_a_full_disk_to_make_room),
        DISK_TEST(whichever_write_fails_acknowledged_is_present_and_refused_is_absent),
    };
    return cmocka_run_group_tests(tests, install, uninstall);
}
