/*
 * slots_test.c - messages between slots: left, shipped later, shipped twice, and by two at once (outbox.h)
 *
 * A process that dies after a settle and before it has shipped is one whose shipping fails there, by a fault point: what it leaves
 * is the same. Numbers behind "chronos" are those of the comparison with chronos-go; tests/crash/crash_slots_test.c kills for true.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/fault.h"
#include "queue/beat.h"
#include "queue/flow_store.h"
#include "store/redis/store_rig.h"

static const char *const queue_ab[] = {"a", "b"};

/* A chain that goes from a to b, and back, n steps long. */
static int put_chain(struct lq_store *s, const char *id, uint32_t n)
{
    enum { MOST = 64 };

    static struct lq_flow_node node[MOST];
    static uint32_t next[MOST], dep[MOST];
    assert_in_range(n, 1, MOST);
    for (uint32_t i = 0; i < n; i++) {
        next[i] = i + 1;
        dep[i] = i - 1;
        node[i] = (struct lq_flow_node){.queue = queue_ab[i % 2],
                                        .kind = lb_slice_str("kind"),
                                        .body = lb_slice_str("\0014body"),
                                        .level = LQ_LEVEL_DEFAULT,
                                        .dep = &dep[i],
                                        .n_deps = i > 0,
                                        .next = &next[i],
                                        .n_next = i + 1 < n};
    }
    struct lq_flow f = {.id = lb_slice_str(id), .node = node, .n = n, .n_steps = n};
    WANT(0, lq_flow_put(s, &f, &rig.err));
    return f.outcome;
}

static void join(struct lq_store *s, const char *worker, bool first)
{
    struct lq_ahead ahead = {0};
    struct lq_beat beat = {.worker = worker,
                           .name = worker,
                           .lanes = {queue_ab, 2},
                           .lease_ms = 3600000,
                           .concurrency = 1,
                           .first = first,
                           .ahead = &ahead};
    size_t n = 0;
    WANT(0, lq_renew(s, &beat, NULL, 0, &n, &rig.err));
}

/* Takes the only job there is and completes it; false when there is none. */
static bool run_one(struct lq_store *s, const char *worker)
{
    struct lq_take take = {.worker = worker, .lanes = {queue_ab, 2}, .max = 1};
    rig.got.n = 0;
    WANT(0, lq_settle_take(s, NULL, 0, &take, &rig.got, &rig.err));
    if (rig.got.n == 0)
        return false;
    struct lq_leased *j = &rig.got.job[0];
    struct lq_settle it = {.queue = queue_ab[j->lane],
                           .id = lb_slice_of(j->id),
                           .fence = j->fence,
                           .to = LQ_TO_COMPLETED,
                           .result = lb_slice_of(j->id)};
    WANT(0, lq_settle_take(s, &it, 1, NULL, NULL, &rig.err));
    return it.outcome == 0;
}

static enum lade_flow_state flow_state(struct lq_store *s, const char *id)
{
    struct lq_flow_row_vec rows = {0};
    lb_arena_init(&rows.arena);
    WANT(0, s->ops->flow_get(s, lb_slice_str(id), &rows, &rig.err));
    enum lade_flow_state state = rows.row[0].state;
    lb_arena_fini(&rows.arena);
    return state;
}

static void promote(struct lq_store *s)
{
    size_t n = 0;
    int64_t next = 0;
    WANT(0, lq_promote(s, (struct lq_lanes){queue_ab, 2}, 10, &n, &next, &rig.err));
}

#ifdef LADE_FAULTS
/* Step 0 of "f" is settled by a process that dies at this point; what comes after is not there yet. */
static struct lq_store *leave_at(const char *point)
{
    struct lq_store *s = srig_open();
    char spec[64];
    (void)snprintf(spec, sizeof(spec), "%s:1:fail+", point);
    assert_int_equal(put_chain(s, "f", 3), 0);
    join(s, "w", true);
    lb_fault_arm(spec);
    assert_true(run_one(s, "w"));
    lb_fault_arm(NULL);
    return s;
}

