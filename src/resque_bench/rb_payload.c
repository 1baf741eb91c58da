/* rb_payload.c - the job of the load: what is put, and whether what came out is one of ours; see server.h */
#include <string.h>

#include "base/clock.h"
#include "resque/resque_job.h"
#include "resque/resque_json.h"
#include "resque_bench/rb_server.h"

void rb_own_key(const struct rb_server *s, struct lb_buf *out, const char *kind, size_t number)
{
    rq_key(&s->keys, out, kind);
    lb_buf_add_fmt(out, "%s:bench.%zu:%s", s->host.name, number, s->o->queue);
}

void rb_job_write(struct lb_buf *out, const struct rb_options *o, uint64_t index, int64_t wall_ns)
{
    lb_buf_add_str(out, "{\"class\":\"" RB_CLASS "\",\"args\":[\"");
    size_t n = (size_t)o->payload_size;
    uint8_t *p = lb_buf_reserve(out, n);
    if (p) {
        static const char filler[] = "string";
        for (size_t i = 0; i < n; i++)
            p[i] = (uint8_t)filler[i % (sizeof(filler) - 1)];
        out->n += n;
    }
    lb_buf_add_fmt(out, "\",%llu,{\"mike\":\"bob\"},%lld]}", (unsigned long long)index,
                   (long long)wall_ns);
}

/* The four arguments; false when there are others or none. */
static bool read_args(struct lb_slice args, struct lb_slice arg[4])
{
    struct rq_json r = rq_json(args);
    size_t n = 0;
    if (args.n == 0 || !rq_json_enter(&r, '['))
        return false;
    while (rq_json_next(&r, ']')) {
        struct lb_slice value = rq_json_value(&r);
        if (n < 4)
            arg[n] = value;
        n++;
    }
    return !r.bad && n >= 4;
}

enum rb_entry rb_job_read(const struct rb_server *s, struct lb_slice entry, uint64_t *index,
                          int64_t *wall_ns)
{
    struct rq_job job;
    struct lb_slice arg[4];
    int64_t i;
    if (rq_job_read(&job, entry) != RQ_FINE || !read_args(job.args, arg) ||
        !rq_json_int(arg[3], wall_ns))
        return RB_BROKEN;
    bool ours = rq_json_is(job.klass, RB_CLASS) && job.extra_at.n == 0 && rq_json_int(arg[1], &i) &&
                i >= 0 && arg[2].n == 14 && s->put_at > 0 && *wall_ns >= s->put_at;
    if (!ours)
        return RB_FOREIGN;
    *index = (uint64_t)i;
    return RB_OURS;
}
