/* conn_fault_test.c - the connection over a network that fails and servers that refuse */
#include "store/redis/conn_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/ident.h"
#include "support/proc.h"
#include "support/proxy.h"
#include "support/redis_server.h"

static struct ts_redis server;
static struct ts_proxy *proxy;

static void open_proxied(struct rig *r)
{
    ts_proxy_clear(proxy);
    rig_open(r, ts_proxy_url(proxy), NULL);
}

static int answer(const char *match, const char *error, int times)
{
    return ts_proxy_rule(
        proxy, &(struct ts_proxy_rule){
                   .match = match, .act = TS_PROXY_ERROR, .error = error, .times = times});
}

static const char loading[] = "LOADING Redis is loading the dataset in memory";
static const char busy[] = "BUSY Redis is busy running a script.";
static const char readonly[] = "READONLY You can't write against a read only replica.";
static const char wrapped[] = "ERR Error running script (call to f_a): @user_script:1: "
                              "@user_script: 1: -READONLY You can't write against";

/* refusals ----------------------------------------------------------------------------------------------------------- */

/* C-024, C-025 */
static void loading_and_busy_are_waited_out_on_the_same_connection(void **state)
{
    (void)state;
    struct rig r;
    open_proxied(&r);
    rig_must(&r, "PING");
    (void)answer("SET a", loading, 2);
    rig_must(&r, "SET a 1");
    assert_int_equal(r.encoded, 3);
    assert_int_equal(r.repeats, 0);
    (void)answer("SET a", busy, 2);
    rig_must(&r, "SET a 1");
    assert_int_equal(r.encoded, 3);
    assert_int_equal(r.repeats, 0);
    assert_int_equal(ls_redis_conn_generation(r.c), 1);
    rig_close(&r);
}

/* C-024: during the connect too. */
static void loading_while_connecting_is_waited_out(void **state)
{
    (void)state;
    struct rig r;
    open_proxied(&r);
    int hello = answer("HELLO", loading, 2);
    rig_must(&r, "SET a 1");
    assert_int_equal(ts_proxy_hits(proxy, hello), 2);
    assert_int_equal(r.repeats, 0);
    rig_close(&r);
}

static void refusal_that_lasts_fails_at_the_deadline_with_its_meaning(void **state)
{
    (void)state;
    struct rig r;
    open_proxied(&r);
    (void)answer("SET a", loading, 0);
    int64_t start = lb_clock_mono();
    assert_int_equal(rig_run(&r, "SET a 1", 400 * LADE_MILLISECOND), -LADE_EUNAVAILABLE);
    int64_t took = lb_clock_mono() - start;
    assert_true(took >= 400 * LADE_MILLISECOND);
    assert_true(r.encoded >= 2);
    assert_non_null(strstr(r.err.text, "loads"));
    assert_false(ls_redis_conn_may_have_run(r.c));
    (void)answer("GET", busy, 0);
    assert_int_equal(rig_run(&r, "GET a", LADE_SECOND), -LADE_EBUSY);
    rig_close(&r);
}

/* C-041 */
static void failed_connects_leave_no_descriptor_behind(void **state)
{
    (void)state;
    struct rig r;
    open_proxied(&r);
    rig_must(&r, "PING");
    ls_redis_conn_drop(r.c);
    int before = ts_proc_n_fds(getpid());
    (void)answer("HELLO", "NOAUTH Authentication required.", 0);
    for (int i = 0; i < 8; i++)
        assert_int_equal(rig_run(&r, "PING", 5 * LADE_SECOND), -LADE_EAUTH);
    /* The proxy in this process closes its sides a little later. */
    assert_true(TS_UNTIL(5 * LADE_SECOND, ts_proc_n_fds(getpid()) <= before));
    rig_close(&r);
}

/* C-020, C-021: the name points elsewhere after a failover, so the connection is made anew. */
static void readonly_bare_or_wrapped_means_another_connection(void **state)
{
    (void)state;
    struct rig r;
    open_proxied(&r);
    (void)answer("SET a", readonly, 1);
    rig_must(&r, "SET a 1");
    assert_int_equal(ls_redis_conn_generation(r.c), 2);
    assert_int_equal(r.encoded, 2);
    assert_int_equal(r.repeats, 0); /* nothing ran */
    (void)answer("GET", wrapped, 1);
    rig_must(&r, "GET a");
    assert_int_equal(ls_redis_conn_generation(r.c), 3);
    assert_int_equal(r.repeats, 1); /* part of a script may have run */
    rig_close(&r);
}

