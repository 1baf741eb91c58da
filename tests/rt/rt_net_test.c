/* Sockets: R28, C-107, C-108; the blocking pool and bridges. */
#include "rt_rig.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* ---- echo ---- */

struct server {
    lade_fd *listener;
    char addr[32];
    lade_taskgroup conns;
    uint64_t connections, bytes, clients, resets;
    unsigned rounds;
};

struct conn {
    struct server *s;
    lade_fd *fd;
};

static int echo(void *arg)
{
    struct conn *c = arg;
    char buf[512];
    long n;
    while ((n = lade_fd_read(c->fd, buf, sizeof(buf), LADE_FOREVER)) > 0) {
        if (lade_fd_write(c->fd, buf, (size_t)n, LADE_FOREVER) != n)
            break;
        rig_add(&c->s->bytes, (uint64_t)n);
    }
    EXPECT(lade_fd_close(c->fd) == 0);
    free(c);
    return 0;
}

static int serve(void *arg)
{
    struct server *s = arg;
    lade_fd *fd;
    int rc;
    while ((rc = lade_net_accept(s->listener, LADE_FOREVER, &fd)) == 0) {
        struct conn *c = malloc(sizeof(*c));
        *c = (struct conn){.s = s, .fd = fd};
        rig_add(&s->connections, 1);
        EXPECT(lade_taskgroup_start(&s->conns, NULL, echo, c) == 0);
    }
    EXPECT(rc == -LADE_ECANCELED); /* closed while it was parked here */
    return 0;
}

static int open_server(struct server *s, lade_taskgroup *g)
{
    int rc = lade_net_listen("127.0.0.1:0", &s->listener);
    EXPECT(rc == 0);
    (void)snprintf(s->addr, sizeof(s->addr), "127.0.0.1:%d", lade_net_port(s->listener));
    EXPECT(lade_taskgroup_start(g, NULL, serve, s) == 0);
    return rc;
}

static int close_server(struct server *s, lade_taskgroup *g)
{
    lade_task_yield();
    EXPECT(lade_fd_close(s->listener) == 0);
    EXPECT(lade_taskgroup_wait_until(g, LADE_FOREVER) == 0);
    return lade_taskgroup_wait_until(&s->conns, LADE_FOREVER);
}

static bool read_all(lade_fd *fd, void *buf, size_t n)
{
    for (size_t done = 0; done < n;) {
        long got = lade_fd_read(fd, (char *)buf + done, n - done, rig_patience());
        if (got <= 0)
            return false;
        done += (size_t)got;
    }
    return true;
}

/* A stream of its own: each 8 bytes say whose and which they are. */
static int client(void *arg)
{
    struct server *s = arg;
    uint64_t me = rig_add(&s->clients, 1);
    for (unsigned i = 0; i < s->rounds; i++) {
        lade_fd *fd;
        int rc = lade_net_connect(s->addr, rig_patience(), &fd);
        EXPECT(rc == 0);
        if (rc < 0)
            return rc;
        for (uint64_t j = 0; j < 3; j++) {
            uint64_t mark = me << 32 | (uint64_t)i << 8 | j;
            uint64_t back = 0;
            EXPECT(lade_fd_write(fd, &mark, sizeof(mark), LADE_FOREVER) == sizeof(mark));
            EXPECT(read_all(fd, &back, sizeof(back)));
            EXPECT(back == mark); /* no foreign bytes */
        }
        if (i % 3 ==
            2) { /* some go without a word: the server gets ECONNRESET or an end, nobody else gets anything */
            EXPECT(lade_fd_write(fd, &me, sizeof(me), LADE_FOREVER) == sizeof(me));
            rig_add(&s->resets, 1);
        }
        EXPECT(lade_fd_close(fd) == 0);
    }
    return 0;
}

