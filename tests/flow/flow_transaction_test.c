/*
 * flow_transaction_test.c - jobs in transactions of the user's own (<lade/sqlite.h>): SQLite alone
 *
 * The last tests kill: a child process that shares the file and nothing else does its step and is killed by SIGKILL at the Kth
 * fault point, for every K until a step ends alive; rows and jobs must then agree.
 */
#include <sqlite3.h>

#include "support/rig_test.h"

#include <stdatomic.h>
#include <sys/wait.h>

#include <lade/sqlite.h>

#include "queue/client.h"
#include "queue/store.h"

#define NS(ms) ((ms)*LADE_MILLISECOND)

static const char *file_of(const struct ts_fix *f)
{
    return strchr(f->r.direct, ':') + 1;
}

static sqlite3 *open_db(const char *path)
{
    sqlite3 *db = NULL;
    LB_CHECK(sqlite3_open(path, &db) == SQLITE_OK);
    LB_CHECK(sqlite3_busy_timeout(db, 30000) == SQLITE_OK);
    return db;
}

static bool sql(sqlite3 *db, const char *text)
{
    char *error = NULL;
    int rc = sqlite3_exec(db, text, NULL, NULL, &error);
    if (rc != SQLITE_OK)
        (void)fprintf(stderr, "%s: %s\n", text, error);
    sqlite3_free(error);
    return rc == SQLITE_OK;
}

static int64_t number(sqlite3 *db, const char *text)
{
    sqlite3_stmt *st = NULL;
    int64_t n = -1;
    if (sqlite3_prepare_v2(db, text, -1, &st, NULL) == SQLITE_OK && sqlite3_step(st) == SQLITE_ROW)
        n = sqlite3_column_int64(st, 0);
    (void)sqlite3_finalize(st);
    return n;
}

/* A path beside the queue's file: file_of(f) with a suffix, in the fixture's directory. */
static char *beside(const struct ts_fix *f, const char *name, char *out, size_t size)
{
    return ts_rig_path(&f->r, name, out, size);
}

/* enqueue ---------------------------------------------------------------------------------------------------------- */

