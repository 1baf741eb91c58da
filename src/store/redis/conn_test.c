/* conn_test.c - the connection against a private redis-server */
#include "store/redis/conn_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/mem.h"
#include "support/redis_server.h"

#define ADD "return redis.call('INCRBY', KEYS[1], ARGV[1])"
#define GET "return redis.call('GET', KEYS[1])"

static struct ts_redis server;

static const struct ls_redis_script scripts[] = {
    {"add", ADD, sizeof(ADD) - 1, 0},
    {"get", GET, sizeof(GET) - 1, LS_REDIS_SCRIPT_READS},
};
static const struct ls_redis_script_table table = {.script = scripts, .n = LB_ARRAY_LEN(scripts)};

static void ask(const char *line)
{
    char reply[256];
    assert_true(ts_redis_ask(&server, line, reply, sizeof(reply)));
    if (reply[0] == '-')
        print_error("%s: %s\n", line, reply);
    assert_int_not_equal(reply[0], '-');
}

static void url_of(char out[128], const char *login, const char *rest)
{
    (void)snprintf(out, 128, "redis://%s127.0.0.1:%d%s", login, server.port, rest);
}

/* entering --------------------------------------------------------------------------------------------------------- */

/* By what it is and its version. */
static void assert_named(const struct ls_redis_conn *c)
{
    const char *name = ls_redis_conn_server(c), *at = strstr(name, "redis ");
    if (!at)
        at = strstr(name, "valkey ");
    assert_non_null(at);
    assert_in_range(strchr(at, ' ')[1], '7', '9');
}

static void unix_socket_is_entered_at_the_first_call(void **state)
{
    (void)state;
    struct rig r;
    rig_open(&r, server.url, NULL);
    assert_false(ls_redis_conn_is_up(r.c));
    rig_must(&r, "PING");
    rig_expect(&r, 0, "PONG");
    assert_true(ls_redis_conn_is_up(r.c));
    assert_int_equal(ls_redis_conn_generation(r.c), 1);
    assert_named(r.c);
    rig_close(&r);
}

static void tcp_is_entered_by_address_and_by_name(void **state)
{
    (void)state;
    struct rig r;
    char url[128];
    url_of(url, "", "");
    rig_open(&r, url, NULL);
    rig_must(&r, "PING");
    rig_close(&r);
    (void)snprintf(url, sizeof(url), "redis://localhost:%d", server.port);
    rig_open(&r, url, NULL);
    rig_must(&r, "PING");
    rig_close(&r);
}

static void state_of_the_connection_is_as_the_url_says(void **state)
{
    (void)state;
    struct rig r;
    char url[128];
    char info[512];
    url_of(url, "", "/3");
    rig_open(&r, url, NULL);
    rig_must(&r, "CLIENT INFO");
    rig_text(&r, info, sizeof(info));
    assert_non_null(strstr(info, "name=lade "));
    assert_non_null(strstr(info, " db=3 "));
    assert_non_null(strstr(info, " resp=3"));
    rig_close(&r);
}

static void unknown_db_is_the_urls_fault_and_fails_at_once(void **state)
{
    (void)state;
    struct rig r;
    char url[128];
    url_of(url, "", "/1000");
    rig_open(&r, url, NULL);
    assert_int_equal(rig_run(&r, "PING", 20 * LADE_SECOND), -LADE_EINVAL);
    assert_non_null(strstr(r.err.text, "db"));
    rig_close(&r);
}

static void user_and_password_are_used_and_a_wrong_one_fails_at_once(void **state)
{
    (void)state;
    struct rig r;
    char url[128];
    ask("ACL SETUSER bob reset on >hunter2 ~* +@all");
    url_of(url, "bob:hunter2@", "");
    rig_open(&r, url, NULL);
    rig_must(&r, "ACL WHOAMI");
    rig_expect(&r, 0, "bob");
    rig_close(&r);

    url_of(url, "bob:hunter3@", "");
    rig_open(&r, url, NULL);
    assert_int_equal(rig_run(&r, "PING", 20 * LADE_SECOND), -LADE_EAUTH);
    assert_null(strstr(r.err.text, "hunter"));
    assert_non_null(strstr(r.err.text, "password"));
    assert_false(ls_redis_conn_may_have_run(r.c));
    rig_close(&r);
}

