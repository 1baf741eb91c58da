#include "bench/child.h"

#include <lade/base.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/mem.h"
#include "bench/machine.h"

#define GRACE   (2 * LADE_SECOND)
#define LOOK_MS 100 /* a signal between the look at `stop` and the poll is seen this late */

struct pipes {
    int out[2], err[2];
};

static void close_one(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
}

static void set_environment(const struct bn_child *c)
{
    (void)unsetenv("GOMAXPROCS");
    for (const char *const *e = c->env; e && *e; e++) {
        char *own = strdup(*e);
        if (!own || putenv(own) != 0)
            _exit(127);
    }
}

static _Noreturn void become(const struct bn_child *c, const struct pipes *p, pid_t parent)
{
    sigset_t none;
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)setpgid(0, 0);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
        _exit(126);
    int in = open("/dev/null", O_RDONLY);
    if (in < 0 || dup2(in, 0) < 0)
        _exit(126);
    if (!c->show && (dup2(p->out[1], 1) < 0 || dup2(p->err[1], 2) < 0))
        _exit(126);
    (void)close_range(3, ~0U, 0);
    if (c->dir && chdir(c->dir) < 0) {
        perror(c->dir);
        _exit(127);
    }
    if (c->n_cpus > 0) {
        cpu_set_t set;
        bn_machine_cpus(c->n_cpus, &set);
        (void)sched_setaffinity(0, sizeof(set), &set);
    }
    set_environment(c);
    (void)execvp(c->argv[0], (char *const *)c->argv);
    (void)fprintf(stderr, "%s: %s\n", c->argv[0], strerror(errno));
    _exit(127);
}

/* Appends what is there; false at the end of the stream. */
static bool read_out(int fd, struct bn_child_end *end)
{
    ssize_t n = read(fd, end->out + end->n_out, BN_CHILD_OUT_MAX - end->n_out);
    if (n <= 0)
        return n < 0 && (errno == EINTR || errno == EAGAIN);
    end->n_out += (size_t)n;
    if (end->n_out == BN_CHILD_OUT_MAX) {
        end->too_much = true;
        return false;
    }
    return true;
}

/* Keeps the last BN_CHILD_ERR_MAX bytes. */
static bool read_err(int fd, struct bn_child_end *end)
{
    char piece[1024];
    ssize_t n = read(fd, piece, sizeof(piece));
    if (n <= 0)
        return n < 0 && (errno == EINTR || errno == EAGAIN);
    size_t have = strlen(end->err);
    for (ssize_t i = 0; i < n; i++) {
        if (piece[i] == '\0')
            piece[i] = ' ';
    }
    size_t over = have + (size_t)n > BN_CHILD_ERR_MAX ? have + (size_t)n - BN_CHILD_ERR_MAX : 0;
    memmove(end->err, end->err + over, have - over);
    memcpy(end->err + have - over, piece, (size_t)n);
    end->err[have - over + (size_t)n] = '\0';
    return true;
}

/* Signals the group as the time or the user demands; ends `too_much` at once. */
static void watch_clock(const struct bn_child *c, struct bn_child_end *end, pid_t pid,
                        int64_t deadline, int64_t *kill_at)
{
    if (*kill_at == LB_FOREVER) {
        end->stopped = c->stop && *c->stop;
        end->timed_out = !end->stopped && !end->too_much && lb_clock_mono() >= deadline;
        if (end->stopped || end->timed_out || end->too_much) {
            (void)kill(-pid, SIGTERM);
            *kill_at = lb_deadline_in(GRACE);
        }
    } else if (lb_clock_mono() >= *kill_at) {
        (void)kill(-pid, SIGKILL);
    }
}

static int ms_left(int64_t deadline, int64_t kill_at)
{
    int64_t left = LB_MIN(deadline, kill_at) - lb_clock_mono();
    return left <= 0 ? 1 : (int)LB_MIN(lb_ms_up(left), LOOK_MS);
}

