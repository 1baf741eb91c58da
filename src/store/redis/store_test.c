/* store_test.c - a server with limits, other tenants, settings and restarts */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/mem.h"
#include "queue/bound.h"
#include "store/redis/redis_store.h"
#include "store/redis/store_rig.h"
#include "support/redis_server.h"

static const char *const queue_q[] = {"q"};
static const struct lq_lanes lanes_q = {queue_q, 1};

static int try_open(struct lq_store **s)
{
    static const struct lq_store_ops *const stores[] = {&ls_redis_ops};
    rig.config.url = rig.server->url;
    rig.config.ns = rig.ns;
    return lq_store_open(s, stores, 1, &rig.config, &rig.err);
}

/* memory ---------------------------------------------------------------------------------------------------------- */

static void limit_memory(const char *limit)
{
    char line[64];
    (void)snprintf(line, sizeof(line), "CONFIG SET maxmemory %s", limit);
    assert_string_equal(srig_ask(line), "+OK\r\n");
}

/* C-018, C-019: nothing is half done at maxmemory, and what is there is worked off with no help. (chasqui 11, 64) */
static void full_server_refuses_new_jobs_and_works_off_the_old(void **state)
{
    (void)state;
    struct lq_store *s = srig_open();
    srig_join(s, "w");
    for (int i = 0; i < 10; i++) {
        char prefix[16];
        (void)snprintf(prefix, sizeof(prefix), "b%d-", i);
        srig_put(s, prefix, 20);
    }
    limit_memory("1");
    struct lq_put put[2] = {srig_item("n1"), srig_item("n2")};
    WANT(-LADE_ENOSPACE, lq_put(s, put, 2, &rig.err));
    assert_int_equal(srig_count(s, LADE_STATE_READY), 200);
    srig_join(s, "w2"); /* a lease can be renewed, and a worker come */
    size_t done = 0;
    for (int round = 0; srig_take(s, "w", 17) > 0; round++) {
        done += rig.got.n;
        srig_settle_got(s,
                        round % 4 == 1   ? LQ_TO_RETRYING
                        : round % 4 == 2 ? LQ_TO_DEAD
                                         : LQ_TO_COMPLETED,
                        0);
        assert_true(done < 2000);
    }
    assert_true(done >= 200);
    assert_int_equal(srig_count(s, LADE_STATE_READY), 0);
    WANT(-LADE_ENOSPACE, lq_put(s, put, 2, &rig.err));
    limit_memory("0");
    WANT(0, lq_put(s, put, 2, &rig.err));
    assert_int_equal(put[0].outcome, 0);
}

/* chasqui 57, 64: with events on, a full server still works off what it has, and a stream that is something else stops nothing. */
static void an_event_that_cannot_be_written_fails_no_call(void **state)
{
    (void)state;
    struct lq_store *s = srig_open();
    srig_join(s, "w");
    WANT(0, lq_events_set(s, "q", 1000, &rig.err));
    srig_put(s, "a", 20);
    srig_put(s, "b", 20);
    (void)srig_ask("DEL %ns:{q}:ev");
    (void)srig_ask("SET %ns:{q}:ev x");
    assert_int_equal(srig_take(s, "w", 20), 20);
    srig_settle_got(s, LQ_TO_COMPLETED, 0);
    srig_put(s, "c", 20);
    (void)srig_ask("DEL %ns:{q}:ev");
    limit_memory("1");
    assert_int_equal(srig_take(s, "w", 20), 20);
    srig_settle_got(s, LQ_TO_COMPLETED, 0);
    limit_memory("0");
    assert_int_equal(srig_take(s, "w", 20), 20);
    srig_settle_got(s, LQ_TO_DEAD, 0);
    assert_int_equal(srig_count(s, LADE_STATE_READY), 0);
    assert_int_equal(srig_count(s, LADE_STATE_COMPLETED), 40);
    assert_int_equal(srig_count(s, LADE_STATE_DEAD), 20);
}

static void count_finding(void *ctx, const char *queue, const char *text)
{
    (void)queue;
    *(size_t *)ctx += strstr(text, "event") != NULL;
}

