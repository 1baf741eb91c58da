/* The CLI under signals, on the store that argv names */
#include "cli/cli_run.h"

#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"

#define SECONDS(n) (INT64_C(n) * 1000 * 1000 * 1000)
#define N_JOBS     150

static void enqueue_lines(int n)
{
    char text[8000];
    size_t at = 0;
    struct cli_run r = {0};
    for (int i = 0; i < n; i++)
        at += (size_t)snprintf(text + at, sizeof(text) - at, "%d\n", i);
    RUN_IN(&r, text, at, "enqueue", "-k", "k", "--lines", "-");
    assert_code(&r, 0);
    run_free(&r);
}

static size_t count_lines(const char *name)
{
    size_t n = 0;
    for (const char *p = file_text(name); *p; p++)
        n += *p == '\n';
    return n;
}

/* C-016: stopped and continued under load, the worker goes on and no job is lost or run twice for it. */
static void a_worker_stopped_and_continued_again_and_again_finishes_its_jobs(void **state)
{
    (void)state;
    char command[400];
    struct ts_proc p;
    enqueue_lines(N_JOBS);
    (void)snprintf(command, sizeof(command), "cat >> %s; echo >> %s; sleep 0.05", file_path("ran"),
                   file_path("ran"));
    START(&p, "work", "--drain", "--exec", command, "-c", "4");
    for (int i = 0; i < 60 && !ts_proc_wait(&p, SECONDS(1) / 5); i++) {
        ts_proc_signal(&p, SIGSTOP);
        ts_nap_ms(100);
        ts_proc_signal(&p, SIGCONT);
    }
    assert_true(ts_proc_wait(&p, SECONDS(180)));
    assert_int_equal(ts_proc_code(&p), 0);
    assert_int_equal(total_of("total_completed"), N_JOBS);
    assert_int_equal(total_of("total_failed"), 0);
    assert_null(strstr(log_text(), "lade: broken"));
}

/* C-016: signals that mean nothing to it do not disturb a worker, its handlers or an enqueue that reads a pipe. */
static void storms_of_winch_and_chld_change_nothing(void **state)
{
    (void)state;
    char command[400];
    struct ts_proc p;
    enqueue_lines(N_JOBS);
    (void)snprintf(command, sizeof(command), "echo >> %s; sleep 0.02", file_path("ran"));
    START(&p, "work", "--drain", "--exec", command, "-c", "4");
    /* It ends before the jobs do: a leak checker that stops threads at exit would never finish in it. */
    for (int i = 0; i < 2000 && count_lines("ran") < N_JOBS - 10; i++) {
        ts_proc_signal(&p, SIGWINCH);
        ts_proc_signal(&p, SIGCHLD);
        ts_proc_signal(&p, SIGCONT);
        ts_nap_ms(1);
    }
    assert_true(ts_proc_wait(&p, SECONDS(180)));
    assert_int_equal(ts_proc_code(&p), 0);
    assert_int_equal(total_of("total_completed"), N_JOBS);
    assert_int_equal(total_of("total_failed"), 0);
}

/* C-016: an enqueue that waits for lines is stopped, continued and poked, and reads on. */
static void an_enqueue_reading_a_pipe_survives_stop_and_storm(void **state)
{
    (void)state;
    int pipe_fds[2];
    int status = 0;
    assert_int_equal(pipe(pipe_fds), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)dup2(pipe_fds[0], STDIN_FILENO);
        (void)close(pipe_fds[0]);
        (void)close(pipe_fds[1]);
        (void)execl(lade_bin(), "lade", "enqueue", "-k", "k", "--lines", "-", "--quiet", NULL);
        _exit(126);
    }
    (void)close(pipe_fds[0]);
    for (int i = 0; i < 60; i++) {
        (void)kill(pid, SIGSTOP);
        (void)kill(pid, SIGWINCH);
        (void)kill(pid, SIGCHLD);
        (void)kill(pid, SIGCONT);
        assert_int_equal(write(pipe_fds[1], "line\n", 5), 5);
        ts_nap_ms(10);
    }
    (void)close(pipe_fds[1]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_int_equal(total_of("ready"), 60);
}

static int run_as_pid_1(void *arg)
{
    const char *const *argv = arg;
    /* The leak check at the end looks its process up in /proc, which knows it by another number out there. */
    if (getpid() == 1)
        (void)setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
    (void)execv(argv[0], (char *const *)argv);
    return 126;
}

/* PID 1 of a namespace where the system allows that, and otherwise by --init, which does the same. */
static pid_t start_as_init(const char *command, bool in_namespace)
{
    static char stack[64 << 10];

    const char *argv[] = {lade_bin(), "work", "--exec", command, "--init",
                          "--quiet",  "-c",   "2",      NULL};
    const char *namespaced[] = {lade_bin(), "work", "--exec", command, "--quiet", "-c", "2", NULL};
    pid_t pid = -1;
    if (in_namespace)
        pid =
            clone(run_as_pid_1, stack + sizeof(stack), CLONE_NEWPID | SIGCHLD, (void *)namespaced);
    if (pid < 0)
        pid = fork();
    if (pid == 0)
        _exit(run_as_pid_1((void *)argv));
    return pid;
}

