/* bytes_cases.c - contract: how many bytes may wait in a queue (queue/bound.h); beyond N7, chasqui 11 */
#include "contract.h"

#include <string.h>

#include "base/clock.h"
#include "flow_kit.h"
#include "queue/bound.h"
#include "queue/dead_store.h"
#include "queue/event.h"

#define MUCH INT64_C(1000000000)

static void bound(int64_t max_jobs, int64_t max_bytes)
{
    EXPECT(0,
           lq_bound_set(ct.s, "q", &(struct lq_bound){.max_jobs = max_jobs, .max_bytes = max_bytes},
                        &ct.err));
}

/* With a body of this length. */
static struct lq_put item(const char *id, size_t size)
{
    struct lq_put it = ct_item("q", id);
    uint8_t *body = lb_arena_alloc(&ct.arena, size);
    assert_non_null(body);
    memset(body, 'x', size);
    memcpy(body, it.body.p, 2);
    it.body = lb_slice(body, size);
    return it;
}

static int put_one(const char *id, size_t size)
{
    struct lq_put it = item(id, size);
    return lq_put(ct.s, &it, 1, &ct.err);
}

/* As the store counts them. */
static int64_t counted(void)
{
    struct lq_bound b = {0};
    EXPECT(0, ct.ops->bounds->get(ct.s, "q", &b, &ct.err));
    return b.bytes;
}

/* What the jobs that wait have, looked at one by one. */
static int64_t sum(void)
{
    static const enum lade_state waits[] = {LADE_STATE_READY, LADE_STATE_SCHEDULED,
                                            LADE_STATE_RETRYING};

    int64_t bytes = 0;
    for (size_t i = 0; i < LB_ARRAY_LEN(waits); i++) {
        lade_cursor cursor = {0};
        while (!cursor.done) {
            ct.rows.n = 0;
            lb_arena_reset(&ct.rows.arena);
            int rc = ct.ops->list(ct.s, "q", waits[i], &cursor, 100, &ct.rows, &ct.err);
            assert_true(rc >= 0);
            for (size_t k = 0; k < ct.rows.n; k++)
                bytes += (int64_t)ct.rows.row[k].body.n;
        }
    }
    return bytes;
}

static void assert_counted(int64_t expected)
{
    assert_int_equal(counted(), expected);
    assert_int_equal(sum(), expected);
}

static void a_queue_takes_as_many_bytes_as_may_wait_and_no_more(void **state)
{
    (void)state;
    bound(0, 1000);
    EXPECT(0, put_one("a", 400));
    EXPECT(0, put_one("b", 600));
    EXPECT(LADE_FULL, put_one("c", 2));
    assert_counted(1000);
    assert_int_equal(ct_state("q", "c"), -1);
    assert_int_equal(ct_act("q", LADE_JOB_REMOVE, "a"), 0);
    EXPECT(LADE_FULL, put_one("c", 401));
    EXPECT(0, put_one("c", 400));
    assert_counted(1000);
}

static void a_call_is_admitted_or_refused_whole_by_its_bytes(void **state)
{
    (void)state;
    bound(0, 1000);
    struct lq_put it[3] = {item("a", 400), item("b", 400), item("c", 201)};
    EXPECT(LADE_FULL, lq_put(ct.s, it, 3, &ct.err));
    assert_int_equal(it[0].outcome, LADE_FULL);
    assert_int_equal(ct_state("q", "a"), -1);
    it[2] = item("a", 600); /* the id of the first: no job, and no bytes */
    EXPECT(0, lq_put(ct.s, it, 3, &ct.err));
    assert_int_equal(it[2].outcome, LADE_DUPLICATE);
    assert_counted(800);
}

static void either_bound_refuses(void **state)
{
    (void)state;
    struct lq_bound b = {0};
    bound(2, 1000);
    EXPECT(0, put_one("a", 10));
    EXPECT(LADE_FULL, put_one("b", 991));
    EXPECT(0, put_one("b", 10));
    EXPECT(LADE_FULL, put_one("c", 10));
    EXPECT(0, ct.ops->bounds->get(ct.s, "q", &b, &ct.err));
    assert_int_equal(b.max_jobs, 2);
    assert_int_equal(b.max_bytes, 1000);
    bound(0, 0);
    EXPECT(0, put_one("c", 5000));
    assert_int_equal(counted(), 0);
}

