/*
 * redis_server.c - fork, exec, and wait for PONG
 *
 * Ports: the system gives a free one to a socket that is closed again before the server binds it. Another process can
 * take it in between; the server then exits and the start is tried again with a new port, START_TRIES times.
 */
#include "support/redis_server.h"

#include <lade/base.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"

#define START_TRIES 5
#define START_NS    (20 * LADE_SECOND)
#define ASK_NS      (5 * LADE_SECOND)

static void pause_a_little(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
}

static int choose_port(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(a);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int port = -1;
    if (fd >= 0 && bind(fd, (struct sockaddr *)&a, len) == 0 &&
        getsockname(fd, (struct sockaddr *)&a, &len) == 0)
        port = ntohs(a.sin_port);
    if (fd >= 0)
        (void)close(fd);
    return port;
}

struct args {
    const char *v[TS_REDIS_ARGS_MAX];
    size_t n;
    char port[12], tls_port[12], bus_port[12];
};

static void add_pair(struct args *a, const char *name, const char *value)
{
    LB_CHECK(a->n + 3 <= TS_REDIS_ARGS_MAX);
    a->v[a->n++] = name;
    a->v[a->n++] = value;
}

static const char *program_of(const struct ts_redis *r)
{
    const char *named = getenv("LADE_TEST_REDIS");
    return r->opts.program ? r->opts.program : named ? named : "redis-server";
}

static void make_args(const struct ts_redis *r, struct args *a)
{
    a->n = 0;
    a->v[a->n++] = program_of(r);
    (void)snprintf(a->port, sizeof(a->port), "%d", r->port);
    (void)snprintf(a->tls_port, sizeof(a->tls_port), "%d", r->tls_port);
    add_pair(a, "--dir", r->dir.path);
    add_pair(a, "--unixsocket", r->socket);
    add_pair(a, "--port", a->port);
    add_pair(a, "--bind", "127.0.0.1");
    add_pair(a, "--save", "");
    add_pair(a, "--appendonly", "no");
    add_pair(a, "--daemonize", "no");
    if (r->tls_port) {
        add_pair(a, "--tls-port", a->tls_port);
        add_pair(a, "--tls-auth-clients", "no");
    }
    if (r->opts.password)
        add_pair(a, "--requirepass", r->opts.password);
    if (r->opts.cluster) {
        (void)snprintf(a->bus_port, sizeof(a->bus_port), "%d", r->bus_port);
        add_pair(a, "--cluster-enabled", "yes");
        add_pair(a, "--cluster-port", a->bus_port);
    }
    for (const char *const *p = r->opts.args; p && *p; p++) {
        LB_CHECK(a->n + 1 < TS_REDIS_ARGS_MAX);
        a->v[a->n++] = *p;
    }
    a->v[a->n] = NULL;
}

/* Between fork and exec: only what a signal handler may call, since other threads may have held any lock. */
static _Noreturn void become_server(const struct args *a, int log_fd, pid_t parent)
{
    sigset_t none;
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
        _exit(126);
    (void)setpgid(0, 0); /* ^C in the terminal reaches the test, which stops the server itself */
    if (dup2(log_fd, 1) < 0 || dup2(log_fd, 2) < 0)
        _exit(126);
    (void)close_range(3, ~0U, 0);
    (void)execvp(a->v[0], (char *const *)a->v);
    _exit(127);
}

static bool spawn(struct ts_redis *r)
{
    char log[TS_DIR_MAX + 8];
    struct args a;
    make_args(r, &a);
    int fd = open(ts_tmpdir_path(&r->dir, "log", log, sizeof(log)),
                  O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0) {
        perror(log);
        return false;
    }
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0)
        become_server(&a, fd, parent);
    (void)close(fd);
    if (pid < 0) {
        perror("fork");
        return false;
    }
    r->pid = pid;
    return true;
}

static int connect_socket(const struct ts_redis *r)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    memcpy(a.sun_path, r->socket, strlen(r->socket) + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0)
        return fd;
    if (fd >= 0)
        (void)close(fd);
    return -1;
}

/* Sends text and reads until `lines` line ends came, or time is up. The number of bytes read. */
static size_t exchange(int fd, const char *text, int lines, char *reply, size_t size)
{
    int64_t deadline = lb_deadline_in(ASK_NS);
    size_t n = 0;
    if (send(fd, text, strlen(text), MSG_NOSIGNAL) < 0)
        return 0;
    while (n + 1 < size && lines > 0 && lb_clock_mono() < deadline) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (poll(&p, 1, 50) <= 0)
            continue;
        ssize_t got = read(fd, reply + n, size - 1 - n);
        if (got <= 0)
            break;
        for (ssize_t i = 0; i < got; i++)
            lines -= reply[n + (size_t)i] == '\n';
        n += (size_t)got;
    }
    reply[n] = 0;
    return n;
}

