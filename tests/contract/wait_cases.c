/*
 * wait_cases.c - contract: idle workers sleep and are woken
 *
 * Most tests register the worker as idle, cause the event and only then wait: a wake-up that comes before the wait must
 * not be lost, and no thread is needed to see it. LONG is a deadline that is never reached unless it is lost.
 */
#include "contract.h"

#define LONG (60 * LADE_SECOND)

static void find_nothing(const char *worker, const char *lanes)
{
    assert_int_equal(ct_look_idle(worker, lanes), 0);
}

/* The wait returns long before LONG. */
static void assert_woken(const char *worker, const char *lanes)
{
    int64_t start = lb_clock_mono();
    EXPECT(0, ct.s->ops->wait(ct.s, worker, ct_lanes(lanes), start + LONG, &ct.err));
    assert_true(lb_clock_mono() - start < LONG / 2);
}

static void wait_ends_at_its_deadline(void **state)
{
    (void)state;
    ct_join("w", "q");
    find_nothing("w", "q");
    int64_t deadline = lb_deadline_in(30 * LADE_MILLISECOND);
    int rc = LADE_DONE;
    while (rc == LADE_DONE && lb_clock_mono() < deadline + LONG)
        rc = ct.s->ops->wait(ct.s, "w", ct_lanes("q"), deadline, &ct.err);
    EXPECT(LADE_EMPTY, rc);
    assert_true(lb_clock_mono() >= deadline);
    assert_true(lb_clock_mono() < deadline + LONG / 2);
}

static void wait_with_a_past_deadline_returns_at_once(void **state)
{
    (void)state;
    ct_join("w", "q");
    find_nothing("w", "q");
    int64_t start = lb_clock_mono();
    int rc = ct.s->ops->wait(ct.s, "w", ct_lanes("q"), start - LADE_SECOND, &ct.err);
    assert_true(rc == LADE_DONE || rc == LADE_EMPTY);
    assert_true(lb_clock_mono() - start < LONG / 2);
}

static void put_wakes_an_idle_worker(void **state)
{
    (void)state;
    ct_join("w", "q r");
    for (int i = 0; i < 3; i++) {
        find_nothing("w", "q r");
        ct_add(i % 2 ? "q" : "r", ct_format("a%d", i));
        assert_woken("w", "q r");
        assert_int_equal(ct_take("w", "q r", 1), 1);
    }
}

static void wake_ends_the_next_wait(void **state)
{
    (void)state;
    ct_join("w", "q");
    ct.s->ops->wake(ct.s, "w");
    find_nothing("w", "q");
    assert_woken("w", "q");
    find_nothing("w", "q");
    ct.s->ops->wake(ct.s, "w");
    assert_woken("w", "q");
    ct.s->ops->wake(ct.s, "stranger");
}

static void resume_wakes_idle_workers(void **state)
{
    (void)state;
    ct_join("w", "q");
    ct_join("v", "q");
    ct_add("q", "a b");
    EXPECT(0, ct.s->ops->pause(ct.s, "q", true, &ct.err));
    find_nothing("w", "q");
    find_nothing("v", "q");
    EXPECT(0, ct.s->ops->pause(ct.s, "q", false, &ct.err));
    assert_woken("w", "q");
    assert_woken("v", "q");
}

static void retry_wakes_an_idle_worker(void **state)
{
    (void)state;
    ct_join("w", "q");
    (void)ct_bring("q", "a", LADE_STATE_DEAD);
    find_nothing("w", "q");
    assert_int_equal(ct_act("q", LADE_JOB_RETRY, "a"), LADE_DONE);
    assert_woken("w", "q");
    assert_int_equal(ct_take("w", "q", 1), 1);
}

static void redrive_wakes_an_idle_worker(void **state)
{
    (void)state;
    size_t n = 0;
    ct_join("w", "q");
    (void)ct_bring("q", "a", LADE_STATE_DEAD);
    find_nothing("w", "q");
    EXPECT(0, ct.s->ops->redrive(ct.s, "q", 10, &n, &ct.err));
    assert_woken("w", "q");
    assert_int_equal(ct_take("w", "q", 1), 1);
}

