/* Locks and friends: R18..R20. */
#include "rt_rig.h"

#include <pthread.h>
#include <unistd.h>

/* ---- R18 ---- */

struct guarded {
    lade_mutex lock;
    unsigned each;
    uint64_t counter; /* not atomic */
    uint64_t timeouts, worst_wait, inside, stop;
};

static int increment(void *arg)
{
    struct guarded *g = arg;
    for (unsigned i = 0; i < g->each; i++) {
        EXPECT(lade_mutex_lock(&g->lock) == 0);
        EXPECT(rig_add(&g->inside, 1) == 1);
        g->counter++;
        if (i % 64 == 0)
            lade_task_yield(); /* others run into the lock */
        rig_add(&g->inside, (uint64_t)-1);
        EXPECT(lade_mutex_unlock(&g->lock) == 0);
    }
    return 0;
}

static void *increment_in_thread(void *arg)
{
    (void)increment(arg);
    return NULL;
}

static int increment_in_tasks(void *arg)
{
    lade_taskgroup t = {0};
    for (int i = 0; i < 8; i++)
        EXPECT(lade_taskgroup_start(&t, NULL, increment, arg) == 0);
    return lade_taskgroup_wait_until(&t, LADE_FOREVER);
}

static void r18_one_at_a_time_tasks_and_plain_threads(void **state)
{
    (void)state;
    for (unsigned workers = 1; workers <= 4; workers *= 2) {
        struct guarded g = {.each = rig_rounds(2000)};
        assert_int_equal(rig_run(workers, increment_in_tasks, &g), 0);
        assert_int_equal(g.counter, 8 * (uint64_t)g.each);

        g = (struct guarded){.each = rig_rounds(2000)};
        lade_rt *rt;
        lade_rt_opts o = {.workers = workers};
        assert_int_equal(lade_rt_start(&o, &rt), 0);
        lade_bridge *b;
        assert_int_equal(lade_bridge_open(rt, &b), 0);
        pthread_t t[2];
        for (int i = 0; i < 2; i++)
            assert_int_equal(pthread_create(&t[i], NULL, increment_in_thread, &g), 0);
        assert_int_equal(lade_bridge_call(b, increment_in_tasks, &g, LADE_FOREVER), 0);
        for (int i = 0; i < 2; i++)
            assert_int_equal(pthread_join(t[i], NULL), 0);
        lade_bridge_close(b);
        assert_int_equal(lade_rt_stop(rt, LADE_FOREVER), 0);
        rig_check();
        assert_int_equal(g.counter, 10 * (uint64_t)g.each);
    }
}

static int grab_again_and_again(void *arg)
{
    struct guarded *g = arg;
    while (!rig_get(&g->stop)) {
        EXPECT(lade_mutex_lock(&g->lock) == 0);
        g->counter++;
        if (g->counter % 16 == 0)
            lade_task_yield();
        EXPECT(lade_mutex_unlock(&g->lock) == 0);
    }
    return 0;
}

static int get_it_in_spite_of_them(void *arg)
{
    struct guarded *g = arg;
    for (int i = 0; i < 100; i++) {
        int64_t t0 = lade_clock_now();
        EXPECT(lade_mutex_lock_until(&g->lock, rig_patience()) == 0);
        uint64_t waited = (uint64_t)(lade_clock_now() - t0);
        if (waited > g->worst_wait)
            g->worst_wait = waited;
        EXPECT(lade_mutex_unlock(&g->lock) == 0);
        (void)lade_task_sleep_until(lade_clock_now() + 100000);
    }
    rig_add(&g->stop, 1);
    return 0;
}

static int barging(void *arg)
{
    lade_taskgroup t = {0};
    for (int i = 0; i < 3; i++)
        EXPECT(lade_taskgroup_start(&t, NULL, grab_again_and_again, arg) == 0);
    EXPECT(lade_taskgroup_start(&t, NULL, get_it_in_spite_of_them, arg) == 0);
    return lade_taskgroup_wait_until(&t, LADE_FOREVER);
}

/* Three that take it again at once, always; the fourth gets it a hundred times. */
static void r18_nobody_waits_long_although_others_barge(void **state)
{
    (void)state;
    for (unsigned w = 1; w <= 2; w++) {
        struct guarded g = {0};
        assert_int_equal(rig_run(w, barging, &g), 0);
        assert_true(rig_in_time((int64_t)g.worst_wait, 20));
    }
}

/*
 * An owner that loses its CPU, or takes long, inside the lock only delays: here it stays inside until all others, tasks and a plain
 * thread, are waiting for it.
 */