static void missing_password_is_an_auth_failure(void **state)
{
    (void)state;
    struct ts_redis s;
    assert_true(ts_redis_start(&s, &(struct ts_redis_opts){.password = "hunter2"}));
    struct rig r;
    char url[160];
    (void)snprintf(url, sizeof(url), "unix://%s", s.socket);
    rig_open(&r, url, NULL);
    assert_int_equal(rig_run(&r, "PING", 5 * LADE_SECOND), -LADE_EAUTH);
    rig_close(&r);
    rig_open(&r, s.url, NULL);
    rig_must(&r, "PING");
    rig_close(&r);
    (void)snprintf(url, sizeof(url), "unix://%s?password=hunter3", s.socket);
    rig_open(&r, url, NULL);
    assert_int_equal(rig_run(&r, "PING", 5 * LADE_SECOND), -LADE_EAUTH);
    assert_null(strstr(r.err.text, "hunter"));
    rig_close(&r);
    ts_redis_stop(&s);
}

static void acl_that_forbids_a_command_is_an_access_failure(void **state)
{
    (void)state;
    struct rig r;
    char url[128];
    ask("ACL SETUSER eve reset on >pw ~* +@all -set");
    url_of(url, "eve:pw@", "");
    rig_open(&r, url, NULL);
    assert_int_equal(rig_run(&r, "SET a b", 5 * LADE_SECOND), -LADE_EACCESS);
    assert_int_equal(r.encoded, 1);
    assert_true(ls_redis_conn_is_up(r.c));
    rig_must(&r, "PING");
    rig_close(&r);
}

static void server_without_hello_is_spoken_to_in_protocol_2(void **state)
{
    (void)state;
    struct ts_redis s;
    struct rig r;
    char url[160];
    char info[512];
    char reply[64];
    const char *const args[] = {"--rename-command", "HELLO", "", NULL};
    assert_true(ts_redis_start(&s, &(struct ts_redis_opts){.args = args}));
    assert_true(ts_redis_ask(&s, "ACL SETUSER bob on >hunter2 ~* +@all", reply, sizeof(reply)));
    (void)snprintf(url, sizeof(url), "unix://bob:hunter2@%s?db=2", s.socket);
    rig_open(&r, url, &(struct ls_redis_conn_config){.scripts = &table});
    rig_must(&r, "CLIENT INFO");
    rig_text(&r, info, sizeof(info));
    assert_non_null(strstr(info, "name=lade "));
    assert_non_null(strstr(info, " db=2 "));
    assert_non_null(strstr(info, " user=bob"));
    assert_non_null(strstr(info, " resp=2"));
    assert_named(r.c);
    rig_close(&r);
    (void)snprintf(url, sizeof(url), "unix://bob:hunter3@%s", s.socket);
    rig_open(&r, url, NULL);
    assert_int_equal(rig_run(&r, "PING", 5 * LADE_SECOND), -LADE_EAUTH);
    rig_close(&r);
    ts_redis_stop(&s);
}

static void absent_server_is_tried_until_the_deadline(void **state)
{
    (void)state;
    struct rig r;
    rig_open(&r, "unix:///nonexistent/redis.sock", NULL);
    int64_t start = lb_clock_mono();
    assert_int_equal(rig_run(&r, "PING", 300 * LADE_MILLISECOND), -LADE_EUNAVAILABLE);
    int64_t took = lb_clock_mono() - start;
    assert_true(took >= 300 * LADE_MILLISECOND);
    assert_non_null(strstr(r.err.text, "unix:///nonexistent/redis.sock"));
    assert_non_null(strstr(r.err.text, "No such file"));
    assert_false(ls_redis_conn_may_have_run(r.c));
    rig_close(&r);
}

