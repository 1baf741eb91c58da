/* op_check.c - reports each broken invariant: place, counts, locks, leases */
#include <string.h>

#include "store/memory/memory_flow.h"
#include "store/memory/memory_ops.h"

struct check {
    lq_finding_fn report;
    void *ctx;
    const char *queue;
};

static void find(const struct check *c, const char *what, const char *of)
{
    char text[256];
    (void)snprintf(text, sizeof(text), "%s: %s", what, of);
    c->report(c->ctx, c->queue, text);
}

static void check_job(const struct check *c, const struct ls_memory_queue *q,
                      const struct ls_memory_job *j, enum lade_state state)
{
    if (j->queue != q || j->state != state)
        find(c, "job is in the order of another state", j->id);
    if (ls_memory_job_find(q, lb_slice_str(j->id)) != j)
        find(c, "job is in an order but not known by its id", j->id);
    if (j->body.n < 2)
        find(c, "job has no body", j->id);
    if ((state == LADE_STATE_ACTIVE) != (j->owner != NULL))
        find(c, "lease and state do not agree", j->id);
    if (ls_memory_state_is_ended(state) != (j->finished_ms != 0))
        find(c, "end time and state do not agree", j->id);
    if ((state == LADE_STATE_DEAD) != (j->class_ != NULL))
        find(c, "class of a death and state do not agree", j->id);
}

static void check_order(const struct check *c, const struct ls_memory_queue *q,
                        enum lade_state state)
{
    const struct ls_memory_order *o = &q->order[state];
    size_t n = 0;
    for (struct ls_memory_node *at = ls_memory_order_first(o); at && n <= o->n; n++) {
        check_job(c, q, ls_memory_job_of(at), state);
        at = ls_memory_order_after(o, at->key);
    }
    if (n != o->n)
        find(c, "count of a state is wrong", lade_state_name(state));
}

static void check_lock(const struct check *c, const struct ls_memory_queue *q,
                       const struct ls_memory_lock *l, int64_t now_ms)
{
    const struct ls_memory_job *j = ls_memory_job_find(q, lb_slice_str(l->holder));
    if (l->until == LADE_UNTIL_TTL || l->node.key.major <= now_ms)
        return;
    if (!j || ls_memory_state_is_ended(j->state))
        find(c, "unique key is held by a job that is not there or has ended", l->holder);
    else if (l->until == LADE_UNTIL_START && j->state == LADE_STATE_ACTIVE)
        find(c, "unique key is held until start by a job that has started", l->holder);
}

/* The dead, each in one class; a class has dead jobs only. */
static void check_classes(const struct check *c, const struct ls_memory_queue *q)
{
    size_t n = q->other.order.n, at = 0;
    for (const struct ls_memory_class *k; (k = lb_map_next(&q->classes, &at));) {
        if (k->order.n == 0)
            find(c, "class of deaths without a job", q->name);
        n += k->order.n;
    }
    if (n != q->order[LADE_STATE_DEAD].n)
        find(c, "counts of the classes are not the number of dead jobs", q->name);
    if (q->classes.n > LQ_CLASSES_MAX)
        find(c, "more classes of deaths than there may be", q->name);
}

/* A key's numbers against its jobs, and its place against its numbers (C-076: none is held with a free slot). */
static void check_tenant(const struct check *c, const struct ls_memory_tenant *t, int64_t now_ms)
{
    const struct lq_key_facts *k = &t->facts;
    const int64_t has[] = {k->ready, k->active, t->waiting, k->away, t->ended};
    enum lade_key_hold why;
    int64_t at;
    if (memcmp(has, t->counted, sizeof(has)) != 0 || t->unplaced != 0)
        find(c, "counts of a key are wrong", (const char *)t->key.p);
    struct lq_limit l = ls_memory_tenant_limit(t);
    int64_t room = lq_key_room(&l, k, now_ms * 1000, &at, &why);
    if (room > 0 && t->place == LQ_KEY_PARKED)
        find(c, "key is held though it may run", (const char *)t->key.p);
    if ((k->ready > 0) != (t->place != LQ_KEY_IDLE))
        find(c, "place of a key and its ready jobs do not agree", (const char *)t->key.p);
    if (t->place == LQ_KEY_TIMED && room == 0 && t->node.key.major > at)
        find(c, "key waits for too long", (const char *)t->key.p);
}

/* Where `counted` has the jobs of a state. */
static size_t place_in_counts(enum lade_state state)
{
    return state == LADE_STATE_READY                                       ? 0
           : state == LADE_STATE_ACTIVE                                    ? 1
           : state == LADE_STATE_SCHEDULED || state == LADE_STATE_RETRYING ? 2
                                                                           : 4;
}

static void check_tenants(const struct check *c, const struct ls_memory_queue *q, int64_t now_ms)
{
    int64_t held = 0;
    size_t at = 0;
    for (struct ls_memory_tenant *t; (t = lb_map_next(&q->tenants, &at));)
        memset(t->counted, 0, sizeof(t->counted));
    at = 0;
    for (const struct ls_memory_job *j; q->tenants.n > 0 && (j = lb_map_next(&q->jobs, &at));) {
        if (!j->tenant)
            continue;
        j->tenant->counted[place_in_counts(j->state)]++;
        j->tenant->counted[3] += j->away;
    }
    at = 0;
    for (const struct ls_memory_tenant *t; (t = lb_map_next(&q->tenants, &at));) {
        check_tenant(c, t, now_ms);
        held += t->held;
    }
    if (held != q->held)
        find(c, "number of held jobs is wrong", q->name);
}

