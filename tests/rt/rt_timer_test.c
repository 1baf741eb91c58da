/* Timers: R27, C-103, C-104, C-105. */
#include "rt_rig.h"

struct alarm {
    lade_timer timer;
    int64_t at, fired_at;
    uint64_t *fired, place;
    struct alarm *friend;
    unsigned rounds;
};

static void note(void *arg)
{
    struct alarm *a = arg;
    a->fired_at = lade_clock_now();
    a->place = rig_add(a->fired, 1);
}

/* ---- R27 ---- */

static int order_and_lateness(void *arg)
{
    enum { N = 200 };

    unsigned workers = *(unsigned *)arg;
    struct alarm *a = calloc(N, sizeof(*a));
    uint64_t fired = 0;
    int64_t now = lade_clock_now();
    for (int i = 0; i < N; i++) {
        int k = i * 37 % N; /* armed out of order */
        a[k].at = now + LADE_MILLISECOND * (20 + k / 2);
        a[k].fired = &fired;
        EXPECT(lade_timer_arm(&a[k].timer, a[k].at, note, &a[k]) == 0);
    }
    EXPECT(rig_reaches(&fired, N));
    for (int i = 0; i < N; i++) {
        EXPECT(a[i].fired_at >= a[i].at);
        EXPECT(rig_in_time(a[i].fired_at - a[i].at, 2));
        for (int j = 0; j < i && workers == 1; j++)
            EXPECT(a[j].at == a[i].at || a[j].place < a[i].place); /* in the order of their times */
    }
    struct alarm past = {.fired = &fired};
    fired = 0;
    EXPECT(lade_timer_arm(&past.timer, 1, note, &past) == 0);
    EXPECT(rig_reaches(&fired, 1));
    EXPECT(lade_task_sleep_until(1) == 0);
    int64_t last = 0;
    for (int i = 0; i < 10000; i++) {
        int64_t t = lade_clock_now();
        EXPECT(t >= last);
        last = t;
    }
    free(a);
    return 0;
}

static void r27_timers_fire_in_time_and_never_early(void **state)
{
    (void)state;
    for (unsigned w = 1; w <= 2; w++)
        assert_int_equal(rig_run(w, order_and_lateness, &w), 0);
}

/* There are no levels and so no cascades; the distances at which a wheel would have them are tried all the same. */
static int armed_and_stopped(void *arg)
{
    unsigned n = *(unsigned *)arg;
    struct alarm *a = calloc(n, sizeof(*a));
    uint64_t fired = 0;
    int64_t now = lade_clock_now();
    for (unsigned i = 0; i < n; i++) {
        a[i].fired = &fired;
        int64_t far = (int64_t)1 << (6 * (1 + i % 6));
        a[i].at = now + LADE_MINUTE + (far + (int64_t)(i % 3) - 1) * LADE_MILLISECOND;
        EXPECT(lade_timer_arm(&a[i].timer, a[i].at, note, &a[i]) == 0);
    }
    lade_rt_stats s;
    lade_rt_stats_get(&s);
    EXPECT(s.timers == n);
    for (unsigned i = 0; i < n; i++)
        EXPECT(lade_timer_stop(&a[(uint64_t)i * 7919 % n].timer) ==
               (n % 7919 == 0 ? LADE_TIMER_IDLE : LADE_TIMER_STOPPED));
    lade_rt_stats_get(&s);
    EXPECT(s.timers == 0 && fired == 0);
    free(a);
    return 0;
}

static void r27_a_hundred_thousand_timers_armed_and_stopped(void **state)
{
    (void)state;
    unsigned n = rig_rounds(100000) + 1;
    assert_int_equal(rig_run(1, armed_and_stopped, &n), 0);
    assert_int_equal(rig_run(2, armed_and_stopped, &n), 0);
}

/* ---- C-103 ---- */

struct churn {
    uint64_t stop, rearms, late;
    int64_t due, worst; /* due: atomic, 0 = the ticker is awake */
};

