#include "queue/batch.h"

#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"

#define EACH_NS    6000  /* how long a leader waits for each of those that were just released */
#define COMPANY_NS 80000 /* and for all of them */
#define FRESH_NS   60000 /* how long after their release they are expected */
#define WAKES_MAX \
    64 /* callers woken without the lock after one commit; those beyond are woken under it */

/* Where a caller sleeps. */
struct seat {
    struct lb_list node;
    struct lr_cond turn;
};

/* One call, in its caller's frame. */
struct waiter {
    struct lb_list node;
    struct seat *seat; /* NULL: it never slept */
    struct lq_put *put;
    size_t n;
    lade_err *err;
    int rc;
    bool done;   /* committed by a leader: rc is valid */
    bool leader; /* told to lead */
};

void lq_batch_init(struct lq_batch *b, struct lq_store *store)
{
    b->store = store;
    b->leading = false;
    b->n_waiting = b->expected = 0;
    b->released_at = 0;
    b->company = (struct lb_spin){0};
    lb_list_init(&b->waiting);
    lb_list_init(&b->seats);
    lr_mutex_init(&b->lock);
}

void lq_batch_fini(struct lq_batch *b)
{
    assert(lb_list_is_empty(&b->waiting) && !b->leading);
    for (struct lb_list *it; (it = lb_list_pop(&b->seats));) {
        struct seat *s = LB_CONTAINER_OF(it, struct seat, node);
        lr_cond_fini(&s->turn);
        lb_free(s);
    }
    lr_mutex_fini(&b->lock);
}

static struct waiter *waiter_of(struct lb_list *node)
{
    return LB_CONTAINER_OF(node, struct waiter, node);
}

/* Moves to `group` what one commit carries: the oldest calls, whole. Returns their jobs. */
static size_t gather(struct lq_batch *b, struct lb_list *group)
{
    size_t total = 0;
    lb_list_each_safe (it, &b->waiting) {
        struct waiter *w = waiter_of(it);
        if (total > 0 && total + w->n > LQ_BATCH_JOBS)
            break;
        total += w->n;
        lb_list_del(it);
        lb_list_push_back(group, it);
        b->n_waiting--;
    }
    return total;
}

static void commit_one(struct lq_batch *b, struct waiter *w)
{
    w->rc = lq_put(b->store, w->put, w->n, w->err);
}

/* True when the failure says that nothing was written and that it may be the fault of one call only. */
static bool is_worth_splitting(int rc)
{
    return rc < 0 && rc != -LADE_EUNAVAILABLE && rc != -LADE_EBUSY && rc != -LADE_ECLOSED;
}

/* Commits calls together; each gets its own items' outcomes. */
static void commit_group(struct lq_batch *b, struct lb_list *group, size_t total)
{
    assert(!lb_list_is_empty(group)); /* a leader is itself waiting */
    struct waiter *first = waiter_of(group->next);
    if (first->n == total) {
        commit_one(b, first);
        return;
    }
    struct lq_put *all = lb_malloc(total * sizeof(*all));
    lade_err err = {0};
    int rc = -LADE_ENOMEM;
    if (all) {
        size_t at = 0;
        lb_list_each (it, group) {
            memcpy(all + at, waiter_of(it)->put, waiter_of(it)->n * sizeof(*all));
            at += waiter_of(it)->n;
        }
        rc = lq_put(b->store, all, total, &err);
    }
    size_t at = 0;
    lb_list_each (it, group) {
        struct waiter *w = waiter_of(it);
        if (is_worth_splitting(rc) || rc == LADE_FULL) { /* full for all: not for each */
            commit_one(b, w);
            continue;
        }
        w->rc = rc;
        if (rc < 0 && w->err)
            *w->err = err;
        if (rc >= 0)
            memcpy(w->put, all + at, w->n * sizeof(*all));
        at += w->n;
    }
    lb_free(all);
}

/* Callers to wake. Only their seats are touched: a caller may be gone before it is woken. */
struct wakes {
    struct seat *seat[WAKES_MAX];
    size_t n;
};

