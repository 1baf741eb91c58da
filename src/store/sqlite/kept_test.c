/* kept_test.c - what a transaction keeps for the next one: the same as the file says, whoever else writes to it */
#include "support/sqlite_kit.h"

static const char *const lane = "q";

static void assert_run_is_in_file(sqlite3 *h, const struct ls_sqlite_run *r)
{
    char sql[400];
    (void)snprintf(
        sql, sizeof(sql),
        "SELECT count(*) FROM run WHERE job = %lld AND n = %lld AND queue = %lld AND state = %lld "
        "AND rank = %lld AND pos = %lld AND level = %lld AND at = %lld AND "
        "coalesce(worker, 0) = %lld AND flags = %lld AND reason = %lld",
        (long long)r->job, (long long)r->n, (long long)r->queue, (long long)r->state,
        (long long)r->rank, (long long)r->pos, (long long)r->level, (long long)r->at_ms,
        (long long)r->worker, (long long)r->flags, (long long)r->reason);
    assert_int_equal(sk_ask_on(h, sql), 1);
}

/* Unless somebody else has written: then it is forgotten by the next begin, and says nothing now. */
static void assert_kept_is_in_file(struct lq_store *s, sqlite3 *h)
{
    const struct ls_sqlite_tx *tx = &ls_sqlite_of(s)->writer.tx;
    for (size_t i = 0; i < LS_SQLITE_RUNS_KEPT; i++) {
        if (tx->run[i].n > 0)
            assert_run_is_in_file(h, &tx->run[i]);
    }
    for (const struct ls_sqlite_queue *q = tx->all; q; q = q->next_kept) {
        char sql[200];
        (void)snprintf(sql, sizeof(sql), "SELECT next FROM queue WHERE num = %lld AND name = '%s'",
                       (long long)q->num, q->name);
        assert_int_equal(sk_ask_on(h, sql), q->next);
    }
    if (tx->next_seq > 0)
        assert_true(tx->next_seq > sk_ask_on(h, "SELECT max(seq) FROM job"));
    if (tx->locks == 0)
        assert_int_equal(sk_ask_on(h, "SELECT count(*) FROM lock"), 0);
}

static void work_some(struct lq_store *s)
{
    static const enum lq_to to[] = {LQ_TO_COMPLETED, LQ_TO_COMPLETED, LQ_TO_RETRYING, LQ_TO_READY,
                                    LQ_TO_DEAD,      LQ_TO_CANCELLED, LQ_TO_GONE};

    assert_true(sk_try_work(s, "w", 1 + sk_draw(6), to[sk_draw(7)]) >= 0);
}

static void change_something(struct lq_store *s)
{
    static const enum lade_state purged[] = {LADE_STATE_READY, LADE_STATE_RETRYING,
                                             LADE_STATE_COMPLETED, LADE_STATE_DEAD};

    static unsigned serial;
    char prefix[32];
    size_t n = 0;
    int64_t next = 0;
    (void)snprintf(prefix, sizeof(prefix), "j%u-", serial++);
    switch (sk_draw(12)) {
    case 0:
        assert_true(s->ops->purge(s, lane, purged[sk_draw(4)], 1 + sk_draw(4), &n, &sk.err) >= 0);
        break;
    case 1:
        assert_true(s->ops->redrive(s, lane, 3, &n, &sk.err) >= 0);
        break;
    case 2:
        assert_int_equal(s->ops->promote(s, sk_lanes, 3, &n, &next, &sk.err), 0);
        break;
    case 3:
        assert_true(s->ops->trim(s, sk_lanes, 3, &n, &sk.err) >= 0);
        break;
    case 4:
        assert_int_equal(s->ops->pause(s, lane, true, &sk.err), 0);
        assert_int_equal(s->ops->pause(s, lane, false, &sk.err), 0);
        break;
    case 5:
    case 6:
    case 7:
    case 8:
        sk_put(s, prefix, 1 + sk_draw(5));
        break;
    default:
        work_some(s);
        break;
    }
}

static void what_is_kept_is_what_the_file_says(void **state)
{
    (void)state;
    sqlite3 *h;
    sk.config.keep_completed.count = 3;
    struct lq_store *s = sk_open();
    assert_int_equal(sqlite3_open(sk.path, &h), SQLITE_OK);
    assert_int_equal(sk_try_join(s, "w", 3600000), 0);
    sk_put(s, "first", 1);
    for (int i = 0; i < 1500; i++) {
        change_something(s);
        assert_kept_is_in_file(s, h);
    }
    assert_int_equal(sk_check(s), 0);
    assert_int_equal(sqlite3_close(h), SQLITE_OK);
    lq_store_close(s);
}

