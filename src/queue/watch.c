#include "queue/watch.h"

#include <string.h>

#include "base/arena.h"
#include "base/base.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"

/* Longest sleep in the store without a look: what a ring that was lost costs. */
#define LOOK_AGAIN (LADE_MINUTE)
/* The same while more queues are watched than one wait can name. */
#define LOOK_OFTEN (100 * LADE_MILLISECOND)

/* Of one caller, on its stack. */
struct wait {
    struct lb_list node;
    uint64_t number;
    struct lq_watch *it;
    size_t n;
    bool done;
    struct lade_waiter *by;
    struct lr_cond wake;
};

void lq_hub_init(struct lq_hub *h, struct lq_store *store)
{
    *h = (struct lq_hub){.store = store};
    lr_mutex_init(&h->lock);
    lb_list_init(&h->waits);
}

static struct lq_lanes lanes_of(const struct lq_hub *h, const char **queue)
{
    for (size_t i = 0; i < h->n_lanes; i++)
        queue[i] = h->lanes + i * (LADE_NAME_MAX + 1);
    return (struct lq_lanes){queue, h->n_lanes};
}

void lq_hub_fini(struct lq_hub *h)
{
    const char *queue[LQ_LANES_MAX];
    assert(lb_list_is_empty(&h->waits));
    if (h->name[0])
        h->store->ops->unwatch(h->store, h->name, lanes_of(h, queue));
    lb_free(h->lanes);
    lr_mutex_fini(&h->lock);
}

static void note_lane(struct lq_hub *h, const char *queue)
{
    for (size_t i = h->n_lanes; i-- > 0;) {
        if (strcmp(h->lanes + i * (LADE_NAME_MAX + 1), queue) == 0)
            return;
    }
    h->n_seen++;
    if (h->n_lanes == LQ_LANES_MAX)
        return;
    (void)snprintf(h->lanes + h->n_lanes * (LADE_NAME_MAX + 1), LADE_NAME_MAX + 1, "%s", queue);
    h->n_lanes++;
}

/* What the store is shown: copies, because a caller may leave while it looks. */
struct look {
    struct lb_arena arena;
    struct lq_watch *it;
    uint64_t *number; /* of the wait each is of */
    size_t n;
};

/* Under the lock. */
static int copy_waits(struct lq_hub *h, struct look *l, lade_err *err)
{
    size_t n = 0;
    lb_list_each (at, &h->waits) {
        n += LB_CONTAINER_OF(at, struct wait, node)->n;
    }
    if (!h->lanes)
        h->lanes = lb_malloc(LQ_LANES_MAX * (LADE_NAME_MAX + 1));
    l->it = lb_arena_alloc(&l->arena, n * sizeof(*l->it));
    l->number = lb_arena_alloc(&l->arena, n * sizeof(*l->number));
    if (!h->lanes || !l->it || !l->number)
        return lb_fail_nomem(err, "wait");
    h->n_lanes = h->n_seen = 0;
    lb_list_each (at, &h->waits) {
        const struct wait *w = LB_CONTAINER_OF(at, struct wait, node);
        for (size_t i = 0; i < w->n; i++) {
            struct lq_watch *to = &l->it[l->n];
            *to = w->it[i];
            to->queue = lb_arena_strdup(&l->arena, to->queue);
            struct lb_mut id = lb_arena_copy(&l->arena, to->id.p, to->id.n);
            to->id = lb_slice_of(id);
            if (!to->queue || !id.p)
                return lb_fail_nomem(err, "wait");
            note_lane(h, to->queue);
            l->number[l->n++] = w->number;
        }
    }
    return 0;
}

/* Under the lock: what was found goes to those who still wait for it. */
static void hand_out(struct lq_hub *h, const struct look *l)
{
    size_t k = 0;
    lb_list_each (at, &h->waits) {
        struct wait *w = LB_CONTAINER_OF(at, struct wait, node);
        while (k < l->n && l->number[k] < w->number)
            k++;
        for (size_t i = 0; k < l->n && l->number[k] == w->number; k++, i++) {
            w->it[i].outcome = l->it[k].outcome;
            w->done = w->done || l->it[k].outcome != LADE_EMPTY;
        }
        if (w->done)
            lr_cond_wake_all(&w->wake);
    }
}

