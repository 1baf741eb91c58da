/* resque_delayed.c - see resque_delayed.h */
#include "resque/resque_delayed.h"

#include "resque/resque_json.h"

bool rq_delayed_write(struct lb_buf *out, struct lb_slice entry, struct lb_slice queue)
{
    lb_buf_add(out, entry.p, entry.n - 1); /* without its brace */
    lb_buf_add_str(out, ",\"queue\":");
    bool text = rq_json_quote(out, queue);
    lb_buf_add_byte(out, '}');
    return text;
}

struct members {
    struct lb_slice klass, custom, args, queue;
};

/* False when the item is no object of JSON. */
static bool read_members(struct members *m, struct lb_slice item)
{
    struct rq_json r = rq_json(item);
    if (!rq_json_enter(&r, '{'))
        return false;
    while (rq_json_next(&r, '}')) {
        struct lb_slice name = rq_json_name(&r), value = rq_json_value(&r);
        if (r.bad)
            break;
        if (rq_json_is(name, "class"))
            m->klass = value;
        else if (rq_json_is(name, "custom_job_class"))
            m->custom = value;
        else if (rq_json_is(name, "args"))
            m->args = value;
        else if (rq_json_is(name, "queue"))
            m->queue = value;
    }
    return rq_json_done(&r);
}

static bool is_text(struct lb_slice raw)
{
    return raw.n > 2 && raw.p[0] == '"';
}

const char *rq_delayed_read(struct lb_buf *entry, struct lb_buf *queue, struct lb_slice item)
{
    struct members m = {0};
    if (!read_members(&m, item))
        return "the item must be an object of JSON in UTF-8";
    if (is_text(m.custom) && !rq_json_is(m.custom, "Resque::Job"))
        m.klass = m.custom;
    if (!is_text(m.klass))
        return "class: must be a string that is not empty";
    if (!is_text(m.queue))
        return "queue: must be a string that is not empty; only Ruby could ask the class for its own";
    size_t at = queue->n;
    if (!rq_json_unquote(queue, m.queue) ||
        (queue->n > at && memchr(queue->p + at, 0, queue->n - at)))
        return "queue: must be text";
    bool none = m.args.n == 0 || (m.args.n == 4 && m.args.p[0] == 'n');
    bool array = !none && m.args.p[0] == '[';
    lb_buf_add_str(entry, "{\"class\":");
    lb_buf_add(entry, m.klass.p, m.klass.n);
    lb_buf_add_str(entry, array ? ",\"args\":" : ",\"args\":[");
    lb_buf_add(entry, m.args.p, none ? 0 : m.args.n);
    lb_buf_add_str(entry, array ? "}" : "]}");
    return NULL;
}
