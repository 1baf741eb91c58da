#include "store/sqlite/bell.h"

#include <sys/mman.h>
#include <unistd.h>

#include "support/sqlite_kit.h"

/* What processes tell each other; shared memory, one for each test. */
struct board {
    _Atomic int ready;   /* children that wait */
    _Atomic int woken;   /* children whose wait returned 0 */
    _Atomic bool finish; /* children return */
};

static struct board *board;

static int setup(void **state)
{
    void *p = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return -1;
    board = p;
    return sk_setup(state);
}

static int teardown(void **state)
{
    (void)munmap(board, sizeof(*board));
    return sk_teardown(state);
}

#define BELL_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static const char *const lane = "q";

/* Registers as idle and looks; how many jobs were there. */
static int look(struct lq_store *s, const char *worker, const char *const *queue)
{
    struct lq_leased_vec out = {0};
    struct lq_take take = {.worker = worker, .lanes = {queue, 1}, .max = 1, .register_idle = true};
    lb_arena_init(&out.arena);
    int rc = lq_settle_take(s, NULL, 0, &take, &out, &sk.err);
    int n = (int)out.n;
    lb_arena_fini(&out.arena);
    return rc == 0 ? n : rc;
}

/* A worker process: waits once, for as long as it takes, then takes what it was woken for. */
static int wait_in_child(const char *worker)
{
    struct lq_store *s;
    if (sk_try_open(&s) != 0 || sk_try_join(s, worker, 60000) != 0 || look(s, worker, &lane) != 0)
        return 1;
    board->ready++;
    int rc = s->ops->wait(s, worker, sk_lanes, lb_deadline_in(20 * LADE_SECOND), &sk.err);
    board->woken += rc == 0;
    int got = sk_try_work(s, worker, 1, LQ_TO_COMPLETED);
    while (!board->finish)
        ts_nap_ms(1);
    lq_store_close(s);
    return rc == 0 ? got : 90;
}

static void a_put_wakes_a_worker_of_another_process(void **state)
{
    (void)state;
    int pid = sk_fork(wait_in_child, "w1");
    assert_true(TS_UNTIL(10 * LADE_SECOND, board->ready == 1));
    struct lq_store *s = sk_open();
    sk_put(s, "a", 1);
    board->finish = true;
    assert_int_equal(sk_wait_child(pid), 1);
    assert_int_equal(sk_count(s, LADE_STATE_COMPLETED), 1);
    lq_store_close(s);
}

static void no_more_processes_wake_than_there_are_jobs(void **state)
{
    (void)state;
    static char name[3][4] = {"w1", "w2", "w3"};
    int pid[3];
    for (int i = 0; i < 3; i++)
        pid[i] = sk_fork(wait_in_child, name[i]);
    assert_true(TS_UNTIL(10 * LADE_SECOND, board->ready == 3));
    struct lq_store *s = sk_open();
    sk_put(s, "a", 1);
    assert_true(TS_UNTIL(10 * LADE_SECOND, board->woken == 1));
    assert_true(TS_UNTIL(10 * LADE_SECOND, sk_count(s, LADE_STATE_COMPLETED) == 1));
    assert_int_equal(board->woken, 1);
    sk_put(s, "b", 2);
    assert_true(TS_UNTIL(10 * LADE_SECOND, board->woken == 3));
    board->finish = true;
    for (int i = 0; i < 3; i++)
        assert_int_equal(sk_wait_child(pid[i]), 1);
    lq_store_close(s);
}

static void a_resume_wakes_the_workers_of_all_processes(void **state)
{
    (void)state;
    static char name[2][4] = {"w1", "w2"};
    int pid[2];
    struct lq_store *s = sk_open();
    assert_int_equal(s->ops->pause(s, lane, true, &sk.err), 0);
    sk_put(s, "a", 2);
    lq_store_close(s);
    for (int i = 0; i < 2; i++)
        pid[i] = sk_fork(wait_in_child, name[i]);
    assert_true(TS_UNTIL(10 * LADE_SECOND, board->ready == 2));
    s = sk_open();
    assert_int_equal(s->ops->pause(s, lane, false, &sk.err), 0);
    board->finish = true;
    for (int i = 0; i < 2; i++)
        assert_int_equal(sk_wait_child(pid[i]), 1);
    lq_store_close(s);
}

