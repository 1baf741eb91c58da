#include "store/sqlite/migrate.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault.h"
#include "queue/bound.h"
#include "queue/flow_store.h"
#include "queue/schedule_store.h"
#include "support/sqlite_kit.h"

/* Undoes schemas 13 and 12; of a file without gates. */
#define NO_HALL_OF_QUEUES                                \
    "DROP TRIGGER control_of_gone; DROP TABLE control; " \
    "ALTER TABLE queue DROP COLUMN hall; ALTER TABLE queue DROP COLUMN mates; "
#define NO_HALL       \
    NO_HALL_OF_QUEUES \
    "ALTER TABLE gate DROP COLUMN alone; ALTER TABLE gate DROP COLUMN calm; "
/* Undoes schema 11, of a file without workflows. */
#define NO_PARTS                                                                                 \
    "DROP TABLE flow_part; DROP TABLE flow_mark; DROP TABLE flow_result; "                       \
    "ALTER TABLE flow DROP COLUMN parts; ALTER TABLE flow DROP COLUMN results; "                 \
    "CREATE TABLE flow_step (num INTEGER PRIMARY KEY, queue TEXT NOT NULL, kind TEXT NOT NULL, " \
    "level INTEGER NOT NULL, policy INTEGER NOT NULL, whn INTEGER NOT NULL, "                    \
    "when_ms INTEGER NOT NULL, deps BLOB, next BLOB, body BLOB NOT NULL) STRICT; "               \
    "CREATE TABLE flow_node (num INTEGER PRIMARY KEY, state INTEGER NOT NULL, "                  \
    "missing INTEGER NOT NULL, result BLOB) STRICT; "
/* Undoes schemas 11, 10 and 9. */
#define NO_BYTES \
    NO_PARTS     \
    "DROP TABLE apart; ALTER TABLE queue DROP COLUMN max_bytes; ALTER TABLE queue DROP COLUMN bytes; "
/* And 8. */
#define NO_BOUNDS \
    NO_BYTES "ALTER TABLE queue DROP COLUMN max_jobs; ALTER TABLE queue DROP COLUMN on_full; "

static void write_file(const char *bytes, size_t n)
{
    int fd = open(sk.path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, n), n);
    assert_int_equal(close(fd), 0);
}

static void assert_refused(int code, const char *says)
{
    struct lq_store *s;
    assert_int_equal(sk_try_open(&s), -code);
    assert_non_null(strstr(sk.err.text, says));
    assert_non_null(strstr(sk.err.text, sk.path));
    assert_int_equal(sk_size("-wal") + sk_size("-bell"), 0);
}

static void a_new_file_is_marked_as_ours(void **state)
{
    (void)state;
    lq_store_close(sk_open());
    assert_int_equal(sk_ask("PRAGMA application_id"), LS_SQLITE_APPLICATION_ID);
    assert_int_equal(sk_ask("PRAGMA user_version"), LS_SQLITE_SCHEMA);
    assert_int_equal(sk_ask("PRAGMA page_size"), LS_SQLITE_PAGE);
}

/* Pages of 4096, as files had before: their log is gathered and folded like that of others. */
static void a_file_of_larger_pages_keeps_them(void **state)
{
    (void)state;
    sk_sql("PRAGMA page_size = 4096; PRAGMA journal_mode = WAL; VACUUM");
    struct lq_store *s = sk_open();
    assert_int_equal(ls_sqlite_of(s)->writer.db.page, 4096);
    for (int i = 0; i < 30; i++) {
        char prefix[16];
        (void)snprintf(prefix, sizeof(prefix), "%d-", i);
        sk_put(s, prefix, 1000);
    }
    assert_int_equal(sk_count(s, LADE_STATE_READY), 30000);
    assert_int_equal(sk_check(s), 0);
    lq_store_close(s);
    assert_int_equal(sk_ask("PRAGMA page_size"), 4096);
}

static void an_empty_file_becomes_ours(void **state)
{
    (void)state;
    write_file("", 0);
    struct lq_store *s = sk_open();
    sk_put(s, "a", 3);
    assert_int_equal(sk_count(s, LADE_STATE_READY), 3);
    lq_store_close(s);
}

