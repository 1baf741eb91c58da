/* Cancelling, groups, failures, misuse, memory: R21..R26. */
#include "rt_rig.h"

#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"

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

/* ---- R24, R25: in a child process, what it says and how it ends ---- */

static int run_in_child(int (*fn)(void *), void *arg, int *status, char *said, size_t size)
{
    int out[2];
    assert_int_equal(pipe(out), 0);
    (void)fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)dup2(out[1], STDERR_FILENO);
        (void)close(out[0]);
        (void)close(out[1]);
        (void)signal(SIGSEGV, SIG_DFL);
        (void)alarm(120);
        lade_rt_opts o = {.workers = 2};
        _exit(lade_rt_run(&o, fn, arg) & 0x7f);
    }
    (void)close(out[1]);
    size_t n = 0;
    ssize_t got;
    while (n < size - 1 && (got = read(out[0], said + n, size - 1 - n)) > 0)
        n += (size_t)got;
    said[n] = '\0';
    (void)close(out[0]);
    assert_int_equal(waitpid(pid, status, 0), pid);
    return 0;
}

static int deadlock(void *arg)
{
    (void)arg;
    lade_task_name("waits in vain");
    lade_chan *c = lade_chan_new(LADE_CHAN_MPMC, 8, 0);
    uint64_t v;
    return lade_chan_recv(c, &v);
}

static void r24_a_deadlock_is_reported_with_what_each_task_waits_for(void **state)
{
    (void)state;
    char said[4096];
    int status;
    int64_t t0 = lade_clock_now();
    (void)run_in_child(deadlock, NULL, &status, said, sizeof(said));
    assert_true(rig_in_time(lade_clock_now() - t0, 100));
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 2);
    assert_non_null(strstr(said, "all tasks are asleep"));
    assert_non_null(strstr(said, "waits in vain"));
    assert_non_null(strstr(said, "receive from channel"));
}

static int not_a_deadlock(void *arg)
{
    (void)arg;
    lade_fd *l;
    EXPECT(lade_task_sleep_until(rig_in_ms(30)) == 0); /* a timer */
    EXPECT(lade_net_listen("127.0.0.1:0", &l) == 0);
    lade_fd *c;
    EXPECT(lade_net_accept(l, rig_in_ms(30), &c) == -LADE_ETIMEDOUT);
    EXPECT(lade_fd_close(l) == 0);
    lade_bridge *b;
    EXPECT(lade_bridge_open(NULL, &b) == 0);
    lade_gate g = {0};
    EXPECT(lade_gate_wait_until(&g, rig_in_ms(30)) == -LADE_ETIMEDOUT);
    lade_bridge_close(b);
    return 0;
}

static void r24_timers_descriptors_and_bridges_are_no_deadlock(void **state)
{
    (void)state;
    assert_int_equal(rig_run(2, not_a_deadlock, NULL), 0);
    assert_int_equal(rig_run(1, not_a_deadlock, NULL), 0);
}

static __attribute__((noinline)) int eat_the_stack(int depth)
{
    volatile char page[1024];
    page[0] = (char)depth;
    return depth <= 0 ? page[0] : eat_the_stack(depth - 1) + page[0];
}

static int overflow(void *arg)
{
    lade_task_name("too deep");
    return eat_the_stack(*(int *)arg);
}

static void r25_a_stack_overflow_is_named_and_ends_the_process(void **state)
{
    (void)state;
    char said[8192];
    int status;
    int depth = 1000000;
    (void)run_in_child(overflow, &depth, &status, said, sizeof(said));
    assert_non_null(strstr(said, "stack overflow in task too deep"));
    assert_true((WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV) ||
                (WIFEXITED(status) && WEXITSTATUS(status) != 0)); /* a sanitizer ends it its way */
}

/* ---- R26 ---- */

static lade_step_next step_that_may_not_wait(lade_step *s)
{
    (void)s;
    lade_gate closed = {0};
    EXPECT(lade_gate_wait(&closed) == -LADE_EPERM);
    EXPECT(lade_task_sleep_until(rig_in_ms(1000)) == -LADE_EPERM);
    lade_mutex m = {0};
    EXPECT(lade_mutex_lock(&m) == -LADE_EPERM);
    EXPECT(lade_task_self().at == NULL);
    return LADE_STEP_DONE;
}

static int misuse_inside(void *arg)
{
    (void)arg;
    EXPECT(lade_rt_run(NULL, misuse_inside, NULL) == -LADE_EBUSY);
    lade_rt *second;
    EXPECT(lade_rt_start(NULL, &second) == -LADE_EBUSY);
    lade_step s = {0};
    lade_taskgroup g = {0};
    EXPECT(lade_step_start(&s, step_that_may_not_wait, &g) == 0);
    EXPECT(lade_taskgroup_wait_until(&g, LADE_FOREVER) == 0);
    lade_fd *fd;
    EXPECT(lade_net_listen("nonsense", &fd) == -LADE_EINVAL);
    EXPECT(lade_net_listen("127.0.0.1:99999", &fd) == -LADE_EINVAL);
    EXPECT(lade_net_listen("[::1:80", &fd) == -LADE_EINVAL);
    EXPECT(lade_fd_open(-1, &fd) == -LADE_EINVAL);
    EXPECT(lade_fd_close(NULL) == -LADE_EINVAL);
    return 0;
}

