/* url_test.c - Redis URLs: what they mean and why they are refused */
#include "store/redis/url.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "base/mem.h"

static struct ls_redis_url parse(const char *url)
{
    struct ls_redis_url u;
    lade_err err = {0};
    int rc = ls_redis_url_parse(&u, url, &err);
    if (rc != 0)
        print_error("%s: %s\n", url, err.text);
    assert_int_equal(rc, 0);
    return u;
}

static void plain_url_has_defaults(void **state)
{
    (void)state;
    struct ls_redis_url u = parse("redis://localhost");
    assert_string_equal(u.host, "localhost");
    assert_int_equal(u.port, 6379);
    assert_int_equal(u.db, 0);
    assert_null(u.user);
    assert_null(u.password);
    assert_null(u.path);
    assert_false(u.tls);
    assert_string_equal(u.text, "redis://localhost:6379");
    ls_redis_url_fini(&u);
    u = parse("redis://localhost/");
    assert_int_equal(u.db, 0);
    ls_redis_url_fini(&u);
}

static void all_parts_are_decoded(void **state)
{
    (void)state;
    struct ls_redis_url u = parse("REDIS://bo%40b:p%3Aa%2Fs%25s@redis-1.example:6380/12");
    assert_string_equal(u.user, "bo@b");
    assert_string_equal(u.password, "p:a/s%s");
    assert_string_equal(u.host, "redis-1.example");
    assert_int_equal(u.port, 6380);
    assert_int_equal(u.db, 12);
    assert_string_equal(u.text, "redis://redis-1.example:6380");
    ls_redis_url_fini(&u);
    u = parse("redis://:pass:with@colon@h"); /* the last '@' ends the login */
    assert_null(u.user);
    assert_string_equal(u.password, "pass:with@colon");
    assert_string_equal(u.host, "h");
    ls_redis_url_fini(&u);
}

static void ipv6_hosts_stand_in_brackets(void **state)
{
    (void)state;
    struct ls_redis_url u = parse("redis://[::1]:6380/1");
    assert_string_equal(u.host, "::1");
    assert_int_equal(u.port, 6380);
    assert_string_equal(u.text, "redis://[::1]:6380");
    ls_redis_url_fini(&u);
    u = parse("redis://[fe80::1%25eth0]");
    assert_string_equal(u.host, "fe80::1%eth0");
    ls_redis_url_fini(&u);
}

static void tls_url_takes_its_options(void **state)
{
    (void)state;
    struct ls_redis_url u =
        parse("rediss://h:1/?ca=/etc/ca%20x.pem&cert=c.pem&key=k.pem&verify=no&sni=other");
    assert_true(u.tls);
    assert_string_equal(u.ca, "/etc/ca x.pem");
    assert_string_equal(u.cert, "c.pem");
    assert_string_equal(u.key, "k.pem");
    assert_string_equal(u.sni, "other");
    assert_false(u.verify);
    assert_string_equal(u.text, "rediss://h:1");
    ls_redis_url_fini(&u);
    u = parse("rediss://h?replicas=2");
    assert_true(u.verify);
    assert_int_equal(u.replicas, 2);
    ls_redis_url_fini(&u);
}

static void unix_url_has_a_path(void **state)
{
    (void)state;
    struct ls_redis_url u = parse("unix:///run/a%20b.sock?db=3&user=u&password=p%26q");
    assert_null(u.host);
    assert_string_equal(u.path, "/run/a b.sock");
    assert_int_equal(u.db, 3);
    assert_string_equal(u.user, "u");
    assert_string_equal(u.password, "p&q");
    assert_string_equal(u.text, "unix:///run/a b.sock");
    ls_redis_url_fini(&u);
    u = parse("unix://:secret@/run/x@y.sock");
    assert_string_equal(u.password, "secret");
    assert_string_equal(u.path, "/run/x@y.sock");
    ls_redis_url_fini(&u);
}

