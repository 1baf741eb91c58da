/*
 * crash_sqlite_test.c - several processes on one file, writers that hold the lock, readers that stay, disks that are full
 * or fail (C-008, C-009, C-046, C-047, C-048, C-050, C-051, C-052)
 */
#include "support/rig_test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include "support/rig_disk.h"

/* Someone else's connection to the file, on a thread: holds the write lock, or a read transaction, now and then. */
struct holder {
    pthread_t thread;
    char path[128];
    const char *begin; /* SQL that takes the lock */
    int hold_ms, pause_ms;
    bool end;  /* atomic */
    int holds; /* atomic: how often it had the lock */
};

static void *run_holder(void *arg)
{
    struct holder *h = arg;
    sqlite3 *db = NULL;
    bool ok = sqlite3_open(h->path, &db) == SQLITE_OK;
    (void)sqlite3_busy_timeout(db, 10000);
    while (ok && !__atomic_load_n(&h->end, __ATOMIC_ACQUIRE)) {
        if (sqlite3_exec(db, h->begin, NULL, NULL, NULL) != SQLITE_OK)
            continue;
        (void)__atomic_add_fetch(&h->holds, 1, __ATOMIC_RELEASE);
        for (int i = 0; i < h->hold_ms / 5 && !__atomic_load_n(&h->end, __ATOMIC_ACQUIRE); i++)
            ts_nap_ms(5);
        (void)sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
        ts_nap_ms(h->pause_ms);
    }
    (void)sqlite3_close(db);
    return NULL;
}

static void start_holder(struct holder *h, const struct ts_fix *f)
{
    (void)ts_rig_path(&f->r, "jobs.db", h->path, sizeof(h->path));
    assert_int_equal(pthread_create(&h->thread, NULL, run_holder, h), 0);
}

static void end_holder(struct holder *h)
{
    __atomic_store_n(&h->end, true, __ATOMIC_RELEASE);
    (void)pthread_join(h->thread, NULL);
}

static size_t count_log(const struct ts_fix *f, const char *text)
{
    return ts_ledger_count_log(f->r.ledger_dir, text);
}

/* C-046: no BUSY ever reaches a caller, with 4 producers and 4 workers on one file. */
static void c046_eight_processes_on_one_file_see_no_busy(void **state)
{
    struct ts_fix *f = *state;
    struct ts_proc producer[4], worker[4];
    int n = ts_rig_rounds(1500);
    for (int i = 0; i < 4; i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "w%d", i);
        ts_rig_worker(
            &f->r, &worker[i],
            &(struct ts_worker_args){.name = name, .no_sync = true, .lease_ms = TS_CALM_MS});
        ts_rig_producer(
            &f->r, &producer[i],
            &(struct ts_producer_args){.n = n, .batch = i == 0 ? 10 : 1, .no_sync = true});
    }
    for (int i = 0; i < 4; i++) {
        assert_true(ts_proc_wait(&producer[i], 2 * TS_SOON));
        assert_int_equal(ts_proc_code(&producer[i]), 0); /* 3 when a call was refused */
    }
    assert_true(ts_rig_wait_quiet(f->q, 2 * TS_SOON));
    for (int i = 0; i < 4; i++)
        assert_int_equal(ts_rig_term(&worker[i]), 0);
    assert_int_equal(count_log(f, ""), 0); /* nothing to report at all */
    struct ts_inv inv;
    assert_true(ts_inv_check(f->r.ledger_dir, f->q, TS_INV_QUIET, &inv));
    assert_int_equal(inv.jobs, 4 * n);
    assert_int_equal(inv.runs, 4 * n);
}