static void what_was_put_is_there_after_a_reopen(void **state)
{
    (void)state;
    struct lq_store *s = sk_open();
    sk_put(s, "a", 100);
    lq_store_close(s);
    s = sk_open();
    assert_int_equal(sk_count(s, LADE_STATE_READY), 100);
    assert_int_equal(sk_check(s), 0);
    lq_store_close(s);
}

static void a_file_that_is_no_database_is_refused_and_left_alone(void **state)
{
    (void)state;
    static const char text[] = "Dear diary, this is no database but a text of more than hundred "
                               "bytes, so that nobody takes it for an empty or a torn one.";
    char after[sizeof(text)];
    write_file(text, sizeof(text));
    assert_refused(LADE_EFORMAT, "is not a database");
    int fd = open(sk.path, O_RDONLY | O_CLOEXEC);
    assert_int_equal(read(fd, after, sizeof(after)), sizeof(text));
    assert_int_equal(close(fd), 0);
    assert_memory_equal(after, text, sizeof(text));
}

static void a_database_of_something_else_is_refused_and_left_alone(void **state)
{
    (void)state;
    sk_sql("CREATE TABLE job (x); INSERT INTO job VALUES (7)");
    assert_refused(LADE_EFOREIGN, "something else");
    assert_int_equal(sk_ask("SELECT x FROM job"), 7);
    assert_int_equal(sk_ask("SELECT count(*) FROM sqlite_schema"), 1);
    assert_int_equal(sk_ask("SELECT 'delete' = journal_mode FROM pragma_journal_mode"), 1);
}

static void a_database_marked_by_another_program_is_refused(void **state)
{
    (void)state;
    sk_sql("PRAGMA application_id = 252006674");
    assert_refused(LADE_EFOREIGN, "something else");
}

/* A file with jobs in every state, as schema 4 had them, goes on as it was. */
static void a_file_from_before_keys_is_taken_over(void **state)
{
    (void)state;
    struct lq_store *s = sk_open();
    sk_put(s, "a", 20);
    lq_store_close(s);
    sk_sql(
        "DROP TABLE gate; DROP TABLE job_key; ALTER TABLE run DROP COLUMN key; "
        "ALTER TABLE queue DROP COLUMN gated; DROP TABLE schedule; DROP TABLE scheduler; DROP TABLE sheet; " NO_HALL_OF_QUEUES
            NO_BOUNDS "PRAGMA user_version = 4");
    s = sk_open();
    assert_int_equal(sk_ask("PRAGMA user_version"), LS_SQLITE_SCHEMA);
    assert_int_equal(sk_count(s, LADE_STATE_READY), 20);
    sk_put(s, "b", 5);
    assert_int_equal(sk_count(s, LADE_STATE_READY), 25);
    assert_int_equal(sk_check(s), 0);
    lq_store_close(s);
}

static void a_file_of_a_newer_version_is_refused(void **state)
{
    (void)state;
    lq_store_close(sk_open());
    sk_sql("PRAGMA user_version = 99");
    struct lq_store *s;
    assert_int_equal(sk_try_open(&s), -LADE_EFORMAT);
    assert_non_null(strstr(sk.err.text, "newer"));
    assert_non_null(strstr(sk.err.text, "99"));
}

static void a_damaged_file_is_told(void **state)
{
    (void)state;
    struct lq_store *s = sk_open();
    sk_put(s, "a", 2000);
    lq_store_close(s);
    int fd = open(sk.path, O_WRONLY | O_CLOEXEC);
    char junk[4096];
    memset(junk, 0xa5, sizeof(junk));
    for (off_t page = 1; page < 12; page++)
        assert_int_equal(pwrite(fd, junk, sizeof(junk), page * 4096), sizeof(junk));
    assert_int_equal(close(fd), 0);
    int rc = sk_try_open(&s);
    if (rc == 0) {
        rc = sk_try_put(s, "b", 1);
        lq_store_close(s);
    }
    assert_int_equal(rc, -LADE_EFORMAT);
    assert_non_null(strstr(sk.err.text, "damaged"));
}

extern const char ls_sqlite_schema_0001[], ls_sqlite_schema_0002[];

