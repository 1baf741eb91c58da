#include "support/rig_local.h"

#include <signal.h>
#include <stdlib.h>

#include "base/base.h"

static void log_line(void *ctx, const char *line)
{
    struct ts_rig *r = ctx;
    ts_ledger_log(&r->ledger, line);
}

void ts_local_open(struct ts_local *l, struct ts_rig *r, lade *q, const lade_worker_config *config)
{
    lade_worker_config c = config ? *config : (lade_worker_config){0};
    if (c.cancel_grace == 0)
        c.cancel_grace = LADE_SECOND;
    *l = (struct ts_local){.rig = r, .role = {.dir = r->ledger_dir, .ledger = &r->ledger}};
    c.no_signals = true;
    if (!c.lease)
        c.lease = TS_CALM_MS * LADE_MILLISECOND;
    if (!c.sweep)
        c.sweep = TS_SWEEP_MS * LADE_MILLISECOND;
    if (!c.log) {
        c.log = log_line;
        c.log_ctx = r;
    }
    if (lade_worker_open(&l->w, q, &c, &l->err) < 0) {
        (void)fprintf(stderr, "worker open: %s\n", l->err.text);
        abort();
    }
}

void ts_local_handle_all(struct ts_local *l)
{
    LB_CHECK(lade_worker_handle(l->w, "*", ts_role_handle, &l->role) == 0);
}

static void *run(void *arg)
{
    struct ts_local *l = arg;
    sigset_t all;
    sigfillset(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, NULL);
    l->rc = lade_worker_run(l->w, &l->err);
    __atomic_store_n(&l->ended, true, __ATOMIC_RELEASE);
    return NULL;
}

void ts_local_run(struct ts_local *l)
{
    LB_CHECK(pthread_create(&l->thread, NULL, run, l) == 0);
    l->running = true;
}

bool ts_local_wait(struct ts_local *l, int64_t ns)
{
    return TS_UNTIL(ns, __atomic_load_n(&l->ended, __ATOMIC_ACQUIRE));
}

int ts_local_stop(struct ts_local *l)
{
    if (l->running) {
        lade_worker_stop(l->w);
        (void)pthread_join(l->thread, NULL);
    }
    lade_worker_close(l->w);
    l->w = NULL;
    l->running = false;
    return l->rc;
}

lade_worker_stats ts_local_stats(const struct ts_local *l)
{
    lade_worker_stats s;
    lade_worker_get_stats(l->w, &s);
    return s;
}
