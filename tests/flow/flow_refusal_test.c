/*
 * flow_refusal_test.c - workflows that break a rule are refused before anything is written; on each store
 *
 * Numbers behind "chronos" are those of the comparison with chronos-go.
 */
#include "support/rig_test.h"

static lade_job_spec job(const char *kind, const char *payload)
{
    return (lade_job_spec){.kind = kind, .payload = {payload, strlen(payload)}};
}

/* Refused with the place and the rule, and nothing is written: chronos 43 and 50. */
static void assert_refused(struct ts_fix *f, const lade_flow_spec *spec, int code, const char *says)
{
    lade_err err = {0};
    lade_queue_info *queues = NULL;
    lade_cursor cursor = {0};
    lade_flow_view *v[1];
    size_t n = 0;
    assert_int_equal(lade_flow_check(f->q, spec, NULL), code);
    assert_int_equal(lade_flow_enqueue(f->q, spec, NULL, &err), code);
    if (!strstr(err.text, says))
        print_message("expected '%s' in: %s\n", says, err.text);
    assert_non_null(strstr(err.text, says));
    assert_int_equal(lade_queue_list(f->q, &queues, &n, NULL), 0);
    lade_free(queues);
    assert_int_equal(n, 0);
    assert_int_equal(lade_flow_list(f->q, &cursor, 1, v, &n, NULL), LADE_EMPTY);
}

/* chronos 50 */
static void bad_jobs_are_refused(void **state)
{
    struct ts_fix *f = *state;
    lade_job_spec good = job("join", "a"), bad = good, cb = good;
    lade_flow_step steps[] = {lade_flow_job(&good), lade_flow_job(&bad)};
    lade_flow_spec spec = {.root = lade_flow_chain(steps, 2)};
    bad.id = "mine";
    assert_refused(f, &spec, -LADE_EINVAL, "root.steps[1]: id is set");
    bad = good;
    bad.unique.key = LADE_STR("k");
    assert_refused(f, &spec, -LADE_EINVAL, "root.steps[1]: unique.key is set");
    bad = good;
    bad.key = LADE_STR("acme");
    assert_refused(f, &spec, -LADE_EINVAL, "root.steps[1]: key is set");
    bad = good;
    bad.at = INT64_C(1700000000) * LADE_SECOND;
    assert_refused(f, &spec, -LADE_EINVAL, "root.steps[1]: at is set");
    bad = good;
    bad.kind = "";
    assert_refused(f, &spec, -LADE_EINVAL, "root.steps[1]: kind is missing");
    bad = good;
    bad.in = -1;
    assert_refused(f, &spec, -LADE_EINVAL, "in is negative");
    cb.at = INT64_C(1700000000) * LADE_SECOND;
    bad = good;
    spec.root = lade_flow_group(steps, 2, &cb);
    assert_refused(f, &spec, -LADE_EINVAL, "root.job: at is set");
    cb = good;
    cb.unique.key = LADE_STR("k");
    spec.root = lade_flow_group(steps, 2, &good);
    spec.on_failure = &cb;
    assert_refused(f, &spec, -LADE_EINVAL, "on_failure: unique.key");
}

/* chronos 50 */
static void bad_shapes_are_refused(void **state)
{
    struct ts_fix *f = *state;
    lade_job_spec good = job("join", "a");
    lade_flow_step one[] = {lade_flow_job(&good)};
    lade_flow_spec spec = {.root = lade_flow_group(one, 0, &good)};
    assert_refused(f, &spec, -LADE_EINVAL, "root: steps is empty; a group");
    spec.root = lade_flow_group(one, 1, NULL);
    assert_refused(f, &spec, -LADE_EINVAL, "no callback");
    spec.root = lade_flow_chain(NULL, 0);
    assert_refused(f, &spec, -LADE_EINVAL, "steps is empty; a chain");
    spec.root = lade_flow_chain(one, 1);
    spec.root.job = &good;
    assert_refused(f, &spec, -LADE_EINVAL, "only groups have a callback");
    spec.root = lade_flow_job(NULL);
    assert_refused(f, &spec, -LADE_EINVAL, "job is NULL");
    spec.root = lade_flow_chain(one, 1);
    spec.id = "has~sign";
    assert_refused(f, &spec, -LADE_EINVAL, "id 'has~sign'");
    spec.id = NULL;
    one[0].on_dead = (enum lade_flow_policy)9;
    assert_refused(f, &spec, -LADE_EINVAL, "root.steps[0]: on_dead");
}

