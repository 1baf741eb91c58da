/* crash_lease_test.c - leases lost and recovered: slow, stopped and dead workers (C-003 to C-007, C-010, C-011, C-017) */
#include "support/rig_test.h"

#define NS(ms) ((ms)*LADE_MILLISECOND)

static void enqueue_gated(struct ts_fix *f, const char *kind, const char *id)
{
    lade_job_spec spec = ts_fix_gated(f, kind, id);
    ts_rig_enqueue(&f->r, f->q, &spec, NULL);
}

static uint64_t number_of(const struct ts_fix *f, const char *name)
{
    struct ts_ledger l;
    assert_true(ts_ledger_read(&l, f->r.ledger_dir));
    uint64_t sum = ts_ledger_sum(&l, name);
    ts_ledger_free(&l);
    return sum;
}

static lade_queue_info queue_info(const struct ts_fix *f)
{
    lade_queue_info info;
    assert_int_equal(lade_queue_get(f->q, "default", &info, NULL), 0);
    return info;
}

static void start_with_lease(struct ts_fix *f, struct ts_proc *p, const char *name, int concurrency,
                             int lease_ms)
{
    ts_rig_worker(
        &f->r, p,
        &(struct ts_worker_args){.name = name, .concurrency = concurrency, .lease_ms = lease_ms});
    assert_true(ts_rig_wait_worker(f->q, name, TS_SOON));
}

/* One that is to die, or whose lease is to end while it cannot renew. */
static void start_victim(struct ts_fix *f, struct ts_proc *p, const char *name, int concurrency)
{
    start_with_lease(f, p, name, concurrency, 2 * TS_LEASE_MS);
}

static void start_worker(struct ts_fix *f, struct ts_proc *p, const char *name, int concurrency)
{
    start_with_lease(f, p, name, concurrency, TS_CALM_MS);
}

static void print_time(const char *what, int64_t ns)
{
    print_message("%s %lld ms later\n", what, (long long)(ns / NS(1)));
}

/* C-003: a deaf handler loses its job at the timeout, its late result counts for nothing, and its slot comes back. */
static void c003_deaf_handler_is_timed_out_and_its_late_result_refused(void **state)
{
    struct ts_fix *f = *state;
    ts_local_open(&f->local, &f->r, f->q, &(lade_worker_config){.concurrency = 1});
    ts_local_handle_all(&f->local);
    ts_local_run(&f->local);
    lade_job_spec spec = ts_fix_gated(f, "deaf", "stuck");
    spec.timeout = NS(300);
    spec.max_attempts = 2;
    ts_rig_enqueue(&f->r, f->q, &spec, NULL);
    assert_true(ts_fix_wait_runs(f, "stuck", 1));
    start_worker(f, &f->b, "b", 1);
    assert_true(TS_UNTIL(TS_SOON, ts_local_stats(&f->local).stuck == 1));
    assert_true(ts_fix_wait_state(f, "stuck", LADE_STATE_DEAD));
    assert_in_range(ts_local_stats(&f->local).timed_out, 1, 2); /* b may take the second attempt */

    lade_job_view *v;
    assert_int_equal(lade_job_get(f->q, NULL, "stuck", &v, NULL), 0);
    assert_string_equal(v->reason, "exhausted");
    assert_int_equal(v->n_history, 2);
    assert_string_equal(v->history[0].outcome, "timeout");
    assert_string_equal(v->history[1].outcome, "timeout");
    lade_job_view_free(v);

    ts_fix_open_gate(f);
    assert_true(TS_UNTIL(TS_SOON, ts_rig_ends(&f->r, "stuck") == 2));
    assert_true(TS_UNTIL(TS_SOON, ts_local_stats(&f->local).stuck == 0));
    for (int i = 0; i < 8; i++) {
        char id[24];
        (void)snprintf(id, sizeof(id), "after-%d", i);
        ts_rig_enqueue(&f->r, f->q, &(lade_job_spec){.kind = "ok", .id = id}, NULL);
    }
    assert_true(ts_rig_wait_quiet(f->q, TS_SOON));
    assert_int_equal(ts_rig_term(&f->b), 0);
    assert_int_equal(ts_local_stop(&f->local), 0);
    assert_int_equal(ts_rig_state(f->q, "stuck"), LADE_STATE_DEAD);
    assert_int_equal(queue_info(f).total_completed, 8);
    assert_int_equal(queue_info(f).total_dead, 1);
}

