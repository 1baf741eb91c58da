/* Channels: R1..R6, C-097, C-098. */
#include "rt_rig.h"

#include <pthread.h>

/* ---- R1 ---- */

struct parked {
    lade_chan *c;
    uint64_t started, closed, delivered;
};

static int receive_until_closed(void *arg)
{
    struct parked *p = arg;
    uint64_t v;
    rig_add(&p->started, 1);
    int rc;
    while ((rc = lade_chan_recv(p->c, &v)) == 0)
        rig_add(&p->delivered, 1);
    EXPECT(rc == -LADE_ECLOSED);
    rig_add(&p->closed, 1);
    return 0;
}

static int send_one(void *arg)
{
    struct parked *p = arg;
    uint64_t v = 99;
    rig_add(&p->started, 1);
    int rc = lade_chan_send(p->c, &v);
    EXPECT(rc == -LADE_ECLOSED && v == 99);
    rig_add(&p->closed, 1);
    return 0;
}

static void yield_a_lot(void)
{
    for (int i = 0; i < 50; i++)
        lade_task_yield();
}

static int close_wakes_all(void *arg)
{
    (void)arg;
    struct parked p = {.c = lade_chan_new(LADE_CHAN_MPMC, 8, 4)};
    lade_taskgroup g = {0};
    for (int i = 0; i < 8; i++)
        EXPECT(lade_taskgroup_start(&g, NULL, receive_until_closed, &p) == 0);
    EXPECT(rig_reaches(&p.started, 8));
    yield_a_lot();
    EXPECT(lade_chan_close(p.c) == 0);
    EXPECT(lade_chan_close(p.c) == -LADE_ECLOSED);
    EXPECT(lade_taskgroup_wait_until(&g, LADE_FOREVER) == 0);
    EXPECT(p.closed == 8 && p.delivered == 0);
    uint64_t v = 1;
    EXPECT(lade_chan_send(p.c, &v) == -LADE_ECLOSED);
    EXPECT(lade_chan_try_send(p.c, &v) == -LADE_ECLOSED);
    EXPECT(lade_chan_unref(p.c) == 0);
    return 0;
}

static int values_survive_close(void *arg)
{
    (void)arg;
    struct parked p = {.c = lade_chan_new(LADE_CHAN_MPMC, 8, 3)};
    for (uint64_t i = 0; i < 3; i++)
        EXPECT(lade_chan_send(p.c, &i) == 0);
    lade_taskgroup g = {0};
    for (int i = 0; i < 2; i++)
        EXPECT(lade_taskgroup_start(&g, NULL, send_one, &p) == 0); /* they find it full */
    EXPECT(rig_reaches(&p.started, 2));
    yield_a_lot();
    EXPECT(lade_chan_close(p.c) == 0);
    EXPECT(lade_taskgroup_wait_until(&g, LADE_FOREVER) == 0);
    EXPECT(p.closed == 2);
    uint64_t v;
    for (uint64_t i = 0; i < 3; i++)
        EXPECT(lade_chan_recv(p.c, &v) == 0 && v == i);
    EXPECT(lade_chan_recv(p.c, &v) == -LADE_ECLOSED);
    EXPECT(lade_chan_unref(p.c) == 0);
    return 0;
}

static void r1_close_wakes_everybody_and_keeps_what_was_sent(void **state)
{
    (void)state;
    for (unsigned w = 1; w <= 2; w++) {
        assert_int_equal(rig_run(w, close_wakes_all, NULL), 0);
        assert_int_equal(rig_run(w, values_survive_close, NULL), 0);
    }
}

/* ---- R2 ---- */

#define ELEM_MAX 4096

struct flow {
    lade_chan *c;
    size_t elem;
    unsigned each, producers;
    uint64_t next_producer, sum, n;
};

/* The element: bytes of (producer, number), repeated; one byte: only counted. */
static int produce(void *arg)
{
    struct flow *f = arg;
    unsigned char v[ELEM_MAX];
    uint64_t who = rig_add(&f->next_producer, 1) - 1;
    for (uint64_t i = 0; i < f->each; i++) {
        uint64_t mark = who << 32 | i;
        memset(v, (int)(mark * 31 >> 3 & 0xff), f->elem);
        if (f->elem >= 8)
            memcpy(v, &mark, 8);
        else
            v[0] = 1;
        if (lade_chan_send(f->c, v) != 0)
            return -LADE_ECLOSED;
    }
    return 0;
}

