/* flow_hop_cases.c - contract: steps that the call which settled the one before has taken, and flows of ids made by chance */
#include "flow_kit.h"

#include "base/ident.h"

/* Settles a step, with its own id as result, and takes up to max in the same call; the first of these must be `next`. */
static struct lq_leased hop(const struct lq_leased *j, size_t max, const char *next)
{
    struct lq_settle it = ct_settling("q", j, LQ_TO_COMPLETED);
    struct lq_take take = ct_asking("w", "q", max);
    it.result = lb_slice_of(j->id);
    ct.got.n = 0;
    EXPECT(0, lq_settle_take(ct.s, &it, 1, &take, &ct.got, &ct.err));
    assert_int_equal(it.outcome, LADE_DONE);
    assert_true(ct.got.n > 0);
    struct lq_leased first = ct.got.job[0];
    first.id = lb_arena_copy(&ct.arena, first.id.p, first.id.n);
    assert_string_equal((const char *)first.id.p, next);
    return first;
}

static void step_taken_by_the_settle_before_it_has_a_lease_of_its_own(void **state)
{
    (void)state;
    ct_join("w", "q");
    fl_add("f", "q q<0 q<1");
    struct lq_leased a = fl_take("q", "f~0"), b = hop(&a, 5, "f~1");
    assert_int_equal(ct_state("q", "f~1"), LADE_STATE_ACTIVE);
    assert_true(b.fence > a.fence);
    assert_int_equal(fl_settle("q", &a, LQ_TO_COMPLETED), LADE_STALE);
    struct lq_leased late = b;
    late.fence = a.fence;
    assert_int_equal(fl_settle("q", &late, LQ_TO_COMPLETED), LADE_STALE);
    assert_string_equal(fl_show("f"), "running: cqw");
    struct lq_leased c = hop(&b, 5, "f~2");
    assert_int_equal(fl_settle("q", &b, LQ_TO_COMPLETED), LADE_STALE);
    assert_int_equal(fl_settle("q", &c, LQ_TO_COMPLETED), LADE_DONE);
    assert_string_equal(fl_show("f"), "completed: ccc");
    assert_string_equal(fl_inputs("f", 2), "1:f~1");
    assert_int_equal(ct_info("q").total_completed, 3);
    assert_int_equal(ct_info("q").total_enqueued, 3);
}

static void envelopes_of_all_steps_are_their_own(void **state)
{
    (void)state;
    ct_join("w", "q");
    for (int round = 0; round < 3; round++) {
        const char *id = ct_format("f%d", round);
        fl_add(id, "q q<0 q<1 q<2");
        struct lq_leased j = fl_take("q", ct_format("%s~0", id));
        for (int i = 1; i < 4; i++) {
            j = hop(&j, 3, ct_format("%s~%d", id, i));
            assert_int_equal(j.body.n, 4);
            assert_memory_equal(j.body.p, ct_format("\x01%db%d", LQ_LEVEL_DEFAULT, i), 4);
        }
        assert_int_equal(fl_settle("q", &j, LQ_TO_COMPLETED), LADE_DONE);
    }
}

static void flow_is_cancelled_while_its_next_step_is_held(void **state)
{
    (void)state;
    ct_join("w", "q");
    fl_add("f", "q q<0 q<1");
    struct lq_leased a = fl_take("q", "f~0"), b = hop(&a, 5, "f~1");
    assert_int_equal(fl_act(LADE_FLOW_CANCEL, "f"), LADE_DONE);
    assert_string_equal(fl_show("f"), "cancelled: cxx");
    assert_string_equal(ct_stops("w", "q", 8), "f~1");
    assert_int_equal(fl_settle("q", &b, LQ_TO_RETRYING), LADE_DONE);
    assert_int_equal(ct_count("q", LADE_STATE_CANCELLED), 1);
    assert_int_equal(ct_take("w", "q", 5), 0);
    assert_int_equal(fl_act(LADE_FLOW_RETRY, "f"), LADE_DONE);
    fl_end("q", "f~1", LQ_TO_COMPLETED);
    fl_end("q", "f~2", LQ_TO_COMPLETED);
    assert_string_equal(fl_show("f"), "completed: ccc");
}

