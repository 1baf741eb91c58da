/* crash_failover_test.c - a replica takes over that lagged behind; a worker that lacks its second connection; Redis only (C-022, C-033, C-043) */
#include "support/rig_test.h"

#define LONG_MS 20000

static void ask(const struct ts_redis *r, const char *line)
{
    char reply[256];
    assert_true(ts_redis_ask(r, line, reply, sizeof(reply)));
    if (*reply == '-')
        print_message("%s: %s\n", line, reply);
    assert_true(*reply != '-');
}

/* Both have the same bytes of the stream: what was written so far has come over. */
static bool is_in_step(const struct ts_redis *primary, const struct ts_redis *replica)
{
    char a[4096], b[4096];
    if (!ts_redis_ask(primary, "INFO replication", a, sizeof(a)) ||
        !ts_redis_ask(replica, "INFO replication", b, sizeof(b)))
        return false;
    const char *up = strstr(b, "master_link_status:up");
    const char *at = strstr(a, "master_repl_offset:"), *have = strstr(b, "slave_repl_offset:");
    return up && at && have &&
           strtoll(at + strlen("master_repl_offset:"), NULL, 10) ==
               strtoll(have + strlen("slave_repl_offset:"), NULL, 10);
}

static void start_pair(struct ts_redis *primary, struct ts_redis *replica)
{
    static const struct ts_redis_opts tcp = {.tcp = true};
    char line[64];
    assert_true(ts_redis_start(primary, &tcp));
    assert_true(ts_redis_start(replica, &tcp));
    (void)snprintf(line, sizeof(line), "REPLICAOF 127.0.0.1 %d", primary->port);
    ask(primary, "CONFIG SET repl-diskless-sync-delay 0");
    ask(replica, line);
    assert_true(TS_UNTIL(TS_SOON, is_in_step(primary, replica)));
}

static lade *open_at(const char *url, int64_t timeout)
{
    lade *q;
    lade_err err = {0};
    lade_options o = ts_rig_options();
    o.timeout = timeout;
    int rc = lade_open(&q, url, &o, &err);
    if (rc < 0)
        print_error("%s: %s\n", url, err.text);
    assert_int_equal(rc, 0);
    return q;
}

static void assert_sound(lade *q)
{
    lade_finding *found;
    size_t n;
    assert_int_equal(lade_check(q, &found, &n, NULL), 0);
    for (size_t i = 0; i < n; i++)
        print_error("%s: %s\n", found[i].queue, found[i].text);
    lade_free(found);
    assert_int_equal(n, 0);
}

static int enqueue(lade *q, const char *prefix, int i, lade_err *err)
{
    char id[32];
    (void)snprintf(id, sizeof(id), "%s-%d", prefix, i);
    return lade_enqueue(q, &(lade_job_spec){.kind = "ok", .id = id}, NULL, err);
}

/* C-022: with replicas=1 an enqueue that a frozen replica does not have is no success, and those that were are all there. */
static void c022_acknowledged_enqueue_outlives_the_primary_with_replicas_in_the_url(void **state)
{
    (void)state;
    struct ts_redis primary, replica;
    char url[200];
    lade_err err = {0};
    start_pair(&primary, &replica);
    (void)snprintf(url, sizeof(url), "redis://127.0.0.1:%d?replicas=1", primary.port);
    lade *q = open_at(url, 2 * LADE_SECOND);
    int good = 0, refused = 0;
    for (int i = 0; i < 200; i++)
        good += enqueue(q, "good", i, &err) == 0;
    ts_redis_freeze(&replica);
    int rc = enqueue(q, "late", 0, &err);
    refused += rc == -LADE_EUNAVAILABLE && strstr(err.text, "replicas=1") != NULL;
    print_message("%s: %s\n", lade_result_name(rc), err.text);
    ts_redis_kill(&primary);
    ts_redis_thaw(&replica);
    lade_close(q);
    ask(&replica, "REPLICAOF NO ONE");
    q = open_at(replica.url, 10 * LADE_SECOND);
    int there = 0;
    for (int i = 0; i < 200; i++) {
        char id[32];
        (void)snprintf(id, sizeof(id), "good-%d", i);
        there += ts_rig_state(q, id) == LADE_STATE_READY;
    }
    assert_sound(q);
    lade_close(q);
    ts_redis_stop(&primary);
    ts_redis_stop(&replica);
    assert_int_equal(good, 200);
    assert_int_equal(refused, 1);
    assert_int_equal(there, 200);
}

/*
 * C-022: without it a failover to a replica that lags loses what it lacks, which docs/stores.md says. What is there is whole, and
 * workers go on: jobs whose end is lost run again though their worker lives and does not know that it still has them, and
 * one that runs meanwhile is left alone.
 */
