/* crash_outage_test.c - the store answers errors, is away, is slow (C-001, C-002, C-009, C-012) */
#include "support/rig_test.h"

#define NS(ms) ((ms)*LADE_MILLISECOND)

static void start_local(struct ts_fix *f, int concurrency, int lease_ms)
{
    ts_local_open(&f->local, &f->r, f->q,
                  &(lade_worker_config){.concurrency = concurrency, .lease = NS(lease_ms)});
    ts_local_handle_all(&f->local);
    ts_local_run(&f->local);
}

static size_t count_runs(const struct ts_fix *f)
{
    return ts_ledger_count_starts(f->r.ledger_dir);
}

/*
 * C-001: for three leases every settle is answered with an error, all else works. The acks wait in a bounded buffer, the
 * leases are renewed, and nothing runs twice. (chronos 34; chasqui 26) */
static void c001_acks_are_repeated_until_the_store_takes_them(void **state)
{
    struct ts_fix *f = *state;
    size_t n = (size_t)ts_rig_rounds(2000);
    struct ts_producer_args producer = {.kind = "ok", .n = (int)n, .batch = 200};
    ts_rig_producer(&f->r, &f->a, &producer);
    assert_true(ts_proc_wait(&f->a, TS_SOON));
    lb_fault_arm("settle.before:3:fail+");
    f->r.ledger.no_sync = true;
    start_local(f, 64, 2 * TS_LEASE_MS);
    ts_nap_ms(5 * TS_LEASE_MS);
    assert_true(ts_local_stats(&f->local).running + ts_local_stats(&f->local).queued < 2000);
    size_t before = ts_rig_count(f->q, LADE_STATE_ACTIVE);
    assert_true(before > 0);
    lb_fault_arm(NULL);
    assert_true(ts_rig_wait_quiet(f->q, TS_SOON));
    assert_int_equal(ts_local_stop(&f->local), 0);
    assert_int_equal(count_runs(f), n);
    assert_int_equal(ts_rig_count(f->q, LADE_STATE_COMPLETED), n);
    assert_inv(f, TS_INV_QUIET);
}

/* The same by the server's own answer, with the network between. Redis only: SQLite has no server. */
static void c001_acks_refused_by_the_server_are_repeated(void **state)
{
    struct ts_fix *f = *state;
    if (f->r.store != TS_REDIS)
        return;
    struct ts_producer_args producer = {.kind = "ok", .n = 500, .batch = 100, .url = f->r.direct};
    ts_rig_producer(&f->r, &f->a, &producer);
    assert_true(ts_proc_wait(&f->a, TS_SOON));
    int rule = ts_proxy_rule(
        f->r.proxy,
        &(struct ts_proxy_rule){.match = "settle", .act = TS_PROXY_ERROR, .error = "ERR injected"});
    ts_rig_worker(
        &f->r, &f->b,
        &(struct ts_worker_args){.name = "b", .concurrency = 64, .lease_ms = 2 * TS_LEASE_MS});
    assert_true(TS_UNTIL(TS_SOON, ts_proxy_hits(f->r.proxy, rule) >= 3));
    ts_nap_ms(4 * TS_LEASE_MS);
    ts_proxy_clear(f->r.proxy);
    assert_true(ts_rig_wait_quiet(f->q, TS_SOON));
    assert_int_equal(ts_rig_term(&f->b), 0);
    assert_int_equal(count_runs(f), 500);
    assert_inv(f, TS_INV_QUIET);
}

