/* Misuse and want of memory: R26. Every public function has its line here; api/runtime_header_is_complete sees to that. */
#include "rt_rig.h"

#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"

#define INVALID(call) assert_int_equal(call, -LADE_EINVAL)

static void set_one(void *arg)
{
    rig_add(arg, 1);
}

static void nothing(void *arg)
{
    (void)arg;
}

static int zero(void *arg)
{
    (void)arg;
    return 0;
}

static lade_step_next done_at_once(lade_step *s)
{
    (void)s;
    return LADE_STEP_DONE;
}

/* ---- NULL and values out of range ---- */

static void r26_null_is_refused_by_runtime_tasks_and_groups(void **state)
{
    (void)state;
    lade_step s = {0};
    lade_taskgroup g = {0};
    INVALID(lade_rt_run(NULL, NULL, NULL));
    INVALID(lade_rt_start(NULL, NULL));
    INVALID(lade_rt_stop(NULL, 0));
    lade_rt_stats_get(NULL);
    lade_rt_dump(NULL);
    INVALID(lade_task_start(NULL, NULL, NULL));
    assert_int_equal(lade_task_cancel((lade_task){0}), 0);
    lade_task_name(NULL);
    lade_taskgroup_init(NULL);
    INVALID(lade_taskgroup_start(NULL, NULL, zero, NULL));
    INVALID(lade_taskgroup_start(&g, NULL, NULL, NULL));
    INVALID(lade_taskgroup_wait_until(NULL, 0));
    lade_taskgroup_cancel(NULL);
    INVALID(lade_step_start(NULL, done_at_once, NULL));
    INVALID(lade_step_start(&s, NULL, NULL));
    lade_rt_opts bad[] = {{.workers = 257},
                          {.stack_size = 1000},
                          {.stack_size = 4096 * 5 + 1},
                          {.blocking_max = 5000}};
    for (size_t i = 0; i < 4; i++) {
        lade_rt *rt;
        INVALID(lade_rt_run(&bad[i], zero, NULL));
        INVALID(lade_rt_start(&bad[i], &rt));
    }
}

static void r26_null_is_refused_by_channels(void **state)
{
    (void)state;
    uint64_t v = 0;
    lade_chan *c = lade_chan_new(LADE_CHAN_MPMC, 8, 1);
    assert_non_null(c);
    assert_null(lade_chan_new(LADE_CHAN_MPMC, 0, 1));
    assert_null(lade_chan_new(LADE_CHAN_MPMC, LADE_CHAN_ELEM_MAX + 1, 1));
    assert_null(lade_chan_new(LADE_CHAN_MPMC, 8, LADE_CHAN_CAP_MAX + 1));
    assert_null(lade_chan_new((lade_chan_kind)(LADE_CHAN_SPSC + 1), 8, 1));
    assert_null(lade_chan_new((lade_chan_kind)-1, 8, 1));
    assert_null(lade_chan_ref(NULL));
    assert_int_equal(lade_chan_unref(NULL), 0);
    assert_int_equal(lade_chan_len(NULL), 0);
    INVALID(lade_chan_close(NULL));
    INVALID(lade_chan_send(NULL, &v));
    INVALID(lade_chan_send(c, NULL));
    INVALID(lade_chan_recv(NULL, &v));
    INVALID(lade_chan_recv(c, NULL));
    INVALID(lade_chan_try_send(NULL, &v));
    INVALID(lade_chan_try_recv(NULL, &v));
    INVALID(lade_chan_send_until(NULL, &v, 0));
    INVALID(lade_chan_recv_until(NULL, &v, 0));
    INVALID(lade_chan_send_n(NULL, &v, 1));
    INVALID(lade_chan_send_n(c, NULL, 1));
    INVALID(lade_chan_send_n(c, &v, 0));
    INVALID(lade_chan_recv_n(NULL, &v, 1));
    INVALID(lade_chan_recv_n(c, &v, 0));
    INVALID(lade_chan_select(NULL, 1, 0));
    lade_case k[LADE_SELECT_MAX + 1] = {LADE_RECV(c, &v)};
    INVALID(lade_chan_select(k, LADE_SELECT_MAX + 1, 0));
    INVALID(lade_chan_select(k, -1, 0));
    k[0] = LADE_RECV(c, NULL);
    INVALID(lade_chan_select(k, 1, 0));
    k[0] = LADE_RECV_N(c, &v, 0, NULL);
    INVALID(lade_chan_select(k, 1, 0));
    k[0].op = 9;
    INVALID(lade_chan_select(k, 1, 0));
    assert_int_equal(lade_chan_close(c), 0);
    assert_int_equal(lade_chan_close(c), -LADE_ECLOSED);
    assert_int_equal(lade_chan_unref(c), 0);
}

