/* wait_test.c - waiting through kicks, outages, dead flows and due times */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/ident.h"
#include "queue/beat.h"
#include "rt/seam.h"
#include "store/redis/store_inner.h"
#include "store/redis/store_rig.h"
#include "support/proxy.h"
#include "support/redis_server.h"

static const char *const queue_q[] = {"q"};
static const struct lq_lanes lanes_q = {queue_q, 1};

static int wait_for(struct lq_store *s, int64_t ns)
{
    return s->ops->wait(s, "w", lanes_q, lb_deadline_in(ns), &rig.err);
}

/* What the engine does: takes, and waits while there is nothing. Until it has something, or for 10 s. */
static size_t take_when_there(struct lq_store *s)
{
    int64_t end = lb_deadline_in(10 * LADE_SECOND);
    struct lq_take take = srig_asking("w", 1);
    do {
        lb_arena_reset(&rig.got.arena);
        rig.got.n = 0;
        rig.got.job = NULL;
        int rc = lq_settle_take(s, NULL, 0, &take, &rig.got, &rig.err);
        if (rc == LADE_STALE)
            srig_join(s, "w"); /* a server that lost its data */
        else if (rc < 0 && rc != -LADE_EUNAVAILABLE)
            WANT(0, rc);
        if (rc == 0 && rig.got.n == 0)
            (void)s->ops->wait(s, "w", lanes_q, end, &rig.err);
    } while (rig.got.n == 0 && lb_clock_mono() < end);
    return rig.got.n;
}

/* Another thread that acts in the middle of a wait. */
struct later {
    struct lr_thread thread;
    struct lq_store *s;
    void (*act)(struct later *l);
    int rc;
    lade_err err;
};

/* True once the server has a client in BLPOP: then there is something to disturb. */
static bool is_someone_blocked(char *id, size_t size)
{
    char list[8192];
    if (!ts_redis_ask(rig.server, "CLIENT LIST", list, sizeof(list)))
        return false;
    char *cmd = strstr(list, "cmd=blpop");
    if (!cmd)
        return false;
    *cmd = 0;
    char *line = strrchr(list, '\n');
    if (!line || sscanf(line + 1, "id=%*u") == EOF)
        return false;
    (void)snprintf(id, size, "%lu", strtoul(line + 1 + strlen("id="), NULL, 10));
    return true;
}

static void run_later(void *arg)
{
    struct later *l = arg;
    char id[24];
    int64_t end = lb_deadline_in(5 * LADE_SECOND);
    while (!is_someone_blocked(id, sizeof(id)) && lb_clock_mono() < end)
        lr_sleep_until(lb_deadline_in(2 * LADE_MILLISECOND));
    l->act(l);
}

static void start_later(struct later *l, struct lq_store *s, void (*act)(struct later *))
{
    *l = (struct later){.s = s, .act = act};
    assert_int_equal(lr_thread_start(&l->thread, "later", run_later, l), 0);
}

static void put_one(struct later *l)
{
    struct lq_put put = srig_item("late");
    l->rc = lq_put(l->s, &put, 1, &l->err);
}

static void unblock_and_put(struct later *l)
{
    char id[24], line[64], reply[64];
    if (is_someone_blocked(id, sizeof(id))) {
        (void)snprintf(line, sizeof(line), "CLIENT UNBLOCK %s ERROR", id);
        l->rc = ts_redis_ask(rig.server, line, reply, sizeof(reply)) && reply[0] == ':' ? 0 : -1;
    }
    put_one(l);
}

static void kill_clients_and_put(struct later *l)
{
    ts_proxy_drop_all(rig.proxy);
    put_one(l);
}

/* C-023 */
static void unblocked_by_an_error_the_worker_takes_again(void **state)
{
    (void)state;
    struct lq_store *s = srig_open(), *producer = srig_open();
    struct later l;
    srig_join(s, "w");
    assert_int_equal(srig_take(s, "w", 1), 0);
    start_later(&l, producer, unblock_and_put);
    assert_int_equal(take_when_there(s), 1);
    lr_thread_join(&l.thread);
    assert_int_equal(l.rc, 0);
    srig_settle_got(s, LQ_TO_COMPLETED, 0);
}