static int hold_until_all_wait(void *arg)
{
    struct guarded *g = arg;
    EXPECT(lade_mutex_lock(&g->lock) == 0);
    rig_add(&g->inside, 1);
    int64_t until = rig_patience();
    while (__atomic_load_n(&g->lock.waiters.n, __ATOMIC_SEQ_CST) < 3 && lade_clock_now() < until)
        lade_task_yield();
    EXPECT(__atomic_load_n(&g->lock.waiters.n, __ATOMIC_SEQ_CST) == 3);
    rig_add(&g->inside, (uint64_t)-1);
    return lade_mutex_unlock(&g->lock);
}

static int wait_for_the_owner(void *arg)
{
    struct guarded *g = arg;
    EXPECT(lade_mutex_lock(&g->lock) == 0);
    EXPECT(rig_get(&g->inside) == 0);
    g->counter++;
    return lade_mutex_unlock(&g->lock);
}

static void *wait_for_the_owner_in_thread(void *arg)
{
    (void)wait_for_the_owner(arg);
    return NULL;
}

static int hold_long(void *arg)
{
    struct guarded *g = arg;
    lade_taskgroup t = {0};
    EXPECT(lade_taskgroup_start(&t, NULL, hold_until_all_wait, g) == 0);
    EXPECT(rig_reaches(&g->inside, 1));
    pthread_t thread;
    EXPECT(pthread_create(&thread, NULL, wait_for_the_owner_in_thread, g) == 0);
    for (int i = 0; i < 2; i++)
        EXPECT(lade_taskgroup_start(&t, NULL, wait_for_the_owner, g) == 0);
    int rc = lade_taskgroup_wait_until(&t, LADE_FOREVER);
    EXPECT(pthread_join(thread, NULL) == 0);
    EXPECT(g->counter == 3);
    return rc;
}

static void r20_an_owner_that_takes_long_only_delays(void **state)
{
    (void)state;
    for (unsigned w = 1; w <= 2; w++) {
        struct guarded g = {0};
        assert_int_equal(rig_run(w, hold_long, &g), 0);
    }
}

static int try_and_time_out(void *arg)
{
    struct guarded *g = arg;
    EXPECT(lade_mutex_trylock(&g->lock) == -LADE_EAGAIN);
    EXPECT(lade_mutex_lock_until(&g->lock, rig_in_ms(2)) == -LADE_ETIMEDOUT);
    EXPECT(lade_mutex_lock_until(&g->lock, 0) == -LADE_ETIMEDOUT);
    EXPECT(lade_mutex_unlock(&g->lock) == -LADE_EPERM); /* not ours */
    return 0;
}

static int misuse(void *arg)
{
    struct guarded *g = arg;
    EXPECT(lade_mutex_lock(&g->lock) == 0);
    EXPECT(lade_mutex_lock(&g->lock) == -LADE_EDEADLK);
    lade_taskgroup t = {0};
    EXPECT(lade_taskgroup_start(&t, NULL, try_and_time_out, g) == 0);
    EXPECT(lade_taskgroup_wait_until(&t, LADE_FOREVER) == 0);
    EXPECT(g->lock.waiters.n == 0 && !g->lock.waiters.head); /* no waiter left behind */
    EXPECT(lade_mutex_unlock(&g->lock) == 0);
    EXPECT(lade_mutex_unlock(&g->lock) == -LADE_EPERM);
    EXPECT(lade_mutex_trylock(&g->lock) == 0);
    EXPECT(lade_mutex_unlock(&g->lock) == 0);
    return 0;
}

static void r18_a_lock_that_is_not_got_leaves_no_waiter_and_misuse_is_told(void **state)
{
    (void)state;
    struct guarded g = {0};
    assert_int_equal(rig_run(1, misuse, &g), 0);
    assert_int_equal(rig_run(2, misuse, &g), 0);
}

/* ---- rwlock ---- */

struct shared {
    lade_rwlock lock;
    uint64_t readers, writers, value, most_readers;
};

static int read_shared(void *arg)
{
    struct shared *s = arg;
    for (int i = 0; i < 300; i++) {
        EXPECT(lade_rwlock_rdlock(&s->lock) == 0);
        uint64_t n = rig_add(&s->readers, 1);
        uint64_t most = rig_get(&s->most_readers);
        if (n > most)
            __atomic_store_n(&s->most_readers, n, __ATOMIC_SEQ_CST);
        EXPECT(rig_get(&s->writers) == 0);
        uint64_t v = s->value;
        lade_task_yield();
        EXPECT(s->value == v);
        rig_add(&s->readers, (uint64_t)-1);
        EXPECT(lade_rwlock_unlock(&s->lock) == 0);
    }
    return 0;
}

