/*
 * loss_test.c - replies that are lost after the server did the work: C-029, C-030, C-031, C-037 and what follows from them
 *
 * The proxy forwards a request, lets the server answer, and resets the connection instead of handing the answer over.
 */
#include "store/redis/store_rig.h"
#include "support/proxy.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/buf.h"
#include "queue/beat.h"
#include "queue/job.h"
#include "rt/seam.h"

#define ROUNDS 20U

static int drop_replies(const char *script, int times)
{
    return ts_proxy_rule(
        rig.proxy,
        &(struct ts_proxy_rule){.match = script, .act = TS_PROXY_DROP_REPLY, .times = times});
}

/* The server does it, the client's deadline ends without an answer. */
static void drop_for_good(const char *script)
{
    (void)drop_replies(script, 0);
}

/* A call that ends at its deadline; all others have the time that a busy machine takes. */
#define FAILS(s, call)                    \
    do {                                  \
        (s)->config.timeout_ms = 1000;    \
        WANT(-LADE_EUNAVAILABLE, (call)); \
        (s)->config.timeout_ms = 30000;   \
    } while (0)

/* C-031 */
static void put_whose_reply_is_lost_adds_each_job_once(void **state)
{
    (void)state;
    struct lq_store *s = srig_open_through_proxy();
    for (unsigned round = 0; round < ROUNDS; round++) {
        char prefix[16], delayed[16];
        (void)snprintf(prefix, sizeof(prefix), "r%u-", round);
        (void)snprintf(delayed, sizeof(delayed), "d%u", round);
        int rule = drop_replies("put.lua", 1);
        srig_put(s, prefix, 3);
        assert_int_equal(ts_proxy_hits(rig.proxy, rule), 1);
        struct lq_put put[2] = {srig_item(delayed), srig_item(delayed)};
        put[0].when = LQ_WHEN_IN;
        put[0].when_ms = 3600000;
        ts_proxy_clear(rig.proxy);
        rule = drop_replies("put.lua", 1);
        WANT(0, lq_put(s, put, 2, &rig.err));
        assert_int_equal(ts_proxy_hits(rig.proxy, rule), 1);
        assert_int_equal(put[0].outcome, 0);
        assert_int_equal(put[1].outcome, LADE_DUPLICATE);
        assert_string_equal(put[1].holder, delayed);
        ts_proxy_clear(rig.proxy);
    }
    assert_int_equal(srig_count(s, LADE_STATE_READY), 3 * ROUNDS);
    assert_int_equal(srig_count(s, LADE_STATE_SCHEDULED), ROUNDS);
    assert_int_equal(srig_info(s).total_enqueued, 4 * ROUNDS);
}

struct putting {
    struct lq_store *s;
    struct lq_put put;
    int rc;
    lade_err err;
};

static void put_in_thread(void *arg)
{
    struct putting *p = arg;
    p->rc = lq_put(p->s, &p->put, 1, &p->err);
}

/* C-031: the job has run and is gone when the repeat comes; its id tells nothing any more. (chasqui 18) */
static void put_repeated_after_the_job_is_gone_does_not_add_it_again(void **state)
{
    (void)state;
    struct lq_store *direct = srig_open();
    struct putting p = {.s = srig_open_through_proxy(), .put = srig_item("a")};
    struct lr_thread thread = {.started = false};
    int rule = drop_replies("put.lua", 1);
    srig_join(direct, "w");
    srig_put(direct, "warm", 1);
    assert_int_equal(srig_take(direct, "w", 1), 1);
    srig_settle_got(direct, LQ_TO_GONE, 0);
    ts_proxy_refuse(rig.proxy, true);
    assert_int_equal(lr_thread_start(&thread, "put", put_in_thread, &p), 0);
    int64_t deadline = lb_deadline_in(5 * LADE_SECOND);
    while (srig_take(direct, "w", 1) == 0 && lb_clock_mono() < deadline)
        lr_sleep_until(lb_deadline_in(2 * LADE_MILLISECOND));
    assert_int_equal(rig.got.n, 1);
    srig_settle_got(direct, LQ_TO_GONE, 0);
    ts_proxy_refuse(rig.proxy, false);
    lr_thread_join(&thread);
    assert_int_equal(ts_proxy_hits(rig.proxy, rule), 1);
    assert_int_equal(p.rc, 0);
    assert_int_equal(p.put.outcome, 0);
    assert_int_equal(srig_count(direct, LADE_STATE_READY), 0);
    assert_int_equal(srig_info(direct).total_enqueued, 2);
}

