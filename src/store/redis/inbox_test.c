/*
 * inbox_test.c - jobs put by one native command (lua/inbox.lua): lost replies, lost bells, queues from before there was an inbox; and
 * jobs put for later by a short function (lua/later_put.lua)
 */
#include "store/redis/store_rig.h"
#include "support/proxy.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "queue/beat.h"
#include "rt/seam.h"

#define ROUNDS 20U

static int drop_replies(const char *script, int times)
{
    return ts_proxy_rule(
        rig.proxy,
        &(struct ts_proxy_rule){.match = script, .act = TS_PROXY_DROP_REPLY, .times = times});
}

/* A call that ends at its deadline; all others have the time that a busy machine takes. */
#define FAILS(s, call)                    \
    do {                                  \
        (s)->config.timeout_ms = 1000;    \
        WANT(-LADE_EUNAVAILABLE, (call)); \
        (s)->config.timeout_ms = 30000;   \
    } while (0)

static struct lq_put single(char *id, size_t size, unsigned i)
{
    (void)snprintf(id, size, "01HF7YAT00%016u", 100 * i);
    struct lq_put put = srig_item(id);
    put.fresh = true;
    return put;
}

/* C-031, by the short way: also when the job has been worked, and is gone, before the repeat. */
static void single_put_whose_reply_is_lost_adds_its_job_once(void **state)
{
    (void)state;
    struct lq_store *s = srig_open_through_proxy();
    char id[32];
    srig_put(s, "first", 1);
    srig_join(s, "w");
    assert_int_equal(srig_take(s, "w", 1), 1);
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct lq_put put = single(id, sizeof(id), round);
        int rule = drop_replies(round % 2 ? "RPUSHX" : "EXISTS", 1);
        WANT(0, lq_put(s, &put, 1, &rig.err));
        assert_int_equal(put.outcome, 0);
        assert_int_equal(ts_proxy_hits(rig.proxy, rule), 1);
        ts_proxy_clear(rig.proxy);
        assert_int_equal(srig_count(s, LADE_STATE_READY), 1);
        assert_int_equal(srig_take(s, "w", 9), 1);
        srig_settle_got(s, LQ_TO_GONE, 0);
    }
    assert_int_equal(srig_info(s).total_enqueued, ROUNDS + 1);
}

static void single_put_that_failed_may_have_put_its_job_once(void **state)
{
    (void)state;
    struct lq_store *s = srig_open_through_proxy(), *other = srig_open();
    char id[32];
    srig_put(s, "first", 1);
    srig_join(other, "w");
    assert_int_equal(srig_take(other, "w", 1), 1);
    struct lq_put put = single(id, sizeof(id), 1);
    (void)ts_proxy_rule(rig.proxy,
                        &(struct ts_proxy_rule){.match = "put.lua", .act = TS_PROXY_DROP_REQUEST});
    int rule = drop_replies("RPUSHX", 1);
    FAILS(s, lq_put(s, &put, 1, &rig.err));
    assert_int_equal(ts_proxy_hits(rig.proxy, rule), 1);
    assert_int_equal(srig_take(other, "w", 9), 1);
    srig_settle_got(other, LQ_TO_GONE, 0);
    ts_proxy_clear(rig.proxy);
    assert_int_equal(srig_count(other, LADE_STATE_READY), 0);
}

/* A put that dies between its job and the bell: who waits is woken when it renews. */
static void job_whose_put_could_not_ring_is_found_by_a_renewal(void **state)
{
    (void)state;
    static const char *const queue[] = {"q"};
    static const struct lq_lanes lanes = {queue, 1};
    struct lq_store *s = srig_open_through_proxy(), *other = srig_open();
    char id[32];
    srig_put(other, "first", 1);
    srig_join(other, "w");
    assert_int_equal(srig_take(other, "w", 1), 1);
    struct lq_take take = srig_asking("w", 1);
    take.register_idle = true;
    WANT(0, lq_settle_take(other, NULL, 0, &take, &rig.got, &rig.err));
    (void)ts_proxy_rule(
        rig.proxy, &(struct ts_proxy_rule){.match = "gather.lua", .act = TS_PROXY_DROP_REQUEST});
    struct lq_put put = single(id, sizeof(id), 1);
    s->config.timeout_ms = 500;
    WANT(0, lq_put(s, &put, 1, &rig.err));
    ts_proxy_clear(rig.proxy);
    WANT(LADE_EMPTY,
         other->ops->wait(other, "w", lanes, lb_deadline_in(20 * LADE_MILLISECOND), &rig.err));
    struct lq_beat beat = {.worker = "w", .name = "w", .lanes = lanes, .lease_ms = 3600000};
    size_t n_stop = 0;
    WANT(0, lq_renew(other, &beat, NULL, 0, &n_stop, &rig.err));
    WANT(0, other->ops->wait(other, "w", lanes, lb_deadline_in(20 * LADE_SECOND), &rig.err));
    assert_int_equal(srig_take(other, "w", 1), 1);
}

