/* batch_test.c - group commit over a store that only counts */
#include "queue/batch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/ident.h"
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
    lade_id id[64];    /* of the last call that did no wrong */
    size_t n_ids;
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
    fake.n_ids = LB_MIN(n, LB_ARRAY_LEN(fake.id));
    for (size_t i = 0; i < fake.n_ids; i++)
        (void)snprintf(fake.id[i].text, sizeof(fake.id[i].text), "%.*s", (int)it[i].id.n,
                       (const char *)it[i].id.p);
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
        c->rc = lq_batch_put(c->b, it, c->n, NULL, &c->err);
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

#define SINGLES 40

/* A call of one job whose id was made for it. */
struct single {
    struct lr_thread thread;
    struct lq_batch *b;
    struct lq_put put;
    lade_id came_with, own;
    bool keeps, bad; /* nobody may write it another id; and the store does not take it */
    int rc;
};

static void call_singly(void *arg)
{
    struct single *s = arg;
    lade_err err;
    s->rc = lq_batch_put(s->b, &s->put, 1, s->keeps ? NULL : &s->own, &err);
}

static void start_singly(struct single *s, struct lq_batch *b)
{
    lb_ulid_new_block();
    lb_ulid(s->own.text, lb_clock_wall());
    s->came_with = s->own;
    s->b = b;
    s->put.queue = s->put.queue ? s->put.queue : "q";
    s->put.id = s->bad ? lb_slice("!", 1) : lb_slice(s->own.text, LB_ULID_LEN);
    s->put.body = lb_slice("14xx", 4);
    s->put.fresh = true;
    assert_int_equal(lr_thread_start(&s->thread, "single", call_singly, s), 0);
}

/* They go in one commit, in this order, behind that of a caller who is held in the store. */
static void gather_singles(struct lq_batch *b, struct single *s, size_t n)
{
    struct caller first;
    fake.gated = true;
    start(&first, b, 'a', 1, 1);
    wait_until_entered();
    for (size_t i = 0; i < n; i++) {
        start_singly(&s[i], b);
        while ((size_t)lq_batch_waiting(b) < i + 1)
            lr_sleep_until(lb_deadline_in(LADE_MILLISECOND / 10));
    }
    lr_event_raise(&fake.gate);
    for (size_t i = 0; i < n; i++)
        lr_thread_join(&s[i].thread);
    lr_thread_join(&first.thread);
}

static bool was_stored(const struct single *s)
{
    for (size_t i = 0; i < fake.n_ids; i++) {
        if (strcmp(fake.id[i].text, s->own.text) == 0)
            return true;
    }
    return false;
}

static size_t count_renamed(const struct single *s, size_t n)
{
    size_t renamed = 0;
    for (size_t i = 0; i < n; i++)
        renamed += strcmp(s[i].own.text, s[i].came_with.text) != 0;
    return renamed;
}

static void many_single_jobs_of_a_commit_get_ids_that_follow_each_other(void **state)
{
    static struct single s[SINGLES];
    memset(s, 0, sizeof(s));
    gather_singles(*state, s, SINGLES);
    assert_int_equal(fake.calls, 2);
    assert_int_equal(fake.n_ids, SINGLES);
    assert_int_equal(count_renamed(s, SINGLES), SINGLES);
    for (size_t i = 0; i < SINGLES; i++) {
        assert_int_equal(s[i].rc, 0);
        assert_true(was_stored(&s[i])); /* its caller tells the id that was stored */
        assert_ptr_equal(s[i].put.id.p, s[i].own.text);
    }
    for (size_t i = 1; i < SINGLES; i++) {
        assert_memory_equal(fake.id[i].text, fake.id[0].text, LB_ULID_LEN - 2);
        assert_true(strcmp(fake.id[i - 1].text, fake.id[i].text) < 0);
    }
}

static void few_single_jobs_keep_the_ids_they_came_with(void **state)
{
    static struct single s[16];
    memset(s, 0, sizeof(s));
    gather_singles(*state, s, LB_ARRAY_LEN(s));
    assert_int_equal(fake.calls, 2);
    assert_int_equal(count_renamed(s, LB_ARRAY_LEN(s)), 0);
}

/* An id of the program's own, a unique key, a key, a time, another queue or level than that of the first. */
static void jobs_that_are_not_alike_keep_their_ids(void **state)
{
    static struct single s[SINGLES];
    memset(s, 0, sizeof(s));
    s[3].keeps = true;
    s[4].put.unique = lb_slice("u", 1);
    s[5].put.key = lb_slice("k", 1);
    s[6].put.when = LQ_WHEN_IN;
    s[7].put.queue = "other";
    s[8].put.level = 3;
    gather_singles(*state, s, SINGLES);
    for (size_t i = 0; i < SINGLES; i++) {
        assert_int_equal(s[i].rc, 0);
        assert_true(was_stored(&s[i]));
        assert_int_equal(count_renamed(&s[i], 1), i < 3 || i > 8);
    }
}

/* Nothing of the commit was written: each goes by itself, and is stored under the id that its caller tells. */
static void calls_that_are_split_up_keep_the_ids_they_were_given(void **state)
{
    static struct single s[SINGLES];
    memset(s, 0, sizeof(s));
    s[9].keeps = s[9].bad = true;
    gather_singles(*state, s, SINGLES);
    assert_int_equal(fake.jobs, 1 + SINGLES - 1);
    for (size_t i = 0; i < SINGLES; i++)
        assert_int_equal(s[i].rc, i == 9 ? -LADE_EINVAL : 0);
    assert_true(was_stored(&s[SINGLES - 1])); /* the last that was put */
    assert_int_equal(count_renamed(s, SINGLES), SINGLES - 1);
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
        BATCH_TEST(many_single_jobs_of_a_commit_get_ids_that_follow_each_other),
        BATCH_TEST(few_single_jobs_keep_the_ids_they_came_with),
        BATCH_TEST(jobs_that_are_not_alike_keep_their_ids),
        BATCH_TEST(calls_that_are_split_up_keep_the_ids_they_were_given),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
