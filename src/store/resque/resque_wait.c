/*
 * resque_wait.c - waiting for a job without asking and without taking it
 *
 * Producers of Resque ring no bell, so the worker waits on the queues themselves: BLMOVE of a list onto its own head takes nothing
 * away and returns as soon as there is something. It has one source, so each of the first LS_RESQUE_WATCHED queues gets a connection
 * of its own; a worker of more looks at the rest once a second. A worker whose slots are all busy, or that is paused, waits for its
 * bell alone: its queues may be full, and would wake it at once.
 */
#include <stdio.h>

#include "base/clock.h"
#include "base/err.h"
#include "store/resque/resque_inner.h"

#define BLOCK_MARGIN (2 * LADE_SECOND)
#define CONNECT_STEP (2 * LADE_SECOND)
#define UNWATCHED    LADE_SECOND

static int send_blmove(struct ls_resque_store *s, struct ls_resque_watch *w, lade_err *err)
{
    struct ls_redis_cmd *cmd = ls_redis_conn_begin(w->conn, 6);
    ls_redis_arg_str(cmd, "BLMOVE");
    ls_resque_key_of(cmd, s, "queue:", lb_slice_str(w->queue));
    ls_resque_key_of(cmd, s, "queue:", lb_slice_str(w->queue));
    ls_redis_arg_str(cmd, "LEFT");
    ls_redis_arg_str(cmd, "LEFT");
    ls_redis_arg_int(cmd, LS_RESQUE_BLOCK_MS / 1000);
    ls_redis_cmd_end(cmd);
    w->answer_by = lb_deadline_in(LS_RESQUE_BLOCK_MS * LADE_MILLISECOND + BLOCK_MARGIN);
    return ls_redis_conn_send(w->conn, ls_resque_deadline(s), err);
}

static int make_ready(struct ls_resque_store *s, struct ls_resque_watch *w, const char *queue,
                      int64_t deadline, lade_err *err)
{
    int rc = w->conn ? 0 : ls_resque_conn_make(s, true, true, &w->conn, err);
    if (rc < 0)
        return rc;
    bool other = strcmp(w->queue, queue) != 0;
    bool late = ls_redis_conn_outstanding(w->conn) > 0 && lb_clock_mono() > w->answer_by;
    if (other || late)
        ls_redis_conn_drop(w->conn);
    if (other)
        (void)snprintf(w->queue, sizeof(w->queue), "%s", queue);
    if (!ls_redis_conn_is_up(w->conn))
        rc = ls_redis_conn_connect(w->conn, LB_MIN(deadline, lb_deadline_in(CONNECT_STEP)), err);
    if (rc == 0 && ls_redis_conn_outstanding(w->conn) == 0)
        rc = send_blmove(s, w, err);
    return rc;
}

/* 1: the queue has something, or something is odd, which the take will meet. 0: a minute without. */
static int look(struct ls_resque_watch *w, lade_err *err)
{
    int rc = ls_redis_conn_await(w->conn, NULL, 0, err);
    if (rc < 0)
        return 1;
    if (rc != LS_REDIS_REPLIED)
        return 0;
    struct ls_redis_cursor cur = ls_redis_conn_reply(w->conn, 0);
    enum ls_redis_type type = ls_redis_peek(&cur);
    if (type == LS_REDIS_ERROR)
        ls_redis_conn_drop(w->conn);
    return type != LS_REDIS_NULL;
}

/* As wait, or 2: nothing yet. */
static int wait_for_queues(struct ls_resque_store *s, struct ls_resque_worker *w,
                           struct lq_lanes lanes, int64_t deadline, lade_err *err)
{
    struct lr_fd fd[LS_RESQUE_WATCHED + 1] = {{.fd = w->wake.fd, .want = LR_READ}};
    size_t n = LB_MIN(lanes.n, LS_RESQUE_WATCHED);
    int64_t until = deadline;
    for (size_t i = 0; i < n; i++) {
        int rc = make_ready(s, &w->watch[i], lanes.queue[i], deadline, err);
        if (rc < 0)
            return lb_clock_mono() >= deadline && rc == -LADE_EUNAVAILABLE ? LADE_EMPTY : rc;
        fd[i + 1] = (struct lr_fd){.fd = ls_redis_conn_fd(w->watch[i].conn), .want = LR_READ};
        until = LB_MIN(until, w->watch[i].answer_by);
    }
    int ready = lr_wait_fds(fd, n + 1, until);
    if (ready < 0)
        return lb_fail(err, LADE_EIO, "wait", "the system does not let us wait for descriptors");
    if (fd[0].ready) {
        lr_event_clear(&w->wake);
        return 0;
    }
    for (size_t i = 0; i < n; i++)
        if (fd[i + 1].ready && look(&w->watch[i], err) != 0)
            return 0;
    return 2;
}

static int wait_for_wake(struct ls_resque_worker *w, int64_t deadline)
{
    struct lr_fd fd = {.fd = w->wake.fd, .want = LR_READ};
    if (lr_wait_fds(&fd, 1, deadline) <= 0)
        return LADE_EMPTY;
    lr_event_clear(&w->wake);
    return 0;
}

static int wait_as(struct ls_resque_store *s, struct ls_resque_worker *w, struct lq_lanes lanes,
                   int64_t deadline, lade_err *err)
{
    if (w->full)
        return wait_for_wake(w, deadline);
    int64_t paused = lb_deadline_in(LS_RESQUE_PAUSED);
    if (w->paused)
        return wait_for_wake(w, LB_MIN(deadline, paused)) == LADE_EMPTY && deadline <= paused
                   ? LADE_EMPTY
                   : 0;
    int64_t rest = lanes.n > LS_RESQUE_WATCHED ? lb_deadline_in(UNWATCHED) : LB_FOREVER;
    while (lb_clock_mono() < LB_MIN(deadline, rest)) {
        int rc = wait_for_queues(s, w, lanes, LB_MIN(deadline, rest), err);
        if (rc != 2)
            return rc;
    }
    return rest < deadline ? 0 : LADE_EMPTY;
}

int ls_resque_wait(struct lq_store *base, const char *worker, struct lq_lanes lanes,
                   int64_t deadline, lade_err *err)
{
    struct ls_resque_store *s = ls_resque_of(base);
    struct ls_resque_worker *w = ls_resque_worker_ref(s, worker);
    if (!w)
        return lb_fail_nomem(err, "wait");
    int rc = wait_as(s, w, lanes, deadline, err);
    ls_resque_worker_unref(s, w);
    return rc;
}

void ls_resque_wake(struct lq_store *base, const char *worker)
{
    struct ls_resque_store *s = ls_resque_of(base);
    struct ls_resque_worker *w = ls_resque_worker_ref(s, worker);
    if (!w)
        return;
    lr_event_raise(&w->wake);
    ls_resque_worker_unref(s, w);
}