static int rearm(void *arg)
{
    struct churn *c = arg;
    while (!rig_get(&c->stop)) {
        EXPECT(lade_task_sleep_until(lade_clock_now() + 100000) == 0);
        rig_add(&c->rearms, 1);
        int64_t due = __atomic_load_n(&c->due, __ATOMIC_SEQ_CST);
        if (due != 0 && lade_clock_now() >= due)
            rig_add(&c->late, 1); /* a turn for us, although the ticker's time has come */
    }
    return 0;
}

static int churn(void *arg)
{
    struct churn *c = arg;
    lade_taskgroup g = {0};
    for (int i = 0; i < 1024; i++)
        EXPECT(lade_taskgroup_start(&g, NULL, rearm, c) == 0);
    for (int i = 0; i < 10; i++) {
        int64_t next = rig_in_ms(50);
        __atomic_store_n(&c->due, next, __ATOMIC_SEQ_CST);
        EXPECT(lade_task_sleep_until(next) == 0);
        __atomic_store_n(&c->due, 0, __ATOMIC_SEQ_CST);
        int64_t late = lade_clock_now() - next;
        c->worst = late > c->worst ? late : c->worst;
        lade_rt_stats s;
        lade_rt_stats_get(&s);
        EXPECT(s.timers <= 1025); /* no dead ones are kept */
    }
    EXPECT(rig_reaches(&c->rearms, 2048));
    rig_add(&c->stop, 1);
    return lade_taskgroup_wait_until(&g, LADE_FOREVER);
}

/*
 * C-103: timers that are armed again at once starve neither other timers nor tasks. On one worker, each of the others has a few
 * turns at most while the ticker is due: what was due before it, and a round of the queue.
 */
static void timers_that_churn_do_not_delay_a_slow_one(void **state)
{
    (void)state;
    for (unsigned w = 1; w <= 2; w++) {
        struct churn c = {0};
        assert_int_equal(rig_run(w, churn, &c), 0);
        assert_true(w > 1 || c.late < 10 * 8 * 1024);
        assert_true(rig_in_time(c.worst, 50));
    }
}

/* ---- C-104 ---- */

static void stop_and_rearm(void *arg)
{
    struct alarm *a = arg;
    rig_add(a->fired, 1);
    lade_timer_was was = lade_timer_stop(&a->friend->timer);
    EXPECT(was == LADE_TIMER_STOPPED || was == LADE_TIMER_IDLE || was == LADE_TIMER_RUNNING);
    if (a->rounds-- == 0)
        return;
    EXPECT(lade_timer_arm(&a->timer, lade_clock_now() + 1000, stop_and_rearm, a) == 0);
    EXPECT(lade_timer_stop(&a->timer) != LADE_TIMER_IDLE); /* from inside its own callback */
    EXPECT(lade_timer_arm(&a->timer, lade_clock_now() + 1000, stop_and_rearm, a) == 0);
    if (was == LADE_TIMER_STOPPED)
        EXPECT(lade_timer_arm(&a->friend->timer, lade_clock_now() + 500, stop_and_rearm,
                              a->friend) == 0);
}

static void free_itself(void *arg)
{
    struct alarm *a = arg;
    uint64_t *fired = a->fired;
    free(a);
    rig_add(fired, 1);
}

static int callbacks_that_meddle(void *arg)
{
    unsigned rounds = *(unsigned *)arg;
    struct alarm a[4] = {0};
    uint64_t fired = 0;
    for (int i = 0; i < 4; i++) {
        a[i].fired = &fired;
        a[i].friend = &a[i ^ 1];
        a[i].rounds = rounds;
        EXPECT(lade_timer_arm(&a[i].timer, lade_clock_now(), stop_and_rearm, &a[i]) == 0);
    }
    EXPECT(rig_reaches(&fired, rounds));
    lade_rt_stats s;
    do { /* they end by their rounds, or were stopped by a friend */
        (void)lade_task_sleep_until(rig_in_ms(1));
        lade_rt_stats_get(&s);
    } while (s.timers > 0);
    (void)lade_task_sleep_until(rig_in_ms(5));
    fired = 0;
    for (int i = 0; i < 100; i++) {
        struct alarm *heap = calloc(1, sizeof(*heap));
        heap->fired = &fired;
        EXPECT(lade_timer_arm(&heap->timer, lade_clock_now() + 1000, free_itself, heap) == 0);
    }
    EXPECT(rig_reaches(&fired, 100));
    return 0;
}

