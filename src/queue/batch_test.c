/* batch_test.c - group commit over a store that only counts */
#include "queue/batch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"

#define THREADS 8
#define CALLS   200

/* Each job it is given gets an outcome made of its id, so that a mixed-up answer shows. */
static struct {
    struct lq_store store;
    struct lr_mutex lock;
    size_t calls, jobs;
    struct lr_event gate; /* while the first call waits here others gather */
    bool gated, entered;
    size_t pause_each; /* each so many calls the store sleeps; 0: never */
    size_t most;       /* jobs of one call */
} fake;

static int outcome_of(const struct lq_put *p)
{
    return p->id.p[0] % 7;
}

static int put(struct lq_store *s, struct lq_put *it, size_t n, lade_err *err)
{
    (void)s;
    bool bad = false;
    lr_mutex_lock(&fake.lock);
    fake.calls++;
    fake.most = LB_MAX(fake.most, n);
    bool pause = fake.pause_each > 0 && fake.calls % fake.pause_each == 0;
    bool gate = fake.gated && !fake.entered;
    fake.entered = true;
    lr_mutex_unlock(&fake.lock);
    struct lr_fd fd = {.fd = fake.gate.fd, .want = LR_READ};
    if (gate)
        (void)lr_wait_fds(&fd, 1, LB_FOREVER);
    if (pause)
        lr_sleep_until(lb_deadline_in(LADE_MILLISECOND / 2));
    for (size_t i = 0; i < n; i++)
        bad = bad || it[i].id.p[0] == '!';
    if (bad)
        return lb_fail(err, LADE_EINVAL, "put", "one of %zu is bad", n);
    for (size_t i = 0; i < n; i++)
        it[i].outcome = outcome_of(&it[i]);
    lr_mutex_lock(&fake.lock);
    fake.jobs += n;
    lr_mutex_unlock(&fake.lock);
    return 0;
}

static const struct lq_store_ops ops = {.name = "fake", .put = put};

static int setup(void **state)
{
    static struct lq_batch b;
    memset(&fake, 0, sizeof(fake));
    fake.store.ops = &ops;
    lr_mutex_init(&fake.lock);
    lq_batch_init(&b, &fake.store);
    *state = &b;
    return lr_event_init(&fake.gate);
}

static int teardown(void **state)
{
    lq_batch_fini(*state);
    lr_mutex_fini(&fake.lock);
    lr_event_fini(&fake.gate);
    return 0;
}

struct caller {
    struct lr_thread thread;
    struct lq_batch *b;
    char id;
    size_t calls, n;
    int rc;
    size_t wrong; /* outcomes that belong to another */
    lade_err err;
};

static void call(void *arg)
{
    struct caller *c = arg;
    struct lq_put few[4], *it = c->n > 4 ? calloc(c->n, sizeof(*it)) : few;
    assert_non_null(it);
    for (size_t k = 0; k < c->calls; k++) {
        for (size_t i = 0; i < c->n; i++)
            it[i] = (struct lq_put){.queue = "q", .id = lb_slice(&c->id, 1), .outcome = -1};
        c->rc = lq_batch_put(c->b, it, c->n, &c->err);
        for (size_t i = 0; i < c->n && c->rc == 0; i++)
            c->wrong += it[i].outcome != outcome_of(&it[i]);
    }
    if (it != few)
        free(it);
}

static void start(struct caller *c, struct lq_batch *b, char id, size_t calls, size_t n)
{
    *c = (struct caller){.b = b, .id = id, .calls = calls, .n = n};
    assert_int_equal(lr_thread_start(&c->thread, "caller", call, c), 0);
}

static void wait_until_entered(void)
{
    int64_t end = lb_deadline_in(30 * LADE_SECOND);
    for (bool in = false; !in && lb_clock_mono() < end;
         lr_sleep_until(lb_deadline_in(LADE_MILLISECOND))) {
        lr_mutex_lock(&fake.lock);
        in = fake.entered;
        lr_mutex_unlock(&fake.lock);
    }
}

/* n callers, one job each, of which the first is held in the store until the others wait. */
static void gather(struct lq_batch *b, struct caller *c, size_t n, const char *ids)
{
    fake.gated = true;
    start(&c[0], b, ids[0], 1, 1);
    wait_until_entered();
    for (size_t i = 1; i < n; i++)
        start(&c[i], b, ids[i], 1, 1);
    while ((size_t)lq_batch_waiting(b) < n - 1)
        lr_sleep_until(lb_deadline_in(LADE_MILLISECOND));
    assert_int_equal(lq_batch_waiting(b), n - 1);
    lr_event_raise(&fake.gate);
    for (size_t i = 0; i < n; i++)
        lr_thread_join(&c[i].thread);
}