static void check_finds_what_is_missing_in_a_stream_of_events(void **state)
{
    (void)state;
    struct lq_store *s = srig_open();
    size_t n = 0;
    char line[96];
    lade_events_info info;
    WANT(0, lq_events_set(s, "q", 1000, &rig.err));
    srig_put(s, "a", 1);
    srig_put(s, "b", 1);
    srig_put(s, "c", 1);
    WANT(0, s->ops->check(s, count_finding, &n, &rig.err));
    assert_int_equal(n, 0);
    WANT(0, s->ops->events_get(s, "q", &info, &rig.err));
    (void)snprintf(line, sizeof(line), "XDEL %%ns:{q}:ev %llu-1",
                   (unsigned long long)info.last - 1);
    (void)srig_ask(line);
    WANT(0, s->ops->check(s, count_finding, &n, &rig.err));
    assert_int_equal(n, 1);
    (void)snprintf(line, sizeof(line), "XDEL %%ns:{q}:ev %llu-1", (unsigned long long)info.last);
    (void)srig_ask(line);
    WANT(0, s->ops->check(s, count_finding, &n, &rig.err));
    assert_int_equal(n, 2); /* what is left has no hole, but is not up to the last */
    WANT(0, lq_events_set(s, "q", 0, &rig.err));
}

static void server_that_evicts_is_refused(void **state)
{
    (void)state;
    struct lq_store *s = NULL;
    (void)srig_ask("CONFIG SET maxmemory-policy allkeys-lru");
    limit_memory("1gb");
    WANT(-LADE_EUNSUPPORTED, try_open(&s));
    assert_non_null(strstr(rig.err.text, "maxmemory-policy noeviction"));
    (void)srig_ask("CONFIG SET maxmemory-policy noeviction");
    limit_memory("0");
    s = srig_open();
    srig_put(s, "j", 1);
}

/* foreign keys, formats ------------------------------------------------------------------------------------------- */

/* A key of a type that lade does not use for it. */
static void plant(const char *name)
{
    char line[64];
    const char *how = strcmp(name, "queues") == 0 ? "LPUSH" : "SADD";
    (void)snprintf(line, sizeof(line), "%s %%ns:%s theirs", how, name);
    assert_string_equal(srig_ask(line), ":1\r\n");
}

static void uproot(const char *name)
{
    char line[64];
    (void)snprintf(line, sizeof(line), "DEL %%ns:%s", name);
    assert_string_equal(srig_ask(line), ":1\r\n");
}

static void foreign_key_stops_a_put_before_anything_is_written(void **state)
{
    (void)state;
    static const char *const keys[] = {"{q}:jobs",  "{q}:ready:4", "{q}:scheduled", "{q}:meta",
                                       "{q}:u:key", "{q}:uk",      "{q}:ttl",       "queues"};
    struct lq_store *s = srig_open();
    for (size_t i = 0; i < LB_ARRAY_LEN(keys); i++) {
        struct lq_put put[2] = {srig_item("a"), srig_item("b")};
        put[1].when = LQ_WHEN_IN;
        put[1].when_ms = 3600000;
        put[1].unique = lb_slice_str("key");
        put[1].unique_ttl_ms = 3600000;
        plant(keys[i]);
        WANT(-LADE_EFOREIGN, lq_put(s, put, 2, &rig.err));
        assert_non_null(strstr(rig.err.text, keys[i]));
        uproot(keys[i]);
        WANT(LADE_NOT_FOUND, s->ops->count(s, "q", &(lade_queue_info){0}, &rig.err));
    }
    srig_put(s, "j", 2);
}

static void foreign_key_stops_a_settle_before_anything_is_written(void **state)
{
    (void)state;
    static const char *const keys[] = {"{q}:fin",  "{q}:completed", "{q}:retrying",
                                       "{q}:dead", "{q}:mark",      "{q}:hist"};
    struct lq_store *s = srig_open();
    srig_join(s, "w");
    srig_put(s, "j", 2);
    assert_int_equal(srig_take(s, "w", 2), 2);
    for (size_t i = 0; i < LB_ARRAY_LEN(keys); i++) {
        struct lq_settle it[2];
        for (int k = 0; k < 2; k++)
            it[k] = (struct lq_settle){.queue = "q",
                                       .id = lb_slice_of(rig.got.job[k].id),
                                       .fence = rig.got.job[k].fence,
                                       .to = k ? LQ_TO_RETRYING : LQ_TO_COMPLETED};
        plant(keys[i]);
        WANT(-LADE_EFOREIGN, lq_settle_take(s, it, 2, NULL, NULL, &rig.err));
        assert_non_null(strstr(rig.err.text, keys[i]));
        uproot(keys[i]);
        assert_int_equal(srig_count(s, LADE_STATE_ACTIVE), 2);
    }
    srig_settle_got(s, LQ_TO_COMPLETED, 0);
}