/* C-037: what the lost reply held is the taker's, and not only at the end of its lease. */
static void take_whose_reply_is_lost_hands_out_what_it_took(void **state)
{
    (void)state;
    struct lq_store *s = srig_open_through_proxy();
    srig_join(s, "w");
    for (unsigned round = 0; round < ROUNDS; round++) {
        char prefix[16];
        (void)snprintf(prefix, sizeof(prefix), "r%u-", round);
        srig_put(s, prefix, 5);
        int rule = drop_replies("trip.lua", 1);
        assert_int_equal(srig_take(s, "w", 3), 3);
        assert_int_equal(ts_proxy_hits(rig.proxy, rule), 1);
        ts_proxy_clear(rig.proxy);
        assert_int_equal(srig_count(s, LADE_STATE_ACTIVE), 3);
        srig_settle_got(s, LQ_TO_COMPLETED, 0);
        assert_int_equal(srig_take(s, "w", 9), 2);
        srig_settle_got(s, LQ_TO_COMPLETED, 0);
    }
    assert_int_equal(srig_info(s).total_completed, 5 * ROUNDS);
}

static void take_that_failed_is_made_good_by_the_next(void **state)
{
    (void)state;
    struct lq_store *s = srig_open_through_proxy();
    srig_join(s, "w");
    srig_put(s, "j", 4);
    drop_for_good("trip.lua");
    struct lq_take take = srig_asking("w", 3);
    FAILS(s, lq_settle_take(s, NULL, 0, &take, &rig.got, &rig.err));
    assert_int_equal(rig.got.n, 0);
    ts_proxy_clear(rig.proxy);
    assert_int_equal(srig_count(s, LADE_STATE_ACTIVE), 3);
    assert_int_equal(srig_take(s, "w", 1), 3);
    assert_memory_equal(rig.got.job[0].id.p, "j0", 3);
    srig_settle_got(s, LQ_TO_COMPLETED, 0);
    assert_int_equal(srig_take(s, "w", 9), 1);
    assert_int_equal(srig_take(s, "w", 9), 0);
}

static void take_that_got_nothing_may_be_repeated(void **state)
{
    (void)state;
    struct lq_store *s = srig_open_through_proxy();
    srig_join(s, "w");
    int rule = drop_replies("trip.lua", 1);
    assert_int_equal(srig_take(s, "w", 3), 0);
    assert_int_equal(ts_proxy_hits(rig.proxy, rule), 1);
    srig_put(s, "j", 1);
    assert_int_equal(srig_take(s, "w", 3), 1);
    srig_settle_got(s, LQ_TO_COMPLETED, 0);
}

static void take_that_failed_gives_only_what_is_still_leased(void **state)
{
    (void)state;
    struct lq_store *s = srig_open_through_proxy();
    srig_join(s, "w");
    srig_put(s, "j", 3);
    drop_for_good("trip.lua");
    struct lq_take take = srig_asking("w", 3);
    FAILS(s, lq_settle_take(s, NULL, 0, &take, &rig.got, &rig.err));
    ts_proxy_clear(rig.proxy);
    int outcome;
    struct lb_slice id = lb_slice_str("j1");
    WANT(0, s->ops->act(s, "q", LADE_JOB_REMOVE, &id, 1, &outcome, &rig.err));
    assert_int_equal(outcome, 0);
    assert_int_equal(srig_take(s, "w", 9), 2);
    assert_memory_equal(rig.got.job[1].id.p, "j2", 3);
    srig_settle_got(s, LQ_TO_COMPLETED, 0);
}