static int consume(void *arg)
{
    struct flow *f = arg;
    unsigned char v[ELEM_MAX];
    uint64_t last[8];
    memset(last, 0xff, sizeof(last));
    uint64_t sum = 0;
    uint64_t n = 0;
    int rc;
    while ((rc = lade_chan_recv(f->c, v)) == 0) {
        n++;
        if (f->elem < 8) {
            sum += v[0];
            continue;
        }
        uint64_t mark;
        memcpy(&mark, v, 8);
        uint64_t who = mark >> 32;
        uint64_t number = mark & 0xffffffff;
        EXPECT(who < 8);
        EXPECT(last[who & 7] == UINT64_MAX ||
               number > last[who & 7]); /* first in, first out for each producer */
        last[who & 7] = number;
        EXPECT(f->elem == 8 || v[f->elem - 1] == (mark * 31 >> 3 & 0xff));
        sum += number;
    }
    EXPECT(rc == -LADE_ECLOSED);
    rig_add(&f->sum, sum);
    rig_add(&f->n, n);
    return 0;
}

static int flow(void *arg)
{
    struct flow *f = arg;
    lade_taskgroup producers = {0};
    lade_taskgroup consumers = {0};
    for (unsigned i = 0; i < f->producers; i++) {
        EXPECT(lade_taskgroup_start(&consumers, NULL, consume, f) == 0);
        EXPECT(lade_taskgroup_start(&producers, NULL, produce, f) == 0);
    }
    EXPECT(lade_taskgroup_wait_until(&producers, LADE_FOREVER) == 0);
    EXPECT(lade_chan_close(f->c) == 0);
    EXPECT(lade_taskgroup_wait_until(&consumers, LADE_FOREVER) == 0);
    uint64_t n = (uint64_t)f->producers * f->each;
    EXPECT(f->n == n);
    EXPECT(f->sum == (f->elem < 8 ? n : f->producers * ((uint64_t)f->each * (f->each - 1) / 2)));
    return 0;
}

static void r2_nothing_is_lost_doubled_or_reordered(void **state)
{
    (void)state;
    static const unsigned caps[] = {0, 1, 2, 1024};
    static const size_t elems[] = {1, 8, 24, 4096};
    for (size_t c = 0; c < 4; c++) {
        for (size_t e = 0; e < 4; e++) {
            for (unsigned workers = 1; workers <= 2; workers++) {
                struct flow f = {.elem = elems[e],
                                 .producers = 4,
                                 .each = rig_rounds(elems[e] > 100 ? 300 : 2000),
                                 .c = lade_chan_new(LADE_CHAN_MPMC, elems[e], caps[c])};
                assert_non_null(f.c);
                assert_int_equal(rig_run(workers, flow, &f), 0);
                assert_int_equal(lade_chan_unref(f.c), 0);
            }
        }
    }
}

/* ---- R3 ---- */

struct meeting {
    lade_chan *c;
    uint64_t value[201], taken;
};

static int take_slowly(void *arg)
{
    struct meeting *m = arg;
    for (uint64_t i = 1; i <= 200; i++) {
        uint64_t v;
        EXPECT(lade_chan_recv(m->c, &v) == 0);
        EXPECT(v == i && m->value[i] == i); /* what the sender wrote before is seen */
        __atomic_store_n(&m->taken, i, __ATOMIC_RELAXED);
        lade_task_yield();
    }
    return 0;
}

static int rendezvous(void *arg)
{
    struct meeting *m = arg;
    uint64_t v = 7;
    EXPECT(lade_chan_try_send(m->c, &v) == -LADE_EAGAIN); /* nobody is there */
    EXPECT(lade_chan_send_until(m->c, &v, rig_in_ms(2)) == -LADE_ETIMEDOUT);
    lade_taskgroup g = {0};
    EXPECT(lade_taskgroup_start(&g, NULL, take_slowly, m) == 0);
    for (uint64_t i = 1; i <= 200; i++) {
        m->value[i] = i;
        EXPECT(lade_chan_send(m->c, &i) == 0);
        EXPECT(lade_chan_len(m->c) == 0);
        if (i > 1)
            EXPECT(__atomic_load_n(&m->taken, __ATOMIC_RELAXED) >= i - 1);
    }
    return lade_taskgroup_wait_until(&g, LADE_FOREVER);
}