static void server_that_was_never_there_fails_at_once_and_one_that_was_is_waited_for(void **state)
{
    (void)state;
    static const char *const absent[] = {"unix:///nonexistent/redis.sock", "redis://127.0.0.1:1"};
    for (size_t i = 0; i < LB_ARRAY_LEN(absent); i++) {
        struct rig r;
        bool reached = false;
        struct ls_redis_conn_config config = {
            .name = "lade", .connect_timeout = LADE_SECOND, .reached = &reached};
        rig_open(&r, absent[i], &config);
        int64_t end = lb_deadline_in(60 * LADE_SECOND);
        assert_int_equal(ls_redis_conn_connect(r.c, end, &r.err), -LADE_EUNAVAILABLE);
        assert_true(lb_clock_mono() < end);
        reached = true;
        int64_t soon = lb_deadline_in(200 * LADE_MILLISECOND);
        assert_int_equal(ls_redis_conn_connect(r.c, soon, &r.err), -LADE_EUNAVAILABLE);
        assert_true(lb_clock_mono() >= soon);
        rig_close(&r);
    }
    struct rig r;
    bool reached = false;
    struct ls_redis_conn_config config = {
        .name = "lade", .connect_timeout = 5 * LADE_SECOND, .reached = &reached};
    rig_open(&r, server.url, &config);
    rig_must(&r, "PING");
    assert_true(reached);
    rig_close(&r);
}

static void unknown_host_name_fails_at_once(void **state)
{
    (void)state;
    struct rig r;
    rig_open(&r, "redis://-", NULL);
    assert_int_equal(rig_run(&r, "PING", 2 * LADE_SECOND), -LADE_EUNAVAILABLE);
    assert_non_null(strstr(r.err.text, "redis://-:6379"));
    rig_close(&r);
}

/* calls ------------------------------------------------------------------------------------------------------------ */

static void encode_many(struct ls_redis_conn *c, void *ctx, bool repeat)
{
    const char *text = ctx;
    (void)repeat;
    for (size_t i = 0; i < LS_REDIS_PIPELINE_MAX; i++) {
        struct ls_redis_cmd *cmd = ls_redis_conn_begin(c, 2);
        ls_redis_arg_str(cmd, "ECHO");
        ls_redis_arg(cmd, text + i % 64, 4096 - i % 64);
        ls_redis_cmd_end(cmd);
    }
}

/* 16 MB each way: more than all buffers between the two hold. */
static void long_pipeline_keeps_its_order(void **state)
{
    (void)state;
    static char text[4096];
    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = (char)('a' + i % 23);
    char url[128];
    url_of(url, "", "");
    for (int round = 0; round < 2; round++) {
        struct rig r;
        rig_open(&r, round ? url : server.url, NULL);
        struct ls_redis_call call = {.encode = encode_many, .ctx = text, .where = "echo"};
        int64_t deadline = lb_deadline_in(20 * LADE_SECOND);
        assert_int_equal(ls_redis_conn_call(r.c, &call, deadline, &r.err), 0);
        for (size_t i = 0; i < LS_REDIS_PIPELINE_MAX; i++) {
            struct ls_redis_cursor cur = ls_redis_conn_reply(r.c, i);
            struct lb_slice s = ls_redis_read_bytes(&cur);
            assert_int_equal(s.n, 4096 - i % 64);
            assert_memory_equal(s.p, text + i % 64, s.n);
        }
        rig_must(&r, "PING");
        rig_close(&r);
    }
}

/* C-045 */
static void reply_over_the_limit_is_refused_and_the_next_one_is_fine(void **state)
{
    (void)state;
    struct rig r;
    rig_open(&r, server.url, &(struct ls_redis_conn_config){.reply_max = 1000000});
    rig_must(&r, "SETRANGE big 999980 x");
    rig_must(&r, "GET big");
    rig_must(&r, "SETRANGE big 1000000 x");
    assert_int_equal(rig_run(&r, "GET big", 5 * LADE_SECOND), -LADE_ETOOBIG);
    assert_int_equal(r.encoded, 1);
    rig_must(&r, "DEL big");
    rig_close(&r);
}

