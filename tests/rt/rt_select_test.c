/* Select: R7..R10, C-099, C-101. */
#include "rt_rig.h"

#include "base/mem.h"

/* ---- R7 ---- */

static int always_ready(void *arg)
{
    unsigned cases = *(unsigned *)arg;
    lade_chan *c[8];
    uint64_t v[8] = {0};
    unsigned chosen[8] = {0};
    lade_case k[8];
    for (unsigned i = 0; i < cases; i++) {
        c[i] = lade_chan_new(LADE_CHAN_MPMC, 8, 1);
        EXPECT(lade_chan_send(c[i], &v[i]) == 0);
        k[i] = LADE_RECV(c[i], &v[i]);
    }
    const unsigned n = 100000;
    for (unsigned i = 0; i < n; i++) {
        int at = lade_chan_select(k, (int)cases, LADE_FOREVER);
        EXPECT(at >= 0 && k[at].rc == 0);
        chosen[at]++;
        EXPECT(lade_chan_send(c[at], &v[at]) == 0);
    }
    for (unsigned i = 0; i < cases; i++) {
        EXPECT(cases != 2 || (chosen[i] > n * 48 / 100 && chosen[i] < n * 52 / 100));
        EXPECT(cases != 8 || chosen[i] > n / 10);
        EXPECT(lade_chan_unref(c[i]) == 0);
    }
    return 0;
}

static void r7_ready_cases_have_the_same_chance(void **state)
{
    (void)state;
    unsigned cases = 2;
    assert_int_equal(rig_run(1, always_ready, &cases), 0);
    cases = 8;
    assert_int_equal(rig_run(1, always_ready, &cases), 0);
}

/* ---- R8 ---- */

static int quiet_channel(void *arg)
{
    unsigned rounds = *(unsigned *)arg;
    lade_chan *busy = lade_chan_new(LADE_CHAN_MPMC, 8, 0);
    lade_chan *quiet = lade_chan_new(LADE_CHAN_MPMC, 8, 0);
    uint64_t v;
    uint64_t before = lb_mem_count();
    for (unsigned i = 0; i < rounds; i++) {
        lade_case k[2] = {LADE_RECV(busy, &v), LADE_RECV(quiet, &v)};
        EXPECT(lade_chan_select(k, 2, lade_clock_now() + 1000) == -LADE_ETIMEDOUT);
    }
    EXPECT(lb_mem_count() == before); /* nodes lie on the stack: nothing was allocated at all */
    /* No node is left: nobody is there to take a value, and dropping the last reference finds no waiter. */
    EXPECT(lade_chan_try_send(quiet, &v) == -LADE_EAGAIN);
    EXPECT(lade_chan_unref(quiet) == 0 && lade_chan_unref(busy) == 0);
    return 0;
}

static void r8_the_cases_that_lose_leave_nothing_behind(void **state)
{
    (void)state;
    unsigned rounds = rig_rounds(20000);
    assert_int_equal(rig_run(1, quiet_channel, &rounds), 0);
}

/* ---- R9 ---- */

static int odd_cases(void *arg)
{
    (void)arg;
    lade_chan *c = lade_chan_new(LADE_CHAN_MPMC, 8, 1);
    uint64_t v = 1;
    uint64_t w = 0;
    lade_case twice[2] = {LADE_RECV(c, &v), LADE_RECV(c, &w)};
    EXPECT(lade_chan_select(twice, 2, 0) == -LADE_ETIMEDOUT);
    EXPECT(lade_chan_select(twice, 2, rig_in_ms(2)) ==
           -LADE_ETIMEDOUT); /* enlisted twice in one list */
    uint64_t five = 5;
    EXPECT(lade_chan_send(c, &five) == 0);
    int at = lade_chan_select(twice, 2, LADE_FOREVER);
    EXPECT((at == 0 && v == 5) || (at == 1 && w == 5));

    lade_case both[2] = {LADE_SEND(c, &five), LADE_RECV(c, &v)};
    EXPECT(lade_chan_select(both, 2, LADE_FOREVER) == 0); /* empty: only the send can */
    v = 0;
    EXPECT(lade_chan_select(both, 2, LADE_FOREVER) == 1 && v == 5); /* full: only the receive can */

    lade_case none[2] = {LADE_RECV(NULL, &v), LADE_DEFAULT};
    EXPECT(lade_chan_select(none, 2, LADE_FOREVER) == 1);
    EXPECT(lade_chan_select(none, 1, rig_in_ms(1)) == -LADE_ETIMEDOUT);
    EXPECT(lade_chan_select(NULL, 0, rig_in_ms(1)) == -LADE_ETIMEDOUT);
    EXPECT(lade_chan_select(NULL, 1, 0) == -LADE_EINVAL);
    EXPECT(lade_chan_select(none, LADE_SELECT_MAX + 1, 0) == -LADE_EINVAL);

    EXPECT(lade_chan_close(c) == 0);
    lade_case closed[1] = {LADE_RECV(c, &v)};
    EXPECT(lade_chan_select(closed, 1, LADE_FOREVER) == 0 && closed[0].rc == -LADE_ECLOSED);
    lade_case send[1] = {LADE_SEND(c, &v)};
    EXPECT(lade_chan_select(send, 1, LADE_FOREVER) == 0 && send[0].rc == -LADE_ECLOSED);
    EXPECT(lade_chan_unref(c) == 0);
    return 0;
}

