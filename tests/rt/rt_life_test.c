/* Cancelling, groups, failures: R21..R23. */
#include "rt_rig.h"

#include <sys/socket.h>
#include <unistd.h>

/* ---- R21 ---- */

enum where {
    SEND,
    RECV,
    SELECT,
    LOCK,
    SLEEP,
    READ,
    GROUP,
    BLOCKING,
    READ_LOCK,
    WRITE_LOCK,
    COND,
    SEM,
    GATE,
    WAIT_GROUP,
    N_WHERE
};

struct waiter {
    enum where where;
    lade_chan *c;
    lade_mutex lock;
    lade_fd *fd;
    lade_gate release;
    lade_rwlock shared;
    lade_cond cond;
    lade_sem sem;
    lade_waitgroup group;
    uint64_t started, begun, ended, leave;
    int rc;
    lade_task self;
    int64_t cancelled_at, returned_at;
};

static void block_for_a_while(void *arg)
{
    struct waiter *w = arg;
    rig_add(&w->begun, 1);
    while (!rig_get(&w->leave))
        (void)usleep(500);
    rig_add(&w->ended, 1);
}

static int wait_for_ever(void *arg)
{
    return lade_gate_wait(arg);
}

/* The lock is taken again although the task is cancelled. */
static int wait_for_condition(struct waiter *w)
{
    lade_mutex m = {0};
    EXPECT(lade_mutex_lock(&m) == 0);
    int rc = lade_cond_wait(&w->cond, &m, LADE_FOREVER);
    EXPECT(lade_mutex_unlock(&m) == 0);
    return rc;
}

static int wait_somewhere(struct waiter *w)
{
    uint64_t v = 0;
    lade_case k[1] = {LADE_RECV(w->c, &v)};
    lade_taskgroup g = {0};
    char byte;
    switch (w->where) {
    case SEND:
        return lade_chan_send(w->c, &v);
    case RECV:
        return lade_chan_recv(w->c, &v);
    case SELECT:
        return lade_chan_select(k, 1, LADE_FOREVER);
    case LOCK:
        return lade_mutex_lock(&w->lock);
    case SLEEP:
        return lade_task_sleep_until(rig_in_ms(60000));
    case READ:
        return (int)lade_fd_read(w->fd, &byte, 1, LADE_FOREVER);
    case GROUP:
        EXPECT(lade_taskgroup_start(&g, NULL, wait_for_ever, &w->release) == 0);
        return lade_taskgroup_wait_until(&g, LADE_FOREVER);
    case BLOCKING:
        return lade_blocking_run(block_for_a_while, w);
    case READ_LOCK:
        return lade_rwlock_rdlock(&w->shared);
    case WRITE_LOCK:
        return lade_rwlock_wrlock(&w->shared);
    case COND:
        return wait_for_condition(w);
    case SEM:
        return lade_sem_wait(&w->sem);
    case GATE:
        return lade_gate_wait(&w->release);
    case WAIT_GROUP:
        return lade_waitgroup_wait_until(&w->group, LADE_FOREVER);
    case N_WHERE:
        break;
    }
    return 0;
}

static int wait_and_note(void *arg)
{
    struct waiter *w = arg;
    w->self = lade_task_self();
    rig_add(&w->started, 1);
    w->rc = wait_somewhere(w);
    w->returned_at = lade_clock_now();
    EXPECT(lade_task_cancelled());
    /* From now on whatever would wait is refused, and what need not wait works. */
    EXPECT(lade_task_sleep_until(rig_in_ms(60000)) == -LADE_ECANCELED);
    lade_chan *c = lade_chan_new(LADE_CHAN_MPMC, 8, 1);
    uint64_t v = 5;
    EXPECT(lade_chan_send(c, &v) == 0);
    EXPECT(lade_chan_send(c, &v) == -LADE_ECANCELED);
    EXPECT(lade_chan_recv(c, &v) == 0 && v == 5);
    EXPECT(lade_chan_unref(c) == 0);
    return 0;
}