/* C-038 */
static void connection_lost_while_waiting_is_replaced(void **state)
{
    (void)state;
    struct lq_store *producer = srig_open(), *s = srig_open_through_proxy();
    struct later l;
    srig_join(s, "w");
    assert_int_equal(srig_take(s, "w", 1), 0);
    for (int i = 0; i < 3; i++) {
        start_later(&l, producer, kill_clients_and_put);
        assert_int_equal(take_when_there(s), 1);
        lr_thread_join(&l.thread);
        srig_settle_got(s, LQ_TO_GONE, 0);
        assert_int_equal(srig_take(s, "w", 1), 0);
    }
}

/* The worker's side of an outage, on a thread: cmocka's assertions belong to the main thread. */
struct working {
    struct lq_store *s;
    struct lr_thread thread;
    size_t taken;
};

static void work_until_taken(void *arg)
{
    struct working *w = arg;
    struct lq_leased_vec got = {0};
    struct lq_beat beat = {
        .worker = "w", .name = "w", .lanes = lanes_q, .lease_ms = 3600000, .first = true};
    struct lq_take take = srig_asking("w", 1);
    struct lq_stop stop[1];
    size_t n;
    lade_err err;
    lb_arena_init(&got.arena);
    for (int64_t end = lb_deadline_in(20 * LADE_SECOND); got.n == 0 && lb_clock_mono() < end;) {
        int rc = lq_settle_take(w->s, NULL, 0, &take, &got, &err);
        if (rc == LADE_STALE)
            rc = lq_renew(w->s, &beat, stop, 1, &n, &err);
        else if (rc == 0 && got.n == 0)
            rc = w->s->ops->wait(w->s, "w", lanes_q, end, &err);
        if (rc < 0)
            lr_sleep_until(lb_deadline_in(5 * LADE_MILLISECOND));
    }
    w->taken = got.n;
    lb_arena_fini(&got.arena);
}

/* C-038, C-039: the server comes back empty; the worker registers anew and works. */
static void restarted_server_is_worked_on_again(void **state)
{
    (void)state;
    struct working w = {.s = srig_open()};
    struct lq_store *producer = srig_open();
    assert_int_equal(lr_thread_start(&w.thread, "worker", work_until_taken, &w), 0);
    char id[24];
    int64_t end = lb_deadline_in(5 * LADE_SECOND);
    while (!is_someone_blocked(id, sizeof(id)) && lb_clock_mono() < end)
        lr_sleep_until(lb_deadline_in(2 * LADE_MILLISECOND));
    ts_redis_kill(rig.server);
    bool again = ts_redis_again(rig.server);
    struct lq_put put = srig_item("late");
    int rc = AGAIN(lq_put(producer, &put, 1, &rig.err));
    lr_thread_join(&w.thread);
    assert_true(again);
    WANT(0, rc);
    assert_int_equal(w.taken, 1);
}

/* C-036: the flow is dead and nothing tells. The wait ends after the block time and a margin, and finds the job. */
static void flow_that_dies_silently_is_noticed(void **state)
{
    (void)state;
    struct lq_store *producer = srig_open(), *s = srig_open_through_proxy();
    ls_redis_of(s)->block_ms = 1000;
    srig_join(s, "w");
    assert_int_equal(srig_take(s, "w", 1), 0);
    WANT(LADE_EMPTY, wait_for(s, 10 * LADE_MILLISECOND));
    ts_proxy_hold_current(rig.proxy);
    srig_put(producer, "j", 1);
    WANT(0, wait_for(s, 2 * LADE_MINUTE));
}

