/*
 * op_schedule.c - schedules: records, the leader, firing
 *
 * All that writes goes through the writer (writer.h). Who watches sits in a seat of the bell (waiters.h), in a lane that no queue
 * can have the name of; whoever changes a schedule rings it after the commit.
 */
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fault.h"
#include "queue/event.h"
#include "store/sqlite/events.h"
#include "store/sqlite/runs.h"
#include "store/sqlite/sqlite_impl.h"

#define LANE "~schedules"

/* The row of `scheduler`, in memory. */
struct scheduler {
    int64_t revision, fence, until_ms, seen_ms;
    char holder[LADE_ID_MAX + 1];
    char name[LADE_NAME_MAX + 1];
};

static void copy_text(char *to, size_t size, struct lb_slice from)
{
    size_t n = LB_MIN(from.n, size - 1);
    if (n > 0)
        memcpy(to, from.p, n);
    to[n] = 0;
}

static int read_scheduler(struct ls_sqlite_tx *tx, struct scheduler *s)
{
    *s = (struct scheduler){0};
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_SCHEDULER_GET);
    int rc = ls_sqlite_tx_step(tx, st);
    if (rc <= 0)
        return rc;
    s->revision = sqlite3_column_int64(st, 0);
    copy_text(s->holder, sizeof(s->holder), ls_sqlite_column(st, 1));
    copy_text(s->name, sizeof(s->name), ls_sqlite_column(st, 2));
    s->fence = sqlite3_column_int64(st, 3);
    s->until_ms = sqlite3_column_int64(st, 4);
    s->seen_ms = sqlite3_column_int64(st, 5);
    (void)sqlite3_reset(st);
    return 0;
}

static int write_scheduler(struct ls_sqlite_tx *tx, const struct scheduler *s)
{
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_SCHEDULER_SET);
    if (!st)
        return ls_sqlite_tx_fail(tx);
    ls_sqlite_bind(st, 1, s->revision);
    ls_sqlite_bind_text(st, 2, lb_slice_str(s->holder));
    ls_sqlite_bind_text(st, 3, lb_slice_str(s->name));
    ls_sqlite_bind(st, 4, s->fence);
    ls_sqlite_bind(st, 5, s->until_ms);
    ls_sqlite_bind(st, 6, s->seen_ms);
    return ls_sqlite_tx_do(tx, st);
}

static void ring(struct ls_sqlite *s)
{
    ls_sqlite_waiters_ring(&s->waiters, LANE, SIZE_MAX);
}

/* 1 with the one number that the statement gives, or 0. */
static int ask_number(struct ls_sqlite_tx *tx, sqlite3_stmt *st, int64_t *out)
{
    int rc = ls_sqlite_tx_step(tx, st);
    if (rc != 1)
        return rc;
    *out = sqlite3_column_int64(st, 0);
    (void)sqlite3_reset(st);
    return 1;
}

int ls_sqlite_schedules_any(struct ls_sqlite_tx *tx, bool *any)
{
    int64_t one = 0;
    int rc = ask_number(tx, ls_sqlite_tx_stmt(tx, LS_SQLITE_SCHEDULE_ANY), &one);
    *any = rc == 1;
    return LB_MIN(rc, 0);
}

/* The record's, 0 = it is not there. */
static int ask_revision(struct ls_sqlite_tx *tx, struct lb_slice id, int64_t *revision)
{
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_SCHEDULE_REVISION);
    *revision = 0;
    if (st)
        ls_sqlite_bind_text(st, 1, id);
    return LB_MIN(ask_number(tx, st, revision), 0);
}

/* put, remove ------------------------------------------------------------------------------------------------------ */

static int write_record(struct ls_sqlite_tx *tx, const struct lq_schedule_put *it,
                        enum ls_sqlite_sql which, int64_t revision)
{
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, which);
    if (!st)
        return ls_sqlite_tx_fail(tx);
    ls_sqlite_bind_text(st, 1, it->id);
    ls_sqlite_bind(st, 2, it->state);
    ls_sqlite_bind(st, 3, it->due_ms);
    ls_sqlite_bind(st, 4, revision);
    ls_sqlite_bind_blob(st, 5, it->spec);
    ls_sqlite_bind_blob(st, 6, it->memo);
    return ls_sqlite_tx_do(tx, st);
}

