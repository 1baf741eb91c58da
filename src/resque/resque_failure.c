/* resque_failure.c - see resque_failure.h */
#include "resque/resque_failure.h"

#include <stdio.h>

#include "base/base.h"
#include "base/ident.h"
#include "resque/resque_json.h"
#include "resque/resque_time.h"

void rq_uuid(char out[37])
{
    uint64_t a = (lb_rand() & ~UINT64_C(0xf000)) | UINT64_C(0x4000);
    uint64_t b = (lb_rand() & ~(UINT64_C(3) << 62)) | UINT64_C(1) << 63;
    (void)snprintf(out, 37, "%08x-%04x-%04x-%04x-%012llx", (unsigned)(a >> 32),
                   (unsigned)(a >> 16 & 0xffff), (unsigned)(a & 0xffff), (unsigned)(b >> 48),
                   (unsigned long long)(b & 0xffffffffffff));
}

static void add_time(struct lb_buf *out, const char *name, enum rq_time_form form, int64_t seconds)
{
    char text[RQ_TIME_LEN];
    rq_time_write(text, form, seconds);
    lb_buf_add_fmt(out, "\"%s\":\"%s\"", name, text);
}

static void add_payload(struct lb_buf *out, struct lb_slice payload)
{
    struct rq_json r = rq_json(payload);
    struct lb_slice value = rq_json_value(&r);
    bool whole = rq_json_done(&r);
    lb_buf_add_str(out, ",\"payload\":");
    if (whole) {
        lb_buf_add(out, value.p, value.n);
    } else {
        lb_buf_add_str(out, "{\"class\":null,\"args\":[");
        rq_json_quote_lossy(out, payload);
        lb_buf_add_str(out, "]}");
    }
}

static void add_text(struct lb_buf *out, const char *name, struct lb_slice text)
{
    lb_buf_add_fmt(out, ",\"%s\":", name);
    rq_json_quote_lossy(out, text);
}

void rq_failure_write(struct lb_buf *out, const struct rq_failure *f)
{
    char uuid[37];
    if (!f->failure_id)
        rq_uuid(uuid);
    lb_buf_add_byte(out, '{');
    add_time(out, "failed_at", RQ_TIME_FAILED, f->failed_at);
    add_payload(out, f->payload);
    add_text(out, "exception", lb_slice_str(f->exception));
    add_text(out, "error", f->error);
    lb_buf_add_str(out, ",\"backtrace\":[");
    for (size_t i = 0; i < f->n_backtrace && i < RQ_BACKTRACE_MAX; i++) {
        if (i > 0)
            lb_buf_add_byte(out, ',');
        rq_json_quote_lossy(out, lb_slice_str(f->backtrace[i]));
    }
    lb_buf_add_byte(out, ']');
    add_text(out, "worker", f->worker);
    add_text(out, "queue", f->queue);
    add_text(out, "failure_id", lb_slice_str(f->failure_id ? f->failure_id : uuid));
    lb_buf_add_byte(out, '}');
}

bool rq_failure_read(struct rq_failure_raw *out, struct lb_slice entry)
{
    *out = (struct rq_failure_raw){0};

    const struct {
        const char *name;
        struct lb_slice *at;
    } members[] = {{"failed_at", &out->failed_at}, {"payload", &out->payload},
                   {"exception", &out->exception}, {"error", &out->error},
                   {"worker", &out->worker},       {"queue", &out->queue}};
    struct rq_json r = rq_json(entry);
    if (!rq_json_enter(&r, '{'))
        return false;
    while (rq_json_next(&r, '}')) {
        struct lb_slice name = rq_json_name(&r), value = rq_json_value(&r);
        for (size_t i = 0; !r.bad && i < LB_ARRAY_LEN(members); i++)
            if (rq_json_is(name, members[i].name))
                *members[i].at = value;
    }
    return rq_json_done(&r);
}

void rq_working_write(struct lb_buf *out, struct lb_slice queue, int64_t run_at,
                      struct lb_slice payload)
{
    lb_buf_add_str(out, "{\"queue\":");
    rq_json_quote_lossy(out, queue);
    lb_buf_add_byte(out, ',');
    add_time(out, "run_at", RQ_TIME_RUN_AT, run_at);
    add_payload(out, payload);
    lb_buf_add_byte(out, '}');
}

void rq_prune_text(struct lb_buf *out, struct lb_slice worker, struct lb_slice klass)
{
    lb_buf_add_str(out, "Worker ");
    lb_buf_add(out, worker.p, worker.n);
    lb_buf_add_str(out, " did not gracefully exit while processing ");
    lb_buf_add(out, klass.p, klass.n);
}