/* A file as schema 2 left it, with three jobs in `default`. */
static void a_file_of_schema_2_gets_the_tables_of_events_and_keeps_its_jobs(void **state)
{
    (void)state;
    sk_sql(ls_sqlite_schema_0001);
    sk_sql(ls_sqlite_schema_0002);
    sk_sql("INSERT INTO queue (num, name, next, ready, total_enqueued) VALUES (1, 'q', 10, 3, 3);"
           "INSERT INTO job (seq, queue, id, body) VALUES (1, 1, 'a', x'013461'), "
           "(2, 1, 'b', x'013462'), (3, 1, 'c', x'013463');"
           "INSERT INTO run VALUES (1, 3, 1, 1, 4, 7, 4, 1000, NULL, 0, 32);"
           "PRAGMA application_id = 1818322021; PRAGMA user_version = 2");
    struct lq_store *s = sk_open();
    assert_int_equal(sk_count(s, LADE_STATE_READY), 3);
    assert_int_equal(sk_check(s), 0);
    assert_int_equal(lq_events_set(s, "q", 10, &sk.err), 0);
    assert_int_equal(sk_check(s), 0);
    lq_store_close(s);
    assert_int_equal(sk_ask("SELECT count(*) FROM sheet"), 0);
    assert_int_equal(sk_ask("PRAGMA user_version"), LS_SQLITE_SCHEMA);
    assert_int_equal(sk_ask("SELECT events FROM queue"), 10);
    assert_int_equal(sk_ask("SELECT count(*) FROM event"), 1);
}

/* chasqui 57 */
static void an_event_that_cannot_be_written_fails_no_job(void **state)
{
    (void)state;
    struct lq_store *s = sk_open();
    assert_int_equal(lq_events_set(s, "q", 10, &sk.err), 0);
    sk_sql("CREATE TRIGGER spoiler BEFORE INSERT ON event BEGIN SELECT raise(ABORT, 'no'); END");
    sk_put(s, "a", 3);
    assert_int_equal(sk_count(s, LADE_STATE_READY), 3);
    assert_int_equal(sk_try_join(s, "w", 60000), 0);
    assert_int_equal(sk_try_work(s, "w", 2, LQ_TO_COMPLETED), 2);
    assert_int_equal(sk_try_work(s, "w", 1, LQ_TO_DEAD), 1);
    assert_int_equal(sk_count(s, LADE_STATE_COMPLETED), 2);
    assert_int_equal(sk_count(s, LADE_STATE_DEAD), 1);
    assert_int_equal(sk_check(s), 0);
    sk_sql("DROP TRIGGER spoiler");
    sk_put(s, "b", 3);
    assert_int_equal(sk_ask("SELECT sum(n) FROM event"), 3);
    assert_int_equal(sk_check(s), 0);
    lq_store_close(s);
}

static int open_and_put(const char *arg)
{
    struct lq_store *s;
    if (sk_try_open(&s) != 0 || sk_try_put(s, arg, 10) != 0) {
        (void)fprintf(stderr, "child: %s\n", sk.err.text);
        return 1;
    }
    lq_store_close(s);
    return 0;
}

static void several_processes_may_make_the_file_at_once(void **state)
{
    (void)state;
    static char prefix[4][2] = {"a", "b", "c", "d"};
    for (int round = 0; round < 5; round++) {
        int pid[4];
        for (int i = 0; i < 4; i++)
            pid[i] = sk_fork(open_and_put, prefix[i]);
        for (int i = 0; i < 4; i++)
            assert_int_equal(sk_wait_child(pid[i]), 0);
        struct lq_store *s = sk_open();
        assert_int_equal(sk_count(s, LADE_STATE_READY), 40);
        lq_store_close(s);
        assert_int_equal(unlink(sk.path), 0);
    }
}

/* A file as schema 2 left it: three dead jobs, two of them in one stretch, one ready, and a key held until done for an hour. */
static void make_schema_2(void)
{
    char mark[96];
    static const char data[] =
        "INSERT INTO queue (num, name, next, ready, dead, total_enqueued) VALUES (1, 'q', 9, 1, 3, 4);"
        "INSERT INTO job (seq, queue, id, body) VALUES (1, 1, 'a', x'0134'), (2, 1, 'b', x'0134'),"
        "(3, 1, 'c', x'0134'), (4, 1, 'd', x'0134');"
        "INSERT INTO run VALUES (1, 2, 1, 5, 0, 1, 4, 1000, NULL, 0, 120),"
        "(3, 1, 1, 1, 4, 3, 4, 2000, NULL, 0, 32), (4, 1, 1, 5, 0, 4, 4, 3000, NULL, 0, 107);"
        "INSERT INTO lock (queue, key, job, id, until, expires) VALUES (1, x'6b', 3, 'c', 0, 5000),"
        "(1, x'6c', 3, 'c', 2, 5000)";
    (void)snprintf(mark, sizeof(mark), "PRAGMA application_id = %d; PRAGMA user_version = 2",
                   LS_SQLITE_APPLICATION_ID);
    sk_sql(ls_sqlite_schema_0001);
    sk_sql(ls_sqlite_schema_0002);
    sk_sql(data);
    sk_sql(mark);
}

