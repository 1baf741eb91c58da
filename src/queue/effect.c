/*
 * effect.c - effects that a handler records with its job
 *
 * They are records of the history (history.h), so a take brings them with the job, a store removes them with it, and no job
 * without any has more than it had. Recording writes the whole history anew, under the fence, between take and settle.
 *
 * While it is being written the job is CLAIMED (worker.h): run.c does not give up on it then, for the outcome that it would
 * write holds the history as it was before. It looks again when that is over.
 */
#include "queue/effect.h"

#include <string.h>

#include "base/arena.h"
#include "base/base.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "queue/ahead.h"
#include "queue/history.h"

struct lq_effects {
    struct lb_buf history; /* what job->leased->history points to, once one was recorded */
    struct lb_arena read;  /* the same, once it was read back */
    bool beside;    /* something was recorded in a transaction that lade does not see the end of */
    bool known;     /* and what became of it was read back */
    bool completed; /* the job was completed in one */
};

void lq_effects_free(struct lq_effects *e)
{
    if (!e)
        return;
    lb_buf_fini(&e->history);
    lb_arena_fini(&e->read);
    lb_free(e);
}

static struct lq_effects *effects_of(struct lade_job *job)
{
    if (!job->effects) {
        job->effects = lb_calloc(1, sizeof(*job->effects));
        if (job->effects) {
            lb_buf_init(&job->effects->history);
            lb_arena_init(&job->effects->read);
        }
    }
    return job->effects;
}

bool lade_effect_done(const lade_job *job, const char *key, lade_bytes *value)
{
    struct lq_record r;
    if (!job || !key)
        return false;
    if (!lq_history_effect(lb_slice_of(job->leased->history), lb_slice_str(key), &r, NULL))
        return false;
    if (value)
        *value = (lade_bytes){r.error.p, r.error.n};
    return true;
}

int lq_effect_check(const struct lade_job *job, const char *key, lade_bytes value, lade_err *err)
{
    LQ_REFUSE_NULL(job, "effect");
    LQ_REFUSE_NULL(key, "effect");
    size_t n = strlen(key);
    if (n == 0)
        return lb_fail(err, LADE_EINVAL, "effect",
                       "key is empty; each effect has a name of its own");
    if (n > LADE_EFFECT_KEY_MAX)
        return lb_fail(err, LADE_ETOOBIG, "effect", "key of %zu bytes; at most %d", n,
                       LADE_EFFECT_KEY_MAX);
    if (value.size > LADE_EFFECT_VALUE_MAX)
        return lb_fail(err, LADE_ETOOBIG, "effect", "value of %zu bytes; at most %d", value.size,
                       LADE_EFFECT_VALUE_MAX);
    if (!value.data && value.size > 0)
        return lb_fail(err, LADE_EINVAL, "effect", "value is NULL with a size of %zu", value.size);
    return 0;
}

int lq_effect_add(const struct lade_job *job, struct lb_slice old, const char *key,
                  lade_bytes value, struct lb_buf *out)
{
    struct lq_record r;
    size_t effects;
    if (lq_history_effect(old, lb_slice_str(key), &r, &effects))
        return LADE_DUPLICATE;
    if (effects >= LADE_EFFECTS_MAX)
        return LADE_FULL;
    lq_history_add_effect(out, old, lb_slice_str(key), lb_slice(value.data, value.size),
                          lq_client_now_ms(job->worker->q));
    return 0;
}

/* False when the job is not ours to write for any more. */
static bool hold(struct lade_job *job)
{
    uint8_t started = LQ_STAGE_STARTED;
    return !atomic_load(&job->lost) &&
           atomic_compare_exchange_strong(&job->stage, &started, LQ_STAGE_CLAIMED);
}

static void release(struct lade_job *job)
{
    atomic_store_explicit(&job->stage, LQ_STAGE_STARTED, memory_order_release);
    lr_event_raise(&job->worker->control); /* a deadline may have passed meanwhile */
}