static int write_shared(void *arg)
{
    struct shared *s = arg;
    for (int i = 0; i < 300; i++) {
        int rc = i % 8 == 7 ? lade_rwlock_wrlock_until(&s->lock, lade_clock_now() + 20000)
                            : lade_rwlock_wrlock(&s->lock);
        if (rc == -LADE_ETIMEDOUT)
            continue;
        EXPECT(rc == 0);
        EXPECT(rig_add(&s->writers, 1) == 1 && rig_get(&s->readers) == 0);
        s->value++;
        lade_task_yield();
        rig_add(&s->writers, (uint64_t)-1);
        EXPECT(lade_rwlock_unlock(&s->lock) == 0);
    }
    return 0;
}

static int share(void *arg)
{
    lade_taskgroup t = {0};
    for (int i = 0; i < 4; i++)
        EXPECT(lade_taskgroup_start(&t, NULL, read_shared, arg) == 0);
    for (int i = 0; i < 2; i++)
        EXPECT(lade_taskgroup_start(&t, NULL, write_shared, arg) == 0);
    return lade_taskgroup_wait_until(&t, LADE_FOREVER);
}

static void many_readers_or_one_writer(void **state)
{
    (void)state;
    for (unsigned w = 1; w <= 2; w++) {
        struct shared s = {0};
        assert_int_equal(rig_run(w, share, &s), 0);
        assert_true(s.most_readers > 1);
        assert_int_equal(lade_rwlock_unlock(&s.lock), -LADE_EPERM);
    }
}

/* ---- R19 ---- */

struct queue {
    lade_mutex lock;
    lade_cond filled;
    uint64_t n, put, taken, stop, woken;
    lade_sem sem;
    uint64_t in_sem, worst_sem;
    lade_gate gate;
    lade_once once;
    uint64_t ran, passed;
    lade_waitgroup group;
};

static int take(void *arg)
{
    struct queue *q = arg;
    EXPECT(lade_mutex_lock(&q->lock) == 0);
    for (;;) {
        while (q->n == 0 && !q->stop)
            EXPECT(lade_cond_wait(&q->filled, &q->lock, rig_patience()) == 0); /* a lost signal */
        if (q->n == 0)
            break;
        q->n--;
        q->taken++;
    }
    return lade_mutex_unlock(&q->lock);
}

static int conditions(void *arg)
{
    struct queue *q = arg;
    lade_taskgroup t = {0};
    for (int i = 0; i < 5; i++)
        EXPECT(lade_taskgroup_start(&t, NULL, take, q) == 0);
    for (unsigned i = 0; i < 2000; i++) {
        EXPECT(lade_mutex_lock(&q->lock) == 0);
        q->n++;
        q->put++;
        EXPECT(lade_cond_signal(&q->filled) == 0);
        EXPECT(lade_mutex_unlock(&q->lock) == 0);
        if (i % 16 == 0)
            lade_task_yield();
    }
    EXPECT(lade_mutex_lock(&q->lock) == 0);
    q->stop = 1;
    EXPECT(lade_cond_broadcast(&q->filled) == 0);
    EXPECT(lade_cond_wait(&q->filled, &q->lock, rig_in_ms(2)) == -LADE_ETIMEDOUT);
    EXPECT(lade_mutex_unlock(&q->lock) == 0); /* it is ours again in spite of the deadline */
    EXPECT(lade_cond_wait(&q->filled, &q->lock, 1) == -LADE_EPERM);
    EXPECT(lade_taskgroup_wait_until(&t, LADE_FOREVER) == 0);
    EXPECT(q->taken == q->put);
    return 0;
}

static int hold_sem(void *arg)
{
    struct queue *q = arg;
    for (int i = 0; i < 200; i++) {
        int rc = i % 5 == 4 ? lade_sem_wait_until(&q->sem, lade_clock_now() + 30000)
                            : lade_sem_wait(&q->sem);
        if (rc == -LADE_ETIMEDOUT)
            continue;
        EXPECT(rc == 0);
        EXPECT(rig_add(&q->in_sem, 1) <= 3);
        lade_task_yield();
        rig_add(&q->in_sem, (uint64_t)-1);
        EXPECT(lade_sem_post(&q->sem) == 0);
    }
    return 0;
}

static int semaphores(void *arg)
{
    struct queue *q = arg;
    q->sem.count = 3;
    lade_taskgroup t = {0};
    for (int i = 0; i < 10; i++)
        EXPECT(lade_taskgroup_start(&t, NULL, hold_sem, q) == 0);
    EXPECT(lade_taskgroup_wait_until(&t, LADE_FOREVER) == 0);
    EXPECT(q->sem.count == 3);
    return 0;
}

static void run_once(void *arg)
{
    struct queue *q = arg;
    for (int i = 0; i < 5; i++)
        lade_task_yield(); /* the others arrive meanwhile */
    rig_add(&q->ran, 1);
}