/* Numbers without holes up to that of the last; nothing while the stream is off. */
static void check_events(const struct check *c, const struct ls_memory_queue *q)
{
    size_t n = 0;
    if (q->stream.cap == 0)
        return;
    lb_list_each (it, &q->stream.list) {
        const struct ls_memory_event *e = LB_CONTAINER_OF(it, struct ls_memory_event, in_stream);
        if (e->e.id != q->stream.last - q->stream.n + 1 + n++)
            find(c, "numbers of events are missing", q->name);
    }
    if (n != q->stream.n || n > q->stream.cap)
        find(c, "events are more or fewer than counted", q->name);
}

static void check_queue(const struct check *c, const struct ls_memory_queue *q, int64_t now_ms)
{
    for (int i = 0; i < LADE_N_STATES; i++)
        check_order(c, q, (enum lade_state)i);
    if (ls_memory_queue_jobs(q) != q->jobs.n)
        find(c, "sum over the states is not the number of jobs known", q->name);
    if (!q->made && q->jobs.n > 0)
        find(c, "queue is forgotten but has jobs", q->name);
    check_classes(c, q);
    size_t at = 0;
    for (const struct ls_memory_lock *l; (l = lb_map_next(&q->locks, &at));)
        check_lock(c, q, l, now_ms);
    check_tenants(c, q, now_ms);
    check_events(c, q);
    if (q->locks.n != q->expiring.n)
        find(c, "locks by key and by time differ", q->name);
}

static size_t check_worker(const struct check *c, const struct ls_memory_worker *w)
{
    size_t n = 0;
    lb_list_each (it, &w->held) {
        const struct ls_memory_job *j = LB_CONTAINER_OF(it, struct ls_memory_job, in_owner);
        if (j->owner != w || j->state != LADE_STATE_ACTIVE)
            find(c, "worker holds a job that is not leased to it", j->id);
        n++;
    }
    if (n != w->n_held)
        find(c, "number of jobs held is wrong", w->id);
    if (n == 0 && !w->registered)
        find(c, "worker is kept though it is gone", w->id);
    return n;
}

/* What nodes there are under its name, against what the flow says of them. */
static void check_node(const struct check *c, struct ls_memory_home *h,
                       const struct ls_memory_flow *f, uint32_t i)
{
    const struct ls_memory_step *step = &f->step[i];
    char id[LADE_ID_MAX + 1];
    size_t n = lq_flow_join(id, lb_slice_str(f->id), i);
    const struct ls_memory_queue *q = ls_memory_queue_find(h, step->queue);
    const struct ls_memory_job *j = q ? ls_memory_job_find(q, lb_slice(id, n)) : NULL;
    uint32_t missing = 0;
    for (uint32_t k = 0; k < step->n_deps; k++)
        missing += !lq_node_has_passed(f->step[step->dep[k]].state);
    if (missing != step->missing)
        find(c, "number of steps that a step waits for is wrong", id);
    if (step->state == LADE_STEP_ENQUEUED && (!j || ls_memory_state_is_ended(j->state)))
        find(c, "step is enqueued, but its job is not there or has ended", id);
    if (step->state == LADE_STEP_WAITING && j)
        find(c, "step waits, but its job is there", id);
    if (step->state == LADE_STEP_WAITING && missing == 0 && i < f->n_steps)
        find(c, "step waits for nothing", id);
}

static void check_flow(const struct check *c, struct ls_memory_home *h,
                       const struct ls_memory_flow *f)
{
    uint32_t open = 0, failed = 0;
    for (uint32_t i = 0; i < f->n; i++) {
        const struct ls_memory_step *step = &f->step[i];
        check_node(c, h, f, i);
        open += i < f->n_steps && step->n_next == 0 && !lq_node_has_passed(step->state);
        failed += i < f->n_steps && step->policy == LADE_FLOW_FAIL && lq_node_is_down(step->state);
    }
    if (open != f->open || failed != f->failed)
        find(c, "counts of a flow are wrong", f->id);
    if (f->state != LADE_FLOW_CANCELLED && (f->state == LADE_FLOW_FAILED) != (failed > 0))
        find(c, "state of a flow and its steps do not agree", f->id);
    if (f->state != LADE_FLOW_CANCELLED && (f->state == LADE_FLOW_COMPLETED) != (open == 0))
        find(c, "flow is completed and has open steps, or the other way", f->id);
}

int ls_memory_check(struct lq_store *s, lq_finding_fn report, void *ctx, lade_err *err)
{
    (void)err;
    int64_t now;
    struct check c = {report, ctx, ""};
    size_t active = 0, held = 0, at = 0;
    struct ls_memory_home *h = ls_memory_enter(s, &now);
    for (const struct ls_memory_queue *q; (q = lb_map_next(&h->queues, &at));) {
        c.queue = q->name;
        check_queue(&c, q, now);
        active += q->order[LADE_STATE_ACTIVE].n;
    }
    c.queue = "";
    lb_list_each (it, &h->flows_list) {
        check_flow(&c, h, LB_CONTAINER_OF(it, struct ls_memory_flow, in_home));
    }
    lb_list_each (it, &h->workers_list) {
        held += check_worker(&c, LB_CONTAINER_OF(it, struct ls_memory_worker, in_home));
    }
    ls_memory_schedules_check(h, report, ctx);
    if (active != held)
        find(&c, "active jobs and leases differ", "");
    lr_mutex_unlock(&h->lock);
    return LADE_DONE;
}
