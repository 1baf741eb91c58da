/* The scheduler: R11..R17, C-100, C-102, C-106. */
#include "rt_rig.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#    define MEASURES_MEMORY false
#elif defined(__has_feature)
#    if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#        define MEASURES_MEMORY false
#    endif
#endif
#ifndef MEASURES_MEMORY
#    define MEASURES_MEMORY true
#endif

/* ---- R11 ---- */

struct ring {
    unsigned members, rounds;
    lade_chan **link;
    uint64_t next;
};

static int pass_on(void *arg)
{
    struct ring *r = arg;
    unsigned me = (unsigned)(rig_add(&r->next, 1) - 1);
    lade_chan *in = r->link[me];
    lade_chan *out = r->link[(me + 1) % r->members];
    for (unsigned i = 0; i < r->rounds; i++) {
        uint64_t token;
        EXPECT(lade_chan_recv_until(in, &token, rig_in_ms(20000)) == 0); /* no stall */
        token++;
        if (token % 7 == 0)
            lade_task_yield();
        if (token % 101 == 0)
            (void)lade_task_sleep_until(lade_clock_now() + (int64_t)(token % 50) * 1000);
        if (me == r->members - 1 && i == r->rounds - 1)
            EXPECT(token == (uint64_t)r->members * r->rounds);
        else
            EXPECT(lade_chan_send(out, &token) == 0);
    }
    return 0;
}

static int run_ring(void *arg)
{
    struct ring *r = arg;
    lade_taskgroup g = {0};
    for (unsigned i = 0; i < r->members; i++)
        EXPECT(lade_taskgroup_start(&g, NULL, pass_on, r) == 0);
    uint64_t token = 0;
    EXPECT(lade_chan_send(r->link[0], &token) == 0);
    return lade_taskgroup_wait_until(&g, LADE_FOREVER);
}

static void r11_a_token_goes_round_a_ring_without_a_stall(void **state)
{
    (void)state;
    static const unsigned members[] = {2, 3, 10, 100, 1000};
    for (unsigned workers = 1; workers <= 4; workers *= 2) {
        for (size_t m = 0; m < 5; m++) {
            struct ring r = {.members = members[m], .rounds = rig_rounds(4000 / members[m] + 1)};
            r.link = calloc(r.members, sizeof(lade_chan *));
            for (unsigned i = 0; i < r.members; i++)
                r.link[i] = lade_chan_new(LADE_CHAN_SPSC, 8, i % 2);
            assert_int_equal(rig_run(workers, run_ring, &r), 0);
            for (unsigned i = 0; i < r.members; i++)
                assert_int_equal(lade_chan_unref(r.link[i]), 0);
            free(r.link);
        }
    }
}

/* ---- R12 ---- */

struct post {
    uint64_t done;
    int64_t sent_at, worst;
};

static void note_latency(void *arg)
{
    struct post *p = arg;
    int64_t late = lade_clock_now() - p->sent_at;
    if (late > p->worst)
        p->worst = late;
    rig_add(&p->done, 1);
}

static void r12_a_post_from_outside_always_wakes_a_worker(void **state)
{
    (void)state;
    for (unsigned workers = 1; workers <= 2; workers++) {
        lade_rt *rt;
        lade_rt_opts o = {.workers = workers};
        assert_int_equal(lade_rt_start(&o, &rt), 0);
        lade_bridge *b;
        assert_int_equal(lade_bridge_open(rt, &b), 0);
        struct post p = {0};
        unsigned rounds = rig_rounds(3000);
        for (unsigned i = 0; i < rounds; i++) {
            p.sent_at = lade_clock_now();
            assert_int_equal(lade_bridge_post(b, note_latency, &p), 0);
            int64_t until = rig_in_ms(5000);
            while (rig_get(&p.done) <= i)
                assert_true(lade_clock_now() < until); /* lost wake-up */
            for (volatile unsigned j = 0; j < i * 37 % 2000; j++)
                ; /* meets them at different points of going to sleep */
        }
        assert_true(p.worst < 2 * LADE_SECOND);
        lade_bridge_close(b);
        assert_int_equal(lade_rt_stop(rt, LADE_FOREVER), 0);
    }
}

/* ---- R13, C-100 ---- */

struct fair {
    lade_chan *a, *b;
    uint64_t stop, turns, round_trips, timer_late;
    int64_t armed_for;
};