/* C-004, C-005: a worker stopped with n jobs in hand loses them all; another finishes them; its own results are refused
 * one by one and it goes on working. */
static void lose_jobs_in_hand(struct ts_fix *f, int n)
{
    char id[24];
    start_victim(f, &f->a, "a", n);
    for (int i = 0; i < n; i++) {
        (void)snprintf(id, sizeof(id), "job-%d", i);
        enqueue_gated(f, "deaf", id);
    }
    assert_true(TS_UNTIL(TS_SOON, ts_ledger_count_starts(f->r.ledger_dir) == (size_t)n));
    ts_rig_freeze(&f->r, &f->a);
    start_worker(f, &f->b, "b", n);
    assert_true(TS_UNTIL(TS_SOON, ts_ledger_count_starts(f->r.ledger_dir) == 2 * (size_t)n));
    ts_fix_open_gate(f);
    assert_true(ts_rig_wait_quiet(f->q, TS_SOON));
    assert_int_equal(queue_info(f).total_completed, n);
    ts_rig_thaw(&f->r, &f->a);
    assert_true(TS_UNTIL(TS_SOON, ts_ledger_count_ends(f->r.ledger_dir) == 2 * (size_t)n));
    assert_int_equal(ts_rig_term(&f->b), 0);

    for (int i = 0; i < n; i++) {
        (void)snprintf(id, sizeof(id), "later-%d", i);
        ts_rig_enqueue(&f->r, f->q, &(lade_job_spec){.kind = "ok", .id = id}, NULL);
    }
    assert_true(ts_rig_wait_quiet(f->q, TS_SOON));
    assert_int_equal(ts_rig_term(&f->a), 0);
    assert_int_equal(number_of(f, "lost"), n);
    assert_int_equal(queue_info(f).total_completed, 2 * n);
    assert_inv(f, TS_INV_QUIET);
}

static void c004_completion_after_a_lost_lease_is_refused(void **state)
{
    lose_jobs_in_hand(*state, 1);
}

static void c005_worker_survives_the_loss_of_sixteen_leases(void **state)
{
    lose_jobs_in_hand(*state, 16);
}

static int64_t second_start(const struct ts_fix *f, const char *id)
{
    struct ts_ledger l;
    size_t n;
    assert_true(ts_ledger_read(&l, f->r.ledger_dir));
    const struct ts_run *run = ts_ledger_runs(&l, id, &n);
    assert_true(n >= 2);
    int64_t at = run[1].started;
    ts_ledger_free(&l);
    return at;
}

/* chronos 28; chasqui 34 */
static void c006_living_worker_recovers_the_jobs_of_a_dead_one_without_a_restart(void **state)
{
    struct ts_fix *f = *state;
    start_victim(f, &f->a, "a", 1);
    enqueue_gated(f, "gate", "orphan");
    assert_true(ts_fix_wait_runs(f, "orphan", 1));
    start_worker(f, &f->b, "b", 1);
    int64_t killed = lb_clock_mono();
    ts_rig_kill(&f->r, &f->a);
    assert_true(ts_fix_wait_runs(f, "orphan", 2));
    print_time("it ran again", second_start(f, "orphan") - killed);
    ts_fix_open_gate(f);
    assert_true(ts_rig_wait_quiet(f->q, TS_SOON));
    assert_int_equal(ts_rig_term(&f->b), 0);
    assert_inv(f, TS_INV_QUIET);
}

/* C-007: heartbeats fail, everything else works. The worker must find out by its own clock, stop the handler, refuse to
 * settle, and go on when heartbeats work again. */
