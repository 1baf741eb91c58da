/* The leases of the Resque store, op by op. */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "queue/beat.h"
#include "resque/rb_kit.h"
#include "store/resque/resque_store.h"
#include "support/proxy.h"

#define WAIT (INT64_C(120) * 1000 * 1000 * 1000)

static const char *const queue[] = {"default"};
static const struct lq_lanes lanes = {queue, 1};

static struct lq_store *open_at(const char *url)
{
    static const struct lq_store_ops *const stores[] = {&ls_resque_ops};
    struct lq_store_config config = {.url = url,
                                     .ns = "lade",
                                     .timeout_ms = 10000,
                                     .connect_timeout_ms = 5000,
                                     .body_max = LADE_PAYLOAD_MAX_HARD};
    struct lq_store *s = NULL;
    lade_err err = {0};
    assert_int_equal(lq_store_open(&s, stores, 1, &config, &err), 0);
    return s;
}

/* The url is borrowed until close. */
static struct lq_store *open_store(void)
{
    static char url[220];
    (void)snprintf(url, sizeof(url), "resque+unix://%s", kit_redis.socket);
    return open_at(url);
}

static void push_ok(size_t n)
{
    while (n-- > 0)
        (void)ask("RPUSH resque:queue:default "
                  "\"{\\\"class\\\":\\\"Ok\\\",\\\"args\\\":[1]}\"");
}

static void join(struct lq_store *s, const char *worker, int64_t lease_ms)
{
    size_t n_stop;
    struct lq_beat beat = {.worker = worker,
                           .name = worker,
                           .lanes = lanes,
                           .lease_ms = lease_ms,
                           .concurrency = 2,
                           .first = true};
    assert_int_equal(lq_renew(s, &beat, NULL, 0, &n_stop, NULL), 0);
}

/* Worker "a" takes `max` at most; `n` come. */
static void take(struct lq_store *s, size_t max, size_t n, struct lq_leased_vec *got)
{
    struct lq_take it = {"a", lanes, max, true, false};
    *got = (struct lq_leased_vec){0};
    lb_arena_init(&got->arena);
    assert_int_equal(lq_settle_take(s, NULL, 0, &it, got, NULL), 0);
    assert_int_equal(got->n, n);
}

static void end(struct lq_store *s, struct lq_leased_vec *got)
{
    lb_arena_fini(&got->arena);
    lq_store_close(s);
}

static void settle(struct lq_store *s, const struct lq_leased *job, int outcome)
{
    struct lq_settle it = {
        .queue = "default", .id = lb_slice_of(job->id), .fence = job->fence, .to = LQ_TO_COMPLETED};
    assert_int_equal(lq_settle_take(s, &it, 1, NULL, NULL, NULL), 0);
    assert_int_equal(it.outcome, outcome);
}

/* Fences: who has lost his lease changes nothing any more. Two workers of one process have ids of their own. */
static void a_worker_that_lost_its_lease_settles_nothing(void **state)
{
    (void)state;
    struct lq_store *s = open_store();
    struct lq_leased_vec got, again = {0};
    lb_arena_init(&again.arena);
    push_ok(1);
    join(s, "a", 60000);
    join(s, "b", 60000);
    assert_int_equal(ask_int("SCARD resque:workers"), 4);
    take(s, 10, 1, &got);
    join(s, "a", 1);
    struct lq_take rest = {"b", lanes, 10, true, false};
    assert_true(TS_UNTIL(WAIT, lq_reclaim(s, &rest, &again, NULL) == 0));
    assert_int_equal(again.n, 1);
    assert_string_equal(again.job[0].former, "a");
    assert_int_equal(ask_int("SCARD resque:workers"), 2);
    struct lq_lease lease = {
        .queue = "default", .id = lb_slice_of(got.job[0].id), .fence = got.job[0].fence};
    assert_int_equal(lq_begin(s, "a", &lease, 1, NULL), 0);
    assert_int_equal(lease.outcome, LADE_STALE);
    settle(s, &got.job[0], LADE_STALE);
    assert_int_equal(ask_int("EXISTS resque:stat:processed"), 0);
    settle(s, &again.job[0], LADE_DONE);
    assert_non_null(strstr(ask("GET resque:stat:processed"), "\r\n1\r\n"));
    assert_int_equal(lq_leave(s, "b", lanes, NULL), 0);
    assert_int_equal(ask_int("EXISTS resque:workers resque:lade:workers"), 0);
    lb_arena_fini(&again.arena);
    end(s, &got);
}

static void drop_reply(struct ts_proxy *p, const char *match)
{
    ts_proxy_clear(p);
    (void)ts_proxy_rule(
        p, &(struct ts_proxy_rule){.match = match, .act = TS_PROXY_DROP_REPLY, .times = 1});
}

/* A proxy before the server, and the URL of it. */
static struct ts_proxy *start_proxy(char url[220])
{
    struct ts_proxy *proxy = ts_proxy_start(kit_redis.socket);
    assert_non_null(proxy);
    (void)snprintf(url, 220, "resque%s", ts_proxy_url(proxy) + strlen("redis"));
    return proxy;
}

