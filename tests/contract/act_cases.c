/* act_cases.c - contract: what operators do to single jobs */
#include "contract.h"

#define GONE      (-1)
#define SCHEDULED LADE_STATE_SCHEDULED
#define READY     LADE_STATE_READY
#define ACTIVE    LADE_STATE_ACTIVE
#define RETRYING  LADE_STATE_RETRYING
#define COMPLETED LADE_STATE_COMPLETED
#define DEAD      LADE_STATE_DEAD
#define CANCELLED LADE_STATE_CANCELLED

/* From each state, in the order of enum lade_state: the state afterwards; the same state = WRONG_STATE. */
struct row {
    enum lade_job_verb verb;
    int after[LADE_N_STATES];
};

static const struct row table[] = {
    /*                  SCHEDULED  READY      ACTIVE  RETRYING   COMPLETED  DEAD  CANCELLED */
    {LADE_JOB_RETRY, {READY, READY, ACTIVE, READY, READY, READY, READY}},
    {LADE_JOB_KILL, {DEAD, DEAD, ACTIVE, DEAD, COMPLETED, DEAD, CANCELLED}},
    {LADE_JOB_CANCEL, {CANCELLED, CANCELLED, ACTIVE, CANCELLED, COMPLETED, DEAD, CANCELLED}},
    {LADE_JOB_REMOVE, {GONE, GONE, GONE, GONE, GONE, GONE, GONE}},
};

static void act_from_each_state(enum lade_job_verb verb)
{
    const struct row *row = &table[verb];
    assert_int_equal(row->verb, verb);
    ct_join("w", "q");
    for (int i = 0; i < LADE_N_STATES; i++) {
        const char *id = ct_format("from-%s", lade_state_name((enum lade_state)i));
        (void)ct_bring("q", id, (enum lade_state)i);
        /* An active job is marked: done, though it stays where it is for now. */
        bool marks = i == ACTIVE && (verb == LADE_JOB_KILL || verb == LADE_JOB_CANCEL);
        bool works = marks || row->after[i] != i;
        int outcome = ct_act("q", verb, id);
        if (outcome != (works ? LADE_DONE : LADE_WRONG_STATE))
            print_error("%s: %s\n", id, lade_result_name(outcome));
        assert_int_equal(outcome, works ? LADE_DONE : LADE_WRONG_STATE);
        assert_int_equal(ct_state("q", id), row->after[i]);
        if (row->after[i] == READY) /* out of the way of the next */
            assert_int_equal(ct_take("w", "q", 1), 1);
    }
}

/* chronos 65 */
static void retry_readies_all_but_the_ready_and_the_active(void **state)
{
    (void)state;
    act_from_each_state(LADE_JOB_RETRY);
}

static void kill_ends_what_has_not_ended_as_dead(void **state)
{
    (void)state;
    act_from_each_state(LADE_JOB_KILL);
    assert_int_equal(ct_row("q", "from-ready")->reason, LQ_REASON_KILLED);
    assert_int_equal(ct_row("q", "from-scheduled")->reason, LQ_REASON_KILLED);
    assert_true(ct.rows.row[0].finished_ms > 0);
    assert_int_equal(ct_info("q").total_dead, 4); /* one was dead before */
}

/* chasqui 20 */
static void cancel_ends_what_has_not_ended_as_cancelled(void **state)
{
    (void)state;
    act_from_each_state(LADE_JOB_CANCEL);
    assert_true(ct_row("q", "from-ready")->finished_ms > 0);
    assert_int_equal(ct_info("q").total_dead, 1);
}

/* chronos 65; chasqui 20, 55 */
static void remove_leaves_nothing_of_any_state(void **state)
{
    (void)state;
    act_from_each_state(LADE_JOB_REMOVE);
    for (int i = 0; i < LADE_N_STATES; i++)
        assert_int_equal(ct_count("q", (enum lade_state)i), 0);
}

