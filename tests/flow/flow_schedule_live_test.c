/*
 * flow_schedule_live_test.c - workers and schedulers fire schedules, on each store, in time that really passes
 *
 * What flow_fire_test.c holds with a stepped clock, which Redis cannot be given, is held here on all stores alike.
 */
#include "support/rig_test.h"

#include <pthread.h>

#include "base/clock.h"
#include "rt/seam.h"

static uint64_t n_completed(lade *q)
{
    lade_queue_info info;
    return lade_queue_get(q, "default", &info, NULL) == 0 ? info.total_completed : 0;
}

static bool wait_completed(lade *q, uint64_t n)
{
    int64_t give_up = lb_deadline_in(TS_SOON);
    while (n_completed(q) < n && lb_clock_mono() < give_up)
        lr_sleep_until(lb_deadline_in(5 * LADE_MILLISECOND));
    return n_completed(q) >= n;
}

static void set(lade *q, const char *id, int64_t limit)
{
    lade_err err = {0};
    lade_schedule_spec s = {.id = id,
                            .every = LADE_SECOND,
                            .missed = LADE_MISSED_ALL,
                            .limit = limit,
                            .job = {.kind = "ok"}};
    if (lade_schedule_set(q, &s, NULL, NULL, &err) != 0)
        fail_msg("set: %s", err.text);
}

/* chronos 58, chasqui 48: the worker learns of a schedule that its process sets; a stop resigns. */
static void worker_fires_what_is_set_while_it_runs(void **state)
{
    struct ts_fix *f = *state;
    lade_schedule_leader leader;
    ts_local_open(&f->local, &f->r, f->q, &(lade_worker_config){.concurrency = 2});
    ts_local_handle_all(&f->local);
    ts_local_run(&f->local);
    set(f->q, "tick", 2);
    assert_true(wait_completed(f->q, 2));
    lade_schedule_view *v = NULL;
    assert_int_equal(lade_schedule_get(f->q, "tick", &v, NULL), 0);
    assert_int_equal(v->n_fired, 2);
    assert_int_equal(v->state, LADE_SCHEDULE_ENDED);
    lade_schedule_view_free(v);
    set(f->q, "more", 0);
    assert_true(wait_completed(f->q, 3));
    assert_int_equal(ts_local_stop(&f->local), 0);
    assert_int_equal(lade_schedule_get_leader(f->q, &leader, NULL), 0);
    assert_string_equal(leader.name, "");
    assert_true(leader.fence > 0 && leader.seen_at > 0);
}

/* chasqui 48: a worker that was told to take no part leaves them alone. */
static void worker_that_opts_out_leads_nobody(void **state)
{
    struct ts_fix *f = *state;
    lade_schedule_leader leader;
    lade_id id;
    ts_local_open(&f->local, &f->r, f->q, &(lade_worker_config){.no_scheduler = true});
    ts_local_handle_all(&f->local);
    set(f->q, "tick", 0);
    ts_local_run(&f->local);
    assert_int_equal(lade_schedule_run(f->q, "tick", &id, NULL), 0);
    assert_true(wait_completed(f->q, 1));
    assert_int_equal(ts_local_stop(&f->local), 0);
    assert_int_equal(lade_schedule_get_leader(f->q, &leader, NULL), 0);
    assert_int_equal(leader.seen_at, 0);
}

/* instances -------------------------------------------------------------------------------------------------------- */

#define N_INSTANCES 3

/* A scheduler on a thread and, where the store has more than one process, on a handle of its own. */
struct instance {
    lade *q;
    lade_scheduler *s;
    pthread_t thread;
    bool is_own, runs;
};

static void keep_quiet(void *ctx, const char *line)
{
    (void)ctx;
    (void)line;
}

static void *run_scheduler(void *arg)
{
    struct instance *it = arg;
    return lade_scheduler_run(it->s, NULL) == 0 ? NULL : it;
}

