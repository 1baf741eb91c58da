/* resque_envelope.c - between the engine's envelope and what lies in a Resque queue */
#include "base/err.h"
#include "base/mem.h"
#include "queue/job.h"
#include "resque/resque_json.h"
#include "store/resque/resque_inner.h"

/* Resque limits no job in time; the longest that the engine knows. */
#define TIMEOUT (36500 * LADE_DAY)

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
    if (put->when != LQ_WHEN_NOW)
        return refuse(err, put->when == LQ_WHEN_IN ? "in" : "at", "time to run at");
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
    if (job->discard_dead)
        return refuse(err, "discard_dead", "way to vanish when it fails");
    return 0;
}

static int write_entry(struct lb_buf *out, const struct lq_job *job, lade_err *err)
{
    struct lb_buf args;
    lb_buf_init(&args);
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
    else
        rc = rq_job_write(out, lb_slice_str(job->kind), lb_buf_slice(&args), err);
    lb_buf_fini(&args);
    return rc;
}

int ls_resque_entry_write(struct lb_buf *out, const struct lq_put *put, lade_err *err)
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
        rc = write_entry(out, &job, err);
    lb_free(copy);
    return rc;
}

bool ls_resque_body_write(struct lb_buf *out, const struct rq_job *job, int64_t now_ms)
{
    struct lb_buf klass;
    lb_buf_init(&klass);
    bool text = rq_json_unquote(&klass, job->klass);
    lb_buf_add_byte(&klass, 0);
    text = text && !klass.failed && strlen((const char *)klass.p) + 1 == klass.n;
    if (text) {
        struct lb_slice args = job->args.n > 0 ? job->args : lb_slice_str("[]");
        lade_job_spec spec = {.kind = (const char *)klass.p,
                              .payload = {args.p, args.n},
                              .max_attempts = 1,
                              .timeout = TIMEOUT};
        lq_job_encode(out, &spec, now_ms);
    }
    lb_buf_fini(&klass);
    return text && !out->failed;
}
