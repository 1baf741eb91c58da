/* resque_envelope.c - between the engine's envelope and what lies in a Resque queue */
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "queue/job.h"
#include "resque/resque_active.h"
#include "resque/resque_delayed.h"
#include "resque/resque_json.h"
#include "store/resque/resque_inner.h"

/* Resque limits no job in time; the longest that the engine knows. */
#define TIMEOUT    (36500 * LADE_DAY)
#define HEADER_MAX 1024 /* bytes of a member of ActiveJob's that becomes a header */

static int refuse(lade_err *err, const char *field, const char *what)
{
    return lb_fail(
        err, LADE_EUNSUPPORTED, "enqueue",
        "%s: a Resque job has no %s, only a class and its arguments; leave it out, or use a "
        "sqlite: or redis:// store",
        field, what);
}

static int check_put(const struct lq_put *put, lade_err *err)
{
    if (!put->fresh)
        return refuse(err, "id", "id");
    if (put->level != LQ_LEVEL_DEFAULT)
        return refuse(err, "priority", "priority");
    if (put->unique.n > 0)
        return refuse(err, "unique", "unique key");
    if (put->key.n > 0)
        return refuse(err, "key", "key");
    return 0;
}

static int check_job(const struct lq_job *job, lade_err *err)
{
    if (job->max_attempts != LQ_MAX_ATTEMPTS_DEFAULT && job->max_attempts != 1)
        return refuse(err, "max_attempts", "second attempt");
    if (job->timeout_ms != LQ_TIMEOUT_DEFAULT_MS)
        return refuse(err, "timeout", "timeout");
    if (job->backoff.type != LADE_BACKOFF_DEFAULT)
        return refuse(err, "backoff", "second attempt");
    if (job->n_headers > 0)
        return refuse(err, "header", "headers");
    if (job->content_type[0] && strcmp(job->content_type, "application/json") != 0)
        return refuse(err, "content_type", "content type but JSON");
    if (job->result_ttl_ms > 0)
        return refuse(err, "result_ttl", "results");
    if (job->discard_dead)
        return refuse(err, "discard_dead", "way to vanish when it fails");
    return 0;
}

/* The args of ActiveJob's wrapper. */
static int wrap(struct lb_buf *out, struct lb_slice args, const struct ls_resque_entry *e,
                const struct lq_put *put, const struct lq_job *job, lade_err *err)
{
    struct rq_active_spec spec = {.job_class = lb_slice_str(job->kind),
                                  .job_id = put->id,
                                  .queue = lb_slice_str(put->queue),
                                  .arguments = args,
                                  .enqueued_at = e->now_ms / 1000};
    if (!rq_active_write(out, &spec))
        return lb_fail(err, LADE_EINVAL, "enqueue",
                       "kind: must be UTF-8, the job_class of ActiveJob");
    return out->failed ? lb_fail_nomem(err, "enqueue") : 0;
}

static int write_entry(struct lb_buf *out, const struct ls_resque_entry *e,
                       const struct lq_put *put, const struct lq_job *job, lade_err *err)
{
    struct lb_buf args, wrapped;
    lb_buf_init(&args);
    lb_buf_init(&wrapped);
    int rc = 0;
    if (job->payload.n == 0)
        lb_buf_add_str(&args, "[]");
    else
        rc = rq_json_rewrite(&args, job->payload, NULL);
    if (rc == -LADE_EINVAL || (rc == 0 && !args.failed && args.p[0] != '['))
        rc = lb_fail(err, LADE_EINVAL, "enqueue",
                     "payload: must be a JSON array, the arguments of %.60s, as [1,\"two\"]",
                     job->kind);
    else if (rc < 0 || args.failed)
        rc = lb_fail_nomem(err, "enqueue");
    else if (e->active)
        rc = wrap(&wrapped, lb_buf_slice(&args), e, put, job, err);
    if (rc == 0)
        rc = rq_job_write(out, lb_slice_str(e->active ? RQ_ACTIVE_WRAPPER : job->kind),
                          lb_buf_slice(e->active ? &wrapped : &args), err);
    lb_buf_fini(&args);
    lb_buf_fini(&wrapped);
    return rc;
}

/* The entry, and of a delayed job what the scheduler keeps of it. */
static int write_item(struct lb_buf *out, const struct ls_resque_entry *e, const struct lq_put *put,
                      const struct lq_job *job, lade_err *err)
{
    if (!e->delayed)
        return write_entry(out, e, put, job, err);
    struct lb_buf entry;
    lb_buf_init(&entry);
    int rc = write_entry(&entry, e, put, job, err);
    if (rc == 0 && !rq_delayed_write(out, lb_buf_slice(&entry), lb_slice_str(put->queue)))
        rc = lb_fail(err, LADE_EINVAL, "enqueue", "queue: must be UTF-8");
    lb_buf_fini(&entry);
    return rc == 0 && out->failed ? lb_fail_nomem(err, "enqueue") : rc;
}

