/* go_on_cases.c - contract: steps that their worker had begun before the settle of the step before (lq_settle.goes_on) */
#include "flow_kit.h"
#include "queue/names.h"

/* Takes the step with what follows it; the ids of these, "" when the store hands out none. */
static const char *take_following(const char *id, struct lq_leased *out)
{
    struct lq_take take = ct_asking("w", "q", 1);
    const char *text = "";
    take.follow = true;
    ct.got.n = 0;
    EXPECT(0, lq_settle_take(ct.s, NULL, 0, &take, &ct.got, &ct.err));
    assert_int_equal(ct.got.n, 1);
    *out = ct.got.job[0];
    out->id = lb_arena_copy(&ct.arena, out->id.p, out->id.n);
    assert_string_equal((const char *)out->id.p, id);
    for (uint32_t i = 0; i < out->n_follow; i++) {
        const struct lq_follow *f = &out->follow[i];
        assert_int_equal(f->id.p[f->id.n], 0);
        assert_int_equal(f->body.p[f->body.n], 0);
        text = ct_format("%s%s%s=%.*s", text, i ? " " : "", (const char *)f->id.p,
                         (int)f->body.n - 2, (const char *)f->body.p + 2);
    }
    return text;
}

/* A worker and a queue that is there: on Redis flows of others are not folded. */
static void begin(void)
{
    ct_join("w", "q p");
    EXPECT(0, ct.s->ops->pause(ct.s, "q", false, &ct.err));
}

/* The settle of a step under the fence of this lease. */
static struct lq_settle step(const struct lq_leased *j, const char *id, bool goes_on)
{
    struct lq_settle it = ct_settling("q", j, LQ_TO_COMPLETED);
    it.id = it.result = lb_slice_str(id);
    it.goes_on = goes_on;
    return it;
}

/* One call; "+" for an item that went on, "." for one that was settled, "!" for a stale one. */
static const char *settle(struct lq_settle *it, size_t n)
{
    const char *text = "";
    EXPECT(0, lq_settle_take(ct.s, it, n, NULL, NULL, &ct.err));
    for (size_t i = 0; i < n; i++) {
        assert_true(it[i].outcome == LADE_DONE || !it[i].went_on);
        text = ct_format("%s%s", text,
                         it[i].outcome == LADE_STALE ? "!"
                         : it[i].went_on             ? "+"
                                                     : ".");
    }
    return text;
}

#define SETTLE(...)                           \
    settle((struct lq_settle[]){__VA_ARGS__}, \
           sizeof((struct lq_settle[]){__VA_ARGS__}) / sizeof(struct lq_settle))

static void take_hands_out_the_steps_that_follow_one_after_the_other(void **state)
{
    (void)state;
    struct lq_leased a;
    begin();
    fl_add("f", "q q<0 q<1 q<2");
    const char *follow = take_following("f~0", &a);
    assert_string_equal(follow, "f~1=b1 f~2=b2 f~3=b3");
    /* up to a delay, another queue, a fork, a join */
    static const char *const drawn[] = {"q q<0 q<1+1000 q<2", "q q<0 p<1 q<2", "q q<0 q<1 q<1",
                                        "q q<0 p q<1,2"};
    for (size_t i = 0; i < LB_ARRAY_LEN(drawn); i++) {
        const char *id = ct_format("g%zu", i);
        fl_add(id, drawn[i]);
        follow = take_following(ct_format("%s~0", id), &a);
        assert_true(*follow == 0 || strcmp(follow, ct_format("%s~1=b1", id)) == 0);
    }
    fl_add("h", "q q q<0,1");
    assert_string_equal(take_following("h~0", &a), "");
}

static void take_that_does_not_ask_is_given_no_steps_that_follow(void **state)
{
    (void)state;
    begin();
    fl_add("f", "q q<0");
    assert_int_equal(ct_take("w", "q", 1), 1);
    assert_int_equal(ct.got.job[0].n_follow, 0);
}

static void no_more_steps_follow_than_may(void **state)
{
    (void)state;
    const char *nodes = "q";
    struct lq_leased a;
    begin();
    for (int i = 0; i < 60; i++)
        nodes = ct_format("%s q<%d", nodes, i);
    fl_add("f", nodes);
    (void)take_following("f~0", &a);
    assert_int_equal(a.n_follow, LQ_FOLLOW_MAX);
}

