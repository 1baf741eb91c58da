/*
 * crash_redis_test.c - servers that change roles, load, are busy, vanish or cut; Redis only (C-020, C-023 to C-025,
 * C-028 to C-031, C-036, C-038, C-040, C-044)
 */
#include "support/rig_test.h"

#include <pthread.h>

#define NS(ms)  ((ms)*LADE_MILLISECOND)
#define LONG_MS 20000 /* a lease that no outage of these tests outlasts */

static void ask(const struct ts_redis *r, const char *line)
{
    char reply[256];
    assert_true(ts_redis_ask(r, line, reply, sizeof(reply)));
    if (*reply == '-')
        print_message("%s: %s\n", line, reply);
    assert_true(*reply != '-');
}

static void start_worker(struct ts_fix *f, struct ts_proc *p, const char *name, int lease_ms)
{
    ts_rig_worker(&f->r, p, &(struct ts_worker_args){.name = name, .lease_ms = lease_ms});
    assert_true(ts_rig_wait_worker(f->q, name, TS_SOON));
}

/* Until the worker waits in the server for its bell, which is when most of these faults are hardest to notice. */
static bool is_blocked(const struct ts_redis *r)
{
    char reply[4096];
    const char *at;
    if (!ts_redis_ask(r, "INFO clients", reply, sizeof(reply)))
        return false;
    at = strstr(reply, "blocked_clients:");
    /* the first line only may have come yet: then ask again */
    return at && strtol(at + strlen("blocked_clients:"), NULL, 10) > 0;
}

static void wait_until_idle(struct ts_fix *f)
{
    if (!TS_UNTIL(5 * LADE_SECOND, is_blocked(&f->r.redis)))
        ts_nap_ms(300); /* INFO came in pieces each time: idle by now all the same */
}

/* A job enqueued now starts soon, seen through a handle of its own past the proxy. */
static void expect_start(struct ts_fix *f, lade *q, const char *id)
{
    int64_t start = lb_clock_mono();
    ts_rig_enqueue(&f->r, q, &(lade_job_spec){.kind = "ok", .id = id}, NULL);
    bool ran = TS_UNTIL(TS_SOON, ts_rig_runs(&f->r, id) > 0);
    print_message("%s: %s after %lld ms\n", id, ran ? "started" : "nothing",
                  (long long)((lb_clock_mono() - start) / NS(1)));
    assert_true(ran);
}

/* C-020, C-021: the primary is demoted, the name points to the new one, no socket is closed. */
static void c020_connections_leave_a_server_that_became_a_replica(void **state)
{
    struct ts_fix *f = *state;
    struct ts_redis second;
    char line[64], reply[256];
    struct ts_redis_opts tcp = {.tcp = true};
    assert_true(ts_redis_start(&second, &tcp));
    start_worker(f, &f->a, "a", LONG_MS);
    struct ts_producer_args producer = {.n = 300, .prefix = "p", .pause_ms = 10};
    ts_rig_producer(&f->r, &f->b, &producer);
    assert_true(TS_UNTIL(TS_SOON, ts_ledger_count_ends(f->r.ledger_dir) > 20));
    /* the data does not matter here: what was on the first is lost, as after an unclean failover */
    ts_proxy_upstream(f->r.proxy, second.socket);
    (void)snprintf(line, sizeof(line), "REPLICAOF 127.0.0.1 %d", second.port);
    assert_true(ts_redis_ask(&f->r.redis, line, reply, sizeof(reply)));
    int64_t moved = lb_clock_mono();
    size_t before = ts_ledger_count_ends(f->r.ledger_dir);
    assert_true(TS_UNTIL(TS_SOON, ts_ledger_count_ends(f->r.ledger_dir) > before + 20));
    print_message("jobs flowed %lld ms after the demotion\n",
                  (long long)((lb_clock_mono() - moved) / NS(1)));
    assert_true(ts_proc_wait(&f->b, TS_SOON));
    assert_int_equal(ts_proc_code(&f->b), 0);
    lade *q;
    lade_options o = ts_rig_options();
    assert_int_equal(lade_open(&q, second.url, &o, NULL), 0);
    bool quiet = ts_rig_wait_quiet(q, TS_SOON);
    int code = ts_rig_term(&f->a);
    lade_close(q);
    ts_redis_stop(&second);
    assert_true(quiet);
    assert_int_equal(code, 0);
}

