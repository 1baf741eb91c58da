/*
 * fleet.c - time, connections and the loop; see fleet.h
 *
 * The loop is level-triggered: a worker has one request on its way, so that an event is one read that empties the socket. Time is asked
 * for once an event.
 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/ident.h"
#include "base/mem.h"
#include "resque_bench/fleet_inner.h"

#define EVENTS   256
#define DIAL     (2 * LADE_SECOND)
#define DOWN_MIN (50 * LADE_MILLISECOND)
#define NOWHERE  SIZE_MAX

/* heap ------------------------------------------------------------------------------------------------------------- */

static void heap_put(struct rb_fleet *f, size_t at, struct rb_worker *w)
{
    f->heap[at] = w;
    w->heap_at = at;
}

static void sift_up(struct rb_fleet *f, size_t at, struct rb_worker *w)
{
    while (at > 0 && f->heap[(at - 1) / 2]->wake_at > w->wake_at) {
        heap_put(f, at, f->heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    heap_put(f, at, w);
}

static void sift_down(struct rb_fleet *f, size_t at, struct rb_worker *w)
{
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= f->n_heap)
            break;
        if (child + 1 < f->n_heap && f->heap[child + 1]->wake_at < f->heap[child]->wake_at)
            child++;
        if (f->heap[child]->wake_at >= w->wake_at)
            break;
        heap_put(f, at, f->heap[child]);
        at = child;
    }
    heap_put(f, at, w);
}

void rb_heap_add(struct rb_fleet *f, struct rb_worker *w, int64_t at)
{
    rb_heap_remove(f, w);
    w->wake_at = at;
    sift_up(f, f->n_heap++, w);
}

void rb_heap_remove(struct rb_fleet *f, struct rb_worker *w)
{
    size_t at = w->heap_at;
    if (at == NOWHERE)
        return;
    w->heap_at = NOWHERE;
    struct rb_worker *last = f->heap[--f->n_heap];
    if (last == w)
        return;
    if (at > 0 && f->heap[(at - 1) / 2]->wake_at > last->wake_at)
        sift_up(f, at, last);
    else
        sift_down(f, at, last);
}

/* connections ------------------------------------------------------------------------------------------------------ */

/* The descriptor may be a new one with the old number: what epoll knows of a closed one is gone. */
static int watch(struct rb_fleet *f, struct rb_lane *lane, lade_err *err)
{
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = lane};
    if (epoll_ctl(f->epoll, EPOLL_CTL_ADD, ls_redis_conn_fd(lane->conn), &e) < 0)
        return lb_fail_errno(err, errno, "connect", "epoll");
    lane->fd = ls_redis_conn_fd(lane->conn);
    return 0;
}

static int dial(struct rb_fleet *f, struct rb_lane *lane, int64_t deadline, lade_err *err)
{
    struct ls_redis_conn_config config = {.url = &f->server->url,
                                          .name = "resque-bench",
                                          .connect_timeout = DIAL,
                                          .no_spin = true,
                                          .reached = &lane->reached};
    ls_redis_conn_close(lane->conn);
    lane->conn = NULL;
    lane->fd = -1;
    lane->reached = false;
    int rc = ls_redis_conn_open(&lane->conn, &config, err);
    if (rc == 0)
        rc = ls_redis_conn_connect(lane->conn, deadline, err);
    return rc < 0 ? rc : watch(f, lane, err);
}

/* What was on its way is lost, and its worker begins anew when the lane is up. */
static void restart(struct rb_fleet *f, struct rb_worker *w)
{
    f->outstanding--;
    f->count.errors++;
    f->count.lost_commands += w->replies;
    w->planned = 0;
    lb_buf_clear(&w->entry);
    if (w == f->producer) {
        /* Put again: one that came through all the same is a job too many. */
        f->arrivals.sent -= w->putting;
        w->putting = 0;
        rb_send(f, w, RB_PUTTING);
    } else {
        rb_begin(f, w);
    }
}

void rb_lane_lost(struct rb_fleet *f, struct rb_lane *lane)
{
    struct rb_line flight = lane->flight;
    lane->flight = (struct rb_line){0};
    ls_redis_conn_drop(lane->conn);
    lane->fd = -1;
    if (!flight.first)
        f->count.errors++; /* closed while its workers slept */
    for (struct rb_worker *w = rb_line_take(&flight); w; w = rb_line_take(&flight))
        restart(f, w);
    if (!f->quiet)
        rb_heap_add(f, &lane->dialer, LB_MAX(f->down_until, lb_clock_mono()));
}

