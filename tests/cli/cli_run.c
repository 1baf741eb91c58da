#include "cli/cli_run.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"

static bool on_redis, in_cluster;
static struct ts_redis redis;
static struct ts_tmpdir dir;

const char *lade_bin(void)
{
    const char *bin = getenv("LADE_BIN");
    return bin && bin[0] ? bin : "build/dev/bin/lade";
}

static int make_file(const void *p, size_t n)
{
    int fd = memfd_create("run", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(n ? write(fd, p, n) : 0, (ssize_t)n);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    return fd;
}

static char *read_fd(int fd, size_t *n)
{
    struct stat st;
    assert_int_equal(fstat(fd, &st), 0);
    char *text = malloc((size_t)st.st_size + 1);
    assert_non_null(text);
    *n = (size_t)st.st_size;
    assert_int_equal(*n ? pread(fd, text, *n, 0) : 0, (ssize_t)*n);
    text[*n] = '\0';
    (void)close(fd);
    return text;
}

/* Opened before rights are dropped: the way to it may be closed to nobody. */
static _Noreturn void become_lade(const int fds[3], bool as_nobody, const char *const *args)
{
    const char *argv[64] = {lade_bin()};
    extern char **environ;
    int bin = open(argv[0], O_RDONLY);
    for (size_t i = 0; args[i]; i++)
        argv[i + 1] = args[i];
    for (int i = 0; i < 3; i++)
        (void)dup2(fds[i], i);
    (void)signal(SIGPIPE, SIG_DFL);
    if (as_nobody && geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
        _exit(125);
    (void)fexecve(bin, (char *const *)argv, environ);
    _exit(126);
}

static int wait_for(pid_t pid)
{
    int64_t deadline = lb_deadline_in(CLI_RUN_DEADLINE);
    int status = 0;
    while (waitpid(pid, &status, WNOHANG) == 0) {
        if (lb_clock_mono() > deadline) {
            (void)kill(pid, SIGKILL);
            (void)waitpid(pid, &status, 0);
            return -1;
        }
        ts_nap_ms(1);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void run_args(struct cli_run *r, const struct cli_run_with *with, const char *const *args)
{
    struct cli_run_with none = {0};
    with = with ? with : &none;
    run_free(r);
    int fds[3] = {make_file(with->in, with->n_in), make_file(NULL, 0), make_file(NULL, 0)};
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        become_lade(fds, with->as_nobody, args);
    r->code = wait_for(pid);
    (void)close(fds[0]);
    r->out = read_fd(fds[1], &r->n_out);
    r->err = read_fd(fds[2], &r->n_err);
    if (r->code == -1)
        fail_msg("lade %s ... did not end\nstdout: %s\nstderr: %s", args[0], r->out, r->err);
}

void run_free(struct cli_run *r)
{
    free(r->out);
    free(r->err);
    *r = (struct cli_run){0};
}

void assert_code_at(const struct cli_run *r, int code, const char *file, int line)
{
    if (r->code == code)
        return;
    print_error("%s:%d: exit %d, not %d\nstdout: %.2000s\nstderr: %.4000s\n", file, line, r->code,
                code, r->out, r->err);
    _fail(file, line);
}

void assert_says_at(const char *text, const char *wanted, const char *file, int line)
{
    if (strstr(text, wanted))
        return;
    print_error("%s:%d: does not say '%s' but: %.4000s\n", file, line, wanted, text);
    _fail(file, line);
}

json_t *run_json(const struct cli_run *r)
{
    json_error_t e;
    json_t *v = json_loadb(r->out, r->n_out, JSON_REJECT_DUPLICATES, &e);
    if (!v)
        fail_msg("no JSON: %s in: %.2000s", e.text, r->out);
    return v;
}

const char *run_word(struct cli_run *r)
{
    if (r->n_out > 0 && r->out[r->n_out - 1] == '\n')
        r->out[--r->n_out] = '\0';
    return r->out;
}

int64_t json_int_at(const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);
    if (!json_is_integer(v))
        fail_msg("no integer \"%s\"", key);
    return json_integer_value(v);
}

const char *json_text_at(const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);
    if (!json_is_string(v))
        fail_msg("no string \"%s\"", key);
    return json_string_value(v);
}

struct lade_id_text enqueue(const char *kind, const char *payload)
{
    struct lade_id_text id;
    struct cli_run r = {0};
    RUN(&r, "enqueue", "--kind", kind, "--payload", payload);
    assert_code(&r, 0);
    (void)snprintf(id.text, sizeof(id.text), "%s", run_word(&r));
    run_free(&r);
    return id;
}

json_t *job_of(const char *id)
{
    struct cli_run r = {0};
    RUN(&r, "job", "show", id, "--json");
    if (r.code != 3)
        assert_code(&r, 0);
    json_t *job = r.code == 0 ? run_json(&r) : NULL;
    run_free(&r);
    return job;
}

const char *state_of(const char *id)
{
    static char state[32];

    json_t *job = job_of(id);
    (void)snprintf(state, sizeof(state), "%s", job ? json_text_at(job, "state") : "gone");
    json_decref(job);
    return state;
}

int64_t total_of(const char *key)
{
    struct cli_run r = {0};
    RUN(&r, "stats", "--json");
    assert_code(&r, 0);
    json_t *stats = run_json(&r);
    int64_t n = json_int_at(json_object_get(stats, "total"), key);
    json_decref(stats);
    run_free(&r);
    return n;
}

const char *file_path(const char *name)
{
    static char path[256];

    return ts_tmpdir_path(&dir, name, path, sizeof(path));
}

void write_file(const char *name, const void *p, size_t n)
{
    int fd = open(file_path(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, p, n), (ssize_t)n);
    (void)close(fd);
}

const char *file_text(const char *name)
{
    static char *text;

    size_t n = 0;
    int fd = open(file_path(name), O_RDONLY | O_CLOEXEC);
    free(text);
    text = NULL;
    if (fd < 0)
        return "";
    text = read_fd(fd, &n);
    return text;
}

void start_lade(struct ts_proc *p, const char *const *args)
{
    const char *argv[64] = {lade_bin()};
    for (size_t i = 0; args[i]; i++)
        argv[i + 1] = args[i];
    assert_true(ts_proc_start(p, argv, NULL, file_path("log")));
}

const char *log_text(void)
{
    return file_text("log");
}

int end_lade(struct ts_proc *p)
{
    ts_proc_signal(p, SIGTERM);
    if (!ts_proc_wait(p, INT64_C(120) * 1000 * 1000 * 1000))
        fail_msg("the worker did not end at TERM: %s", log_text());
    return ts_proc_code(p);
}

bool is_cluster(void)
{
    return in_cluster;
}

bool is_redis(void)
{
    return on_redis;
}

int set_up_test(void **state)
{
    (void)state;
    char url[256];
    char reply[64];
    if (!ts_tmpdir_make(&dir))
        return -1;
    (void)snprintf(url, sizeof(url), "sqlite:%s/jobs.db", dir.path);
    if (on_redis && !ts_redis_ask(&redis, "FLUSHALL", reply, sizeof(reply)))
        return -1;
    (void)unsetenv("REDIS_URL");
    /* A SQLite store of no bytes is one without jobs: commands that only look make none. */
    write_file("jobs.db", "", 0);
    return setenv("LADE_URL", on_redis ? redis.url : url, 1);
}

int tear_down_test(void **state)
{
    (void)state;
    ts_proc_kill_all();
    ts_tmpdir_remove(&dir);
    return 0;
}

int run_group(int argc, char **argv, const char *name, const struct CMUnitTest *tests, size_t n)
{
    static const struct ts_redis_opts cluster = {.cluster = true};
    in_cluster = argc > 1 && strcmp(argv[1], "redis-cluster") == 0;
    on_redis = in_cluster || (argc > 1 && strcmp(argv[1], "redis") == 0);
    if (on_redis && !ts_redis_start(&redis, in_cluster ? &cluster : NULL))
        return 1;
    int failed = _cmocka_run_group_tests(name, tests, n, NULL, NULL);
    if (on_redis)
        ts_redis_stop(&redis);
    return failed;
}