static void r26_null_is_refused_by_locks_and_friends(void **state)
{
    (void)state;
    lade_mutex m = {0};
    lade_cond c = {0};
    lade_once o = {0};
    INVALID(lade_mutex_lock(NULL));
    INVALID(lade_mutex_lock_until(NULL, 0));
    INVALID(lade_mutex_trylock(NULL));
    INVALID(lade_mutex_unlock(NULL));
    INVALID(lade_rwlock_rdlock(NULL));
    INVALID(lade_rwlock_wrlock(NULL));
    INVALID(lade_rwlock_rdlock_until(NULL, 0));
    INVALID(lade_rwlock_wrlock_until(NULL, 0));
    INVALID(lade_rwlock_unlock(NULL));
    INVALID(lade_cond_wait(NULL, &m, 0));
    INVALID(lade_cond_wait(&c, NULL, 0));
    INVALID(lade_cond_signal(NULL));
    INVALID(lade_cond_broadcast(NULL));
    INVALID(lade_sem_wait(NULL));
    INVALID(lade_sem_wait_until(NULL, 0));
    INVALID(lade_sem_post(NULL));
    INVALID(lade_waitgroup_add(NULL, 1));
    INVALID(lade_waitgroup_done(NULL));
    INVALID(lade_waitgroup_wait_until(NULL, 0));
    INVALID(lade_gate_wait(NULL));
    INVALID(lade_gate_wait_until(NULL, 0));
    INVALID(lade_gate_open(NULL));
    assert_int_equal(lade_gate_wait_step(NULL, NULL), LADE_STEP_DONE);
    INVALID(lade_once_run(NULL, nothing, NULL));
    INVALID(lade_once_run(&o, NULL, NULL));
}

static void r26_null_is_refused_by_timers_sockets_and_bridges(void **state)
{
    (void)state;
    lade_timer t = {0};
    lade_fd *fd;
    lade_bridge *b;
    char byte;
    INVALID(lade_timer_arm(NULL, 1, nothing, NULL));
    INVALID(lade_timer_arm(&t, 1, NULL, NULL));
    assert_int_equal(lade_timer_stop(NULL), LADE_TIMER_IDLE);
    assert_int_equal(lade_timer_wait_step(&t, LADE_FOREVER, NULL), LADE_STEP_DONE);
    static const char *const addresses[] = {NULL,          "",
                                            "nonsense",    "127.0.0.1:99999",
                                            "127.0.0.1:",  "127.0.0.1:x",
                                            "[::1:80",     "1.2.3:1",
                                            "localhost:1", "unix:"};
    for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
        INVALID(lade_net_listen(addresses[i], &fd));
        INVALID(lade_net_connect(addresses[i], 0, &fd));
    }
    INVALID(lade_net_listen("127.0.0.1:0", NULL));
    INVALID(lade_net_connect("127.0.0.1:1", 0, NULL));
    INVALID(lade_net_accept(NULL, 0, &fd));
    INVALID(lade_net_port(NULL));
    INVALID(lade_fd_open(-1, &fd));
    INVALID(lade_fd_open(0, NULL));
    INVALID(lade_fd_read(NULL, &byte, 1, 0));
    INVALID(lade_fd_write(NULL, &byte, 1, 0));
    INVALID(lade_fd_wait(NULL, LADE_FD_READ, 0));
    INVALID(lade_fd_close(NULL));
    INVALID(lade_blocking_run(NULL, NULL));
    INVALID(lade_bridge_open(NULL, NULL));
    INVALID(lade_bridge_open((lade_rt *)&b, &b)); /* no such runtime */
    INVALID(lade_bridge_post(NULL, nothing, NULL));
    INVALID(lade_bridge_call(NULL, zero, NULL, 0));
    INVALID(lade_bridge_back(NULL, nothing, NULL));
    INVALID(lade_bridge_fd(NULL));
    INVALID(lade_bridge_drain(NULL));
    lade_bridge_close(NULL);
    assert_true(lade_clock_now() > 0);
}