int ls_resque_entry_write(struct lb_buf *out, const struct ls_resque_entry *e,
                          const struct lq_put *put, lade_err *err)
{
    int rc = check_put(put, err);
    if (rc < 0)
        return rc;
    uint8_t *copy = lb_malloc(put->body.n + 1);
    if (!copy)
        return lb_fail_nomem(err, "enqueue");
    memcpy(copy, put->body.p, put->body.n);
    copy[put->body.n] = 0;
    struct lq_job job;
    rc = lq_job_decode((struct lb_mut){copy, put->body.n}, &job, err);
    if (rc == 0)
        rc = check_job(&job, err);
    if (rc == 0)
        rc = write_item(out, e, put, &job, err);
    lb_free(copy);
    return rc;
}

/* What a string says, and a NUL. False when it is none, or has a NUL of its own. */
static bool add_text(struct lb_buf *out, struct lb_slice raw)
{
    size_t at = out->n;
    bool text = rq_json_unquote(out, raw);
    lb_buf_add_byte(out, 0);
    return text && !out->failed && strlen((const char *)out->p + at) + at + 1 == out->n;
}

/* The members of ActiveJob's hash that are there, each a header; values lie in `text`. */
static size_t add_headers(struct lb_buf *text, const struct rq_active *active,
                          size_t at[RQ_ACTIVE_N_FIELDS], lade_header header[RQ_ACTIVE_N_FIELDS])
{
    size_t n = 0;
    for (size_t i = 0; i < RQ_ACTIVE_N_FIELDS; i++) {
        struct lb_slice raw = active->field[i];
        size_t from = text->n;
        if (raw.n == 0 || raw.n > HEADER_MAX)
            continue;
        bool fine = raw.p[0] == '"' ? add_text(text, raw) : true;
        if (raw.p[0] != '"') {
            lb_buf_add(text, raw.p, raw.n);
            lb_buf_add_byte(text, 0);
        }
        if (!fine)
            continue; /* no text that a header could hold */
        at[n] = from;
        header[n++].name = rq_active_field[i];
    }
    return n;
}

/* `klass` and `args` as the engine is to have them. */
static const char *encode_body(struct lb_buf *out, struct lb_slice klass, struct lb_slice args,
                               const struct rq_active *active, int64_t now_ms)
{
    struct lb_buf text;
    size_t at[RQ_ACTIVE_N_FIELDS], n = 0;
    lade_header header[RQ_ACTIVE_N_FIELDS];
    lb_buf_init(&text);
    const char *bad = add_text(&text, klass) ? NULL : rq_bad_text(RQ_NO_CLASS);
    if (!bad && active)
        n = add_headers(&text, active, at, header);
    if (!bad && !text.failed) {
        for (size_t i = 0; i < n; i++)
            header[i].value = (const char *)text.p + at[i];
        lade_job_spec spec = {.kind = (const char *)text.p,
                              .payload = {args.p, args.n},
                              .headers = n > 0 ? header : NULL,
                              .n_headers = n,
                              .max_attempts = 1,
                              .timeout = TIMEOUT};
        lq_job_encode(out, &spec, now_ms);
    }
    out->failed = out->failed || text.failed;
    lb_buf_fini(&text);
    return out->failed ? NULL : bad;
}

const char *ls_resque_body_write(struct lb_buf *out, const struct rq_job *job, int64_t now_ms)
{
    if (!rq_active_is(job))
        return encode_body(out, job->klass, job->args.n > 0 ? job->args : lb_slice_str("[]"), NULL,
                           now_ms);
    struct rq_active active;
    const char *bad = rq_active_read(&active, job);
    return bad ? bad : encode_body(out, active.job_class, active.arguments, &active, now_ms);
}

int ls_resque_passed_on(struct lq_store *base, const struct lq_put *put, struct lb_buf *out,
                        lade_err *err)
{
    struct ls_resque_store *s = ls_resque_of(base);
    struct ls_resque_entry e = {s->active, false, lb_clock_wall() / LADE_MILLISECOND};
    struct rq_job job;
    struct lb_buf entry;
    lb_buf_init(&entry);
    int rc = ls_resque_entry_write(&entry, &e, put, err);
    enum rq_bad bad = rc == 0 ? rq_job_read(&job, lb_buf_slice(&entry)) : RQ_FINE;
    const char *why = rc == 0 && bad == RQ_FINE ? ls_resque_body_write(out, &job, e.now_ms) : NULL;
    if (bad != RQ_FINE || why)
        rc = lb_fail(err, LADE_EINVAL, "inline", "the entry %s", why ? why : rq_bad_text(bad));
    lb_buf_fini(&entry);
    return rc;
}
