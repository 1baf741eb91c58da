#include <string.h>

#include "base/mem.h"
#include "store/memory/memory_home.h"

bool ls_memory_state_is_ended(enum lade_state state)
{
    return state == LADE_STATE_COMPLETED || state == LADE_STATE_DEAD ||
           state == LADE_STATE_CANCELLED;
}

bool ls_memory_state_waits(enum lade_state state)
{
    return state == LADE_STATE_READY || state == LADE_STATE_SCHEDULED ||
           state == LADE_STATE_RETRYING;
}

static bool copy_bytes(struct lb_mut *to, struct lb_slice from)
{
    *to = (struct lb_mut){0};
    if (from.n == 0)
        return true;
    to->p = lb_malloc(from.n);
    if (!to->p)
        return false;
    memcpy(to->p, from.p, from.n);
    to->n = from.n;
    return true;
}

/* One that was only just made is in no order, which its key of zeros tells. */
static bool is_placed(const struct ls_memory_job *j)
{
    return j->node.key.major != 0 || j->node.key.minor != 0;
}

struct ls_memory_job *ls_memory_job_make(struct ls_memory_queue *q, const struct lq_put *put)
{
    LB_CHECK(put->id.n >= 1 && put->id.n <= LADE_ID_MAX);
    struct ls_memory_job *j = lb_calloc(1, sizeof(*j) + put->unique.n);
    if (!j)
        return NULL;
    j->queue = q;
    j->level = put->level;
    j->reason = LQ_REASON_NONE;
    lb_list_init(&j->in_owner);
    memcpy(j->id, put->id.p, put->id.n);
    if (put->unique.n > 0)
        j->unique = lb_slice(memcpy(j + 1, put->unique.p, put->unique.n), put->unique.n);
    if (put->key.n > 0 && !(j->tenant = ls_memory_tenant_make(q, put->key))) {
        lb_free(j);
        return NULL;
    }
    if (j->tenant)
        j->tenant->unplaced++;
    if (!copy_bytes(&j->body, put->body) ||
        lb_map_put(&q->jobs, lb_slice(j->id, put->id.n), j) < 0) {
        ls_memory_job_unmake(j);
        return NULL;
    }
    return j;
}

void ls_memory_job_unmake(struct ls_memory_job *j)
{
    /* Was it not placed yet, its key has one less to wait for; the key itself goes with the next trim. */
    if (j->tenant && !is_placed(j))
        j->tenant->unplaced--;
    if (lb_map_get(&j->queue->jobs, lb_slice_str(j->id)) == j)
        (void)lb_map_del(&j->queue->jobs, lb_slice_str(j->id));
    lb_free(j->body.p);
    lb_free(j->history.p);
    lb_free(j->result.p);
    ls_memory_notes_free(j->notes);
    lb_free(j);
}

struct ls_memory_job *ls_memory_job_find(const struct ls_memory_queue *q, struct lb_slice id)
{
    return lb_map_get(&q->jobs, id);
}

/* Releases its unique key when the job still holds it and the lock was to last until now. */
static void release_lock(struct ls_memory_job *j, bool ended)
{
    struct ls_memory_lock *l = ls_memory_lock_find(j->queue, j->unique);
    if (!l || strcmp(l->holder, j->id) != 0 || l->until == LADE_UNTIL_TTL)
        return;
    if (ended || l->until == LADE_UNTIL_START)
        ls_memory_lock_drop(j->queue, l);
}

static void end_lease(struct ls_memory_home *h, struct ls_memory_job *j)
{
    struct ls_memory_worker *w = j->owner;
    if (!w)
        return;
    lb_list_del(&j->in_owner);
    j->owner = NULL;
    j->fence = 0;
    j->taken_ms = 0;
    j->mark = LS_MEMORY_UNMARKED;
    j->told = j->begun = false;
    w->n_held--;
    ls_memory_worker_settle(h, w);
}

void ls_memory_job_swap_body(struct ls_memory_job *j, struct lb_mut *body)
{
    struct lb_mut old = j->body;
    if (is_placed(j) && ls_memory_state_waits(j->state))
        j->queue->bound.bytes += (int64_t)body->n - (int64_t)old.n;
    j->body = *body;
    *body = old;
}

