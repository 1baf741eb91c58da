#include "queue/history.h"

#include <stdint.h>

#include "base/base.h"
#include "queue/pack.h"

static const char *const event_names[LQ_N_EVENTS] = {
    [LQ_EVENT_RETRY] = "retry",     [LQ_EVENT_DEAD] = "dead",
    [LQ_EVENT_TIMEOUT] = "timeout", [LQ_EVENT_CRASH] = "crash",
    [LQ_EVENT_SNOOZE] = "snooze",   [LQ_EVENT_UNROUTABLE] = "unroutable",
    [LQ_EVENT_CORRUPT] = "corrupt", [LQ_EVENT_CANCEL] = "cancel",
    [LQ_EVENT_EFFECT] = "effect",
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

/* Adds the records of `old`, up to the first that cannot be read, but for the oldest attempts when there are more than `keep`. */
static void add_kept(struct lb_buf *out, struct lb_slice old, size_t keep)
{
    struct lq_record r;
    size_t n = 0;
    for (size_t at = 0; lq_history_next(old, &at, &r);)
        n += r.event != LQ_EVENT_EFFECT;
    size_t drop = n > keep ? n - keep : 0;
    for (size_t at = 0, from = LQ_HISTORY_HEAD; lq_history_next(old, &at, &r); from = at) {
        if (r.event != LQ_EVENT_EFFECT && drop > 0)
            drop--;
        else
            lb_buf_add(out, old.p + from, at - from);
    }
}

static void add_count(struct lb_buf *out, int count)
{
    int c = LB_MIN(LB_MAX(count, 0), UINT16_MAX);
    lb_buf_add_byte(out, (uint8_t)(c & 0xff));
    lb_buf_add_byte(out, (uint8_t)(c >> 8));
}

static void add_head(struct lb_buf *out, int attempts, int crashes)
{
    lb_buf_add_byte(out, LQ_HISTORY_VERSION);
    lb_buf_add_byte(out, 0);
    add_count(out, attempts);
    add_count(out, crashes);
}

static void add_record(struct lb_buf *out, const struct lq_record *r)
{
    lq_pack_array(out, 6);
    lq_pack_uint(out, (uint64_t)LB_MAX(r->number, 0));
    lq_pack_uint(out, (uint64_t)LB_MAX(r->started_ms, 0));
    lq_pack_uint(out, (uint64_t)LB_MAX(r->ended_ms, 0));
    lq_pack_uint(out, (uint64_t)r->event);
    lq_pack_str(out, r->worker);
    lq_pack_bin(out, lb_slice(r->error.p, LB_MIN(r->error.n, LADE_ERROR_TEXT_MAX)));
}

void lq_history_append(struct lb_buf *out, struct lb_slice old, const struct lq_record *r,
                       int attempts, int crashes)
{
    add_head(out, attempts, crashes);
    add_kept(out, old, LQ_HISTORY_KEEP - 1);
    add_record(out, r);
}

void lq_history_add_effect(struct lb_buf *out, struct lb_slice old, struct lb_slice key,
                           struct lb_slice value, int64_t at_ms)
{
    struct lq_record r = {
        .ended_ms = at_ms, .event = LQ_EVENT_EFFECT, .worker = key, .error = value};
    add_head(out, lq_history_attempts(old), lq_history_crashes(old));
    add_kept(out, old, LQ_HISTORY_KEEP);
    add_record(out, &r);
}

bool lq_history_effect(struct lb_slice h, struct lb_slice key, struct lq_record *out, size_t *n)
{
    struct lq_record r;
    bool found = false;
    size_t effects = 0;
    for (size_t at = 0; lq_history_next(h, &at, &r);) {
        if (r.event != LQ_EVENT_EFFECT)
            continue;
        effects++;
        if (lb_slice_eq(r.worker, key)) {
            *out = r;
            found = true;
        }
    }
    if (n)
        *n = effects;
    return found;
}
