#include "queue/unique.h"

#include "base/clock.h"
#include "base/err.h"

#define DEFAULT_TTL      (24 * LADE_HOUR)
#define DEFAULT_MAX_WAIT 10 /* times debounce */

#define REFUSE(code, ...) lb_fail(err, (code), "enqueue", __VA_ARGS__)

static int check_key(const lade_unique *u, const char *at, lade_err *err)
{
    bool asks = u->on_conflict != LADE_CONFLICT_KEEP || u->debounce || u->max_wait || u->throttle ||
                u->trailing;
    if (u->key.size > LADE_UNIQUE_KEY_MAX)
        return REFUSE(LADE_ETOOBIG, "%sunique.key has %zu bytes; the limit is %d", at, u->key.size,
                      LADE_UNIQUE_KEY_MAX);
    if (u->key.size > 0 && !u->key.data)
        return REFUSE(LADE_EINVAL, "%sunique.key is NULL with a size", at);
    if (u->key.size == 0 && asks)
        return REFUSE(LADE_EINVAL,
                      "%sunique.key is empty; on_conflict, debounce and throttle need a key", at);
    if ((unsigned)u->until > LADE_UNTIL_TTL)
        return REFUSE(LADE_EINVAL, "%sunique.until %d is unknown", at, (int)u->until);
    if ((unsigned)u->on_conflict > LADE_CONFLICT_REJECT)
        return REFUSE(LADE_EINVAL, "%sunique.on_conflict %d is unknown", at, (int)u->on_conflict);
    return 0;
}

static int check_durations(const lade_unique *u, const char *at, lade_err *err)
{
    int rc = lq_duration_check(u->ttl, "unique.ttl", at, err);
    if (rc == 0)
        rc = lq_duration_check(u->debounce, "unique.debounce", at, err);
    if (rc == 0)
        rc = lq_duration_check(u->max_wait, "unique.max_wait", at, err);
    if (rc == 0)
        rc = lq_duration_check(u->throttle, "unique.throttle", at, err);
    return rc;
}

int lq_unique_check(const lade_unique *u, bool timed, const char *at, lade_err *err)
{
    int rc = check_key(u, at, err);
    if (rc == 0)
        rc = check_durations(u, at, err);
    if (rc < 0)
        return rc;
    const char *which = u->debounce > 0 ? "debounce" : "throttle";
    if (u->debounce > 0 && u->throttle > 0)
        return REFUSE(LADE_EINVAL, "%sunique.debounce and unique.throttle are both set; give one",
                      at);
    if (u->max_wait > 0 && u->debounce == 0)
        return REFUSE(LADE_EINVAL, "%sunique.max_wait is set without unique.debounce", at);
    if (u->max_wait > 0 && u->max_wait < u->debounce)
        return REFUSE(LADE_EINVAL, "%sunique.max_wait is below unique.debounce", at);
    if (u->trailing && u->throttle == 0)
        return REFUSE(LADE_EINVAL, "%sunique.trailing is set without unique.throttle", at);
    if (u->debounce == 0 && u->throttle == 0)
        return 0;
    if (timed)
        return REFUSE(LADE_EINVAL, "%sunique.%s sets the time of the job; leave in and at zero", at,
                      which);
    if (u->ttl > 0 || u->until != LADE_UNTIL_DONE || u->on_conflict != LADE_CONFLICT_KEEP)
        return REFUSE(LADE_EINVAL,
                      "%sunique.%s sets ttl, until and on_conflict by itself; leave them zero", at,
                      which);
    return 0;
}

int lq_unique_allow(const struct lq_store *s, const lade_unique *u, lade_err *err)
{
    if (!lq_unique_may_replace(u) || (s->ops->caps & LQ_CAP_CONFLICT))
        return 0;
    return REFUSE(LADE_EUNSUPPORTED,
                  "replacing, debounce and trailing are not there yet in the "
                  "%s store",
                  s->ops->name);
}

enum lade_unique_until lq_unique_until(const lade_unique *u)
{
    if (u->debounce > 0)
        return LADE_UNTIL_START;
    return u->throttle > 0 ? LADE_UNTIL_TTL : u->until;
}

void lq_unique_ask(struct lq_put *p, const lade_unique *u)
{
    int64_t ttl = u->throttle > 0 ? u->throttle : u->ttl > 0 ? u->ttl : DEFAULT_TTL;
    p->unique = lb_slice(u->key.data, u->key.size);
    p->until = lq_unique_until(u);
    p->unique_ttl_ms = lb_ms_up(ttl);
    if (u->on_conflict == LADE_CONFLICT_REPLACE || u->debounce > 0)
        p->conflict = LQ_CONFLICT_REPLACE;
    if (u->trailing)
        p->conflict = LQ_CONFLICT_TRAIL;
    if (u->debounce == 0)
        return;
    int64_t wait_ms = lb_ms_up(u->debounce);
    p->when = LQ_WHEN_IN;
    p->when_ms = wait_ms;
    p->bound_ms = u->max_wait > 0 ? lb_ms_up(u->max_wait) : DEFAULT_MAX_WAIT * wait_ms;
}
