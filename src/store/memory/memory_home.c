#include "store/memory/memory_home.h"

#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "store/memory/memory_flow.h"

struct ls_memory_home *ls_memory_enter(struct lq_store *s, int64_t *now_ms)
{
    struct ls_memory_home *h = ls_memory_home_of(s);
    lr_mutex_lock(&h->lock);
    *now_ms = (s->config.clock ? s->config.clock(s->config.clock_ctx) : lb_clock_wall()) /
              LADE_MILLISECOND;
    return h;
}

/* queues ----------------------------------------------------------------------------------------------------------- */

struct ls_memory_queue *ls_memory_queue_find(struct ls_memory_home *h, const char *name)
{
    struct ls_memory_queue *q = lb_map_get(&h->queues, lb_slice_str(name));
    return q && q->made ? q : NULL;
}

struct ls_memory_queue *ls_memory_queue_make(struct ls_memory_home *h, const char *name)
{
    struct ls_memory_queue *q = lb_map_get(&h->queues, lb_slice_str(name));
    if (!q) {
        size_t len = strlen(name);
        LB_CHECK(len <= LADE_NAME_MAX);
        q = lb_calloc(1, sizeof(*q));
        if (!q)
            return NULL;
        memcpy(q->name, name, len);
        if (lb_map_put(&h->queues, lb_slice(q->name, len), q) < 0) {
            lb_free(q);
            return NULL;
        }
    }
    q->made = true;
    return q;
}

size_t ls_memory_queue_jobs(const struct ls_memory_queue *q)
{
    size_t n = 0;
    for (size_t i = 0; i < LADE_N_STATES; i++)
        n += q->order[i].n;
    return n;
}

void ls_memory_queue_wake(struct ls_memory_home *h, const struct ls_memory_queue *q, size_t n)
{
    if (q->paused)
        return;
    lb_list_each (it, &h->workers_list) {
        struct ls_memory_worker *w = LB_CONTAINER_OF(it, struct ls_memory_worker, in_home);
        if (n == 0)
            break;
        if (!w->idle || !ls_memory_worker_serves(w, q->name))
            continue;
        w->idle = false;
        w->woken = true;
        n--;
    }
    lr_cond_wake_all(&h->woken);
}

/* The job of scheduled and retrying that is due first, or NULL. */
static struct ls_memory_job *find_next_due(const struct ls_memory_queue *q)
{
    struct ls_memory_node *a = ls_memory_order_first(&q->order[LADE_STATE_SCHEDULED]);
    struct ls_memory_node *b = ls_memory_order_first(&q->order[LADE_STATE_RETRYING]);
    if (a && b)
        return ls_memory_job_of(ls_memory_key_compare(a->key, b->key) < 0 ? a : b);
    return ls_memory_job_of(a ? a : b);
}

int64_t ls_memory_queue_next_due(const struct ls_memory_queue *q)
{
    struct ls_memory_job *j = find_next_due(q);
    return j ? j->run_at_ms : 0;
}

size_t ls_memory_queue_promote(struct ls_memory_home *h, struct ls_memory_queue *q, int64_t now_ms,
                               size_t max)
{
    size_t n = 0;
    for (struct ls_memory_job *j; n < max && (j = find_next_due(q)) && j->run_at_ms <= now_ms; n++)
        ls_memory_job_move(h, j, LADE_STATE_READY, 0, now_ms);
    return n;
}

/* locks ------------------------------------------------------------------------------------------------------------ */

struct ls_memory_lock *ls_memory_lock_find(const struct ls_memory_queue *q, struct lb_slice key)
{
    return lb_map_get(&q->locks, key);
}

bool ls_memory_lock_make(struct ls_memory_home *h, struct ls_memory_queue *q,
                         const struct lq_put *put, int64_t now_ms)
{
    int64_t until_ms = INT64_MAX; /* its job frees it */
    if (put->until == LADE_UNTIL_TTL &&
        __builtin_add_overflow(now_ms, put->unique_ttl_ms, &until_ms))
        until_ms = INT64_MAX;
    struct ls_memory_lock *l = lb_calloc(1, sizeof(*l) + put->unique.n);
    if (!l)
        return false;
    l->key = (struct lb_mut){(uint8_t *)(l + 1), put->unique.n};
    memcpy(l->key.p, put->unique.p, put->unique.n);
    memcpy(l->holder, put->id.p, put->id.n);
    l->until = put->until;
    l->first_ms = put->conflict != LQ_CONFLICT_KEEP ? now_ms : 0;
    if (lb_map_put(&q->locks, lb_slice_of(l->key), l) < 0) {
        lb_free(l);
        return false;
    }
    ls_memory_order_add(&q->expiring, &l->node,
                        (struct ls_memory_key){until_ms, ++h->sequence, {NULL, 0}});
    return true;
}