/* What lies in it is not lost, and its mark stays the one that it has. */
static void queue_of_format_3_keeps_its_inbox(void **state)
{
    (void)state;
    struct lq_store *s = srig_open();
    char id[32];
    srig_put(s, "old", 3);
    struct lq_put put = single(id, sizeof(id), 0);
    WANT(0, lq_put(s, &put, 1, &rig.err));
    assert_string_equal(srig_ask("HSET %ns:{q}:meta v 3"), ":0\r\n");
    assert_string_equal(srig_ask("LLEN %ns:{q}:in"), ":4\r\n");
    srig_put(s, "new", 3);
    assert_string_equal(srig_ask("HGET %ns:{q}:meta v"), "$1\r\n4\r\n");
    assert_string_equal(srig_ask("LLEN %ns:{q}:in"), ":1\r\n");
    srig_join(s, "w");
    assert_int_equal(srig_take(s, "w", 9), 7);
}

/* Written by a lade that knew no inbox: works on, and has one after its first put. */
static void queue_of_format_2_gets_an_inbox(void **state)
{
    (void)state;
    struct lq_store *s = srig_open();
    char id[2][32];
    srig_put(s, "old", 3);
    assert_string_equal(srig_ask("DEL %ns:{q}:in"), ":1\r\n");
    assert_string_equal(srig_ask("HSET %ns:{q}:meta v 2"), ":0\r\n");
    srig_join(s, "w");
    assert_int_equal(srig_take(s, "w", 1), 1);
    srig_settle_got(s, LQ_TO_COMPLETED, 0);
    assert_int_equal(srig_count(s, LADE_STATE_READY), 2);
    for (unsigned i = 0; i < 2; i++) {
        struct lq_put put = single(id[i], sizeof(id[i]), i);
        WANT(0, lq_put(s, &put, 1, &rig.err));
        assert_string_equal(srig_ask("LLEN %ns:{q}:in"), i == 0 ? ":1\r\n" : ":4\r\n");
    }
    assert_string_equal(srig_ask("HGET %ns:{q}:meta v"), "$1\r\n4\r\n");
    assert_int_equal(srig_take(s, "w", 9), 4);
    assert_memory_equal(rig.got.job[3].id.p, id[1], 26);
}

/* C-018: at maxmemory nothing is put, and what was is worked off. */
static void full_server_refuses_single_jobs_and_works_off_the_old(void **state)
{
    (void)state;
    struct lq_store *s = srig_open();
    char id[3][32];
    srig_put(s, "first", 1);
    for (unsigned i = 0; i < 2; i++) {
        struct lq_put put = single(id[i], sizeof(id[i]), i);
        WANT(0, lq_put(s, &put, 1, &rig.err));
    }
    srig_join(s, "w");
    assert_string_equal(srig_ask("CONFIG SET maxmemory 1"), "+OK\r\n");
    struct lq_put put = single(id[2], sizeof(id[2]), 2);
    WANT(-LADE_ENOSPACE, lq_put(s, &put, 1, &rig.err));
    assert_int_equal(srig_take(s, "w", 9), 3);
    srig_settle_got(s, LQ_TO_COMPLETED, 0);
    assert_string_equal(srig_ask("CONFIG SET maxmemory 0"), "+OK\r\n");
    WANT(0, lq_put(s, &put, 1, &rig.err));
}

static void foreign_inbox_stops_a_put_and_is_named(void **state)
{
    (void)state;
    struct lq_store *s = srig_open();
    char id[32];
    srig_put(s, "first", 1);
    (void)srig_ask("DEL %ns:{q}:in");
    assert_string_equal(srig_ask("SADD %ns:{q}:in theirs"), ":1\r\n");
    struct lq_put put = single(id, sizeof(id), 1);
    WANT(-LADE_EFOREIGN, lq_put(s, &put, 1, &rig.err));
    assert_non_null(strstr(rig.err.text, "{q}:in is a set"));
    (void)srig_ask("DEL %ns:{q}:in");
    (void)srig_ask("RPUSH %ns:{q}:in \"\"");
}

static struct lq_put later(char *id, size_t size, unsigned i, int64_t ms)
{
    struct lq_put put = single(id, size, i);
    put.when = i % 2 ? LQ_WHEN_IN : LQ_WHEN_AT;
    put.when_ms = ms + (i % 2 ? 0 : lb_clock_wall() / LADE_MILLISECOND);
    return put;
}

static void later_put_whose_reply_is_lost_adds_its_jobs_once(void **state)
{
    (void)state;
    struct lq_store *s = srig_open_through_proxy();
    char id[3][32];
    srig_put(s, "first", 1);
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct lq_put put[3], now = single(id[0], sizeof(id[0]), 1000 + round);
        WANT(0, lq_put(s, &now, 1,
                       &rig.err)); /* lies in the inbox still, with the number of its put */
        for (unsigned i = 0; i < 3; i++)
            put[i] = later(id[i], sizeof(id[i]), 3 * round + i, 3600000 + 1000 * (int64_t)i);
        int rule = drop_replies("later_put.lua", 1);
        WANT(0, lq_put(s, put, 1 + round % 3, &rig.err));
        assert_int_equal(put[0].outcome, 0);
        assert_int_equal(ts_proxy_hits(rig.proxy, rule), 1);
        ts_proxy_clear(rig.proxy);
    }
    size_t n = 0;
    for (unsigned round = 0; round < ROUNDS; round++)
        n += 1 + round % 3;
    assert_int_equal(srig_count(s, LADE_STATE_SCHEDULED), n);
    assert_int_equal(srig_count(s, LADE_STATE_READY), ROUNDS + 1);
    assert_int_equal(srig_info(s).total_enqueued, n + ROUNDS + 1);
}

