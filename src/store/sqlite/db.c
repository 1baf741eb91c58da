#include "store/sqlite/db.h"

#include <errno.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/ident.h"
#include "queue/store.h"
#include "rt/seam.h"
#include "store/sqlite/checkpoint.h"
#include "store/sqlite/log.h"

#define CHUNK_BYTES (256 << 10) /* the file grows by this much */
#define CACHE_KIB   16384       /* pages of one connection, at most */

static const char *const texts[] = {
#define TEXT(name, text) text,
    LS_SQLITE_STATEMENTS(TEXT)
#undef TEXT
};

/*
 * Called by SQLite while another connection has the lock. Short steps with chance in them, because whoever looks most
 * often wins: nobody is starved for long, and steps grow so that a long wait costs little.
 */
static int wait_for_lock(void *arg, int n)
{
    struct ls_sqlite_db *db = arg;
    int64_t now = lb_clock_mono();
    int64_t deadline = lq_hurried(db->hurry, db->busy_deadline);
    if (now >= deadline)
        return 0;
    if (n == 0)
        db->waits = 0;
    int64_t step = LB_MIN(INT64_C(50000) << db->waits, 5 * LADE_MILLISECOND);
    if (db->waits < 7)
        db->waits++;
    step = step / 2 + (int64_t)lb_rand_below((uint64_t)step);
    lr_sleep_until(LB_MIN(now + step, deadline));
    return 1;
}

int ls_sqlite_db_open(struct ls_sqlite_db *db, const char *path, enum ls_sqlite_role role,
                      lade_err *err)
{
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    if (role == LS_SQLITE_WRITES)
        flags |= SQLITE_OPEN_CREATE;
    db->path = path;
    db->log = NULL;
    int rc = sqlite3_open_v2(path, &db->h, flags, ls_sqlite_log_vfs());
    if (!db->h)
        return lb_fail_nomem(err, "open");
    if (rc != SQLITE_OK) {
        int code = ls_sqlite_db_fail(db, "open", err);
        ls_sqlite_db_close(db);
        return code;
    }
    (void)sqlite3_busy_handler(db->h, wait_for_lock, db);
    return 0;
}

int ls_sqlite_db_tune(struct ls_sqlite_db *db, bool full, lade_err *err)
{
    char sql[256];
    db->full = full;
    (void)snprintf(sql, sizeof(sql),
                   "PRAGMA synchronous = %s; PRAGMA secure_delete = OFF;"
                   "PRAGMA cache_size = -%d; PRAGMA temp_store = MEMORY;"
                   "PRAGMA journal_size_limit = %d",
                   full ? "FULL" : "NORMAL", CACHE_KIB, LS_SQLITE_LOG_LIMIT);
    ls_sqlite_checkpoint_count(db);
    int rc = ls_sqlite_db_exec(db, sql, "open", err);
    int64_t page = 0;
    if (rc == 0)
        rc = ls_sqlite_db_int(db, "PRAGMA page_size", &page, "open", err);
    db->page = (int)page;
    int chunk = CHUNK_BYTES;
    if (rc == 0 &&
        sqlite3_file_control(db->h, "main", SQLITE_FCNTL_CHUNK_SIZE, &chunk) != SQLITE_OK)
        rc = ls_sqlite_db_fail(db, "open", err);
    return rc;
}

int ls_sqlite_db_reserve(struct ls_sqlite_db *db, const char *where, lade_err *err)
{
    sqlite3_stmt *st = ls_sqlite_db_stmt(db, LS_SQLITE_PAGES);
    if (!st || sqlite3_step(st) != SQLITE_ROW) {
        int rc = ls_sqlite_db_fail(db, where, err);
        (void)sqlite3_reset(st);
        return rc;
    }
    sqlite3_int64 bytes = sqlite3_column_int64(st, 0) * db->page;
    (void)sqlite3_reset(st);
    /* A hint in name only: what it answers is whether the blocks are there. */
    if (sqlite3_file_control(db->h, "main", SQLITE_FCNTL_SIZE_HINT, &bytes) != SQLITE_OK)
        return lb_fail(err, LADE_ENOSPACE, where, "no space left for %s; nothing was written",
                       db->path);
    return 0;
}

void ls_sqlite_db_forget(struct ls_sqlite_db *db)
{
    for (size_t i = 0; i < LS_SQLITE_N_STATEMENTS; i++)
        (void)sqlite3_finalize(db->stmt[i]);
    memset(db->stmt, 0, sizeof(db->stmt));
}

void ls_sqlite_db_close(struct ls_sqlite_db *db)
{
    ls_sqlite_db_forget(db);
    if (db->h)
        LB_CHECK(sqlite3_close(db->h) == SQLITE_OK);
    db->h = NULL;
}

int ls_sqlite_db_exec(struct ls_sqlite_db *db, const char *sql, const char *where, lade_err *err)
{
    if (sqlite3_exec(db->h, sql, NULL, NULL, NULL) != SQLITE_OK)
        return ls_sqlite_db_fail(db, where, err);
    return 0;
}

