/*
 * socket.c - see socket.h
 *
 * A dead peer is noticed within about half a minute even on a connection that only waits: keepalive probes after 10 s of
 * silence, three of them 5 s apart, and TCP_USER_TIMEOUT for data that nobody acknowledges.
 */
#include "store/redis/socket.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/err.h"
#include "rt/seam.h"

#define WHERE             "open"
#define KEEPALIVE_IDLE_S  10
#define KEEPALIVE_EVERY_S 5
#define KEEPALIVE_PROBES  3
#define USER_TIMEOUT_MS   25000

/* For a dial that did not come about. */
static int fail_dial(lade_err *err, const char *server, const char *why)
{
    return lb_fail(err, LADE_EUNAVAILABLE, WHERE,
                   "%s cannot be reached: %s: is the server running, and the URL right?", server,
                   why);
}

static int fail_dial_errno(lade_err *err, const char *server, int errnum)
{
    char text[96];
    if (errnum == EACCES || errnum == EPERM)
        return lb_fail_errno(err, errnum, WHERE, server);
    return fail_dial(err, server, strerror_r(errnum, text, sizeof(text)));
}

/* Options that make a difference only when the network fails; a kernel without one of them is no reason to stop. */
static void set_options(int fd)
{
    int one = 1;
    int idle = KEEPALIVE_IDLE_S;
    int every = KEEPALIVE_EVERY_S;
    int probes = KEEPALIVE_PROBES;
    unsigned user = USER_TIMEOUT_MS;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every, sizeof(every));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &user, sizeof(user));
}

/* 0 or an errno value. */
static int finish_connect(int fd, int64_t deadline)
{
    struct lr_fd w = {.fd = fd, .want = LR_WRITE};
    int rc = lr_wait_fds(&w, 1, deadline);
    if (rc <= 0)
        return rc == 0 ? ETIMEDOUT : EIO;
    int errnum = 0;
    socklen_t n = sizeof(errnum);
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &errnum, &n) < 0)
        return errno;
    return errnum;
}

/* A full backlog of a Unix socket says EAGAIN and gives no sign when there is room: look again every 5 ms. */
static int connect_address(int fd, const struct sockaddr *addr, socklen_t n, int64_t deadline)
{
    while (connect(fd, addr, n) < 0) {
        if (errno == EINPROGRESS || errno == EINTR)
            return finish_connect(fd, deadline);
        if (errno != EAGAIN)
            return errno;
        int64_t next = lb_deadline_in(5 * LADE_MILLISECOND);
        if (next >= deadline)
            return ETIMEDOUT;
        lr_sleep_until(next);
    }
    return 0;
}

/* Opens s->fd. 0 or an errno value. */
static int dial(struct ls_redis_socket *s, int family, const struct sockaddr *addr, socklen_t n,
                int64_t deadline)
{
    int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return errno;
    if (family != AF_UNIX)
        set_options(fd);
    int errnum = connect_address(fd, addr, n, deadline);
    if (errnum) {
        (void)close(fd);
        return errnum;
    }
    s->fd = fd;
    return 0;
}

static int dial_unix(struct ls_redis_socket *s, const struct ls_redis_url *url, int64_t deadline,
                     lade_err *err)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    (void)snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", url->path);
    int errnum = dial(s, AF_UNIX, (const struct sockaddr *)&addr, sizeof(addr), deadline);
    s->errnum = errnum;
    return errnum ? fail_dial_errno(err, url->text, errnum) : 0;
}