/* C-047, and C-009 on SQLite: a writer of another process holds the lock most of the time; heartbeats get through. */
static void c047_heartbeats_ride_through_a_lock_held_again_and_again(void **state)
{
    struct ts_fix *f = *state;
    struct holder h = {.begin = "BEGIN IMMEDIATE", .hold_ms = 900, .pause_ms = 300};
    ts_rig_worker(&f->r, &f->a,
                  &(struct ts_worker_args){.name = "a", .concurrency = 10, .lease_ms = 4000});
    ts_rig_worker(&f->r, &f->b,
                  &(struct ts_worker_args){.name = "b", .concurrency = 10, .lease_ms = 4000});
    assert_true(ts_rig_wait_worker(f->q, "a", TS_SOON));
    assert_true(ts_rig_wait_worker(f->q, "b", TS_SOON));
    start_holder(&h, f);
    ts_rig_producer(&f->r, &f->c,
                    &(struct ts_producer_args){.kind = "sleep", .payload = "5000", .n = 20});
    bool enqueued = ts_proc_wait(&f->c, TS_SOON);
    bool quiet = enqueued && ts_rig_wait_quiet(f->q, 2 * TS_SOON);
    end_holder(&h);
    assert_true(quiet);
    assert_true(h.holds > 3);
    assert_int_equal(ts_proc_code(&f->c), 0);
    assert_int_equal(ts_rig_term(&f->a), 0);
    assert_int_equal(ts_rig_term(&f->b), 0);
    assert_int_equal(ts_ledger_count_starts(f->r.ledger_dir), 20);
    assert_inv(f, TS_INV_QUIET);
}

/* C-008: heartbeats get BUSY for longer than the lease. The worker notices, gives up its claims, and works again. */
static void c008_worker_shut_out_for_longer_than_its_lease_comes_back(void **state)
{
    struct ts_fix *f = *state;
    struct holder h = {.begin = "BEGIN IMMEDIATE", .hold_ms = 1000000};
    ts_rig_worker(&f->r, &f->a, &(struct ts_worker_args){.name = "a", .concurrency = 1});
    lade_job_spec spec = ts_fix_gated(f, "gate", "held");
    ts_rig_enqueue(&f->r, f->q, &spec, NULL);
    assert_true(ts_fix_wait_runs(f, "held", 1));
    start_holder(&h, f);
    assert_true(TS_UNTIL(TS_SOON, __atomic_load_n(&h.holds, __ATOMIC_ACQUIRE) == 1));
    ts_ledger_process(&f->r.ledger, 'P', f->a.pid);
    bool gave_up = TS_UNTIL(TS_SOON, ts_rig_ends(&f->r, "held") == 1);
    ts_nap_ms(2 * TS_LEASE_MS);
    end_holder(&h);
    assert_true(gave_up);
    ts_ledger_process(&f->r.ledger, 'C', f->a.pid);
    ts_fix_open_gate(f);
    assert_true(ts_fix_wait_state(f, "held", LADE_STATE_COMPLETED)); /* no other worker is there */
    ts_rig_enqueue(&f->r, f->q, &(lade_job_spec){.kind = "ok", .id = "later"}, NULL);
    assert_true(ts_fix_wait_state(f, "later", LADE_STATE_COMPLETED));
    assert_int_equal(ts_rig_term(&f->a), 0);
    assert_int_equal(ts_rig_runs(&f->r, "held"), 2);
    assert_inv(f, TS_INV_QUIET);
}

static int64_t size_of_log(const struct ts_fix *f)
{
    char path[128];
    struct stat st;
    return stat(ts_rig_path(&f->r, "jobs.db-wal", path, sizeof(path)), &st) == 0 ? st.st_size : 0;
}

/* How often the log was started over: its header counts that. */
static uint32_t starts_of_log(const struct ts_fix *f)
{
    char path[128];
    uint8_t head[16] = {0};
    int fd = open(ts_rig_path(&f->r, "jobs.db-wal", path, sizeof(path)), O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, head, sizeof(head), 0), sizeof(head));
    (void)close(fd);
    return (uint32_t)head[12] << 24 | (uint32_t)head[13] << 16 | (uint32_t)head[14] << 8 | head[15];
}

/* Readers as a dashboard and a CLI in a loop would be. */
struct reader {
    pthread_t thread;
    lade *q;
    bool end;   /* atomic */
    int failed; /* atomic */
};

