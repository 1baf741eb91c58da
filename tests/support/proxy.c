/*
 * proxy.c - one thread, one poll, two queues a connection
 *
 *     client --> in ---- rules ----> out --> server
 *                          |  pending: what each forwarded request shall see as its reply
 *     client <-- out <-----+-------- in <-- server
 *
 * Replies come in the order of the requests, so `pending` is a queue: its head says what becomes of the next reply. A
 * request answered here waits in the same queue, so that pipelined neighbours keep their order. Pushes ('>' in RESP3)
 * belong to no request.
 */
#include "support/proxy.h"

#include <lade/base.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/ident.h"
#include "support/proc.h"
#include "support/proxy_wire.h"

#define INPUT_MAX (128U << 20) /* a longer message resets the connection */

struct segment {
    struct segment *next;
    int64_t release_at;
    size_t len, at;
    char data[];
};

struct side {
    int fd;
    char *in; /* not yet a whole message */
    size_t n_in, cap_in;
    struct segment *head, **tail; /* on the way out of this side */
};

struct pending {
    struct pending *next;
    enum ts_proxy_act act; /* COUNT: pass the reply on */
    size_t cut;
    int script; /* the reply is the sha of that script; -1 */
    char error[128];
};

struct conn {
    struct side client, server;
    struct pending *head, **tail;
    bool held, last_bytes; /* last_bytes: reset when what is queued for the client is out */
};

struct rule {
    struct ts_proxy_rule r;
    char match[64], error[128];
    uint64_t seen, hits;
};

struct ts_proxy {
    pthread_t thread;
    pthread_mutex_t lock; /* guards everything below */
    int listener, wake;
    bool ending, hold, refuse;
    int delay_ms, chunk;
    uint16_t port;
    char url[64], upstream[108];
    struct conn *conn[TS_PROXY_CONNS_MAX];
    size_t n_conns;
    struct rule rule[TS_PROXY_RULES_MAX];
    size_t n_rules, n_active; /* active: those not cleared */
    struct ts_wire_scripts scripts;
    struct ts_proxy_stats stats;
};

static void *need(void *p)
{
    LB_CHECK(p);
    return p;
}

static void queue_bytes(struct side *to, const char *data, size_t len, int64_t release_at)
{
    struct segment *s = need(malloc(sizeof(*s) + len));
    *s = (struct segment){.release_at = release_at, .len = len};
    memcpy(s->data, data, len);
    *to->tail = s;
    to->tail = &s->next;
}

