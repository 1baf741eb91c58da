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
            char queue[16], id[27];
            (void)snprintf(queue, sizeof(queue), "q%d", i);
            (void)snprintf(id, sizeof(id), "01HF7YAT00%014u%02d", block++, 0);
            struct lq_put put = srig_item(id);
            put.queue = queue;
            put.fresh = true;
            put.key = lb_slice_str("A");
            put.body = envelope(put.key);
            WANT(0, lq_put(s, &put, 1, &rig.err));
        }
    }
    assert_string_equal(srig_ask("LLEN %ns:{q7}:ready:E"), ":3\r\n");
    assert_string_equal(srig_ask("LLEN %ns:{q39}:ready:E"), ":3\r\n");
    add(s, "Z"); /* the rig looks at q */
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
    };
    return cmocka_run_group_tests(tests, srig_start, srig_stop);
}