static void *run_reader(void *arg)
{
    struct reader *r = arg;
    while (!__atomic_load_n(&r->end, __ATOMIC_ACQUIRE)) {
        lade_cursor at = {0};
        lade_job_view *v[100];
        lade_queue_info *info;
        size_t n;
        int rc = lade_job_list(r->q, "default", LADE_STATE_READY, &at, 100, v, &n, NULL);
        for (size_t i = 0; rc == 0 && i < n; i++)
            lade_job_view_free(v[i]);
        if (rc >= 0 && (rc = lade_queue_list(r->q, &info, &n, NULL)) == 0)
            lade_free(info);
        if (rc < 0)
            (void)__atomic_add_fetch(&r->failed, 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

/* Two that take turns: one begins anew only while the other reads, so that somebody reads at every moment. */
struct relay {
    struct runner {
        struct relay *of;
        pthread_t thread;
        sqlite3 *db;
    } runner[2];

    int turn; /* atomic: whose it is, by its lowest bit */
    bool end; /* atomic */
    int failed;
};

static bool read_on(sqlite3 *db)
{
    return sqlite3_exec(db, "BEGIN; SELECT count(*) FROM queue", NULL, NULL, NULL) == SQLITE_OK;
}

static void *run_relay(void *arg)
{
    struct runner *me = arg;
    struct relay *r = me->of;
    while (!__atomic_load_n(&r->end, __ATOMIC_ACQUIRE)) {
        if (&r->runner[__atomic_load_n(&r->turn, __ATOMIC_ACQUIRE) & 1] == me) {
            (void)sqlite3_exec(me->db, "ROLLBACK", NULL, NULL, NULL);
            if (!read_on(me->db))
                (void)__atomic_add_fetch(&r->failed, 1, __ATOMIC_RELAXED);
            (void)__atomic_add_fetch(&r->turn, 1, __ATOMIC_RELEASE);
        }
        ts_nap_ms(1);
    }
    return NULL;
}

static void start_relay(struct relay *r, const struct ts_fix *f)
{
    char path[128];
    (void)ts_rig_path(&f->r, "jobs.db", path, sizeof(path));
    *r = (struct relay){0};
    for (int i = 0; i < 2; i++) {
        r->runner[i].of = r;
        assert_int_equal(sqlite3_open(path, &r->runner[i].db), SQLITE_OK);
        (void)sqlite3_busy_timeout(r->runner[i].db, 30000);
        assert_true(read_on(r->runner[i].db));
    }
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&r->runner[i].thread, NULL, run_relay, &r->runner[i]), 0);
}

static int end_relay(struct relay *r)
{
    __atomic_store_n(&r->end, true, __ATOMIC_RELEASE);
    for (int i = 0; i < 2; i++) {
        (void)pthread_join(r->runner[i].thread, NULL);
        (void)sqlite3_close(r->runner[i].db);
    }
    return r->failed;
}

/* Writes until the log was started over so often, or is so large. False when that takes too long. */
static bool write_until(struct ts_fix *f, uint32_t starts, int64_t size)
{
    static const char payload[16 << 10];
    lade_job_spec spec[50];
    int64_t deadline = lb_deadline_in(4 * TS_SOON);
    int64_t largest = 0;
    for (int i = 0; i < 50; i++)
        spec[i] = (lade_job_spec){.kind = "ok", .payload = {payload, sizeof(payload)}};
    while (starts_of_log(f) < starts && size_of_log(f) < size) {
        assert_int_equal(lade_enqueue_many(f->q, spec, 50, NULL, NULL, NULL), 0);
        largest = LB_MAX(largest, size_of_log(f));
        if (lb_clock_mono() > deadline)
            return false;
    }
    print_message("log: started over %u times, at most %lld KiB\n", starts_of_log(f),
                  (long long)(largest >> 10));
    return true;
}

#define LOG_LIMIT (32 << 20) /* what it is cut to when it starts over, as checkpoint.h has it */

/*
 * C-048: readers in loops do not keep the log from being started over, though one of them reads at any moment; one that
 * stays does, and the log shrinks when it is gone. How large it gets between depends on how fast things go and is printed
 * only; the bound itself is stepped in src/store/sqlite/checkpoint_test.c.
 */
static void c048_log_starts_over_under_readers_and_shrinks_after_a_pin(void **state)
{
    struct ts_fix *f = *state;
    struct reader reader = {.q = ts_rig_open(&f->r)};
    struct relay relay;
    struct holder pin = {.begin = "BEGIN; SELECT count(*) FROM queue", .hold_ms = 1000000};
    ts_rig_enqueue(&f->r, f->q, &(lade_job_spec){.kind = "ok"}, NULL);
    uint32_t before = starts_of_log(f);
    start_relay(&relay, f);
    assert_int_equal(pthread_create(&reader.thread, NULL, run_reader, &reader), 0);
    bool unpinned = write_until(f, before + 3, INT64_MAX);
    start_holder(&pin, f);
    bool pinned = TS_UNTIL(TS_SOON, __atomic_load_n(&pin.holds, __ATOMIC_ACQUIRE) == 1);
    before = starts_of_log(f); /* once more at most: the pin may have begun at its very end */
    bool grew = write_until(f, before + 2, 2 * (int64_t)LOG_LIMIT);
    bool held = starts_of_log(f) <= before + 1;
    end_holder(&pin);
    bool went_on = write_until(f, starts_of_log(f) + 1, INT64_MAX);
    int64_t after = size_of_log(f);
    int failed = end_relay(&relay);
    __atomic_store_n(&reader.end, true, __ATOMIC_RELEASE);
    (void)pthread_join(reader.thread, NULL);
    lade_close(reader.q);
    assert_true(unpinned);
    assert_true(pinned);
    assert_true(grew);
    assert_true(held);
    assert_true(went_on);
    assert_true(after <= LOG_LIMIT);
    assert_int_equal(failed, 0);
    assert_int_equal(reader.failed, 0);
}

/* disks ------------------------------------------------------------------------------------------------------------ */

static void check_integrity(const char *folder)
{
    char path[200];
    sqlite3 *db = NULL;
    sqlite3_stmt *st = NULL;
    (void)snprintf(path, sizeof(path), "%s/jobs.db", folder);
    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, "PRAGMA integrity_check", -1, &st, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(st), SQLITE_ROW);
    assert_string_equal((const char *)sqlite3_column_text(st, 0), "ok");
    (void)sqlite3_finalize(st);
    (void)sqlite3_close(db);
}

