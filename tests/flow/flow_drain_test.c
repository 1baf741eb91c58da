/* flow_drain_test.c - the testing kit for users (<lade/testing.h>), on the stores that have a clock to be stepped */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <lade/testing.h>

#include "base/base.h"
#include "support/tmpdir.h"

#define SEEN_MAX 4096

/* One test's store, worker and clock; what handlers saw. */
struct kit {
    struct ts_tmpdir dir;
    lade_test_clock clock;
    lade *q;
    lade_worker *w;
    lade_err err;
    char log[SEEN_MAX][48]; /* "id attempt seconds since the start" */
    int n;
    int fail; /* runs that fail first */
    int64_t start;
};

static struct kit kit;
static const char *store;

static void note(const lade_job *job)
{
    long long s = (kit.clock.now - kit.start) / LADE_SECOND;
    if (kit.n < SEEN_MAX)
        (void)snprintf(kit.log[kit.n++], sizeof(kit.log[0]), "%.20s %d %lld", lade_job_id(job),
                       lade_job_attempt(job), s);
}

static lade_outcome record(lade_job *job, void *ctx)
{
    (void)ctx;
    note(job);
    return LADE_OK;
}

static lade_outcome fail_some(lade_job *job, void *ctx)
{
    (void)ctx;
    note(job);
    return lade_job_attempt(job) <= kit.fail ? LADE_RETRY : LADE_OK;
}

static lade_outcome put_next(lade_job *job, void *ctx)
{
    (void)ctx;
    note(job);
    lade_job_spec next = {.kind = "chain", .in = LADE_HOUR};
    return lade_enqueue(kit.q, &next, NULL, NULL) == 0 ? LADE_OK : LADE_DEAD;
}

static lade_outcome put_for_ever(lade_job *job, void *ctx)
{
    (void)job;
    (void)ctx;
    lade_job_spec next = {.kind = "busy"};
    return lade_enqueue(kit.q, &next, NULL, NULL) == 0 ? LADE_OK : LADE_DEAD;
}

static lade_outcome take_long(lade_job *job, void *ctx)
{
    (void)ctx;
    note(job);
    lade_test_clock_step(&kit.clock, 2 * LADE_HOUR);
    return LADE_OK;
}

static lade_outcome end_as(lade_job *job, void *ctx)
{
    (void)ctx;
    lade_bytes p = lade_job_payload(job);
    note(job);
    lade_job_snooze_for(job, LADE_DAY);
    if (lade_job_attempt(job) == 1 && *(const char *)p.data == 's' && kit.n < 2)
        return LADE_SNOOZE;
    switch (*(const char *)p.data) {
    case 'd':
        return LADE_DEAD;
    case 'c':
        return LADE_CANCEL;
    case 'x':
        return LADE_DISCARD;
    default:
        return LADE_OK;
    }
}

static lade_outcome die_of_payload(lade_job *job, void *ctx)
{
    (void)ctx;
    lade_job_error_bytes(job, lade_job_payload(job));
    return LADE_DEAD;
}

static void open_store(void)
{
    char url[300];
    lade_options options = {.clock = lade_test_clock_read, .clock_ctx = &kit.clock};
    (void)snprintf(url, sizeof(url), strcmp(store, "memory") == 0 ? "memory:" : "sqlite:%s/jobs.db",
                   kit.dir.path);
    assert_int_equal(lade_open(&kit.q, url, &options, &kit.err), 0);
    assert_int_equal(lade_worker_open(&kit.w, kit.q, NULL, &kit.err), 0);
    assert_int_equal(lade_worker_handle(kit.w, "record", record, NULL), 0);
    assert_int_equal(lade_worker_handle(kit.w, "fail", fail_some, NULL), 0);
    assert_int_equal(lade_worker_handle(kit.w, "chain", put_next, NULL), 0);
    assert_int_equal(lade_worker_handle(kit.w, "busy", put_for_ever, NULL), 0);
    assert_int_equal(lade_worker_handle(kit.w, "long", take_long, NULL), 0);
    assert_int_equal(lade_worker_handle(kit.w, "end", end_as, NULL), 0);
}

static int set_up(void **state)
{
    (void)state;
    memset(&kit, 0, sizeof(kit));
    kit.clock = (lade_test_clock)LADE_TEST_CLOCK;
    kit.start = kit.clock.now;
    lade_test_seed(1);
    assert_true(ts_tmpdir_make(&kit.dir));
    open_store();
    return 0;
}

static void close_store(void)
{
    lade_worker_close(kit.w);
    lade_close(kit.q);
    kit.w = NULL;
    kit.q = NULL;
}

static int tear_down(void **state)
{
    (void)state;
    close_store();
    ts_tmpdir_remove(&kit.dir);
    return 0;
}

