#include "queue/store.h"

#include <string.h>

#include "base/base.h"
#include "base/err.h"
#include "base/fault.h"
#include "base/mem.h"
#include "queue/bound.h"
#include "queue/control_store.h"
#include "queue/schedule_store.h"

static bool has_scheme(const char *schemes, const char *scheme, size_t n)
{
    for (const char *s = schemes; *s;) {
        size_t len = strcspn(s, " ");
        if (len == n && memcmp(s, scheme, n) == 0)
            return true;
        s += len + (s[len] == ' ');
    }
    return false;
}

static int fail_unknown_scheme(const struct lq_store_ops *const *stores, size_t n, const char *url,
                               lade_err *err)
{
    char known[96] = "";
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        int len =
            snprintf(known + at, sizeof(known) - at, "%s%s", i ? " " : "", stores[i]->schemes);
        if (len > 0)
            at = LB_MIN(at + (size_t)len, sizeof(known) - 1);
    }
    size_t scheme = strcspn(url, ":");
    if (url[scheme] == 0)
        return lb_fail(err, LADE_EINVAL, "open",
                       "url '%.80s' has no scheme; write sqlite:PATH or redis://HOST", url);
    return lb_fail(err, LADE_EINVAL, "open", "url scheme '%.*s' is unknown; known are: %s",
                   (int)LB_MIN(scheme, 40), url, known);
}

int lq_store_open(struct lq_store **out, const struct lq_store_ops *const *stores, size_t n,
                  const struct lq_store_config *config, lade_err *err)
{
    const struct lq_store_ops *ops = NULL;
    size_t scheme = strcspn(config->url, ":");
    for (size_t i = 0; i < n && config->url[scheme] == ':'; i++) {
        if (has_scheme(stores[i]->schemes, config->url, scheme))
            ops = stores[i];
    }
    if (!ops)
        return fail_unknown_scheme(stores, n, config->url, err);
    assert(ops->version == LQ_STORE_VERSION && ops->size >= sizeof(struct lq_store));
    struct lq_store *s = lb_calloc(1, ops->size);
    if (!s)
        return lb_fail_nomem(err, "open");
    s->ops = ops;
    s->config = *config;
    int rc = ops->open(s, err);
    if (rc < 0) {
        lb_free(s);
        return rc;
    }
    *out = s;
    return 0;
}

void lq_store_close(struct lq_store *s)
{
    if (!s)
        return;
    s->ops->close(s);
    lb_free(s);
}

/* One op between its two fault points. A point armed to fail stands for a store that is away. */
#define OP(name, call)                                                                   \
    do {                                                                                 \
        if (LB_FAULT_FAILS(name ".before"))                                              \
            return lb_fail(err, LADE_EUNAVAILABLE, name, "fault injected before " name); \
        int rc = (call);                                                                 \
        if (LB_FAULT_FAILS(name ".after"))                                               \
            return lb_fail(err, LADE_EUNAVAILABLE, name, "fault injected after " name);  \
        return rc;                                                                       \
    } while (0)

int lq_put(struct lq_store *s, struct lq_put *put, size_t n, lade_err *err)
{
    OP("put", s->ops->put(s, put, n, err));
}

int lq_settle_take(struct lq_store *s, struct lq_settle *it, size_t n, const struct lq_take *take,
                   struct lq_leased_vec *out, lade_err *err)
{
    if (n > 0)
        OP("settle", s->ops->settle_take(s, it, n, take, out, err));
    OP("take", s->ops->settle_take(s, it, n, take, out, err));
}

int lq_begin(struct lq_store *s, const char *worker, struct lq_lease *lease, size_t n,
             lade_err *err)
{
    OP("begin", s->ops->begin(s, worker, lease, n, err));
}

int lq_note(struct lq_store *s, struct lq_note *it, size_t n, lade_err *err)
{
    OP("note", s->ops->note(s, it, n, err));
}

int lq_renew(struct lq_store *s, const struct lq_beat *beat, struct lq_stop *stop, size_t max,
             size_t *n_stop, lade_err *err)
{
    OP("renew", s->ops->renew(s, beat, stop, max, n_stop, err));
}

int lq_leave(struct lq_store *s, const char *worker, struct lq_lanes lanes, lade_err *err)
{
    OP("leave", s->ops->leave(s, worker, lanes, err));
}

int lq_reclaim(struct lq_store *s, const struct lq_take *take, struct lq_leased_vec *out,
               lade_err *err)
{
    OP("reclaim", s->ops->reclaim(s, take, out, err));
}

int lq_promote(struct lq_store *s, struct lq_lanes lanes, size_t max, size_t *n, int64_t *next_ms,
               lade_err *err)
{
    OP("promote", s->ops->promote(s, lanes, max, n, next_ms, err));
}

int lq_trim(struct lq_store *s, struct lq_lanes lanes, size_t max, size_t *n, lade_err *err)
{
    OP("trim", s->ops->trim(s, lanes, max, n, err));
}

int lq_change(struct lq_store *s, const char *queue, enum lq_change_verb verb, struct lq_change *it,
              size_t n, lade_err *err)
{
    OP("change", s->ops->change(s, queue, verb, it, n, err));
}

int lq_flow_put(struct lq_store *s, struct lq_flow *flow, lade_err *err)
{
    OP("flow_put", s->ops->flow_put(s, flow, err));
}

int lq_flow_act(struct lq_store *s, struct lb_slice id, enum lade_flow_verb verb, lade_err *err)
{
    OP("flow_act", s->ops->flow_act(s, id, verb, err));
}

int lq_say(struct lq_store *s, struct lq_say *it, size_t n, lade_err *err)
{
    OP("say", s->ops->say(s, it, n, err));
}

int lq_events_set(struct lq_store *s, const char *queue, uint32_t cap, lade_err *err)
{
    OP("events_set", s->ops->events_set(s, queue, cap, err));
}

int lq_limit_set(struct lq_store *s, const char *queue, enum lade_limit_scope scope,
                 struct lb_slice key, const struct lq_limit *limit, lade_err *err)
{
    OP("limit_set", s->ops->limit_set(s, queue, scope, key, limit, err));
}

int lq_key_pause(struct lq_store *s, const char *queue, struct lb_slice key, bool paused,
                 lade_err *err)
{
    OP("key_pause", s->ops->key_pause(s, queue, key, paused, err));
}

int lq_bound_set(struct lq_store *s, const char *queue, const struct lq_bound *bound, lade_err *err)
{
    OP("bound_set", s->ops->bounds->set(s, queue, bound, err));
}

int lq_order_worker(struct lq_store *s, const char *worker, enum lade_worker_order order,
                    lade_err *err)
{
    OP("worker_order", s->ops->controls->order(s, worker, order, err));
}

int lq_schedule_put(struct lq_store *s, const struct lq_schedule_put *it, lade_err *err)
{
    OP("schedule_put", s->ops->schedules->put(s, it, err));
}

int lq_schedule_tick(struct lq_store *s, struct lq_tick *tick, struct lq_schedule_vec *due,
                     lade_err *err)
{
    OP("schedule_tick", s->ops->schedules->tick(s, tick, due, err));
}

int lq_schedule_fire(struct lq_store *s, struct lq_fire *fire, lade_err *err)
{
    OP("schedule_fire", s->ops->schedules->fire(s, fire, err));
}

int lq_schedule_resign(struct lq_store *s, const char *holder, lade_err *err)
{
    OP("schedule_resign", s->ops->schedules->resign(s, holder, err));
}
