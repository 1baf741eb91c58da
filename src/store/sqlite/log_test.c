/*
 * log_test.c - gathered commits: nothing is lost, nothing outlives its transaction, whatever SQLite writes meanwhile
 *
 * A page cache of ten pages makes SQLite write pages before the commit, rewrite them, and read them back from the log.
 */
#include "store/sqlite/log.h"

#include <stdio.h>

#include "support/sqlite_kit.h"

/* A connection whose transactions are gathered, and one without that looks. */
static struct {
    struct ls_sqlite_db db;
    sqlite3 *other;
} t;

static int page = LS_SQLITE_PAGE; /* bytes of one */

static void run(sqlite3 *h, const char *sql)
{
    char *error = NULL;
    if (sqlite3_exec(h, sql, NULL, NULL, &error) != SQLITE_OK)
        fail_msg("%s: %s", sql, error);
}

static int64_t number(sqlite3 *h, const char *sql)
{
    sqlite3_stmt *st = NULL;
    assert_int_equal(sqlite3_prepare_v2(h, sql, -1, &st, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(st), SQLITE_ROW);
    int64_t v = sqlite3_column_int64(st, 0);
    assert_int_equal(sqlite3_finalize(st), SQLITE_OK);
    return v;
}

/* Integrity, as both see it; and both see the same. */
static void assert_sound(void)
{
    static const char sums[] = "SELECT coalesce(sum(n * (1 + length(x))), 0) FROM t";
    static const char check[] = "SELECT integrity_check = 'ok' FROM pragma_integrity_check";
    assert_int_equal(number(t.db.h, check), 1);
    assert_int_equal(number(t.other, check), 1);
    assert_int_equal(number(t.db.h, sums), number(t.other, sums));
}

static int setup(void **state)
{
    int rc = sk_setup(state);
    char sql[40];
    memset(&t, 0, sizeof(t));
    t.db.page = page;
    (void)snprintf(sql, sizeof(sql), "PRAGMA page_size = %d", page);
    assert_non_null(ls_sqlite_log_vfs());
    assert_int_equal(sqlite3_open_v2(sk.path, &t.db.h, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
                                     ls_sqlite_log_vfs()),
                     SQLITE_OK);
    run(t.db.h, sql);
    run(t.db.h, "PRAGMA journal_mode = WAL; PRAGMA cache_size = 10; PRAGMA wal_autocheckpoint = 0;"
                "CREATE TABLE t (n INTEGER PRIMARY KEY, x BLOB)");
    assert_int_equal(sqlite3_open(sk.path, &t.other), SQLITE_OK);
    return rc;
}

static int teardown(void **state)
{
    assert_int_equal(sqlite3_close(t.db.h), SQLITE_OK);
    assert_int_equal(sqlite3_close(t.other), SQLITE_OK);
    return sk_teardown(state);
}

static void begin(void)
{
    run(t.db.h, "BEGIN IMMEDIATE");
    ls_sqlite_log_begin(&t.db);
    assert_non_null(t.db.log);
}

static void end(const char *how)
{
    (void)ls_sqlite_log_commits(&t.db, true);
    run(t.db.h, how);
    ls_sqlite_log_end(&t.db);
}

#define INSERT(n)                                                                   \
    "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c LIMIT " #n ") " \
    "INSERT INTO t (x) SELECT randomblob(1500) FROM c"

static void a_commit_is_in_the_log_when_it_is_acknowledged(void **state)
{
    (void)state;
    for (int i = 1; i <= 20; i++) {
        begin();
        run(t.db.h, INSERT(1));
        end("COMMIT");
        assert_int_equal(number(t.other, "SELECT count(*) FROM t"), i);
    }
    assert_sound();
}

static void nothing_is_written_before_the_commit_of_a_small_transaction(void **state)
{
    (void)state;
    size_t before = sk_size("-wal");
    begin();
    run(t.db.h, INSERT(30)); /* more than the cache holds */
    assert_int_equal(sk_size("-wal"), before);
    end("COMMIT");
    assert_true(sk_size("-wal") > before);
    assert_sound();
}

static void transactions_larger_than_what_is_gathered_are_whole(void **state)
{
    (void)state;
    begin();
    run(t.db.h, INSERT(2000));
    run(t.db.h, "UPDATE t SET x = randomblob(700) WHERE n % 3 = 0");
    end("COMMIT");
    assert_int_equal(number(t.other, "SELECT count(*) FROM t"), 2000);
    assert_sound();
}

/* Others may have begun the log anew: bytes of a dead transaction must not fall on theirs. */
static void what_was_gathered_ends_with_its_transaction(void **state)
{
    (void)state;
    for (int i = 0; i < 10; i++) {
        begin();
        run(t.db.h, INSERT(30));
        end("ROLLBACK");
        run(t.other, INSERT(5));
        if (i % 2 == 0)
            run(t.other, "PRAGMA wal_checkpoint(RESTART)");
        run(t.other, INSERT(60));
        begin();
        run(t.db.h, INSERT(3));
        end("COMMIT");
        assert_int_equal(number(t.other, "SELECT count(*) FROM t"), 68 * (i + 1));
        assert_sound();
    }
}

/* Pages that were written early and changed again, taken back by savepoints, by rollbacks, or not at all. */
static void pages_written_early_may_change_again(void **state)
{
    (void)state;
    static const char insert[] = INSERT(40);
    static const char *const step[] = {insert,
                                       "UPDATE t SET x = randomblob(900) WHERE n % 5 = 0",
                                       "SAVEPOINT s; DELETE FROM t WHERE n % 7 = 1; ROLLBACK TO s",
                                       "SAVEPOINT s; DELETE FROM t WHERE n % 7 = 2; RELEASE s",
                                       "DELETE FROM t WHERE n % 4 = 3",
                                       "SELECT count(*), sum(length(x)) FROM t"};
    uint32_t chance = 12345;
    for (int i = 0; i < 60; i++) {
        begin();
        for (int k = 0; k < 5; k++) {
            chance = chance * 1103515245U + 12345U;
            run(t.db.h, step[(chance >> 16) % LB_ARRAY_LEN(step)]);
        }
        end((chance >> 24) % 3 == 0 ? "ROLLBACK" : "COMMIT");
        assert_sound();
        if (i % 10 == 9)
            run(t.other, "PRAGMA wal_checkpoint(TRUNCATE)");
    }
}

static void writes_outside_of_a_gathered_transaction_go_straight_through(void **state)
{
    (void)state;
    run(t.db.h, INSERT(10));
    begin();
    run(t.db.h, INSERT(10));
    end("COMMIT");
    run(t.db.h, INSERT(10));
    assert_int_equal(number(t.other, "SELECT count(*) FROM t"), 30);
    assert_sound();
}

#define LOG_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOG_TEST(a_commit_is_in_the_log_when_it_is_acknowledged),
        LOG_TEST(nothing_is_written_before_the_commit_of_a_small_transaction),
        LOG_TEST(transactions_larger_than_what_is_gathered_are_whole),
        LOG_TEST(what_was_gathered_ends_with_its_transaction),
        LOG_TEST(pages_written_early_may_change_again),
        LOG_TEST(writes_outside_of_a_gathered_transaction_go_straight_through),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    page = 4096; /* files of before */
    return failed + cmocka_run_group_tests(tests, NULL, NULL);
}