/* ---- where no runtime runs, and on a plain thread beside one ---- */

static void r26_without_a_runtime_what_needs_one_is_refused(void **state)
{
    (void)state;
    lade_step s = {0};
    lade_timer t = {0};
    lade_taskgroup g = {0};
    lade_fd *fd;
    lade_bridge *b;
    lade_mutex m = {0};
    uint64_t v = 0;
    assert_int_equal(lade_task_start(NULL, nothing, NULL), -LADE_EPERM);
    assert_int_equal(lade_taskgroup_start(&g, NULL, zero, NULL), -LADE_EPERM);
    assert_int_equal(lade_taskgroup_wait_until(&g, LADE_FOREVER), 0); /* it is empty */
    assert_int_equal(lade_step_start(&s, done_at_once, NULL), -LADE_EPERM);
    assert_int_equal(lade_timer_arm(&t, 1, nothing, NULL), -LADE_EPERM);
    assert_int_equal(lade_timer_stop(&t), LADE_TIMER_IDLE);
    assert_int_equal(lade_net_listen("127.0.0.1:0", &fd), -LADE_EPERM);
    assert_int_equal(lade_bridge_open(NULL, &b), -LADE_EPERM);
    assert_null(lade_task_self().at);
    assert_int_equal(lade_task_cancelled(), 0);
    lade_task_yield();
    assert_int_equal(lade_task_sleep_until(1), 0);
    lade_rt_dump(stderr);
    lade_rt_stats stats = {.workers = 7};
    lade_rt_stats_get(&stats);
    assert_int_equal(stats.workers, 0);
    assert_int_equal(lade_mutex_lock(&m), 0); /* locks are for threads, too */
    assert_int_equal(lade_mutex_lock(&m), -LADE_EDEADLK);
    assert_int_equal(lade_mutex_unlock(&m), 0);
    assert_int_equal(lade_mutex_unlock(&m), -LADE_EPERM);
    assert_int_equal(lade_blocking_run(set_one, &v), 0); /* called directly */
    assert_int_equal(v, 1);
}

static void *unlock_what_is_not_mine(void *arg)
{
    EXPECT(lade_mutex_unlock(arg) == -LADE_EPERM);
    EXPECT(lade_mutex_trylock(arg) == -LADE_EAGAIN);
    return NULL;
}

static int leave_what_is_not_mine(void *arg)
{
    return lade_rwlock_unlock(arg);
}

static void *leave_in_thread(void *arg)
{
    EXPECT(lade_rwlock_unlock(arg) == -LADE_EPERM);
    return NULL;
}

static int misuse_inside(void *arg)
{
    (void)arg;
    lade_rt *second;
    EXPECT(lade_rt_run(NULL, zero, NULL) == -LADE_EBUSY);
    EXPECT(lade_rt_start(NULL, &second) == -LADE_EBUSY);
    lade_mutex m = {0};
    EXPECT(lade_mutex_lock(&m) == 0);
    pthread_t t;
    EXPECT(pthread_create(&t, NULL, unlock_what_is_not_mine, &m) == 0);
    EXPECT(pthread_join(t, NULL) == 0);
    EXPECT(lade_mutex_unlock(&m) == 0);
    lade_cond c = {0};
    EXPECT(lade_cond_wait(&c, &m, LADE_FOREVER) == -LADE_EPERM);
    lade_rwlock l = {0};
    EXPECT(lade_rwlock_unlock(&l) == -LADE_EPERM);
    EXPECT(lade_rwlock_wrlock(&l) == 0);
    EXPECT(lade_rwlock_wrlock(&l) == -LADE_EDEADLK && lade_rwlock_rdlock(&l) == -LADE_EDEADLK);
    lade_taskgroup g = {0};
    EXPECT(lade_taskgroup_start(&g, NULL, leave_what_is_not_mine, &l) == 0);
    EXPECT(lade_taskgroup_wait_until(&g, LADE_FOREVER) == -LADE_EPERM);
    EXPECT(pthread_create(&t, NULL, leave_in_thread, &l) == 0 && pthread_join(t, NULL) == 0);
    EXPECT(lade_rwlock_unlock(&l) == 0);
    EXPECT(lade_rwlock_unlock(&l) == -LADE_EPERM);
    lade_sem s = {.count = UINT32_MAX};
    EXPECT(lade_sem_post(&s) == -LADE_EINVAL && s.count == UINT32_MAX);
    EXPECT(lade_sem_wait(&s) == 0 && lade_sem_post(&s) == 0 && s.count == UINT32_MAX);
    lade_waitgroup w = {0};
    EXPECT(lade_waitgroup_done(&w) == -LADE_EINVAL);
    lade_fd *fd;
    EXPECT(lade_net_listen("127.0.0.1:0", &fd) == 0);
    EXPECT(lade_fd_wait(fd, 3, 0) == -LADE_EINVAL);
    EXPECT(lade_fd_read(fd, NULL, 1, 0) == -LADE_EINVAL);
    EXPECT(lade_fd_write(fd, NULL, 1, 0) == -LADE_EINVAL);
    EXPECT(lade_net_accept(fd, 0, NULL) == -LADE_EINVAL);
    EXPECT(lade_fd_close(fd) == 0);
    EXPECT(lade_fd_close(fd) == -LADE_EINVAL);
    EXPECT(lade_fd_read(fd, &m, 1, 0) == -LADE_EINVAL); /* closed, and nobody else has got it */
    EXPECT(lade_net_port(fd) == -LADE_EINVAL);
    return 0;
}

