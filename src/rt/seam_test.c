#include "rt/seam.h"

#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/mem.h"

#define LONG (20 * LADE_SECOND) /* never reached: a bound for a broken build */

struct counter {
    struct lr_mutex lock;
    int64_t n;
};

static void count_up(void *p)
{
    struct counter *c = p;
    for (int i = 0; i < 20000; i++) {
        lr_mutex_lock(&c->lock);
        c->n++;
        lr_mutex_unlock(&c->lock);
    }
}

static void a_mutex_lets_one_thread_in(void **state)
{
    (void)state;
    struct counter c = {.n = 0};
    lr_mutex_init(&c.lock);
    struct lr_thread t[4] = {0};
    for (size_t i = 0; i < LB_ARRAY_LEN(t); i++)
        assert_int_equal(lr_thread_start(&t[i], "count", count_up, &c), 0);
    for (size_t i = 0; i < LB_ARRAY_LEN(t); i++)
        lr_thread_join(&t[i]);
    assert_int_equal(c.n, 80000);
    lr_mutex_fini(&c.lock);
}

/* One value that two threads hand to and fro. */
struct pingpong {
    struct lr_mutex lock;
    struct lr_cond changed;
    int turn; /* guarded by: lock */
    int n;    /* guarded by: lock */
    bool late;
};

static void play(struct pingpong *p, int me)
{
    lr_mutex_lock(&p->lock);
    while (p->n < 2000 && !p->late) {
        if (p->turn != me) {
            p->late = !lr_cond_wait(&p->changed, &p->lock, lb_deadline_in(LONG));
            continue;
        }
        p->n++;
        p->turn = !me;
        lr_cond_wake_one(&p->changed);
    }
    lr_cond_wake_all(&p->changed);
    lr_mutex_unlock(&p->lock);
}

static void play_second(void *p)
{
    play(p, 1);
}

static void a_condition_wakes_its_waiter(void **state)
{
    (void)state;
    struct pingpong p = {.turn = 0};
    lr_mutex_init(&p.lock);
    lr_cond_init(&p.changed);
    struct lr_thread t = {0};
    assert_int_equal(lr_thread_start(&t, "second", play_second, &p), 0);
    play(&p, 0);
    lr_thread_join(&t);
    assert_false(p.late);
    assert_int_equal(p.n, 2000);
    lr_cond_fini(&p.changed);
    lr_mutex_fini(&p.lock);
}

static void waits_end_at_their_deadline_and_not_before(void **state)
{
    (void)state;
    struct lr_mutex lock;
    struct lr_cond never;
    lr_mutex_init(&lock);
    lr_cond_init(&never);
    struct lr_event quiet;
    assert_int_equal(lr_event_init(&quiet), 0);

    int64_t deadline = lb_deadline_in(20 * LADE_MILLISECOND);
    lr_mutex_lock(&lock);
    while (lr_cond_wait(&never, &lock, deadline))
        ; /* woken without cause */
    lr_mutex_unlock(&lock);
    assert_true(lb_clock_mono() >= deadline);

    deadline = lb_deadline_in(20 * LADE_MILLISECOND);
    struct lr_fd fd = {.fd = quiet.fd, .want = LR_READ};
    assert_int_equal(lr_wait_fds(&fd, 1, deadline), 0);
    assert_true(lb_clock_mono() >= deadline);

    deadline = lb_deadline_in(20 * LADE_MILLISECOND);
    lr_sleep_until(deadline);
    assert_true(lb_clock_mono() >= deadline);

    lr_event_fini(&quiet);
    lr_cond_fini(&never);
    lr_mutex_fini(&lock);
}

static void a_deadline_in_the_past_does_not_wait(void **state)
{
    (void)state;
    struct lr_mutex lock;
    struct lr_cond never;
    lr_mutex_init(&lock);
    lr_cond_init(&never);
    struct lr_event quiet;
    assert_int_equal(lr_event_init(&quiet), 0);
    struct lr_fd fd = {.fd = quiet.fd, .want = LR_READ};
    static const int64_t past[] = {INT64_MIN, -1, 0, 1};
    for (size_t i = 0; i < LB_ARRAY_LEN(past); i++) {
        lr_sleep_until(past[i]);
        lr_mutex_lock(&lock);
        assert_false(lr_cond_wait(&never, &lock, past[i]));
        lr_mutex_unlock(&lock);
        assert_int_equal(lr_wait_fds(&fd, 1, past[i]), 0);
    }
    lr_event_fini(&quiet);
    lr_cond_fini(&never);
    lr_mutex_fini(&lock);
}

