/*
 * crash_storm.c - many jobs, workers killed at random, nothing lost
 *
 *     crash_storm --store sqlite|redis [--jobs 10000] [--workers 4] [--kills 20] [--stops 3] [--nap MS]
 *                 [--concurrency 8] [--lease MS] [--seed N] [--sync]
 *
 * Workers take jobs while a producer adds them. At random moments one is killed with SIGKILL and replaced at once, or
 * stopped (SIGSTOP) for longer than its lease and let go on, so that it comes back with results nobody wants. Beside,
 * old fences of killed workers are tried against the store while their jobs run elsewhere: each must be refused.
 * Prints numbers; exits 0 when the invariants hold.
 *
 * chronos 28
 */
#include "support/rig_test.h"

#include <getopt.h>

#include "base/ident.h"
#include "queue/client.h"
#include "queue/store.h"

#define WORKERS_MAX 32

static struct {
    int jobs, workers, kills, stops, nap_ms, concurrency, lease_ms;
    unsigned long seed;
    int sync;
} opt = {.jobs = 10000,
         .workers = 4,
         .kills = 20,
         .stops = 3,
         .nap_ms = 30,
         .concurrency = 8,
         .lease_ms = TS_LEASE_MS};

struct storm {
    struct ts_rig r;
    lade *q;
    struct ts_proc worker[WORKERS_MAX];
    int frozen; /* -1 = none */
    int64_t thaw_at;
    uint64_t chance; /* the seed's own sequence, so that a run can be repeated */
    size_t stale_tried, stale_refused;
    int killed, stopped;
};