static void settle_and_repeat(enum lq_to to, enum lade_state end, size_t all)
{
    struct lq_store *s = srig_open_through_proxy();
    srig_join(s, "w");
    for (unsigned round = 0; round < ROUNDS; round++) {
        char prefix[16];
        (void)snprintf(prefix, sizeof(prefix), "r%u-", round);
        srig_put(s, prefix, 2);
        assert_int_equal(srig_take(s, "w", 2), 2);
        int rule = drop_replies("settle.lua", 1);
        srig_settle_got(s, to, 0);
        assert_int_equal(ts_proxy_hits(rig.proxy, rule), 1);
        ts_proxy_clear(rig.proxy);
        srig_settle_got(s, to, LADE_STALE);
        if (end == LADE_STATE_RETRYING) {
            int outcome;
            struct lb_slice id = lb_slice_of(rig.got.job[0].id);
            assert_int_equal(srig_count(s, end), 2);
            WANT(0, s->ops->act(s, "q", LADE_JOB_REMOVE, &id, 1, &outcome, &rig.err));
            id = lb_slice_of(rig.got.job[1].id);
            WANT(0, s->ops->act(s, "q", LADE_JOB_REMOVE, &id, 1, &outcome, &rig.err));
        }
    }
    assert_int_equal(srig_count(s, end), all);
}

/* C-029 */
static void retry_whose_reply_is_lost_is_scheduled_once(void **state)
{
    (void)state;
    settle_and_repeat(LQ_TO_RETRYING, LADE_STATE_RETRYING, 0);
}

/* C-030 */
static void death_whose_reply_is_lost_leaves_one_entry(void **state)
{
    (void)state;
    settle_and_repeat(LQ_TO_DEAD, LADE_STATE_DEAD, 2UL * ROUNDS);
}

static void completion_whose_reply_is_lost_is_done_once(void **state)
{
    (void)state;
    settle_and_repeat(LQ_TO_COMPLETED, LADE_STATE_COMPLETED, 2UL * ROUNDS);
}

/* The engine settles again later, in other company. */
static void settle_that_failed_is_no_lost_lease_later(void **state)
{
    (void)state;
    struct lq_store *s = srig_open_through_proxy();
    srig_join(s, "w");
    srig_put(s, "j", 6);
    assert_int_equal(srig_take(s, "w", 6), 6);
    struct lq_settle it[6];
    for (size_t i = 0; i < 6; i++)
        it[i] = (struct lq_settle){.queue = "q",
                                   .id = lb_slice_of(rig.got.job[i].id),
                                   .fence = rig.got.job[i].fence,
                                   .to = LQ_TO_COMPLETED};
    drop_for_good("settle.lua");
    FAILS(s, lq_settle_take(s, it, 3, NULL, NULL, &rig.err));
    ts_proxy_clear(rig.proxy);
    WANT(0, AGAIN(lq_settle_take(s, it + 3, 1, NULL, NULL, &rig.err)));
    assert_int_equal(it[3].outcome, 0);
    WANT(0, lq_settle_take(s, it, 6, NULL, NULL, &rig.err));
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(it[i].outcome, i == 3 ? LADE_STALE : 0);
    assert_int_equal(srig_info(s).total_completed, 6);
}

static void reclaim_whose_reply_is_lost_hands_out_what_it_took(void **state)
{
    (void)state;
    struct lq_store *s = srig_open_through_proxy();
    static const char *const queue[] = {"q"};
    for (int lost = 0; lost < 2; lost++) {
        srig_join(s, "dead");
        srig_join(s, "w");
        srig_put(s, lost ? "x" : "y", 3);
        assert_int_equal(srig_take(s, "dead", 3), 3);
        WANT(0, lq_leave(s, "dead", (struct lq_lanes){queue, 1}, &rig.err));
        (void)drop_replies("reclaim.lua", lost ? 0 : 1);
        struct lq_take take = srig_asking("w", 9);
        rig.got.n = 0;
        if (lost) {
            FAILS(s, lq_reclaim(s, &take, &rig.got, &rig.err));
            assert_int_equal(rig.got.n, 0);
            ts_proxy_clear(rig.proxy);
        }
        WANT(0, AGAIN(lq_reclaim(s, &take, &rig.got, &rig.err)));
        ts_proxy_clear(rig.proxy);
        assert_int_equal(rig.got.n, 3);
        assert_string_equal(rig.got.job[0].former, "dead");
        srig_settle_got(s, LQ_TO_COMPLETED, 0);
        WANT(LADE_EMPTY, lq_reclaim(s, &take, &rig.got, &rig.err));
    }
}