static int ping(void *arg)
{
    struct fair *f = arg;
    uint64_t v = 0;
    while (!rig_get(&f->stop)) {
        EXPECT(lade_chan_send(f->a, &v) == 0);
        EXPECT(lade_chan_recv(f->b, &v) == 0);
        f->round_trips++;
    }
    return lade_chan_close(f->a);
}

static int pong(void *arg)
{
    struct fair *f = arg;
    uint64_t v;
    while (lade_chan_recv(f->a, &v) == 0)
        EXPECT(lade_chan_send(f->b, &v) == 0);
    return 0;
}

static int stand_by(void *arg)
{
    struct fair *f = arg;
    while (!rig_get(&f->stop)) {
        rig_add(&f->turns, 1);
        lade_task_yield();
    }
    return 0;
}

static int sleep_and_measure(void *arg)
{
    struct fair *f = arg;
    while (!rig_get(&f->stop)) {
        int64_t at = rig_in_ms(10);
        (void)lade_task_sleep_until(at);
        uint64_t late = (uint64_t)(lade_clock_now() - at);
        if (late > f->timer_late)
            f->timer_late = late;
    }
    return 0;
}

static int fairness(void *arg)
{
    struct fair *f = arg;
    lade_taskgroup g = {0};
    EXPECT(lade_taskgroup_start(&g, NULL, ping, f) == 0);
    EXPECT(lade_taskgroup_start(&g, NULL, pong, f) == 0);
    for (int i = 0; i < 100; i++)
        EXPECT(lade_taskgroup_start(&g, NULL, stand_by, f) == 0);
    EXPECT(lade_taskgroup_start(&g, NULL, sleep_and_measure, f) == 0);
    (void)lade_task_sleep_until(rig_in_ms(300));
    rig_add(&f->stop, 1);
    return lade_taskgroup_wait_until(&g, LADE_FOREVER);
}

/* C-100 and R13: two that talk do not keep the others from the worker, nor the timers. */
static void r13_a_talking_pair_starves_nobody(void **state)
{
    (void)state;
    for (unsigned w = 1; w <= 2; w++) {
        uint64_t best = UINT64_MAX;
        for (int i = 0; i < RIG_TRIES && best >= (uint64_t)20 * LADE_MILLISECOND; i++) {
            struct fair f = {.a = lade_chan_new(LADE_CHAN_SPSC, 8, 1),
                             .b = lade_chan_new(LADE_CHAN_SPSC, 8, 1)};
            assert_int_equal(rig_run(w, fairness, &f), 0);
            assert_true(f.turns > 100); /* on a quiet machine 100 a second for each */
            assert_true(f.round_trips * 1000 >= f.turns); /* a turn for all, a turn for the pair */
            best = f.timer_late < best ? f.timer_late : best;
            assert_int_equal(lade_chan_unref(f.a), 0);
            assert_int_equal(lade_chan_unref(f.b), 0);
        }
        assert_true(best < (uint64_t)50 * LADE_MILLISECOND); /* 20 ms on a quiet machine */
    }
}

static int count_one(void *arg)
{
    rig_add(arg, 1);
    return 0;
}

static int spawn_many(void *arg)
{
    uint64_t done = 0;
    unsigned n = *(unsigned *)arg;
    lade_taskgroup g = {0};
    for (unsigned i = 0; i < n; i++)
        EXPECT(lade_taskgroup_start(&g, NULL, count_one, &done) == 0);
    EXPECT(lade_taskgroup_wait_until(&g, LADE_FOREVER) == 0);
    EXPECT(done == n);
    return 0;
}

static void r13_a_spawner_does_not_fill_the_memory(void **state)
{
    (void)state;
    struct rusage before;
    struct rusage after;
    (void)getrusage(RUSAGE_SELF, &before);
    unsigned n = rig_rounds(200000);
    for (unsigned w = 1; w <= 2; w++)
        assert_int_equal(rig_run(w, spawn_many, &n), 0);
    (void)getrusage(RUSAGE_SELF, &after);
    assert_true(!MEASURES_MEMORY || after.ru_maxrss - before.ru_maxrss < 64L * 1024);
}

/* ---- R14, C-106 ---- */

struct hog {
    uint64_t until, started, latest;
    int64_t queued_at;
};

static int hog_the_cpu(void *arg)
{
    struct hog *h = arg;
    while (lade_clock_now() < (int64_t)h->until)
        ;
    return 0;
}

static int start_late(void *arg)
{
    struct hog *h = arg;
    uint64_t waited = (uint64_t)(lade_clock_now() - h->queued_at);
    if (waited > h->latest)
        h->latest = waited;
    rig_add(&h->started, 1);
    return 0;
}