/* A chain of four, of which the first is taken. */
static struct lq_leased chain(void)
{
    struct lq_leased a;
    begin();
    fl_add("f", "q q<0 q<1 q<2");
    (void)take_following("f~0", &a);
    assert_true(a.n_follow > 0);
    return a;
}

static void step_that_went_on_is_leased_to_the_same_worker_under_the_same_fence(void **state)
{
    (void)state;
    struct lq_leased a = chain();
    assert_string_equal(SETTLE(step(&a, "f~0", true)), "+");
    assert_string_equal(fl_show("f"), "running: cqww");
    const struct lq_row *row = ct_row("q", "f~1");
    assert_int_equal(row->state, LADE_STATE_ACTIVE);
    assert_int_equal(row->fence, a.fence);

    assert_int_equal(ct_take("w", "q", 5), 0);
    assert_int_equal(ct_info("q").total_enqueued, 2);
    assert_string_equal(SETTLE(step(&a, "f~1", false)), ".");
    assert_string_equal(fl_show("f"), "running: ccqw");
    assert_string_equal(fl_inputs("f", 1), "0:f~0");
    assert_string_equal(fl_inputs("f", 2), "1:f~1");
    assert_int_equal(ct_state("q", "f~2"), LADE_STATE_READY);
    assert_int_equal(ct_info("q").total_completed, 2);
}

static void steps_of_one_call_are_settled_in_their_order(void **state)
{
    (void)state;
    struct lq_leased a = chain();
    assert_string_equal(SETTLE(step(&a, "f~0", true), step(&a, "f~1", true), step(&a, "f~2", true)),
                        "+++");
    assert_string_equal(fl_show("f"), "running: cccq");
    assert_int_equal(ct_state("q", "f~3"), LADE_STATE_ACTIVE);
    assert_string_equal(SETTLE(step(&a, "f~3", true)), ".");
    assert_string_equal(fl_show("f"), "completed: cccc");
    for (uint32_t i = 1; i < 4; i++)
        assert_string_equal(fl_inputs("f", i), ct_format("%u:f~%u", i - 1, i - 1));
    assert_int_equal(ct_info("q").total_completed, 4);
    assert_int_equal(ct_info("q").total_enqueued, 4);
    assert_int_equal(ct_count("q", LADE_STATE_ACTIVE), 0);
    assert_int_equal(ct_count("q", LADE_STATE_COMPLETED), 4);
}

static void chains_of_one_call_do_not_mix(void **state)
{
    (void)state;
    struct lq_leased a, b;
    begin();
    fl_add("f", "q q<0 q<1");
    fl_add("g", "q q<0 q<1");
    (void)take_following("f~0", &a);
    (void)take_following("g~0", &b);
    assert_true(a.n_follow > 0);
    assert_string_equal(SETTLE(step(&a, "f~0", true), step(&b, "g~0", true), step(&a, "f~1", true),
                               step(&b, "g~1", false), step(&a, "f~2", false)),
                        "+++..");
    assert_string_equal(fl_show("f"), "completed: ccc");
    assert_string_equal(fl_show("g"), "running: ccq");
    assert_int_equal(ct_state("q", "g~2"), LADE_STATE_READY);
}

static void step_that_went_on_may_end_otherwise_in_the_same_call(void **state)
{
    (void)state;
    struct lq_leased a = chain();
    struct lq_settle retried = step(&a, "f~1", false);
    retried.to = LQ_TO_RETRYING;
    retried.result = (struct lb_slice){0};
    retried.delay_ms = CT_HOUR;
    retried.failed = true;
    assert_string_equal(SETTLE(step(&a, "f~0", true), retried), "+.");
    assert_string_equal(fl_show("f"), "running: cqww");
    assert_int_equal(ct_state("q", "f~1"), LADE_STATE_RETRYING);
    assert_int_equal(ct_act("q", LADE_JOB_RETRY, "f~1"), LADE_DONE);
    fl_end("q", "f~1", LQ_TO_COMPLETED);
    fl_end("q", "f~2", LQ_TO_COMPLETED);
    fl_end("q", "f~3", LQ_TO_COMPLETED);
    assert_string_equal(fl_show("f"), "completed: cccc");
}