/* Each stop once, though the reply that carried it was lost. */
static void stop_whose_reply_is_lost_is_told_again(void **state)
{
    (void)state;
    struct lq_store *s = srig_open_through_proxy();
    static const char *const queue[] = {"q"};
    struct lq_beat beat = {.worker = "w", .name = "w", .lanes = {queue, 1}, .lease_ms = 3600000};
    struct lq_stop stop[4];
    size_t n;
    int outcome;
    srig_join(s, "w");
    srig_put(s, "j", 2);
    assert_int_equal(srig_take(s, "w", 2), 2);
    for (int i = 0; i < 2; i++) {
        struct lb_slice id = lb_slice_of(rig.got.job[i].id);
        WANT(0, s->ops->act(s, "q", i ? LADE_JOB_REMOVE : LADE_JOB_CANCEL, &id, 1, &outcome,
                            &rig.err));
        (void)drop_replies("renew.lua", 1);
        WANT(0, lq_renew(s, &beat, stop, 4, &n, &rig.err));
        ts_proxy_clear(rig.proxy);
        assert_int_equal(n, 1);
        assert_memory_equal(stop[0].id, id.p, id.n + 1);
    }
    WANT(0, lq_renew(s, &beat, stop, 4, &n, &rig.err));
    assert_int_equal(n, 0);
}

/* C-032: an operator whose answer was lost is told so, and nothing is done twice. */
static void act_whose_reply_is_lost_fails_and_is_done_once(void **state)
{
    (void)state;
    struct lq_store *s = srig_open_through_proxy();
    srig_join(s, "w");
    srig_put(s, "j", 3);
    assert_int_equal(srig_take(s, "w", 3), 3);
    srig_settle_got(s, LQ_TO_DEAD, 0);
    (void)drop_replies("redrive.lua", 1);
    size_t n = 9;
    WANT(-LADE_EUNAVAILABLE, s->ops->redrive(s, "q", 10, &n, &rig.err));
    ts_proxy_clear(rig.proxy);
    assert_int_equal(srig_count(s, LADE_STATE_READY), 3);
    WANT(0, s->ops->redrive(s, "q", 10, &n, &rig.err));
    assert_int_equal(n, 0);
    assert_int_equal(srig_count(s, LADE_STATE_READY), 3);
}

/* Batches: jobs that the server keeps as one ------------------------------------------------------------------------ */

#define BATCH 9

static char batch_id[BATCH][27];

/* Of a key of its own, which its envelope tells. */
static void give_key(struct lq_put *put, size_t i)
{
    struct lb_buf b;
    struct lb_mut key = lb_arena_copy(&rig.arena, &"ABCDEFGHI"[i], 1);
    lade_job_spec spec = {.kind = "k", .key = {key.p, key.n}};
    lb_buf_init(&b);
    lq_job_encode(&b, &spec, 1700000000000);
    put->body = lb_slice_of(lb_arena_copy(&rig.arena, b.p, b.n));
    put->key = lb_slice_of(key);
    lb_buf_fini(&b);
}

/* BATCH fresh jobs whose ids follow each other, in a block of its own for each round. */
static void put_batch_of(struct lq_store *s, unsigned round, bool keyed)
{
    struct lq_put put[BATCH];
    for (size_t i = 0; i < BATCH; i++) {
        (void)snprintf(batch_id[i], sizeof(batch_id[i]), "01HF7YAT00%014u0%zu", round, i);
        put[i] = srig_item(batch_id[i]);
        put[i].fresh = true;
        if (keyed)
            give_key(&put[i], i);
    }
    WANT(0, lq_put(s, put, BATCH, &rig.err));
    for (size_t i = 0; i < BATCH; i++)
        assert_int_equal(put[i].outcome, 0);
}

static void put_batch(struct lq_store *s, unsigned round)
{
    put_batch_of(s, round, false);
}

static int act(struct lq_store *s, enum lade_job_verb verb, const char *id)
{
    int outcome = -1;
    struct lb_slice one = lb_slice_str(id);
    WANT(0, s->ops->act(s, "q", verb, &one, 1, &outcome, &rig.err));
    return outcome;
}

