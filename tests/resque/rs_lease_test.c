/* The leases of the Resque store, op by op. */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "resque/rb_kit.h"
#include "store/resque/resque_store.h"

#define WAIT (INT64_C(120) * 1000 * 1000 * 1000)

static struct lq_store *open_store(void)
{
    static const struct lq_store_ops *const stores[] = {&ls_resque_ops};
    static char url[220];
    (void)snprintf(url, sizeof(url), "resque+unix://%s", kit_redis.socket);
    struct lq_store_config config = {.url = url,
                                     .ns = "lade",
                                     .timeout_ms = 10000,
                                     .connect_timeout_ms = 5000,
                                     .body_max = LADE_PAYLOAD_MAX_HARD};
    struct lq_store *s = NULL;
    lade_err err = {0};
    assert_int_equal(lq_store_open(&s, stores, 1, &config, &err), 0);
    return s;
}

static void join(struct lq_store *s, const char *worker, int64_t lease_ms, struct lq_lanes lanes)
{
    size_t n_stop;
    struct lq_beat beat = {.worker = worker,
                           .name = worker,
                           .lanes = lanes,
                           .lease_ms = lease_ms,
                           .concurrency = 2,
                           .first = true};
    assert_int_equal(lq_renew(s, &beat, NULL, 0, &n_stop, NULL), 0);
}

/* Fences: who has lost his lease changes nothing any more. Two workers of one process have ids of their own. */
static void a_worker_that_lost_its_lease_settles_nothing(void **state)
{
    (void)state;
    static const char *const queue[] = {"default"};
    static const struct lq_lanes lanes = {queue, 1};
    struct lq_store *s = open_store();
    struct lq_leased_vec got = {0}, again = {0};
    lb_arena_init(&got.arena);
    lb_arena_init(&again.arena);
    (void)ask("RPUSH resque:queue:default \"{\\\"class\\\":\\\"Ok\\\",\\\"args\\\":[1]}\"");
    join(s, "a", 60000, lanes);
    join(s, "b", 60000, lanes);
    assert_int_equal(ask_int("SCARD resque:workers"), 4);
    struct lq_take take = {"a", lanes, 10, true};
    assert_int_equal(lq_settle_take(s, NULL, 0, &take, &got, NULL), 0);
    assert_int_equal(got.n, 1);
    join(s, "a", 1, lanes);
    take.worker = "b";
    assert_true(TS_UNTIL(WAIT, lq_reclaim(s, &take, &again, NULL) == 0));
    assert_int_equal(again.n, 1);
    assert_string_equal(again.job[0].former, "a");
    assert_int_equal(ask_int("SCARD resque:workers"), 2);
    struct lq_lease lease = {
        .queue = "default", .id = lb_slice_of(got.job[0].id), .fence = got.job[0].fence};
    assert_int_equal(lq_begin(s, "a", &lease, 1, NULL), 0);
    assert_int_equal(lease.outcome, LADE_STALE);
    struct lq_settle it = {.queue = "default",
                           .id = lb_slice_of(got.job[0].id),
                           .fence = got.job[0].fence,
                           .to = LQ_TO_COMPLETED};
    assert_int_equal(lq_settle_take(s, &it, 1, NULL, NULL, NULL), 0);
    assert_int_equal(it.outcome, LADE_STALE);
    assert_int_equal(ask_int("EXISTS resque:stat:processed"), 0);
    it.id = lb_slice_of(again.job[0].id);
    it.fence = again.job[0].fence;
    assert_int_equal(lq_settle_take(s, &it, 1, NULL, NULL, NULL), 0);
    assert_int_equal(it.outcome, LADE_DONE);
    assert_non_null(strstr(ask("GET resque:stat:processed"), "\r\n1\r\n"));
    assert_int_equal(lq_leave(s, "b", lanes, NULL), 0);
    assert_int_equal(ask_int("EXISTS resque:workers resque:lade:workers"), 0);
    lb_arena_fini(&got.arena);
    lb_arena_fini(&again.arena);
    lq_store_close(s);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_worker_that_lost_its_lease_settles_nothing)};
    return kit_main(argc, argv, "resque leases", tests, LB_ARRAY_LEN(tests));
}