static void enqueue(lade_job_spec spec)
{
    if (lade_enqueue(kit.q, &spec, NULL, &kit.err) != 0)
        fail_msg("%s", kit.err.text);
}

static lade_drain_stats drain(int64_t for_ns)
{
    lade_drain_stats stats;
    int64_t until = kit.clock.now + for_ns;
    if (lade_worker_drain(kit.w, until, &stats, &kit.err) != 0)
        fail_msg("%s", kit.err.text);
    assert_true(kit.clock.now >= until);
    return stats;
}

static size_t count_jobs(const char *kind, enum lade_state state)
{
    size_t n;
    assert_int_equal(lade_test_count(kit.q, NULL, kind, state, &n, &kit.err), 0);
    return n;
}

static void what_is_ready_runs_in_its_order_and_the_clock_steps_to_what_is_due(void **state)
{
    (void)state;
    enqueue((lade_job_spec){.kind = "record", .id = "a"});
    enqueue((lade_job_spec){.kind = "record", .id = "b", .priority = 2});
    enqueue((lade_job_spec){.kind = "record", .id = "day", .in = LADE_DAY});
    enqueue((lade_job_spec){.kind = "record", .id = "week", .in = 7 * LADE_DAY});
    enqueue((lade_job_spec){.kind = "record", .id = "later", .in = 8 * LADE_DAY});
    lade_drain_stats s = drain(7 * LADE_DAY);
    assert_int_equal(s.runs, 4);
    assert_int_equal(s.completed, 4);
    assert_int_equal(kit.n, 4);
    assert_string_equal(kit.log[0], "b 1 0");
    assert_string_equal(kit.log[1], "a 1 0");
    assert_string_equal(kit.log[2], "day 1 86400");
    assert_string_equal(kit.log[3], "week 1 604800");
    assert_int_equal(kit.clock.now, kit.start + 7 * LADE_DAY);
    assert_int_equal(count_jobs("record", LADE_STATE_SCHEDULED), 1);
    assert_int_equal(drain(2 * LADE_DAY).completed, 1); /* goes on where it was */
}

static void retries_wait_for_their_backoff(void **state)
{
    (void)state;
    kit.fail = 2;
    enqueue((lade_job_spec){.kind = "fail",
                            .id = "f",
                            .backoff = {.type = LADE_BACKOFF_EXPONENTIAL, .base = LADE_HOUR}});
    enqueue((lade_job_spec){.kind = "fail",
                            .id = "g",
                            .max_attempts = 2,
                            .backoff = {.type = LADE_BACKOFF_FIXED, .base = LADE_MINUTE}});
    lade_drain_stats s = drain(LADE_DAY);
    assert_int_equal(s.runs, 5);
    assert_int_equal(s.completed, 1);
    assert_int_equal(s.retried, 3);
    assert_int_equal(s.dead, 1);
    assert_string_equal(kit.log[2], "g 2 60");
    assert_string_equal(kit.log[3], "f 2 3600");
    assert_string_equal(kit.log[4], "f 3 10800"); /* an hour, then two more */
    assert_int_equal(count_jobs("fail", LADE_STATE_DEAD), 1);
    assert_int_equal(count_jobs("record", LADE_STATE_DEAD), 0);
}

static void each_outcome_is_counted(void **state)
{
    (void)state;
    enqueue((lade_job_spec){.kind = "end", .payload = LADE_STR("s")});
    enqueue((lade_job_spec){.kind = "end", .payload = LADE_STR("d")});
    enqueue((lade_job_spec){.kind = "end", .payload = LADE_STR("c")});
    enqueue((lade_job_spec){.kind = "end", .payload = LADE_STR("x")});
    enqueue((lade_job_spec){.kind = "nobody"});
    lade_drain_stats s = drain(0);
    assert_int_equal(s.snoozed, 1);
    assert_int_equal(s.dead, 1);
    assert_int_equal(s.cancelled, 1);
    assert_int_equal(s.discarded, 1);
    assert_int_equal(s.unroutable, 1);
    assert_int_equal(drain(LADE_DAY).completed, 1);
}

/* A week of a job that enqueues the next each hour, and retention by the stepped clock: 1 h for what is completed. */
static void week_goes_by(void **state)
{
    (void)state;
    enqueue((lade_job_spec){.kind = "chain"});
    lade_drain_stats s = drain(7 * LADE_DAY);
    assert_int_equal(s.runs, 7 * 24 + 1);
    assert_in_range(count_jobs("chain", LADE_STATE_COMPLETED), 1, 2);
    lade_finding *found;
    size_t n;
    assert_int_equal(lade_check(kit.q, &found, &n, &kit.err), 0);
    assert_int_equal(n, 0);
    lade_free(found);
}