static int run_put(struct ls_sqlite_tx *tx, void *arg)
{
    const struct lq_schedule_put *it = arg;
    struct scheduler s = {0};
    int64_t revision, n = 0;
    int rc = ask_revision(tx, it->id, &revision);
    if (rc < 0 || revision != (int64_t)it->revision)
        return rc < 0 ? rc : LADE_STALE;
    if (revision == 0)
        rc = ask_number(tx, ls_sqlite_tx_stmt(tx, LS_SQLITE_SCHEDULE_FULL), &n);
    if (rc < 0 || n >= LQ_SCHEDULES_MAX)
        return rc < 0 ? rc : LADE_FULL;
    tx->grows = true;
    rc = read_scheduler(tx, &s);
    s.revision++;
    if (rc == 0)
        rc = write_record(tx, it, revision ? LS_SQLITE_SCHEDULE_SET : LS_SQLITE_SCHEDULE_ADD,
                          s.revision);
    LB_FAULT("sqlite.schedule.record");
    return rc < 0 ? rc : write_scheduler(tx, &s);
}

static int put(struct lq_store *s, const struct lq_schedule_put *it, lade_err *err)
{
    struct lq_schedule_put copy = *it;
    struct ls_sqlite_op op = {.name = "schedule",
                              .point = "sqlite.schedule_put.commit",
                              .run = run_put,
                              .arg = &copy,
                              .jobs = 1};
    int rc = ls_sqlite_write(ls_sqlite_of(s), &op, err);
    if (rc == 0)
        ring(ls_sqlite_of(s));
    return rc;
}

static int run_remove(struct ls_sqlite_tx *tx, void *arg)
{
    const struct lb_slice *id = arg;
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_SCHEDULE_DEL);
    if (st)
        ls_sqlite_bind_text(st, 1, *id);
    int rc = ls_sqlite_tx_do(tx, st);
    return rc < 0 || sqlite3_changes(tx->db->h) > 0 ? rc : LADE_NOT_FOUND;
}

static int remove_record(struct lq_store *s, struct lb_slice id, lade_err *err)
{
    struct ls_sqlite_op op = {.name = "schedule",
                              .point = "sqlite.schedule_remove.commit",
                              .run = run_remove,
                              .arg = &id,
                              .jobs = 1,
                              .frees = true};
    return ls_sqlite_write(ls_sqlite_of(s), &op, err);
}

/* look ------------------------------------------------------------------------------------------------------------- */

/* Room for n more rows. */
static int reserve(struct ls_sqlite_tx *tx, struct lq_schedule_vec *out, size_t n)
{
    struct lq_schedule_row *row = lb_arena_alloc(&out->arena, (out->n + n + 1) * sizeof(*row));
    if (!row)
        return lb_fail_nomem(tx->err, tx->op);
    if (out->n > 0)
        memcpy(row, out->row, out->n * sizeof(*row));
    out->row = row;
    return 0;
}

static struct lb_slice keep(struct lb_arena *a, struct lb_slice from, bool *ok)
{
    struct lb_mut m = lb_arena_copy(a, from.p, from.n);
    *ok = *ok && m.p;
    return lb_slice_of(m);
}

/* All rows of the statement, at most `room`. */
static int read_rows(struct ls_sqlite_tx *tx, sqlite3_stmt *st, size_t room,
                     struct lq_schedule_vec *out)
{
    int rc;
    while ((rc = ls_sqlite_tx_step(tx, st)) == 1) {
        bool ok = true;
        LB_CHECK(room-- > 0);
        out->row[out->n++] = (struct lq_schedule_row){
            .id = keep(&out->arena, ls_sqlite_column(st, 0), &ok),
            .state = (enum lade_schedule_state)sqlite3_column_int64(st, 1),
            .due_ms = sqlite3_column_int64(st, 2),
            .revision = (uint64_t)sqlite3_column_int64(st, 3),
            .spec = keep(&out->arena, ls_sqlite_column(st, 4), &ok),
            .memo = keep(&out->arena, ls_sqlite_column(st, 5), &ok),
        };
        if (!ok) {
            (void)sqlite3_reset(st);
            return lb_fail_nomem(tx->err, tx->op);
        }
    }
    return rc;
}

