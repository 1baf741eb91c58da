/* share_cases.c - contract: several handles and threads on the same jobs */
#include "contract.h"

static void second_handle_sees_the_same_jobs(void **state)
{
    (void)state;
    ct_join("w", "q");
    ct_add("q", "a b");
    struct lq_leased j = ct_take("w", "q", 1) == 1 ? ct.got.job[0] : (struct lq_leased){0};
    struct lq_store *first = ct.s;
    ct.s = ct_open();
    int outcome = ct_settle("q", &j, LQ_TO_COMPLETED);
    bool same = ct_state("q", "b") == LADE_STATE_READY;
    struct lq_store *second = ct.s;
    ct.s = first;
    lq_store_close(second);
    assert_int_equal(outcome, LADE_DONE);
    assert_true(same);
    assert_int_equal(ct_state("q", "a"), LADE_STATE_COMPLETED);
}

static void jobs_stay_when_another_handle_closes(void **state)
{
    (void)state;
    ct_add("q", "a");
    ct_join("w", "q");
    struct lq_store *first = ct.s;
    ct.s = ct_open();
    lq_store_close(first);
    assert_int_equal(ct_count("q", LADE_STATE_READY), 1);
    struct lq_leased j = ct_take_one("w", "q");
    assert_int_equal(ct_settle("q", &j, LQ_TO_COMPLETED), LADE_DONE);
}

/* Only where the jobs are not this process's own. (chasqui 14) */
static void jobs_and_leases_outlive_every_handle(void **state)
{
    (void)state;
    struct lq_store *keeper = ct.ops->caps & LQ_CAP_PROCESSES ? NULL : ct_open();
    ct_join("w", "q");
    ct_add("q", "a b");
    ct_add_in("q", "later", CT_HOUR);
    int64_t due = ct_row("q", "later")->run_at_ms;
    assert_int_equal(ct_take("w", "q", 1), 1);
    struct lq_leased j = ct.got.job[0];
    lq_store_close(ct.s);
    ct.s = ct_open();
    lq_store_close(keeper);
    assert_int_equal(ct_state("q", "b"), LADE_STATE_READY);
    assert_int_equal(ct_settle("q", &j, LQ_TO_COMPLETED), LADE_DONE);
    assert_int_equal(ct_state("q", "a"), LADE_STATE_COMPLETED);
    assert_int_equal(ct_row("q", "later")->run_at_ms, due); /* C-069: it waits for the rest only */
    assert_int_equal(ct_info("q").total_enqueued, 3);
}

/* threads that all do the same, and what each got done */
struct racer {
    struct lr_thread thread;
    void (*run)(struct racer *r);
    struct lq_store *s; /* a handle of its own */
    char name[32];
    size_t n;    /* done */
    int failure; /* the first unexpected result */
};

#define N_RACERS 4

static void start_racer(void *arg)
{
    struct racer *r = arg;
    r->run(r);
}

/* Runs it on N_RACERS threads, each with its own handle, and gives the sum of what they did. */
static size_t race(void (*run)(struct racer *r), const char *queue)
{
    struct racer racer[N_RACERS] = {0};
    size_t total = 0;
    for (size_t i = 0; i < N_RACERS; i++) {
        racer[i].run = run;
        racer[i].s = ct_open();
        (void)snprintf(racer[i].name, sizeof(racer[i].name), "racer%zu", i);
        ct_join(racer[i].name, queue);
    }
    for (size_t i = 0; i < N_RACERS; i++)
        assert_int_equal(lr_thread_start(&racer[i].thread, "racer", start_racer, &racer[i]), 0);
    for (size_t i = 0; i < N_RACERS; i++)
        lr_thread_join(&racer[i].thread);
    for (size_t i = 0; i < N_RACERS; i++)
        lq_store_close(racer[i].s);
    for (size_t i = 0; i < N_RACERS; i++) {
        if (racer[i].failure)
            print_error("%s: %s\n", racer[i].name, lade_result_name(racer[i].failure));
        assert_int_equal(racer[i].failure, 0);
        total += racer[i].n;
    }
    return total;
}

#define N_JOBS 400

static void take_all(struct racer *r)
{
    const char *queue = "q";
    size_t n = 1;
    while (n > 0 && r->failure == 0) {
        struct lq_take take = {.worker = r->name, .lanes = {&queue, 1}, .max = 7};
        struct lq_leased_vec got = {0};
        r->failure = lq_settle_take(r->s, NULL, 0, &take, &got, NULL);
        n = got.n;
        r->n += n;
        lb_arena_fini(&got.arena);
    }
}

/* chronos 4; chasqui 25 */
static void each_job_is_taken_by_exactly_one(void **state)
{
    (void)state;
    ct_add_many("q", "j", N_JOBS);
    assert_int_equal(race(take_all, "q"), N_JOBS);
    assert_int_equal(ct_count("q", LADE_STATE_ACTIVE), N_JOBS);
    assert_int_equal(ct_count("q", LADE_STATE_READY), 0);
}

