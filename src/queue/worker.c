#include "queue/worker.h"

#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "queue/names.h"
#include "queue/scheduler.h"

/* Lists ------------------------------------------------------------------------------------------------------------ */

void lq_worker_push(struct lade_worker *w, struct lade_job *job, enum lq_place place)
{
    job->place = place;
    lb_list_push_back(&w->list[place], &job->node);
    w->n_list[place]++;
}

void lq_worker_put_back(struct lade_worker *w, struct lade_job *job)
{
    /* Few are before it: only others that came back. */
    struct lb_list *at = w->queued.next;
    while (at != &w->queued && LB_CONTAINER_OF(at, struct lade_job, node)->number < job->number)
        at = at->next;
    job->place = LQ_PLACE_QUEUED;
    lb_list_insert_after(at->prev, &job->node);
    w->n_queued++;
}

/* The last first: each goes to the head of its level, and so they stand in their old order again. */
void lq_worker_hand_back(struct lade_worker *w)
{
    while (w->n_queued > 0) {
        struct lade_job *job = LB_CONTAINER_OF(w->queued.prev, struct lade_job, node);
        lq_outcome_settle(job, LQ_ENDING_HANDBACK, LADE_RETRY);
        lq_worker_remove(w, job);
        lq_worker_push(w, job, LQ_PLACE_DONE);
    }
}

void lq_worker_remove(struct lade_worker *w, struct lade_job *job)
{
    lb_list_del(&job->node);
    w->n_list[job->place]--;
}

void lq_haul_drop(struct lq_haul *haul, size_t n)
{
    if (atomic_fetch_sub_explicit(&haul->live, n, memory_order_acq_rel) != n)
        return;
    lb_arena_fini(&haul->vec.arena);
    lb_free(haul);
}

bool lq_job_let_go(struct lade_job *job)
{
    /* A sole holder need not pay for the exchange. */
    if (atomic_load_explicit(&job->holders, memory_order_acquire) != 1 &&
        atomic_fetch_sub_explicit(&job->holders, 1, memory_order_acq_rel) != 1)
        return false;
    if (job->cancel_event.fd >= 0)
        lr_event_fini(&job->cancel_event);
    lb_buf_fini(&job->error);
    lb_buf_fini(&job->result);
    lb_buf_fini(&job->history);
    lq_inputs_free(job->inputs);
    lq_effects_free(job->effects);
    if (job->after)
        lq_job_drop(job->after);
    if (job->own)
        lb_free(job);
    return true;
}

void lq_job_drop(struct lade_job *job)
{
    struct lq_haul *haul = job->haul;
    if (lq_job_let_go(job))
        lq_haul_drop(haul, 1);
}

void lq_job_cancel(struct lade_job *job, enum lq_cancel cause)
{
    if (atomic_load_explicit(&job->cancel, memory_order_relaxed) != LQ_CANCEL_NONE)
        return;
    atomic_store_explicit(&job->cancel, cause, memory_order_release);
    if (job->cancel_event.fd >= 0)
        lr_event_raise(&job->cancel_event);
    if (job->unassured)
        lr_cond_wake_all(&job->worker->ahead_wake);
}

bool lq_worker_wake_fetch(struct lade_worker *w)
{
    if (w->fetch_asleep)
        lr_cond_wake_one(&w->fetch_wake);
    return w->fetch_in_store;
}

void lq_worker_ring(struct lade_worker *w)
{
    char waits_as[sizeof(w->waits_as)];
    lr_mutex_lock(&w->lock);
    memcpy(waits_as, w->waits_as, sizeof(waits_as));
    lr_mutex_unlock(&w->lock);
    if (*waits_as)
        w->q->store->ops->wake(w->q->store, waits_as);
}

/* As many ids as fit, then "...". */
void lq_worker_note_dropped(struct lade_worker *w, const char *id)
{
    size_t at = strlen(w->dropped), room = sizeof(w->dropped) - at;
    if (strlen(id) + sizeof("  ...") < room)
        (void)snprintf(w->dropped + at, room, "%s%s", at ? " " : "", id);
    else if (room > sizeof(" ...") && (at < 3 || strcmp(w->dropped + at - 3, "...") != 0))
        (void)snprintf(w->dropped + at, room, " ...");
    w->n_dropped++;
}

static void lose_all(struct lade_worker *w, struct lb_list *list)
{
    lb_list_each_safe (it, list) {
        struct lade_job *job = LB_CONTAINER_OF(it, struct lade_job, node);
        job->lost = true;
        lq_job_cancel(job, LQ_CANCEL_LOST);
        if (job->place == LQ_PLACE_RUNNING || job->place == LQ_PLACE_SETTLING)
            continue; /* its slot drops it when the handler is back; fetch unless the trip holds */
        if (job->place == LQ_PLACE_DONE)
            lq_worker_note_dropped(w, lade_job_id(job));
        lq_worker_remove(w, job);
        w->stats.lost++;
        lq_job_drop(job);
    }
}

