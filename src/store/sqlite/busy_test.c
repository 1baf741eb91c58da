/* busy_test.c - several writers on one file: waiting, giving up, heartbeats among them */
#include <unistd.h>

#include "support/sqlite_kit.h"

/* Another process's write lock, held by a plain connection. */
static sqlite3 *take_lock(void)
{
    sqlite3 *h;
    assert_int_equal(sqlite3_open(sk.path, &h), SQLITE_OK);
    assert_int_equal(sqlite3_busy_timeout(h, 5000), SQLITE_OK);
    assert_int_equal(sqlite3_exec(h, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    return h;
}

static void drop_lock(sqlite3 *h)
{
    assert_int_equal(sqlite3_exec(h, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(h), SQLITE_OK);
}

/* A call on a thread of its own. */
struct call {
    struct lq_store *s;
    const char *name;
    int64_t lease_ms;
    int rc;
    int64_t took; /* ns */
    _Atomic bool done;
    struct lr_thread thread;
};

static void call_put(void *arg)
{
    struct call *c = arg;
    int64_t start = lb_clock_mono();
    c->rc = sk_try_put(c->s, c->name, 1);
    c->took = lb_clock_mono() - start;
    c->done = true;
}

static void call_renew(void *arg)
{
    struct call *c = arg;
    int64_t start = lb_clock_mono();
    c->rc = sk_try_join(c->s, c->name, c->lease_ms);
    c->took = lb_clock_mono() - start;
    c->done = true;
}

static void a_held_lock_is_told_only_after_the_timeout(void **state)
{
    (void)state;
    (void)snprintf(sk.url, sizeof(sk.url), "sqlite:%s?busy_timeout=300", sk.path);
    struct lq_store *s = sk_open();
    sqlite3 *other = take_lock();
    struct call put = {.s = s, .name = "a"};
    call_put(&put);
    assert_int_equal(put.rc, -LADE_EBUSY);
    assert_true(put.took >= 300 * LADE_MILLISECOND);
    assert_non_null(strstr(sk.err.text, "another process holds the write lock"));
    drop_lock(other);
    sk_put(s, "b", 1);
    lq_store_close(s);
}

static void readers_do_not_wait_for_writers(void **state)
{
    (void)state;
    struct lq_store *s = sk_open();
    sk_put(s, "a", 5);
    sqlite3 *other = take_lock();
    assert_int_equal(sk_count(s, LADE_STATE_READY), 5);
    assert_int_equal(sk_check(s), 0);
    drop_lock(other);
    lq_store_close(s);
}

/* C-047: a beat that meets a held lock waits for it, as long as the lease lasts, and then succeeds. */
static void a_heartbeat_rides_through_a_held_lock(void **state)
{
    (void)state;
    struct lq_store *s = sk_open();
    assert_int_equal(sk_try_join(s, "w", 5000), 0);
    sqlite3 *other = take_lock();
    struct call beat = {.s = s, .name = "w", .lease_ms = 5000};
    struct call put = {.s = s, .name = "a"};
    assert_int_equal(lr_thread_start(&put.thread, "put", call_put, &put), 0);
    assert_int_equal(lr_thread_start(&beat.thread, "beat", call_renew, &beat), 0);
    ts_nap_ms(200); /* how long the lock is held; nothing is expected of it */
    assert_false(beat.done);
    drop_lock(other);
    lr_thread_join(&beat.thread);
    lr_thread_join(&put.thread);
    assert_int_equal(beat.rc, 0);
    assert_int_equal(put.rc, 0);
    lq_store_close(s);
}

/* C-008: when the lock is held for longer than the lease the beat says so in time, and not as "not found". */
static void a_heartbeat_gives_up_when_its_lease_is_over(void **state)
{
    (void)state;
    struct lq_store *s = sk_open();
    assert_int_equal(sk_try_join(s, "w", 400), 0);
    sqlite3 *other = take_lock();
    struct call beat = {.s = s, .name = "w", .lease_ms = 400};
    call_renew(&beat);
    assert_int_equal(beat.rc, -LADE_EBUSY);
    drop_lock(other);
    lq_store_close(s);
}

struct flood {
    struct lq_store *s;
    _Atomic bool stop;
    _Atomic int failed;
    _Atomic uint64_t n;
    struct lr_thread thread[3];
};

static void put_without_end(void *arg)
{
    struct flood *f = arg;
    char prefix[32];
    while (!f->stop) {
        (void)snprintf(prefix, sizeof(prefix), "f%llu-", (unsigned long long)f->n++);
        f->failed += sk_try_put(f->s, prefix, 200) != 0;
    }
}

/* C-047: the writers of the own process let a beat through. */
static void a_heartbeat_is_not_starved_by_the_writers_beside_it(void **state)
{
    (void)state;
    struct flood f = {.s = sk_open()};
    int64_t longest = 0;
    assert_int_equal(sk_try_join(f.s, "w", 60000), 0);
    for (size_t i = 0; i < LB_ARRAY_LEN(f.thread); i++)
        assert_int_equal(lr_thread_start(&f.thread[i], "put", put_without_end, &f), 0);
    for (int i = 0; i < 50; i++) {
        struct call beat = {.s = f.s, .name = "w", .lease_ms = 60000};
        call_renew(&beat);
        assert_int_equal(beat.rc, 0);
        longest = LB_MAX(longest, beat.took);
    }
    f.stop = true;
    for (size_t i = 0; i < LB_ARRAY_LEN(f.thread); i++)
        lr_thread_join(&f.thread[i]);
    assert_int_equal(f.failed, 0);
    print_message("the longest beat took %lld ms\n", (long long)(longest / LADE_MILLISECOND));
    lq_store_close(f.s);
}

enum { PROCESSES = 4, ROUNDS = 60, ALL = PROCESSES / 2 * ROUNDS * 5 };

static int enqueue_in_child(const char *name)
{
    struct lq_store *s;
    char prefix[32];
    int rc = sk_try_open(&s);
    for (int i = 0; i < ROUNDS && rc == 0; i++) {
        (void)snprintf(prefix, sizeof(prefix), "%s-%d-", name, i);
        rc = sk_try_put(s, prefix, 5);
    }
    if (rc != 0)
        (void)fprintf(stderr, "%s: %d %s\n", name, rc, sk.err.text);
    lq_store_close(s);
    return rc == 0 ? 0 : 1;
}

static int work_in_child(const char *name)
{
    struct lq_store *s;
    int rc = sk_try_open(&s);
    if (rc == 0)
        rc = sk_try_join(s, name, 60000);
    for (int done = 0; done < ALL && rc == 0;) {
        int n = sk_try_work(s, name, 5, LQ_TO_COMPLETED);
        rc = n < 0 ? n : 0;
        done += n < 0 ? 0 : n;
        if (n == 0)
            ts_nap_ms(1);
        if (n == 0 && sk_count(s, LADE_STATE_READY) == 0 &&
            sk_count(s, LADE_STATE_COMPLETED) == ALL)
            break;
    }
    if (rc != 0)
        (void)fprintf(stderr, "%s: %d %s\n", name, rc, sk.err.text);
    lq_store_close(s);
    return rc == 0 ? 0 : 1;
}

/* C-046: writers of several processes at once, and none of them ever sees BUSY. */
static void no_process_sees_busy_however_many_write(void **state)
{
    (void)state;
    static char name[PROCESSES][8] = {"p1", "p2", "w1", "w2"};
    int pid[PROCESSES];
    sk.config.keep_completed.count = 100000;
    lq_store_close(sk_open());
    for (int i = 0; i < PROCESSES; i++)
        pid[i] = sk_fork(i < PROCESSES / 2 ? enqueue_in_child : work_in_child, name[i]);
    for (int i = 0; i < PROCESSES; i++)
        assert_int_equal(sk_wait_child(pid[i]), 0);
    struct lq_store *s = sk_open();
    assert_int_equal(sk_count(s, LADE_STATE_COMPLETED), ALL);
    assert_int_equal(sk_count(s, LADE_STATE_ACTIVE), 0);
    assert_int_equal(sk_check(s), 0);
    lq_store_close(s);
}

struct caller {
    struct lq_store *s;
    int number;
    int failed;
    struct lr_thread thread;
};

static void put_singly(void *arg)
{
    struct caller *c = arg;
    char prefix[32];
    for (int i = 0; i < 100; i++) {
        (void)snprintf(prefix, sizeof(prefix), "c%d-%d-", c->number, i);
        c->failed += sk_try_put(c->s, prefix, 1) != 0;
    }
}

static void callers_that_share_transactions_each_get_their_own_result(void **state)
{
    (void)state;
    struct caller c[8];
    struct lq_store *s = sk_open();
    for (int i = 0; i < 8; i++) {
        c[i] = (struct caller){.s = s, .number = i};
        assert_int_equal(lr_thread_start(&c[i].thread, "put", put_singly, &c[i]), 0);
    }
    for (int i = 0; i < 8; i++) {
        lr_thread_join(&c[i].thread);
        assert_int_equal(c[i].failed, 0);
    }
    assert_int_equal(sk_count(s, LADE_STATE_READY), 800);
    assert_int_equal(sk_check(s), 0);
    lq_store_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SK_TEST(a_held_lock_is_told_only_after_the_timeout),
        SK_TEST(readers_do_not_wait_for_writers),
        SK_TEST(a_heartbeat_rides_through_a_held_lock),
        SK_TEST(a_heartbeat_gives_up_when_its_lease_is_over),
        SK_TEST(a_heartbeat_is_not_starved_by_the_writers_beside_it),
        SK_TEST(no_process_sees_busy_however_many_write),
        SK_TEST(callers_that_share_transactions_each_get_their_own_result),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
