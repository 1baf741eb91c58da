#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <lade/base.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "support/proc.h"
#include "support/proxy.h"
#include "support/proxy_wire.h"
#include "support/redis_server.h"

static struct {
    struct ts_redis redis;
    struct ts_proxy *proxy;
} fix;

static int dial(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const char *colon = strrchr(ts_proxy_url(fix.proxy), ':');
    a.sin_port = htons((uint16_t)strtoul(colon + 1, NULL, 10));
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0)
        return fd;
    if (fd >= 0)
        (void)close(fd);
    return -1;
}

/* Reads until n bytes came, the peer closed, or ms passed; NUL-ends them. */
static size_t receive(int fd, char *out, size_t n, int ms)
{
    int64_t deadline = lb_deadline_in(ms * LADE_MILLISECOND);
    size_t got = 0;
    while (got < n && lb_clock_mono() < deadline) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (poll(&p, 1, 5) <= 0)
            continue;
        ssize_t k = read(fd, out + got, n - got);
        if (k <= 0)
            break;
        got += (size_t)k;
    }
    out[got] = 0;
    return got;
}

static void ask(int fd, const char *request)
{
    assert_int_equal(send(fd, request, strlen(request), MSG_NOSIGNAL), (ssize_t)strlen(request));
}

#define PING  "*1\r\n$4\r\nPING\r\n"
#define SET_A "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\nb\r\n"
#define GET_A "*2\r\n$3\r\nGET\r\n$1\r\na\r\n"

static void end_of_a_message_is_found_for_every_type(void **state)
{
    (void)state;
    static const char *const whole[] = {
        "+OK\r\n",
        ":1\r\n",
        "$-1\r\n",
        "*-1\r\n",
        "$0\r\n\r\n",
        "$3\r\na\r\n\r\n",
        "*2\r\n$1\r\na\r\n*1\r\n:1\r\n",
        "%1\r\n+a\r\n:1\r\n",
        "|1\r\n+a\r\n+b\r\n:5\r\n",
        ">1\r\n+x\r\n",
        "_\r\n",
        "*0\r\n",
    };
    for (size_t i = 0; i < sizeof(whole) / sizeof(*whole); i++) {
        size_t n = strlen(whole[i]);
        assert_int_equal(ts_wire_message(whole[i], n), n);
        for (size_t k = 0; k < n; k++)
            assert_int_equal(ts_wire_message(whole[i], k), 0);
    }
    assert_int_equal(ts_wire_message("PING\r\n", 6), TS_WIRE_BROKEN);
}

static void replies_pass_in_any_chunking(void **state)
{
    (void)state;
    static const int chunks[] = {0, 1, 3, -1};
    for (size_t i = 0; i < 4; i++) {
        char reply[64];
        ts_proxy_chunk(fix.proxy, chunks[i]);
        int fd = dial();
        ask(fd, PING SET_A GET_A);
        assert_int_equal(receive(fd, reply, 19, 5000), 19);
        assert_string_equal(reply, "+PONG\r\n+OK\r\n$1\r\nb\r\n");
        (void)close(fd);
    }
}

static void error_is_answered_in_the_order_of_the_pipeline(void **state)
{
    (void)state;
    char reply[64];
    int fd = dial();
    int rule = ts_proxy_rule(
        fix.proxy, &(struct ts_proxy_rule){
                       .match = "SET a", .act = TS_PROXY_ERROR, .error = "OOM full", .times = 1});
    ask(fd, PING SET_A PING SET_A);
    assert_int_equal(receive(fd, reply, 30, 5000), 30);
    assert_string_equal(reply, "+PONG\r\n-OOM full\r\n+PONG\r\n+OK\r\n");
    assert_int_equal(ts_proxy_hits(fix.proxy, rule), 1);
    (void)close(fd);
}

static void reply_is_dropped_after_the_request_was_carried_out(void **state)
{
    (void)state;
    char reply[64];
    int fd = dial();
    (void)ts_proxy_rule(fix.proxy, &(struct ts_proxy_rule){
                                       .match = "SET a", .act = TS_PROXY_DROP_REPLY, .times = 1});
    ask(fd, SET_A);
    assert_int_equal(receive(fd, reply, 5, 5000), 0);
    (void)close(fd);
    fd = dial();
    ask(fd, GET_A);
    assert_int_equal(receive(fd, reply, 7, 5000), 7);
    (void)close(fd);
}

