/*
 * memory_store.c - open, close and the table of ops
 *
 * Named stores are found in a registry of the process and counted: the last close frees. The registry's lock is never
 * held together with a store's.
 */
#include "store/memory/memory_store.h"

#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "store/memory/memory_home.h"
#include "store/memory/memory_ops.h"

static struct lr_mutex registry_lock = {PTHREAD_MUTEX_INITIALIZER};
static struct lb_list registry = {&registry, &registry}; /* guarded by: registry_lock */

static struct ls_memory_home *find_home(const char *name)
{
    lb_list_each (it, &registry) {
        struct ls_memory_home *h = LB_CONTAINER_OF(it, struct ls_memory_home, in_registry);
        if (*name && strcmp(h->name, name) == 0)
            return h;
    }
    return NULL;
}

/* NULL when out of memory. */
static struct ls_memory_home *make_home(const char *name)
{
    struct ls_memory_home *h = lb_calloc(1, sizeof(*h));
    if (!h)
        return NULL;
    if (*name && !(h->name = lb_strdup(name))) {
        lb_free(h);
        return NULL;
    }
    lr_mutex_init(&h->lock);
    lr_cond_init(&h->woken);
    lb_list_init(&h->workers_list);
    lb_list_init(&h->touched);
    lb_list_init(&h->flows_list);
    lb_list_init(&h->schedules_list);
    lb_list_init(&h->schedule_watchers);
    lb_list_init(&h->watchers);
    for (int i = 0; i < LADE_N_FLOW_STATES; i++)
        lb_list_init(&h->flows_in[i].list);
    lb_list_init(&h->in_registry);
    if (h->name)
        lb_list_push_back(&registry, &h->in_registry);
    return h;
}

static int open_store(struct lq_store *s, lade_err *err)
{
    const char *name = strchr(s->config.url, ':') + 1;
    lr_mutex_lock(&registry_lock);
    struct ls_memory_home *h = find_home(name);
    if (!h)
        h = make_home(name);
    if (h)
        h->refs++;
    lr_mutex_unlock(&registry_lock);
    ((struct ls_memory_store *)s)->home = h;
    return h ? LADE_DONE : lb_fail_nomem(err, "open");
}

static void close_store(struct lq_store *s)
{
    struct ls_memory_home *h = ls_memory_home_of(s);
    lr_mutex_lock(&registry_lock);
    bool last = --h->refs == 0;
    if (last)
        lb_list_del(&h->in_registry);
    lr_mutex_unlock(&registry_lock);
    if (!last)
        return;
    ls_memory_home_clear(h);
    lr_cond_fini(&h->woken);
    lr_mutex_fini(&h->lock);
    lb_free(h->name);
    lb_free(h);
}

static int read_now(struct lq_store *s, int64_t *now_ms, lade_err *err)
{
    (void)err;
    lr_mutex_unlock(&ls_memory_enter(s, now_ms)->lock);
    return LADE_DONE;
}

const struct lq_store_ops ls_memory_ops = {
    .name = "memory",
    .schemes = "memory",
    .version = LQ_STORE_VERSION,
    .caps = LQ_CAP_CLOCK | LQ_CAP_CONFLICT,
    .size = sizeof(struct ls_memory_store),
    .open = open_store,
    .close = close_store,
    .now = read_now,
    .put = ls_memory_put,
    .settle_take = ls_memory_settle_take,
    .begin = ls_memory_begin,
    .note = ls_memory_note,
    .renew = ls_memory_renew,
    .leave = ls_memory_leave,
    .reclaim = ls_memory_reclaim,
    .promote = ls_memory_promote,
    .trim = ls_memory_trim,
    .wait = ls_memory_wait,
    .wake = ls_memory_wake,
    .queues = ls_memory_queues,
    .count = ls_memory_count,
    .get = ls_memory_get,
    .list = ls_memory_list,
    .act = ls_memory_act,
    .purge = ls_memory_purge,
    .redrive = ls_memory_redrive,
    .pause = ls_memory_pause,
    .forget = ls_memory_forget,
    .workers = ls_memory_workers,
    .check = ls_memory_check,
    .classes = ls_memory_classes,
    .list_class = ls_memory_list_class,
    .change = ls_memory_change,
    .flow_put = ls_memory_flow_put,
    .flow_get = ls_memory_flow_get,
    .flow_list = ls_memory_flow_list,
    .flow_inputs = ls_memory_flow_inputs,
    .flow_act = ls_memory_flow_act,
    .results = ls_memory_results,
    .watch = ls_memory_watch,
    .unwatch = ls_memory_unwatch,
    .say = ls_memory_say,
    .words = ls_memory_words,
    .events_set = ls_memory_events_set,
    .events_get = ls_memory_events_get,
    .event_read = ls_memory_event_read,
    .limit_set = ls_memory_limit_set,
    .limit_get = ls_memory_limit_get,
    .key_list = ls_memory_key_list,
    .key_get = ls_memory_key_get,
    .key_pause = ls_memory_key_pause,
    .schedules = &ls_memory_schedule_ops,
    .bounds = &ls_memory_bound_ops,
    .controls = &ls_memory_control_ops,
};
