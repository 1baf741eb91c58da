/* The page of classes costs what there are of classes, whatever lies dead: counted in steps of SQLite's machine */
#include "queue/dead_store.h"
#include "store/sqlite/sqlite_impl.h"
#include "support/sqlite_kit.h"

#define CLASSES 200

/* Dead jobs, n of each class, written as the store would write them. */
static void bury(struct lq_store *s, int n)
{
    char sql[1400];
    (void)snprintf(
        sql, sizeof(sql),
        "BEGIN; DELETE FROM job; DELETE FROM run; DELETE FROM death; DELETE FROM dead_class;"
        "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < %d) "
        "INSERT INTO dead_class (num, queue, name, kind, text, n, first, last) "
        "SELECT i, 1, 'c' || i, 'k', x'', %d, 1, 1 FROM c;"
        "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < %d) "
        "INSERT INTO job (seq, queue, id, body) SELECT i, 1, 'j' || i, x'0134' FROM c;"
        "INSERT INTO death (job, class, at) SELECT seq, seq %% %d + 1, 1 FROM job;"
        "INSERT INTO run (job, n, queue, state, rank, pos, level, at, worker, flags, reason) "
        "VALUES (1, %d, 1, 5, 0, 1, 4, 1, NULL, 0, 120);"
        "UPDATE queue SET dead = %d, ready = 0, next = %d; COMMIT",
        CLASSES, n, CLASSES * n, CLASSES, CLASSES * n, CLASSES * n, CLASSES * n + 10);
    sk_sql(sql);
    assert_int_equal(sk_check(s), 0);
}

/* Steps of the statement that reads the classes. */
static int measure_classes(struct lq_store *s)
{
    struct ls_sqlite *ss = ls_sqlite_of(s);
    struct lq_class_vec v = {0};
    sqlite3_stmt *st = ls_sqlite_db_stmt(&ss->read, LS_SQLITE_CLASS_ALL);
    lb_arena_init(&v.arena);
    (void)sqlite3_stmt_status(st, SQLITE_STMTSTATUS_VM_STEP, 1);
    assert_int_equal(s->ops->classes(s, "q", &v, &sk.err), 0);
    assert_int_equal(v.n, CLASSES);
    assert_true(v.class_[0].sample.n > 0);
    lb_arena_fini(&v.arena);
    return sqlite3_stmt_status(st, SQLITE_STMTSTATUS_VM_STEP, 1);
}

/* Steps of the statement that finds the jobs of one page of a class. */
static int measure_page(struct lq_store *s)
{
    struct ls_sqlite *ss = ls_sqlite_of(s);
    struct lq_row_vec rows = {0};
    lade_cursor cursor = {0};
    sqlite3_stmt *st = ls_sqlite_db_stmt(&ss->read, LS_SQLITE_DEATH_AFTER);
    lb_arena_init(&rows.arena);
    (void)sqlite3_stmt_status(st, SQLITE_STMTSTATUS_VM_STEP, 1);
    assert_int_equal(s->ops->list_class(s, "q", lb_slice_str("c7"), 0, &cursor, 5, &rows, &sk.err),
                     0);
    assert_int_equal(rows.n, 5);
    lb_arena_fini(&rows.arena);
    return sqlite3_stmt_status(st, SQLITE_STMTSTATUS_VM_STEP, 1);
}

static void page_of_classes_does_not_look_at_the_dead(void **state)
{
    (void)state;
    struct lq_store *s = sk_open();
    sk_put(s, "a", 1);
    bury(s, 6);
    int few = measure_classes(s), few_of_one = measure_page(s);
    bury(s, 600); /* 120,000 dead */
    assert_int_equal(measure_classes(s), few);
    assert_int_equal(measure_page(s), few_of_one);
    assert_true(few < 100 * CLASSES);
    lq_store_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SK_TEST(page_of_classes_does_not_look_at_the_dead),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
