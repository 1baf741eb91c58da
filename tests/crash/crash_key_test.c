/* crash_key_test.c - limits over several processes, some of which are killed: never exceeded, and no slot is lost */
#include "support/rig_test.h"

#define N_KEYS   6
#define KEY_JOBS 20

static void limit(struct ts_fix *f, enum lade_limit_scope scope, lade_limit l)
{
    assert_int_equal(lade_limit_set(f->q, "default", scope, LADE_STR(""), &l, NULL), 0);
}

static void enqueue(struct ts_fix *f, const char *kind, const char *payload, int key, int i)
{
    char id[32], name[16];
    (void)snprintf(name, sizeof(name), "k%d", key);
    (void)snprintf(id, sizeof(id), "k%d-%02d", key, i);
    lade_job_spec spec = {
        .kind = kind, .id = id, .payload = {payload, strlen(payload)}, .key = {name, strlen(name)}};
    ts_rig_enqueue(&f->r, f->q, &spec, NULL);
}

static void start(struct ts_fix *f, struct ts_proc *p, const char *name, int lease_ms)
{
    ts_rig_worker(&f->r, p,
                  &(struct ts_worker_args){.name = name, .concurrency = 8, .lease_ms = lease_ms});
    assert_true(ts_rig_wait_worker(f->q, name, TS_SOON));
}

/* When a run was over: by its end, or by the death of its process. */
static int64_t end_of(const struct ts_ledger *l, const struct ts_run *r)
{
    int64_t end = r->ended ? r->ended : INT64_MAX;
    for (size_t i = 0; i < l->n_events; i++) {
        if (l->event[i].what == 'K' && l->event[i].pid == r->pid)
            end = LB_MIN(end, l->event[i].at);
    }
    return end;
}

/* The most runs at once whose ids begin with `prefix`. */
static int most_at_once(const struct ts_ledger *l, const char *prefix)
{
    int most = 0;
    size_t n = strlen(prefix);
    for (size_t i = 0; i < l->n_runs; i++) {
        int now = 0;
        if (strncmp(l->run[i].id, prefix, n) != 0)
            continue;
        for (size_t k = 0; k < l->n_runs; k++)
            now += strncmp(l->run[k].id, prefix, n) == 0 &&
                   l->run[k].started <= l->run[i].started &&
                   l->run[i].started < end_of(l, &l->run[k]);
        most = LB_MAX(most, now);
    }
    return most;
}

static void assert_limits(struct ts_fix *f, int key_most, int most)
{
    struct ts_ledger l;
    assert_true(ts_ledger_read(&l, f->r.ledger_dir));
    int all = most_at_once(&l, "k"), worst = 0;
    for (int k = 0; k < N_KEYS; k++) {
        char prefix[16];
        (void)snprintf(prefix, sizeof(prefix), "k%d-", k);
        worst = LB_MAX(worst, most_at_once(&l, prefix));
    }
    print_message("at once: %d of a key (limit %d), %d of all (limit %d), %zu runs\n", worst,
                  key_most, all, most, l.n_runs);
    ts_ledger_free(&l);
    assert_in_range(worst, 1, key_most);
    assert_in_range(all, 1, most);
}

static void assert_sound(struct ts_fix *f)
{
    lade_finding *found = NULL;
    size_t n = 0;
    assert_int_equal(lade_check(f->q, &found, &n, NULL), 0);
    for (size_t i = 0; i < n; i++)
        print_error("%s: %s\n", found[i].queue, found[i].text);
    lade_free(found);
    assert_int_equal(n, 0);
}

