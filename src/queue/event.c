#include "queue/event.h"

#include <string.h>

#include "base/base.h"
#include "base/ident.h"
#include "queue/names.h"

static const char digit[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"; /* of ids: ident.h */

static const char *const names[LADE_N_EVENT_TYPES] = {
    "waiting",  "active",  "completed", "failed", "retrying", "dead", "cancelled",
    "progress", "stalled", "drained",   "paused", "resumed",  "fired"};

const char *lade_event_type_name(enum lade_event_type type)
{
    return type >= 1 && type <= LADE_N_EVENT_TYPES ? names[type - 1] : NULL;
}

const char *lq_event_reason(enum lq_reason reason)
{
    return lq_reason_name(reason);
}

struct lb_slice lq_cut_utf8(struct lb_slice text, size_t max)
{
    if (text.n <= max)
        return text;
    /* Back over the bytes of a character whose last ones would be cut: at most three. What is no UTF-8 is cut anywhere. */
    size_t n = max;
    while (n > 0 && max - n < 4 && (text.p[n] & 0xc0) == 0x80)
        n--;
    return lb_slice(text.p, (text.p[n] & 0xc0) == 0x80 ? max : n);
}

static size_t cut(struct lb_slice s)
{
    return lq_cut_utf8(s, 255).n;
}

size_t lq_event_size(const struct lq_ev *e)
{
    return 1 + 6 + 3 * 10 + cut(e->job) + cut(e->kind) + cut(e->reason);
}

uint8_t *lq_event_write_number(uint8_t *p, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        *p++ = (uint8_t)(v | 0x80);
    *p++ = (uint8_t)v;
    return p;
}

static uint8_t *write_text(uint8_t *p, struct lb_slice s)
{
    size_t n = cut(s);
    p = lq_event_write_number(p, n);
    if (n > 0)
        memcpy(p, s.p, n);
    return p + n;
}

uint8_t *lq_event_write(uint8_t *p, const struct lq_ev *e)
{
    *p++ = (uint8_t)e->type;
    p = write_text(p, e->job);
    p = write_text(p, e->kind);
    p = lq_event_write_number(p, e->attempt);
    p = lq_event_write_number(p, (uint64_t)LB_MAX(e->value, 0));
    return write_text(p, e->reason);
}

size_t lq_event_stretch_size(const struct lq_settle *first, size_t n)
{
    return LQ_EVENT_PREFIX + 64 + 256 + n * (64 + 512) + first->kind.n;
}

uint8_t *lq_event_stretch_begin(uint8_t *p, enum lade_event_type type,
                                const struct lq_settle *first, unsigned place, size_t n)
{
    *p++ = (uint8_t)(type | LQ_EVENT_STRETCH);
    memcpy(p, first->id.p, LQ_EVENT_PREFIX);
    p = lq_event_write_number(p + LQ_EVENT_PREFIX, place);
    p = lq_event_write_number(p, n);
    p = write_text(p, first->kind);
    return lq_event_write_number(p, first->attempt);
}

/* What is left of a batch; `ok` turns false where it cannot be read. */
struct scan {
    const uint8_t *p, *end;
    bool ok;
};

static uint64_t read_number(struct scan *s)
{
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (s->p == s->end)
            break;
        uint8_t c = *s->p++;
        v |= (uint64_t)(c & 0x7f) << shift;
        if (c < 0x80)
            return v;
    }
    s->ok = false;
    return 0;
}

static struct lb_slice read_bytes(struct scan *s, size_t n)
{
    if ((size_t)(s->end - s->p) < n) {
        s->ok = false;
        n = 0;
    }
    struct lb_slice b = {s->p, n};
    s->p += n;
    return b;
}

static struct lb_slice read_text(struct scan *s)
{
    return read_bytes(s, (size_t)read_number(s));
}

/* Where the events of a batch go. */
struct sink {
    struct lq_event_vec *out;
    uint64_t id, last, after; /* id: of the event that comes next */
    int64_t at_ms;
};