/* A take and a settle whose replies are lost are asked for again and change nothing twice. */
static void replies_that_are_lost_are_given_again(void **state)
{
    (void)state;
    char url[220];
    struct ts_proxy *proxy = start_proxy(url);
    struct lq_store *s = open_at(url);
    struct lq_leased_vec got;
    push_ok(2);
    join(s, "a", 60000);
    drop_reply(proxy, "EVALSHA");
    take(s, 1, 1, &got);
    assert_int_equal(ts_proxy_hits(proxy, 0), 1);
    assert_int_equal(ask_int("LLEN resque:queue:default"), 1);
    drop_reply(proxy, "EVALSHA");
    settle(s, &got.job[0], LADE_DONE);
    assert_int_equal(ts_proxy_hits(proxy, 0), 1);
    assert_non_null(strstr(ask("GET resque:stat:processed"), "\r\n1\r\n"));
    end(s, &got);
    ts_proxy_stop(proxy);
}

/* Resque cannot tell a repeat from a second job, so an enqueue whose reply is lost is an error that says so, and one job. */
static void an_enqueue_whose_reply_is_lost_is_not_sent_again(void **state)
{
    (void)state;
    char url[220];
    struct ts_proxy *proxy = start_proxy(url);
    lade *q = NULL;
    lade_err err = {0};
    lade_job_spec spec = {.kind = "Ok"};
    assert_int_equal(lade_open(&q, url, NULL, &err), 0);
    drop_reply(proxy, "RPUSH");
    assert_int_equal(lade_enqueue(q, &spec, NULL, &err), -LADE_EUNAVAILABLE);
    assert_int_equal(ts_proxy_hits(proxy, 0), 1);
    assert_non_null(strstr(err.text, "may be there or not"));
    assert_int_equal(ask_int("LLEN resque:queue:default"), 1);
    assert_int_equal(lade_enqueue(q, &spec, NULL, &err), 0);
    assert_int_equal(ask_int("LLEN resque:queue:default"), 2);
    lade_close(q);
    ts_proxy_stop(proxy);
}

static void put_worker(const char *id, const char *beat)
{
    char line[300];
    (void)snprintf(line, sizeof(line), "SADD resque:workers %s", id);
    (void)ask(line);
    (void)snprintf(line, sizeof(line),
                   "SET resque:worker:%s \"{\\\"queue\\\":\\\"q\\\",\\\"payload\\\":{\\\"class\\\":"
                   "\\\"K\\\",\\\"args\\\":[5]}}\"",
                   id);
    (void)ask(line);
    if (!beat)
        return;
    (void)snprintf(line, sizeof(line), "HSET resque:workers:heartbeat %s %s", id, beat);
    (void)ask(line);
}

/* resque W12 */
static void ruby_workers_without_a_heartbeat_for_long_are_pruned_and_no_others(void **state)
{
    (void)state;
    static const struct lq_lanes none = {0};
    struct lq_store *s = open_store();
    size_t n = 0;
    put_worker("h:1:q", "2001-01-01T00:00:00+00:00");
    put_worker("h:2:q", "2999-01-01T00:00:00+00:00");
    put_worker("h:3:q", NULL);
    put_worker("h:4:q", "1796032645");
    put_worker("h-a:5.0:q", "2001-01-01T00:00:00+00:00");
    put_worker("abc", "2001-01-01T00:00:00+00:00");
    (void)ask("SET resque:pruning_dead_workers_in_progress x");
    assert_int_equal(lq_trim(s, none, 100, &n, NULL), 0); /* somebody else is at it */
    assert_int_equal(ask_int("SCARD resque:workers"), 6);
    (void)ask("DEL resque:pruning_dead_workers_in_progress");
    assert_int_equal(lq_trim(s, none, 100, &n, NULL), 0);
    assert_int_equal(n, 1);
    assert_int_equal(ask_int("SCARD resque:workers"), 5);
    assert_int_equal(ask_int("SISMEMBER resque:workers h:1:q"), 0);
    assert_int_equal(ask_int("EXISTS resque:worker:h:1:q"), 0);
    assert_int_equal(ask_int("LLEN resque:failed"), 1);
    const char *entry = ask("LINDEX resque:failed 0");
    assert_non_null(strstr(entry, "\"payload\":{\"class\":\"K\",\"args\":[5]},\"exception\":"
                                  "\"Resque::PruneDeadWorkerDirtyExit\""));
    assert_non_null(strstr(entry, "Worker h:1:q did not gracefully exit while processing K"));
    assert_true(ask_int("TTL resque:pruning_dead_workers_in_progress") > 0);
    lq_store_close(s);
}

static int64_t shown(void)
{
    return ask_int("EVAL \"return #redis.call('KEYS', 'resque:worker:*:default')\" 0");
}

