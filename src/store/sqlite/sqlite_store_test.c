/* sqlite_store_test.c - the URL, the file and its directory, the log */
#include "store/sqlite/sqlite_store.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <unistd.h>

#include "queue/beat.h"
#include "store/sqlite/filesystem.h"
#include "support/sqlite_kit.h"

/* url -------------------------------------------------------------------------------------------------------------- */

static void assert_url_refused(const char *url, const char *says)
{
    struct lq_store *s;
    (void)snprintf(sk.url, sizeof(sk.url), "%s", url);
    assert_int_equal(sk_try_open(&s), -LADE_EINVAL);
    if (!strstr(sk.err.text, says))
        fail_msg("%s: %s", url, sk.err.text);
}

static void a_bad_url_is_refused_with_its_part(void **state)
{
    (void)state;
    assert_url_refused("sqlite:", "no path");
    assert_url_refused("sqlite:?synchronous=full", "no path");
    assert_url_refused("sqlite::memory:", "memory:");
    assert_url_refused("sqlite://jobs.db", "names a host");
    assert_url_refused("sqlite:x?sync=full", "'sync' is unknown");
    assert_url_refused("sqlite:x?synchronous", "normal or full");
    assert_url_refused("sqlite:x?synchronous=off", "'off'");
    assert_url_refused("sqlite:x?busy_timeout=", "busy_timeout");
    assert_url_refused("sqlite:x?busy_timeout=0", "'0'");
    assert_url_refused("sqlite:x?busy_timeout=-5", "'-5'");
    assert_url_refused("sqlite:x?busy_timeout=5s", "'5s'");
    assert_url_refused("sqlite:x?busy_timeout=99999999999999999999", "busy_timeout");
    assert_int_equal(access("x", F_OK), -1);
}

static void options_and_other_spellings_are_taken(void **state)
{
    (void)state;

    static const struct {
        const char *before, *after;
    } spelling[] = {{"file:", ""},
                    {"sqlite://", ""},
                    {"sqlite:", "?"},
                    {"sqlite:", "?busy_timeout=50&synchronous=normal"},
                    {"sqlite:", "?synchronous=full"}};

    for (size_t i = 0; i < LB_ARRAY_LEN(spelling); i++) {
        (void)snprintf(sk.url, sizeof(sk.url), "%s%s%s", spelling[i].before, sk.path,
                       spelling[i].after);
        struct lq_store *s = sk_open();
        int64_t level = -1;
        assert_int_equal(ls_sqlite_db_int(&ls_sqlite_of(s)->writer.db, "PRAGMA synchronous", &level,
                                          "test", &sk.err),
                         0);
        assert_int_equal(level, strstr(spelling[i].after, "full") ? 2 : 1);
        lq_store_close(s);
    }
}

/* file and directory ----------------------------------------------------------------------------------------------- */

static void a_missing_directory_is_named(void **state)
{
    (void)state;
    struct lq_store *s;
    (void)snprintf(sk.url, sizeof(sk.url), "sqlite:%s/nowhere/jobs.db", sk.dir.path);
    assert_int_equal(sk_try_open(&s), -LADE_EUNAVAILABLE);
    assert_non_null(strstr(sk.err.text, "nowhere does not exist"));
}

static void a_directory_is_no_file(void **state)
{
    (void)state;
    struct lq_store *s;
    (void)snprintf(sk.url, sizeof(sk.url), "sqlite:%s", sk.dir.path);
    assert_int_equal(sk_try_open(&s), -LADE_EINVAL);
    assert_non_null(strstr(sk.err.text, "is a directory"));
}

static void what_is_no_regular_file_is_told_as_what_it_is(void **state)
{
    (void)state;
    struct lq_store *s;
    (void)snprintf(sk.url, sizeof(sk.url), "sqlite:/dev/null");
    assert_int_equal(sk_try_open(&s), -LADE_EINVAL);
    assert_non_null(strstr(sk.err.text, "/dev/null is a device"));
    assert_int_equal(mkfifo(sk.path, 0600), 0);
    (void)snprintf(sk.url, sizeof(sk.url), "sqlite:%s", sk.path);
    assert_int_equal(sk_try_open(&s), -LADE_EINVAL);
    assert_non_null(strstr(sk.err.text, "is a pipe"));
}

/* For root nothing is read-only: then as nobody. */
static int open_as_user(const char *says)
{
    struct lq_store *s;
    if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
        return 1;
    int rc = sk_try_open(&s);
    if (rc == 0)
        rc = sk_try_put(s, "a", 1);
    if (rc == -LADE_EACCESS && strstr(sk.err.text, says))
        return 0;
    (void)fprintf(stderr, "%d %s\n", rc, sk.err.text);
    return 2;
}

static void a_read_only_directory_is_told(void **state)
{
    (void)state;
    assert_int_equal(chmod(sk.dir.path, 0555), 0);
    assert_int_equal(sk_wait_child(sk_fork(open_as_user, sk.dir.path)), 0);
}