static void handler_that_takes_long_keeps_its_job(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++)
        enqueue((lade_job_spec){.kind = "long"});
    lade_drain_stats s = drain(0);
    assert_int_equal(s.completed, 3);
    assert_int_equal(s.stale, 0);
    assert_int_equal(kit.clock.now, kit.start + 6 * LADE_HOUR);
}

static void what_never_ends_is_bounded(void **state)
{
    (void)state;
    if (strcmp(store, "memory") != 0)
        return; /* a million commits */
    enqueue((lade_job_spec){.kind = "busy"});
    lade_drain_stats s;
    assert_int_equal(lade_worker_drain(kit.w, kit.clock.now, &s, &kit.err), LADE_MORE);
    assert_int_equal(s.runs, 1000000);
    assert_int_equal(count_jobs("busy", LADE_STATE_READY), 1);
}

static void run_mixed(char *out, size_t size)
{
    size_t at = 0;
    lade_test_seed(42);
    kit.fail = 3;
    for (int i = 0; i < 20; i++) {
        lade_job_spec spec = {
            .kind = "fail",
            .backoff = {.type = LADE_BACKOFF_FIXED, .base = LADE_MINUTE, .jitter = 100}};
        enqueue(spec);
    }
    (void)drain(LADE_DAY);
    for (int i = 0; i < kit.n; i++)
        at += (size_t)snprintf(out + at, size - at, "%s\n", kit.log[i]);
}

static void same_seed_gives_the_same_runs(void **state)
{
    (void)state;
    static char first[8192], second[8192];
    run_mixed(first, sizeof(first));
    assert_int_equal(kit.n, 80);
    (void)tear_down(NULL);
    (void)set_up(NULL);
    run_mixed(second, sizeof(second));
    assert_string_equal(first, second);
}

/* Every day at 05:00 and each six hours, for a week; what was missed while nobody looked is made up for by one. */
static void schedules_fire_in_their_time(void **state)
{
    (void)state;
    lade_schedule_spec daily = {.id = "daily", .cron = "0 5 * * *", .job = {.kind = "record"}};
    lade_schedule_spec often = {.id = "often", .every = 6 * LADE_HOUR, .job = {.kind = "fail"}};
    assert_int_equal(lade_schedule_set(kit.q, &daily, NULL, NULL, &kit.err), 0);
    assert_int_equal(lade_schedule_set(kit.q, &often, NULL, NULL, &kit.err), 0);
    lade_drain_stats s = drain(7 * LADE_DAY);
    int at_five = 0;
    for (int i = 0; i < kit.n; i++) {
        const char *seconds = strrchr(kit.log[i], ' ') + 1;
        at_five += strtol(seconds, NULL, 10) % 86400 == 5 * 3600;
    }
    assert_int_equal(at_five, 7);
    assert_in_range(s.completed, 7 + 27, 7 + 29);
    assert_int_equal(drain(LADE_DAY).completed, 1 + 4);
}

static void what_cannot_be_drained_is_refused(void **state)
{
    (void)state;
    lade *plain;
    lade_worker *w;
    lade_err err;
    assert_int_equal(lade_worker_drain(NULL, 0, NULL, &err), -LADE_EINVAL);
    assert_int_equal(lade_worker_drain(kit.w, INT64_MAX, NULL, &err), -LADE_EINVAL);
    assert_non_null(strstr(err.text, "until is 9223372036854775807, beyond the year 2261"));
    int64_t now = kit.clock.now;
    assert_int_equal(lade_worker_drain(kit.w, INT64_MIN, NULL, &err), 0);
    assert_int_equal(kit.clock.now, now);
    assert_int_equal(lade_open(&plain, "memory:", NULL, NULL), 0);
    assert_int_equal(lade_worker_open(&w, plain, NULL, NULL), 0);
    assert_int_equal(lade_worker_drain(w, 0, NULL, &err), -LADE_EINVAL);
    assert_non_null(strstr(err.text, "lade_test_clock"));
    lade_worker_close(w);
    lade_close(plain);
    lade_test_clock_step(NULL, 1);
    lade_test_clock_step(&kit.clock, -LADE_DAY);
    assert_int_equal(kit.clock.now, kit.start);
    size_t n;
    assert_int_equal(lade_test_count(NULL, NULL, NULL, LADE_STATE_READY, &n, &err), -LADE_EINVAL);
    assert_int_equal(lade_test_count(kit.q, NULL, NULL, LADE_STATE_READY, NULL, &err),
                     -LADE_EINVAL);
}

#define KIT_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