static void give(struct sink *k, const struct lq_ev *e)
{
    if (k->id > k->last) /* more than the batch is said to have */
        return;
    if (k->id > k->after) {
        struct lq_ev *to = &k->out->event[k->out->n++];
        *to = *e;
        to->id = k->id;
        to->at_ms = k->at_ms;
    }
    k->id++;
}

/* False when out of memory. */
static bool read_stretch(struct scan *s, struct sink *k, struct lq_ev *e)
{
    struct lb_slice prefix = read_bytes(s, LQ_EVENT_PREFIX);
    uint64_t place = read_number(s), n = read_number(s);
    e->kind = read_text(s);
    e->attempt = (uint32_t)read_number(s);
    if (n > LQ_PACK_JOBS)
        s->ok = false;
    for (uint64_t i = 0; s->ok && i < n; i++) {
        uint8_t *id = lb_arena_alloc(&k->out->arena, LB_ULID_LEN);
        if (!id)
            return false;
        memcpy(id, prefix.p, LQ_EVENT_PREFIX);
        id[LQ_EVENT_PREFIX] = (uint8_t)digit[(place + i) >> 5 & 31];
        id[LQ_EVENT_PREFIX + 1] = (uint8_t)digit[(place + i) & 31];
        e->job = lb_slice(id, LB_ULID_LEN);
        e->value = (int64_t)read_number(s);
        give(k, e);
    }
    return true;
}

static void read_one(struct scan *s, struct sink *k, struct lq_ev *e)
{
    e->job = read_text(s);
    e->kind = read_text(s);
    e->attempt = (uint32_t)read_number(s);
    e->value = (int64_t)read_number(s);
    e->reason = read_text(s);
    if (s->ok)
        give(k, e);
}

bool lq_events_expand(struct lq_event_vec *out, struct lb_slice batch, uint64_t last, uint64_t n,
                      int64_t at_ms, uint64_t after)
{
    size_t room = (size_t)LB_MIN(n, batch.n + 1); /* a record has more than a byte, a value one */
    struct lq_ev *grown = lb_arena_alloc(&out->arena, (out->n + room) * sizeof(*grown));
    if (!grown)
        return false;
    if (out->n > 0)
        memcpy(grown, out->event, out->n * sizeof(*grown));
    out->event = grown;
    struct scan s = {batch.p, batch.p + batch.n, true};
    struct sink k = {out, last - n + 1, last, after, at_ms};
    while (s.ok && s.p < s.end && k.id <= k.last) {
        uint8_t type = *s.p++;
        struct lq_ev e = {.type = type & 0x7f};
        if (!(type & LQ_EVENT_STRETCH))
            read_one(&s, &k, &e);
        else if (!read_stretch(&s, &k, &e))
            return false;
    }
    return true;
}

struct lb_slice lq_body_kind(struct lb_slice body)
{
    /* version, level, the head of an array of up to 15, then a string of up to 31 or 255 bytes: job.h */
    if (body.n < 4 || body.p[0] != 1 || (body.p[2] & 0xf0) != 0x90)
        return (struct lb_slice){0};
    size_t n = 0, at = 4;
    if ((body.p[3] & 0xe0) == 0xa0)
        n = body.p[3] & 0x1f;
    else if (body.p[3] == 0xd9 && body.n > 4)
        n = body.p[at++];
    if (n > body.n - at)
        n = 0;
    return lb_slice(body.p + at, n);
}

uint32_t lq_history_next_attempt(struct lb_slice history)
{
    if (history.n < LQ_HISTORY_COUNTS_AT + LQ_HISTORY_COUNTS_SIZE)
        return 1;
    const uint8_t *p = history.p + LQ_HISTORY_COUNTS_AT;
    return (uint32_t)p[0] + ((uint32_t)p[1] << 8) + 1;
}

size_t lq_words_page(const struct lq_words *ask, size_t kept, size_t *skip)
{
    if (ask->start >= 0) {
        *skip = (size_t)LB_MIN((uint64_t)ask->start, (uint64_t)kept);
    } else {
        uint64_t back = (uint64_t) - (ask->start + 1) + 1; /* INT64_MIN too */
        *skip = back >= kept ? 0 : kept - (size_t)back;
    }
    return LB_MIN(ask->limit, kept - *skip);
}