static void the_dead_of_schema_2_are_classed_and_its_keys_do_not_run_out(void **state)
{
    (void)state;
    make_schema_2();
    struct lq_store *s = sk_open();
    assert_int_equal(sk_count(s, LADE_STATE_DEAD), 3);
    assert_int_equal(sk_check(s), 0);
    lq_store_close(s);
    assert_int_equal(sk_ask("PRAGMA user_version"), LS_SQLITE_SCHEMA);
    assert_int_equal(sk_ask("SELECT n FROM dead_class WHERE name = 'other'"), 3);
    assert_int_equal(sk_ask("SELECT first * 10000 + last FROM dead_class"), 10003000);
    assert_int_equal(sk_ask("SELECT sum(at) FROM death"), 5000);
    assert_int_equal(sk_ask("SELECT expires FROM lock WHERE until = 0"), INT64_MAX);
    assert_int_equal(sk_ask("SELECT expires FROM lock WHERE until = 2"), 5000);
}

/* A file of schema 7 gets the bounds of queues, none set, and can be given one. */
static void a_file_from_before_bounds_is_taken_over(void **state)
{
    (void)state;
    struct lq_bound b = {.max_jobs = 9, .block = true};
    struct lq_store *s = sk_open();
    sk_put(s, "a", 10);
    lq_store_close(s);
    sk_sql(NO_HALL NO_BOUNDS "PRAGMA user_version = 7");
    s = sk_open();
    assert_int_equal(sk_ask("PRAGMA user_version"), LS_SQLITE_SCHEMA);
    assert_int_equal(s->ops->bounds->get(s, "q", &b, &sk.err), 0);
    assert_int_equal(b.max_jobs, 0);
    sk_put(s, "b", 1);
    assert_int_equal(
        lq_bound_set(s, "q", &(struct lq_bound){.max_jobs = 11, .block = true}, &sk.err), 0);
    struct lq_put more = {
        .queue = "q", .id = lb_slice_str("c"), .body = lb_slice_str("\0014"), .level = 4};
    assert_int_equal(lq_put(s, &more, 1, &sk.err), LADE_FULL);
    assert_int_equal(sk_check(s), 0);
    lq_store_close(s);
    assert_int_equal(sk_ask("SELECT max_jobs * 10 + on_full FROM queue"), 111);
}

/* A file of schema 5, with a job and a workflow in it, gets the tables of schedules and keeps what it has. */
static void a_file_of_schema_5_is_brought_up_and_keeps_its_jobs(void **state)
{
    (void)state;
    struct lq_store *s = sk_open();
    sk_put(s, "a", 10);
    lq_store_close(s);
    sk_sql("DROP TABLE schedule; DROP TABLE scheduler; DROP TABLE sheet; " NO_HALL NO_BOUNDS
           "PRAGMA user_version = 5;"
           "INSERT INTO flow VALUES (1, 'f', '', 0, 0, 0, 0, 0, 0, 5, 0)");
    s = sk_open();
    assert_int_equal(sk_ask("PRAGMA user_version"), LS_SQLITE_SCHEMA);
    assert_int_equal(sk_ask("SELECT count(*) FROM schedule"), 0);
    assert_int_equal(sk_ask("SELECT count(*) FROM flow"), 1);
    assert_int_equal(sk_count(s, LADE_STATE_READY), 10);
    struct lq_schedule_put it = {
        .id = lb_slice_str("a"), .state = LADE_SCHEDULE_ACTIVE, .due_ms = 1};
    it.spec = it.memo = lb_slice_str("x");
    assert_int_equal(lq_schedule_put(s, &it, &sk.err), 0);
    lq_store_close(s);
}

extern const char ls_sqlite_schema_0003[], ls_sqlite_schema_0004[], ls_sqlite_schema_0005[],
    ls_sqlite_schema_0006[], ls_sqlite_schema_0007[], ls_sqlite_schema_0008[];