static void handles_that_write_in_turn_see_each_others_changes(void **state)
{
    (void)state;
    sk_change_in_turn(change_something, 1500, 100);
}

static void a_pause_by_another_handle_stops_the_next_take(void **state)
{
    (void)state;
    struct lq_store *a = sk_open(), *b = sk_open();
    assert_int_equal(sk_try_join(a, "w", 3600000), 0);
    sk_put(a, "j", 3);
    assert_int_equal(sk_try_work(a, "w", 1, LQ_TO_COMPLETED), 1);
    assert_int_equal(b->ops->pause(b, lane, true, &sk.err), 0);
    assert_int_equal(sk_try_work(a, "w", 1, LQ_TO_COMPLETED), 0);
    assert_int_equal(b->ops->pause(b, lane, false, &sk.err), 0);
    assert_int_equal(sk_try_work(a, "w", 5, LQ_TO_COMPLETED), 2);
    lq_store_close(b);
    lq_store_close(a);
}

/* C-017 and the like: a lease that ended elsewhere is not live by memory. */
static void a_worker_that_another_handle_ends_takes_nothing(void **state)
{
    (void)state;
    struct lq_store *a = sk_open(), *b = sk_open();
    assert_int_equal(sk_try_join(a, "w", 3600000), 0);
    sk_put(a, "j", 3);
    assert_int_equal(sk_try_work(a, "w", 1, LQ_TO_COMPLETED), 1);
    assert_int_equal(b->ops->leave(b, "w", sk_lanes, &sk.err), 0);
    assert_int_equal(sk_try_work(a, "w", 1, LQ_TO_COMPLETED), LADE_STALE);
    lq_store_close(b);
    lq_store_close(a);
}

static void a_worker_that_leaves_by_the_same_handle_takes_nothing(void **state)
{
    (void)state;
    struct lq_store *s = sk_open();
    assert_int_equal(sk_try_join(s, "w", 3600000), 0);
    sk_put(s, "j", 3);
    assert_int_equal(sk_try_work(s, "w", 1, LQ_TO_COMPLETED), 1);
    assert_int_equal(s->ops->leave(s, "w", sk_lanes, &sk.err), 0);
    assert_int_equal(sk_try_work(s, "w", 1, LQ_TO_COMPLETED), LADE_STALE);
    lq_store_close(s);
}

static void a_queue_that_another_handle_forgets_is_made_again(void **state)
{
    (void)state;
    struct lq_store *a = sk_open(), *b = sk_open();
    assert_int_equal(sk_try_join(a, "w", 3600000), 0);
    sk_put(a, "j", 1);
    assert_int_equal(sk_try_work(a, "w", 1, LQ_TO_GONE), 1);
    assert_int_equal(b->ops->forget(b, lane, &sk.err), 0);
    sk_put(a, "k", 1);
    assert_int_equal(sk_count(b, LADE_STATE_READY), 1);
    assert_int_equal(sk_check(b), 0);
    lq_store_close(b);
    lq_store_close(a);
}

static void more_queues_than_are_kept_are_counted_right(void **state)
{
    (void)state;
    struct lq_store *s = sk_open();
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < LS_SQLITE_QUEUES_KEPT + 20; i++) {
            char id[32], queue[32];
            (void)snprintf(id, sizeof(id), "j%d-%d", round, i);
            (void)snprintf(queue, sizeof(queue), "q%d", i);
            struct lq_put put = {.queue = queue,
                                 .id = lb_slice_str(id),
                                 .body = lb_slice("\1"
                                                  "4",
                                                  2),
                                 .level = LQ_LEVEL_DEFAULT};
            assert_int_equal(s->ops->put(s, &put, 1, &sk.err), 0);
            assert_true(ls_sqlite_of(s)->writer.tx.n_all <= LS_SQLITE_QUEUES_KEPT + 1);
        }
    }
    assert_int_equal(sk_check(s), 0);
    lq_store_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SK_TEST(what_is_kept_is_what_the_file_says),
        SK_TEST(handles_that_write_in_turn_see_each_others_changes),
        SK_TEST(a_pause_by_another_handle_stops_the_next_take),
        SK_TEST(a_worker_that_another_handle_ends_takes_nothing),
        SK_TEST(a_worker_that_leaves_by_the_same_handle_takes_nothing),
        SK_TEST(a_queue_that_another_handle_forgets_is_made_again),
        SK_TEST(more_queues_than_are_kept_are_counted_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