/* C-104: callbacks stop, arm again and free themselves and each other. */
static void callbacks_may_meddle_with_timers(void **state)
{
    (void)state;
    unsigned rounds = rig_rounds(1000);
    for (unsigned w = 1; w <= 2; w++)
        assert_int_equal(rig_run(w, callbacks_that_meddle, &rounds), 0);
}

/* ---- C-105 ---- */

static int stopped_in_every_state(void *arg)
{
    (void)arg;
    uint64_t fired = 0;
    struct alarm never = {.fired = &fired};
    struct alarm other = {.fired = &fired, .at = rig_in_ms(10)};
    EXPECT(lade_timer_arm(&other.timer, other.at, note, &other) == 0);
    EXPECT(lade_timer_stop(&never.timer) == LADE_TIMER_IDLE);
    EXPECT(lade_timer_arm(&never.timer, rig_in_ms(5000), note, &never) == 0);
    EXPECT(lade_timer_stop(&never.timer) == LADE_TIMER_STOPPED);
    EXPECT(lade_timer_stop(&never.timer) == LADE_TIMER_IDLE);
    EXPECT(rig_reaches(&fired, 1));
    EXPECT(other.fired_at >= other.at);
    EXPECT(lade_timer_stop(&other.timer) == LADE_TIMER_IDLE); /* it has fired */
    EXPECT(lade_timer_arm(&other.timer, rig_in_ms(1), note, &other) == 0);
    EXPECT(lade_timer_arm(&other.timer, rig_in_ms(2), note, &other) == 0); /* moved, not doubled */
    EXPECT(rig_reaches(&fired, 2));
    (void)lade_task_sleep_until(rig_in_ms(5));
    EXPECT(fired == 2);
    EXPECT(lade_timer_stop(NULL) == LADE_TIMER_IDLE);
    EXPECT(lade_timer_arm(NULL, 1, note, NULL) == -LADE_EINVAL);
    EXPECT(lade_timer_arm(&never.timer, 1, NULL, NULL) == -LADE_EINVAL);
    return 0;
}

/* C-105: stopping a timer that is in no heap does nothing to those that are. */
static void stopping_what_is_not_armed_does_nothing(void **state)
{
    (void)state;
    assert_int_equal(rig_run(1, stopped_in_every_state, NULL), 0);
    lade_timer t = {0};
    assert_int_equal(lade_timer_arm(&t, 1, note, NULL), -LADE_EPERM); /* no runtime */
}

/* ---- steps and timers ---- */

struct ticking {
    lade_step step;
    lade_timer timer;
    unsigned n;
    uint64_t *done;
};

static lade_step_next tick(lade_step *s)
{
    struct ticking *t = (struct ticking *)(void *)s;
    LADE_STEP_BEGIN(s);
    while (t->n-- > 0)
        LADE_STEP_AWAIT(s, lade_timer_wait_step(&t->timer, lade_clock_now() + 200000, s));
    rig_add(t->done, 1);
    LADE_STEP_END(s);
}

static int ticking_steps(void *arg)
{
    (void)arg;
    struct ticking t[50] = {0};
    uint64_t done = 0;
    lade_taskgroup g = {0};
    for (int i = 0; i < 50; i++) {
        t[i].n = 10;
        t[i].done = &done;
        EXPECT(lade_step_start(&t[i].step, tick, &g) == 0);
    }
    EXPECT(lade_taskgroup_wait_until(&g, LADE_FOREVER) == 0);
    EXPECT(done == 50);
    return 0;
}

static void steps_wait_for_timers(void **state)
{
    (void)state;
    assert_int_equal(rig_run(1, ticking_steps, NULL), 0);
    assert_int_equal(rig_run(2, ticking_steps, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(r27_timers_fire_in_time_and_never_early),
        cmocka_unit_test(r27_a_hundred_thousand_timers_armed_and_stopped),
        cmocka_unit_test(timers_that_churn_do_not_delay_a_slow_one),
        cmocka_unit_test(callbacks_may_meddle_with_timers),
        cmocka_unit_test(stopping_what_is_not_armed_does_nothing),
        cmocka_unit_test(steps_wait_for_timers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