void lq_worker_log_dropped(struct lade_worker *w)
{
    char dropped[sizeof(w->dropped)];
    lr_mutex_lock(&w->lock);
    size_t n = w->n_dropped;
    memcpy(dropped, w->dropped, sizeof(dropped));
    w->n_dropped = 0;
    w->dropped[0] = 0;
    lr_mutex_unlock(&w->lock);
    if (n > 0)
        lq_worker_log(w,
                      "%zu finished jobs could not be settled before their lease ended and run "
                      "again: %s",
                      n, dropped);
}

void lq_worker_lose(struct lade_worker *w)
{
    (void)lq_slots_recall(w, LB_FOREVER); /* fetch hears of the loss by its own means */
    lose_all(w, &w->queued);
    lose_all(w, &w->running);
    lose_all(w, &w->done);
    lose_all(w, &w->settling);
    lb_ulid(w->incarnation, lb_clock_wall());
    w->epoch++;
    w->n_retired = 0; /* their leases run out */
    w->registered = false;
    atomic_store(&w->lease_until, LB_FOREVER);
    lr_cond_wake_all(&w->lease_wake);
}

static void log_to_stderr(void *ctx, const char *line)
{
    (void)ctx;
    (void)fprintf(stderr, "lade: %s\n", line);
}

void lq_worker_log(struct lade_worker *w, const char *format, ...)
{
    char line[512];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    w->log(w->log_ctx, line);
}

struct lq_lanes lq_worker_lanes(const struct lade_worker *w)
{
    return (struct lq_lanes){(const char *const *)w->queue, w->n_queues};
}

/* Opening ---------------------------------------------------------------------------------------------------------- */

#define REFUSE(...) lb_fail(err, LADE_EINVAL, "worker", __VA_ARGS__)

static int check_name(const char *name, lade_err *err)
{
    size_t n = name ? strlen(name) : 0;
    if (n > LADE_NAME_MAX)
        return REFUSE("the name has %zu bytes; at most %d", n, LADE_NAME_MAX);
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)name[i];
        if (c < ' ' || c == 0x7f)
            return REFUSE("the name has the control character 0x%02x at byte %zu", c, i);
    }
    return 0;
}

static bool is_pattern(const lade *q, const char *name)
{
    return q->store->ops->patterns && name && q->store->ops->patterns->is_pattern(name);
}

static int check_queue(const lade *q, const lade_worker_config *c, size_t i, lade_err *err)
{
    const char *name = c->queues[i].name;
    for (size_t j = 0; j < i; j++) {
        if (name && strcmp(name, c->queues[j].name) == 0)
            return REFUSE("queue '%s' is given twice", name);
    }
    if (!is_pattern(q, name))
        return lq_queue_check(name, "worker", err);
    if (strlen(name) > LADE_NAME_MAX)
        return REFUSE("queue pattern '%.60s' has %zu bytes; at most %d", name, strlen(name),
                      LADE_NAME_MAX);
    if (c->order == LADE_ORDER_WEIGHTED)
        return REFUSE("queue pattern '%s': patterns are served in strict order; leave weights out",
                      name);
    return 0;
}

static int check_queues(const lade *q, const lade_worker_config *c, lade_err *err)
{
    if (c->n_queues > LQ_LANES_MAX)
        return REFUSE("%zu queues; a worker serves at most %d", c->n_queues, LQ_LANES_MAX);
    if (c->n_queues > 0 && !c->queues)
        return REFUSE("queues is NULL with n_queues = %zu", c->n_queues);
    for (size_t i = 0; i < c->n_queues; i++) {
        int rc = check_queue(q, c, i, err);
        if (rc < 0)
            return rc;
    }
    const char *lane[LQ_LANES_MAX];
    for (size_t i = 0; i < c->n_queues; i++)
        lane[i] = c->queues[i].name;
    return c->n_queues > 0 && q->store->ops->patterns
               ? q->store->ops->patterns->check((struct lq_lanes){lane, c->n_queues}, err)
               : 0;
}