static void an_event_stays_raised_until_cleared(void **state)
{
    (void)state;
    struct lr_event e;
    assert_int_equal(lr_event_init(&e), 0);
    lr_event_clear(&e); /* not raised: does not block */
    lr_event_raise(&e);
    lr_event_raise(&e);
    struct lr_fd fd = {.fd = e.fd, .want = LR_READ};
    assert_int_equal(lr_wait_fds(&fd, 1, lb_deadline_in(LONG)), 1);
    assert_int_equal(fd.ready, LR_READ);
    assert_int_equal(lr_wait_fds(&fd, 1, 0), 1);
    lr_event_clear(&e);
    assert_int_equal(lr_wait_fds(&fd, 1, 0), 0);
    assert_int_equal(fd.ready, 0);
    lr_event_fini(&e);
    lr_event_fini(&e); /* closed once only */
}

static void raise_it(void *p)
{
    lr_event_raise(p);
}

static void another_thread_wakes_a_wait_without_end(void **state)
{
    (void)state;
    struct lr_event e;
    assert_int_equal(lr_event_init(&e), 0);
    struct lr_thread t = {0};
    assert_int_equal(lr_thread_start(&t, "raise", raise_it, &e), 0);
    struct lr_fd fd[2] = {{.fd = -1, .want = LR_READ}, {.fd = e.fd, .want = LR_READ}};
    assert_int_equal(lr_wait_fds(fd, 2, LB_FOREVER), 1);
    assert_int_equal(fd[0].ready, 0); /* a descriptor below zero is ignored */
    assert_int_equal(fd[1].ready, LR_READ);
    lr_thread_join(&t);
    lr_event_fini(&e);
}

static void descriptors_tell_read_write_and_hang_up(void **state)
{
    (void)state;
    int end[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, end), 0);
    struct lr_fd fd = {.fd = end[0], .want = LR_READ | LR_WRITE};
    assert_int_equal(lr_wait_fds(&fd, 1, lb_deadline_in(LONG)), 1);
    assert_int_equal(fd.ready, LR_WRITE);
    assert_int_equal(write(end[1], "x", 1), 1);
    assert_int_equal(lr_wait_fds(&fd, 1, lb_deadline_in(LONG)), 1);
    assert_int_equal(fd.ready, LR_READ | LR_WRITE);
    (void)close(end[1]);
    fd.want = LR_READ;
    assert_int_equal(lr_wait_fds(&fd, 1, lb_deadline_in(LONG)), 1);
    assert_true(fd.ready & LR_ERROR);
    assert_true(fd.ready & LR_READ); /* what came before the hang-up can still be read */
    (void)close(end[0]);
}

static void note_signal(int sig)
{
    (void)sig;
}

struct beep {
    pthread_t whom;
    struct lr_event over;
};

/* Signals the waiter again and again, then raises the event: the wait must come to its end in spite of EINTR. */
static void beep(void *p)
{
    struct beep *b = p;
    for (int i = 0; i < 20; i++) {
        (void)pthread_kill(b->whom, SIGUSR1);
        lr_sleep_until(lb_deadline_in(LADE_MILLISECOND));
    }
    lr_event_raise(&b->over);
}

static void signals_do_not_end_a_wait(void **state)
{
    (void)state;
    struct sigaction sa = {.sa_handler = note_signal};
    struct sigaction before;
    assert_int_equal(sigaction(SIGUSR1, &sa, &before), 0);
    struct beep b = {.whom = pthread_self()};
    assert_int_equal(lr_event_init(&b.over), 0);
    struct lr_thread t = {0};
    assert_int_equal(lr_thread_start(&t, "beep", beep, &b), 0);
    int64_t asleep = lb_deadline_in(5 * LADE_MILLISECOND);
    lr_sleep_until(asleep);
    assert_true(lb_clock_mono() >= asleep);
    struct lr_fd fd = {.fd = b.over.fd, .want = LR_READ};
    assert_int_equal(lr_wait_fds(&fd, 1, lb_deadline_in(LONG)), 1);
    lr_thread_join(&t);
    lr_event_fini(&b.over);
    assert_int_equal(sigaction(SIGUSR1, &before, NULL), 0);
}