static void a_read_only_file_is_told(void **state)
{
    (void)state;
    lq_store_close(sk_open());
    assert_int_equal(chmod(sk.path, 0444), 0);
    assert_int_equal(chmod(sk.dir.path, 0777), 0);
    assert_int_equal(sk_wait_child(sk_fork(open_as_user, sk.path)), 0);
}

/* C-053: by the type that statfs gives. */
static void network_file_systems_are_refused(void **state)
{
    (void)state;
    static const long bad[] = {
        NFS_SUPER_MAGIC, SMB_SUPER_MAGIC,  CIFS_SUPER_MAGIC,           SMB2_SUPER_MAGIC,
        V9FS_MAGIC,      FUSE_SUPER_MAGIC, (long)(int)CIFS_SUPER_MAGIC};
    static const long good[] = {EXT4_SUPER_MAGIC, TMPFS_MAGIC, BTRFS_SUPER_MAGIC, XFS_SUPER_MAGIC,
                                OVERLAYFS_SUPER_MAGIC};
    for (size_t i = 0; i < LB_ARRAY_LEN(bad); i++)
        assert_non_null(ls_sqlite_filesystem_refused(bad[i]));
    for (size_t i = 0; i < LB_ARRAY_LEN(good); i++)
        assert_null(ls_sqlite_filesystem_refused(good[i]));
    assert_int_equal(ls_sqlite_filesystem_check(sk.path, &sk.err), 0);
}

