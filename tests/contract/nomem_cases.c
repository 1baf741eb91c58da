/*
 * nomem_cases.c - contract: running out of memory is a failure and nothing else
 *
 * Each op is called with the 1st, 2nd, ... allocation and all later ones failing, until it gets through. A call that fails
 * says LADE_ENOMEM and changes nothing; behind a server the reply may be what there was no memory for, so that
 * only what the caller sees is looked at.
 */
#include "contract.h"

#include "base/mem.h"

#define TRIES 2000

/* What the queue "q" holds, as text. */
static const char *describe(void)
{
    lade_queue_info info = {0};
    const char *text = "";
    int rc = ct.s->ops->count(ct.s, "q", &info, &ct.err);
    for (int i = 0; rc == 0 && i < LADE_N_STATES; i++)
        text = ct_format("%s %d", text, (int)info.count[i]);
    return ct_format("%s total %d", text, (int)info.total_enqueued);
}

/* Calls op with less and less failing; the result of the call that got through. */
static int starve(int (*op)(void))
{
    const char *before = describe();
    int rc = -LADE_ENOMEM;
    for (uint64_t n = 1; rc == -LADE_ENOMEM && n < TRIES; n++) {
        lb_mem_fail_after(n);
        rc = op();
        lb_mem_fail_after(0);
        if (rc == -LADE_ENOMEM && !(ct.ops->caps & LQ_CAP_REMOTE))
            assert_string_equal(describe(), before);
    }
    if (rc < 0)
        print_error("%s: %s\n", lade_result_name(rc), ct.err.text);
    assert_true(rc >= 0);
    return rc;
}

static void fill_queue(void)
{
    ct_join("w", "q");
    ct_join("v", "q");
    ct_add("q", "a b c d");
    ct_add_in("q", "later", CT_HOUR);
    (void)ct_take("w", "q", 2);
}

static struct lq_put items[3];

static int put_items(void)
{
    return lq_put(ct.s, items, 3, &ct.err);
}

static void put_is_all_or_none_without_memory(void **state)
{
    (void)state;
    static const char *const id[] = {"x", "y", "z"};
    fill_queue();
    for (size_t i = 0; i < 3; i++) {
        items[i] = ct_item("q", id[i]);
        items[i].unique = lb_slice_str(id[i]);
        items[i].unique_ttl_ms = CT_HOUR;
    }
    (void)starve(put_items);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(ct_state("q", id[i]), LADE_STATE_READY);
}

static struct lq_take taking;

static int take_two(void)
{
    lb_arena_fini(&ct.got.arena);
    ct.got.n = 0;
    return lq_settle_take(ct.s, NULL, 0, &taking, &ct.got, &ct.err);
}

static void take_leaves_jobs_ready_without_memory(void **state)
{
    (void)state;
    fill_queue();
    taking = ct_asking("w", "q", 2);
    (void)starve(take_two);
    if (!(ct.ops->caps & LQ_CAP_REMOTE))
        assert_true(ct.got.n >= 1);
}

static int reclaim_two(void)
{
    lb_arena_fini(&ct.got.arena);
    ct.got.n = 0;
    return lq_reclaim(ct.s, &taking, &ct.got, &ct.err);
}

static void reclaim_leaves_leases_without_memory(void **state)
{
    (void)state;
    fill_queue();
    ct_die("w", "q");
    taking = ct_asking("v", "q", 2);
    (void)starve(reclaim_two);
    if (!(ct.ops->caps & LQ_CAP_REMOTE))
        assert_true(ct.got.n >= 1);
}

static struct lq_settle settles[2];

static int settle_two(void)
{
    return lq_settle_take(ct.s, settles, 2, NULL, NULL, &ct.err);
}

static void settle_is_all_or_none_without_memory(void **state)
{
    (void)state;
    fill_queue();
    settles[0] = ct_settling("q", &ct.got.job[0], LQ_TO_COMPLETED);
    settles[0].result = lb_slice_str("result");
    settles[1] = ct_settling("q", &ct.got.job[1], LQ_TO_RETRYING);
    settles[1].history = lb_slice_str("history");
    (void)starve(settle_two);
    assert_int_equal(ct_state("q", "a"), LADE_STATE_COMPLETED);
    assert_int_equal(ct_state("q", "b"), LADE_STATE_RETRYING);
}

static struct lq_beat beat;

static int renew_first(void)
{
    struct lq_stop stop[2];
    size_t n = 0;
    return lq_renew(ct.s, &beat, stop, 2, &n, &ct.err);
}

static void renew_fails_cleanly_without_memory(void **state)
{
    (void)state;
    fill_queue();
    beat = ct_beat("new", "q r s");
    (void)starve(renew_first);
    assert_int_equal(ct_info("q").n_workers, 3);
}

static int look_at_all(void)
{
    struct lq_row_vec rows = {0};
    struct lb_arena arena = {0};
    lade_cursor cursor = {0};
    const char **name = NULL;
    lade_worker_info *info = NULL;
    size_t n = 0;
    int rc = ct.s->ops->list(ct.s, "q", LADE_STATE_READY, &cursor, 10, &rows, &ct.err);
    if (rc >= 0)
        rc = ct.s->ops->get(ct.s, "q", lb_slice_str("a"), &rows, &ct.err);
    if (rc >= 0)
        rc = ct.s->ops->queues(ct.s, &arena, &name, &n, &ct.err);
    if (rc >= 0)
        rc = ct.s->ops->workers(ct.s, &arena, &info, &n, &ct.err);
    lb_arena_fini(&rows.arena);
    lb_arena_fini(&arena);
    return rc;
}

static void looking_fails_cleanly_without_memory(void **state)
{
    (void)state;
    fill_queue();
    (void)starve(look_at_all);
}

static int cancel_one(void)
{
    struct lb_slice id = lb_slice_str("c");
    int outcome = -1;
    int rc = ct.s->ops->act(ct.s, "q", LADE_JOB_CANCEL, &id, 1, &outcome, &ct.err);
    return rc < 0 ? rc : LADE_DONE;
}

static int redrive_all(void)
{
    size_t n = 0;
    return ct.s->ops->redrive(ct.s, "q", 10, &n, &ct.err);
}

static int purge_all(void)
{
    size_t n = 0;
    return ct.s->ops->purge(ct.s, "q", LADE_STATE_READY, 10, &n, &ct.err);
}

static int pause_new(void)
{
    return ct.s->ops->pause(ct.s, "other", true, &ct.err);
}

static void acting_fails_cleanly_without_memory(void **state)
{
    (void)state;
    fill_queue();
    (void)starve(cancel_one);
    assert_int_equal(ct_state("q", "c"), LADE_STATE_CANCELLED);
    assert_int_equal(ct_act("q", LADE_JOB_KILL, "d"), LADE_DONE);
    (void)starve(redrive_all);
    assert_int_equal(ct_state("q", "d"), LADE_STATE_READY);
    (void)starve(purge_all);
    assert_int_equal(ct_state("q", "d"), -1);
    (void)starve(pause_new);
    assert_true(ct_info("other").paused);
}

static const struct CMUnitTest tests[] = {
    CT_TEST(put_is_all_or_none_without_memory),    CT_TEST(take_leaves_jobs_ready_without_memory),
    CT_TEST(reclaim_leaves_leases_without_memory), CT_TEST(settle_is_all_or_none_without_memory),
    CT_TEST(renew_fails_cleanly_without_memory),   CT_TEST(looking_fails_cleanly_without_memory),
    CT_TEST(acting_fails_cleanly_without_memory),
};

CT_GROUP(ct_nomem_group, tests);
