/* resque+tls://, on a server with a certificate made for this run that asks for its client's. */
#include "resque/rs_kit.h"

#include <stdio.h>
#include <string.h>

#include <lade/lade.h>

#include "base/base.h"
#include "support/cert.h"

static char cert[200], key[200], wrong[200], wrong_key[200];

static const char *tls_url(const char *options)
{
    static char url[900];
    (void)snprintf(url, sizeof(url), "resque+tls://127.0.0.1:%d/0?%s", kit_redis.tls_port, options);
    return url;
}

static void start_tls(void)
{
    kit_start_tls(cert, key);
    (void)snprintf(wrong, sizeof(wrong), "%s/wrong.pem", kit_dir());
    (void)snprintf(wrong_key, sizeof(wrong_key), "%s/wrong-key.pem", kit_dir());
    assert_true(ts_cert_make(wrong, wrong_key, path_in_dir("openssl")));
}

/* Enqueues, waits and works over TLS: every connection of the store is one, that which is told of changes too. */
static void everything_works_over_tls(void **state)
{
    (void)state;
    struct ts_proc p;
    char options[700];
    start_tls();
    (void)snprintf(options, sizeof(options), "ca=%s&cert=%s&key=%s", cert, cert, key);
    start_worker(&p, tls_url(options), "2", "true", NULL);
    assert_true(TS_UNTIL(WAIT, strstr(ask("CLIENT LIST"), "cmd=exists") != NULL));
    enqueue_at(tls_url(options), "Ok", "[1]");
    assert_true(TS_UNTIL(WAIT, ask_int("EXISTS resque:stat:processed") == 1));
    char large[4 << 10];
    (void)snprintf(large, sizeof(large), "[\"%04000d\"]", 7);
    enqueue_at(tls_url(options), "Ok", large);
    assert_true(TS_UNTIL(WAIT, strstr(ask("GET resque:stat:processed"), "\n2\r") != NULL));
    assert_int_equal(end_worker(&p), 0);
    assert_int_equal(ask_int("EXISTS resque:failed resque:workers"), 0);
}

/* A certificate that nobody vouches for, or none of our own, ends the command, and the words say which. */
static void a_certificate_that_is_not_trusted_is_refused(void **state)
{
    (void)state;
    struct cli_run r = {0};
    char options[700];
    start_tls();
    (void)snprintf(options, sizeof(options), "ca=%s&cert=%s&key=%s", wrong, cert, key);
    RUN(&r, "enqueue", "-u", tls_url(options), "--kind", "Ok", "--payload", "[]");
    assert_code(&r, 5);
    assert_says(r.err, "not trusted");
    (void)snprintf(options, sizeof(options), "ca=%s", cert);
    RUN(&r, "enqueue", "-u", tls_url(options), "--kind", "Ok", "--payload", "[]");
    assert_code(&r, 5);
    (void)snprintf(options, sizeof(options), "ca=%s/none.pem", kit_dir());
    RUN(&r, "enqueue", "-u", tls_url(options), "--kind", "Ok", "--payload", "[]");
    assert_true(r.code != 0);
    assert_says(r.err, "none.pem");
    RUN(&r, "enqueue", "-u", tls_url("verify=maybe"), "--kind", "Ok", "--payload", "[]");
    assert_code(&r, 2);
    assert_says(r.err, "verify");
    (void)snprintf(options, sizeof(options), "verify=no&cert=%s&key=%s", cert, key);
    RUN(&r, "enqueue", "-u", tls_url(options), "--kind", "Ok", "--payload", "[]");
    assert_code(&r, 0);
    run_free(&r);
    assert_int_equal(ask_int("LLEN resque:queue:default"), 1);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_works_over_tls),
        cmocka_unit_test(a_certificate_that_is_not_trusted_is_refused)};
    return kit_main(argc, argv, "resque tls", tests, LB_ARRAY_LEN(tests));
}