/* Children of a process that have ended and were not reaped. */
static int count_zombies(pid_t parent)
{
    char path[300];
    char line[512];
    int n = 0;
    DIR *proc = opendir("/proc");
    assert_non_null(proc);
    for (struct dirent *e = readdir(proc); e; e = readdir(proc)) {
        (void)snprintf(path, sizeof(path), "/proc/%s/stat", e->d_name);
        FILE *stat = e->d_name[0] >= '1' && e->d_name[0] <= '9' ? fopen(path, "re") : NULL;
        if (!stat)
            continue;
        if (fgets(line, sizeof(line), stat) && strrchr(line, ')')) {
            const char *after = strrchr(line, ')') + 2;
            n += after[0] == 'Z' && strtol(after + 2, NULL, 10) == parent;
        }
        (void)fclose(stat);
    }
    (void)closedir(proc);
    return n;
}

static void check_init(bool in_namespace)
{
    char command[1024];
    int status = 0;
    char dir[256];
    /*
     * Each handler leaves a process in a session of its own, beyond its group, which ends a little later; and ends
     * itself only when that one has left the group.
     */
    (void)snprintf(dir, sizeof(dir), "%s", file_path("."));
    (void)snprintf(command, sizeof(command),
                   "cd %s; setsid sh -c 'echo > on-$LADE_JOB_ID; sleep 0.2; echo >> ended' "
                   ">/dev/null 2>&1 & until [ -s %s/on-$LADE_JOB_ID ]; do sleep 0.01; done",
                   dir, dir);
    for (int i = 0; i < 5; i++)
        (void)enqueue("k", "");
    pid_t pid = start_as_init(command, in_namespace);
    assert_true(pid > 0);
    bool done =
        TS_UNTIL(SECONDS(60), total_of("total_completed") == 5 && count_lines("ended") == 5);
    bool clean = TS_UNTIL(SECONDS(60), count_zombies(pid) == 0);
    (void)kill(pid, SIGTERM);
    pid_t ended = 0;
    if (!TS_UNTIL(SECONDS(60), (ended = waitpid(pid, &status, WNOHANG)) != 0)) {
        (void)kill(pid, SIGKILL);
        (void)waitpid(pid, &status, 0);
        fail_msg("TERM was ignored");
    }
    assert_true(done);
    assert_true(clean);
    assert_int_equal(ended, pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* C-015: as PID 1 it obeys TERM, reaps what its handlers orphan, and hands on its exit code. */
static void as_pid_1_it_ends_at_term_and_reaps_orphans(void **state)
{
    (void)state;
    check_init(true);
}

/* C-015 */
static void with_init_it_reaps_orphans_as_pid_1_does(void **state)
{
    (void)state;
    check_init(false);
}

/* A terminal that closes may send HUP more than once; the worker finishes what it runs, as at TERM. */
static void a_closed_terminal_drains_the_worker(void **state)
{
    (void)state;
    char command[700];
    char go[300];
    struct ts_proc p;
    (void)enqueue("k", "p");
    (void)snprintf(go, sizeof(go), "%s", file_path("go"));
    (void)snprintf(command, sizeof(command), "echo >> %s; while ! test -e %s; do sleep 0.01; done",
                   file_path("ran"), go);
    START(&p, "work", "--exec", command, "-c", "1", "--shutdown-timeout", "10m");
    assert_true(TS_UNTIL(SECONDS(120), count_lines("ran") == 1));
    ts_proc_signal(&p, SIGHUP);
    ts_proc_signal(&p, SIGHUP);
    struct lade_id_text next = enqueue("k", "p");
    assert_false(ts_proc_wait(&p, SECONDS(1) / 5));
    ts_proc_signal(&p, SIGHUP);
    write_file("go", "", 0);
    assert_true(ts_proc_wait(&p, SECONDS(180)));
    assert_int_equal(ts_proc_code(&p), 0);
    assert_int_equal(total_of("total_completed"), 1);
    assert_string_equal(state_of(next.text), "ready");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        ON_STORE(a_worker_stopped_and_continued_again_and_again_finishes_its_jobs),
        ON_STORE(storms_of_winch_and_chld_change_nothing),
        ON_STORE(an_enqueue_reading_a_pipe_survives_stop_and_storm),
        ON_STORE(as_pid_1_it_ends_at_term_and_reaps_orphans),
        ON_STORE(a_closed_terminal_drains_the_worker),
        ON_STORE(with_init_it_reaps_orphans_as_pid_1_does),
    };
    return run_group(argc, argv, "signal", tests, LB_ARRAY_LEN(tests));
}
