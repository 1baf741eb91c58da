/*
 * flow_workflow_test.c - workflows end to end: shapes, results, policies, operators; on each store
 *
 * Every handler's result is its payload with the results of its inputs behind it: "d(b(a()),c(a()))" tells at once what ran
 * after what, with which results, in which order. Numbers behind "chronos" are those of the comparison with chronos-go.
 */
#include "support/rig_test.h"

#include <pthread.h>

#define NS(ms) ((ms)*LADE_MILLISECOND)

static struct {
    _Atomic int runs, callbacks;
    _Atomic bool mended; /* "sick" succeeds */
    _Atomic bool hold;   /* "held" waits */
} seen;

/* payload(input,input,...) into the result; holes are "-". False when it cannot. */
static bool join_inputs(lade_job *job)
{
    static const char *const none = "-";
    char text[16384];
    size_t inputs = 0;
    lade_bytes p = lade_job_payload(job);
    int n = snprintf(text, sizeof(text), "%.*s(", (int)p.size, (const char *)p.data);
    if (lade_job_n_inputs(job, &inputs, NULL) < 0)
        return false;
    for (size_t i = 0; i < inputs; i++) {
        lade_flow_input in;
        int rc = lade_job_input(job, i, &in, NULL);
        if (rc < 0)
            return false;
        const char *result = rc == 0 ? in.result.data : none;
        n += snprintf(text + n, sizeof(text) - (size_t)n, "%s%.*s", i ? "," : "",
                      rc == 0 ? (int)in.result.size : 1, result);
        if (n >= (int)sizeof(text) - 2)
            return false;
    }
    n += snprintf(text + n, sizeof(text) - (size_t)n, ")");
    return lade_job_result(job, (lade_bytes){text, (size_t)n}) == 0;
}

static lade_outcome run_join(lade_job *job, void *ctx)
{
    (void)ctx;
    seen.runs++;
    return join_inputs(job) ? LADE_OK : LADE_RETRY;
}

static lade_outcome run_callback(lade_job *job, void *ctx)
{
    seen.callbacks++;
    return run_join(job, ctx);
}

static lade_outcome run_sick(lade_job *job, void *ctx)
{
    return seen.mended ? run_join(job, ctx) : LADE_DEAD;
}

/* chronos 46: the input is there in every attempt. */
static lade_outcome run_flaky(lade_job *job, void *ctx)
{
    if (lade_job_attempt(job) > 1)
        return run_join(job, ctx);
    lade_job_retry_in(job, NS(10));
    lade_flow_input in;
    return lade_job_input(job, 0, &in, NULL) == 0 ? LADE_RETRY : LADE_DEAD;
}

static lade_outcome run_silent(lade_job *job, void *ctx)
{
    (void)job;
    (void)ctx;
    return LADE_OK;
}

static lade_outcome run_held(lade_job *job, void *ctx)
{
    while (seen.hold && !lade_job_cancelled(job))
        ts_nap_ms(1);
    return lade_job_cancelled(job) ? LADE_RETRY : run_join(job, ctx);
}

/* chronos 46: over the limit, to the dead without another try. */
static lade_outcome run_big(lade_job *job, void *ctx)
{
    (void)ctx;
    static char big[LADE_RESULT_MAX + 1];
    return lade_job_result(job, (lade_bytes){big, sizeof(big)}) == -LADE_ETOOBIG ? LADE_DEAD
                                                                                 : LADE_OK;
}

static void start(struct ts_fix *f, int concurrency)
{
    static const lade_worker_queue queues[] = {{"default", 1}, {"other", 1}};

    static const struct {
        const char *kind;
        lade_handler fn;
    } routes[] = {{"join", run_join},   {"cb", run_callback},   {"sick", run_sick},
                  {"flaky", run_flaky}, {"silent", run_silent}, {"held", run_held},
                  {"big", run_big}};

    seen.runs = seen.callbacks = 0;
    seen.mended = seen.hold = false;
    lade_worker_config config = {.concurrency = concurrency, .queues = queues, .n_queues = 2};
    ts_local_open(&f->local, &f->r, f->q, &config);
    for (size_t i = 0; i < LB_ARRAY_LEN(routes); i++)
        assert_int_equal(lade_worker_handle(f->local.w, routes[i].kind, routes[i].fn, NULL), 0);
    ts_local_run(&f->local);
}