static void r3_capacity_zero_is_a_meeting(void **state)
{
    (void)state;
    for (unsigned w = 1; w <= 2; w++) {
        struct meeting m = {.c = lade_chan_new(LADE_CHAN_MPMC, 8, 0)};
        assert_int_equal(rig_run(w, rendezvous, &m), 0);
        assert_int_equal(lade_chan_unref(m.c), 0);
    }
}

/* ---- R4 ---- */

static int send_numbers(void *arg)
{
    lade_chan *c = arg;
    uint64_t v[100];
    for (uint64_t i = 0; i < 100; i++)
        v[i] = i;
    EXPECT(lade_chan_send_n(c, v, 100) == 100);
    return 0;
}

static int send_too_many(void *arg)
{
    lade_chan *c = arg;
    uint64_t v[100] = {0};
    EXPECT(lade_chan_send_n(c, v, 100) == 5); /* 4 in the ring, 1 taken, then it was closed */
    return 0;
}

static int batches(void *arg)
{
    (void)arg;
    lade_chan *c = lade_chan_new(LADE_CHAN_MPMC, 8, 7);
    lade_taskgroup g = {0};
    EXPECT(lade_taskgroup_start(&g, NULL, send_numbers, c) == 0);
    uint64_t buf[32];
    for (uint64_t next = 0; next < 100;) {
        long n = lade_chan_recv_n(c, buf, 32);
        EXPECT(n >= 1 && n <= 32);
        for (long i = 0; i < n; i++)
            EXPECT(buf[i] == next++);
    }
    EXPECT(lade_taskgroup_wait_until(&g, LADE_FOREVER) == 0);
    EXPECT(lade_chan_unref(c) == 0);

    c = lade_chan_new(LADE_CHAN_MPMC, 8, 4);
    EXPECT(lade_taskgroup_start(&g, NULL, send_too_many, c) == 0);
    yield_a_lot();
    while (lade_chan_len(c) < 4)
        lade_task_yield();
    EXPECT(lade_chan_recv(c, buf) == 0);
    while (lade_chan_len(c) < 4)
        lade_task_yield();
    yield_a_lot();
    EXPECT(lade_chan_close(c) == 0);
    EXPECT(lade_taskgroup_wait_until(&g, LADE_FOREVER) == 0);
    EXPECT(lade_chan_recv_n(c, buf, 32) == 4);
    EXPECT(lade_chan_recv_n(c, buf, 32) == -LADE_ECLOSED);
    EXPECT(lade_chan_unref(c) == 0);
    return 0;
}

static void r4_batches_refill_in_order_and_report_their_count(void **state)
{
    (void)state;
    for (unsigned w = 1; w <= 2; w++)
        assert_int_equal(rig_run(w, batches, NULL), 0);
}

/* ---- R5 ---- */

struct race {
    lade_chan *c;
    unsigned rounds;
    uint64_t sent, received, sum_sent, sum_received, stop;
};

static int send_with_deadline(void *arg)
{
    struct race *r = arg;
    for (uint64_t i = 1; i <= r->rounds; i++) {
        int64_t until = lade_clock_now() + (int64_t)(i * 7919 % 3000);
        if (lade_chan_send_until(r->c, &i, until) == 0) {
            rig_add(&r->sent, 1);
            rig_add(&r->sum_sent, i);
        }
    }
    return 0;
}

static int receive_with_deadline(void *arg)
{
    struct race *r = arg;
    uint64_t v;
    for (uint64_t i = 0;; i++) {
        bool last = rig_get(&r->stop);
        int rc = lade_chan_recv_until(r->c, &v, lade_clock_now() + (int64_t)(i * 104729 % 3000));
        if (rc == 0) {
            rig_add(&r->received, 1);
            rig_add(&r->sum_received, v);
        } else {
            EXPECT(rc == -LADE_ETIMEDOUT);
            if (last && lade_chan_len(r->c) == 0)
                return 0;
        }
    }
}