static void step_that_went_on_can_be_handed_back(void **state)
{
    (void)state;
    struct lq_leased a = chain();
    struct lq_settle back = step(&a, "f~1", false);
    back.to = LQ_TO_READY;
    back.result = (struct lb_slice){0};
    assert_string_equal(SETTLE(step(&a, "f~0", true), back), "+.");
    assert_string_equal(SETTLE(step(&a, "f~1", false)), "!");
    fl_end("q", "f~1", LQ_TO_COMPLETED);
    assert_string_equal(fl_show("f"), "running: ccqw");
}

static void step_behind_one_that_died_does_not_go_on(void **state)
{
    (void)state;
    struct lq_leased a = chain();
    struct lq_settle dead = step(&a, "f~0", true);
    dead.to = LQ_TO_DEAD;
    dead.reason = LQ_REASON_UNRECOVERABLE;
    dead.result = (struct lb_slice){0};
    assert_string_equal(SETTLE(dead, step(&a, "f~1", false)), ".!");
    assert_string_equal(fl_show("f"), "failed: dwww");
}

static void step_of_a_cancelled_flow_does_not_go_on(void **state)
{
    (void)state;
    struct lq_leased a = chain();
    assert_int_equal(fl_act(LADE_FLOW_CANCEL, "f"), LADE_DONE);
    assert_string_equal(SETTLE(step(&a, "f~0", true), step(&a, "f~1", true)), ".!");
    assert_string_equal(fl_show("f"), "cancelled: cxxx");
    assert_int_equal(ct_take("w", "q", 5), 0);
}

static void nothing_goes_on_behind_a_lease_that_was_lost(void **state)
{
    (void)state;
    struct lq_leased a = chain();
    ct_join("v", "q");
    ct_die("w", "q");
    assert_int_equal(ct_reclaim("v", "q", 5), 1);
    assert_string_equal(SETTLE(step(&a, "f~0", true), step(&a, "f~1", false)), "!!");
    assert_string_equal(fl_show("f"), "running: qwww");
}

static void step_that_went_on_is_taken_over_when_its_worker_dies(void **state)
{
    (void)state;
    struct lq_leased a = chain();
    assert_string_equal(SETTLE(step(&a, "f~0", true)), "+");
    ct_join("v", "q");
    ct_die("w", "q");
    assert_int_equal(ct_reclaim("v", "q", 5), 1);
    assert_string_equal(ct_got(), "f~1");
    struct lq_leased b = ct.got.job[0];
    assert_true(b.fence > a.fence);
    assert_string_equal(SETTLE(step(&a, "f~1", true)), "!");
    assert_int_equal(fl_settle("q", &b, LQ_TO_COMPLETED), LADE_DONE);
    assert_string_equal(fl_show("f"), "running: ccqw");
}

static void pause_that_came_since_does_not_stop_what_goes_on(void **state)
{
    (void)state;
    struct lq_leased a = chain();
    EXPECT(0, ct.s->ops->pause(ct.s, "q", true, &ct.err));
    assert_string_equal(SETTLE(step(&a, "f~0", true), step(&a, "f~1", true)), "++");
    assert_string_equal(SETTLE(step(&a, "f~2", false)), ".");
    assert_string_equal(fl_show("f"), "running: cccq");
    assert_int_equal(ct_take("w", "q", 5), 0);
    EXPECT(0, ct.s->ops->pause(ct.s, "q", false, &ct.err));
    fl_end("q", "f~3", LQ_TO_COMPLETED);
    assert_string_equal(fl_show("f"), "completed: cccc");
}

static void operator_stops_a_step_that_went_on(void **state)
{
    (void)state;
    struct lq_leased a = chain();
    assert_string_equal(SETTLE(step(&a, "f~0", true)), "+");
    assert_int_equal(ct_act("q", LADE_JOB_CANCEL, "f~1"), LADE_DONE);
    assert_string_equal(ct_stops("w", "q", 8), "f~1");
    struct lq_settle it = step(&a, "f~1", true);
    it.to = LQ_TO_RETRYING;
    it.result = (struct lb_slice){0};
    assert_string_equal(SETTLE(it), ".");
    assert_int_equal(ct_state("q", "f~1"), LADE_STATE_CANCELLED);
}

