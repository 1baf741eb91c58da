/*
 * crash_killpoint_test.c - SIGKILL at every fault point (C-013, C-082 and point 6 of the fault kit)
 *
 * A trial: a job that crashed its worker before lies there; a process enqueues jobs of all kinds and works them until
 * nothing is left, and is killed at one point; a clean worker then finishes; INV must hold, and workflows have got to
 * their ends with each step run (C-089). A first trial without a kill
 * tells which points there are and how often each is reached: each name is then killed at its first and at a later
 * time, and so is a sample of all points in the order they are reached, denser with ROUNDS. Trials mostly wait for
 * leases to run out, so TOGETHER of them go at once, each with a store of its own.
 */
#include "support/rig_test.h"

#define TOGETHER   6
#define TRIALS_MAX 512
#define NAMES_MAX  128
#define MIXED_JOBS 16

struct trial {
    struct ts_rig r;
    lade *q;
    struct ts_proc victim, x, finisher;
    char env[96]; /* LADE_FAULT=... */
    bool killed;
};

struct point {
    char name[64];
    int seen;
};

static struct {
    struct point point[NAMES_MAX];
    int n_points, total;
    char spec[TRIALS_MAX][96];
    bool reached[TRIALS_MAX];
    int n;
} plan;

static void set_up(struct trial *t, const char *env)
{
    *t = (struct trial){0};
    (void)snprintf(t->env, sizeof(t->env), "%s", env);
    ts_rig_start(&t->r, TS_PLAIN);
    t->q = ts_rig_open(&t->r);
    ts_rig_enqueue(&t->r, t->q, &(lade_job_spec){.kind = "poison1", .id = "orphan"}, NULL);
    ts_rig_worker(&t->r, &t->victim, &(struct ts_worker_args){.name = "victim"});
}

static void start_x(struct trial *t)
{
    assert_true(ts_proc_wait(&t->victim, TS_SOON));
    assert_int_equal(ts_proc_code(&t->victim), 128 + SIGKILL);
    ts_ledger_process(&t->r.ledger, 'K', t->victim.pid);
    ts_rig_worker(
        &t->r, &t->x,
        &(struct ts_worker_args){
            .name = "x", .produce = MIXED_JOBS, .drain = true, .backoff_ms = 10, .env = {t->env}});
}

static void start_finisher(struct trial *t)
{
    bool ended = ts_proc_wait(&t->x, TS_SOON);
    t->killed = ended && ts_proc_code(&t->x) == 128 + SIGKILL;
    if (!ended || (!t->killed && ts_proc_code(&t->x) != 0))
        print_message("%s: exit %d\n", t->env, ts_proc_code(&t->x));
    assert_true(ended && (t->killed || ts_proc_code(&t->x) == 0));
    if (t->killed)
        ts_ledger_process(&t->r.ledger, 'K', t->x.pid);
    ts_rig_worker(&t->r, &t->finisher,
                  &(struct ts_worker_args){.name = "finisher", .drain = true, .backoff_ms = 10});
}

/* C-089: marking a step and enqueueing the next is one step: none is lost, none waits for ever. */
static void assert_flow_ended(struct trial *t, const char *id, enum lade_flow_state state)
{
    lade_flow_view *v = NULL;
    int rc = lade_flow_get(t->q, id, &v, NULL);
    if (rc == LADE_NOT_FOUND)
        return; /* killed before it was enqueued */
    assert_int_equal(rc, 0);
    int is = v->state;
    for (size_t i = 0; i < v->n_nodes; i++)
        is = v->nodes[i].state == LADE_STEP_ENQUEUED ? -1 : is;
    lade_flow_view_free(v);
    if (is != (int)state)
        print_message("%s: flow %s has not ended as it should\n", t->env, id);
    assert_int_equal(is, state);
}

static void finish(struct trial *t)
{
    assert_true(ts_proc_wait(&t->finisher, TS_SOON));
    assert_int_equal(ts_proc_code(&t->finisher), 0);
    struct ts_inv inv;
    bool holds = ts_inv_check(t->r.ledger_dir, t->q, TS_INV_QUIET, &inv);
    if (!holds)
        print_message("%s: INV is broken\n", t->env);
    assert_true(holds);
    assert_int_equal(ts_rig_state(t->q, "orphan"), LADE_STATE_COMPLETED);
    assert_flow_ended(t, "flow-a", LADE_FLOW_COMPLETED);
    assert_flow_ended(t, "flow-b", LADE_FLOW_FAILED);
}