/* C-002: the store goes away between the end of a handler and its ack, for less than a lease. */
static void c002_ack_lands_after_a_short_outage_and_nothing_runs_again(void **state)
{
    struct ts_fix *f = *state;
    start_local(f, 1, TS_CALM_MS);
    lade_job_spec spec = ts_fix_gated(f, "deaf", "done");
    ts_rig_enqueue(&f->r, f->q, &spec, NULL);
    assert_true(ts_fix_wait_runs(f, "done", 1));
    lb_fault_arm("*:1:fail+");
    ts_fix_open_gate(f);
    assert_true(TS_UNTIL(TS_SOON, ts_rig_ends(&f->r, "done") == 1));
    ts_nap_ms(TS_LEASE_MS / 3);
    lb_fault_arm(NULL);
    assert_true(ts_fix_wait_state(f, "done", LADE_STATE_COMPLETED));
    ts_nap_ms(2 * TS_LEASE_MS); /* the time in which a second run would come */
    assert_int_equal(ts_rig_runs(&f->r, "done"), 1);
    assert_int_equal(ts_local_stop(&f->local), 0);
    assert_inv(f, TS_INV_QUIET);
}

/* C-002: and for longer than a lease. Redelivery comes within L + S of the store's return, not at some restart. (chasqui 26) */
static void c002_job_whose_ack_was_lost_runs_again_soon_without_a_restart(void **state)
{
    struct ts_fix *f = *state;
    start_local(f, 1, TS_LEASE_MS);
    lade_job_spec spec = ts_fix_gated(f, "deaf", "lost-ack");
    ts_rig_enqueue(&f->r, f->q, &spec, NULL);
    assert_true(ts_fix_wait_runs(f, "lost-ack", 1));
    ts_ledger_process(&f->r.ledger, 'P', getpid());
    lb_fault_arm("*:1:fail+");
    ts_fix_open_gate(f);
    assert_true(TS_UNTIL(TS_SOON, ts_rig_ends(&f->r, "lost-ack") == 1));
    ts_nap_ms(3 * TS_LEASE_MS);
    lb_fault_arm(NULL);
    int64_t healed = lb_clock_mono();
    assert_true(ts_fix_wait_state(f, "lost-ack", LADE_STATE_COMPLETED));
    print_message("completed %lld ms after the store's return\n",
                  (long long)((lb_clock_mono() - healed) / NS(1)));
    assert_int_equal(ts_local_stop(&f->local), 0);
    assert_true(ts_ledger_count_log(f->r.ledger_dir, "lost-ack") > 0);
    assert_inv(f, TS_INV_QUIET);
}

/* C-002 on the wire: the connection is cut exactly when the ack is sent; and when its reply is due. */
static void c002_connection_cut_at_the_ack_completes_the_job_once(void **state)
{
    struct ts_fix *f = *state;
    if (f->r.store != TS_REDIS)
        return;

    static const enum ts_proxy_act acts[] = {TS_PROXY_DROP_REQUEST, TS_PROXY_DROP_REPLY,
                                             TS_PROXY_CUT_REPLY};

    ts_rig_worker(&f->r, &f->a, &(struct ts_worker_args){.name = "a", .lease_ms = TS_CALM_MS});
    assert_true(ts_rig_wait_worker(f->q, "a", TS_SOON));
    for (int i = 0; i < ts_rig_rounds(15); i++) {
        char id[24];
        (void)snprintf(id, sizeof(id), "cut-%d", i);
        ts_proxy_clear(f->r.proxy);
        int rule = ts_proxy_rule(f->r.proxy, &(struct ts_proxy_rule){.match = "settle",
                                                                     .act = acts[i % 3],
                                                                     .cut = (size_t)(i / 3 + 1),
                                                                     .times = 1});
        ts_rig_enqueue(&f->r, f->q, &(lade_job_spec){.kind = "ok", .id = id}, NULL);
        assert_true(ts_fix_wait_state(f, id, LADE_STATE_COMPLETED));
        assert_true(TS_UNTIL(TS_SOON, ts_proxy_hits(f->r.proxy, rule) == 1));
    }
    ts_proxy_clear(f->r.proxy);
    assert_int_equal(ts_rig_term(&f->a), 0);
    lade_queue_info info;
    assert_int_equal(lade_queue_get(f->q, "default", &info, NULL), 0);
    assert_int_equal(info.total_completed, ts_rig_rounds(15));
    assert_int_equal(count_runs(f), ts_rig_rounds(15));
    assert_inv(f, TS_INV_QUIET);
}

