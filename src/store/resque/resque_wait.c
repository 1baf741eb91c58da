/*
 * resque_wait.c - waiting for a job without asking and without taking it
 *
 * Producers of Resque ring no bell, so the worker has the server tell it of changes (CLIENT TRACKING): one connection reads the keys that
 * matter, however many they are, and the server sends one message when any of them is written. Those are its queues, the set of queues when it
 * serves patterns, the schedule of delayed jobs, and the pause key when it is paused. A worker whose slots are all busy waits for its
 * bell alone: its queues may be full, and would wake it at once.
 *
 * Where tracking is refused the worker looks once a second.
 */
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/err.h"
#include "resque/resque_delayed.h"
#include "resque/resque_queues.h"
#include "store/resque/resque_inner.h"

#define ASK_AGAIN (60 * LADE_SECOND) /* a server that has vanished is noticed by then */
#define ASK_STEP  (2 * LADE_SECOND)  /* at most so long before the bell is heard */
#define UNTRACKED LADE_SECOND

struct wait_call {
    struct ls_resque_store *s;
    struct ls_resque_worker *w;
    struct lq_lanes list;  /* as given */
    struct lq_lanes lanes; /* what it stands for */
    bool dynamic, greeted; /* greeted: the call asked for tracking */
    uint64_t seen;         /* pushes, before it was sent */
};

static void add_words(struct ls_redis_conn *c, const char *a, const char *b, const char *arg)
{
    struct ls_redis_cmd *cmd = ls_redis_conn_begin(c, 3);
    ls_redis_arg_str(cmd, a);
    ls_redis_arg_str(cmd, b);
    if (arg)
        ls_redis_arg_str(cmd, arg);
    ls_redis_cmd_end(cmd);
}

static void add_exists(struct ls_redis_conn *c, const struct wait_call *a)
{
    struct ls_redis_cmd *cmd = ls_redis_conn_begin(c, 1 + a->lanes.n);
    ls_redis_arg_str(cmd, "EXISTS");
    for (size_t i = 0; i < a->lanes.n; i++)
        ls_resque_key_of(cmd, a->s, "queue:", lb_slice_str(a->lanes.queue[i]));
    ls_redis_cmd_end(cmd);
}

static void add_pause(struct ls_redis_conn *c, const struct wait_call *a)
{
    struct ls_redis_cmd *cmd = ls_redis_conn_begin(c, 2);
    ls_redis_arg_str(cmd, "GET");
    ls_resque_key(cmd, a->s, RQ_KEY_PAUSE);
    ls_redis_cmd_end(cmd);
}

static void add_schedule(struct ls_redis_conn *c, const struct wait_call *a)
{
    struct ls_redis_cmd *cmd = ls_redis_conn_begin(c, 5);
    ls_redis_arg_str(cmd, "ZRANGE");
    ls_resque_key(cmd, a->s, RQ_KEY_SCHEDULE);
    ls_redis_arg_str(cmd, "0");
    ls_redis_arg_str(cmd, "0");
    ls_redis_cmd_end(cmd);
}

/* Of a new connection, whether it will be told anything: over protocol 2 the answer is no map, and no messages come. */
static void encode_watch(struct ls_redis_conn *c, void *ctx, bool repeat LB_UNUSED)
{
    struct wait_call *a = ctx;
    a->greeted = ls_redis_conn_generation(c) != a->w->watch.generation;
    if (a->greeted) {
        add_words(c, "CLIENT", "TRACKING", "ON");
        add_words(c, "CLIENT", "TRACKINGINFO", NULL);
    }
    add_schedule(c, a);
    if (a->w->paused)
        add_pause(c, a);
    if (a->dynamic)
        ls_resque_lanes_ask(c, a->s);
    if (!a->w->paused && a->lanes.n > 0)
        add_exists(c, a);
}

/* Whether the first delayed job is due sooner than the last take said. */
static bool is_sooner(const struct ls_resque_worker *w, struct ls_redis_cursor cur)
{
    if (ls_redis_read_array(&cur) == 0)
        return false;
    int64_t at = ls_redis_read_int(&cur);
    return cur.bad || w->due_ms < 0 || at * 1000 < w->due_ms;
}

static bool is_paused(struct ls_redis_cursor cur)
{
    struct lb_slice text = ls_redis_read_bytes_or_null(&cur);
    while (text.n > 0 && (text.p[0] <= ' ' || text.p[text.n - 1] <= ' ')) {
        bool front = text.p[0] <= ' ';
        text = lb_slice(text.p + front, text.n - 1);
    }
    return text.n == 4 && strncasecmp((const char *)text.p, "true", 4) == 0;
}

