#include "queue/batch.h"

#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"

/* One call, in its caller's frame. */
struct waiter {
    struct lb_list node;
    struct lr_cond turn;
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
    lb_list_init(&b->waiting);
    lr_mutex_init(&b->lock);
}

void lq_batch_fini(struct lq_batch *b)
{
    assert(lb_list_is_empty(&b->waiting) && !b->leading);
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
        if (is_worth_splitting(rc)) {
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

/* Called with the lock held and `leading` ours; releases and takes it again around the store. */
static void lead(struct lq_batch *b)
{
    struct lb_list group;
    lb_list_init(&group);
    size_t total = gather(b, &group);
    lr_mutex_unlock(&b->lock);
    commit_group(b, &group, total);
    lr_mutex_lock(&b->lock);
    lb_list_each_safe (it, &group) {
        struct waiter *w = waiter_of(it);
        lb_list_del(it);
        w->done = true;
        lr_cond_wake_one(&w->turn);
    }
    b->leading = false;
    if (!lb_list_is_empty(&b->waiting)) {
        struct waiter *next = waiter_of(b->waiting.next);
        next->leader = true;
        b->leading = true;
        lr_cond_wake_one(&next->turn);
    }
}

int lq_batch_put(struct lq_batch *b, struct lq_put *put, size_t n, lade_err *err)
{
    struct waiter w = {.put = put, .n = n, .err = err};
    lr_cond_init(&w.turn);
    lr_mutex_lock(&b->lock);
    lb_list_push_back(&b->waiting, &w.node);
    if (!b->leading) {
        b->leading = true;
        w.leader = true;
    }
    while (!w.done) {
        if (w.leader) {
            w.leader = false;
            lead(b);
        } else {
            (void)lr_cond_wait(&w.turn, &b->lock,
                               LB_FOREVER); /* the leader's store call has its deadline */
        }
    }
    lr_mutex_unlock(&b->lock);
    lr_cond_fini(&w.turn);
    return w.rc;
}