static void bury(int n)
{
    for (int i = 0; i < n; i++)
        enqueue((lade_job_spec){.kind = "end", .payload = LADE_STR("d")});
    assert_int_equal(drain(0).dead, n);
}

static lade_redrive_report step_redrive(lade_redrive *run, int outcome)
{
    lade_redrive_report r;
    assert_int_equal(lade_redrive_step(run, &r, &kit.err), outcome);
    return r;
}

/* What died in the very millisecond in which a redrive begins was there before it. */
static void deaths_of_the_moment_before_do_not_stop_a_redrive(void **state)
{
    (void)state;
    lade_redrive *run = NULL;
    lade_redrive_plan plan = {.queue = "default", .stop_on = 10};
    bury(120);
    assert_int_equal(lade_redrive_open(&run, kit.q, &plan, &kit.err), 0);
    size_t first = step_redrive(run, LADE_MORE).moved;
    lade_test_clock_step(&kit.clock, LADE_MILLISECOND);
    size_t again = drain(0).dead;
    lade_redrive_report r = step_redrive(run, 0);
    lade_redrive_close(run);
    assert_int_equal(first, 100);
    assert_int_equal(again, 100);
    assert_int_equal(r.phase, LADE_REDRIVE_STOPPED); /* those are new */
    assert_int_equal(r.moved, 100);
}

static void a_canary_is_judged_by_what_came_after_its_move(void **state)
{
    (void)state;
    lade_redrive *run = NULL;
    lade_redrive_plan plan = {.queue = "default", .canary = 1};
    bury(3);
    assert_int_equal(lade_redrive_open(&run, kit.q, &plan, &kit.err), 0);
    size_t moved = step_redrive(run, LADE_MORE).moved;
    int before = (int)step_redrive(run, LADE_MORE).phase; /* the clock stands still all the time */
    size_t again = drain(0).dead;
    int after = (int)step_redrive(run, 0).phase;
    lade_redrive_close(run);
    assert_int_equal(moved, 1);
    assert_int_equal(before, LADE_REDRIVE_WATCHING);
    assert_int_equal(again, 1);
    assert_int_equal(after, LADE_REDRIVE_CANARY_FAILED);
}

#define ERRORS 180 /* all lengths from 1 on that an event tells whole */

/* The class of the death is made in the buffer that holds the error: whatever its length, the event tells the error itself. */
static void event_of_a_death_tells_its_error(void **state)
{
    (void)state;
    char text[ERRORS];
    lade_tail *tail = NULL;
    const lade_event *event = NULL;
    size_t n = 0, n_failed = 0;
    memset(text, '7', sizeof(text));
    assert_int_equal(lade_worker_handle(kit.w, "die", die_of_payload, NULL), 0);
    assert_int_equal(lade_queue_events_set(kit.q, "default", 10000, &kit.err), 0);
    for (size_t size = 1; size <= ERRORS; size++) {
        lade_job_spec spec = {.kind = "die", .payload = {text, size}};
        assert_int_equal(lade_enqueue(kit.q, &spec, NULL, &kit.err), 0);
    }
    assert_int_equal(lade_worker_drain(kit.w, kit.clock.now, NULL, &kit.err), 0);
    assert_int_equal(
        lade_tail_open(&tail, kit.q, (const char *[]){"default"}, 1, LADE_TAIL_START, &kit.err), 0);
    while (lade_tail_next(tail, LADE_TAIL_BATCH_MAX, 0, &event, &n, &kit.err) == 0) {
        for (size_t i = 0; i < n; i++) {
            if (event[i].type != LADE_EVENT_FAILED)
                continue;
            n_failed++;
            assert_int_equal(strlen(event[i].reason), n_failed);
            assert_memory_equal(event[i].reason, text, n_failed);
        }
    }
    assert_int_equal(n_failed, ERRORS);
    lade_tail_close(tail);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        KIT_TEST(what_is_ready_runs_in_its_order_and_the_clock_steps_to_what_is_due),
        KIT_TEST(retries_wait_for_their_backoff),
        KIT_TEST(each_outcome_is_counted),
        KIT_TEST(week_goes_by),
        KIT_TEST(handler_that_takes_long_keeps_its_job),
        KIT_TEST(what_never_ends_is_bounded),
        KIT_TEST(same_seed_gives_the_same_runs),
        KIT_TEST(schedules_fire_in_their_time),
        KIT_TEST(event_of_a_death_tells_its_error),
        KIT_TEST(what_cannot_be_drained_is_refused),
        KIT_TEST(deaths_of_the_moment_before_do_not_stop_a_redrive),
        KIT_TEST(a_canary_is_judged_by_what_came_after_its_move),
    };
    store = argc > 1 ? argv[1] : "memory";
    return cmocka_run_group_tests(tests, NULL, NULL);
}