/* Until the leader has ended; what it wrote before is read after. */
static void follow(const struct bn_child *c, struct bn_child_end *end, pid_t pid, struct pipes *p)
{
    int64_t deadline = lb_deadline_in(c->deadline_ns);
    int64_t kill_at = LB_FOREVER;
    int pidfd = pidfd_open(pid, 0);
    siginfo_t info = {0};
    for (;;) {
        struct pollfd fd[] = {{.fd = p->out[0], .events = POLLIN},
                              {.fd = p->err[0], .events = POLLIN},
                              {.fd = pidfd, .events = POLLIN}};
        (void)poll(fd, 3, ms_left(deadline, kill_at));
        if (fd[0].revents && !read_out(p->out[0], end))
            close_one(&p->out[0]);
        if (fd[1].revents && !read_err(p->err[0], end))
            close_one(&p->err[0]);
        info.si_pid = 0;
        if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid)
            break;
        watch_clock(c, end, pid, deadline, &kill_at);
    }
    /* The pid is ours until it is reaped, so the group cannot be another's. */
    (void)kill(-pid, SIGKILL);
    while (p->out[0] >= 0 && !end->too_much && read_out(p->out[0], end))
        ;
    while (p->err[0] >= 0 && read_err(p->err[0], end))
        ;
    close_one(&pidfd);
}

static void reap(struct bn_child_end *end, pid_t pid)
{
    struct rusage u = {0};
    int status = 0;
    while (wait4(pid, &status, 0, &u) < 0 && errno == EINTR)
        ;
    end->code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    end->cpu_s = (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
                 (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
    end->rss_bytes = (int64_t)u.ru_maxrss * 1024;
    end->out[end->n_out] = '\0';
}

static bool fail_start(struct bn_child_end *end, struct pipes *p, const char *what)
{
    (void)snprintf(end->err, sizeof(end->err), "%s: %s", what, strerror(errno));
    end->code = 127;
    close_one(&p->out[0]);
    close_one(&p->out[1]);
    close_one(&p->err[0]);
    close_one(&p->err[1]);
    return false;
}

bool bn_child_run(const struct bn_child *c, struct bn_child_end *end)
{
    struct pipes p = {{-1, -1}, {-1, -1}};
    int64_t began = lb_clock_mono();
    *end = (struct bn_child_end){.out = lb_malloc(BN_CHILD_OUT_MAX + 1)};
    if (!end->out)
        return fail_start(end, &p, "start");
    end->out[0] = '\0';
    if (pipe2(p.out, O_CLOEXEC) < 0 || pipe2(p.err, O_CLOEXEC) < 0)
        return fail_start(end, &p, "pipe");
    (void)fflush(NULL);
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0)
        become(c, &p, parent);
    if (pid < 0)
        return fail_start(end, &p, "fork");
    (void)setpgid(pid, pid); /* both sides do it: neither may run before it is so */
    close_one(&p.out[1]);
    close_one(&p.err[1]);
    (void)fcntl(p.out[0], F_SETFL, O_NONBLOCK);
    (void)fcntl(p.err[0], F_SETFL, O_NONBLOCK);
    follow(c, end, pid, &p);
    reap(end, pid);
    close_one(&p.out[0]);
    close_one(&p.err[0]);
    end->wall_s = (double)(lb_clock_mono() - began) / 1e9;
    return true;
}

void bn_child_free(struct bn_child_end *end)
{
    lb_free(end->out);
    end->out = NULL;
}

/* The last line that says something. */
static const char *last_line(char *text)
{
    size_t n = strlen(text);
    while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == ' '))
        text[--n] = '\0';
    char *nl = strrchr(text, '\n');
    return nl ? nl + 1 : text;
}

char *bn_child_problem(const struct bn_child_end *end, char *out, size_t size)
{
    char err[BN_CHILD_ERR_MAX + 1];
    memcpy(err, end->err, sizeof(err));
    const char *said = last_line(err);
    out[0] = '\0';
    if (end->stopped)
        (void)snprintf(out, size, "stopped");
    else if (end->timed_out)
        (void)snprintf(out, size, "did not end in time (%.0f s)%s%.300s", end->wall_s,
                       *said ? ": " : "", said);
    else if (end->too_much)
        (void)snprintf(out, size, "wrote more than %u bytes", BN_CHILD_OUT_MAX);
    else if (end->code > 128)
        (void)snprintf(out, size, "ended by signal %d%s%.300s", end->code - 128, *said ? ": " : "",
                       said);
    else if (end->code != 0)
        (void)snprintf(out, size, "exit status %d%s%.300s", end->code, *said ? ": " : "", said);
    return out;
}