static int queue_behind_a_hog(void *arg)
{
    struct hog *h = arg;
    h->until = (uint64_t)rig_in_ms(400);
    h->queued_at = lade_clock_now();
    lade_taskgroup g = {0};
    lade_taskgroup others = {0};
    for (int i = 0; i < 50; i++)
        EXPECT(lade_taskgroup_start(&others, NULL, start_late, h) == 0);
    (void)hog_the_cpu(h); /* this very task: the 50 are behind it in the queue of its worker */
    EXPECT(lade_taskgroup_wait_until(&others, LADE_FOREVER) == 0);
    return lade_taskgroup_wait_until(&g, LADE_FOREVER);
}

/* C-106 and R14: what is queued behind a task that does not stop is taken over by another worker. */
static void r14_tasks_behind_a_hog_are_stolen(void **state)
{
    (void)state;
    struct hog h = {0};
    assert_int_equal(rig_run(2, queue_behind_a_hog, &h), 0);
    assert_int_equal(h.started, 50);
    assert_true(h.latest <
                (uint64_t)350 * LADE_MILLISECOND); /* 5 ms on a quiet machine; the hog runs 700 */
}

static int hog_beside_timers(void *arg)
{
    struct fair *f = arg;
    struct hog h = {.until = (uint64_t)rig_in_ms(400)};
    lade_taskgroup g = {0};
    EXPECT(lade_taskgroup_start(&g, NULL, sleep_and_measure, f) == 0);
    (void)lade_task_sleep_until(rig_in_ms(20));
    (void)hog_the_cpu(&h);
    rig_add(&f->stop, 1);
    return lade_taskgroup_wait_until(&g, LADE_FOREVER);
}

/* C-102: deadlines are met although a worker is saturated. */
static void timers_fire_beside_a_task_that_never_waits(void **state)
{
    (void)state;
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < RIG_TRIES && best >= (uint64_t)50 * LADE_MILLISECOND; i++) {
        struct fair f = {0};
        assert_int_equal(rig_run(2, hog_beside_timers, &f), 0);
        best = f.timer_late < best ? f.timer_late : best;
    }
    assert_true(best < (uint64_t)50 * LADE_MILLISECOND);
}

/* ---- R16 ---- */

struct idle {
    lade_step step;
    lade_gate *gate;
    uint64_t *done;
};

static lade_step_next idle_step(lade_step *s)
{
    struct idle *i = (struct idle *)(void *)s;
    LADE_STEP_BEGIN(s);
    LADE_STEP_AWAIT(s, lade_gate_wait_step(i->gate, s));
    rig_add(i->done, 1);
    LADE_STEP_END(s);
}

static int park_steps(void *arg)
{
    unsigned n = *(unsigned *)arg;
    struct idle *all = calloc(n, sizeof(*all));
    lade_gate gate = {0};
    uint64_t done = 0;
    lade_taskgroup g = {0};
    EXPECT(sizeof(struct idle) <= 64);
    for (unsigned i = 0; i < n; i++) {
        all[i].gate = &gate;
        all[i].done = &done;
        EXPECT(lade_step_start(&all[i].step, idle_step, &g) == 0);
    }
    EXPECT(lade_taskgroup_wait_until(&g, rig_in_ms(20)) == -LADE_ETIMEDOUT);
    EXPECT(rig_get(&done) == 0);
    EXPECT(lade_gate_open(&gate) == 0);
    EXPECT(lade_taskgroup_wait_until(&g, LADE_FOREVER) == 0);
    EXPECT(done == n);
    free(all);
    return 0;
}

static int wait_at_gate(void *arg)
{
    return lade_gate_wait(arg);
}

static long resident_kb(void)
{
    FILE *f = fopen("/proc/self/smaps_rollup", "r");
    long kb = 0;
    char line[256];
    while (f && fgets(line, sizeof(line), f)) {
        /* NOLINTNEXTLINE(cert-err34-c): the format is the kernel's own */
        if (sscanf(line, "Rss: %ld", &kb) == 1)
            break;
    }
    if (f)
        (void)fclose(f);
    return kb;
}