static void finish_chain(struct lq_store *s, const char *worker)
{
    assert_true(run_one(s, worker));
    assert_true(run_one(s, worker));
    assert_false(run_one(s, worker));
    assert_int_equal(flow_state(s, "f"), LADE_FLOW_COMPLETED);
    assert_string_equal(srig_ask("EXISTS %ns:{a}:outs"), ":0\r\n");
    assert_string_equal(srig_ask("EXISTS %ns:{b}:outs"), ":0\r\n");
}

/* chronos 70 */
static void step_that_a_dead_process_left_is_put_by_the_sweep_of_another(void **state)
{
    (void)state;
    struct lq_store *s = leave_at("redis.ship");
    assert_false(run_one(s, "w"));
    promote(srig_open());
    finish_chain(s, "w");
}

static void step_that_a_dead_process_left_is_put_by_a_worker_that_comes(void **state)
{
    (void)state;
    struct lq_store *s = leave_at("redis.ship.apply");
    assert_false(run_one(s, "w"));
    struct lq_store *other = srig_open();
    join(other, "v", true);
    finish_chain(other, "v");
    join(s, "w", false);
}

static void step_that_a_dead_process_left_is_put_by_a_trim_of_any_worker(void **state)
{
    (void)state;
    static const char *const elsewhere[] = {"c"};
    struct lq_store *s = leave_at("redis.ship");
    size_t n = 0;
    WANT(0, lq_trim(srig_open(), (struct lq_lanes){elsewhere, 1}, 10, &n, &rig.err));
    finish_chain(s, "w");
}

static void renewal_tells_of_what_a_dead_process_left(void **state)
{
    (void)state;
    struct lq_store *s = leave_at("redis.ship");
    struct lq_ahead ahead = {0};
    struct lq_beat beat = {.worker = "w",
                           .name = "w",
                           .lanes = {queue_ab, 2},
                           .lease_ms = 3600000,
                           .concurrency = 1,
                           .ahead = &ahead};
    size_t n = 0;
    WANT(0, lq_renew(s, &beat, NULL, 0, &n, &rig.err));
    assert_int_equal(ahead.due_in_ms, 0);
    promote(s);
    WANT(0, lq_renew(s, &beat, NULL, 0, &n, &rig.err));
    assert_int_not_equal(ahead.due_in_ms, 0);
    finish_chain(s, "w");
}

/* Applied, and the process dies before it has removed them: the next one ships them again. */
static void messages_that_are_shipped_again_change_nothing(void **state)
{
    (void)state;
    struct lq_store *s = leave_at("redis.ship.remove");
    assert_string_equal(srig_ask("LLEN %ns:{a}:out:b"), ":1\r\n");
    assert_true(run_one(s, "w")); /* f~1, and ships the old one again */
    assert_string_equal(srig_ask("EXISTS %ns:{a}:out:b"), ":0\r\n");
    assert_true(run_one(s, "w"));
    assert_false(run_one(s, "w"));
    assert_int_equal(flow_state(s, "f"), LADE_FLOW_COMPLETED);
}

/* The completed job of the step is long gone; its put comes again all the same, from the list as it was. */
static void put_that_comes_again_after_its_job_is_gone_puts_nothing(void **state)
{
    (void)state;
    size_t n = 0;
    struct lq_store *s = leave_at("redis.ship");
    assert_string_equal(srig_ask("COPY %ns:{a}:out:b t:{a}:kept"), ":1\r\n");
    promote(s);
    finish_chain(s, "w");
    WANT(0, s->ops->purge(s, "b", LADE_STATE_COMPLETED, 10, &n, &rig.err));
    assert_int_equal(n, 1);
    char line[128];
    (void)snprintf(line, sizeof(line), "RENAME t:{a}:kept %s:{a}:out:b", rig.ns);
    assert_string_equal(srig_ask(line), "+OK\r\n");
    assert_string_equal(srig_ask("ZADD %ns:{a}:outs 1 b"), ":1\r\n");
    promote(s);
    assert_false(run_one(s, "w"));
    assert_string_equal(srig_ask("EXISTS %ns:{a}:outs"), ":0\r\n");
}