/* One lane that was lost tries again; the others wait for what comes of it. */
static void redial(struct rb_fleet *f, struct rb_lane *lane, int64_t now)
{
    if (now < f->down_until) {
        rb_heap_add(f, &lane->dialer, f->down_until + (int64_t)lb_rand_below(DOWN_MIN / 10));
        return;
    }
    if (dial(f, lane, lb_deadline_in(DIAL), NULL) < 0) {
        f->down_until = lb_deadline_in(DOWN_MIN + (int64_t)lb_rand_below(DOWN_MIN));
        rb_heap_add(f, &lane->dialer, f->down_until);
        return;
    }
    f->count.reconnects++;
    rb_lane_flush(f, lane);
}

static bool allocate(struct rb_fleet *f)
{
    f->worker = lb_calloc(f->n + 1, sizeof(*f->worker)); /* and the producer, with its lane */
    f->lane = lb_calloc(f->n_lanes + 1, sizeof(*f->lane));
    f->heap = lb_calloc(f->n + 1 + f->n_lanes + 1, sizeof(struct rb_worker *));
    if (!f->worker || !f->lane || !f->heap)
        return false;
    for (size_t i = 0; i <= f->n_lanes; i++) {
        struct rb_lane *lane = &f->lane[i];
        lane->fd = -1;
        lane->dialer = (struct rb_worker){.lane = lane, .stage = RB_DOWN, .heap_at = NOWHERE};
    }
    for (size_t i = 0; i <= f->n; i++)
        f->worker[i] = (struct rb_worker){
            .lane = &f->lane[i == f->n ? f->n_lanes : i % LB_MAX(f->n_lanes, (size_t)1)],
            .stage = RB_STOPPED,
            .number = (uint32_t)i,
            .heap_at = NOWHERE};
    return true;
}

int rb_fleet_open(struct rb_fleet *f, struct rb_server *s, enum rb_mode mode, size_t n,
                  lade_err *err)
{
    size_t lanes = s->o->connections > 0 ? LB_MIN((size_t)s->o->connections, n) : n;
    LB_CHECK(lanes > 0);
    *f = (struct rb_fleet){.server = s, .o = s->o, .mode = mode, .n = n, .n_lanes = lanes};
    f->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (f->epoll < 0 || !allocate(f)) {
        int rc = f->epoll < 0 ? lb_fail_errno(err, errno, "connect", "epoll")
                              : lb_fail_nomem(err, "connect");
        rb_fleet_close(f);
        return rc;
    }
    int rc = 0;
    for (size_t i = 0; i < lanes && rc == 0 && !rb_interrupted(); i++)
        rc = dial(f, &f->lane[i], lb_deadline_in(10 * LADE_SECOND), err);
    if (rc < 0)
        rb_fleet_close(f);
    return rc;
}

void rb_fleet_close(struct rb_fleet *f)
{
    for (size_t i = 0; f->lane && i <= f->n_lanes; i++)
        ls_redis_conn_close(f->lane[i].conn);
    for (size_t i = 0; f->worker && i <= f->n; i++)
        lb_buf_fini(&f->worker[i].entry);
    if (f->epoll >= 0)
        (void)close(f->epoll);
    lb_free(f->worker);
    lb_free(f->lane);
    lb_free(f->heap);
    lb_buf_fini(&f->key);
    *f = (struct rb_fleet){.epoll = -1};
}

/* running ---------------------------------------------------------------------------------------------------------- */

void rb_fleet_reset_counts(struct rb_fleet *f)
{
    f->count = (struct rb_counts){0};
}

void rb_fleet_start(struct rb_fleet *f, bool spread)
{
    int64_t now = lb_clock_mono();
    f->quiet = false;
    f->wall_offset = lb_clock_wall() - now;
    f->last_hit = now;
    for (size_t i = 0; i < f->n_lanes; i++)
        if (f->lane[i].fd < 0)
            rb_heap_add(f, &f->lane[i].dialer, now);
    for (size_t i = 0; i < f->n; i++) {
        struct rb_worker *w = &f->worker[i];
        rq_pace_init(&w->pace, &f->o->pace);
        w->planned = 0;
        if (w->stage != RB_STOPPED)
            continue; /* blocked since the phase before */
        if (spread) {
            int64_t pause = LB_MIN(w->pace.now + w->pace.backoff, w->pace.max);
            double part = ((double)i + 0.5) / (double)f->n;
            w->planned = now + (int64_t)((double)pause * part);
            w->stage = RB_ASLEEP;
            rb_heap_add(f, w, w->planned);
        } else {
            rb_begin(f, w);
        }
    }
}

