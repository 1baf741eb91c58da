#include "queue/limit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "queue/pack.h"

bool lq_limit_is_zero(const struct lq_limit *l)
{
    return l->concurrency == 0 && l->count == 0 && l->period_ms == 0 && l->burst == 0 &&
           l->weight == 0 && l->order == LADE_KEY_ORDER_DEFAULT;
}

struct lq_limit lq_limit_join(const struct lq_limit *own, const struct lq_limit *usual)
{
    struct lq_limit l = *usual;
    if (own->concurrency != 0)
        l.concurrency = own->concurrency;
    if (own->count != 0) {
        l.count = own->count;
        l.period_ms = own->period_ms;
        l.burst = own->burst;
    }
    if (own->weight != 0)
        l.weight = own->weight;
    if (own->order != LADE_KEY_ORDER_DEFAULT)
        l.order = own->order;
    if (l.concurrency < 0)
        l.concurrency = 0;
    if (l.count <= 0)
        l.count = l.period_ms = l.burst = 0;
    if (l.weight <= 0)
        l.weight = 1;
    if (l.order == LADE_KEY_ORDER_DEFAULT)
        l.order = LADE_KEY_ORDER_ANY;
    return l;
}

void lq_limit_write(const struct lq_limit *l, char text[LQ_LIMIT_TEXT])
{
    (void)snprintf(text, LQ_LIMIT_TEXT,
                   "%" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64,
                   l->concurrency, l->count, l->period_ms, l->burst, l->weight, l->order);
}

bool lq_limit_read(struct lb_slice text, struct lq_limit *out)
{
    char copy[LQ_LIMIT_TEXT];
    int64_t v[6];
    *out = (struct lq_limit){0};
    if (text.n == 0)
        return true;
    if (text.n >= sizeof(copy))
        return false;
    memcpy(copy, text.p, text.n);
    copy[text.n] = 0;
    char *at = copy;
    for (size_t i = 0; i < LB_ARRAY_LEN(v); i++) {
        char *end;
        v[i] = strtoll(at, &end, 10);
        if (end == at)
            return false;
        at = end;
    }
    *out = (struct lq_limit){v[0], v[1], v[2], v[3], v[4], v[5]};
    return *at == 0;
}

/* Rounded up: a rate is never exceeded. */
static int64_t step_us(const struct lq_limit *l)
{
    return (l->period_ms * 1000 + l->count - 1) / l->count;
}

int64_t lq_rate_room(const struct lq_limit *l, int64_t tat_us, int64_t now_us, int64_t *at_us)
{
    if (l->count <= 0)
        return INT64_MAX;
    int64_t step = step_us(l), filled = LB_MAX(tat_us - now_us, 0);
    int64_t n = (l->burst * step - filled) / step;
    if (n > 0)
        return n;
    *at_us = tat_us - (l->burst - 1) * step;
    return 0;
}

int64_t lq_rate_spend(const struct lq_limit *l, int64_t tat_us, int64_t now_us, int64_t n)
{
    return l->count <= 0 ? tat_us : LB_MAX(tat_us, now_us) + n * step_us(l);
}

int64_t lq_key_room(const struct lq_limit *joined, const struct lq_key_facts *k, int64_t now_us,
                    int64_t *at_us, enum lade_key_hold *why)
{
    *at_us = LQ_NOT_BY_TIME;
    *why = LADE_HELD_NOT;
    if (k->ready <= 0)
        return 0;
    int64_t room = k->ready;
    if (k->paused || k->until_us > now_us) {
        *why = LADE_HELD_PAUSED;
        *at_us = k->paused ? LQ_NOT_BY_TIME : k->until_us;
        return 0;
    }
    if (joined->order == LADE_KEY_ORDER_FIFO) {
        if (k->active > 0 || k->away > 0) {
            *why = LADE_HELD_ORDER;
            return 0;
        }
        room = 1;
    }
    if (joined->concurrency > 0) {
        room = LB_MIN(room, joined->concurrency - k->active);
        if (room <= 0) {
            *why = LADE_HELD_CONCURRENCY;
            return 0;
        }
    }
    room = LB_MIN(room, lq_rate_room(joined, k->tat_us, now_us, at_us));
    if (room <= 0) {
        *why = LADE_HELD_RATE;
        return 0;
    }
    *at_us = LQ_NOT_BY_TIME;
    return room;
}

int64_t lq_queue_room(const struct lq_limit *l, int64_t active, int64_t tat_us, int64_t now_us,
                      int64_t *at_us)
{
    *at_us = LQ_NOT_BY_TIME;
    if (l->concurrency > 0 && active >= l->concurrency)
        return 0;
    int64_t room = lq_rate_room(l, tat_us, now_us, at_us);
    return l->concurrency > 0 ? LB_MIN(room, l->concurrency - active) : room;
}

_Static_assert(LADE_KEY_MAX < sizeof(((lade_cursor *)0)->at), "a cursor holds a key");

void lq_key_to_cursor(lade_cursor *cursor, struct lb_slice key)
{
    size_t n = LB_MIN(key.n, (size_t)LADE_KEY_MAX);
    cursor->at[0] = (char)n;
    memcpy(cursor->at + 1, key.p, n);
}

size_t lq_key_of_cursor(const lade_cursor *cursor, uint8_t key[LADE_KEY_MAX])
{
    size_t n = LB_MIN((size_t)(unsigned char)cursor->at[0], (size_t)LADE_KEY_MAX);
    memcpy(key, cursor->at + 1, n);
    return n;
}

/* The size of the value that begins there, if it is whole and holds no others; else 0. Nearly all in front of a key are. */
static size_t size_of_value(const uint8_t *p, const uint8_t *end)
{
    static const uint8_t fixed[32] = {/* c0 to df of MessagePack */
                                      1, 0, 1, 1, 0, 0, 0, 0, 0, 0, 5, 9, 2, 3, 5, 9,
                                      2, 3, 5, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    size_t left = (size_t)(end - p), size = 1;
    if (left == 0)
        return 0;
    if (p[0] >= 0xc0 && p[0] <= 0xdf)
        size = fixed[p[0] - 0xc0];
    else if (p[0] >= 0x80 && p[0] < 0xa0)
        return 0;
    else if (p[0] >= 0xa0 && p[0] < 0xc0)
        size = 1 + (size_t)(p[0] & 31);
    if ((p[0] == 0xc4 || p[0] == 0xd9) && left >= 2)
        size = 2 + (size_t)p[1];
    return size <= left ? size : 0;
}

struct lb_slice lq_body_key(struct lb_slice body)
{
    enum { KEY_FIELD = 10 };

    if (body.n < 4 || body.p[0] != 1)
        return (struct lb_slice){0};

    union {
        const uint8_t *in;
        uint8_t *out;
    } p = {.in = body.p}; /* a reader of bytes that may be written, which does not write */
    struct lq_unpack u = {.p = p.out + 2, .end = p.out + body.n};
    uint32_t n = lq_unpack_array(&u);
    for (int i = 0; i < KEY_FIELD && n > KEY_FIELD && !u.bad; i++) {
        size_t size = size_of_value(u.p, u.end);
        u.p += size;
        if (size == 0)
            lq_unpack_skip(&u);
    }
    if (n <= KEY_FIELD || u.bad || lq_unpack_nil(&u))
        return (struct lb_slice){0};
    struct lb_mut key = lq_unpack_bin(&u);
    return u.bad || key.n > LADE_KEY_MAX ? (struct lb_slice){0} : lb_slice_of(key);
}
