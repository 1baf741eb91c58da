#include "store/sqlite/checkpoint.h"

#include <stdio.h>

#include "base/base.h"
#include "base/clock.h"
#include "rt/seam.h"
#include "store/sqlite/sqlite_impl.h"

/* Bytes of the log */
#define FOLD    (16 << 20) /* where the tender cannot be had */
#define RESTART LS_SQLITE_LOG_LIMIT
#define NOTICE  (2 * RESTART)

/*
 * How long readers are waited for with the write lock held: a small part of the shortest lease (1 s), so that a heartbeat
 * behind it is late but never too late.
 */
#define PATIENCE_MIN (50 * LADE_MILLISECOND)
#define PATIENCE_MAX (250 * LADE_MILLISECOND)
/* How long the lock is then let alone: longer than the steps in which others look for it (db.c). */
#define PAUSE        (10 * LADE_MILLISECOND)

static int count_pages(void *arg, sqlite3 *h, const char *name, int pages)
{
    struct ls_sqlite_db *db = arg;
    (void)h;
    (void)name;
    __atomic_store_n(&db->log_pages, pages, __ATOMIC_RELAXED);
    return SQLITE_OK;
}

void ls_sqlite_checkpoint_count(struct ls_sqlite_db *db)
{
    (void)sqlite3_wal_hook(db->h, count_pages, db);
}

void ls_sqlite_fold_init(struct ls_sqlite_fold *f)
{
    *f = (struct ls_sqlite_fold){.patience = PATIENCE_MIN, .marked = -1};
}

/* SQLite's result; pages of the log, and how many of them are in the file too. */
static int fold_back(struct ls_sqlite_db *db, int mode, int64_t wait, int *log, int *folded)
{
    int64_t deadline = db->busy_deadline;
    db->busy_deadline = lb_deadline_in(wait);
    int rc = sqlite3_wal_checkpoint_v2(db->h, NULL, mode, log, folded);
    db->busy_deadline = deadline;
    return rc;
}

static void reset(struct ls_sqlite_fold *f, struct ls_sqlite_db *db)
{
    f->patience = PATIENCE_MIN;
    f->marked = -1;
    f->pinned = false;
    f->told = 0;
    __atomic_store_n(&db->log_pages, 0, __ATOMIC_RELAXED);
}

static void wait_for_readers(struct ls_sqlite_fold *f, struct ls_sqlite_db *db)
{
    int log = 0, folded = 0;
    int rc = fold_back(db, SQLITE_CHECKPOINT_RESTART, f->patience, &log, &folded);
    if (rc == SQLITE_OK)
        reset(f, db);
    if (rc != SQLITE_BUSY)
        return; /* a disk that fails is told to the next commit */
    f->pinned = folded == f->marked && folded < log;
    f->marked = folded;
    f->patience = LB_MIN(2 * f->patience, PATIENCE_MAX);
    lr_sleep_until(lb_deadline_in(PAUSE));
}

/* First what takes long and needs no lock. Another process may be at it: then it is waited for a moment. False: in vain. */
static bool fold_first(struct ls_sqlite_db *db, int *log, int *folded)
{
    int64_t deadline = lb_deadline_in(PATIENCE_MIN);
    int rc;
    while ((rc = fold_back(db, SQLITE_CHECKPOINT_PASSIVE, 0, log, folded)) == SQLITE_BUSY &&
           lb_clock_mono() < deadline)
        lr_sleep_until(lb_deadline_in(LADE_MILLISECOND));
    return rc == SQLITE_OK;
}

/* The log is at a length at which the leader does not leave it to others. */
static void fold_here(struct ls_sqlite_fold *f, struct ls_sqlite_db *db)
{
    int log = 0, folded = 0;
    if (!fold_first(db, &log, &folded))
        return;
    if (log < ls_sqlite_db_frames(db, RESTART)) {
        if (folded == log)
            reset(f, db);
        return;
    }
    if (!f->pinned || folded != f->marked)
        wait_for_readers(f, db);
    if (f->pinned && log >= ls_sqlite_db_frames(db, NOTICE) && log >= 2 * f->told) {
        f->told = log;
        __atomic_store_n(&f->notice, log / ls_sqlite_db_frames(db, 1 << 20), __ATOMIC_RELAXED);
    }
}

void ls_sqlite_fold_tend(struct ls_sqlite_fold *f, struct ls_sqlite *s)
{
    struct ls_sqlite_db *db = &s->writer.db;
    int beaten = __atomic_exchange_n(&s->beat.log_pages, 0, __ATOMIC_RELAXED);
    int pages = LB_MAX(__atomic_load_n(&db->log_pages, __ATOMIC_RELAXED), beaten);
    if (pages < ls_sqlite_db_frames(db, LS_SQLITE_TEND_FIRST))
        return;
    bool tended = ls_sqlite_tender_ask(&s->tender, pages);
    if (pages < ls_sqlite_db_frames(db, tended ? RESTART : FOLD))
        return;
    lr_mutex_lock(&s->tender.pass);
    fold_here(f, db);
    lr_mutex_unlock(&s->tender.pass);
}

void ls_sqlite_fold_restart(struct ls_sqlite *s)
{
    lr_mutex_lock(&s->tender.pass);
    (void)fold_back(&s->writer.db, SQLITE_CHECKPOINT_RESTART, PATIENCE_MAX, NULL, NULL);
    lr_mutex_unlock(&s->tender.pass);
}

static void describe(int mib, const char *path, char *text, size_t size)
{
    (void)snprintf(
        text, size,
        "%s-wal has grown to %d MiB: a reader keeps a transaction open and the log cannot "
        "be folded back; end the program that reads (fuser %s)",
        path, mib, path);
}

bool ls_sqlite_fold_take_notice(struct ls_sqlite_fold *f, const char *path, char *text, size_t size)
{
    int mib = __atomic_exchange_n(&f->notice, 0, __ATOMIC_RELAXED);
    if (mib > 0)
        describe(mib, path, text, size);
    return mib > 0;
}

bool ls_sqlite_fold_look(struct ls_sqlite *s, struct ls_sqlite_db *db, char *text, size_t size)
{
    int log = 0, folded = 0;
    lr_mutex_lock(&s->tender.pass);
    int rc = fold_back(db, SQLITE_CHECKPOINT_PASSIVE, 0, &log, &folded);
    lr_mutex_unlock(&s->tender.pass);
    const struct ls_sqlite_db *tuned = &s->writer.db; /* `db` was only opened */
    if (rc != SQLITE_OK || log < ls_sqlite_db_frames(tuned, NOTICE) || folded == log)
        return false;
    describe(log / ls_sqlite_db_frames(tuned, 1 << 20), s->path, text, size);
    return true;
}
