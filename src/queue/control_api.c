/* control_api.c - orders to workers, and looking into one: lade/control.h */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/base.h"
#include "base/err.h"
#include "base/mem.h"
#include "queue/client.h"
#include "queue/control_store.h"

/* Other programs' workers have other ids. */
static int check_id(const char *id, lade_err *err)
{
    size_t n = id ? strnlen(id, LADE_ID_MAX + 1) : 0;
    if (n > 0 && n <= LADE_ID_MAX)
        return 0;
    return lb_fail(err, LADE_EINVAL, "worker", "id must have 1 to %d characters", LADE_ID_MAX);
}

int lade_worker_order(lade *q, const char *id, enum lade_worker_order order, lade_err *err)
{
    LQ_REFUSE_NULL(q, "worker");
    int rc = check_id(id, err);
    if (rc < 0)
        return rc;
    if (order < LADE_WORKER_RESUME || order > LADE_WORKER_STACKS)
        return lb_fail(err, LADE_EINVAL, "worker", "order %d is unknown", (int)order);
    if (!q->store->ops->controls)
        return lb_fail(err, LADE_EUNSUPPORTED, "worker",
                       "a %s store has no place for orders to workers; send a signal to the "
                       "process: TSTP, TERM, TTIN",
                       q->store->ops->name);
    return lq_order_worker(q->store, id, order, err);
}

/* "1 4711 0.1.0 host", what is not there stays as it is */
static void read_about(lade_worker_view *v, char *about)
{
    char *rest = NULL;
    long state = strtol(about, &rest, 10);
    if (rest == about || state < 0 || state > LADE_WORKER_STOPPING)
        return;
    v->state = (enum lade_worker_state)state;
    v->pid = strtol(rest, &rest, 10);
    while (*rest == ' ')
        rest++;
    v->version = rest;
    rest += strcspn(rest, " ");
    if (!*rest)
        return;
    *rest++ = '\0';
    v->host = rest;
}

/* One block: the view, about with NUL, the stacks. */
static lade_worker_view *make_view(const lade_worker_info *info, const struct lq_control *c,
                                   int64_t now_ms)
{
    bool fresh = c->stacks_ms > 0 && c->stacks_ms + LQ_STACKS_AGE_MS > now_ms;
    size_t n_stacks = fresh ? c->stacks.n : 0;
    lade_worker_view *v = lb_malloc(sizeof(*v) + c->about.n + 1 + n_stacks + 1);
    if (!v)
        return NULL;
    char *about = (char *)(v + 1);
    char *stacks = about + c->about.n + 1;
    if (c->about.n > 0)
        memcpy(about, c->about.p, c->about.n);
    about[c->about.n] = '\0';
    if (n_stacks > 0)
        memcpy(stacks, c->stacks.p, n_stacks);
    stacks[n_stacks] = '\0';
    *v = (lade_worker_view){.info = *info,
                            .host = "",
                            .version = "",
                            .wish = (enum lade_worker_order)c->orders.wish,
                            .stacks_asked = c->orders.asked,
                            .stacks_made = c->made,
                            .stacks_at = fresh ? lb_ns_of_ms(c->stacks_ms) : 0,
                            .stacks = {stacks, n_stacks}};
    read_about(v, about);
    return v;
}

static int find_info(lade *q, const char *id, struct lb_arena *arena, lade_worker_info **out,
                     lade_err *err)
{
    lade_worker_info *all = NULL;
    size_t n = 0;
    int rc = q->store->ops->workers(q->store, arena, &all, &n, err);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        if (strcmp(all[i].id, id) == 0) {
            *out = &all[i];
            return 0;
        }
    }
    return rc < 0 ? rc : LADE_NOT_FOUND;
}

int lade_worker_get(lade *q, const char *id, lade_worker_view **out, lade_err *err)
{
    LQ_REFUSE_NULL(q, "worker");
    LQ_REFUSE_NULL(out, "worker");
    int rc = check_id(id, err);
    if (rc < 0)
        return rc;
    struct lb_arena arena;
    struct lq_control c = {0};
    lade_worker_info *info = NULL;
    int64_t now_ms = 0;
    lb_arena_init(&arena);
    rc = find_info(q, id, &arena, &info, err);
    if (rc == 0)
        rc = q->store->ops->now(q->store, &now_ms, err);
    if (rc == 0 && q->store->ops->controls)
        rc = q->store->ops->controls->look(q->store, id, &arena, &c, err);
    if (rc == 0) {
        lade_worker_view *v = make_view(info, &c, now_ms);
        if (v)
            *out = v;
        else
            rc = lb_fail_nomem(err, "worker");
    }
    lb_arena_fini(&arena);
    return rc;
}
