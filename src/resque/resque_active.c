/* resque_active.c - see resque_active.h */
#include "resque/resque_active.h"

#include "base/base.h"
#include "resque/resque_json.h"
#include "resque/resque_time.h"

#define NAME(name) #name,
const char *const rq_active_field[RQ_ACTIVE_N_FIELDS] = {RQ_ACTIVE_FIELDS(NAME)};

bool rq_active_is(const struct rq_job *job)
{
    return rq_json_is(job->klass, RQ_ACTIVE_WRAPPER);
}

static void read_member(struct rq_active *out, struct lb_slice name, struct lb_slice value)
{
    if (rq_json_is(name, "job_class"))
        out->job_class = value;
    else if (rq_json_is(name, "arguments"))
        out->arguments = value;
    int64_t number;
    for (size_t i = 0; i < RQ_ACTIVE_N_FIELDS; i++)
        if (rq_json_is(name, rq_active_field[i]) &&
            (value.p[0] == '"' || rq_json_int(value, &number)))
            out->field[i] = value;
}

const char *rq_active_read(struct rq_active *out, const struct rq_job *job)
{
    struct rq_json args = rq_json(job->args);
    *out = (struct rq_active){0};
    if (job->args.n == 0 || !rq_json_enter(&args, '[') || !rq_json_next(&args, ']') ||
        rq_json_peek(&args) != '{')
        return "args: must be an array of one object, the job of ActiveJob";
    struct lb_slice data = rq_json_value(&args);
    if (rq_json_next(&args, ']'))
        return "args: must be an array of one object, the job of ActiveJob";
    struct rq_json r = rq_json(data);
    (void)rq_json_enter(&r, '{');
    while (rq_json_next(&r, '}')) {
        struct lb_slice name = rq_json_name(&r), value = rq_json_value(&r);
        read_member(out, name, value);
    }
    if (out->job_class.n <= 2 || out->job_class.p[0] != '"')
        return "args[0].job_class: must be a string that is not empty";
    if (out->arguments.n == 0 || out->arguments.p[0] != '[')
        return "args[0].arguments: must be an array";
    return NULL;
}

static bool add_text(struct lb_buf *out, const char *name, struct lb_slice text)
{
    lb_buf_add_str(out, name);
    return rq_json_quote(out, text);
}

bool rq_active_write(struct lb_buf *out, const struct rq_active_spec *spec)
{
    char at[RQ_TIME_LEN];
    rq_time_write(at, RQ_TIME_RUN_AT, spec->enqueued_at);
    bool text = add_text(out, "[{\"job_class\":", spec->job_class) &&
                add_text(out, ",\"job_id\":", spec->job_id) &&
                add_text(out, ",\"provider_job_id\":null,\"queue_name\":", spec->queue);
    lb_buf_add_str(out, ",\"priority\":null,\"arguments\":");
    lb_buf_add(out, spec->arguments.p, spec->arguments.n);
    lb_buf_add_fmt(out,
                   ",\"executions\":0,\"exception_executions\":{},\"locale\":\"en\",\"timezone\":"
                   "\"UTC\",\"enqueued_at\":\"%s\"}]",
                   at);
    return text;
}
