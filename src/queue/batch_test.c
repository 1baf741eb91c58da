/* batch_test.c - group commit over a store that only counts */
#include "queue/batch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

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
    bool gate = fake.gated && !fake.entered;
    fake.entered = true;
    lr_mutex_unlock(&fake.lock);
    struct lr_fd fd = {.fd = fake.gate.fd, .want = LR_READ};
    if (gate)
        (void)lr_wait_fds(&fd, 1, LB_FOREVER);
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
    struct lq_put it[4];
    for (size_t k = 0; k < c->calls; k++) {
        for (size_t i = 0; i < c->n; i++)
            it[i] = (struct lq_put){.queue = "q", .id = lb_slice(&c->id, 1), .outcome = -1};
        c->rc = lq_batch_put(c->b, it, c->n, &c->err);
        for (size_t i = 0; i < c->n && c->rc == 0; i++)
            c->wrong += it[i].outcome != outcome_of(&it[i]);
    }
}

static void start(struct caller *c, struct lq_batch *b, char id, size_t calls, size_t n)
{
    *c = (struct caller){.b = b, .id = id, .calls = calls, .n = n};
    assert_int_equal(lr_thread_start(&c->thread, "caller", call, c), 0);
}

static size_t read_waiting(struct lq_batch *b)
{
    lr_mutex_lock(&b->lock);
    size_t n = b->n_waiting;
    lr_mutex_unlock(&b->lock);
    return n;
}

/* n callers, one job each, of which the first is held in the store until the others wait. */
static void gather(struct lq_batch *b, struct caller *c, size_t n, const char *ids)
{
    fake.gated = true;
    start(&c[0], b, ids[0], 1, 1);
    int64_t end = lb_deadline_in(30 * LADE_SECOND);
    for (bool in = false; !in && lb_clock_mono() < end;
         lr_sleep_until(lb_deadline_in(LADE_MILLISECOND))) {
        lr_mutex_lock(&fake.lock);
        in = fake.entered;
        lr_mutex_unlock(&fake.lock);
    }
    for (size_t i = 1; i < n; i++)
        start(&c[i], b, ids[i], 1, 1);
    while (read_waiting(b) < n - 1 && lb_clock_mono() < end)
        lr_sleep_until(lb_deadline_in(LADE_MILLISECOND));
    assert_int_equal(read_waiting(b), n - 1);
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
    assert_int_equal(read_waiting(*state), 0);
}

static void a_call_without_memory_to_wait_fails_and_puts_nothing(void **state)
{
    struct lq_batch *b = *state;
    struct lq_put it = {.queue = "q", .id = lb_slice("x", 1)};
    lade_err err = {0};
    lr_mutex_lock(&b->lock);
    b->leading = true; /* as if somebody were in the store */
    lr_mutex_unlock(&b->lock);
    lb_mem_fail_after(1);
    int rc = lq_batch_put(b, &it, 1, &err);
    lb_mem_fail_after(0);
    assert_int_equal(rc, -LADE_ENOMEM);
    assert_int_equal(fake.calls, 0);
    assert_int_equal(read_waiting(b), 0);
    b->leading = false;
}

#define BATCH_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        BATCH_TEST(callers_that_come_meanwhile_share_the_next_commit),
        BATCH_TEST(the_fault_of_one_call_is_not_anothers),
        BATCH_TEST(every_caller_gets_its_own_outcomes),
        BATCH_TEST(a_call_without_memory_to_wait_fails_and_puts_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