static int echo_with(void *arg)
{
    struct server s = {.rounds = 5};
    unsigned clients = *(unsigned *)arg;
    lade_taskgroup g = {0};
    lade_taskgroup cs = {0};
    EXPECT(open_server(&s, &g) == 0);
    for (unsigned i = 0; i < clients; i++)
        EXPECT(lade_taskgroup_start(&cs, NULL, client, &s) == 0);
    EXPECT(lade_taskgroup_wait_until(&cs, LADE_FOREVER) == 0);
    int rc = close_server(&s, &g); /* after it all echoes have been counted */
    EXPECT(s.connections == (uint64_t)clients * s.rounds && s.bytes >= s.connections * 24 &&
           s.bytes <= s.connections * 24 + s.resets * 8);
    return rc;
}

/* C-107: descriptors are closed and their numbers used again all the time, and every stream stays its own. */
static void r28_clients_echo_while_descriptor_numbers_are_reused(void **state)
{
    (void)state;
    unsigned clients = 100;
    for (unsigned w = 1; w <= 2; w++)
        assert_int_equal(rig_run(w, echo_with, &clients), 0);
}

static int keep_open(void *arg)
{
    unsigned n = *(unsigned *)arg;
    struct server s = {0};
    lade_taskgroup g = {0};
    EXPECT(open_server(&s, &g) == 0);
    lade_fd **fd = calloc(n, sizeof(lade_fd *));
    for (unsigned i = 0; i < n; i++)
        EXPECT(lade_net_connect(s.addr, rig_patience(), &fd[i]) == 0);
    for (unsigned i = 0; i < n; i++) {
        uint64_t mark = i;
        EXPECT(lade_fd_write(fd[i], &mark, 8, LADE_FOREVER) == 8);
    }
    for (unsigned i = 0; i < n; i++) {
        uint64_t back = 0;
        EXPECT(read_all(fd[i], &back, 8) && back == i);
        EXPECT(lade_fd_close(fd[i]) == 0);
    }
    free(fd);
    return close_server(&s, &g);
}

static void r28_thousands_of_connections_at_once(void **state)
{
    (void)state;
    struct rlimit files;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    files.rlim_cur = files.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &files);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    unsigned n = files.rlim_cur > 21000 ? 10000 : (unsigned)files.rlim_cur / 2 - 50;
    if (rig_rounds(1) == 1 && n > 2000)
        n = 2000; /* all of them in long mode */
    assert_int_equal(rig_run(2, keep_open, &n), 0);
}

/* ---- the ends of a connection ---- */

static int read_parked(void *arg)
{
    char byte;
    EXPECT(lade_fd_read(arg, &byte, 1, LADE_FOREVER) == -LADE_ECANCELED);
    return 0;
}

static int write_slowly(void *arg)
{
    static char big[1 << 20];
    EXPECT(lade_fd_write(arg, big, sizeof(big), LADE_FOREVER) == sizeof(big));
    return 0;
}