static void r9_odd_sets_of_cases_behave(void **state)
{
    (void)state;
    assert_int_equal(rig_run(1, odd_cases, NULL), 0);
    assert_int_equal(rig_run(2, odd_cases, NULL), 0);
}

/* ---- R10 ---- */

struct pair {
    lade_chan *a, *b;
    unsigned rounds;
    uint64_t sent, received;
};

/* Both send on one and receive on the other of the same two channels, in opposite order. */
static int cross(void *arg, bool turned)
{
    struct pair *p = arg;
    lade_chan *out = turned ? p->b : p->a;
    lade_chan *in = turned ? p->a : p->b;
    uint64_t give = 1;
    uint64_t got;
    for (unsigned i = 0; i < p->rounds; i++) {
        lade_case k[2];
        k[turned] = LADE_SEND(out, &give);
        k[!turned] = LADE_RECV(in, &got);
        int at = lade_chan_select(k, 2, rig_in_ms(20));
        if (at == (int)turned)
            rig_add(&p->sent, 1);
        else if (at >= 0)
            rig_add(&p->received, 1);
        else
            EXPECT(at == -LADE_ETIMEDOUT); /* the other has finished its rounds */
        if (at < 0)
            break;
    }
    return 0;
}

static int cross_one(void *arg)
{
    return cross(arg, false);
}

static int cross_two(void *arg)
{
    return cross(arg, true);
}

static int cross_all(void *arg)
{
    lade_taskgroup g = {0};
    for (int i = 0; i < 2; i++) {
        EXPECT(lade_taskgroup_start(&g, NULL, cross_one, arg) == 0);
        EXPECT(lade_taskgroup_start(&g, NULL, cross_two, arg) == 0);
    }
    return lade_taskgroup_wait_until(&g, rig_patience());
}

static void r10_selects_in_opposite_order_do_not_block_each_other(void **state)
{
    (void)state;
    for (unsigned w = 1; w <= 2; w++) {
        for (unsigned cap = 0; cap < 2; cap++) {
            struct pair p = {.a = lade_chan_new(LADE_CHAN_MPMC, 8, cap),
                             .b = lade_chan_new(LADE_CHAN_MPMC, 8, cap),
                             .rounds = rig_rounds(5000)};
            assert_int_equal(rig_run(w, cross_all, &p), 0);
            uint64_t left = lade_chan_len(p.a) + lade_chan_len(p.b);
            assert_int_equal(p.sent, p.received + left);
            assert_int_equal(lade_chan_unref(p.a), 0);
            assert_int_equal(lade_chan_unref(p.b), 0);
        }
    }
}

/* Exactly one case of many selecting senders and receivers fires for each value. */
static int select_receiver(void *arg)
{
    struct pair *p = arg;
    uint64_t v;
    lade_case k[2] = {LADE_RECV(p->a, &v), LADE_RECV(p->b, &v)};
    for (int open = 2; open > 0;) {
        int at = lade_chan_select(k, 2, LADE_FOREVER);
        EXPECT(at >= 0);
        if (k[at].rc < 0) {
            k[at].chan = NULL;
            open--;
        } else {
            rig_add(&p->received, v);
        }
    }
    return 0;
}

static int select_sender(void *arg)
{
    struct pair *p = arg;
    for (uint64_t i = 1; i <= p->rounds; i++) {
        lade_case k[2] = {LADE_SEND(p->a, &i), LADE_SEND(p->b, &i)};
        EXPECT(lade_chan_select(k, 2, LADE_FOREVER) >= 0);
        rig_add(&p->sent, i);
    }
    return 0;
}

static int many_selects(void *arg)
{
    struct pair *p = arg;
    lade_taskgroup senders = {0};
    lade_taskgroup receivers = {0};
    for (int i = 0; i < 4; i++) {
        EXPECT(lade_taskgroup_start(&senders, NULL, select_sender, p) == 0);
        EXPECT(lade_taskgroup_start(&receivers, NULL, select_receiver, p) == 0);
    }
    EXPECT(lade_taskgroup_wait_until(&senders, LADE_FOREVER) == 0);
    EXPECT(lade_chan_close(p->a) == 0 && lade_chan_close(p->b) == 0);
    EXPECT(lade_taskgroup_wait_until(&receivers, LADE_FOREVER) == 0);
    EXPECT(p->sent == p->received);
    return 0;
}

