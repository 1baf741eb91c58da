/* op_say.c - what handlers say while they run: progress and log lines */
#include <string.h>

#include "base/base.h"
#include "base/err.h"
#include "base/fault.h"
#include "store/sqlite/events.h"
#include "store/sqlite/sqlite_impl.h"

struct note {
    struct lq_say *it;
    size_t n;
};

/* As stored; what is not there is as if nothing had been said. */
struct said {
    int64_t percent, at_ms, lines;
    struct lb_mut text; /* in the arena */
};

static int read_said(struct ls_sqlite_tx *tx, int64_t seq, struct lb_arena *arena, struct said *out)
{
    *out = (struct said){.percent = -1};
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_NOTE_GET);
    if (st)
        ls_sqlite_bind(st, 1, seq);
    int rc = ls_sqlite_tx_step(tx, st);
    if (rc <= 0)
        return rc;
    struct lb_slice text = ls_sqlite_column(st, 2);
    out->percent = sqlite3_column_int64(st, 0);
    out->at_ms = sqlite3_column_int64(st, 1);
    out->text = lb_arena_copy(arena, text.p, text.n);
    out->lines = sqlite3_column_int64(st, 3);
    (void)sqlite3_reset(st);
    return out->text.p ? 0 : lb_fail_nomem(tx->err, tx->op);
}

static int write_lines(struct ls_sqlite_tx *tx, int64_t seq, const struct lq_say *it,
                       int64_t before)
{
    int rc = 0;
    for (size_t i = 0; i < it->n_lines && rc == 0; i++) {
        sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_LINE_ADD);
        if (!st)
            return ls_sqlite_tx_fail(tx);
        ls_sqlite_bind(st, 1, seq);
        ls_sqlite_bind(st, 2, before + (int64_t)i + 1);
        ls_sqlite_bind(st, 3, it->line_ms[i]);
        /* A bound NULL would not be an empty text. */
        ls_sqlite_bind_blob(st, 4, it->line[i].n > 0 ? it->line[i] : lb_slice("", 0));
        rc = ls_sqlite_tx_do(tx, st);
    }
    int64_t oldest = before + (int64_t)it->n_lines - LADE_LOG_LINES_MAX;
    if (rc < 0 || oldest <= 0)
        return rc;
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_LINE_TRIM);
    if (!st)
        return ls_sqlite_tx_fail(tx);
    ls_sqlite_bind(st, 1, seq);
    ls_sqlite_bind(st, 2, oldest);
    return ls_sqlite_tx_do(tx, st);
}

static int write_said(struct ls_sqlite_tx *tx, int64_t seq, const struct said *said)
{
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_NOTE_SET);
    if (!st)
        return ls_sqlite_tx_fail(tx);
    struct lb_slice text = lb_slice_of(said->text);
    ls_sqlite_bind(st, 1, seq);
    ls_sqlite_bind(st, 2, said->percent);
    ls_sqlite_bind(st, 3, said->at_ms);
    ls_sqlite_bind_blob(st, 4, text.n > 0 ? text : lb_slice("", 0));
    ls_sqlite_bind(st, 5, said->lines);
    tx->notes = 1;
    return ls_sqlite_tx_do(tx, st);
}

static int note_job(struct ls_sqlite_tx *tx, struct ls_sqlite_queue *q, const struct lq_say *it,
                    int64_t seq)
{
    struct said said;
    int rc = read_said(tx, seq, &tx->arena, &said);
    if (rc == 0)
        rc = write_lines(tx, seq, it, said.lines);
    said.lines += (int64_t)it->n_lines;
    if (it->percent >= 0) {
        said.percent = it->percent;
        said.at_ms = tx->now_ms;
        said.text = lb_arena_copy(&tx->arena, it->text.p, it->text.n);
        if (!said.text.p)
            return lb_fail_nomem(tx->err, tx->op);
    }
    q->ring_watchers = true;
    if (q->events > 0 && it->percent >= 0)
        ls_sqlite_event(tx, q,
                        &(struct lq_ev){.type = LADE_EVENT_PROGRESS,
                                        .value = it->percent,
                                        .job = it->id,
                                        .kind = it->kind,
                                        .reason = it->text});
    return rc < 0 ? rc : write_said(tx, seq, &said);
}