static int cancel_everywhere(void *arg)
{
    (void)arg;
    for (int i = 0; i < N_WHERE; i++) {
        struct waiter w = {.where = (enum where)i, .c = lade_chan_new(LADE_CHAN_MPMC, 8, 0)};
        EXPECT(lade_mutex_lock(&w.lock) == 0);
        EXPECT(lade_rwlock_wrlock(&w.shared) == 0);
        EXPECT(lade_waitgroup_add(&w.group, 1) == 0);
        int end[2];
        EXPECT(socketpair(AF_UNIX, SOCK_STREAM, 0, end) == 0);
        EXPECT(lade_fd_open(end[0], &w.fd) == 0);
        lade_taskgroup g = {0};
        EXPECT(lade_taskgroup_start(&g, NULL, wait_and_note, &w) == 0);
        EXPECT(rig_reaches(&w.started, 1));
        (void)lade_task_sleep_until(rig_in_ms(2));
        if (i == BLOCKING)
            EXPECT(rig_reaches(&w.begun, 1));
        w.cancelled_at = lade_clock_now();
        EXPECT(lade_task_cancel(w.self) == 0);
        EXPECT(lade_task_cancel(w.self) == 0);
        EXPECT(lade_taskgroup_wait_until(&g, LADE_FOREVER) == 0);
        EXPECT(w.rc == -LADE_ECANCELED);
        EXPECT(rig_in_time(w.returned_at - w.cancelled_at, 10));
        EXPECT(i != BLOCKING ||
               rig_get(&w.ended) == 0);        /* it did not wait for the end of the call */
        EXPECT(lade_task_cancel(w.self) == 0); /* it has ended: nothing */
        rig_add(&w.leave, 1);
        if (i == BLOCKING)
            EXPECT(rig_reaches(&w.ended, 1)); /* it still ran: its argument had to live */
        EXPECT(lade_mutex_unlock(&w.lock) == 0);
        EXPECT(lade_rwlock_unlock(&w.shared) == 0);
        EXPECT(w.cond.waiters.n == 0 && w.sem.waiters.n == 0 && w.release.waiters.n == 0);
        EXPECT(w.shared.waiters.n == 0 && w.group.waiters.n == 0 && w.lock.waiters.n == 0);
        EXPECT(lade_chan_unref(w.c) == 0);
        EXPECT(lade_fd_close(w.fd) == 0);
        (void)close(end[1]);
    }
    return 0;
}

static void r21_cancel_ends_every_kind_of_wait_once(void **state)
{
    (void)state;
    for (unsigned w = 1; w <= 2; w++)
        assert_int_equal(rig_run(w, cancel_everywhere, NULL), 0);
}

static int sleep_shortly(void *arg)
{
    struct waiter *w = arg;
    int rc = lade_task_sleep_until(lade_clock_now() + 20000);
    EXPECT(rc == 0 || rc == -LADE_ECANCELED);
    rig_add(rc == 0 ? &w->ended : &w->leave, 1);
    return 0;
}

static int race_cancel(void *arg)
{
    struct waiter w = {0};
    unsigned rounds = *(unsigned *)arg;
    for (unsigned i = 0; i < rounds; i++) {
        lade_taskgroup g = {0};
        for (int j = 0; j < 4; j++)
            EXPECT(lade_taskgroup_start(&g, NULL, sleep_shortly, &w) == 0);
        int64_t until = lade_clock_now() + (int64_t)(i * 7919 % 40000);
        while (lade_clock_now() < until)
            lade_task_yield();
        lade_taskgroup_cancel(&g);
        EXPECT(lade_taskgroup_wait_until(&g, LADE_FOREVER) == 0);
    }
    EXPECT(w.ended + w.leave == 4 * (uint64_t)rounds);
    return 0;
}