static int get(struct lq_store *store, struct lb_slice id, struct lq_schedule_vec *out,
               lade_err *err)
{
    struct ls_sqlite *s = ls_sqlite_of(store);
    struct ls_sqlite_tx tx;
    size_t before = out->n;
    int rc = ls_sqlite_read_enter(s, &tx, "schedule", err);
    if (rc == 0)
        rc = reserve(&tx, out, 1);
    if (rc == 0) {
        sqlite3_stmt *st = ls_sqlite_tx_stmt(&tx, LS_SQLITE_SCHEDULE_GET);
        if (st)
            ls_sqlite_bind_text(st, 1, id);
        rc = read_rows(&tx, st, 1, out);
    }
    if (rc == 0 && out->n == before)
        rc = LADE_NOT_FOUND;
    return ls_sqlite_read_leave(s, &tx, rc);
}

static int list(struct lq_store *store, lade_cursor *cursor, size_t limit,
                struct lq_schedule_vec *out, lade_err *err)
{
    struct ls_sqlite *s = ls_sqlite_of(store);
    struct ls_sqlite_tx tx;
    size_t before = out->n;
    int rc = ls_sqlite_read_enter(s, &tx, "schedules", err);
    if (rc == 0)
        rc = reserve(&tx, out, limit + 1);
    if (rc == 0) {
        sqlite3_stmt *st = ls_sqlite_tx_stmt(&tx, LS_SQLITE_SCHEDULE_FROM);
        if (st) {
            ls_sqlite_bind_text(st, 1, lb_slice_str(cursor->at));
            ls_sqlite_bind(st, 2, (int64_t)limit + 1);
        }
        rc = read_rows(&tx, st, limit + 1, out);
    }
    if (rc == 0) {
        cursor->done = out->n - before <= limit;
        out->n = LB_MIN(out->n, before + limit);
        if (out->n > before)
            copy_text(cursor->at, sizeof(cursor->at), out->row[out->n - 1].id);
        rc = out->n > before ? 0 : LADE_EMPTY;
    }
    return ls_sqlite_read_leave(s, &tx, rc);
}

static int leader(struct lq_store *store, lade_schedule_leader *out, lade_err *err)
{
    struct ls_sqlite *s = ls_sqlite_of(store);
    struct ls_sqlite_tx tx;
    struct scheduler is;
    int rc = ls_sqlite_read_enter(s, &tx, "schedule", err);
    if (rc == 0)
        rc = read_scheduler(&tx, &is);
    if (rc == 0) {
        bool leads = is.holder[0] && is.until_ms > tx.now_ms;
        *out = (lade_schedule_leader){.fence = (uint64_t)is.fence,
                                      .seen_at = lb_ns_of_ms(is.seen_ms),
                                      .lease_until = leads ? lb_ns_of_ms(is.until_ms) : 0};
        if (leads) {
            memcpy(out->id, is.holder, sizeof(out->id));
            memcpy(out->name, is.name, sizeof(out->name));
        }
    }
    return ls_sqlite_read_leave(s, &tx, rc);
}

/* tick, resign ----------------------------------------------------------------------------------------------------- */

struct tick {
    struct lq_tick *t;
    struct lq_schedule_vec *due;
    size_t before; /* rows there before the call: an op may run again */
};

