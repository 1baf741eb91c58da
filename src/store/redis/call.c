/*
 * call.c - one round trip with everything that may go wrong handled; see ls_redis_conn_call
 *
 *   connect -> encode -> exchange -> judge the replies
 *      ^          ^          |             |
 *      |          |          |             +-- all fine, or nothing to be done about it: return
 *      |          |          |             +-- scripts forgotten: load them, once
 *      |          +----------|-------------+-- wait: LOADING, BUSY ...
 *      +---------------------+-------------+-- lost, READONLY ...
 *
 * Whether a try may have been executed is remembered over all of them and told to `encode`. A refusal by first word
 * means that nothing ran; one that came out of a script, any reply beside it that is no error, and a connection lost
 * after the first command was sent mean that something may have.
 */
#include "store/redis/conn_inner.h"

#include "base/base.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/ident.h"

#define PACE_MIN   (50 * LADE_MILLISECOND)
#define PACE_STEPS 6 /* 50 ms * 2^5 = 1.6 s, then 2 s */
#define PACE_MAX   (2 * LADE_SECOND)

void ls_redis_pace_slower(struct ls_redis_pace *p)
{
    int64_t pause = p->step < PACE_STEPS ? PACE_MIN << p->step : PACE_MAX;
    p->step += p->step < PACE_STEPS;
    /* Between half and all of it, so that clients that failed together come back apart. */
    pause = pause / 2 + (int64_t)lb_rand_below((uint64_t)pause / 2 + 1);
    p->not_before = lb_deadline_in(pause);
}

bool ls_redis_pace_wait(const struct ls_redis_pace *p, int64_t deadline)
{
    bool in_time = p->not_before < deadline && lb_clock_mono() < deadline;
    if (!in_time || p->not_before > lb_clock_mono())
        lr_sleep_until(LB_MIN(p->not_before, deadline));
    return in_time;
}

struct
try {
    struct ls_redis_conn *c;
    const struct ls_redis_call *call;
    int64_t deadline;
    struct ls_redis_pace pace; /* of waiting for a server that is there */
    bool may_have_run;         /* one of the tries so far */
    bool reloaded;
    lade_err *err;
};

static int64_t end_of(const struct try *t)
{
    return ls_redis_conn_hurried(t->c, t->deadline);
}

/* What a round of replies says. */
struct verdict {
    struct lb_slice error; /* the first, in the reply */
    enum ls_redis_refusal refusal;
    bool ran; /* some command may have been executed */
};

static struct verdict judge(const struct ls_redis_conn *c)
{
    struct verdict v = {0};
    for (size_t i = 0; i < c->got; i++) {
        struct ls_redis_cursor cur = ls_redis_cursor(ls_redis_conn_span(c, i));
        if (LB_LIKELY(ls_redis_peek(&cur) != LS_REDIS_ERROR)) {
            v.ran = true;
            continue;
        }
        struct lb_slice text = ls_redis_read(&cur).bytes;
        bool wrapped;
        enum ls_redis_refusal r = ls_redis_refusal_of(text, &wrapped);
        v.ran |= wrapped || r == LS_REDIS_REFUSED_OTHER || r == LS_REDIS_REFUSED_UNBLOCKED;
        if (v.refusal == LS_REDIS_REFUSED_NOT) {
            v.error = text;
            v.refusal = r;
        }
    }
    return v;
}

/* After a remedy: true when the call is to be sent again. */
static bool may_repeat(const struct try *t)
{
    return !(t->call->once && t->may_have_run) && lb_clock_mono() < end_of(t);
}

/* 1: send again; 0: done; < 0: failed. */
static int remedy(struct try *t, const struct verdict *v)
{
    struct ls_redis_conn *c = t->c;
    enum ls_redis_remedy what = ls_redis_refusal_remedy(v->refusal);
    if (what == LS_REDIS_REMEDY_NONE && t->call->raw)
        return 0;
    int rc = ls_redis_refusal_fail(t->err, t->call->where, c->config.url->text, v->error);
    if (what == LS_REDIS_REMEDY_NONE || !may_repeat(t))
        return rc;
    switch (what) {
    case LS_REDIS_REMEDY_WAIT:
        ls_redis_pace_slower(&t->pace);
        return ls_redis_pace_wait(&t->pace, end_of(t)) ? 1 : rc;
    case LS_REDIS_REMEDY_RECONNECT:
        ls_redis_conn_drop(c);
        ls_redis_pace_slower(&c->pace);
        return ls_redis_pace_wait(&c->pace, end_of(t)) ? 1 : rc;
    case LS_REDIS_REMEDY_RELOAD: {
        if (t->reloaded)
            return rc;
        t->reloaded = true;
        bool again;
        rc = ls_redis_scripts_load(c, v->refusal == LS_REDIS_REFUSED_FUNCTIONS, t->deadline, &again,
                                   t->err);
        return rc == 0 || again ? 1 : rc;
    }
    case LS_REDIS_REMEDY_NONE:
        break;
    }
    return rc;
}

/* One try. 1: send again; 0: done; < 0: failed. */
static int try_once(struct try *t)
{
    struct ls_redis_conn *c = t->c;
    int rc = ls_redis_conn_connect(c, t->deadline, t->err);
    if (rc < 0)
        return rc;
    ls_redis_conn_reset(c);
    c->may_have_run = false;
    t->call->encode(c, t->call->ctx, t->may_have_run);
    rc = ls_redis_conn_exchange(c, t->call->where, t->deadline, t->err);
    if (rc < 0) {
        t->may_have_run |= c->may_have_run;
        if (rc != -LADE_EUNAVAILABLE || !may_repeat(t))
            return rc;
        /* The first redial is at once; a connection that breaks again and again is paced. */
        if (c->pace.step++ > 0)
            ls_redis_pace_slower(&c->pace);
        return 1;
    }
    struct verdict v = judge(c);
    if (v.refusal == LS_REDIS_REFUSED_NOT)
        return 0;
    t->may_have_run |= v.ran;
    return remedy(t, &v);
}

int ls_redis_conn_call(struct ls_redis_conn *c, const struct ls_redis_call *call, int64_t deadline,
                       lade_err *err)
{
    struct try t = {.c = c, .call = call, .deadline = deadline, .err = err};
    int rc;
    do
        rc = try_once(&t);
    while (rc == 1);
    c->may_have_run = t.may_have_run;
    if (rc == 0)
        c->pace = (struct ls_redis_pace){0};
    return rc;
}
