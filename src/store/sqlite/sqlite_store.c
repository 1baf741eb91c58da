/*
 * sqlite_store.c - open, close and the table of ops
 *
 *     put, settle, take, ...  -> writer.c (group commit) -> tx.c -> runs.c     the writers' connection
 *     in the user's own       -> foreign.c -> tx.c -> runs.c                   the user's connection
 *     renew                   -> op_lease.c                                    the heartbeat's own
 *     count, get, list, ...   -> op_list.c                                     the readers' connection
 *     wait, wake              -> waiters.c -> bell.c
 *     folding the log back    -> tender.c                                      the tender's own, once there is much to fold
 *
 * Locks, outermost first: beat_lock, read_lock and writer.lock are never held together; waiters.lock and tender.lock are taken
 * inside any of them. Who leads the writer may wait for tender.pass; the tender never waits for the writer with it.
 */
#include "store/sqlite/sqlite_store.h"

#include <errno.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "store/sqlite/feed.h"
#include "store/sqlite/filesystem.h"
#include "store/sqlite/migrate.h"
#include "store/sqlite/orders.h"
#include "store/sqlite/room.h"
#include "store/sqlite/sqlite_impl.h"
#include "store/sqlite/sqlite_url.h"

int64_t ls_sqlite_now_ms(const struct ls_sqlite *s)
{
    const struct lq_store_config *c = &s->base.config;
    return (c->clock ? c->clock(c->clock_ctx) : lb_clock_wall()) / LADE_MILLISECOND;
}

static int open_one(struct ls_sqlite *s, struct ls_sqlite_db *db, enum ls_sqlite_role role,
                    lade_err *err)
{
    db->busy_deadline = lb_deadline_in(s->busy_ms * LADE_MILLISECOND);
    db->hurry = &s->base.hurry;
    int rc = ls_sqlite_db_open(db, s->path, role, err);
    if (rc == 0 && role == LS_SQLITE_WRITES)
        rc = ls_sqlite_migrate(db, err);
    if (rc == 0 && role == LS_SQLITE_WRITES)
        rc = ls_sqlite_feed_register(db, err);
    if (rc == 0)
        rc = ls_sqlite_db_tune(db, s->full, err);
    if (rc == 0 && role == LS_SQLITE_READS)
        rc = ls_sqlite_db_exec(db, "PRAGMA query_only = ON", "open", err);
    return rc;
}

static void close_all(struct ls_sqlite *s)
{
    ls_sqlite_db_close(&s->read);
    ls_sqlite_db_close(&s->beat);
    ls_sqlite_db_close(&s->writer.db);
}

static int open_all(struct ls_sqlite *s, lade_err *err)
{
    int rc = open_one(s, &s->writer.db, LS_SQLITE_WRITES, err);
    if (rc == 0)
        rc = open_one(s, &s->beat, LS_SQLITE_BEATS, err);
    if (rc == 0)
        rc = open_one(s, &s->read, LS_SQLITE_READS, err);
    if (rc == 0)
        rc = ls_sqlite_writer_pin(&s->writer, err);
    if (rc == 0)
        rc = ls_sqlite_waiters_init(&s->waiters, s->path, err);
    if (rc < 0)
        close_all(s);
    return rc;
}

static int check_exists(const char *path, lade_err *err)
{
    if (access(path, F_OK) == 0 || (errno != ENOENT && errno != ENOTDIR))
        return 0;
    return lb_fail(err, LADE_ENOSTORE, "open", "%s: no such file; the first job makes it", path);
}

static int open_store(struct lq_store *store, lade_err *err)
{
    struct ls_sqlite *s = ls_sqlite_of(store);
    struct ls_sqlite_url url;
    int rc = ls_sqlite_url_parse(&url, store->config.url, err);
    if (rc < 0)
        return rc;
    s->path = url.path;
    s->full = url.full;
    s->busy_ms = url.busy_ms > 0 ? url.busy_ms : LB_MAX(store->config.timeout_ms, 1);
    rc = store->config.must_exist ? check_exists(s->path, err) : 0;
    if (rc == 0)
        rc = ls_sqlite_filesystem_check(s->path, err);
    if (rc == 0)
        rc = open_all(s, err);
    if (rc == -LADE_ENOSPACE && ls_sqlite_room_give(s->path))
        rc = open_all(s, err);
    else if (rc == 0)
        ls_sqlite_room_keep(s->path);
    if (rc < 0) {
        lb_free(s->path);
        return rc;
    }
    ls_sqlite_writer_init(&s->writer, s);
    ls_sqlite_tender_init(&s->tender, s);
    lr_mutex_init(&s->beat_lock);
    lr_mutex_init(&s->read_lock);
    lr_mutex_init(&s->rings_lock);
    return 0;
}