static void tear_down(struct trial *t)
{
    lade_close(t->q);
    ts_rig_stop(&t->r);
}

static void run_together(int first, int n)
{
    static struct trial t[TOGETHER];
    for (int i = 0; i < n; i++)
        set_up(&t[i], plan.spec[first + i]);
    for (int i = 0; i < n; i++)
        start_x(&t[i]);
    for (int i = 0; i < n; i++)
        start_finisher(&t[i]);
    for (int i = 0; i < n; i++)
        finish(&t[i]);
    for (int i = 0; i < n; i++) {
        plan.reached[first + i] = t[i].killed;
        tear_down(&t[i]);
    }
}

/* "lade: fault NAME COUNT" and "lade: faults COUNT" of the counting run. */
static void read_points(const struct ts_rig *r)
{
    char path[TS_DIR_MAX + 16], line[256];
    FILE *log = fopen(ts_rig_path(r, "roles.log", path, sizeof(path)), "re");
    assert_non_null(log);
    while (fgets(line, sizeof(line), log)) {
        char *name = line + strlen("lade: fault ");
        char *space = strrchr(line, ' ');
        if (strncmp(line, "lade: faults ", 13) == 0)
            plan.total = (int)strtol(line + 13, NULL, 10);
        if (strncmp(line, "lade: fault ", 12) != 0 || plan.n_points == NAMES_MAX)
            continue;
        *space = 0;
        struct point *p = &plan.point[plan.n_points++];
        (void)snprintf(p->name, sizeof(p->name), "%.63s", name);
        p->seen = (int)strtol(space + 1, NULL, 10);
    }
    (void)fclose(log);
}

static void points_are_counted(void **state)
{
    (void)state;
    struct trial t;
    set_up(&t, "LADE_FAULT=*:0:count");
    start_x(&t);
    start_finisher(&t);
    finish(&t);
    read_points(&t.r);
    tear_down(&t);
    print_message("%d fault points of %d names in one run\n", plan.total, plan.n_points);
    assert_true(plan.total > 0 && plan.n_points > 0);
    /* without these the run would not be worth killing */
    static const char *const needed[] = {
        "put.before",  "put.after",     "settle.before", "settle.after",   "take.before",
        "take.after",  "renew.before",  "renew.after",   "reclaim.before", "begin.before",
        "begin.after", "reclaim.after", "leave.before",  "leave.after"};
    for (size_t i = 0; i < LB_ARRAY_LEN(needed); i++) {
        bool found = false;
        for (int k = 0; k < plan.n_points; k++)
            found |= strcmp(plan.point[k].name, needed[i]) == 0;
        if (!found)
            print_message("%s is not reached\n", needed[i]);
        assert_true(found);
    }
}

static void add_spec(const char *name, int at)
{
    assert_true(plan.n < TRIALS_MAX);
    (void)snprintf(plan.spec[plan.n++], sizeof(plan.spec[0]), "LADE_FAULT=%.60s:%d:kill", name, at);
}

/* C-013: the claim path is among them: take, begin and reclaim, on both sides. (chronos 28, 51; chasqui 36) */
static void c013_nothing_is_lost_by_a_kill_at_any_fault_point(void **state)
{
    (void)state;
    for (int i = 0; i < plan.n_points; i++) {
        add_spec(plan.point[i].name, 1);
        if (plan.point[i].seen > 4)
            add_spec(plan.point[i].name, plan.point[i].seen / 4 + 1);
    }
    int samples = ts_rig_rounds(12);
    int last = plan.total * 3 / 4; /* not every run reaches as many as the counted one */
    int step = LB_MAX(last / samples, 1);
    for (int at = step / 2 + 1; at < last && plan.n < TRIALS_MAX; at += step)
        add_spec("*", at);
    for (int at = 0; at < plan.n; at += TOGETHER)
        run_together(at, LB_MIN(TOGETHER, plan.n - at));
    int killed = 0;
    for (int i = 0; i < plan.n; i++)
        killed += plan.reached[i];
    print_message("%d trials, %d killed\n", plan.n, killed);
    assert_true(killed >= plan.n / 2); /* some points are reached by chance of timing only */
}

int main(int argc, char **argv)
{
    ts_rig_main(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(points_are_counted),
        cmocka_unit_test(c013_nothing_is_lost_by_a_kill_at_any_fault_point),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