static void step_held_by_a_dead_worker_is_taken_over(void **state)
{
    (void)state;
    ct_join("w", "q");
    ct_join("v", "q");
    fl_add("f", "q q<0 q<1");
    struct lq_leased a = fl_take("q", "f~0"), b = hop(&a, 5, "f~1");
    ct_die("w", "q");
    assert_int_equal(ct_reclaim("v", "q", 5), 1);
    struct lq_leased now = ct.got.job[0];
    now.id = lb_arena_copy(&ct.arena, now.id.p, now.id.n);
    assert_string_equal((const char *)now.id.p, "f~1");
    assert_int_equal(fl_settle("q", &b, LQ_TO_COMPLETED), LADE_STALE);
    assert_string_equal(fl_show("f"), "running: cqw");
    assert_int_equal(fl_settle("q", &now, LQ_TO_COMPLETED), LADE_DONE);
    assert_int_equal(ct_take("v", "q", 5), 1);
    assert_string_equal(ct_got(), "f~2");
    struct lq_leased last = ct.got.job[0];
    assert_int_equal(fl_settle("q", &last, LQ_TO_COMPLETED), LADE_DONE);
    assert_string_equal(fl_show("f"), "completed: ccc");
}

static void step_that_fails_after_others_completed_stops_its_flow(void **state)
{
    (void)state;
    ct_join("w", "q");
    fl_add("f", "q q<0 q<1 q<2");
    struct lq_leased a = fl_take("q", "f~0"), b = hop(&a, 5, "f~1");
    struct lq_leased c = hop(&b, 5, "f~2");
    assert_int_equal(fl_settle("q", &c, LQ_TO_DEAD), LADE_DONE);
    assert_string_equal(fl_show("f"), "failed: ccdw");
    assert_string_equal(fl_inputs("f", 2), "1:f~1");
    assert_int_equal(ct_act("q", LADE_JOB_RETRY, "f~2"), LADE_DONE);
    fl_end("q", "f~2", LQ_TO_COMPLETED);
    fl_end("q", "f~3", LQ_TO_COMPLETED);
    assert_string_equal(fl_show("f"), "completed: cccc");
}

static void members_settled_one_by_one_and_together_are_followed_once(void **state)
{
    (void)state;
    ct_join("w", "q");
    fl_add("f", "q q q q q<0,1,2,3");
    assert_int_equal(ct_take("w", "q", 5), 4);
    struct lq_settle it[4];
    for (size_t i = 0; i < 4; i++) {
        it[i] = ct_settling("q", &ct.got.job[i], LQ_TO_COMPLETED);
        it[i].id = lb_slice_of(lb_arena_copy(&ct.arena, it[i].id.p, it[i].id.n));
        it[i].result = it[i].id;
    }
    assert_int_equal(ct_settle_one(it[2]), LADE_DONE);
    assert_string_equal(fl_show("f"), "running: qqcqw");
    struct lq_take take = ct_asking("w", "q", 5);
    struct lq_settle some[] = {it[0], it[1], it[3], it[2]};
    ct.got.n = 0;
    EXPECT(0, lq_settle_take(ct.s, some, 4, &take, &ct.got, &ct.err));
    assert_int_equal(some[0].outcome, LADE_DONE);
    assert_int_equal(some[2].outcome, LADE_DONE);
    assert_int_equal(some[3].outcome, LADE_STALE);
    assert_string_equal(ct_got(), "f~4");
    assert_string_equal(fl_inputs("f", 4), "0:f~0 1:f~1 2:f~2 3:f~3");
    struct lq_leased last = ct.got.job[0];
    assert_int_equal(fl_settle("q", &last, LQ_TO_COMPLETED), LADE_DONE);
    assert_string_equal(fl_show("f"), "completed: ccccc");
}

static void completed_steps_are_kept_up_to_their_number(void **state)
{
    (void)state;
    ct.config.keep_completed.count = 2;
    ct_reopen();
    ct_join("w", "q");
    fl_add("f", "q q<0 q<1 q<2");
    struct lq_leased j = fl_take("q", "f~0");
    for (int i = 1; i < 4; i++)
        j = hop(&j, 3, ct_format("f~%d", i));
    assert_string_equal(ct_list("q", LADE_STATE_COMPLETED, 10), "f~1 f~2");
    assert_int_equal(fl_settle("q", &j, LQ_TO_COMPLETED), LADE_DONE);
    assert_string_equal(ct_list("q", LADE_STATE_COMPLETED, 10), "f~2 f~3");
    assert_int_equal(ct_count("q", LADE_STATE_COMPLETED), 2);
    assert_string_equal(fl_show("f"), "completed: cccc");
    assert_string_equal(fl_inputs("f", 1), "0:f~0");
}

static void no_completed_step_is_kept_when_none_shall_be(void **state)
{
    (void)state;
    ct.config.keep_completed.count = 0;
    ct_reopen();
    ct_join("w", "q");
    fl_add("f", "q q<0 q<1");
    struct lq_leased j = fl_take("q", "f~0");
    j = hop(&j, 3, "f~1");
    j = hop(&j, 3, "f~2");
    assert_int_equal(ct_count("q", LADE_STATE_COMPLETED), 0);
    assert_string_equal(fl_show("f"), "running: ccq");
    assert_int_equal(fl_settle("q", &j, LQ_TO_COMPLETED), LADE_DONE);
    assert_int_equal(ct_info("q").total_completed, 3);
}

