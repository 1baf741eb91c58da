/* resque_job.c - see resque_job.h */
#include "resque/resque_job.h"

#include "base/err.h"
#include "resque/resque_json.h"

const char *rq_bad_text(enum rq_bad bad)
{
    switch (bad) {
    case RQ_FINE:
        return "is fine";
    case RQ_NOT_JSON:
        return "is not JSON in UTF-8";
    case RQ_NOT_OBJECT:
        return "is JSON, but not an object";
    case RQ_NO_CLASS:
        return "has no \"class\" that is a string";
    case RQ_BAD_ARGS:
        return "has \"args\" that are not an array";
    }
    return "";
}

static bool is_null(struct lb_slice raw)
{
    return raw.n == 4 && raw.p[0] == 'n';
}

enum rq_bad rq_job_read(struct rq_job *out, struct lb_slice entry)
{
    struct rq_json r = rq_json(entry);
    *out = (struct rq_job){0};
    if (rq_json_peek(&r) != '{') {
        (void)rq_json_value(&r);
        return rq_json_done(&r) ? RQ_NOT_OBJECT : RQ_NOT_JSON;
    }
    (void)rq_json_enter(&r, '{');
    while (rq_json_next(&r, '}')) {
        struct lb_slice name = rq_json_name(&r);
        struct lb_slice value = rq_json_value(&r);
        if (r.bad)
            break;
        if (rq_json_is(name, "class"))
            out->klass = value;
        else if (rq_json_is(name, "args"))
            out->args = value;
        else if (out->extra_at.n == 0)
            out->extra_at = name;
    }
    if (!rq_json_done(&r))
        return RQ_NOT_JSON;
    if (is_null(out->args))
        out->args = (struct lb_slice){0};
    if (out->klass.n <= 2 || out->klass.p[0] != '"')
        return RQ_NO_CLASS;
    return out->args.n > 0 && out->args.p[0] != '[' ? RQ_BAD_ARGS : RQ_FINE;
}

int rq_job_write(struct lb_buf *out, struct lb_slice klass, struct lb_slice args, lade_err *err)
{
    if (klass.n == 0)
        return lb_fail(err, LADE_EINVAL, "enqueue", "the class of a Resque job must not be empty");
    lb_buf_add_str(out, "{\"class\":");
    if (!rq_json_quote(out, klass))
        return lb_fail(err, LADE_EINVAL, "enqueue", "the class of a Resque job must be UTF-8");
    lb_buf_add_str(out, ",\"args\":");
    lb_buf_add(out, args.p, args.n);
    lb_buf_add_byte(out, '}');
    return out->failed ? lb_fail_nomem(err, "enqueue") : 0;
}