/* chronos 69 */
static void namespace_of_another_is_refused_when_opening(void **state)
{
    (void)state;
    struct lq_store *s = NULL;
    plant("queues");
    WANT(-LADE_EFOREIGN, try_open(&s));
    uproot("queues");
    rig.config.ns = NULL;
    s = srig_open();
    srig_put(s, "j", 1);
}

/* Programs of format 3 take and count no bytes: a queue that counts them must refuse them from then on. */
static void a_bound_of_bytes_raises_the_format(void **state)
{
    (void)state;
    struct lq_store *s = srig_open();
    srig_put(s, "j", 1);
    assert_string_equal(srig_ask("HSET %ns:{q}:meta v 3"), ":0\r\n");
    struct lq_bound bound = {.max_jobs = 5};
    WANT(0, lq_bound_set(s, "q", &bound, &rig.err));
    assert_string_equal(srig_ask("HGET %ns:{q}:meta v"), "$1\r\n3\r\n");
    bound.max_bytes = 1000;
    WANT(0, lq_bound_set(s, "q", &bound, &rig.err));
    assert_string_equal(srig_ask("HGET %ns:{q}:meta v"), "$1\r\n4\r\n");
}

static void newer_format_is_refused_and_named(void **state)
{
    (void)state;
    struct lq_store *s = srig_open(), *other = NULL;
    srig_join(s, "w");
    srig_put(s, "j", 1);
    assert_string_equal(srig_ask("HSET %ns:{q}:meta v 5"), ":0\r\n");
    struct lq_put put = srig_item("a");
    struct lq_take take = srig_asking("w", 1);
    WANT(-LADE_EFORMAT, lq_put(s, &put, 1, &rig.err));
    assert_non_null(strstr(rig.err.text, "format 5"));
    WANT(-LADE_EFORMAT, lq_settle_take(s, NULL, 0, &take, &rig.got, &rig.err));
    WANT(-LADE_EFORMAT, try_open(&other));
    assert_string_equal(srig_ask("HSET %ns:{q}:meta v 4"), ":0\r\n");
    assert_int_equal(srig_take(s, "w", 1), 1);
}

/* chronos 69 */
static void bad_namespace_is_refused(void **state)
{
    (void)state;
    static const struct lq_store_ops *const stores[] = {&ls_redis_ops};
    static const char *const bad[] = {"", "a{b}", "a b", "a*"};
    for (size_t i = 0; i < LB_ARRAY_LEN(bad); i++) {
        struct lq_store *s = NULL;
        rig.config.url = rig.server->url;
        rig.config.ns = bad[i];
        WANT(-LADE_EINVAL, lq_store_open(&s, stores, 1, &rig.config, &rig.err));
    }
}

/* sizes ----------------------------------------------------------------------------------------------------------- */

/* C-044 */
static void body_over_the_limit_of_the_server_is_refused_before_it_is_sent(void **state)
{
    (void)state;
    (void)srig_ask("CONFIG SET proto-max-bulk-len 1048576");
    struct lq_store *s = srig_open();
    size_t n = 2 << 20;
    char *body = lb_calloc(1, n);
    assert_non_null(body);
    body[0] = 1;
    body[1] = '4';
    struct lq_put put[2] = {srig_item("small"), srig_item("large")};
    put[1].body = lb_slice(body, n);
    WANT(-LADE_ETOOBIG, lq_put(s, put, 2, &rig.err));
    lb_free(body);
    assert_non_null(strstr(rig.err.text, "proto-max-bulk-len"));
    WANT(0, lq_put(s, put, 1, &rig.err));
    assert_int_equal(srig_count(s, LADE_STATE_READY), 1);
    (void)srig_ask("CONFIG SET proto-max-bulk-len 536870912");
}

/* C-045 */
static void take_is_bounded_in_bytes_too(void **state)
{
    (void)state;
    struct lq_store *s = srig_open();
    size_t n = 1 << 20, all = 0;
    char *body = lb_calloc(1, n);
    assert_non_null(body);
    body[0] = 1;
    body[1] = '4';
    srig_join(s, "w");
    for (int i = 0; i < 40; i++) {
        char id[16];
        (void)snprintf(id, sizeof(id), "j%02d", i);
        struct lq_put put = srig_item(id);
        put.body = lb_slice(body, n);
        WANT(0, lq_put(s, &put, 1, &rig.err));
    }
    lb_free(body);
    while (srig_take(s, "w", LQ_TAKE_MAX) > 0) {
        assert_true(rig.got.n <= 17);
        char first[16];
        (void)snprintf(first, sizeof(first), "j%02zu", all);
        assert_memory_equal(rig.got.job[0].id.p, first, 4);
        all += rig.got.n;
        srig_settle_got(s, LQ_TO_GONE, 0);
    }
    assert_int_equal(all, 40);
}

