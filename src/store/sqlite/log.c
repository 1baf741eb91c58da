#include "store/sqlite/log.h"

#include <string.h>

#include "base/base.h"
#include "base/mem.h"
#include "rt/seam.h"

#define VFS_MAX  4 /* default VFSs that one process may have had */
#define LOG_HEAD 32
#define HEAD     24
#define CAPACITY ((size_t)LS_SQLITE_LOG_BYTES)

/* SQLite passes the VFS it knows; the methods that are not ours are the real one's and find its pAppData in it. */
struct layer {
    sqlite3_vfs vfs;
    sqlite3_vfs *real;
    char name[16];
};

static struct lr_mutex layers_lock = LR_MUTEX_INIT;
static struct layer layers[VFS_MAX]; /* guarded by: layers_lock; never changed once registered */
static size_t n_layers;

/* The log; the file of the real VFS lies behind it. */
struct ls_sqlite_log {
    sqlite3_file base;
    sqlite3_file *real;
    sqlite3_file *db; /* the database it belongs to */
    uint8_t *bytes;   /* gathered; NULL until the first transaction */
    size_t n;
    int page;         /* bytes of one */
    sqlite3_int64 at; /* where in the log they go */
    bool gathers;
    bool last;   /* the newest frame is the last of a commit */
    bool strict; /* no commit without blocks for it */
};

static struct ls_sqlite_log *log_of(sqlite3_file *f)
{
    return (struct ls_sqlite_log *)(void *)f;
}

/* Writes what is gathered. Should that fail, it is dropped: SQLite rolls back. */
static int flush(struct ls_sqlite_log *l)
{
    size_t n = l->n;
    l->n = 0;
    return n == 0 ? SQLITE_OK : l->real->pMethods->xWrite(l->real, l->bytes, (int)n, l->at);
}

/* Blocks in the file for that many pages. A hint in name only: what it answers is whether they are there. */
static int reserve(struct ls_sqlite_log *l, uint32_t pages)
{
    sqlite3_int64 bytes = (sqlite3_int64)pages * l->page;
    int rc = l->db->pMethods->xFileControl(l->db, SQLITE_FCNTL_SIZE_HINT, &bytes);
    return rc != SQLITE_OK && l->strict ? SQLITE_FULL : SQLITE_OK;
}

static uint32_t read_u32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* Makes the frame at `at` the next to be gathered. */
static int begin_frame(struct ls_sqlite_log *l, const uint8_t *head, sqlite3_int64 at)
{
    uint32_t pages = read_u32(head + 4); /* of the file after the commit; 0 but in its last frame */
    bool follows =
        l->n > 0 && l->at + (sqlite3_int64)l->n == at && l->n + HEAD + (size_t)l->page <= CAPACITY;
    int rc = follows ? SQLITE_OK : flush(l);
    l->last = pages > 0;
    if (rc == SQLITE_OK && l->last)
        rc = reserve(l, pages);
    if (l->n == 0)
        l->at = at;
    return rc;
}

static int do_write(sqlite3_file *f, const void *p, int n, sqlite3_int64 at)
{
    struct ls_sqlite_log *l = log_of(f);
    sqlite3_int64 in_frame = at < LOG_HEAD ? -1 : (at - LOG_HEAD) % (HEAD + l->page);
    bool head = n == HEAD && in_frame == 0;
    bool page = n == l->page && in_frame == HEAD && l->n > 0 && l->at + (sqlite3_int64)l->n == at;
    int rc = SQLITE_OK;
    if (!l->gathers || !(head || page)) {
        rc = flush(l);
        return rc == SQLITE_OK ? l->real->pMethods->xWrite(l->real, p, n, at) : rc;
    }
    if (head)
        rc = begin_frame(l, p, at);
    if (rc != SQLITE_OK)
        return rc;
    memcpy(l->bytes + l->n, p, (size_t)n);
    l->n += (size_t)n;
    return page && l->last ? flush(l) : SQLITE_OK;
}

static int do_read(sqlite3_file *f, void *p, int n, sqlite3_int64 at)
{
    struct ls_sqlite_log *l = log_of(f);
    bool gathered = l->n > 0 && at < l->at + (sqlite3_int64)l->n && at + n > l->at;
    int rc = gathered ? flush(l) : SQLITE_OK;
    return rc == SQLITE_OK ? l->real->pMethods->xRead(l->real, p, n, at) : rc;
}

static int do_close(sqlite3_file *f)
{
    struct ls_sqlite_log *l = log_of(f);
    lb_free(l->bytes);
    l->bytes = NULL;
    return l->real->pMethods->xClose(l->real);
}

static int do_truncate(sqlite3_file *f, sqlite3_int64 size)
{
    int rc = flush(log_of(f));
    return rc == SQLITE_OK ? log_of(f)->real->pMethods->xTruncate(log_of(f)->real, size) : rc;
}