static lade_job_spec job(const char *kind, const char *payload)
{
    return (lade_job_spec){.kind = kind, .payload = {payload, strlen(payload)}};
}

static lade_id enqueue(struct ts_fix *f, lade_flow_spec spec)
{
    lade_id id;
    lade_err err = {0};
    int rc = lade_flow_enqueue(f->q, &spec, &id, &err);
    if (rc < 0)
        print_message("%s\n", err.text);
    assert_int_equal(rc, 0);
    return id;
}

/* "running" or what it is, and a letter for each step. */
static void show(struct ts_fix *f, lade_id id, char *out, size_t size)
{
    lade_flow_view *v = NULL;
    assert_int_equal(lade_flow_get(f->q, id.text, &v, NULL), 0);
    int n = snprintf(out, size, "%s:", lade_flow_state_name(v->state));
    for (size_t i = 0; i < v->n_nodes && n < (int)size - 2; i++)
        out[n++] = "wqcdxs"[v->nodes[i].state];
    out[n] = 0;
    lade_flow_view_free(v);
}

static void assert_becomes(struct ts_fix *f, lade_id id, const char *wanted)
{
    char now[256] = "";
    int64_t deadline = lb_deadline_in(TS_SOON);
    do {
        show(f, id, now, sizeof(now));
        if (strcmp(now, wanted) == 0)
            return;
        ts_nap_ms(2);
    } while (lb_clock_mono() < deadline);
    assert_string_equal(now, wanted);
}

static lade_id step_id(lade_id flow, unsigned step)
{
    lade_id id;
    (void)snprintf(id.text, sizeof(id.text), "%.56s~%u", flow.text, step);
    return id;
}

static void assert_result(struct ts_fix *f, lade_id flow, unsigned step, const char *wanted)
{
    lade_job_view *v = NULL;
    char text[16384];
    assert_int_equal(lade_job_get(f->q, NULL, step_id(flow, step).text, &v, NULL), 0);
    (void)snprintf(text, sizeof(text), "%.*s", (int)v->result.size, (const char *)v->result.data);
    lade_job_view_free(v);
    assert_string_equal(text, wanted);
}

/* shapes ----------------------------------------------------------------------------------------------------------- */

/* chronos 40 and 46: two queues, the result of each link in the next. */
static void chain_hands_each_result_to_the_next(void **state)
{
    struct ts_fix *f = *state;
    lade_job_spec a = job("join", "a"), b = job("join", "b"), c = job("join", "c");
    b.queue = "other";
    lade_flow_step steps[] = {lade_flow_job(&a), lade_flow_job(&b), lade_flow_job(&c)};
    start(f, 4);
    lade_id id = enqueue(f, (lade_flow_spec){.root = lade_flow_chain(steps, 3)});
    assert_becomes(f, id, "completed:ccc");
    assert_result(f, id, 2, "c(b(a()))");
    assert_int_equal(seen.runs, 3);
}