/* What the client was told, against what is there: acknowledged is present, refused is absent. */
static void compare_with_ledger(struct ts_fix *f, lade *q)
{
    struct ts_ledger l;
    assert_true(ts_ledger_read(&l, f->r.ledger_dir));
    for (size_t i = 0; i < l.n_acked; i++) {
        int state = ts_rig_state(q, l.acked[i].text);
        if (state < 0)
            print_message("%s was acknowledged and is not there\n", l.acked[i].text);
        assert_true(state >= 0 || ts_ledger_ends(&l, l.acked[i].text) > 0);
    }
    for (size_t i = 0; i < l.n_acts; i++) {
        int state = ts_rig_state(q, l.act[i].text);
        if (state >= 0)
            print_message("%s was refused and is there\n", l.act[i].text);
        assert_true(state < 0);
    }
    ts_ledger_free(&l);
}

static size_t count_acked(const struct ts_fix *f)
{
    struct ts_ledger l;
    assert_true(ts_ledger_read(&l, f->r.ledger_dir));
    size_t n = l.n_acked;
    ts_ledger_free(&l);
    return n;
}

/* C-050: the disk fills up while a producer and a worker are there, and has room again: no restart, no loss. */
static void c050_full_disk_refuses_and_works_again_when_there_is_room(void **state)
{
    struct ts_fix *f = *state;
    struct ts_disk d;
    ts_disk_make(&d, &f->r);
    d.shared->limit = 6 << 20;
    ts_rig_producer(&f->r, &f->a,
                    &(struct ts_producer_args){.n = 3000,
                                               .size = 8192,
                                               .pause_ms = 1,
                                               .prefix = "full",
                                               .once = true,
                                               .no_sync = true,
                                               .url = d.url,
                                               .env = {d.preload, d.control, d.asan}});
    assert_true(TS_UNTIL(TS_SOON, count_log(f, "no space") > 20));
    size_t before = count_acked(f);
    assert_true(before > 50);
    d.shared->limit = 256 << 20;
    assert_true(TS_UNTIL(TS_SOON, count_acked(f) > before + 5));
    assert_true(ts_proc_wait(&f->a, 2 * TS_SOON));
    assert_int_equal(ts_proc_code(&f->a), 3); /* some were refused */
    assert_int_equal(count_log(f, ""), count_log(f, "no space"));
    check_integrity(d.folder);
    lade *q;
    lade_options o = ts_rig_options();
    assert_int_equal(lade_open(&q, d.url, &o, NULL), 0);
    compare_with_ledger(f, q);
    lade_close(q);
    ts_disk_free(&d);
}