static void start_instance(struct ts_fix *f, struct instance *it)
{
    it->is_own = ts_rig_store() != TS_MEMORY;
    it->q = it->is_own ? ts_rig_open(&f->r) : f->q;
    assert_int_equal(
        lade_scheduler_open(&it->s, it->q, &(lade_scheduler_config){.log = keep_quiet}, NULL), 0);
    assert_int_equal(pthread_create(&it->thread, NULL, run_scheduler, it), 0);
    it->runs = true;
}

static void stop_instance(struct instance *it)
{
    void *failed = NULL;
    if (!it->runs)
        return;
    lade_scheduler_stop(it->s);
    assert_int_equal(pthread_join(it->thread, &failed), 0);
    assert_null(failed);
    it->runs = false;
}

static lade_scheduler_stats close_instance(struct instance *it)
{
    lade_scheduler_stats st;
    stop_instance(it);
    lade_scheduler_get_stats(it->s, &st);
    lade_scheduler_close(it->s);
    if (it->is_own)
        lade_close(it->q);
    return st;
}

static bool is_fired(lade *q, const char *id, uint64_t n)
{
    lade_schedule_view *v = NULL;
    assert_int_equal(lade_schedule_get(q, id, &v, NULL), 0);
    bool yes = v->n_fired >= n;
    lade_schedule_view_free(v);
    return yes;
}

static bool is_ended(lade *q, const char *id)
{
    lade_schedule_view *v = NULL;
    assert_int_equal(lade_schedule_get(q, id, &v, NULL), 0);
    bool yes = v->state == LADE_SCHEDULE_ENDED;
    lade_schedule_view_free(v);
    return yes;
}

/* The nominal times of a schedule's jobs, of which nothing was run: `n` of them, each a second after the one before. The first. */
static int64_t assert_seconds_in_a_row(lade *q, const char *schedule, size_t n)
{
    lade_cursor cursor = {0};
    lade_job_view *v[64];
    lade_schedule_id id;
    int64_t at = 0, least = INT64_MAX, most = 0;
    size_t got = 0, found = 0;
    int rc = lade_job_list(q, "default", LADE_STATE_READY, &cursor, 64, v, &got, NULL);
    assert_true(rc == 0 || (n == 0 && (rc == LADE_EMPTY || rc == LADE_NOT_FOUND)));
    for (size_t i = 0; rc == 0 && i < got; i++) {
        bool mine = lade_schedule_of_job(v[i]->id, &id, &at) && strcmp(id.text, schedule) == 0;
        lade_job_view_free(v[i]);
        if (!mine)
            continue;
        found++;
        least = LB_MIN(least, at);
        most = LB_MAX(most, at);
    }
    assert_int_equal(found, n); /* ids are there once, so these are different times */
    if (n > 0)
        assert_int_equal(most - least, (int64_t)(n - 1) * LADE_SECOND);
    return least;
}

/* Which of them leads; -1 = none does. */
static int leader_of(const struct instance *it)
{
    for (int i = 0; i < N_INSTANCES; i++) {
        lade_scheduler_stats st;
        lade_scheduler_get_stats(it[i].s, &st);
        if (st.leads)
            return i;
    }
    return -1;
}

/* chronos 57 and 58, chasqui 43 and 48: no time twice and none missed, also when the one that leads resigns in between. */
static void each_time_is_one_job_whoever_of_three_leads(void **state)
{
    struct ts_fix *f = *state;
    struct instance it[N_INSTANCES] = {0};
    uint64_t fired = 0, takeovers = 0;
    set(f->q, "tick", 5);
    for (int i = 0; i < N_INSTANCES; i++)
        start_instance(f, &it[i]);
    assert_true(TS_UNTIL(TS_SOON, is_fired(f->q, "tick", 2)));
    int first = -1;
    assert_true(TS_UNTIL(TS_SOON, (first = leader_of(it)) >= 0));
    stop_instance(&it[first]);
    assert_true(TS_UNTIL(TS_SOON, leader_of(it) >= 0));
    assert_true(TS_UNTIL(TS_SOON, is_ended(f->q, "tick")));
    for (int i = 0; i < N_INSTANCES; i++) {
        lade_scheduler_stats st = close_instance(&it[i]);
        fired += st.fired + st.made_up;
        takeovers += st.takeovers;
    }
    assert_int_equal(fired, 5);
    assert_true(takeovers >= 2);
    (void)assert_seconds_in_a_row(f->q, "tick", 5);
}