bool ts_redis_ask(const struct ts_redis *r, const char *line, char *reply, size_t size)
{
    char text[1024];
    int fd = connect_socket(r);
    bool ok = fd >= 0;
    if (ok && r->opts.password) {
        (void)snprintf(text, sizeof(text), "AUTH %s\r\n", r->opts.password);
        ok = exchange(fd, text, 1, reply, size) > 0;
    }
    (void)snprintf(text, sizeof(text), "%s\r\n", line);
    ok = ok && exchange(fd, text, 1, reply, size) > 0;
    if (fd >= 0)
        (void)close(fd);
    return ok;
}

static bool has_exited(struct ts_redis *r)
{
    int status;
    if (waitpid(r->pid, &status, WNOHANG) != r->pid)
        return false;
    r->pid = 0;
    return true;
}

static bool wait_until_it_answers(struct ts_redis *r)
{
    int64_t deadline = lb_deadline_in(START_NS);
    while (lb_clock_mono() < deadline) {
        char reply[64];
        if (has_exited(r))
            return false;
        if (ts_redis_ask(r, "PING", reply, sizeof(reply)) && strncmp(reply, "+PONG", 5) == 0)
            return true;
        pause_a_little();
    }
    return false;
}

static void print_log(const struct ts_redis *r)
{
    char path[TS_DIR_MAX + 8], line[512];
    FILE *f = fopen(ts_tmpdir_path(&r->dir, "log", path, sizeof(path)), "re");
    (void)fprintf(stderr, "redis-server did not start; is it installed? Its log:\n");
    while (f && fgets(line, sizeof(line), f))
        (void)fputs(line, stderr);
    if (f)
        (void)fclose(f);
}

/* A node that owns all slots answers for them some two seconds after it began. */
static bool own_all_slots(struct ts_redis *r)
{
    char reply[256];
    int64_t deadline = lb_deadline_in(START_NS);
    if (!ts_redis_ask(r, "CLUSTER ADDSLOTSRANGE 0 16383", reply, sizeof(reply)))
        return false; /* after a restart it knows them already, which is an error */
    while (lb_clock_mono() < deadline) {
        if (ts_redis_ask(r, "EXISTS a", reply, sizeof(reply)) && reply[0] == ':')
            return true;
        pause_a_little();
    }
    return false;
}

bool ts_redis_again(struct ts_redis *r)
{
    return spawn(r) && wait_until_it_answers(r) && (!r->opts.cluster || own_all_slots(r));
}

static void write_url(struct ts_redis *r)
{
    (void)ts_tmpdir_path(&r->dir, "redis.sock", r->socket, sizeof(r->socket));
    const char *password = r->opts.password;
    (void)snprintf(r->url, sizeof(r->url), "unix://%s%s%s%s", password ? ":" : "",
                   password ? password : "", password ? "@" : "", r->socket);
}

bool ts_redis_start(struct ts_redis *r, const struct ts_redis_opts *opts)
{
    *r = (struct ts_redis){0};
    if (opts)
        r->opts = *opts;
    if (!ts_tmpdir_make(&r->dir))
        return false;
    write_url(r);
    for (int i = 0; i < START_TRIES; i++) {
        r->port = r->opts.tcp || r->opts.cluster ? choose_port() : 0;
        r->tls_port = r->opts.tls ? choose_port() : 0;
        r->bus_port = r->opts.cluster ? choose_port() : 0;
        if (r->port >= 0 && r->tls_port >= 0 && ts_redis_again(r))
            return true;
        ts_redis_kill(r);
        if (!r->opts.tcp && !r->opts.tls && !r->opts.cluster)
            break;
    }
    print_log(r);
    ts_redis_stop(r);
    return false;
}

void ts_redis_kill(struct ts_redis *r)
{
    if (r->pid <= 0)
        return;
    (void)kill(r->pid, SIGKILL);
    while (waitpid(r->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    r->pid = 0;
}

void ts_redis_stop(struct ts_redis *r)
{
    ts_redis_kill(r);
    ts_tmpdir_remove(&r->dir);
}

void ts_redis_freeze(struct ts_redis *r)
{
    (void)kill(r->pid, SIGSTOP);
}

void ts_redis_thaw(struct ts_redis *r)
{
    (void)kill(r->pid, SIGCONT);
}