static void lose_replies(bool keyed)
{
    static const char *const script[] = {"put.lua", "trip.lua", "settle.lua"};
    struct lq_store *s = srig_open_through_proxy();
    srig_join(s, "w");
    for (unsigned round = 0; round < ROUNDS; round++) {
        int rule = drop_replies(script[round % 3], 1);
        put_batch_of(s, round, keyed);
        assert_string_equal(srig_ask(keyed ? "LLEN %ns:{q}:ready:E" : "LLEN %ns:{q}:ready:4"),
                            ":1\r\n");
        assert_int_equal(srig_take(s, "w", 4), 4);
        assert_int_equal(srig_count(s, LADE_STATE_ACTIVE), 4);
        srig_settle_got(s, LQ_TO_COMPLETED, 0);
        assert_int_equal(ts_proxy_hits(rig.proxy, rule), 1);
        ts_proxy_clear(rig.proxy);
        srig_settle_got(s, LQ_TO_COMPLETED, LADE_STALE);
        assert_int_equal(srig_take(s, "w", 100), BATCH - 4);
        assert_string_equal((const char *)rig.got.job[0].id.p, batch_id[4]);
        srig_settle_got(s, LQ_TO_COMPLETED, 0);
    }
    assert_int_equal(srig_info(s).total_completed, (uint64_t)BATCH * ROUNDS);
    assert_int_equal(srig_info(s).total_enqueued, (uint64_t)BATCH * ROUNDS);
}

static void batch_whose_replies_are_lost_is_added_taken_and_settled_once(void **state)
{
    (void)state;
    lose_replies(false);
}

/* The same of jobs of keys, which wait in company: one entry of its list. */
static void company_whose_replies_are_lost_is_added_taken_and_settled_once(void **state)
{
    (void)state;
    lose_replies(true);
}

/* Of what the lost answer held: one removed, one to be cancelled, the others as they were. */
static void take_of_a_batch_that_failed_gives_what_is_still_leased(void **state)
{
    (void)state;
    struct lq_store *s = srig_open_through_proxy();
    srig_join(s, "w");
    put_batch(s, 1);
    drop_for_good("trip.lua");
    struct lq_take take = srig_asking("w", BATCH - 1);
    FAILS(s, lq_settle_take(s, NULL, 0, &take, &rig.got, &rig.err));
    ts_proxy_clear(rig.proxy);
    assert_int_equal(act(s, LADE_JOB_REMOVE, batch_id[1]), 0);
    assert_int_equal(act(s, LADE_JOB_CANCEL, batch_id[3]), 0);
    assert_int_equal(srig_take(s, "w", 100), BATCH - 2);
    bool seen[BATCH] = {0};
    for (size_t i = 0; i < rig.got.n; i++)
        seen[rig.got.job[i].id.p[25] - '0'] = true;
    for (size_t i = 0; i < BATCH; i++)
        assert_int_equal(seen[i], i != 1 && i != BATCH - 1);
    srig_settle_got(s, LQ_TO_COMPLETED, 0);
    assert_int_equal(srig_take(s, "w", 100), 1);
    srig_settle_got(s, LQ_TO_COMPLETED, 0);
}

static void settle_of_a_batch_that_failed_is_no_lost_lease_later(void **state)
{
    (void)state;
    struct lq_store *s = srig_open_through_proxy();
    srig_join(s, "w");
    put_batch(s, 1);
    assert_int_equal(srig_take(s, "w", BATCH), BATCH);
    struct lq_settle it[BATCH];
    for (size_t i = 0; i < BATCH; i++)
        it[i] = (struct lq_settle){.queue = "q",
                                   .id = lb_slice_of(rig.got.job[i].id),
                                   .fence = rig.got.job[i].fence,
                                   .to = i == 2 ? LQ_TO_DEAD : LQ_TO_COMPLETED};
    drop_for_good("settle.lua");
    FAILS(s, lq_settle_take(s, it, 5, NULL, NULL, &rig.err));
    ts_proxy_clear(rig.proxy);
    WANT(0, AGAIN(lq_settle_take(s, it + 6, 2, NULL, NULL, &rig.err)));
    assert_int_equal(it[6].outcome, 0);
    WANT(0, lq_settle_take(s, it, BATCH, NULL, NULL, &rig.err));
    for (size_t i = 0; i < BATCH; i++)
        assert_int_equal(it[i].outcome, i == 6 || i == 7 ? LADE_STALE : 0);
    assert_int_equal(srig_info(s).total_completed, BATCH - 1);
    assert_int_equal(srig_info(s).total_dead, 1);
}

