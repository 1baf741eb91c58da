/* conn_test.c - the connection against a private redis-server */
#include "store/redis/conn.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "base/clock.h"
#include "store/redis/script.h"
#include "support/redis_server.h"

#define ADD "return redis.call('INCRBY', KEYS[1], ARGV[1])"
#define GET "return redis.call('GET', KEYS[1])"

static struct ts_redis server;

struct rig {
    struct ls_redis_url url;
    struct ls_redis_conn *c;
    lade_err err;
};

static const struct ls_redis_script scripts[] = {
    {"add", ADD, sizeof(ADD) - 1, 0},
    {"get", GET, sizeof(GET) - 1, LS_REDIS_SCRIPT_READS},
};
static const struct ls_redis_script_table table = {scripts, LB_ARRAY_LEN(scripts)};

static void rig_open(struct rig *r, const char *url)
{
    *r = (struct rig){0};
    assert_int_equal(ls_redis_url_parse(&r->url, url, &r->err), 0);
    struct ls_redis_conn_config config = {
        .url = &r->url, .name = "lade", .connect_timeout = LADE_SECOND, .scripts = &table};
    assert_int_equal(ls_redis_conn_open(&r->c, &config, &r->err), 0);
}

static void rig_close(struct rig *r)
{
    ls_redis_conn_close(r->c);
    ls_redis_url_fini(&r->url);
}

/* A call of commands given as lines of words. */
struct lines {
    const char *const *line;
    size_t n;
    unsigned encoded, repeats;
};

static void encode_lines(struct ls_redis_conn *c, void *ctx, bool repeat)
{
    struct lines *l = ctx;
    l->encoded++;
    l->repeats += repeat;
    for (size_t i = 0; i < l->n; i++) {
        char copy[256];
        (void)snprintf(copy, sizeof(copy), "%s", l->line[i]);
        struct ls_redis_cmd *cmd = ls_redis_conn_begin(c, 3);
        char *rest = NULL;
        for (char *w = strtok_r(copy, " ", &rest); w; w = strtok_r(NULL, " ", &rest))
            ls_redis_arg_str(cmd, w);
        ls_redis_cmd_end(cmd);
    }
}

static int run_lines(struct rig *r, struct lines *l, int64_t timeout)
{
    struct ls_redis_call call = {.encode = encode_lines, .ctx = l, .where = "test"};
    return ls_redis_conn_call(r->c, &call, lb_deadline_in(timeout), &r->err);
}

static int run(struct rig *r, const char *line, int64_t timeout)
{
    struct lines l = {.line = &line, .n = 1};
    return run_lines(r, &l, timeout);
}

static void expect_text(struct rig *r, size_t i, const char *text)
{
    struct ls_redis_cursor cur = ls_redis_conn_reply(r->c, i);
    struct lb_slice s = ls_redis_read_bytes(&cur);
    assert_false(cur.bad);
    assert_int_equal(s.n, strlen(text));
    assert_memory_equal(s.p, text, s.n);
}

static int64_t int_of(struct rig *r, size_t i)
{
    struct ls_redis_cursor cur = ls_redis_conn_reply(r->c, i);
    int64_t v = ls_redis_read_int(&cur);
    assert_false(cur.bad);
    return v;
}

static void ping_over_a_unix_socket(void **state)
{
    (void)state;
    struct rig r;
    rig_open(&r, server.url);
    assert_false(ls_redis_conn_is_up(r.c));
    assert_int_equal(run(&r, "PING", LADE_SECOND), 0);
    expect_text(&r, 0, "PONG");
    assert_true(ls_redis_conn_is_up(r.c));
    assert_int_equal(ls_redis_conn_generation(r.c), 1);
    assert_non_null(strstr(ls_redis_conn_server(r.c), "redis "));
    rig_close(&r);
}

static void encode_scripts(struct ls_redis_conn *c, void *ctx, bool repeat)
{
    (void)repeat;
    *(unsigned *)ctx += 1;
    for (int i = 0; i < 2; i++) {
        struct ls_redis_cmd *cmd = ls_redis_script_begin(c, (size_t)i, 1, 2);
        ls_redis_arg_str(cmd, "counter");
        if (i == 0)
            ls_redis_arg_int(cmd, 5);
        ls_redis_cmd_end(cmd);
    }
}

static void scripts_are_loaded_again_after_the_server_forgot_them(void **state)
{
    (void)state;
    struct rig r;
    rig_open(&r, server.url);
    unsigned encoded = 0;
    struct ls_redis_call call = {.encode = encode_scripts, .ctx = &encoded, .where = "add"};
    assert_int_equal(ls_redis_conn_call(r.c, &call, lb_deadline_in(LADE_SECOND), &r.err), 0);
    assert_int_equal(int_of(&r, 0), 5);
    assert_int_equal(int_of(&r, 1), 5);
    assert_int_equal(run(&r, "SCRIPT FLUSH", LADE_SECOND), 0);
    assert_int_equal(ls_redis_conn_call(r.c, &call, lb_deadline_in(LADE_SECOND), &r.err), 0);
    assert_int_equal(int_of(&r, 0), 10);
    assert_int_equal(encoded, 3);
    assert_int_equal(ls_redis_conn_generation(r.c), 1);
    assert_int_equal(run(&r, "DEL counter", LADE_SECOND), 0);
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
        cmocka_unit_test(ping_over_a_unix_socket),
        cmocka_unit_test(scripts_are_loaded_again_after_the_server_forgot_them),
    };
    return cmocka_run_group_tests(tests, start_server, stop_server);
}
