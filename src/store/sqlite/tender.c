#include "store/sqlite/tender.h"

#include "base/base.h"
#include "base/clock.h"
#include "store/sqlite/checkpoint.h"
#include "store/sqlite/sqlite_impl.h"

#define PASSES_MAX 8         /* of one ask */
#define REST       (1 << 20) /* bytes; few enough to hold the writers for */
/* For a commit of another process to end, and then for readers. */
#define PATIENCE   (5 * LADE_MILLISECOND)

void ls_sqlite_tender_init(struct ls_sqlite_tender *t, struct ls_sqlite *s)
{
    *t = (struct ls_sqlite_tender){.s = s};
    lr_mutex_init(&t->lock);
    lr_mutex_init(&t->pass);
    lr_cond_init(&t->wake);
}

void ls_sqlite_tender_fini(struct ls_sqlite_tender *t)
{
    lr_mutex_lock(&t->lock);
    t->closing = true;
    lr_cond_wake_all(&t->wake);
    lr_mutex_unlock(&t->lock);
    lr_thread_join(&t->thread);
    lr_cond_fini(&t->wake);
    lr_mutex_fini(&t->pass);
    lr_mutex_fini(&t->lock);
}

static bool open_own(struct ls_sqlite_tender *t)
{
    struct ls_sqlite_db *db = &t->db;
    db->busy_deadline = lb_deadline_in(t->s->busy_ms * LADE_MILLISECOND);
    db->hurry = &t->s->base.hurry;
    if (ls_sqlite_db_open(db, t->s->path, LS_SQLITE_BEATS, NULL) < 0)
        return false;
    if (ls_sqlite_db_tune(db, t->s->full, NULL) == 0)
        return true;
    ls_sqlite_db_close(db);
    return false;
}

static bool fold(struct ls_sqlite_tender *t, int mode, int *log, int *folded)
{
    t->db.busy_deadline = lb_deadline_in(mode == SQLITE_CHECKPOINT_PASSIVE ? 0 : PATIENCE);
    (void)__atomic_add_fetch(&t->passes, 1, __ATOMIC_RELAXED);
    return sqlite3_wal_checkpoint_v2(t->db.h, NULL, mode, log, folded) == SQLITE_OK;
}

/* What the last pass left to the operating system, so that it need not be written while the writers are held. */
static void sync_file(struct ls_sqlite_tender *t, int which)
{
    sqlite3_file *f = NULL;
    if (sqlite3_file_control(t->db.h, "main", which, &f) == SQLITE_OK && f && f->pMethods)
        (void)f->pMethods->xSync(f, SQLITE_SYNC_NORMAL | SQLITE_SYNC_DATAONLY);
}

static bool is_closing(struct ls_sqlite_tender *t)
{
    lr_mutex_lock(&t->lock);
    bool closing = t->closing;
    lr_mutex_unlock(&t->lock);
    return closing;
}

/* The rest, with nobody writing meanwhile. */
static void bring_to_end(struct ls_sqlite_tender *t)
{
    int log = 0, folded = 0;
    sync_file(t, SQLITE_FCNTL_FILE_POINTER);
    sync_file(t, SQLITE_FCNTL_JOURNAL_POINTER);
    ls_sqlite_writer_hold(&t->s->writer);
    (void)fold(t, SQLITE_CHECKPOINT_RESTART, &log, &folded);
    ls_sqlite_writer_release(&t->s->writer);
}

/*
 * Pages of the log by now. A pass answers with what there was when it began, and while it waits for the disk others go on:
 * by its own answer it is always at the end, and the log would grow until a writer has to fold it.
 */
static int count_now(struct ls_sqlite_tender *t, int log)
{
    return LB_MAX(log, __atomic_load_n(&t->s->writer.db.log_pages, __ATOMIC_RELAXED));
}

static void tend(struct ls_sqlite_tender *t)
{
    int log = 0, folded = 0, before = 0;
    for (int i = 0; i < PASSES_MAX && !is_closing(t); i++) {
        lr_mutex_lock(&t->pass);
        bool good = fold(t, SQLITE_CHECKPOINT_PASSIVE, &log, &folded);
        lr_mutex_unlock(&t->pass);
        int now = count_now(t, log);
        if (!good || now < ls_sqlite_db_frames(&t->db, LS_SQLITE_TEND_END))
            return;
        if (now - folded <= ls_sqlite_db_frames(&t->db, REST)) {
            bring_to_end(t);
            return;
        }
        if (folded == before)
            return; /* a reader keeps it where it is */
        before = folded;
    }
}

static void run(void *arg)
{
    struct ls_sqlite_tender *t = arg;
    bool opened = open_own(t);
    lr_mutex_lock(&t->lock);
    t->failed = !opened;
    while (opened && !t->closing) {
        if (!t->asked) {
            (void)lr_cond_wait(&t->wake, &t->lock, LB_FOREVER);
            continue;
        }
        t->asked = false;
        t->tends = true;
        lr_mutex_unlock(&t->lock);
        tend(t);
        lr_mutex_lock(&t->lock);
        t->tends = false;
    }
    lr_mutex_unlock(&t->lock);
    if (opened)
        ls_sqlite_db_close(&t->db);
}

bool ls_sqlite_tender_ask(struct ls_sqlite_tender *t, int pages)
{
    if (pages < t->asked_at)
        t->asked_at = 0; /* it has started over */
    const struct ls_sqlite_db *db = &t->s->writer.db;
    bool due = pages >= ls_sqlite_db_frames(db, LS_SQLITE_TEND_FIRST) &&
               pages - t->asked_at >= ls_sqlite_db_frames(db, LS_SQLITE_TEND_STEP);
    if (!due)
        return true;
    t->asked_at = pages;
    lr_mutex_lock(&t->lock);
    bool was_asked = t->asked;
    bool failed = t->failed;
    t->asked = true;
    if (!t->thread.started && !failed)
        failed = t->failed = lr_thread_start(&t->thread, "lade-tender", run, t) < 0;
    else if (!was_asked)
        lr_cond_wake_one(&t->wake);
    lr_mutex_unlock(&t->lock);
    return !failed;
}