int ls_sqlite_db_int(struct ls_sqlite_db *db, const char *sql, int64_t *out, const char *where,
                     lade_err *err)
{
    sqlite3_stmt *st = NULL;
    int code = 0;
    if (sqlite3_prepare_v2(db->h, sql, -1, &st, NULL) != SQLITE_OK)
        return ls_sqlite_db_fail(db, where, err);
    if (sqlite3_step(st) == SQLITE_ROW)
        *out = sqlite3_column_int64(st, 0);
    else
        code = ls_sqlite_db_fail(db, where, err);
    (void)sqlite3_finalize(st);
    return code;
}

static bool is_word_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static bool is_word(const char *p, size_t n, const char *const *words)
{
    for (; *words; words++) {
        if (strlen(*words) == n && memcmp(p, *words, n) == 0)
            return true;
    }
    return false;
}

void ls_sqlite_db_qualify(struct lb_buf *out, const char *text, const char *schema)
{
    static const char *const before[] = {"FROM", "JOIN", "INTO", "UPDATE", NULL};
    static const char *const never[] = {"SET", "OR", NULL};
    bool table = false; /* the next word is one, unless it is a function */
    for (size_t n; *text; text += n) {
        for (n = 0; is_word_char(text[n]);)
            n++;
        if (n > 0 && table && text[n] != '(' && !is_word(text, n, never)) {
            char *quoted = sqlite3_mprintf("\"%w\".", schema);
            lb_buf_add_str(out, quoted ? quoted : "");
            out->failed = out->failed || !quoted;
            sqlite3_free(quoted);
        }
        if (n > 0)
            table = is_word(text, n, before);
        else if (*text == '\'') /* a text: up to its end */
            n = strcspn(text + 1, "'") + 2;
        else
            table = table && *text == ' ';
        n = n > 0 ? n : 1;
        lb_buf_add(out, text, n);
    }
}

/* On a connection of the user's, for one call. */
static sqlite3_stmt *prepare_qualified(struct ls_sqlite_db *db, enum ls_sqlite_sql which)
{
    struct lb_buf text;
    lb_buf_init(&text);
    ls_sqlite_db_qualify(&text, texts[which], db->schema);
    if (!text.failed)
        (void)sqlite3_prepare_v2(db->h, (const char *)text.p, (int)text.n, &db->stmt[which], NULL);
    lb_buf_fini(&text);
    return db->stmt[which];
}

sqlite3_stmt *ls_sqlite_db_stmt(struct ls_sqlite_db *db, enum ls_sqlite_sql which)
{
    if (!db->stmt[which] && db->schema)
        return prepare_qualified(db, which);
    if (!db->stmt[which])
        (void)sqlite3_prepare_v3(db->h, texts[which], -1, SQLITE_PREPARE_PERSISTENT,
                                 &db->stmt[which], NULL);
    return db->stmt[which];
}

bool ls_sqlite_db_is_busy(const struct ls_sqlite_db *db)
{
    for (sqlite3_stmt *st = NULL; (st = sqlite3_next_stmt(db->h, st));) {
        if (sqlite3_stmt_busy(st))
            return true;
    }
    return false;
}

static int fail_io(struct ls_sqlite_db *db, int code, const char *where, lade_err *err)
{
    int os = sqlite3_system_errno(db->h);
    if (os == ENOSPC || os == EDQUOT || code == SQLITE_IOERR_SHMSIZE)
        return lb_fail(err, LADE_ENOSPACE, where, "no space left for %s; nothing was written",
                       db->path);
    if (os == EACCES || os == EPERM || os == EROFS)
        return lb_fail(err, LADE_EACCESS, where,
                       "%s: the file system does not allow writing it or beside it", db->path);
    return lb_fail(err, LADE_EIO, where, "%s: input/output error (sqlite %d, errno %d)", db->path,
                   code, os);
}

int ls_sqlite_db_fail(struct ls_sqlite_db *db, const char *where, lade_err *err)
{
    int code = sqlite3_extended_errcode(db->h);
    switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return lb_fail(err, LADE_EBUSY, where,
                       "%s: another process holds the write lock for longer than the timeout",
                       db->path);
    case SQLITE_FULL:
        return lb_fail(err, LADE_ENOSPACE, where, "no space left for %s; nothing was written",
                       db->path);
    case SQLITE_NOMEM:
        return lb_fail_nomem(err, where);
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
        return lb_fail(err, LADE_EACCESS, where,
                       "%s cannot be written; check the permissions of the file and its directory",
                       db->path);
    case SQLITE_CANTOPEN:
        return lb_fail(err, LADE_EACCESS, where,
                       "%s cannot be opened or made; check the permissions of its directory",
                       db->path);
    case SQLITE_NOTADB:
        return lb_fail(err, LADE_EFORMAT, where, "%s is not a database; give another path",
                       db->path);
    case SQLITE_IOERR:
        return fail_io(db, code, where, err);
    case SQLITE_CORRUPT:
        return lb_fail(err, LADE_EFORMAT, where, "%s is damaged (sqlite %d); restore a copy",
                       db->path, code);
    default:
        return lb_fail(err, LADE_EFORMAT, where, "%s: %s (sqlite %d)", db->path,
                       sqlite3_errmsg(db->h), code);
    }
}