static void r26_misuse_has_a_result_and_no_other_effect(void **state)
{
    (void)state;
    lade_gate gate = {0};
    uint64_t v = 0;
    assert_int_equal(lade_task_start(NULL, stay_parked, &gate), -LADE_EPERM); /* no runtime */
    assert_int_equal(lade_task_start(NULL, NULL, NULL), -LADE_EINVAL);
    assert_int_equal(lade_taskgroup_start(NULL, NULL, child, NULL), -LADE_EINVAL);
    assert_int_equal(lade_task_cancelled(), 0);
    assert_int_equal(lade_task_cancel((lade_task){0}), 0);
    assert_int_equal(lade_chan_send(NULL, &v), -LADE_EINVAL);
    assert_int_equal(lade_chan_recv(NULL, &v), -LADE_EINVAL);
    assert_int_equal(lade_chan_close(NULL), -LADE_EINVAL);
    assert_int_equal(lade_chan_unref(NULL), 0);
    assert_null(lade_chan_new(LADE_CHAN_MPMC, 0, 1));
    assert_null(lade_chan_new(LADE_CHAN_MPMC, LADE_CHAN_ELEM_MAX + 1, 1));
    assert_null(lade_chan_new(LADE_CHAN_MPMC, 8, LADE_CHAN_CAP_MAX + 1));
    assert_int_equal(lade_mutex_lock(NULL), -LADE_EINVAL);
    assert_int_equal(lade_mutex_unlock(NULL), -LADE_EINVAL);
    assert_int_equal(lade_sem_post(NULL), -LADE_EINVAL);
    assert_int_equal(lade_gate_open(NULL), -LADE_EINVAL);
    assert_int_equal(lade_rt_stop(NULL, 0), -LADE_EINVAL);
    assert_int_equal(lade_rt_run(NULL, NULL, NULL), -LADE_EINVAL);
    lade_rt_opts bad = {.workers = 1000};
    assert_int_equal(lade_rt_run(&bad, misuse_inside, NULL), -LADE_EINVAL);
    bad = (lade_rt_opts){.stack_size = 1000};
    assert_int_equal(lade_rt_run(&bad, misuse_inside, NULL), -LADE_EINVAL);
    lade_task_yield(); /* outside tasks: nothing */
    lade_rt_dump(stderr);
    assert_int_equal(rig_run(2, misuse_inside, NULL), 0);
}

/* ---- memory ---- */

static void set_flag(void *arg)
{
    rig_add(arg, 1);
}

static int use_everything(void *arg)
{
    uint64_t *used = arg;
    lade_taskgroup g = {0};
    lade_gate gate = {0};
    int rc = 0;
    for (int i = 0; i < 40 && rc == 0; i++)
        rc = lade_taskgroup_start(&g, NULL, wait_for_ever, &gate);
    lade_chan *c = lade_chan_new(LADE_CHAN_MPMC, 8, 16);
    (void)lade_chan_unref(c);
    int blocking = lade_blocking_run(set_flag, used);
    EXPECT(blocking == 0 || blocking == -LADE_ENOMEM);
    lade_fd *fd;
    int listening = lade_net_listen("127.0.0.1:0", &fd);
    EXPECT(listening == 0 || listening == -LADE_ENOMEM);
    if (listening == 0)
        EXPECT(lade_fd_close(fd) == 0);
    lade_bridge *b;
    int bridge = lade_bridge_open(NULL, &b);
    if (bridge == 0)
        lade_bridge_close(b);
    EXPECT(lade_gate_open(&gate) == 0);
    EXPECT(lade_taskgroup_wait_until(&g, LADE_FOREVER) == 0);
    bool all = rc == 0 && c && blocking == 0 && listening == 0 && bridge == 0;
    EXPECT(rc == 0 || rc == -LADE_ENOMEM);
    return all ? 1 : 0;
}

static void out_of_memory_at_any_allocation_is_survived(void **state)
{
    (void)state;
    uint64_t used = 0;
    for (uint64_t n = 1;; n++) {
        assert_true(n < 2000);
        lb_mem_fail_after(n);
        int rc = rig_run(1, use_everything, &used);
        lb_mem_fail_after(0);
        assert_true(rc == -LADE_ENOMEM || rc == 0 || rc == 1);
        if (rc == 1)
            break;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(r24_a_deadlock_is_reported_with_what_each_task_waits_for),
        cmocka_unit_test(r25_a_stack_overflow_is_named_and_ends_the_process),
        cmocka_unit_test(out_of_memory_at_any_allocation_is_survived),
        cmocka_unit_test(r21_cancel_ends_every_kind_of_wait_once),
        cmocka_unit_test(r21_a_cancel_that_races_the_end_of_the_wait_is_one_or_the_other),
        cmocka_unit_test(r22_cancelling_a_group_reaches_grandchildren),
        cmocka_unit_test(r22_the_end_takes_parked_tasks_with_it),
        cmocka_unit_test(r23_the_group_has_the_code_of_a_failure),
        cmocka_unit_test(r24_timers_descriptors_and_bridges_are_no_deadlock),
        cmocka_unit_test(r26_misuse_has_a_result_and_no_other_effect),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
