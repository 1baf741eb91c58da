/* trip_test.c - settle and take in one call (lua/trip.lua): the short way, what it leaves to the general ops, lost replies */
#include "store/redis/store_rig.h"
#include "support/proxy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "rt/seam.h"

#define ROUNDS 12U

static unsigned n_made; /* ids of single jobs */

/* One job as a caller of its own puts it: by the inbox, once the queue is there. */
static void put_single(struct lq_store *s, int level)
{
    char id[32], body[] = "\1?jobs";
    (void)snprintf(id, sizeof(id), "01HF7YAT00%016u", 100 * ++n_made);
    body[LQ_BODY_LEVEL_AT] = (char)('0' + level);
    struct lq_put put = srig_item(id);
    put.fresh = true;
    put.level = level;
    put.body = lb_slice(body, sizeof(body) - 1);
    WANT(0, lq_put(s, &put, 1, &rig.err));
}

static void put_singles(struct lq_store *s, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        put_single(s, LQ_LEVEL_DEFAULT);
}

/* A queue and a worker of it that holds n jobs which came singly. */
static void begin_with(struct lq_store *s, unsigned n)
{
    srig_put(s, "first", 1);
    srig_join(s, "w");
    assert_int_equal(srig_take(s, "w", 1), 1);
    srig_settle_got(s, LQ_TO_COMPLETED, 0);
    put_singles(s, n);
    assert_int_equal(srig_take(s, "w", 100), n);
}

/* Completes all of rig.got and takes, in one call; rc is wanted. Outcomes into `outcome`. How many were taken. */
static size_t trip(struct lq_store *s, int want_rc, size_t max, int *outcome)
{
    static struct lq_settle it[SRIG_BATCH];
    static struct lb_arena ids;
    size_t n = rig.got.n;
    lb_arena_init(&ids);
    for (size_t i = 0; i < n; i++) {
        const struct lq_leased *l = &rig.got.job[i];
        it[i] = (struct lq_settle){.queue = "q",
                                   .id = lb_slice_of(lb_arena_copy(&ids, l->id.p, l->id.n)),
                                   .fence = l->fence,
                                   .to = LQ_TO_COMPLETED,
                                   .reason = LQ_REASON_NONE};
    }
    lb_arena_fini(&rig.got.arena);
    rig.got = (struct lq_leased_vec){0};
    lb_arena_init(&rig.got.arena);
    struct lq_take take = srig_asking("w", max);
    WANT(want_rc, lq_settle_take(s, it, n, &take, &rig.got, &rig.err));
    for (size_t i = 0; i < n && outcome; i++)
        outcome[i] = it[i].outcome;
    lb_arena_fini(&ids);
    return rig.got.n;
}

/* Calls of a command since CONFIG RESETSTAT. */
static int calls_of(const char *command)
{
    char name[64];
    (void)snprintf(name, sizeof(name), "cmdstat_%s:calls=", command);
    const char *at = strstr(srig_ask("INFO commandstats"), name);
    return at ? (int)strtol(at + strlen(name), NULL, 10) : 0;
}

static void one_call_settles_and_takes_without_a_ready_list(void **state)
{
    (void)state;
    struct lq_store *s = srig_open();
    begin_with(s, 5);
    for (unsigned round = 0; round < ROUNDS; round++) {
        int outcome[5] = {-1, -1, -1, -1, -1};
        put_singles(s, 5);
        assert_string_equal(srig_ask("CONFIG RESETSTAT"), "+OK\r\n");
        assert_int_equal(trip(s, 0, 9, outcome), 5);
        assert_int_equal(calls_of("fcall"), 1);
        assert_int_equal(calls_of("rpush"), 1); /* of the completed */
        for (size_t i = 0; i < 5; i++)
            assert_int_equal(outcome[i], 0);
        for (size_t i = 1; i < 5; i++)
            assert_true(strcmp((char *)rig.got.job[i - 1].id.p, (char *)rig.got.job[i].id.p) < 0);
        assert_memory_equal(rig.got.job[4].body.p,
                            "\1"
                            "4jobs",
                            6);
        assert_int_equal(srig_count(s, LADE_STATE_ACTIVE), 5);
        assert_int_equal(srig_count(s, LADE_STATE_READY), 0);
        assert_int_equal(srig_info(s).total_completed, 1 + 5 * (round + 1));
        assert_int_equal(srig_info(s).total_enqueued, 1 + 5 * (round + 2));
    }
    assert_int_equal(trip(s, 0, 9, NULL), 0);
    assert_int_equal(srig_count(s, LADE_STATE_ACTIVE), 0);
}

