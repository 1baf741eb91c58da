/* loss_flow_test.c - as loss_test.c: steps of flows whose replies are lost after the server did the work */
#include "store/redis/store_rig.h"
#include "support/proxy.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "queue/flow_store.h"

#define ROUNDS 20U

static int drop_replies(const char *script, int times)
{
    return ts_proxy_rule(
        rig.proxy,
        &(struct ts_proxy_rule){.match = script, .act = TS_PROXY_DROP_REPLY, .times = times});
}

/* A group of two and its callback, all in queue q. */
static int put_group(struct lq_store *s, const char *id)
{
    static const uint32_t members[] = {0, 1}, callback[] = {2};
    static const char body[] = "\x01"
                               "4b";
    struct lq_flow_node node[3];
    for (uint32_t i = 0; i < 3; i++)
        node[i] = (struct lq_flow_node){.queue = "q",
                                        .kind = lb_slice_str("k"),
                                        .body = lb_slice_str(body),
                                        .level = LQ_LEVEL_DEFAULT,
                                        .policy = LADE_FLOW_FAIL,
                                        .next = callback,
                                        .n_next = i < 2};
    node[2].dep = members;
    node[2].n_deps = 2;
    struct lq_flow flow = {.id = lb_slice_str(id), .node = node, .n = 3, .n_steps = 3};
    WANT(0, lq_flow_put(s, &flow, &rig.err));
    return flow.outcome;
}

/* C-086: a member's end whose answer is lost is repeated; the callback comes once. */
static void flow_whose_replies_are_lost_moves_once(void **state)
{
    (void)state;
    struct lq_store *s = srig_open_through_proxy();
    srig_join(s, "w");
    for (unsigned round = 0; round < ROUNDS; round++) {
        char id[16], callback[24];
        (void)snprintf(id, sizeof(id), "f%u", round);
        (void)snprintf(callback, sizeof(callback), "f%u~2", round);
        int rule = drop_replies("fold_put.lua", 1);
        assert_int_equal(put_group(s, id), 0);
        assert_int_equal(ts_proxy_hits(rig.proxy, rule), 1);
        assert_int_equal(put_group(s, id), LADE_DUPLICATE);
        ts_proxy_clear(rig.proxy);
        assert_int_equal(srig_take(s, "w", 2), 2);
        rule = drop_replies("flow_trip.lua", 1);
        srig_settle_got(s, LQ_TO_COMPLETED, 0);
        assert_int_equal(ts_proxy_hits(rig.proxy, rule), 1);
        ts_proxy_clear(rig.proxy);
        assert_int_equal(srig_take(s, "w", 5), 1);
        assert_string_equal((const char *)rig.got.job[0].id.p, callback);
        srig_settle_got(s, LQ_TO_COMPLETED, 0);
    }
    assert_int_equal(srig_info(s).total_completed, 3 * ROUNDS);
}

/* A chain of three, all in queue q. */
static void put_chain(struct lq_store *s, const char *id)
{
    static const uint32_t number[] = {0, 1, 2};
    static const char body[] = "\x01"
                               "4b";
    struct lq_flow_node node[3];
    for (uint32_t i = 0; i < 3; i++)
        node[i] = (struct lq_flow_node){.queue = "q",
                                        .kind = lb_slice_str("k"),
                                        .body = lb_slice_str(body),
                                        .level = LQ_LEVEL_DEFAULT,
                                        .policy = LADE_FLOW_FAIL,
                                        .dep = number + i - (i > 0),
                                        .n_deps = i > 0,
                                        .next = number + (i < 2 ? i + 1 : 0),
                                        .n_next = i < 2};
    struct lq_flow flow = {.id = lb_slice_str(id), .node = node, .n = 3, .n_steps = 3};
    WANT(0, lq_flow_put(s, &flow, &rig.err));
}

static void steps_that_went_on_go_on_though_the_reply_was_lost(void **state)
{
    (void)state;
    struct lq_store *s = srig_open_through_proxy();
    srig_join(s, "w");
    WANT(0, s->ops->pause(s, "q", false, &rig.err));
    for (unsigned round = 0; round < ROUNDS; round++) {
        char id[3][24], flow[16];
        struct lq_settle it[3];
        (void)snprintf(flow, sizeof(flow), "f%u", round);
        put_chain(s, flow);
        assert_int_equal(srig_take(s, "w", 1), 1);
        for (unsigned i = 0; i < 3; i++) {
            (void)snprintf(id[i], sizeof(id[i]), "f%u~%u", round, i);
            it[i] = (struct lq_settle){.queue = "q",
                                       .id = lb_slice_str(id[i]),
                                       .fence = rig.got.job[0].fence,
                                       .to = LQ_TO_COMPLETED,
                                       .reason = LQ_REASON_NONE,
                                       .goes_on = true};
        }
        size_t n = 1 + round % 2; /* alone, and as a run */
        int rule = drop_replies("flow_trip.lua", 1);
        WANT(0, lq_settle_take(s, it, n, NULL, NULL, &rig.err));
        assert_int_equal(ts_proxy_hits(rig.proxy, rule), 1);
        ts_proxy_clear(rig.proxy);
        for (size_t i = 0; i < n; i++)
            assert_true(it[i].outcome == 0 && it[i].went_on);
        WANT(0, lq_settle_take(s, it + n, 3 - n, NULL, NULL, &rig.err));
        assert_true(it[2].outcome == 0 && !it[2].went_on);
    }
    assert_int_equal(srig_info(s).total_completed, 3 * ROUNDS);
    assert_int_equal(srig_info(s).total_enqueued, 3 * ROUNDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SRIG_TEST(flow_whose_replies_are_lost_moves_once),
        SRIG_TEST(steps_that_went_on_go_on_though_the_reply_was_lost),
    };
    return cmocka_run_group_tests(tests, srig_start, srig_stop);
}