static void encode_too_big(struct ls_redis_conn *c, void *ctx, bool repeat)
{
    (void)repeat;
    *(unsigned *)ctx += 1;
    static char text[2 << 20];
    for (int i = 0; i < 21; i++) {
        struct ls_redis_cmd *cmd = ls_redis_conn_begin(c, 2);
        ls_redis_arg_str(cmd, "ECHO");
        ls_redis_arg(cmd, text, i == 10 ? sizeof(text) : 10);
        ls_redis_cmd_end(cmd);
    }
}

/* C-044: the server closes on a value over its limit; sending it again would go on for ever. */
static void value_over_the_servers_limit_is_sent_once(void **state)
{
    (void)state;
    char url[128];
    ask("CONFIG SET proto-max-bulk-len 1mb");
    url_of(url, "", "");
    for (int i = 0; i < 2; i++) {
        struct rig r;
        rig_open(&r, i ? url : server.url, NULL);
        rig_must(&r, "PING");
        unsigned encoded = 0;
        struct ls_redis_call call = {.encode = encode_too_big, .ctx = &encoded, .where = "echo"};
        int64_t deadline = lb_deadline_in(10 * LADE_SECOND);
        assert_int_equal(ls_redis_conn_call(r.c, &call, deadline, &r.err), -LADE_ETOOBIG);
        assert_non_null(strstr(r.err.text, "proto-max-bulk-len"));
        assert_int_equal(encoded, 1);
        rig_must(&r, "PING");
        rig_close(&r);
    }
    ask("CONFIG SET proto-max-bulk-len 512mb");
}

static void error_replies_fail_the_call_unless_raw(void **state)
{
    (void)state;
    struct rig r;
    rig_open(&r, server.url, NULL);
    static const char *const line[] = {"SET x 1", "LPUSH x 1", "GET x"};
    assert_int_equal(rig_run_all(&r, line, 3, false, 5 * LADE_SECOND), -LADE_EFOREIGN);
    assert_true(ls_redis_conn_may_have_run(r.c));
    assert_string_equal(r.err.where, "test");
    assert_int_equal(rig_run(&r, "NONSENSE", 5 * LADE_SECOND), -LADE_EUNSUPPORTED);
    assert_false(ls_redis_conn_may_have_run(r.c));
    rig_must(&r, "DEL x");
    rig_close(&r);
}

static void encode_scripts(struct ls_redis_conn *c, void *ctx, bool repeat)
{
    (void)repeat;
    *(unsigned *)ctx += 1;
    for (size_t i = 0; i < 2; i++) {
        struct ls_redis_cmd *cmd = ls_redis_script_begin(c, i, 1, 2);
        ls_redis_arg_str(cmd, "counter");
        if (i == 0)
            ls_redis_arg_int(cmd, 5);
        ls_redis_cmd_end(cmd);
    }
}

/* chasqui 23 */
static void scripts_are_loaded_again_after_the_server_forgot_them(void **state)
{
    (void)state;
    struct rig r;
    rig_open(&r, server.url, &(struct ls_redis_conn_config){.scripts = &table});
    unsigned encoded = 0;
    struct ls_redis_call call = {.encode = encode_scripts, .ctx = &encoded, .where = "add"};
    assert_int_equal(ls_redis_conn_call(r.c, &call, lb_deadline_in(5 * LADE_SECOND), &r.err), 0);
    assert_int_equal(rig_int(&r, 0), 5);
    assert_int_equal(rig_int(&r, 1), 5);
    rig_must(&r, "SCRIPT FLUSH");
    assert_int_equal(ls_redis_conn_call(r.c, &call, lb_deadline_in(5 * LADE_SECOND), &r.err), 0);
    assert_int_equal(rig_int(&r, 0), 10);
    assert_int_equal(encoded, 3);
    assert_int_equal(ls_redis_conn_generation(r.c), 1);
    rig_must(&r, "DEL counter");
    rig_close(&r);
}

