/* net.c - sockets for tasks: every call tries first and parks only when the kernel says EAGAIN */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "rt/net.h"

#define BACKLOG 1024

struct address {
    struct sockaddr_storage s;
    socklen_t n;
};

static int parse_port(const char *text, in_port_t *out)
{
    char *end;
    unsigned long port = strtoul(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || port > 65535)
        return -LADE_EINVAL;
    *out = htons((uint16_t)port);
    return 0;
}

static int parse_unix(const char *path, struct address *a)
{
    struct sockaddr_un *u = (void *)&a->s;
    u->sun_family = AF_UNIX;
    if (strlen(path) >= sizeof(u->sun_path) || !*path)
        return -LADE_EINVAL;
    memcpy(u->sun_path, path, strlen(path) + 1);
    a->n = sizeof(*u);
    return 0;
}

/* Numbers only: looking up a name blocks, so it is the caller's, by lade_blocking_run. */
static int parse_address(const char *text, struct address *a)
{
    memset(a, 0, sizeof(*a));
    if (!text)
        return -LADE_EINVAL;
    if (strncmp(text, "unix:", 5) == 0)
        return parse_unix(text + 5, a);
    const char *colon = strrchr(text, ':');
    char host[64];
    bool six = text[0] == '[';
    if (!colon || (six && (colon == text || colon[-1] != ']')))
        return -LADE_EINVAL;
    size_t n = (size_t)(colon - text) - (six ? 2 : 0);
    if (n >= sizeof(host))
        return -LADE_EINVAL;
    memcpy(host, text + (six ? 1 : 0), n);
    host[n] = '\0';
    if (six) {
        struct sockaddr_in6 *in6 = (void *)&a->s;
        in6->sin6_family = AF_INET6;
        a->n = sizeof(*in6);
        if (inet_pton(AF_INET6, host, &in6->sin6_addr) != 1)
            return -LADE_EINVAL;
        return parse_port(colon + 1, &in6->sin6_port);
    }
    struct sockaddr_in *in = (void *)&a->s;
    in->sin_family = AF_INET;
    a->n = sizeof(*in);
    if (inet_pton(AF_INET, host, &in->sin_addr) != 1)
        return -LADE_EINVAL;
    return parse_port(colon + 1, &in->sin_port);
}