/* splitmix64 (Vigna, https://prng.di.unimi.it/splitmix64.c): repeatable from --seed, unlike lb_rand. */
static uint64_t draw(struct storm *s, uint64_t bound)
{
    uint64_t z = (s->chance += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (z ^ (z >> 31)) % bound;
}

static void start_worker(struct storm *s, int i)
{
    char name[16];
    (void)snprintf(name, sizeof(name), "w%d", i);
    ts_rig_worker(&s->r, &s->worker[i],
                  &(struct ts_worker_args){.name = name,
                                           .concurrency = opt.concurrency,
                                           .lease_ms = opt.lease_ms,
                                           .no_sync = !opt.sync,
                                           .max_crashes = 1000});
}

static int choose_worker(struct storm *s)
{
    int i;
    do {
        i = (int)draw(s, (uint64_t)opt.workers);
    } while (i == s->frozen);
    return i;
}

static void thaw(struct storm *s)
{
    if (s->frozen < 0)
        return;
    ts_rig_thaw(&s->r, &s->worker[s->frozen]);
    s->frozen = -1;
}

static bool was_killed(const struct ts_ledger *l, pid_t pid)
{
    for (size_t i = 0; i < l->n_events; i++) {
        if (l->event[i].what == 'K' && l->event[i].pid == pid)
            return true;
    }
    return false;
}

/* What the dead worker would send if it were not dead. */
static void try_stale_settle(struct storm *s, const struct ts_run *run)
{
    lade_err err;
    struct lq_settle settle = {.queue = "default",
                               .id = lb_slice_str(run->id),
                               .fence = run->fence,
                               .to = LQ_TO_COMPLETED,
                               .reason = LQ_REASON_NONE};
    if (lq_settle_take(s->q->store, &settle, 1, NULL, NULL, &err) < 0)
        return; /* busy: not an answer */
    s->stale_tried++;
    s->stale_refused += settle.outcome == LADE_STALE;
}

/* Jobs that run now, for the second time, while their first run's worker is dead. */
static void try_old_fences(struct storm *s)
{
    struct ts_ledger l;
    int left = 16; /* enough for a proof, few enough not to be a load */
    if (!ts_ledger_read(&l, s->r.ledger_dir))
        return;
    for (size_t i = 0; i + 1 < l.n_runs && left > 0; i++) {
        const struct ts_run *old = &l.run[i], *now = &l.run[i + 1];
        if (strcmp(old->id, now->id) != 0 || !was_killed(&l, old->pid))
            continue;
        try_stale_settle(s, old);
        left--;
    }
    ts_ledger_free(&l);
}

/*
 * Whether others can still write. A process that is stopped inside a transaction keeps the file's write lock, and nobody can
 * take it from it: that is the price of an embedded store, not what the storm is about.
 */
static bool is_writable(struct storm *s)
{
    lade_options o = ts_rig_options();
    o.timeout = 300 * LADE_MILLISECOND;
    lade *q;
    if (lade_open(&q, s->r.direct, &o, NULL) < 0)
        return false;
    bool writable = lade_queue_resume(q, "default", NULL) >= 0;
    lade_close(q);
    return writable;
}

/* Stops a worker between two transactions. */
static void freeze(struct storm *s, int i)
{
    for (int tries = 0; tries < 100; tries++) {
        ts_rig_freeze(&s->r, &s->worker[i]);
        if (is_writable(s))
            return;
        ts_rig_thaw(&s->r, &s->worker[i]);
        ts_nap_ms(5);
    }
}

static void strike(struct storm *s, bool stop)
{
    int i = choose_worker(s);
    if (stop) {
        freeze(s, i);
        s->frozen = i;
        s->thaw_at = lb_deadline_in((opt.lease_ms * 3 / 2 + 500) * LADE_MILLISECOND);
        s->stopped++;
        return;
    }
    if (ts_proc_wait(&s->worker[i], 0))
        (void)fprintf(stderr, "worker %d ended by itself with %d\n", i,
                      ts_proc_code(&s->worker[i]));
    ts_rig_kill(&s->r, &s->worker[i]);
    s->killed++;
    start_worker(s, i);
}

static void rage(struct storm *s)
{
    int kills = opt.kills, stops = opt.workers > 1 ? opt.stops : 0;
    while (kills + stops > 0) {
        ts_nap_ms((int)draw(s, 350) + 50);
        if (s->frozen >= 0 && lb_clock_mono() >= s->thaw_at)
            thaw(s);
        bool stop = stops > 0 && s->frozen < 0 &&
                    draw(s, (uint64_t)kills + (uint64_t)stops) < (uint64_t)stops;
        if (!stop && kills == 0)
            continue; /* the last stops wait for the one before to end */
        strike(s, stop);
        stops -= stop;
        kills -= !stop;
        try_old_fences(s);
    }
    while (s->frozen >= 0 && lb_clock_mono() < s->thaw_at)
        ts_nap_ms(5);
    thaw(s);
}

static bool end_workers(struct storm *s)
{
    bool ok = true;
    for (int i = 0; i < opt.workers; i++)
        ts_proc_signal(&s->worker[i], SIGTERM);
    for (int i = 0; i < opt.workers; i++) {
        ok &= ts_proc_wait(&s->worker[i], TS_SOON) && ts_proc_code(&s->worker[i]) == 0;
        if (!ok)
            (void)fprintf(stderr, "worker %d ended with %d\n", i, ts_proc_code(&s->worker[i]));
    }
    return ok;
}

static bool judge(struct storm *s, bool ok, int64_t took)
{
    struct ts_inv inv;
    ok &= ts_inv_check(s->r.ledger_dir, s->q, TS_INV_QUIET, &inv);
    ok &= inv.jobs == (size_t)opt.jobs && inv.completed == inv.jobs;
    ok &= inv.lost == 0 && inv.explained == inv.duplicates;
    ok &= s->stale_refused == s->stale_tried;
    print_message("storm on %s, seed %lu, %.1f s: %d workers, %d killed, %d stopped and resumed\n",
                  ts_rig_store() == TS_REDIS ? "redis" : "sqlite", opt.seed,
                  (double)took / (double)LADE_SECOND, opt.workers, s->killed, s->stopped);
    print_message("  jobs %zu  completed %zu  lost %zu\n", inv.jobs, inv.completed, inv.lost);
    print_message("  runs %zu  finished %zu  duplicates %zu, explained by a lease loss %zu\n",
                  inv.runs, inv.ends, inv.duplicates, inv.explained);
    print_message("  stale settles: tried with old fences %zu, refused %zu; given up by resumed "
                  "workers %llu\n",
                  s->stale_tried, s->stale_refused, (unsigned long long)inv.stale);
    print_message("  invariants broken: %zu\n", inv.n_broken);
    return ok;
}

static bool run_storm(void)
{
    struct storm s = {.frozen = -1, .chance = opt.seed};
    char payload[16];
    struct ts_proc producer;
    ts_rig_start(&s.r, TS_PLAIN);
    s.q = ts_rig_open(&s.r);
    (void)snprintf(payload, sizeof(payload), "%d", opt.nap_ms);
    int64_t start = lb_clock_mono();
    ts_rig_producer(
        &s.r, &producer,
        &(struct ts_producer_args){
            .kind = "sleep", .payload = payload, .n = opt.jobs, .batch = 50, .no_sync = !opt.sync});
    for (int i = 0; i < opt.workers; i++)
        start_worker(&s, i);
    rage(&s);
    bool early = ts_rig_count(s.q, LADE_STATE_COMPLETED) == (uint64_t)opt.jobs;
    bool ok = ts_proc_wait(&producer, TS_SOON) && ts_proc_code(&producer) == 0;
    ok &= ts_rig_wait_quiet(s.q, 6 * TS_SOON);
    int64_t took = lb_clock_mono() - start;
    ok &= end_workers(&s);
    ok = judge(&s, ok, took);
    if (early)
        print_message("  (the jobs were done before the last kill: raise --jobs or --nap)\n");
    if (!ok)
        print_message("FAILED\n");
    lade_close(s.q);
    ts_rig_stop(&s.r);
    return ok;
}

static int *int_option(int c)
{
    switch (c) {
    case 'j':
        return &opt.jobs;
    case 'w':
        return &opt.workers;
    case 'k':
        return &opt.kills;
    case 't':
        return &opt.stops;
    case 'n':
        return &opt.nap_ms;
    case 'c':
        return &opt.concurrency;
    case 'l':
        return &opt.lease_ms;
    default:
        return NULL;
    }
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"store", required_argument, NULL, 's'},
                                            {"jobs", required_argument, NULL, 'j'},
                                            {"workers", required_argument, NULL, 'w'},
                                            {"kills", required_argument, NULL, 'k'},
                                            {"stops", required_argument, NULL, 't'},
                                            {"nap", required_argument, NULL, 'n'},
                                            {"concurrency", required_argument, NULL, 'c'},
                                            {"lease", required_argument, NULL, 'l'},
                                            {"seed", required_argument, NULL, 'r'},
                                            {"sync", no_argument, &opt.sync, 1},
                                            {NULL, 0, NULL, 0}};
    char *store[] = {argv[0], (char[]){"sqlite"}, NULL};
    ts_rig_main(argc, argv); /* a role does not come back */
    opt.seed = (unsigned long)lb_rand_below(1000000);
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (c == 's')
            store[1] = optarg;
        else if (c == 'r')
            opt.seed = strtoul(optarg, NULL, 10);
        else if (int_option(c))
            *int_option(c) = (int)strtol(optarg, NULL, 10);
        else if (c != 0)
            return 2;
    }
    if (opt.workers < 1 || opt.workers > WORKERS_MAX || opt.jobs < 1)
        return 2;
    ts_rig_main(2, store);
    return run_storm() ? 0 : 1;
}