static void r21_a_cancel_that_races_the_end_of_the_wait_is_one_or_the_other(void **state)
{
    (void)state;
    unsigned rounds = rig_rounds(500);
    for (unsigned w = 1; w <= 2; w++)
        assert_int_equal(rig_run(w, race_cancel, &rounds), 0);
}

/* ---- R22 ---- */

struct family {
    lade_gate gate;
    uint64_t alive, cancelled;
};

static int grandchild(void *arg)
{
    struct family *f = arg;
    rig_add(&f->alive, 1);
    int rc = lade_gate_wait(&f->gate);
    EXPECT(rc == -LADE_ECANCELED);
    rig_add(&f->cancelled, 1);
    return rc;
}

static int child(void *arg)
{
    struct family *f = arg;
    lade_taskgroup g = {0};
    for (int i = 0; i < 3; i++)
        EXPECT(lade_taskgroup_start(&g, NULL, grandchild, f) == 0);
    int rc = lade_taskgroup_wait_until(&g, LADE_FOREVER);
    EXPECT(rc == -LADE_ECANCELED && g.n == 0);
    rig_add(&f->cancelled, 1);
    return rc;
}

static int cancel_family(void *arg)
{
    struct family *f = arg;
    lade_taskgroup g = {0};
    for (int i = 0; i < 3; i++)
        EXPECT(lade_taskgroup_start(&g, NULL, child, f) == 0);
    EXPECT(rig_reaches(&f->alive, 9));
    EXPECT(lade_taskgroup_wait_until(&g, rig_in_ms(1)) == -LADE_ETIMEDOUT);
    lade_taskgroup_cancel(&g);
    EXPECT(lade_taskgroup_wait_until(&g, LADE_FOREVER) == -LADE_ECANCELED); /* a member's code */
    EXPECT(f->cancelled == 12);
    EXPECT(lade_taskgroup_start(&g, NULL, child, f) == -LADE_ECANCELED);
    return 0;
}

static void r22_cancelling_a_group_reaches_grandchildren(void **state)
{
    (void)state;
    for (unsigned w = 1; w <= 2; w++) {
        struct family f = {0};
        assert_int_equal(rig_run(w, cancel_family, &f), 0);
    }
}

static void stay_parked(void *arg)
{
    (void)lade_gate_wait(arg);
}

static int leave_them_parked(void *arg)
{
    for (int i = 0; i < 50; i++)
        EXPECT(lade_task_start(NULL, stay_parked, arg) == 0);
    lade_task_yield();
    return 7;
}

/* Leaks are found by the sanitizer of the dev build. */
static void r22_the_end_takes_parked_tasks_with_it(void **state)
{
    (void)state;
    for (unsigned w = 1; w <= 2; w++) {
        lade_gate gate = {0};
        assert_int_equal(rig_run(w, leave_them_parked, &gate), 7);
    }
}

/* ---- R23 ---- */

static int fail_with(void *arg)
{
    return *(int *)arg;
}

static int failing_members(void *arg)
{
    (void)arg;
    int codes[3] = {0, -LADE_EIO, 5};
    lade_taskgroup g = {0};
    for (int i = 0; i < 3; i++)
        EXPECT(lade_taskgroup_start(&g, NULL, fail_with, &codes[i]) == 0);
    EXPECT(lade_taskgroup_wait_until(&g, LADE_FOREVER) == -LADE_EIO);
    return 0;
}

static void r23_the_group_has_the_code_of_a_failure(void **state)
{
    (void)state;
    assert_int_equal(rig_run(1, failing_members, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(r21_cancel_ends_every_kind_of_wait_once),
        cmocka_unit_test(r21_a_cancel_that_races_the_end_of_the_wait_is_one_or_the_other),
        cmocka_unit_test(r22_cancelling_a_group_reaches_grandchildren),
        cmocka_unit_test(r22_the_end_takes_parked_tasks_with_it),
        cmocka_unit_test(r23_the_group_has_the_code_of_a_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