static void script_that_does_not_compile_fails_the_connect_with_its_reason(void **state)
{
    (void)state;
    static const struct ls_redis_script bad[] = {{"bad", "return +", 8, 0}};
    static const struct ls_redis_script_table bad_table = {.script = bad, .n = 1};
    struct rig r;
    rig_open(&r, server.url, &(struct ls_redis_conn_config){.scripts = &bad_table});
    assert_int_equal(rig_run(&r, "PING", 5 * LADE_SECOND), -LADE_EPROTO);
    assert_non_null(strstr(r.err.text, "compiling"));
    assert_false(ls_redis_conn_is_up(r.c));
    rig_close(&r);
}

static void pushes_between_replies_are_passed_over(void **state)
{
    (void)state;
    struct rig r;
    rig_open(&r, server.url, NULL);
    rig_must(&r, "CLIENT TRACKING ON");
    for (int i = 0; i < 20; i++) {
        rig_must(&r, "GET watched");
        ask("SET watched 1");
        static const char *const line[] = {"GET watched", "PING", "ECHO x"};
        assert_int_equal(rig_run_all(&r, line, 3, false, 5 * LADE_SECOND), 0);
        rig_expect(&r, 0, "1");
        rig_expect(&r, 2, "x");
    }
    assert_int_equal(ls_redis_conn_generation(r.c), 1);
    ask("DEL watched");
    rig_close(&r);
}

static void every_failed_allocation_is_survived(void **state)
{
    (void)state;
    int failures = 0;
    for (uint64_t n = 1; n < 200; n++) {
        struct rig r = {0};
        assert_int_equal(ls_redis_url_parse(&r.url, server.url, &r.err), 0);
        struct ls_redis_conn_config config = {
            .url = &r.url, .connect_timeout = LADE_SECOND, .scripts = &table};
        lb_mem_fail_after(n);
        int rc = ls_redis_conn_open(&r.c, &config, &r.err);
        if (rc == 0)
            rc = rig_run(&r, "CONFIG GET *", 5 * LADE_SECOND);
        lb_mem_fail_after(0);
        assert_true(rc == 0 || rc == -LADE_ENOMEM);
        if (r.c)
            rig_must(&r, "PING");
        rig_close(&r);
        if (rc == 0)
            break;
        failures++;
    }
    assert_in_range(failures, 3, 100);
}

#ifdef LADE_FAULTS
static void lost_connection_at_each_fault_point_is_repeated_as_told(void **state)
{
    (void)state;

    static const struct {
        const char *point;
        unsigned repeats;
    } fault[] = {{"redis.send.before:1:fail", 0},
                 {"redis.send.after:1:fail", 1},
                 {"redis.reply.after:1:fail", 1}};
    struct rig r;
    rig_open(&r, server.url, NULL);
    for (size_t i = 0; i < LB_ARRAY_LEN(fault); i++) {
        rig_must(&r, "SET n 0");
        lb_fault_arm(fault[i].point);
        rig_must(&r, "INCR n");
        lb_fault_arm(NULL);
        assert_int_equal(r.encoded, 2);
        assert_int_equal(r.repeats, fault[i].repeats);
    }
    rig_must(&r, "DEL n");
    rig_close(&r);
}
#endif

/* server gone, server silent ----------------------------------------------------------------------------------------- */

static void restart_between_calls_is_noticed_before_anything_is_sent(void **state)
{
    (void)state;
    struct rig r;
    rig_open(&r, server.url, &(struct ls_redis_conn_config){.scripts = &table});
    rig_must(&r, "SET a 1");
    for (int i = 0; i < 3; i++) {
        ts_redis_kill(&server);
        assert_true(ts_redis_again(&server));
        rig_must(&r, "EXISTS a");
        assert_int_equal(rig_int(&r, 0), 0);
        assert_int_equal(r.repeats, 0);
        assert_int_equal(ls_redis_conn_generation(r.c), 2 + i);
    }
    unsigned encoded = 0;
    struct ls_redis_call call = {.encode = encode_scripts, .ctx = &encoded, .where = "add"};
    assert_int_equal(ls_redis_conn_call(r.c, &call, lb_deadline_in(5 * LADE_SECOND), &r.err), 0);
    rig_close(&r);
}