/* Comes and goes with the lock held. */
static int look_once(struct lq_hub *h, lade_err *err)
{
    struct look l = {0};
    lb_arena_init(&l.arena);
    h->changed = false;
    int rc = copy_waits(h, &l, err);
    lr_mutex_unlock(&h->lock);
    for (size_t i = 0; rc == 0 && i < l.n; i += LQ_TAKE_MAX)
        rc = h->store->ops->watch(h->store, h->name, l.it + i, LB_MIN(l.n - i, LQ_TAKE_MAX), err);
    lr_mutex_lock(&h->lock);
    if (rc >= 0)
        hand_out(h, &l);
    lb_arena_fini(&l.arena);
    return rc;
}

static bool is_over(const struct wait *me, int64_t deadline)
{
    return me->done || (me->by && me->by->cancelled) || lb_clock_mono() >= deadline;
}

/* Leads until its own wait is over. Comes and goes with the lock held. */
static int lead(struct lq_hub *h, struct wait *me, int64_t deadline, lade_err *err)
{
    const char *queue[LQ_LANES_MAX];
    int rc = 0;
    if (!h->name[0])
        lb_ulid(h->name, lb_clock_wall());
    while (rc >= 0) {
        rc = look_once(h, err);
        if (rc < 0 || is_over(me, deadline))
            break;
        if (h->changed)
            continue;
        int64_t often = h->n_seen > LQ_LANES_MAX ? LOOK_OFTEN : LOOK_AGAIN;
        h->sleeps = true;
        lr_mutex_unlock(&h->lock);
        rc = h->store->ops->wait(h->store, h->name, lanes_of(h, queue),
                                 LB_MIN(deadline, lb_deadline_in(often)), err);
        lr_mutex_lock(&h->lock);
        h->sleeps = false;
    }
    return rc < 0 ? rc : 0;
}

/* Under the lock: the leader looks at its waits again. */
static void stir(struct lq_hub *h)
{
    h->changed = true;
    if (h->sleeps)
        h->store->ops->wake(h->store, h->name);
}

int lq_hub_wait(struct lq_hub *h, struct lq_watch *it, size_t n, int64_t deadline,
                struct lade_waiter *w, lade_err *err)
{
    struct wait me = {.it = it, .n = n, .by = w};
    int rc = 0;
    lr_cond_init(&me.wake);
    lr_mutex_lock(&h->lock);
    me.number = ++h->number;
    lb_list_push_back(&h->waits, &me.node);
    stir(h);
    while (rc == 0 && !is_over(&me, deadline)) {
        if (h->led) {
            (void)lr_cond_wait(&me.wake, &h->lock, deadline);
            continue;
        }
        h->led = true;
        rc = lead(h, &me, deadline, err);
        h->led = false;
    }
    lb_list_del(&me.node);
    if (!h->led && !lb_list_is_empty(&h->waits)) /* somebody else leads on */
        lr_cond_wake_all(&LB_CONTAINER_OF(h->waits.next, struct wait, node)->wake);
    if (rc == 0 && !me.done)
        rc = w && w->cancelled ? LADE_STOPPED : LADE_TIMEOUT;
    lr_mutex_unlock(&h->lock);
    lr_cond_fini(&me.wake);
    return rc;
}

void lq_hub_cancel(struct lade_waiter *w)
{
    struct lq_hub *h = w->hub;
    lr_mutex_lock(&h->lock);
    w->cancelled = true;
    lb_list_each (at, &h->waits) {
        struct wait *other = LB_CONTAINER_OF(at, struct wait, node);
        if (other->by == w)
            lr_cond_wake_all(&other->wake);
    }
    stir(h);
    lr_mutex_unlock(&h->lock);
}

bool lq_waiter_is_cancelled(struct lade_waiter *w)
{
    lr_mutex_lock(&w->hub->lock);
    bool cancelled = w->cancelled;
    lr_mutex_unlock(&w->hub->lock);
    return cancelled;
}