static void c023_blocked_worker_survives_a_change_of_role(void **state)
{
    struct ts_fix *f = *state;
    start_worker(f, &f->a, "a", LONG_MS);
    for (int i = 0; i < ts_rig_rounds(3); i++) {
        char id[24];
        (void)snprintf(id, sizeof(id), "after-%d", i);
        wait_until_idle(f);
        ask(&f->r.redis, "REPLICAOF 127.0.0.1 1");
        ts_nap_ms(200);
        ask(&f->r.redis, "REPLICAOF NO ONE");
        expect_start(f, f->q, id);
    }
    wait_until_idle(f);
    ask(&f->r.redis, "CLIENT KILL TYPE normal");
    expect_start(f, f->q, "killed");
    assert_int_equal(ts_rig_term(&f->a), 0);
    assert_inv(f, TS_INV_QUIET);
}

/* C-024: LOADING for some seconds, met by a worker, a producer, and one more worker that starts in it. */
static void c024_loading_server_is_waited_for_also_at_start(void **state)
{
    struct ts_fix *f = *state;
    start_worker(f, &f->a, "a", LONG_MS);
    ts_rig_enqueue(&f->r, f->q, &(lade_job_spec){.kind = "ok", .id = "first"}, NULL);
    assert_true(ts_fix_wait_state(f, "first", LADE_STATE_COMPLETED));
    int rule = ts_proxy_rule(
        f->r.proxy,
        &(struct ts_proxy_rule){.act = TS_PROXY_ERROR,
                                .error = "LOADING Redis is loading the dataset in memory"});
    ts_rig_producer(&f->r, &f->b, &(struct ts_producer_args){.n = 5});
    ts_rig_worker(&f->r, &f->c, &(struct ts_worker_args){.name = "c", .lease_ms = LONG_MS});
    ts_nap_ms(3000);
    assert_true(ts_proxy_hits(f->r.proxy, rule) > 0);
    assert_int_equal(ts_proc_code(&f->c), -1); /* still there */
    ts_proxy_clear(f->r.proxy);
    assert_true(ts_rig_wait_worker(f->q, "c", TS_SOON));
    assert_true(ts_proc_wait(&f->b, TS_SOON));
    assert_int_equal(ts_proc_code(&f->b), 0); /* no call of it failed */
    assert_true(ts_rig_wait_quiet(f->q, TS_SOON));
    expect_start(f, f->q, "after");
    assert_int_equal(ts_rig_term(&f->a), 0);
    assert_int_equal(ts_rig_term(&f->c), 0);
    assert_inv(f, TS_INV_QUIET);
}

static void *run_endless_script(void *redis)
{
    char reply[256];
    (void)ts_redis_ask(redis, "EVAL \"while true do end\" 0", reply, sizeof(reply));
    return NULL;
}

/* C-025: a script of another client makes the server answer BUSY for longer than the lease. */
static void c025_busy_server_costs_at_most_one_redelivery(void **state)
{
    struct ts_fix *f = *state;
    pthread_t thread;
    char reply[256];
    start_worker(f, &f->a, "a", TS_LEASE_MS);
    start_worker(f, &f->b, "b", TS_LEASE_MS);
    lade_job_spec spec = ts_fix_gated(f, "gate", "held");
    ts_rig_enqueue(&f->r, f->q, &spec, NULL);
    assert_true(ts_fix_wait_runs(f, "held", 1));
    ask(&f->r.redis, "CONFIG SET busy-reply-threshold 100");
    ts_ledger_process(&f->r.ledger, 'P', f->a.pid);
    ts_ledger_process(&f->r.ledger, 'P', f->b.pid);
    assert_int_equal(pthread_create(&thread, NULL, run_endless_script, &f->r.redis), 0);
    ts_nap_ms(3 * TS_LEASE_MS);
    bool killed = TS_UNTIL(TS_SOON, ts_redis_ask(&f->r.redis, "SCRIPT KILL", reply, 256) &&
                                        strncmp(reply, "+OK", 3) == 0);
    (void)pthread_join(thread, NULL);
    assert_true(killed);
    ts_fix_open_gate(f);
    assert_true(ts_fix_wait_state(f, "held", LADE_STATE_COMPLETED));
    expect_start(f, f->q, "after");
    assert_in_range(ts_rig_runs(&f->r, "held"), 1, 2);
    assert_int_equal(ts_rig_term(&f->a), 0);
    assert_int_equal(ts_rig_term(&f->b), 0);
    assert_inv(f, TS_INV_QUIET);
}

