#include "queue/history.h"

#include <stdint.h>

#include "base/base.h"
#include "queue/pack.h"

static const char *const event_names[LQ_N_EVENTS] = {
    [LQ_EVENT_RETRY] = "retry",     [LQ_EVENT_DEAD] = "dead",
    [LQ_EVENT_TIMEOUT] = "timeout", [LQ_EVENT_CRASH] = "crash",
    [LQ_EVENT_SNOOZE] = "snooze",   [LQ_EVENT_UNROUTABLE] = "unroutable",
    [LQ_EVENT_CORRUPT] = "corrupt", [LQ_EVENT_CANCEL] = "cancel",
};

const char *lq_event_name(enum lq_event e)
{
    return (unsigned)e < LQ_N_EVENTS ? event_names[e] : "unknown";
}

static bool is_readable(struct lb_slice h)
{
    return h.n >= LQ_HISTORY_HEAD && h.p[0] == LQ_HISTORY_VERSION;
}

int lq_history_attempts(struct lb_slice h)
{
    return is_readable(h) ? h.p[2] | h.p[3] << 8 : 0;
}

int lq_history_crashes(struct lb_slice h)
{
    return is_readable(h) ? h.p[4] | h.p[5] << 8 : 0;
}

bool lq_history_next(struct lb_slice h, size_t *at, struct lq_record *out)
{
    if (*at == 0)
        *at = LQ_HISTORY_HEAD;
    if (!is_readable(h) || *at >= h.n)
        return false;
    struct lq_unpack u = {(uint8_t *)h.p + *at, (uint8_t *)h.p + h.n, false};
    uint32_t fields = lq_unpack_array(&u);
    if (fields < 6)
        return false;
    out->number = (int)lq_unpack_uint(&u);
    out->started_ms = (int64_t)lq_unpack_uint(&u);
    out->ended_ms = (int64_t)lq_unpack_uint(&u);
    out->event = (enum lq_event)lq_unpack_uint(&u);
    out->worker = lb_slice_of(lq_unpack_str(&u));
    out->error = lb_slice_of(lq_unpack_bin(&u));
    for (; fields > 6 && !u.bad; fields--) /* of a later writer */
        lq_unpack_skip(&u);
    if (u.bad)
        return false;
    *at = (size_t)(u.p - h.p);
    return true;
}

/* The records that may stay when one more is to come: the last ones, up to the first that cannot be read. */
static struct lb_slice kept_records(struct lb_slice old)
{
    struct lq_record r;
    size_t n = 0;
    size_t end = LQ_HISTORY_HEAD;
    for (size_t at = 0; lq_history_next(old, &at, &r); n++)
        end = at;
    size_t from = LQ_HISTORY_HEAD;
    for (; n >= LQ_HISTORY_KEEP; n--)
        (void)lq_history_next(old, &from, &r); /* it was readable a moment ago */
    return lb_slice(old.p + from, end - from);
}

static void add_count(struct lb_buf *out, int count)
{
    int c = LB_MIN(LB_MAX(count, 0), UINT16_MAX);
    lb_buf_add_byte(out, (uint8_t)(c & 0xff));
    lb_buf_add_byte(out, (uint8_t)(c >> 8));
}

void lq_history_append(struct lb_buf *out, struct lb_slice old, const struct lq_record *r,
                       int attempts, int crashes)
{
    lb_buf_add_byte(out, LQ_HISTORY_VERSION);
    lb_buf_add_byte(out, 0);
    add_count(out, attempts);
    add_count(out, crashes);
    if (is_readable(old)) {
        struct lb_slice kept = kept_records(old);
        lb_buf_add(out, kept.p, kept.n);
    }
    lq_pack_array(out, 6);
    lq_pack_uint(out, (uint64_t)LB_MAX(r->number, 0));
    lq_pack_uint(out, (uint64_t)LB_MAX(r->started_ms, 0));
    lq_pack_uint(out, (uint64_t)LB_MAX(r->ended_ms, 0));
    lq_pack_uint(out, (uint64_t)r->event);
    lq_pack_str(out, r->worker);
    lq_pack_bin(out, lb_slice(r->error.p, LB_MIN(r->error.n, LADE_ERROR_TEXT_MAX)));
}
