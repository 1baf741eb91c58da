/* memory_tenant.c - keys: their numbers, their places, and whose turn it is; the rules are limit.h's in src/queue */
#include <string.h>

#include "base/mem.h"
#include "store/memory/memory_home.h"

struct ls_memory_tenant *ls_memory_tenant_find(const struct ls_memory_queue *q, struct lb_slice key)
{
    return lb_map_get(&q->tenants, key);
}

struct ls_memory_tenant *ls_memory_tenant_make(struct ls_memory_queue *q, struct lb_slice key)
{
    struct ls_memory_tenant *t = ls_memory_tenant_find(q, key);
    if (t)
        return t;
    t = lb_calloc(1, sizeof(*t) + key.n);
    if (!t)
        return NULL;
    t->queue = q;
    t->key = lb_slice(memcpy(t + 1, key.p, key.n), key.n);
    if (lb_map_put(&q->tenants, t->key, t) < 0) {
        lb_free(t);
        return NULL;
    }
    t->num = ++q->n_nums;
    lb_list_init(&t->touched);
    q->gated = true;
    return t;
}

void ls_memory_tenant_count(const struct ls_memory_job *j, enum lade_state state, int by)
{
    struct ls_memory_tenant *t = j->tenant;
    switch (state) {
    case LADE_STATE_READY:
        t->facts.ready += by;
        break;
    case LADE_STATE_ACTIVE:
        t->facts.active += by;
        break;
    case LADE_STATE_SCHEDULED:
    case LADE_STATE_RETRYING:
        t->waiting += by;
        t->facts.away += j->away ? by : 0;
        break;
    case LADE_STATE_COMPLETED:
    case LADE_STATE_DEAD:
    case LADE_STATE_CANCELLED:
    default:
        t->ended += by;
        break;
    }
}

struct lq_limit ls_memory_tenant_limit(const struct ls_memory_tenant *t)
{
    return lq_limit_join(&t->own, &t->queue->usual);
}

static struct ls_memory_tenant *tenant_of(struct ls_memory_node *n)
{
    return n ? LB_CONTAINER_OF(n, struct ls_memory_tenant, node) : NULL;
}

static void take_out(struct ls_memory_tenant *t)
{
    if (t->place == LQ_KEY_RING)
        ls_memory_order_del(&t->queue->ring, &t->node);
    if (t->place == LQ_KEY_TIMED)
        ls_memory_order_del(&t->queue->timed, &t->node);
    t->place = LQ_KEY_IDLE;
}

static void put_in(struct ls_memory_tenant *t, enum lq_key_place place, int64_t at)
{
    struct ls_memory_key key = {at, 0, t->key};
    take_out(t);
    t->place = place;
    if (place == LQ_KEY_RING)
        ls_memory_order_add(&t->queue->ring, &t->node, key);
    if (place == LQ_KEY_TIMED)
        ls_memory_order_add(&t->queue->timed, &t->node, key);
}

static void free_tenant(struct ls_memory_tenant *t)
{
    take_out(t);
    lb_list_del(&t->touched);
    t->queue->held -= t->held;
    (void)lb_map_del(&t->queue->tenants, t->key);
    lb_free(t);
}

static bool is_needed(const struct ls_memory_tenant *t, int64_t now_us)
{
    const struct lq_key_facts *k = &t->facts;
    return k->ready + k->active + t->waiting + t->ended + t->unplaced > 0 || k->paused ||
           k->until_us > now_us || k->tat_us > now_us || !lq_limit_is_zero(&t->own);
}

/* True when they differ from those that were noted before. */
static bool note_counts(struct ls_memory_tenant *t)
{
    const int64_t now[] = {t->facts.ready, t->facts.active, t->waiting, t->facts.away, t->ended};
    bool differ = memcmp(now, t->was, sizeof(now)) != 0;
    memcpy(t->was, now, sizeof(now));
    return differ;
}

void ls_memory_tenant_touch(struct ls_memory_home *h, struct ls_memory_tenant *t)
{
    if (lb_list_is_empty(&t->touched))
        lb_list_push_back(&h->touched, &t->touched);
}

void ls_memory_tenants_place(struct ls_memory_home *h, int64_t now_ms)
{
    for (struct lb_list *it; (it = lb_list_pop(&h->touched));) {
        struct ls_memory_tenant *t = LB_CONTAINER_OF(it, struct ls_memory_tenant, touched);
        if (note_counts(t))
            ls_memory_tenant_settle(h, t, now_ms);
    }
}

void ls_memory_leave_op(struct ls_memory_home *h, int64_t now_ms)
{
    ls_memory_tenants_place(h, now_ms);
    lr_mutex_unlock(&h->lock);
}

void ls_memory_tenant_settle(struct ls_memory_home *h, struct ls_memory_tenant *t, int64_t now_ms)
{
    struct ls_memory_queue *q = t->queue;
    struct lq_limit l = ls_memory_tenant_limit(t);
    enum lade_key_hold why;
    int64_t at;
    (void)note_counts(t);
    int64_t room = lq_key_room(&l, &t->facts, now_ms * 1000, &at, &why);
    if (room > 0 && t->place != LQ_KEY_RING) {
        put_in(t, LQ_KEY_RING, q->v + lq_limit_stride(&l));
        ls_memory_queue_wake(h, q, (size_t)room);
    } else if (room == 0 && why == LADE_HELD_NOT) {
        take_out(t);
    } else if (room == 0) {
        bool timed = at != LQ_NOT_BY_TIME;
        if (timed && t->place != LQ_KEY_TIMED)
            ls_memory_queue_wake(h, q, 1); /* to be told of the time */
        put_in(t, timed ? LQ_KEY_TIMED : LQ_KEY_PARKED, at);
    }
    int64_t held = t->place == LQ_KEY_TIMED || t->place == LQ_KEY_PARKED ? t->facts.ready : 0;
    q->held += held - t->held;
    t->held = held;
    if (!is_needed(t, now_ms * 1000))
        free_tenant(t);
}