/* C-028: a take whose reply is cut after byte k is a connection error, never half a job; and it is not lost. */
static void c028_reply_of_a_take_cut_at_any_byte_runs_the_job_once(void **state)
{
    struct ts_fix *f = *state;
    int step = LB_MAX(12 / ts_rig_rounds(1), 1);
    start_worker(f, &f->a, "a", LONG_MS);
    for (int k = 1; k < 280; k += k < 12 ? 1 : step) {
        char id[24];
        (void)snprintf(id, sizeof(id), "cut-%d", k);
        wait_until_idle(f);
        ts_proxy_clear(f->r.proxy);
        (void)ts_proxy_rule(f->r.proxy, &(struct ts_proxy_rule){.match = "trip.lua",
                                                                .act = TS_PROXY_CUT_REPLY,
                                                                .cut = (size_t)k,
                                                                .times = 1});
        ts_rig_enqueue(&f->r, f->q, &(lade_job_spec){.kind = "ok", .id = id}, NULL);
        assert_true(ts_fix_wait_state(f, id, LADE_STATE_COMPLETED));
        assert_int_equal(ts_rig_runs(&f->r, id), 1);
    }
    ts_proxy_clear(f->r.proxy);
    assert_int_equal(ts_rig_term(&f->a), 0);
    assert_inv(f, TS_INV_QUIET);
}

static void c028_single_bytes_carry_jobs_of_all_kinds(void **state)
{
    struct ts_fix *f = *state;
    ts_proxy_chunk(f->r.proxy, 1);
    ts_rig_worker(
        &f->r, &f->a,
        &(struct ts_worker_args){
            .name = "a", .produce = 64, .drain = true, .backoff_ms = 10, .lease_ms = LONG_MS});
    assert_true(ts_proc_wait(&f->a, 2 * TS_SOON));
    assert_int_equal(ts_proc_code(&f->a), 0);
    ts_proxy_chunk(f->r.proxy, 0);
    assert_inv(f, TS_INV_QUIET);
}

/* C-029, C-030: the settle is carried out, its reply is lost, the client repeats it: one retry, one dead entry. */
static void c029_c030_settle_repeated_after_a_lost_reply_counts_once(void **state)
{
    struct ts_fix *f = *state;
    int n = ts_rig_rounds(10);
    ts_rig_worker(&f->r, &f->a,
                  &(struct ts_worker_args){.name = "a", .backoff_ms = 1, .lease_ms = LONG_MS});
    assert_true(ts_rig_wait_worker(f->q, "a", TS_SOON));
    for (int i = 0; i < n; i++) {
        char id[24];
        (void)snprintf(id, sizeof(id), "fail-%d", i);
        ts_proxy_clear(f->r.proxy);
        (void)ts_proxy_rule(f->r.proxy, &(struct ts_proxy_rule){.match = "settle",
                                                                .act = TS_PROXY_DROP_REPLY,
                                                                .skip = i % 3,
                                                                .times = 1});
        ts_rig_enqueue(&f->r, f->q, &(lade_job_spec){.kind = "fail", .id = id, .max_attempts = 3},
                       NULL);
        assert_true(ts_fix_wait_state(f, id, LADE_STATE_DEAD));
        assert_int_equal(ts_rig_runs(&f->r, id), 3);
    }
    lade_queue_info info;
    assert_int_equal(lade_queue_get(f->q, "default", &info, NULL), 0);
    assert_int_equal(info.total_dead, n);
    assert_int_equal(info.count[LADE_STATE_DEAD], n);
    assert_int_equal(info.total_failed, 3 * n);
    ts_proxy_clear(f->r.proxy);
    assert_int_equal(ts_rig_term(&f->a), 0);
    assert_inv(f, TS_INV_QUIET);
}

/* C-031: adds at once, delayed and in bulk, each with its reply lost after it was carried out. */
static void c031_put_repeated_after_a_lost_reply_adds_once(void **state)
{
    struct ts_fix *f = *state;
    lade *q;
    lade_options o = ts_rig_options();
    assert_int_equal(lade_open(&q, f->r.url, &o, NULL), 0);
    int n = ts_rig_rounds(30), wrong = 0;
    for (int i = 0; i < n; i++) {
        lade_job_spec spec[10];
        int outcome[10];
        size_t k = i % 3 == 2 ? 10 : 1;
        for (size_t j = 0; j < k; j++)
            spec[j] = (lade_job_spec){.kind = "ok", .in = i % 3 == 1 ? NS(600000) : 0};
        (void)ts_proxy_rule(
            f->r.proxy,
            &(struct ts_proxy_rule){.match = "put.lua", .act = TS_PROXY_DROP_REPLY, .times = 1});
        wrong +=
            lade_enqueue_many(q, spec, k, NULL, outcome, NULL) != 0; /* no DUPLICATE of itself */
        ts_proxy_clear(f->r.proxy);
    }
    lade_close(q);
    assert_int_equal(wrong, 0);
    assert_int_equal(ts_rig_count(f->q, LADE_STATE_SCHEDULED), n / 3);
    assert_int_equal(ts_rig_count(f->q, LADE_STATE_READY), n / 3 + n / 3 * 10);
    assert_inv(f, TS_INV_RUNNING);
}

