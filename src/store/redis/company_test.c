/*
 * company_test.c - jobs of keys that several stores put in company (lua/company_put.lua): what each counts by itself, the bound of all together, times of
 * company, lost replies
 */
#include "store/redis/store_rig.h"
#include "support/proxy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "queue/job.h"
#include "queue/key_store.h"
#include "queue/limit.h"
#include "store/redis/company.h"

#define BOUND  (2 * LQ_TURN_JOBS)
#define STORES 4U

static unsigned block; /* of the next call */

static int drop_replies(const char *script, int times)
{
    return ts_proxy_rule(
        rig.proxy,
        &(struct ts_proxy_rule){.match = script, .act = TS_PROXY_DROP_REPLY, .times = times});
}

static struct lb_slice envelope(struct lb_slice key)
{
    struct lb_buf b;
    lade_job_spec spec = {.kind = "k", .key = {key.p, key.n}};
    lb_buf_init(&b);
    lq_job_encode(&b, &spec, 1700000000000);
    struct lb_slice body = lb_slice_of(lb_arena_copy(&rig.arena, b.p, b.n));
    lb_buf_fini(&b);
    return body;
}

/* One call: a job for each letter, which is its key, of ids that follow each other; a small letter is a key that no other job has. */
static void add(struct lq_store *s, const char *letters)
{
    static const char digit[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    struct lq_put put[100];
    size_t n = strlen(letters);
    assert_in_range(n, 1, 100);
    for (size_t i = 0; i < n; i++) {
        char id[27], key[32];
        (void)snprintf(id, sizeof(id), "01HF7YAT00%014u%c%c", block, digit[i / 32], digit[i % 32]);
        bool own = letters[i] >= 'a';
        int len = own ? snprintf(key, sizeof(key), "k%u-%zu", block, i)
                      : snprintf(key, sizeof(key), "%c", letters[i]);
        put[i] = srig_item((const char *)lb_arena_copy(&rig.arena, id, sizeof(id)).p);
        put[i].fresh = true;
        put[i].key = lb_slice_of(lb_arena_copy(&rig.arena, key, (size_t)len));
        put[i].body = envelope(put[i].key);
    }
    block++;
    WANT(0, lq_put(s, put, n, &rig.err));
    for (size_t i = 0; i < n; i++)
        assert_int_equal(put[i].outcome, 0);
}

/* Takes and settles all. Jobs of A before the first of Z, or all of them. */
static size_t drain(struct lq_store *s)
{
    size_t of_a = 0;
    bool z = false;
    while (srig_take(s, "w", 50) > 0) {
        for (size_t i = 0; i < rig.got.n; i++) {
            struct lb_slice key = lq_body_key(lb_slice_of(rig.got.job[i].body));
            z = z || lb_slice_eq(key, lb_slice_str("Z"));
            of_a += !z && lb_slice_eq(key, lb_slice_str("A"));
        }
        srig_settle_got(s, LQ_TO_COMPLETED, 0);
    }
    return of_a;
}

static size_t entries(void)
{
    return strtoul(srig_ask("LLEN %ns:{q}:ready:E") + 1, NULL, 10);
}

/* So many stores at work, until company is closed and long after. How many jobs of A come before the one of Z, which was put last. */
static size_t delay_by(unsigned n)
{
    struct lq_store *s[STORES];
    for (unsigned i = 0; i < n; i++)
        s[i] = srig_open();
    srig_join(s[0], "w");
    for (unsigned call = 0; call < 40; call++)
        add(s[call % n], call < 2 * n ? "Abcd" : "AbAcAAd");
    add(s[n - 1], "Z");
    return drain(s[0]);
}

static void one_producer_delays_a_key_by_a_quota_and_a_turn(void **state)
{
    (void)state;
    assert_in_range(delay_by(1), LQ_TURN_JOBS, LS_REDIS_OWN_JOBS + LQ_TURN_JOBS + 2);
}

static void two_producers_delay_a_key_by_no_more_than_the_bound(void **state)
{
    (void)state;
    assert_in_range(delay_by(2), LS_REDIS_OWN_JOBS + LQ_TURN_JOBS, BOUND + 2);
}

static void many_producers_delay_a_key_by_no_more_than_the_bound(void **state)
{
    (void)state;
    assert_in_range(delay_by(STORES), LS_REDIS_OWN_JOBS + LQ_TURN_JOBS, BOUND + 2);
}

static void each_time_of_company_is_counted_anew(void **state)
{
    (void)state;
    struct lq_store *a = srig_open(), *b = srig_open();
    srig_join(a, "w");
    for (int round = 0; round < 10; round++) {
        add(round % 2 ? a : b, "AAAAAAAA");
        add(a, "AAAAbAAAA");
        add(b, "AAAA");
        add(a, "cde");
        assert_int_equal(entries(), 4);
        assert_int_equal(drain(b), 20);
    }
}

/* What is over the quota of the store is counted at the server, that is half as much again. */
static void a_key_over_the_quota_of_its_store_is_counted_at_the_server(void **state)
{
    (void)state;
    struct lq_store *s = srig_open();
    srig_join(s, "w");
    add(s, "b");
    for (size_t i = 0; i < LS_REDIS_OWN_JOBS + LQ_TURN_JOBS; i++) {
        add(s, "Ac");
        assert_int_equal(entries(), i + 2);
    }
    add(s, "AZ");
    assert_int_equal(entries(), LS_REDIS_OWN_JOBS + LQ_TURN_JOBS + 1);
    assert_int_equal(drain(s), LS_REDIS_OWN_JOBS + LQ_TURN_JOBS + 1);
}

/* The reply that was lost told of a new time, and that the store counts in it: it does not know, and so does not. */
static void a_store_that_lost_the_answer_counts_no_more_in_that_time(void **state)
{
    (void)state;
    for (int round = 0; round < 3; round++) {
        struct lq_store *s = srig_open_through_proxy(), *other = srig_open();
        srig_join(other, "w");
        add(s, "AAAAAAAA");
        add(s, "AAAAAAAA");
        assert_int_equal(drain(other), 16);
        int rule = drop_replies("company_put.lua", 1);
        add(s, "AAAAAAAA");
        assert_int_equal(ts_proxy_hits(rig.proxy, rule), 1);
        ts_proxy_clear(rig.proxy);
        for (int call = 0; call < 10; call++)
            add(call % 2 ? other : s, "AAAA");
        add(s, "Z");
        assert_in_range(drain(other), LQ_TURN_JOBS, BOUND + 2);
    }
}

/* The server is emptied while stores count. */
static void a_server_that_lost_its_data_counts_anew(void **state)
{
    (void)state;
    struct lq_store *s = srig_open(), *other = srig_open();
    add(s, "AAAAAAAA");
    add(other, "AAAA");
    add(s, "AAAA");
    assert_string_equal(srig_ask("FLUSHALL"), "+OK\r\n");
    srig_join(s, "w");
    add(other, "AAAAAAAA");
    for (int call = 0; call < 8; call++)
        add(call % 2 ? other : s, "AAAA");
    add(s, "Z");
    assert_in_range(drain(s), 8, BOUND + 2);
}

static void many_queues_are_counted_apart(void **state)
{
    (void)state;
    struct lq_store *s = srig_open();
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 40; i++) {
            char queue[16], id[2][27];
            struct lq_put put[2];
            (void)snprintf(queue, sizeof(queue), "q%d", i);
            for (int k = 0; k < 2; k++) {
                (void)snprintf(id[k], sizeof(id[k]), "01HF7YAT00%014u0%c", block, "01"[k]);
                put[k] = srig_item(id[k]);
                put[k].queue = queue;
                put[k].fresh = true;
                put[k].key = lb_slice_str("A");
                put[k].body = envelope(put[k].key);
            }
            block++;
            WANT(0, lq_put(s, put, 2, &rig.err));
        }
    }
    assert_string_equal(srig_ask("LLEN %ns:{q7}:ready:E"), ":3\r\n");
    assert_string_equal(srig_ask("LLEN %ns:{q39}:ready:E"), ":3\r\n");
    add(s, "Z"); /* the rig looks at q */
}