static void make_schema_8(void)
{
    const char *const steps[] = {
        ls_sqlite_schema_0001, ls_sqlite_schema_0002, ls_sqlite_schema_0003, ls_sqlite_schema_0004,
        ls_sqlite_schema_0005, ls_sqlite_schema_0006, ls_sqlite_schema_0007, ls_sqlite_schema_0008};
    for (size_t i = 0; i < LB_ARRAY_LEN(steps); i++)
        sk_sql(steps[i]);
    sk_sql("PRAGMA application_id = 1818322021; PRAGMA user_version = 8");
}

static void finish_job(struct lq_store *s, const char *id)
{
    struct lq_leased_vec v = {0};
    const char *queue[] = {"q"};
    struct lq_take take = {"w", {queue, 1}, 1, false, false};
    lb_arena_init(&v.arena);
    assert_int_equal(lq_settle_take(s, NULL, 0, &take, &v, &sk.err), 0);
    assert_int_equal(v.n, 1);
    assert_true(lb_slice_eq(lb_slice_of(v.job[0].id), lb_slice_str(id)));
    struct lq_settle it = {.queue = "q",
                           .id = lb_slice_str(id),
                           .fence = v.job[0].fence,
                           .to = LQ_TO_COMPLETED,
                           .reason = LQ_REASON_NONE,
                           .result = lb_slice_str("new")};
    assert_int_equal(lq_settle_take(s, &it, 1, NULL, NULL, &sk.err), 0);
    assert_int_equal(it.outcome, 0);
    lb_arena_fini(&v.arena);
}

static void assert_inputs(struct lq_store *s, uint32_t node, size_t n, const char *first,
                          const char *second)
{
    struct lb_arena a;
    lb_arena_init(&a);
    struct lq_input_vec in = {.arena = &a};
    assert_int_equal(s->ops->flow_inputs(s, lb_slice_str("f"), node, 0, 10, &in, &sk.err), 0);
    assert_int_equal(in.n, n);
    assert_true(lb_slice_eq(in.input[0].result, lb_slice_str(first)));
    if (n > 1)
        assert_true(lb_slice_eq(in.input[1].result, lb_slice_str(second)));
    lb_arena_fini(&a);
}

/*
 * A workflow of schema 8 in the midst of it: 0, 1 -> 2 -> 3, and on_failure 4; 0 has completed with a result, 1 is ready. It goes on
 * where it was, with the old result and the new ones.
 */
static void a_workflow_of_schema_8_goes_on_where_it_was(void **state)
{
    (void)state;
    make_schema_8();
    sk_sql("INSERT INTO queue (num, name, next, ready, completed, total_enqueued, "
           "total_completed) VALUES (1, 'q', 10, 1, 1, 2, 1);"
           "INSERT INTO job (seq, queue, id, body, result) VALUES "
           "(1, 1, 'f~0', x'0134', x'6f6c64'), (2, 1, 'f~1', x'0134', NULL);"
           "INSERT INTO run VALUES (1, 1, 1, 4, 0, 7, 4, 1000, NULL, 0, 32, 0),"
           "(2, 1, 1, 1, 4, 8, 4, 1000, NULL, 0, 32, 0);"
           "INSERT INTO flow VALUES (1, 'f', 'name', 0, 4, 5, 1, 0, 1, 5, 0);"
           "INSERT INTO flow_step VALUES"
           "(16384, 'q', 'k0', 4, 1, 0, 0, NULL, x'02000000', x'0134'),"
           "(16385, 'q', 'k1', 4, 1, 0, 0, NULL, x'02000000', x'0134'),"
           "(16386, 'q', 'k2', 4, 2, 0, 0, x'0000000001000000', x'03000000', x'013461'),"
           "(16387, 'q', 'k3', 3, 1, 0, 0, x'02000000', NULL, x'013462'),"
           "(16388, 'q', 'k4', 4, 1, 0, 0, NULL, NULL, x'013463');"
           "INSERT INTO flow_node VALUES (16384, 2, 0, x'6f6c64'), (16385, 1, 0, NULL),"
           "(16386, 0, 1, NULL), (16387, 0, 1, NULL), (16388, 0, 0, NULL)");
    struct lq_store *s = sk_open();
    assert_int_equal(sk_check(s), 0);
    assert_int_equal(sk_ask("PRAGMA user_version"), LS_SQLITE_SCHEMA);
    assert_int_equal(sk_ask("SELECT count(*) FROM sqlite_schema WHERE name IN ('flow_step', "
                            "'flow_node')"),
                     0);
    struct lq_flow_row_vec rows = {0};
    lb_arena_init(&rows.arena);
    assert_int_equal(s->ops->flow_get(s, lb_slice_str("f"), &rows, &sk.err), 0);
    assert_int_equal(rows.row[0].n, 5);
    assert_true(lb_slice_eq(rows.row[0].node[2].kind, lb_slice_str("k2")));
    assert_int_equal(rows.row[0].node[2].policy, LADE_FLOW_CONTINUE);
    assert_int_equal(rows.row[0].node[2].n_deps, 2);
    lb_arena_fini(&rows.arena);
    assert_int_equal(sk_try_join(s, "w", 60000), 0);
    finish_job(s, "f~1");
    assert_inputs(s, 2, 2, "old", "new");
    finish_job(s, "f~2");
    assert_inputs(s, 3, 1, "new", NULL);
    finish_job(s, "f~3");
    assert_int_equal(sk_check(s), 0);
    lq_store_close(s);
    assert_int_equal(sk_ask("SELECT state FROM flow"), LADE_FLOW_COMPLETED);
}