static int race_deadlines(void *arg)
{
    struct race *r = arg;
    lade_taskgroup senders = {0};
    lade_taskgroup receivers = {0};
    for (int i = 0; i < 3; i++) {
        EXPECT(lade_taskgroup_start(&senders, NULL, send_with_deadline, r) == 0);
        EXPECT(lade_taskgroup_start(&receivers, NULL, receive_with_deadline, r) == 0);
    }
    EXPECT(lade_taskgroup_wait_until(&senders, LADE_FOREVER) == 0);
    rig_add(&r->stop, 1);
    EXPECT(lade_taskgroup_wait_until(&receivers, LADE_FOREVER) == 0);
    EXPECT(r->sent == r->received && r->sum_sent == r->sum_received);
    return 0;
}

static void r5_a_deadline_that_races_the_hand_over_loses_no_message(void **state)
{
    (void)state;
    static const unsigned caps[] = {0, 1, 4};
    for (unsigned w = 1; w <= 2; w++) {
        for (size_t i = 0; i < 3; i++) {
            struct race r = {.c = lade_chan_new(LADE_CHAN_MPMC, 8, caps[i]),
                             .rounds = rig_rounds(1500)};
            assert_int_equal(rig_run(w, race_deadlines, &r), 0);
            assert_int_equal(lade_chan_unref(r.c), 0);
        }
    }
}

/* ---- R6 ---- */

static int last_unref(void *arg)
{
    (void)arg;
    struct parked p = {.c = lade_chan_new(LADE_CHAN_MPMC, 8, 1)};
    EXPECT(lade_chan_ref(p.c) == p.c);
    EXPECT(lade_chan_unref(p.c) == 0);
    lade_taskgroup g = {0};
    EXPECT(lade_taskgroup_start(&g, NULL, receive_until_closed, &p) == 0);
    EXPECT(rig_reaches(&p.started, 1));
    yield_a_lot();
    EXPECT(lade_chan_unref(p.c) == -LADE_EBUSY); /* said, not done: it is closed instead */
    EXPECT(lade_taskgroup_wait_until(&g, LADE_FOREVER) == 0);
    EXPECT(p.closed == 1);
    EXPECT(lade_chan_unref(p.c) == 0);
    return 0;
}

static void r6_the_last_reference_is_not_dropped_under_waiters(void **state)
{
    (void)state;
    assert_int_equal(rig_run(1, last_unref, NULL), 0);
}

/* ---- C-097, C-098 ---- */

struct closing {
    lade_chan *c;
    uint64_t offset, sent, refused, received;
};

static int send_until_closed(void *arg)
{
    struct closing *k = arg;
    for (uint64_t v = 0;; v++) {
        uint64_t before = v;
        int rc = lade_chan_send(k->c, &v);
        EXPECT(v == before); /* the value stays the sender's */
        if (rc < 0) {
            EXPECT(rc == -LADE_ECLOSED);
            rig_add(&k->refused, 1);
            return 0;
        }
        rig_add(&k->sent, 1);
    }
}

static int close_at_random(void *arg)
{
    static const unsigned caps[] = {0, 1, 1024};
    unsigned rounds = *(unsigned *)arg;
    for (unsigned i = 0; i < rounds; i++) {
        struct closing k = {.c = lade_chan_new(LADE_CHAN_MPMC, 8, caps[i % 3])};
        lade_taskgroup g = {0};
        for (int j = 0; j < 4; j++)
            EXPECT(lade_taskgroup_start(&g, NULL, send_until_closed, &k) == 0);
        uint64_t v;
        for (unsigned j = 0; j < i * 7 % 40; j++)
            k.received += lade_chan_recv_until(k.c, &v, rig_in_ms(1000)) == 0;
        EXPECT(lade_chan_close(k.c) == 0);
        EXPECT(lade_taskgroup_wait_until(&g, rig_patience()) == 0);
        while (lade_chan_recv(k.c, &v) == 0)
            k.received++;
        EXPECT(k.refused == 4 && k.received == k.sent);
        EXPECT(lade_chan_unref(k.c) == 0);
    }
    return 0;
}

/* C-098: senders about to park while the channel closes. */
static void senders_that_park_while_it_closes_are_told(void **state)
{
    (void)state;
    unsigned rounds = rig_rounds(150);
    for (unsigned w = 1; w <= 4; w *= 2)
        assert_int_equal(rig_run(w, close_at_random, &rounds), 0);
}

static int send_and_be_cancelled(void *arg)
{
    struct closing *k = arg;
    uint64_t v = 1;
    rig_add(&k->offset, 1);
    int rc = lade_chan_send(k->c, &v);
    EXPECT(rc == 0 || rc == -LADE_ECANCELED || rc == -LADE_ECLOSED);
    if (rc == 0)
        rig_add(&k->sent, 1);
    return 0;
}