static void r26_misuse_inside_a_task_has_a_result_and_no_other_effect(void **state)
{
    (void)state;
    for (unsigned w = 1; w <= 2; w++)
        assert_int_equal(rig_run(w, misuse_inside, NULL), 0);
}

/* ---- where nothing may wait: steps and timer functions ---- */

struct held {
    lade_mutex m;
    lade_rwlock l;
    lade_chan *c;
    lade_gate closed;
    lade_once once;
    lade_taskgroup members;
    lade_waitgroup group;
    lade_fd *fd;
    uint64_t tried;
};

static void try_to_wait(void *arg)
{
    struct held *h = arg;
    uint64_t v = 0;
    lade_cond cond = {0};
    lade_sem sem = {0};
    lade_case k = LADE_RECV(h->c, &v);
    EXPECT(lade_task_self().at == NULL);
    EXPECT(lade_task_cancelled() == 0);
    lade_task_yield();
    EXPECT(lade_task_sleep_until(LADE_FOREVER) == -LADE_EPERM);
    EXPECT(lade_chan_recv(h->c, &v) == -LADE_EPERM);
    EXPECT(lade_chan_send(h->c, &v) == -LADE_EPERM);
    EXPECT(lade_chan_recv_n(h->c, &v, 1) == -LADE_EPERM);
    EXPECT(lade_chan_send_n(h->c, &v, 1) == -LADE_EPERM);
    EXPECT(lade_chan_try_recv(h->c, &v) == -LADE_EAGAIN); /* what does not wait works */
    EXPECT(lade_chan_select(&k, 1, LADE_FOREVER) == -LADE_EPERM);
    EXPECT(lade_mutex_lock(&h->m) == -LADE_EPERM);
    EXPECT(lade_mutex_trylock(&h->m) == -LADE_EPERM); /* who would own it? */
    EXPECT(lade_mutex_unlock(&h->m) == -LADE_EPERM);
    EXPECT(lade_rwlock_rdlock(&h->l) == -LADE_EPERM);
    EXPECT(lade_rwlock_wrlock(&h->l) == -LADE_EPERM);
    lade_rwlock unused = {0};
    EXPECT(lade_rwlock_wrlock(&unused) == -LADE_EPERM); /* who would be in? */
    EXPECT(lade_cond_wait(&cond, &h->m, LADE_FOREVER) == -LADE_EPERM);
    EXPECT(lade_sem_wait(&sem) == -LADE_EPERM);
    EXPECT(lade_gate_wait(&h->closed) == -LADE_EPERM);
    EXPECT(lade_once_run(&h->once, nothing, NULL) == -LADE_EPERM); /* somebody else is at it */
    EXPECT(lade_taskgroup_wait_until(&h->members, LADE_FOREVER) == -LADE_EPERM);
    EXPECT(lade_waitgroup_wait_until(&h->group, LADE_FOREVER) == -LADE_EPERM);
    EXPECT(lade_blocking_run(nothing, NULL) == -LADE_EPERM);
    EXPECT(lade_fd_read(h->fd, &v, 1, LADE_FOREVER) == -LADE_EPERM);
    rig_add(&h->tried, 1);
}

struct step_that_tries {
    lade_step step;
    struct held *held;
};