static int write(struct lade_job *job, const char *key, lade_bytes value, lade_err *err)
{
    struct lb_buf made;
    lb_buf_init(&made);
    int rc = lq_effect_add(job, lb_slice_of(job->leased->history), key, value, &made);
    struct lq_note note = {.queue = job->queue,
                           .id = lb_slice_of(job->leased->id),
                           .fence = job->leased->fence,
                           .history = lb_buf_slice(&made)};
    if (made.failed)
        rc = lb_fail_nomem(err, "effect");
    if (rc == 0 && !job->inlined)
        rc = lq_note(job->worker->q->store, &note, 1, err);
    if (rc == 0)
        rc = note.outcome;
    if (rc == 0) {
        lb_buf_fini(&job->effects->history);
        job->effects->history = made;
        job->leased->history = (struct lb_mut){made.p, made.n};
    } else {
        lb_buf_fini(&made);
    }
    return rc;
}

/* What a transaction of the handler's own has written counts first. */
static int read_back(struct lade_job *job, lade_err *err)
{
    lq_effects_refresh(job);
    return lq_effects_open(job)
               ? lb_fail(err, LADE_EUNAVAILABLE, "effect",
                         "what this run recorded in its own transaction cannot be read back")
               : 0;
}

int lade_effect(lade_job *job, const char *key, lade_bytes value, lade_err *err)
{
    int rc = lq_effect_check(job, key, value, err);
    if (rc < 0)
        return rc;
    if (!job->worker->q->store->ops->note)
        return lb_fail(err, LADE_EUNSUPPORTED, "effect", "the store '%s' keeps no effects",
                       job->worker->q->store->ops->name);
    if (lade_effect_done(job, key, NULL))
        return LADE_DUPLICATE;
    rc = lq_ahead_await(job, err);
    if (rc != 0)
        return rc;
    if (!hold(job))
        return LADE_STALE;
    if (!effects_of(job))
        rc = lb_fail_nomem(err, "effect");
    else
        rc = lq_effects_open(job) ? read_back(job, err) : 0;
    if (rc == 0)
        rc = write(job, key, value, err);
    release(job);
    return rc;
}

int lade_effect_run(lade_job *job, const char *key, lade_effect_fn fn, void *ctx, lade_err *err)
{
    LQ_REFUSE_NULL(fn, "effect");
    int rc = lq_effect_check(job, key, LADE_STR(""), err);
    if (rc < 0)
        return rc;
    size_t n;
    struct lq_record r;
    if (lq_history_effect(lb_slice_of(job->leased->history), lb_slice_str(key), &r, &n))
        return LADE_DUPLICATE;
    if (n >= LADE_EFFECTS_MAX)
        return LADE_FULL;
    if (lade_job_cancelled(job))
        return LADE_STALE;
    rc = fn(job, ctx);
    return rc < 0 ? rc : lade_effect(job, key, LADE_STR(""), err);
}

int lq_effect_beside(struct lade_job *job, bool completed, lade_err *err)
{
    if (lq_ahead_ask(job) != 0 || !hold(job))
        return LADE_STALE;
    struct lq_effects *e = effects_of(job);
    if (e) {
        e->beside = true;
        e->known = false;
        e->completed = completed || e->completed;
    }
    release(job);
    return e ? 0 : lb_fail_nomem(err, "effect");
}

bool lq_effects_open(const struct lade_job *job)
{
    return job->effects && job->effects->beside && !job->effects->known;
}

bool lq_effects_completed(const struct lade_job *job)
{
    return job->effects && job->effects->completed;
}

void lq_effects_refresh(struct lade_job *job)
{
    struct lq_effects *e = job->effects;
    if (!e || !e->beside)
        return;
    struct lq_store *s = job->worker->q->store;
    struct lq_row_vec vec = {0};
    lb_arena_init(&vec.arena);
    int rc = s->ops->get(s, job->queue, lb_slice_of(job->leased->id), &vec, NULL);
    lb_arena_fini(&e->read);
    e->read = vec.arena;
    e->known = rc == 0 && vec.n == 1;
    if (e->known)
        job->leased->history = vec.row[0].history;
}