static int receiver_after_withdrawn_sends(void *arg)
{
    unsigned rounds = *(unsigned *)arg;
    for (unsigned i = 0; i < rounds; i++) {
        struct closing k = {.c = lade_chan_new(LADE_CHAN_MPMC, 8, i % 2)};
        struct parked p = {.c = k.c};
        lade_taskgroup senders = {0};
        lade_taskgroup receiver = {0};
        for (int j = 0; j < 3; j++)
            EXPECT(lade_taskgroup_start(&senders, NULL, send_and_be_cancelled, &k) == 0);
        for (unsigned j = 0; j < i % 8; j++)
            lade_task_yield();
        lade_taskgroup_cancel(&senders);
        EXPECT(lade_taskgroup_start(&receiver, NULL, receive_until_closed, &p) == 0);
        EXPECT(lade_chan_close(k.c) == 0);
        EXPECT(lade_taskgroup_wait_until(&receiver, rig_patience()) == 0);
        (void)lade_taskgroup_wait_until(&senders, LADE_FOREVER);
        EXPECT(p.closed == 1 && p.delivered == k.sent);
        EXPECT(lade_chan_unref(k.c) == 0);
    }
    return 0;
}

/* C-097: a send that is withdrawn (there are no reservations beside it) does not hide the end from the receiver. */
static void a_withdrawn_send_does_not_hide_the_end(void **state)
{
    (void)state;
    unsigned rounds = rig_rounds(300);
    for (unsigned w = 1; w <= 2; w++)
        assert_int_equal(rig_run(w, receiver_after_withdrawn_sends, &rounds), 0);
}

/* ---- plain threads ---- */

static void *send_from_thread(void *arg)
{
    struct flow *f = arg;
    EXPECT(produce(f) == 0);
    return NULL;
}

static int receive_from_threads(void *arg)
{
    struct flow *f = arg;
    uint64_t v;
    for (uint64_t i = 0; i < (uint64_t)f->producers * f->each; i++) {
        EXPECT(lade_chan_recv(f->c, &v) == 0);
        f->sum += v & 0xffffffff;
    }
    return 0;
}

static void plain_threads_send_to_tasks(void **state)
{
    (void)state;
    for (unsigned w = 1; w <= 2; w++) {
        for (unsigned cap = 0; cap < 3; cap++) {
            struct flow f = {.elem = 8,
                             .producers = 2,
                             .each = rig_rounds(1000),
                             .c = lade_chan_new(LADE_CHAN_MPMC, 8, cap)};
            lade_rt *rt;
            lade_rt_opts o = {.workers = w};
            assert_int_equal(lade_rt_start(&o, &rt), 0);
            lade_bridge *b;
            assert_int_equal(lade_bridge_open(rt, &b), 0);
            pthread_t t[2];
            for (int i = 0; i < 2; i++)
                assert_int_equal(pthread_create(&t[i], NULL, send_from_thread, &f), 0);
            assert_int_equal(lade_bridge_call(b, receive_from_threads, &f, LADE_FOREVER), 0);
            for (int i = 0; i < 2; i++)
                assert_int_equal(pthread_join(t[i], NULL), 0);
            lade_bridge_close(b);
            assert_int_equal(lade_rt_stop(rt, LADE_FOREVER), 0);
            rig_check();
            assert_int_equal(f.sum, 2 * ((uint64_t)f.each * (f.each - 1) / 2));
            assert_int_equal(lade_chan_unref(f.c), 0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(r1_close_wakes_everybody_and_keeps_what_was_sent),
        cmocka_unit_test(r2_nothing_is_lost_doubled_or_reordered),
        cmocka_unit_test(r3_capacity_zero_is_a_meeting),
        cmocka_unit_test(r4_batches_refill_in_order_and_report_their_count),
        cmocka_unit_test(r5_a_deadline_that_races_the_hand_over_loses_no_message),
        cmocka_unit_test(r6_the_last_reference_is_not_dropped_under_waiters),
        cmocka_unit_test(senders_that_park_while_it_closes_are_told),
        cmocka_unit_test(a_withdrawn_send_does_not_hide_the_end),
        cmocka_unit_test(plain_threads_send_to_tasks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