static void cancel_that_was_left_reaches_the_step_when_it_is_shipped(void **state)
{
    (void)state;
    struct lq_store *s = srig_open();
    assert_int_equal(put_chain(s, "f", 3), 0);
    join(s, "w", true);
    assert_true(run_one(s, "w"));
    lb_fault_arm("redis.ship:1:fail+");
    WANT(0, lq_flow_act(s, lb_slice_str("f"), LADE_FLOW_CANCEL, &rig.err));
    lb_fault_arm(NULL);
    assert_int_equal(flow_state(s, "f"), LADE_FLOW_CANCELLED);
    promote(s);
    assert_false(run_one(s, "w"));
}
#endif

/* 64 chains of 64 steps, by two processes that settle and ship at once: each step runs once. */
struct runner {
    struct lq_store *s;
    const char *worker;
    size_t ran;
    bool failed;
};

static void *run_all(void *ctx)
{
    struct runner *r = ctx;
    struct lq_take take = {.worker = r->worker, .lanes = {queue_ab, 2}, .max = 8};
    int idle = 0;
    while (idle < 200 && !r->failed) {
        struct lq_leased_vec got = {0};
        lade_err err;
        lb_arena_init(&got.arena);
        r->failed = lq_settle_take(r->s, NULL, 0, &take, &got, &err) != 0;
        for (size_t i = 0; i < got.n && !r->failed; i++) {
            struct lq_settle it = {.queue = queue_ab[got.job[i].lane],
                                   .id = lb_slice_of(got.job[i].id),
                                   .fence = got.job[i].fence,
                                   .to = LQ_TO_COMPLETED};
            r->failed = lq_settle_take(r->s, &it, 1, NULL, NULL, &err) != 0 || it.outcome != 0;
            r->ran += !r->failed;
        }
        idle = got.n > 0 ? 0 : idle + 1;
        lb_arena_fini(&got.arena);
    }
    return NULL;
}

static void two_that_ship_at_once_put_each_step_once(void **state)
{
    (void)state;

    enum { FLOWS = 16, STEPS = 32 };

    struct lq_store *s = srig_open();
    struct runner r[2] = {{s, "w", 0, false}, {srig_open(), "v", 0, false}};
    pthread_t t;
    for (int i = 0; i < FLOWS; i++) {
        char id[16];
        (void)snprintf(id, sizeof(id), "f%d", i);
        assert_int_equal(put_chain(s, id, STEPS), 0);
    }
    join(r[0].s, "w", true);
    join(r[1].s, "v", true);
    assert_int_equal(pthread_create(&t, NULL, run_all, &r[1]), 0);
    (void)run_all(&r[0]);
    (void)pthread_join(t, NULL);
    assert_false(r[0].failed || r[1].failed);
    assert_int_equal(r[0].ran + r[1].ran, FLOWS * STEPS);
    for (int i = 0; i < FLOWS; i++) {
        char id[16];
        (void)snprintf(id, sizeof(id), "f%d", i);
        assert_int_equal(flow_state(s, id), LADE_FLOW_COMPLETED);
    }
}

static void note_finding(void *ctx, const char *queue, const char *text)
{
    (void)snprintf(ctx, 256, "%s: %s", queue, text);
}

static void messages_that_wait_for_a_minute_are_found_by_doctor(void **state)
{
    (void)state;
    struct lq_store *s = srig_open();
    char found[256] = "";
    assert_int_equal(put_chain(s, "f", 3), 0);
    assert_string_equal(srig_ask("RPUSH %ns:{a}:out:b \"1000000 x\""), ":1\r\n");
    assert_string_equal(srig_ask("ZADD %ns:{a}:outs 1 b"), ":1\r\n");
    WANT(0, s->ops->check(s, note_finding, found, &rig.err));
    assert_non_null(strstr(found, "a: 1 messages to queue b wait, the first for "));
    assert_string_equal(srig_ask("DEL %ns:{a}:out:b"), ":1\r\n");
    assert_string_equal(srig_ask("DEL %ns:{a}:outs"), ":1\r\n");
}