static void wake_disturbs_nobody_but_its_worker(void **state)
{
    (void)state;
    int pid = sk_fork(wait_in_child, "other");
    assert_true(TS_UNTIL(10 * LADE_SECOND, board->ready == 1));
    struct lq_store *s = sk_open();
    assert_int_equal(sk_try_join(s, "w", 60000), 0);
    assert_int_equal(look(s, "w", &lane), 0);
    s->ops->wake(s, "w");
    assert_int_equal(s->ops->wait(s, "w", sk_lanes, lb_deadline_in(20 * LADE_SECOND), &sk.err), 0);
    assert_int_equal(board->woken, 0);
    sk_put(s, "a", 1); /* the other one still hears */
    board->finish = true;
    assert_int_equal(sk_wait_child(pid), 1);
    lq_store_close(s);
}

static int die_while_idle(const char *arg)
{
    struct lq_store *s;
    (void)arg;
    if (sk_try_open(&s) != 0 || sk_try_join(s, "dead", 60000) != 0 || look(s, "dead", &lane) != 0)
        return 1;
    _exit(7);
}

static void the_seat_of_a_dead_process_takes_no_ring_once_another_has_its_place(void **state)
{
    (void)state;
    assert_int_equal(sk_wait_child(sk_fork(die_while_idle, NULL)), 7);
    int pid = sk_fork(wait_in_child, "w1"); /* opens in the place of the dead one */
    assert_true(TS_UNTIL(10 * LADE_SECOND, board->ready == 1));
    struct lq_store *s = sk_open();
    sk_put(s, "a", 1);
    board->finish = true;
    assert_int_equal(sk_wait_child(pid), 1);
    lq_store_close(s);
}

static void a_ring_between_the_look_and_the_wait_is_not_lost(void **state)
{
    (void)state;
    struct lq_store *a = sk_open(), *b = sk_open();
    assert_int_equal(sk_try_join(a, "w", 60000), 0);
    assert_int_equal(look(a, "w", &lane), 0);
    sk_put(b, "a", 1);
    assert_int_equal(a->ops->wait(a, "w", sk_lanes, lb_deadline_in(20 * LADE_SECOND), &sk.err), 0);
    lq_store_close(a);
    lq_store_close(b);
}

static void a_ring_that_a_busy_worker_got_goes_to_another(void **state)
{
    (void)state;
    struct ls_sqlite_bell a, b;
    uint64_t q = ls_sqlite_bell_hash("q");
    assert_int_equal(ls_sqlite_bell_open(&a, sk.path, &sk.err), 0);
    assert_int_equal(ls_sqlite_bell_open(&b, sk.path, &sk.err), 0);
    int seat_a = ls_sqlite_bell_sit(&a), seat_b = ls_sqlite_bell_sit(&b);
    ls_sqlite_bell_idle(&a, seat_a, &q, 1);
    assert_int_equal(ls_sqlite_bell_ring(&b, q, 1), 0); /* none of its own */
    assert_true(ls_sqlite_bell_is_rung(&a, seat_a));
    ls_sqlite_bell_idle(&b, seat_b, &q, 1);
    assert_true(ls_sqlite_bell_quiet(&a, seat_a));
    assert_int_equal(ls_sqlite_bell_ring(&a, q, 1), 0);
    assert_true(ls_sqlite_bell_is_rung(&b, seat_b));
    ls_sqlite_bell_close(&a);
    ls_sqlite_bell_close(&b);
}

static void a_ring_is_for_its_queue_only(void **state)
{
    (void)state;
    struct ls_sqlite_bell a;
    uint64_t q = ls_sqlite_bell_hash("q"), other = ls_sqlite_bell_hash("other");
    assert_int_equal(ls_sqlite_bell_open(&a, sk.path, &sk.err), 0);
    int seat = ls_sqlite_bell_sit(&a);
    ls_sqlite_bell_idle(&a, seat, &q, 1);
    assert_int_equal(ls_sqlite_bell_ring(&a, other, SIZE_MAX), 0);
    assert_false(ls_sqlite_bell_is_rung(&a, seat));
    assert_int_equal(ls_sqlite_bell_ring(&a, q, 1), 1);
    ls_sqlite_bell_close(&a);
}

