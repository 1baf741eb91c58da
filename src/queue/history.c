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
    if (lq_unpack_array(&u) < 6)
        return false;
    out->number = (int)lq_unpack_uint(&u);
    out->started_ms = (int64_t)lq_unpack_uint(&u);
    out->ended_ms = (int64_t)lq_unpack_uint(&u);
    out->event = (enum lq_event)lq_unpack_uint(&u);
    out->worker = lb_slice_of(lq_unpack_str(&u));
    out->error = lb_slice_of(lq_unpack_bin(&u));
    if (u.bad)
        return false;
    *at = (size_t)(u.p - h.p);
    return true;
}

/* Where the records begin that may stay when one more is to come. */
static size_t first_kept(struct lb_slice old)
{
    struct lq_record r;
    size_t n = 0;
    for (size_t at = 0; lq_history_next(old, &at, &r);)
        n++;
    size_t at = LQ_HISTORY_HEAD;
    for (; n >= LQ_HISTORY_KEEP; n--)
        (void)lq_history_next(old, &at, &r); /* it was readable a moment ago */
    return at;
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
        size_t from = first_kept(old);
        lb_buf_add(out, old.p + from, old.n - from);
    }
    lq_pack_array(out, 6);
    lq_pack_uint(out, (uint64_t)LB_MAX(r->number, 0));
    lq_pack_uint(out, (uint64_t)LB_MAX(r->started_ms, 0));
    lq_pack_uint(out, (uint64_t)LB_MAX(r->ended_ms, 0));
    lq_pack_uint(out, (uint64_t)r->event);
    lq_pack_str(out, r->worker);
    lq_pack_bin(out, lb_slice(r->error.p, LB_MIN(r->error.n, LADE_ERROR_TEXT_MAX)));
}
