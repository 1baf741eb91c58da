/* conn_stub_test.c - servers that no redis-server plays for us: old ones, strangers, and those that turn clients away */
#include "store/redis/conn_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "base/clock.h"
#include "support/tmpdir.h"

/*
 * A server that has read nothing but its script: for each connection it waits for bytes, sends the next line of `say`,
 * and so on; behind the last one it closes. A line "" waits for bytes and sends nothing.
 */
struct stub {
    struct ts_tmpdir dir;
    char url[160];
    int fd;
    const char *const *say;
    size_t n;
    atomic_uint accepted;
    struct lr_event stop;
    struct lr_thread thread;
};

static bool wait_readable(struct stub *s, int fd)
{
    struct lr_fd w[2] = {{.fd = fd, .want = LR_READ}, {.fd = s->stop.fd, .want = LR_READ}};
    return lr_wait_fds(w, 2, LB_FOREVER) > 0 && !w[1].ready;
}

static void serve(struct stub *s, int fd)
{
    char sink[4096];
    for (size_t i = 0; i < s->n; i++) {
        if (!wait_readable(s, fd) || recv(fd, sink, sizeof(sink), 0) <= 0)
            return;
        size_t n = strlen(s->say[i]);
        if (n > 0 && send(fd, s->say[i], n, MSG_NOSIGNAL) < 0)
            return;
    }
}

static void run_stub(void *arg)
{
    struct stub *s = arg;
    while (wait_readable(s, s->fd)) {
        int fd = accept(s->fd, NULL, NULL);
        if (fd < 0)
            continue;
        atomic_fetch_add(&s->accepted, 1);
        serve(s, fd);
        (void)close(fd);
    }
}

static void stub_start(struct stub *s, const char *const *say, size_t n)
{
    *s = (struct stub){.say = say, .n = n};
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    assert_true(ts_tmpdir_make(&s->dir));
    (void)ts_tmpdir_path(&s->dir, "s.sock", addr.sun_path, sizeof(addr.sun_path));
    (void)snprintf(s->url, sizeof(s->url), "unix://%s", addr.sun_path);
    s->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(s->fd >= 0);
    assert_int_equal(bind(s->fd, (const struct sockaddr *)&addr, sizeof(addr)), 0);
    assert_int_equal(listen(s->fd, 8), 0);
    assert_int_equal(lr_event_init(&s->stop), 0);
    assert_int_equal(lr_thread_start(&s->thread, "stub", run_stub, s), 0);
}

static void stub_stop(struct stub *s)
{
    lr_event_raise(&s->stop);
    lr_thread_join(&s->thread);
    lr_event_fini(&s->stop);
    (void)close(s->fd);
    ts_tmpdir_remove(&s->dir);
}

#define HELLO(server, version)                                                           \
    "%7\r\n$6\r\nserver\r\n+" server "\r\n$7\r\nversion\r\n+" version                    \
    "\r\n$5\r\nproto\r\n:3\r\n$2\r\nid\r\n:5\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r" \
    "\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n"
#define NO_HELLO "-ERR unknown command `HELLO`, with args beginning with: `3`, \r\n"
#define INFO_62  "$22\r\nredis_version:6.2.14\r\n\r\n+OK\r\n"
#define INFO_74  "$21\r\nredis_version:7.4.1\r\n\r\n+OK\r\n"
#define INFO_V80 \
    "$69\r\n# Server\r\nredis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8\r\n\r\n+OK\r\n"
#define INFO_V71 "$43\r\nredis_version:7.0.4\r\nvalkey_version:7.1.0\r\n\r\n-ERR no\r\n"

/* rc: of a PING that the stub answers when there is a line left. says: what the error text, or the server's name, holds. */
struct play {
    const char *say[4];
    size_t n;
    int rc;
    const char *says;
    bool once; /* one connection must have been enough */
};

static void act(const struct play *p)
{
    struct stub s;
    struct rig r;
    stub_start(&s, p->say, p->n);
    rig_open(&r, s.url, NULL);
    int rc = rig_run(&r, "PING", p->once ? 20 * LADE_SECOND : 300 * LADE_MILLISECOND);
    const char *text = rc == 0 ? ls_redis_conn_server(r.c) : r.err.text;
    if (rc != p->rc || !strstr(text, p->says))
        print_error("%s -> %d %s\n", p->say[0], rc, text);
    assert_int_equal(rc, p->rc);
    assert_non_null(strstr(text, p->says));
    if (p->once)
        assert_int_equal(atomic_load(&s.accepted), 1);
    rig_close(&r);
    stub_stop(&s);
}