/*
 * C-036, C-037: the flow of a blocked worker is swallowed for good, without a reset. A heartbeat in vain tells it, each
 * second here, and each call on a dead connection ends with the handle's timeout: 2 s here.
 */
static void c036_silently_dead_connections_are_noticed(void **state)
{
    struct ts_fix *f = *state;
    ts_rig_worker(&f->r, &f->a,
                  &(struct ts_worker_args){.name = "a", .lease_ms = 3000, .timeout_ms = 2000});
    assert_true(ts_rig_wait_worker(f->q, "a", TS_SOON));
    wait_until_idle(f);
    ts_ledger_process(&f->r.ledger, 'P', f->a.pid);
    ts_proxy_hold_current(f->r.proxy);
    expect_start(f, f->q, "after");
    assert_true(ts_rig_wait_quiet(f->q, TS_SOON));
    assert_int_equal(ts_rig_term(&f->a), 0);
    assert_inv(f, TS_INV_QUIET);
}

/* C-038, C-039: the server is gone for a while and comes back empty; the worker was idle, then busy. (chasqui 42) */
static void c038_worker_resumes_after_outages_of_any_length(void **state)
{
    struct ts_fix *f = *state;
    static const int lengths[] = {100, 1000, 5000};
    start_worker(f, &f->a, "a", TS_LEASE_MS);
    for (size_t i = 0; i < 2 * LB_ARRAY_LEN(lengths); i++) {
        char id[24];
        (void)snprintf(id, sizeof(id), "after-%zu", i);
        bool busy = i >= LB_ARRAY_LEN(lengths);
        if (busy)
            ts_rig_enqueue(&f->r, f->q, &(lade_job_spec){.kind = "nap", .payload = LADE_STR("800")},
                           NULL);
        else
            wait_until_idle(f);
        ts_redis_kill(&f->r.redis);
        ts_nap_ms(lengths[i % LB_ARRAY_LEN(lengths)]);
        assert_true(ts_redis_again(&f->r.redis));
        expect_start(f, f->q, id);
    }
    assert_int_equal(ts_rig_term(&f->a), 0);
}

/* C-040: ten disconnects at random gaps, some inside the handshake; the db and all else is set up again each time. */
static void c040_flapping_leaves_the_worker_with_its_whole_state(void **state)
{
    struct ts_fix *f = *state;
    char url[128], direct[300];
    lade *q;
    lade_options o = ts_rig_options();
    (void)snprintf(url, sizeof(url), "%s/3", ts_proxy_url(f->r.proxy));
    (void)snprintf(direct, sizeof(direct), "%s?db=3", f->r.direct);
    assert_int_equal(lade_open(&q, direct, &o, NULL), 0);
    ts_rig_worker(&f->r, &f->a,
                  &(struct ts_worker_args){.name = "a", .url = url, .lease_ms = LONG_MS});
    bool up = ts_rig_wait_worker(q, "a", TS_SOON);
    static const char *const steps[] = {"HELLO", "SELECT", "CLIENT", "SCRIPT", "trip.lua"};
    for (int i = 0; i < 10; i++) {
        (void)ts_proxy_rule(f->r.proxy, &(struct ts_proxy_rule){.match = steps[i % 5],
                                                                .act = TS_PROXY_DROP_REQUEST,
                                                                .times = 1});
        ts_proxy_drop_all(f->r.proxy);
        ts_nap_ms(50 + (i * 271) % 750);
        ts_proxy_clear(f->r.proxy);
    }
    if (up)
        expect_start(f, q, "after");
    int code = ts_rig_term(&f->a);
    lade_close(q);
    assert_true(up);
    assert_int_equal(code, 0);
}

