/*
 * crash_effect_test.c - a worker frozen past its lease has no effect any more, and what it had is not had again
 *
 * Workers hold jobs, half of them before their effect and half behind it, when they are stopped by SIGSTOP. Another takes over
 * once the lease is over, and does what is left; then the first is let go on, full of confidence. On SQLite the effect is a row in
 * a transaction of the handler's own, on Redis the record with the job. Of all settles and records of the stale ones none may be
 * accepted, and each effect is there once. ROUNDS multiplies, and TOGETHER says how many jobs a worker holds when it is stopped:
 * 40 rounds of 250 are 10,000 runs.
 */
#include <sqlite3.h>

#include "support/rig_test.h"

#include <lade/sqlite.h>

/* Jobs that a worker holds when it is stopped. */
static int together(void)
{
    const char *text = getenv("TOGETHER"); /* NOLINT(concurrency-mt-unsafe): one thread */
    int n = text ? (int)strtol(text, NULL, 10) : 32;
    return n > 1 && n <= 1000 ? n / 2 * 2 : 32;
}

/* The payload: the gate's path and the file of the queue, "" on Redis. */
struct places {
    char gate[256], file[256];
};

static struct places places_of(const lade_job *job)
{
    struct places p = {{0}, {0}};
    lade_bytes text = lade_job_payload(job);
    const char *end = memchr(text.data, '\n', text.size);
    int n = end ? (int)(end - (const char *)text.data) : (int)text.size;
    (void)snprintf(p.gate, sizeof(p.gate), "%.*s", n, (const char *)text.data);
    if (end)
        (void)snprintf(p.file, sizeof(p.file), "%.*s", (int)text.size - n - 1, end + 1);
    return p;
}

static void wait_for_gate(const struct places *p)
{
    while (access(p->gate, F_OK) != 0)
        ts_nap_ms(2);
}

static int add_row(lade_job *job, const char *file, lade_bytes value)
{
    sqlite3 *db = NULL;
    char text[200];
    lade_err err = {0};
    (void)snprintf(text, sizeof(text), "BEGIN IMMEDIATE; INSERT INTO rows VALUES ('%s', %.*s)",
                   lade_job_id(job), (int)value.size, (const char *)value.data);
    LB_CHECK(sqlite3_open(file, &db) == SQLITE_OK);
    LB_CHECK(sqlite3_busy_timeout(db, 60000) == SQLITE_OK);
    int rc = -LADE_EBUSY;
    if (sqlite3_exec(db, text, NULL, NULL, NULL) == SQLITE_OK) {
        rc = lade_sqlite_effect(job, db, NULL, "row", value, &err);
        if (sqlite3_exec(db, rc == 0 ? "COMMIT" : "ROLLBACK", NULL, NULL, NULL) != SQLITE_OK)
            rc = -LADE_EIO;
    }
    (void)sqlite3_close(db);
    return rc;
}

/* 0, or what refused it. */
static int have_effect(lade_job *job, const struct places *p)
{
    char fence[24];
    int n = snprintf(fence, sizeof(fence), "%llu", (unsigned long long)lade_job_fence(job));
    lade_bytes value = {fence, (size_t)n};
    return p->file[0] ? add_row(job, p->file, value) : lade_effect(job, "row", value, NULL);
}

/* own-before waits, then has its effect; own-after has it, then waits. Deaf: the stale one goes on to its end. */
static lade_outcome run_own(const struct ts_role *r, lade_job *job)
{
    struct places p = places_of(job);
    bool before = strcmp(lade_job_kind(job), "own-before") == 0;
    if (before)
        wait_for_gate(&p);
    if (lade_effect_done(job, "row", NULL)) {
        ts_ledger_number(r->ledger, "skipped", 1);
    } else {
        int rc = have_effect(job, &p);
        ts_ledger_number(r->ledger, rc == 0 ? "had" : rc == LADE_STALE ? "refused" : "failed", 1);
        if (rc < 0)
            return LADE_DEAD;
    }
    if (!before)
        wait_for_gate(&p);
    return LADE_OK;
}

static uint64_t number_of(const struct ts_fix *f, const char *name)
{
    struct ts_ledger l;
    assert_true(ts_ledger_read(&l, f->r.ledger_dir));
    uint64_t sum = ts_ledger_sum(&l, name);
    ts_ledger_free(&l);
    return sum;
}

static const char *file_of(const struct ts_fix *f)
{
    return f->r.store == TS_SQLITE ? strchr(f->r.direct, ':') + 1 : "";
}

static int64_t count_rows(const struct ts_fix *f, const char *what)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *st = NULL;
    int64_t n = -1;
    assert_int_equal(sqlite3_open(file_of(f), &db), SQLITE_OK);
    if (sqlite3_prepare_v2(db, what, -1, &st, NULL) == SQLITE_OK && sqlite3_step(st) == SQLITE_ROW)
        n = sqlite3_column_int64(st, 0);
    (void)sqlite3_finalize(st);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    return n;
}

