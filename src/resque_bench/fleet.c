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
static int watch(struct rb_fleet *f, struct rb_worker *w, lade_err *err)
{
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = w};
    w->fd = ls_redis_conn_fd(w->conn);
    if (epoll_ctl(f->epoll, EPOLL_CTL_ADD, w->fd, &e) < 0)
        return lb_fail_errno(err, errno, "connect", "epoll");
    return 0;
}

static int dial(struct rb_fleet *f, struct rb_worker *w, int64_t deadline, lade_err *err)
{
    static const struct ls_redis_conn_config base = {
        .name = "resque-bench", .connect_timeout = DIAL, .no_spin = true};
    struct ls_redis_conn_config config = base;
    bool reached = false; /* so that a server that is not there is told at once */
    config.url = &f->server->url;
    config.reached = &reached;
    ls_redis_conn_close(w->conn);
    w->conn = NULL;
    w->fd = -1;
    int rc = ls_redis_conn_open(&w->conn, &config, err);
    if (rc == 0)
        rc = ls_redis_conn_connect(w->conn, deadline, err);
    return rc < 0 ? rc : watch(f, w, err);
}

void rb_lost(struct rb_fleet *f, struct rb_worker *w)
{
    f->outstanding--;
    f->count.errors++;
    f->count.lost_commands++;
    if (w == f->producer)
        f->arrivals.sent -=
            w->putting; /* put again: one that came through all the same shows as a job too many */
    w->putting = 0;
    w->stage = f->quiet ? RB_STOPPED : RB_DOWN;
    w->planned = 0;
    lb_buf_clear(&w->entry);
    ls_redis_conn_drop(w->conn);
    w->fd = -1;
    if (!f->quiet)
        rb_heap_add(f, w, LB_MAX(f->down_until, lb_clock_mono()));
}

/* One that was lost tries again; the others wait for what comes of it. */
static void redial(struct rb_fleet *f, struct rb_worker *w, int64_t now)
{
    if (now < f->down_until) {
        rb_heap_add(f, w, f->down_until + (int64_t)lb_rand_below(DOWN_MIN / 10));
        return;
    }
    if (dial(f, w, lb_deadline_in(DIAL), NULL) < 0) {
        f->down_until = lb_deadline_in(DOWN_MIN + (int64_t)lb_rand_below(DOWN_MIN));
        rb_heap_add(f, w, f->down_until);
        return;
    }
    f->count.reconnects++;
    w->stage = RB_STOPPED;
    if (w == f->producer)
        rb_put_due(f, now);
    else
        rb_begin(f, w);
}

int rb_fleet_open(struct rb_fleet *f, struct rb_server *s, enum rb_mode mode, size_t n,
                  lade_err *err)
{
    *f = (struct rb_fleet){.server = s, .o = s->o, .mode = mode, .n = n};
    f->epoll = epoll_create1(EPOLL_CLOEXEC);
    f->worker = lb_calloc(n + 1, sizeof(*f->worker)); /* and the producer */
    f->heap = lb_calloc(n + 1, sizeof(struct rb_worker *));
    if (f->epoll < 0 || !f->worker || !f->heap) {
        rb_fleet_close(f);
        return f->epoll < 0 ? lb_fail_errno(err, errno, "connect", "epoll")
                            : lb_fail_nomem(err, "connect");
    }
    for (size_t i = 0; i <= n; i++)
        f->worker[i] = (struct rb_worker){
            .fd = -1, .stage = RB_STOPPED, .number = (uint32_t)i, .heap_at = NOWHERE};
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0 && !rb_interrupted(); i++)
        rc = dial(f, &f->worker[i], lb_deadline_in(10 * LADE_SECOND), err);
    if (rc < 0)
        rb_fleet_close(f);
    return rc;
}

void rb_fleet_close(struct rb_fleet *f)
{
    for (size_t i = 0; f->worker && i <= f->n; i++) {
        ls_redis_conn_close(f->worker[i].conn);
        lb_buf_fini(&f->worker[i].entry);
    }
    if (f->epoll >= 0)
        (void)close(f->epoll);
    lb_free(f->worker);
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
    for (size_t i = 0; i < f->n; i++) {
        struct rb_worker *w = &f->worker[i];
        rq_pace_init(&w->pace, &f->o->pace);
        w->planned = 0;
        if (w->stage != RB_STOPPED)
            continue; /* still without a connection */
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
    int rc = f->producer->conn && ls_redis_conn_is_up(f->producer->conn)
                 ? 0
                 : dial(f, f->producer, lb_deadline_in(10 * LADE_SECOND), err);
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
            redial(f, w, now);
        else if (w == f->producer)
            rb_put_due(f, now);
        else
            rb_begin(f, w);
    }
}

static void handle(struct rb_fleet *f, struct rb_worker *w)
{
    if (w->fd < 0)
        return; /* lost by what was handled before it */
    bool idle = ls_redis_conn_outstanding(w->conn) == 0;
    int rc = ls_redis_conn_await(w->conn, NULL, 0, NULL);
    if (rc == LS_REDIS_REPLIED) {
        rb_answered(f, w, lb_clock_mono());
    } else if (rc < 0 && idle) {
        f->outstanding++; /* closed while it slept */
        rb_heap_remove(f, w);
        rb_lost(f, w);
        f->count.lost_commands--;
    } else if (rc < 0) {
        rb_lost(f, w);
    }
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
    for (size_t i = 0; i < f->n; i++)
        if (f->worker[i].stage == RB_DOWN)
            return false;
    return true;
}

bool rb_fleet_waits_since(const struct rb_fleet *f, int64_t at)
{
    for (size_t i = 0; i < f->n; i++) {
        enum rb_stage stage = f->worker[i].stage;
        bool waits = stage != RB_ASLEEP && stage != RB_STOPPED && stage != RB_DOWN;
        if (waits && f->worker[i].sent_at < at)
            return true;
    }
    return false;
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
    bool blocking = f->mode == RB_BLPOP || f->mode == RB_BLMOVE;
    while (f->outstanding > 0 && !blocking && lb_clock_mono() < until)
        rb_fleet_step(f, until);
}