static void r8_each_value_goes_through_one_case_only(void **state)
{
    (void)state;
    for (unsigned w = 1; w <= 4; w *= 2) {
        for (unsigned cap = 0; cap < 3; cap++) {
            struct pair p = {.a = lade_chan_new(LADE_CHAN_MPMC, 8, cap),
                             .b = lade_chan_new(LADE_CHAN_MPMC, 8, cap),
                             .rounds = rig_rounds(2000)};
            assert_int_equal(rig_run(w, many_selects, &p), 0);
            assert_int_equal(lade_chan_unref(p.a), 0);
            assert_int_equal(lade_chan_unref(p.b), 0);
        }
    }
}

/* ---- C-099 ---- */

static int send_slowly(void *arg)
{
    lade_chan *c = arg;
    for (uint64_t i = 0; i < 5; i++) {
        (void)lade_task_sleep_until(rig_in_ms(20));
        EXPECT(lade_chan_send(c, &i) == 0);
    }
    return lade_chan_close(c);
}

static int closed_branch_left_out(void *arg)
{
    unsigned *selects = arg;
    lade_chan *early = lade_chan_new(LADE_CHAN_MPMC, 8, 1);
    lade_chan *slow = lade_chan_new(LADE_CHAN_MPMC, 8, 1);
    uint64_t v;
    EXPECT(lade_chan_close(early) == 0);
    lade_taskgroup g = {0};
    EXPECT(lade_taskgroup_start(&g, NULL, send_slowly, slow) == 0);
    lade_case k[2] = {LADE_RECV(early, &v), LADE_RECV(slow, &v)};
    for (int open = 2; open > 0; (*selects)++) {
        int at = lade_chan_select(k, 2, LADE_FOREVER);
        EXPECT(at >= 0);
        if (k[at].rc == -LADE_ECLOSED) {
            k[at].chan = NULL;
            open--;
        }
    }
    EXPECT(lade_taskgroup_wait_until(&g, LADE_FOREVER) == 0);
    EXPECT(lade_chan_unref(early) == 0 && lade_chan_unref(slow) == 0);
    return 0;
}

/* C-099: a closed channel is told apart and can be left out; then the loop sleeps. */
static void a_closed_branch_can_be_left_out_of_a_select(void **state)
{
    (void)state;
    unsigned selects = 0;
    assert_int_equal(rig_run(1, closed_branch_left_out, &selects), 0);
    assert_int_equal(selects, 7); /* 5 values and 2 ends: it did not spin */
}

/* ---- C-101 ---- */

struct ready {
    lade_chan *full, *stop;
    uint64_t others;
};

static int run_beside(void *arg)
{
    struct ready *r = arg;
    for (int i = 0; i < 3; i++) {
        rig_add(&r->others, 1);
        lade_task_yield();
    }
    return lade_chan_close(r->stop);
}

static int branch_always_ready(void *arg)
{
    struct ready *r = arg;
    lade_taskgroup g = {0};
    uint64_t v = 0;
    EXPECT(lade_chan_send(r->full, &v) == 0);
    EXPECT(lade_taskgroup_start(&g, NULL, run_beside, r) == 0);
    lade_case k[2] = {LADE_RECV(r->full, &v), LADE_RECV(r->stop, &v)};
    unsigned since_closed = 0;
    for (unsigned i = 0;; i++) {
        int at = lade_chan_select(k, 2, LADE_FOREVER);
        if (at == 1)
            break;
        EXPECT(lade_chan_send(r->full, &v) == 0);
        if (rig_get(&r->others) == 3)
            since_closed++;
        EXPECT(i < 100000); /* the task beside gets its turns although we never have to wait */
        if (i >= 100000)
            break;
    }
    EXPECT(since_closed < 1000);
    EXPECT(lade_taskgroup_wait_until(&g, LADE_FOREVER) == 0);
    return 0;
}

/* C-101: one branch always ready; the others are seen, and other tasks of the worker run. */
static void a_branch_that_is_always_ready_starves_nobody(void **state)
{
    (void)state;
    struct ready r = {.full = lade_chan_new(LADE_CHAN_MPMC, 8, 1),
                      .stop = lade_chan_new(LADE_CHAN_MPMC, 8, 1)};
    assert_int_equal(rig_run(1, branch_always_ready, &r), 0);
    assert_int_equal(lade_chan_unref(r.full), 0);
    assert_int_equal(lade_chan_unref(r.stop), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(r7_ready_cases_have_the_same_chance),
        cmocka_unit_test(r8_the_cases_that_lose_leave_nothing_behind),
        cmocka_unit_test(r8_each_value_goes_through_one_case_only),
        cmocka_unit_test(r9_odd_sets_of_cases_behave),
        cmocka_unit_test(r10_selects_in_opposite_order_do_not_block_each_other),
        cmocka_unit_test(a_closed_branch_can_be_left_out_of_a_select),
        cmocka_unit_test(a_branch_that_is_always_ready_starves_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