static int check_config(const lade *q, const lade_worker_config *c, lade_err *err)
{
    if (c->concurrency < 0 || c->concurrency > 10000)
        return REFUSE("concurrency %d is not within 1 to 10000 slots", c->concurrency);
    if (c->executor != LADE_EXECUTOR_THREAD && c->executor != LADE_EXECUTOR_TASK)
        return REFUSE("executor %d is neither thread nor task", (int)c->executor);
    if ((unsigned)c->order > LADE_ORDER_WEIGHTED)
        return REFUSE("order %d is unknown", (int)c->order);
    if (c->lease != 0 && c->lease < LADE_SECOND)
        return REFUSE("lease is below one second");
    if (c->sweep != 0 && c->sweep < LADE_MILLISECOND)
        return REFUSE("sweep is below one millisecond");
    if (c->cancel_grace < 0 || (c->cancel_grace > 0 && c->cancel_grace < LADE_MILLISECOND))
        return REFUSE("cancel_grace is below one millisecond");
    if (c->shutdown_timeout < -1)
        return REFUSE("shutdown_timeout is negative; -1 means none");
    if (c->max_crashes < 0 || c->max_crashes > 10000)
        return REFUSE("max_crashes %d is not within 1 to 10000", c->max_crashes);
    if (c->prefetch_max < -1 || c->prefetch_max > 10000)
        return REFUSE("prefetch_max %d is not within 1 to 10000 (0 = default, -1 = none)",
                      c->prefetch_max);
    int rc = check_queues(q, c, err);
    return rc < 0 ? rc : check_name(c->name, err);
}

static int copy_queues(lade_worker *w, const lade_worker_config *c)
{
    static const lade_worker_queue fallback = {"default", 1};
    const lade_worker_queue *from = c->n_queues > 0 ? c->queues : &fallback;
    size_t n = c->n_queues > 0 ? c->n_queues : 1;
    w->queue = lb_calloc(n, sizeof(*w->queue));
    w->weight = lb_calloc(n, sizeof(*w->weight));
    w->turn = lb_calloc(n, sizeof(*w->turn));
    if (!w->queue || !w->weight || !w->turn)
        return -LADE_ENOMEM;
    for (size_t i = 0; i < n; i++) {
        w->queue[i] = lb_strdup(from[i].name);
        w->weight[i] = from[i].weight ? from[i].weight : 1;
        w->n_queues = i + 1;
        if (!w->queue[i])
            return -LADE_ENOMEM;
    }
    return 0;
}

static void set_name(lade_worker *w, const char *name)
{
    if (name && *name) {
        (void)snprintf(w->name, sizeof(w->name), "%s", name);
        return;
    }
    char host[64] = "host";
    (void)gethostname(host, sizeof(host) - 1);
    (void)snprintf(w->name, sizeof(w->name), "%s:%d", host, (int)getpid());
}

static int copy_config(lade_worker *w, const lade_worker_config *c)
{
    w->concurrency = c->concurrency ? c->concurrency : 10;
    w->max_crashes = c->max_crashes ? c->max_crashes : 5;
    w->lease = c->lease ? c->lease : 15 * LADE_SECOND;
    w->sweep = c->sweep ? c->sweep : LADE_SECOND;
    w->cancel_grace = c->cancel_grace ? c->cancel_grace : 10 * LADE_SECOND;
    w->shutdown_timeout = c->shutdown_timeout ? LB_MAX(c->shutdown_timeout, 0) : 25 * LADE_SECOND;
    w->prefetch_max = c->prefetch_max ? LB_MAX(c->prefetch_max, 0)
                                      : LB_MIN(LB_MAX(8 * w->concurrency, 200), 1000);
    w->order = c->order;
    w->backoff = c->backoff;
    w->backoff_ctx = c->backoff_ctx;
    w->no_signals = c->no_signals;
    w->resque_signals = c->resque_signals;
    w->drain = c->drain;
    w->strict_steps = c->strict_steps;
    w->executor = c->executor;
    w->log = c->log ? c->log : log_to_stderr;
    w->log_ctx = c->log_ctx;
    w->on_dead = c->on_dead;
    w->on_dead_ctx = c->on_dead_ctx;
    set_name(w, c->name);
    return copy_queues(w, c);
}

static void init_lists(lade_worker *w)
{
    lb_list_init(&w->queued);
    lb_list_init(&w->running);
    lb_list_init(&w->done);
    lb_list_init(&w->settling);
    lb_list_init(&w->slots);
    lb_list_init(&w->runs);
    lb_list_init(&w->said);
    w->said_at = LB_FOREVER;
    lb_map_init(&w->routes);
    lr_mutex_init(&w->lock);
    lr_cond_init(&w->slot_wake);
    lr_cond_init(&w->fetch_wake);
    lr_cond_init(&w->lease_wake);
    lr_cond_init(&w->sweep_wake);
    lr_cond_init(&w->ahead_wake);
    w->next_deadline = w->lease_until = LB_FOREVER;
    lb_ulid(w->incarnation, lb_clock_wall());
}