/* The inbox ------------------------------------------------------------------------------------------------------------ */

static void single_jobs_of_keys_come_to_company_by_the_inbox(void **state)
{
    (void)state;
    struct lq_store *s = srig_open(), *other = srig_open();
    srig_join(s, "w");
    add(s, "bc"); /* makes the queue */
    for (int i = 0; i < 6; i++)
        add(i % 2 ? s : other, i < 4 ? "A" : "d");
    assert_string_equal(srig_ask("LLEN %ns:{q}:in"),
                        ":25\r\n"); /* of each a token, key, id, body */
    assert_int_equal(srig_count(s, LADE_STATE_READY), 8);
    assert_int_equal(srig_take(s, "w", 5), 5);
    assert_int_equal(entries(), 3);
    assert_string_equal(srig_ask("HGET %ns:{q}:meta xk"), "$1\r\n8\r\n");
    srig_settle_got(s, LQ_TO_COMPLETED, 0);
    assert_int_equal(drain(s), 1);
    assert_string_equal(srig_ask("HGET %ns:{q}:meta xk"), "$1\r\n0\r\n");
    assert_string_equal(srig_ask("EXISTS %ns:{q}:key %ns:{q}:keys"), ":0\r\n");
}

/* Emptied by puts, in several parts, and by the take. */
static void single_jobs_delay_a_key_by_no_more_than_a_turn(void **state)
{
    (void)state;
    struct lq_store *s[STORES];
    for (unsigned i = 0; i < STORES; i++)
        s[i] = srig_open();
    srig_join(s[0], "w");
    add(s[0], "b");
    for (unsigned call = 0; call < 400; call++)
        add(s[call % STORES], call % 10 ? "d" : "A");
    add(s[1], "Z");
    assert_in_range(drain(s[0]), LQ_TURN_JOBS, LQ_TURN_JOBS + 4);
    assert_int_equal(srig_info(s[0]).total_completed, 402);
}