/* As the memory store has it. */
static void lead(struct scheduler *s, struct lq_tick *t)
{
    bool mine = strcmp(s->holder, t->holder) == 0;
    s->until_ms = LB_MIN(s->until_ms, t->now_ms + t->lease_ms);
    t->leads = mine || !s->holder[0] || s->until_ms <= t->now_ms;
    t->took_over = t->leads && !mine;
    t->back_ms = t->leads ? LB_MAX(s->seen_ms - t->now_ms, 0) : 0;
    if (t->took_over) {
        copy_text(s->holder, sizeof(s->holder), lb_slice_str(t->holder));
        s->fence++;
    }
    if (t->leads) {
        copy_text(s->name, sizeof(s->name), lb_slice_str(t->name));
        s->until_ms = t->now_ms + t->lease_ms;
        s->seen_ms = t->now_ms;
    }
    t->until_ms = s->until_ms;
    t->fence = t->leads ? (uint64_t)s->fence : 0;
}

static int collect_due(struct ls_sqlite_tx *tx, struct tick *k)
{
    int rc = reserve(tx, k->due, k->t->max);
    if (rc < 0)
        return rc;
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_SCHEDULE_DUE);
    if (st) {
        ls_sqlite_bind(st, 1, k->t->now_ms);
        ls_sqlite_bind(st, 2, (int64_t)k->t->max);
    }
    rc = read_rows(tx, st, k->t->max, k->due);
    if (rc < 0)
        return rc;
    st = ls_sqlite_tx_stmt(tx, LS_SQLITE_SCHEDULE_NEXT);
    if (st)
        ls_sqlite_bind(st, 1, (int64_t)(k->due->n - k->before));
    return LB_MIN(ask_number(tx, st, &k->t->next_ms), 0);
}

static int run_tick(struct ls_sqlite_tx *tx, void *arg)
{
    struct tick *k = arg;
    struct lq_tick *t = k->t;
    struct scheduler s;
    k->due->n = k->before;
    t->now_ms = tx->now_ms;
    t->leads = t->took_over = false;
    t->fence = 0;
    t->until_ms = t->next_ms = t->back_ms = 0;
    int rc = ls_sqlite_schedules_any(tx, &t->any);
    if (rc == 0)
        rc = read_scheduler(tx, &s);
    if (rc < 0)
        return rc;
    bool mine = strcmp(s.holder, t->holder) == 0;
    int64_t until = s.until_ms;
    if (t->any)
        lead(&s, t);
    else if (mine)
        s.holder[0] = 0;
    if (t->leads || (mine && !t->any) || s.until_ms != until)
        rc = write_scheduler(tx, &s);
    return rc == 0 && t->leads ? collect_due(tx, k) : rc;
}

static int tick(struct lq_store *store, struct lq_tick *t, struct lq_schedule_vec *due,
                lade_err *err)
{
    static const char *const lane[] = {LANE};

    struct ls_sqlite *s = ls_sqlite_of(store);
    struct tick k = {t, due, due->n};
    struct ls_sqlite_op op = {.name = "schedule",
                              .point = "sqlite.schedule_tick.commit",
                              .run = run_tick,
                              .arg = &k,
                              .jobs = t->max};
    ls_sqlite_waiters_idle(&s->waiters, t->holder, (struct lq_lanes){lane, 1});
    return ls_sqlite_write(s, &op, err);
}

struct resign {
    const char *holder;
    bool led;
};

static int run_resign(struct ls_sqlite_tx *tx, void *arg)
{
    struct resign *r = arg;
    struct scheduler s;
    int rc = read_scheduler(tx, &s);
    r->led = rc == 0 && strcmp(s.holder, r->holder) == 0;
    s.holder[0] = 0;
    return r->led ? write_scheduler(tx, &s) : rc;
}

static int resign(struct lq_store *store, const char *holder, lade_err *err)
{
    struct ls_sqlite *s = ls_sqlite_of(store);
    struct resign r = {.holder = holder};
    struct ls_sqlite_op op = {.name = "schedule",
                              .point = "sqlite.schedule_resign.commit",
                              .run = run_resign,
                              .arg = &r,
                              .jobs = 1,
                              .frees = true};
    ls_sqlite_waiters_leave(&s->waiters, holder);
    int rc = ls_sqlite_write(s, &op, err);
    if (rc == 0 && r.led)
        ring(s);
    return rc;
}

/* fire ------------------------------------------------------------------------------------------------------------- */