static void completed_steps_that_went_on_are_kept_up_to_their_number(void **state)
{
    (void)state;
    ct.config.keep_completed.count = 2;
    ct_reopen();
    struct lq_leased a = chain();
    assert_string_equal(SETTLE(step(&a, "f~0", true), step(&a, "f~1", true), step(&a, "f~2", true),
                               step(&a, "f~3", false)),
                        "+++.");
    assert_string_equal(ct_list("q", LADE_STATE_COMPLETED, 10), "f~2 f~3");
    assert_int_equal(ct_info("q").total_completed, 4);
    assert_string_equal(fl_show("f"), "completed: cccc");
    assert_string_equal(fl_inputs("f", 3), "2:f~2");
}

static void no_completed_step_that_went_on_is_kept_when_none_shall_be(void **state)
{
    (void)state;
    ct.config.keep_completed.count = 0;
    ct_reopen();
    struct lq_leased a = chain();
    assert_string_equal(SETTLE(step(&a, "f~0", true), step(&a, "f~1", true)), "++");
    assert_int_equal(ct_count("q", LADE_STATE_COMPLETED), 0);
    assert_string_equal(SETTLE(step(&a, "f~2", true), step(&a, "f~3", true)), "+.");
    assert_string_equal(fl_show("f"), "absent");
    assert_int_equal(ct_info("q").total_completed, 4);
}

static void settles_that_go_on_take_others_in_the_same_call(void **state)
{
    (void)state;
    struct lq_leased a = chain();
    struct lq_settle it[] = {step(&a, "f~0", true), step(&a, "f~1", true)};
    struct lq_take take = ct_asking("w", "q", 5);
    take.follow = true;
    fl_add("g", "q q<0 q<1");
    ct_add("q", "a");
    ct.got.n = 0;
    EXPECT(0, lq_settle_take(ct.s, it, 2, &take, &ct.got, &ct.err));
    assert_true(it[0].went_on && it[1].went_on);
    assert_string_equal(ct_got(), "g~0 a");
    assert_int_equal(ct.got.job[0].n_follow, 2);
    struct lq_leased g = ct.got.job[0];
    g.id = lb_arena_copy(&ct.arena, g.id.p, g.id.n);
    struct lq_settle more[] = {step(&a, "f~2", false), step(&g, "g~0", true),
                               step(&g, "g~1", false)};
    ct.got.n = 0;
    EXPECT(0, lq_settle_take(ct.s, more, 3, &take, &ct.got, &ct.err));
    assert_true(!more[0].went_on && more[1].went_on && !more[2].went_on);
    assert_int_equal(ct.got.n, 2);
    assert_string_equal(fl_show("f"), "running: cccq");
    assert_string_equal(fl_show("g"), "running: ccq");
}

static void step_without_one_behind_it_does_not_go_on(void **state)
{
    (void)state;
    struct lq_leased a;
    begin();
    fl_add("f", "q p<0");
    (void)take_following("f~0", &a);
    assert_string_equal(SETTLE(step(&a, "f~0", true)), ".");
    assert_int_equal(ct_state("p", "f~1"), LADE_STATE_READY);
    fl_add("g", "q q<0+3600000");
    (void)take_following("g~0", &a);
    assert_string_equal(SETTLE(step(&a, "g~0", true)), ".");
    assert_int_equal(ct_state("q", "g~1"), LADE_STATE_SCHEDULED);
    ct_add("q", "a");
    a = ct_take_one("w", "q");
    assert_string_equal(SETTLE(step(&a, "a", true)), ".");
}