/* chronos 47: 500 members, 64 slots, the callback once, all results in order. */
static void group_of_500_calls_back_once(void **state)
{
    struct ts_fix *f = *state;
    static lade_job_spec jobs[500];
    static lade_flow_step members[500];
    static char names[500][12], wanted[8192], what[501];
    lade_job_spec cb = job("cb", "cb");
    int n = snprintf(wanted, sizeof(wanted), "cb(");
    for (int i = 0; i < 500; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "%d", i);
        jobs[i] = job("join", names[i]);
        jobs[i].queue = i % 2 ? "other" : NULL;
        members[i] = lade_flow_job(&jobs[i]);
        n += snprintf(wanted + n, sizeof(wanted) - (size_t)n, "%s%d()", i ? "," : "", i);
        what[i] = 'c';
    }
    (void)snprintf(wanted + n, sizeof(wanted) - (size_t)n, ")");
    start(f, 64);
    lade_id id = enqueue(f, (lade_flow_spec){.root = lade_flow_group(members, 500, &cb)});
    char full[640];
    (void)snprintf(full, sizeof(full), "completed:%sc", what);
    int64_t deadline = lb_deadline_in(TS_SOON);
    while (seen.callbacks == 0 && lb_clock_mono() < deadline)
        ts_nap_ms(2);
    char now[640];
    do {
        show(f, id, now, sizeof(now));
        ts_nap_ms(1);
    } while (strcmp(now, full) != 0 && lb_clock_mono() < deadline);
    assert_string_equal(now, full);
    assert_result(f, id, 500, wanted);
    assert_int_equal(seen.callbacks, 1);
    assert_int_equal(seen.runs, 501);
}

/* chronos 53 and 55, and deeper: groups in chains in groups. */
static void shapes_nest_to_any_depth(void **state)
{
    struct ts_fix *f = *state;
    lade_job_spec a = job("join", "a"), b = job("join", "b"), c = job("join", "c"),
                  d = job("join", "d"), e = job("join", "e"), g = job("join", "g"),
                  h = job("join", "h"), i = job("join", "i");
    lade_flow_step inner[] = {lade_flow_job(&c), lade_flow_job(&d)};
    lade_flow_step chain[] = {lade_flow_job(&b), lade_flow_group(inner, 2, &e)};
    lade_flow_step outer[] = {lade_flow_chain(chain, 2), lade_flow_job(&g)};
    lade_flow_step top[] = {lade_flow_job(&a), lade_flow_group(outer, 2, &h), lade_flow_job(&i)};
    start(f, 4);
    lade_id id = enqueue(f, (lade_flow_spec){.root = lade_flow_chain(top, 3), .name = "nested"});
    assert_becomes(f, id, "completed:cccccccc");
    assert_result(f, id, 7, "i(h(e(c(b(a())),d(b(a()))),g(a())))");
}

static void group_without_callback_hands_on_to_the_next_step(void **state)
{
    struct ts_fix *f = *state;
    lade_job_spec a = job("join", "a"), b = job("join", "b"), c = job("join", "c");
    lade_flow_step members[] = {lade_flow_job(&a), lade_flow_job(&b)};
    lade_flow_step top[] = {lade_flow_group(members, 2, NULL), lade_flow_job(&c)};
    start(f, 4);
    lade_id id = enqueue(f, (lade_flow_spec){.root = lade_flow_chain(top, 2)});
    assert_becomes(f, id, "completed:ccc");
    assert_result(f, id, 2, "c(a(),b())");
}

static void graph_runs_each_step_after_those_it_names(void **state)
{
    struct ts_fix *f = *state;
    static const size_t on_2[] = {2}, on_0_2[] = {2, 0};
    lade_job_spec a = job("join", "a"), b = job("join", "b"), c = job("join", "c");
    lade_flow_step steps[] = {lade_flow_job(&a), lade_flow_job(&b), lade_flow_job(&c)};
    steps[0].after = on_2;
    steps[0].n_after = 1;
    steps[1].after = on_0_2;
    steps[1].n_after = 2;
    start(f, 4);
    lade_id id = enqueue(f, (lade_flow_spec){.root = lade_flow_graph(steps, 3)});
    assert_becomes(f, id, "completed:ccc");
    assert_result(f, id, 2, "b(c(),a(c()))"); /* c, a, b in the order they can run */
}

/* A delay counts from the end of the step before (chronos 42); the first may have a time. (chronos 52) */
static void delays_hold_each_step_back(void **state)
{
    struct ts_fix *f = *state;
    lade_job_spec a = job("join", "a"), b = job("join", "b");
    a.in = NS(50);
    b.in = NS(80);
    lade_flow_step steps[] = {lade_flow_job(&a), lade_flow_job(&b)};
    start(f, 4);
    int64_t began = lb_clock_mono();
    lade_id id = enqueue(f, (lade_flow_spec){.root = lade_flow_chain(steps, 2)});
    assert_becomes(f, id, "completed:cc");
    assert_true(lb_clock_mono() - began >= NS(130));
}