static void put_all(struct racer *r)
{
    for (int i = 0; i < 100 && r->failure == 0; i++) {
        char id[16];
        (void)snprintf(id, sizeof(id), "j%d", i);
        struct lq_put item = {.queue = "q",
                              .id = lb_slice_str(id),
                              .body = lb_slice_str("\x01"
                                                   "4x"),
                              .level = 4};
        r->failure = lq_put(r->s, &item, 1, NULL);
        r->n += item.outcome == LADE_DONE;
    }
}

/* chasqui 4, 18 */
static void each_id_is_put_by_exactly_one(void **state)
{
    (void)state;
    assert_int_equal(race(put_all, "q"), 100);
    assert_int_equal(ct_count("q", LADE_STATE_READY), 100);
}

static void redrive_all(struct racer *r)
{
    int rc = LADE_MORE;
    while (rc == LADE_MORE) {
        size_t n = 0;
        rc = r->s->ops->redrive(r->s, "q", 9, &n, NULL);
        r->n += n;
    }
    r->failure = rc;
}

/* C-032 (chasqui 39) */
static void operators_that_redrive_at_once_move_each_job_once(void **state)
{
    (void)state;
    ct_add_many("q", "j", 200);
    for (size_t i = 0; i < 200; i++)
        assert_int_equal(ct_act("q", LADE_JOB_KILL, ct_format("j%04zu", i)), LADE_DONE);
    assert_int_equal(race(redrive_all, "q"), 200);
    assert_int_equal(ct_count("q", LADE_STATE_READY), 200);
    assert_int_equal(ct_count("q", LADE_STATE_DEAD), 0);
}

static void cancel_all(struct racer *r)
{
    for (int i = 0; i < 100 && r->failure == 0; i++) {
        char id[16];
        int outcome = -1;
        (void)snprintf(id, sizeof(id), "j%04d", i);
        struct lb_slice one = lb_slice_str(id);
        int rc = r->s->ops->act(r->s, "q", LADE_JOB_CANCEL, &one, 1, &outcome, NULL);
        r->failure = rc < 0 ? rc : 0;
        r->n += outcome == LADE_DONE;
    }
}

/* C-081 (chasqui 20) */
static void of_operators_that_act_at_once_exactly_one_succeeds(void **state)
{
    (void)state;
    ct_add_many("q", "j", 100);
    ct_join("w", "q");
    assert_int_equal(ct_take("w", "q", 50), 50); /* the marked ones too */
    assert_int_equal(race(cancel_all, "q"), 100);
}

static void promote_all(struct racer *r)
{
    const char *queue = "q";
    size_t n = 1;
    while (n > 0 && r->failure == 0) {
        int64_t next;
        r->failure = lq_promote(r->s, (struct lq_lanes){&queue, 1}, 9, &n, &next, NULL);
        r->n += r->failure == 0 ? n : 0;
    }
}

/* C-067 (chasqui 15) */
static void each_due_job_is_promoted_by_exactly_one(void **state)
{
    (void)state;
    for (size_t i = 0; i < 300; i++)
        ct_add_in("q", ct_format("j%zu", i), 1);
    ct_step(5);
    assert_int_equal(race(promote_all, "q"), 300);
    assert_int_equal(ct_count("q", LADE_STATE_READY), 300);
    assert_int_equal(ct_count("q", LADE_STATE_SCHEDULED), 0);
}

static void reclaim_all(struct racer *r)
{
    const char *queue = "q";
    int rc = LADE_DONE;
    while (rc == LADE_DONE) {
        struct lq_take take = {.worker = r->name, .lanes = {&queue, 1}, .max = 5};
        struct lq_leased_vec got = {0};
        rc = lq_reclaim(r->s, &take, &got, NULL);
        r->n += got.n;
        lb_arena_fini(&got.arena);
    }
    r->failure = rc == LADE_EMPTY ? 0 : rc;
}

static void each_lease_of_the_dead_is_reclaimed_by_exactly_one(void **state)
{
    (void)state;
    ct_join("w", "q");
    ct_add_many("q", "j", 200);
    assert_int_equal(ct_take("w", "q", 200), 200);
    ct_die("w", "q");
    assert_int_equal(race(reclaim_all, "q"), 200);
    assert_int_equal(ct_count("q", LADE_STATE_ACTIVE), 200);
}

static const struct CMUnitTest tests[] = {
    CT_TEST(second_handle_sees_the_same_jobs),
    CT_TEST(jobs_stay_when_another_handle_closes),
    CT_TEST(jobs_and_leases_outlive_every_handle),
    CT_TEST(each_job_is_taken_by_exactly_one),
    CT_TEST(each_id_is_put_by_exactly_one),
    CT_TEST(operators_that_redrive_at_once_move_each_job_once),
    CT_TEST(of_operators_that_act_at_once_exactly_one_succeeds),
    CT_TEST(each_due_job_is_promoted_by_exactly_one),
    CT_TEST(each_lease_of_the_dead_is_reclaimed_by_exactly_one),
};

CT_GROUP(ct_share_group, tests);
