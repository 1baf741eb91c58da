/*
 * crash_slots_test.c - workers of workflows over several slots of a cluster, killed between settle and ship (chronos 70, 28, 51)
 *
 * A trial: workflows over three queues are enqueued, a process works them and is killed at one point; a clean one finishes. Then each
 * workflow is at its end, INV holds, and no step ran to its end more often than kills allow: once but for the one in hand.
 */
#include "support/rig_test.h"

#define FLOWS 2

static const char *const points[] = {"redis.ship",        "redis.ship.apply", "redis.ship.remove",
                                     "redis.send.before", "redis.send.after", "redis.reply.after"};

struct trial {
    struct ts_fix *f;
    char env[96];
    int number;
    bool killed;
};

/* Chain, group with its callback elsewhere, and again a step: of three queues. */
static void enqueue_flow(const struct trial *t, int i)
{
    char id[32];
    lade_err err = {0};
    lade_job_spec a = {.kind = "ok", .queue = "a"}, b = {.kind = "ok", .queue = "b"},
                  c = {.kind = "ok", .queue = "c"};
    lade_flow_step links[] = {lade_flow_job(&b), lade_flow_job(&c)};
    lade_flow_step members[] = {lade_flow_job(&a), lade_flow_job(&b), lade_flow_chain(links, 2)};
    lade_flow_step steps[] = {lade_flow_job(&a), lade_flow_group(members, 3, &c), lade_flow_job(&b),
                              lade_flow_job(&a)};
    (void)snprintf(id, sizeof(id), "flow%d-%d", t->number, i);
    lade_flow_spec spec = {.id = id, .root = lade_flow_chain(steps, 4)};
    int rc = lade_flow_enqueue(t->f->q, &spec, NULL, &err);
    if (rc != 0)
        print_message("%s: %s\n", id, err.text);
    assert_int_equal(rc, 0);
    for (int step = 0; step < 8; step++) {
        char job[64];
        (void)snprintf(job, sizeof(job), "%s~%d", id, step);
        ts_ledger_acked(&t->f->r.ledger, job);
    }
}

static void assert_ended(const struct trial *t, int i)
{
    char id[32];
    lade_flow_view *v = NULL;
    lade_err err = {0};
    (void)snprintf(id, sizeof(id), "flow%d-%d", t->number, i);
    assert_int_equal(lade_flow_get(t->f->q, id, &v, &err), 0);
    if (v->state != LADE_FLOW_COMPLETED)
        print_message("%s: %s has not ended\n", t->env, id);
    assert_int_equal(v->state, LADE_FLOW_COMPLETED);
    size_t n = v->n_nodes, ends = 0;
    lade_flow_view_free(v);
    assert_int_equal(n, 8);
    for (size_t step = 0; step < n; step++) {
        char job[64];
        (void)snprintf(job, sizeof(job), "%s~%zu", id, step);
        size_t its = ts_rig_ends(&t->f->r, job);
        assert_in_range(its, 1, 2);
        ends += its;
    }
    assert_in_range(ends, n, n + 4); /* what was in hand when it was killed: four slots */
}

static void run_trial(struct trial *t)
{
    struct ts_proc x, finisher;
    for (int i = 0; i < FLOWS; i++)
        enqueue_flow(t, i);
    ts_rig_worker(&t->f->r, &x,
                  &(struct ts_worker_args){.name = "x",
                                           .queues = "a,b,c",
                                           .lease_ms = TS_LEASE_MS,
                                           .drain = true,
                                           .env = {t->env}});
    assert_true(ts_proc_wait(&x, TS_SOON));
    t->killed = ts_proc_code(&x) == 128 + SIGKILL;
    if (t->killed)
        ts_ledger_process(&t->f->r.ledger, 'K', x.pid);
    ts_rig_worker(
        &t->f->r, &finisher,
        &(struct ts_worker_args){
            .name = "finisher", .queues = "a,b,c", .lease_ms = TS_CALM_MS, .drain = true});
    assert_true(ts_proc_wait(&finisher, TS_SOON));
    assert_int_equal(ts_proc_code(&finisher), 0);
    for (int i = 0; i < FLOWS; i++)
        assert_ended(t, i);
}

/* chronos 70: and the group across slots. */
static void workflows_over_slots_survive_a_kill_at_any_point_of_shipping(void **state)
{
    static const int at[] = {1, 2, 3, 5, 8, 13};
    int killed = 0, number = 0;
    for (size_t p = 0; p < LB_ARRAY_LEN(points); p++) {
        for (int k = 0; k < LB_MIN(ts_rig_rounds(3), (int)LB_ARRAY_LEN(at)); k++) {
            struct trial t = {.f = *state, .number = number++};
            bool ships = strncmp(points[p], "redis.ship", 10) == 0;
            (void)snprintf(t.env, sizeof(t.env), "LADE_FAULT=%s:%d:kill", points[p],
                           ships ? at[k] : 10 * at[k]);
            run_trial(&t);
            killed += t.killed;
        }
    }
    struct ts_inv inv;
    struct ts_fix *f = *state;
    assert_true(ts_inv_check(f->r.ledger_dir, f->q, TS_INV_QUIET, &inv));
    print_message("%d trials, %d killed\n", number, killed);
    assert_true(killed >= number * 2 / 3);
}

int main(int argc, char **argv)
{
    ts_rig_main(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            workflows_over_slots_survive_a_kill_at_any_point_of_shipping, ts_fix_start,
            ts_fix_stop),
    };
    return cmocka_run_group_tests_name("slots", tests, NULL, NULL);
}