static void callers_that_come_meanwhile_share_the_next_commit(void **state)
{
    struct caller c[5];
    gather(*state, c, 5, "abcde");
    assert_int_equal(fake.calls, 2);
    assert_int_equal(fake.jobs, 5);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(c[i].rc, 0);
        assert_int_equal(c[i].wrong, 0);
    }
}

static void the_fault_of_one_call_is_not_anothers(void **state)
{
    struct caller c[4];
    gather(*state, c, 4, "ab!d");
    assert_int_equal(fake.jobs, 3);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(c[i].rc, c[i].id == '!' ? -LADE_EINVAL : 0);
    assert_string_equal(c[2].err.text, "one of 1 is bad");
}

static void every_caller_gets_its_own_outcomes(void **state)
{
    struct caller c[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        start(&c[i], *state, (char)('a' + i), CALLS, 1 + i % 4);
    size_t jobs = 0;
    for (size_t i = 0; i < THREADS; i++) {
        lr_thread_join(&c[i].thread);
        assert_int_equal(c[i].rc, 0);
        assert_int_equal(c[i].wrong, 0);
        jobs += CALLS * c[i].n;
    }
    assert_int_equal(fake.jobs, jobs);
    assert_true(fake.calls <= (size_t)THREADS * CALLS);
    assert_int_equal(lq_batch_waiting(*state), 0);
}

/* Whoever waits takes turns: yields or sleeps at once, as trying shows, or is made to sleep. */
static void run_callers(struct lq_batch *b, bool tasks, int cpus)
{
    struct caller c[THREADS];
    if (tasks)
        assert_int_equal(lr_tasks_hold(), 0);
    lb_spin_set_cpus(cpus);
    for (size_t i = 0; i < THREADS; i++) {
        c[i] = (struct caller){.b = b, .id = (char)('a' + i), .calls = 5 * CALLS, .n = 1 + i % 4};
        int rc = tasks && i % 2 ? lr_thread_start_task(&c[i].thread, "caller", call, &c[i])
                                : lr_thread_start(&c[i].thread, "caller", call, &c[i]);
        assert_int_equal(rc, 0);
    }
    size_t jobs = 0;
    for (size_t i = 0; i < THREADS; i++) {
        lr_thread_join(&c[i].thread);
        assert_int_equal(c[i].rc, 0);
        assert_int_equal(c[i].wrong, 0);
        jobs += c[i].calls * c[i].n;
    }
    assert_int_equal(fake.jobs, jobs);
    assert_int_equal(lq_batch_waiting(b), 0);
    lb_spin_set_cpus(0);
    if (tasks)
        lr_tasks_release();
}

static void callers_that_yield_miss_no_commit(void **state)
{
    run_callers(*state, false, 2);
}

static void callers_that_sleep_miss_no_wake(void **state)
{
    run_callers(*state, false, 1);
}

static void tasks_and_threads_share_commits(void **state)
{
    run_callers(*state, true, 2);
}

static void tasks_and_threads_that_sleep_miss_no_wake(void **state)
{
    run_callers(*state, true, 1);
}

/* The store takes now no time, now long enough for all to fall asleep: both edges of the wait are met. */
static void a_store_whose_speed_changes_loses_no_caller(void **state)
{
    fake.pause_each = 7;
    run_callers(*state, true, 2);
}

static void more_jobs_than_a_commit_carries_go_in_several(void **state)
{
    struct caller c[6];
    fake.gated = true;
    start(&c[0], *state, 'a', 1, 1);
    wait_until_entered();
    for (size_t i = 1; i < 6; i++)
        start(&c[i], *state, (char)('a' + i), 1, LQ_BATCH_JOBS / 2 - 1);
    while (lq_batch_waiting(*state) < 5)
        lr_sleep_until(lb_deadline_in(LADE_MILLISECOND));
    lr_event_raise(&fake.gate);
    for (size_t i = 0; i < 6; i++) {
        lr_thread_join(&c[i].thread);
        assert_int_equal(c[i].rc, 0);
        assert_int_equal(c[i].wrong, 0);
    }
    assert_int_equal(fake.calls, 1 + 3);
    assert_true(fake.most <= LQ_BATCH_JOBS);
}

/* Two sleep, whose jobs fill a commit each, and a third yields: told to lead, it would have no part in the next commit. */
static void whoever_is_told_to_lead_is_in_the_commit(void **state)
{
    struct lq_batch *b = *state;
    struct caller c[4];
    fake.gated = true;
    start(&c[0], b, 'a', 1, 1);
    wait_until_entered();
    for (size_t i = 1; i < 4; i++) {
        atomic_store(&b->patience.time, i < 3 ? 0 : (int)LADE_SECOND);
        start(&c[i], b, (char)('a' + i), 1, LQ_BATCH_JOBS - 1);
        while (lq_batch_waiting(b) < (int)i)
            lr_sleep_until(lb_deadline_in(LADE_MILLISECOND));
        lr_sleep_until(lb_deadline_in(5 * LADE_MILLISECOND)); /* most likely it sleeps by now */
    }
    lr_event_raise(&fake.gate);
    for (size_t i = 0; i < 4; i++) {
        lr_thread_join(&c[i].thread);
        assert_int_equal(c[i].rc, 0);
        assert_int_equal(c[i].wrong, 0);
    }
    assert_int_equal(fake.calls, 4);
}

static void a_call_that_waits_needs_no_memory(void **state)
{
    struct caller c[2];
    fake.gated = true;
    start(&c[0], *state, 'a', 1, 1);
    wait_until_entered();
    start(&c[1], *state, 'b', 1, 1);
    while (lq_batch_waiting(*state) < 1)
        lr_sleep_until(lb_deadline_in(LADE_MILLISECOND));
    lb_mem_fail_after(1);
    lr_event_raise(&fake.gate);
    for (size_t i = 0; i < 2; i++)
        lr_thread_join(&c[i].thread);
    lb_mem_fail_after(0);
    assert_int_equal(c[0].rc, 0);
    assert_int_equal(c[1].rc, 0);
}

static void without_memory_to_share_a_commit_each_call_has_its_own(void **state)
{
    struct caller c[3];
    fake.gated = true;
    start(&c[0], *state, 'a', 1, 1);
    wait_until_entered();
    for (size_t i = 1; i < 3; i++)
        start(&c[i], *state, (char)('a' + i), 1, 1);
    while (lq_batch_waiting(*state) < 2)
        lr_sleep_until(lb_deadline_in(LADE_MILLISECOND));
    lb_mem_fail_after(1);
    lr_event_raise(&fake.gate);
    for (size_t i = 0; i < 3; i++)
        lr_thread_join(&c[i].thread);
    lb_mem_fail_after(0);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(c[i].rc, 0);
    assert_int_equal(fake.calls, 3);
}

struct cancelled {
    struct caller c;
    lade_gate over;
};

static void call_and_tell(void *arg)
{
    struct cancelled *k = arg;
    call(&k->c);
    (void)lade_gate_open(&k->over);
}

static void a_cancelled_task_waits_for_its_commit(void **state)
{
    struct caller c;
    static struct cancelled k;
    k = (struct cancelled){.c = {.b = *state, .id = 'b', .calls = 1, .n = 1, .rc = -1}};
    assert_int_equal(lr_tasks_hold(), 0);
    lb_spin_set_cpus(1);
    fake.gated = true;
    start(&c, *state, 'a', 1, 1);
    wait_until_entered();
    lade_task t;
    assert_int_equal(lade_task_start(&t, call_and_tell, &k), 0);
    while (lq_batch_waiting(*state) < 1)
        lr_sleep_until(lb_deadline_in(LADE_MILLISECOND));
    assert_int_equal(lade_task_cancel(t), 0);
    assert_int_equal(lq_batch_waiting(*state), 1);
    lr_event_raise(&fake.gate);
    assert_int_equal(lade_gate_wait(&k.over), 0);
    lr_thread_join(&c.thread);
    assert_int_equal(k.c.rc, 0);
    assert_int_equal(k.c.wrong, 0);
    assert_int_equal(fake.jobs, 2);
    lb_spin_set_cpus(0);
    lr_tasks_release();
}

#define BATCH_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        BATCH_TEST(callers_that_come_meanwhile_share_the_next_commit),
        BATCH_TEST(the_fault_of_one_call_is_not_anothers),
        BATCH_TEST(every_caller_gets_its_own_outcomes),
        BATCH_TEST(callers_that_yield_miss_no_commit),
        BATCH_TEST(callers_that_sleep_miss_no_wake),
        BATCH_TEST(tasks_and_threads_share_commits),
        BATCH_TEST(tasks_and_threads_that_sleep_miss_no_wake),
        BATCH_TEST(a_store_whose_speed_changes_loses_no_caller),
        BATCH_TEST(more_jobs_than_a_commit_carries_go_in_several),
        BATCH_TEST(whoever_is_told_to_lead_is_in_the_commit),
        BATCH_TEST(a_call_that_waits_needs_no_memory),
        BATCH_TEST(without_memory_to_share_a_commit_each_call_has_its_own),
        BATCH_TEST(a_cancelled_task_waits_for_its_commit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
