/* checkpoint_test.c - the log under readers: how long it gets, who is waited for, what is told (C-048) */
#include "support/sqlite_kit.h"

#define LIMIT  ((size_t)LS_SQLITE_LOG_LIMIT)
#define NOTICE (2 * LIMIT)

/* One transaction of about 1 MiB. */
static void put_large(struct lq_store *s)
{
    enum { N = 16, BYTES = 64 << 10 };

    static unsigned serial;
    static uint8_t body[BYTES] = "\1"
                                 "4";
    struct lq_put put[N];
    char id[N][32];
    for (int i = 0; i < N; i++) {
        (void)snprintf(id[i], sizeof(id[i]), "large-%u", serial++);
        put[i] = (struct lq_put){.queue = "q",
                                 .id = lb_slice_str(id[i]),
                                 .body = lb_slice(body, sizeof(body)),
                                 .level = LQ_LEVEL_DEFAULT};
    }
    if (s->ops->put(s, put, N, &sk.err) != 0)
        fail_msg("put: %s", sk.err.text);
}

static void put_until(struct lq_store *s, size_t log_bytes)
{
    for (int i = 0; sk_size("-wal") < log_bytes; i++) {
        assert_true(i < 1000);
        put_large(s);
    }
}

static void read_on(sqlite3 *h)
{
    assert_int_equal(sqlite3_exec(h, "BEGIN; SELECT count(*) FROM run", NULL, NULL, NULL),
                     SQLITE_OK);
}

static void stop_reading(sqlite3 *h)
{
    assert_int_equal(sqlite3_exec(h, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
}

static sqlite3 *open_reader(void)
{
    sqlite3 *h;
    assert_int_equal(sqlite3_open(sk.path, &h), SQLITE_OK);
    assert_int_equal(sqlite3_busy_timeout(h, 30000), SQLITE_OK);
    return h;
}

static const struct ls_sqlite_fold *fold_of(struct lq_store *s)
{
    return &ls_sqlite_of(s)->writer.fold;
}

/* C-048, C-049: readers between the transactions are in nobody's way. */
static void a_log_that_nobody_reads_at_the_moment_starts_over_at_its_first_stage(void **state)
{
    (void)state;
    struct lq_store *s = sk_open();
    size_t largest = 0;
    for (int i = 0; i < 60; i++) {
        put_large(s);
        assert_true(sk_count(s, LADE_STATE_READY) > 0);
        struct lq_row_vec rows = {0};
        lade_cursor cursor = {0};
        lb_arena_init(&rows.arena);
        assert_int_equal(s->ops->list(s, "q", LADE_STATE_READY, &cursor, 10, &rows, &sk.err), 0);
        lb_arena_fini(&rows.arena);
        largest = LB_MAX(largest, sk_size("-wal"));
    }
    assert_true(largest > 16 << 20);
    assert_true(largest < 20 << 20); /* the stage and a transaction or two */
    lq_store_close(s);
}

/* C-048: a reader that stays is waited for twice, then not any more; told at each doubling; and all is well when it ends. */
static void a_reader_that_stays_is_told_and_the_log_shrinks_when_it_ends(void **state)
{
    (void)state;
    char text[400];
    struct lq_store *s = sk_open();
    sqlite3 *reader = open_reader();
    put_large(s);
    read_on(reader);
    put_until(s, LIMIT + (4 << 20));
    assert_true(fold_of(s)->pinned);
    assert_int_equal(s->ops->notice(s, text, sizeof(text)), LADE_EMPTY);
    put_until(s, NOTICE + (2 << 20));
    assert_int_equal(s->ops->notice(s, text, sizeof(text)), 0);
    assert_non_null(strstr(text, "jobs.db-wal has grown to 6"));
    assert_non_null(strstr(text, "a reader keeps a transaction open"));
    put_large(s);
    assert_int_equal(s->ops->notice(s, text, sizeof(text)), LADE_EMPTY);
    assert_int_equal(sk_check(s), 1); /* lade doctor says the same */
    put_until(s, 2 * NOTICE + (2 << 20));
    assert_int_equal(s->ops->notice(s, text, sizeof(text)), 0);
    stop_reading(reader);
    for (int i = 0; i < 3; i++)
        put_large(s);
    assert_false(fold_of(s)->pinned);
    assert_true(sk_size("-wal") <= LIMIT);
    assert_int_equal(s->ops->notice(s, text, sizeof(text)), LADE_EMPTY);
    assert_int_equal(sk_check(s), 0);
    assert_int_equal(sqlite3_close(reader), SQLITE_OK);
    lq_store_close(s);
}

/* C-048: whoever comes after the mark of the one before is somebody else, and is waited for with more patience. */
static void readers_that_come_and_go_are_waited_for_at_each_commit(void **state)
{
    (void)state;
    struct lq_store *s = sk_open();
    sqlite3 *reader[2] = {open_reader(), open_reader()};
    put_large(s);
    read_on(reader[0]);
    put_until(s, LIMIT - (2 << 20));
    for (int i = 0; i < 8; i++) {
        struct ls_sqlite_fold before = *fold_of(s);
        read_on(reader[(i + 1) % 2]); /* there is a reader at any moment */
        stop_reading(reader[i % 2]);
        put_large(s);
        if (sk_size("-wal") <= LIMIT + (1 << 20))
            continue;
        assert_false(fold_of(s)->pinned);
        assert_true(fold_of(s)->marked > before.marked);
        assert_true(fold_of(s)->patience > before.patience ||
                    fold_of(s)->patience == 250 * LADE_MILLISECOND);
    }
    assert_int_equal(fold_of(s)->patience, 250 * LADE_MILLISECOND);
    stop_reading(reader[0]);
    put_large(s);
    put_large(s);
    assert_true(sk_size("-wal") <= LIMIT);
    for (int i = 0; i < 2; i++)
        assert_int_equal(sqlite3_close(reader[i]), SQLITE_OK);
    lq_store_close(s);
}

/* The sweep of an idle worker is enough. */
static void the_log_is_folded_back_without_a_commit_after_the_reader_ends(void **state)
{
    (void)state;
    size_t n = 0;
    int64_t next = 0;
    static const char *const lane = "q";
    struct lq_store *s = sk_open();
    sqlite3 *reader = open_reader();
    put_large(s);
    read_on(reader);
    put_until(s, LIMIT + (4 << 20));
    stop_reading(reader);
    assert_int_equal(s->ops->promote(s, (struct lq_lanes){&lane, 1}, 10, &n, &next, &sk.err), 0);
    assert_int_equal(ls_sqlite_of(s)->writer.db.log_pages, 0);
    assert_int_equal(sk_try_join(s, "w", 60000), 0); /* the next commit, a small one, starts over */
    assert_true(sk_size("-wal") <= LIMIT);
    assert_int_equal(sqlite3_close(reader), SQLITE_OK);
    lq_store_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SK_TEST(a_log_that_nobody_reads_at_the_moment_starts_over_at_its_first_stage),
        SK_TEST(a_reader_that_stays_is_told_and_the_log_shrinks_when_it_ends),
        SK_TEST(readers_that_come_and_go_are_waited_for_at_each_commit),
        SK_TEST(the_log_is_folded_back_without_a_commit_after_the_reader_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