/* Who waited for more while it held steps may have been rung for the next of them, which then stays behind. */
static void settle_and_take_of_steps_passes_on_a_ring(void **state)
{
    (void)state;
    ct_join("w", "q");
    ct_join("v", "q");
    fl_add("before", "q");
    fl_end("q", "before~0", LQ_TO_COMPLETED);
    for (int round = 0; round < 12; round++) { /* either of the two may be rung first */
        struct lq_settle it[2];
        fl_add(ct_format("f%d", round), "q q<0");
        fl_add(ct_format("g%d", round), "q q<0");
        assert_int_equal(ct_take("w", "q", 2), 2);
        for (size_t i = 0; i < 2; i++) {
            it[i] = ct_settling("q", &ct.got.job[i], LQ_TO_COMPLETED);
            it[i].id = lb_slice_of(lb_arena_copy(&ct.arena, it[i].id.p, it[i].id.n));
        }
        assert_int_equal(ct_look_idle("w", "q") + ct_look_idle("v", "q"), 0);
        struct lq_take take = ct_asking("w", "q", 1);
        ct.got.n = 0;
        EXPECT(0, lq_settle_take(ct.s, it, 2, &take, &ct.got, &ct.err));
        assert_int_equal(ct.got.n, 1);
        struct lq_leased held = ct.got.job[0];
        held.id = lb_arena_copy(&ct.arena, held.id.p, held.id.n);
        EXPECT(0, ct.s->ops->wait(ct.s, "v", ct_lanes("q"), lb_deadline_in(20 * LADE_SECOND),
                                  &ct.err));
        assert_int_equal(ct_take("v", "q", 9), 1);
        struct lq_leased other = ct.got.job[0];
        assert_int_equal(fl_settle("q", &other, LQ_TO_COMPLETED), LADE_DONE);
        assert_int_equal(fl_settle("q", &held, LQ_TO_COMPLETED), LADE_DONE);
    }
}

/* C-085; of a queue that is there already, so that a store may keep the flows in a form that is shorter. */
static void known_id_is_a_duplicate_in_whatever_form_its_flow_is_kept(void **state)
{
    (void)state;
    static const char *const again[] = {"q q<0", "q q q", "q p<0"};
    char fresh[LB_ULID_LEN + 1];
    ct_join("w", "q");
    fl_add("before", "q q<0");
    fl_add("f", "q q<0");
    for (size_t i = 0; i < LB_ARRAY_LEN(again); i++) {
        lb_ulid(fresh, ct_now() * LADE_MILLISECOND + (int64_t)i);
        struct lq_flow f = fl_draw(fresh, "q q<0");
        f.fresh = true;
        assert_int_equal(fl_put(f), LADE_DONE);
        assert_int_equal(fl_put(fl_draw(fresh, again[i])), LADE_DUPLICATE);
        assert_int_equal(fl_put(fl_draw("f", again[i])), LADE_DUPLICATE);
        ct_step(2);
    }
    EXPECT(0, lq_events_set(ct.s, "q", 100, &ct.err));
    assert_int_equal(fl_put(fl_draw("f", "q q<0")), LADE_DUPLICATE);
    assert_int_equal(ct_info("q").total_enqueued, 2 + LB_ARRAY_LEN(again));
    assert_int_equal(ct_take("w", "q", 9), 2 + LB_ARRAY_LEN(again));
}

/* One of a fresh id, which may wait in an inbox, and behind it one that takes another way. */
static void groups_of_fresh_and_of_given_ids_are_all_counted(void **state)
{
    (void)state;
    char fresh[LB_ULID_LEN + 1];
    ct_join("w", "q");
    fl_add("before", "q");
    fl_add("f", "q q q<0,1");
    for (int i = 0; i < 3; i++) {
        lb_ulid(fresh, ct_now() * LADE_MILLISECOND + i);
        struct lq_flow g = fl_draw(fresh, "q q q<0,1");
        g.fresh = true;
        assert_int_equal(fl_put(g), LADE_DONE);
        fl_add(ct_format("f%d", i), "q q q<0,1");
        assert_int_equal(ct_count("q", LADE_STATE_READY), 1 + 2 + 4 * (i + 1));
        ct_step(2);
    }
    assert_int_equal(ct_info("q").total_enqueued, 15);
    assert_int_equal(ct_take("w", "q", 20), 15);
}

