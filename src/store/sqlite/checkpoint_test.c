/* checkpoint_test.c - the log under readers: how long it gets, who is waited for, what is told (C-048) */
#include "support/sqlite_kit.h"

#include <pthread.h>

#define LIMIT  ((size_t)LS_SQLITE_LOG_LIMIT)
#define NOTICE (2 * LIMIT)

/* One transaction of about 1 MiB; from any thread, but one at a time. */
static int try_put_large(struct lq_store *s, lade_err *err)
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
    return s->ops->put(s, put, N, err);
}

static void put_large(struct lq_store *s)
{
    if (try_put_large(s, &sk.err) != 0)
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

/* How often the log was started over: its header counts that. */
static uint32_t starts_of_log(void)
{
    char path[sizeof(sk.path) + 8];
    uint8_t head[16] = {0};
    (void)snprintf(path, sizeof(path), "%s-wal", sk.path);
    FILE *f = fopen(path, "rbe");
    assert_non_null(f);
    assert_int_equal(fread(head, 1, sizeof(head), f), sizeof(head));
    (void)fclose(f);
    return (uint32_t)head[12] << 24 | (uint32_t)head[13] << 16 | (uint32_t)head[14] << 8 | head[15];
}

static bool tender_rests(struct lq_store *s)
{
    struct ls_sqlite_tender *t = &ls_sqlite_of(s)->tender;
    lr_mutex_lock(&t->lock);
    bool rests = !t->asked && !t->tends;
    lr_mutex_unlock(&t->lock);
    return rests;
}

/* C-048, C-049: readers between the transactions are in nobody's way, and the limit holds however late the tender is. */
static void a_log_that_nobody_reads_at_the_moment_never_passes_its_limit(void **state)
{
    (void)state;
    struct lq_store *s = sk_open();
    for (int i = 0; i < 60; i++) {
        put_large(s);
        assert_true(sk_count(s, LADE_STATE_READY) > 0);
        struct lq_row_vec rows = {0};
        lade_cursor cursor = {0};
        lb_arena_init(&rows.arena);
        assert_int_equal(s->ops->list(s, "q", LADE_STATE_READY, &cursor, 10, &rows, &sk.err), 0);
        lb_arena_fini(&rows.arena);
        assert_true(sk_size("-wal") < LIMIT + (2 << 20)); /* the limit and a transaction */
    }
    assert_true(starts_of_log() > 0);
    lq_store_close(s);
}

/* C-048: beside the writer, who need not come near the limit. */
static void the_tender_folds_the_log_back_between_commits(void **state)
{
    (void)state;
    struct lq_store *s = sk_open();
    for (int i = 0; i < 20; i++) {
        put_large(s);
        assert_true(TS_UNTIL(60 * LADE_SECOND, tender_rests(s)));
    }
    assert_true(starts_of_log() >= 3);
    assert_true(sk_size("-wal") < 8 << 20);
    lq_store_close(s);
}

static void *put_on(void *arg)
{
    lade_err err = {0};
    bool good = true;
    for (int i = 0; i < 100 && good; i++)
        good = try_put_large(arg, &err) == 0;
    return good ? arg : NULL;
}

/* C-048: two processes that write in turn; neither finds the other's frames folded by chance. */
static void two_writers_keep_the_log_below_its_limit(void **state)
{
    (void)state;
    pthread_t thread;
    void *good = NULL;
    struct lq_store *a = sk_open(), *b = sk_open();
    assert_int_equal(pthread_create(&thread, NULL, put_on, a), 0);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(sk_try_join(b, "w", 60000), 0);
        assert_true(sk_size("-wal") < LIMIT + (4 << 20));
    }
    assert_int_equal(pthread_join(thread, &good), 0);
    assert_non_null(good);
    assert_true(starts_of_log() >= 2);
    lq_store_close(b);
    lq_store_close(a);
}

/* No thread to be had: the leader does it. */
static void without_a_tender_the_leader_folds_the_log_back(void **state)
{
    (void)state;
    struct lq_store *s = sk_open();
    ls_sqlite_of(s)->tender.failed = true;
    for (int i = 0; i < 60; i++) {
        put_large(s);
        assert_true(sk_size("-wal") < 20 << 20); /* its first stage and a transaction or two */
    }
    assert_true(starts_of_log() >= 2);
    assert_int_equal(ls_sqlite_of(s)->tender.passes, 0);
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
    put_until(s, 2 * NOTICE + (4 << 20));
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
    struct lq_store *s = sk_open();
    sqlite3 *reader = open_reader();
    put_large(s);
    read_on(reader);
    put_until(s, LIMIT + (4 << 20));
    stop_reading(reader);
    assert_int_equal(s->ops->promote(s, sk_lanes, 10, &n, &next, &sk.err), 0);
    assert_int_equal(ls_sqlite_of(s)->writer.db.log_pages, 0);
    assert_int_equal(sk_try_join(s, "w", 60000), 0); /* the next commit, a small one, starts over */
    assert_true(sk_size("-wal") <= LIMIT);
    assert_int_equal(sqlite3_close(reader), SQLITE_OK);
    lq_store_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SK_TEST(a_log_that_nobody_reads_at_the_moment_never_passes_its_limit),
        SK_TEST(the_tender_folds_the_log_back_between_commits),
        SK_TEST(two_writers_keep_the_log_below_its_limit),
        SK_TEST(without_a_tender_the_leader_folds_the_log_back),
        SK_TEST(a_reader_that_stays_is_told_and_the_log_shrinks_when_it_ends),
        SK_TEST(readers_that_come_and_go_are_waited_for_at_each_commit),
        SK_TEST(the_log_is_folded_back_without_a_commit_after_the_reader_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