static int resolve(const struct ls_redis_url *url, struct addrinfo **out, bool *again,
                   lade_err *err)
{
    char port[8];
    (void)snprintf(port, sizeof(port), "%u", url->port);
    struct addrinfo hint = {.ai_family = AF_UNSPEC,
                            .ai_socktype = SOCK_STREAM,
                            .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
    int rc = getaddrinfo(url->host, port, &hint, out);
    if (rc == EAI_NONAME) {
        hint.ai_flags = AI_NUMERICSERV;
        rc = getaddrinfo(url->host, port, &hint, out);
    }
    if (rc == 0)
        return 0;
    *again = rc != EAI_NONAME && rc != EAI_FAIL;
    return fail_dial(err, url->text, rc == EAI_SYSTEM ? strerrordesc_np(errno) : gai_strerror(rc));
}

static int dial_net(struct ls_redis_socket *s, const struct ls_redis_url *url, int64_t deadline,
                    bool *again, lade_err *err)
{
    struct addrinfo *list = NULL;
    int rc = resolve(url, &list, again, err);
    if (rc < 0)
        return rc;
    int64_t left = 0;
    for (struct addrinfo *a = list; a; a = a->ai_next)
        left++;
    int errnum = ETIMEDOUT;
    for (struct addrinfo *a = list; a; a = a->ai_next, left--) {
        int64_t now = lb_clock_mono();
        int64_t share = deadline == LB_FOREVER ? LB_FOREVER : now + (deadline - now) / left;
        errnum = dial(s, a->ai_family, a->ai_addr, a->ai_addrlen, share);
        if (errnum == 0)
            break;
    }
    freeaddrinfo(list);
    s->errnum = errnum;
    return errnum ? fail_dial_errno(err, url->text, errnum) : 0;
}

static int shake_hands(struct ls_redis_socket *s, const struct ls_redis_url *url, int64_t deadline,
                       bool *again, lade_err *err)
{
    for (;;) {
        enum ls_redis_io io = ls_redis_tls_handshake(s->tls);
        if (io == LS_REDIS_IO_DONE)
            return 0;
        if (io == LS_REDIS_IO_END)
            return fail_dial(err, url->text, "closed during the TLS handshake");
        int final = io == LS_REDIS_IO_ERROR ? ls_redis_tls_final(s->tls) : 0;
        if (final) {
            *again = false;
            return lb_fail(err, final, WHERE, "%s: %s; %s", url->text, ls_redis_tls_error(s->tls),
                           final == LADE_EAUTH ? "see the options ca, cert, key, sni"
                                               : "does it speak TLS on this port?");
        }
        if (io == LS_REDIS_IO_ERROR)
            return fail_dial(err, url->text, ls_redis_tls_error(s->tls));
        struct lr_fd w = {.fd = s->fd, .want = io == LS_REDIS_IO_READ ? LR_READ : LR_WRITE};
        int rc = lr_wait_fds(&w, 1, deadline);
        if (rc < 0)
            return lb_fail_errno(err, EIO, WHERE, "poll");
        if (rc == 0)
            return fail_dial(err, url->text, "no answer in the TLS handshake");
    }
}

int ls_redis_socket_open(struct ls_redis_socket *s, const struct ls_redis_url *url,
                         struct ls_redis_tls_ctx *tls_ctx, int64_t deadline, bool *again,
                         lade_err *err)
{
    *s = (struct ls_redis_socket){.fd = -1};
    *again = true;
    int rc = url->path ? dial_unix(s, url, deadline, err) : dial_net(s, url, deadline, again, err);
    if (rc < 0 || !tls_ctx) {
        *again = *again && rc != -LADE_EACCESS;
        return rc;
    }
    rc = ls_redis_tls_open(&s->tls, tls_ctx, s->fd, err);
    if (rc == 0)
        rc = shake_hands(s, url, deadline, again, err);
    if (rc < 0)
        ls_redis_socket_close(s);
    return rc;
}

void ls_redis_socket_close(struct ls_redis_socket *s)
{
    ls_redis_tls_close(s->tls);
    if (s->fd >= 0)
        (void)close(s->fd);
    *s = (struct ls_redis_socket){.fd = -1};
}

enum ls_redis_io ls_redis_socket_read(struct ls_redis_socket *s, uint8_t *p, size_t n, size_t *done)
{
    if (s->tls)
        return ls_redis_tls_read(s->tls, p, n, done);
    for (;;) {
        ssize_t got = recv(s->fd, p, n, MSG_DONTWAIT);
        if (got > 0) {
            *done = (size_t)got;
            return LS_REDIS_IO_DONE;
        }
        if (got == 0)
            return LS_REDIS_IO_END;
        if (errno == EAGAIN)
            return LS_REDIS_IO_READ;
        if (errno != EINTR) {
            s->errnum = errno;
            return LS_REDIS_IO_ERROR;
        }
    }
}

enum ls_redis_io ls_redis_socket_write(struct ls_redis_socket *s, const uint8_t *p, size_t n,
                                       size_t *done)
{
    if (s->tls)
        return ls_redis_tls_write(s->tls, p, n, done);
    for (;;) {
        ssize_t sent = send(s->fd, p, n, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent > 0) {
            *done = (size_t)sent;
            return LS_REDIS_IO_DONE;
        }
        if (sent < 0 && errno == EAGAIN)
            return LS_REDIS_IO_WRITE;
        if (sent == 0 || errno != EINTR) {
            s->errnum = sent == 0 ? EIO : errno;
            return LS_REDIS_IO_ERROR;
        }
    }
}

void ls_redis_socket_describe(const struct ls_redis_socket *s, enum ls_redis_io io, char *text,
                              size_t n)
{
    if (io == LS_REDIS_IO_END)
        (void)snprintf(text, n, "it closed the connection");
    else if (s->tls)
        (void)snprintf(text, n, "%s", ls_redis_tls_error(s->tls));
    else
        (void)snprintf(text, n, "%s", strerrordesc_np(s->errnum));
}