/* What was there before the bound is counted when that is set, in whatever form a store has it. */
static void jobs_from_before_the_bound_are_counted(void **state)
{
    (void)state;
    ct_join("w", "q");
    struct lq_put block[20];
    for (size_t i = 0; i < LB_ARRAY_LEN(block); i++) {
        block[i] =
            item(ct_format("01HF7YAT00000000000000010%c", "0123456789ABCDEFGHJKMNPQRSTVWXYZ"[i]),
                 20 + i);
        block[i].fresh = true;
    }
    EXPECT(0, lq_put(ct.s, block, LB_ARRAY_LEN(block), &ct.err));
    assert_int_equal(ct_take("w", "q", 5), 5);
    struct lq_leased one = ct.got.job[0];
    assert_int_equal(ct_settle("q", &one, LQ_TO_COMPLETED), LADE_DONE);
    struct lq_put fresh = item("01HF7YAT00000000000000020Z", 33);
    fresh.fresh = true;
    EXPECT(0, lq_put(ct.s, &fresh, 1, &ct.err));
    ct_add_in("q", "later", CT_HOUR);
    int64_t before = sum();
    bound(0, before);
    assert_counted(before);
    EXPECT(LADE_FULL, put_one("more", 2));
    assert_int_equal(ct_take("w", "q", 3), 3);
    assert_counted(before - (25 + 26 + 27));
    EXPECT(0, put_one("more", 25 + 26 + 27));
    assert_counted(before);
    bound(0, before + 10); /* counted already: not again */
    assert_counted(before);
}

static void packed_jobs_are_counted_when_put_taken_and_changed(void **state)
{
    (void)state;
    ct_join("w", "q");
    bound(0, MUCH);
    struct lq_put block[20];
    int64_t all = 0;
    for (size_t i = 0; i < LB_ARRAY_LEN(block); i++) {
        block[i] =
            item(ct_format("01HF7YAT00000000000000010%c", "0123456789ABCDEFGHJKMNPQRSTVWXYZ"[i]),
                 20 + i);
        block[i].fresh = true;
        all += 20 + (int64_t)i;
    }
    EXPECT(0, lq_put(ct.s, block, LB_ARRAY_LEN(block), &ct.err));
    assert_counted(all);
    assert_int_equal(ct_take("w", "q", 4), 4);
    all -= 20 + 21 + 22 + 23;
    assert_counted(all);
    struct lq_leased back = ct.got.job[2];
    assert_int_equal(ct_settle("q", &back, LQ_TO_READY), LADE_DONE);
    all += 22;
    assert_counted(all);
    assert_int_equal(ct_act("q", LADE_JOB_CANCEL, "01HF7YAT000000000000000105"), 0);
    all -= 25;
    assert_counted(all);
    if (ct.ops->change) {
        struct lq_change c = {.id = lb_slice_str("01HF7YAT000000000000000107"),
                              .body = item("7", 90).body};
        EXPECT(0, lq_change(ct.s, "q", LQ_CHANGE_EDIT, &c, 1, &ct.err));
        all += 90 - 27;
        assert_counted(all);
    }
    size_t n = 0;
    EXPECT(0, ct.ops->purge(ct.s, "q", LADE_STATE_READY, 1000, &n, &ct.err));
    assert_counted(0);
}

static void every_way_out_of_and_into_waiting_is_counted(void **state)
{
    (void)state;

    static const enum lq_to to[] = {LQ_TO_COMPLETED, LQ_TO_RETRYING,  LQ_TO_SCHEDULED, LQ_TO_READY,
                                    LQ_TO_DEAD,      LQ_TO_CANCELLED, LQ_TO_GONE};

    ct_join("w", "q");
    bound(0, MUCH);
    for (size_t i = 0; i < LB_ARRAY_LEN(to); i++)
        EXPECT(0, put_one(ct_format("j%zu", i), 100 + i));
    assert_int_equal(ct_take("w", "q", 10), LB_ARRAY_LEN(to));
    assert_counted(0);
    struct lq_settle it[LB_ARRAY_LEN(to)];
    for (size_t i = 0; i < LB_ARRAY_LEN(to); i++) {
        it[i] = ct_settling("q", &ct.got.job[i], to[i]);
        it[i].delay_ms = CT_HOUR;
    }
    EXPECT(0, lq_settle_take(ct.s, it, LB_ARRAY_LEN(to), NULL, NULL, &ct.err));
    assert_counted(101 + 102 + 103);
    assert_int_equal(ct_act("q", LADE_JOB_RETRY, "j1"), 0); /* waited, and waits */
    assert_counted(101 + 102 + 103);
    assert_int_equal(ct_act("q", LADE_JOB_RETRY, "j5"), 0); /* had ended */
    assert_counted(101 + 102 + 103 + 105);
    assert_int_equal(ct_act("q", LADE_JOB_KILL, "j2"), 0);
    assert_counted(101 + 103 + 105);
    size_t n = 0;
    EXPECT(0, ct.ops->redrive(ct.s, "q", 10, &n, &ct.err));
    assert_int_equal(n, 2);
    assert_counted(101 + 102 + 103 + 104 + 105);
    EXPECT(0, ct.ops->purge(ct.s, "q", LADE_STATE_READY, 1000, &n, &ct.err));
    assert_counted(0);
    ct_add_in("q", "later", CT_HOUR);
    assert_true(counted() > 0);
    EXPECT(0, ct.ops->purge(ct.s, "q", LADE_STATE_SCHEDULED, 1000, &n, &ct.err));
    assert_counted(0);
}