/* A put of LADE_BATCH_MAX jobs and takes of LQ_TAKE_MAX: slices of the scripts, and many queues in one call. */
static void largest_calls_work(void **state)
{
    (void)state;

    enum { N = LADE_BATCH_MAX };
    struct lq_store *s = srig_open();
    struct lq_put *put = lb_calloc(N, sizeof(*put));
    char(*id)[16] = lb_calloc(N, sizeof(*id));
    struct lq_settle *it = lb_calloc(LQ_TAKE_MAX, sizeof(*it));
    assert_true(put && id && it);
    for (size_t i = 0; i < N; i++) {
        (void)snprintf(id[i], sizeof(id[i]), "j%05zu", i);
        put[i] = srig_item(id[i]);
        put[i].when = i % 2 ? LQ_WHEN_IN : LQ_WHEN_NOW;
        put[i].when_ms = 1;
    }
    WANT(0, lq_put(s, put, N, &rig.err));
    srig_join(s, "w");
    size_t all = 0;
    while (all < N) {
        size_t n = srig_take(s, "w", LQ_TAKE_MAX);
        for (size_t i = 0; i < n; i++)
            it[i] = (struct lq_settle){.queue = "q",
                                       .id = lb_slice_of(rig.got.job[i].id),
                                       .fence = rig.got.job[i].fence,
                                       .to = i % 3 ? LQ_TO_COMPLETED : LQ_TO_DEAD};
        WANT(0, lq_settle_take(s, it, n, NULL, NULL, &rig.err));
        all += n;
    }
    assert_int_equal(srig_count(s, LADE_STATE_COMPLETED), 1000);
    assert_int_equal(srig_count(s, LADE_STATE_DEAD), 1000);
    lb_free(put);
    lb_free(id);
    lb_free(it);
}

static void kill_all(struct lq_store *s, const char *prefix, size_t n)
{
    char id[SRIG_BATCH][32];
    struct lb_slice slice[SRIG_BATCH];
    int outcome[SRIG_BATCH];
    for (size_t i = 0; i < n; i++) {
        (void)snprintf(id[i], sizeof(id[i]), "%s%zu", prefix, i);
        slice[i] = lb_slice_str(id[i]);
    }
    WANT(0, s->ops->act(s, "q", LADE_JOB_KILL, slice, n, outcome, &rig.err));
}

/* What has left a list by hand is no work for who lists it: no search of the list for each. */
static void listing_does_not_search_for_what_was_killed(void **state)
{
    (void)state;
    struct lq_store *s = srig_open();
    for (int i = 0; i < 20; i++) {
        char prefix[16];
        (void)snprintf(prefix, sizeof(prefix), "k%d-", i);
        srig_put(s, prefix, 50);
        kill_all(s, prefix, 50);
    }
    srig_put(s, "left", 5);
    (void)srig_ask("CONFIG RESETSTAT");
    struct lq_row_vec rows = {0};
    lade_cursor cursor = {0};
    WANT(0, s->ops->list(s, "q", LADE_STATE_READY, &cursor, 20, &rows, &rig.err));
    assert_int_equal(rows.n, 5);
    assert_memory_equal(rows.row[0].id.p, "left0", 5);
    lb_arena_fini(&rows.arena);
    assert_null(strstr(srig_ask("INFO commandstats"), "cmdstat_lpos:"));
}

/* server ---------------------------------------------------------------------------------------------------------- */

/* chasqui 23 */
static void scripts_the_server_forgot_are_loaded_again(void **state)
{
    (void)state;
    struct lq_store *s = srig_open();
    srig_join(s, "w");
    for (int i = 0; i < 3; i++) {
        (void)srig_ask("SCRIPT FLUSH");
        srig_put(s, i == 0 ? "a" : i == 1 ? "b" : "c", 2);
        (void)srig_ask("SCRIPT FLUSH");
        assert_int_equal(srig_take(s, "w", 9), 2);
        (void)srig_ask("SCRIPT FLUSH");
        srig_settle_got(s, LQ_TO_COMPLETED, 0);
    }
    assert_int_equal(srig_info(s).total_completed, 6);
}

/* Waits until the server has noticed what came and went. */
static void expect_clients(size_t expected)
{
    int64_t end = lb_deadline_in(5 * LADE_SECOND);
    size_t n;
    do {
        n = 0;
        for (const char *p = srig_ask("CLIENT LIST"); (p = strstr(p, " name=lade ")); p++)
            n++;
    } while (n != expected && lb_clock_mono() < end);
    assert_int_equal(n, expected);
}

