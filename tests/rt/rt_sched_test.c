/* The scheduler: R11..R14, C-100, C-102, C-106. */
#include "rt_rig.h"

#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

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
        EXPECT(lade_chan_recv_until(in, &token, rig_patience()) == 0); /* no stall */
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
            int64_t until = rig_patience();
            while (rig_get(&p.done) <= i)
                assert_true(lade_clock_now() < until); /* lost wake-up */
            for (volatile unsigned j = 0; j < i * 37 % 2000; j++)
                ; /* meets them at different points of going to sleep */
        }
        lade_bridge_close(b);
        assert_int_equal(lade_rt_stop(rt, LADE_FOREVER), 0);
        assert_true(rig_in_time(p.worst, 50));
    }
}

/* ---- R13, C-100 ---- */

struct fair {
    lade_chan *a, *b;
    uint64_t stop, turns, round_trips, sleeps, socket_reads;
    uint64_t own_turns[100], next;
    int64_t due;         /* atomic: when the sleeper should wake; 0 = it is awake */
    uint64_t turns_late; /* turns that others had after that, at most */
    int64_t worst;       /* ns after that, at most */
    lade_fd *in, *out;
};

static int ping(void *arg)
{
    struct fair *f = arg;
    uint64_t v = 0;
    while (!rig_get(&f->stop)) {
        EXPECT(lade_chan_send(f->a, &v) == 0);
        EXPECT(lade_chan_recv(f->b, &v) == 0);
        rig_add(&f->round_trips, 1);
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
    uint64_t me = rig_add(&f->next, 1) - 1;
    while (!rig_get(&f->stop)) {
        rig_add(&f->turns, 1);
        rig_add(&f->own_turns[me], 1);
        lade_task_yield();
    }
    return 0;
}

/* Counts the turns that others had between the moment it should have woken and the one it did. */
static int sleep_and_measure(void *arg)
{
    struct fair *f = arg;
    while (!rig_get(&f->stop)) {
        int64_t at = rig_in_ms(5);
        __atomic_store_n(&f->due, at, __ATOMIC_SEQ_CST);
        (void)lade_task_sleep_until(at);
        int64_t late = lade_clock_now() - at;
        f->worst = late > f->worst ? late : f->worst;
        __atomic_store_n(&f->due, 0, __ATOMIC_SEQ_CST);
        rig_add(&f->sleeps, 1);
    }
    return 0;
}

static int watch_the_sleeper(void *arg)
{
    struct fair *f = arg;
    int64_t for_due = 0;
    uint64_t turns = 0;
    while (!rig_get(&f->stop)) {
        int64_t due = __atomic_load_n(&f->due, __ATOMIC_SEQ_CST);
        if (due == 0 || lade_clock_now() < due) {
            for_due = 0;
        } else if (for_due != due) {
            for_due = due;
            turns = rig_get(&f->turns);
        } else if (rig_get(&f->turns) - turns > f->turns_late) {
            f->turns_late = rig_get(&f->turns) - turns;
        }
        lade_task_yield();
    }
    return 0;
}

static int read_socket(void *arg)
{
    struct fair *f = arg;
    char byte;
    while (lade_fd_read(f->in, &byte, 1, LADE_FOREVER) == 1)
        rig_add(&f->socket_reads, 1);
    return 0;
}

static int write_socket(void *arg)
{
    struct fair *f = arg;
    for (uint64_t i = 0; i < 5; i++) {
        EXPECT(lade_fd_write(f->out, "x", 1, LADE_FOREVER) == 1);
        EXPECT(rig_reaches(&f->socket_reads, i + 1));
    }
    return 0;
}

/* Everybody has had many turns. */
static bool all_had_turns(struct fair *f)
{
    bool all = rig_get(&f->round_trips) >= 200 && rig_get(&f->sleeps) >= 10 &&
               rig_get(&f->socket_reads) >= 5;
    for (int i = 0; i < 100; i++)
        all = all && rig_get(&f->own_turns[i]) >= 200;
    return all;
}

static int fairness(void *arg)
{
    struct fair *f = arg;
    lade_taskgroup g = {0};
    lade_taskgroup reader = {0};
    int end[2];
    EXPECT(socketpair(AF_UNIX, SOCK_STREAM, 0, end) == 0);
    EXPECT(lade_fd_open(end[0], &f->in) == 0 && lade_fd_open(end[1], &f->out) == 0);
    EXPECT(lade_taskgroup_start(&g, NULL, ping, f) == 0);
    EXPECT(lade_taskgroup_start(&g, NULL, pong, f) == 0);
    for (int i = 0; i < 100; i++)
        EXPECT(lade_taskgroup_start(&g, NULL, stand_by, f) == 0);
    EXPECT(lade_taskgroup_start(&g, NULL, sleep_and_measure, f) == 0);
    EXPECT(lade_taskgroup_start(&g, NULL, watch_the_sleeper, f) == 0);
    EXPECT(lade_taskgroup_start(&reader, NULL, read_socket, f) == 0);
    EXPECT(lade_taskgroup_start(&g, NULL, write_socket, f) == 0);
    int64_t until = rig_patience();
    while (!all_had_turns(f) && lade_clock_now() < until)
        (void)lade_task_sleep_until(rig_in_ms(5));
    EXPECT(all_had_turns(f));
    rig_add(&f->stop, 1);
    EXPECT(lade_taskgroup_wait_until(&g, LADE_FOREVER) == 0);
    EXPECT(lade_fd_close(f->out) == 0);
    EXPECT(lade_taskgroup_wait_until(&reader, LADE_FOREVER) == 0);
    return lade_fd_close(f->in);
}

/*
 * C-100 and R13: two that talk do not keep the others from the worker, nor a timer, nor a descriptor. On one worker the shares are
 * exact: a turn for each of the queue before anybody's second one, and a timer within a tick and a round of the queue.
 */
static void r13_a_talking_pair_starves_nobody(void **state)
{
    (void)state;
    for (unsigned w = 1; w <= 2; w++) {
        struct fair f = {.a = lade_chan_new(LADE_CHAN_SPSC, 8, 1),
                         .b = lade_chan_new(LADE_CHAN_SPSC, 8, 1)};
        assert_int_equal(rig_run(w, fairness, &f), 0);
        if (w == 1) {
            assert_true(f.round_trips <= f.turns && f.turns <= f.round_trips * 1000);
            assert_true(f.turns_late < 1000);
        }
        assert_true(rig_in_time(f.worst, 20));
        assert_int_equal(lade_chan_unref(f.a), 0);
        assert_int_equal(lade_chan_unref(f.b), 0);
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
    lade_rt_stats s;
    lade_rt_stats_get(&s);
    EXPECT(s.started >= n &&
           s.stacks <= 2048); /* never more alive than the queues hold: 8 MiB touched at most */
    return 0;
}

static void r13_a_spawner_does_not_fill_the_memory(void **state)
{
    (void)state;
    unsigned n = rig_rounds(200000);
    for (unsigned w = 1; w <= 2; w++)
        assert_int_equal(rig_run(w, spawn_many, &n), 0);
}

/* ---- R14, C-106 ---- */

struct hog {
    uint64_t started;
    int64_t queued_at, latest;
};

static int start_late(void *arg)
{
    struct hog *h = arg;
    int64_t waited = lade_clock_now() - h->queued_at;
    h->latest = waited > h->latest ? waited : h->latest;
    rig_add(&h->started, 1);
    return 0;
}

/* Keeps its worker until the others have got through, or never would. */
static void hog_until(uint64_t *word, uint64_t n)
{
    int64_t until = rig_patience();
    while (rig_get(word) < n && lade_clock_now() < until)
        ;
    EXPECT(rig_get(word) >= n);
}

static int queue_behind_a_hog(void *arg)
{
    struct hog *h = arg;
    h->queued_at = lade_clock_now();
    lade_taskgroup others = {0};
    for (int i = 0; i < 50; i++)
        EXPECT(lade_taskgroup_start(&others, NULL, start_late, h) == 0);
    hog_until(&h->started,
              50); /* this very task: the 50 are behind it in the queue of its worker */
    return lade_taskgroup_wait_until(&others, LADE_FOREVER);
}

struct hog_log {
    uint64_t reports, named;
    int64_t ns;
};

static void note_hog(void *ctx, const lade_rt_hog *hog)
{
    struct hog_log *h = ctx;
    EXPECT(lade_task_self().at == NULL);
    EXPECT(hog->where && strstr(hog->where, "rt_sched_test.c:"));
    EXPECT(hog->ns >= 10 * LADE_MILLISECOND);
    if (hog->name && strcmp(hog->name, "spins") == 0)
        rig_add(&h->named, 1);
    rig_add(&h->reports, 1);
}

static int spin_until_reported(void *arg)
{
    struct hog_log *h = arg;
    lade_task_name("spins");
    int64_t until = rig_patience();
    while (rig_get(&h->named) < 2 && lade_clock_now() < until)
        ; /* the second comes when the time has doubled */
    EXPECT(rig_get(&h->named) >= 2);
    return 0;
}

static int start_a_hog(void *arg)
{
    lade_taskgroup g = {0};
    EXPECT(lade_taskgroup_start(&g, NULL, spin_until_reported, arg) == 0);
    EXPECT(lade_taskgroup_wait_until(&g, LADE_FOREVER) == 0);
    lade_rt_stats s;
    lade_rt_stats_get(&s);
    EXPECT(s.hogs >= 2);
    return 0;
}

/* C-106: the log. */
static void c106_a_task_that_keeps_its_worker_is_reported(void **state)
{
    (void)state;
    for (unsigned w = 1; w <= 2; w++) {
        struct hog_log h = {0};
        lade_rt_opts o = {
            .workers = w, .hog_after = 10 * LADE_MILLISECOND, .on_hog = note_hog, .ctx = &h};
        assert_int_equal(lade_rt_run(&o, start_a_hog, &h), 0);
        rig_check();
        o.hog_after--;
        assert_int_equal(lade_rt_run(&o, start_a_hog, &h), -LADE_EINVAL);
    }
}

/* C-106 and R14: what is queued behind a task that does not stop is taken over by another worker. */
static void r14_tasks_behind_a_hog_are_stolen(void **state)
{
    (void)state;
    struct hog h = {0};
    assert_int_equal(rig_run(2, queue_behind_a_hog, &h), 0);
    assert_int_equal(h.started, 50);
    assert_true(rig_in_time(h.latest, 5));
}

static int hog_beside_timers(void *arg)
{
    struct fair *f = arg;
    lade_taskgroup g = {0};
    EXPECT(lade_taskgroup_start(&g, NULL, sleep_and_measure, f) == 0);
    EXPECT(rig_reaches(&f->sleeps, 1));
    hog_until(&f->sleeps, 20);
    rig_add(&f->stop, 1);
    return lade_taskgroup_wait_until(&g, LADE_FOREVER);
}

/* C-102: deadlines are met although a worker is saturated. */
static void timers_fire_beside_a_task_that_never_waits(void **state)
{
    (void)state;
    struct fair f = {0};
    assert_int_equal(rig_run(2, hog_beside_timers, &f), 0);
    assert_true(rig_in_time(f.worst, 50));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c106_a_task_that_keeps_its_worker_is_reported),
        cmocka_unit_test(r11_a_token_goes_round_a_ring_without_a_stall),
        cmocka_unit_test(r12_a_post_from_outside_always_wakes_a_worker),
        cmocka_unit_test(r13_a_talking_pair_starves_nobody),
        cmocka_unit_test(r13_a_spawner_does_not_fill_the_memory),
        cmocka_unit_test(r14_tasks_behind_a_hog_are_stolen),
        cmocka_unit_test(timers_fire_beside_a_task_that_never_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
