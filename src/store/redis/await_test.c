/* await_test.c - send and await: commands whose reply comes much later */
#include "store/redis/conn_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "base/clock.h"
#include "support/redis_server.h"

static struct ts_redis server;

static void ask(const char *line)
{
    char reply[256];
    assert_true(ts_redis_ask(&server, line, reply, sizeof(reply)));
    assert_int_not_equal(reply[0], '-');
}

static void send_line(struct rig *r, const char *const *word, size_t n)
{
    struct ls_redis_cmd *cmd = ls_redis_conn_begin(r->c, n);
    for (size_t i = 0; i < n; i++)
        ls_redis_arg_str(cmd, word[i]);
    ls_redis_cmd_end(cmd);
    assert_int_equal(ls_redis_conn_send(r->c, lb_deadline_in(5 * LADE_SECOND), &r->err), 0);
}

static const char *const blpop[] = {"BLPOP", "bell", "0"};

static void open_waiting(struct rig *r)
{
    rig_open(r, server.url, &(struct ls_redis_conn_config){.no_spin = true});
    assert_int_equal(ls_redis_conn_connect(r->c, lb_deadline_in(5 * LADE_SECOND), &r->err), 0);
    send_line(r, blpop, 3);
    assert_int_equal(ls_redis_conn_outstanding(r->c), 1);
}

static int await(struct rig *r, struct lr_event *wake, int64_t timeout)
{
    return ls_redis_conn_await(r->c, wake, lb_deadline_in(timeout), &r->err);
}

static void blocking_reply_waits_for_event_deadline_or_reply(void **state)
{
    (void)state;
    struct rig r;
    struct lr_event wake;
    assert_int_equal(lr_event_init(&wake), 0);
    open_waiting(&r);
    assert_int_equal(await(&r, &wake, 20 * LADE_MILLISECOND), LS_REDIS_LATE);
    lr_event_raise(&wake);
    assert_int_equal(await(&r, &wake, 20 * LADE_SECOND), LS_REDIS_WOKEN);
    assert_int_equal(await(&r, &wake, 20 * LADE_SECOND), LS_REDIS_WOKEN);
    assert_int_equal(ls_redis_conn_outstanding(r.c), 1);
    ask("RPUSH bell 1");
    lr_event_clear(&wake);
    assert_int_equal(await(&r, &wake, 5 * LADE_SECOND), LS_REDIS_REPLIED);
    assert_int_equal(ls_redis_conn_outstanding(r.c), 0);
    struct ls_redis_cursor cur = ls_redis_conn_reply(r.c, 0);
    assert_int_equal(ls_redis_read_array(&cur), 2);
    assert_true(lb_slice_eq(ls_redis_read_bytes(&cur), lb_slice_str("bell")));
    assert_int_equal(ls_redis_read_int(&cur), 1);
    assert_false(cur.bad);
    assert_int_equal(await(&r, NULL, 10 * LADE_MILLISECOND), LS_REDIS_LATE);
    rig_must(&r, "PING");
    rig_close(&r);
    lr_event_fini(&wake);
}

/* C-023 */
static void forced_unblocking_is_a_reply_to_look_at(void **state)
{
    (void)state;
    struct rig r;
    char reply[32];
    char line[64];
    rig_open(&r, server.url, NULL);
    rig_must(&r, "CLIENT ID");
    (void)snprintf(line, sizeof(line), "CLIENT UNBLOCK %lld ERROR", (long long)rig_int(&r, 0));
    send_line(&r, blpop, 3);
    assert_int_equal(await(&r, NULL, 20 * LADE_MILLISECOND), LS_REDIS_LATE);
    assert_true(ts_redis_ask(&server, line, reply, sizeof(reply)));
    assert_int_equal(await(&r, NULL, 5 * LADE_SECOND), LS_REDIS_REPLIED);
    struct ls_redis_cursor cur = ls_redis_conn_reply(r.c, 0);
    struct ls_redis_value v = ls_redis_read(&cur);
    assert_int_equal(v.type, LS_REDIS_ERROR);
    assert_int_equal(ls_redis_refusal_of(v.bytes, NULL), LS_REDIS_REFUSED_UNBLOCKED);
    assert_int_equal(ls_redis_refusal_remedy(LS_REDIS_REFUSED_UNBLOCKED), LS_REDIS_REMEDY_WAIT);
    rig_must(&r, "PING");
    rig_close(&r);
}

static void lost_server_ends_a_blocking_wait(void **state)
{
    (void)state;
    struct rig r;
    open_waiting(&r);
    ts_redis_kill(&server);
    assert_int_equal(await(&r, NULL, 20 * LADE_SECOND), -LADE_EUNAVAILABLE);
    assert_false(ls_redis_conn_is_up(r.c));
    assert_int_equal(ls_redis_conn_outstanding(r.c), 0);
    assert_int_equal(await(&r, NULL, LADE_SECOND), -LADE_EUNAVAILABLE);
    assert_true(ts_redis_again(&server));
    rig_must(&r, "PING");
    ts_redis_kill(&server); /* also when it only waits */
    assert_int_equal(await(&r, NULL, 20 * LADE_SECOND), -LADE_EUNAVAILABLE);
    assert_true(ts_redis_again(&server));
    rig_close(&r);
}

static int start_server(void **state)
{
    (void)state;
    return ts_redis_start(&server, NULL) ? 0 : -1;
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
        cmocka_unit_test(blocking_reply_waits_for_event_deadline_or_reply),
        cmocka_unit_test(forced_unblocking_is_a_reply_to_look_at),
        cmocka_unit_test(lost_server_ends_a_blocking_wait),
    };
    return cmocka_run_group_tests(tests, start_server, stop_server);
}