void ls_memory_tenants_trim(struct ls_memory_queue *q, int64_t now_ms)
{
    size_t at = 0;
    for (struct ls_memory_tenant *t; (t = lb_map_next(&q->tenants, &at));) {
        if (!is_needed(t, now_ms * 1000)) {
            free_tenant(t);
            at = 0; /* the map has moved */
        }
    }
}

void ls_memory_tenants_free(struct ls_memory_queue *q)
{
    size_t at = 0;
    for (struct ls_memory_tenant *t; (t = lb_map_next(&q->tenants, &at)); at = 0)
        free_tenant(t);
}

void ls_memory_tenants_loosen(struct ls_memory_queue *q)
{
    size_t at = 0;
    for (struct ls_memory_tenant *t; (t = lb_map_next(&q->tenants, &at));) {
        if (t->place != LQ_KEY_TIMED && t->place != LQ_KEY_PARKED)
            continue;
        put_in(t, LQ_KEY_RING, 0);
        q->held -= t->held;
        t->held = 0;
    }
}

struct ls_memory_job *ls_memory_first_ready(const struct ls_memory_queue *q,
                                            const struct ls_memory_tenant *t)
{
    int64_t rank = t ? t->num * LQ_KEY_LEVELS : 0;
    struct ls_memory_key before = {rank, INT64_MIN, {NULL, 0}};
    struct ls_memory_job *j =
        ls_memory_job_of(ls_memory_order_after(&q->order[LADE_STATE_READY], before));
    return j && j->node.key.major < rank + LQ_KEY_LEVELS ? j : NULL;
}

/* Those whose time has come, back to the ring. */
static void ripen(struct ls_memory_home *h, struct ls_memory_queue *q, int64_t now_ms)
{
    struct ls_memory_tenant *t;
    while ((t = tenant_of(ls_memory_order_first(&q->timed))) && t->node.key.major <= now_ms * 1000)
        ls_memory_tenant_settle(h, t, now_ms);
}

struct ls_memory_turn ls_memory_turn_begin(struct ls_memory_home *h, struct ls_memory_queue *q,
                                           int64_t now_ms)
{
    int64_t at, now_us = now_ms * 1000;
    enum lade_key_hold why;
    size_t active = q->order[LADE_STATE_ACTIVE].n;
    ls_memory_tenants_place(h, now_ms);
    ripen(h, q, now_ms);
    if (lq_queue_room(&q->limit, (int64_t)active, q->tat_us, now_us, &at) == 0)
        return (struct ls_memory_turn){0};
    struct ls_memory_job *unkeyed =
        q->free_until_us <= now_us ? ls_memory_first_ready(q, NULL) : NULL;
    if (unkeyed && q->free_at <= q->v)
        q->free_at = q->v + LQ_STRIDE;
    for (;;) {
        struct ls_memory_tenant *t = tenant_of(ls_memory_order_first(&q->ring));
        if (unkeyed && (!t || q->free_at <= t->node.key.major))
            return (struct ls_memory_turn){unkeyed, NULL, q->free_at};
        if (!t)
            return (struct ls_memory_turn){0};
        struct lq_limit l = ls_memory_tenant_limit(t);
        if (lq_key_room(&l, &t->facts, now_us, &at, &why) > 0)
            return (struct ls_memory_turn){ls_memory_first_ready(q, t), t,
                                           LB_MAX(t->node.key.major, q->v)};
        ls_memory_tenant_settle(h, t, now_ms);
    }
}

void ls_memory_turn_end(struct ls_memory_home *h, struct ls_memory_queue *q,
                        const struct ls_memory_turn *turn, int64_t now_ms)
{
    struct ls_memory_tenant *t = turn->tenant;
    q->v = LB_MAX(q->v, turn->at);
    q->tat_us = lq_rate_spend(&q->limit, q->tat_us, now_ms * 1000, 1);
    if (!t) {
        q->free_at = turn->at + LQ_STRIDE;
        return;
    }
    struct lq_limit l = ls_memory_tenant_limit(t);
    t->facts.tat_us = lq_rate_spend(&l, t->facts.tat_us, now_ms * 1000, 1);
    if (t->place == LQ_KEY_RING)
        put_in(t, LQ_KEY_RING, turn->at + lq_limit_stride(&l));
    ls_memory_tenant_settle(h, t, now_ms);
}

int64_t ls_memory_queue_next_turn(const struct ls_memory_queue *q, int64_t now_ms)
{
    int64_t next = LQ_NOT_BY_TIME, at, now_us = now_ms * 1000;
    const struct ls_memory_tenant *t = tenant_of(ls_memory_order_first(&q->timed));
    bool unkeyed = ls_memory_first_ready(q, NULL) != NULL;
    size_t active = q->order[LADE_STATE_ACTIVE].n;
    if (t)
        next = t->node.key.major;
    if (unkeyed && q->free_until_us > now_us)
        next = LB_MIN(next, q->free_until_us);
    bool some = q->ring.n > 0 || (unkeyed && q->free_until_us <= now_us);
    if (some && lq_queue_room(&q->limit, (int64_t)active, q->tat_us, now_us, &at) == 0)
        next = LB_MIN(next, at);
    return next == LQ_NOT_BY_TIME ? 0 : (next + 999) / 1000;
}
