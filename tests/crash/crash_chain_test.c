/*
 * crash_chain_test.c - workers of chains killed while steps run ahead (ADR 0050; C-082, C-089)
 *
 * A trial: chains are enqueued, a process works them and is killed at one point of a call to the store; a clean one finishes. Then each
 * chain is completed and INV holds, each step ended, and none began for the first time before the one before it had ended once. Where nobody
 * was killed each step ended once.
 */
#include "support/rig_test.h"

#define CHAINS 24
#define STEPS  10
#define SLOTS  4

#define POINTS 4

static const char *const redis_points[POINTS] = {"redis.send.before", "redis.send.after",
                                                 "redis.reply.after"};
static const char *const sqlite_points[POINTS] = {"sqlite.take.lease", "sqlite.flow.pass",
                                                  "sqlite.settle.through", "sqlite.settle.commit"};

struct trial {
    struct ts_fix *f;
    char env[96];
    int number;
    bool killed;
};

static void name_step(const struct trial *t, int chain, int step, char out[64])
{
    (void)snprintf(out, 64, "chain%d-%d~%d", t->number, chain, step);
}

static void enqueue_chain(const struct trial *t, int chain)
{
    char id[48], job[64];
    lade_err err = {0};
    lade_job_spec spec = {.kind = "ok"};
    lade_flow_step steps[STEPS];
    for (int i = 0; i < STEPS; i++)
        steps[i] = lade_flow_job(&spec);
    (void)snprintf(id, sizeof(id), "chain%d-%d", t->number, chain);
    lade_flow_spec flow = {.id = id, .root = lade_flow_chain(steps, STEPS)};
    assert_int_equal(lade_flow_enqueue(t->f->q, &flow, NULL, &err), 0);
    for (int i = 0; i < STEPS; i++) {
        name_step(t, chain, i, job);
        ts_ledger_acked(&t->f->r.ledger, job);
    }
}

/* When the step first began, when it first ended, and how often it ended. */
struct life {
    int64_t began, ended;
    size_t ends;
};

static struct life read_life(const struct ts_ledger *l, const char *job)
{
    struct life life = {INT64_MAX, INT64_MAX, 0};
    size_t n;
    const struct ts_run *run = ts_ledger_runs(l, job, &n);
    for (size_t i = 0; i < n; i++) {
        life.began = LB_MIN(life.began, run[i].started);
        if (run[i].ended == 0)
            continue;
        life.ended = LB_MIN(life.ended, run[i].ended);
        life.ends++;
    }
    return life;
}

/* Returns how many steps ended more than once. */
static int assert_chain(const struct trial *t, const struct ts_ledger *l, int chain)
{
    char id[48], job[64];
    lade_flow_view *v = NULL;
    (void)snprintf(id, sizeof(id), "chain%d-%d", t->number, chain);
    assert_int_equal(lade_flow_get(t->f->q, id, &v, NULL), 0);
    assert_int_equal(v->state, LADE_FLOW_COMPLETED);
    lade_flow_view_free(v);
    int again = 0;
    int64_t before = 0;
    for (int i = 0; i < STEPS; i++) {
        name_step(t, chain, i, job);
        struct life life = read_life(l, job);
        if (life.ends == 0 || life.began < before)
            print_message("%s: %s ended %zu times, began %lld, the one before ended %lld\n", t->env,
                          job, life.ends, (long long)life.began, (long long)before);
        assert_true(life.ends >= 1);
        assert_true(life.began >= before);
        before = life.ended;
        again += life.ends > 1;
    }
    return again;
}

static void run_trial(struct trial *t)
{
    struct ts_proc x, finisher;
    for (int i = 0; i < CHAINS; i++)
        enqueue_chain(t, i);
    ts_rig_worker(&t->f->r, &x,
                  &(struct ts_worker_args){.name = "x",
                                           .concurrency = SLOTS,
                                           .lease_ms = TS_LEASE_MS,
                                           .drain = true,
                                           .no_sync = true,
                                           .env = {t->env}});
    assert_true(ts_proc_wait(&x, TS_SOON));
    t->killed = ts_proc_code(&x) == 128 + SIGKILL;
    if (t->killed)
        ts_ledger_process(&t->f->r.ledger, 'K', x.pid);
    ts_rig_worker(&t->f->r, &finisher,
                  &(struct ts_worker_args){
                      .name = "finisher", .lease_ms = TS_CALM_MS, .drain = true, .no_sync = true});
    assert_true(ts_proc_wait(&finisher, TS_SOON));
    assert_int_equal(ts_proc_code(&finisher), 0);
    struct ts_ledger l;
    int again = 0;
    assert_true(ts_ledger_read(&l, t->f->r.ledger_dir));
    for (int i = 0; i < CHAINS; i++)
        again += assert_chain(t, &l, i);
    ts_ledger_free(&l);
    assert_true(t->killed || again == 0);
}

/* Steps that began under the fence of the one before them: the worker had them in hand already. */
static size_t count_ahead(const struct ts_ledger *l)
{
    size_t n_ahead = 0;
    for (size_t i = 0; i < l->n_runs; i++) {
        char before[LADE_ID_MAX + 1];
        const char *tilde = strrchr(l->run[i].id, '~');
        int step = tilde ? (int)strtol(tilde + 1, NULL, 10) : 0;
        if (step == 0)
            continue;
        (void)snprintf(before, sizeof(before), "%.*s~%d", (int)(tilde - l->run[i].id), l->run[i].id,
                       step - 1);
        size_t n;
        const struct ts_run *run = ts_ledger_runs(l, before, &n);
        for (size_t k = 0; k < n; k++)
            n_ahead += run[k].fence == l->run[i].fence && run[k].pid == l->run[i].pid;
    }
    return n_ahead;
}

static void chains_that_run_ahead_survive_a_kill_at_any_point(void **state)
{
    static const int at[] = {1, 2, 3, 5, 8, 13, 21};
    bool redis = ts_rig_store() == TS_REDIS;
    const char *const *points = redis ? redis_points : sqlite_points;
    struct ts_fix *f = *state;
    int killed = 0, number = 0;
    for (size_t p = 0; p < POINTS && points[p]; p++) {
        for (int k = 0; k < LB_MIN(ts_rig_rounds(4), (int)LB_ARRAY_LEN(at)); k++) {
            struct trial t = {.f = f, .number = number++};
            (void)snprintf(t.env, sizeof(t.env), "LADE_FAULT=%s:%d:kill", points[p],
                           redis ? 8 + 2 * at[k] : at[k]);
            run_trial(&t);
            killed += t.killed;
        }
    }
    struct ts_inv inv;
    struct ts_ledger l;
    assert_true(ts_inv_check(f->r.ledger_dir, f->q, TS_INV_QUIET, &inv));
    assert_true(ts_ledger_read(&l, f->r.ledger_dir));
    size_t ahead = count_ahead(&l);
    ts_ledger_free(&l);
    print_message("%d trials, %d killed, %zu steps under the fence of the one before\n", number,
                  killed, ahead);
    assert_true(killed >= number / 2);
    assert_true(ahead > 0); /* else this test shows nothing of running ahead */
}

int main(int argc, char **argv)
{
    ts_rig_main(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(chains_that_run_ahead_survive_a_kill_at_any_point,
                                        ts_fix_start, ts_fix_stop),
    };
    return cmocka_run_group_tests_name("chain", tests, NULL, NULL);
}
