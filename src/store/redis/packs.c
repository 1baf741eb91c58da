#include "store/redis/packs.h"

#include <endian.h>
#include <string.h>

#include "base/base.h"
#include "base/ident.h"
#include "queue/event.h"
#include "queue/flow.h"

#define HEAD 8

static const char digit[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

static int value_of(uint8_t c)
{
    const char *at = c ? strchr(digit, c) : NULL;
    return at ? (int)(at - digit) : -1;
}

/* Where the number of a step begins in its id; 0 for ids of no flow. */
static size_t step_at(struct lb_slice id)
{
    const uint8_t *sign = id.n > 0 ? memchr(id.p, LQ_FLOW_SIGN, id.n) : NULL;
    return sign ? (size_t)(sign - id.p) + 1 : 0;
}

int ls_redis_place_of(struct lb_slice id)
{
    if (id.n != LS_REDIS_PACK_ID || step_at(id) > 0) {
        struct lb_slice flow;
        uint32_t step;
        return lq_flow_split(id, &flow, &step) ? (int)step : -1;
    }
    int high = value_of(id.p[LS_REDIS_PACK_ID - 2]), low = value_of(id.p[LS_REDIS_PACK_ID - 1]);
    return high < 0 || low < 0 ? -1 : 32 * high + low;
}

size_t ls_redis_id_at(char out[LADE_ID_MAX + 1], struct lb_slice name, size_t place)
{
    size_t shared = step_at(name);
    if (shared > 1 && shared <= LADE_FLOW_ID_MAX + 1)
        return lq_flow_join(out, lb_slice(name.p, shared - 1), (uint32_t)place);
    if (name.n < LS_REDIS_PACK_ID - 2) {
        out[0] = 0;
        return 0;
    }
    memcpy(out, name.p, LS_REDIS_PACK_ID - 2);
    out[LS_REDIS_PACK_ID - 2] = digit[place / 32 % 32];
    out[LS_REDIS_PACK_ID - 1] = digit[place % 32];
    out[LS_REDIS_PACK_ID] = 0;
    return LS_REDIS_PACK_ID;
}

bool ls_redis_id_follows(struct lb_slice a, struct lb_slice b)
{
    size_t shared = step_at(a);
    if (shared > 0) {
        int step = ls_redis_place_of(a);
        return step_at(b) == shared && memcmp(a.p, b.p, shared) == 0 && step >= 0 &&
               ls_redis_place_of(b) == step + 1;
    }
    if (a.n != LS_REDIS_PACK_ID || b.n != LS_REDIS_PACK_ID ||
        memcmp(a.p, b.p, LS_REDIS_PACK_ID - 2) != 0)
        return false;
    int place = ls_redis_place_of(a);
    return place >= 0 && ls_redis_place_of(b) == place + 1;
}

static uint8_t *write_u32(uint8_t *to, uint32_t v)
{
    v = htole32(v);
    memcpy(to, &v, sizeof(v));
    return to + sizeof(v);
}

static uint32_t read_u32(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof(v));
    return le32toh(v);
}

void ls_redis_pack_name(char out[LS_REDIS_PACK_NAME_MAX + 1], struct lb_slice id)
{
    size_t shared = step_at(id);
    if (shared > 0) {
        size_t n = LB_MIN(shared, LS_REDIS_PACK_NAME_MAX);
        memcpy(out, id.p, n);
        out[n] = 0;
        return;
    }
    memcpy(out, id.p, LS_REDIS_PACK_NAME - 1);
    out[LS_REDIS_PACK_NAME - 1] = '+';
    out[LS_REDIS_PACK_NAME] = 0;
}

size_t ls_redis_pack_size(const struct lq_put *put, const uint32_t *order, size_t n)
{
    size_t size = HEAD + 4 * n;
    for (size_t i = 0; i < n; i++)
        size += put[order[i]].body.n + 1;
    return size;
}

static bool are_of_one_kind(const struct lq_put *put, const uint32_t *order, size_t n)
{
    struct lb_slice kind = lq_body_kind(put[order[0]].body);
    for (size_t i = 1; i < n; i++) {
        if (!lb_slice_eq(lq_body_kind(put[order[i]].body), kind))
            return false;
    }
    return kind.n > 0;
}

/* Writes body i, which ends at `end` with its zero, and its end. */
static uint8_t *write_body(uint8_t *to, uint8_t *bodies, uint32_t *end, struct lb_slice body)
{
    if (body.n > 0)
        memcpy(bodies + *end, body.p, body.n);
    *end += (uint32_t)body.n + 1;
    bodies[*end - 1] = 0;
    return write_u32(to, *end);
}

void ls_redis_pack_add(struct ls_redis_cmd *cmd, const struct lq_put *put, const uint32_t *order,
                       size_t n, bool looks)
{
    struct lb_slice first = put[order[0]].id;
    uint8_t *to = ls_redis_arg_room(cmd, ls_redis_pack_size(put, order, n));
    if (!to)
        return;
    to = write_u32(to, (uint32_t)ls_redis_place_of(first) | (uint32_t)n << 16);
    to = write_u32(to, looks && are_of_one_kind(put, order, n));
    uint8_t *bodies = to + 4 * n;
    uint32_t end = 0;
    for (size_t i = 0; i < n; i++)
        to = write_body(to, bodies, &end, put[order[i]].body);
}

void ls_redis_pack_write(struct lb_buf *b, const struct lb_slice *body, size_t n)
{
    size_t size = HEAD + 4 * n;
    bool alike = n > 0;
    for (size_t i = 0; i < n; i++) {
        size += body[i].n + 1;
        alike = alike && lb_slice_eq(lq_body_kind(body[i]), lq_body_kind(body[0]));
    }
    uint8_t *to = lb_buf_reserve(b, size);
    if (!to)
        return;
    b->n += size;
    to = write_u32(to, (uint32_t)n << 16);
    to = write_u32(to, alike && lq_body_kind(body[0]).n > 0);
    uint8_t *bodies = to + 4 * n;
    uint32_t end = 0;
    for (size_t i = 0; i < n; i++)
        to = write_body(to, bodies, &end, body[i]);
}

bool ls_redis_pack_read(struct ls_redis_pack *p, struct lb_slice bytes)
{
    if (bytes.n < HEAD)
        return false;
    uint32_t head = read_u32(bytes.p);
    *p = (struct ls_redis_pack){.first = head & 0xffff, .n = head >> 16};
    size_t from = HEAD + 4 * p->n;
    if (p->n == 0 || p->first + p->n > LS_REDIS_PLACES || bytes.n < from)
        return false;
    p->ends = lb_slice(bytes.p + HEAD, 4 * p->n);
    p->bodies = lb_slice(bytes.p + from, bytes.n - from);
    uint32_t last = 0;
    for (size_t i = 0; i < p->n; i++) {
        uint32_t end = read_u32(p->ends.p + 4 * i);
        if (end <= last || end > p->bodies.n || p->bodies.p[end - 1] != 0)
            return false;
        last = end;
    }
    return last == p->bodies.n;
}

struct lb_slice ls_redis_pack_body(const struct ls_redis_pack *p, size_t i)
{
    uint32_t from = i > 0 ? read_u32(p->ends.p + 4 * (i - 1)) : 0;
    uint32_t to = read_u32(p->ends.p + 4 * i);
    return lb_slice(p->bodies.p + from, to - from - 1);
}