static void close_side(struct side *s)
{
    if (s->fd >= 0) {
        struct linger now = {.l_onoff = 1};
        (void)setsockopt(s->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
        (void)close(s->fd);
    }
    free(s->in);
    while (s->head) {
        struct segment *next = s->head->next;
        free(s->head);
        s->head = next;
    }
    *s = (struct side){.fd = -1, .tail = &s->head};
}

static void reset_conn(struct ts_proxy *p, struct conn *c)
{
    p->stats.resets += c->client.fd >= 0;
    close_side(&c->client);
    close_side(&c->server);
    while (c->head) {
        struct pending *next = c->head->next;
        free(c->head);
        c->head = next;
    }
    c->tail = &c->head;
}

static int connect_upstream(const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    memcpy(a.sun_path, path, strlen(path) + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0) {
        (void)fcntl(fd, F_SETFL, O_NONBLOCK);
        return fd;
    }
    if (fd >= 0)
        (void)close(fd);
    return -1;
}

static void accept_one(struct ts_proxy *p)
{
    int fd = accept4(p->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return;
    p->stats.accepted++;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    struct conn *c = need(calloc(1, sizeof(*c)));
    c->client.fd = fd;
    c->client.tail = &c->client.head;
    c->server.tail = &c->server.head;
    c->tail = &c->head;
    c->server.fd = p->n_conns < TS_PROXY_CONNS_MAX ? connect_upstream(p->upstream) : -1;
    if (c->server.fd < 0) {
        reset_conn(p, c);
        free(c);
        return;
    }
    p->conn[p->n_conns++] = c;
}

/* requests -------------------------------------------------------------------------------------------------------- */

static struct rule *match_rule(struct ts_proxy *p, const char *text)
{
    for (size_t i = 0; i < p->n_active; i++) {
        struct rule *r = &p->rule[i];
        if ((r->r.times && r->hits >= (uint64_t)r->r.times) ||
            (r->match[0] && !strstr(text, r->match)))
            continue;
        if (r->seen++ < (uint64_t)r->r.skip)
            continue;
        r->hits++;
        return r;
    }
    return NULL;
}

static void push_pending(struct conn *c, const struct pending *what)
{
    struct pending *more = need(malloc(sizeof(*more)));
    *more = *what;
    more->next = NULL;
    *c->tail = more;
    c->tail = &more->next;
}

static void pop_pending(struct conn *c)
{
    struct pending *head = c->head;
    c->head = head->next;
    if (!c->head)
        c->tail = &c->head;
    free(head);
}

/* Answers made here go out as soon as everything asked before them is answered. */
static void flush_answers(struct conn *c)
{
    while (c->head && c->head->act == TS_PROXY_ERROR) {
        char line[160];
        int n = snprintf(line, sizeof(line), "-%s\r\n", c->head->error);
        queue_bytes(&c->client, line, (size_t)n, 0);
        pop_pending(c);
    }
}

static void forward_request(struct ts_proxy *p, struct conn *c, const char *m, size_t n)
{
    char text[1200];
    struct pending next = {.act = TS_PROXY_COUNT};
    next.script = ts_wire_request(&p->scripts, m, n, text, sizeof(text));
    p->stats.requests++;
    int64_t delay_ms = p->delay_ms;
    struct rule *r = match_rule(p, text);
    if (r && r->r.act == TS_PROXY_DROP_REQUEST) {
        reset_conn(p, c);
        return;
    }
    if (r && r->r.act == TS_PROXY_DELAY) {
        delay_ms += r->r.delay_ms;
    } else if (r) {
        next.act = r->r.act;
        next.cut = r->r.cut;
        memcpy(next.error, r->error, sizeof(next.error));
    }
    push_pending(c, &next);
    if (next.act == TS_PROXY_ERROR)
        flush_answers(c);
    else
        queue_bytes(&c->server, m, n, delay_ms ? lb_deadline_in(delay_ms * 1000000) : 0);
}

static void forward_reply(struct ts_proxy *p, struct conn *c, const char *m, size_t n)
{
    p->stats.replies++;
    if (*m == '>' || !c->head) {
        queue_bytes(&c->client, m, n, 0);
        return;
    }
    struct pending *head = c->head;
    if (head->script >= 0)
        ts_wire_loaded(&p->scripts, head->script, m, n);
    if (head->act == TS_PROXY_DROP_REPLY || (head->act == TS_PROXY_CUT_REPLY && head->cut == 0)) {
        reset_conn(p, c);
        return;
    }
    if (head->act == TS_PROXY_CUT_REPLY) {
        queue_bytes(&c->client, m, LB_MIN(head->cut, n), 0);
        c->last_bytes = true;
        return;
    }
    queue_bytes(&c->client, m, n, 0);
    pop_pending(c);
    flush_answers(c);
}

/* False when the peer has closed or the message is too long. */
static bool read_more(struct side *s)
{
    if (s->cap_in - s->n_in < 65536) {
        s->cap_in = s->cap_in * 2 + 131072;
        s->in = need(realloc(s->in, s->cap_in));
    }
    ssize_t got = read(s->fd, s->in + s->n_in, s->cap_in - s->n_in);
    if (got < 0)
        return errno == EAGAIN || errno == EINTR;
    s->n_in += (size_t)got;
    return got > 0 && s->n_in < INPUT_MAX;
}

static void pump_in(struct ts_proxy *p, struct conn *c, struct side *from,
                    void (*forward)(struct ts_proxy *, struct conn *, const char *, size_t))
{
    bool open = read_more(from);
    size_t at = 0;
    while (from->fd >= 0 && !c->last_bytes) {
        size_t n = ts_wire_message(from->in + at, from->n_in - at);
        if (n == 0)
            break;
        if (n == TS_WIRE_BROKEN)
            n = from->n_in - at; /* inline commands and the like pass as they are */
        forward(p, c, from->in + at, n);
        at += n;
    }
    if (from->fd < 0)
        return; /* reset meanwhile: nothing is left to keep */
    memmove(from->in, from->in + at, from->n_in - at);
    from->n_in -= at;
    if (!open && from == &c->server && c->client.head)
        c->last_bytes = true;
    else if (!open)
        reset_conn(p, c);
}

/* In the middle of a long message pieces are larger, or a suite through this would take for ever. */
#define EDGE_BYTES 256

static size_t choose_chunk(const struct ts_proxy *p, const struct segment *s)
{
    size_t left = s->len - s->at, most = p->chunk > 0 ? (size_t)p->chunk : 64;
    if (p->chunk == 0)
        return left;
    if (s->at >= EDGE_BYTES && left > EDGE_BYTES) {
        left -= EDGE_BYTES;
        most = 8192;
    }
    size_t chosen = most == 1 ? 1 : (size_t)lb_rand_below(most) + 1;
    return LB_MIN(left, chosen);
}

/* Writes what is due; in chunk mode one piece a round, so that the other side sees them apart. */
static void pump_out(struct ts_proxy *p, struct conn *c, struct side *to)
{
    int64_t now = lb_clock_mono();
    while (to->head && to->head->release_at <= now) {
        struct segment *s = to->head;
        size_t want = choose_chunk(p, s);
        ssize_t put = send(to->fd, s->data + s->at, want, MSG_NOSIGNAL);
        if (put < 0 && errno != EAGAIN && errno != EINTR) {
            reset_conn(p, c);
            return;
        }
        s->at += put > 0 ? (size_t)put : 0;
        if (s->at == s->len) {
            to->head = s->next;
            if (!to->head)
                to->tail = &to->head;
            free(s);
        }
        if (put < (ssize_t)want || p->chunk)
            break;
    }
    if (to == &c->client && c->last_bytes && !to->head)
        reset_conn(p, c);
}

static bool is_due(const struct side *s, int64_t now, int64_t *next)
{
    if (!s->head)
        return false;
    if (s->head->release_at <= now)
        return true;
    *next = LB_MIN(*next, s->head->release_at);
    return false;
}

/* One descriptor entry for each side of each connection; the poll timeout in ms. */
static int prepare_poll(struct ts_proxy *p, struct pollfd *fds)
{
    int64_t now = lb_clock_mono(), next = now + 1000000000;
    fds[0] = (struct pollfd){.fd = p->wake, .events = POLLIN};
    fds[1] = (struct pollfd){.fd = p->refuse ? -1 : p->listener, .events = POLLIN};
    for (size_t i = 0; i < p->n_conns; i++) {
        struct conn *c = p->conn[i];
        struct pollfd *f = fds + 2 + 2 * i;
        bool still = p->hold || c->held;
        f[0] = (struct pollfd){.fd = still ? -1 : c->client.fd, .events = POLLIN};
        f[1] = (struct pollfd){.fd = still ? -1 : c->server.fd, .events = POLLIN};
        if (is_due(&c->client, now, &next))
            f[0].events |= POLLOUT;
        if (is_due(&c->server, now, &next))
            f[1].events |= POLLOUT;
        if (c->last_bytes) {
            f[0].events = POLLOUT;
            f[1].fd = -1;
        }
    }
    return (int)((next - now) / 1000000) + 1;
}

static void serve_conn(struct ts_proxy *p, struct conn *c, const struct pollfd *f)
{
    if (c->client.fd >= 0 && f[0].fd >= 0 && f[0].revents & (POLLIN | POLLHUP | POLLERR) &&
        !c->last_bytes)
        pump_in(p, c, &c->client, forward_request);
    if (c->server.fd >= 0 && f[1].fd >= 0 && f[1].revents & (POLLIN | POLLHUP | POLLERR))
        pump_in(p, c, &c->server, forward_reply);
    if (c->client.fd >= 0 && f[0].fd >= 0)
        pump_out(p, c, &c->client);
    if (c->server.fd >= 0 && f[1].fd >= 0)
        pump_out(p, c, &c->server);
}

static void sweep_closed(struct ts_proxy *p)
{
    size_t n = 0;
    for (size_t i = 0; i < p->n_conns; i++) {
        if (p->conn[i]->client.fd >= 0)
            p->conn[n++] = p->conn[i];
        else
            free(p->conn[i]);
    }
    p->n_conns = n;
    p->stats.open = (int)n;
}

static void *run_proxy(void *arg)
{
    struct ts_proxy *p = arg;
    sigset_t all;
    sigfillset(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, NULL);
    struct pollfd fds[2 + 2 * TS_PROXY_CONNS_MAX];
    (void)pthread_mutex_lock(&p->lock);
    while (!p->ending) {
        int timeout = prepare_poll(p, fds);
        size_t n = p->n_conns;
        (void)pthread_mutex_unlock(&p->lock);
        (void)poll(fds, 2 + 2 * n, timeout);
        (void)pthread_mutex_lock(&p->lock);
        uint64_t drained;
        if (fds[0].revents & POLLIN)
            (void)!read(p->wake, &drained, sizeof(drained));
        for (size_t i = 0; i < n && !p->hold; i++) {
            if (!p->conn[i]->held)
                serve_conn(p, p->conn[i], fds + 2 + 2 * i);
        }
        if (fds[1].revents & POLLIN && !p->refuse)
            accept_one(p);
        sweep_closed(p);
    }
    (void)pthread_mutex_unlock(&p->lock);
    return NULL;
}

static void enter(struct ts_proxy *p)
{
    (void)pthread_mutex_lock(&p->lock);
}

static void leave(struct ts_proxy *p)
{
    uint64_t one = 1;
    (void)pthread_mutex_unlock(&p->lock);
    LB_CHECK(write(p->wake, &one, sizeof(one)) == (ssize_t)sizeof(one));
}

/* Port 0 lets the system choose. */
static bool start_listening(struct ts_proxy *p)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(a);
    a.sin_port = htons(p->port);
    if (p->listener >= 0)
        (void)close(p->listener); /* of a try that failed */
    p->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (p->listener < 0 ||
        setsockopt(p->listener, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)) < 0 ||
        bind(p->listener, (struct sockaddr *)&a, len) < 0 || listen(p->listener, 128) < 0 ||
        getsockname(p->listener, (struct sockaddr *)&a, &len) < 0)
        return false;
    p->port = ntohs(a.sin_port);
    (void)snprintf(p->url, sizeof(p->url), "redis://127.0.0.1:%d", (int)p->port);
    return true;
}