static void make_rows(const struct ts_fix *f)
{
    sqlite3 *db = NULL;
    if (f->r.store != TS_SQLITE)
        return;
    assert_int_equal(sqlite3_open(file_of(f), &db), SQLITE_OK);
    assert_int_equal(sqlite3_busy_timeout(db, 30000), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "CREATE TABLE rows (id TEXT, fence)", NULL, NULL, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void start_worker(struct ts_fix *f, struct ts_proc *p, const char *name, int lease_ms)
{
    ts_rig_worker(&f->r, p,
                  &(struct ts_worker_args){.name = name,
                                           .concurrency = together(),
                                           .lease_ms = lease_ms,
                                           .prefetch = -1,
                                           .no_sync = true});
    assert_true(ts_rig_wait_worker(f->q, name, TS_SOON));
}

static void check_job(const struct ts_fix *f, const struct ts_ledger *l, const char *id,
                      bool before)
{
    lade_job_view *v = NULL;
    size_t n;
    assert_int_equal(lade_job_get(f->q, NULL, id, &v, NULL), 0);
    assert_int_equal(v->state, LADE_STATE_COMPLETED);
    assert_int_equal(v->n_effects, 1);
    const struct ts_run *run = ts_ledger_runs(l, id, &n);
    assert_int_equal(n, 2);
    char fence[24]; /* of the run whose effect it is */
    (void)snprintf(fence, sizeof(fence), "%llu", (unsigned long long)run[before ? 1 : 0].fence);
    assert_int_equal(v->effects[0].value.size, strlen(fence));
    assert_memory_equal(v->effects[0].value.data, fence, strlen(fence));
    lade_job_view_free(v);
}

static void freeze_and_thaw(struct ts_fix *f, int round)
{
    char gate[256], payload[600], id[32], name[24];
    struct ts_ledger l;
    size_t n = (size_t)together();
    (void)snprintf(name, sizeof(name), "gate-%d", round);
    (void)ts_rig_path(&f->r, name, gate, sizeof(gate));
    int size = snprintf(payload, sizeof(payload), "%s\n%s", gate, file_of(f));
    (void)snprintf(name, sizeof(name), "a%d", round);
    start_worker(f, &f->a, name, 2 * TS_LEASE_MS);
    for (int i = 0; i < (int)n; i++) {
        (void)snprintf(id, sizeof(id), "r%d-%d", round, i);
        lade_job_spec spec = {.kind = i % 2 ? "own-before" : "own-after",
                              .id = id,
                              .payload = {payload, (size_t)size}};
        ts_rig_enqueue(&f->r, f->q, &spec, NULL);
    }
    size_t before = 2 * n * (size_t)round;
    assert_true(TS_UNTIL(TS_SOON, ts_ledger_count_starts(f->r.ledger_dir) == before + n));
    assert_true(TS_UNTIL(TS_SOON, number_of(f, "had") == n * (size_t)round + n / 2));
    ts_rig_freeze(&f->r, &f->a);
    (void)snprintf(name, sizeof(name), "b%d", round);
    start_worker(f, &f->b, name, TS_CALM_MS);
    assert_true(TS_UNTIL(TS_SOON, ts_ledger_count_starts(f->r.ledger_dir) == before + 2 * n));
    ts_rig_touch(gate);
    assert_true(ts_rig_wait_quiet(f->q, TS_SOON));
    ts_rig_thaw(&f->r, &f->a);
    assert_true(TS_UNTIL(TS_SOON, ts_ledger_count_ends(f->r.ledger_dir) == before + 2 * n));
    assert_int_equal(ts_rig_term(&f->a), 0);
    assert_int_equal(ts_rig_term(&f->b), 0);
    assert_true(ts_ledger_read(&l, f->r.ledger_dir));
    for (int i = 0; i < (int)n; i++) {
        (void)snprintf(id, sizeof(id), "r%d-%d", round, i);
        check_job(f, &l, id, i % 2);
    }
    ts_ledger_free(&l);
}

static void stale_worker_has_no_effect_and_each_effect_is_had_once(void **state)
{
    struct ts_fix *f = *state;
    int rounds = ts_rig_rounds(1);
    uint64_t all = (uint64_t)rounds * (uint64_t)together();
    make_rows(f);
    for (int round = 0; round < rounds; round++)
        freeze_and_thaw(f, round);
    print_message(
        "%llu runs of stale workers: %llu effects, %llu refused, %llu skipped, %llu outcomes refused\n",
        (unsigned long long)all, (unsigned long long)number_of(f, "had"),
        (unsigned long long)number_of(f, "refused"), (unsigned long long)number_of(f, "skipped"),
        (unsigned long long)number_of(f, "lost"));
    assert_int_equal(number_of(f, "had"), all);
    assert_int_equal(number_of(f, "refused"), all / 2);
    assert_int_equal(number_of(f, "skipped"), all / 2);
    assert_int_equal(number_of(f, "failed"), 0);
    assert_int_equal(number_of(f, "lost"), all);
    lade_queue_info info;
    assert_int_equal(lade_queue_get(f->q, "default", &info, NULL), 0);
    assert_int_equal(info.total_completed, all);
    if (f->r.store == TS_SQLITE) {
        assert_int_equal(count_rows(f, "SELECT count(*) FROM rows"), all);
        assert_int_equal(count_rows(f, "SELECT count(DISTINCT id) FROM rows"), all);
    }
    assert_inv(f, TS_INV_QUIET);
}

int main(int argc, char **argv)
{
    ts_role_own = run_own;
    ts_rig_main(argc, argv);
    const struct CMUnitTest tests[] = {
        TS_TEST(stale_worker_has_no_effect_and_each_effect_is_had_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
