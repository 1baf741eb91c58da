#include "support/sqlite_kit.h"
#include "queue/beat.h"

#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct sk sk;

int sk_setup(void **state)
{
    (void)state;
    sk = (struct sk){0};
    if (!ts_tmpdir_make(&sk.dir))
        return -1;
    (void)ts_tmpdir_path(&sk.dir, "jobs.db", sk.path, sizeof(sk.path));
    (void)snprintf(sk.url, sizeof(sk.url), "sqlite:%s", sk.path);
    sk.config = (struct lq_store_config){.ns = "lade",
                                         .timeout_ms = 10000,
                                         .connect_timeout_ms = 5000,
                                         .keep_completed = {3600000, 1000},
                                         .keep_dead = {3600000, 10000},
                                         .body_max = 1 << 20};
    return 0;
}

int sk_teardown(void **state)
{
    (void)state;
    ts_tmpdir_remove(&sk.dir);
    return 0;
}

int sk_try_open(struct lq_store **out)
{
    static const struct lq_store_ops *const stores[] = {&ls_sqlite_ops};
    *out = NULL;
    sk.config.url = sk.url;
    return lq_store_open(out, stores, 1, &sk.config, &sk.err);
}

struct lq_store *sk_open(void)
{
    struct lq_store *s;
    if (sk_try_open(&s) != 0)
        fail_msg("open: %s", sk.err.text);
    return s;
}

int sk_try_put(struct lq_store *s, const char *prefix, size_t n)
{
    static const char body[] =
        "\1"
        "4 a body of some bytes, as long as a small job has it, more or less";
    struct lq_put *put = calloc(n, sizeof(*put));
    char(*id)[32] = calloc(n, sizeof(*id));
    int rc = put && id ? 0 : -LADE_ENOMEM;
    for (size_t i = 0; i < n && rc == 0; i++) {
        int len = snprintf(id[i], sizeof(id[i]), "%s%zu", prefix, i);
        put[i] = (struct lq_put){.queue = "q",
                                 .id = lb_slice(id[i], (size_t)len),
                                 .body = lb_slice(body, sizeof(body) - 1),
                                 .level = 4};
    }
    if (rc == 0)
        rc = lq_put(s, put, n, &sk.err);
    free(put);
    free(id);
    return rc;
}

void sk_put(struct lq_store *s, const char *prefix, size_t n)
{
    if (sk_try_put(s, prefix, n) != 0)
        fail_msg("put: %s", sk.err.text);
}

static const char *const lane = "q";
const struct lq_lanes sk_lanes = {&lane, 1};

int sk_try_join(struct lq_store *s, const char *worker, int64_t lease_ms)
{
    size_t n_stop;
    struct lq_beat beat = {
        .worker = worker, .name = worker, .lanes = sk_lanes, .lease_ms = lease_ms, .first = true};
    return lq_renew(s, &beat, NULL, 0, &n_stop, &sk.err);
}

int sk_try_work(struct lq_store *s, const char *worker, size_t max, enum lq_to to)
{
    struct lq_leased_vec out = {0};
    struct lq_take take = {.worker = worker, .lanes = sk_lanes, .max = max};
    lb_arena_init(&out.arena);
    int rc = lq_settle_take(s, NULL, 0, &take, &out, &sk.err);
    struct lq_settle *it = calloc(out.n + 1, sizeof(*it));
    for (size_t i = 0; i < out.n && rc == 0; i++)
        it[i] = (struct lq_settle){
            .queue = lane, .id = lb_slice_of(out.job[i].id), .fence = out.job[i].fence, .to = to};
    if (rc == 0 && out.n > 0)
        rc = lq_settle_take(s, it, out.n, NULL, &out, &sk.err);
    for (size_t i = 0; i < out.n && rc == 0; i++)
        rc = it[i].outcome == 0 ? 0 : -LADE_EPROTO;
    int n = (int)out.n;
    free(it);
    lb_arena_fini(&out.arena);
    return rc != 0 ? rc : n;
}

uint64_t sk_count(struct lq_store *s, enum lade_state state)
{
    lade_queue_info info;
    int rc = s->ops->count(s, lane, &info, &sk.err);
    if (rc == LADE_NOT_FOUND)
        return 0;
    if (rc != 0)
        fail_msg("count: %s", sk.err.text);
    return info.count[state];
}

static void print_finding(void *ctx, const char *queue, const char *text)
{
    (void)fprintf(stderr, "finding: %s: %s\n", queue, text);
    ++*(size_t *)ctx;
}

size_t sk_check(struct lq_store *s)
{
    size_t n = 0;
    int rc = s->ops->check(s, print_finding, &n, &sk.err);
    if (rc != 0)
        fail_msg("check: %s", sk.err.text);
    return n;
}

void sk_change_in_turn(void (*change)(struct lq_store *s), int n, int check_each)
{
    struct lq_store *s[3] = {sk_open(), sk_open(), sk_open()};
    assert_int_equal(sk_try_join(s[0], "w", 3600000), 0);
    sk_put(s[0], "first", 1);
    for (int i = 0; i < n; i++) {
        change(s[sk_draw(3)]);
        if (i % check_each == 0)
            assert_int_equal(sk_check(s[0]), 0);
    }
    assert_int_equal(sk_check(s[1]), 0);
    for (int i = 0; i < 3; i++)
        lq_store_close(s[i]);
}

static sqlite3 *open_file(void)
{
    sqlite3 *h;
    assert_int_equal(sqlite3_open(sk.path, &h), SQLITE_OK);
    return h;
}

void sk_sql(const char *sql)
{
    sqlite3 *h = open_file();
    assert_int_equal(sqlite3_exec(h, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(h), SQLITE_OK);
}

int64_t sk_ask_on(sqlite3 *h, const char *sql)
{
    sqlite3_stmt *st;
    assert_int_equal(sqlite3_prepare_v2(h, sql, -1, &st, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(st), SQLITE_ROW);
    int64_t v = sqlite3_column_int64(st, 0);
    assert_int_equal(sqlite3_finalize(st), SQLITE_OK);
    return v;
}

int64_t sk_ask(const char *sql)
{
    sqlite3 *h = open_file();
    int64_t v = sk_ask_on(h, sql);
    assert_int_equal(sqlite3_close(h), SQLITE_OK);
    return v;
}

unsigned sk_draw(unsigned n)
{
    static uint32_t x = 2463534242U; /* xorshift (Marsaglia 2003) */
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    return x % n;
}

size_t sk_size(const char *suffix)
{
    char name[192];
    struct stat st;
    (void)snprintf(name, sizeof(name), "%s%s", sk.path, suffix);
    return stat(name, &st) == 0 ? (size_t)st.st_size : 0;
}

int sk_fork(int (*fn)(const char *), const char *arg)
{
    (void)fflush(NULL);
    int pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        _exit(fn(arg));
    }
    assert_true(pid > 0);
    return pid;
}

int sk_wait_child(int pid)
{
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}
