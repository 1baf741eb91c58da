/* tls_test.c - rediss:// against a redis-server with a certificate made for this run */
#include "store/redis/conn_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "base/clock.h"
#include "support/cert.h"
#include "support/redis_server.h"

static struct ts_redis server;
static struct ts_tmpdir dir;
static char cert[128], key[128], wrong[128];

static void open_tls(struct rig *r, const char *host, const char *options)
{
    char url[512];
    (void)snprintf(url, sizeof(url), "rediss://%s:%d/1?%s", host, server.tls_port, options);
    rig_open(r, url, NULL);
}

/* chasqui 63 */
static void known_ca_and_right_host_are_trusted(void **state)
{
    (void)state;
    static const char *const host[] = {"127.0.0.1", "localhost"};
    char options[160];
    (void)snprintf(options, sizeof(options), "ca=%s", cert);
    for (size_t i = 0; i < LB_ARRAY_LEN(host); i++) {
        struct rig r;
        char info[512];
        open_tls(&r, host[i], options);
        rig_must(&r, "CLIENT INFO");
        rig_text(&r, info, sizeof(info));
        assert_non_null(strstr(info, " db=1 "));
        rig_must(&r, "ECHO x");
        rig_expect(&r, 0, "x");
        rig_close(&r);
    }
}

static void expect_distrust(const char *options, const char *says)
{
    struct rig r;
    open_tls(&r, "127.0.0.1", options);
    int rc = rig_run(&r, "PING", 20 * LADE_SECOND);
    if (rc != -LADE_EAUTH || !strstr(r.err.text, says))
        print_error("%s -> %d %s\n", options, rc, r.err.text);
    assert_int_equal(rc, -LADE_EAUTH);
    assert_non_null(strstr(r.err.text, says));
    rig_close(&r);
}

static void unknown_ca_or_wrong_host_is_refused_at_once(void **state)
{
    (void)state;
    char options[400];
    expect_distrust("", "not trusted");
    (void)snprintf(options, sizeof(options), "ca=%s", wrong);
    expect_distrust(options, "not trusted");
    (void)snprintf(options, sizeof(options), "ca=%s&sni=other.example", cert);
    expect_distrust(options, "ostname mismatch");
}

static void verify_no_trusts_anybody(void **state)
{
    (void)state;
    struct rig r;
    open_tls(&r, "127.0.0.1", "verify=no&sni=other.example");
    rig_must(&r, "PING");
    rig_close(&r);
}

static void file_that_is_no_certificate_is_named(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        char url[512];
        char options[300];
        struct rig r = {0};
        (void)snprintf(options, sizeof(options), i ? "cert=%s/none&key=/none" : "ca=%s/none",
                       dir.path);
        (void)snprintf(url, sizeof(url), "rediss://127.0.0.1?%s", options);
        assert_int_equal(ls_redis_url_parse(&r.url, url, &r.err), 0);
        struct ls_redis_conn_config config = {.url = &r.url, .connect_timeout = LADE_SECOND};
        assert_int_equal(ls_redis_conn_open(&r.c, &config, &r.err), -LADE_EINVAL);
        assert_non_null(strstr(r.err.text, "/none"));
        assert_null(r.c);
        rig_close(&r);
    }
}

static void client_certificate_is_shown_when_asked_for(void **state)
{
    (void)state;
    struct rig r;
    char options[400];
    char reply[64];
    assert_true(ts_redis_ask(&server, "CONFIG SET tls-auth-clients yes", reply, sizeof(reply)));
    (void)snprintf(options, sizeof(options), "ca=%s&cert=%s&key=%s", cert, cert, key);
    open_tls(&r, "127.0.0.1", options);
    rig_must(&r, "PING");
    rig_close(&r);
    (void)snprintf(options, sizeof(options), "ca=%s", cert);
    expect_distrust(options, "certificate");
    assert_true(ts_redis_ask(&server, "CONFIG SET tls-auth-clients no", reply, sizeof(reply)));
}

static void encode_big(struct ls_redis_conn *c, void *ctx, bool repeat)
{
    (void)repeat;
    for (int i = 0; i < 64; i++) {
        struct ls_redis_cmd *cmd = ls_redis_conn_begin(c, 2);
        ls_redis_arg_str(cmd, "ECHO");
        ls_redis_arg(cmd, ctx, (size_t)65536 + i);
        ls_redis_cmd_end(cmd);
    }
}