/* results ---------------------------------------------------------------------------------------------------------- */

static void input_is_there_in_every_attempt(void **state)
{
    struct ts_fix *f = *state;
    lade_job_spec a = job("join", "a"), b = job("flaky", "b"), c = job("join", "c");
    lade_flow_step steps[] = {lade_flow_job(&a), lade_flow_job(&b), lade_flow_job(&c)};
    start(f, 4);
    lade_id id = enqueue(f, (lade_flow_spec){.root = lade_flow_chain(steps, 3)});
    assert_becomes(f, id, "completed:ccc");
    assert_result(f, id, 2, "c(b(a()))");
}

/* chronos 46: no result is a result of its own kind. (chronos 52) */
static void step_without_result_is_a_hole(void **state)
{
    struct ts_fix *f = *state;
    lade_job_spec a = job("silent", ""), b = job("join", "b"), cb = job("cb", "cb");
    lade_flow_step members[] = {lade_flow_job(&a), lade_flow_job(&b)};
    start(f, 4);
    lade_id id = enqueue(f, (lade_flow_spec){.root = lade_flow_group(members, 2, &cb)});
    assert_becomes(f, id, "completed:ccc");
    assert_result(f, id, 2, "cb(-,b())");
}

/* chronos 46 */
static void result_over_a_mebibyte_is_refused_and_may_end_the_step(void **state)
{
    struct ts_fix *f = *state;
    lade_job_spec a = job("big", "a"), b = job("join", "b");
    lade_flow_step steps[] = {lade_flow_job(&a), lade_flow_job(&b)};
    start(f, 4);
    lade_id id = enqueue(f, (lade_flow_spec){.root = lade_flow_chain(steps, 2)});
    assert_becomes(f, id, "failed:dw");
    lade_job_view *v = NULL;
    assert_int_equal(lade_job_get(f->q, NULL, step_id(id, 0).text, &v, NULL), 0);
    assert_int_equal(v->attempts, 1);
    lade_job_view_free(v);
}

static lade_outcome ask_outside(lade_job *job, void *ctx)
{
    size_t n = 7;
    lade_flow_input in;
    bool ok = !lade_job_flow(job) && lade_job_n_inputs(job, &n, NULL) == 0 && n == 0 &&
              lade_job_input(job, 0, &in, NULL) == LADE_NOT_FOUND;
    *(_Atomic bool *)ctx = ok;
    return LADE_OK;
}

static void job_of_no_flow_has_no_inputs(void **state)
{
    struct ts_fix *f = *state;
    static _Atomic bool ok;
    ok = false;
    ts_local_open(&f->local, &f->r, f->q, &(lade_worker_config){.drain = true});
    assert_int_equal(lade_worker_handle(f->local.w, "job", ask_outside, (void *)&ok), 0);
    assert_int_equal(lade_enqueue(f->q, &(lade_job_spec){.kind = "job"}, NULL, NULL), 0);
    ts_local_run(&f->local);
    assert_true(ts_local_wait(&f->local, TS_SOON));
    assert_true(ok);
}

/* what goes wrong -------------------------------------------------------------------------------------------------- */