/* < 0, 0: something is there, or has changed since the take; 2: nothing yet, and we shall be told. */
static int read_watch(struct wait_call *a, struct ls_redis_conn *c, lade_err *err)
{
    struct ls_resque_worker *w = a->w;
    size_t at = 0;
    if (a->greeted) {
        struct ls_redis_cursor on = ls_redis_conn_reply(c, 0), info = ls_redis_conn_reply(c, 1);
        w->watch.refused =
            ls_redis_peek(&on) == LS_REDIS_ERROR || ls_redis_peek(&info) != LS_REDIS_MAP;
        w->watch.generation = ls_redis_conn_generation(c);
        at = 2;
    }
    if (is_sooner(w, ls_redis_conn_reply(c, at++)))
        return 0;
    if (w->paused && !is_paused(ls_redis_conn_reply(c, at++)))
        return 0;
    if (a->dynamic) {
        struct ls_resque_lanes now = {0};
        int rc = ls_resque_lanes_read(&now, a->list, ls_redis_conn_reply(c, at++), err);
        if (rc < 0)
            return rc;
        bool same = ls_resque_lanes_equal(&now, &w->lanes);
        ls_resque_lanes_fini(&now);
        if (!same)
            return 0;
    }
    if (w->paused || a->lanes.n == 0)
        return 2;
    struct ls_redis_cursor cur = ls_redis_conn_reply(c, at);
    return ls_redis_read_int(&cur) > 0 || cur.bad ? 0 : 2;
}

/* Asks, and is told of changes from then on. */
static int ask(struct wait_call *a, int64_t deadline, lade_err *err)
{
    struct ls_resque_watch *w = &a->w->watch;
    int rc = w->conn ? 0 : ls_resque_conn_make(a->s, true, true, &w->conn, err);
    if (rc < 0)
        return rc;
    struct ls_redis_call call = {encode_watch, a, "wait", false, true};
    a->seen = ls_redis_conn_pushes(w->conn);
    rc = ls_redis_conn_call(w->conn, &call, LB_MIN(deadline, lb_deadline_in(ASK_STEP)), err);
    if (rc == -LADE_EUNAVAILABLE && lb_clock_mono() >= deadline)
        return LADE_EMPTY;
    return rc < 0 ? rc : read_watch(a, w->conn, err);
}

static int wait_for_wake(struct ls_resque_worker *w, int64_t deadline)
{
    struct lr_fd fd = {.fd = w->known.wake.fd, .want = LR_READ};
    if (lr_wait_fds(&fd, 1, deadline) <= 0)
        return LADE_EMPTY;
    lr_event_clear(&w->known.wake);
    return 0;
}

/* 0: a change, the bell, or a connection that is lost; LADE_EMPTY: it is time. */
static int listen_until(const struct wait_call *a, int64_t until, lade_err *err)
{
    struct ls_redis_conn *c = a->w->watch.conn;
    for (;;) {
        if (ls_redis_conn_pushes(c) != a->seen)
            return 0;
        struct lr_fd fd[2] = {{.fd = a->w->known.wake.fd, .want = LR_READ},
                              {.fd = ls_redis_conn_fd(c), .want = LR_READ}};
        int ready = lr_wait_fds(fd, LB_ARRAY_LEN(fd), until);
        if (ready < 0)
            return lb_fail(err, LADE_EIO, "wait",
                           "the system does not let us wait for descriptors");
        if (fd[0].ready) {
            lr_event_clear(&a->w->known.wake);
            return 0;
        }
        if (ready == 0 && lb_clock_mono() >= until)
            return LADE_EMPTY;
        if (fd[1].ready && ls_redis_conn_await(c, NULL, 0, err) < 0)
            return 0; /* the next take meets the server as it is */
    }
}

static int wait_for_change(struct wait_call *a, int64_t deadline, lade_err *err)
{
    while (lb_clock_mono() < deadline) {
        int rc = ask(a, deadline, err);
        if (rc != 2)
            return rc;
        if (a->w->watch.refused)
            return wait_for_wake(a->w, LB_MIN(deadline, lb_deadline_in(UNTRACKED))) == 0 ||
                           lb_clock_mono() < deadline
                       ? 0
                       : LADE_EMPTY;
        rc = listen_until(a, LB_MIN(deadline, lb_deadline_in(ASK_AGAIN)), err);
        if (rc != LADE_EMPTY)
            return rc;
    }
    return LADE_EMPTY;
}

int ls_resque_wait(struct lq_store *base, const char *worker, struct lq_lanes lanes,
                   int64_t deadline, lade_err *err)
{
    struct ls_resque_store *s = ls_resque_of(base);
    struct ls_resque_worker *w = ls_resque_worker_ref(s, worker);
    if (!w)
        return lb_fail_nomem(err, "wait");
    struct wait_call a = {.s = s,
                          .w = w,
                          .list = lanes,
                          .lanes = lanes,
                          .dynamic = rq_queues_are_dynamic(lanes.queue, lanes.n)};
    if (a.dynamic)
        a.lanes = ls_resque_lanes_of(&w->lanes);
    int rc = w->full ? wait_for_wake(w, deadline) : wait_for_change(&a, deadline, err);
    ls_resque_worker_unref(s, w);
    return rc;
}

void ls_resque_wake(struct lq_store *base, const char *worker)
{
    ls_redis_registry_wake(&ls_resque_of(base)->workers, worker);
}