/* Bodies come in a second round trip: what the first did holds, also the settles that went with it. */
static void take_whose_bodies_do_not_come_is_made_good_by_the_next(void **state)
{
    (void)state;
    struct lq_store *s = srig_open_through_proxy();
    srig_join(s, "w");
    put_batch(s, 1);
    (void)drop_replies(":b:01", 1);
    assert_int_equal(srig_take(s, "w", 4), 4); /* repeated within the call */
    ts_proxy_clear(rig.proxy);
    struct lq_settle it[4];
    char id[4][27];
    for (size_t i = 0; i < 4; i++) {
        memcpy(id[i], rig.got.job[i].id.p, sizeof(id[i]));
        it[i] = (struct lq_settle){.queue = "q",
                                   .id = lb_slice_str(id[i]),
                                   .fence = rig.got.job[i].fence,
                                   .to = i == 1 ? LQ_TO_DEAD : LQ_TO_COMPLETED};
    }
    drop_for_good(":b:01");
    struct lq_take take = srig_asking("w", BATCH);
    rig.got.n = 0;
    FAILS(s, lq_settle_take(s, it, 4, &take, &rig.got, &rig.err));
    assert_int_equal(rig.got.n, 0);
    ts_proxy_clear(rig.proxy);
    WANT(0, AGAIN(lq_settle_take(s, it, 4, &take, &rig.got, &rig.err)));
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(it[i].outcome, 0);
    assert_int_equal(rig.got.n, BATCH - 4);
    for (size_t i = 0; i < rig.got.n; i++) {
        assert_string_equal((const char *)rig.got.job[i].id.p, batch_id[4 + i]);
        assert_true(rig.got.job[i].body.n > 0);
    }
    srig_settle_got(s, LQ_TO_COMPLETED, 0);
    assert_int_equal(srig_info(s).total_completed, BATCH - 1);
    assert_int_equal(srig_info(s).total_dead, 1);
}

/* What a put sent in front of its script ends by itself when the script never ran, and does not stop a later put. */
static void bodies_without_a_put_expire(void **state)
{
    (void)state;
    struct lq_store *s = srig_open();
    srig_put(s, "made", 1); /* the queue and its level are there */
    assert_string_equal(srig_ask("SET %ns:{q}:b:01HF7YAT0000000000000007+ rest NX PX 180000"),
                        "+OK\r\n");
    put_batch(s, 7);
    srig_join(s, "w");
    assert_int_equal(srig_take(s, "w", 100), 1 + BATCH);
    assert_string_equal((const char *)rig.got.job[BATCH].id.p, batch_id[BATCH - 1]);
    assert_true(rig.got.job[BATCH].body.n > 0);
    assert_string_equal(srig_ask("TTL %ns:{q}:b:01HF7YAT0000000000000007+"), ":-1\r\n");
    srig_settle_got(s, LQ_TO_COMPLETED, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SRIG_TEST(put_whose_reply_is_lost_adds_each_job_once),
        SRIG_TEST(put_repeated_after_the_job_is_gone_does_not_add_it_again),
        SRIG_TEST(take_whose_reply_is_lost_hands_out_what_it_took),
        SRIG_TEST(take_that_failed_is_made_good_by_the_next),
        SRIG_TEST(take_that_got_nothing_may_be_repeated),
        SRIG_TEST(take_that_failed_gives_only_what_is_still_leased),
        SRIG_TEST(retry_whose_reply_is_lost_is_scheduled_once),
        SRIG_TEST(death_whose_reply_is_lost_leaves_one_entry),
        SRIG_TEST(completion_whose_reply_is_lost_is_done_once),
        SRIG_TEST(settle_that_failed_is_no_lost_lease_later),
        SRIG_TEST(reclaim_whose_reply_is_lost_hands_out_what_it_took),
        SRIG_TEST(stop_whose_reply_is_lost_is_told_again),
        SRIG_TEST(act_whose_reply_is_lost_fails_and_is_done_once),
        SRIG_TEST(batch_whose_replies_are_lost_is_added_taken_and_settled_once),
        SRIG_TEST(company_whose_replies_are_lost_is_added_taken_and_settled_once),
        SRIG_TEST(take_of_a_batch_that_failed_gives_what_is_still_leased),
        SRIG_TEST(settle_of_a_batch_that_failed_is_no_lost_lease_later),
        SRIG_TEST(take_whose_bodies_do_not_come_is_made_good_by_the_next),
        SRIG_TEST(bodies_without_a_put_expire),
    };
    return cmocka_run_group_tests(tests, srig_start, srig_stop);
}