static void due_jobs_are_counted_once(void **state)
{
    (void)state;
    bound(0, MUCH);
    struct lq_put it = item("later", 50);
    it.when = LQ_WHEN_IN;
    it.when_ms = CT_SOON;
    EXPECT(0, lq_put(ct.s, &it, 1, &ct.err));
    assert_counted(50);
    size_t n = 0;
    int64_t next = 0;
    while (n == 0) {
        ct_step(CT_SOON);
        EXPECT(0, lq_promote(ct.s, ct_lanes("q"), 10, &n, &next, &ct.err));
    }
    assert_int_equal(ct_state("q", "later"), LADE_STATE_READY);
    assert_counted(50);
}

static void a_reclaimed_job_is_counted_when_it_waits_again(void **state)
{
    (void)state;
    ct_join("w", "q");
    ct_join("v", "q");
    bound(0, MUCH);
    EXPECT(0, put_one("a", 70));
    assert_int_equal(ct_take("w", "q", 1), 1);
    ct_die("w", "q");
    assert_int_equal(ct_reclaim("v", "q", 10), 1);
    assert_counted(0);
    struct lq_leased a = ct.got.job[0];
    assert_int_equal(ct_settle("q", &a, LQ_TO_READY), LADE_DONE);
    assert_counted(70);
}

static void keyed_jobs_are_counted(void **state)
{
    (void)state;
    if (!ct.ops->key_list)
        return;
    ct_join("w", "q");
    bound(0, 300);
    for (int i = 0; i < 3; i++) {
        struct lq_put it = item(ct_format("k%d", i), 100);
        it.key = lb_slice_str(i < 2 ? "K" : "L");
        EXPECT(0, lq_put(ct.s, &it, 1, &ct.err));
    }
    EXPECT(LADE_FULL, put_one("d", 10));
    assert_int_equal(ct_take("w", "q", 2), 2);
    assert_counted(100);
    struct lq_leased a = ct.got.job[0];
    struct lq_settle it = ct_settling("q", &a, LQ_TO_RETRYING);
    it.delay_ms = CT_HOUR;
    assert_int_equal(ct_settle_one(it), LADE_DONE);
    assert_counted(200);
    size_t n = 0;
    EXPECT(0, ct.ops->purge(ct.s, "q", LADE_STATE_READY, 1000, &n, &ct.err));
    EXPECT(0, ct.ops->purge(ct.s, "q", LADE_STATE_RETRYING, 1000, &n, &ct.err));
    assert_counted(0);
}