static void versions_are_checked_and_named(void **state)
{
    (void)state;
    static const struct play plays[] = {
        {{HELLO("redis", "7.0.0"), "+PONG\r\n"}, 2, 0, "redis 7.0.0", true},
        {{HELLO("redis", "8.6.2"), "+PONG\r\n"}, 2, 0, "redis 8.6.2", true},
        {{HELLO("redis", "10.0"), "+PONG\r\n"}, 2, 0, "redis 10.0", true},
        {{HELLO("redis", "255.255.255"), "+PONG\r\n"}, 2, 0, "redis 255", true},
        {{HELLO("valkey", "7.2.0"), "+PONG\r\n"}, 2, 0, "valkey 7.2.0", true},
        {{HELLO("valkey", "9.1.2"), "+PONG\r\n"}, 2, 0, "valkey 9.1.2", true},
        {{HELLO("redis", "6.2.14")},
         1,
         -LADE_EUNSUPPORTED,
         "redis 6.2.14, lade needs redis 7.0",
         true},
        {{HELLO("valkey", "7.1.9")}, 1, -LADE_EUNSUPPORTED, "valkey 7.1.9, lade needs", true},
        {{HELLO("redis", "x")}, 1, -LADE_EUNSUPPORTED, "redis x", true},
        {{NO_HELLO, INFO_62}, 2, -LADE_EUNSUPPORTED, "redis 6.2.14", true},
        {{NO_HELLO, INFO_74, "+PONG\r\n"}, 3, 0, "redis 7.4.1", true},
        {{"-NOPROTO sorry\r\n", INFO_74, "+PONG\r\n"}, 3, 0, "redis 7.4.1", true},
        {{"-NOPERM no hello\r\n", INFO_V80, "+PONG\r\n"}, 3, 0, "valkey 8", true},
        {{NO_HELLO, INFO_V71}, 2, -LADE_EUNSUPPORTED, "valkey 7.1.0", true},
    };
    for (size_t i = 0; i < LB_ARRAY_LEN(plays); i++)
        act(&plays[i]);
}

static void strangers_on_the_port_are_recognised_at_once(void **state)
{
    (void)state;
    static const struct play plays[] = {
        {{"HTTP/1.1 400 Bad Request\r\n\r\n"}, 1, -LADE_EPROTO, "host and port", true},
        {{"220 mail.example ESMTP\r\n"}, 1, -LADE_EPROTO, "host and port", true},
        {{"+OK\r\n"}, 1, -LADE_EPROTO, "HELLO", true},
        {{"*1\r\n+x\r\n"}, 1, -LADE_EPROTO, "HELLO", true},
        {{"$99999999999\r\n"}, 1, -LADE_ETOOBIG, "too large", true},
        {{HELLO("redis", "7.0.0") "+more\r\n"}, 1, -LADE_EPROTO, "nobody asked for", true},
    };
    for (size_t i = 0; i < LB_ARRAY_LEN(plays); i++)
        act(&plays[i]);
}

/* C-042: the reason is the server's words, not that it closed. */
static void server_that_turns_us_away_is_quoted(void **state)
{
    (void)state;
    static const struct play plays[] = {
        {{"-ERR max number of clients reached\r\n"}, 1, -LADE_EUNAVAILABLE, "maxclients", false},
        {{"-DENIED Redis is running in protected mode\r\n"}, 1, -LADE_EACCESS, "protected", true},
        {{"-NOAUTH HELLO must be called with the client already authenticated\r\n"},
         1,
         -LADE_EAUTH,
         "password",
         true},
        {{"-LOADING Redis is loading the dataset in memory\r\n"},
         1,
         -LADE_EUNAVAILABLE,
         "loads",
         false},
        {{""}, 1, -LADE_EUNAVAILABLE, "closed", false},
    };
    for (size_t i = 0; i < LB_ARRAY_LEN(plays); i++)
        act(&plays[i]);
}

/* A reply nobody asked for would shift all later ones: the connection must not be used any further. */
static void surplus_reply_ends_the_connection(void **state)
{
    (void)state;
    static const char *const say[] = {HELLO("redis", "7.0.0"), "+PONG\r\n+PONG\r\n"};
    struct stub s;
    struct rig r;
    stub_start(&s, say, 2);
    rig_open(&r, s.url, NULL);
    assert_int_equal(rig_run(&r, "PING", 5 * LADE_SECOND), -LADE_EPROTO);
    assert_false(ls_redis_conn_is_up(r.c));
    rig_close(&r);
    stub_stop(&s);
}

/* Forms that only RESP3 has reach the reader through the connection too. */
static void attributes_and_pushes_around_a_reply_are_passed_over(void **state)
{
    (void)state;
    static const char *const say[] = {
        ">1\r\n+early\r\n" HELLO("redis", "7.0.0"),
        ">2\r\n+a\r\n:1\r\n|1\r\n+ttl\r\n:5\r\n$5\r\nhello\r\n>1\r\n+late\r\n",
        ">1\r\n+x\r\n:7\r\n"};
    struct stub s;
    struct rig r;
    stub_start(&s, say, 3);
    rig_open(&r, s.url, NULL);
    rig_must(&r, "PING");
    rig_expect(&r, 0, "hello");
    rig_must(&r, "PING");
    assert_int_equal(rig_int(&r, 0), 7);
    rig_close(&r);
    stub_stop(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(versions_are_checked_and_named),
        cmocka_unit_test(strangers_on_the_port_are_recognised_at_once),
        cmocka_unit_test(server_that_turns_us_away_is_quoted),
        cmocka_unit_test(surplus_reply_ends_the_connection),
        cmocka_unit_test(attributes_and_pushes_around_a_reply_are_passed_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