static void act_on_what_is_not_there_is_not_found(void **state)
{
    (void)state;
    ct_add("q", "a");
    for (int verb = LADE_JOB_RETRY; verb <= LADE_JOB_REMOVE; verb++) {
        assert_int_equal(ct_act("q", (enum lade_job_verb)verb, "unknown"), LADE_NOT_FOUND);
        assert_int_equal(ct_act("nowhere", (enum lade_job_verb)verb, "a"), LADE_NOT_FOUND);
    }
    lade_queue_info info;
    EXPECT(LADE_NOT_FOUND, ct.s->ops->count(ct.s, "nowhere", &info, &ct.err));
}

/* chasqui 20 */
static void batch_tells_the_outcome_of_each_job(void **state)
{
    (void)state;
    ct_add("q", "a b c");
    assert_int_equal(ct_act("q", LADE_JOB_CANCEL, "b"), LADE_DONE);
    struct lb_slice id[] = {lb_slice_str("c"), lb_slice_str("b"), lb_slice_str("x"),
                            lb_slice_str("a"), lb_slice_str("c")};
    int outcome[5] = {-1, -1, -1, -1, -1};
    assert_true(ct.s->ops->act(ct.s, "q", LADE_JOB_KILL, id, 5, outcome, &ct.err) >= 0);
    assert_int_equal(outcome[0], LADE_DONE);
    assert_int_equal(outcome[1], LADE_WRONG_STATE);
    assert_int_equal(outcome[2], LADE_NOT_FOUND);
    assert_int_equal(outcome[3], LADE_DONE);
    assert_int_equal(outcome[4], LADE_WRONG_STATE); /* the same job again, dead by now */
}

static void full_batch_is_acted_on_in_one_call(void **state)
{
    (void)state;
    struct lb_slice *id = lb_arena_alloc(&ct.arena, LQ_TAKE_MAX * sizeof(*id));
    int *outcome = lb_arena_alloc(&ct.arena, LQ_TAKE_MAX * sizeof(*outcome));
    assert_true(id && outcome);
    ct_add_many("q", "j", LQ_TAKE_MAX);
    for (size_t i = 0; i < LQ_TAKE_MAX; i++)
        id[i] = lb_slice_str(ct_format("j%04zu", i));
    EXPECT(0, ct.s->ops->act(ct.s, "q", LADE_JOB_CANCEL, id, LQ_TAKE_MAX, outcome, &ct.err));
    for (size_t i = 0; i < LQ_TAKE_MAX; i++)
        assert_int_equal(outcome[i], LADE_DONE);
    assert_int_equal(ct_count("q", LADE_STATE_CANCELLED), LQ_TAKE_MAX);
}

static void retried_job_joins_the_end_of_its_level(void **state)
{
    (void)state;
    ct_join("w", "q");
    (void)ct_bring("q", "dead", LADE_STATE_DEAD);
    (void)ct_bring("q", "later", LADE_STATE_SCHEDULED);
    ct_add("q", "a b");
    assert_int_equal(ct_act("q", LADE_JOB_RETRY, "dead"), LADE_DONE);
    assert_int_equal(ct_act("q", LADE_JOB_RETRY, "later"), LADE_DONE);
    ct_add("q", "c");
    assert_string_equal(ct_list("q", LADE_STATE_READY, 10), "a b dead later c");
    const struct lq_row *row = ct_row("q", "dead");
    assert_int_equal(row->finished_ms, 0);
    assert_int_equal(row->reason, LQ_REASON_NONE);
    assert_int_equal(ct_take("w", "q", 9), 5);
    assert_string_equal(ct_got(), "a b dead later c");
}

/* Leads job `id` to a state with a history of 3 attempts and 2 crashes, retries it and gives the history of the lease. */
static struct lb_mut retry_with_history(const char *id, enum lq_to to)
{
    static const char history[] = "\1\0\3\0\2\0records\0\xff";
    ct_add("q", id);
    struct lq_leased j = ct_take_one("w", "q");
    struct lq_settle it = ct_settling("q", &j, to);
    it.history = lb_slice(history, sizeof(history) - 1);
    assert_int_equal(ct_settle_one(it), LADE_DONE);
    assert_int_equal(ct_act("q", LADE_JOB_RETRY, id), LADE_DONE);
    j = ct_take_one("w", "q");
    assert_int_equal(j.history.n, sizeof(history) - 1);
    return j.history;
}