static void c022_a_lagging_replica_takes_over_with_a_sound_store(void **state)
{
    struct ts_fix *f = *state;
    struct ts_redis primary, replica;
    char url[64];
    start_pair(&primary, &replica);
    (void)snprintf(url, sizeof(url), "%s", ts_proxy_url(f->r.proxy));
    ts_proxy_upstream(f->r.proxy, primary.socket);
    ts_rig_worker(&f->r, &f->a,
                  &(struct ts_worker_args){.name = "a", .url = url, .lease_ms = LONG_MS});
    lade *q = open_at(primary.url, 10 * LADE_SECOND);
    assert_true(ts_rig_wait_worker(q, "a", TS_SOON));
    for (int i = 0; i < 250; i++)
        assert_int_equal(enqueue(q, "before", i, NULL), 0);
    assert_true(TS_UNTIL(TS_SOON, ts_rig_count(q, LADE_STATE_COMPLETED) == 250));
    lade_job_spec gated = ts_fix_gated(f, "gate", "long");
    ts_rig_enqueue(&f->r, q, &gated, NULL);
    assert_true(ts_fix_wait_runs(f, "long", 1));
    assert_true(TS_UNTIL(TS_SOON, is_in_step(&primary, &replica)));
    ts_redis_freeze(&replica);
    for (int i = 0; i < 250; i++)
        assert_int_equal(enqueue(q, "after", i, NULL), 0);
    assert_true(TS_UNTIL(TS_SOON, ts_rig_count(q, LADE_STATE_COMPLETED) == 500));
    lade_close(q);
    ts_redis_kill(&primary);
    ts_redis_thaw(&replica);
    ask(&replica, "REPLICAOF NO ONE");
    ts_proxy_upstream(f->r.proxy, replica.socket);
    ts_proxy_drop_all(f->r.proxy);
    q = open_at(replica.url, 10 * LADE_SECOND);
    int rc = enqueue(q, "new", 0, NULL);
    bool ran = TS_UNTIL(TS_SOON, ts_rig_state(q, "new-0") == LADE_STATE_COMPLETED);
    int active = ts_rig_state(q, "long");
    ts_fix_open_gate(f);
    bool quiet = ts_rig_wait_quiet(q, TS_SOON);
    uint64_t done = ts_rig_count(q, LADE_STATE_COMPLETED);
    print_message("%d jobs of 502 are completed on the new primary\n", (int)done);
    assert_sound(q);
    int code = ts_rig_term(&f->a);
    lade_close(q);
    ts_redis_stop(&primary);
    ts_redis_stop(&replica);
    assert_int_equal(rc, 0);
    assert_true(ran && quiet);
    assert_int_equal(active, LADE_STATE_ACTIVE);
    assert_int_equal(ts_rig_runs(&f->r, "long"), 1);
    assert_true(done >= 252 && done <= 502);
    assert_int_equal(code, 0);
}

/* C-033: one look over three queues leaves nothing taken that nobody runs. The lease is far longer than the test. */
static void c033_one_slot_serves_three_queues_without_waiting_for_a_lease(void **state)
{
    struct ts_fix *f = *state;
    static const char *const queues[] = {"one", "two", "three"};
    struct ts_worker_args args = {
        .name = "a", .queues = "one,two,three", .concurrency = 1, .lease_ms = 3600000};
    ts_rig_worker(&f->r, &f->a, &args);
    assert_true(ts_rig_wait_worker(f->q, "a", TS_SOON));
    for (size_t i = 0; i < LB_ARRAY_LEN(queues); i++)
        ts_rig_enqueue(&f->r, f->q,
                       &(lade_job_spec){.kind = "ok", .queue = queues[i], .id = queues[i]}, NULL);
    assert_true(ts_rig_wait_quiet(f->q, TS_SOON));
    for (size_t i = 0; i < LB_ARRAY_LEN(queues); i++)
        assert_int_equal(ts_rig_runs(&f->r, queues[i]), 1);
    assert_int_equal(ts_rig_count(f->q, LADE_STATE_ACTIVE), 0);
    assert_int_equal(ts_rig_term(&f->a), 0);
    assert_inv(f, TS_INV_QUIET);
}

/* C-043: what lade has of a second channel is the blocking connection of the bell. Jobs run without it from the start. */
static void c043_worker_runs_jobs_while_its_blocking_connection_is_refused(void **state)
{
    struct ts_fix *f = *state;
    int rule = ts_proxy_rule(
        f->r.proxy, &(struct ts_proxy_rule){.match = "BLPOP", .act = TS_PROXY_DROP_REQUEST});
    ts_rig_worker(&f->r, &f->a, &(struct ts_worker_args){.name = "a", .lease_ms = LONG_MS});
    assert_true(ts_rig_wait_worker(f->q, "a", TS_SOON));
    for (int i = 0; i < 3; i++) {
        lade_job_spec spec = {.kind = "ok"};
        ts_rig_enqueue(&f->r, f->q, &spec, NULL);
        assert_true(ts_rig_wait_quiet(f->q, TS_SOON));
    }
    assert_true(ts_proxy_hits(f->r.proxy, rule) > 0);
    assert_int_equal(ts_proc_code(&f->a), -1); /* still there */
    ts_proxy_clear(f->r.proxy);
    rule = ts_proxy_rule(f->r.proxy, &(struct ts_proxy_rule){.match = "BLPOP"});
    assert_true(TS_UNTIL(TS_SOON, ts_proxy_hits(f->r.proxy, rule) > 0)); /* tried again by itself */
    ts_rig_enqueue(&f->r, f->q, &(lade_job_spec){.kind = "ok", .id = "after"}, NULL);
    assert_true(ts_fix_wait_state(f, "after", LADE_STATE_COMPLETED));
    assert_int_equal(ts_rig_term(&f->a), 0);
    assert_inv(f, TS_INV_QUIET);
}

int main(int argc, char **argv)
{
    ts_rig_main(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c022_acknowledged_enqueue_outlives_the_primary_with_replicas_in_the_url),
        TS_TEST_PROXIED(c022_a_lagging_replica_takes_over_with_a_sound_store),
        TS_TEST_PROXIED(c033_one_slot_serves_three_queues_without_waiting_for_a_lease),
        TS_TEST_PROXIED(c043_worker_runs_jobs_while_its_blocking_connection_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