/* Out of the order of its state, if it is in one yet. */
static void take_out(struct ls_memory_job *j)
{
    ls_memory_job_leave_class(j);
    if (is_placed(j)) {
        ls_memory_order_del(&j->queue->order[j->state], &j->node);
        if (ls_memory_state_waits(j->state))
            j->queue->bound.bytes -= (int64_t)j->body.n;
        if (j->tenant)
            ls_memory_tenant_count(j, j->state, -1);
    } else if (j->tenant) {
        j->tenant->unplaced--;
    }
}

/* Into the order of a state; of READY in the part of its key. */
static void put_in(struct ls_memory_job *j, enum lade_state to, int64_t major, int64_t minor)
{
    j->state = to;
    if (ls_memory_state_waits(to))
        j->queue->bound.bytes += (int64_t)j->body.n;
    if (to == LADE_STATE_READY && j->tenant)
        major += j->tenant->num * LQ_KEY_LEVELS;
    ls_memory_order_add(&j->queue->order[to], &j->node,
                        (struct ls_memory_key){major, minor, {NULL, 0}});
    if (j->tenant)
        ls_memory_tenant_count(j, to, 1);
}

/* After a move: what it means for its key, and for others when the queue was full of active jobs. */
static void settle_limits(struct ls_memory_home *h, struct ls_memory_queue *q,
                          struct ls_memory_tenant *t, bool was_active)
{
    if (t)
        ls_memory_tenant_touch(h, t);
    if (was_active && q->limit.concurrency > 0)
        ls_memory_queue_wake(h, q, 1);
}

static void count_end(struct ls_memory_job *j, enum lade_state to)
{
    if (to == LADE_STATE_COMPLETED)
        j->queue->total_completed++;
    if (to == LADE_STATE_DEAD)
        j->queue->total_dead++;
    release_lock(j, true);
}

/* The event of a job that has just come into its state, and whom that wakes. */
static void tell(struct ls_memory_home *h, const struct ls_memory_job *j, int64_t now_ms)
{
    static const enum lade_event_type type_of[LADE_N_STATES] = {
        [LADE_STATE_READY] = LADE_EVENT_WAITING,       [LADE_STATE_RETRYING] = LADE_EVENT_RETRYING,
        [LADE_STATE_COMPLETED] = LADE_EVENT_COMPLETED, [LADE_STATE_DEAD] = LADE_EVENT_DEAD,
        [LADE_STATE_CANCELLED] = LADE_EVENT_CANCELLED,
    };

    if (type_of[j->state] != 0)
        ls_memory_event_job(h, j, (struct lq_ev){.type = type_of[j->state]}, now_ms);
    if (ls_memory_state_is_ended(j->state))
        ls_memory_ring_watchers(h);
}

/* Where a job comes to in READY: at the end of its level, or, back from away under FIFO, before it. */
static int64_t draw_minor(struct ls_memory_home *h, const struct ls_memory_job *j,
                          enum lade_state to, bool was_away)
{
    int64_t minor = ++h->sequence;
    if (to != LADE_STATE_READY || !was_away)
        return minor;
    return ls_memory_tenant_limit(j->tenant).order == LADE_KEY_ORDER_FIFO ? -minor : minor;
}

static void move(struct ls_memory_home *h, struct ls_memory_job *j, enum lade_state to,
                 int64_t run_at_ms, bool away, int64_t now_ms)
{
    LB_CHECK(to != LADE_STATE_ACTIVE);
    bool was_away = j->away, was_active = j->owner != NULL;
    take_out(j);
    end_lease(h, j);
    if (to != LADE_STATE_COMPLETED) {
        lb_free(j->result.p);
        j->result = (struct lb_mut){0};
    }
    j->reason = LQ_REASON_NONE;
    j->run_at_ms = j->finished_ms = 0;
    j->away = away;
    int64_t major = now_ms;
    if (ls_memory_state_is_ended(to)) {
        j->finished_ms = now_ms;
        count_end(j, to);
    } else if (to == LADE_STATE_READY) {
        j->ready_ms = now_ms;
        major = j->level;
    } else {
        j->run_at_ms = major = run_at_ms;
    }
    put_in(j, to, major, draw_minor(h, j, to, was_away));
    tell(h, j, now_ms);
    settle_limits(h, j->queue, j->tenant, was_active);
}

void ls_memory_job_move(struct ls_memory_home *h, struct ls_memory_job *j, enum lade_state to,
                        int64_t run_at_ms, int64_t now_ms)
{
    move(h, j, to, run_at_ms, false, now_ms);
}

void ls_memory_job_delay(struct ls_memory_home *h, struct ls_memory_job *j, enum lade_state to,
                         int64_t run_at_ms, int64_t now_ms)
{
    move(h, j, to, run_at_ms, j->tenant != NULL, now_ms);
}