static void flow_is_refused_while_too_many_messages_wait(void **state)
{
    (void)state;
    struct lq_store *s = srig_open();
    char line[160];
    assert_int_equal(put_chain(s, "f", 3), 0);
    (void)snprintf(line, sizeof(line),
                   "EVAL \"for i=1,1000 do redis.call('RPUSH',KEYS[1],unpack(ARGV)) end\" 1 "
                   "%s:{a}:out:b ",
                   rig.ns);
    char full[512];
    size_t n = (size_t)snprintf(full, sizeof(full), "%s", line);
    for (int i = 0; i < 100; i++)
        n += (size_t)snprintf(full + n, sizeof(full) - n, "x ");
    assert_string_equal(srig_ask(full), "$-1\r\n");
    struct lq_flow_node node[] = {{.queue = "a", .body = lb_slice_str("\0014b")},
                                  {.queue = "b", .body = lb_slice_str("\0014b")}};
    struct lq_flow f = {.id = lb_slice_str("g"), .node = node, .n = 2, .n_steps = 2};
    node[0].kind = node[1].kind = lb_slice_str("kind");
    assert_int_equal(lq_flow_put(s, &f, &rig.err), -LADE_EUNAVAILABLE);
    assert_non_null(strstr(rig.err.text, "100000 messages of queue a"));
    assert_string_equal(srig_ask("EXISTS %ns:{a}:flow:g"), ":0\r\n");
    assert_string_equal(srig_ask("DEL %ns:{a}:out:b"), ":1\r\n");
    WANT(0, lq_flow_put(s, &f, &rig.err));
}

/* The pointer of a flow that is gone is of no use, and goes; where it is missing the flow is found all the same. */
static void flow_is_found_though_nothing_points_to_it(void **state)
{
    (void)state;
    struct lq_store *s = srig_open();
    assert_int_equal(put_chain(s, "f", 2), 0);
    assert_int_equal(strncmp(srig_ask("GET %ns:flow:f"), "$1\r\na", 5), 0);
    assert_string_equal(srig_ask("DEL %ns:flow:f"), ":1\r\n");
    assert_int_equal(flow_state(s, "f"), LADE_FLOW_RUNNING);
    assert_int_equal(put_chain(s, "f", 2), LADE_DUPLICATE);
    WANT(0, lq_flow_act(s, lb_slice_str("f"), LADE_FLOW_REMOVE, &rig.err));
    assert_string_equal(srig_ask("EXISTS %ns:flow:f"), ":0\r\n");
    assert_string_equal(srig_ask("EXISTS %ns:{b}:far"), ":0\r\n");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
#ifdef LADE_FAULTS
        SRIG_TEST(step_that_a_dead_process_left_is_put_by_the_sweep_of_another),
        SRIG_TEST(step_that_a_dead_process_left_is_put_by_a_worker_that_comes),
        SRIG_TEST(step_that_a_dead_process_left_is_put_by_a_trim_of_any_worker),
        SRIG_TEST(renewal_tells_of_what_a_dead_process_left),
        SRIG_TEST(messages_that_are_shipped_again_change_nothing),
        SRIG_TEST(put_that_comes_again_after_its_job_is_gone_puts_nothing),
        SRIG_TEST(cancel_that_was_left_reaches_the_step_when_it_is_shipped),
#endif
        SRIG_TEST(two_that_ship_at_once_put_each_step_once),
        SRIG_TEST(messages_that_wait_for_a_minute_are_found_by_doctor),
        SRIG_TEST(flow_is_refused_while_too_many_messages_wait),
        SRIG_TEST(flow_is_found_though_nothing_points_to_it),
    };
    rig.cluster = true;
    return cmocka_run_group_tests_name("slots", tests, srig_start, srig_stop);
}