static lade_step_next try_in_step(lade_step *s)
{
    try_to_wait(((struct step_that_tries *)(void *)s)->held);
    return LADE_STEP_DONE;
}

static int wait_at_gate(void *arg)
{
    return lade_gate_wait(arg);
}

static int hold_everything(void *arg)
{
    (void)arg;
    struct held h = {.c = lade_chan_new(LADE_CHAN_MPMC, 8, 0), .once.begun = 1};
    int pair[2];
    EXPECT(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0 && lade_fd_open(pair[0], &h.fd) == 0);
    EXPECT(lade_mutex_lock(&h.m) == 0 && lade_rwlock_wrlock(&h.l) == 0);
    EXPECT(lade_taskgroup_start(&h.members, NULL, wait_at_gate, &h.closed) == 0);
    EXPECT(lade_waitgroup_add(&h.group, 1) == 0);
    struct step_that_tries s = {.held = &h};
    lade_taskgroup g = {0};
    EXPECT(lade_step_start(&s.step, try_in_step, &g) == 0);
    EXPECT(lade_taskgroup_wait_until(&g, LADE_FOREVER) == 0);
    lade_timer t = {0};
    EXPECT(lade_timer_arm(&t, 1, try_to_wait, &h) == 0);
    EXPECT(rig_reaches(&h.tried, 2));
    EXPECT(lade_mutex_unlock(&h.m) == 0 && lade_rwlock_unlock(&h.l) == 0);
    EXPECT(lade_gate_open(&h.closed) == 0);
    EXPECT(lade_taskgroup_wait_until(&h.members, LADE_FOREVER) == 0);
    EXPECT(lade_fd_close(h.fd) == 0 && close(pair[1]) == 0);
    return lade_chan_unref(h.c);
}

static void r26_steps_and_timer_functions_are_refused_every_wait(void **state)
{
    (void)state;
    for (unsigned w = 1; w <= 2; w++)
        assert_int_equal(rig_run(w, hold_everything, NULL), 0);
}

/* ---- memory: every function that allocates, with the nth allocation and all later ones failing ---- */

static int start_tasks(lade_bridge *b)
{
    (void)b;
    static uint64_t ended;
    uint64_t started = 0;
    int rc = 0;
    __atomic_store_n(&ended, 0, __ATOMIC_SEQ_CST);
    while (started < 40 && rc == 0) {
        rc = lade_task_start(NULL, set_one, &ended);
        started += rc == 0;
    }
    EXPECT(rig_reaches(&ended, started));
    return rc;
}

static int start_members(lade_bridge *b)
{
    (void)b;
    lade_taskgroup g = {0};
    lade_gate gate = {0};
    int rc = 0;
    for (int i = 0; i < 200 && rc == 0; i++)
        rc = lade_taskgroup_start(&g, NULL, wait_at_gate, &gate);
    EXPECT(lade_gate_open(&gate) == 0);
    EXPECT(lade_taskgroup_wait_until(&g, LADE_FOREVER) == 0);
    return rc;
}

static int make_channel(lade_bridge *b)
{
    (void)b;
    lade_chan *c = lade_chan_new(LADE_CHAN_MPMC, 8, 1000);
    EXPECT(lade_chan_unref(c) == 0);
    return c ? 0 : -LADE_ENOMEM;
}

static int call_what_blocks(lade_bridge *b)
{
    (void)b;
    uint64_t done = 0;
    int rc = lade_blocking_run(set_one, &done);
    EXPECT(done == (rc == 0));
    return rc;
}

static int open_sockets(lade_bridge *b)
{
    (void)b;
    lade_fd *l;
    lade_fd *here = NULL;
    lade_fd *there = NULL;
    char addr[32];
    int rc = lade_net_listen("127.0.0.1:0", &l);
    if (rc < 0)
        return rc;
    (void)snprintf(addr, sizeof(addr), "127.0.0.1:%d", lade_net_port(l));
    rc = lade_net_connect(addr, rig_patience(), &here);
    if (rc == 0)
        rc = lade_net_accept(l, rig_patience(), &there);
    if (there)
        EXPECT(lade_fd_close(there) == 0);
    if (here)
        EXPECT(lade_fd_close(here) == 0);
    EXPECT(lade_fd_close(l) == 0);
    return rc;
}

