#include "store/sqlite/checkpoint.h"

#include "base/clock.h"

#define FOLD_PAGES    4000 /* 16 MiB: folded back beyond this, as far as readers allow */
#define RESTART_PAGES 8000 /* 32 MiB: beyond this readers are waited for */
#define RESTART_WAIT  (50 * LADE_MILLISECOND)
#define RESTART_EVERY LADE_SECOND

/* Called by SQLite after each commit. That readers were in the way is no failure: the next commit tries again. */
static int fold_back(void *arg, sqlite3 *h, const char *name, int pages)
{
    struct ls_sqlite_db *db = arg;
    int mode = SQLITE_CHECKPOINT_PASSIVE;
    int64_t now = lb_clock_mono();
    if (pages < FOLD_PAGES)
        return SQLITE_OK;
    if (pages >= RESTART_PAGES && now >= db->restart_at) {
        mode = SQLITE_CHECKPOINT_RESTART;
        db->restart_at = now + RESTART_EVERY;
    }
    int64_t deadline = db->busy_deadline;
    db->busy_deadline = now + RESTART_WAIT;
    (void)sqlite3_wal_checkpoint_v2(h, name, mode, NULL, NULL);
    db->busy_deadline = deadline;
    return SQLITE_OK;
}

void ls_sqlite_checkpoint_init(struct ls_sqlite_db *db)
{
    db->restart_at = 0;
    (void)sqlite3_wal_hook(db->h, fold_back, db);
}