/* chronos 59, chasqui 45 and 47: five times that nobody was there for, and an end behind them. */
static void missed_times_follow_the_policy_in_real_time(void **state)
{
    struct ts_fix *f = *state;
    struct instance it = {0};

    static const struct {
        const char *id;
        enum lade_schedule_missed missed;
        uint64_t fires;
    } rows[] = {
        {"skip", LADE_MISSED_SKIP, 0}, {"one", LADE_MISSED_ONE, 1}, {"all", LADE_MISSED_ALL, 5}};

    int64_t now = 0;
    lade_err err = {0};
    assert_int_equal(lade_now(f->q, &now, NULL), 0);
    int64_t start = (now / LADE_SECOND + 2) * LADE_SECOND;
    for (size_t i = 0; i < LB_ARRAY_LEN(rows); i++) {
        lade_schedule_spec s = {.id = rows[i].id,
                                .every = LADE_SECOND,
                                .missed = rows[i].missed,
                                .start = start,
                                .end = start + 5 * LADE_SECOND,
                                .job = {.kind = "ok"}};
        if (lade_schedule_set(f->q, &s, NULL, NULL, &err) != 0)
            fail_msg("set: %s", err.text);
    }
    while (now < start + 5 * LADE_SECOND) {
        ts_nap_ms(20);
        assert_int_equal(lade_now(f->q, &now, NULL), 0);
    }
    start_instance(f, &it);
    for (size_t i = 0; i < LB_ARRAY_LEN(rows); i++)
        assert_true(TS_UNTIL(TS_SOON, is_ended(f->q, rows[i].id)));
    (void)close_instance(&it);
    for (size_t i = 0; i < LB_ARRAY_LEN(rows); i++) {
        lade_schedule_view *v = NULL;
        assert_int_equal(lade_schedule_get(f->q, rows[i].id, &v, NULL), 0);
        assert_int_equal(v->n_fired, rows[i].fires);
        assert_int_equal(v->n_missed, 5 - rows[i].fires);
        lade_schedule_view_free(v);
        int64_t first = assert_seconds_in_a_row(f->q, rows[i].id, rows[i].fires);
        if (rows[i].fires == 1)
            assert_int_equal(first, start + 4 * LADE_SECOND); /* the latest */
    }
}

/* chronos 62: what the store did not take, or took without an answer, is made again, once. */
static void a_fire_that_fails_is_made_again_in_real_time(void **state)
{
#ifdef LADE_FAULTS
    static const char *const faults[] = {"schedule_fire.before:1:fail",
                                         "schedule_fire.after:1:fail"};
    struct ts_fix *f = *state;
    for (size_t i = 0; i < LB_ARRAY_LEN(faults); i++) {
        struct instance it = {0};
        set(f->q, i ? "lost" : "tick", 2);
        lb_fault_arm(faults[i]);
        start_instance(f, &it);
        bool ended = TS_UNTIL(TS_SOON, is_ended(f->q, i ? "lost" : "tick"));
        lb_fault_arm(NULL);
        lade_scheduler_stats st = close_instance(&it);
        assert_true(ended);
        assert_int_equal(st.failed, 1);
        (void)assert_seconds_in_a_row(f->q, i ? "lost" : "tick", 2);
    }
#else
    (void)state;
#endif
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TS_TEST(worker_fires_what_is_set_while_it_runs),
        TS_TEST(worker_that_opts_out_leads_nobody),
        TS_TEST(each_time_is_one_job_whoever_of_three_leads),
        TS_TEST(missed_times_follow_the_policy_in_real_time),
        TS_TEST(a_fire_that_fails_is_made_again_in_real_time),
    };
    ts_rig_main(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