/* C-042: redis_store.h says how many connections there are. */
static void connections_are_as_many_as_documented(void **state)
{
    (void)state;
    struct lq_store *s = srig_open();
    srig_put(s, "j", 1);
    expect_clients(1);
    srig_join(s, "w");
    expect_clients(2);
    assert_int_equal(srig_take(s, "w", 1), 1);
    expect_clients(3);
    srig_settle_got(s, LQ_TO_COMPLETED, 0);
    assert_int_equal(srig_take(s, "w", 1), 0);
    WANT(LADE_EMPTY,
         s->ops->wait(s, "w", lanes_q, lb_deadline_in(10 * LADE_MILLISECOND), &rig.err));
    expect_clients(4);
    WANT(0, lq_leave(s, "w", lanes_q, &rig.err));
    expect_clients(3);
}

/* C-034, C-035: workers come and go; what they held is worked by others, and nothing of them stays. */
static void departed_workers_leave_nothing_behind(void **state)
{
    (void)state;
    struct lq_store *s = srig_open();
    for (int i = 0; i < 300; i++) {
        char worker[16], prefix[16];
        (void)snprintf(worker, sizeof(worker), "w%d", i);
        (void)snprintf(prefix, sizeof(prefix), "j%d-", i);
        srig_join(s, worker);
        srig_put(s, prefix, 1);
        assert_int_equal(srig_take(s, worker, 1), 1);
        WANT(0, lq_leave(s, worker, lanes_q, &rig.err));
    }
    srig_join(s, "last");
    size_t all = 0;
    struct lq_take take = srig_asking("last", 50);
    for (;;) {
        rig.got.n = 0;
        int rc = lq_reclaim(s, &take, &rig.got, &rig.err);
        if (rc == LADE_EMPTY)
            break;
        WANT(0, rc);
        all += rig.got.n;
        srig_settle_got(s, LQ_TO_COMPLETED, 0);
    }
    assert_int_equal(all, 300);
    assert_string_equal(srig_ask("ZCARD %ns:{q}:workers"), ":1\r\n");
    assert_string_equal(srig_ask("HLEN %ns:{q}:held"), ":1\r\n");
    assert_string_equal(srig_ask("HLEN %ns:workers"), ":1\r\n");
}

/* Fences grow though the data is gone: an old settle never meets a new lease. */
static void fence_grows_over_a_loss_of_all_data(void **state)
{
    (void)state;
    struct lq_store *s = srig_open();
    srig_join(s, "w");
    srig_put(s, "j", 1);
    assert_int_equal(srig_take(s, "w", 1), 1);
    uint64_t before = rig.got.job[0].fence;
    (void)srig_ask("FLUSHDB");
    srig_join(s, "w");
    srig_put(s, "j", 1);
    assert_int_equal(srig_take(s, "w", 1), 1);
    assert_true(rig.got.job[0].fence > before);
    rig.got.job[0].fence = before;
    srig_settle_got(s, LQ_TO_COMPLETED, LADE_STALE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SRIG_TEST(full_server_refuses_new_jobs_and_works_off_the_old),
        SRIG_TEST(an_event_that_cannot_be_written_fails_no_call),
        SRIG_TEST(check_finds_what_is_missing_in_a_stream_of_events),
        SRIG_TEST(server_that_evicts_is_refused),
        SRIG_TEST(foreign_key_stops_a_put_before_anything_is_written),
        SRIG_TEST(foreign_key_stops_a_settle_before_anything_is_written),
        SRIG_TEST(namespace_of_another_is_refused_when_opening),
        SRIG_TEST(a_bound_of_bytes_raises_the_format),
        SRIG_TEST(newer_format_is_refused_and_named),
        SRIG_TEST(bad_namespace_is_refused),
        SRIG_TEST(body_over_the_limit_of_the_server_is_refused_before_it_is_sent),
        SRIG_TEST(take_is_bounded_in_bytes_too),
        SRIG_TEST(largest_calls_work),
        SRIG_TEST(listing_does_not_search_for_what_was_killed),
        SRIG_TEST(scripts_the_server_forgot_are_loaded_again),
        SRIG_TEST(connections_are_as_many_as_documented),
        SRIG_TEST(departed_workers_leave_nothing_behind),
        SRIG_TEST(fence_grows_over_a_loss_of_all_data),
    };
    return cmocka_run_group_tests(tests, srig_start, srig_stop);
}