/* Until the server has seen the end of connections that earlier tests left in BLPOP. */
static void wait_until_nobody_is_blocked(void)
{
    char id[24];
    int64_t end = lb_deadline_in(30 * LADE_SECOND);
    ts_proxy_drop_all(rig.proxy);
    while (is_someone_blocked(id, sizeof(id)) && lb_clock_mono() < end)
        lr_sleep_until(lb_deadline_in(2 * LADE_MILLISECOND));
}

static void beat_in_vain(struct later *l)
{
    struct lq_beat beat = {.worker = "w", .name = "w", .lanes = lanes_q, .lease_ms = 3600000};
    struct lq_stop stop[1];
    size_t n;
    ts_proxy_hold_current(rig.proxy);
    l->rc = lq_renew(l->s, &beat, stop, 1, &n, &l->err);
}

/* C-036: long before the server's time is over a heartbeat without an answer makes the wait look. */
static void unanswered_heartbeat_ends_the_wait(void **state)
{
    (void)state;
    wait_until_nobody_is_blocked();
    rig.config.timeout_ms = 3000;
    struct lq_store *s = srig_open_through_proxy();
    struct later l;
    ls_redis_of(s)->block_ms = 600000;
    srig_join(s, "w");
    assert_int_equal(srig_take(s, "w", 1), 0);
    start_later(&l, s, beat_in_vain);
    WANT(0, wait_for(s, 5 * LADE_MINUTE));
    lr_thread_join(&l.thread);
    assert_int_equal(l.rc, -LADE_EUNAVAILABLE);
    rig.config.timeout_ms = 10000;
    ts_proxy_drop_all(rig.proxy); /* the teardown checks through it */
}

/* Calls of BLPOP the server has seen, those that still block not counted. */
static long count_blpops(void)
{
    char text[16384];
    assert_true(ts_redis_ask(rig.server, "INFO commandstats", text, sizeof(text)));
    const char *at = strstr(text, "cmdstat_blpop:calls=");
    return at ? strtol(at + strlen("cmdstat_blpop:calls="), NULL, 10) : 0;
}

static void waits_in_a_row_share_one_blocking_command(void **state)
{
    (void)state;
    struct lq_store *s = srig_open();
    srig_join(s, "w");
    assert_int_equal(srig_take(s, "w", 1), 0);
    WANT(LADE_EMPTY, wait_for(s, 10 * LADE_MILLISECOND));
    long before = count_blpops();
    for (int i = 0; i < 20; i++)
        WANT(LADE_EMPTY, wait_for(s, 5 * LADE_MILLISECOND));
    assert_int_equal(count_blpops(), before);
}

/* C-070: jobs due at random moments, no other traffic: a wait until the time that the take told is enough. (chronos 38; chasqui 13) */
static void due_jobs_are_taken_on_time(void **state)
{
    (void)state;

    enum { N = 60 };
    struct lq_store *s = srig_open();
    int64_t due[N], latest = 0, now;
    srig_join(s, "w");
    for (int i = 0; i < N; i++) {
        char id[16];
        (void)snprintf(id, sizeof(id), "j%d", i);
        struct lq_put put = srig_item(id);
        WANT(0, s->ops->now(s, &now, &rig.err));
        put.when = LQ_WHEN_AT;
        put.when_ms = due[i] = now + 20 + (int64_t)lb_rand_below(1500);
        WANT(0, lq_put(s, &put, 1, &rig.err));
    }
    for (int taken = 0; taken < N;) {
        if (srig_take(s, "w", 1) == 0) {
            assert_true(rig.got.next_due_ms > 0);
            int64_t left = rig.got.next_due_ms - rig.got.now_ms;
            (void)wait_for(s, left * LADE_MILLISECOND);
            continue;
        }
        taken++;
        WANT(0, s->ops->now(s, &now, &rig.err));
        long at = strtol((const char *)rig.got.job[0].id.p + 1, NULL, 10);
        assert_in_range(at, 0, N - 1);
        assert_true(now >= due[at]);
        latest = LB_MAX(latest, now - due[at]);
        srig_settle_got(s, LQ_TO_GONE, 0);
    }
    print_message("at most %lld ms late\n", (long long)latest);
}

