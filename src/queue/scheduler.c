#include "queue/scheduler.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"

#define IDLE_EVERY \
    (5 * LADE_MINUTE) /* no schedules: somebody rings; this is for a ring that was lost */
#define RETRY_MAX (2 * LADE_SECOND)
#define MARGIN    (20 * LADE_MILLISECOND) /* after a lease has run out */

static void log_to_stderr(void *ctx, const char *line)
{
    (void)ctx;
    (void)fprintf(stderr, "lade: %s\n", line);
}

void lq_scheduler_say(struct lade_scheduler *s, const char *format, ...)
{
    char line[512];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    s->log(s->log_ctx, line);
}

/* looking ---------------------------------------------------------------------------------------------------------- */

/* All waits are monotonic and capped by half the lease, whatever the clocks say (C-062). */
static int64_t plan_wait(const struct lade_scheduler *s, const struct lq_tick *t, bool more)
{
    if (!t->any)
        return IDLE_EVERY;
    if (!t->leads)
        return LB_MIN(lb_ns_of_ms(LB_MAX(t->until_ms - t->now_ms, 0)), s->lease) + MARGIN;
    if (more)
        return 0;
    int64_t wait = s->lease / 2;
    if (t->next_ms != 0)
        wait = LB_MIN(wait, lb_ns_of_ms(LB_MAX(t->next_ms - t->now_ms, 0)));
    return wait;
}

/* Notes what the tick says. True: a leadership has begun. */
static bool note_tick(struct lade_scheduler *s, const struct lq_tick *t)
{
    lr_mutex_lock(&s->lock);
    bool begins = t->leads && (t->took_over || !s->stats.leads);
    s->stats.leads = t->leads;
    s->stats.looks++;
    s->stats.takeovers += begins;
    s->ticked = true;
    lr_mutex_unlock(&s->lock);
    s->fence = t->fence;
    return begins;
}

int lq_scheduler_look(struct lade_scheduler *s, int64_t *until, lade_err *err)
{
    struct lq_schedule_vec vec = {0};
    struct lq_tick tick = {
        .holder = s->holder, .name = s->name, .lease_ms = lb_ms_up(s->lease), .max = LQ_DUE_MAX};
    lb_arena_init(&vec.arena);
    int rc = lq_schedule_tick(s->q->store, &tick, &vec, err);
    if (rc == 0) {
        bool begins = note_tick(s, &tick);
        bool audits = begins || (tick.leads && tick.back_ms > LQ_BACK_MS);
        if (audits && tick.back_ms > LQ_BACK_MS)
            lq_scheduler_say(s, "the store's clock went back by %lld s: next times are found anew",
                             (long long)(tick.back_ms / 1000));
        if (audits)
            rc = lq_scheduler_audit(s, tick.now_ms, err);
        if (tick.leads && rc == 0)
            lq_scheduler_fire(s, &vec, tick.now_ms);
        /* what an audit has changed was read before it: looked at once more */
        *until = lb_deadline_in(plan_wait(s, &tick, audits || vec.n > 0));
        s->next_ms = tick.leads ? tick.next_ms : (tick.any ? tick.until_ms + 1 : 0);
    }
    lb_arena_fini(&vec.arena);
    return rc;
}

static void follow_failure(struct lade_scheduler *s, const lade_err *err, int64_t *until)
{
    if (s->failures++ == 0)
        lq_scheduler_say(s, "cannot look for schedules, trying again: %s", err->text);
    lr_mutex_lock(&s->lock);
    s->stats.leads = false;
    lr_mutex_unlock(&s->lock);
    int64_t pause = LB_MIN(100 * LADE_MILLISECOND << LB_MIN(s->failures, 5), RETRY_MAX);
    *until = lb_deadline_in(pause);
}

static void run_until_stopped(struct lade_scheduler *s)
{
    const struct lq_schedule_ops *ops = s->q->store->ops->schedules;
    while (!lq_scheduler_is_stopping(s)) {
        lade_err err = {0};
        int64_t until = 0;
        if (lq_scheduler_look(s, &until, &err) < 0) {
            follow_failure(s, &err, &until);
            if (ops->wait(s->q->store, s->holder, until, NULL) < 0)
                lr_sleep_until(until);
            continue;
        }
        if (s->failures > 0)
            lq_scheduler_say(s, "looking for schedules works again");
        s->failures = 0;
        if (lb_clock_mono() < until && !lq_scheduler_is_stopping(s) &&
            ops->wait(s->q->store, s->holder, until, NULL) < 0)
            lr_sleep_until(LB_MIN(until, lb_deadline_in(LADE_SECOND / 4)));
    }
    lade_err err = {0};
    if (s->ticked && lq_schedule_resign(s->q->store, s->holder, &err) < 0)
        lq_scheduler_say(s, "could not resign, the lease runs out by itself: %s", err.text);
}

static void run_thread(void *arg)
{
    run_until_stopped(arg);
}

/* life ------------------------------------------------------------------------------------------------------------- */