/* Groups that wait in an inbox, if the store has one, are as many jobs as their first steps. */
static void purge_of_fresh_groups_says_that_more_are_left(void **state)
{
    (void)state;
    char fresh[LB_ULID_LEN + 1];
    size_t n = 0;
    ct_join("w", "q");
    fl_add("before", "q");
    fl_end("q", "before~0", LQ_TO_COMPLETED);
    fl_add("f", "q q q<0,1");
    assert_int_equal(ct_take("w", "q", 9), 2);
    lb_ulid(fresh, ct_now() * LADE_MILLISECOND);
    struct lq_flow g = fl_draw(fresh, "q q q q q q<0,1,2,3,4");
    g.fresh = true;
    assert_int_equal(fl_put(g), LADE_DONE);
    for (size_t left = 5; left > 0; left -= n) {
        int rc = ct.s->ops->purge(ct.s, "q", LADE_STATE_READY, 2, &n, &ct.err);
        assert_in_range(n, 1, 2);
        assert_int_equal(rc, left > n ? LADE_MORE : LADE_DONE);
    }
}

/* A store need not look for such ids, and may put these flows by a shorter way. */
static void flows_of_fresh_ids_are_there_at_once(void **state)
{
    (void)state;
    char id[4][LB_ULID_LEN + 1];
    const char *all = "";
    ct_join("w", "q");
    for (int i = 0; i < 4; i++) {
        lb_ulid(id[i], ct_now() * LADE_MILLISECOND + i);
        struct lq_flow f = fl_draw(id[i], i % 2 ? "q q q<0,1" : "q q<0");
        f.fresh = true;
        assert_int_equal(fl_put(f), LADE_DONE);
        all = ct_format("%s%s%s", id[i], *all ? " " : "", all);
        ct_step(2);
    }
    assert_int_equal(ct_count("q", LADE_STATE_READY), 6);
    assert_int_equal(ct_state("q", ct_format("%s~1", id[3])), LADE_STATE_READY);
    assert_string_equal(
        ct_list("q", LADE_STATE_READY, 2),
        ct_format("%s~0 %s~0 %s~1 %s~0 %s~0 %s~1", id[0], id[1], id[1], id[2], id[3], id[3]));
    assert_string_equal(fl_show(id[3]), "running: qqw");
    assert_string_equal(fl_list(10), all);
    assert_int_equal(fl_act(LADE_FLOW_CANCEL, id[2]), LADE_DONE);
    assert_int_equal(ct_take("w", "q", 9), 5);
    assert_int_equal(ct_info("q").total_enqueued, 6);
    struct lq_settle it[5];
    for (size_t i = 0; i < 5; i++)
        it[i] = ct_settling("q", &ct.got.job[i], LQ_TO_COMPLETED);
    EXPECT(0, lq_settle_take(ct.s, it, 5, NULL, NULL, &ct.err));
    assert_string_equal(fl_show(id[0]), "running: cq");
    assert_string_equal(fl_show(id[1]), "running: ccq");
    assert_string_equal(fl_show(id[2]), "cancelled: xx");
    assert_string_equal(fl_show(id[3]), "running: ccq");
}

static void queue_of_ended_flows_alone_can_be_forgotten(void **state)
{
    (void)state;
    ct.config.keep_completed.count = 1;
    ct_reopen();
    ct_join("w", "q p");
    fl_add("f", "q q<0");
    fl_end("q", "f~0", LQ_TO_COMPLETED);
    fl_end("q", "f~1", LQ_TO_COMPLETED);
    size_t n = 0;
    EXPECT(0, ct.s->ops->purge(ct.s, "q", LADE_STATE_COMPLETED, 10, &n, &ct.err));
    assert_int_equal(n, 1);
    EXPECT(0, ct.s->ops->forget(ct.s, "q", &ct.err));
    assert_string_equal(fl_show("f"), "completed: cc");
}

static const struct CMUnitTest tests[] = {
    CT_TEST(step_taken_by_the_settle_before_it_has_a_lease_of_its_own),
    CT_TEST(envelopes_of_all_steps_are_their_own),
    CT_TEST(flow_is_cancelled_while_its_next_step_is_held),
    CT_TEST(step_held_by_a_dead_worker_is_taken_over),
    CT_TEST(step_that_fails_after_others_completed_stops_its_flow),
    CT_TEST(members_settled_one_by_one_and_together_are_followed_once),
    CT_TEST(completed_steps_are_kept_up_to_their_number),
    CT_TEST(no_completed_step_is_kept_when_none_shall_be),
    CT_TEST(settle_and_take_of_steps_passes_on_a_ring),
    CT_TEST(known_id_is_a_duplicate_in_whatever_form_its_flow_is_kept),
    CT_TEST(groups_of_fresh_and_of_given_ids_are_all_counted),
    CT_TEST(purge_of_fresh_groups_says_that_more_are_left),
    CT_TEST(flows_of_fresh_ids_are_there_at_once),
    CT_TEST(queue_of_ended_flows_alone_can_be_forgotten),
};

CT_GROUP(ct_flow_hop_group, tests);