/* A bell that arrives while nobody waits is heard by the next wait, and at once. */
static void bell_between_waits_is_heard(void **state)
{
    (void)state;
    struct lq_store *s = srig_open(), *producer = srig_open();
    srig_join(s, "w");
    assert_int_equal(srig_take(s, "w", 1), 0);
    WANT(LADE_EMPTY, wait_for(s, LADE_MILLISECOND));
    srig_put(producer, "j", 1);
    WANT(0, wait_for(s, 4 * LADE_SECOND));
}

static void join_lanes(struct lq_store *s, const char *worker, struct lq_lanes lanes)
{
    struct lq_beat beat = {
        .worker = worker, .name = worker, .lanes = lanes, .lease_ms = 3600000, .first = true};
    struct lq_stop stop[1];
    size_t n;
    WANT(0, lq_renew(s, &beat, stop, 1, &n, &rig.err));
}

static size_t take_from(struct lq_store *s, const char *worker, struct lq_lanes lanes)
{
    struct lq_take take = {.worker = worker, .lanes = lanes, .max = 1, .register_idle = true};
    rig.got.n = 0;
    WANT(0, lq_settle_take(s, NULL, 0, &take, &rig.got, &rig.err));
    return rig.got.n;
}

/* Whom a put to r rings is chance: until it is w. */
static void ring_w_for_a_job_of_r(struct lq_store *s, struct lq_lanes both, struct lq_lanes only_r)
{
    struct lq_put put = srig_item("b");
    put.queue = "r";
    for (int i = 0; i < 64; i++) {
        assert_int_equal(take_from(s, "w", both), 0);
        assert_int_equal(take_from(s, "v", only_r), 0);
        WANT(0, lq_put(s, &put, 1, &rig.err));
        if (strcmp(srig_ask("LLEN %ns:{r}:bell:w"), ":1\r\n") == 0)
            return;
        assert_int_equal(take_from(s, "v", only_r), 1);
        struct lq_settle it = {
            .queue = "r", .id = put.id, .fence = rig.got.job[0].fence, .to = LQ_TO_GONE};
        WANT(0, lq_settle_take(s, &it, 1, NULL, NULL, &rig.err));
    }
    fail_msg("64 puts never rang w");
}

/* w is rung for a job of q and for one of r, and takes only that of q: the bell for r goes on to v. */
static void bell_of_a_worker_that_took_elsewhere_is_passed_on(void **state)
{
    (void)state;
    static const char *const names[] = {"q", "r"};
    struct lq_lanes both = {names, 2}, only_r = {names + 1, 1};
    struct lq_store *s = srig_open();
    join_lanes(s, "w", both);
    join_lanes(s, "v", only_r);
    ring_w_for_a_job_of_r(s, both, only_r);
    assert_string_equal(srig_ask("LLEN %ns:{r}:bell:v"), ":0\r\n");
    srig_put(s, "a", 1);
    assert_int_equal(take_from(s, "w", both), 1);
    assert_int_equal(rig.got.job[0].lane, 0);
    assert_string_equal(srig_ask("LLEN %ns:{r}:bell:v"), ":1\r\n");
    assert_int_equal(take_from(s, "v", only_r), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SRIG_TEST(unblocked_by_an_error_the_worker_takes_again),
        SRIG_TEST(connection_lost_while_waiting_is_replaced),
        SRIG_TEST(restarted_server_is_worked_on_again),
        SRIG_TEST(flow_that_dies_silently_is_noticed),
        SRIG_TEST(unanswered_heartbeat_ends_the_wait),
        SRIG_TEST(waits_in_a_row_share_one_blocking_command),
        SRIG_TEST(due_jobs_are_taken_on_time),
        SRIG_TEST(bell_between_waits_is_heard),
        SRIG_TEST(bell_of_a_worker_that_took_elsewhere_is_passed_on),
    };
    return cmocka_run_group_tests(tests, srig_start, srig_stop);
}