static void limits_hold_over_three_processes_of_which_one_is_killed(void **state)
{
    struct ts_fix *f = *state;
    limit(f, LADE_LIMIT_QUEUE, (lade_limit){.concurrency = 7});
    limit(f, LADE_LIMIT_KEYS, (lade_limit){.concurrency = 2});
    for (int i = 0; i < KEY_JOBS; i++) {
        for (int k = 0; k < N_KEYS; k++)
            enqueue(f, "sleep", "10", k, i);
    }
    start(f, &f->a, "a", 2 * TS_LEASE_MS);
    start(f, &f->b, "b", TS_CALM_MS);
    start(f, &f->c, "c", TS_CALM_MS);
    assert_true(TS_UNTIL(TS_SOON, ts_ledger_count_ends(f->r.ledger_dir) >= N_KEYS * KEY_JOBS / 4));
    ts_rig_kill(&f->r, &f->a);
    assert_true(ts_rig_wait_quiet(f->q, 2 * TS_SOON));
    assert_int_equal(ts_rig_term(&f->b), 0);
    assert_int_equal(ts_rig_term(&f->c), 0);
    assert_int_equal(ts_rig_count(f->q, LADE_STATE_COMPLETED), N_KEYS * KEY_JOBS);
    assert_limits(f, 2, 7);
    assert_sound(f);
}

/* C-074: the slot of a killed worker is free when its lease is recovered, and the others run, in order. */
static void c074_a_killed_workers_slot_is_freed_with_its_lease(void **state)
{
    struct ts_fix *f = *state;
    limit(f, LADE_LIMIT_KEYS, (lade_limit){.order = LADE_KEY_ORDER_FIFO});
    enqueue(f, "gate", f->gate, 0, 0);
    start(f, &f->a, "a", 2 * TS_LEASE_MS);
    assert_true(ts_fix_wait_runs(f, "k0-00", 1));
    for (int i = 1; i <= 5; i++)
        enqueue(f, "ok", "", 0, i);
    ts_rig_kill(&f->r, &f->a);
    start(f, &f->b, "b", TS_CALM_MS);
    assert_true(ts_fix_wait_runs(f, "k0-00", 2));
    ts_fix_open_gate(f);
    assert_true(ts_rig_wait_quiet(f->q, TS_SOON));
    assert_int_equal(ts_rig_term(&f->b), 0);
    struct ts_ledger l;
    assert_true(ts_ledger_read(&l, f->r.ledger_dir));
    for (int i = 1; i <= 5; i++) {
        char id[24], before[24];
        size_t n, m;
        (void)snprintf(id, sizeof(id), "k0-%02d", i);
        (void)snprintf(before, sizeof(before), "k0-%02d", i - 1);
        const struct ts_run *now = ts_ledger_runs(&l, id, &n),
                            *last = ts_ledger_runs(&l, before, &m);
        assert_int_equal(n, 1);
        assert_true(now[0].started > last[m - 1].started);
    }
    ts_ledger_free(&l);
    assert_limits(f, 1, 1);
    assert_sound(f);
}

/* C-075: a worker that hands back at its end, and another that starts at once: never two of a key. */
static void c075_a_restart_runs_no_second_job_of_a_key(void **state)
{
    struct ts_fix *f = *state;
    limit(f, LADE_LIMIT_KEYS, (lade_limit){.concurrency = 1});
    for (int i = 0; i < 8; i++)
        enqueue(f, "nap", "400", i % 2, i);
    for (int round = 0; round < 3; round++) {
        ts_rig_worker(&f->r, &f->a,
                      &(struct ts_worker_args){.name = "a", .concurrency = 8, .grace_ms = 50});
        size_t before = ts_ledger_count_starts(f->r.ledger_dir);
        assert_true(TS_UNTIL(TS_SOON, ts_ledger_count_starts(f->r.ledger_dir) > before));
        assert_int_equal(ts_rig_term(&f->a), 0);
    }
    start(f, &f->b, "b", TS_CALM_MS);
    assert_true(ts_rig_wait_quiet(f->q, TS_SOON));
    assert_int_equal(ts_rig_term(&f->b), 0);
    assert_int_equal(ts_rig_count(f->q, LADE_STATE_COMPLETED), 8);
    assert_limits(f, 1, 2);
    assert_sound(f);
}

int main(int argc, char **argv)
{
    ts_rig_main(argc, argv);
    const struct CMUnitTest tests[] = {
        TS_TEST(limits_hold_over_three_processes_of_which_one_is_killed),
        TS_TEST(c074_a_killed_workers_slot_is_freed_with_its_lease),
        TS_TEST(c075_a_restart_runs_no_second_job_of_a_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