/* As many completed jobs are kept as shall be, whichever way they were settled, packs among them. */
static void short_way_keeps_as_many_completed_jobs_as_it_should(void **state)
{
    (void)state;
    rig.config.keep_completed.count = 7;
    struct lq_store *s = srig_open();
    begin_with(s, 3);
    struct lq_put pack[6];
    char id[6][32];
    for (unsigned round = 0; round < ROUNDS; round++) {
        if (round % 4 == 1) {
            for (unsigned i = 0; i < LB_ARRAY_LEN(pack); i++) {
                (void)snprintf(id[i], sizeof(id[i]), "01HF7YAT01%014u%02u", round, i);
                pack[i] = srig_item(id[i]);
                pack[i].fresh = true;
            }
            WANT(0, lq_put(s, pack, round == 1 ? 6 : 2, &rig.err));
        }
        put_singles(s, 3);
        assert_true(trip(s, 0, 20, NULL) >= 3);
        assert_int_equal(srig_count(s, LADE_STATE_COMPLETED), LB_MIN(1 + 3 * (round + 1), 7U));
    }
}

/* C-037, C-041: of a call that did both, and whose answer got lost. */
static void trip_whose_reply_is_lost_settles_and_takes_once(void **state)
{
    (void)state;
    struct lq_store *s = srig_open_through_proxy();
    begin_with(s, 4);
    for (unsigned round = 0; round < ROUNDS; round++) {
        int outcome[4] = {-1, -1, -1, -1};
        put_singles(s, 4);
        int rule = ts_proxy_rule(
            rig.proxy,
            &(struct ts_proxy_rule){.match = "trip.lua", .act = TS_PROXY_DROP_REPLY, .times = 1});
        assert_int_equal(trip(s, 0, 9, outcome), 4);
        assert_int_equal(ts_proxy_hits(rig.proxy, rule), 1);
        ts_proxy_clear(rig.proxy);
        for (size_t i = 0; i < 4; i++)
            assert_int_equal(outcome[i], 0);
        assert_int_equal(srig_count(s, LADE_STATE_ACTIVE), 4);
        assert_int_equal(srig_info(s).total_completed, 1 + 4 * (round + 1));
    }
}

/* The caller settles again, is not told STALE for what was done, and gets what the failed call took. */
static void trip_that_failed_is_made_good_by_the_next(void **state)
{
    (void)state;
    struct lq_store *s = srig_open_through_proxy();
    int outcome[3] = {-1, -1, -1};
    begin_with(s, 3);
    struct lq_leased had[3];
    char id[3][LADE_ID_MAX + 1];
    for (size_t i = 0; i < 3; i++) {
        had[i] = rig.got.job[i];
        memcpy(id[i], had[i].id.p, had[i].id.n + 1);
    }
    put_singles(s, 2);
    (void)ts_proxy_rule(rig.proxy,
                        &(struct ts_proxy_rule){.match = "trip.lua", .act = TS_PROXY_DROP_REPLY});
    s->config.timeout_ms = 1000;
    assert_int_equal(trip(s, -LADE_EUNAVAILABLE, 9, NULL), 0);
    s->config.timeout_ms = 30000;
    ts_proxy_clear(rig.proxy);
    assert_int_equal(srig_count(s, LADE_STATE_ACTIVE), 2);
    struct lq_settle it[3];
    for (size_t i = 0; i < 3; i++)
        it[i] = (struct lq_settle){.queue = "q",
                                   .id = lb_slice_str(id[i]),
                                   .fence = had[i].fence,
                                   .to = LQ_TO_COMPLETED,
                                   .reason = LQ_REASON_NONE};
    struct lq_take take = srig_asking("w", 9);
    WANT(0, lq_settle_take(s, it, 3, &take, &rig.got, &rig.err));
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(it[i].outcome, 0);
    assert_int_equal(rig.got.n, 2);
    assert_int_equal(trip(s, 0, 9, outcome), 0);
    assert_int_equal(outcome[0] | outcome[1], 0);
    assert_int_equal(srig_info(s).total_completed, 6);
}

