/* crash_shutdown_test.c - signals: the end of the grace, PID 1, suspension (C-014, C-015, C-016) */
#include "support/rig_test.h"

#include <sqlite3.h>

#include <stdatomic.h>

#define GRACE_MS 300

static void start_worker(struct ts_fix *f, struct ts_proc *p, int grace_ms)
{
    ts_rig_worker(&f->r, p,
                  &(struct ts_worker_args){
                      .name = "a", .concurrency = 1, .grace_ms = grace_ms, .lease_ms = TS_CALM_MS});
    assert_true(ts_rig_wait_worker(f->q, "a", TS_SOON));
}

/* One try of C-014: the handler raises `offset_ms` before or after the grace ends. */
static void raise_around_the_deadline(struct ts_fix *f, int i, int offset_ms)
{
    char id[24], gate[TS_DIR_MAX + 32];
    (void)snprintf(id, sizeof(id), "try-%d", i);
    (void)snprintf(gate, sizeof(gate), "%s/gate-%d", f->r.dir.path, i);
    start_worker(f, &f->a, GRACE_MS);
    lade_job_spec spec = ts_fix_gated(f, "flip", id);
    spec.payload = (lade_bytes){gate, strlen(gate)};
    ts_rig_enqueue(&f->r, f->q, &spec, NULL);
    assert_true(ts_fix_wait_runs(f, id, 1));
    ts_proc_signal(&f->a, SIGTERM);
    int64_t open_at = lb_deadline_in((GRACE_MS + offset_ms) * LADE_MILLISECOND);
    while (lb_clock_mono() < open_at)
        ts_nap_ms(1);
    ts_rig_touch(gate);
    assert_true(ts_proc_wait(&f->a, TS_SOON));
    assert_int_equal(ts_proc_code(&f->a), 0);
    int state = ts_rig_state(f->q, id);
    assert_true(state == LADE_STATE_READY || state == LADE_STATE_RETRYING);
}

/* C-014: either the retry or the hand-back wins, never both. (chasqui 41) */
static void c014_failure_at_the_end_of_the_grace_makes_one_transition(void **state)
{
    struct ts_fix *f = *state;
    int tries = ts_rig_rounds(11);
    for (int i = 0; i < tries; i++)
        raise_around_the_deadline(f, i, i * 100 / LB_MAX(tries - 1, 1) - 50);
    ts_fix_finish(f);
    for (int i = 0; i < tries; i++) {
        char id[24];
        (void)snprintf(id, sizeof(id), "try-%d", i);
        assert_int_equal(ts_rig_runs(&f->r, id), 2);
        assert_int_equal(ts_rig_state(f->q, id), LADE_STATE_COMPLETED);
    }
    assert_inv(f, TS_INV_QUIET);
}

/* chronos 32 */
static void term_hands_unfinished_and_prefetched_jobs_back_without_an_attempt(void **state)
{
    struct ts_fix *f = *state;
    start_worker(f, &f->a, 200);
    lade_job_spec spec = ts_fix_gated(f, "gate", "running");
    ts_rig_enqueue(&f->r, f->q, &spec, NULL);
    assert_true(ts_fix_wait_runs(f, "running", 1));
    for (int i = 0; i < 5; i++) {
        char id[24];
        (void)snprintf(id, sizeof(id), "waiting-%d", i);
        ts_rig_enqueue(&f->r, f->q, &(lade_job_spec){.kind = "ok", .id = id}, NULL);
    }
    ts_nap_ms(50); /* time to prefetch: not needed for the outcome, but then it is a harder test */
    assert_int_equal(ts_rig_term(&f->a), 0);
    assert_int_equal(ts_rig_count(f->q, LADE_STATE_ACTIVE), 0);
    assert_int_equal(ts_rig_count(f->q, LADE_STATE_READY), 6);
    ts_fix_open_gate(f);
    ts_fix_finish(f);
    struct ts_ledger l;
    assert_true(ts_ledger_read(&l, f->r.ledger_dir));
    for (size_t i = 0; i < l.n_runs; i++)
        assert_int_equal(l.run[i].attempt, 1);
    assert_int_equal(l.n_runs, 7);
    ts_ledger_free(&l);
}

static void second_term_does_not_wait_for_the_grace(void **state)
{
    struct ts_fix *f = *state;
    start_worker(f, &f->a, 60000);
    lade_job_spec spec = ts_fix_gated(f, "gate", "running");
    ts_rig_enqueue(&f->r, f->q, &spec, NULL);
    assert_true(ts_fix_wait_runs(f, "running", 1));
    ts_proc_signal(&f->a, SIGTERM);
    assert_false(ts_proc_wait(&f->a, 300 * LADE_MILLISECOND));
    assert_int_equal(ts_rig_state(f->q, "running"), LADE_STATE_ACTIVE);
    ts_proc_signal(&f->a, SIGTERM);
    assert_true(ts_proc_wait(&f->a, TS_SOON)); /* half of the grace */
    assert_int_equal(ts_proc_code(&f->a), 0);
    assert_int_equal(ts_rig_state(f->q, "running"), LADE_STATE_READY);
}