static int open_scheduler(lade_worker *w, lade_err *err)
{
    lade_scheduler_config config = {.name = w->name, .log = w->log, .log_ctx = w->log_ctx};
    int rc = lade_scheduler_open(&w->scheduler, w->q, &config, err);
    if (rc == 0)
        w->scheduler->is_workers = true;
    return rc;
}

int lade_worker_open(lade_worker **out, lade *q, const lade_worker_config *config, lade_err *err)
{
    LQ_REFUSE_NULL(out, "worker");
    LQ_REFUSE_NULL(q, "worker");
    static const lade_worker_config defaults = {0};
    const lade_worker_config *c = config ? config : &defaults;
    int rc = check_config(q, c, err);
    if (rc < 0)
        return rc;
    lade_worker *w = lb_calloc(1, sizeof(*w));
    if (!w)
        return lb_fail_nomem(err, "worker");
    w->q = q;
    init_lists(w);
    rc = lr_event_init(&w->control);
    if (rc < 0)
        (void)lb_fail(err, LADE_EIO, "worker",
                      "no file descriptor left for the worker; raise the limit (ulimit -n)");
    else if (copy_config(w, c) < 0)
        rc = lb_fail_nomem(err, "worker");
    if (rc == 0 && !c->no_scheduler && q->store->ops->schedules)
        rc = open_scheduler(w, err);
    if (rc < 0) {
        lade_worker_close(w);
        return rc;
    }
    *out = w;
    return 0;
}

int lade_worker_handle(lade_worker *w, const char *kind, lade_handler fn, void *ctx)
{
    bool all = kind && strcmp(kind, "*") == 0;
    if (!w || !fn || !kind || w->phase != LQ_PHASE_NEW || (!all && !lq_name_is_valid(kind)))
        return -LADE_EINVAL;
    if (all ? w->catch_all != NULL : lb_map_get(&w->routes, lb_slice_str(kind)) != NULL)
        return -LADE_EINVAL;
    struct lq_route *route = lb_calloc(1, sizeof(*route));
    char *copy = lb_strdup(kind);
    if (route && copy) {
        *route = (struct lq_route){.kind = copy, .fn = fn, .ctx = ctx};
        if (all)
            w->catch_all = route;
        if (all || lb_map_put(&w->routes, lb_slice_str(copy), route) == 0)
            return 0;
    }
    lb_free(copy);
    lb_free(route);
    return -LADE_ENOMEM;
}

static void free_route(struct lq_route *route)
{
    if (!route)
        return;
    lb_free(route->kind);
    lb_free(route);
}

void lade_worker_get_stats(lade_worker *w, lade_worker_stats *out)
{
    if (!w || !out)
        return;
    lr_mutex_lock(&w->lock);
    *out = w->stats;
    out->running = (int)(w->n_running - w->n_in_runs);
    out->stuck = (int)w->n_stuck;
    out->queued = (int)w->n_queued;
    lr_mutex_unlock(&w->lock);
}

static void join_slots(lade_worker *w)
{
    for (;;) {
        lr_mutex_lock(&w->lock);
        struct lb_list *node = lb_list_pop(&w->slots);
        lr_mutex_unlock(&w->lock);
        if (!node)
            return;
        struct lq_slot *slot = LB_CONTAINER_OF(node, struct lq_slot, node);
        lr_thread_join(&slot->thread);
        lb_free(slot);
    }
}

void lade_worker_close(lade_worker *w)
{
    if (!w)
        return;
    assert(w->phase == LQ_PHASE_NEW || w->phase == LQ_PHASE_ENDED);
    join_slots(w);
    lade_scheduler_close(w->scheduler);
    if (w->holds_tasks)
        lr_tasks_release();
    size_t i = 0;
    for (struct lq_route *r; (r = lb_map_next(&w->routes, &i));)
        free_route(r);
    free_route(w->catch_all);
    lb_map_fini(&w->routes);
    for (size_t k = 0; k < w->n_queues; k++)
        lb_free(w->queue[k]);
    lb_free(w->queue);
    lb_free(w->weight);
    lb_free(w->turn);
    lb_free(w->remote.stacks);
    lr_event_fini(&w->control);
    lr_cond_fini(&w->slot_wake);
    lr_cond_fini(&w->fetch_wake);
    lr_cond_fini(&w->lease_wake);
    lr_cond_fini(&w->sweep_wake);
    lr_cond_fini(&w->ahead_wake);
    lr_mutex_fini(&w->lock);
    lb_free(w);
}