/* More at once than a chunk of the table holds. */
static int open_many_descriptors(lade_bridge *b)
{
    (void)b;

    enum { N = 300 };

    static lade_fd *fd[N];
    int n = 0;
    int rc = 0;
    while (n < N && rc == 0) {
        int end[2];
        if (pipe(end) != 0)
            break;
        (void)close(end[1]);
        rc = lade_fd_open(end[0], &fd[n]);
        if (rc == 0)
            n++;
        else
            (void)close(end[0]); /* it stayed ours */
    }
    while (n > 0)
        EXPECT(lade_fd_close(fd[--n]) == 0);
    return rc;
}

static int open_a_bridge(lade_bridge *b)
{
    lade_bridge *second;
    int rc = lade_bridge_open(NULL, &second);
    if (rc == 0)
        lade_bridge_close(second);
    (void)b;
    return rc;
}

static int post(lade_bridge *b)
{
    uint64_t done = 0;
    int rc = lade_bridge_post(b, set_one, &done);
    EXPECT(rc < 0 || rig_reaches(&done, 1));
    return rc;
}

static int call_over_the_bridge(lade_bridge *b)
{
    return lade_bridge_call(b, zero, NULL, LADE_FOREVER);
}

static int send_back(lade_bridge *b)
{
    uint64_t done = 0;
    int rc = lade_bridge_back(b, set_one, &done);
    EXPECT(lade_bridge_drain(b) == (rc == 0) && done == (rc == 0));
    return rc;
}

static int run_steps(lade_bridge *b)
{
    (void)b;
    lade_step s = {0};
    lade_taskgroup g = {0};
    int rc = lade_step_start(&s, done_at_once, &g);
    EXPECT(lade_taskgroup_wait_until(&g, LADE_FOREVER) == 0);
    return rc;
}

static int (*const allocating[])(lade_bridge *) = {
    start_tasks,      start_members, make_channel,
    call_what_blocks, open_sockets,  open_many_descriptors,
    open_a_bridge,    post,          call_over_the_bridge,
    send_back,        run_steps};

static int fail_each(void *arg)
{
    (void)arg;
    lade_bridge *b;
    EXPECT(lade_bridge_open(NULL, &b) == 0);
    for (size_t i = 0; i < sizeof(allocating) / sizeof(allocating[0]); i++) {
        int rc = -1;
        for (uint64_t n = 1; n < 1000 && rc != 0; n++) {
            lb_mem_fail_after(n);
            rc = allocating[i](b);
            lb_mem_fail_after(0);
            EXPECT(rc == 0 || rc == -LADE_ENOMEM);
        }
        EXPECT(rc == 0);
        EXPECT(allocating[i](b) == 0); /* and nothing is broken */
    }
    lade_bridge_close(b);
    return 0;
}

static void out_of_memory_in_any_call_is_a_result(void **state)
{
    (void)state;
    assert_int_equal(rig_run(1, fail_each, NULL), 0);
}

/* Also in the start of a runtime, of both kinds. */
static void out_of_memory_at_any_allocation_is_survived(void **state)
{
    (void)state;
    for (int hosted = 0; hosted < 2; hosted++) {
        int rc = -1;
        for (uint64_t n = 1; n < 1000 && rc != 0; n++) {
            lade_rt *rt = NULL;
            lade_rt_opts o = {.workers = 2};
            lb_mem_fail_after(n);
            rc = hosted ? lade_rt_start(&o, &rt) : lade_rt_run(&o, zero, NULL);
            lb_mem_fail_after(0);
            assert_true(rc == 0 || rc == -LADE_ENOMEM);
            if (rt)
                assert_int_equal(lade_rt_stop(rt, LADE_FOREVER), 0);
        }
        assert_int_equal(rc, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(r26_without_a_runtime_what_needs_one_is_refused),
        cmocka_unit_test(out_of_memory_at_any_allocation_is_survived),
        cmocka_unit_test(out_of_memory_in_any_call_is_a_result),
        cmocka_unit_test(r26_null_is_refused_by_runtime_tasks_and_groups),
        cmocka_unit_test(r26_null_is_refused_by_channels),
        cmocka_unit_test(r26_null_is_refused_by_locks_and_friends),
        cmocka_unit_test(r26_null_is_refused_by_timers_sockets_and_bridges),
        cmocka_unit_test(r26_misuse_inside_a_task_has_a_result_and_no_other_effect),
        cmocka_unit_test(r26_steps_and_timer_functions_are_refused_every_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