static void refusal_names_part_and_rule_and_never_the_password(void **state)
{
    (void)state;

    static const struct {
        const char *url, *part;
    } bad[] = {
        {"", "scheme"},
        {"http://h", "scheme"},
        {"redis:/h", "scheme"},
        {"redis://", "host"},
        {"redis://:6379", "host"},
        {"redis://a b", "spaces"},
        {"redis://h\n", "control"},
        {"redis://h#x", "'#'"},
        {"redis://h%zz", "host has a '%'"},
        {"redis://h%4", "host has a '%'"},
        {"redis://h%00", "host contains %00"},
        {"redis://h/x", "db"},
        {"redis://h/-1", "db"},
        {"redis://h/1000001", "db"},
        {"redis://h/18446744073709551616", "db"},
        {"redis://h:0", "port"},
        {"redis://h:65536", "port"},
        {"redis://h:", "port"},
        {"redis://h:12x", "port"},
        {"redis://::1", "brackets"},
        {"redis://[::1", "']'"},
        {"redis://[::1]x", "host"},
        {"redis://[]", "host"},
        {"redis://hunter2@h", "user needs a password"},
        {"redis://@h", "user and password"},
        {"redis://u:hunter2@", "host"},
        {"redis://u:hunter2@h:hunter3", "port"},
        {"redis://u:%zhunter2@h", "password has a '%'"},
        {"redis://u:hun/ter2@h", "port"},
        {"redis://u:hun?ter2=x@h", "port"},
        {"redis://h?db=1", "unknown option db"},
        {"redis://h?ca=x", "unknown option ca"},
        {"rediss://h?Verify=no", "unknown option Verify"},
        {"rediss://h?verify=maybe", "option verify"},
        {"rediss://h?verify=yes&verify=no", "option verify is given twice"},
        {"rediss://h?ca=", "option ca is empty"},
        {"rediss://h?ca=a&ca=b", "option ca is given twice"},
        {"rediss://h?ca", "has no '='"},
        {"rediss://h?cert=a", "cert and key"},
        {"redis://h?replicas=17", "option replicas must be a number from 0 to 16"},
        {"redis://h?replicas=1&replicas=1", "option replicas is given twice"},
        {"unix://run/x", "path"},
        {"unix://", "path"},
        {"unix:///x?db=1&db=2", "db is given twice"},
        {"unix:///x?user=u", "user needs a password"},
        {"unix:///x?password=hun&ter2=1", "unknown option;"},
        {"unix:///x?passwort=hunter2", "unknown option;"},
    };

    for (size_t i = 0; i < LB_ARRAY_LEN(bad); i++) {
        struct ls_redis_url u;
        lade_err err = {0};
        int rc = ls_redis_url_parse(&u, bad[i].url, &err);
        if (rc != -LADE_EINVAL || !strstr(err.text, bad[i].part))
            print_error("'%s' gave: %d %s\n", bad[i].url, rc, err.text);
        assert_int_equal(rc, -LADE_EINVAL);
        assert_non_null(strstr(err.text, bad[i].part));
        assert_null(strstr(err.text, "hun"));
        assert_null(strstr(err.text, "ter2"));
        assert_null(u.mem);
    }
}

/* C-096 */
static void lengths_are_bounded(void **state)
{
    (void)state;
    char url[8192];
    lade_err err = {0};
    struct ls_redis_url u;
    memset(url, 'a', sizeof(url));
    memcpy(url, "redis://", 8);
    url[5000] = 0;
    assert_int_equal(ls_redis_url_parse(&u, url, &err), -LADE_EINVAL);
    url[8 + 254] = 0;
    assert_int_equal(ls_redis_url_parse(&u, url, &err), -LADE_EINVAL);
    url[8 + 253] = 0;
    assert_int_equal(ls_redis_url_parse(&u, url, &err), 0);
    ls_redis_url_fini(&u);
    memcpy(url, "unix:///", 8);
    url[7 + 108] = 0;
    for (int i = 8; i < 7 + 108; i++)
        url[i] = 'a';
    assert_int_equal(ls_redis_url_parse(&u, url, &err), -LADE_EINVAL);
    url[7 + 107] = 0;
    assert_int_equal(ls_redis_url_parse(&u, url, &err), 0);
    ls_redis_url_fini(&u);
}

static void out_of_memory_is_reported(void **state)
{
    (void)state;
    struct ls_redis_url u;
    lade_err err = {0};
    lb_mem_fail_after(1);
    int rc = ls_redis_url_parse(&u, "redis://h", &err);
    lb_mem_fail_after(0);
    assert_int_equal(rc, -LADE_ENOMEM);
    ls_redis_url_fini(&u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_url_has_defaults),
        cmocka_unit_test(all_parts_are_decoded),
        cmocka_unit_test(ipv6_hosts_stand_in_brackets),
        cmocka_unit_test(tls_url_takes_its_options),
        cmocka_unit_test(unix_url_has_a_path),
        cmocka_unit_test(refusal_names_part_and_rule_and_never_the_password),
        cmocka_unit_test(lengths_are_bounded),
        cmocka_unit_test(out_of_memory_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