/* chronos 41 and 54: the dead link is run again by hand, the rest follows, nothing is redone. */
static void dead_step_run_again_resumes_the_flow(void **state)
{
    struct ts_fix *f = *state;
    lade_job_spec a = job("join", "a"), b = job("sick", "b"), c = job("join", "c"),
                  d = job("cb", "d"), e = job("join", "e");
    lade_flow_step members[] = {lade_flow_job(&b), lade_flow_job(&c)};
    lade_flow_step top[] = {lade_flow_job(&a), lade_flow_group(members, 2, &d), lade_flow_job(&e)};
    start(f, 4);
    lade_id id = enqueue(f, (lade_flow_spec){.root = lade_flow_chain(top, 3)});
    assert_becomes(f, id, "failed:cdcww");
    assert_int_equal(seen.runs, 2);
    seen.mended = true;
    lade_id dead = step_id(id, 1);
    const char *again[] = {dead.text};
    assert_int_equal(lade_job_act(f->q, LADE_JOB_RETRY, NULL, again, 1, NULL, NULL), 0);
    assert_becomes(f, id, "completed:ccccc");
    assert_result(f, id, 4, "e(d(b(a()),c(a())))");
    assert_int_equal(seen.runs, 5);
    assert_int_equal(seen.callbacks, 1);
}

/* C-083: ignore, with a hole; the nearest policy counts. */
static void c083_dead_member_is_passed_over_when_asked(void **state)
{
    struct ts_fix *f = *state;
    lade_job_spec a = job("sick", "a"), b = job("join", "b"), cb = job("cb", "cb");
    lade_flow_step members[] = {lade_flow_job(&a), lade_flow_job(&b)};
    lade_flow_spec spec = {.root = lade_flow_group(members, 2, &cb)};
    spec.root.on_dead = LADE_FLOW_CONTINUE;
    start(f, 4);
    lade_id id = enqueue(f, spec);
    assert_becomes(f, id, "completed:scc");
    assert_result(f, id, 2, "cb(-,b())");
    members[0].on_dead = LADE_FLOW_WAIT;
    id = enqueue(f, spec);
    assert_becomes(f, id, "running:dcw");
}

/* C-083: the handler of the failure learns which step it was. */
static _Atomic bool knows_the_dead;

static lade_outcome run_alarm(lade_job *job, void *ctx)
{
    (void)ctx;
    size_t n = 0;
    lade_flow_input in = {0};
    const char *flow = lade_job_flow(job);
    int rc = lade_job_n_inputs(job, &n, NULL) == 0 ? lade_job_input(job, 0, &in, NULL) : -1;
    knows_the_dead = flow && n == 1 && rc == LADE_EMPTY && in.state == LADE_STEP_DEAD &&
                     strncmp(in.id, flow, strlen(flow)) == 0 &&
                     strcmp(in.id + strlen(flow), "~1") == 0;
    return LADE_OK;
}

static void c083_failure_runs_its_handler_with_the_id(void **state)
{
    struct ts_fix *f = *state;
    lade_job_spec a = job("join", "a"), b = job("sick", "b"), alarm = job("alarm", "");
    lade_flow_step steps[] = {lade_flow_job(&a), lade_flow_job(&b)};
    knows_the_dead = false;
    ts_local_open(&f->local, &f->r, f->q, NULL);
    assert_int_equal(lade_worker_handle(f->local.w, "join", run_join, NULL), 0);
    assert_int_equal(lade_worker_handle(f->local.w, "sick", run_sick, NULL), 0);
    assert_int_equal(lade_worker_handle(f->local.w, "alarm", run_alarm, NULL), 0);
    seen.mended = false;
    ts_local_run(&f->local);
    lade_id id =
        enqueue(f, (lade_flow_spec){.root = lade_flow_chain(steps, 2), .on_failure = &alarm});
    assert_becomes(f, id, "failed:cdc");
    assert_true(knows_the_dead);
}