static int park_fibers(void *arg)
{
    long n = *(unsigned *)arg > 0 ? (long)*(unsigned *)arg : 1;
    lade_gate gate = {0};
    lade_taskgroup g = {0};
    long before = resident_kb();
    for (long i = 0; i < n; i++)
        EXPECT(lade_taskgroup_start(&g, NULL, wait_at_gate, &gate) == 0);
    EXPECT(lade_taskgroup_wait_until(&g, rig_in_ms(20)) == -LADE_ETIMEDOUT);
    if (MEASURES_MEMORY)
        EXPECT((resident_kb() - before) * 1024 / n < 4608);
    EXPECT(lade_gate_open(&gate) == 0);
    return lade_taskgroup_wait_until(&g, LADE_FOREVER);
}

static void r16_a_hundred_thousand_idle_steps_and_ten_thousand_idle_tasks(void **state)
{
    (void)state;
    unsigned steps = 100000;
    assert_int_equal(rig_run(2, park_steps, &steps), 0);
    unsigned fibers = MEASURES_MEMORY ? 10000 : 1000;
    assert_int_equal(rig_run(1, park_fibers, &fibers), 0);
}

/* ---- R17 ---- */

static void r17_an_idle_runtime_does_not_wake_up(void **state)
{
    (void)state;
    lade_rt *rt;
    lade_rt_opts o = {.workers = 4};
    assert_int_equal(lade_rt_start(&o, &rt), 0);
    lade_bridge *b;
    assert_int_equal(lade_bridge_open(rt, &b), 0);
    struct post p = {0};
    p.sent_at = lade_clock_now();
    assert_int_equal(lade_bridge_post(b, note_latency, &p), 0);
    assert_true(rig_reaches(&p.done, 1));
    lade_rt_stats before;
    lade_rt_stats after;
    for (int i = 0; i < 100; i++) { /* until they are asleep */
        lade_rt_stats_get(&before);
        (void)lade_task_sleep_until(rig_in_ms(50));
        lade_rt_stats_get(&after);
        if (before.wakeups == after.wakeups)
            break;
    }
    lade_rt_stats_get(&before);
    struct rusage cpu_before;
    struct rusage cpu_after;
    (void)getrusage(RUSAGE_SELF, &cpu_before);
    (void)lade_task_sleep_until(rig_in_ms(1000));
    (void)getrusage(RUSAGE_SELF, &cpu_after);
    lade_rt_stats_get(&after);
    assert_int_equal(after.wakeups, before.wakeups);
    assert_int_equal(after.switches, before.switches);
    lade_bridge_close(b);
    assert_int_equal(lade_rt_stop(rt, LADE_FOREVER), 0);
}

/* ---- R15 ---- */

static int talk(void *arg)
{
    struct fair *f = arg;
    lade_taskgroup g = {0};
    EXPECT(lade_taskgroup_start(&g, NULL, ping, f) == 0);
    EXPECT(lade_taskgroup_start(&g, NULL, pong, f) == 0);
    (void)lade_task_sleep_until(rig_in_ms(200));
    rig_add(&f->stop, 1);
    int rc = lade_taskgroup_wait_until(&g, LADE_FOREVER);
    lade_rt_stats s;
    lade_rt_stats_get(&s);
    EXPECT(s.stolen < s.switches / 100 + 200); /* the pair stays together */
    return rc;
}

static void r15_two_that_talk_stay_on_one_worker(void **state)
{
    (void)state;
    struct fair f = {.a = lade_chan_new(LADE_CHAN_SPSC, 8, 1),
                     .b = lade_chan_new(LADE_CHAN_SPSC, 8, 1)};
    struct rusage before;
    struct rusage after;
    (void)getrusage(RUSAGE_SELF, &before);
    assert_int_equal(rig_run(2, talk, &f), 0);
    (void)getrusage(RUSAGE_SELF, &after);
    assert_true(after.ru_nvcsw - before.ru_nvcsw < 1000);
    assert_int_equal(lade_chan_unref(f.a), 0);
    assert_int_equal(lade_chan_unref(f.b), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(r11_a_token_goes_round_a_ring_without_a_stall),
        cmocka_unit_test(r12_a_post_from_outside_always_wakes_a_worker),
        cmocka_unit_test(r13_a_talking_pair_starves_nobody),
        cmocka_unit_test(r13_a_spawner_does_not_fill_the_memory),
        cmocka_unit_test(r14_tasks_behind_a_hog_are_stolen),
        cmocka_unit_test(timers_fire_beside_a_task_that_never_waits),
        cmocka_unit_test(r15_two_that_talk_stay_on_one_worker),
        cmocka_unit_test(r16_a_hundred_thousand_idle_steps_and_ten_thousand_idle_tasks),
        cmocka_unit_test(r17_an_idle_runtime_does_not_wake_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