static int race_once(void *arg)
{
    struct queue *q = arg;
    EXPECT(lade_once_run(&q->once, run_once, q) == 0);
    EXPECT(rig_get(&q->ran) == 1);
    EXPECT(lade_gate_wait(&q->gate) == 0);
    rig_add(&q->passed, 1);
    return lade_waitgroup_done(&q->group);
}

static int once_and_gate(void *arg)
{
    struct queue *q = arg;
    lade_taskgroup t = {0};
    EXPECT(lade_waitgroup_add(&q->group, 100) == 0);
    for (int i = 0; i < 100; i++)
        EXPECT(lade_taskgroup_start(&t, NULL, race_once, q) == 0);
    EXPECT(lade_gate_wait_until(&q->gate, rig_in_ms(2)) == -LADE_ETIMEDOUT);
    EXPECT(lade_waitgroup_wait_until(&q->group, rig_in_ms(1)) == -LADE_ETIMEDOUT);
    EXPECT(q->passed == 0);
    EXPECT(lade_gate_open(&q->gate) == 0);
    EXPECT(lade_gate_open(&q->gate) == 0);
    EXPECT(lade_waitgroup_wait_until(&q->group, LADE_FOREVER) == 0);
    EXPECT(lade_gate_wait(&q->gate) == 0); /* it stays open */
    EXPECT(q->passed == 100 && q->ran == 1);
    EXPECT(lade_waitgroup_done(&q->group) == -LADE_EINVAL);
    return lade_taskgroup_wait_until(&t, LADE_FOREVER);
}

static void r19_condition_semaphore_gate_once_keep_their_promises(void **state)
{
    (void)state;
    for (unsigned w = 1; w <= 4; w *= 2) {
        struct queue q = {0};
        assert_int_equal(rig_run(w, conditions, &q), 0);
        assert_int_equal(rig_run(w, semaphores, &q), 0);
        assert_int_equal(rig_run(w, once_and_gate, &q), 0);
    }
}

/* ---- R20 ---- */

/* Elision ends while the one worker is anywhere in its work: a foreign thread appears. */
static void *appear(void *arg)
{
    struct guarded *g = arg;
    for (unsigned i = 0; i < 500; i++) {
        EXPECT(lade_mutex_lock(&g->lock) == 0);
        g->counter++;
        EXPECT(lade_mutex_unlock(&g->lock) == 0);
    }
    rig_add(&g->inside, 1);
    return NULL;
}

static int work_alone_then_not(void *arg)
{
    struct guarded *g = arg;
    lade_taskgroup t = {0};
    uint64_t own = 0;
    for (int i = 0; i < 1000; i++) {
        EXPECT(lade_mutex_lock(&g->lock) == 0);
        g->counter++;
        own++;
        EXPECT(lade_mutex_unlock(&g->lock) == 0);
    }
    pthread_t thread;
    EXPECT(pthread_create(&thread, NULL, appear, g) == 0);
    while (!rig_get(&g->inside)) {
        EXPECT(lade_mutex_lock(&g->lock) == 0);
        g->counter++;
        own++;
        if (own % 8 == 0)
            lade_task_yield(); /* sometimes while it holds the lock */
        EXPECT(lade_mutex_unlock(&g->lock) == 0);
        lade_task_yield();
    }
    EXPECT(pthread_join(thread, NULL) == 0);
    EXPECT(g->counter == own + 500);
    return lade_taskgroup_wait_until(&t, LADE_FOREVER);
}

static void r20_elision_ends_when_a_foreign_thread_appears(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        struct guarded g = {0};
        assert_int_equal(rig_run(1, work_alone_then_not, &g), 0);
    }
}

/* Without membarrier both sides use full barriers; the results are the same. */
static void r20_the_same_without_membarrier(void **state)
{
    assert_int_equal(setenv("LADE_RT_NO_MEMBARRIER", "1", 1), 0);
    r18_one_at_a_time_tasks_and_plain_threads(state);
    r19_condition_semaphore_gate_once_keep_their_promises(state);
    assert_int_equal(unsetenv("LADE_RT_NO_MEMBARRIER"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(r20_elision_ends_when_a_foreign_thread_appears),
        cmocka_unit_test(r18_one_at_a_time_tasks_and_plain_threads),
        cmocka_unit_test(r18_nobody_waits_long_although_others_barge),
        cmocka_unit_test(r18_a_lock_that_is_not_got_leaves_no_waiter_and_misuse_is_told),
        cmocka_unit_test(r20_an_owner_that_takes_long_only_delays),
        cmocka_unit_test(many_readers_or_one_writer),
        cmocka_unit_test(r19_condition_semaphore_gate_once_keep_their_promises),
        cmocka_unit_test(r20_the_same_without_membarrier),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