static void a_file_that_is_removed_while_open_is_told(void **state)
{
    (void)state;
    struct lq_store *s = sk_open();
    sk_put(s, "a", 1);
    assert_int_equal(unlink(sk.path), 0);
    assert_true(TS_UNTIL(10 * LADE_SECOND, sk_try_put(s, "b", 1) == -LADE_EIO));
    assert_non_null(strstr(sk.err.text, "removed or replaced"));
    int fd = open(sk.path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(close(fd), 0);
    assert_true(TS_UNTIL(10 * LADE_SECOND, sk_try_put(s, "c", 1) == -LADE_EIO));
    lq_store_close(s);
}

static void opening_fails_cleanly_without_memory(void **state)
{
    (void)state;
    int rc = -LADE_ENOMEM;
    uint64_t n = 1;
    for (; rc != 0; n++) {
        struct lq_store *s;
        lb_mem_fail_after(n);
        rc = sk_try_open(&s);
        lb_mem_fail_after(0);
        assert_true(rc == 0 || rc == -LADE_ENOMEM);
        lq_store_close(s);
        assert_true(n < 100);
    }
    assert_true(n > 2);
}

/* the log ---------------------------------------------------------------------------------------------------------- */

static void assert_not_busy(struct lq_store *s, const char *after)
{
    struct ls_sqlite *ss = ls_sqlite_of(s);
    if (ls_sqlite_db_is_busy(&ss->writer.db) || ls_sqlite_db_is_busy(&ss->beat) ||
        ls_sqlite_db_is_busy(&ss->read))
        fail_msg("a statement is busy after %s", after);
}

#define CALL(s, rc, call)                    \
    do {                                     \
        int got_ = (call);                   \
        if (got_ != (rc))                    \
            fail_msg("%s: %d", #call, got_); \
        assert_not_busy((s), #call);         \
    } while (0)

static void ignore_finding(void *ctx, const char *queue, const char *text)
{
    (void)ctx;
    (void)queue;
    (void)text;
}

static const char *const lane = "q";

static void call_put_and_settle(struct lq_store *s)
{
    struct lq_put unique = {.queue = lane,
                            .id = lb_slice_str("u"),
                            .body = lb_slice_str("\1"
                                                 "4x"),
                            .level = 4,
                            .unique = lb_slice_str("key"),
                            .unique_ttl_ms = 60000};
    CALL(s, 0, sk_try_put(s, "a", 20));
    CALL(s, 0, sk_try_put(s, "a", 20)); /* duplicates */
    CALL(s, 0, s->ops->put(s, &unique, 1, &sk.err));
    unique.id = lb_slice_str("v");
    CALL(s, 0, s->ops->put(s, &unique, 1, &sk.err));
    CALL(s, 0, sk_try_join(s, "w", 60000));
    CALL(s, 5, sk_try_work(s, "w", 5, LQ_TO_COMPLETED));
    CALL(s, 2, sk_try_work(s, "w", 2, LQ_TO_DEAD));
    CALL(s, 2, sk_try_work(s, "w", 2, LQ_TO_RETRYING));
    CALL(s, 1, sk_try_work(s, "w", 1, LQ_TO_READY));
    CALL(s, LADE_STALE, sk_try_work(s, "unknown", 1, LQ_TO_COMPLETED));
}

static void call_leases(struct lq_store *s)
{
    const struct lq_store_ops *o = s->ops;
    struct lq_beat beat = {.worker = "w", .name = "w", .lanes = sk_lanes, .lease_ms = 60000};
    struct lq_stop stop[4];
    struct lq_leased_vec got = {0};
    struct lq_take take = {.worker = "w", .lanes = sk_lanes, .max = 3, .register_idle = true};
    size_t n;
    int64_t next;
    lb_arena_init(&got.arena);
    CALL(s, 0, o->renew(s, &beat, stop, 4, &n, &sk.err));
    CALL(s, LADE_EMPTY, o->reclaim(s, &take, &got, &sk.err));
    CALL(s, 0, o->settle_take(s, NULL, 0, &take, &got, &sk.err));
    assert_int_equal(got.n, 3);
    struct lq_lease lease = {
        .queue = lane, .id = lb_slice_of(got.job[0].id), .fence = got.job[0].fence};
    CALL(s, 0, o->begin(s, "w", &lease, 1, &sk.err));
    struct lb_slice id = lb_slice_of(got.job[0].id);
    int outcome;
    CALL(s, 0, o->act(s, lane, LADE_JOB_CANCEL, &id, 1, &outcome, &sk.err));
    CALL(s, LADE_EMPTY, o->wait(s, "w", sk_lanes, 0, &sk.err));
    CALL(s, 0, o->promote(s, sk_lanes, 10, &n, &next, &sk.err));
    CALL(s, 0, o->trim(s, sk_lanes, 10, &n, &sk.err));
    lb_arena_fini(&got.arena);
}

static void call_looks(struct lq_store *s)
{
    const struct lq_store_ops *o = s->ops;
    struct lq_row_vec rows = {0};
    struct lb_arena arena;
    const char **names;
    lade_queue_info info;
    lade_worker_info *workers;
    size_t n;
    lb_arena_init(&rows.arena);
    lb_arena_init(&arena);
    CALL(s, 0, o->queues(s, &arena, &names, &n, &sk.err));
    CALL(s, 0, o->count(s, lane, &info, &sk.err));
    CALL(s, LADE_NOT_FOUND, o->count(s, "other", &info, &sk.err));
    for (int state = 0; state < LADE_N_STATES; state++) {
        lade_cursor cursor = {0};
        int rc = o->list(s, lane, (enum lade_state)state, &cursor, 2, &rows, &sk.err);
        assert_true(rc == 0 || rc == LADE_EMPTY);
        assert_not_busy(s, "list");
    }
    CALL(s, 0, o->get(s, lane, lb_slice_str("a0"), &rows, &sk.err));
    CALL(s, LADE_NOT_FOUND, o->get(s, lane, lb_slice_str("missing"), &rows, &sk.err));
    CALL(s, 0, o->workers(s, &arena, &workers, &n, &sk.err));
    CALL(s, 0, o->check(s, ignore_finding, NULL, &sk.err));
    lb_arena_fini(&rows.arena);
    lb_arena_fini(&arena);
}

static void call_acts(struct lq_store *s)
{
    const struct lq_store_ops *o = s->ops;
    struct lb_slice id[] = {lb_slice_str("a0"), lb_slice_str("a15"), lb_slice_str("missing")};
    int outcome[3];
    size_t n;
    for (int verb = LADE_JOB_RETRY; verb <= LADE_JOB_REMOVE; verb++) {
        assert_true(o->act(s, lane, (enum lade_job_verb)verb, id, 3, outcome, &sk.err) >= 0);
        assert_not_busy(s, "act");
    }
    CALL(s, 0, o->redrive(s, lane, 10, &n, &sk.err));
    CALL(s, 0, o->pause(s, lane, true, &sk.err));
    CALL(s, 0, o->pause(s, lane, false, &sk.err));
    CALL(s, LADE_WRONG_STATE, o->forget(s, lane, &sk.err));
    CALL(s, LADE_MORE, o->purge(s, lane, LADE_STATE_READY, 1, &n, &sk.err));
    CALL(s, 0, o->leave(s, "w", sk_lanes, &sk.err));
}

/* C-049: no statement of any connection is left between its first row and its end, whatever the op and its outcome. */
static void no_statement_stays_busy_after_any_op(void **state)
{
    (void)state;
    struct lq_store *s = sk_open();
    call_put_and_settle(s);
    call_leases(s);
    call_looks(s);
    call_acts(s);
    lq_store_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SK_TEST(a_bad_url_is_refused_with_its_part),
        SK_TEST(options_and_other_spellings_are_taken),
        SK_TEST(a_missing_directory_is_named),
        SK_TEST(a_directory_is_no_file),
        SK_TEST(what_is_no_regular_file_is_told_as_what_it_is),
        SK_TEST(a_read_only_directory_is_told),
        SK_TEST(a_read_only_file_is_told),
        SK_TEST(network_file_systems_are_refused),
        SK_TEST(a_file_that_is_removed_while_open_is_told),
        SK_TEST(opening_fails_cleanly_without_memory),
        SK_TEST(no_statement_stays_busy_after_any_op),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