/* C-090: 100 children, 2 slots; pending ones are cancelled, running ones told, counts exact. */
static void c090_siblings_are_cancelled_when_one_dies(void **state)
{
    struct ts_fix *f = *state;
    static lade_job_spec jobs[100];
    static lade_flow_step members[100];
    lade_job_spec cb = job("cb", "cb");
    for (int i = 0; i < 100; i++) {
        jobs[i] = job(i == 0 ? "held" : i == 1 ? "sick" : "join", "m");
        members[i] = lade_flow_job(&jobs[i]);
    }
    lade_flow_spec spec = {.root = lade_flow_group(members, 100, &cb), .cancel_siblings = true};
    start(f, 2);
    seen.hold = true;
    lade_id id = enqueue(f, spec);
    int64_t deadline = lb_deadline_in(TS_SOON);
    while (ts_rig_count(f->q, LADE_STATE_CANCELLED) + ts_rig_count(f->q, LADE_STATE_DEAD) +
                   ts_rig_count(f->q, LADE_STATE_COMPLETED) <
               100 &&
           lb_clock_mono() < deadline)
        ts_nap_ms(5);
    assert_int_equal(ts_rig_count(f->q, LADE_STATE_DEAD), 1);
    /* what was in the slots' hands may have ended; the held one did not */
    assert_true(ts_rig_count(f->q, LADE_STATE_CANCELLED) >= 1);
    assert_int_equal(
        ts_rig_count(f->q, LADE_STATE_CANCELLED) + ts_rig_count(f->q, LADE_STATE_COMPLETED), 99);
    lade_flow_view *v = NULL;
    assert_int_equal(lade_flow_get(f->q, id.text, &v, NULL), 0);
    assert_int_equal(v->state, LADE_FLOW_FAILED);
    assert_int_equal(v->nodes[0].state, LADE_STEP_CANCELLED);
    assert_int_equal(v->nodes[100].state, LADE_STEP_WAITING);
    lade_flow_view_free(v);
    assert_int_equal(seen.callbacks, 0);
}

/* C-086: settles fail for a while and are repeated until done; one callback. (Lost replies: crash/redis.) */
static void c086_settles_that_fail_are_repeated_until_the_callback_came(void **state)
{
#ifdef LADE_FAULTS
    struct ts_fix *f = *state;
    static lade_job_spec jobs[100];
    static lade_flow_step members[100];
    lade_job_spec cb = job("cb", "cb");
    for (int i = 0; i < 100; i++) {
        jobs[i] = job("join", "m");
        members[i] = lade_flow_job(&jobs[i]);
    }
    lb_fault_arm("settle.before:1:fail+");
    start(f, 4);
    lade_id id = enqueue(f, (lade_flow_spec){.root = lade_flow_group(members, 100, &cb)});
    int64_t deadline = lb_deadline_in(TS_SOON);
    while (seen.runs == 0 && lb_clock_mono() < deadline)
        ts_nap_ms(2);
    ts_nap_ms(100); /* a few more tries */
    lb_fault_arm(NULL);
    while (seen.callbacks == 0 && lb_clock_mono() < deadline)
        ts_nap_ms(2);
    while (ts_rig_count(f->q, LADE_STATE_COMPLETED) < 101 && lb_clock_mono() < deadline)
        ts_nap_ms(2);
    assert_int_equal(seen.callbacks, 1);
    assert_int_equal(ts_rig_count(f->q, LADE_STATE_COMPLETED), 101);
    lade_flow_view *v = NULL;
    assert_int_equal(lade_flow_get(f->q, id.text, &v, NULL), 0);
    assert_int_equal(v->state, LADE_FLOW_COMPLETED);
    lade_flow_view_free(v);
#else
    (void)state;
#endif
}

/* operators -------------------------------------------------------------------------------------------------------- */

static void cancelled_flow_can_be_set_going_again(void **state)
{
    struct ts_fix *f = *state;
    lade_job_spec a = job("join", "a"), b = job("held", "b"), c = job("join", "c");
    lade_flow_step steps[] = {lade_flow_job(&a), lade_flow_job(&b), lade_flow_job(&c)};
    start(f, 4);
    seen.hold = true;
    lade_id id = enqueue(f, (lade_flow_spec){.root = lade_flow_chain(steps, 3)});
    assert_becomes(f, id, "running:cqw");
    assert_int_equal(lade_flow_act(f->q, LADE_FLOW_CANCEL, id.text, NULL), 0);
    assert_becomes(f, id, "cancelled:cxx");
    assert_true(ts_fix_wait_state(f, step_id(id, 1).text, LADE_STATE_CANCELLED));
    seen.hold = false;
    assert_int_equal(lade_flow_act(f->q, LADE_FLOW_RETRY, id.text, NULL), 0);
    assert_becomes(f, id, "completed:ccc");
    assert_result(f, id, 2, "c(b(a()))");
    assert_int_equal(lade_flow_act(f->q, LADE_FLOW_RETRY, id.text, NULL), LADE_WRONG_STATE);
    assert_int_equal(lade_flow_act(f->q, LADE_FLOW_REMOVE, id.text, NULL), 0);
    lade_flow_view *v = NULL;
    assert_int_equal(lade_flow_get(f->q, id.text, &v, NULL), LADE_NOT_FOUND);
}