static void single_jobs_and_calls_are_in_one_company(void **state)
{
    (void)state;
    struct lq_store *s = srig_open(), *other = srig_open();
    srig_join(s, "w");
    for (int i = 0; i < 30; i++) {
        add(s, "bcd");
        add(other, "e");
    }
    assert_in_range(entries(), 30, 59);
    assert_string_equal(srig_ask("EXISTS %ns:{q}:keys"), ":0\r\n");
    (void)drain(s);
    assert_int_equal(srig_info(s).total_completed, 120);
}

/* C-031 of keys: the put is repeated, by the general way, and its job is there once. */
static void single_job_of_a_key_whose_reply_is_lost_is_put_once(void **state)
{
    (void)state;
    struct lq_store *s = srig_open_through_proxy();
    srig_join(s, "w");
    add(s, "b");
    for (int round = 0; round < 10; round++) {
        int rule = drop_replies("RPUSHX", 1);
        add(s, "A");
        assert_int_equal(ts_proxy_hits(rig.proxy, rule), 1);
        ts_proxy_clear(rig.proxy);
        add(s, "A");
        (void)drain(s);
    }
    assert_int_equal(srig_info(s).total_completed, 21);
    assert_int_equal(srig_info(s).total_enqueued, 21);
}

/* More of them run than a step of the scan sees. */
static void a_limit_counts_many_that_run_of_single_jobs(void **state)
{
    (void)state;
    static const struct lq_limit one = {.concurrency = 1};
    struct lq_store *s = srig_open();
    size_t got = 0;
    srig_join(s, "w");
    add(s, "b");
    for (int i = 0; i < 600; i++)
        add(s, "c");
    add(s, "A");
    while (got < 602) {
        size_t n = srig_take(s, "w", 602);
        assert_true(n > 0);
        got += n;
    }
    add(s, "A");
    WANT(0, lq_limit_set(s, "q", LADE_LIMIT_KEY, lb_slice_str("A"), &one, &rig.err));
    assert_int_equal(srig_take(s, "w", 10), 0);
    assert_string_equal(srig_ask("HGET %ns:{q}:meta xk"), "$1\r\n0\r\n");
    assert_string_equal(srig_ask("HLEN %ns:{q}:keys"), ":602\r\n");
}

/* What came while a limit holds has turns, in its order, without a script for each. */
static void single_jobs_of_a_limited_key_have_turns(void **state)
{
    (void)state;
    static const struct lq_limit one = {.concurrency = 1};
    struct lq_store *s = srig_open();
    srig_join(s, "w");
    add(s, "b");
    WANT(0, lq_limit_set(s, "q", LADE_LIMIT_KEY, lb_slice_str("A"), &one, &rig.err));
    add(s, "A");
    add(s, "A");
    add(s, "c");
    assert_string_equal(srig_ask("LLEN %ns:{q}:in"), ":13\r\n");
    assert_int_equal(srig_take(s, "w", 10), 3);
    assert_int_equal(srig_count(s, LADE_STATE_READY), 1);
    srig_settle_got(s, LQ_TO_COMPLETED, 0);
    assert_int_equal(srig_take(s, "w", 10), 1);
    srig_settle_got(s, LQ_TO_COMPLETED, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SRIG_TEST(one_producer_delays_a_key_by_a_quota_and_a_turn),
        SRIG_TEST(two_producers_delay_a_key_by_no_more_than_the_bound),
        SRIG_TEST(many_producers_delay_a_key_by_no_more_than_the_bound),
        SRIG_TEST(each_time_of_company_is_counted_anew),
        SRIG_TEST(a_key_over_the_quota_of_its_store_is_counted_at_the_server),
        SRIG_TEST(a_store_that_lost_the_answer_counts_no_more_in_that_time),
        SRIG_TEST(a_server_that_lost_its_data_counts_anew),
        SRIG_TEST(many_queues_are_counted_apart),
        SRIG_TEST(single_jobs_of_keys_come_to_company_by_the_inbox),
        SRIG_TEST(single_jobs_delay_a_key_by_no_more_than_a_turn),
        SRIG_TEST(single_jobs_and_calls_are_in_one_company),
        SRIG_TEST(single_job_of_a_key_whose_reply_is_lost_is_put_once),
        SRIG_TEST(a_limit_counts_many_that_run_of_single_jobs),
        SRIG_TEST(single_jobs_of_a_limited_key_have_turns),
    };
    return cmocka_run_group_tests(tests, srig_start, srig_stop);
}
