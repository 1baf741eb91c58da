/*
 * wait.c - waiting for a bell without asking
 *
 * A take that found nothing has registered the worker as idle in all its lanes; whatever makes a job ready there rings as
 * many idle workers as it has jobs, by a push to their bells. Here the worker blocks in one BLPOP over its bells on a
 * connection of its own. The wait ends exactly at its deadline, and a BLPOP that is still outstanding then is picked up by
 * the next wait: it serves the same bells.
 *
 * The server holds a BLPOP for long, a minute, so that an idle worker asks for next to nothing. Three things notice sooner
 * that its flow is dead: keepalive and resets end it; a heartbeat that goes unanswered puts every bell in doubt
 * (ls_redis_doubt_bells), and a doubted bell is dropped; and the answer to BLPOP itself is due after the minute. A minute
 * without a bell ends the wait too, for a server that lost its data has forgotten that the worker is idle.
 *
 * Anything odd (a lost connection, UNBLOCKED by a change of role, a bell) ends the wait early: the take that follows finds
 * out. A bell that an outstanding BLPOP swallowed is seen by the next wait at once.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "store/redis/slots.h"

#define BLOCK_MARGIN (2 * LADE_SECOND)

/* While the server is away a connect tries again and again; it cannot be woken, so it is kept short. */
#define CONNECT_STEP (2 * LADE_SECOND)

static bool is_same_lanes(const struct ls_redis_worker *w, struct lq_lanes lanes)
{
    if (w->n_bell_lanes != lanes.n)
        return false;
    for (size_t i = 0; i < lanes.n; i++) {
        size_t k = 0;
        while (k < lanes.n && strcmp(w->bell_lanes[k], lanes.queue[i]) != 0)
            k++;
        if (k == lanes.n)
            return false;
    }
    return true;
}

static int remember_lanes(struct ls_redis_worker *w, struct lq_lanes lanes, lade_err *err)
{
    char(*copy)[LADE_NAME_MAX + 1] = lb_malloc(lanes.n * sizeof(*copy));
    if (!copy)
        return lb_fail_nomem(err, "wait");
    for (size_t i = 0; i < lanes.n; i++)
        (void)snprintf(copy[i], sizeof(copy[i]), "%s", lanes.queue[i]);
    lb_free(w->bell_lanes);
    w->bell_lanes = copy;
    w->n_bell_lanes = lanes.n;
    return 0;
}

static int send_blpop(struct ls_redis_store *s, struct ls_redis_worker *w, struct lq_lanes lanes,
                      lade_err *err)
{
    char name[8 + LADE_ID_MAX];
    (void)snprintf(name, sizeof(name), "bell:%s", w->known.id);
    struct ls_redis_cmd *cmd = ls_redis_conn_begin(w->bell, lanes.n + 2);
    ls_redis_arg_str(cmd, "BLPOP");
    for (size_t i = 0; i < lanes.n; i++)
        ls_redis_key(cmd, s->base.config.ns, lanes.queue[i], name);
    ls_redis_arg_int(cmd, LB_MAX(s->block_ms / 1000, 1));
    ls_redis_cmd_end(cmd);
    w->answer_by = lb_deadline_in(s->block_ms * LADE_MILLISECOND + BLOCK_MARGIN);
    return ls_redis_conn_send(w->bell, ls_redis_deadline(s), err);
}

/* Connected, with a BLPOP over these lanes outstanding. 1: the connection is new, so a bell may have been missed. */
static int make_ready(struct ls_redis_store *s, struct ls_redis_worker *w, struct lq_lanes lanes,
                      int64_t deadline, lade_err *err)
{
    int rc = 0, fresh = 0;
    if (!w->bell)
        rc = ls_redis_conn_make(s, true, &w->bell, err);
    if (rc < 0)
        return rc;
    if (!is_same_lanes(w, lanes)) {
        ls_redis_conn_drop(w->bell);
        rc = remember_lanes(w, lanes, err);
        if (rc < 0)
            return rc;
    }
    if (!ls_redis_conn_is_up(w->bell)) {
        uint64_t before = ls_redis_conn_generation(w->bell);
        rc = ls_redis_conn_connect(w->bell, LB_MIN(deadline, lb_deadline_in(CONNECT_STEP)), err);
        if (rc < 0)
            return rc;
        fresh = before > 0;
    }
    if (ls_redis_conn_outstanding(w->bell) == 0)
        rc = send_blpop(s, w, lanes, err);
    return rc < 0 ? rc : fresh;
}

/* An answer ends the wait whatever it is: a bell, a minute without one, or an error whose cause the next take will meet. */
static void look_at_answer(struct ls_redis_worker *w)
{
    struct ls_redis_cursor cur = ls_redis_conn_reply(w->bell, 0);
    if (ls_redis_peek(&cur) == LS_REDIS_ERROR)
        ls_redis_conn_drop(w->bell);
}

static int wait_for_bell(struct ls_redis_store *s, struct ls_redis_worker *w, struct lq_lanes lanes,
                         int64_t deadline, lade_err *err)
{
    while (lb_clock_mono() < deadline) {
        struct lr_fd woken = {.fd = w->known.wake.fd, .want = LR_READ};
        if (lr_wait_fds(&woken, 1, 0) > 0) {
            lr_event_clear(&w->known.wake);
            if (atomic_exchange(&w->in_doubt, false) && w->bell)
                ls_redis_conn_drop(w->bell);
            return 0;
        }
        int rc = make_ready(s, w, lanes, deadline, err);
        if (rc < 0)
            return lb_clock_mono() >= deadline && rc == -LADE_EUNAVAILABLE ? LADE_EMPTY : rc;
        if (rc > 0)
            return 0;
        rc = ls_redis_conn_await(w->bell, &w->known.wake, LB_MIN(deadline, w->answer_by), err);
        if (rc == LS_REDIS_WOKEN)
            continue;
        if (rc == LS_REDIS_REPLIED)
            look_at_answer(w);
        if (rc <= 0)
            return 0;
        if (rc == LS_REDIS_LATE && deadline > w->answer_by) {
            ls_redis_conn_drop(w->bell);
            return 0;
        }
    }
    return LADE_EMPTY;
}

int ls_redis_wait(struct lq_store *base, const char *worker, struct lq_lanes lanes,
                  int64_t deadline, lade_err *err)
{
    struct ls_redis_store *s = ls_redis_of(base);
    struct ls_redis_worker *w = ls_redis_worker_ref(s, worker);
    if (!w)
        return lb_fail_nomem(err, "wait");
    int rc = lanes.n > 1 && ls_redis_in_slots(s) ? ls_redis_wait_slots(s, w, lanes, deadline, err)
                                                 : wait_for_bell(s, w, lanes, deadline, err);
    ls_redis_worker_unref(s, w);
    return rc;
}

void ls_redis_doubt_bells(struct ls_redis_store *s)
{
    lr_mutex_lock(&s->workers.lock);
    lb_list_each (it, &s->workers.list) {
        struct ls_redis_worker *w = LB_CONTAINER_OF(it, struct ls_redis_worker, known.node);
        atomic_store(&w->in_doubt, true);
        lr_event_raise(&w->known.wake);
    }
    lr_mutex_unlock(&s->workers.lock);
}

void ls_redis_wake(struct lq_store *base, const char *worker)
{
    ls_redis_registry_wake(&ls_redis_of(base)->workers, worker);
}