static int open_socket(const struct address *a)
{
    int fd = socket(a->s.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int one = 1;
    if (fd >= 0 && a->s.ss_family != AF_UNIX)
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    return fd;
}

/* Gives fd to a new object, or closes it. */
static int adopt(int fd, lade_fd **out)
{
    int rc = lr_fd_new(fd, out);
    if (rc < 0)
        (void)close(fd);
    return rc;
}

int lade_fd_open(int fd, lade_fd **out)
{
    if (fd < 0 || !out)
        return -LADE_EINVAL;
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
        return -LADE_EINVAL;
    return lr_fd_new(fd, out);
}

static const char *path_of(const struct address *a)
{
    return ((const struct sockaddr_un *)(const void *)&a->s)->sun_path;
}

/* A socket's file with nobody behind it. One that is between bind and listen at this moment looks the same. */
static bool is_stale(const struct address *a)
{
    struct stat st;
    if (lstat(path_of(a), &st) < 0 || !S_ISSOCK(st.st_mode))
        return false;
    int fd = open_socket(a);
    bool refused =
        fd >= 0 && connect(fd, (const struct sockaddr *)&a->s, a->n) < 0 && errno == ECONNREFUSED;
    if (fd >= 0)
        (void)close(fd);
    return refused;
}

static int listen_at(int fd, const struct address *a)
{
    const struct sockaddr *s = (const struct sockaddr *)&a->s;
    int rc = bind(fd, s, a->n);
    if (rc < 0 && errno == EADDRINUSE && a->s.ss_family == AF_UNIX) {
        rc = is_stale(a) && unlink(path_of(a)) == 0 ? bind(fd, s, a->n) : -1;
        if (rc < 0)
            return -LADE_EBUSY;
    }
    if (rc == 0)
        rc = listen(fd, BACKLOG);
    if (rc == 0)
        return 0;
    return errno == EADDRINUSE ? -LADE_EBUSY : -LADE_EIO;
}

/* What bind has just made, to be taken away with the listener. */
static int note_file(const struct address *a, struct lr_socket_file **out)
{
    struct stat st;
    struct lr_socket_file *f = lb_malloc(sizeof(*f));
    if (!f || lstat(path_of(a), &st) < 0) {
        (void)unlink(path_of(a));
        int rc = f ? -LADE_EIO : -LADE_ENOMEM;
        lb_free(f);
        return rc;
    }
    *f = (struct lr_socket_file){.dev = st.st_dev, .ino = st.st_ino};
    memcpy(f->path, path_of(a), sizeof(f->path));
    *out = f;
    return 0;
}

void lr_socket_file_drop(struct lr_socket_file *f)
{
    struct stat st;
    if (f && lstat(f->path, &st) == 0 && st.st_dev == f->dev && st.st_ino == f->ino)
        (void)unlink(f->path);
    lb_free(f);
}

int lade_net_listen(const char *addr, lade_fd **out)
{
    struct address a;
    if (!out || parse_address(addr, &a) < 0)
        return -LADE_EINVAL;
    int fd = open_socket(&a);
    if (fd < 0)
        return -LADE_EIO;
    int one = 1;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    struct lr_socket_file *file = NULL;
    int rc = listen_at(fd, &a);
    if (rc == 0 && a.s.ss_family == AF_UNIX)
        rc = note_file(&a, &file);
    if (rc < 0) {
        (void)close(fd);
        return rc;
    }
    rc = adopt(fd, out);
    if (rc < 0)
        lr_socket_file_drop(file);
    else
        (*out)->file = file;
    return rc;
}

int lade_net_port(lade_fd *l)
{
    if (!l || lr_fd_enter(l) < 0)
        return -LADE_EINVAL;
    struct sockaddr_storage s = {0};
    socklen_t n = sizeof(s);
    int rc = -LADE_EINVAL;
    if (getsockname(l->fd, (struct sockaddr *)&s, &n) == 0) {
        if (s.ss_family == AF_INET)
            rc = ntohs(((struct sockaddr_in *)(void *)&s)->sin_port);
        else if (s.ss_family == AF_INET6)
            rc = ntohs(((struct sockaddr_in6 *)(void *)&s)->sin6_port);
    }
    lr_fd_leave(l);
    return rc;
}

/*
 * System calls that give -errno. Functions of their own, never inlined: compilers look up errno's address once in a function and
 * keep it across a park, after which it is another thread's.
 */
#if defined(__clang__)
#    define SYSCALL __attribute__((noinline))
#else
#    define SYSCALL __attribute__((noipa))
#endif

static SYSCALL int try_accept(int fd)
{
    int got = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    return got < 0 ? -errno : got;
}

static SYSCALL int try_connect(int fd, const struct address *a)
{
    return connect(fd, (const struct sockaddr *)&a->s, a->n) < 0 ? -errno : 0;
}

static SYSCALL ssize_t try_read(int fd, void *buf, size_t n)
{
    ssize_t got = read(fd, buf, n);
    return got < 0 ? -errno : got;
}

/* write, with SIGPIPE held back; one that this call has raised, and no other, is taken from the thread. */
static SYSCALL ssize_t write_quietly(int fd, const void *buf, size_t n)
{
    sigset_t pipe_only;
    sigset_t before;
    sigset_t pending;
    (void)sigemptyset(&pipe_only);
    (void)sigaddset(&pipe_only, SIGPIPE);
    (void)sigpending(&pending);
    (void)pthread_sigmask(SIG_BLOCK, &pipe_only, &before);
    ssize_t put = write(fd, buf, n);
    ssize_t rc = put < 0 ? -errno : put;
    if (rc == -EPIPE && !sigismember(&pending, SIGPIPE)) {
        static const struct timespec now;
        while (sigtimedwait(&pipe_only, NULL, &now) < 0 && errno == EINTR)
            ;
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

/* What nobody reads any more must not raise SIGPIPE. */
static SYSCALL ssize_t try_write(int fd, const void *buf, size_t n)
{
    ssize_t put = send(fd, buf, n, MSG_NOSIGNAL);
    if (put < 0 && errno == ENOTSOCK)
        return write_quietly(fd, buf, n);
    return put < 0 ? -errno : put;
}

/* What to do after a call that gave -errno: wait and try again (0), or give up with a result. */
static int after_failure(lade_fd *fd, enum lr_side side, uint32_t seen, int64_t until, int errnum)
{
    if (errnum == EINTR || errnum == ECONNABORTED)
        return 0;
    if (errnum != EAGAIN)
        return -LADE_EIO;
    if (until == 0)
        return -LADE_ETIMEDOUT;
    return lr_fd_wait(fd, side, seen, until);
}

int lade_net_accept(lade_fd *l, int64_t until, lade_fd **out)
{
    if (!l || !out || lr_fd_enter(l) < 0)
        return -LADE_EINVAL;
    int rc = 0;
    int fd = -1;
    while (rc == 0) {
        uint32_t seen = lr_fd_edges(l, LR_SIDE_READ);
        fd = try_accept(l->fd);
        if (fd >= 0)
            break;
        rc = after_failure(l, LR_SIDE_READ, seen, until, -fd);
    }
    lr_fd_leave(l);
    return rc < 0 ? rc : adopt(fd, out);
}

/* An edge may be of another cause, so connected is who has a peer. errnum is the connection's failure, or 0. */
static int wait_connected(lade_fd *f, int64_t until, int *errnum)
{
    for (;;) {
        uint32_t seen = lr_fd_edges(f, LR_SIDE_WRITE);
        struct sockaddr_storage peer;
        socklen_t n = sizeof(peer);
        socklen_t len = sizeof(*errnum);
        *errnum = 0;
        if (getsockopt(f->fd, SOL_SOCKET, SO_ERROR, errnum, &len) < 0)
            *errnum = errno;
        if (*errnum != 0 || getpeername(f->fd, (struct sockaddr *)&peer, &n) == 0)
            return 0;
        int rc = lr_fd_wait(f, LR_SIDE_WRITE, seen, until);
        if (rc < 0)
            return rc;
    }
}

int lade_net_connect(const char *addr, int64_t until, lade_fd **out)
{
    struct address a;
    if (!out || parse_address(addr, &a) < 0)
        return -LADE_EINVAL;
    int fd = open_socket(&a);
    if (fd < 0)
        return -LADE_EIO;
    lade_fd *f;
    int rc = adopt(fd, &f);
    if (rc < 0)
        return rc;
    int errnum = -try_connect(fd, &a);
    if (errnum == EINPROGRESS)
        rc = wait_connected(f, until, &errnum);
    if (rc == 0 && errnum != 0)
        rc = errnum == ECONNREFUSED || errnum == ENOENT ? -LADE_EUNAVAILABLE : -LADE_EIO;
    if (rc < 0) {
        (void)lade_fd_close(f);
        return rc;
    }
    *out = f;
    return 0;
}

long lade_fd_read(lade_fd *fd, void *buf, size_t n, int64_t until)
{
    if (!fd || (!buf && n > 0) || lr_fd_enter(fd) < 0)
        return -LADE_EINVAL;
    long rc = 0;
    for (;;) {
        uint32_t seen = lr_fd_edges(fd, LR_SIDE_READ);
        rc = try_read(fd->fd, buf, n);
        if (rc >= 0)
            break;
        rc = after_failure(fd, LR_SIDE_READ, seen, until, (int)-rc);
        if (rc < 0)
            break;
    }
    lr_fd_leave(fd);
    return rc;
}

long lade_fd_write(lade_fd *fd, const void *buf, size_t n, int64_t until)
{
    if (!fd || (!buf && n > 0) || lr_fd_enter(fd) < 0)
        return -LADE_EINVAL;
    size_t done = 0;
    int rc = 0;
    while (done < n && rc == 0) {
        uint32_t seen = lr_fd_edges(fd, LR_SIDE_WRITE);
        ssize_t put = try_write(fd->fd, (const char *)buf + done, n - done);
        if (put >= 0)
            done += (size_t)put;
        else
            rc = after_failure(fd, LR_SIDE_WRITE, seen, until, (int)-put);
    }
    lr_fd_leave(fd);
    return done > 0 || rc == 0 ? (long)done : rc;
}

int lade_fd_wait(lade_fd *fd, int events, int64_t until)
{
    if (!fd || (events != LADE_FD_READ && events != LADE_FD_WRITE) || lr_fd_enter(fd) < 0)
        return -LADE_EINVAL;
    enum lr_side side = events == LADE_FD_READ ? LR_SIDE_READ : LR_SIDE_WRITE;
    struct pollfd p = {.fd = fd->fd, .events = side == LR_SIDE_READ ? POLLIN : POLLOUT};
    uint32_t seen = lr_fd_edges(fd, side);
    int rc = 0;
    if (poll(&p, 1, 0) <= 0)
        rc = lr_fd_wait(fd, side, seen, until);
    lr_fd_leave(fd);
    return rc;
}