/* First-in first-out over both ways, levels before it, and due jobs. */
static void short_way_does_not_overtake(void **state)
{
    (void)state;
    struct lq_store *s = srig_open();
    begin_with(s, 2);
    srig_put(s, "before", 2);
    put_singles(s, 2);
    assert_int_equal(trip(s, 0, 9, NULL), 4);
    assert_memory_equal(rig.got.job[0].id.p, "before0", 8);
    put_single(s, 6);
    put_single(s, 2);
    put_single(s, 6);
    assert_int_equal(trip(s, 0, 9, NULL), 3);
    assert_memory_equal(rig.got.job[0].body.p,
                        "\1"
                        "2",
                        2);
    put_singles(s, 3);
    assert_int_equal(trip(s, 0, 2, NULL), 2); /* not all of them */
    put_singles(s, 1);
    assert_int_equal(trip(s, 0, 9, NULL), 2);
    struct lq_put due = srig_item("due");
    due.when = LQ_WHEN_IN;
    due.when_ms = 1;
    WANT(0, lq_put(s, &due, 1, &rig.err));
    lr_sleep_until(lb_deadline_in(3 * LADE_MILLISECOND));
    put_single(s, LQ_LEVEL_DEFAULT);
    assert_int_equal(trip(s, 0, 9, NULL), 2);
    assert_int_equal(trip(s, 0, 9, NULL), 0);
}

static void short_way_leaves_other_peoples_leases_alone(void **state)
{
    (void)state;
    struct lq_store *s = srig_open();
    int outcome[4] = {-1, -1, -1, -1};
    begin_with(s, 4);
    rig.got.job[2].fence++;
    assert_int_equal(trip(s, 0, 9, outcome), 0);
    assert_int_equal(outcome[0] | outcome[1] | outcome[3], 0);
    assert_int_equal(outcome[2], LADE_STALE);
    assert_int_equal(srig_count(s, LADE_STATE_ACTIVE), 1);
}

static void paused_queue_is_settled_and_not_taken_from(void **state)
{
    (void)state;
    struct lq_store *s = srig_open();
    int outcome[2] = {-1, -1};
    begin_with(s, 2);
    put_singles(s, 2);
    WANT(0, s->ops->pause(s, "q", true, &rig.err));
    assert_int_equal(trip(s, 0, 9, outcome), 0);
    assert_int_equal(outcome[0] | outcome[1], 0);
    WANT(0, s->ops->pause(s, "q", false, &rig.err));
    assert_int_equal(srig_take(s, "w", 9), 2);
    srig_settle_got(s, LQ_TO_COMPLETED, 0);
}

/* Nothing is done when one of the keys is somebody else's. */
static void short_way_does_nothing_beside_a_foreign_key(void **state)
{
    (void)state;
    static const char *const name[] = {"jobs", "fin", "held", "completed"};
    struct lq_store *s = srig_open();
    begin_with(s, 3);
    for (size_t i = 0; i < LB_ARRAY_LEN(name); i++) {
        char line[200];
        put_singles(s, 1);
        (void)snprintf(line, sizeof(line), "RENAME %%ns:{q}:%s kept", name[i]);
        assert_string_equal(srig_ask(line), "+OK\r\n");
        (void)snprintf(line, sizeof(line), "SET %%ns:{q}:%s other", name[i]);
        assert_string_equal(srig_ask(line), "+OK\r\n");
        struct lq_settle it = {.queue = "q",
                               .id = lb_slice_of(rig.got.job[0].id),
                               .fence = rig.got.job[0].fence,
                               .to = LQ_TO_COMPLETED,
                               .reason = LQ_REASON_NONE};
        struct lq_take take = srig_asking("w", 9);
        struct lq_leased_vec got = {0};
        lb_arena_init(&got.arena);
        WANT(-LADE_EFOREIGN, lq_settle_take(s, &it, 1, &take, &got, &rig.err));
        lb_arena_fini(&got.arena);
        assert_int_equal(got.n, 0);
        (void)snprintf(line, sizeof(line), "RENAME kept %%ns:{q}:%s", name[i]);
        assert_string_equal(srig_ask(line), "+OK\r\n");
        assert_int_equal(srig_count(s, LADE_STATE_ACTIVE), 3);
        assert_int_equal(srig_count(s, LADE_STATE_READY), i + 1);
    }
    assert_int_equal(trip(s, 0, 9, NULL), LB_ARRAY_LEN(name));
    assert_int_equal(trip(s, 0, 9, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SRIG_TEST(one_call_settles_and_takes_without_a_ready_list),
        SRIG_TEST(short_way_keeps_as_many_completed_jobs_as_it_should),
        SRIG_TEST(trip_whose_reply_is_lost_settles_and_takes_once),
        SRIG_TEST(trip_that_failed_is_made_good_by_the_next),
        SRIG_TEST(short_way_does_not_overtake),
        SRIG_TEST(short_way_leaves_other_peoples_leases_alone),
        SRIG_TEST(paused_queue_is_settled_and_not_taken_from),
        SRIG_TEST(short_way_does_nothing_beside_a_foreign_key),
    };
    return cmocka_run_group_tests(tests, srig_start, srig_stop);
}