struct ts_proxy *ts_proxy_start(const char *upstream_socket)
{
    struct ts_proxy *p = need(calloc(1, sizeof(*p)));
    (void)pthread_mutex_init(&p->lock, NULL);
    (void)snprintf(p->upstream, sizeof(p->upstream), "%s", upstream_socket);
    p->listener = -1;
    p->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (p->wake < 0 || !start_listening(p) || pthread_create(&p->thread, NULL, run_proxy, p) != 0) {
        perror("ts_proxy_start");
        (void)close(p->listener);
        (void)close(p->wake);
        free(p);
        return NULL;
    }
    return p;
}

void ts_proxy_stop(struct ts_proxy *p)
{
    if (!p)
        return;
    enter(p);
    p->ending = true;
    leave(p);
    (void)pthread_join(p->thread, NULL);
    for (size_t i = 0; i < p->n_conns; i++) {
        reset_conn(p, p->conn[i]);
        free(p->conn[i]);
    }
    (void)close(p->listener);
    (void)close(p->wake);
    (void)pthread_mutex_destroy(&p->lock);
    free(p);
}

const char *ts_proxy_url(const struct ts_proxy *p)
{
    return p->url;
}

int ts_proxy_rule(struct ts_proxy *p, const struct ts_proxy_rule *rule)
{
    enter(p);
    LB_CHECK(p->n_active < TS_PROXY_RULES_MAX);
    int number = (int)p->n_active++;
    p->n_rules = p->n_active;
    struct rule *r = &p->rule[number];
    *r = (struct rule){.r = *rule};
    (void)snprintf(r->match, sizeof(r->match), "%s", rule->match ? rule->match : "");
    (void)snprintf(r->error, sizeof(r->error), "%s", rule->error ? rule->error : "ERR injected");
    leave(p);
    return number;
}