static void cycles_are_refused(void **state)
{
    struct ts_fix *f = *state;
    static const size_t on_1[] = {1}, on_2[] = {2}, twice[] = {0, 0}, on_9[] = {9}, on_0[] = {0};
    lade_job_spec good = job("join", "a");
    lade_flow_step g[] = {lade_flow_job(&good), lade_flow_job(&good), lade_flow_job(&good)};
    lade_flow_spec spec = {.root = lade_flow_graph(g, 3)};
    g[1].after = on_2;
    g[1].n_after = 1;
    g[2].after = on_1;
    g[2].n_after = 1;
    assert_refused(f, &spec, -LADE_EINVAL, "cycle");
    g[2].after = on_2;
    assert_refused(f, &spec, -LADE_EINVAL, "cycle");
    g[2].after = twice;
    g[2].n_after = 2;
    assert_refused(f, &spec, -LADE_EINVAL, "step 0 twice");
    g[2].after = on_9;
    g[2].n_after = 1;
    assert_refused(f, &spec, -LADE_EINVAL, "names step 9 of 3");
    g[2].after = NULL;
    assert_refused(f, &spec, -LADE_EINVAL, "steps[2].after is NULL");
    spec.root.after = on_0;
    spec.root.n_after = 1;
    assert_refused(f, &spec, -LADE_EINVAL, "root.after");
}

static void after_is_refused_outside_of_a_graph(void **state)
{
    struct ts_fix *f = *state;
    lade_job_spec a = {.kind = "a"}, b = {.kind = "b"};
    static const size_t first[] = {0};
    lade_flow_step steps[] = {lade_flow_job(&a), lade_flow_job(&b)};
    steps[1].after = first;
    steps[1].n_after = 1;
    lade_flow_spec bad[] = {{.root = lade_flow_chain(steps, 2)},
                            {.root = lade_flow_group(steps, 2, &a)},
                            {.root = steps[1]}};
    for (size_t i = 0; i < LB_ARRAY_LEN(bad); i++) {
        lade_err err;
        assert_int_equal(lade_flow_enqueue(f->q, &bad[i], NULL, &err), -LADE_EINVAL);
        assert_non_null(strstr(err.text, "after is set; only steps of a graph can have it"));
    }
    lade_flow_step inner[] = {lade_flow_job(&a), lade_flow_chain(steps, 2)};
    lade_err err;
    assert_int_equal(
        lade_flow_enqueue(f->q, &(lade_flow_spec){.root = lade_flow_graph(inner, 2)}, NULL, &err),
        -LADE_EINVAL);
    steps[1].n_after = 0;
    assert_int_equal(
        lade_flow_enqueue(f->q, &(lade_flow_spec){.root = lade_flow_graph(inner, 2)}, NULL, &err),
        0);
}

static void depth_size_and_edges_are_bounded(void **state)
{
    struct ts_fix *f = *state;
    static lade_flow_step level[LADE_FLOW_DEPTH_MAX + 1], many[LADE_FLOW_STEPS_MAX + 1];
    lade_job_spec good = job("join", "a");
    level[0] = lade_flow_job(&good);
    for (int i = 1; i <= LADE_FLOW_DEPTH_MAX; i++)
        level[i] = lade_flow_chain(&level[i - 1], 1);
    lade_flow_spec spec = {.root = level[LADE_FLOW_DEPTH_MAX]};
    assert_refused(f, &spec, -LADE_EINVAL, "deeper than 32");
    lade_flow_step self;
    self = lade_flow_chain(&self, 1);
    spec.root = self;
    assert_refused(f, &spec, -LADE_EINVAL, "contain itself");
    spec.root = level[LADE_FLOW_DEPTH_MAX - 1];
    assert_int_equal(lade_flow_check(f->q, &spec, NULL), 0);
    for (size_t i = 0; i <= LADE_FLOW_STEPS_MAX; i++)
        many[i] = lade_flow_job(&good);
    spec.root = lade_flow_chain(many, LADE_FLOW_STEPS_MAX + 1);
    assert_refused(f, &spec, -LADE_ETOOBIG, "more than 10000 jobs");
    spec.root = lade_flow_group(level, SIZE_MAX, &good); /* none of them is looked at */
    assert_refused(f, &spec, -LADE_ETOOBIG, "more than 10000 jobs");
    spec.root = lade_flow_chain(many, LADE_FLOW_STEPS_MAX);
    assert_int_equal(lade_flow_check(f->q, &spec, NULL), 0);
    lade_flow_step wide[] = {lade_flow_group(many, 400, NULL), lade_flow_group(many, 400, &good)};
    spec.root = lade_flow_chain(wide, 2);
    assert_refused(f, &spec, -LADE_ETOOBIG, "put a job between");
}

int main(int argc, char **argv)
{
    ts_rig_main(argc, argv);
    const struct CMUnitTest tests[] = {
        TS_TEST(bad_jobs_are_refused),
        TS_TEST(bad_shapes_are_refused),
        TS_TEST(cycles_are_refused),
        TS_TEST(after_is_refused_outside_of_a_graph),
        TS_TEST(depth_size_and_edges_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