struct seen {
    sigset_t mask;
    char name[32];
};

static void look_around(void *p)
{
    struct seen *s = p;
    (void)pthread_sigmask(SIG_SETMASK, NULL, &s->mask);
    (void)pthread_getname_np(pthread_self(), s->name, sizeof(s->name));
}

/* Signals belong to the thread that runs the worker; none of ours may swallow a TERM. */
static void threads_block_signals_and_have_a_name(void **state)
{
    (void)state;
    struct seen s = {0};
    struct lr_thread t = {0};
    assert_int_equal(lr_thread_start(&t, "a-name-longer-than-fifteen", look_around, &s), 0);
    lr_thread_join(&t);
    assert_true(sigismember(&s.mask, SIGTERM));
    assert_true(sigismember(&s.mask, SIGCHLD));
    assert_string_equal(s.name, "a-name-longer-t");
    sigset_t own;
    assert_int_equal(pthread_sigmask(SIG_SETMASK, NULL, &own), 0);
    assert_false(sigismember(&own, SIGTERM));
    lr_thread_join(&t); /* joined already, or never started: nothing */
}

static void want_of_memory_or_descriptors_is_a_failure(void **state)
{
    (void)state;
    struct seen s = {0};
    struct lr_thread t = {0};
    lb_mem_fail_after(1);
    assert_int_equal(lr_thread_start(&t, "none", look_around, &s), -LADE_ENOMEM);
    lb_mem_fail_after(0);
    assert_false(t.started);

    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    struct rlimit none = {.rlim_cur = 0, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    struct lr_event e;
    int rc = lr_event_init(&e);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(rc, -LADE_EIO);
    lr_event_fini(&e);
}

struct pulsed {
    struct lr_pulse pulse;
    _Atomic uint64_t round, seen;
};

/* Follows the rounds; each is seen before the next begins. */
static void follow(void *p)
{
    struct pulsed *k = p;
    for (uint64_t last = 0; last < 2000;) {
        uint32_t count = lr_pulse_count(&k->pulse);
        if (atomic_load(&k->round) == last) {
            if (last % 3 == 0) { /* the raise may come right between looking and waiting */
                lr_yield_turn();
                (void)sched_yield();
            }
            lr_pulse_wait(&k->pulse, count);
            continue;
        }
        last++;
        atomic_fetch_add(&k->seen, 1);
    }
}

static void one_raise_wakes_all_threads_and_tasks_and_none_is_lost(void **state)
{
    (void)state;
    static struct pulsed k;
    struct lr_thread t[6] = {0};
    int64_t end = lb_deadline_in(LONG);
    assert_int_equal(lr_tasks_hold(), 0);
    for (size_t i = 0; i < LB_ARRAY_LEN(t); i++)
        assert_int_equal(i % 2 ? lr_thread_start_task(&t[i], "follow", follow, &k)
                               : lr_thread_start(&t[i], "follow", follow, &k),
                         0);
    for (uint64_t round = 1; round <= 2000; round++) {
        if (round % 4 == 0) /* now all of them wait, now some */
            lr_sleep_until(lb_deadline_in(LADE_MILLISECOND / 20));
        atomic_store(&k.round, round);
        lr_pulse_raise(&k.pulse);
        while (atomic_load(&k.seen) < round * LB_ARRAY_LEN(t) && lb_clock_mono() < end)
            (void)sched_yield();
        assert_int_equal(atomic_load(&k.seen), round * LB_ARRAY_LEN(t));
    }
    for (size_t i = 0; i < LB_ARRAY_LEN(t); i++)
        lr_thread_join(&t[i]);
    lr_tasks_release();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_mutex_lets_one_thread_in),
        cmocka_unit_test(a_condition_wakes_its_waiter),
        cmocka_unit_test(one_raise_wakes_all_threads_and_tasks_and_none_is_lost),
        cmocka_unit_test(waits_end_at_their_deadline_and_not_before),
        cmocka_unit_test(a_deadline_in_the_past_does_not_wait),
        cmocka_unit_test(an_event_stays_raised_until_cleared),
        cmocka_unit_test(another_thread_wakes_a_wait_without_end),
        cmocka_unit_test(descriptors_tell_read_write_and_hang_up),
        cmocka_unit_test(signals_do_not_end_a_wait),
        cmocka_unit_test(threads_block_signals_and_have_a_name),
        cmocka_unit_test(want_of_memory_or_descriptors_is_a_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