static void a_due_time_rings_those_who_know_of_none_so_early(void **state)
{
    (void)state;
    struct ls_sqlite_bell a;
    uint64_t q = ls_sqlite_bell_hash("q");
    assert_int_equal(ls_sqlite_bell_open(&a, sk.path, &sk.err), 0);
    int early = ls_sqlite_bell_sit(&a), late = ls_sqlite_bell_sit(&a);
    ls_sqlite_bell_idle(&a, early, &q, 1);
    ls_sqlite_bell_idle(&a, late, &q, 1);
    ls_sqlite_bell_set_due(&a, early, 1000);
    ls_sqlite_bell_set_due(&a, late, 3000);
    assert_int_equal(ls_sqlite_bell_ring_due(&a, q, 2000), 1);
    assert_false(ls_sqlite_bell_is_rung(&a, early));
    assert_true(ls_sqlite_bell_is_rung(&a, late));
    ls_sqlite_bell_close(&a);
}

static void a_worker_of_many_queues_is_rung_but_not_counted(void **state)
{
    (void)state;
    struct ls_sqlite_bell a;
    uint64_t q = ls_sqlite_bell_hash("q"), many[LS_SQLITE_BELL_LANES + 1] = {0};
    assert_int_equal(ls_sqlite_bell_open(&a, sk.path, &sk.err), 0);
    int broad = ls_sqlite_bell_sit(&a), narrow = ls_sqlite_bell_sit(&a);
    ls_sqlite_bell_idle(&a, broad, many, LS_SQLITE_BELL_LANES + 1);
    ls_sqlite_bell_idle(&a, narrow, &q, 1);
    assert_int_equal(ls_sqlite_bell_ring(&a, q, 1), 2);
    ls_sqlite_bell_close(&a);
}

/* The bounds of bell.h: who has no seat or no place looks by himself. */
static void a_worker_without_a_seat_returns_early_from_its_wait(void **state)
{
    (void)state;
    struct lq_store *s = sk_open();
    char name[16];
    for (int i = 0; i <= LS_SQLITE_BELL_SEATS; i++) {
        (void)snprintf(name, sizeof(name), "w%d", i);
        assert_int_equal(sk_try_join(s, name, 60000), 0);
        assert_int_equal(look(s, name, &lane), 0);
    }
    assert_int_equal(s->ops->wait(s, name, sk_lanes, lb_deadline_in(20 * LADE_SECOND), &sk.err), 0);
    lq_store_close(s);
}

static void the_place_after_the_last_hears_no_other_process(void **state)
{
    (void)state;
    static struct ls_sqlite_bell b[LS_SQLITE_BELL_PLACES + 1];
    for (size_t i = 0; i <= LS_SQLITE_BELL_PLACES; i++)
        assert_int_equal(ls_sqlite_bell_open(&b[i], sk.path, &sk.err), 0);
    assert_true(b[LS_SQLITE_BELL_PLACES - 1].shared);
    assert_false(b[LS_SQLITE_BELL_PLACES].shared);
    uint64_t q = ls_sqlite_bell_hash("q");
    int seat = ls_sqlite_bell_sit(&b[0]);
    ls_sqlite_bell_idle(&b[0], seat, &q, 1);
    (void)ls_sqlite_bell_ring(&b[LS_SQLITE_BELL_PLACES], q, 1); /* but others hear it */
    assert_true(ls_sqlite_bell_is_rung(&b[0], seat));
    ls_sqlite_bell_close(&b[3]);
    assert_int_equal(ls_sqlite_bell_open(&b[3], sk.path, &sk.err), 0); /* a free place is found */
    assert_true(b[3].shared);
    for (size_t i = 0; i <= LS_SQLITE_BELL_PLACES; i++)
        ls_sqlite_bell_close(&b[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BELL_TEST(a_put_wakes_a_worker_of_another_process),
        BELL_TEST(no_more_processes_wake_than_there_are_jobs),
        BELL_TEST(a_resume_wakes_the_workers_of_all_processes),
        BELL_TEST(wake_disturbs_nobody_but_its_worker),
        BELL_TEST(the_seat_of_a_dead_process_takes_no_ring_once_another_has_its_place),
        BELL_TEST(a_ring_between_the_look_and_the_wait_is_not_lost),
        BELL_TEST(a_ring_that_a_busy_worker_got_goes_to_another),
        BELL_TEST(a_ring_is_for_its_queue_only),
        BELL_TEST(a_due_time_rings_those_who_know_of_none_so_early),
        BELL_TEST(a_worker_of_many_queues_is_rung_but_not_counted),
        BELL_TEST(a_worker_without_a_seat_returns_early_from_its_wait),
        BELL_TEST(the_place_after_the_last_hears_no_other_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