static void c007_worker_whose_heartbeats_fail_gives_its_jobs_up(void **state)
{
    struct ts_fix *f = *state;
    ts_local_open(&f->local, &f->r, f->q,
                  &(lade_worker_config){.concurrency = 1, .lease = NS(2 * TS_LEASE_MS)});
    ts_local_handle_all(&f->local);
    ts_local_run(&f->local);
    enqueue_gated(f, "gate", "long");
    assert_true(ts_fix_wait_runs(f, "long", 1));
    start_worker(f, &f->b, "b", 1);
    int64_t start = lb_clock_mono();
    ts_ledger_process(&f->r.ledger, 'P', getpid());
    lb_fault_arm("renew.before:1:fail+");
    assert_true(TS_UNTIL(TS_SOON, ts_rig_ends(&f->r, "long") == 1));
    print_time("the handler was told", lb_clock_mono() - start);
    assert_true(ts_fix_wait_runs(f, "long", 2));
    lb_fault_arm(NULL);
    ts_fix_open_gate(f);
    assert_true(ts_fix_wait_state(f, "long", LADE_STATE_COMPLETED));
    assert_int_equal(ts_local_stats(&f->local).lost, 1);
    assert_int_equal(ts_local_stats(&f->local).completed, 0);

    assert_int_equal(ts_rig_term(&f->b), 0);
    ts_rig_enqueue(&f->r, f->q, &(lade_job_spec){.kind = "ok", .id = "later"}, NULL);
    assert_true(ts_fix_wait_state(f, "later", LADE_STATE_COMPLETED));
    assert_int_equal(ts_local_stop(&f->local), 0);
    assert_int_equal(queue_info(f).total_completed, 2);
    assert_inv(f, TS_INV_QUIET);
}

static void c010_restart_under_the_same_name_does_not_hide_the_dead_incarnation(void **state)
{
    struct ts_fix *f = *state;
    start_victim(f, &f->a, "w1", 1);
    enqueue_gated(f, "gate", "orphan");
    assert_true(ts_fix_wait_runs(f, "orphan", 1));
    int64_t killed = lb_clock_mono();
    ts_rig_kill(&f->r, &f->a);
    ts_rig_worker(&f->r, &f->b,
                  &(struct ts_worker_args){.name = "w1", .concurrency = 1, .lease_ms = TS_CALM_MS});
    assert_true(ts_fix_wait_runs(f, "orphan", 2));
    print_time("it ran again", second_start(f, "orphan") - killed);
    ts_fix_open_gate(f);
    assert_true(ts_rig_wait_quiet(f->q, TS_SOON));
    assert_int_equal(ts_rig_term(&f->b), 0);
    assert_inv(f, TS_INV_QUIET);
}

/* C-011: stale stamps of the former holders of a name must not get the new one pruned. */
static void c011_new_worker_is_not_pruned_for_the_stamp_of_its_predecessor(void **state)
{
    struct ts_fix *f = *state;
    for (int i = 0; i < 2; i++) {
        start_with_lease(f, &f->a, "w1", 1, TS_LEASE_MS);
        ts_rig_kill(&f->r, &f->a);
    }
    ts_nap_ms(TS_LEASE_MS + TS_SWEEP_MS); /* the stamps are stale now: nothing else tells */
    struct ts_worker_args peer = {.name = "peer",
                                  .concurrency = 1,
                                  .lease_ms = TS_CALM_MS,
                                  .sweep_ms = 100,
                                  .queues = "side,default"};
    ts_rig_worker(&f->r, &f->c, &peer);
    assert_true(ts_rig_wait_worker(f->q, "peer", TS_SOON));
    ts_rig_enqueue(
        &f->r, f->q,
        &(lade_job_spec){
            .kind = "gate", .id = "side", .queue = "side", .payload = {f->gate, strlen(f->gate)}},
        NULL);
    assert_true(ts_fix_wait_runs(f, "side", 1)); /* the peer is busy and only sweeps */
    start_worker(f, &f->b, "w1", 1);
    ts_rig_enqueue(&f->r, f->q,
                   &(lade_job_spec){.kind = "sleep", .payload = LADE_STR("3000"), .id = "long"},
                   NULL);
    assert_true(ts_fix_wait_state(f, "long", LADE_STATE_COMPLETED));
    ts_fix_open_gate(f);
    assert_true(ts_rig_wait_quiet(f->q, TS_SOON));
    assert_int_equal(ts_rig_runs(&f->r, "long"), 1);
    assert_int_equal(ts_rig_term(&f->b), 0);
    assert_int_equal(ts_rig_term(&f->c), 0);
    assert_int_equal(number_of(f, "lost"), 0);
    assert_inv(f, TS_INV_QUIET);
}

/* The only job of a state; the caller's. */
static lade_job_view *list_one(const struct ts_fix *f, enum lade_state state)
{
    lade_cursor at = {0};
    lade_job_view *v = NULL;
    size_t n = 0;
    assert_int_equal(lade_job_list(f->q, "default", state, &at, 1, &v, &n, NULL), 0);
    assert_int_equal(n, 1);
    return v;
}