static void job_handed_back_wakes_an_idle_worker(void **state)
{
    (void)state;
    ct_join("w", "q");
    ct_join("v", "q");
    struct lq_leased j = ct_bring("q", "a", LADE_STATE_ACTIVE);
    find_nothing("v", "q");
    assert_int_equal(ct_settle("q", &j, LQ_TO_READY), LADE_DONE);
    assert_woken("v", "q");
    assert_int_equal(ct_take("v", "q", 1), 1);
}

static void promote_wakes_an_idle_worker(void **state)
{
    (void)state;
    size_t n = 0;
    int64_t next;
    /* A machine that stands still between the put and the look finds the job due: once more, with a longer delay. */
    int64_t delay = 50;
    char *queue;
    do {
        queue = ct_format("q%lld", (long long)delay);
        delay *= 2;
        ct_join("w", queue);
        ct_add_in(queue, "a", delay);
    } while (ct_look_idle("w", queue) > 0 && delay < CT_HOUR);
    ct_step(delay + 5);
    EXPECT(0, lq_promote(ct.s, ct_lanes(queue), 10, &n, &next, &ct.err));
    assert_int_equal(n, 1);
    assert_woken("w", queue);
    assert_int_equal(ct_take("w", queue, 1), 1);
}

static void job_that_is_next_to_be_due_wakes_an_idle_worker(void **state)
{
    (void)state;
    ct_join("w", "q");
    ct_join("v", "q");
    find_nothing("w", "q");
    ct_add_in("q", "a", 2 * CT_HOUR);
    assert_woken("w", "q");
    struct lq_leased j = ct_bring("q", "b", LADE_STATE_ACTIVE);
    find_nothing("v", "q");
    assert_int_equal(ct_settle("q", &j, LQ_TO_RETRYING), LADE_DONE); /* in an hour */
    assert_woken("v", "q");
}

static void put_wakes_as_many_workers_as_there_are_jobs(void **state)
{
    (void)state;
    ct_join("w", "q");
    ct_join("v", "q");
    find_nothing("w", "q");
    find_nothing("v", "q");
    ct_add("q", "a b");
    assert_woken("w", "q");
    assert_woken("v", "q");
}

/* threads ---------------------------------------------------------------------------------------------------------- */

/* A worker on a thread of its own: takes, settles, waits. Asserts nothing; the main thread looks at it afterwards. */
struct helper {
    struct lr_thread thread;
    char name[32];
    const char *queue;
    size_t *done; /* of all helpers; guarded by: lock */
    struct lr_mutex *lock;
    size_t want;
    size_t n, lost; /* jobs done; waits that reached their deadline */
    int failure;    /* the first result < 0 */
};

static bool is_finished(struct helper *h)
{
    lr_mutex_lock(h->lock);
    bool finished = *h->done >= h->want;
    lr_mutex_unlock(h->lock);
    return finished;
}

static int complete(struct helper *h, struct lq_leased_vec *got)
{
    struct lq_settle it = {
        .queue = h->queue, .id = lb_slice_of(got->job[0].id), .fence = got->job[0].fence};
    int rc = lq_settle_take(ct.s, &it, 1, NULL, NULL, NULL);
    if (rc == 0 && it.outcome == 0) {
        h->n++;
        lr_mutex_lock(h->lock);
        ++*h->done;
        lr_mutex_unlock(h->lock);
    }
    return rc;
}