static void failure_without_remedy_is_not_repeated(void **state)
{
    (void)state;
    struct rig r;
    open_proxied(&r);
    rig_must(&r, "PING");
    (void)answer("SET a", "OOM command not allowed when used memory > 'maxmemory'.", 0);
    assert_int_equal(rig_run(&r, "SET a 1", 5 * LADE_SECOND), -LADE_ENOSPACE);
    assert_int_equal(r.encoded, 1);
    (void)answer("GET", "MOVED 3999 127.0.0.1:6381", 0);
    assert_int_equal(rig_run(&r, "GET a", 5 * LADE_SECOND), -LADE_EUNSUPPORTED);
    assert_non_null(strstr(r.err.text, "MOVED 3999"));
    assert_int_equal(ls_redis_conn_generation(r.c), 1);
    rig_close(&r);
}

static void repeat_is_told_when_a_neighbour_in_the_pipeline_ran(void **state)
{
    (void)state;
    struct rig r;
    open_proxied(&r);
    (void)answer("SET a", loading, 1);
    static const char *const line[] = {"GET a", "SET a 1"};
    assert_int_equal(rig_run_all(&r, line, 2, false, 5 * LADE_SECOND), 0);
    assert_int_equal(r.encoded, 2);
    assert_int_equal(r.repeats, 1);
    (void)answer("SET a", loading, 1);
    assert_int_equal(rig_run_all(&r, line, 2, true, 5 * LADE_SECOND), -LADE_EUNAVAILABLE);
    assert_int_equal(r.encoded, 1);
    assert_true(ls_redis_conn_may_have_run(r.c));
    rig_close(&r);
}

/* the line ------------------------------------------------------------------------------------------------------------ */

static void cut(const char *match, size_t at)
{
    ts_proxy_clear(proxy);
    (void)ts_proxy_rule(
        proxy,
        &(struct ts_proxy_rule){.match = match, .act = TS_PROXY_CUT_REPLY, .cut = at, .times = 1});
}

/* C-028: a reply cut at any byte is a lost connection, never a value; the repeat gets the whole one. */
static void reply_cut_at_any_byte_is_asked_for_again(void **state)
{
    (void)state;
    struct rig r;
    open_proxied(&r);
    static const char *const line[] = {"ECHO hello-there", "SET a 1"};
    size_t whole = strlen("$11\r\nhello-there\r\n");
    for (size_t at = 0; at < whole; at++) {
        rig_must(&r, "PING"); /* ends the pacing of the last loss */
        cut("ECHO", at);
        assert_int_equal(rig_run_all(&r, line, 2, false, 5 * LADE_SECOND), 0);
        rig_expect(&r, 0, "hello-there");
        rig_expect(&r, 1, "OK");
        assert_int_equal(r.encoded, 2);
        assert_int_equal(r.repeats, 1);
        cut("ECHO", at);
        assert_int_equal(rig_run_all(&r, line, 1, true, 5 * LADE_SECOND), -LADE_EUNAVAILABLE);
        assert_int_equal(r.encoded, 1);
        assert_true(ls_redis_conn_may_have_run(r.c));
    }
    rig_close(&r);
}

/* C-040: the same inside the handshake. */
static void handshake_cut_at_any_place_is_started_again(void **state)
{
    (void)state;
    struct rig r;
    for (size_t at = 0; at < 120; at += 11) {
        open_proxied(&r);
        cut("HELLO", at);
        rig_must(&r, "ECHO x");
        assert_int_equal(r.repeats, 0);
        assert_int_equal(ls_redis_conn_generation(r.c), 1);
        rig_close(&r);
    }
}

/* C-028 */
static void chunks_of_any_size_make_no_difference(void **state)
{
    (void)state;
    struct rig r;
    open_proxied(&r);
    static const char *const line[] = {"ECHO hello-there", "CONFIG GET *", "SET a 1",
                                       "COMMAND COUNT",    "ECHO x",       "KEYS *"};
    static const int size[] = {1, 2, 7, -1};
    for (size_t i = 0; i < LB_ARRAY_LEN(size); i++) {
        ts_proxy_chunk(proxy, size[i]);
        ls_redis_conn_drop(r.c);
        assert_int_equal(rig_run_all(&r, line, LB_ARRAY_LEN(line), true, 20 * LADE_SECOND), 0);
        rig_expect(&r, 0, "hello-there");
        rig_expect(&r, 4, "x");
        assert_true(rig_int(&r, 3) > 100);
    }
    ts_proxy_chunk(proxy, 0);
    rig_close(&r);
}

static void lost_request_and_lost_reply_look_the_same(void **state)
{
    (void)state;

    static const enum ts_proxy_act act[] = {TS_PROXY_DROP_REQUEST, TS_PROXY_DROP_REPLY};

    for (size_t i = 0; i < LB_ARRAY_LEN(act); i++) {
        struct rig r;
        open_proxied(&r);
        rig_must(&r, "SET n 0");
        (void)ts_proxy_rule(proxy,
                            &(struct ts_proxy_rule){.match = "INCR", .act = act[i], .times = 1});
        rig_must(&r, "INCR n");
        assert_int_equal(r.repeats, 1);
        assert_int_equal(rig_int(&r, 0), 1 + i);
        rig_close(&r);
    }
}