static void close_store(struct lq_store *store)
{
    struct ls_sqlite *s = ls_sqlite_of(store);
    ls_sqlite_waiters_fini(&s->waiters);
    ls_sqlite_tender_fini(&s->tender);
    ls_sqlite_writer_fini(&s->writer);
    close_all(s);
    ls_sqlite_foreign_fini(s);
    lr_mutex_fini(&s->rings_lock);
    lr_mutex_fini(&s->read_lock);
    lr_mutex_fini(&s->beat_lock);
    lb_free(s->path);
}

static int read_now(struct lq_store *s, int64_t *now_ms, lade_err *err)
{
    (void)err;
    *now_ms = ls_sqlite_now_ms(ls_sqlite_of(s));
    return 0;
}

static int take_notice(struct lq_store *store, char *text, size_t size)
{
    struct ls_sqlite *s = ls_sqlite_of(store);
    return ls_sqlite_fold_take_notice(&s->writer.fold, s->path, text, size) ? 0 : LADE_EMPTY;
}

const struct lq_store_ops ls_sqlite_ops = {
    .name = "sqlite",
    .schemes = "sqlite file",
    .version = LQ_STORE_VERSION,
    .caps = LQ_CAP_PROCESSES | LQ_CAP_CLOCK | LQ_CAP_CONFLICT,
    .size = sizeof(struct ls_sqlite),
    .open = open_store,
    .close = close_store,
    .now = read_now,
    .put = ls_sqlite_put,
    .settle_take = ls_sqlite_settle_take,
    .begin = ls_sqlite_begin,
    .note = ls_sqlite_note,
    .renew = ls_sqlite_renew,
    .leave = ls_sqlite_leave,
    .reclaim = ls_sqlite_reclaim,
    .promote = ls_sqlite_promote,
    .trim = ls_sqlite_trim,
    .wait = ls_sqlite_wait,
    .wake = ls_sqlite_wake,
    .queues = ls_sqlite_queues,
    .count = ls_sqlite_count,
    .get = ls_sqlite_get,
    .list = ls_sqlite_list,
    .act = ls_sqlite_act,
    .purge = ls_sqlite_purge,
    .redrive = ls_sqlite_redrive,
    .pause = ls_sqlite_pause,
    .forget = ls_sqlite_forget,
    .workers = ls_sqlite_workers,
    .check = ls_sqlite_check,
    .classes = ls_sqlite_classes,
    .list_class = ls_sqlite_list_class,
    .change = ls_sqlite_change,
    .flow_put = ls_sqlite_flow_put,
    .flow_get = ls_sqlite_flow_get,
    .flow_list = ls_sqlite_flow_list,
    .flow_inputs = ls_sqlite_flow_inputs,
    .flow_act = ls_sqlite_flow_act,
    .results = ls_sqlite_results,
    .watch = ls_sqlite_watch,
    .unwatch = ls_sqlite_unwatch,
    .say = ls_sqlite_say,
    .words = ls_sqlite_words,
    .events_set = ls_sqlite_events_set,
    .events_get = ls_sqlite_events_get,
    .event_read = ls_sqlite_event_read,
    .limit_set = ls_sqlite_limit_set,
    .limit_get = ls_sqlite_limit_get,
    .key_list = ls_sqlite_key_list,
    .key_get = ls_sqlite_key_show,
    .key_pause = ls_sqlite_key_pause,
    .schedules = &ls_sqlite_schedule_ops,
    .bounds = &ls_sqlite_bound_ops,
    .controls = &ls_sqlite_control_ops,
    .notice = take_notice,
};