/* The store does not answer: a server that stands still, a write lock that somebody keeps. */
static sqlite3 *take_store_away(struct ts_fix *f)
{
    sqlite3 *db = NULL;
    char path[128];
    if (f->r.store == TS_REDIS) {
        ts_redis_freeze(&f->r.redis);
        return NULL;
    }
    assert_int_equal(sqlite3_open(ts_rig_path(&f->r, "jobs.db", path, sizeof(path)), &db),
                     SQLITE_OK);
    (void)sqlite3_busy_timeout(db, 60000);
    assert_int_equal(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    return db;
}

static void give_store_back(struct ts_fix *f, sqlite3 *db)
{
    if (f->r.store == TS_REDIS)
        ts_redis_thaw(&f->r.redis);
    (void)sqlite3_close(db); /* rolls back */
}

/* Its calls have five minutes, which a stop does not wait for; neither when idle nor with a job to hand back. (chronos 34; chasqui 42) */
static void term_with_the_store_away_does_not_wait_for_its_calls(void **state)
{
    struct ts_fix *f = *state;
    for (int busy = 0; busy < 2; busy++) {
        ts_rig_worker(&f->r, &f->a,
                      &(struct ts_worker_args){.name = "a",
                                               .concurrency = 1,
                                               .lease_ms = 3 * TS_LEASE_MS,
                                               .grace_ms = 100,
                                               .timeout_ms = 300000});
        assert_true(ts_rig_wait_worker(f->q, "a", TS_SOON));
        if (busy) {
            lade_job_spec spec = ts_fix_gated(f, "gate", "running");
            ts_rig_enqueue(&f->r, f->q, &spec, NULL);
            assert_true(ts_fix_wait_runs(f, "running", 1));
        }
        ts_ledger_process(&f->r.ledger, 'P', f->a.pid);
        sqlite3 *db = take_store_away(f);
        ts_nap_ms(TS_LEASE_MS + 200); /* a renewal is under way */
        ts_proc_signal(&f->a, SIGTERM);
        bool ended = ts_proc_wait(&f->a, 2 * TS_SOON);
        give_store_back(f, db);
        assert_true(ended);
        assert_int_equal(ts_proc_code(&f->a), 0);
    }
    ts_fix_open_gate(f);
    ts_fix_finish(f);
    assert_int_equal(ts_rig_state(f->q, "running"), LADE_STATE_COMPLETED);
}

static bool catches(pid_t pid, int signum)
{
    char path[64], line[256];
    unsigned long long mask = 0;
    (void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    FILE *s = fopen(path, "re");
    while (s && fgets(line, sizeof(line), s)) {
        if (strncmp(line, "SigCgt:", 7) == 0)
            mask = strtoull(line + 7, NULL, 16);
    }
    if (s)
        (void)fclose(s);
    return mask >> (signum - 1) & 1;
}

/* The first child of a process; 0 when it has none. */
static pid_t first_child(pid_t pid)
{
    char path[64], line[64] = "";
    (void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)pid);
    FILE *s = fopen(path, "re");
    if (s) {
        (void)!fgets(line, sizeof(line), s);
        (void)fclose(s);
    }
    return (pid_t)strtol(line, NULL, 10);
}

/*
 * C-015: the kernel applies no default action to PID 1, so only a handler of its own ends it. That the worker catches
 * the signals is checked everywhere; as PID 1 it runs where the system lets us make a PID namespace.
 */
static void c015_worker_as_pid_1_ends_on_term(void **state)
{
    struct ts_fix *f = *state;
    start_worker(f, &f->a, 5000);
    assert_true(catches(f->a.pid, SIGTERM) && catches(f->a.pid, SIGINT));
    assert_int_equal(ts_rig_term(&f->a), 0);

    char dir[128], url[300];
    (void)snprintf(dir, sizeof(dir), "dir=%s", f->r.ledger_dir);
    (void)snprintf(url, sizeof(url), "url=%s", f->r.url);
    const char *argv[] = {"unshare", "-Ufp",   "--kill-child", ts_proc_self(),
                          "--role",  "worker", "name=b",       dir,
                          url,       NULL};
    char log[TS_DIR_MAX + 16];
    assert_true(ts_proc_start(&f->b, argv, NULL, ts_rig_path(&f->r, "b.log", log, sizeof(log))));
    (void)TS_UNTIL(TS_SOON, ts_proc_wait(&f->b, 0) || first_child(f->b.pid) != 0);
    if (f->b.ended) {
        print_message("no PID namespace here: the worker was not run as PID 1\n");
        return;
    }
    assert_true(ts_rig_wait_worker(f->q, "b", TS_SOON));
    assert_int_equal(kill(first_child(f->b.pid), SIGTERM), 0);
    assert_true(ts_proc_wait(&f->b, TS_SOON));
    assert_int_equal(ts_proc_code(&f->b), 0);
}

/* C-016: stopping and continuing everything again and again, and signals nobody asked for, end nothing. */
static void c016_suspension_and_signal_storms_end_nothing(void **state)
{
    struct ts_fix *f = *state;
    struct ts_worker_args worker = {.name = "a", .lease_ms = TS_CALM_MS};
    ts_rig_worker(&f->r, &f->a, &worker);
    int n = ts_rig_rounds(400);
    struct ts_producer_args producer = {.kind = "sleep", .payload = "5", .n = n, .pause_ms = 5};
    ts_rig_producer(&f->r, &f->b, &producer);
    struct ts_proc *const victims[] = {&f->a, &f->b};
    for (int i = 0; i < ts_rig_rounds(16); i++) {
        for (size_t k = 0; k < 2; k++) {
            ts_proc_signal(victims[k], SIGWINCH);
            ts_proc_signal(victims[k], SIGCHLD);
            ts_proc_signal(victims[k], SIGSTOP);
        }
        if (f->r.store == TS_REDIS)
            ts_redis_freeze(&f->r.redis);
        ts_nap_ms(100);
        if (f->r.store == TS_REDIS)
            ts_redis_thaw(&f->r.redis);
        ts_proc_signal(&f->a, SIGCONT);
        ts_proc_signal(&f->b, SIGCONT);
        ts_nap_ms(100);
    }
    assert_true(ts_proc_wait(&f->b, TS_SOON));
    assert_int_equal(ts_proc_code(&f->b), 0);
    assert_true(ts_rig_wait_quiet(f->q, TS_SOON));
    assert_int_equal(ts_rig_term(&f->a), 0);
    struct ts_inv inv;
    assert_true(ts_inv_check(f->r.ledger_dir, f->q, TS_INV_QUIET, &inv));
    assert_int_equal(inv.jobs, n);
    assert_int_equal(inv.runs, n);
}

static struct {
    _Atomic int begun, told;
} late;

static lade_outcome wait_to_be_told(lade_job *job, void *ctx)
{
    (void)ctx;
    int64_t give_up = lb_deadline_in(2 * LADE_SECOND);
    late.begun++;
    while (!lade_job_cancelled(job) && lb_clock_mono() < give_up)
        ts_nap_ms(1);
    late.told += lade_job_cancelled(job);
    return LADE_RETRY;
}

/* A take that was under way when handlers were told to stop: what it brings is not begun, as nobody would tell it. (chronos 32) */
static void jobs_that_come_when_the_worker_ends_go_back_unseen(void **state)
{
    struct ts_fix *f = *state;
    lade_options o = ts_rig_options();
    if (!f->r.proxy)
        return; /* a file answers before anybody could stop */
    ts_rig_enqueue(&f->r, f->q, &(lade_job_spec){.kind = "late", .id = "late"}, NULL);
    for (int round = 0; round < ts_rig_rounds(10); round++) {
        lade *q = NULL;
        assert_int_equal(lade_queue_pause(f->q, "default", NULL), 0);
        assert_int_equal(lade_open(&q, f->r.url, &o, NULL), 0);
        ts_local_open(
            &f->local, &f->r, q,
            &(lade_worker_config){.name = "late", .concurrency = 2, .shutdown_timeout = -1});
        assert_int_equal(lade_worker_handle(f->local.w, "late", wait_to_be_told, NULL), 0);
        ts_local_run(&f->local);
        assert_true(ts_rig_wait_worker(f->q, "late", TS_SOON));
        ts_nap_ms(50); /* it waits for a job */
        ts_proxy_delay(f->r.proxy, 60);
        assert_int_equal(lade_queue_resume(f->q, "default", NULL), 0);
        ts_nap_ms(20 + 4 * round);
        assert_int_equal(ts_local_stop(&f->local), 0);
        ts_proxy_delay(f->r.proxy, 0);
        lade_close(q);
        assert_int_equal(late.begun, late.told);
        assert_int_equal(ts_rig_state(f->q, "late"), LADE_STATE_READY);
    }
    print_message("%d begun, each told to stop\n", late.begun);
}

int main(int argc, char **argv)
{
    ts_rig_main(argc, argv);
    const struct CMUnitTest tests[] = {
        TS_TEST(c014_failure_at_the_end_of_the_grace_makes_one_transition),
        TS_TEST(term_hands_unfinished_and_prefetched_jobs_back_without_an_attempt),
        TS_TEST(second_term_does_not_wait_for_the_grace),
        TS_TEST(term_with_the_store_away_does_not_wait_for_its_calls),
        TS_TEST(c015_worker_as_pid_1_ends_on_term),
        TS_TEST(c016_suspension_and_signal_storms_end_nothing),
        TS_TEST_PROXIED(jobs_that_come_when_the_worker_ends_go_back_unseen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