struct flapping {
    atomic_bool done;
};

static void flap(void *arg)
{
    struct flapping *f = arg;
    for (int i = 0; i < 10; i++) {
        ts_nap_ms(5 + (int)lb_rand_below(120));
        ts_proxy_drop_all(proxy);
    }
    atomic_store(&f->done, true);
}

/* C-040: the state is whole after the last of ten losses at random times. */
static void flapping_line_is_survived_with_all_state_rebuilt(void **state)
{
    (void)state;
    struct rig r;
    char url[160];
    char info[512];
    ts_proxy_clear(proxy);
    (void)snprintf(url, sizeof(url), "%s/5", ts_proxy_url(proxy));
    rig_open(&r, url, NULL);
    struct flapping f = {0};
    struct lr_thread t = {0};
    assert_int_equal(lr_thread_start(&t, "flap", flap, &f), 0);
    int calls = 0;
    while (!atomic_load(&f.done)) {
        rig_must(&r, "CLIENT INFO");
        rig_text(&r, info, sizeof(info));
        calls++;
        if (!strstr(info, "name=lade ") || !strstr(info, " db=5 "))
            break;
    }
    lr_thread_join(&t);
    assert_non_null(strstr(info, "name=lade "));
    assert_non_null(strstr(info, " db=5 "));
    assert_true(calls > 10);
    rig_must(&r, "SET a 1");
    rig_close(&r);
}

static void allow_soon(void *arg)
{
    (void)arg;
    ts_nap_ms(150);
    ts_proxy_refuse(proxy, false);
}

static void refused_connects_are_repeated_until_one_is_taken(void **state)
{
    (void)state;
    struct rig r;
    struct lr_thread t = {0};
    open_proxied(&r);
    ts_proxy_refuse(proxy, true);
    assert_int_equal(rig_run(&r, "PING", 50 * LADE_MILLISECOND), -LADE_EUNAVAILABLE);
    assert_int_equal(lr_thread_start(&t, "allow", allow_soon, NULL), 0);
    int rc = rig_run(&r, "PING", 10 * LADE_SECOND);
    lr_thread_join(&t);
    assert_int_equal(rc, 0);
    assert_int_equal(r.repeats, 0);
    rig_close(&r);
}

static void silent_line_fails_at_the_deadline_also_while_connecting(void **state)
{
    (void)state;
    struct rig r;
    open_proxied(&r);
    ts_proxy_hold(proxy, true);
    for (int i = 0; i < 2; i++) {
        int64_t start = lb_clock_mono();
        assert_int_equal(rig_run(&r, "PING", 150 * LADE_MILLISECOND), -LADE_EUNAVAILABLE);
        int64_t took = lb_clock_mono() - start;
        assert_true(took >= 150 * LADE_MILLISECOND);
    }
    ts_proxy_hold(proxy, false);
    rig_must(&r, "PING");
    rig_close(&r);
}

static int start_all(void **state)
{
    (void)state;
    if (!ts_redis_start(&server, NULL))
        return -1;
    proxy = ts_proxy_start(server.socket);
    return proxy ? 0 : -1;
}

static int stop_all(void **state)
{
    (void)state;
    ts_proxy_stop(proxy);
    ts_redis_stop(&server);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loading_and_busy_are_waited_out_on_the_same_connection),
        cmocka_unit_test(loading_while_connecting_is_waited_out),
        cmocka_unit_test(refusal_that_lasts_fails_at_the_deadline_with_its_meaning),
        cmocka_unit_test(failed_connects_leave_no_descriptor_behind),
        cmocka_unit_test(readonly_bare_or_wrapped_means_another_connection),
        cmocka_unit_test(failure_without_remedy_is_not_repeated),
        cmocka_unit_test(repeat_is_told_when_a_neighbour_in_the_pipeline_ran),
        cmocka_unit_test(reply_cut_at_any_byte_is_asked_for_again),
        cmocka_unit_test(handshake_cut_at_any_place_is_started_again),
        cmocka_unit_test(chunks_of_any_size_make_no_difference),
        cmocka_unit_test(lost_request_and_lost_reply_look_the_same),
        cmocka_unit_test(flapping_line_is_survived_with_all_state_rebuilt),
        cmocka_unit_test(refused_connects_are_repeated_until_one_is_taken),
        cmocka_unit_test(silent_line_fails_at_the_deadline_also_while_connecting),
    };
    return cmocka_run_group_tests(tests, start_all, stop_all);
}