/* 300 nodes in a row, more than one part has, some of them large. */
static void make_long_workflow(void)
{
    make_schema_8();
    sk_sql("INSERT INTO queue (num, name, next, ready, total_enqueued) VALUES (1, 'q', 10, 1, 1);"
           "INSERT INTO job (seq, queue, id, body) VALUES (1, 1, 'f~0', x'0134');"
           "INSERT INTO run VALUES (1, 1, 1, 1, 4, 8, 4, 1000, NULL, 0, 32, 0);"
           "INSERT INTO flow VALUES (1, 'f', '', 0, 300, 300, 300, 0, 0, 5, 0);"
           "WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 299) "
           "INSERT INTO flow_step SELECT 16384 + i, 'q', 'k', 4, 1, 0, 0, NULL, NULL, "
           "CASE i % 20 WHEN 7 THEN CAST(x'0134' || zeroblob(20000) AS BLOB) ELSE x'0134' END "
           "FROM n;"
           "INSERT INTO flow_node SELECT num, num = 16384, 0, NULL FROM flow_step");
    sk_sql("UPDATE flow_node SET state = 5 WHERE num > 16384; UPDATE flow SET open = 1");
}

/* The first step, which is all that is left of it, ends it. */
static void finish_long_workflow(void)
{
    struct lq_store *s = sk_open();
    assert_int_equal(sk_check(s), 0);
    assert_int_equal(sk_try_join(s, "w", 60000), 0);
    finish_job(s, "f~0");
    assert_int_equal(sk_check(s), 0);
    lq_store_close(s);
    assert_true(sk_ask("SELECT parts FROM flow") > 5);
    assert_int_equal(sk_ask("SELECT parts FROM flow"), sk_ask("SELECT count(*) FROM flow_part"));
    assert_int_equal(sk_ask("SELECT state FROM flow"), LADE_FLOW_COMPLETED);
}

static void a_long_workflow_of_schema_8_comes_in_several_parts(void **state)
{
    (void)state;
    make_long_workflow();
    finish_long_workflow();
}

#ifdef LADE_FAULTS
static int open_until(const char *fault)
{
    lb_fault_arm(fault);
    lq_store_close(sk_open());
    return 0;
}

/* Killed at any part of the conversion, the file is what it was, and the next open begins anew. */
static void a_conversion_that_is_killed_has_changed_nothing(void **state)
{
    (void)state;
    int rc = -SIGKILL, kills = 0;
    make_long_workflow();
    for (; rc == -SIGKILL; kills++) {
        char fault[40];
        assert_int_equal(sk_ask("PRAGMA user_version"), 8);
        assert_int_equal(sk_ask("SELECT count(*) FROM flow_step NATURAL JOIN flow_node"), 300);
        (void)snprintf(fault, sizeof(fault), "sqlite.flow.convert:%d:kill", kills + 1);
        rc = sk_wait_child(sk_fork(open_until, fault));
    }
    assert_int_equal(rc, 0);
    assert_int_equal(kills - 1, sk_ask("SELECT parts FROM flow"));
    finish_long_workflow();
}
#endif