static void reply_is_cut_after_byte_k(void **state)
{
    (void)state;
    for (size_t k = 0; k < 7; k++) {
        char reply[64];
        int fd = dial();
        ts_proxy_clear(fix.proxy);
        (void)ts_proxy_rule(
            fix.proxy, &(struct ts_proxy_rule){.act = TS_PROXY_CUT_REPLY, .cut = k, .times = 1});
        ask(fd, PING);
        assert_int_equal(receive(fd, reply, 20, 5000), k);
        assert_int_equal(strncmp(reply, "+PONG\r\n", k), 0);
        (void)close(fd);
    }
}

static void delay_hold_and_refuse_do_what_they_say(void **state)
{
    (void)state;
    char reply[64];
    int fd = dial();
    ts_proxy_delay(fix.proxy, 50);
    int64_t start = lb_clock_mono();
    ask(fd, PING);
    assert_int_equal(receive(fd, reply, 7, 5000), 7);
    assert_true(lb_clock_mono() - start >= 50 * LADE_MILLISECOND);
    ts_proxy_delay(fix.proxy, 0);
    ts_proxy_hold(fix.proxy, true);
    ask(fd, PING);
    assert_int_equal(receive(fd, reply, 7, 60), 0);
    ts_proxy_hold(fix.proxy, false);
    assert_int_equal(receive(fd, reply, 7, 5000), 7);
    ts_proxy_hold_current(fix.proxy);
    ask(fd, PING);
    assert_int_equal(receive(fd, reply, 7, 60), 0);
    int other = dial();
    ask(other, PING);
    assert_int_equal(receive(other, reply, 7, 5000), 7);
    ts_proxy_refuse(fix.proxy, true);
    assert_int_equal(dial(), -1);
    ts_proxy_refuse(fix.proxy, false);
    int third = dial();
    assert_true(third >= 0);
    ts_proxy_drop_all(fix.proxy);
    assert_int_equal(receive(other, reply, 7, 5000), 0);
    (void)close(third);
    (void)close(other);
    (void)close(fd);
}

static void script_is_known_by_its_first_line(void **state)
{
    (void)state;
    char reply[64], request[256];
    int fd = dial();
    ask(fd, "*3\r\n$6\r\nSCRIPT\r\n$4\r\nLOAD\r\n$17\r\n-- take\nreturn 42\r\n");
    assert_int_equal(receive(fd, reply, 47, 5000), 47);
    int rule = ts_proxy_rule(fix.proxy, &(struct ts_proxy_rule){.match = "-- take"});
    (void)snprintf(request, sizeof(request), "*3\r\n$7\r\nEVALSHA\r\n$40\r\n%.40s\r\n$1\r\n0\r\n",
                   reply + 5);
    ask(fd, request);
    assert_int_equal(receive(fd, reply, 5, 5000), 5);
    assert_string_equal(reply, ":42\r\n");
    assert_int_equal(ts_proxy_hits(fix.proxy, rule), 1);
    (void)close(fd);
}

static int start_all(void **state)
{
    (void)state;
    if (!ts_redis_start(&fix.redis, NULL))
        return -1;
    fix.proxy = ts_proxy_start(fix.redis.socket);
    return fix.proxy ? 0 : -1;
}

static int stop_all(void **state)
{
    (void)state;
    ts_proxy_stop(fix.proxy);
    ts_redis_stop(&fix.redis);
    return 0;
}

static int calm(void **state)
{
    (void)state;
    ts_proxy_clear(fix.proxy);
    ts_proxy_chunk(fix.proxy, 0);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(end_of_a_message_is_found_for_every_type),
        cmocka_unit_test_setup(replies_pass_in_any_chunking, calm),
        cmocka_unit_test_setup(error_is_answered_in_the_order_of_the_pipeline, calm),
        cmocka_unit_test_setup(reply_is_dropped_after_the_request_was_carried_out, calm),
        cmocka_unit_test_setup(reply_is_cut_after_byte_k, calm),
        cmocka_unit_test_setup(delay_hold_and_refuse_do_what_they_say, calm),
        cmocka_unit_test_setup(script_is_known_by_its_first_line, calm),
    };
    return cmocka_run_group_tests(tests, start_all, stop_all);
}