static int do_sync(sqlite3_file *f, int flags)
{
    int rc = flush(log_of(f));
    return rc == SQLITE_OK ? log_of(f)->real->pMethods->xSync(log_of(f)->real, flags) : rc;
}

static int do_file_size(sqlite3_file *f, sqlite3_int64 *size)
{
    int rc = flush(log_of(f));
    return rc == SQLITE_OK ? log_of(f)->real->pMethods->xFileSize(log_of(f)->real, size) : rc;
}

static int do_lock(sqlite3_file *f, int level)
{
    return log_of(f)->real->pMethods->xLock(log_of(f)->real, level);
}

static int do_unlock(sqlite3_file *f, int level)
{
    return log_of(f)->real->pMethods->xUnlock(log_of(f)->real, level);
}

static int do_check_lock(sqlite3_file *f, int *held)
{
    return log_of(f)->real->pMethods->xCheckReservedLock(log_of(f)->real, held);
}

static int do_file_control(sqlite3_file *f, int op, void *arg)
{
    return log_of(f)->real->pMethods->xFileControl(log_of(f)->real, op, arg);
}

static int do_sector_size(sqlite3_file *f)
{
    return log_of(f)->real->pMethods->xSectorSize(log_of(f)->real);
}

static int do_characteristics(sqlite3_file *f)
{
    return log_of(f)->real->pMethods->xDeviceCharacteristics(log_of(f)->real);
}

/* Version 1: a log is neither mapped nor does it have shared memory. */
static const sqlite3_io_methods methods = {
    .iVersion = 1,
    .xClose = do_close,
    .xRead = do_read,
    .xWrite = do_write,
    .xTruncate = do_truncate,
    .xSync = do_sync,
    .xFileSize = do_file_size,
    .xLock = do_lock,
    .xUnlock = do_unlock,
    .xCheckReservedLock = do_check_lock,
    .xFileControl = do_file_control,
    .xSectorSize = do_sector_size,
    .xDeviceCharacteristics = do_characteristics,
};

/* Logs get their layer; every other file is the real VFS's own. */
static int do_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *f, int flags, int *out)
{
    sqlite3_vfs *real = ((struct layer *)(void *)vfs)->real;
    if (!(flags & SQLITE_OPEN_WAL))
        return real->xOpen(real, name, f, flags, out);
    struct ls_sqlite_log *l = log_of(f);
    *l = (struct ls_sqlite_log){.real = (sqlite3_file *)(void *)(l + 1),
                                .db = sqlite3_database_file_object(name)};
    int rc = real->xOpen(real, name, l->real, flags, out);
    /* A file without methods is one that is not open. */
    l->base.pMethods = l->real->pMethods ? &methods : NULL;
    return rc;
}

static const char *add_layer(sqlite3_vfs *real)
{
    struct layer *y = &layers[n_layers];
    y->vfs = *real;
    y->real = real;
    (void)snprintf(y->name, sizeof(y->name), "lade-log-%zu", n_layers);
    y->vfs.zName = y->name;
    y->vfs.pNext = NULL;
    y->vfs.szOsFile = (int)sizeof(struct ls_sqlite_log) + real->szOsFile;
    y->vfs.xOpen = do_open;
    if (sqlite3_vfs_register(&y->vfs, 0) != SQLITE_OK)
        return NULL;
    n_layers++;
    return y->name;
}

const char *ls_sqlite_log_vfs(void)
{
    const char *name = NULL;
    sqlite3_vfs *real = sqlite3_vfs_find(NULL);
    lr_mutex_lock(&layers_lock);
    for (size_t i = 0; i < n_layers && !name; i++)
        name = layers[i].real == real ? layers[i].name : NULL;
    if (!name && real && n_layers < VFS_MAX)
        name = add_layer(real);
    lr_mutex_unlock(&layers_lock);
    return name;
}

/* The connection's log, when it has one and it is of this VFS. */
static struct ls_sqlite_log *find_log(struct ls_sqlite_db *db)
{
    sqlite3_file *f = NULL;
    int rc = sqlite3_file_control(db->h, "main", SQLITE_FCNTL_JOURNAL_POINTER, &f);
    return rc == SQLITE_OK && f && f->pMethods == &methods ? log_of(f) : NULL;
}

void ls_sqlite_log_begin(struct ls_sqlite_db *db)
{
    if (!db->log)
        db->log = find_log(db);
    struct ls_sqlite_log *l = db->log;
    if (!l)
        return;
    if (!l->bytes)
        l->bytes = lb_malloc(CAPACITY);
    l->n = 0;
    l->strict = false;
    l->page = db->page;
    l->gathers = l->bytes && l->db && l->page > 0;
}

bool ls_sqlite_log_commits(struct ls_sqlite_db *db, bool strict)
{
    if (!db->log || !db->log->gathers)
        return false;
    db->log->strict = strict;
    return true;
}

void ls_sqlite_log_end(struct ls_sqlite_db *db)
{
    if (db->log) {
        db->log->n = 0;
        db->log->gathers = false;
    }
}
