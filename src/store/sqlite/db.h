/*
 * db.h - one connection to the file: settings, statements that stay prepared, errors in lade's words
 *
 * Thread safety: none; whoever uses a connection holds the lock that goes with it.
 */
#ifndef LADE_SQLITE_DB_H
#define LADE_SQLITE_DB_H

#include <lade/base.h>
#include <sqlite3.h>

#include "base/buf.h"
#include "base/slice.h"
#include "store/sqlite/sql.h"

/*
 * Bytes of a page of a new file (ADR 0043). A commit of one job changes some five pages whatever their size, and goes to the disk
 * twice; batches want larger ones. A file keeps the size that it was made with.
 */
#define LS_SQLITE_PAGE 2048

enum ls_sqlite_role {
    LS_SQLITE_WRITES, /* puts, takes, settles; makes the file */
    LS_SQLITE_BEATS,  /* renew only */
    LS_SQLITE_READS   /* never writes */
};

struct ls_sqlite_log;

struct ls_sqlite_db {
    sqlite3 *h;
    struct ls_sqlite_log *log; /* log.c: of this connection, once it has written; NULL: not ours */
    sqlite3_stmt *stmt[LS_SQLITE_N_STATEMENTS];
    const char *path;      /* borrowed */
    int64_t busy_deadline; /* lb_clock_mono; how long to wait for another writer */
    unsigned waits;        /* in the wait that goes on */
    const int64_t *hurry;  /* an earlier deadline; see store.h. NULL = none */
    int log_pages;         /* atomic: of the log at the last commit here; checkpoint.h */
    bool full;             /* synchronous=full */
    int page;              /* bytes of one, in this file; from tune on */
    const char
        *schema; /* the name of the file on a connection that is the user's; NULL: ours, "main" */
};

/* On failure nothing is left open. `path` is borrowed for the connection's life. */
LADE_CHECKED int ls_sqlite_db_open(struct ls_sqlite_db *db, const char *path,
                                   enum ls_sqlite_role role, lade_err *err);
/* WAL and what goes with it, once the file is known to be lade's or empty. */
LADE_CHECKED int ls_sqlite_db_tune(struct ls_sqlite_db *db, bool full, lade_err *err);
/* Finalizes the statements; the connection stays. */
void ls_sqlite_db_forget(struct ls_sqlite_db *db);
/* NULL-safe for a connection that was never opened. */
void ls_sqlite_db_close(struct ls_sqlite_db *db);

/*
 * Makes sure that the file has room for all pages of the open transaction, so that the log can always be folded back
 * into it, also on a full disk. ENOSPACE when it has not.
 */
LADE_CHECKED int ls_sqlite_db_reserve(struct ls_sqlite_db *db, const char *where, lade_err *err);

/* Runs SQL that returns nothing. */
LADE_CHECKED int ls_sqlite_db_exec(struct ls_sqlite_db *db, const char *sql, const char *where,
                                   lade_err *err);
/* The one integer that a PRAGMA or SELECT returns. */
LADE_CHECKED int ls_sqlite_db_int(struct ls_sqlite_db *db, const char *sql, int64_t *out,
                                  const char *where, lade_err *err);

/* Fills err from the connection's last error and returns its code. */
int ls_sqlite_db_fail(struct ls_sqlite_db *db, const char *where, lade_err *err);

/* The statement, reset and ready for binds; NULL (then ls_sqlite_db_fail) when it cannot be prepared. */
sqlite3_stmt *ls_sqlite_db_stmt(struct ls_sqlite_db *db, enum ls_sqlite_sql which);

/*
 * For a connection of the user's: the text of a statement with each of its tables named as of that schema. A table is the word
 * behind FROM, JOIN, INTO or UPDATE; the statements of sql.h have no other place for one.
 */
void ls_sqlite_db_qualify(struct lb_buf *out, const char *text, const char *schema);

/* True when a statement is between its first row and its reset: it would hold back checkpoints. */
bool ls_sqlite_db_is_busy(const struct ls_sqlite_db *db);

/* How many pages a log of so many bytes has: each with a header of 24. */
static inline int ls_sqlite_db_frames(const struct ls_sqlite_db *db, int bytes)
{
    return bytes / (db->page + 24);
}

static inline void ls_sqlite_bind(sqlite3_stmt *st, int i, int64_t v)
{
    (void)sqlite3_bind_int64(st, i, v);
}

/* Bytes that stay valid until the statement is reset. p NULL binds NULL. */
static inline void ls_sqlite_bind_blob(sqlite3_stmt *st, int i, struct lb_slice b)
{
    (void)sqlite3_bind_blob64(st, i, b.p, b.n, SQLITE_STATIC);
}

static inline void ls_sqlite_bind_text(sqlite3_stmt *st, int i, struct lb_slice t)
{
    (void)sqlite3_bind_text64(st, i, (const char *)t.p, t.n, SQLITE_STATIC, SQLITE_UTF8);
}

static inline struct lb_slice ls_sqlite_column(sqlite3_stmt *st, int i)
{
    const void *p = sqlite3_column_blob(st, i);
    return lb_slice(p, (size_t)sqlite3_column_bytes(st, i));
}

#endif