/* chasqui 35 */
static void retry_of_an_ended_job_gives_all_attempts_back(void **state)
{
    (void)state;

    static const enum lq_to end[] = {LQ_TO_DEAD, LQ_TO_CANCELLED, LQ_TO_COMPLETED};

    ct_join("w", "q");
    for (size_t i = 0; i < LB_ARRAY_LEN(end); i++) {
        struct lb_mut h = retry_with_history(ct_format("a%zu", i), end[i]);
        assert_memory_equal(h.p, "\1\0\0\0\0\0records\0\xff", h.n);
    }
}

static void retry_of_a_waiting_job_gives_no_attempts_back(void **state)
{
    (void)state;

    static const enum lq_to wait[] = {LQ_TO_RETRYING, LQ_TO_SCHEDULED};

    ct_join("w", "q");
    for (size_t i = 0; i < LB_ARRAY_LEN(wait); i++) {
        struct lb_mut h = retry_with_history(ct_format("a%zu", i), wait[i]);
        assert_memory_equal(h.p, "\1\0\3\0\2\0records\0\xff", h.n);
    }
}

/* active ----------------------------------------------------------------------------------------------------------- */

/* An operator's verb and then a settle: the state afterwards. */
static int settle_marked(const char *id, enum lade_job_verb verb, enum lq_to to)
{
    ct_add("q", id);
    struct lq_leased j = ct_take_one("w", "q");
    assert_int_equal(ct_act("q", verb, id), LADE_DONE);
    assert_int_equal(ct_settle("q", &j, to), LADE_DONE);
    return ct_state("q", id);
}

static void killed_active_job_ends_dead_whatever_its_worker_says(void **state)
{
    (void)state;

    static const enum lq_to to[] = {LQ_TO_RETRYING, LQ_TO_SCHEDULED, LQ_TO_READY,
                                    LQ_TO_DEAD,     LQ_TO_CANCELLED, LQ_TO_GONE};

    ct_join("w", "q");
    for (size_t i = 0; i < LB_ARRAY_LEN(to); i++) {
        const char *id = ct_format("a%zu", i);
        assert_int_equal(settle_marked(id, LADE_JOB_KILL, to[i]), LADE_STATE_DEAD);
        assert_int_equal(ct_row("q", id)->reason, LQ_REASON_KILLED);
    }
    assert_int_equal(ct_info("q").total_dead, 6);
}

static void cancelled_active_job_ends_cancelled_whatever_its_worker_says(void **state)
{
    (void)state;

    static const enum lq_to to[] = {LQ_TO_RETRYING, LQ_TO_SCHEDULED, LQ_TO_READY,
                                    LQ_TO_DEAD,     LQ_TO_CANCELLED, LQ_TO_GONE};

    ct_join("w", "q");
    for (size_t i = 0; i < LB_ARRAY_LEN(to); i++) {
        const char *id = ct_format("a%zu", i);
        assert_int_equal(settle_marked(id, LADE_JOB_CANCEL, to[i]), LADE_STATE_CANCELLED);
    }
    assert_int_equal(ct_info("q").total_dead, 0);
}

static void marked_job_that_completes_stays_completed(void **state)
{
    (void)state;
    ct_join("w", "q");
    assert_int_equal(settle_marked("a", LADE_JOB_KILL, LQ_TO_COMPLETED), LADE_STATE_COMPLETED);
    assert_int_equal(settle_marked("b", LADE_JOB_CANCEL, LQ_TO_COMPLETED), LADE_STATE_COMPLETED);
    /* The mark ended with the lease: run again, the job is as any other. */
    assert_int_equal(ct_act("q", LADE_JOB_RETRY, "a"), LADE_DONE);
    struct lq_leased j = ct_take_one("w", "q");
    assert_int_equal(ct_settle("q", &j, LQ_TO_RETRYING), LADE_DONE);
    assert_int_equal(ct_state("q", "a"), LADE_STATE_RETRYING);
}

