/* crash_due_test.c - jobs that fall due: clocks that disagree, many at one instant, and those who promote killed (C-064 to C-066) */
#include "support/rig_test.h"

#define LONG_MS 20000

/*
 * C-064 (chasqui 16): producer, worker and sweeper have clocks that differ by minutes; the server's alone counts. A lease ends by it
 * too: the sweeper, whose clock is five minutes ahead, leaves a running job alone.
 */
static void c064_delays_and_leases_go_by_the_servers_clock(void **state)
{
    struct ts_fix *f = *state;
    if (ts_rig_store() != TS_REDIS)
        return; /* a file has one clock, its machine's */
    ts_rig_worker(&f->r, &f->a,
                  &(struct ts_worker_args){
                      .name = "behind", .lease_ms = 2000, .env = {"LADE_SKEW_MS=-90000"}});
    assert_true(ts_rig_wait_worker(f->q, "behind", TS_SOON));
    lade_job_spec gated = ts_fix_gated(f, "gate", "long");
    ts_rig_enqueue(&f->r, f->q, &gated, NULL);
    assert_true(ts_fix_wait_runs(f, "long", 1));
    ts_rig_worker(&f->r, &f->b,
                  &(struct ts_worker_args){.name = "ahead",
                                           .lease_ms = 2000,
                                           .sweep_ms = TS_SWEEP_MS,
                                           .env = {"LADE_SKEW_MS=300000"}});
    assert_true(ts_rig_wait_worker(f->q, "ahead", TS_SOON));
    int64_t before = lb_clock_mono();
    ts_rig_producer(&f->r, &f->c,
                    &(struct ts_producer_args){
                        .n = 3, .prefix = "due", .in_ms = 2000, .env = {"LADE_SKEW_MS=90000"}});
    assert_true(ts_proc_wait(&f->c, TS_SOON));
    assert_int_equal(ts_proc_code(&f->c), 0);
    assert_true(TS_UNTIL(TS_SOON, ts_rig_runs(&f->r, "due-0") > 0)); /* not after 90 s more */
    int64_t took = lb_clock_mono() - before;
    print_message("due in 2 s, ran after %lld ms\n", (long long)(took / LADE_MILLISECOND));
    assert_true(took >= 2 * LADE_SECOND);
    ts_nap_ms(5000); /* leases of the sweeper's clock would have ended many times */
    assert_int_equal(ts_rig_runs(&f->r, "long"), 1);
    ts_fix_open_gate(f);
    assert_true(ts_rig_wait_quiet(f->q, TS_SOON));
    assert_int_equal(ts_rig_term(&f->a), 0);
    assert_int_equal(ts_rig_term(&f->b), 0);
    assert_inv(f, TS_INV_QUIET);
}

static void enqueue_due(struct ts_fix *f, int n, int in_ms)
{
    ts_rig_producer(
        &f->r, &f->d,
        &(struct ts_producer_args){.n = n, .batch = 1000, .in_ms = in_ms, .no_sync = true});
    assert_true(ts_proc_wait(&f->d, TS_SOON));
    assert_int_equal(ts_proc_code(&f->d), 0);
}

/* C-065: many jobs of one instant and several workers; others enqueue meanwhile. That each step is bounded, contract/take_cases has. */
static void c065_many_jobs_of_one_instant_run_once_each(void **state)
{
    struct ts_fix *f = *state;
    int n = ts_rig_rounds(5000);
    struct ts_proc *const p[] = {&f->a, &f->b, &f->c};
    enqueue_due(f, n, 1500);
    for (size_t i = 0; i < LB_ARRAY_LEN(p); i++) {
        char name[8];
        (void)snprintf(name, sizeof(name), "w%zu", i);
        ts_rig_worker(&f->r, p[i],
                      &(struct ts_worker_args){
                          .name = name, .concurrency = 32, .lease_ms = LONG_MS, .no_sync = true});
    }
    for (int i = 0; i < 20; i++)
        ts_rig_enqueue(&f->r, f->q, &(lade_job_spec){.kind = "ok", .queue = "other"}, NULL);
    assert_true(TS_UNTIL(4 * TS_SOON, ts_rig_count(f->q, LADE_STATE_COMPLETED) >= (uint64_t)n));
    assert_int_equal(ts_rig_count(f->q, LADE_STATE_COMPLETED), n);
    for (size_t i = 0; i < LB_ARRAY_LEN(p); i++)
        assert_int_equal(ts_rig_term(p[i]), 0);
    assert_int_equal(ts_ledger_count_ends(f->r.ledger_dir), n); /* none twice */
}

/* C-066: whoever promotes is killed at one point after the other; what it had begun to move is in one place all the same. */
static void c066_killing_those_who_promote_loses_and_doubles_nothing(void **state)
{
    struct ts_fix *f = *state;
    static const char *const points[] = {"promote.before", "promote.after", "take.before",
                                         "take.after"};
    int n = 1000;
    enqueue_due(f, n, 1000);
    for (int round = 0; round < ts_rig_rounds(8); round++) {
        char fault[64];
        (void)snprintf(fault, sizeof(fault), "LADE_FAULT=%s:%d:kill", points[round % 4],
                       1 + 3 * (round / 4));
        ts_rig_worker(&f->r, &f->a,
                      &(struct ts_worker_args){.name = "a",
                                               .lease_ms = TS_LEASE_MS,
                                               .sweep_ms = 1,
                                               .drain = true,
                                               .no_sync = true,
                                               .env = {fault}});
        assert_true(ts_proc_wait(&f->a, TS_SOON));
        int code = ts_proc_code(&f->a);
        assert_true(code == 0 || code == 128 + SIGKILL);
        if (code != 0)
            ts_ledger_process(&f->r.ledger, 'K', f->a.pid);
        lade_finding *found;
        size_t n_found;
        assert_int_equal(lade_check(f->q, &found, &n_found, NULL), 0);
        for (size_t i = 0; i < n_found; i++)
            print_error("%s: %s\n", fault, found[i].text);
        lade_free(found);
        assert_int_equal(n_found, 0);
    }
    ts_fix_finish(f);
    assert_inv(f, TS_INV_QUIET);
    assert_int_equal(ts_rig_count(f->q, LADE_STATE_COMPLETED), n);
}

int main(int argc, char **argv)
{
    ts_rig_main(argc, argv);
    const struct CMUnitTest tests[] = {
        TS_TEST(c064_delays_and_leases_go_by_the_servers_clock),
        TS_TEST(c065_many_jobs_of_one_instant_run_once_each),
        TS_TEST(c066_killing_those_who_promote_loses_and_doubles_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