static void remove_job(struct ts_fix *f, const char *id)
{
    int outcome;
    lade_err err;
    assert_int_equal(lade_job_act(f->q, LADE_JOB_REMOVE, NULL, &id, 1, &outcome, &err), 0);
    ts_ledger_acted(&f->r.ledger, id, "remove");
}

/* C-017: a running job can be found with its owner, and deleted for good. */
static void c017_running_job_is_listed_and_stays_deleted(void **state)
{
    struct ts_fix *f = *state;
    start_with_lease(f, &f->a, "a", 1, 3 * TS_LEASE_MS); /* a third of it until they are told */
    start_with_lease(f, &f->b, "b", 1, 3 * TS_LEASE_MS);
    enqueue_gated(f, "gate", "stuck");
    assert_true(ts_fix_wait_runs(f, "stuck", 1));
    lade_job_view *v = list_one(f, LADE_STATE_ACTIVE);
    assert_string_equal(v->id, "stuck");
    assert_true(strcmp(v->worker, "a") == 0 || strcmp(v->worker, "b") == 0);
    assert_true(v->fence > 0 && v->taken_at > 0 && v->lease_until > v->taken_at);
    lade_job_view_free(v);

    remove_job(f, "stuck");
    assert_int_equal(ts_rig_state(f->q, "stuck"), -1);
    assert_true(TS_UNTIL(TS_SOON, ts_rig_ends(&f->r, "stuck") == 1)); /* its handler was told */
    ts_nap_ms(TS_LEASE_MS + 3 * TS_SWEEP_MS); /* sweeps that must not bring it back */
    assert_int_equal(ts_rig_state(f->q, "stuck"), -1);
    assert_int_equal(ts_rig_runs(&f->r, "stuck"), 1);
    assert_int_equal(ts_rig_term(&f->a), 0);
    assert_int_equal(ts_rig_term(&f->b), 0);
    assert_inv(f, TS_INV_QUIET);
}

/* C-017, the other half: deleted between two runs, while its dead owner's lease still stands. */
static void c017_job_between_two_crashes_is_listed_and_stays_deleted(void **state)
{
    struct ts_fix *f = *state;
    ts_rig_enqueue(&f->r, f->q, &(lade_job_spec){.kind = "poison", .id = "bomb"}, NULL);
    ts_rig_worker(&f->r, &f->a, &(struct ts_worker_args){.name = "a"});
    assert_true(ts_proc_wait(&f->a, TS_SOON));
    ts_ledger_process(&f->r.ledger, 'K', f->a.pid);
    lade_job_view *v = list_one(f, LADE_STATE_ACTIVE);
    assert_string_equal(v->id, "bomb");
    lade_job_view_free(v);
    remove_job(f, "bomb");
    start_worker(f, &f->b, "b", 1);
    ts_nap_ms(TS_LEASE_MS + 3 * TS_SWEEP_MS);
    assert_int_equal(ts_rig_state(f->q, "bomb"), -1);
    assert_int_equal(ts_rig_runs(&f->r, "bomb"), 1);
    assert_int_equal(ts_rig_term(&f->b), 0);
    assert_inv(f, TS_INV_QUIET);
}

static _Atomic size_t n_quarantined, n_poisoned;

static void note_quarantine(void *ctx, const lade_death *d)
{
    (void)ctx;
    n_quarantined += strcmp(d->id, "bomb") == 0 && strcmp(d->reason, "quarantined") == 0 &&
                     d->crashes == 2 && d->attempts == 0 && !d->discarded;
}

static lade_outcome note_poisoned(lade_job *job, void *ctx)
{
    (void)job;
    (void)ctx;
    n_poisoned++;
    return LADE_OK;
}