/* C-009: every command takes long, but renewal has its own connection and is not behind the others. On SQLite the
 * latency is a writer that holds the lock: c047 in sqlite_test.c. (chronos 30) */
static void c009_latency_on_every_command_costs_no_lease(void **state)
{
    struct ts_fix *f = *state;
    if (f->r.store != TS_REDIS)
        return;
    ts_proxy_delay(f->r.proxy, 500);
    ts_rig_worker(&f->r, &f->a,
                  &(struct ts_worker_args){.name = "a", .concurrency = 10, .lease_ms = 4000});
    ts_rig_worker(&f->r, &f->b,
                  &(struct ts_worker_args){
                      .name = "b", .concurrency = 10, .lease_ms = TS_CALM_MS, .url = f->r.direct});
    assert_true(ts_rig_wait_worker(f->q, "a", TS_SOON));
    struct ts_producer_args producer = {
        .kind = "sleep", .payload = "5000", .n = 20, .batch = 20, .url = f->r.direct};
    ts_rig_producer(&f->r, &f->c, &producer);
    assert_true(ts_proc_wait(&f->c, TS_SOON));
    assert_true(ts_rig_wait_quiet(f->q, 2 * TS_SOON));
    ts_proxy_delay(f->r.proxy, 0);
    assert_int_equal(ts_rig_term(&f->a), 0);
    assert_int_equal(ts_rig_term(&f->b), 0);
    assert_int_equal(count_runs(f), 20);
    assert_inv(f, TS_INV_QUIET);
}

/* C-012, C-068: the first call of each side duty fails once; all duties are done all the same. */
static void c012_duty_whose_first_call_fails_is_taken_up_again(void **state)
{
    struct ts_fix *f = *state;
    static const char *const duties[] = {
        "LADE_FAULT=promote.before:1:fail", "LADE_FAULT=reclaim.before:1:fail",
        "LADE_FAULT=trim.before:1:fail", "LADE_FAULT=renew.before:2:fail",
        "LADE_FAULT=take.before:1:fail"};
    for (size_t i = 0; i < LB_ARRAY_LEN(duties); i++) {
        char delayed[32], orphan[32];
        (void)snprintf(delayed, sizeof(delayed), "delayed-%zu", i);
        (void)snprintf(orphan, sizeof(orphan), "orphan-%zu", i);
        ts_rig_enqueue(&f->r, f->q, &(lade_job_spec){.kind = "poison1", .id = orphan}, NULL);
        ts_rig_worker(&f->r, &f->a, &(struct ts_worker_args){.name = "a"});
        assert_true(ts_proc_wait(&f->a, TS_SOON));
        ts_ledger_process(&f->r.ledger, 'K', f->a.pid);
        ts_rig_enqueue(&f->r, f->q, &(lade_job_spec){.kind = "ok", .id = delayed, .in = NS(300)},
                       NULL);
        ts_rig_worker(&f->r, &f->b, &(struct ts_worker_args){.name = "b", .env = {duties[i]}});
        assert_true(ts_fix_wait_state(f, delayed, LADE_STATE_COMPLETED));
        assert_true(ts_fix_wait_state(f, orphan, LADE_STATE_COMPLETED));
        assert_int_equal(ts_rig_term(&f->b), 0);
    }
    assert_inv(f, TS_INV_QUIET);
}

int main(int argc, char **argv)
{
    ts_rig_main(argc, argv);
    const struct CMUnitTest tests[] = {
        TS_TEST(c001_acks_are_repeated_until_the_store_takes_them),
        TS_TEST_PROXIED(c001_acks_refused_by_the_server_are_repeated),
        TS_TEST(c002_ack_lands_after_a_short_outage_and_nothing_runs_again),
        TS_TEST(c002_job_whose_ack_was_lost_runs_again_soon_without_a_restart),
        TS_TEST_PROXIED(c002_connection_cut_at_the_ack_completes_the_job_once),
        TS_TEST_PROXIED(c009_latency_on_every_command_costs_no_lease),
        TS_TEST(c012_duty_whose_first_call_fails_is_taken_up_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