/* C-050, the worker's side: jobs are worked off while the disk is full, as far as it lets them, and all after. */
static void c050_worker_outlives_a_full_disk(void **state)
{
    struct ts_fix *f = *state;
    struct ts_disk d;
    ts_disk_make(&d, &f->r);
    ts_rig_producer(&f->r, &f->a,
                    &(struct ts_producer_args){
                        .kind = "sleep", .payload = "5", .n = 600, .batch = 50, .url = d.url});
    assert_true(ts_proc_wait(&f->a, TS_SOON));
    ts_rig_worker(
        &f->r, &f->b,
        &(struct ts_worker_args){.name = "b", .url = d.url, .env = {d.preload, d.control, d.asan}});
    assert_true(TS_UNTIL(TS_SOON, ts_ledger_count_ends(f->r.ledger_dir) > 20));
    ts_ledger_process(&f->r.ledger, 'P', f->b.pid); /* its renewals may fail too */
    d.shared->limit = 1;
    ts_nap_ms(2 * TS_LEASE_MS);
    d.shared->limit = 0;
    lade *q;
    lade_options o = ts_rig_options();
    assert_int_equal(lade_open(&q, d.url, &o, NULL), 0);
    bool quiet = ts_rig_wait_quiet(q, TS_SOON);
    int code = ts_rig_term(&f->b);
    struct ts_inv inv;
    bool holds = ts_inv_check(f->r.ledger_dir, q, TS_INV_QUIET, &inv);
    lade_close(q);
    check_integrity(d.folder);
    ts_disk_free(&d);
    assert_true(quiet);
    assert_int_equal(code, 0);
    assert_true(holds);
}

/* C-051: nobody has the file open, no byte is free. Then it must still be possible to open it and to make room. */
static void c051_file_on_a_full_disk_can_be_opened_and_emptied(void **state)
{
    struct ts_fix *f = *state;
    struct ts_disk d;
    ts_disk_make(&d, &f->r);
    ts_rig_producer(&f->r, &f->a,
                    &(struct ts_producer_args){
                        .n = 300, .batch = 50, .size = 4096, .url = d.url, .no_sync = true});
    assert_true(ts_proc_wait(&f->a, TS_SOON));
    d.shared->limit = ts_disk_used(&d);
    const char *const env[] = {d.preload, d.control, d.asan, NULL};
    char url[220];
    (void)snprintf(url, sizeof(url), "url=%s", d.url);
    const char *argv[] = {ts_proc_self(), "--purge", url + 4, NULL};
    char log[128];
    assert_true(ts_proc_start(&f->b, argv, env, ts_rig_path(&f->r, "purge.log", log, sizeof(log))));
    assert_true(ts_proc_wait(&f->b, TS_SOON));
    if (ts_proc_code(&f->b) != 0) {
        char line[300];
        FILE *s = fopen(log, "re");
        while (s && fgets(line, sizeof(line), s))
            print_message("purge: %s", line);
        if (s)
            (void)fclose(s);
    }
    assert_int_equal(ts_proc_code(&f->b), 0);
    d.shared->limit = 0;
    check_integrity(d.folder);
    ts_disk_free(&d);
}