static int check_config(const lade_scheduler_config *c, lade_err *err)
{
    if (c->lease != 0 && (c->lease < LADE_SECOND || c->lease > LADE_MINUTE))
        return lb_fail(err, LADE_EINVAL, "scheduler", "lease is not within 1 s and 1 min");
    if (c->name && strlen(c->name) > LADE_NAME_MAX)
        return lb_fail(err, LADE_EINVAL, "scheduler", "the name has %zu bytes; at most %d",
                       strlen(c->name), LADE_NAME_MAX);
    return 0;
}

static void set_name(struct lade_scheduler *s, const char *name)
{
    char host[64] = "host";
    if (name && *name) {
        (void)snprintf(s->name, sizeof(s->name), "%s", name);
        return;
    }
    (void)gethostname(host, sizeof(host) - 1);
    (void)snprintf(s->name, sizeof(s->name), "%s:%d", host, (int)getpid());
}

int lade_scheduler_open(lade_scheduler **out, lade *q, const lade_scheduler_config *config,
                        lade_err *err)
{
    LQ_REFUSE_NULL(out, "scheduler");
    LQ_REFUSE_NULL(q, "scheduler");
    static const lade_scheduler_config defaults = {0};
    const lade_scheduler_config *c = config ? config : &defaults;
    int rc = check_config(c, err);
    if (rc == 0)
        rc = lq_schedules_check(q, err);
    if (rc < 0)
        return rc;
    struct lade_scheduler *s = lb_calloc(1, sizeof(*s));
    if (!s)
        return lb_fail_nomem(err, "scheduler");
    if (lr_event_init(&s->control) < 0) {
        lb_free(s);
        return lb_fail(err, LADE_EIO, "scheduler",
                       "no file descriptor left for the scheduler; raise the limit (ulimit -n)");
    }
    s->q = q;
    s->lease = c->lease ? c->lease : LQ_SCHEDULER_LEASE;
    s->log = c->log ? c->log : log_to_stderr;
    s->log_ctx = c->log_ctx;
    set_name(s, c->name);
    lb_ulid(s->holder, lb_clock_wall());
    lb_tz_release(s->tzdata);
    lr_mutex_init(&s->lock);
    lr_mutex_lock(&q->schedulers_lock);
    lb_list_push_back(&q->schedulers, &s->in_client);
    lr_mutex_unlock(&q->schedulers_lock);
    *out = s;
    return 0;
}

void lade_scheduler_close(lade_scheduler *s)
{
    if (!s)
        return;
    lr_mutex_lock(&s->q->schedulers_lock);
    lb_list_del(&s->in_client);
    lr_mutex_unlock(&s->q->schedulers_lock);
    lr_event_fini(&s->control);
    lr_mutex_fini(&s->lock);
    lb_free(s);
}

void lade_scheduler_stop(lade_scheduler *s)
{
    if (!s)
        return;
    atomic_store(&s->stop, true);
    lr_event_raise(&s->control);
}

void lade_scheduler_get_stats(lade_scheduler *s, lade_scheduler_stats *out)
{
    if (!s || !out)
        return;
    lr_mutex_lock(&s->lock);
    *out = s->stats;
    lr_mutex_unlock(&s->lock);
}

int lade_scheduler_run(lade_scheduler *s, lade_err *err)
{
    LQ_REFUSE_NULL(s, "scheduler");
    lb_err_clear(err);
    lr_mutex_lock(&s->lock);
    bool was = s->running || s->is_workers;
    s->running = true;
    lr_mutex_unlock(&s->lock);
    if (was)
        return lb_fail(err, LADE_EINVAL, "scheduler", "it runs or has run already; open another");
    if (lr_thread_start(&s->thread, "lade-schedule", run_thread, s) < 0)
        return lb_fail(err, LADE_ENOMEM, "scheduler",
                       "the system gives no more threads; raise its limits");
    while (!lq_scheduler_is_stopping(s)) {
        struct lr_fd fd = {s->control.fd, LR_READ, 0};
        (void)lr_wait_fds(&fd, 1, LB_FOREVER);
    }
    lq_scheduler_join(s);
    return 0;
}

void lq_scheduler_allow(struct lade_scheduler *s)
{
    if (!s)
        return;
    lr_mutex_lock(&s->lock);
    s->is_run = true;
    lr_mutex_unlock(&s->lock);
}

void lq_scheduler_rouse(struct lade_scheduler *s)
{
    if (!s)
        return;
    lr_mutex_lock(&s->lock);
    bool starts = s->is_run && !s->running && !lq_scheduler_is_stopping(s);
    if (starts)
        s->running = lr_thread_start(&s->thread, "lade-schedule", run_thread, s) == 0;
    lr_mutex_unlock(&s->lock);
}

void lq_scheduler_join(struct lade_scheduler *s)
{
    if (!s)
        return;
    lade_scheduler_stop(s);
    lr_mutex_lock(&s->lock);
    bool runs = s->thread.started;
    lr_mutex_unlock(&s->lock);
    if (!runs)
        return;
    s->q->store->ops->schedules->wake(s->q->store, s->holder);
    lr_thread_join(&s->thread);
}

void lq_schedulers_rouse(lade *q)
{
    lr_mutex_lock(&q->schedulers_lock);
    lb_list_each (it, &q->schedulers) {
        lq_scheduler_rouse(LB_CONTAINER_OF(it, struct lade_scheduler, in_client));
    }
    lr_mutex_unlock(&q->schedulers_lock);
}