/* chronos 29: a job that may not run again after its workers died goes to the dead unseen, and on_dead is told once. */
static void quarantine_calls_the_hook_and_no_handler(void **state)
{
    struct ts_fix *f = *state;
    ts_rig_enqueue(&f->r, f->q, &(lade_job_spec){.kind = "poison", .id = "bomb"}, NULL);
    struct ts_worker_args args = {.name = "w", .concurrency = 1, .max_crashes = 2};
    for (int i = 0; i < 2; i++) {
        struct ts_proc p;
        ts_rig_worker(&f->r, &p, &args);
        assert_true(ts_proc_wait(&p, TS_SOON));
        ts_ledger_process(&f->r.ledger, 'K', p.pid);
    }
    assert_int_equal(ts_rig_runs(&f->r, "bomb"), 2);
    ts_local_open(&f->local, &f->r, f->q,
                  &(lade_worker_config){.max_crashes = 2, .on_dead = note_quarantine});
    assert_int_equal(lade_worker_handle(f->local.w, "poison", note_poisoned, NULL), 0);
    ts_local_run(&f->local);
    assert_true(ts_fix_wait_state(f, "bomb", LADE_STATE_DEAD));
    assert_true(TS_UNTIL(TS_SOON, n_quarantined == 1));
    lade_worker_stats stats;
    lade_queue_info info;
    lade_dead_class *k = NULL;
    size_t n_classes = 0;
    lade_worker_get_stats(f->local.w, &stats);
    assert_int_equal(stats.quarantined, 1);
    assert_int_equal(stats.recovered, 1);
    assert_int_equal(lade_queue_get(f->q, "default", &info, NULL), 0);
    assert_int_equal(info.total_dead, 1);
    assert_int_equal(lade_dead_classes(f->q, "default", &k, &n_classes, NULL), 0);
    assert_int_equal(n_classes, 1);
    assert_int_equal(k[0].count, 1);
    lade_free(k);
    assert_int_equal(ts_local_stop(&f->local), 0);
    assert_int_equal(n_quarantined, 1);
    assert_int_equal(n_poisoned, 0);
}

/* C-110 in small: a job that kills its workers ends as quarantined, and crashes spend no attempt of others. (chronos 29; chasqui 35) */
static void poison_job_is_quarantined_after_max_crashes(void **state)
{
    struct ts_fix *f = *state;
    ts_rig_enqueue(&f->r, f->q, &(lade_job_spec){.kind = "poison", .id = "bomb"}, NULL);
    ts_rig_enqueue(&f->r, f->q, &(lade_job_spec){.kind = "ok", .id = "fine"}, NULL);
    struct ts_worker_args args = {.name = "w", .concurrency = 1, .max_crashes = 2};
    for (int i = 0; i < 4 && ts_rig_state(f->q, "bomb") != LADE_STATE_DEAD; i++) {
        struct ts_proc p;
        ts_rig_worker(&f->r, &p, &args);
        (void)TS_UNTIL(TS_SOON,
                       ts_proc_wait(&p, 0) || ts_rig_state(f->q, "bomb") == LADE_STATE_DEAD);
        if (p.ended)
            ts_ledger_process(&f->r.ledger, 'K', p.pid);
        else
            assert_int_equal(ts_rig_term(&p), 0);
    }
    ts_fix_finish(f);
    lade_job_view *v;
    assert_int_equal(lade_job_get(f->q, NULL, "bomb", &v, NULL), 0);
    assert_int_equal(v->state, LADE_STATE_DEAD);
    assert_string_equal(v->reason, "quarantined");
    assert_int_equal(v->crashes, 2);
    assert_int_equal(v->attempts, 0);
    lade_job_view_free(v);
    assert_int_equal(ts_rig_runs(&f->r, "bomb"), 2);
    assert_int_equal(ts_rig_state(f->q, "fine"), LADE_STATE_COMPLETED);
    assert_inv(f, TS_INV_QUIET);
}

int main(int argc, char **argv)
{
    ts_rig_main(argc, argv);
    const struct CMUnitTest tests[] = {
        TS_TEST(c003_deaf_handler_is_timed_out_and_its_late_result_refused),
        TS_TEST(c004_completion_after_a_lost_lease_is_refused),
        TS_TEST(c005_worker_survives_the_loss_of_sixteen_leases),
        TS_TEST(c006_living_worker_recovers_the_jobs_of_a_dead_one_without_a_restart),
        TS_TEST(c007_worker_whose_heartbeats_fail_gives_its_jobs_up),
        TS_TEST(c010_restart_under_the_same_name_does_not_hide_the_dead_incarnation),
        TS_TEST(c011_new_worker_is_not_pruned_for_the_stamp_of_its_predecessor),
        TS_TEST(c017_running_job_is_listed_and_stays_deleted),
        TS_TEST(c017_job_between_two_crashes_is_listed_and_stays_deleted),
        TS_TEST(poison_job_is_quarantined_after_max_crashes),
        TS_TEST(quarantine_calls_the_hook_and_no_handler),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
