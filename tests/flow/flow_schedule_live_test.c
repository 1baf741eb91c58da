/* flow_schedule_live_test.c - a worker of the test's own process fires schedules, on each store, in time that really passes */
#include "support/rig_test.h"

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

/* A worker that was told to take no part leaves them alone. */
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

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TS_TEST(worker_fires_what_is_set_while_it_runs),
        TS_TEST(worker_that_opts_out_leads_nobody),
    };
    ts_rig_main(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