static void marked_job_cannot_be_marked_again_but_removed(void **state)
{
    (void)state;
    ct_join("w", "q");
    (void)ct_bring("q", "a", LADE_STATE_ACTIVE);
    assert_int_equal(ct_act("q", LADE_JOB_CANCEL, "a"), LADE_DONE);
    assert_int_equal(ct_act("q", LADE_JOB_CANCEL, "a"), LADE_WRONG_STATE);
    assert_int_equal(ct_act("q", LADE_JOB_KILL, "a"), LADE_WRONG_STATE);
    assert_int_equal(ct_act("q", LADE_JOB_REMOVE, "a"), LADE_DONE);
    assert_int_equal(ct_act("q", LADE_JOB_REMOVE, "a"), LADE_NOT_FOUND);
}

static void removed_active_job_refuses_its_worker(void **state)
{
    (void)state;
    ct_join("w", "q");
    struct lq_leased j = ct_bring("q", "a", LADE_STATE_ACTIVE);
    assert_int_equal(ct_act("q", LADE_JOB_REMOVE, "a"), LADE_DONE);
    assert_int_equal(ct_settle("q", &j, LQ_TO_COMPLETED), LADE_STALE);
    assert_int_equal(ct_begin("w", "q", &j), LADE_STALE);
    assert_int_equal(ct_state("q", "a"), -1);
    /* The id is free at once, and the old lease says nothing about the new job. */
    ct_add("q", "a");
    struct lq_leased again = ct_take_one("w", "q");
    assert_int_equal(ct_settle("q", &j, LQ_TO_COMPLETED), LADE_STALE);
    assert_int_equal(ct_settle("q", &again, LQ_TO_COMPLETED), LADE_DONE);
}

static void marked_job_is_reclaimed_and_turned_by_the_next_settle(void **state)
{
    (void)state;
    ct_join("w", "q");
    ct_join("v", "q");
    (void)ct_bring("q", "a", LADE_STATE_ACTIVE);
    assert_int_equal(ct_act("q", LADE_JOB_CANCEL, "a"), LADE_DONE);
    ct_die("w", "q");
    assert_int_equal(ct_reclaim("v", "q", 1), 1);
    assert_int_equal(ct_settle("q", &ct.got.job[0], LQ_TO_READY), LADE_DONE);
    assert_int_equal(ct_state("q", "a"), LADE_STATE_CANCELLED);
}

/* C-017 */
static void job_of_a_dead_worker_can_be_removed(void **state)
{
    (void)state;
    ct_join("w", "q");
    ct_join("v", "q");
    struct lq_leased j = ct_bring("q", "a", LADE_STATE_ACTIVE);
    ct_die("w", "q");
    assert_int_equal(ct_act("q", LADE_JOB_REMOVE, "a"), LADE_DONE);
    assert_int_equal(ct_settle("q", &j, LQ_TO_COMPLETED), LADE_STALE);
    assert_int_equal(ct_reclaim("v", "q", 1), 0);
}

static const struct CMUnitTest tests[] = {
    CT_TEST(retry_readies_all_but_the_ready_and_the_active),
    CT_TEST(kill_ends_what_has_not_ended_as_dead),
    CT_TEST(cancel_ends_what_has_not_ended_as_cancelled),
    CT_TEST(remove_leaves_nothing_of_any_state),
    CT_TEST(act_on_what_is_not_there_is_not_found),
    CT_TEST(batch_tells_the_outcome_of_each_job),
    CT_TEST(full_batch_is_acted_on_in_one_call),
    CT_TEST(retried_job_joins_the_end_of_its_level),
    CT_TEST(retry_of_an_ended_job_gives_all_attempts_back),
    CT_TEST(retry_of_a_waiting_job_gives_no_attempts_back),
    CT_TEST(killed_active_job_ends_dead_whatever_its_worker_says),
    CT_TEST(cancelled_active_job_ends_cancelled_whatever_its_worker_says),
    CT_TEST(marked_job_that_completes_stays_completed),
    CT_TEST(marked_job_cannot_be_marked_again_but_removed),
    CT_TEST(removed_active_job_refuses_its_worker),
    CT_TEST(marked_job_is_reclaimed_and_turned_by_the_next_settle),
    CT_TEST(job_of_a_dead_worker_can_be_removed),
};

CT_GROUP(ct_act_group, tests);