static int ends(void *arg)
{
    (void)arg;
    int pair[2];
    lade_fd *a = NULL;
    lade_fd *b = NULL;
    char byte = 'x';
    EXPECT(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    EXPECT(lade_fd_open(pair[0], &a) == 0 && lade_fd_open(pair[1], &b) == 0);
    lade_taskgroup g = {0};
    EXPECT(lade_taskgroup_start(&g, NULL, read_parked, a) == 0);
    (void)lade_task_sleep_until(rig_in_ms(2));
    EXPECT(lade_fd_read(a, &byte, 1, 0) == -LADE_ETIMEDOUT);
    EXPECT(lade_fd_read(a, &byte, 1, rig_in_ms(2)) == -LADE_ETIMEDOUT);
    EXPECT(lade_fd_close(a) == 0); /* under a parked reader */
    EXPECT(lade_taskgroup_wait_until(&g, LADE_FOREVER) == 0);
    EXPECT(lade_fd_read(b, &byte, 1, LADE_FOREVER) == 0);          /* end of stream */
    EXPECT(lade_fd_write(b, &byte, 1, LADE_FOREVER) == -LADE_EIO); /* no SIGPIPE */
    EXPECT(lade_fd_close(b) == 0);

    EXPECT(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    EXPECT(lade_fd_open(pair[0], &a) == 0 && lade_fd_open(pair[1], &b) == 0);
    EXPECT(lade_taskgroup_start(&g, NULL, write_slowly, a) ==
           0); /* far more than fits: many partial writes */
    static char buf[1 << 20];
    EXPECT(read_all(b, buf, sizeof(buf)));
    EXPECT(lade_taskgroup_wait_until(&g, LADE_FOREVER) == 0);
    EXPECT(lade_fd_wait(a, LADE_FD_WRITE, rig_in_ms(1000)) == 0);
    EXPECT(lade_fd_wait(a, 3, 0) == -LADE_EINVAL);
    EXPECT(lade_fd_close(a) == 0 && lade_fd_close(b) == 0);
    EXPECT(lade_net_connect("127.0.0.1:1", rig_patience(), &a) == -LADE_EUNAVAILABLE);
    return 0;
}

/* The peer resets the connection under a parked reader: SO_LINGER 0 sends RST instead of FIN. */
static int read_reset(void *arg)
{
    char byte;
    EXPECT(lade_fd_read(arg, &byte, 1, LADE_FOREVER) == -LADE_EIO);
    return 0;
}

static int reset(void *arg)
{
    (void)arg;
    lade_fd *l;
    lade_fd *there;
    EXPECT(lade_net_listen("127.0.0.1:0", &l) == 0);
    int s = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                            .sin_port = htons((uint16_t)lade_net_port(l))};
    EXPECT(connect(s, (struct sockaddr *)&a, sizeof(a)) ==
           0); /* the listener's queue takes it at once */
    EXPECT(lade_net_accept(l, rig_patience(), &there) == 0);
    lade_taskgroup g = {0};
    EXPECT(lade_taskgroup_start(&g, NULL, read_reset, there) == 0);
    for (int i = 0; i < 10; i++)
        lade_task_yield();
    struct linger now = {.l_onoff = 1};
    EXPECT(setsockopt(s, SOL_SOCKET, SO_LINGER, &now, sizeof(now)) == 0);
    EXPECT(close(s) == 0);
    EXPECT(lade_taskgroup_wait_until(&g, LADE_FOREVER) == 0);
    EXPECT(lade_fd_close(there) == 0);
    EXPECT(lade_fd_close(there) ==
           -LADE_EINVAL); /* twice: told, as long as nobody else has got it */
    return lade_fd_close(l);
}

static void r28_a_reset_wakes_a_parked_reader(void **state)
{
    (void)state;
    for (unsigned w = 1; w <= 2; w++)
        assert_int_equal(rig_run(w, reset, NULL), 0);
}

/*
 * A storm of EAGAIN: eight tasks wait for one byte at a time of one socket, so that each edge wakes all and seven try in vain.
 */
struct storm {
    lade_fd *in, *out;
    uint64_t got;
    unsigned n;
};

static int read_in_storm(void *arg)
{
    struct storm *s = arg;
    char byte;
    while (lade_fd_read(s->in, &byte, 1, LADE_FOREVER) == 1)
        rig_add(&s->got, 1);
    return 0;
}

static int storm(void *arg)
{
    struct storm s = {.n = *(unsigned *)arg};
    int pair[2];
    EXPECT(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    EXPECT(lade_fd_open(pair[0], &s.in) == 0 && lade_fd_open(pair[1], &s.out) == 0);
    lade_taskgroup g = {0};
    for (int i = 0; i < 8; i++)
        EXPECT(lade_taskgroup_start(&g, NULL, read_in_storm, &s) == 0);
    for (unsigned i = 0; i < s.n; i++) {
        EXPECT(lade_fd_write(s.out, "x", 1, LADE_FOREVER) == 1);
        EXPECT(rig_reaches(&s.got, i + 1));
    }
    EXPECT(lade_fd_close(s.out) == 0); /* all eight see the end */
    EXPECT(lade_taskgroup_wait_until(&g, LADE_FOREVER) == 0);
    EXPECT(s.got == s.n);
    return lade_fd_close(s.in);
}

static void r28_many_readers_of_one_descriptor_share_what_comes(void **state)
{
    (void)state;
    unsigned n = rig_rounds(100);
    for (unsigned w = 1; w <= 2; w++)
        assert_int_equal(rig_run(w, storm, &n), 0);
}

static void r28_close_end_reset_and_partial_writes(void **state)
{
    (void)state;
    assert_int_equal(rig_run(1, ends, NULL), 0);
    assert_int_equal(rig_run(2, ends, NULL), 0);
}

/* ---- C-108 ---- */

struct batch {
    lade_fd *a, *b;
    lade_fd *fresh[2];
    uint64_t handled;
};

static int handle_first(void *arg)
{
    struct batch *k = arg;
    char byte;
    EXPECT(lade_fd_read(k->a, &byte, 1, LADE_FOREVER) == 1);
    /* Both are ready in the same poll. Close both and open two others: they get the same numbers. */
    EXPECT(lade_fd_close(k->a) == 0 && lade_fd_close(k->b) == 0);
    int end[2];
    EXPECT(pipe(end) == 0);
    EXPECT(lade_fd_open(end[0], &k->fresh[0]) == 0);
    EXPECT(lade_fd_open(end[1], &k->fresh[1]) == 0);
    EXPECT(lade_fd_wait(k->fresh[0], LADE_FD_READ, rig_in_ms(20)) ==
           -LADE_ETIMEDOUT); /* no stale event */
    rig_add(&k->handled, 1);
    EXPECT(lade_fd_close(k->fresh[0]) == 0 && lade_fd_close(k->fresh[1]) == 0);
    return 0;
}

static int wait_second(void *arg)
{
    struct batch *k = arg;
    int rc = lade_fd_wait(k->b, LADE_FD_READ, LADE_FOREVER);
    EXPECT(rc == 0 || rc == -LADE_ECANCELED || rc == -LADE_EINVAL);
    return 0;
}

static int stale_events(void *arg)
{
    (void)arg;
    for (int i = 0; i < 20; i++) {
        struct batch k = {0};
        int x[2];
        int y[2];
        EXPECT(socketpair(AF_UNIX, SOCK_STREAM, 0, x) == 0);
        EXPECT(socketpair(AF_UNIX, SOCK_STREAM, 0, y) == 0);
        EXPECT(lade_fd_open(x[0], &k.a) == 0 && lade_fd_open(y[0], &k.b) == 0);
        lade_taskgroup g = {0};
        EXPECT(lade_taskgroup_start(&g, NULL, handle_first, &k) == 0);
        EXPECT(lade_taskgroup_start(&g, NULL, wait_second, &k) == 0);
        for (int j = 0; j < 5; j++)
            lade_task_yield();
        EXPECT(write(y[1], "y", 1) == 1 &&
               write(x[1], "x", 1) == 1); /* the first handler closes both */
        EXPECT(lade_taskgroup_wait_until(&g, LADE_FOREVER) == 0);
        EXPECT(k.handled == 1);
        (void)close(x[1]);
        (void)close(y[1]);
    }
    return 0;
}

/* C-108: events of a descriptor that was closed meanwhile do not hit the one that got its number. */
static void stale_events_are_dropped(void **state)
{
    (void)state;
    assert_int_equal(rig_run(1, stale_events, NULL), 0);
    assert_int_equal(rig_run(2, stale_events, NULL), 0);
}

/* ---- blocking pool ---- */

struct block {
    uint64_t running, most, done, may_end;
};

static void block(void *arg)
{
    struct block *b = arg;
    uint64_t n = rig_add(&b->running, 1);
    if (n > rig_get(&b->most))
        __atomic_store_n(&b->most, n, __ATOMIC_SEQ_CST);
    for (int i = 0; i < 100000 && !rig_get(&b->may_end); i++)
        (void)usleep(1000);
    rig_add(&b->running, (uint64_t)-1);
    rig_add(&b->done, 1);
}

static int call_blocking(void *arg)
{
    return lade_blocking_run(block, arg);
}

static int block_many(void *arg)
{
    struct block *b = arg;
    lade_taskgroup g = {0};
    for (int i = 0; i < 30; i++)
        EXPECT(lade_taskgroup_start(&g, NULL, call_blocking, b) == 0);
    EXPECT(rig_reaches(&b->running, 4));
    for (int i = 0; i < 100; i++)
        lade_task_yield(); /* we run on while they block */
    EXPECT(rig_get(&b->done) == 0);
    rig_add(&b->may_end, 1);
    return lade_taskgroup_wait_until(&g, LADE_FOREVER);
}

static void blocking_calls_wait_on_threads_of_their_own(void **state)
{
    (void)state;
    for (unsigned w = 1; w <= 2; w++) {
        struct block b = {0};
        lade_rt_opts o = {.workers = w, .blocking_max = 4};
        assert_int_equal(lade_rt_run(&o, block_many, &b), 0);
        rig_check();
        assert_int_equal(b.done, 30);
        assert_int_equal(b.most, 4); /* the bound holds, the rest waited */
    }
    struct block outside = {.may_end = 1};
    assert_int_equal(lade_blocking_run(block, &outside), 0); /* no runtime: called directly */
    assert_int_equal(outside.done, 1);
}

/* ---- bridges ---- */

struct host {
    lade_bridge *b;
    uint64_t back;
};

static void come_back(void *arg)
{
    struct host *h = arg;
    h->back++;
}

static int answer(void *arg)
{
    struct host *h = arg;
    EXPECT(lade_bridge_back(h->b, come_back, h) == 0);
    return 42;
}

static int answer_late(void *arg)
{
    (void)arg;
    (void)lade_task_sleep_until(rig_in_ms(30));
    return 1;
}

static void bridges_carry_calls_both_ways(void **state)
{
    (void)state;
    lade_rt *rt;
    assert_int_equal(lade_rt_start(NULL, &rt), 0);
    struct host h = {0};
    assert_int_equal(lade_bridge_open(rt, &h.b), 0);
    assert_int_equal(lade_bridge_drain(h.b), 0);
    assert_int_equal(lade_bridge_call(h.b, answer, &h, LADE_FOREVER), 42);
    struct pollfd p = {.fd = lade_bridge_fd(h.b), .events = POLLIN};
    assert_int_equal(poll(&p, 1, 20000), 1);
    assert_int_equal(lade_bridge_drain(h.b), 1);
    assert_int_equal(h.back, 1);
    assert_int_equal(poll(&p, 1, 0), 0);
    assert_int_equal(lade_bridge_call(h.b, answer_late, NULL, rig_in_ms(1)), -LADE_ETIMEDOUT);
    assert_int_equal(lade_bridge_post(NULL, come_back, NULL), -LADE_EINVAL);
    lade_bridge_close(h.b);
    assert_int_equal(lade_rt_stop(rt, LADE_FOREVER), 0);
    rig_check();
}

/* ---- pipes without a reader, files of Unix sockets ---- */

static int write_to_nobody(void *arg)
{
    sigset_t pipe_only;
    sigset_t before;
    sigset_t pending;
    (void)arg;
    (void)sigemptyset(&pipe_only);
    (void)sigaddset(&pipe_only, SIGPIPE);
    for (int was_pending = 0; was_pending < 2; was_pending++) {
        int end[2];
        lade_fd *fd = NULL;
        EXPECT(pipe(end) == 0 && close(end[0]) == 0 && lade_fd_open(end[1], &fd) == 0);
        if (was_pending) { /* what the program itself has raised stays */
            (void)pthread_sigmask(SIG_BLOCK, &pipe_only, &before);
            (void)raise(SIGPIPE);
        }
        EXPECT(lade_fd_write(fd, "x", 1, rig_patience()) == -LADE_EIO);
        EXPECT(sigpending(&pending) == 0 && sigismember(&pending, SIGPIPE) == was_pending);
        if (was_pending) {
            int sig;
            (void)sigwait(&pipe_only, &sig);
            (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
        }
        EXPECT(lade_fd_close(fd) == 0);
    }
    return 0;
}

static void r28_writing_to_a_pipe_without_a_reader_fails_and_raises_nothing(void **state)
{
    (void)state;
    void (*before)(int) = signal(SIGPIPE, SIG_DFL);
    assert_int_equal(rig_run(1, write_to_nobody, NULL), 0);
    (void)signal(SIGPIPE, before);
}

static bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

static int listen_at_files(void *arg)
{
    const char *path = arg;
    char addr[128];
    lade_fd *l = NULL;
    lade_fd *second;
    lade_fd *c = NULL;
    (void)snprintf(addr, sizeof(addr), "unix:%s", path);
    for (int i = 0; i < 2; i++) { /* again at the same place */
        EXPECT(lade_net_listen(addr, &l) == 0 && exists(path));
        EXPECT(lade_net_listen(addr, &second) == -LADE_EBUSY && exists(path));
        EXPECT(lade_net_connect(addr, rig_patience(), &c) == 0 && lade_fd_close(c) == 0);
        EXPECT(lade_fd_close(l) == 0 && !exists(path));
    }
    struct sockaddr_un u = {.sun_family = AF_UNIX};
    (void)snprintf(u.sun_path, sizeof(u.sun_path), "%s", path);
    int dead = socket(AF_UNIX, SOCK_STREAM, 0); /* as a process that was killed leaves it */
    EXPECT(bind(dead, (struct sockaddr *)&u, sizeof(u)) == 0 && listen(dead, 1) == 0);
    EXPECT(close(dead) == 0 && exists(path));
    EXPECT(lade_net_listen(addr, &l) == 0);
    EXPECT(lade_net_connect(addr, rig_patience(), &c) == 0 && lade_fd_close(c) == 0);
    EXPECT(unlink(path) == 0);
    FILE *f = fopen(path, "w"); /* another's file is left alone, by close and by listen */
    EXPECT(f && fclose(f) == 0);
    EXPECT(lade_fd_close(l) == 0 && exists(path));
    EXPECT(lade_net_listen(addr, &l) == -LADE_EBUSY && exists(path));
    EXPECT(unlink(path) == 0);
    EXPECT(lade_net_listen("127.0.0.1:0", &l) == 0);
    (void)snprintf(addr, sizeof(addr), "127.0.0.1:%d", lade_net_port(l));
    EXPECT(lade_net_listen(addr, &second) == -LADE_EBUSY);
    return lade_fd_close(l);
}

static void r28_the_file_of_a_unix_listener_goes_with_it_and_a_dead_one_is_replaced(void **state)
{
    (void)state;
    char dir[] = "/tmp/lade-rt-net-XXXXXX";
    char path[64];
    assert_non_null(mkdtemp(dir));
    (void)snprintf(path, sizeof(path), "%s/socket", dir);
    assert_int_equal(rig_run(1, listen_at_files, path), 0);
    assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(r28_writing_to_a_pipe_without_a_reader_fails_and_raises_nothing),
        cmocka_unit_test(r28_the_file_of_a_unix_listener_goes_with_it_and_a_dead_one_is_replaced),
        cmocka_unit_test(r28_clients_echo_while_descriptor_numbers_are_reused),
        cmocka_unit_test(r28_thousands_of_connections_at_once),
        cmocka_unit_test(r28_a_reset_wakes_a_parked_reader),
        cmocka_unit_test(r28_many_readers_of_one_descriptor_share_what_comes),
        cmocka_unit_test(r28_close_end_reset_and_partial_writes),
        cmocka_unit_test(stale_events_are_dropped),
        cmocka_unit_test(blocking_calls_wait_on_threads_of_their_own),
        cmocka_unit_test(bridges_carry_calls_both_ways),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