/* Jobs of keys that wait in an older file go on standing by themselves; others come to company when the first trim saw no limit. */
static void a_file_from_before_company_is_taken_over(void **state)
{
    (void)state;
    struct lq_put put[3];
    size_t n = 0;
    const char *queue = "q";
    for (size_t i = 0; i < 3; i++) {
        static const char *const ids[] = {"a", "b", "c"};
        put[i] = (struct lq_put){.queue = queue,
                                 .id = lb_slice_str(ids[i]),
                                 .body = lb_slice_str("\0014"),
                                 .level = 4,
                                 .key = lb_slice_str(i ? "B" : "A")};
    }
    struct lq_store *s = sk_open();
    assert_int_equal(lq_put(s, put, 3, &sk.err), 0);
    lq_store_close(s);
    sk_sql(NO_HALL NO_BYTES "PRAGMA user_version = 8");
    s = sk_open();
    assert_int_equal(sk_ask("PRAGMA user_version"), LS_SQLITE_SCHEMA);
    assert_int_equal(sk_ask("SELECT alone FROM gate"), 3);
    assert_int_equal(sk_ask("SELECT calm FROM gate"), INT64_MAX);
    assert_int_equal(sk_check(s), 0);
    assert_int_equal(s->ops->trim(s, (struct lq_lanes){&queue, 1}, 10, &n, &sk.err), 0);
    assert_int_equal(sk_ask("SELECT calm FROM gate"), 0);
    assert_int_equal(sk_try_join(s, "w", 60000), 0);
    assert_int_equal(sk_try_work(s, "w", 10, LQ_TO_COMPLETED), 3);
    assert_int_equal(sk_check(s), 0);
    lq_store_close(s);
}

/* From the first schema on: each step after the other makes the same tables as a new file has. */
static void each_schema_leads_to_the_same_tables(void **state)
{
    (void)state;
    static const char objects[] =
        "SELECT count(*) FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%'";
    lq_store_close(sk_open());
    int64_t n = sk_ask(objects);
    assert_int_equal(unlink(sk.path), 0);
    sk_sql(ls_sqlite_schema_0001);
    sk_sql("PRAGMA application_id = 1818322021; PRAGMA user_version = 1");
    lq_store_close(sk_open());
    assert_int_equal(sk_ask(objects), n);
    assert_int_equal(unlink(sk.path), 0);
    sk_sql(ls_sqlite_schema_0001);
    sk_sql(ls_sqlite_schema_0002);
    sk_sql("PRAGMA application_id = 1818322021; PRAGMA user_version = 2");
    struct lq_store *s = sk_open();
    sk_put(s, "a", 3);
    assert_int_equal(sk_check(s), 0);
    lq_store_close(s);
    assert_int_equal(sk_ask(objects), n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SK_TEST(a_new_file_is_marked_as_ours),
        SK_TEST(a_file_of_larger_pages_keeps_them),
        SK_TEST(an_empty_file_becomes_ours),
        SK_TEST(what_was_put_is_there_after_a_reopen),
        SK_TEST(a_file_that_is_no_database_is_refused_and_left_alone),
        SK_TEST(a_database_of_something_else_is_refused_and_left_alone),
        SK_TEST(a_database_marked_by_another_program_is_refused),
        SK_TEST(a_file_from_before_keys_is_taken_over),
        SK_TEST(a_file_of_a_newer_version_is_refused),
        SK_TEST(a_damaged_file_is_told),
        SK_TEST(the_dead_of_schema_2_are_classed_and_its_keys_do_not_run_out),
        SK_TEST(a_file_of_schema_2_gets_the_tables_of_events_and_keeps_its_jobs),
        SK_TEST(an_event_that_cannot_be_written_fails_no_job),
        SK_TEST(several_processes_may_make_the_file_at_once),
        SK_TEST(a_file_from_before_bounds_is_taken_over),
        SK_TEST(a_file_of_schema_5_is_brought_up_and_keeps_its_jobs),
        SK_TEST(a_workflow_of_schema_8_goes_on_where_it_was),
        SK_TEST(a_long_workflow_of_schema_8_comes_in_several_parts),
#ifdef LADE_FAULTS
        SK_TEST(a_conversion_that_is_killed_has_changed_nothing),
#endif
        SK_TEST(a_file_from_before_company_is_taken_over),
        SK_TEST(each_schema_leads_to_the_same_tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