/* Chains taken together: stretches of steps of each, and of all side by side. */
static void many_chains_of_one_call_go_on(void **state)
{
    enum { CHAINS = 6, STEPS = 5 };

    (void)state;
    struct lq_leased a[CHAINS];
    struct lq_settle it[CHAINS * STEPS];
    size_t n = 0;
    begin();
    for (size_t i = 0; i < CHAINS; i++)
        fl_add(ct_format("f%zu", i), "q q<0 q<1 q<2 q<3 q<4 q<5");
    for (size_t i = 0; i < CHAINS; i++)
        (void)take_following(ct_format("f%zu~0", i), &a[i]);
    assert_true(a[0].n_follow > 0);
    for (int k = 0; k < 2; k++) { /* side by side */
        for (size_t i = 0; i < CHAINS; i++)
            it[n++] = step(&a[i], ct_format("f%zu~%d", i, k), true);
    }
    for (size_t i = 0; i < CHAINS; i++) { /* and one after the other */
        for (int k = 2; k < STEPS; k++)
            it[n++] = step(&a[i], ct_format("f%zu~%d", i, k), i != 2 || k + 1 < STEPS);
    }
    EXPECT(0, lq_settle_take(ct.s, it, n, NULL, NULL, &ct.err));
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(it[i].outcome, 0);
        assert_int_equal(it[i].went_on, it[i].goes_on);
    }
    for (size_t i = 0; i < CHAINS; i++) {
        assert_string_equal(fl_show(ct_format("f%zu", i)), "running: cccccqw");
        assert_int_equal(ct_state("q", ct_format("f%zu~5", i)),
                         i == 2 ? LADE_STATE_READY : LADE_STATE_ACTIVE);
        for (uint32_t k = 0; k < STEPS; k++) {
            const char *id = ct_format("f%zu~%u", i, k);
            assert_string_equal((const char *)ct_row("q", id)->result.p, id);
            assert_string_equal(fl_inputs(ct_format("f%zu", i), k + 1), ct_format("%u:%s", k, id));
        }
    }
    assert_int_equal(ct_count("q", LADE_STATE_COMPLETED), CHAINS * STEPS);
    assert_int_equal(ct_info("q").total_completed, CHAINS * STEPS);
    assert_int_equal(ct_info("q").total_enqueued, CHAINS * (STEPS + 1));
    assert_string_equal(SETTLE(step(&a[0], "f0~5", true), step(&a[0], "f0~6", true)), "+.");
    assert_string_equal(fl_show("f0"), "completed: ccccccc");
}

/* As wherever a step is put whose id is taken: the job that is there is its job. No explicit id has a '~'. */
static void step_whose_id_is_taken_does_not_go_on(void **state)
{
    (void)state;
    assert_false(lq_id_is_valid("f~2")); /* so no client can make such a job */
    if (strcmp(ct.ops->name, "redis") == 0)
        return; /* steps of a folded flow are no jobs of their own: it relies on just that */
    struct lq_leased a = chain();
    ct_add("q", "f~2");
    assert_string_equal(SETTLE(step(&a, "f~0", true), step(&a, "f~1", true), step(&a, "f~2", true),
                               step(&a, "f~3", false)),
                        "+.!!");
    assert_string_equal(fl_show("f"), "running: ccqw");
    assert_int_equal(ct_state("q", "f~2"), LADE_STATE_READY);
    fl_end("q", "f~2", LQ_TO_COMPLETED);
    assert_string_equal(fl_show("f"), "running: cccq");
}

static const struct CMUnitTest tests[] = {
    CT_TEST(take_hands_out_the_steps_that_follow_one_after_the_other),
    CT_TEST(take_that_does_not_ask_is_given_no_steps_that_follow),
    CT_TEST(no_more_steps_follow_than_may),
    CT_TEST(step_that_went_on_is_leased_to_the_same_worker_under_the_same_fence),
    CT_TEST(steps_of_one_call_are_settled_in_their_order),
    CT_TEST(chains_of_one_call_do_not_mix),
    CT_TEST(many_chains_of_one_call_go_on),
    CT_TEST(step_whose_id_is_taken_does_not_go_on),
    CT_TEST(step_that_went_on_may_end_otherwise_in_the_same_call),
    CT_TEST(step_that_went_on_can_be_handed_back),
    CT_TEST(step_behind_one_that_died_does_not_go_on),
    CT_TEST(step_of_a_cancelled_flow_does_not_go_on),
    CT_TEST(nothing_goes_on_behind_a_lease_that_was_lost),
    CT_TEST(step_that_went_on_is_taken_over_when_its_worker_dies),
    CT_TEST(pause_that_came_since_does_not_stop_what_goes_on),
    CT_TEST(operator_stops_a_step_that_went_on),
    CT_TEST(completed_steps_that_went_on_are_kept_up_to_their_number),
    CT_TEST(no_completed_step_that_went_on_is_kept_when_none_shall_be),
    CT_TEST(settles_that_go_on_take_others_in_the_same_call),
    CT_TEST(step_without_one_behind_it_does_not_go_on),
};

CT_GROUP(ct_go_on_group, tests);