/* The other process of C-051: opens, removes what is ready, and says what went wrong. */
static int purge_ready(const char *url)
{
    lade *q;
    lade_err err;
    size_t n = 0, all = 0;
    if (lade_open(&q, url, NULL, &err) < 0) {
        (void)fprintf(stderr, "open: %s\n", err.text);
        return 4;
    }
    int rc;
    while ((rc = lade_queue_purge(q, "default", LADE_STATE_READY, 50, &n, &err)) >= 0) {
        all += n;
        if (rc == 0)
            break;
    }
    if (rc < 0)
        (void)fprintf(stderr, "purge: %s\n", err.text);
    lade_close(q);
    return rc < 0 ? 1 : all == 300 ? 0 : 2;
}

/* One run of C-052. */
static void fail_one_call(struct ts_fix *f, int32_t write, int32_t sync, int error)
{
    struct ts_rig r;
    struct ts_disk d;
    char url[240];
    ts_rig_start(&r, TS_PLAIN);
    ts_disk_make(&d, &r);
    d.shared->fail_write = write;
    d.shared->fail_sync = sync;
    d.shared->error = error;
    (void)snprintf(url, sizeof(url), "%s%s", d.url, sync ? "?synchronous=full" : "");
    struct ts_producer_args args = {.n = 30,
                                    .size = 3000,
                                    .prefix = "k",
                                    .once = true,
                                    .no_sync = true,
                                    .url = url,
                                    .env = {d.preload, d.control, d.asan}};
    ts_rig_producer(&r, &f->a, &args);
    assert_true(ts_proc_wait(&f->a, TS_SOON));
    int code = ts_proc_code(&f->a);
    if (code != 0 && code != 3 && code != 4)
        print_message("write %d sync %d errno %d: exit %d\n", write, sync, error, code);
    assert_true(code == 0 || code == 3 || code == 4); /* done, some refused, could not open */
    struct ts_fix other = {.r = r};
    lade *q;
    lade_err err;
    lade_options o = ts_rig_options();
    int rc = lade_open(&q, d.url, &o, &err);
    if (rc < 0)
        print_message("write %d sync %d errno %d: open: %s\n", write, sync, error, err.text);
    assert_int_equal(rc, 0);
    compare_with_ledger(&other, q);
    lade_finding *finding;
    size_t n;
    assert_int_equal(lade_check(q, &finding, &n, NULL), 0);
    assert_int_equal(n, 0);
    lade_free(finding);
    lade_close(q);
    check_integrity(d.folder);
    ts_disk_free(&d);
    ts_rig_stop(&r);
}

static void c052_failure_of_the_kth_write_or_sync_is_never_a_third_state(void **state)
{
    struct ts_fix *f = *state;
    int step = LB_MAX(6 / ts_rig_rounds(1), 1);
    for (int k = 1; k <= 120; k += k < 20 ? 2 : step) {
        fail_one_call(f, k, 0, ENOSPC);
        fail_one_call(f, k + 1, 0, EIO);
    }
    for (int k = 1; k <= 40; k += LB_MIN(step, 3))
        fail_one_call(f, 0, k, EIO);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--purge") == 0)
        return purge_ready(argv[2]);
    ts_rig_main(argc, argv);
    const struct CMUnitTest tests[] = {
        TS_TEST(c046_eight_processes_on_one_file_see_no_busy),
        TS_TEST(c047_heartbeats_ride_through_a_lock_held_again_and_again),
        TS_TEST(c008_worker_shut_out_for_longer_than_its_lease_comes_back),
        TS_TEST(c048_log_starts_over_under_readers_and_shrinks_after_a_pin),
        TS_TEST(c050_full_disk_refuses_and_works_again_when_there_is_room),
        TS_TEST(c050_worker_outlives_a_full_disk),
        TS_TEST(c051_file_on_a_full_disk_can_be_opened_and_emptied),
        TS_TEST(c052_failure_of_the_kth_write_or_sync_is_never_a_third_state),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
