/* foreign_test.c - statements on a connection of the user's name each table as of its schema */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "store/sqlite/db.h"
#include "store/sqlite/sqlite_store.h"
#include "support/tmpdir.h"

static const char *const texts[] = {
#define TEXT(name, text) text,
    LS_SQLITE_STATEMENTS(TEXT)
#undef TEXT
};

static void expect_qualified(const char *text, const char *wanted)
{
    struct lb_buf out;
    lb_buf_init(&out);
    ls_sqlite_db_qualify(&out, text, "s");
    lb_buf_add_byte(&out, 0);
    assert_string_equal((const char *)out.p, wanted);
    lb_buf_fini(&out);
}

static void tables_are_named_and_nothing_else(void **state)
{
    (void)state;
    expect_qualified("SELECT job FROM job j JOIN run r ON r.job = j.seq",
                     "SELECT job FROM \"s\".job j JOIN \"s\".run r ON r.job = j.seq");
    expect_qualified(
        "INSERT INTO job (seq) VALUES ('FROM x') ON CONFLICT DO UPDATE SET seq = 1",
        "INSERT INTO \"s\".job (seq) VALUES ('FROM x') ON CONFLICT DO UPDATE SET seq = 1");
    expect_qualified("SELECT 1 FROM (SELECT 2 FROM lock)",
                     "SELECT 1 FROM (SELECT 2 FROM \"s\".lock)");
    expect_qualified("SELECT a FROM feed(?1)", "SELECT a FROM feed(?1)");
    expect_qualified("BEGIN IMMEDIATE", "BEGIN IMMEDIATE");
}

/*
 * All of sql.h, where main has tables of the same names with no column of ours: whatever is not named in full does not compile.
 * The feed is a function of our own connections; puts in a foreign transaction do without it.
 */
static void every_statement_compiles_beside_other_tables_of_the_same_names(void **state)
{
    (void)state;
    struct ts_tmpdir dir;
    char path[256], url[300];
    assert_true(ts_tmpdir_make(&dir));
    (void)snprintf(path, sizeof(path), "%s/jobs.db", dir.path);
    (void)snprintf(url, sizeof(url), "sqlite:%s", path);
    static const struct lq_store_ops *const stores[] = {&ls_sqlite_ops};
    struct lq_store_config config = {.url = url, .ns = "lade", .timeout_ms = 1000};
    struct lq_store *s;
    assert_int_equal(lq_store_open(&s, stores, 1, &config, NULL), 0);
    sqlite3 *h;
    sqlite3_stmt *st;
    assert_int_equal(sqlite3_open(":memory:", &h), SQLITE_OK);
    char *attach = sqlite3_mprintf("ATTACH %Q AS \"a \"\"b\"", path);
    assert_int_equal(sqlite3_exec(h, attach, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_free(attach);
    assert_int_equal(
        sqlite3_prepare_v2(h, "SELECT name FROM \"a \"\"b\".sqlite_master WHERE type = 'table'", -1,
                           &st, NULL),
        SQLITE_OK);
    int n = 0;
    while (sqlite3_step(st) == SQLITE_ROW) {
        char *decoy =
            sqlite3_mprintf("CREATE TABLE main.\"%w\" (not_ours)", sqlite3_column_text(st, 0));
        n += sqlite3_strnicmp((const char *)sqlite3_column_text(st, 0), "sqlite_", 7) != 0 &&
             sqlite3_exec(h, decoy, NULL, NULL, NULL) == SQLITE_OK;
        sqlite3_free(decoy);
    }
    (void)sqlite3_finalize(st);
    assert_true(n >= 9);
    for (size_t i = 0; i < LB_ARRAY_LEN(texts); i++) {
        struct lb_buf text;
        if (strstr(texts[i], "lade_feed("))
            continue;
        lb_buf_init(&text);
        ls_sqlite_db_qualify(&text, texts[i], "a \"b");
        int rc = sqlite3_prepare_v2(h, (const char *)text.p, (int)text.n, &st, NULL);
        if (rc != SQLITE_OK)
            print_message("%.*s: %s\n", (int)text.n, (const char *)text.p, sqlite3_errmsg(h));
        assert_int_equal(rc, SQLITE_OK);
        (void)sqlite3_finalize(st);
        lb_buf_fini(&text);
    }
    assert_int_equal(sqlite3_close(h), SQLITE_OK);
    lq_store_close(s);
    ts_tmpdir_remove(&dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_are_named_and_nothing_else),
        cmocka_unit_test(every_statement_compiles_beside_other_tables_of_the_same_names),
    };
    return cmocka_run_group_tests_name("sqlite/foreign", tests, NULL, NULL);
}