static void long_pipeline_passes_through(void **state)
{
    (void)state;
    static char text[65536 + 64];
    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = (char)('a' + i % 23);
    struct rig r;
    char options[160];
    (void)snprintf(options, sizeof(options), "ca=%s", cert);
    open_tls(&r, "127.0.0.1", options);
    struct ls_redis_call call = {.encode = encode_big, .ctx = text, .where = "echo"};
    int64_t deadline = lb_deadline_in(20 * LADE_SECOND);
    assert_int_equal(ls_redis_conn_call(r.c, &call, deadline, &r.err), 0);
    for (size_t i = 0; i < 64; i++) {
        struct ls_redis_cursor cur = ls_redis_conn_reply(r.c, i);
        struct lb_slice s = ls_redis_read_bytes(&cur);
        assert_int_equal(s.n, 65536 + i);
        assert_memory_equal(s.p, text, s.n);
    }
    rig_close(&r);
}

static void plain_and_tls_ports_taken_for_each_other_fail(void **state)
{
    (void)state;
    struct rig r;
    char url[128];
    (void)snprintf(url, sizeof(url), "redis://127.0.0.1:%d", server.tls_port);
    rig_open(&r, url, NULL);
    int rc = rig_run(&r, "PING", 300 * LADE_MILLISECOND);
    assert_true(rc == -LADE_EUNAVAILABLE || rc == -LADE_EPROTO);
    rig_close(&r);
    (void)snprintf(url, sizeof(url), "rediss://127.0.0.1:%d?verify=no", server.port);
    rig_open(&r, url, NULL);
    rc = rig_run(&r, "PING", 300 * LADE_MILLISECOND);
    assert_true(rc == -LADE_EUNAVAILABLE || rc == -LADE_EPROTO);
    rig_close(&r);
}

/* Nothing raises SIGPIPE, whose default would end this program. */
static void restart_and_silence_are_survived(void **state)
{
    (void)state;
    struct rig r;
    char options[160];
    (void)snprintf(options, sizeof(options), "ca=%s", cert);
    open_tls(&r, "127.0.0.1", options);
    rig_must(&r, "PING");
    ts_redis_kill(&server);
    assert_int_equal(rig_run(&r, "PING", 100 * LADE_MILLISECOND), -LADE_EUNAVAILABLE);
    assert_true(ts_redis_again(&server));
    rig_must(&r, "PING");
    ts_redis_freeze(&server);
    for (int i = 0; i < 2; i++) { /* in a call, then in the handshake */
        assert_int_equal(rig_run(&r, "PING", 150 * LADE_MILLISECOND), -LADE_EUNAVAILABLE);
    }
    ts_redis_thaw(&server);
    rig_must(&r, "PING");
    rig_close(&r);
}

static int start_server(void **state)
{
    (void)state;
    static const char *args[7];
    static char wrong_key[128];
    if (!ts_tmpdir_make(&dir))
        return -1;
    (void)ts_tmpdir_path(&dir, "cert.pem", cert, sizeof(cert));
    (void)ts_tmpdir_path(&dir, "key.pem", key, sizeof(key));
    (void)ts_tmpdir_path(&dir, "wrong.pem", wrong, sizeof(wrong));
    (void)ts_tmpdir_path(&dir, "wrong-key.pem", wrong_key, sizeof(wrong_key));
    char log[128];
    (void)ts_tmpdir_path(&dir, "openssl.log", log, sizeof(log));
    if (!ts_cert_make(cert, key, log) || !ts_cert_make(wrong, wrong_key, log))
        return -1;
    const char *const all[] = {"--tls-cert-file",    cert, "--tls-key-file", key,
                               "--tls-ca-cert-file", cert};
    memcpy(args, all, sizeof(all));
    return ts_redis_start(&server, &(struct ts_redis_opts){.tcp = true, .tls = true, .args = args})
               ? 0
               : -1;
}

static int stop_server(void **state)
{
    (void)state;
    ts_redis_stop(&server);
    ts_tmpdir_remove(&dir);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_ca_and_right_host_are_trusted),
        cmocka_unit_test(unknown_ca_or_wrong_host_is_refused_at_once),
        cmocka_unit_test(verify_no_trusts_anybody),
        cmocka_unit_test(file_that_is_no_certificate_is_named),
        cmocka_unit_test(client_certificate_is_shown_when_asked_for),
        cmocka_unit_test(long_pipeline_passes_through),
        cmocka_unit_test(plain_and_tls_ports_taken_for_each_other_fail),
        cmocka_unit_test(restart_and_silence_are_survived),
    };
    return cmocka_run_group_tests(tests, start_server, stop_server);
}