void ls_memory_job_hand_back(struct ls_memory_home *h, struct ls_memory_job *j, int64_t now_ms)
{
    take_out(j);
    end_lease(h, j);
    j->ready_ms = now_ms;
    put_in(j, LADE_STATE_READY, j->level, -++h->sequence);
    tell(h, j, now_ms);
    settle_limits(h, j->queue, j->tenant, true);
}

void ls_memory_job_lease(struct ls_memory_home *h, struct ls_memory_job *j,
                         struct ls_memory_worker *owner, int64_t now_ms)
{
    enum ls_memory_mark mark = j->mark; /* what an operator wants outlives a change of owner */
    if (j->owner)
        ls_memory_event_job(
            h, j, (struct lq_ev){.type = LADE_EVENT_STALLED, .reason = lb_slice_str(j->owner->id)},
            now_ms);
    else
        ls_memory_event_job(h, j, (struct lq_ev){.type = LADE_EVENT_ACTIVE}, now_ms);
    take_out(j);
    release_lock(j, false);
    end_lease(h, j);
    j->mark = mark;
    j->owner = owner;
    j->fence = ++h->fence;
    j->taken_ms = now_ms;
    lb_list_push_back(&owner->held, &j->in_owner);
    owner->n_held++;
    put_in(j, LADE_STATE_ACTIVE, now_ms, ++h->sequence);
    if (lq_bound_is_set(&j->queue->bound))
        ls_memory_ring_watchers(h); /* there is room */
    if (j->tenant)
        ls_memory_tenant_touch(h, j->tenant);
}

void ls_memory_job_revive(struct ls_memory_home *h, struct ls_memory_job *j, int64_t now_ms)
{
    if (ls_memory_state_is_ended(j->state) &&
        j->history.n >= LQ_HISTORY_COUNTS_AT + LQ_HISTORY_COUNTS_SIZE)
        memset(j->history.p + LQ_HISTORY_COUNTS_AT, 0, LQ_HISTORY_COUNTS_SIZE);
    ls_memory_job_move(h, j, LADE_STATE_READY, 0, now_ms);
    ls_memory_queue_wake(h, j->queue, 1);
}

static void forget(struct ls_memory_home *h, struct ls_memory_job *j)
{
    struct ls_memory_tenant *t = j->tenant;
    bool was_active = j->owner != NULL;
    take_out(j);
    release_lock(j, true);
    end_lease(h, j);
    ls_memory_ring_watchers(h);
    j->tenant = NULL;
    (void)lb_map_del(&j->queue->jobs, lb_slice_str(j->id));
    settle_limits(h, j->queue, t, was_active);
}

void ls_memory_job_drop(struct ls_memory_home *h, struct ls_memory_job *j)
{
    forget(h, j);
    ls_memory_job_unmake(j);
}

void ls_memory_job_remove(struct ls_memory_home *h, struct ls_memory_job *j)
{
    struct ls_memory_worker *w = j->owner && j->owner->registered ? j->owner : NULL;
    uint64_t fence = j->fence;
    forget(h, j);
    if (!w) {
        ls_memory_job_unmake(j);
        return;
    }
    j->fence = fence;
    lb_list_push_back(&w->removed, &j->in_owner);
}

bool ls_memory_job_is_over(struct lq_store *s, const struct ls_memory_queue *q,
                           enum lade_state state, int64_t now_ms, bool by_age)
{
    const struct lq_keep *keep =
        state == LADE_STATE_DEAD ? &s->config.keep_dead : &s->config.keep_completed;
    const struct ls_memory_order *o = &q->order[state];
    const struct ls_memory_job *oldest = ls_memory_job_of(ls_memory_order_first(o));
    if (!oldest)
        return false;
    return o->n > (size_t)keep->count || (by_age && now_ms - oldest->finished_ms > keep->age_ms);
}

size_t ls_memory_job_retain(struct lq_store *s, struct ls_memory_queue *q, enum lade_state state,
                            int64_t now_ms, bool by_age, size_t max)
{
    size_t n = 0;
    for (; n < max && ls_memory_job_is_over(s, q, state, now_ms, by_age); n++) {
        struct ls_memory_node *oldest = ls_memory_order_first(&q->order[state]);
        ls_memory_job_drop(ls_memory_home_of(s), ls_memory_job_of(oldest));
    }
    return n;
}