static void killed_server_fails_a_call_at_its_deadline_and_is_found_again(void **state)
{
    (void)state;
    struct rig r;
    rig_open(&r, server.url, NULL);
    rig_must(&r, "PING");
    ts_redis_kill(&server);
    assert_int_equal(rig_run(&r, "PING", 200 * LADE_MILLISECOND), -LADE_EUNAVAILABLE);
    assert_true(ts_redis_again(&server));
    rig_must(&r, "PING");
    rig_close(&r);
}

static void silent_server_fails_a_call_at_its_deadline(void **state)
{
    (void)state;
    struct rig r;
    rig_open(&r, server.url, NULL);
    rig_must(&r, "PING");
    ts_redis_freeze(&server);
    int64_t start = lb_clock_mono();
    assert_int_equal(rig_run(&r, "INCR n", 200 * LADE_MILLISECOND), -LADE_EUNAVAILABLE);
    int64_t took = lb_clock_mono() - start;
    assert_true(took >= 200 * LADE_MILLISECOND);
    assert_true(ls_redis_conn_may_have_run(r.c));
    assert_false(ls_redis_conn_is_up(r.c));
    start = lb_clock_mono();
    assert_int_equal(rig_run(&r, "PING", 200 * LADE_MILLISECOND), -LADE_EUNAVAILABLE);
    took = lb_clock_mono() - start;
    assert_true(took >= 200 * LADE_MILLISECOND);
    assert_false(ls_redis_conn_may_have_run(r.c));
    ts_redis_thaw(&server);
    rig_must(&r, "PING");
    rig_expect(&r, 0, "PONG");
    rig_must(&r, "DEL n");
    rig_close(&r);
}

static int start_server(void **state)
{
    (void)state;
    return ts_redis_start(&server, &(struct ts_redis_opts){.tcp = true}) ? 0 : -1;
}

static int stop_server(void **state)
{
    (void)state;
    ts_redis_stop(&server);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unix_socket_is_entered_at_the_first_call),
        cmocka_unit_test(tcp_is_entered_by_address_and_by_name),
        cmocka_unit_test(state_of_the_connection_is_as_the_url_says),
        cmocka_unit_test(unknown_db_is_the_urls_fault_and_fails_at_once),
        cmocka_unit_test(user_and_password_are_used_and_a_wrong_one_fails_at_once),
        cmocka_unit_test(missing_password_is_an_auth_failure),
        cmocka_unit_test(acl_that_forbids_a_command_is_an_access_failure),
        cmocka_unit_test(server_without_hello_is_spoken_to_in_protocol_2),
        cmocka_unit_test(absent_server_is_tried_until_the_deadline),
        cmocka_unit_test(server_that_was_never_there_fails_at_once_and_one_that_was_is_waited_for),
        cmocka_unit_test(unknown_host_name_fails_at_once),
        cmocka_unit_test(long_pipeline_keeps_its_order),
        cmocka_unit_test(reply_over_the_limit_is_refused_and_the_next_one_is_fine),
        cmocka_unit_test(value_over_the_servers_limit_is_sent_once),
        cmocka_unit_test(error_replies_fail_the_call_unless_raw),
        cmocka_unit_test(scripts_are_loaded_again_after_the_server_forgot_them),
        cmocka_unit_test(script_that_does_not_compile_fails_the_connect_with_its_reason),
        cmocka_unit_test(pushes_between_replies_are_passed_over),
        cmocka_unit_test(every_failed_allocation_is_survived),
#ifdef LADE_FAULTS
        cmocka_unit_test(lost_connection_at_each_fault_point_is_repeated_as_told),
#endif
        cmocka_unit_test(restart_between_calls_is_noticed_before_anything_is_sent),
        cmocka_unit_test(killed_server_fails_a_call_at_its_deadline_and_is_found_again),
        cmocka_unit_test(silent_server_fails_a_call_at_its_deadline),
    };
    return cmocka_run_group_tests(tests, start_server, stop_server);
}