static int ask_busy(struct ls_sqlite_tx *tx, struct lq_fire *f)
{
    struct ls_sqlite_queue *q = NULL;
    struct ls_sqlite_run r;
    int64_t seq;
    f->busy = false;
    if (f->busy_id.n == 0)
        return 0;
    int rc = ls_sqlite_tx_queue(tx, f->busy_queue, &q);
    if (rc < 0 || !q)
        return rc;
    rc = ls_sqlite_job_find(tx, q, f->busy_id, &seq, &r);
    f->busy = rc == 0 && !ls_sqlite_state_is_ended(r.state);
    return LB_MIN(rc, 0);
}

static int move_record(struct ls_sqlite_tx *tx, const struct lq_fire *f, int64_t revision)
{
    const struct lq_schedule_half *half = f->busy ? &f->held : &f->fired;
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_SCHEDULE_MOVE);
    if (!st)
        return ls_sqlite_tx_fail(tx);
    ls_sqlite_bind_text(st, 1, f->id);
    ls_sqlite_bind(st, 2, half->state);
    ls_sqlite_bind(st, 3, half->due_ms);
    ls_sqlite_bind(st, 4, revision);
    ls_sqlite_bind_blob(st, 5, half->memo);
    return ls_sqlite_tx_do(tx, st);
}

/* The jobs that were put, as the schedule's. */
static int tell_fired(struct ls_sqlite_tx *tx, const struct lq_fire *f)
{
    struct ls_sqlite_queue *q = NULL;
    int rc = ls_sqlite_tx_queue(tx, f->put[0].queue, &q);
    for (size_t i = 0; rc == 0 && q && q->events > 0 && i < f->n; i++) {
        struct lq_ev e = {.type = LADE_EVENT_FIRED,
                          .job = f->put[i].id,
                          .kind = lq_body_kind(f->put[i].body),
                          .reason = f->id};
        if (f->put[i].outcome == LADE_DONE)
            ls_sqlite_event(tx, q, &e);
    }
    return rc;
}

static int run_fire(struct ls_sqlite_tx *tx, void *arg)
{
    struct lq_fire *f = arg;
    struct scheduler s = {0};
    int64_t revision;
    int rc = ask_revision(tx, f->id, &revision);
    if (rc == 0)
        rc = read_scheduler(tx, &s);
    if (rc < 0)
        return rc;
    if (revision == 0 || revision != (int64_t)f->revision ||
        (f->fence != 0 && f->fence < (uint64_t)s.fence))
        return LADE_STALE;
    rc = ask_busy(tx, f);
    if (rc == 0 && !f->busy && f->n > 0)
        rc = ls_sqlite_put_run(tx, f->put, f->n);
    if (rc == 0 && !f->busy && f->n > 0)
        rc = tell_fired(tx, f);
    LB_FAULT("sqlite.schedule.fired");
    s.revision++;
    if (rc == 0)
        rc = move_record(tx, f, s.revision);
    return rc < 0 ? rc : write_scheduler(tx, &s);
}

static int fire(struct lq_store *store, struct lq_fire *f, lade_err *err)
{
    struct ls_sqlite_op op = {.name = "schedule",
                              .point = "sqlite.schedule_fire.commit",
                              .run = run_fire,
                              .arg = f,
                              .jobs = f->n + 1};
    return ls_sqlite_write(ls_sqlite_of(store), &op, err);
}

/* waiting ---------------------------------------------------------------------------------------------------------- */

static int wait(struct lq_store *store, const char *holder, int64_t deadline, lade_err *err)
{
    return ls_sqlite_waiters_wait(&ls_sqlite_of(store)->waiters, holder, deadline, err);
}

static void wake(struct lq_store *store, const char *holder)
{
    ls_sqlite_waiters_wake(&ls_sqlite_of(store)->waiters, holder);
}

const struct lq_schedule_ops ls_sqlite_schedule_ops = {
    .put = put,
    .remove = remove_record,
    .get = get,
    .list = list,
    .tick = tick,
    .fire = fire,
    .resign = resign,
    .leader = leader,
    .wait = wait,
    .wake = wake,
};