/* With the lock held, after what w waits for has come true. */
static void plan_wake(struct wakes *k, const struct waiter *w)
{
    if (!w->seat)
        return;
    if (k->n < WAKES_MAX)
        k->seat[k->n++] = w->seat;
    else
        lr_cond_wake_one(&w->seat->turn);
}

/* Lock held; names who leads next, if somebody waits. */
static void pass_on(struct lq_batch *b, struct wakes *k)
{
    b->leading = !lb_list_is_empty(&b->waiting);
    if (!b->leading)
        return;
    struct waiter *next = waiter_of(b->waiting.next);
    next->leader = true;
    plan_wake(k, next);
}

/* Lock held at both ends: gives those that the last commit released a moment to come back. */
static void wait_for_company(struct lq_batch *b)
{
    int64_t now = b->expected > 1 ? lb_clock_mono() : 0;
    b->company.time = (int32_t)LB_MIN(b->expected * EACH_NS, (size_t)COMPANY_NS);
    if (b->n_waiting >= b->expected || now - b->released_at > FRESH_NS ||
        !lb_spin_begin(&b->company, now))
        return;
    lr_mutex_unlock(&b->lock);
    do {
        lb_spin_yield();
        now = lb_clock_mono();
    } while (b->n_waiting < b->expected && lb_spin_goes_on(&b->company, now));
    /* most of them are worth it */
    lb_spin_end(&b->company, now, 4 * b->n_waiting >= 3 * b->expected);
    lr_mutex_lock(&b->lock);
}

/* Called with the lock held and `leading` ours; returns without it, the caller's own call committed. */
static void lead(struct lq_batch *b)
{
    struct lb_list group;
    struct wakes wakes = {.n = 0};
    lb_list_init(&group);
    wait_for_company(b);
    size_t total = gather(b, &group);
    lr_mutex_unlock(&b->lock);
    commit_group(b, &group, total);
    lr_mutex_lock(&b->lock);
    b->expected = b->n_waiting;
    b->released_at = lb_clock_mono();
    pass_on(b, &wakes); /* whoever leads next is woken first */
    lb_list_each_safe (it, &group) {
        struct waiter *w = waiter_of(it);
        lb_list_del(it);
        w->done = true;
        b->expected++;
        plan_wake(&wakes, w);
    }
    lr_mutex_unlock(&b->lock);
    for (size_t i = 0; i < wakes.n; i++)
        lr_cond_wake_one(&wakes.seat[i]->turn);
}

static struct seat *take_seat(struct lq_batch *b)
{
    struct lb_list *it = lb_list_pop(&b->seats);
    if (it)
        return LB_CONTAINER_OF(it, struct seat, node);
    struct seat *s = lb_malloc(sizeof(*s));
    if (s)
        lr_cond_init(&s->turn);
    return s;
}

/* With the lock held: sleeps until the call is committed or has to lead. False without memory: then it is not in the batch. */
static bool wait_turn(struct lq_batch *b, struct waiter *w)
{
    w->seat = take_seat(b);
    if (!w->seat) {
        lb_list_del(&w->node);
        b->n_waiting--;
        return false;
    }
    while (!w->done && !w->leader)
        (void)lr_cond_wait(&w->seat->turn, &b->lock,
                           LB_FOREVER);            /* the store call has its deadline */
    lb_list_push_front(&b->seats, &w->seat->node); /* a late wake finds a seat, taken or not */
    return true;
}

int lq_batch_put(struct lq_batch *b, struct lq_put *put, size_t n, lade_err *err)
{
    struct waiter w = {.put = put, .n = n, .err = err};
    lr_mutex_lock(&b->lock);
    lb_list_push_back(&b->waiting, &w.node);
    b->n_waiting++;
    if (b->leading && !wait_turn(b, &w)) {
        lr_mutex_unlock(&b->lock);
        return lb_fail_nomem(err, "enqueue");
    }
    if (w.done) {
        lr_mutex_unlock(&b->lock);
        return w.rc;
    }
    b->leading = true;
    w.seat = NULL; /* awake */
    lead(b);
    return w.rc;
}
