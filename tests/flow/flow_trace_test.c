/*
 * flow_trace_test.c - what is over and not to be kept leaves nothing: chronos 3, chasqui 24, 55
 *
 * Everything that a store holds is counted, keys and their elements or rows of all tables: after a round of jobs that use what jobs
 * may use there is no more than after the round before.
 */
#include <sqlite3.h>

#include "support/rig_test.h"

#include <stdatomic.h>

#define ROUND 40
#define KINDS 6

static _Atomic int n_done;

/* Keys, and what is in them. */
static int64_t size_of_server(struct ts_fix *f)
{
    static const char script[] =
        "EVAL \"local n, size = 0, {hash = 'HLEN', list = 'LLEN', zset = 'ZCARD', set = 'SCARD', stream = 'XLEN'} "
        "for _, k in ipairs(redis.call('KEYS', '*')) do local c = size[redis.call('TYPE', k).ok] "
        "n = n + 1 + (c and redis.call(c, k) or 0) end return n\" 0";
    char reply[256];
    assert_true(ts_redis_ask(&f->r.redis, script, reply, sizeof(reply)));
    assert_int_equal(reply[0], ':');
    return strtoll(reply + 1, NULL, 10);
}

static int64_t number(sqlite3 *db, const char *text)
{
    sqlite3_stmt *st = NULL;
    assert_int_equal(sqlite3_prepare_v2(db, text, -1, &st, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(st), SQLITE_ROW);
    int64_t n = sqlite3_column_int64(st, 0);
    (void)sqlite3_finalize(st);
    return n;
}

static int64_t size_of_file(struct ts_fix *f)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *st = NULL;
    int64_t n = 0;
    assert_int_equal(sqlite3_open(strchr(f->r.direct, ':') + 1, &db), SQLITE_OK);
    assert_int_equal(sqlite3_busy_timeout(db, 30000), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT name FROM sqlite_master WHERE type = 'table'",
                                        -1, &st, NULL),
                     SQLITE_OK);
    while (sqlite3_step(st) == SQLITE_ROW) {
        char text[160];
        (void)snprintf(text, sizeof(text), "SELECT count(*) FROM \"%s\"",
                       (const char *)sqlite3_column_text(st, 0));
        n += number(db, text);
    }
    (void)sqlite3_finalize(st);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    return n;
}

static int64_t size_of(struct ts_fix *f)
{
    return f->r.store == TS_REDIS ? size_of_server(f) : size_of_file(f);
}

/* Says, records and gives what a job can; the first time it fails. */
static lade_outcome use_all(lade_job *job, void *ctx)
{
    (void)ctx;
    lade_job_progress(job, 50, "half way");
    lade_job_log(job, "a line");
    if (lade_effect(job, "effect", LADE_STR("had"), NULL) < 0)
        return LADE_DEAD;
    if (lade_job_attempt(job) == 1) {
        lade_job_retry_in(job, 0);
        return LADE_RETRY;
    }
    if (lade_job_result(job, LADE_STR("result")) < 0)
        return LADE_DEAD;
    n_done++;
    return LADE_OK;
}

static lade_outcome just_end(lade_job *job, void *ctx)
{
    (void)job;
    (void)ctx;
    n_done++;
    return LADE_OK;
}

static void one_round(struct ts_fix *f, lade *q, int round)
{
    char unique[32], key[8];
    n_done = 0;
    for (int i = 0; i < ROUND; i++) {
        (void)snprintf(unique, sizeof(unique), "u%d-%d", round, i);
        (void)snprintf(key, sizeof(key), "k%d", i % 3);
        lade_job_spec specs[KINDS] = {
            {.kind = "plain"},
            {.kind = "all"},
            {.kind = "plain", .unique = {.key = {unique, strlen(unique)}}},
            {.kind = "all", .key = {key, strlen(key)}},
            {.kind = "plain", .in = 20 * LADE_MILLISECOND, .key = {key, strlen(key)}},
            {.kind = "plain", .id = unique, .priority = i % 5},
        };
        assert_int_equal(lade_enqueue_many(q, specs, KINDS, NULL, NULL, NULL), 0);
    }
    assert_true(TS_UNTIL(TS_SOON, n_done == ROUND * KINDS));
    assert_true(ts_rig_wait_quiet(f->q, TS_SOON));
}

static lade *open_keeping_none(struct ts_fix *f)
{
    lade *q = NULL;
    lade_options o = ts_rig_options();
    o.keep_completed.count = o.keep_dead.count = -1;
    assert_int_equal(lade_open(&q, f->r.direct, &o, NULL), 0);
    return q;
}

static void start_worker(struct ts_fix *f, lade *q)
{
    ts_local_open(&f->local, &f->r, q, &(lade_worker_config){.concurrency = 8});
    assert_int_equal(lade_worker_handle(f->local.w, "plain", just_end, NULL), 0);
    assert_int_equal(lade_worker_handle(f->local.w, "all", use_all, NULL), 0);
    ts_local_run(&f->local);
}

/* chronos 3; chasqui 24 */
static void jobs_that_are_not_kept_leave_no_trace(void **state)
{
    struct ts_fix *f = *state;
    lade *q = open_keeping_none(f);
    start_worker(f, q);
    one_round(f, q, 0);
    int64_t base = size_of(f);
    for (int round = 1; round <= 3; round++) {
        one_round(f, q, round);
        (void)TS_UNTIL(TS_SOON / 3, size_of(f) <= base);
        print_message("%lld things, %lld after round %d\n", (long long)base, (long long)size_of(f),
                      round);
        assert_true(size_of(f) <= base);
    }
    assert_int_equal(ts_local_stop(&f->local), 0);
    lade_close(q);
}

/* chasqui 55: a queue that is emptied and forgotten leaves no key of its own, whatever its jobs had. */
static void a_queue_that_is_removed_leaves_no_trace(void **state)
{
    struct ts_fix *f = *state;
    lade *q = open_keeping_none(f);
    int64_t base = -1;
    for (int round = 0; round < 2; round++) {
        start_worker(f, q);
        one_round(f, q, round);
        assert_int_equal(ts_local_stop(&f->local), 0);
        size_t n;
        lade_job_spec left[] = {{.kind = "plain"},
                                {.kind = "plain", .key = LADE_STR("left")},
                                {.kind = "plain", .in = LADE_HOUR},
                                {.kind = "plain", .unique = {.key = LADE_STR("left")}}};
        assert_int_equal(lade_enqueue_many(q, left, LB_ARRAY_LEN(left), NULL, NULL, NULL), 0);
        for (int s = 0; s < LADE_N_STATES; s++) {
            if (s != LADE_STATE_ACTIVE)
                assert_true(lade_queue_purge(q, "default", (enum lade_state)s, 1000, &n, NULL) ==
                            0);
        }
        assert_int_equal(lade_queue_remove(q, "default", NULL), 0);
        int64_t now = size_of(f);
        print_message("%lld things after round %d\n", (long long)now, round);
        if (base >= 0)
            assert_true(now <= base);
        base = now;
    }
    lade_close(q);
}

int main(int argc, char **argv)
{
    ts_rig_main(argc, argv);
    const struct CMUnitTest tests[] = {
        TS_TEST(jobs_that_are_not_kept_leave_no_trace),
        TS_TEST(a_queue_that_is_removed_leaves_no_trace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