/* Whoever waits for the job that was the next until now learns of one that is due before it. */
static void later_put_wakes_for_what_is_due_sooner(void **state)
{
    (void)state;
    static const char *const queue[] = {"q"};
    static const struct lq_lanes lanes = {queue, 1};
    struct lq_store *s = srig_open();
    char id[32];
    srig_put(s, "first", 1);
    srig_join(s, "w");
    assert_int_equal(srig_take(s, "w", 1), 1);
    const int64_t delay[] = {3600000, 7200000, 200};
    const int wakes[] = {0, LADE_EMPTY, 0};
    for (unsigned i = 0; i < LB_ARRAY_LEN(delay); i++) {
        struct lq_take take = srig_asking("w", 1);
        take.register_idle = true;
        WANT(0, lq_settle_take(s, NULL, 0, &take, &rig.got, &rig.err));
        struct lq_put put = later(id, sizeof(id), 2 * i + 1, delay[i]);
        WANT(0, lq_put(s, &put, 1, &rig.err));
        int64_t patience = wakes[i] ? 20 * LADE_MILLISECOND : 20 * LADE_SECOND;
        WANT(wakes[i], s->ops->wait(s, "w", lanes, lb_deadline_in(patience), &rig.err));
    }
    assert_int_equal(srig_count(s, LADE_STATE_SCHEDULED), 3);
    int64_t end = lb_deadline_in(10 * LADE_SECOND);
    while (srig_take(s, "w", 1) == 0 && lb_clock_mono() < end)
        lr_sleep_until(lb_deadline_in(5 * LADE_MILLISECOND));
    assert_string_equal(rig.got.job[0].id.p, id);
}

static void job_whose_time_has_come_is_ready_at_once(void **state)
{
    (void)state;
    struct lq_store *s = srig_open();
    char id[32];
    srig_put(s, "first", 1);
    struct lq_put put = later(id, sizeof(id), 2, -5);
    WANT(0, lq_put(s, &put, 1, &rig.err));
    assert_int_equal(srig_count(s, LADE_STATE_READY), 2);
    assert_int_equal(srig_count(s, LADE_STATE_SCHEDULED), 0);
}

static void foreign_key_stops_a_put_for_later(void **state)
{
    (void)state;
    static const char *const name[] = {"jobs", "scheduled"};
    struct lq_store *s = srig_open();
    char id[32], line[200];
    srig_put(s, "first", 1);
    struct lq_put put = later(id, sizeof(id), 1, 3600000);
    WANT(0, lq_put(s, &put, 1, &rig.err));
    for (unsigned i = 0; i < LB_ARRAY_LEN(name); i++) {
        (void)snprintf(line, sizeof(line), "RENAME %%ns:{q}:%s kept", name[i]);
        assert_string_equal(srig_ask(line), "+OK\r\n");
        (void)snprintf(line, sizeof(line), "SET %%ns:{q}:%s other", name[i]);
        assert_string_equal(srig_ask(line), "+OK\r\n");
        put = later(id, sizeof(id), 2 * i + 3, 3600000);
        WANT(-LADE_EFOREIGN, lq_put(s, &put, 1, &rig.err));
        (void)snprintf(line, sizeof(line), "RENAME kept %%ns:{q}:%s", name[i]);
        assert_string_equal(srig_ask(line), "+OK\r\n");
        assert_int_equal(srig_count(s, LADE_STATE_SCHEDULED), 1);
        assert_int_equal(srig_info(s).total_enqueued, 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SRIG_TEST(single_put_whose_reply_is_lost_adds_its_job_once),
        SRIG_TEST(single_put_that_failed_may_have_put_its_job_once),
        SRIG_TEST(job_whose_put_could_not_ring_is_found_by_a_renewal),
        SRIG_TEST(queue_of_format_2_gets_an_inbox),
        SRIG_TEST(queue_of_format_3_keeps_its_inbox),
        SRIG_TEST(full_server_refuses_single_jobs_and_works_off_the_old),
        SRIG_TEST(foreign_inbox_stops_a_put_and_is_named),
        SRIG_TEST(later_put_whose_reply_is_lost_adds_its_jobs_once),
        SRIG_TEST(later_put_wakes_for_what_is_due_sooner),
        SRIG_TEST(job_whose_time_has_come_is_ready_at_once),
        SRIG_TEST(foreign_key_stops_a_put_for_later),
    };
    return cmocka_run_group_tests(tests, srig_start, srig_stop);
}