static void a_replaced_job_is_counted_as_the_new_one(void **state)
{
    (void)state;
    if (!(ct.ops->caps & LQ_CAP_CONFLICT))
        return;
    bound(0, 200);
    struct lq_put it = item("a", 100);
    it.unique = lb_slice_str("u");
    it.unique_ttl_ms = CT_HOUR;
    EXPECT(0, lq_put(ct.s, &it, 1, &ct.err));
    it = item("b", 150); /* needs no room, and may take the queue over its bound */
    it.unique = lb_slice_str("u");
    it.unique_ttl_ms = CT_HOUR;
    it.conflict = LQ_CONFLICT_REPLACE;
    EXPECT(0, put_one("c", 100));
    EXPECT(0, lq_put(ct.s, &it, 1, &ct.err));
    assert_int_equal(it.outcome, LADE_REPLACED);
    assert_counted(250);
    it.when = LQ_WHEN_IN;
    it.when_ms = CT_HOUR;
    it.body = item("b", 40).body;
    EXPECT(0, lq_put(ct.s, &it, 1, &ct.err));
    assert_counted(140);
    struct lq_put trail = item("t1", 20), second = item("t2", 30);
    trail.unique = second.unique = lb_slice_str("v");
    trail.unique_ttl_ms = second.unique_ttl_ms = CT_HOUR;
    trail.until = second.until = LADE_UNTIL_TTL;
    trail.conflict = second.conflict = LQ_CONFLICT_TRAIL;
    EXPECT(0, lq_put(ct.s, &trail, 1, &ct.err));
    EXPECT(0, lq_put(ct.s, &second, 1, &ct.err));
    assert_counted(190);
    struct lq_put third = item("t3", 11); /* asked for the room of the job that it may add */
    third.unique = trail.unique;
    third.unique_ttl_ms = CT_HOUR;
    third.until = LADE_UNTIL_TTL;
    third.conflict = LQ_CONFLICT_TRAIL;
    EXPECT(LADE_FULL, lq_put(ct.s, &third, 1, &ct.err));
    assert_counted(190);
}

static void steps_of_workflows_are_counted_and_pass(void **state)
{
    (void)state;
    if (!ct.ops->flow_put)
        return;
    ct_join("w", "q");
    bound(0, 1);
    fl_add("f", "q q<0");
    int64_t first = sum();
    assert_true(first > 1);
    assert_counted(first);
    struct lq_leased a = ct_take_one("w", "q");
    assert_counted(0);
    assert_int_equal(ct_settle("q", &a, LQ_TO_COMPLETED), LADE_DONE);
    assert_counted(sum());
    assert_true(counted() > 0);
    assert_int_equal(fl_act(LADE_FLOW_CANCEL, "f"), 0);
    assert_counted(0);
    assert_int_equal(fl_act(LADE_FLOW_RETRY, "f"), 0);
    assert_counted(sum());
    assert_true(counted() > 0);
}

static void who_watches_for_bytes_is_told_of_room(void **state)
{
    (void)state;
    bound(0, 100);
    EXPECT(0, put_one("a", 60));
    struct lq_watch it = {
        .queue = "q", .what = LQ_WATCH_ROOM, .after = 1, .bytes = 40, .outcome = -1};
    EXPECT(0, ct.s->ops->watch(ct.s, "watcher", &it, 1, &ct.err));
    assert_int_equal(it.outcome, LADE_DONE);
    it.bytes = 41;
    EXPECT(0, ct.s->ops->watch(ct.s, "watcher", &it, 1, &ct.err));
    assert_int_equal(it.outcome, LADE_EMPTY);
    bound(0, 101);
    int64_t start = lb_clock_mono();
    EXPECT(0, ct.s->ops->wait(ct.s, "watcher", ct_lanes("q"), start + 60 * LADE_SECOND, &ct.err));
    assert_true(lb_clock_mono() - start < 30 * LADE_SECOND);
    EXPECT(0, ct.s->ops->watch(ct.s, "watcher", &it, 1, &ct.err));
    assert_int_equal(it.outcome, LADE_DONE);
    ct.s->ops->unwatch(ct.s, "watcher", ct_lanes("q"));
}

static const struct CMUnitTest tests[] = {
    CT_TEST(a_queue_takes_as_many_bytes_as_may_wait_and_no_more),
    CT_TEST(a_call_is_admitted_or_refused_whole_by_its_bytes),
    CT_TEST(either_bound_refuses),
    CT_TEST(jobs_from_before_the_bound_are_counted),
    CT_TEST(packed_jobs_are_counted_when_put_taken_and_changed),
    CT_TEST(every_way_out_of_and_into_waiting_is_counted),
    CT_TEST(due_jobs_are_counted_once),
    CT_TEST(a_reclaimed_job_is_counted_when_it_waits_again),
    CT_TEST(keyed_jobs_are_counted),
    CT_TEST(a_replaced_job_is_counted_as_the_new_one),
    CT_TEST(steps_of_workflows_are_counted_and_pass),
    CT_TEST(who_watches_for_bytes_is_told_of_room),
};

CT_GROUP(ct_bytes_group, tests);