/* C-085: the same flow once more, while it runs and after. */
static void c085_flow_of_a_known_id_is_a_duplicate(void **state)
{
    struct ts_fix *f = *state;
    lade_job_spec a = job("join", "a"), b = job("join", "b");
    lade_flow_step steps[] = {lade_flow_job(&a), lade_flow_job(&b)};
    lade_flow_spec spec = {.id = "night-1", .root = lade_flow_chain(steps, 2)};
    lade_id id = enqueue(f, spec);
    assert_string_equal(id.text, "night-1");
    assert_int_equal(lade_flow_enqueue(f->q, &spec, &id, NULL), LADE_DUPLICATE);
    start(f, 4);
    assert_becomes(f, id, "completed:cc");
    assert_int_equal(lade_flow_enqueue(f->q, &spec, &id, NULL), LADE_DUPLICATE);
    assert_int_equal(seen.runs, 2);
}

static void flows_are_listed_with_their_names(void **state)
{
    struct ts_fix *f = *state;
    lade_job_spec a = job("join", "a");
    lade_flow_step steps[] = {lade_flow_job(&a)};
    lade_cursor cursor = {0};
    lade_flow_view *v[2];
    size_t n = 9, total = 0;
    for (int i = 0; i < 3; i++)
        (void)enqueue(f, (lade_flow_spec){.root = lade_flow_chain(steps, 1), .name = "n\"1"});
    while (!cursor.done) {
        int rc = lade_flow_list(f->q, &cursor, 2, v, &n, NULL);
        assert_true(rc == 0 || (rc == LADE_EMPTY && n == 0));
        for (size_t i = 0; i < n; i++) {
            assert_string_equal(v[i]->name, "n\"1");
            assert_int_equal(v[i]->n_steps, 1);
            assert_true(v[i]->created_at > 0);
            lade_flow_view_free(v[i]);
        }
        total += n;
    }
    assert_int_equal(total, 3);
    assert_int_equal(lade_flow_list(f->q, &cursor, 0, v, &n, NULL), -LADE_EINVAL);
}

int main(int argc, char **argv)
{
    ts_rig_main(argc, argv);
    const struct CMUnitTest tests[] = {
        TS_TEST(chain_hands_each_result_to_the_next),
        TS_TEST(group_of_500_calls_back_once),
        TS_TEST(shapes_nest_to_any_depth),
        TS_TEST(group_without_callback_hands_on_to_the_next_step),
        TS_TEST(graph_runs_each_step_after_those_it_names),
        TS_TEST(delays_hold_each_step_back),
        TS_TEST(input_is_there_in_every_attempt),
        TS_TEST(step_without_result_is_a_hole),
        TS_TEST(result_over_a_mebibyte_is_refused_and_may_end_the_step),
        TS_TEST(job_of_no_flow_has_no_inputs),
        TS_TEST(dead_step_run_again_resumes_the_flow),
        TS_TEST(c083_dead_member_is_passed_over_when_asked),
        TS_TEST(c083_failure_runs_its_handler_with_the_id),
        TS_TEST(c090_siblings_are_cancelled_when_one_dies),
        TS_TEST(c086_settles_that_fail_are_repeated_until_the_callback_came),
        TS_TEST(cancelled_flow_can_be_set_going_again),
        TS_TEST(c085_flow_of_a_known_id_is_a_duplicate),
        TS_TEST(flows_are_listed_with_their_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