/* C-044: more than the server takes in one value. The call fails with a reason, its neighbours and later calls do not. */
static void c044_value_over_the_servers_limit_is_an_error_not_a_loop(void **state)
{
    struct ts_fix *f = *state;
    static char large[2 << 20];
    lade *q;
    lade_err err = {0};
    lade_options o = ts_rig_options();
    o.payload_max = 8 << 20;
    o.timeout = 3 * LADE_SECOND;
    ask(&f->r.redis, "CONFIG SET proto-max-bulk-len 1mb");
    assert_int_equal(lade_open(&q, f->r.url, &o, NULL), 0);
    struct ts_proxy_stats before, after;
    ts_proxy_get_stats(f->r.proxy, &before);
    int64_t start = lb_clock_mono();
    int rc = lade_enqueue(q, &(lade_job_spec){.kind = "ok", .payload = {large, sizeof(large)}},
                          NULL, &err);
    int64_t took = lb_clock_mono() - start;
    ts_proxy_get_stats(f->r.proxy, &after);
    int small = 0;
    for (int i = 0; i < 20; i++)
        small += lade_enqueue(q, &(lade_job_spec){.kind = "ok"}, NULL, NULL) == 0;
    lade_close(q);
    print_message("%s: %s (%lld ms, %llu connections)\n", lade_result_name(rc), err.text,
                  (long long)(took / NS(1)),
                  (unsigned long long)(after.accepted - before.accepted));
    assert_true(rc < 0 && err.text[0]);
    assert_true(after.accepted - before.accepted < 20);
    assert_int_equal(small, 20);
    assert_int_equal(ts_rig_count(f->q, LADE_STATE_READY), 20);
}

/* At half of the lease a worker that waits for work renews, and that is all; also when one of its queues is paused and full. (chronos 39) */
static void idle_worker_renews_and_asks_for_nothing_else(void **state)
{
    struct ts_fix *f = *state;
    struct ts_worker_args args = {
        .name = "idle", .queues = "default,held", .lease_ms = 2000, .sweep_ms = 1};
    assert_int_equal(lade_queue_pause(f->q, "held", NULL), 0);
    for (int i = 0; i < 10; i++)
        ts_rig_enqueue(&f->r, f->q, &(lade_job_spec){.kind = "ok", .queue = "held"}, NULL);
    ts_rig_worker(&f->r, &f->a, &args);
    assert_true(ts_rig_wait_worker(f->q, "idle", TS_SOON));
    wait_until_idle(f);
    ts_nap_ms(1500); /* its first rounds */
    char reply[16384];
    assert_true(ts_redis_ask(&f->r.redis, "CONFIG RESETSTAT", reply, sizeof(reply)));
    int64_t began = lb_clock_mono();
    ts_nap_ms(5000);
    assert_true(ts_redis_ask(&f->r.redis, "INFO commandstats", reply, sizeof(reply)));
    int64_t took_ms = (lb_clock_mono() - began) / NS(1);
    const char *at = strstr(reply, "cmdstat_fcall:calls=");
    long n = at ? strtol(at + strlen("cmdstat_fcall:calls="), NULL, 10) : 0;
    print_message("%ld commands in %lld ms\n", n, (long long)took_ms);
    assert_true(n >= 1);
    /* A machine that stands still for a second costs it its lease, and some commands; looking each second cost far more. */
    assert_true(n <= took_ms / 1000 + 10);
    expect_start(f, f->q, "after");
    assert_int_equal(ts_rig_term(&f->a), 0);
}

int main(int argc, char **argv)
{
    ts_rig_main(argc, argv);
    const struct CMUnitTest tests[] = {
        TS_TEST_PROXIED(c020_connections_leave_a_server_that_became_a_replica),
        TS_TEST_PROXIED(c023_blocked_worker_survives_a_change_of_role),
        TS_TEST_PROXIED(c024_loading_server_is_waited_for_also_at_start),
        TS_TEST_PROXIED(c025_busy_server_costs_at_most_one_redelivery),
        TS_TEST_PROXIED(c028_reply_of_a_take_cut_at_any_byte_runs_the_job_once),
        TS_TEST_PROXIED(c028_single_bytes_carry_jobs_of_all_kinds),
        TS_TEST_PROXIED(c029_c030_settle_repeated_after_a_lost_reply_counts_once),
        TS_TEST_PROXIED(c031_put_repeated_after_a_lost_reply_adds_once),
        TS_TEST_PROXIED(c036_silently_dead_connections_are_noticed),
        TS_TEST_PROXIED(c038_worker_resumes_after_outages_of_any_length),
        TS_TEST_PROXIED(c040_flapping_leaves_the_worker_with_its_whole_state),
        TS_TEST_PROXIED(idle_worker_renews_and_asks_for_nothing_else),
        TS_TEST_PROXIED(c044_value_over_the_servers_limit_is_an_error_not_a_loop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
