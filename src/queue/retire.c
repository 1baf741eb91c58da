/*
 * retire.c - a store that may have forgotten what this worker did last
 *
 * After a failover, or a crash of a server that writes its log each second, the store may be some moments behind: jobs that were
 * settled are active again, under the lease of an incarnation that lives and knows nothing of them. Nobody would take
 * them from it. So the worker goes on as a new incarnation when the store says that it is another one (lq_ahead). The former is
 * renewed only until the last job that was taken under it is settled (settles ask for the fence, not for the owner) and then
 * leaves, which gives what the store still has under its name to reclaim.
 */
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "queue/worker.h"

static void forget(struct lade_worker *w, size_t i)
{
    w->n_retired--;
    memmove(&w->retired[i], &w->retired[i + 1], (w->n_retired - i) * sizeof(w->retired[0]));
}

void lq_worker_retire(struct lade_worker *w)
{
    if (w->n_retired == LQ_RETIRED_MAX) { /* the server changes faster than jobs end */
        lq_worker_lose(w);
        return;
    }
    struct lq_retired *r = &w->retired[w->n_retired++];
    r->epoch = w->epoch++;
    memcpy(r->incarnation, w->incarnation, sizeof(r->incarnation));
    lb_ulid(w->incarnation, lb_clock_wall());
    w->registered = false;
    atomic_store(&w->lease_until, LB_FOREVER);
}

const char *lq_worker_incarnation_of(const struct lade_worker *w, uint32_t epoch)
{
    for (size_t i = 0; i < w->n_retired; i++) {
        if (w->retired[i].epoch == epoch)
            return w->retired[i].incarnation;
    }
    return w->incarnation;
}

static bool has_jobs(const struct lade_worker *w, uint32_t epoch)
{
    if (w->taking && w->taking_epoch == epoch)
        return true;
    for (size_t i = 0; i < LB_ARRAY_LEN(w->list); i++) {
        lb_list_each (it, &w->list[i]) {
            if (LB_CONTAINER_OF(it, struct lade_job, node)->haul->epoch == epoch)
                return true;
        }
    }
    return false;
}

/* Without the lock: nobody else changes the list of the retired while the lease thread is at work. */
static void tend(struct lade_worker *w, const struct lq_retired *r, bool held)
{
    lade_err err = {0};
    int rc;
    if (held) {
        rc = lq_lease_renew_former(w, r->incarnation, &err);
    } else {
        rc = lq_leave(w->q->store, r->incarnation, lq_worker_lanes(w), &err);
    }
    if (rc < 0) /* the next beat tries again; after a lease it is void by itself */
        return;
    lr_mutex_lock(&w->lock);
    if (rc == LADE_STALE && held) {
        lq_worker_lose(w);
    } else if (!held) {
        for (size_t i = 0; i < w->n_retired; i++) {
            if (w->retired[i].epoch == r->epoch)
                forget(w, i--);
        }
        w->reclaim_at = 0;
        lr_cond_wake_one(&w->sweep_wake);
    }
    lr_mutex_unlock(&w->lock);
}

void lq_worker_tend_retired(struct lade_worker *w)
{
    struct lq_retired r[LQ_RETIRED_MAX];
    bool held[LQ_RETIRED_MAX];
    lr_mutex_lock(&w->lock);
    size_t n = w->n_retired;
    for (size_t i = 0; i < n; i++) {
        r[i] = w->retired[i];
        held[i] = has_jobs(w, r[i].epoch);
    }
    lr_mutex_unlock(&w->lock);
    for (size_t i = 0; i < n; i++)
        tend(w, &r[i], held[i]);
}