int rb_fleet_produce(struct rb_fleet *f, lade_err *err)
{
    f->producer = &f->worker[f->n];
    f->arrivals.sent = f->arrivals.acked = 0;
    struct rb_lane *lane = f->producer->lane;
    int rc = lane->fd >= 0 ? 0 : dial(f, lane, lb_deadline_in(10 * LADE_SECOND), err);
    if (rc == 0) {
        f->producer->stage = RB_STOPPED;
        rb_put_due(f, lb_clock_mono());
    }
    return rc;
}

/* Those whose time has come. Each is handled once: what sleeps again sleeps at least until now. */
static void wake_due(struct rb_fleet *f)
{
    int64_t now = lb_clock_mono();
    while (f->n_heap > 0 && f->heap[0]->wake_at <= now) {
        struct rb_worker *w = f->heap[0];
        rb_heap_remove(f, w);
        if (w->stage == RB_DOWN)
            redial(f, w->lane, now);
        else if (w == f->producer)
            rb_put_due(f, now);
        else
            rb_begin(f, w);
    }
}

static void handle(struct rb_fleet *f, struct rb_lane *lane)
{
    if (lane->fd < 0)
        return; /* lost by what was handled before it */
    int rc = ls_redis_conn_await(lane->conn, NULL, 0, NULL);
    if (rc == LS_REDIS_REPLIED)
        rb_lane_answered(f, lane, lb_clock_mono());
    else if (rc < 0)
        rb_lane_lost(f, lane);
}

void rb_fleet_step(struct rb_fleet *f, int64_t until)
{
    struct epoll_event event[EVENTS];
    wake_due(f);
    int64_t next = f->n_heap > 0 ? LB_MIN(f->heap[0]->wake_at, until) : until;
    int64_t wait = LB_MAX(next - lb_clock_mono(), 0);
    struct timespec ts = {.tv_sec = wait / LADE_SECOND, .tv_nsec = wait % LADE_SECOND};
    int n = epoll_pwait2(f->epoll, event, EVENTS, &ts, NULL);
    if (n < 0 && errno == ENOSYS) /* before Linux 5.11 */
        n = epoll_wait(f->epoll, event, EVENTS, (int)lb_ms_up(wait));
    for (int i = 0; i < n; i++)
        handle(f, event[i].data.ptr);
}

bool rb_fleet_is_whole(const struct rb_fleet *f)
{
    for (size_t i = 0; i < f->n_lanes; i++)
        if (f->lane[i].fd < 0)
            return false;
    return true;
}

bool rb_fleet_waits_since(const struct rb_fleet *f, int64_t at)
{
    for (size_t i = 0; i < f->n_lanes; i++)
        for (const struct rb_worker *w = f->lane[i].flight.first; w; w = w->next)
            if (w->sent_at < at)
                return true;
    return false;
}

/* Of a lane that is down nobody is carried to an end. */
static void stop_ready(struct rb_lane *lane)
{
    for (struct rb_worker *w = rb_line_take(&lane->ready); w; w = rb_line_take(&lane->ready))
        w->stage = RB_STOPPED;
}

void rb_fleet_settle(struct rb_fleet *f, int64_t until)
{
    f->quiet = true;
    while (f->n_heap > 0) {
        struct rb_worker *w = f->heap[0];
        rb_heap_remove(f, w);
        if (w->stage == RB_ASLEEP)
            w->stage = RB_STOPPED;
    }
    for (size_t i = 0; i <= f->n_lanes; i++)
        if (f->lane[i].fd < 0)
            stop_ready(&f->lane[i]);
    /* Who blocks is left to it; the producer's answers are awaited always. */
    const struct rb_lane *producer = &f->lane[f->n_lanes];
    bool blocking = f->mode == RB_BLPOP || f->mode == RB_BLMOVE;
    while (blocking ? producer->flight.first != NULL : f->outstanding > 0) {
        if (lb_clock_mono() >= until)
            break;
        rb_fleet_step(f, until);
    }
}