/* Two slots, five jobs. resque W7: those without a slot are shown by the next renewal. W9: each counts for one of the workers. */
static void jobs_are_taken_ahead_shown_when_they_stay_and_counted(void **state)
{
    (void)state;
    struct lq_store *s = open_store();
    struct lq_leased_vec got;
    push_ok(5);
    join(s, "a", 60000);
    take(s, 10, 5, &got);
    assert_int_equal(shown(), 2);
    settle(s, &got.job[0], LADE_DONE);
    settle(s, &got.job[1], LADE_DONE);
    assert_int_equal(shown(), 0);
    size_t n_stop;
    struct lq_beat beat = {
        .worker = "a", .name = "a", .lanes = lanes, .lease_ms = 60000, .concurrency = 2};
    assert_int_equal(lq_renew(s, &beat, NULL, 0, &n_stop, NULL), 0);
    assert_int_equal(shown(), 2);
    assert_int_equal(
        ask_int("EVAL \"local k = redis.call('KEYS', 'resque:worker:*:default')[1] "
                "local v = cjson.decode(redis.call('GET', k)) "
                "return v.queue == 'default' and v.payload.class == 'Ok' and #v.run_at\" 0"),
        20);
    for (size_t i = 2; i < 5; i++)
        settle(s, &got.job[i], LADE_DONE);
    assert_int_equal(shown(), 0);
    assert_non_null(strstr(ask("GET resque:stat:processed"), "\r\n5\r\n"));
    assert_int_equal(
        ask_int(
            "EVAL \"local n = 0 for _, k in ipairs(redis.call('KEYS', 'resque:stat:processed:*')) "
            "do n = n + redis.call('GET', k) end return n\" 0"),
        5);
    assert_int_equal(lq_leave(s, "a", lanes, NULL), 0);
    assert_int_equal(ask_int("EXISTS resque:workers resque:lade:workers"), 0);
    end(s, &got);
}

/* What a strict worker holds fails with it: it holds what it works at. */
static void in_strict_mode_none_is_taken_ahead(void **state)
{
    (void)state;
    char url[240];
    (void)snprintf(url, sizeof(url), "resque+unix://%s?mode=strict", kit_redis.socket);
    struct lq_store *s = open_at(url);
    struct lq_leased_vec got;
    push_ok(5);
    join(s, "a", 60000);
    take(s, 10, 2, &got);
    assert_int_equal(ask_int("LLEN resque:queue:default"), 3);
    assert_int_equal(shown(), 2);
    end(s, &got);
}

/* 16 MiB a take, and what came beyond is back where it was. Such long entries are shown too. */
static void a_take_of_large_entries_ends_in_time_and_keeps_the_order(void **state)
{
    (void)state;
    struct lq_store *s = open_store();
    struct lq_leased_vec got;
    (void)ask("EVAL \"for i = 1, 10 do redis.call('RPUSH', 'resque:queue:default', "
              "cjson.encode({class = 'Ok', args = {i, string.rep('x', 3000000)}})) end\" 0");
    join(s, "a", 60000);
    take(s, 100, 6, &got); /* 5.6 of them are 16 MiB */
    assert_int_equal(ask_int("LLEN resque:queue:default"), 4);
    assert_int_equal(
        ask_int("EVAL \"return tonumber(string.match(redis.call('LINDEX', 'resque:queue:default', "
                "0), '%[(%d+),'))\" 0"),
        7);
    assert_int_equal(shown(), 2);
    end(s, &got);
}

/* resque W18: JSON that is no job, which the server cannot tell. */
static void an_entry_that_is_no_job_is_shown_by_no_slot(void **state)
{
    (void)state;
    struct lq_store *s = open_store();
    struct lq_leased_vec got;
    (void)ask(
        "RPUSH resque:queue:default \"{\\\"class\\\":5,\\\"args\\\":[]}\" \"{\\\"class\" nonsense");
    push_ok(1);
    join(s, "a", 60000);
    take(s, 10, 1, &got);
    assert_int_equal(shown(), 0);
    assert_int_equal(ask_int("LLEN resque:failed"), 3);
    settle(s, &got.job[0], LADE_DONE);
    end(s, &got);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_worker_that_lost_its_lease_settles_nothing),
        cmocka_unit_test(replies_that_are_lost_are_given_again),
        cmocka_unit_test(jobs_are_taken_ahead_shown_when_they_stay_and_counted),
        cmocka_unit_test(in_strict_mode_none_is_taken_ahead),
        cmocka_unit_test(a_take_of_large_entries_ends_in_time_and_keeps_the_order),
        cmocka_unit_test(an_entry_that_is_no_job_is_shown_by_no_slot),
        cmocka_unit_test(an_enqueue_whose_reply_is_lost_is_not_sent_again),
        cmocka_unit_test(ruby_workers_without_a_heartbeat_for_long_are_pruned_and_no_others)};
    return kit_main(argc, argv, "resque leases", tests, LB_ARRAY_LEN(tests));
}
