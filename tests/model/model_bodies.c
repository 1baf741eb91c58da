/* model_bodies.c - bodies and results of jobs: real envelopes, damaged ones, and bytes that are none */
#include <string.h>

#include "model_ops.h"
#include "queue/event.h"
#include "queue/job.h"
#include "queue/key_store.h"

#define NOW_MS INT64_C(1700000000000)

static struct lb_slice draw_bytes(struct world *w, size_t n)
{
    uint8_t *p = tm_alloc(w, n + 1);
    for (size_t i = 0; i < n; i++)
        p[i] = (uint8_t)tm_below(w, 256);
    return lb_slice(p, n);
}

static struct lb_slice keep(struct world *w, struct lb_buf *b)
{
    LB_CHECK(!b->failed);
    uint8_t *p = tm_alloc(w, b->n + 1);
    memcpy(p, b->p, b->n);
    struct lb_slice body = lb_slice(p, b->n);
    lb_buf_fini(b);
    return body;
}

/*
 * As the engine writes it. It tells its key in dressed runs only: who tells none is never in company, and turns are then exact.
 */
static struct lb_slice draw_envelope(struct world *w, int level, struct lb_slice key)
{
    static const char *const kinds[] = {"mail", "resize:thumb", "x"};
    struct lb_buf b;
    /* Where events are compared none is too long: its kind is then known to nobody. */
    struct lb_slice payload = draw_bytes(w, tm_below(w, !w->told && tm_chance(w, 5) ? 120
                                                        : tm_chance(w, 90)          ? 8
                                                                                    : 16));
    lade_job_spec spec = {.kind = kinds[tm_below(w, LB_ARRAY_LEN(kinds))],
                          .payload = {payload.p, payload.n},
                          .priority = LADE_PRIORITY_MAX - level};
    if (w->dressed)
        spec.key = (lade_bytes){key.p, key.n};
    if (tm_chance(w, 20))
        spec.max_attempts = 1 + (int)tm_below(w, 9);
    if (tm_chance(w, 10))
        spec.result_ttl = LADE_SECOND;
    lb_buf_init(&b);
    lq_job_encode(&b, &spec, NOW_MS + (int64_t)tm_below(w, 1000000));
    return keep(w, &b);
}

struct lb_slice tm_draw_result(struct world *w)
{
    return draw_bytes(w, 2 + tm_below(w, 40));
}

struct lb_slice tm_draw_body(struct world *w, int level, struct lb_slice key)
{
    if (tm_chance(w, 80))
        return draw_envelope(w, level, key);
    bool damaged = tm_chance(w, 50); /* cut off, or with a byte that is another */
    struct lb_slice body = damaged ? draw_envelope(w, level, (struct lb_slice){0})
                                   : draw_bytes(w, 2 + tm_below(w, 40));
    uint8_t *p = tm_alloc(w, body.n);
    memcpy(p, body.p, body.n);
    if (damaged && tm_chance(w, 50))
        body.n = 2 + tm_below(w, body.n - 2);
    else if (damaged)
        p[2 + tm_below(w, body.n - 2)] = (uint8_t)tm_below(w, 256);
    p[0] = 1;
    p[LQ_BODY_LEVEL_AT] = (uint8_t)('0' + level);
    return lb_slice(p, body.n);
}

struct lb_slice tm_draw_edit(struct world *w, struct lb_slice old)
{
    struct lb_buf b;
    struct lb_slice payload = draw_bytes(w, tm_below(w, 12));
    lade_err err = {0};
    lb_buf_init(&b);
    if (lq_job_replace_payload(&b, old, payload, &err) == 0)
        return keep(w, &b);
    lb_buf_fini(&b);
    /* One that cannot be read: of its own level, kind and key, which no edit changes. */
    static const uint8_t none[] = {1, '4'};

    uint8_t *body = tm_alloc(w, LB_MAX(old.n, sizeof(none)) + 1);
    if (old.n < sizeof(none))
        old = lb_slice(none, sizeof(none));
    memcpy(body, old.p, old.n);
    body[old.n] = (uint8_t)tm_below(w, 256);
    struct lb_slice longer = lb_slice(body, old.n + 1);
    bool same = lb_slice_eq(lq_body_kind(longer), lq_body_kind(old)) &&
                lb_slice_eq(lq_body_key(longer), lq_body_key(old));
    return same ? longer : lb_slice(body, old.n);
}
