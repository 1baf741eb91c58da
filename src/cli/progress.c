#include "cli/progress.h"

#include <signal.h>
#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "cli/cli.h"

#define EVERY (LADE_SECOND / 4)

void cli_progress_init(struct cli_progress *p, bool is_live)
{
    pthread_condattr_t attr;
    *p = (struct cli_progress){.is_live = is_live, .last_at = lb_clock_mono()};
    (void)pthread_mutex_init(&p->lock, NULL);
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&p->wake, &attr);
    (void)pthread_condattr_destroy(&attr);
}

static void hide_line(struct cli_progress *p)
{
    if (p->line_shown)
        (void)fputs("\r\033[K", stderr);
    p->line_shown = false;
}

static void show_line(struct cli_progress *p)
{
    lade_worker_stats s;
    lade_worker_get_stats(p->worker, &s);
    int64_t now = lb_clock_mono();
    uint64_t n = s.completed + s.retried + s.dead + s.snoozed + s.cancelled + s.discarded;
    /* Smoothed over about a second, so that it can be read. */
    double fresh = (double)(n - p->last_n) * (double)LADE_SECOND / (double)(now - p->last_at + 1);
    p->rate = p->last_n == 0 ? fresh : p->rate * 0.75 + fresh * 0.25;
    p->last_n = n;
    p->last_at = now;
    (void)fprintf(stderr,
                  "\r\033[K%.0f jobs/s  %llu done  %llu retried  %llu dead  %d running  %d held",
                  p->rate, (unsigned long long)s.completed, (unsigned long long)s.retried,
                  (unsigned long long)s.dead, s.running, s.queued);
    (void)fflush(stderr);
    p->line_shown = true;
}

static void *run_progress(void *ctx)
{
    struct cli_progress *p = ctx;
    (void)pthread_mutex_lock(&p->lock);
    while (!p->stop) {
        show_line(p);
        int64_t until = lb_deadline_in(EVERY);
        struct timespec t = {until / LADE_SECOND, until % LADE_SECOND};
        (void)pthread_cond_timedwait(&p->wake, &p->lock, &t);
    }
    hide_line(p);
    (void)pthread_mutex_unlock(&p->lock);
    return NULL;
}

void cli_progress_start(struct cli_progress *p, lade_worker *worker)
{
    sigset_t all;
    sigset_t before;
    p->worker = worker;
    if (!p->is_live)
        return;
    /* Signals are for the thread that runs the worker. */
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    p->started = pthread_create(&p->thread, NULL, run_progress, p) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void cli_progress_stop(struct cli_progress *p)
{
    (void)pthread_mutex_lock(&p->lock);
    p->stop = true;
    (void)pthread_cond_signal(&p->wake);
    (void)pthread_mutex_unlock(&p->lock);
    if (p->started)
        (void)pthread_join(p->thread, NULL);
    p->started = false;
}

void cli_progress_log(void *ctx, const char *line)
{
    struct cli_progress *p = ctx;
    (void)pthread_mutex_lock(&p->lock);
    hide_line(p);
    (void)cli_say(CLI_OK, "%s", line);
    (void)pthread_mutex_unlock(&p->lock);
}