static int run_note(struct ls_sqlite_tx *tx, void *arg)
{
    const struct note *n = arg;
    for (size_t i = 0; i < n->n; i++) {
        struct lq_say *it = &n->it[i];
        struct ls_sqlite_queue *q;
        struct ls_sqlite_run r;
        int64_t seq;
        it->outcome = LADE_STALE;
        int rc = ls_sqlite_tx_queue(tx, it->queue, &q);
        if (rc == 0 && q)
            rc = ls_sqlite_job_find(tx, q, it->id, &seq, &r);
        if (rc < 0)
            return rc;
        if (!q || rc != 0 || r.state != LADE_STATE_ACTIVE ||
            it->fence != (uint64_t)(r.pos + (seq - r.job)))
            continue;
        rc = note_job(tx, q, it, seq);
        if (rc < 0)
            return rc;
        it->outcome = LADE_DONE;
        LB_FAULT("sqlite.say.item");
    }
    return 0;
}

int ls_sqlite_say(struct lq_store *s, struct lq_say *it, size_t n, lade_err *err)
{
    struct note note = {it, n};
    struct ls_sqlite_op op = {
        .name = "say", .point = "sqlite.say.commit", .run = run_note, .arg = &note, .jobs = n};
    return n == 0 ? 0 : ls_sqlite_write(ls_sqlite_of(s), &op, err);
}

static int read_lines(struct ls_sqlite_tx *tx, int64_t seq, struct lq_words *out)
{
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_LINE_COUNT);
    if (st)
        ls_sqlite_bind(st, 1, seq);
    int rc = ls_sqlite_tx_step(tx, st);
    if (rc <= 0)
        return rc;
    size_t skip, want = lq_words_page(out, (size_t)sqlite3_column_int64(st, 0), &skip);
    (void)sqlite3_reset(st);
    out->line = lb_arena_alloc(out->arena, (want + 1) * sizeof(*out->line));
    st = out->line ? ls_sqlite_tx_stmt(tx, LS_SQLITE_LINE_GET) : NULL;
    if (!out->line)
        return lb_fail_nomem(tx->err, tx->op);
    if (st) {
        ls_sqlite_bind(st, 1, seq);
        ls_sqlite_bind(st, 2, (int64_t)skip);
        ls_sqlite_bind(st, 3, (int64_t)want);
    }
    while ((rc = ls_sqlite_tx_step(tx, st)) == 1) {
        struct lb_slice text = ls_sqlite_column(st, 2);
        struct lq_log_line *line = &out->line[out->n];
        *line =
            (struct lq_log_line){(uint64_t)sqlite3_column_int64(st, 0), sqlite3_column_int64(st, 1),
                                 lb_arena_copy(out->arena, text.p, text.n)};
        if (!line->text.p) {
            (void)sqlite3_reset(st);
            return lb_fail_nomem(tx->err, tx->op);
        }
        out->n++;
    }
    return rc;
}

static int read_notes(struct ls_sqlite_tx *tx, const char *queue, struct lb_slice id,
                      struct lq_words *out)
{
    struct ls_sqlite_queue *q;
    struct ls_sqlite_run r;
    struct said said;
    int64_t seq;
    int rc = ls_sqlite_tx_queue(tx, queue, &q);
    if (rc == 0)
        rc = q ? ls_sqlite_job_find(tx, q, id, &seq, &r) : LADE_NOT_FOUND;
    if (rc != 0)
        return rc;
    rc = read_said(tx, seq, out->arena, &said);
    if (rc < 0)
        return rc;
    out->percent = (int)said.percent;
    out->progress_ms = said.at_ms;
    out->text = said.text;
    out->total = (uint64_t)said.lines;
    return said.lines > 0 ? read_lines(tx, seq, out) : 0;
}

int ls_sqlite_words(struct lq_store *s, const char *queue, struct lb_slice id, struct lq_words *out,
                    lade_err *err)
{
    struct ls_sqlite *ss = ls_sqlite_of(s);
    struct ls_sqlite_tx tx;
    out->n = 0;
    int rc = ls_sqlite_read_enter(ss, &tx, "notes", err);
    if (rc == 0)
        rc = read_notes(&tx, queue, id, out);
    return ls_sqlite_read_leave(ss, &tx, rc);
}
