#include "support/proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"

#define ENV_MAX 512

extern char **environ;

static struct {
    pid_t pid[TS_PROC_MAX]; /* 0 = free */
    bool at_exit;           /* kill_all is registered */
} alive;

void ts_nap_ms(int ms)
{
    struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000L};
    while (nanosleep(&left, &left) < 0 && errno == EINTR)
        ;
}

const char *ts_proc_self(void)
{
    static char path[4096];
    if (!path[0]) {
        ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
        LB_CHECK(n > 0);
    }
    return path;
}

/* Between fork and exec: only what a signal handler may call, since other threads may hold any lock. */
static _Noreturn void become_child(const char *const *argv, char **env, int log_fd, pid_t parent)
{
    sigset_t none;
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
        _exit(126);
    int null_fd = open("/dev/null", O_RDONLY);
    if (null_fd < 0 || dup2(null_fd, 0) < 0)
        _exit(126);
    if (log_fd >= 0 && (dup2(log_fd, 1) < 0 || dup2(log_fd, 2) < 0))
        _exit(126);
    (void)close_range(3, ~0U, 0);
    (void)execvpe(argv[0], (char *const *)argv, env);
    _exit(127);
}

/* The environment of the child, made before the fork: strings of `more` hide those of the same name. */
static void merge_env(char **out, const char *const *more)
{
    size_t n = 0;
    for (size_t i = 0; more && more[i]; i++) {
        LB_CHECK(n + 1 < ENV_MAX);
        out[n++] = (char *)more[i];
    }
    size_t own = n;
    for (char **e = environ; *e; e++) {
        bool hidden = false;
        size_t len = strcspn(*e, "=");
        for (size_t i = 0; i < own; i++)
            hidden |= strncmp(out[i], *e, len) == 0 && out[i][len] == '=';
        LB_CHECK(n + 1 < ENV_MAX);
        if (!hidden)
            out[n++] = *e;
    }
    out[n] = NULL;
}

bool ts_proc_start(struct ts_proc *p, const char *const *argv, const char *const *env,
                   const char *log)
{
    *p = (struct ts_proc){.slot = -1};
    for (int i = 0; i < TS_PROC_MAX && p->slot < 0; i++) {
        if (alive.pid[i] == 0)
            p->slot = i;
    }
    if (p->slot < 0) {
        (void)fprintf(stderr, "ts_proc_start: %d children are alive already\n", TS_PROC_MAX);
        return false;
    }
    if (!alive.at_exit)
        alive.at_exit = atexit(ts_proc_kill_all) == 0;
    int log_fd = log ? open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
    if (log && log_fd < 0) {
        perror(log);
        return false;
    }
    char *merged[ENV_MAX];
    merge_env(merged, env);
    (void)fflush(NULL);
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0)
        become_child(argv, merged, log_fd, parent);
    if (log_fd >= 0)
        (void)close(log_fd);
    if (pid < 0) {
        perror("fork");
        return false;
    }
    p->pid = pid;
    alive.pid[p->slot] = pid;
    return true;
}

static bool reap(struct ts_proc *p, int flags)
{
    pid_t got;
    do {
        got = waitpid(p->pid, &p->status, flags);
    } while (got < 0 && errno == EINTR);
    if (got != p->pid)
        return false;
    p->ended = true;
    alive.pid[p->slot] = 0;
    return true;
}

bool ts_proc_wait(struct ts_proc *p, int64_t timeout_ns)
{
    if (p->pid == 0 || p->ended)
        return p->ended;
    return TS_UNTIL(timeout_ns, reap(p, WNOHANG));
}

int ts_proc_code(const struct ts_proc *p)
{
    if (!p->ended)
        return -1;
    return WIFEXITED(p->status) ? WEXITSTATUS(p->status) : 128 + WTERMSIG(p->status);
}

void ts_proc_signal(struct ts_proc *p, int signum)
{
    if (p->pid > 0 && !p->ended)
        (void)kill(p->pid, signum);
}

void ts_proc_kill(struct ts_proc *p)
{
    if (p->pid <= 0 || p->ended)
        return;
    (void)kill(p->pid, SIGKILL);
    (void)reap(p, 0);
}

void ts_proc_kill_all(void)
{
    for (int i = 0; i < TS_PROC_MAX; i++) {
        if (alive.pid[i] == 0)
            continue;
        (void)kill(alive.pid[i], SIGKILL);
        while (waitpid(alive.pid[i], NULL, 0) < 0 && errno == EINTR)
            ;
        alive.pid[i] = 0;
    }
}

int ts_proc_n_fds(pid_t pid)
{
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    DIR *d = opendir(path);
    if (!d)
        return -1;
    int n = 0;
    for (const struct dirent *e = readdir(d); e; e = readdir(d))
        n += e->d_name[0] != '.';
    (void)closedir(d);
    return n;
}

int64_t ts_proc_rss(pid_t pid)
{
    char path[64];
    long long size = 0, resident = -1;
    (void)snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
    FILE *f = fopen(path, "re");
    if (!f)
        return -1;
    int n = fscanf(f, "%lld %lld", &size, &resident); /* NOLINT(cert-err34-c): kernel's numbers */
    (void)fclose(f);
    return n == 2 ? resident * sysconf(_SC_PAGESIZE) : -1;
}