void ls_memory_lock_drop(struct ls_memory_queue *q, struct ls_memory_lock *l)
{
    (void)lb_map_del(&q->locks, lb_slice_of(l->key));
    ls_memory_order_del(&q->expiring, &l->node);
    lb_free(l);
}

void ls_memory_lock_expire(struct ls_memory_queue *q, int64_t now_ms)
{
    struct ls_memory_node *n;
    while ((n = ls_memory_order_first(&q->expiring)) && n->key.major <= now_ms)
        ls_memory_lock_drop(q, LB_CONTAINER_OF(n, struct ls_memory_lock, node));
}

/* workers ---------------------------------------------------------------------------------------------------------- */

struct ls_memory_worker *ls_memory_worker_find(const struct ls_memory_home *h, const char *id)
{
    return lb_map_get(&h->workers, lb_slice_str(id));
}

struct ls_memory_worker *ls_memory_worker_make(struct ls_memory_home *h, const char *id)
{
    size_t len = strlen(id);
    LB_CHECK(len <= LADE_ID_MAX);
    struct ls_memory_worker *w = lb_calloc(1, sizeof(*w));
    if (!w)
        return NULL;
    memcpy(w->id, id, len);
    lb_list_init(&w->held);
    lb_list_init(&w->removed);
    if (lb_map_put(&h->workers, lb_slice(w->id, len), w) < 0) {
        lb_free(w);
        return NULL;
    }
    lb_list_push_back(&h->workers_list, &w->in_home);
    return w;
}

bool ls_memory_worker_is_live(const struct ls_memory_worker *w, int64_t now_ms)
{
    return w && w->registered && w->lease_until_ms >= now_ms;
}

bool ls_memory_worker_serves(const struct ls_memory_worker *w, const char *queue)
{
    for (size_t i = 0; i < w->n_lanes; i++) {
        if (strcmp(w->lane[i], queue) == 0)
            return true;
    }
    return false;
}

void ls_memory_worker_void(struct ls_memory_home *h, struct ls_memory_worker *w)
{
    w->registered = w->idle = false;
    lr_cond_wake_all(&h->woken);
    ls_memory_worker_settle(h, w);
}

static void free_removed(struct ls_memory_worker *w)
{
    for (struct lb_list *it; (it = lb_list_pop(&w->removed));)
        ls_memory_job_unmake(LB_CONTAINER_OF(it, struct ls_memory_job, in_owner));
}

void ls_memory_worker_settle(struct ls_memory_home *h, struct ls_memory_worker *w)
{
    if (w->registered || w->n_held > 0)
        return;
    free_removed(w);
    (void)lb_map_del(&h->workers, lb_slice_str(w->id));
    lb_list_del(&w->in_home);
    lb_free((void *)w->control.about.p);
    lb_free((void *)w->control.stacks.p);
    lb_free(w->lane);
    lb_free(w);
}

/* ------------------------------------------------------------------------------------------------------------------ */

static void free_queue(struct ls_memory_home *h, struct ls_memory_queue *q)
{
    for (size_t i = 0; i < LADE_N_STATES; i++) {
        for (struct ls_memory_node *n; (n = ls_memory_order_first(&q->order[i]));)
            ls_memory_job_drop(h, ls_memory_job_of(n));
    }
    ls_memory_lock_expire(q, INT64_MAX);
    ls_memory_tenants_free(q);
    (void)ls_memory_kept_trim(q, INT64_MAX, SIZE_MAX - 1);
    lb_map_fini(&q->jobs);
    lb_map_fini(&q->locks);
    lb_map_fini(&q->classes);
    ls_memory_stream_clear(q);
    lb_map_fini(&q->tenants);
    lb_free(q);
}

void ls_memory_home_clear(struct ls_memory_home *h)
{
    lb_list_each_safe (it, &h->workers_list) {
        struct ls_memory_worker *w = LB_CONTAINER_OF(it, struct ls_memory_worker, in_home);
        free_removed(w);
        ls_memory_worker_void(h, w); /* those that still hold jobs go with the last of them */
    }
    while (!lb_list_is_empty(&h->flows_list))
        ls_memory_flow_drop(h, LB_CONTAINER_OF(h->flows_list.next, struct ls_memory_flow, in_home));
    lb_map_fini(&h->flows);
    ls_memory_schedules_clear(h);
    size_t at = 0;
    for (struct ls_memory_queue *q; (q = lb_map_next(&h->queues, &at));)
        free_queue(h, q);
    lb_map_fini(&h->queues);
    lb_map_fini(&h->workers);
    for (struct lb_list *it; (it = lb_list_pop(&h->watchers));)
        lb_free(LB_CONTAINER_OF(it, struct ls_memory_watcher, in_home));
}