void ts_proxy_clear(struct ts_proxy *p)
{
    enter(p);
    p->n_active = 0;
    leave(p);
}

uint64_t ts_proxy_hits(struct ts_proxy *p, int rule)
{
    enter(p);
    LB_CHECK(rule >= 0 && (size_t)rule < p->n_rules);
    uint64_t hits = p->rule[rule].hits;
    leave(p);
    return hits;
}

void ts_proxy_drop_all(struct ts_proxy *p)
{
    enter(p);
    for (size_t i = 0; i < p->n_conns; i++)
        reset_conn(p, p->conn[i]);
    leave(p);
}

void ts_proxy_refuse(struct ts_proxy *p, bool on)
{
    enter(p);
    if (on && !p->refuse) {
        /* The poll of the proxy's thread still holds the socket: shutdown ends listening at once, close alone later. */
        (void)shutdown(p->listener, SHUT_RDWR);
        (void)close(p->listener);
        p->listener = -1;
    }
    if (!on && p->refuse)
        LB_CHECK(TS_UNTIL(2 * LADE_SECOND, start_listening(p)));
    p->refuse = on;
    leave(p);
}

void ts_proxy_hold(struct ts_proxy *p, bool on)
{
    enter(p);
    p->hold = on;
    leave(p);
}

void ts_proxy_hold_current(struct ts_proxy *p)
{
    enter(p);
    for (size_t i = 0; i < p->n_conns; i++)
        p->conn[i]->held = true;
    leave(p);
}

void ts_proxy_delay(struct ts_proxy *p, int ms)
{
    enter(p);
    p->delay_ms = ms;
    leave(p);
}

void ts_proxy_chunk(struct ts_proxy *p, int n)
{
    enter(p);
    p->chunk = n;
    leave(p);
}

void ts_proxy_upstream(struct ts_proxy *p, const char *socket_path)
{
    enter(p);
    (void)snprintf(p->upstream, sizeof(p->upstream), "%s", socket_path);
    leave(p);
}

void ts_proxy_get_stats(struct ts_proxy *p, struct ts_proxy_stats *out)
{
    enter(p);
    *out = p->stats;
    leave(p);
}