static void job_is_there_when_the_rows_are(void **state)
{
    struct ts_fix *f = *state;
    sqlite3 *db = open_db(file_of(f));
    assert_true(sql(db, "CREATE TABLE orders (n)"));
    lade_err err;
    for (int i = 0; i < 4; i++) {
        char id[16];
        (void)snprintf(id, sizeof(id), "o-%d", i);
        lade_job_spec spec = {.kind = "job", .id = id, .in = i == 3 ? LADE_HOUR : 0};
        lade_id made;
        assert_true(sql(db, "BEGIN IMMEDIATE; INSERT INTO orders VALUES (1)"));
        assert_int_equal(lade_sqlite_enqueue(f->q, db, NULL, &spec, &made, &err), 0);
        assert_string_equal(made.text, id);
        assert_int_equal(ts_rig_state(f->q, id), -1); /* nobody sees it before the commit */
        assert_true(sql(db, i % 2 ? "COMMIT" : "ROLLBACK"));
        lade_sqlite_committed(f->q, db);
    }
    assert_int_equal(number(db, "SELECT count(*) FROM orders"), 2);
    assert_int_equal(ts_rig_state(f->q, "o-0"), -1);
    assert_int_equal(ts_rig_state(f->q, "o-1"), LADE_STATE_READY);
    assert_int_equal(ts_rig_state(f->q, "o-3"), LADE_STATE_SCHEDULED);
    lade_job_spec again = {.kind = "job", .id = "o-1"};
    assert_int_equal(lade_sqlite_enqueue(f->q, db, "main", &again, NULL, &err), LADE_DUPLICATE);
    lade_job_spec alone = {.kind = "job", .queue = "second", .unique = {.key = LADE_STR("k")}};
    lade_id first, second;
    assert_int_equal(lade_sqlite_enqueue(f->q, db, NULL, &alone, &first, &err), 0);
    assert_int_equal(lade_sqlite_enqueue(f->q, db, NULL, &alone, &second, &err), LADE_DUPLICATE);
    assert_string_equal(first.text, second.text);
    assert_int_equal(ts_rig_state(f->q, first.text), LADE_STATE_READY);
    assert_int_equal(ts_rig_count(f->q, LADE_STATE_READY), 2);
    assert_inv(f, TS_INV_RUNNING);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* The user's main file has tables of lade's names, of other shapes. */
static void attached_file_is_named_in_full(void **state)
{
    struct ts_fix *f = *state;
    char path[512], text[1024];
    sqlite3 *db = open_db(beside(f, "app.db", path, sizeof(path)));
    assert_true(sql(db,
                    "CREATE TABLE job (mine); CREATE TABLE run (mine); CREATE TABLE queue (mine);"
                    "CREATE TABLE lock (mine); CREATE TABLE worker (mine)"));
    (void)snprintf(text, sizeof(text), "ATTACH '%s' AS \"my \"\"jobs\"", file_of(f));
    assert_true(sql(db, text));
    lade_err err;
    lade_job_spec spec = {.kind = "job", .id = "a", .unique = {.key = LADE_STR("k")}};
    assert_true(sql(db, "BEGIN IMMEDIATE"));
    assert_int_equal(lade_sqlite_enqueue(f->q, db, "my \"jobs", &spec, NULL, &err), 0);
    assert_true(sql(db, "INSERT INTO job VALUES (1); COMMIT"));
    assert_int_equal(ts_rig_state(f->q, "a"), LADE_STATE_READY);
    assert_int_equal(number(db, "SELECT count(*) FROM main.job"), 1);
    assert_int_equal(lade_sqlite_enqueue(f->q, db, NULL, &spec, NULL, &err), -LADE_EINVAL);
    assert_non_null(strstr(err.text, "app.db"));
    assert_int_equal(lade_sqlite_enqueue(f->q, db, "nope", &spec, NULL, &err), -LADE_EINVAL);
    assert_non_null(strstr(err.text, "nope"));
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void what_cannot_be_is_refused_and_leaves_the_transaction(void **state)
{
    struct ts_fix *f = *state;
    sqlite3 *db = open_db(file_of(f));
    lade_err err;
    lade_job_spec bad = {.kind = "a b"}, good = {.kind = "job", .id = "good"};
    assert_true(sql(db, "CREATE TABLE orders (n); BEGIN IMMEDIATE; INSERT INTO orders VALUES (1)"));
    assert_int_equal(lade_sqlite_enqueue(f->q, db, NULL, &bad, NULL, &err), -LADE_EINVAL);
    assert_int_equal(lade_sqlite_enqueue(NULL, db, NULL, &good, NULL, &err), -LADE_EINVAL);
    assert_int_equal(lade_sqlite_enqueue(f->q, NULL, NULL, &good, NULL, &err), -LADE_EINVAL);
    assert_int_equal(lade_sqlite_enqueue(f->q, db, NULL, NULL, NULL, &err), -LADE_EINVAL);
    assert_int_equal(lade_sqlite_complete(NULL, db, NULL, &err), -LADE_EINVAL);
    assert_int_equal(lade_sqlite_effect(NULL, db, NULL, "k", LADE_STR(""), &err), -LADE_EINVAL);
    lade_sqlite_committed(NULL, db);
    lade_sqlite_committed(f->q, NULL);
    lade *memory;
    assert_int_equal(lade_open(&memory, "memory:", NULL, NULL), 0);
    assert_int_equal(lade_sqlite_enqueue(memory, db, NULL, &good, NULL, &err), -LADE_EINVAL);
    lade_close(memory);
    assert_int_equal(lade_sqlite_enqueue(f->q, db, NULL, &good, NULL, &err), 0);
    assert_true(sql(db, "COMMIT"));
    assert_int_equal(number(db, "SELECT count(*) FROM orders"), 1);
    assert_int_equal(ts_rig_state(f->q, "good"), LADE_STATE_READY);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* A transaction that began to read before somebody else wrote cannot write any more; the text says how to begin. */
static void old_snapshot_is_busy_and_told(void **state)
{
    struct ts_fix *f = *state;
    sqlite3 *db = open_db(file_of(f));
    lade_err err;
    lade_job_spec spec = {.kind = "job", .id = "late"}, other = {.kind = "job", .id = "other"};
    assert_true(sql(db, "BEGIN"));
    assert_int_equal(number(db, "SELECT count(*) FROM job"), 0);
    assert_int_equal(lade_enqueue(f->q, &other, NULL, NULL), 0);
    assert_int_equal(lade_sqlite_enqueue(f->q, db, NULL, &spec, NULL, &err), -LADE_EBUSY);
    assert_non_null(strstr(err.text, "BEGIN IMMEDIATE"));
    assert_true(sql(db, "ROLLBACK; BEGIN IMMEDIATE"));
    assert_int_equal(lade_sqlite_enqueue(f->q, db, NULL, &spec, NULL, &err), 0);
    assert_true(sql(db, "COMMIT"));
    assert_int_equal(ts_rig_state(f->q, "late"), LADE_STATE_READY);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static _Atomic int n_runs;

static lade_outcome count_run(lade_job *job, void *ctx)
{
    (void)job;
    (void)ctx;
    n_runs++;
    return LADE_OK;
}

static void start_worker(struct ts_fix *f, lade_handler fn, void *ctx,
                         const lade_worker_config *config)
{
    n_runs = 0;
    ts_local_open(&f->local, &f->r, f->q, config);
    assert_int_equal(lade_worker_handle(f->local.w, "job", fn, ctx), 0);
    ts_local_run(&f->local);
}

/* committed() wakes at once; without it the job is found when the worker renews. */
static void idle_workers_are_woken_or_look_when_they_renew(void **state)
{
    struct ts_fix *f = *state;
    sqlite3 *db = open_db(file_of(f));
    lade_job_spec spec = {.kind = "job"};
    start_worker(f, count_run, NULL, &(lade_worker_config){.lease = 2 * LADE_SECOND});
    for (int i = 0; i < 6; i++) {
        assert_true(sql(db, "BEGIN IMMEDIATE"));
        assert_int_equal(lade_sqlite_enqueue(f->q, db, NULL, &spec, NULL, NULL), 0);
        assert_true(sql(db, "COMMIT"));
        if (i < 4)
            lade_sqlite_committed(f->q, db);
        assert_true(TS_UNTIL(TS_SOON, n_runs == i + 1));
    }
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* complete and effect ---------------------------------------------------------------------------------------------- */

static struct {
    _Atomic int rc, runs;
    _Atomic bool rollback;
    lade_outcome returns;
    const char *path;
} tx;

static lade_outcome complete_in_tx(lade_job *job, void *ctx)
{
    (void)ctx;
    sqlite3 *db = open_db(tx.path);
    lade_err err = {0};
    bool ok = sql(db, "BEGIN IMMEDIATE; INSERT INTO done VALUES (1)");
    ok = ok && lade_job_result(job, LADE_STR("result")) == 0;
    tx.rc = lade_sqlite_complete(job, db, NULL, &err);
    bool rollback = tx.rollback;
    tx.rollback = false;
    ok = sql(db, rollback ? "ROLLBACK" : "COMMIT") && ok;
    lade_sqlite_committed((lade *)ctx, db);
    (void)sqlite3_close(db);
    lade_job_retry_in(job, 0);
    tx.runs++;
    return ok ? tx.returns : LADE_DEAD;
}

static void set_up_tx(struct ts_fix *f, lade_outcome returns, bool rollback)
{
    sqlite3 *db = open_db(file_of(f));
    assert_true(sql(db, "CREATE TABLE done (n)"));
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    tx.rc = -1;
    tx.runs = 0;
    tx.path = file_of(f);
    tx.returns = returns;
    tx.rollback = rollback;
}

static int64_t rows_done(const struct ts_fix *f)
{
    sqlite3 *db = open_db(file_of(f));
    int64_t n = number(db, "SELECT count(*) FROM done");
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    return n;
}

static void completion_and_rows_are_one_commit(void **state)
{
    struct ts_fix *f = *state;
    set_up_tx(f, LADE_OK, false);
    start_worker(f, complete_in_tx, f->q, NULL);
    lade_job_spec spec = {.kind = "job", .id = "a", .unique = {.key = LADE_STR("k")}};
    assert_int_equal(lade_enqueue(f->q, &spec, NULL, NULL), 0);
    assert_true(ts_fix_wait_state(f, "a", LADE_STATE_COMPLETED));
    assert_true(TS_UNTIL(TS_SOON, ts_local_stats(&f->local).completed == 1));
    assert_int_equal(ts_local_stats(&f->local).lost, 0);
    assert_int_equal(tx.rc, 0);
    assert_int_equal(rows_done(f), 1);
    lade_job_view *v;
    assert_int_equal(lade_job_get(f->q, NULL, "a", &v, NULL), 0);
    assert_int_equal(v->result.size, 6);
    lade_job_view_free(v);
    spec.id = "b";
    assert_int_equal(lade_enqueue(f->q, &spec, NULL, NULL), 0); /* its key is free */
    assert_true(ts_fix_wait_state(f, "b", LADE_STATE_COMPLETED));
    assert_int_equal(ts_local_stop(&f->local), 0);
    assert_inv(f, TS_INV_RUNNING);
}

/* Rolled back, it has not been: the handler's word counts, and the next run does both. */
static void completion_that_is_rolled_back_has_not_been(void **state)
{
    struct ts_fix *f = *state;
    set_up_tx(f, LADE_RETRY, true);
    start_worker(f, complete_in_tx, f->q, NULL);
    lade_job_spec spec = {.kind = "job", .id = "a"};
    assert_int_equal(lade_enqueue(f->q, &spec, NULL, NULL), 0);
    assert_true(ts_fix_wait_state(f, "a", LADE_STATE_COMPLETED));
    assert_true(TS_UNTIL(TS_SOON, tx.runs == 2));
    assert_int_equal(rows_done(f), 1);
    assert_true(TS_UNTIL(TS_SOON, ts_local_stats(&f->local).completed == 1));
    assert_int_equal(ts_local_stats(&f->local).retried, 1);
    assert_int_equal(ts_local_stats(&f->local).lost, 0);
}

/* A step of a workflow that is completed so hands on to the next, which writes its row in a transaction of its own. */
static void completed_step_sets_the_next_going(void **state)
{
    struct ts_fix *f = *state;
    set_up_tx(f, LADE_OK, false);
    start_worker(f, complete_in_tx, f->q, NULL);
    lade_job_spec spec = {.kind = "job"};
    lade_flow_step steps[] = {lade_flow_job(&spec), lade_flow_job(&spec), lade_flow_job(&spec)};
    lade_id id;
    assert_int_equal(
        lade_flow_enqueue(f->q, &(lade_flow_spec){.root = lade_flow_chain(steps, 3)}, &id, NULL),
        0);
    lade_flow_view *v = NULL;
    int is = -1;
    int64_t deadline = lb_deadline_in(TS_SOON);
    while (is != LADE_FLOW_COMPLETED && lb_clock_mono() < deadline) {
        assert_int_equal(lade_flow_get(f->q, id.text, &v, NULL), 0);
        is = v->state;
        lade_flow_view_free(v);
        ts_nap_ms(1);
    }
    assert_int_equal(is, LADE_FLOW_COMPLETED);
    assert_int_equal(rows_done(f), 3);
}

static lade_outcome effect_in_tx(lade_job *job, void *ctx)
{
    (void)ctx;
    lade_err err = {0};
    if (lade_effect_done(job, "row", NULL)) {
        tx.runs++;
        return LADE_OK;
    }
    sqlite3 *db = open_db(tx.path);
    bool ok = sql(db, "BEGIN IMMEDIATE; INSERT INTO done VALUES (1)");
    tx.rc = lade_sqlite_effect(job, db, NULL, "row", LADE_STR("v"), &err);
    bool rollback = tx.rollback;
    tx.rollback = false;
    ok = sql(db, rollback ? "ROLLBACK" : "COMMIT") && ok;
    (void)sqlite3_close(db);
    if (!rollback && lade_effect(job, "row", LADE_STR("w"), &err) != LADE_DUPLICATE)
        ok = false; /* what was committed is seen by the store's own way, too */
    lade_job_retry_in(job, 0);
    tx.runs++;
    return ok ? LADE_RETRY : LADE_DEAD;
}

/* First rolled back, then committed, then seen: one row, one effect, three runs in the history. */
static void effect_and_rows_are_one_commit(void **state)
{
    struct ts_fix *f = *state;
    set_up_tx(f, LADE_OK, true);
    start_worker(f, effect_in_tx, f->q, NULL);
    lade_job_spec spec = {.kind = "job", .id = "a"};
    assert_int_equal(lade_enqueue(f->q, &spec, NULL, NULL), 0);
    assert_true(ts_fix_wait_state(f, "a", LADE_STATE_COMPLETED));
    assert_int_equal(tx.runs, 3);
    assert_int_equal(rows_done(f), 1);
    lade_job_view *v;
    assert_int_equal(lade_job_get(f->q, NULL, "a", &v, NULL), 0);
    assert_int_equal(v->attempts, 3);
    assert_int_equal(v->n_history, 2);
    assert_int_equal(v->n_effects, 1);
    assert_memory_equal(v->effects[0].value.data, "v", 1);
    lade_job_view_free(v);
}

/* kills ------------------------------------------------------------------------------------------------------------ */

static int64_t clock_now; /* of both processes: the child has it from the moment of its fork */

static int64_t read_clock(void *ctx)
{
    (void)ctx;
    return clock_now;
}

static lade *open_stepped(const char *url)
{
    lade_options options = {.clock = read_clock, .keep_completed = {.count = 1000000}};
    lade *q = NULL;
    lade_err err = {0};
    if (lade_open(&q, url, &options, &err) < 0) {
        (void)fprintf(stderr, "%s\n", err.text);
        abort();
    }
    return q;
}

/* What a child does; ends by _exit, since nothing of the parent's is its own. */
typedef void (*step_fn)(const char *url, int i);

/* Runs it in a child that is killed at its Kth fault point. True when it came to its end before that. */
static bool kill_at(const char *url, step_fn step, int i, int k)
{
    char spec[32];
    (void)snprintf(spec, sizeof(spec), "*:%d:kill", k);
    (void)fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        lb_fault_arm(spec);
        step(url, i);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status)) {
        assert_int_equal(WTERMSIG(status), SIGKILL);
        return false;
    }
    assert_int_equal(WEXITSTATUS(status), 0);
    return true;
}

static void die(const char *what, const lade_err *err)
{
    (void)fprintf(stderr, "%s: %s\n", what, err->text);
    _exit(1);
}

static void produce(const char *url, int i)
{
    lade *q = open_stepped(url);
    sqlite3 *db = open_db(strchr(url, ':') + 1);
    char text[96], id[24];
    lade_err err = {0};
    (void)snprintf(id, sizeof(id), "p-%d", i);
    (void)snprintf(text, sizeof(text), "BEGIN IMMEDIATE; INSERT INTO orders VALUES ('%s')", id);
    lade_job_spec spec = {.kind = "job", .id = id};
    LB_FAULT("test.before");
    if (!sql(db, text) || lade_sqlite_enqueue(q, db, NULL, &spec, NULL, &err) != 0)
        die("enqueue", &err);
    LB_FAULT("test.written");
    if (!sql(db, "COMMIT"))
        _exit(1);
    LB_FAULT("test.committed");
    lade_sqlite_committed(q, db);
    (void)sqlite3_close(db);
    lade_close(q);
}

/* Kills on the producer's side: the order and its job are there together, or neither is. */
static void order_and_job_are_there_together_whatever_kills(void **state)
{
    struct ts_fix *f = *state;
    clock_now = lb_clock_wall();
    sqlite3 *db = open_db(file_of(f));
    assert_true(sql(db, "CREATE TABLE orders (id TEXT)"));
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    lade_close(f->q); /* a forked child must not have it */
    f->q = NULL;
    int kills = 0, i = 0;
    for (int round = 0; round < ts_rig_rounds(40); round++) {
        for (int k = 1; !kill_at(f->r.direct, produce, i++, k); k++)
            kills++;
    }
    f->q = ts_rig_open(&f->r);
    db = open_db(file_of(f));
    print_message("%d kills, %lld orders\n", kills,
                  (long long)number(db, "SELECT count(*) FROM orders"));
    assert_true(kills >= 4 * ts_rig_rounds(40));
    assert_int_equal(number(db, "SELECT count(*) FROM orders WHERE id NOT IN (SELECT id FROM job)"),
                     0);
    assert_int_equal(number(db, "SELECT count(*) FROM job WHERE id NOT IN (SELECT id FROM orders)"),
                     0);
    assert_int_equal(number(db, "SELECT count(*) - count(DISTINCT id) FROM orders"), 0);
    assert_true(number(db, "SELECT count(*) FROM orders") >= ts_rig_rounds(40));
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    assert_inv(f, TS_INV_RUNNING);
}

static sqlite3 *child_db;

/* Even jobs complete in their transaction; odd ones record the effect and complete by returning. */
static lade_outcome ship(lade_job *job, void *ctx)
{
    (void)ctx;
    char text[128];
    lade_err err = {0};
    bool even = lade_job_id(job)[2] % 2 == 0;
    if (lade_effect_done(job, "ship", NULL))
        return LADE_OK;
    (void)snprintf(text, sizeof(text), "BEGIN IMMEDIATE; INSERT INTO shipped VALUES ('%s', %llu)",
                   lade_job_id(job), (unsigned long long)lade_job_fence(job));
    LB_FAULT("test.before");
    if (!sql(child_db, text))
        return LADE_DEAD;
    int rc = even ? lade_sqlite_complete(job, child_db, NULL, &err)
                  : lade_sqlite_effect(job, child_db, NULL, "ship", LADE_STR(""), &err);
    if (rc != 0) {
        (void)fprintf(stderr, "%s: %d %s\n", lade_job_id(job), rc, err.text);
        (void)sql(child_db, "ROLLBACK");
        return LADE_DEAD;
    }
    LB_FAULT("test.written");
    if (!sql(child_db, "COMMIT"))
        return LADE_DEAD;
    LB_FAULT("test.committed");
    return LADE_OK;
}

static void say_nothing(void *ctx, const char *line)
{
    (void)ctx;
    (void)line;
}

static void work(const char *url, int i)
{
    (void)i;
    lade *q = open_stepped(url);
    child_db = open_db(strchr(url, ':') + 1);
    lade_worker *w = NULL;
    lade_err err = {0};
    lade_worker_config config = {.concurrency = 1,
                                 .drain = true,
                                 .max_crashes = 10000,
                                 .log = say_nothing,
                                 .executor = LADE_EXECUTOR_THREAD,
                                 .sweep = NS(1)};
    if (lade_worker_open(&w, q, &config, &err) < 0 ||
        lade_worker_handle(w, "job", ship, NULL) < 0 || lade_worker_run(w, &err) < 0)
        die("work", &err);
    lade_worker_close(w);
    (void)sqlite3_close(child_db);
    lade_close(q);
}

/* Kills on the worker's side, time going by a lease between them: each job's row exactly once, each job completed. */
static void each_row_is_there_once_whatever_kills(void **state)
{
    struct ts_fix *f = *state;
    clock_now = lb_clock_wall();
    sqlite3 *db = open_db(file_of(f));
    assert_true(sql(db, "CREATE TABLE shipped (id TEXT, fence)"));
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    lade_close(f->q);
    f->q = NULL;
    int kills = 0, n = 0;
    for (int round = 0; round < ts_rig_rounds(2); round++) {
        for (int k = 1; k < 400; k++) {
            if (n < 9 * (round + 1)) { /* some at a time, so that there is work for each kill */
                lade *q = open_stepped(f->r.direct);
                char id[24];
                (void)snprintf(id, sizeof(id), "s-%d-%d", n % 10, n);
                lade_job_spec spec = {.kind = "job", .id = id};
                assert_int_equal(lade_enqueue(q, &spec, NULL, NULL), 0);
                lade_close(q);
                n++;
            }
            bool ended = kill_at(f->r.direct, work, 0, k);
            kills += !ended;
            clock_now += 20 * LADE_SECOND;
            if (ended && n >= 9 * (round + 1))
                break;
        }
    }
    assert_true(kill_at(f->r.direct, work, 0, 1000000));
    f->q = ts_rig_open(&f->r);
    db = open_db(file_of(f));
    print_message("%d kills, %d jobs\n", kills, n);
    assert_true(kills >= 20 * ts_rig_rounds(2));
    assert_int_equal(number(db, "SELECT count(*) FROM shipped"), n);
    assert_int_equal(number(db, "SELECT count(DISTINCT id) FROM shipped"), n);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    assert_int_equal(ts_rig_count(f->q, LADE_STATE_COMPLETED), n);
    lade_finding *found;
    size_t n_found;
    assert_int_equal(lade_check(f->q, &found, &n_found, NULL), 0);
    assert_int_equal(n_found, 0);
    lade_free(found);
}

int main(int argc, char **argv)
{
    ts_rig_main(argc, argv);
    const struct CMUnitTest tests[] = {
        /* first: they fork, and later tests make threads */
        TS_TEST(order_and_job_are_there_together_whatever_kills),
        TS_TEST(each_row_is_there_once_whatever_kills),
        TS_TEST(job_is_there_when_the_rows_are),
        TS_TEST(attached_file_is_named_in_full),
        TS_TEST(what_cannot_be_is_refused_and_leaves_the_transaction),
        TS_TEST(old_snapshot_is_busy_and_told),
        TS_TEST(idle_workers_are_woken_or_look_when_they_renew),
        TS_TEST(completion_and_rows_are_one_commit),
        TS_TEST(completion_that_is_rolled_back_has_not_been),
        TS_TEST(completed_step_sets_the_next_going),
        TS_TEST(effect_and_rows_are_one_commit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
