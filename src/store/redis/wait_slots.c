/*
 * wait_slots.c - waiting for bells that lie in several slots
 *
 * No command blocks over keys of several slots. So the connection of the bell asks whether any of them was rung, each by a command of its
 * own, and has the server tell it of changes of what it has read (CLIENT TRACKING): a ring is such a change. Nothing is sent while it waits.
 * Where tracking is refused it asks ten times a second.
 *
 * A change that is no ring, as a bell that the last take took away, ends a wait in vain.
 */
#include <stdatomic.h>

#include "base/base.h"
#include "base/clock.h"
#include "store/redis/slots.h"

#define LOOK_NS (100 * LADE_MILLISECOND)

struct asking {
    const struct ls_redis_store *s;
    struct ls_redis_worker *w;
    struct lq_lanes lanes;
    bool greets;
};

static void encode_bells(struct ls_redis_conn *c, void *ctx, bool repeat LB_UNUSED)
{
    struct asking *a = ctx;
    char name[8 + LADE_ID_MAX];
    a->greets = a->w->told != ls_redis_conn_generation(c);
    if (a->greets) {
        struct ls_redis_cmd *cmd = ls_redis_conn_begin(c, 3);
        ls_redis_arg_str(cmd, "CLIENT");
        ls_redis_arg_str(cmd, "TRACKING");
        ls_redis_arg_str(cmd, "ON");
        ls_redis_cmd_end(cmd);
    }
    (void)snprintf(name, sizeof(name), "bell:%s", a->w->known.id);
    for (size_t i = 0; i < a->lanes.n; i++) {
        struct ls_redis_cmd *cmd = ls_redis_conn_begin(c, 2);
        ls_redis_arg_str(cmd, "EXISTS");
        ls_redis_key(cmd, a->s->base.config.ns, a->lanes.queue[i], name);
        ls_redis_cmd_end(cmd);
    }
}

/* 1: none is rung, and we shall be told; 0: one is; < 0. */
static int ask(struct asking *a, int64_t deadline, lade_err *err)
{
    struct ls_redis_worker *w = a->w;
    struct ls_redis_call call = {encode_bells, a, "wait", false, true};
    int rc = ls_redis_conn_call(w->bell, &call, deadline, err);
    if (rc < 0)
        return rc;
    size_t at = 0;
    if (a->greets) {
        struct ls_redis_cursor cur = ls_redis_conn_reply(w->bell, at++);
        w->untold = ls_redis_peek(&cur) == LS_REDIS_ERROR;
        w->told = ls_redis_conn_generation(w->bell);
    }
    bool rung = false;
    for (size_t i = 0; i < a->lanes.n; i++) {
        struct ls_redis_cursor cur = ls_redis_conn_reply(w->bell, at + i);
        if (ls_redis_peek(&cur) == LS_REDIS_ERROR)
            return 0; /* the take that follows meets its cause */
        rung = rung || ls_redis_read_int(&cur) != 0;
    }
    return rung ? 0 : 1;
}

/* 1: nothing until then; 0: something; < 0: the connection is lost. */
static int listen_for_change(struct ls_redis_worker *w, uint64_t before, int64_t until,
                             lade_err *err)
{
    while (ls_redis_conn_pushes(w->bell) == before) {
        struct lr_fd fd[] = {{.fd = ls_redis_conn_fd(w->bell), .want = LR_READ},
                             {.fd = w->known.wake.fd, .want = LR_READ}};
        if (lr_wait_fds(fd, LB_ARRAY_LEN(fd), until) <= 0)
            return 1;
        if (fd[1].ready) {
            lr_event_clear(&w->known.wake);
            if (atomic_exchange(&w->in_doubt, false))
                ls_redis_conn_drop(w->bell);
            return 0;
        }
        int rc = ls_redis_conn_await(w->bell, NULL, lb_clock_mono(), err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

int ls_redis_wait_slots(struct ls_redis_store *s, struct ls_redis_worker *w, struct lq_lanes lanes,
                        int64_t deadline, lade_err *err)
{
    struct asking a = {.s = s, .w = w, .lanes = lanes};
    int64_t minute = lb_deadline_in(s->block_ms * LADE_MILLISECOND);
    int rc = w->bell ? 0 : ls_redis_conn_make(s, true, &w->bell, err);
    if (rc < 0)
        return rc;
    if (ls_redis_conn_outstanding(w->bell) > 0) /* a BLPOP of when it had one lane */
        ls_redis_conn_drop(w->bell);
    while (lb_clock_mono() < deadline) {
        uint64_t before = ls_redis_conn_pushes(w->bell);
        rc = ask(&a, LB_MIN(deadline, ls_redis_deadline(s)), err);
        if (rc < 0)
            return lb_clock_mono() >= deadline && rc == -LADE_EUNAVAILABLE ? LADE_EMPTY : rc;
        if (rc == 0)
            return 0;
        int64_t until = LB_MIN(deadline, w->untold ? lb_deadline_in(LOOK_NS) : minute);
        rc = listen_for_change(w, before, until, err);
        if (rc <= 0 || lb_clock_mono() >= minute) /* what it is, the take finds out */
            return 0;
    }
    return LADE_EMPTY;
}
