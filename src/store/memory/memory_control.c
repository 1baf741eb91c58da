/* memory_control.c - orders to workers and what they tell: queue/control_store.h */
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "queue/control_store.h"
#include "store/memory/memory_home.h"
#include "store/memory/memory_ops.h"

static bool replace(struct lb_slice *to, struct lb_slice from)
{
    uint8_t *copy = lb_malloc(from.n);
    if (!copy)
        return false;
    memcpy(copy, from.p, from.n);
    lb_free((void *)to->p);
    *to = lb_slice(copy, from.n);
    return true;
}

void ls_memory_control_tell(struct ls_memory_worker *w, const struct lq_report *report,
                            int64_t now_ms)
{
    if (report && report->about.n > 0)
        (void)replace(&w->control.about, report->about);
    if (report && report->stacks.n > 0 && replace(&w->control.stacks, report->stacks)) {
        w->control.made = report->made;
        w->control.stacks_ms = now_ms;
    }
}

static int give_order(struct lq_store *s, const char *worker, enum lade_worker_order order,
                      lade_err *err)
{
    (void)err;
    int64_t now;
    int rc = LADE_NOT_FOUND;
    struct ls_memory_home *h = ls_memory_enter(s, &now);
    struct ls_memory_worker *w = ls_memory_worker_find(h, worker);
    if (w && ls_memory_worker_is_live(w, now)) {
        struct lq_orders *o = &w->control.orders;
        bool stops = o->wish == LADE_WORKER_STOP && order != LADE_WORKER_STACKS;
        rc = stops && order != LADE_WORKER_STOP ? LADE_WRONG_STATE : LADE_DONE;
        if (order == LADE_WORKER_STACKS)
            o->asked++;
        else if (rc == LADE_DONE)
            o->wish = order;
    }
    lr_mutex_unlock(&h->lock);
    return rc;
}

static int look(struct lq_store *s, const char *worker, struct lb_arena *arena,
                struct lq_control *out, lade_err *err)
{
    int64_t now;
    struct lq_control c = {0};
    bool ok = true;
    struct ls_memory_home *h = ls_memory_enter(s, &now);
    const struct ls_memory_worker *w = ls_memory_worker_find(h, worker);
    if (w) {
        c = w->control;
        c.about = lb_slice_of(lb_arena_copy(arena, c.about.p, c.about.n));
        c.stacks = lb_slice_of(lb_arena_copy(arena, c.stacks.p, c.stacks.n));
        ok = c.about.p && c.stacks.p;
    }
    lr_mutex_unlock(&h->lock);
    if (!ok)
        return lb_fail_nomem(err, "worker");
    *out = c;
    return LADE_DONE;
}

const struct lq_control_ops ls_memory_control_ops = {.order = give_order, .look = look};
