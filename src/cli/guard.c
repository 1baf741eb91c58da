#include "cli/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "base/err.h"

/* More groups than slots there can be (10,000); beyond it the newest would not be killed. */
#define GROUPS_MAX 16384

static pid_t groups[GROUPS_MAX];
static size_t n_groups;

static void note_message(int32_t message)
{
    if (message > 1 && n_groups < GROUPS_MAX) {
        groups[n_groups++] = message;
        return;
    }
    for (size_t i = 0; i < n_groups; i++) {
        if (groups[i] == -message) {
            groups[i] = groups[--n_groups];
            return;
        }
    }
}

/* The guard's whole life. Only async-signal-safe calls: it is a fork that never execs. */
static _Noreturn void run_guard(int fd)
{
    int32_t message = 0;
    for (;;) {
        ssize_t got = read(fd, &message, sizeof(message));
        if (got == (ssize_t)sizeof(message))
            note_message(message);
        else if (got >= 0 || errno != EINTR)
            break;
    }
    for (size_t i = 0; i < n_groups; i++)
        (void)kill(-groups[i], SIGKILL);
    _exit(EXIT_SUCCESS);
}

/* The guard must not hold the worker's terminal or pipes open, nor die of what the terminal sends the worker. */
static void leave_surroundings(int keep)
{
    sigset_t all;
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, NULL);
    (void)setsid();
    (void)prctl(PR_SET_NAME, "lade-guard");
    int null = open("/dev/null", O_RDWR);
    for (int fd = STDIN_FILENO; null >= 0 && fd <= STDERR_FILENO; fd++)
        (void)dup2(null, fd);
    if (keep > STDERR_FILENO + 1)
        (void)close_range(STDERR_FILENO + 1, (unsigned)keep - 1, 0);
    (void)close_range((unsigned)keep + 1, ~0U, 0);
}

int cli_guard_start(struct cli_guard *g, lade_err *err)
{
    int ends[2];
    *g = (struct cli_guard){.fd = -1, .pid = -1};
    if (pipe2(ends, O_CLOEXEC) != 0)
        return lb_fail_errno(err, errno, "work", "pipe");
    pid_t pid = fork();
    if (pid < 0) {
        int errnum = errno;
        (void)close(ends[0]);
        (void)close(ends[1]);
        return lb_fail_errno(err, errnum, "work", "fork");
    }
    if (pid == 0) {
        leave_surroundings(ends[0]);
        run_guard(ends[0]);
    }
    (void)close(ends[0]);
    *g = (struct cli_guard){.fd = ends[1], .pid = pid};
    return 0;
}

void cli_guard_stop(struct cli_guard *g)
{
    if (g->fd < 0)
        return;
    (void)close(g->fd);
    while (waitpid(g->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    *g = (struct cli_guard){.fd = -1, .pid = -1};
}

/* Four bytes into a pipe are written at once or not at all. */
static bool send_message(const struct cli_guard *g, int32_t message)
{
    ssize_t n = 0;
    do {
        n = write(g->fd, &message, sizeof(message));
    } while (n < 0 && errno == EINTR);
    return n == (ssize_t)sizeof(message);
}

bool cli_guard_announce(const struct cli_guard *g, pid_t pgid)
{
    return send_message(g, (int32_t)pgid);
}

bool cli_guard_forget(const struct cli_guard *g, pid_t pgid)
{
    return send_message(g, -(int32_t)pgid);
}

/* Reaps all that has ended. True, with the code to exit with, when the worker is among them. */
static bool reap(pid_t worker, int *code)
{
    bool is_over = false;
    int status = 0;
    pid_t pid = 0;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid != worker)
            continue;
        is_over = true;
        *code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    return is_over;
}

static _Noreturn void run_front(pid_t worker, const sigset_t *watched)
{
    int code = EXIT_FAILURE;
    while (!reap(worker, &code)) {
        int sig = sigwaitinfo(watched, NULL);
        if (sig > 0 && sig != SIGCHLD)
            (void)kill(worker, sig);
    }
    _exit(code);
}

int cli_guard_front(bool wanted, lade_err *err)
{
    static const int passed[] = {SIGTERM, SIGINT,  SIGQUIT, SIGHUP, SIGTSTP,
                                 SIGTTIN, SIGUSR1, SIGUSR2, SIGCONT};

    sigset_t watched;
    sigset_t before;
    if (getpid() != 1 && !wanted)
        return 0;
    /* Orphans come to PID 1 by themselves, and to another process when it says so. */
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0)
        return lb_fail_errno(err, errno, "work", "prctl");
    (void)sigemptyset(&watched);
    (void)sigaddset(&watched, SIGCHLD);
    for (size_t i = 0; i < LB_ARRAY_LEN(passed); i++)
        (void)sigaddset(&watched, passed[i]);
    (void)sigprocmask(SIG_BLOCK, &watched, &before);
    pid_t worker = fork();
    if (worker < 0)
        return lb_fail_errno(err, errno, "work", "fork");
    if (worker > 0)
        run_front(worker, &watched);
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    return 0;
}