static void run_helper(void *arg)
{
    struct helper *h = arg;
    struct lq_lanes lanes = {&h->queue, 1};
    while (!is_finished(h) && h->failure == 0 && h->lost == 0) {
        struct lq_take take = {.worker = h->name, .lanes = lanes, .max = 1, .register_idle = true};
        struct lq_leased_vec got = {0};
        int rc = lq_settle_take(ct.s, NULL, 0, &take, &got, NULL);
        if (rc == 0 && got.n > 0)
            rc = complete(h, &got);
        else if (rc == 0)
            rc = ct.s->ops->wait(ct.s, h->name, lanes, lb_deadline_in(LONG), NULL);
        lb_arena_fini(&got.arena);
        h->lost += rc == LADE_EMPTY;
        h->failure = rc < 0 ? rc : rc == LADE_STALE ? LADE_STALE : 0;
    }
}

static bool is_done(struct lr_mutex *lock, const size_t *done, size_t want)
{
    lr_mutex_lock(lock);
    bool yes = *done >= want;
    lr_mutex_unlock(lock);
    return yes;
}

/* Puts one job after the other, each when the one before it is done, with `n` workers waiting for them. */
static void play_ping_pong(size_t n, size_t jobs)
{
    struct helper helper[4] = {0};
    struct lr_mutex lock;
    size_t done = 0;
    bool in_time = true;
    lr_mutex_init(&lock);
    for (size_t i = 0; i < n; i++) {
        helper[i] = (struct helper){.queue = "q", .done = &done, .lock = &lock, .want = jobs};
        (void)snprintf(helper[i].name, sizeof(helper[i].name), "helper%zu", i);
        ct_join(helper[i].name, "q");
        assert_int_equal(lr_thread_start(&helper[i].thread, "helper", run_helper, &helper[i]), 0);
    }
    for (size_t i = 0; i < jobs && in_time; i++) {
        struct lq_put item = ct_item("q", ct_format("j%zu", i));
        int64_t deadline = lb_deadline_in(LONG / 2);
        in_time = lq_put(ct.s, &item, 1, &ct.err) == 0;
        while (in_time && !is_done(&lock, &done, i + 1)) {
            lr_sleep_until(lb_deadline_in(LADE_MILLISECOND / 10));
            in_time = lb_clock_mono() < deadline;
        }
    }
    lr_mutex_lock(&lock);
    size_t finished = done;
    done = jobs;
    lr_mutex_unlock(&lock);
    for (size_t i = 0; i < n; i++)
        ct.s->ops->wake(ct.s, helper[i].name);
    size_t total = 0;
    for (size_t i = 0; i < n; i++) {
        lr_thread_join(&helper[i].thread);
        total += helper[i].n;
    }
    lr_mutex_fini(&lock);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(helper[i].failure, 0);
        assert_int_equal(helper[i].lost, 0);
    }
    assert_true(in_time);
    assert_int_equal(finished, jobs);
    assert_int_equal(total, jobs);
}

static void no_wake_up_is_lost_between_puts_and_one_waiter(void **state)
{
    (void)state;
    play_ping_pong(1, 200);
}

static void no_wake_up_is_lost_between_puts_and_several_waiters(void **state)
{
    (void)state;
    play_ping_pong(4, 200);
}

static const struct CMUnitTest tests[] = {
    CT_TEST(wait_ends_at_its_deadline),
    CT_TEST(wait_with_a_past_deadline_returns_at_once),
    CT_TEST(put_wakes_an_idle_worker),
    CT_TEST(wake_ends_the_next_wait),
    CT_TEST(resume_wakes_idle_workers),
    CT_TEST(retry_wakes_an_idle_worker),
    CT_TEST(redrive_wakes_an_idle_worker),
    CT_TEST(job_handed_back_wakes_an_idle_worker),
    CT_TEST(promote_wakes_an_idle_worker),
    CT_TEST(job_that_is_next_to_be_due_wakes_an_idle_worker),
    CT_TEST(put_wakes_as_many_workers_as_there_are_jobs),
    CT_TEST(no_wake_up_is_lost_between_puts_and_one_waiter),
    CT_TEST(no_wake_up_is_lost_between_puts_and_several_waiters),
};

CT_GROUP(ct_wait_group, tests);
