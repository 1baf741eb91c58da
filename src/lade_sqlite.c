/*
 * lade_sqlite.c - <lade/sqlite.h>: engine and store together in a transaction of the user's
 *
 * Beside lade.c the only file that knows a store by name; see store/sqlite/foreign.h.
 */
#include <lade/sqlite.h>

#include "base/err.h"
#include "queue/ahead.h"
#include "queue/client.h"
#include "queue/effect.h"
#include "store/sqlite/foreign.h"

int lade_sqlite_enqueue(lade *q, sqlite3 *db, const char *schema, const lade_job_spec *spec,
                        lade_id *id, lade_err *err)
{
    LQ_REFUSE_NULL(q, "sqlite_enqueue");
    LQ_REFUSE_NULL(db, "sqlite_enqueue");
    LQ_REFUSE_NULL(spec, "sqlite_enqueue");
    struct lq_put put;
    struct lb_buf body;
    lade_id made;
    int rc = lq_client_draft(q, spec, &put, &made, &body, err);
    if (rc == 0)
        rc = ls_sqlite_foreign_put(q->store, db, schema, &put, 1, err);
    if (rc == LADE_FULL)
        rc = lq_bound_refuse(q, &put, 1, err);
    if (rc == 0 && put.outcome == LADE_DUPLICATE)
        rc = LADE_DUPLICATE;
    if (rc >= 0 && id)
        (void)snprintf(id->text, sizeof(id->text), "%s", rc == 0 ? made.text : put.holder);
    lb_buf_fini(&body);
    return rc;
}

int lade_sqlite_complete(lade_job *job, sqlite3 *db, const char *schema, lade_err *err)
{
    LQ_REFUSE_NULL(job, "sqlite_complete");
    LQ_REFUSE_NULL(db, "sqlite_complete");
    struct lq_settle it = {.queue = job->queue,
                           .id = lb_slice_of(job->leased->id),
                           .fence = job->leased->fence,
                           .to = LQ_TO_COMPLETED,
                           .result = lb_buf_slice(&job->result),
                           .reason = LQ_REASON_NONE};
    if ((lade_job_cancelled(job) && atomic_load(&job->lost)) || lq_ahead_ask(job) != 0)
        return LADE_STALE;
    int rc = ls_sqlite_foreign_settle(job->worker->q->store, db, schema, &it, err);
    if (rc == 0)
        rc = it.outcome;
    return rc == 0 ? lq_effect_beside(job, true, err) : rc;
}

struct effect {
    const lade_job *job;
    const char *key;
    lade_bytes value;
};

static int add_effect(void *ctx, struct lb_slice old, struct lb_buf *out)
{
    const struct effect *e = ctx;
    return lq_effect_add(e->job, old, e->key, e->value, out);
}

int lade_sqlite_effect(lade_job *job, sqlite3 *db, const char *schema, const char *key,
                       lade_bytes value, lade_err *err)
{
    LQ_REFUSE_NULL(db, "sqlite_effect");
    int rc = lq_effect_check(job, key, value, err);
    if (rc == 0)
        rc = lq_effect_beside(job, false, err);
    if (rc != 0)
        return rc;
    struct effect e = {job, key, value};
    struct lq_note note = {
        .queue = job->queue, .id = lb_slice_of(job->leased->id), .fence = job->leased->fence};
    rc = ls_sqlite_foreign_note(job->worker->q->store, db, schema, &note, add_effect, &e, err);
    return rc == 0 ? note.outcome : rc;
}

void lade_sqlite_committed(lade *q, sqlite3 *db)
{
    if (q && db)
        ls_sqlite_foreign_committed(q->store, db);
}
